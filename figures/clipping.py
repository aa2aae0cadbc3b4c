"""Error of codes by where their range ends: with few bits a shorter one is better."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from calc import quantization
from calc.derivations import show
from calc.derivations.quantization_chapter import Clipping
from figures import style

SHARES = numpy.linspace(0.3, 1, 36)
CASES = (
    (Clipping.few_bits, Clipping.best_share, style.ORANGE),
    (Clipping.many_bits, Clipping.best_many_share, style.BLUE),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.6, narrow_height=3.0)
    axes = figure.subplots()
    for bits, best, color in CASES:
        axes.plot(100 * SHARES, [_kept(bits, share) for share in SHARES], color=color)
        peak = best.m_as("")
        height = _kept(bits, peak)
        axes.plot(100 * peak, height, "o", color=color, markersize=6)
        text = f"{show(bits)} bits: best at {show(best, '%', 2)}"
        right = peak > 0.9
        look: dict[str, Any] = {"ha": "right" if right else "center", "color": color, "bold": True}
        style.note(axes, 100 * peak, height, text, (-10, 7) if right else (0, -18), **look)
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.set_xlabel("End of the range, of the largest weight")
    axes.set_ylabel("SQNR (dB)")
    axes.set_xlim(30, 101)
    axes.set_ylim(0, 48)
    return figure


def alt() -> str:
    (few, best_few, _), (many, best_many, _) = CASES
    whole = [show(_kept(bits, 1.0), digits=3) for bits in (few, many)]
    return f"""Curves of the signal that codes keep, in dB, against the end of their range. With
    {show(few)} bits it is highest where the range ends at {show(best_few, "%", 2)} of the largest
    weight, and falls to {whole[0]} where nothing is clipped. With {show(many)} bits it rises to
    {show(best_many, "%", 2)} and is {whole[1]} at the end."""


def _kept(bits: int, share: float) -> float:
    scheme = quantization.symmetric(Clipping.weights, bits).shrunk(float(share))
    return float(quantization.sqnr(Clipping.weights, scheme.round_trip(Clipping.weights)))
