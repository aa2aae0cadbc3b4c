"""Quotations of chapters reach Markdown as they are meant."""

from __future__ import annotations

import json

import pypandoc
import pytest

from calc import InputError, constants, quantity
from calc.derivations import approximately, math, show, table, within
from calc.derivations.quoting import Quoted, between


def cells_of(markdown: str) -> list[list[str]]:
    """The rows of a table as pandoc reads it."""
    document = json.loads(pypandoc.convert_text(markdown, "json", format="markdown"))
    rows = document["blocks"][0]["c"][3][1] + document["blocks"][0]["c"][4][0][3]
    return [[text_of(cell[4]) for cell in row[1]] for row in rows]


def text_of(blocks: object) -> str:
    document = {"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": blocks}
    return str(pypandoc.convert_text(json.dumps(document), "plain", format="json")).strip()


def test_show_and_math() -> None:
    assert str(show(quantity("961538 s"), "min", digits=5)) == "16\u202f026\u00a0min"
    assert str(show(quantity("11.128917 day"), "s", digits=6)) == "961\u202f538\u00a0s"
    assert str(math(quantity("65.535 kB"), "byte", digits=5)) == r"65535\,\text{byte}"
    assert str(show(quantity("7B param"))) == "7\u00a0billion\u00a0parameters"
    assert str(math(quantity("3.35 TB/s"))) == r"3.35\,\text{TB/s}"
    assert str(approximately(quantity("4 W"))) == "≈\u00a04\u00a0W"


@pytest.mark.parametrize(
    "text", ["a|b", "<b> & $x$ *y* _z_", "::: {.x}", "&amp; \"q\" 'r'", "1. x"]
)
def test_text_comes_out_as_itself(text: str) -> None:
    document = pypandoc.convert_text(str(show(text)), "plain", format="markdown-smart")
    assert document.strip() == text


def test_a_table_survives_bars_and_line_breaks() -> None:
    made = table(["a|b", "c"], [["x|y", 1], ["two\nshort lines", None]])
    assert cells_of(str(made)) == [["a|b", "c"], ["x|y", "1"], ["two short lines", "–"]]


def test_a_short_name_stays_on_one_line() -> None:
    made = str(table(["a b", "c"], [["FP8 E4M3", "a b"], ["a rather long one", "x\u00a0y"]]))
    assert "a b | c" in made
    assert "FP8\u00a0E4M3 | a b" in made
    assert "a rather long one | x\u00a0y" in made


def test_a_unit_that_a_column_shares_stands_in_its_head() -> None:
    def made(*column: object) -> list[list[str]]:
        return cells_of(str(table(["device", "links (one way)"], [["x", cell] for cell in column])))

    assert made(quantity("900 GB/s"), None, quantity("64 GB/s")) == [
        ["device", "links (one way, GB/s)"],
        ["x", "900"],
        ["x", "–"],
        ["x", "64"],
    ]
    mixed = made(quantity("900 GB/s"), quantity("1.8 TB/s"))
    assert mixed[0][1] == "links (one way)"
    assert mixed[2][1] == "1.8\u00a0TB/s"
    assert made(Quoted("12%"), Quoted("3%"))[:2] == [["device", "links (one way, %)"], ["x", "12"]]
    assert made(4, 2.5e-8)[0][1] == made(None, None)[0][1] == "links (one way)"


def test_a_hand_estimate_says_how_far_it_is_off_on_either_side() -> None:
    assert str(within(quantity("2 s"), quantity("2000 ms"))) == "exact"
    assert str(within(10, 10.04)) == "within half a percent"
    assert str(within(quantity("1 s"), quantity("2000 ms"))) == "within a factor of 2.0"
    assert str(within(3, 2.9)) == str(within(2.9, 3)) == "within a factor of 1.1"


def test_a_hand_estimate_is_judged_by_the_digits_that_a_reader_sees() -> None:
    third = quantity(5 / 3, "s")
    assert str(within(third, third)) == "exact"
    assert str(within(third, third, digits=2)) == "within a factor of 1.1"
    assert str(within(third, third, digits=3)) == "within half a percent"
    assert str(within(quantity("450 ms"), quantity("0.45 s"), digits=2)) == "exact"


def test_estimates_are_marked() -> None:
    made = table(["what", "much"], [["SSD", constants.get("energy_ssd_word_estimate")]])
    assert "≈" in str(made)


def test_ranges() -> None:
    assert str(between(quantity("125 pJ"), quantity("225 pJ"))) == "125–225\u00a0pJ"
    assert str(between(quantity("149.6 ns"), quantity("300 ns"), 3)) == "150–300\u00a0ns"
    with pytest.raises(InputError, match="one unit"):
        between(quantity("1 pJ"), quantity("1 nJ"))


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(InputError, match="needs 2 cells"):
        table(["a", "b"], [["only one"]])
