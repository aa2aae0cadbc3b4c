"""The roofline of an H100 as published and as measured, and matrix products beneath it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import hardware, quantity, roofline
from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.hardware_tables import dtype_of_two_bytes
from calc.derivations.roofline_chapter import A100Roofline, DecodeStep, MeasuredRoofline
from figures import style

RATE = "TFLOP/s"
INTENSITY = "FLOP/byte"
DEVICES = (hardware.H100,)
LINES = ("-", (0, (6, 2, 1.5, 2)), (0, (1.5, 2)))  # distinct in grey too
REACHED = (0, (5, 2))
SHORT_NAMES = {"h100": "H100 SXM"}
EDGES = (0.1, 1e4)


@style.drawn_twice
def draw(devices: Sequence[Accelerator] = DEVICES) -> Figure:
    """Draw the rooflines of accelerators, in a format of two bytes or, where none is, in FP32."""
    narrow = style.is_narrow()
    figure = style.figure(height=4.9, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", f"Arithmetic intensity ({INTENSITY})", decades=2 if narrow else 1)
    style.log_axis(axes, "y", f"Rate ({RATE})")
    axes.set_xlim(*EDGES)
    slowest = min(device.memory_bandwidth.m_as("TB/s") for device in devices)
    axes.set_ylim(min(0.3, EDGES[0] * slowest), 8e3 if narrow else 2.5e3)
    for device, line in zip(devices, cycle(LINES), strict=False):
        _published(axes, device, line)
    _measured(axes)
    _workloads(axes, narrow)
    _gap(axes, narrow)
    _sides(axes, narrow)
    return figure


def alt(devices: Sequence[Accelerator] = DEVICES) -> str:
    roofs = (
        f"{SHORT_NAMES.get(device.key, device.name)} at {show(device.ridge_point(dtype), digits=3)}"
        f" and {show(device.peak(dtype), digits=3)}"
        for device in devices
        for dtype in [_dtype(device)]
    )
    works = (
        f"{name} at {show(_on_the_h100(intensity), digits=2)}"
        for name, intensity, *_ in _named_works()
    )
    return f"""Log-log plot of rate against arithmetic intensity. A published roof rises along the
    memory's bandwidth and turns flat at its ridge point: {"; ".join(roofs)}. Dashed beneath that of
    the H100 lie the rates that kernels reached, {show(MeasuredRoofline.bandwidth, digits=3)} and
    {show(MeasuredRoofline.peak)}; above it rises a roof of
    {show(MeasuredRoofline.l2_bandwidth, digits=3)} for bytes that come from the L2 cache. Small
    dots, {show(len(MeasuredRoofline.dots))} measured GEMMs, lie at
    {show(MeasuredRoofline.thin_share, "%", 2)} of the dashed roof in the median where they are
    memory-bound, and at {show(MeasuredRoofline.wide_share, "%", 2)} where they are compute-bound.
    Rings are bounds of pieces of work: {"; ".join(works)}; an arrow says that the peak is
    {show(DecodeStep.peak / DecodeStep.attainable, digits=3)} times as high as what decode reaches
    at batch 1."""


def _dtype(device: Accelerator) -> str:
    return dtype_of_two_bytes(device) or "fp32"


def _named_works() -> list[tuple[str, Quantity, tuple[float, float], str]]:
    """Pieces of work, their intensities, and where their names stand."""
    return [
        ("ReLU", A100Roofline.relu_intensity, (9, -7), "left"),
        ("decode, batch 1", DecodeStep.intensity, (9, -7), "left"),
        (f"decode, batch {DecodeStep.large_batch}", DecodeStep.large_intensity, (9, -9), "left"),
        (f"GEMM {A100Roofline.n}³", A100Roofline.gemm_intensity, (0, 8), "center"),
    ]


def _on_the_h100(intensity: Quantity) -> Quantity:
    h100 = hardware.H100
    rate: Quantity = roofline.attainable(h100.peak("fp16"), h100.memory_bandwidth, intensity)
    return rate


def _roof(axes: Axes, peak: Quantity, bandwidth: Quantity, **look: Any) -> None:
    bend = roofline.ridge_point(peak, bandwidth).m_as(INTENSITY)
    corners = quantity([EDGES[0], bend, EDGES[1]], INTENSITY)
    rates = roofline.attainable(peak, bandwidth, corners)
    axes.plot(corners.magnitude, rates.m_as(RATE), solid_joinstyle="miter", **look)


def _published(axes: Axes, device: Accelerator, line: Any) -> None:
    colour = style.DEVICES.get(device.key, style.INK)
    dtype = _dtype(device)
    peak, ridge = device.peak(dtype), device.ridge_point(dtype).m_as(INTENSITY)
    _roof(axes, peak, device.memory_bandwidth, color=colour, linestyle=line)
    axes.plot([ridge] * 2, [axes.get_ylim()[0], peak.m_as(RATE)], ":", color=colour, linewidth=0.9)
    name = SHORT_NAMES.get(device.key, device.name)
    _at_the_edge(axes, peak, f"{name}\n{show(peak, digits=3)}", colour, "bottom")
    style.note(
        axes,
        ridge,
        axes.get_ylim()[0],
        f"ridge {show(device.ridge_point(dtype).magnitude, digits=3)}",
        (4, 22),
        color=colour,
    )


def _at_the_edge(axes: Axes, rate: Quantity, text: str, colour: str, side: str) -> None:
    """The name of a flat roof, right of it; a phone has room above it alone."""
    narrow = style.is_narrow()
    style.note(
        axes,
        EDGES[1],
        rate.m_as(RATE),
        text.replace("\n", " ") if narrow else text,
        (0, 36 if side == "bottom" else 28) if narrow else (5, 0),
        ha="right" if narrow else "left",
        va="bottom" if narrow else side,
        color=colour,
        bold=True,
        linespacing=1.15,
    )


def _measured(axes: Axes) -> None:
    """Draw the measured roofs of the H100, the bandwidth of its L2, and products by cuBLAS."""
    colour = style.DEVICES["h100"]
    peak, memory, l2 = (
        MeasuredRoofline.peak,
        MeasuredRoofline.bandwidth,
        MeasuredRoofline.l2_bandwidth,
    )
    _roof(axes, peak, memory, color=colour, linestyle=REACHED, linewidth=1.2)
    ends = quantity([EDGES[0], (DecodeStep.peak / l2).m_as(INTENSITY)], INTENSITY)
    axes.plot(ends.magnitude, (l2 * ends).m_as(RATE), color=style.GREEN, linewidth=1.4)
    intensities, rates = zip(*MeasuredRoofline.dots, strict=True)
    axes.plot(intensities, rates, ".", color=style.RED, markersize=4.5, markeredgewidth=0, zorder=4)
    narrow = style.is_narrow()
    _at_the_edge(axes, peak, f"reached {show(peak)}", colour, "top")
    hbm = f"HBM {show(DecodeStep.bandwidth, digits=3)}\nreached {show(memory.m)}"
    cache = f"L2\n{show(l2, digits=3)}" if narrow else f"L2 cache {show(l2, digits=3)}"
    _note(axes, (4, 8), hbm, colour, "left")
    _note(axes, (25, 220) if narrow else (27, 210), cache, style.GREEN, "right")
    what = "measured\nGEMMs" if narrow else "measured:\nGEMMs by cuBLAS"
    _note(axes, (EDGES[1], 400 if narrow else 430), what, style.RED, "right")


def _note(axes: Axes, point: tuple[float, float], text: str, colour: str, side: str) -> None:
    style.note(axes, *point, text, color=colour, bold=True, ha=side, va="center")


def _workloads(axes: Axes, narrow: bool) -> None:
    for name, intensity, offset, side in _named_works():
        axes.plot(
            intensity.magnitude,
            _on_the_h100(intensity).m_as(RATE),
            "o",
            color=style.INK,
            markerfacecolor="none",
            markeredgewidth=1.6,
            markersize=7,
            zorder=5,
        )
        style.note(
            axes,
            intensity.magnitude,
            _on_the_h100(intensity).m_as(RATE),
            name.replace(", ", ",\n") if narrow else name,
            by=offset,
            ha=side,
            va="bottom" if side == "center" else "top",
            bold=True,
        )


def _gap(axes: Axes, narrow: bool) -> None:
    """Mark the distance of the flat roof above decode at batch 1."""
    at: float = DecodeStep.intensity.magnitude
    low, high = DecodeStep.attainable.m_as(RATE), DecodeStep.peak.m_as(RATE)
    style.arrow(axes, (at, low * 1.35), (at, high), linewidth=0.8)
    style.note(
        axes,
        at,
        (low * high) ** 0.5,
        ("{:.0f}×" if narrow else "the peak is\n{:.0f} times\nas high").format(high / low),
        (-6, 8),
        ha="right",
    )


def _sides(axes: Axes, narrow: bool) -> None:
    """Names of both sides of the ridge, at the foot."""
    ridge: float = DecodeStep.ridge_point.magnitude
    names = ("memory-bound", "compute-bound")
    for name, offset, side in zip(names, (-5, 5), ("right", "left"), strict=True):
        style.note(
            axes,
            ridge,
            axes.get_ylim()[0],
            name.split("-")[0] if narrow else name,
            (offset, 6),
            ha=side,
        )
