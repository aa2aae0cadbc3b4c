"""How far off an expectation may be: 80 % intervals, from published rows like what is asked.

`data/intervals.csv` has, by class of rows, between which factors of what is expected the middle
80 % of what was measured lie. Classes are training, serving, and the first tokens and those after
them that the clients of a closed loop meet, by software, by whether the model
is a mixture, and by what they stand on: measured rates and stated conditions, or some that were
filled in, of kin, of usual shares, of the fastest layout. Where a class has fewer than twenty rows
or one source alone, the next wider one counts. A source counts as 25 rows at most, since rows of
one source are alike, and a reader's own server is no row of it. `python -m benchmarks.intervals`
writes the file, and prints how many rows lie inside that were kept back, by thirds and by whole
sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from calc.core.errors import InputError
from calc.core.records import DATA, read_rows
from calc.core.units import Quantity

FILE = DATA / "intervals.csv"
COLUMNS = ("work", "software", "model", "basis", "rows", "sources", "median_error", "low", "high")
WORK = TRAINING, SERVING, FIRST_TOKENS, TOKENS = (
    *("training", "serving"),
    *("first tokens under load", "tokens under load"),
)
MODELS = ("mixture", "dense")
FILLED = ("measured", "filled")
LEVEL = 0.8
BASES = MEASURED, KIN, PEAKS = "measured rates", "rates of kin", "published peaks alone"
"""What an answer may stand on, the nearest first; a bound is ranked against no expectation."""


Class = tuple[str, str, str, str]
"""Work, software, model and basis."""


@dataclass(frozen=True)
class Interval:
    """Factors of an expectation between which 80 % of the rows of a class lie."""

    work: str
    software: str
    """A key of `calc.software`; of all where it is empty."""
    model: str
    """mixture or dense; both where it is empty."""
    basis: str
    """measured, or filled where a rate or a condition was; both where it is empty."""
    rows: int
    sources: int
    median_error: float
    low: float
    high: float

    def around(self, expected: Quantity) -> tuple[Quantity, Quantity]:
        """The least and the most that an expected time, or what grows with it, may be."""
        return expected * self.low, expected * self.high

    def around_rate(self, expected: Quantity) -> tuple[Quantity, Quantity]:
        """The same of a rate, which falls as times grow."""
        return expected / self.high, expected / self.low

    @property
    def kind(self) -> str:
        """The class of rows in words."""
        models = {"mixture": " of mixtures", "dense": " of dense models", "": ""}[self.model]
        filled = ", filled in" if self.basis == FILLED[1] else ""
        return f"{self.work}{models}{f' by {self.software}' if self.software else ''}{filled}"

    def __str__(self) -> str:
        low, high = (f"{100 * (end - 1):+.0f}" for end in (self.low, self.high))
        told = "" if self.software and self.model else f" ({self.kind})"
        return (
            f"{self.rows} such rows{told}: half within {self.median_error:.0%}, 80% in"
            f" {low} … {high}%".replace("-", "\N{MINUS SIGN}")
        )


def load(path: Path | str = FILE) -> Iterator[Interval]:
    """Every class of a file, checked.

    >>> next(load()).work
    'first tokens under load'
    """
    for row in read_rows(path, COLUMNS):
        names = row["work"], row["software"], row["model"], row["basis"]
        try:
            numbers = int(row["rows"]), int(row["sources"]), float(row["median_error"])
            low, high = float(row["low"]), float(row["high"])
        except ValueError:
            raise InputError(f"{path}: {' '.join(names)}: what it counts must be numbers") from None
        if not 0 < low <= high:
            raise InputError(f"{path}: {' '.join(names)}: low must be positive, and high above it")
        yield Interval(*names, *numbers, low, high)


@cache
def _stored() -> dict[Class, Interval]:
    return {(row.work, row.software, row.model, row.basis): row for row in load()}


def of(work: str, software: str, mixture: bool, filled: bool = False) -> Interval:
    """The interval of the finest class that has rows enough.

    >>> interval = of("serving", "vllm", mixture=False)
    >>> interval.rows > 100, interval.low < 1 < interval.high
    (True, True)
    """
    model, basis = MODELS[not mixture], FILLED[filled]
    known = _stored()
    for names in classes(work, software, model, basis):
        if names in known:
            return known[names]
    raise InputError(f"work is one of {', '.join(WORK)}; got {work!r}")


def classes(work: str, software: str, model: str, basis: str) -> tuple[Class, ...]:
    """The classes of a row, the finest first.

    >>> classes("serving", "vllm", "dense", "measured")[1]
    ('serving', '', 'dense', 'measured')
    """
    wider = (work, "", model, basis), (work, "", "", basis), (work, "", "", "")
    return (work, software, model, basis), *wider
