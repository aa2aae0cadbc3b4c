"""Medians and spreads of a clock that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

import numpy
import pytest

from calc import quantity
from calc.measure import NoisyError, timed
from calc.measure.repeated_timing import PLACES, middle, timed_anew


def clock_of(durations: Sequence[float]) -> Callable[[], float]:
    """A clock on which the runs take these times, over and over; it is read around each."""
    now, times, reads = [0.0], cycle(durations), cycle((True, False))

    def clock() -> float:
        if not next(reads):
            now[0] += next(times)
        return now[0]

    return clock


def test_median_and_interquartile_range() -> None:
    durations = [0.10, 0.11, 0.12, 0.10, 0.13, 0.10, 0.11, 0.12, 0.11]
    measured = timed(lambda: None, "a test", clock=clock_of(durations))
    samples = [
        durations[(each + 1) % 9] for each in range(measured.repeats)
    ]  # one run tells the rest
    low, median, high = numpy.percentile(samples, [25, 50, 75])
    assert measured.repeats == 10
    assert measured.value.m_as("s") == pytest.approx(median)
    assert measured.spread == pytest.approx((high - low) / median)


def test_a_noisy_run_is_refused_in_one_sentence() -> None:
    with pytest.raises(NoisyError, match=r"^a test: the middle half of .* 20% is the most") as why:
        timed(lambda: None, "a test", clock=clock_of([0.1, 0.3]))
    assert "\n" not in str(why.value)


def test_a_disturbance_that_passes_is_tried_again() -> None:
    durations = [0.1, *[0.1, 0.4] * 5, *[0.1] * 100]
    measured = timed(lambda: None, "a test", clock=clock_of(durations))
    assert measured.value == quantity("0.1 s")
    assert measured.spread < 1e-6


def test_short_work_is_run_many_times_in_a_sample() -> None:
    runs = [0]

    def work() -> None:
        runs[0] += 1

    measured = timed(work, "a test", clock=clock_of([1e-5, *[2e-3] * 31]))
    assert runs[0] == 2 + 200 * 31
    assert measured.value.m_as("s") == pytest.approx(1e-5)


def test_work_in_several_places_has_the_spread_of_them_all() -> None:
    made, runs = [0], [0]

    def make() -> Callable[[], object]:
        made[0] += 1
        return lambda: runs.__setitem__(0, runs[0] + 1)

    times = [each for each in (0.100, 0.102, 0.104, 0.106, 0.108) for _ in range(8)]  # 1 tells 7
    measured = timed_anew(make, "a test", longest=0.1, clock=clock_of(times))
    assert made[0] == PLACES == 5
    assert measured.repeats == 7 * PLACES
    assert runs[0] == measured.repeats + 2 * PLACES
    assert measured.value.m_as("s") == pytest.approx(0.104)
    assert measured.spread == pytest.approx(0.004 / 0.104)
    apart = [0.1] * 16 + [0.2] * 16 + [0.3] * 8  # steady in each place
    with pytest.raises(NoisyError, match="35 repeats"):
        timed_anew(make, "a test", longest=0.1, clock=clock_of(apart))


def test_rates_and_steps_keep_the_spread() -> None:
    measured = timed(lambda: None, "a test", clock=clock_of([0.1, 0.11]))
    rate = measured.rate(quantity("21 GB"))
    assert rate.value.m_as("GB/s") == pytest.approx(21 / measured.value.m_as("s"))
    assert measured.per(4).value == measured.value / 4
    assert rate.spread == measured.per(4).spread == measured.spread > 0


def test_times_that_a_clock_cannot_tell_from_nothing_are_noise() -> None:
    assert middle([0.0] * 7) == (0.0, float("inf"))
