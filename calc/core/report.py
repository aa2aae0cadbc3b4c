"""Printing of answers: title, tables and sentences as text and HTML, facts as JSON.

A planner's answer is an `Answer`: it says first what it answers, what that stands on and what was
chosen, and prints at most LINES of WIDTH columns; `explain` has the rest.

In JSON a quantity is `{"value": 3.35, "unit": "TB/s"}`, and a pure number a number. One of the data
has its `title`, `kind`, `source`, `year`, `checked` and `note` beside it, a pure one the unit "1",
and what is unpublished the value null. CSV is the list `rows`, with `memory.value` for what is
nested.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from typing import Any, ClassVar, NoReturn, Self

from calc.core.errors import InputError, marked
from calc.core.fixed import Fixed, fix_fields, returns_fixed
from calc.core.formatting import columns, html_table, listed
from calc.core.provenance import Provenance
from calc.core.records import Count, Record
from calc.core.units import Quantity

ORIGIN = ("title", "kind", "source", "year", "checked", "note")
LINES, WIDTH = 20, 100
"""Lines and columns of an answer as it is printed."""
FRAMES = ("polars", "pandas")
FEWEST_ROWS, FEWEST_OF_FIRST = 3, 8
"""Fewest rows of a table, and of the first, which holds the answer, however much is said beside
them."""


@dataclass(frozen=True)
class Table:
    """Rows of cells, the first of which names the columns, under a caption of their own.

    Where a `head` names the columns, text does without it: its rows say what they are.
    """

    rows: Sequence[tuple[str, ...]]
    caption: str = ""
    detail: bool = False
    """Whether notebooks leave it out."""
    head: tuple[str, ...] | None = None
    asked: tuple[str, ...] = ()
    """First cells of rows that were asked for, which are left out after all others."""

    def __post_init__(self) -> None:
        fix_fields(self)

    @property
    def lines(self) -> list[str]:
        """The caption, and a line for each row."""
        return [*([f"{self.caption}:"] if self.caption else []), *columns(self.rows)]

    def short(self, most: int) -> list[str]:
        """Return at most so many lines of WIDTH, the last naming the columns and rows left out."""
        rows = list(self.rows)
        dropped: list[str] = []
        while len(rows[0]) > 2 and max(map(len, columns(rows))) > WIDTH:
            dropped.insert(0, rows[0][-1] or "the last")
            rows = [row[:-1] for row in rows]
        lines = columns(rows)
        columns_left = [listed(dropped)] if dropped else []
        last_first = sorted(
            range(len(rows)), key=lambda row: (rows[row][0].strip() in self.asked, -row)
        )
        for more in range(len(lines)):
            left = [*([f"{more} rows"] if more else []), *columns_left]
            hint = wrapped(f"… with --explain: {' and '.join(left)}") if left else []
            if len(lines) - more + len(hint) <= most:
                break
        without = {*last_first[:more]}
        return [*(line for row, line in enumerate(lines) if row not in without), *hint]


class Reported:
    """Base of all that is printed: a class has the parts of its report, and here they are rendered.

    The parts are `title`, `tables`, `sentences` and `facts`. A planner returns its answer
    `settled`: all of them are made, and what prints it later formats them and computes no more.
    It is frozen: no attribute is set, and no item of a mapping that it is made of or keeps.
    """

    _SENTENCES: ClassVar[Sequence[tuple[str, str]]] = ()
    """Properties that are sentences, in the order in which they are printed, and their titles."""

    status: ClassVar[Any] = 0
    """What a command that prints it exits with; an answer that may be a failure says which."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, kept in vars(cls).items():
            if isinstance(kept, cached_property) and not name.startswith("_"):
                kept.func = returns_fixed(kept.func)

    def __post_init__(self) -> None:
        fix_fields(self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is a result, which does not change: {name!r}")

    def __eq__(self, other: object) -> bool:
        """Return whether another answer says the same, as that of the same question does."""
        if self is other or type(self) is not type(other):
            return self is other
        return self.json() == other.json()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.title)))

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is a result, which does not change: {name!r}")

    @cached_property
    def title(self) -> Sequence[str]:
        """The lines above the tables; an empty last one sets these apart."""
        return ()

    @cached_property
    def tables(self) -> Sequence[Table]:
        """The tables for people."""
        return ()

    @cached_property
    def sentences(self) -> Mapping[str, Sequence[str]]:
        """Sentences below the tables, under titles; those with the title "" stand alone."""
        return Fixed({title: getattr(self, name) for name, title in self._SENTENCES})

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions that the numbers stand on, a sentence each."""
        return tuple(self._assumptions())

    def settled(self) -> Self:
        """Return the same, with all that it says made."""
        _ = self.title, self.tables, self.sentences, self.facts
        return self

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The answer for programs, by names that stay; a table is the list `rows`."""
        return Fixed()

    def _assumptions(self) -> Iterator[str]:
        yield from ()

    def _above(self) -> list[str]:
        """The title in lines."""
        return [*self.title]

    def table(self) -> str:
        """The title and the tables as lines of text."""
        lines = self._above()
        for table in self.tables:
            lines += ["", *table.lines] if table is not self.tables[0] else table.lines
        return "\n".join(lines)

    def text(self) -> str:
        """Return the text that a command prints."""
        return self.explain()

    def explain(self) -> str:
        """Return the whole answer: the title, every table in full, and the sentences below."""
        lines = [Reported.table(self)]
        for title, sentences in self.sentences.items():
            if sentences:
                lines += ["", *([f"{title}:"] if title else [])]
                for sentence in sentences:
                    lines += wrapped(f"- {sentence}") if title else [sentence]
        return "\n".join(lines)

    def html(self) -> str:
        """The title and the tables for a notebook."""
        title = [line for line in self.title if line]
        return "".join(
            html_table(
                [*title, *([table.caption] if table.caption else [])],
                [*([table.head] if table.head else []), *table.rows],
            )
            for table in self.tables
            if not table.detail
        )

    def json(self) -> str:
        """The facts as JSON."""
        return json.dumps(plain(self.facts), indent=2, ensure_ascii=False, allow_nan=False)

    def csv(self) -> str:
        """The rows of the facts as CSV."""
        flat = [dict(_flat(plain(row))) for row in self.facts["rows"]]
        text = io.StringIO()
        writer = csv.DictWriter(text, _names(flat), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(flat)
        return text.getvalue()

    def to_frame(self, library: str = "polars") -> Any:
        """The rows of the facts as a data frame of polars or pandas, units in the columns' names.

        A quantity that stands in several units has the first of them in all rows.
        """
        if library not in FRAMES:
            raise InputError(f"to_frame() makes one of {' or '.join(FRAMES)}; got {library!r}")
        try:
            package = import_module(library)
        except ImportError:
            others = " or ".join(
                f"{name} by {marked('library', name)}" for name in FRAMES if name != library
            )
            raise InputError(
                f"to_frame() needs {library}: pip install {library}; it makes one of {others} too"
            ) from None
        rows = [dict(_leaves(row)) for row in self.facts["rows"]]
        units: dict[str, str] = {}
        for row in rows:
            for name, value in row.items():
                if isinstance(value, Quantity) and not value.unitless:
                    units.setdefault(name, str(value.units))
        data = {
            f"{name} ({units[name]})" if name in units else name: [
                value.m_as(units.get(name, ""))
                if isinstance(value := row.get(name), Quantity)
                else plain(value)
                for row in rows
            ]
            for name in _names(rows)
        }
        return package.DataFrame(data)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return self.html()


class Answer(Reported):
    """Answer of a planner: short where it is printed, and whole in `explain`."""

    @property
    def answer(self) -> str:
        """The answer in a line."""
        return ""

    @property
    def stands_on(self) -> str:
        """Rates that the answer stands on, and how far off published rows like it were."""
        return ""

    @property
    def chosen(self) -> Sequence[str]:
        """Choices that were made for who asked, a clause each."""
        return ()

    @property
    def caveats(self) -> Sequence[str]:
        """Reasons why this answer, and no other, may be different here, a sentence each."""
        return ()

    @cached_property
    def title(self) -> Sequence[str]:
        """The answer, what it stands on, and what was chosen."""
        chosen = f"chosen: {'; '.join(self.chosen)}" if self.chosen else ""
        return [*filter(None, (self.answer, self.stands_on, chosen)), ""]

    def _above(self) -> list[str]:
        return [part for line in self.title for part in wrapped(line) or [""]]

    @cached_property
    def sentences(self) -> Mapping[str, Sequence[str]]:
        """The caveats, and what only `explain` prints."""
        return {"Mind": self.caveats, **super().sentences}

    @property
    def headline(self) -> dict[str, object]:
        """Facts at the head of an answer: the answer, what it stands on, choices and caveats."""
        return values(self, "answer stands_on chosen caveats")

    def table(self) -> str:
        """The title, and the tables and caveats as far as LINES allow."""
        tables = [table for table in self.tables if not table.detail]
        lines = self._above()
        left = LINES - len(lines) - len(tables) + 1
        others = FEWEST_ROWS * (len(tables) - 1)
        first = min(FEWEST_OF_FIRST, len(tables[0].short(sys.maxsize))) if tables else 0
        below = self._below(left - others - first - 1)
        left -= len(below) + bool(below)
        for index, table in enumerate(tables):
            later = FEWEST_ROWS * (len(tables) - index - 1)
            short = table.short(max(FEWEST_ROWS, left - later))
            left -= len(short)
            lines += ["", *short] if index else short
        return "\n".join([*lines, *(["", *below] if below else [])])

    def _below(self, most: int) -> list[str]:
        """The caveats, or of more than so many lines the first of them, and told so."""
        paragraphs = [wrapped(f"- {caveat}") for caveat in self.caveats]
        lines = [line for caveat in paragraphs for line in caveat]
        if len(lines) <= most:
            return lines
        ends = [end for end in accumulate(map(len, paragraphs)) if end < most]  # a line tells so
        return [
            *lines[: max(ends, default=0)],
            f"… with --explain: {len(paragraphs) - len(ends)} more to mind",
        ]

    def text(self) -> str:
        """Return the text that a command prints without `--explain`."""
        return self.table()


@dataclass(frozen=True, eq=False, repr=False)
class Report(Reported):
    """A report whose parts are there already."""

    title: Sequence[str] = ()
    tables: Sequence[Table] = ()
    sentences: Mapping[str, Sequence[str]] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)


def common_first(named: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The sentences that all have in common, and then those of each with its name before them.

    >>> common_first([("a", ["It is so.", "It rains."]), ("b", ["It is so."])])
    ['It is so.', 'a: It rains.']
    """
    _, first = named[0] if named else ("", ())
    common = [line for line in first if all(line in lines for _, lines in named)]
    alone = [(name, line) for name, lines in named for line in lines if line not in common]
    return [*common, *(f"{name}: {line}" for name, line in alone)]


def wrapped(sentence: str) -> list[str]:
    """A sentence in lines of WIDTH, those after the first moved in."""
    return textwrap.wrap(sentence, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def values(thing: object, names: str) -> dict[str, Any]:
    """Fields of a thing that are facts under their own names.

    >>> values(1 + 2j, "real imag")
    {'real': 1.0, 'imag': 2.0}
    """
    return {name: getattr(thing, name) for name in names.split()}


def plain(value: object) -> Any:
    """A value as JSON has it; NaN and infinities, which it has not, are null."""
    if isinstance(value, Record):
        return (plain(value.published) or {"value": None, "unit": None}) | _origin(value.provenance)
    if isinstance(value, Count) and value.provenance is not None:
        return {"value": int(value), "unit": "1"} | _origin(value.provenance)
    if isinstance(value, Quantity):
        if value.provenance is None and value.unitless:
            return plain(value.magnitude)
        number = {"value": plain(value.magnitude), "unit": str(value.units) or "1"}
        return number | (_origin(value.provenance) if value.provenance else {})
    if hasattr(value, "_asdict"):  # a tuple with names
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return plain({name: getattr(value, name) for name in value.__dataclass_fields__})
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return (
            (int(value) if value.is_integer() and abs(value) < 1e15 else value)
            if math.isfinite(value)
            else None
        )
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def fact_rows(
    facts: Mapping[str, object], titles: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """A row for each fact, and for each part of one that has parts."""
    rows = []

    def title(name: str) -> str:
        return (titles or {}).get(name, name.replace("_", " "))

    for name, value in facts.items():
        parts = {title(name): value}
        if isinstance(value, Mapping):
            parts = {f"{title(name)}, {title(part)}": fact for part, fact in value.items()}
        rows += [(part, _words(fact)) for part, fact in parts.items()]
    return rows


def _words(value: object) -> str:
    if not isinstance(value, Record):
        return f"{value:.7g}" if isinstance(value, float) else str(value)
    kind = value.provenance.kind
    mark = f" ({kind})" if kind in ("estimate", "announced") else ""
    return f"{value.published}{mark}" if value.published is not None else "unpublished"


def _origin(provenance: Provenance) -> dict[str, object]:
    return {name: plain(getattr(provenance, name)) for name in ORIGIN}


def _names(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """The columns of rows; of what has parts in some row, and is missing in others, the parts."""
    names = dict.fromkeys(name for row in rows for name in row)
    parted = {name[:index] for name in names for index, mark in enumerate(name) if mark == "."}
    return [name for name in names if name not in parted]


def _flat(row: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, bool) else value


def _leaves(row: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """The values of a row by their path, quantities as they are."""
    for name, value in row.items():
        parts = value._asdict() if hasattr(value, "_asdict") else value
        if isinstance(parts, Mapping):
            yield from _leaves(parts, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
