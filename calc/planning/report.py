"""A plan as people read it: the table of its parts or of its points, and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from calc.core.errors import InputError
from calc.core.formatting import columns
from calc.core.units import Quantity, quantity
from calc.planning.estimate import Estimate
from calc.planning.setup import is_array, largest

MOST_ROWS = 100


def table(plan: Estimate) -> str:
    """The parts of one point, or a line for each point of an array."""
    return "\n".join(_rows_of_points(plan) if is_array(plan.fits) else _rows_of_parts(plan))


def title(plan: Estimate) -> tuple[str, str]:
    return (
        f"{plan.model.name} on {plan.devices} {plan.device.name}",
        f"batch {plan.batch}, {plan.prompt} tokens read and {plan.generated} written",
    )


def _rows_of_parts(plan: Estimate) -> list[str]:
    capacity = plan.device.memory_capacity
    memory = f"{memory_text(plan.memory, capacity)} of {capacity}"
    verdict = "fits" if plan.fits else "does not fit"
    rows: list[tuple[str, ...]] = [
        ("", "at least", "at most", "what binds"),
        ("memory of each", memory, "", verdict),
        ("  weights", memory_text(plan.weight_memory, capacity), "", ""),
        ("  keys and values", memory_text(plan.cache_memory, capacity), "", ""),
        ("batch that fits", "", str(plan.largest_batch), ""),
    ]
    if plan.fits:
        rows += [
            ("first token", *map(str, plan.time_to_first_token), plan.reading.bound),
            ("each token", *map(str, plan.time_per_token), plan.writing.bound),
            ("whole answer", *map(str, plan.answer_time), ""),
            ("written by all", *map(str, plan.throughput), ""),
        ]
        if plan.cost_per_token is not None:
            rows.append(("cost", *map(str, plan.cost_per_token), ""))
        if plan.energy_per_token is not None:
            rows.append(("energy", *map(str, plan.energy_per_token), ""))
    return [*title(plan), *columns(rows)]


def _rows_of_points(plan: Estimate) -> list[str]:
    import numpy

    if plan.fits.size > MOST_ROWS:
        raise InputError(
            f"a table of a plan has up to {MOST_ROWS} rows, and this one has {plan.fits.size}"
            " points: read its fields, or plan fewer"
        )
    names = ("devices", "batch", "prompt", "generated")
    ranges = {
        ("first token", "ms"): plan.time_to_first_token,
        ("each token", "ms"): plan.time_per_token,
        ("whole answer", "s"): plan.answer_time,
        ("written", "token/s"): plan.throughput,
        ("cost", "USD/Mtoken"): plan.cost_per_token,
        ("energy", "J/token"): plan.energy_per_token,
    }
    shape = plan.fits.shape
    counts = {name: getattr(plan, name) for name in names}
    several = {name: each.magnitude for name, each in counts.items() if each.ndim}
    same = ", ".join(f"{name} {each}" for name, each in counts.items() if not each.ndim)
    unit = str(plan.device.memory_capacity.units)
    held, words = numpy.broadcast_to(plan.memory.m_as(unit), shape), plan.binds
    cells = [
        [f"{value:.0f}" for value in numpy.broadcast_to(each, shape).flat]
        for each in several.values()
    ]
    cells.append([f"{value:.3g}" for value in held.flat])
    titles = [*several, f"each holds ({unit})"]
    for (title, unit), bounds in ranges.items():
        if bounds is not None:
            lower, upper = (each.m_as(unit).flat for each in bounds)
            titles.append(f"{title} ({unit})")
            cells.append([_range(*each) for each in zip(lower, upper, strict=True)])
    rows = [(*titles, "what binds"), *zip(*cells, words.flat, strict=True)]
    title = f"{plan.model.name} on {plan.device.name}"
    return [f"{title}: {same}" if same else title, *columns(rows)]


def memory_text(amount: Quantity, capacity: Quantity) -> str:
    """An amount of memory by its size, in binary units where the capacity is."""
    if "iB" not in str(capacity.units):
        return str(amount.to("byte"))
    size = amount.m_as("byte")
    return str(amount.to("GiB" if size >= 2**30 else "MiB" if size >= 2**20 else "KiB"))


def _range(lower: float, upper: float) -> str:
    if math.isnan(lower):
        return "–"
    return f"{quantity(float(lower), '')} – {quantity(float(upper), '')}"


def assumptions(plan: Estimate) -> Iterator[str]:
    model, device = plan.model, plan.device
    rates = (device.memory_bandwidth, device.peak(plan.dtype))
    origins = [rate.provenance for rate in rates if rate.provenance is not None]
    measured = any(each.kind == "measured" for each in origins)
    yield (
        f"Products are computed in {plan.dtype} at {device.peak(plan.dtype)}, with weights in"
        f" {plan.weights} and keys and values in {plan.kv}; memory runs at"
        f" {device.memory_bandwidth}."
    )
    yield (
        f"Every rate of the device is the {'measured' if measured else 'published'} one: the lower"
        " bound lets all parts overlap, the upper bound lets none; launches, queues and kernels"
        " below these rates come on top."
    )
    yield (
        "The batch is read together and written together; memory holds each sequence at its full"
        " length, and beside weights and caches nothing."
    )
    yield (
        "Rate, cost and energy are those of written tokens, and the reading of prompts is in them."
    )
    if largest(plan.devices) > 1:
        yield (
            "Each matrix is cut into a slice for each device; they add up their results twice a"
            f" layer in rings of {plan.link} each way, two bytes a number, and messages have no"
            " latency."
        )
        if model.kv_latent is not None:
            yield f"Each device holds the whole cache of {model.name}, whose latents have no heads."
        elif largest(plan.devices) > model.kv_heads.magnitude:
            yield (
                f"{model.name} has {model.kv_heads} heads of keys and values: devices beyond these"
                " hold copies, and their memory and time are counted."
            )
    if plan.price is None:
        yield "No price of a device was given, so that cost is left out."
    else:
        yield f"A device costs {plan.price}, as given, and always has work."
    if plan.energy_per_token is None:
        yield f"The power of {device.name} is unpublished, so that energy is left out."
    else:
        yield f"Each device draws its {device.tdp} all the time; hosts and cooling come on top."
    for origin in origins:
        if origin.kind == "estimate":
            yield f"{origin.title} is an estimate."
    if model.context.provenance is not None and "window" in model.context.provenance.note:
        yield f"{model.name}: {model.context.provenance.note}"
