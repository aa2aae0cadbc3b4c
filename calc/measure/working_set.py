"""Bandwidth against the working set: each step down is the end of a cache."""

from __future__ import annotations

from importlib.util import find_spec

import numpy

from calc.measure.bandwidth import one_triad
from calc.measure.timing import Measured, timed
from calc.units import quantity

SMALLEST = 2**13
ENOUGH = 2**22  # bytes of a call, so that the time of calling is not seen


def sizes(largest: int) -> list[int]:
    """Working sets in bytes, powers of two; without numba, small ones would measure calls."""
    first = SMALLEST if find_spec("numba") else 2**17
    return [first * 2**power for power in range((largest // first).bit_length())]


def bandwidth(size: int) -> Measured:
    """Triad over three arrays that take `size` bytes together, again and again, on one thread."""
    a, b, c = (numpy.ones(size // 24) for _ in range(3))
    times = max(1, ENOUGH // size)
    time = timed(lambda: one_triad(a, b, c, times), f"triad within {size} byte", longest=0.2)
    return time.rate(quantity(3 * a.nbytes * times, "byte"))
