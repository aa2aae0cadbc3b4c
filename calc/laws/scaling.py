"""Parallel speedup: what a serial part leaves of it.

Laws: amdahl, its slope and its limit (a fixed problem), gustafson (a problem that grows with the
machine), the conversion between their two serial fractions, which are not the same number, and
serial_fraction and scaled_serial_fraction, which find each from a measured speedup. time_saved is
Amdahl's law for a part that becomes faster, part_speedup its inverse, and combined_speedup for
several parts. universal_scalability adds what processors that must agree say to each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from calc.core.arguments import as_list
from calc.core.elementwise import divide_or_infinity, largest, maximum
from calc.core.errors import InputError, abbreviated
from calc.core.law import (
    ABOVE_ONE,
    AT_LEAST_ONE,
    FRACTION,
    MAY_BE_INFINITE,
    NON_NEGATIVE,
    POSITIVE_FRACTION,
    law,
)
from calc.core.units import Quantity, QuantityLike, quantity


@law
def amdahl(
    serial_fraction: Annotated[QuantityLike, "", "s", FRACTION],
    processors: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Speedup of a fixed problem on n processors.

    Equation: S(n) = 1 / (s + (1 − s) / n)

    Assumes that s is measured on the serial run, that the rest divides evenly, and that talking
    costs nothing.

    Source: amdahl1967validity

    See also: scaling.gustafson, scaling.universal_scalability

    >>> print(amdahl(0.05, 8))
    5.926

    Parameters
    ----------
    serial_fraction
        share of the time in which one processor alone works
    processors
        processors that share the work
    """
    return 1 / (serial_fraction + (1 - serial_fraction) / processors)


@law
def amdahl_limit(
    serial_fraction: Annotated[QuantityLike, "", "s", FRACTION],
) -> Annotated[Quantity, "", MAY_BE_INFINITE]:
    """Speedup that no number of processors exceeds; infinite where nothing is serial.

    Equation: S(∞) = 1 / s

    Source: amdahl1967validity

    >>> print(amdahl_limit(0.05))
    20

    Parameters
    ----------
    serial_fraction
        share of the time in which one processor alone works
    """
    return divide_or_infinity(1, serial_fraction)


@law
def amdahl_slope(
    serial_fraction: Annotated[QuantityLike, "", "s", FRACTION],
    processors: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Speedup that one more processor adds to n, on a fixed problem: the slope of Amdahl's law.

    Equation: S'(n) = (1 − s) / (1 + s · (n − 1))²

    Source: amdahl1967validity

    >>> print(amdahl_slope(0.05, 8))
    0.5213

    Parameters
    ----------
    serial_fraction
        share of the time in which one processor alone works
    processors
        processors that share the work
    """
    return (1 - serial_fraction) / (1 + serial_fraction * (processors - 1)) ** 2


@law
def gustafson(
    serial_fraction: Annotated[QuantityLike, "", "s", FRACTION],
    processors: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Scaled speedup on n processors: how much longer one would take for the larger problem.

    Equation: S(n) = n − s · (n − 1)

    Assumes that s is measured on the parallel run, and that only the parallel part grows with n.

    Source: gustafson1988reevaluating

    See also: scaling.amdahl, scaling.serial_fraction_of_serial_run

    >>> print(gustafson(0.05, 1000))
    950.0

    Parameters
    ----------
    serial_fraction
        share of the time in which one processor alone works
    processors
        processors that share the work
    """
    return processors - serial_fraction * (processors - 1)


@law
def serial_fraction_of_serial_run(
    parallel_run_fraction: Annotated[QuantityLike, "", "s_G", FRACTION],
    processors: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Amdahl's serial fraction of the run whose Gustafson fraction is given.

    Equation: s_A = s_G / (s_G + (1 − s_G) · n)

    Source: gustafson1988reevaluating

    See also: scaling.serial_fraction_of_parallel_run

    >>> print(serial_fraction_of_serial_run(0.05, 8))
    0.006536

    Parameters
    ----------
    parallel_run_fraction
        share of the run on n processors that is serial (Gustafson's)
    processors
        processors that share the work
    """
    parallel_work = (1 - parallel_run_fraction) * processors
    return parallel_run_fraction / (parallel_run_fraction + parallel_work)


@law
def serial_fraction_of_parallel_run(
    serial_run_fraction: Annotated[QuantityLike, "", "s_A", FRACTION],
    processors: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Gustafson's serial fraction of the run whose Amdahl fraction is given.

    Equation: s_G = s_A / (s_A + (1 − s_A) / n)

    Source: gustafson1988reevaluating

    See also: scaling.serial_fraction_of_serial_run

    >>> print(serial_fraction_of_parallel_run(0.05, 8))
    0.2963

    Parameters
    ----------
    serial_run_fraction
        share of the run on one processor that is serial (Amdahl's)
    processors
        processors that share the work
    """
    parallel_time = (1 - serial_run_fraction) / processors
    return serial_run_fraction / (serial_run_fraction + parallel_time)


@law
def serial_fraction(
    speedup: Annotated[QuantityLike, "", "S"],
    processors: Annotated[QuantityLike, "", "n", ABOVE_ONE],
) -> Annotated[Quantity, ""]:
    """Serial fraction of the serial run that would explain a measured speedup (Karp and Flatt).

    Equation: s = (n / S − 1) / (n − 1)

    Assumes nothing but Amdahl's law; where the result grows with n, communication or imbalance is
    the cause, not serial work. It is negative where n processors are more than n times as fast.

    Source: karp1990measuring

    See also: scaling.scaled_serial_fraction

    >>> print(serial_fraction(5.926, 8).to("%"))
    5.000%

    Parameters
    ----------
    speedup
        how many times as fast the whole becomes
    processors
        processors that share the work
    """
    return (processors / speedup - 1) / (processors - 1)


@law
def scaled_serial_fraction(
    speedup: Annotated[QuantityLike, "", "S"],
    processors: Annotated[QuantityLike, "", "n", ABOVE_ONE],
) -> Annotated[Quantity, ""]:
    """Serial fraction of the parallel run that would explain a scaled speedup: Gustafson, inverted.

    Equation: s = (n − S) / (n − 1)

    Negative where the speedup is above n.

    Source: gustafson1988reevaluating

    See also: scaling.serial_fraction

    >>> print(scaled_serial_fraction(950, 1000).to("%"))
    5.005%

    Parameters
    ----------
    speedup
        how many times as fast the whole becomes
    processors
        processors that share the work
    """
    return (processors - speedup) / (processors - 1)


@law
def universal_scalability(
    processors: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    contention: Annotated[QuantityLike, "", "σ", FRACTION],
    coherency: Annotated[QuantityLike, "", "κ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Speedup on n processors that queue for what they share and keep it consistent (Gunther).

    Equation: S = n / (1 + σ · (n − 1) + κ · n · (n − 1))

    σ is Amdahl's serial fraction; κ is the work of each pair of processors to agree, for which the
    speedup falls again beyond most_useful_processors.

    Source: gunther2007guerrilla

    >>> print(universal_scalability(96, 0.0277, 0.000104))
    20.96

    Parameters
    ----------
    processors
        processors that share the work
    contention
        share of the time in which the others wait: the serial fraction
    coherency
        time that each pair of processors takes to agree, for each unit of work
    """
    others = processors - 1
    return processors / (1 + contention * others + coherency * processors * others)


@law
def most_useful_processors(
    contention: Annotated[QuantityLike, "", "σ", FRACTION],
    coherency: Annotated[QuantityLike, "", "κ", NON_NEGATIVE],
) -> Annotated[Quantity, "", MAY_BE_INFINITE]:
    """Processors beyond which more make the whole slower, by universal scalability.

    Equation: n* = √((1 − σ) / κ)

    Infinite where nothing must agree; below 1, any second processor is one too many.

    Source: gunther2007guerrilla

    >>> print(most_useful_processors(0.0277, 0.000104))
    96.69

    Parameters
    ----------
    contention
        share of the time in which the others wait: the serial fraction
    coherency
        time that each pair of processors takes to agree, for each unit of work
    """
    return divide_or_infinity(1 - contention, coherency) ** 0.5


@law
def part_speedup(
    fraction: Annotated[QuantityLike, "", "f", POSITIVE_FRACTION],
    speedup: Annotated[QuantityLike, "", "S"],
) -> Annotated[Quantity, "", MAY_BE_INFINITE]:
    """Speedup that a fraction of the time needs, for the whole to gain this much.

    Equation: s = f / max(0, 1 / S − (1 − f))

    Infinite where the denominator is zero: no speedup of the part is enough.

    Source: amdahl1967validity

    See also: scaling.time_saved

    >>> print(part_speedup(0.6, 5 / 3))
    3

    Parameters
    ----------
    fraction
        share of the whole time that the part takes before
    speedup
        how many times as fast the whole becomes
    """
    margin = 1 / speedup - (1 - fraction)
    return divide_or_infinity(fraction, maximum(margin, 0 * margin))


@law
def time_saved(
    fraction: Annotated[QuantityLike, "", "f", FRACTION], speedup: Annotated[QuantityLike, "", "s"]
) -> Annotated[Quantity, ""]:
    """Share of the whole time that is saved where a fraction of it becomes so many times as fast.

    Equation: r = f · (1 − 1 / s)

    Negative where the part becomes slower.

    Source: amdahl1967validity

    See also: scaling.part_speedup

    >>> print(time_saved(0.6, 3))
    0.4

    Parameters
    ----------
    fraction
        share of the whole time that the part takes before
    speedup
        how many times as fast the part becomes
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

    Parameters
    ----------
    levers
        pairs of a fraction of the time and its speedup
    """
    pairs = [as_list("combined_speedup(): a lever", lever) for lever in as_list("levers", levers)]
    if wrong := [pair for pair in pairs if len(pair) != 2]:
        raise InputError(
            "combined_speedup(): a lever is a pair, its fraction of the time and its speedup;"
            f" got {abbreviated(wrong[0])}"
        )
    checked = [(quantity(fraction, ""), speedup) for fraction, speedup in pairs]
    covered = sum((fraction for fraction, _ in checked), quantity(0, ""))
    if largest(covered) > 1 + 1e-12:
        raise InputError(
            f"combined_speedup(): the fractions are parts of one time and sum to 1 at most; these"
            f" sum to {covered}"
        )
    saved = sum((time_saved(*lever) for lever in checked), quantity(0, ""))
    return 1 / (1 - saved)
