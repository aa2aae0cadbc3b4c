"""Errors of the diagonal by method, number format and length, on disordered input."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.resolvent_measured import ACCURACY, FormatErrors
from figures import style

COLOURS = {"complex64": style.INK, "mixed": style.ORANGE, "complex128": style.PURPLE}
LINES: dict[str, Any] = {"theta_phi": ":", "scaled": (0, (5, 2)), "ratio": "-"}
DRAWN = [
    ("theta_phi", "mixed"),
    ("theta_phi", "complex128"),
    ("scaled", "complex64"),
    ("scaled", "complex128"),
    ("ratio", "complex64"),
    ("ratio", "complex128"),
]
NAMES = {"theta_phi": "the textbook form", "scaled": "the scaled form", "ratio": "the ratio form"}
KIND = "disorder"


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.9, narrow_height=4.4)
    axes = figure.subplots()
    style.log_axis(axes, "y", "Relative error, worst of the samples", decades=3)
    axes.set_xscale("log", base=2)
    axes.set_xlim(14, 5000)
    axes.set_ylim(2e-18, 0.03)
    for method, dtype in DRAWN:
        _line(axes, method, dtype)
    axes.axhline(FormatErrors.claim, color=style.RED, linewidth=1)
    axes.set_xticks([16, 64, 256, 1024, 4096])
    axes.xaxis.set_major_formatter(lambda value, _: style.plain(value))
    axes.minorticks_off()
    axes.set_xlabel("Length n")
    _labels(axes)
    return figure


def alt() -> str:
    return f"""Lines of the relative error, on a logarithmic axis, against the length, from
    {show(min(ACCURACY["n"].to_list()))} to {show(FormatErrors.longest)}, with a line at the
    promised {show(FormatErrors.claim)}. A cross ends the lines of the textbook form, whose errors
    are not finite any more; the lines of the other forms go on to the right end.
    {"; ".join(map(_told, NAMES)).capitalize()}."""


def _told(method: str) -> str:
    """The last errors of a method's lines, and the lengths at which some of these end."""
    lasts = []
    for dtype in (dtype for points, dtype in DRAWN if points == method):
        points, ends = _known(method, dtype)
        n, error = points[-1]
        lasts.append(
            f"{show(error, digits=1)} in {_formats(dtype)}{f' at a length of {n}' if ends else ''}"
        )
    return f"{NAMES[method]} {listed(lasts)}"


def _formats(dtype: str) -> str:
    return "mixed formats" if dtype == "mixed" else dtype


def _known(method: str, dtype: str) -> tuple[list[tuple[int, float]], bool]:
    """Lengths with their errors as far as these are finite, and whether any is not."""
    rows = ACCURACY.filter(kind=KIND, method=method, dtype=dtype).sort("n")
    points = [
        (n, error) for n, error in zip(rows["n"], rows["relative"], strict=True) if error < math.inf
    ]
    return points, len(points) < len(rows)


def _line(axes: Axes, method: str, dtype: str) -> None:
    points, ends = _known(method, dtype)
    lengths, errors = zip(*points, strict=True)
    colour = COLOURS[dtype]
    axes.plot(lengths, errors, color=colour, linestyle=LINES[method], linewidth=1.5)
    if ends:
        axes.plot(lengths[-1], errors[-1], "X", color=colour, markersize=7, mew=0)
        style.note(axes, lengths[-1], 2.5 * errors[-1], "ends", color=colour, ha="center")


def _labels(axes: Axes) -> None:
    marks = [
        (16, 2.4e-4, "promised", style.RED, "left"),
        (16, 3e-6, "textbook, mixed", style.ORANGE, "left"),
        (5000, 2e-5, "scaled, complex64", style.INK, "right"),
        (5000, 2e-8, "ratio, complex64", style.INK, "right"),
        (16, 1e-14, "textbook", style.PURPLE, "left"),
        (5000, 5e-14, "scaled, complex128", style.PURPLE, "right"),
        (5000, 2e-17, "ratio, complex128", style.PURPLE, "right"),
    ]
    for n, error, text, colour, side in marks:
        style.note(axes, n, error, text, color=colour, bold=True, ha=side)
