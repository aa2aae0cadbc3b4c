"""Functions that quote: `show()` in text, `math()` between dollar signs, `table()` for rows.

What these return reaches Markdown as it is (`_repr_markdown_`); a plain string would be escaped.
Markdown carries the name of what is quoted, in the attributes of a span, and beside it goes where
the number comes from: a page can tell a reader who points at it. As text there is the number alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from types import ModuleType
from typing import Any, TypeAlias

from calc.core import formatting
from calc.core.errors import InputError
from calc.core.units import Quantity
from calc.derivations.quoted_digits import precision, rounded
from calc.derivations.traces import Traced, bare

WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
LONGEST_UNBROKEN = 14  # characters: a name of a format or a run, not a phrase
ARITHMETIC = re.compile("[=:]")  # beside its result, which alone tells nothing new
DASH = "–"  # of a cell that has no value
# A power of ten belongs to its number: it is no unit of a column.
NUMBER_AND_UNIT = re.compile(r".*[\d⁰¹²³⁴-⁹](\N{NO-BREAK SPACE}[^\W\d][^\N{NO-BREAK SPACE}]*|%)")

CARDS = "application/vnd.press.cards+json"  # the MIME type of what a page tells of its numbers


@dataclass(frozen=True)
class Quoted:
    """Markdown that a notebook, Quarto and press print without escaping it."""

    markdown: str
    name: str = ""  # of the derivation's attribute, as in "DecodeStep.peak"
    value: str = ""  # which `calc.quantity` reads
    of: Any = None  # what is quoted, which knows how it was made

    def _repr_markdown_(self) -> str:
        if not self.name:
            return self.markdown
        value = f' value="{self.value}"' if self.value else ""
        return f'[{self.markdown}]{{.q key="{self.name}"{value}}}'

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {CARDS: _cards().cards(self.of)} if self.name else {}

    def __str__(self) -> str:
        return self.markdown


Cell: TypeAlias = Quantity | float | str | Quoted | None
Row: TypeAlias = tuple[Cell, ...]
Rows: TypeAlias = Sequence[Row]


@dataclass(frozen=True)
class QuotedTable(Quoted):
    """A table: where its rows have a name its first cell carries the mark for all of it."""

    header: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()

    def _repr_markdown_(self) -> str:
        if not self.name:
            return self.markdown
        return self.markdown.replace("| ", f'| []{{.q key="{self.name}"}}', 1)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        if not self.name:
            return {}
        return {CARDS: _cards().cell_cards(self.name, self.header, self.rows)}


def show(
    value: Quantity | float | str, unit: str | None = None, digits: int | None = None
) -> Quoted:
    """A value for the middle of a sentence, in this unit and with so many significant digits.

    Where no unit is asked for it is the one that reads best; where no digits are, there are four,
    but no whole digit is rounded away. A result has no more digits than its worst input carries.

    >>> from calc import quantity
    >>> str(show(quantity("961538 s"), "s", digits=6)).split()
    ['961', '538', 's']
    """
    return _named(_prose(value, unit, digits), value)


def words(count: Quantity | float) -> Quoted:
    """A count for the middle of a sentence: a word up to ten, "a million", else as `show` has it.

    >>> print(words(0), words(8), words(64), words(10**6))
    none eight 64 a million
    """
    number = bare(count).m_as("") if isinstance(count, Quantity) else count
    if number == 10**6:
        text = "a million"
    else:
        text = WORDS[int(number)] if number in range(11) else _prose(count)
    return _named(text, count)


def _named(markdown: str, value: Quantity | float | str) -> Quoted:
    """Return the text with the name of the row that the value is."""
    row = value.row_name if isinstance(value, Traced) else ""
    name = "" if " " in row else row  # of a part of a row
    exact = f"{value:.6g}" if name and not isinstance(value, str) else ""
    return Quoted(markdown, name, exact, value)


def _prose(
    value: Quantity | float | str, unit: str | None = None, digits: int | None = None
) -> str:
    if isinstance(value, str):
        return _escaped(value)
    quantity = bare(value) if isinstance(value, Quantity) else Quantity(float(value), "")
    quantity = quantity.to(unit) if unit else quantity
    return formatting.prose(quantity, _carried(value, digits), rescaled=not unit)


def percent(share: float) -> Quoted:
    """Return a share in whole per cent, for a cell of a table."""
    return Quoted(f"{share:.0%}", of=share)


def approximately(value: Quantity | float, digits: int | None = None) -> Quoted:
    """An estimate, or what follows from one, marked as such."""
    marked = f"≈\N{NO-BREAK SPACE}{_prose(value, digits=digits)}"
    return _named(marked, value)


def within(
    estimate: Quantity | float, answer: Quantity | float, digits: int | None = None
) -> Quoted:
    """Return how far a hand estimate lies from the computed answer, above or below.

    It is judged as it is shown, with so many digits where the text does not show all of them: a
    reader who sees 1.3 does not take it for exactly four thirds.

    >>> from calc import quantity
    >>> print(within(quantity("40 ms"), quantity("41.8 ms")))
    within a factor of 1.1
    >>> print(within(4 / 3, 4 / 3, digits=2))
    within a factor of 1.1
    """
    estimate, answer = bare(estimate), bare(answer)
    seen = Quantity(1, "") * estimate
    if digits is not None:
        seen = rounded(seen, digits)
    ratio = (seen / answer).m_as("")
    factor = max(ratio, 1 / ratio)
    if factor < 1 + 1e-9:
        return Quoted("exact")
    if factor < 1.005:
        return Quoted("within half a percent")
    return Quoted(f"within a factor of {ceil(10 * factor) / 10:.1f}")


def math(value: Quantity | float, unit: str | None = None, digits: int | None = None) -> Quoted:
    """Return the same value as TeX, for formulas.

    >>> from calc import quantity
    >>> print(math(quantity("312 TFLOP/s")))
    312\\,\\text{TFLOP/s}
    """
    quantity = bare(value) if isinstance(value, Quantity) else Quantity(float(value), "")
    quantity = quantity.to(unit) if unit else quantity
    return Quoted(formatting.tex(quantity, _carried(value, digits), rescaled=not unit))


def _carried(value: object, digits: int | None) -> int | None:
    """The digits that are asked for, or fewer where the inputs of a result carry no more."""
    most = precision(value).digits
    return most if most < (digits or formatting.DIGITS) else digits


def worked(*rows: Quantity | float | str) -> Quoted:
    r"""The arithmetic by hand of the results among these rows, as their cards have it.

    >>> from calc.derivations.roofline_chapter import A100Roofline
    >>> str(worked(A100Roofline.peak, A100Roofline.gemm_bound)).split()[:6]
    ['*By', 'hand:*', '1365', 'FLOP/byte', '\\>', '153\\.0']
    """
    steps = "; ".join(filter(ARITHMETIC.search, map(_cards().by_hand, rows)))
    return Quoted(f"*By hand:* {_escaped(steps)}." if steps else "")


def between(low: Quantity, high: Quantity, digits: int | None = None) -> Quoted:
    """A range of two values that read in the same unit: 125–225 pJ."""
    first, _, unit = _prose(bare(low), digits=digits).rpartition("\N{NO-BREAK SPACE}")
    last = _prose(bare(high), digits=digits)
    if not last.endswith("\N{NO-BREAK SPACE}" + unit):
        raise InputError(f"between() needs values that read in one unit; got {low} and {high}")
    return Quoted(f"{first}–{last}")


def table(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], digits: int | None = None
) -> QuotedTable:
    """A Markdown table: quantities are shown and stand to the right, text stands to the left.

    A unit that all numbers of a column share stands in its head. A cell of None is a dash, and an
    estimate of the data files is marked with ≈. Text may hold Markdown (a citation, a link), so
    only what would break the table is escaped. A short name at the beginning of a row, such as
    FP8 E4M3, stays on one line.
    """
    for row in rows:
        if len(row) != len(header):
            raise InputError(f"table() needs {len(header)} cells in each row; got {row!r}")
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    titles, *cells = ([_cell(value, digits) for value in row] for row in [header, *rows])
    for i, right in enumerate(numeric):
        if right:
            titles[i] = _unit_in_head(titles[i], [row for row in cells if row[i] != DASH], i)
    for row in cells:
        if len(row[0]) <= LONGEST_UNBROKEN and "-" not in row[0]:  # which would break instead
            row[0] = row[0].replace(" ", "\N{NO-BREAK SPACE}")
    # Where a line is long, as the mark of the rows can make it, Quarto gives columns these widths.
    widths = [max(2, *map(len, column)) for column in zip(titles, *cells, strict=True)]
    rule = [
        f"{'-' * width}:" if right else f":{'-' * width}"
        for width, right in zip(widths, numeric, strict=True)
    ]
    lines = [titles, rule, *cells]
    markdown = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    name = rows.row_name if isinstance(rows, Traced) else ""
    return QuotedTable(markdown, name, "", None, header, rows)


def _unit_in_head(title: str, rows: Sequence[list[str]], column: int) -> str:
    """The title with the unit that ends each cell of these rows, which then end without it."""
    parts = [NUMBER_AND_UNIT.fullmatch(row[column]) for row in rows]
    units = {part[1] if part else "" for part in parts}
    if len(units) != 1 or "" in units:
        return title
    (unit,) = units
    for row in rows:
        row[column] = row[column].removesuffix(unit)
    unit = unit.strip()
    bracketed = re.fullmatch(r"(.*) \((.*)\)", title)
    return f"{bracketed[1]} ({bracketed[2]}, {unit})" if bracketed else f"{title} ({unit})"


def _cell(value: Cell, digits: int | None) -> str:
    if value is None:
        return DASH
    if isinstance(value, Quoted):
        return value.markdown
    if isinstance(value, str):
        return re.sub(r"[ \n]+", " ", re.sub(r"(?<!\\)\|", r"\\|", value)).strip(" \n")
    if precision(value).estimated:
        return str(approximately(value, digits))
    return _prose(value, digits=None if isinstance(value, int) else digits)


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in "\\`*_{}[]<>()#+-.!|~$^@&:\"'" else c for c in text)


def _cards() -> ModuleType:
    """Return the module of cards, which knows all that they tell and is needed by pages alone."""
    return import_module("calc.derivations.cards")
