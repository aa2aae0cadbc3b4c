"""Number formats: what so many bits can hold, and what they round away.

    >>> print(FP16.max, FP16.smallest_subnormal, FP16.size)
    65504.0 5.960464477539063e-08 2 byte
    >>> FP16.round(1e-8), BF16.round(1e-8)
    (0.0, 1.0011717677116394e-08)
    >>> Float(exponent_bits=4, mantissa_bits=3).max  # by the rules of IEEE 754; FP8_E4M3 has others
    240.0

`FP8_E4M3` and `get("fp8-e4m3")` are the same format, `Float(…)` makes any other split. Each format
rounds values, encodes them to bits and decodes these again, one at a time or in arrays: values are
FP64 numbers, codes whole numbers from zero up. Only these three and `ulp` need numpy. `source` is
the key of references.bib under which a format is defined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

from pint.facets.plain import PlainQuantity

from calc.core.errors import InputError, NumpyNeededError, abbreviated, did_you_mean
from calc.core.units import Quantity, as_float_or_array, quantity

SPECIALS = ("ieee", "nan", "none")


@dataclass(frozen=True)
class Float:
    """A binary floating-point format: a sign, an exponent and a mantissa.

    A number is `±1.mantissa · 2^(exponent − bias)`; where the exponent field is zero, it is
    `±0.mantissa · 2^(1 − bias)`, a subnormal number. `specials` says what the highest exponent
    means: "ieee" for infinity and NaN, "nan" for numbers but for one NaN, "none" for numbers alone.

    >>> [Float(2, 1, specials="none").decode(code) for code in range(8)]
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """

    exponent_bits: int
    mantissa_bits: int
    specials: str = "ieee"
    storage_bits: int | None = None
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.specials not in SPECIALS:
            raise InputError(
                f"Float(): specials must be one of {', '.join(SPECIALS)};"
                f" got {abbreviated(self.specials)}"
            )
        ieee, numbers_alone = self.specials == "ieee", self.specials == "none"
        _check_width("Float(): exponent_bits", self.exponent_bits, 2, 11 if ieee else 10)
        _check_width("Float(): mantissa_bits", self.mantissa_bits, 0 if numbers_alone else 1, 52)
        if self.storage_bits is not None:
            _check_width("Float(): storage_bits", self.storage_bits, self.bits, 64)
        if not self.name:
            object.__setattr__(self, "name", f"E{self.exponent_bits}M{self.mantissa_bits}")

    @property
    def bits(self) -> int:
        """Sign, exponent and mantissa."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def size(self) -> Quantity:
        """What one value takes in memory."""
        return quantity(self.storage_bits or self.bits, "bit").to("byte")

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent field."""
        return int(2 ** (self.exponent_bits - 1) - 1)

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number, and of all subnormal ones."""
        return 1 - self.bias

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest number."""
        return self.bias if self.specials == "ieee" else self.bias + 1

    @property
    def max(self) -> float:
        """The largest finite number."""
        return math.ldexp(self._max_steps, self.max_exponent - self.mantissa_bits)

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with full precision."""
        return math.ldexp(1.0, self.min_exponent)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number; what is less than half of it rounds to zero."""
        return math.ldexp(1.0, self.min_exponent - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """Machine epsilon: the gap between 1 and the next number, so the ulp of 1."""
        return math.ldexp(1.0, -self.mantissa_bits)

    @property
    def decimal_digits(self) -> float:
        """Decimal digits that the significand is worth: mantissa bits + 1, times log10 of 2.

        Tables of decimal digits in whole numbers (`FLT_DIG` in C, `precision` in numpy) leave out
        the 1 and round down: so many digits of any decimal number survive the format.
        """
        return (self.mantissa_bits + 1) * math.log10(2)

    @property
    def binades(self) -> int:
        """Dynamic range in powers of two, from the smallest subnormal number to the largest."""
        return self.max_exponent - (self.min_exponent - self.mantissa_bits) + 1

    @property
    def decades(self) -> float:
        """Dynamic range in powers of ten: log10 of the largest over the smallest number."""
        return math.log10(self.max) - math.log10(self.smallest_subnormal)

    def ulp(self, values: Any) -> Any:
        """The gap between neighbouring numbers of the format at a value; NaN beyond its range.

        >>> FP16.ulp(1.0), FP16.ulp(2048.0), FP16.ulp(0.0) == FP16.smallest_subnormal
        (0.0009765625, 2.0, True)
        """
        numpy, given = _numbers(values)
        size = numpy.abs(given)
        inside = size <= self.max
        exponent = self._exponent(numpy, numpy.where(inside, size, 0.0))
        gap = numpy.ldexp(1.0, exponent - self.mantissa_bits)
        return _like(given, numpy.where(inside, gap, math.nan))

    def encode(self, values: Any) -> Any:
        """The bits of the nearest number of the format; of two, of the one with an even last bit.

        Overflow: what rounds to more than the largest number becomes infinity, or NaN where there
        is no infinity, or the largest number where there are neither. (Clip the values first where
        they shall saturate.) Of a NaN the sign is kept; a format that has no NaN refuses it.

        Values are rounded once, from FP64. Where a cast goes through FP32 on its way, as that of
        ml_dtypes does, it rounds twice, and may end one step away.

        >>> hex(FP16.encode(-1.5)), hex(FP8_E4M3.encode(464)), hex(FP8_E4M3.encode(465))
        ('0xbe00', '0x7e', '0x7f')
        """
        numpy, given = _numbers(values)
        missing = numpy.isnan(given)
        if self.specials == "none" and missing.any():
            raise InputError(f"{self.name} has no NaN, and there is one among the values")
        infinite = numpy.isinf(given)
        size = numpy.where(missing | infinite, 0.0, numpy.abs(given))
        exponent = self._exponent(numpy, size)
        steps = numpy.rint(numpy.ldexp(size, self.mantissa_bits - exponent)).astype(numpy.int64)
        # A mantissa that rounds up to the next power of two carries into the exponent by itself.
        code = ((exponent - self.min_exponent) << self.mantissa_bits) + steps
        code = numpy.where(infinite, self._overflow_code, numpy.minimum(code, self._overflow_code))
        code = numpy.where(missing, self._nan_code, code).astype(numpy.uint64)
        code |= numpy.signbit(given).astype(numpy.uint64) << numpy.uint64(self.bits - 1)
        return _codes_out(numpy, given, code, self.bits)

    def decode(self, codes: Any) -> Any:
        """The values that bits stand for.

        >>> FP8_E4M3.decode([0x00, 0x01, 0x38, 0x7E, 0x7F]).tolist()
        [0.0, 0.001953125, 1.0, 448.0, nan]
        """
        numpy, given = _codes(self, codes)
        sign = given >> numpy.uint64(self.bits - 1)
        code = (given ^ (sign << numpy.uint64(self.bits - 1))).astype(numpy.int64)
        finite = numpy.minimum(code, self._max_code)
        binade = numpy.maximum(finite >> self.mantissa_bits, 1) - 1  # subnormals share the first
        steps = finite - (binade << self.mantissa_bits)
        smallest = self.min_exponent - self.mantissa_bits
        size = numpy.ldexp(steps.astype(float), binade + smallest)
        infinite = (code == self._overflow_code) & (self.specials == "ieee")
        special = numpy.where(infinite, math.inf, math.nan)
        size = numpy.where(code > self._max_code, special, size)
        return _like(given, numpy.copysign(size, 1.0 - 2.0 * sign))

    def round(self, values: Any) -> Any:
        """The nearest numbers of the format, as `encode` finds them.

        >>> FP4_E2M1.round([0.2, 0.3, 2.4, 100])
        array([0. , 0.5, 2. , 6. ])
        """
        return self.decode(self.encode(values))

    def _exponent(self, numpy: ModuleType, size: Any) -> Any:
        """The exponent of the binade in which a value lies, as a 64-bit integer."""
        return numpy.frexp(numpy.maximum(size, self.smallest_normal))[1].astype(numpy.int64) - 1

    @property
    def _max_steps(self) -> int:
        """The significand of the largest number, in units of its last bit."""
        return int(2 ** (self.mantissa_bits + 1)) - (2 if self.specials == "nan" else 1)

    @property
    def _max_code(self) -> int:
        binade = self.max_exponent - self.min_exponent
        return (binade << self.mantissa_bits) + self._max_steps

    @property
    def _overflow_code(self) -> int:
        return self._max_code + (self.specials != "none")

    @property
    def _nan_code(self) -> int:
        """A quiet NaN: beside infinity, the one with the highest bit of the mantissa."""
        quiet = 1 << (self.mantissa_bits - 1) if self.specials == "ieee" else 0
        return self._overflow_code + quiet


@dataclass(frozen=True)
class Integer:
    """Two's complement: whole numbers, or with `fraction_bits` so many bits of a fraction.

    >>> Integer(8).min, Integer(8).max, Integer(8, fraction_bits=6).max
    (-128.0, 127.0, 1.984375)
    """

    bits: int
    fraction_bits: int = 0
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_width("Integer(): bits", self.bits, 2, 53)
        _check_width("Integer(): fraction_bits", self.fraction_bits, 0, self.bits)
        if not self.name:
            object.__setattr__(self, "name", f"INT{self.bits}")

    @property
    def size(self) -> Quantity:
        """What one value takes in memory."""
        return quantity(self.bits, "bit").to("byte")

    @property
    def step(self) -> float:
        """The gap between neighbouring numbers, the same everywhere."""
        return math.ldexp(1.0, -self.fraction_bits)

    @property
    def max(self) -> float:
        """The largest number."""
        return math.ldexp(2 ** (self.bits - 1) - 1, -self.fraction_bits)

    @property
    def min(self) -> float:
        """The most negative number, a step further from zero than the largest."""
        return math.ldexp(-(2 ** (self.bits - 1)), -self.fraction_bits)

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest power of two."""
        return self.bits - 2 - self.fraction_bits

    def encode(self, values: Any) -> Any:
        """The bits of the nearest number, the even one of two; what is out of range saturates.

        >>> INT8.encode(-1), INT8.encode([2.5, 3.5, 1000]).tolist()
        (255, [2, 4, 127])
        """
        numpy, given = _numbers(values)
        if numpy.isnan(given).any():
            raise InputError(f"{self.name} has no NaN, and there is one among the values")
        clipped = numpy.clip(given, self.min, self.max)
        steps = numpy.rint(numpy.ldexp(clipped, self.fraction_bits)).astype(numpy.int64)
        code = (steps & (2**self.bits - 1)).astype(numpy.uint64)
        return _codes_out(numpy, given, code, self.bits)

    def decode(self, codes: Any) -> Any:
        """The values that bits stand for.

        >>> INT4.decode([0, 7, 8, 15]).tolist()
        [0.0, 7.0, -8.0, -1.0]
        """
        numpy, given = _codes(self, codes)
        steps = given.astype(numpy.int64)
        steps = numpy.where(steps >= 2 ** (self.bits - 1), steps - 2**self.bits, steps)
        return _like(given, numpy.ldexp(steps.astype(float), -self.fraction_bits))

    def round(self, values: Any) -> Any:
        """The nearest numbers of the format, as `encode` finds them."""
        return self.decode(self.encode(values))


@dataclass(frozen=True)
class PowerOfTwo:
    """A scale: an exponent alone, without sign, zero or infinity; its last code is NaN.

    >>> E8M0.max == 2.0**127, E8M0.min == 2.0**-127, E8M0.round(5)
    (True, True, 4.0)
    """

    exponent_bits: int
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_width("PowerOfTwo(): exponent_bits", self.exponent_bits, 2, 10)
        if not self.name:
            object.__setattr__(self, "name", f"E{self.exponent_bits}M0")

    @property
    def bits(self) -> int:
        """The exponent alone."""
        return self.exponent_bits

    @property
    def size(self) -> Quantity:
        """What one scale takes in memory."""
        return quantity(self.bits, "bit").to("byte")

    @property
    def bias(self) -> int:
        """What is subtracted from the code."""
        return int(2 ** (self.exponent_bits - 1) - 1)

    @property
    def max(self) -> float:
        """The largest scale."""
        return math.ldexp(1.0, self.bias)

    @property
    def min(self) -> float:
        """The smallest scale."""
        return math.ldexp(1.0, -self.bias)

    def encode(self, values: Any) -> Any:
        """The bits of the nearest power of two, the larger of two.

        A value below the smallest scale becomes the smallest; what rounds above the largest, and
        what is not positive, becomes NaN.
        """
        numpy, given = _numbers(values)
        with numpy.errstate(invalid="ignore"):
            positive = numpy.isfinite(given) & (given > 0)
        exponent = numpy.frexp(numpy.where(positive, given, 1.0) / 0.75)[1] - 1
        code = numpy.maximum(exponent, -self.bias) + self.bias
        last = 2**self.bits - 1
        code = numpy.where(positive, numpy.minimum(code, last), last)
        return _codes_out(numpy, given, code, self.bits)

    def decode(self, codes: Any) -> Any:
        """The scales that bits stand for.

        >>> E8M0.decode([126, 127, 128, 255])
        array([0.5, 1. , 2. , nan])
        """
        numpy, given = _codes(self, codes)
        scale = numpy.ldexp(1.0, given.astype(numpy.int64) - self.bias)
        return _like(given, numpy.where(given == 2**self.bits - 1, math.nan, scale))

    def round(self, values: Any) -> Any:
        """The nearest powers of two, as `encode` finds them."""
        return self.decode(self.encode(values))


class Encoded(NamedTuple):
    """The bits of blocks: a scale for each, an element for each value."""

    scales: Any
    elements: Any


@dataclass(frozen=True)
class Block:
    """A block format: so many elements along the last axis share one scale.

    >>> MXFP4.bits
    4.25
    """

    element: Float | Integer
    scale: PowerOfTwo
    block_size: int
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_width("Block(): block_size", self.block_size, 1, 2**20)
        if not self.name:
            name = f"{self.element.name} in blocks of {self.block_size}"
            object.__setattr__(self, "name", name)

    @property
    def bits(self) -> float:
        """Bits of one value: those of its element and its share of the scale."""
        return self.element.bits + self.scale.bits / self.block_size

    @property
    def size(self) -> Quantity:
        """What one value takes in memory, its share of the scale included."""
        return quantity(self.bits, "bit").to("byte")

    def encode(self, values: Any) -> Encoded:
        """Scales and elements by the rule of the OCP specification.

        The scale brings the largest value of its block to the highest power of two that an element
        has; elements then round to the nearest, and those beyond the largest element saturate. A
        block that is too large for any scale, or holds infinity or NaN, gets the scale NaN. A last
        block may be short.

        >>> scales, elements = MXFP4.encode([0.1, 10, 25, -1])
        >>> MXFP4.scale.decode(scales).tolist(), MXFP4.element.decode(elements).tolist()
        ([4.0], [0.0, 2.0, 6.0, -0.0])
        """
        numpy, given = _numbers(values)
        if not given.ndim:
            raise InputError(f"{self.name} encodes blocks, so it needs an array; got one number")
        count = given.shape[-1]
        blocks = self._blocks(count)
        padded = numpy.zeros((*given.shape[:-1], blocks * self.block_size))
        padded[..., :count] = given
        padded = padded.reshape(*given.shape[:-1], blocks, self.block_size)
        largest = numpy.max(numpy.abs(padded), axis=-1)
        finite = numpy.isfinite(largest)
        above_zero = numpy.where(finite, numpy.maximum(largest, self.scale.min), 1.0)
        exponent = numpy.frexp(above_zero)[1] - 1 - self.element.max_exponent
        wanted = numpy.maximum(numpy.ldexp(1.0, exponent), self.scale.min)
        scales = self.scale.encode(numpy.where(finite, wanted, math.nan))
        scale = self.scale.decode(scales)[..., None]
        scaled = numpy.where(numpy.isnan(scale), 0.0, padded / scale)
        limited = numpy.clip(scaled, -self.element.max, self.element.max)
        elements = self.element.encode(limited).reshape(*given.shape[:-1], -1)[..., :count]
        return Encoded(scales, elements)

    def decode(self, scales: Any, elements: Any) -> Any:
        """The values that scales and elements stand for."""
        numpy, value = _numbers(self.element.decode(elements))
        _, scale = _numbers(self.scale.decode(scales))
        if not value.ndim or scale.shape != (*value.shape[:-1], self._blocks(value.shape[-1])):
            raise InputError(
                f"{self.name} has one scale for each {self.block_size} elements along the last"
                f" axis; got scales of shape {scale.shape} for elements of shape {value.shape}"
            )
        return value * numpy.repeat(scale, self.block_size, axis=-1)[..., : value.shape[-1]]

    def round(self, values: Any) -> Any:
        """The values that are left of these after encoding and decoding.

        >>> MXFP4.round([0.1, 10, 25, -1]).tolist()
        [0.0, 8.0, 24.0, -0.0]
        """
        return self.decode(*self.encode(values))

    def _blocks(self, count: int) -> int:
        return -(-count // self.block_size)


def _check_width(name: str, given: Any, low: int, high: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
        raise InputError(
            f"{name} must be a whole number from {low} to {high}; got {abbreviated(given)}"
        )


def _numpy() -> ModuleType:
    try:
        import numpy
    except ImportError:
        raise NumpyNeededError(
            "a number format rounds, encodes and decodes with numpy, which is not installed"
        ) from None
    return numpy


def _numbers(values: Any) -> tuple[ModuleType, Any]:
    """Values as an array of floats, of no dimension for a single one."""
    numpy = _numpy()
    if isinstance(values, PlainQuantity):
        raise InputError(
            f"a number format holds bare numbers; got {values}: give its magnitude in a unit,"
            f' as .m_as("{values.units}") does'
        )
    return numpy, numpy.asarray(as_float_or_array(values))


def _codes(form: Float | Integer | PowerOfTwo, given: Any) -> tuple[ModuleType, Any]:
    """Codes as an array of unsigned integers, within the width of their format."""
    numpy = _numpy()
    refusal = InputError(
        f"a code of {form.name} is a whole number from 0 to {2**form.bits - 1};"
        f" got {abbreviated(given)}"
    )
    try:
        codes = numpy.asarray(given)
    except ValueError:  # rows of unequal length
        raise refusal from None
    if codes.size == 0:
        return numpy, codes.astype(numpy.uint64)
    if codes.dtype.kind not in "iu" or codes.min() < 0 or int(codes.max()) >= 2**form.bits:
        raise refusal
    return numpy, codes.astype(numpy.uint64)


def _codes_out(numpy: ModuleType, given: Any, code: Any, bits: int) -> Any:
    """Codes in the narrowest unsigned type that holds them; of a single value, an int."""
    width = next(width for width in (8, 16, 32, 64) if width >= bits)
    return code.astype(f"uint{width}") if given.ndim else int(code)


def _like(given: Any, result: Any) -> Any:
    """The result as an array, or as a float where a single number was given."""
    return result if given.ndim else float(result)


Format = Float | Integer | PowerOfTwo | Block

FP64 = Float(11, 52, name="FP64", source="ieee2019floating")
FP32 = Float(8, 23, name="FP32", source="ieee2019floating")
TF32 = Float(8, 10, storage_bits=32, name="TF32", source="nvidia-a100-whitepaper")
FP16 = Float(5, 10, name="FP16", source="ieee2019floating")
BF16 = Float(8, 7, name="BF16", source="kalamkar2019study")
FP8_E5M2 = Float(5, 2, name="FP8 E5M2", source="micikevicius2022fp8")
FP8_E4M3 = Float(4, 3, "nan", name="FP8 E4M3", source="micikevicius2022fp8")
FP6_E3M2 = Float(3, 2, "none", name="FP6 E3M2", source="ocp2023microscaling")
FP6_E2M3 = Float(2, 3, "none", name="FP6 E2M3", source="ocp2023microscaling")
FP4_E2M1 = Float(2, 1, "none", name="FP4 E2M1", source="ocp2023microscaling")
INT8 = Integer(8, name="INT8", source="jacob2018quantization")
INT4 = Integer(4, name="INT4", source="nvidia-a100-whitepaper")
E8M0 = PowerOfTwo(8, name="E8M0", source="ocp2023microscaling")
MXFP8_E5M2 = Block(FP8_E5M2, E8M0, 32, name="MXFP8 E5M2", source="ocp2023microscaling")
MXFP8_E4M3 = Block(FP8_E4M3, E8M0, 32, name="MXFP8 E4M3", source="ocp2023microscaling")
MXFP6_E3M2 = Block(FP6_E3M2, E8M0, 32, name="MXFP6 E3M2", source="ocp2023microscaling")
MXFP6_E2M3 = Block(FP6_E2M3, E8M0, 32, name="MXFP6 E2M3", source="ocp2023microscaling")
MXFP4 = Block(FP4_E2M1, E8M0, 32, name="MXFP4", source="ocp2023microscaling")
MXINT8 = Block(Integer(8, fraction_bits=6), E8M0, 32, name="MXINT8", source="ocp2023microscaling")

_FORMATS: tuple[Format, ...] = (
    *(FP64, FP32, TF32, FP16, BF16),
    *(FP8_E5M2, FP8_E4M3, FP6_E3M2, FP6_E2M3, FP4_E2M1),
    *(INT8, INT4, E8M0),
    *(MXFP8_E5M2, MXFP8_E4M3, MXFP6_E3M2, MXFP6_E2M3, MXFP4, MXINT8),
)


def names() -> tuple[str, ...]:
    """The keys of all formats.

    >>> "fp8-e4m3" in names()
    True
    """
    return tuple(_key(each.name) for each in _FORMATS)


def get(key: str) -> Format:
    """The format of that key; case, "-", "_" and spaces do not matter.

    >>> get("fp8_e4m3").name
    'FP8 E4M3'
    """
    for each in _FORMATS:
        if _key(each.name) == _key(str(key)):
            return each
    raise InputError(
        f"there is no format {abbreviated(key)}; {did_you_mean(_key(str(key)), names())}there are"
        f" {', '.join(names())}"
    )


def _key(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")
