"""Operations of attention with latents, absorbed and expanded, by the queries that share them."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure

from calc import attention
from calc.derivations import show
from calc.derivations.attention_chapter import Latents
from figures import style

QUERIES = (1, 8192)
COUNTS = numpy.geomspace(*QUERIES, 33)
LOOKS = (
    ("absorbed", attention.absorbed_flops, style.BLUE),
    ("expanded", attention.expanded_flops, style.ORANGE),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.5, narrow_height=2.9)
    axes = figure.subplots()
    for name, work, color in LOOKS:
        done = [_work(work, count) for count in COUNTS]
        axes.plot(COUNTS, done, color=color)
        left, below = (1.3, done[0] * 1.6) if name == "expanded" else (2.2, done[0] * 0.75)
        style.note(axes, left, below, name, color=color, bold=True)
    style.log_axis(axes, "x", "Tokens with queries")
    style.log_axis(axes, "y", "Operations of a layer (TFLOP)")
    meet = Latents.crossing.m_as("")
    height = _work(attention.absorbed_flops, meet)
    axes.plot(meet, height, "o", color=style.INK, markersize=6)
    text = f"{show(meet, digits=2)} queries"
    style.note(axes, meet, height, text, (8, -10), va="center")
    axes.set_xlim(QUERIES[0], QUERIES[-1])
    return figure


def alt() -> str:
    first, last = (
        [show(_work(work, count), digits=2) for _, work, _ in LOOKS] for count in QUERIES
    )
    return f"""Log-log plot of the operations of a layer against the tokens with queries. Absorbed,
    they rise from {first[0]} to {last[0]} TFLOP; expanded, from {first[1]} to {last[1]} TFLOP,
    level at first. The lines meet at {show(Latents.crossing, digits=2)} queries."""


def _work(work: Any, count: float) -> float:
    return float(work(float(count), *Latents.shape, *Latents.widths).m_as("TFLOP"))
