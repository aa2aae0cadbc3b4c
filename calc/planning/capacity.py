"""What fits: the sequences that devices hold, and the devices that a batch needs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

from calc.catalog import machines
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import check_transformer
from calc.core.arrays import Number, numpy
from calc.core.elementwise import largest, where
from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.networks import transformer
from calc.planning.setup import A_TOKEN, Setup
from calc.steps import inference
from calc.steps.job import Layout

S = TypeVar("S", bound=Setup)


def device_counts(model: Transformer) -> tuple[int, ...]:
    """The numbers of devices that a model can be cut for, each with as many of its heads.

    >>> from calc import models
    >>> device_counts(models.get("llama-3-70b"))
    (1, 2, 4, 8, 16, 32, 64)
    """
    check_transformer(model)
    heads = model.heads
    counts = (count for count in range(1, heads + 1) if heads % count == 0)
    return tuple(count for count in counts if Layout(tensor=count).legal(model))


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


def with_devices(setup: S, count: Number) -> S:
    return replace(setup, devices=quantity(count, ""))


def cache_memory(setup: Setup) -> Quantity:
    """The caches of the batch at full length, on all devices together, each once."""
    cache = transformer.kv_cache(setup.model, setup.context, setup.kv_size)
    return (cache * setup.batch).to("byte")


def most_sequences(setup: Setup) -> Quantity:
    """The largest batch that its devices hold, each cache once."""
    return inference.sequences_that_fit(
        setup.device.memory_capacity * setup.devices,
        setup.model_memory,
        transformer.kept_context(setup.model, setup.context) * A_TOKEN,
        setup.cache_per_token,
        transformer.state_memory(setup.model),
    )


def on_fewest_devices(setup: S) -> S:
    """The setup on the smallest number of devices that holds its batch, or on the largest."""
    *fewer, most = linked_counts(setup)
    devices: Number = float(most)
    for count in reversed(fewer):
        enough = setup.batch.magnitude <= most_sequences(with_devices(setup, count)).magnitude
        devices = where(enough, float(count), devices)
    return with_devices(setup, devices)


def check_devices(setup: Setup) -> None:
    """Refuse a number of devices that the model cannot be cut for, and several without a link."""
    machine, most = setup.machine, largest(setup.devices)
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
    for count in _different(setup.devices):
        if not Layout(tensor=int(count)).legal(setup.model):
            *others, last = device_counts(setup.model)
            heads, groups = setup.model.heads, setup.model.kv_heads
            raise InputError(
                f"{count:g} devices cannot share the heads of {setup.model.name} evenly,"
                f" {heads:g} of queries and {groups:g} of keys and values: take"
                f" {', '.join(map(str, others))} or {last}"
            )


def _different(counts: Quantity) -> list[float]:
    return numpy.unique(counts.magnitude).tolist() if counts.ndim else [counts.magnitude]
