"""Checked batch of the resolvent's kernel, and the result that a method computes of it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from calc.core.errors import InputError, NumpyNeededError, abbreviated

try:
    import numpy
    from numpy.typing import ArrayLike, NDArray
except ImportError:
    raise NumpyNeededError("calc.codesign needs numpy, which is not installed") from None

Array: TypeAlias = NDArray[Any]
"""Numbers in a format that is chosen when it runs, real or complex."""
Shape: TypeAlias = tuple[int, ...]
Formats: TypeAlias = tuple[type[numpy.complexfloating], type[numpy.complexfloating]]

# The format of the recursions, and that of the division which ends them.
DTYPES: dict[str, Formats] = {
    "complex64": (numpy.complex64, numpy.complex64),
    "complex128": (numpy.complex128, numpy.complex128),
    "mixed": (numpy.complex64, numpy.complex128),
}


class ResolventError(InputError):
    """The method cannot give this diagonal in this number format; the message says which can."""


@dataclass(frozen=True)
class Problem:
    """A checked batch: a (B, n), b and c (B, n − 1), real where they can be, and z (B)."""

    a: Array
    b: Array
    c: Array
    z: Array
    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def checked(cls, a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike, dtype: str) -> Problem:
        """Arrays in the format of the recursion, or a sentence on what cannot be one."""
        working = DTYPES[dtype][0]
        arrays = [
            _entries(name, numbers) for name, numbers in zip("abcz", (a, b, c, z), strict=True)
        ]
        batch = batch_shape(*(array.shape for array in arrays))
        n = arrays[0].shape[-1]
        count = math.prod(batch)
        real = numpy.finfo(working).dtype
        within = []
        for name, array, shape in zip("abcz", arrays, ((n,), (n - 1,), (n - 1,), ()), strict=True):
            keeps_real = name != "z" and not numpy.iscomplexobj(array)
            with numpy.errstate(over="ignore"):
                cast = array.astype(real if keeps_real else working, copy=False)
            if cast is not array and not math.isfinite(largest(cast)):
                raise InputError(
                    f"resolvent_diagonal(): {name} holds {abs(array).max():.3g}, which is more than"
                    f" {working.__name__} can hold; dtype='complex128' may"
                )
            within.append(numpy.broadcast_to(cast, (*batch, *shape)).reshape(count, *shape))
        problem = cls(within[0], within[1], within[2], within[3], (*batch, n), dtype)
        problem._products_are_kept()
        return problem

    def _products_are_kept(self) -> None:
        """Refuse a problem whose b c leaves the format, which would make it another problem."""
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
            row, i = (int(index) for index in numpy.argwhere(wrong)[0])
            raise ResolventError(
                f"resolvent_diagonal(): b·c {'under' if lost[row, i] else 'over'}flows in"
                f" {self.formats[0].__name__} at {i}, where b is {self.b[row, i]:.3g} and c is"
                f" {self.c[row, i]:.3g}; multiply a, b, c and z by one number, and the diagonal"
                " with it"
            )

    @property
    def formats(self) -> Formats:
        """The formats of the recursion and of the result."""
        return DTYPES[self.dtype]

    @property
    def limits(self) -> numpy.finfo[numpy.floating]:
        """Limits of the recursion's format, as numpy has them: eps, tiny, max."""
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
    def shifted(self) -> Array:
        """a − z as (n, B), so that a step of the recursion is a row."""
        return numpy.ascontiguousarray((self.a - self.z[:, None]).T)

    @functools.cached_property
    def products(self) -> Array:
        """b c as (n − 1, B)."""
        return numpy.ascontiguousarray((self.b * self.c).T)

    @functools.cached_property
    def guaranteed(self) -> bool:
        """True if no δ of the continued fraction can be smaller than |Im z|, which is not 0."""
        real = not any(numpy.iscomplexobj(array) for array in (self.a, self.b, self.c))
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
        return sum(largest(array) for array in (self.a, self.b, self.c, self.z))


def largest(array: Array) -> float:
    """The largest absolute value, of either part; NaN where there is one. It makes no array."""
    if array.size == 0:
        return 0.0
    if numpy.iscomplexobj(array):
        # abs might overflow, and max() would lose a NaN
        return float(numpy.maximum(largest(array.real), largest(array.imag)))
    return float(numpy.maximum(-array.min(), array.max()))


def batch_shape(a: Shape, b: Shape, c: Shape, z: Shape) -> tuple[int, ...]:
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


def _entries(name: str, values: ArrayLike) -> Array:
    """The numbers of one argument, all of them finite."""
    try:
        array = numpy.asarray(values)
    except ValueError:
        array = numpy.asarray(None)
    if array.size == 0 and array.dtype == numpy.float64:
        return array
    if array.dtype.kind not in "iufc":
        raise InputError(
            f"resolvent_diagonal(): {name} must hold real or complex numbers;"
            f" got {abbreviated(values)}"
        )
    if array.dtype.kind in "fc" and not math.isfinite(largest(array)):
        first = tuple(int(index) for index in numpy.argwhere(~numpy.isfinite(array))[0])
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

    diagonal: Array
    fractions: tuple[Array, Array] | None = None
    held: Array | bool = True
