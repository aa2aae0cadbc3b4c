"""Measure what the chapter "Small machines" draws from, and store it with how it was measured.

    OPENBLAS_NUM_THREADS=1 python -m experiments.record_sweep

Writes calc/data/measured/digits_*: tables of rows, and beside them a description of the machine.
Nothing else should run meanwhile. With several threads the times of small products vary by half.
"""

from __future__ import annotations

from typing import Any

import polars

from calc.core.records import DATA
from calc.simulation import Experiment, Grid, NeuralNetwork, Split, digits, run_sweep, write_table
from experiments.machine import ask_for_one_thread, describe

FOLDER = DATA / "measured"
COMMAND = "OPENBLAS_NUM_THREADS=1 python -m experiments.record_sweep"
LAYER_SIZES, ACTIVATIONS = (64, 256, 256, 10), ("relu", "relu", "softmax")
SPLIT_SEED, SEEDS = 0, range(10)
TRAINING: dict[str, Any] = {"epochs": 40, "alpha": 0.2, "batch_size": 32}
BATCH, REPEATS = 256, 100
LEVELS = [0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95]
KINDS = ["unstructured", "structured"]
PRECISIONS = ["fp32", "fp16", "bf16", "int8"]
FACTORS = [2**power for power in range(11)]


def main() -> None:
    ask_for_one_thread(COMMAND)
    network, data = NeuralNetwork(LAYER_SIZES, ACTIVATIONS), digits(seed=SPLIT_SEED)
    FOLDER.mkdir(exist_ok=True)
    write_table(rounded(latencies(network, data)), FOLDER / "digits_latency.csv")
    write_table(rounded(sweep(network, data)), FOLDER / "digits_sweep.csv")
    write_table(rounded(scaled_pixel(network, data)), FOLDER / "digits_scaled_pixel.csv")
    store_conditions(
        "digits.toml",
        "How the tables digits_*.csv beside this file were measured. Times are in seconds:\n"
        "medians and interquartile ranges of so many forward passes.",
        command=COMMAND,
        latency_batch=BATCH,
        repeats=REPEATS,
    )


def store_conditions(name: str, heading: str, **conditions: Any) -> None:
    """Write how networks of this sweep were trained and measured, beside their tables."""
    describe(
        FOLDER / name,
        heading,
        ("numpy",),
        threads=1,
        layer_sizes=LAYER_SIZES,
        activations=ACTIVATIONS,
        split_seed=SPLIT_SEED,
        seeds=list(SEEDS),
        **TRAINING,
        **conditions,
    )


def sweep(network: NeuralNetwork, data: Split) -> polars.DataFrame:
    """Every pruning at every precision, from several seeds."""
    experiment = Experiment(network, data, "15 W", repeats=REPEATS, latency_batch=BATCH, **TRAINING)
    grid = Grid(LEVELS, PRECISIONS, KINDS, SEEDS)
    rows = run_sweep(experiment, grid, ["1 MB"], "1 MB", on_progress=told)
    # The chapter chooses its own budgets, and energies are computed, not measured.
    return rows.drop("accepted", "over_1_MB", "energy_joules", "energy_model_joules")


def latencies(network: NeuralNetwork, data: Split) -> polars.DataFrame:
    """Return the times of a forward pass of pruned networks, for one sample and for many."""
    grid = Grid([0, 0.5, 0.75, 0.9], ["fp32"], KINDS, range(5))
    tables = [
        run_sweep(
            Experiment(network, data, "15 W", repeats=repeats, epochs=1, latency_batch=batch),
            grid,
            ["1 MB"],
            "1 MB",
        ).with_columns(polars.lit(batch).alias("batch"))
        for batch, repeats in ((1, 4000), (16, 2000), (BATCH, 400))
    ]
    wanted = ["batch", "seed", "kind", "pruning", "latency_seconds", "latency_spread_seconds"]
    return polars.concat(tables).select(wanted)


def scaled_pixel(network: NeuralNetwork, data: Split) -> polars.DataFrame:
    """One input in other units: times a power of two, and its weights divided by it.

    In floating point that changes nothing at all. The input is the pixel that varies most.
    """
    pixel = int(data.X_train.std(axis=0).argmax())
    rows = []
    for seed in SEEDS:
        network.fit(data.X_train, data.y_train, seed=seed, **TRAINING)
        for factor in FACTORS:
            samples = data.X_test.copy()
            samples[:, pixel] *= factor
            first = network.weights[0].copy()
            first[pixel] /= factor
            changed = network.with_weights([first, *network.weights[1:]])
            rows += [
                {
                    "seed": seed,
                    "factor": factor,
                    "precision": precision,
                    "accuracy": changed.with_precision(precision).score(samples, data.y_test),
                }
                for precision in PRECISIONS
            ]
    return polars.DataFrame(rows)


def rounded(table: polars.DataFrame) -> polars.DataFrame:
    """Six digits are more than a measurement has."""
    return table.with_columns(polars.selectors.float().round_sig_figs(6))


def told(done: int, total: int) -> None:
    print(f"\r{done} of {total}", end="" if done < total else "\n", flush=True)


if __name__ == "__main__":
    main()
