"""Errors of what is expected of collectives, each source left out, and the intervals around it.

    python -m benchmarks.collectives            prints errors, coverage and widths by class
    python -m benchmarks.collectives --write    writes calc/data/collective_intervals.csv too

Each point of a curve from 64 kB on is predicted without any curve of its source. An interval is of
the sizes below a megabyte, below sixteen, and of all above; what it covers is told of points of
sources that it was not made of.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from statistics import geometric_mean, median

from benchmarks.power import ends
from calc.catalog.machines import NotMeasured
from calc.core.formatting import columns
from calc.steps import curves
from calc.steps.curves import Curve, Spread
from experiments.tables import write_rows

BELOW = (1e6, 16e6, math.inf)


@dataclass(frozen=True)
class Point:
    """A measured time, and measured over expected without its source."""

    curve: Curve
    size: float
    factor: float

    @property
    def below(self) -> float:
        """The class of its size."""
        return next(limit for limit in BELOW if self.size < limit)


def left_out() -> tuple[list[Point], int]:
    """Return all points that others let expect, and the number of those that none does."""
    points, unexpected = [], 0
    for curve in curves.load():
        for size, time in zip(curve.sizes, curve.times, strict=True):
            if size < curves.COMPARED_FROM:
                continue
            asked = curve.operation, size, curve.devices, curve.place
            try:
                expected = geometric_mean(curves.times(*asked, without=curve.source))
            except NotMeasured:
                unexpected += 1
            else:
                points.append(Point(curve, size, time / expected))
    return points, unexpected


def made(points: Sequence[Point]) -> list[Spread]:
    """Return the spread of each class of sizes."""
    spreads = []
    for below in BELOW:
        alike = [point for point in points if point.below == below]
        factors = [point.factor for point in alike]
        error = median(abs(factor - 1) for factor in factors)
        sources = len({point.curve.source for point in alike})
        spreads.append(Spread(below, len(alike), sources, error, *ends(factors)))
    return spreads


def covered(points: Sequence[Point]) -> dict[Point, tuple[bool, float]]:
    """Return of each point whether an interval without its source holds, and its width."""
    verdicts = {}
    for source in {point.curve.source for point in points}:
        kept = made([point for point in points if point.curve.source != source])
        for point in points:
            if point.curve.source == source:
                [one] = [spread for spread in kept if spread.below == point.below]
                verdicts[point] = one.low <= point.factor <= one.high, one.high / one.low
    return verdicts


def table(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """Return the lines of errors, coverage and widths, of all and by class."""
    inside = covered(points)
    lines: list[tuple[str, ...]] = [
        ("", "points", "median", "90th", "signed", "inside 80 %", "width")
    ]
    kinds: tuple[Callable[[Point], str], ...] = (
        lambda _: "all",
        lambda point: f"below {point.below:g} byte",
        lambda point: f"{point.curve.operation} {curves.SPANS[point.curve.span]}",
        lambda point: point.curve.source,
    )
    for kind in kinds:
        groups: dict[str, list[Point]] = defaultdict(list)
        for point in points:
            groups[kind(point)].append(point)
        for name, alike in sorted(groups.items()):
            off = sorted(abs(point.factor - 1) for point in alike)
            holds, widths = zip(*(inside[point] for point in alike), strict=True)
            lines.append(
                (
                    name,
                    str(len(alike)),
                    f"{median(off):.1%}",
                    f"{off[math.ceil(0.9 * len(off)) - 1]:.1%}",
                    f"{median(point.factor for point in alike) - 1:+.1%}",
                    f"{sum(holds) / len(alike):.0%}",
                    f"{median(widths):.2f}",
                )
            )
    return lines


def main() -> None:
    points, unexpected = left_out()
    print("\n".join(columns(table(points))))
    print(f"{unexpected} points of which no other source lets expect anything")
    if "--write" in sys.argv[1:]:
        rows = (
            (f"{below:g}", count, sources, *(f"{value:.3f}" for value in values))
            for below, count, sources, *values in map(astuple, made(points))
        )
        write_rows(curves.SPREADS, tuple(Spread.__dataclass_fields__), rows)


if __name__ == "__main__":
    main()
