"""The passes of a setup, and how long they take: of a batch read at once, and of users.

Users ask again as soon as an answer is whole: the closed loop that published servers are held to.
No program beats a prompt that is read alone, a token of a sequence alone, nor for a whole request
the work of all users' requests on all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from calc.core.arrays import numpy
from calc.core.units import Quantity, quantity
from calc.laws import collectives
from calc.laws.roofline import StepTime
from calc.planning.service.loops import PERCENTILES, closed_loop
from calc.planning.setup import COUNTS, ONE, Setup, is_array
from calc.steps import timing
from calc.steps.expectation import Parts, serving_pass
from calc.steps.job import SECOND, TWO_BYTES, Job, Tokens


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
    found = numpy.full((*numpy.shape(fits), 1 + len(PERCENTILES), 2), numpy.nan)
    for index, point in points(setup, fits):
        assert point.users is not None
        asked = (point.batch, point.prompt, point.generated)
        count, prompt, generated = (each.magnitude for each in asked)
        clients = replace(point.users, count=count)
        loop = closed_loop(point.job, clients, prompt, generated, overlap=overlap)
        found[index] = (loop.ttft, loop.tpot), *loop.late.values()
        if not loop.tpot:
            found[index][:, 1] = step(point).m_as("s")
    return SECOND * numpy.moveaxis(found, (-2, -1), (0, 1))


def points(setup: Setup, fits: Any) -> Iterator[tuple[tuple[int, ...], Setup]]:
    """Yield the place of each point that fits, and its setup."""
    if not is_array(fits):
        yield (), setup
        return
    counts = {name: getattr(setup, name).magnitude for name in COUNTS}
    spread = {name: numpy.broadcast_to(count, fits.shape) for name, count in counts.items()}
    for place in numpy.argwhere(fits).tolist():
        index = tuple(place)
        yield index, with_counts(setup, {name: each[index].item() for name, each in spread.items()})


def with_counts(setup: Setup, counts: Mapping[str, Any]) -> Setup:
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
    return replace(bounds, parts=parts)
