"""Intervals of 80 % around expectations, from published rows like what is asked.

`data/intervals.csv` has, by class of rows, between which factors of what is expected the middle 80
% of what was measured lie. Classes are training, serving, and the first tokens and those after them
that the clients of a closed loop meet, tokens and prompts of models that a host holds a part of, by
software, by whether the model is a mixture, and by what they stand on: measured rates and stated
conditions, or some that were filled in, of kin, of usual shares, of the fastest layout. Where a
class has fewer than twenty rows or one source alone, the next wider one counts, and beside a class
of fewer than five sources the rows of the next wider one have half a source's weight for each that
is missing; an interval of what was filled in includes that of the same class measured. A source
counts as 25 rows at most, since rows of one source are alike, and a reader's own server is no row
of it. Loops of a server that the best kernels could not be are in no class. `python -m
benchmarks.intervals` writes the file, and prints how many rows lie inside that were kept back, by
thirds and by whole sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from calc.catalog import software as programs
from calc.core.arrays import Number
from calc.core.elementwise import expm1, log, maximum, minimum
from calc.core.errors import InputError
from calc.core.records import DATA, read_rows
from calc.core.units import Quantity, quantity

FILE = DATA / "intervals.csv"
OF_IMAGES = DATA / "image_intervals.csv"
COLUMNS = ("work", "software", "model", "basis", "rows", "sources", "median_error", "low", "high")
WORK = TRAINING, SERVING, FIRST_TOKENS, TOKENS, SPLIT, SPLIT_PROMPTS, DRAFTS = (
    *("training", "serving"),
    *("first tokens under load", "tokens under load"),
    *("tokens of split models", "prompts of split models", "gains of drafts"),
)
IMAGES, TOGETHER = "images and videos", "images and videos made together"
"""Kinds of work of one device, and of several; `python -m benchmarks.images` writes their own file.
"""
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

    def around(
        self, expected: Quantity, bound: Quantity | None = None, rate: bool = False
    ) -> Around:
        """The range of an expected time, or what grows with it, or else of a rate."""
        return around(expected, self.low, self.high, bound, rate)

    @property
    def kind(self) -> str:
        """The class of rows in words.

        >>> interval_of("serving", "vllm", mixture=False).kind
        'serving by vLLM, dense models, nothing filled in'
        """
        by = programs.get(self.software).name if self.software else "any software"
        models = {"mixture": "mixtures of experts", "dense": "dense models", "": "any model"}
        bases = {
            "measured": "nothing filled in",
            "filled": "rates or conditions filled in",
            "": "filled in or not",
        }
        return f"{self.work} by {by}, {models[self.model]}, {bases[self.basis]}"

    def __str__(self) -> str:
        """The sentence of a range: which rows count, and where they lie.

        >>> str(interval_of("serving", "vllm", mixture=False)).partition(": ")[2]
        'half within 6.4%, 80% of times in −18.7 … +9.5%'
        """
        return f"{self.rows} published rows ({self.kind}): half within {self.spread}"

    @property
    def spread(self) -> str:
        """Return how far off half of the rows were, and between what 80 % of times lie."""
        return f"{self.median_error:.1%}, 80% of times in {signed(self.low)} … {signed(self.high)}%"


def signed(factor: float) -> str:
    """A factor as a share in percent, with its sign and as many digits as the data have.

    >>> signed(0.429), signed(1.5)
    ('−57.1', '+50')
    """
    return f"{round(100 * (factor - 1), 1):+g}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Around:
    """The range of what is expected: factors of it, but where a bound cuts an end.

    Of arrays the ends are arrays.
    """

    expected: Quantity
    low: Quantity
    high: Quantity
    bound: Quantity | None = None
    """What no program beats."""

    @property
    def ends(self) -> tuple[Quantity, Quantity]:
        """The least and the most."""
        return self.low, self.high

    @property
    def cut(self) -> str | None:
        """The end that is the bound's, "low" of a time or "high" of a rate; None where none is."""
        if self.bound is None or self.bound == self.expected:
            return None
        return next((end for end in ENDS if getattr(self, end) == self.bound), None)

    @property
    def facts(self) -> dict[str, object]:
        """The range by names that stay."""
        return {"low": self.low, "high": self.high, "cut": self.cut}

    def told(self, expected: str = "") -> str:
        """Return both ends in three digits, in the unit of what is printed; ≥ or ≤ marks the bound.

        >>> from calc import quantity
        >>> print(around(quantity("10 ms"), 0.5, 1.5, quantity("8 ms")).told())
        ≥8 to 15 ms
        """
        printed = expected or str(self.expected)
        unit = "%" if printed.endswith("%") else printed.partition(" ")[2]
        return f"{marked(self.facts, unit, ' to ')} {unit}".rstrip()

    def __str__(self) -> str:
        """Return where the bound cuts it, and how far that is from what is expected.

        >>> from calc import quantity
        >>> print(around(quantity("10 ms"), 0.5, 1.5, quantity("8 ms")))
        8 ms (−20%)
        """
        share = float((self.bound / self.expected).m_as("")) if self.bound is not None else 1.0
        return f"{self.bound} ({signed(share)}%)"


def marked(facts: Mapping[str, Any], unit: str, between: str) -> str:
    """Return both ends of a range as numbers of that unit, what is a bound behind its sign.

    >>> from calc import quantity
    >>> facts = {"low": quantity("8 ms"), "high": quantity("15 ms"), "cut": "low"}
    >>> print(marked(facts, "ms", " to "))
    ≥8 to 15
    """
    return between.join(
        f"{sign if end == facts['cut'] else ''}{three(facts[end], unit)}"
        for end, sign in ENDS.items()
    )


def three(value: Quantity, unit: str) -> str:
    """Return a number in three digits, in that unit.

    >>> from calc import quantity
    >>> print(three(quantity("0.0123456 s"), "ms"))
    12.3
    """
    return str(quantity(float(f"{value.m_as(unit):.3g}"), ""))


def cuts(ranges: Mapping[str, Around | None]) -> str:
    """Return the clause that says which ranges end at a bound, or "" where none does.

    >>> from calc import quantity
    >>> print(cuts({"token": around(quantity("10 ms"), 0.5, 1.5, quantity("8 ms"))}))
    ; the bound cuts token at 8 ms (−20%)
    """
    clauses = [f"{name} at {each}" for name, each in ranges.items() if each and each.cut]
    return f"; the bound cuts {', '.join(clauses)}" if clauses else ""


ENDS = {"low": "≥", "high": "≤"}
"""The ends of a range, and what marks one that is a bound."""


def around(
    expected: Quantity, low: Number, high: Number, bound: Quantity | None = None, rate: bool = False
) -> Around:
    """The range between two factors of a time, no end beyond the bound that no program beats.

    A rate falls as times grow, and its bound is at the other end.

    >>> from calc import quantity
    >>> found = around(quantity("10 ms"), 0.5, 1.5, quantity("8 ms"))
    >>> print(found.low, found.high, found.cut)
    8 ms 15 ms low
    """
    least, most = (expected / high, expected / low) if rate else (expected * low, expected * high)
    if bound is not None and rate:
        most = minimum(most, bound)
    elif bound is not None:
        least = maximum(least, bound)
    return Around(expected, least, most, bound)


def of_both(one: Sequence[Number], other: Sequence[Number]) -> tuple[Number, Number]:
    """The low and the high factor that two causes make which know nothing of each other.

    >>> low, high = of_both((0.8, 1.2), (0.6, 1.0))
    >>> print(f"{low:.3f} {high:.1f}")
    0.573 1.2
    """
    low, high = (
        (log(side(first, 1.0)) ** 2 + log(side(second, 1.0)) ** 2) ** 0.5
        for side, first, second in zip((minimum, maximum), one, other, strict=True)
    )
    return 1 + expm1(-low), 1 + expm1(high)


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
    stored = (row for path in (FILE, OF_IMAGES) for row in load(path))
    return {(row.work, row.software, row.model, row.basis): row for row in stored}


def interval_of(work: str, software: str, mixture: bool, filled: bool = False) -> Interval:
    """The interval of the finest class that has rows enough.

    >>> interval = interval_of("serving", "vllm", mixture=False)
    >>> interval.rows > 100, interval.low < 1 < interval.high
    (True, True)
    """
    model, basis = MODELS[not mixture], FILLED[filled]
    stored = _stored()
    for names in classes(work, software, model, basis):
        if names in stored:
            return stored[names]
    raise InputError(f"work is one of {', '.join((*WORK, IMAGES, TOGETHER))}; got {work!r}")


def classes(work: str, software: str, model: str, basis: str) -> tuple[Class, ...]:
    """The classes of a row, the finest first.

    >>> classes("serving", "vllm", "dense", "measured")[1]
    ('serving', '', 'dense', 'measured')
    """
    wider = (work, "", model, basis), (work, "", "", basis), (work, "", "", "")
    return (work, software, model, basis), *wider
