"""A published training step in BF16 and in FP8: the parts that a plan expects, and as measured."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.training_time_chapter import PartsOfStep
from figures import style

COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.RED)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.3, narrow_height=3.3)
    axes = figure.subplots()
    for row, (name, parts, measured) in enumerate(PartsOfStep.steps()):
        start = 0.0
        for (part, time), color in zip(parts.items(), COLORS, strict=True):
            long = time.m_as("ms")
            axes.barh(row, long, left=start, height=0.5, color=color, alpha=0.55)
            if part in ("GEMMs", "messages") or not (narrow or part == "other"):
                text = f"{show(long, digits=2)}"
                style.note(axes, start + long / 2, row, text, ha="center", va="center")
            start += long
        end = measured.m_as("ms")
        axes.plot([end, end], [row - 0.38, row + 0.38], color=style.INK, linewidth=2)
        text = f"{name}: measured {show(end, digits=3)}"
        style.note(axes, end, row - 0.4, text, (-2, 1), ha="right", bold=True)
    names = list(zip(PartsOfStep.parts, COLORS, strict=True))
    for index, (name, color) in enumerate(names):
        across, down = (index % 3, index // 3) if narrow else (index, 0)
        left, top = (0.34 * across, 1.0 - 0.1 * down) if narrow else (0.2 * across, 1.0)
        look: dict[str, Any] = {"transform": axes.transAxes, "va": "top", "color": color}
        style.note(axes, left, top, name, bold=True, **look)
    axes.set_ylim(1.5, -1.35 if narrow else -1.1)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("Time of a token on a GPU (ms)")
    return figure


def alt() -> str:
    (_, wide, slow), (_, narrow, fast) = PartsOfStep.steps()
    gemms = [show(parts["GEMMs"].m_as("ms"), digits=2) for parts in (wide, narrow)]
    same = show(wide["messages"].m_as("ms"), digits=2)
    return f"""Stacked bars of the time of a token, a row for each format, with a mark where it was
    measured: {show(slow.m_as("ms"), digits=3)} ms in BF16, {show(fast.m_as("ms"), digits=3)} ms in
    FP8. GEMMs shrink from {gemms[0]} to {gemms[1]} ms; attention, messages ({same} ms) and what
    lies between the products do not."""
