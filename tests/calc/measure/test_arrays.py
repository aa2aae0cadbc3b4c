"""Arrays begin where a cache line does, whatever their shape and format."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from calc.measure import aligned_arrays


@pytest.mark.parametrize("shape", [1, 7, 2**18 + 1, (3, 5), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [numpy.float64, numpy.float32])
def test_arrays_begin_at_a_line(shape: Any, dtype: Any) -> None:
    ones = aligned_arrays.filled(1.0, shape, dtype)
    assert ones.ctypes.data % aligned_arrays.LINE == 0
    numpy.testing.assert_array_equal(ones, numpy.ones(shape, dtype), strict=True)
    assert ones.flags.c_contiguous
