"""Rounding as the formats do it, and integers that never wrap."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import InputError, formats
from calc.simulation import PRECISIONS, arithmetic

FLOATS = st.lists(st.floats(width=32), min_size=1, max_size=20)


@given(FLOATS)
def test_floats_round_as_their_format_does(values: list[float]) -> None:
    for name, form, dtype in (
        ("fp16", formats.FP16, np.float16),
        ("bf16", formats.BF16, ml_dtypes.bfloat16),
    ):
        rounded = arithmetic(name).activations(values)
        assert rounded.dtype == np.float32
        np.testing.assert_array_equal(rounded, np.float32(form.round(values)))
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(rounded, np.float32(np.float32(values).astype(dtype)))


def test_float32_is_left_alone() -> None:
    random = np.random.default_rng(0)
    values, weights, biases = (
        random.standard_normal(shape, dtype=np.float32) for shape in ((5, 7), (7, 3), (3,))
    )
    exact = values @ weights + biases
    np.testing.assert_array_equal(arithmetic("fp32").linear(values, weights, biases), exact)
    for name, share in (("fp16", 2e-3), ("bf16", 2e-2), ("int8", 2e-2)):
        off = np.abs(arithmetic(name).linear(values, weights, biases) - exact).max()
        assert 0 < off < share * np.abs(exact).max()


def test_float16_overflows_where_bfloat16_does_not() -> None:
    values, weights, biases = [[300.0]], [[300.0]], [0.0]
    assert np.isinf(arithmetic("fp16").linear(values, weights, biases))
    assert arithmetic("bf16").linear(values, weights, biases) == 90112.0  # 300² in 8 bits


def test_int8_sums_are_exact_in_32_bits_where_8_bits_would_wrap() -> None:
    inputs = 1000
    values, weights = np.ones((1, inputs)), np.ones((inputs, 2)) * [1, -2]
    result = arithmetic("int8").linear(values, weights, np.zeros(2))
    np.testing.assert_allclose(result, [[inputs, -2 * inputs]], rtol=1e-6)
    codes = np.full((1, inputs), 127, np.int8)
    assert (codes @ codes.T).item() != 127 * 127 * inputs  # what numpy does by itself


def test_int8_has_a_scale_for_each_channel_and_each_sample() -> None:
    random = np.random.default_rng(1)
    weights = random.standard_normal((64, 2)) * [1, 1000]  # one scale for both would lose the first
    values = random.standard_normal((2, 64)) * [[1], [1000]]
    exact = values @ weights
    result = arithmetic("int8").linear(values, weights, np.zeros(2))
    assert np.abs(result / exact - 1).max() < 0.1
    alone = arithmetic("int8").linear(values[:1], weights, np.zeros(2))
    np.testing.assert_array_equal(alone, result[:1])  # a sample's result is its own


def test_int8_biases_saturate_at_32_bits() -> None:
    result = arithmetic("int8").linear([[1e-9]], [[1e-9]], [1.0])
    assert 0 < result < 1  # the sum's steps are too small for this bias, and it did not wrap


def test_too_many_products_for_32_bits_are_refused() -> None:
    inputs = 133_145  # one more than 2³¹ / 127² holds
    with pytest.raises(InputError, match="may overflow a 32-bit accumulator"):
        arithmetic("int8").linear(np.ones((1, inputs)), np.ones((inputs, 1)), np.zeros(1))


@pytest.mark.parametrize("name", PRECISIONS)
def test_every_precision_pickles(name: str) -> None:
    assert pickle.loads(pickle.dumps(arithmetic(name))) is arithmetic(name)


@pytest.mark.parametrize("wrong", ["fp64", "fp8", "", None, 16, ["int8"]])
def test_an_unknown_precision_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"there is no precision .*; there are FP32, FP16, B"):
        arithmetic(wrong)  # type: ignore[arg-type]
