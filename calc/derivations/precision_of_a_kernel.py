"""What the chapter "Precision of a kernel" quotes of sums, decays and variances.

What it quotes of the resolvent is in calc.derivations.resolvent.
"""

from __future__ import annotations

import math

import numpy

from calc import constants, formats, roofline
from calc.core.units import quantity
from calc.derivations.resolvent import KernelRoof, KernelSpeed, MachineOfKernel, timed


class NaiveForms:
    """How far a format carries an exponential, an inverse decay, and a difference of squares."""

    decay = 0.9
    chunk = 256
    formats = (formats.FP16, formats.BF16, formats.FP32, formats.FP64)

    growth = -math.log(decay)
    fp16_exponent = math.log(formats[0].max)
    bf16_exponent = math.log(formats[1].max)
    fp32_exponent = math.log(formats[2].max)
    fp16_steps = fp16_exponent / growth
    bf16_steps = bf16_exponent / growth
    bf16_least_decay = math.exp(-bf16_exponent / chunk)
    bf16_ratio = formats[1].epsilon ** -0.5
    fp32_ratio = formats[2].epsilon ** -0.5


class ReportedRow:
    """The row of a layer norm that came out as NaN, from the report of who met it."""

    values = (
        *(1449.570556640625, 1448.8741455078125, 1450.650390625, 1449.2633056640625),
        *(1449.7763671875, 1449.317138671875, 1449.3297119140625, 1449.077880859375),
        *(1449.2181396484375, 1449.4329833984375, 1449.1605224609375, 1449.413330078125),
        *(1449.7933349609375, 1450.066650390625, 1449.7762451171875, 1450.364990234375),
    )
    width = 16
    mean = float(numpy.mean(values))
    deviation = float(numpy.std(values))
    ratio = mean / deviation
    step = float(formats.FP32.ulp(mean**2))


class ReportedFailures:
    """Norms that others saw fail: all beyond the ratio at which their format has nothing left."""

    evenly = 1e-3 * ((16**2 - 1) / 12) ** 0.5  # the deviation of sixteen values 0.001 apart
    seen = (
        ("MLX [@mlx2025layernorm]", formats.FP32, ReportedRow.ratio, "NaN"),
        ("burn [@burn2026layernorm]", formats.FP32, 100.0075 / evenly, "output off by 1.03"),
        ("burn, from zero on", formats.FP32, 0.0075 / evenly, "right"),
        ("ONNX Runtime [@onnxruntime2026layernorm]", formats.FP32, 40001.5 / 1.25**0.5, "NaN"),
        ("Tenstorrent [@tenstorrent2026batchnorm]", formats.BF16, 5 / 0.1, "NaN"),
    )
    rows = tuple(
        (name, form.name, ratio, form.epsilon**-0.5, outcome) for name, form, ratio, outcome in seen
    )


class ChainRoof:
    """One row stays close under its chain of divisions; many rows are held by the divider."""

    divide = constants.cycles_divide_zen4
    add = constants.cycles_add_zen4
    between = constants.cycles_between_divisions_zen4
    per_clock = constants.count_flop_per_clock_zen4
    rows_at_once = 8
    divisions = 3

    clock = (MachineOfKernel.fp64 / (per_clock * quantity("1 FLOP"))).to("GHz")
    work = quantity(KernelRoof.flop, "FLOP")
    row_step = 2 * divide + 3 * add
    group_step = divide + 4 * add
    one_row = roofline.chain_rate(work, 2 * row_step, clock).to("GFLOP/s")
    group = roofline.chain_rate(work, 2 * group_step, clock, rows_at_once).to("GFLOP/s")
    divider = roofline.chain_rate(work, divisions * between, clock).to("GFLOP/s")
    vectors = 4 * divider

    one_row_reached = quantity(timed("flop_per_second", "numba", 1, KernelSpeed.n), "FLOP/s")
    one_row_share = (one_row_reached / one_row).to("%")
    divider_share = (KernelRoof.achieved / divider).to("%")
    left = (divider / KernelRoof.achieved).to("")


class WiderSoftmax:
    """Problem: FP32 in place of BF16 does not help a softmax that overflows."""

    logit = 95


class OnePassNorm:
    """Problem: a fused layer norm in one pass, tested on rows about zero."""

    width = 4096
