"""Number formats, bit for bit: against numpy and ml_dtypes, in exact fractions, by the OCP rule."""

from __future__ import annotations

import math
import re
import struct
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest
from hypothesis import given, strategies as st

from calc import InputError, formats, hardware, inference, models, quantity, roofline, simulation
from calc.core import citations
from calc.core.names import squeezed
from calc.formats import Block, Float, Integer, PowerOfTwo, Tiles, delayed, quality, recipes
from tests.calc.command import Written

# Each format with the type that numpy or ml_dtypes has for it.
FLOATS: dict[str, tuple[Float, Any]] = {
    "fp64": (formats.FP64, numpy.float64),
    "fp32": (formats.FP32, numpy.float32),
    "fp16": (formats.FP16, numpy.float16),
    "bf16": (formats.BF16, ml_dtypes.bfloat16),
    "fp8-e5m2": (formats.FP8_E5M2, ml_dtypes.float8_e5m2),
    "fp8-e4m3": (formats.FP8_E4M3, ml_dtypes.float8_e4m3fn),
    "e4m3 by IEEE": (Float(4, 3), ml_dtypes.float8_e4m3),
    "e3m4 by IEEE": (Float(3, 4), ml_dtypes.float8_e3m4),
    "fp6-e3m2": (formats.FP6_E3M2, ml_dtypes.float6_e3m2fn),
    "fp6-e2m3": (formats.FP6_E2M3, ml_dtypes.float6_e2m3fn),
    "fp4-e2m1": (formats.FP4_E2M1, ml_dtypes.float4_e2m1fn),
}
NARROW = {name: pair for name, pair in FLOATS.items() if pair[0].bits <= 16}
every_float = pytest.mark.parametrize(("form", "dtype"), FLOATS.values(), ids=FLOATS)
narrow = pytest.mark.parametrize(("form", "dtype"), NARROW.values(), ids=NARROW)
doubles = st.floats(allow_nan=False)


def bits_of(values: Any, dtype: Any) -> Any:
    """The bits that numpy or ml_dtypes gives values in its own type."""
    with numpy.errstate(all="ignore"):
        cast = numpy.asarray(values, float).astype(dtype)
    return cast.view(f"uint{8 * cast.dtype.itemsize}")


def values_of(codes: Any, dtype: Any) -> Any:
    with numpy.errstate(invalid="ignore"):  # a signalling NaN among them
        return codes.view(dtype).astype(float)


def all_codes(form: Float | Integer | PowerOfTwo) -> Any:
    return numpy.arange(2**form.bits, dtype="uint8" if form.bits <= 8 else "uint16")


def finite_values(form: Float) -> Any:
    """Every finite value of a narrow format, from zero up."""
    values = form.decode(all_codes(form)[: 2 ** (form.bits - 1)])
    return values[numpy.isfinite(values)]


def as_fp32(values: Any) -> Any:
    """The nearest FP32 numbers: ml_dtypes would round through them, and so round twice."""
    with numpy.errstate(over="ignore"):
        return numpy.asarray(values, "float32").astype(float)


def neighbours(values: Any) -> Any:
    """Values with the FP32 numbers on both sides of them, of both signs."""
    middle, infinity = as_fp32(values).astype("float32"), numpy.float32("inf")
    near = [middle, numpy.nextafter(middle, infinity), numpy.nextafter(middle, -infinity)]
    return numpy.concatenate([*near, *(-each for each in near)]).astype(float)


def same(values: Any, wanted: Any) -> None:
    """Equal bit for bit: zeros by their sign, NaN by being NaN."""
    numpy.testing.assert_array_equal(values, wanted)
    where_not_nan = ~numpy.isnan(wanted)
    numpy.testing.assert_array_equal(
        numpy.signbit(values)[where_not_nan], numpy.signbit(wanted)[where_not_nan]
    )


# --- widths and what follows from them ---


@every_float
def test_limits_against_finfo(form: Float, dtype: Any) -> None:
    limits = (numpy if dtype.__module__ == "numpy" else ml_dtypes).finfo(dtype)
    assert form.max == float(limits.max)
    assert form.smallest_normal == float(limits.smallest_normal)
    assert form.smallest_subnormal == float(limits.smallest_subnormal)
    assert form.epsilon == float(limits.eps)
    assert form.bits == limits.bits
    if form.bits >= 16:  # below, ml_dtypes says 0 or 1 as it was written by hand
        assert math.floor(form.mantissa_bits * math.log10(2)) == limits.precision


def test_what_the_papers_print() -> None:
    # Micikevicius et al. 2022, table 1 and section 3; NVIDIA 2020; OCP 2023, tables 1 to 6.
    assert (formats.FP8_E4M3.bias, formats.FP8_E5M2.bias) == (7, 15)
    binades = [formats.FP8_E4M3.binades, formats.FP8_E5M2.binades, formats.FP16.binades]
    assert binades == [18, 32, 40]
    assert formats.TF32.bits == 19
    assert str(formats.TF32.size) == "4 byte"
    assert formats.MXINT8.element.max == 1 + 63 / 64


def test_sizes() -> None:
    sizes = [formats.get(name).size.m_as("byte") for name in ("fp64", "bf16", "fp8-e4m3", "int4")]
    assert sizes == [8, 2, 1, 0.5]
    assert formats.FP6_E2M3.size.m_as("byte") == 0.75
    assert formats.MXFP4.size.m_as("byte") == 17 / 32  # 32 elements of half a byte, one scale
    assert (formats.MXFP8_E4M3.bits, formats.MXFP6_E2M3.bits) == (8.25, 6.25)


def test_digits_and_decades() -> None:
    assert formats.FP32.decimal_digits == pytest.approx(7.2247, abs=1e-4)  # 24 bits
    assert formats.FP64.decimal_digits == pytest.approx(15.9546, abs=1e-4)  # 53 bits
    assert formats.FP16.decades == pytest.approx(math.log10(65504 * 2**24))
    assert formats.FP64.decades == pytest.approx(631.56, abs=0.01)  # no float holds the ratio


@narrow
def test_ulp_is_the_gap_between_neighbours(form: Float, dtype: Any) -> None:
    values = finite_values(form)
    numpy.testing.assert_array_equal(form.ulp(values[:-1]), numpy.diff(values))
    numpy.testing.assert_array_equal(form.ulp(-values), form.ulp(values))
    assert math.isnan(form.ulp(form.max * 1.01))
    assert math.isnan(form.ulp(math.inf))
    assert math.isnan(form.ulp(math.nan))


def test_ulp_against_numpy() -> None:
    values = numpy.array([0, 5e-324, 1e-310, 1, 1.5, 2, 1e300, formats.FP64.max / 2])
    numpy.testing.assert_array_equal(formats.FP64.ulp(values), numpy.spacing(values))
    assert formats.FP32.ulp(1e-45) == 2**-149


# --- bit for bit ---


@narrow
def test_every_code_both_ways(form: Float, dtype: Any) -> None:
    codes = all_codes(form)
    values = form.decode(codes)
    same(values, values_of(codes, dtype))
    numbers = ~numpy.isnan(values)
    numpy.testing.assert_array_equal(form.encode(values[numbers]), codes[numbers])
    if not numbers.all():
        numpy.testing.assert_array_equal(
            form.encode(values[~numbers]), bits_of(values, dtype)[~numbers]
        )


@narrow
def test_every_value_every_tie_and_their_neighbours(form: Float, dtype: Any) -> None:
    values = finite_values(form)
    step = values[-1] - values[-2]
    beyond = values[-1] + step * numpy.array([0.5, 1, 1.5, 4, 1e10])  # around the overflow
    ties = (values[1:] + values[:-1]) / 2
    for given_values in (values, ties, beyond):
        given_values = neighbours(given_values)
        numpy.testing.assert_array_equal(form.encode(given_values), bits_of(given_values, dtype))
    same(form.round(numpy.array([0.0, -0.0])), numpy.array([0.0, -0.0]))


@every_float
def test_random_values(form: Float, dtype: Any) -> None:
    random = numpy.random.default_rng(seed=1)
    low, high = form.min_exponent - form.mantissa_bits - 3, form.max_exponent + 1
    exponents = random.uniform(max(low, -1074), min(high, 1023), size=200_000)
    values = random.choice([-1.0, 1.0], size=exponents.size) * 2.0**exponents
    if dtype.__module__ != "numpy":
        values = as_fp32(values)
    numpy.testing.assert_array_equal(form.encode(values), bits_of(values, dtype))
    same(form.round(values), values_of(bits_of(values, dtype), dtype))


@pytest.mark.parametrize("name", ["fp64", "fp32", "fp16"])
@given(value=doubles)
def test_any_double_against_numpy(name: str, value: float) -> None:
    form, dtype = FLOATS[name]
    assert form.encode(value) == int(bits_of([value], dtype)[0])


@given(st.integers(0, 2**64 - 1))
def test_any_code_of_fp64(code: int) -> None:
    (wanted,) = struct.unpack("<d", struct.pack("<Q", code))
    value = formats.FP64.decode(code)
    assert value == wanted or (math.isnan(value) and math.isnan(wanted))
    if not math.isnan(wanted):
        assert formats.FP64.encode(value) == code


@given(st.integers(0, 2**32 - 1))
def test_any_code_of_fp32(code: int) -> None:
    (wanted,) = struct.unpack("<f", struct.pack("<I", code))
    value = formats.FP32.decode(code)
    assert value == wanted or (math.isnan(value) and math.isnan(wanted))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_tf32_is_fp32_less_thirteen_bits(value: float) -> None:
    """The encoding drops the last 13 bits of an FP32 number, to the nearest, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    kept, dropped = bits >> 13, bits & 0x1FFF
    kept += dropped > 0x1000 or (dropped == 0x1000 and kept & 1)
    assert formats.TF32.encode(value) == kept
    (wanted,) = struct.unpack("<f", struct.pack("<I", kept << 13))
    assert formats.TF32.round(value) == wanted


@narrow
def test_infinity_and_nan(form: Float, dtype: Any) -> None:
    assert form.encode(math.inf) == int(bits_of([math.inf], dtype)[0])
    assert form.encode(-math.inf) == int(bits_of([-math.inf], dtype)[0])
    if form.specials == "none":
        assert form.round(math.inf) == form.max
        with pytest.raises(InputError, match="has no NaN, and there is one among the values"):
            form.encode([1.0, math.nan])
    else:
        for nan in (math.nan, -math.nan):
            assert form.encode(nan) == int(bits_of([nan], dtype)[0])
        assert math.isnan(form.round(math.nan))
    assert form.round(math.inf) == {"ieee": math.inf, "none": form.max}.get(
        form.specials, pytest.approx(math.nan, nan_ok=True)
    )


def test_the_overflow_of_the_book() -> None:
    # Halfway between the largest number and the next step is a tie; above it the step is taken.
    assert formats.FP16.round([65519.99, 65520]).tolist() == [65504, math.inf]
    assert formats.FP8_E4M3.round(464) == 448
    assert math.isnan(formats.FP8_E4M3.round(464.01))
    assert formats.FP4_E2M1.round([5, 7, 1e9, -1e9]).tolist() == [4, 6, 6, -6]


def test_rounding_once_and_twice() -> None:
    above_the_tie = 1 + 2**-8 + 2**-40
    assert formats.BF16.round(above_the_tie) == 1 + 2**-7
    assert formats.BF16.round(formats.FP32.round(above_the_tie)) == 1
    assert float(numpy.array(above_the_tie).astype(ml_dtypes.bfloat16)) == 1


# --- one table of spellings ---


def checkpoint_of_llama_3_8b(bits: float) -> int:
    """Bytes where linear layers have these bits, and both tables of words and all norms have 16."""
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    others = 2 * 128_256 * 4096 + (2 * 32 + 1) * 4096
    return int(linear * bits / 8 + others * 2)


@pytest.mark.parametrize(
    ("form", "spellings"),
    [
        (formats.FP16, ["fp16", "FP16", "float16", "Float_16", "half", "fp 16"]),
        (formats.BF16, ["bf16", "bfloat16", "BFLOAT16"]),
        (formats.FP8_E4M3, ["fp8", "FP8 E4M3", "fp8_e4m3", "e4m3", "float8_e4m3fn", "fp8-e4m3"]),
        (formats.FP8_E5M2, ["fp8-e5m2", "float8_e5m2"]),
        (formats.INT8, ["int8", "INT8", "int-8"]),
        (formats.FP4_E2M1, ["fp4", "fp4-e2m1"]),
    ],
)
def test_any_spelling_means_the_same_everywhere(form: Any, spellings: list[str]) -> None:
    b200 = hardware.get("b200")
    bits = 4.5 if form is formats.FP4_E2M1 else form.bits  # released as NVFP4, with its scales
    for spelling in spellings:
        assert formats.get(spelling) is form
        assert formats.printed(spelling) == form.name
        assert formats.element_size("weights", spelling) == form.size
        assert roofline.gemm(64, 64, 64, spelling) == roofline.gemm(64, 64, 64, form.size)
        assert inference.weight_memory(models.get("llama-3-8b"), spelling).m_as("byte") == (
            checkpoint_of_llama_3_8b(bits)
        )
        assert b200.peak(spelling) == b200.peak(hardware.dtype_of(form.key))
        assert b200.ridge_point(spelling) == b200.ridge_point(hardware.dtype_of(form.key))
        if form.key in simulation.PRECISIONS:
            assert simulation.arithmetic(spelling).name == form.key
            config = simulation.HardwareSimulationConfig(precision_mode=spelling)
            assert config.precision_mode == form.key


def test_no_spelling_means_two_formats() -> None:
    spellings = [
        squeezed(each)
        for form, others in formats.SPELLINGS.items()
        for each in (form.name, *others)
    ]
    assert len(spellings) == len({*spellings})


def test_a_bare_number_counts_bits() -> None:
    for eight in (8, "8", 8.0, quantity(8, "")):
        assert formats.element_size("weights", eight) == quantity("8 bit")
    for wrong in (1, 2, 0, -8, math.nan, True, None, "", "2 s", quantity("3 GB/s")):
        with pytest.raises(InputError, match=r"^weights"):
            formats.element_size("weights", wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="element_size needs a quantity in byte"):
        roofline.gemm(8, 8, 8, 2)  # of what, a law does not guess


@pytest.mark.parametrize("form", [formats.FP32, formats.TF32, formats.BF16, formats.FP16])
def test_rounding_in_fp32_is_rounding(form: Float) -> None:
    bits = numpy.random.default_rng(seed=3).integers(0, 2**32, 100_000, dtype="uint32")
    values = numpy.concatenate([bits, (bits >> 13) << 13 | 0x1000]).astype("uint32").view("float32")
    with numpy.errstate(all="ignore"):  # signalling NaN among them
        wanted = form.round(values.astype(float)).astype("float32")
        same(form.round_fp32(values).astype(float), wanted.astype(float))


@every_float
def test_rounding_is_decoding_what_was_encoded(form: Float, dtype: Any) -> None:
    random = numpy.random.default_rng(seed=12)
    values = random.normal(size=5000) * 2.0 ** random.integers(-160, 160, 5000)
    ends = [0.0, -0.0, form.max, -form.max, 1.01 * form.max, 3 * form.max, math.inf, -math.inf]
    for given_values in (values, values * form.smallest_subnormal, numpy.array(ends)):
        same(form.round(given_values), form.decode(form.encode(given_values)))
        drawn = [numpy.random.default_rng(13), numpy.random.default_rng(13)]
        wanted = form.decode(form.encode(given_values, random=drawn[0]))
        same(form.round(given_values, random=drawn[1]), wanted)


# --- any split, in exact fractions ---


def fraction_values(exponent_bits: int, mantissa_bits: int, specials: str) -> list[Fraction]:
    """Every finite value from zero up, as the definition has it."""
    bias = 2 ** (exponent_bits - 1) - 1
    values = []
    for exponent in range(2**exponent_bits):
        for mantissa in range(2**mantissa_bits):
            last_exponent = exponent == 2**exponent_bits - 1
            last_code = last_exponent and mantissa == 2**mantissa_bits - 1
            if (specials == "ieee" and last_exponent) or (specials == "nan" and last_code):
                continue
            hidden = 1 if exponent else 0
            significand = hidden + Fraction(mantissa, 2**mantissa_bits)
            values.append(significand * Fraction(2) ** (max(exponent, 1) - bias))
    return values


@given(
    exponent_bits=st.integers(2, 5),
    mantissa_bits=st.integers(1, 5),
    specials=st.sampled_from(["ieee", "nan", "none"]),
    where=st.fractions(0, 1),
)
def test_any_split(exponent_bits: int, mantissa_bits: int, specials: str, where: Fraction) -> None:
    form = Float(exponent_bits, mantissa_bits, specials)
    values = fraction_values(exponent_bits, mantissa_bits, specials)
    assert [Fraction(form.decode(code)) for code in range(len(values))] == values
    assert (form.max, form.smallest_subnormal) == (values[-1], values[1])
    assert form.smallest_normal == values[2**mantissa_bits]
    assert form.ulp(1.0) == form.epsilon == Fraction(1, 2**mantissa_bits)
    below = min(int(where * len(values)), len(values) - 2)
    value = values[below] + (values[below + 1] - values[below]) * where
    exact = Fraction(float(value))
    distance = [abs(exact - each) for each in values]
    least = min(distance)
    nearest = [code for code, each in enumerate(distance) if each == least]
    wanted = nearest[0] if len(nearest) == 1 else next(code for code in nearest if code % 2 == 0)
    assert form.encode(float(value)) == wanted
    sign = 2 ** (exponent_bits + mantissa_bits)
    assert form.encode(-float(value)) == wanted + sign


def test_without_mantissa() -> None:
    e3m0 = Float(3, 0, "none")
    assert [e3m0.decode(code) for code in range(8)] == [0, 0.25, 0.5, 1, 2, 4, 8, 16]
    assert e3m0.round([0.13, 0.7, 3.1, 99]).tolist() == [0.25, 0.5, 4, 16]


# --- integers and scales ---


@pytest.mark.parametrize(
    ("form", "dtype"), [(formats.INT8, numpy.int8), (formats.INT4, ml_dtypes.int4)]
)
def test_every_integer(form: Integer, dtype: Any) -> None:
    codes = all_codes(form)
    values = form.decode(codes)
    low, high = int(form.min), int(form.max)
    assert sorted(values.tolist()) == list(range(low, high + 1))
    numpy.testing.assert_array_equal(form.encode(values), codes)
    signed = numpy.arange(low, high + 1).astype(dtype)
    codes_of_dtype = signed.view("uint8") & (2**form.bits - 1)
    numpy.testing.assert_array_equal(form.encode(range(low, high + 1)), codes_of_dtype)


def test_integers_round_to_even_and_saturate() -> None:
    given_values = [-200, -128.5, -0.5, 0.5, 1.5, 2.5, 126.5, 127.5, math.inf, -math.inf]
    wanted = [-128, -128, 0, 0, 2, 2, 126, 127, 127, -128]
    assert formats.INT8.round(given_values).tolist() == wanted
    assert Integer(8, fraction_bits=6).round([1.0, 0.01, -3]).tolist() == [1, 1 / 64, -2]
    with pytest.raises(InputError, match="INT8 has no NaN"):
        formats.INT8.round(math.nan)


def test_every_scale() -> None:
    dtype = ml_dtypes.float8_e8m0fnu
    codes = all_codes(formats.E8M0)
    same(formats.E8M0.decode(codes), values_of(codes, dtype))
    numpy.testing.assert_array_equal(formats.E8M0.encode(formats.E8M0.decode(codes)), codes)
    powers = 2.0 ** numpy.arange(-131, 131)
    near = [powers * factor for factor in (1, 1.2, 1.49, 1.5, 1.51, 1.99)]
    values = as_fp32(numpy.concatenate([*near, [0, -1, math.inf, math.nan]]))
    values = values[~((values > 2.0**-127) & (values < 1.5 * 2.0**-127))]  # ml_dtypes rounds up
    assert formats.E8M0.round([1.2 * 2.0**-127, 1e-300]).tolist() == [2.0**-127] * 2
    numpy.testing.assert_array_equal(formats.E8M0.encode(values), bits_of(values, dtype))
    assert (formats.E8M0.max, formats.E8M0.min) == (2.0**127, 2.0**-127)


# --- blocks, by the rule of the OCP specification (section 6.3), one block at a time ---


def ocp_block(
    values: list[float], emax: int, largest: float, cast: Callable[[float], float]
) -> Any:
    """Scale and values of one block, written out: X = 2^(floor(log2 max|V|) - emax), P = V / X."""
    peak = max(abs(Fraction(value)) for value in values)
    exponent = -127
    while peak >= Fraction(2) ** (exponent + 1 + emax):
        exponent += 1
    scale = Fraction(2) ** exponent
    limited = [max(-largest, min(largest, float(Fraction(v) / scale))) for v in values]
    return float(scale), [cast(value) * float(scale) for value in limited]


def through(dtype: Any) -> Callable[[float], float]:
    return lambda value: float(numpy.array(value).astype(dtype))


BLOCKS: dict[str, tuple[Block, int, float, Callable[[float], float]]] = {
    "mxfp8-e4m3": (formats.MXFP8_E4M3, 8, 448, through(ml_dtypes.float8_e4m3fn)),
    "mxfp8-e5m2": (formats.MXFP8_E5M2, 15, 57344, through(ml_dtypes.float8_e5m2)),
    "mxfp6-e3m2": (formats.MXFP6_E3M2, 4, 28, through(ml_dtypes.float6_e3m2fn)),
    "mxfp6-e2m3": (formats.MXFP6_E2M3, 2, 7.5, through(ml_dtypes.float6_e2m3fn)),
    "mxfp4": (formats.MXFP4, 2, 6, through(ml_dtypes.float4_e2m1fn)),
    "mxint8": (formats.MXINT8, 0, 127 / 64, lambda value: float(numpy.rint(64 * value)) / 64),
}
every_block = pytest.mark.parametrize(
    ("form", "emax", "largest", "cast"), BLOCKS.values(), ids=BLOCKS
)


@every_block
@given(st.lists(st.floats(-(2.0**120), 2.0**120), min_size=32, max_size=32))
def test_a_block_against_the_rule(
    form: Block, emax: int, largest: float, cast: Callable[[float], float], values: list[float]
) -> None:
    scales, elements = form.encode(values)
    scale, wanted = ocp_block(values, emax, largest, cast)
    assert form.scale.decode(scales).tolist() == [scale]
    assert form.decode(scales, elements).tolist() == wanted
    assert (scales.dtype, elements.dtype) == (numpy.uint8, numpy.uint8)


@every_block
def test_many_blocks_along_the_last_axis(
    form: Block, emax: int, largest: float, cast: Callable[[float], float]
) -> None:
    random = numpy.random.default_rng(seed=2)
    values = random.normal(size=(3, 5, 80)) * 10.0 ** random.uniform(-6, 6, size=(3, 5, 1))
    rounded = form.round(values)
    for row, rounded_row in zip(values.reshape(-1, 80), rounded.reshape(-1, 80), strict=True):
        for start in range(0, 80, 32):  # the last block is half full
            _, wanted = ocp_block(row[start : start + 32].tolist(), emax, largest, cast)
            assert rounded_row[start : start + 32].tolist() == wanted
    scales, elements = form.encode(values)
    assert (scales.shape, elements.shape) == ((3, 5, 3), (3, 5, 80))


def test_special_blocks() -> None:
    zeros = formats.MXFP4.encode(numpy.zeros(64))
    assert zeros.scales.tolist() == [0, 0]  # the smallest scale there is
    assert formats.MXFP4.round(numpy.zeros(64)).tolist() == [0] * 64
    for bad in (math.nan, math.inf, 1e300):
        values = numpy.ones(64)
        values[3] = bad
        assert formats.MXFP4.encode(values).scales.tolist() == [255, 125]
        rounded = formats.MXFP8_E4M3.round(values)
        assert numpy.isnan(rounded[:32]).all()
        assert (rounded[32:] == 1).all()
    assert formats.MXFP8_E4M3.round([1e-44, 0.0]).tolist() == [0.0, 0.0]
    assert formats.MXFP4.round([]).tolist() == []
    assert formats.MXFP4.round(numpy.ones((2, 0))).shape == (2, 0)


def test_a_block_of_ones_own() -> None:
    block = Block(formats.FP4_E2M1, formats.E8M0, 16)
    assert block.bits == 4.5
    assert block.name == "FP4 E2M1 in blocks of 16"
    assert block.round(numpy.arange(16.0)).max() == 12  # 15 / 2 saturates at 6


# --- block formats as others' reference quantisers encode them, bit for bit ---

REFERENCE = tomllib.loads((Path(__file__).parent / "reference_blocks.toml").read_text())


def digits(text: str, width: int) -> Any:
    """Whole numbers, of so many hexadecimal digits each."""
    return numpy.array([int(text[at : at + width], 16) for at in range(0, len(text), width)])


def bf16_numbers(text: str) -> Any:
    return formats.BF16.decode(digits(text, 4))


REFERENCE_VALUES = numpy.array([bf16_numbers(row) for row in REFERENCE["values"]])


def test_nvfp4_as_transformer_engine_encodes_it() -> None:
    wanted, encoded = REFERENCE["nvfp4"], formats.NVFP4.encode(REFERENCE_VALUES)
    numpy.testing.assert_array_equal(encoded.scales.ravel(), digits(wanted["scales"], 2))
    numpy.testing.assert_array_equal(encoded.elements.ravel(), digits(wanted["codes"], 1))


@pytest.mark.parametrize(("table", "power_of_two"), [("tiles", False), ("powers", True)])
def test_tiles_as_transformer_engine_encodes_them(table: str, power_of_two: bool) -> None:
    wanted = REFERENCE[table]
    encoded = Tiles(formats.FP8_E4M3, 1, 128, power_of_two).encode(REFERENCE_VALUES)
    assert encoded.scales.ravel().tolist() == wanted["scales"]
    numpy.testing.assert_array_equal(encoded.elements.ravel(), digits(wanted["codes"], 2))


@pytest.mark.parametrize(
    ("table", "form"), [("mxfp4", formats.MXFP4), ("mxfp8", formats.MXFP8_E4M3)]
)
def test_mx_formats_as_microxcaling_leaves_them(table: str, form: Block) -> None:
    same(form.round(REFERENCE_VALUES).ravel(), bf16_numbers(REFERENCE[table]["values"]))


def nvfp4_by_hand(values: list[float]) -> tuple[list[int], list[float], list[float]]:
    """Codes of scales, elements and decoded values, one number at a time, with ml_dtypes."""
    single, e4m3, e2m1 = numpy.float32, ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn
    given_ = [single(value) for value in values]
    top = max(abs(value) for value in given_)
    up = single(448 * 6) / top
    codes, elements, decoded = [], [], []
    for start in range(0, len(given_), 16):
        block = given_[start : start + 16]
        wanted = max(abs(value) for value in block) * (up * (single(1) / single(6)))
        scale = min(wanted, single(448)).astype(e4m3)
        codes.append(int(scale.view("uint8")))
        stretch = single(1) / (single(scale) * (single(1) / up)) if scale else single(3.4028235e38)
        for value in block:
            element = float(numpy.clip(value * stretch, -6, 6).astype(e2m1))
            elements.append(element)
            decoded.append(float(single(element) * single(scale) * (single(1) / up)))
    return codes, elements, decoded


@given(
    st.lists(st.floats(-1e4, 1e4, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3)),
    st.floats(1, 1e4, width=32),
)
def test_nvfp4_one_number_at_a_time(values: list[float], first: float) -> None:
    values = [first, *values]
    codes, elements, decoded = nvfp4_by_hand(values)
    scales, encoded, tensor_scale = formats.NVFP4.encode(values)
    assert scales.tolist() == codes
    same(formats.FP4_E2M1.decode(encoded), numpy.array(elements))
    same(formats.NVFP4.decode(scales, encoded, tensor_scale), numpy.array(decoded))


def test_nvfp4_at_its_ends() -> None:
    assert formats.NVFP4.bits == 4.5
    assert formats.NVFP4.round(numpy.zeros((2, 20))).tolist() == numpy.zeros((2, 20)).tolist()
    assert formats.NVFP4.round([]).tolist() == []
    assert formats.NVFP4.encode(numpy.ones((3, 40))).scales.shape == (3, 3)  # the last is short
    largest = numpy.full(32, 3e38)
    assert numpy.allclose(formats.NVFP4.round(largest), largest, rtol=1e-6)
    # A block four orders of magnitude below the largest value has no scale left, and is zero.
    assert formats.NVFP4.round([1e6] + [0.0] * 15 + [1e-1] * 16)[16:].tolist() == [0.0] * 16
    for wrong in (math.nan, math.inf, 1e39):
        with pytest.raises(InputError, match="NVFP4 scales a whole tensor by its largest value"):
            formats.NVFP4.encode([1.0, wrong])
    with pytest.raises(InputError, match="NVFP4: tensor_scale must be a number"):
        formats.NVFP4.decode([1], [1], math.nan)


@given(st.lists(st.floats(-1e30, 1e30), min_size=32, max_size=32))
def test_the_rule_that_rounds_up_saturates_nothing(values: list[float]) -> None:
    for form in (formats.MXFP4, formats.MXFP8_E4M3, formats.MXFP6_E2M3):
        down = form.scale.decode(form.encode(values).scales)[0]
        up = form.scale.decode(form.encode(values, rule="rceil").scales)[0]
        peak = max(abs(Fraction(value)) for value in values)
        assert peak <= Fraction(up) * Fraction(form.element.max)
        assert up in (down, 2 * down)
        assert up == form.scale.min or peak > Fraction(up) / 2 * Fraction(form.element.max)
    with pytest.raises(InputError, match="MXFP4: rule must be one of floor, rceil; got 'nearest'"):
        formats.MXFP4.encode(values, rule="nearest")


# --- FP8 as it is trained in ---


def test_tiles_of_any_shape() -> None:
    values = numpy.random.default_rng(seed=4).normal(size=(5, 300))
    for rows, columns in ((None, None), (1, 128), (2, 128), (128, 128), (5, 1), (None, 7)):
        tiles = Tiles(formats.FP8_E4M3, rows, columns)
        rounded = tiles.round(values)
        for top in range(0, 5, rows or 5):
            for left in range(0, 300, columns or 300):
                at = slice(top, top + (rows or 5)), slice(left, left + (columns or 300))
                part = values[at].astype("float32")
                up = numpy.float32(448) / abs(part).max()
                kept = (part * up).astype(ml_dtypes.float8_e4m3fn).astype("float32")
                same(rounded[at], (kept * (numpy.float32(1) / up)).astype(float))


def test_a_power_of_two_is_a_scale_of_its_own_byte() -> None:
    values = numpy.random.default_rng(seed=5).normal(size=(4, 256)) * 1e-3
    scales = Tiles(formats.FP8_E4M3, 1, 128, power_of_two=True).encode(values).scales
    assert formats.E8M0.round(scales).tolist() == scales.tolist()


def test_delayed_scaling_sees_the_steps_before() -> None:
    steps = [numpy.full((1, 2), peak) for peak in (2.0, 8.0, 1.0, 1.0, 1.0, 4.0)]
    rounded = [tensor[0, 0] for tensor in delayed(steps, formats.FP8_E4M3, history=2)]
    # A scale of one first; then 8 saturates at 2, and 4 at 1, since 8 is forgotten by then.
    assert rounded == pytest.approx([2, 2, 1, 1, 1, 1], rel=0.07)
    assert rounded[1] == pytest.approx(2, rel=1e-6)
    assert rounded[5] == pytest.approx(1, rel=1e-6)


# --- stochastic rounding ---


class EvenlySpread(numpy.random.Generator):
    """Generator of the middles of equal parts of 0 to 1, in place of random numbers."""

    def __init__(self) -> None:
        super().__init__(numpy.random.PCG64(0))

    def random(self, size: Any = None, *_: Any, **__: Any) -> Any:  # type: ignore[override]
        count = math.prod(size)
        return ((numpy.arange(count) + 0.5) / count).reshape(size)


@pytest.mark.parametrize("form", [formats.FP4_E2M1, formats.FP8_E4M3, formats.BF16, formats.INT8])
@given(st.floats(-5.9, 5.9))
def test_stochastic_rounding_has_the_probabilities_of_the_distances(
    form: Float | Integer, value: float
) -> None:
    drawn = form.round(numpy.full(10_000, value), random=EvenlySpread())
    below, above = drawn.min(), drawn.max()
    gap = form.ulp(value) if isinstance(form, Float) else form.step
    assert above - below in (0, gap)
    assert abs(below - value) < gap > abs(above - value)
    assert abs(drawn.mean() - value) <= gap / 10_000


def test_blocks_are_rounded_stochastically_too() -> None:
    gradients = numpy.random.default_rng(7).normal(size=(1, 64))
    many = numpy.repeat(gradients, 4000, axis=0)
    for form in (formats.NVFP4, formats.MXFP4):
        how = {} if form is formats.NVFP4 else {"rule": "rceil"}
        kept = form.round(many, random=numpy.random.default_rng(8), **how).mean(axis=0)
        assert abs(kept - gradients[0]).max() < 0.05 < abs(form.round(gradients) - gradients).max()
    with pytest.raises(InputError, match=r"draws from a generator, numpy\.random\.default_rng"):
        formats.BF16.round(1.001, random=6)


# --- sums ---


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60))
def test_sums_in_exact_fractions(values: list[float]) -> None:
    form = formats.BF16
    terms = [form.round(value) for value in values]
    total = 0.0
    for term in terms:
        total = form.round(total + term)
    assert formats.running_sum(terms, form) == total
    exact = float(sum(Fraction(term) for term in terms))
    size = math.fsum(abs(term) for term in terms)
    unit, count = form.epsilon / 2, len(terms)
    # The bounds of Higham (1993): of pairs by their depth, of Neumaier's sum by the unit twice.
    depth = math.ceil(math.log2(count)) if count > 1 else 0
    assert (
        abs(formats.pairwise_sum(terms, form) - exact) <= depth * unit / (1 - depth * unit) * size
    )
    second = 2 * count**2 * unit**2 * size
    assert abs(formats.neumaier_sum(terms, form) - exact) <= 2 * unit * abs(exact) + second
    assert abs(formats.kahan_sum(terms, form) - exact) <= (3 * unit + count * 4 * unit**2) * size


def test_sums_along_the_last_axis() -> None:
    terms = numpy.random.default_rng(9).uniform(size=(3, 4, 100))
    for add in (formats.running_sum, formats.pairwise_sum, formats.kahan_sum, formats.neumaier_sum):
        sums = add(terms, formats.FP16)
        assert sums.shape == (3, 4)
        assert sums[1, 2] == add(terms[1, 2], formats.FP16)
    sums = formats.tensor_core_sum(terms, promoted_after=64)
    assert sums[1, 2] == formats.tensor_core_sum(terms[1, 2], promoted_after=64)
    for nothing in ([], 1.0, numpy.zeros((3, 0))):
        with pytest.raises(InputError, match="a sum needs terms along the last axis"):
            formats.running_sum(nothing, formats.BF16)


def cut_short(value: Fraction, last: Fraction) -> Fraction:
    return math.trunc(value / last) * last


@given(st.lists(st.floats(-448, 448), min_size=1, max_size=100), st.sampled_from([None, 32, 64]))
def test_a_tensor_core_in_exact_fractions(values: list[float], promoted: int | None) -> None:
    products = [formats.FP8_E4M3.round(value) ** 2 * (-1) ** (value < 0) for value in values]
    register, total = Fraction(0), numpy.float32(0)
    for start in range(0, len(products), 32):
        group = [Fraction(value) for value in products[start : start + 32]]
        peak = max(abs(value) for value in group)
        last = Fraction(2) ** (math.frexp(peak)[1] - 14)
        register += sum(cut_short(value, last) for value in group)
        register = cut_short(register, Fraction(2) ** (math.frexp(abs(register))[1] - 14))
        if promoted and (start + 32) % promoted == 0:
            total, register = total + numpy.float32(register), Fraction(0)
    wanted = float(total + numpy.float32(register))
    assert formats.tensor_core_sum(products, promoted_after=promoted) == wanted


# --- the Hadamard transform ---

TRANSFORMER_ENGINE_SIGNS = [1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1]


def test_the_hadamard_transform_is_the_matrix() -> None:
    matrix = numpy.ones((1, 1))
    for _ in range(4):
        matrix = numpy.kron([[1, 1], [1, -1]], matrix)
    values = numpy.random.default_rng(10).normal(size=(3, 48))
    signs = numpy.array(TRANSFORMER_ENGINE_SIGNS)
    wanted = (values.reshape(-1, 16) * signs @ matrix / 4).reshape(3, 48)
    transformed = formats.hadamard_transform(values, 16, signs)
    assert numpy.allclose(transformed, wanted, rtol=1e-13, atol=1e-13)
    assert numpy.allclose((transformed**2).sum(), (values**2).sum())
    back = formats.inverse_hadamard_transform(transformed, 16, signs)
    assert numpy.allclose(back, values, rtol=1e-13, atol=1e-13)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=16, max_size=16))
def test_the_inverse_is_exact_where_the_sums_are(values: list[int]) -> None:
    turned = formats.hadamard_transform(values, 16, TRANSFORMER_ENGINE_SIGNS)
    assert (
        formats.inverse_hadamard_transform(turned, 16, TRANSFORMER_ENGINE_SIGNS).tolist() == values
    )


def test_a_rotated_product_is_the_product() -> None:
    left, right = numpy.random.default_rng(11).normal(size=(2, 5, 64))
    turned = [formats.hadamard_transform(each, 32) for each in (left, right)]
    assert numpy.allclose(left @ right.T, turned[0] @ turned[1].T)


# --- what takes a format takes block formats too ---


@pytest.mark.parametrize(
    ("name", "bits", "dtype"),
    [
        ("nvfp4", 4.5, "fp4"),
        ("mxfp4", 4.25, "fp4"),
        ("mxfp8", 8.25, "fp8"),
        ("MXINT8", 8.25, "int8"),
    ],
)
def test_block_formats_count_their_scales(name: str, bits: float, dtype: str) -> None:
    model = models.get("llama-3-8b")
    assert formats.element_size("weights", name).m_as("bit") == bits
    if name == "MXINT8":
        with pytest.raises(InputError, match="no checkpoint is released in 'MXINT8'"):
            inference.weight_memory(model, name)
    else:
        held = inference.weight_memory(model, name).m_as("byte")
        assert held == checkpoint_of_llama_3_8b(bits)
    assert hardware.dtype_of(name) == dtype
    b200 = hardware.get("b200")
    assert b200.peak(name) == b200.peak(dtype)


def test_a_device_without_four_bits_refuses_nvfp4_as_it_does_fp4() -> None:
    h100 = hardware.get("h100")
    for name in ("fp4", "nvfp4"):
        with pytest.raises(InputError, match="no dense peak"):
            h100.peak(name)


# --- published trainings in few bits ---


def test_published_gaps_name_their_sources(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in formats.training_formats():
        assert citations.citation(each.source)
        assert all(citations.citation(record.provenance.source) for record in each.records.values())
        assert formats.key_of(each.format.split(",")[0]) is not None
    text = recipes.FILE.read_text(encoding="utf-8")
    for old, new, message in (
        ('sense = "below"', 'sense = "over"', "sense must be one of below, about"),
        ('baseline = "BF16"', 'base = "BF16"', "unknown field base"),
        ('scales = "one', '# scales = "one', "has no scales"),
    ):
        path = written(text.replace(old, new, 1), "training_formats.toml")
        monkeypatch.setattr(recipes, "FILE", path)
        recipes.training_formats.cache_clear()
        with pytest.raises(InputError, match=message):
            formats.training_formats()
    recipes.training_formats.cache_clear()


def test_every_quality_names_its_source() -> None:
    assert all(citations.citation(each.source) for each in formats.quantized_models())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('method = "GPTQ"', 'way = "GPTQ"', "unknown field way"),
        ("before = 5.68\n", "", "llama-7b-rtn-w4a16 has no before"),
        ("after = 6.09", 'after = "6.09"', "value must be a number; got '6.09'"),
    ],
)
def test_quality_that_cannot_be_read(
    written: Written, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    path = written(
        quality.FILE.read_text(encoding="utf-8").replace(old, new, 1), "quantization_quality.toml"
    )
    monkeypatch.setattr(quality, "FILE", path)
    quality.quantized_models.cache_clear()
    with pytest.raises(InputError, match=re.escape(message)):
        formats.quantized_models()
    quality.quantized_models.cache_clear()


# --- names, shapes, refusals ---


def test_names() -> None:
    assert set(formats.names()) >= set(FLOATS) - {"e4m3 by IEEE", "e3m4 by IEEE"}
    for name in formats.names():
        form = formats.get(name)
        assert getattr(formats, name.upper().replace("-", "_")) is form
        assert formats.get(form.name) is form
        assert citations.citation(form.source)
    assert formats.get("FP8_E4M3") is formats.FP8_E4M3
    assert Float(5, 10) == formats.FP16
    assert Float(5, 10).name == "E5M10"
    assert Integer(8).name == "INT8"
    assert PowerOfTwo(8) == formats.E8M0


@pytest.mark.parametrize(
    "form", [formats.FP32, formats.FP4_E2M1, formats.INT8, formats.E8M0], ids=lambda form: form.name
)
def test_scalars_arrays_and_nothing(form: Any) -> None:
    assert type(form.encode(1)) is int
    assert type(form.round(1)) is float
    assert type(form.round(numpy.float32(1))) is float
    assert form.round([[1.0, 2.0]]).tolist() == [[1, 2]]
    assert form.encode(numpy.ones((2, 3))).shape == (2, 3)
    assert form.round([]).shape == form.encode([]).shape == form.decode([]).shape == (0,)
    assert form.decode(numpy.uint8(1)) == form.decode(1) == form.decode([1])[0]


def test_codes_come_in_the_narrowest_type() -> None:
    widths = {"fp4-e2m1": 8, "fp8-e4m3": 8, "bf16": 16, "tf32": 32, "fp32": 32, "fp64": 64}
    for name, width in widths.items():
        form = formats.get(name)
        assert isinstance(form, Float)
        assert form.encode([1.0]).dtype == f"uint{width}"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: formats.get("fp12"), "there is no format 'fp12'; did you mean fp32"),
        (lambda: formats.get("fp9"), "there is no format 'fp9'; did you mean fp8"),
        (lambda: formats.element_size("kv", " "), 'the name of its format, "int8"'),
        *(
            (lambda name=name: formats.cache_size("kv", name), "kv must be a format that caches")
            for name in ("awq", "GPTQ", "nf4", "w4a16", "q4_k", "fp8 in blocks")
        ),
        (lambda: formats.get("fp8-e"), "did you mean fp8-e5m2 or fp8-e4m3? there are fp64, fp32"),
        (lambda: formats.get(16), "there is no format 16"),
        (lambda: Float(12, 3), "exponent_bits must be a whole number from 2 to 11; got 12"),
        (lambda: Float(1, 3), "exponent_bits must be a whole number from 2 to 11; got 1"),
        (lambda: Float(11, 3, "nan"), "exponent_bits must be a whole number from 2 to 10; got 11"),
        (lambda: Float(5, 0), "mantissa_bits must be a whole number from 1 to 52; got 0"),
        (lambda: Float(5, 53), "mantissa_bits must be a whole number from 1 to 52; got 53"),
        (lambda: Float(5.0, 3), "exponent_bits must be a whole number from 2 to 11; got 5.0"),
        (lambda: Float(5, True), "mantissa_bits must be a whole number from 1 to 52; got True"),
        (lambda: Float(5, 2, "fn"), "specials must be one of ieee, nan, none; got 'fn'"),
        (lambda: Float(5, 10, storage_bits=8), "storage_bits must be a whole number from 16"),
        (lambda: Integer(1), "bits must be a whole number from 2 to 53; got 1"),
        (lambda: Integer(8, 9), "fraction_bits must be a whole number from 0 to 8; got 9"),
        (lambda: PowerOfTwo(11), "exponent_bits must be a whole number from 2 to 10; got 11"),
        (lambda: Block(formats.FP16, formats.E8M0, 0), "block_size must be a whole number from 1"),
        (
            lambda: formats.FP8_E4M3.decode(256),
            "a code of FP8 E4M3 is a whole number from 0 to 255",
        ),
        (lambda: formats.FP4_E2M1.decode([3, -1]), "a code of FP4 E2M1 is a whole number from 0"),
        (lambda: formats.FP16.decode(1.0), "a code of FP16 is a whole number from 0 to 65535"),
        (lambda: formats.FP64.decode(2**64), "a code of FP64 is a whole number from 0 to"),
        (lambda: formats.E8M0.decode(True), "a code of E8M0 is a whole number from 0 to 255"),
        (lambda: formats.FP16.round("1"), "a number, or a list or array of numbers, is needed"),
        (lambda: formats.FP8_E4M3.decode([[1, 2], [3]]), "codes of FP8 E4M3 must be a list or an"),
        (
            lambda: formats.FP16.round(quantity("3 GB")),
            "got 3 GB: give its magnitude in a unit, as",
        ),
        (lambda: formats.FP16.ulp(None), "a number, or a list or array of numbers, is needed"),
        (lambda: formats.INT8.encode([1, math.nan]), "INT8 has no NaN"),
        (lambda: formats.MXFP4.encode(1.0), "MXFP4 encodes blocks, so it needs an array"),
        (lambda: formats.NVFP4.encode(1.0), "NVFP4 encodes blocks, so it needs an array"),
        (lambda: Tiles(formats.FP8_E4M3, 0), "Tiles(): rows must be a whole number from 1"),
        (lambda: Tiles(formats.FP8_E4M3).encode([1.0]), "cut from a matrix; got an array of shape"),
        (lambda: Tiles(formats.FP8_E4M3).encode([[math.nan]]), "of a tile must be finite"),
        (lambda: Tiles(formats.FP8_E4M3).encode([[1.0]], largest=0), "largest must be a number"),
        (lambda: Tiles(formats.FP8_E4M3).decode([1.0], [[1]]), "each tile has one scale; got"),
        (lambda: list(delayed([], formats.FP8_E4M3, 0)), "delayed(): history must be a whole"),
        (lambda: formats.hadamard_transform([1.0] * 12, 12), "must be a power of two; got 12"),
        (lambda: formats.hadamard_transform([1.0] * 12), "blocks of 16 values along the last axis"),
        (lambda: formats.hadamard_transform([1.0] * 4, 4, [1, 1, 1, 2]), "signs are 4 numbers"),
        (lambda: formats.tensor_core_sum([1.0], bits=25), "bits must be a whole number from 2 to"),
        (lambda: formats.tensor_core_sum([1.0], promoted_after=48), "a multiple of its depth, 32"),
        (lambda: formats.MXFP4.decode([1, 1], [1]), "MXFP4 has one scale for each 32 elements"),
    ],
)
def test_refusals(wrong: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        wrong()
    assert sentence in str(refusal.value)


FP8 = formats.FP8_E4M3


@pytest.mark.parametrize(
    ("made", "least", "most"),
    [
        (lambda count: Float(count, 3), 2, 11),
        (lambda count: Float(count, 3, "nan"), 2, 10),
        (lambda count: Float(5, count), 1, 52),
        (lambda count: Float(5, count, "none"), 0, 52),
        (lambda count: Float(5, 10, storage_bits=count), 16, 64),
        (lambda count: Integer(count), 2, 53),
        (lambda count: Integer(8, count), 0, 8),
        (lambda count: PowerOfTwo(count), 2, 10),
        (lambda count: Block(formats.FP16, formats.E8M0, count), 1, 2**20),
        (lambda count: Tiles(FP8, count), 1, 2**20),
        (lambda count: list(delayed([], FP8, count)), 1, 2**20),
        (lambda count: formats.tensor_core_sum([1.0], bits=count), 2, 24),
        (lambda count: formats.tensor_core_sum([1.0], depth=count), 1, 2**20),
    ],
)
def test_a_width_reaches_its_limits_and_no_farther(
    made: Callable[[int], object], least: int, most: int
) -> None:
    for count in (least, most):
        made(count)
    for count in (least - 1, most + 1):
        with pytest.raises(InputError, match=f"from {least} to {most}; got {count}"):
            made(count)
