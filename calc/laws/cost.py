"""Costs of training and serving: dollars, energy, and the carbon emitted.

Prices are the caller's: they differ by contract and by month, so none is assumed. Two defaults are
averages of their year, for a first estimate: the overhead of a data centre (PUE) and the carbon
intensity of electricity; `calc.source` says whose.
"""

from __future__ import annotations

from typing import Annotated

from calc.catalog import constants
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE_FRACTION, law
from calc.core.units import Quantity, QuantityLike


@law
def run_cost(
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    time: Annotated[QuantityLike, "s", "T", NON_NEGATIVE],
    price: Annotated[QuantityLike, "USD/s", "p", NON_NEGATIVE],
) -> Annotated[Quantity, "USD"]:
    """Price of so many devices for so long, each at this price an hour.

    Equation: C = N · T · p

    Assumes that time which failures lose is paid as well: divide by the goodput what a plan without
    failures takes.

    Source: deepseek2024v3

    >>> print(run_cost(2048, "1361 h", "2 USD/h"))
    5.575e6 USD

    Parameters
    ----------
    devices
        devices that take part
    time
        how long they are paid for
    price
        price of a device for a time
    """
    return devices * time * price


@law
def cost_per_token(
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    price: Annotated[QuantityLike, "USD/s", "p", NON_NEGATIVE],
    throughput: Annotated[QuantityLike, "token/s", "R"],
    utilization: Annotated[QuantityLike, "", "u", POSITIVE_FRACTION] = 1.0,
) -> Annotated[Quantity, "USD/token"]:
    """Price of a token from devices that together write at this rate while they have work.

    Equation: c = N · p / (R · u)

    Idle hours cost the same, so u, the share of the rate that is asked for, divides.

    Source: pope2023efficiently

    See also: cost.energy_per_token

    >>> print(cost_per_token(8, "2 USD/h", "10000 token/s", 0.5).to("USD/Mtoken"))
    0.8889 USD/Mtoken

    Parameters
    ----------
    devices
        devices that take part
    price
        price of a device for a time
    throughput
        tokens in a second, of all devices together
    utilization
        share of the rate that is asked for
    """
    return devices * price / (throughput * utilization)


@law
def price_of_ownership(
    purchase: Annotated[QuantityLike, "USD", "A", NON_NEGATIVE],
    lifetime: Annotated[QuantityLike, "s", "T_life"],
    power: Annotated[QuantityLike, "W", "P", NON_NEGATIVE],
    electricity: Annotated[QuantityLike, "USD/J", "p_E", NON_NEGATIVE],
    pue: Annotated[QuantityLike, "", "PUE", AT_LEAST_ONE] = constants.get("pue_average"),
) -> Annotated[Quantity, "USD/s"]:
    """Hourly cost of an owned device: its share of the purchase, and electricity.

    Equation: p_own = A / T_life + P · PUE · p_E

    Linear depreciation to nothing, without interest, building or staff: a floor under any rent that
    is not a loss.

    Source: hennessy2025architecture

    >>> price = price_of_ownership("30000 USD", "4 year", "700 W", "0.1 USD/kWh")
    >>> print(price.to("USD/h"))
    0.9634 USD/h

    Parameters
    ----------
    purchase
        price of the device
    lifetime
        time over which the purchase is written off
    power
        power that a device draws
    electricity
        price of electricity
    pue
        energy of the data centre over that of its computers (PUE)
    """
    return purchase / lifetime + power * pue * electricity


@law
def break_even_utilization(
    ownership: Annotated[QuantityLike, "USD/s", "p_own"],
    rent: Annotated[QuantityLike, "USD/s", "p_rent"],
) -> Annotated[Quantity, ""]:
    """Share of all hours that a device must be wanted, for owning it to cost less than renting.

    Equation: u* = p_own / p_rent

    Whoever owns pays for every hour, whoever rents for those with work. Above 1, renting is always
    cheaper.

    Source: hennessy2025architecture

    >>> print(break_even_utilization("1.3 USD/h", "2 USD/h").to("%"))
    65%

    Parameters
    ----------
    ownership
        what owning the device costs for a time
    rent
        what renting the device costs for a time
    """
    return ownership / rent


@law
def energy_per_token(
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    power: Annotated[QuantityLike, "W", "P"],
    throughput: Annotated[QuantityLike, "token/s", "R"],
) -> Annotated[Quantity, "J/token"]:
    """Energy that devices take for a token, of reading or of writing, at this rate of all.

    Equation: e = N · P / R

    Assumes constant power; the thermal design power makes it an upper estimate for the devices, and
    hosts and network come on top.

    Source: patterson2021carbon

    >>> print(energy_per_token(8, "700 W", "10000 token/s"))
    560 mJ/token

    Parameters
    ----------
    devices
        devices that take part
    power
        power that a device draws
    throughput
        tokens in a second, of all devices together
    """
    return devices * power / throughput


@law
def facility_energy(
    energy: Annotated[QuantityLike, "J", "E_IT", NON_NEGATIVE],
    pue: Annotated[QuantityLike, "", "PUE", AT_LEAST_ONE] = constants.get("pue_average"),
) -> Annotated[Quantity, "J"]:
    """Energy that a data centre takes for what its computers take: cooling and losses included.

    Equation: E = E_IT · PUE

    Source: patterson2021carbon

    >>> print(facility_energy("1170 MWh", 1.1).to("MWh"))
    1287 MWh

    Parameters
    ----------
    energy
        energy that the computers took
    pue
        energy of the data centre over that of its computers (PUE)
    """
    return energy * pue


@law
def carbon(
    energy: Annotated[QuantityLike, "J", "E", NON_NEGATIVE],
    intensity: Annotated[QuantityLike, "g/J", "i", NON_NEGATIVE] = constants.get(
        "carbon_intensity_world"
    ),
) -> Annotated[Quantity, "g"]:
    """Emissions of the electricity that was used, as carbon dioxide equivalent.

    Equation: m = E · i

    E is the energy of the facility. Says nothing of what making the devices emitted, nor of
    certificates that an operator buys.

    Source: patterson2021carbon

    >>> print(carbon("1287 MWh", "0.429 kg/kWh").to("kg"))
    552123 kg

    Parameters
    ----------
    energy
        energy that was used, of the facility
    intensity
        emissions for each unit of electricity
    """
    return energy * intensity
