"""Comparisons summed up: by group, machine and software, and the worst rows by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from calc.core.formatting import columns
from calc.published.prediction import Comparison

WORST = 10


@dataclass(frozen=True)
class Summary:
    """What the comparisons of one kind have in common."""

    of: str
    rows: int
    usable: int
    """Rows that have a bound."""
    expected: int
    """Rows that have an expectation too."""
    faster_than_lower: int
    slower_than_upper: int
    share_of_bound: float | None
    """The median of the bound over what was measured."""
    median_error: float | None
    """The median of |measured / expected − 1|."""
    largest_errors: float | None
    """Its 90th percentile: nine tenths of the rows are no further off."""


def summary(
    comparisons: Sequence[Comparison], by: Callable[[Comparison], str] = lambda each: each.row.group
) -> list[Summary]:
    """A summary of each kind, by group of rows where nothing else is said.

    >>> from calc import published
    >>> [of_serving] = summary(published.compare(published.rows("serving")[:10]))
    >>> of_serving.rows, of_serving.faster_than_lower
    (10, 0)
    """
    kinds: dict[str, list[Comparison]] = {}
    for each in comparisons:
        kinds.setdefault(by(each), []).append(each)
    return [_summary(name, kinds[name]) for name in kinds]


def _summary(name: str, comparisons: Sequence[Comparison]) -> Summary:
    shares = [each.share_of_bound for each in comparisons if each.share_of_bound is not None]
    errors = sorted(abs(each.error) for each in comparisons if each.error is not None)
    return Summary(
        of=name,
        rows=len(comparisons),
        usable=len(shares),
        expected=len(errors),
        faster_than_lower=sum(each.faster_than_lower for each in comparisons),
        slower_than_upper=sum(each.slower_than_upper for each in comparisons),
        share_of_bound=median(shares) if shares else None,
        median_error=median(errors) if errors else None,
        largest_errors=errors[ceil(0.9 * len(errors)) - 1] if errors else None,
    )


def report(comparisons: Sequence[Comparison]) -> list[str]:
    """The lines of a table by group, machine and software, of the worst rows, and of the others.

    >>> from calc import published
    >>> print(report(published.compare(published.rows("serving")[:10]))[1].split()[:2])
    ['serving', '10']
    """

    def kind(each: Comparison) -> str:
        return " · ".join(filter(None, (each.row.group, each.machine, each.software)))

    known = [each for each in comparisons if each.prediction is not None]
    lines = columns([HEADING, *(_cells(each) for each in summary(known))])
    lines += ["", *columns([HEADING, *(_cells(each) for each in summary(known, kind))])]
    faster = [each for each in known if each.faster_than_lower]
    if faster:
        lines += ["", "Faster than the bound:"]
        lines += columns([_line(each, f"{each.share_of_bound:.3f}") for each in faster])
    errors = [each for each in known if each.error is not None]
    errors.sort(key=lambda each: -abs(each.error or 0.0))
    if errors:
        lines += ["", "Furthest from what is expected, measured over expected:"]
        lines += columns([_line(each, f"{1 + (each.error or 0):.2f}") for each in errors[:WORST]])
    unknown = [each for each in comparisons if each.prediction is None]
    if unknown:
        lines += ["", f"{_rows(len(unknown))} cannot be predicted:"]
        lines += columns([*_reasons((each.row.id, each.reason) for each in unknown)])
    bounds = [
        (each.row.id, each.prediction.missing)
        for each in comparisons
        if each.prediction is not None and each.error is None
    ]
    if bounds:
        lines += ["", f"{_rows(len(bounds))} of which nothing is expected:"]
        lines += columns([*_reasons(bounds)])
    return lines


HEADING = (
    "",
    "rows",
    "expected",
    "faster than lower",
    "slower than upper",
    "share of bound",
    "median error",
    "90th percentile",
)


def _cells(each: Summary) -> tuple[str, ...]:
    def percent(value: float | None) -> str:
        return "–" if value is None else f"{value:.0%}"

    return (
        each.of,
        str(each.usable),
        str(each.expected),
        str(each.faster_than_lower),
        str(each.slower_than_upper),
        percent(each.share_of_bound),
        percent(each.median_error),
        percent(each.largest_errors),
    )


def _line(each: Comparison, figure: str) -> tuple[str, ...]:
    return (figure, each.row.id, each.machine, each.software, str(each.row["model"] or ""))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _reasons(named: Iterable[tuple[str, str]]) -> Iterable[tuple[str, ...]]:
    """Each reason with how many rows have it, and the first of them."""
    rows: dict[str, list[str]] = {}
    for name, reason in named:
        rows.setdefault(reason, []).append(name)
    for reason, names in sorted(rows.items(), key=lambda item: -len(item[1])):
        yield str(len(names)), names[0] + (" and others" if names[1:] else ""), reason
