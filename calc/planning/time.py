"""How long the passes of a setup take: prefill of all prompts, and decode of a token of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from calc import collectives, inference, parallelism
from calc.core.elementwise import maximum, minimum
from calc.core.units import Quantity, quantity
from calc.machines import Machine
from calc.planning.capacity import copies
from calc.planning.setup import Setup
from calc.roofline import StepTime

ONE_BYTE = quantity(1, "byte")


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
    """One pass: its memory, its arithmetic, and two all-reduces a layer among the devices."""
    model, devices, batch = setup.model, setup.devices, setup.batch
    kv_size = setup.kv_size * copies(setup)
    step = run(model, setup.device, length, batch, devices, setup.dtype, setup.weight_size, kv_size)
    parts = {"memory bandwidth": step.parts["memory"], "compute": step.parts["compute"]}
    if setup.link is not None or setup.machine.domain > 1:
        vectors = parallelism.stage_traffic(batch * tokens_each, model.width, 1)
        parts["links"] = 2 * model.layers * _sums(setup, vectors)
    return replace(step, parts=parts)


def _sums(setup: Setup, vectors: Quantity) -> Quantity:
    """The least time of an all-reduce: on the ring that is given, or on the machine."""
    if setup.link is not None:
        return collectives.ring_all_reduce(vectors, setup.devices, setup.link, "0 s")
    pace = _pace(setup.machine, setup.devices.magnitude)
    return quantity(pace * vectors.m_as("byte"), "s")


def _pace(machine: Machine, devices: Any) -> Any:
    """Seconds of each byte of an all-reduce, of whose least time latency is no part."""
    if getattr(devices, "ndim", 0):
        import numpy

        counts, places = numpy.unique(devices, return_inverse=True)
        paces = numpy.array([_pace(machine, count) for count in counts])
        return paces[places].reshape(devices.shape)
    return collectives.least_time("all_reduce", ONE_BYTE, int(devices), machine).m_as("s")
