"""The hand arithmetic of published numbers is executed, gives their values, and notices a slip."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from calc import InputError
from tests.book.by_hand import arithmetic
from tests.book.entries import ENTRIES

NUMBERS = {name: entry for name, entry in ENTRIES.items() if "value" in entry}
HANDS = {name: entry["hand"] for name, entry in NUMBERS.items() if "hand" in entry}
FOUR_DIGITS = 1e-4
SLIPS = 300
DIGIT = re.compile(r"(?<![\w.{])\d+(?:\.\d+)?")


def in_its_unit(hand: str, entry: dict[str, Any]) -> float:
    """Return the arithmetic's value in the entry's unit; numbers without one are in it already."""
    found, unit = arithmetic(hand, HANDS), entry.get("unit", "")
    bare = found.dimensionless and unit != "%"
    return float(found.m_as("" if bare else unit))


def agrees(name: str, hand: str) -> bool:
    """Return whether the arithmetic gives the value to four digits."""
    entry = NUMBERS[name]
    return in_its_unit(hand, entry) == pytest.approx(entry["value"], rel=FOUR_DIGITS)


def test_hand_arithmetic_gives_the_values() -> None:
    wrong = [name for name, hand in HANDS.items() if not agrees(name, hand)]
    assert not wrong, "hand arithmetic of tests/published.toml gives another value"


def test_each_number_has_hand_arithmetic_or_says_why_not() -> None:
    silent = [
        name
        for name, entry in NUMBERS.items()
        if ("hand" in entry) == bool(entry.get("no_hand", "").strip())
    ]
    assert not silent, "each value of tests/published.toml has either hand or no_hand"
    assert len(HANDS) > 0.93 * len(NUMBERS)


def test_a_slip_of_a_digit_is_noticed() -> None:
    """A first digit changed in the arithmetic, in three hundred drawn entries.

    What is rounded to whole numbers, and the least or most of several, may hide one: few are.
    """
    chance = random.Random(46)
    hidden = []
    for name in chance.sample(sorted(HANDS), SLIPS):
        hand = HANDS[name]
        numbers = [found for found in DIGIT.finditer(hand) if found[0].strip("0.")]
        if not numbers:
            continue  # of names of other entries alone
        found = chance.choice(numbers)
        other = chance.choice([digit for digit in "123456789" if digit != found[0][0]])
        slipped = f"{hand[: found.start()]}{other}{hand[found.start() + 1 :]}"
        try:
            noticed = not agrees(name, slipped)
        except (InputError, ArithmeticError, ValueError):
            noticed = True
        if not noticed:
            hidden.append((name, slipped))
    assert len(hidden) <= 0.02 * SLIPS, hidden
