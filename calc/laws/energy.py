"""Energy: of arithmetic, of moving data, and of a device at work."""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import expm1, minimum
from calc.core.law import FRACTION, NON_NEGATIVE, POSITIVE_FRACTION, law
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

    Parameters
    ----------
    operations
        operations to do
    energy_per_operation
        energy of an operation in the format in use
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

    Parameters
    ----------
    traffic
        bytes to move between memory and the chip
    energy_per_byte
        energy of moving a byte between these two levels
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

    Parameters
    ----------
    power
        power that the device draws
    time
        how long it draws it
    """
    return power * time


@law
def power_at_work(
    design_power: Annotated[QuantityLike, "W", "P_TDP"],
    memory_use: Annotated[QuantityLike, "", "u_mem", NON_NEGATIVE],
    compute_use: Annotated[QuantityLike, "", "u_op", NON_NEGATIVE],
    without_use: Annotated[QuantityLike, "", "s_0", FRACTION],
    by_memory: Annotated[QuantityLike, "", "k_mem", NON_NEGATIVE],
    by_compute: Annotated[QuantityLike, "", "k_op", NON_NEGATIVE],
) -> Annotated[Quantity, "W"]:
    """Power of a device whose kernels follow one another, by how much of its roofs they use.

    Equation: P = P_TDP · (1 − (1 − s_0) · exp(−k_mem · u_mem − k_op · u_op))

    Kernels that wait for memory or for one another draw a share of the design power already; what
    they use of bandwidth and arithmetic adds to it, the less the nearer the limit is, which no use
    exceeds. A device that has nothing to do draws far less.

    Source: mlenergy-leaderboard-v3

    >>> print(power_at_work("700 W", 0.6, 0.05, 0.59, 0.36, 5.6))
    525.2 W

    Parameters
    ----------
    design_power
        thermal design power, or a lower limit that is set
    memory_use
        bytes moved over those at the full bandwidth in the same time
    compute_use
        operations done over those at the peak in the same time
    without_use
        share of the design power that kernels draw whatever they use
    by_memory
        how fast power nears the limit as bandwidth is used
    by_compute
        how fast power nears the limit as arithmetic is used
    """
    left = (1 - without_use) * (1 + expm1(-by_memory * memory_use - by_compute * compute_use))
    return design_power * (1 - left)


@law
def clock_at_cap(
    power: Annotated[QuantityLike, "W", "P_f"], cap: Annotated[QuantityLike, "W", "P_cap"]
) -> Annotated[Quantity, ""]:
    """Share of its clock that a device keeps under a limit of its power.

    Equation: f = min(1, (P_cap / P_f)^(1/3))

    Both are without the part that no lower clock saves; the rest goes with the cube of the clock,
    since voltage falls with it.

    Source: qwen38-mtp

    >>> print(clock_at_cap("427.5 W", "227.5 W"))
    0.8104

    Parameters
    ----------
    power
        power that the device draws
    cap
        limit that is set on the power, less what no lower clock saves
    """
    return minimum(1.0, (cap / power) ** (1 / 3))


@law
def slowdown_at_clock(
    memory_use: Annotated[QuantityLike, "", "u_mem", FRACTION],
    clock: Annotated[QuantityLike, "", "f", POSITIVE_FRACTION],
) -> Annotated[Quantity, ""]:
    """Factor by which work takes longer at a share of the clock, by its use of the memory.

    Equation: s = 1 + (1 − u_mem) · (1 / f − 1)

    What the memory takes, whose clock does not fall, takes as long as before.

    Source: qwen38-mtp

    >>> print(slowdown_at_clock(0.5, 0.8))
    1.125

    Parameters
    ----------
    memory_use
        bytes moved over those at the full bandwidth in the same time
    clock
        share of its clock that it keeps
    """
    return 1 + (1 - memory_use) * (1 / clock - 1)


@law
def energy_efficiency(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"], power: Annotated[QuantityLike, "W", "P"]
) -> Annotated[Quantity, "FLOP/s/W"]:
    """Operations per joule at peak: rate over power.

    Equation: η_E = R_peak / P

    Source: hennessy2025architecture

    >>> print(energy_efficiency("989 TFLOP/s", "700 W").to("TFLOP/s/W"))
    1.413 TFLOP/(s·W)

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    power
        power that the device draws
    """
    return peak / power
