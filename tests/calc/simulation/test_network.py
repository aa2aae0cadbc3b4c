"""The NumPy network: its gradient, its seeds, what it learns, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from calc import InputError
from calc.simulation import PRECISIONS, History, NeuralNetwork, digits

SPLIT = digits(0)


def small(precision: str = "fp32") -> NeuralNetwork:
    return NeuralNetwork((64, 16, 10), ("relu", "softmax"), precision)


def fit(network: NeuralNetwork, **changed: Any) -> History:
    arguments = {
        "X": SPLIT.X_train[:200],
        "y": SPLIT.y_train[:200],
        "epochs": 3,
        "alpha": 0.1,
        "batch_size": 32,
        "seed": 0,
    }
    return network.fit(**(arguments | changed))


@pytest.mark.parametrize("hidden", ["relu", "tanh", "sigmoid", "identity"])
def test_the_step_follows_the_gradient(hidden: str) -> None:
    """Against differences of the loss, computed anew in FP64."""
    network = NeuralNetwork((4, 5, 3), (hidden, "softmax"))
    random = np.random.default_rng(3)
    X, y = random.standard_normal((6, 4)), np.array([0, 1, 2, 0, 1, 2])
    functions = {
        "relu": lambda z: np.maximum(z, 0),
        "tanh": np.tanh,
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
        "identity": lambda z: z,
    }

    def loss(weights: list[Any]) -> float:
        sums = functions[hidden](X @ weights[0]) @ weights[1]
        likelihood = np.exp(sums)[np.arange(6), y] / np.exp(sums).sum(axis=1)
        return float(-np.log(likelihood).mean())

    network.initialize(0)
    before = [each.astype(float) for each in network.weights]
    alpha = 0.5
    history = network.fit(X, y, epochs=1, alpha=alpha, batch_size=6, seed=0)
    assert history.loss[0] == pytest.approx(loss(before), rel=1e-5)
    for layer, weights in enumerate(before):
        for index in np.ndindex(weights.shape):
            nudged = [each.copy() for each in before]
            nudged[layer][index] += 1e-6
            slope = (loss(nudged) - loss(before)) / 1e-6
            step = float(network.weights[layer][index]) - weights[index]
            assert step == pytest.approx(-alpha * slope, abs=2e-5)


def test_a_seed_makes_the_same_network() -> None:
    first, second, other = small(), small(), small()
    assert fit(first) == fit(second) != fit(other, seed=1)
    assert fit(first) == fit(second)  # trained anew, not on
    for mine, same, different in zip(first.weights, second.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, same)
        assert (mine != different).any()


def test_it_learns_the_digits() -> None:
    network = NeuralNetwork((64, 32, 10), ("relu", "softmax"))
    history = fit(network, X=SPLIT.X_train, y=SPLIT.y_train, epochs=40)
    assert len(history.loss) == len(history.accuracy) == 40
    assert history.loss[-1] < 0.1 * history.loss[0]
    assert history.accuracy[-1] > 0.97
    assert network.score(SPLIT.X_test, SPLIT.y_test) > 0.94
    probabilities = network.probabilities(SPLIT.X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_trains_in_every_precision(precision: str) -> None:
    network = small(precision)
    history = fit(network, epochs=20)
    assert network.precision == precision
    assert history.loss[-1] < history.loss[0]
    same = network.with_precision("fp32")
    assert same.precision == "fp32"
    assert (network.probabilities(SPLIT.X_test) != same.probabilities(SPLIT.X_test)).any() == (
        precision != "fp32"
    )
    copied = pickle.loads(pickle.dumps(network))
    np.testing.assert_array_equal(
        copied.probabilities(SPLIT.X_test), network.probabilities(SPLIT.X_test)
    )


def test_a_copy_with_other_weights_leaves_the_first_alone() -> None:
    network = small()
    fit(network)
    pruned = network.with_weights([np.zeros_like(each) for each in network.weights])
    assert set(pruned.predict(SPLIT.X_test)) == {pruned.biases[-1].argmax()}
    assert len(set(network.predict(SPLIT.X_test))) > 5
    with pytest.raises(InputError, match="a matrix for each layer, of the same shapes"):
        network.with_weights(network.weights[:1])


def test_it_tells_of_each_epoch() -> None:
    histories: list[History] = []
    history = fit(small(), on_epoch=histories.append)
    assert [len(each.loss) for each in histories] == [1, 2, 3]
    assert histories[-1] == history


def test_the_digits_are_split_by_the_seed() -> None:
    same, other = digits(0), digits(1)
    assert len(SPLIT.X_train) + len(SPLIT.X_test) == 1797
    assert len(SPLIT.X_test) == 360
    np.testing.assert_array_equal(SPLIT.X_test, same.X_test)
    assert (SPLIT.y_test != other.y_test).any()
    assert SPLIT.X_train.max() == 1.0
    for fraction in (0, 1, -0.1, float("nan"), "half"):
        with pytest.raises(InputError, match="test_fraction must be"):
            digits(0, fraction)  # type: ignore[arg-type]


X, Y = SPLIT.X_train[:20], SPLIT.y_train[:20]
BLANK = X.copy()
BLANK[3, 5] = np.nan
WRONG = {
    "no samples": ({"X": X[:0], "y": Y[:0]}, "X must hold at least one sample; got none"),
    "NaN in X": ({"X": BLANK, "y": Y}, "X must be finite; row 3 holds a NaN or an infinity"),
    "words": ({"X": [["a"] * 64], "y": Y}, "X must be rows of numbers"),
    "width": ({"X": X[:, :5], "y": Y}, r"X must be rows of 64 numbers each; got shape \(20, 5\)"),
    "one row": ({"X": X[0], "y": Y}, "X must be rows of 64 numbers each"),
    "one class": ({"X": X, "y": Y * 0 + 4}, "at least two classes to learn; every label is 4"),
    "label too large": ({"X": X, "y": Y + 1}, "labels from 0 to 9, .*; got 10 in row"),
    "label negative": ({"X": X, "y": -Y}, "labels from 0 to 9"),
    "labels missing": ({"X": X, "y": Y[1:]}, r"for each of the 20 samples; got shape \(19,\)"),
    "labels float": ({"X": X, "y": Y + 0.5}, "y must hold whole numbers"),
    "labels NaN": ({"X": X, "y": Y * np.nan}, "y must hold whole numbers"),
    "batch 0": ({"batch_size": 0}, "batch_size must be a whole number from 1; got 0"),
    "batch negative": ({"batch_size": -3}, "batch_size must be a whole number from 1"),
    "batch 2.9": ({"batch_size": 2.9}, "batch_size must be a whole number from 1; got 2.9"),
    "batch NaN": ({"batch_size": float("nan")}, "batch_size must be a whole number"),
    "batch True": ({"batch_size": True}, "batch_size must be a whole number"),
    "epochs": ({"epochs": 0}, "epochs must be a whole number from 1"),
    "seed": ({"seed": -1}, "seed must be a whole number from 0"),
    "alpha 0": ({"alpha": 0}, "alpha must be a number above 0; got 0"),
    "alpha NaN": ({"alpha": float("nan")}, "alpha must be a number above 0; got nan"),
    "alpha text": ({"alpha": "fast"}, "alpha must be a number above 0"),
    "diverging": ({"alpha": 1e30}, "no finite number any more in epoch 1 in FP32"),
}


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    changed, sentence = WRONG[case]
    with pytest.raises(InputError, match=sentence):
        fit(small(), **changed)


@pytest.mark.parametrize(
    ("sizes", "activations"),
    [
        ((64,), ()),
        ((64, 0), ("softmax",)),
        ((64, 2.5), ("softmax",)),
        ((64, 8, 10), ("softmax",)),
        ((64, 8, 10), ("relu", "relu")),
        ((64, 8, 10), ("gelu", "softmax")),
        ((64, 8, 10), ("softmax", "softmax")),
    ],
)
def test_networks_that_cannot_be(sizes: Any, activations: Any) -> None:
    with pytest.raises(InputError, match=r"^NeuralNetwork\(\): "):
        NeuralNetwork(sizes, activations)


def test_a_network_without_weights_says_so() -> None:
    with pytest.raises(InputError, match=r"no weights yet; fit\(\) or initialize\(\) it first"):
        small().predict(X)
