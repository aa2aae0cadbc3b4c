"""A quoted result has no more digits than its worst input, and what to remember marks estimates."""

from __future__ import annotations

import re
from typing import Any

import pytest

from calc import constants, quantity
from calc.derivations import math, show, table, words
from calc.derivations.quoted_digits import Precision, digits_of_data, precision
from tools.ledger.quotes import chapters, quotes
from tools.ledger.rows import derived, value_of

pytestmark = pytest.mark.xdist_group("derivations")

NUMBER = re.compile(r"[\d\N{NARROW NO-BREAK SPACE}]*\.?\d+")
MARKS = re.compile(r"\b(about|some|nearly|almost|around|over|roughly|estimates?)\b|≈")
QUOTED = re.compile(r"`\{python\} show\(([A-Z]\w*\.\w+)")


@pytest.mark.parametrize(
    ("key", "digits"),
    [
        ("latency_pcie_gen5", 2),  # an estimate, 1000 ns
        ("energy_hbm2_bit", 2),  # an estimate, whatever it prints: 3.97 pJ/bit
        ("energy_fp16_multiply", 2),  # measured, 1.1 pJ
        ("cycles_l1_hopper", 3),  # measured, 34.2
        ("power_dgx_h100", 3),  # a datasheet's 10.2 kW
        ("bandwidth_nvme_gen4", 3),  # a datasheet's 7.0 GB/s
        ("count_sm_h100", 17),  # counted
        ("speed_light_vacuum", 17),  # a definition
    ],
)
def test_data_know_how_many_digits_they_leave_to_results(key: str, digits: int) -> None:
    assert digits_of_data(constants.get(key)) == digits


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("FourLinks.pcie_half", "260 kB"),  # 63.02 GB/s for 4.1 µs
        ("EnergyOfMovement.dram_word_per_fp16_multiply", "580"),  # 640 pJ over 1.1 pJ
        ("AnchorLatencies.hopper_global_per_l1", "19.2"),  # 656 over 34.2 cycles
        ("AnchorLatencies.dram_per_l1", "100"),  # two estimates
        ("A100Roofline.ridge_point", "153 FLOP/byte"),  # two datasheets
    ],
)
def test_a_result_has_the_digits_of_its_worst_input(name: str, shown: str) -> None:
    assert str(show(value_of(name))).split() == shown.split()
    assert str(show(value_of(name), digits=9)).split() == shown.split(), "not even if asked for"


def test_an_input_counts_by_what_hangs_on_it() -> None:
    """The latency, 126 times an estimate of 2.7 µs, is less than a thousandth of 551.59 ms."""
    assert precision(value_of("OnePort.planned")) == Precision(3, estimated=False)
    assert precision(value_of("ThousandTensors.now")) == Precision(2, estimated=False)


def test_tables_mark_what_an_estimate_decides() -> None:
    rows = [
        ("Network", value_of("SmallWindow.of_infiniband")),
        ("HBM", value_of("DecodeStep.step_time")),
    ]
    printed = str(table(["", ""], rows))
    assert "≈\N{NO-BREAK SPACE}100" in printed
    assert printed.count("≈") == 1


def test_numbers_of_the_data_are_printed_as_published() -> None:
    assert str(show(constants.get("energy_hbm2_bit"), "pJ/bit")).startswith("3.97")
    assert precision(quantity("1.23456 s")) == Precision(), "no derivation has it"


def test_no_page_prints_more_digits_than_inputs_carry() -> None:
    names: dict[str, Any] = {**derived(), "show": show, "math": math, "words": words}
    count, wrong = 0, {}
    for quote in quotes():
        most_digits = precision(value_of(quote.names[0])).digits
        if most_digits < 17 and quote.expression.startswith("show"):
            count += 1
            shown = str(eval(quote.expression, names))
            digits = re.sub(r"\D", "", NUMBER.search(shown)[0]).strip("0")  # type: ignore[index]
            if len(digits) > most_digits:
                wrong[quote.expression] = (shown, most_digits)
    assert wrong == {}
    assert count > 500, "the lines of derivations are no longer read"


def test_takeaways_mark_estimates() -> None:
    unmarked = {}
    for chapter in chapters():
        takeaways = chapter.read_text(encoding="utf-8").partition("\n## Takeaways")[2]
        for line in takeaways.splitlines():
            for name in QUOTED.findall(line):
                if precision(value_of(name)).estimated and not MARKS.search(line):
                    unmarked[name] = f"{chapter.name}: {line[:80]}"
    assert unmarked == {}, "say about, or ≈, where an estimate decides the number"
