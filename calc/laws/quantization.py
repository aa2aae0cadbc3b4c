"""Integer quantisation: an array as small integers, the step between them, and where zero lies.

Laws: symmetric_step and asymmetric_step (the distance of neighbouring codes), rounding_error_bound,
expected_sqnr, bytes_per_parameter, products_without_overflow. Schemes: symmetric, asymmetric and
affine choose a Scheme for data, for the whole array, for each channel or for each group; it turns
numbers into codes and back. integer_matmul multiplies codes, sqnr measures what was lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from calc.core import channels
from calc.core.arguments import as_array, number
from calc.core.arrays import numpy
from calc.core.elementwise import floor, log10
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, BITS, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[Any]
    Codes: TypeAlias = NDArray[Any]
    Data: TypeAlias = Annotated[ArrayLike, "", "finite, of any shape"]
    Bits: TypeAlias = Annotated[int, "", "whole, from 2 to 32"]
    Axis: TypeAlias = Annotated[int | None, "", "a dimension: a scale for each index along it"]
    GroupSize: TypeAlias = Annotated[
        int | None, "", "divides the last dimension: a scale for each group"
    ]
    Percentile: TypeAlias = Annotated[float, "%", "above 50, at most 100"]

FEWEST_BITS, MOST_BITS = 2, 32
CLIP_CANDIDATES = 200


@law
def symmetric_step(
    largest: Annotated[QuantityLike, "", "α", NON_NEGATIVE],
    bits: Annotated[QuantityLike, "", "b", BITS] = 8,
) -> Annotated[Quantity, ""]:
    """Distance of neighbouring codes that are spread evenly on both sides of zero.

    Equation: s = α / (2^(b−1) − 1)

    α is max |x|, where x are the values. The most negative code of b bits, −2^(b−1), is left out,
    so that both sides are alike.

    Source: krishnamoorthi2018quantizing

    See also: quantization.asymmetric_step

    >>> print(symmetric_step(1.27, 8))
    0.01

    Parameters
    ----------
    largest
        largest magnitude of the values
    bits
        bits of a code
    """
    return largest / (2 ** (bits - 1) - 1)


@law
def asymmetric_step(
    span: Annotated[QuantityLike, "", "α", NON_NEGATIVE],
    bits: Annotated[QuantityLike, "", "b", BITS] = 8,
) -> Annotated[Quantity, ""]:
    """Distance of neighbouring codes that are spread from the smallest to the largest value.

    Equation: s = α / (2^b − 1)

    α is x_max − x_min, the largest value less the smallest.

    Source: jacob2018quantization

    See also: quantization.symmetric_step

    >>> print(asymmetric_step(2.55, 8))
    0.01

    Parameters
    ----------
    span
        largest value less the smallest
    bits
        bits of a code
    """
    return span / (2**bits - 1)


@law
def rounding_error_bound(
    step: Annotated[QuantityLike, "", "s", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Bound on the distance between a value within the range of the codes and its decoded value.

    Equation: |x − x̂| ≤ s / 2

    Assumes rounding to the nearest code and no clipping; a clipped value can be off by any amount.

    Source: gholami2021survey

    >>> print(rounding_error_bound(symmetric_step(1.27, 8)))
    0.005

    Parameters
    ----------
    step
        distance of neighbouring codes
    """
    return step / 2


@law
def expected_sqnr(
    bits: Annotated[QuantityLike, "", "b", BITS],
    crest_factor: Annotated[QuantityLike, "", "c", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Decibels by which a signal exceeds its rounding error; the crest factor is max |x| over rms.

    Equation: SQNR = 10 · log₁₀(3 · 4^b / c²) ≈ 6.02 · b + 4.77 − 20 · log₁₀ c

    Assumes errors that are uniform within a step, whose mean square is s²/12, and 2^b steps in the
    range, which is one or two more than a machine has. A sine has c = √2.

    Source: gray1998quantization

    >>> print(expected_sqnr(8, 2**0.5))
    49.93

    Parameters
    ----------
    bits
        bits of a code
    crest_factor
        largest magnitude over the root of the mean square
    """
    return 10 * log10(3 * 4**bits / crest_factor**2)


@law
def bytes_per_parameter(
    code: Annotated[QuantityLike, "byte/param", "b"],
    group: Annotated[QuantityLike, "param", "g"],
    scale: Annotated[QuantityLike, "byte", "m_scale"] = "16 bit",
    zero_point: Annotated[QuantityLike, "byte", "m_zero", NON_NEGATIVE] = "0 bit",
) -> Annotated[Quantity, "byte/param"]:
    """Memory of a weight that shares its scale and zero point with the others of its group.

    Equation: m = b + (m_scale + m_zero) / g

    Source: frantar2023gptq

    >>> print(bytes_per_parameter("4 bit/param", 128))
    0.5156 byte/param

    Parameters
    ----------
    code
        what the code itself takes
    group
        weights that share a scale
    scale
        what the scale takes
    zero_point
        what the zero point takes
    """
    return code + (scale + zero_point) / group


@law
def products_without_overflow(
    largest: Annotated[QuantityLike, "", "q_max", AT_LEAST_ONE],
    other_largest: Annotated[QuantityLike, "", "r_max", AT_LEAST_ONE],
    accumulator_bits: Annotated[QuantityLike, "", "A", BITS] = 32,
) -> Annotated[Quantity, ""]:
    """Products of two codes, each as large as it can be, that a signed accumulator is sure to hold.

    Equation: K = ⌊(2^(A−1) − 1) / (q_max · r_max)⌋

    Source: jacob2018quantization

    >>> print(products_without_overflow(127, 127))
    133144

    Parameters
    ----------
    largest
        largest magnitude of the first factor's codes
    other_largest
        largest magnitude of the second factor's codes
    accumulator_bits
        bits of the signed integer that sums the products
    """
    return floor((2 ** (accumulator_bits - 1) - 1) / (largest * other_largest))


@dataclass(frozen=True, eq=False)
class Scheme:
    """Code of numbers: q = round((x − offset) / scale) + zero_point, kept in low … high.

    `scale`, `zero_point` and `offset` are single numbers for the whole array; with an `axis`, one
    for each index along it; with a `group_size`, one for each group along the last axis. Rounding
    is to the nearest code, ties to the even one. Data beyond the range are clipped to its ends.
    """

    scale: Floats
    zero_point: Codes
    offset: Floats
    bits: int
    low: int
    high: int
    axis: int | None = None
    group_size: int | None = None

    def quantize(self, data: ArrayLike) -> Codes:
        """The codes of the data, in the smallest numpy integers that hold them."""
        values = channels.floats(data)
        scale, zero_point, offset = self._spread(values.shape)
        with numpy.errstate(over="ignore"):  # what is that far out is clipped
            codes = numpy.rint((values - offset) / scale) + zero_point
        kind = numpy.min_scalar_type(self.low if self.low < 0 else self.high)
        return numpy.asarray(numpy.clip(codes, self.low, self.high), kind)

    def dequantize(self, codes: ArrayLike) -> Floats:
        """The numbers that the codes stand for: scale · (q − zero_point) + offset."""

        whole = as_array("codes", codes)
        scale, zero_point, offset = self._spread(whole.shape)
        restored: Floats = scale * (whole.astype(float) - zero_point) + offset
        return restored

    def round_trip(self, data: ArrayLike) -> Floats:
        """Return the data after quantizing and dequantizing."""
        return self.dequantize(self.quantize(data))

    @property
    def error_bound(self) -> Floats:
        """Half a step: how far off a value within the range can be."""
        bound: Floats = rounding_error_bound(self.scale).magnitude
        return bound

    def columns(self, shape: tuple[int, int]) -> list[Scheme]:
        """The scheme of each column of a matrix of this shape, a scale for each row."""
        parts = [numpy.broadcast_to(part, shape).T for part in self._spread(shape)]
        return [
            replace(self, scale=scale, zero_point=zero, offset=offset, axis=0, group_size=None)
            for scale, zero, offset in zip(*parts, strict=True)
        ]

    def shrunk(self, fraction: float) -> Scheme:
        """The scheme of a range that is shrunk towards zero; what is then outside is clipped."""
        if not 0 < fraction <= 1:
            raise InputError(
                f"shrunk(): fraction must be above 0 and at most 1; got {abbreviated(fraction)}"
            )
        return replace(self, scale=self.scale * fraction, offset=self.offset * fraction)

    def least_error(self, data: ArrayLike) -> Scheme:
        """The shrunk scheme of the least mean squared error on the data: of all half per cents of
        the range the best, for each channel or group by itself.
        """
        values = channels.floats(data)
        step = self._spread(values.shape)[0]  # errors are counted in it: their squares stay finite
        best = numpy.ones_like(self.scale)
        least = numpy.full_like(self.scale, math.inf)
        for candidate in range(CLIP_CANDIDATES, 0, -1):
            fraction = candidate / CLIP_CANDIDATES
            error = (self.shrunk(fraction).round_trip(values) - values) / step
            mean = channels.reduced(numpy.mean, error**2, self.axis, self.group_size)
            best, least = (numpy.where(mean < least, fraction, best), numpy.minimum(mean, least))
        return replace(self, scale=self.scale * best, offset=self.offset * best)

    def _spread(self, shape: tuple[int, ...]) -> list[Any]:
        """Scale, zero point and offset in the shape that broadcasts against data of this shape."""
        parameters = [self.scale, self.zero_point, self.offset]
        if self.group_size is not None:
            needed = (*self.scale.shape[:-1], self.scale.shape[-1] * self.group_size)
            channels.check_shape(shape, needed)
            return [numpy.repeat(one, self.group_size, axis=-1) for one in parameters]
        if self.axis is not None:
            axis = channels.axis_of(self.axis, len(shape))
            channels.check_shape(shape, (*shape[:axis], self.scale.size, *shape[axis + 1 :]))
            return [
                one.reshape([-1 if i == axis else 1 for i in range(len(shape))])
                for one in parameters
            ]
        return parameters


def symmetric(
    data: Data,
    bits: Bits = 8,
    *,
    axis: Axis = None,
    group_size: GroupSize = None,
    percentile: Percentile = 100,
) -> Scheme:
    """Codes on both sides of zero, as far as the largest magnitude.

    Equation: q = round(x / s), s = α / (2^(b−1) − 1), α = max |x|

    The code q of x has b bits, and stands for s · q.

    `percentile` takes, in place of the largest magnitude, the one that so many per cent of the
    data do not exceed. All zeros have the scale 1: there is no step to choose, and none may be 0.

    Source: krishnamoorthi2018quantizing

    >>> scheme = symmetric([-1.0, 0.5, 1.27])
    >>> scheme.quantize([-1.0, 0.5, 1.27]).tolist()
    [-100, 50, 127]

    Parameters
    ----------
    data
        values to quantise
    bits
        bits of a code
    axis
        dimension with a scale for each index, where there is one
    group_size
        neighbours of the last dimension that share a scale
    percentile
        share of the values that the range holds
    """
    _check_bits(bits)
    largest = channels.percentile(abs(channels.floats(data)), _upper(percentile), axis, group_size)
    scale = _steps(symmetric_step(largest, bits))
    high = 2 ** (bits - 1) - 1
    return _scheme(scale, 0, 0.0, bits, -high, high, axis, group_size)


def asymmetric(
    data: Data,
    bits: Bits = 8,
    *,
    axis: Axis = None,
    group_size: GroupSize = None,
    percentile: Percentile = 100,
) -> Scheme:
    """Codes from 0, for the smallest value, to the most that b bits hold, for the largest.

    Equation: q = round((x − x_min) / s), s = α / (2^b − 1), α = x_max − x_min

    The code q stands for s · q + x_min.

    `percentile` cuts off both ends: 99 takes the 1st and the 99th percentile for the smallest and
    the largest value. Zero is in general no code; `affine` makes it one. Data of a single value
    have the scale 1, and are exact.

    Source: jacob2018quantization

    >>> scheme = asymmetric([2.0, 3.0, 4.55])
    >>> scheme.quantize([2.0, 3.0, 4.55]).tolist()
    [0, 100, 255]

    Parameters
    ----------
    data
        values to quantise
    bits
        bits of a code
    axis
        dimension with a scale for each index, where there is one
    group_size
        neighbours of the last dimension that share a scale
    percentile
        share of the values that the range holds
    """
    _check_bits(bits)
    low, high = _limits(data, percentile, axis, group_size)
    scale = _steps(asymmetric_step(channels.span(low, high), bits))
    return _scheme(scale, 0, low, bits, 0, 2**bits - 1, axis, group_size)


def affine(
    data: Data,
    bits: Bits = 8,
    *,
    axis: Axis = None,
    group_size: GroupSize = None,
    percentile: Percentile = 100,
) -> Scheme:
    """The zero-point form of `asymmetric`, with a whole z that is the code of zero.

    Equation: q = round(x / s) + z, z = round(−x_min / s), s = α / (2^b − 1)

    The code q stands for s · (q − z). α is the span of the range, x_max − x_min, which is extended
    to hold zero; zero is then exact, and the zero point is rounded, which costs nothing: the error
    within the range stays below half a step. `percentile` as above.

    Source: jacob2018quantization

    >>> scheme = affine([-1.0, 0.0, 1.55])
    >>> scheme.quantize([-1.0, 0.0, 1.55]).tolist(), int(scheme.zero_point)
    ([0, 100, 255], 100)

    Parameters
    ----------
    data
        values to quantise
    bits
        bits of a code
    axis
        dimension with a scale for each index, where there is one
    group_size
        neighbours of the last dimension that share a scale
    percentile
        share of the values that the range holds
    """
    _check_bits(bits)
    low, high = _limits(data, percentile, axis, group_size)

    low, high = numpy.minimum(low, 0.0), numpy.maximum(high, 0.0)
    scale = _steps(asymmetric_step(channels.span(low, high), bits))
    return _scheme(scale, numpy.rint(-low / scale), 0.0, bits, 0, 2**bits - 1, axis, group_size)


def integer_matmul(
    left: Annotated[ArrayLike, "", "whole, a row for each row of the product"],
    right: Annotated[ArrayLike, "", "whole, a column for each of its columns"],
    left_zero_point: Annotated[ArrayLike, "", "whole, one for all rows or for each"] = 0,
    right_zero_point: Annotated[ArrayLike, "", "whole, one for all columns or for each"] = 0,
) -> Codes:
    """The product of (q − z) and (r − y) in 32-bit integers, with the zero points taken out of it.

    Equation: Σ (q − z)(r − y) = Σ q r − y Σ q − z Σ r + K z y

    The product itself is then one of the codes as they are stored. A zero point may differ between
    rows of `left` and between columns of `right`; along the sum it may not, and neither may a
    scale, or they could not be taken out. Times both scales the result is the real product.

    >>> integer_matmul([[0, 5]], [[1], [3]], left_zero_point=2).tolist()
    [[7]]

    Parameters
    ----------
    left
        codes of the first factor
    right
        codes of the second factor
    left_zero_point
        code that stands for zero in the first factor
    right_zero_point
        code that stands for zero in the second factor
    """
    rows, columns = _whole(left, "left"), _whole(right, "right")
    if rows.ndim != 2 or columns.ndim != 2 or rows.shape[1] != columns.shape[0]:
        raise InputError(
            f"integer_matmul() needs two matrices, as many columns in the first as rows in the"
            f" second; got shapes {rows.shape} and {columns.shape}"
        )
    z = _whole(left_zero_point, "left_zero_point").reshape(-1, 1)
    y = _whole(right_zero_point, "right_zero_point").reshape(1, -1)
    terms = rows.shape[1]
    _check_sums(abs(rows) @ abs(columns), terms)  # in whatever order the products are added up
    of_rows = rows.sum(axis=1, keepdims=True)
    of_columns = columns.sum(axis=0, keepdims=True)
    product = rows @ columns - y * of_rows - z * of_columns + terms * z * y
    _check_sums(product, terms)
    return numpy.asarray(product, "int32")


def sqnr(data: Data, restored: Data) -> Annotated[float, "dB"]:
    """Signal over error in decibels, infinite where both agree.

    Equation: SQNR = 10 · log₁₀(Σ x² / Σ (x − x̂)²)

    x are the data and x̂ what is restored of them, of one shape.

    Source: gray1998quantization

    >>> round(sqnr([3.0, 4.0], [3.0, 3.5]), 2)
    20.0

    Parameters
    ----------
    data
        values to quantise
    restored
        what is left of the values
    """
    values, again = channels.floats(data), channels.floats(restored)
    channels.check_shape(again.shape, values.shape)
    largest = max(abs(values).max(), abs(again).max()) or 1.0  # so that no difference overflows
    error = values / largest - again / largest
    if not error.any():
        return math.inf
    return _level(values) - _level(error) - 20 * math.log10(largest)


def _level(values: Floats) -> float:
    """The sum of the squares of numbers of any size, in decibels."""
    largest = abs(values).max()
    if largest == 0:
        return -math.inf
    return 20 * math.log10(largest) + 10 * math.log10(((values / largest) ** 2).sum())


def _scheme(
    scale: Floats,
    zero_point: object,
    offset: object,
    bits: int,
    low: int,
    high: int,
    axis: int | None,
    group_size: int | None,
) -> Scheme:
    return Scheme(
        scale,
        numpy.broadcast_to(numpy.asarray(zero_point).astype(numpy.int64), scale.shape),
        numpy.broadcast_to(numpy.asarray(offset, dtype=float), scale.shape),
        bits,
        low,
        high,
        axis,
        group_size,
    )


def _steps(step: Quantity) -> Floats:
    """The steps as an array; 1 where all data are alike, or so close that no number is between."""
    steps = numpy.asarray(step.magnitude)
    return numpy.where(steps < numpy.finfo(float).tiny, 1.0, steps)


def _limits(
    data: ArrayLike, percentile: float, axis: int | None, group_size: int | None
) -> tuple[Floats, Floats]:
    values, highest = channels.floats(data), _upper(percentile)
    low = channels.percentile(values, 100 - highest, axis, group_size)
    return low, channels.percentile(values, highest, axis, group_size)


def _whole(codes: ArrayLike, name: str) -> Codes:
    array = channels.array_of(codes, f"integer_matmul(): {name}")
    if array.dtype.kind not in "iu":
        raise InputError(
            f"integer_matmul(): {name} must be whole numbers; got {abbreviated(codes)}"
        )
    return array.astype("int64")


def _check_sums(sums: Codes, terms: int) -> None:
    if (abs(sums) >= 2**31).any():
        raise InputError(
            f"integer_matmul(): a sum of {terms} products may overflow a 32-bit accumulator; split"
            f" the inner dimension or use fewer bits"
        )


def _check_bits(bits: int) -> None:
    if isinstance(bits, bool) or not isinstance(bits, int):
        raise InputError(f"bits must be a whole number; got {abbreviated(bits)}")
    if not FEWEST_BITS <= bits <= MOST_BITS:
        raise InputError(f"bits must be between {FEWEST_BITS} and {MOST_BITS}; got {bits}")


def _upper(percentile: float) -> float:
    if not 50 < number("percentile", percentile) <= 100:
        raise InputError(
            f"percentile must be above 50 and at most 100; got {abbreviated(percentile)}"
        )
    return percentile
