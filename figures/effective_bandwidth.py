"""Effective bandwidth by message size: four links, each with the size that reaches half of it."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import links, quantity
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.links_examples import FourLinks, LongLink, WireAndLibrary
from figures import style

RATE = "GB/s"
SIZES = 1e1, 1e11  # bytes
SIZE_TICKS = [quantity(1, unit) for unit in ("kB", "MB", "GB")]
RATE_TICKS = [quantity(1, unit) for unit in ("kB/s", "MB/s", "GB/s", "TB/s")]


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.6, narrow_height=4.8)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Size of the message", decades=3)
    style.log_axis(axes, "y", "Effective bandwidth", decades=3)
    axes.set_xlim(*SIZES)
    axes.set_ylim(5e-7, 2e3)
    style.ticks(axes.xaxis, SIZE_TICKS, "byte")
    style.ticks(axes.yaxis, RATE_TICKS, RATE)
    for name, _, latency, bandwidth, half in FourLinks.rows:
        _link(axes, name, latency, bandwidth, half, narrow)
    _library(axes, narrow)
    _sides(axes, narrow)
    _examples(axes)
    return figure


def alt() -> str:
    halves = (f"{name}, {show(half, digits=3)}" for name, *_, half in FourLinks.rows)
    return f"""Log-log plot of effective bandwidth against the size of the message, a curve for each
    link. On the left, where latency decides, every curve rises in proportion to the size; on the
    right it is level at the link's bandwidth. Dots mark the sizes that reach half of it:
    {"; ".join(halves)}; and for an all-reduce among {show(WireAndLibrary.devices)} H100s, drawn in
    small dots to the right of NVLink, {show(WireAndLibrary.half, digits=2)}. Circles on the curve
    of the long link mark {show(LongLink.small)}, which reaches
    {show(LongLink.small_effective, digits=3)}, and {show(LongLink.large)}, which reaches
    {show(LongLink.large_effective, digits=3)}."""


def _link(
    axes: Axes, name: str, latency: Quantity, bandwidth: Quantity, half: Quantity, narrow: bool
) -> None:
    sizes = quantity(numpy.geomspace(*SIZES, 300), "byte")
    effective = links.effective_bandwidth(sizes, bandwidth, latency)
    axes.plot(sizes.magnitude, effective.m_as(RATE), color=style.INK, linewidth=1.5)
    axes.plot(half.m_as("byte"), bandwidth.m_as(RATE) / 2, "o", color=style.RED, markersize=6)
    # PCIe and InfiniBand end on almost the same height: one name above the curves, one below.
    above = name != "InfiniBand NDR"
    style.note(
        axes,
        SIZES[1],
        bandwidth.m_as(RATE),
        name if narrow else f"{name}: half at {show(half, digits=3)}",
        (-2, 3 if above else -5),
        ha="right",
        va="bottom" if above else "top",
        bold=True,
    )


def _library(axes: Axes, narrow: bool) -> None:
    """Draw the bus bandwidths that a library reaches over NVLink."""
    curve = WireAndLibrary.curve
    points = [
        (size, bandwidth / 1e9)
        for size, bandwidth in zip(curve.sizes, curve.bus_bandwidths, strict=True)
        if size >= SIZES[0] and bandwidth > 0
    ]
    axes.plot(*zip(*points, strict=True), ".", color=style.DEVICES["h100"], markersize=4)
    half = WireAndLibrary.half.m_as("byte")
    best = max(curve.bus_bandwidths) / 1e9
    axes.plot(half, best / 2, "o", color=style.RED, markersize=6)
    style.note(
        axes,
        3e5 if narrow else 1.2e5,
        5 if narrow else 2,
        "all-reduce" if narrow else "all-reduce by NVLink,\nmeasured",
        va="top",
        color=style.DEVICES["h100"],
        bold=True,
    )


def _sides(axes: Axes, narrow: bool) -> None:
    """Write beside the dots what each side of them is about, and what they are."""
    style.note(
        axes,
        LongLink.half_size.m_as("byte"),
        LongLink.bandwidth_bytes.m_as(RATE) / 2,
        "half of the\nbandwidth",
        (7, -6),
        va="top",
        color=style.RED,
        bold=True,
    )
    style.note(
        axes,
        2e3,
        2e-3 if narrow else 1.5e-3,
        "left of the dots,\nlatency decides",
        rotation=65 if narrow else 34,
        rotation_mode="anchor",
        alpha=0.85,
    )
    style.note(axes, 8e10, 4e-6, "right of the dots,\nbandwidth decides", alpha=0.85, ha="right")


def _examples(axes: Axes) -> None:
    """The small and the large message of the worked example."""
    for size, effective in (
        (LongLink.small, LongLink.small_effective),
        (LongLink.large, LongLink.large_effective),
    ):
        axes.plot(
            size.m_as("byte"),
            effective.m_as(RATE),
            "o",
            markersize=6,
            markerfacecolor="none",
            markeredgecolor=style.INK,
        )
    style.note(
        axes,
        LongLink.small.m_as("byte"),
        LongLink.small_effective.m_as(RATE),
        f"{show(LongLink.small)}: {show(LongLink.small_effective, digits=3)}",
        (7, -4),
        va="top",
    )
