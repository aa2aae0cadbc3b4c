"""Measure what the chapter on co-design says of the resolvent kernel, and store it.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \\
        python -m experiments.record_resolvent

Writes calc/data/measured/resolvent_*.csv: where the recursion ends, how far each method is off, how
wrong a gradient without off-diagonals is, and how fast everything runs; beside them, in
resolvent.toml, the machine and its roofs. Needs numba, torch and scipy; nothing else should run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from statistics import median
from typing import Any

import numpy
import torch
from scipy.linalg import solve_banded

from calc.codesign import (
    INPUT_KINDS,
    benchmark_mixed_precision,
    overflow_onset,
    resolvent_diagonal,
    validate_mixed_precision_accuracy,
)
from calc.codesign.kernel_speed import FLOP_PER_ENTRY, bytes_per_entry
from calc.codesign.resolvent import METHODS
from calc.codesign.resolvent_numpy import minors
from calc.codesign.resolvent_problem import Problem
from calc.core.records import DATA
from calc.measure import bandwidth, gemm
from experiments.machine import describe, timed
from experiments.tables import write_rows

FOLDER = DATA / "measured"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
COMMAND = " ".join(f"{name}=1" for name in THREADS) + " python -m experiments.record_resolvent"
SEED, ONSETS, ONSET_LENGTH, SAMPLES = 0, 200, 1200, 100
LENGTHS = [16, 32, 64, 96, 104, 112, 128, 256, 512, 1024, 2048, 4096]
SIZES = [(1, 4096), (8, 128), (16, 4096), (256, 1024), (4096, 256)]
REPEATS, BANDED_COLUMNS = 9, 64


def main() -> None:
    if any(os.environ.get(name) != "1" for name in THREADS):
        raise SystemExit(f"say how it is measured: {COMMAND}")
    torch.set_num_threads(1)
    write("onset", onsets())
    write("accuracy", [row.as_dict() for row in accuracies()])
    write("banded", banded())
    write("gradient", gradients())
    roofs = measured_roofs()
    write("speed", [*speeds(roofs), *banded_speeds()])
    describe(
        FOLDER / "resolvent.toml",
        "How the tables resolvent_*.csv beside this file were measured. Times are medians in\n"
        "seconds; the roofs are those of one core, in the same run.",
        ("numpy", "scipy", "numba", "torch"),
        threads=1,
        command=COMMAND,
        seed=SEED,
        repeats=REPEATS,
        load_at_the_end=round(os.getloadavg()[0], 1),
        triad_bytes_per_second=float(f"{roofs['bandwidth']:.4g}"),
        gemm_fp64_flop_per_second=float(f"{roofs['fp64']:.4g}"),
        gemm_fp32_flop_per_second=float(f"{roofs['fp32']:.4g}"),
    )


def onsets() -> Iterable[dict[str, Any]]:
    """Yield for each sample the length at which θ leaves the format, and that at which it is gone.

    θ that shrinks loses digits below the smallest normal number, and is 0 some steps later.
    """
    for kind in ("disorder", "small", "small signs"):
        a, b, c, z = drawn(kind, ONSETS, ONSET_LENGTH)
        for dtype in ("complex64", "complex128"):
            onset = overflow_onset(a, b, c, z, dtype)
            problem = Problem.checked(a, b, c, z, dtype)
            with numpy.errstate(all="ignore"):
                theta = minors(problem.shifted, problem.products)[1:]
            gone = (~numpy.isfinite(theta) | (theta == 0)).argmax(axis=0) + 1
            for sample in range(ONSETS):
                yield {
                    "kind": kind,
                    "dtype": dtype,
                    "sample": sample,
                    "range": str(onset.kind[sample]),
                    "length": int(onset.length[sample]),
                    "gone": int(gone[sample]),
                    "growth": float(onset.growth[sample]),
                    "predicted": float(onset.predicted[sample]),
                }


def accuracies() -> Iterable[Any]:
    for n in LENGTHS:
        yield from validate_mixed_precision_accuracy(SAMPLES, [n], seed=SEED)


def banded() -> Iterable[dict[str, Any]]:
    """Ratio form and scaled against a solve with pivoting, in some columns of long matrices."""
    n = 4096
    columns = numpy.linspace(0, n - 1, BANDED_COLUMNS).astype(int)
    for kind in INPUT_KINDS:
        a, b, c, z = drawn(kind, 20, n)
        expected = numpy.array(
            [column_solves(*row, columns=columns) for row in zip(a, b, c, z, strict=True)]
        )
        for method in ("ratio", "scaled"):
            got = resolvent_diagonal(a, b, c, z, method)[:, columns]
            apart = abs(got - expected)
            yield {
                "kind": kind,
                "n": n,
                "method": method,
                "samples": len(got),
                "absolute": float(apart.max()),
                "relative": float((apart / abs(expected)).max()),
            }


def column_solves(a: Any, b: Any, c: Any, z: Any, columns: Any) -> Any:
    units = numpy.zeros((len(a), len(columns)))
    units[columns, range(len(columns))] = 1
    return solve_banded((1, 1), bands(a, b, c, z), units)[columns, range(len(columns))]


def bands(a: Any, b: Any, c: Any, z: Any) -> Any:
    held = numpy.zeros((3, len(a)), complex)
    held[0, 1:], held[1], held[2, :-1] = b, a - z, c
    return held


def gradients() -> Iterable[dict[str, Any]]:
    """Yield errors of gradients of Σ w_i Re G_ii by a, exact and −w_i Re G_ii², against dense ones.

    Errors are norms of differences over the norm of the dense gradient.
    """
    for kind in INPUT_KINDS:
        for n in (16, 64, 256):
            for sample, (a, b, c, z) in enumerate(zip(*drawn(kind, 20, n), strict=True)):
                weights = torch.from_numpy(numpy.random.default_rng([SEED, sample]).random(n))
                leaf = torch.tensor(a, requires_grad=True)
                diagonal = resolvent_diagonal(leaf, b, c, z, backend="torch")
                (exact,) = torch.autograd.grad((weights * diagonal.real).sum(), leaf)
                matrix = torch.diag(leaf) + torch.from_numpy(numpy.diag(b, 1) + numpy.diag(c, -1))
                inverse = torch.linalg.inv(matrix - z * torch.eye(n, dtype=torch.float64))
                (true,) = torch.autograd.grad((weights * inverse.diagonal().real).sum(), leaf)
                shortcut = -weights * (diagonal.detach() ** 2).real
                yield {
                    "kind": kind,
                    "n": n,
                    "sample": sample,
                    "exact": float((exact - true).norm() / true.norm()),
                    "shortcut": float((shortcut - true).norm() / true.norm()),
                }


def speeds(roofs: dict[str, float]) -> Iterable[dict[str, Any]]:
    """Every backend, method and format in turns, with its share of what the roofs allow."""
    for row in benchmark_mixed_precision(SIZES, REPEATS, METHODS):
        intensity = FLOP_PER_ENTRY[row.method] / bytes_per_entry(row.dtype)
        peak = roofs["fp64" if row.dtype == "complex128" else "fp32"]
        attainable = min(peak, intensity * roofs["bandwidth"])
        yield row.as_dict() | {
            "attainable_flop_per_second": attainable,
            "share": row.flop_per_second / attainable,
        }


def banded_speeds() -> Iterable[dict[str, Any]]:
    """scipy's solve_banded, row by row: for one column, and for all that the diagonal needs.

    All columns are timed in one row of the batch, of which each takes as long.
    """
    for batch, n in SIZES:
        a, b, c, z = drawn("symmetric", batch, n)
        rows = [bands(*row) for row in zip(a, b, c, z, strict=True)]
        unit, identity = numpy.eye(n, 1), numpy.eye(n, dtype=complex)

        def one_column(rows: Any = rows, unit: Any = unit) -> None:
            for row in rows:
                solve_banded((1, 1), row, unit)

        def diagonal(row: Any = rows[0], identity: Any = identity) -> None:
            solve_banded((1, 1), row, identity).diagonal()

        one, whole = median(timed(one_column, 3)), batch * median(timed(diagonal, 3))
        for method, seconds in (("one column", one), ("every column", whole)):
            yield {
                "backend": "solve_banded",
                "method": method,
                "dtype": "complex128",
                "batch": batch,
                "n": n,
                "kernel_seconds": seconds,
                "seconds": seconds,
            }


def measured_roofs() -> dict[str, float]:
    """Bandwidth of a triad over arrays beyond the caches, and FLOP/s of matrix products."""
    peaks = {name: gemm.rate(name, 1024).value.m_as("FLOP/s") for name in gemm.DTYPES}
    return {"bandwidth": bandwidth.triad(2**27).value.m_as("byte/s"), **peaks}


def drawn(kind: str, count: int, n: int) -> Any:
    return INPUT_KINDS[kind](numpy.random.default_rng([SEED, n]), count, n)


def write(name: str, rows: Iterable[dict[str, Any]]) -> None:
    held = list(rows)
    columns = list(held[0])

    def cell(value: object) -> object:
        return float(f"{value:.4g}") if isinstance(value, float) else value

    cells = ([cell(row.get(column, "")) for column in columns] for row in held)
    write_rows(FOLDER / f"resolvent_{name}.csv", columns, cells)
    print(f"{name}: {len(held)} rows", flush=True)


if __name__ == "__main__":
    main()
