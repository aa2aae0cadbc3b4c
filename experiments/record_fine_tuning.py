"""Measure what fine-tuning gives back after pruning, for the chapter "Small machines".

    OPENBLAS_NUM_THREADS=1 python -m experiments.record_fine_tuning

Writes calc/data/measured/digits_fine_tuned.csv, and beside it how it was measured. It is the sweep
of `record_sweep` with 2:4 and with some epochs after pruning, for every variant alike, so that what
is not pruned has been trained for as long. It holds no times: other programs may run meanwhile.
"""

from __future__ import annotations

from calc.simulation import Experiment, Grid, NeuralNetwork, digits, run_sweep, write_table
from experiments.machine import ask_for_one_thread
from experiments.record_sweep import (
    ACTIVATIONS,
    FOLDER,
    KINDS,
    LAYER_SIZES,
    LEVELS,
    SEEDS,
    SPLIT_SEED,
    TRAINING,
    rounded,
    store_conditions,
    told,
)

COMMAND = "OPENBLAS_NUM_THREADS=1 python -m experiments.record_fine_tuning"
FINE_TUNING = 20
PRECISIONS = ["fp32", "int8"]


def main() -> None:
    ask_for_one_thread(COMMAND)
    network, data = NeuralNetwork(LAYER_SIZES, ACTIVATIONS), digits(seed=SPLIT_SEED)
    experiment = Experiment(network, data, "15 W", repeats=1, fine_tuning=FINE_TUNING, **TRAINING)
    grid = Grid(LEVELS, PRECISIONS, [*KINDS, "2:4"], SEEDS)
    rows = run_sweep(experiment, grid, ["1 MB"], "1 MB", on_progress=told)
    memory = [f"memory_{storage}_bytes" for storage in ("dense", "csr", "bitmask")]
    wanted = ["seed", "kind", "pruning", "precision", "accuracy", *memory]
    write_table(rounded(rows.select(wanted)), FOLDER / "digits_fine_tuned.csv")
    how = "How digits_fine_tuned.csv was measured."
    store_conditions("digits_fine_tuned.toml", how, command=COMMAND, fine_tuning=FINE_TUNING)


if __name__ == "__main__":
    main()
