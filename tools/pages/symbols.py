"""The table of the book's symbols, made of those at the beginnings of its chapters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools.pages import generated
from tools.pages.answers import TITLE, chapters

TABLE = re.compile(r"((?:^\|.*\n)+)\n: Symbols of this chapter\. \{#(tbl-[\w-]+)\}", re.MULTILINE)
CELL = re.compile(r"(?<!\\)\|")
# Where a meaning goes on to say of what it is here, after it has said what it is.
DETAIL = re.compile(r"[,:;(]| (?:of|that|which|from|in|on|for|by|until|with|to|into|at|when) ")
COMMANDS = re.compile(r"\\(?:mathrm|text|mathbf|hat|bar|tilde|vec)\b|[{}\\$]")
OPENING = """Each symbol of the book, and the chapters that use it. A chapter's own table says in
full what its symbols mean; a letter may mean something else in another chapter."""


class Symbol(NamedTuple):
    """A row of a chapter's table."""

    text: str
    meaning: str
    unit: str

    @property
    def concept(self) -> str:
        """What it is, whatever of; several symbols of one row are told as they are.

        >>> Symbol("$BW$", "bandwidth of the device's memory", "byte/s").concept
        'bandwidth'
        >>> Symbol("$l, d$", "layers, and their width", "–").concept
        'layers, and their width'
        """
        if ", " in self.text:
            return self.meaning.strip()
        return DETAIL.split(self.meaning.strip())[0].strip()


@dataclass
class Row:
    """A row of the book's table."""

    symbol: Symbol
    chapters: list[str] = field(default_factory=list)


def symbols(chapter: Path) -> list[Symbol]:
    """Those of a chapter's table."""
    table = TABLE.search(chapter.read_text(encoding="utf-8"))
    rows = table[1].splitlines()[2:] if table else []
    cells = ([cell.strip() for cell in CELL.split(row.strip().strip("|"))] for row in rows)
    return [Symbol(*row[:3]) for row in cells]


def page() -> str:
    """The text of the page."""
    rows: dict[tuple[str, str], Row] = {}
    for chapter in chapters():
        text = chapter.read_text(encoding="utf-8")
        title, table = TITLE.search(text), TABLE.search(text)
        if not (title and table):
            continue
        link = f"[{title[1]}](../chapters/{chapter.name}#{table[2]})"
        for symbol in symbols(chapter):
            row = rows.setdefault((symbol.text, symbol.concept), Row(symbol))
            row.chapters.append(link)
    lines = ["| Symbol | Meaning | Unit | Chapters |", "|:--|:--|:--|:--|"]
    for (text, concept), row in sorted(rows.items(), key=_order):
        lines.append(f"| {text} | {concept} | {row.symbol.unit} | {', '.join(row.chapters)} |")
    caption = ": Symbols of the book. {#tbl-symbols}"
    body = "\n\n".join((OPENING, "\n".join(lines), caption))
    return generated("Symbols {#symbols .unnumbered}", "the chapters' tables of symbols", body)


def _order(row: tuple[tuple[str, str], Row]) -> tuple[bool, str, str, str]:
    """Latin letters before Greek ones, a small letter beside its capital."""
    text, concept = row[0]
    letters = COMMANDS.sub("", text)
    return text.startswith("$\\") and not text.startswith("$\\h"), letters.lower(), letters, concept
