"""Figure of a live one as it opens, small: lines or bars without axes, and a few answers."""

from __future__ import annotations

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import live, style
from figures.live.model import Answer, Drawing

SIZE = 3.2, 1.15  # inches: a card of the workbench
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.RED)
ANSWERS = 2


def draw(name: str) -> Figure:
    model = live.get(name)
    matplotlib.style.use(style.STYLE)
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    answer = live.opened(name)
    (_bars if model.drawing.mark == "bar" else _lines)(axes, model.drawing, answer)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axes.grid(visible=False, which="both")
    return figure


def words(name: str) -> str:
    """Return the first answers of a live figure in words, for the inputs with which it opens."""
    facts = list(live.opened(name).facts.items())[:ANSWERS]
    return "; ".join(f"{what}: {value}" for what, value in facts)


def _lines(axes: Axes, drawing: Drawing, answer: Answer) -> None:
    axes.set_xscale("log" if drawing.x.log else "linear")
    axes.set_yscale("log" if drawing.y.log else "linear")
    names = list(dict.fromkeys(line for line, *_ in answer.rows))
    colours = {line: COLOURS[number % len(COLOURS)] for number, line in enumerate(names)}
    for line, outline in answer.bands:
        axes.fill(*zip(*outline, strict=True), color=colours[line], alpha=0.17, linewidth=0)
    for line in names:
        places = [(x, y) for other, x, y in answer.rows if other == line]
        axes.plot(*zip(*places, strict=True), color=colours[line], linewidth=1.4)
    for dots, colour, size in ((answer.measured, style.RED, 1.5), (answer.dots, style.INK, 4.5)):
        axes.plot(
            [x for _, x, _ in dots],
            [y for *_, y in dots],
            "o",
            color=colour,
            markersize=size,
            markeredgewidth=0,
        )


def _bars(axes: Axes, drawing: Drawing, answer: Answer) -> None:
    parts = list(dict.fromkeys(part for part, *_ in answer.rows))
    below: dict[str, float] = {}
    for part, x, y in answer.rows:
        colour = COLOURS[parts.index(part) % len(COLOURS)]
        axes.bar(x, y, bottom=below.get(x, 0.0), color=colour, width=0.7)
        below[x] = below.get(x, 0.0) + y
    for _, level in answer.levels:
        axes.axhline(level, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)))
