"""Caches of keys and values: what a token leaves in them, what fits, and what prefixes find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from calc.core.arguments import as_list, whole_number
from calc.core.elementwise import floor, maximum
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def kv_bytes_per_token(
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE],
    _per_token: Annotated[QuantityLike, "1/token"] = 1,
) -> Annotated[Quantity, "byte/token"]:
    """Memory of a token's keys and values, one of each in every layer and head that has its own.

    Equation: m = l · h · (d_k + d_v) · s

    Assumes that `heads` counts those of keys and values: all in multi-head attention, the groups in
    grouped-query attention, one in multi-query attention. A quantised cache counts its scales in
    the size of an element.

    Source: ainslie2023gqa

    See also: caches.latent_bytes_per_token, caches.kv_cache_memory

    >>> print(kv_bytes_per_token(32, 8, 128, 128, "2 byte").to("KiB/token"))
    128 KiB/token

    Parameters
    ----------
    layers
        layers of the model
    heads
        heads that have keys and values of their own
    key_width
        width of a query or key in one head
    value_width
        width of a value in one head
    element_size
        what an element of the array takes
    """
    return _per_token * layers * heads * (key_width + value_width) * element_size


@law
def latent_bytes_per_token(
    layers: Annotated[QuantityLike, "", "l"],
    latent: Annotated[QuantityLike, "", "r"],
    rotary_width: Annotated[QuantityLike, "", "d_r", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE],
    _per_token: Annotated[QuantityLike, "1/token"] = 1,
) -> Annotated[Quantity, "byte/token"]:
    """Memory of a token in latent attention: what its keys and values are made from in every layer.

    Equation: m = l · (r + d_r) · s

    Source: deepseek2024v2

    See also: caches.kv_bytes_per_token

    >>> print(latent_bytes_per_token(61, 512, 64, "2 byte").to("KiB/token"))
    68.62 KiB/token

    Parameters
    ----------
    layers
        layers of the model
    latent
        width of the vector that keys and values are made from
    rotary_width
        width of the part of a key that carries the position
    element_size
        what an element of the array takes
    """
    return _per_token * layers * (latent + rotary_width) * element_size


@law
def kv_cache_memory(
    sequences: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "token", "c", NON_NEGATIVE],
    kv_per_token: Annotated[QuantityLike, "byte/token", "m", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Memory of the keys and values of all sequences, without the weights: the cache alone.

    Equation: M = B · c · m

    Source: pope2023efficiently

    See also: caches.decode_traffic, caches.sequences_that_fit

    >>> print(kv_cache_memory(32, 4096, "128 KiB/token").to("GiB"))
    16 GiB

    Parameters
    ----------
    sequences
        sequences of the batch
    context
        tokens of each sequence whose keys and values are read
    kv_per_token
        what the cache keeps of a token, in all layers
    """
    return sequences * context * kv_per_token


@law
def decode_traffic(
    weights: Annotated[QuantityLike, "byte", "W"],
    sequences: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "token", "c", NON_NEGATIVE],
    kv_per_token: Annotated[QuantityLike, "byte/token", "m", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that a decode step must read: the weights once, and each sequence's keys and values.

    Equation: D_vol = W + B · c · m

    The weights serve the whole batch; a cache serves its own sequence. Without a context only the
    weights are left. Activations weigh nothing beside either.

    Source: pope2023efficiently

    See also: caches.kv_cache_memory

    >>> print(decode_traffic("16 GB", 32, 4096, "128 KiB/token"))
    33.18 GB

    Parameters
    ----------
    weights
        memory of the weights
    sequences
        sequences of the batch
    context
        tokens of each sequence whose keys and values are read
    kv_per_token
        what the cache keeps of a token, in all layers
    """
    return weights + sequences * context * kv_per_token


@law
def sequences_that_fit(
    memory: Annotated[QuantityLike, "byte", "M"],
    weights: Annotated[QuantityLike, "byte", "W"],
    context: Annotated[QuantityLike, "token", "c", AT_LEAST_ONE],
    kv_per_token: Annotated[QuantityLike, "byte/token", "m"],
    state: Annotated[QuantityLike, "byte", "S", NON_NEGATIVE] = "0 byte",
) -> Annotated[Quantity, ""]:
    """Whole sequences whose keys and values, and states, fit into memory beside the weights.

    Equation: B = ⌊max(0, M − W) / (c · m + S)⌋

    None where the weights alone are too large. Assumes a cache without gaps, as pages make it. The
    states S of linear attention and state spaces do not grow with the context.

    Source: kwon2023efficient

    >>> print(sequences_that_fit("80 GB", "16 GB", 8192, "128 KiB/token"))
    59

    Parameters
    ----------
    memory
        memory that may be filled
    weights
        memory of the weights
    context
        tokens of each sequence whose keys and values are read
    kv_per_token
        what the cache keeps of a token, in all layers
    state
        memory of a sequence that does not grow with it
    """
    left = memory - weights
    return floor(maximum(left, 0 * left) / (context * kv_per_token + state))


@law
def cache_rate(
    kv_per_token: Annotated[QuantityLike, "byte/token", "m"],
    prefill_rate: Annotated[QuantityLike, "token/s", "r"],
) -> Annotated[Quantity, "byte/s"]:
    """Bandwidth at which a prefill makes caches: what a link needs to carry them away in time.

    Equation: BW = m · r

    A link or a store of at least this much moves a cache faster than computing it again, and sends
    it to another pool without holding up the prefill. It does not depend on the length.

    Source: zhong2024distserve

    >>> print(cache_rate("320 KiB/token", "28000 token/s"))
    9.175 GB/s

    Parameters
    ----------
    kv_per_token
        what the cache keeps of a token, in all layers
    prefill_rate
        tokens that a device of the pool for prompts reads in a second
    """
    return kv_per_token * prefill_rate


def prefix_hit_rate(requests: Iterable[Sequence[Any]], blocks: int) -> float:
    """Share of the blocks of prompts that a prefix cache holds, when requests come in this order.

    A request is the names of its blocks from the first on, as the hashes of a trace are. A block
    counts as found while all before it were; of so many blocks the one that was used last the
    longest ago makes room (LRU). It is Mooncake's cache, one for all; `PrefixCache` has tiers.

    >>> prefix_hit_rate([("system", "a"), ("system", "b"), ("other", "a")], 3)
    0.16666666666666666
    """
    cache = PrefixCache((whole_number("blocks", blocks),))
    hits = looked_up = 0
    for request in as_list("requests", requests):
        names = as_list("the blocks of a request", request)
        for name in names:
            _check_name(name)
        looked_up += len(names)
        hits += sum(cache.find(names))
    if not looked_up:
        raise InputError("a hit rate is that of requests with blocks; got none")
    return hits / looked_up


class PrefixCache:
    """Blocks by their names in tiers, so many in each: the last used move down, and then out (LRU).

    >>> cache = PrefixCache((1, 2))
    >>> cache.find("ab"), cache.find("abc"), cache.find("xb")
    ((0, 0), (1, 1), (0, 0))
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.tiers: list[dict[Any, None]] = [{} for _ in sizes]

    def holds(self, names: Iterable[Any]) -> int:
        """Blocks of a prompt that are there, from the first on without a gap."""
        count = 0
        for name in names:
            if not any(name in tier for tier in self.tiers):
                break
            count += 1
        return count

    def find(self, names: Sequence[Any], left: Sequence[Any] | None = None) -> tuple[int, ...]:
        """Return how many blocks each tier holds of a prompt; keep all its blocks, or `left`."""
        reused = names[: self.holds(names)]
        counts = tuple(sum(name in tier for name in reused) for tier in self.tiers)
        for name in names if left is None else left:
            for tier in self.tiers:
                tier.pop(name, None)
            falling = name
            for size, tier in zip(self.sizes, self.tiers, strict=True):
                tier[falling] = None
                if len(tier) <= size:
                    break
                falling = next(iter(tier))
                del tier[falling]
        return counts


def _check_name(value: Any) -> None:
    """Refuse what cannot name a block, as a list cannot: a cache looks names up."""
    try:
        hash(value)
    except TypeError:
        raise InputError(
            f"a block is named by a number or a text; got {abbreviated(value)}"
        ) from None
