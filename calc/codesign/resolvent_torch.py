"""The three methods in torch, with gradients: per-step loops over tensors, on any device.

The gradient of the ratio form is written out. It needs the off-diagonal entries of the resolvent,
since dG_ii / da_j = −G_ij G_ji, but of these only sums that two more recursions give, so that it is
as cheap as the form itself. The other methods are differentiated by torch, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from calc.codesign.resolvent_problem import DTYPES, Array, Computed, Problem, batch_shape
from calc.codesign.resolvent_trust import verified
from calc.core.errors import InputError, abbreviated

Given: TypeAlias = ArrayLike | Tensor
Tensors: TypeAlias = tuple[Tensor, ...]
Pair: TypeAlias = tuple[Tensor, Tensor]
Fractions: TypeAlias = Pair | None
Sweeps: TypeAlias = Callable[..., Pair]
FORMATS = {
    name: tuple(getattr(torch, form.__name__) for form in forms) for name, forms in DTYPES.items()
}


def tensor_diagonal(
    a: Given, b: Given, c: Given, z: Given, method: str, dtype: str, backend: str
) -> Tensor:
    """The diagonal as a tensor that knows its gradient, on the device of the tensors given."""
    inputs = dict(zip("abcz", (a, b, c, z), strict=True))
    device = next(array.device for array in inputs.values() if isinstance(array, Tensor))
    working = FORMATS[dtype][0]
    cast = {name: _cast(name, array, device, working) for name, array in inputs.items()}
    batch = batch_shape(*(tuple(tensor.shape) for tensor in cast.values()))
    n = cast["a"].shape[-1]
    if 0 in batch:
        return torch.zeros((*batch, n), dtype=FORMATS[dtype][1], device=device)
    rows = {
        name: tensor.expand(*batch, tensor.shape[-1]).reshape(math.prod(batch), tensor.shape[-1]).T
        for name, tensor in cast.items()
        if name != "z"
    }
    shift = cast["z"].expand(batch).reshape(-1)
    shifted = (rows["a"] - shift).contiguous()
    products = (rows["b"] * rows["c"]).contiguous()
    diagonal, held, fractions = columns(shifted, products, method, dtype, backend)
    result = diagonal.T
    with torch.no_grad():
        if not held or not _plainly_right(rows, shift, products, result):
            on_host = [_on_host(array) for array in inputs.values()]
            problem = Problem.checked(on_host[0], on_host[1], on_host[2], on_host[3], dtype)
            _verify(problem, method, held, result, fractions)
    return result.reshape(*batch, n)


def array_diagonal(problem: Problem, method: str, dtype: str, backend: str) -> Array:
    """The diagonal (B, n) of a checked problem as an array, computed by torch where it best can."""
    with torch.no_grad():
        shifted, products = tensors(problem, backend)
        diagonal, held, fractions = columns(shifted, products, method, dtype, backend)
        return _verify(problem, method, held, diagonal.T, fractions)


def tensors(problem: Problem, backend: str) -> Pair:
    """a − z and b c, where the backend runs."""
    device = "cuda" if backend == "triton" and torch.cuda.is_available() else "cpu"
    return (
        torch.from_numpy(problem.shifted).to(device),
        torch.from_numpy(problem.products).to(device),
    )


def columns(
    shifted: Tensor, products: Tensor, method: str, dtype: str, backend: str
) -> tuple[Tensor, bool, Fractions]:
    """The diagonal (n, B) of a − z and b c; whether determinants held; the continued fractions."""
    last = FORMATS[dtype][1]
    if method == "theta_phi":
        return *theta_phi(shifted, products, last), None
    if method == "scaled":
        return scaled(shifted, products, last), True, None
    if backend == "triton":
        from calc.codesign.resolvent_triton import fractions, sums
    else:
        fractions, sums = looped_fractions, looped_sums
    diagonal, left, right = Ratio.apply(shifted, products, last, fractions, sums)
    return diagonal, True, (left, right)


class Ratio(torch.autograd.Function):
    """The ratio form and its exact gradient.

    With l_i and r_i the continued fractions from the left and the right, and P_ij = G_ij G_ji:
    P_{i+1,j} = b_i c_i / r_{i+1}² P_ij for j <= i, and likewise with l to the other side. Sums over
    i of w_i P_ij from either side are therefore one recursion each, u and v, and
    Σ w_i dG_ii = −G_jj² (u_j + v_j − w_j) da_j
    + (G_jj² v_j / r_{j+1} + G_{j+1,j+1}² u_{j+1} / l_j) d(b_j c_j).
    """

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        shifted: Tensor,
        products: Tensor,
        last: torch.dtype,
        fractions: Sweeps,
        sums: Sweeps,
    ) -> tuple[Tensor, Tensor, Tensor]:
        left, right = fractions(shifted, products)
        inverse = left.to(last, copy=True)
        inverse[:-1] -= products / right[1:].to(last)
        diagonal = inverse.reciprocal()
        ctx.save_for_backward(diagonal, left, right, products)
        ctx.sums = sums
        ctx.mark_non_differentiable(left, right)
        return diagonal, left, right

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: torch.autograd.function.FunctionCtx, weights: Tensor, *_: object
    ) -> tuple[Tensor | None, ...]:
        diagonal, left, right, products = ctx.saved_tensors
        weights, squares = weights.conj(), diagonal * diagonal
        from_right, from_left = ctx.sums(
            weights, products / (right[1:] * right[1:]), products / (left[:-1] * left[:-1])
        )
        shifted = -squares * (from_right + from_left - weights)
        product = squares[:-1] * from_left[:-1] / right[1:]
        product += squares[1:] * from_right[1:] / left[:-1]
        if not products.is_complex():
            product = product.real
        return shifted.conj().to(left.dtype), product.conj().to(products.dtype), None, None, None


def looped_fractions(shifted: Tensor, products: Tensor) -> Pair:
    """δ from the left and from the right."""
    rows, couplings = shifted.unbind(), products.unbind()
    left, right = [rows[0]], [rows[-1]]
    for row, coupling in zip(rows[1:], couplings, strict=True):
        left.append(row - coupling / left[-1])
    for row, coupling in zip(rows[-2::-1], couplings[::-1], strict=True):
        right.append(row - coupling / right[-1])
    return torch.stack(left), torch.stack(right[::-1])


def looped_sums(weights: Tensor, to_left: Tensor, to_right: Tensor) -> Pair:
    """u_j = w_j + to_left_j u_{j+1}, and v_j = w_j + to_right_{j−1} v_{j−1}."""
    rows = weights.unbind()
    u, v = [rows[-1]], [rows[0]]
    for row, factor in zip(rows[-2::-1], to_left.unbind()[::-1], strict=True):
        u.append(torch.addcmul(row, factor, u[-1]))
    for row, factor in zip(rows[1:], to_right.unbind(), strict=True):
        v.append(torch.addcmul(row, factor, v[-1]))
    return torch.stack(u[::-1]), torch.stack(v)


def theta_phi(shifted: Tensor, products: Tensor, last: torch.dtype) -> tuple[Tensor, bool]:
    """The determinants as they are, and whether all of them stayed within the format."""
    theta = torch.stack(_minors(shifted.unbind(), products.unbind()))
    phi = torch.stack(_minors(shifted.unbind()[::-1], products.unbind()[::-1])[::-1])
    product = theta[:-1].to(last) * phi[1:].to(last)
    with torch.no_grad():
        limits = torch.finfo(theta.dtype)
        small = product.abs() < torch.finfo(last).tiny
        sound = ~(small & (theta[:-1] != 0) & (phi[1:] != 0)).any()
        for minors in (theta, phi):
            size = minors.abs()
            sound &= (size < limits.max / 2).all()
            sound &= (torch.maximum(size[1:], size[:-1]) >= limits.tiny).all()
    return product / theta[-1].to(last), bool(sound)


def _minors(rows: Tensors, couplings: Tensors) -> list[Tensor]:
    theta = [torch.ones_like(rows[0]), rows[0]]
    for row, coupling in zip(rows[1:], couplings, strict=True):
        theta.append(row * theta[-1] - coupling * theta[-2])
    return theta


def scaled(shifted: Tensor, products: Tensor, last: torch.dtype) -> Tensor:
    """The determinants as mantissas and exponents of 2; the exponents are constants to a gradient.

    They may be: a power of 2 that is taken out here is put back below.
    """
    theta, theta_exponent = _scaled_minors(shifted.unbind(), products.unbind())
    phi, phi_exponent = _scaled_minors(shifted.unbind()[::-1], products.unbind()[::-1])
    phi, phi_exponent = phi.flip(0), phi_exponent.flip(0)
    mantissa = theta[:-1].to(last) * phi[1:].to(last) / theta[-1].to(last)
    exponent = theta_exponent[:-1] + phi_exponent[1:] - theta_exponent[-1]
    return mantissa * _power_of_two(exponent, mantissa)


def _scaled_minors(rows: Tensors, couplings: Tensors) -> Pair:
    before, now = torch.ones_like(rows[0]), rows[0]
    shift = torch.zeros_like(now.real, dtype=torch.int32)
    theta, exponent = [before, now], [shift, shift]
    for row, coupling in zip(rows[1:], couplings, strict=True):
        by = _exponent(torch.maximum(before.detach().abs(), now.detach().abs()))
        factor = _power_of_two(-by, now)
        before, now = before * factor, now * factor
        before, now = now, row * now - coupling * before
        shift = shift + by
        theta.append(now)
        exponent.append(shift)
    stacked = torch.stack(theta)
    by = _exponent(stacked.detach().abs())
    return stacked * _power_of_two(-by, stacked), torch.stack(exponent) + by


def _exponent(size: Tensor) -> Tensor:
    return torch.frexp(size).exponent


def _power_of_two(exponent: Tensor, like: Tensor) -> Tensor:
    return torch.ldexp(torch.ones_like(exponent, dtype=like.real.dtype), exponent)


def _cast(name: str, values: Given, device: torch.device, working: torch.dtype) -> Tensor:
    """A tensor in the format of the recursion, real where it can be."""
    if not isinstance(values, Tensor):
        array = numpy.asarray(values)
        if array.dtype.kind not in "iufc" and array.size:
            raise InputError(
                f"resolvent_diagonal(): {name} must hold real or complex numbers;"
                f" got {abbreviated(values)}"
            )
        values = torch.as_tensor(array, device=device)
    if values.dtype == torch.bool:
        raise InputError(f"resolvent_diagonal(): {name} must hold real or complex numbers")
    if values.device != device:
        raise InputError(
            f"resolvent_diagonal(): {name} is on {values.device}, and another tensor on {device}"
        )
    keeps_real = name != "z" and not values.is_complex()
    return values.to(working.to_real() if keeps_real else working)


def _plainly_right(
    rows: dict[str, Tensor], shift: Tensor, products: Tensor, result: Tensor
) -> bool:
    """Return whether the result needs no further check, by a few reductions on the device.

    That is: b c >= 0 and real a, so that |δ| >= |Im z|, which is far from rounding and underflow.
    """
    if any(row.is_complex() for row in rows.values()):
        return False
    limits = torch.finfo(shift.dtype)
    size = rows["a"].abs().amax() + shift.abs().amax()
    if len(products):
        size = size + rows["b"].abs().amax() + rows["c"].abs().amax()
    smallest = shift.imag.abs().amin()
    sure = (products >= 0).all() & products.isfinite().all() & result.isfinite().all()
    sure &= (smallest > 64 * limits.eps * size) & (smallest**2 > limits.tiny / limits.eps)
    return bool(sure)


def _on_host(values: Given) -> Array:
    if not isinstance(values, Tensor):
        return numpy.asarray(values)
    tensor = values.detach().cpu().resolve_conj()
    return (tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor).numpy()


def _verify(
    problem: Problem, method: str, held: bool, result: Tensor, fractions: Fractions
) -> Array:
    """The result as an array, looked at as that of any other backend."""
    on_host = (_on_host(fractions[0]), _on_host(fractions[1])) if fractions else None
    return verified(problem, method, Computed(_on_host(result), on_host, held))
