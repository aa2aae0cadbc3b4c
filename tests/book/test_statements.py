"""Captions and takeaways hold what they say: of the cells of their tables, of what is drawn, and of
the values that they quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calc.core.units import Quantity
from tests.book import claims, tables
from tests.book.claims import CLAIMS, FIGURE_CLAIMS
from tests.book.drawings import drawing
from tests.book.rendered import REPOSITORY
from tests.book.statements import Statement, statements
from tests.book.takeaways import TAKEAWAYS

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


def said(words: str, told: list[Statement]) -> bool:
    return any(words in statement.words for statement in told)


def unsaid(told: list[Statement]) -> Iterator[str]:
    """Each statement whose words are held to something, and no longer stand there."""
    for label, words, _ in CLAIMS:
        if not said(words, own := [s for s in told if s.label == label]):
            yield f"{places(own)}: the caption of {label} says “{words}” in tests/book/claims.py"
    for figure, words, _ in FIGURE_CLAIMS:
        if not said(words, own := [s for s in told if s.figure == figure]):
            yield f"{places(own)}: the caption of {figure} says “{words}” in tests/book/claims.py"
    for chapter, words, _ in TAKEAWAYS:
        own = [s for s in told if (s.kind, s.label) == ("takeaway", chapter)]
        if not said(words, own):
            yield f"{places(own[:1])}: a takeaway says “{words}” in tests/book/takeaways.py"


def places(told: list[Statement]) -> str:
    return " or ".join(statement.place for statement in told) or "nowhere in the book"


def test_what_is_held_is_what_is_said() -> None:
    wrong = list(unsaid(statements()))
    assert not wrong, "\n".join(wrong)


def quoted(words: str, chapter: Path) -> list[Any]:
    """The values whose names stand in these words, pure numbers as such."""
    known = tables.known(chapter)
    names = [name.split(".") for name in re.findall(r"\{(\w+\.\w+)\}", words)]
    values = [getattr(known[owner], name) for owner, name in names]
    return [v.m_as("") if isinstance(v, Quantity) and v.dimensionless else v for v in values]


def test_captions_hold_of_their_tables() -> None:
    chapters = {statement.label: statement.file for statement in statements()}
    wrong = [
        f"{label}: {words}"
        for label, words, holds in CLAIMS
        if not holds(claims.table(label), *quoted(words, chapters[label]))
    ]
    assert not wrong, "the printed cells do not hold what these captions say"


def test_takeaways_hold_of_the_values_that_they_quote() -> None:
    wrong = [
        f"{chapter}: {words}"
        for chapter, words, holds in TAKEAWAYS
        if not holds(*quoted(words, REPOSITORY / "chapters" / f"{chapter}.qmd"))
    ]
    assert not wrong, "the values do not hold what these takeaways say"


@pytest.mark.parametrize("figure", sorted({figure for figure, *_ in FIGURE_CLAIMS}))
def test_captions_hold_of_their_figures(figure: str) -> None:
    values = drawing(figure).values()
    for of, words, holds in FIGURE_CLAIMS:
        assert of != figure or holds(lambda name: values[name].value), words
