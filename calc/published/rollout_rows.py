"""Reinforcement learning as others measured it, beside what `calc.reinforcement` says of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median
from typing import Any

from calc.core.records import DATA, read_toml
from calc.core.units import Quantity, quantity
from calc.laws import rollouts
from calc.steps import reinforcement
from calc.steps.job import Job, Layout

FILE = DATA / "published" / "rollouts.toml"


@dataclass(frozen=True)
class Step:
    """A whole step: what it was, and how long it took."""

    id: str
    row: Mapping[str, Any]
    time: Quantity

    @cached_property
    def expected(self) -> reinforcement.RolloutStep:
        """The step by measured rates of kernels."""
        return self._predicted(True)

    @cached_property
    def bound(self) -> reinforcement.RolloutStep:
        """The step by published peaks, which no program beats."""
        return self._predicted(False)

    @property
    def job(self) -> Job:
        """An engine for each copy of the model."""
        row = self.row
        layout = Layout(data=row["devices"] // row["engine"], tensor=row["engine"])
        return Job.of(row["model"], row["machine"], layout)

    def _predicted(self, measured: bool) -> reinforcement.RolloutStep:
        """A step whose prompts are counted with the answers."""
        lengths = rollouts.Lengths(self.row["average"], self.row["limit"], prompt=1)
        mfu = 0.3 if measured else 1.0
        return reinforcement.step(
            self.job, lengths, self.row["answers"], mfu=mfu, measured=measured
        )

    @property
    def error(self) -> Quantity:
        """The share predicted beyond the measured time: below zero where it is too short."""
        return (self.expected.total / self.time - 1).to("%")


@dataclass(frozen=True)
class Update:
    """New weights of engines: how many bytes, and how long they took."""

    id: str
    devices: str
    weights: Quantity
    time: Quantity
    point_to_point: Quantity  # of an engine or two, each device of which receives all weights too

    @property
    def rate(self) -> Quantity:
        """Bytes that each device sees in a second."""
        return (self.weights / self.time).to("GB/s")


@cache
def steps() -> tuple[Step, ...]:
    """All steps, in the order of the file.

    >>> print(steps()[0].time, steps()[0].expected.total)
    3.2 min 97.15 s
    """
    rows = read_toml(FILE)["step"]
    return tuple(Step(row["id"], row, quantity(row["time"])) for row in rows)


@cache
def updates() -> tuple[Update, ...]:
    """All updates of weights, in the order of the file.

    >>> print(updates()[0].rate)
    61.10 GB/s
    """
    rows = read_toml(FILE)["update"]
    return tuple(
        Update(
            row["id"],
            row["devices"],
            *(quantity(row[name]) for name in ("weights", "time", "point_to_point")),
        )
        for row in rows
    )


@cache
def factor(left_out: str = "") -> float:
    """Return what steps take over their laws, in the median, without those of a model if one is
    left out.

    >>> round(factor(), 2), round(factor("deepseek-v3"), 2)
    (2.14, 1.83)
    """
    others = [step for step in steps() if step.row["model"] != left_out]
    return median(float((step.time / step.expected.total).m_as("")) for step in others)


def left_out() -> tuple[float, ...]:
    """Return measured over expected of each step, by the factor of the other models' steps.

    >>> len(left_out())
    10
    """
    return tuple(
        float((step.time / step.expected.total).m_as("")) / factor(step.row["model"])
        for step in steps()
    )


def median_error() -> float:
    """Return how far off the middle one of them is.

    >>> median_error() < 0.25
    True
    """
    return median(abs(1 / ratio - 1) for ratio in left_out())


def spread() -> tuple[float, float]:
    """Return between which factors 80 % of them lie, with the correction for few.

    >>> low, high = spread()
    >>> low < 1 < high
    True
    """
    ranked = sorted(left_out())
    last, count = len(ranked) - 1, len(ranked) + 1
    low, high = math.floor(0.1 * count) - 1, math.ceil(0.9 * count) - 1
    return ranked[max(0, low)], ranked[min(last, high)]


def median_factor() -> Quantity:
    """Return the factor of all steps as a quantity.

    >>> print(median_factor())
    2.141
    """
    return quantity(factor(), "")


def median_off() -> Quantity:
    """Return the median error of steps whose model is left out, as a quantity.

    >>> print(median_off())
    20.25%
    """
    return quantity(100 * median_error(), "%")
