"""Time of an all-reduce by size of the array, for a ring, a tree and two trees."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import collectives, quantity
from calc.derivations import show
from calc.derivations.communication import RingOrTree
from figures import style

SIZES = 1e2, 1e11  # bytes
SIZE_TICKS = [quantity(1, unit) for unit in ("kB", "MB", "GB")]
TIME_TICKS = [quantity(number, unit) for number, unit in ((100, "µs"), (10, "ms"), (1, "s"))]
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "one tree": (collectives.tree_all_reduce, {"color": style.INK, "linestyle": (0, (2, 2))}),
    "ring": (collectives.ring_all_reduce, {"color": style.INK}),
    "two trees": (
        collectives.double_tree_all_reduce,
        {"color": style.RED, "linestyle": (0, (6, 2))},
    ),
}


def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.7, narrow_height=6.4)
    panels = figure.subplots(2, 1) if narrow else figure.subplots(1, 2, sharey=True)
    for axes, devices in zip(panels, (RingOrTree.few, RingOrTree.many), strict=True):
        style.log_axis(axes, "x", "Size of the array", decades=3)
        style.log_axis(axes, "y", "Time of the all-reduce", decades=2)
        axes.set_xlim(*SIZES)
        axes.set_ylim(1e-5, 1e1)
        axes.set_xticks([size.m_as("byte") for size in SIZE_TICKS], map(_label, SIZE_TICKS))
        axes.set_yticks([time.m_as("s") for time in TIME_TICKS], map(_label, TIME_TICKS))
        axes.set_title(f"{show(devices)} devices")
        _times(axes, devices)
    if not narrow:
        panels[1].set_ylabel("")
    _few(panels[0])
    _many(panels[1])
    return figure


def alt() -> str:
    return f"""Log-log plots of the time of an all-reduce against the size of the array, a panel for
    {show(RingOrTree.few)} devices and one for {show(RingOrTree.many)}. Each curve is level for
    short arrays, where latency decides, and rises in proportion to the size of long ones; a single
    tree is the slowest for these. Among {show(RingOrTree.few)} devices an array of
    {show(RingOrTree.small)} takes {show(RingOrTree.small_by_ring_of_few, digits=2)} on the ring and
    {show(RingOrTree.small_by_tree_of_few, digits=2)} on trees, and from
    {show(RingOrTree.crossover_few)} on the ring is faster than a pair of trees. Among
    {show(RingOrTree.many)} it takes {show(RingOrTree.small_by_ring, digits=2)} and
    {show(RingOrTree.small_by_tree, digits=2)}, and the ring wins only from
    {show(RingOrTree.crossover_many, digits=3)} on."""


def _label(tick: Any) -> str:
    return str(show(tick))


def _times(axes: Axes, devices: int) -> None:
    sizes = quantity(numpy.geomspace(*SIZES, 200), "byte")
    for law, look in WAYS.values():
        time = law(sizes, devices, RingOrTree.link, RingOrTree.latency)
        axes.plot(sizes.magnitude, time.m_as("s"), linewidth=1.7, **look)


def _words(axes: Axes, text: str, x: float, y: float, **look: Any) -> None:
    axes.text(x, y, text, size=style.SMALL, **look)


def _few(axes: Axes) -> None:
    crossover = RingOrTree.crossover_few
    time = collectives.ring_all_reduce(
        crossover, RingOrTree.few, RingOrTree.link, RingOrTree.latency
    )
    axes.plot(crossover.m_as("byte"), time.m_as("s"), "o", color=style.RED, markersize=6)
    _words(
        axes, f"ring: {show(RingOrTree.small_by_ring_of_few, digits=2)}", 2e2, 9e-5, weight="bold"
    )
    trees = f"trees: {show(RingOrTree.small_by_tree_of_few, digits=2)}"
    _words(axes, trees, 2e2, 1.5e-5, weight="bold", color=style.RED)
    _words(axes, "one tree", 1.2e9, 1.2e0, ha="right", weight="bold")
    _words(
        axes,
        f"from {show(crossover)} on\nthe ring wins",
        crossover.m_as("byte") * 3,
        time.m_as("s") * 0.75,
        va="top",
        color=style.RED,
        weight="bold",
    )


def _many(axes: Axes) -> None:
    ring = f"ring: {show(RingOrTree.small_by_ring, digits=2)}"
    trees = f"trees: {show(RingOrTree.small_by_tree, digits=2)}"
    _words(axes, ring, 2e2, 1.4e-2, weight="bold")
    _words(axes, trees, 2e2, 4e-5, weight="bold", color=style.RED)
    _words(axes, "one tree", 6e8, 1.7, ha="right", weight="bold")
    _words(
        axes,
        f"the ring wins\nfrom {show(RingOrTree.crossover_many, digits=3)} on",
        8e10,
        1.5e-3,
        ha="right",
        va="top",
        color=style.RED,
        weight="bold",
    )
