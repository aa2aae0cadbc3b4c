"""Memory of a model: its numbers of elements, times the bytes of a format.

Three modes count what is held at once. `all_outputs` is the usual estimate of such tools: the
parameters, the input and every layer's output. `inference` needs of these only the largest pair of
neighbours, a layer's input and its output. `training` holds parameters, their gradients and the
optimizer's state, and the activations with their gradients. Everything is counted in the one
precision; what int8 needs beside that is a line of its own, `int8_overhead`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from calc.core.arguments import as_list, in_bytes, one_of, whole_bytes, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.units import Quantity
from calc.simulation.low_precision import arithmetic

MODES = ("all_outputs", "inference", "training")
# Numbers that an optimizer keeps for each parameter, beside the parameter and its gradient.
OPTIMIZER_STATES = {"sgd": 0, "momentum": 1, "adam": 2}
SCALE_BYTES = BIAS_BYTES = 4  # of int8: an FP32 scale and a 32-bit bias for each output channel


@runtime_checkable
class SizedModel(Protocol):
    """A model that says its sizes: all that a memory estimate asks of it."""

    @property
    def layer_widths(self) -> Sequence[int]:
        """Numbers of one sample: the input, then the output of each layer."""

    @property
    def parameter_counts(self) -> Sequence[int]:
        """Weights and biases of each layer."""


@dataclass(frozen=True)
class LayerSizes:
    """Layer widths and parameter counts alone, of a model that need not exist.

    >>> LayerSizes.dense(784, 64, 10).parameter_counts
    (50240, 650)
    """

    layer_widths: tuple[int, ...]
    parameter_counts: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, at_least in (("layer_widths", 1), ("parameter_counts", 0)):
            values = as_list(name, getattr(self, name))
            counts = tuple(whole_number(name, count, at_least) for count in values)
            object.__setattr__(self, name, counts)
        if not self.parameter_counts or len(self.layer_widths) != len(self.parameter_counts) + 1:
            raise InputError(
                f"layer_widths must be the input and the output of each layer, one more than"
                f" parameter_counts; got {len(self.layer_widths)} and {len(self.parameter_counts)}"
            )
        if not sum(self.parameter_counts):
            raise InputError("parameter_counts must hold a parameter or more; all are zero")

    @classmethod
    def dense(cls, *widths: int) -> LayerSizes:
        """The sizes of dense layers with biases: input width, then the outputs of each layer."""
        counted = tuple(whole_number("a layer width", width) for width in widths)
        if len(counted) < 2:
            raise InputError(
                f"LayerSizes.dense() needs the inputs and the outputs of at least one layer;"
                f" got {abbreviated(widths)}"
            )
        return cls(
            counted, tuple(inputs * outputs + outputs for inputs, outputs in pairwise(counted))
        )


def sizes(model: object) -> LayerSizes:
    """The sizes that a model says, or that are read off it; never zero for want of a way to ask.

    Asks `layer_widths` and `parameter_counts`; reads a fitted multilayer perceptron of scikit-learn
    and a torch module whose parameters are all in Linear layers. Other torch modules are sized by
    `torch_sizes`, which needs the shape of a sample.

    >>> from calc.simulation import NeuralNetwork
    >>> sizes(NeuralNetwork((784, 64, 10), ("relu", "softmax")))
    LayerSizes(layer_widths=(784, 64, 10), parameter_counts=(50240, 650))
    """
    if isinstance(model, LayerSizes):
        return model
    if isinstance(model, SizedModel):
        return LayerSizes(tuple(model.layer_widths), tuple(model.parameter_counts))
    if hasattr(model, "hidden_layer_sizes"):
        return sklearn_sizes(model)
    if hasattr(model, "named_modules"):
        return torch_sizes(model)
    raise InputError(
        f"cannot size {abbreviated(model)}: it needs layer_widths and parameter_counts, or to be a"
        f" multilayer perceptron of scikit-learn or a torch module"
    )


def sklearn_sizes(perceptron: Any) -> LayerSizes:
    """The sizes of scikit-learn's MLPClassifier or MLPRegressor, which knows them once fitted.

    >>> from sklearn.neural_network import MLPClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> sklearn_sizes(MLPClassifier((8,)).partial_fit(X, y, classes=[0, 1]))
    LayerSizes(layer_widths=(2, 8, 1), parameter_counts=(24, 9))
    """
    if not hasattr(perceptron, "coefs_"):
        raise InputError(
            f"cannot size {abbreviated(perceptron)} before it is fitted:"
            f" scikit-learn learns the widths"
            f" of input and output from the data; give LayerSizes.dense(...) instead"
        )
    weights, biases = perceptron.coefs_, perceptron.intercepts_
    return LayerSizes(
        (weights[0].shape[0], *(matrix.shape[1] for matrix in weights)),
        tuple(w.size + b.size for w, b in zip(weights, biases, strict=True)),
    )


def torch_sizes(module: Any, sample_shape: Sequence[int] | None = None) -> LayerSizes:
    """The sizes of a torch module, whose layers are those of its parts that hold parameters.

    Outputs of parts without parameters, such as ReLU, are taken to overwrite their input. Linear
    layers say their widths; for any other, `sample_shape` is the shape of one sample, and one of
    zeros is sent through the module to see what comes out of each layer.

    >>> import torch  # doctest: +SKIP
    >>> network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU())  # doctest: +SKIP
    >>> torch_sizes(network, (1, 8, 8))  # doctest: +SKIP
    LayerSizes(layer_widths=(64, 144), parameter_counts=(40,))
    """
    layers = [part for part in module.modules() if any(True for _ in part.parameters(False))]
    if not layers:
        raise InputError(f"cannot size {abbreviated(module)}: it has no parameters")
    if sample_shape is None:
        if not all(hasattr(layer, "in_features") for layer in layers):
            raise InputError(
                f"cannot size {abbreviated(module)} without sample_shape, the shape of one sample:"
                f" not all of its layers are Linear; ask torch_sizes(module, sample_shape)"
            )
        widths = [layers[0].in_features, *(layer.out_features for layer in layers)]
        return LayerSizes(tuple(widths), tuple(map(_torch_parameters, layers)))
    return _traced(module, layers, tuple(sample_shape))


def _torch_parameters(layer: Any) -> int:
    return sum(tensor.numel() for tensor in layer.parameters(False))


def _traced(module: Any, layers: list[Any], sample_shape: tuple[int, ...]) -> LayerSizes:
    import torch

    calls: list[tuple[int, int]] = []  # a layer that is used twice has two outputs, one set of
    seen: set[int] = set()  # parameters

    def note(layer: Any, _: object, output: Any) -> None:
        fresh = id(layer) not in seen
        seen.add(id(layer))
        calls.append((output[0].numel(), _torch_parameters(layer) if fresh else 0))

    hooks = [layer.register_forward_hook(note) for layer in layers]
    training = module.training
    like = next(module.parameters())
    sample = torch.zeros((1, *sample_shape), dtype=like.dtype, device=like.device)
    try:
        with torch.no_grad():
            module.eval()(sample)
    except (RuntimeError, TypeError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"cannot size the module: it refuses a sample of shape {sample_shape}: {reason}"
        ) from None
    finally:
        module.train(training)
        for hook in hooks:
            hook.remove()
    return LayerSizes(
        (sample[0].numel(), *(width for width, _ in calls)), tuple(count for _, count in calls)
    )


def estimate_parameter_memory(
    model: object, precision: str = "fp32", mode: str = "all_outputs", optimizer: str = "sgd"
) -> Quantity:
    """Weights and biases; in the mode `training` with their gradients and the optimizer's state.

    >>> estimate_parameter_memory(LayerSizes.dense(784, 64, 10))
    Quantity(203560.0, 'byte')
    """
    copies = copies_of_parameters(mode, optimizer)
    size = arithmetic(precision).element_bytes
    return in_bytes(sum(sizes(model).parameter_counts) * copies * size)


def estimate_activation_memory(
    model: object, batch: int, precision: str = "fp32", mode: str = "all_outputs"
) -> Quantity:
    """Return the memory of a batch of samples and its activations, by the mode.

    >>> estimate_activation_memory(LayerSizes.dense(784, 64, 10), 32)
    Quantity(109824.0, 'byte')
    """
    samples = whole_number("batch", batch)
    size = arithmetic(precision).element_bytes
    return in_bytes(samples * elements_per_sample(model, mode) * size)


def estimate_total_memory(
    model: object,
    batch: int,
    precision: str = "fp32",
    mode: str = "all_outputs",
    optimizer: str = "sgd",
) -> Quantity:
    """Parameters and activations together.

    Equation: M = (k · P + e · B) · b

    k copies of P parameters, by the mode and the optimizer, and e numbers for each of B samples, b
    bytes each.

    >>> model = LayerSizes.dense(784, 64, 10)
    >>> estimate_total_memory(model, 32)
    Quantity(313384.0, 'byte')
    >>> estimate_total_memory(model, 32, mode="training", optimizer="adam")
    Quantity(1033888.0, 'byte')
    """
    parameters = estimate_parameter_memory(model, precision, mode, optimizer)
    activations = estimate_activation_memory(model, batch, precision, mode)
    return in_bytes(whole_bytes(parameters) + whole_bytes(activations))


def int8_overhead(model: object) -> Quantity:
    """Return the memory that int8 needs beside its codes: scales of channels and 32-bit biases.

    Assumes dense layers, which have a channel, and so a bias, for each output. The bias's first
    byte is already counted with the parameters.

    >>> print(int8_overhead(LayerSizes.dense(784, 64, 10)).to("byte"))
    518 byte
    """
    return in_bytes(sum(sizes(model).layer_widths[1:]) * (SCALE_BYTES + BIAS_BYTES - 1))


def elements_per_sample(model: object, mode: str = "all_outputs") -> int:
    """Return the numbers that each sample of a batch adds to what is held, by the mode.

    >>> [elements_per_sample(LayerSizes.dense(784, 64, 10), mode) for mode in MODES]
    [858, 848, 1716]
    """
    widths = sizes(model).layer_widths
    if one_of("mode", mode, MODES) == "inference":
        return max(before + after for before, after in pairwise(widths))
    return sum(widths) * (2 if mode == "training" else 1)


def copies_of_parameters(mode: str, optimizer: str) -> int:
    """Return the numbers held for each parameter: 1, or in training 2 and the optimizer's."""
    states = OPTIMIZER_STATES[one_of("optimizer", optimizer, OPTIMIZER_STATES)]
    return 2 + states if one_of("mode", mode, MODES) == "training" else 1
