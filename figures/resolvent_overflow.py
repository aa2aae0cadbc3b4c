"""Determinants that grow or shrink by a factor in each step, until they leave complex64."""

from __future__ import annotations

import math

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.resolvent import log_minors, onsets
from figures import style

SAMPLES, LENGTH, STEP = 6, 130, 3
LIMITS = numpy.finfo(numpy.complex64)


def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=3.8)
    axes = figure.subplots()
    top, bottom = math.log10(LIMITS.max), math.log10(LIMITS.smallest_subnormal)
    for edge, kind, side in ((top, "disorder", 1), (bottom, "small", -1)):
        length = numpy.arange(1, LENGTH + 1)[::STEP]
        for row in log_minors(kind, SAMPLES, LENGTH)[:, ::STEP]:
            inside = abs(row) < abs(edge) + 2
            axes.plot(length[inside], row[inside], color=style.INK, alpha=0.45, linewidth=0.8)
        axes.axhline(edge, color=style.RED, linewidth=1.2)
        _onsets(axes, edge, kind, side)
    axes.axhline(math.log10(LIMITS.tiny), color=style.RED, linewidth=0.9, linestyle=":")
    style.note(axes, 2, top + 2, "largest", va="bottom")
    style.note(axes, 2, math.log10(LIMITS.tiny) + 1.5, "smallest normal", va="bottom")
    style.note(axes, 2, bottom - 2, "smallest", va="top")
    style.note(axes, 52, 24, "disorder", bold=True, ha="right")
    style.note(axes, 52, -22, "small entries", bold=True, ha="left")
    axes.set_xlim(0, LENGTH)
    axes.set_ylim(bottom - 14, top + 14)
    axes.set_yticks([-40, -20, 0, 20, 40])
    axes.yaxis.set_major_formatter(
        lambda value, _: style.plain(10.0**value) if value else f"{10**value}"
    )
    axes.set_xlabel("Length n")
    axes.set_ylabel("|θₙ|, logarithmic")
    return figure


def alt() -> str:
    ranges = (
        f"{first} to {last}, {show(median)} in the middle"
        for first, median, last in map(_span, ("disorder", "small"))
    )
    up, down = ranges
    return f"""On a logarithmic axis bundles of nearly straight lines over the length, which begin
    near {show(1)}. Those of disorder rise and meet the line of complex64's largest number,
    {show(float(LIMITS.max), digits=2)}, at lengths from {up}. Those of small entries fall, cross
    the dotted line of its smallest normal number, {show(float(LIMITS.tiny), digits=2)}, and meet
    its smallest, {show(float(LIMITS.smallest_subnormal), digits=2)}, at lengths from {down}."""


def _span(kind: str) -> tuple[int, float, int]:
    """The lengths at which the first, the middle and the last of the samples are gone."""
    gone = onsets(kind, "complex64")
    return gone[0], float(numpy.median(gone)), gone[-1]


def _onsets(axes: Axes, edge: float, kind: str, side: int) -> None:
    """The range of lengths at which the samples are gone, and their median, on the limit."""
    first, median, last = _span(kind)
    axes.plot([first, last], [edge, edge], color=style.RED, linewidth=5, solid_capstyle="butt")
    style.note(
        axes,
        last if side < 0 else LENGTH,
        edge + side * 2.5,
        f"{first} … {median:g} … {last}",
        color=style.RED,
        bold=True,
        ha="right",
        va="bottom" if side > 0 else "top",
    )
