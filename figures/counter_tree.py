"""Which counter to read first, and which limit it names: a decision tree of one page."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style


class Rung(NamedTuple):
    """A question, the counter that answers it, the answer that leads aside, the limit, a lever."""

    question: str
    counter: str
    answer: str
    limit: str
    lever: str


RUNGS = (
    Rung("Do messages fill the step?", "NCCL in the trace", "yes", "links", "overlap, merge"),
    Rung("Is the device at work?", "device over wall time", "no", "starting", "fuse, capture"),
    Rung("Did the clock fall?", "SM clock, its reasons", "yes", "power", "fewer bytes"),
    Rung("Do loads bring too much?", "sectors a request", "yes", "lines", "order, sort"),
    Rung("Is memory saturated?", "DRAM active", "yes", "memory", "fuse, smaller format"),
    Rung("Is the matrix pipe full?", "tensor active", "yes", "compute", "smaller format"),
    Rung("Are all SMs at work?", "SM active, waves", "no", "shape", "pad, batch, split k"),
    Rung("Do warps wait for loads?", "long scoreboard", "yes", "latency", "more in flight"),
)
REST = "another pipe"
STEP = 1.0
RIGHT = 6.2
ASIDE = 3.0  # where the arrows to a limit begin, and on a phone
ASIDE_NARROW = 3.75


def draw() -> Figure:
    figure = style.figure(height=5.3, narrow_height=6.6)
    axes = figure.subplots()
    for number, rung in enumerate(RUNGS):
        _rung(axes, -number * STEP, rung, last=number == len(RUNGS) - 1)
    axes.text(0.0, -len(RUNGS) * STEP, REST, color=style.RED, weight="bold", va="center")
    axes.set_xlim(-0.1, RIGHT)
    axes.set_ylim(-len(RUNGS) * STEP - 0.4, 0.5)
    axes.set_axis_off()
    return figure


def alt() -> str:
    asked = "; ".join(
        f"{rung.question} ({rung.counter}): {rung.answer} means {rung.limit}, and the lever is:"
        f" {rung.lever}"
        for rung in RUNGS
    )
    return f"""A decision tree, asked from top to bottom until an answer leads aside. {asked}.
    If no answer led aside, the limit is {REST}."""


def _rung(axes: Axes, y: float, rung: Rung, last: bool) -> None:
    aside = ASIDE_NARROW if style.is_narrow() else ASIDE
    axes.text(0.0, y + 0.04, rung.question, va="bottom")
    axes.text(0.0, y - 0.06, rung.counter, va="top", color=style.BLUE, size=style.SMALL)
    arrow = {"arrowstyle": "->", "color": style.INK, "linewidth": 1.0}
    axes.annotate("", (aside + 0.7, y), (aside, y), arrowprops=arrow)
    axes.text(aside + 0.3, y + 0.06, rung.answer, va="bottom", ha="center", size=style.SMALL)
    named: dict[str, Any] = {"color": style.RED, "weight": "bold", "va": "center"}
    if style.is_narrow():
        axes.text(aside + 0.8, y, rung.limit, **named)
    else:
        axes.text(aside + 0.8, y + 0.14, rung.limit, **named)
        axes.text(aside + 0.8, y - 0.14, rung.lever, va="center", size=style.SMALL)
    other = "no" if rung.answer == "yes" else "yes"
    below = y - STEP + (0.14 if last else 0.36)
    axes.annotate("", (0.12, below), (0.12, y - 0.34), arrowprops=arrow)
    axes.text(0.25, y - 0.5, other, va="center", size=style.SMALL)
