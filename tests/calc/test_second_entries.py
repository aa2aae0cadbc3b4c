"""Data against `tests/second_entries.toml`, where each number was typed a second time."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from calc import constants, models, quantity, runs
from tests.book.rendered import REPOSITORY
from tests.rows import each_row

ENTRIES: dict[str, Any] = tomllib.loads(
    (REPOSITORY / "tests" / "second_entries.toml").read_text(encoding="utf-8")
)


def test_constants() -> None:
    entered = ENTRIES["constants"]
    with each_row() as row:
        for name in constants.names():
            with row(name):
                assert name in entered, "type it from its source into tests/second_entries.toml"
                ratio = constants.get(name) / quantity(entered[name])
                assert ratio.m_as("") == pytest.approx(1)


@pytest.mark.parametrize("key", runs.names())
def test_training_runs(key: str) -> None:
    published = {
        field: record.quantity
        for field, record in runs.get(key).records.items()
        if record.provenance.kind != "unpublished"
    }
    entered = ENTRIES["runs"].get(key, {})
    assert published.keys() == entered.keys(), (
        f"type its numbers from their source under [runs.{key}] in tests/second_entries.toml"
    )
    for field, value in published.items():
        assert (value / quantity(entered[field])).m_as("") == pytest.approx(1), field


def test_what_a_model_s_total_does_not_hold() -> None:
    with each_row() as row:
        for key in models.names():
            with row(key):
                assert_entered(key)


def assert_entered(key: str) -> None:
    model, entered = models.get(key), ENTRIES["models"].get(key)
    assert entered, f"type its context and heads under [models] in tests/second_entries.toml: {key}"
    found = {field: getattr(model, field) for field in entered}
    assert found == entered
    assert "context" in entered or not hasattr(model, "context")
