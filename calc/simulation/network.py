"""A small network in NumPy: dense layers, trained by gradient descent, in any precision."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from calc.core.arguments import as_list, number, whole_number
from calc.core.arrays import Counts, Single, Truths
from calc.core.errors import InputError, abbreviated
from calc.simulation.low_precision import Arithmetic, arithmetic
from calc.simulation.samples import checked_labels, checked_samples, several_classes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class History:
    """Mean loss and share of right answers in each epoch, both while it was being trained on."""

    loss: tuple[float, ...]
    accuracy: tuple[float, ...]


def trained(
    caller: str,
    epoch: Callable[[], tuple[float, float]],
    epochs: int,
    precision: str,
    alpha: float,
    on_epoch: Callable[[History], None] | None,
) -> History:
    """Run so many epochs and return their losses and accuracies; `on_epoch` is told of each."""
    history = History((), ())
    for count in range(1, whole_number(f"{caller}: epochs", epochs) + 1):
        loss, accuracy = epoch()
        if not math.isfinite(loss):
            raise InputError(
                f"{caller}: the loss was no finite number any more in epoch {count} in {precision};"
                f" a smaller alpha than {alpha:g} may help"
            )
        history = History((*history.loss, loss), (*history.accuracy, accuracy))
        if on_epoch:
            on_epoch(history)
    return history


class _Work(NamedTuple):
    """Checked arguments of a training: its caller's name, samples, labels and settings."""

    caller: str
    samples: Single
    labels: Counts
    epochs: int
    alpha: float
    batch_size: int


# What a layer does with its sums, and the slope of that, from its output.
ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (lambda sums: numpy.maximum(sums, 0), lambda output: output > 0),
    "tanh": (numpy.tanh, lambda output: 1 - output**2),
    "sigmoid": (
        lambda sums: (1 + numpy.tanh(sums / 2)) / 2,  # 1 / (1 + e^−x), which would overflow
        lambda output: output * (1 - output),
    ),
    "identity": (lambda sums: sums, numpy.ones_like),
}


class NeuralNetwork:
    """Dense layers, the last of them a softmax over classes, trained by gradient descent.

    `layer_sizes` are the inputs and then the outputs of each layer; `activations` one word for each
    layer: relu, tanh, sigmoid or identity, and softmax for the last. Weights are FP32. `precision`
    says in which format the layers compute; where it is not FP32, training keeps FP32 weights,
    rounds them on their way into each layer, and takes the gradient as if nothing were rounded.

    >>> network = NeuralNetwork((2, 8, 2), ("tanh", "softmax"))
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> history = network.fit(X, [0, 1, 1, 0], epochs=500, alpha=0.5, batch_size=4, seed=0)
    >>> network.predict(X).tolist(), round(history.accuracy[-1], 2)
    ([0, 1, 1, 0], 1.0)
    """

    def __init__(
        self, layer_sizes: Sequence[int], activations: Sequence[str], precision: str = "fp32"
    ) -> None:
        self.layer_sizes = tuple(
            whole_number("NeuralNetwork(): a layer size", size)
            for size in as_list("NeuralNetwork(): layer_sizes", layer_sizes)
        )
        if len(self.layer_sizes) < 2:
            raise InputError(
                f"NeuralNetwork(): layer_sizes needs inputs and at least one layer;"
                f" got {abbreviated(layer_sizes)}"
            )
        self.activations = _checked_activations(activations, len(self.layer_sizes) - 1)
        self.precision = precision
        self.weights: list[Single] = []
        self.biases: list[Single] = []

    @property
    def precision(self) -> str:
        """The name of the format in which the layers compute."""
        return self._arithmetic.name

    @precision.setter
    def precision(self, name: str) -> None:
        self._arithmetic: Arithmetic = arithmetic(name)

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """Numbers of one sample: the input, then the output of each layer."""
        return self.layer_sizes

    @property
    def parameter_counts(self) -> tuple[int, ...]:
        """Weights and biases of each layer."""
        return tuple(inputs * outputs + outputs for inputs, outputs in pairwise(self.layer_sizes))

    def initialize(self, seed: int) -> None:
        """New weights of the variance 2 / inputs, from the seed; biases of zero.

        Source: he2015delving
        """
        random = numpy.random.default_rng(whole_number("seed", seed, at_least=0))
        self.weights, self.biases = [], []
        for inputs, outputs in pairwise(self.layer_sizes):
            spread = math.sqrt(2 / inputs)
            weights = spread * random.standard_normal((inputs, outputs))
            self.weights.append(weights.astype(numpy.float32))
            self.biases.append(numpy.zeros(outputs, dtype=numpy.float32))

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        epochs: int,
        alpha: float,
        batch_size: int,
        seed: int,
        on_epoch: Callable[[History], None] | None = None,
    ) -> History:
        """Train anew from the seed with step length `alpha`; `on_epoch` is told of each epoch.

        The seed decides the first weights and the order of the samples, so the same call gives the
        same network. A batch that is larger than the data is all of them; the last may be short.
        """
        work = self._work("fit()", X, y, epochs, alpha, batch_size)
        self.initialize(seed)
        return self._descend(work, seed, [], on_epoch)

    def fine_tune(
        self, X: ArrayLike, y: ArrayLike, epochs: int, alpha: float, batch_size: int, seed: int
    ) -> History:
        """Train on from the weights that are there; those that pruning set to zero stay zero.

        Source: han2015learning
        """
        checked_network(self)
        work = self._work("fine_tune()", X, y, epochs, alpha, batch_size)
        whole_number("seed", seed, at_least=0)
        return self._descend(work, seed, [weights == 0 for weights in self.weights], None)

    def _work(
        self, caller: str, X: ArrayLike, y: ArrayLike, epochs: int, alpha: float, batch_size: int
    ) -> _Work:
        samples = checked_samples(X, self.layer_sizes[0])
        labels = checked_labels(y, len(samples), self.layer_sizes[-1])
        several_classes(labels)
        return _Work(
            caller,
            samples,
            labels,
            whole_number(f"{caller}: epochs", epochs),
            number(f"{caller}: alpha", alpha, above=0.0),
            whole_number(f"{caller}: batch_size", batch_size),
        )

    def _descend(
        self,
        work: _Work,
        seed: int,
        zeros: Sequence[Truths],
        on_epoch: Callable[[History], None] | None,
    ) -> History:
        """Epochs of steps downhill; of each layer, the weights in `zeros` are held at zero."""
        samples, alpha = work.samples, work.alpha
        order = numpy.random.default_rng([seed, 1])  # another stream than that of the weights

        def epoch() -> tuple[float, float]:
            loss, right = 0.0, 0
            shuffled = order.permutation(len(samples))
            for start in range(0, len(samples), work.batch_size):
                batch = shuffled[start : start + work.batch_size]
                with numpy.errstate(over="ignore", invalid="ignore"):  # the loss tells, below
                    batch_loss, batch_right = self._step(samples[batch], work.labels[batch], alpha)
                for weights, zero in zip(self.weights, zeros, strict=False):
                    weights[zero] = 0
                loss, right = loss + batch_loss, right + batch_right
            return loss / len(samples), right / len(samples)

        return trained(work.caller, epoch, work.epochs, self.precision.upper(), alpha, on_epoch)

    def probabilities(self, X: ArrayLike) -> Single:
        """Return the probability of each class, for each sample."""
        return self._forward(checked_samples(X, self.layer_sizes[0]))[-1]

    def predict(self, X: ArrayLike) -> Counts:
        """Return the most probable class of each sample."""
        classes: Counts = self.probabilities(X).argmax(axis=1)
        return classes

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The share of samples whose most probable class is their label."""
        predicted = self.predict(X)
        return float((predicted == checked_labels(y, len(predicted), self.layer_sizes[-1])).mean())

    def with_weights(self, weights: Sequence[ArrayLike]) -> NeuralNetwork:
        """A copy with other weights of the same shapes, as after pruning; biases are kept."""
        changed = copy.deepcopy(self)
        arrays = as_list("weights", weights)
        changed.weights = [numpy.array(matrix, dtype=numpy.float32) for matrix in arrays]
        if list(map(numpy.shape, changed.weights)) != list(map(numpy.shape, self.weights)):
            raise InputError("with_weights() needs a matrix for each layer, of the same shapes")
        return changed

    def with_precision(self, name: str) -> NeuralNetwork:
        """A copy that computes in another precision, from the same FP32 weights."""
        changed = copy.deepcopy(self)
        changed.precision = name
        return changed

    def _forward(self, samples: Single) -> list[Single]:
        """The input and the output of every layer, as they are kept."""
        checked_network(self)
        outputs = [self._arithmetic.activations(samples)]
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for (weights, biases), name in zip(hidden, self.activations, strict=False):
            sums = self._arithmetic.linear(outputs[-1], weights, biases)
            outputs.append(self._arithmetic.activations(ACTIVATIONS[name][0](sums)))
        return [*outputs, _softmax(self._arithmetic.linear(outputs[-1], *last))]

    def _step(self, samples: Single, labels: Counts, alpha: float) -> tuple[float, int]:
        """One step downhill; the loss of the batch, and how many of it were right before."""
        *outputs, probabilities = self._forward(samples)
        rows = numpy.arange(len(labels))
        likelihood = numpy.maximum(probabilities[rows, labels], numpy.finfo(numpy.float32).tiny)
        slope = probabilities.copy()  # of the loss, by the sums of the last layer
        slope[rows, labels] -= 1
        slope /= len(labels)
        for layer in reversed(range(len(self.weights))):
            gradient = outputs[layer].T @ slope, slope.sum(axis=0)
            if layer:
                into = ACTIVATIONS[self.activations[layer - 1]][1](outputs[layer])
                slope = slope @ self._arithmetic.weights(self.weights[layer]).T * into
            self.weights[layer] -= numpy.float32(alpha) * gradient[0]
            self.biases[layer] -= numpy.float32(alpha) * gradient[1]
        right = int((probabilities.argmax(axis=1) == labels).sum())
        return float(-numpy.log(likelihood).sum()), right


def checked_network(model: object) -> None:
    """Refuse whatever is no network of this package with weights, which alone can be measured."""
    if not isinstance(model, NeuralNetwork):
        raise InputError(
            f"a NeuralNetwork is needed, whose weights are known; got {abbreviated(model)}"
        )
    if not model.weights:
        raise InputError("the network has no weights yet; fit() or initialize() it first")


def _softmax(sums: Single) -> Single:
    powers = numpy.exp(sums - sums.max(axis=1, keepdims=True))
    shares: Single = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _checked_activations(activations: Sequence[str], layers: int) -> tuple[str, ...]:
    words = tuple(as_list("NeuralNetwork(): activations", activations))
    are_known = all(isinstance(word, str) and word in ACTIVATIONS for word in words[:-1])
    if len(words) != layers or words[-1] != "softmax" or not are_known:
        raise InputError(
            f"NeuralNetwork(): activations needs a word for each of the {layers} layers, of"
            f" {', '.join(ACTIVATIONS)}, and softmax for the last; got {abbreviated(activations)}"
        )
    return words
