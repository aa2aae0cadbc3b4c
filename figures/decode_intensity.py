"""Intensity of the GEMMs and of the attention of a decode step, by batch."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure

from calc import models
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations.quoting import Quoted, show
from calc.derivations.transformer_arithmetic import BatchOfDecodes, Products
from figures import style

BATCH = numpy.geomspace(1, BatchOfDecodes.most, 100)
EXPERTS = BatchOfDecodes.experts / BatchOfDecodes.active_experts
ONE_EXPERT = f"one expert in {show(EXPERTS)}"


def _shared(key: str) -> tuple[str, str]:
    """What the heads that share keys are called, on a page and on a phone."""
    count = models.get(key).heads / models.get(key).kv_heads
    heads = f"{show(count)} head{'s' if count > 1 else ''}"
    return f"keys, for {heads}", heads


# Model and product, its name on a page and on a phone, and where along the line that stands.
LINES = (
    ("llama-3-8b", "up", "weights, all of them used", "weights", style.INK, 12),
    ("deepseek-v3", "expert up", ONE_EXPERT, "experts", style.INK, 300),
    ("deepseek-v3", "attention", "latents, for all heads", "latents", style.RED, 200),
    ("llama-3-8b", "attention", *_shared("llama-3-8b"), style.RED, 200),
    ("llama-2-7b", "attention", *_shared("llama-2-7b"), style.RED, 200),
)


def _intensity(key: str, name: str, sequences: Any) -> Quantity:
    if name == "attention":
        return BatchOfDecodes.attention_intensity(key)
    return BatchOfDecodes.intensity(key, name, sequences)


def draw() -> Figure:
    figure = style.figure(height=3.7, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Batch (sequences decoded together)")
    style.log_axis(axes, "y", "Intensity (FLOP/byte)")
    axes.set_xlim(BATCH[0], BATCH[-1])
    axes.set_ylim(0.4, 4000)
    for key, name, words, few_words, colour, place in LINES:
        line = numpy.broadcast_to(_intensity(key, name, BATCH).magnitude, BATCH.shape)
        axes.plot(BATCH, line, linewidth=1.7, color=colour)
        axes.annotate(
            few_words if style.is_narrow() else words,
            (place, float(numpy.interp(place, BATCH, line))),
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
        (BATCH[0], ridge),
        xytext=(4, 4),
        textcoords="offset points",
        color=style.DEVICES["h100"],
        size=style.SMALL,
    )
    return figure


def alt() -> str:
    def at_most(key: str, name: str) -> Quoted:
        return show(_intensity(key, name, BatchOfDecodes.most), digits=2)

    attention = (
        f"{at_most(key, name)} for {words.replace(', for', ' of')}"
        for key, name, words, *_ in LINES[2:]
    )
    _, _, expert, *_ = LINES[1]
    return f"""Log-log plot of the intensity of the products of a decode step against the batch,
    from {show(BATCH[0])} to {show(BATCH[-1])}. A line for weights that all tokens use rises in
    proportion to the sequences and crosses the ridge point of an H100,
    {show(Products.ridge, digits=3)}, at {show(Products.critical_batch, digits=3)}. A line for
    {expert} is at {show(BatchOfDecodes.expert_intensity, digits=2)} for {show(BatchOfDecodes.few)}
    sequences and at {at_most("deepseek-v3", "expert up")} at the right end. Lines for fused
    attention are level: at {listed(attention)}."""
