"""What the chapter "The roofline and the iron law" quotes."""

from __future__ import annotations

from statistics import median
from typing import Any

from calc import constants, formats, hardware, machines, roofline, training, transformer
from calc.catalog.machines import Machine
from calc.core.arrays import Number
from calc.core.units import Quantity, quantity
from calc.derivations.examples import DENSE, HAND, MACHINES
from calc.derivations.quoting import Cell, Quoted, Row, Rows, show
from calc.published import products


class A100Roofline:
    """On an A100 a large matrix product is bound by arithmetic, a ReLU by memory."""

    a100 = hardware.get("a100")
    peak = a100.peak("fp16")
    vector_peak = a100.vector_peak("fp16")
    bandwidth = a100.memory_bandwidth
    n = 4096
    element_size = quantity("2 byte")

    ridge_point = roofline.ridge_point(peak, bandwidth)
    gemm = roofline.gemm(n, n, n, element_size)
    gemm_intensity = gemm.intensity
    gemm_bound = gemm.on(a100, "fp16").bound
    gemm_time = gemm.on(a100, "fp16").lower
    relu = roofline.elementwise(n**2, element_size=element_size)
    relu_intensity = relu.intensity
    relu_bound = relu.on(a100, "fp16").bound
    relu_attainable = roofline.attainable(peak, bandwidth, relu_intensity)
    relu_share_of_vector_peak = roofline.utilization(vector_peak, bandwidth, relu_intensity)
    relu_time = relu.between(vector_peak, bandwidth).lower
    relu_share_of_operations = (relu.operations / gemm.operations).to("%")
    relu_share_of_time = (relu_time / (relu_time + gemm_time)).to("%")


class FusedMatmulRelu:
    """Fusing the ReLU into the product saves all of its time, which matters to a thin product."""

    a100 = hardware.get("a100")
    n = A100Roofline.n
    inner = 64
    element_size = A100Roofline.element_size
    l2 = a100.on_chip_memory

    matrix_size = roofline.elementwise_traffic(n**2, 1, element_size).to("MiB")
    relu_time = A100Roofline.relu_time
    wide_separate = A100Roofline.gemm_time + relu_time
    wide_gain = wide_separate / A100Roofline.gemm_time
    thin = roofline.gemm(n, n, inner, element_size)
    thin_intensity = thin.intensity
    thin_time = thin.on(a100, "fp16").lower
    thin_separate = thin_time + relu_time
    thin_gain = thin_separate / thin_time

    rows = (
        (n, A100Roofline.gemm_intensity, A100Roofline.gemm_time, wide_separate, wide_gain),
        (inner, thin_intensity, thin_time, thin_separate, thin_gain),
    )


class BatchSize:
    """The batch lifts a layer's intensity, until inputs and outputs outweigh the weights."""

    h200 = hardware.get("h200")
    peak = h200.peak("bf16")
    bandwidth = h200.memory_bandwidth
    width = 4096
    element_size = A100Roofline.element_size
    batches = (1, 16, 64, 256, 1024, 4096)

    ridge_point = h200.ridge_point("bf16")
    critical_batch_by_weights = roofline.critical_batch_by_weights(ridge_point, element_size)
    critical_batch = roofline.critical_batch(ridge_point, width, width, element_size)

    @classmethod
    def row(cls, batch: int) -> tuple[int, Quantity, Quantity, Quoted, str]:
        """Intensity by weights and in full, attainable share of the peak, and what binds."""
        by_weights = roofline.weights_only_intensity(batch, cls.element_size)
        layer = roofline.gemm(batch, cls.width, cls.width, cls.element_size)
        share = roofline.utilization(cls.peak, cls.bandwidth, layer.intensity).to("%")
        binding = layer.on(cls.h200, "bf16").bound
        return batch, by_weights, layer.intensity, show(share, digits=3), binding


class DecodeStep:
    """At batch 1 every weight is read for two operations, so that decoding is memory-bound."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    parameters = quantity("8B param")
    bytes_per_parameter = training.recipe("inference-fp16").bytes_per_parameter
    large_batch = 64

    weights = training.model_memory(parameters, bytes_per_parameter)
    operations = training.inference_flops(parameters)
    step = roofline.Workload(operations, weights)
    intensity = step.intensity
    ridge_point = h100.ridge_point("fp16")
    attainable = roofline.attainable(peak, bandwidth, intensity)
    share_of_peak = roofline.utilization(peak, bandwidth, intensity)
    step_time = step.on(h100, "fp16").lower
    tokens_per_second = (quantity("1 token") / step_time).to("token/s")
    context = 4096
    cache_per_token = transformer.kv_cache_per_token(HAND).to("kB/token")
    cache = (large_batch * context * quantity("1 token") * cache_per_token).to("GB")
    large_step = roofline.Workload(operations * large_batch, weights + cache)
    large_intensity = large_step.intensity
    large_step_time = large_step.on(h100, "fp16").lower
    large_tokens_per_second = (quantity(large_batch, "token") / large_step_time).to("token/s")
    large_gain = large_tokens_per_second / tokens_per_second


class BatchOfRequests:
    """Keys and values, which no request shares, end the gain of a batch before the ridge does."""

    h200 = BatchSize.h200
    peak = BatchSize.peak
    bandwidth = BatchSize.bandwidth
    weights = DecodeStep.weights
    operations = DecodeStep.operations
    cache_per_token = DecodeStep.cache_per_token
    short_context = 1000
    contexts = (short_context, 4000)

    weights_time = (weights / bandwidth).to("ms")
    short_cache = (short_context * quantity("1 token") * cache_per_token).to("GB")
    short_most = int(((h200.memory_capacity - weights) / short_cache).m_as(""))
    short_step = roofline.Workload(operations * short_most, weights + short_most * short_cache)
    short_slowdown = (short_step.between(peak, bandwidth).lower / weights_time).to("")

    @classmethod
    def step(cls, batch: Quantity | Number, context: int) -> roofline.Workload:
        """A decode step of so many requests, each with so many tokens before it."""
        cache = batch * quantity(context, "token") * cls.cache_per_token
        return roofline.Workload(cls.operations * batch, cls.weights + cache)

    @classmethod
    def slowdown(cls, batch: Quantity | Number, context: int) -> Any:
        """Its time, by that of reading the weights alone."""
        step = cls.step(batch, context)
        time = roofline.execution_time_overlapped(
            step.traffic, cls.bandwidth, step.operations, cls.peak
        )
        return (time / cls.weights_time).m_as("")

    @classmethod
    def most(cls, context: int) -> int:
        """The requests whose keys and values the memory holds beside the weights."""
        room = cls.h200.memory_capacity - cls.weights
        return int((room / (quantity(context, "token") * cls.cache_per_token)).m_as(""))


def median_share(
    dots: list[tuple[float, float]],
    peak: Quantity,
    bandwidth: Quantity,
    ridge_point: Quantity,
    left: bool,
) -> Quantity:
    """The median of what dots on one side of the ridge reach of the roof above them."""
    shares = [
        (quantity(rate, "TFLOP/s") / roofline.attainable(peak, bandwidth, at)).m_as("")
        for intensity, rate in dots
        for at in [quantity(intensity, "FLOP/byte")]
        if (at < ridge_point) == left
    ]
    return quantity(median(shares), "").to("%")


class MeasuredRoofline:
    """Large products that others measured follow the roof of the rates that kernels reached."""

    machine = machines.get("dgx-h100")
    peak = machine.reached("gemm", "bf16")
    bandwidth = machine.memory_reached
    l2_bandwidth = constants.bandwidth_l2_h100
    side = 4096

    dots = products.large(machine.key, side)
    ridge_point = roofline.ridge_point(peak, bandwidth)
    thin_share = median_share(dots, peak, bandwidth, ridge_point, left=True)
    wide_share = median_share(dots, peak, bandwidth, ridge_point, left=False)


class ComputeDoubled:
    """Twice the arithmetic helps only what arithmetic binds."""

    peak = A100Roofline.peak
    bandwidth = A100Roofline.bandwidth
    doubled = 2 * peak

    relu_gain = roofline.attainable(
        doubled, bandwidth, A100Roofline.relu_intensity
    ) / roofline.attainable(peak, bandwidth, A100Roofline.relu_intensity)
    gemm_gain = roofline.attainable(
        doubled, bandwidth, A100Roofline.gemm_intensity
    ) / roofline.attainable(peak, bandwidth, A100Roofline.gemm_intensity)
    ridge_point = roofline.ridge_point(doubled, bandwidth)
    by_hand = quantity(2 * 150, "FLOP/byte")


class UnsharedCaches:
    """A plan that reads the weights once for all requests, and forgets what each brings along."""

    batch = 256
    context = 2000

    planned = batch * DecodeStep.tokens_per_second
    cache = (batch * context * quantity("1 token") * DecodeStep.cache_per_token).to("GB")
    step = roofline.Workload(DecodeStep.operations * batch, DecodeStep.weights + cache)
    step_time = step.on(DecodeStep.h100, "fp16").lower
    tokens_per_second = (quantity(batch, "token") / step_time).to("token/s")
    overstated = planned / tokens_per_second
    by_hand = quantity(256 / ((16 + 67) / 3.35e3), "token/s")


def _network_row(machine: Machine) -> Row:
    """Ridge points of memory, wire and port, and what tensor parallelism asks of the links."""
    peak = machine.device.peak("bf16")
    memory = machine.device.ridge_point("bf16")
    ridges = [
        (peak / getattr(machine, field)).to("FLOP/byte") if machine.publishes(field) else None
        for field in ("bandwidth", "ports")
    ]
    asked = NetworkRoof.intensity
    cells: list[Cell] = [ridge and show(ridge, "FLOP/byte", 2) for ridge in ridges]
    slower = [
        None if ridge is None else show(max(1.0, (ridge / asked).m_as("")), digits=2)
        for ridge in ridges
    ]
    return (machine.name, show(memory, "FLOP/byte", 2), *cells, *slower)


class NetworkRoof:
    """A link is a memory farther away: the same division, with the bytes that are sent."""

    cut = 8
    inner = DENSE.feed_forward_width
    element_size = quantity("2 byte")

    # Three products of width × inner for each token, shared by the devices, and one all-reduce.
    intensity = (quantity(3, "FLOP") * inner / ((cut - 1) * element_size)).to("FLOP/byte")
    header = (
        *("Machine", "Ridge of memory", "of the wire", "of a port"),
        *("Slower over the wire", "over a port"),
    )


class NetworkTable:
    """A row a machine of the running examples."""

    rows: Rows = tuple(map(_network_row, MACHINES))
    _b200 = machines.get("dgx-b200")

    wire = (_b200.device.peak("bf16") / _b200.bandwidth).to("FLOP/byte")
    port = (_b200.device.peak("bf16") / _b200.ports).to("FLOP/byte")


def _format_row(title: str, stored: str, computed: str) -> Row:
    """The batch at which a layer leaves the slanted roof, by device, and a token's bytes."""
    size = formats.get(stored).size
    batches = [
        show(roofline.critical_batch_by_weights(device.ridge_point(computed), size), digits=2)
        if computed in device.dtypes
        else None
        for device in map(hardware.get, QuantizedRoof.devices)
    ]
    read = (DecodeStep.parameters * size / quantity("1 param")).to("GB")
    token = (read / hardware.get("h200").memory_bandwidth).to("ms")
    return (title, show(read, "GB", 2), show(token, "ms", 2), *batches)


class QuantizedRoof:
    """Smaller weights move work right; smaller products move the ridge right as well."""

    devices = ("h200", "b200", "mi355x")
    header = (
        *("Weights and products", "Weights of 8B", "Token on an H200, at least"),
        *("Ridge as a batch: H200", "B200", "MI355X"),
    )


class QuantizedTable:
    """A row a pair of formats."""

    rows: Rows = (
        _format_row("BF16, BF16", "bf16", "bf16"),
        _format_row("FP8, BF16", "fp8-e4m3", "bf16"),
        _format_row("NVFP4 or MXFP4, BF16", "nvfp4", "bf16"),
        _format_row("FP8, FP8", "fp8-e4m3", "fp8"),
        _format_row("NVFP4 or MXFP4, the same", "nvfp4", "fp4"),
    )
    narrow = roofline.critical_batch_by_weights(BatchSize.ridge_point, formats.get("nvfp4").size)


class EagerDecode:
    """A published decode step in eager PyTorch and as a graph, beside its bound."""

    eager = constants.latency_decode_8b_h100_eager
    graph = constants.latency_decode_8b_h100_graph
    operator_least = constants.latency_eager_operator_least
    operator_most = constants.latency_eager_operator_most

    bound = DecodeStep.step_time
    eager_over_bound = (eager / bound).to("")
    graph_over_bound = (graph / bound).to("")


GRAPH_NODE = machines.get("dgx-h100").reached("launch", "a graph")
"""Time of a short kernel in a graph."""


class IronLaw:
    """The sum and the larger of the terms bound the truth, at most a factor of two apart."""

    peak = DecodeStep.peak
    bandwidth = DecodeStep.bandwidth
    weights = DecodeStep.weights
    batch = 256

    operations = DecodeStep.operations * batch
    memory_time = (weights / bandwidth).to("ms")
    arithmetic_time = (operations / peak).to("ms")
    step = roofline.Workload(operations, weights).between(peak, bandwidth)
    added = step.upper
    overlapped = step.lower
    added_per_overlapped = added / overlapped


class SmallLayer:
    """A narrow layer takes less time to run than to start."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    element_size = quantity("2 byte")
    launch = constants.latency_eager_operator_least
    width = 1024
    layers = 100

    layer = roofline.gemm(1, width, width, element_size)
    memory_time = (layer.traffic / bandwidth).to("µs")
    network_time = roofline.launched_time(layers, memory_time, launch).to("µs")
    node = GRAPH_NODE
    network_time_launched_once = (
        launch + roofline.launched_time(layers, memory_time, "0 s", node)
    ).to("µs")
    gain = network_time / network_time_launched_once


class Regimes:
    """Which term of the iron law is the largest, for a layer of any width and batch."""

    peak = SmallLayer.peak
    bandwidth = SmallLayer.bandwidth
    element_size = SmallLayer.element_size
    launch = SmallLayer.launch
    decode_width = 4096
    decode_batch = 1
    prefill_batch = 2048
    small_width = SmallLayer.width
    small_batch = 32

    ridge_point = roofline.ridge_point(peak, bandwidth)
    bytes_in_a_launch = (launch * bandwidth).to("MB")
    operations_in_a_launch = (launch * peak).to("GFLOP")
    # The square layer whose weights take a launch to read; and one that takes it to compute.
    width_of_memory = ((bytes_in_a_launch / element_size).to("") ** 0.5).to("")
    # What changes move: one graph leaves the gap alone, and smaller weights are read faster.
    gap = GRAPH_NODE
    width_of_gap = ((gap * bandwidth / element_size).to("") ** 0.5).to("")
    small_element = quantity("1 byte")
    small_ridge = ridge_point * (small_element / element_size).to("")


class ThreeRepairs:
    """Where the host cannot launch fast enough, only the repair of the launches has an effect."""

    bandwidth = SmallLayer.bandwidth
    peak = SmallLayer.peak
    kernels = 200
    launch = SmallLayer.launch
    traffic = quantity("1 GB")
    operations = quantity("100 GFLOP")

    node = GRAPH_NODE

    launches = (kernels * launch).to("µs")
    memory_time = (traffic / bandwidth).to("µs")
    arithmetic_time = (operations / peak).to("µs")
    nodes = (kernels * node).to("µs")
    device = memory_time + arithmetic_time + nodes
    now = roofline.launched_time(kernels, (device - nodes) / kernels, launch, node)
    one_graph = launch + device
    gain_of_one_graph = now / one_graph
    then_smaller_numbers = one_graph / (one_graph - memory_time / 2)
    then_faster_arithmetic = one_graph / (one_graph - arithmetic_time / 2)
    gain_by_hand = 1000 / (300 + 100 + 250)
