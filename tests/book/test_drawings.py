"""Every figure draws what its alt text and its caption say, in the units of its axes."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import pairwise, zip_longest
from typing import Any

import pytest

from tests.book import looks
from tests.book.drawings import Drawing, Value, drawing, shown
from tests.book.rendered import REPOSITORY
from tests.rows import each_row
from tools.ledger.numbers import Number, numbers
from tools.ledger.statements import statements

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

FILE = REPOSITORY / "tests" / "figures.toml"
READINGS: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
RECORDED = looks.recorded()
AT = re.compile(r"(\d+ line \S+) y at (\S+)")
MOVES = re.compile(r"\b(rise|climb|grow|fall|drop)s? from (?:about )?$")


def told(figure: str) -> dict[str, str]:
    """The alt text and the caption of a figure, by their kind."""
    return {s.kind: s.text for s in statements() if s.figure == figure}


def problems(figure: str, drawn: Drawing, alt: str, caption: str) -> list[str]:
    """Each way in which a drawing and its words disagree, as a sentence."""
    file = f"figures/{figure}.py"
    reading = READINGS[figure]
    faults = []
    if (axes := drawn.axes()) != reading["axes"]:
        faults.append(f"{file} draws on axes {axes}; tests/figures.toml has {reading['axes']}")
    means, own_means = drawn.means(), reading.get("own", {})
    faults += [
        f"{file} draws “{name}” at values that calc does not give in the unit of its axis; if they"
        f" are its own, tests/figures.toml has their mean, {means.get(name)}"
        for name in sorted(drawn.own() - own_means.keys())
    ]
    faults += [
        f"{file} draws “{name}” at {means.get(name)} in the mean; tests/figures.toml has {mean}"
        for name, mean in own_means.items()
        if means.get(name, 0) != pytest.approx(mean, rel=1e-4)
    ]
    order = zip_longest(drawn.order(), reading["order"])
    if moved := next((pair for pair in order if pair[0] != pair[1]), None):
        faults.append(f"{file} draws “{moved[0]}”; tests/figures.toml has “{moved[1]}” there")
    words = f"{alt} {caption}".lower()
    if ("log-log" in words or "logarithmic" in words or "log axis" in words) != drawn.is_log:
        faults.append(f"{file} and its words disagree on whether an axis is logarithmic")
    in_alt, wanted = list(numbers(alt)), reading["numbers"]
    if len(in_alt) != len(wanted):
        faults.append(
            f"{file} tells {len(in_alt)} numbers in alt(), and tests/figures.toml names what"
            f" {len(wanted)} of them are in the drawing"
        )
        return faults
    values = drawn.values()
    often = Counter(
        n.value for n, name in zip(in_alt, wanted, strict=True) if not name.startswith("=")
    )
    for number, name in zip(in_alt, wanted, strict=True):
        if name == "-" and often[number.value] > shown(figure)[number.value]:
            faults.append(
                f"{file} says in alt() “{number.printed}”, which show() did not print; name in"
                f" tests/figures.toml what is drawn so, or “={number.digits}” if it is a name's"
            )
        elif name != "-" and not is_drawn(number, name, drawn, values):
            around = alt[max(0, number.start - 40) : number.start + len(number.printed)]
            value = values.get(name)
            fits = [key for key, v in values.items() if number.is_close(v.value, v.unit)]
            faults.append(
                f"{file} says in alt() “… {around}”, and draws as “{name}”"
                f" {f'{value.value:.6g} {value.unit}' if value else 'nothing'}; it is drawn as"
                f" {fits[:8] or 'nothing, which is “-”'}, and a name's would be “={number.digits}”"
            )
    for first, second in pairwise(in_alt):
        moves = MOVES.search(alt[: first.start])
        between = alt[first.start + len(first.printed) : second.start]
        if not moves or not re.fullmatch(r" to (?:about )?", between):
            continue
        if (first.value < second.value) == (moves[1] in ("fall", "drop")):
            faults.append(f"{file} says “{moves[0]}{first.printed} to {second.printed}”")
    return faults


def is_drawn(number: Number, name: str, drawn: Drawing, values: dict[str, Value]) -> bool:
    if name.startswith("="):
        return name[1:] == number.digits
    if on_line := AT.fullmatch(name):
        return number.is_close(drawn.at(on_line[1], float(on_line[2])), number.unit)
    return name in values and number.is_close(values[name].value, values[name].unit)


@pytest.mark.parametrize("figure", READINGS)
def test_a_figure_draws_what_it_says(figure: str) -> None:
    words = told(figure)
    found = problems(figure, drawing(figure), words["alt text"], words.get("caption", ""))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("figure", READINGS)
def test_a_figure_looks_as_it_was_looked_at(figure: str) -> None:
    """After a look at the figure, `python -m tests.book.looks` says that it is meant so."""
    differences = looks.differences(figure, RECORDED.get(figure, {}))
    assert not differences, "\n".join(differences)


def test_every_figure_is_read() -> None:
    drawn = {statement.figure for statement in statements() if statement.figure}
    assert drawn == set(READINGS), "tests/figures.toml names what each drawn figure draws"


def test_every_figure_is_drawn_for_phones_too() -> None:
    once = [
        figure
        for figure in READINGS
        if "\n@style.drawn_twice\ndef draw("
        not in (REPOSITORY / f"figures/{figure}.py").read_text()
    ]
    assert once == []


def test_most_numbers_of_alt_texts_are_drawn() -> None:
    names = [name for reading in READINGS.values() for name in reading["numbers"]]
    assert sum(name.startswith(("-", "=")) for name in names) < 0.2 * len(names)


def test_a_number_is_read_with_its_unit_and_its_last_digit() -> None:
    with each_row() as row:
        for text, value, step, unit in (
            ("45 000 ns", 45000, 1000, "ns"),
            ("1.2 × 10⁻⁷ of it", 1.2e-7, 1e-8, ""),
            ("of 7 billion parameters", 7e9, 1e9, "parameters"),
            ("−5.0%", -5, 0.1, "%"),
            ("ends at 65 504.", 65504, 1, ""),
        ):
            with row(text):
                (number,) = numbers(text)
                assert number.unit == unit
                assert number.value == pytest.approx(value)
                assert number.step == pytest.approx(step)
    assert not list(numbers("Llama 3.1 70B on an H100 in FP8"))


def test_a_figure_whose_drawing_is_not_written_down_is_no_look() -> None:
    with pytest.raises(SystemExit, match="write what two_shares draws into"):
        looks.write(["two_shares"])
