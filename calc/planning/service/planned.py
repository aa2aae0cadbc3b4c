"""The numbers of a plan of a service: devices, what requests meet, and between what both lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from calc.catalog import intervals
from calc.catalog.intervals import Around, Interval
from calc.core.arrays import numpy
from calc.core.errors import InputError, abbreviated
from calc.core.report import Answer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning.results import of_a_token
from calc.planning.service import search
from calc.planning.service.asked import PAID, TIMES, Service
from calc.planning.service.design import Design
from calc.planning.service.queue import UnderLoad


@dataclass(frozen=True, eq=False, repr=False)
class Planned(Answer):
    """The designs of a service, and the numbers of the one that is taken."""

    service: Service
    design: Design
    designs: tuple[Design, ...]
    """All that were found, the one that is taken first."""
    refused: dict[str, str] = field(default_factory=dict)
    """Groups of devices that can serve no request within the limits, and why."""
    given: Mapping[str, object] = field(default_factory=dict)
    """What `plan_service` was asked, by the flat names of its options."""

    @property
    def price(self) -> Quantity | None:
        """Price of a device; None where none was given."""
        return self.service.setup.price

    @property
    def devices(self) -> int:
        return self.design.devices

    @property
    def load(self) -> UnderLoad:
        """Return what requests meet by the closed form."""
        return self.design.load

    @property
    def ttft(self) -> Quantity:
        """Time to first token at the percentile, as simulated."""
        assert self.design.simulated is not None
        return quantity(self.design.simulated[0], "s")

    @property
    def tpot(self) -> Quantity:
        """Time of each token after the first at the percentile, as simulated."""
        assert self.design.simulated is not None
        return quantity(self.design.simulated[1], "s")

    @property
    def most_requests(self) -> Quantity:
        """The largest rate that these devices take within the limits, by the closed form."""
        return quantity(self.design.most, "request/s")

    @cached_property
    def least_devices(self) -> int:
        """The fewest devices with which any program could keep the limits, at published rates."""
        least = math.inf
        for design in sorted(self.designs, key=_one_of_each):
            if _one_of_each(design) >= least:
                break  # nor do designs of larger groups take fewer
            needed = sum(pool.least_copies * pool.size for pool in design.pools)
            least = min(least, needed)
        return int(least)

    @property
    def throughput(self) -> Quantity:
        """Tokens that all answers together have in a second."""
        return quantity(self.service.rate * self.service.demand.answer, "token/s")

    @property
    def cost_per_token(self) -> Quantity | None:
        """Price of a written token at this rate; None where no price was given."""
        return self._of_a_token["cost_per_token"]

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a written token at this rate; None where no power is published."""
        return self._of_a_token["energy_per_token"]

    @property
    def carbon_per_token(self) -> Quantity | None:
        """Emissions of a written token at this rate; None where no grid is given."""
        return self._of_a_token["carbon_per_token"]

    @property
    def _of_a_token(self) -> dict[str, Quantity | None]:
        """Return what a token takes of all devices, whatever they do."""
        everything = replace(self.service.setup, devices=quantity(self.devices, ""))
        return of_a_token(everything, self.throughput)

    def frontier(self, tpot: QuantityLike) -> Quantity:
        """Device time of a written token under other limits on TPOT, by the closed form.

        The least of all designs at full load, in a service of so many copies that parts of one
        count; infinite where no design keeps the limit.
        """
        limits = quantity(tpot)
        if not limits.is_compatible_with("s") or not numpy.all(limits.m_as("s") > 0):
            raise InputError(f'tpot must be positive times, as in "50 ms"; got {abbreviated(tpot)}')
        times = numpy.asarray(limits.m_as("s"), dtype=float)
        needed = list(search.frontier(self.service, times.ravel().tolist()))
        paid = numpy.reshape(needed, times.shape) / self.service.demand.answer
        return quantity(paid if times.ndim else float(paid), "s/token")

    @property
    def alike(self) -> Interval | None:
        """Return how far published rows like its steps are off; None where nothing is expected."""
        parts = self.design.pools[-1].answers.parts
        return None if parts is None else parts.alike

    @property
    def basis(self) -> str:
        """Return what it stands on: measured rates, rates of kin, published peaks alone."""
        parts = self.design.pools[-1].answers.parts
        return intervals.PEAKS if parts is None else parts.basis

    @property
    def interval(self) -> dict[str, tuple[Quantity, Quantity]]:
        return {name: found.ends for name, found in self.around.items()}

    @cached_property
    def around(self) -> dict[str, Around]:
        """Between what devices, times and costs lie if steps are as 80 % of rows like them are.

        Devices are those of the same groups, infinitely many where none keep the limits; times are
        those of the devices that are taken.
        """
        if self.alike is None or self.design.simulated is None:
            return {}
        paces, asked, load = self.paces, self.service, self.load
        ttft, tpot = self.design.simulated
        # What the simulation takes longer than the closed form, it takes longer at any pace.
        as_simulated = replace(
            asked,
            ttft=asked.ttft * min(1.0, load.ttft / ttft),
            tpot=asked.tpot * min(1.0, load.tpot / tpot),
        )
        design = self.design.for_service(as_simulated)
        fewer, more = (design.devices_at_pace(pace) or math.inf for pace in paces)
        least = max(self.least_devices, min(fewer, self.devices))
        counts = float(least), float(max(more, self.devices))
        ranges = {"devices": _around(self.devices, *counts, self.least_devices)}
        for name, simulated in zip(TIMES, self.design.simulated, strict=True):
            slower = (getattr(self.design.at_pace(pace).load, name) for pace in paces)
            scale = simulated / getattr(self.load, name)
            low, high = (scale * time for time in slower)
            least = self.least_times[name]
            ranges[name] = _around(simulated, max(low, least), high, least, "s")
        for name in PAID:
            if (value := getattr(self, name)) is not None:
                share, bound = value / self.devices, float(self.least_devices)
                ranges[name] = Around(value, *(share * count for count in (*counts, bound)))
        return ranges

    @cached_property
    def step(self) -> Around | None:
        """The range of a step of its batch: as 80 % of rows like it, and not below its bound."""
        if self.alike is None:
            return None
        pool = self.design.pools[-1]
        batch = pool.load.batch
        count = max(1, round(batch)) if batch < pool.replica.slots else pool.replica.slots
        step = count, count * pool.demand.length
        taken = float(pool.replica.steps.time(*step))
        least = min(taken, float(pool.answers.lower(*step)))
        return self.alike.around(quantity(taken, "s"), quantity(least, "s"))

    @cached_property
    def paces(self) -> tuple[float, ...]:
        """Return the same ends as factors of the step."""
        if self.step is None:
            return ()
        return tuple(float((end / self.step.expected).m_as("")) for end in self.step.ends)

    @cached_property
    def least_times(self) -> dict[str, float]:
        """Seconds of both times that no program beats with these devices.

        Where those of a trace wait less than at random, the bound of the closed form does too.
        """
        pools = self.design.pools
        least = {
            name: max(float(getattr(peak.load, name)) for peak in pools[-place].at_peaks)
            for place, name in enumerate(TIMES)
        }
        if self.service.recorded and self.design.simulated is not None:
            for name, simulated in zip(TIMES, self.design.simulated, strict=True):
                least[name] *= min(1.0, simulated / getattr(self.load, name))
        return least


def _around(expected: float, low: float, high: float, bound: float, unit: str = "") -> Around:
    """A range of bare numbers of a unit."""
    return Around(*(quantity(float(number), unit) for number in (expected, low, high, bound)))


def _one_of_each(design: Design) -> int:
    """Devices of one copy in each pool, which no design does without."""
    return sum(pool.size for pool in design.pools)
