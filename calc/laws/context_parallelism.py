"""Long contexts on many devices: attention on a ring or by heads, and what hides behind it.

Context parallelism (CP) cuts a sequence, so that each device has its tokens in every layer. All but
attention is then of a token alone. For attention either keys and values go round a ring, while each
device works on those that it has (ring attention), or an exchange gives each device all tokens of
some heads (Ulysses). Tensor parallelism within a server goes with either.
"""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import maximum
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def ring_block(
    rate: Annotated[QuantityLike, "FLOP/s", "R"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    heads_per_group: Annotated[QuantityLike, "", "g", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, ""]:
    """Tokens of a device from which a step of ring attention hides the next keys and values.

    Equation: c = R · s / (2 · g · BW)

    A block of c queries takes 4 · c² · w operations for each query head of width w, and sends
    2 · c · w · s bytes for each of keys and values, which g of these share. Assumes a block that is
    computed whole; under a causal mask that is dealt out evenly it is half, and c twice as long.

    Source: liu2023ring

    >>> print(ring_block("312 TFLOP/s", "300 GB/s"), ring_block("312 TFLOP/s", "12.5 GB/s"))
    1040 24960

    Parameters
    ----------
    rate
        rate at which attention runs
    bandwidth
        bytes that the memory or the link carries in a second
    heads_per_group
        query heads that share keys and values
    element_size
        what an element of the array takes
    """
    return rate * element_size / (_per_term * heads_per_group * bandwidth)


@law
def ring_traffic(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    kv_heads: Annotated[QuantityLike, "", "h_kv", AT_LEAST_ONE],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that a device sends for a layer's attention on a ring: nearly all keys and values.

    Equation: D = (n − 1) / n · T · h_kv · (d_k + d_v) · s

    T are the tokens of all n devices. It does not fall with more of them. An all-gather of keys and
    values in one go, as some programs do, sends as much. A backward pass sends twice as much again.

    Source: liu2023ring

    See also: context_parallelism.ulysses_traffic

    >>> print(ring_traffic(131072, 8, 128, 128, 16))
    503.3 MB

    Parameters
    ----------
    tokens
        tokens of the whole sequence
    kv_heads
        heads of keys and values of a layer
    key_width
        width of a query or key in one head
    value_width
        width of a value in one head
    devices
        devices that take part
    element_size
        what an element of the array takes
    """
    return (devices - 1) / devices * tokens * kv_heads * (key_width + value_width) * element_size


@law
def ulysses_traffic(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    heads: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    kv_heads: Annotated[QuantityLike, "", "h_kv", AT_LEAST_ONE],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that a device sends for a layer's attention where heads are exchanged for tokens.

    Equation: D = (n − 1) / n² · T · (h + h_kv) · (d_k + d_v) · s

    Queries, keys and values of T / n tokens go to the devices that have their heads, and results
    come back: two all-to-alls. It falls with more devices, up to as many as there are heads of keys
    and values; beyond them these are copied.

    Source: deepspeed-ulysses

    See also: context_parallelism.ring_traffic

    >>> print(ulysses_traffic(131072, 32, 8, 128, 128, 8))
    293.6 MB

    Parameters
    ----------
    tokens
        tokens of the whole sequence
    heads
        query heads of a layer
    kv_heads
        heads of keys and values of a layer
    key_width
        width of a query or key in one head
    value_width
        width of a value in one head
    devices
        devices that take part
    element_size
        what an element of the array takes
    """
    tokens_of_one = tokens / devices
    both = (heads + kv_heads) * (key_width + value_width)
    return (devices - 1) / devices * tokens_of_one * both * element_size


@law
def ring_time(
    compute_time: Annotated[QuantityLike, "s", "T_comp", NON_NEGATIVE],
    transfer_time: Annotated[QuantityLike, "s", "T_send", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, "s"]:
    """Time of a layer's attention on a ring: n blocks, each but the first behind a message.

    Equation: T = T_comp + (n − 1) · max(T_comp, T_send)

    The times are those of one block, which are alike for all devices where tokens are dealt out so
    that the mask treats them alike.

    Source: liu2023ring

    >>> print(ring_time("1 ms", "600 us", 8), ring_time("1 ms", "1.5 ms", 8))
    8 ms 11.5 ms

    Parameters
    ----------
    compute_time
        time of a block's attention
    transfer_time
        time of sending a block of keys and values to the neighbour
    devices
        devices that take part
    """
    return compute_time + (devices - 1) * maximum(compute_time, transfer_time)


@law
def new_share_for_keys(
    heads: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    kv_heads: Annotated[QuantityLike, "", "h_kv", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Share of new tokens in a context from which keys are cheaper to send round than queries.

    Equation: r = 2 · h_kv / h

    Of a context that is mostly cached only the new tokens have queries, so that below this share
    the queries go round the ring (pass-Q) and the caches stay. Assumes keys and values of one
    width; the results of queries must be sent back too, which lowers the share where that does not
    hide.

    Source: yang2024context

    >>> print(new_share_for_keys(128, 8))
    0.125

    Parameters
    ----------
    heads
        query heads of a layer
    kv_heads
        heads of keys and values of a layer
    """
    return 2 * kv_heads / heads
