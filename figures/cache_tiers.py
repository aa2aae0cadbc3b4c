"""Ways in which an agent's session comes back to a GPU, and how long each takes."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.service_under_load import Tiers
from figures import style

ROWS = Tiers.rows()
WAYS = (
    ("from the host", 5, style.GREEN),
    ("from disks", 6, style.BLUE),
    ("computed again", 7, style.ORANGE),
)
NAME, SESSION, FITS, HOST = 0, 1, 2, 3  # places in a row


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.7, narrow_height=3.6)
    axes = figure.subplots()
    for number, row in enumerate(ROWS):
        times = [row[at].m_as("ms") for _, at, _ in WAYS]
        axes.plot(
            [times[0], times[-1]], [number, number], color=style.INK, linewidth=0.8, alpha=0.5
        )
        for (name, at, color), time in zip(WAYS, times, strict=True):
            axes.plot(time, number, "o", color=color, markersize=8)
            text = str(show(row[at], digits=2))
            side = {"from the host": "right", "from disks": "left"}.get(name, "center")
            style.note(axes, time, number, text, (0, -17), ha=side, color=color)
        fits = f"{show(row[SESSION], digits=2)}; HBM {show(row[FITS])}, host {show(row[HOST])}"
        style.note(axes, times[0], number, f"{row[NAME]}", (0, 18 if narrow else 8), bold=True)
        if narrow:
            style.note(axes, times[0], number, fits, (0, 7))
        else:
            style.note(axes, times[-1], number, fits, (0, 8), ha="right")
    for column, (name, _, color) in enumerate(WAYS):
        words = name.split()[-1] if narrow else name
        look: dict[str, Any] = {"transform": axes.transAxes, "color": color, "va": "top"}
        style.note(axes, 0.02 + 0.34 * column, 1.0, words, bold=True, **look)
    style.log_axis(axes, "x", "Time until a session is back (ms)")
    axes.set_yticks([])
    axes.set_ylim(len(ROWS) - 0.5, -1.0)
    axes.set_xlim(13, 60e3)
    axes.spines["left"].set_visible(False)
    return figure


def alt() -> str:
    each = "; ".join(
        f"{row[NAME]}, of {show(row[SESSION], digits=2)}: {show(row[5], digits=2)},"
        f" {show(row[6], digits=2)} and {show(row[7], digits=2)}"
        for row in ROWS
    )
    return f"""Dots on a log axis of the time until a session is back from the host, from disks and
    computed again. {each}."""
