"""Pairs of kernels that do the same FLOP, and differ in how their data move.

Of each pair the first moves little and the second much. The bytes of the second are those that
really cross to memory: whole cache lines, matrices as long as the shape makes them, arrays that are
written between two passes only to be read again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy

from calc.core.units import quantity
from calc.laws.roofline import Workload, elementwise
from calc.measure.aligned_arrays import LINE, filled
from calc.measure.kernel_suite import SEED, Kernel, product

BLOCK = 2**14  # elements of FP32: two blocks stay in a cache of 128 KiB
TERMS = 8  # of the polynomial


@dataclass(frozen=True)
class Pair:
    """Two kernels of the same FLOP, a fast and a slow one, and the lever in which they differ."""

    lever: str
    fast: Callable[[], Kernel]
    slow: Callable[[], Kernel]


def pairs(size: int) -> list[Pair]:
    """Layout, access pattern, fusion and shape, on arrays of `size` bytes where memory matters.

    >>> layout = pairs(2**20)[0]
    >>> for make in (layout.fast, layout.slow):
    ...     work = make().total
    ...     print(work.operations, work.traffic)
    131.1 kFLOP 3.146 MB
    131.1 kFLOP 10.49 MB
    """
    return [
        Pair("layout", lambda: row_sums(size, "rows"), lambda: row_sums(size, "columns")),
        Pair("access pattern", lambda: picked(size, False), lambda: picked(size, True)),
        Pair("fusion", lambda: polynomial(size, BLOCK), lambda: polynomial(size, size // 4)),
        Pair(
            "shape",
            lambda: product("512³", "fp32", 512, 512, 512),
            lambda: product("8 × 4096²", "fp32", 8, 4096, 4096),
        ),
    ]


def row_sums(size: int, stored_by: str) -> Kernel:
    """Sum of two matrices into a third, the second stored by rows or by columns.

    1 FLOP for each element. By rows, three arrays of FP64 move. By columns, neighbours of a row
    are in different lines, so that of every line that the second array brings one element is used.
    """
    rows = size // 8 // 4096
    a, out = filled(1.0, (rows, 4096)), filled(0.0, (rows, 4096))
    b = filled(1.0, (rows, 4096)) if stored_by == "rows" else filled(1.0, (4096, rows)).T
    elements = quantity(8 * a.size, "byte")
    second = elements if stored_by == "rows" else quantity(LINE * a.size, "byte")
    work = Workload(quantity(a.size, "FLOP"), 2 * elements + second)
    name = f"both by {stored_by}" if stored_by == "rows" else "one by columns"
    return Kernel(name, "layout", "fp64", (work,), lambda: numpy.add(a, b, out=out))


def picked(size: int, at_random: bool) -> Kernel:
    """Sum of elements that a list of indices picks, in order or at random.

    1 FLOP for each element. In order, elements, indices of 8 bytes and the picked ones, written
    and read again, move; at random, a line for each element in place of the element.
    """
    table = filled(1.0, size // 4, numpy.float32)
    order = numpy.arange(len(table))
    if at_random:
        numpy.random.default_rng(SEED).shuffle(order)
    out = filled(0.0, table.shape, table.dtype)
    read = len(table) * (LINE if at_random else 4)

    def run() -> object:
        return numpy.take(table, order, out=out, mode="clip").sum()

    passes = (
        Workload(quantity(0, "FLOP"), quantity(read + order.nbytes + out.nbytes, "byte")),
        elementwise(len(out), "1 FLOP", 1, "4 byte"),
    )
    return Kernel("at random" if at_random else "in order", "access", "fp32", passes, run)


def polynomial(size: int, block: int) -> Kernel:
    """Horner's rule with TERMS multiplications and additions, block by block.

    2·TERMS FLOP for each element. A block that a cache holds comes from memory once and goes back
    once; with the whole array as one block every step reads and writes it: y·x moves three arrays,
    and y + c two.
    """
    x, y = (filled(1.0, size // 4, numpy.float32) for _ in range(2))
    x[:] = numpy.linspace(0, 1, len(x))

    def run() -> object:
        for start in range(0, len(x), block):
            part, result = x[start : start + block], y[start : start + block]
            result.fill(1.0)
            for _ in range(TERMS):
                numpy.multiply(result, part, out=result)
                numpy.add(result, 0.5, out=result)
        return y

    fused = block < len(x)
    arrays = 2 if fused else 1 + 5 * TERMS
    work = elementwise(len(x), quantity(2 * TERMS, "FLOP"), arrays, "4 byte")
    return Kernel("in blocks" if fused else "array by array", "fusion", "fp32", (work,), run)
