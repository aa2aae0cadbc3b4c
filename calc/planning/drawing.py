"""Drawings of plans: bars of parts, curves over batches with their front, curves with limits.

Everything neutral is in one ink, which a written drawing takes from the page that it stands on.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from calc.core.arrays import Floats
from calc.core.errors import InputError, extra
from calc.core.files import writable, write_atomically, write_text
from calc.core.units import Quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure

INK, PAPER = "#1f2328", "#fefdfb"
PIXELS = 150  # an inch, of a PNG
COLORS = (  # on light paper and on dark
    *("#307ec2", "#be621a", "#1c8b6c", "#9c65b9", "#c85943"),
    *("#8a7a20", "#4d7d8c", "#a8577e", "#6b7a45", "#7a6a5c"),
)
STYLE = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "calc",  # and what is drawn twice is the same file
}
PAGE = """<style>svg { color: #1f2328; background: #fefdfb }
@media (prefers-color-scheme: dark) { svg { color: #dcdee1; background: #15171a } }</style>
"""
APART = 0.11  # of the height of the axes, from one label of two lines to the next
Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """Points in their order, the one that is marked, and what stands beside it."""

    points: Sequence[Point]
    marked: Point
    label: str
    bands: Sequence[Point] = ()
    """Band of each point, between whose ends 80 % of rows like it would lie, on the vertical axis.
    """


@dataclass(frozen=True)
class Panel:
    """Times over a rate, with their limit, and the one that a simulation found."""

    title: str
    times: Sequence[float]
    limit: float
    simulated: float | None
    bands: Sequence[Sequence[float]] = ()
    """Times where steps are as short, and as long, as those of 80 % of rows like them."""


def bars(
    names: Sequence[str],
    parts: Sequence[Mapping[str, float]],
    ends: Sequence[float],
    around: Sequence[Point] = (),
) -> Figure:
    """Seconds of the parts of steps, a mark where a step ends, and a line for its interval."""
    # Parts that are wide enough to be seen in some bar.
    seen = {name for one in parts for name in one if one[name] > sum(one.values()) / 200}
    drawn = list(dict.fromkeys(name for step in parts for name in step if name in seen))
    places = range(len(names))
    left = [0.0] * len(names)
    with _figure(7, 1.3 + 0.3 * len(names)) as figure:
        axes = figure.subplots()
        for number, name in enumerate(drawn):
            widths = [step.get(name, 0.0) for step in parts]
            color = COLORS[number % len(COLORS)]
            axes.barh(places, widths, 0.6, left, color=color, label=name)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        if around:
            low, high = zip(*around, strict=True)
            axes.hlines(range(len(around)), low, high, color=INK, linewidth=1.2)
        axes.plot(ends, places, "|", color=INK, markersize=16, markeredgewidth=2.5)
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("Parts of a step (s), some hidden; the mark is its end, the line its 80 %")
        axes.spines["left"].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def front(curves: Sequence[Curve], best: Sequence[Point], paid: str) -> Figure:
    """Draw what is paid against the time per token over batches, and the front as a band."""
    with _figure(7, 4) as figure:
        axes = figure.subplots()
        if best:
            axes.step(*zip(*best, strict=True), where="post", color=INK, alpha=0.2, linewidth=7)
        colors = [COLORS[index % len(COLORS)] for index in range(len(curves))]
        for curve, color in zip(curves, colors, strict=True):
            points = zip(*curve.points, strict=True)
            axes.plot(*points, "o-", color=color, markersize=3.5, linewidth=1.5)
            if curve.bands:
                across = [index for index, _ in curve.points]
                low, high = zip(*curve.bands, strict=True)
                axes.fill_between(across, low, high, color=color, alpha=0.15)
            axes.plot(*curve.marked, "o", color=color, markersize=7)
        _logarithmic(axes)
        axes.set_xlabel("Time per token (ms)")
        axes.set_ylabel(paid)
        _label(axes, curves, colors)
    return figure


def roofline(
    name: str, peak: Quantity, bandwidth: Quantity, work: tuple[Quantity, Quantity]
) -> Figure:
    """Rate over arithmetic intensity under both roofs of a device, and where some work stands."""
    at, reached = work[0].m_as("FLOP/byte"), work[1].m_as("TFLOP/s")
    bend, most = (peak / bandwidth).m_as("FLOP/byte"), peak.m_as("TFLOP/s")
    ends = min(at, bend) / 10, 10 * max(at, bend)
    with _figure(6.4, 4) as figure:
        axes = figure.subplots()
        slope = bandwidth.m_as("TB/s")
        axes.plot([ends[0], bend, ends[1]], [slope * ends[0], most, most], color=COLORS[0])
        axes.plot([at], [reached], "o", color=COLORS[1])
        axes.annotate(
            f"{work[1]} at {work[0]}", (at, reached), (8, -14), textcoords="offset points"
        )
        _logarithmic(axes, between="")
        axes.set_title(f"{name}: {peak}, {bandwidth}", fontsize="medium")
        axes.set_xlabel("Arithmetic intensity (FLOP/byte)")
        axes.set_ylabel("TFLOP/s")
    return figure


def panels(title: str, rates: Floats, rate: float, shown: Sequence[Panel]) -> Figure:
    """Times by the closed form over the rate, one below the other, and at one rate as simulated."""
    curve, point = COLORS[:2]
    with _figure(6.4, 5.2) as figure:
        above, *_, below = stacked = figure.subplots(len(shown), sharex=True)
        for axes, panel in zip(stacked, shown, strict=True):
            axes.plot(rates, panel.times, color=curve, label="closed form")
            if panel.bands:
                axes.fill_between(rates, *panel.bands[:2], color=curve, alpha=0.15, label="80 %")
            axes.axhline(panel.limit, color=INK, linestyle="--", linewidth=1, label="limit")
            if panel.simulated is not None:
                axes.plot([rate], [panel.simulated], "o", color=point, label="simulated")
            axes.set_ylim(0, 2 * panel.limit)
            axes.set_ylabel(panel.title)
        above.set_title(title, fontsize="medium")
        above.legend(frameon=False)
        below.set_xlabel("Requests a second")
    return figure


def write_drawing(figure: Figure, file: Path | str) -> None:
    """The drawing as a PNG, or as an SVG whose ink and paper are those of the screen."""
    path = checked_drawing(file)
    with loaded_matplotlib().rc_context(STYLE):
        if path.suffix == ".png":
            write_atomically(
                path, lambda name: figure.savefig(name, format="png", dpi=PIXELS, facecolor=PAPER)
            )
            return
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue().replace(INK, "currentColor").replace("<defs>", f"{PAGE}<defs>", 1)
    write_text(path, drawn)


def checked_drawing(file: Path | str) -> Path:
    """A file that can be written and whose name says what it is."""
    if (path := writable(file)).suffix not in (".svg", ".png"):
        raise InputError(f"a drawing needs a name that ends in .svg or .png; got {file}")
    return path


def loaded_matplotlib() -> ModuleType:
    """The package, or one sentence for all drawings where it is not installed."""
    with extra("a drawing", "matplotlib", "planning"):
        import matplotlib.figure
    return matplotlib


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """An empty figure, inches wide and high, in whose style all is drawn within."""
    matplotlib = loaded_matplotlib()
    with matplotlib.rc_context(STYLE):
        yield matplotlib.figure.Figure(figsize=(width, height), layout="constrained")


def _logarithmic(axes: Axes, between: str = "{x:g}") -> None:
    """Both axes with plain numbers, and with these between the powers of ten."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    both: tuple[Any, ...] = (axes.xaxis, axes.yaxis)
    for axis in both:
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(between)
        axis.get_minor_locator().set_params(subs=(2, 3, 5))
    axes.grid(which="both", color=INK, alpha=0.12, linewidth=0.6)


def _label(axes: Axes, curves: Sequence[Curve], colors: Sequence[str]) -> None:
    """Each curve's name beside the axes, as high as its mark is, or as near as others allow."""
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform(curve.marked)[1]) for curve in curves]
    taken = 2.0
    for height, index in sorted(zip(heights, range(len(curves)), strict=True), reverse=True):
        curve, color = curves[index], colors[index]
        taken = min(height, taken - APART)
        axes.annotate(
            curve.label,
            curve.marked,
            xytext=(1.04, taken),
            textcoords="axes fraction",
            va="center",
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6},
        )
