"""Experts at work: where tokens go, how many experts they wake, and how full these are.

A mixture's experts live on many devices (expert parallelism, EP): each token is dispatched to the
devices that hold its experts, and their results are combined where it came from. Attention is data
parallel: every device has its own sequences, and all matrices but the experts.
`parallelism.expert_traffic` has the bytes.
"""

from __future__ import annotations

import math
from typing import Annotated

from calc.core.arrays import Number
from calc.core.elementwise import at_least_once, erfc, log, minimum
from calc.core.law import AT_LEAST_ONE, FRACTION, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def experts_used(
    experts: Annotated[QuantityLike, "", "E", AT_LEAST_ONE],
    share: Annotated[QuantityLike, "", "s", FRACTION],
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Experts that at least one token of a batch is sent to, on average.

    Equation: n = E · (1 − (1 − s)^T)

    Assumes that each token chooses its share s of the experts by itself, and none is preferred.

    Source: shazeer2017moe

    >>> print(experts_used(256, 8 / 256, 1), experts_used(256, 8 / 256, 64))
    8 222.4

    Parameters
    ----------
    experts
        experts of a layer that tokens are routed to
    share
        share of the experts that a token is sent to
    tokens
        tokens of the batch
    """
    return experts * at_least_once(share, tokens)


@law
def tokens_per_expert(
    tokens: Annotated[QuantityLike, "", "T"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    experts: Annotated[QuantityLike, "", "E", AT_LEAST_ONE],
    experts_per_token: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Rows of an expert's matrix products, on average: the batch that its weights are read for.

    Equation: m = n · T · k / E

    Each of n devices that share out the experts has T tokens of its own, and each token goes to k
    of them. More devices make larger batches of the same memory: this is what they are for.

    Source: deepseek-open-infra-day6

    >>> print(tokens_per_expert(128, 8, 256, 8), tokens_per_expert(128, 144, 256, 8))
    32 576

    Parameters
    ----------
    tokens
        tokens of each device
    devices
        devices that take part
    experts
        experts of a layer that tokens are routed to
    experts_per_token
        experts that a token is sent to
    """
    return devices * tokens * experts_per_token / experts


@law
def critical_tokens(
    ridge_point: Annotated[QuantityLike, "FLOP/byte", "I*"],
    experts: Annotated[QuantityLike, "", "E", AT_LEAST_ONE],
    experts_per_token: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, ""]:
    """Tokens of all devices together from which experts are bound by arithmetic, not by reading.

    Equation: T* = I* · s / 2 · E / k

    A dense layer's critical batch by its weights, I* · s / 2, times the sparsity E / k, since each
    expert sees that share of the tokens. Assumes experts that are chosen evenly.

    Source: pope2023efficiently

    >>> print(critical_tokens("295.2 FLOP/byte", 256, 8))
    9446

    Parameters
    ----------
    ridge_point
        intensity from which the machine is bound by arithmetic
    experts
        experts of a layer that tokens are routed to
    experts_per_token
        experts that a token is sent to
    element_size
        what an element of the array takes
    """
    return ridge_point * element_size / _per_term * experts / experts_per_token


@law
def devices_reached(
    experts_per_token: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Devices, or servers, that hold at least one of a token's experts, on average.

    Equation: c = n · (1 − (1 − 1 / n)^k)

    A token that is sent once to each of them, and not once to each expert, crosses as many links.
    Assumes k choices at random and on their own; experts that are all different reach a little more
    (5.29 of 8 devices in the example), and routing that is limited to some groups no more than
    these.

    Source: deepseek2024v3

    >>> print(devices_reached(8, 8), devices_reached(8, 32))
    5.251 7.178

    Parameters
    ----------
    experts_per_token
        experts that a token is sent to
    devices
        devices that take part
    """
    return devices * at_least_once(1 / devices, experts_per_token)


@law
def fullest_load(
    mean: Annotated[QuantityLike, "", "m"], devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE]
) -> Annotated[Quantity, ""]:
    """Tokens of the fullest of n experts or devices that have m each on average, by chance alone.

    Equation: m_max = m + (2 · m · ln n)^½

    All wait for the fullest. Assumes that every token chooses at random, and m well above ln n;
    experts that are popular make it worse, and copies of these better.

    Source: raab1998balls

    >>> print(fullest_load(32, 256), fullest_load(576, 144))
    50.84 651.7

    Parameters
    ----------
    mean
        tokens that an expert or a device has, on average
    devices
        devices that take part
    """
    return mean + (2 * mean * log(devices)) ** 0.5


@law
def fullest_experts(
    mean: Annotated[QuantityLike, "", "m"],
    held: Annotated[QuantityLike, "", "h"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Experts that the device with most to read reads, of h that each of n devices has.

    Equation: x = min(min(h, m · n), m + 4.91 · (p^0.14 − q^0.14) · (m · max(1 − m / h, 0))^½),
        p = (8 · n − 3) / (8 · n + 2), q = 1 − p

    A batch wakes m experts of a device on average, and a step waits for the device with most. p is
    the rank of the largest of n normal numbers; 4.91 and 0.14 give where it lies, by Tukey's
    lambda. Assumes that experts are chosen evenly and each is woken or not by itself: within 12 %
    of drawn choices from a mean of one on, and up to a quarter too few below it.

    Source: blom1958order

    >>> print(fullest_experts(3.81, 32, 8), fullest_experts(32, 32, 8))
    6.439 32

    Parameters
    ----------
    mean
        experts of a device that a batch wakes, on average
    held
        experts that each device has
    devices
        devices that take part
    """
    rank = (8 * devices - 3) / (8 * devices + 2)
    beyond = 4.91 * (rank**0.14 - (1 - rank) ** 0.14)
    by_chance = mean + beyond * (mean * (1 - minimum(mean / held, 1.0))) ** 0.5
    return minimum(minimum(held, mean * devices), by_chance)


@law
def expert_capacity(
    tokens: Annotated[QuantityLike, "", "T"],
    experts: Annotated[QuantityLike, "", "E", AT_LEAST_ONE],
    experts_per_token: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    capacity_factor: Annotated[QuantityLike, "", "f"] = 1,
) -> Annotated[Quantity, ""]:
    """Tokens that an expert has room for; what is sent to it beyond them is dropped.

    Equation: C = f · T · k / E

    Shapes that are known before the routing is need such a limit. T tokens of all devices are
    routed together, and a factor f of 1 leaves no room for chance.

    Source: fedus2022switch

    >>> print(expert_capacity(4096, 64, 1, 1.25))
    80

    Parameters
    ----------
    tokens
        tokens of all devices together
    experts
        experts of a layer that tokens are routed to
    experts_per_token
        experts that a token is sent to
    capacity_factor
        room that experts have over their mean load
    """
    return capacity_factor * tokens * experts_per_token / experts


@law
def dropped_share(
    mean: Annotated[QuantityLike, "", "m"], capacity_factor: Annotated[QuantityLike, "", "f"]
) -> Annotated[Quantity, ""]:
    """Share of the tokens that find their expert full, where all experts are chosen evenly.

    Equation: d = (exp(−z² / 2) / (2 · π)^½ − z · erfc(z / 2^½) / 2) / m^½, z = (f − 1) · m^½

    z is the room in standard deviations, and erfc the complementary error function; π is the
    circle's. The load of an expert is taken to be normal, with its mean m as its variance: an
    estimate from some ten tokens on. Experts that are popular drop more.

    Source: fedus2022switch

    >>> print(dropped_share(64, 1).to("%"), dropped_share(64, 1.25).to("%"))
    4.987% 0.1061%

    Parameters
    ----------
    mean
        tokens that an expert or a device has, on average
    capacity_factor
        room that experts have over their mean load
    """
    beyond = (capacity_factor - 1) * mean**0.5
    density: Number = math.e ** (-(beyond**2) / 2) / (2 * math.pi) ** 0.5
    return (density - beyond * erfc(beyond / 2**0.5) / 2) / mean**0.5
