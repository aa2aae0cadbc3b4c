"""Error of the resolvent in each number format, and the length at which its recursion ends.

Errors are told both ways. |G| is at most 1 / |Im z|, for real a and b c >= 0, so that an absolute
threshold says more about z than about the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy
from numpy.random import Generator
from numpy.typing import ArrayLike

from calc.codesign.resolvent_numpy import (
    computed,
    continued_fractions,
    left_the_range,
    minors,
    scaled_minors,
)
from calc.codesign.resolvent_problem import DTYPES, Array, Computed, Problem
from calc.codesign.resolvent_trust import trusted
from calc.core.arguments import one_of, whole_number
from calc.core.errors import InputError, abbreviated

# The methods in each format; scaled in mixed would be a third way to the same numbers.
COMBINATIONS = tuple(
    (method, dtype)
    for method in ("theta_phi", "scaled", "ratio")
    for dtype in ("complex64", "mixed", "complex128")
    if (method, dtype) != ("scaled", "mixed")
)


Sample: TypeAlias = tuple[Array, Array, Array, Array]


def _disorder(random: Generator, count: int, n: int) -> Sample:
    ones = numpy.ones((count, n - 1))
    return random.standard_normal((count, n)) - 2, ones, ones, numpy.full(count, 1j)


def _chain(random: Generator, count: int, n: int) -> Sample:
    ones = numpy.ones((count, n - 1))
    return numpy.full((count, n), -2.0), ones, ones, random.uniform(-4, 0, count) + 0.1j


def _symmetric(random: Generator, count: int, n: int) -> Sample:
    b = random.standard_normal((count, n - 1))
    return random.standard_normal((count, n)), b, b, random.uniform(-2, 2, count) + 0.5j


def _small(random: Generator, count: int, n: int) -> Sample:
    b = 0.2 * random.standard_normal((count, n - 1))
    return 0.2 * random.standard_normal((count, n)), b, b, numpy.full(count, 0.1j)


def _positive(random: Generator, count: int, n: int) -> Sample:
    b, c = abs(random.standard_normal((2, count, n - 1)))
    return random.standard_normal((count, n)), b, c, random.uniform(-2, 2, count) + 0.5j


def _signs(random: Generator, count: int, n: int) -> Sample:
    b, c = random.standard_normal((2, count, n - 1))
    return random.standard_normal((count, n)), b, c, random.uniform(-2, 2, count) + 0.5j


def _small_signs(random: Generator, count: int, n: int) -> Sample:
    b, c = 0.2 * random.standard_normal((2, count, n - 1))
    return 0.2 * random.standard_normal((count, n)), b, c, numpy.full(count, 0.1j)


# Random inputs by name: (random, count, n) to a (count, n), b, c, and z (count). The ratio form is
# guaranteed on all but the last two, where b c has any sign.
INPUT_KINDS: dict[str, Callable[[Generator, int, int], Sample]] = {
    "disorder": _disorder,  # a = −2 + N(0, 1), b = c = 1, z = i
    "chain": _chain,  # a = −2, b = c = 1, z anywhere above its band
    "symmetric": _symmetric,  # a and b = c from N(0, 1)
    "small": _small,  # a fifth of that, z = 0.1 i
    "positive": _positive,  # b and c from |N(0, 1)|, not equal
    "signs": _signs,  # b and c from N(0, 1), not equal
    "small signs": _small_signs,  # a fifth of that, z = 0.1 i
}


@dataclass(frozen=True)
class Onset:
    """Lengths at which the textbook recursion leaves a number format, for each row of a batch.

    `length` is the first n whose θ_n is out of range, or 0 where all given lengths hold; `kind`
    says "overflow" or "underflow". `growth` is γ, the logarithm by which |θ| grows in a step, and
    `predicted` the length at which eᵞⁿ leaves the format.
    """

    length: Array
    kind: Array
    growth: Array
    predicted: Array


def overflow_onset(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike, dtype: str = "complex64"
) -> Onset:
    """Return the length from which `theta_phi` leaves the format, and the one its growth predicts.

    Equation: n = ln(max) / γ

    max is the largest number of the format, 88.7 in logarithm for complex64 and 709.8 for
    complex128. Where θ shrinks, the smallest normal number takes its place, −87.3 and −708.4.

    >>> onset = overflow_onset([2.0] * 200, [1.0] * 199, [1.0] * 199, 2j)
    >>> int(onset.length), str(onset.kind), float(onset.growth.round(3))
    (83, 'overflow', 1.061)
    """
    one_of("overflow_onset(): dtype", dtype, DTYPES)
    problem = Problem.checked(a, b, c, z, dtype)
    with numpy.errstate(all="ignore"):
        theta = minors(problem.shifted, problem.products)
        bad = left_the_range(theta)
        first = bad.argmax(axis=0)
        length = numpy.where(bad.any(axis=0), first + 1, 0)
        small = abs(numpy.take_along_axis(theta, first[None] + 1, axis=0)[0]) < 1
        exact = Problem.checked(a, b, c, z, "complex128")
        mantissa, exponent = scaled_minors(exact.shifted, exact.products)
        grown = numpy.log(abs(mantissa[-1])) + exponent[-1] * math.log(2)
        growth = grown / problem.n
        limits = problem.limits
        edge = numpy.where(growth > 0, math.log(limits.max), math.log(limits.tiny))
        predicted = edge / growth
    kind = numpy.where(length == 0, "", numpy.where(small, "underflow", "overflow"))
    batch = problem.shape[:-1]
    return Onset(*(array.reshape(batch) for array in (length, kind, growth, predicted)))


@dataclass(frozen=True)
class Accuracy:
    """The worst errors of one method in one format over many samples of one kind and length.

    `refused` counts the samples that `resolvent_diagonal` would not answer, and `answered` is the
    worst relative error of the others. The errors before it are those of all samples, with what is
    not finite as infinitely wrong.
    """

    kind: str
    n: int
    method: str
    dtype: str
    samples: int
    refused: int
    absolute: float
    relative: float
    median_relative: float
    answered: float

    def as_dict(self) -> dict[str, float | str]:
        """Plain numbers and words."""
        return asdict(self)


def validate_mixed_precision_accuracy(
    samples: int = 100,
    lengths: Iterable[int] = (16, 64, 112, 256),
    kinds: Iterable[str] = tuple(INPUT_KINDS),
    seed: int = 0,
) -> list[Accuracy]:
    """The errors of every method and format, over random samples of every kind of input.

    They are held against the ratio form in extended precision, or against the dense inverse where
    numpy has no wider numbers than complex128. Of each sample the worst entry counts.

    >>> rows = validate_mixed_precision_accuracy(100, [112], ["disorder"])
    >>> error = {(row.method, row.dtype): row.relative for row in rows}
    >>> error["theta_phi", "mixed"], error["ratio", "complex64"] < 1e-6
    (inf, True)
    """
    samples = whole_number("validate_mixed_precision_accuracy(): samples", samples)
    lengths = [
        whole_number("validate_mixed_precision_accuracy(): a length", length) for length in lengths
    ]
    rows = []
    for kind in kinds:
        if kind not in INPUT_KINDS:
            raise InputError(
                f"validate_mixed_precision_accuracy(): kinds are {', '.join(INPUT_KINDS)};"
                f" got {abbreviated(kind)}"
            )
        for n in lengths:
            random = numpy.random.default_rng([seed, n])
            arrays = INPUT_KINDS[kind](random, samples, n)
            true = reference(*arrays)
            for method, dtype in COMBINATIONS:
                problem = Problem.checked(*arrays, dtype)
                rows.append(_compared(kind, method, problem, computed(problem, method), true))
    return rows


def _compared(kind: str, method: str, problem: Problem, result: Computed, true: Array) -> Accuracy:
    with numpy.errstate(all="ignore"):
        apart = abs(result.diagonal - true)
        absolute = _worst(apart)
        relative = _worst(apart / abs(true))
    good = trusted(problem, result)
    return Accuracy(
        kind=kind,
        n=problem.n,
        method=method,
        dtype=problem.dtype,
        samples=len(good),
        refused=int((~good).sum()),
        absolute=float(absolute.max()),
        relative=float(relative.max()),
        median_relative=float(numpy.median(relative)),
        answered=float(relative[good].max(initial=0.0)),
    )


def _worst(errors: Array) -> Array:
    return numpy.where(numpy.isnan(errors), numpy.inf, errors).max(axis=1)


def reference(a: Array, b: Array, c: Array, z: Array) -> Array:
    """The diagonals (B, n) with more digits than any method here has, or by another method."""
    if numpy.finfo(numpy.longdouble).eps < numpy.finfo(float).eps:
        shifted = (a - z[:, None]).T.astype(numpy.clongdouble)
        products = (b.astype(numpy.longdouble) * c).T
        left, right = continued_fractions(shifted, products)
        left[:-1] -= products / right[1:]
        return (1 / left).T.astype(complex)
    return numpy.linalg.inv(dense(a, b, c, z)).diagonal(axis1=1, axis2=2)


def dense(a: Array, b: Array, c: Array, z: Array) -> Array:
    """H − zI with all of its zeros, (B, n, n)."""
    matrices = numpy.zeros((*a.shape, a.shape[1]), complex)
    i = numpy.arange(a.shape[1])
    matrices[:, i, i] = a - z[:, None]
    matrices[:, i[:-1], i[1:]], matrices[:, i[1:], i[:-1]] = b, c
    return matrices
