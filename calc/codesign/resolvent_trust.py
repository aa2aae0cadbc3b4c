"""Checks of which diagonals are to be trusted, and errors that explain the others.

Whatever backend computed it, a diagonal is looked at here; where it is refused, the same problem is
given to the NumPy methods, which find out why.
"""

from __future__ import annotations

from typing import NoReturn

import numpy

from calc.codesign.resolvent_numpy import computed, left_the_range, minors
from calc.codesign.resolvent_problem import Array, Computed, Problem, ResolventError

# Where rounding changes a result by more than this share of it, z is as good as an eigenvalue.
ON_THE_SPECTRUM = 1 / 32


def verified(problem: Problem, method: str, result: Computed) -> Array:
    """The diagonal (B, n), or a sentence on why it is not to be trusted."""
    if not trusted(problem, result).all():
        refuse(problem, method)
    return result.diagonal


def trusted(problem: Problem, result: Computed) -> Array:
    """Return a mask of the rows that are finite, off the spectrum, and sure of their digits."""
    with numpy.errstate(all="ignore"):
        good = result.held & numpy.isfinite(result.diagonal.sum(axis=1))
        good &= ~on_the_spectrum(problem, result.diagonal)
        if result.fractions and not problem.guaranteed:
            bound = error_bound(problem, result.diagonal, *result.fractions)
            good &= (bound <= problem.tolerated).all(axis=1)
    return good


def on_the_spectrum(problem: Problem, diagonal: Array) -> Array:
    """Return for each row whether rounding H − zI by its last bit changes much of the result.

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


def error_bound(problem: Problem, diagonal: Array, left: Array, right: Array) -> Array:
    """Return a bound on the relative rounding error of each G_ii of the continued fraction (B, n).

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


def _accumulated(factors: Array, terms: Array) -> Array:
    """x_i = factor_i x_{i−1} + term_i, in place of the terms."""
    for i in range(1, len(terms)):
        terms[i] += factors[i] * terms[i - 1]
    return terms


def refuse(problem: Problem, method: str) -> NoReturn:
    """Find out why this method's result cannot be trusted, and say what would work."""
    name, n = problem.formats[0].__name__, problem.n
    safe = computed(problem, "scaled").diagonal
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
    ends = []
    for minor in (theta, phi):
        bad = left_the_range(minor)
        if bad.any():
            length = int(bad.any(axis=1).argmax())
            row = int(bad[length].argmax())
            kind = "underflow" if abs(minor[length + 1, row]) < 1 else "overflow"
            ends.append((length + 1, row, kind))
    return min(ends, default=(problem.n, 0, "underflow"))
