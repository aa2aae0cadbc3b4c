"""The front against its definition, row by row, on thousands of random tables."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy
import polars
import pytest
from hypothesis import given, settings, strategies as st

from calc import InputError
from calc.simulation import pareto_frontier
from tests.draws import draws

NAMES = ("a", "b", "c", "d")
VALUES = st.sampled_from([0, 1, 2, 3]) | st.floats(-5, 5) | st.sampled_from([math.inf, -math.inf])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, str]]:
    names = NAMES[: draw(st.integers(1, 4))]
    values = st.fixed_dictionaries({name: VALUES.map(float) for name in names})
    rows = draw(st.lists(values, min_size=1, max_size=12))
    directions = {name: draw(st.sampled_from(["min", "max"])) for name in names}
    return [{"row": number, **row} for number, row in enumerate(rows)], directions


def beats(row: dict[str, Any], other: dict[str, Any], objectives: dict[str, str]) -> bool:
    better = [row[name] - other[name] if row[name] != other[name] else 0.0 for name in objectives]
    signed = [
        gain if direction == "max" else -gain
        for gain, direction in zip(better, objectives.values(), strict=True)
    ]
    return all(gain >= 0 for gain in signed) and any(gain > 0 for gain in signed)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(table=tables())
def test_the_front_is_what_nothing_beats(table: Any) -> None:
    rows, objectives = table
    front = pareto_frontier(rows, objectives)
    expected = [
        row["row"] for row in rows if not any(beats(other, row, objectives) for other in rows)
    ]
    assert front["row"].to_list() == expected


@settings(deadline=None)
@given(table=tables())
def test_margins_of_nothing_change_nothing(table: Any) -> None:
    rows, objectives = table
    if len(objectives) > 1:
        plain = pareto_frontier(rows, objectives)
        assert pareto_frontier(rows, objectives, dict.fromkeys("a", 0.0)).equals(plain)


@settings(deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "value": st.integers(0, 12).map(lambda each: each / 4),
                "margin": st.sampled_from([0.0, 0.25, 0.6, 1.0]),
                "cost": st.integers(0, 6),
            }
        ),
        min_size=1,
        max_size=12,
    )
)
def test_what_a_margin_removes_is_matched_for_less(rows: list[dict[str, Any]]) -> None:
    """Whatever is gone, a row that stays costs no more and is behind by its margin at most."""
    numbered = [{"row": number, **row} for number, row in enumerate(rows)]
    front = pareto_frontier(numbered, {"value": "max", "cost": "min"}, {"value": "margin"})
    left = front.rows(named=True)

    def beats(row: dict[str, Any], other: dict[str, Any]) -> bool:
        no_worse = row["cost"] <= other["cost"] and row["value"] >= other["value"] - other["margin"]
        ahead = row["cost"] < other["cost"] or row["value"] > other["value"] + other["margin"]
        return no_worse and ahead

    for row in numbered:
        stays = row["row"] in front["row"]
        assert stays != any(beats(other, row) for other in left)


def test_a_front_does_not_believe_every_digit() -> None:
    """Steps of less than the margin add up: the third is two of them above the first, and stays."""
    rows = [{"name": n, "accuracy": 0.9 + n / 100, "bytes": n} for n in range(4)]
    wanted = {"accuracy": "max", "bytes": "min"}
    front = pareto_frontier(rows, wanted, {"accuracy": 0.015})
    assert front["name"].to_list() == [0, 2]
    assert len(pareto_frontier(rows, wanted)) == 4


@pytest.mark.parametrize(
    ("margins", "sentence"),
    [
        ({"c": 1}, "margins must name objectives, and leave one without"),
        ({"a": 1, "b": 1}, "margins must name objectives, and leave one without"),
        ({"a": -1}, "the margin of a must be a number from 0"),
        ({"a": math.nan}, "the margin of a must be a number from 0"),
        ({"a": "d"}, "there is no column 'd'"),
        ({"a": "low"}, "the margins of column low must be from 0"),
        (["a"], "margins must name objectives"),
    ],
)
def test_margins_that_are_refused(margins: Any, sentence: str) -> None:
    rows = [{"a": 1.0, "b": 2.0, "low": -1.0}]
    with pytest.raises(InputError, match=sentence):
        pareto_frontier(rows, {"a": "max", "b": "min"}, margins)


@pytest.mark.slow
def test_thousands_of_random_tables() -> None:
    random = numpy.random.default_rng(0)
    for _ in range(draws(3000)):
        size, columns = random.integers(1, 30), random.integers(1, 5)
        values = random.integers(0, random.integers(2, 12), (size, columns)) / 7
        signs = random.choice([-1, 1], columns)
        objectives = {
            NAMES[i]: "max" if sign > 0 else "min" for i, sign in enumerate(signs.tolist())
        }
        gains = (values[:, None] - values[None]) * signs  # of the first row over the second
        beaten = ((gains >= 0).all(axis=2) & (gains > 0).any(axis=2)).any(axis=0)
        frame = polars.DataFrame({NAMES[i]: values[:, i] for i in range(columns)})
        assert pareto_frontier(frame, objectives).equals(frame.filter(~beaten))


def test_numbers_beyond_the_precision_of_floats_are_told_apart() -> None:
    rows = [{"a": 2**62}, {"a": 2**62 + 1}]
    assert pareto_frontier(rows, {"a": "min"}).rows() == [(2**62,)]


@pytest.mark.parametrize("directions", list(product(["min", "max"], repeat=2)))
def test_an_empty_table_keeps_its_columns(directions: tuple[str, str]) -> None:
    full = polars.DataFrame({"name": ["x"], "a": [1.0], "b": [2]})
    nothing = full.filter(polars.col("a") > 5)  # as when no row is accepted
    front = pareto_frontier(nothing, dict(zip("ab", directions, strict=True)))
    assert front.schema == full.schema
    assert len(front) == 0


def test_the_given_table_is_left_alone() -> None:
    table = polars.DataFrame({"a": [3, 1, 2]})
    assert pareto_frontier(table, {"a": "min"})["a"].to_list() == [1]
    assert table["a"].to_list() == [3, 1, 2]


@pytest.mark.parametrize(
    ("rows", "objectives", "sentence"),
    [
        ({"a": [1.0, math.nan]}, {"a": "min"}, "a has no number in 1 of 2 rows.*row 1"),
        ({"a": [None, 1]}, {"a": "min"}, "a has no number in 1 of 2 rows.*row 0"),
        ({"a": [1]}, {"b": "min"}, "there is no column 'b'; the table has a"),
        ({"a": ["x"]}, {"a": "min"}, "column a must hold numbers"),
        ({"a": [1]}, {"a": "up"}, "the direction of a must be one of max, min; got 'up'"),
        ({"a": [1]}, {}, "objectives must name columns and their directions"),
        ({"a": [1]}, ["a"], "objectives must name columns and their directions"),
        (5, {"a": "min"}, "a table is needed"),
    ],
)
def test_refusals(rows: Any, objectives: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        pareto_frontier(rows, objectives)
