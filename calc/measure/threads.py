"""Threads of a measurement: how many a process may have, and BLAS is held to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

from calc.core.errors import MissingExtraError
from calc.measure.aligned_arrays import Array


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Hold the BLAS of NumPy to so many threads.

    threadpoolctl does; without it, the environment that NumPy started in must have said so.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        said = {os.environ.get(f"{name}_NUM_THREADS") for name in ("OPENBLAS", "MKL", "OMP")}
        if str(count) not in said:
            raise MissingExtraError(
                f"calc.measure, to hold BLAS to {count} threads,", "threadpoolctl", "measure"
            ) from None
        yield
        return
    with threadpool_limits(count):
        yield


@contextmanager
def in_slices(
    work: Callable[..., object], arrays: tuple[Array, ...], count: int
) -> Iterator[Callable[[], object]]:
    """`work(*arrays)` as a call that gives each thread a slice; only for work without the GIL."""
    if count == 1:
        yield lambda: work(*arrays)
        return
    length = len(arrays[0])
    edges = [length * part // count for part in range(count + 1)]
    parts = [tuple(array[low:high] for array in arrays) for low, high in pairwise(edges)]
    with ThreadPoolExecutor(count) as pool:
        yield lambda: list(pool.map(lambda part: work(*part), parts))
