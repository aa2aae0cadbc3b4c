"""The roofline of a measured core next to an H100's, and where the kernels of the suite end up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from polars import col

from calc import hardware, quantity, roofline
from calc.catalog.hardware import Accelerator
from calc.derivations import show
from calc.derivations.hardware_aware import CPU, EIGHT_ROWS, KERNELS
from figures import style

RATE = "GFLOP/s"
DEVICES = ((hardware.H100, "fp16"), (CPU, "fp32"), (CPU, "fp64"))
NAMES = {"h100": "H100"}
LABELS = {  # of kernels: offset in points, and the side that it stands on
    "resolvent": ((7, -1), "left"),
    EIGHT_ROWS: ((7, -4), "left"),
    "attention, decode": ((7, -4), "left"),
}


@style.drawn_twice
def draw(devices: Sequence[tuple[Accelerator, str]] = DEVICES) -> Figure:
    """Draw the rooflines of accelerators, each in a number format, with measured kernels."""
    figure = style.figure(height=4.3, narrow_height=4.3)
    axes = figure.subplots()
    decades = 2 if style.is_narrow() else 1
    style.log_axis(axes, "x", "Arithmetic intensity (FLOP/byte)", decades)
    style.log_axis(axes, "y", f"Rate ({RATE})", decades=2)
    axes.set_xlim(0.05, 3e3)
    axes.set_ylim(0.3, 4e6)
    drawn: set[str] = set()
    for device, dtype in devices:
        _roof(axes, device, dtype, device.key in drawn)
        drawn.add(device.key)
    _kernels(axes)
    return figure


def alt(devices: Sequence[tuple[Accelerator, str]] = DEVICES) -> str:
    roofs = (
        f"{NAMES.get(device.key, device.name)} in {dtype.upper()}, "
        f"{show(device.peak(dtype).to(RATE), digits=3)} from "
        f"{show(device.ridge_point(dtype), digits=3)} on"
        for device, dtype in devices
    )
    below = (
        f"{name} by a factor of {show(ratio, digits=2)}"
        for name, ratio in KERNELS.filter(col("name").is_in(LABELS)).select("name", "ratio").rows()
    )
    return f"""Log-log plot of rate against arithmetic intensity. Each roof rises along the memory's
    bandwidth and is flat right of its ridge point: {"; ".join(roofs)}. Dots are the kernels of the
    suite, measured on the core: most lie on or near its roofs, and named are some of those that
    miss them most: {"; ".join(below)}."""


def _roof(axes: Axes, device: Accelerator, dtype: str, again: bool) -> None:
    """A further format of the same device is dashed, and named below its roof."""
    colour = style.DEVICES.get(device.key, style.INK)
    low, high = axes.get_xlim()
    peak, bandwidth, ridge = device.peak(dtype), device.memory_bandwidth, device.ridge_point(dtype)
    corners = quantity(numpy.array([low, ridge.magnitude, high]), "FLOP/byte")
    rates = roofline.attainable(peak, bandwidth, corners).m_as(RATE)
    axes.plot(corners.magnitude, rates, color=colour, linestyle="--" if again else "-")
    axes.plot(ridge.magnitude, rates[1], "o", color=colour, markersize=4.5)
    name = "" if again else f"{NAMES.get(device.key, device.name)}, "
    style.note(
        axes,
        high,
        rates[-1],
        f"{name}{dtype.upper()}: ridge {ridge.magnitude:.3g}",
        (-2, -4 if again else 4),
        ha="right",
        va="top" if again else "bottom",
        color=colour,
        bold=True,
    )


def _kernels(axes: Axes) -> None:
    """Each kernel by its own count of operations and bytes, where it has operations."""
    rows = KERNELS.filter(col("operations") > 0).with_columns(
        (col("operations") / col("traffic_bytes")).alias("intensity"),
        (col("operations") / col("measured_seconds") / 1e9).alias("rate"),
    )
    axes.plot(
        rows["intensity"].to_list(),
        rows["rate"].to_list(),
        "o",
        color=style.RED,
        markersize=4,
        alpha=0.75,
    )
    for name, (offset, side) in LABELS.items():
        row = rows.row(by_predicate=col("name") == name, named=True)
        style.name_dot(axes, name, (row["intensity"], row["rate"]), offset, side)
