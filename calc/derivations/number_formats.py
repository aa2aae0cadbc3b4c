"""What the chapter "Number formats" quotes."""

from __future__ import annotations

import math
from typing import Any

from calc import constants, formats, hardware
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import show
from calc.formats import Block, Float, Integer


def _after_updates(form: Float, weight: float, update: float, steps: int) -> float:
    for _ in range(steps):
        weight = form.round(weight + update)
    return weight


def _moves_below(form: Float, step: float) -> float:
    """Weights below this power of two change when a step is added; those above round back."""
    largest_gap = 2 * step  # a step has to exceed half of the gap
    return math.ldexp(1.0, math.floor(math.log2(largest_gap / form.epsilon)) + 1)


def _weights(parameters: Quantity, form: Float | Integer | Block) -> Quantity:
    size: Quantity = parameters * form.size / quantity("1 param")
    return size.to("GB")


class FormatTable:
    """Two widths and one convention say everything about a floating-point format."""

    floats = (
        formats.FP64,
        formats.FP32,
        formats.TF32,
        formats.FP16,
        formats.BF16,
        formats.FP8_E5M2,
        formats.FP8_E4M3,
        formats.FP6_E3M2,
        formats.FP6_E2M3,
        formats.FP4_E2M1,
    )
    integers = (formats.INT8, formats.INT4)

    widths = (
        *(
            (
                each.name,
                each.exponent_bits,
                each.mantissa_bits,
                each.epsilon,
                show(each.decimal_digits, digits=2),
                each.size,
            )
            for each in floats
        ),
        *((each.name, None, None, each.step, None, each.size) for each in integers),
    )
    ranges = (
        *(
            (each.name, each.max, each.smallest_normal, each.smallest_subnormal, each.binades)
            for each in floats
        ),
        *((each.name, each.max, None, each.step, None) for each in integers),
    )


class ThreeE4M3:
    """One pair of widths, three formats: it depends on what the last codes mean."""

    e4m3 = formats.FP8_E4M3
    e5m2 = formats.FP8_E5M2
    ieee_like = Float(exponent_bits=4, mantissa_bits=3)
    without_specials = Float(exponent_bits=4, mantissa_bits=3, specials="none")
    tf32 = formats.TF32
    fp32 = formats.FP32

    maximum = e4m3.max
    ieee_maximum = ieee_like.max
    fnuz_maximum = without_specials.max / 2  # its bias is larger by one
    binades = e4m3.binades
    e5m2_binades = e5m2.binades
    tf32_bits = tf32.bits
    tf32_size = tf32.size
    fp32_digits = fp32.decimal_digits
    fp32_decimal_round_trip = math.floor(fp32.mantissa_bits * math.log10(2))


class RangeWall:
    """FP16 ends where gradients begin; BF16 reaches as far as FP32."""

    gradient = 1e-8
    activation = 7e4
    fp16 = formats.FP16
    bf16 = formats.BF16

    fp16_smallest = fp16.smallest_subnormal
    fp16_lost_below = fp16.smallest_subnormal / 2
    fp16_maximum = fp16.max
    fp16_decades = fp16.decades
    bf16_decades = bf16.decades
    in_fp16 = fp16.round(gradient)
    in_bf16 = bf16.round(gradient)
    bf16_error = quantity(abs(in_bf16 / gradient - 1), "").to("%")
    bf16_worst_error = quantity(bf16.epsilon / 2, "").to("%")
    fp16_worst_error = quantity(fp16.epsilon / 2, "").to("%")


class LossScale:
    """One factor on the loss moves all gradients into the range, and one division takes it back."""

    gradient = RangeWall.gradient
    fp16 = formats.FP16
    scale = 65536

    scaled = gradient * scale
    recovered = fp16.round(scaled) / scale
    error = quantity(abs(recovered / gradient - 1), "").to("%")
    smallest_kept = fp16.smallest_subnormal / 2 / scale
    largest_kept = fp16.max / scale


class Absorption:
    """An update of less than half a gap leaves a weight as it was, however often it comes."""

    weight = 1.0
    update = 0.001
    steps = 1000
    bf16 = formats.BF16
    fp16 = formats.FP16

    wanted = weight + steps * update
    bf16_gap = bf16.ulp(weight)
    bf16_smallest_update = quantity(bf16.epsilon / 2, "").to("%")
    fp16_ratio = 2 / fp16.epsilon
    bf16_sum_of_ones = 2 / bf16.epsilon
    fp16_sum_of_ones = 2 / fp16.epsilon
    fp32_sum_of_ones = 2 / formats.FP32.epsilon
    formats = (formats.BF16, formats.FP16, formats.FP32)

    @classmethod
    def row(cls, form: Float) -> tuple[Any, ...]:
        smallest_update = quantity(form.epsilon / 2, "").to("%")
        end = _after_updates(form, cls.weight, cls.update, cls.steps)
        return form.name, smallest_update, end, show(2 / form.epsilon, digits=8)


class SharedScale:
    """One exponent for a block gives four bits the range of eight exponent bits."""

    mxfp4 = formats.MXFP4
    element = formats.FP4_E2M1
    scale_format = formats.E8M0
    block_size = mxfp4.block_size
    outlier = 100
    parameters = quantity("7B param")

    bits = mxfp4.bits
    scale_overhead = quantity(scale_format.bits / block_size / element.bits, "").to("%")
    scale = mxfp4.scale.decode(mxfp4.encode([outlier]).scales)[0]
    lost_below = scale * element.smallest_subnormal / 2
    worst_clipping = quantity(1 - element.max / 2 ** (element.max_exponent + 1), "").to("%")
    formats = (
        formats.MXFP8_E5M2,
        formats.MXFP8_E4M3,
        formats.MXFP6_E3M2,
        formats.MXFP6_E2M3,
        formats.MXFP4,
        formats.MXINT8,
    )

    @classmethod
    def row(cls, form: Block) -> tuple[Any, ...]:
        element = form.element
        smallest = element.smallest_subnormal if isinstance(element, Float) else element.step
        weights = _weights(cls.parameters, form)
        return form.name, form.bits, element.max, smallest, element.max / smallest, weights


class FormatCost:
    """Half the bits are half the bytes, half the reading time and twice the peak."""

    h100 = hardware.get("h100")
    bandwidth = h100.memory_bandwidth
    parameters = quantity("7B param")
    fp16_peak = h100.peak("fp16")
    fp8_peak = h100.peak("fp8")
    fp32_multiply = constants.get("energy_7nm_fp32_multiply")
    int8_multiply = constants.get("energy_7nm_int8_multiply")

    fp8_per_fp16 = fp8_peak / fp16_peak
    fp32_per_int8_multiply = fp32_multiply / int8_multiply
    fp32_time = (_weights(parameters, formats.FP32) / bandwidth).to("ms")
    fp8_time = (_weights(parameters, formats.FP8_E4M3) / bandwidth).to("ms")
    formats = (
        (formats.FP32, None, fp32_multiply),
        (formats.TF32, h100.peak("tf32"), None),
        (formats.BF16, h100.peak("bf16"), constants.get("energy_7nm_bf16_multiply")),
        (formats.FP16, fp16_peak, constants.get("energy_7nm_fp16_multiply")),
        (formats.FP8_E4M3, fp8_peak, None),
        (formats.INT8, h100.peak("int8"), int8_multiply),
        (formats.MXFP4, None, None),
    )

    @classmethod
    def row(
        cls, form: Float | Integer | Block, peak: Quantity | None, energy: Quantity | None
    ) -> tuple[Any, ...]:
        weights = _weights(cls.parameters, form)
        return form.name, weights, (weights / cls.bandwidth).to("ms"), peak, energy


class OwnFormat:
    """A format's limits follow from its widths by hand."""

    exponent_bits = 3
    mantissa_bits = 4

    form = Float(exponent_bits, mantissa_bits)
    steps = 2**mantissa_bits
    maximum = form.max
    smallest_normal = form.smallest_normal
    smallest_subnormal = form.smallest_subnormal
    gap_at_one = form.epsilon


class ScaleWindow:
    """A loss scale that saves the smallest gradients loses the largest."""

    smallest = 1e-10
    large = 0.1
    fp16 = formats.FP16

    needed = fp16.smallest_normal / smallest
    scale = 2 ** math.ceil(math.log2(needed))
    largest_kept = fp16.max / scale


class StuckWeights:
    """In BF16 a small step moves only small weights."""

    step = 1e-5

    bf16_limit = _moves_below(formats.BF16, step)
    fp32_limit = _moves_below(formats.FP32, step)


class FitOneDevice:
    """The format decides whether a model fits, and how fast it then decodes."""

    h100 = hardware.get("h100")
    parameters = quantity("70B param")
    capacity = h100.memory_capacity

    capacity_decimal = capacity.to("GB")
    bandwidth = h100.memory_bandwidth
    fp16_weights = _weights(parameters, formats.FP16)
    fp8_weights = _weights(parameters, formats.FP8_E4M3)
    mxfp4_weights = _weights(parameters, formats.MXFP4)
    fp8_left = capacity_decimal - fp8_weights
    mxfp4_left = capacity_decimal - mxfp4_weights
    fp8_rate = (quantity("1 token") * bandwidth / fp8_weights).to("token/s")
    mxfp4_rate = (quantity("1 token") * bandwidth / mxfp4_weights).to("token/s")
