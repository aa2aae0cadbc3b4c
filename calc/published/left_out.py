"""Curves of collectives, each left out in turn and predicted from those of others.

`curves.times` takes the nearest curves; beside it stand fits of one to three pieces, each of a
latency and a share of the bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

from calc.steps import curves
from calc.steps.curves import Curve, Fit


@dataclass(frozen=True)
class LeftOut:
    """Errors of three ways to predict a curve from the others, in the median."""

    curve: Curve
    line: float
    """One latency and one share of the bandwidth, fitted to all others of the span."""
    two_pieces: float
    three_pieces: float
    nearest: float
    """The curves that `curves.times` finds without it."""
    own_line: float
    """One latency and one share, fitted to the curve itself."""


@cache
def left_out() -> tuple[LeftOut, ...]:
    """Each curve in turn, predicted from the others of its span.

    An error is |predicted / measured − 1|, over sizes from 64 kB on. Curves are compared by the
    share of the published bandwidth that they reach at a size, which is what one machine can tell
    of another.

    >>> from statistics import median
    >>> print(f"{median(curve.nearest for curve in left_out()):.2f}")
    0.12
    """
    whole = [curve for curve in curves.load() if len(curve.sizes) > curves.SIZES]
    return tuple(
        _left_out(curve, [other for other in whole if other.name != curve.name])
        for curve in curves.whole_curves()
    )


def _left_out(curve: Curve, others: Sequence[Curve]) -> LeftOut:
    points = [
        point for other in others if other.span == curve.span for point in curves.shares(other)
    ]
    line, two, three = (curves.error(curve, fit) for fit in _pieces(points, 3))
    [piece] = _pieces(curves.shares(curve), 1)
    return LeftOut(
        curve, line, two, three, curves.off_by_nearest(curve), curves.error(curve, piece)
    )


Line = tuple[float, float]  # the size at which half of the share is reached, and the share
HALVES = tuple(10 ** (place / 4) for place in range(12, 37))  # bytes: 1 kB to 1 GB


def _pieces(points: Sequence[tuple[float, float]], most: int) -> list[Fit]:
    """Return the best fits of one line, of two side by side and so on, a latency and a share each.

    Nearest in the logarithm of the share: for each half size of a grid the best share is the
    geometric mean of what remains, whose squares are summed once for all pieces.
    """
    sizes = sorted({size for size, _ in points})
    sums = {half: _sums(points, sizes, half) for half in HALVES}

    def line(start: int, end: int) -> tuple[float, Line]:
        """The squared error of one line over these sizes, and the line."""
        options = []
        for half, summed in sums.items():
            many, total, squares = (b - a for a, b in zip(summed[start], summed[end], strict=True))
            options.append((squares - total**2 / many, (half, math.exp(total / many))))
        return min(options)

    @cache
    def split(start: int, count: int) -> tuple[float, list[tuple[float, Line]]]:
        """The least squared error of lines from a size on, each of two sizes at least."""
        if count == 1:
            error, fitted = line(start, len(sizes))
            return error, [(math.inf, fitted)]
        options = []
        for end in range(start + 2, len(sizes) - 2 * (count - 1) + 1):
            (error, fitted), (rest, fits) = line(start, end), split(end, count - 1)
            options.append((error + rest, [(sizes[end - 1], fitted), *fits]))
        return min(options, key=lambda option: option[0])

    return [partial(_share, split(0, count)[1]) for count in range(1, most + 1)]


def _share(fits: Sequence[tuple[float, Line]], size: float) -> float:
    """Return the share of bandwidth that a size reaches by lines, each up to a size."""
    half, most = next(fitted for end, fitted in fits if size <= end)
    return most * size / (size + half)


def _sums(
    points: Sequence[tuple[float, float]], sizes: Sequence[float], half: float
) -> list[tuple[float, float, float]]:
    """Up to each size: how many points there are, what remains of them, and its squares."""
    rests: dict[float, list[float]] = {size: [] for size in sizes}
    for size, share in points:
        rests[size].append(math.log(share * (size + half) / size))
    sums = [(0.0, 0.0, 0.0)]
    for size in sizes:
        many, total, squares = sums[-1]
        left = rests[size]
        sums.append((many + len(left), total + sum(left), squares + sum(rest**2 for rest in left)))
    return sums
