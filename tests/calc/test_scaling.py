"""Amdahl and Gustafson: published values, limits, and the one run that both describe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import InputError, scaling

fractions = st.floats(0, 1)
processors = st.floats(1, 1e6)


@pytest.mark.parametrize(
    ("serial", "number", "speedup"), [(0.05, 8, 7.65), (0.05, 1000, 950.05), ("10%", 256, 230.5)]
)
def test_published_scaled_speedups(serial: float, number: float, speedup: float) -> None:
    assert scaling.gustafson(serial, number).magnitude == pytest.approx(speedup, rel=1e-12)


@given(fractions, processors)
def test_both_laws_agree_on_one_run(serial: float, number: float) -> None:
    """Gustafson's fraction of a run, converted, makes Amdahl give the same speedup; and back."""
    converted = scaling.serial_fraction_of_serial_run(serial, number)
    scaled = scaling.gustafson(serial, number).magnitude
    assert scaling.amdahl(converted, number).magnitude == pytest.approx(scaled, rel=1e-9)
    back = scaling.serial_fraction_of_parallel_run(converted, number)
    assert back.magnitude == pytest.approx(serial, rel=1e-9, abs=1e-9)


@given(fractions, st.floats(1.01, 1e6))
def test_a_measured_speedup_gives_its_serial_fraction_back(serial: float, number: float) -> None:
    speedup = scaling.amdahl(serial, number)
    fraction = scaling.serial_fraction(speedup, number)
    assert fraction.magnitude == pytest.approx(serial, rel=1e-6, abs=1e-9)


def test_speedups_of_parts_do_not_multiply() -> None:
    """3 × 2 × 2 × 1.5 is 18, and 10 neither; by hand, on fractions of a step."""
    product = 3 * 2 * 2 * 1.5
    assert product == 18
    half, fifth, tenth = (0.5, 3), (0.2, 2), (0.1, 2)
    left = 0.5 / 3 + 0.2 / 2 + 0.1 / 2 + 0.1 / 1.5 + 0.1
    combined = scaling.combined_speedup([half, fifth, tenth, (0.1, 1.5)])
    assert combined.m_as("") == pytest.approx(1 / left)
    assert combined.m_as("") < 2.1
    # All levers on all of the time are one lever: only then is it the product.
    assert scaling.combined_speedup([(1, product)]).m_as("") == pytest.approx(18)
    assert scaling.combined_speedup([]).m_as("") == 1
    # With one lever it is Amdahl's law, and no lever passes its ceiling.
    assert scaling.combined_speedup([(0.95, 8)]).m_as("") == pytest.approx(
        scaling.amdahl(0.05, 8).m_as("")
    )
    assert scaling.combined_speedup([(0.95, 1e12)]).m_as("") == pytest.approx(20)
    assert scaling.combined_speedup([(0.5, 0.5)]).m_as("") == pytest.approx(1 / 1.5)  # slower
    many = scaling.combined_speedup([(np.array([0.1, 0.5]), 2), (0.5, 4)])
    assert many.m_as("") == pytest.approx([1 / 0.575, 1 / 0.375])


def test_fractions_are_of_one_time() -> None:
    with pytest.raises(InputError, match=r"sum to 1 at most; these sum to 1\.1"):
        scaling.combined_speedup([(0.6, 3), (0.5, 2)])
    with pytest.raises(InputError, match="fraction must be between 0 and 1"):
        scaling.combined_speedup([(-0.1, 3)])


def test_the_slope_is_what_one_more_processor_adds() -> None:
    for serial in (0, 0.05, 1):
        for number in (1, 8, 1000):
            step = 1e-4 * number
            above = scaling.amdahl(serial, number + step) - scaling.amdahl(serial, number)
            slope = scaling.amdahl_slope(serial, number + step / 2)
            assert above.magnitude / step == pytest.approx(slope.magnitude, rel=1e-5)


@given(fractions, st.floats(2, 1e6))
def test_gustafson_and_back(serial: float, number: float) -> None:
    speedup = scaling.gustafson(serial, number)
    fraction = scaling.scaled_serial_fraction(speedup, number)
    assert fraction.magnitude == pytest.approx(serial, rel=1e-9, abs=1e-9)


@given(st.floats(0.01, 1), st.floats(0.1, 1e4))
def test_the_speedup_of_a_part_and_back(fraction: float, speedup: float) -> None:
    whole = 1 / (1 - scaling.time_saved(fraction, speedup))
    assert scaling.part_speedup(fraction, whole).magnitude == pytest.approx(speedup, rel=1e-6)


def test_universal_scalability_of_a_published_machine() -> None:
    """A SPARCcenter 2000 in SPEC SDM91, of Gunther's book, as his package usl fits it."""
    fit = 0.0277285, 0.0001044
    most = scaling.most_useful_processors(*fit)
    assert most.magnitude == pytest.approx(96.52, abs=0.03)
    throughput = 89.9952330 * scaling.universal_scalability(most, *fit)
    assert throughput.magnitude == pytest.approx(1884, abs=1)


@given(fractions, st.floats(1e-6, 0.1))
def test_universal_scalability_falls_on_both_sides_of_its_peak(serial: float, pair: float) -> None:
    peak = max(1.0, scaling.most_useful_processors(serial, pair).magnitude)
    at, *beside = (
        scaling.universal_scalability(max(1.0, peak * factor), serial, pair).magnitude
        for factor in (1, 0.8, 1.25)
    )
    assert at >= max(beside)
