"""A prediction, what was measured, and how far they are apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from calc.catalog import intervals, software
from calc.catalog.intervals import Around, Interval
from calc.catalog.machines import NotMeasured
from calc.core.units import quantity
from calc.published import conditions
from calc.published.reading import Row
from calc.steps.expectation import Step

ROUNDING = 0.005  # half of the last of three digits, to which most rows are printed
JUDGES = ("mlperf-training-v5.1",)  # sources to whose rows nothing is fitted on any machine


@dataclass(frozen=True)
class Prediction:
    """Time of what a row measured: in seconds, for whatever the row counts."""

    lower: float
    """At published rates, with everything overlapped and nothing else done."""
    parts: dict[str, float] | None = field(default=None, repr=False)
    """What the time is expected to consist of; None where a rate was not measured."""
    hidden: float = 0.0
    """What the software hides of the parts behind others."""
    missing: str = ""
    """The sentence that says why nothing is expected."""
    filled: tuple[str, ...] = ()
    """What was taken where a rate was not measured, or a condition not stated, in a clause each."""

    @cached_property
    def expected(self) -> float | None:
        """The parts, less what the software hides of them."""
        return None if self.parts is None else sum(self.parts.values()) - self.hidden

    @property
    def upper(self) -> float | None:
        """The parts, where nothing is hidden."""
        return None if self.parts is None else sum(self.parts.values())


@dataclass(frozen=True)
class Comparison:
    """A row beside its prediction; a row that cannot be predicted says why."""

    row: Row
    machine: str = ""
    software: str = ""
    measured: float = 0.0
    """In seconds, as the prediction is."""
    prediction: Prediction | None = None
    reason: str = ""
    """Why there is no prediction: an unknown device, a condition that is missing."""
    mixture: bool = False
    """Whether its model is a mixture of experts."""

    @property
    def filled(self) -> tuple[str, ...]:
        """The clauses on what its expectation was filled in with."""
        return () if self.prediction is None else self.prediction.filled

    @cached_property
    def share_of_bound(self) -> float | None:
        """The lower bound over what was measured: 1 is a program that no program beats."""
        return None if self.prediction is None else self.prediction.lower / self.measured

    @cached_property
    def error(self) -> float | None:
        """Measured over expected, less one."""
        if self.prediction is None or self.prediction.expected is None:
            return None
        return self.measured / self.prediction.expected - 1

    @cached_property
    def interval(self) -> Interval | None:
        """Between which factors of its expectation 80 % of rows like it lie."""
        work = {"training": "training", "serving": "serving", "closed_loop": "serving"}
        if self.error is None or self.row.group not in work:
            return None
        return intervals.interval_of(
            work[self.row.group], self.software, self.mixture, bool(self.filled)
        )

    @cached_property
    def around(self) -> Around | None:
        """The range of 80 % of rows like it around its expectation, no end below the bound."""
        if self.interval is None or self.prediction is None or self.prediction.expected is None:
            return None
        expected, lower = (
            quantity(seconds, "s") for seconds in (self.prediction.expected, self.prediction.lower)
        )
        return self.interval.around(expected, lower)

    @cached_property
    def inside(self) -> bool | None:
        """True where it lies in that interval; None where there is none."""
        if self.around is None:
            return None
        low, high = (end.m_as("s") for end in self.around.ends)
        return bool(low <= self.measured <= high)

    @cached_property
    def width(self) -> float | None:
        """The interval's high end over its low one."""
        return None if self.around is None else float((self.around.high / self.around.low).m_as(""))

    @property
    def fitted(self) -> bool:
        """True where the software's own numbers were fitted to rows of its machine and model."""
        if not self.software or self.row.source in JUDGES:
            return False
        one = software.get(self.software)
        if one.fitted_on != self.machine or not one.fitted_to:
            return one.fitted_on == self.machine
        return conditions.model(self.row).key == one.fitted_to

    @cached_property
    def faster_than_lower(self) -> bool:
        """True where it is faster than any program can be, by more than its digits can hide."""
        return self.share_of_bound is not None and self.share_of_bound > 1 + ROUNDING

    @cached_property
    def slower_than_upper(self) -> bool:
        """True where time was lost on something that the model does not know."""
        upper = None if self.prediction is None else self.prediction.upper
        return upper is not None and self.measured > upper * (1 + ROUNDING)


def prediction_of(step: Step, counted: float) -> Prediction:
    """Return what a step says of one of what it counts."""
    lower = step.lower.m_as("s") / counted
    if (parts := step.expected_parts) is None:
        return Prediction(lower, missing=step.not_expected)
    expected, hidden = parts.seconds(counted)
    return Prediction(lower, expected, hidden, filled=parts.filled)


def if_measured(lower: float, parts: Callable[[], tuple[dict[str, float], float]]) -> Prediction:
    """A prediction of parts that are computed when called, or of the bound alone."""
    try:
        expected, hidden = parts()
    except NotMeasured as missing:
        return Prediction(lower, missing=str(missing))
    return Prediction(lower, expected, hidden)
