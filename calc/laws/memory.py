"""Memories in levels: what waiting for one costs, on average too, and what a tile of it saves."""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import floor
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def clock_cycles(
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE],
    clock: Annotated[QuantityLike, "1/s", "f"],
) -> Annotated[Quantity, ""]:
    """Cycles that pass at this clock while a processor waits.

    Equation: n = L · f

    Source: hennessy2025architecture

    >>> print(clock_cycles("100 ns", "3e9 Hz"))
    300

    Parameters
    ----------
    latency
        time that is waited
    clock
        clock rate of the processor
    """
    return latency * clock


@law
def human_time(
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE],
    yardstick: Annotated[QuantityLike, "s", "L_yardstick"],
    one_step: Annotated[QuantityLike, "s", "T_step"] = "1 s",
) -> Annotated[Quantity, "s"]:
    """A latency as people feel it, if the yardstick (one register access, say) took one step.

    Equation: T = L / L_yardstick · T_step

    Source: gregg2020systems

    >>> print(human_time("100 us", yardstick="0.3 ns"))
    3.858 day

    Parameters
    ----------
    latency
        time that is waited
    yardstick
        latency that one step stands for
    one_step
        what the yardstick becomes
    """
    return latency / yardstick * one_step


@law
def average_access_time(
    hit_time: Annotated[QuantityLike, "s", "T_hit", NON_NEGATIVE],
    miss_rate: Annotated[QuantityLike, "", "r_miss", FRACTION],
    miss_penalty: Annotated[QuantityLike, "s", "T_penalty", NON_NEGATIVE],
) -> Annotated[Quantity, "s"]:
    """Mean time of an access to a cache: the look itself, and the penalty of those that miss.

    Equation: T = T_hit + r_miss · T_penalty

    Assumes accesses one after another. The penalty of a cache in front of another cache is the
    average access time of that one.

    Source: hennessy2025architecture

    >>> print(average_access_time("1 ns", 0.01, "100 ns"))
    2 ns

    Parameters
    ----------
    hit_time
        time of an access that the cache answers
    miss_rate
        share of the accesses that the cache does not answer
    miss_penalty
        time that an access to the next level adds
    """
    return hit_time + miss_rate * miss_penalty


@law
def working_set(
    side: Annotated[QuantityLike, "", "b", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    tiles: Annotated[QuantityLike, "", "3", AT_LEAST_ONE] = 3,
) -> Annotated[Quantity, "byte"]:
    """Bytes of the square tiles that a blocked matrix product works on: two inputs and the result.

    Equation: D = 3 · b² · size

    Source: hong1981complexity

    >>> print(working_set(128, "2 byte").to("KiB"))
    96 KiB

    Parameters
    ----------
    side
        rows and columns of a tile
    element_size
        what an element of the array takes
    tiles
        tiles that are held at a time
    """
    return tiles * side**2 * element_size


@law
def largest_tile(
    capacity: Annotated[QuantityLike, "byte", "M"],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    tiles: Annotated[QuantityLike, "", "3", AT_LEAST_ONE] = 3,
) -> Annotated[Quantity, ""]:
    """Side of the largest square tiles, three of them, that a memory holds at a time.

    Equation: b = ⌊√(M / (3 · size))⌋

    Source: hong1981complexity

    >>> print(largest_tile("228 KiB", "2 byte"))
    197

    Parameters
    ----------
    capacity
        memory that the tiles share
    element_size
        what an element of the array takes
    tiles
        tiles that are held at a time
    """
    return floor((capacity / (tiles * element_size)) ** 0.5)


@law
def tile_intensity(
    side: Annotated[QuantityLike, "", "b", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Operations that a blocked matrix product does with each byte that it loads into its tiles.

    Equation: I = 2 · b³ / (2 · b² · size) = b / size

    Counts the two input tiles of each step; the result stays where it is until it is complete.

    Source: hong1981complexity

    See also: memory.result_tile_intensity

    >>> print(tile_intensity(197, "2 byte"))
    98.5 FLOP/byte

    Parameters
    ----------
    side
        rows and columns of a tile
    element_size
        what an element of the array takes
    """
    return _per_term * side / (2 * element_size)


@law
def result_tile_intensity(
    rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE],
    columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Operations for each byte loaded for a tile of the result that waits in registers.

    Equation: I = 2 · a · b / ((a + b) · size)

    Each step loads a column of one input and a row of the other. The sums, wider numbers as a rule,
    move once, at the end, and are left out.

    Source: nvidia2023matmul

    See also: memory.tile_intensity

    >>> print(result_tile_intensity(128, 256, "2 byte"))
    85.33 FLOP/byte

    Parameters
    ----------
    rows
        rows of the tile
    columns
        columns of the tile
    element_size
        what an element of the array takes
    """
    return _per_term * rows * columns / ((rows + columns) * element_size)


@law
def tile_for_intensity(
    intensity: Annotated[QuantityLike, "FLOP/byte", "I"],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, ""]:
    """Side of the tiles from which a blocked matrix product has this intensity.

    Equation: b = 2 · size · I / 2 = I · size

    Two input tiles above, two operations a term below.

    Source: hong1981complexity

    >>> print(tile_for_intensity("295.2 FLOP/byte", "2 byte"))
    590.4

    Parameters
    ----------
    intensity
        operations done for each byte moved
    element_size
        what an element of the array takes
    """
    return 2 * element_size * intensity / _per_term
