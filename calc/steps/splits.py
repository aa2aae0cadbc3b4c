"""A model between a device and its host: which layers the host holds, and what a pass reads there.

A `Host` is memory with its bandwidth; a `Split` says how many layers leave their experts there, or
all that they have. llama.cpp computes what lies there on the host's processor, but in steps of many
tokens, for which it sends the weights over the link.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from calc.catalog.models import Transformer
from calc.catalog.models.architecture import Matrix
from calc.catalog.models.weights import Weights
from calc.core.arrays import Number
from calc.core.elementwise import maximum
from calc.core.errors import InputError, abbreviated, marked
from calc.core.units import Quantity, quantity
from calc.laws.experts import experts_used
from calc.laws.offloading import channel_bandwidth

WRITTEN = re.compile(
    r"(?P<size>[\d.,]+\s*[KMGT]i?B)\b[\s,]*(?:of\s+)?"
    r"(?:(?P<kind>LP)?DDR(?P<generation>[345])X?[\s-]*(?P<rate>\d{3,5})"
    r"(?:\s*(?:MT/s|MHz))?(?:[\s,]*(?:(?:x|×|\*|on)\s*)?(?P<channels>\d+)(?:\s*channels?)?)?"
    r"|(?:at|@)?\s*(?P<bandwidth>[\d.,]+\s*[KMGT]i?B/s))",
    re.IGNORECASE,
)
NAMED, RATE = r"(?:NVMe|SSD|disk)(?:\s+(?:SSD|disk))?", r"[\d.,]+\s*[KMGT]i?B/s"
DISK = re.compile(
    r"[\s,]*(?:(?:and|with)\s+)?(?:[\d.,]+\s*[GT]i?B\s+)?(?:"
    rf"{NAMED}[\s,]*(?:at|of|@)?\s*(?P<behind>{RATE})(?:\s*{NAMED})?"
    rf"|(?P<before>{RATE})\s*{NAMED})",
    re.IGNORECASE,
)
AS_IN = '"96 GB DDR5-5600", "256 GB DDR4-3200 x8" for eight channels, or "96 GB at 60 GB/s"'
USUAL_CHANNELS = 2
STREAMED = 32  # tokens of a step from which llama.cpp sends weights instead of vectors
MAPPED = ", without --no-mmap and --mlock"
"""Words on a file that is larger than memory, and is read from the disk as it is needed."""
ALL = 99  # layers on the device, as many as there are, as people write it


@dataclass(frozen=True)
class Host:
    """Memory of a host, with its bandwidth."""

    memory: Quantity
    bandwidth: Quantity
    """Bandwidth as its modules make it, or as measured where that is given."""
    measured: bool = False
    written: str = ""
    """Words in which a host was asked for."""
    ssd: Quantity | None = None
    """Bandwidth of a disk, from which experts are read that the memory has no place for."""

    @classmethod
    def read(cls, text: Host | str) -> Host:
        """The host of what people write of it.

        >>> print(Host.read("96 GB DDR5-5600").bandwidth, Host.read("96 GB at 60 GB/s").bandwidth)
        89.6 GB/s 60 GB/s
        """
        if isinstance(text, Host):
            return text
        written, disk = text, DISK.search(text) if isinstance(text, str) else None
        if disk is not None and disk.end() == len(text.rstrip()):
            text = text[: disk.start()]
        ssd = None if disk is None else quantity(disk["behind"] or disk["before"])
        match = WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise InputError(
                f"{marked('host')} needs the size of the host's memory and its speed, as in"
                f" {AS_IN}; got {abbreviated(text)}",
                given=text,
            )
        memory = quantity(match["size"])
        if match["bandwidth"]:
            return cls(memory, quantity(match["bandwidth"]), True, written, ssd)
        channels = int(match["channels"] or USUAL_CHANNELS)
        if not 1 <= channels <= 24:
            raise InputError(
                f"{marked('host')} has 1 to 24 channels of memory; got {channels} in"
                f" {abbreviated(text)}",
                given=text,
            )
        transfers = quantity(float(match["rate"]) * 1e6, "1/s")
        bandwidth = channel_bandwidth(transfers, channels).to("GB/s")
        return cls(memory, bandwidth, False, written, ssd)

    def __str__(self) -> str:
        disk = "" if self.ssd is None else f", {self.ssd} SSD"
        return f"{self.memory} at {self.bandwidth}{disk}"


@dataclass(frozen=True)
class Split:
    """The layers of a model that a host holds beside one device.

    Parameters
    ----------
    host
        its memory
    experts
        layers that leave their experts there, of those that have any
    layers
        layers that lie there whole, caches and all
    resident
        share of the experts' bytes there that its memory has a place for; the others are on its SSD
    """

    host: Host
    experts: int = 0
    layers: int = 0
    resident: float = 1.0

    def share(self, matrix: Matrix, model: Transformer) -> float:
        """The share of a matrix's layers that the host holds.

        The output goes to the device first, and a table that is looked up counts as the device's.
        """
        if matrix.part in ("output", "embedding"):
            return 0.0
        return self.share_of_layers(model, matrix.used < matrix.copies)

    def share_of_layers(self, model: Transformer, of_experts: bool) -> float:
        """The share of the layers that lie with the host, or of those whose experts do."""
        whole = self.layers / model.layers
        experts = self.experts / (model.layers_with("experts") or 1)
        return max(whole, experts) if of_experts else whole

    def held(self, weights: Weights, of_experts: bool = False) -> Quantity:
        """Bytes of the weights that the host holds, or of its experts alone."""
        model, memory = weights.model, quantity(0.0, "byte")
        for matrix in _counted(model, of_experts):
            if share := self.share(matrix, model):
                memory = memory + share * matrix.parameters * weights.size(matrix)
        return memory

    def read(self, weights: Weights, tokens: Number, of_experts: bool = False) -> Quantity:
        """Bytes of them that a pass of so many tokens reads: of experts those that are chosen."""
        model, moved = weights.model, quantity(0.0, "byte") * maximum(tokens, 1.0)
        for matrix in _counted(model, of_experts):
            if share := self.share(matrix, model):
                met: Number = matrix.copies
                if matrix.used < matrix.copies:
                    chosen = matrix.used / matrix.copies
                    met = experts_used(matrix.copies, chosen, maximum(tokens, 1.0)).m_as("")
                count = share * matrix.inputs * matrix.outputs * matrix.layers
                moved = moved + met * count * weights.size(matrix)
        return moved

    def options(self, model: Transformer) -> str:
        """The options of llama.cpp that split a model so.

        >>> from calc import models
        >>> Split(Host.read("96 GB DDR5-5600"), experts=25).options(models.get("gpt-oss-120b"))
        '-ngl 99 --n-cpu-moe 25'
        >>> Split(Host.read("96 GB DDR5-5600"), layers=25).options(models.get("llama-3-70b"))
        '-ngl 56'
        """
        kept = ALL if not self.layers else model.layers - self.layers + 1
        if not self.experts:
            return f"-ngl {kept}"
        first = model.layers - model.layers_with("experts")  # dense ones, which have none
        mapped = "" if self.resident == 1 else MAPPED
        return f"-ngl {kept} --n-cpu-moe {first + self.experts}{mapped}"

    def pattern(self, model: Transformer) -> str:
        """Return the same of experts as a pattern of tensors, which forks take.

        >>> from calc import models
        >>> Split(Host.read("96 GB DDR5-5600"), experts=3).pattern(models.get("gpt-oss-120b"))
        '-ot "blk\\\\.(0|1|2)\\\\.ffn_(up|down|gate)_exps=CPU"'
        """
        if not self.experts:
            return ""
        first = model.layers - model.layers_with("experts")
        numbers = "|".join(map(str, range(first, first + self.experts)))
        return rf'-ot "blk\.({numbers})\.ffn_(up|down|gate)_exps=CPU"'

    def told(self, model: Transformer) -> str:
        """Return what the host holds, in words.

        >>> from calc import models
        >>> Split(Host.read("96 GB DDR5-5600"), experts=25).told(models.get("gpt-oss-120b"))
        'experts of 25 of 36 layers'
        """
        if self.layers:
            experts = f", experts of {self.experts}" if self.experts > self.layers else ""
            return f"{self.layers} of {model.layers} layers{experts}"
        return f"experts of {self.experts} of {model.layers_with('experts')} layers"


def _counted(model: Transformer, of_experts: bool) -> list[Matrix]:
    """Return the matrices of a model, or those of experts alone."""
    return [each for each in model.matrices if not of_experts or each.used < each.copies]
