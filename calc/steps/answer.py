"""The mean step of an answer: what writing each of its tokens takes on average.

A sequence reads a prompt and grows by a token a step, so that each step attends to a longer context
than the one before. The one author of means over an answer: plans, services and rollouts ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from calc.catalog.machines import NO_TIME, Machine
from calc.core.arrays import Number, numpy
from calc.core.elementwise import largest, maximum, minimum
from calc.core.units import Quantity
from calc.laws.roofline import StepTime
from calc.steps import expectation, timing
from calc.steps.expectation import Parts, Step, holds_copies, serving_pass
from calc.steps.job import SECOND, Job, Tokens

NODES = 0.5 - 3**-0.5 / 2, 0.5 + 3**-0.5 / 2
"""Where on a stretch two points have the mean of any cubic, by Gauss and Legendre."""


def mean_step(job: Job, batch: float, prompt: float, generated: float) -> Step:
    """The step that writes a token of each of so many sequences, the mean over their answer.

    At published rates each part grows linearly with the context, but where a window or a selection
    fills on the way, and at measured rates almost: the means of the stretches between such bends,
    each by its length, make that of all.

    >>> from calc import Layout
    >>> job = Job.of("gemma-2-27b", "dgx-h100", Layout(tensor=8), software="vllm")
    >>> found = mean_step(job, 64, 1000, 6000)
    >>> print(found.lower, found.expected)
    5.315 ms 11.07 ms
    """
    bounds = mean_bounds(job, batch, prompt, generated)
    if not isinstance(job.machine, Machine):
        return Step.of(bounds, expectation.NO_MACHINE)
    made = expectation.if_measured(
        lambda: mean_pass(job, batch, prompt, generated), batch, prompt, generated
    )
    return Step.of(bounds, made)


def mean_bounds(job: Job, batch: Number, prompt: Number, generated: Number) -> StepTime:
    """The bounds of that step alone; numbers, or arrays of them.

    >>> print(mean_bounds(Job.of("llama-3-8b", "dgx-h100"), 8, 1000, 200).lower)
    4.825 ms
    """
    shares: list[Any] = []
    steps: list[StepTime] = []
    for share, low, high in _stretches(job, prompt, generated):
        shares.append(share)
        steps.append(timing.bounds(job, Tokens(writing=batch, context=(low + high) / 2)))
    if len(steps) == 1:
        return steps[0]

    def mean(amounts: Iterable[Quantity]) -> Quantity:
        first, *others = (share * each for share, each in zip(shares, amounts, strict=True))
        total: Quantity = sum(others, first)
        return total

    return replace(
        steps[0],
        parts={name: mean(step.parts[name] for step in steps) for name in steps[0].parts},
        operations=mean(step.operations for step in steps),
        traffic=mean(step.traffic for step in steps),
    )


def mean_pass(job: Job, batch: Any, prompt: float, generated: float) -> Parts:
    """Return what is expected of that step; of arrays of batches an array of it.

    >>> print(mean_pass(Job.of("llama-3-8b", "dgx-h100"), 8, 1000, 200).total)
    5.830 ms
    """
    end = prompt + generated
    bent = _copies_fit(job, batch, prompt, end) != _copies_fit(job, batch, end, end)
    bends = []
    if isinstance(bent, bool) and bent:
        bends = [_last_that_fits(job, batch, prompt, end)]
    shares: list[float] = []
    passes: list[Parts] = []
    for share, low, high in _stretches(job, prompt, generated, bends):
        for node in NODES:
            context = low + node * (high - low)
            shares.append(share / len(NODES))
            passes.append(serving_pass(job, Tokens(writing=batch, context=context)))
    made = _mean(shares, passes)
    if not isinstance(bent, bool):
        for place in map(int, numpy.flatnonzero(bent)):
            alone = mean_pass(job, float(batch[place]), prompt, generated)
            made = _with_one(made, place, alone, batch.shape)
    return made


def _stretches(
    job: Job, prompt: Any, generated: Any, others: Sequence[float] = ()
) -> Iterator[tuple[Any, Any, Any]]:
    """The share of an answer, and the contexts where it begins and ends, between its bends.

    One is where a window or a selection is full.
    """
    end = prompt + generated
    full = [] if job.model.reach is None else [minimum(maximum(job.model.reach, prompt), end)]
    bends = sorted([*full, *others]) if others else full
    low = prompt
    for high in (*bends, end):
        if largest(high - low) > 0:
            yield (high - low) / generated, low, high
        low = high


def _copies_fit(job: Job, batch: Any, context: float, end: float) -> Any:
    """Return whether devices have room for copies of caches so long, or share them out."""
    if job.copies_of_caches == 1:
        return True
    fit = holds_copies(job.with_context(end), batch, context)
    return fit if getattr(fit, "ndim", 0) else bool(fit)


def _last_that_fits(job: Job, batch: float, low: float, high: float) -> float:
    """The context up to which there is room for them."""
    end = high
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if _copies_fit(job, batch, middle, end) else (low, middle)
    return low


def _with_one(made: Parts, place: int, alone: Parts, shape: tuple[int, ...]) -> Parts:
    """Return what is expected of several batches, with that of one in its place."""
    times = {}
    for name in dict.fromkeys((*made, *alone)):
        seconds = numpy.array(numpy.broadcast_to(made.get(name, NO_TIME).m_as("s"), shape))
        seconds[place] = alone.get(name, NO_TIME).m_as("s")
        times[name] = SECOND * seconds
    return Parts(times, made.hidden, made.made)


def _mean(shares: Sequence[float], passes: Sequence[Parts]) -> Parts:
    """The passes as one, which is made of what the last of them is made of."""
    weighed = list(zip(shares, passes, strict=True))

    def mean(times: Iterable[tuple[float, Quantity]]) -> Quantity:
        seconds: Number = sum(share * time.m_as("s") for share, time in times)
        return SECOND * seconds

    times = {
        name: mean((share, parts[name]) for share, parts in weighed if name in parts)
        for name in dict.fromkeys(name for parts in (passes[-1], *passes) for name in parts)
    }
    return Parts(times, mean((share, parts.hidden) for share, parts in weighed), passes[-1].made)
