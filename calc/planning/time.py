"""How long the passes of a setup take: prefill of all prompts, and decode of a token of each."""

from __future__ import annotations

from dataclasses import replace

from calc.core.elementwise import maximum, minimum
from calc.core.units import Quantity, quantity
from calc.laws.roofline import StepTime
from calc.planning.setup import Setup
from calc.steps import collectives
from calc.steps.expectation import Parts, serving_pass
from calc.steps.job import TWO_BYTES, Tokens
from calc.steps.timing import serving_step


def prefill(setup: Setup) -> StepTime:
    """The pass that reads all prompts."""
    return _step(setup, _reading(setup))


def decode(setup: Setup) -> StepTime:
    """The pass that writes a token of each sequence, the mean of an answer.

    Each part of the time grows linearly with the context: at its mean is the mean of all. A window
    or a selection that fills on the way bends this line, and the answer is the mean of what lies on
    both sides.
    """
    reach = setup.model.reach
    if reach is None:
        return _step(setup, _writing(setup, setup.prompt + setup.generated / 2))
    full = minimum(maximum(quantity(reach), setup.prompt), setup.context)
    before = _step(setup, _writing(setup, (setup.prompt + full) / 2))
    after = _step(setup, _writing(setup, (full + setup.context) / 2))
    share = (full - setup.prompt) / setup.generated

    def mean(filling: Quantity, filled: Quantity) -> Quantity:
        return share * filling + (1 - share) * filled

    return replace(
        after,
        parts={name: mean(part, after.parts[name]) for name, part in before.parts.items()},
        operations=mean(before.operations, after.operations),
        traffic=mean(before.traffic, after.traffic),
    )


def expected_prefill(setup: Setup) -> Parts:
    """The pass that reads all prompts, at measured rates."""
    return serving_pass(setup.job, _reading(setup))


def expected_decode(setup: Setup) -> Parts:
    """The pass that writes a token of each sequence, at the mean context of an answer."""
    return serving_pass(setup.job, _writing(setup, setup.prompt + setup.generated / 2))


def _reading(setup: Setup) -> Tokens:
    prompt, batch = setup.prompt.m_as(""), setup.batch.m_as("")
    return Tokens(reading=batch * prompt, prompt=prompt)


def _writing(setup: Setup, context: Quantity) -> Tokens:
    return Tokens(writing=setup.batch.m_as(""), context=context.m_as(""))


def _step(setup: Setup, tokens: Tokens) -> StepTime:
    """One pass on the machine, or on devices in the ring that is given."""
    job = setup.job if setup.link is None else replace(setup.job, machine=setup.device)
    step = serving_step(job, tokens)
    parts = {"memory bandwidth": step.parts["memory"], "compute": step.parts["compute"]}
    if setup.link is not None:
        vectors = quantity(tokens.computed, "") * setup.model.width * TWO_BYTES
        sums = collectives.ring_all_reduce(vectors, setup.tensor, setup.link, "0 s")
        parts["links"] = setup.model.blocks * sums
    elif "links" in step.parts:
        parts["links"] = step.parts["links"]
    return replace(step, parts=parts)
