"""Arithmetic of a layer in fewer bits: FP16, BF16 or INT8 in place of FP32.

Each precision says how many bytes an element takes and does the arithmetic of a layer as its format
does. FP16 and BF16 round weights, biases and activations to the format and add up in FP32, as
matrix units do. INT8 gives each output channel of the weights and each sample its own symmetric
scale, multiplies whole numbers and adds them up in 32 bits, where nothing wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy

from calc import formats
from calc.core.arrays import Floats, Single
from calc.core.errors import InputError, abbreviated
from calc.laws import quantization

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ACCUMULATOR_MAX = 2**31 - 1


class Arithmetic(Protocol):
    """A number format at work: its name, the bytes of an element, and a layer's arithmetic."""

    name: str
    element_bytes: int

    def weights(self, weights: ArrayLike) -> Single:
        """Return the weights as they are after rounding to this precision, as FP32 numbers."""

    def activations(self, values: ArrayLike) -> Single:
        """Return a layer's output after rounding to this precision, as FP32 numbers."""

    def linear(self, values: Single, weights: Single, biases: Single) -> Single:
        """`values @ weights + biases`, as this precision computes it."""


class _Rounded:
    """A floating-point format: everything that is kept is rounded to it, sums are FP32."""

    def __init__(self, form: formats.Float) -> None:
        self.name, self.element_bytes = form.key, form.bits // 8
        self._rounded: Callable[[ArrayLike], Single] = form.round_fp32

    def __reduce__(self) -> tuple[Callable[[str], Arithmetic], tuple[str]]:
        return arithmetic, (self.name,)

    def weights(self, weights: ArrayLike) -> Single:
        return self._rounded(weights)

    def activations(self, values: ArrayLike) -> Single:
        return self._rounded(values)

    def linear(self, values: Single, weights: Single, biases: Single) -> Single:
        # What FP16 cannot hold became infinite in rounding, and 0 · ∞ is NaN: both are answers.
        with numpy.errstate(over="ignore", invalid="ignore"):
            sums = self._rounded(values) @ self._rounded(weights) + self._rounded(biases)
        return self._rounded(sums)


class _Int8:
    """Whole numbers of eight bits, with scales."""

    name, element_bytes = "int8", 1

    def __reduce__(self) -> tuple[Callable[[str], Arithmetic], tuple[str]]:
        return arithmetic, (self.name,)

    def weights(self, weights: ArrayLike) -> Single:
        return _single(quantization.symmetric(weights, 8, axis=1).round_trip(weights))

    def activations(self, values: ArrayLike) -> Single:
        return _single(quantization.symmetric(values, 8, axis=0).round_trip(values))

    def linear(self, values: Single, weights: Single, biases: Single) -> Single:
        of_samples = quantization.symmetric(values, 8, axis=0)
        of_channels = quantization.symmetric(weights, 8, axis=1)
        codes = of_samples.quantize(values), of_channels.quantize(weights)
        step = of_samples.scale[:, None] * of_channels.scale
        # The biases are kept in the steps of the sums; what is beyond 32 bits saturates.
        offsets = numpy.clip(numpy.rint(biases / step), -ACCUMULATOR_MAX, ACCUMULATOR_MAX)
        sums = quantization.integer_matmul(*codes) + offsets
        return _single(numpy.clip(sums, -ACCUMULATOR_MAX, ACCUMULATOR_MAX) * step)


def _single(values: Floats) -> Single:
    return values.astype(numpy.float32)


_FLOATS = (_Rounded(formats.FP32), _Rounded(formats.FP16), _Rounded(formats.BF16))
PRECISIONS: dict[str, Arithmetic] = {form.name: form for form in _FLOATS} | {"int8": _Int8()}


def arithmetic(precision: str) -> Arithmetic:
    """Return the arithmetic of a precision: FP32, FP16, BF16 or INT8, in any spelling.

    >>> arithmetic("bfloat16").name, arithmetic("bf16").element_bytes
    ('bf16', 2)
    >>> arithmetic("BF16").activations([0.1, 300.0]).tolist()
    [0.10009765625, 300.0]
    """
    try:
        return PRECISIONS[formats.get(precision).key]
    except (InputError, KeyError):
        listing = ", ".join(PRECISIONS).upper()
        raise InputError(
            f"there is no precision {abbreviated(precision)}; there are {listing}"
        ) from None
