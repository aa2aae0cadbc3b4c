"""Parallel speedup: what a serial part leaves of it.

Laws: amdahl and amdahl_limit (a fixed problem), gustafson (a problem that grows with the machine),
the conversion between their two serial fractions, which are not the same number, and
serial_fraction, which finds Amdahl's from a measured speedup. time_saved is Amdahl's law for a part
that becomes faster, and combined_speedup for several parts.
"""

# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from calc.core.elementwise import divide_or_infinity
from calc.core.errors import InputError
from calc.core.law import ABOVE_ONE, AT_LEAST_ONE, FRACTION, MAY_BE_INFINITE, law
from calc.core.units import Quantity, QuantityLike, quantity


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


@law
def time_saved(
    fraction: Annotated[QuantityLike, "", FRACTION],
    speedup: Annotated[QuantityLike, ""],
) -> Annotated[Quantity, ""]:
    """Share of the whole time that is saved where a fraction of it becomes so many times as fast.

    Equation: r = f · (1 − 1 / s)

    Negative where the part becomes slower.

    Source: amdahl1967validity

    >>> print(time_saved(0.6, 3))
    0.4
    """
    return fraction * (1 - 1 / speedup)


def combined_speedup(
    levers: Iterable[tuple[QuantityLike, QuantityLike]],
) -> Annotated[Quantity, ""]:
    """Speedup of the whole by levers that each make another fraction of its time faster.

    Equation: S = 1 / (1 − Σ f_i · (1 − 1 / s_i))

    Each lever is a pair: its fraction f_i of the time before, and its speedup s_i there. No two
    act on the same part: where two do, they are one lever whose speedup is their product. The
    product of all speedups is reached only where each acts on everything.

    Source: amdahl1967validity

    >>> print(combined_speedup([(0.6, 3), (0.2, 2), (0.1, 2), (0.05, 1.5)]))
    2.308
    """
    given = [(quantity(fraction, ""), speedup) for fraction, speedup in levers]
    covered = sum((fraction for fraction, _ in given), quantity(0, ""))
    if _largest(covered) > 1 + 1e-12:
        raise InputError(
            f"combined_speedup(): the fractions are parts of one time and sum to 1 at most; these"
            f" sum to {covered}"
        )
    saved = sum((time_saved(*lever) for lever in given), quantity(0, ""))
    return 1 / (1 - saved)


def _largest(fractions: Any) -> float:
    magnitude = fractions.m_as("")
    return float(magnitude.max() if getattr(magnitude, "size", 0) else magnitude)
