"""How long the passes of a setup take: prefill of all prompts, and decode of a token of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from calc.core.elementwise import largest, maximum, minimum, where
from calc.core.units import Quantity, quantity
from calc.laws.roofline import StepTime
from calc.networks import transformer
from calc.planning.capacity import copies, copies_fit
from calc.planning.setup import A_TOKEN, Setup
from calc.steps import collectives, inference
from calc.steps.kernels import TWO_BYTES


def prefill(setup: Setup) -> StepTime:
    """The pass that reads all prompts."""
    return _pass(setup, inference.prefill, setup.prompt, setup.prompt)


def decode(setup: Setup) -> StepTime:
    """The pass that writes a token of each sequence, the mean of an answer.

    Devices with the same heads of keys and values hold copies of their caches, where these fit, or
    share them out; the faster counts.
    """
    shared = _decode(setup, 1.0)
    if largest(copies(setup)) == 1:
        return shared
    copied = _decode(setup, copies(setup))
    faster = copies_fit(setup) & (copied.upper.m_as("s") <= shared.upper.m_as("s"))
    parts = {
        name: quantity(where(faster, copied.parts[name].m_as("s"), part.m_as("s")), "s")
        for name, part in shared.parts.items()
    }
    return replace(shared, parts=parts)


def _decode(setup: Setup, held: Any) -> StepTime:
    """The same with each cache held so many times.

    Each part of the time grows linearly with the context: at its mean is the mean of all. A window
    or a selection that fills on the way bends this line, and the answer is the mean of what lies on
    both sides.
    """
    one, reach = quantity(1, ""), setup.model.reach
    if reach is None:
        return _pass(setup, inference.decode, setup.prompt + setup.generated / 2, one, held)
    full = minimum(maximum(reach, setup.prompt), setup.context)
    before = _pass(setup, inference.decode, (setup.prompt + full) / 2, one, held)
    after = _pass(setup, inference.decode, (full + setup.context) / 2, one, held)
    share = (full - setup.prompt) / setup.generated

    def mean(filling: Quantity, filled: Quantity) -> Quantity:
        both: Quantity = share * filling + (1 - share) * filled
        return both

    return replace(
        after,
        parts={name: mean(part, after.parts[name]) for name, part in before.parts.items()},
        operations=mean(before.operations, after.operations),
        traffic=mean(before.traffic, after.traffic),
    )


def _pass(
    setup: Setup,
    run: Callable[..., StepTime],
    length: Quantity,
    tokens_each: Quantity,
    held: Any = 1.0,
) -> StepTime:
    """One pass on the machine, or on devices in the ring that is given."""
    model, devices, batch = setup.model, setup.devices, setup.batch
    place = setup.machine if setup.link is None else setup.device
    size = setup.kv_size
    step = run(model, place, length, batch, devices, setup.dtype, setup.weights, size)
    parts = {"memory bandwidth": step.parts["memory"], "compute": step.parts["compute"]}
    if largest(again := held - 1) > 0:  # devices that hold a copy of a cache read it too
        copied = transformer.cache_read(model, length, size) * batch * again
        bandwidth = setup.device.memory_bandwidth * devices
        parts["memory bandwidth"] = parts["memory bandwidth"] + (copied / bandwidth).to("s")
    if setup.link is not None:
        vectors = batch * tokens_each * model.width * TWO_BYTES
        sums = collectives.ring_all_reduce(vectors, devices, setup.link, "0 s")
        parts["links"] = model.blocks * sums
    elif "links" in step.parts:
        parts["links"] = step.parts["links"]
    if "links" in parts and run is inference.decode:
        among = copies(setup) / held
        exchange = _exchange(setup, quantity(among, ""))
        parts["links"] = parts["links"] + model.caching_layers * exchange
    return replace(step, parts=parts)


def _exchange(setup: Setup, devices: Quantity) -> Quantity:
    """The least time of sending the queries of a layer to shared caches, and the results back."""
    attended = transformer.attended_per_token(setup.model) * A_TOKEN
    sent = attended * setup.batch / setup.devices
    if setup.link is not None:
        return collectives.all_to_all(sent, devices, setup.link)
    return collectives.least_time("all_to_all", sent, devices, setup.machine)
