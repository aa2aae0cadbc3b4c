"""Where the energy of one token goes: its total on a logarithmic axis, and its parts."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.cost_and_carbon import TokenJoules, TokenPrice
from figures import style

CASES = (
    ("decoded alone", TokenJoules.alone),
    (f"decoded in a\nbatch of {TokenPrice.most.magnitude:.0f}", TokenJoules.together),
    ("prefilled, in\na prompt", TokenJoules.read),
)
PARTS = (
    ("cells", "memory", style.BLUE, 1.0),
    ("way from memory", "way", style.BLUE, 0.45),
    ("arithmetic", "arithmetic", style.ORANGE, 1.0),
    ("the rest", "rest", style.INK, 0.25),
)
PLACES = {"memory": 0, "way": 0, "arithmetic": 2, "rest": 0}  # the bar that names each part
MENTIONED = 9  # percent: a smaller part has no room for its number


def draw() -> Figure:
    figure = style.figure(height=2.9, narrow_height=4.8)
    if style.is_narrow():
        left, right = figure.subplots(2, 1)
    else:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.5))
    _totals(left)
    _shares(right)
    for axes in (left, right):
        axes.set_ylim(len(CASES) - 0.5, -0.75)
        axes.set_yticks(range(len(CASES)), [name for name, _ in CASES])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    return figure


def alt() -> str:
    totals = (
        f"{show(joules.floor.magnitude, digits=2)} and {show(joules.total.magnitude, digits=2)} "
        f"for a token {_flat(name)}"
        for name, joules in CASES
    )
    shares = (
        f"{show(((joules.memory + joules.way) / joules.total).to('%'), digits=2)} and "
        f"{show((joules.arithmetic / joules.total).to('%'), digits=2)} of one {_flat(name)}"
        for name, joules in CASES
    )
    return f"""In the first panel pairs of dots on a logarithmic axis, the floor and the board at
    full power, in joules for a token: {"; ".join(totals)}. In the second bars of the shares of the
    board's energy: the memory with the way from it, and arithmetic, take {"; ".join(shares)}."""


def _flat(name: str) -> str:
    return name.replace("\n", " ")


def _totals(axes: Axes) -> None:
    style.log_axis(axes, "x", "Joules for a token")
    axes.set_xlim(0.002, 12)
    for place, (_, joules) in enumerate(CASES):
        floor, total = joules.floor.m_as("J/token"), joules.total.m_as("J/token")
        axes.plot([floor, total], [place, place], color=style.INK, linewidth=1)
        axes.plot(floor, place, "o", color=style.INK, markerfacecolor="none", markersize=6)
        axes.plot(total, place, "o", color=style.INK, markersize=6)
        style.note(
            axes, (floor * total) ** 0.5, place, f"{total / floor:.1f} ×", (0, 5), ha="center"
        )
    style.note(axes, 0.0023, -0.5, "○ floor   ● board at full power", bold=True)


def _shares(axes: Axes) -> None:
    for place, (_, joules) in enumerate(CASES):
        left = 0.0
        for words, name, colour, alpha in PARTS:
            share = (getattr(joules, name) / joules.total).m_as("%")
            axes.barh(place, share, left=left, height=0.6, color=colour, alpha=alpha)
            label = f"{share:.0f} %" if share > MENTIONED else ""
            if place == PLACES[name]:
                style.note(
                    axes, left + share / 2, place - 0.34, words, ha="center", va="bottom", bold=True
                )
            style.note(axes, left + share / 2, place, label, ha="center", va="center")
            left += share
    axes.set_xlim(0, 100)
    axes.set_xlabel("Share of a board at full power (%)")
