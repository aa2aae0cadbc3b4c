"""The computed tables of the chapters, as their cells give them before anything is rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from calc import quantity
from calc.core.errors import InputError
from calc.derivations.quoting import QuotedTable
from tools.ledger.quotes import chapters

HEADING_OR_CELL = re.compile(
    r"^## ([^{\n]+)|^(?:::: \{#(tbl-[\w-]+)\}\n\n)?```\{python\}\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"[\d⁰¹²³⁴-⁹]\s*$")


def cells(chapter: Path) -> Iterator[tuple[str, str]]:
    """The cells of a chapter, each after the name of its table, "" where it has none.

    A table without a label is named by its chapter and the heading that it stands under.
    """
    heading = ""
    for title, label, cell in HEADING_OR_CELL.findall(chapter.read_text(encoding="utf-8")):
        heading = title.strip() or heading
        inside = re.search(r"#\| label: (tbl-[\w-]+)", cell)
        name = inside[1] if inside else label or f"{chapter.stem}: {heading}"
        yield name if re.search(r"^table\(", cell, re.MULTILINE) else "", cell


@cache
def known(chapter: Path) -> dict[str, Any]:
    """Return the names that a chapter's cells import to show values; no figure is imported."""
    names: dict[str, Any] = {}
    for _, cell in cells(chapter):
        code = without_figures(cell)
        if code.startswith("from calc.derivations") and "#| echo" not in cell:
            exec(compile(code, f"<a cell of {chapter.name}>", "exec"), names)
    return names


@cache
def rows() -> dict[str, list[str]]:
    """The rows of each table in Markdown, each number with its unit."""
    tables: dict[str, list[str]] = {}
    for name, shown in computed().items():
        titles, *lines = shown.printed
        tables[name] = ["|".join(with_units(titles, line)) for line in lines]
    return tables


@dataclass(frozen=True)
class Computed:
    """A table, and the code of the cell that shows it."""

    code: str
    shown: QuotedTable

    @cached_property
    def printed(self) -> list[list[str]]:
        """The cells as they are printed, its heads first."""
        heads, _, *lines = self.shown.markdown.split("\n")
        return [line.split("|") for line in (heads, *lines)]

    @property
    def made_of(self) -> list[str]:
        """The rows and the methods that give it: ["OneServer.rows"]."""
        names = re.findall(r"\b[A-Z]\w*\.[a-z]\w*", self.code)
        return [name for name in names if not name.endswith("header")]


def computed() -> dict[str, Computed]:
    """Each computed table by its name."""
    return {name: table(name) for name in shown_in()}


@cache
def table(name: str) -> Computed:
    """Return the table of this name, of which alone the cell is run."""
    chapter, cell = shown_in()[name]
    file_name = f"<a cell of {chapter.name}>"  # in the traceback of one that fails
    code = without_figures(cell)
    return Computed(code, eval(compile(code, file_name, "eval"), known(chapter)))


@cache
def shown_in() -> dict[str, tuple[Path, str]]:
    """Return the chapter and the cell of each table."""
    return {
        name: (chapter, cell) for chapter in chapters() for name, cell in cells(chapter) if name
    }


def without_figures(cell: str) -> str:
    return re.sub(r"^(?:#\||import figures).*\n", "", cell, flags=re.MULTILINE)


def with_units(titles: list[str], row: list[str]) -> list[str]:
    """The cells, each number with the unit that the head of its column gives to all of them."""
    units = [re.search(r"[(\s]([^\s(]+)\)\s*$", title) for title in titles]
    return [
        f"{cell.rstrip()}{spaced(unit[1])} "
        if unit and is_unit(unit[1]) and NUMBER.search(cell)
        else cell
        for unit, cell in zip(units, row, strict=True)
    ]


def spaced(unit: str) -> str:
    return unit if unit == "%" else f" {unit}"


def is_unit(text: str) -> bool:
    try:
        return text == "%" or not quantity(f"1 {text}").dimensionless
    except InputError:
        return False


def plain(row: str) -> str:
    """The words of a row, from cell to cell."""
    return " ".join(words(row))


def words(row: str) -> list[str]:
    """The words of each cell of a row, in place of citations and links their text."""
    text = re.sub(r"\]\([^)]*\)|[\[\\*`_]", "", row)
    return [" ".join(cell.split()) for cell in text.split("|")[1:-1]]
