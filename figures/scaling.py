"""Amdahl and Gustafson: the same work in less time, or more work in the same time."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc import scaling
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.scaling_chapter import FixedTime, FixedWork, Sketch
from figures import style

MOST = 4096
AT = FixedTime.many
DASHES = ((0, (6, 2)), "-", (0, (2, 1.5)))
ROW = 0.82  # of a line of the sketch, the rest is gap
PARALLEL = 0.32  # opacity of what n processors share


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=6.0, narrow_height=9.6)
    if style.is_narrow():
        panels = figure.subplots(4, 1, height_ratios=(1, 1.5, 1, 1.5))
        work, amdahl, time, gustafson = panels
    else:
        (work, time), (amdahl, gustafson) = figure.subplots(2, 2, height_ratios=(1, 1.55))
    work.set_title("Amdahl: fixed work, less time")
    time.set_title("Gustafson: fixed time, more work")
    _fixed_work(work)
    _fixed_time(time)
    for axes in (amdahl, gustafson):
        style.log_axis(axes, "x", "Processors")
        style.log_axis(axes, "y", "Speedup")
        axes.set_xlim(1, MOST)
        axes.set_ylim(1, MOST)
        ideal = numpy.array([1, MOST])
        axes.plot(ideal, ideal, ":", color=style.INK, linewidth=1)
    _amdahl(amdahl)
    _gustafson(gustafson)
    return figure


def alt() -> str:
    limits = (
        f"{show(scaling.amdahl_limit(serial))} for {show(serial)}" for serial in Sketch.serials
    )
    ends = (
        f"{show(scaling.gustafson(serial, AT), digits=3)} for {show(serial)}"
        for serial in Sketch.serials
    )
    number = Sketch.processors
    return f"""Sketches above plots. Amdahl: a processor does a serial {show(Sketch.serial)} of the
    work and a parallel rest, one after the other; {number} processors share the rest, and the run
    is {show(Sketch.fixed_work_speedup, digits=2)} times as fast. Gustafson: each of {number}
    processors does a rest of the full length, and the run takes as long as before but does
    {show(Sketch.fixed_time_speedup, digits=3)} times the work. Log-log plots of the speedup against
    processors: Amdahl's bends away from the ideal line and flattens at its limit, {listed(limits)}
    serial work; Gustafson's stays just below the ideal line, and at {show(AT)} processors is
    {listed(ends)}."""


# --- the sketches: a row for each processor, time to the right ---


def _fixed_work(axes: Axes) -> None:
    end = Sketch.fixed_work_time.magnitude
    _one_and_many(axes, end)
    middle = 1.5 + Sketch.processors / 2 - 0.1
    style.arrow(axes, (1, middle), (end, middle), linewidth=0.9)
    gain = f"{Sketch.fixed_work_speedup.magnitude:.1f}"
    style.note(axes, (1 + end) / 2, middle - 0.15, f"{gain}× as fast", ha="center", va="bottom")


def _fixed_time(axes: Axes) -> None:
    _one_and_many(axes, 1)
    gain = f"{Sketch.fixed_time_speedup.magnitude:.3g}"
    middle = (1 + Sketch.serial.m_as("")) / 2
    style.note(axes, middle, 1.5 + 1 + ROW / 2, f"{gain}× the work", ha="center", va="center")


def _one_and_many(axes: Axes, end: float) -> None:
    """The work on one processor, and on many until the second end."""
    serial, number = Sketch.serial.m_as(""), Sketch.processors
    _bar(axes, 0, 0, serial, style.RED, "serial")
    _bar(axes, 0, serial, 1 - serial, style.INK, "parallel")
    _bar(axes, 1.5, 0, serial, style.RED)
    for row in range(number):
        _bar(axes, 1.5 + row, serial, end - serial, style.INK)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(1.5 + number, -0.3)
    axes.set_xticks([])
    short = style.is_narrow()
    axes.set_yticks(
        [0.4, 1.5 + number / 2 - 0.1],
        [
            f"n = {count}" if short else f"{count} processor{'s' * (count > 1)}"
            for count in (1, number)
        ],
    )
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("Time →", loc="left")
    axes.spines["left"].set_visible(False)


def _bar(axes: Axes, row: float, start: float, length: float, colour: str, name: str = "") -> None:
    shade = 1.0 if colour == style.RED else PARALLEL
    axes.add_patch(Rectangle((start, row), length, ROW, facecolor=colour, alpha=shade, linewidth=0))
    if name:
        white = colour == style.RED
        style.note(
            axes,
            start + length / 2,
            row + ROW / 2,
            name,
            ha="center",
            va="center",
            color="white" if white else style.INK,
            weight="bold" if white else "normal",
        )


# --- the laws ---


def _amdahl(axes: Axes) -> None:
    numbers = numpy.geomspace(1, MOST, 300)
    for serial, dashes in zip(Sketch.serials, DASHES, strict=True):
        limit = scaling.amdahl_limit(serial).magnitude
        colour = _colour(serial)
        speedup = scaling.amdahl(serial, numbers).magnitude
        axes.plot(numbers, speedup, color=colour, linestyle=dashes)
        axes.axhline(limit, color=colour, linewidth=0.7, alpha=0.6)
        words = f"{show(serial)}{'' if limit > 50 else ' serial'}: limit {limit:.0f}"
        style.note(axes, MOST * 0.9, limit * 1.08, words, va="bottom", color=colour, ha="right")
    style.note(axes, 700, 1000, "ideal", va="bottom", ha="right")


def _gustafson(axes: Axes) -> None:
    numbers = numpy.geomspace(1, MOST, 300)
    for row, (serial, dashes) in enumerate(zip(Sketch.serials, DASHES, strict=True)):
        speedup = scaling.gustafson(serial, numbers).magnitude
        axes.plot(numbers, speedup, color=_colour(serial), linestyle=dashes)
        end = f"{show(serial)} serial: {scaling.gustafson(serial, AT).magnitude:.0f}"
        style.note(
            axes, MOST * 0.8, 9 / 2.1**row, end, va="center", color=_colour(serial), ha="right"
        )
    style.note(axes, 1.4, 2600, "no limit", va="top")
    style.note(axes, MOST * 0.8, 9 * 2.1, f"at n = {AT}", va="center", ha="right")


def _colour(serial: Quantity) -> str:
    return style.RED if serial == FixedWork.serial else style.INK
