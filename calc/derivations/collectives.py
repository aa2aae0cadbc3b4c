"""What the chapter "Collectives" quotes."""

from __future__ import annotations

from typing import NamedTuple

from calc import (
    collectives,
    communication,
    constants,
    curves,
    hardware,
    machines,
    parallelism,
    published,
    training,
)
from calc.catalog import engine_sums
from calc.catalog.machines import Machine
from calc.core.units import Quantity, quantity
from calc.derivations.examples import DENSE, MIXTURE
from calc.derivations.quoting import Row, Rows


class GradientExchange:
    """Eight GPUs that train one model exchange its gradients at each step, best on a ring."""

    parameters = quantity("7B param")
    each = constants.size_gradient_fp16
    h100 = hardware.get("h100")
    devices = 8
    link = h100.link_bandwidth
    latency = constants.latency_nccl_step_nvlink
    measured_bandwidth = constants.bandwidth_ring_busbw_h100

    gradients = training.model_memory(parameters, each)
    traffic = collectives.all_reduce_traffic(gradients, devices)
    ring = collectives.ring_all_reduce(gradients, devices, link, latency)
    at_measured_bandwidth = collectives.ring_all_reduce(
        gradients, devices, measured_bandwidth, latency
    )


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


class Servers:
    """Servers of H100s: what leaves one, and a step of a ring between them as NCCL counts it."""

    machine = machines.get("dgx-h100")
    port = machine.ports.to("GB/s")
    latency = constants.latency_nccl_step_network


class Fitted:
    """One latency and one bandwidth, read off the two ends of a measured curve."""

    small = quantity("1 kB")

    def __init__(self, name: str) -> None:
        self.curve = curves.get(name)
        self.devices = self.curve.devices
        self.alpha = quantity(self.curve.time(self.small.m_as("byte")), "s").to("µs")
        self.beta = quantity(max(self.curve.bus_bandwidths), "byte/s").to("GB/s")
        self.half = quantity(self.curve.half_size, "byte").to("MB")
        self.half_by_fit = (self.alpha * self.beta * self.devices / (2 * (self.devices - 1))).to(
            "MB"
        )


class NcclModel:
    """NCCL's own cost of a short array: a base, and steps; without the base it is half of it."""

    base = constants.latency_nccl_base_ring
    step = constants.latency_nccl_step_nvlink
    step_simple = constants.latency_nccl_step_nvlink_large
    steps = 2 * (GradientExchange.devices - 1)

    start = (base + steps * step).to("µs")
    measured = Fitted("allreduce-8xh100-dgxc").alpha


class MeasuredAllReduce:
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
    least_alpha = min(alphas)
    most_alpha = max(alphas)
    halves = tuple(link.half for _, link in fitted)
    least_half = min(halves)
    most_half = max(halves)
    most_devices = max(link.devices for _, link in fitted)
    half_by_fit = fitted[2][1].half_by_fit
    half = fitted[2][1].half


class SumsOfEngines:
    """Engines add up short arrays in a graph, several times as fast as NCCL does in a benchmark."""

    machines = tuple(machines.get(key) for key in ("dgx-h200", "dgx-b200"))
    devices = 8
    engines = ("vllm", "sglang", "tensorrt-llm")
    sizes = quantity("125 kB"), *(quantity(size, "MB") for size in (1, 8, 64))
    batch = 64
    width = DENSE.width

    largest = sizes[-1]
    batch_of_64 = (batch * width * quantity("2 byte")).to("MB")

    @classmethod
    def by_nccl(cls, machine: Machine, size: Quantity) -> Quantity:
        """By NCCL's curve."""
        return communication.time("all_reduce", size, cls.devices, machine).needed.to("µs")

    @classmethod
    def by_engine(cls, engine: str, machine: Machine, size: Quantity) -> Quantity:
        """By an engine's newest kernels."""
        kernel = engine_sums.of(machine.device.key, engine, cls.devices)
        assert kernel is not None
        return quantity(kernel.time(size.m_as("byte")), "s").to("µs")

    @classmethod
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
        """By the engine that is fastest at it."""
        return min(cls.by_engine(engine, machine, size) for engine in cls.engines)

    @classmethod
    def over_best(cls, machine: Machine, size: Quantity) -> Quantity:
        """How much longer NCCL takes than the best engine."""
        return (cls.by_nccl(machine, size) / cls.best(machine, size)).to("")


class SumsOfStep:
    """What a decode step's sums take among the GPUs of a B200 server, by NCCL and by an engine."""

    sums = 2 * DENSE.layers

    server = SumsOfEngines.machines[1]
    size = SumsOfEngines.batch_of_64

    nccl = SumsOfEngines.by_nccl(server, size)
    best = SumsOfEngines.best(server, size)
    by_nccl = (sums * nccl).to("ms")
    by_best = (sums * best).to("ms")


class SumsInSwitch:
    """The same server with sums in its switches and without: an all-reduce gains, others do not."""

    gather = quantity(published.row("h200-16gib-all_gather").measured["busbw"], "GB/s")
    scatter = quantity(published.row("h200-16gib-reduce_scatter").measured["busbw"], "GB/s")

    @classmethod
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


class FourCollectives:
    """All-gather, reduce-scatter and all-to-all send half of what an all-reduce sends.

    Sharding weights too costs two all-gathers and a reduce-scatter: half as much again.
    """

    size = GradientExchange.gradients
    devices = GradientExchange.devices
    link = GradientExchange.link, GradientExchange.latency

    half = collectives.all_gather_traffic(size, devices)
    whole = GradientExchange.traffic
    sharded = (3 * half / whole).to("")
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


class TwoNetworks:
    """A server sends by a port for each GPU: summing inside first saves rounds, and not bytes."""

    machine = Servers.machine
    size = GradientExchange.gradients
    per_node = machine.domain
    nodes = 8
    port = Servers.port

    devices = per_node * nodes
    leaving = (per_node * port).to("GB/s")
    link_ratio = (GradientExchange.link / port).to("")
    rings = collectives.all_ports_all_reduce(
        size, per_node, nodes, GradientExchange.link, port, Servers.latency
    )
    latencies = GradientExchange.latency, Servers.latency  # in a server and between them
    time = collectives.chunked_hierarchical_all_reduce(
        size, per_node, nodes, GradientExchange.link, port, *latencies
    )
    rounds = 2 * (devices - 1)
    fewer_rounds = 2 * (per_node - 1) + 2 * (nodes - 1)
    found = communication.time("all_reduce", size, devices, machine)
    expected = found.expected.to("ms")  # type: ignore[union-attr]
    measured_devices = found.measured[0].devices
    reached = collectives.bus_bandwidth(size, expected, devices).to("GB/s")
    reached_share = (reached / leaving).to("%")


class Overlap:
    """A step takes at least its longer part and at most the sum of both."""

    parameters = GradientExchange.parameters
    tokens = quantity("8192 token")
    utilization = 0.4
    backward = 1 - constants.work_inference / constants.work_training

    peak = GradientExchange.h100.peak("bf16")
    compute = training.training_time(parameters, tokens, 1, peak, utilization).to("ms")
    communication = TwoNetworks.expected
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%")
    break_even = (tokens * (communication / (backward * compute))).to("token")


class Thresholds:
    """Tokens that hide an exchange: a device's FLOP/s over its bandwidth, and a mixture's share."""

    devices = TwoNetworks.devices
    utilization = Overlap.utilization
    size = GradientExchange.gradients
    slices = 8
    block = 3 * DENSE.width * DENSE.feed_forward_width

    @classmethod
    def row(cls, machine: Machine) -> Row:
        """The machine, its rates, the tokens of a dense model and of a mixture, and sums of TP."""
        rate = cls.utilization * machine.device.peak("bf16")
        expected = communication.time("all_reduce", cls.size, cls.devices, machine).needed
        busbw = collectives.bus_bandwidth(cls.size, expected, cls.devices).to("GB/s")
        dense = parallelism.data_parallel_tokens(cls.devices, rate, busbw).to("token")
        mixture = dense * (MIXTURE.parameters / MIXTURE.active_parameters)
        most = parallelism.tensor_parallel_limit(cls.block, DENSE.width, rate, machine.bandwidth)
        sums = ((cls.slices - 1) / (most - 1)).to("%")
        return machine.device.name, rate.to("TFLOP/s"), busbw, dense, mixture, sums

    @classmethod
    def rows(cls) -> Rows:
        """Servers of two generations, and a rack."""
        return [cls.row(machines.get(key)) for key in ("dgx-h200", "dgx-b200", "gb200-nvl72")]


class BenchmarkLine:
    """What an algbw says about the links depends on the collective."""

    size = quantity("1 GB")
    time = quantity("5 ms")
    devices = 8

    bus = collectives.bus_bandwidth(size, time, devices)
    bus_of_gather = bus / 2
    share = (bus / GradientExchange.link).to("%")


class FasterStep:
    """Problem 2: hiding the exchange beats paying for a wider network."""

    tokens = quantity("2048 token")

    compute = training.training_time(
        Overlap.parameters, tokens, 1, Overlap.peak, Overlap.utilization
    ).to("ms")
    communication = TwoNetworks.expected
    efficiency = collectives.scaling_efficiency(compute, communication, 0).to("%")
    servers = TwoNetworks.size, TwoNetworks.per_node, TwoNetworks.nodes
    wider_floor = collectives.chunked_hierarchical_all_reduce(
        *servers, GradientExchange.link, 2 * TwoNetworks.port, *TwoNetworks.latencies
    )
    wider = communication * (wider_floor / TwoNetworks.time)
    efficiency_wider = collectives.scaling_efficiency(compute, wider, 0).to("%")
    efficiency_hidden = collectives.scaling_efficiency(
        compute, communication, 1, Overlap.backward
    ).to("%")


class OnePort:
    """A plan that forgets seven ports of eight asks for eight times the tokens."""

    planned = collectives.ring_all_reduce(
        TwoNetworks.size, TwoNetworks.devices, TwoNetworks.port, Servers.latency
    )
    planned_tokens = (Overlap.tokens * (planned / Overlap.compute)).to("token")
    ratio = (planned / TwoNetworks.rings).to("")
    idle = TwoNetworks.per_node - 1
