"""Integer quantisation: its bounds on any data, against formulas written down by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from calc import InputError, quantity, quantization as q

BUILDERS = [q.symmetric, q.asymmetric, q.affine]
every_builder = pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
BITS = [2, 3, 4, 8, 16, 32]

numbers = st.floats(-1e6, 1e6)
vectors = arrays(float, st.integers(1, 40), elements=numbers)
anything = arrays(float, array_shapes(max_dims=3, max_side=6), elements=numbers)
EPSILON = float(np.finfo(float).eps)


def slack(data: Any) -> float:
    """Return the error that floating point itself may add to that of a round trip."""
    return 4 * EPSILON * float(np.abs(data).max())


# --- the bounds, on any data ---


@every_builder
@given(data=anything, bits=st.sampled_from(BITS))
def test_the_error_is_at_most_half_a_step(build: Any, data: Any, bits: int) -> None:
    scheme = build(data, bits)
    error = np.abs(scheme.round_trip(data) - data)
    assert error.max() <= scheme.error_bound * (1 + 1e-6) + slack(data)


@every_builder
@given(data=arrays(float, (3, 4, 2), elements=numbers), axis=st.integers(-3, 2))
def test_the_bound_holds_in_every_channel(build: Any, data: Any, axis: int) -> None:
    scheme = build(data, axis=axis)
    assert scheme.scale.shape == (data.shape[axis],)
    errors = np.moveaxis(np.abs(scheme.round_trip(data) - data), axis, 0)
    for channel, error in enumerate(errors):
        assert error.max() <= scheme.error_bound[channel] * (1 + 1e-6) + slack(data)


@every_builder
@given(data=arrays(float, (2, 12), elements=numbers), size=st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_a_group_is_quantized_as_if_it_were_alone(build: Any, data: Any, size: int) -> None:
    scheme = build(data, 4, group_size=size)
    assert scheme.scale.shape == (2, 12 // size)
    restored = scheme.round_trip(data)
    for row in range(2):
        for first in range(0, 12, size):
            group = data[row, first : first + size]
            alone = build(group, 4).round_trip(group)
            assert restored[row, first : first + size].tolist() == alone.tolist()


@every_builder
@given(data=arrays(float, (3, 5), elements=numbers))
def test_a_channel_is_quantized_as_if_it_were_alone(build: Any, data: Any) -> None:
    codes = build(data, axis=0).quantize(data)
    assert codes.tolist() == [build(row).quantize(row).tolist() for row in data]


@every_builder
@given(data=vectors, bits=st.sampled_from(BITS))
def test_codes_keep_the_order_and_the_range(build: Any, data: Any, bits: int) -> None:
    scheme = build(data, bits)
    far = np.concatenate([data, [-1e300, 1e300]])
    codes = scheme.quantize(np.sort(far)).astype(np.int64)
    assert (np.diff(codes) >= 0).all()
    assert codes.min() == scheme.low
    assert codes.max() == scheme.high
    assert scheme.high - scheme.low + 1 == (2**bits - 1 if build is q.symmetric else 2**bits)


@pytest.mark.parametrize("build", [q.symmetric, q.affine])
@given(data=vectors, bits=st.sampled_from(BITS))
def test_zero_is_exact(build: Any, data: Any, bits: int) -> None:
    scheme = build(data, bits)
    assert scheme.low <= scheme.zero_point <= scheme.high
    assert scheme.quantize(0.0) == scheme.zero_point
    assert scheme.round_trip(0.0) == 0.0


@every_builder
@given(data=vectors, bits=st.sampled_from([2, 4, 8]))
def test_what_has_been_quantized_stays_as_it_is(build: Any, data: Any, bits: int) -> None:
    scheme = build(data, bits)
    codes = scheme.quantize(data)
    if scheme.scale > 1e3 * slack(data):  # or the codes are finer than floating point
        assert (scheme.quantize(scheme.dequantize(codes)) == codes).all()


# --- against formulas written down by hand ---


@given(data=vectors.filter(lambda data: np.abs(data).max() > 1e-3))
def test_the_formulas_of_the_book(data: Any) -> None:
    alpha = np.abs(data).max()
    exact = data / alpha * 127
    assert np.abs(q.symmetric(data).quantize(data) - exact).max() <= 0.5 + 1e-9
    alpha = data.max() - data.min()
    if alpha > 1e-3:
        exact = (data - data.min()) / alpha * 255
        assert np.abs(q.asymmetric(data).quantize(data) - exact).max() <= 0.5 + 1e-9


def onnx_dynamic_quantize_linear(data: Any) -> tuple[Any, float, int]:
    """DynamicQuantizeLinear-11 of ONNX, its rule in float64: codes, scale and zero point."""
    scale = (max(0.0, data.max()) - min(0.0, data.min())) / 255
    intermediate = 0 - min(0.0, data.min()) / scale
    zero_point = round(min(max(intermediate, 0.0), 255.0))  # Python's round is to even too
    codes = [min(max(round(each / scale) + zero_point, 0), 255) for each in data.tolist()]
    return codes, scale, zero_point


@given(data=vectors.filter(lambda data: np.abs(data).max() > 1e-3))
def test_the_zero_point_form_is_that_of_onnx(data: Any) -> None:
    codes, scale, zero_point = onnx_dynamic_quantize_linear(data)
    scheme = q.affine(data)
    assert scheme.scale == scale
    assert scheme.zero_point == zero_point
    assert scheme.quantize(data).tolist() == codes
    # DequantizeLinear-10: y = (x - x_zero_point) * x_scale
    assert scheme.dequantize(codes).tolist() == [(code - zero_point) * scale for code in codes]


def test_the_example_of_onnx() -> None:
    """The test case of QuantizeLinear: ties to even, clipping at both ends."""
    one = np.asarray(2.0)
    scheme = q.Scheme(one, np.asarray(128), np.asarray(0.0), 8, 0, 255)
    assert scheme.quantize([0, 2, 3, 1000, -254, -1000]).tolist() == [128, 129, 130, 255, 1, 0]


def test_ties_go_to_the_even_code() -> None:
    scheme = q.symmetric([127.0])
    assert scheme.scale == 1
    assert scheme.quantize([0.5, 1.5, 2.5, -0.5, -1.5]).tolist() == [0, 2, 2, 0, -2]


@pytest.mark.parametrize(("bits", "kind"), [(4, "int8"), (8, "int8"), (9, "int16"), (32, "int32")])
def test_codes_take_the_smallest_integers(bits: int, kind: str) -> None:
    assert q.symmetric([1.0], bits).quantize([1.0]).dtype == kind
    assert q.asymmetric([0.0, 1.0], bits).quantize([1.0]).dtype == "u" + kind


def test_relu_outputs_have_half_the_step() -> None:
    outputs = np.linspace(0, 6, 1001)
    ratio = q.symmetric(outputs).scale / q.affine(outputs).scale
    assert ratio == pytest.approx(255 / 127)
    assert q.affine(outputs).zero_point == 0


# --- calibration ---


@given(
    data=arrays(float, st.integers(2, 60), elements=numbers),
    percentile=st.sampled_from([50.1, 75, 90, 99, 99.9, 100]),
)
def test_percentiles_by_hand(data: Any, percentile: float) -> None:
    def by_hand(values: Any, rank: float) -> float:
        ordered = sorted(values.tolist())
        position = rank / 100 * (len(ordered) - 1)
        below = math.floor(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (ordered[above] - ordered[below]) * (position - below)

    largest = by_hand(np.abs(data), percentile)
    if largest > 1e-3:
        scale = q.symmetric(data, percentile=percentile).scale
        assert scale == pytest.approx(largest / 127, rel=1e-6)
    low, high = by_hand(data, 100 - percentile), by_hand(data, percentile)
    if high - low > 1e-3:
        scheme = q.asymmetric(data, percentile=percentile)
        assert scheme.offset == pytest.approx(low, rel=1e-6, abs=1e-6)
        assert scheme.scale == pytest.approx((high - low) / 255, rel=1e-6)


def bell(count: int) -> Any:
    """A bell of data without chance: equally spaced quantiles of a logistic distribution."""
    ranks = (np.arange(count) + 0.5) / count
    return np.log(ranks / (1 - ranks))


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_the_least_error_is_that_of_a_search_by_hand(bits: int) -> None:
    data = bell(501)
    steps = np.linspace(1e-3, 1, 4001) * np.abs(data).max() / (2 ** (bits - 1) - 1)
    limit = 2 ** (bits - 1) - 1
    errors = [
        np.mean((np.clip(np.round(data / step), -limit, limit) * step - data) ** 2)
        for step in steps
    ]
    scheme = q.symmetric(data, bits).least_error(data)
    error = np.mean((scheme.round_trip(data) - data) ** 2)
    assert error <= 1.02 * min(errors)
    whole_range = np.mean((q.symmetric(data, bits).round_trip(data) - data) ** 2)
    assert error < whole_range if bits <= 4 else error <= whole_range


@every_builder
@settings(max_examples=settings().max_examples // 5)
@given(data=arrays(float, (2, 8), elements=numbers))
def test_the_least_error_is_never_worse_and_each_channel_has_its_own(build: Any, data: Any) -> None:
    scheme = build(data, 3, axis=0)
    best = scheme.least_error(data)

    def errors(scheme: q.Scheme) -> Any:
        return ((scheme.round_trip(data) - data) ** 2).mean(axis=1)

    assert (errors(best) <= errors(scheme) * (1 + 1e-9) + 1e-300).all()
    for row, error in zip(data, errors(best), strict=True):
        alone = build(row, 3).least_error(row).round_trip(row)
        assert error == pytest.approx(((alone - row) ** 2).mean(), rel=1e-9, abs=1e-300)


# --- nothing to choose a step from ---


@every_builder
@pytest.mark.parametrize("value", [0.0, 5e-324, -5e-324])
def test_a_channel_of_zeros_has_the_scale_1(build: Any, value: float) -> None:
    data = [[value, value], [1.0, -2.0]]
    scheme = build(data, axis=0)
    assert scheme.scale[0] == 1
    assert (scheme.quantize(data)[0] == scheme.zero_point[0]).all()
    assert scheme.round_trip(data)[0] == pytest.approx([0, 0], abs=1e-300)


def test_one_value_alone_is_exact_in_the_asymmetric_form() -> None:
    assert q.asymmetric([3.7, 3.7]).round_trip([3.7]).tolist() == [3.7]


# --- integer matrix products ---

codes = st.integers(0, 255)


@given(
    left=arrays(np.uint8, (3, 5), elements=codes),
    right=arrays(np.uint8, (5, 2), elements=codes),
    left_zero=arrays(np.int64, 3, elements=codes),
    right_zero=arrays(np.int64, 2, elements=codes),
)
def test_zero_points_are_taken_out(left: Any, right: Any, left_zero: Any, right_zero: Any) -> None:
    product = q.integer_matmul(left, right, left_zero, right_zero)
    for row in range(3):
        for column in range(2):
            terms = [
                (int(left[row, k]) - int(left_zero[row]))
                * (int(right[k, column]) - int(right_zero[column]))
                for k in range(5)
            ]
            assert product[row, column] == sum(terms)
    assert product.dtype == np.int32


@given(left=arrays(float, (3, 6), elements=numbers), right=arrays(float, (6, 2), elements=numbers))
def test_a_real_product_from_integers(left: Any, right: Any) -> None:
    a, b = q.affine(left, axis=0), q.symmetric(right, axis=1)
    product = q.integer_matmul(a.quantize(left), b.quantize(right), a.zero_point, b.zero_point)
    restored = a.round_trip(left) @ b.round_trip(right)
    tolerance = 1e-12 * (np.abs(a.round_trip(left)) @ np.abs(b.round_trip(right))).max()
    real = np.outer(a.scale, b.scale) * product
    assert real == pytest.approx(restored, abs=tolerance + 1e-300)


@pytest.mark.parametrize(
    ("largest", "other", "count"),
    [(127, 127, 133144), (128, 128, 131071), (255, 127, 66311), (255, 255, 33025)],
)
def test_products_that_an_accumulator_holds(largest: int, other: int, count: int) -> None:
    assert q.products_without_overflow(largest, other) == quantity(count, "")
    assert count * largest * other <= 2**31 - 1 < (count + 1) * largest * other


def test_one_product_more_is_refused() -> None:
    row = np.full((1, 133_144), 127, dtype=np.int8)
    assert q.integer_matmul(row, row.T).item() == 133_144 * 127**2
    longer = np.full((1, 133_145), 127, dtype=np.int8)
    with pytest.raises(InputError, match="a sum of 133145 products may overflow a 32-bit"):
        q.integer_matmul(longer, longer.T)


# --- what is left of the signal ---


def test_a_sine_loses_six_decibels_a_bit() -> None:
    wave = np.sin(np.linspace(0, 200 * math.pi, 100_003))
    for bits in (6, 8, 10, 12):
        expected = q.expected_sqnr(bits, 2**0.5).magnitude
        assert expected == pytest.approx(6.0206 * bits + 1.7609, abs=1e-3)
        # Both ends are codes here, so there are 2^b - 1 steps in the range and not 2^b.
        shortfall = 20 * math.log10(2**bits / (2**bits - 1))
        measured = q.sqnr(wave, q.asymmetric(wave, bits).round_trip(wave))
        assert measured == pytest.approx(expected - shortfall, abs=0.3)


def test_sqnr_by_hand() -> None:
    assert q.sqnr([3.0, 4.0], [3.0, 3.5]) == pytest.approx(10 * math.log10(25 / 0.25))
    assert q.sqnr([1.0], [1.0]) == math.inf
    assert q.sqnr([0.0], [1.0]) == -math.inf
    assert q.sqnr([3e200, 4e200], [3e200, 3.5e200]) == pytest.approx(20)


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: q.symmetric([1.0, math.nan]), "data must be finite; got nan"),
        (lambda: q.affine([-math.inf]), "data must be finite; got -inf"),
        (lambda: q.asymmetric([]), "data must hold at least one number; got none"),
        (lambda: q.symmetric("1 GB"), "a number, or a list or array of numbers, is needed"),
        (lambda: q.symmetric([1.0], 1), "bits must be between 2 and 32; got 1"),
        (lambda: q.symmetric([1.0], 33), "bits must be between 2 and 32; got 33"),
        (lambda: q.symmetric([1.0], 8.0), r"bits must be a whole number; got 8\.0"),
        (lambda: q.symmetric([1.0], axis=1), "axis must be one of the data's 1; got 1"),
        (lambda: q.symmetric([1.0], axis=0.0), r"axis must be one of the data's 1; got 0\.0"),
        (
            lambda: q.symmetric([1.0, 2.0, 3.0], group_size=2),
            "group_size must divide the length of the last axis, 3; got 2",
        ),
        (lambda: q.symmetric([1.0], group_size=0), "group_size must be a whole number from 1"),
        (lambda: q.symmetric(1.0, group_size=1), "group_size must divide the length of the last"),
        (lambda: q.symmetric([1.0], axis=0, group_size=1), "leave out axis=0"),
        (lambda: q.symmetric([1.0], percentile=50), "percentile must be above 50 and at most 100"),
        (lambda: q.affine([1.0], percentile=101), "percentile must be above 50 and at most 100"),
        (lambda: q.affine([-1.5e308, 1.5e308]), "the data span more than a floating-point number"),
        (lambda: q.symmetric([1.0]).quantize([math.nan]), "data must be finite; got nan"),
        (lambda: q.symmetric([1.0]).shrunk(0), "fraction must be above 0 and at most 1; got 0"),
        (
            lambda: q.symmetric([[1.0, 2.0]], axis=1).quantize([[1.0, 2.0, 3.0]]),
            r"an array of shape \(1, 2\) is needed; got shape \(1, 3\)",
        ),
        (
            lambda: q.symmetric([[1.0, 2.0]], group_size=2).quantize([1.0, 2.0]),
            r"an array of shape \(1, 2\) is needed; got shape \(2,\)",
        ),
        (lambda: q.integer_matmul([[1.5]], [[1]]), "left must be whole numbers"),
        (lambda: q.integer_matmul([[1]], [[1]], 0, 0.5), "right_zero_point must be whole numbers"),
        (lambda: q.integer_matmul([[1, 2]], [[1]]), r"got shapes \(1, 2\) and \(1, 1\)"),
        (lambda: q.integer_matmul([1], [[1]]), "needs two matrices"),
        (lambda: q.sqnr([1.0, 2.0], [1.0]), r"an array of shape \(2,\) is needed"),
        (lambda: q.symmetric_step(1, 65), "bits must be between 2 and 64; got 65"),
    ],
)
def test_refusals(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refusal:
        call()
    assert "\n" not in str(refusal.value)


RAGGED = [[1], [1, 2]]


@pytest.mark.parametrize("arguments", [(RAGGED, [[1]]), ([[1]], RAGGED), ([[1]], [[1]], RAGGED)])
def test_rows_of_unequal_length_are_refused(arguments: Any) -> None:
    with pytest.raises(InputError, match="rows are of one length"):
        q.integer_matmul(*arguments)
    with pytest.raises(InputError, match="rows are of one length"):
        q.symmetric([1.0]).dequantize(RAGGED)
    with pytest.raises(InputError, match="list or array of numbers"):
        q.symmetric(RAGGED)
