"""A map of all layers by the largest term of the iron law, and what changes move in it."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import roofline
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.roofline_chapter import Regimes
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


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.4, narrow_height=4.8)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Width of the layer")
    style.log_axis(axes, "y", "Batch")
    axes.grid(False)
    grid = numpy.meshgrid(WIDTHS, BATCHES)
    latency, memory, arithmetic = _terms(*grid)
    # How far each term is above the larger of the other two: positive in its own country.
    for term, others, colour in (
        (latency, numpy.maximum(memory, arithmetic), COUNTRIES[0]),
        (memory, numpy.maximum(latency, arithmetic), COUNTRIES[1]),
        (arithmetic, numpy.maximum(latency, memory), COUNTRIES[2]),
    ):
        lead = numpy.log(term / others)
        axes.contourf(WIDTHS, BATCHES, lead, levels=[0, 1e9], colors=[colour], alpha=0.22)
        axes.contour(WIDTHS, BATCHES, lead, levels=[0], colors=[style.INK], linewidths=0.8)
    graph = numpy.log(numpy.maximum(memory, arithmetic) / Regimes.gap.m_as("µs"))
    lighter = numpy.log(arithmetic / _terms(*grid, Regimes.small_element)[1])
    lighter[arithmetic < latency] = numpy.nan  # where a launch outlasts both
    for border in (graph, lighter):
        axes.contour(
            WIDTHS,
            BATCHES,
            border,
            levels=[0],
            colors=[style.INK],
            linewidths=1,
            linestyles=[(0, (4, 3))],
        )
    _names(axes)
    _changes(axes)
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
    {show(Regimes.ridge_point.magnitude, digits=2)}. Marked are {listed(places)}. Arrows lead to
    dashed borders: one graph of all kernels moves that of latency down to a width of about
    {show(Regimes.width_of_gap, digits=2)}, weights of half the size move that of arithmetic down to
    a batch of about {show(Regimes.small_ridge.magnitude, digits=2)}, and a larger batch lifts the
    decode to the ridge."""


def _country(width: float, batch: float) -> str:
    """The name of the largest term there."""
    terms = dict(zip(NAMES, _terms(width, batch), strict=True))
    return max(terms, key=lambda name: float(terms[name]))


def _terms(
    width: Any, batch: Any, weights: Quantity = Regimes.element_size
) -> tuple[Any, Any, Any]:
    """Microseconds of latency, of memory and of arithmetic, with weights of that size."""
    layer = roofline.gemm(batch, width, width, Regimes.element_size)
    saved = width**2 * (Regimes.element_size - weights)
    memory = numpy.asarray(((layer.traffic - saved) / Regimes.bandwidth).m_as("µs"))
    arithmetic = (layer.operations / Regimes.peak).m_as("µs")
    return numpy.full_like(memory, Regimes.launch.m_as("µs")), memory, arithmetic


def _names(axes: Axes) -> None:
    narrow = style.is_narrow()
    for (x, y), name in zip(((80, 200), (6500, 22), (5500, 3300)), NAMES, strict=True):
        title = name if narrow else f"bound by {name}"
        axes.text(x, y, title, weight="bold", size=11)


def _changes(axes: Axes) -> None:
    """Each arrow leads from where a border or the work is to where a change moves it."""
    narrow = style.is_narrow()
    ridge, small_ridge = Regimes.ridge_point.magnitude, Regimes.small_ridge.magnitude
    memory, graph = Regimes.width_of_memory.magnitude, Regimes.width_of_gap.magnitude
    low, width = 4, 25_000
    for start, end, text, place, side in (
        (
            (memory, low),
            (graph, low),
            "one graph of\nall kernels" if narrow else "one graph of all kernels:\nless latency",
            (graph / 1.15, low),
            "right",
        ),
        (
            (width, ridge),
            (width, small_ridge),
            "half the\nweights" if narrow else "weights of half the size:\nless memory time",
            (WIDTHS[-1] / 1.05, small_ridge / 1.7),
            "right",
        ),
        (
            (Regimes.decode_width, 1.3 * Regimes.decode_batch),
            (Regimes.decode_width, 0.9 * ridge),
            "larger\nbatch" if narrow else "larger batch: more arithmetic\nfor the same reading",
            (1.15 * Regimes.decode_width, 7),
            "left",
        ),
    ):
        style.arrow(axes, start, end, "-|>", linewidth=1.4, shrinkA=0, shrinkB=0)
        x, y = place
        style.note(axes, x, y, text, ha=side, va="center")


def _places(axes: Axes) -> None:
    places = (((5, 7), "left"), ((7, -4), "left"), ((-5, -15), "right"))
    for (width, batch, name), (offset, side) in zip(MARKED, places, strict=True):
        axes.plot(width, batch, "o", color=style.INK, markersize=6, clip_on=False, zorder=5)
        style.note(axes, width, batch, name, by=offset, ha=side, bold=True)
