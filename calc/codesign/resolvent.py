"""The diagonal of (H − zI)⁻¹ for tridiagonal H, in time linear in its size.

This is the front of the kernel: what may be given, the three methods in NumPy, and what is refused.
The other backends compute the same recursions; where one of them ends in numbers that are not to be
trusted, the same problem is given to the NumPy methods, which find out why and say so.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NoReturn
from warnings import warn

from calc.errors import InputError, NumpyNeededError, shown

try:
    import numpy
except ImportError:
    raise NumpyNeededError("calc.codesign needs numpy, which is not installed") from None

METHODS = ("ratio", "scaled", "theta_phi")
BACKENDS = ("numpy", "numba", "torch", "triton")
# The format of the recursions, and that of the division which ends them.
DTYPES = {
    "complex64": (numpy.complex64, numpy.complex64),
    "complex128": (numpy.complex128, numpy.complex128),
    "mixed": (numpy.complex64, numpy.complex128),
}
# Where rounding changes a result by more than this share of it, z is as good as an eigenvalue.
ON_THE_SPECTRUM = 1 / 32


class ResolventError(InputError):
    """The method cannot give this diagonal in this number format; the message says which can."""


class BackendWarning(UserWarning):
    """Another backend runs than the one that was asked for; the message says which, and why."""


def resolvent_diagonal(
    a: Any,
    b: Any,
    c: Any,
    z: Any,
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
    for name, given, known in (
        ("method", method, METHODS),
        ("dtype", dtype, tuple(DTYPES)),
        ("backend", backend, BACKENDS),
    ):
        if not isinstance(given, str) or given not in known:
            raise InputError(
                f"resolvent_diagonal(): {name} must be one of {', '.join(known)};"
                f" got {shown(given)}"
            )
    tensors = any(is_tensor(each) for each in (a, b, c, z))
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
        return numpy.zeros(problem.shape, problem.formats[1])
    if backend == "numpy":
        diagonal = verified(problem, method, computed(problem, method))
    elif backend == "numba":
        from calc.codesign import resolvent_numba

        diagonal = verified(problem, method, resolvent_numba.computed(problem, method))
    else:
        from calc.codesign.resolvent_torch import array_diagonal

        diagonal = array_diagonal(problem, method, dtype, backend)
    return diagonal.reshape(problem.shape)


@functools.cache
def missing(backend: str) -> str:
    """Why a backend cannot run here, or nothing."""
    needed = {"numpy": (), "numba": ("numba",), "torch": ("torch",), "triton": ("torch", "triton")}
    for module in needed[backend]:
        if find_spec(module) is None:
            return f"{module} is not installed"
    if backend == "triton":
        from calc.codesign.resolvent_triton import unusable

        return unusable()
    return ""


def running_backend(backend: str, tensors: bool = False) -> str:
    """The backend that runs where this one is asked for; a warning tells where it is another."""
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


def is_tensor(given: Any) -> bool:
    """Whether it is a tensor of torch, without a need for torch."""
    return type(given).__module__.split(".")[0] == "torch"


@dataclass(frozen=True)
class Problem:
    """A checked batch: a (B, n), b and c (B, n − 1), real where they can be, and z (B)."""

    a: Any
    b: Any
    c: Any
    z: Any
    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def checked(cls, a: Any, b: Any, c: Any, z: Any, dtype: str) -> Problem:
        """Arrays in the format of the recursion, or a sentence on what cannot be one."""
        working = DTYPES[dtype][0]
        arrays = [_entries(name, each) for name, each in zip("abcz", (a, b, c, z), strict=True)]
        batch = batch_shape(*(each.shape for each in arrays))
        n = arrays[0].shape[-1]
        count = math.prod(batch)
        real = numpy.finfo(working).dtype
        held = []
        for name, each, shape in zip("abcz", arrays, ((n,), (n - 1,), (n - 1,), ()), strict=True):
            keeps_real = name != "z" and not numpy.iscomplexobj(each)
            with numpy.errstate(over="ignore"):
                cast = each.astype(real if keeps_real else working, copy=False)
            if cast is not each and not math.isfinite(largest(cast)):
                raise InputError(
                    f"resolvent_diagonal(): {name} holds {abs(each).max():.3g}, which is more than"
                    f" {working.__name__} can hold; dtype='complex128' may"
                )
            held.append(numpy.broadcast_to(cast, (*batch, *shape)).reshape(count, *shape))
        problem = cls(held[0], held[1], held[2], held[3], (*batch, n), dtype)
        problem._products_are_kept()
        return problem

    def _products_are_kept(self) -> None:
        """Only b c counts, so where it leaves the format, the problem is another one."""
        if self.z.size == 0:
            return
        limits = self.limits
        # Against (a − z)², a product below the format is nothing unless that is as small.
        small = abs(self.z.imag).min() < (limits.tiny / limits.eps) ** 0.5
        if not small and math.isfinite(self.size_of_products):
            return
        with numpy.errstate(over="ignore", under="ignore"):
            product = abs(self.b * self.c)
        lost = (product < limits.tiny) & (self.b != 0) & (self.c != 0) & small
        wrong = lost | ~numpy.isfinite(product)
        if wrong.any():
            row, i = (int(each) for each in numpy.argwhere(wrong)[0])
            raise ResolventError(
                f"resolvent_diagonal(): b·c {'under' if lost[row, i] else 'over'}flows in"
                f" {self.formats[0].__name__} at {i}, where b is {self.b[row, i]:.3g} and c is"
                f" {self.c[row, i]:.3g}; multiply a, b, c and z by one number, and the diagonal"
                " with it"
            )

    @property
    def formats(self) -> tuple[Any, Any]:
        """The formats of the recursion and of the result."""
        return DTYPES[self.dtype]

    @property
    def limits(self) -> Any:
        """What numpy knows of the recursion's format: eps, tiny, max."""
        return numpy.finfo(self.formats[0])

    @property
    def n(self) -> int:
        """The length of the diagonal."""
        return int(self.a.shape[1])

    @property
    def tolerated(self) -> float:
        """The relative error at which a result is refused: half of the digits."""
        return math.sqrt(self.limits.eps)

    @functools.cached_property
    def shifted(self) -> Any:
        """a − z as (n, B), so that a step of the recursion is a row."""
        return numpy.ascontiguousarray((self.a - self.z[:, None]).T)

    @functools.cached_property
    def products(self) -> Any:
        """b c as (n − 1, B)."""
        return numpy.ascontiguousarray((self.b * self.c).T)

    @functools.cached_property
    def guaranteed(self) -> bool:
        """Whether no δ of the continued fraction can be smaller than |Im z|, which is not 0."""
        real = not any(numpy.iscomplexobj(each) for each in (self.a, self.b, self.c))
        return real and self._products[0] >= 0 and bool((self.z.imag != 0).all())

    @functools.cached_property
    def _products(self) -> tuple[float, float]:
        """The least b c, where that is real, and the largest in size."""
        with numpy.errstate(over="ignore", under="ignore"):
            product = self.b * self.c
        if product.size == 0 or numpy.iscomplexobj(product):
            return 0.0, largest(product)
        least = float(product.min())
        return least, max(-least, float(product.max()))

    @property
    def size_of_products(self) -> float:
        """The largest |b c|."""
        return self._products[1]

    @functools.cached_property
    def size(self) -> float:
        """A bound on |a| + |z| + |b| + |c| in every row of the batch."""
        return sum(largest(each) for each in (self.a, self.b, self.c, self.z))


def largest(array: Any) -> float:
    """The largest absolute value, of either part; NaN where there is one. It makes no array."""
    if array.size == 0:
        return 0.0
    if numpy.iscomplexobj(array):
        # abs might overflow, and max() would lose a NaN
        return float(numpy.maximum(largest(array.real), largest(array.imag)))
    return float(numpy.maximum(-array.min(), array.max()))


def batch_shape(a: Any, b: Any, c: Any, z: Any) -> tuple[int, ...]:
    """The shape of the batch, from those of a, b, c and z; those that do not fit are refused."""
    if not a or a[-1] == 0:
        raise InputError("resolvent_diagonal(): a needs at least one entry, as (..., n)")
    n = a[-1]
    for name, shape in (("b", b), ("c", c)):
        if not shape or shape[-1] != n - 1:
            raise InputError(
                f"resolvent_diagonal(): {name} must end in {n - 1}, one less than the {n} entries"
                f" of a; its shape is {tuple(shape)}"
            )
    try:
        return numpy.broadcast_shapes(a[:-1], b[:-1], c[:-1], z)
    except ValueError:
        raise InputError(
            f"resolvent_diagonal(): the batches of a {tuple(a)}, b {tuple(b)}, c {tuple(c)} and z"
            f" {tuple(z)} do not broadcast"
        ) from None


def _entries(name: str, given: Any) -> Any:
    """The numbers of one argument, all of them finite."""
    try:
        array = numpy.asarray(given)
    except ValueError:
        array = numpy.asarray(None)
    if array.size == 0 and array.dtype == numpy.float64:
        return array
    if array.dtype.kind not in "iufc":
        raise InputError(
            f"resolvent_diagonal(): {name} must hold real or complex numbers; got {shown(given)}"
        )
    if array.dtype.kind in "fc" and not math.isfinite(largest(array)):
        first = tuple(int(each) for each in numpy.argwhere(~numpy.isfinite(array))[0])
        where = f" at {', '.join(map(str, first))}" if first else ""
        raise InputError(
            f"resolvent_diagonal(): {name} is {array[first]}{where}; it must be finite"
        )
    return array


@dataclass(frozen=True)
class Computed:
    """A diagonal (B, n) before it is trusted: with the continued fractions (n, B) that it is from,
    or whether the determinants of each row held.
    """

    diagonal: Any
    fractions: tuple[Any, Any] | None = None
    held: Any = True


def _ratio(problem: Problem) -> Computed:
    """Continued fractions from both ends: δ_i = a_i − z − b_{i−1} c_{i−1} / δ_{i−1}."""
    with numpy.errstate(all="ignore"):
        left, right = continued_fractions(problem.shifted, problem.products)
        diagonal = numpy.empty(left.shape, problem.formats[1])
        last = left.astype(diagonal.dtype, copy=False)
        numpy.subtract(
            last[:-1],
            problem.products / right[1:].astype(last.dtype, copy=False),
            out=diagonal[:-1],
        )
        diagonal[-1] = last[-1]
        numpy.divide(1, diagonal, out=diagonal)
    return Computed(diagonal.T, (left, right))


def continued_fractions(shifted: Any, products: Any) -> tuple[Any, Any]:
    """δ from the left, θ_i / θ_{i−1}, and from the right, φ_i / φ_{i+1}."""
    left, right = numpy.empty_like(shifted), numpy.empty_like(shifted)
    left[0], right[-1] = shifted[0], shifted[-1]
    step = numpy.empty_like(shifted[0])
    for i in range(1, len(shifted)):
        numpy.divide(products[i - 1], left[i - 1], out=step)
        numpy.subtract(shifted[i], step, out=left[i])
    for i in range(len(shifted) - 2, -1, -1):
        numpy.divide(products[i], right[i + 1], out=step)
        numpy.subtract(shifted[i], step, out=right[i])
    return left, right


def _theta_phi(problem: Problem) -> Computed:
    """The determinants as they are."""
    with numpy.errstate(all="ignore"):
        theta = minors(problem.shifted, problem.products)
        phi = minors(problem.shifted[::-1], problem.products[::-1])[::-1]
        last = problem.formats[1]
        product = theta[:-1].astype(last, copy=False) * phi[1:].astype(last, copy=False)
        diagonal = product / theta[-1].astype(last, copy=False)
    tiny = numpy.finfo(last).tiny
    vanished = (abs(product) < tiny) & (theta[:-1] != 0) & (phi[1:] != 0)
    left = left_the_range(theta) | left_the_range(phi[::-1])
    return Computed(diagonal.T, held=~(left.any(axis=0) | vanished.any(axis=0)))


def minors(shifted: Any, products: Any) -> Any:
    """θ_0 = 1, θ_1, ..., θ_n as (n + 1, B)."""
    theta = numpy.empty((len(shifted) + 1, *shifted.shape[1:]), shifted.dtype)
    theta[0], theta[1] = 1, shifted[0]
    step = numpy.empty_like(shifted[0])
    for i in range(1, len(shifted)):
        numpy.multiply(shifted[i], theta[i], out=theta[i + 1])
        numpy.multiply(products[i - 1], theta[i - 1], out=step)
        theta[i + 1] -= step
    return theta


def left_the_range(theta: Any) -> Any:
    """At which lengths a minor overflows, or it and the one before are below normal numbers.

    One minor alone may vanish, where z is an eigenvalue of the rows so far. Within a factor of 2 of
    the largest number a division by it overflows on its way, and gives 0.
    """
    size, limits = abs(theta), numpy.finfo(theta.dtype)
    with numpy.errstate(invalid="ignore"):
        pair = numpy.maximum(size[1:], size[:-1])
        return ~((size[1:] < limits.max / 2) & (pair >= limits.tiny))


def _scaled(problem: Problem) -> Computed:
    """The determinants as mantissas, with their exponents in whole numbers beside them."""
    with numpy.errstate(all="ignore"):
        theta, theta_exponent = scaled_minors(problem.shifted, problem.products)
        phi, phi_exponent = scaled_minors(problem.shifted[::-1], problem.products[::-1])
        last = problem.formats[1]
        mantissa = theta[:-1].astype(last, copy=False) * phi[-2::-1].astype(last, copy=False)
        mantissa /= theta[-1].astype(last, copy=False)
        exponent = theta_exponent[:-1] + phi_exponent[-2::-1] - theta_exponent[-1]
        return Computed(times_power_of_two(mantissa, exponent).T)


def scaled_minors(shifted: Any, products: Any) -> tuple[Any, Any]:
    """θ_0 to θ_n as mantissas of a size near 1 and exponents of 2, both (n + 1, B)."""
    theta = numpy.empty((len(shifted) + 1, *shifted.shape[1:]), shifted.dtype)
    exponent = numpy.zeros(theta.shape, numpy.int32)
    theta[0], theta[1] = 1, shifted[0]
    before, now, shift = theta[0], theta[1], exponent[0]
    for i in range(1, len(shifted)):
        by = numpy.frexp(numpy.maximum(abs(before), abs(now)))[1]
        shift = shift + by
        before, now = times_power_of_two(before, -by), times_power_of_two(now, -by)
        before, now = now, shifted[i] * now - products[i - 1] * before
        theta[i + 1], exponent[i + 1] = now, shift
    by = numpy.frexp(abs(theta))[1]
    return times_power_of_two(theta, -by), exponent + by


def times_power_of_two(value: Any, exponent: Any) -> Any:
    """value · 2^exponent for complex numbers, without rounding."""
    result = numpy.empty_like(value)
    numpy.ldexp(value.real, exponent, out=result.real)
    numpy.ldexp(value.imag, exponent, out=result.imag)
    return result


def computed(problem: Problem, method: str) -> Computed:
    """A method's numbers in NumPy, good or bad."""
    return {"ratio": _ratio, "scaled": _scaled, "theta_phi": _theta_phi}[method](problem)


def verified(problem: Problem, method: str, result: Computed) -> Any:
    """The diagonal (B, n), or a sentence on why it is not to be trusted."""
    if not trusted(problem, result).all():
        refuse(problem, method)
    return result.diagonal


def trusted(problem: Problem, result: Computed) -> Any:
    """Which rows of the batch are finite, off the spectrum, and with their digits assured."""
    with numpy.errstate(all="ignore"):
        good = result.held & numpy.isfinite(result.diagonal.sum(axis=1))
        good &= ~on_the_spectrum(problem, result.diagonal)
        if result.fractions and not problem.guaranteed:
            bound = error_bound(problem, result.diagonal, *result.fractions)
            good &= (bound <= problem.tolerated).all(axis=1)
    return good


def on_the_spectrum(problem: Problem, diagonal: Any) -> Any:
    """For each of the batch, whether rounding H − zI by its last bit changes much of the result.

    d log θ_n = Σ G_ii d(a_i − z), so close to the axis that sum tells how far θ_n is from zero. Off
    the axis |G_ii| does, because a sum over many eigenvalues at a distance is large as well.
    """
    eps = problem.limits.eps
    near = abs(problem.z.imag) <= 2 / ON_THE_SPECTRUM * eps * problem.size
    if problem.guaranteed and not near.any():
        return near  # |G_ii| <= 1 / |Im z|
    size = abs(problem.a) + abs(problem.z)[:, None]
    size[:, :-1] += abs(problem.b)
    size[:, 1:] += abs(problem.c)
    weighted = size * diagonal
    change = numpy.where(near, abs(weighted.sum(axis=1)), abs(weighted).max(axis=1))
    return ~(eps * change < ON_THE_SPECTRUM)


def error_bound(problem: Problem, diagonal: Any, left: Any, right: Any) -> Any:
    """How far rounding may have moved each G_ii of the continued fraction, relative to it (B, n).

    Equation: E_i = (|l_i| (E_{i−1} + 4) + |a_i − z|) / |δ_i| + 1 in units of the last place, with
    l_i = b_{i−1} c_{i−1} / δ_{i−1}: every rounding error at its worst, to first order.

    Source: higham2002accuracy
    """
    shifted, products = abs(problem.shifted), abs(problem.products)
    left, right = abs(left), abs(right)
    from_left, from_right = numpy.zeros_like(left), numpy.zeros_like(right)
    from_left[1:] = products / left[:-1]
    from_right[:-1] = products / right[1:]
    after_left = _accumulated(from_left / left, (4 * from_left + shifted) / left + 1)
    after_right = _accumulated(
        (from_right / right)[::-1], ((4 * from_right + shifted) / right + 1)[::-1]
    )[::-1]
    moved = left * after_left
    moved[:-1] += from_right[:-1] * (after_right[1:] + 4)
    return (problem.limits.eps * (moved.T * abs(diagonal) + 2)).astype(float)


def _accumulated(factors: Any, terms: Any) -> Any:
    """x_i = factor_i x_{i−1} + term_i, in place of the terms."""
    for i in range(1, len(terms)):
        terms[i] += factors[i] * terms[i - 1]
    return terms


def refuse(problem: Problem, method: str) -> NoReturn:
    """Find out why this method's result cannot be trusted, and say what would work."""
    name, n = problem.formats[0].__name__, problem.n
    safe = _scaled(problem).diagonal
    with numpy.errstate(all="ignore"):
        singular = on_the_spectrum(problem, safe)
    if singular.any():
        row = int(singular.argmax())
        raise ResolventError(
            f"resolvent_diagonal(): z = {problem.z[row]:.6g} is an eigenvalue of H, or as close to"
            f" one as {name} can tell; take z off the spectrum{_of_row(problem, row)}"
        )
    works = "ratio" if problem.guaranteed else "scaled"
    if method == "theta_phi":
        length, row, kind = first_bad_minor(problem)
        raise ResolventError(
            f"resolvent_diagonal(): the recursion theta_phi {kind}s in {name} from length {length}"
            f", and a has {n} entries{_of_row(problem, row)}; method='{works}' does not"
        )
    if method == "ratio":
        raise ResolventError(
            f"resolvent_diagonal(): the continued fraction may lose half of the digits of {name};"
            f" it is sure for real a, b·c >= 0 and Im z != 0 alone: use method='scaled'"
            f"{' or dtype=complex128' if name == 'complex64' else ''}"
        )
    raise ResolventError(
        f"resolvent_diagonal(): a G_ii is larger than {name} can hold; use dtype='complex128'"
    )


def _of_row(problem: Problem, row: int) -> str:
    return f" (row {row} of the batch)" if len(problem.z) > 1 else ""


def first_bad_minor(problem: Problem) -> tuple[int, int, str]:
    """The length at which the minors leave the format first, the row of it, and to which side."""
    with numpy.errstate(all="ignore"):
        theta = minors(problem.shifted, problem.products)
        phi = minors(problem.shifted[::-1], problem.products[::-1])
    found = []
    for each in (theta, phi):
        bad = left_the_range(each)
        if bad.any():
            length = int(bad.any(axis=1).argmax())
            row = int(bad[length].argmax())
            kind = "underflow" if abs(each[length + 1, row]) < 1 else "overflow"
            found.append((length + 1, row, kind))
    return min(found, default=(problem.n, 0, "underflow"))
