"""The expectation of a setup: its kernels at measured rates, its messages as measured.

Where a rate was not measured there is no expectation, and the sentence that says which rate is
missing stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from calc.catalog.intervals import FIRST_TOKENS, TOKENS, Interval
from calc.catalog.machines import NotMeasured
from calc.core.arrays import numpy
from calc.core.elementwise import different, largest
from calc.core.fixed import fix_fields
from calc.core.formatting import columns
from calc.core.units import Quantity, from_parts
from calc.planning import passes
from calc.planning.results import RANGES, Results, results_of, where_it_fits
from calc.planning.service.loops import PERCENTILES
from calc.planning.setup import COUNTS, Setup, is_array
from calc.steps.expectation import Missing, Parts, if_measured

UNFIT = Missing("Nothing is expected of what does not fit.")


@dataclass(frozen=True)
class Expectation(Results[Quantity]):
    """Times, rates and costs that a program is expected to reach, and the parts of its passes.

    Where one pass has a rate that was not measured, what stands on it raises the sentence that
    names the rate; the other pass has its time.
    """

    reading: Parts | None
    """The pass that reads all prompts, kind by kind of what it launches; of arrays that of some."""
    writing: Parts | None
    results: Mapping[str, Quantity | None]
    """Times, rates and costs by their names, as far as they are expected; NaN where it does not
    fit."""
    parts: Mapping[str, Mapping[str, Quantity]] = field(default_factory=dict)
    """The times of both passes, by kind of what they launch."""
    missing: str = ""
    """Which rate was not measured, where one of the passes is not expected."""
    percentiles: Mapping[str, Quantity] = field(default_factory=dict)
    """Of users, both times at the percentiles of requests: "time_to_first_token_p99"."""

    def __post_init__(self) -> None:
        fix_fields(self)

    @property
    def passes(self) -> dict[str, Parts]:
        """The passes that are expected, by what they end with."""
        passes = {"first token": self.reading, "each token": self.writing}
        return {title: parts for title, parts in passes.items() if parts is not None}

    @property
    def facts(self) -> dict[str, Any]:
        """Return all of it by names that stay; None of what was not measured."""
        results = {name: self.results.get(name) for name in RANGES}
        parts = {name: self.parts.get(name) for name in ("reading", "writing")}
        return {**results, **self.percentiles, **parts}

    def result(self, name: str) -> Any:
        if name not in self.results:
            raise NotMeasured(self.missing)
        return self.results[name]

    @property
    def main(self) -> Parts:
        """The pass that most of an answer takes, whose rates it stands on."""
        parts = self.writing or self.reading
        assert parts is not None
        return parts

    def alike(self, name: str) -> Interval | None:
        """Return how far rows like it are off, of one of the quantities by its name."""
        first = self.reading if name == "time_to_first_token" else None
        return (first or self.main).alike

    def __str__(self) -> str:
        tables = (columns(parts.rows(title)) for title, parts in self.passes.items())
        return "\n\n".join("\n".join(table) for table in tables)


def of(setup: Setup, fits: Any) -> Expectation | Missing:
    """Return what is expected where it fits, or the sentence on the rate that is missing."""
    if not largest(fits):
        return UNFIT
    if setup.link is not None and largest(setup.devices) > 1:
        return Missing("messages over the link that is given were not measured")
    if setup.users is not None:
        return _of_users(setup, fits)
    if not is_array(fits):
        return _of_batch(setup)
    return _of_batches(setup, fits)


def _of_batch(setup: Setup) -> Expectation | Missing:
    """Return what is expected of batches of one length on so many devices, all of which fit."""
    asked = {"reading": passes.expected_prefill, "writing": passes.expected_decode}
    made = {name: if_measured(partial(expect, setup)) for name, expect in asked.items()}
    missing = [parts for parts in made.values() if isinstance(parts, Missing)]
    known = {name: parts for name, parts in made.items() if isinstance(parts, Parts)}
    if len(missing) == len(made):
        return missing[0]
    reading, writing = known.get("reading"), known.get("writing")
    times = (None if parts is None else parts.total for parts in (reading, writing))
    return Expectation(
        reading,
        writing,
        results_of(setup, *times),
        {name: dict(parts) for name, parts in known.items()},
        missing[0].reason if missing else "",
    )


def _of_batches(setup: Setup, fits: Any) -> Expectation | Missing:
    """Return that of arrays: batches of the same lengths on the same devices are asked once."""
    made: Expectation | Missing = UNFIT
    spread: dict[str, dict[str, Any]] = {}
    for here, alike in _alike(setup, fits):
        made = _of_batch(alike)
        if isinstance(made, Missing):
            return made
        for kind, found in {"results": made.results, **made.parts}.items():
            column = spread.setdefault(kind, {})
            for name, value in found.items():
                column[name] = _put(column.get(name), value, here)
    assert isinstance(made, Expectation)
    masked = {kind: _masked(fits, found) for kind, found in spread.items()}
    return replace(made, results=masked.pop("results"), parts=masked)


def _put(column: Quantity | None, value: Quantity | None, here: Any) -> Quantity | None:
    """A column of zeros, or the one that is there, with values at some places."""
    if value is None:
        return None
    numbers = numpy.zeros(here.shape) if column is None else column.magnitude.copy()
    numbers[here] = value.magnitude
    return from_parts(numbers, value._units)


def _alike(setup: Setup, fits: Any) -> Iterator[tuple[Any, Setup]]:
    """Yield the points that fit by groups in which batches alone differ, and where these are."""
    names = [name for name in COUNTS if name != "batch"]
    groups, places = different(*(getattr(setup, name).magnitude for name in names))
    batches = numpy.broadcast_to(setup.batch.magnitude, fits.shape)
    for place, counts in enumerate(zip(*map(numpy.atleast_1d, groups), strict=True)):
        here = fits if places is None else fits & (places == place)
        if here.any():
            alike = dict(zip(names, counts, strict=True)) | {"batch": batches[here]}
            yield here, passes.with_counts(setup, alike)


def _of_users(setup: Setup, fits: Any) -> Expectation | Missing:
    """Return what users are expected to meet, by passes of a prompt alone and of all users."""
    _, one = next(passes.points(setup, fits))
    step = passes.expected_decode
    try:
        met, *late = passes.loops(setup, fits, lambda point: step(point).total)
        reading, writing = passes.expected_prefill(passes.alone(one)), step(one)
    except NotMeasured as missing:
        return Missing(str(missing))
    mixture = setup.model.experts is not None
    found = results_of(setup, *(where_it_fits(fits, time, 1.0) for time in met))
    return Expectation(
        reading.as_rows_of(FIRST_TOKENS, mixture),
        writing.as_rows_of(TOKENS, mixture),
        _masked(fits, found),
        percentiles={
            f"{name}_p{100 * share:g}": times[place]
            for place, name in enumerate(("time_to_first_token", "time_per_token"))
            for share, times in zip(PERCENTILES, late, strict=True)
        },
    )


def _masked(fits: Any, found: Mapping[str, Quantity | None]) -> dict[str, Any]:
    """Return what was found, NaN where it does not fit."""
    return {
        name: None if value is None else where_it_fits(fits, value) for name, value in found.items()
    }
