"""The passes of a setup, and how long they take: of a batch read at once, and of users.

Users ask again as soon as an answer is whole: the closed loop that published servers are held to.
No program beats a prompt that is read alone, a token of a sequence alone, nor for a whole request
the work of all users' requests on all devices.

Where a rate was not measured nothing is expected, and the sentence that says which rate is missing
stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from calc.catalog.intervals import FIRST_TOKENS, TOKENS, Interval
from calc.catalog.machines import NotMeasured
from calc.core.arrays import numpy
from calc.core.elementwise import different, largest
from calc.core.fixed import fix_fields
from calc.core.formatting import columns
from calc.core.units import Quantity, from_parts, quantity
from calc.laws import collectives
from calc.laws.roofline import StepTime
from calc.planning.results import RANGES, Results, of_a_token, results_of, where_it_fits
from calc.planning.service.loops import PERCENTILES, closed_loop
from calc.planning.setup import A_TOKEN, COUNTS, ONE, S, Setup, is_array
from calc.steps import device_power, timing
from calc.steps.device_power import Power
from calc.steps.expectation import Missing, Parts, if_measured, serving_pass
from calc.steps.job import SECOND, TWO_BYTES, Job, Tokens

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
    """Both times that users see, at the percentiles of requests: "time_to_first_token_p99"."""

    def __post_init__(self) -> None:
        fix_fields(self)

    @property
    def passes(self) -> dict[str, Parts]:
        """The passes that are expected, by what they end with."""
        passes = {"first token": self.reading, "each token": self.writing}
        return {title: parts for title, parts in passes.items() if parts is not None}

    @property
    def facts(self) -> dict[str, Any]:
        """Return the expectation by names that stay; None of what was not measured."""
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


def prefill(setup: Setup) -> StepTime:
    """The bounds of the pass that reads all prompts."""
    load = _reading(setup)
    return _over_links(setup, timing.bounds(_job(setup), load), load)


def decode(setup: Setup) -> StepTime:
    """The bounds of the pass that writes a token of each sequence, the mean of an answer."""
    bounds = timing.mean_bounds(_job(setup), *_lengths(setup))
    return _over_links(setup, bounds, Tokens(writing=setup.batch.m_as("")))


def expected_prefill(setup: Setup) -> Parts:
    """The pass that reads all prompts, at measured rates."""
    return serving_pass(setup.job, _reading(setup))


def expected_decode(setup: Setup) -> Parts:
    """The pass that writes a token of each sequence, the mean of an answer, at measured rates."""
    return timing.mean_pass(setup.job, *_lengths(setup))


def alone(setup: Setup) -> Setup:
    """The setup of one request, which meets nobody."""
    return replace(setup.one_copy, batch=ONE, users=None)


def together(setup: Setup, prompt: StepTime, written: StepTime) -> StepTime:
    """The average step in which all users write, and their share of prompts is read beside them.

    Weights are read for both at once.
    """
    of_copy = setup.batch * setup.one_copy.devices / setup.devices
    share = (of_copy / setup.generated).to("")
    parts = {
        name: part if name == "memory bandwidth" else part + share * prompt.parts[name]
        for name, part in written.parts.items()
    }
    return replace(written, parts=parts)


def loops(
    setup: Setup, fits: Any, step: Callable[[Setup], Quantity], overlap: bool = True
) -> Quantity:
    """Times to first token, and of a token after it, of each point; NaN where it does not fit.

    A row of both for the mean of requests, and for each of PERCENTILES. Where answers end with
    their first token, one more would take the step in which all write.
    """
    times = numpy.full((*numpy.shape(fits), 1 + len(PERCENTILES), 2), numpy.nan)
    for index, point in points(setup, fits):
        assert point.users is not None
        asked = (point.batch, point.prompt, point.generated)
        count, prompt, generated = (each.magnitude for each in asked)
        clients = replace(point.users, count=count)
        loop = closed_loop(point.job, clients, prompt, generated, overlap=overlap)
        times[index] = (loop.ttft, loop.tpot), *loop.late.values()
        if not loop.tpot:
            times[index][:, 1] = step(point).m_as("s")
    return SECOND * numpy.moveaxis(times, (-2, -1), (0, 1))


def points(setup: Setup, fits: Any) -> Iterator[tuple[tuple[int, ...], Setup]]:
    """Yield the place of each point that fits, and its setup."""
    if not is_array(fits):
        yield (), setup
        return
    counts = {name: getattr(setup, name).magnitude for name in COUNTS}
    spread = {name: numpy.broadcast_to(count, fits.shape) for name, count in counts.items()}
    for where in numpy.argwhere(fits).tolist():
        index = tuple(where)
        yield index, with_counts(setup, {name: each[index].item() for name, each in spread.items()})


def with_counts(setup: S, counts: Mapping[str, Any]) -> S:
    """The setup with other counts, numbers or arrays, by their names."""
    asked: dict[str, Any] = {name: quantity(count, "") for name, count in counts.items()}
    return replace(setup, **asked)


def _reading(setup: Setup) -> Tokens:
    prompt, batch = setup.prompt.m_as(""), setup.batch.m_as("")
    return Tokens(reading=batch * prompt, prompt=prompt)


def _lengths(setup: Setup) -> tuple[Any, Any, Any]:
    return setup.batch.m_as(""), setup.prompt.m_as(""), setup.generated.m_as("")


def _job(setup: Setup) -> Job:
    """The job on the machine, or on devices alone in the ring that is given."""
    return setup.job if setup.link is None else replace(setup.job, machine=setup.device)


def _over_links(setup: Setup, bounds: StepTime, load: Tokens) -> StepTime:
    """The bounds under the names of a plan, with the messages of a ring that is given."""
    parts = {"memory bandwidth": bounds.parts["memory"], "compute": bounds.parts["compute"]}
    if setup.link is not None:
        _, load = setup.job.under_way(load)
        computed = quantity(load.computed, "") / setup.copies
        vectors = computed * setup.model.width * TWO_BYTES
        sums = collectives.ring_all_reduce(vectors, setup.tensor, setup.link, "0 s")
        passed = (setup.stages - 1) * vectors / (setup.tensor * setup.link)
        parts["links"] = setup.model.blocks * sums + passed
    elif "links" in bounds.parts:
        parts["links"] = bounds.parts["links"]
    if "host memory" in bounds.parts:
        parts["host memory"] = bounds.parts["host memory"]
    return replace(bounds, parts=parts)


def power_at(
    setup: Setup, prompt: StepTime, written: StepTime, throughput: Quantity
) -> Power | None:
    """Return what devices are expected to draw while they write so many tokens a second in all.

    Of users, the weights that prompts need are read beside those for written tokens.
    """
    if setup.power is None:
        return None
    tokens = setup.batch * A_TOKEN
    work, moved = written.operations / tokens, written.traffic / tokens
    of_prompt = (setup.batch if setup.users is None else ONE) * setup.generated * A_TOKEN
    work = work + prompt.operations / of_prompt
    if setup.users is None:
        moved = moved + prompt.traffic / of_prompt
    uses = work / written.peak, moved / setup.job.memory_bandwidth
    compute, memory = ((throughput * use).m_as("") for use in uses)
    whole, cap = setup.in_machine, setup.power_cap
    return device_power.at_work(setup.machine, memory, compute, whole, cap)


def expected(setup: Setup, fits: Any, prompt: StepTime, written: StepTime) -> Expectation | Missing:
    """Return what is expected where it fits, or the sentence on the rate that is missing.

    Energy goes by the work of the passes that read prompts and that write.
    """
    made = _expected(setup, fits)
    if isinstance(made, Missing) or "throughput" not in made.results:
        return made
    rate = where_it_fits(fits, made.result("throughput"), 1.0)
    paid = of_a_token(setup, rate, power_at(setup, prompt, written, rate))
    return replace(made, results={**made.results, **_masked(fits, paid)})


def _expected(setup: Setup, fits: Any) -> Expectation | Missing:
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
    asked = {"reading": expected_prefill, "writing": expected_decode}
    made = {name: if_measured(partial(expect, setup)) for name, expect in asked.items()}
    missing = [parts for parts in made.values() if isinstance(parts, Missing)]
    measured = {name: parts for name, parts in made.items() if isinstance(parts, Parts)}
    if len(missing) == len(made):
        return missing[0]
    reading, writing = measured.get("reading"), measured.get("writing")
    times = (None if parts is None else parts.total for parts in (reading, writing))
    return Expectation(
        reading,
        writing,
        results_of(setup, *times),
        {name: dict(parts) for name, parts in measured.items()},
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
        for kind, values in {"results": made.results, **made.parts}.items():
            column = spread.setdefault(kind, {})
            for name, value in values.items():
                column[name] = _put(column.get(name), value, here)
    assert isinstance(made, Expectation)
    masked = {kind: _masked(fits, values) for kind, values in spread.items()}
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
    for index, counts in enumerate(zip(*map(numpy.atleast_1d, groups), strict=True)):
        here = fits if places is None else fits & (places == index)
        if here.any():
            alike = dict(zip(names, counts, strict=True)) | {"batch": batches[here]}
            yield here, with_counts(setup, alike)


def _of_users(setup: Setup, fits: Any) -> Expectation | Missing:
    """Return what users are expected to meet, by passes of a prompt alone and of all users."""
    _, one = next(points(setup, fits))
    step = expected_decode
    try:
        met, *late = loops(setup, fits, lambda point: step(point).total)
        reading, writing = expected_prefill(alone(one)), step(one)
    except NotMeasured as missing:
        return Missing(str(missing))
    mixture = setup.model.experts is not None
    results = results_of(setup, *(where_it_fits(fits, time, 1.0) for time in met))
    return Expectation(
        reading.as_rows_of(FIRST_TOKENS, mixture),
        writing.as_rows_of(TOKENS, mixture),
        _masked(fits, results),
        percentiles={
            f"{name}_p{100 * share:g}": times[index]
            for index, name in enumerate(("time_to_first_token", "time_per_token"))
            for share, times in zip(PERCENTILES, late, strict=True)
        },
    )


def _masked(fits: Any, values: Mapping[str, Quantity | None]) -> dict[str, Any]:
    """Return what was found, NaN where it does not fit."""
    return {
        name: None if value is None else where_it_fits(fits, value)
        for name, value in values.items()
    }
