"""Memory of training by lever: a 7 B model computed, five small networks measured."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.training_levers import MeasuredMemory, SevenBillion
from figures import style


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.9, narrow_height=5.6)
    left, right = style.panels(figure, 2)
    _seven_billion(left)
    _measured(right)
    for axes, letter in ((left, "(a)"), (right, "(b)")):
        axes.invert_yaxis()
        axes.set_title(letter, size=style.SMALL, loc="left")
        axes.tick_params(axis="y", length=0)
    return figure


def alt() -> str:
    bars = (
        f"{name} {show(state + activations, digits=3)}, of which {show(state, digits=3)} are state"
        for name, state, activations in SevenBillion.bars
    )
    ratios = (f"{ratio:.2f}" for ratio in MeasuredMemory.ratios)
    first, *_, last = MeasuredMemory.cases
    return f"""In the first panel stacked bars of state and activations for a model of
    {show(SevenBillion.parameters, digits=2)}: {"; ".join(bars)}; a line marks the
    {show(SevenBillion.device.to("GB"), digits=2)} of an H100. In the second the measured memory of
    networks in BF16, relative to FP32, from {first} to {last}: {listed(ratios)}."""


def _seven_billion(axes: Axes) -> None:
    for row, (_, state, activations) in enumerate(SevenBillion.bars):
        states, stored = state.m_as("GB"), activations.m_as("GB")
        axes.barh(row, states, height=0.62, color=style.BLUE, alpha=0.85)
        axes.barh(row, stored, left=states, height=0.62, color=style.ORANGE, alpha=0.85)
        style.note(axes, states + stored + 6, row, f"{states + stored:.0f}", va="center")
    style.note(axes, 0, -0.38, "state", va="bottom", bold=True)
    states = SevenBillion.state.m_as("GB")
    style.note(axes, states, -0.38, "activations", va="bottom", bold=True)
    axes.axvline(SevenBillion.device.m_as("GB"), color=style.RED, linewidth=1.2)
    style.note(
        axes,
        SevenBillion.device.m_as("GB") + 6,
        len(SevenBillion.bars) - 0.52,
        "an H100",
        color=style.RED,
        va="top",
    )
    axes.set_ylim(-0.8, len(SevenBillion.bars))
    axes.set_yticks(range(len(SevenBillion.bars)), [name for name, *_ in SevenBillion.bars])
    axes.set_xlim(0, 440)
    axes.set_xlabel(f"{show(SevenBillion.parameters, digits=2)} (GB)")


def _measured(axes: Axes) -> None:
    for row, ratio in enumerate(MeasuredMemory.ratios):
        axes.plot([1, ratio], [row, row], color=style.INK, linewidth=1.2)
        axes.plot(ratio, row, "o", color=style.INK, markersize=6)
        away = -0.035 if ratio < 1 else 0.035
        side = "right" if ratio < 1 else "left"
        style.note(axes, ratio + away, row, f"{ratio:.2f}", ha=side, va="center")
    axes.axvline(1, color=style.INK, linewidth=0.9, linestyle=":")
    names = [
        case.replace("layers of ", "× ").replace(", batch", ",\nbatch")
        for case in MeasuredMemory.cases
    ]
    axes.set_yticks(range(len(names)), names, size=style.SMALL)
    axes.set_xlim(0.36, 1.22)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel("BF16 over FP32, measured")
