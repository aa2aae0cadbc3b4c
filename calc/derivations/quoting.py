"""How chapters quote numbers: `show()` in text, `math()` between dollar signs, `table()` for rows.

What these return reaches Markdown as it is (`_repr_markdown_`); a plain string would be escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calc.core import formatting
from calc.core.errors import InputError
from calc.core.units import Quantity

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
LONGEST_UNBROKEN = 14  # characters: a name of a format or a run, not a phrase


@dataclass(frozen=True)
class Quoted:
    """Markdown that a notebook, Quarto and press print without escaping it."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __str__(self) -> str:
        return self.markdown


def show(
    value: Quantity | float | str, unit: str | None = None, digits: int | None = None
) -> Quoted:
    """A value for the middle of a sentence, in this unit and with so many significant digits.

    Where no unit is asked for it is the one that reads best; where no digits are, there are four,
    but no whole digit is rounded away.

    >>> from calc import quantity
    >>> str(show(quantity("961538 s"), "s", digits=6)).split()
    ['961', '538', 's']
    """
    if isinstance(value, str):
        return Quoted(_escaped(value))
    quantity = value if isinstance(value, Quantity) else Quantity(float(value), "")
    quantity = quantity.to(unit) if unit else quantity
    return Quoted(formatting.prose(quantity, digits, rescaled=not unit))


def words(count: Quantity | float) -> Quoted:
    """A count for the middle of a sentence: a word up to ten, "a million", else as `show` has it.

    >>> print(words(8), words(64), words(10**6))
    eight 64 a million
    """
    number = count.m_as("") if isinstance(count, Quantity) else count
    if number == 10**6:
        return Quoted("a million")
    return Quoted(WORDS[int(number) - 1]) if number in range(1, 11) else show(count)


def approximately(value: Quantity, digits: int | None = None) -> Quoted:
    """An estimate, or what follows from one, marked as such."""
    return Quoted(f"≈\N{NO-BREAK SPACE}{show(value, digits=digits)}")


def math(value: Quantity | float, unit: str | None = None, digits: int | None = None) -> Quoted:
    """The same value as TeX, for formulas.

    >>> from calc import quantity
    >>> print(math(quantity("312 TFLOP/s")))
    312\\,\\text{TFLOP/s}
    """
    quantity = value if isinstance(value, Quantity) else Quantity(float(value), "")
    quantity = quantity.to(unit) if unit else quantity
    return Quoted(formatting.tex(quantity, digits, rescaled=not unit))


def between(low: Quantity, high: Quantity) -> Quoted:
    """A range of two values that read in the same unit: 125–225 pJ."""
    first, _, unit = str(show(low)).rpartition("\N{NO-BREAK SPACE}")
    if not str(show(high)).endswith("\N{NO-BREAK SPACE}" + unit):
        raise InputError(f"between() needs values that read in one unit; got {low} and {high}")
    return Quoted(f"{first}–{show(high)}")


def table(
    header: Sequence[str], rows: Sequence[Sequence[Any]], digits: int | None = None
) -> Quoted:
    """A Markdown table: quantities are shown and stand to the right, text stands to the left.

    A cell of None is a dash, and an estimate of the data files is marked with ≈. Text may hold
    Markdown (a citation, a link), so only what would break the table is escaped. A short name at
    the beginning of a row, such as FP8 E4M3, stays on one line.
    """
    for row in rows:
        if len(row) != len(header):
            raise InputError(f"table() needs {len(header)} cells in each row; got {row!r}")
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    rule = ["--:" if right else ":--" for right in numeric]
    titles, *cells = ([_cell(value, digits) for value in row] for row in [header, *rows])
    for row in cells:
        if len(row[0]) <= LONGEST_UNBROKEN and "-" not in row[0]:  # which would break instead
            row[0] = row[0].replace(" ", "\N{NO-BREAK SPACE}")
    lines = [titles, rule, *cells]
    return Quoted("\n".join("| " + " | ".join(line) + " |" for line in lines))


def _cell(value: Any, digits: int | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, Quoted):
        return value.markdown
    if isinstance(value, str):
        return re.sub(r"[ \n]+", " ", re.sub(r"(?<!\\)\|", r"\\|", value)).strip(" \n")
    if isinstance(value, Quantity) and value.provenance and value.provenance.kind == "estimate":
        return approximately(value, digits).markdown
    return show(value, digits=None if isinstance(value, int) else digits).markdown


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in "\\`*_{}[]<>()#+-.!|~$^@&:\"'" else c for c in text)
