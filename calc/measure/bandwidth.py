"""Bandwidth of memory by STREAM's copy and triad, on arrays that no cache holds.

Bytes are counted as STREAM counts them: each element read or written once. A processor that fetches
a line before it overwrites it moves more than that, so that what is measured is the bandwidth that
a program gets, not the one that the memory has.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy

from calc.core.units import quantity
from calc.measure.aligned_arrays import Array, filled
from calc.measure.repeated_timing import Measured, timed
from calc.measure.threads import in_slices

BLOCK = 2**12  # elements: three blocks of FP64 stay in a cache of 128 KiB


def copy(array_bytes: int, threads: int = 1) -> Measured:
    """a = b: reads one array of FP64 and writes one.

    D_vol = 2 · array. NumPy asks the C library, as a compiler does that finds this loop in STREAM.
    """
    a, b = (filled(1.0, array_bytes // 8) for _ in range(2))
    with in_slices(numpy.copyto, (a, b), threads) as work:
        time = timed(work, f"copy of {array_bytes / 2**20:g} MiB, {_on(threads)}")
    return time.rate(quantity(2 * b.nbytes, "byte"))


def triad(array_bytes: int, threads: int = 1) -> Measured:
    """a = b + 3 c: reads two arrays of FP64 and writes one.

    D_vol = 3 · array. One pass where numba is installed. NumPy alone does it in two passes, block
    by block, so that the second finds its operands in a cache.
    """
    a, b, c = (filled(1.0, array_bytes // 8) for _ in range(3))
    with in_slices(one_triad, (a, b, c), threads) as work:
        how = "numba" if find_spec("numba") else "NumPy in blocks"
        time = timed(work, f"triad of {array_bytes / 2**20:g} MiB by {how}, {_on(threads)}")
    return time.rate(quantity(3 * b.nbytes, "byte"))


def one_triad(a: Array, b: Array, c: Array, times: int = 1) -> None:
    """a = b + 3 c, so many times over."""
    if find_spec("numba"):
        from calc.measure import compiled

        compiled.triad(a, b, c, times)
        return
    for _ in range(times):
        for start in range(0, len(a), BLOCK):
            part = slice(start, start + BLOCK)
            numpy.multiply(c[part], 3.0, out=a[part])
            numpy.add(a[part], b[part], out=a[part])


def _on(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
