"""A pipeline's step with few and with many microbatches: what the stages do, and when they wait."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc.derivations import show
from calc.derivations.communication import PipelineSchedule
from figures import style


def draw() -> Figure:
    figure = style.figure(height=3.9, narrow_height=4.4)
    panels = figure.subplots(2, 1, sharex=True)
    cases = (
        (PipelineSchedule.few, PipelineSchedule.bubble_of_few),
        (PipelineSchedule.many, PipelineSchedule.bubble_of_many),
    )
    for axes, (microbatches, bubble) in zip(panels, cases, strict=True):
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
    end = max(slot.start + slot.length for slot in slots)
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
