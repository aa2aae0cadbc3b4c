"""A map of all layers: which term of the iron law is the largest, by width and batch."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import roofline
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.iron_law import Regimes
from figures import style

WIDTHS = numpy.geomspace(64, 65536, 120)
BATCHES = numpy.geomspace(1, 6000, 120)
NAMES = ("latency", "memory", "arithmetic")
COUNTRIES = (style.PURPLE, style.ORANGE, style.BLUE)
MARKED = (
    (Regimes.decode_width, Regimes.decode_batch, "a decode"),
    (Regimes.decode_width, Regimes.prefill_batch, "a long prompt"),
    (Regimes.small_width, Regimes.small_batch, "a small model"),
)


def draw() -> Figure:
    figure = style.figure(height=4.2, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Width of the layer")
    style.log_axis(axes, "y", "Batch")
    axes.grid(False)
    latency, memory, arithmetic = _terms(*numpy.meshgrid(WIDTHS, BATCHES))
    # How far each term is above the larger of the other two: positive in its own country.
    for term, others, colour in (
        (latency, numpy.maximum(memory, arithmetic), COUNTRIES[0]),
        (memory, numpy.maximum(latency, arithmetic), COUNTRIES[1]),
        (arithmetic, numpy.maximum(latency, memory), COUNTRIES[2]),
    ):
        lead = numpy.log(term / others)
        axes.contourf(WIDTHS, BATCHES, lead, levels=[0, 1e9], colors=[colour], alpha=0.22)
        axes.contour(WIDTHS, BATCHES, lead, levels=[0], colors=[style.INK], linewidths=0.8)
    _names(axes)
    _places(axes)
    axes.set_xlim(WIDTHS[0], WIDTHS[-1])
    axes.set_ylim(BATCHES[0], BATCHES[-1])
    return figure


def alt() -> str:
    places = (
        f"{name} of width {show(width)} at batch {show(batch)} (bound by {_country(width, batch)})"
        for width, batch, name in MARKED
    )
    return f"""A map with the width of a layer on the horizontal axis, from {show(WIDTHS[0])} to
    {show(WIDTHS[-1])}, and the batch on the vertical axis, from {show(BATCHES[0])} to
    {show(BATCHES[-1])}, both logarithmic. Narrow layers at small batch, up to a width of about
    {show(Regimes.width_of_memory, digits=2)}, lie at the lower left in the regime that is bound by
    latency. Wider layers at small batch are bound by memory, at the lower right; wide layers are
    bound by arithmetic, at the top, above a batch of about
    {show(Regimes.ridge_point.magnitude, digits=2)}. Marked are {listed(places)}."""


def _country(width: float, batch: float) -> str:
    """The name of the largest term there."""
    terms = dict(zip(NAMES, _terms(width, batch), strict=True))
    return max(terms, key=lambda name: float(terms[name]))


def _terms(width: Any, batch: Any) -> tuple[Any, Any, Any]:
    """Microseconds of latency, of memory and of arithmetic."""
    layer = roofline.gemm(batch, width, width, Regimes.element_size)
    memory = numpy.asarray((layer.traffic / Regimes.bandwidth).m_as("µs"))
    arithmetic = (layer.operations / Regimes.peak).m_as("µs")
    return numpy.full_like(memory, Regimes.launch.m_as("µs")), memory, arithmetic


def _names(axes: Axes) -> None:
    narrow = style.is_narrow()
    for x, y, name, lever in (
        (90, 110, "latency", "fuse,\nlaunch less often"),
        (4000, 60, "memory", "larger batch,\nsmaller numbers"),
        (8000, 3900, "arithmetic", "fewer operations,\nmore peak"),
    ):
        colour = COUNTRIES[NAMES.index(name)]
        title = name if narrow else f"bound by {name}"
        axes.text(x, y, title, color=colour, weight="bold", size=11)
        if not narrow:
            axes.text(x, y / 1.3, lever, va="top", size=style.SMALL)


def _places(axes: Axes) -> None:
    places = (((5, 7), "left"), ((0, -15), "center"), ((4, -15), "right"))
    for (width, batch, name), (offset, side) in zip(MARKED, places, strict=True):
        axes.plot(width, batch, "o", color=style.INK, markersize=6, clip_on=False, zorder=5)
        axes.annotate(
            name,
            (width, batch),
            xytext=offset,
            textcoords="offset points",
            ha=side,
            size=style.SMALL,
            weight="bold",
        )
