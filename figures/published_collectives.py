"""Published collectives beside what the curves of others let expect, over their sizes."""

from __future__ import annotations

from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from calc.derivations import show
from calc.derivations.predicted_and_measured import LeftOut, curve_name, expected_of, within
from figures import style

CURVES = {
    name: list(rows)
    for name, rows in groupby(
        (row for row in expected_of("collective") if row.row["size"]), key=curve_name
    )
}
TICKS = (0.25, 0.5, 1, 2, 4)
BAND = LeftOut.band.m_as("")
LOOKS = [
    (colour, line)
    for line in ("-", "--", ":")
    for colour in (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
]


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.9, narrow_height=6.4)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Size (MB)", decades=2 if style.is_narrow() else 1)
    style.log_axis(axes, "y", "Measured over expected time")
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.axhspan(1 / (1 + BAND), 1 + BAND, color=style.INK, alpha=0.1, linewidth=0)
    for (name, rows), (colour, line) in zip(CURVES.items(), LOOKS, strict=False):
        axes.plot(
            [row.row["size"] / 1e6 for row in rows],
            [1 + (row.error or 0.0) for row in rows],
            line,
            color=colour,
            linewidth=1.6,
            label=name,
        )
    style.legend(figure, above=False, columns=1 if style.is_narrow() else 2)
    return figure


def alt() -> str:
    points = [row for rows in CURVES.values() for row in rows]
    worst = max(points, key=lambda row: row.error or 0.0)
    near = within(points, BAND)
    return f"""{len(CURVES)} curves of measured over expected time against the size of a message,
    on logarithmic axes, with a band of {show(LeftOut.band)} about {show(1)} that holds
    {show(near, "%", 2)} of the points. Farthest above it, up to
    {show(1 + (worst.error or 0.0), digits=2)}, lies {curve_name(worst)}."""
