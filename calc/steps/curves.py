"""Curves of collectives: times that were measured, by size, and what is expected between them.

The rows are `data/measured/collectives.csv`, and `calc.communication.time` asks here for what it
expects. Between two measured sizes time is interpolated in the logarithms of both, and above the
largest it is in proportion to the size. Below the smallest it is that of the smallest, if the curve
is flat there and that size is short; else the next best curve goes on. Where a source prints bus
bandwidths alone, times were computed from them. A source counts whose devices, nodes and sizes are
stated; a curve has at least four sizes, and single points are there to be held against bounds.

A curve tells of links of its kind alone: in a domain, one of a switch says nothing of PCIe, of a
torus, or of another vendor's switch. Of PCIe no library was measured, so that what engines' own
sums took there stands in, those of the engine that usually serves on the device.

On links that none was measured on, a time has two parts. Links take what the nearest curve says,
by the share of the published bandwidth that it reaches. What links do not take, the start, is the
geometric mean of all curves of the span, by the rounds between hosts: it depends on the network and
on what is done, not on how fast links are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import geometric_mean, median

from calc.catalog import engine_sums, hardware, machines, software
from calc.catalog.engine_sums import Sums
from calc.catalog.kernel_shares import SOURCE, number_of
from calc.catalog.machines import Machine, NotMeasured
from calc.core.errors import InputError, abbreviated
from calc.core.records import DATA, read_rows
from calc.core.units import Quantity

FILE = DATA / "measured" / "collectives.csv"
SPREADS = DATA / "collective_intervals.csv"
COLUMNS = (
    *("curve", "machine", "operation", "devices", "nodes", "span", "size_bytes", "time_seconds"),
    *("bus_bandwidth", "software", "source"),
)
OPERATIONS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "send")
PAIRS = "in pairs"
SPANS = {"domain": "in the domain", "across": "across the domains"}
SIZES = 4  # that make a curve
FLAT = 1.2  # growth of the time by the first step of a curve that is flat there
COMPARED_FROM = 64e3  # bytes: below, what is compared is latency alone
SURE = 8  # times the size at which a curve begins, from which on it tells of starts for certain
FOREIGN = 0.01  # weight of starts over another network, beside which those of its own count
FARTHEST = 10  # times the most devices on which an operation was measured, and none is expected

Fit = Callable[[float], float]  # the share of the published bandwidth that a size reaches


@dataclass(frozen=True)
class Curve:
    """Times of one operation on one machine, by size, as one source has them."""

    name: str
    machine: str
    operation: str
    devices: int
    nodes: int
    span: str
    software: str
    source: str
    sizes: tuple[float, ...]
    """Bytes, rising."""
    times: tuple[float, ...]
    """Seconds."""

    @cached_property
    def place(self) -> Machine:
        """The machine on which it was measured."""
        return machines.get(self.machine)

    @property
    def bus_bandwidths(self) -> tuple[float, ...]:
        """Bytes a second that each device sent each way, size by size."""
        sent = traffic(self.operation, self.devices)
        return tuple(sent * size / time for size, time in zip(self.sizes, self.times, strict=True))

    @property
    def half_size(self) -> float:
        """The smallest size, in bytes, at half of the largest bus bandwidth, as `time` has it.

        >>> print(f"{get('allreduce-8xh100-dgxc').half_size / 1e6:.1f} MB")
        17.4 MB
        """
        half = max(self.bus_bandwidths) / 2
        reached = self.bus_bandwidths
        after = next(step for step, bandwidth in enumerate(reached) if bandwidth >= half)
        if after == 0:
            return self.sizes[0]
        share = math.log(half / reached[after - 1]) / math.log(reached[after] / reached[after - 1])
        return float(self.sizes[after - 1] ** (1 - share) * self.sizes[after] ** share)

    @property
    def domains(self) -> int:
        """Return how many domains of its machine the devices fill."""
        return domains_of(self.devices, self.place)

    @property
    def latency(self) -> float:
        """Seconds that are left of its smallest size at the pace from there to the next.

        >>> print(f"{get('allreduce-32xh100-xe9680').latency * 1e6:.1f} µs")
        34.8 µs
        """
        (low, high), (first, second) = self.sizes[:2], self.times[:2]
        return min(first, max(0.0, first - low * (second - first) / (high - low)))

    @cached_property
    def _paces(self) -> tuple[float, ...]:
        """Seconds of a byte at each size, or at a longer one that moves faster."""
        falling = accumulate(
            (time / size for size, time in zip(self.sizes[::-1], self.times[::-1], strict=True)),
            min,
        )
        return tuple(falling)[::-1]

    def pace(self, size: float) -> float:
        """Seconds that links take of a byte: at this size or, where it moves faster, a longer one.

        >>> print(f"{get('allreduce-8xh100-dgxc').pace(2**20):.2e}")
        3.64e-12
        """
        size = max(size, self.sizes[0])
        own, longer = self.time(size) / size, bisect_left(self.sizes, size)
        return own if longer == len(self.sizes) else min(own, self._paces[longer])

    def start(self, size: float) -> float:
        """Seconds of a size that its links do not take: kernels that start, chunks that wait.

        >>> b200, h100 = get("allreduce-8xb200-bekman"), get("allreduce-8xh100-dgxc")
        >>> print(*(f"{curve.start(2**24) * 1e6:.0f} µs" for curve in (b200, h100)))
        80 µs 63 µs
        """
        size = max(size, self.sizes[0])
        return max(self.latency, self.time(size) - self.pace(size) * size)

    def tells(self, size: float) -> float:
        """Return how much it tells of the start of a size: nothing below where it begins."""
        if self.reaches(0):
            return 1.0
        return min(1.0, max(0.0, math.log(size / self.sizes[0]) / math.log(SURE)))

    def reaches(self, size: float) -> bool:
        """Return whether it was measured down to that size, or is flat from a short one on."""
        flat = len(self.sizes) >= SIZES and self.times[1] <= FLAT * self.times[0]
        return size >= self.sizes[0] or (flat and self.sizes[0] < COMPARED_FROM)

    def time(self, size: float) -> float:
        """Seconds for a size in bytes, by what was measured around it."""
        first, last = self.sizes[0], self.sizes[-1]
        if not self.reaches(size):
            raise NotMeasured(
                f"{self.operation} on {self.place.name} was measured from"
                f" {first:g} byte on, where its time is not yet latency alone; got {size:g} byte"
            )
        if size <= first:
            return self.times[0]
        if size >= last:
            return self.times[-1] * size / last
        after = next(index for index, length in enumerate(self.sizes) if length >= size)
        low, high = self.sizes[after - 1], self.sizes[after]
        before, there = self.times[after - 1], self.times[after]
        share = math.log(size / low) / math.log(high / low)
        return float(before ** (1 - share) * there**share)


Predicted = tuple[float, tuple[Curve, ...]]  # seconds, and the curves of which they are made


def traffic(operation: str, devices: int) -> float:
    """Return what each device sends of an array over its size: bus over algorithm bandwidth.

    >>> traffic("all_reduce", 8), traffic("all_to_all", 8)
    (1.75, 0.875)
    """
    if operation in ("broadcast", "send"):
        return 1.0
    return (2 if operation == "all_reduce" else 1) * (devices - 1) / devices


def load(path: Path | str = FILE) -> tuple[Curve, ...]:
    """Every curve of a file, checked.

    >>> load()[0].machine
    'dgx-h100'
    """
    curves: dict[str, list[dict[str, str]]] = {}
    for row in read_rows(path, COLUMNS):
        curves.setdefault(row["curve"], []).append(row)
    return tuple(_curve(name, points, path) for name, points in curves.items())


def _curve(name: str, rows: Sequence[dict[str, str]], path: Path | str) -> Curve:
    first = rows[0]
    try:
        sizes = tuple(float(row["size_bytes"]) for row in rows)
        times = tuple(float(row["time_seconds"]) for row in rows)
        devices, nodes = int(first["devices"]), int(first["nodes"])
    except (TypeError, ValueError):
        raise InputError(f"{path}: {name}: sizes, times and counts must be numbers") from None
    if any(later <= earlier for earlier, later in pairwise(sizes)):
        raise InputError(f"{path}: {name}: its sizes must rise from row to row")
    if min(*sizes, *times, devices - 1) <= 0:
        raise InputError(f"{path}: {name}: sizes and times must be positive, devices at least two")
    if first["operation"] not in OPERATIONS or first["span"] not in SPANS:
        raise InputError(
            f"{path}: {name}: the operation must be one of {', '.join(OPERATIONS)} and the span"
            f" one of {', '.join(SPANS)}; got {first['operation']} and {first['span']}"
        )
    machine = machines.get(first["machine"]).key
    texts = {name: first[name] for name in ("operation", "span", "software", "source")}
    return Curve(name, machine, devices=devices, nodes=nodes, sizes=sizes, times=times, **texts)


@cache
def _stored() -> tuple[Curve, ...]:
    return load()


@lru_cache(maxsize=2**10)
def of_engine(sums: Sums) -> Curve:
    """The curve of an engine's own sums, which are all-reduces in a domain.

    >>> print(of_engine(engine_sums.sums_of("l40s", "vllm", 4)).software)
    vLLM 0.22.0
    """
    machine_key = machines.of(hardware.get(sums.device)).key
    sizes = tuple(float(sums.smallest * 2**number) for number in range(len(sums.times)))
    program = f"{software.get(sums.program).name} {sums.version}"
    counts = sums.devices, 1
    return Curve(
        str(sums), machine_key, "all_reduce", *counts, "domain", program, SOURCE, sizes, sums.times
    )


@cache
def _of_usual_engines() -> tuple[Curve, ...]:
    """The sums of the engine that usually serves, where no library was timed on such links."""
    fabrics = {curve.place.fabric for curve in _stored()}
    groups = dict.fromkeys((sums.device, sums.devices) for sums in engine_sums.load())
    made = []
    for key, devices in groups:
        device = hardware.get(key)
        machine = machines.of(device)
        usual = software.meant(None, device.key, device.measured_as, device.name)
        newest = engine_sums.sums_of(key, usual.key, devices, usual.version)
        if newest is not None and devices <= machine.domain and machine.fabric not in fabrics:
            made.append(of_engine(newest))
    return tuple(made)


def get(name: str) -> Curve:
    """The stored curve of that name.

    >>> get("allreduce-8xh100-dgxc").devices
    8
    """
    curves = {curve.name: curve for curve in _stored()}
    if name not in curves:
        raise InputError(f"no curve is called {abbreviated(name)}; `load()` has them all")
    return curves[name]


def curves_of(operation: str, machine: Machine, span: str) -> tuple[Curve, ...]:
    """The stored curves of an operation on a machine, without single points.

    >>> from calc import machines
    >>> [curve.source for curve in curves_of("all_reduce", machines.get("dgx-h100"), "domain")]
    ['nvidia2026dgxcloud', 'azure2024benchmarking']
    """
    key = operation, machine.key, span
    return tuple(
        curve
        for curve in _stored()
        if (curve.operation, curve.machine, curve.span) == key and len(curve.sizes) >= SIZES
    )


def times(
    operation: str, size: float, devices: int, machine: Machine, without: str = ""
) -> list[float]:
    """Seconds by the curves that are most like what is asked for.

    Those of the operation on that machine come first, then those of the machine most like it; of
    these count the curves of the nearest number of domains. An all-gather takes as long as a
    reduce-scatter, and half of an all-reduce where no switch makes its sums. Where a curve begins
    above the size, the next best goes on below it, scaled to meet it, so that no size makes a jump.
    The curve, or all curves of the source, `without` is left out.

    >>> from calc import machines
    >>> [f"{seconds:.3g}" for seconds in times("all_reduce", 2**30, 8, machines.get("dgx-h100"))]
    ['0.00403', '0.00403']
    """
    return [seconds for seconds, _ in predicted(operation, size, devices, machine, without)]


def predicted(
    operation: str, size: float, devices: int, machine: Machine, without: str = ""
) -> list[Predicted]:
    """Return what `times` says, each time with the curves that it was made of.

    >>> from calc import machines
    >>> [(_, [curve])] = predicted("all_reduce", 2**30, 64, machines.get("dgx-h200"))
    >>> curve.machine, curve.domains
    ('dgx-h100', 8)
    """
    ranked, alike = _like(operation, devices, machine, without)
    return [_joined(curve, ranked, operation, size, devices, machine, without) for curve in alike]


def _kind_of(machine: Machine) -> str:
    """The kind of links within a domain; a switch is its vendor's."""
    vendor = f"{machine.device.name.split()[0]}'s " if machine.fabric == "switch" else ""
    return f"{vendor}{machine.fabric}"


@lru_cache(maxsize=2**12)
def _pool(devices: int, machine: Machine, without: str) -> tuple[Curve, ...]:
    """The curves of the same span, in a domain over links of the same kind."""
    span = "domain" if devices <= machine.domain else "across"
    return tuple(
        curve
        for curve in (*_stored(), *_of_usual_engines())
        if curve.span == span
        and len(curve.sizes) >= SIZES
        and without not in (curve.name, curve.source)
        and (span == "across" or _kind_of(curve.place) == _kind_of(machine))
    )


@lru_cache(maxsize=2**12)
def has_links_of(curve: Curve, devices: int, machine: Machine) -> bool:
    """Return whether a curve's links are those of a machine, whose messages it times then.

    >>> curve = get("allreduce-8xh100-dgxc")
    >>> [has_links_of(curve, 8, machines.get(key)) for key in ("dgx-h200", "dgx-b200")]
    [True, False]
    """
    theirs, inside = curve.place, devices <= machine.domain
    if theirs.key == machine.key:
        return True
    names = ("bandwidth",) if inside else ("bandwidth", "ports", "domain")
    alike = all(getattr(theirs, name) == getattr(machine, name) for name in names)
    return alike and (inside or _share_network(theirs, machine))


@lru_cache(maxsize=2**12)
def _like(
    operation: str, devices: int, machine: Machine, without: str
) -> tuple[tuple[Curve, ...], tuple[Curve, ...]]:
    """The curves that tell something of a collective, the most alike first, and the first of these.

    Sizes do not count, so that a search asks once for all of them.
    """
    span = "domain" if devices <= machine.domain else "across"
    candidates = [
        curve
        for curve in _pool(devices, machine, without)
        if operation == "all_reduce" or not _summed_in_switch(curve)
    ]
    needed = ("bandwidth",) if span == "domain" else ("bandwidth", "ports")
    if not candidates or not all(map(machine.publishes, needed)):
        raise NotMeasured(
            f"{operation} {SPANS[span]} of {machine.name} was not measured:"
            " calc/data/measured/collectives.csv has no curve of it, nor one of a machine with"
            f" links of its kind, {_kind_of(machine)}, so nothing is expected of it beyond the"
            " bound of `communication.least_time`"
        )
    most = _most_measured(operation)
    if span == "across" and devices > FARTHEST * most:
        raise NotMeasured(
            f"{operation} of {devices} devices was not measured: the largest such collective in"
            f" calc/data/measured/collectives.csv, of any machine, has {most}, so nothing is"
            f" expected of more than {FARTHEST} times as many"
        )
    distances = {curve: _distance(curve, operation, devices, machine) for curve in candidates}
    ranked = tuple(sorted(candidates, key=distances.__getitem__))
    return ranked, tuple(curve for curve in ranked if distances[curve] == distances[ranked[0]])


def farthest(operation: str) -> int:
    """The most devices of which anything is said of a collective across domains.

    >>> farthest("all_gather")
    800
    """
    return FARTHEST * _most_measured(operation)


@cache
def _most_measured(operation: str) -> int:
    return max(curve.devices for curve in _stored() if _kind(curve.operation) == _kind(operation))


def _joined(
    curve: Curve,
    ranked: Sequence[Curve],
    operation: str,
    size: float,
    devices: int,
    machine: Machine,
    without: str,
) -> Predicted:
    """Seconds by a curve and, below where it begins, by the best that begins lower.

    A curve of other links tells what links take alone; what they do not take, all tell. Else that
    one is scaled to meet it, by the less the shorter an array is: of short ones the latency
    counts, which the lower curve alone knows.
    """
    if not has_links_of(curve, devices, machine):
        start = _started(operation, size, devices, machine, without)
        return _moved(curve, operation, size, devices, machine) + start, (curve,)
    if curve.reaches(size):
        return _scaled(curve, operation, size, devices, machine), (curve,)
    first = curve.sizes[0]
    lower = next((other for other in ranked if other.sizes[0] < first), None)
    if lower is None:
        raise NotMeasured(
            f"{operation} on {machine.name} is expected by {curve.name}, and no curve goes below"
            f" the {first:g} byte at which that begins; got {size:g} byte"
        )
    begin = _scaled(curve, operation, first, devices, machine)
    (there, _), (below, used) = (
        _joined(lower, ranked, operation, point, devices, machine, without)
        for point in (first, size)
    )
    return below * (begin / there) ** (size / first), (curve, *used)


def _scaled(curve: Curve, operation: str, size: float, devices: int, machine: Machine) -> float:
    """Seconds of a size on other devices than those of a curve, whose links are those of the curve.

    What links take is in proportion to what a byte takes at least; what they do not take grows with
    the rounds. What goes once around a ring takes half of a sum that goes around twice.
    """
    if _is_half(curve, operation):
        return _scaled(curve, "all_reduce", size, devices, machine) / 2
    rounds = _rounds(operation, devices, machine) / _rounds_of(curve)
    there = curve.time(size)
    start = min(there, curve.start(size))
    return rounds * start + _longer(curve, operation, devices, machine) * (there - start)


def _moved(curve: Curve, operation: str, size: float, devices: int, machine: Machine) -> float:
    """Seconds that links take of a size, by the share of theirs that a curve reaches at most."""
    if _is_half(curve, operation):
        return _moved(curve, "all_reduce", size, devices, machine) / 2
    return _longer(curve, operation, devices, machine) * curve.pace(size) * size


def _longer(curve: Curve, operation: str, devices: int, machine: Machine) -> float:
    """Return how many times as long as on a curve's own devices links take at least."""
    own = _pace(curve.operation, curve.devices, curve.place)
    return _pace(operation, devices, machine) / own


def _started(operation: str, size: float, devices: int, machine: Machine, without: str) -> float:
    """Seconds that links do not take: the geometric mean of curves, round by round."""
    logs = sure = 0.0
    telling = _telling(operation, devices, machine, without)
    for curve, weight, share in telling:
        weight *= curve.tells(size)
        if weight:
            sure += weight
            logs += weight * math.log(share * curve.start(size))
    if not sure:
        least = min(curve.sizes[0] for curve, *_ in telling)
        raise NotMeasured(
            f"{operation} on {machine.name} is expected by curves of other machines, none of which"
            f" goes below the {least:g} byte at which they begin; got {size:g} byte"
        )
    return math.exp(logs / sure)


@lru_cache(maxsize=2**12)
def _telling(
    operation: str, devices: int, machine: Machine, without: str
) -> tuple[tuple[Curve, float, float], ...]:
    """Return curves with the weight of their starts, and the share that each is of theirs.

    A start does not know how fast links are, but which network they lead to, and what is done.
    """
    rounds, across = _rounds(operation, devices, machine), devices > machine.domain
    telling = []
    for curve in _pool(devices, machine, without):
        weight = 1.0
        if across and not _share_network(curve.place, machine):
            weight *= FOREIGN
        if _kind(curve.operation) != _kind(operation):
            goes_twice = curve.operation == "all_reduce" and not _summed_in_switch(curve)
            weight *= FOREIGN**3 if goes_twice else FOREIGN**2
        passes = 2 if _is_half(curve, operation) else 1
        telling.append((curve, weight, rounds / _rounds_of(curve) / passes))
    return tuple(telling)


def _is_half(curve: Curve, operation: str) -> bool:
    """Return whether a curve is of a ring's sum, of which the operation is one of two passes."""
    is_sum = curve.operation == "all_reduce" and not _summed_in_switch(curve)
    return is_sum and _kind(operation) == "along a ring"


def _share_network(one: Machine, other: Machine) -> bool:
    """Return whether the ports of both may lead to a network of one kind."""
    return not one.network or not other.network or bool(set(one.network) & set(other.network))


def _rounds(operation: str, devices: int, machine: Machine) -> float:
    """Messages one after the other: one in a domain, else along a ring of hosts, or a tree."""
    if devices <= machine.domain or operation == "send":
        return 1.0
    hosts = hosts_of(devices, machine)
    return 1 + math.log2(hosts) if operation in ("all_reduce", "broadcast") else float(hosts)


def _rounds_of(curve: Curve) -> float:
    return _rounds(curve.operation, curve.devices, curve.place)


def hosts_of(devices: int, machine: Machine) -> int:
    """Return the hosts of so many devices, which share them out as domains do.

    >>> hosts_of(128, machines.get("gb200-nvl72")), hosts_of(64, machines.get("dgx-h100"))
    (32, 8)
    """
    domains = domains_of(devices, machine)
    inside = devices // domains
    return domains * math.ceil(inside / (machine.host_devices or inside))


def _pace(operation: str, devices: int, machine: Machine) -> float:
    """Seconds that a byte takes at the published bandwidth, by the algorithm that libraries use.

    A ring through all devices, but for a sum: that is made in each domain while those of devices in
    the same place are made between the domains, and the longer of both counts. Where a switch makes
    the sums, each device sends its array once, however many there are.
    """
    if operation != "all_reduce":
        return traffic(operation, devices) / published(operation, devices, machine)
    domains = domains_of(devices, machine)
    inside = devices // domains
    pace = 0.0
    if inside > 1:
        sent = 1.0 if machine.sums_in_switch else traffic(operation, inside)
        pace = sent / published(operation, inside, machine)
    if domains > 1:
        ports = float(machine.ports.m_as("byte/s"))
        pace = max(pace, traffic(operation, domains) / (inside * ports))
    return pace


def domains_of(devices: int, machine: Machine) -> int:
    """The fewest domains that so many devices fill with as many in each.

    >>> domains_of(1024, machines.get("gb200-nvl72"))
    16
    """
    # Looked for in one domain, which is small: of devices there may be as many as one likes.
    insides = range(min(machine.domain, devices), 0, -1)
    return devices // next(inside for inside in insides if devices % inside == 0)


def _summed_in_switch(curve: Curve) -> bool:
    """Return whether a switch made a curve's sums, which tells nothing of moves without."""
    return curve.operation == "all_reduce" and curve.place.sums_in_switch


@lru_cache(maxsize=2**10)
def published(operation: str, devices: int, machine: Machine) -> float:
    """The bandwidth of a device, in byte/s, that a ring through the domains has at most.

    In a mesh the links to those devices carry it that take part, and the one to its receiver what a
    device sends. Across domains each one's ports work side by side; of an all-to-all only what
    leaves a domain crosses them, and what devices send to their like in another each its own.

    >>> published("all_reduce", 8, machines.get("dgx-h100"))
    450000000000.0
    """
    bandwidth = float(machine.bandwidth.m_as("byte/s"))
    if devices <= machine.domain:
        links = (1 if operation == "send" else devices - 1) / (machine.domain - 1)
        return bandwidth * links if machine.fabric == "mesh" else bandwidth
    inside = devices / domains_of(devices, machine)
    ports = float(machine.ports.m_as("byte/s"))
    if operation == "all_to_all":
        return min(bandwidth, ports * (devices - 1) / (devices - inside))
    if operation == "send":
        return min(bandwidth, ports)
    return min(bandwidth, ports * inside)


def whole_curves() -> list[Curve]:
    """The whole curves of switches: of a mesh there is one alone.

    >>> {curve.place.fabric for curve in whole_curves()}
    {'switch'}
    """
    whole = [curve for curve in _stored() if len(curve.sizes) > SIZES]
    return [curve for curve in whole if curve.place.fabric == "switch"]


@dataclass(frozen=True)
class Spread:
    """Factors of what is expected of a size between which 80 % of measured times lie."""

    below: float
    """Bytes below which it holds."""
    points: int
    sources: int
    median_error: float
    low: float
    high: float


@cache
def spreads() -> tuple[Spread, ...]:
    """Return the spreads of short, middling and long arrays, from sources that were left out.

    `python -m benchmarks.collectives` writes the file.

    >>> [spread.below for spread in spreads()]
    [1000000.0, 16000000.0, inf]
    """
    columns = tuple(Spread.__dataclass_fields__)
    return tuple(
        Spread(
            float(row["below"]),
            int(row["points"]),
            int(row["sources"]),
            *(float(row[name]) for name in columns[3:]),
        )
        for row in read_rows(SPREADS, columns)
    )


def spread(curve: Curve, size: float) -> tuple[float, float]:
    """Return the factors of what a curve lets expect of a size between which 80 % lie.

    Of a library these are of all sources, each left out and predicted from the others, and differ
    by the size alone. An engine's sums are predicted from those of its version before. Servers
    differ most over PCIe, where cards reach one another or go through the host: there counts how
    far all engines' sums on the same cards are from the one that is taken.

    >>> low, high = spread(get("allreduce-8xh100-dgxc"), 2**30)
    >>> low < 1 < high
    True
    """
    if curve.place.fabric == "pcie" or curve.source == SOURCE:
        off = _off_over_pcie() if curve.place.fabric == "pcie" else _off_of_engines()
        return 1 / (1 + off), 1 + off
    of_size = next(each for each in spreads() if size < each.below)
    return of_size.low, of_size.high


@cache
def _off_over_pcie() -> float:
    errors: dict[tuple[str, tuple[float, ...]], float] = {}  # the same sums count once
    for curve in _of_usual_engines():
        for other in map(of_engine, engine_sums.load()):
            same = (other.machine, other.devices) == (curve.machine, curve.devices)
            if same and other.times != curve.times:
                ratio = _ratio(other, curve)
                errors[curve.name, other.times] = max(ratio, 1 / ratio) - 1
    return _four_of_five(errors.values())


@cache
def _off_of_engines() -> float:
    versions: dict[tuple[str, str, int], list[Sums]] = {}
    for sums in engine_sums.load():
        versions.setdefault((sums.device, sums.program, sums.devices), []).append(sums)
    return _four_of_five(
        abs(_ratio(of_engine(before), of_engine(after)) - 1)
        for several in versions.values()
        for before, after in pairwise(sorted(several, key=lambda one: number_of(one.version)))
        if before.times != after.times  # where it was measured again
    )


def _ratio(one: Curve, other: Curve) -> float:
    """The time by one curve over that of another, in the median over the sizes of this."""
    long = [size for size in other.sizes if size >= COMPARED_FROM]
    return median(one.time(size) / other.time(size) for size in long)


def _four_of_five(errors: Iterable[float]) -> float:
    ranked = sorted(errors)
    return ranked[math.ceil(0.8 * len(ranked)) - 1]


def off_by_nearest(curve: Curve) -> float:
    """The error of the curves that `times` finds without it.

    >>> print(f"{off_by_nearest(get('allreduce-8xh100-dgxc')):.3f}")
    0.004
    """
    key = curve.devices, curve.place, curve.name

    def nearest(size: float) -> float:
        return _share(curve, size, geometric_mean(times(curve.operation, size, *key)))

    return error(curve, nearest)


def _share(curve: Curve, size: float, time: float) -> float:
    bandwidth = published(curve.operation, curve.devices, curve.place)
    return traffic(curve.operation, curve.devices) * size / time / bandwidth


def shares(curve: Curve) -> list[tuple[float, float]]:
    """Sizes, and the share of the published bandwidth at each.

    >>> size, share = shares(get("allreduce-8xh100-dgxc"))[-1]
    >>> print(f"{size / 2**30:.0f} GiB: {share:.2f}")
    16 GiB: 1.07
    """
    return [
        (size, _share(curve, size, time))
        for size, time in zip(curve.sizes, curve.times, strict=True)
        if size >= COMPARED_FROM
    ]


def _kind(operation: str) -> str:
    """Gathers, scatters and broadcasts go along rings, sums along trees too, and pairs exchange.

    A library's all-to-all is a send from each to each.
    """
    if operation in ("all_to_all", "send"):
        return PAIRS
    return operation if operation == "all_reduce" else "along a ring"


def _distance(curve: Curve, operation: str, devices: int, machine: Machine) -> tuple[float, ...]:
    """Return how far a curve is from what is asked for: an earlier difference counts first.

    All-to-alls are like each other alone. A machine's own sum consists of two gathers, but gathers
    tell nothing of a sum whose array is short: their latency grows with the length of a ring. Last,
    of another machine's curves those of long arrays alone stand behind, and of one span those of
    another number of devices.
    """
    other, theirs = curve.machine != machine.key, curve.place
    kinds = {_kind(curve.operation), _kind(operation)}
    own_halves = curve.operation == "all_reduce" and not other and PAIRS not in kinds
    unlike = len(kinds) > 1 and not own_halves
    ratios: list[Quantity | float]
    if devices > machine.domain:
        ratios = [
            machine.ports / theirs.ports,
            machine.bandwidth / theirs.bandwidth,
            machine.domain / theirs.domain,
        ]
    else:
        there = published(curve.operation, curve.devices, theirs)
        ratios = [published(operation, devices, machine) / there]
    unequal = sum(abs(math.log(ratio)) for ratio in ratios)
    renamed = curve.operation != operation
    apart = abs(math.log(curve.domains / domains_of(devices, machine)))
    long_alone = other and not curve.reaches(COMPARED_FROM)
    fewer = abs(math.log(curve.devices / devices)) if devices <= machine.domain else 0.0
    last = long_alone, fewer
    return PAIRS in kinds and unlike, unlike, other, unequal, renamed, apart, *last


def error(curve: Curve, predicted: Fit) -> float:
    """The median error of times by predicted shares, to which times are inversely proportional.

    >>> curve = get("allreduce-8xh100-dgxc")
    >>> print(f"{error(curve, lambda size: 1):.2f}")
    0.35
    """
    return median(abs(share / predicted(size) - 1) for size, share in shares(curve))
