"""Sentences on what would make a plan another one, each planned as the plan itself was."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from calc import formats
from calc.core.elementwise import largest, smallest
from calc.core.errors import InputError
from calc.core.units import Quantity
from calc.planning import capacity, choice, passes
from calc.planning.capacity import joinable_slices, most_sequences, on_fewest_devices, with_tensor
from calc.planning.estimate import Estimate
from calc.planning.setup import Setup, devices_text, layout_text, memory_text
from calc.steps import device_memory
from calc.steps.held_memory import Memory
from calc.steps.job import Layout

SMALLER_WEIGHTS = (formats.INT8, formats.INT4)
OWN_WAYS = ("settings", "kv", "weights")  # beside devices and batches, which are the plan's
MOST_SEQUENCES = 2**20  # in no server's batch: what binds there binds at any larger one
ONCE_LINKED = 'once link (--link "32 GB/s") gives the bandwidth between them, which the data lack'
TIMES = {  # of what another plan takes so many
    "throughput": "as many tokens a second",
    "answer_time": "as long for an answer",
    "time_per_token": "the time per token",
}
E = TypeVar("E", bound=Estimate)


def changes(plan: Estimate) -> Iterator[str]:
    """Yield what would change a plan that fits: batch, devices, how they share it, weights."""
    most, count = plan.largest_batch.magnitude, plan.devices.magnitude
    if plan.users is None:
        yield _where_another_roof_binds(plan)
    if plan.users is None and most > plan.batch.magnitude:
        full = choice.with_batch(plan, most)
        yield (
            f"Batch {most:.0f}, the largest that fits, writes {_times(full, plan, 'throughput')}"
            f" and takes {_times(full, plan, 'answer_time')}."
        )
    counts, slices = joinable_slices(plan), plan.tensor.magnitude
    below = [number for number in counts if number < slices]
    above = [number for number in counts if number > slices]
    for number in (*below[-1:], *above[:1]) if plan.experts == 1 else ():
        other = with_tensor(plan, number)
        if other.fits:
            longer = _times(other, plan, "time_per_token")
            paid = _ratio(*(each.devices / each.throughput.lower for each in (other, plan)))
            yield f"{devices_text(other.devices)}: {longer}, {paid} the device time."
    for other in choice.cut_otherwise(plan):
        if other.fits:
            longer, more = (_times(other, plan, name) for name in ("time_per_token", "throughput"))
            yield f"{layout_text(other.layout)} on the same devices: {longer}, {more}."
    for form in SMALLER_WEIGHTS:
        small = replace(plan, weights=form.key)
        if small.model_memory < plan.model_memory:
            fewest = on_fewest_devices(small).devices.magnitude
            fewer = f", and fit on {devices_text(fewest)}" if fewest < count else ""
            yield f"{form.name} weights: {_times(small, plan, 'time_per_token')}{fewer}."


def ways_to_fit(setup: Setup) -> Iterator[str]:
    """Yield what would make a point fit: devices, batch, weights."""
    yield _enough_devices(setup)
    if fewer := most_sequences(setup).magnitude:
        yield f"Batch {fewer:.0f} fits."
    [memory] = capacity.capacity_of(setup).memories
    yield from own_ways(memory, int(_needed(setup)))


def own_ways(memory: Memory, sequences: int) -> Iterator[str]:
    """Yield the formats, and the settings of the program, with which so many sequences fit."""
    for way in device_memory.ways(memory, sequences, OWN_WAYS):
        planned = way.settings.keys() <= {"kv", "weights"}  # which are options of a plan too
        how = "" if planned else f"settings of {memory.program} that calc fit takes: "
        yield f"It fits with {how}{way.told}."


def _needed(setup: Setup) -> float:
    """The sequences that memory must hold at once: of users those of one."""
    return float(setup.batch.magnitude) if setup.users is None else 1.0


def _enough_devices(setup: Setup) -> str:
    """The fewest devices that hold it, in groups that the links join, or else in others."""
    needed, linked = _needed(setup), joinable_slices(setup)
    counts = Layout.slices_of(setup.model)
    for once, layouts in (
        ("", choice.groups(setup)),
        (f", {ONCE_LINKED}", (Layout(tensor=count) for count in counts if count not in linked)),
    ):
        ways = []
        for shared in layouts:
            if held := most_sequences(choice.on_layout(setup, shared)).magnitude:
                copies = math.ceil(needed / held)
                if copies == 1 or shared.experts == 1:
                    ways.append(choice.on_layout(setup, shared, copies))
        if ways:
            smallest = min(ways, key=lambda way: way.devices.magnitude)
            whole = smallest.devices == smallest.tensor and smallest.experts == 1
            cut = "" if whole else f" as {layout_text(smallest.layout)}"
            return f"It fits on {devices_text(smallest.devices)}{cut}{once}."
    return f"It fits on no number of devices: at most {counts[-1]} can share its heads."


def checked_to_fit(plan: E) -> E:
    """The plan, unless none of its points fits: then the smallest of them is refused."""
    if getattr(plan.fits, "any", lambda: plan.fits)():
        return plan
    counts = {name: smallest(getattr(plan, name)) for name in ("batch", "prompt", "generated")}
    least = passes.with_counts(plan, {"devices": largest(plan.devices), **counts})
    held, room = least.capacity, least.device.memory_capacity
    [memory] = held.memories
    beside = held.beside.magnitude and f"{memory_text(held.beside, room)} besides,"
    whose = "it has" if memory.start.bare else f"{memory.program} has"
    raise InputError(
        f"{plan.model.name} does not fit on {least.devices} {plan.device.name}: of each, weights"
        f" take {memory_text(held.weights, room)}, {beside or 'and'} keys and values"
        f" {memory_text(least.cache_memory, room)} at batch {least.batch};"
        f" {whose} {memory_text(held.room, room)} for them."
        f" {' '.join([*filter(None, [memory.doubt]), *ways_to_fit(least)])}"
    )


def _where_another_roof_binds(plan: Estimate) -> str:
    """Return from which batch on, or up to which, another roof sets the time of a token."""

    def bound(batch: int) -> str:
        return str(passes.decode(choice.with_batch(plan, batch)).bound)

    now, last = str(plan.writing.bound), bound(MOST_SEQUENCES)
    if bound(1) == last == now:
        return f"At this length {_binds(now)} each token, whatever the batch."
    few, many = 1, MOST_SEQUENCES
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if bound(middle) == last else (middle, many)
    if now == last:
        return f"Below batch {many}, {_binds(bound(few))} each token."
    most = int(plan.largest_batch.magnitude)
    if many <= most:
        return f"From batch {many} on, {_binds(last)} each token."
    count = plan.devices.magnitude
    hold = f"{devices_text(count)} {'hold' if count > 1 else 'holds'} {most} sequences"
    return f"From batch {many} on, {last} would bind each token, but {hold}."


def _binds(roof: str) -> str:
    return f"{roof} {'bind' if roof == 'links' else 'binds'}"


def _times(other: Estimate, plan: Estimate, name: str) -> str:
    """Return the ratio of a quantity of two plans, by bounds, and in brackets as expected."""
    bound, expected = (
        _ratio(*(choice.value_of(each, name, basis) for each in (other, plan)))
        for basis in (choice.UPPER, choice.EXPECTED)
    )
    return f"{bound} times {TIMES[name]}{expected and f' ({expected} expected)'}"


def _ratio(new: Quantity | None, old: Quantity | None) -> str:
    return "" if new is None or old is None else f"{(new / old).m_as(''):.3g}"
