"""What an output's shape leaves of the best rate."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.gemms import GemmMap, Sawtooth
from figures import style

LEVELS = (0, 10, 30, 50, 70, 90, 101)


def draw() -> Figure:
    figure = style.figure(height=4.0)
    axes = figure.subplots()
    rows, columns = np.array(GemmMap.rows, float), np.array(GemmMap.columns, float)
    share = 100 * GemmMap.share(rows[None, :], columns[:, None])
    for number, low in enumerate(LEVELS[:-1]):
        band = (low, LEVELS[number + 1])
        axes.contourf(rows, columns, share, band, colors=[style.BLUE], alpha=0.08 + 0.13 * number)
    style.log_axis(axes, "x", "Rows of the output (tokens)")
    style.log_axis(axes, "y", "Columns of the output")
    axes.set_xticks([16, 64, 256, 1024, 4096])
    axes.set_yticks([256, 1024, 4096, 16384])
    for level in LEVELS[1:-1:2] if style.is_narrow() else LEVELS[1:-1]:
        _name(axes, rows, columns, share, level)
    return figure


def alt() -> str:
    def at(m: float, n: float) -> str:
        (value,) = GemmMap.share(np.array([m]), np.array([n]))
        return f"{value:.0%}"

    return f"""A map of rows against columns of an output, both logarithmic, in bands of the share
    of an H100's best rate, for sums of {show(Sawtooth.side)}. The share rises from {at(16, 4096)}
    at {show(16)} rows and {show(4096)} columns to {at(256, 4096)} at {show(256)} rows and
    {at(4096, 4096)} at {show(4096)}; with {show(256)} columns it is {at(4096, 256)} even at
    {show(4096)} rows."""


def _name(
    axes: Axes, rows: np.ndarray, columns: np.ndarray, share: np.ndarray, level: float
) -> None:
    """A band's lower edge, named where it crosses the row of many columns."""
    line = share[len(columns) * 3 // 4]
    place = int(np.argmax(line >= level))
    axes.annotate(
        f"{level}%",
        (rows[place], columns[len(columns) * 3 // 4]),
        ha="center",
        va="center",
        size=style.SMALL,
        weight="bold",
    )
