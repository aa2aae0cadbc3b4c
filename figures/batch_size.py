"""What a larger batch does to a layer: its intensity rises to the ridge, and only then its time."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import roofline
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.roofline import BatchSize
from figures import style

BATCH = numpy.geomspace(1, 4096, 300)


def draw() -> Figure:
    figure = style.figure(height=3.2, narrow_height=5.8)
    left, right = style.panels(figure, 2)
    layer, time = _layer()
    by_weights = roofline.weights_only_intensity(BATCH, BatchSize.element_size)

    style.log_axis(left, "x", "Batch size")
    style.log_axis(left, "y", "Intensity (FLOP/byte)")
    left.plot(BATCH, by_weights.magnitude, color=style.INK, linewidth=1, linestyle=(0, (4, 3)))
    left.plot(BATCH, layer.intensity.magnitude, color=style.DEVICES["a100"])
    ridge = BatchSize.ridge_point.magnitude
    left.axhline(ridge, color=style.INK, linewidth=0.8)
    _note(left, 1.1, ridge, f"ridge point: {ridge:.0f}", (0, 3))
    _note(left, 900, 1500, "by weights\nalone", (-2, 2), "right")
    _note(left, 2500, 1020, "in full", (0, -12), "center", style.DEVICES["a100"])

    style.log_axis(right, "x", "Batch size")
    style.log_axis(right, "y", "Time of a step (µs)")
    right.plot(BATCH, time.m_as("µs"), color=style.DEVICES["a100"])
    critical = BatchSize.critical_batch.magnitude
    right.axvline(critical, color=style.INK, linewidth=0.8)
    right.set_ylim(5, 1000)
    _note(right, critical, 600, f"critical batch: {critical:.0f}", (-4, 0), "right")
    _note(right, 1.1, time.m_as("µs")[0], "time to read\nthe weights", (0, -24))
    return figure


def alt() -> str:
    critical = show(BatchSize.critical_batch, digits=3)
    return f"""Plots over the batch size, from {show(BATCH[0])} to {show(BATCH[-1])}, on logarithmic
    axes, for a layer of width {show(BatchSize.width)} on an A100. In the first panel the layer's
    intensity grows in proportion to the batch, bends away from the approximation by weights alone,
    and crosses the A100's ridge point of {show(BatchSize.ridge_point, digits=3)} at a batch of
    {critical}. In the second the time of a step stays near
    {show(_layer()[1].min(), "µs", digits=3)} up to that batch, and rises in proportion to the batch
    from there."""


def _layer() -> tuple[roofline.Workload, Quantity]:
    """The layer at each batch, and the time of its step."""
    layer = roofline.gemm(BATCH, BatchSize.width, BatchSize.width, BatchSize.element_size)
    time = roofline.execution_time_overlapped(
        layer.traffic, BatchSize.bandwidth, layer.operations, BatchSize.peak
    )
    return layer, time


def _note(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    offset: tuple[float, float],
    side: str = "left",
    colour: str = style.INK,
) -> None:
    axes.annotate(
        text,
        (x, y),
        xytext=offset,
        textcoords="offset points",
        ha=side,
        color=colour,
        size=style.SMALL,
    )
