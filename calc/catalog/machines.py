"""Machines, field by field from `data/machines.toml`: `calc.machines.get("dgx-h100").domain`.

A machine is devices of one kind behind a fabric, with ports to a network and a host. What its
vendor says of it bounds what it does; `reached` holds what kernels were measured to reach on it,
from which expectations are made. Where a rate was not measured there is none: asking for it is an
error that names it, and an expectation that needs it is left out, never guessed.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from calc.catalog import hardware
from calc.catalog.hardware import DTYPES, Accelerator
from calc.core.arguments import one_of, whole_number
from calc.core.device import Device, check_device
from calc.core.docstrings import public_names
from calc.core.errors import InputError, abbreviated, did_you_mean, marked
from calc.core.formatting import html_table
from calc.core.names import resolve, spellings, squeezed
from calc.core.provenance import Provenance
from calc.core.records import (
    DATA,
    INHERITED,
    Published,
    Record,
    Recorded,
    attribute,
    check_each_way,
    check_fields,
    check_positive,
    one_of_file,
    read_file,
    read_record,
    read_toml,
    shared,
)
from calc.core.units import Quantity, quantity

FILE = DATA / "machines.toml"
FABRICS = {  # and what each is, in a sentence that names it
    "none": "no other device",
    "switch": "a switch, through which each device sends to any other at full bandwidth",
    "torus": "a torus, whose devices have links to their neighbours along each axis",
    "mesh": "a mesh, in which each device has a link to every other one",
    "pcie": "the host's PCIe",
}
NETWORKS = ("InfiniBand", "RoCE", "EFA", "GPUDirect-TCPX", "GPUDirect-TCPXO")
FIELDS = {
    "bandwidth": "bandwidth of a device into the fabric, each way",
    "ports": "bandwidth of a device to the network, each way",
    "host_link": "bandwidth between a device and its host, each way",
    "host_memory_bandwidth": "bandwidth of the host's memory",
    "power": "power of the whole machine",
}
UNITS = dict.fromkeys(FIELDS, "byte/s") | {"power": "W"}
ONE_WAY = ("bandwidth", "ports", "host_link")
REACHED = {  # what was measured: its title, and its unit
    "gemm": ("rate of matrix products in", "FLOP/s"),
    "lasting": ("rate of long matrix products in", "FLOP/s"),
    "attention": ("rate of attention,", "FLOP/s"),
    "memory": ("bandwidth of memory,", "byte/s"),
    "host_link": ("bandwidth of copies,", "byte/s"),
    "launch": ("time of a kernel from", "s"),
}
BY_FORMAT = ("gemm", "lasting")
NAMES = {  # of what each of these is measured on; products are measured by format
    "attention": (
        *("forward", "backward", "flash-attention-2 forward"),
        *("flash-attention-triton forward", "flash-attention-triton backward"),
    ),
    "memory": ("read", "write", "copy", "add", "triad"),
    "host_link": ("host to device", "device to host"),
    "launch": ("a launch", "a graph"),
}
NO_TIME = quantity(0, "s")
HOSTED = 8  # cards that a host joins by PCIe at most, as the largest servers of the data do
KNOWN = (
    *("name", "device", "domain", "host_devices", "fabric"),
    *("sides", "wraparound", "sums_in_switch", "reads_all_experts", "usual"),
    *("network", "rates_of", "reached", *FIELDS, *INHERITED),
)


class NotMeasured(InputError):  # noqa: N818
    """A rate that was not measured on a machine, so that nothing can be expected of it."""


@dataclass(frozen=True, eq=False)
class Machine(Recorded):
    """Devices behind a fabric: what is published of them together, and what they reached."""

    key: str
    name: str
    device: Accelerator
    domain: int
    """Devices that share the fabric."""
    host_devices: int = 0
    """Devices of one host where the domain has several hosts, else 0."""
    fabric: str = "none"
    sides: tuple[int, ...] = ()
    """Devices along each axis of a torus."""
    wraparound: bool = False
    """Whether the axes of a torus are closed to rings."""
    sums_in_switch: bool = False
    """Whether the switch adds up what it carries."""
    reads_all_experts: bool = False
    """Whether its graphs of fixed shapes read all experts of a device, whichever are chosen."""
    network: tuple[str, ...] = ()
    """The kinds of network to which its ports lead, any of them; empty where nobody says."""
    source: str = ""
    """A key of references.bib, which holds where a record has no other."""
    usual: bool = False
    """Whether a device that is asked for by itself is taken to stand in this machine."""
    records: dict[str, Record] = field(default_factory=dict, repr=False)
    rates: dict[str, dict[str, Record]] = field(default_factory=dict, repr=False)

    bandwidth = Published()
    """Bandwidth of a device into the fabric, each way."""

    @property
    def most_joined(self) -> float:
        """Devices that can work together: those of a domain, or any number where it has ports."""
        if self.publishes("ports"):
            return math.inf
        return self.hosted.domain if self.hosted.publishes("bandwidth") else 1

    @property
    def hosted(self) -> Machine:
        """The machine of several such cards in one host, of a card whose one link is its PCIe.

        It is the machine itself where the data know other links of it, or none.

        >>> print(get("rtx-3090").hosted.bandwidth, get("rtx-3090").hosted.domain)
        31.5 GB/s 8
        """
        return _hosted(self)

    @property
    def ring(self) -> Quantity | None:
        """The bandwidth of the device's own links, where no machine is known that joins several."""
        alone = self.domain == 1 and self.device.publishes("link_bandwidth")
        return self.device.link_bandwidth if alone else None

    def check_joins(self, count: float, instead: str = "") -> None:
        """Refuse more devices than work together; `instead` names what else would do."""
        if count > self.most_joined and self.ring is None:
            raise InputError(f"{self._lacks('ports')}{instead}")

    ports = Published()
    """Bandwidth of a device to the network beyond the fabric, each way."""
    host_link = Published()
    """Bandwidth between a device and its host, each way."""
    host_memory_bandwidth = Published()
    """Bandwidth of the host's memory, which all devices of the host share."""
    power = Published()
    """Power of the whole machine, its host and fans included."""

    @property
    def shape(self) -> dict[str, str | int]:
        """Number of devices and how they are joined, in words."""
        shape: dict[str, str | int] = {"device": self.device.name, "domain": self.domain}
        shape["fabric"] = FABRICS[self.fabric]
        if self.sides:
            shape["sides"] = " × ".join(map(str, self.sides))
            shape["axes"] = "closed to rings" if self.wraparound else "open"
        if self.sums_in_switch:
            shape["sums"] = "in the switch too"
        if self.reads_all_experts:
            shape["experts"] = "all read, whichever are chosen"
        if self.network:
            shape["network"] = " or ".join(self.network)
        return shape

    def reached(self, kind: str, name: str) -> Quantity:
        """A measured rate: that of a kind of kernel in a format, a direction, a way of launching.

        >>> print(get("dgx-h100").reached("gemm", "bf16"))
        794.5 TFLOP/s
        """
        if kind not in REACHED:
            listing = ", ".join(REACHED)
            raise InputError(
                f"a kind of measured rate is one of {listing}; got {abbreviated(kind)}"
            )
        name = hardware.dtype_of(name) or name if kind in BY_FORMAT else name
        if (record := self.rates.get(kind, {}).get(name)) is None:
            of_none = "" if self.device.dtypes else ", of which no peak is published either"
            raise NotMeasured(
                f"the {REACHED[kind][0]} {str(name).upper() if kind in BY_FORMAT else name} was not"
                f" measured on {self.name}{of_none}: its data have none, so nothing is expected of"
                " it"
            )
        return record.quantity

    def likely(self, kind: str, name: str) -> Quantity:
        """A measured rate; where there is none, the usual share of the published peak.

        That share is the median of what other machines reached of theirs: of those with the same
        processors, else of the same vendor's where three of these were measured.
        Of a peak that is not published nothing is likely.

        >>> rate = get("rtx-5090-2").likely("gemm", "bf16")
        >>> print(rate, rate.provenance.kind)
        168.3 TFLOP/s estimate
        """
        if self.has_reached(kind, hardware.dtype_of(name) or name if kind == "gemm" else name):
            return self.reached(kind, name)
        return copy(_likely(self, kind, name))

    def lasting(self, name: str) -> Quantity:
        """The rate of matrix products that last, one after another, as those of training do.

        The best of a search is that of a short one, before power limits the clock. Where no long
        ones were measured, they keep of its rate what they usually do.

        >>> machine = get("dgx-h100")
        >>> print(machine.reached("gemm", "fp8"), machine.lasting("fp8"))
        1403 TFLOP/s 1384 TFLOP/s
        """
        dtype = hardware.dtype_of(name) or name
        if self.has_reached("lasting", dtype):
            return self.reached("lasting", dtype)
        short = self.likely("gemm", name)
        rate = short * _kept_by_long_ones()
        rate.provenance = short.provenance
        return rate

    @property
    def memory_reached(self) -> Quantity:
        """The best bandwidth of the device's memory that was measured, whatever its direction.

        >>> print(get("dgx-h100").memory_reached)
        3.18 TB/s
        """
        return copy(self._memory_reached)

    @cached_property
    def _memory_reached(self) -> Quantity:
        measured = [record.quantity for record in self.rates.get("memory", {}).values()]
        return max(measured) if measured else self.likely("memory", "copy")

    @cached_property
    def processors(self) -> int:
        """Number of processors that compute tiles side by side; one where it is unpublished."""
        return self.device.units if self.device.publishes("units") else 1

    @property
    def gap(self) -> Quantity:
        """Time of a short kernel in a graph; what was not measured is not counted."""
        name = "a graph"
        return self.reached("launch", name) if self.has_reached("launch", name) else NO_TIME

    def attention_reached(self, direction: str, kernel: str = "") -> Quantity:
        """Rate of fused attention: of the best kernel measured, or of that of the name.

        The backward pass has the forward pass's rate where its own was not measured. A kernel that
        was measured on other devices alone has the instructions of these: it reaches at most what
        each of their units did, on as many units as there are.
        """
        names = [f"{kernel} {direction}", f"{kernel} forward"] if kernel else []
        if (known := next(filter(self._has_attention, names), None)) is not None:
            return self.reached("attention", known)
        best = next(filter(self._has_attention, (direction, "forward")), direction)
        rate = self.likely("attention", best)
        each = _of_a_unit(self.device.vendor, names)
        if each is None or not self.device.publishes("units") or rate <= each * self.device.units:
            return rate
        slower = each * self.device.units
        slower.provenance = rate.provenance
        return slower

    def _has_attention(self, name: str) -> bool:
        return self.has_reached("attention", name)

    def has_reached(self, kind: str, name: str) -> bool:
        """Return whether the rate of that kind and name was measured."""
        return name in self.rates.get(kind, {})

    def all_records(self) -> list[Record]:
        """Every record of the machine, in the order of its data file."""
        return [
            *self.records.values(),
            *(record for rates in self.rates.values() for record in rates.values()),
        ]

    def _repr_html_(self) -> str:
        """Return the machine's data as an HTML table, with the source of each value."""
        titles = {FIELDS[name]: record for name, record in self.records.items()}
        for kind, rates in self.rates.items():
            titles |= {_title(kind, name): record for name, record in rates.items()}
        rows = [("", "value", "source")]
        for title, record in titles.items():
            value = "unpublished" if record.published is None else str(record.published)
            rows.append((title, value, record.provenance.cited))
        return html_table([f"{self.name}: {self.domain} × {self.device.name}"], rows)

    def _read(self, name: str) -> Quantity:
        if name in ("bandwidth", "ports") and not self.publishes(name):
            raise InputError(self._lacks(name))
        return super()._read(name)

    def _lacks(self, name: str) -> str:
        """Return what is missing, and of links what the data have of them."""
        if name not in ("bandwidth", "ports"):
            return f"{self.name} has no {FIELDS[name]} in its data"
        if (most := self.most_joined) > 1:
            return (
                f"{self.hosted.name} has {most} devices, and the data have no port of it to others:"
                f" take at most {most}"
            )
        joined = [key for key in with_several(self.device.key) if get(key).most_joined > 1]
        instead = f"{' or '.join(joined)} in its place, or " if joined else ""
        return f"the data have no link of {self.device.name} to others: take {instead}one device"

    def _record(self, name: str) -> Record | None:
        """Return a record of the machine, or for a host link that it lacks, that of its device."""
        alone = self.device.records.get(name) if name == "host_link" else None
        return self.records.get(name, alone)


@lru_cache(maxsize=2**8)
def _hosted(card: Machine) -> Machine:
    record, device = card.device.records.get("host_link"), card.device
    linked = device.publishes("link_bandwidth") or card.publishes("ports")
    if card.domain > 1 or linked or record is None or not record.is_published:
        return card
    name = f"{device.name} joined by PCIe through the host"
    joined = {**card.records, "bandwidth": record}
    return replace(card, name=name, domain=HOSTED, fabric="pcie", records=joined)


FEWEST = 3  # machines of a vendor whose median share is its own
SAME = 0.01  # by which the peaks of one processor differ at most where processors are the same
LIKELY = ".likely."  # in the key of a rate that is such a share


def is_likely(rate: Quantity) -> bool:
    """Return whether a rate is the usual share of a peak, and was not measured.

    >>> is_likely(get("rtx-5090-2").likely("gemm", "bf16"))
    True
    """
    return rate.provenance is not None and LIKELY in rate.provenance.key


@lru_cache(maxsize=2**8)
def _likely(machine: Machine, kind: str, name: str) -> Quantity:
    """The usual share of a machine's peak, as an estimate that says of whom it was taken."""
    peak = _peak(machine, kind, name)
    shares = _shares(kind, (name,)) or _shares(kind, tuple(DTYPES))
    if peak is None or not shares:
        return machine.reached(kind, name)  # which says that it was not measured
    vendor = machine.device.vendor
    same = {key: share for key, share in shares.items() if _get(key).device.vendor == vendor}
    alike = {key: share for key, share in same.items() if _is_alike(_get(key), machine)}
    taken = alike or (same if len(same) >= FEWEST else shares)
    share = median(taken.values())
    said = next(iter(machine.device.records.values())).provenance
    provenance = Provenance(
        key=f"{machine.key}{LIKELY}{kind}.{name}",
        title=f"likely {_title(kind, name).removeprefix('measured ')} of {machine.name}",
        kind="estimate",
        source=said.source,
        year=None,
        checked=said.checked,
        note=f"{share:.0%} of the published peak, {_whose(alike, len(taken))}.",
    )
    rate = share * peak
    rate.provenance = provenance
    return rate


def _is_alike(one: Machine, other: Machine) -> bool:
    """Return whether devices of a vendor have the same processors, which some sell by fewer."""
    each = [
        machine.device.peak(machine.device.usual_dtype) / machine.device.units
        for machine in (one, other)
        if machine.device.publishes("units")
    ]
    return len(each) > 1 and abs((each[0] / each[1]).m_as("") - 1) < SAME


def _whose(alike: Collection[str], count: int) -> str:
    """Return in words whose share is taken: that of one machine, or the median of several."""
    if not alike:
        return f"the median of {count} machines"
    those = "that of one" if count == 1 else f"the median of {count}"
    return f"{those} with the same processors"


@cache
def _most_of_a_unit(vendor: str, name: str) -> Quantity | None:
    """Return the most that a unit of a vendor's devices was measured to reach with a kernel."""
    measured = [
        machine.rates["attention"][name].quantity / machine.device.units
        for machine in map(_get, names())
        if name in machine.rates.get("attention", {})
        and machine.device.vendor == vendor
        and machine.device.publishes("units")
    ]
    return max(measured, default=None)


def _of_a_unit(vendor: str, names: list[str]) -> Quantity | None:
    return next(filter(None, (_most_of_a_unit(vendor, name) for name in names)), None)


@cache
def _kept_by_long_ones() -> float:
    """Return the share of the best short product's rate that long ones keep, as a median."""
    both = (
        (rates["lasting"][name].quantity / record.quantity).m_as("")
        for rates in (_get(key).rates for key in names() if _get(key).usual)
        for name, record in rates.get("gemm", {}).items()
        if name in rates.get("lasting", {})
    )
    return float(median(both))


@cache
def _shares(kind: str, formats: tuple[str, ...]) -> dict[str, float]:
    """Return the measured share of a published peak by machine, the best of these formats."""
    shares: dict[str, float] = {}
    for key in names():
        machine = _get(key)
        for name in formats:
            best, peak = _best(machine, kind, name), _peak(machine, kind, name)
            if best is not None and peak is not None:
                shares[key] = max(shares.get(key, 0.0), (best / peak).m_as(""))
    return shares


def _best(machine: Machine, kind: str, name: str) -> Quantity | None:
    """The best measured rate of that kind; of attention, that of the forward pass."""
    rates = machine.rates.get(kind, {})
    if kind == "attention":
        name = "forward"
    alike = rates if kind == "memory" else {name: rates[name]} if name in rates else {}
    return max((record.quantity for record in alike.values()), default=None)


def _peak(machine: Machine, kind: str, name: str) -> Quantity | None:
    """The published peak of which a measured rate is a share; that of 16 bits for attention."""
    device = machine.device
    if kind == "memory":
        return device.memory_bandwidth if device.publishes("memory_bandwidth") else None
    # What has no rate of its own in 16 bits is computed as the device usually does.
    dtype = name if kind == "gemm" and name != "bf16" else device.usual_dtype
    return device.peak(dtype) if dtype in device.dtypes else None


def device_of(owner: Device | Machine) -> Device:
    """The device that a machine has several of, or the device itself where one is given.

    >>> device_of(get("dgx-h100")).name
    'NVIDIA H100 SXM5 80 GB'
    """
    if isinstance(owner, str) and key_of(owner) is not None and hardware.key_of(owner) is None:
        raise InputError(
            f"a machine is needed here, and not its name: write machines.get({abbreviated(owner)})"
        )
    device = owner.device if isinstance(owner, Machine) else owner
    check_device(device)
    return device


def of(meant: Machine | Accelerator | Path | str) -> Machine:
    """The machine that is meant: itself, or the one in which a device usually stands.

    Both may be given by their keys or files. A device of no machine is a machine of one.

    >>> of(hardware.get("h100")).name, of("t4").domain
    ('NVIDIA DGX H100', 1)
    """
    if isinstance(meant, str) and (named := key_of(meant)) is not None:
        return get(named)
    if isinstance(meant, str | Path) and hardware.is_file(meant):
        return get(meant)
    if isinstance(meant, str) and hardware.key_of(meant) is None:
        name, count = counted(meant)
        if count is not None:
            raise InputError(
                f"a machine is one name, and how many devices it has is {marked('devices', count)}"
                f" of what takes it; got {meant!r}: take {name!r}"
            )
        asked = meant.lower()
        if did_you_mean(asked, names()) and not did_you_mean(asked, hardware.names()):
            return get(meant)  # which refuses it, with the machines that are near
    device = hardware.get(meant) if isinstance(meant, str) else meant
    if isinstance(device, Machine):
        return device
    if not isinstance(device, Accelerator):
        raise InputError(
            "a device of calc.hardware or a machine of calc.machines, or its key, is needed; got"
            f" {abbreviated(device)}"
        )
    for key, table in _tables().items():
        usual = table.get("usual") and table["device"] == device.key
        if usual and _get(key).device == device:  # and not one of its own by that key
            return _get(key)
    return Machine(key=device.key, name=device.name, device=device, domain=1)


BEFORE = r"(\d+)\s*[x×*]?\s*"
"""How many devices there are, before their name: 8xh100, 8 H100."""
BEHIND = r"\s*[x×*]\s*(\d+)"
"""How many devices there are, behind their name: h100x8."""


def counted(text: str) -> tuple[str, int | None]:
    """Return the name of a device or a machine, and how many devices a text says there are.

    >>> counted("8xh100"), counted("h100x8"), counted("4 H100"), counted("mi300x-8")
    (('h100', 8), ('h100', 8), ('H100', 4), ('mi300x-8', None))
    >>> counted("2xdgx-h100")
    ('dgx-h100', 16)
    """
    if not _is_name(text):
        for pattern, name, count in ((f"{BEFORE}(.+)", 2, 1), (f"(.+?){BEHIND}", 1, 2)):
            match = re.fullmatch(pattern, text.strip())
            if match and _is_name(match[name]):
                key = key_of(match[name])
                return match[name], int(match[count]) * (get(key).domain if key else 1)
    return text, None


def _is_name(text: str) -> bool:
    return key_of(text) is not None or hardware.key_of(text) is not None


def with_several(device: str) -> tuple[str, ...]:
    """The keys of the machines that join several of the device of that key.

    >>> with_several("rtx-5090")
    ('rtx-5090-2', 'rtx-5090-4')
    """
    return tuple(
        key for key, table in _tables().items() if table["device"] == device and table["domain"] > 1
    )


@cache
def measured(kind: str = "") -> frozenset[str]:
    """The devices in whose usual machine a rate of this kind was measured, or of any.

    >>> "h100" in measured(), "rtx-a6000" in measured(), "gaudi2" in measured("memory")
    (True, False, False)
    """
    usual = (table for table in _tables().values() if table.get("usual"))
    return frozenset(table["device"] for table in usual if _is_measured(table, kind))


def _is_measured(table: dict[str, Any], kind: str) -> bool:
    reached, other = table.get("reached", {}), table.get("rates_of")
    own = kind in reached if kind else bool(reached)
    return own or (other is not None and _is_measured(_tables()[other], kind))


def load(path: Path | str) -> dict[str, Machine]:
    """Every machine of a file, checked; devices of one's own may stand in it too.

    >>> load(FILE)["dgx-h100"].fabric
    'switch'
    """
    tables = read_toml(path)
    return {
        key: _machine(key, table, tables, path)
        for key, table in tables.items()
        if hardware.is_machine(table) or not isinstance(table, dict)
    }


def names() -> tuple[str, ...]:
    """The keys of all machines.

    >>> "dgx-h100" in names()
    True
    """
    return tuple(_tables())


def get(key: Path | str) -> Machine:
    """The machine of that key or name; that of a device is the one in which it usually stands.

    One's own is asked for by its file, "machine.toml"; where that holds several, the key stands
    after it: "machines.toml:mine". Its device is one of the same file, or of the data.

    >>> get("DGX H100").device.key, get("h100").key
    ('h100', 'dgx-h100')
    """
    if hardware.is_file(key):
        return _from_file(str(key))
    if key_of(str(key)) is None and hardware.key_of(str(key)) is not None:
        return of(hardware.get(key))
    return _get(resolve("machine", key, _spellings(), "`calc list machines` prints them all"))


def _from_file(name: str) -> Machine:
    file, key, tables = read_file(name)
    keys = [name for name, table in tables.items() if hardware.is_machine(table)]
    if keys and (key is None or key in keys):
        key = one_of_file("machine", file, key, keys)
        return _machine(key, tables[key], tables, file)
    if key is not None:
        one_of_file("machine or device", file, key, list(tables))
    return of(hardware.get(name))


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no machine has it.

    >>> key_of("NVIDIA DGX H100"), key_of("abacus")
    ('dgx-h100', None)
    """
    return _spellings().get(squeezed(name))


def _machine(key: str, table: object, tables: dict[str, Any], path: Path | str) -> Machine:
    if not isinstance(table, dict):
        raise InputError(f"{path}: {key} must be a table; got {abbreviated(table)}")
    check_fields(f"{path}: {key}", table, KNOWN)
    for name, kind in (("name", str), ("device", str), ("domain", int), ("fabric", str)):
        if not isinstance(table.get(name), kind):
            raise InputError(f"{path}: {key} must have a {name}, {kind.__name__} in TOML")
    inherited = {name: table[name] for name in INHERITED if name in table}
    named = inherited | {"title": f"of {table['name']}"}

    def record(
        field: str, title: str, unit: str, value: object, defaults: dict[str, Any]
    ) -> Record:
        defaults = defaults | {"title": f"{title} of {table['name']}"}
        read = read_record(value, f"{key}.{field}", path, defaults)
        check_positive(f"{path}: {key}.{field}", read, unit)
        return read

    records = {
        name: record(name, title, UNITS[name], table[name], named)
        for name, title in FIELDS.items()
        if name in table
    }
    for name in ONE_WAY:
        if name in records:
            check_each_way(f"{path}: {key}.{name}", table[name])
    machine = Machine(
        key=key,
        name=table["name"],
        device=_device(table["device"], tables, path),
        domain=whole_number(f"{path}: {key}.domain", table["domain"]),
        host_devices=whole_number(f"{path}: {key}.host_devices", table.get("host_devices", 0), 0),
        fabric=table["fabric"],
        sides=tuple(table.get("sides", ())),
        wraparound=table.get("wraparound", False),
        sums_in_switch=table.get("sums_in_switch", False),
        reads_all_experts=table.get("reads_all_experts", False),
        network=tuple(table.get("network", ())),
        source=table.get("source", ""),
        usual=table.get("usual", False),
        records=records,
        rates=_rates(key, table, tables, record, path),
    )
    _check(machine, path)
    return machine


def _device(key: str, tables: dict[str, Any], path: Path | str) -> Accelerator:
    is_there = key in tables and not hardware.is_machine(tables[key])
    return hardware.get(f"{path}:{key}" if is_there else key)


def _rates(
    key: str, table: dict[str, Any], tables: dict[str, Any], record: Any, path: Path | str
) -> dict[str, dict[str, Record]]:
    """The measured rates of a machine, after those of another one that has the same chip."""
    rates: dict[str, dict[str, Record]] = {}
    if (other := table.get("rates_of")) is not None:
        above = list(tables)[: list(tables).index(key)] if key in tables else []
        if other not in above or not {"rates_of", "reached"} & tables[other].keys():
            raise InputError(
                f"{path}: {key}.rates_of must name a machine above it, of the file that has"
                f" rates; got {abbreviated(other)}"
            )
        rates = {
            kind: dict(rate)
            for kind, rate in _machine(other, tables[other], tables, path).rates.items()
        }
    for kind, rate in table.get("reached", {}).items():
        names_of_kind = NAMES.get(kind, tuple(DTYPES))
        if kind not in REACHED:
            raise InputError(
                f"{path}: {key}.reached has an unknown kind {kind}; known are {', '.join(REACHED)}"
            )
        for name, value in rate.items():
            if name not in names_of_kind:
                raise InputError(
                    f"{path}: {key}.reached.{kind} has an unknown name {name}; known are"
                    f" {', '.join(names_of_kind)}"
                )
            field, unit = f"reached.{kind}.{name}", REACHED[kind][1]
            unit = f"{DTYPES[name]}/s" if kind in BY_FORMAT else unit
            defaults = {"kind": "measured", "checked": table.get("checked")}
            rates.setdefault(kind, {})[name] = record(
                field, _title(kind, name), unit, value, defaults
            )
            if rates[kind][name].provenance.kind != "measured":
                raise InputError(f"{path}: {key}.{field} must be of the kind measured")
    return rates


def _title(kind: str, name: str) -> str:
    return f"measured {REACHED[kind][0]} {name.upper() if kind in BY_FORMAT else name}"


def _check(machine: Machine, path: Path | str) -> None:
    owner = f"{path}: {machine.key}"
    one_of(f"{owner}.fabric", machine.fabric, FABRICS)
    if (machine.fabric == "none") != (machine.domain == 1):
        raise InputError(
            f"{owner} has a domain of {machine.domain} and the fabric {machine.fabric!r}: one"
            " device has none, and several have one"
        )
    if machine.fabric == "torus":
        sides = [whole_number(f"{owner}.sides", side) for side in machine.sides]
        if not sides or math.prod(sides) != machine.domain:
            raise InputError(
                f"{owner}.sides must multiply to its {machine.domain} devices; got"
                f" {' × '.join(map(str, sides)) or 'none'}"
            )
    elif machine.sides:
        raise InputError(f"{owner}.sides are those of a torus; its fabric is {machine.fabric}")
    for network in machine.network:
        one_of(f"{owner}.network", network, NETWORKS)
    if machine.domain > 1 and "bandwidth" not in machine.records:
        raise InputError(f"{owner} has no bandwidth: {FIELDS['bandwidth']}")


@cache
def _tables() -> dict[str, Any]:
    return read_toml(FILE)


@cache
def _spellings() -> dict[str, str]:
    called = {key: table["name"] for key, table in _tables().items()}
    return spellings({key: (name, name.split(" ", 1)[-1]) for key, name in called.items()})


@cache
def _get(key: str) -> Machine:
    return shared(_machine(key, _tables()[key], _tables(), FILE))


def __getattr__(name: str) -> Machine:
    return attribute(get, name)


def __dir__() -> list[str]:
    spelled = [name.upper().replace("-", "_") for name in names()]
    return [*public_names(sys.modules[__name__]), *spelled]
