"""The GPU's kernels, in Triton's interpreter where there is no GPU; and what runs without either.

TRITON_INTERPRET=1 python -m pytest tests/calc/codesign/test_resolvent_triton.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from numpy.testing import assert_allclose

from calc.codesign import (
    BackendWarning,
    ResolventError,
    resolvent as module,
    resolvent_diagonal,
    running_backend,
)
from calc.codesign.resolvent import METHODS, missing
from calc.codesign.resolvent_problem import DTYPES
from tests.calc.codesign.test_resolvent import sample

WITHIN = {"complex128": 1e-11, "mixed": 2e-4, "complex64": 2e-4}
why_not = missing("triton")
on_triton = pytest.mark.skipif(bool(why_not), reason=f"the backend triton cannot run: {why_not}")


@on_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["symmetric", "positive", "signs", "complex"])
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (2, 2), (31, 3), (33, 20), (70, 5)])
def test_the_kernel_gives_the_same(dtype: str, kind: str, batch: int, n: int) -> None:
    """Batches of less and of more than a block."""
    arrays = sample(kind, n, seed=n, batch=(batch,))
    z = 0.3 + 1.5j + 0.1 * numpy.arange(batch)
    got = resolvent_diagonal(*arrays, z, "ratio", dtype, "triton")
    assert got.dtype == DTYPES[dtype][1]
    assert_allclose(got, resolvent_diagonal(*arrays, z), rtol=WITHIN[dtype])


@on_triton
@pytest.mark.parametrize("kind", ["symmetric", "signs", "complex"])
@pytest.mark.parametrize("n", [1, 2, 30])
def test_its_gradient_is_that_of_the_loop(kind: str, n: int) -> None:
    torch: Any = pytest.importorskip("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    arrays = (*sample(kind, n, n, (3,)), 0.3 + 0.8j + numpy.arange(3))
    leaves = [torch.tensor(each, requires_grad=True, device=device) for each in arrays]
    weights = torch.linspace(0.5, 2, n, dtype=torch.float64, device=device)
    gradients = []
    for backend in ("triton", "torch"):
        diagonal = resolvent_diagonal(*leaves, backend=backend)
        loss = (weights * diagonal.real + diagonal.imag**2).sum()
        gradients.append(torch.autograd.grad(loss, leaves))
    for mine, other in zip(*gradients, strict=True):
        assert_allclose(mine.resolve_conj().cpu(), other.resolve_conj().cpu(), rtol=1e-11)


@on_triton
@pytest.mark.parametrize("scale", [1e-150, 1e-90, 1e90, 1e150])
def test_the_kernel_squares_nothing(scale: float) -> None:
    a, b, _ = sample("symmetric", 6, batch=(2,))
    expected = resolvent_diagonal(a, b, b, 1j) / scale
    got = resolvent_diagonal(a * scale, b * scale, b * scale, 1j * scale, backend="triton")
    assert_allclose(got, expected, rtol=1e-12)


@on_triton
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, inside the interpreter
def test_it_refuses_what_numpy_refuses() -> None:
    with pytest.raises(ResolventError, match="an eigenvalue of H"):
        resolvent_diagonal([0.0] * 3, [1.0] * 2, [1.0] * 2, 0.0, backend="triton")
    with pytest.raises(ResolventError, match="half of the digits"):
        resolvent_diagonal([0.0, 3.0, 1.0], [1.0] * 2, [1.0] * 2, 0.0, backend="triton")


@pytest.fixture
def nothing_but_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = module.find_spec
    absent = {"numba", "torch", "triton"}
    monkeypatch.setattr(module, "find_spec", lambda name: None if name in absent else real(name))
    missing.cache_clear()
    yield
    missing.cache_clear()


@pytest.mark.usefixtures("nothing_but_numpy")
@pytest.mark.parametrize(
    ("backend", "lacks"), [("numba", "numba"), ("torch", "torch"), ("triton", "torch")]
)
def test_another_backend_runs_and_it_is_said(backend: str, lacks: str) -> None:
    a, b, c = sample("positive", 20, batch=(2,))
    sentence = (
        rf"backend {backend} cannot run here: {lacks} is not installed; the backend numpy runs"
    )
    for method in METHODS:
        with pytest.warns(BackendWarning, match=sentence):
            got = resolvent_diagonal(a, b, c, 1j, method, backend=backend)
        assert (got == resolvent_diagonal(a, b, c, 1j, method)).all()
    with pytest.warns(BackendWarning, match=sentence):
        assert running_backend(backend) == "numpy"


def test_without_a_gpu_tensors_stay_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(module, "missing", lambda name: "no GPU" if name == "triton" else "")
    a, b, c = (torch.tensor(each) for each in sample("positive", 20))
    with pytest.warns(BackendWarning, match="no GPU; the backend torch runs instead"):
        got = resolvent_diagonal(a, b, c, 1j, backend="triton")
    assert torch.equal(got, resolvent_diagonal(a, b, c, 1j, backend="torch"))
