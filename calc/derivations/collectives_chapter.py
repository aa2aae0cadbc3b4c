"""Claims of the chapter "Collectives"."""

from __future__ import annotations

import math
from typing import NamedTuple

from calc import (
    collectives,
    communication,
    constants,
    curves,
    hardware,
    machines,
    published,
    training,
)
from calc.catalog import engine_sums
from calc.catalog.machines import Machine
from calc.core.units import Quantity, quantity
from calc.derivations.bases import HalfBandwidth, HidingTokens, TensorLimit
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import DENSE, MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows
from calc.derivations.traces import whole


class GradientExchange(Claims):
    """Eight GPUs that train one model exchange its gradients at each step, best on a ring."""

    parameters = quantity("7B param")
    each = constants.size_gradient_fp16
    h100 = hardware.get("h100")
    devices = 8
    link = h100.link_bandwidth
    latency = constants.latency_nccl_step_nvlink
    measured_bandwidth = constants.bandwidth_ring_busbw_h100

    gradients = training.model_memory(parameters, each) | by_hand("7e9 * 2 byte")
    traffic = collectives.all_reduce_traffic(gradients, devices) | by_hand("14/8 * 14 GB")
    ring = collectives.ring_all_reduce(gradients, devices, link, latency) | by_hand(
        "24.5 GB / 450 GB/s + 8.4 us"
    )
    at_measured_bandwidth = collectives.ring_all_reduce(
        gradients, devices, measured_bandwidth, latency
    ) | by_hand("24.5 GB / 370 GB/s + 8.4 us")
    in_switch = (gradients / link).to("ms") | by_hand("14 GB / 450 GB/s")


class Exchange(NamedTuple):
    """One step on a ring: who sends which part to whom, and what everybody holds after it."""

    messages: tuple[tuple[int, int, int], ...]  # from, to, part
    held: tuple[tuple[frozenset[int], ...], ...]  # by device and part: whose parts are summed


class RingOfFour(Claims):
    """A ring all-reduce takes each part round twice: once to sum it, once to hand it out."""

    devices = 4 | by_hand("4")

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


class Servers(Claims):
    """Servers of H100s: what leaves one, and a step of a ring between them as NCCL counts it."""

    machine = machines.get("dgx-h100")
    port = machine.ports.to("GB/s")
    latency = constants.latency_nccl_step_network


class Fitted(Claims):
    """One latency and one bandwidth, read off the two ends of a measured curve."""

    small = quantity("1 kB")

    def __init__(self, name: str) -> None:
        self.curve = curves.get(name)
        self.devices = self.curve.devices
        self.alpha = quantity(self.curve.time(self.small.m_as("byte")), "s").to("µs")
        self.beta = quantity(max(self.curve.bus_bandwidths), "byte/s").to("GB/s")
        self.half = HalfBandwidth.reached(self.curve)
        self.half_by_fit = (self.alpha * self.beta * self.devices / (2 * (self.devices - 1))).to(
            "MB"
        )


class NcclModel(Claims):
    """NCCL's own cost of a short array: a base, and steps; without the base it is half of it."""

    base = constants.latency_nccl_base_ring
    step = constants.latency_nccl_step_nvlink
    step_simple = constants.latency_nccl_step_nvlink_large
    steps = 2 * (GradientExchange.devices - 1)

    start = (base + steps * step).to("µs") | by_hand("6.6 µs + 14 * 0.6 µs")
    measured = Fitted("allreduce-8xh100-dgxc").alpha | by_hand(
        "16.70 us * power(16.94 / 16.70, log2(1000 / 512))"
    )


class MeasuredAllReduce(Claims):
    """Half of a library's bandwidth takes tens of megabytes, and its start tens of microseconds."""

    names = (
        ("B200", "allreduce-8xb200-bekman"),
        ("GB200 NVL72", "allreduce-128xgb200-two-racks-oci"),
        ("H100", "allreduce-8xh100-dgxc"),
        ("MI300X", "allreduce-azure-nd-mi300x-v5"),
        ("A100", "allreduce-azure-nd-a100-v4"),
    )

    fitted = tuple((name, Fitted(curve)) for name, curve in names)
    alphas = tuple(link.alpha for _, link in fitted if link.curve.span == "domain")
    least_alpha = min(alphas) | by_hand("16.70 us * power(16.94 / 16.70, log2(1000 / 512))")
    most_alpha = max(alphas) | by_hand("47.79 us", "8 B200s at 32 KiB, the smallest; Bekman 2026")
    halves = tuple(link.half for _, link in fitted)
    least_half = min(halves) | by_hand(
        "2**23 byte * power(2, ln(316.8201 / 2 / 131.5654) / ln(171.4560 / 131.5654))",
        "8 MI300X: 171.5 GB/s at 2^24 byte, 131.6 at half of it; half of 316.8 "
        "is 158.4; Azure 2025",
    )
    most_half = max(halves) | by_hand(
        "2**27 byte * power(2, ln(683.5719 / 2 / 272.8596) / ln(342.3922 / 272.8596))"
    )
    most_devices = max(link.devices for _, link in fitted) | by_hand("128")
    half_by_fit = fitted[2][1].half_by_fit | by_hand("8/14 * {least_alpha} * 480.1605 GB/s")
    half = fitted[2][1].half | by_hand(
        "2**24 byte * power(2, ln(480.1605 / 2 / 237.1577) / ln(294.6325 / 237.1577))"
    )


class SumsOfEngines(Claims):
    """Engines add up short arrays in a graph, several times as fast as NCCL does in a benchmark."""

    machines = tuple(machines.get(key) for key in ("dgx-h200", "dgx-b200"))
    devices = 8
    engines = ("vllm", "sglang", "tensorrt-llm")
    sizes = quantity("125 kB"), *(quantity(size, "MB") for size in (1, 8, 64))
    batch = 64
    width = DENSE.width

    largest = sizes[-1] | by_hand("64 MB")
    batch_of_64 = (batch * width * quantity("2 byte")).to("MB") | by_hand("64 * 8192 * 2 bytes")

    @classmethod
    def by_nccl(cls, machine: Machine, size: Quantity) -> Quantity:
        """Return the time by NCCL's curve."""
        return communication.time("all_reduce", size, cls.devices, machine).needed.to("µs")

    @classmethod
    def by_engine(cls, engine: str, machine: Machine, size: Quantity) -> Quantity:
        """Return the times by an engine's newest kernels."""
        kernel = engine_sums.sums_of(machine.device.key, engine, cls.devices)
        assert kernel is not None
        return quantity(kernel.time(size.m_as("byte")), "s").to("µs")

    @classmethod
    @row_by_hand("B200 | 1 MB | 51 µs | 26 µs | 15 µs | 17 µs | 3.4")
    def rows(cls) -> Rows:
        """Each array on each machine, and how much longer NCCL takes than the best engine."""
        return [
            (
                machine.device.key.upper(),
                size,
                cls.by_nccl(machine, size),
                *(cls.by_engine(engine, machine, size) for engine in cls.engines),
                cls.over_best(machine, size),
            )
            for machine in cls.machines
            for size in cls.sizes
        ]

    @classmethod
    def best(cls, machine: Machine, size: Quantity) -> Quantity:
        """Return the time by the engine that is fastest at it."""
        return min(cls.by_engine(engine, machine, size) for engine in cls.engines)

    @classmethod
    def over_best(cls, machine: Machine, size: Quantity) -> Quantity:
        """Return how many times as long NCCL takes as the best engine."""
        return (cls.by_nccl(machine, size) / cls.best(machine, size)).to("")


class SumsOfStep(Claims):
    """A decode step's sums among the GPUs of a B200 server take less by an engine than by NCCL."""

    sums = 2 * DENSE.layers | by_hand("2 * 80")

    server = SumsOfEngines.machines[1]
    size = SumsOfEngines.batch_of_64

    nccl = SumsOfEngines.by_nccl(server, size)
    best = SumsOfEngines.best(server, size)
    by_nccl = (sums * nccl).to("ms") | by_hand(
        "160 * 50.89 us", "160 times 50.89 µs at 2^20 byte; Bekman 2026"
    )
    by_best = (sums * best).to("ms") | by_hand("160 * 15.0 µs")


class SumsInSwitch(Claims):
    """An all-reduce gains by sums in the switches of a server, and the other collectives do not."""

    bus = quantity(max(curves.get("allreduce-8xh100-dgxc").bus_bandwidths), "byte/s").to(
        "GB/s"
    ) | by_hand("480.1605 GB/s")
    measured = (GradientExchange.traffic / bus).to("ms") | by_hand("24.5 GB / 480.1605 GB/s")
    gather = quantity(
        deferred(published.row)("h200-16gib-all_gather").measured["busbw"], "GB/s"
    ) | by_hand("361.4 GB/s", "Bekman 2026")
    scatter = quantity(
        deferred(published.row)("h200-16gib-reduce_scatter").measured["busbw"], "GB/s"
    ) | by_hand("362.9 GB/s", "Bekman 2026")

    @classmethod
    @row_by_hand("8 B200 | 838 GB/s | 682 GB/s | 1.23")
    def rows(cls) -> Rows:
        """GPUs, the bus bandwidth with NVLS and on a ring, and the gain."""
        pairs: list[tuple[str, float, float]] = [
            (
                f"{row['num_devices']} {row.device.removeprefix('NVIDIA ')}",
                row.measured["busbw_default"],
                row.measured["busbw_nvls_off"],
            )
            for row in map(published.row, ("allreduce-nvls-h200-6", "allreduce-nvls-b200-8"))
        ]
        switch, ring = (
            published.row(f"h200-16gib-all_reduce{end}").measured["busbw"] for end in ("", "-2")
        )
        pairs.append(("8 H200", switch, ring))
        return [
            (name, quantity(switch, "GB/s"), quantity(ring, "GB/s"), switch / ring)
            for name, switch, ring in sorted(pairs)
        ]


class FourCollectives(Claims):
    """All-gather, reduce-scatter and all-to-all send half of what an all-reduce sends.

    Sharding weights too costs two all-gathers and a reduce-scatter: half as much again.
    """

    size = GradientExchange.gradients
    devices = GradientExchange.devices
    link = GradientExchange.link, GradientExchange.latency

    half = collectives.all_gather_traffic(size, devices)
    whole = GradientExchange.traffic
    sharded = (3 * half / whole).to("") | by_hand(
        "3 / 2", "three halves over two; Rajbhandari et al. 2020, section 7"
    )
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
    ) | row_by_hand(
        "All-gather | a part → every part | = 7/8 * 14 GB | = 7/8 * 14 GB / 450 GB/s + 3.5 us"
    )


class TwoNetworks(Claims):
    """A server sends by a port for each GPU: summing inside first saves bytes of the ports."""

    machine = Servers.machine
    size = GradientExchange.gradients
    per_node = machine.domain
    nodes = 8
    port = Servers.port | by_hand("400 Gbit/s")

    devices = per_node * nodes | by_hand("8 * 8")
    leaving = (per_node * port).to("GB/s") | by_hand("400 GB/s")
    link_ratio = (GradientExchange.link / port).to("") | by_hand("450 / 50")
    rings = collectives.all_ports_all_reduce(
        size, per_node, nodes, GradientExchange.link, port, Servers.latency
    ) | by_hand("126 * (2.7 µs + 14 GB/64/400 GB/s)")
    latencies = GradientExchange.latency, Servers.latency  # in a server and between them
    time = collectives.chunked_hierarchical_all_reduce(
        size, per_node, nodes, GradientExchange.link, port, *latencies
    ) | by_hand("14/8 * 1.75 GB / 50 GB/s + 37.8 us")
    by_flat_rings = collectives.all_reduce_traffic(size, devices) / per_node | by_hand(
        "126 / 64 * 14 GB / 8"
    )
    by_hierarchy = collectives.all_reduce_traffic(size / per_node, nodes) | by_hand(
        "14 / 8 * 14 GB / 8"
    )
    fewer_bytes = (1 - by_hierarchy / by_flat_rings).to("%") | by_hand("1 - 3.0625 / 3.445313")
    rounds = 2 * (devices - 1) | by_hand("2 * 63")
    fewer_rounds = 2 * (per_node - 1) + 2 * (nodes - 1) | by_hand("2 * 7 + 2 * 7")
    found = communication.time("all_reduce", size, devices, machine)
    expected = found.expected.to("ms") | by_hand("14e9 / 2**33 * 52.754 ms")  # type: ignore[union-attr]
    measured_devices = found.measured[0].devices | by_hand("64")
    reached = collectives.bus_bandwidth(size, expected, devices).to("GB/s") | by_hand(
        "126/64 * 2**33 byte / 52.754 ms"
    )
    reached_share = (reached / leaving).to("%") | by_hand("320.5716 / 400")


class TreeOrRing(Claims):
    """A tree of eight sums in six rounds, where a ring takes fourteen steps."""

    devices = GradientExchange.devices
    most = 1024

    steps = 2 * (devices - 1) | by_hand("2 * (8 - 1)")
    rounds = 2 * math.ceil(math.log2(devices)) | by_hand("2 * 3")
    most_steps = 2 * (most - 1) | by_hand("2 * 1023")
    most_rounds = 2 * math.ceil(math.log2(most)) | by_hand("2 * 10")


class InAndBetween(Claims):
    """A hierarchical sum sends most of its bytes inside servers."""

    within = collectives.all_gather_traffic(TwoNetworks.size, TwoNetworks.per_node).to(
        "GB"
    ) | by_hand("7 / 8 * 14 GB")
    part = (TwoNetworks.size / TwoNetworks.per_node).to("GB") | by_hand("14 GB / 8")


class OnTorus(Claims):
    """On a torus sums use all links; an all-to-all is bound by what crosses its middle."""

    machine = machines.get("tpu-v7-pod")
    devices = 64
    larger = 512
    side, larger_side = 4, 8
    size = quantity("1 GB")

    links = machine.bandwidth
    link = (links / (2 * len(machine.sides))).to("GB/s") | by_hand("600 GB/s / 6")
    exchange = (size / communication.least_time("all_to_all", size, devices, machine)).to(
        "GB/s"
    ) | by_hand("8 * 100 GB/s / 4")
    larger_exchange = (size / communication.least_time("all_to_all", size, larger, machine)).to(
        "GB/s"
    ) | by_hand("16 * 100 GB/s / 16")
    switched = (links / exchange).to("") | by_hand("600 / 200")


class Overlap(Claims):
    """A step takes at least its longer part and at most the sum of both."""

    parameters = GradientExchange.parameters
    tokens = quantity("8192 token")
    utilization = 0.4
    backward = 1 - constants.work_inference / constants.work_training | by_hand("4 / 6")

    peak = GradientExchange.h100.peak("bf16")
    compute = training.training_time(parameters, tokens, 1, peak, utilization).to("ms")
    communication = TwoNetworks.expected
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%") | by_hand(
        "869.727 / 955.7062"
    )
    break_even = (tokens * (communication / (backward * compute))).to("token") | by_hand(
        "(8192 * {TwoNetworks.expected} / (2/3 * {LastDoubling.arithmetic})) token"
    )


class Thresholds(Claims):
    """Tokens that hide an exchange: a device's FLOP/s over its bandwidth, and a mixture's share."""

    devices = TwoNetworks.devices | by_hand("8 * 8")
    servers = TwoNetworks.nodes | by_hand("8")
    size = HidingTokens.large
    slices = TensorLimit.inside

    @classmethod
    def row(cls, machine: Machine) -> Row:
        """The machine, its rates, the tokens of a dense model and of a mixture, and sums of TP."""
        rate = machine.likely("gemm", "bf16")
        expected = communication.time("all_reduce", cls.size, cls.devices, machine).needed
        busbw = collectives.bus_bandwidth(cls.size, expected, cls.devices).to("GB/s")
        dense = HidingTokens.planned(machine, cls.devices)
        assert dense is not None
        mixture = dense * (MIXTURE.parameters / MIXTURE.active_parameters)
        most = TensorLimit.planned(machine, cls.slices)
        assert most is not None
        sums = ((cls.slices - 1) / (most - 1)).to("%")
        return machine.device.name, rate.to("TFLOP/s"), busbw, dense, mixture, sums

    @classmethod
    @row_by_hand(
        "NVIDIA B200 SXM, in HGX B200 | 1700 TFLOP/s | 300 GB/s | 5600 tokens | 100 000 tokens"
        " | 50%"
    )
    def rows(cls) -> Rows:
        """Servers of two generations, and a rack."""
        return [cls.row(machines.get(key)) for key in ("dgx-h200", "dgx-b200", "gb200-nvl72")]


class BenchmarkLine(Claims):
    """An algbw says less or more about the links, by the collective."""

    size = quantity("1 GB")
    time = quantity("5 ms")
    devices = 8

    bus = collectives.bus_bandwidth(size, time, devices) | by_hand("(14/8 * 200) GB/s")
    bus_of_gather = bus / 2 | by_hand("(7/8 * 200) GB/s")
    share = (bus / GradientExchange.link).to("%") | by_hand("350 / 450")


class FasterStep(Claims):
    """Problem 2: hiding the exchange beats paying for a wider network."""

    tokens = quantity("2048 token")

    compute = training.training_time(
        Overlap.parameters, tokens, 1, Overlap.peak, Overlap.utilization
    ).to("ms")
    communication = TwoNetworks.expected
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%") | by_hand(
        "217.4317 / 303.4109"
    )
    servers = TwoNetworks.size, TwoNetworks.per_node, TwoNetworks.nodes
    wider_floor = collectives.chunked_hierarchical_all_reduce(
        *servers, GradientExchange.link, 2 * TwoNetworks.port, *TwoNetworks.latencies
    )
    wider = communication * (wider_floor / TwoNetworks.time)
    efficiency_wider = collectives.scaling_efficiency(compute, wider, 0).to("%") | by_hand(
        "6 * 7e9 * 2048 / 395.6e12 * 1 s / (6 * 7e9 * 2048 / 395.6e12 * 1 s + "
        "{TwoNetworks.expected} * {GradientExchange.ring} / {TwoNetworks.time})"
    )
    times_the_tokens = whole((Overlap.tokens / tokens).m_as("")) | by_hand("8192 / 2048")
    efficiency_hidden = collectives.scaling_efficiency(
        compute, communication, 1, Overlap.backward
    ).to("%") | by_hand("217.4317 / (217.4317 + most(0, 85.97923 - 2/3 * 217.4317))")


class OnePort(Claims):
    """A plan that forgets seven ports of eight asks for eight times the tokens."""

    planned = collectives.ring_all_reduce(
        TwoNetworks.size, TwoNetworks.devices, TwoNetworks.port, Servers.latency
    ) | by_hand("126/64 * 280 ms + 126 * 2.7 us")
    planned_tokens = (Overlap.tokens * (planned / Overlap.compute)).to("token") | by_hand(
        "(8192 * 551.5902 / 869.727) token"
    )
    ratio = (planned / TwoNetworks.rings).to("") | by_hand("551.5902 / 69.24645")
    idle = TwoNetworks.per_node - 1 | by_hand("8 - 1")
