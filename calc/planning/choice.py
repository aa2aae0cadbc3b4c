"""Which devices share a model, and how: the one author of a deployment that nobody has stated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from calc.catalog import machines
from calc.core.arguments import whole_number
from calc.core.arrays import Number, numpy
from calc.core.elementwise import largest, smallest, where
from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.planning.capacity import device_counts, most_sequences
from calc.planning.setup import Setup
from calc.steps.job import Layout

S = TypeVar("S", bound=Setup)


def linked_counts(setup: Setup) -> tuple[int, ...]:
    """Those of them that the devices' links allow: all, or parts of a domain and whole ones."""
    counts = device_counts(setup.model)
    if setup.link is not None:
        return counts
    machine = setup.machine
    most = math.inf if machine.publishes("ports") else machine.domain
    if not machine.publishes("bandwidth"):  # what joins its devices is not known
        most = 1
    domain = machine.domain
    return tuple(n for n in counts if n <= most and (n <= domain or n % domain == 0))


def with_tensor(setup: S, tensor: Number) -> S:
    """Return the setup with so many devices that share each matrix, in as many copies."""
    return replace(setup, devices=quantity(tensor, "") * setup.copies)


def on_fewest_devices(setup: S) -> S:
    """Return the setup on the fewest devices that hold its batch, or its users' longest request.

    Where none do it is on the most that the links join.
    """
    *fewer, most = linked_counts(setup)
    tensor: Number = float(most)
    needed = setup.batch.magnitude if setup.users is None else 1
    for count in reversed(fewer):
        enough = needed <= most_sequences(with_tensor(setup, count)).magnitude
        tensor = where(enough, float(count), tensor)
    return with_tensor(setup, tensor)


def groups(setup: Setup) -> Iterator[Layout]:
    """Yield every layout of one group of devices that the model and the machine's links allow.

    Matrices are cut (TP); a mixture's experts whole as well (EP), by slices that have all of each
    token's attention, or by copies that have tokens of their own (DP).
    """
    linked = linked_counts(setup)
    yield from (Layout(tensor=count) for count in linked)
    if setup.model.experts is None or setup.link is not None:
        return
    for count in linked[1:]:
        for layout in (Layout(tensor=count, experts=count), Layout(data=count, experts=count)):
            if layout.legal(setup.model):
                yield layout


def on_layout(setup: S, layout: Layout, copies: int = 1) -> S:
    """Return the setup cut like this; whole groups are copied where nothing else is."""
    data, tensor, shared = int(layout.data) * copies, int(layout.tensor), int(layout.experts)
    counts = quantity(data * tensor, ""), quantity(data, "")
    return replace(setup, devices=counts[0], copies=counts[1], experts=shared)


def cut_otherwise(setup: S) -> Iterator[S]:
    """Yield the setup on the same devices, shared in other ways: copies of smaller groups."""
    devices = int(setup.devices.magnitude)
    now = setup.copies.magnitude, setup.experts
    for layout in groups(setup):
        copies, left = divmod(devices, int(layout.devices))
        if left or (copies > 1 and layout.experts > 1):
            continue
        other = on_layout(setup, layout, copies)
        enough = setup.users is not None or other.copies <= setup.batch
        if enough and (other.copies.magnitude, other.experts) != now:
            yield other


def cut(setup: S, experts: int | None) -> S:
    """Return the setup with whole experts on so many devices; cut as all matrices where not said.

    A copy then has as many devices, if nothing says how many it has.
    """
    if setup.users is None and largest(setup.copies) > smallest(setup.batch):
        raise InputError(
            f"each of copies={setup.copies} needs a sequence of the batch; got batch={setup.batch}"
        )
    if experts is None:
        return setup
    shared = whole_number("experts", experts)
    if setup.model.experts is None:
        raise InputError(f"{setup.model.name} has no experts that {shared} devices could share out")
    if "devices" in setup.left_out:
        left = setup.left_out - {"devices"}
        devices = setup.copies if largest(setup.copies) > 1 else quantity(shared, "")
        setup = replace(setup, devices=devices, left_out=left)
    return replace(setup, experts=shared)


def check_devices(setup: Setup) -> None:
    """Refuse devices that the model cannot be cut for, and several of a copy without a link."""
    machine, most = setup.machine, largest(setup.one_copy.devices)
    if setup.link is None and most > 1:
        if machine.domain == 1 or not machine.publishes("bandwidth"):
            joined = machines.with_several(setup.device.key)
            known = f"take {' or '.join(joined)} in its place, or " if joined else ""
            raise InputError(
                f"the data have no link of {setup.device.name} to others: {known}give its bandwidth"
                ' each way, link (--link "32 GB/s")'
            )
        if most > machine.domain and not machine.publishes("ports"):
            raise InputError(
                f"{machine.name} has {machine.domain} devices, and the data have no port of it to"
                f' others: take at most {machine.domain}, or give link (--link "50 GB/s")'
            )
    for count in _different(setup.tensor):
        if not Layout(tensor=int(count)).legal(setup.model):
            *others, last = device_counts(setup.model)
            heads, groups = setup.model.heads, setup.model.kv_heads
            raise InputError(
                f"{count:g} devices cannot share the heads of {setup.model.name} evenly,"
                f" {heads:g} of queries and {groups:g} of keys and values: take"
                f" {', '.join(map(str, others))} or {last}"
            )
    setup.job.layout.check(setup.model)


def _different(counts: Quantity) -> list[float]:
    return numpy.unique(counts.magnitude).tolist() if counts.ndim else [counts.magnitude]
