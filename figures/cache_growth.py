"""The cache of one sequence beside the weights, by how many heads share keys and values."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.transformer_arithmetic import GrowingCache
from figures import style

LENGTHS = numpy.geomspace(1024, GrowingCache.longest, 8)
LINES = (
    ("MHA", style.ORANGE, GrowingCache.every),
    ("GQA", style.BLUE, GrowingCache.shared),
    ("MQA", style.GREEN, None),
)
EACH = (GrowingCache.per_token[1], GrowingCache.per_token[0], GrowingCache.per_token[2])


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.7, narrow_height=3.2)
    axes = figure.subplots()
    weights = GrowingCache.weights.m_as("GB")
    axes.axhline(weights, color=style.INK, linewidth=1.4)
    text = f"weights: {show(weights, digits=2)} GB"
    style.note(axes, LENGTHS[0] * 1.1, weights, text, (0, 4), bold=True)
    for (name, color, crossing), each in zip(LINES, EACH, strict=True):
        caches = LENGTHS * each.m_as("GB/token")
        axes.plot(LENGTHS, caches, color=color)
        look: dict[str, Any] = {"va": "top", "color": color, "bold": True}
        style.note(axes, LENGTHS[1], caches[1], name, (2, -3), **look)
        if crossing is not None:
            tokens = crossing.m_as("token")
            axes.plot(tokens, weights, "o", color=color, markersize=6)
            offset = (-4, 6) if crossing is GrowingCache.every else (-4, -15)
            style.note(axes, tokens, weights, f"{show(tokens, digits=2)}", offset, ha="right")
    style.log_axis(axes, "x", "Context (tokens)")
    style.log_axis(axes, "y", "Cache of a sequence (GB)")
    axes.set_xlim(LENGTHS[0], LENGTHS[-1])
    axes.set_ylim(top=130)
    return figure


def alt() -> str:
    first, second = (
        show(tokens.m_as("token"), digits=2) for _, _, tokens in LINES if tokens is not None
    )
    return f"""Log-log plot of the cache of a sequence against its context, rising lines beside a
    level one of the weights, {show(GrowingCache.weights, digits=2)}. With keys of its own for every
    head (MHA) the cache is as large as the weights at {first} tokens, with keys for groups of heads
    (GQA) at {second}; with one for all (MQA) it stays below them."""
