"""Collectives: what devices that must agree on an array send each other, and what a step waits for.

All times are of the model that Hockney made for one message and Thakur and others for collectives:
a message of n bytes takes L + n / BW. Every device has one link, full duplex, and BW is what it
carries each way. Links do not get in each other's way, reducing costs no time, and one device alone
sends nothing. Sizes are of the whole array: what each device holds before an all-reduce or a
reduce-scatter, and what each holds after an all-gather.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from statistics import geometric_mean
from typing import Annotated, Any

from calc.catalog import constants, intervals, machines, software as programs
from calc.catalog.hardware import Accelerator
from calc.catalog.intervals import Around, around, signed
from calc.catalog.kernel_shares import SOURCE
from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.software import Software
from calc.core.arguments import truth, whole_number, whole_numbers
from calc.core.arrays import Number
from calc.core.citations import citation
from calc.core.elementwise import (
    ceiling,
    doublings,
    floor,
    largest,
    maximum,
    minimum,
    of_each,
    smallest,
    where,
)
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.networks import transformer
from calc.steps import curves, measured
from calc.steps.curves import Curve
from calc.steps.job import BYTE, SECOND


@law
def all_gather_traffic(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends, and receives, in an all-gather: all parts but one.

    Equation: D = (n − 1) / n · V

    The same holds of a reduce-scatter and of an all-to-all. No algorithm receives less.

    Source: thakur2005optimization

    See also: collectives.all_reduce_traffic

    >>> print(all_gather_traffic("14 GB", 8))
    12.25 GB
    """
    return (devices - 1) / devices * size


@law
def all_reduce_traffic(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that each device sends, at least, to sum an array that each of them holds whole.

    Equation: D = 2 · (n − 1) / n · V

    A reduce-scatter and an all-gather. Less is possible only where switches do the sums.

    Source: patarasuk2009bandwidth

    See also: collectives.all_gather_traffic

    >>> print(all_reduce_traffic("14 GB", 8))
    24.5 GB
    """
    return 2 * (devices - 1) / devices * size


@law
def ring_all_gather(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until every device holds every part: n − 1 rounds, one part to the neighbour in each.

    Equation: T = (n − 1) · (L + V / (n · BW))

    Assumes parts of equal size; V is the array that each device holds at the end.

    Source: thakur2005optimization

    >>> print(ring_all_gather("14 GB", 8, "450 GB/s", "500 ns"))
    27.23 ms
    """
    return (devices - 1) * (latency + size / (devices * bandwidth))


@law
def ring_reduce_scatter(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until each device holds the sum of one part: an all-gather, run backwards.

    Equation: T = (n − 1) · (L + V / (n · BW))

    Assumes parts of equal size and additions that cost no time; V is the array that each device
    holds at the beginning.

    Source: patarasuk2009bandwidth

    >>> print(ring_reduce_scatter("14 GB", 8, "450 GB/s", "500 ns"))
    27.23 ms
    """
    return (devices - 1) * (latency + size / (devices * bandwidth))


@law
def ring_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until every device holds the sum, on a ring: a reduce-scatter, then an all-gather.

    Equation: T = 2 · (n − 1) · (L + V / (n · BW))

    Assumes that each device sends to one neighbour while it receives from the other. Its traffic is
    the least possible; its rounds grow with n.

    Source: patarasuk2009bandwidth

    See also: collectives.double_tree_all_reduce, collectives.ring_crossover

    >>> print(ring_all_reduce("14 GB", 8, "450 GB/s", "500 ns"))
    54.45 ms
    """
    return 2 * (devices - 1) * (latency + size / (devices * bandwidth))


@law
def tree_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until every device holds the sum, on one tree: a reduction to its root, and a broadcast.

    Equation: T = 2 · ⌈log₂ n⌉ · (L + V / BW)

    Assumes a binomial tree whose messages are the whole array, one level after the other. Few
    rounds, each of them long: for arrays that are short.

    Source: thakur2005optimization

    See also: collectives.double_tree_all_reduce

    >>> print(tree_all_reduce("10 kB", 8, "450 GB/s", "500 ns"))
    3.133 µs
    """
    return 2 * doublings(devices) * (latency + size / bandwidth)


@law
def double_tree_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until every device holds the sum, on two binary trees, each for one half of the array.

    Equation: T = 2 · ⌈log₂ n⌉ · L + 2 · V / BW where n > 1, else 0

    One device alone sends nothing. Every device is a leaf in one tree and has
    up to two children in the other, so it sends the array twice. Assumes a pipeline of pieces so
    small that it fills at once, and yet no latency for each piece: a floor, which real trees
    approach for arrays that are long.

    Source: sanders2009two

    >>> print(double_tree_all_reduce("14 GB", 1024, "50 GB/s", "5 us"))
    560.1 ms
    """
    sends = where(devices > 1, 2, 0)
    return 2 * doublings(devices) * latency + sends * size / bandwidth


@law
def ring_crossover(
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Size of the array from which an all-reduce on a ring is faster than one on two trees.

    Equation: V* = n · max(0, n − 1 − ⌈log₂ n⌉) · L · BW

    Where ring_all_reduce and double_tree_all_reduce meet; zero for two devices, whose ring is as
    short as their tree. It grows with n²: large rings pay for long arrays alone.

    Source: sanders2009two

    >>> print(ring_crossover(8, "50 GB/s", "5 us"))
    8 MB
    """
    return devices * maximum(devices - 1 - doublings(devices), 0) * latency * bandwidth


@law
def hierarchical_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices_per_node: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
    nodes: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    inner_bandwidth: Annotated[QuantityLike, "byte/s", "BW₁"],
    outer_bandwidth: Annotated[QuantityLike, "byte/s", "BW₂"],
    inner_latency: Annotated[QuantityLike, "s", "L₁", NON_NEGATIVE] = "0 s",
    outer_latency: Annotated[QuantityLike, "s", "L₂", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-reduce by rings in each node and rings between nodes, one after the other.

    Equation: T = 2 · (g − 1) · (L₁ + V / (g · BW₁)) + 2 · (k − 1) · (L₂ + V / (g · k · BW₂))

    A reduce-scatter in each node of g devices, an all-reduce of each part between the k nodes, an
    all-gather in each node. Assumes that every device has a port of its own to the other nodes,
    which carries BW₂ each way.

    Source: mikami2018massively

    >>> print(hierarchical_all_reduce("14 GB", 8, 4, "450 GB/s", "50 GB/s", "500 ns", "5 us"))
    107.0 ms
    """
    inner = (
        2 * (devices_per_node - 1) * (inner_latency + size / (devices_per_node * inner_bandwidth))
    )
    part = size / devices_per_node
    return inner + 2 * (nodes - 1) * (outer_latency + part / (nodes * outer_bandwidth))


@law
def all_to_all(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until each device has sent every other one a part of its own: n − 1 rounds of pairs.

    Equation: T = (n − 1) · (L + V / (n · BW))

    V is what one device holds, the part for itself included. Assumes parts of equal size, and a
    network that carries all pairs at once at full bandwidth; a ring or a thinned-out network does
    not.

    Source: thakur2005optimization

    >>> print(all_to_all("64 MB", 8, "450 GB/s", "500 ns"))
    127.9 µs
    """
    return (devices - 1) * (latency + size / (devices * bandwidth))


@law
def bidirectional_ring_all_gather(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-gather on a ring that sends both ways at once: half as far, half as much.

    Equation: T = ⌊n / 2⌋ · L + (n − 1) · V / (2 · n · BW)

    BW is what each of a device's two links carries each way. Where n is even, the device that is
    farthest gets one half of each part from either side. A reduce-scatter takes as long, an
    all-reduce twice that.

    Source: austin2025scaling

    >>> print(bidirectional_ring_all_gather("14 GB", 8, "50 GB/s", "1 us"))
    122.5 ms
    """
    return floor(devices / 2) * latency + (devices - 1) * size / (2 * devices * bandwidth)


@law
def direct_all_gather(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-gather in which each device sends its part to all others in one round.

    Equation: T = L + (n − 1) · V / (n · BW) where n > 1, else 0

    One device alone sends nothing. Assumes a switch or a mesh, through which a
    device reaches all others at once; BW is the sum of its links. A reduce-scatter takes as long,
    and an all-reduce of the two, which libraries call two-shot, twice that.

    Source: flashinfer2026allreduce

    >>> print(direct_all_gather("64 kB", 8, "450 GB/s", "1 us"))
    1.124 µs
    """
    return where(devices > 1, 1, 0) * latency + (devices - 1) * size / (devices * bandwidth)


@law
def one_shot_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-reduce in which each device sends its whole array to all others, who add up.

    Equation: T = L + (n − 1) · V / BW where n > 1, else 0

    One device alone sends nothing. One round in place of two, and n / 2 times
    the traffic of the least: for arrays that are short. Assumes a switch or a mesh, and BW is the
    sum of a device's links.

    Source: flashinfer2026allreduce

    >>> print(one_shot_all_reduce("64 kB", 8, "450 GB/s", "1 us"))
    1.996 µs
    """
    return where(devices > 1, 1, 0) * latency + (devices - 1) * size / bandwidth


@law
def in_switch_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-reduce whose sums a switch makes: each device sends its array once.

    Equation: T = 2 · L + V / BW where n > 1, else 0

    One device alone sends nothing. The array goes up to the switch while the
    sum comes down. By its bus bandwidth such an all-reduce is up to 2 · (n − 1) / n times as fast
    as the link, which no ring is.

    Source: graham2016sharp

    >>> print(in_switch_all_reduce("14 GB", 8, "450 GB/s", "1 us"))
    31.11 ms
    """
    return where(devices > 1, 1, 0) * (2 * latency + size / bandwidth)


@law
def all_ports_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices_per_node: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
    nodes: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    inner_bandwidth: Annotated[QuantityLike, "byte/s", "BW₁"],
    outer_bandwidth: Annotated[QuantityLike, "byte/s", "BW₂"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-reduce on as many rings through all devices as a node has ports.

    Equation: T = 2 · (g · k − 1) · (L + V / (g · k) · max(1 / BW₁, 1 / (g · BW₂)))

    Each ring carries one of g parts of the array and leaves the k nodes through ports of its own,
    so that a node sends g · BW₂. Assumes a port for each of the g devices of a node and one latency
    for all messages. One flat ring through one port is ring_all_reduce at BW₂.

    Source: patarasuk2009bandwidth

    >>> print(all_ports_all_reduce("14 GB", 8, 8, "450 GB/s", "50 GB/s"))
    68.91 ms
    """
    devices = devices_per_node * nodes
    slowest = maximum(1 / inner_bandwidth, 1 / (devices_per_node * outer_bandwidth))
    return 2 * (devices - 1) * (latency + size / devices * slowest)


@law
def chunked_hierarchical_all_reduce(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices_per_node: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
    nodes: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    inner_bandwidth: Annotated[QuantityLike, "byte/s", "BW₁"],
    outer_bandwidth: Annotated[QuantityLike, "byte/s", "BW₂"],
    inner_latency: Annotated[QuantityLike, "s", "L₁", NON_NEGATIVE] = "0 s",
    outer_latency: Annotated[QuantityLike, "s", "L₂", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of a hierarchical all-reduce in pieces: one crosses the nodes while the next is in them.

    Equation: T = max(2 · (g − 1) · (L₁ + V / (g · BW₁)), 2 · (k − 1) · (L₂ + V / (g · k · BW₂)))

    The longer of the two parts that hierarchical_all_reduce adds. Assumes pieces so small that
    filling and draining take no time, and yet no latency for each of them: a floor.

    Source: cho2019blueconnect

    >>> print(chunked_hierarchical_all_reduce("14 GB", 8, 8, "450 GB/s", "50 GB/s"))
    61.25 ms
    """
    own = devices_per_node
    inner = 2 * (own - 1) * (inner_latency + size / (own * inner_bandwidth))
    return maximum(
        inner, 2 * (nodes - 1) * (outer_latency + size / (own * nodes * outer_bandwidth))
    )


@law
def torus_all_gather(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    links: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    hops: Annotated[QuantityLike, "", "h", NON_NEGATIVE] = 0,
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-gather on a torus, along all of its axes at once.

    Equation: T = h · L + (n − 1) · V / (n · k · BW)

    A device has k links of BW each way: two for each axis that is a ring, one at the end of an axis
    that is open. The array is cut into as many parts as there are axes, each of which goes along
    the axes in another order, so that all links work. h is the way to the farthest device, half of
    each closed side. A reduce-scatter takes as long, an all-reduce twice that.

    Source: austin2025scaling

    >>> print(torus_all_gather("14 GB", 256, 4, "50 GB/s", 16, "1 us"))
    69.74 ms
    """
    return hops * latency + (devices - 1) * size / (devices * links * bandwidth)


@law
def torus_all_to_all(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    side: Annotated[QuantityLike, "", "a", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    hops: Annotated[QuantityLike, "", "h", NON_NEGATIVE] = 0,
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of an all-to-all on a torus, or on a ring, which is a torus of one axis.

    Equation: T = h · L + ⌊a² / 4⌋ · V / (2 · a · BW)

    V is what one device holds. What it sends goes about a / 4 links along an axis of side a on
    average, on two links of BW each way, and the longest axis takes the longest. h is the way to
    the farthest device. Assumes that each axis is a ring; along an open one it takes twice that.

    Source: austin2025scaling

    >>> print(torus_all_to_all("64 MB", 16, "50 GB/s", 16, "1 us"))
    2.576 ms
    """
    return hops * latency + floor(side**2 / 4) * size / (2 * side * bandwidth)


@law
def tree_broadcast(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until every device has the array of one: each round doubles those that have it.

    Equation: T = ⌈log₂ n⌉ · (L + V / BW)

    Assumes a binomial tree whose messages are the whole array: for arrays that are short.

    Source: thakur2005optimization

    >>> print(tree_broadcast("10 kB", 8, "450 GB/s", "500 ns"))
    1.567 µs
    """
    return doublings(devices) * (latency + size / bandwidth)


@law
def chain_broadcast(
    size: Annotated[QuantityLike, "byte", "V", NON_NEGATIVE],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of a broadcast along a chain, in which each device passes on what it has so far.

    Equation: T = (n − 1) · L + V / BW where n > 1, else 0

    One device alone sends nothing. Assumes pieces so small that the chain
    fills at once, and yet no latency for each: a floor, which is that of any broadcast too, since
    the last device receives the whole array through one link.

    Source: sanders2009two

    >>> print(chain_broadcast("14 GB", 8, "450 GB/s", "500 ns"))
    31.11 ms
    """
    return (devices - 1) * latency + where(devices > 1, 1, 0) * size / bandwidth


@law
def algorithm_bandwidth(
    size: Annotated[QuantityLike, "byte", "V"], time: Annotated[QuantityLike, "s", "T"]
) -> Annotated[Quantity, "byte/s"]:
    """Bytes of the array over the time of the collective: what a benchmark calls algbw.

    Equation: BW_alg = V / T

    Of a broadcast and of a reduction to one device it is the bus bandwidth too.

    Source: nvidia-nccl-tests

    See also: collectives.bus_bandwidth

    >>> print(algorithm_bandwidth("14 GB", "54.45 ms"))
    257.1 GB/s
    """
    return size / time


@law
def bus_bandwidth(
    size: Annotated[QuantityLike, "byte", "V"],
    time: Annotated[QuantityLike, "s", "T"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, "byte/s"]:
    """Bytes that each device sent each way in an all-reduce, over its time: busbw.

    Equation: BW_bus = 2 · (n − 1) / n · V / T

    For other collectives see all_gather_bus_bandwidth and algorithm_bandwidth. To be held against a
    link's bandwidth each way. Where switches do the sums, devices send less
    than this factor says, and it may exceed the link.

    Source: nvidia-nccl-tests

    >>> print(bus_bandwidth("14 GB", "54.45 ms", 8))
    450.0 GB/s
    """
    return 2 * (devices - 1) / devices * size / time


@law
def all_gather_bus_bandwidth(
    size: Annotated[QuantityLike, "byte", "V"],
    time: Annotated[QuantityLike, "s", "T"],
    devices: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, "byte/s"]:
    """Bytes that each device sent each way in an all-gather, over its time: busbw.

    Equation: BW_bus = (n − 1) / n · V / T

    The same holds of a reduce-scatter and of an all-to-all; V is the whole array.

    Source: nvidia-nccl-tests

    >>> print(all_gather_bus_bandwidth("14 GB", "27.23 ms", 8))
    449.9 GB/s
    """
    return (devices - 1) / devices * size / time


@law
def bubble_fraction(
    stages: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    stages_per_device: Annotated[QuantityLike, "", "v", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, ""]:
    """Share of a step in which a device of a pipeline waits, while it fills and while it drains.

    Equation: f = (p − 1) / (v · m + p − 1)

    Assumes p devices with layers of equal time, m microbatches, and messages that cost no time.
    With v > 1 each device holds v thin slices of the model instead of a thick one (interleaving).

    Source: huang2019gpipe

    See also: collectives.bubble_overhead, collectives.bubble_time

    >>> print(bubble_fraction(8, 32).to("%"))
    17.95%
    """
    return (stages - 1) / (stages_per_device * microbatches + stages - 1)


@law
def bubble_overhead(
    stages: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
    microbatches: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    stages_per_device: Annotated[QuantityLike, "", "v", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, ""]:
    """Waiting in a pipeline over the time of its work: what the bubble adds to a step without one.

    Equation: o = (p − 1) / (v · m) = f / (1 − f)

    f is the bubble_fraction, whose assumptions hold here too; at times that is meant by this name,
    and the other way round.

    Source: narayanan2021efficient

    >>> print(bubble_overhead(8, 32).to("%"))
    21.88%
    """
    return (stages - 1) / (stages_per_device * microbatches)


@law
def bubble_time(
    stages: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
    forward_time: Annotated[QuantityLike, "s", "T_F", NON_NEGATIVE],
    input_gradient_time: Annotated[QuantityLike, "s", "T_B", NON_NEGATIVE],
    weight_gradient_time: Annotated[QuantityLike, "s", "T_W", NON_NEGATIVE],
    delayed: Annotated[QuantityLike, "", "h", NON_NEGATIVE] = 0,
) -> Annotated[Quantity, "s"]:
    """Time in which a device of a pipeline waits in a step, with gradients of weights to fill it.

    Equation: T = (p − 1) · max(0, T_F + T_B + T_W − h · T_W)

    The times are those of one microbatch in one stage. One forward and one backward pass in turn
    (1F1B) have h = 0. Gradients of weights may wait, as those of inputs may not: put into the
    bubble they leave h = 2 in the memory of 1F1B (ZB-H1) and h = 3 in nearly twice of it (ZB-H2).

    Source: qi2024zero

    >>> print(*(bubble_time(8, "1 ms", "1 ms", "1 ms", delayed) for delayed in (0, 2, 3)))
    21 ms 7 ms 0 s
    """
    work = forward_time + input_gradient_time + weight_gradient_time
    return (stages - 1) * maximum(0 * work, work - delayed * weight_gradient_time)


@law
def step_time(
    compute_time: Annotated[QuantityLike, "s", "T_comp", NON_NEGATIVE],
    communication_time: Annotated[QuantityLike, "s", "T_comm", NON_NEGATIVE],
    overlap: Annotated[QuantityLike, "", "h", FRACTION],
    behind: Annotated[QuantityLike, "", "b", FRACTION] = 1,
) -> Annotated[Quantity, "s"]:
    """Time of a step that hides this fraction of what can be hidden of its communication.

    Equation: T = T_comp + T_comm − h · min(b · T_comp, T_comm)

    The two bounds: h = 0 adds the times, h = 1 hides all that fits. Messages may overlap with a
    share b of the computing: gradients with the backward pass, two thirds of it. Assumes that
    sending slows computing down in no other way.

    Source: li2020pytorch

    >>> print(step_time("90 ms", "80 ms", overlap=1), step_time("90 ms", "80 ms", 1, behind=2 / 3))
    90 ms 110 ms
    """
    hidden = overlap * minimum(behind * compute_time, communication_time)
    return compute_time + communication_time - hidden


@law
def scaling_efficiency(
    compute_time: Annotated[QuantityLike, "s", "T_comp"],
    communication_time: Annotated[QuantityLike, "s", "T_comm", NON_NEGATIVE],
    overlap: Annotated[QuantityLike, "", "h", FRACTION],
    behind: Annotated[QuantityLike, "", "b", FRACTION] = 1,
) -> Annotated[Quantity, ""]:
    """Share of a step's time that would remain if communication were free.

    Equation: E = T_comp / (T_comp + T_comm − h · min(b · T_comp, T_comm))

    h and b are those of step_time.

    Source: li2020pytorch

    >>> print(scaling_efficiency("100 ms", "40 ms", overlap=0).to("%"))
    71.43%
    """
    hidden = overlap * minimum(behind * compute_time, communication_time)
    return compute_time / (compute_time + communication_time - hidden)


# --- what a machine makes of it ---


@dataclass(frozen=True, repr=False)
class CollectiveTime(Answer):
    """A collective on a machine: the bound of its time, what is expected of it, and by whom."""

    _SENTENCES = (("whose", "Curves"), ("assumptions", "Assumed"))

    operation: str
    size: Quantity
    devices: int
    machine: Machine
    software: Software | None
    """The program whose own sums count, where some were measured; None for libraries'."""
    lower: Quantity
    """By published bandwidths and the best algorithm, without any latency: nothing is faster that
    does no reductions in the switches between the domains."""
    algorithm: str
    """The algorithm to which the lower bound belongs."""
    expected: Quantity | None
    """By the curves that were measured on that machine, or else on the machine with links of its
    kind that is most like it; None where there is none. `measured` has the curves."""
    upper: Quantity | None
    """By the slowest of these curves: where there is one, the same as what is expected."""
    measured: tuple[Curve, ...] = ()
    """The curves of which the expectation is made; none where it is made of published rates."""
    missing: str = ""
    """Which curve is missing, in a sentence."""

    def __repr__(self) -> str:
        return f"<{self.answer}>"

    @property
    def around(self) -> Around | None:
        """Return where four of five curves lie that were left out and predicted from the others."""
        if self.expected is None or not self.measured:
            return None
        off = 1 + curves.off(self.measured[0])
        return around(self.expected, 1 / off, off, self.lower)

    @property
    def interval(self) -> tuple[Quantity, Quantity] | None:
        """Both ends of what is around it."""
        return None if self.around is None else self.around.ends

    @property
    def needed(self) -> Quantity:
        """What is expected, for what cannot go on without; the missing curve is an error."""
        if self.expected is None:
            raise NotMeasured(self.missing)
        return self.expected

    @property
    def elsewhere(self) -> list[str]:
        """Say what its times are of where it is not this machine: others, and their network."""
        if self.expected is not None and self.devices > 1 and not self.measured:
            return [f"published bandwidths, and {constants.latency_ici_hop} a hop as TPUs have"]
        others = {curve.machine: curve.place for curve in self.measured}
        return [
            f"{place.name}{self._network(place)}"
            for key, place in others.items()
            if key != self.machine.key
        ]

    @property
    def by(self) -> str:
        """The clause that says whose times they are, where they are no library's on the machine."""
        engines = dict.fromkeys(curve.software for curve in self.measured if curve.source == SOURCE)
        by = f" by {' and '.join(engines)}" if engines else ""
        return (
            f"{by} as {'on ' if self.measured else 'of '}{', '.join(self.elsewhere)}"
            if self.elsewhere
            else by
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys of references.bib: of its curves, or of what a hop takes."""
        hop = constants.latency_ici_hop.provenance
        assert hop is not None
        return tuple(dict.fromkeys(c.source for c in self.measured)) or (hop.source,)

    def _network(self, place: Machine) -> str:
        """Say that a curve of another machine is of another network, where it is."""
        theirs, own = place.network, self.machine.network
        inside = self.devices <= self.machine.domain
        if inside or not theirs or not own or set(theirs) & set(own):
            return ""
        return f" over {' or '.join(theirs)}, not {' or '.join(own)}"

    @property
    def basis(self) -> str:
        """What it stands on: measured rates, rates of kin, published peaks alone."""
        if self.expected is None:
            return intervals.PEAKS
        own = self.measured or self.devices == 1
        return intervals.KIN if self.elsewhere or not own else intervals.MEASURED

    @property
    def answer(self) -> str:
        """The collective, and what it takes, or takes at least."""
        time = f"at least {self.lower}" if self.expected is None else str(self.expected)
        what = self.operation.replace("_", "-")
        return f"{what} of {self.size} over {self.devices} devices of {self.machine.name}: {time}"

    @property
    def stands_on(self) -> str:
        """Return whose curves it stands on, and how far off such curves were that were left out."""
        if self.expected is None:
            return f"BOUND ONLY, {intervals.PEAKS}: {self.missing.partition(': ')[0]}"
        software = " and ".join(dict.fromkeys(curve.software for curve in self.measured))
        elsewhere = f" as on {', '.join(self.elsewhere)}" if self.elsewhere else ""
        if self.devices == 1:
            return f"{self.basis}: one device alone sends nothing"
        if not self.measured:
            return f"{self.basis}: {self.by.strip()}, since no message of a torus was measured"
        off = curves.off(self.measured[0])
        told = f"80% of curves left out in {signed(1 / (1 + off))} … {signed(1 + off)}%"
        cut = intervals.cuts({"it": self.around})
        return f"{self.basis} of messages{elsewhere} by {software}; {told}{cut}"

    @property
    def chosen(self) -> tuple[str, ...]:
        """The algorithm of the bound."""
        return (f"the bound is that of {self.algorithm}",)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Return what an engine's own sums take, where libraries' were asked for."""
        if self.operation != "all_reduce" or self.software is not None:
            return ()
        device = self.machine.device
        usual = programs.usual(device.key, device.measured_as, device.name)
        own = measured.sums(self.machine, usual, self.devices)
        if own is None or own in self.measured:
            return ()
        seconds = own.time(self.size.m_as("byte"))
        return (
            f"Engines have sums of their own: {own.software} takes {quantity(seconds, 's')}, with"
            f" software {usual.key}.",
        )

    @cached_property
    def tables(self) -> list[Table]:
        """Its bound, what is expected and between what that lies, and the bus bandwidth."""
        rows = [("", "time", "80% of curves", "bus bandwidth")]
        for title, time in (("at least", self.lower), ("expected", self.expected)):
            if time is not None:
                told = self.around if time is self.expected else None
                sent = curves.traffic(self.operation, self.devices) * self.size.to("GB")
                rate = str(sent / time.to("s")) if time.magnitude else "–"
                rows.append((title, str(time), told.told() if told else "", rate))
        return [Table(rows)]

    @property
    def whose(self) -> list[str]:
        """Each curve of which the expectation is made, with its source."""
        return [
            f"the {curve.operation.replace('_', '-')} of {curve.devices} devices of"
            f" {curve.place.name}{self._network(curve.place)} by {curve.software}"
            + (", scaled by published bandwidths" if curve.machine != self.machine.key else "")
            + f": {citation(curve.source)}"
            for curve in self.measured
        ]

    def _assumptions(self) -> Iterator[str]:
        yield (
            f"The bound takes published bandwidths of {self.algorithm}, and no latency; devices"
            " take up as few domains as hold them, and as many of each."
        )
        if self.missing:
            yield self.missing
        elif self.software is None:
            yield "Where no software is named, times are those of vendors' libraries, if measured."

    @cached_property
    def facts(self) -> dict[str, object]:
        """The answer, by names that stay."""
        return {
            **self.headline,
            **values(self, "operation size devices lower expected interval upper algorithm"),
            "machine": self.machine.key,
            "software": None if self.software is None else self.software.key,
            **values(self, "basis missing"),
            "interval": None if self.around is None else self.around.facts,
            "curves": [values(curve, CURVE) for curve in self.measured],
        }


CURVE = "name machine operation devices software source"


def time(
    operation: str,
    size: QuantityLike,
    devices: int,
    machine: Machine | Accelerator | str,
    software: Software | str | None = None,
) -> CollectiveTime:
    """Time of a collective of so many devices on a machine: its bound, and what is expected.

    - `software`: an engine whose own sums count where they were measured, "vllm"; vendors'
      libraries where it is left out

    A size is that of the whole array, of an all-to-all what one device holds. Devices take up as
    few domains as hold them, and as many of each.

    Within a domain the start-up is that of the measured number of devices, mostly eight. Two or
    four start sooner, and engines that serve models sum arrays below about a megabyte by kernels
    of their own, in one shot: see one_shot_all_reduce.

    >>> found = time("all_reduce", "1 GiB", 8, "dgx-h100")
    >>> print(found.lower, found.expected, found.algorithm)
    2.386 ms 4.029 ms sums in the switch
    >>> print(*(time("all_reduce", "64 kB", 8, "h100", of).expected for of in (None, "vllm")))
    28.58 µs 6.371 µs
    """
    amount, place = _asked(operation, size, machine)
    if amount.ndim:
        raise InputError(f"what is expected of a collective is of one size; got {amount}")
    count = whole_number("devices of a collective", devices)
    program = programs.get(software) if isinstance(software, str) else software
    lower, algorithm = _lower(operation, amount, count, place)
    asked = operation, amount, count, place, program, lower, algorithm
    try:
        expected, slowest, used = _expected(operation, amount.m_as("byte"), count, place, program)
    except NotMeasured as error:
        return CollectiveTime(*asked, None, None, missing=str(error))
    return CollectiveTime(*asked, quantity(expected, "s"), quantity(slowest, "s"), used)


def seconds(
    operation: str, size: float, devices: int, machine: Machine, software: Software | None = None
) -> float:
    """Return what is expected of `time`, as bare seconds for bare bytes.

    >>> f"{seconds('all_reduce', 2**30, 8, machines.get('dgx-h100')):.6f}"
    '0.004029'
    """
    expected, _, _ = _expected(operation, size, devices, machine, software)
    return expected


def _expected(
    operation: str, size: float, devices: int, machine: Machine, software: Software | None
) -> tuple[float, float, tuple[Curve, ...]]:
    """Seconds that are expected, those by the slowest curve, and the curves.

    An engine's own sums come first, then libraries' curves; on a torus nobody has measured either.
    """
    if devices == 1:
        return 0.0, 0.0, ()
    least = _bound(operation, machine, devices) * size
    if software is not None and operation == "all_reduce":
        own = measured.sums(machine, software, devices)
        if own is not None:
            alone = max(least, own.time(size))
            return alone, alone, (own,)
    if machine.fabric == "torus" and devices <= machine.domain:
        with_hops = least + _hops(operation, devices, machine) * HOP
        return with_hops, with_hops, ()
    predicted = curves.predicted(operation, size, devices, machine)
    times = [time for time, _ in predicted]
    used = {curve.name: curve for _, several in predicted for curve in several}
    # Which the curve of another operation may promise to beat.
    expected = max(least, min(geometric_mean(times), max(times)))
    return expected, max(expected, *times), tuple(used.values())


HOP = constants.latency_ici_hop.m_as("s")


@lru_cache(maxsize=2**12)
def _bound(operation: str, machine: Machine, devices: int) -> float:
    return _seconds_per_byte(operation, machine, devices)


def _hops(operation: str, devices: int, machine: Machine) -> int:
    """Links one after the other along the axes of a torus, twice as many where sums come back."""
    ways = 2 if machine.wraparound else 1
    farthest = sum(max(1, side // ways) for side in _slice(devices, machine) if side > 1)
    return (2 if operation == "all_reduce" else 1) * farthest


def least_time(
    operation: str, size: QuantityLike, devices: QuantityLike, machine: Machine | Accelerator | str
) -> Quantity:
    """The lower bound of `time` alone; sizes and numbers of devices may be arrays.

    It knows no latency, so that it grows with the size.

    >>> print(least_time("all_reduce", "1 GiB", 8, "dgx-h100"))
    2.386 ms
    >>> print(least_time("all_reduce", quantity([1, 2], "GiB"), 8, "dgx-h100"))
    [0.00238609 0.00477219] s
    """
    amount, place = _asked(operation, size, machine)
    pace = seconds_per_byte(operation, devices, place)
    seconds: Number = pace * amount.m_as("byte")
    return SECOND * seconds


def sending(devices: Number, machine: Machine) -> Quantity:
    """Bandwidth at which a device sends to one other of so many: over the fabric, or its ports.

    >>> print(sending(8, machines.get("dgx-h100")), sending(16, machines.get("dgx-h100")))
    450 GB/s 400 Gbit/s
    """
    if largest(devices) <= machine.domain:
        return machine.bandwidth
    if smallest(1.0 * devices) > machine.domain:  # of whole numbers too
        return machine.ports
    inside, outside = (one.m_as("byte/s") for one in (machine.bandwidth, machine.ports))
    return quantity(where(devices <= machine.domain, inside, outside), "byte/s")


def expert_exchange(machine: Machine, size: Quantity, devices: Number) -> tuple[Quantity, Quantity]:
    """Least and expected time of sending so many bytes of tokens to their experts, or back.

    Libraries' all-to-alls take some times as long for messages as short as those of a decode: to be
    expected is the start-up of kernels made for it, on top of what bandwidths say at least.

    >>> from calc import machines
    >>> for time in expert_exchange(machines.get("dgx-h100"), quantity("14.68 MB"), 64):
    ...     print(time.to("us"))
    256.9 µs
    300.9 µs
    """
    least = least_time("all_to_all", size, devices, machine)
    return least, least + constants.latency_expert_exchange * (1 if devices > 1 else 0)


def copies_of_a_token(machine: Machine, chosen: int, devices: Number, slices: Number = 1) -> Number:
    """Devices, or domains where there are several, that hold at least one of its chosen experts.

    No kernel sends a token more often than once to each of them, whose links or ports it crosses.
    Experts are chosen at random; so many slices of each lie beside one another.

    >>> h100 = machines.get("dgx-h100")
    >>> print(f"{copies_of_a_token(h100, 8, 8):.3f} {copies_of_a_token(h100, 8, 64):.3f}")
    5.251 5.251
    """
    domain = machines.of(machine).domain
    count, parts = (
        whole_numbers(name, quantity(given).m_as(""))
        for name, given in (("devices of an exchange", devices), ("slices of an expert", slices))
    )
    domains = ceiling(count * parts / domain)
    places = where(domains > 1, domains, count)
    copies: Number = transformer.experts_used(places, 1 / places, chosen).m_as("")
    return copies


def crossings(chosen: Number, devices: int, domains: int, each: bool, most: int = 0) -> Number:
    """How often a token's vector crosses the slowest fabric, links or else ports, on average.

    It goes to so many chosen experts at random: `each` copy by itself, or once to a device, or to a
    domain where there are several. Routing may be limited to experts of so many domains at `most`.

    >>> print(crossings(8, 8, 1, each=True), f"{crossings(8, 8, 1, each=False):.3f}")
    7.0 4.595
    """
    count = whole_number("devices of an exchange", devices)
    parts = whole_number("domains of an exchange", domains)
    limit = whole_number("domains of a token", most, at_least=0)
    places, open_to = (parts, min(parts, limit or parts)) if parts > 1 else (count, count)
    reached = transformer.experts_used(open_to, 1 / open_to, chosen).m_as("")
    copies: Number = quantity(chosen).m_as("") if truth("each", each) else reached
    return copies * (1 - 1 / places)


def seconds_per_byte(operation: str, devices: QuantityLike, machine: Machine) -> Number:
    """The pace of `least_time`, which is in proportion to the size, for each number of devices.

    >>> pace = seconds_per_byte("all_reduce", 8, machines.get("dgx-h100"))
    >>> print(f"{pace * 1e9:.3f} s/GB")
    0.002 s/GB
    """
    _check_operation(operation)
    count = whole_numbers("devices of a collective", quantity(devices).m_as(""))
    return of_each(partial(_seconds_per_byte, operation, machines.of(machine)), count)


def _seconds_per_byte(operation: str, machine: Machine, devices: float) -> float:
    lower, _ = _lower(operation, BYTE, int(devices), machine)
    return float(lower.m_as("s"))


def _check_operation(operation: Any) -> None:
    if not isinstance(operation, str) or operation not in curves.OPERATIONS:
        known = ", ".join(curves.OPERATIONS)
        raise InputError(f"a collective is one of {known}; got {abbreviated(operation)}")


def _asked(operation: Any, size: Any, machine: Any) -> tuple[Quantity, Machine]:
    _check_operation(operation)
    amount = quantity(size)
    positive = smallest(amount) > 0 and largest(amount) < math.inf
    if not amount.is_compatible_with("byte") or not positive:
        raise InputError(f"the size of a collective is positive and in byte; got {size}")
    return amount, machines.get(machine) if isinstance(machine, str) else machines.of(machine)


Bound = tuple[Quantity, str]
MOST_SPREAD = 1.2  # domains over the fewest: jobs leave a few devices of each free, and no more


def _lower(operation: str, size: Quantity, devices: int, machine: Machine) -> Bound:
    """Within a domain its best algorithm; across, the longer of what is done in it and between."""
    if devices == 1:
        return quantity("0 s"), "nothing to send"
    domains = curves.domains_of(devices, machine)
    if domains == 1:
        return _in_domain(operation, size, devices, machine)
    if domains > MOST_SPREAD * (fewest := math.ceil(devices / machine.domain)):
        raise InputError(
            f"{devices} devices do not fill {fewest} domains of {machine.name} evenly, each of"
            f" {machine.domain} at most; give a multiple of {fewest}"
        )
    inside, ports = devices // domains, machine.ports
    inner, algorithm = quantity("0 s"), "rings across"
    if inside > 1:
        share = size / domains if operation == "all_to_all" else size
        inner, algorithm = _in_domain(operation, share, inside, machine)
    part = size if operation == "all_to_all" else size / inside
    outer = _RINGS[operation](part, domains, ports)
    return max(inner, outer), f"{algorithm}, in chunks across domains"


def _in_domain(operation: str, size: Quantity, devices: int, machine: Machine) -> Bound:
    if machine.fabric == "torus":
        return _on_torus(operation, size, devices, machine)
    bandwidth = machine.bandwidth
    if machine.fabric == "mesh":  # each link leads to one peer
        bandwidth *= (devices - 1) / (machine.domain - 1)
    if operation == "all_reduce" and machine.sums_in_switch:
        return in_switch_all_reduce(size, devices, bandwidth), "sums in the switch"
    name = {"all_to_all": "pairs", "broadcast": "chain"}.get(operation, "ring")
    return _RINGS[operation](size, devices, bandwidth), name


def _on_torus(operation: str, size: Quantity, devices: int, machine: Machine) -> Bound:
    """On the slice whose devices have most links, and the shortest sides of these."""
    ways = 2 if machine.wraparound else 1
    sides = _slice(devices, machine)
    used = [side for side in sides if side > 1]
    link = machine.bandwidth / (2 * len(machine.sides))
    name = " × ".join(map(str, sides))
    if operation == "broadcast":
        return chain_broadcast(size, devices, ways * len(used) * link), f"all links of {name}"
    if operation == "all_to_all":
        return torus_all_to_all(size, max(used), link * ways / 2), f"along the axes of {name}"
    passes = 2 if operation == "all_reduce" else 1
    gathered = torus_all_gather(size, devices, ways * len(used), link)
    return passes * gathered, f"along the axes of {name}"


def _slice(devices: int, machine: Machine) -> tuple[int, ...]:
    """The sides of a slice of so many devices."""

    def shapes(left: int, sides: tuple[int, ...]) -> list[tuple[int, ...]]:
        if not sides:
            return [()] if left == 1 else []
        return [
            (side, *rest)
            for side in range(1, min(left, sides[0]) + 1)
            if left % side == 0
            for rest in shapes(left // side, sides[1:])
        ]

    slices = shapes(devices, machine.sides)
    if not slices:
        whole = " × ".join(map(str, machine.sides))
        raise InputError(f"no slice of {machine.name}, {whole}, has {devices} devices")
    return min(slices, key=lambda sides: (sides.count(1), max(sides)))


_RINGS = {
    "all_gather": ring_all_gather,
    "reduce_scatter": ring_reduce_scatter,
    "all_reduce": ring_all_reduce,
    "all_to_all": all_to_all,
    "broadcast": chain_broadcast,
}
