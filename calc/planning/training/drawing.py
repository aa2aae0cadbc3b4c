"""A training plan as a drawing: the time of a step by its parts, for the best layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calc.planning.drawing import COLORS, INK, STYLE, loaded_matplotlib
from calc.planning.training.report import cut, parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calc.planning.training.plan import TrainingPlan


def draw(plan: TrainingPlan) -> Figure:
    """Bars of the parts, one after the other, and a mark where the step ends that hides some."""
    matplotlib = loaded_matplotlib()
    best = plan.candidates
    made = [parts(each) for each in best]
    names = list(dict.fromkeys(name for each in made for name in each if _seen(name, made)))
    places = range(len(best))
    left = [0.0] * len(best)
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(7, 1.3 + 0.3 * len(best)), layout="constrained")
        axes = figure.subplots()
        for number, name in enumerate(names):
            widths = [each.get(name, 0.0) for each in made]
            color = COLORS[number % len(COLORS)]
            axes.barh(places, widths, 0.6, left, color=color, label=name)
            left = [before + width for before, width in zip(left, widths, strict=True)]
        ends = [each.time.m_as("s") for each in best]
        axes.plot(ends, places, "|", color=INK, markersize=16, markeredgewidth=2.5)
        axes.set_yticks(places, [cut(each) for each in best])
        axes.invert_yaxis()
        axes.set_xlabel("Parts of a step (s), some of them hidden; the mark is its end")
        axes.spines["left"].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure  # type: ignore[no-any-return]


def _seen(name: str, made: list[dict[str, Any]]) -> bool:
    """Whether a part is wide enough to be seen in some bar."""
    return any(each.get(name, 0.0) > sum(each.values()) / 200 for each in made)
