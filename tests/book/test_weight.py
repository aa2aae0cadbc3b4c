"""On paper every heading has text under it, and a chapter that teaches more text than tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import yaml

from tests.book.rendered import REPOSITORY

LOOKED_UP = ("Look up", "Appendices")  # parts whose chapters are tables
ON_THE_SITE = re.compile(r'^(:{3,}) \{\.content-visible when-format="html"\}$.*?^\1$', re.M | re.S)
CELL = re.compile(r"^```.*?^```$", re.M | re.S)
TABLE = re.compile(r"tbl-cap:|^::: \{#tbl-|\{#tbl-[\w-]+\}$", re.M)
NO_PARAGRAPH = re.compile(r"^(?::|\||#|\$\$)")
SHORTEST = 80  # letters of a paragraph that says something


def chapters() -> Iterator[tuple[str, Path]]:
    """Each chapter of a part with the part's name."""
    book = yaml.safe_load((REPOSITORY / "_quarto.yml").read_text(encoding="utf-8"))["book"]
    for part in book["chapters"]:
        for name in part["chapters"] if isinstance(part, dict) else ():
            yield part["part"], REPOSITORY / name


def bare_headings(text: str) -> list[str]:
    """Headings that another heading follows, or nothing, where what is for the site is left out."""
    printed = CELL.sub(_shown, ON_THE_SITE.sub("", text))
    lines = [*filter(str.strip, printed.splitlines()), "#"]
    return [
        line for line, after in pairwise(lines) if line.startswith("#") and after.startswith("#")
    ]


def _shown(cell: re.Match[str]) -> str:
    """A cell stands for what it shows, and that of the imports shows nothing."""
    imports = cell[0].startswith("```{python}\nfrom calc.derivations import")
    return "" if imports else "a cell"


def weight(text: str) -> tuple[int, int]:
    """Tables and paragraphs, without the problems."""
    taught = re.sub(r"^## Problems.*?(?=^## |\Z)", "", text, flags=re.M | re.S)
    blocks = re.split(r"\n\s*\n", CELL.sub("", taught))
    said = [block for block in blocks if len(block) > SHORTEST and not NO_PARAGRAPH.match(block)]
    return len(TABLE.findall(taught)), len(said)


def test_no_heading_stands_alone_on_paper() -> None:
    alone = {path.name: bare_headings(path.read_text(encoding="utf-8")) for _, path in chapters()}
    assert {name: headings for name, headings in alone.items() if headings} == {}


def test_a_chapter_that_teaches_has_two_paragraphs_a_table() -> None:
    weights = {
        path.name: weight(path.read_text(encoding="utf-8"))
        for part, path in chapters()
        if part not in LOOKED_UP
    }
    assert {name: counts for name, counts in weights.items() if 2 * counts[0] > counts[1]} == {}


def test_a_bare_heading_and_a_heavy_chapter_are_noticed() -> None:
    on_the_site = ':::: {.content-visible when-format="html"}\nText.\n::::\n'
    assert bare_headings(f"# A\n\nText.\n\n## B\n\n{on_the_site}\n## C\n\nText.\n") == ["## B"]
    assert bare_headings("# A\n\nText.\n\n## B\n") == ["## B"]
    table = "::: {#tbl-a}\n\n| a |\n|---|\n| 1 |\n\nCaption.\n:::\n"
    assert weight(f"# A\n\n{'Long text. ' * 10}\n\n{table}\n{table}") == (2, 1)
