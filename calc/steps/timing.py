"""`step`: how long a job takes for a load, at least, at most without overlap, and as expected.

The one author of these answers: plans, planners, published rows, services and live figures ask
here. At published rates the operations and bytes of a pass make roofs that no program beats;
at measured rates its kernels, messages and the software's own time make what is expected.

A sequence that writes an answer grows by a token a step, so that each step attends to a longer
context than the one before: `mean_step` is the mean of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from calc.catalog.machines import NO_TIME, Machine
from calc.core.arguments import check_shapes, numbers
from calc.core.arrays import Number, numpy
from calc.core.elementwise import largest, maximum, minimum, smallest, where
from calc.core.errors import InputError
from calc.core.units import Quantity
from calc.laws.roofline import StepTime, Workload
from calc.networks import transformer
from calc.steps import communication, expectation, layouts
from calc.steps.expectation import Missing, Parts, Step, holds_copies, serving_pass
from calc.steps.job import FLOP, NO_WORK, SECOND, TOKEN, TWO_BYTES, Batch, Job, Tokens

NODES = 0.5 - 3**-0.5 / 2, 0.5 + 3**-0.5 / 2
"""Two points of a stretch that have the mean of any cubic, by Gauss and Legendre."""


def step(job: Job, load: Tokens | Batch) -> Step:
    """A pass of serving for `Tokens`, or a step of training for a `Batch`.

    Equation: T_lower = max T_i, T_upper = Σ T_i

    The parts T_i are those of all devices together at published rates: operations, bytes of weights
    and caches, messages. `expected` has kernels and messages at measured rates, one after the
    other, and the software's own time. Loads of serving may be arrays, which have bounds alone:
    `bounds` asks for no more.

    >>> from calc import Layout
    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=8))
    >>> found = step(job, Tokens(writing=32, context=4096))
    >>> print(found.lower, found.expected, found.bound)
    6.789 ms 14.47 ms memory
    >>> print(step(Job.of("llama-3-8b", "dgx-h100", Layout(data=8)), Batch(8192)).lower)
    444.1 ms
    """
    if isinstance(load, Batch):
        return layouts.training_step(job, load)
    return Step.of(bounds(job, load), _expected(job, load), job.software)


def bounds(job: Job, load: Tokens | Batch) -> StepTime:
    """The bounds of that time alone, which of many loads or layouts take far less to compute.

    >>> from calc import Layout
    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=8))
    >>> print(bounds(job, Tokens(writing=32, context=4096)).lower)
    6.789 ms
    """
    if isinstance(load, Batch):
        return layouts.training_bounds(job, load)
    Job.check(job)
    Tokens.check(load)
    tokens, peak, bandwidth = load, job.peak, job.memory_bandwidth
    if staged := largest(job.layout.pipeline) > 1:
        # A batch passes all stages in turn, while as many others like it fill them.
        count, load = job.under_way(tokens)
        peak, bandwidth = (rate / job.layout.pipeline for rate in (peak, bandwidth))
    roofs = _workload(job, load).between(peak, bandwidth)
    counted = replace(roofs, tokens=TOKEN * (tokens.writing if tokens.writes else tokens.reading))
    if staged:
        work, moved = roofs.operations * count, roofs.traffic * count
        counted = replace(counted, operations=work, peak=job.peak, traffic=moved)
    if not isinstance(job.machine, Machine):
        return counted
    parts = roofs.parts | ({"links": _messages(job, load)} if job.sends else {})
    if job.split is not None:
        parts["host memory"] = expectation.read_on_host(job, load) / job.split.host.bandwidth
    return replace(counted, parts=parts)


def _expected(job: Job, tokens: Tokens) -> Parts | Missing:
    """Return what is expected of a pass of serving, or why nothing is."""
    if not isinstance(job.machine, Machine):
        return expectation.NO_MACHINE
    counts = *vars(tokens).values(), job.layout.tensor
    return expectation.if_measured(partial(expectation.serving_pass, job, tokens), *counts)


def _workload(job: Job, load: Tokens) -> Workload:
    """Operations of all tokens, and the bytes of weights, and of their caches and states."""
    work, moved = NO_WORK, job.layout.weights_read(job.weights, load.computed / job.layout.data)
    if load.writes:
        products = transformer.decode_matmuls(job.model, load.context)
        work = work + sum((product.operations for product in products), NO_WORK) * load.checked
        cache = transformer.decode_bytes(job.model, load.context, job.formats.kv)
        moved = moved + cache * load.writing
    if load.reads:
        # Attention looks at all before, and the output is of the last token of each prompt.
        end, before = load.before + load.prompt, load.before
        of_one = transformer.causal_flops(job.model, end) * end * TOKEN
        if largest(before):
            earlier = maximum(before, 1)
            seen = transformer.causal_flops(job.model, earlier) * earlier * TOKEN
            of_one = of_one - where(before > 0, 1.0, 0.0) * seen
        vocabulary = [matrix for matrix in job.model.matrices if matrix.name == "vocabulary"]
        for matrix in vocabulary:
            of_one = of_one - 2 * matrix.parameters * (load.prompt - 1) * FLOP
        work = work + of_one * load.prompts
        moved = moved + transformer.kv_cache(job.model, end, job.formats.kv) * load.prompts
    if job.split is not None:
        elsewhere = expectation.read_on_host(job, load)
        # Of what the host multiplies by no operation is the device's.
        work = work * (1 - (elsewhere / moved).m_as(""))
        moved = moved - elsewhere
    return Workload(work.to("FLOP"), moved)


def _messages(job: Job, load: Tokens) -> Quantity:
    """The least time of the sums of slices, of sending a copy's tokens to experts and back, and of
    passing them on between stages."""
    machine, tokens = job.measured_on, load.computed / job.layout.data
    pace = communication.seconds_per_byte("all_reduce", job.layout.tensor, machine)
    vectors: Number = (TWO_BYTES * (job.model.width * tokens)).m_as("byte")
    time = SECOND * (job.sums * pace * vectors)
    if layers := job.layers_that_exchange:
        among = job.layout.experts
        copies = communication.copies_of_a_token(machine, job.chosen_experts, among)
        pace = layers * communication.seconds_per_byte("all_to_all", among, machine)
        for sent in job.sent_to_experts(tokens):
            vectors = sent.m_as("byte")
            time = time + SECOND * (pace * copies * vectors)
    if largest(job.layout.pipeline) > 1:
        sent = TWO_BYTES * (job.model.width * tokens / job.layout.tensor)
        inside, across = job.layout.hops(machine.domain)
        for count, devices in ((inside, 2), (across, machine.domain + 1)):
            if largest(count):
                time = time + count * (sent / communication.sending(devices, machine)).to("s")
    return time


def mean_step(job: Job, sequences: float, prompt: float, generated: float) -> Step:
    """The step that writes a token of each of so many sequences, the mean over their answer.

    At published rates each part grows linearly with the context, but where a window or a selection
    fills on the way, and at measured rates almost: the means of the stretches between such bends,
    each by its length, make that of all.

    >>> from calc import Layout
    >>> job = Job.of("gemma-2-27b", "dgx-h100", Layout(tensor=8), software="vllm")
    >>> found = mean_step(job, 64, 1000, 6000)
    >>> print(found.lower, found.expected)
    5.315 ms 8.842 ms
    """
    least = mean_bounds(job, sequences, prompt, generated)
    if not isinstance(job.machine, Machine):
        return Step.of(least, expectation.NO_MACHINE)
    made = expectation.if_measured(
        lambda: mean_pass(job, sequences, prompt, generated), sequences, prompt, generated
    )
    return Step.of(least, made, job.software)


def mean_bounds(job: Job, sequences: Number, prompt: Number, generated: Number) -> StepTime:
    """The bounds of that step alone; numbers, or arrays of them.

    >>> print(mean_bounds(Job.of("llama-3-8b", "dgx-h100"), 8, 1000, 200).lower)
    4.825 ms
    """
    sequences, prompt, generated = _checked_answer(job, sequences, prompt, generated)
    shares: list[Any] = []
    steps: list[StepTime] = []
    for share, low, high in _stretches(job, prompt, generated):
        shares.append(share)
        steps.append(bounds(job, Tokens(writing=sequences, context=(low + high) / 2)))
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


def mean_pass(job: Job, sequences: Any, prompt: float, generated: float) -> Parts:
    """Return what is expected of that step; of arrays of batches an array of it.

    >>> print(mean_pass(Job.of("llama-3-8b", "dgx-h100"), 8, 1000, 200).total)
    5.830 ms
    """
    sequences, prompt, generated = _checked_answer(job, sequences, prompt, generated)
    end = prompt + generated
    bent = _copies_fit(job, sequences, prompt, end) != _copies_fit(job, sequences, end, end)
    bends = []
    if isinstance(bent, bool) and bent:
        bends = [_last_that_fits(job, sequences, prompt, end)]
    shares: list[float] = []
    passes: list[Parts] = []
    for share, low, high in _stretches(job, prompt, generated, bends):
        for node in NODES:
            context = low + node * (high - low)
            shares.append(share / len(NODES))
            passes.append(serving_pass(job, Tokens(writing=sequences, context=context)))
    made = _mean(shares, passes)
    if not isinstance(bent, bool):
        for index in map(int, numpy.flatnonzero(bent)):
            alone = mean_pass(job, float(sequences[index]), prompt, generated)
            made = _with_one(made, index, alone, sequences.shape)
    return made


def _checked_answer(job: Job, sequences: Any, prompt: Any, generated: Any) -> tuple[Any, Any, Any]:
    """Return how many sequences there are and how long, as numbers or arrays in their ranges."""
    Job.check(job)
    sequences = numbers("sequences", sequences, above=0.0)
    prompt, generated = numbers("prompt", prompt), numbers("generated", generated, above=0.0)
    check_shapes({"sequences": sequences, "prompt": prompt, "generated": generated})
    if smallest((prompt + generated) - prompt) <= 0:
        raise InputError(
            f"a prompt of {largest(prompt):g} tokens is no longer with an answer of"
            f" {smallest(generated):g}: both must be lengths that programs can tell apart"
        )
    return sequences, prompt, generated


def _stretches(
    job: Job, prompt: Any, generated: Any, others: Sequence[float] = ()
) -> Iterator[tuple[Any, Any, Any]]:
    """The share of an answer, and the contexts where it begins and ends, between its bends.

    One is where a window or a selection is full.
    """
    end = prompt + generated
    full = [minimum(maximum(reach, prompt), end) for reach in job.model.reaches]
    bends = sorted([*full, *others]) if others else full
    low = prompt
    for high in (*bends, end):
        if largest(high - low) > 0:
            yield (high - low) / generated, low, high
        low = high


def _copies_fit(job: Job, sequences: Any, context: float, end: float) -> Any:
    """Return whether devices have room for copies of caches so long, or share them out."""
    if job.copies_of_caches == 1:
        return True
    fit = holds_copies(job.with_context(end), sequences, context)
    return fit if getattr(fit, "ndim", 0) else bool(fit)


def _last_that_fits(job: Job, sequences: float, low: float, high: float) -> float:
    """The context up to which there is room for them."""
    end = high
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if _copies_fit(job, sequences, middle, end) else (low, middle)
    return low


def _with_one(made: Parts, index: int, alone: Parts, shape: tuple[int, ...]) -> Parts:
    """Return what is expected of several batches, with that of one in its place."""
    times = {}
    for name in dict.fromkeys((*made, *alone)):
        seconds = numpy.array(numpy.broadcast_to(made.get(name, NO_TIME).m_as("s"), shape))
        seconds[index] = alone.get(name, NO_TIME).m_as("s")
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
