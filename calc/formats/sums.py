"""Sums whose every step is rounded: in turn, in pairs, compensated, and in a tensor core.

Terms stand along the last axis; each function sums them to one number, in the format given.
"""

from __future__ import annotations

from typing import Any

from calc.core.arrays import Floats, numpy
from calc.core.errors import InputError
from calc.formats.coding import check_width, like, numbers
from calc.formats.floating import Float, check_float


def running_sum(terms: object, form: Float, random: numpy.random.Generator | None = None) -> Any:
    """Terms added one after the other, the sum rounded each time; stochastically with a generator.

    >>> from calc.formats import BF16
    >>> running_sum([1.0] * 1000, BF16)
    256.0
    """
    rounded = _rounded("running_sum", terms, form)
    total = numpy.zeros(rounded.shape[:-1])
    for step in range(rounded.shape[-1]):
        total = form.round(total + rounded[..., step], random=random)
    return like(rounded[..., 0], total)


def pairwise_sum(terms: object, form: Float) -> Any:
    """The sum of the sums of both halves, and so on down to single terms.

    >>> from calc.formats import BF16
    >>> pairwise_sum([1.0] * 1000, BF16)
    1000.0
    """
    rounded = _rounded("pairwise_sum", terms, form)
    part = rounded
    while part.shape[-1] > 1:
        if part.shape[-1] % 2:
            part = numpy.concatenate([part, numpy.zeros_like(part[..., :1])], axis=-1)
        part = numpy.asarray(form.round(part[..., ::2] + part[..., 1::2]))
    return like(rounded[..., 0], part[..., 0])


def kahan_sum(terms: object, form: Float) -> Any:
    """A running sum that carries what each rounding lost, and adds it to the next term.

    >>> from calc.formats import BF16
    >>> kahan_sum([1.0] * 1000, BF16)
    1000.0
    """
    rounded = _rounded("kahan_sum", terms, form)
    total = lost = numpy.zeros(rounded.shape[:-1])
    for step in range(rounded.shape[-1]):
        term = form.round(rounded[..., step] - lost)
        grown = form.round(total + term)
        lost = form.round(form.round(grown - total) - term)
        total = grown
    return like(rounded[..., 0], numpy.asarray(total))


def neumaier_sum(terms: object, form: Float) -> Any:
    """Return Neumaier's sum: like Kahan's, but right too where a term exceeds the sum so far.

    >>> from calc.formats import BF16
    >>> neumaier_sum([1.0, 1e30, 1.0, -1e30], BF16), kahan_sum([1.0, 1e30, 1.0, -1e30], BF16)
    (2.0, 0.0)
    """
    rounded = _rounded("neumaier_sum", terms, form)
    total = lost = numpy.zeros(rounded.shape[:-1])
    for step in range(rounded.shape[-1]):
        term = form.round(rounded[..., step])
        grown = form.round(total + term)
        larger = numpy.abs(total) >= numpy.abs(term)
        high, low = numpy.where(larger, total, term), numpy.where(larger, term, total)
        lost = form.round(lost + form.round(form.round(high - grown) + low))
        total = grown
    return like(rounded[..., 0], numpy.asarray(form.round(total + lost)))


def tensor_core_sum(
    products: object, bits: int = 14, depth: int = 32, promoted_after: int | None = None
) -> Any:
    """Products summed as Hopper's tensor cores sum those of FP8, in a model of so many bits.

    So many products at a time (`depth`) are shifted to the exponent of their largest, cut off
    behind `bits` bits and added; that sum is added to a register, which is cut off likewise. With
    `promoted_after` the register is emptied into an FP32 sum after so many products, as kernels
    do that need more than the register keeps. Cutting off is towards zero, so errors of positive
    products do not cancel.

    >>> tensor_core_sum([0.3] * 4096), tensor_core_sum([0.3] * 4096, promoted_after=128)
    (1224.375, 1228.75)
    """
    check_width("tensor_core_sum(): bits", bits, 2, 24)
    check_width("tensor_core_sum(): depth", depth, 1, 2**20)
    terms = _terms(products)
    if promoted_after is not None:
        check_width("tensor_core_sum(): promoted_after", promoted_after, depth, 2**30)
        if promoted_after % depth:
            raise InputError(
                f"tensor_core_sum() promotes after a multiple of its depth, {depth};"
                f" got promoted_after={promoted_after}"
            )
    register = numpy.zeros(terms.shape[:-1], float)
    total = numpy.zeros(terms.shape[:-1], numpy.float32)
    for start in range(0, terms.shape[-1], depth):
        group = terms[..., start : start + depth]
        largest = numpy.max(numpy.abs(group), axis=-1, keepdims=True)
        register = register + _cut_off(group, largest, bits).sum(axis=-1)
        register = _cut_off(register, numpy.abs(register), bits)
        if promoted_after and (start + depth) % promoted_after == 0:
            total = total + register.astype(numpy.float32)
            register = numpy.zeros_like(register)
    return like(terms[..., 0], (total + register.astype(numpy.float32)).astype(float))


def _cut_off(values: Floats, largest: Floats, bits: int) -> Floats:
    """Values without what is behind so many bits, counted from the first of the largest one."""
    last = numpy.frexp(largest)[1] - bits
    high: Floats = numpy.ldexp(numpy.trunc(numpy.ldexp(values, -last)), last)
    return high


def _rounded(name: str, terms: object, form: object) -> Floats:
    """The terms of a sum that a format rounds, which must be one of floating point."""
    check_float(f"{name}(): form", form)
    return _terms(terms)


def _terms(values: object) -> Floats:
    terms = numbers(values)
    if not terms.ndim or not terms.shape[-1]:
        raise InputError("a sum needs terms along the last axis of an array; got none")
    return terms
