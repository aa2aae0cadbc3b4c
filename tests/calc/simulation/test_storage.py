"""The bytes of stored matrices, against those that scipy and numpy really take."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from scipy import sparse

from calc import InputError, sparsity as laws
from calc.simulation import storage_bytes

SIZES = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}


def pruned(shape: tuple[int, int], sparsity: float) -> Any:
    """A matrix with so many zeros, at random."""
    random = numpy.random.default_rng(0)
    matrix = random.uniform(1, 2, shape).astype(numpy.float32)
    zeros = random.permutation(matrix.size)[: int(matrix.size * sparsity)]
    matrix.ravel()[zeros] = 0
    return matrix


@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (64, 100), (300, 5)])
@pytest.mark.parametrize("sparsity", [0.0, 0.31, 0.5, 0.9, 1.0])
def test_as_many_bytes_as_scipy_and_numpy_take(shape: tuple[int, int], sparsity: float) -> None:
    matrix = pruned(shape, sparsity)
    assert storage_bytes(shape, sparsity).m_as("byte") == matrix.nbytes
    rows = sparse.csr_array(matrix)
    real = rows.data.nbytes + rows.indices.astype(numpy.uint16).nbytes + rows.indptr.nbytes
    assert storage_bytes(shape, sparsity, format="csr").m_as("byte") == real
    mask = numpy.packbits(matrix != 0)
    real = mask.nbytes + matrix[matrix != 0].nbytes
    assert storage_bytes(shape, sparsity, format="bitmask").m_as("byte") == real


def test_the_law_with_32_bit_indices_is_what_scipy_takes() -> None:
    rows = sparse.csr_array(pruned((40, 50), 0.8))
    real = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    assert laws.csr_storage(rows.nnz, 40, "4 byte", "32 bit").m_as("byte") == real


@pytest.mark.parametrize("precision", SIZES)
@pytest.mark.parametrize("form", ["csr", "bitmask"])
def test_sparse_storage_pays_beyond_the_crossover_only(precision: str, form: str) -> None:
    size = f"{SIZES[precision]} byte"
    crossover = {"csr": laws.csr_crossover, "bitmask": laws.bitmask_crossover}[form](size)
    sparsity = numpy.linspace(0, 1, 2001)
    saved = storage_bytes((4000, 60_000), sparsity, precision, form).m_as("byte")
    pays = saved < 4000 * 60_000 * SIZES[precision]
    away = abs(sparsity - crossover.magnitude) > 1e-3
    assert (pays == (sparsity > crossover.magnitude))[away].all()


def test_crossovers_known_beforehand() -> None:
    sizes = numpy.array([4.0, 2.0, 1.0])
    from calc import quantity

    csr = laws.csr_crossover(quantity(sizes, "byte")).m_as("%")
    assert csr == pytest.approx([100 / 3, 50, 200 / 3])
    assert laws.bitmask_crossover(quantity(sizes, "byte")).m_as("%") == pytest.approx(
        [3.125, 6.25, 12.5]
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (((10, 10), 1.1), "sparsity must be between 0 and 1; got 1.1"),
        (((10, 10), -0.1), "sparsity must be between 0 and 1; got -0.1"),
        (((10, 10), float("nan")), "sparsity must be between 0 and 1; got nan"),
        (((10, 10), numpy.array([0.5, numpy.nan])), "sparsity must be between 0 and 1"),
        (((10,), 0.1), "shape must be rows and columns"),
        ((10, 0.1), "shape must be a list; got 10"),
        (((10, 2.5), 0.1), "each side of a shape must be a whole number from 1; got 2.5"),
        (((0, 4), 0.1), "each side of a shape must be a whole number from 1; got 0"),
        (((4, 4), 0.1, "float64"), "there is no precision 'float64'"),
        (((4, 4), 0.1, "int8", "coo"), "a storage format must be one of dense, csr, bitmask"),
        (((4, 70_000), 0.1, "int8", "csr"), "a 16-bit index tells 65536 columns apart"),
    ],
)
def test_refusals(arguments: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        storage_bytes(*arguments)
