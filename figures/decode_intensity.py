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


def _shared(key: str) -> str:
    """Return how many query heads share what attention reads, in words."""
    model = models.get(key)
    latent = model.kv_latent is not None
    count = model.heads if latent else model.heads / model.kv_heads
    heads = f"{show(count)} head{'s' if count > 1 else ''}"
    return f"attention, {heads} a {'latent' if latent else 'key'}"


# Model and product, what is read, so on a phone, its color, and by how much its name is moved up.
LINES = (
    ("llama-3-8b", "up", "weights, all of them used", "weights", style.INK, 0),
    ("deepseek-v3", "attention", _shared("deepseek-v3"), "attention", style.RED, 5),
    ("deepseek-v3", "expert up", ONE_EXPERT, "an expert", style.INK, -7),
    ("llama-3-8b", "attention", _shared("llama-3-8b"), "attention", style.RED, 0),
    ("llama-2-7b", "attention", _shared("llama-2-7b"), "attention", style.RED, 0),
)


def _intensity(key: str, name: str, sequences: Any) -> Quantity:
    if name == "attention":
        return BatchOfDecodes.attention_intensity(key)
    return BatchOfDecodes.intensity(key, name, sequences)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.0, narrow_height=4.8)
    axes, narrow = figure.subplots(), style.is_narrow()
    style.log_axis(axes, "x", "Batch (sequences decoded together)")
    style.log_axis(axes, "y", "Intensity (FLOP/byte)")
    axes.set_xlim(BATCH[0], BATCH[-1])
    axes.set_ylim(0.5, 4000)
    for key, name, words, few_words, color, up in LINES:
        line = numpy.broadcast_to(_intensity(key, name, BATCH).magnitude, BATCH.shape)
        axes.plot(BATCH, line, linewidth=1.7, color=color)
        for text, weight, down in (
            (models.get(key).name, "bold", 6),
            (few_words if narrow else words, "normal", -6),
        ):
            style.note(
                axes,
                BATCH[-1],
                line[-1],
                text,
                (6, up + down),
                va="center",
                color=color,
                weight=weight,
            )
    ridge, meets = Products.ridge.magnitude, Products.critical_batch.magnitude
    axes.axhline(ridge, color=style.DEVICES["h100"], linewidth=1.2, linestyle=(0, (5, 2)))
    axes.plot(meets, ridge, "o", color=style.INK, markersize=5.5)
    ridge_name = f"{'ridge' if narrow else 'ridge point of an H100'}: {ridge:.0f}"
    for text, point, offset, side, color in (
        (ridge_name, (BATCH[0], ridge), (4, 4), "left", style.DEVICES["h100"]),
        (
            f"{meets:.0f}{'' if narrow else ' sequences'}",
            (meets, ridge),
            (-6, 6),
            "right",
            style.INK,
        ),
    ):
        style.note(axes, *point, text, by=offset, ha=side, color=color)
    return figure


def alt() -> str:
    def at_most(key: str, name: str) -> Quoted:
        return show(_intensity(key, name, BatchOfDecodes.most), digits=2)

    attention = (
        f"{at_most(key, name)} in {models.get(key).name} ({words.removeprefix('attention, ')})"
        for key, name, words, *_ in LINES
        if name == "attention"
    )
    return f"""Log-log plot of the intensity of the products of a decode step against the batch,
    from {show(BATCH[0])} to {show(BATCH[-1])}, each line named by its model at the right end. The
    weights of Llama 3 8B, which all tokens use, rise in proportion to the sequences and cross the
    ridge point of an H100, {show(Products.ridge, digits=3)}, at
    {show(Products.critical_batch, digits=3)}. A line for {ONE_EXPERT} of DeepSeek-V3 is at
    {show(BatchOfDecodes.expert_intensity, digits=2)} for {show(BatchOfDecodes.few)} sequences and
    at {at_most("deepseek-v3", "expert up")} at the right end. Lines for fused attention are level:
    at {listed(attention)}."""
