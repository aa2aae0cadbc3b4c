"""Every quoted number has a witness beside it, which is executed, agrees, and notices a fault."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from calc.core.units import Quantity
from calc.derivations.by_hand import by_hand, counted, no_hand, row_by_hand
from calc.derivations.cards import is_given
from calc.derivations.claims import CLAIMS
from calc.derivations.traces import bare, kept
from tests.book import tables
from tests.book.counts import COUNTS
from tests.book.ledger import derived, numbers, place_of, value_of, witnesses_of_rows
from tests.book.rendered import REPOSITORY, quotes
from tests.rows import each_row

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

PLANTED = 60
NUMBER = re.compile(r"(?<![\w.{])\d+(?:\.\d+)?")
UNITS = {"GB": "MB", "byte": "bit", "TFLOP/s": "GFLOP/s", "s": "ms", "ms": "s", "us": "ms"}


def test_values_and_witnesses_agree() -> None:
    with each_row() as row:
        for name, value in numbers().items():
            with row(f"{place_of(name)} {name}"):
                if isinstance(value.witness, counted):
                    number = value.magnitude if isinstance(value, Quantity) else value
                    assert number == pytest.approx(COUNTS[value.witness.name](), rel=1e-5)
                assert value.witness.fault(value) == ""


def test_every_quoted_result_has_a_witness() -> None:
    derived()
    missing = {
        f"{quote.chapter.name}: {name}"
        for quote in quotes()
        for name in quote.names
        if name not in numbers() and not is_given(value_of(name))
    }
    assert not missing, (
        'these results are quoted: write beside each how it is had by hand, as in `| by_hand("10 ms'
        ' + 8 Gbit / 10 Gbit/s")`; an input is a bare quantity("1 GB"), with nothing after it'
    )


def test_inputs_are_told_from_results() -> None:
    given = ["A100Roofline.n", "A100Roofline.peak", "DecodeStep.parameters", "LightInFibre.speed"]
    results = ["A100Roofline.ridge_point", "IronLaw.added", "DecodeStep.ridge_point"]
    assert [name for name in given if not is_given(value_of(name))] == []
    assert [name for name in results if is_given(value_of(name))] == []


def test_few_numbers_have_no_arithmetic_and_each_says_why() -> None:
    without = {name: row for name, row in numbers().items() if isinstance(row.witness, no_hand)}
    assert [name for name, row in without.items() if not row.witness.why.strip()] == []
    assert len(without) < 0.08 * len(numbers())


def test_every_witness_is_of_something_shown() -> None:
    quoted = {name for quote in quotes() for name in quote.names}
    figures = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "figures").glob("*.py"))
    drawn = set(re.findall(r"\b[A-Z]\w*\.[a-z]\w*", " ".join(figures)))
    assert set(numbers()) <= quoted | drawn, "rows that nothing shows need no witness"


# --- tables ---


def test_each_table_has_a_row_by_hand() -> None:
    derived()
    with each_row() as row:
        for name, table in tables.computed().items():
            with row(name):
                witnesses = [each for of in table.made_of for each in witnesses_of_rows(of)]
                assert any(held(witness, name) for witness in witnesses), (
                    f"of {table.made_of} no row is one of {[each.cells for each in witnesses]}:"
                    f" {tables.rows()[name]}"
                )


def test_each_row_by_hand_is_in_a_table() -> None:
    made = {of for table in tables.computed().values() for of in table.made_of}
    with each_row() as row:
        for rows in sorted(made):
            of = [name for name, table in tables.computed().items() if rows in table.made_of]
            for witness in witnesses_of_rows(rows):
                with row(f"{rows}: {witness.cells}"):
                    assert any(held(witness, name) for name in of)


def held(witness: row_by_hand, name: str) -> bool:
    """Return whether a row of the table of that name is as the witness has it."""
    table = tables.computed()[name]
    owners = {rows.partition(".")[0] for rows in table.made_of}
    pairs = list(zip(map(tables.words, tables.rows()[name]), table.shown.rows, strict=True))
    return any(witness.agrees(owner, *pair) for owner in owners for pair in pairs)


# --- planted faults ---


def test_planted_witnesses_are_noticed() -> None:
    chance = random.Random(46)
    rows = {name: row for name, row in numbers().items() if isinstance(row.witness, by_hand)}
    missed = []
    for name in chance.sample(sorted(rows), PLANTED):
        value = rows[name]
        written = (
            changed(value.witness.written, chance)
            or rows[chance.choice(sorted(rows))].witness.written
        )
        if not by_hand(written).fault(value):
            missed.append((name, value.witness.written, written))
    assert missed == []


def changed(written: str, chance: random.Random) -> str:
    """Arithmetic with one digit, unit or factor changed; "" where it has none."""
    kind = chance.choice(["digit", "unit", "factor", "another row's"])
    found = [each for each in NUMBER.finditer(written) if each[0].strip("0.")]
    if kind == "unit":
        for unit, other in UNITS.items():
            if re.search(rf"(?<=\d ){unit}\b(?!/)", written):
                return re.sub(rf"(?<=\d ){unit}\b(?!/)", other, written, count=1)
    if kind == "factor":
        return f"({written}) * {chance.choice([2, 8, 1000, 1024])}"
    if kind != "another row's" and found:
        place = chance.choice(found).start()
        other = chance.choice([digit for digit in "123456789" if digit != written[place]])
        return f"{written[:place]}{other}{written[place + 1 :]}"
    return ""


def test_planted_values_are_noticed() -> None:
    chance = random.Random(47)
    rows = {
        name: row
        for name, row in numbers().items()
        if isinstance(row.witness, by_hand | no_hand) and not isinstance(row, str)
    }
    missed = []
    for name in chance.sample(sorted(rows), PLANTED):
        value = bare(rows[name])
        wrong: Any = value * chance.choice([1.01, 0.5, 2, 10, 1024]) if value else value + 1
        if isinstance(value, Quantity) and chance.random() < 0.25:
            wrong = bare(rows[chance.choice(sorted(rows))])
        if wrong != value and not rows[name].witness.fault(kept(wrong, name)):
            missed.append((name, value, wrong))
    assert missed == []


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("3 GB /", "needs a number where it has 'the end'"),
        ("3 GB 4", "needs an operator where it has '4'"),
        ("(3 GB", "needs a closing bracket where it has 'the end'"),
        ("root(3)", "calls root(); known are ceil,"),
        ("{nothing}", "{nothing} is no row that has arithmetic by hand"),
        ("3 GBB", "GBB"),
        ("3 s", "by hand it is 3 s, and 153.0 FLOP/byte has another unit"),
        ("3 FLOP/B", "by hand it is 3 FLOP/byte, and by calc 153.0 FLOP/byte"),
    ],
)
def test_what_is_wrong_with_a_witness_is_a_sentence(written: str, wanted: str) -> None:
    assert wanted in by_hand(written).fault(value_of("A100Roofline.ridge_point"))
    assert "A100Roofline" in CLAIMS
