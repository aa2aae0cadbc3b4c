"""A training plan as a drawing: the time of a step by its parts, for the best layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calc.core.errors import MissingExtraError
from calc.planning.training_report import SHOWN, cut, parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calc.planning.training import TrainingPlan

INK = "#767676"  # stands out as well from a light page as from a dark one, as do all of these
COLOURS = (
    *("#307ec2", "#be621a", "#1c8b6c", "#9c65b9", "#c85943"),
    *("#8a7a20", "#4d7d8c", "#a8577e", "#6b7a45", "#7a6a5c"),
)


def draw(plan: TrainingPlan) -> Figure:
    """Bars of the parts, one after the other, and a mark where the step ends that hides some."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("TrainingPlan.draw()", "matplotlib", "book") from None

    best = plan.candidates[:SHOWN]
    made = [parts(each) for each in best]
    names = list(dict.fromkeys(name for each in made for name in each if _seen(name, made)))
    figure = Figure(figsize=(7, 1.3 + 0.3 * len(best)), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.subplots()
    axes.patch.set_alpha(0)
    places = range(len(best))
    left = [0.0] * len(best)
    for number, name in enumerate(names):
        widths = [each.get(name, 0.0) for each in made]
        colour = COLOURS[number % len(COLOURS)]
        axes.barh(places, widths, 0.6, left, color=colour, label=name)
        left = [before + width for before, width in zip(left, widths, strict=True)]
    ends = [each.time.m_as("s") for each in best]
    axes.plot(ends, places, "|", color=INK, markersize=16, markeredgewidth=2.5)
    axes.set_yticks(places, [cut(each) for each in best])
    axes.invert_yaxis()
    axes.set_xlabel(
        "Seconds of each part of a step; the mark is its end, since some are hidden", color=INK
    )
    axes.tick_params(colors=INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(INK)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, labelcolor=INK)
    return figure


def _seen(name: str, made: list[dict[str, Any]]) -> bool:
    """Whether a part is wide enough to be seen in some bar."""
    return any(each.get(name, 0.0) > sum(each.values()) / 200 for each in made)
