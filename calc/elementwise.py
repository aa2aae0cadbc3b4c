"""Functions that laws need on numbers, numpy arrays and quantities alike, without needing numpy for numbers."""

from __future__ import annotations

import math
from typing import Any


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


def divide_or_infinity(numerator: Any, denominator: Any) -> Any:
    """The quotient, and infinity where the denominator is zero: the limit of laws that have one."""
    if _is_array(denominator):
        import numpy

        with numpy.errstate(divide="ignore"):
            return numerator / denominator
    return numerator / denominator if denominator != 0 else math.inf


def floor(value: Any) -> Any:
    """The whole number below; what rounding error has put just under a whole number is that number."""
    nudged = value * (1 + 1e-12)
    if _is_array(value):
        import numpy

        return numpy.floor(nudged)
    return math.floor(nudged)


def _is_array(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0
