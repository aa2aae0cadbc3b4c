"""Every quoted number says where it comes from, down to data, files and literals."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from calc import constants
from calc.core.units import Quantity
from calc.derivations import show, table, words
from calc.derivations.cards import cards, cell_cards, told
from calc.derivations.quoting import CARDS
from tests.rows import each_row
from tools.ledger.quotes import quotes
from tools.ledger.rows import derived, value_of

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

ENDS = {  # what a branch may end in, and what it must then say
    "datasheet": ("source", "cited", "checked"),
    "announced": ("source", "cited", "checked"),
    "definition": ("source", "cited", "checked"),
    "estimate": ("source", "cited", "checked", "note"),
    "measured": ("value",),
    "data file": ("value",),
    "chosen": ("code",),
    "computed": ("code",),
    "device": ("value",),
    "machine": ("value",),
    "model": ("value",),
    "run": ("value",),
}


def quoted_names() -> list[str]:
    return sorted({name for quote in quotes() for name in quote.names})


@cache
def trees() -> dict[str, dict[str, Any]]:
    """Return the cards of each quoted number, its own and those of what it is made of."""
    derived()  # imports them all
    return {name: cards(value_of(name)) for name in quoted_names()}


def card(shown: Any) -> dict[str, Any]:
    return dict(shown._repr_mimebundle_().get(CARDS, {}))


def test_every_quoted_number_has_a_tree_down_to_what_was_given() -> None:
    with each_row() as row:
        for name, tree in trees().items():
            with row(name):
                for key, origin in tree.items():
                    assert set(origin.get("inputs", {}).values()) <= tree.keys(), key
                    if not origin.get("inputs"):
                        missing = {each for each in ENDS[origin["kind"]] if not origin.get(each)}
                        assert missing == set(), key
                assert tree[name]["value"] == told(value_of(name))


def test_an_inline_value_knows_its_name() -> None:
    namespace = {**derived(), "show": show, "words": words}
    wrong = {
        quote.expression: name
        for quote in quotes()
        if quote.expression.startswith(("show(", "words("))
        and (name := eval(quote.expression, dict(namespace)).name) not in quote.names
    }
    assert wrong == {}


def test_a_number_that_only_equals_an_attribute_has_no_name() -> None:
    from calc.derivations.roofline_chapter import DecodeStep

    assert show(DecodeStep.large_batch).name == "DecodeStep.large_batch"
    other = DecodeStep.peak * 1
    assert other == DecodeStep.peak
    assert show(other).name == ""


def test_what_is_computed_names_its_parts_and_its_law() -> None:
    from calc.derivations.roofline_chapter import DecodeStep

    tree = card(show(DecodeStep.attainable))
    top = tree["DecodeStep.attainable"]
    assert top["code"] == "roofline.attainable(peak, bandwidth, intensity)"
    assert top["equation"] == "R = min(R_peak, BW · I)"
    assert tree[top["inputs"]["bandwidth"]]["checked"] == "2026-11-20"
    assert tree["DecodeStep.parameters"]["kind"] == "chosen"


def test_cells_of_a_table_know_their_expression_or_their_datum() -> None:
    from calc.derivations.roofline_chapter import FusedMatmulRelu

    tree = card(table(["a", "b", "c", "d", "e"], FusedMatmulRelu.rows))
    cells = {key: each.get("same") for key, each in tree.items() if "[" in key}
    assert len(cells) == 10
    assert cells["FusedMatmulRelu.rows[1][2]"] == "FusedMatmulRelu.thin_time"
    rows = [["SSD", constants.get("energy_ssd_word_estimate")]]
    of_data = cell_cards("FusedMatmulRelu.rows", ["", ""], rows)
    assert of_data["energy_ssd_word_estimate"]["note"]


def test_cells_that_a_loop_made_know_their_data_and_their_sum() -> None:
    from calc.derivations.sheet import OnePage

    tree = card(table([""] * 5, OnePage.memory_rows()))
    cells = {key: tree[each.get("same", key)] for key, each in tree.items()}
    assert (
        cells["OnePage.memory_rows[0][1]"]["title"] == "memory capacity of NVIDIA H100 SXM5 80 GB"
    )
    assert cells["OnePage.memory_rows[0][3]"]["sum"] == "989\xa0TFLOP/s ÷ 3.35\xa0TB/s"


def test_a_law_is_told_in_numbers() -> None:
    from calc.derivations.roofline_chapter import DecodeStep

    top = card(show(DecodeStep.attainable))["DecodeStep.attainable"]
    assert top["sum"] == "min(989\xa0TFLOP/s, 3.35\xa0TB/s × 1\xa0FLOP/byte)"


def test_a_name_means_what_its_class_has_said_so_far() -> None:
    """A name may get another value later, and an attribute may be called as a module is."""
    from calc.derivations.quantization_chapter import Clipping
    from calc.derivations.training_time_chapter import FirstEstimate

    tree = card(show(Clipping.decibels_per_bit))
    assert tree["Clipping.decibels_per_bit"]["call"].endswith(
        "print(-(quantization.expected_sqnr(2, 1) - quantization.expected_sqnr(3, 1)))\n"
    )
    assert (
        "energy.energy_of_run(" in card(show(FirstEstimate.energy))["FirstEstimate.energy"]["call"]
    )


@pytest.mark.slow
def test_copied_calls_give_the_printed_value() -> None:
    """A sample, over all chapters, of those that compute from the numbers alone."""
    calls = {
        name: call
        for name, tree in trees().items()
        if "calc.derivations" not in (call := tree[name].get("call", "")) and call
    }
    assert len(calls) > 1000

    with each_row() as row:
        for name in sorted(calls)[::25]:
            printed: list[Any] = []
            with row(name):
                exec(calls[name], {"print": printed.append})
                expected = number(value_of(name))
                text = isinstance(expected, str)
                assert number(printed[0]) == (
                    expected if text else pytest.approx(expected, rel=1e-6)
                )


def number(value: Quantity | float | str) -> float | str:
    """Return a value in base units; text as it is."""
    return float(value.to_base_units().m) if isinstance(value, Quantity) else value


def test_a_branch_without_parts_names_no_derivation() -> None:
    """Each derivation that an expression reads must be among its parts."""
    unexplained = {
        key: origin["code"]
        for tree in trees().values()
        for key, origin in tree.items()
        if "code" in origin and not origin.get("inputs") and not origin.get("source")
        if set(re.findall(r"\b([A-Z]\w+)\.[a-z]", origin["code"])) & derived().keys()
    }
    assert unexplained == {}
