"""Measure what the chapter "Small machines" says that a precision costs, and store it.

    python -m experiments.record_precision

Writes calc/data/measured/digits_precision.csv, and beside it how it was measured. For each seed and
precision: `accuracy`, in the test, of a network that was trained in the precision; and `changed`,
how many answers of the network that was trained in FP32 change when it computes in the precision.
In the rows of FP32, where nothing is cast, these are the answers that the next seed's network gives
otherwise.
"""

from __future__ import annotations

from typing import Any

from calc.core.records import DATA
from calc.simulation import PRECISIONS, NeuralNetwork, Split, digits
from experiments.machine import describe
from experiments.tables import write_rows

COMMAND = "python -m experiments.record_precision"
LAYER_SIZES, ACTIVATIONS = (64, 32, 10), ("relu", "softmax")
SPLIT_SEED, SEEDS = 0, range(20)
TRAINING: dict[str, Any] = {"epochs": 40, "alpha": 0.1, "batch_size": 32}
COLUMNS = ("seed", "precision", "accuracy", "changed")


def main() -> None:
    folder = DATA / "measured"
    folder.mkdir(exist_ok=True)
    data = digits(seed=SPLIT_SEED)
    networks = [trained(data, seed) for seed in SEEDS]
    written: list[tuple[Any, ...]] = []
    for seed, following in zip(SEEDS, [*networks[1:], networks[0]], strict=True):
        written += rows(data, seed, networks[seed], following)
        print(f"seed {seed} of {len(SEEDS)}", flush=True)
    write_rows(folder / "digits_precision.csv", COLUMNS, written)
    describe(
        folder / "digits_precision.toml",
        "How digits_precision.csv was measured.",
        ("numpy",),
        command=COMMAND,
        layer_sizes=LAYER_SIZES,
        activations=ACTIVATIONS,
        split_seed=SPLIT_SEED,
        seeds=list(SEEDS),
        **TRAINING,
        test_samples=len(data.X_test),
    )


def trained(data: Split, seed: int, precision: str = "fp32") -> NeuralNetwork:
    network = NeuralNetwork(LAYER_SIZES, ACTIVATIONS, precision)
    network.fit(data.X_train, data.y_train, seed=seed, **TRAINING)
    return network


def rows(
    data: Split, seed: int, full: NeuralNetwork, following: NeuralNetwork
) -> list[tuple[Any, ...]]:
    """Return the scores of one seed in each precision; `full` is its network in FP32."""
    answers = full.predict(data.X_test)
    rows = []
    for precision in PRECISIONS:
        plain = precision == "fp32"
        score = (full if plain else trained(data, seed, precision)).score(data.X_test, data.y_test)
        other = following if plain else full.with_precision(precision)
        changed = int((other.predict(data.X_test) != answers).sum())
        rows.append((seed, precision, round(score, 6), changed))
    return rows


if __name__ == "__main__":
    main()
