"""Data against `tests/second_entries.toml`, where each number was typed a second time."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from calc import constants, models, quantity, runs
from tests.book.rendered import REPOSITORY

ENTRIES: dict[str, Any] = tomllib.loads(
    (REPOSITORY / "tests" / "second_entries.toml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", constants.names())
def test_constants(name: str) -> None:
    assert name in ENTRIES["constants"], "type it from its source into tests/second_entries.toml"
    assert (constants.get(name) / quantity(ENTRIES["constants"][name])).m_as("") == pytest.approx(1)


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


@pytest.mark.parametrize("key", models.names())
def test_what_a_model_s_total_does_not_hold(key: str) -> None:
    model, entered = models.get(key), ENTRIES["models"].get(key)
    assert entered, f"type its context and heads under [models] in tests/second_entries.toml: {key}"
    found = {field: getattr(model, field).m_as("") for field in entered}
    assert found == entered
    assert "context" in entered or not hasattr(model, "context")
