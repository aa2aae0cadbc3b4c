"""Collectives: each formula against its schedule, played round by round on a few devices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import (
    InputError,
    Quantity,
    collectives,
    communication,
    curves,
    links,
    machines,
    published,
    quantity,
)
from tests.calc.command import Command

COUNTS = range(1, 18)
CHUNK = 40.0  # bytes
BANDWIDTH, LATENCY = 8.0, 3.0
LINK = quantity(BANDWIDTH, "byte/s"), quantity(LATENCY, "s")

Message = tuple[int, int, Sequence[int]]  # from, to, which chunks


class Devices:
    """Devices that hold chunks; in a round each sends one message while it receives another."""

    def __init__(self, count: int, chunks: int) -> None:
        self.held = np.random.default_rng(count).integers(100, size=(count, chunks))
        self.total = self.held.sum(axis=0)
        self.sent = [0] * count
        self.time = 0.0

    def round(
        self,
        messages: list[Message],
        *,
        add: bool,
        bandwidth: float = BANDWIDTH,
        latency: float = LATENCY,
    ) -> None:
        assert len({sender for sender, _, _ in messages}) == len(messages)
        assert len({receiver for _, receiver, _ in messages}) == len(messages)
        before = self.held.copy()
        for sender, receiver, chunks in messages:
            self.held[receiver, chunks] = before[sender, chunks] + add * before[receiver, chunks]
            self.sent[sender] += len(chunks)
        longest = max(len(chunks) for _, _, chunks in messages)
        self.time += latency + longest * CHUNK / bandwidth

    def all_hold_the_sum(self) -> bool:
        return bool((self.held == self.total).all())

    @property
    def size(self) -> Quantity:
        return quantity(CHUNK * self.held.shape[1], "byte")


def halves_of_a_ring(n: int) -> tuple[list[list[Message]], list[list[Message]]]:
    """The rounds of a reduce-scatter, and of the all-gather after it, by n chunks on n devices."""
    neighbor = [(i, (i + 1) % n) for i in range(n)]
    reduce = [[(i, j, [(i - step) % n]) for i, j in neighbor] for step in range(n - 1)]
    gather = [[(i, j, [(i + 1 - step) % n]) for i, j in neighbor] for step in range(n - 1)]
    return reduce, gather


@pytest.mark.parametrize("n", COUNTS)
def test_a_ring_played_through(n: int) -> None:
    devices = Devices(n, chunks=n)
    reduce, gather = halves_of_a_ring(n)
    for messages in reduce:
        devices.round(messages, add=True)
    assert all(devices.held[i, (i + 1) % n] == devices.total[(i + 1) % n] for i in range(n))
    time = collectives.ring_reduce_scatter(devices.size, n, *LINK)
    assert time.m_as("s") == pytest.approx(devices.time)
    assert time == collectives.ring_all_gather(devices.size, n, *LINK)
    traffic = collectives.all_gather_traffic(devices.size, n)
    assert [CHUNK * sent for sent in devices.sent] == pytest.approx([traffic.m_as("byte")] * n)

    for messages in gather:
        devices.round(messages, add=False)
    assert devices.all_hold_the_sum()
    time = collectives.ring_all_reduce(devices.size, n, *LINK)
    assert time.m_as("s") == pytest.approx(devices.time)
    traffic = collectives.all_reduce_traffic(devices.size, n)
    assert [CHUNK * sent for sent in devices.sent] == pytest.approx([traffic.m_as("byte")] * n)


def test_the_ring_that_the_book_draws() -> None:
    from calc.derivations.collectives_chapter import RingOfFour

    start, *steps = RingOfFour.steps()
    n = RingOfFour.devices
    reduce, gather = halves_of_a_ring(n)
    assert start.held == tuple((frozenset({device}),) * n for device in range(n))
    assert [step.messages for step in steps] == [
        tuple((sender, receiver, chunk) for sender, receiver, (chunk,) in messages)
        for messages in reduce + gather
    ]
    for i in range(n):
        assert len(steps[n - 2].held[i][(i + 1) % n]) == n
    assert {len(summed) for parts in steps[-1].held for summed in parts} == {n}


@pytest.mark.parametrize("n", COUNTS)
def test_a_tree_played_through(n: int) -> None:
    devices = Devices(n, chunks=1)
    strides = [2**level for level in range(math.ceil(math.log2(n)))]
    for stride in strides:  # to the root, device 0
        pairs = [(i, i - stride) for i in range(stride, n, 2 * stride)]
        devices.round([(child, parent, [0]) for child, parent in pairs], add=True)
    assert devices.held[0] == devices.total
    for stride in reversed(strides):
        pairs = [(i, i - stride) for i in range(stride, n, 2 * stride)]
        devices.round([(parent, child, [0]) for child, parent in pairs], add=False)
    assert devices.all_hold_the_sum()
    time = collectives.tree_all_reduce(devices.size, n, *LINK)
    assert time.m_as("s") == pytest.approx(devices.time)


def tree_in_order(n: int, shift: int) -> dict[int, int]:
    """Return each place's parent in a binary tree of places 1 to n in order, leaves at odd places.

    The root is the place of the highest bit. Device d stands at place d + 1, moved on by shift.
    """
    top = 2 ** (n.bit_length() - 1)
    parents = {}
    for node in range(1, n + 1):
        low = node & -node
        parent = node
        while node != top:
            parent = (parent - low) | (2 * low)
            if parent <= n:
                break
            low *= 2
        if node != top:
            parents[node] = parent
    return {(a - 1 + shift) % n: (b - 1 + shift) % n for a, b in parents.items()}


@pytest.mark.parametrize("n", [n for n in COUNTS if n % 2 == 0])
def test_two_trees_share_the_work(n: int) -> None:
    trees = [tree_in_order(n, shift) for shift in (0, 1)]
    half_arrays_sent = [0] * n
    for parents in trees:
        assert len(parents) == n - 1
        for child, parent in parents.items():
            half_arrays_sent[child] += 1  # its sum goes up
            half_arrays_sent[parent] += 1  # the total comes down

        def depth(device: int, parents: dict[int, int] = parents) -> int:
            return 1 + depth(parents[device]) if device in parents else 0

        assert max(depth(device) for device in range(n)) <= math.ceil(math.log2(n))
    first, second = (set(parents.values()) for parents in trees)
    assert not first & second  # nobody has children in both
    time = collectives.double_tree_all_reduce("80 byte", n, *LINK)
    latencies = 2 * math.ceil(math.log2(n)) * LATENCY
    longest = max(half_arrays_sent) * 40 / BANDWIDTH
    assert longest <= time.m_as("s") - latencies
    assert n < 6 or longest == pytest.approx(time.m_as("s") - latencies)


@pytest.mark.parametrize(("each", "nodes"), [(1, 1), (1, 5), (4, 1), (2, 3), (4, 3), (8, 4)])
def test_rings_within_rings_played_through(each: int, nodes: int) -> None:
    devices = Devices(each * nodes, chunks=each * nodes)
    parts = [list(range(part * nodes, (part + 1) * nodes)) for part in range(each)]
    inner_reduce, inner_gather = halves_of_a_ring(each)
    outer_reduce, outer_gather = halves_of_a_ring(nodes)

    def inside(messages: list[Message]) -> list[Message]:
        return [
            (node * each + i, node * each + j, parts[part])
            for node in range(nodes)
            for i, j, (part,) in messages
        ]

    def between(messages: list[Message]) -> list[Message]:
        return [
            (i * each + device, j * each + device, [parts[(device + 1) % each][part]])
            for device in range(each)
            for i, j, (part,) in messages
        ]

    for messages in inner_reduce:
        devices.round(inside(messages), add=True)
    for messages in outer_reduce:
        devices.round(between(messages), add=True, bandwidth=2.0, latency=7.0)
    for messages in outer_gather:
        devices.round(between(messages), add=False, bandwidth=2.0, latency=7.0)
    for messages in inner_gather:
        devices.round(inside(messages), add=False)
    assert devices.all_hold_the_sum()
    bandwidth, latency = LINK
    time = collectives.hierarchical_all_reduce(
        devices.size, each, nodes, bandwidth, "2 byte/s", latency, "7 s"
    )
    assert time.m_as("s") == pytest.approx(devices.time)


@pytest.mark.parametrize("n", COUNTS)
def test_an_all_to_all_played_through(n: int) -> None:
    devices = Devices(n, chunks=n)
    start = devices.held.copy()
    inbox = [{i: start[i, i]} for i in range(n)]
    for step in range(1, n):
        messages = [(i, (i + step) % n, [(i + step) % n]) for i in range(n)]
        for sender, receiver, (chunk,) in messages:
            inbox[receiver][sender] = start[sender, chunk]
        devices.round(messages, add=False)
    assert all(inbox[j] == {i: start[i, j] for i in range(n)} for j in range(n))
    time = collectives.all_to_all(devices.size, n, *LINK)
    assert time.m_as("s") == pytest.approx(devices.time)


@pytest.mark.parametrize("n", COUNTS)
def test_a_ring_in_both_directions_played_through(n: int) -> None:
    """A round brings a part from either side, and the last of an even ring comes in halves."""
    received, rounds = 1.0, 0
    loads = []  # parts on the busier of a device's two links, round by round
    while received < n:
        load = 1.0 if n - received > 1 else 0.5
        received += 2 * load
        rounds += 1
        loads.append(load)
    time = collectives.bidirectional_ring_all_gather(quantity(CHUNK * n, "byte"), n, *LINK)
    assert time.m_as("s") == pytest.approx(rounds * LATENCY + sum(loads) * CHUNK / BANDWIDTH)


def routed(sides: tuple[int, ...]) -> float:
    """The busiest link of a torus on which each device sends one byte to each, axis by axis.

    The shorter way round, and half each way where both are as short.
    """
    load: dict[tuple[tuple[int, ...], int, int], float] = {}
    nodes = list(itertools.product(*map(range, sides)))
    for start, end in itertools.product(nodes, nodes):
        here = list(start)
        for axis, side in enumerate(sides):
            ahead = (end[axis] - here[axis]) % side
            ways = [way for way in (1, -1) if ahead * way % side <= side / 2 and ahead]
            for way in ways:
                position = here.copy()
                for _ in range(ahead * way % side):
                    link = tuple(position), axis, way
                    load[link] = load.get(link, 0.0) + 1 / len(ways)
                    position[axis] = (position[axis] + way) % side
            here[axis] = end[axis]
    return max(load.values())


@pytest.mark.parametrize("sides", [(4,), (5,), (8,), (4, 4), (8, 4), (3, 5), (2, 4, 4), (5, 3, 2)])
def test_an_all_to_all_routed_on_a_torus(sides: tuple[int, ...]) -> None:
    size = quantity(float(math.prod(sides)), "byte")
    time = collectives.torus_all_to_all(size, max(sides), "1 byte/s")
    assert time.m_as("s") == pytest.approx(routed(sides))


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("pieces", [100, 10_000])
def test_a_chain_of_pieces_approaches_its_floor(n: int, pieces: int) -> None:
    """The last piece leaves after all others and takes a hop more for each device."""
    filled = (pieces + n - 2) * CHUNK / pieces / BANDWIDTH
    floor = collectives.chain_broadcast(quantity(CHUNK, "byte"), n, LINK[0]).m_as("s")
    assert floor <= filled <= floor * (1 + n / pieces)


def test_fourteen_gigabytes_on_64_gpus() -> None:
    """Times are by hand: 2 · 63 / 64 · 14 GB at 50 GB/s and at eight times that; 54.4 ms in nodes
    and 61.25 ms between them, one after the other or at once."""
    at = "450 GB/s", "50 GB/s"
    flat = collectives.ring_all_reduce("14 GB", 64, "50 GB/s")
    ports = collectives.all_ports_all_reduce("14 GB", 8, 8, "450 GB/s", "50 GB/s")
    series = collectives.hierarchical_all_reduce("14 GB", 8, 8, *at)
    chunked = collectives.chunked_hierarchical_all_reduce("14 GB", 8, 8, *at)
    milliseconds = [round(each.m_as("ms"), 1) for each in (flat, ports, series, chunked)]
    assert milliseconds == [551.2, 68.9, 115.7, 61.3]


# --- on a machine ---


@pytest.mark.parametrize(
    ("operation", "size", "devices", "machine", "milliseconds", "algorithm"),
    [
        ("all_reduce", "9 GB", 8, "dgx-h100", 20, "sums in the switch"),
        ("all_reduce", "8 GB", 8, "dgx-a100", 2 * 7 / 300 * 1e3, "ring"),
        ("all_gather", "9 GB", 6, "dgx-h100", 9 * 5 / 6 / 450 * 1e3, "ring"),
        ("all_to_all", "9 GB", 8, "dgx-h100", 9 * 7 / 8 / 450 * 1e3, "pairs"),
        ("broadcast", "9 GB", 8, "dgx-h100", 20, "chain"),
        # Two of a mesh of eight have one link of 64 GB/s between them.
        ("all_reduce", "64 MB", 2, "mi300x-8", 1, "ring"),
        # 14 GB in parts of 1 / 8 between eight nodes, at 50 GB/s each way.
        (
            *("all_reduce", "14 GB", 64, "dgx-h100", 2 * 7 / 8 * 14 / 8 / 50 * 1e3),
            "sums in the switch, in chunks across domains",
        ),
        # Half of what a device holds goes to the other node.
        (
            *("all_to_all", "1 GB", 16, "dgx-h100", 1 / 2 / 50 * 1e3),
            "pairs, in chunks across domains",
        ),
        # A device of 16 × 16 receives 255 of 256 parts by four links of 50 GB/s.
        (*("all_gather", "256 MB", 256, "tpu-v5e", 255 / 200), "along the axes of 16 × 16"),
        # On a ring of 16 a byte goes four links on average: 64 MB · 16 / 4 / 4 · 2 for both axes.
        ("all_to_all", "1 MB", 256, "tpu-v5e", 16 / 8 / 50, "along the axes of 16 × 16"),
        ("broadcast", "1 GB", 64, "tpu-v5p", 1 / 600 * 1e3, "all links of 4 × 4 × 4"),
    ],
)
def test_bounds_by_hand(
    operation: str, size: str, devices: int, machine: str, milliseconds: float, algorithm: str
) -> None:
    collective = communication.time(operation, size, devices, machine)
    assert collective.lower.m_as("ms") == pytest.approx(milliseconds)
    assert collective.algorithm == algorithm


def test_nothing_published_is_faster_than_the_bound() -> None:
    faster = []
    for curve in curves.load():
        for size, measured in zip(curve.sizes, curve.times, strict=True):
            of = quantity(size, "byte"), curve.devices, curve.machine
            collective = communication.time(curve.operation, *of)
            if measured < collective.lower.m_as("s"):
                faster.append((curve.name, size))
    assert not faster


def test_sums_in_the_switch_exceed_what_any_ring_reaches() -> None:
    """480 GB/s of bus bandwidth on links of 450: above the ring's bound, below the switch's."""
    [row] = [each for each in curves.load() if each.name == "h200-16gib-all_reduce"]
    ring = collectives.ring_all_reduce(quantity(row.sizes[0], "byte"), 8, "450 GB/s").m_as("s")
    switch = communication.time("all_reduce", quantity(row.sizes[0], "byte"), 8, row.machine)
    assert switch.lower.m_as("s") < row.times[0] < ring


@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-b200", "dgx-a100", "mi300x-8", "dgx-h200"])
@pytest.mark.parametrize("devices", [2, 5, 8, 16])
def test_what_is_expected_lies_within_the_bounds(machine: str, devices: int) -> None:
    for operation, size in itertools.product(curves.OPERATIONS, ("1 byte", "1 MB", "100 GB")):
        if devices > 8 and machine == "mi300x-8":
            continue  # whose ports are not published
        collective = communication.time(operation, size, devices, machine)
        if collective.expected is None or collective.upper is None:
            assert f"{operation} " in collective.missing
        else:
            assert collective.lower <= collective.expected <= collective.upper


def test_a_send_takes_what_was_published_of_it() -> None:
    """Sends of B200s, in a server and in the better of two ways between two of them."""
    rows = {row.id: row for row in published.rows("collective")}
    for name, devices, size, error in (
        ("vultr-b200-peak-sendrecv-8", 8, "16 GiB", 0.02),
        ("vultr-b200-peak-sendrecv_v2-16", 16, "4 GiB", 0.3),
    ):
        message = communication.time("send", size, devices, "dgx-b200")
        measured = quantity(size) / quantity(rows[name].measured["peak_busbw"], "GB/s")
        assert message.around is not None
        assert message.around.low <= measured <= message.around.high
        assert float((measured / message.expected).m_as("")) == pytest.approx(1, abs=error)


def test_a_send_takes_one_link_or_one_port() -> None:
    """A switch gives it all links, a mesh and a torus one, and a network the device's port."""
    h100, mesh, torus = (machines.get(name) for name in ("dgx-h100", "mi300x-8", "tpu-v5e"))
    for machine, devices, rate in ((h100, 8, h100.bandwidth), (h100, 16, h100.ports)):
        message = communication.time("send", "1 GB", devices, machine)
        assert message.lower.m_as("s") == pytest.approx((quantity("1 GB") / rate).m_as("s"))
    for machine, several in ((mesh, mesh.domain - 1), (torus, 2 * len(torus.sides))):
        message = communication.time("send", "1 GB", machine.domain, machine)
        assert message.expected is not None
        one_link = (quantity("1 GB") * several / machine.bandwidth).m_as("s")
        assert one_link <= message.expected.m_as("s") <= 2 * one_link


@pytest.mark.parametrize("word", ["send", "send-recv", "sendrecv", "p2p", "point-to-point"])
def test_people_call_a_send_by_several_words(command: Command, word: str) -> None:
    assert command.prints(f"collective {word} 1GB h100").startswith("send of 1 GB over 8 devices")


def test_sources_that_contradict_one_another_are_named_and_the_range_holds_both() -> None:
    """Two sums over two racks of GB200, of two clouds: one takes twice as long as the other."""
    message = communication.time("all_reduce", "1 GB", 144, "gb200-nvl72")
    assert message.fastest is not None
    assert message.upper is not None
    assert message.around is not None
    assert message.upper > 1.9 * message.fastest
    assert message.around.low <= message.fastest
    assert message.upper <= message.around.high
    [sentence] = message.caveats
    assert sentence.startswith("Sources contradict one another, allreduce-128xgb200-two-racks-oci")
    low, high = curves.spread(message.measured[0], 1e9)
    assert message.around.high / message.around.low > high / low


def test_sources_that_agree_keep_the_range_of_their_class() -> None:
    message = communication.time("all_reduce", "1 GB", 8, "dgx-h100")
    assert message.around is not None
    assert not any("contradict" in sentence for sentence in message.caveats)
    low, high = curves.spread(message.measured[0], 1e9)
    assert (message.around.high / message.around.low).m_as("") == pytest.approx(high / low)


def test_one_device_of_a_machine_sends_nothing() -> None:
    collective = communication.time("all_reduce", "1 GB", 1, "dgx-h100")
    assert collective.lower == collective.expected == collective.upper == quantity("0 s")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("sum", "1 GB", 8, "h100"), "a collective is one of all_gather, reduce_scatter, all_re"),
        (("all_reduce", "1 s", 8, "h100"), "is positive and in byte; got 1 s"),
        (("all_reduce", "0 byte", 8, "h100"), "is positive and in byte; got 0 byte"),
        (("all_reduce", "1 GB", 8.5, "h100"), "must be a whole number from 1; got 8.5"),
        (("all_reduce", "1 GB", 8, "abacus"), "there is no machine 'abacus'"),
        (
            ("all_reduce", "1 GB", 100, "h100"),
            "100 devices do not fill 13 domains of NVIDIA DGX H100 evenly, each of 8 at most; giv",
        ),
        (("all_reduce", "1 GB", 16, "mi300x"), "no port of it to others: take at most 8"),
        (("all_reduce", "1 GB", 17, "tpu-v5e"), "no slice of Google TPU v5e pod, 16 × 16, has 17"),
    ],
)
def test_what_cannot_be_asked_of_a_machine_is_told(arguments: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        communication.time(*arguments)
    assert sentence in str(refusal.value)


# --- limits ---

times = st.floats(1e-6, 1e6)
counts = st.integers(2, 10_000)


@given(counts, times, times)
def test_ring_and_trees_meet_at_the_crossover(n: int, bandwidth: float, latency: float) -> None:
    link = quantity(bandwidth, "byte/s"), quantity(latency, "s")
    size = collectives.ring_crossover(n, *link)
    ring = collectives.ring_all_reduce(size, n, *link).m_as("s")
    trees = collectives.double_tree_all_reduce(size, n, *link).m_as("s")
    assert ring == pytest.approx(trees)
    shorter, longer = size * 0.9, size * 1.1
    if n > 3:  # for less the crossover is at zero
        assert collectives.ring_all_reduce(shorter, n, *link) > (
            collectives.double_tree_all_reduce(shorter, n, *link)
        )
        assert collectives.ring_all_reduce(longer, n, *link) < (
            collectives.double_tree_all_reduce(longer, n, *link)
        )


def test_what_a_benchmark_printed() -> None:
    """A line of all_reduce_perf on four GPUs: 1011.4 µs, algbw 4.17, busbw 6.26."""
    run = "4218900 byte", "1011.4 us"
    assert f"{collectives.algorithm_bandwidth(*run).m_as('GB/s'):.2f}" == "4.17"
    assert f"{collectives.bus_bandwidth(*run, 4).m_as('GB/s'):.2f}" == "6.26"


def test_levels_of_a_tree_are_exact() -> None:
    """A logarithm in floating point could be off by one next to a power of two."""
    levels = range(1, 40)
    devices = [2**level + more for level in levels for more in (0, 1)]
    times = collectives.tree_all_reduce("0 byte", devices, "1 byte/s", "1 s").m_as("s")
    assert times.tolist() == [2 * (level + more) for level in levels for more in (0, 1)]
    for count, time in zip(devices, times, strict=True):
        assert collectives.tree_all_reduce("0 byte", count, "1 byte/s", "1 s").m_as("s") == time


# --- pipelines ---


def makespan(stages: int, microbatches: int, slices: int) -> int:
    """Slots until the last of v·p thin stages has seen the last microbatch; each takes one slot.

    Devices take the microbatches in groups of p, and each group through slice after slice.
    """
    groups = range(0, microbatches, stages)
    order = [
        (batch, piece)
        for first in groups
        for piece in range(slices)
        for batch in range(first, min(first + stages, microbatches))
    ]
    done: dict[tuple[int, int, int], int] = {}
    free = [0] * stages
    for batch, piece in order:
        for device in range(stages):
            previous = (batch, piece, device - 1) if device else (batch, piece - 1, stages - 1)
            start = max(free[device], done.get(previous, 0))
            done[batch, piece, device] = free[device] = start + 1
    return max(free)


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("slices", [1, 2, 5])
def test_a_pipeline_played_through(stages: int, groups: int, slices: int) -> None:
    microbatches = groups * stages
    busy = slices * microbatches
    total = makespan(stages, microbatches, slices)
    fraction = collectives.bubble_fraction(stages, microbatches, slices).magnitude
    overhead = collectives.bubble_overhead(stages, microbatches, slices).magnitude
    assert fraction == pytest.approx(1 - busy / total)
    assert overhead == pytest.approx(total / busy - 1)
    assert overhead == pytest.approx(fraction / (1 - fraction))


@pytest.mark.parametrize("slices", [1, 2])
def test_the_pipeline_that_the_book_draws(slices: int) -> None:
    from calc.derivations.pipelines import PipelineSchedule

    devices, microbatches = PipelineSchedule.devices, PipelineSchedule.microbatches
    slots = PipelineSchedule.slots(slices)
    end = max(slot.start + slot.length for slot in slots)
    fraction = collectives.bubble_fraction(devices, microbatches, slices).magnitude
    assert fraction == pytest.approx(1 - 1 / end)
    for device in range(devices):
        slots_of_device = sorted(
            (slot.start, slot.length) for slot in slots if slot.device == device
        )
        assert sum(length for _, length in slots_of_device) == pytest.approx(1)
        for (start, length), (following, _) in itertools.pairwise(slots_of_device):
            assert following >= start + length - 1e-12  # one thing at a time
    passes = {(s.slice * devices + s.device, s.microbatch, s.backward): s for s in slots}
    assert len(passes) == len(slots) == 2 * devices * slices * microbatches
    for (stage, batch, backward), slot in passes.items():
        if not backward and stage == 0:
            continue
        after_itself = backward and stage == devices * slices - 1
        previous = stage if after_itself else stage + 1 if backward else stage - 1
        before = passes[previous, batch, backward and not after_itself]
        assert slot.start >= before.start + before.length - 1e-12


# --- overlap ---


@given(times, times, st.floats(0, 1))
def test_a_step_lies_between_its_longer_part_and_the_sum(
    compute: float, talk: float, overlap: float
) -> None:
    parts = quantity(compute, "s"), quantity(talk, "s")
    step = collectives.step_time(*parts, overlap).m_as("s")
    assert max(compute, talk) * (1 - 1e-9) <= step <= (compute + talk) * (1 + 1e-9)
    assert collectives.step_time(*parts, 0).m_as("s") == pytest.approx(compute + talk)
    assert collectives.step_time(*parts, 1).m_as("s") == pytest.approx(max(compute, talk))
    efficiency = collectives.scaling_efficiency(*parts, overlap).magnitude
    assert efficiency == pytest.approx(compute / step)


def test_gradients_hide_behind_the_backward_pass_alone() -> None:
    """Layer by layer: each sends its gradients once its own backward pass is done."""
    layers, forward, talk = 1000, 30.0, 80.0
    computed = sent = forward
    for _ in range(layers):
        computed += 2 * forward / layers
        sent = max(sent, computed) + talk / layers
    step = collectives.step_time("90 ms", "80 ms", 1, 2 / 3)
    assert step.m_as("ms") == pytest.approx(sent, rel=1e-2)
    assert collectives.scaling_efficiency("90 ms", "80 ms", 1, 2 / 3).magnitude == pytest.approx(
        90 / sent, rel=1e-2
    )


def test_bus_bandwidth_is_the_link_for_every_ring() -> None:
    gather = collectives.ring_all_gather("14 GB", 8, "450 GB/s")
    scatter = collectives.ring_reduce_scatter("14 GB", 8, "450 GB/s")
    exchange = collectives.all_to_all("14 GB", 8, "450 GB/s")
    for time in (gather, scatter, exchange):
        bandwidth = collectives.all_gather_bus_bandwidth("14 GB", time, 8)
        assert bandwidth.m_as("GB/s") == pytest.approx(450)
    reduced = collectives.ring_all_reduce("14 GB", 8, "450 GB/s")
    assert collectives.bus_bandwidth("14 GB", reduced, 8).m_as("GB/s") == pytest.approx(450)
    whole = links.transfer_time("14 GB", "450 GB/s")  # a broadcast through a pipeline
    assert collectives.algorithm_bandwidth("14 GB", whole) == quantity("450 GB/s")


def test_gradients_of_weights_fill_the_bubble() -> None:
    """Passes of equal time leave a third of 1F1B's bubble, then none [Qi et al. 2024, table 2]."""
    plain, first, second = (
        collectives.bubble_time(8, "1 ms", "1 ms", "1 ms", delayed) for delayed in (0, 2, 3)
    )
    assert first.m_as("ms") == pytest.approx(plain.m_as("ms") / 3)
    assert second.magnitude == 0
    step = 32 * 3 + plain.m_as("ms")  # 32 microbatches of three passes, and the wait
    assert plain.m_as("ms") / step == pytest.approx(collectives.bubble_fraction(8, 32).magnitude)
