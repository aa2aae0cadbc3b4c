"""The methods in torch, and their gradients against torch's own of a dense inverse."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from calc.codesign import ResolventError, resolvent_diagonal
from calc.codesign.resolvent import METHODS
from calc.codesign.resolvent_problem import DTYPES
from calc.core.errors import InputError
from tests.calc.codesign.test_resolvent import dense, sample

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

WITHIN = {"complex128": 1e-11, "mixed": 2e-4, "complex64": 2e-4}


def tensors(kind: str, n: int, seed: int = 0, batch: tuple[int, ...] = (), z: complex = 0.3 + 0.8j):
    """Return the samples as leaves of a graph, and a shift that is one too."""
    arrays = (*sample(kind, n, seed, batch), numpy.full(batch, z))
    return [torch.tensor(each, requires_grad=True) for each in arrays]


def dense_diagonal(a: Any, b: Any, c: Any, z: Any) -> Any:
    """Return the diagonal by torch's own inverse, which it differentiates itself."""
    matrix = torch.diag_embed(a) + torch.diag_embed(b, 1) + torch.diag_embed(c, -1)
    return torch.linalg.inv(matrix - torch.diag_embed(z[..., None].expand(a.shape))).diagonal(
        dim1=-2, dim2=-1
    )


def gradients(diagonal: Any, leaves: list[Any]) -> list[Any]:
    """Return gradients of Σ w_i Re G_ii + v_i Im G_ii, with weights that tell the entries apart."""
    weights = torch.linspace(0.5, 2, diagonal.shape[-1], dtype=torch.float64)
    loss = (weights * diagonal.real + weights.flip(0) ** 2 * diagonal.imag).sum()
    of_leaves = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
    return [each.resolve_conj().numpy() for each in of_leaves]


@pytest.mark.parametrize(("method", "dtype"), [*product(METHODS, DTYPES)])
@pytest.mark.parametrize("kind", ["symmetric", "positive", "signs", "complex"])
@pytest.mark.parametrize(("batch", "n"), [((), 1), ((4,), 2), ((2, 3), 20)])
def test_arrays_and_tensors(
    method: str, dtype: str, kind: str, batch: tuple[int, ...], n: int
) -> None:
    a, b, c = sample(kind, n, seed=n, batch=batch)
    z = 0.3 + 1.5j
    expected = resolvent_diagonal(a, b, c, z)
    got = resolvent_diagonal(a, b, c, z, method, dtype, "torch")
    assert isinstance(got, numpy.ndarray)
    assert got.dtype == DTYPES[dtype][1]
    assert_allclose(got, expected, rtol=WITHIN[dtype])
    if not batch:
        assert_allclose(got, dense(a, b, c, z), rtol=WITHIN[dtype])
    tensor = resolvent_diagonal(torch.tensor(a), b, c, z, method, dtype, "torch")
    assert tensor.shape == (*batch, n)
    assert_allclose(tensor.numpy(), expected, rtol=WITHIN[dtype])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["symmetric", "positive", "signs", "complex"])
@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_gradients_are_those_of_the_dense_inverse(method: str, kind: str, n: int) -> None:
    leaves = tensors(kind, n, seed=n, batch=(3,))
    expected = gradients(dense_diagonal(*leaves), leaves)
    got = gradients(resolvent_diagonal(*leaves, method, backend="torch"), leaves)
    for mine, true in zip(got, expected, strict=True):
        scale = max(abs(true).max(), 1) if true.size else 1
        assert_allclose(mine, true, rtol=0, atol=2e-12 * scale)


@settings(max_examples=settings().max_examples // 4)
@given(n=st.integers(1, 24), seed=st.integers(0, 2**32))
def test_gradients_against_finite_differences(n: int, seed: int) -> None:
    leaves = tensors("positive", n, seed)
    assert torch.autograd.gradcheck(
        lambda *each: resolvent_diagonal(*each, backend="torch"), leaves, atol=1e-5
    )


def test_long_gradients_agree_with_plain_autograd() -> None:
    """The length is one that no dense inverse reaches in a test; the scaled method's are beside."""
    leaves = tensors("positive", 1500, batch=(2,))
    ratio = gradients(resolvent_diagonal(*leaves, backend="torch"), leaves)
    plain = gradients(resolvent_diagonal(*leaves, "scaled", backend="torch"), leaves)
    for mine, other in zip(ratio, plain, strict=True):
        assert_allclose(mine, other, rtol=0, atol=1e-10 * abs(other).max())


def test_the_shortcut_without_off_diagonals_is_wrong() -> None:
    """−G_ii² is dG_ii/da_i alone: the other rows answer to a_i as well."""
    a, b, c, z = tensors("symmetric", 64)
    diagonal = resolvent_diagonal(a, b, c, z, backend="torch")
    (true,) = torch.autograd.grad(diagonal.real.sum(), a)
    shortcut = -(diagonal.detach() ** 2).real
    assert 0.25 < float((shortcut - true).norm() / true.norm()) < 1.5


def test_what_a_gradient_is_of() -> None:
    """complex64, broadcasting, and leaves of which some ask for none."""
    a, b, c, z = tensors("positive", 6, batch=(2,))
    single = gradients(resolvent_diagonal(a, b, c, z, dtype="complex64", backend="torch"), [a, b])
    double = gradients(resolvent_diagonal(a, b, c, z, backend="torch"), [a, b])
    for mine, other in zip(single, double, strict=True):
        assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
    one = torch.tensor(0.3 + 1j, requires_grad=True)
    diagonal = resolvent_diagonal(a.detach(), b.detach(), c.detach(), one, backend="torch")
    (by_z,) = torch.autograd.grad(diagonal.real.sum(), one)
    again = dense_diagonal(a.detach(), b.detach(), c.detach(), one.expand(2))
    (expected,) = torch.autograd.grad(again.real.sum(), one)
    assert_allclose(by_z.resolve_conj(), expected.resolve_conj(), rtol=1e-6)
    assert not resolvent_diagonal(
        a.detach(), b.detach(), c.detach(), 1j, backend="torch"
    ).requires_grad


def test_empty_batches() -> None:
    none = resolvent_diagonal(
        torch.zeros(0, 4), torch.zeros(0, 3), torch.zeros(3), 1j, backend="torch"
    )
    assert none.shape == (0, 4)
    assert none.dtype == torch.complex128


def test_refusals_are_those_of_numpy() -> None:
    a, b, _ = (torch.tensor(each) for each in sample("symmetric", 1024))
    a, b = a - 2, torch.ones(1023)
    with pytest.raises(ResolventError, match=r"theta_phi overflows in complex64 from length 1\d\d"):
        resolvent_diagonal(a, b, b, 1j, "theta_phi", "complex64", "torch")
    with pytest.raises(ResolventError, match="underflows in complex64"):
        resolvent_diagonal(a / 10, b / 10, b / 10, 0.1j, "theta_phi", "mixed", "torch")
    zeros, ones = torch.zeros(3), torch.ones(2)
    for method in METHODS:
        with pytest.raises(ResolventError, match="an eigenvalue of H"):
            resolvent_diagonal(zeros, ones, ones, 0.0, method, backend="torch")
    with pytest.raises(ResolventError, match="half of the digits"):
        resolvent_diagonal(torch.tensor([0.0, 3.0, 1.0]), ones, ones, 0.0, backend="torch")
    for wrong, sentence in (
        ((zeros, ones, zeros, 1j), "c must end in 2, one less"),
        ((zeros, ones, ones, float("nan")), "z is nan"),
        ((zeros, ones * float("inf"), ones, 1j), "b is inf at 0"),
        ((zeros, ones > 0, ones, 1j), "b must hold real or complex numbers"),
        ((zeros, ["1", "2"], ones, 1j), "b must hold real or complex numbers"),
        ((zeros, ones.to("meta"), ones, 1j), "b is on meta, and another tensor on cpu"),
    ):
        with pytest.raises(InputError, match=sentence):
            resolvent_diagonal(*wrong, backend="torch")
    with pytest.raises(InputError, match="tensors are for the backends torch and triton"):
        resolvent_diagonal(zeros, ones, ones, 1j)


def test_half_precision_leaves() -> None:
    a, b, c, _ = tensors("positive", 9)
    got = resolvent_diagonal(a.to(torch.bfloat16), b, c, 1j, backend="torch")
    rounded = a.detach().to(torch.bfloat16).double().numpy()
    assert_allclose(got.detach().numpy(), dense(rounded, b.detach(), c.detach(), 1j), rtol=1e-12)
