"""Times of repeated work: the median, how far the repeats lie apart, and a refusal of noise."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from calc.core.errors import InputError
from calc.core.units import Quantity, quantity

NOISY = 0.2
TRIES = 3
SHORTEST = 2e-3  # seconds of a sample: the clock and the loop around short work must not be seen
LONGEST = 1.0  # seconds that all repeats together may take, once there are FEWEST
FEWEST, MOST = 7, 31
PLACES = 5


class NoisyError(InputError):
    """Repeats of one measurement lie too far apart for their median to mean anything."""


@dataclass(frozen=True)
class Measured:
    """The median of some repeats, and their interquartile range as a share of it."""

    value: Quantity
    spread: float
    repeats: int
    how: str

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.spread:.1%}"

    def rate(self, amount: Quantity) -> Measured:
        """Return the rate of so much work in this time; medians and quartiles swap alike."""
        return Measured(amount / self.value, self.spread, self.repeats, self.how)

    def per(self, count: int) -> Measured:
        """The time of one of so many equal steps."""
        return Measured(self.value / count, self.spread, self.repeats, self.how)


def timed(
    work: Callable[[], object],
    what: str,
    *,
    longest: float = LONGEST,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured:
    """The time of `work`, which is `what` in a sentence.

    The first run warms up caches, pages and clocks. Work shorter than SHORTEST is run several times
    in a sample. Where the middle half of the repeats spans more than a fifth of their median,
    something else was running, and the whole is tried again, twice at most.

    Raises NoisyError where the last try is as noisy.

    >>> from itertools import count
    >>> clock = count().__next__  # goes on by a second whenever it is read
    >>> print(timed(lambda: None, "nothing", clock=clock))
    1 s ± 0.0%
    """
    return _steady(lambda: _repeats(work, longest, clock), what)


def timed_anew(
    make: Callable[[], Callable[[], object]],
    what: str,
    *,
    longest: float = LONGEST,
    clock: Callable[[], float] = time.perf_counter,
) -> Measured:
    """The time of the work that `make` returns, each time with arrays of its own.

    Which pages of memory an array gets decides which sets of a cache it competes for, and repeats
    in one place never show it. So it is timed in PLACES places that exist at once, one after the
    other; median and spread are those of all repeats.
    """
    works = [make() for _ in range(PLACES)]
    share = longest / PLACES
    return _steady(lambda: [s for work in works for s in _repeats(work, share, clock)], what)


def _repeats(work: Callable[[], object], longest: float, clock: Callable[[], float]) -> list[float]:
    work()
    start = clock()
    work()
    once = clock() - start
    runs = max(1, round(SHORTEST / max(once, 1e-9)))
    repeats = min(MOST, max(FEWEST, int(longest / max(once * runs, 1e-9))))
    return [_sample(work, runs, clock) for _ in range(repeats)]


def _steady(draw: Callable[[], list[float]], what: str) -> Measured:
    """The median of the samples that `draw` takes, once the middle half of them is close enough."""
    for _ in range(TRIES):
        samples = draw()
        median, spread = middle(samples)
        if spread <= NOISY:
            return Measured(quantity(median, "s"), spread, len(samples), what)
    raise NoisyError(
        f"{what}: the middle half of {len(samples)} repeats spans {spread:.0%} of their median, and"
        f" {NOISY:.0%} is the most that is reported; try again while nothing else is running"
    )


def middle(samples: list[float]) -> tuple[float, float]:
    """The median, and the range of the middle half as a share of it: no end of it where it is 0."""
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return median, (high - low) / median if median else math.inf


def _sample(work: Callable[[], object], runs: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(runs):
        work()
    return (clock() - start) / runs
