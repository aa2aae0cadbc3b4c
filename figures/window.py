"""Packets and acknowledgements in time and space: a window of one, and one that fills the link."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from calc.derivations import show
from calc.derivations.links_examples import WindowInTime
from figures import style

LATENCY = WindowInTime.latency.m_as("ms")
ON_THE_WIRE = WindowInTime.transmission.m_as("ms")
CYCLE = WindowInTime.cycle.m_as("ms")
PACKETS = round(WindowInTime.packets.m_as(""))
END = 2.5 * CYCLE
SENDER, RECEIVER = 1.0, 0.0


def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.2, narrow_height=4.6)
    one, many = figure.subplots(2, 1, sharex=True)
    for axes, count in ((one, 1), (many, PACKETS)):
        _lines(axes)
        _packets(axes, count)
    packet, share = show(WindowInTime.packet), show(WindowInTime.share, digits=1)
    of_link = f"{share} of the link"
    if narrow:
        one.set_title(f"(a) Stop and wait: {of_link}")
        many.set_title(f"(b) {PACKETS} packets in flight: all of it")
    else:
        one.set_title(f"(a) Stop and wait, a window of one packet of {packet}: {of_link}")
        many.set_title(
            f"(b) A window of {PACKETS} packets, {show(WindowInTime.window)}: all of the link"
        )
    for cycle in range(2):
        start = cycle * CYCLE + ON_THE_WIRE
        _span(one, start, start + CYCLE - ON_THE_WIRE, SENDER + 0.2)
        words = "waits" if narrow else f"waits for {show(WindowInTime.waiting)}"
        middle = start + (CYCLE - ON_THE_WIRE) / 2
        _tell(one, middle, SENDER + 0.26, words, style.RED, ha="center", va="bottom")
    _tell(one, ON_THE_WIRE + LATENCY / 4 + 1, 0.75, "packet", style.BLUE, va="center")
    acknowledgement = "ack" if narrow else "acknowledgement"
    _tell(one, LATENCY + ON_THE_WIRE + 2.4, 0.12, acknowledgement, style.ORANGE, va="center")
    _span(many, 0, CYCLE, SENDER + 0.2)
    words = "one window" if narrow else "one window: the first acknowledgement is back when it ends"
    _tell(many, 0, SENDER + 0.26, words, style.INK, va="bottom")
    many.set_xlabel("Time (ms)")
    return figure


def alt() -> str:
    return f"""Two diagrams of time, to the right, and space: a sender's line above a receiver's.
    Packets cross as slanted strokes that arrive {show(WindowInTime.latency)} later, and
    acknowledgements come back as thin lines. With a window of one packet, which is sent within
    {show(WindowInTime.transmission)}, the sender then waits for {show(WindowInTime.waiting)}, and
    {show(WindowInTime.share, digits=1)} of the link is used. With {PACKETS} packets in flight, the
    first acknowledgement is back as the last of them is sent, and stroke follows stroke without a
    gap."""


def _lines(axes: Axes) -> None:
    axes.axhline(SENDER, color=style.INK, linewidth=1)
    axes.axhline(RECEIVER, color=style.INK, linewidth=1)
    axes.set_xlim(0, END)
    axes.set_ylim(RECEIVER - 0.1, SENDER + 0.55)
    axes.set_yticks([SENDER, RECEIVER], ["sender", "receiver"])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _packets(axes: Axes, window: int) -> None:
    """Each is sent once the one that is a window before it has been acknowledged."""
    strokes: list[list[Path]] = [[], []]  # of every other window
    answers = []
    number = 0
    while (start := number // window * CYCLE + number % window * ON_THE_WIRE) < END:
        end = start + ON_THE_WIRE
        corners = [
            (start, SENDER),
            (end, SENDER),
            (end + LATENCY, RECEIVER),
            (start + LATENCY, RECEIVER),
            (start, SENDER),
        ]
        strokes[number // window % 2].append(Path(corners, closed=True))
        answers.append(Path([(end + LATENCY, RECEIVER), (end + 2 * LATENCY, SENDER)]))
        number += 1
    for packets, alpha in zip(strokes, (0.6, 0.3), strict=True):
        look: dict[str, Any] = {
            "facecolor": (style.BLUE, alpha),
            "edgecolor": style.BLUE,
            "linewidth": 0.6,
        }
        axes.add_patch(PathPatch(Path.make_compound_path(*packets), **look))
    look = {"fill": False, "edgecolor": style.ORANGE, "linewidth": 1.2}
    axes.add_patch(PathPatch(Path.make_compound_path(*answers), **look))


def _span(axes: Axes, start: float, end: float, y: float) -> None:
    arrow = {"arrowstyle": "<->", "color": style.INK, "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end, y), (start, y), arrowprops=arrow)


def _tell(axes: Axes, x: float, y: float, words: str, color: str, **place: Any) -> None:
    axes.text(x, y, words, color=color, size=style.SMALL, weight="bold", **place)
