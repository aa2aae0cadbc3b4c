"""How an answer is printed: its title, tables and sentences as text and HTML, its facts as JSON.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from typing import Any, ClassVar

from calc.core.formatting import columns, html_table
from calc.core.provenance import Provenance
from calc.core.records import Count, Record
from calc.core.units import Quantity

ORIGIN = ("title", "kind", "source", "year", "checked", "note")


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

    @property
    def lines(self) -> list[str]:
        """The caption, and a line for each row."""
        return [*([f"{self.caption}:"] if self.caption else []), *columns(self.rows)]


class Reported:
    """What can be printed: a class has the parts of its report, and here they are rendered.

    The parts are `title`, `tables`, `sentences` and `facts`, each made when something prints it.
    """

    _SENTENCES: ClassVar[Sequence[tuple[str, str]]] = ()
    """Properties that are sentences, in the order in which they are printed, and their titles."""

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
        """What is said below the tables, under titles; what has the title "" stands alone."""
        return {title: getattr(self, name) for name, title in self._SENTENCES}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers stand on, a sentence each."""
        return tuple(self._assumptions())

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The answer for programs, by names that stay; a table is the list `rows`."""
        return {}

    def _assumptions(self) -> Iterator[str]:
        yield from ()

    def table(self) -> str:
        """The title and the tables as lines of text."""
        lines = [*self.title]
        for table in self.tables:
            lines += ["", *table.lines] if table is not self.tables[0] else table.lines
        return "\n".join(lines)

    def text(self) -> str:
        """The same with the sentences below, as a command prints it."""
        lines = [self.table()]
        for title, sentences in self.sentences.items():
            if sentences:
                lines += ["", *([f"{title}:"] if title else [])]
                lines += [f"- {sentence}" if title else sentence for sentence in sentences]
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
        names = dict.fromkeys(name for row in flat for name in row)
        writer = csv.DictWriter(text, list(names), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return text.getvalue()

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return self.html()


@dataclass(eq=False, repr=False)
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


def _flat(row: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, bool) else value
