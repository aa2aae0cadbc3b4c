"""The stored measurement of what a precision costs: complete, and what it would be today."""

from __future__ import annotations

import statistics

import pytest

from calc.simulation import PRECISIONS, digits
from experiments import record_precision


def stored(column: str, precision: str) -> list[float]:
    from calc.derivations.small_machines import PrecisionCost

    return [float(row[column]) for row in PrecisionCost.rows if row["precision"] == precision]


def test_the_stored_file_says_how_it_was_measured() -> None:
    from calc.derivations.small_machines import PrecisionCost

    measured = PrecisionCost.measured
    assert measured["command"] == record_precision.COMMAND
    assert measured["seeds"] == list(record_precision.SEEDS)
    assert tuple(measured["layer_sizes"]) == record_precision.LAYER_SIZES
    assert {name: measured[name] for name in record_precision.TRAINING} == record_precision.TRAINING
    for name in ("machine", "python", "numpy", "measured", "split_seed", "test_samples"):
        assert measured[name] not in ("", None)
    for name in PRECISIONS:
        assert len(stored("accuracy", name)) == len(measured["seeds"])


@pytest.mark.nightly
def test_a_seed_measured_again_lies_within_the_spread() -> None:
    data = digits(seed=record_precision.SPLIT_SEED)
    first, second = (record_precision.trained(data, seed) for seed in (0, 1))
    for _, precision, accuracy, changed in record_precision.rows(data, 0, first, second):
        accuracies = stored("accuracy", precision)
        spread = statistics.stdev(accuracies)
        assert abs(accuracy - accuracies[0]) <= spread
        assert abs(accuracy - statistics.mean(accuracies)) <= 4 * spread
        stored_changes = stored("changed", precision)
        assert abs(changed - stored_changes[0]) <= max(2, statistics.stdev(stored_changes))
