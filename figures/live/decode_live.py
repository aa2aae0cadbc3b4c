"""The frontier of decode: what each batch buys in throughput, and what it costs in latency."""

from __future__ import annotations

from calc import inference, machines, models
from calc.core.formatting import listed
from calc.core.units import Quantity
from figures.live.memory_live import FORMATS
from figures.live.model import Answer, Axis, Choice, Count, Drawing, Model, Point, band, doubling

STEP = Axis("Time per output token", "ms", log=True)
RATE = Axis("All sequences together", "token/s", log=True)
INPUTS = (
    Choice("model", "Model", "llama-3-8b", models.names()),
    Choice("machine", "Machine", "dgx-h100", machines.names()),
    Count("devices", "Devices", "1", 1, 64),
    Count("context", "Context", "2048", 2, 10**7, unit="token"),
    Choice("weights", "Weights", "bf16", FORMATS[1:]),
    Choice("kv", "Keys and values", "bf16", FORMATS[1:]),
)


def answer(model: str, machine: str, devices: int, context: int, weights: str, kv: str) -> Answer:
    """A line for each bound and for what is expected, with the interval around it."""
    network, device = models.transformer(model), machines.get(machine)
    dtype = device.device.usual_dtype
    most = int(inference.largest_batch(network, device, context, devices, weights, kv).magnitude)
    batches = doubling(most, 4)
    rows, dots, ends = [], [], []
    for batch in batches:
        step = inference.decode(network, device, context, batch, devices, dtype, weights, kv)
        times = {"perfect overlap": step.lower, "no overlap": step.upper, "expected": step.expected}
        for name, time in times.items():
            if time is not None:
                rows.append((name, *_place(step.tokens, time)))
        ends.append(step.interval and tuple(_place(step.tokens, end) for end in step.interval))
        dots.append((f"batch {batch}", STEP.of(step.lower), RATE.of(step.throughput)))
    rows.sort(key=lambda row: list(times).index(row[0]))
    facts = {
        "Largest batch": str(most),
        "Expected of a token then": step.not_expected or str(step.expected),
        "At least": str(step.lower.to("ms")),
        "Throughput at least time": str(step.throughput),
        "Bound then": str(step.bound),
    }
    call = f"{model!r}, machines.get({machine!r}), {context}"
    python = (
        "from calc import inference, machines\n\n"
        f"print(inference.decode({call}, {most}, {devices}, {dtype!r}, {weights!r}, {kv!r}))"
    )
    caption = (
        f"{network.name} on {devices} of {device.name}, {context} tokens of context: up to {most}"
        f" sequences fit, and a dot is a batch, {listed(batches)}, at its lower bound."
    )
    return Answer(rows, facts, caption, python, dots=dots, bands=band("expected", ends))


def _place(tokens: Quantity, time: Quantity) -> Point:
    """Return the point of a step of so many tokens that takes so long."""
    return STEP.of(time), RATE.of(tokens / time)


MODEL = Model("Decode frontier", INPUTS, Drawing(STEP, RATE), answer)
