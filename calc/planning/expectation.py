"""What a setup is expected to take: its kernels at measured rates, and its messages as measured.

Where a rate was not measured there is no expectation, and the sentence that says which rate is
missing stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from calc.catalog.intervals import FIRST_TOKENS, TOKENS, Interval
from calc.catalog.machines import NotMeasured
from calc.core.arrays import Truths, numpy
from calc.core.elementwise import largest
from calc.core.fixed import fix_fields
from calc.core.formatting import columns
from calc.core.units import Quantity, quantity
from calc.laws import serving
from calc.planning import time, users
from calc.planning.service.loops import PERCENTILES, closed_loop
from calc.planning.setup import Setup, is_array
from calc.steps.expectation import Missing, Parts, if_measured
from calc.steps.job import SECOND


@dataclass(frozen=True)
class Expectation:
    """Times, rates and costs that a program is expected to reach, and the parts of its passes.

    Where one pass has a rate that was not measured, what stands on it raises the sentence that
    names the rate; the other pass has its time.
    """

    setup: Setup
    reading: Parts | None
    """The pass that reads all prompts, kind by kind of what it launches."""
    writing: Parts | None
    """The pass that writes a token of each sequence."""
    missing: str = ""
    """Which rate was not measured, where one of the passes is not expected."""
    times: Mapping[str, Quantity] = field(default_factory=dict)
    """Of the passes that are expected; arrays of what fits, and `passes` has some of it then."""
    parts: Mapping[str, Mapping[str, Quantity]] = field(default_factory=dict)
    """Of these passes, by kind of what they launch."""
    fits: Truths | None = None
    """Of arrays, which points fit, and have an expectation."""
    percentiles: Mapping[str, Quantity] = field(default_factory=dict)
    """Of users, both times at the percentiles of requests: "time_to_first_token_p99"."""

    def __post_init__(self) -> None:
        fix_fields(self)

    @property
    def passes(self) -> dict[str, Parts]:
        """The passes that are expected, by what they end with."""
        passes = {"first token": self.reading, "each token": self.writing}
        return {title: parts for title, parts in passes.items() if parts is not None}

    def get(self, name: str) -> Quantity | None:
        """One of the quantities by its name; None where it stands on what was not measured."""
        try:
            value: Quantity | None = getattr(self, name)
        except NotMeasured:
            return None
        return value

    @property
    def main(self) -> Parts:
        """The pass that most of an answer takes, whose rates it stands on."""
        parts = self.writing or self.reading
        assert parts is not None
        return parts

    def alike(self, name: str) -> Interval | None:
        """Return how far rows like it are off, of one of the quantities by its name."""
        first = name == "time_to_first_token" and self.reading is not None
        return self.reading.alike if first and self.reading is not None else self.main.alike

    def __str__(self) -> str:
        tables = (columns(parts.rows(title)) for title, parts in self.passes.items())
        return "\n\n".join("\n".join(table) for table in tables)

    @property
    def time_to_first_token(self) -> Quantity:
        """Time of the pass that reads all prompts of the batch."""
        return self._everywhere(self._time("reading"))

    @property
    def time_per_token(self) -> Quantity:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self._everywhere(self._time("writing"))

    @property
    def answer_time(self) -> Quantity:
        """Time from the start to the last token."""
        return self._everywhere(self._answer)

    @property
    def throughput(self) -> Quantity:
        """Tokens that all sequences together write in a second, the reading of prompts included."""
        return self._everywhere(self.setup.throughput_of(self._answer))

    @property
    def cost_per_token(self) -> Quantity | None:
        """Cost of a token that is written, devices always busy; None where no price was given."""
        return self._of_token(self.setup.cost_of_token)

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a token that is written; None where no power is published."""
        return self._of_token(self.setup.energy_of_token)

    @property
    def carbon_per_token(self) -> Quantity | None:
        """Emissions of a token that is written; None where no grid is given."""
        return self._of_token(self.setup.carbon_of_token)

    def _of_token(self, of_rate: Callable[[Quantity], Quantity | None]) -> Quantity | None:
        value = of_rate(self.setup.throughput_of(self._answer))
        return None if value is None else self._everywhere(value)

    @cached_property
    def _answer(self) -> Quantity:
        first, token = self._time("reading"), self._time("writing")
        return serving.answer_time(first, self.setup.generated, token)

    def _time(self, name: str) -> Quantity:
        """The time of a pass, which was measured."""
        if name not in self.times:
            raise NotMeasured(self.missing)
        return self.times[name]

    def _everywhere(self, value: Quantity) -> Quantity:
        """What was found of the points that fit, at their places; NaN at all others."""
        if self.fits is None:
            return value
        spread = numpy.full(self.fits.shape, math.nan)
        spread[self.fits] = value.magnitude
        return quantity(spread, str(value.units))


def of(setup: Setup, fits: Any) -> Expectation | Missing:
    """What is expected where it fits, or the sentence that says which measured rate is missing.

    Of an array of points each group on the same devices, of the same lengths, is one calculation.
    """
    if setup.link is not None and largest(setup.devices) > 1:
        return Missing("messages over the link that is given were not measured")
    if is_array(fits) and not fits.any():
        return UNFIT
    if setup.users is not None:
        return _of_users(setup, fits)
    if not is_array(fits):
        return _of_lengths(setup)
    names, counts = users.COUNTS, _counts(setup, fits)
    same, places = numpy.unique(counts[:-1], axis=1, return_inverse=True)
    count = counts.shape[1]
    times = {name: numpy.empty(count) for name in ("reading", "writing")}
    parts: dict[str, dict[str, Any]] = {name: {} for name in times}
    made: Expectation | Missing = UNFIT
    for place, lengths in enumerate(same.T):
        here = places.ravel() == place
        made = _of_lengths(_asked(setup, names, (*lengths, counts[-1][here])))
        if isinstance(made, Missing):
            return made
        for name, total in made.times.items():
            times[name][here] = total.m_as("s")
            for part, time_of_part in made.parts[name].items():
                column = parts[name].setdefault(part, numpy.zeros(count))
                column[here] = time_of_part.m_as("s")
    assert isinstance(made, Expectation)
    known = {name: SECOND * times[name] for name in made.times}
    made = replace(made, setup=_asked(setup, names, counts), times=known, fits=fits)
    spread = {
        name: {part: made._everywhere(SECOND * column) for part, column in columns.items()}
        for name, columns in parts.items()
        if name in known
    }
    return replace(made, parts=spread)


def _counts(setup: Setup, fits: Any) -> Any:
    """A row for each of the counts, with those of the points that fit."""
    rows = (getattr(setup, name).magnitude for name in users.COUNTS)
    return numpy.stack([numpy.broadcast_to(row, fits.shape)[fits] for row in rows])


def _of_users(setup: Setup, fits: Any) -> Expectation | Missing:
    """Return what users are expected to meet, by passes of a prompt alone and of all users."""
    counts = _counts(setup, fits) if is_array(fits) else None
    one = setup if counts is None else _asked(setup, users.COUNTS, counts[:, 0])
    try:
        (first, token), *late = users.loops(setup, fits, closed_loop)
        reading = time.expected_prefill(users.alone(one))
        writing = time.expected_decode(one)
    except NotMeasured as missing:
        return Missing(str(missing))
    mixture = setup.model.experts is not None
    reading = reading.as_rows_of(FIRST_TOKENS, mixture)
    writing = writing.as_rows_of(TOKENS, mixture)
    percentiles = {
        f"{name}_p{100 * share:g}": times[place]
        for place, name in enumerate(("time_to_first_token", "time_per_token"))
        for share, times in zip(PERCENTILES, late, strict=True)
    }
    times = {"reading": first, "writing": token}
    made = Expectation(setup, reading, writing, "", times, percentiles=percentiles)
    if counts is None:
        return made
    times = {name: time[fits] for name, time in times.items()}
    return replace(made, setup=_asked(setup, users.COUNTS, counts), times=times, fits=fits)


def _asked(setup: Setup, names: Sequence[str], counts: Any) -> Setup:
    """The setup with other counts, numbers or arrays."""
    asked: dict[str, Any] = {
        name: quantity(count, "") for name, count in zip(names, counts, strict=True)
    }
    return replace(setup, **asked)


UNFIT = Missing("Nothing is expected of what does not fit.")


def _of_lengths(setup: Setup) -> Expectation | Missing:
    """What is expected of batches of one length on so many devices."""
    asked = {"reading": time.expected_prefill, "writing": time.expected_decode}
    made = {name: if_measured(partial(expect, setup)) for name, expect in asked.items()}
    missing = [parts for parts in made.values() if isinstance(parts, Missing)]
    passes = {name: parts for name, parts in made.items() if isinstance(parts, Parts)}
    if not passes:
        return missing[0]
    times = {name: parts.total for name, parts in passes.items()}
    known = {name: dict(parts) for name, parts in passes.items()}
    of_both = passes.get("reading"), passes.get("writing")
    return Expectation(setup, *of_both, missing[0].reason if missing else "", times, known)
