"""The three methods compiled, in parallel over the batch.

A step of the recursion waits for the one before it, and most of that wait is a division. So the
ratio form takes LANES rows of the batch at a time, interleaved: the divisions of eight rows, which
LLVM keeps one by one, follow each other through the divider without a wait. That form divides as
conj(δ) / |δ|², which needs |δ|² within the number format; where that is not sure, and in what is no
full group of rows, it goes row by row in complex numbers.
"""

from __future__ import annotations

import math

import numba
import numpy

from calc.codesign.resolvent_problem import Array, Computed, Problem

LANES = 8
compiled = numba.njit(cache=True, error_model="numpy")
compiled_in_parallel = numba.njit(cache=True, error_model="numpy", parallel=True)


@compiled
def quotient(above: complex, below: complex) -> complex:
    """A complex quotient that is no number where it does not exist: numba's would raise."""
    return above / below if below != 0 else below * numpy.nan


@compiled
def size(number: complex) -> float:
    """The larger part of a complex number: its exponent, without a square root."""
    return max(abs(number.real), abs(number.imag))


def computed(problem: Problem, method: str) -> Computed:
    """A method's numbers for a checked problem that is not empty, good or bad."""
    arrays = (problem.a, problem.b, problem.c, problem.z)
    result = numpy.empty((len(problem.z), problem.n), problem.formats[1])
    if method == "ratio":
        if problem.guaranteed:
            in_lanes = problem.dtype != "mixed" and squares_fit(problem)
            grouped = len(problem.z) // LANES * LANES if in_lanes else 0
            if grouped:
                lanes_of_ratio(*(array[:grouped] for array in arrays), result[:grouped])
            if grouped < len(result):
                rows_of_ratio(*(array[grouped:] for array in arrays), result[grouped:])
            return Computed(result)
        left = numpy.empty((len(problem.z), problem.n), problem.formats[0])
        right = numpy.empty_like(left)
        rows_of_fractions(*arrays, left, right, result)
        return Computed(result, (left.T, right.T))
    if method == "scaled":
        rows_of_scaled(*arrays, result)
        return Computed(result)
    sound = rows_of_minors(*arrays, problem.limits.tiny, problem.limits.max / 2, result)
    return Computed(result, held=sound)


def squares_fit(problem: Problem) -> bool:
    """Return whether |Im z| <= |δ| <= |a − z| + b c / |Im z| has its square within the format."""
    limits = problem.limits
    smallest = float(abs(problem.z.imag).min())
    if smallest**2 <= limits.tiny / limits.eps:
        return False
    largest = problem.size + problem.size_of_products / smallest
    return bool(largest < math.sqrt(limits.max * limits.eps))


@compiled_in_parallel
def lanes_of_ratio(a: Array, b: Array, c: Array, z: Array, result: Array) -> None:
    """Continued fractions of LANES rows at a time, for real a, b and c.

    Each G_ii takes 26 FLOP, 3 of them divisions: a − Re z and b c, then 8 from either side (3 for
    |δ|², the division by it, 2 products and 2 differences) and 8 to be inverted.
    """
    groups, n = len(a) // LANES, a.shape[1]
    for group in numba.prange(groups):
        first = group * LANES
        shifted = numpy.empty((n, LANES), a.dtype)  # its imaginary part is that of −z
        products = numpy.zeros((n + 1, LANES), a.dtype)
        re, im = numpy.empty((n, LANES), a.dtype), numpy.empty((n, LANES), a.dtype)
        x, y = numpy.empty(LANES, a.dtype), numpy.empty(LANES, a.dtype)
        minus_z = numpy.empty(LANES, a.dtype)
        one = a.dtype.type(1)
        for lane in range(LANES):
            row = first + lane
            minus_z[lane] = -z[row].imag
            for i in range(n):
                shifted[i, lane] = a[row, i] - z[row].real
            for i in range(n - 1):
                products[i + 1, lane] = b[row, i] * c[row, i]
            x[lane], y[lane] = one, 0
        for i in range(n):
            for lane in range(LANES):
                share = products[i, lane] / (x[lane] * x[lane] + y[lane] * y[lane])
                x[lane] = shifted[i, lane] - x[lane] * share
                y[lane] = minus_z[lane] + y[lane] * share
                re[i, lane], im[i, lane] = x[lane], y[lane]
        for lane in range(LANES):
            x[lane], y[lane] = one, 0
        for i in range(n - 1, -1, -1):
            for lane in range(LANES):
                share = products[i + 1, lane] / (x[lane] * x[lane] + y[lane] * y[lane])
                from_right_re, from_right_im = x[lane] * share, -y[lane] * share
                x[lane] = shifted[i, lane] - from_right_re
                y[lane] = minus_z[lane] - from_right_im
                delta_re, delta_im = re[i, lane] - from_right_re, im[i, lane] - from_right_im
                inverse = one / (delta_re * delta_re + delta_im * delta_im)
                re[i, lane], im[i, lane] = delta_re * inverse, -delta_im * inverse
        for lane in range(LANES):
            for i in range(n):
                result[first + lane, i] = complex(re[i, lane], im[i, lane])


@compiled_in_parallel
def rows_of_ratio(a: Array, b: Array, c: Array, z: Array, result: Array) -> None:
    """Continued fractions of one row after the other, δ from the left kept in the result."""
    n = a.shape[1]
    for row in numba.prange(len(a)):
        delta = a[row, 0] - z[row]
        result[row, 0] = delta
        for i in range(1, n):
            delta = a[row, i] - z[row] - quotient(b[row, i - 1] * c[row, i - 1], delta)
            result[row, i] = delta
        result[row, n - 1] = quotient(1, result[row, n - 1])
        delta = a[row, n - 1] - z[row]
        for i in range(n - 2, -1, -1):
            from_right = quotient(b[row, i] * c[row, i], delta)
            result[row, i] = quotient(1, result[row, i] - from_right)
            delta = a[row, i] - z[row] - from_right


@compiled_in_parallel
def rows_of_fractions(
    a: Array, b: Array, c: Array, z: Array, left: Array, right: Array, result: Array
) -> None:
    """Compute the rows, and keep both continued fractions for the bound of their errors."""
    n = a.shape[1]
    for row in numba.prange(len(a)):
        left[row, 0], right[row, n - 1] = a[row, 0] - z[row], a[row, n - 1] - z[row]
        for i in range(1, n):
            from_left = quotient(b[row, i - 1] * c[row, i - 1], left[row, i - 1])
            left[row, i] = a[row, i] - z[row] - from_left
        result[row, n - 1] = quotient(1, left[row, n - 1])
        for i in range(n - 2, -1, -1):
            from_right = quotient(b[row, i] * c[row, i], right[row, i + 1])
            right[row, i] = a[row, i] - z[row] - from_right
            result[row, i] = quotient(1, left[row, i] - from_right)


@compiled_in_parallel
def rows_of_minors(
    a: Array, b: Array, c: Array, z: Array, tiny: float, top: float, result: Array
) -> Array:
    """Determinants as they are, and whether those of each row stayed within the format."""
    n = a.shape[1]
    sound = numpy.ones(len(a), numpy.bool_)
    for row in numba.prange(len(a)):
        theta = numpy.empty(n + 1, z.dtype)
        theta[0], theta[1] = 1, a[row, 0] - z[row]
        for i in range(1, n):
            theta[i + 1] = (a[row, i] - z[row]) * theta[i] - b[row, i - 1] * c[row, i - 1] * theta[
                i - 1
            ]
        for i in range(n):
            sound[row] &= within(theta[i], theta[i + 1], tiny, top)
        last = result.dtype.type(theta[n])
        before, phi = z.dtype.type(0), z.dtype.type(1)
        for i in range(n - 1, -1, -1):
            product = result.dtype.type(theta[i]) * result.dtype.type(phi)
            small = size(product) < numpy.finfo(result.dtype).tiny
            sound[row] &= not (small and theta[i] != 0 and phi != 0)
            result[row, i] = quotient(product, last)
            coupling = b[row, i] * c[row, i] * before if i < n - 1 else before
            before, phi = phi, z.dtype.type((a[row, i] - z[row]) * phi - coupling)
            sound[row] &= within(before, phi, tiny, top)
    return sound


@compiled
def within(before: complex, now: complex, tiny: float, top: float) -> bool:
    """Return whether a minor can be divided by, and it or the one before is a normal number."""
    return size(now) < top and max(size(before), size(now)) >= tiny


SCALE = 2.0**30


@compiled_in_parallel
def rows_of_scaled(a: Array, b: Array, c: Array, z: Array, result: Array) -> None:
    """Determinants that are brought back between 2⁻³⁰ and 1, with the powers of 2³⁰ counted."""
    n = a.shape[1]
    for row in numba.prange(len(a)):
        theta = numpy.empty(n + 1, z.dtype)
        powers = numpy.zeros(n + 1, numpy.int64)
        before, now, power = z.dtype.type(1), z.dtype.type(a[row, 0] - z[row]), 0
        theta[0], theta[1] = before, now
        for i in range(1, n):
            before, now, power = brought_back(before, now, power)
            coupling = b[row, i - 1] * c[row, i - 1] * before
            before, now = now, z.dtype.type((a[row, i] - z[row]) * now - coupling)
            theta[i + 1], powers[i + 1] = now, power
        before, now, power = z.dtype.type(0), z.dtype.type(1), 0
        for i in range(n - 1, -1, -1):
            share = quotient(numpy.complex128(theta[i]) * numpy.complex128(now), theta[n])
            exponent = 30 * (powers[i] + power - powers[n])
            result[row, i] = complex(
                math.ldexp(share.real, exponent), math.ldexp(share.imag, exponent)
            )
            coupling = b[row, i] * c[row, i] * before if i < n - 1 else before
            before, now = now, z.dtype.type((a[row, i] - z[row]) * now - coupling)
            before, now, power = brought_back(before, now, power)


@compiled
def brought_back(before: complex, now: complex, power: int) -> tuple[complex, complex, int]:
    """Two minors and their common power of 2³⁰, the larger of them between 2⁻³⁰ and 1."""
    down, up = type(before)(1 / SCALE), type(before)(SCALE)
    larger = max(size(before), size(now))
    while 1 < larger < numpy.inf:
        before, now, larger, power = before * down, now * down, larger / SCALE, power + 1
    while 0 < larger < 1 / SCALE:
        before, now, larger, power = before * up, now * up, larger * SCALE, power - 1
    return before, now, power
