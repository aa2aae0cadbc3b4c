"""Weights in the memory of the host: how fast that is, and what a step takes that reads it.

A device that is too small for a model leaves some of it to its host. A token then waits for both,
one after the other: the device reads its part from its own memory, and the host's processor reads
and multiplies by the rest. A long prompt pays to have that rest sent over the link instead.
"""

from __future__ import annotations

from typing import Annotated

from calc.core.law import FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike


@law
def channel_bandwidth(
    transfers: Annotated[QuantityLike, "1/s", "f"],
    channels: Annotated[QuantityLike, "", "c"] = 2,
    width: Annotated[QuantityLike, "byte", "w"] = "8 byte",
) -> Annotated[Quantity, "byte/s"]:
    """Bandwidth of a host's memory: DDR5-5600 makes 5.6e9 transfers a second on each channel.

    Equation: β = w · f · c

    Source: micron-ddr5

    >>> print(channel_bandwidth("5.6e9 / s"), channel_bandwidth("3.2e9 / s", 4))
    89.6 GB/s 102.4 GB/s

    Parameters
    ----------
    transfers
        transfers of a channel in a second
    channels
        channels of memory, each of 64 bits
    width
        bytes of a transfer of one channel, which is 64 bits wide
    """
    return width * transfers * channels


@law
def split_step_time(
    device_time: Annotated[QuantityLike, "s", "T_d", NON_NEGATIVE],
    host_bytes: Annotated[QuantityLike, "byte", "B", NON_NEGATIVE],
    host_bandwidth: Annotated[QuantityLike, "byte/s", "β"],
) -> Annotated[Quantity, "s"]:
    """Time of a token whose weights lie in a device's memory and in its host's.

    Equation: T = T_d + B / β

    Assumes that device and host take turns, as in llama.cpp: a layer's vector is handed over, and
    the result is waited for. The bandwidth is what the host's processor reaches of its memory's,
    which with the handing over is less than half.

    Source: llama-cpp-cpu-moe

    >>> print(split_step_time("6 ms", "1.6 GB", "40 GB/s"))
    46 ms

    Parameters
    ----------
    device_time
        time of what the device computes of a token
    host_bytes
        what a token reads in the host's memory
    host_bandwidth
        what the host's processor reaches of its memory's bandwidth
    """
    return device_time + host_bytes / host_bandwidth


@law
def found_experts(
    share: Annotated[QuantityLike, "", "s", FRACTION],
    power: Annotated[QuantityLike, "", "k", NON_NEGATIVE] = 1,
) -> Annotated[Quantity, ""]:
    """Share of the chosen experts that memory has, which holds a share of all and drops the oldest.

    Equation: h = s^k

    Routing that favours none makes k = 1. Tokens of one text choose alike, so that k is below 1,
    but never by how much: published caches of experts found more than an even routing would, and
    less than another by the same model.

    Source: llama-cpp-expert-cache

    >>> print(found_experts(0.25), found_experts(0.25, 0.5))
    0.25 0.5

    Parameters
    ----------
    share
        of all experts, those in memory
    power
        below 1 where tokens of a text choose alike; 1 of routing that favours no expert
    """
    return share**power
