"""Floating-point formats of any split into exponent and mantissa."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from calc.core.arguments import check_is, one_of
from calc.core.arrays import Counts, Floats, Single, Truths, numpy
from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.formats.coding import (
    Coded,
    check_width,
    codes_out,
    like,
    needs_numpy,
    numbers,
    read_codes,
    whole_steps,
)

SPECIALS = ("ieee", "nan", "none")


@dataclass(frozen=True)
class Float(Coded):
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
        one_of("Float(): specials", self.specials, SPECIALS)
        ieee, numbers_alone = self.specials == "ieee", self.specials == "none"
        check_width("Float(): exponent_bits", self.exponent_bits, 2, 11 if ieee else 10)
        check_width("Float(): mantissa_bits", self.mantissa_bits, 0 if numbers_alone else 1, 52)
        if self.storage_bits is not None:
            check_width("Float(): storage_bits", self.storage_bits, self.bits, 64)
        if not self.name:
            object.__setattr__(self, "name", f"E{self.exponent_bits}M{self.mantissa_bits}")

    @property
    def bits(self) -> int:
        """Sign, exponent and mantissa."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def size(self) -> Quantity:
        """Memory of one value."""
        return quantity(self.storage_bits or self.bits, "bit").to("byte")

    @property
    def bias(self) -> int:
        """Number that is subtracted from the exponent field."""
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

    def ulp(self, values: object) -> Any:
        """The gap between neighbouring numbers of the format at a value; NaN beyond its range.

        >>> from calc.formats import FP16
        >>> FP16.ulp(1.0), FP16.ulp(2048.0), FP16.ulp(0.0) == FP16.smallest_subnormal
        (0.0009765625, 2.0, True)
        """
        array = numbers(values)
        size = numpy.abs(array)
        inside = size <= self.max
        exponent = self._exponent(numpy.where(inside, size, 0.0))
        gap = numpy.ldexp(1.0, exponent - self.mantissa_bits)
        return like(array, numpy.where(inside, gap, math.nan))

    def encode(self, values: object, random: numpy.random.Generator | None = None) -> Any:
        """The bits of the nearest number of the format; of two, of the one with an even last bit.

        With a generator, `random=numpy.random.default_rng(seed)`, rounding is stochastic: to one
        of the two neighbours, the likelier the nearer it is, so that a value is kept on average.

        Overflow: what rounds to more than the largest number becomes infinity, or NaN where there
        is no infinity, or the largest number where there are neither. (Clip the values first where
        they shall saturate.) Of a NaN the sign is kept; a format that has no NaN refuses it.

        Values are rounded once, from FP64. Where a cast goes through FP32 on its way, as that of
        ml_dtypes does, it rounds twice, and may end one step away.

        >>> from calc.formats import FP16, FP8_E4M3
        >>> hex(FP16.encode(-1.5)), hex(FP8_E4M3.encode(464)), hex(FP8_E4M3.encode(465))
        ('0xbe00', '0x7e', '0x7f')
        """
        array, missing, infinite, exponent, steps = self._steps(values, random)
        # A mantissa that rounds up to the next power of two carries into the exponent by itself.
        code = ((exponent - self.min_exponent) << self.mantissa_bits) + steps
        code = numpy.where(infinite, self._overflow_code, numpy.minimum(code, self._overflow_code))
        code = numpy.where(missing, self._nan_code, code).astype(numpy.uint64)
        code |= numpy.signbit(array).astype(numpy.uint64) << numpy.uint64(self.bits - 1)
        return codes_out(array, code, self.bits)

    def decode(self, codes: object) -> Any:
        """The values that bits stand for.

        >>> from calc.formats import FP8_E4M3
        >>> FP8_E4M3.decode([0x00, 0x01, 0x38, 0x7E, 0x7F]).tolist()
        [0.0, 0.001953125, 1.0, 448.0, nan]
        """
        bit_codes = read_codes(self, codes)
        sign = bit_codes >> numpy.uint64(self.bits - 1)
        code = (bit_codes ^ (sign << numpy.uint64(self.bits - 1))).astype(numpy.int64)
        finite = numpy.minimum(code, self._max_code)
        binade = numpy.maximum(finite >> self.mantissa_bits, 1) - 1  # subnormals share the first
        steps = finite - (binade << self.mantissa_bits)
        smallest = self.min_exponent - self.mantissa_bits
        size = numpy.ldexp(steps.astype(float), binade + smallest)
        infinite = (code == self._overflow_code) & (self.specials == "ieee")
        special = numpy.where(infinite, math.inf, math.nan)
        size = numpy.where(code > self._max_code, special, size)
        return like(bit_codes, numpy.copysign(size, 1.0 - 2.0 * sign))

    def round(self, values: object, random: numpy.random.Generator | None = None) -> Any:
        """The nearest numbers of the format, as `encode` finds them, without their bits on the way.

        >>> from calc.formats import FP8_E4M3
        >>> FP8_E4M3.round([0.3, -17.0, 465.0])
        array([  0.3125, -16.    ,      nan])
        """
        array, missing, infinite, exponent, steps = self._steps(values, random)
        with numpy.errstate(over="ignore"):
            rounded = numpy.ldexp(steps.astype(float), exponent - self.mantissa_bits)
        beyond = {"ieee": math.inf, "nan": math.nan, "none": self.max}[self.specials]
        rounded = numpy.where(infinite | (rounded > self.max), beyond, rounded)
        return like(array, numpy.copysign(numpy.where(missing, math.nan, rounded), array))

    def round_fp32(self, values: object) -> Single:
        """Round like `round`, from FP32 to FP32 numbers: quick enough for the layers of a network.

        >>> from calc.formats import BF16
        >>> BF16.round_fp32([0.1, 300.0]).tolist()
        [0.10009765625, 300.0]
        """
        needs_numpy()
        array: Single
        if isinstance(values, numpy.ndarray) and values.dtype == numpy.float32:
            array = values
        else:
            with numpy.errstate(over="ignore"):
                array = numbers(values).astype(numpy.float32)
        split = self.exponent_bits, self.mantissa_bits, self.specials
        if split == (8, 23, "ieee"):
            return array
        with numpy.errstate(over="ignore"):
            if split == (5, 10, "ieee"):
                return array.astype(numpy.float16).astype(numpy.float32)
            if self.exponent_bits != 8 or self.specials != "ieee":
                return numpy.asarray(self.round(array), numpy.float32)
            # FP32 cut short: half of what is cut off is added, a little less at an even end.
            bits, cut, one = array.view(numpy.uint32), 23 - self.mantissa_bits, numpy.uint32(1)
            rounded = (bits + numpy.uint32(2 ** (cut - 1) - 1) + (bits >> cut & one)) >> cut << cut
            return numpy.where(numpy.isnan(array), array, rounded.view(numpy.float32))

    def _steps(
        self, values: object, random: numpy.random.Generator | None
    ) -> tuple[Floats, Truths, Truths, Counts, Counts]:
        """Values, where they are NaN or infinite, and their sizes rounded to steps of a binade."""
        array = numbers(values)
        missing, infinite = numpy.isnan(array), numpy.isinf(array)
        if self.specials == "none" and missing.any():
            raise InputError(f"{self.name} has no NaN, and there is one among the values")
        size = numpy.where(missing | infinite, 0.0, numpy.abs(array))
        exponent = self._exponent(size)
        steps = whole_steps(numpy.ldexp(size, self.mantissa_bits - exponent), random)
        return array, missing, infinite, exponent, steps

    def _exponent(self, size: Floats) -> Counts:
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


def check_float(name: str, form: object) -> None:
    """Refuse what is no floating-point format."""
    check_is(Float, name, form, "a floating-point format, such as formats.BF16")
