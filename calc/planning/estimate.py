"""What serving takes at published rates, with perfect overlap and with none, and as expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias

from calc.catalog import intervals
from calc.catalog.intervals import Around
from calc.core.arrays import numpy
from calc.core.elementwise import choose, largest, maximum, minimum, where
from calc.core.fixed import fixed
from calc.core.units import Quantity, from_parts, quantity
from calc.laws import serving
from calc.laws.roofline import StepTime
from calc.planning import capacity, expectation, time, users
from calc.planning.capacity import Capacity, on_fewest_devices
from calc.planning.expectation import Expectation
from calc.planning.service.loops import without_overlap
from calc.planning.setup import Setup, is_array
from calc.steps.expectation import Missing

TOO_SMALL = "memory capacity"
COUNTS = ("devices", "copies", "batch", "prompt", "generated")
POINTS = 100  # of a sweep that is printed; a million take minutes as they are expected
RANGES = {  # what lies between bounds: its title in a table, and its unit
    "time_to_first_token": ("first token", "ms"),
    "time_per_token": ("each token", "ms"),
    "answer_time": ("whole answer", "s"),
    "throughput": ("throughput", "token/s"),
    "cost_per_token": ("cost", "USD/Mtoken"),
    "energy_per_token": ("energy", "J/token"),
    "carbon_per_token": ("carbon", "g/Mtoken"),
}
RESULTS = (
    *("memory", "weight_memory", "cache_memory", "room", "largest_batch", "fits"),
    *(*RANGES, "binds"),
)
Point: TypeAlias = dict[str, Any]
"""One point of a plan: what was asked and what was found, by the names of a plan."""


class Bounds(NamedTuple):
    """What a quantity is at least and at most, while each part runs at its full rate."""

    lower: Quantity
    """At least; converted as any quantity, `plan.throughput.lower.m_as("token/s")`."""
    upper: Quantity
    """At most."""

    def __str__(self) -> str:
        return f"{self.lower} to {self.upper}"


class Estimate(Setup):
    """A setup and what follows from it: memory of each device, times of passes, rates and costs."""

    @cached_property
    def capacity(self) -> Capacity:
        """Return what each device holds, by layouts and lengths, whatever the batch."""
        return capacity.of(self)

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
        """The sequences that the devices hold."""
        return self.capacity.largest_batch

    @cached_property
    def reading(self) -> StepTime:
        """The pass for the prompts, part by part, whether or not the batch fits."""
        return time.prefill(self if self.users is None else users.alone(self))

    @cached_property
    def writing(self) -> StepTime:
        """The pass for a token of each sequence, part by part, whether or not the batch fits."""
        if self.users is None:
            return time.decode(self)
        return users.together(self, self.reading, time.decode(self))

    @cached_property
    def fits(self) -> Any:  # a truth, or an array of them
        """Whether the devices hold the weights and the caches of the batch at full length.

        Of users some wait where memory has no room for all: it fits where it has for one.
        """
        needed = self.batch.magnitude if self.users is None else 0 * self.batch.magnitude + 1
        return needed <= self.largest_batch.magnitude

    def settled(self) -> Self:
        """Return the same, with all computed that asks how long steps take, and what memory holds.

        Of more than so many points, what is expected is computed when it is asked for by its name.
        """
        _ = self.fits, self.memory, self.reading, self.writing, self._rate, self.needed
        if not is_array(self.fits) or self.fits.size <= POINTS:
            _ = self.expected
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
    def time_to_first_token(self) -> Bounds:
        """Time of the pass that reads all prompts of the batch; of users, the mean of requests."""
        return self._if_it_fits(self._first)

    @property
    def time_per_token(self) -> Bounds:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self._if_it_fits(self._token)

    @property
    def answer_time(self) -> Bounds:
        """Time from the start to the last token."""
        return self._if_it_fits(self._answer)

    @property
    def throughput(self) -> Bounds:
        """Tokens that all sequences together write in a second, the reading of prompts included."""
        return self._if_it_fits(self._rate)

    @property
    def cost_per_token(self) -> Bounds | None:
        """Cost of a token that is written, devices always busy; None where no price was given."""
        return self._for_a_token(self.cost_of_token)

    @property
    def energy_per_token(self) -> Bounds | None:
        """Energy of a token that is written; None where no power is published."""
        return self._for_a_token(self.energy_of_token)

    @property
    def carbon_per_token(self) -> Bounds | None:
        """Emissions of a token that is written; None where no grid is given."""
        return self._for_a_token(self.carbon_of_token)

    @property
    def expected(self) -> Expectation | None:
        """What measured rates say of what fits; None where one was not measured."""
        expectation = self._expectation
        return expectation if isinstance(expectation, Expectation) else None

    @property
    def not_expected(self) -> str:
        """Why nothing is expected: which rate was not measured, or that nothing fits."""
        return self._expectation.reason if isinstance(self._expectation, Missing) else ""

    @property
    def basis(self) -> str:
        """What the answer stands on: measured rates, rates of kin, published peaks alone."""
        return intervals.PEAKS if self.expected is None else self.expected.main.basis

    @property
    def binds(self) -> Any:  # a word, or an array of them
        """What limits writing each point: memory bandwidth, compute, links, memory capacity."""
        words = (*self.writing.parts, TOO_SMALL)
        return choose(words, where(self.fits, self.writing.longest, len(words) - 1))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Each point: what was asked, its bounds, and what is expected, by the names of a plan."""
        named = {"model": self.model.key, "device": self.device.key}
        values = {name: getattr(self, name) for name in (*COUNTS, "experts", *RESULTS)}
        expected = {} if self.expected is None else self._expected_values
        if not is_array(self.fits):
            return fixed((named | values | self._expectation_of_point(values | expected),))
        points = []
        for index in numpy.ndindex(self.fits.shape):
            point = {name: self._at(value, index) for name, value in values.items()}
            here = {name: self._at(value, index) for name, value in expected.items()}
            points.append(named | point | self._expectation_of_point(point | here))
        return fixed(tuple(points))

    def _at(self, value: Any, index: tuple[int, ...]) -> Any:
        """What an array, or each array of a tuple, holds of one point."""
        if isinstance(value, tuple):
            ends = (self._at(end, index) for end in value)
            return Bounds(*ends) if isinstance(value, Bounds) else tuple(ends)
        if isinstance(value, Quantity):
            return quantity(self._at(value.magnitude, index), str(value.units))
        if isinstance(value, Mapping):
            return {name: self._at(part, index) for name, part in value.items()}
        if value is None:
            return None
        return numpy.broadcast_to(value, self.fits.shape)[index].item()

    def around(self, name: str) -> Around | None:
        """The range of 80 % of published rows like it, of a quantity by its name.

        None where nothing is expected.
        """
        if self.expected is None or (value := self.expected.get(name)) is None:
            return None
        rate, bounds = name == "throughput", getattr(self, name)
        bound = bounds.upper if rate else bounds.lower
        alike = self.expected.alike(name)
        return None if alike is None else alike.around(value, bound, rate)

    def interval(self, name: str) -> tuple[Quantity, Quantity] | None:
        """Both ends of the range around it."""
        found = self.around(name)
        return None if found is None else found.ends

    @property
    def _expected_values(self) -> dict[str, Any]:
        """What is expected, and the passes and intervals of it, by names of their own."""
        assert self.expected is not None
        values = {name: self.expected.get(name) for name in RANGES}
        values |= self.expected.percentiles
        passes = {name: self.expected.parts.get(name) for name in ("reading", "writing")}
        ends = {name: self.interval(name) for name in RANGES}
        return {f"expected.{name}": value for name, value in (values | passes).items()} | {
            f"interval.{name}": value for name, value in ends.items()
        }

    def _expectation_of_point(self, point: Mapping[str, Any]) -> Point:
        if self.expected is None or not point["fits"]:
            reason = self.not_expected or expectation.UNFIT.reason
            basis = intervals.PEAKS
            return {"basis": basis, "expected": None, "interval": {}, "not_expected": reason}
        ranges = {name: self._around_of_point(point, name) for name in RANGES}
        return {
            "basis": self.basis,
            "expected": {
                name: point[f"expected.{name}"]
                for name in (*RANGES, *self.expected.percentiles, "reading", "writing")
            },
            "interval": {name: found.facts for name, found in ranges.items() if found},
            "not_expected": self.expected.missing or None,
        }

    @staticmethod
    def _around_of_point(point: Mapping[str, Any], name: str) -> Around | None:
        """The range of one point, of whose values it is made."""
        if (ends := point[f"interval.{name}"]) is None:
            return None
        bound = point[name].upper if name == "throughput" else point[name].lower
        low, high = ends
        return Around(point[f"expected.{name}"], low, high, bound)

    @cached_property
    def _expectation(self) -> Expectation | Missing:
        if not largest(self.fits):
            return expectation.UNFIT
        return expectation.of(self, self.fits)

    @cached_property
    def _first(self) -> Bounds:
        return Bounds(self.reading.lower, self._without_overlap[0])

    @cached_property
    def _token(self) -> Bounds:
        alone = self.writing if self.users is None else time.decode(users.alone(self))
        return Bounds(alone.lower, self._without_overlap[1])

    @cached_property
    def _without_overlap(self) -> tuple[Quantity, Quantity]:
        """Times to first token and per token where the parts of each step follow one another.

        What does not fit has those of its passes.
        """
        passes = self.reading.upper, self.writing.upper
        if self.users is None or not largest(self.fits):
            return passes
        met = users.loops(self, self.fits, without_overlap)[0]
        first, token = (
            from_parts(where(self.fits, each.m_as("s"), alone.m_as("s")), each._units)
            for each, alone in zip(met, passes, strict=True)
        )
        return first, token

    @cached_property
    def _answer(self) -> Bounds:
        first, token, count = self._first, self._token, self.generated
        lower = serving.answer_time(first.lower, count, token.lower)
        if self.users is not None:
            lower = users.least_answer(self, lower, self.writing)
        return Bounds(lower, serving.answer_time(first.upper, count, token.upper))

    @cached_property
    def _rate(self) -> Bounds:
        answer = self._answer
        return Bounds(self.throughput_of(answer.upper), self.throughput_of(answer.lower))

    def _for_a_token(self, of_rate: Callable[[Quantity], Quantity | None]) -> Bounds | None:
        """The price or the power of all devices, spread over what they write."""
        least, most = of_rate(self._rate.upper), of_rate(self._rate.lower)
        if least is None or most is None:
            return None
        return self._if_it_fits(Bounds(least, most))

    def _if_it_fits(self, bounds: Bounds) -> Bounds:
        lower, upper = (
            from_parts(where(self.fits, bound.magnitude, math.nan), bound._units)
            for bound in bounds
        )
        return Bounds(lower, upper)
