"""Figure of what a small network holds while each layer runs, and how long each runs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import convolution
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.small_machines import (
    INT8,
    MeasuredLayers,
    Schedules,
    VisualWakeWords,
    layer_times,
)
from figures import style

COLOURS = {
    "convolution": style.INK,
    "depthwise": style.ORANGE,
    "pointwise": style.BLUE,
    "dense": style.INK,
}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.3, narrow_height=5.6)
    above, below = style.panels(figure, 2, sharex=style.is_narrow())
    memory = [size.m_as("kB") for _, size in convolution.memory_schedule(Schedules.visual, INT8)]
    _bars(above, memory, "(a) Activations held (kB)")
    peak = VisualWakeWords.peak
    above.axhline(peak.m_as("kB"), color=style.INK, linewidth=0.8, linestyle=(0, (4, 3)))
    above_the_line = 1.02 * peak.m_as("kB")
    words = f"peak {show(peak, digits=2)}"
    style.note(above, len(memory), above_the_line, words, ha="right", va="bottom")
    above.set_ylim(0, 1.15 * peak.m_as("kB"))
    times = [time.m_as("ms") for _, time in layer_times(Schedules.visual)]
    _bars(below, times, "(b) Time at the roofline (ms)")
    below.set_ylim(0, 1.15 * max(times))
    names = [(kind, COLOURS[kind]) for kind in ("depthwise", "pointwise")]
    style.key(above, names, (0.98, 0.75), 0.09, side="right")
    return figure


def alt() -> str:
    schedule = convolution.memory_schedule(Schedules.visual, INT8)
    largest = next(name for name, size in schedule if size == VisualWakeWords.peak)
    last = schedule[-3][1].to("kB")
    number = [name for name, _ in schedule].index(largest) + 1
    return f"""Bars for the {len(schedule)} layers of {Schedules.visual.name}, in order. In the
    first panel the activations that a layer holds: a peak of
    {show(VisualWakeWords.peak, digits=3)} in layer {number}, and {show(last, digits=2)} near the
    end. In the second the time of each layer: {listed(["depthwise", "pointwise"])} convolutions
    alternate, and the depthwise ones take {show(MeasuredLayers.depthwise_share, digits=2)} of
    {show(MeasuredLayers.visual_bound, digits=2)}."""


def _bars(axes: Axes, values: list[float], title: str) -> None:
    kinds = [layer.kind for layer in Schedules.visual.convolutions]
    places = range(1, len(values) + 1)
    axes.bar(places, values, color=[COLOURS[kind] for kind in kinds], width=0.85)
    axes.set_title(title, size=style.SMALL, weight="bold", loc="left")
    if not style.is_narrow() or title.startswith("(b)"):
        axes.set_xlabel("Layer")
