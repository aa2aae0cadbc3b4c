"""Block formats, whose elements share a scale, and the powers of two that are such scales."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calc.core.arguments import number, one_of
from calc.core.arrays import Floats, numpy
from calc.core.errors import InputError, abbreviated
from calc.formats.coding import Coded, check_width, codes_out, like, numbers, read_codes
from calc.formats.floating import Float
from calc.formats.integer import Integer

SCALE_RULES = ("floor", "rceil")


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
        """Number that is subtracted from the code."""
        return int(2 ** (self.exponent_bits - 1) - 1)

    @property
    def max(self) -> float:
        """The largest scale."""
        return math.ldexp(1.0, self.bias)

    @property
    def min(self) -> float:
        """The smallest scale."""
        return math.ldexp(1.0, -self.bias)

    def round(self, values: object) -> Any:  # type: ignore[override]
        """The nearest powers of two: a scale is never drawn at random.

        >>> from calc.formats import E8M0
        >>> E8M0.round([0.7, 3.1])
        array([0.5, 4. ])
        """
        return self.decode(self.encode(values))

    def encode(self, values: object) -> Any:
        """The bits of the nearest power of two, the larger of two.

        A value below the smallest scale becomes the smallest; what rounds above the largest, and
        what is not positive, becomes NaN.
        """
        array = numbers(values)
        with numpy.errstate(invalid="ignore"):
            positive = numpy.isfinite(array) & (array > 0)
        size = numpy.where(positive, numpy.minimum(array, 2 * self.max), 1.0)
        exponent = numpy.frexp(size / 0.75)[1] - 1
        code = numpy.maximum(exponent, -self.bias) + self.bias
        last = 2**self.bits - 1
        code = numpy.where(positive, numpy.minimum(code, last), last)
        return codes_out(array, code, self.bits)

    def decode(self, codes: object) -> Any:
        """The scales that bits stand for.

        >>> from calc.formats import E8M0
        >>> E8M0.decode([126, 127, 128, 255])
        array([0.5, 1. , 2. , nan])
        """
        bit_codes = read_codes(self, codes)
        scale = numpy.ldexp(1.0, bit_codes.astype(numpy.int64) - self.bias)
        return like(bit_codes, numpy.where(bit_codes == 2**self.bits - 1, math.nan, scale))


class Encoded(NamedTuple):
    """The bits of blocks: a scale for each, an element for each value."""

    scales: Any
    elements: Any


class EncodedTensor(NamedTuple):
    """The bits of a tensor in blocks, and the FP32 number by which all of their scales count."""

    scales: Any
    elements: Any
    tensor_scale: float


class InBlocks(Coded):
    """Common part of block formats, in which so many elements along the last axis share a scale."""

    @property
    def bits(self: Any) -> float:
        """Bits of one value: those of its element and its share of the scale."""
        return float(self.element.bits + self.scale.bits / self.block_size)

    def round(
        self: Any, values: object, random: numpy.random.Generator | None = None, **how: object
    ) -> Any:
        """The values that are left of these after encoding and decoding; options of `encode`.

        >>> from calc.formats import MXFP4
        >>> MXFP4.round([0.1, 10, 25, -1]).tolist()
        [0.0, 8.0, 24.0, -0.0]
        """
        return self.decode(*self.encode(values, random=random, **how))

    def _named(self: Any) -> None:
        check_width(f"{type(self).__name__}(): block_size", self.block_size, 1, 2**20)
        if not self.name:
            object.__setattr__(self, "name", f"{self.element.name} in blocks of {self.block_size}")

    def _cut(self: Any, array: Any) -> Any:
        """Values in blocks, along a new last axis; the last block is filled up with zeros."""
        if not array.ndim:
            raise InputError(f"{self.name} encodes blocks, so it needs an array; got one number")
        count = array.shape[-1]
        blocks = self._blocks(count)
        padded = numpy.zeros((*array.shape[:-1], blocks * self.block_size), array.dtype)
        padded[..., :count] = array
        return padded.reshape(*array.shape[:-1], blocks, self.block_size)

    def _joined(self: Any, elements: Any, array: Any) -> Any:
        """Elements in blocks as they were given, in one row and without what filled it up."""
        row = elements.shape[-2] * self.block_size
        return elements.reshape(*array.shape[:-1], row)[..., : array.shape[-1]]

    def _scaled(self: Any, scales: object, elements: object) -> Floats:
        """Each element times the scale of its block."""
        value = numbers(self.element.decode(elements))
        scale = numbers(self.scale.decode(scales))
        if not value.ndim or scale.shape != (*value.shape[:-1], self._blocks(value.shape[-1])):
            raise InputError(
                f"{self.name} has one scale for each {self.block_size} elements along the last"
                f" axis; got scales of shape {scale.shape} for elements of shape {value.shape}"
            )
        spread = numpy.repeat(scale, self.block_size, axis=-1)[..., : value.shape[-1]]
        scaled: Floats = value * spread
        return scaled

    def _blocks(self: Any, count: int) -> int:
        return -(-count // int(self.block_size))


@dataclass(frozen=True)
class Block(InBlocks):
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
        self._named()

    def encode(
        self, values: object, rule: str = "floor", random: numpy.random.Generator | None = None
    ) -> Encoded:
        """Scales and elements; `rule` says which power of two a scale is.

        By "floor", the rule of the OCP specification, it brings the largest value of its block to
        the highest power of two that an element has; what is then beyond the largest element
        saturates. By "rceil", the rule of NVIDIA's kernels, it is the smallest with which nothing
        saturates. The two differ where the largest value, scaled by the first, is above the largest
        element.

        Elements round to the nearest, or with a generator stochastically. A block that is too
        large for any scale, or holds infinity or NaN, gets the scale NaN. A last block may be
        short.

        >>> from calc.formats import MXFP4
        >>> scales, elements = MXFP4.encode([0.1, 10, 25, -1])
        >>> MXFP4.scale.decode(scales).tolist(), MXFP4.element.decode(elements).tolist()
        ([4.0], [0.0, 2.0, 6.0, -0.0])
        >>> MXFP4.round([0.1, 10, 31, -1]).tolist()
        [0.0, 8.0, 24.0, -0.0]
        >>> MXFP4.round([0.1, 10, 31, -1], rule="rceil").tolist()
        [0.0, 8.0, 32.0, -0.0]
        """
        one_of(f"{self.name}: rule", rule, SCALE_RULES)
        array = numbers(values)
        padded = self._cut(array)
        largest = numpy.max(numpy.abs(padded), axis=-1)
        finite = numpy.isfinite(largest)
        above_zero = numpy.where(finite, numpy.maximum(largest, self.scale.min), 1.0)
        if rule == "floor":
            exponent = numpy.frexp(above_zero)[1] - 1 - self.element.max_exponent
        else:
            significand, exponent = numpy.frexp(above_zero / self.element.max)
            exponent = exponent - (significand == 0.5)
        wanted = numpy.maximum(numpy.ldexp(1.0, exponent), self.scale.min)
        scales = self.scale.encode(numpy.where(finite, wanted, math.nan))
        scale = self.scale.decode(scales)[..., None]
        scaled = numpy.where(numpy.isnan(scale), 0.0, padded / scale)
        limited = numpy.clip(scaled, -self.element.max, self.element.max)
        return Encoded(scales, self._joined(self.element.encode(limited, random), array))

    def decode(self, scales: object, elements: object) -> Floats:
        """The values that scales and elements stand for."""
        return self._scaled(scales, elements)


@dataclass(frozen=True)
class TwoLevelBlock(InBlocks):
    """A block format whose scales are numbers of few bits, times one FP32 number for the tensor.

    >>> from calc.formats import NVFP4
    >>> NVFP4.bits  # the FP32 number of a tensor is none of any value's
    4.5
    """

    element: Float
    scale: Float
    block_size: int
    name: str = field(default="", compare=False)
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        self._named()

    def encode(self, values: object, random: numpy.random.Generator | None = None) -> EncodedTensor:
        """Scales, elements and the scale of the tensor, as NVIDIA's Transformer Engine finds them.

        The scale of the tensor is such that the block with its largest value has the largest scale
        there is; the scale of another block is the nearest to what brings its own largest value to
        the largest element. Elements round to the nearest, or with a generator stochastically.
        All of it is computed in FP32, so that it is the same bit for bit. Values that are not
        finite are refused, since they would leave the tensor without a scale.

        >>> from calc.formats import NVFP4
        >>> scales, elements, tensor_scale = NVFP4.encode([0.1, 10, 25, -1])
        >>> NVFP4.scale.decode(scales).tolist(), NVFP4.element.decode(elements).tolist()
        ([448.0], [0.0, 2.0, 6.0, -0.0])
        """
        array = numbers(values)
        single = numpy.float32
        with numpy.errstate(over="ignore"):
            blocks = self._cut(array.astype(single))
        top = numpy.max(numpy.abs(blocks), initial=single(0))
        if not numpy.isfinite(top):
            raise InputError(
                f"{self.name} scales a whole tensor by its largest value, which must be finite in"
                f" FP32; got {abbreviated(values)}"
            )
        highest, limit = numpy.finfo(single).max, single(self.element.max)
        with numpy.errstate(over="ignore", divide="ignore"):
            up = numpy.minimum(single(self.scale.max) * limit / top, highest) if top else single(1)
            down = single(1) / up
            wanted = numpy.max(numpy.abs(blocks), axis=-1) * (up * (single(1) / limit))
            scales = self.scale.encode(numpy.minimum(wanted, single(self.scale.max)))
            scale = self.scale.decode(scales).astype(single)[..., None]
            stretch = numpy.minimum(single(1) / (scale * down), highest)
            limited = numpy.clip(blocks * stretch, -limit, limit)
        elements = self._joined(self.element.encode(limited, random), array)
        return EncodedTensor(scales, elements, float(down))

    def decode(self, scales: object, elements: object, tensor_scale: float) -> Floats:
        """The values that elements, scales and the scale of their tensor stand for, in FP32."""
        scaled = numbers(self._scaled(scales, elements))
        whole = numpy.float32(number(f"{self.name}: tensor_scale", tensor_scale))
        return (scaled.astype(numpy.float32) * whole).astype(float)
