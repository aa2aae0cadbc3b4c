"""How long the passes of a setup take: prefill of all prompts, and decode of a token of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calc.core.units import quantity
from calc.laws import collectives
from calc.laws.roofline import StepTime
from calc.planning.setup import Setup
from calc.steps import answer
from calc.steps.expectation import Parts, serving_pass
from calc.steps.job import TWO_BYTES, Job, Tokens
from calc.steps.timing import serving_bounds


def prefill(setup: Setup) -> StepTime:
    """The bounds of the pass that reads all prompts."""
    load = _reading(setup)
    return _over_links(setup, serving_bounds(_job(setup), load), load)


def decode(setup: Setup) -> StepTime:
    """The bounds of the pass that writes a token of each sequence, the mean of an answer."""
    bounds = answer.mean_bounds(_job(setup), *_counts(setup))
    return _over_links(setup, bounds, Tokens(writing=setup.batch.m_as("")))


def expected_prefill(setup: Setup) -> Parts:
    """The pass that reads all prompts, at measured rates."""
    return serving_pass(setup.job, _reading(setup))


def expected_decode(setup: Setup) -> Parts:
    """The pass that writes a token of each sequence, the mean of an answer, at measured rates."""
    return answer.mean_pass(setup.job, *_counts(setup))


def _reading(setup: Setup) -> Tokens:
    prompt, batch = setup.prompt.m_as(""), setup.batch.m_as("")
    return Tokens(reading=batch * prompt, prompt=prompt)


def _counts(setup: Setup) -> tuple[Any, Any, Any]:
    return setup.batch.m_as(""), setup.prompt.m_as(""), setup.generated.m_as("")


def _job(setup: Setup) -> Job:
    """The job on the machine, or on devices alone in the ring that is given."""
    return setup.job if setup.link is None else replace(setup.job, machine=setup.device)


def _over_links(setup: Setup, bounds: StepTime, load: Tokens) -> StepTime:
    """The bounds under the names of a plan, with the messages of a ring that is given."""
    parts = {"memory bandwidth": bounds.parts["memory"], "compute": bounds.parts["compute"]}
    if setup.link is not None:
        vectors = quantity(load.computed, "") * setup.model.width * TWO_BYTES
        sums = collectives.ring_all_reduce(vectors, setup.tensor, setup.link, "0 s")
        parts["links"] = setup.model.blocks * sums
    elif "links" in bounds.parts:
        parts["links"] = bounds.parts["links"]
    return replace(bounds, parts=parts)
