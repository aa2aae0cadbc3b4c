"""`python -m benchmarks.planted` plants faults that the tests of figures and words tell of."""

from __future__ import annotations

import importlib
import random

import pytest

from benchmarks.planted import changed_words, told_by, wrong_drawings
from tests.book import drawings
from tests.book.test_drawings import problems, told
from tools.ledger.statements import statements

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


@pytest.mark.parametrize("figure", ["lever_memory", "long_sums", "rent_or_buy"])
def test_every_kind_of_wrong_drawing_is_told(figure: str) -> None:
    words = told(figure)
    module = importlib.import_module(f"figures.{figure}")
    chance = random.Random(1)
    kinds = {kind for kind, _ in wrong_drawings(module.draw(), chance)}
    assert len(kinds) >= 5
    for kind in sorted(kinds):
        drawn, computed = drawings.drawn(module)
        chance.choice([act for way, act in wrong_drawings(drawn, chance) if way == kind])()
        read = drawings.of(drawn, computed)
        assert problems(figure, read, words["alt text"], words["caption"]), kind


@pytest.mark.parametrize("label", ["tbl-nvls", "fig-distance", "fig-batch"])
def test_every_changed_word_is_told(label: str) -> None:
    for statement in (each for each in statements() if each.label == label):
        assert not told_by(statement, statement.source)
        for text in changed_words(statement):
            assert told_by(statement, text), text
