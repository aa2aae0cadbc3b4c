"""Block formats, whose elements share a scale, and the powers of two that are such scales."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calc.core.errors import InputError
from calc.formats.coding import Coded, check_width, codes_out, like, numbers, read_codes
from calc.formats.floating import Float
from calc.formats.integer import Integer


@dataclass(frozen=True)
class PowerOfTwo(Coded):
    """A scale: an exponent alone, without sign, zero or infinity; its last code is NaN.

    >>> from calc.formats import E8M0
    >>> E8M0.max == 2.0**127, E8M0.min == 2.0**-127, E8M0.round(5)
    (True, True, 4.0)
    """

    exponent_bits: int
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        check_width("PowerOfTwo(): exponent_bits", self.exponent_bits, 2, 10)
        if not self.name:
            object.__setattr__(self, "name", f"E{self.exponent_bits}M0")

    @property
    def bits(self) -> int:
        """The exponent alone."""
        return self.exponent_bits

    @property
    def bias(self) -> int:
        """What is subtracted from the code."""
        return int(2 ** (self.exponent_bits - 1) - 1)

    @property
    def max(self) -> float:
        """The largest scale."""
        return math.ldexp(1.0, self.bias)

    @property
    def min(self) -> float:
        """The smallest scale."""
        return math.ldexp(1.0, -self.bias)

    def encode(self, values: Any) -> Any:
        """The bits of the nearest power of two, the larger of two.

        A value below the smallest scale becomes the smallest; what rounds above the largest, and
        what is not positive, becomes NaN.
        """
        numpy, given = numbers(values)
        with numpy.errstate(invalid="ignore"):
            positive = numpy.isfinite(given) & (given > 0)
        size = numpy.where(positive, numpy.minimum(given, 2 * self.max), 1.0)
        exponent = numpy.frexp(size / 0.75)[1] - 1
        code = numpy.maximum(exponent, -self.bias) + self.bias
        last = 2**self.bits - 1
        code = numpy.where(positive, numpy.minimum(code, last), last)
        return codes_out(numpy, given, code, self.bits)

    def decode(self, codes: Any) -> Any:
        """The scales that bits stand for.

        >>> from calc.formats import E8M0
        >>> E8M0.decode([126, 127, 128, 255])
        array([0.5, 1. , 2. , nan])
        """
        numpy, given = read_codes(self, codes)
        scale = numpy.ldexp(1.0, given.astype(numpy.int64) - self.bias)
        return like(given, numpy.where(given == 2**self.bits - 1, math.nan, scale))


class Encoded(NamedTuple):
    """The bits of blocks: a scale for each, an element for each value."""

    scales: Any
    elements: Any


@dataclass(frozen=True)
class Block(Coded):
    """A block format: so many elements along the last axis share one scale.

    >>> from calc.formats import MXFP4
    >>> MXFP4.bits
    4.25
    """

    element: Float | Integer
    scale: PowerOfTwo
    block_size: int
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        check_width("Block(): block_size", self.block_size, 1, 2**20)
        if not self.name:
            name = f"{self.element.name} in blocks of {self.block_size}"
            object.__setattr__(self, "name", name)

    @property
    def bits(self) -> float:
        """Bits of one value: those of its element and its share of the scale."""
        return self.element.bits + self.scale.bits / self.block_size

    def encode(self, values: Any) -> Encoded:
        """Scales and elements by the rule of the OCP specification.

        The scale brings the largest value of its block to the highest power of two that an element
        has; elements then round to the nearest, and those beyond the largest element saturate. A
        block that is too large for any scale, or holds infinity or NaN, gets the scale NaN. A last
        block may be short.

        >>> from calc.formats import MXFP4
        >>> scales, elements = MXFP4.encode([0.1, 10, 25, -1])
        >>> MXFP4.scale.decode(scales).tolist(), MXFP4.element.decode(elements).tolist()
        ([4.0], [0.0, 2.0, 6.0, -0.0])
        """
        numpy, given = numbers(values)
        if not given.ndim:
            raise InputError(f"{self.name} encodes blocks, so it needs an array; got one number")
        count = given.shape[-1]
        blocks = self._blocks(count)
        padded = numpy.zeros((*given.shape[:-1], blocks * self.block_size))
        padded[..., :count] = given
        padded = padded.reshape(*given.shape[:-1], blocks, self.block_size)
        largest = numpy.max(numpy.abs(padded), axis=-1)
        finite = numpy.isfinite(largest)
        above_zero = numpy.where(finite, numpy.maximum(largest, self.scale.min), 1.0)
        exponent = numpy.frexp(above_zero)[1] - 1 - self.element.max_exponent
        wanted = numpy.maximum(numpy.ldexp(1.0, exponent), self.scale.min)
        scales = self.scale.encode(numpy.where(finite, wanted, math.nan))
        scale = self.scale.decode(scales)[..., None]
        scaled = numpy.where(numpy.isnan(scale), 0.0, padded / scale)
        limited = numpy.clip(scaled, -self.element.max, self.element.max)
        elements = self.element.encode(limited)
        elements = elements.reshape(*given.shape[:-1], blocks * self.block_size)[..., :count]
        return Encoded(scales, elements)

    def decode(self, scales: Any, elements: Any) -> Any:
        """The values that scales and elements stand for."""
        numpy, value = numbers(self.element.decode(elements))
        _, scale = numbers(self.scale.decode(scales))
        if not value.ndim or scale.shape != (*value.shape[:-1], self._blocks(value.shape[-1])):
            raise InputError(
                f"{self.name} has one scale for each {self.block_size} elements along the last"
                f" axis; got scales of shape {scale.shape} for elements of shape {value.shape}"
            )
        return value * numpy.repeat(scale, self.block_size, axis=-1)[..., : value.shape[-1]]

    def round(self, values: Any) -> Any:
        """The values that are left of these after encoding and decoding.

        >>> from calc.formats import MXFP4
        >>> MXFP4.round([0.1, 10, 25, -1]).tolist()
        [0.0, 8.0, 24.0, -0.0]
        """
        return self.decode(*self.encode(values))

    def _blocks(self, count: int) -> int:
        return -(-count // self.block_size)
