"""Claims of the chapter "Precision of a kernel" on sums, decays and variances.

What it quotes of the resolvent is in calc.derivations.resolvent_measured.
"""

from __future__ import annotations

import math

import numpy

from calc import constants, formats, roofline
from calc.core.units import quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.resolvent_measured import KernelRoof, KernelSpeed, MachineOfKernel, timed


class NaiveForms(Claims):
    """A format carries an exponential, an inverse decay, or a difference of squares only so far."""

    decay = 0.9
    chunk = 256
    formats = (formats.FP16, formats.BF16, formats.FP32, formats.FP64)

    growth = -math.log(decay)
    fp16_exponent = math.log(formats[0].max) | by_hand("ln(65504)")
    bf16_exponent = math.log(formats[1].max) | by_hand("ln(255) + 120 * ln(2)")
    fp32_exponent = math.log(formats[2].max) | by_hand("128 * ln(2) - 2**-24")
    fp16_steps = fp16_exponent / growth | by_hand("ln(65504) / ln(10 / 9)")
    bf16_steps = bf16_exponent / growth | by_hand("88.718925 / 0.10536052")
    bf16_least_decay = math.exp(-bf16_exponent / chunk) | by_hand("exp(-88.718925 / 256)")
    bf16_ratio = formats[1].epsilon ** -0.5 | by_hand("power(2, 3.5)")
    fp32_ratio = formats[2].epsilon ** -0.5 | by_hand("power(2, 11.5)")


class ReportedRow(Claims):
    """The row of a layer norm that came out as NaN, from the report of who met it."""

    values = (
        *(1449.570556640625, 1448.8741455078125, 1450.650390625, 1449.2633056640625),
        *(1449.7763671875, 1449.317138671875, 1449.3297119140625, 1449.077880859375),
        *(1449.2181396484375, 1449.4329833984375, 1449.1605224609375, 1449.413330078125),
        *(1449.7933349609375, 1450.066650390625, 1449.7762451171875, 1450.364990234375),
    )
    width = 16 | by_hand("16", "numbers of the report")
    mean = float(numpy.mean(values)) | by_hand(
        "mean(1449.570556640625, 1448.8741455078125, 1450.650390625, "
        "1449.2633056640625, 1449.7763671875, 1449.317138671875, "
        "1449.3297119140625, 1449.077880859375, 1449.2181396484375, "
        "1449.4329833984375, 1449.1605224609375, 1449.413330078125, "
        "1449.7933349609375, 1450.066650390625, 1449.7762451171875, "
        "1450.364990234375)",
        "the report's numbers, added up by awk",
    )
    deviation = float(numpy.std(values)) | by_hand(
        "sqrt(0.5705566406**2 / 16 + 0.1258544922**2 / 16 + 1.650390625**2 / 16"
        " + 0.2633056641**2 / 16 + 0.7763671875**2 / 16 + 0.3171386719**2 / 16 "
        "+ 0.3297119141**2 / 16 + 0.07788085938**2 / 16 + 0.2181396484**2 / 16 "
        "+ 0.4329833984**2 / 16 + 0.1605224609**2 / 16 + 0.4133300781**2 / 16 +"
        " 0.7933349609**2 / 16 + 1.066650391**2 / 16 + 0.7762451172**2 / 16 + "
        "1.364990234**2 / 16 - 0.567856**2)",
        "the report's numbers, by awk",
    )
    ratio = mean / deviation
    step = float(formats.FP32.ulp(mean**2)) | by_hand("2**-2")


class ReportedFailures(Claims):
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
    ) | row_by_hand("burn, from zero on | FP32 | 1.6 | 2900 | right")


class ChainRoof(Claims):
    """One row stays close under its chain of divisions; many rows are held by the divider."""

    divide = constants.cycles_divide_zen4
    add = constants.cycles_add_zen4
    between = constants.cycles_between_divisions_zen4
    per_clock = constants.count_flop_per_clock_zen4
    rows_at_once = 8
    divisions = 3

    clock = (MachineOfKernel.fp64 / (per_clock * quantity("1 FLOP"))).to("GHz") | by_hand(
        "(51.38 / 16) GHz"
    )
    work = quantity(KernelRoof.flop, "FLOP")
    row_step = 2 * divide + 3 * add | by_hand("13 + 3 + 3 + 13 + 3 cycles")
    group_step = divide + 4 * add | by_hand("13 + 3 + 3 + 3 + 3 cycles")
    one_row = roofline.chain_rate(work, 2 * row_step, clock).to("GFLOP/s") | by_hand(
        "26 / 70 * 3.21125 GFLOP/s"
    )
    group = roofline.chain_rate(work, 2 * group_step, clock, rows_at_once).to("GFLOP/s") | by_hand(
        "8 * 26 / 50 * 3.21125 GFLOP/s"
    )
    divider = roofline.chain_rate(work, divisions * between, clock).to("GFLOP/s") | by_hand(
        "26 / 15 * 3.21125 GFLOP/s"
    )
    vectors = 4 * divider | by_hand("4 * {divider}")

    one_row_reached = quantity(timed("flop_per_second", "numba", 1, KernelSpeed.n), "FLOP/s")
    one_row_share = (one_row_reached / one_row).to("%") | by_hand("0.8509 GFLOP/s / {one_row}")
    divider_share = (KernelRoof.achieved / divider).to("%") | by_hand("3.229 GFLOP/s / {divider}")
    left = (divider / KernelRoof.achieved).to("") | by_hand("5.566167 / 3.229")


class WiderSoftmax(Claims):
    """Problem: FP32 in place of BF16 does not help a softmax that overflows."""

    logit = 95


class OnePassNorm(Claims):
    """Problem: a fused layer norm in one pass, tested on rows about zero."""

    width = 4096
