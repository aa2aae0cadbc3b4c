"""A section begins with words, which say what the tables and figures after them are for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tools.ledger.quotes import chapters

TABLES_ALONE = {"sheet", "sources"}  # whose headings are captions


def without_opening(source: str) -> Iterator[str]:
    """Yield the headings of a chapter that a heading, a table, a figure or nothing follows."""
    for section in re.split(r"(?m)^(?=##+ )", source)[1:]:
        heading, _, body = section.partition("\n")
        first = next((line for line in body.splitlines() if line), "")
        if not first or first.startswith(("```", ":::", "|", "#")):
            yield heading


def test_sections_begin_with_words() -> None:
    bare = [
        f"{chapter.stem}: {heading}"
        for chapter in chapters()
        if chapter.stem not in TABLES_ALONE
        for heading in without_opening(chapter.read_text(encoding="utf-8"))
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("body", "bare"),
    [
        ("Words.\n", []),
        ("::: {#tbl-few}\n\nFew rows.\n:::\n", ["## Section"]),
        ("### Subsection\n\nWords.\n", ["## Section"]),
        ("", ["## Section"]),
    ],
)
def test_a_section_without_words_is_named(body: str, bare: list[str]) -> None:
    assert list(without_opening(f"# Chapter\n\n## Section\n\n{body}")) == bare
