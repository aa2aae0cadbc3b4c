"""Figure of a larger batch: weights, which all sequences share, and caches, which none do."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import roofline
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.roofline_chapter import BatchOfRequests, BatchSize
from figures import style

BATCH = numpy.geomspace(1, 4096, 200)
COLOUR = style.BLUE
LINES = ((0, (5, 2)), (0, (1.5, 1.5)))  # of the contexts


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=6.2)
    left, right = style.panels(figure, 2)
    for axes in (left, right):
        style.log_axis(axes, "x", "Batch (requests)")
        axes.set_xlim(BATCH[0], BATCH[-1])
    style.log_axis(left, "y", "Intensity (FLOP/byte)")
    style.log_axis(right, "y", "Time / reading the weights")
    left.set_ylim(0.7, 3000)
    right.set_ylim(0.7, 60)
    intensity, slowdown = _layer()
    left.plot(BATCH, intensity, color=COLOUR)
    right.plot(BATCH, slowdown, color=COLOUR)
    for context, line in zip(BatchOfRequests.contexts, LINES, strict=True):
        _context(left, right, context, line)
    ridge, critical = BatchSize.ridge_point.magnitude, BatchSize.critical_batch.magnitude
    left.axhline(ridge, color=style.INK, linewidth=0.8)
    right.axvline(critical, color=style.INK, linewidth=0.8)
    style.note(left, BATCH[0], ridge, f"ridge point {ridge:.0f}", (4, 4))
    style.note(left, BATCH[-1], intensity[-1], "weights\nalone", (-4, 8), ha="right", color=COLOUR)
    style.note(right, critical, 0.8, f"critical batch {critical:.0f}", (4, 0))
    style.note(right, 560, 1.8, "weights\nalone", (0, 0), color=COLOUR)
    return figure


def alt() -> str:
    def ends(context: int) -> str:
        most = BatchOfRequests.most(context)
        reached = BatchOfRequests.step(most, context).intensity
        times = show(BatchOfRequests.slowdown(most, context), digits=2)
        return (
            f"with {show(context)} tokens of context memory is full at {show(most, digits=2)}"
            f" requests, at {show(reached, digits=2)} and {times} times the time"
        )

    return f"""Plots over the batch size, from {show(BATCH[0])} to {show(BATCH[-1])}, on logarithmic
    axes, on an H200. In the first panel the intensity of a layer of width {show(BatchSize.width)},
    weights alone, grows in proportion to the batch and crosses the ridge point of
    {show(BatchSize.ridge_point, digits=3)} at a batch of
    {show(BatchSize.critical_batch, digits=3)}. In the second its time stays that of reading the
    weights up to there, and then rises in proportion to the batch. Lines for decode with keys and
    values leave it early, level off below the ridge, and end in dots:
    {listed(map(ends, BatchOfRequests.contexts))}."""


def _layer() -> tuple[Any, Any]:
    """The layer's intensity at each batch, and its time by that of reading its weights."""
    layer = roofline.gemm(BATCH, BatchSize.width, BatchSize.width, BatchSize.element_size)
    time = roofline.execution_time_overlapped(
        layer.traffic, BatchSize.bandwidth, layer.operations, BatchSize.peak
    )
    weights = BatchSize.width**2 * BatchSize.element_size / BatchSize.bandwidth
    return layer.intensity.magnitude, (time / weights).m_as("")


def _context(left: Axes, right: Axes, context: int, line: Any) -> None:
    """Decode with so many tokens a request, up to where memory is full."""
    most = BatchOfRequests.most(context)
    batch = numpy.geomspace(1, most, 80)
    intensity = BatchOfRequests.step(batch, context).intensity.magnitude
    slowdown = BatchOfRequests.slowdown(batch, context)
    for axes, values in ((left, intensity), (right, slowdown)):
        axes.plot(batch, values, color=style.RED, linestyle=line, linewidth=1.6)
        axes.plot(most, values[-1], "o", color=style.RED, markersize=5)
    name = f"{show(context)} tokens"
    style.note(left, most, intensity[-1], f"{name},\nmemory full", (7, -10), color=style.RED)
    above = context == min(BatchOfRequests.contexts)
    style.note(
        right, most, slowdown[-1], name, (0, 10) if above else (-9, -4), ha="right", color=style.RED
    )
