"""Software that runs models: what it hides, and the time that it takes itself, from its data file.

A few numbers of each: `step` and `sequence` are the host's own time for a step and for a sequence
of it, `request` is its time until a request gets there and `launch_experts` that of a mixture's
layer whose kernels no graph holds, `launch_latents` where its attention keeps latents, `sustained`
is the share of its kernels' best measured rates that it keeps in a whole program, and `hides_…` is
how much of messages it hides behind computation.
Where no publication gives a number it is fitted to a stated part of the published rows, and its
note says to which; the rates of hardware never are. `fitted_on` names the machine of these rows,
and `fitted_to` the one model of them where not all are taken: all other rows judge the numbers.

The host's time is a property of a version. What the data say of one, under `versions`, holds from
it on until the next of which they say something; a version before all of these has what the table
itself says, and one that is not named is the newest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from calc.catalog import kernel_shares
from calc.core.device import Device
from calc.core.errors import InputError
from calc.core.formatting import listed
from calc.core.names import resolve, spellings, squeezed
from calc.core.records import (
    DATA,
    INHERITED,
    Entry,
    Record,
    check_fields,
    read_records,
    read_toml,
    shared,
)

FILE = DATA / "software.toml"
TEXTS = (
    *("name", "written", "version", "attention", "mxfp4", "kv", "sums", "recipe", "loss"),
    "selective",
    *("fitted_on", "fitted_to", "usual_on"),
)
TITLES = {  # of what the data say in words
    "attention": "attention kernel",
    "sums": "program whose sums of slices it has",
    "mxfp4": "files of experts released in MXFP4",
    "kv": "format of caches beside small weights",
    "recipe": "states of training",
    "loss": "how the loss is computed",
    "selective": "what it calls selective recomputation",
    "fitted_on": "fitted to the rows of",
    "fitted_to": "of these, to the rows of the model",
    "usual_on": "serves where nothing is said, on devices called",
}
FIELDS = {  # numbers: what each is, its unit, and what it is where the data say nothing
    "step": ("its own time for a step", "s", 0.0),
    "step_experts": ("its own time for a step of a mixture of experts", "s", 0.0),
    "sequence": ("its own time for each sequence of a step", "s", 0.0),
    "hides_host": ("whether the host works ahead while devices compute", "", 0.0),
    "request": ("its own time until a request is known to the batch", "s", 0.0),
    "piece": ("tokens of a prompt that a stage computes at once, not those of a step", "", 0.0),
    "launch_experts": ("least time of a mixture's layer in a step that reads", "s", 0.0),
    "launch_latents": ("least time of such a layer whose attention keeps latents", "s", 0.0),
    "mixes": ("whether a step that reads prompts writes too", "", 1.0),
    "reserves": ("whether a sequence has the place of its whole answer from its start", "", 0.0),
    "head_row": ("its own time for each head of a token that it normalises", "s", 0.0),
    "fused": ("whether passes over vectors between products are fused", "", 1.0),
    "half_sums": ("whether products of FP16 add up in FP16", "", 0.0),
    "integers": ("whether products of small weights are of integers", "", 0.0),
    "sustained": ("share of the best rates that it keeps", "", 1.0),
    "sustained_experts": ("share of the best rates that it keeps, mixtures of experts", "", 1.0),
    "sustained_unfused": (
        "share of the best rates that it keeps, mixtures with sinks or states",
        "",
        1.0,
    ),
    "sustained_prompts": ("share of the best rates that it keeps, reading prompts", "", 1.0),
    "hides_tensor": ("share of TP's messages that it hides", "", 0.0),
    "hides_data": ("share of computation that DP's messages may hide behind", "", 1.0),
    "holds_gradients": ("whether devices hold whole gradients beside a pipeline", "", 0.0),
    "host_share": ("share of the bandwidth of a host's memory that it reaches", "", 1.0),
    "link_share": ("share of the bandwidth of a host's link that it reaches", "", 1.0),
    "found_power": (
        "power of the share of experts in memory by which they are found there",
        "",
        1.0,
    ),
    "few_rows": ("share of the peak of products of few rows, on NVIDIA's devices", "", 1.0),
    "few_rows_elsewhere": ("share of the peak of products of few rows, on others", "", 1.0),
    "attends_on_amd": ("share of the peak of its attention over prompts, AMD's devices", "", 1.0),
    "memory_share": ("share of a device's memory that it fills", "", 0.9),
}
TITLES |= {name: title for name, (title, _, _) in FIELDS.items()}
TITLED = {name: name for name in FIELDS}
HALVES = ("fp16", "bf16")
NO_KERNEL = "of which no kernel was measured"
"""What is said of a program, or of a version, whose rates are those of others."""


@dataclass(frozen=True, eq=False)
class Software(Entry):
    """One program, or one family of versions of it."""

    key: str
    name: str
    written: str = ""
    """A pattern of how sources write its name and version."""
    attention: str = ""
    """The attention kernel that it calls, where that is not the best of the day."""
    mxfp4: str = ""
    """The files that it reads of models whose experts are released in MXFP4, where it has own."""
    kv: str = "bf16"
    """The format of its caches where weights have one byte or less, and nothing is said."""
    recipe: str = "adam-mixed"
    """What it keeps of each parameter that it trains, of `calc.training.RECIPES`."""
    loss: str = "in place"
    """How it computes the loss, of `calc.layouts.LOSSES`."""
    selective: str = "selective"
    """What it does where it is told to recompute selectively."""
    sums: str = ""
    """The program whose kernels add up what slices have, where its own were not measured."""
    fitted_on: str = ""
    """The machine whose published rows its numbers are fitted to, or OTHERS."""
    fitted_to: str = ""
    """The model of these rows, where not all are taken."""
    usual_on: str = ""
    """A pattern of the devices' names on which it serves where nothing is said."""
    records: dict[str, Record] = field(default_factory=dict, repr=False)
    version: str = ""
    """Version as its makers number it; the newest that was measured where nothing is said."""
    changes: dict[str, dict[str, Record]] = field(default_factory=dict, repr=False)
    """What holds from each version on, the oldest first: "" before all that the data name."""

    def of_version(self, version: str) -> Software:
        """Return the program in that version, the newest where none is named.

        >>> [get("vllm").of_version(one).hides_host for one in ("0.9.2", "0.13", "0.14.1", "")]
        [0.0, 0.0, 1.0, 1.0]
        """
        asked = kernel_shares.number_of(version)
        records: dict[str, Record] = {}
        for since, changed in self.changes.items():
            if not asked or kernel_shares.number_of(since) <= asked:
                records |= changed
        return replace(self, version=version, records=records if self.changes else self.records)

    def __hash__(self) -> int:
        return hash((self.key, self.version))

    def title(self) -> str:
        """Return the program's name with its version, where one is stated."""
        return f"{self.name} {self.version}".rstrip() if self.key else "no software's own time"

    def measured(self, versions: Mapping[str, Collection[str]]) -> str:
        """Return the name with the versions whose measured kernels count, by program.

        >>> get("vllm 0.3").measured({"vllm": ["0.24.0"], "sglang": ["0.5.9"]})
        'vLLM 0.3, of which no kernel was measured: those of vLLM 0.24.0 and SGLang 0.5.9'
        >>> get("vllm 0.24").measured({"vllm": ["0.24.0", "0.19.0"]})
        'vLLM 0.24, and where it was not measured, kernels of vLLM 0.19.0'
        >>> get("vllm").measured({})
        'vLLM, of which no kernel was measured'
        """
        if not self.key:
            return self.title()
        stated = kernel_shares.number_of(self.version)
        versions_of_it = sorted(versions.get(self.key, ()), key=kernel_shares.number_of)
        newest = versions_of_it[-1:] if not self.version else versions_of_it
        same = [one for one in newest if kernel_shares.number_of(one)[: len(stated)] == stated]
        others = [
            f"{get(key).name} {version}"
            for key in (self.key, *(key for key in versions if key != self.key))
            for version in sorted(versions.get(key, ()), key=kernel_shares.number_of, reverse=True)
            if key != self.key or version not in same
        ]
        borrowed = listed(others) if others else ""
        if same:
            name = self.title() if self.version else f"{self.name} {same[0]}"
            rest = f", and where it was not measured, kernels of {borrowed}" if others else ""
            return f"{name}{rest}"
        rest = f": those of {borrowed}" if others else ""
        return f"{self.title()}, {NO_KERNEL}{rest}"

    def products_faster(self, device: Device, dtype: str, narrow: bool = False) -> float:
        """Return the factor by which its products are faster than with FP32 sums on a device.

        Those of small weights may be of integers, which tensor cores multiply twice as fast as FP16
        that adds up in FP16, whatever they do with FP32 sums.

        >>> from calc import hardware
        >>> get("llama-cpp").products_faster(hardware.get("rtx-3090"), "fp16")
        2.0
        """
        short = self.integers if narrow else self.half_sums
        return device.half_sums if short and dtype in HALVES else 1.0

    def __getattr__(self, name: str) -> float:
        if name not in FIELDS:
            raise AttributeError(name)
        _, unit, default = FIELDS[name]
        record = self.records.get(name)
        return default if record is None else float(record.quantity.m_as(unit))


OTHERS = "others"
"""Instead of a machine: the numbers are what other programs usually keep."""
VERSION = r"\d+(\.\d+)+[^\s,;()]*"

NO_SOFTWARE = "none"
"""What is asked for where kernels and messages alone are meant, without a program's own time."""
UNKNOWN = Software("", "software")


@lru_cache(maxsize=2**10)
def software_of(written: str, other: str = "other") -> Software:
    """The software that a source names in its own way, in the version that it states.

    One that is not known keeps of its kernels' rates what others usually do.

    >>> software_of("vLLM (version not stated)").key, software_of("abacus 1.0").key
    ('vllm', 'other')
    >>> software_of("TensorRT-LLM v0.17").version
    '0.17'
    """
    for software in _all().values():
        if software.written and re.search(software.written, written, re.IGNORECASE):
            numbered = re.search(VERSION, written)
            return software.of_version(numbered[0]) if numbered else software
    return _all()[other]


def meant(asked: str | None, device: str, measured_as: str, name: str) -> Software:
    """Return the software that a caller names, or the default of a device; "none" is none.

    The default program is that whose `usual_on` in `calc/data/software.toml` has the device. The
    default version is the newest that was measured on it, or on the device whose measurements hold
    for it too.

    >>> from calc import hardware
    >>> h100, mac = hardware.get("h100"), hardware.get("apple-m3-ultra")
    >>> for given, on in ((None, h100), ("vllm", h100), ("vllm 0.19", h100), (None, mac)):
    ...     print(meant(given, on.key, on.measured_as, on.name).title())
    vLLM 0.24.0
    vLLM 0.24.0
    vLLM 0.19
    llama.cpp
    >>> meant("none", h100.key, h100.measured_as, h100.name) is UNKNOWN
    True
    """
    if isinstance(asked, str) and asked == NO_SOFTWARE:
        return UNKNOWN
    candidates = (software for software in _all().values() if software.usual_on)
    program = (
        next(software for software in candidates if re.match(software.usual_on, name))
        if asked is None
        else get(asked)
    )
    measured = (kernel_shares.newest(key, program.key) for key in (device, measured_as))
    version = program.version or next(filter(None, measured), "")
    return program.of_version(version) if version else program


def names() -> tuple[str, ...]:
    """The keys of all software.

    >>> "vllm" in names()
    True
    """
    return tuple(_all())


def get(key: str) -> Software:
    """The software of that key or name, in the version that stands after it, or of a .toml file.

    >>> get("vllm").name, get("TensorRT-LLM").key, get("vllm 0.19").version
    ('vLLM', 'tensorrt-llm', '0.19')
    """
    if isinstance(key, str) and key.endswith(".toml"):
        tables = load(key)
        if len(tables) != 1:
            raise InputError(f"{key}: a file of software has one table; it has {len(tables)}")
        return next(iter(tables.values()))
    name, _, version = key.strip().rpartition(" ") if isinstance(key, str) else ("", "", "")
    if name and (key_of(name) or "") in _all() and re.search(r"\d|dev", version):
        return get(name).of_version(version.removeprefix("v"))
    return _all()[resolve("software", key, _spellings())]


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no software has it.

    >>> key_of("TensorRT-LLM"), key_of("abacus")
    ('tensorrt-llm', None)
    """
    return _spellings().get(squeezed(name))


def _spellings() -> dict[str, str]:
    return spellings({key: [software.name] for key, software in _all().items()})


@cache
def _all() -> dict[str, Software]:
    return {key: shared(software) for key, software in load(FILE).items()}


def load(path: Path | str) -> dict[str, Software]:
    """Every software of a file, checked.

    >>> load(FILE)["vllm"].fitted_on
    'dgx-h100'
    """
    return {key: of_table(key, table, path) for key, table in read_toml(path).items()}


def of_table(key: str, table: dict[str, Any], path: Path | str) -> Software:
    """The software that a table of such a file says, checked.

    >>> of_table("mine", {"name": "Mine"}, "mine.toml").name
    'Mine'
    """
    check_fields(f"{path}: {key}", table, (*TEXTS, *INHERITED, *FIELDS, "versions"))
    texts = {name: table[name] for name in TEXTS if name in table}
    changes = {"": read_records(key, table, TITLED, path)}
    for since, said in table.get("versions", {}).items():
        owner = f"{key}.versions.{since}"
        check_fields(f"{path}: {owner}", said, (*INHERITED, *FIELDS))
        whole = {name: table[name] for name in ("name", *INHERITED)} | said
        changes[since] = read_records(owner, whole, TITLED, path)
    return Software(key=key, changes=changes, **texts).of_version("")
