"""Sparse storage: the bytes of a matrix whose zeros are left out, and where that begins to pay."""

from __future__ import annotations

from typing import Annotated

from calc.core.law import NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def dense_storage(
    elements: Annotated[QuantityLike, "", "N", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte", "m", ELEMENT_SIZE],
) -> Annotated[Quantity, "byte"]:
    """Memory of a matrix that is stored in full: a zero takes as much room as any other number.

    Equation: S = N · m

    Source: barrett1994templates

    >>> print(dense_storage(1000 * 1000, "4 byte"))
    4 MB

    Parameters
    ----------
    elements
        elements of the matrix, zeros included
    element_size
        what an element of the array takes
    """
    return elements * element_size


@law
def csr_storage(
    nonzeros: Annotated[QuantityLike, "", "z", NON_NEGATIVE],
    rows: Annotated[QuantityLike, "", "r", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte", "m", ELEMENT_SIZE],
    index_size: Annotated[QuantityLike, "byte", "m_i"] = "16 bit",
    pointer_size: Annotated[QuantityLike, "byte", "m_p"] = "32 bit",
) -> Annotated[Quantity, "byte"]:
    """Memory in compressed sparse rows: each nonzero with its column, and where each row begins.

    Equation: S = z · (m + m_i) + (r + 1) · m_p

    Source: barrett1994templates

    >>> print(csr_storage(100_000, 1000, "4 byte"))
    604.0 kB

    Parameters
    ----------
    nonzeros
        elements that are not zero
    rows
        rows of the matrix
    element_size
        what an element of the array takes
    index_size
        what the column of a nonzero takes
    pointer_size
        what the beginning of a row takes
    """
    return nonzeros * (element_size + index_size) + (rows + 1) * pointer_size


@law
def bitmask_storage(
    nonzeros: Annotated[QuantityLike, "", "z", NON_NEGATIVE],
    elements: Annotated[QuantityLike, "", "N", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte", "m", ELEMENT_SIZE],
    mask_size: Annotated[QuantityLike, "byte", "m_b"] = "1 bit",
) -> Annotated[Quantity, "byte"]:
    """Memory with a mask of one bit for each element, and the nonzeros one after the other.

    Equation: S = z · m + N · m_b

    Source: hoefler2021sparsity

    >>> print(bitmask_storage(100_000, 1000 * 1000, "4 byte"))
    525 kB

    Parameters
    ----------
    nonzeros
        elements that are not zero
    elements
        elements of the matrix, zeros included
    element_size
        what an element of the array takes
    mask_size
        what an element of a mask takes
    """
    return nonzeros * element_size + elements * mask_size


@law
def csr_crossover(
    element_size: Annotated[QuantityLike, "byte", "m", ELEMENT_SIZE],
    index_size: Annotated[QuantityLike, "byte", "m_i"] = "16 bit",
) -> Annotated[Quantity, ""]:
    """Share of zeros above which compressed sparse rows take less room than the full matrix.

    Equation: s = m_i / (m + m_i)

    Leaves out the pointers to the rows, which a matrix of long rows hardly notices.

    Source: hoefler2021sparsity

    See also: sparsity.bitmask_crossover

    >>> print(csr_crossover("4 byte").to("%"))
    33.33%

    Parameters
    ----------
    element_size
        what an element of the array takes
    index_size
        what the column of a nonzero takes
    """
    return index_size / (element_size + index_size)


@law
def bitmask_crossover(
    element_size: Annotated[QuantityLike, "byte", "m", ELEMENT_SIZE],
    mask_size: Annotated[QuantityLike, "byte", "m_b"] = "1 bit",
) -> Annotated[Quantity, ""]:
    """Share of zeros above which a bitmask and the nonzeros take less room than the full matrix.

    Equation: s = m_b / m

    Source: hoefler2021sparsity

    See also: sparsity.csr_crossover

    >>> print(bitmask_crossover("2 byte").to("%"))
    6.25%

    Parameters
    ----------
    element_size
        what an element of the array takes
    mask_size
        what an element of a mask takes
    """
    return mask_size / element_size
