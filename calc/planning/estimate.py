"""What serving takes at published rates, with perfect overlap and with none, and as expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from calc.core.elementwise import choose, where
from calc.core.units import Quantity, from_parts, quantity
from calc.laws import cost
from calc.laws.roofline import StepTime
from calc.planning import capacity, expectation, time
from calc.planning.expectation import Expectation
from calc.planning.setup import A_TOKEN, Setup, is_array
from calc.steps import inference

TOO_SMALL = "memory capacity"
COUNTS = ("devices", "batch", "prompt", "generated")
RANGES = {  # what lies between bounds: its title in a table, and its unit
    "time_to_first_token": ("first token", "ms"),
    "time_per_token": ("each token", "ms"),
    "answer_time": ("whole answer", "s"),
    "throughput": ("throughput", "token/s"),
    "cost_per_token": ("cost", "USD/Mtoken"),
    "energy_per_token": ("energy", "J/token"),
}
RESULTS = ("memory", "weight_memory", "cache_memory", "largest_batch", "fits", *RANGES, "binds")


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
    def weight_memory(self) -> Quantity:
        """The weights that each device holds."""
        memory: Quantity = self.model_memory / self.devices
        return memory

    @cached_property
    def cache_memory(self) -> Quantity:
        """The keys and values that each device holds."""
        memory: Quantity = capacity.cache_memory(self) / self.devices
        return memory

    @cached_property
    def largest_batch(self) -> Quantity:
        """The sequences that the devices hold."""
        return capacity.most_sequences(self)

    @cached_property
    def reading(self) -> StepTime:
        """The pass for the prompts, part by part, whether or not the batch fits."""
        return time.prefill(self)

    @cached_property
    def writing(self) -> StepTime:
        """The pass for a token of each sequence, part by part, whether or not the batch fits."""
        return time.decode(self)

    @cached_property
    def fits(self) -> Any:
        """Whether the devices hold the weights and the caches of the batch at full length."""
        return self.batch.magnitude <= self.largest_batch.magnitude

    @property
    def memory(self) -> Quantity:
        """What each device holds: its weights and its caches."""
        held: Quantity = self.weight_memory + self.cache_memory
        return held

    @property
    def time_to_first_token(self) -> Bounds:
        """Time of the pass that reads all prompts of the batch."""
        return self._if_it_fits(Bounds(self.reading.lower, self.reading.upper))

    @property
    def time_per_token(self) -> Bounds:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self._if_it_fits(Bounds(self.writing.lower, self.writing.upper))

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
        if self.price is None:
            return None
        return self._for_a_token(cost.cost_per_token, self.price, "USD/Mtoken")

    @property
    def energy_per_token(self) -> Bounds | None:
        """Energy of a token that is written; None where no power is published."""
        if self.power is None:
            return None
        return self._for_a_token(cost.energy_per_token, self.power, "J/token")

    @property
    def expected(self) -> Expectation | None:
        """What measured rates say of one point that fits; None where one was not measured."""
        found = self._expectation
        return found if isinstance(found, Expectation) else None

    @property
    def not_expected(self) -> str:
        """Why nothing is expected: which rate was not measured, or that there are many points."""
        found = self._expectation
        return found if isinstance(found, str) else ""

    @property
    def binds(self) -> Any:
        """What limits writing each point: memory bandwidth, compute, links, memory capacity."""
        words = (*self.writing.parts, TOO_SMALL)
        return choose(words, where(self.fits, self.writing.longest, len(words) - 1))

    @cached_property
    def points(self) -> tuple[dict[str, Any], ...]:
        """Each point: what was asked, its bounds, and what is expected, by the names of a plan."""
        values = {name: getattr(self, name) for name in (*COUNTS, *RESULTS)}
        named = {"model": self.model.key, "device": self.device.key}
        if not is_array(self.fits):
            return (named | values | self._expected_values,)
        import numpy

        def at(value: Any, index: tuple[int, ...]) -> Any:
            if value is None:
                return None
            if isinstance(value, Bounds):
                return Bounds(*(at(bound, index) for bound in value))
            if isinstance(value, Quantity):
                return quantity(at(value.magnitude, index), str(value.units))
            return numpy.broadcast_to(value, self.fits.shape)[index].item()

        points = []
        for index in numpy.ndindex(self.fits.shape):
            point = {name: at(value, index) for name, value in values.items()}
            alone = replace(self, **{name: point[name] for name in COUNTS})
            points.append(named | point | alone._expected_values)
        return tuple(points)

    @property
    def _expected_values(self) -> dict[str, Any]:
        """What is expected of one point, by the names of its bounds, and its passes."""
        if (expected := self.expected) is None:
            return {"expected": None, "not_expected": self.not_expected}
        values = {name: expected.get(name) for name in (*RANGES, "reading", "writing")}
        return {"expected": values, "not_expected": expected.missing or None}

    @cached_property
    def _expectation(self) -> Expectation | str:
        if is_array(self.fits):
            return "An expectation is made of one point; plan the one that is meant."
        if not self.fits:
            return "Nothing is expected of what does not fit."
        return expectation.of(self)

    @cached_property
    def _answer(self) -> Bounds:
        first, each, count = self.reading, self.writing, self.generated
        return Bounds(
            inference.answer_time(first.lower, count, each.lower),
            inference.answer_time(first.upper, count, each.upper),
        )

    @cached_property
    def _rate(self) -> Bounds:
        written = self.generated * A_TOKEN
        return Bounds(
            inference.tokens_per_second(self.batch, self._answer.upper, written),
            inference.tokens_per_second(self.batch, self._answer.lower, written),
        )

    def _for_a_token(self, law: Callable[..., Any], rate: Quantity, unit: str) -> Bounds:
        """The price or the power of all devices, spread over what they write."""
        least = law(self.devices, rate, self._rate.upper).to(unit)
        most = law(self.devices, rate, self._rate.lower).to(unit)
        return self._if_it_fits(Bounds(least, most))

    def _if_it_fits(self, bounds: Bounds) -> Bounds:
        lower, upper = (
            from_parts(where(self.fits, each.magnitude, math.nan), each._units) for each in bounds
        )
        return Bounds(lower, upper)
