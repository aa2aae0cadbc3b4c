"""Images and samples a second of networks that write no tokens, and what bounds them.

`of` answers for vision transformers, convolutional networks, diffusion models, encoders of
texts and recommenders, as `calc.plan` does for transformers that write. A pass is a list of
kernels, one after the other; each takes at least as long as its arithmetic or its bytes at
published rates. At rates that were measured on a machine, the same list says how long it is
expected to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from calc import formats
from calc.catalog import constants, hardware, machines, models, software as programs
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.intervals import (
    IMAGES,
    KIN,
    MEASURED,
    PEAKS,
    TOGETHER,
    Around,
    Interval,
    interval_of,
)
from calc.catalog.machines import Machine
from calc.catalog.models import Network, Transformer
from calc.catalog.models.unet import EXPANSION, KERNEL
from calc.catalog.software import UNKNOWN, Software
from calc.core.arguments import as_list, truth, whole_number
from calc.core.errors import InputError, abbreviated, marked
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import roofline
from calc.networks import convolution, diffusion, encoder_decoder, recommenders, transformer
from calc.steps import communication, device_memory
from calc.steps.expectation import Missing, Parts, if_measured, of_kernels
from calc.steps.job import BYTE, NO_BYTES, NO_WORK, TWO_BYTES, input_size
from calc.steps.kernels import backward_of
from calc.steps.measured import Kernel

PAIRS = 51_200  # batch of a recommender where none is given: that of MLPerf's entries on H100s
SPOKEN = 63  # tokens of a recording in the mean of MLPerf's benchmark of Whisper
GRADIENTS = ("input", "weights")
NO_INTERVAL = "no interval, since no class of published rows is like it"
UPDATE = "the update of weights, and messages that share gradients out"
TRAINED = (Transformer, models.Convolutional)
HEADERS = ("", "time", "bound by", "operations", "bytes")
NO_TIME = quantity(0, "s")
DIFFUSERS = "diffusers"
"""The program of diffusion where none is named: most run it, and do not compile."""


@dataclass(frozen=True, eq=False, repr=False)
class Throughput(Answer):
    """A network on devices: items a second at the most, and what is expected."""

    _SENTENCES = (("assumptions", "Assumed"),)

    model: Transformer | Network
    machine: Machine
    items: str
    """What is counted: images, pairs of a user and an item, sources that are read."""
    batch: int
    passes: int
    """Passes of the network, one after the other, for a batch."""
    dtype: str
    kernels: tuple[Kernel, ...]
    """Kernels of one pass on one device."""
    memory: Quantity
    """Weights and tables, on each device."""
    vectors: tuple[Kernel, ...] = ()
    """Passes over vectors between products, which bounds leave out and expectations do not."""
    devices: int = 1
    sharers: int = 1
    """Devices among which tables are cut; there are as many copies as groups of these."""
    exchanged: Quantity = NO_BYTES
    """What a device exchanges in a pass with those that share its tables, or its image."""
    exchanges: int = 1
    """Messages of these bytes, one after the other."""
    together: int = 1
    """Devices that make one batch together, each of a part of its tokens."""
    once: tuple[Kernel, ...] = ()
    """Kernels that run once for a batch, before its passes and after them."""
    program: Software = UNKNOWN
    of_program: Quantity = NO_TIME
    """The program's own time in a pass, beside its kernels' bytes."""
    notes: tuple[str, ...] = ()
    """What is assumed of this kind of network, a sentence each."""
    without: str = ""
    """The parts of a whole answer that are left out."""
    training: bool = False
    """Whether a pass is a step of training, forward and backward."""
    holds: str = "weights"
    """All that memory is counted for."""

    @cached_property
    def parts(self) -> dict[str, Quantity]:
        """The least time of a pass by what bounds it, kernel by kernel: compute, memory, links."""
        parts = self._bounds(self.kernels)
        if self.sharers > 1:
            parts["links"] = communication.least_time(
                "all_to_all", self.exchanged, self.sharers, self.machine
            )
        return parts

    def _bounds(self, kernels: tuple[Kernel, ...]) -> dict[str, Quantity]:
        parts = dict.fromkeys(("compute", "memory", "links"), quantity(0, "s"))
        for kernel in kernels:
            bound, time = self._least(kernel)
            parts[bound] = parts[bound] + time
        return parts

    @cached_property
    def times(self) -> dict[str, Quantity]:
        """The least time of a pass by the names of its kernels."""
        times: dict[str, Quantity] = {}
        for kernel in self.kernels:
            _, time = self._least(kernel)
            times[kernel.name] = times[kernel.name] + time if kernel.name in times else time
        return times

    @property
    def bound(self) -> str:
        """Return what bounds most of the time: compute, memory or links."""
        return max(self.parts, key=lambda part: self.parts[part].m_as("s"))

    @property
    def time(self) -> Quantity:
        """The least time of a batch, all its passes one after the other."""
        around = sum(self._bounds(self.once).values(), quantity(0, "s"))
        return sum(self.parts.values(), quantity(0, "s")) * self.passes + around

    @property
    def made_at_once(self) -> float:
        """Items that all devices make in the time of a batch."""
        return self.batch * self.devices / self.together

    @property
    def rate(self) -> Quantity:
        """Items a second at the most, of all devices."""
        return quantity(self.made_at_once / self.time.m_as("s"), "1/s")

    @property
    def expected(self) -> Quantity | None:
        """Time of a batch at measured rates; None where one was not measured on this machine."""
        if isinstance(self.expectation, Missing):
            return None
        total = (self.expectation.total + self.of_program) * self.passes
        if self.once:
            total = total + of_kernels(self.once, self.machine, program=self.program).total
        return total.to("s")

    @property
    def not_expected(self) -> str:
        """Return why nothing is expected: which rate was not measured."""
        return self.expectation.reason if isinstance(self.expectation, Missing) else ""

    @cached_property
    def expectation(self) -> Parts | Missing:
        """The parts of a pass at measured rates, or which rate was not measured."""
        if isinstance(self.model, models.Convolutional):
            return Missing(
                "the rate of convolutions was not measured on any machine of the data, so nothing"
                f" is expected of {self.model.name}"
            )
        launched = [*self.kernels, *self.vectors]
        sent = self.exchanged.m_as("byte"), self.sharers, self.exchanges
        return if_measured(lambda: of_kernels(launched, self.machine, *sent, self.program))

    @property
    def expected_rate(self) -> Quantity | None:
        """Items a second at measured rates, of all devices."""
        if self.expected is None:
            return None
        return quantity(self.made_at_once / self.expected.m_as("s"), "1/s")

    @property
    def borrowed(self) -> bool:
        """Return whether rates of other devices, or usual shares of peaks, are in it."""
        return not isinstance(self.expectation, Missing) and bool(self.expectation.kin)

    @property
    def interval(self) -> Interval | None:
        """The interval of published rows like it around what is expected; None without any."""
        if not isinstance(self.model, models.TokenDiffusion) or self.expected is None:
            return None
        work = TOGETHER if self.together > 1 else IMAGES
        return interval_of(work, self.program.key, mixture=False, filled=self.borrowed)

    @property
    def around(self) -> Around | None:
        """The range of the time of a batch in which 80 % of rows like it lie."""
        if self.interval is None or self.expected is None:
            return None
        return self.interval.around(self.expected, self.time)

    @property
    def fits(self) -> bool:
        """Return whether weights and tables are within a device's memory, without activations."""
        return bool(self.memory <= device_memory.room(self.machine.device))

    @cached_property
    def facts(self) -> dict[str, object]:
        expected: dict[str, object] = {"not_expected": self.not_expected}
        if self.expected_rate is not None:
            expected = {
                "expected_time": self.expected,
                "expected_rate": self.expected_rate,
                "expected_rate_per_hour": self.expected_rate.to("1/hour"),
            }
        if self.around is not None:
            expected |= {"expected_time_range": self.around.facts, "range_of": str(self.interval)}
        return {
            "model": self.model.key,
            "device": self.machine.device.key,
            "devices": self.devices,
            "devices_that_share_tables": 1 if self.together > 1 else self.sharers,
            "together": self.together,
            **values(self, "dtype items batch passes memory fits bound time rate"),
            "rate_per_hour": self.rate.to("1/hour"),
            **expected,
            "without": self.without,
            "training": self.training,
            "assumptions": self.assumptions,
        }

    def _assumptions(self) -> Iterator[str]:
        device = self.machine.device
        yield (
            f"Products are computed in {self.dtype.upper()} at {device.peak(self.dtype)}; memory"
            f" runs at {device.memory_bandwidth}."
        )
        yield (
            "At the most takes published rates: kernels follow one another, each as long as its"
            " arithmetic or its bytes; passes over vectors between products are left out."
        )
        if self.expected is None:
            yield f"{self.not_expected[0].upper()}{self.not_expected[1:]}."
        else:
            yield (
                "Expected is what kernels were measured to reach on"
                f" {self.machine.name}, passes over vectors included; the program's own time is not"
                " in it."
            )
        yield from self.notes
        batch = f"Each device computes a batch of {self.batch}"
        if self.together > 1:
            yield (
                f"{self.together} devices make a batch of {self.batch} together: each has a part of"
                " its tokens, and in attention a part of its heads, which are exchanged in an"
                " all-to-all before it and after it."
            )
        elif self.sharers > 1:
            host = communication.sending(self.sharers, self.machine)
            yield (
                f"{batch}; {self.sharers} share the tables, and send one another the sums of their"
                f" rows in an all-to-all, two bytes an element, over {host} each way."
            )
        elif self.devices > 1:
            yield f"{batch}, with all weights, and sends nothing to the others."
        yield "Memory holds weights and tables; activations are not counted."

    def rows(self) -> list[tuple[str, ...]]:
        """The longest kernels of a pass, alike ones together."""
        alike: dict[str, list[Kernel]] = {}
        for kernel in self.kernels:
            alike.setdefault(kernel.name, []).append(kernel)
        rows = []
        for name, same in alike.items():
            longest, _ = max(map(self._least, same), key=lambda pair: pair[1].m_as("s"))
            work = sum((kernel.operations * kernel.launches for kernel in same), NO_WORK)
            moved = sum((kernel.traffic * kernel.launches for kernel in same), NO_BYTES)
            time = self.times[name]
            rows.append((time.m_as("s"), (name, str(time), longest, str(work), str(moved))))
        return [row for _, row in sorted(rows, reverse=True)]

    @property
    def answer(self) -> str:
        rate = self._rates(self.rate, self.time, "at the most ")
        if self.expected_rate is not None:
            rate = self._rates(self.expected_rate, self.expected)
        if self.around is not None:
            rate = f"{rate}, 80% from {self.around.told()}"
        return f"{self.model.name} on {self.devices} {self.machine.device.name}: {rate}"

    @property
    def stands_on(self) -> str:
        what = "a step of training" if self.training else "inference"
        what = f"{what} without {self.without}" if self.without else what
        if isinstance(self.expectation, Missing):
            why = self.not_expected.partition(": ")[0]
            return f"{what}; BOUND ONLY, {PEAKS}, by {self.bound}: {why}"
        most = self._rates(self.rate, self.time, "at the most ")
        basis = KIN if self.expectation.borrowed else MEASURED
        rates = f"{basis} of {self.machine.name}"
        rates = f"{rates}, {NO_INTERVAL if self.interval is None else self.interval}"
        return f"{what}; {rates}; {most}, bound by {self.bound}"

    @property
    def chosen(self) -> tuple[str, ...]:
        fits = "fits" if self.fits else "does not fit"
        each = " of each device" if self.devices > 1 else ""
        return (
            self.dtype.upper(),
            f"batch {self.batch}{f' of {self.together} together' if self.together > 1 else each}",
            f"passes: {self.passes}",
            f"{self.holds}: {self.memory}, which {fits} into"
            f" {self.machine.device.memory_capacity}{each}",
        )

    @cached_property
    def tables(self) -> list[Table]:
        links = ("exchange", str(self.parts["links"]), "links", "", str(self.exchanged))
        return [Table([HEADERS, *self.rows(), *([links] if self.sharers > 1 else [])])]

    def _rates(self, rate: Quantity, time: Quantity | None, most: str = "") -> str:
        each_second, hourly = (quantity(rate.m_as(unit), "") for unit in ("1/s", "1/hour"))
        return f"{most}{each_second} {self.items} a second, {hourly} an hour: {time} a batch"

    def _least(self, kernel: Kernel) -> tuple[str, Quantity]:
        """Return what bounds a kernel, and its least time, all launches together."""
        device = self.machine.device
        step = roofline.Workload(kernel.operations, kernel.traffic).on(device, self.dtype)
        return step.bound, step.lower * kernel.launches


@understood
def of(
    model: Transformer | Network | str,
    device: Machine | Accelerator | Path | str,
    batch: int | None = None,
    dtype: str | None = None,
    steps: int | None = None,
    pixels: tuple[int, int] | None = None,
    table: QuantityLike | None = None,
    devices: int | None = None,
    frames: int | None = None,
    together: int = 1,
    software: str | None = None,
    training: bool = False,
    written: int | None = None,
) -> Throughput:
    """Images or samples a second of a network on devices, and what bounds them.

    Each device computes a batch of its own, with all weights; a recommender's tables are cut for as
    few devices as hold them. Of an encoder and a decoder it is the encoder's pass and, where tokens
    are written, the decoder's.

    Parameters
    ----------
    batch
        inputs that a device computes together: 1 where it is left out, of a recommender 51200
    dtype
        the format that weights have and that is computed in
    steps
        from noise to an image, where they are not those of the model's library
    pixels
        rows and columns of an image that is made, or of a video, where they are not the model's own
    table
        the format of a recommender's tables, where it is not that of the weights
    devices
        how many there are; one where it is left out, or as few as hold a recommender
    frames
        of a video, where they are not the model's own
    together
        devices that make an image or a video together, each of a part of its tokens
    software
        program that makes images: diffusers where it is left out, or diffusers-compiled, whose
        passes over vectors are fused, or tensorrt-llm, whose attention is the best measured too
    training
        a step of training in place of inference: the forward pass and the backward one
    written
        tokens that a decoder writes of each source; of recordings 63 where it is left out, as those
        of MLPerf's benchmark take in the mean, and of texts none, which is the encoder alone

    Examples
    --------
    >>> answer = of("flux-1-dev", "dgx-h100", steps=28)
    >>> print(answer.passes, answer.bound, answer.time)
    28 compute 2.117 s
    >>> video = of("wan-2-2-t2v-a14b", "dgx-h100", devices=8, together=8, software="tensorrt-llm")
    >>> print(video.batch, video.items, video.bound)
    1 videos compute
    >>> server = of("dlrm-dcnv2", "dgx-h100", table="fp32", devices=8)
    >>> print(server.sharers, server.memory, server.bound)
    2 52.30 GB memory
    """
    network = models.get(model) if isinstance(model, str) else model
    machine = machines.of(device)
    if batch is None:
        batch = PAIRS if isinstance(network, models.Recommender) else 1
    batch = whole_number("batch", batch)
    devices = None if devices is None else whole_number("devices", devices)
    if dtype is None:
        dtype = machine.device.usual_dtype
    else:
        machine.device.peak(dtype)  # refuses a format in which the device does not compute
        dtype = hardware.dtype_of(dtype)
    together = whole_number("together", together)
    asked = _Asked(
        machine,
        batch,
        dtype,
        input_size(dtype),
        steps,
        pixels,
        table,
        devices,
        frames,
        together,
        software,
        training,
        written,
    )
    of_images = {"frames": frames, "software": software, "together": max(together - 1, 0)}
    if not isinstance(network, models.Diffusion):
        for name, said in of_images.items():
            if said:
                raise InputError(
                    f"{marked(name)} is of models that make images or videos; {network.name} is"
                    f" {getattr(network, 'family', 'a transformer')}"
                )
    if truth("training", training) and not isinstance(network, TRAINED):
        raise InputError(
            f"{marked('training')} is of vision transformers, encoders of texts and convolutional"
            f" networks here; {network.name} is none"
        )
    if written is not None and not isinstance(network, models.EncoderDecoder):
        raise InputError(
            f"{marked('written')} are tokens of a decoder beside an encoder, which {network.name}"
            " has not"
        )
    for family, answer in ANSWERS.items():
        if isinstance(network, family):
            return answer(asked, network)
    name = abbreviated(getattr(network, "name", network))
    raise InputError(f"a model of calc.models, or its name, is needed here; got {name}")


@dataclass(frozen=True, eq=False)
class _Asked:
    """A caller's question, read and checked."""

    machine: Machine
    batch: int
    dtype: str
    size: Quantity
    steps: int | None
    pixels: tuple[int, int] | None
    table: QuantityLike | None
    devices: int | None
    frames: int | None
    together: int
    software: str | None
    training: bool
    written: int | None

    def answer(self, model: Any, items: str, launched: Iterator[Kernel], **more: Any) -> Throughput:
        facts: dict[str, Any] = {"passes": 1, "memory": self.size * model.parameters.m_as("param")}
        return Throughput(
            model=model,
            machine=self.machine,
            items=items,
            batch=self.batch,
            dtype=self.dtype,
            kernels=tuple(launched),
            **(facts | {"devices": self.devices or 1} | more),
        ).settled()

    @property
    def of_training(self) -> dict[str, Any]:
        """Return the facts of a step of training; none of inference."""
        return {"training": True, "without": UPDATE} if self.training else {}

    def both_ways(self, forward: Iterable[Kernel]) -> Iterator[Kernel]:
        """Yield kernels, and in training those of their backward passes too."""
        for kernel in forward:
            yield kernel
            yield from backward_of(kernel) if self.training else ()

    def product(self, name: str, m: float, n: float, k: float, launches: float = 1) -> Kernel:
        """A matrix product at the format of the pass; its result has two bytes an element."""
        sizes = (self.size, self.size, TWO_BYTES)
        return Kernel.of_product(name, (m, n, k), sizes, self.dtype, launches)

    def attention(
        self,
        tokens: float,
        inner: float,
        sequences: float,
        launches: float,
        seen: float | None = None,
    ) -> Kernel:
        """Fused attention to all tokens, or to so many; its inputs and results go to memory."""
        work = quantity(4.0 * tokens * (seen or tokens) * inner * sequences, "FLOP")
        traffic = 4 * tokens * inner * sequences * TWO_BYTES
        return Kernel("attention", "attention", launches, work, traffic, dtype=self.dtype)

    def vectors(
        self, tokens: float, width: float, hidden: float, layers: float
    ) -> Iterator[Kernel]:
        """Passes over vectors of so many layers, fused as compilers fuse them."""
        vector = tokens * TWO_BYTES
        yield Kernel("residuals and norms", "memory", 2 * layers, traffic=4 * width * vector)
        yield Kernel("activation", "memory", layers, traffic=2 * hidden * vector)

    def convolution(
        self, name: str, places: float, inputs: float, outputs: float, spans: float = 1
    ) -> Kernel:
        """A convolution of nine places, of `spans` frames: a product of its places, read once."""
        product = self.product(name, places, outputs, KERNEL * spans * inputs)
        return replace(product, traffic=places * (inputs + outputs) * TWO_BYTES)

    def layer(
        self,
        name: str,
        tokens: float,
        width: float,
        inner: float,
        hidden: float,
        launches: float,
        gated: float | None = None,
    ) -> Iterator[Kernel]:
        """Products of so many blocks of attention and feed-forward network, over all tokens.

        A gate may leave fewer of the hidden numbers to the last product.
        """
        yield self.product(f"{name}query, key and value", tokens, 3 * inner, width, launches)
        yield self.product(f"{name}attention output", tokens, width, inner, launches)
        yield self.product(f"{name}up", tokens, hidden, width, launches)
        yield self.product(f"{name}down", tokens, width, gated or hidden, launches)


def _transformer(asked: _Asked, model: Transformer) -> Throughput:
    """A pass over a batch of images, or of an encoder's texts, each of which fills the context."""
    texts = model.patch_inputs is None
    if texts and model.output in ("own", "tied"):
        raise InputError(
            f"{model.name} writes tokens: calc.plan answers for it, and calc.throughput for"
            " encoders, networks of images and recommenders"
        )

    def launched() -> Iterator[Kernel]:
        length = model.context
        inner = model.heads * model.head_width
        window = length if model.window is None else min(length, model.window)
        for kind, seen in (("full", length), ("window", window)):
            if layers := model.layers_with(kind):
                yield asked.attention(length, inner, asked.batch, layers, seen)
        for product in transformer.prefill_matmuls(model, length, asked.batch):
            if not product.name.endswith(("scores", "weighted values")):
                shape = (float(product.m), float(product.n), float(product.k))
                yield asked.product(
                    product.name, *shape, launches=cast(float, product.count * product.layers)
                )

    length = asked.batch * model.context
    width, hidden = model.width, model.feed_forward_width or 1
    vectors = asked.vectors(length, width, hidden, model.layers)
    note = f"A text fills the context of {model.context} tokens, without padding."
    if not texts:
        note = f"An image is {model.context} tokens; reading and scaling it is left out."
    notes = (note, *(f"{model.name}: {remark}." for remark in model.notes))
    more: dict[str, Any] = {"vectors": tuple(asked.both_ways(vectors)), "notes": notes}
    items = "texts" if texts else "images"
    return asked.answer(model, items, asked.both_ways(launched()), **more | asked.of_training)


def _convolutional(asked: _Asked, model: models.Convolutional) -> Throughput:
    """A pass over a batch of inputs, convolution by convolution."""

    def launched() -> Iterator[Kernel]:
        for number, layer in enumerate(model.convolutions):
            step = convolution.workload(layer, asked.batch, asked.size)
            work, moved = step.operations, step.traffic
            kernel = Kernel(layer.kind, "convolution", 1, work, moved, dtype=asked.dtype)
            yield kernel
            sides = GRADIENTS if number else GRADIENTS[1:]  # no gradient of the network's input
            for side in sides if asked.training else ():
                yield replace(kernel, name=f"{layer.kind}, backward to the {side}")

    return asked.answer(model, "inputs", launched(), **asked.of_training)


@dataclass(frozen=True)
class _Passes:
    """Passes over vectors, one kernel each: how many of them, and the bytes of each number."""

    kernels: int
    bytes: float


# Between products, of a number of two bytes, as its library's code launches them one by one; and as
# compilers fuse them. A norm with its scale and shift; a gate with its residual; norms of heads and
# rotations, in four bytes, of queries and keys each; what is joined; what activates.
ONE_BY_ONE = {
    "norm": _Passes(3, 12),
    "gate": _Passes(2, 10),
    "head norm": _Passes(6, 34),
    "rotation": _Passes(8, 52),
    "join": _Passes(1, 4),
    "activation": _Passes(1, 4),
    "gated activation": _Passes(2, 10),
}
# Of models whose shifts and gates are in four bytes, all vectors of a block: two norms and gates,
# the norm before attention to the text and its residual.
ONE_BY_ONE_WIDE = {"block": _Passes(24, 162), "head norm": _Passes(6, 34)} | {
    "rotation": _Passes(4, 36)
}
FUSED = {
    "norm": _Passes(1, 4),
    "gate": _Passes(1, 4),
    "head norm": _Passes(0, 0),
    "rotation": _Passes(1, 4),
    "join": _Passes(0, 0),
    "activation": _Passes(1, 4),
    "gated activation": _Passes(1, 6),
}
# Of a U-Net: a norm over groups of channels reads all twice; a residual reads two and writes one; a
# gate's two halves are joined after one was activated; what the way down made is joined to what is
# read. Not compiled, convolutions want channels last and find them first, there and back, and add
# biases apart. Compilers fuse activations with norms, and biases with what follows.
UNET_ONE_BY_ONE = {
    "group norm": _Passes(2, 6),
    "activation": _Passes(1, 4),
    "norm": _Passes(1, 4),
    "residual": _Passes(1, 6),
    "gate": _Passes(2, 10),
    "join": _Passes(1, 4),
    "layout": _Passes(2, 8),
    "bias": _Passes(1, 4),
}
UNET_FUSED = UNET_ONE_BY_ONE | {
    **dict.fromkeys(("activation", "layout", "bias"), _Passes(0, 0)),
    "gate": _Passes(1, 6),
}
FUSED_WIDE = {"block": _Passes(3, 24), "head norm": _Passes(1, 4), "rotation": _Passes(1, 4)}


@dataclass(frozen=True)
class _Made:
    """Tokens and kernels of a pass, on one of the devices that make a batch together."""

    asked: _Asked
    model: models.TokenDiffusion
    program: Software
    tokens: float
    """Tokens of one image that attend to one another."""

    @property
    def share(self) -> float:
        return 1 / self.asked.together

    def attention(self, seen: float | None = None) -> Kernel:
        """Attention of its heads to all tokens, or to so many; lasting, as all of a long pass."""
        inner = self.model.inner * self.share
        blocks = self.model.blocks
        return self.asked.attention(self.tokens, inner, self.asked.batch, blocks, seen)

    def layer(self, name: str, tokens: float, blocks: float, gated: bool) -> Iterator[Kernel]:
        """Products of attention and feed-forward network, over a device's part of the tokens."""
        count, of = tokens * self.asked.batch * self.share, self.model
        shape = (of.width, of.inner, of.feed_forward_width)
        for kernel in self.asked.layer(name, count, *shape, blocks):
            yield replace(kernel, lasting=True)
        if gated:
            gate = self.asked.product(f"{name}gate", count, shape[2], shape[0], blocks)
            yield replace(gate, lasting=True)

    def vectors(
        self, name: str, of: _Passes, width: float, times: float, tokens: float
    ) -> Iterator[Kernel]:
        """Yield so many times such passes over vectors of that width."""
        if of.kernels and times:
            count = tokens * width * self.asked.batch * self.share
            moved = count * of.bytes / of.kernels * BYTE
            yield Kernel(name, "memory", times * of.kernels, traffic=moved)


def _diffusion(asked: _Asked, model: models.Diffusion) -> Throughput:
    """Passes over the text and an image's tokens or places, from noise to a batch of images."""
    steps = model.steps
    steps = steps if asked.steps is None else whole_number("steps", asked.steps)
    pixels = model.pixels if asked.pixels is None else as_list("pixels", asked.pixels)
    sides = [whole_number("pixels of a side", side) for side in pixels]
    if len(sides) != 2:
        raise InputError(f"pixels are rows and columns, as 1024,768; got {len(sides)} numbers")
    frames = _frames(asked, model)
    program = programs.get(asked.software or DIFFUSERS)
    rows, columns = sides
    if isinstance(model, models.UNet):
        more = _of_unet(asked, model, program, rows, columns)
    else:
        more = _of_tokens(asked, cast(models.TokenDiffusion, model), program, sides, frames)
    passes = int(diffusion.passes_of_an_image(steps, model.passes).m_as(""))
    library = " as in the model's library" if asked.steps is None else ""
    each_step = " and two passes a step, one for guidance" if model.passes == 2 else ""
    video = "" if frames is None else f" and {frames} frames"
    item = model.items.removesuffix("s").capitalize()
    fused = "in fused kernels" if program.fused else "one kernel after the other, not compiled"
    notes = (
        f"{'An' if frames is None else 'A'} {item.lower()} has {sides[0]} × {sides[1]} pixels"
        f"{video}, in {steps} steps{library}{each_step}.",
        f"{program.name}: passes over vectors between products run {fused}"
        + (f", and attention is {program.attention}." if program.attention else "."),
        "The encoder of the text and the decoder of the pixels are in it once, and the encoder's"
        " weights in memory.",
    )
    together = asked.together
    devices = asked.devices or together
    if devices % together:
        raise InputError(
            f"{marked('devices')} must be a multiple of the {together} that work together; got"
            f" {devices}"
        )
    encoder = 0.0 if model.text_encoder is None else model.text_encoder.m_as("param")
    return asked.answer(
        model,
        model.items,
        memory=asked.size * (model.parameters.m_as("param") + encoder),
        devices=devices,
        passes=passes,
        once=tuple(_around(asked, model, sides, frames)),
        program=program,
        together=together,
        sharers=together,
        notes=(*notes, *more.pop("of_family", ())),
        without="the host's work",
        **more,
    )


def _of_tokens(
    asked: _Asked,
    model: models.TokenDiffusion,
    program: Software,
    sides: list[int],
    frames: int | None,
) -> dict[str, Any]:
    """Kernels of a pass over tokens, and what devices exchange that make a batch together."""
    tokens = diffusion.tokens(model, sides[0], sides[1], frames).m_as("")
    if asked.together > 1:
        _check_together(asked, model)
    made = _Made(asked, model, program, tokens)
    sent = model.inner * tokens * asked.batch / asked.together * TWO_BYTES
    cross = isinstance(model, models.CrossDiffusion)
    return {
        "launched": (_cross_pass if cross else _joint_pass)(made),
        "vectors": tuple(_vectors(made)),
        "of_program": _heads_normalised(made) * quantity(program.head_row, "s"),
        "exchanged": 4 * model.blocks * sent if asked.together > 1 else NO_BYTES,
        "exchanges": 4 * model.blocks,
    }


def _of_unet(
    asked: _Asked, model: models.UNet, program: Software, rows: int, columns: int
) -> dict[str, Any]:
    """Kernels of a pass of a U-Net, layer by layer, whose convolutions are as those of a decoder.

    Between its products are norms over groups of channels, which are read twice, and activations.
    """
    if asked.together > 1:
        raise InputError(
            f"{marked('together')} is of transformers; {model.name} is {model.family}, whose images"
            " are made by one device each"
        )
    launched: list[Kernel] = []
    vectors: list[Kernel] = []
    text = model.text_tokens * asked.batch

    def passes(name: str, of: _Passes, numbers: float, times: float = 1) -> None:
        if of.kernels and numbers:
            moved = numbers * of.bytes / of.kernels * BYTE
            vectors.append(Kernel(name, "memory", times * of.kernels, traffic=moved))

    of = UNET_FUSED if program.fused else UNET_ONE_BY_ONE
    for kind, halved, inputs, outputs, depth, again in model.layers:
        reduced = model.patch_pixels * 2**halved
        places = rows / reduced * columns / reduced
        count = places * asked.batch
        if kind == "transformer":
            ends = asked.product("in and out of attention", count, outputs, outputs, 2)
            launched += [ends, *_block_of_unet(asked, model, places, outputs, depth, text)]
            passes("norms over channels", of["group norm"], count * outputs)
            passes("layouts", of["layout"], count * outputs)
            passes("norms", of["norm"], count * outputs, 3 * depth)
            passes("residuals", of["residual"], count * outputs, 3 * depth + 1)
            passes("gated activation", of["gate"], count * EXPANSION * outputs, depth)
            continue
        read = [inputs, outputs] if kind == "residual" else [inputs]
        for channels in read:
            launched.append(asked.convolution("convolutions", count, channels, outputs))
            passes("layouts", of["layout"], count * (channels + outputs) / 2)
            passes("biases", of["bias"], count * outputs)
        if kind == "residual":
            passes("joins", of["join"], count * inputs * (again > 0))
            passes("norms over channels", of["group norm"], count * inputs)
            passes("activation", of["activation"], count * inputs)
            passes("norms over channels", of["group norm"], count * outputs)
            passes("activation", of["activation"], count * outputs)
            passes("residuals", of["residual"], count * outputs, 2)  # the time is added too
            if inputs != outputs:
                launched.append(asked.product("shortcuts", count, outputs, inputs))
    note = (
        f"Convolutions of {model.name} are expected at the rates of products of their shape, since"
        " no rate of a convolution was measured: published times are longer."
    )
    return {"launched": iter(launched), "vectors": tuple(vectors), "of_family": (note,)}


def _block_of_unet(
    asked: _Asked, model: models.UNet, places: float, width: int, depth: int, text: float
) -> Iterator[Kernel]:
    """Blocks of attention to all places, attention to the text, and a gated network."""
    count = places * asked.batch
    yield asked.attention(places, width, asked.batch, depth)
    yield asked.attention(places, width, asked.batch, depth, float(model.text_tokens))
    hidden = EXPANSION * width
    yield from asked.layer("", count, width, width, 2 * hidden, depth, hidden)
    yield asked.product("text's query and output", count, width, width, 2 * depth)
    yield asked.product("text's key and value", text, 2 * width, model.text_width, depth)


def _frames(asked: _Asked, model: models.Diffusion) -> int | None:
    """Frames of a video; None of an image."""
    if model.frames is None:
        if asked.frames is not None:
            raise InputError(f"{model.name} makes images, which have no {marked('frames')}")
        return None
    frames = int(model.frames) if asked.frames is None else whole_number("frames", asked.frames)
    joined = model.frames_joined or 1
    if (frames - 1) % joined:
        raise InputError(
            f"{marked('frames')} of {model.name} are one and a multiple of {joined}, as"
            f" {frames - (frames - 1) % joined}; got {frames}"
        )
    return frames


def _check_together(asked: _Asked, model: models.TokenDiffusion) -> None:
    """Refuse more devices than the machine's domain has, or than share the heads evenly."""
    if model.heads % asked.together or asked.together > asked.machine.domain:
        raise InputError(
            f"{marked('together')} must divide the {model.heads} heads of {model.name}, and be at"
            f" most the {asked.machine.domain} devices of {asked.machine.name}; got"
            f" {asked.together}"
        )


def _joint_pass(made: _Made) -> Iterator[Kernel]:
    """Kernels of a pass whose attention is over text and image together."""
    model = cast(models.DiffusionTransformer, made.model)
    text = float(model.text_tokens)
    yield made.attention()
    yield from made.layer("image: ", made.tokens - text, model.double_blocks, model.gated)
    yield from made.layer("text: ", text, model.double_blocks, model.gated)
    if model.single_blocks is not None:
        yield from made.layer("both: ", made.tokens, model.single_blocks, model.gated)


def _cross_pass(made: _Made) -> Iterator[Kernel]:
    """Kernels of a pass whose tokens attend to one another, and then to those of the text."""
    asked, model = made.asked, cast(models.CrossDiffusion, made.model)
    count, text = made.tokens * asked.batch * made.share, model.text_tokens * asked.batch
    yield made.attention()
    yield made.attention(seen=float(model.text_tokens))
    yield from made.layer("", made.tokens, model.blocks, gated=False)
    for name, rows, times in (
        ("text's query and output", count, 2),
        ("text's key and value", text, 2),
    ):
        product = asked.product(name, rows, model.inner, model.width, times * model.blocks)
        yield replace(product, lasting=True)


def _vectors(made: _Made) -> Iterator[Kernel]:
    """Passes over vectors between the products of a pass, fused or one by one."""
    model, tokens = made.model, made.tokens
    width, inner, hidden = model.width, model.inner, model.feed_forward_width
    if isinstance(model, models.CrossDiffusion):
        of = FUSED_WIDE if made.program.fused else ONE_BY_ONE_WIDE
        blocks = model.blocks
        yield from made.vectors("residuals and norms", of["block"], width, blocks, tokens)
        yield from made.vectors("norms of heads", of["head norm"], inner, 3 * blocks, tokens)
        yield from made.vectors("rotation", of["rotation"], inner, 2 * blocks, tokens)
        activation = (FUSED if made.program.fused else ONE_BY_ONE)["activation"]
        yield from made.vectors("activation", activation, hidden, blocks, tokens)
        return
    model = cast(models.DiffusionTransformer, model)
    of = FUSED if made.program.fused else ONE_BY_ONE
    double, single, blocks = model.double_blocks, model.single_blocks or 0, model.blocks
    sublayers = 2 * double + single  # a single block has one norm and one gate
    yield from made.vectors("norms", of["norm"], width, sublayers, tokens)
    yield from made.vectors("gates and residuals", of["gate"], width, sublayers, tokens)
    if model.head_norms:
        yield from made.vectors("norms of heads", of["head norm"], inner, 2 * blocks, tokens)
    if model.rotated:
        yield from made.vectors("rotation", of["rotation"], inner, 2 * blocks, tokens)
    yield from made.vectors("joins", of["join"], inner, 3 * double, tokens)
    yield from made.vectors("joins", of["join"], inner + hidden, single, tokens)
    activation = of["gated activation" if model.gated else "activation"]
    yield from made.vectors("activation", activation, hidden, blocks, tokens)


def _heads_normalised(made: _Made) -> float:
    """Heads of queries and keys that a device normalises in a pass, each a short row of its own.

    Norms over all heads of a token at once, as those of models with a cross attention, are none.
    """
    model = made.model
    if not model.head_norms or isinstance(model, models.CrossDiffusion):
        return 0.0
    count = made.tokens * made.asked.batch * made.share
    return float(2 * count * model.heads * model.blocks)


def _around(
    asked: _Asked, model: models.Diffusion, sides: list[int], frames: int | None
) -> Iterator[Kernel]:
    """The text's encoder before the passes, and the decoder of pixels after them."""
    if model.text_encoder is not None:
        weights = model.text_encoder.m_as("param")
        work = quantity(2.0 * weights * model.text_tokens * model.passes * asked.batch, "FLOP")
        rows = model.text_tokens * model.passes * asked.batch
        side = weights**0.5
        encoder = asked.product("encoder of the text", rows, side, side)
        yield replace(encoder, operations=work)
    channels, blocks = model.decoder_channels, model.decoder_blocks or 0
    spans = model.decoder_spans or 1
    across = model.reduction, (model.frames_joined or 1)
    kept = 1.0 if frames is None else diffusion.kept_frames(frames, across[1]).m_as("")
    places, before = sides[0] / across[0] * sides[1] / across[0], channels[0] if channels else 0
    for stage, out in enumerate(channels):
        count = places * 4**stage * asked.batch
        count *= kept if frames is None else min(frames, (kept - 1) * 2**stage + 1)
        for index in range(2 * blocks):
            into = before if index == 0 else out
            yield asked.convolution("decoder of pixels", count, into, out, spans)
        before = out


def _encoder(asked: _Asked, model: models.EncoderDecoder) -> Throughput:
    """The encoder's pass over a batch of sources, as long as it was made to read, or to write."""
    length = model.source_context or model.context
    inner = model.heads * model.head_width
    hidden = model.feed_forward_width
    width, layers = model.width, model.encoder_layers
    tokens = length * asked.batch

    written = SPOKEN if model.source_context and asked.written is None else asked.written or 0
    if written > model.context:
        raise InputError(
            f"{marked('written')} are at most {model.context} tokens of {model.name}; got {written}"
        )

    def launched() -> Iterator[Kernel]:
        yield asked.attention(length, inner, asked.batch, layers)
        yield from asked.layer("", tokens, width, inner, hidden, layers)
        if model.gated:
            yield asked.product("gate", tokens, hidden, width, layers)
        if written:
            yield from _decoder(asked, model, length, written)

    vectors = [*asked.vectors(tokens, width, hidden, layers)]
    notes = [f"A source fills the encoder's {length:g} places."]
    more: dict[str, Any] = {"without": "the decoder, which writes the text"}
    if written:
        vectors += asked.vectors(asked.batch, width, hidden, model.decoder_layers * written)
        kept = encoder_decoder.caches(model, length, written, asked.size) * asked.batch
        weights = asked.size * model.parameters.m_as("param")
        notes.append(
            f"The decoder writes {written} tokens of each source, one after the other for all of a"
            " batch, each of which reads the caches of its source in every layer."
        )
        more = {"without": "beams, sampling and the host's work", "holds": "weights and caches"}
        more["memory"] = (weights + kept).to("byte")
    more |= {"notes": tuple(notes), "vectors": tuple(vectors)}
    return asked.answer(model, "sources", launched(), **more)


def _decoder(
    asked: _Asked, model: models.EncoderDecoder, length: float, written: int
) -> Iterator[Kernel]:
    """Kernels that write so many tokens of each source of a batch, and what they read of it."""
    rows, width, hidden = asked.batch, model.width, model.feed_forward_width
    inner, layers = model.heads * model.head_width, model.decoder_layers
    steps = layers * written
    yield asked.product("cross key and value", length * rows, 2 * inner, width, layers)
    yield from asked.layer("decoder: ", rows, width, inner, hidden, steps)
    if model.gated:
        yield asked.product("decoder: gate", rows, hidden, width, steps)
    yield asked.product("cross query", rows, inner, width, steps)
    yield asked.product("cross output", rows, width, inner, steps)
    yield asked.product("vocabulary", rows, model.vocabulary, width, written)
    for name, seen in (("cross attention", length), ("self-attention", (written + 1) / 2)):
        work = quantity(4.0 * seen * inner * rows, "FLOP")
        moved = 2 * seen * inner * rows * TWO_BYTES
        yield Kernel(name, "attention", steps, work, moved, dtype=asked.dtype)


def _recommender(asked: _Asked, model: models.Recommender) -> Throughput:
    """Lookups, networks and the exchange of vectors, of a batch on each device."""
    size = formats.element_size("table", asked.dtype if asked.table is None else asked.table)
    tables = recommenders.table_memory(model, size)
    networks = (model.parameters - model.parts["tables"]).m_as("param") * asked.size
    sharers = _sharers(asked, model, size, networks)
    row = recommenders.row_traffic(model.embedding_width, size)

    def launched() -> Iterator[Kernel]:
        read = recommenders.sample_traffic(model, size) * asked.batch
        yield Kernel("lookups", "memory", 1, traffic=read)
        for part, inputs, outputs in model.layers:
            yield asked.product(part, asked.batch, outputs, inputs)

    pairs = constants.count_pairs_of_a_dlrm_sample
    notes = (
        f"A pair is one user with one item; a sample of MLPerf's benchmark holds {pairs} of them"
        " on average: divide by that before comparing with its results.",
        f"A pair reads {sum(model.lookups)} rows of {row} at random, none of them cached, at the"
        " full bandwidth of memory.",
    )
    sums = len(model.rows) * model.embedding_width * asked.batch
    return asked.answer(
        model,
        "pairs",
        launched(),
        devices=asked.devices or sharers,
        sharers=sharers,
        memory=(tables / sharers + networks).to("byte"),
        exchanged=sums * TWO_BYTES,
        notes=notes,
    )


def _sharers(asked: _Asked, model: models.Recommender, size: Quantity, networks: Quantity) -> int:
    """Devices that share tables: as few as hold them, and as divide those that there are evenly."""
    machine, tables = asked.machine, recommenders.table_memory(model, size)
    capacity = device_memory.room(machine.device)
    if networks >= capacity:
        raise InputError(f"{model.name}: its networks alone fill {machine.device.name}")
    rows = sum(model.rows), model.embedding_width, capacity - networks, size
    fewest = int(recommenders.devices_for_tables(*rows).m_as(""))
    if asked.devices is not None and asked.devices < fewest:
        raise InputError(
            f"{marked('devices')} must be a whole number from {fewest}, as many as hold the tables"
            " of"
            f" {model.name}, {tables}; got {asked.devices}"
        )
    count_given = asked.devices or fewest
    sharers = next(count for count in range(fewest, count_given + 1) if count_given % count == 0)
    if sharers > machine.domain and not machine.publishes("ports"):
        joined = machines.with_several(machine.device.key)
        larger = f"give {' or '.join(joined)}" if joined else "give a machine of more"
        raise InputError(
            f"{model.name}: its tables of {tables} need the memory of {fewest} devices, and"
            f" {machine.name} has {machine.domain}: {larger}, or a smaller `table`"
        )
    return sharers


ANSWERS: dict[type, Callable[..., Throughput]] = {
    Transformer: _transformer,
    models.Convolutional: _convolutional,
    models.Diffusion: _diffusion,
    models.EncoderDecoder: _encoder,
    models.Recommender: _recommender,
}

__all__ = ["Throughput", "of"]
