"""A pipeline's step with few and with many microbatches: what the stages do, and when they wait."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from calc.derivations import show
from calc.derivations.communication import PipelineSchedule, Slot
from figures import style

CASES = (  # microbatches, and the share of a step that each stage waits
    (PipelineSchedule.few, PipelineSchedule.bubble_of_few),
    (PipelineSchedule.many, PipelineSchedule.bubble_of_many),
)


def draw() -> Figure:
    figure = style.figure(height=3.9, narrow_height=4.4)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (microbatches, bubble) in zip(panels, CASES, strict=True):
        _stages(axes, microbatches)
        axes.set_title(f"{microbatches} microbatches: each stage waits {show(bubble, digits=2)}")
    meanings = ("grey: forward", "red: backward", "hatched: waiting")
    for row, meaning in enumerate(meanings):
        word = meaning.replace(" ", "\n") if style.is_narrow() else meaning
        colour = style.RED if meaning.startswith("red") else style.INK
        panels[1].text(
            1.28, row + 0.45, word, va="center", size=style.SMALL, weight="bold", color=colour
        )
    panels[-1].set_xlabel("Time, in units of the work of a stage")
    return figure


def alt() -> str:
    (few, first, first_end), (many, then, then_end) = (
        (
            microbatches,
            show(bubble, digits=2),
            show(_end(PipelineSchedule.slots(microbatches)), digits=3),
        )
        for microbatches, bubble in CASES
    )
    return f"""Timelines of a step, with a row for each of {PipelineSchedule.stages} stages. With
    {few} microbatches hatched gaps stand before, between and after the forward and the backward
    blocks of each row, {first} of the step. With {many} microbatches each block is shorter, the
    gaps are {then} of the step, and it ends after {then_end} times the work of a stage instead of
    {first_end} times."""


def _end(slots: list[Slot]) -> float:
    return max(slot.start + slot.length for slot in slots)


def _boxes(axes: Axes, boxes: Sequence[tuple[float, float, float]], **look: Any) -> None:
    """Boxes alike, each by its start, its stage and its length, as one path: a page stays light."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    outlines = [
        Path([(start + x * length, stage + y * 0.86) for x, y in corners], closed=True)
        for start, stage, length in boxes
    ]
    axes.add_patch(PathPatch(Path.make_compound_path(*outlines), **look))


def _stages(axes: Axes, microbatches: int) -> None:
    slots = PipelineSchedule.slots(microbatches)
    end = _end(slots)
    waits = []
    for stage in range(PipelineSchedule.stages):
        own = [(slot.start, slot.start + slot.length) for slot in slots if slot.stage == stage]
        for (_, before), (after, _) in pairwise([(0.0, 0.0), *sorted(own), (end, end)]):
            waits.append((before, stage, after - before))
    _boxes(axes, waits, fill=False, edgecolor=style.INK, alpha=0.6, hatch="////", linewidth=0)
    for backward, colour, alpha in ((True, style.RED, 1.0), (False, style.INK, 0.3)):
        boxes = [
            (each.start, each.stage, each.length) for each in slots if each.backward is backward
        ]
        _boxes(axes, boxes, facecolor=colour, alpha=alpha, edgecolor="#ffffff", linewidth=0.4)
    for slot in slots:
        if microbatches == PipelineSchedule.few:
            axes.text(
                slot.start + slot.length / 2,
                slot.stage + 0.45,
                str(slot.microbatch + 1),
                ha="center",
                va="center",
                color="#ffffff" if slot.backward else style.INK,
                size=style.SMALL,
            )
    axes.set_xlim(0, 1 + (PipelineSchedule.stages - 1) / PipelineSchedule.few + 0.01)
    axes.set_ylim(PipelineSchedule.stages, -0.1)
    names = [f"stage {stage + 1}" for stage in range(PipelineSchedule.stages)]
    axes.set_yticks([stage + 0.43 for stage in range(PipelineSchedule.stages)], names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
