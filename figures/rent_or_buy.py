"""An hour of work on a GPU that one owns or rents, by the share of hours with work."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure

from calc import cost
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.cost_and_carbon import RentOrBuy, RunPrice
from figures import style

WIDTHS = (0.9, 1.6, 2.4)  # the longer a machine is used, the thicker


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=3.9)
    axes = figure.subplots()
    share = numpy.linspace(0.2, 1, 25)
    rent = RentOrBuy.rent.m_as("USD/h")
    for years, width in zip(RentOrBuy.lifetimes, WIDTHS, strict=True):
        price, share_of_rent = _owned(years)
        even = share_of_rent.m_as("")
        axes.plot(100 * share, price.m_as("USD/h") / share, color=style.BLUE, linewidth=width)
        axes.plot(100 * even, rent, "o", color=style.INK, markersize=6)
        style.note(axes, 100 * even, rent, f"{100 * even:.0f}", (-3, -14), ha="right", bold=True)
        style.note(
            axes,
            100,
            price.m_as("USD/h"),
            f"{years.magnitude:.0f} years",
            (5, 2 if years < RentOrBuy.long else -3),
            va="center",
            color=style.BLUE,
        )
    axes.axhline(rent, color=style.ORANGE, linewidth=1.8)
    style.note(
        axes,
        21,
        rent,
        "rented" if style.is_narrow() else "rented by the hour",
        (0, 5),
        color=style.ORANGE,
        bold=True,
    )
    style.note(
        axes,
        100,
        RentOrBuy.price_short.m_as("USD/h"),
        "owned for",
        (5, 14),
        va="center",
        color=style.BLUE,
    )
    axes.set_xlim(20, 100)
    axes.set_ylim(0, 6)
    axes.set_xlabel("Hours with work, of all hours (%)")
    axes.set_ylabel("USD for an hour of work")
    return figure


def alt() -> str:
    evens = (
        f"{show(_owned(years)[1].to('%'), digits=2)} after {show(years)}"
        for years in RentOrBuy.lifetimes
    )
    return f"""The price of an hour of work, in USD, against the share of hours with work. A falling
    curve for each lifetime of a machine that one owns crosses the level line of the rent,
    {show(RentOrBuy.rent)}, where owning begins to pay: at {listed(evens)}."""


def _owned(years: Quantity) -> tuple[Quantity, Quantity]:
    """The price of an hour of a machine used for so long, and the share of hours that repays it."""
    price = cost.price_of_ownership(
        RentOrBuy.purchase, years, RunPrice.power, RentOrBuy.electricity
    )
    return price, cost.break_even_utilization(price, RentOrBuy.rent)
