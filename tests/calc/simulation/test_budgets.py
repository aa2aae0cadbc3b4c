"""Flags of several budgets, and their keys."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

from calc import InputError, quantity
from calc.simulation import memory_violations


def test_each_budget_has_its_flag() -> None:
    flags = memory_violations("12 MB", ["10 MB", "12 MB", "0.5 GiB"])
    assert flags == {"over_10_MB": True, "over_12_MB": False, "over_0.5_GiB": False}


def test_keys_do_not_depend_on_how_a_budget_is_written() -> None:
    forms: list[Any] = ["10 MB", "10.0 MB", "1e1 MB", quantity(10, "MB"), quantity(10.0, "MB")]
    assert {key for form in forms for key in memory_violations("1 MB", [form])} == {"over_10_MB"}
    assert list(memory_violations("1 MB", ["1234567 byte"])) == ["over_1234567_byte"]


def test_a_memory_that_is_no_number_is_over_every_budget() -> None:
    assert memory_violations(quantity(math.nan, "MB"), ["10 MB", "1 EB"]) == {
        "over_10_MB": True,
        "over_1_EB": True,
    }


def test_arrays() -> None:
    memories = quantity(numpy.array([1.0, 10.0, 11.0, math.nan]), "MB")
    flags = memory_violations(memories, ["10 MB"])["over_10_MB"]
    assert flags.tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("budgets", "sentence"),
    [
        (["10 MB", "10.0 MB"], "each budget may be given once; '10.0 MB' is as large as '10 MB'"),
        (["1 MB", "1000 kB"], "each budget may be given once"),
        (["0 MB"], "a budget must be positive and finite"),
        (["-1 MB"], "a budget must be positive and finite"),
        ([quantity(math.nan, "MB")], "a budget must be positive and finite"),
        ([quantity(math.inf, "MB")], "a budget must be positive and finite"),
        ([10], "a budget needs a unit"),
        (["10 s"], "a budget must be memory"),
        ("10 MB", "budgets must be a list; got '10 MB'"),
    ],
)
def test_refusals(budgets: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        memory_violations("1 MB", budgets)
