"""What the chapter "Communication" quotes."""

from __future__ import annotations

from typing import NamedTuple

from calc import collectives, constants, hardware, links, training
from calc.core.units import Quantity, quantity
from calc.derivations.numbers_to_know import AnchorBandwidths, AnchorLatencies


class GradientExchange:
    """Eight GPUs that train one model exchange its gradients at each step, best on a ring."""

    parameters = quantity("7B param")
    each = constants.get("size_gradient_fp16")
    h100 = hardware.get("h100")
    devices = 8
    link = h100.link_bandwidth
    latency = constants.get("latency_nvlink")
    measured_bandwidth = constants.get("bandwidth_ring_busbw_h100")

    gradients = training.model_memory(parameters, each)
    by_one_device = (2 * (devices - 1) * links.transfer_time(gradients, link, latency)).to("ms")
    traffic = collectives.all_reduce_traffic(gradients, devices)
    ring = collectives.ring_all_reduce(gradients, devices, link, latency)
    rounds = 2 * (devices - 1)
    latency_part = (rounds * latency).to("µs")
    gain = (by_one_device / ring).to("")
    at_measured_bandwidth = collectives.ring_all_reduce(
        gradients, devices, measured_bandwidth, latency
    )
    measured_share = (measured_bandwidth / link).to("%")


class Exchange(NamedTuple):
    """One step on a ring: who sends which part to whom, and what everybody holds after it."""

    messages: tuple[tuple[int, int, int], ...]  # from, to, part
    held: tuple[tuple[frozenset[int], ...], ...]  # by device and part: whose parts are summed


class RingOfFour:
    """A ring all-reduce takes each part round twice: once to sum it, once to hand it out."""

    devices = 4

    @classmethod
    def steps(cls) -> list[Exchange]:
        """The state at the start, and each exchange after it: first sums, then copies."""
        n = cls.devices
        held = [[frozenset({device})] * n for device in range(n)]
        history = [Exchange((), tuple(map(tuple, held)))]
        for step in range(2 * (n - 1)):
            messages = tuple((i, (i + 1) % n, (i - step) % n) for i in range(n))
            # Part i - step of device i, and after n - 1 steps again: now it is a sum of all.
            before = [list(parts) for parts in held]
            for sender, receiver, part in messages:
                held[receiver][part] = before[sender][part] | before[receiver][part]
            history.append(Exchange(messages, tuple(map(tuple, held))))
        return history


class RingByLength:
    """A longer ring hardly sends more bytes, and waits for more messages."""

    size = GradientExchange.gradients
    bucket = quantity("25 MB")
    link = AnchorBandwidths.infiniband
    latency = AnchorLatencies.infiniband.to("µs")
    shortest_length = 2
    longest_length = 4096

    lengths = (shortest_length, 8, 64, 512, longest_length)

    @classmethod
    def row(cls, n: int) -> tuple[int, Quantity, Quantity, Quantity, Quantity, Quantity]:
        """Devices, what each sends, its time on the wire, all latencies, and the times in all."""
        traffic = collectives.all_reduce_traffic(cls.size, n)
        return (
            n,
            traffic,
            (traffic / cls.link).to("ms"),
            (2 * (n - 1) * cls.latency).to("ms"),
            collectives.ring_all_reduce(cls.size, n, cls.link, cls.latency).to("ms"),
            collectives.ring_all_reduce(cls.bucket, n, cls.link, cls.latency).to("ms"),
        )

    shortest = collectives.ring_all_reduce(size, shortest_length, link, latency)
    longest = collectives.ring_all_reduce(size, longest_length, link, latency)
    bucket_shortest = collectives.ring_all_reduce(bucket, shortest_length, link, latency)
    bucket_longest = collectives.ring_all_reduce(bucket, longest_length, link, latency)
    slower = (longest / shortest).to("")
    bucket_slower = (bucket_longest / bucket_shortest).to("")
    longest_latencies = (2 * (longest_length - 1) * latency).to("ms")


class RingOrTree:
    """Trees win where latency decides: for short arrays, and for many devices."""

    link = RingByLength.link
    latency = RingByLength.latency
    few = 8
    many = 1024
    small = quantity("1 kB")
    large = GradientExchange.gradients

    crossover_few = collectives.ring_crossover(few, link, latency)
    crossover_many = collectives.ring_crossover(many, link, latency)
    small_by_ring_of_few = collectives.ring_all_reduce(small, few, link, latency)
    small_by_tree_of_few = collectives.tree_all_reduce(small, few, link, latency)
    small_by_ring = collectives.ring_all_reduce(small, many, link, latency)
    small_by_tree = collectives.tree_all_reduce(small, many, link, latency)
    large_by_ring = collectives.ring_all_reduce(large, many, link, latency)
    large_by_trees = collectives.double_tree_all_reduce(large, many, link, latency)


class FourCollectives:
    """All-gather, reduce-scatter and all-to-all send half of what an all-reduce sends."""

    size = GradientExchange.gradients
    devices = GradientExchange.devices
    link = GradientExchange.link, GradientExchange.latency

    half = collectives.all_gather_traffic(size, devices)
    whole = GradientExchange.traffic
    rows = (
        (
            "All-gather",
            "a part → every part",
            half,
            collectives.ring_all_gather(size, devices, *link),
        ),
        (
            "Reduce-scatter",
            "an array → the sum of one part",
            half,
            collectives.ring_reduce_scatter(size, devices, *link),
        ),
        ("All-reduce", "an array → the sum", whole, GradientExchange.ring),
        (
            "All-to-all",
            "a part for each → a part from each",
            half,
            collectives.all_to_all(size, devices, *link),
        ),
    )


class ShardedTraining:
    """Sharding weights too costs two all-gathers and a reduce-scatter: half as much again."""

    weights = quantity("14 GB")
    devices = GradientExchange.devices

    gather = collectives.all_gather_traffic(weights, devices)
    traffic = 3 * gather
    ratio = (traffic / GradientExchange.traffic).to("")
    time = (traffic / GradientExchange.link).to("ms")


class Experts:
    """A mixture of experts sends its tokens across the machine four times for each layer."""

    tokens = 8192
    width = 4096
    experts_per_token = 2
    element = quantity("2 byte")
    layers = 32
    exchanges = 4
    devices = GradientExchange.devices
    many_devices = 64

    size = (tokens * width * experts_per_token * element).to("MB")
    by_nvlink = collectives.all_to_all(
        size, devices, GradientExchange.link, GradientExchange.latency
    )
    by_infiniband = collectives.all_to_all(
        size, many_devices, RingByLength.link, RingByLength.latency
    )
    step_by_nvlink = (layers * exchanges * by_nvlink).to("ms")
    step_by_infiniband = (layers * exchanges * by_infiniband).to("ms")


class TwoNetworks:
    """Summing inside each server first leaves an eighth of the array for each network port."""

    size = GradientExchange.gradients
    per_node = GradientExchange.devices
    nodes = 8

    devices = per_node * nodes
    part = size / per_node
    flat = collectives.ring_all_reduce(size, devices, RingByLength.link, RingByLength.latency)
    inner = GradientExchange.ring
    outer = collectives.ring_all_reduce(part, nodes, RingByLength.link, RingByLength.latency)
    time = collectives.hierarchical_all_reduce(
        size,
        per_node,
        nodes,
        GradientExchange.link,
        RingByLength.link,
        GradientExchange.latency,
        RingByLength.latency,
    )
    gain = (flat / time).to("")
    link_ratio = (GradientExchange.link / RingByLength.link).to("")


class Overlap:
    """A step takes at least its longer part and at most the sum of both."""

    parameters = GradientExchange.parameters
    tokens = quantity("8192 token")
    utilization = 0.4
    batch = quantity("4e6 token")
    backward = 1 - constants.get("work_inference") / constants.get("work_training")

    peak = GradientExchange.h100.peak("bf16")
    compute = training.training_time(parameters, tokens, 1, peak, utilization).to("ms")
    communication = TwoNetworks.time
    no_overlap = collectives.step_time(compute, communication, 0)
    full_overlap = collectives.step_time(compute, communication, 1, backward)
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%")
    best_efficiency = collectives.scaling_efficiency(compute, communication, 1, backward).to("%")
    break_even = (tokens * (communication / (backward * compute))).to("token")
    break_even_flat = (tokens * (TwoNetworks.flat / (backward * compute))).to("token")
    most_devices = (batch / break_even).to("")


class PipelineBubble:
    """A pipeline fills and drains once a step; more microbatches, or thinner stages, hide that."""

    stages = 8
    example = 32
    slices = 4

    microbatches = (stages, 16, example, 64)

    @classmethod
    def row(cls, m: int) -> tuple[int, Quantity, Quantity, Quantity]:
        """Microbatches, the bubble's share of the step, over the work, and with interleaving."""
        return (
            m,
            collectives.bubble_fraction(cls.stages, m).to("%"),
            collectives.bubble_overhead(cls.stages, m).to("%"),
            collectives.bubble_fraction(cls.stages, m, cls.slices).to("%"),
        )

    fraction = collectives.bubble_fraction(stages, example).to("%")
    overhead = collectives.bubble_overhead(stages, example).to("%")
    few = collectives.bubble_fraction(stages, stages).to("%")


class Slot(NamedTuple):
    """One pass of one microbatch through one stage, in units of a stage's work for a step."""

    stage: int
    microbatch: int
    backward: bool
    start: float
    length: float


class PipelineSchedule:
    """The same batch in more and smaller microbatches leaves a shorter bubble."""

    stages = 4
    few = 4
    many = 12

    bubble_of_few = collectives.bubble_fraction(stages, few).to("%")
    bubble_of_many = collectives.bubble_fraction(stages, many).to("%")

    @classmethod
    def slots(cls, microbatches: int) -> list[Slot]:
        """All forward passes, then all backward passes, which take twice as long."""
        last, forward = cls.stages - 1, 1 / (3 * microbatches)
        turn = (microbatches + last) * forward
        each = [(stage, batch) for stage in range(cls.stages) for batch in range(microbatches)]
        return [
            Slot(stage, batch, False, (stage + batch) * forward, forward) for stage, batch in each
        ] + [
            Slot(stage, batch, True, turn + (last - stage + batch) * 2 * forward, 2 * forward)
            for stage, batch in each
        ]


class TwoBandwidths:
    """One run of a benchmark has two bandwidths, and neither need be the link's."""

    devices = GradientExchange.devices
    sharp = constants.get("bandwidth_sharp_busbw_h100")

    algorithm = collectives.algorithm_bandwidth(GradientExchange.gradients, GradientExchange.ring)
    bus = collectives.bus_bandwidth(GradientExchange.gradients, GradientExchange.ring, devices)
    pair = collectives.algorithm_bandwidth(
        "1 GB", collectives.ring_all_reduce("1 GB", 2, GradientExchange.link, "0 s")
    )


class PairByPcie:
    """Problem 1: two GPUs on PCIe send the array once each."""

    parameters = quantity("1B param")
    lanes = AnchorBandwidths.pcie_lanes

    gradients = training.model_memory(parameters, GradientExchange.each)
    time = collectives.ring_all_reduce(
        gradients, 2, AnchorBandwidths.pcie_coded, AnchorLatencies.pcie
    )


class BenchmarkLine:
    """Problem 2: what an algbw says about the links depends on the collective."""

    size = quantity("1 GB")
    time = quantity("5 ms")
    devices = 8

    printed = collectives.algorithm_bandwidth(size, time)
    bus = collectives.bus_bandwidth(size, time, devices)
    bus_of_gather = bus / 2
    share = (bus / GradientExchange.link).to("%")


class BubbleBudget:
    """Problem 3: a bubble of a tenth needs nine times as many microbatches as p - 1."""

    stages = PipelineBubble.stages
    budget = 0.1
    slices = PipelineBubble.slices
    whole = 16

    for_each_other_stage = 1 / budget - 1
    microbatches = (stages - 1) * for_each_other_stage
    interleaved = microbatches / slices
    at_whole = collectives.bubble_fraction(stages, whole, slices).to("%")


class FasterStep:
    """Problem 4: hiding the exchange beats paying for a wider network."""

    tokens = quantity("2048 token")

    compute = training.training_time(
        Overlap.parameters, tokens, 1, Overlap.peak, Overlap.utilization
    ).to("ms")
    communication = TwoNetworks.time
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%")
    wider = collectives.hierarchical_all_reduce(
        TwoNetworks.size,
        TwoNetworks.per_node,
        TwoNetworks.nodes,
        GradientExchange.link,
        2 * RingByLength.link,
        GradientExchange.latency,
        RingByLength.latency,
    )
    efficiency_wider = collectives.scaling_efficiency(compute, wider, 0).to("%")
    efficiency_hidden = collectives.scaling_efficiency(
        compute, communication, 1, Overlap.backward
    ).to("%")
    efficiency_larger_batch = Overlap.efficiency
