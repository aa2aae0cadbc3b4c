"""Captions and takeaways hold what they say: of the cells of their tables, of what is drawn, and of
the values that they quote."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.book.drawings import drawing
from tools.ledger import faults
from tools.ledger.captions import CLAIMS, FIGURE_CLAIMS
from tools.ledger.comparisons import uncompared, unheld
from tools.ledger.faults import unsaid, untrue
from tools.ledger.statements import statements
from tools.ledger.takeaways import TAKEAWAYS

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


def test_captions_and_takeaways_say_what_is_held() -> None:
    assert list(unsaid(statements())) == []


def test_captions_and_takeaways_hold_of_their_tables_and_values() -> None:
    assert list(untrue(statements())) == []


def test_what_compares_is_held_or_listed() -> None:
    assert list(uncompared(statements())) == []


def test_a_comparison_that_is_neither_held_nor_listed_is_named() -> None:
    (caption,) = (s for s in statements() if (s.kind, s.label) == ("caption", "tbl-nvls"))
    assert unheld(caption) == "each"  # the rest is a claim
    others = [other for other in statements() if other != caption]
    (message,) = uncompared(
        [*others, replace(caption, source=f"{caption.source} No ring is faster.")]
    )
    assert message == (
        f"{caption.place}: its caption compares by “each no faster”, of which comparisons.toml has"
        " “each”: write a claim, or list it once it is read."
    )
    (message,) = uncompared(others)
    assert message == "tools/ledger/comparisons.toml:1: caption of tbl-nvls is no text of the book."


def test_a_caption_that_its_table_does_not_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    label, words, holds = CLAIMS[0]
    captions = [statement for statement in statements() if statement.label == label]
    wrong = (label, words, lambda *values: not holds(*values))
    monkeypatch.setattr(faults, "TAKEAWAYS", [])
    monkeypatch.setattr(faults, "CLAIMS", [wrong])
    (message,) = untrue(captions)
    assert re.fullmatch(
        rf"chapters/\S+\.qmd:\d+: the cells of {label} do not hold that “.*”.", message
    )
    monkeypatch.setattr(faults, "CLAIMS", [(label, "a pig flies", holds)])
    monkeypatch.setattr(faults, "FIGURE_CLAIMS", [])
    (message,) = unsaid(captions)
    assert message.endswith(
        f": the caption of {label} needs “a pig flies”, or tools/ledger/captions.py other words."
    )


def test_the_line_of_a_statement_has_its_first_words() -> None:
    lines = {file: file.read_text("utf-8").split("\n") for file in {s.file for s in statements()}}
    away = [s for s in statements() if s.source.split()[0] not in lines[s.file][s.line - 1]]
    assert [statement.place for statement in away] == []


def test_a_takeaway_that_its_values_do_not_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    chapter, words, holds = TAKEAWAYS[0]
    monkeypatch.setattr(faults, "CLAIMS", [])
    monkeypatch.setattr(faults, "FIGURE_CLAIMS", [])
    monkeypatch.setattr(faults, "TAKEAWAYS", [(chapter, words, lambda *values: not holds(*values))])
    (message,) = untrue(statements())
    assert re.fullmatch(rf"chapters/{chapter}\.qmd:\d+: the values do not hold that “.*”.", message)
    assert list(untrue([s for s in statements() if s.kind != "takeaway"])) == []
    monkeypatch.setattr(faults, "TAKEAWAYS", [(chapter, "a pig flies", holds)])
    (message,) = unsaid(statements())
    assert re.fullmatch(
        rf"chapters/{chapter}\.qmd:\d+: a takeaway needs “a pig flies”, .*", message
    )


@pytest.mark.parametrize("figure", sorted({figure for figure, *_ in FIGURE_CLAIMS}))
def test_captions_hold_of_their_figures(figure: str) -> None:
    values = drawing(figure).values()
    for of, words, holds in FIGURE_CLAIMS:
        assert of != figure or holds(lambda name: values[name].value), words
