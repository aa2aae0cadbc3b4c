"""A pipeline's step with few and with many microbatches: what the stages do, and when they wait."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

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


def _wait(axes: Axes, stage: int, start: float, end: float) -> None:
    axes.add_patch(
        Rectangle(
            (start, stage),
            end - start,
            0.86,
            fill=False,
            edgecolor=style.INK,
            alpha=0.6,
            hatch="////",
            linewidth=0,
        )
    )


def _stages(axes: Axes, microbatches: int) -> None:
    slots = PipelineSchedule.slots(microbatches)
    end = _end(slots)
    for stage in range(PipelineSchedule.stages):
        own = [(slot.start, slot.start + slot.length) for slot in slots if slot.stage == stage]
        for (_, before), (after, _) in pairwise([(0.0, 0.0), *sorted(own), (end, end)]):
            _wait(axes, stage, before, after)
    for slot in slots:
        axes.add_patch(
            Rectangle(
                (slot.start, slot.stage),
                slot.length,
                0.86,
                facecolor=style.RED if slot.backward else style.INK,
                alpha=1 if slot.backward else 0.3,
                edgecolor="#ffffff",
                linewidth=0.4,
            )
        )
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
