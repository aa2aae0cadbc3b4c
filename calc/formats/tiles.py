"""Matrices in tiles with a scale each: how FP8 is trained in, and how its scales are chosen."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from calc.core.arguments import number, truth
from calc.core.arrays import Floats, Single, numpy
from calc.core.errors import InputError, abbreviated
from calc.formats.blocks import Encoded
from calc.formats.coding import check_width, numbers
from calc.formats.floating import Float, check_float


@dataclass(frozen=True)
class Tiles:
    """A matrix of few bits, cut into tiles of so many rows and columns with an FP32 scale each.

    Where neither is given, the whole matrix is one tile. A scale brings the largest value of its
    tile to the largest element. With `power_of_two` it is a power of two, the smallest with which
    nothing saturates, as a byte of exponent alone can hold it (UE8M0).

    >>> from calc.formats import FP8_E4M3
    >>> Tiles(FP8_E4M3, rows=1, columns=2).encode([[1.0, 2.0, 30.0, 448.0]]).scales.tolist()
    [[0.004464285913854837, 1.0]]
    """

    element: Float
    rows: int | None = None
    columns: int | None = None
    power_of_two: bool = False

    def __post_init__(self) -> None:
        check_float("Tiles(): element", self.element)
        for name, side in (("rows", self.rows), ("columns", self.columns)):
            if side is not None:
                check_width(f"Tiles(): {name}", side, 1, 2**20)
        truth("Tiles(): power_of_two", self.power_of_two)

    def encode(
        self,
        values: object,
        largest: float | None = None,
        random: numpy.random.Generator | None = None,
    ) -> Encoded:
        """A scale for each tile, an element for each value; in FP32, as NVIDIA's kernels compute.

        `largest` stands in for the largest value of every tile: what exceeds it saturates. So
        does delayed scaling, which takes it from the steps before.
        """
        array = numbers(values)
        if array.ndim != 2 or not array.size:
            raise InputError(
                f"tiles are cut from a matrix; got an array of shape {tuple(array.shape)}"
            )
        if not numpy.isfinite(array).all():
            raise InputError(f"the values of a tile must be finite; got {abbreviated(values)}")
        if largest is not None:
            largest = number("largest", largest, above=0.0)
        single, most = numpy.float32, numpy.float32(self.element.max)
        array = array.astype(single)
        peaks = self._peaks(array) if largest is None else self._all(array, largest)
        with numpy.errstate(over="ignore", divide="ignore"):
            up = numpy.minimum(most / peaks, numpy.finfo(single).max)
        if self.power_of_two:
            up = numpy.ldexp(single(1), numpy.frexp(up)[1] - 1)
        up = numpy.where(peaks == 0, single(1), up)
        with numpy.errstate(over="ignore"):
            scaled = numpy.clip(array * self._spread(up, array.shape), -most, most)
        return Encoded(single(1) / up, self.element.encode(scaled, random))

    def decode(self, scales: object, elements: object) -> Floats:
        """The values that scales and elements stand for, in FP32."""
        value = numbers(self.element.decode(elements))
        scale = numbers(scales)
        if value.ndim != 2 or scale.shape != self._grid(value.shape):
            raise InputError(
                f"each tile has one scale; got scales of shape {tuple(scale.shape)} for elements"
                f" of shape {tuple(value.shape)}"
            )
        spread = self._spread(scale.astype(numpy.float32), value.shape)
        return (value.astype(numpy.float32) * spread).astype(float)

    def round(
        self,
        values: object,
        largest: float | None = None,
        random: numpy.random.Generator | None = None,
    ) -> Floats:
        """The values that are left of these after encoding and decoding.

        >>> from calc.formats import FP8_E4M3
        >>> Tiles(FP8_E4M3).round([[0.0001, 0.3, 100.0]]).round(6).tolist()
        [[0.0, 0.30692, 100.0]]
        """
        return self.decode(*self.encode(values, largest, random))

    def _tile(self, shape: tuple[int, ...]) -> tuple[int, int]:
        return self.rows or shape[0], self.columns or shape[1]

    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of tiles along each axis; the last of a row or column may be short."""
        return tuple(
            -(-length // tile) for length, tile in zip(shape, self._tile(shape), strict=True)
        )

    def _peaks(self, array: Single) -> Single:
        """The largest value of each tile."""
        rows, columns = self._tile(array.shape)
        by_rows = numpy.maximum.reduceat(numpy.abs(array), range(0, array.shape[0], rows), axis=0)
        return numpy.maximum.reduceat(by_rows, range(0, array.shape[1], columns), axis=1)

    def _all(self, array: Single, largest: float) -> Single:
        return numpy.full(self._grid(array.shape), largest, numpy.float32)

    def _spread(self, scales: Single, shape: tuple[int, ...]) -> Single:
        """The scale of each value."""
        rows, columns = self._tile(shape)
        wide = numpy.repeat(numpy.repeat(scales, rows, axis=0), columns, axis=1)
        return wide[: shape[0], : shape[1]]


def delayed(
    tensors: Iterable[object],
    element: Float,
    history: int = 1024,
    random: numpy.random.Generator | None = None,
) -> Iterator[Floats]:
    """A tensor step after step, each rounded with the scale of the steps before it.

    Delayed scaling spares the pass over a tensor that finds its largest value: it takes the
    largest of so many steps before. What grows beyond that saturates. Before there is a step to
    go by, and while all were zero, the scale is one.

    >>> from calc.formats import FP8_E4M3
    >>> steps = [[[1.0]], [[1.0]], [[3.0]], [[3.0]]]
    >>> [tensor.item() for tensor in delayed(steps, FP8_E4M3)]
    [1.0, 1.0, 1.0, 3.0]
    """
    check_width("delayed(): history", history, 1, 2**20)
    whole = Tiles(element)
    peaks: deque[float] = deque(maxlen=history)
    for tensor in tensors:
        array = numbers(tensor)
        yield whole.round(array, largest=max(peaks, default=0.0) or element.max, random=random)
        peaks.append(float(numpy.max(numpy.abs(array))))
