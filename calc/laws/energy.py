"""Energy: of arithmetic, of moving data, and of a device at work."""

from __future__ import annotations

from typing import Annotated

from calc.core.law import NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike


@law
def arithmetic_energy(
    operations: Annotated[QuantityLike, "FLOP", "O", NON_NEGATIVE],
    energy_per_operation: Annotated[QuantityLike, "J/FLOP", "e_op"],
) -> Annotated[Quantity, "J"]:
    """Energy of operations in the arithmetic units alone; fetching operands comes on top.

    Equation: E = O · e_op

    Source: horowitz2014computing

    >>> print(arithmetic_energy("14 GFLOP", "1.1 pJ/FLOP"))
    15.4 mJ
    """
    return operations * energy_per_operation


@law
def movement_energy(
    traffic: Annotated[QuantityLike, "byte", "D_vol", NON_NEGATIVE],
    energy_per_byte: Annotated[QuantityLike, "J/byte", "e_byte"],
) -> Annotated[Quantity, "J"]:
    """Energy of moving so many bytes between two levels of memory.

    Equation: E = D_vol · e_byte

    Source: horowitz2014computing

    >>> print(movement_energy("14 GB", "3.97 pJ/bit"))
    444.6 mJ
    """
    return traffic * energy_per_byte


@law
def energy_of_run(
    power: Annotated[QuantityLike, "W", "P"], time: Annotated[QuantityLike, "s", "T", NON_NEGATIVE]
) -> Annotated[Quantity, "J"]:
    """Energy of a device that draws this power for that long.

    Equation: E = P · T

    Assumes constant power; a thermal design power makes this an upper estimate.

    Source: hennessy2025architecture

    See also: cost.facility_energy

    >>> print(energy_of_run("700 W", "1 h").to("kWh"))
    0.7 kWh
    """
    return power * time


@law
def energy_efficiency(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"], power: Annotated[QuantityLike, "W", "P"]
) -> Annotated[Quantity, "FLOP/s/W"]:
    """Operations per joule at peak: rate over power.

    Equation: η_E = R_peak / P

    Source: hennessy2025architecture

    >>> print(energy_efficiency("989 TFLOP/s", "700 W").to("TFLOP/s/W"))
    1.413 TFLOP/(s·W)
    """
    return peak / power
