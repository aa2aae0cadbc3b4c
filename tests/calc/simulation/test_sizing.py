"""Memory of models in whole bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from calc import InputError
from calc.simulation import (
    MODES,
    PRECISIONS,
    LayerSizes,
    NeuralNetwork,
    elements_per_sample,
    estimate_activation_memory,
    estimate_parameter_memory,
    estimate_total_memory,
    int8_overhead,
    sizes,
    torch_sizes,
)

NETWORK = NeuralNetwork((784, 64, 10), ("relu", "softmax"))


def test_the_reference_case_line_by_line() -> None:
    """784 · 64 + 64, 64 · 10 + 10; 784 · 32, 64 · 32, 10 · 32; four bytes each."""
    assert NETWORK.parameter_counts == (50_240, 650)
    assert sum(NETWORK.parameter_counts) == 50_890
    assert [32 * width for width in NETWORK.layer_widths] == [25_088, 2_048, 320]
    assert 32 * elements_per_sample(NETWORK) == 27_456
    assert estimate_parameter_memory(NETWORK).m_as("byte") == 203_560
    assert estimate_activation_memory(NETWORK, 32).m_as("byte") == 109_824
    total = estimate_total_memory(NETWORK, 32)
    assert total.m_as("byte") == 313_384
    assert f"{total.m_as('MiB'):.4f} {total.m_as('MB'):.4f}" == "0.2989 0.3134"


TOTALS = {
    ("all_outputs", "sgd"): (313_384, 156_692, 156_692, 78_346),
    ("inference", "sgd"): (312_104, 156_052, 156_052, 78_026),
    ("training", "adam"): (1_033_888, 516_944, 516_944, 258_472),
    ("training", "momentum"): (830_328, 415_164, 415_164, 207_582),  # a copy of 50 890 fewer
    ("training", "sgd"): (626_768, 313_384, 313_384, 156_692),
}


@pytest.mark.parametrize(("mode", "optimizer"), TOTALS)
def test_totals_by_mode_and_precision(mode: str, optimizer: str) -> None:
    for precision, expected in zip(PRECISIONS, TOTALS[mode, optimizer], strict=True):
        total = estimate_total_memory(NETWORK, 32, precision, mode, optimizer)
        assert total.m_as("byte") == expected
        assert str(total.units) == "byte"


def test_the_overhead_of_int8_is_a_line_of_its_own() -> None:
    assert int8_overhead(NETWORK).m_as("byte") == 74 * 4 + 74 * 3


def test_every_way_to_say_the_same_sizes() -> None:
    class Told:
        layer_widths = np.array([784, 64, 10])
        parameter_counts = np.array([50_240, 650])

    perceptron = MLPClassifier((64,), max_iter=1)
    with pytest.warns(ConvergenceWarning):
        perceptron.fit(np.eye(10, 784), np.arange(10))
    for model in (NETWORK, Told(), perceptron, LayerSizes.dense(784, 64, 10)):
        assert sizes(model) == LayerSizes((784, 64, 10), (50_240, 650))


def test_torch_modules() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    nn = torch.nn
    dense = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    assert sizes(dense) == torch_sizes(dense, (784,)) == LayerSizes((784, 64, 10), (50_240, 650))
    images = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
    assert torch_sizes(images, (1, 8, 8)) == LayerSizes((64, 144, 10), (40, 1450))
    assert images.training
    for module, sentence in ((images, "without sample_shape"), (nn.ReLU(), "it has no parameters")):
        with pytest.raises(InputError, match=sentence):
            sizes(module)
    with pytest.raises(InputError, match=r"refuses a sample of shape \(3, 8, 8\)"):
        torch_sizes(images, (3, 8, 8))


class Empty:
    layer_widths = (3, 4)
    parameter_counts = (0,)


class Short:
    layer_widths = (3,)
    parameter_counts = (12,)


class Fraction:
    layer_widths = (3, 4.5)
    parameter_counts = (12,)


@pytest.mark.parametrize("model", [None, 3, object(), "model", Empty(), Short(), Fraction()])
def test_a_model_that_cannot_be_sized_is_an_error_and_never_zero(model: object) -> None:
    with pytest.raises(InputError):
        estimate_total_memory(model, 32)


def test_what_is_said_of_them() -> None:
    with pytest.raises(InputError, match="cannot size 3: it needs layer_widths and parameter_c"):
        sizes(3)
    with pytest.raises(InputError, match="before it is fitted: scikit-learn learns the widths"):
        sizes(MLPClassifier())
    with pytest.raises(InputError, match=r"mode must be one of all_outputs, .*; got 'train'"):
        estimate_total_memory(NETWORK, 32, mode="train")
    with pytest.raises(
        InputError, match="optimizer must be one of sgd, momentum, adam; got 'lion'"
    ):
        estimate_total_memory(NETWORK, 32, mode=MODES[2], optimizer="lion")


@pytest.mark.parametrize("batch", [0, -1, 2.9, float("nan"), float("inf"), True, "32", None])
def test_batches_that_are_none(batch: Any) -> None:
    with pytest.raises(InputError, match="batch must be a whole number from 1; got"):
        estimate_activation_memory(NETWORK, batch)


class Part:
    """A module that lists its parts and parameters as those of torch do."""

    def __init__(self, *parts: Part, held: int = 0, **widths: int) -> None:
        self.parts, self.held = parts, held
        vars(self).update(widths)

    def modules(self) -> list[Part]:
        return [self, *self.parts]

    def parameters(self, recurse: bool = True) -> list[np.ndarray[Any, Any]]:
        return [np.zeros(self.held)] if self.held else []


def test_widths_are_those_of_the_layers_where_all_are_linear() -> None:
    linear = Part(held=650, in_features=64, out_features=10)
    image = Part(held=40)
    for layers in ((linear, image), (image, linear), (image,)):
        with pytest.raises(InputError, match="without sample_shape"):
            torch_sizes(Part(*layers))
    with pytest.raises(InputError, match="it has no parameters"):
        torch_sizes(Part(Part()))
