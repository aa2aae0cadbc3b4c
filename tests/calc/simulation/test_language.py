"""The small language model: its gradient, its text, and the changes that must change nothing."""

from __future__ import annotations

import csv
import hashlib
import tomllib
from typing import Any

import numpy as np
import pytest

from calc import InputError, formats
from calc.core.records import DATA
from calc.simulation import language
from experiments import record_quantization as record


@pytest.fixture(scope="module")
def text() -> language.Text:
    return language.character_names()


@pytest.fixture(scope="module")
def model() -> language.LanguageModel:
    return language.initialized(0)


def test_the_text_is_the_same_everywhere(text: language.Text) -> None:
    names = "".join(language.ALPHABET[code] for code in text.train[:, :-1].ravel())
    digest = "a0471bad54972beed91328ebfe7deeb185505022395c2a17b658b37d842cc3b4"
    assert hashlib.sha256(names.encode()).hexdigest() == digest
    assert (text.train[1:, 0] == text.train[:-1, -1]).all()  # a window begins where one ends
    assert not set(names.split("\n")[1:-1]) & set(_lines(text.held_out)[1:-1])


def _lines(windows: Any) -> list[str]:
    return "".join(language.ALPHABET[code] for code in windows[:, :-1].ravel()).split("\n")


def test_the_gradient_is_that_of_differences(
    text: language.Text, model: language.LanguageModel
) -> None:
    windows = text.train[:2]
    gradients = model.gradients(windows)
    assert gradients.keys() == model.weights.keys()
    for name, matrix in model.weights.items():
        index = np.unravel_index(abs(gradients[name]).argmax(), matrix.shape)
        step = np.zeros_like(matrix)
        step[index] = 1e-5
        above, below = (
            model.with_weights({name: matrix + sign * step}).losses(windows).mean()
            for sign in (1, -1)
        )
        assert gradients[name][index] == pytest.approx((above - below) / 2e-5, rel=1e-5)


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
    quantized = record.quantized(model, recipe, windows)
    assert quantized.losses(windows) == pytest.approx(model.losses(windows), abs=2e-3)


def test_a_rotation_keeps_lengths_and_angles() -> None:
    rotation = formats.hadamard_transform(np.eye(64), 64)
    assert rotation @ rotation.T == pytest.approx(np.eye(64))
    assert abs(rotation) == pytest.approx(np.full((64, 64), 1 / 8))


def stored(seed: int) -> list[dict[str, str]]:
    """The rows of a seed, as they are stored."""
    text = (DATA / "measured" / f"{record.NAME}.csv").read_text(encoding="utf-8")
    return [row for row in csv.DictReader(text.splitlines()) if row["seed"] == str(seed)]


def told(rows: list[tuple[Any, ...]]) -> list[list[str]]:
    """Return what was done in each row, without what came of it."""
    return [[str(value) for value in row[:-2]] for row in rows]


def test_the_stored_rows_are_those_of_the_recipes_and_settings() -> None:
    text = (DATA / "measured" / f"{record.NAME}.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)
    now = {
        "seeds": list(record.SEEDS),
        **record.TRAINING,
        **{f"more_{name}": value for name, value in record.MORE_TRAINING.items()},
        "calibration_windows": record.CALIBRATION_WINDOWS,
        "held_out_windows": record.HELD_OUT_WINDOWS,
        "group": record.GROUP,
        "cache_group": record.CACHE_GROUP,
        "outliers": record.OUTLIERS,
        "outlier_factor": record.OUTLIER_FACTOR,
    }
    assert {name: settings[name] for name in now} == now
    whats = [
        [each.network, each.method, each.weights, each.share, each.activations, each.cache]
        for each in record.RECIPES
    ]
    for seed in record.SEEDS:
        rows = [list(row.values())[1:-2] for row in stored(seed)]
        assert rows == [[str(part) for part in what] for what in whats]


def test_a_short_run_has_the_stored_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps leave other losses, but the order of the rows is already that of their SQNR."""
    monkeypatch.setattr(record, "TRAINING", {"steps": 2, "rate": 1e-2})
    monkeypatch.setattr(record, "HELD_OUT_WINDOWS", 16)
    count = 1 + 2 * len(record.SHARES)  # without quantisation, in eight bits and in four
    rows, kept = record.measured(0, record.RECIPES[:count]), stored(0)[:count]
    assert told(rows) == [list(row.values())[:-2] for row in kept]
    assert np.argsort([row[-1] for row in rows]).tolist() == (
        np.argsort([float(row["sqnr"]) for row in kept]).tolist()
    )
    exact, *in_eight_bits = (row[-2] for row in rows[: 1 + len(record.SHARES)])
    assert in_eight_bits == pytest.approx([exact] * len(record.SHARES), abs=5e-3)


@pytest.mark.nightly
def test_a_seed_run_again_gives_the_stored_rows() -> None:
    """Rows agree but for the last digit, since processors may add in another order.

    Two recipes alone: all of them take minutes, and are left to the command itself.
    """
    few = [index for index, each in enumerate(record.RECIPES) if each.weights == 3][:2]
    rows = record.measured(0, tuple(record.RECIPES[index] for index in few))
    kept = [stored(0)[index] for index in few]
    assert told(rows) == [list(row.values())[:-2] for row in kept]
    for column, index, near in (("loss", -2, 1e-3), ("sqnr", -1, 0.02)):
        wanted = [float(row[column]) for row in kept]
        assert [row[index] for row in rows] == pytest.approx(wanted, rel=1e-3, abs=near)


def test_a_weight_that_is_none_is_refused(model: language.LanguageModel) -> None:
    with pytest.raises(InputError, match="of shape \\(2,\\) is no weight of this model"):
        model.with_weights({"0.up": np.zeros(2)})
