"""Communication: how long a machine takes for a collective, its bound and what curves let expect.

The bound is that of the best algorithm of `laws/collectives.py` at published bandwidths, within a
domain and between domains; what is expected is read off measured curves, `curves.py`, or off an
engine's own sums, `measured.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import product
from statistics import geometric_mean
from typing import Any

from calc.catalog import constants, intervals, machines, software as programs
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.intervals import Around, around, signed
from calc.catalog.kernel_shares import SOURCE
from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.software import Software
from calc.core.arguments import check_shapes, truth, whole_number, whole_numbers
from calc.core.arrays import Number
from calc.core.citations import citation
from calc.core.elementwise import ceiling, largest, of_each, smallest, where
from calc.core.errors import InputError, abbreviated
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import collectives, links
from calc.laws.experts import experts_used
from calc.steps import curves, measured
from calc.steps.curves import Curve
from calc.steps.job import BYTE, SECOND


@dataclass(frozen=True, repr=False)
class CollectiveTime(Answer):
    """A collective on a machine: the bound of its time, what is expected of it, and by whom."""

    _SENTENCES = (("whose", "Curves"), ("assumptions", "Assumed"))

    operation: str
    size: Quantity
    devices: int
    machine: Machine
    software: Software | None
    """The program whose own sums count, where some were measured; None for libraries'."""
    lower: Quantity
    """Bound by published bandwidths and the best algorithm, without any latency: nothing is faster
    that does no reductions in the switches between the domains."""
    algorithm: str
    expected: Quantity | None
    """Time by the curves that were measured on that machine, or else on the machine with links of
    its kind that is most like it; None where there is none. `measured` has the curves."""
    upper: Quantity | None
    """Time by the slowest of these curves: where there is one, the same as what is expected."""
    measured: tuple[Curve, ...] = ()
    """The curves of which the expectation is made; none where it is made of published rates."""
    missing: str = ""
    fastest: Quantity | None = None
    """Time by the fastest of these curves, as `upper` is by the slowest."""

    def __repr__(self) -> str:
        return f"<{self.answer}>"

    @property
    def around(self) -> Around | None:
        """Return where 80 % lie of what was left out and expected from other sources."""
        if self.expected is None or not self.measured:
            return None
        return around(self.expected, *self._spread, self.lower)

    @property
    def _spread(self) -> tuple[float, float]:
        """The spread of sources left out, or of its own curves where they are farther apart."""
        low, high = self._of_class
        fastest, slowest = self._ends
        return min(low, fastest), max(high, slowest)

    @property
    def _of_class(self) -> tuple[float, float]:
        return curves.spread(self.measured[0], self.size.m_as("byte"))

    @property
    def _ends(self) -> tuple[float, float]:
        """Times by the fastest and the slowest of its curves, over what is expected."""
        assert self.expected is not None
        assert self.fastest is not None
        assert self.upper is not None
        fastest, slowest = (one / self.expected for one in (self.fastest, self.upper))
        return float(fastest.m_as("")), float(slowest.m_as(""))

    @property
    def _contradict(self) -> bool:
        """Return whether sources of one collective are farther apart than its spread allows."""
        if not self.measured:
            return False
        low, high = self._of_class
        fastest, slowest = self._ends
        return fastest < low or slowest > high

    @property
    def interval(self) -> tuple[Quantity, Quantity] | None:
        return None if self.around is None else self.around.ends

    @property
    def needed(self) -> Quantity:
        """Return what is expected, for what cannot go on without, or raise what is missing."""
        if self.expected is None:
            raise NotMeasured(self.missing)
        return self.expected

    @property
    def elsewhere(self) -> list[str]:
        """Say what its times are of where it is not this machine: others, and their network."""
        if self.expected is not None and self.devices > 1 and not self.measured:
            return [f"published bandwidths, and {constants.latency_ici_hop} a hop as TPUs have"]
        others = {curve.machine: curve.place for curve in self.measured}
        return [
            f"{other.name}{self._network(other)}"
            for key, other in others.items()
            if key != self.machine.key
        ]

    @property
    def by(self) -> str:
        """The clause that says whose times they are, where they are no library's on the machine."""
        engines = dict.fromkeys(curve.software for curve in self.measured if curve.source == SOURCE)
        by = f" by {' and '.join(engines)}" if engines else ""
        whose = f" as {'on ' if self.measured else 'of '}{', '.join(self.elsewhere)}"
        return f"{by}{whose if self.elsewhere else ''}"

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys of references.bib: of its curves, or of what a hop takes."""
        hop = constants.latency_ici_hop.provenance
        assert hop is not None
        return tuple(dict.fromkeys(c.source for c in self.measured)) or (hop.source,)

    def _network(self, other: Machine) -> str:
        """Say that a curve of another machine is of another network, where it is."""
        theirs, ours = other.network, self.machine.network
        inside = self.devices <= self.machine.domain
        if inside or not theirs or not ours or set(theirs) & set(ours):
            return ""
        return f" over {' or '.join(theirs)}, not {' or '.join(ours)}"

    @property
    def basis(self) -> str:
        """Return what it stands on: measured rates, rates of kin, published peaks alone."""
        if self.expected is None:
            return intervals.PEAKS
        is_exact = self.measured or self.devices == 1
        return intervals.KIN if self.elsewhere or not is_exact else intervals.MEASURED

    @property
    def answer(self) -> str:
        time = f"at least {self.lower}" if self.expected is None else str(self.expected)
        what = self.operation.replace("_", "-")
        return f"{what} of {self.size} over {self.devices} devices of {self.machine.name}: {time}"

    @property
    def stands_on(self) -> str:
        if self.expected is None:
            return f"BOUND ONLY, {intervals.PEAKS}: {self.missing.partition(': ')[0]}"
        software = " and ".join(dict.fromkeys(curve.software for curve in self.measured))
        elsewhere = f" as on {', '.join(self.elsewhere)}" if self.elsewhere else ""
        if self.devices == 1:
            return f"{self.basis}: one device alone sends nothing"
        if not self.measured:
            return f"{self.basis}: {self.by.strip()}, since no message of a torus was measured"
        low, high = self._spread
        whose = (
            "its sources and 80% of those left out"
            if self._contradict
            else "80% of sources left out"
        )
        spread = f"{whose} in {signed(low)} … {signed(high)}%"
        cut = intervals.cuts({"it": self.around})
        return f"{self.basis} of messages{elsewhere} by {software}; {spread}{cut}"

    @property
    def chosen(self) -> tuple[str, ...]:
        return (f"the bound is that of {self.algorithm}",)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return where its curves contradict one another, and what an engine's own sums take."""
        return (*self._apart(), *self._of_engine())

    def _apart(self) -> tuple[str, ...]:
        if not self._contradict:
            return ()
        names = " and ".join(dict.fromkeys(curve.name for curve in self.measured))
        return (
            f"Sources contradict one another, {names}: {self.fastest} by one and {self.upper} by"
            " another; the range holds both.",
        )

    def _of_engine(self) -> tuple[str, ...]:
        if self.operation != "all_reduce" or self.software is not None:
            return ()
        device = self.machine.device
        usual = programs.meant(None, device.key, device.measured_as, device.name)
        sums = measured.sums(self.machine, usual, self.devices)
        if sums is None or sums in self.measured:
            return ()
        seconds = sums.time(self.size.m_as("byte"))
        return (
            f"Engines have sums of their own: {sums.software} takes {quantity(seconds, 's')}, with"
            f" software {usual.key}.",
        )

    @cached_property
    def tables(self) -> list[Table]:
        rows = [("", "time", "80% of times", "bus bandwidth")]
        for title, time in (("at least", self.lower), ("expected", self.expected)):
            if time is not None:
                around = self.around if time is self.expected else None
                sent = curves.traffic(self.operation, self.devices) * self.size.to("GB")
                rate = str(sent / time.to("s")) if time.magnitude else "–"
                rows.append((title, str(time), around.told() if around else "", rate))
        return [Table(rows)]

    @property
    def whose(self) -> list[str]:
        """Each curve of which the expectation is made, with its source."""
        return [
            f"the {curve.operation.replace('_', '-')} of {curve.devices} devices of"
            f" {curve.place.name}{self._network(curve.place)} by {curve.software}"
            + (", scaled by published bandwidths" if curve.machine != self.machine.key else "")
            + ("" if self._links_of(curve) else ", its start the mean of what all curves tell")
            + f": {citation(curve.source)}"
            for curve in self.measured
        ]

    def _links_of(self, curve: Curve) -> bool:
        return curve.source == SOURCE or curves.has_links_of(curve, self.devices, self.machine)

    def _assumptions(self) -> Iterator[str]:
        yield (
            f"The bound takes published bandwidths of {self.algorithm}, and no latency; devices"
            " take up as few domains as hold them, and as many of each."
        )
        if self.missing:
            yield self.missing
        elif self.software is None:
            yield "Where no software is named, times are those of vendors' libraries, if measured."

    @cached_property
    def facts(self) -> dict[str, object]:
        return {
            **self.headline,
            **values(self, "operation size devices lower expected interval upper algorithm"),
            "machine": self.machine.key,
            "software": None if self.software is None else self.software.key,
            **values(self, "basis missing"),
            "interval": None if self.around is None else self.around.facts,
            "curves": [values(curve, CURVE) for curve in self.measured],
        }


CURVE = "name machine operation devices software source"


@understood
def time(
    operation: str,
    size: QuantityLike,
    devices: int,
    machine: Machine | Accelerator | str,
    software: Software | str | None = None,
) -> CollectiveTime:
    """Time of a collective of so many devices on a machine: its bound, and what is expected.

    A size is that of the whole array, of an all-to-all what one device holds. In a send all devices
    form pairs or a ring, and each hands one message to one other: a neighbour or, across domains,
    its like in another. Devices take up as few domains as hold them, and as many of each.

    Within a domain the start-up is that of the measured number of devices, mostly eight. Two or
    four start sooner, and engines that serve models sum arrays below about a megabyte by kernels
    of their own, in one shot: see collectives.one_shot_all_reduce.

    Parameters
    ----------
    software
        an engine whose own sums count where they were measured, "vllm"; vendors' libraries where it
        is left out

    Examples
    --------
    >>> found = time("all_reduce", "1 GiB", 8, "dgx-h100")
    >>> print(found.lower, found.expected, found.algorithm)
    2.386 ms 4.029 ms sums in the switch
    >>> print(*(time("all_reduce", "64 kB", 8, "h100", of).expected for of in (None, "vllm")))
    28.58 µs 6.371 µs
    """
    amount, host = _asked(operation, size, machine)
    if amount.ndim:
        raise InputError(f"what is expected of a collective is of one size; got {amount}")
    count = whole_number("devices of a collective", devices)
    if isinstance(software, str):
        one = host.device
        software = programs.meant(software, one.key, one.measured_as, one.name)
    lower, algorithm = _lower(operation, amount, count, host)
    asked = operation, amount, count, host, software, lower, algorithm
    try:
        expected, ends, used = _expected(operation, amount.m_as("byte"), count, host, software)
    except NotMeasured as error:
        return CollectiveTime(*asked, None, None, missing=str(error))
    fastest, slowest = (quantity(end, "s") for end in ends)
    return CollectiveTime(*asked, quantity(expected, "s"), slowest, used, fastest=fastest)


def seconds(
    operation: str, size: float, devices: int, machine: Machine, software: Software | None = None
) -> float:
    """Return what is expected of `time`, as bare seconds for bare bytes.

    >>> print(f"{seconds('all_reduce', 2**20, 8, machines.get('dgx-h100')):.2e}")
    3.39e-05
    """
    return _expected(operation, size, devices, machine, software)[0]


def _expected(
    operation: str, size: float, devices: int, machine: Machine, software: Software | None
) -> tuple[float, tuple[float, float], tuple[Curve, ...]]:
    """Seconds that are expected, those by the fastest and the slowest curve, and the curves.

    An engine's own sums come first, then libraries' curves; on a torus nobody has measured either.
    """
    if devices == 1:
        return 0.0, (0.0, 0.0), ()
    least = _seconds_per_byte(operation, machine, devices) * size
    if software is not None and operation == "all_reduce":
        sums = measured.sums(machine, software, devices)
        if sums is not None:
            alone = max(least, sums.time(size))
            return alone, (alone, alone), (sums,)
    if machine.fabric == "torus" and devices <= machine.domain:
        # A message to a neighbour takes the link there, which is fewer than all that the bound has.
        moved = size / _link(machine).m_as("byte/s") if operation == "send" else least
        with_hops = moved + _hops(operation, devices, machine) * HOP
        return with_hops, (with_hops, with_hops), ()
    predicted = curves.predicted(operation, size, devices, machine)
    times = [time for time, _ in predicted]
    used = {curve.name: curve for _, several in predicted for curve in several}
    # Which the curve of another operation may promise to beat.
    expected = max(least, min(geometric_mean(times), max(times)))
    return expected, (min(expected, *times), max(expected, *times)), tuple(used.values())


HOP = constants.latency_ici_hop.m_as("s")


def _hops(operation: str, devices: int, machine: Machine) -> int:
    """Links one after the other along the axes of a torus, twice as many where sums come back."""
    if operation == "send":
        return 1
    ways = 2 if machine.wraparound else 1
    farthest = sum(max(1, side // ways) for side in _slice(devices, machine) if side > 1)
    return (2 if operation == "all_reduce" else 1) * farthest


def least_time(
    operation: str, size: QuantityLike, devices: QuantityLike, machine: Machine | Accelerator | str
) -> Quantity:
    """The lower bound of `time` alone; sizes and numbers of devices may be arrays.

    It knows no latency, so that it grows with the size.

    >>> print(least_time("all_reduce", "1 GiB", 8, "dgx-h100"))
    2.386 ms
    >>> print(least_time("all_reduce", quantity([1, 2], "GiB"), 8, "dgx-h100"))
    [0.00238609 0.00477219] s
    """
    amount, host = _asked(operation, size, machine)
    pace = seconds_per_byte(operation, devices, host)
    seconds: Number = pace * amount.m_as("byte")
    return SECOND * seconds


def sending(devices: Number, machine: Machine) -> Quantity:
    """Bandwidth at which a device sends to one other of so many: over the fabric, or its ports.

    >>> print(sending(8, machines.get("dgx-h100")), sending(16, machines.get("dgx-h100")))
    450 GB/s 400 Gbit/s
    """
    host = machines.of(machine).hosted
    count = whole_numbers("devices", quantity(devices).m_as(""))
    if largest(count) <= host.domain:
        return host.bandwidth
    if smallest(1.0 * count) > host.domain:  # of whole numbers too
        return host.ports
    inside, outside = (one.m_as("byte/s") for one in (host.bandwidth, host.ports))
    return quantity(where(count <= host.domain, inside, outside), "byte/s")


def expert_exchange(machine: Machine, size: Quantity, devices: Number) -> tuple[Quantity, Quantity]:
    """Least and expected time of sending so many bytes of tokens to their experts, or back.

    Libraries' all-to-alls take some times as long for messages as short as those of a decode: to be
    expected is the start-up of kernels made for it, on top of what bandwidths say at least.

    >>> from calc import machines
    >>> for time in expert_exchange(machines.get("dgx-h100"), quantity("14.68 MB"), 64):
    ...     print(time.to("us"))
    256.9 µs
    300.9 µs
    """
    least = least_time("all_to_all", size, devices, machine)
    return least, least + constants.latency_expert_exchange * (1 if devices > 1 else 0)


def copies_of_a_token(machine: Machine, chosen: int, devices: Number, slices: Number = 1) -> Number:
    """Devices, or domains where there are several, that hold at least one of its chosen experts.

    No kernel sends a token more often than once to each of them, whose links or ports it crosses.
    Experts are chosen at random; so many slices of each lie beside one another.

    >>> h100 = machines.get("dgx-h100")
    >>> print(f"{copies_of_a_token(h100, 8, 8):.3f} {copies_of_a_token(h100, 8, 64):.3f}")
    5.251 5.251
    """
    domain = machines.of(machine).hosted.domain
    counts = {"devices of an exchange": quantity(devices), "slices of an expert": quantity(slices)}
    check_shapes(counts)
    count, parts = (whole_numbers(name, amount.m_as("")) for name, amount in counts.items())
    domains = ceiling(count * parts / domain)
    places = where(domains > 1, domains, count)
    copies: Number = experts_used(places, 1 / places, chosen).m_as("")
    return copies


def crossings(chosen: Number, devices: int, domains: int, each: bool, most: int = 0) -> Number:
    """Return how often a token's vector crosses the slowest fabric, links or ports, on average.

    It goes to so many chosen experts at random: `each` copy by itself, or once to a device, or to a
    domain where there are several. Routing may be limited to experts of so many domains at `most`.

    >>> print(crossings(8, 8, 1, each=True), f"{crossings(8, 8, 1, each=False):.3f}")
    7.0 4.595
    """
    count = whole_number("devices of an exchange", devices)
    parts = whole_number("domains of an exchange", domains)
    limit = whole_number("domains of a token", most, at_least=0)
    places, open_to = (parts, min(parts, limit or parts)) if parts > 1 else (count, count)
    reached = experts_used(open_to, 1 / open_to, chosen).m_as("")
    copies: Number = quantity(chosen).m_as("") if truth("each", each) else reached
    return copies * (1 - 1 / places)


def seconds_per_byte(operation: str, devices: QuantityLike, machine: Machine) -> Number:
    """The pace of `least_time`, which is in proportion to the size, for each number of devices.

    >>> print(f"{seconds_per_byte('all_reduce', 8, machines.get('dgx-h100')):.2e}")
    2.22e-12
    """
    _check_operation(operation)
    count = whole_numbers("devices of a collective", quantity(devices).m_as(""))
    return of_each(partial(_seconds_per_byte, operation, machines.of(machine).hosted), count)


@lru_cache(maxsize=2**12)
def _seconds_per_byte(operation: str, machine: Machine, devices: float) -> float:
    lower, _ = _lower(operation, BYTE, int(devices), machine)
    return float(lower.m_as("s"))


def _check_operation(operation: Any) -> None:
    if not isinstance(operation, str) or operation not in curves.OPERATIONS:
        listing = ", ".join(curves.OPERATIONS)
        raise InputError(f"a collective is one of {listing}; got {abbreviated(operation)}")


def _asked(operation: Any, size: Any, machine: Any) -> tuple[Quantity, Machine]:
    _check_operation(operation)
    amount = quantity(size)
    positive = smallest(amount) > 0 and largest(amount) < math.inf
    if not amount.is_compatible_with("byte") or not positive:
        raise InputError(f"the size of a collective is positive and in byte; got {size}")
    host = machines.get(machine) if isinstance(machine, str) else machines.of(machine)
    return amount, host.hosted


Bound = tuple[Quantity, str]
MOST_SPREAD = 1.2  # domains over the fewest: jobs leave a few devices of each free, and no more


def _lower(operation: str, size: Quantity, devices: int, machine: Machine) -> Bound:
    """Within a domain its best algorithm; across, the longer of what is done in it and between."""
    if devices == 1:
        return quantity("0 s"), "nothing to send"
    domains = curves.domains_of(devices, machine)
    if domains == 1:
        return _in_domain(operation, size, devices, machine)
    if domains > MOST_SPREAD * (fewest := math.ceil(devices / machine.domain)):
        raise InputError(
            f"{devices} devices do not fill {fewest} domains of {machine.name} evenly, each of"
            f" {machine.domain} at most; give a multiple of {fewest}"
        )
    inside, ports = devices // domains, machine.ports
    if operation == "send":
        return links.transfer_time(size, min(machine.bandwidth, ports)), "a port of each device"
    inner, algorithm = quantity("0 s"), "rings across"
    if inside > 1:
        share = size / domains if operation == "all_to_all" else size
        inner, algorithm = _in_domain(operation, share, inside, machine)
    part = size if operation == "all_to_all" else size / inside
    outer = _RINGS[operation](part, domains, ports)
    return max(inner, outer), f"{algorithm}, in chunks across domains"


def _in_domain(operation: str, size: Quantity, devices: int, machine: Machine) -> Bound:
    if machine.fabric == "torus":
        return _on_torus(operation, size, devices, machine)
    bandwidth = machine.bandwidth
    if machine.fabric == "mesh":  # each link leads to one peer
        bandwidth *= (devices - 1) / (machine.domain - 1)
    if operation == "all_reduce" and machine.sums_in_switch:
        return collectives.in_switch_all_reduce(size, devices, bandwidth), "sums in the switch"
    if operation == "send":
        return links.transfer_time(size, bandwidth), "pairs"
    name = {"all_to_all": "pairs", "broadcast": "chain"}.get(operation, "ring")
    return _RINGS[operation](size, devices, bandwidth), name


def _on_torus(operation: str, size: Quantity, devices: int, machine: Machine) -> Bound:
    """On the slice whose devices have most links, and the shortest sides of these."""
    ways = 2 if machine.wraparound else 1
    sides = _slice(devices, machine)
    used = [side for side in sides if side > 1]
    link = _link(machine)
    name = " × ".join(map(str, sides))
    if operation == "broadcast":
        time = collectives.chain_broadcast(size, devices, ways * len(used) * link)
        return time, f"all links of {name}"
    if operation == "send":
        return links.transfer_time(size, ways * len(used) * link), f"all links of {name}"
    if operation == "all_to_all":
        time = collectives.torus_all_to_all(size, max(used), link * ways / 2)
        return time, f"along the axes of {name}"
    passes = 2 if operation == "all_reduce" else 1
    gathered = collectives.torus_all_gather(size, devices, ways * len(used), link)
    return passes * gathered, f"along the axes of {name}"


def _link(machine: Machine) -> Quantity:
    """The bandwidth of one link of a torus, each way."""
    return machine.bandwidth / (2 * len(machine.sides))


@lru_cache(maxsize=2**10)
def _slice(devices: int, machine: Machine) -> tuple[int, ...]:
    """The sides of a slice of so many devices."""
    several = product(*(range(1, side + 1) for side in machine.sides))
    slices = [sides for sides in several if math.prod(sides) == devices]
    if not slices:
        whole = " × ".join(map(str, machine.sides))
        raise InputError(f"no slice of {machine.name}, {whole}, has {devices} devices")
    return min(slices, key=lambda sides: (sides.count(1), max(sides)))


_RINGS = {
    "all_gather": collectives.ring_all_gather,
    "reduce_scatter": collectives.ring_reduce_scatter,
    "all_reduce": collectives.ring_all_reduce,
    "all_to_all": collectives.all_to_all,
    "broadcast": collectives.chain_broadcast,
}
