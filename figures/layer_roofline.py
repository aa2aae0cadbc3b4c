"""Products of a layer on the roofline of an H100: of a prompt, of one token, of many together."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.transformer_arithmetic import Products
from calc.networks.transformer import Matmul
from figures import style

PEAK = Products.h100.peak("bf16")
WIDTH = Products.h100.memory_bandwidth
RIDGE = Products.ridge.m_as("FLOP/byte")
ENDS = (0.6, 3000)
CASES = (
    ("prompt", Products.prefill, style.BLUE, "o"),
    ("many decodes", Products.together, style.GREEN, "s"),
    ("one decode", Products.alone, style.ORANGE, "D"),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.1, narrow_height=3.8)
    axes = figure.subplots()
    line = numpy.array([ENDS[0], RIDGE, ENDS[1]])
    axes.plot(line, [_roof(each) for each in line], color=style.INK, linewidth=1.6)
    for _, products, color, marker in CASES:
        places = sorted({_intensity(made) for made in products if made.name in Products.names})
        heights = [_roof(each) for each in places]
        axes.plot(places, heights, marker, color=color, markersize=7, alpha=0.8)
    names = [(name, color) for name, _, color, _ in CASES]
    style.key(axes, names, (0.03, 0.97), 0.1)
    scores = _intensity(next(made for made in Products.alone if made.name == "scores"))
    one = f"scores of decode\nat {show(scores, digits=2)}, whatever the batch"
    style.note(axes, scores, _roof(scores), one, (10, -12), va="center")
    read = _intensity(Products.scores)
    text = f"scores of a prompt\nat {show(read, digits=3)}"
    style.note(axes, read, _roof(read), text, (0, -16), va="top", ha="left")
    style.note(axes, RIDGE, _roof(RIDGE), f"ridge {show(RIDGE, digits=3)}", (0, 8), ha="center")
    style.log_axis(axes, "x", "Intensity (FLOP/byte)")
    style.log_axis(axes, "y", "Attainable (TFLOP/s)")
    axes.set_xlim(*ENDS)
    axes.set_ylim(1, 4000)
    return figure


def alt() -> str:
    up = Products.up_together
    return f"""Log-log plot of an H100's roofline with the products of a layer on it. Those of one
    decode lie at the left end, at about {show(1)} FLOP/byte but for scores, near
    {show(Products.group)}; those of {show(Products.sequences)} decodes have moved up to
    {show(up, digits=2)}, their scores not. Those of a prompt lie right of the ridge point,
    {show(RIDGE, digits=3)}, but for scores at {show(Products.prefill_scores, digits=3)}."""


def _intensity(made: Matmul) -> float:
    return float(made.intensity(Products.element).m_as("FLOP/byte"))


def _roof(intensity: float) -> float:
    return float(min(PEAK.m_as("TFLOP/s"), intensity * WIDTH.m_as("TB/s")))
