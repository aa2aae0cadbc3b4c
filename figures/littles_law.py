"""Little's law as a picture: one area, cut into requests or into moments."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from calc.derivations import show
from calc.derivations.littles_law_chapter import Picture
from figures import style

COME, GONE = style.PURPLE, style.GREEN


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=5.2, narrow_height=6.2)
    counts, flight = figure.subplots(2, 1, sharex=True, height_ratios=(2.1, 1))
    _counts(counts)
    _in_flight(flight)
    flight.set_xlabel("Time (s)")
    flight.set_xlim(0, Picture.window.m_as("s"))
    for axes in (counts, flight):
        axes.yaxis.set_major_locator(MultipleLocator(2))
    return figure


def alt() -> str:
    return f"""Panels over {show(Picture.window)}. Above, stairs of arrivals and, to their right, of
    departures climb to {Picture.number}; between them lie strips, one for each request. An arrow
    along a strip marks the time of that request, W, {show(Picture.marked_time)}, and an arrow from
    stair to stair the number in flight at that moment, L, {show(Picture.at_instant)}. Below, the
    number in flight rises and falls between {min(Picture.numbers[:-1])} and {max(Picture.numbers)},
    about a dashed line at its mean of {show(Picture.mean_in_flight.magnitude)}: both ways the area
    is {show(Picture.by_request)}."""


def _counts(axes: Axes) -> None:
    end, number = Picture.window.m_as("s"), Picture.number
    axes.set_ylim(0, number + 0.4)
    axes.set_ylabel("Requests so far")
    come, gone = [*Picture.arrivals, end], [*Picture.departures, end]
    axes.step(come, [*range(1, number + 1), number], where="post", color=COME)
    axes.step([0, *gone], [*range(number + 1), number], where="post", color=GONE)
    for row, (start, stop) in enumerate(zip(Picture.arrivals, Picture.departures, strict=True)):
        # A strip for each request, as long as its time in the system.
        axes.fill_between([start, stop], row, row + 1, color=style.INK, alpha=0.1, linewidth=0)
        axes.plot([start, stop], [row, row], color=style.INK, alpha=0.2, linewidth=0.5)

    row = Picture.marked
    _arrow(axes, (Picture.arrivals[row], row + 0.5), (Picture.departures[row], row + 0.5))
    _note(
        axes,
        (Picture.arrivals[row] + Picture.departures[row]) / 2,
        row + 0.55,
        f"W: {show(Picture.marked_time)}",
        "bottom",
    )
    come_by_then = sum(arrival <= Picture.instant for arrival in Picture.arrivals)
    top, bottom = come_by_then, come_by_then - Picture.at_instant
    _arrow(axes, (Picture.instant, bottom), (Picture.instant, top))
    words = "L: {}\nin flight" if style.is_narrow() else "L: {} in flight"
    middle = (top + bottom) / 2 + 1.2
    _note(axes, Picture.instant + 0.15, middle, words.format(Picture.at_instant), "center", "left")

    _note(axes, 5.8, 6.5, "arrived", "center", side="right", colour=COME, weight="bold")
    _note(axes, 6.7, 2.5, "gone", "center", side="left", colour=GONE, weight="bold")
    if not style.is_narrow():
        _note(
            axes,
            0.2,
            number - 0.2,
            f"a strip for each request:\narea {show(Picture.by_request)}",
            "top",
            side="left",
        )


def _in_flight(axes: Axes) -> None:
    mean = Picture.mean_in_flight.m_as("request")
    axes.set_ylim(0, max(Picture.numbers) + 0.9)
    axes.set_ylabel("In flight")
    axes.step(Picture.moments, Picture.numbers, where="post", color=style.INK, linewidth=1.5)
    axes.fill_between(
        Picture.moments, Picture.numbers, step="post", color=style.INK, alpha=0.1, linewidth=0
    )
    axes.axhline(mean, color=style.RED, linewidth=1.2, linestyle=(0, (5, 2)))
    _note(axes, 11.9, mean + 0.1, f"mean L = {mean:g}", "bottom", "right", style.RED, "bold")
    if not style.is_narrow():
        _note(
            axes, 0.2, max(Picture.numbers) + 0.7, "the same area, moment by moment", "top", "left"
        )


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    style.arrow(axes, start, end, "<->", linewidth=1.3, shrinkA=0, shrinkB=0)


def _note(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    vertical: str,
    side: str = "center",
    colour: str = style.INK,
    weight: str = "normal",
) -> None:
    style.note(axes, x, y, text, va=vertical, ha=side, color=colour, weight=weight)
