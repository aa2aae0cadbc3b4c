"""Parallel speedup: what a serial part leaves of it.

Laws: amdahl and amdahl_limit (a fixed problem), gustafson (a problem that grows with the machine),
the conversion between their two serial fractions, which are not the same number, and
serial_fraction, which finds Amdahl's from a measured speedup.
"""

from __future__ import annotations

from typing import Annotated

from calc.elementwise import divide_or_infinity
from calc.law import ABOVE_ONE, AT_LEAST_ONE, FRACTION, MAY_BE_INFINITE, law
from calc.units import Quantity, QuantityLike


@law
def amdahl(
    serial_fraction: Annotated[QuantityLike, "", FRACTION],
    processors: Annotated[QuantityLike, "", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Speedup of a fixed problem on n processors.

    Equation: S(n) = 1 / (s + (1 − s) / n)

    Assumes that s is measured on the serial run, that the rest divides evenly, and that talking
    costs nothing.

    Source: amdahl1967validity

    >>> print(amdahl(0.05, 8))
    5.926
    """
    return 1 / (serial_fraction + (1 - serial_fraction) / processors)


@law
def amdahl_limit(
    serial_fraction: Annotated[QuantityLike, "", FRACTION],
) -> Annotated[Quantity, "", MAY_BE_INFINITE]:
    """Speedup that no number of processors exceeds; infinite where nothing is serial.

    Equation: S(∞) = 1 / s

    Source: amdahl1967validity

    >>> print(amdahl_limit(0.05))
    20
    """
    return divide_or_infinity(1, serial_fraction)


@law
def gustafson(
    serial_fraction: Annotated[QuantityLike, "", FRACTION],
    processors: Annotated[QuantityLike, "", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Scaled speedup on n processors: how much longer one would take for the larger problem.

    Equation: S(n) = n − s · (n − 1)

    Assumes that s is measured on the parallel run, and that only the parallel part grows with n.

    Source: gustafson1988reevaluating

    >>> print(gustafson(0.05, 1000))
    950.0
    """
    return processors - serial_fraction * (processors - 1)


@law
def serial_fraction_of_serial_run(
    parallel_run_fraction: Annotated[QuantityLike, "", FRACTION],
    processors: Annotated[QuantityLike, "", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Amdahl's serial fraction of the run whose Gustafson fraction is given.

    Equation: s_A = s_G / (s_G + (1 − s_G) · n)

    Source: gustafson1988reevaluating

    >>> print(serial_fraction_of_serial_run(0.05, 8))
    0.006536
    """
    parallel_work = (1 - parallel_run_fraction) * processors
    return parallel_run_fraction / (parallel_run_fraction + parallel_work)


@law
def serial_fraction_of_parallel_run(
    serial_run_fraction: Annotated[QuantityLike, "", FRACTION],
    processors: Annotated[QuantityLike, "", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Gustafson's serial fraction of the run whose Amdahl fraction is given.

    Equation: s_G = s_A / (s_A + (1 − s_A) / n)

    Source: gustafson1988reevaluating

    >>> print(serial_fraction_of_parallel_run(0.05, 8))
    0.2963
    """
    parallel_time = (1 - serial_run_fraction) / processors
    return serial_run_fraction / (serial_run_fraction + parallel_time)


@law
def serial_fraction(
    speedup: Annotated[QuantityLike, ""],
    processors: Annotated[QuantityLike, "", ABOVE_ONE],
) -> Annotated[Quantity, ""]:
    """Serial fraction of the serial run that would explain a measured speedup (Karp and Flatt).

    Equation: s = (n / S − 1) / (n − 1)

    Assumes nothing but Amdahl's law; where the result grows with n, communication or imbalance is
    the cause, not serial work. It is negative where n processors are more than n times as fast.

    Source: karp1990measuring

    >>> print(serial_fraction(5.926, 8).to("%"))
    5.000%
    """
    return (processors / speedup - 1) / (processors - 1)
