"""Errors of casts and of sums of few bits, found again with the types of ml_dtypes and numpy.

Each function gives the number of a row of `calc.derivations` in the unit of that row, from the
numbers that the row draws, and of `calc` it asks nothing.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any

import ml_dtypes
import numpy

E2M1, E4M3, BF16 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
Array = numpy.ndarray[Any, Any]
TIMES = 16.0  # the outlier of blocks that are turned
PRODUCTS = 4096  # of a long sum


def cast(values: Array, kind: Any) -> Array:
    return values.astype(kind).astype(float)


def share_of(error: Array, values: Array) -> float:
    """Return the root mean square of the errors over that of the values, in per cent."""
    return float(100 * numpy.linalg.norm(error) / numpy.linalg.norm(values))


def mxfp4(blocks: Array, saturating: bool) -> Array:
    """Blocks of a power of two times E2M1: the largest value under 8, or under 6, of these."""
    largest = abs(blocks).max(axis=-1, keepdims=True)
    exponent = numpy.floor(numpy.log2(largest)) - 2
    if not saturating:
        exponent = numpy.ceil(numpy.log2(largest / 6))
    return cast((blocks / 2**exponent).clip(-6, 6), E2M1) * 2**exponent


def nvfp4(blocks: Array) -> Array:
    """Blocks of an E4M3 scale times E2M1, all of them times one scale, in FP32."""
    single = blocks.astype(numpy.float32)
    whole = abs(single).max() / numpy.float32(448 * 6)
    scale = (abs(single).max(axis=-1, keepdims=True) / 6 / whole).astype(E4M3)
    step = scale.astype(numpy.float32) * whole
    return cast(single / step, E2M1) * step


def bell_in_mxfp4() -> float:
    values = numpy.random.default_rng(seed=1).normal(size=2**16).reshape(-1, 32)
    return share_of(mxfp4(values, saturating=True) - values, values)


def bell_in_nvfp4() -> float:
    values = numpy.random.default_rng(seed=1).normal(size=2**16).reshape(-1, 16)
    return share_of(nvfp4(values) - values, values)


@cache
def turned(size: int) -> tuple[Array, Array]:
    """Blocks with one outlier each, and the matrix that turns them."""
    random = numpy.random.default_rng(seed=4)
    blocks = random.normal(size=(2048, size))
    blocks[:, 3] = TIMES * numpy.sign(blocks[:, 3])
    signs = random.choice([-1.0, 1.0], size)
    ones = [[(-1.0) ** (i & j).bit_count() for j in range(size)] for i in range(size)]
    return blocks, signs[:, None] * numpy.array(ones) / size**0.5


def outlier_in_mxfp4(rotated: bool) -> float:
    blocks, matrix = turned(32)
    if not rotated:
        return share_of(mxfp4(blocks, saturating=False) - blocks, blocks)
    return share_of(mxfp4(blocks @ matrix, saturating=False) @ matrix.T - blocks, blocks)


def outlier_in_nvfp4(rotated: bool) -> float:
    blocks, matrix = turned(16)
    if not rotated:
        return share_of(nvfp4(blocks) - blocks, blocks)
    return share_of(nvfp4(blocks @ matrix) @ matrix.T - blocks, blocks)


def products() -> tuple[Array, Any]:
    """Products of FP8 numbers, 32 rows of them, and the generator that drew these numbers."""
    random = numpy.random.default_rng(seed=3)
    left, right = cast(random.uniform(size=(2, 32, PRODUCTS)), E4M3)
    return left * right, random


def median_error(sums: Array) -> float:
    exact = products()[0].sum(axis=-1)
    return float(100 * numpy.median(abs(sums / exact - 1)))


def summed_in_bf16() -> float:
    total = numpy.zeros(32, BF16)
    for terms in products()[0].T:
        total = (total.astype(float) + terms).astype(BF16)
    return median_error(total.astype(float))


def summed_at_random() -> float:
    """Add up in BF16, where a draw decides between both neighbours."""
    terms, random = products()
    total = numpy.zeros(32)
    for term in terms.T:
        total = total + term
        step = 2.0 ** (numpy.floor(numpy.log2(total)) - 7)
        total = step * (total / step + random.random(32)).astype(int)
    return median_error(total)


def summed_by_kahan() -> float:
    total, lost = numpy.zeros((2, 32), BF16)
    for terms in products()[0].T:
        term = (terms - lost.astype(float)).astype(BF16)
        grown = total + term
        total, lost = grown, (grown - total) - term
    return median_error(total.astype(float))


def summed_in_tensor_cores() -> float:
    """Add 32 products at a time in whole steps, 14 bits below the largest of them."""
    register = numpy.zeros(32)
    for group in numpy.split(products()[0], PRODUCTS // 32, axis=-1):
        step = 2.0 ** (numpy.floor(numpy.log2(group.max(axis=-1, keepdims=True))) - 13)
        register = register + (step * (group // step)).sum(axis=-1)
        step = 2.0 ** (numpy.floor(numpy.log2(register)) - 13)
        register = step * (register // step)
    return median_error(register)


# --- whole numbers ---


def quantiles(count: int, stride: int = 1) -> Array:
    """The normal distribution's quantiles, in steps of so many."""
    bell = NormalDist()
    return numpy.array([bell.inv_cdf((i * stride % count + 0.5) / count) for i in range(count)])


def rounded(values: Array, bits: int, largest: Any) -> Array:
    """Values in the whole steps of a symmetric range."""
    most = 2 ** (bits - 1) - 1
    step = largest / most
    return numpy.rint(values / step).clip(-most, most) * step


def error_of_eight_bits() -> float:
    values = quantiles(4096)
    return float(((rounded(values, 8, values.max()) - values) ** 2).mean() ** 0.5)


def decibels_beside_an_outlier(own_scales: bool) -> float:
    """Signal over error of rows of the bell, one by one or with one that is 20 times as large."""
    values = quantiles(256, 97)
    error = rounded(values, 8, values.max() * (1 if own_scales else 20)) - values
    return float(10 * numpy.log10((values**2).sum() / (error**2).sum()))


def best_share(bits: int) -> float:
    """The share of the range, of all half per cents, whose errors are least."""
    values = quantiles(4096)
    shares = numpy.arange(1, 201) / 2
    errors = [((rounded(values, bits, s / 100 * values.max()) - values) ** 2).sum() for s in shares]
    return float(shares[numpy.argmin(errors)])
