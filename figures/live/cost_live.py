"""Rent or buy: what an hour of work costs, by the share of hours in which there is work."""

from __future__ import annotations

from calc import cost, quantity
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Drawing, Model

SHARE = Axis("Share of hours with work")
PAID = Axis("Price of an hour of work", "USD/hour")
INPUTS = (
    Amount("purchase", "Purchase of a device", "40000 USD", "USD", 0, 1e9),
    Amount("lifetime", "Lifetime", "4 year", "year", 0.01, 100),
    Amount("power", "Power", "1.275 kW", "W", 0, 1e7),
    Amount("electricity", "Electricity", "0.0806 USD/kWh", "USD/kWh", 0, 100),
    Amount("pue", "PUE", "1.54", "", 1, 5),
    Amount("rent", "Rent of an hour", "2 USD/hour", "USD/hour", 1e-6, 1e6),
)


def answer(
    purchase: Quantity,
    lifetime: Quantity,
    power: Quantity,
    electricity: Quantity,
    pue: Quantity,
    rent: Quantity,
) -> Answer:
    """Whoever owns pays for every hour, whoever rents for those with work."""
    owned = cost.price_of_ownership(purchase, lifetime, power, electricity, pue).to("USD/hour")
    share = cost.break_even_utilization(owned, rent)
    places = [step / 40 for step in range(2, 41)]
    rows, dots = [("rented", part, PAID.of(rent)) for part in places], []
    year = quantity(1, "year")
    for kept in (lifetime - year, lifetime, lifetime + year):
        if kept > 0 * year:
            price = cost.price_of_ownership(purchase, kept, power, electricity, pue)
            rows += [(f"kept for {kept}", part, PAID.of(price) / part) for part in places]
            even = cost.break_even_utilization(price, rent).m_as("")
            if places[0] <= even <= 1:
                dots.append((f"break-even after {kept}", even, PAID.of(rent)))
    facts = {
        "An hour of what is owned": str(owned),
        "Buying is cheaper": f"above {share.to('%')} of all hours"
        if share.m_as("") < 1
        else "never",
    }
    inputs = [str(value) for value in (purchase, lifetime, power, electricity)]
    arguments = f"{', '.join(map(repr, inputs))}, {pue.m_as('')!r}"
    python = (
        "from calc import cost\n\n"
        f"owned = cost.price_of_ownership({arguments})\n"
        "print(owned.to('USD/hour'))\n"
        f"print(cost.break_even_utilization(owned, {str(rent)!r}))"
    )
    caption = (
        f"What an hour with work costs, by the share of all hours that have any: {rent} rented, and"
        f" {owned} an hour owned for {lifetime}, busy or not; dots mark break-even."
    )
    return Answer(rows, facts, caption, python, dots=dots)


MODEL = Model("Rent or buy", INPUTS, Drawing(SHARE, PAID), answer)
