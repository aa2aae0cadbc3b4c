"""Intensity of the products of a decode by how many sequences are written at a time."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure

from calc.derivations.transformer_arithmetic import BatchOfDecodes, Products
from figures import style

# Model and product, its name on a page and on a phone, and where along the line that stands.
LINES = (
    ("llama-3-8b", "up", "weights, all of them used", "weights", style.INK, 12),
    ("deepseek-v3", "expert up", "one expert in 32", "experts", style.INK, 300),
    ("deepseek-v3", "scores", "latents, for all heads", "latents", style.RED, 200),
    ("llama-3-8b", "scores", "keys, for four heads", "four heads", style.RED, 200),
    ("llama-2-7b", "scores", "keys, for one head", "one head", style.RED, 200),
)


def draw() -> Figure:
    figure = style.figure(height=3.7, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Sequences that are written at a time")
    style.log_axis(axes, "y", "Intensity (FLOP/byte)")
    batch = numpy.geomspace(1, BatchOfDecodes.most, 100)
    axes.set_xlim(batch[0], batch[-1])
    axes.set_ylim(0.4, 4000)
    for key, name, words, few_words, colour, place in LINES:
        intensity = BatchOfDecodes.intensity(key, name, batch).magnitude
        line = numpy.broadcast_to(intensity, batch.shape)
        axes.plot(batch, line, linewidth=1.7, color=colour)
        axes.annotate(
            few_words if style.is_narrow() else words,
            (place, float(numpy.interp(place, batch, line))),
            xytext=(8, -13),
            textcoords="offset points",
            color=colour,
            size=style.SMALL,
            weight="bold",
        )
    ridge = Products.ridge.magnitude
    axes.axhline(ridge, color=style.DEVICES["h100"], linewidth=1)
    axes.annotate(
        f"ridge point of an H100: {ridge:.0f}",
        (batch[0], ridge),
        xytext=(4, 4),
        textcoords="offset points",
        color=style.DEVICES["h100"],
        size=style.SMALL,
    )
    return figure
