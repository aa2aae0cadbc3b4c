"""Claims of the chapter "The roofline and the iron law"."""

from __future__ import annotations

from statistics import median
from typing import Any

from calc import constants, formats, hardware, machines, roofline, training, transformer
from calc.catalog.machines import Machine
from calc.core.arrays import Number
from calc.core.units import Quantity, quantity
from calc.derivations.bases import ServedMemory
from calc.derivations.by_hand import by_hand, row_by_hand, text_by_hand
from calc.derivations.examples import DENSE, HAND, MACHINES
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Cell, Quoted, Row, Rows, show
from calc.derivations.traces import whole
from calc.published import product_rows


class A100Roofline(Claims):
    """On an A100 a large matrix product is bound by arithmetic, a ReLU by memory."""

    a100 = hardware.get("a100")
    peak = a100.peak("fp16")
    vector_peak = a100.vector_peak("fp16")
    bandwidth = a100.memory_bandwidth
    n = 4096
    element_size = quantity("2 byte")

    ridge_point = roofline.ridge_point(peak, bandwidth) | by_hand("(312 / 2.039) FLOP/byte")
    gemm = roofline.gemm(n, n, n, element_size)
    gemm_intensity = gemm.intensity | by_hand("(4096 / 3) FLOP/byte")
    gemm_bound = gemm.on(a100, "fp16").bound | text_by_hand(
        "compute", "{gemm_intensity} > {ridge_point}"
    )
    gemm_time = gemm.on(a100, "fp16").lower | by_hand("2 * 4096**3 FLOP / 312e12 FLOP/s")
    relu = roofline.elementwise(n**2, element_size=element_size)
    relu_intensity = relu.intensity | by_hand("(1 / 4) FLOP/byte")
    relu_bound = relu.on(a100, "fp16").bound | text_by_hand(
        "memory", "{relu_intensity} < {ridge_point}"
    )
    relu_attainable = roofline.attainable(peak, bandwidth, relu_intensity) | by_hand(
        "(2039 / 4) GFLOP/s"
    )
    relu_share_of_vector_peak = roofline.utilization(
        vector_peak, bandwidth, relu_intensity
    ) | by_hand("0.50975 / 78")
    relu_time = relu.between(vector_peak, bandwidth).lower
    relu_share_of_operations = (relu.operations / gemm.operations).to("%") | by_hand("1 / 8192")
    relu_share_of_time = (relu_time / (relu_time + gemm_time)).to("%") | by_hand(
        "{FusedMatmulRelu.relu_time} / ({FusedMatmulRelu.relu_time} + {gemm_time})"
    )


class FusedMatmulRelu(Claims):
    """Fusing the ReLU into the product saves all of its time, which matters to a thin product."""

    a100 = hardware.get("a100")
    n = A100Roofline.n
    inner = 64
    element_size = A100Roofline.element_size
    l2 = a100.on_chip_memory

    matrix_size = roofline.elementwise_traffic(n**2, 1, element_size).to("MiB") | by_hand(
        "2**24 * 2 byte"
    )
    relu_time = A100Roofline.relu_time | by_hand("4 * 4096**2 byte / 2.039e12 B/s")
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
    ) | row_by_hand("4096 | 1365 FLOP/byte | 441 µs | 473 µs | 1.07")


class BatchSize(Claims):
    """The batch lifts a layer's intensity, until inputs and outputs outweigh the weights."""

    h200 = hardware.get("h200")
    peak = h200.peak("bf16")
    bandwidth = h200.memory_bandwidth
    width = 4096
    element_size = A100Roofline.element_size
    batches = (1, 16, 64, 256, 1024, 4096)

    ridge_point = h200.ridge_point("bf16") | by_hand("(989 / 4.8) FLOP/byte")
    critical_batch_by_weights = roofline.critical_batch_by_weights(
        ridge_point, element_size
    ) | by_hand("989 / 4.8")
    critical_batch = roofline.critical_batch(ridge_point, width, width, element_size) | by_hand(
        "4096 * 989 / 4.8 / (4096 - 2 * 989 / 4.8)"
    )

    @classmethod
    @row_by_hand("64 | 64 FLOP/byte | 62.06 FLOP/byte | 30.1% | memory")
    def row(cls, batch: int) -> tuple[int, Quantity, Quantity, Quoted, str]:
        """Intensity by weights and in full, attainable share of the peak, and what binds."""
        by_weights = roofline.weights_only_intensity(batch, cls.element_size)
        layer = roofline.gemm(batch, cls.width, cls.width, cls.element_size)
        share = roofline.utilization(cls.peak, cls.bandwidth, layer.intensity).to("%")
        binding = layer.on(cls.h200, "bf16").bound
        return batch, by_weights, layer.intensity, show(share, digits=3), binding


class DecodeStep(Claims):
    """At batch 1 every weight is read for two operations, so that decoding is memory-bound."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    parameters = quantity("8B param")
    bytes_per_parameter = training.recipe("inference-fp16").bytes_per_parameter
    large_batch = 64

    weights = training.model_memory(parameters, bytes_per_parameter) | by_hand("8e9 * 2 byte")
    operations = training.inference_flops(parameters) | by_hand("8e9 * 2 FLOP")
    step = roofline.Workload(operations, weights)
    intensity = step.intensity | by_hand("2 FLOP / 2 bytes")
    ridge_point = h100.ridge_point("fp16") | by_hand("(989 / 3.35) FLOP/byte")
    attainable = roofline.attainable(peak, bandwidth, intensity) | by_hand(
        "3.35 TB/s * 1 FLOP/byte"
    )
    share_of_peak = roofline.utilization(peak, bandwidth, intensity) | by_hand("3.35 / 989")
    step_time = step.on(h100, "fp16").lower | by_hand("16 GB / 3.35 TB/s")
    tokens_per_second = (quantity("1 token") / step_time).to("token/s") | by_hand(
        "(3350 / 16) token/s"
    )
    context = 4096
    cache_per_token = transformer.kv_cache_per_token(HAND).to("kB/token") | by_hand(
        "32 * 2 * 1024 * 2 byte/token"
    )
    cache = (large_batch * context * quantity("1 token") * cache_per_token).to("GB") | by_hand(
        "64 * 4096 * 131072 byte"
    )
    large_step = roofline.Workload(operations * large_batch, weights + cache)
    large_intensity = large_step.intensity
    large_step_time = large_step.on(h100, "fp16").lower | by_hand(
        "({weights} + {cache}) / 3.35 TB/s"
    )
    large_tokens_per_second = (quantity(large_batch, "token") / large_step_time).to("token/s")
    large_gain = large_tokens_per_second / tokens_per_second | by_hand("64 * 16 / 50.35974")


class BatchOfRequests(Claims):
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
    short_most = whole(((ServedMemory.published(h200) - weights) / short_cache).m_as("")) | by_hand(
        "floor((141 * 2**30 - 16e9) / 1000 / 131072)"
    )
    short_step = roofline.Workload(operations * short_most, weights + short_most * short_cache)
    short_slowdown = (short_step.between(peak, bandwidth).lower / weights_time).to("") | by_hand(
        "(16e9 + 1033 * 1000 * 131072) / 16e9"
    )

    @classmethod
    def step(cls, batch: Quantity | Number, context: int) -> roofline.Workload:
        """A decode step of so many requests, each with so many tokens before it."""
        cache = batch * quantity(context, "token") * cls.cache_per_token
        return roofline.Workload(cls.operations * batch, cls.weights + cache)

    @classmethod
    def slowdown(cls, batch: Quantity | Number, context: int) -> Any:
        """Return its time over that of reading the weights alone."""
        step = cls.step(batch, context)
        time = roofline.execution_time_overlapped(
            step.traffic, cls.bandwidth, step.operations, cls.peak
        )
        return (time / cls.weights_time).m_as("")

    @classmethod
    def most(cls, context: int) -> int:
        """The requests whose keys and values the memory holds beside the weights."""
        room = ServedMemory.published(cls.h200) - cls.weights
        return whole((room / (quantity(context, "token") * cls.cache_per_token)).m_as(""))


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


class MeasuredRoofline(Claims):
    """Large products that others measured follow the roof of the rates that kernels reached."""

    machine = machines.get("dgx-h100")
    peak = machine.reached("gemm", "bf16")
    bandwidth = machine.memory_reached
    l2_bandwidth = constants.bandwidth_l2_h100
    side = 4096

    dots = product_rows.large(machine.key, side)
    ridge_point = roofline.ridge_point(peak, bandwidth)
    thin_share = median_share(dots, peak, bandwidth, ridge_point, left=True) | by_hand(
        "mean(2 / 56.32e6 / 3.18 * (225 * 16384 + 225 * 4096 + 16384 * 4096), 2"
        " / 53.9e6 / 3.18 * (128 * 16384 + 128 * 4096 + 16384 * 4096))"
    )
    thin_extra = (1 / thin_share - 1).to("%") | by_hand("1 / {thin_share} - 1")
    wide_share = median_share(dots, peak, bandwidth, ridge_point, left=False) | by_hand(
        "mean(2 * 3841 * 16384 * 4096 / 688.5, 2 * 3840 * 16384 * 4096 / 687.3) / 794.5e6"
    )


class ComputeDoubled(Claims):
    """Twice the arithmetic helps only what arithmetic binds."""

    peak = A100Roofline.peak
    bandwidth = A100Roofline.bandwidth
    doubled = 2 * peak

    relu_gain = roofline.attainable(
        doubled, bandwidth, A100Roofline.relu_intensity
    ) / roofline.attainable(peak, bandwidth, A100Roofline.relu_intensity) | by_hand(
        "least(2 * 312 TFLOP/s, 0.25 FLOP/byte * 2.039 TB/s) / least(312 "
        "TFLOP/s, 0.25 FLOP/byte * 2.039 TB/s)"
    )
    gemm_gain = roofline.attainable(
        doubled, bandwidth, A100Roofline.gemm_intensity
    ) / roofline.attainable(peak, bandwidth, A100Roofline.gemm_intensity) | by_hand(
        "least(2 * 312 TFLOP/s, 4096 / 3 * 2.039 TFLOP/s) / least(312 TFLOP/s, "
        "4096 / 3 * 2.039 TFLOP/s)"
    )
    ridge_point = roofline.ridge_point(doubled, bandwidth) | by_hand("(624 / 2.039) FLOP/byte")
    by_hand = quantity(2 * 150, "FLOP/byte") | by_hand("2 * 150 FLOP/byte")


class UnsharedCaches(Claims):
    """A plan that reads the weights once for all requests, and forgets what each brings along."""

    batch = 256
    context = 2000

    planned = batch * DecodeStep.tokens_per_second | by_hand("(256 * 3.35e12 / 16e9) token/s")
    cache = (batch * context * quantity("1 token") * DecodeStep.cache_per_token).to("GB") | by_hand(
        "256 * 2000 * 131072 bytes"
    )
    step = roofline.Workload(DecodeStep.operations * batch, DecodeStep.weights + cache)
    step_time = step.on(DecodeStep.h100, "fp16").lower | by_hand("83.10886 GB / 3.35 TB/s")
    tokens_per_second = (quantity(batch, "token") / step_time).to("token/s") | by_hand(
        "256 token / {step_time}"
    )
    overstated = planned / tokens_per_second | by_hand("83.10886 / 16")
    by_hand = quantity(256 / ((16 + 67) / 3.35e3), "token/s") | by_hand(
        "256 token / (83 GB / 3.35 TB/s)"
    )


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


class NetworkRoof(Claims):
    """A link is a memory farther away: the same division, with the bytes that are sent."""

    cut = 8
    inner = DENSE.feed_forward_width
    element_size = quantity("2 byte")

    # Three products of width × inner for each token, shared by the devices, and one all-reduce.
    intensity = (quantity(3, "FLOP") * inner / ((cut - 1) * element_size)).to(
        "FLOP/byte"
    ) | by_hand("(3 * 28672 / (2 * 7)) FLOP/byte")
    header = (
        *("Machine", "Ridge of memory", "of the wire", "of a port"),
        *("Slower over the wire", "over a port"),
    )


class NetworkTable(Claims):
    """A row a machine of the running examples."""

    rows: Rows = tuple(map(_network_row, MACHINES)) | row_by_hand(
        "NVIDIA DGX H200 | 210 FLOP/byte | 2200 FLOP/byte | 20 000 FLOP/byte | 1 | 3.2"
    )
    _b200 = machines.get("dgx-b200")

    wire = (_b200.device.peak("bf16") / _b200.bandwidth).to("FLOP/byte") | by_hand(
        "(2250e12 / 900e9) FLOP/byte"
    )
    port = (_b200.device.peak("bf16") / _b200.ports).to("FLOP/byte") | by_hand(
        "(2250e12 / 50e9) FLOP/byte"
    )


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


class QuantizedRoof(Claims):
    """Smaller weights move work right; smaller products move the ridge right as well."""

    devices = ("h200", "b200", "mi355x")
    header = (
        *("Weights and products", "Weights of 8B", "Token on an H200, at least"),
        *("Ridge as a batch: H200", "B200", "MI355X"),
    )


class QuantizedTable(Claims):
    """A row a pair of formats."""

    rows: Rows = (
        _format_row("BF16, BF16", "bf16", "bf16"),
        _format_row("FP8, BF16", "fp8-e4m3", "bf16"),
        _format_row("NVFP4 or MXFP4, BF16", "nvfp4", "bf16"),
        _format_row("FP8, FP8", "fp8-e4m3", "fp8"),
        _format_row("NVFP4 or MXFP4, the same", "nvfp4", "fp4"),
    ) | row_by_hand("FP8, BF16 | 8 GB | 1.7 ms | 100 | 150 | 160")
    narrow = roofline.critical_batch_by_weights(
        BatchSize.ridge_point, formats.get("nvfp4").size
    ) | by_hand("206.0417 * 4.5 / 16")


class EagerDecode(Claims):
    """A published decode step in eager PyTorch and as a graph, beside its bound."""

    eager = constants.latency_decode_8b_h100_eager
    graph = constants.latency_decode_8b_h100_graph
    operator_least = constants.latency_eager_operator_least
    operator_most = constants.latency_eager_operator_most

    bound = DecodeStep.step_time
    eager_over_bound = (eager / bound).to("") | by_hand("8.4 / 4.776119")
    graph_over_bound = (graph / bound).to("") | by_hand("5.1 / 4.776119")


GRAPH_NODE = machines.get("dgx-h100").reached("launch", "a graph")
"""Time of a short kernel in a graph."""


class IronLaw(Claims):
    """The sum and the larger of the terms bound the truth, at most a factor of two apart."""

    peak = DecodeStep.peak
    bandwidth = DecodeStep.bandwidth
    weights = DecodeStep.weights
    batch = 256

    operations = DecodeStep.operations * batch
    memory_time = (weights / bandwidth).to("ms") | by_hand("16 GB / 3.35 TB/s")
    arithmetic_time = (operations / peak).to("ms") | by_hand("256 * 16 GFLOP / 989 TFLOP/s")
    step = roofline.Workload(operations, weights).between(peak, bandwidth)
    added = step.upper | by_hand("(4.776 + 4.142) ms")
    overlapped = step.lower | by_hand("most({memory_time}, {arithmetic_time})")
    added_per_overlapped = added / overlapped | by_hand("8.918 / 4.776")


class SmallLayer(Claims):
    """A narrow layer takes less time to run than to start."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    element_size = quantity("2 byte")
    launch = constants.latency_eager_operator_least
    width = 1024
    layers = 100

    layer = roofline.gemm(1, width, width, element_size)
    memory_time = (layer.traffic / bandwidth).to("µs") | by_hand(
        "(1024**2 + 2 * 1024) * 2 byte / 3.35 TB/s"
    )
    network_time = roofline.launched_time(layers, memory_time, launch).to("µs") | by_hand(
        "100 * 5 µs"
    )
    node = GRAPH_NODE | by_hand("1.26 us")
    network_time_launched_once = (
        launch + roofline.launched_time(layers, memory_time, "0 s", node)
    ).to("µs") | by_hand("5 us + 100 * ({memory_time} + 1.26 us)")
    gain = network_time / network_time_launched_once | by_hand("500 / 193.7239")


class Regimes(Claims):
    """One term of the iron law is the largest, for a layer of any width and batch."""

    peak = SmallLayer.peak
    bandwidth = SmallLayer.bandwidth
    element_size = SmallLayer.element_size
    launch = SmallLayer.launch
    decode_width = 4096 | by_hand("4096")
    decode_batch = 1 | by_hand("1")
    prefill_batch = 2048 | by_hand("2048")
    small_width = SmallLayer.width
    small_batch = 32 | by_hand("32")

    ridge_point = roofline.ridge_point(peak, bandwidth)
    bytes_in_a_launch = (launch * bandwidth).to("MB") | by_hand("5 µs * 3.35 TB/s")
    operations_in_a_launch = (launch * peak).to("GFLOP") | by_hand("5 µs * 989 TFLOP/s")
    # The square layer whose weights take a launch to read; and one that takes it to compute.
    width_of_memory = ((bytes_in_a_launch / element_size).to("") ** 0.5).to("")
    # What changes move: one graph leaves the gap alone, and smaller weights are read faster.
    gap = GRAPH_NODE
    width_of_gap = ((gap * bandwidth / element_size).to("") ** 0.5).to("")
    small_element = quantity("1 byte")
    small_ridge = ridge_point * (small_element / element_size).to("")


class ThreeRepairs(Claims):
    """The repair of the launches alone has an effect where the host cannot launch fast enough."""

    bandwidth = SmallLayer.bandwidth
    peak = SmallLayer.peak
    kernels = 200
    launch = SmallLayer.launch
    traffic = quantity("1 GB")
    operations = quantity("100 GFLOP")

    node = GRAPH_NODE

    launches = (kernels * launch).to("µs") | by_hand("200 * 5 us")
    memory_time = (traffic / bandwidth).to("µs") | by_hand("1 GB / 3.35 TB/s")
    arithmetic_time = (operations / peak).to("µs") | by_hand("100 GFLOP / 989 TFLOP/s")
    nodes = (kernels * node).to("µs") | by_hand("200 * 1.26 us")
    device = memory_time + arithmetic_time + nodes
    now = roofline.launched_time(kernels, (device - nodes) / kernels, launch, node)
    one_graph = launch + device
    gain_of_one_graph = now / one_graph | by_hand("1000 / (5 + 1000 / 3.35 + 1e5 / 989 + 252)")
    then_smaller_numbers = one_graph / (one_graph - memory_time / 2) | by_hand(
        "(5 + 1000 / 3.35 + 1e5 / 989 + 252) / (5 + 500 / 3.35 + 1e5 / 989 + 252)"
    )
    then_faster_arithmetic = one_graph / (one_graph - arithmetic_time / 2) | by_hand(
        "(5 + 1000 / 3.35 + 1e5 / 989 + 252) / (5 + 1000 / 3.35 + 5e4 / 989 + 252)"
    )
    gain_by_hand = 1000 / (300 + 100 + 250) | by_hand("1000 / (300 + 100 + 250)")
