"""The numbers of software, fitted again to the rows that their notes name, judged by all others.

    python -m benchmarks.software

A fit has the least mean |log(measured / expected)| over the rows of a software on the machine that
calc/data/software.toml says it is fitted on. What a software keeps of its kernels' rates is then a
median; where there is time of the host too, all three numbers are tried on a grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import mean, median

from calc import published, software
from calc.catalog.software import Software
from calc.core.formatting import columns
from calc.published import Comparison, conditions
from calc.steps.expectation import NOT_SUSTAINED

HOST = {"step", "sequence"}
"""Numbers of the host, with which a share of kernels' rates is fitted together."""
SHARES = [share / 100 for share in range(50, 101, 5)]
STEPS = [ms / 2e3 for ms in range(17)]  # seconds, up to 8 ms
SEQUENCES = [us / 2e5 for us in range(17)]  # seconds, up to 80 us


def rows_of(key: str, comparisons: Sequence[Comparison], name: str) -> list[Comparison]:
    """The rows that tell of a number, on all machines: its mixtures, its other models, or both."""
    rows = [row for row in comparisons if row.software == key and row.error is not None]
    if HOST & software.get(key).records.keys():
        return rows
    mixtures = name == "sustained_experts"
    return [row for row in rows if is_mixture(row) == mixtures]


def is_mixture(row: Comparison) -> bool:
    return conditions.model(row.row).experts is not None


def at_best_rates(row: Comparison) -> float:
    """What is expected of a row's kernels and messages alone."""
    assert row.prediction
    assert row.prediction.parts
    parts, hidden = row.prediction.parts, row.prediction.hidden
    return sum(parts.values()) - hidden - parts.get(NOT_SUSTAINED, 0.0) - parts.get("host", 0.0)


def fitted(key: str, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, float]]:
    """Each number of a software, in seconds or of one."""
    one = software.get(key)
    if HOST & one.records.keys():
        rows = [row for row in rows_of(key, comparisons, "step") if row.fitted]
        numbers = zip(("sustained", "step", "sequence"), _with_host(rows), strict=True)
        yield from ((name, value) for name, value in numbers if name in one.records)
        return
    for name in ("sustained", "sustained_experts"):
        if name in one.records:
            rows = [row for row in rows_of(key, comparisons, name) if row.fitted]
            yield name, median(at_best_rates(row) / row.measured for row in rows)


def _with_host(rows: Sequence[Comparison]) -> tuple[float, float, float]:
    points = [(at_best_rates(row), row.row.number("batch") or 1.0, row.measured) for row in rows]

    def far(numbers: tuple[float, float, float]) -> float:
        share, step, sequence = numbers
        return mean(
            abs(math.log(measured / (base / share + step / batch + sequence)))
            for base, batch, measured in points
        )

    return min(product(SHARES, STEPS, SEQUENCES), key=far)


def main() -> None:
    comparisons = published.compare()
    lines = [("", "stored", "fitted", "to rows", "error", "other rows", "error", "90th percentile")]
    for key in software.names():
        one: Software = software.get(key)
        if not one.fitted_on:
            continue
        for name, value in fitted(key, comparisons):
            rows = rows_of(key, comparisons, name)
            to = [row for row in rows if row.fitted]
            others = [row for row in rows if not row.fitted]
            own, judged = (published.summary(some)[0] for some in (to, others))
            lines.append(
                (
                    f"{one.name}, {name}",
                    f"{getattr(one, name):.3g}",
                    f"{value:.3g}",
                    str(len(to)),
                    f"{own.median_error:.0%}",
                    str(len(others)),
                    f"{judged.median_error:.0%}",
                    f"{judged.largest_errors:.0%}",
                )
            )
    print("\n".join(columns(lines)))


if __name__ == "__main__":
    main()
