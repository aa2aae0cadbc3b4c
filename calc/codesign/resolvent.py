"""The diagonal of (H − zI)⁻¹ for tridiagonal H, in time linear in its size.

This is the front of the kernel: which method, number format and backend run. What may be given is
in `resolvent_problem`, the methods are in `resolvent_numpy` and beside it for other backends, and
what is refused is in `resolvent_trust`.
"""

from __future__ import annotations

import functools
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from warnings import warn

from calc.codesign.resolvent_problem import DTYPES, Problem
from calc.codesign.resolvent_trust import verified
from calc.core.arguments import one_of
from calc.core.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

METHODS = ("ratio", "scaled", "theta_phi")
BACKENDS = ("numpy", "numba", "torch", "triton")


class BackendWarning(UserWarning):
    """Another backend runs than the one that was asked for; the message says which, and why."""


def resolvent_diagonal(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    z: ArrayLike,
    method: str = "ratio",
    dtype: str = "complex128",
    backend: str = "numpy",
) -> Any:
    """The diagonal G_i of (H − zI)⁻¹, where H is tridiagonal: b above its diagonal a, c below.

    Equation: G_i = θ_{i−1} φ_{i+1} / θ_n

    The leading principal minors of H − zI are θ_i = (a_i − z) θ_{i−1} − b_{i−1} c_{i−1} θ_{i−2},
    and the trailing ones, φ_i, are made in the same way from the other end.

    `a` has the shape (..., n), `b` and `c` have (..., n − 1), and `z` has that of the batch, which
    may be empty; all of them broadcast. `theta_phi` is that equation. Its determinants grow as eᵞⁿ
    and leave the number format at a length that `overflow_onset` tells. `scaled` keeps their
    exponents apart, and works wherever z is no eigenvalue. `ratio` needs no exponents:
    δ_i = θ_i / θ_{i−1} is a continued fraction. Where a is real, b_i c_i ≥ 0 and Im z ≠ 0, every
    |δ_i| ≥ |Im z|, so that nothing can vanish; elsewhere its rounding errors are followed, and a
    diagonal with less than half of its digits assured is refused.

    `dtype` is complex64 (two FP32), complex128, or mixed: recursions in complex64, and the division
    in complex128. Tensors of torch, which are given to the backends torch and triton alone, come
    back as tensors with a gradient; everything else as an array. A backend that cannot run here is
    replaced by one that can, with a warning that names both.

    Source: usmani1994inversion

    Raises InputError for shapes that do not fit, entries that are no finite numbers, and unknown
    names; ResolventError, which is one, where a result would not be finite or not be right.

    >>> G = resolvent_diagonal([2.0, 2.0, 2.0], [-1.0, -1.0], [-1.0, -1.0], 1j)
    >>> print(G.round(4))
    [0.3765+0.3059j 0.3529+0.4118j 0.3765+0.3059j]
    """
    for name, value, allowed in (
        ("method", method, METHODS),
        ("dtype", dtype, tuple(DTYPES)),
        ("backend", backend, BACKENDS),
    ):
        one_of(f"resolvent_diagonal(): {name}", value, allowed)
    tensors = any(is_tensor(array) for array in (a, b, c, z))
    if tensors and backend not in ("torch", "triton"):
        raise InputError(
            f"resolvent_diagonal(): tensors are for the backends torch and triton; the backend"
            f" {backend} takes arrays"
        )
    backend = running_backend(backend, tensors)
    if tensors:
        from calc.codesign.resolvent_torch import tensor_diagonal

        return tensor_diagonal(a, b, c, z, method, dtype, backend)
    problem = Problem.checked(a, b, c, z, dtype)
    if problem.z.size == 0:
        diagonal = problem.a.astype(problem.formats[1])
    elif backend in ("numpy", "numba"):
        compiled = import_module(f"calc.codesign.resolvent_{backend}")
        diagonal = verified(problem, method, compiled.computed(problem, method))
    else:
        from calc.codesign.resolvent_torch import array_diagonal

        diagonal = array_diagonal(problem, method, dtype, backend)
    return diagonal.reshape(problem.shape)


@functools.cache
def missing(backend: str) -> str:
    """Return why a backend cannot run here; "" if it can."""
    needed = {"numpy": (), "numba": ("numba",), "torch": ("torch",), "triton": ("torch", "triton")}
    for module in needed[backend]:
        if find_spec(module) is None:
            return f"{module} is not installed"
    if backend == "triton":
        from calc.codesign.resolvent_triton import unusable

        return unusable()
    return ""


def running_backend(backend: str, tensors: bool = False) -> str:
    """The backend that runs where this one is asked for; a warning tells where it is another.

    >>> running_backend("numpy")
    'numpy'
    """
    reason = missing(backend)
    if not reason:
        return backend
    others = ("torch",) if tensors else ("numba", "numpy")
    runs = next(other for other in others if not missing(other))
    warn(
        f"resolvent_diagonal(): the backend {backend} cannot run here: {reason};"
        f" the backend {runs} runs instead",
        BackendWarning,
        stacklevel=3,
    )
    return runs


def is_tensor(value: object) -> bool:
    """Return whether a value is a tensor of torch, without a need for torch."""
    return type(value).__module__.split(".")[0] == "torch"
