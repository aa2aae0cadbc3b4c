"""Try the reasons that the chapter "Your own machine" gives for its outliers.

    OPENBLAS_NUM_THREADS=1 python -m experiments.record_reasons

Each kernel is timed against the same work without what is suspected. Writes
calc/data/measured/cpu_reasons.csv and, beside it, how that was measured. The forms of a kernel take
turns, times are those that the thread had the processor, and of each form the shortest counts, so
that what else runs disturbs the quotients little.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from calc.core.records import DATA
from calc.measure import this_machine
from calc.measure.aligned_arrays import filled
from calc.measure.bandwidth import one_triad
from calc.measure.kernel_suite import SEED, convolution
from experiments.machine import ask_for_one_thread, describe
from experiments.tables import write_rows

FOLDER = DATA / "measured"
COMMAND = "OPENBLAS_NUM_THREADS=1 python -m experiments.record_reasons"
ROUNDS = 25
TILE, PADDING = 64, 16  # elements of FP32: four lines, and one
IN_CACHE = 4096  # elements of FP64: two such arrays stay in the second cache
ROWS = 8
LONGER = 16
Forms = dict[str, Callable[[], object]]


def main() -> None:
    ask_for_one_thread(COMMAND)
    size = this_machine().beyond_caches
    rows = []
    for name, forms in kernels(size):
        print(name, flush=True)
        rows += [(name, form, f"{best:.4g}") for form, best in shortest(forms).items()]
    write_rows(FOLDER / "cpu_reasons.csv", ("kernel", "form", "seconds"), rows)
    describe(
        FOLDER / "cpu_reasons.toml",
        "How cpu_reasons.csv beside this file was measured: the shortest of so many rounds, in\n"
        "seconds that the thread had the processor.",
        ("numpy", "numba"),
        threads=1,
        command=COMMAND,
        rounds=ROUNDS,
        array_bytes=size,
        load_at_the_end=round(os.getloadavg()[0], 1),
    )


def kernels(size: int) -> Iterator[tuple[str, Forms]]:
    """Yield the forms of each outlier, on arrays of so many bytes, each freed before the next."""
    yield "transpose", transposes(size)
    yield "gather elements", gathers(size, 1)
    yield "gather rows", gathers(size, 256)
    yield "exp", exponentials(size)
    yield "ReLU", maxima(size)
    yield "GEMM, 8 rows", products(size)
    yield "convolution", convolutions()
    yield "add", sums(size)
    yield "copy", copies(size)


def transposes(size: int) -> Forms:
    """Return transposes: plain, in tiles that use whole lines, and padded to spread over sets."""
    shape = size // 4 // 4096, 4096
    a, b, copied = ones(*shape), ones(*shape[::-1]), ones(*shape)
    wide_a, wide_b = ones(shape[0], 4096 + PADDING), ones(4096, shape[0] + PADDING)
    padded_a, padded_b = wide_a[:, :4096], wide_b[:, : shape[0]]

    def tiles(a: Any, b: Any) -> None:
        for i in range(0, shape[0], TILE):
            for j in range(0, shape[1], TILE):
                b[j : j + TILE, i : i + TILE] = a[i : i + TILE, j : j + TILE].T

    return {
        "as in the suite": lambda: numpy.copyto(b, a.T),
        "padded": lambda: numpy.copyto(padded_b, padded_a.T),
        "in tiles": lambda: tiles(a, b),
        "padded, in tiles": lambda: tiles(padded_a, padded_b),
        "not transposed": lambda: numpy.copyto(copied, a),
    }


def gathers(size: int, width: int) -> Forms:
    """Return gathers: as in the suite, and in order, which uses each line in full.

    Rows many times as long, in any order, move as many bytes by fewer copies.
    """

    def taking(width: int, in_order: bool) -> Callable[[], object]:
        table, out = (ones(size // 4 // width, width) for _ in range(2))
        rows = numpy.arange(len(table))
        if not in_order:
            numpy.random.default_rng(SEED).shuffle(rows)
        return lambda: numpy.take(table, rows, axis=0, out=out, mode="clip")

    return {
        "as in the suite": taking(width, in_order=False),
        "in order": taking(width, in_order=True),
        "longer rows": taking(LONGER * width, in_order=False),
    }


def exponentials(size: int) -> Forms:
    """Return exponentials of numbers in memory, and of as many that stay in the second cache."""
    a, b, near, out = (filled(0.5, count) for count in 2 * [size // 8] + 2 * [IN_CACHE])
    a[:] = numpy.random.default_rng(SEED).random(len(a))
    near[:] = a[:IN_CACHE]

    def within() -> None:
        for _ in range(len(a) // IN_CACHE):
            numpy.exp(near, out=out)

    return {"as in the suite": lambda: numpy.exp(a, out=b), "in cache": within}


def maxima(size: int) -> Forms:
    """Return maxima: in place, where no line is fetched to be overwritten, and as a product."""
    a, b = ones(size // 4), ones(size // 4)
    return {
        "as in the suite": lambda: numpy.maximum(a, 0, out=b),
        "in place": lambda: numpy.maximum(a, 0, out=a),
        "a product": lambda: numpy.multiply(a, 2, out=b),
        "a product in place": lambda: numpy.multiply(a, 1, out=a),
    }


def products(size: int) -> Forms:
    """Return products of as many FLOP and few rows, on a piece of the operand in cache."""
    large = ones(size // 4 // 4096, 4096)
    a, out = ones(ROWS, len(large)), ones(ROWS, 4096)
    piece, left, result = ones(64, 512), ones(ROWS, 64), ones(ROWS, 512)

    def pieces() -> None:
        for _ in range(large.size // piece.size):
            numpy.matmul(left, piece, out=result)

    return {"as in the suite": lambda: numpy.matmul(a, large, out=out), "in cache": pieces}


def convolutions() -> Forms:
    """Return a convolution, and its product without the patches that are written before."""
    channels, side = 64, 128
    pixels, depth = (side - 2) ** 2, 9 * channels
    patches, weights, out = ones(pixels, depth), ones(depth, channels), ones(pixels, channels)
    return {
        "as in the suite": convolution(channels, side).run,
        "product": lambda: numpy.matmul(patches, weights, out=out),
    }


def sums(size: int) -> Forms:
    """The triad of the roof, on the same arrays: another loop over the same bytes."""
    a, b, out = (filled(1.0, size // 8) for _ in range(3))
    return {
        "as in the suite": lambda: numpy.add(a, b, out=out),
        "triad": lambda: one_triad(out, a, b),
    }


def copies(size: int) -> Forms:
    """The copy of the roof, which is the C library's, and the same by a loop of NumPy's own."""
    a, out = (filled(1.0, size // 8) for _ in range(2))
    return {
        "as in the roof": lambda: numpy.copyto(out, a),
        "a ufunc": lambda: numpy.positive(a, out=out),
    }


def shortest(forms: Forms) -> dict[str, float]:
    """Return the shortest time of each form in seconds of this thread, all forms taking turns."""
    for run in forms.values():
        run()
    best = dict.fromkeys(forms, float("inf"))
    for _ in range(ROUNDS):
        for name, run in forms.items():
            start = time.thread_time()
            run()
            best[name] = min(best[name], time.thread_time() - start)
    return best


def ones(*shape: int) -> Any:
    return filled(1.0, shape, numpy.float32)


if __name__ == "__main__":
    main()
