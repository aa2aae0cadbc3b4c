"""The diagonal of the resolvent against the dense inverse and a banded solve, over every method."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import solve_banded

from calc.codesign import ResolventError, resolvent_diagonal
from calc.codesign.resolvent import METHODS
from calc.codesign.resolvent_problem import DTYPES
from calc.core.errors import InputError
from tests.rows import for_each

# Where a reference has 1e-16 itself, and how much rounding the methods may add.
WITHIN = {"complex128": 1e-11, "mixed": 2e-4, "complex64": 2e-4}


def dense(a: Any, b: Any, c: Any, z: Any) -> Any:
    """The diagonal of the inverse, by LAPACK, one matrix at a time."""
    a, b, c, z = (numpy.asarray(each) for each in (a, b, c, z))
    if a.ndim > 1:
        z = numpy.broadcast_to(z, a.shape[:-1])
        rows = [dense(*each) for each in zip(a, b, c, z, strict=True)]
        return numpy.array(rows).reshape(a.shape)
    matrix = numpy.diag(a) + numpy.diag(b, 1) + numpy.diag(c, -1) - z * numpy.eye(len(a))
    return numpy.linalg.inv(matrix.astype(complex)).diagonal()


def banded(a: Any, b: Any, c: Any, z: complex, columns: Any) -> Any:
    """Chosen entries of the diagonal, each from a solve with pivoting."""
    n = len(a)
    bands = numpy.zeros((3, n), complex)
    bands[0, 1:], bands[1], bands[2, :-1] = b, a - z, c
    units = numpy.zeros((n, len(columns)))
    units[columns, range(len(columns))] = 1
    return solve_banded((1, 1), bands, units)[columns, range(len(columns))]


def sample(kind: str, n: int, seed: int = 0, batch: tuple[int, ...] = ()) -> tuple[Any, ...]:
    """Entries of the kind: symmetric, not symmetric with b c >= 0, of any sign, or complex."""
    random = numpy.random.default_rng(seed)

    def normal(length: int) -> Any:
        return random.standard_normal((*batch, length))

    a, b, c = normal(n), normal(n - 1), normal(n - 1)
    if kind == "symmetric":
        c = b
    elif kind == "positive":
        b, c = abs(b), abs(c)
    elif kind == "complex":
        a, b, c = a + 1j * normal(n), b + 1j * normal(n - 1), c + 1j * normal(n - 1)
    return a, b, c


@for_each(
    [*product(METHODS, DTYPES, ["symmetric", "positive", "signs", "complex"], [1, 2, 3, 20, 64])]
)
def test_every_method_gives_the_dense_inverse(method: str, dtype: str, kind: str, n: int) -> None:
    a, b, c = sample(kind, n, seed=n, batch=(7,))
    z = 0.3 + 1.5j
    got = resolvent_diagonal(a, b, c, z, method, dtype)
    assert got.dtype == DTYPES[dtype][1]
    assert got.shape == (7, n)
    assert_allclose(got, dense(a, b, c, z), rtol=WITHIN[dtype])


@pytest.mark.parametrize(("kind", "within"), [("symmetric", 1e-14), ("positive", 2e-14)])
def test_the_ratio_form_against_a_banded_solve(kind: str, within: float) -> None:
    n = 4096
    for seed, z in product(range(3), (1j, 0.3 + 0.5j)):
        a, b, c = sample(kind, n, seed)
        columns = [0, 1, 2, 1000, 2047, 2048, 3333, 4094, 4095]
        expected = banded(a, b, c, z, columns)
        got = resolvent_diagonal(a, b, c, z)[columns]
        assert_allclose(got, expected, rtol=within)
        assert_allclose(resolvent_diagonal(a, b, c, z, "scaled")[columns], expected, rtol=1e-12)
        single = resolvent_diagonal(a, b, c, z, dtype="complex64")[columns]
        assert_allclose(single, expected, rtol=1e-5)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.one_of(st.integers(1, 40), st.sampled_from([100, 257, 1024, 4096])),
    batch=st.sampled_from([(), (0,), (1,), (3,), (2, 2)]),
    kind=st.sampled_from(["symmetric", "positive"]),
    seed=st.integers(0, 2**32),
    re=st.floats(-3, 3),
    im=st.sampled_from([-2.0, -0.1, 0.05, 1.0]),
)
def test_any_size_batch_and_shift(
    n: int, batch: tuple[int, ...], kind: str, seed: int, re: float, im: float
) -> None:
    a, b, c = sample(kind, n, seed, batch)
    z = complex(re, im)
    ratio = resolvent_diagonal(a, b, c, z)
    assert ratio.shape == (*batch, n)
    # |G| <= 1 / |Im z|, in norm: b, c >= 0 are similar to the symmetric matrix of √(b c).
    assert (abs(ratio) <= (1 + 1e-12) / abs(im)).all()
    assert_allclose(resolvent_diagonal(a, b, c, z, "scaled"), ratio, rtol=1e-9)
    assert_allclose(resolvent_diagonal(a, b, c, z, dtype="complex64"), ratio, rtol=1e-3)
    if n <= 40:
        assert_allclose(ratio, dense(a, b, c, z), rtol=1e-10)


@given(n=st.integers(1, 40), seed=st.integers(0, 2**32), z=st.floats(-4, 4))
def test_a_real_shift(n: int, seed: int, z: float) -> None:
    """On the axis the inverse may be ill-conditioned, and the tolerance goes with it."""
    a, b, c = sample("symmetric", n, seed)
    matrix = numpy.diag(a) + numpy.diag(b, 1) + numpy.diag(c, -1) - z * numpy.eye(n)
    condition = float(numpy.linalg.cond(matrix))
    try:
        got = resolvent_diagonal(a, b, c, z, "scaled")
    except ResolventError:
        assert condition > 1e12
        return
    inverse = numpy.linalg.inv(matrix)
    within = 1e-14 * condition * abs(inverse).max()
    assert_allclose(got, inverse.diagonal(), rtol=0, atol=within)
    assert (got.imag == 0).all()


def test_arguments_broadcast() -> None:
    a, b, c = sample("symmetric", 5)
    z = numpy.array([[1j], [2j], [3j]]) + numpy.arange(2)
    got = resolvent_diagonal(a, b, c, z)
    assert got.shape == (3, 2, 5)
    for i, j in numpy.ndindex(3, 2):
        assert_allclose(got[i, j], dense(a, b, c, z[i, j]), rtol=1e-13)
    batched = numpy.stack([a, 2 * a])
    assert_allclose(
        resolvent_diagonal(batched, b, c, 1j), dense(batched, [b, b], [c, c], 1j), rtol=1e-13
    )
    assert resolvent_diagonal([3, 3], [1], [1], 1j).dtype == numpy.complex128  # whole numbers


def test_smallest_and_empty() -> None:
    assert_allclose(resolvent_diagonal([2.0], [], [], 1j), [1 / (2 - 1j)])
    none = resolvent_diagonal(numpy.zeros((0, 4)), numpy.zeros((0, 3)), numpy.zeros(3), 1j)
    assert none.shape == (0, 4)
    assert resolvent_diagonal([1.0, 2.0], [0.5], [0.5], numpy.zeros((2, 0))).shape == (2, 0, 2)


def test_a_vanishing_minor_is_no_pole() -> None:
    """θ_1 = 0, and the inverse [[0, 1], [1, 0]] is as good as any."""
    for method in ("scaled", "theta_phi"):
        assert_allclose(resolvent_diagonal([0.0, 0.0], [1.0], [1.0], 0.0, method), [0, 0])
        got = resolvent_diagonal([0.0, 3.0], [1.0], [1.0], 0.0, method)
        assert_allclose(got, [-3.0, 0.0])
    with pytest.raises(ResolventError, match="use method='scaled'"):
        resolvent_diagonal([0.0, 3.0, 1.0], [1.0, 1.0], [1.0, 1.0], 0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 3, 10, 50])
def test_on_the_spectrum(method: str, n: int) -> None:
    """The chain −2, 1: eigenvalues −2 + 2 cos(π k / (n + 1)); the numbers nearest to them."""
    a, b = numpy.full(n, -2.0), numpy.ones(n - 1)
    for k in range(1, n + 1):
        z = -2 + 2 * numpy.cos(numpy.pi * k / (n + 1))
        with pytest.raises(ResolventError, match="an eigenvalue of H"):
            resolvent_diagonal(a, b, b, z, method)
        away = resolvent_diagonal(a, b, b, z + 1e-3j, method)
        assert_allclose(away, dense(a, b, b, z + 1e-3j), rtol=1e-9)


def test_decoupled_blocks() -> None:
    a, b = numpy.array([1.0, 2.0, 3.0]), numpy.zeros(2)
    for method in METHODS:
        assert_allclose(resolvent_diagonal(a, b, b, 1j, method), 1 / (a - 1j))
        with pytest.raises(ResolventError, match="z = 2\\+0j is an eigenvalue of H"):
            resolvent_diagonal(a, b, b, 2.0, method)


def test_overflow_is_refused_with_its_onset_and_a_way_out() -> None:
    a, b, _ = sample("symmetric", 4096)
    a, b = a - 2, numpy.ones(4095)
    with pytest.raises(
        ResolventError,
        match=r"theta_phi overflows in complex64 from length 1\d\d, and a has 4096 .*'ratio' does",
    ):
        resolvent_diagonal(a, b, b, 1j, "theta_phi", "complex64")
    with pytest.raises(ResolventError, match=r"overflows in complex128 from length [89]\d\d,"):
        resolvent_diagonal(a, b, b, 1j, "theta_phi")
    with pytest.raises(ResolventError, match=r"overflows .*method='scaled' does not"):
        resolvent_diagonal(a + 0.1j, b, b, 1j, "theta_phi", "mixed")
    with pytest.raises(ResolventError, match=r"underflows in complex64 from length \d\d,"):
        resolvent_diagonal(a[:500] / 10, b[:499] / 10, b[:499] / 10, 0.1j, "theta_phi", "mixed")
    for method in ("ratio", "scaled"):
        assert numpy.isfinite(resolvent_diagonal(a, b, b, 1j, method, "complex64")).all()


def test_a_row_of_the_batch_is_named() -> None:
    a, b = numpy.full((3, 400), 1.0), numpy.full((3, 399), 0.1)
    a[1] = 30.0
    with pytest.raises(ResolventError, match=r"from length \d+, .* \(row 1 of the batch\)"):
        resolvent_diagonal(a, b, b, 1j, "theta_phi", "complex64")


def test_what_the_ratio_form_cannot_assure_is_refused() -> None:
    """A b c of any sign may bring a δ near zero; then the rounding errors decide."""
    # δ_2 = 1 − z + 1/(1 − z) with a small remainder where z = 1 + i(1 − ε).
    small = 1e-6
    a, b, c, z = [1.0, 1.0, 5.0], [1.0, 1.0], [-1.0, 1.0], 1 + 1j * (1 - small)
    for z_here in (z, z.conjugate()):
        good = resolvent_diagonal(a, b, c, z_here, dtype="complex128")
        assert_allclose(good, dense(a, b, c, z_here), rtol=1e-8)
    worse = 1 + 1j * (1 - 1e-12)
    with pytest.raises(ResolventError, match=r"half of the digits of complex64"):
        resolvent_diagonal([1.0] * 4, [1.0] * 3, [-1.0, 1.0, 1.0], worse, dtype="complex64")


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e18, 1e30])
def test_products_that_leave_the_format(scale: float) -> None:
    a, b, _ = sample("symmetric", 6)
    expected = resolvent_diagonal(a, b, b, 1j) / scale
    single = (a * scale, b * scale, b * scale, 1j * scale)
    assert_allclose(resolvent_diagonal(*single), expected, rtol=1e-12)
    if scale in (1e-30, 1e30):
        with pytest.raises(ResolventError, match=r"b·c (under|over)flows in complex64 at 0"):
            resolvent_diagonal(*single, dtype="complex64")
    else:
        assert_allclose(resolvent_diagonal(*single, dtype="complex64"), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"b": [1.0]}, r"b must end in 2, one less than the 3 entries of a; its shape is \(1,\)"),
        ({"c": 1.0}, r"c must end in 2"),
        ({"a": []}, r"a needs at least one entry"),
        ({"a": 1.0}, r"a needs at least one entry"),
        ({"z": [1j, 2j], "a": [[1.0] * 3] * 3}, r"the batches of a \(3, 3\), .* do not"),
        ({"a": [1.0, numpy.nan, 1.0]}, r"a is nan at 1; it must be finite"),
        ({"b": [[1.0, 1.0], [numpy.inf, 1.0]]}, r"b is inf at 1, 0"),
        ({"z": complex(0, numpy.nan)}, r"z is nan; it must|z is \(?nan\+nanj|z is 0?\+?nanj"),
        ({"a": ["1", "2", "3"]}, r"a must hold real or complex numbers; got \['1'"),
        ({"c": [True, False]}, r"c must hold real or complex numbers"),
        ({"c": [[1.0], 2.0]}, r"c must hold real or complex numbers"),
        ({"z": None}, r"z must hold real or complex numbers; got None"),
        ({"method": "lu"}, r"method must be one of ratio, scaled, theta_phi; got 'lu'"),
        ({"dtype": "float16"}, r"dtype must be one of complex64, complex128, mixed; got 'float16'"),
        ({"dtype": numpy.complex64}, r"dtype must be one of"),
        ({"backend": "cuda"}, r"backend must be one of numpy, numba, torch, triton; got 'cuda'"),
        ({"a": [1e39, 1.0, 1.0], "dtype": "complex64"}, r"a holds 1e\+39, which is more than"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], sentence: str) -> None:
    fine = {"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0], "c": [1.0, 1.0], "z": 1j}
    with pytest.raises(InputError, match=rf"resolvent_diagonal\(\): {sentence}"):
        resolvent_diagonal(**(fine | changed))


def test_nothing_given_is_changed() -> None:
    a, b, c = sample("positive", 30)
    kept = [each.copy() for each in (a, b, c)]
    for method in METHODS:
        resolvent_diagonal(a, b, c, 1j, method)
    assert all((x == y).all() for x, y in zip(kept, (a, b, c), strict=True))


def test_the_package_loads_numpy_alone(fresh_python: Callable[[str], str]) -> None:
    code = "import sys, calc.codesign.resolvent; print(*{n.split('.')[0] for n in sys.modules})"
    loaded = set(fresh_python(code).split())
    assert "numpy" in loaded
    assert not {"torch", "numba", "triton"} & loaded
