"""The sweep that the book draws from: a part of it made again, and held against its spread."""

from __future__ import annotations

import tomllib
from typing import Any

import polars
import pytest
from polars import col

from calc.core.records import DATA
from calc.simulation import NeuralNetwork, digits, run_sweep

pytestmark = pytest.mark.xdist_group("stored sweep")  # the sweep is made again once

MEASURED = DATA / "measured"
SETTINGS: dict[str, Any] = tomllib.loads((MEASURED / "digits.toml").read_text(encoding="utf-8"))
STORED = polars.read_csv(MEASURED / "digits_sweep.csv")
KEY = ["seed", "kind", "pruning", "precision"]
# The same seed on another machine may differ by the rounding of its kernels, so by a few samples.
SAMPLES = 2 / 360


@pytest.fixture(scope="module")
def again() -> polars.DataFrame:
    return run_sweep(
        NeuralNetwork(SETTINGS["layer_sizes"], SETTINGS["activations"]),
        digits(SETTINGS["split_seed"]),
        [0, 0.5, 0.9],
        ["fp32", "int8"],
        ["100 kB"],
        "100 kB",
        "15 W",
        kinds=["unstructured", "structured"],
        seeds=[0, 1],
        repeats=10,
        latency_batch=SETTINGS["latency_batch"],
        **{name: SETTINGS[name] for name in ("epochs", "alpha", "batch_size")},
    )


@pytest.mark.slow
def test_a_small_sweep_agrees_within_the_spread(again: polars.DataFrame) -> None:
    spread = STORED.group_by(KEY[1:]).agg(
        col("accuracy").mean().alias("mean"), col("accuracy").std().alias("std")
    )
    rows = again.join(spread, on=KEY[1:])
    assert len(rows) == 20
    for row in rows.iter_rows(named=True):
        assert abs(row["accuracy"] - row["mean"]) <= 4 * row["std"] + SAMPLES, row


@pytest.mark.slow
def test_memory_is_the_stored_one(again: polars.DataFrame) -> None:
    both = again.join(STORED, on=KEY)
    assert len(both) == 20
    for name in ("memory_dense_bytes", "memory_csr_bytes", "memory_bitmask_bytes"):
        assert both[name].equals(both[f"{name}_right"], check_names=False)


def test_the_machine_is_described_without_its_name() -> None:
    wanted = {"measured", "processor", "cores", "system", "python", "numpy", "threads", "command"}
    assert wanted <= set(SETTINGS)
    assert len(STORED) == 52 * len(SETTINGS["seeds"])
    assert not STORED.select(polars.any_horizontal(polars.all().is_null())).to_series().any()
