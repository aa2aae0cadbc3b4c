"""What memory buys: the least time of a step, by what a device may hold and what is recomputed."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.designing_runs import DesignedRun
from figures import style

MOST = 150  # GB that are shown
LABELS = {  # of what is computed again: its words, its colour, and where they stand
    "none": ("nothing again", style.GREEN, (29, 4.6), "bottom"),
    "selective": ("attention again", style.BLUE, (90, 3.2), "top"),
    "full": ("all layers again", style.ORANGE, (95, 4.15), "bottom"),
}


def draw() -> Figure:
    figure = style.figure(height=3.2)
    axes = figure.subplots()
    for recomputation, (memory, time) in DesignedRun.frontiers().items():
        words, colour, place, where = LABELS[recomputation]
        axes.step([*memory, MOST], [*time, time[-1]], where="post", color=colour)
        style.note(axes, *place, words, color=colour, bold=True, va=where)
    room = DesignedRun.usable.m_as("GB")
    axes.axvline(room, color=style.INK, linestyle=(0, (4, 3)), linewidth=1)
    style.note(axes, room + 2, 5.6, f"{show(DesignedRun.usable, digits=2)} to fill")
    best = DesignedRun.plan.best
    place = best.memory.total.m_as("GB"), best.step.upper.m_as("s")
    axes.plot(*place, "o", color=style.RED, markersize=5)
    words, size = "expected best", style.SMALL
    axes.text(room - 4, 3.17, words, color=style.RED, size=size, ha="right", va="top")
    axes.set_xlim(0, MOST)
    axes.set_ylim(2.9, 6)
    axes.set_xlabel("Memory of the fullest device (GB)")
    axes.set_ylabel("Step, nothing overlapped (s)")
    return figure


def alt() -> str:
    room, half = DesignedRun.usable.m_as("GB"), DesignedRun.usable.m_as("GB") / 2
    bought = {
        name: [time[memory <= most].min() for most in (half, room)]
        for name, (memory, time) in DesignedRun.frontiers().items()
    }
    (none, selective, full) = (bought[name] for name in ("none", "selective", "full"))
    return f"""Falling steps of the time of a step at published rates, with nothing overlapped, by
    the memory that the fullest device may hold, one line for each recomputation. Within
    {show(DesignedRun.usable, digits=2)} it takes {none[1]:.2f} s with nothing computed again,
    {selective[1]:.2f} s with attention and {full[1]:.2f} s with all layers; within half of that
    {none[0]:.2f}, {selective[0]:.2f} and {full[0]:.2f} s. A dot marks the layout that is expected
    to be the best."""
