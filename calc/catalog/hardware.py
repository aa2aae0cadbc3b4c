"""Accelerators, field by field from `data/accelerators.toml`: `calc.hardware.H100.peak("fp16")`.

Peaks are dense rates of the matrix units, or of the vector units where a device has no others;
sparse peaks and vector peaks are asked for by name. A data type that a device does not have is an
error that lists those it has, never another type's rate, and says whether it is not supported or
not published. Devices that are announced are no part of `names`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

from calc.core.docstrings import public_names
from calc.core.errors import InputError, abbreviated
from calc.core.files import read_text
from calc.core.formatting import html_table
from calc.core.law import law
from calc.core.names import resolve, spellings, squeezed
from calc.core.records import (
    DATA,
    INHERITED,
    OWN_FILE,
    Count,
    Published,
    Record,
    Recorded,
    attribute,
    check_each_way,
    check_fields,
    check_positive,
    one_of_file,
    parse_toml,
    read_file,
    read_record,
    read_tables,
    shared,
)
from calc.core.units import Quantity, QuantityLike, quantity

MEASURED_IN = {  # titles, and units: the data file's own may be any of the same dimension
    "memory_bandwidth": ("memory bandwidth", "byte/s"),
    "memory_capacity": ("memory capacity", "byte"),
    "on_chip_memory": ("on-chip memory", "byte"),
    "link_bandwidth": ("link bandwidth, each way", "byte/s"),
    "host_link": ("bandwidth to the host, each way", "byte/s"),
    "units": ("units that work side by side", ""),
    "clock": ("clock of these units, at most", "1/s"),
    "registers": ("register file of each unit", "byte"),
    "shared_memory": ("shared memory of each unit", "byte"),
    "tensor_memory": ("tensor memory of each unit", "byte"),
    "special_functions": ("rate of special functions, such as exponentials", "FLOP/s"),
    "tdp": ("thermal design power", "W"),
}
FIELDS = {name: title for name, (title, _) in MEASURED_IN.items()}
PEAKS = {
    "peak": "dense peak",
    "sparse_peak": "peak with 2:4 sparsity",
    "vector_peak": "peak of the vector units",
    "half_sum_peak": "dense peak with sums in FP16",
}
UNITS = {name: unit for name, (_, unit) in MEASURED_IN.items()} | dict.fromkeys(PEAKS, "FLOP/s")
USUAL_DTYPES = ("bf16", "fp16", "fp32")
DTYPES = {  # what a device may have a rate for, and the operations that it is counted in
    **dict.fromkeys(("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4"), "FLOP"),
    **dict.fromkeys(("int32", "int16", "int8", "int4"), "OP"),
}
DATA_FILE = DATA / "accelerators.toml"
INSIDE = ("units", "clock", "registers", "shared_memory", "tensor_memory", "special_functions")
# Of a device without links; of one that is not taken apart; of one whose host stands in a machine.
MAY_BE_LEFT_OUT = ("link_bandwidth", *INSIDE, "host_link")
ONE_WAY = ("link_bandwidth", "host_link")
SURPASSED = ("memory_bandwidth", "memory_capacity", "link_bandwidth", "clock")
"""What a device with more of everything has no less of, beside its peaks."""
NO_RATE = quantity(0, "FLOP/s")
ANNOUNCED = "announced"  # the kind of a device that nobody can have yet
# FLOP/byte: far to either side of all that has been built, where only a wrong prefix leads.
RIDGE_POINTS = (0.05, 1e5)


@law
def peak_from_clock(
    clock: Annotated[QuantityLike, "1/s", "f"],
    units: Annotated[QuantityLike, "", "n"],
    operations: Annotated[QuantityLike, "FLOP/cycle", "o"],
) -> Annotated[Quantity, "FLOP/s"]:
    """Peak rate of a chip: what each of its units does in a cycle, times the cycles of a second.

    Equation: R_peak = f · n · o

    Assumes that every unit is busy in every cycle, and the clock that the datasheet counts with; a
    multiply-add is two operations.

    Source: nvidia-h100-whitepaper

    >>> print(peak_from_clock("1.83 GHz", 132, "4096 FLOP/cycle"))
    989.4 TFLOP/s

    Parameters
    ----------
    clock
        cycles of the clock in a second
    units
        units that do them: cores, multiprocessors, arrays
    operations
        operations of a unit in a cycle
    """
    return clock * units * operations


@dataclass(frozen=True, eq=False)
class Accelerator(Recorded):
    """One device: what its data file says, and the roofline that follows from it."""

    key: str
    name: str
    year: int
    records: dict[str, Record] = field(repr=False)
    peaks: dict[str, dict[str, Record]] = field(repr=False)
    measurement: dict[str, Any] = field(repr=False)
    unsupported: tuple[str, ...] = ()
    """Data types that its matrix units do not have, where the data say so."""
    announced: bool = False
    """Whether nobody can have it yet: what its vendor tells of it may still change."""
    measured_as: str = ""
    """The device most like it whose kernels were measured, where its own were not."""

    memory_bandwidth = Published()
    """Bandwidth of the device memory (HBM, or what stands in its place)."""
    memory_capacity = Published()
    """Capacity of the device memory, in the unit that is true of it: GB or GiB."""
    on_chip_memory = Published()
    """The last level of memory on the chip: its largest cache, or software-managed SRAM."""
    link_bandwidth = Published()
    """All links to other devices, one way; what is sold as a sum of both ways is twice this."""

    @property
    def units(self) -> int:
        """Number of units that work side by side: streaming multiprocessors, compute units, cores.

        >>> print(get("h100").units)
        132
        """
        return Count.from_quantity(self._read("units"))

    @property
    def clock(self) -> Quantity:
        """Clock of its units, at most: that of the matrix units where they have one of their own.

        >>> print(get("h100").clock.to("GHz"))
        1.83 GHz
        """
        return self._read("clock")

    @property
    def registers(self) -> Quantity:
        """Register file of each unit.

        >>> print(get("h100").registers)
        256 KiB
        """
        return self._read("registers")

    @property
    def shared_memory(self) -> Quantity:
        """Memory of each unit that a program manages: shared memory, a local data share.

        >>> print(get("mi355x").shared_memory)
        160 KiB
        """
        return self._read("shared_memory")

    @property
    def tensor_memory(self) -> Quantity:
        """Memory of each unit in which its matrix units add up, where that is not its registers.

        >>> print(get("b200").tensor_memory)
        256 KiB
        """
        return self._read("tensor_memory")

    @property
    def special_functions(self) -> Quantity:
        """Rate of special functions: the exponentials of a softmax, which bound attention.

        >>> print(get("h100").special_functions)
        3.9 TFLOP/s
        """
        return self._read("special_functions")

    host_link = Published()
    """Bandwidth to the host, each way, of a device that stands in no machine of the data."""
    tdp = Published()
    """Thermal design power."""

    def peak(self, dtype: str) -> Quantity:
        """Dense rate of the matrix units for a data type such as "fp16", in any spelling."""
        return self._rate("peak", dtype)

    def sparse_peak(self, dtype: str) -> Quantity:
        """Advertised rate with 2:4 structured sparsity: half of its operations are on zeros."""
        return self._rate("sparse_peak", dtype)

    def vector_peak(self, dtype: str) -> Quantity:
        """Rate of the vector units, which do the rest: activations, norms, reductions."""
        return self._rate("vector_peak", dtype)

    @property
    def half_sums(self) -> float:
        """Factor by which FP16 products with FP16 sums are faster than with FP32 sums.

        >>> get("rtx-4090").half_sums, get("rtx-a6000").half_sums
        (2.0, 1.0)
        """
        if "fp16" not in self.peaks["half_sum_peak"]:
            return 1.0
        return round(float((self._rate("half_sum_peak", "fp16") / self.peak("fp16")).m_as("")), 2)

    def outdoes(self, other: Accelerator, dtype: str) -> bool:
        """Return whether it has no less of anything than an older or equal one of its vendor.

        That is its rates in a format and in 16 bits, with sums of 16 bits too, the bandwidth and
        capacity of its memory, its links and its clock, as far as the other publishes them.

        >>> get("h200").outdoes(get("h100"), "fp8"), get("h100").outdoes(get("h200"), "fp8")
        (True, False)
        """
        formats = {dtype, other.usual_dtype}
        if self is other or self.vendor != other.vendor or self.year < other.year:
            return False
        if not formats <= {*self.dtypes} & {*other.dtypes}:
            return False
        if other.half_sums > 1 and not self._rate_of_half_sums >= other._rate_of_half_sums:
            return False
        amounts = ((self._amount(name), other._amount(name)) for name in SURPASSED)
        return all(self.peak(one) >= other.peak(one) for one in formats) and all(
            its is None or (mine is not None and mine >= its) for mine, its in amounts
        )

    @cached_property
    def _rate_of_half_sums(self) -> Quantity:
        """Rate of FP16 products that add up in FP16; none without a rate of FP16."""
        if "fp16" not in self.dtypes:
            return NO_RATE
        return self.half_sums * self.peak("fp16")

    def _amount(self, name: str) -> Quantity | None:
        record = self.records.get(name)
        return record.quantity if record is not None and record.is_published else None

    @property
    def vendor(self) -> str:
        """The first word of its name.

        >>> get("mi355x").vendor
        'AMD'
        """
        return self.name.partition(" ")[0]

    def ridge_point(self, dtype: str) -> Quantity:
        """Intensity from which the matrix units, not memory, are the bound.

        >>> print(get("h100").ridge_point("fp16"))
        295.2 FLOP/byte
        """
        return (self.peak(dtype) / self.memory_bandwidth).to(f"{DTYPES[dtype_of(dtype)]}/byte")

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The data types with a dense peak that is published, or estimated."""
        return tuple(dtype for dtype, rate in self.peaks["peak"].items() if rate.is_published)

    def is_rated(self, dtype: str) -> bool:
        """Return False where a device computes in a format and publishes no peak of any.

        Of one whose data name no format at all, nothing is known to be missing.

        >>> get("h100").is_rated("fp4"), get("a10g").is_rated("bf16"), get("a10g").is_rated("fp8")
        (True, False, True)
        """
        named, key = self.peaks["peak"], dtype_of(dtype)
        has_it = key in named if named else key not in self.unsupported
        return bool(self.dtypes) or not has_it

    @property
    def usual_dtype(self) -> str:
        """Format of products where none is stated: BF16 if the device has it.

        Where the vector units are slower in 16 bits than in 32, programs compute in these.

        >>> get("h100").usual_dtype, get("v100").usual_dtype, get("p40").usual_dtype
        ('bf16', 'fp16', 'fp32')
        """
        narrowest = next((dtype for dtype in USUAL_DTYPES if dtype in self.dtypes), USUAL_DTYPES[0])
        widest = USUAL_DTYPES[-1]
        if {narrowest, widest} <= {*self.dtypes} and self.peak(widest) > self.peak(narrowest):
            return widest
        return narrowest

    def instead(self, unit: str) -> str:
        """Return what to write where a law is given the device in place of one of its numbers."""
        number = self.number_in(unit)
        return self.name + (f": give its .{number}" if number else "")

    def number_in(self, unit: str) -> str:
        """Return how Python asks for the number that has this unit, or "" where none has."""
        dtype = "bf16" if "bf16" in self.peaks["peak"] else next(iter(self.peaks["peak"]), "fp32")
        numbers = {
            "FLOP/s": f'peak("{dtype}")',
            "FLOP/byte": f'ridge_point("{dtype}")',
            "byte/s": "memory_bandwidth or .link_bandwidth",
            "byte": "memory_capacity",
            "W": "tdp",
        }
        return numbers.get(unit, "")

    def all_records(self) -> list[Record]:
        """Every record of the device, in the order of its data file."""
        return [
            *self.records.values(),
            *(record for rates in self.peaks.values() for record in rates.values()),
        ]

    def _repr_html_(self) -> str:
        """Return the device's data as an HTML table, with the source of each value."""
        records = {FIELDS[name]: record for name, record in self.records.items()}
        for table, rates in self.peaks.items():
            records |= {f"{PEAKS[table]}, {dtype.upper()}": rates[dtype] for dtype in rates}
        rows = [("", "value", "source")]
        for title, record in records.items():
            value = "unpublished" if record.published is None else str(record.published)
            rows.append((title, value, record.provenance.cited))
        return html_table([f"{self.name} ({self.year})"], rows)

    def _lacks(self, name: str) -> str:
        why = "no links to other devices" if name == "link_bandwidth" else "none in its data"
        return f"{self.name} has no {FIELDS[name]}: it has {why}"

    def _rate(self, table: str, dtype: str) -> Quantity:
        rates = self.peaks[table]
        if (key := dtype_of(dtype)) not in rates:
            has = f"it has {', '.join(rates).upper()}" if rates else "it has none"
            wanted = key.upper() if key in DTYPES else abbreviated(dtype)
            why = ""
            if key in self.unsupported and table == "peak":
                why = f", and its matrix units do not support {wanted}"
            elif key in DTYPES:
                why = f", and no rate of {wanted} is published in its sources"
            raise InputError(f"{self.name} has no {PEAKS[table]} for {wanted}; {has}{why}")
        return rates[key].quantity


@lru_cache(maxsize=2**10)
def outdone(device: Accelerator, dtype: str, among: frozenset[str]) -> tuple[Accelerator, ...]:
    """The devices of these keys that one outdoes in a format; others are not read.

    >>> [other.key for other in outdone(get("a100"), "bf16", frozenset(names()))]
    ['a100-40gb']
    """
    older = (
        get(key)
        for key, (vendor, year) in _vendors_and_years().items()
        if key in among and vendor == device.vendor and year <= device.year
    )
    return tuple(other for other in older if device.outdoes(other, dtype))


@lru_cache(maxsize=2**10)
def outdoing(device: Accelerator, dtype: str, among: frozenset[str]) -> tuple[Accelerator, ...]:
    """The devices of these keys that outdo one in a format; others are not read.

    >>> [other.key for other in outdoing(get("h100"), "fp8", frozenset({"a100", "h200"}))]
    ['h200']
    """
    newer = (
        get(key)
        for key, (vendor, year) in _vendors_and_years().items()
        if key in among and vendor == device.vendor and year >= device.year
    )
    return tuple(other for other in newer if other.outdoes(device, dtype))


def load(path: Path | str) -> dict[str, Accelerator]:
    """Every accelerator of a file, checked; `calc measure` writes such a file.

    Machines that join them, which `calc.machines.load` reads, may stand in it too. What such a file
    says in its table `measurement` is kept as it is.

    >>> [machine] = load(DATA / "measured" / "cpu.toml").values()
    >>> machine.dtypes
    ('fp64', 'fp32', 'bf16')
    """
    return {
        key: _accelerator(key, table, path)
        for key, table in read_tables(path).items()
        if not is_machine(table)
    }


def _accelerator(key: str, table: Any, path: Path | str) -> Accelerator:
    if (
        not isinstance(table, dict)
        or not isinstance(table.get("name"), str)
        or not isinstance(table.get("year"), int)
    ):
        raise InputError(
            f"{path}: {key} must be a table with a name and a year, as [mine] with a line"
            ' name = "My accelerator" and one year = 2026; the page "The command line" of the book'
            " shows all that it holds at least"
        )
    fields_read = [
        "name",
        "year",
        *INHERITED,
        *FIELDS,
        *PEAKS,
        "unsupported",
        "measured_as",
        "measurement",
        "also",
    ]
    check_fields(f"{path}: {key}", table, fields_read)
    if missing := [name for name in FIELDS if name not in table and name not in MAY_BE_LEFT_OUT]:
        raise InputError(
            f"{path}: {key} has no {missing[0]} ({FIELDS[missing[0]]}): give its value, or"
            f' {{ kind = "unpublished", note = "..." }} that says where it was looked for and when'
        )
    inherited = {name: table[name] for name in INHERITED if name in table}

    def record(name: str, title: str, value: Any, dtype: str = "") -> Record:
        title = f"{dtype.upper()} {title}".strip()
        owner = f"{key}.{name}.{dtype}".strip(".")
        read = read_record(value, owner, path, {"title": f"{title} of {table['name']}"} | inherited)
        check_positive(f"{path}: {owner}", read, UNITS[name])
        if name == "units" and read.published is not None and read.published.magnitude % 1:
            raise InputError(f"{path}: {owner} must be a whole number; got {read.published}")
        if name in ONE_WAY:
            check_each_way(f"{path}: {owner}", value)
        return read

    def rates(name: str, title: str) -> dict[str, Record]:
        values = table.get(name, {})
        if not isinstance(values, dict):
            raise InputError(
                f"{path}: {key}.{name} must be a table of data types; got {abbreviated(values)}"
            )
        return {dtype: rate(name, title, value, dtype) for dtype, value in values.items()}

    def rate(name: str, title: str, value: Any, dtype: str) -> Record:
        owner = f"{path}: {key}.{name}.{dtype}"
        if dtype not in DTYPES:
            raise InputError(
                f"{owner}: {dtype} is no known data type; known are {', '.join(DTYPES)}"
            )
        peak = record(name, title, value, dtype)
        if peak.published is not None:
            unit = str(peak.published.units)
            if not re.fullmatch(rf"[kMGTPE]?{DTYPES[dtype]}/s", unit):
                raise InputError(
                    f"{owner} must be in T{DTYPES[dtype]}/s or its like, since {dtype} operations"
                    f" are counted in {DTYPES[dtype]}; got {unit}"
                )
        return peak

    measurement = table.get("measurement", {})
    if not isinstance(measurement, dict):
        raise InputError(
            f"{path}: {key}.measurement must be a table; got {abbreviated(measurement)}"
        )
    device = Accelerator(
        key=key,
        name=table["name"],
        year=table["year"],
        records={
            name: record(name, title, table[name])
            for name, title in FIELDS.items()
            if name in table
        },
        peaks={name: rates(name, title) for name, title in PEAKS.items()},
        measurement=measurement,
        unsupported=_unsupported(key, table, path),
        announced=table.get("kind") == ANNOUNCED,
        measured_as=table.get("measured_as", ""),
    )
    _check_ridge_points(device, path)
    return device


def _unsupported(key: str, table: dict[str, Any], path: Path | str) -> tuple[str, ...]:
    formats = table.get("unsupported", [])
    without = [dtype for dtype in DTYPES if dtype not in table.get("peak", {})]
    if not isinstance(formats, list) or any(dtype not in without for dtype in formats):
        raise InputError(
            f"{path}: {key}.unsupported must list data types without a peak, of"
            f" {', '.join(without)}; got {abbreviated(formats)}"
        )
    return tuple(dtype for dtype in without if dtype in formats)


def _check_ridge_points(device: Accelerator, path: Path | str) -> None:
    if not device.publishes("memory_bandwidth"):
        return
    low, high = RIDGE_POINTS
    for dtype in device.dtypes:
        ridge = device.ridge_point(dtype)
        if not low <= ridge.magnitude <= high:
            raise InputError(
                f"{path}: {device.key} has {device.peak(dtype)} in {dtype} and"
                f" {device.memory_bandwidth}, a ridge point of {ridge}; no machine is outside of"
                f" {low:g} to {high:g}, so check the units of both"
            )


def dtype_of(name: str) -> str:
    """The data type under which a device has its rate for a format: both forms of FP8 are fp8.

    A block format is that of its elements. Whether a device also multiplies by the scales of one
    block format or the other, its rate does not say.

    >>> dtype_of("float16"), dtype_of("FP8_E5M2"), dtype_of("nvfp4")
    ('fp16', 'fp8', 'fp4')
    """
    if isinstance(name, str) and name in DTYPES:
        return name  # and the first answer needs no formats
    from calc import formats

    try:
        form = formats.get(name)
    except InputError:
        return ""  # of which no device has a rate, as its refusal says
    return getattr(form, "element", form).key.partition("-")[0]


_ANNOUNCED = re.compile(rf'^kind = "{ANNOUNCED}"$', re.MULTILINE)  # of the table, not of a field

_NAMED = re.compile(r'^name = "(\S+)', re.MULTILINE)
_SINCE = re.compile(r"^year = (\d+)$", re.MULTILINE)


@cache
def _tables() -> dict[str, Any]:
    return read_tables(DATA_FILE)


@cache
def _texts() -> dict[str, str]:
    """The text of each device's tables: to read one takes a fortieth of the time of all."""
    parts = re.split(r"^(?=\[([^].]+)\]$)", read_text(DATA_FILE), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@cache
def _vendors_and_years() -> dict[str, tuple[str, int]]:
    """Return whose each device that can be had is, and since when, before its table is read."""
    heads = ((key, _NAMED.search(text), _SINCE.search(text)) for key, text in _texts().items())
    return {
        key: (named[1], int(since[1]))
        for key, named, since in heads
        if named and since and key in names()
    }


def names() -> tuple[str, ...]:
    """The keys of all accelerators that can be had: what a comparison of devices runs over.

    >>> "h100" in names(), "rubin" in names()
    (True, False)
    """
    return _by_kind()[0]


def announced() -> tuple[str, ...]:
    """The keys of those that are announced and cannot be had yet; `get` knows them, too.

    >>> "rubin" in announced()
    True
    """
    return _by_kind()[1]


@cache
def _by_kind() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of devices that can be had, and of those that are announced."""
    texts = _texts()
    later = tuple(key for key, text in texts.items() if _ANNOUNCED.search(text))
    return tuple(key for key in texts if key not in later), later


def get(key: Path | str) -> Accelerator:
    """The accelerator of that key or name; case, spaces, "-", "_" and "." do not matter.

    A device of one's own is asked for by its file, "machine.toml"; where that holds several, the
    key stands after it: "machines.toml:mine".

    >>> get("TPU_v5p").name, get("nvidia h100").key
    ('Google TPU v5p', 'h100')
    """
    if is_file(key):
        return _from_file(str(key))
    named = key.lower().replace("_", "-") if isinstance(key, str) else ""
    if named in _texts():
        return _get(named)
    return _get(resolve("device", key, _spellings(), "`calc list devices` prints them all"))


def is_file(key: Path | str) -> bool:
    """Return whether this names a file of devices, or one in it, and no device of the data.

    >>> is_file("machine.toml"), is_file("h100")
    (True, False)
    """
    return isinstance(key, Path) or (isinstance(key, str) and OWN_FILE.fullmatch(key) is not None)


def _from_file(name: str) -> Accelerator:
    file, key, tables = read_file(name)
    devices = [key for key, table in tables.items() if not is_machine(table)]
    key = one_of_file("device", file, key, devices)
    return _accelerator(key, tables[key], file)


def is_machine(table: object) -> bool:
    """Return whether a file's table is a machine's: says which devices it joins, how many and how.

    >>> is_machine({"name": "My box", "device": "mine", "domain": 2})
    True
    """
    return isinstance(table, dict) and not {"device", "domain", "fabric"}.isdisjoint(table)


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no device has it.

    >>> key_of("TPU_v5p"), key_of("M2 Ultra"), key_of("strix-halo"), key_of("abacus")
    ('tpu-v5p', 'apple-m2-ultra', 'ryzen-ai-max-395', None)
    """
    return _spellings().get(squeezed(name))


@cache
def _spellings() -> dict[str, str]:
    """Return the key of each spelling: key, name with and without vendor, vendor with key."""
    called = {
        key: (table["name"], *table["name"].split(" ", 1)) for key, table in _tables().items()
    }
    return spellings(
        {
            key: (
                *(name, rest, f"{vendor} {key}"),
                *(
                    part
                    for also in _tables()[key].get("also", ())
                    for part in (also, f"{vendor} {also}")
                ),
            )
            for key, (name, vendor, rest) in called.items()
        }
    )


@cache
def _get(key: str) -> Accelerator:
    return shared(_accelerator(key, parse_toml(_texts()[key], DATA_FILE)[key], DATA_FILE))


def __getattr__(name: str) -> Accelerator:
    return attribute(get, name)


def __dir__() -> list[str]:
    spelled = [name.upper().replace("-", "_") for name in (*names(), *announced())]
    return [*public_names(sys.modules[__name__]), *spelled]
