"""Claims of the chapter "Number formats"."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from calc import constants, formats, hardware
from calc.core.units import Quantity, quantity
from calc.derivations.bases import ServedMemory
from calc.derivations.by_hand import by_hand, counted, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, show
from calc.formats import Block, Float, Integer, Tiles, TwoLevelBlock

Array: TypeAlias = NDArray[numpy.float64]


def _moves_below(form: Float, step: float) -> float:
    """Weights below this power of two change when a step is added; those above round back."""
    largest_gap = 2 * step  # a step has to exceed half of the gap
    return math.ldexp(1.0, math.floor(math.log2(largest_gap / form.epsilon)) + 1)


def _error(
    rounded: Array, values: Array, of: slice | NDArray[numpy.bool_] = slice(None)
) -> Quantity:
    """Root mean square of the errors, of the values themselves, in these places."""
    wrong, size = (rounded - values)[of], values[of]
    return quantity(math.sqrt((wrong**2).mean() / (size**2).mean()), "").to("%")


def _weights(parameters: Quantity, form: Float | Integer | Block | TwoLevelBlock) -> Quantity:
    return (parameters * form.size / quantity("1 param")).to("GB")


class FormatTable(Claims):
    """Two widths and one convention say everything about a floating-point format."""

    floats = (
        *(formats.FP64, formats.FP32, formats.TF32, formats.FP16, formats.BF16, formats.FP8_E5M2),
        *(formats.FP8_E4M3, formats.FP6_E3M2, formats.FP6_E2M3, formats.FP4_E2M1),
    )
    integers = (formats.INT8, formats.INT4)

    widths = (
        *(
            (
                form.name,
                form.exponent_bits,
                form.mantissa_bits,
                form.epsilon,
                show(form.decimal_digits, digits=2),
                form.size,
            )
            for form in floats
        ),
        *((form.name, None, None, form.step, None, form.size) for form in integers),
    ) | row_by_hand("FP8 E4M3 | 4 | 3 | 0.125 | 1.2 | 1 byte")
    ranges = (
        *(
            (form.name, form.max, form.smallest_normal, form.smallest_subnormal, form.binades)
            for form in floats
        ),
        *((form.name, form.max, None, form.step, None) for form in integers),
    ) | row_by_hand("FP8 E4M3 | 448 | 0.01562 | 0.001953 | 18")


class ThreeE4M3(Claims):
    """One pair of widths, three formats: it depends on what the last codes mean."""

    e4m3 = formats.FP8_E4M3
    ieee_like = Float(exponent_bits=4, mantissa_bits=3)
    without_specials = Float(exponent_bits=4, mantissa_bits=3, specials="none")
    tf32 = formats.TF32
    fp32 = formats.FP32

    maximum = e4m3.max | by_hand("448", "Micikevicius et al. 2022, table 1")
    ieee_maximum = ieee_like.max | by_hand(
        "1.875 * 2**7", "1.875 times 2^7; LLVM's f8E4M3 prints ±240"
    )
    fnuz_maximum = without_specials.max / 2 | by_hand("1.875 * 2**7")  # its bias is larger by one
    binades = e4m3.binades | by_hand("18", "Micikevicius et al. 2022, section 3: 18 binades")
    e5m2_binades = formats.FP8_E5M2.binades | by_hand(
        "32", "Micikevicius et al. 2022, section 3: 32 binades"
    )
    tf32_bits = tf32.bits | by_hand("1 + 8 + 10")
    tf32_size = tf32.size | by_hand("4 byte")
    fp32_digits = fp32.decimal_digits | by_hand("24 * 0.30103")
    fp32_decimal_round_trip = math.floor(fp32.mantissa_bits * math.log10(2)) | by_hand(
        "floor(23 * log10(2))"
    )


class RangeWall(Claims):
    """FP16 ends where gradients begin; BF16 reaches as far as FP32."""

    gradient = 1e-8
    activation = 7e4 | by_hand("70000")
    fp16 = formats.FP16
    bf16 = formats.BF16

    fp16_smallest = fp16.smallest_subnormal | by_hand("2**-24")
    fp16_lost_below = fp16.smallest_subnormal / 2 | by_hand("2**-25")
    fp16_maximum = fp16.max | by_hand("(2 - 2**-10) * 2**15")
    fp16_decades = fp16.decades | by_hand("log10(65504 * 2**24)")
    bf16_decades = bf16.decades | by_hand("log10(3.38953e38 * 2**60 * 2**60 * 2**13)")
    in_fp16 = fp16.round(gradient) | by_hand("0")
    in_bf16 = bf16.round(gradient)
    bf16_error = quantity(abs(in_bf16 / gradient - 1), "").to("%") | by_hand(
        "1.34375 / (1e-8 * 2**27) - 1"
    )
    bf16_worst_error = quantity(bf16.epsilon / 2, "").to("%") | by_hand("2**-8")
    fp16_worst_error = quantity(fp16.epsilon / 2, "").to("%") | by_hand("2**-11")


class LossScale(Claims):
    """One factor on the loss moves all gradients into the range, and one division takes it back."""

    gradient = RangeWall.gradient
    fp16 = formats.FP16
    scale = 65536

    scaled = gradient * scale
    recovered = fp16.round(scaled) / scale
    error = quantity(abs(recovered / gradient - 1), "").to("%") | by_hand(
        "1 - 1374 / (6.5536e-4 * 2**21)"
    )
    smallest_kept = fp16.smallest_subnormal / 2 / scale | by_hand("2**-25 / 2**16")
    largest_kept = fp16.max / scale | by_hand("65504 / 65536")


class Absorption(Claims):
    """An update of less than half a gap leaves a weight as it was, however often it comes."""

    weight = 1.0
    update = 0.001
    steps = 1000
    bf16 = formats.BF16
    fp16 = formats.FP16

    wanted = weight + steps * update | by_hand("1 + 1000 * 0.001")
    bf16_gap = bf16.ulp(weight) | by_hand("2**-7")
    bf16_smallest_update = quantity(bf16.epsilon / 2, "").to("%") | by_hand("2**-8")
    fp16_ratio = 2 / fp16.epsilon | by_hand(
        "2048", "Micikevicius et al. 2018, section 3.1: at least 2048 times larger"
    )
    bf16_sum_of_ones = 2 / bf16.epsilon | by_hand("2**8")
    fp16_sum_of_ones = 2 / fp16.epsilon | by_hand("2**11")
    fp32_sum_of_ones = 2 / formats.FP32.epsilon | by_hand("2**24")


class SharedScale(Claims):
    """One exponent for a block gives four bits the range of eight exponent bits."""

    mxfp4 = formats.MXFP4
    element = formats.FP4_E2M1
    scale_format = formats.E8M0
    block_size = mxfp4.block_size | by_hand("32", "OCP 2023, table 1")
    outlier = 100
    parameters = quantity("7B param")

    bits = mxfp4.bits | by_hand("4 + 8 / 32")
    scale_overhead = quantity(scale_format.bits / block_size / element.bits, "").to("%") | by_hand(
        "8 / (32 * 4)"
    )
    scale = mxfp4.scale.decode(mxfp4.encode([outlier]).scales)[0] | by_hand("2**6 / 2**2")
    lost_below = scale * element.smallest_subnormal / 2 | by_hand("0.5 * 0.5 * 16")
    largest = element.max | by_hand("1.5 * 2**2")
    worst_clipping = quantity(1 - element.max / 2 ** (element.max_exponent + 1), "").to(
        "%"
    ) | by_hand("1 - 6 / 8")
    formats = (
        *(formats.MXFP8_E5M2, formats.MXFP8_E4M3, formats.MXFP6_E3M2, formats.MXFP6_E2M3),
        *(formats.MXFP4, formats.MXINT8, formats.NVFP4),
    )

    @classmethod
    @row_by_hand("MXFP4 | 4.25 | 6 | 0.5 | 12 | 3.719 GB")
    def row(cls, form: Block | TwoLevelBlock) -> Row:
        element = form.element
        smallest = element.smallest_subnormal if isinstance(element, Float) else element.step
        weights = _weights(cls.parameters, form)
        return form.name, form.bits, element.max, smallest, element.max / smallest, weights


class WorkedBlock(Claims):
    """Ten numbers, their scale, their codes, and what comes back, by both formats of four bits."""

    values = (0.25, -1.1, 0.6, 2.1, -0.45, 0.1, -0.8, 1.5, -3.6, 0.9)
    tensor_largest = 12.0 | by_hand("12")
    element = formats.FP4_E2M1
    mx, nv = formats.MXFP4, formats.NVFP4

    count = len(values) | by_hand("10")
    largest = max(abs(value) for value in values) | by_hand("3.6")
    block_size = nv.block_size | by_hand("16", "NVIDIA 2025, section 2")
    _tensor = numpy.zeros(2 * mx.block_size)
    _tensor[:count], _tensor[-1] = values, tensor_largest
    _mx, _nv = mx.encode(_tensor), nv.encode(_tensor)
    mx_scale = float(mx.scale.decode(_mx.scales)[0]) | by_hand("2 / 4")
    tensor_scale = _nv.tensor_scale | by_hand("12 / 2688")
    nv_wanted = largest / element.max / tensor_scale | by_hand("0.6 / 0.004464286")
    nv_block_scale = float(nv.scale.decode(_nv.scales)[0]) | by_hand("128")
    nv_scale = nv_block_scale * tensor_scale | by_hand("128 * 12 / 2688")
    mx_codes = tuple(int(code) for code in _mx.elements[:count])
    nv_codes = tuple(int(code) for code in _nv.elements[:count])
    mx_back = tuple(float(value) for value in mx.decode(*_mx)[:count])
    nv_back = tuple(float(value) for value in nv.decode(*_nv)[:count])
    mx_largest_back = -min(mx_back)
    nv_largest_back = -min(nv_back)
    mx_clipped = quantity(1 - mx_largest_back / largest, "").to("%") | by_hand("1 - 6 * 0.5 / 3.6")
    nv_clipped = quantity(1 - nv_largest_back / largest, "").to("%") | by_hand(
        "1 - 6 * 4 / 7 / 3.6"
    )
    mx_error = _error(numpy.array(mx_back), numpy.array(values)) | by_hand("sqrt(0.415 / 22.915)")
    nv_error = _error(numpy.array(nv_back), numpy.array(values)) | by_hand(
        "sqrt(0.1435714 / 22.915)"
    )


class BellInBlocks(Claims):
    """A finer scale for fewer numbers is worth its quarter of a bit."""

    _values = numpy.random.default_rng(seed=1).normal(size=2**16)
    mx_bits = formats.MXFP4.bits | by_hand("4 + 8 / 32")
    nv_bits = formats.NVFP4.bits | by_hand("4 + 8 / 16")

    mx_error = _error(formats.MXFP4.round(_values), _values) | counted("the bell in MXFP4")
    nv_error = _error(formats.NVFP4.round(_values), _values) | counted("the bell in NVFP4")


class ScalesOfFp8(Claims):
    """The scales of FP8 are chosen in several ways; an outlier or growth spoils some."""

    outlier = 1e6 | by_hand("1000000")
    growth = 4 | by_hand("4")
    rows_of_tensor, columns = 256 | by_hand("256"), 1024 | by_hand("1024")
    tile = 128 | by_hand("128", "DeepSeek-V3 2024, section 3.3.2")
    element = formats.FP8_E4M3
    history = 1024 | by_hand("1024")

    _tensor = numpy.random.default_rng(seed=2).normal(size=(rows_of_tensor, columns))
    _beside = _tensor.copy()
    _beside[5, 7] = outlier
    _others = _beside != outlier
    _whole = Tiles(element)
    _before = float(abs(_tensor).max())
    range_of_element = element.max / element.smallest_normal | by_hand("448 / 2**-6")

    @classmethod
    def _row(
        cls,
        name: str,
        scales: str,
        bits: float,
        rounded: Callable[..., Array],
        delayed: bool = False,
    ) -> Row:
        plain, beside, grown = (
            rounded(values, before) if delayed else rounded(values)
            for values, before in (
                (cls._tensor, cls._before),
                (cls._beside, cls.outlier),
                (cls.growth * cls._tensor, cls._before),
            )
        )
        return (
            name,
            scales,
            show(bits, digits=4),
            _error(plain, cls._tensor),
            _error(beside, cls._beside, cls._others),
            _error(grown, cls.growth * cls._tensor),
        )

    @classmethod
    @row_by_hand("MXFP8 E4M3 | 1 × 32, in E8M0 | 8.25 | 2.649% | 2.885% | 2.649%")
    def table(cls) -> Rows:
        """Recipe, what has a scale, bits of a value, and the errors of the three tensors."""
        element, tile = cls.element, cls.tile
        square, row = Tiles(element, tile, tile), Tiles(element, 1, tile)
        powers = Tiles(element, 1, tile, power_of_two=True)
        whole, block = cls._whole.round, formats.MXFP8_E4M3
        rounded = partial(block.round, rule="rceil")
        bits, fp32, byte = element.bits, formats.FP32.bits, formats.E8M0.bits
        return (
            cls._row("Delayed", "the tensor, from earlier steps", bits, whole, delayed=True),
            cls._row("Current", "the tensor", bits, whole),
            cls._row(
                "Square tiles", f"{tile} × {tile}, in FP32", bits + fp32 / tile**2, square.round
            ),
            cls._row("Row tiles", f"1 × {tile}, in FP32", bits + fp32 / tile, row.round),
            cls._row(
                "Row tiles, powers of two", f"1 × {tile}, in E8M0", bits + byte / tile, powers.round
            ),
            cls._row(block.name, f"1 × {block.block_size}, in E8M0", block.bits, rounded),
        )


@deferred
@cache
def sums_of_products(count: int) -> dict[str, Quantity]:
    """The median error of sums of so many products of FP8 numbers, by the way of adding."""
    random = numpy.random.default_rng(seed=3)
    left, right = formats.FP8_E4M3.round(random.uniform(size=(2, 32, count)))
    products = left * right
    bf16, fp32 = formats.BF16, formats.FP32
    errors = {
        "BF16": formats.running_sum(products, bf16),
        "BF16, stochastic": formats.running_sum(products, bf16, random=random),
        "BF16, Kahan": formats.kahan_sum(products, bf16),
        "BF16, in pairs": formats.pairwise_sum(products, bf16),
        "14 bits": formats.tensor_core_sum(products, bits=14, depth=32),
        "14 bits, promoted": formats.tensor_core_sum(products, promoted_after=128),
        "FP32": formats.running_sum(products, fp32),
    }
    exact = products.sum(axis=-1)
    return {
        name: quantity(float(numpy.median(abs(sum_ / exact - 1))), "")
        for name, sum_ in errors.items()
    }


class LongSums(Claims):
    """A sum keeps more or less of thousands of products by where, and how, they are added."""

    lengths = (64, 256, 1024, 4096)
    bits = 14 | by_hand("14", "DeepSeek-V3 2024, section 3.3.2")
    depth = 32 | by_hand("32", "DeepSeek-V3 2024, section 3.5.2")
    promoted = 128 | by_hand("128", "DeepSeek-V3 2024, section 3.3.2")
    reported_error = quantity(2, "%") | by_hand("2 %", "DeepSeek-V3 2024, section 3.3.2")

    longest = lengths[-1] | by_hand("4096", "DeepSeek-V3 2024, section 3.3.2: K of its own trial")
    bf16_error = sums_of_products(longest)["BF16"].to("%") | counted("summed in BF16")
    stochastic_error = sums_of_products(longest)["BF16, stochastic"].to("%") | counted(
        "summed at random"
    )
    kahan_error = sums_of_products(longest)["BF16, Kahan"].to("%") | counted("summed by Kahan")
    core_error = sums_of_products(longest)["14 bits"].to("%") | counted("summed in tensor cores")
    promoted_error = sums_of_products(longest)["14 bits, promoted"].to("%")
    promotion_gain = core_error / promoted_error | by_hand("0.2688129 / 0.01046214")


class RandomRounding(Claims):
    """Rounded to the nearest a small update is lost each time; at random it arrives on average."""

    update = Absorption.update | by_hand("0.001")

    chance = quantity(update / Absorption.bf16_gap, "").to("%") | by_hand("0.001 / 2**-7")


@cache
def rotated_error(form: Block | TwoLevelBlock, times: float, rotated: bool) -> Quantity:
    """The error of blocks with one value so many times as large as the others, turned or not."""
    size = form.block_size
    random = numpy.random.default_rng(seed=4)
    blocks = random.normal(size=(2048, size))
    blocks[:, 3] = times * numpy.sign(blocks[:, 3])
    signs = random.choice([-1.0, 1.0], size)
    turned = formats.hadamard_transform(blocks, size, signs) if rotated else blocks
    rounded = form.round(turned, rule="rceil") if isinstance(form, Block) else form.round(turned)
    back = formats.inverse_hadamard_transform(rounded, size, signs) if rotated else rounded
    return _error(back, blocks)


class Rotation(Claims):
    """A rotation spreads an outlier: a gain where it sets the step, a loss where it stood alone."""

    mx, nv = formats.MXFP4, formats.NVFP4
    example_times = 16 | by_hand("16")

    block_size = nv.block_size
    block = numpy.random.default_rng(seed=6).normal(size=block_size)
    block[3] = example_times
    mx_plain = rotated_error(mx, example_times, rotated=False) | counted("an outlier in MXFP4")
    mx_turned = rotated_error(mx, example_times, rotated=True) | counted(
        "an outlier in MXFP4, turned"
    )
    nv_plain = rotated_error(nv, example_times, rotated=False) | counted("an outlier in NVFP4")
    nv_turned = rotated_error(nv, example_times, rotated=True) | counted(
        "an outlier in NVFP4, turned"
    )


class LossGaps(Claims):
    """The loss was a little higher at most where training was in few bits, by its authors."""

    published = formats.training_formats()

    deepseek = next(
        made.gap for made in formats.training_formats() if made.key == "deepseek-v3-fp8"
    ) | by_hand("0.25 %", "DeepSeek-V3 2024, section 3.3")
    more_tokens = quantity(36, "%") | by_hand("36 %", "NVIDIA 2025, section 5")
    kept_layers = quantity(16, "%") | by_hand("16 %", "NVIDIA 2025, section 4.1")
    rows = tuple(
        (
            f"{comparison.name} [@{comparison.source}]",
            comparison.format,
            comparison.scales,
            comparison.kept,
            (
                f"{comparison.sense} {show(comparison.gap)} of {comparison.baseline}"
                if comparison.records["gap"].published is not None
                else f"no number, against {comparison.baseline}"
            ),
        )
        for comparison in published
    ) | row_by_hand(
        "… | MXFP4 | 1×32 | 15% of the model, attention, output head | about 2.5% of BF16"
    )


class FormatCost(Claims):
    """Half the bits are half the bytes, half the reading time and twice the peak."""

    fp32_multiply = constants.energy_7nm_fp32_multiply
    int8_multiply = constants.energy_7nm_int8_multiply

    fp32_per_int8_multiply = fp32_multiply / int8_multiply | by_hand("1.31 pJ / 0.07 pJ")


class ScaleWindow(Claims):
    """A loss scale that saves the smallest gradients loses the largest."""

    smallest = 1e-10
    large = 0.1 | by_hand("0.1")
    fp16 = formats.FP16

    needed = fp16.smallest_normal / smallest | by_hand("2**-14 / 1e-10")
    scale = 2 ** math.ceil(math.log2(needed)) | by_hand("2**20")
    largest_kept = fp16.max / scale | by_hand("65504 / 2**20")


class StuckWeights(Claims):
    """In BF16 a small step moves only small weights."""

    step = 1e-5

    bf16_limit = _moves_below(formats.BF16, step) | by_hand("2**-8")
    fp32_limit = _moves_below(formats.FP32, step) | by_hand("2**8")


class FitOneDevice(Claims):
    """The format decides whether a model fits, and how fast it then decodes."""

    h100 = hardware.get("h100")
    parameters = quantity("70B param")
    capacity = h100.memory_capacity

    capacity_decimal = capacity.to("GB") | by_hand("80 * 2**30 bytes")
    bandwidth = h100.memory_bandwidth
    fp16_weights = _weights(parameters, formats.FP16) | by_hand("70e9 * 2 bytes")
    fp8_weights = _weights(parameters, formats.FP8_E4M3) | by_hand("70e9 * 1 byte")
    mxfp4_weights = _weights(parameters, formats.MXFP4) | by_hand("70e9 * 4.25 bits")
    fp8_left = capacity_decimal - fp8_weights | by_hand("(85.899 - 70) GB")
    mxfp4_left = capacity_decimal - mxfp4_weights | by_hand("(85.899 - 37.1875) GB")
    fp8_planned = ServedMemory.planned(h100).to("GB") - fp8_weights | by_hand(
        "0.9 * 85.89935 GB - 70 GB"
    )
    used = ServedMemory.share | by_hand("90 %")
    fp8_rate = (quantity("1 token") * bandwidth / fp8_weights).to("token/s") | by_hand(
        "(3350 / 70) token/s"
    )
    mxfp4_rate = (quantity("1 token") * bandwidth / mxfp4_weights).to("token/s") | by_hand(
        "(3350 / 37.1875) token/s"
    )
