"""The small language model: its gradient, its text, and the changes that must change nothing."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from benchmarks import record_quantization as record
from calc import InputError
from calc.simulation import language


@pytest.fixture(scope="module")
def text() -> language.Text:
    return language.character_names()


@pytest.fixture(scope="module")
def model() -> language.LanguageModel:
    return language.initialized(0)


def test_the_text_is_the_same_everywhere(text: language.Text) -> None:
    names = "".join(language.ALPHABET[place] for place in text.train[:, :-1].ravel())
    digest = "a0471bad54972beed91328ebfe7deeb185505022395c2a17b658b37d842cc3b4"
    assert hashlib.sha256(names.encode()).hexdigest() == digest
    assert (text.train[1:, 0] == text.train[:-1, -1]).all()  # a window begins where one ends
    assert not set(names.split("\n")[1:-1]) & set(_lines(text.held_out)[1:-1])


def _lines(windows: Any) -> list[str]:
    return "".join(language.ALPHABET[place] for place in windows[:, :-1].ravel()).split("\n")


def test_the_gradient_is_that_of_differences(
    text: language.Text, model: language.LanguageModel
) -> None:
    windows = text.train[:2]
    found = model.gradients(windows)
    assert found.keys() == model.weights.keys()
    for name, matrix in model.weights.items():
        place = np.unravel_index(abs(found[name]).argmax(), matrix.shape)
        step = np.zeros_like(matrix)
        step[place] = 1e-5
        above, below = (
            model.with_weights({name: matrix + sign * step}).losses(windows).mean()
            for sign in (1, -1)
        )
        assert found[name][place] == pytest.approx((above - below) / 2e-5, rel=1e-5)


def test_a_position_sees_nothing_of_what_follows(
    text: language.Text, model: language.LanguageModel
) -> None:
    changed = text.train[:1].copy()
    changed[:, -2] = (changed[:, -2] + 1) % len(language.ALPHABET)
    for name in language.MATRICES:
        same, other = (model.inputs(each)[name][:-1] for each in (text.train[:1], changed))
        assert same == pytest.approx(other)


def test_a_few_steps_of_training_lower_the_loss(
    text: language.Text, model: language.LanguageModel
) -> None:
    trained = language.trained(model, text.train, steps=20, seed=0)
    before, after = (each.losses(text.held_out[:32]).mean() for each in (model, trained))
    assert after < before - 0.3


def test_planted_outliers_change_inputs_and_no_output(
    text: language.Text, model: language.LanguageModel
) -> None:
    planted = record.with_outliers(model, 0)
    windows = text.held_out[:8]
    assert planted.losses(windows) == pytest.approx(model.losses(windows))
    largest = abs(planted.inputs(windows)["0.up"]).max(axis=0)
    assert sum(largest > 3 * np.median(largest)) == record.OUTLIERS


@pytest.mark.parametrize("method", ["nearest", "compensated", "scaled", "rotated", "smoothed"])
def test_many_bits_change_nothing_whatever_the_method(
    text: language.Text, model: language.LanguageModel, method: str
) -> None:
    recipe = record.Recipe(method, 14, activations=14 if method == "smoothed" else 16)
    windows = text.train[:8]  # those of the calibration, beyond which inputs would be clipped
    found = record.quantized(model, recipe, windows)
    assert found.losses(windows) == pytest.approx(model.losses(windows), abs=2e-3)


def test_a_rotation_keeps_lengths_and_angles() -> None:
    rotation = record.hadamard(64)
    assert rotation @ rotation.T == pytest.approx(np.eye(64))
    assert abs(rotation) == pytest.approx(np.full((64, 64), 1 / 8))


def test_a_weight_that_is_none_is_refused(model: language.LanguageModel) -> None:
    with pytest.raises(InputError, match="of shape \\(2,\\) is no weight of this model"):
        model.with_weights({"0.up": np.zeros(2)})
