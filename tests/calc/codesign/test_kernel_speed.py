"""Timings of the kernel with their operations and bytes, and its stored measurements."""

from __future__ import annotations

import csv
import statistics
import tomllib
from typing import Any

import numpy
import pytest

from calc.codesign import (
    INPUT_KINDS,
    benchmark_mixed_precision,
    overflow_onset,
    validate_mixed_precision_accuracy,
)
from calc.codesign.kernel_speed import FLOP_PER_ENTRY
from calc.codesign.resolvent import METHODS
from calc.core.errors import InputError
from calc.core.records import DATA

SETTINGS: dict[str, Any] = tomllib.loads((DATA / "measured/resolvent.toml").read_text("utf-8"))


def stored(name: str) -> list[dict[str, str]]:
    with open(DATA / f"measured/resolvent_{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_way_that_runs_here_is_timed() -> None:
    rows = benchmark_mixed_precision([(2, 300), (3, 1)], repeats=1, methods=METHODS)
    ways = {(row.method, row.dtype, row.n) for row in rows if row.backend == "numpy"}
    assert ("theta_phi", "complex64", 300) not in ways  # it overflows there
    assert ("theta_phi", "complex128", 300) in ways
    assert {(method, "complex64", 1) for method in METHODS} <= ways
    for row in rows:
        entries = row.batch * row.n
        assert row.kernel_seconds > 0
        work = FLOP_PER_ENTRY[row.method] * entries
        assert row.flop_per_second * row.kernel_seconds == pytest.approx(work)
        moved = row.bytes_per_second * row.kernel_seconds / entries
        assert moved == pytest.approx({"complex64": 20, "complex128": 40}[row.dtype])
        assert row.as_dict()["flop_per_second"] == row.flop_per_second
    with pytest.raises(InputError, match="a batch must be a whole number from 1; got 0"):
        benchmark_mixed_precision([(0, 4)])


def test_the_stored_onsets_are_those_of_today() -> None:
    rows = [row for row in stored("onset") if (row["kind"], row["dtype"]) == ("small", "complex64")]
    random = numpy.random.default_rng([SETTINGS["seed"], 1200])
    onset = overflow_onset(*INPUT_KINDS["small"](random, len(rows), 1200))
    assert [int(row["length"]) for row in rows] == onset.length.tolist()
    assert {row["range"] for row in rows} == {"underflow"}
    assert all(int(row["gone"]) > int(row["length"]) for row in rows)


def test_the_stored_errors_are_those_of_today() -> None:
    """Another machine adds in another order, which moves the largest of them by some per cent."""
    mine = {
        (row.kind, str(row.n), row.method, row.dtype): row
        for row in validate_mixed_precision_accuracy(100, [64], seed=SETTINGS["seed"])
    }
    rows = [row for row in stored("accuracy") if row["n"] == "64"]
    assert len(rows) == len(mine)
    for row in rows:
        here = mine[row["kind"], row["n"], row["method"], row["dtype"]]
        assert abs(here.refused - int(row["refused"])) <= 2
        if numpy.isfinite(here.relative):
            assert here.relative == pytest.approx(float(row["relative"]), rel=0.1)


def test_what_was_measured_meets_what_was_asked() -> None:
    kernels = {
        (row["backend"], row["method"], row["dtype"], row["batch"], row["n"]): row
        for row in stored("speed")
    }
    for batch, n, least in (("16", "4096", 20), ("256", "1024", 4)):
        compiled = kernels["numba", "ratio", "complex128", batch, n]
        loop = kernels["torch", "ratio", "complex128", batch, n]
        assert float(loop["kernel_seconds"]) / float(compiled["kernel_seconds"]) >= least
    for row in stored("banded"):
        assert float(row["relative"]) < (1e-11 if "signs" in row["kind"] else 1e-13), row
    for row in stored("gradient"):
        assert float(row["exact"]) < 1e-11
    shortcuts = [float(row["shortcut"]) for row in stored("gradient")]
    assert statistics.median(shortcuts) > 0.25
