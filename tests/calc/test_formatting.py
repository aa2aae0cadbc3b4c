"""Printing of quantities: for people, for the parser again, and in notebooks."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import hardware, quantity
from calc.core import formatting

UNITS = """% byte GB GiB TB/s bit/s FLOP TFLOP/s TOP/s FLOP/byte FLOP/(param·token) param token
    request/s sample USD/token s µs h year m km/s m² pJ/bit J W kWh g GHz 1/s 1/(s·m)"""
units = st.sampled_from(["", *UNITS.split()])
numbers = st.one_of(
    st.floats(-1e20, 1e20).filter(lambda number: number == 0 or abs(number) > 1e-15),
    st.floats(-1e4, 1e4).filter(lambda number: number == 0 or abs(number) > 1e-15),
    st.integers(-(10**6), 10**6),
)


@pytest.mark.parametrize(
    ("grams", "text"),
    [
        (9000, "9000 g"),
        (1.5e4, "15 kg"),
        (999_990, "1 t"),
        (5.981e7, "59.81 t"),
        (5.5e9, "5.5 kt"),
        (4e13, "40 Mt"),
    ],
)
def test_mass_beyond_a_tonne_is_in_tonnes(grams: float, text: str) -> None:
    assert str(quantity(grams, "g")) == text
    assert str(quantity(grams, "kg")).endswith(" kg")  # a unit that somebody chose is kept
    assert str(quantity(grams, "g/kWh")).endswith(" g/kWh")


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        *((unit, 1e19) for unit in ("byte", "FLOP", "W", "J", "bit", "byte/s", "FLOP/s")),
        *((unit, 1e16) for unit in ("g", "token", "param", "token/s", "request")),
        ("m", 1e7),
    ],
)
def test_a_number_that_takes_a_prefix_has_four_digits_before_its_point(
    unit: str, most: float
) -> None:
    """Up to the largest prefix, with the least numbers of each power of ten and the greatest."""
    sizes = [digits * 10.0**power for power in range(19) for digits in (1, 1.2, 3, 9.999)]
    texts = [str(quantity(size, unit)) for size in sizes if size < most]
    assert [text for text in texts if not re.match(r"\d{1,4}(\.\d+)?[^\d.e]", text)] == []


@given(numbers, units)
def test_the_parser_reads_what_is_printed(number: float, unit: str) -> None:
    original = quantity(number, unit)
    again = quantity(str(original)).to(original.units)
    assert math.isclose(again.magnitude, original.magnitude, rel_tol=0.6e-3)  # four digits


@given(numbers, units)
def test_a_format_for_the_number_is_read_too(number: float, unit: str) -> None:
    original = quantity(number, unit)
    again = quantity(f"{original:.13g}").to(original.units)
    assert math.isclose(again.magnitude, original.magnitude, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (quantity("3.35 TB/s"), "3.35 TB/s"),
        (quantity(3.35e12, "byte/s"), "3.35 TB/s"),
        (quantity("989 TFLOP/s") / quantity("3.35 TB/s"), "295.2 TFLOP/TB"),
        (hardware.H100.ridge_point("fp16"), "295.2 FLOP/byte"),
        (quantity("0.5 GB"), "0.5 GB"),
        (quantity("312 TFLOP/s") / quantity("2.039 TFLOP/s"), "153.0"),  # 153.016…
        (quantity(8e9, "byte") / quantity("2 GB"), "4"),
        (quantity(0.81, "s"), "810 ms"),
        (quantity(0.05, "s"), "50 ms"),
        (quantity(961538, "s"), "11.13 day"),
        (quantity(7e9, "param"), "7B param"),
        (quantity("7B param"), "7B param"),
        (quantity(4.2e22, "FLOP"), "4.2e22 FLOP"),
        (quantity("40%"), "0.4"),
        (quantity(40, "%"), "40%"),
        (quantity(5, "1/s"), "5/s"),
        (quantity(0, "GB"), "0 GB"),
        (quantity(-3, "GB"), "-3 GB"),
        (quantity(math.inf, ""), "∞"),
        (quantity([1.5, 2], "GB"), "[1.5 2. ] GB"),
        (quantity(999990, "byte"), "1 MB"),
        (quantity(-999990, "byte"), "-1 MB"),
        (quantity(999.9e3, "byte"), "999.9 kB"),
        (quantity(999999, "param"), "1M param"),
        (quantity(0.99996, "GB/s"), "1 GB/s"),
        (quantity(999.96, "GB/s"), "1000 GB/s"),
        (quantity(1.00004, "GB/s"), "1.000 GB/s"),
        (quantity(99999, "MiB"), "99999 MiB"),
        (quantity(0.99999, "s"), "1 s"),
        (quantity(119.99, "s"), "2 min"),
        (quantity(119.9, "s"), "119.9 s"),
        (quantity(-0.0, "GB"), "0 GB"),
        (quantity([-0.0, 1.0], "GB"), "[0. 1.] GB"),
        (quantity("9 m**2") ** 0.5, "3 m"),
        (quantity("81 m**4") ** 0.5, "9 m²"),
    ],
)
def test_str(value: object, printed: str) -> None:
    assert str(value) == printed
    assert f"{value}" == printed


def test_format() -> None:
    assert f"{quantity('3.14159 GB'):.3g}" == "3.14 GB"
    assert f"{quantity(123456, 'GB'):.2g}" == "1.2e5 GB"
    assert f"{quantity(999990, 'byte'):.6g}" == "999.99 kB"
    assert f"{quantity(-0.0, 'GB'):.1f}" == "0.0 GB"
    assert f"{quantity([1.234, 2], 'GB'):.1f}" == "[1.2 2.0] GB"
    with pytest.raises(ValueError, match="format specifier"):
        f"{quantity('3 GB'):nonsense}"


def test_repr_can_be_read_by_people_and_by_python() -> None:
    original = quantity("3.35 TB/s")
    assert repr(original) == "Quantity(3.35, 'TB/s')"
    assert repr(original.units) == "Unit('TB/s')"


def test_notebooks_show_the_same_text() -> None:
    shown = quantity("295.2 FLOP/byte")
    assert shown._repr_html_() == str(shown)
    assert shown._repr_latex_() is None
    assert shown.units._repr_html_() == "FLOP/byte"
    assert shown.units._repr_latex_() is None

    class Printer:
        text_seen = ""

        def text(self, text: str) -> None:
            self.text_seen += text

    printer = Printer()
    shown._repr_pretty_(printer, cycle=False)
    assert printer.text_seen == str(shown)


def test_html_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "text", lambda quantity, spec="": "<3 & more")
    assert quantity("3 GB")._repr_html_() == "&lt;3 &amp; more"


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        ("4.2e22", "4.2\u00a0×\u00a010²²"),
        ("-1e-5", "−1\u00a0×\u00a010⁻⁵"),
        ("16026", "16\u202f026"),
        ("1365", "1365"),
        ("-0.25", "−0.25"),
    ],
)
def test_printed_number(number: str, printed: str) -> None:
    assert formatting.printed_number(number) == printed


def test_prose_does_not_break_between_number_and_unit() -> None:
    assert formatting.prose(quantity("3.35 TB/s")) == "3.35\u00a0TB/s"
    assert formatting.prose(quantity(996000.0, "byte"), digits=2) == "1\u00a0MB"
    assert formatting.prose(quantity("4.2e22 FLOP")) == "4.2\u00a0×\u00a010²²\u00a0FLOP"


def test_long_arrays_stay_short() -> None:
    assert len(str(quantity(np.arange(1e6), "GB"))) < 200


def test_a_small_part_of_a_year_is_days() -> None:
    assert str(quantity("200 hour").to("year")) == "8.333 day"
    assert str(quantity("0.5 year")) == "0.5 year"
