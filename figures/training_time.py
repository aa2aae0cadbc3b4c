"""Training time against devices: ideal, with gradients to sum, and where the batch ends."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.training_time_chapter import Cluster, LastDoubling
from figures import style

FEWEST, MOST = 8, 8192


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.6, narrow_height=5.2)
    axes = figure.subplots()
    style.log_axis(axes, "x", "H100s")
    style.log_axis(axes, "y", "Time of the run (hours)")
    axes.set_xlim(FEWEST, MOST)
    axes.set_ylim(0.45, 900)
    narrow = style.is_narrow()

    servers = numpy.unique(numpy.geomspace(1, MOST // Cluster.node, 60).round()).astype(int)
    counts = [*map(int, Cluster.node * servers), Cluster.sequences]
    within = sorted(count for count in counts if count <= Cluster.sequences)
    beyond = sorted(count for count in counts if count >= Cluster.sequences)
    everywhere = numpy.array([FEWEST, MOST])
    axes.plot(
        everywhere,
        (Cluster.one_device_run / everywhere).m_as("h"),
        ":",
        color=style.INK,
        linewidth=1.2,
    )
    colour = style.DEVICES["h100"]
    for devices, faint in ((within, 1.0), (beyond, 0.35)):
        hidden, added = (
            [Cluster.run_time(count, overlap).m_as("h") for count in devices] for overlap in (1, 0)
        )
        axes.plot(devices, added, color=style.RED, alpha=faint)
        axes.plot(devices, hidden, color=colour, alpha=faint, linestyle=(0, (6, 2)))
        axes.fill_between(devices, hidden, added, color=colour, alpha=0.12 * faint, linewidth=0)

    axes.axvspan(Cluster.sequences, MOST, color=style.INK, alpha=0.06, linewidth=0)
    axes.axvline(Cluster.sequences, color=style.INK, linewidth=0.8)

    used = "batch used\nup: one\nsequence\na device"
    words = used if narrow else "batch used up: one\nsequence a device"
    style.note(axes, Cluster.sequences * 1.12, 500, words, va="top")
    style.note(axes, 3600, 0.6, "ideal", va="center")
    words = "all-reduce\nhidden" if narrow else "all-reduce hidden\nbehind backward pass"
    style.note(axes, 150, 9, words, color=colour, bold=True, ha="right", va="center")
    style.note(
        axes,
        64,
        Cluster.run_time(64, 0).m_as("h"),
        "nothing\nhidden" if narrow else "nothing hidden",
        (8, 8),
        color=style.RED,
        bold=True,
    )
    knee = Cluster.knee.m_as("")
    level = (Cluster.one_device_run / knee).m_as("h")
    axes.plot(knee, level, "o", color=colour, markersize=6)
    axes.annotate(
        f"{show(Cluster.knee, digits=2)} devices:\nbackward pass\nand exchange\ntake equally long",
        (knee, level),
        xytext=(0.04 if narrow else 0.16, 0.06 if narrow else 0.08),
        textcoords="axes fraction",
        size=style.SMALL,
        arrowprops={"arrowstyle": "-", "color": style.INK, "linewidth": 0.7},
        ha="left",
    )
    for doubled in (LastDoubling.before, LastDoubling.after):
        axes.plot(
            doubled, Cluster.run_time(doubled, 0).m_as("h"), "o", color=style.RED, markersize=6
        )
    style.note(
        axes,
        LastDoubling.after,
        LastDoubling.time.m_as("h"),
        f"{LastDoubling.before} → {LastDoubling.after}:\n"
        f"{show(LastDoubling.gain, digits=3)}×{'' if narrow else ' as fast'}",
        (8, 14),
        color=style.RED,
        bold=True,
    )
    return figure


def alt() -> str:
    level = Cluster.one_device_run / Cluster.knee
    end = Cluster.run_time(MOST, 1)
    return f"""Log-log plot of the hours of a run against the number of H100s, from {show(FEWEST)}
    to {show(MOST)}. A dashed curve, with the all-reduce hidden, follows the falling dotted line of
    the ideal to {show(Cluster.knee, digits=2)} devices and {show(level.to("h"), digits=2)}, and
    flattens towards {show(end.to("h"), digits=2)}. A solid curve, with nothing hidden, leaves it
    earlier: from {show(LastDoubling.before)} to {show(LastDoubling.after)} devices the run
    becomes {show(LastDoubling.gain, digits=3)} times as fast and takes
    {show(LastDoubling.time, digits=2)}. A vertical line at {show(Cluster.sequences)} devices,
    before the dashed curve leaves the ideal, marks the end of the batch, one sequence for each."""
