"""Reinforcement learning as others measured it, beside what `calc.reinforcement` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
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
        Update(row["id"], row["devices"], quantity(row["weights"]), quantity(row["time"]))
        for row in rows
    )
