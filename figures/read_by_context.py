"""Bytes of caches and states that the next token reads, by the context, for four models."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure

from calc import transformer
from calc.catalog.models import Transformer
from calc.derivations import show
from calc.derivations.attention_chapter import KeptTokens
from figures import style

LENGTHS = numpy.geomspace(1024, KeptTokens.long, 29)
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.0, narrow_height=3.8)
    axes = figure.subplots()
    for (model, kind), color in zip(KeptTokens.models, COLORS, strict=True):
        axes.plot(LENGTHS, [_read(model, length) for length in LENGTHS], color=color)
        if not narrow:
            end, lower = _read(model, KeptTokens.long), -5 if color == style.GREEN else 4
            text = f"{model.name}\n{kind}"
            look: dict[str, Any] = {
                "va": "top" if lower < 0 else "bottom",
                "linespacing": 1.0,
                "color": color,
            }
            style.note(axes, KeptTokens.long, end, text, (6, lower), **look)
    if narrow:
        names = [(model.name, color) for (model, _), color in _named()]
        style.key(axes, names, (0.02, 1.0), 0.09)
    if narrow:
        axes.set_ylim(top=1e3)
    style.log_axis(axes, "x", "Context (tokens)")
    style.log_axis(axes, "y", "Read for the next token (GB)")
    axes.set_xlim(LENGTHS[0], LENGTHS[-1])
    return figure


def alt() -> str:
    ends = (
        f"{model.name} {show(_read(model, LENGTHS[0]), digits=2)} to"
        f" {show(_read(model, KeptTokens.long), digits=2)} GB"
        for model, _ in KeptTokens.models
    )
    return f"""Log-log plot of what a sequence's next token reads against the context, up to
    {show(KeptTokens.long)} tokens: {", ".join(ends)}. The lines of keys shared by heads and of
    latents rise in proportion, that of chosen tokens bends and rises on, that of states bends up
    late."""


def _read(model: Transformer, length: float) -> float:
    states = transformer.state_memory(model) * 2  # read and written
    return float((transformer.cache_read(model, float(length)) + states).m_as("GB"))


def _named() -> list[tuple[tuple[Transformer, str], str]]:
    return list(zip(KeptTokens.models, COLORS, strict=True))
