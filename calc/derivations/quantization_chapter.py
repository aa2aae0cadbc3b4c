"""Claims of the chapter "Quantisation".

Its data are no random sample: they are equally likely quantiles of a normal distribution, the same
on every machine, in the order that a stride with no divisor in common with their number gives.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from calc import formats, hardware, inference, machines, models, quantization, training
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, counted, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.traces import bare

Array: TypeAlias = NDArray[numpy.float64]


def normal(count: int, stride: int = 1) -> Array:
    """The quantiles, in steps of so many; of plain numbers, since each is as all others are."""
    normal, count, stride = NormalDist(), bare(count), bare(stride)
    ranks = [(index * stride % count + 0.5) / count for index in range(count)]
    return numpy.array([normal.inv_cdf(rank) for rank in ranks])


def _root_mean_square(values: Array) -> float:
    return float((values**2).mean() ** 0.5)


class ModelTooLarge(Claims):
    """In FP16 the weights do not fit, in 8 bits they do, in 4 they are read in half that time."""

    h100 = hardware.get("h100")
    capacity = h100.memory_capacity
    bandwidth = h100.memory_bandwidth
    parameters = quantity("70B param")
    fp16 = training.recipe("inference-fp16").bytes_per_parameter
    int8 = quantity("1 byte/param")
    group = 128

    int8_bits = int8.to("bit/param")
    capacity_decimal = capacity.to("GB") | by_hand("80 * 2**30 bytes")
    fp16_weights = training.model_memory(parameters, fp16) | by_hand("70e9 * 2 byte")
    int8_weights = training.model_memory(parameters, int8) | by_hand("70e9 * 1 byte")
    int4 = quantization.bytes_per_parameter("4 bit/param", group, "16 bit", "4 bit")
    int4_weights = training.model_memory(parameters, int4) | by_hand("70e9 * 4.15625 bit")
    int4_bits = int4.to("bit/param") | by_hand("(4 + (16 + 4)/128) bit/param")
    int8_time = (int8_weights / bandwidth).to("ms")
    int4_time = (int4_weights / bandwidth).to("ms") | by_hand("36.367 GB / 3.35 TB/s")


class Rounding(Claims):
    """The bounds hold on data, and nearly every error within them occurs."""

    count = 4096
    bits = 8

    weights = normal(count)
    largest = quantity(float(weights.max()), "")
    symmetric = quantization.symmetric(weights, bits)
    asymmetric = quantization.asymmetric(weights, bits)
    step = quantization.symmetric_step(largest, bits)
    mean_error = quantity(_root_mean_square(symmetric.round_trip(weights) - weights), "") | counted(
        "error of eight bits"
    )
    mean_error_expected = step / 12**0.5 | by_hand("3.66833 / 127 / sqrt(12)")
    sqnr = quantity(quantization.sqnr(weights, symmetric.round_trip(weights)), "") | by_hand(
        "20 * log10(0.99984 / 0.008324471)"
    )
    crest_factor = largest / _root_mean_square(weights) | by_hand("3.66833 / 0.99984")
    sqnr_expected = quantization.expected_sqnr(bits, crest_factor) | by_hand(
        "48.165 + 4.771 - 20 * log10(3.66892)"
    )


class Relu(Claims):
    """After a ReLU half of the symmetric codes stand for values that do not occur."""

    bits = Rounding.bits

    outputs = numpy.maximum(Rounding.weights, 0.0)
    symmetric = quantization.symmetric(outputs, bits)
    asymmetric = quantization.asymmetric(outputs, bits)


class Schemes(Claims):
    """Symmetric and asymmetric on the same data: the step, the bound, and what was found."""

    @classmethod
    @row_by_hand("ReLU outputs | asymmetric | 0.01439 | 0.007193 | 0.007176 | 0.002928")
    def row(
        cls, name: str, scheme: quantization.Scheme, data: Array, form: str
    ) -> tuple[str, str, float, float, float, float]:
        error = scheme.round_trip(data) - data
        return (
            name,
            form,
            float(scheme.scale),
            float(scheme.error_bound),
            float(abs(error).max()),
            _root_mean_square(error),
        )

    weights, outputs = Rounding.weights, Relu.outputs
    rows = (
        ("Weights", Rounding.symmetric, weights, "symmetric"),
        ("Weights", Rounding.asymmetric, weights, "asymmetric"),
        ("ReLU outputs", Relu.symmetric, outputs, "symmetric"),
        ("ReLU outputs", Relu.asymmetric, outputs, "asymmetric"),
    )


class ZeroPoint(Claims):
    """In the asymmetric form zero may be as badly off as any value; a zero point makes it exact."""

    bits = Rounding.bits

    error_of_zero = quantity(float(abs(Rounding.asymmetric.round_trip(0.0))), "") | by_hand(
        "0.5 * 2 * 3.66833 / 255"
    )
    scheme = quantization.affine(Rounding.weights, bits)
    error_of_zero_with_zero_point = quantity(float(abs(scheme.round_trip(0.0))), "") | by_hand("0")


class OutlierChannel(Claims):
    """A channel with large values takes the codes of all others, unless each has its own scale."""

    channels = 64
    per_channel = 256
    outlier = 20
    bits = Rounding.bits

    magnitudes = numpy.where(numpy.arange(channels) == 0, float(outlier), 1.0)
    weights = magnitudes[:, None] * normal(per_channel, stride=97)
    others = weights[1:]
    one_scale = quantization.symmetric(weights, bits).round_trip(weights)
    own_scales = quantization.symmetric(weights, bits, axis=0).round_trip(weights)
    codes_left = numpy.unique(
        quantization.symmetric(weights, bits).quantize(others)
    ).size | by_hand("2 * 6 + 1")
    largest_code_left = quantity(
        int(abs(quantization.symmetric(weights, bits).quantize(others)).max()), ""
    ) | by_hand("floor(127 / 20 + 0.5)")
    sqnr_one_scale = quantity(quantization.sqnr(others, one_scale[1:]), "") | counted(
        "decibels beside an outlier"
    )
    sqnr_own_scales = quantity(quantization.sqnr(others, own_scales[1:]), "") | counted(
        "decibels with own scales"
    )
    bits_lost = quantity(float(numpy.log2(outlier)), "") | by_hand("log2(20)")


class Drawing(Claims):
    """Few enough channels and weights that the figure can show each tick."""

    channels = 8

    outlier_weights = OutlierChannel.weights[:channels, ::3]


class Clipping(Claims):
    """Clipping the largest values pays with few bits; with many it does not."""

    few_bits = 4
    many_bits = Rounding.bits
    percentile = 99

    weights = Rounding.weights
    largest = Rounding.largest
    best_few = quantization.symmetric(weights, few_bits).least_error(weights)
    best_many = quantization.symmetric(weights, many_bits).least_error(weights)
    best_clip = quantity(float(best_few.scale * best_few.high), "")
    best_share = (best_clip / largest).to("%") | counted("share of the range for four bits")
    best_many_share = (quantity(float(best_many.scale * best_many.high), "") / largest).to(
        "%"
    ) | counted("share of the range for eight bits")
    sqnr_whole_range = quantity(
        quantization.sqnr(weights, quantization.symmetric(weights, few_bits).round_trip(weights)),
        "",
    )
    sqnr_best = quantity(quantization.sqnr(weights, best_few.round_trip(weights)), "")
    gain = sqnr_best - sqnr_whole_range | by_hand("18.938 - 16.404")
    decibels_per_bit = quantization.expected_sqnr(2, 1) - quantization.expected_sqnr(3, 1)
    decibels_per_bit = -decibels_per_bit | by_hand("20 * log10(2)")
    at_percentile = quantization.symmetric(weights, many_bits, percentile=percentile)
    loss_at_percentile = Rounding.sqnr - quantization.sqnr(
        weights, at_percentile.round_trip(weights)
    ) | by_hand("41.591 - 27.499")


class IntegerProduct(Claims):
    """Products of 8-bit codes are added up in 32 bits, which is enough for any layer."""

    int8 = 127
    inner = 28_672

    products = quantization.products_without_overflow(int8, int8) | by_hand(
        "floor(2147483647 / 127**2)"
    )
    room = products / inner | by_hand("133144 / 28672")


def sqnr_of_a_bell(bits: int, group: int | None = None) -> Quantity:
    """Return what so many bits leave of a shuffled bell, with a scale for each group or for all."""
    weights = normal(Rounding.count, stride=1571)
    scheme = quantization.symmetric(weights, bits, group_size=group)
    return quantity(quantization.sqnr(weights, scheme.round_trip(weights)), "")


class Groups(Claims):
    """Smaller groups cost bits for their scales, and buy accuracy with them."""

    bandwidth = hardware.get("h100").memory_bandwidth
    parameters = ModelTooLarge.parameters
    code = quantity("4 bit/param")
    scale = quantity("16 bit")
    width = Rounding.count
    group = ModelTooLarge.group
    small_group = 32
    sizes = (4096, 128, 64, 32)

    bits_of_group = quantization.bytes_per_parameter(code, group, scale).to("bit/param") | by_hand(
        "(4 + 16/128) bit/param"
    )
    bits_of_small_group = quantization.bytes_per_parameter(code, small_group, scale).to(
        "bit/param"
    ) | by_hand("(4 + 16/32) bit/param")
    overhead_of_small_group = (bits_of_small_group / code - 1).to("%") | by_hand("16/32 / 4")

    speed_against_int8 = (ModelTooLarge.int8 / (bits_of_group)).to("") | by_hand("8 / 4.125")

    @classmethod
    @row_by_hand("32 | 4.5 bits/param | 39.38 GB | 11.75 ms | 85.08 tokens/s | 20.31")
    def row(cls, size: int) -> tuple[int, Quantity, Quantity, Quantity, Quantity, Quantity]:
        """Group, memory of a weight, of the model, time to read it, its rate, what is left."""
        per_parameter = quantization.bytes_per_parameter(cls.code, size, cls.scale)
        weights = training.model_memory(cls.parameters, per_parameter)
        time = (weights / cls.bandwidth).to("ms")
        rate = (quantity("1 token") / time).to("token/s")
        return size, per_parameter.to("bit/param"), weights, time, rate, sqnr_of_a_bell(4, size)


class ReleasedWeights(Claims):
    """The few weights that a mixture keeps in 16 bits are most of what a token reads."""

    keys = ("gpt-oss-20b", "gpt-oss-120b", "kimi-k2-5", "kimi-k2", "deepseek-v3")
    groups = ("experts", "attention")
    model = models.get("gpt-oss-120b")
    uniform = "4.25 bit"

    bandwidth = machines.get("dgx-spark").device.memory_bandwidth | by_hand("273 GB/s")
    experts = quantity(
        sum(matrix.parameters for matrix in model.matrices if matrix.group == "experts")
    )
    others = (1 - experts / model.parameters.m_as("param")).to("%") | by_hand(
        "2167371072 / 116829156672"
    )
    read = inference.weights_read(model, 1, "released")
    rest = quantity(
        2 * sum(matrix.parameters for matrix in model.matrices if matrix.group != "experts"), "byte"
    ).to("GB")
    share_of_rest = (rest / read).to("%") | by_hand(
        "2 * (36 * (2880 * 5120 + 4096 * 2880 + 2880 * 128) + 2880 * 201088) / "
        "(2 * (36 * (2880 * 5120 + 4096 * 2880 + 2880 * 128) + 2880 * 201088) +"
        " 36 * 4 * 3 * 2880**2 * 4.25/8)"
    )
    rate = (quantity("1 token") * bandwidth / read).to("token/s") | by_hand(
        "(273 / 4.999528) token/s"
    )
    rate_if_uniform = (
        quantity("1 token") * bandwidth / inference.weights_read(model, 1, uniform)
    ).to("token/s") | by_hand("1 token * 273 GB/s / ((1547919360 + 3583180800) * 4.25 bit)")

    @classmethod
    @row_by_hand("gpt-oss-120b | MXFP4 | BF16 | 65.25 GB | 65.25 GB | 4.999 GB")
    def row(cls, key: str) -> tuple[str, str, str, Quantity, Quantity, Quantity]:
        """Model, two formats, memory as counted and as published, and what a token reads of it."""
        model = models.get(key)
        form = model.released.formats
        experts, attention = (
            formats.printed(form.get(group, form["others"])) for group in cls.groups
        )
        counted = inference.weight_memory(model, "released").to("GB")
        read = inference.weights_read(model, 1, "released").to("GB")
        return model.name, experts, attention, counted, model.checkpoint.to("GB"), read


def _what_is_left(round_trip: Callable[[Array], Array]) -> tuple[Quantity, Quantity]:
    """SQNR of a shuffled bell, and of the ordinary channels of the matrix with a wide one."""
    bell, matrix = normal(Rounding.count, stride=1571), OutlierChannel.weights
    return (
        quantity(quantization.sqnr(bell, round_trip(bell)), ""),
        quantity(quantization.sqnr(matrix[1:], round_trip(matrix)[1:]), ""),
    )


def _in_int8(data: Array) -> Array:
    return quantization.symmetric(data, 8).round_trip(data)


def _in_fp8(data: Array) -> Array:
    scale = abs(data).max() / formats.FP8_E4M3.max
    rounded: Array = formats.FP8_E4M3.round(data / scale) * scale
    return rounded


def _in_int4(data: Array) -> Array:
    return quantization.symmetric(data, 4, group_size=Groups.small_group).round_trip(data)


class FormatsCompared(Claims):
    """Evenly spread codes win on a bell, codes that are dense near zero win beside an outlier."""

    byte = ModelTooLarge.int8_bits
    mxfp4 = quantity(formats.MXFP4.bits, "bit/param")

    int8_bell, int8_beside = _what_is_left(_in_int8)
    fp8_bell, fp8_beside = _what_is_left(_in_fp8)
    int4_bell, int4_beside = _what_is_left(_in_int4)
    mxfp4_bell, mxfp4_beside = _what_is_left(formats.MXFP4.round)

    rows = (
        ("INT8", "the whole array", byte, int8_bell, int8_beside),
        (formats.FP8_E4M3.name, "the whole array", byte, fp8_bell, fp8_beside),
        (
            "INT4",
            f"a block of {Groups.small_group}",
            Groups.bits_of_small_group,
            int4_bell,
            int4_beside,
        ),
        (
            formats.MXFP4.name,
            f"a block of {formats.MXFP4.block_size}",
            mxfp4,
            mxfp4_bell,
            mxfp4_beside,
        ),
    ) | row_by_hand("FP8 E4M3 | the whole array | 8 bits/param | 31.6 | 31.9")


class RangeConventions(Claims):
    """The step of one tensor by three conventions, and what each does to the largest value."""

    restricted = 127
    full = 127.5
    power_of_two = 128

    conventions = (
        ("Restricted range [@tensorflow-lite-quantization]", "−127…127", restricted),
        ("Full range [@gholami2021survey; @pytorch-observer]", "−128…127", full),
        ("Power of two [@ggml-quants]", "−128…127", power_of_two),
    )
    spread = (quantity(power_of_two / restricted, "") - 1).to("%") | by_hand("128 / 127 - 1")

    @classmethod
    @row_by_hand("… | −128…127 | 128 | 1")
    def row(cls, name: str, codes: str, divisor: float) -> tuple[str, str, float, float]:
        """Convention, its codes, its divisor, and the error of the largest value in steps."""
        return name, codes, divisor, divisor - min(round(divisor), cls.restricted)


class TwoSchemes(Claims):
    """Problem: the step and the bound of both forms, for values that are not centred."""

    low = quantity("-1")
    high = quantity("5")

    symmetric_step = quantization.symmetric_step(high)
    symmetric_bound = quantization.rounding_error_bound(symmetric_step) | by_hand("5 / (2 * 127)")
    asymmetric_step = quantization.asymmetric_step(high - low)
    asymmetric_bound = quantization.rounding_error_bound(asymmetric_step) | by_hand("6 / (2 * 255)")
    step_ratio = symmetric_step / asymmetric_step | by_hand("5 / 127 / (6 / 255)")


class WeightsOrBoth(Claims):
    """Problem: 4-bit weights shorten decoding, 8-bit arithmetic shortens the prompt."""

    h100 = hardware.get("h100")
    fp16_peak = h100.peak("fp16")
    int8_peak = h100.peak("int8")
    parameters = ModelTooLarge.parameters
    prompt = quantity("4096 token")
    answer = quantity("256 token")

    operations = training.inference_flops(parameters, prompt)
    prompt_fp16 = (operations / fp16_peak).to("ms") | by_hand(
        "2 * 70e9 * 4096 FLOP / 989e12 FLOP/s"
    )
    prompt_int8 = (operations / int8_peak).to("ms") | by_hand(
        "2 * 70e9 * 4096 FLOP / 1979e12 FLOP/s"
    )
    token_int4 = ModelTooLarge.int4_time | by_hand("36.367 GB / 3.35 TB/s")
    token_int8 = ModelTooLarge.int8_time | by_hand("70 GB / 3.35 TB/s")
    time_int4 = (prompt_fp16 + answer.magnitude * token_int4).to("s") | by_hand(
        "{prompt_fp16} + 256 * 70e9 * 4.15625 bit / 3.35 TB/s"
    )
    time_int8 = (prompt_int8 + answer.magnitude * token_int8).to("s") | by_hand(
        "{prompt_int8} + 256 * 70e9 * 1 byte / 3.35 TB/s"
    )
    break_even = (prompt_fp16 - prompt_int8) / (token_int8 - token_int4) | by_hand(
        "({prompt_fp16} - {prompt_int8}) / (70e9 * (8 - 4.15625) * 1 bit / 3.35 TB/s)"
    )
