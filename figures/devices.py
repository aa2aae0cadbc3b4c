"""Peak against bandwidth of all devices of the registry, with diagonals of equal ridge point."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan, degrees, hypot
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from calc import hardware
from calc.catalog.hardware import Accelerator
from calc.derivations import show
from calc.derivations.hardware_tables import AcceleratorTables, dtype_of_two_bytes, short_names
from figures import style

GROUPS = {  # of the registry, and their mark
    "o": AcceleratorTables.gpus,
    "s": AcceleratorTables.cloud,
    "^": AcceleratorTables.edge,
}
RIDGES = (10, 30, 100, 300, 1000)  # FLOP/byte, of the diagonals
GIGA_PER_TERA = 1000
TERA = 1e12
MARKS = {device.key: mark for mark, devices in GROUPS.items() for device in devices}
DEVICES = tuple(hardware.get(key) for key in MARKS)
FIRST = ("h100", "a100", "tpu-v5p", "mi300x", "mi325x", "gb200", "b200", "h200", "tpu-v7", "v100")
PLACES = (  # where a name may stand beside its mark: offsets in points, and which side is held
    (6, 0, "left", "center"),
    (-6, 0, "right", "center"),
    (0, 5, "center", "bottom"),
    (0, -5, "center", "top"),
    (4, 4, "left", "bottom"),
    (4, -4, "left", "top"),
    (-4, 4, "right", "bottom"),
    (-4, -4, "right", "top"),
)
FAR = (  # with a line to the mark, where there is room for it
    (16, 14, "left", "center"),
    (16, -14, "left", "center"),
    (-16, 14, "right", "center"),
    (-16, -14, "right", "center"),
    (20, 26, "left", "center"),
    (20, -26, "left", "center"),
    (-20, 26, "right", "center"),
)


@style.drawn_twice
def draw(devices: Sequence[Accelerator] = DEVICES) -> Figure:
    """Draw the peaks and bandwidths of accelerators; those not of the registry are diamonds."""
    figure = style.figure(height=4.8, narrow_height=5.0)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Memory bandwidth (GB/s)")
    style.log_axis(axes, "y", "Peak (TFLOP/s, or TOP/s)")
    slowest = min(device.memory_bandwidth.m_as("GB/s") for device in devices)
    axes.set_xlim(min(35, 0.8 * slowest), 3e4)
    points = {
        device: _mark(axes, device, dtype, MARKS.get(device.key, "D"))
        for device in devices
        if (dtype := _format(device))
    }
    peaks = [peak for _, peak in points.values()]
    axes.set_ylim(min(peaks) / 1.6, max(peaks) * 2.5)
    _diagonals(axes)
    _names(figure, axes, points)
    return figure


def alt(devices: Sequence[Accelerator] = DEVICES) -> str:
    points = sorted(
        (device.memory_bandwidth.m_as("GB/s"), device.ridge_point(dtype).magnitude, device.name)
        for device in devices
        if (dtype := _format(device))
    )
    bandwidths, ridges, _ = zip(*points, strict=True)
    half = len(points) // 2
    (_, least, lowest), (_, most, highest) = (
        find(points, key=lambda point: point[1]) for find in (min, max)
    )
    return f"""Log-log plot of the peaks of {len(points)} devices against their memory bandwidth,
    which runs from {show(bandwidths[0])} to {show(bandwidths[-1])} GB/s, with diagonals of equal
    ridge point, in operations for each byte. The middle half of the ridge points lies
    between {show(sorted(ridges)[len(ridges) // 4], digits=2)} and
    {show(sorted(ridges)[-len(ridges) // 4], digits=2)}; the median is
    {show(median(ridges[:half] or ridges), digits=2)} for the slower half of the memories and
    {show(median(ridges[half:]), digits=2)} for the faster. Lowest is the {lowest} at
    {show(least, digits=2)}, highest the {highest} at {show(most, digits=2)}."""


def _format(device: Accelerator) -> str | None:
    """A format of two bytes, or the nearest that the device has."""
    return dtype_of_two_bytes(device) or next(
        (dtype for dtype in ("int8", "fp32") if dtype in device.dtypes), None
    )


def _mark(axes: Axes, device: Accelerator, dtype: str, mark: str) -> tuple[float, float]:
    bandwidth = device.memory_bandwidth.m_as("GB/s")
    # The peak in its own unit, be it of FLOP or of integer operations, and tera of it.
    at = (bandwidth, device.peak(dtype).to_base_units().magnitude / TERA)
    colour = style.DEVICES.get(device.key, style.INK)
    axes.plot(
        *at,
        mark,
        color=colour,
        markerfacecolor=colour if dtype in ("bf16", "fp16") else "none",
        markersize=6.5 if device.key in style.DEVICES else 5,
        zorder=4,
    )
    return at


def _diagonals(axes: Axes) -> None:
    """Lines of equal ridge point, named where they enter the figure."""
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    for ridge in RIDGES:
        ends = [bandwidth * ridge / GIGA_PER_TERA for bandwidth in (left, right)]
        axes.plot((left, right), ends, color=style.INK, alpha=0.35, linewidth=0.7, dashes=(4, 3))
        x = 1.05 * max(left, low * GIGA_PER_TERA / ridge)
        style.note(
            axes,
            x,
            1.12 * x * ridge / GIGA_PER_TERA,
            f"ridge point {ridge}" if ridge == max(RIDGES) else f"{ridge}",
            rotation=degrees(atan(ridge / GIGA_PER_TERA)),
            rotation_mode="anchor",
            transform_rotates_text=True,
        )
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)


def _names(figure: Figure, axes: Axes, points: dict[Accelerator, tuple[float, float]]) -> None:
    """Names beside their marks, each in the first place that is free; on a phone, what fits."""
    figure.draw_without_rendering()
    marks = {device: axes.transData.transform(at) for device, at in points.items()}
    taken: list[Bbox] = [text.get_window_extent() for text in axes.texts]  # of the diagonals
    names = short_names(list(points))
    short = {
        device: names[device.key]
        + ("" if dtype_of_two_bytes(device) else f" ({str(_format(device)).upper()})")
        for device in points
    }
    rank = {key: spot for spot, key in enumerate(FIRST)}
    for device in sorted(
        points, key=lambda device: (rank.get(device.key, len(rank)), -device.year)
    ):
        for spot in PLACES if style.is_narrow() else PLACES + FAR:
            text = _name(axes, device, short[device], points[device], spot)
            box = text.get_window_extent().padded(1)
            inside = axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1 and axes.bbox.y0 < box.y0
            distance = 0 if spot in FAR else 0.8 * _distance(box, *marks[device])
            others = (_distance(box, *at) for other, at in marks.items() if other is not device)
            if inside and min(others) > max(distance, 6) and not box.count_overlaps(taken):
                taken.append(box)
                if spot in FAR:
                    _line(axes, points[device], *spot[:2])
                break
            text.remove()


def _name(
    axes: Axes,
    device: Accelerator,
    name: str,
    at: tuple[float, float],
    spot: tuple[float, float, str, str],
) -> Text:
    across, up, side, base = spot
    return style.note(
        axes,
        *at,
        name,
        (across, up),
        ha=side,
        va=base,
        color=style.DEVICES.get(device.key, style.INK),
        weight="bold" if device.key in style.DEVICES else "normal",
    )


def _line(axes: Axes, at: tuple[float, float], across: float, up: float) -> None:
    axes.annotate(
        "",
        at,
        xytext=(across, up),
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": style.INK, "linewidth": 0.6, "shrinkB": 3},
    )


def _distance(box: Bbox, x: float, y: float) -> float:
    """Return the distance from a point to the nearest point of a box."""
    return hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1))
