"""A request through an engine: it waits for a step, its prompt is read, and tokens come."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.serving_chapter import OneNode
from figures import style

STEP = OneNode.full.m_as("ms")
PROMPT = OneNode.first.m_as("ms")
WAITS = STEP / 2  # on average, for the step that runs when it comes
STEPS = 4
END = STEP + PROMPT + STEPS * STEP
FIRST = STEP + PROMPT
HIGH = 0.7


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=1.8, narrow_height=2.5)
    left = -0.27 if narrow else -0.17
    axes = style.diagram(figure, END * 1.01, 1.9, left=left * END, bottom=-1.45)
    for row, name in ((0, "this request"), (-1, "the others")):
        words = name.replace(" ", "\n") if narrow else name
        style.note(axes, -0.015 * END, row, words, ha="right", va="center")
    _bar(axes, 0, STEP - WAITS, WAITS, style.INK, "waits", 0.06)
    _bar(axes, 0, STEP, PROMPT, style.ORANGE, "prompt", 0.5)
    _bar(axes, -1, 0, STEP, style.BLUE, "step", 0.35)
    _bar(axes, -1, STEP, PROMPT, style.INK, "wait", 0.06)
    for number in range(STEPS):
        start = FIRST + number * STEP
        for row in (0, -1):
            _bar(axes, row, start, STEP, style.BLUE, "step", 0.35)
    ends = [FIRST + number * STEP for number in range(STEPS + 1)]
    axes.plot(ends, [0.5] * len(ends), "v", color=style.RED, markersize=6)
    _span(axes, STEP - WAITS, FIRST, f"first token: {show(WAITS + PROMPT, digits=2)} ms")
    _span(axes, ends[-3], ends[-2], f"{show(STEP, digits=2)} ms a token")
    return figure


def alt() -> str:
    return f"""Timelines of one request and of the others. It waits for the step that runs, its
    prompt is read while the others wait, and its first token comes {show(WAITS + PROMPT, digits=2)}
    ms after it did, marked by a triangle. From then on it shares each step with the others, and a
    token comes every {show(STEP, digits=2)} ms."""


def _bar(
    axes: Axes, row: float, start: float, long: float, color: str, words: str, alpha: float
) -> None:
    fits = not style.is_narrow() or long > PROMPT * 0.9
    style.card(axes, (start, row - HIGH / 2), (long, HIGH), words if fits else "", color, alpha)


def _span(axes: Axes, start: float, end: float, words: str) -> None:
    style.arrow(axes, (start, 1.05), (end, 1.05), head="<->", color=style.RED, shrinkA=0, shrinkB=0)
    look: dict[str, Any] = {
        "ha": "left" if start < FIRST else "center",
        "color": style.RED,
        "bold": True,
    }
    style.note(axes, start if start < FIRST else (start + end) / 2, 1.3, words, **look)
