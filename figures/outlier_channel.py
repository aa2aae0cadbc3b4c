"""One channel with large values, and the codes that it leaves to the others."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import quantization
from calc.derivations import show
from calc.derivations.quantization_chapter import Drawing, OutlierChannel
from figures import style


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.3, narrow_height=5.6)
    panels = style.panels(figure, 2, sharey=True)
    _panel(panels[0], None, "One scale for all channels")
    _panel(panels[1], 0, "A scale for each channel")
    name = f"{OutlierChannel.outlier} times as large\nas the others"
    style.note(panels[0], -127, 0.9, name, color=style.RED, va="top")
    left = f"{OutlierChannel.codes_left} codes for each\nof the others"
    style.note(panels[0], 16, 5.5, left, va="center")
    return figure


def alt() -> str:
    scheme = quantization.symmetric(Drawing.outlier_weights)
    largest = abs(scheme.quantize(Drawing.outlier_weights)[1:]).max()
    return f"""Panels with a row of ticks for each of {Drawing.channels} channels, along the codes
    from {show(scheme.low)} to {show(scheme.high)}. In the first, with the same scale for all
    channels, the values of the first, {OutlierChannel.outlier} times as large as the others, take
    most of the width, and all other rows crowd between {show(-largest)} and {show(largest)}:
    {OutlierChannel.codes_left} codes for each channel. In the second, with a scale for each
    channel, every row takes most of the width."""


def _panel(axes: Axes, axis: int | None, title: str) -> None:
    """Each channel's values, drawn at the codes that they get."""
    weights = Drawing.outlier_weights
    scheme = quantization.symmetric(weights, axis=axis)
    axes.set_title(title, size=style.SMALL, weight="bold", loc="left")
    for channel, codes in enumerate(scheme.quantize(weights)):
        _channel(axes, channel, codes.astype(int), style.INK if channel else style.RED)
    axes.set_xlim(scheme.low - 5, scheme.high + 5)
    axes.set_xticks([scheme.low, 0, scheme.high])
    axes.set_ylim(len(weights) - 0.4, -0.6)
    axes.set_yticks([])
    axes.set_xlabel("Code")
    axes.spines["left"].set_visible(False)


def _channel(axes: Axes, channel: int, codes: Any, colour: str) -> None:
    used = numpy.unique(codes)
    axes.plot([used.min(), used.max()], [channel] * 2, color=colour, linewidth=0.8, alpha=0.35)
    # One path for all ticks of a channel: a drawing of thousands of paths is slow to load.
    x = numpy.repeat(used, 3).astype(float)
    y = numpy.tile([channel - 0.3, channel + 0.3, numpy.nan], len(used))
    axes.plot(x, y, color=colour, linewidth=0.8)
