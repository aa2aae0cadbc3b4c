"""Pruned networks: what is left of them, and what that costs, counted by hand."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from calc import InputError, quantity
from calc.simulation import (
    NeuralNetwork,
    collect_metrics,
    digits,
    estimate_parameter_memory,
    inference_energy,
    measured_latency,
    model_memory,
    prune,
)

LAYERS = (64, 32, 16, 10)


@pytest.fixture(scope="module")
def network() -> NeuralNetwork:
    made = NeuralNetwork(LAYERS, ("relu", "tanh", "softmax"))
    made.initialize(seed=3)
    return made


@pytest.mark.parametrize("level", [0.0, 0.3, 0.5, 0.99])
def test_unstructured_pruning_zeroes_the_smallest(network: NeuralNetwork, level: float) -> None:
    pruned = prune(network, level)
    assert pruned.layer_sizes == LAYERS
    for before, after in zip(network.weights, pruned.weights, strict=True):
        gone = after == 0
        assert gone.sum() == int(level * before.size)
        assert (after[~gone] == before[~gone]).all()
        if gone.any():
            assert abs(before[gone]).max() <= abs(before[~gone]).min()


def test_structured_pruning_takes_neurons_out(network: NeuralNetwork) -> None:
    narrow = prune(network, 0.25, "structured")
    assert narrow.layer_sizes == (64, 24, 12, 10)
    assert [each.shape for each in narrow.weights] == [(64, 24), (24, 12), (12, 10)]
    assert narrow.activations == network.activations
    assert narrow.probabilities(numpy.zeros((2, 64))).shape == (2, 10)


def test_a_neuron_that_does_nothing_can_go(network: NeuralNetwork) -> None:
    weights = [each.copy() for each in network.weights]
    weights[1][:5] = 0  # what nobody listens to
    silent = network.with_weights(weights)
    X = numpy.random.default_rng(0).uniform(size=(20, 64))
    left = prune(silent, 5 / 32, "structured")
    assert left.layer_sizes == (64, 27, 14, 10)
    again = prune(silent, 0.0, "structured")
    assert again.probabilities(X) == pytest.approx(silent.probabilities(X), abs=1e-6)
    first_layer_only = NeuralNetwork((64, 27, 16, 10), silent.activations)
    first_layer_only.weights = [left.weights[0], weights[1][5:], weights[2]]
    first_layer_only.biases = [left.biases[0], *silent.biases[1:]]
    assert first_layer_only.probabilities(X) == pytest.approx(silent.probabilities(X), abs=1e-6)


def test_two_of_each_four_stay(network: NeuralNetwork) -> None:
    pruned = prune(network, 0.5, "2:4")
    assert pruned.layer_sizes == LAYERS
    for before, after in zip(network.weights, pruned.weights, strict=True):
        for neuron in range(before.shape[1]):
            for start in range(0, len(before), 4):
                four, left = before[start : start + 4, neuron], after[start : start + 4, neuron]
                stayed = sorted(range(4), key=lambda index: abs(four[index]))[2:]
                assert [index for index in range(4) if left[index]] == sorted(stayed)
                assert (left[stayed] == four[stayed]).all()
    # Two bits for each weight that stays are a bit for each element: the bitmask's bytes.
    weights, biases = 64 * 32 + 32 * 16 + 160, 58
    assert model_memory(pruned, "bitmask").m_as("byte") == 4 * (weights / 2 + biases) + weights / 8
    untouched = prune(network, 0, "2:4")
    assert all((a == b).all() for a, b in zip(untouched.weights, network.weights, strict=True))


def test_what_is_left_over_of_a_row_stays() -> None:
    odd = NeuralNetwork((6, 3, 2), ("relu", "softmax"))
    odd.initialize(seed=0)
    pruned = prune(odd, 0.5, "2:4")
    assert (pruned.weights[0][4:] == odd.weights[0][4:]).all()
    assert (pruned.weights[1] == odd.weights[1]).all()
    assert (pruned.weights[0][:4] == 0).sum() == 3 * 2


@pytest.mark.parametrize("kind", ["unstructured", "2:4", "structured"])
def test_fine_tuning_mends_and_zeros_stay(kind: str) -> None:
    split = digits()
    trained = NeuralNetwork((64, 32, 10), ("relu", "softmax"))
    work: dict[str, Any] = {"alpha": 0.2, "batch_size": 32, "seed": 0}
    trained.fit(split.X_train, split.y_train, epochs=5, **work)
    pruned = prune(trained, 0.5 if kind == "2:4" else 0.7, kind)
    before = [each.copy() for each in pruned.weights]
    tuned = pruned.with_precision("fp32")
    history = tuned.fine_tune(split.X_train, split.y_train, epochs=3, **work)
    assert len(history.loss) == 3
    assert history.loss[-1] < history.loss[0]
    assert tuned.score(split.X_test, split.y_test) > pruned.score(split.X_test, split.y_test)
    for old, new, left in zip(before, tuned.weights, pruned.weights, strict=True):
        assert (new[old == 0] == 0).all()
        assert (left == old).all()
        assert (new != old).any()
    again = pruned.with_precision("fp32")
    again.fine_tune(split.X_train, split.y_train, epochs=3, **work)
    assert all((a == b).all() for a, b in zip(again.weights, tuned.weights, strict=True))


def test_fine_tuning_needs_a_trained_network() -> None:
    bare = NeuralNetwork((64, 10), ("softmax",))
    with pytest.raises(InputError, match="no weights yet"):
        bare.fine_tune([[0.0] * 64] * 2, [0, 1], 1, 0.1, 1, 0)
    bare.initialize(seed=0)
    with pytest.raises(InputError, match=r"fine_tune\(\): epochs must be a whole number from 1"):
        bare.fine_tune([[0.0] * 64] * 2, [0, 1], 0, 0.1, 1, 0)


def test_pruning_leaves_the_network_alone(network: NeuralNetwork) -> None:
    before = [each.copy() for each in network.weights]
    prune(network, 0.9)
    prune(network, 0.9, "structured")
    for old, new in zip(before, network.weights, strict=True):
        assert (old == new).all()


def test_dense_memory_is_the_estimate_and_does_not_shrink(network: NeuralNetwork) -> None:
    for precision in ("fp32", "fp16", "bf16", "int8"):
        model = prune(network, 0.9).with_precision(precision)
        assert model_memory(model) == estimate_parameter_memory(network, precision)


def test_sparse_memory_counts_nonzeros(network: NeuralNetwork) -> None:
    half = prune(network, 0.5)
    weights, biases, rows = 64 * 32 + 32 * 16 + 160, 58, 64 + 32 + 16
    bitmask = 4 * weights / 2 + weights / 8 + 4 * biases
    assert model_memory(half, "bitmask").m_as("byte") == bitmask
    csr = 6 * weights / 2 + 4 * (rows + 3) + 4 * biases
    assert model_memory(half, "csr").m_as("byte") == csr


def test_the_energy_model_by_hand(network: NeuralNetwork) -> None:
    weights, ends, between = 2720, 64 + 10, 32 + 16
    computing = 8 * weights * (1.31 + 0.38)
    moving = (4 * (weights + 58) + 8 * 4 * ends) * 8 * 8 + 2 * 8 * 4 * between * 14 / 8
    energy = inference_energy(network, batch=8).m_as("pJ")
    assert energy == pytest.approx(computing + moving)
    integers = inference_energy(network.with_precision("int8"), batch=8).m_as("pJ")
    assert integers == pytest.approx(8 * weights * 0.1 + moving / 4)


def test_metrics_of_one_network(network: NeuralNetwork) -> None:
    split = digits()
    row = collect_metrics(network, split, "10 W", repeats=5, batch=7)
    assert row["accuracy"] == network.score(split.X_test, split.y_test)
    assert row["energy_joules"] == pytest.approx(10 * row["latency_seconds"])
    assert row["latency_seconds"] > 0 <= row["latency_spread_seconds"]


def test_a_slower_machine_is_slower_in_proportion(
    network: NeuralNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    latency, spread = measured_latency(network, numpy.zeros((1, 64)), 4, 2.5)
    assert (latency, spread) == (quantity("2.5 s"), quantity("0 s"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"power": "0 W"}, "power must be positive"),
        ({"power": "10 s"}, "power needs a quantity in W"),
        ({"power": 10}, "power needs a unit"),
        ({"power": quantity(float("nan"), "W")}, "power must be positive"),
        ({"latency_multiplier": 0}, "latency_multiplier must be a number above 0"),
        ({"repeats": 0}, "repeats must be a whole number from 1"),
        ({"batch": 2.9}, "batch must be a whole number from 1"),
    ],
)
def test_refusals(network: NeuralNetwork, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        collect_metrics(network, digits(), **{"power": "10 W", **change})


@pytest.mark.parametrize(
    ("level", "kind", "sentence"),
    [
        (-0.1, "unstructured", "a pruning level must be a number from 0"),
        (1, "unstructured", "a pruning level must be below 1"),
        (float("nan"), "structured", "a pruning level must be a number from 0"),
        (0.5, "random", "a kind of pruning must be one of unstructured, 2:4, structured"),
        (0.3, "2:4", "2:4 leaves two weights of each four: its level is 0.5; got 0.3"),
    ],
)
def test_levels_that_are_refused(
    network: NeuralNetwork, level: float, kind: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        prune(network, level, kind)


def test_a_network_without_weights_is_refused() -> None:
    bare = NeuralNetwork(LAYERS, ("relu", "relu", "softmax"))
    for use in (prune, model_memory):
        with pytest.raises(InputError, match="no weights yet"):
            use(bare, *([0.5] if use is prune else []))
    with pytest.raises(InputError, match="a NeuralNetwork is needed"):
        model_memory(object())  # type: ignore[arg-type]
