"""Bandwidth against the working set: each step down is the end of a cache."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from calc.core.units import quantity
from calc.measure.aligned_arrays import LINE, Array, filled
from calc.measure.bandwidth import one_triad
from calc.measure.repeated_timing import Measured, timed_anew

SMALLEST = 2**13
ENOUGH = 2**22  # bytes of a call, so that the time of calling is not seen


def sizes(largest: int) -> list[int]:
    """Working sets in bytes, powers of two; without numba, small ones would measure calls."""
    first = SMALLEST if find_spec("numba") else 2**17
    return [first * 2**power for power in range((largest // first).bit_length())]


def bandwidth(size: int) -> Measured:
    """Triad over three arrays that take `size` bytes together, again and again, on one thread."""
    times = max(1, ENOUGH // size)

    def make() -> Callable[[], object]:
        a, b, c = arrays(size)
        return lambda: one_triad(a, b, c, times)

    time = timed_anew(make, f"triad within {size} byte", longest=0.3)
    return time.rate(quantity(sum(array.nbytes for array in arrays(size)) * times, "byte"))


def arrays(size: int) -> list[Array]:
    """Three arrays of FP64, one behind the other, each from the beginning of a cache line on.

    Where an allocator puts them, they straddle lines, or a load of one shares the low bits of its
    address with a store to another and waits for it: in the first cache that is a factor of three.
    A third of a power of two, their distance is far from any multiple of a page.
    """
    length = size // 3 // LINE * LINE // 8
    return list(filled(1.0, (3, length)))
