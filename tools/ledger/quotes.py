"""The pages that somebody wrote, and the values that they quote in their lines."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.pages import ROOT

CELL = re.compile(r"^```\{python\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`\{python\} ([^`]*)`")


def chapters() -> list[Path]:
    """Every page that somebody wrote."""
    return [
        ROOT / "index.qmd",
        *sorted((ROOT / "chapters").glob("*.qmd")),
        *sorted((ROOT / "backmatter").glob("*.qmd")),
    ]


@dataclass(frozen=True)
class Quote:
    """An inline value of a chapter, such as show(A100Roofline.ridge_point, digits=3)."""

    chapter: Path
    line: int
    expression: str

    @property
    def place(self) -> str:
        return f"{self.chapter.relative_to(ROOT)}:{self.line}"

    @property
    def names(self) -> list[str]:
        """The derivations that it quotes: ["A100Roofline.ridge_point"]."""
        return re.findall(r"\b([A-Z]\w*\.[a-z]\w*)", self.expression)

    @property
    def functions(self) -> list[str]:
        """The functions that it calls by their own names: ["show"]."""
        return re.findall(r"(?<![.\w])([a-z]\w*)\(", self.expression)

    @property
    def page(self) -> str:
        return self.chapter.relative_to(ROOT).with_suffix(".html").as_posix()


@cache
def imported(page: Path) -> set[str]:
    """Return the names that the cells of a page import."""
    cells = CELL.findall(page.read_text(encoding="utf-8"))
    nodes = (node for cell in cells for node in ast.walk(ast.parse(cell)))
    return {each.name for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names}


def quotes() -> list[Quote]:
    return [
        Quote(chapter, number, expression)
        for chapter in chapters()
        for number, line in enumerate(chapter.read_text(encoding="utf-8").split("\n"), 1)
        for expression in INLINE.findall(line)
    ]
