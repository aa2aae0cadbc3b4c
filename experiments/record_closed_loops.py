"""Compare published closed loops, and rows kept back from intervals, and store what sums them up.

    python -m experiments.record_closed_loops

Writes calc/data/computed/closed_loops.toml, which `calc.derivations.predicted_and_measured` reads:
thousands of comparisons would else be computed wherever the chapter is quoted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from statistics import mean, median
from typing import Any

import tomli_w

from benchmarks import intervals
from calc import published
from calc.catalog.intervals import classes as classes_of
from calc.core.records import DATA
from calc.published import Comparison, closed_loops
from calc.published.reporting import classes

FILE = DATA / "computed" / "closed_loops.toml"
HEADING = """\
# What `calc` expects of published closed loops, and how many published rows lie in the 80 %
# intervals that are made without them. Nothing is typed here: errors are measured over expected,
# less one, and `python -m experiments.record_closed_loops` writes all of it.

"""


def main() -> None:
    FILE.write_text(HEADING + tomli_w.dumps(agreement()), encoding="utf-8")


def agreement() -> dict[str, Any]:
    """Return all that the file holds."""
    comparisons = published.compare(closed_loops.rows())
    expected = [row for row in comparisons if row.error is not None]
    days = sorted(str(row.row["day"]) for row in comparisons if row.row["day"])
    return {
        "rows": len(comparisons),
        "days": [days[0], days[-1]],
        "faster_than_lower": sum(row.faster_than_lower for row in expected),
        "unread": dict(Counter(row.reason for row in comparisons if row.prediction is None)),
        "all": summed(expected),
        "systems": of_systems(expected),
        "classes": {title: list(map(vars, kinds)) for title, kinds in classes(expected).items()},
        "intervals": coverage(),
    }


def of_systems(expected: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return what sums up the rows of each program on each machine, dense models and mixtures."""
    systems: dict[tuple[str, str, bool], list[Comparison]] = {}
    for row in expected:
        systems.setdefault((row.software, row.machine, row.mixture), []).append(row)
    return [
        {"software": software, "machine": machine, "mixture": mixture, **summed(rows)}
        for (software, machine, mixture), rows in sorted(systems.items())
    ]


def summed(rows: Sequence[Comparison]) -> dict[str, float]:
    """Return how many rows there are, and their errors."""
    (summary,) = published.summary(rows)
    return {
        "rows": summary.expected,
        "share_of_bound": summary.share_of_bound or 0.0,
        "median_error": summary.median_error or 0.0,
        "largest_errors": summary.largest_errors or 0.0,
        "signed_error": median(row.error for row in rows if row.error is not None),
    }


def coverage() -> dict[str, Any]:
    """The shares of rows inside intervals that are made without them, by class and of all."""
    residuals = intervals.residuals()
    made = intervals.made(residuals)
    inside = dict(zip(("thirds", "sources"), intervals.coverage(residuals), strict=True))
    kinds = []
    for names in sorted({row.names for row in residuals}):
        used = next(made[name] for name in classes_of(*names) if name in made)
        work, software, model, basis = names
        kinds.append(
            {
                "work": work,
                "software": software,
                "model": model,
                "basis": basis,
                "rows": sum(row.names == names for row in residuals),
                "low": used.low,
                "high": used.high,
                **{part: mean(of[names]) for part, of in inside.items() if of.get(names)},
            }
        )
    every = {part: mean(chain.from_iterable(of.values())) for part, of in inside.items()}
    return {"rows": len(residuals), **every, "of": kinds}


if __name__ == "__main__":
    main()
