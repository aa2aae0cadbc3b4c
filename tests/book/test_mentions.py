"""Every figure and table of a chapter is named in the section where it stands."""

from __future__ import annotations

import re

from tests.rows import each_row
from tools.ledger.quotes import chapters

SECTIONS = re.compile(r"^(?=## )", re.MULTILINE)
PLACED = re.compile(r"(?:#\| label: |\{#)((?:fig|tbl)-[\w-]+)")
LISTS = "sources"  # of an appendix, where each heading is a table's
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
