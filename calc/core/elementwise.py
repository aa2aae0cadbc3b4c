"""Elementwise functions of numbers, numpy arrays and quantities; numbers do not need numpy."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeGuard, TypeVar, cast

from calc.core.arrays import Number, Truth, numpy
from calc.core.errors import InputError, do_not_broadcast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calc.core.units import Quantity

    Value = TypeVar("Value", Number, Quantity)
    Either = TypeVar("Either", Number, Quantity, str)

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

TOO_LARGE = "the result is too large for a floating-point number"


def minimum(first: Value, second: Value) -> Value:
    if _is_array(first) or _is_array(second):
        return cast("Value", numpy.minimum(first, second))
    return first if first <= second else second


def maximum(first: Value, second: Value) -> Value:
    if _is_array(first) or _is_array(second):
        return cast("Value", numpy.maximum(first, second))
    return first if first >= second else second


def where(condition: Truth, yes: Either, no: Either) -> Either:
    if _is_array(condition):
        return cast("Either", numpy.where(condition, yes, no))
    return yes if condition else no


def choose(words: Sequence[str] | Sequence[float], index: Any) -> Any:
    """The word or number at that place, or an array of them for an array of places."""
    return numpy.array(words)[index] if _is_array(index) else words[index]


def different(*numbers: Number) -> tuple[tuple[Number, ...], NDArray[numpy.intp] | None]:
    """The different points of arrays, a coordinate each, and where in them each point is.

    Plain numbers are one point, which has no place.

    >>> import numpy
    >>> (rows, columns), places = different(numpy.array([5, 3, 5]), 7)
    >>> rows.tolist(), columns.tolist(), places.tolist()
    ([3, 5], [7, 7], [1, 0, 1])
    """
    if not any(map(_is_array, numbers)):
        return numbers, None
    coordinates = numpy.broadcast_arrays(*numbers)
    code, *others = (
        coordinate
        for coordinate, number in zip(coordinates, numbers, strict=True)
        if _is_array(number)
    )
    for other in others:
        index = _place(other)
        code = _place(code) * (index.max(initial=0) + 1) + index
    _, first, places = numpy.unique(code, return_index=True, return_inverse=True)
    return tuple(coordinate.ravel()[first] for coordinate in coordinates), places.reshape(
        code.shape
    )


def _place(coordinate: NDArray[Any]) -> NDArray[numpy.intp]:
    """Return the index of each number among the sorted distinct ones."""
    _, index = numpy.unique(coordinate, return_inverse=True)
    return index.reshape(coordinate.shape)


def of_each(function: Callable[..., float], *numbers: Number) -> Number:
    """The function of these numbers; of arrays it is asked once for each different point.

    >>> import numpy
    >>> of_each(pow, numpy.array([3, 2, 3]), 2).tolist()
    [9, 4, 9]
    """
    points, places = different(*numbers)
    if places is None:
        return function(*points)
    coordinates = (numpy.asarray(coordinate).tolist() for coordinate in points)
    return numpy.array([function(*point) for point in zip(*coordinates, strict=True)])[places]


def by_math(function: Callable[..., float], value: Number) -> Number:
    """A function of `math` of a number or, rounded alike, of each of an array.

    >>> import math, numpy
    >>> by_math(math.log2, numpy.array([[8, 2]])).tolist()
    [[3.0, 1.0]]
    """
    if not _is_array(value):
        return function(value)
    return numpy.array([*map(function, value.ravel().tolist())], float).reshape(value.shape)


def place(value: Number, nodes: Sequence[float]) -> tuple[Any, Number]:
    """The node below a value, and how far it is from there to the next; at most at the ends.

    >>> import numpy
    >>> place(3, (0, 2, 6, 7))
    (1, 0.25)
    >>> [each.tolist() for each in place(numpy.array([-1, 6, 9]), (0, 2, 6, 7))]
    [[0, 2, 2], [0.0, 0.0, 1.0]]
    """
    below: Any
    if _is_array(value):
        below = numpy.searchsorted(nodes[1:-1], value, "right")
    else:
        below = bisect_right(nodes, value, 1, len(nodes) - 1) - 1
    start, end = choose(nodes, below), choose(nodes, below + 1)
    return below, minimum(maximum((value - start) / (end - start), 0.0), 1.0)


def kept(most: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return what keeps so many answers of a function of numbers; those of arrays it forgets.

    >>> import numpy
    >>> product = kept(8)(lambda number, times: number * times)
    >>> product(2, 3), product(numpy.array([1, 2]), 3), product(2, numpy.array([1, 2]))
    (6, array([3, 6]), array([2, 4]))
    """

    def keeping(function: Callable[P, R]) -> Callable[P, R]:
        cached: Callable[..., R] = lru_cache(maxsize=most)(function)

        @wraps(function)
        def asked(*positional: P.args, **named: P.kwargs) -> R:
            return (function if any(map(_is_array, positional)) else cached)(*positional, **named)

        return asked

    return keeping


def at(value: V, index: int | Truth) -> V:
    """Return a value's part at an index or under a mask: of an array, a quantity or a record.

    What is no array is the same at all places.

    >>> import numpy
    >>> at(numpy.array([5, 3]), 1), at(7, 1)
    (3, 7)
    """
    record: Any = value
    if is_quantity(record):
        magnitude = record.magnitude
        return cast("V", at(magnitude, index) * record.units if _is_array(magnitude) else record)
    if is_dataclass(record):
        parts = {part.name: at(getattr(record, part.name), index) for part in fields(record)}
        return cast("V", replace(cast("Any", record), **parts))
    if not _is_array(record):
        return value
    held: Any = record[index]
    return cast("V", held if held.ndim else held.item())


def divide_or_infinity(numerator: Number, denominator: Number) -> Number:
    """The quotient, and infinity where the denominator is zero: the limit of laws that have one."""
    if _is_array(numerator) or _is_array(denominator):
        zero = numpy.equal(denominator, 0)  # of either sign, and above it too
        return numpy.where(zero, math.inf, numerator / (denominator + 1.0 * zero))
    return numerator / denominator if denominator else math.inf


def log10(value: Number) -> Number:
    return numpy.log10(value) if _is_array(value) else math.log10(value)


def log(value: Number | Quantity) -> Number:
    """The natural logarithm."""
    value = pure(value)
    return numpy.log(value) if _is_array(value) else math.log(value)


def expm1(value: Number | Quantity) -> Number:
    """The exponential less one, without the error that the difference would have near zero."""
    value = pure(value)
    return numpy.expm1(value) if _is_array(value) else math.expm1(value)


def sum_of_powers(base: Number, last: Number) -> Number:
    """1 + b + b² + … + b^last, of a base b between 0 and 1, however near it is to either.

    >>> sum_of_powers(0.5, 2), sum_of_powers(1, 2), sum_of_powers(0, 2)
    (1.75, 3, 1.0)
    """
    below = where(base < 1, maximum(base, 1e-300), 0.5)
    after_the_first = -below * expm1(last * log(below)) / (1 - below)
    return 1 + where(base < 1, after_the_first, last)


def at_least_once(share: Number, times: Number) -> Number:
    """1 − (1 − s)^t: what happens at least once in so many times, however rare it is in one.

    >>> at_least_once(0.5, 2), at_least_once(1e-20, 2), at_least_once(1, 2)
    (0.75, 2e-20, 1.0)
    """
    return share * sum_of_powers(1 - share, times - 1)


def erfc(value: Number | Quantity) -> Number:
    """The complementary error function: twice the normal distribution's tail beyond √2 · value."""
    value = pure(value)
    return (
        numpy.vectorize(math.erfc, otypes=[float])(value) if _is_array(value) else math.erfc(value)
    )


def floor(value: Value) -> Value:
    """The whole number below; rounding error that left a whole number just short is forgiven."""
    return _whole(_floor, value)


def ceiling(value: Value) -> Value:
    """The whole number above; rounding error that just exceeds a whole number is forgiven."""
    return _whole(lambda magnitude: -_floor(-magnitude), value)


def doublings(value: Value) -> Value:
    """Return the doublings from one to this value or beyond: the base-2 logarithm, rounded up."""
    return _whole(_doublings, value)


def _whole(function: Callable[[Any], Any], value: Value) -> Value:
    """The function of a magnitude; a quantity keeps its unit."""
    if is_quantity(value):
        return cast("Value", function(value.magnitude) * value.units)
    return cast("Value", function(value))


def _floor(value: Number) -> Number:
    if _is_array(value):
        nearest = numpy.round(value)
        return numpy.where(_reaches(value, nearest), nearest, numpy.floor(value))
    whole = round(float(value))
    return whole if _reaches(value, whole) else math.floor(value)


def _doublings(value: Number) -> Number:
    mantissa, exponent = numpy.frexp(value) if _is_array(value) else math.frexp(value)
    return exponent - (mantissa == 0.5)


def _reaches(value: Number, whole: Number) -> Truth:
    return value + maximum(value, -value) * 1e-12 >= whole


def scale(magnitude: Number, factor: float) -> Number:
    """The product, infinite where it is too large."""
    if isinstance(magnitude, float):
        return magnitude * factor
    with numpy.errstate(over="ignore"):
        return magnitude * factor


def evaluate(body: Callable[..., R], magnitudes: Sequence[Number]) -> R:
    """The value of an equation; what overflows in an array is left in it as infinity or NaN."""
    try:
        if all(isinstance(magnitude, float) for magnitude in magnitudes):
            return body(*magnitudes)
        with numpy.errstate(all="ignore"):
            return body(*magnitudes)
    except (OverflowError, ZeroDivisionError):  # a product of checked divisors may still be zero
        raise InputError(TOO_LARGE) from None
    except ValueError:
        raise do_not_broadcast(magnitudes) from None


def smallest(value: Number | Quantity) -> float:
    """The smallest number of a quantity, or of an array; of none, infinity."""
    magnitude = getattr(value, "magnitude", value)
    return float(magnitude.min(initial=math.inf) if _is_array(magnitude) else magnitude)


def largest(value: Number | Quantity) -> float:
    """The largest number of a quantity, or of an array; of none, minus infinity."""
    magnitude = getattr(value, "magnitude", value)
    return float(
        magnitude.astype(float).max(initial=-math.inf) if _is_array(magnitude) else magnitude
    )


def pure(value: Number | Quantity) -> Number:
    return cast("Number", value.m_as("")) if is_quantity(value) else cast("Number", value)


def is_quantity(value: object) -> TypeGuard[Quantity]:
    return hasattr(value, "units")


@cache
def divisors(number: int) -> tuple[int, ...]:
    """Return all whole numbers that divide this one.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    return tuple(count for count in range(1, number + 1) if number % count == 0)


def _is_array(value: object) -> TypeGuard[NDArray[numpy.float64]]:
    return bool(getattr(value, "ndim", 0) > 0)
