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
from calc.steps.expectation import NOT_SUSTAINED, is_unfused

HOST = {"step", "sequence"}
"""Numbers of the host, with which a share of kernels' rates is fitted together."""
PROMPTS = "sustained_prompts"
SHARES = [share / 100 for share in range(50, 101, 5)]
STEPS = [ms / 2e3 for ms in range(17)]  # seconds, up to 8 ms
SEQUENCES = [us / 2e5 for us in range(17)]  # seconds, up to 80 us


def rows_of(key: str, comparisons: Sequence[Comparison], name: str) -> list[Comparison]:
    """The rows that tell of a number, on all machines: its mixtures, its other models, or both.

    Where prompts have a share of their own, rows of prompts tell of it alone.
    """
    rows = [row for row in comparisons if row.software == key and row.error is not None]
    if PROMPTS in software.get(key).records:
        return [row for row in rows if row.row.id.endswith(" prefill") == (name == PROMPTS)]
    if HOST & software.get(key).records.keys():
        return [row for row in rows if row.row.number("batch")]
    return [row for row in rows if share_of(row) == name]


def share_of(row: Comparison) -> str:
    """The share that a row of training tells of."""
    model = conditions.model(row.row)
    if is_unfused(model) and "sustained_unfused" in software.get(row.software).records:
        return "sustained_unfused"
    return "sustained" if model.experts is None else "sustained_experts"


def at_best_rates(row: Comparison) -> float:
    """Return the expected time of a row's kernels and messages alone."""
    assert row.prediction
    assert row.prediction.parts
    parts, hidden = row.prediction.parts, row.prediction.hidden
    return sum(parts.values()) - hidden - parts.get(NOT_SUSTAINED, 0.0) - parts.get("host", 0.0)


def fitted(key: str, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, float]]:
    """Each number of a software, in seconds or of one."""
    one = software.get(key)
    if HOST & one.records.keys():
        rows = [row for row in rows_of(key, comparisons, "step") if row.fitted]
        of_sequences = SEQUENCES if "sequence" in one.records else [0.0]
        numbers = zip(
            ("sustained", "step", "sequence"), _with_host(rows, of_sequences), strict=True
        )
        yield from ((name, value) for name, value in numbers if name in one.records)
    for name in ("sustained", "sustained_experts", "sustained_unfused", PROMPTS):
        if name in one.records and (name == PROMPTS or not HOST & one.records.keys()):
            rows = [row for row in rows_of(key, comparisons, name) if row.fitted]
            kept = median(at_best_rates(row) / row.measured for row in rows)
            yield name, min(1.0, kept)  # no program is faster than its kernels


def _with_host(
    rows: Sequence[Comparison], of_sequences: Sequence[float]
) -> tuple[float, float, float]:
    points = [(at_best_rates(row), row.row.number("batch") or 1.0, row.measured) for row in rows]

    def far(numbers: tuple[float, float, float]) -> float:
        share, step, sequence = numbers
        return mean(
            abs(math.log(measured / (base / share + step / batch + sequence)))
            for base, batch, measured in points
        )

    return min(product(SHARES, STEPS, of_sequences), key=far)


def main() -> None:
    comparisons = published.compare()
    lines = [("", "stored", "fitted", "to rows", "error", "other rows", "error", "90th percentile")]
    for key in software.names():
        one: Software = software.get(key)
        if one.fitted_on in ("", software.OTHERS):
            continue
        for name, value in fitted(key, comparisons):
            rows = rows_of(key, comparisons, name)
            to = [row for row in rows if row.fitted]
            others = [row for row in rows if not row.fitted]
            of_fitted, judged = (published.summary(some)[0] for some in (to, others))
            lines.append(
                (
                    f"{one.name}, {name}",
                    f"{getattr(one, name):.3g}",
                    f"{value:.3g}",
                    str(len(to)),
                    f"{of_fitted.median_error:.0%}",
                    str(len(others)),
                    f"{judged.median_error:.0%}",
                    f"{judged.largest_errors:.0%}",
                )
            )
    print("\n".join(columns(lines)))


if __name__ == "__main__":
    main()
