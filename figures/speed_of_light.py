"""A map of what light in fibre can answer: places by their distance, latency budgets as discs."""

from __future__ import annotations

from math import cos, radians, sin

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import links, quantity
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.numbers_to_know import ReachOfBudgets
from figures import style

UNIT = "km"
RINGS = range(2000, 10_001, 2000)
EDGE = 10_900
DIRECTIONS = {"campus": 90, "coast to coast": 160, "Atlantic": 30, "Pacific": 118}
SIDES = {  # of its dot on which a name stands, and how far from it, in points
    "campus": ("left", (4, 38)),
    "coast to coast": ("right", (16, 7)),
    "Atlantic": ("left", (-14, 8)),
    "Pacific": ("center", (-2, 8)),
}
BUDGET_NAMES = {"Click": (500, 7400), "Braking": (1900, 250)}
DISCS = (("Click", 0.10), ("Braking", 0.45))  # and how dark; the largest first


def draw() -> Figure:
    figure = style.figure(height=4.1, narrow_height=2.7)
    axes = figure.subplots()
    axes.set_aspect("equal")
    budgets = {name: (budget, reach) for name, budget, reach in ReachOfBudgets.budgets}
    for name, strength in DISCS:
        _disc(axes, budgets[name][1].m_as(UNIT), strength)
    _rings(axes)
    click, rim = budgets["Click"]
    for name, distance, time in ReachOfBudgets.places:
        _place(axes, name, distance, time, click, rim)
    _budget_names(axes, budgets)
    axes.set_xlim(-EDGE, EDGE)
    axes.set_ylim(0, EDGE * (1.12 if style.is_narrow() else 1.0))
    return figure


def alt() -> str:
    budgets = {name: (budget, reach) for name, budget, reach in ReachOfBudgets.budgets}
    places = (
        f"{name} at {show(distance, UNIT)} and {show(time)}"
        for name, distance, time in ReachOfBudgets.places
    )
    (click, rim), (braking, small) = budgets["Click"], budgets["Braking"]
    return f"""Half a disc, a map of what light in fibre can answer. Its rim, {show(rim, UNIT)}
    away, is a round trip of {show(click)}, the budget of an answer that feels instantaneous; a
    small disc of {show(small, UNIT)} around the centre is {show(braking)}, the budget of a braking
    car. Lines from the centre lead to places by the length of the path: {listed(places)}. What is
    dotted between a place and the rim is the time left for servers and networks."""


def _arc(radius: float) -> tuple[numpy.ndarray, numpy.ndarray]:
    angle = numpy.linspace(0, numpy.pi, 181)
    return radius * numpy.cos(angle), radius * numpy.sin(angle)


def _disc(axes: Axes, radius: float, strength: float) -> None:
    x, y = _arc(radius)
    axes.fill(x, y, color=style.RED, alpha=strength, linewidth=0)
    axes.plot(x, y, color=style.RED, linewidth=1.4)


def _rings(axes: Axes) -> None:
    """Faint circles, named on the left by the round trip of light, on the right by distance."""
    for radius in RINGS:
        axes.plot(*_arc(radius), color=style.INK, alpha=0.15, linewidth=0.6)
    named = RINGS[1::2] if style.is_narrow() else RINGS
    times = [links.round_trip_time(quantity(radius, UNIT)) for radius in named]
    places = [*(-radius for radius in named), 0, *named]
    names = [*(str(show(time)) for time in times), *(style.plain(each) for each in (0, *named))]
    if style.is_narrow():
        places, names = places[1:], names[1:]
    axes.set_xticks(places, names)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(
        f"Round trip  ←   →  Length ({UNIT})"
        if style.is_narrow()
        else f"Round trip of light  ←   →  Length of the path ({UNIT})"
    )


def _place(
    axes: Axes, name: str, distance: Quantity, time: Quantity, budget: Quantity, rim: Quantity
) -> None:
    """A cable to the place, and beyond it, dotted, what the budget of a click has left."""
    angle = radians(DIRECTIONS[name])
    far, edge = distance.m_as(UNIT), rim.m_as(UNIT)
    x, y = far * cos(angle), far * sin(angle)
    axes.plot([0, x], [0, y], color=style.INK, linewidth=1.6)
    axes.plot([x, edge * cos(angle)], [y, edge * sin(angle)], ":", color=style.INK, linewidth=1.0)
    axes.plot(x, y, "o", color=style.INK, markersize=5.5, zorder=5)
    side, offset = SIDES[name]
    axes.annotate(
        f"{name}\n{show(time)}",
        (x, y),
        xytext=offset,
        textcoords="offset points",
        ha=side,
        va="bottom",
        size=style.SMALL,
        weight="bold",
        linespacing=1.15,
    )
    spare, middle = budget - time, (far + edge) / 2
    if not style.is_narrow() and y > 0 and EDGE / 50 < far < edge:
        axes.annotate(
            f"{show(spare)} left",
            (middle * cos(angle), middle * sin(angle)),
            xytext=(0, -3),
            textcoords="offset points",
            ha="center",
            va="top",
            rotation=DIRECTIONS[name] - (180 if DIRECTIONS[name] > 90 else 0),
            size=style.SMALL,
        )


def _budget_names(axes: Axes, budgets: dict[str, tuple[Quantity, Quantity]]) -> None:
    for name, (x, y) in BUDGET_NAMES.items():
        axes.text(
            x,
            y,
            f"{name}: {show(budgets[name][0])}",
            color=style.RED,
            weight="bold",
            size=style.SMALL,
        )
