"""The cards of the book's pages tell what a reader wants to know, and nothing of what made them."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import calc
from calc.core.errors import InputError
from tests.rows import each_row

Cards = dict[str, dict[str, Any]]
SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "\u00a0": " ", "\u202f": ""})
SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.fixture(scope="module")
def cards(book: Path) -> dict[str, Cards]:
    """The cards of each page, by their names."""
    cards_of = {}
    for file in sorted((book / "assets/cards").rglob("*.js")):
        packed = re.search('"(.*)"', file.read_text(encoding="utf-8"))
        assert packed
        cards_of[file.stem] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return cards_of


def test_no_card_names_what_no_reader_would(cards: dict[str, Cards]) -> None:
    with each_row() as row:
        for page, of_page in cards.items():
            for key, card in of_page.items():
                with row(f"{page} {key}"):
                    inputs = card.get("inputs", {})
                    names = [name.rpartition(".")[2] for name in inputs]
                    assert not [name for name in names if name.isidentifier() and name.isupper()]
                    assert not [name for name in inputs if re.search(r"\b_|\bcls\.", name)]
                    assert "cls." not in card.get("code", "")
                    assert not re.fullmatch(r"[A-Z]\w+\.(rows|table)", card.get("code", ""))
                    assert "calc.derivations" not in card.get("call", "")


def test_nearly_every_cell_has_its_own_origin(cards: dict[str, Cards]) -> None:
    """The others are told by their column, their row and the claim of their table."""
    cells = {key: card for page in cards.values() for key, card in page.items() if "[" in key}
    assert len(cells) > 2000
    by_place = [key for key, card in cells.items() if not {"same", "code"} & card.keys()]
    assert len(by_place) < 0.07 * len(cells), by_place


def test_sums_give_the_value_that_is_printed(cards: dict[str, Cards]) -> None:
    counted = 0
    with each_row() as row:
        for of_page in cards.values():
            for key, card in of_page.items():
                if "sum" in card and (computed := read(card["sum"])) is not None:
                    value = read(card["value"])
                    if value is None:
                        continue
                    counted += 1
                    with row(f"{key}: {card['sum']} = {card['value']}"):
                        in_caption = not value.m or not str(value.u)  # the unit of the column
                        assert computed.is_compatible_with(value) or in_caption
                        shown = value.m * computed.u if in_caption else value
                        ratio = float((computed / shown).to("").m) if value.m else 1.0
                        scale = 10 ** round(math.log10(abs(ratio))) if in_caption else 1
                        assert ratio / scale == pytest.approx(1, rel=0.05)  # of two digits
    assert counted > 300


def read(text: str) -> Any:
    """A sum or a value as `calc` reads it; None of what it has no words for (min, a power)."""
    plain = re.sub(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda power: f"10**{power[1]}", text)
    plain = plain.translate(SUPERSCRIPT).translate(SIGNS)
    plain = re.sub(r"(\d) \* 10\*\*(-?\d+)", r"\1e\2", plain)
    plain = re.sub(r"\b(token|parameter|request|sample|byte|bit)s\b", r"\1", plain)
    try:
        return calc.quantity(plain)
    except InputError:
        return None
