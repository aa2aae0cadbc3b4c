"""The author of what fits: sequences that devices hold, and devices that a batch needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from calc.core.arrays import Number, numpy
from calc.core.elementwise import ceiling, different, largest, where
from calc.core.errors import InputError, marked
from calc.core.units import Quantity, from_parts, quantity
from calc.networks import transformer
from calc.planning.setup import S, Setup, is_array
from calc.steps import device_memory
from calc.steps.held_memory import Memory
from calc.steps.job import BYTE, Layout
from calc.steps.splits import Host, Split

Places: TypeAlias = Any
"""Index of each layout among those that differ; None where there is one."""


@dataclass(frozen=True)
class Capacity:
    """A frozen record of what each device holds at each point of a setup, and of what fits."""

    memories: tuple[Memory, ...]
    """Memory of each different layout, at its longest context."""
    room: Quantity
    """What the program may use of a device."""
    weights: Quantity
    beside: Quantity
    """What the program takes besides, as long as it runs."""
    sequence: Quantity
    """What a sequence at full length takes of each device of its copy."""
    copies: Number
    largest_batch: Quantity

    def caches(self, batch: Quantity) -> Quantity:
        """Return what the sequences of a batch take of each device."""
        return self.sequence * ceiling(batch / quantity(self.copies, ""))


def capacity_of(setup: Setup) -> Capacity:
    """Return what the devices of a setup hold, layout by layout, as `calc.device_memory` counts."""
    memories, places = _memories(setup)
    context = setup.context.magnitude

    def memory_of(number: Callable[[Memory], Number]) -> Quantity:
        return from_parts(_at(places, context, [*map(number, memories)]), BYTE._units)

    return Capacity(
        memories,
        memory_of(lambda memory: memory.room.m_as("byte")),
        memory_of(lambda memory: memory.parts[0].memory.m_as("byte")),
        memory_of(lambda memory: sum(part.memory.m_as("byte") for part in memory.parts[1:])),
        memory_of(lambda memory: memory.start.taken(context)),
        setup.job.layout.data,
        most_sequences(setup),
    )


def most_sequences(setup: Setup) -> Quantity:
    """Return the largest batch that the devices of a setup hold."""
    memories, places = _memories(setup)
    context = setup.context.magnitude
    return quantity(_at(places, context, [memory.batch_of(context) for memory in memories]), "")


def _memories(setup: Setup) -> tuple[tuple[Memory, ...], Places]:
    """Return the memory of each different layout at the longest context, and where each stands."""
    job, longest = setup.job, math.ceil(largest(setup.context))
    degrees, places = different(job.layout.tensor, job.layout.data, job.layout.experts)
    if places is None:
        return (device_memory.of(job, longest),), None
    cuts = zip(*(numpy.asarray(column).tolist() for column in degrees), strict=True)
    layouts = (
        replace(job.layout, tensor=one, data=data, experts=experts) for one, data, experts in cuts
    )
    return tuple(device_memory.of(replace(job, layout=cut), longest) for cut in layouts), places


def _at(places: Places, context: Number, amounts: Sequence[Number]) -> Number:
    """Return the numbers of layouts at their places, for each of the contexts."""
    if places is None:
        return amounts[0]
    shape = numpy.broadcast_shapes(places.shape, numpy.shape(context))
    table = numpy.stack([numpy.broadcast_to(each, shape) for each in amounts])
    there: Number = numpy.take_along_axis(table, numpy.broadcast_to(places, shape)[None], axis=0)[0]
    return there


def joinable_slices(setup: Setup) -> tuple[int, ...]:
    """Return the degrees of tensor parallelism that links can join.

    Any, where devices have links of their own; else those within a domain, and whole domains.
    """
    if setup.link is not None:
        return Layout.slices_of(setup.model)
    setup.machine.check_joins(setup.stages)
    counts, most = Layout.slices_of(setup.model, setup.machine), setup.machine.most_joined
    return tuple(count for count in counts if count * setup.stages <= most)


def with_tensor(setup: S, tensor: Number) -> S:
    """Return the setup with so many devices that share each matrix, in as many copies."""
    return recut(setup, quantity(tensor, ""), setup.copies, setup.experts, setup.stages)


def on_fewest_devices(setup: S) -> S:
    """Return the setup on the fewest devices that hold its batch, or its users' longest request.

    Where none do it is on the most that the links join.
    """
    counts = [
        count
        for count in joinable_slices(setup)
        if setup.experts == 1 or numpy.all(with_tensor(setup, count).layout.legal(setup.model))
    ]
    needed = setup.batch.magnitude if setup.users is None else 1
    tensor: Number = float(counts[-1])
    still: Any = True  # the points that none of those before has held
    for count in counts[:-1]:
        enough = needed <= most_sequences(with_tensor(setup, count)).magnitude
        tensor = where(still & enough, float(count), tensor)
        still = still & ~numpy.asarray(enough) if is_array(enough) else still and not enough
        if not (still.any() if is_array(still) else still):
            break
    return with_tensor(setup, tensor)


def on_host(setup: S, host: Host) -> S:
    """Return the setup on one device, with as little as its batch needs in the host's memory.

    Of a mixture experts go there first, layer by layer, since a token reads few of the bytes that
    they take; then whole layers. Experts that its memory has no place for stay on its SSD.
    """
    if not setup.machine.publishes("host_link"):
        raise InputError(
            f"{marked('host')} is memory at the other end of a card's link, of which the data of"
            f" {setup.device.name} have none: leave it where device and host share a memory"
        )
    if is_array(setup.batch) or is_array(setup.context):
        raise InputError(
            f"{marked('host')} holds what one batch of one length leaves to it; got several: plan"
            " for one of each at a time"
        )
    experts = setup.model.layers_with("experts")
    needed = setup.batch.magnitude if setup.users is None else 1

    def holding(count: int, resident: float = 1.0) -> S:
        layers = min(count, experts), max(0, count - experts)
        split = Split(host, *layers, resident) if count else None
        other = replace(setup, split=split)
        vars(other).pop("job", None)
        return other

    few, many = -1, experts + setup.model.layers
    while many - few > 1:
        middle = (few + many) // 2
        enough = bool(most_sequences(holding(middle)).magnitude >= needed)
        few, many = (few, middle) if enough else (middle, many)
    best = holding(many)
    split = best.split
    if split is None or (held := held_by_host(best)) <= host.memory:
        return best
    movable = split.held(best.kept, of_experts=True)
    left = host.memory - (held - movable)
    if host.ssd is None or left.magnitude <= 0:
        disk = "" if host.ssd or not experts else ', an SSD beside it (", 7 GB/s SSD")'
        raise InputError(
            f"{setup.model.name} leaves {held.to('GiB')} to its host beside {setup.device.name},"
            f" and {marked('host')} has {host.memory.to('GiB')}: it needs more of it{disk}, a"
            f" larger device, or weights in fewer bits than {setup.kept}"
        )
    return holding(many, float((left / movable).m_as("")))


def held_by_host(setup: Setup) -> Quantity:
    """Return the bytes that the host holds: weights, and caches of layers that are there whole."""
    split = setup.split
    if split is None:
        return quantity(0, "byte")
    sequence = transformer.kv_cache(setup.model, largest(setup.context), setup.job.formats.kv)
    caches = sequence * (split.layers / setup.model.layers * largest(setup.batch))
    return split.held(setup.kept) + caches


def on_ssd(setup: Setup) -> Quantity:
    """Return the bytes of experts that the host's memory has no place for."""
    split = setup.split
    if split is None:
        return quantity(0, "byte")
    return split.held(setup.kept, of_experts=True) * (1 - split.resident)


def recut(setup: S, tensor: Quantity, copies: Quantity, experts: int, stages: int) -> S:
    """Return the setup on other devices, with the formats as read, which no cut changes."""
    devices = tensor * copies * stages
    split = setup.split if largest(devices) == 1 else None
    other = replace(
        setup, devices=devices, copies=copies, experts=experts, stages=stages, split=split
    )
    vars(other)["job"] = setup.job.cut(other.layout)
    return other
