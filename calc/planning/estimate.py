"""The answers of a plan: what serving takes at published rates, and as expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeAlias

from calc.catalog import intervals
from calc.catalog.intervals import Around
from calc.core.arrays import Number, numpy
from calc.core.elementwise import choose, largest, maximum, minimum, where
from calc.core.fixed import fixed
from calc.core.units import Quantity, quantity
from calc.laws import serving
from calc.laws.roofline import StepTime
from calc.planning import capacity, passes
from calc.planning.capacity import Capacity, on_fewest_devices
from calc.planning.passes import Expectation
from calc.planning.results import RANGES, Bounds, Results, of_a_token, results_of, where_it_fits
from calc.planning.setup import COUNTS, Setup, is_array
from calc.steps import device_power
from calc.steps.drafting import Drafting, gains
from calc.steps.expectation import Missing
from calc.steps.splits import Split

TOO_SMALL = "memory capacity"
POINTS = 100  # of a sweep, of which all is expected; of a million that takes minutes
UNASKED = Missing(
    f"more than {POINTS} points have bounds alone, unless more is asked: plan.with_expectation()"
)
ENERGIES = {
    "device_energy_per_token": "device",
    "energy_per_token": "total",
    "carbon_per_token": "total",
}
"""What goes with power too, and with that of the devices alone or of all."""
FOUND = (
    *("memory", "weight_memory", "cache_memory", "room", "largest_batch", "fits"),
    *(*RANGES, "binds"),
)
Point: TypeAlias = dict[str, Any]
"""One point of a plan: what was asked and what was found, by the names of a plan."""


class Estimate(Setup, Results[Bounds]):
    """A setup and what follows from it: memory of each device, times of passes, rates and costs."""

    @cached_property
    def capacity(self) -> Capacity:
        """Return what each device holds, by layouts and lengths, whatever the batch."""
        return capacity.capacity_of(self)

    @property
    def weight_memory(self) -> Quantity:
        """The weights that each device holds, with what it has in copies."""
        return self.capacity.weights

    @property
    def cache_memory(self) -> Quantity:
        """The keys and values that each device holds, of users those that it has room for."""
        if self.users is None:
            return self.capacity.caches(self.batch)
        running = minimum(self.batch.magnitude, maximum(self.largest_batch.magnitude, 1))
        return self.capacity.caches(quantity(running, ""))

    @property
    def largest_batch(self) -> Quantity:
        return self.capacity.largest_batch

    @cached_property
    def reading(self) -> StepTime:
        """The pass for the prompts, part by part, whether or not the batch fits."""
        return passes.prefill(self if self.users is None else passes.alone(self))

    @cached_property
    def writing(self) -> StepTime:
        """The pass for a token of each sequence, part by part, whether or not the batch fits."""
        if self.users is None:
            return passes.decode(self)
        return passes.together(self, self.reading, passes.decode(self))

    @cached_property
    def fits(self) -> Any:  # a truth, or an array of them
        """Return whether the devices hold weights and the caches of the batch at full length.

        Of users some wait where memory has no room for all: it fits where it has for one.
        """
        needed = self.batch.magnitude if self.users is None else 0 * self.batch.magnitude + 1
        return needed <= self.largest_batch.magnitude

    def settled(self) -> Self:
        """Return it with all computed that asks how long steps take, and what memory holds."""
        _ = (
            self.drafting,
            self.fits,
            self.memory,
            self.reading,
            self.writing,
            self._bounds,
            self.needed,
        )
        for parts in {} if self.expected is None else self.expected.passes.values():
            parts.settled()
        return self

    @cached_property
    def needed(self) -> Quantity | None:
        """The fewest devices that hold one sequence; None where their number was given."""
        if "devices" not in self.left_out or is_array(self.devices):
            return None
        if self.devices.magnitude == 1:
            return self.devices
        return on_fewest_devices(replace(self, batch=quantity(1, ""))).devices

    @property
    def memory(self) -> Quantity:
        """Return what each device holds: weights, caches, and what the program takes besides."""
        return self.weight_memory + self.capacity.beside + self.cache_memory

    @property
    def room(self) -> Quantity:
        """Return what the program may use of each device's memory."""
        return self.capacity.room

    @property
    def expected(self) -> Expectation | None:
        """Return what measured rates say of what fits; None where one was not measured."""
        expectation = self._expectation
        return expectation if isinstance(expectation, Expectation) else None

    @property
    def not_expected(self) -> str:
        """Return why nothing is expected: a rate was not measured, or nothing fits."""
        return self._expectation.reason if isinstance(self._expectation, Missing) else ""

    @property
    def basis(self) -> str:
        """Return what it stands on: measured rates, rates of kin, published peaks alone."""
        return intervals.PEAKS if self.expected is None else self.expected.main.basis

    @property
    def binds(self) -> Any:  # a word, or an array of them
        """Return what limits writing each point: memory bandwidth, compute, links, capacity."""
        words = (*self.writing.parts, TOO_SMALL)
        return choose(words, where(self.fits, self.writing.longest, len(words) - 1))

    @cached_property
    def drafting(self) -> Drafting | None:
        """Return what drafts gain, where that was asked of one point that is expected."""
        if self.drafts is None or is_array(self.fits) or self.expected is None:
            return None
        context = self.prompt.m_as("") + self.generated.m_as("") / 2
        return gains(self.job, self.drafts, self.batch.m_as(""), context)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Each point: what was asked, its bounds, and what is expected, by the names of a plan."""
        values = {name: getattr(self, name) for name in (*COUNTS, "stages", "experts", *FOUND)}
        ranges = {name: around for name in RANGES if (around := self.around(name))}
        expected = None if self.expected is None else self.expected.facts
        every = values, expected, ranges
        if not is_array(self.fits):
            return fixed((self._point(*every),))
        indices = numpy.ndindex(self.fits.shape)
        return fixed(tuple(self._point(*self._at(every, index)) for index in indices))

    def _point(
        self, values: Point, expected: Mapping[str, Any] | None, ranges: Mapping[str, Around]
    ) -> Point:
        made = self.expected if values["fits"] else None
        unlikely = self.not_expected or passes.UNFIT.reason
        return {
            "model": self.model.key,
            "device": self.device.key,
            **values,
            **({} if self.split is None else {"host": _on_host(self, self.split)}),
            "basis": self.basis if made else intervals.PEAKS,
            "expected": expected if made else None,
            "interval": {name: around.facts for name, around in ranges.items()} if made else {},
            "not_expected": (made.missing or None) if made else unlikely,
        }

    def _at(self, value: Any, index: tuple[int, ...]) -> Any:
        """Return what an array, or each array of a record, holds of one point."""
        if isinstance(value, tuple):
            ends = (self._at(end, index) for end in value)
            return Bounds(*ends) if isinstance(value, Bounds) else tuple(ends)
        if isinstance(value, Quantity):
            return quantity(self._at(value.magnitude, index), str(value.units))
        if isinstance(value, Mapping):
            return {name: self._at(part, index) for name, part in value.items()}
        if isinstance(value, Around):
            return Around(*(self._at(part, index) for part in vars(value).values()))
        if value is None:
            return None
        return numpy.broadcast_to(value, self.fits.shape)[index].item()

    def likely(self, name: str) -> Quantity | None:
        """Return what is expected of a quantity by its name; None where nothing is."""
        return None if self.expected is None else self.expected.results.get(name)

    def around(self, name: str) -> Around | None:
        """The range of 80 % of published rows like it, of a quantity by its name.

        None where nothing is expected.
        """
        if self.expected is None or (value := self.likely(name)) is None:
            return None
        rate, bounds = name == "throughput", self.result(name)
        alike = self.expected.alike(name)
        bound = bounds.upper if rate else bounds.lower
        if alike is None:
            return None
        if name in ENERGIES:
            return self._around_energy(value, ENERGIES[name], bound)
        return alike.around(value, bound, rate)

    def _around_energy(self, value: Quantity, of: str, bound: Quantity) -> Around | None:
        """The range of an energy: its time is as of rows like it, and its power as of loads."""
        rates = self.around("throughput")
        if rates is None:
            return None
        expected = where_it_fits(self.fits, rates.expected, 1.0)
        power = passes.power_at(self, self.reading, self.writing, expected)
        assert power is not None
        ends = device_power.between(self.machine, power, self.in_machine, self.power_cap)
        times = ((rates.expected / end).m_as("") for end in reversed(rates.ends))
        powers = ((getattr(end, of) / getattr(power, of)).m_as("") for end in ends)
        low, high = intervals.of_both(tuple(times), tuple(powers))
        return intervals.around(value, low, high, bound)

    def interval(self, name: str) -> tuple[Quantity, Quantity] | None:
        around = self.around(name)
        return None if around is None else around.ends

    @cached_property
    def _expectation(self) -> Expectation | Missing:
        if is_array(self.fits) and self.fits.size > POINTS:
            return UNASKED
        return passes.expected(self, self.fits, self.reading, self.writing)

    def result(self, name: str) -> Any:
        return self._bounds[name]

    @cached_property
    def _bounds(self) -> dict[str, Bounds | None]:
        """Return all that lies between bounds, NaN where it does not fit."""
        one = self.writing if self.users is None else passes.decode(passes.alone(self))
        first, token = self.reading.lower, one.lower
        answer = serving.answer_time(first, self.generated, token)
        if self.users is not None:  # who share the devices
            shared: Number = (self.generated * self.writing.lower).m_as("s")
            answer = quantity(maximum(answer.m_as("s"), shared), "s")
        fastest = results_of(self, first, token, answer)
        slowest = results_of(self, *self._without_overlap)
        idle = None if self.power is None else device_power.idle(self.machine)
        for results, power in ((fastest, idle), (slowest, self.power)):
            rate = results["throughput"]
            assert rate is not None
            results.update(of_a_token(self, rate, power))
        bounds: dict[str, Bounds | None] = {}
        for name, least in fastest.items():
            most = slowest[name]
            if least is None or most is None:
                bounds[name] = None
                continue
            ends = (most, least) if name == "throughput" else (least, most)
            bounds[name] = Bounds(*(where_it_fits(self.fits, end) for end in ends))
        return bounds

    @property
    def _without_overlap(self) -> tuple[Quantity, Quantity]:
        """Times to first token and per token where the parts of each step follow one another.

        What does not fit has those of its passes.
        """
        first, token = self.reading.upper, self.writing.upper
        if self.users is None or not largest(self.fits):
            return first, token
        met, *_ = passes.loops(self, self.fits, lambda one: passes.decode(one).upper, overlap=False)
        return (
            where_it_fits(self.fits, met[0], first.m_as("s")),
            where_it_fits(self.fits, met[1], token.m_as("s")),
        )


def _on_host(setup: Setup, split: Split) -> Mapping[str, object]:
    """Return what the host holds of the model, by names that stay, and the options that do so."""
    return {
        "memory": split.host.memory,
        "bandwidth": split.host.bandwidth,
        "held": capacity.held_by_host(setup) - capacity.on_ssd(setup),
        "ssd": split.host.ssd,
        "on_ssd": capacity.on_ssd(setup),
        "layers_of_experts": split.experts,
        "layers": split.layers,
        "options": split.options(setup.model),
        "tensors": split.pattern(setup.model),
    }
