"""Try the reasons that the chapter "Hardware-aware optimisation" gives for its outliers.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.record_reasons

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

from benchmarks.machine import description
from benchmarks.tables import write_rows
from calc.measure import this_machine
from calc.measure.kernels import SEED
from calc.records import DATA

FOLDER = DATA / "measured"
COMMAND = "OPENBLAS_NUM_THREADS=1 python -m benchmarks.record_reasons"
ROUNDS = 25
TILE, PADDING = 64, 16  # elements of FP32: four lines, and one
IN_CACHE = 1024  # elements of FP64: two such arrays stay in the first cache
ROWS = 8
Forms = dict[str, Callable[[], object]]


def main() -> None:
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit(f"say how it is measured: {COMMAND}")
    size = this_machine().beyond_caches
    rows = []
    for name, forms in kernels(size):
        print(name, flush=True)
        rows += [(name, form, f"{best:.4g}") for form, best in shortest(forms).items()]
    write_rows(FOLDER / "cpu_reasons.csv", ("kernel", "form", "seconds"), rows)
    text = description(
        "How cpu_reasons.csv beside this file was measured: the shortest of so many rounds, in\n"
        "seconds that the thread had the processor.",
        ("numpy",),
        threads=1,
        command=COMMAND,
        rounds=ROUNDS,
        array_bytes=size,
        load_at_the_end=round(os.getloadavg()[0], 1),
    )
    (FOLDER / "cpu_reasons.toml").write_text(text, encoding="utf-8")


def kernels(size: int) -> Iterator[tuple[str, Forms]]:
    """Of each outlier its forms, on arrays of so many bytes; those before are gone by then."""
    yield "transpose", transposes(size)
    yield "gather elements", gathers(size, 1)
    yield "gather rows", gathers(size, 256)
    yield "exp", exponentials(size)
    yield "ReLU", maxima(size)
    yield "GEMM, 8 rows", products(size)


def transposes(size: int) -> Forms:
    """In tiles whole lines are used; padded by a line, columns are not all in one set."""
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
    """The same indices in order: each line is used in full, and the next one is guessed."""
    table = ones(size // 4 // width, width)
    order = numpy.random.default_rng(SEED).permutation(len(table))
    in_order, out = numpy.arange(len(table)), numpy.empty_like(table)

    def take(which: Any) -> Any:
        return numpy.take(table, which, axis=0, out=out, mode="clip")

    return {"as in the suite": lambda: take(order), "in order": lambda: take(in_order)}


def exponentials(size: int) -> Forms:
    """As many, of numbers that never leave the first cache: no byte comes from memory."""
    a = numpy.random.default_rng(SEED).random(size // 8)
    b, near, out = numpy.zeros_like(a), a[:IN_CACHE].copy(), numpy.zeros(IN_CACHE)

    def within() -> None:
        for _ in range(len(a) // IN_CACHE):
            numpy.exp(near, out=out)

    return {"as in the suite": lambda: numpy.exp(a, out=b), "in cache": within}


def maxima(size: int) -> Forms:
    """In place no line is fetched only to be overwritten; a product instead has another loop."""
    a, b = ones(size // 4), ones(size // 4)
    return {
        "as in the suite": lambda: numpy.maximum(a, 0, out=b),
        "in place": lambda: numpy.maximum(a, 0, out=a),
        "a product": lambda: numpy.multiply(a, 2, out=b),
        "a product in place": lambda: numpy.multiply(a, 1, out=a),
    }


def products(size: int) -> Forms:
    """As many FLOP with as few rows, on a piece of the large operand that a cache holds."""
    large = ones(size // 4 // 4096, 4096)
    a, out = ones(ROWS, len(large)), ones(ROWS, 4096)
    piece, left, result = ones(64, 512), ones(ROWS, 64), ones(ROWS, 512)

    def pieces() -> None:
        for _ in range(large.size // piece.size):
            numpy.matmul(left, piece, out=result)

    return {"as in the suite": lambda: numpy.matmul(a, large, out=out), "in cache": pieces}


def shortest(forms: Forms) -> dict[str, float]:
    """Of each form the shortest time of this thread in seconds, all forms taking turns."""
    for run in forms.values():
        run()
    found = dict.fromkeys(forms, float("inf"))
    for _ in range(ROUNDS):
        for name, run in forms.items():
            start = time.thread_time()
            run()
            found[name] = min(found[name], time.thread_time() - start)
    return found


def ones(*shape: int) -> Any:
    return numpy.ones(shape, numpy.float32)


if __name__ == "__main__":
    main()
