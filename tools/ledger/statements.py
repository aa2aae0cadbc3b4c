"""Statements of the book beside figures and tables: captions, alt texts and takeaways."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tools.ledger import chapter_tables
from tools.ledger.quotes import INLINE, chapters
from tools.pages import ROOT

OPTION = re.compile(r'^#\| (fig-cap|tbl-cap|fig-alt): (".*"|.*)$', re.MULTILINE)
BLOCK = re.compile(r"^::: \{#((?:fig|tbl)-[\w-]+)\}\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^```\{python\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BELOW = re.compile(r"^: (.*) \{#(tbl-[\w-]+)\}$", re.MULTILINE)
TAKEAWAYS = re.compile(r"^## Takeaways[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
DRAWN = re.compile(r"^figures\.(\w+)\.draw\(\)$", re.MULTILINE)
QUOTED = re.compile(r"[A-Z]\w*\.\w+")
REFERENCE = re.compile(r"\s?\[[^][]*@[^][]*\]|@[\w-]+|\]\([^)]*\)|[\[*`]")


@dataclass(frozen=True)
class Statement:
    """A text that sums up what a figure, a table or a chapter holds."""

    file: Path
    line: int
    kind: str  # "caption", "alt text" or "takeaway"
    label: str  # of the figure or table, or the chapter's name
    figure: str  # the module that draws it, "" where none does
    source: str  # with its inline values as they are quoted

    @property
    def place(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    @cached_property
    def text(self) -> str:
        """Text of the statement as it is printed, without references."""
        printed = INLINE.sub(lambda quote: value(self.file, quote[1]), self.source)
        return " ".join(REFERENCE.sub("", printed).split())

    @cached_property
    def words(self) -> str:
        """Words of the statement, with the name of each value that it quotes in braces."""
        named = INLINE.sub(lambda quote: f"{{{QUOTED.findall(quote[1])[0]}}}", self.source)
        return " ".join(named.split())


@cache
def value(chapter: Path, expression: str) -> str:
    return re.sub(r"\\([^\w\s])", r"\1", str(eval(expression, chapter_tables.known(chapter))))


@cache
def statements() -> list[Statement]:
    return [statement for chapter in chapters() for statement in _of(chapter)]


def _of(chapter: Path) -> Iterator[Statement]:
    text = chapter.read_text(encoding="utf-8")

    def statement(kind: str, label: str, figure: str, source: str, at: int) -> Statement:
        return Statement(chapter, text.count("\n", 0, at) + 1, kind, label, figure, source)

    blocks = [(block[1], block.start(), block.end()) for block in BLOCK.finditer(text)]
    for cell in CELL.finditer(text):
        label = re.search(r"^#\| label: (\S+)$", cell[1], re.MULTILINE)
        around = [name for name, start, end in blocks if start < cell.start() < end]
        name = label[1] if label else around[0] if around else ""
        drawn = DRAWN.search(cell[1])
        figure = drawn[1] if drawn else ""
        for option in OPTION.finditer(cell[1]):
            kind = "alt text" if option[1] == "fig-alt" else "caption"
            told = json.loads(option[2]) if option[2].startswith('"') else option[2]
            yield statement(kind, name or figure, figure, told, cell.start(1) + option.start())
    for block in BLOCK.finditer(text):
        drawn = DRAWN.search(block[2])
        caption = block[2].strip().rpartition("\n\n")[2]
        at = block.start(2) + block[2].rindex(caption)
        yield statement("caption", block[1], drawn[1] if drawn else "", caption, at)
    for below in BELOW.finditer(text):
        yield statement("caption", below[2], "", below[1], below.start())
    for takeaways in TAKEAWAYS.finditer(text):
        for line in re.finditer(r"^- (.*)$", takeaways[1], re.MULTILINE):
            at = takeaways.start(1) + line.start()
            yield statement("takeaway", chapter.stem, "", line[1], at)
