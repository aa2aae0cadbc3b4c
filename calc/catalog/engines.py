"""Memory rules and start options of inference engines, by version.

An engine that profiles runs a step of its largest size, and what that leaves of its share of the
memory is for caches. How large the step is and what it takes beside the model's own activations
differs from version to version, and is read in the engine's source and in its logs.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from statistics import median
from string import Template
from typing import Any

from calc.catalog import hardware, kernel_shares
from calc.catalog.hardware import Accelerator
from calc.core.errors import InputError, abbreviated
from calc.core.records import DATA, INHERITED, Entry, Record, check_fields, read_record, read_toml
from calc.core.units import Quantity, quantity

FILE = DATA / "engines.toml"
TEXTS = ("name", "written", "rule", "fraction", "read_to")
NUMBERS = (
    *("block", "latent_block", "large_memory"),
    *("weights_error", "step_error", "outside_error", "states_error"),
    *("padded_error", "named_error", "recipe_error", "counted_error"),
    *("tokens", "tokens_large", "sequences", "sequences_large"),
    *("fewest_sequences", "most_sequences", "per_longest"),
    *("reserved", "reserved_token", "reserved_slice", "reserved_sequence", "reserved_large"),
)
TABLES = "versions", "serve", "classes"
OF_A_VERSION = (
    *("utilization", "sampler", "sampler_rows", "workspace", "stream", "constant"),
    *("alone", "together", "each", "apart", "state_blocks", "groups_printed"),
    *("graphs", "graphs_counted", "error"),
)
SERVE = ("since", "read_to", "read_in", "source", "checked", "later")
OPTIONS = (
    *(
        "command",
        "tensor",
        "stages",
        "attention",
        "experts",
        "copies",
        "copies_dense",
        "memory",
        "sequences",
        "tokens",
    ),
    *("length", "weights_fp8", "kv_fp8", "draft", "prefill", "decode"),
)
VERSION = re.compile(r"\d+(?:\.\d+)*")
MANY_SLICES = 4  # from which on SGLang captures graphs of more sequences
LARGE = quantity("60 GiB")  # beyond which it leaves its `reserved_large` at least
UNKNOWN_STEP = 8192  # tokens of a program whose limits are not in the data: as most engines
SMALL = "a100"  # devices that vLLM takes for small whatever their memory, by how keys begin


@dataclass(frozen=True, eq=False)
class Engine(Entry):
    """One version of an engine: its rules, each number with its source."""

    key: str
    name: str
    rule: str
    """How it shares out memory: "profiled", "static" or "free"."""
    fraction: str
    """The engine's option for its share of the memory."""
    version: str
    """The version that is meant; the last whose logs were read where none was named."""
    read_to: str
    records: dict[str, Record] = field(repr=False)
    counted_as: str = ""
    """The first version that the data have, of one that came before it."""
    classes: tuple[tuple[float, ...], ...] = ()
    """Classes of devices by their memory in GiB: tokens of a step, and sequences of its graphs."""

    def __getitem__(self, name: str) -> Quantity:
        return self.records[name].quantity

    def __contains__(self, name: str) -> bool:
        return name in self.records

    @property
    def title(self) -> str:
        """Name and version of the engine."""
        return f"{self.name} {self.version}".strip()

    @property
    def beyond_logs(self) -> bool:
        """True if no log of so new a version was read."""
        return _numbers(self.version) > _numbers(self.read_to)

    def largest_step(self, device: Accelerator, memory: Quantity) -> tuple[int, int]:
        """Tokens and sequences of its largest step, where nothing is set."""
        if self.classes:
            return int(self._class(device)[1]), int(self["sequences"].m_as(""))
        large = "large_memory" in self and memory >= self["large_memory"]
        which = "_large" if large and not device.key.startswith(SMALL) else ""
        tokens, sequences = (
            self[f"{name}{which}" if f"{name}{which}" in self else name]
            for name in ("tokens", "sequences")
        )
        return int(tokens.m_as("")), int(sequences.m_as(""))

    def share(self, device: Accelerator, slices: int, tokens: int) -> float:
        """Return its share of the memory where none is set; SGLang leaves what it thinks it needs.

        >>> from calc import hardware
        >>> sglang = rules("sglang")
        >>> sglang.share(hardware.get("h100"), 1, 8192), sglang.share(hardware.get("h100"), 8, 8192)
        (0.836, 0.819)
        """
        if "utilization" in self:
            return float(self["utilization"].m_as(""))
        all_of_it = float(device.memory_capacity.m_as("MiB"))
        graphs = self._class(device)[2 if slices < MANY_SLICES else 3]
        counts = {"": 1, "_token": tokens, "_slice": slices, "_sequence": graphs}
        left = sum(n * float(self[f"reserved{name}"].m_as("MiB")) for name, n in counts.items())
        if device.memory_capacity > LARGE:
            left = max(left, float(self["reserved_large"].m_as("MiB")))
        return round((all_of_it - left) / all_of_it, 3)

    def _class(self, device: Accelerator) -> tuple[float, ...]:
        memory = device.memory_capacity.m_as("GiB")
        return next(each for each in self.classes if memory < each[0])


def get(written: str) -> Engine:
    """The engine of a name, with the version that stands behind it.

    >>> get("vllm").title, get("vLLM v0.11.0").title
    ('vLLM 0.19', 'vLLM 0.11.0')
    """
    if (named := _named(written)) is not None:
        key, table, version = named
        return _of_version(key, table, version or table["read_to"])
    listing = ", ".join(table["name"] for table in _tables().values())
    raise InputError(
        f"how {abbreviated(written)} shares out a device's memory is not published in numbers that"
        f" follow from a model's shape: calc has the rules of {listing}"
    )


@cache
def rules(key: str, version: str = "") -> Engine | None:
    """The rules of a program by its key; None where none are published.

    Of a version before the first that the data have, they are that one's.

    >>> rules("vllm", "0.6").counted_as, rules("llama-cpp")
    ('0.10', None)
    """
    table = _tables().get(key)
    if table is None:
        return None
    return _of_version(key, table, version or table["read_to"])


@lru_cache(maxsize=256)
def largest_step(key: str, device: Accelerator) -> tuple[int, float]:
    """Return tokens and sequences of a step at most by a program's own server on a device.

    >>> from calc import hardware
    >>> largest_step("vllm", hardware.get("l40s")), largest_step("mlx", hardware.get("apple-m4"))
    ((2048, 256), (8192, inf))
    """
    if key not in names():
        return UNKNOWN_STEP, math.inf
    return get(key).largest_step(device, visible(device))


def names() -> tuple[str, ...]:
    """The keys of all engines.

    >>> names()
    ('vllm', 'sglang', 'tensorrt-llm')
    """
    return tuple(_tables())


@dataclass(frozen=True)
class Starting:
    """Start options of one version of an engine, as words with $names to be put in."""

    name: str
    version: str
    read_in: str
    options: dict[str, str]
    later: dict[str, str]
    """Options that only a later version has, with the first that does."""

    def words(self, option: str, values: dict[str, object]) -> list[str]:
        """The words of an option with these values."""
        return [Template(word).substitute(values) for word in self.options[option].split()]

    def has(self, option: str, what: str) -> None:
        """Refuse what is to be started where the command line has no option for it."""
        if option not in self.options:
            since = f" before {self.later[option]}" if option in self.later else ""
            raise InputError(f"{self.name} {self.version} has no option for {what}{since}")


def starting(written: str) -> Starting:
    """Return the start options of an engine: of the version named, or the last that was read.

    >>> vllm = starting("vllm")
    >>> vllm.version, vllm.words("tensor", {"tensor": 8})
    ('0.33', ['--tensor-parallel-size', '8'])
    """
    if (named := _named(written)) is None:
        names_read = ", ".join(table["name"] for table in _tables().values())
        raise InputError(
            f"the options of an engine {abbreviated(written)} are not in the data: those of"
            f" {names_read} are"
        )
    _, table, version = named
    serve = table["serve"]
    first, last = (tuple(map(int, serve[name].split("."))) for name in ("since", "read_to"))
    asked = tuple(map(int, version.split("."))) if version else last
    if not (first <= asked and asked[: len(last)] <= last):
        raise InputError(
            f"the options of {table['name']} {version} are not in the data: those of"
            f" {serve['since']} to {serve['read_to']} were read"
        )
    later = {
        option: since
        for option, since in serve.get("later", {}).items()
        if asked < tuple(map(int, since.split(".")))
    }
    options = {name: serve[name] for name in OPTIONS if name in serve and name not in later}
    return Starting(table["name"], version or serve["read_to"], serve["read_in"], options, later)


def starting_as(written: str, planned: str) -> Starting:
    """Return the start options of an engine: of the version named, or else of that planned for.

    >>> starting_as("vllm", "vLLM 0.24.0").version, starting_as("sglang", "vLLM 0.24.0").version
    ('0.24.0', '0.5.23')
    """
    (mine, other) = map(_named, (written, planned))
    if mine and other and mine[0] == other[0] and not mine[2]:
        with suppress(InputError):  # of a version whose options were not read, the last is taken
            return starting(planned)
    return starting(written)


def _named(written: str) -> tuple[str, dict[str, Any], str] | None:
    """Key and table of the engine that is meant, and its version where one is named."""
    for key, table in _tables().items():
        if isinstance(written, str) and re.search(table["written"], written, re.IGNORECASE):
            match = VERSION.search(written)
            return key, table, match[0] if match else ""
    return None


def visible(device: Accelerator) -> Quantity:
    """Return the memory of a device that programs find as they start.

    >>> print(visible(hardware.get("h100")), visible(hardware.get("rtx-4090")))
    79.19 GiB 23.61 GiB
    """
    records = _visible()
    if (record := records.get(device.key)) is not None:
        return record.quantity
    return device.memory_capacity * visible_share()


def visible_by(device: Accelerator) -> str:
    """Return how it is known what memory programs find on a device; "" where it is not known.

    >>> from calc import hardware
    >>> visible_by(hardware.get("h100")), visible_by(hardware.get("a10g"))
    ('by their logs', 'by an account of it')
    """
    if (record := _visible().get(device.key)) is None:
        return ""
    return "by their logs" if record.provenance.kind == "measured" else "by an account of it"


@cache
def visible_share() -> float:
    """The median share of their memory that programs find on devices whose logs were read.

    >>> 0.9 < visible_share() < 1.0
    True
    """
    return median(_shares())


def visible_spread() -> float:
    """Return the largest distance of a single device's share of visible memory from the usual one.

    >>> 0.0 < visible_spread() < 0.1
    True
    """
    return max(abs(share - visible_share()) for share in _shares())


def _shares() -> list[float]:
    return [
        float((record.quantity / hardware.get(key).memory_capacity).m_as(""))
        for key, record in _visible().items()
        if record.provenance.kind == "measured"
    ]


def _of_version(key: str, table: dict[str, Any], version: str) -> Engine:
    versions = {_numbers(number): numbers for number, numbers in table["versions"].items()}
    asked = _numbers(version)
    before = [number for number in versions if number <= asked] if asked else [*versions]
    first = min(table["versions"], key=_numbers)
    counted = max(before) if before else _numbers(first)
    origin = {name: table[name] for name in INHERITED}
    numbers = {name: table[name] for name in NUMBERS if name in table}
    for number in sorted(versions):
        numbers |= versions[number] if number <= counted else {}
    records = {
        name: read_record(number, f"{key}.{name}", FILE, origin | {"title": f"{name} of {key}"})
        for name, number in numbers.items()
    }
    name, rule, fraction = (table[name] for name in ("name", "rule", "fraction"))
    older = "" if before else first
    classes = tuple(map(tuple, table.get("classes", ())))
    return Engine(key, name, rule, fraction, version, table["read_to"], records, older, classes)


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version, by which rules differ."""
    return kernel_shares.number_of(version)[:2]


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return load(FILE)


def load(path: Path | str) -> dict[str, dict[str, Any]]:
    """Every engine of a file as a table, its fields checked.

    >>> load(FILE)["vllm"]["rule"]
    'profiled'
    """
    tables = {key: table for key, table in read_toml(path).items() if key != "visible"}
    for key, table in tables.items():
        check_fields(f"{path}: {key}", table, (*TEXTS, *INHERITED, *NUMBERS, *TABLES))
        check_fields(f"{path}: {key} serve", table["serve"], (*SERVE, *OPTIONS))
        for version, numbers in table["versions"].items():
            check_fields(f"{path}: {key} {version}", numbers, OF_A_VERSION)
    return tables


@cache
def _visible() -> dict[str, Record]:
    table = read_toml(FILE)["visible"]
    origin = {name: table[name] for name in INHERITED}
    return {
        key: read_record(number, f"visible.{key}", FILE, origin)
        for key, number in table.items()
        if key not in INHERITED
    }
