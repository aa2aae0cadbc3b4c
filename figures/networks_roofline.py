"""Three networks that write no tokens, and their parts, on the roofline of one GPU."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure

from calc import quantity, roofline
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.other_networks import OnOneRoofline
from figures import style

RATE = "TFLOP/s"
INTENSITY = "FLOP/byte"
LOWEST, HIGHEST = 0.2, 5e3


def _workloads(narrow: bool = False) -> list[tuple[str, Quantity, str, tuple[float, float], str]]:
    """Names, intensities, colours, and where the names stand."""
    image = (3, 14) if narrow else (0, 8)
    diffused = (-8, 8) if narrow else (0, 8)
    return [
        ("a recommender's lookups", OnOneRoofline.lookups_intensity, style.ORANGE, (9, -4), "left"),
        ("depthwise convolution", OnOneRoofline.depthwise, style.GREEN, (9, -4), "left"),
        ("MobileNetV2", OnOneRoofline.convolved_intensity, style.GREEN, (9, -5), "left"),
        ("DLRM-DCNv2", OnOneRoofline.recommended_intensity, style.ORANGE, (-9, 4), "right"),
        (
            "ViT-L/16",
            OnOneRoofline.image_intensity,
            style.BLUE,
            image,
            "right" if narrow else "center",
        ),
        (
            "FLUX.1",
            OnOneRoofline.diffused_intensity,
            style.PURPLE,
            diffused,
            "left" if narrow else "center",
        ),
    ]


def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.9, narrow_height=4.2)
    axes = figure.subplots()
    style.log_axis(axes, "x", f"Arithmetic intensity ({INTENSITY})")
    style.log_axis(axes, "y", f"Rate ({RATE})")
    axes.set_xlim(LOWEST, HIGHEST)
    axes.set_ylim(0.4, 2.5e3)
    peak, bandwidth = OnOneRoofline.peak, OnOneRoofline.bandwidth
    along = quantity(numpy.geomspace(LOWEST, HIGHEST, 200), INTENSITY)
    roof = roofline.attainable(peak, bandwidth, along)
    axes.plot(along.magnitude, roof.m_as(RATE), color=style.INK)
    text: dict[str, Any] = {"size": style.SMALL, "textcoords": "offset points"}
    for name, intensity, colour, offset, side in _workloads(narrow):
        at = intensity.m_as(INTENSITY)
        reached = roofline.attainable(peak, bandwidth, intensity).m_as(RATE)
        axes.plot(at, reached, "o", color=colour, markersize=7, zorder=5)
        axes.annotate(
            name, (at, reached), xytext=offset, ha=side, weight="bold", color=colour, **text
        )
    for intensity, rate, colour in (
        (OnOneRoofline.diffused_intensity, OnOneRoofline.diffused_rate, style.PURPLE),
        (OnOneRoofline.recommended_intensity, OnOneRoofline.recommended_rate, style.ORANGE),
    ):
        axes.plot(
            intensity.m_as(INTENSITY),
            rate.m_as(RATE),
            "o",
            color=colour,
            markersize=7,
            markerfacecolor="none",
            zorder=5,
        )
        if not (narrow and colour == style.PURPLE):  # where one label stands under both
            axes.annotate(
                "measured",
                (intensity.m_as(INTENSITY), rate.m_as(RATE)),
                xytext=(6, -16) if narrow else (9, -4),
                ha="left",
                color=style.INK if narrow else colour,
                **text,
            )
    return figure


def alt() -> str:
    dots = "; ".join(
        f"{name} at {show(intensity, digits=2)}" for name, intensity, *_ in _workloads()
    )
    return f"""A log-log plot of rate against arithmetic intensity with the roof of an H100, which
    turns flat at {show(OnOneRoofline.ridge_point, digits=3)}. Dots stand on it: {dots}. Hollow
    dots are measured: FLUX.1 at {show(OnOneRoofline.diffused_rate, digits=2)}, the recommender at
    {show(OnOneRoofline.recommended_rate, digits=2)}."""
