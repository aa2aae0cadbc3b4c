"""Time of a sweep beside the training and evaluation in it, and the gain of a second worker.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.sweep_speed

36 variants of a network from 5 seeds. All ways are run in turns, and the medians printed with their
ratios; with more than one thread for each product, one worker would use the other's core as well.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.calc_speed import in_turns
from calc.simulation import Experiment, Grid, NeuralNetwork, digits, prune, run_sweep

LEVELS = [0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
PRECISIONS = ["fp32", "fp16", "bf16", "int8"]
SEEDS, REPEATS, BATCH = range(5), 30, 256
TRAINING: dict[str, Any] = {"epochs": 40, "alpha": 0.2, "batch_size": 32}
TURNS = 5


def main() -> None:
    network = NeuralNetwork((64, 256, 256, 10), ("relu", "relu", "softmax"))
    data = digits()

    def sweep(executor: ProcessPoolExecutor | None = None) -> None:
        experiment = Experiment(
            network, data, "15 W", repeats=REPEATS, latency_batch=BATCH, **TRAINING
        )
        grid = Grid(LEVELS, PRECISIONS, seeds=SEEDS)
        rows = run_sweep(experiment, grid, ["1 MB"], "1 MB", executor)
        assert len(rows) == len(SEEDS) * len(LEVELS) * len(PRECISIONS)

    def bare() -> None:
        """Run what a sweep cannot do without: training, accuracy, and the timed passes."""
        batch = data.X_test[:BATCH]
        for seed in SEEDS:
            network.fit(data.X_train, data.y_train, seed=seed, **TRAINING)
            for level in LEVELS:
                pruned = prune(network, level)
                for precision in PRECISIONS:
                    pruned.with_precision(precision).score(data.X_test, data.y_test)
                    for _ in range(1 + REPEATS):
                        pruned.probabilities(batch)

    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(1, mp_context=context) as one,
        ProcessPoolExecutor(2, mp_context=context) as two,
    ):
        for pool, workers in ((one, 1), (two, 2)):
            list(pool.map(time.sleep, [0.5] * workers))  # until all of them are there
        seconds = in_turns(
            {
                "bare": bare,
                "sweep": sweep,
                "one worker": lambda: sweep(one),
                "two workers": lambda: sweep(two),
            },
            TURNS,
        )
    print(f"\nA sweep of {len(LEVELS) * len(PRECISIONS)} variants from {len(SEEDS)} seeds")
    for name, duration in seconds.items():
        print(f"  {name:<24}{duration:8.2f} s")
    print(f"  sweep / bare            {seconds['sweep'] / seconds['bare']:8.2f}")
    print(f"  one / two workers       {seconds['one worker'] / seconds['two workers']:8.2f}")
    print(f"  load of {os.cpu_count()} cores at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
