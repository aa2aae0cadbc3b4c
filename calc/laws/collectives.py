"""Collectives: what devices that must agree on an array send each other, and what a step waits for.

All times are of the model that Hockney made for one message and Thakur and others for collectives:
a message of n bytes takes L + n / BW. Every device has one link, full duplex, and BW is what it
carries each way. Links do not get in each other's way, reducing costs no time, and one device alone
sends nothing. Sizes are of the whole array: what each device holds before an all-reduce or a
reduce-scatter, and what each holds after an all-gather.
"""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import doublings, floor, maximum, minimum, where
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike


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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices_per_node
        devices of a node
    nodes
        nodes that take part
    inner_bandwidth
        bandwidth of a device's link in its node, each way
    outer_bandwidth
        bandwidth of a device's port to other nodes, each way
    inner_latency
        latency of a message in a node
    outer_latency
        latency of a message between nodes
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices_per_node
        devices of a node
    nodes
        nodes that take part
    inner_bandwidth
        bandwidth of a device's link in its node, each way
    outer_bandwidth
        bandwidth of a device's port to other nodes, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices_per_node
        devices of a node
    nodes
        nodes that take part
    inner_bandwidth
        bandwidth of a device's link in its node, each way
    outer_bandwidth
        bandwidth of a device's port to other nodes, each way
    inner_latency
        latency of a message in a node
    outer_latency
        latency of a message between nodes
    """
    members = devices_per_node
    inner = 2 * (members - 1) * (inner_latency + size / (members * inner_bandwidth))
    return maximum(
        inner, 2 * (nodes - 1) * (outer_latency + size / (members * nodes * outer_bandwidth))
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    links
        links of a device that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    hops
        links on the way to the farthest device
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    side
        devices along the longest axis of the torus
    bandwidth
        bytes that a device's link carries in a second, each way
    hops
        links on the way to the farthest device
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    devices
        devices that take part
    bandwidth
        bytes that a device's link carries in a second, each way
    latency
        latency of a message
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

    Parameters
    ----------
    size
        size of the whole array
    time
        time of the collective
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

    Parameters
    ----------
    size
        size of the whole array
    time
        time of the collective
    devices
        devices that take part
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

    Parameters
    ----------
    size
        size of the whole array
    time
        time of the collective
    devices
        devices that take part
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

    Parameters
    ----------
    stages
        stages of the pipeline
    microbatches
        parts of a batch that follow one another through the pipeline
    stages_per_device
        slices of the model that a device holds in turn (interleaving)
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

    Parameters
    ----------
    stages
        stages of the pipeline
    microbatches
        parts of a batch that follow one another through the pipeline
    stages_per_device
        slices of the model that a device holds in turn (interleaving)
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

    Parameters
    ----------
    stages
        stages of the pipeline
    forward_time
        time of a microbatch's forward pass in one stage
    input_gradient_time
        time of its gradients with respect to the stage's input
    weight_gradient_time
        time of its gradients with respect to the stage's weights
    delayed
        gradients of the weights of a microbatch that move into the bubble, for each stage
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

    Parameters
    ----------
    compute_time
        time of the arithmetic by itself
    communication_time
        time of the messages by themselves
    overlap
        share of what can be hidden that is hidden
    behind
        share of the computing that the messages may overlap with
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

    Parameters
    ----------
    compute_time
        time of the arithmetic by itself
    communication_time
        time of the messages by themselves
    overlap
        share of what can be hidden that is hidden
    behind
        share of the computing that the messages may overlap with
    """
    hidden = overlap * minimum(behind * compute_time, communication_time)
    return compute_time / (compute_time + communication_time - hidden)
