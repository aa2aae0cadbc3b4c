"""A training run in a layout of one's choice: what a device holds, and what a step takes."""

from __future__ import annotations

from contextlib import suppress

from calc import layouts, machines, models, training, transformer
from calc.core.errors import InputError
from calc.core.units import Quantity
from calc.steps.job import Batch, Job, Layout
from calc.steps.timing import step as step_of
from figures.live.model import Amount, Answer, Axis, Choice, Count, Drawing, Model, doubling

SLICES = Axis("Tensor parallel slices (TP), all else as chosen")
TIME = Axis("Parts of a step, one after the other", "s")
INPUTS = (
    Choice("model", "Model", "llama-3-70b", models.names()),
    Choice("machine", "Machine", "dgx-h100", machines.names()),
    Count("devices", "Devices", "1024", 1, 2**20),
    Amount("tokens", "Tokens of the run", "15T token", "token", 1, 1e18),
    Count("sequences", "Sequences of a step", "1024", 1, 10**7),
    Count("length", "Length of a sequence", "8192", 1, 10**7, unit="token"),
    Count("tensor", "Tensor parallel (TP)", "8", 1, 1024),
    Count("pipeline", "Pipeline stages (PP)", "4", 1, 1024),
    Choice("sharding", "ZeRO stage", "1", ("0", "1", "2", "3")),
    Count("micro", "Sequences of a microbatch", "1", 1, 4096),
    Choice("recomputation", "Recomputed", "selective", transformer.RECOMPUTATIONS),
)


def answer(
    model: str,
    machine: str,
    devices: int,
    tokens: Quantity,
    sequences: int,
    length: int,
    tensor: int,
    pipeline: int,
    sharding: str,
    micro: int,
    recomputation: str,
) -> Answer:
    """The parts of a step by the number of slices, and of the chosen layout what it all takes."""
    network, place = models.transformer(model), machines.get(machine)
    chosen = _layout(devices, sequences, tensor, pipeline, int(sharding), micro)
    memory = layouts.memory_per_device(network, chosen, length, micro, recomputation)
    batch = Batch(length, micro, recomputation)
    step = step_of(Job(network, place, chosen), batch)
    rows = []
    for slices in sorted({*doubling(place.domain), tensor}):
        with suppress(InputError):  # what does not divide is no layout
            other = _layout(devices, sequences, slices, pipeline, int(sharding), micro)
            parts = step_of(Job(network, place, other), batch).parts
            rows += [(name, str(slices), TIME.of(part)) for name, part in parts.items()]
    time = step.upper if step.expected is None else step.expected
    mfu = training.mfu_of_operations(step.operations, 1, step.peak, time)
    fits = "fits" if memory.total <= place.device.memory_capacity else "does not fit"
    facts = {
        "Expected of a step": step.not_expected or str(step.expected),
        "80 % of rows": " to ".join(map(str, step.interval or ())) or "no row is like it",
        "MFU at that": str(mfu.to("%")),
        "The run at that": str((tokens / step.tokens * time).to("day")),
        "Layout": f"DP {chosen.data}, {chosen.microbatches} microbatches",
        "Memory of a device": f"{memory.total} of {place.device.memory_capacity}: {fits}",
        "Of it states": str(memory.weights + memory.gradients + memory.optimizer),
        "A step": f"{step.lower} to {step.upper}",
    }
    call = f"{model!r}, layout, {length}, {micro}"
    python = (
        "from calc import Batch, Job, Layout, layouts, step\n\n"
        f"layout = Layout(data={chosen.data}, tensor={chosen.tensor}, pipeline={chosen.pipeline},"
        f" microbatches={chosen.microbatches}, sharding={chosen.sharding})\n"
        f"print(layouts.memory_per_device({call}, {recomputation!r}))\n"
        f"job = Job.of({model!r}, {machine!r}, layout)\n"
        f"print(step(job, Batch({length}, {micro}, {recomputation!r})))"
    )
    caption = (
        f"The parts of a step of {network.name} on {devices} devices of {place.name}, by the slices"
        f" of TP that divide them; the answers are of TP {tensor}, PP {pipeline}, DP {chosen.data}."
    )
    return Answer(rows, facts, caption, python)


def _layout(
    devices: int, sequences: int, tensor: int, pipeline: int, sharding: int, micro: int
) -> Layout:
    copies, left = divmod(devices, tensor * pipeline)
    if left or not copies:
        raise InputError(
            f"devices must be a multiple of TP · PP, {tensor} · {pipeline}; got {devices}"
        )
    steps, left = divmod(sequences, copies * micro)
    if left or not steps:
        raise InputError(
            f"sequences must be a multiple of copies · microbatch, {copies} · {micro};"
            f" got {sequences}"
        )
    return Layout(
        data=copies, tensor=tensor, pipeline=pipeline, microbatches=steps, sharding=sharding
    )


MODEL = Model("Training in a layout", INPUTS, Drawing(SLICES, TIME, "bar"), answer)
