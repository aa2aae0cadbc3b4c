"""Comparisons summed up: by group, machine and software, and the worst rows by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from statistics import mean, median

from calc.core.records import DATA, read_toml
from calc.core.report import Reported, Table, values
from calc.core.units import quantity
from calc.published import conditions
from calc.published.prediction import Comparison

WORST = 10
STORED = DATA / "computed"
FEW = 5  # rows of a class that is summed up by itself
JUDGED = 12  # rows of a class by which the planner is judged; the name of one of fewer says so


@dataclass(frozen=True)
class Summary:
    """The numbers that sum up comparisons of one kind."""

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
    """90th percentile of the error: nine tenths of the rows are no further off."""
    signed_error: float | None
    """The median of measured / expected − 1: above zero rows are slower than expected."""
    inside: float | None
    """The share of rows that lie in the 80 % intervals of their classes."""
    width: float | None
    """The median of the high over the low end of these."""


def summary(
    comparisons: Sequence[Comparison], by: Callable[[Comparison], str] = lambda row: row.row.group
) -> list[Summary]:
    """A summary of each kind, by group of rows where nothing else is said.

    >>> from calc import published
    >>> [of_serving] = summary(published.compare(published.rows("serving")[:10]))
    >>> of_serving.rows, of_serving.faster_than_lower
    (10, 0)
    """
    kinds: dict[str, list[Comparison]] = {}
    for row in comparisons:
        kinds.setdefault(by(row), []).append(row)
    return [_summary(name, kinds[name]) for name in kinds]


def _summary(name: str, comparisons: Sequence[Comparison]) -> Summary:
    shares = [row.share_of_bound for row in comparisons if row.share_of_bound is not None]
    held = [row.inside for row in comparisons if row.inside is not None]
    widths = [row.width for row in comparisons if row.width is not None]
    errors = sorted(abs(row.error) for row in comparisons if row.error is not None)
    return Summary(
        of=name,
        rows=len(comparisons),
        usable=len(shares),
        expected=len(errors),
        faster_than_lower=sum(row.faster_than_lower for row in comparisons),
        slower_than_upper=sum(row.slower_than_upper for row in comparisons),
        share_of_bound=median(shares) if shares else None,
        median_error=median(errors) if errors else None,
        largest_errors=errors[ceil(0.9 * len(errors)) - 1] if errors else None,
        signed_error=median(row.error for row in comparisons if row.error is not None)
        if errors
        else None,
        inside=mean(held) if held else None,
        width=median(widths) if widths else None,
    )


def _version(row: Comparison) -> str:
    """The software and the two first numbers of its version."""
    numbered = re.search(r"\d+\.\d+", row.row.software)
    return " ".join(filter(None, (row.software, numbered[0] if numbered else "")))


def _slices(row: Comparison) -> str:
    tensor = row.row["tensor"] or conditions.layout(row.row).get("TP", 1)
    return f"TP{tensor}"


def _batch(row: Comparison) -> str:
    batch = row.row.number("batch") or row.row.number("clients")
    if batch is None:
        return "the largest, or not stated"
    return next(name for most, name in BATCHES if batch <= most)


def _date(row: Comparison) -> str:
    """The year of its source, as its key or its day says."""
    year = re.search(r"20[12]\d", f"{row.row['day'] or ''} {row.row.source} {row.row.software}")
    return year[0] if year else "not stated"


BATCHES = (
    (1, "1 sequence"),
    (16, "2 to 16 sequences"),
    (128, "17 to 128 sequences"),
    (math.inf, "more than 128 sequences"),
)
CLASSES: dict[str, Callable[[Comparison], str]] = {
    "software and version": _version,
    "device": lambda row: row.machine,
    "slices": _slices,
    "batch": _batch,
    "kind of model": lambda row: "mixtures" if row.mixture else "dense models",
    "basis": lambda row: "something filled in" if row.filled else "all measured and stated",
    "date": _date,
}


def classes(comparisons: Sequence[Comparison]) -> dict[str, list[Summary]]:
    """Training and serving by each of what tells rows apart, classes of few rows left out.

    >>> from calc import published
    >>> found = classes(published.compare(published.rows("serving")[:10]))
    >>> [(kind.of, kind.expected) for kind in found["kind of model"]]
    [('serving · dense models', 10)]
    """
    rows = [row for row in comparisons if row.inside is not None]
    by_title = {}
    for title, of in CLASSES.items():

        def named(row: Comparison, of: Callable[[Comparison], str] = of) -> str:
            return f"{row.row.group} · {of(row)}"

        by_title[title] = [kind for kind in summary(rows, named) if kind.expected >= FEW]
    return by_title


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(Reported):
    """Comparisons as people and programs read them."""

    comparisons: Sequence[Comparison]
    recorded: Sequence[Table] = ()
    """Tables of rows whose comparison takes minutes, as it was stored."""

    @cached_property
    def tables(self) -> list[Table]:
        """The summaries by group, machine and software, the worst rows, and those not predicted."""

        def kind(row: Comparison) -> str:
            return " · ".join(filter(None, (row.row.group, row.machine, row.software)))

        predicted = [row for row in self.comparisons if row.prediction is not None]
        faster = [
            _line(row, f"{row.share_of_bound:.3f}") for row in predicted if row.faster_than_lower
        ]
        errors = [(row, row.error) for row in predicted if row.error is not None]
        errors.sort(key=lambda pair: -abs(pair[1]))
        worst = [_line(row, f"{1 + error:.2f}") for row, error in errors[:WORST]]
        unknown = [(row.row.id, row.reason) for row in self.comparisons if row.prediction is None]
        bounds = [
            (row.row.id, row.prediction.missing)
            for row in predicted
            if row.prediction is not None and row.error is None
        ]
        return [
            Table([HEADING, *map(_cells, summary(predicted))]),
            Table([HEADING, *map(_cells, summary(predicted, kind))]),
            *(
                Table([SIGNED, *map(_signed, kinds)], f"By {title}; {SIGN}")
                for title, kinds in classes(predicted).items()
                if kinds
            ),
            *self.recorded,
            *_captioned("Faster than the bound", faster),
            *_captioned("Furthest from what is expected, measured over expected", worst),
            *_captioned(f"{_rows(len(unknown))} cannot be predicted", _reasons(unknown)),
            *_captioned(f"{_rows(len(bounds))} of which nothing is expected", _reasons(bounds)),
        ]

    @cached_property
    def facts(self) -> dict[str, object]:
        """A row for each comparison, and a summary of each class."""
        kinds = classes([row for row in self.comparisons if row.prediction is not None])
        return {"rows": [_fact(row) for row in self.comparisons], "classes": kinds}


def under_load() -> list[Table]:
    """Return what is stored of servers under load: each token of closed loops, and first tokens.

    >>> print(under_load()[-1].caption.partition("; ")[0])
    First tokens under load as recorded
    """
    loops, loads = (read_toml(STORED / f"{name}.toml") for name in ("closed_loops", "loads"))
    tables = [
        Table(
            [SIGNED, *(_signed(Summary(**kind)) for kind in kinds)],
            f"Closed loops as recorded, each token after the first, by {title}; {SIGN}",
        )
        for title, kinds in loops["classes"].items()
    ]
    of_loops, of_rates = loads["loops"]["agg"], loads["rates"]
    firsts = [
        *((" · ".join(each["of"]), each, "ttft") for each in of_loops["systems"]),
        ("servers apart", loads["loops"]["disagg"]["all"], "ttft"),
        *((f"MLPerf {name}, median", each, "ttft p50") for name, each in of_rates.items()),
    ]
    rows = [_first(name, each["rows"], each[time]) for name, each, time in firsts]
    return [*tables, Table([FIRSTS, *rows], f"First tokens under load as recorded; {SIGN}")]


def _first(name: str, rows: int, errors: Mapping[str, float]) -> tuple[str, ...]:
    parts = _percent(errors["error"]), _percent(errors["largest"])
    return (_named(name, rows), str(rows), _with_sign(errors["signed"]), *parts)


def _named(name: str, rows: int) -> str:
    return f"{name} (few)" if 0 < rows < JUDGED else name


def _with_sign(error: float | None) -> str:
    if error is None:
        return "–"
    return f"{round(error, 2) + 0.0:+.0%}".replace("-", "\N{MINUS SIGN}")


def report(comparisons: Sequence[Comparison]) -> list[str]:
    """The lines of a table by group, machine and software, of the worst rows, and of the others.

    >>> from calc import published
    >>> print(report(published.compare(published.rows("serving")[:20]))[1].split()[:2])
    ['serving', '20']
    """
    return Agreement(comparisons).text().split("\n")


HEADING = (
    "",
    "rows",
    "expected",
    "faster than lower",
    "slower than upper",
    "share of bound",
    "signed error",
    "median error",
    "90th percentile",
    "inside 80%",
    "high/low",
)


SIGN = f"above zero is slower than expected; few are fewer than {JUDGED} rows"
SIGNED = ("", "expected", *HEADING[6:])
FIRSTS = SIGNED[:-2]  # whose intervals are not held to rows


def _captioned(caption: str, rows: Sequence[tuple[str, ...]]) -> list[Table]:
    return [Table(rows, caption)] if rows else []


def _fact(row: Comparison) -> dict[str, object]:
    prediction = row.prediction
    times = {name: getattr(prediction, name, None) for name in ("lower", "expected", "upper")}
    ends = (None, None) if row.around is None else row.around.ends
    return {
        "group": row.row.group,
        "id": row.row.id,
        **values(row, "machine software"),
        "measured": quantity(row.measured, "s") if prediction else None,
        **{name: None if time is None else quantity(time, "s") for name, time in times.items()},
        **dict(zip(("low", "high"), ends, strict=True)),
        **values(row, "share_of_bound error inside width mixture"),
        "filled": "; ".join(row.filled),
        "reason": row.reason or getattr(prediction, "missing", ""),
        "source": row.row.source,
    }


def _cells(kind: Summary) -> tuple[str, ...]:
    return (
        _named(kind.of, kind.expected),
        str(kind.usable),
        str(kind.expected),
        str(kind.faster_than_lower),
        str(kind.slower_than_upper),
        _percent(kind.share_of_bound),
        *_errors(kind),
    )


def _signed(kind: Summary) -> tuple[str, ...]:
    return (_named(kind.of, kind.expected), str(kind.expected), *_errors(kind))


def _errors(kind: Summary) -> tuple[str, ...]:
    """Signed, median and 90th percentile, and coverage beside width."""
    errors = map(_percent, (kind.median_error, kind.largest_errors, kind.inside))
    width = "–" if kind.width is None else f"{kind.width:.2f}"
    return (_with_sign(kind.signed_error), *errors, width)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _line(row: Comparison, figure: str) -> tuple[str, ...]:
    return (figure, row.row.id, row.machine, row.software, str(row.row["model"] or ""))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _reasons(named: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Each reason with how many rows have it, and the first of them."""
    rows: dict[str, list[str]] = {}
    for name, reason in named:
        rows.setdefault(reason, []).append(name)
    return [
        (str(len(names)), names[0] + (" and others" if names[1:] else ""), reason)
        for reason, names in sorted(rows.items(), key=lambda item: -len(item[1]))
    ]
