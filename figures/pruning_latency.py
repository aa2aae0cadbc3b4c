"""Time of a forward pass with half the weights or half the neurons, by batch."""

from __future__ import annotations

import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from polars import col

from calc.derivations import show
from calc.derivations.digits_sweep import LATENCY, PruningLatency
from figures import style

BARS = {
    "none": ("unpruned", style.INK),
    "unstructured": (f"{show(PruningLatency.level, '%')} of weights", style.BLUE),
    "structured": (f"{show(PruningLatency.level, '%')} of neurons", style.ORANGE),
}


def draw() -> Figure:
    figure = style.figure(height=2.3, narrow_height=4.8)
    batches = PruningLatency.batches
    if style.is_narrow():
        panels = figure.subplots(len(batches), 1, sharex=True)
    else:
        panels = figure.subplots(1, len(batches), sharey=True)
    for axes, batch in zip(panels, batches, strict=True):
        _panel(axes, LATENCY.filter(col("batch") == batch))
        axes.set_title(f"batch {batch}", size=style.SMALL, weight="bold", loc="left")
        if not style.is_narrow() or axes is panels[-1]:
            axes.set_xlabel("Time, of the unpruned")
    return figure


def alt() -> str:
    groups = (
        f"{show(1 / weights, digits=2)} and {show(1 / neurons, digits=2)} at batch {show(batch)}"
        for batch, *_, weights, neurons in map(PruningLatency.row, PruningLatency.batches)
    )
    _, weights, neurons = (name for name, _ in BARS.values())
    return f"""Groups of bars of the time of a forward pass, one group for each batch. Relative to
    the unpruned network, the bars with {weights} and with {neurons} are as long as
    {"; ".join(groups)}."""


def _panel(axes: Axes, rows: polars.DataFrame) -> None:
    unpruned = _micros(rows, "none", 0)
    whole = unpruned[len(unpruned) // 2]
    for place, (kind, (_, colour)) in enumerate(BARS.items()):
        level = PruningLatency.level.m_as("") if kind != "none" else 0
        low, *_, high = micros = _micros(rows, kind, level)
        middle = micros[len(micros) // 2]
        axes.barh(-place, 100 * middle / whole, color=colour, height=0.7, alpha=0.85)
        ends = [[100 * (middle - low) / whole], [100 * (high - middle) / whole]]
        axes.errorbar(
            100 * middle / whole, -place, xerr=ends, color=style.INK, elinewidth=1.2, capsize=2
        )
        style.note(axes, 108, -place, f"{middle:.0f} µs", va="center")
    axes.set_yticks([-place for place in range(len(BARS))], [name for name, _ in BARS.values()])
    axes.set_xlim(0, 135)
    axes.set_xticks([0, 50, 100])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")


def _micros(rows: polars.DataFrame, kind: str, level: float) -> list[float]:
    mine = rows.filter((col("kind") == kind) & (col("pruning") == level))
    return (1e6 * mine["latency_seconds"]).sort().to_list()
