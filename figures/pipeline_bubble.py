"""A pipeline's step with one thick stage on each device, and with two thin ones: when they wait."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from calc.derivations import show
from calc.derivations.pipelines import PipelineSchedule, Slot
from calc.derivations.quoting import words
from figures import style

CASES = (  # what it is called, on a page and on a phone; slices; share of a step that is bubble
    ("(a) 1F1B", "(a) 1F1B", 1, PipelineSchedule.bubble),
    (
        f"(b) Interleaved, {words(PipelineSchedule.slices)} virtual stages on each device",
        "(b) Interleaved",
        PipelineSchedule.slices,
        PipelineSchedule.bubble_interleaved,
    ),
)
HEIGHT = 0.86
DIGIT = 0.1  # inches that a pass must be long to have its number
# Backward or not, and the slice: how much of its color a pass has.
LOOKS = {
    (False, 0): (style.INK, 0.14),
    (False, 1): (style.INK, 0.34),
    (True, 0): (style.RED, 0.35),
    (True, 1): (style.RED, 0.62),
}
MEANINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("forward", {"facecolor": style.INK, "alpha": 0.14}),
    ("backward", {"facecolor": style.RED, "alpha": 0.35}),
    ("stronger: second virtual stage", {"facecolor": style.INK, "alpha": 0.34}),
    ("bubble", {"fill": False, "hatch": "////", "alpha": 0.6, "edgecolor": style.INK}),
)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.3, narrow_height=4.9)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (name, short_name, slices, bubble) in zip(panels, CASES, strict=True):
        _devices(axes, PipelineSchedule.slots(slices))
        axes.set_title(f"{short_name if narrow else name}: bubble {show(bubble, digits=2)}")
    ends = [_end(PipelineSchedule.slots(slices)) for _, _, slices, _ in CASES]
    last = panels[-1]
    last.axvline(ends[0], color=style.RED, linewidth=1, linestyle=(0, (4, 3)))
    middle = PipelineSchedule.devices / 2
    look: dict[str, Any] = {"color": style.RED, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
    style.arrow(last, (ends[0], middle), (ends[1], middle), **look)
    sooner = show(PipelineSchedule.sooner, digits=2)
    style.note(
        last,
        sum(ends) / 2,
        middle - 0.15,
        f"−{sooner}" if narrow else f"{sooner} sooner",
        ha="center",
        va="bottom",
        color=style.RED,
        bold=True,
    )
    last.set_xlabel("Time, in units of a device's work")
    handles = [Patch(label=name, linewidth=0, **look) for name, look in MEANINGS]
    columns = 2 if narrow else len(MEANINGS)
    style.legend(
        figure, above=False, columns=columns, handles=handles, handlelength=1.3, columnspacing=1.2
    )
    return figure


def alt() -> str:
    (plain, end), (interleaved, sooner_end) = (
        (show(bubble, digits=2), show(_end(PipelineSchedule.slots(slices)), digits=3))
        for _, _, slices, bubble in CASES
    )
    return f"""Timelines of a step with {PipelineSchedule.microbatches} microbatches, with a row for
    each of {PipelineSchedule.devices} devices. In the first, 1F1B, forward and backward blocks take
    turns between hatched gaps at the start, in the middle and at the end of the rows: {plain} of
    the step, which ends after {end} times the work of a device. In the second, interleaved, a
    device has {words(PipelineSchedule.slices)} virtual stages and blocks that many times shorter;
    the gaps are {interleaved}, and the step ends {show(PipelineSchedule.sooner, digits=2)} sooner,
    after {sooner_end} times that work."""


def _end(slots: list[Slot]) -> float:
    return max(slot.start + slot.length for slot in slots)


def _devices(axes: Axes, slots: list[Slot]) -> None:
    devices, end = PipelineSchedule.devices, _end(slots)
    waits = []
    for device in range(devices):
        spans = [(slot.start, slot.start + slot.length) for slot in slots if slot.device == device]
        for (_, before), (after, _) in pairwise([(0.0, 0.0), *sorted(spans), (end, end)]):
            if after - before > 1e-9:
                waits.append((before, device, after - before, HEIGHT))
    style.boxes(axes, waits, fill=False, edgecolor=style.INK, alpha=0.6, hatch="////", linewidth=0)
    for (backward, part), (color, alpha) in LOOKS.items():
        alike = [slot for slot in slots if (slot.backward, slot.slice) == (backward, part)]
        if alike:
            boxes = [(slot.start, slot.device, slot.length, HEIGHT) for slot in alike]
            look = {"facecolor": (color, alpha), "edgecolor": (style.INK, 0.5), "linewidth": 0.4}
            style.boxes(axes, boxes, **look)
    longest = _end(PipelineSchedule.slots(1)) * 1.005
    inches = style.WIDTH * 0.85 / longest
    thin = style.is_narrow() or any(slot.slice for slot in slots)  # too thin to be numbered
    for slot in [] if thin else slots:
        if slot.length * inches > DIGIT:
            style.note(
                axes,
                slot.start + slot.length / 2,
                slot.device + HEIGHT / 2 + 0.02,
                str(slot.microbatch + 1),
                ha="center",
                va="center",
            )
    axes.set_xlim(0, longest)
    axes.set_ylim(devices, -0.1)
    names = [f"device {device + 1}" for device in range(devices)]
    axes.set_yticks([device + HEIGHT / 2 for device in range(devices)], names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
