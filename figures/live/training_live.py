"""A training run in a layout of one's choice: what a device holds, how long the run takes."""

from __future__ import annotations

from calc import layouts, machines, models, training, transformer
from calc.core.errors import InputError
from calc.core.units import Quantity
from calc.steps.job import Batch, Job, Layout
from calc.steps.timing import step as step_of
from figures.live.model import Amount, Answer, Axis, Choice, Count, Drawing, Model, band

DEVICES = Axis("Devices, in copies of the layout", log=True)
TIME = Axis("Time of the run", "hour", log=True)
POINTS = 5
INPUTS = (
    Choice("model", "Model", "llama-2-7b", models.names()),
    Choice("machine", "Machine", "dgx-h100", machines.names()),
    Count("devices", "Devices", "1024", 1, 2**20),
    Amount("tokens", "Tokens of the run", "140B token", "token", 1, 1e18),
    Count("sequences", "Sequences of a step", "1024", 1, 10**7),
    Count("length", "Length of a sequence", "4096", 1, 10**7, unit="token"),
    Count("tensor", "Tensor parallel (TP)", "1", 1, 1024),
    Count("pipeline", "Pipeline stages (PP)", "1", 1, 1024),
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
    """The time of the run by the copies of the layout, and what a step of those chosen takes."""
    network, cluster = models.transformer(model), machines.get(machine)
    chosen = _layout(devices, sequences, tensor, pipeline, int(sharding), micro)
    memory = layouts.memory_per_device(network, chosen, length, micro, recomputation)
    batch = Batch(length, micro, recomputation)
    step = step_of(Job(network, cluster, chosen), batch)
    rows, ends = [], []
    for copies in _copies(devices // (tensor * pipeline), sequences // micro):
        count = copies * tensor * pipeline
        other = _layout(count, sequences, tensor, pipeline, int(sharding), micro)
        there = step if copies == chosen.data else step_of(Job(network, cluster, other), batch)
        times = {"bound, all overlapped": there.lower, "bound, nothing hidden": there.upper}
        times |= {} if there.expected is None else {"expected": there.expected}
        steps = tokens / there.tokens
        rows += [(name, count, TIME.of(steps * time)) for name, time in times.items()]
        ends.append(
            there.interval and tuple((count, TIME.of(steps * end)) for end in there.interval)
        )
    names = list(dict.fromkeys(name for name, *_ in rows))  # of some counts none is expected
    rows.sort(key=lambda row: names.index(row[0]))
    time = step.upper if step.expected is None else step.expected
    mfu = training.mfu_of_operations(step.operations, 1, step.peak, time)
    run = tokens / step.tokens * time
    fits = "fits" if memory.total <= cluster.device.memory_capacity else "does not fit"
    facts = {
        "Expected of a step": step.not_expected or str(step.expected),
        "80 % interval": step.around.told() if step.around else "no row is like it",
        "The run at that": str(run),
        "MFU at that": str(mfu.to("%")),
        "Layout": f"DP {chosen.data}, {chosen.microbatches} microbatches",
        "Memory of a device": f"{memory.total} of {cluster.device.memory_capacity}: {fits}",
        "Of it states": str(memory.weights + memory.gradients + memory.optimizer),
        "A step by its bounds": f"{step.lower} to {step.upper}",
        "Parts of it": ", ".join(f"{name} {part}" for name, part in step.parts.items()),
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
        f"{network.name} on {cluster.name}, {tokens}: the time of the run by the copies of a layout"
        f" of TP {tensor} and PP {pipeline}; the dot has {chosen.data} of them, {devices} devices."
    )
    dots = [(f"{devices} devices", devices, TIME.of(run))]
    return Answer(rows, facts, caption, python, dots=dots, bands=band("expected", ends))


def _copies(chosen: int, most: int) -> list[int]:
    """Return the copies chosen, with fewer and more by factors of four that divide the batch.

    >>> _copies(64, 256), _copies(1024, 1024)
    ([1, 4, 16, 64, 256], [4, 16, 64, 256, 1024])
    """
    steps = [4**power for power in range(1, 5)]
    fewer = [chosen // step for step in steps if chosen % step == 0]
    more = [chosen * step for step in steps if most % (chosen * step) == 0]
    return sorted([*fewer, chosen, *more])[-POINTS:]


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


MODEL = Model("Training in a layout", INPUTS, Drawing(DEVICES, TIME), answer)
