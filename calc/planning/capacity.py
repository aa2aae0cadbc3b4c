"""What fits: the sequences that devices hold, and the devices that a batch needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from calc.catalog.models import Transformer
from calc.catalog.models.architecture import check_transformer
from calc.core.arrays import Number
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
        setup.job.weight_memory,
        transformer.kept_context(setup.model, setup.context) * A_TOKEN,
        setup.cache_per_token,
        transformer.state_memory(setup.model),
    )
