"""What the chapter "Collectives" quotes."""

from __future__ import annotations

import math
from typing import NamedTuple

from calc import collectives, constants, curves, hardware, links, machines, training
from calc.core.units import Quantity, quantity
from calc.derivations.numbers_to_know import AnchorLatencies


class GradientExchange:
    """Eight GPUs that train one model exchange its gradients at each step, best on a ring."""

    parameters = quantity("7B param")
    each = constants.size_gradient_fp16
    h100 = hardware.get("h100")
    devices = 8
    link = h100.link_bandwidth
    latency = constants.latency_nvlink  # of the wire
    measured_bandwidth = constants.bandwidth_ring_busbw_h100

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

    machine = machines.get("dgx-h100")
    size = GradientExchange.gradients
    bucket = quantity("25 MB")
    node = machine.domain
    port = machine.ports.to("GB/s")
    latency = AnchorLatencies.infiniband.to("µs")
    shortest_length = 2
    longest_length = 4096

    lengths = (shortest_length, 8, 64, 512, longest_length)

    @classmethod
    def link(cls, n: int) -> tuple[Quantity, Quantity]:
        """Bandwidth and latency of the slowest link of n devices: rings leave by all ports."""
        if n <= cls.node:
            return cls.machine.bandwidth, GradientExchange.latency
        return min(cls.machine.bandwidth, cls.node * cls.port), cls.latency

    @classmethod
    def ring(cls, size: Quantity, n: int) -> Quantity:
        """Time of an all-reduce on rings of n devices."""
        time: Quantity = collectives.ring_all_reduce(size, n, *cls.link(n))
        return time

    @classmethod
    def row(cls, n: int) -> tuple[int, Quantity, Quantity, Quantity, Quantity, Quantity]:
        """Devices, what each sends, its time on the wire, all latencies, and the times in all."""
        traffic = collectives.all_reduce_traffic(cls.size, n)
        bandwidth, latency = cls.link(n)
        return (
            n,
            traffic,
            (traffic / bandwidth).to("ms"),
            (2 * (n - 1) * latency).to("ms"),
            cls.ring(cls.size, n).to("ms"),
            cls.ring(cls.bucket, n).to("ms"),
        )

    longest_latencies = (2 * (longest_length - 1) * latency).to("ms")


class LongestRing:
    """On 4096 devices a large array takes a few times as long as on two, a bucket far longer."""

    lengths = RingByLength.shortest_length, RingByLength.longest_length

    shortest, longest = (RingByLength.ring(RingByLength.size, n) for n in lengths)
    bucket_shortest, bucket_longest = (RingByLength.ring(RingByLength.bucket, n) for n in lengths)
    slower = (longest / shortest).to("")
    bucket_slower = (bucket_longest / bucket_shortest).to("")


class Fitted:
    """One latency and one bandwidth, read off the two ends of a measured curve."""

    small = quantity("1 kB")

    def __init__(self, name: str) -> None:
        self.curve = curves.get(name)
        self.devices = self.curve.devices
        self.alpha = quantity(self.curve.time(self.small.m_as("byte")), "s").to("µs")
        self.beta = quantity(max(self.curve.bus_bandwidths), "byte/s").to("GB/s")
        levels = math.ceil(math.log2(self.devices))
        self.of_a_round = self.alpha / (2 * levels)
        self.crossover = collectives.ring_crossover(self.devices, self.beta, self.of_a_round)
        self.half = quantity(self.curve.half_size, "byte").to("MB")
        self.half_by_fit = (self.alpha * self.beta * self.devices / (2 * (self.devices - 1))).to(
            "MB"
        )

    def ring(self, size: Quantity) -> Quantity:
        """On a ring, by the latency of a round."""
        time: Quantity = collectives.ring_all_reduce(size, self.devices, self.beta, self.of_a_round)
        return time

    def trees(self, size: Quantity) -> Quantity:
        """On two trees, by the latency of a round."""
        time: Quantity = collectives.double_tree_all_reduce(
            size, self.devices, self.beta, self.of_a_round
        )
        return time

    def measured(self, size: Quantity) -> Quantity:
        """By the curve itself."""
        return quantity(self.curve.time(size.m_as("byte")), "s")


class RingOrTree:
    """Trees win where latency decides: for short arrays, and for many devices."""

    few = Fitted("allreduce-8xh100-dgxc")
    many = Fitted("allreduce-128xgb200-two-racks-oci")
    small = Fitted.small
    large = GradientExchange.gradients

    few_devices = few.devices
    many_devices = many.devices
    few_alpha = few.alpha
    many_alpha = many.alpha
    few_round = few.of_a_round
    many_round = many.of_a_round
    crossover_few = few.crossover
    crossover_many = many.crossover
    small_by_ring = many.ring(small).to("ms")
    large_by_ring = many.ring(large).to("ms")
    large_by_trees = many.trees(large).to("ms")


class MeasuredAllReduce:
    """The latency of a library's collective is no wire's: half of its bandwidth takes 34 MB."""

    names = (
        ("B200", "allreduce-8xb200-bekman"),
        ("GB200 NVL72", "allreduce-128xgb200-two-racks-oci"),
        ("H100", "allreduce-8xh100-dgxc"),
        ("MI300X", "allreduce-azure-nd-mi300x-v5"),
        ("A100", "allreduce-azure-nd-a100-v4"),
    )
    sizes = (
        *(quantity(1, "kB"), quantity(64, "kB"), quantity(1, "MB"), RingByLength.bucket),
        *(quantity(58, "MB"), quantity(1, "GB"), GradientExchange.gradients),
    )
    devices = GradientExchange.devices

    fitted = tuple((name, Fitted(curve)) for name, curve in names)
    alphas = tuple(link.alpha for _, link in fitted if link.curve.span == "domain")
    least_alpha = min(alphas)
    most_alpha = max(alphas)
    halves = tuple(link.half for _, link in fitted)
    least_half = min(halves)
    most_half = max(halves)
    half_by_wire = (
        devices * links.half_performance_size(GradientExchange.link, GradientExchange.latency)
    ).to("MB")
    half_by_fit = RingOrTree.few.half_by_fit
    half = RingOrTree.few.half

    @classmethod
    def bus(cls, size: Quantity, time: Quantity) -> Quantity:
        """Bus bandwidth of an all-reduce among the GPUs of a server."""
        bandwidth: Quantity = collectives.bus_bandwidth(size, time, cls.devices)
        return bandwidth.to("GB/s")

    @classmethod
    def by_wire(cls, size: Quantity) -> Quantity:
        """Time on a ring, by the latency of the wire."""
        time: Quantity = collectives.ring_all_reduce(
            size, cls.devices, GradientExchange.link, GradientExchange.latency
        )
        return time

    @classmethod
    def row(cls, size: Quantity) -> tuple[Quantity, ...]:
        """Size, time and bus bandwidth by the wire, and as measured, with the ratio of times."""
        predicted = cls.by_wire(size)
        measured = RingOrTree.few.measured(size)
        bus = cls.bus(size, measured)
        return size, predicted, measured, cls.bus(size, predicted), bus, measured / predicted


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
    across = collectives.time("all_to_all", size, many_devices, RingByLength.machine)
    step_by_nvlink = (layers * exchanges * by_nvlink).to("ms")
    step_across = (layers * exchanges * across.needed).to("ms")


class TwoNetworks:
    """A server sends by a port for each GPU: summing inside first saves rounds, and not bytes."""

    machine = RingByLength.machine
    size = GradientExchange.gradients
    per_node = machine.domain
    nodes = 8
    port = RingByLength.port

    devices = per_node * nodes
    leaving = (per_node * port).to("GB/s")
    link_ratio = (GradientExchange.link / port).to("")
    shortfall = (1 - leaving / GradientExchange.link).to("%")
    rings = collectives.all_ports_all_reduce(
        size, per_node, nodes, GradientExchange.link, port, RingByLength.latency
    )
    inner = GradientExchange.ring
    outer = collectives.ring_all_reduce(size / per_node, nodes, port, RingByLength.latency)
    latencies = GradientExchange.latency, RingByLength.latency
    series = collectives.hierarchical_all_reduce(
        size, per_node, nodes, GradientExchange.link, port, *latencies
    )
    time = collectives.chunked_hierarchical_all_reduce(
        size,
        per_node,
        nodes,
        inner_bandwidth=GradientExchange.link,
        inner_latency=GradientExchange.latency,
        outer_bandwidth=port,
        outer_latency=RingByLength.latency,
    )
    gain = (series / time).to("")
    rounds = 2 * (devices - 1)
    fewer_rounds = 2 * (per_node - 1) + 2 * (nodes - 1)
    bucket = RingByLength.bucket
    bucket_by_rings = collectives.all_ports_all_reduce(
        bucket, per_node, nodes, GradientExchange.link, port, RingByLength.latency
    )
    bucket_in_series = collectives.hierarchical_all_reduce(
        bucket, per_node, nodes, GradientExchange.link, port, *latencies
    )
    found = collectives.time("all_reduce", size, devices, machine)
    expected = found.expected.to("ms")  # type: ignore[union-attr]
    measured_devices = found.measured[0].devices
    reached = collectives.bus_bandwidth(size, expected, devices).to("GB/s")
    reached_share = (reached / leaving).to("%")


class Overlap:
    """A step takes at least its longer part and at most the sum of both."""

    parameters = GradientExchange.parameters
    tokens = quantity("8192 token")
    utilization = 0.4
    batch = quantity("4e6 token")
    backward = 1 - constants.work_inference / constants.work_training

    peak = GradientExchange.h100.peak("bf16")
    compute = training.training_time(parameters, tokens, 1, peak, utilization).to("ms")
    communication = TwoNetworks.expected
    full_overlap = collectives.step_time(compute, communication, 1, backward)
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%")
    break_even = (tokens * (communication / (backward * compute))).to("token")
    break_even_at_best = (tokens * (TwoNetworks.time / (backward * compute))).to("token")
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
    """One pass of one microbatch through a stage, in units of a device's work for a step."""

    device: int
    slice: int
    microbatch: int
    backward: bool
    start: float
    length: float


class PipelineSchedule:
    """Two thin stages on each device instead of a thick one leave half of the bubble."""

    devices = 4
    microbatches = 8
    slices = 2

    bubble = collectives.bubble_fraction(devices, microbatches).to("%")
    bubble_interleaved = collectives.bubble_fraction(devices, microbatches, slices).to("%")
    sooner = (1 - (1 - bubble) / (1 - bubble_interleaved)).to("%")

    @classmethod
    def order(cls, device: int, slices: int) -> list[tuple[bool, int, int]]:
        """What a device does in turn: backward or not, through which slice, which microbatch.

        It fills up with forward passes until the first gradient can be back, and then takes one
        forward and one backward pass in turn, each for a group of as many microbatches as there
        are devices before the next slice gets them.
        """
        devices, passes = cls.devices, cls.microbatches * slices
        turns = []
        for place in range(passes):
            group, within = divmod(place, devices * slices)
            turns.append((within // devices, group * devices + within % devices))
        forward = [(False, part, batch) for part, batch in turns]
        backward = [(True, slices - 1 - part, batch) for part, batch in turns]
        ahead = devices - 1 - device
        if slices > 1:
            ahead = min(passes, 2 * ahead + (slices - 1) * devices)
        pairs = zip(forward[ahead:], backward, strict=False)
        in_turn = [turn for pair in pairs for turn in pair]
        return [*forward[:ahead], *in_turn, *backward[passes - ahead :]]

    @classmethod
    def slots(cls, slices: int) -> list[Slot]:
        """One forward and one backward pass in turn (1F1B), of which the second takes twice."""
        forward = 1 / (3 * cls.microbatches * slices)
        last = cls.devices * slices - 1
        waiting = [cls.order(device, slices) for device in range(cls.devices)]
        free = [0.0] * cls.devices
        ended: dict[tuple[bool, int, int], float] = {}
        times = []
        while any(waiting):
            for device, order in enumerate(waiting):
                while order:
                    backward, part, batch = order[0]
                    stage = part * cls.devices + device
                    before = backward, stage + 1 if backward else stage - 1, batch
                    if backward and stage == last:
                        before = False, stage, batch
                    if before not in ended and (backward or stage):
                        break
                    start = max(free[device], ended.get(before, 0.0))
                    length = 2 * forward if backward else forward
                    times.append(Slot(device, part, batch, backward, start, length))
                    free[device] = ended[backward, stage, batch] = start + length
                    order.pop(0)
        return times


class TwoBandwidths:
    """One run of a benchmark has two bandwidths, and neither need be the link's."""

    devices = GradientExchange.devices
    sharp = constants.bandwidth_sharp_busbw_h100

    algorithm = collectives.algorithm_bandwidth(GradientExchange.gradients, GradientExchange.ring)
    bus = collectives.bus_bandwidth(GradientExchange.gradients, GradientExchange.ring, devices)


class PairByPcie:
    """Problem 1: two GPUs on PCIe send the array once each."""

    machine = machines.get("rtx-5090-2")
    parameters = quantity("1B param")
    link = machine.bandwidth

    gradients = training.model_memory(parameters, GradientExchange.each)
    found = collectives.time("all_reduce", gradients, machine.domain, machine)
    time = found.lower.to("ms")
    by_hand = (quantity("2 GB") / quantity("60 GB/s")).to("ms")


class BenchmarkLine:
    """Problem 2: what an algbw says about the links depends on the collective."""

    size = quantity("1 GB")
    time = quantity("5 ms")
    devices = 8

    printed = collectives.algorithm_bandwidth(size, time)
    bus = collectives.bus_bandwidth(size, time, devices)
    bus_of_gather = bus / 2
    share = (bus / GradientExchange.link).to("%")
    by_hand = 2 * printed


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
    by_hand = (stages - 1) / budget


class FasterStep:
    """Problem 4: hiding the exchange beats paying for a wider network."""

    tokens = quantity("2048 token")

    compute = training.training_time(
        Overlap.parameters, tokens, 1, Overlap.peak, Overlap.utilization
    ).to("ms")
    communication = TwoNetworks.expected
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%")
    wider_floor = collectives.chunked_hierarchical_all_reduce(
        TwoNetworks.size,
        TwoNetworks.per_node,
        TwoNetworks.nodes,
        inner_bandwidth=GradientExchange.link,
        inner_latency=GradientExchange.latency,
        outer_bandwidth=2 * TwoNetworks.port,
        outer_latency=RingByLength.latency,
    )
    wider = communication * (wider_floor / TwoNetworks.time)
    efficiency_wider = collectives.scaling_efficiency(compute, wider, 0).to("%")
    efficiency_hidden = collectives.scaling_efficiency(
        compute, communication, 1, Overlap.backward
    ).to("%")
    efficiency_larger_batch = Overlap.efficiency
    compute_by_hand = quantity("220 ms")
    exchange_by_hand = quantity("90 ms")
    by_hand = (compute_by_hand / (compute_by_hand + exchange_by_hand)).to("%")


class OnePort:
    """Problem 5: a plan that forgets seven ports of eight asks for eight times the tokens."""

    devices = TwoNetworks.devices
    port = TwoNetworks.port
    per_node = TwoNetworks.per_node

    planned = collectives.ring_all_reduce(TwoNetworks.size, devices, port, RingByLength.latency)
    planned_tokens = (Overlap.tokens * (planned / Overlap.compute)).to("token")
    tokens = (Overlap.tokens * (TwoNetworks.rings / Overlap.compute)).to("token")
    ratio = (planned / TwoNetworks.rings).to("")
    by_hand = (quantity("28 GB") / port).to("ms")


class RackOrServers:
    """Problem 6: a rack makes the exchange shorter, and its GPUs make the arithmetic shorter."""

    machine = machines.get("gb200-nvl72")
    devices = TwoNetworks.devices
    peak = machine.device.peak("bf16")

    found = collectives.time("all_reduce", TwoNetworks.size, devices, machine)
    exchange = found.expected.to("ms")  # type: ignore[union-attr]
    busbw = collectives.bus_bandwidth(TwoNetworks.size, exchange, devices).to("GB/s")
    gain = (TwoNetworks.expected / exchange).to("")
    peak_ratio = (peak / Overlap.peak).to("")
    compute = training.training_time(
        Overlap.parameters, Overlap.tokens, 1, peak, Overlap.utilization
    ).to("ms")
    break_even = (Overlap.tokens * (exchange / (Overlap.backward * compute))).to("token")
    step = collectives.step_time(compute, exchange, 1, Overlap.backward)
    step_gain = (Overlap.full_overlap / step).to("")
    by_hand = quantity("1200 token")


class CubeOfChips:
    """Problem 7: a torus sends along all of its axes at once, or along one at a third of that."""

    machine = machines.get("tpu-v5p-pod")
    devices = TwoNetworks.devices
    side = 4
    links = 2 * len(machine.sides)

    link = (machine.bandwidth / links).to("GB/s")
    found = collectives.time("all_reduce", TwoNetworks.size, devices, machine)
    time = found.lower.to("ms")
    one_axis = (2 * collectives.bidirectional_ring_all_gather(TwoNetworks.size, devices, link)).to(
        "ms"
    )
    ratio = (one_axis / time).to("")
    by_hand = (quantity("28 GB") / machine.bandwidth).to("ms")
