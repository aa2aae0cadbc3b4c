"""The sweep that the book draws from: a part of it made again, and held against its spread."""

from __future__ import annotations

import tomllib
from typing import Any

import polars
import pytest
from polars import col

from calc.core.records import DATA
from calc.simulation import Experiment, Grid, NeuralNetwork, digits, run_sweep

pytestmark = pytest.mark.xdist_group("stored sweep")  # the sweep is made again once

MEASURED = DATA / "measured"
SETTINGS: dict[str, Any] = tomllib.loads((MEASURED / "digits.toml").read_text(encoding="utf-8"))
FINE_TUNING: dict[str, Any] = tomllib.loads(
    (MEASURED / "digits_fine_tuned.toml").read_text(encoding="utf-8")
)
FINE_TUNED = polars.read_csv(MEASURED / "digits_fine_tuned.csv")
STORED = polars.read_csv(MEASURED / "digits_sweep.csv")
KEY = ["seed", "kind", "pruning", "precision"]
# The same seed on another machine may differ by the rounding of its kernels, so by a few samples.
SAMPLES = 2 / 360


@pytest.fixture(scope="module")
def again() -> polars.DataFrame:
    experiment = Experiment(
        NeuralNetwork(SETTINGS["layer_sizes"], SETTINGS["activations"]),
        digits(SETTINGS["split_seed"]),
        "15 W",
        repeats=10,
        **{name: SETTINGS[name] for name in ("epochs", "alpha", "batch_size", "latency_batch")},
    )
    grid = Grid([0, 0.5, 0.9], ["fp32", "int8"], ["unstructured", "structured"], [0, 1])
    return run_sweep(experiment, grid, ["100 kB"], "100 kB")


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


@pytest.mark.slow
def test_fine_tuning_agrees_within_the_spread() -> None:
    experiment = Experiment(
        NeuralNetwork(FINE_TUNING["layer_sizes"], FINE_TUNING["activations"]),
        digits(FINE_TUNING["split_seed"]),
        "15 W",
        repeats=1,
        **{name: FINE_TUNING[name] for name in ("epochs", "alpha", "batch_size", "fine_tuning")},
    )
    grid = Grid([0.5, 0.9], ["fp32"], ["unstructured", "2:4"])
    rows = run_sweep(experiment, grid, ["100 kB"], "100 kB")
    both = rows.join(FINE_TUNED, on=KEY)
    assert len(both) == 3
    for row in both.iter_rows(named=True):
        assert abs(row["accuracy"] - row["accuracy_right"]) <= 2 * SAMPLES, row


def test_every_variant_was_fine_tuned_and_none_is_worse_for_it_but_by_the_spread() -> None:
    """13 ways to prune and none, in two formats; zeros are as many as without fine-tuning."""
    assert len(FINE_TUNED) == 28 * len(FINE_TUNING["seeds"])
    both = FINE_TUNED.join(STORED, on=KEY)
    memory, before = both["memory_bitmask_bytes"], both["memory_bitmask_bytes_right"]
    assert memory.equals(before, check_names=False)
    accuracy, before = col("accuracy"), col("accuracy_right")
    means = both.group_by(KEY[1:]).agg(
        accuracy.mean(), before.mean(), accuracy.std().alias("spread")
    )
    assert (means["accuracy"] >= means["accuracy_right"] - means["spread"]).all()


def test_the_machine_is_described_without_its_name() -> None:
    wanted = {"measured", "processor", "cores", "system", "python", "numpy", "threads", "command"}
    assert wanted <= set(SETTINGS) & set(FINE_TUNING)
    assert len(STORED) == 52 * len(SETTINGS["seeds"])
    assert not STORED.select(polars.any_horizontal(polars.all().is_null())).to_series().any()
