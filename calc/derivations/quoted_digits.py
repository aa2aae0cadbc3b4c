"""Digits that a quoted result carries: no more than the worst of what it was computed from.

Data know their kind and the digits that were published; what a result was computed from, it
carries. An input counts by what hangs on it: where another value of it would change the result by a
tenth as much, as a latency does beside a long transfer, the result may have a digit more than it.

What stands in no line of its own, such as the rows that a loop makes, is left as it is.

    >>> from calc.derivations.numbers_to_know import AnchorLatencies
    >>> precision(AnchorLatencies.dram_per_l1)
    Precision(digits=2, estimated=True)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log, log10
from typing import Any

from calc.core.errors import InputError
from calc.core.records import Count, Datum
from calc.core.units import Quantity
from calc.derivations.traces import Traced, bare, made_of, remade

OF_AN_ESTIMATE = 2
OF_A_MEASUREMENT = 2  # or more, where more were published
OF_A_DATASHEET = 3  # or more: 80 GB, 700 W and 2 TB/s are meant as they stand
EXACT = 17
COUNTS = ("count_", "channels_", "lanes_")
CHANGE = 1.001  # of an input, to see what becomes of a result


@dataclass(frozen=True)
class Precision:
    """Return how many digits are known of a value, and whether an estimate decides them."""

    digits: int = EXACT
    estimated: bool = False


def precision(value: object) -> Precision:
    """Return the digits of a result in a derivation; a number of the data is printed as it is."""
    made = made_of(value)
    if made is None:
        return Precision()
    if made.kind == "datum":
        return Precision(estimated=_kind(value) == "estimate")
    worst = Precision()
    row = value.row_name if isinstance(value, Traced) else ""
    counted = isinstance(value, int) and " " in row  # in a table, as a year is
    if row and not counted:
        for key, datum in made.data.items():
            digits = OF_A_DATASHEET if datum is None else digits_of_data(datum)
            if datum is not None and digits < EXACT:
                digits += _further_digits(value, key)
            if digits < worst.digits:
                worst = Precision(digits, datum is not None and _kind(datum) == "estimate")
    return worst


def digits_of_data(datum: Datum) -> int:
    """Return how many digits of a number of the data count."""
    if _kind(datum) == "estimate":
        return OF_AN_ESTIMATE
    if _kind(datum) == "definition" or _key(datum).startswith(COUNTS):
        return EXACT
    if isinstance(datum, Count):
        return EXACT  # how many layers or cores there are
    if _kind(datum) == "datasheet" and datum.unitless and datum.magnitude == int(datum.magnitude):
        return EXACT
    printed = f"{datum.magnitude:.12g}".partition("e")[0].replace(".", "").lstrip("-0")
    least = OF_A_MEASUREMENT if _kind(datum) == "measured" else OF_A_DATASHEET
    return max(least, len(printed))


def with_digits_of(value: Quantity, *data: Quantity) -> Quantity:
    """A result for which no line stands, as in the rows of a loop, in the digits of its data.

    >>> from calc import runs
    >>> bloom = runs.get("bloom-176b")
    >>> print(with_digits_of(bloom.hfu * 0.75, bloom.hfu))
    38%
    """
    if value.provenance is not None:
        return value
    return rounded(value, min(digits_of_data(datum) for datum in data))


def rounded(value: Quantity, digits: int) -> Quantity:
    """A value with so many significant digits, which is what a reader of them has."""
    return Quantity(float(f"{value.magnitude:.{digits}g}"), value.units)


def _kind(datum: Any) -> str:
    return datum.provenance.kind if datum.provenance else ""


def _key(datum: Datum) -> str:
    return datum.provenance.key if datum.provenance else ""


def _further_digits(value: Any, key: str) -> int:
    """Return how many digits more than an input a result may have, for how little hangs on that."""
    try:
        again = remade(value, key, CHANGE)
        share = abs(
            log((again / bare(value)).m_as("") if isinstance(value, Quantity) else again / value)
        )
    except (AttributeError, ArithmeticError, InputError, TypeError, ValueError):  # below zero
        return 0
    return max(0, floor(-log10(share / log(CHANGE)) + 0.05)) if share else 0
