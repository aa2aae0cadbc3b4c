"""Loops that NumPy cannot run: a triad in one pass, and a chase of pointers. They need numba."""

from __future__ import annotations

import numba

from calc.measure.aligned_arrays import Array

compiled = numba.njit(cache=True, nogil=True, fastmath=True)


@compiled
def triad(a: Array, b: Array, c: Array, times: int) -> None:
    """a = b + 3 c, so many times over."""
    for _ in range(times):
        for i in range(a.size):
            a[i] = b[i] + 3.0 * c[i]


@compiled
def chase(following: Array, start: int, steps: int) -> int:
    """Return the element at which a walk from `start` ends; each step waits for the last load."""
    at = start
    for _ in range(steps):
        at = following[at]
    return at
