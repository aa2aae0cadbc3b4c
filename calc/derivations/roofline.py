"""What the chapter "The roofline" quotes."""

from __future__ import annotations

from statistics import median
from typing import Any

from calc import constants, hardware, machines, models, roofline, training, transformer
from calc.core.arrays import Number
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import Quoted, show
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

    a100 = hardware.get("a100")
    peak = a100.peak("fp16")
    bandwidth = a100.memory_bandwidth
    width = 4096
    element_size = A100Roofline.element_size
    batches = (1, 16, 64, 256, 1024, 4096)

    ridge_point = A100Roofline.ridge_point
    critical_batch_by_weights = roofline.critical_batch_by_weights(ridge_point, element_size)
    critical_batch = roofline.critical_batch(ridge_point, width, width, element_size)

    @classmethod
    def row(cls, batch: int) -> tuple[int, Quantity, Quantity, Quoted, str]:
        """Intensity by weights and in full, attainable share of the peak, and what binds."""
        by_weights = roofline.weights_only_intensity(batch, cls.element_size)
        layer = roofline.gemm(batch, cls.width, cls.width, cls.element_size)
        share = roofline.utilization(cls.peak, cls.bandwidth, layer.intensity).to("%")
        binding = layer.on(cls.a100, "fp16").bound
        return batch, by_weights, layer.intensity, show(share, digits=3), binding


class DecodeStep:
    """At batch 1 every weight is read for two operations, so that decoding is memory-bound."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    parameters = quantity("7B param")
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
    step_time_by_hand = quantity(14 / 3.3, "ms")
    tokens_per_second = (quantity("1 token") / step_time).to("token/s")
    context = 1000
    cache_per_token = transformer.kv_cache_per_token(models.get("llama-2-7b")).to("kB/token")
    cache = (large_batch * context * quantity("1 token") * cache_per_token).to("GB")
    large_step = roofline.Workload(operations * large_batch, weights + cache)
    large_intensity = large_step.intensity
    large_step_time = large_step.on(h100, "fp16").lower
    large_tokens_per_second = (quantity(large_batch, "token") / large_step_time).to("token/s")
    large_gain = large_tokens_per_second / tokens_per_second


class BatchOfRequests:
    """Keys and values, which no request shares, end the gain of a batch before the ridge does."""

    a100 = hardware.get("a100")
    peak = A100Roofline.peak
    bandwidth = A100Roofline.bandwidth
    weights = DecodeStep.weights
    operations = DecodeStep.operations
    cache_per_token = DecodeStep.cache_per_token
    short_context = 1000
    contexts = (short_context, 4000)

    weights_time = (weights / bandwidth).to("ms")
    short_cache = (short_context * quantity("1 token") * cache_per_token).to("GB")
    short_most = int(((a100.memory_capacity - weights) / short_cache).m_as(""))
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
        room = cls.a100.memory_capacity - cls.weights
        return int((room / (quantity(context, "token") * cls.cache_per_token)).m_as(""))


def large_products(machine: str, side: int) -> list[tuple[float, float]]:
    """Intensities and rates, in FLOP/byte and TFLOP/s, of products with weights of that side."""
    points = []
    for product in products.measured(machine):
        if min(product.n, product.k) >= side:
            work = roofline.gemm(product.m, product.n, product.k, A100Roofline.element_size)
            points.append((work.intensity.m_as("FLOP/byte"), product.rate.m_as("TFLOP/s")))
    return points


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

    dots = large_products(machine.key, side)
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


class ThreeOffers:
    """A layer left of the ridge gains nothing from arithmetic, most from smaller numbers."""

    peak = A100Roofline.peak
    bandwidth = A100Roofline.bandwidth
    width = BatchSize.width
    batch = 64
    element_size = A100Roofline.element_size
    more_bandwidth = 1.5

    layer = roofline.gemm(batch, width, width, element_size)
    intensity = layer.intensity
    smaller = roofline.Workload(layer.operations, layer.traffic / 2)
    now = layer.between(peak, bandwidth).lower
    gain_of_peak = now / layer.between(2 * peak, bandwidth).lower
    gain_of_bandwidth = now / layer.between(peak, more_bandwidth * bandwidth).lower
    gain_of_smaller_numbers = now / smaller.between(peak, bandwidth).lower
    by_hand = quantity(2 * 64 / 2, "FLOP/byte")


class UnsharedCaches:
    """A plan that reads the weights once for all requests, and forgets what each brings along."""

    batch = DecodeStep.large_batch
    context = 2000

    planned = batch * DecodeStep.tokens_per_second
    cache = (batch * context * quantity("1 token") * DecodeStep.cache_per_token).to("GB")
    step = roofline.Workload(DecodeStep.operations * batch, DecodeStep.weights + cache)
    step_time = step.on(DecodeStep.h100, "fp16").lower
    tokens_per_second = (quantity(batch, "token") / step_time).to("token/s")
    overstated = planned / tokens_per_second
    by_hand = quantity(64 / ((14 + 64) / 3.4e3), "token/s")
