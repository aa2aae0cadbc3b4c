"""The roofline: three accelerators, and four pieces of work that meet different roofs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import hardware, quantity, roofline
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.hardware_tables import dtype_of_two_bytes
from calc.derivations.roofline import A100Roofline, DecodeStep
from calc.hardware import Accelerator
from figures import style

RATE = "TFLOP/s"
INTENSITY = "FLOP/byte"
DEVICES = tuple(hardware.get(key) for key in ("h100", "tpu-v5p", "a100"))
LINES = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (1.5, 2)))  # distinct in grey too
SHORT_NAMES = {"h100": "H100 SXM", "tpu-v5p": "TPU v5p", "a100": "A100 SXM"}


def draw(devices: Sequence[Accelerator] = DEVICES) -> Figure:
    """Of any accelerators, in a format of two bytes or, where they have none, in FP32."""
    narrow = style.is_narrow()
    figure = style.figure(height=4.9, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", f"Arithmetic intensity ({INTENSITY})", decades=2 if narrow else 1)
    style.log_axis(axes, "y", f"Attainable rate ({RATE})")
    axes.set_xlim(0.02, 1e4)
    slowest = min(device.memory_bandwidth.m_as("TB/s") for device in devices)
    axes.set_ylim(min(0.06, 0.03 * slowest), 2e3)
    for number, (device, line) in enumerate(zip(devices, cycle(LINES), strict=False)):
        _roof(axes, device, _dtype(device), line, number, narrow)
    _draw_workloads(axes, narrow)
    _gap(axes)
    axes.text(
        9,
        5.6,
        "memory is the roof",
        size=style.SMALL,
        rotation=58 if narrow else 45,
        rotation_mode="anchor",
        alpha=0.8,
    )
    flat = "compute is\nthe roof" if narrow else "compute is the roof"
    axes.text(330, 250, flat, size=style.SMALL, alpha=0.8, va="top")
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
        for name, intensity, *_ in _workloads()
    )
    return f"""Log-log plot of attainable rate against arithmetic intensity. A roofline for each
    accelerator rises along its memory bandwidth and turns flat at its ridge point:
    {"; ".join(roofs)}. Dots on the H100's roof are pieces of work, from far down the slope to the
    flat part: {"; ".join(works)}. An arrow says that the peak is
    {show(DecodeStep.peak / DecodeStep.attainable, digits=3)} times as high as what a decode reaches
    at batch 1."""


def _dtype(device: Accelerator) -> str:
    return dtype_of_two_bytes(device) or "fp32"


def _workloads() -> list[tuple[str, Quantity, tuple[float, float], str]]:
    """Pieces of work, their intensities, and where their names stand."""
    return [
        ("ReLU", A100Roofline.relu_intensity, (-7, 3), "right"),
        ("decode, batch 1", DecodeStep.intensity, (-7, 3), "right"),
        (f"decode, batch {DecodeStep.large_batch}", DecodeStep.large_intensity, (16, -3), "left"),
        (f"GEMM {A100Roofline.n}³", A100Roofline.gemm_intensity, (0, 7), "center"),
    ]


def _on_the_h100(intensity: Quantity) -> Quantity:
    h100 = hardware.H100
    rate: Quantity = roofline.attainable(h100.peak("fp16"), h100.memory_bandwidth, intensity)
    return rate


def _roof(
    axes: Axes, device: Accelerator, dtype: str, line: Any, number: int, narrow: bool
) -> None:
    colour = style.DEVICES.get(device.key, style.INK)
    peak, ridge = device.peak(dtype), device.ridge_point(dtype)
    intensity = quantity(numpy.geomspace(*axes.get_xlim(), 400), INTENSITY)
    rate = roofline.attainable(peak, device.memory_bandwidth, intensity)
    axes.plot(intensity.magnitude, rate.m_as(RATE), color=colour, linestyle=line)
    axes.plot(
        [ridge.magnitude] * 2,
        [1.1 if narrow else axes.get_ylim()[0], peak.m_as(RATE)],
        ":",
        color=colour,
        linewidth=0.9,
    )
    axes.plot(ridge.magnitude, peak.m_as(RATE), "o", color=colour, markersize=4.5)
    labels: dict[str, Any] = {
        "color": colour,
        "weight": "bold",
        "size": style.SMALL,
        "va": "center",
    }
    name, at = SHORT_NAMES.get(device.key, device.name), f"{ridge.magnitude:.0f}"
    if narrow:
        both = f"{name.split()[0]}: {peak:.4g}, ridge {at}"
        axes.text(1e4, 0.55 * 0.5**number, both, ha="right", **labels)
        return
    axes.annotate(
        f"{name}\N{NO-BREAK SPACE} {peak:.4g}",
        (1e4, peak.m_as(RATE)),
        xytext=(5, 0),
        textcoords="offset points",
        **labels,
    )
    axes.text(360, 0.6 * 0.5**number, f"{name.split()[0]}: ridge at {at}", **labels)


def _draw_workloads(axes: Axes, narrow: bool) -> None:
    for name, intensity, offset, side in _workloads():
        reached = _on_the_h100(intensity)
        axes.plot(
            intensity.magnitude, reached.m_as(RATE), "o", color=style.INK, markersize=6, zorder=5
        )
        axes.annotate(
            name.replace(", ", ",\n") if narrow else name,
            (intensity.magnitude, reached.m_as(RATE)),
            xytext=offset,
            textcoords="offset points",
            ha=side,
            weight="bold",
            size=style.SMALL,
        )


def _gap(axes: Axes) -> None:
    """How far the flat roof is above decoding at batch 1."""
    intensity: Quantity = DecodeStep.intensity
    low, high = DecodeStep.attainable.m_as(RATE), DecodeStep.peak.m_as(RATE)
    axes.annotate(
        "",
        (intensity.magnitude, high),
        xytext=(intensity.magnitude, low * 1.35),
        arrowprops={"arrowstyle": "->", "color": style.INK, "linewidth": 0.8},
    )
    axes.annotate(
        f"the peak is\n{high / low:.0f} times\nas high",
        (intensity.magnitude, (low * high) ** 0.5),
        xytext=(-6, 8),
        textcoords="offset points",
        ha="right",
        size=style.SMALL,
    )
