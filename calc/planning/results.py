"""The results of serving by a name each: the bounds of a plan, and what is expected of it."""

from __future__ import annotations

import math
from typing import Any, Generic, NamedTuple, TypeVar

from calc.catalog import grids
from calc.core.elementwise import where
from calc.core.units import Quantity, from_parts
from calc.laws import cost, serving
from calc.planning.setup import A_TOKEN, Setup
from calc.steps.device_power import Power

RANGES = {  # what lies between bounds: its title in a table, and its unit
    "time_to_first_token": ("first token", "ms"),
    "time_per_token": ("each token", "ms"),
    "answer_time": ("whole answer", "s"),
    "throughput": ("throughput", "token/s"),
    "cost_per_token": ("cost", "USD/Mtoken"),
    "device_energy_per_token": ("energy of devices", "J/token"),
    "energy_per_token": ("energy", "J/token"),
    "carbon_per_token": ("carbon", "g/Mtoken"),
}
R = TypeVar("R")


class Bounds(NamedTuple):
    """A quantity at least and at most, while each part runs at its full rate."""

    lower: Quantity
    """At least; converted as any quantity, `plan.throughput.lower.m_as("token/s")`."""
    upper: Quantity

    def __str__(self) -> str:
        return f"{self.lower} to {self.upper}"


class Results(Generic[R]):
    """Times, rates and costs by their names."""

    def result(self, name: str) -> R:
        """Return one of them by its name; None of a cost or the like that nothing is known of."""
        raise NotImplementedError

    @property
    def time_to_first_token(self) -> R:
        """Time of the pass that reads all prompts of the batch; of users, the mean of requests."""
        return self.result("time_to_first_token")

    @property
    def time_per_token(self) -> R:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self.result("time_per_token")

    @property
    def answer_time(self) -> R:
        """Time from the start to the last token."""
        return self.result("answer_time")

    @property
    def throughput(self) -> R:
        """Tokens that all sequences together write in a second, the reading of prompts included."""
        return self.result("throughput")

    @property
    def cost_per_token(self) -> R | None:
        """Cost of a token that is written, devices always busy; None where no price was given."""
        return self.result("cost_per_token")

    @property
    def device_energy_per_token(self) -> R | None:
        """Energy of a token that devices take themselves; None where no power is published."""
        return self.result("device_energy_per_token")

    @property
    def energy_per_token(self) -> R | None:
        """Energy of a token with that of hosts and fans, where known; None without any power."""
        return self.result("energy_per_token")

    @property
    def carbon_per_token(self) -> R | None:
        """Emissions of a token that is written; None where no grid is given, or no power known."""
        return self.result("carbon_per_token")


def results_of(
    setup: Setup, first: Quantity | None, token: Quantity | None, answer: Quantity | None = None
) -> dict[str, Quantity | None]:
    """Return the times and the rate that follow from the times of both passes, or of an answer.

    Where one of them is not known the other stands alone.
    """
    times = {"time_to_first_token": first, "time_per_token": token}
    if first is None or token is None:
        return {name: time for name, time in times.items() if time is not None}
    if answer is None:
        answer = serving.answer_time(first, setup.generated, token)
    rate = serving.tokens_per_second(setup.batch, answer, setup.generated * A_TOKEN)
    return {**times, "answer_time": answer, "throughput": rate}


def of_a_token(
    setup: Setup, throughput: Quantity, power: Power | None
) -> dict[str, Quantity | None]:
    """Return what a token that is written costs, takes and emits, of devices that draw so much."""
    paid: Quantity | None = None
    alone: Quantity | None = None
    taken: Quantity | None = None
    emitted: Quantity | None = None
    if setup.price is not None:
        paid = cost.cost_per_token(setup.devices, setup.price, throughput).to("USD/Mtoken")
    if power is not None:
        alone, taken = (
            (cost.energy_per_token(setup.devices, watts, throughput) * setup.pue).to("J/token")
            for watts in (power.device, power.total)
        )
    if taken is not None and setup.grid is not None:
        emitted = (taken * grids.intensity(setup.grid)).to("g/Mtoken")
    return {
        "cost_per_token": paid,
        "device_energy_per_token": alone,
        "energy_per_token": taken,
        "carbon_per_token": emitted,
    }


def where_it_fits(fits: Any, value: Quantity, other: Any = math.nan) -> Quantity:
    """The value at the points that fit, and at the others another number."""
    return from_parts(where(fits, value.magnitude, other), value._units)
