"""Whole numbers, and fixed-point ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from calc.core.arrays import numpy
from calc.core.errors import InputError
from calc.formats.coding import (
    Coded,
    check_width,
    codes_out,
    like,
    numbers,
    read_codes,
    whole_steps,
)


@dataclass(frozen=True)
class Integer(Coded):
    """Two's complement: whole numbers, or with `fraction_bits` so many bits of a fraction.

    >>> Integer(8).min, Integer(8).max, Integer(8, fraction_bits=6).max
    (-128.0, 127.0, 1.984375)
    """

    bits: int
    fraction_bits: int = 0
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        check_width("Integer(): bits", self.bits, 2, 53)
        check_width("Integer(): fraction_bits", self.fraction_bits, 0, self.bits)
        if not self.name:
            object.__setattr__(self, "name", f"INT{self.bits}")

    @property
    def step(self) -> float:
        """The gap between neighbouring numbers, the same everywhere."""
        return math.ldexp(1.0, -self.fraction_bits)

    @property
    def max(self) -> float:
        """The largest number."""
        return math.ldexp(2 ** (self.bits - 1) - 1, -self.fraction_bits)

    @property
    def min(self) -> float:
        """The most negative number, a step further from zero than the largest."""
        return math.ldexp(-(2 ** (self.bits - 1)), -self.fraction_bits)

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest power of two."""
        return self.bits - 2 - self.fraction_bits

    def encode(self, values: object, random: numpy.random.Generator | None = None) -> Any:
        """The bits of the nearest number, the even one of two; what is out of range saturates.

        With a generator, rounding is stochastic, as that of `Float`.

        >>> from calc.formats import INT8
        >>> INT8.encode(-1), INT8.encode([2.5, 3.5, 1000]).tolist()
        (255, [2, 4, 127])
        """
        array = numbers(values)
        if numpy.isnan(array).any():
            raise InputError(f"{self.name} has no NaN, and there is one among the values")
        clipped = numpy.clip(array, self.min, self.max)
        steps = whole_steps(numpy.ldexp(clipped, self.fraction_bits), random)
        code = (steps & (2**self.bits - 1)).astype(numpy.uint64)
        return codes_out(array, code, self.bits)

    def decode(self, codes: object) -> Any:
        """The values that bits stand for.

        >>> from calc.formats import INT4
        >>> INT4.decode([0, 7, 8, 15]).tolist()
        [0.0, 7.0, -8.0, -1.0]
        """
        bit_codes = read_codes(self, codes)
        steps = bit_codes.astype(numpy.int64)
        steps = numpy.where(steps >= 2 ** (self.bits - 1), steps - 2**self.bits, steps)
        return like(bit_codes, numpy.ldexp(steps.astype(float), -self.fraction_bits))
