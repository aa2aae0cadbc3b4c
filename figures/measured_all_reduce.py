"""Bus bandwidth of an all-reduce by size of the array, measured on five machines."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from calc import quantity
from calc.derivations import show
from calc.derivations.collectives_chapter import MeasuredAllReduce
from figures import style

SIZES = 1e3, 2e10  # bytes
SIZE_TICKS = [quantity(1, unit) for unit in ("kB", "MB", "GB")]
RATE_TICKS = [quantity(number, "GB/s") for number in (1, 10, 100, 1000)]
LOOKS: dict[str, dict[str, Any]] = {
    "H100": {"color": style.DEVICES["h100"], "linewidth": 2.2},
    "A100": {"color": style.DEVICES["a100"]},
    "MI300X": {"color": style.PURPLE},
    "B200": {"color": style.INK},
    "GB200 NVL72": {"color": style.INK, "linestyle": (0, (6, 2))},
}
OFFSETS = {"B200": 8, "GB200 NVL72": 1, "H100": -2, "MI300X": -3, "A100": -6}


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.4, narrow_height=4.8)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Size of the array", decades=3)
    style.log_axis(axes, "y", "Bus bandwidth")
    axes.set_xlim(SIZES[0], SIZES[1] * (100 if narrow else 800))
    axes.set_ylim(0.08, 1.6e3)
    style.ticks(axes.xaxis, SIZE_TICKS, "byte")
    style.ticks(axes.yaxis, RATE_TICKS, "GB/s")
    for name, fitted in MeasuredAllReduce.fitted:
        curve = fitted.curve
        points = [
            (size, bandwidth / 1e9)
            for size, bandwidth in zip(curve.sizes, curve.bus_bandwidths, strict=True)
            if SIZES[0] <= size <= SIZES[1]
        ]
        axes.plot(*zip(*points, strict=True), **LOOKS[name])
        style.note(
            axes,
            *points[-1],
            f"{show(fitted.devices)} {name}",
            (5, OFFSETS[name]),
            color=LOOKS[name]["color"],
            bold=True,
            va="center",
        )
        half = fitted.half.m_as("byte")
        axes.plot(half, fitted.beta.m_as("GB/s") / 2, "o", color=style.RED, markersize=6)
    style.note(axes, 2.5e8, 30, "dots: half\nof the largest", color=style.RED, bold=True)
    return figure


def alt() -> str:
    halves = (
        f"{show(fitted.devices)} {name}, half at {show(fitted.half, digits=2)} of"
        f" {show(fitted.beta, digits=2)}"
        for name, fitted in MeasuredAllReduce.fitted
    )
    return f"""Log-log plot of the bus bandwidth of an all-reduce against the size of the array, a
    curve for each machine that was measured. Each rises in proportion to the size and bends to its
    largest bandwidth, and a dot marks half of that: {"; ".join(halves)}."""
