"""Time of an all-reduce by size of the array: for a ring, for two trees, and as measured."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import quantity
from calc.derivations import show
from calc.derivations.collectives import Fitted, RingOrTree
from figures import style

SIZES = 1e3, 1e12  # bytes
SIZE_TICKS = [quantity(1, unit) for unit in ("kB", "MB", "GB", "TB")]
TIME_TICKS = [quantity(number, unit) for number, unit in ((10, "µs"), (1, "ms"), (100, "ms"))]


def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.7, narrow_height=6.4)
    panels = style.panels(figure, 2, sharey=not narrow)
    for axes, fitted, title in zip(
        panels,
        (RingOrTree.few, RingOrTree.many),
        ("H100s, one server", "GPUs, GB200 NVL72 racks"),
        strict=True,
    ):
        style.log_axis(axes, "x", "Size of the array", decades=3)
        style.log_axis(axes, "y", "Time of the all-reduce", decades=2)
        axes.set_xlim(*SIZES)
        axes.set_ylim(5e-6, 5)
        axes.set_xticks([size.m_as("byte") for size in SIZE_TICKS], map(_label, SIZE_TICKS))
        axes.set_yticks([time.m_as("s") for time in TIME_TICKS], map(_label, TIME_TICKS))
        axes.set_title(f"{show(fitted.devices)} {title}")
        _times(axes, fitted)
    if not narrow:
        panels[1].set_ylabel("")
    _words(panels[0], "ring", 1.4e3, 6.5e-5, style.BLUE)
    _words(panels[0], "two trees, and measured", 1.4e3, 8e-6, style.INK)
    _words(panels[1], "ring", 1.4e3, 6e-3, style.BLUE)
    _words(panels[1], "two trees, and measured", 1.4e3, 9e-5, style.INK)
    return figure


def alt() -> str:
    few, many = RingOrTree.few, RingOrTree.many
    return f"""Log-log plots of the time of an all-reduce against the size of the array, a panel for
    {show(few.devices)} H100s of a server and one for {show(many.devices)} GPUs of GB200 NVL72
    racks. In each a curve of a ring and one of two trees are level for short arrays, from
    {show(few.ring(few.small).to("µs"), digits=2)} and {show(few.alpha, digits=2)} in the first, and
    from {show(RingOrTree.small_by_ring, digits=2)} and {show(many.alpha, digits=2)} in the second,
    and rise together with the size of long ones; the ring is the faster from
    {show(few.crossover, digits=2)} and from {show(many.crossover, digits=2)} on. Dots of what was
    measured lie near the trees at both ends and above them in the middle, where at
    {show(few.half, digits=2)} and {show(many.half, digits=2)} they reach half of their
    bandwidth."""


def _label(tick: Any) -> str:
    return str(show(tick))


def _times(axes: Axes, fitted: Fitted) -> None:
    """Two laws, what was measured, where the laws cross, and half of the bandwidth."""
    sizes = quantity(numpy.geomspace(*SIZES, 200), "byte")
    x = sizes.m_as("byte")
    axes.plot(x, fitted.ring(sizes).m_as("s"), color=style.BLUE, linewidth=1.7)
    axes.plot(
        x, fitted.trees(sizes).m_as("s"), color=style.INK, linewidth=1.7, linestyle=(0, (6, 2))
    )
    curve = fitted.curve
    within = [place for place, size in enumerate(curve.sizes) if size >= SIZES[0]]
    axes.plot(
        [curve.sizes[place] for place in within],
        [curve.times[place] for place in within],
        "o",
        color=style.INK,
        markersize=3.5,
    )
    for size, time, face in (
        (fitted.crossover, fitted.ring(fitted.crossover), style.RED),
        (fitted.half, fitted.measured(fitted.half), "none"),
    ):
        axes.plot(
            size.m_as("byte"),
            time.m_as("s"),
            "o",
            color=style.RED,
            markersize=7,
            markerfacecolor=face,
            markeredgewidth=1.5,
        )
    _words(
        axes,
        f"half at\n{show(fitted.half, digits=2)}",
        fitted.half.m_as("byte") * 2,
        fitted.measured(fitted.half).m_as("s") * 0.55,
        style.RED,
        va="top",
    )
    _words(
        axes,
        f"the ring wins\nfrom {show(fitted.crossover, digits=2)} on",
        fitted.crossover.m_as("byte") * 0.6,
        fitted.ring(fitted.crossover).m_as("s") * 2.2,
        style.RED,
        ha="right",
    )


def _words(axes: Axes, text: str, x: float, y: float, colour: str, **look: Any) -> None:
    axes.text(x, y, text, size=style.SMALL, color=colour, weight="bold", **look)
