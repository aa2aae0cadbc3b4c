"""Data against `tests/second_entries.toml`, where each number was typed a second time."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from calc import constants, formats, models, quantity, runs
from calc.core.records import DATA
from tests.book.rendered import REPOSITORY
from tests.rows import each_row

TYPED = "tests/second_entries.toml"
ENTRIES: dict[str, Any] = tomllib.loads((REPOSITORY / TYPED).read_text(encoding="utf-8"))


def test_constants() -> None:
    entered = ENTRIES["constants"]
    with each_row() as row:
        for name in constants.names():
            with row(name):
                value = constants.get(name)
                assert name in entered, (
                    f"type it a second time from its source under [constants] in {TYPED}, in base"
                    f' units: {name} = "… {value.to_base_units().units:~P}"'
                )
                assert (value / quantity(entered[name])).m_as("") == pytest.approx(1), (
                    f"calc/data/constants.toml has {value}, [constants] of {TYPED}"
                    f" {entered[name]}: mend the one that its source does not say"
                )
        for name in entered.keys() - {*constants.names()}:
            with row(name):
                pytest.fail(f"[constants] of {TYPED} has it, calc/data/constants.toml has not")


@pytest.mark.parametrize("key", runs.names())
def test_training_runs(key: str) -> None:
    published = {
        field: record.quantity
        for field, record in runs.get(key).records.items()
        if record.provenance.kind != "unpublished"
    }
    entered = ENTRIES["runs"].get(key, {})
    assert published.keys() == entered.keys(), (
        f"under [runs.{key}] in {TYPED}, type from their source"
        f" {[*published.keys() - entered.keys()]}, and take out"
        f" {[*entered.keys() - published.keys()]}, which calc/data/training_runs.toml lacks"
    )
    for field, value in published.items():
        assert (value / quantity(entered[field])).m_as("") == pytest.approx(1), (
            f"calc/data/training_runs.toml has {value} as {field} of {key}, [runs.{key}] of {TYPED}"
            f" {entered[field]}: mend the one that its source does not say"
        )


def test_what_a_model_s_total_does_not_hold() -> None:
    with each_row() as row:
        for key in models.names():
            with row(key):
                assert_entered(key)


def assert_entered(key: str) -> None:
    model, entered = models.get(key), ENTRIES["models"].get(key)
    assert entered, f"type its context and heads under [models] in {TYPED}: {key} = {{ … }}"
    stored = {field: getattr(model, field) for field in entered}
    assert stored == entered, (
        f"calc/data/models.toml has {stored} of {key}, [models] of {TYPED} {entered}: mend the one"
        " that its source does not say"
    )
    assert "context" in entered or not hasattr(model, "context"), (
        f"type the context of {key} under [models] in {TYPED}: {key} = {{ context = … }}"
    )


def numbers(table: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a table that have a unit, by their names."""
    return {
        name: quantity(each["value"], each["unit"])
        for name, each in table.items()
        if isinstance(each, dict) and "value" in each
    }


def assert_keys(file: str, stored: dict[str, Any]) -> None:
    """Assert that a file of data has the tables that were typed again, and no other."""
    entered = ENTRIES[file]
    assert stored.keys() == entered.keys(), (
        f"under [{file}] in {TYPED}, type from their source {[*stored.keys() - entered.keys()]},"
        f" and take out {[*entered.keys() - stored.keys()]}, which calc/data/{file}.toml lacks"
    )


def assert_same(stored: dict[str, Any], entered: dict[str, Any], table: str) -> None:
    """Assert that a table of data and what was typed again have the same numbers."""
    assert stored.keys() == entered.keys(), (
        f"under [{table}] in {TYPED}, type from their source {[*stored.keys() - entered.keys()]},"
        f" and take out {[*entered.keys() - stored.keys()]}, which calc/data lacks"
    )
    for name, value in stored.items():
        typed = quantity(str(entered[name]))
        assert value.m_as(typed.units) == pytest.approx(typed.m, rel=1e-7), (
            f"calc/data has {value} as {name}, [{table}] of {TYPED} {entered[name]}: mend the one"
            " that its source does not say"
        )


def small(name: str) -> dict[str, Any]:
    """A table of `calc/data` as it is written."""
    return tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))


def test_prices_are_those_of_the_table_that_others_keep() -> None:
    prices = small("api_prices")
    del prices["origin"]
    assert_keys("api_prices", prices)
    with each_row() as row:
        for key, price in prices.items():
            with row(key):
                stored = [price[name] for name in ("read", "cached", "written") if name in price]
                assert stored == pytest.approx([1e6 * each for each in ENTRIES["api_prices"][key]])


def test_what_quantisation_costs_and_in_which_bits_its_name_says() -> None:
    rows = {each.key: each for each in formats.quantized_models()}
    assert_keys("quantization_quality", rows)
    with each_row() as row:
        for key, each in rows.items():
            with row(key):
                before, after, *more = ENTRIES["quantization_quality"][key]
                assert (each.before, each.after) == (before, after)
                stated = {
                    BITS[sign]: int(bits)
                    for sign, bits in re.findall(r"(?<=[-\d])([wagq]|kv)(\d+)", key)
                }
                bits = NO_BITS | stated | (more[0] if more else {})
                assert {name: getattr(each, name) for name in bits} == bits


BITS = {"w": "weights", "q": "weights", "a": "activations", "kv": "cache", "g": "group"}
NO_BITS = {"weights": 16, "activations": 16, "cache": 16, "group": None}


def test_trainings_in_few_bits() -> None:
    scales = {"parameters": ("param", 1e9), "tokens": ("token", 1e12), "gap": ("%", 0.1)}
    trained = small("training_formats")
    stored = {
        key: [
            quantity(table[name].get("value", 0), unit).m_as(unit) / scale
            for name, (unit, scale) in scales.items()
        ]
        for key, table in trained.items()
    }
    assert_keys("training_formats", stored)
    for key, each in stored.items():
        assert each == pytest.approx(ENTRIES["training_formats"][key]), key


def test_engines_and_what_changed_with_their_versions() -> None:
    engines = small("engines")
    entries = ENTRIES["engines"]
    assert_keys("engines", engines)
    with each_row() as row:
        for key, table in engines.items():
            with row(key):
                typed = dict(entries[key])
                assert table.get("classes") == typed.pop("classes", None)
                changes, settings, held = typed.pop("versions", {}), {}, {}
                assert_same(numbers(table), typed, f"engines.{key}")
                assert table.get("versions", {}).keys() == changes.keys()
                for version, fields in table.get("versions", {}).items():
                    settings |= changes[version]
                    held |= numbers(fields)
                    assert_same(held, settings, f"engines.{key}.versions")


def test_software() -> None:
    tables = small("software")
    assert_keys("software", tables)
    with each_row() as row:
        for key, table in tables.items():
            with row(key):
                typed = dict(ENTRIES["software"][key])
                changes = typed.pop("versions", {})
                assert_same(numbers(table), typed, f"software.{key}")
                assert table.get("versions", {}).keys() == changes.keys()
                for version, fields in table.get("versions", {}).items():
                    assert_same(numbers(fields), changes[version], f"software.{key}.versions")
