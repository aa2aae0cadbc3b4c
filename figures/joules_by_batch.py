"""Energy of a written token by the batch, as metered: dense models and mixtures."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.cost_and_carbon import JoulesByBatch, MeasuredJoules
from figures import style

LABELS: dict[str, Any] = {  # at the right end of a line, and beside it where two would meet
    "Llama 3.1 8B": {"by": (5, -12)},
    "Qwen3 235B-A22B": {"by": (5, -9)},
    JoulesByBatch.mixtures[-1][0]: {"by": (-8, 7)},
}
BESIDE: dict[str, Any] = {"by": (6, -3)}
COLOURS = {"h100": style.DEVICES["h100"], "b200": style.RED}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=6.4)
    dense, mixtures = style.panels(figure, 2)
    _panel(dense, JoulesByBatch.dense, "dense")
    _panel(mixtures, JoulesByBatch.mixtures, "mixtures")
    names = [(key.upper(), colour) for key, colour in COLOURS.items()]
    style.key(dense, names, (0.03, 0.16), 0.08)
    return figure


def alt() -> str:
    return f"""Log-log panels of the energy of a written token against the batch, a falling line of
    dots for each model on each kind of GPU. Among the dense models that of Llama 3.1 70B falls on
    H100s from {show(JoulesByBatch.dense_alone, digits=3)} with {show(JoulesByBatch.few)} requests
    to {show(MeasuredJoules.many, "J/token", 3)} in the largest batch. Among the mixtures that of
    Qwen3 235B-A22B begins higher, at {show(JoulesByBatch.mixture_alone, digits=3)}, and falls more
    steeply."""


def _panel(axes: Axes, models: Any, title: str) -> None:
    style.log_axis(axes, "x", "Requests in the batch")
    style.log_axis(axes, "y", "Energy (J/token)")
    axes.set_xlim(6, 12_000)
    axes.set_ylim(0.03, 20)
    axes.set_title(title)
    for name, model, machines in models:
        for device, devices in machines:
            batch, energy = JoulesByBatch.curve(model, device, devices)
            batches, joules = batch.magnitude, energy.m_as("J/token")
            axes.plot(batches, joules, "o-", color=COLOURS[device], markersize=3.5, linewidth=1.3)
        style.note(axes, batches[-1], joules[-1], name, bold=True, **LABELS.get(name, BESIDE))
