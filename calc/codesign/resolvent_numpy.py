"""The three methods in NumPy, which also measure and check what the other backends compute."""

from __future__ import annotations

import numpy

from calc.codesign.resolvent_problem import Array, Computed, Problem


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


def continued_fractions(shifted: Array, products: Array) -> tuple[Array, Array]:
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


def minors(shifted: Array, products: Array) -> Array:
    """θ_0 = 1, θ_1, ..., θ_n as (n + 1, B)."""
    theta = numpy.empty((len(shifted) + 1, *shifted.shape[1:]), shifted.dtype)
    theta[0], theta[1] = 1, shifted[0]
    step = numpy.empty_like(shifted[0])
    for i in range(1, len(shifted)):
        numpy.multiply(shifted[i], theta[i], out=theta[i + 1])
        numpy.multiply(products[i - 1], theta[i - 1], out=step)
        theta[i + 1] -= step
    return theta


def left_the_range(theta: Array) -> Array:
    """Return where, by length, a minor overflows or two in a row are below normal numbers.

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


def scaled_minors(shifted: Array, products: Array) -> tuple[Array, Array]:
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


def times_power_of_two(value: Array, exponent: Array) -> Array:
    """value · 2^exponent for complex numbers, without rounding."""
    result = numpy.empty_like(value)
    numpy.ldexp(value.real, exponent, out=result.real)
    numpy.ldexp(value.imag, exponent, out=result.imag)
    return result


def computed(problem: Problem, method: str) -> Computed:
    """A method's numbers in NumPy, good or bad."""
    return {"ratio": _ratio, "scaled": _scaled, "theta_phi": _theta_phi}[method](problem)
