"""The compiled methods against those of NumPy, in results and in refusals."""

from __future__ import annotations

from itertools import product

import numpy
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.testing import assert_allclose

from calc.codesign import ResolventError, resolvent_diagonal
from calc.codesign.resolvent import METHODS
from calc.codesign.resolvent_problem import DTYPES
from tests.calc.codesign.test_resolvent import dense, sample

pytest.importorskip("numba", reason="numba is not installed")

# How far two orders of the same operations may be apart.
WITHIN = {"complex128": 1e-11, "mixed": 2e-4, "complex64": 2e-4}


@pytest.mark.parametrize(("method", "dtype"), [*product(METHODS, DTYPES)])
@pytest.mark.parametrize("kind", ["symmetric", "positive", "signs", "complex"])
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (9, 2), (3, 20), (8, 33), (21, 40)])
def test_every_method_gives_the_dense_inverse(
    method: str, dtype: str, kind: str, batch: int, n: int
) -> None:
    """Batches of full groups of rows, of less than one, and of both."""
    a, b, c = sample(kind, n, seed=n, batch=(batch,))
    z = 0.3 + 1.5j + 0.1 * numpy.arange(batch)
    got = resolvent_diagonal(a, b, c, z, method, dtype, "numba")
    assert got.dtype == DTYPES[dtype][1]
    assert_allclose(got, dense(a, b, c, z), rtol=WITHIN[dtype])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.one_of(st.integers(1, 40), st.sampled_from([100, 1024, 4096])),
    batch=st.integers(0, 18),
    method=st.sampled_from(["ratio", "scaled"]),
    dtype=st.sampled_from(["complex64", "complex128"]),
    seed=st.integers(0, 2**32),
    im=st.sampled_from([-2.0, -0.1, 0.05, 1.0]),
)
def test_as_numpy(n: int, batch: int, method: str, dtype: str, seed: int, im: float) -> None:
    a, b, c = sample("positive", n, seed, (batch,))
    expected = resolvent_diagonal(a, b, c, im * 1j)
    got = resolvent_diagonal(a, b, c, im * 1j, method, dtype, "numba")
    assert_allclose(got, expected, rtol={"complex64": 1e-3, "complex128": 1e-9}[dtype])


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("scale", [1e-90, 1e-17, 1e17, 1e90])
def test_squares_that_leave_the_format(batch: int, scale: float) -> None:
    """|δ|² would overflow or vanish, where δ does not."""
    dtype = "complex128" if scale in (1e-90, 1e90) else "complex64"
    a, b, _ = sample("symmetric", 6, batch=(batch,))
    b = 1 + b**2
    expected = resolvent_diagonal(a, b, b, 1j) / scale
    got = resolvent_diagonal(a * scale, b * scale, b * scale, 1j * scale, "ratio", dtype, "numba")
    assert_allclose(got, expected, rtol=1e-5)


def test_what_numpy_refuses_is_refused() -> None:
    a, b, _ = sample("symmetric", 4096, batch=(2,))
    a, b = a - 2, numpy.ones((2, 4095))
    with pytest.raises(ResolventError, match=r"theta_phi overflows in complex64 from length 1\d\d"):
        resolvent_diagonal(a, b, b, 1j, "theta_phi", "complex64", "numba")
    with pytest.raises(ResolventError, match="underflows in complex64"):
        resolvent_diagonal(a / 10, b / 10, b / 10, 0.1j, "theta_phi", "complex64", "numba")
    for method in METHODS:
        with pytest.raises(ResolventError, match="an eigenvalue of H"):
            resolvent_diagonal([0.0] * 3, [1.0] * 2, [1.0] * 2, 0.0, method, backend="numba")
    with pytest.raises(ResolventError, match="half of the digits of complex128"):
        resolvent_diagonal([0.0, 3.0, 1.0], [1.0] * 2, [1.0] * 2, 0.0, backend="numba")
