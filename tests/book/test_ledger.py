"""Every quoted number has a witness beside it, which is executed, agrees, and notices a fault."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from calc.core.units import Quantity
from calc.derivations.by_hand import by_hand, counted, no_hand, row_by_hand
from calc.derivations.cards import is_given
from calc.derivations.ledger import CLAIMS
from calc.derivations.traces import bare, kept
from tests.book.counts import COUNTS
from tests.rows import each_row
from tools.ledger import chapter_tables
from tools.ledger.faults import of_classes, of_names, of_results, of_witnesses
from tools.ledger.quotes import Quote, quotes
from tools.ledger.rows import derived, numbers, place_of, value_of, witnesses_of_rows
from tools.pages import ROOT

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

PLANTED = 60
NUMBER = re.compile(r"(?<![\w.{])\d+(?:\.\d+)?")
UNITS = {"GB": "MB", "byte": "bit", "TFLOP/s": "GFLOP/s", "s": "ms", "ms": "s", "us": "ms"}


def test_values_and_witnesses_agree() -> None:
    wrong = list(of_witnesses(numbers()))
    assert not wrong, "\n".join(map(str, wrong))
    with each_row() as row:
        for name, value in numbers().items():
            if isinstance(value.witness, counted):
                with row(f"{place_of(name)} {name}"):
                    magnitude = value.magnitude if isinstance(value, Quantity) else value
                    again = COUNTS[value.witness.name]()
                    assert magnitude == (
                        again if isinstance(again, str) else pytest.approx(again, rel=1e-5)
                    )


def test_what_chapters_quote_is_a_row_with_a_witness_and_one_name() -> None:
    assert list(of_names(quotes())) == []
    assert list(of_results(quotes())) == []


def test_inputs_are_told_from_results() -> None:
    inputs = ["A100Roofline.n", "A100Roofline.peak", "DecodeStep.parameters", "LightInFibre.speed"]
    results = ["A100Roofline.ridge_point", "IronLaw.added", "DecodeStep.ridge_point"]
    assert [name for name in inputs if not is_given(value_of(name))] == []
    assert [name for name in results if is_given(value_of(name))] == []


def test_few_numbers_have_no_witness_that_is_executed_and_each_says_why() -> None:
    without = {name: row for name, row in numbers().items() if isinstance(row.witness, no_hand)}
    assert [name for name, row in without.items() if not row.witness.why.strip()] == []
    listing = "\n".join(
        f"{place_of(name)} {name}: {row.witness.why}" for name, row in without.items()
    )
    results = [name for name, row in numbers().items() if not is_given(row)]
    assert len(without) <= 0.05 * len(results), f"{len(without)} of {len(results)}:\n{listing}"


def test_every_witness_is_of_something_shown() -> None:
    quoted = {name for quote in quotes() for name in quote.names}
    figures = (path.read_text(encoding="utf-8") for path in (ROOT / "figures").glob("*.py"))
    drawn = set(re.findall(r"\b[A-Z]\w*\.[a-z]\w*", " ".join(figures)))
    assert set(numbers()) <= quoted | drawn, "rows that nothing shows need no witness"


# --- tables ---


def test_each_table_has_a_row_by_hand() -> None:
    derived()
    with each_row() as row:
        for name, table in chapter_tables.computed().items():
            with row(name):
                witnesses = [each for of in table.made_of for each in witnesses_of_rows(of)]
                assert any(held(witness, name) for witness in witnesses), (
                    f"of {table.made_of} no row is one of {[each.cells for each in witnesses]}:"
                    f" {chapter_tables.rows()[name]}"
                )


def test_each_row_by_hand_is_in_a_table() -> None:
    made = {of for table in chapter_tables.computed().values() for of in table.made_of}
    with each_row() as row:
        for rows in sorted(made):
            of = [
                name for name, table in chapter_tables.computed().items() if rows in table.made_of
            ]
            for witness in witnesses_of_rows(rows):
                with row(f"{rows}: {witness.cells}"):
                    assert any(held(witness, name) for name in of)


def held(witness: row_by_hand, name: str) -> bool:
    """Return whether a row of the table of that name is as the witness has it."""
    table = chapter_tables.computed()[name]
    owners = {rows.partition(".")[0] for rows in table.made_of}
    pairs = list(
        zip(map(chapter_tables.words, chapter_tables.rows()[name]), table.shown.rows, strict=True)
    )
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
        planted, owner = by_hand(written), name.partition(".")[0]
        # A digit under a ceiling, or behind the lower of two limits, may change nothing.
        if not planted.fault(value) and planted.gives(owner) != value.witness.gives(owner):
            missed.append((name, value.witness.written, written))
    assert missed == []


def changed(written: str, chance: random.Random) -> str:
    """Arithmetic with one digit, unit or factor changed; "" where it has none."""
    kind = chance.choice(["digit", "unit", "factor", "another row's"])
    matches = [each for each in NUMBER.finditer(written) if each[0].strip("0.")]
    if kind == "unit":
        for unit, other in UNITS.items():
            if re.search(rf"(?<=\d ){unit}\b(?!/)", written):
                return re.sub(rf"(?<=\d ){unit}\b(?!/)", other, written, count=1)
    if kind == "factor":
        return f"({written}) * {chance.choice([2, 8, 1000, 1024])}"
    if kind != "another row's" and matches:
        start = chance.choice(matches).start()
        other = chance.choice([digit for digit in "123456789" if digit != written[start]])
        return f"{written[:start]}{other}{written[start + 1 :]}"
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
        ("3 s", "by hand it is 3 s, where calc has 153.0 FLOP/byte: a quantity in FLOP/byte is"),
        ("3 FLOP/B", "by hand it is 3 FLOP/byte, and by calc 153.016 FLOP/byte"),
    ],
)
def test_what_is_wrong_with_a_witness_is_a_sentence(written: str, wanted: str) -> None:
    assert wanted in by_hand(written).fault(value_of("A100Roofline.ridge_point"))
    assert "A100Roofline" in CLAIMS


def test_faults_of_quoted_rows_name_the_file_the_line_and_what_is_wanted(tmp_path: Path) -> None:
    chapter = ROOT / "chapters" / "roofline.qmd"
    other = ROOT / "chapters" / "serving.qmd"

    def quoted(name: str, of: Path = chapter) -> Quote:
        return Quote(of, 7, f"show({name})")

    ridge = "A100Roofline.ridge_point"
    wrong = kept(value_of(ridge), ridge, witness=by_hand("3 GB /"))
    file_and_line = r"calc/derivations/roofline_chapter\.py:\d+"
    (message,) = of_witnesses({ridge: wrong})
    assert re.fullmatch(
        f"{file_and_line}: {ridge}: .* needs a number where it has 'the end'.", message
    )
    (message,) = of_names([quoted("A100Roofline.ridgepoint"), quoted(ridge)])
    assert message == (
        "chapters/roofline.qmd:7: A100Roofline.ridgepoint is no row of calc.derivations;"
        f" {ridge} is one."
    )
    (message,) = of_names([quoted("AsSold.block")])
    assert (
        message == "chapters/roofline.qmd:7: AsSold is quoted, and no cell of the page imports it."
    )
    (message,) = of_names([Quote(chapter, 7, f"spelled({ridge})")])
    assert (
        message
        == "chapters/roofline.qmd:7: spelled() is called, and no cell of the page imports it."
    )
    (message,) = of_results(
        [quoted("ModelTooLarge.int4_time"), quoted("WeightsOrBoth.token_int4", other)]
    )
    assert message == (
        "chapters/serving.qmd:7: WeightsOrBoth.token_int4 is ModelTooLarge.int4_time at"
        " chapters/roofline.qmd:7: quote it by that name."
    )
    (message,) = of_results([quoted("A100Roofline.relu_time")])
    assert re.fullmatch(
        f"{file_and_line}: A100Roofline.relu_time is quoted, and needs a witness: .*", message
    )
    for name in ("roofline_chapter", "serving_chapter"):
        (tmp_path / "calc" / "derivations").mkdir(parents=True, exist_ok=True)
        file = tmp_path / "calc" / "derivations" / f"{name}.py"
        file.write_text("\nclass Ridge(Claims):\n    batch = 8\n", encoding="utf-8")
    (message,) = of_classes(sorted(tmp_path.rglob("*.py")))
    assert message == (
        "calc/derivations/serving_chapter.py:2: Ridge is the name of claims at"
        " calc/derivations/roofline_chapter.py:2: choose another."
    )
