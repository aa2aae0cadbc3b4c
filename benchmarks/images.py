"""Errors of what is expected of images and videos, and the intervals around it.

    python -m benchmarks.images            prints errors, and coverage with each model kept back
    python -m benchmarks.images --write    writes calc/data/image_intervals.csv too

Classes are of one device, and of several that make a batch together, by program. A model counts as
a source, since its rows are alike. Nothing is fitted but `head_row` of one program, to one row.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import astuple
from statistics import mean, median

from benchmarks.intervals import Residual, coverage, made
from calc.catalog.intervals import COLUMNS, IMAGES, MODELS, OF_IMAGES, TOGETHER
from calc.core.formatting import columns
from calc.published import image_rows as images
from experiments.tables import write_rows


def residuals() -> list[Residual]:
    """Return measured over expected of every run; its model stands for its source."""
    return [
        Residual(
            run.id,
            (
                TOGETHER if run.count("together") > 1 else IMAGES,
                run.answer.program.key,
                MODELS[1],
                "filled" if run.answer.borrowed else "measured",
            ),
            run.row["model"],
            run.factor,
        )
        for run in images.runs()
    ]


def errors(residual_rows: list[Residual]) -> list[tuple[str, ...]]:
    """Return the rows of a table: signed and absolute errors by class and model, and coverage."""
    _, apart = coverage(residual_rows)
    lines: list[tuple[str, ...]] = [
        ("", "rows", "signed", "median", "90th percentile", "inside, model kept back")
    ]
    groups: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for residual in residual_rows:
        groups[(*residual.names[:2], residual.source)].append(residual.factor - 1)
        groups[(residual.names[0], "", "all models")].append(residual.factor - 1)
    for names, values in sorted(groups.items()):
        ranked = sorted(map(abs, values))
        inside = [
            holds
            for of, several in apart.items()
            for holds in several
            if of[0] == names[0] and names[2] == "all models"
        ]
        lines.append(
            (
                " · ".join(filter(None, names)),
                str(len(values)),
                f"{median(values):+.0%}",
                f"{median(ranked):.0%}",
                f"{ranked[int(0.9 * (len(ranked) - 1))]:.0%}",
                f"{mean(inside):.0%}" if inside else "",
            )
        )
    return lines


def main() -> None:
    residual_rows = residuals()
    intervals = made(residual_rows)
    print("\n".join(columns(errors(residual_rows))))
    for names, interval in intervals.items():
        print(f"{' '.join(filter(None, names))}: {interval.low:.2f}–{interval.high:.2f}")
    if "--write" in sys.argv[1:]:
        written = (
            [f"{value:.3f}" if isinstance(value, float) else value for value in astuple(interval)]
            for interval in intervals.values()
        )
        write_rows(OF_IMAGES, COLUMNS, written)


if __name__ == "__main__":
    main()
