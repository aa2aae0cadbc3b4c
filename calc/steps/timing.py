"""`step`: how long a job takes for a load, at least, at most without overlap, and as expected.

The one author of these answers: plans, planners, published rows, services and live figures ask
here. At published rates the operations and bytes of a pass make roofs that no program beats;
at measured rates its kernels, messages and the software's own time make what is expected.
"""

# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calc.catalog.machines import Machine
from calc.core.elementwise import largest, maximum, where
from calc.core.units import Quantity, quantity
from calc.laws.roofline import StepTime, Workload
from calc.networks import transformer
from calc.steps import collectives, expectation, layouts
from calc.steps.job import TWO_BYTES, Batch, Job, Tokens

NO_WORK, NO_BYTES = quantity(0, "FLOP"), quantity(0, "byte")
A_TOKEN = quantity(1, "token")


def step(job: Job, load: Tokens | Batch) -> StepTime:
    """A pass of serving for `Tokens`, or a step of training for a `Batch`.

    Equation: T_lower = max T_i, T_upper = Σ T_i

    The parts T_i are those of all devices together at published rates: operations, bytes of weights
    and caches, messages. `expected` has kernels and messages at measured rates, one after the
    other, and the software's own time. Loads of serving may be arrays, which have bounds alone.

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
    return serving_step(job, load)


def serving_step(job: Job, tokens: Tokens) -> StepTime:
    """A pass that writes a token for each of its sequences and reads prompts beside them.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> print(serving_step(job, Tokens(reading=4096, prompt=4096)).lower)
    62.26 ms
    """
    Job.check(job)
    Tokens.check(tokens)
    load, count = tokens.of_one(job.layout.data), quantity(job.layout.devices, "")
    device, copies = job.device, job.layout.data
    work, moved = NO_WORK, NO_BYTES
    if largest(load.writing):
        work = work + _operations_of_writing(job, load)
        cache = transformer.decode_bytes(job.model, load.context, job.formats.kv)
        moved = moved + cache * load.writing
    if largest(load.reading):
        work = work + _operations_of_reading(job, load)
        end = load.before + load.prompt
        moved = moved + transformer.kv_cache(job.model, end, job.formats.kv) * load.prompts
    traffic = job.layout.weights_read(job.weights, load.computed) + moved * copies
    roofs = Workload(work * copies, traffic).between(
        device.peak(job.formats.dtype) * count, device.memory_bandwidth * count
    )
    written = load.writing if largest(load.writing) else load.reading
    counted = replace(roofs, tokens=quantity(written * copies, "token"))
    if not isinstance(job.machine, Machine):
        return counted
    parts = roofs.parts
    if max(job.machine.domain, largest(count)) > 1:
        parts = parts | {"links": _messages(job, load)}
    makes = expectation.if_measured(
        lambda: expectation.serving_pass(job, tokens), *vars(tokens).values(), job.layout.tensor
    )
    return replace(counted, parts=parts, expectation=makes)


def _operations_of_writing(job: Job, load: Tokens) -> Quantity:
    products = transformer.decode_matmuls(job.model, load.context)
    one = sum((product.operations for product in products), NO_WORK)
    return one * (load.writing * (1 + load.drafted))


def _operations_of_reading(job: Job, load: Tokens) -> Quantity:
    """Of causal attention to all before, and of the output for the last token of each prompt."""

    def whole(length: Any) -> Quantity:
        return transformer.causal_flops(job.model, length) * length * A_TOKEN

    work = whole(load.before + load.prompt)
    for matrix in job.model.matrices:
        if matrix.name == "vocabulary":
            skipped = transformer.projection_flops(quantity(matrix.parameters, "param")) * A_TOKEN
            work = work - skipped * (load.prompt - 1)
    if largest(load.before):
        work = work - where(load.before > 0, 1.0, 0.0) * whole(maximum(load.before, 1))
    return (work * load.prompts).to("FLOP")


def _messages(job: Job, load: Tokens) -> Quantity:
    """The least time of the sums of slices, and of sending tokens to experts and back."""
    machine, slices = job.measured_on, quantity(job.layout.tensor, "")
    vectors = load.computed * job.model.width * TWO_BYTES
    time = job.sums * collectives.least_time("all_reduce", vectors, slices, machine)
    if layers := job.layers_that_exchange:
        for sent in job.sent_to_experts(load.computed):
            least, _ = collectives.expert_exchange(machine, sent, job.layout.experts)
            time = time + layers * least
    return time.to("s")
