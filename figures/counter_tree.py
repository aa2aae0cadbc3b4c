"""Figure of the counter to read first, and the limit that it names: a tree of one page."""

from __future__ import annotations

from textwrap import fill
from typing import NamedTuple

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
    Rung(
        "Is the device at work?", "device over wall time", "no", "launch overhead", "fuse, capture"
    ),
    Rung("Did the clock fall?", "SM clock, its reasons", "yes", "power", "fewer bytes"),
    Rung("Do loads bring too much?", "sectors a request", "yes", "cache lines", "order, sort"),
    Rung("Is memory saturated?", "DRAM active", "yes", "memory", "fuse, smaller format"),
    Rung("Is the matrix pipe full?", "tensor active", "yes", "compute", "smaller format"),
    Rung("Are all SMs at work?", "SM active, waves", "no", "wrong shape", "pad, batch, split k"),
    Rung("Do warps wait for loads?", "long scoreboard", "yes", "latency", "more in flight"),
)
REST = "another pipe"
STEP = 1.0
# The right edge, where the arrows to a limit begin, and how long they are; and so on a phone.
PLACES = 5.4, 2.4, 0.7
PLACES_NARROW = 5.9, 3.25, 0.45
LETTERS = 16  # of a lever in a line on a phone


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=5.3, narrow_height=7.2)
    axes = figure.subplots()
    for number, rung in enumerate(RUNGS):
        _rung(axes, -number * STEP, rung, last=number == len(RUNGS) - 1)
    axes.text(0.0, -len(RUNGS) * STEP, REST, color=style.RED, weight="bold", va="center")
    right, *_ = PLACES_NARROW if style.is_narrow() else PLACES
    axes.set_xlim(-0.1, right)
    axes.set_ylim(-len(RUNGS) * STEP - 0.4, 0.5)
    axes.set_axis_off()
    return figure


def alt() -> str:
    questions = "; ".join(
        f"{rung.question} ({rung.counter}): {rung.answer} means {rung.limit}, and the lever is:"
        f" {rung.lever}"
        for rung in RUNGS
    )
    return f"""A decision tree, asked from top to bottom until an answer leads aside. {questions}.
    If no answer led aside, the limit is {REST}."""


def _rung(axes: Axes, y: float, rung: Rung, last: bool) -> None:
    _, aside, length = PLACES_NARROW if style.is_narrow() else PLACES
    axes.text(0.0, y + 0.04, rung.question, va="bottom")
    style.note(axes, 0.0, y - 0.06, rung.counter, va="top", color=style.BLUE)
    style.arrow(axes, (aside, y), (aside + length, y), linewidth=1.0)
    style.note(
        axes,
        aside + 0.45 * length,
        y + (-0.08 if style.is_narrow() else 0.06),
        rung.answer,
        va="top" if style.is_narrow() else "bottom",
        ha="center",
    )
    lever = fill(rung.lever, LETTERS) if style.is_narrow() else rung.lever
    point = aside + length + 0.1, y + (0.22 if style.is_narrow() else 0.14)
    name = axes.text(*point, rung.limit, color=style.RED, weight="bold", va="center")
    axes.annotate(
        lever,
        (0, 0),
        xycoords=name,
        xytext=(0, -1),
        textcoords="offset points",
        va="top",
        size=style.SMALL,
    )
    other = "no" if rung.answer == "yes" else "yes"
    below = y - STEP + (0.14 if last else 0.36)
    style.arrow(axes, (0.12, y - 0.34), (0.12, below), linewidth=1.0)
    style.note(axes, 0.25, y - 0.5, other, va="center")
