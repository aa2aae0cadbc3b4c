"""What laws do with numbers, numpy arrays and quantities alike; numbers do not need numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from calc.core.errors import InputError, do_not_broadcast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Number: TypeAlias = float | NDArray[np.float64]
else:  # numpy need not be there
    Number = float
"""A magnitude: a number, or an array of them."""

TOO_LARGE = "the result is too large for a floating-point number"


def minimum(first: Any, second: Any) -> Any:
    if _is_array(first) or _is_array(second):
        import numpy

        return numpy.minimum(first, second)
    return first if first <= second else second


def maximum(first: Any, second: Any) -> Any:
    if _is_array(first) or _is_array(second):
        import numpy

        return numpy.maximum(first, second)
    return first if first >= second else second


def where(condition: Any, yes: Any, no: Any) -> Any:
    if _is_array(condition):
        import numpy

        return numpy.where(condition, yes, no)
    return yes if condition else no


def choose(words: Sequence[str], place: Any) -> Any:
    """The word at that place, or an array of them for an array of places."""
    if _is_array(place):
        import numpy

        return numpy.array(words)[place]
    return words[place]


def different(*numbers: Any) -> tuple[tuple[Any, ...], Any]:
    """The different points of arrays, a coordinate each, and where in them each point is.

    Plain numbers are one point, which has no place.

    >>> import numpy
    >>> (rows, columns), places = different(numpy.array([5, 3, 5]), 7)
    >>> rows.tolist(), columns.tolist(), places.tolist()
    ([3, 5], [7, 7], [1, 0, 1])
    """
    if not any(map(_is_array, numbers)):
        return numbers, None
    import numpy

    points = numpy.broadcast_arrays(*numbers)
    code = numpy.zeros(points[0].shape, dtype=numpy.int64)
    for each in points:
        _, place = numpy.unique(each, return_inverse=True)
        code = code * (place.max(initial=0) + 1) + place.reshape(code.shape)
    _, first, places = numpy.unique(code, return_index=True, return_inverse=True)
    return tuple(each.ravel()[first] for each in points), places.reshape(code.shape)


def of_each(function: Callable[..., float], *numbers: Any) -> Any:
    """The function of these numbers; of arrays it is asked once for each different point.

    >>> import numpy
    >>> of_each(pow, numpy.array([3, 2, 3]), 2).tolist()
    [9, 4, 9]
    """
    points, places = different(*numbers)
    if places is None:
        return function(*points)
    import numpy

    values = [function(*each) for each in zip(*(each.tolist() for each in points), strict=True)]
    return numpy.array(values)[places]


def divide_or_infinity(numerator: Any, denominator: Any) -> Any:
    """The quotient, and infinity where the denominator is zero: the limit of laws that have one."""
    if _is_array(numerator) or _is_array(denominator):
        import numpy

        zero = numpy.equal(denominator, 0)  # of either sign, and above it too
        return numpy.where(zero, math.inf, numerator / (denominator + 1.0 * zero))
    return numerator / denominator if denominator else math.inf


def log10(value: Any) -> Any:
    if _is_array(value):
        import numpy

        return numpy.log10(value)
    return math.log10(value)


def log(value: Any) -> Any:
    """The natural logarithm."""
    if hasattr(value, "units"):
        return log(value.m_as(""))
    if _is_array(value):
        import numpy

        return numpy.log(value)
    return math.log(value)


def expm1(value: Any) -> Any:
    """The exponential less one, without the error that the difference would have near zero."""
    if hasattr(value, "units"):
        return expm1(value.m_as(""))
    if _is_array(value):
        import numpy

        return numpy.expm1(value)
    return math.expm1(value)


def sum_of_powers(base: Any, last: Any) -> Any:
    """1 + b + b² + … + b^last, of a base b between 0 and 1, however near it is to either.

    >>> sum_of_powers(0.5, 2), sum_of_powers(1, 2), sum_of_powers(0, 2)
    (1.75, 3, 1.0)
    """
    below = where(base < 1, maximum(base, 1e-300), 0.5)
    powers = -expm1((last + 1) * log(below)) / (1 - below)
    return where(base < 1, powers, last + 1)


def erfc(value: Any) -> Any:
    """The complementary error function: twice the normal distribution's tail beyond √2 · value."""
    if hasattr(value, "units"):
        return erfc(value.m_as(""))
    if _is_array(value):
        import numpy

        return numpy.vectorize(math.erfc, otypes=[float])(value)
    return math.erfc(value)


def floor(value: Any) -> Any:
    """The whole number below; rounding error that left a whole number just short is forgiven."""
    if hasattr(value, "units"):
        return floor(value.magnitude) * value.units
    if _is_array(value):
        import numpy

        nearest = numpy.round(value)
        return numpy.where(_reaches(value, nearest), nearest, numpy.floor(value))
    nearest = round(value)
    return nearest if _reaches(value, nearest) else math.floor(value)


def ceiling(value: Any) -> Any:
    """The whole number above; rounding error that just exceeds a whole number is forgiven."""
    return -floor(-value)


def doublings(value: Any) -> Any:
    """How many doublings take one to this value or beyond: the logarithm to base 2, rounded up."""
    if hasattr(value, "units"):
        return doublings(value.magnitude) * value.units
    if _is_array(value):
        import numpy

        mantissa, exponent = numpy.frexp(value)
        return exponent - (mantissa == 0.5)
    mantissa, exponent = math.frexp(value)
    return exponent - (mantissa == 0.5)


def _reaches(value: Any, whole: Any) -> Any:
    return value + abs(value) * 1e-12 >= whole


def scale(magnitude: Any, factor: float) -> Any:
    """The product, infinite where it is too large."""
    if type(magnitude) is float:
        return magnitude * factor
    import numpy

    with numpy.errstate(over="ignore"):
        return magnitude * factor


def evaluate(body: Callable[..., Any], magnitudes: Sequence[Any]) -> Any:
    """The value of an equation; what overflows in an array is left in it as infinity or NaN."""
    try:
        if all(type(magnitude) is float for magnitude in magnitudes):
            return body(*magnitudes)
        import numpy

        with numpy.errstate(all="ignore"):
            return body(*magnitudes)
    except (OverflowError, ZeroDivisionError):  # a product of checked divisors may still be zero
        raise InputError(TOO_LARGE) from None
    except ValueError:
        raise do_not_broadcast(magnitudes) from None


def smallest(value: Any) -> float:
    """The smallest number of a quantity, or of an array; of none, infinity."""
    magnitude = getattr(value, "magnitude", value)
    return float(magnitude.min(initial=math.inf) if _is_array(magnitude) else magnitude)


def largest(value: Any) -> float:
    """The largest number of a quantity, or of an array; of none, minus infinity."""
    magnitude = getattr(value, "magnitude", value)
    return float(
        magnitude.astype(float).max(initial=-math.inf) if _is_array(magnitude) else magnitude
    )


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "ndim", 0) > 0)
