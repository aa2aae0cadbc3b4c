"""Arrays that begin where a cache line does.

The C library, which NumPy asks for memory, puts a large array a quarter of a line behind that more
often than not, so that a load as wide as a line straddles two. PyTorch's arrays begin at a line.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy
from numpy.typing import DTypeLike, NDArray

Array: TypeAlias = NDArray[Any]  # of whichever format a kernel runs in
LINE = 64  # bytes


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = numpy.float64) -> Array:
    """Like `numpy.empty`, from the beginning of a cache line on."""
    lengths = shape if isinstance(shape, tuple) else (shape,)
    size = math.prod(lengths) * numpy.dtype(dtype).itemsize
    room = numpy.empty(size + LINE, numpy.uint8)
    first = -room.ctypes.data % LINE
    return room[first : first + size].view(dtype).reshape(lengths)


def filled(value: float, shape: int | tuple[int, ...], dtype: DTypeLike = numpy.float64) -> Array:
    """Like `numpy.full`, from the beginning of a cache line on; its pages are there."""
    array = empty(shape, dtype)
    array.fill(value)
    return array
