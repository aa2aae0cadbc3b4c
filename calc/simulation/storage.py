"""The bytes of a matrix with zeros in it: stored in full, in sparse rows, behind a bitmask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from calc.core import elementwise
from calc.core.arguments import as_list, in_bytes, one_of, whole_number
from calc.core.arrays import Number
from calc.core.errors import InputError, abbreviated
from calc.core.law import FRACTION
from calc.core.units import Quantity, as_float_or_array, quantity
from calc.laws import sparsity
from calc.simulation.low_precision import arithmetic

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FORMATS = ("dense", "csr", "bitmask")
INDEX_SIZE = "16 bit"
LARGEST_INDEX = 2**16


def storage_bytes(
    shape: Sequence[int], sparsity: ArrayLike = 0.0, precision: str = "fp32", format: str = "dense"
) -> Quantity:
    """Memory of a matrix of this shape, of whose elements this share is zero.

    "dense" stores the zeros too, "csr" each nonzero with a 16-bit column index and 32-bit pointers
    to the rows, "bitmask" a bit for each element and then the nonzeros. An array of sparsities
    gives an array of memories. The zeros are a whole number, rounded down, as pruning makes them.

    >>> print(storage_bytes((1000, 1000), 0.3))
    4 MB
    >>> print(storage_bytes((1000, 1000), 0.3, format="csr"))
    4.204 MB
    >>> print(storage_bytes((1000, 1000), 0.3, format="bitmask"))
    2.925 MB
    """
    rows, columns = _checked_shape(shape)
    share = as_float_or_array(sparsity)
    if not FRACTION.holds(*_extremes(share)):
        raise InputError(
            f"storage_bytes(): sparsity must be {FRACTION.words}; got {abbreviated(sparsity)}"
        )
    zeros = elementwise.floor(rows * columns * share)
    return stored(rows * columns - zeros, (rows, columns), precision, format)


def stored(nonzeros: Number, shape: tuple[int, ...], precision: str, format: str) -> Quantity:
    """Memory of a matrix with so many nonzeros, in whole bytes."""
    one_of("a storage format", format, FORMATS)
    rows, columns = shape
    size = in_bytes(arithmetic(precision).element_bytes)
    if format == "dense":
        return sparsity.dense_storage(nonzeros * 0 + rows * columns, size)
    if format == "bitmask":
        whole = sparsity.bitmask_storage(nonzeros, rows * columns, size)
        return quantity(-elementwise.floor(-whole.magnitude), "byte")  # the last byte is a full one
    if columns > LARGEST_INDEX:
        raise InputError(
            f"a 16-bit index tells {LARGEST_INDEX} columns apart; the matrix has {columns}, so"
            f" store it as dense or bitmask, or transposed"
        )
    return sparsity.csr_storage(nonzeros, rows, size, INDEX_SIZE)


def _checked_shape(shape: Sequence[int]) -> tuple[int, int]:
    sides = as_list("storage_bytes(): shape", shape)
    if len(sides) != 2:
        raise InputError(
            f"storage_bytes(): shape must be rows and columns; got {abbreviated(shape)}"
        )
    rows, columns = (whole_number("storage_bytes(): each side of a shape", side) for side in sides)
    return rows, columns


def _extremes(share: Number) -> tuple[float, float]:
    if isinstance(share, float):
        return share, share
    return (float(share.min()), float(share.max())) if share.size else (0.0, math.ulp(0.0))
