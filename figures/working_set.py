"""Bandwidth against the working set on one core: a step down at the end of each cache."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from calc.derivations.hardware_aware import MEASUREMENT, stored
from figures import style

KIB = 1024


def draw() -> Figure:
    figure = style.figure(height=2.9, narrow_height=3.0)
    axes = figure.subplots()
    sizes = sorted(int(each) for each in MEASUREMENT["working_set"])
    rates = [stored("working_set", str(size)).m_as("GB/s") for size in sizes]
    axes.plot([size / KIB for size in sizes], rates, "o-", color=style.INK, markersize=3.5)
    axes.set_xscale("log", base=2)
    style.log_axis(axes, "y", "Bandwidth, triad (GB/s)")
    axes.set_ylim(10, 600)
    axes.set_xlabel("Working set (logarithmic)")
    ticks = [16, 256, 4096, 65536] if style.is_narrow() else [8 * 4**each for each in range(8)]
    axes.set_xticks(
        ticks, [f"{each} KiB" if each < KIB else f"{each // KIB} MiB" for each in ticks]
    )
    axes.xaxis.set_minor_locator(NullLocator())
    for name, size in MEASUREMENT["machine"]["caches"].items():
        axes.axvline(size / KIB, color=style.INK, alpha=0.35, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{name} ends",
            (size / KIB, 540),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            size=style.SMALL,
        )
    return figure
