"""`step`: how long a job takes for a load, at least, at most without overlap, and as expected.

The one author of these answers: plans, planners, published rows, services and live figures ask
here. At published rates the operations and bytes of a pass make roofs that no program beats;
at measured rates its kernels, messages and the software's own time make what is expected.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from calc.catalog.machines import Machine
from calc.core.arrays import Number
from calc.core.elementwise import largest, maximum, where
from calc.core.units import Quantity
from calc.laws.roofline import StepTime, Workload
from calc.networks import transformer
from calc.steps import communication, expectation, layouts
from calc.steps.expectation import Missing, Parts, Step
from calc.steps.job import FLOP, NO_WORK, SECOND, TOKEN, TWO_BYTES, Batch, Job, Tokens


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
    return Step.of(bounds(job, load), _expected(job, load))


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
    return replace(counted, parts=parts)


def _expected(job: Job, tokens: Tokens) -> Parts | Missing:
    """Return what is expected of a pass of serving, or why nothing is."""
    if not isinstance(job.machine, Machine):
        return expectation.NO_MACHINE
    given = *vars(tokens).values(), job.layout.tensor
    return expectation.if_measured(partial(expectation.serving_pass, job, tokens), *given)


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
