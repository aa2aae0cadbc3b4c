"""Every figure and table of a chapter is named in the section where it stands."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.rows import each_row
from tools.ledger.quotes import chapters

SECTIONS = re.compile(r"^(?=## )", re.MULTILINE)
PLACED = re.compile(r"(?:#\| label: |\{#)((?:fig|tbl)-[\w-]+)")
LISTS = "sources"  # of an appendix, where each heading is a table's
PRINTED = re.compile(r"\b((?:Table|Figure)\s\d+\.\d+)(:?)")
SYMBOLS = "-symbols"  # a box at the head of a chapter, which says what it is


def unnamed(page: str) -> list[str]:
    """Labels of a page's figures and tables that their own sections do not refer to."""
    return [
        label
        for section in SECTIONS.split(page)
        for label in PLACED.findall(section)
        if not label.endswith(SYMBOLS) and not re.search(rf"@{label}(?![\w-])", section)
    ]


def test_each_figure_and_table_is_named_where_it_stands() -> None:
    with each_row() as row:
        for chapter in chapters():
            if not chapter.name.startswith(LISTS):
                with row(chapter.name):
                    page = chapter.read_text(encoding="utf-8")
                    assert unnamed(page) == [], "refer to each in the section where it stands"


def test_a_reference_from_another_section_is_not_enough() -> None:
    page = "## One\n\n@fig-b and @fig-bar\n\n## Two\n\n#| label: fig-b\n::: {#tbl-c}\n@tbl-c\n"
    assert unnamed(page) == ["fig-b"]


def far(pages: list[str]) -> dict[str, list[int]]:
    """Return where captions stand on paper that nothing names within a page, and all namings."""
    captions: dict[str, int] = {}
    named: dict[str, list[int]] = defaultdict(list)
    for number, page in enumerate(pages, start=1):
        for label, colon in PRINTED.findall(page):
            if colon:
                captions.setdefault(label, number)
            else:
                named[label].append(number)
    return {
        label: [number, *named[label]]
        for label, number in captions.items()
        if named[label] and min(abs(other - number) for other in named[label]) > 1
    }


@pytest.mark.slow
def test_each_stands_within_a_page_of_its_mention_on_paper(pdf: Path) -> None:
    if shutil.which("pdftotext") is None:
        pytest.skip("no `pdftotext` on PATH: install poppler-utils")
    text = subprocess.run(
        ["pdftotext", "-layout", pdf, "-"], capture_output=True, encoding="utf-8", check=True
    ).stdout
    pages = text.split("\f")
    assert len({label for label, colon in PRINTED.findall(text) if colon}) > 200
    assert far(pages) == {}


def test_a_caption_that_floated_away_is_named() -> None:
    pages = ["as Table 1.2 has it", "of its own", "Table 1.2: Rates. Figure 1.1: Of Table 1.3", ""]
    assert far(pages) == {"Table 1.2": [3, 1]}
