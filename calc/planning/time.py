"""How long the passes of a setup take: prefill of all prompts, and decode of a token of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calc import collectives, inference, parallelism
from calc.core.elementwise import maximum, minimum
from calc.core.units import Quantity, quantity
from calc.planning.capacity import copies
from calc.planning.setup import Setup
from calc.roofline import StepTime


def prefill(setup: Setup) -> StepTime:
    """The pass that reads all prompts."""
    return _pass(setup, inference.prefill, setup.prompt, setup.prompt)


def decode(setup: Setup) -> StepTime:
    """The pass that writes a token of each sequence, the mean of an answer.

    Each part of the time grows linearly with the context: at its mean is the mean of all. A window
    that fills on the way bends this line, and the answer is the mean of what lies on both sides.
    """
    one, window = quantity(1, ""), setup.model.window
    if window is None:
        return _pass(setup, inference.decode, setup.prompt + setup.generated / 2, one)
    full = minimum(maximum(window, setup.prompt), setup.context)
    before = _pass(setup, inference.decode, (setup.prompt + full) / 2, one)
    after = _pass(setup, inference.decode, (full + setup.context) / 2, one)
    share = (full - setup.prompt) / setup.generated
    parts = {
        name: share * part + (1 - share) * after.parts[name] for name, part in before.parts.items()
    }
    return replace(after, parts=parts)


def _pass(
    setup: Setup, run: Callable[..., StepTime], length: Quantity, tokens_each: Quantity
) -> StepTime:
    """One pass on the machine, or on devices in the ring that is given."""
    model, devices, batch = setup.model, setup.devices, setup.batch
    place = setup.machine if setup.link is None else setup.device
    kv_size = setup.kv_size * copies(setup)
    step = run(model, place, length, batch, devices, setup.dtype, setup.weight_size, kv_size)
    parts = {"memory bandwidth": step.parts["memory"], "compute": step.parts["compute"]}
    if setup.link is not None:
        vectors = parallelism.stage_traffic(batch * tokens_each, model.width, 1)
        sums = collectives.ring_all_reduce(vectors, devices, setup.link, "0 s")
        parts["links"] = 2 * model.layers * sums
    elif "links" in step.parts:
        parts["links"] = step.parts["links"]
    return replace(step, parts=parts)
