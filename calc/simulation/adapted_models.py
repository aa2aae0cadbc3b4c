"""Other libraries' models with the methods of ours: fit, predict, and another precision."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy

from calc.core.arguments import number, whole_number
from calc.core.arrays import Counts, Single
from calc.core.errors import InputError, abbreviated
from calc.simulation.low_precision import arithmetic
from calc.simulation.network import History, NeuralNetwork, trained
from calc.simulation.samples import checked_labels, checked_samples, several_classes
from calc.simulation.sizing import LayerSizes, torch_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@runtime_checkable
class TrainableModel(Protocol):
    """Methods that a constrained run needs of a model, beside its sizes."""

    precision: str

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
        """Train anew from the seed."""

    def predict(self, X: ArrayLike) -> Counts:
        """Return the most probable class of each sample."""

    def with_precision(self, name: str) -> Self:
        """A copy that computes in another precision."""


class _Sized:
    """The sizes of a network that another library made."""

    _sizes: LayerSizes

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """Numbers of one sample: the input, then the output of each layer."""
        return self._sizes.layer_widths

    @property
    def parameter_counts(self) -> tuple[int, ...]:
        """Weights and biases of each layer."""
        return self._sizes.parameter_counts


class SklearnNetwork(_Sized):
    """A classifier of scikit-learn, MLPClassifier, with the methods of NeuralNetwork.

    scikit-learn trains in its own arithmetic, with the solver, sgd or adam, that the classifier was
    made with. The precision is that of the finished network.

    >>> from sklearn.neural_network import MLPClassifier
    >>> model = SklearnNetwork(MLPClassifier((32,)), inputs=64, classes=10)
    >>> model.parameter_counts
    (2080, 330)
    """

    def __init__(self, perceptron: Any, inputs: int, classes: int, precision: str = "fp32") -> None:
        self.perceptron = perceptron
        hidden = numpy.atleast_1d(perceptron.hidden_layer_sizes).tolist()
        self.classes = whole_number("classes", classes, at_least=2)
        outputs = 1 if classes == 2 else classes  # of two classes it computes one probability
        self._sizes = LayerSizes.dense(whole_number("inputs", inputs), *hidden, outputs)
        self.precision = arithmetic(precision).name
        self._trained: NeuralNetwork | None = None

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
        """Train a fresh copy of the classifier, an epoch at a time; accuracy is that after it."""
        from sklearn.base import clone

        samples, labels = _checked(self, X, y, self.classes)
        settings = {
            "learning_rate_init": number("fit(): alpha", alpha, above=0.0),
            "batch_size": min(whole_number("fit(): batch_size", batch_size), len(samples)),
            "random_state": whole_number("seed", seed, at_least=0),
        }
        perceptron = clone(self.perceptron).set_params(**settings)
        if not hasattr(perceptron, "partial_fit"):
            raise InputError(
                f"scikit-learn trains by batches with the solvers sgd and adam alone;"
                f" this classifier has {perceptron.solver}"
            )

        def epoch() -> tuple[float, float]:
            perceptron.partial_fit(samples, labels, classes=range(self.classes))
            return perceptron.loss_, float((perceptron.predict(samples) == labels).mean())

        history = trained("fit()", epoch, epochs, "FP32", alpha, on_epoch)
        self.perceptron = perceptron
        self._trained = _dense(perceptron, self.precision)
        return history

    def predict(self, X: ArrayLike) -> Counts:
        """Return the most probable class of each sample, computed in the model's precision."""
        if self._trained is None:
            raise InputError("the network has no weights yet; fit() it first")
        return self._trained.predict(X)

    def with_precision(self, name: str) -> SklearnNetwork:
        """A copy that computes in another precision, from the same weights."""
        changed = copy.copy(self)
        changed.precision = arithmetic(name).name
        if self._trained is not None:
            changed._trained = self._trained.with_precision(name)
        return changed


class TorchNetwork(_Sized):
    """A torch module that ends in one number for each class, with the methods of NeuralNetwork.

    It is trained in FP32 by stochastic gradient descent on the cross entropy; in FP16 and
    BF16 the finished module computes as torch does. INT8 is refused: torch has kernels for it on
    some machines only. `sample_shape` is needed unless all layers are Linear.
    """

    def __init__(
        self, module: Any, sample_shape: Sequence[int] | None = None, precision: str = "fp32"
    ) -> None:
        self.module = module
        self._sizes = torch_sizes(module, sample_shape)
        self.sample_shape = tuple(sample_shape or self._sizes.layer_widths[:1])
        self.precision = _torch_precision(precision)

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
        """Train the module anew from the seed; torch's own random numbers are left as they were."""
        import torch

        samples, labels = _checked(self, X, y, self.layer_widths[-1])
        step = number("fit(): alpha", alpha, above=0.0)
        batch = whole_number("fit(): batch_size", batch_size)
        X_all = torch.from_numpy(samples).reshape(-1, *self.sample_shape)
        y_all = torch.from_numpy(labels)
        optimizer = torch.optim.SGD(self.module.parameters(), lr=step)

        def epoch() -> tuple[float, float]:
            loss, right = 0.0, 0
            for rows in torch.randperm(len(y_all)).split(batch):
                sums = self.module(X_all[rows])
                mean = torch.nn.functional.cross_entropy(sums, y_all[rows])
                optimizer.zero_grad()
                mean.backward()
                optimizer.step()
                loss += float(mean.detach()) * len(rows)
                right += int((sums.argmax(1) == y_all[rows]).sum())
            return loss / len(y_all), right / len(y_all)

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(whole_number("seed", seed, at_least=0))
            self.module.apply(lambda part: getattr(part, "reset_parameters", lambda: None)())
            self.module.train()
            history = trained("fit()", epoch, epochs, "FP32", alpha, on_epoch)
        self.module.eval()
        return history

    def predict(self, X: ArrayLike) -> Counts:
        """Return the most probable class of each sample, computed in the model's precision."""
        import torch

        samples = torch.from_numpy(checked_samples(X, self.layer_widths[0]))
        dtype = {"fp32": torch.float32, "fp16": torch.float16}.get(self.precision, torch.bfloat16)
        module = copy.deepcopy(self.module).to(dtype).eval()
        with torch.no_grad():
            sums = module(samples.reshape(-1, *self.sample_shape).to(dtype))
        classes: Counts = sums.argmax(1).numpy()
        return classes

    def with_precision(self, name: str) -> TorchNetwork:
        """A copy that computes in another precision, from the same weights."""
        changed = copy.copy(self)
        changed.module = copy.deepcopy(self.module)
        changed.precision = _torch_precision(name)
        return changed


def trainable(model: Any, inputs: int, classes: int) -> TrainableModel:
    """The model itself, or what adapts it."""
    if isinstance(model, TrainableModel):
        return model
    if hasattr(model, "hidden_layer_sizes") and hasattr(model, "predict_proba"):
        return SklearnNetwork(model, inputs, classes)
    if hasattr(model, "named_modules"):
        return TorchNetwork(model)
    raise InputError(
        f"cannot train {abbreviated(model)}: it needs fit, predict and with_precision, or to be"
        f" scikit-learn's MLPClassifier or a torch module"
    )


def _checked(model: _Sized, X: ArrayLike, y: ArrayLike, classes: int) -> tuple[Single, Counts]:
    samples = checked_samples(X, model.layer_widths[0])
    labels = checked_labels(y, len(samples), classes)
    several_classes(labels)
    return samples, labels


def _dense(perceptron: Any, precision: str) -> NeuralNetwork:
    """scikit-learn's weights in a network of ours."""
    hidden = {"logistic": "sigmoid"}.get(perceptron.activation, perceptron.activation)
    weights, biases = list(perceptron.coefs_), list(perceptron.intercepts_)
    if perceptron.out_activation_ == "logistic":  # 1 / (1 + e^−x) is the softmax of 0 and x
        weights[-1] = numpy.pad(weights[-1], ((0, 0), (1, 0)))
        biases[-1] = numpy.pad(biases[-1], (1, 0))
    layer_sizes = [len(weights[0]), *map(len, biases)]
    network = NeuralNetwork(layer_sizes, [hidden] * (len(weights) - 1) + ["softmax"], precision)
    network.weights = list(map(_float32, weights))
    network.biases = list(map(_float32, biases))
    return network


def _float32(values: ArrayLike) -> Single:
    return numpy.asarray(values, dtype=numpy.float32)


def _torch_precision(name: str) -> str:
    if (precision := arithmetic(name).name) == "int8":
        raise InputError(
            "INT8 of a torch module is not simulated; the same layers as a NeuralNetwork are"
        )
    return precision
