"""Latency of caches and memory by pointer chasing: every load waits for the one before.

The chain visits each cache line of a working set once, in an order that no prefetcher guesses, so
that beyond the reach of the TLB the walk through the page tables is part of what is measured.

Without numba, Python itself takes the steps. Its own time, that of the same walk through a set that
the first cache holds, is taken off, so that what is left is the latency above the first cache's.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

import numpy

from calc.core.errors import InputError
from calc.measure.aligned_arrays import LINE, Array
from calc.measure.repeated_timing import Measured, timed_anew

Table = TypeVar("Table", Array, "array.array[int]")
STEPS = 2**18
PYTHON_STEPS = 2**15
IN_THE_FIRST_CACHE = 2**13
SEED = 0


def chain(size: int, line: int = LINE) -> Array:
    """Indices of 8 bytes, one for each cache line: a single cycle through all, at random."""
    per_line, lines = line // 8, size // line
    if lines < 2:
        raise InputError(f"a chain needs two cache lines of {line} byte; got {size} byte")
    order = numpy.random.default_rng(SEED).permutation(lines)
    following = numpy.zeros(lines * per_line, numpy.int64)
    following[order * per_line] = numpy.roll(order, -1) * per_line
    return following


def latency(size: int) -> Measured:
    """Time of one step of the chase through `size` bytes."""
    how = f"pointer chase through {size} byte"
    if find_spec("numba"):
        return _by_numba(size, how)
    whole, first = (_by_python(length, how) for length in (size, IN_THE_FIRST_CACHE))
    above = whole.value - first.value
    return Measured(above, whole.spread, whole.repeats, f"{how} by Python, above the first cache")


def _by_numba(size: int, how: str) -> Measured:
    from calc.measure import compiled

    time = timed_anew(lambda: _walk(compiled.chase, chain(size), STEPS), how, longest=0.3)
    return time.per(STEPS)


def _by_python(size: int, how: str) -> Measured:
    def chase(steps_from: array.array[int], start: int, steps: int) -> int:
        at = start
        for _ in range(steps):
            at = steps_from[at]
        return at

    def make() -> Callable[[], object]:
        # The elements of such an array come out faster than NumPy's.
        return _walk(chase, array.array("q", chain(size).tobytes()), PYTHON_STEPS)

    return timed_anew(make, how, longest=0.3).per(PYTHON_STEPS)


def _walk(
    chase: Callable[[Table, int, int], int], following: Table, steps: int
) -> Callable[[], object]:
    """Each call goes on from where the one before ended, so that it finds no warm line."""
    at = 0

    def go_on() -> None:
        nonlocal at
        at = chase(following, at, steps)

    return go_on
