"""The sawtooth of tiles and waves: plain on an A100, nearly gone on an H100."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.gemms_chapter import GemmCurve, RowMore, Sawtooth
from calc.published import product_rows
from figures import style


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=6.0)
    for axes, machine in zip(style.panels(figure, 2), GemmCurve.machines, strict=True):
        _panel(axes, machine)
        if style.is_narrow() or machine == GemmCurve.machines[0]:
            axes.set_ylabel("Rate (TFLOP/s)")
    return figure


def alt() -> str:
    chips = " and ".join(product_rows.chip(machine) for machine in GemmCurve.machines)
    return f"""Panels for {chips}: the rate of a product with {show(Sawtooth.side)} columns and sums
    as long, by its rows from {GemmCurve.rows[0]} to {show(GemmCurve.rows[-1])}. The line of one
    tile rises and falls in teeth, that of the best tile and split only a little. On the A100 the
    measured dots follow the teeth: from {show(RowMore.before)} at {RowMore.rows} rows to
    {show(RowMore.after)} at {RowMore.more}. On the H100 they rise near the line of the best tile,
    with lesser dips."""


def _panel(axes: Axes, machine: str) -> None:
    lines = ((False, style.RED, "one tile"), (True, style.BLUE, "best tile and split"))
    for best, colour, name in lines:
        rates = GemmCurve.predicted(machine, best)
        axes.plot(GemmCurve.rows, rates, color=colour, linewidth=1.2, label=name)
    axes.plot(
        *zip(*GemmCurve.found(machine), strict=True),
        "o",
        color=style.INK,
        markersize=3,
        label="measured",
    )
    axes.set_title(product_rows.chip(machine), size=style.SMALL, loc="left")
    axes.set_xlabel("Rows of the output")
    axes.set_ylim(0)
    axes.set_xlim(0, GemmCurve.rows[-1] + 100)
    axes.xaxis.set_major_formatter(lambda value, _: style.plain(value))
    axes.set_xticks([0, 1024, 2048, 3072, 4096])
    axes.legend(frameon=False, loc="lower right", fontsize=style.SMALL)
