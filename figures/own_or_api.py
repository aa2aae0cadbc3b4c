"""A load has its cost by the hour on devices of one's own, and behind an API."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure

from calc import quantity
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.cost_and_carbon import OwnOrApi
from figures import style

LOADS = numpy.linspace(0.02, 14, 700)
PLACES = ((11.6, (-6, 6), "right"), (4.0, (7, -4), "left"))  # names of the cheapest, the dearest
HIGH = 20.0  # USD an hour: the top of the axis


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=3.8)
    axes = figure.subplots()
    axes.set_xlim(0, LOADS[-1])
    axes.set_ylim(0, HIGH)
    axes.set_xlabel("Load (request/s)")
    axes.set_ylabel("Bill of an hour (USD)")
    axes.plot(LOADS, _own(1.0), color=style.BLUE, linewidth=2)
    axes.plot(LOADS, _own(OwnOrApi.found.factors[1]), color=style.BLUE, dashes=(4, 2), linewidth=1)
    for offer, from_on in (
        (OwnOrApi.dearest, OwnOrApi.from_dearest),
        (OwnOrApi.cheapest, OwnOrApi.from_cheapest),
    ):
        axes.plot(LOADS, _bill(offer, LOADS), color=style.ORANGE)
        x = from_on.m_as("request/s")
        axes.plot(x, _bill(offer, x), "o", color=style.INK, markersize=6)
        at, by, side = PLACES[offer is OwnOrApi.dearest]
        height = _bill(offer, at)
        style.note(axes, at, height, offer.provider, by, ha=side, bold=True, color=style.ORANGE)
    style.note(axes, 2.1, 5.9, "own", (0, 4), bold=True, color=style.BLUE)
    style.note(axes, 6.1, 11.8, "own, if slow", (0, 5), color=style.BLUE)
    return figure


def alt() -> str:
    return f"""The bill of an hour against the load, two lines of APIs through the origin and a
    stair of devices of one's own. The steeper line, of {OwnOrApi.dearest.provider}, crosses the
    stair at {show(OwnOrApi.from_dearest, digits=2)}, and the other, of
    {OwnOrApi.cheapest.provider}, at {show(OwnOrApi.from_cheapest, digits=2)}. A dashed stair of
    slower devices rises sooner."""


def _own(factor: float) -> list[float]:
    return [_price(load, factor).m_as("USD/h") for load in LOADS]


def _price(load: float, factor: float) -> Quantity:
    price: Quantity = OwnOrApi.rent * OwnOrApi.found.devices(quantity(load, "request/s"), factor)
    return price


def _bill(offer: Any, load: Any) -> Any:
    return (OwnOrApi.found.bill(offer) * quantity(load, "request/s")).m_as("USD/h")
