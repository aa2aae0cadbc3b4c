"""Quantisation that knows its inputs, against least squares and searches written down by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calc import InputError, calibration as c, quantization as q

SEEDS = range(8)
every_seed = pytest.mark.parametrize("seed", SEEDS)


def problem(seed: int, rows: int = 3, width: int = 6) -> tuple[Any, Any]:
    """Weights, and inputs whose channels are correlated and differ in size."""
    random = np.random.default_rng(seed)
    mixed = random.standard_normal((40, width)) @ random.standard_normal((width, width))
    return random.standard_normal((rows, width)), mixed


def output_error(weights: Any, codes: Any, scheme: q.Scheme, inputs: Any) -> float:
    return float(((inputs @ (weights - scheme.dequantize(codes)).T) ** 2).sum())


# --- compensation ---


def damped(inputs: Any) -> Any:
    """The inputs with rows that add a hundredth of the mean square to each channel."""
    extra = 0.01 * (inputs**2).sum() / inputs.shape[1]
    return np.vstack([inputs, math.sqrt(extra) * np.eye(inputs.shape[1])])


def by_least_squares(weights: Any, inputs: Any, scheme: q.Scheme) -> Any:
    """Round a column, solve anew for all that are left, and so on: no Hessian, no Cholesky."""
    damped_inputs = damped(inputs)
    order = np.argsort(-(damped_inputs**2).sum(axis=0), kind="stable")
    columns = scheme.columns(weights.shape)
    codes = np.zeros(weights.shape, dtype=int)
    restored = np.zeros(weights.shape)
    for row in range(len(weights)):
        for position, column in enumerate(order):
            done, left = order[:position], order[position:]
            target = damped_inputs @ weights[row] - damped_inputs[:, done] @ restored[row, done]
            best = np.linalg.lstsq(damped_inputs[:, left], target, rcond=None)[0]
            tentative = np.full(len(weights), best[0])
            codes[row, column] = columns[column].quantize(tentative)[row]
            restored[row, column] = columns[column].dequantize(codes[:, column])[row]
    return codes


@every_seed
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": 1}, {"group_size": 3}])
def test_compensation_solves_a_least_squares_problem_in_each_step(
    seed: int, options: dict[str, int]
) -> None:
    weights, inputs = problem(seed)
    scheme = q.symmetric(weights, 3, **options)
    compensated = c.compensate(weights, inputs, scheme)
    assert compensated.tolist() == by_least_squares(weights, inputs, scheme).tolist()


def test_compensation_is_between_nearest_and_the_best_of_all_codes() -> None:
    nearest, compensated, best = [], [], []
    for seed in range(20):
        weights, inputs = problem(seed, rows=1, width=4)
        scheme = q.symmetric(weights, 2)
        every = itertools.product(range(scheme.low, scheme.high + 1), repeat=4)
        best.append(min(output_error(weights, np.array([each]), scheme, inputs) for each in every))
        nearest.append(output_error(weights, scheme.quantize(weights), scheme, inputs))
        codes = c.compensate(weights, inputs, scheme)
        compensated.append(output_error(weights, codes, scheme, inputs))
        assert compensated[-1] >= best[-1] * (1 - 1e-12)
    assert sum(best) < sum(compensated) < 0.7 * sum(nearest)


@every_seed
def test_inputs_that_are_not_correlated_leave_nothing_to_compensate(seed: int) -> None:
    weights, _ = problem(seed)
    scheme = q.symmetric(weights, 3, axis=0)
    inputs = np.diag([5.0, 0.1, 2.0, 1.0, 3.0, 0.7])
    assert c.compensate(weights, inputs, scheme).tolist() == scheme.quantize(weights).tolist()


@every_seed
def test_what_codes_hold_exactly_stays_as_it_is(seed: int) -> None:
    weights, inputs = problem(seed)
    scheme = q.symmetric(weights, 4, group_size=1)
    codes = c.compensate(weights, inputs, scheme)
    assert scheme.dequantize(codes) == pytest.approx(weights, rel=1e-12)


def test_channels_that_meet_nothing_are_rounded_to_the_nearest() -> None:
    weights, _ = problem(0)
    scheme = q.affine(weights, 4)
    compensated = c.compensate(weights, np.zeros((2, 6)), scheme)
    assert compensated.tolist() == scheme.quantize(weights).tolist()


@every_seed
def test_two_weights_leave_what_their_correlation_says(seed: int) -> None:
    _, inputs = problem(seed, width=2)
    first, second = inputs.T
    correlation = float(first @ second / math.sqrt((first @ first) * (second @ second)))
    moved = np.linalg.lstsq(second[:, None], first, rcond=None)[0]  # makes up for an error of 1
    left = ((first - second * moved) ** 2).sum() / (first**2).sum()
    assert c.error_left_by_compensation(abs(correlation)).magnitude == pytest.approx(left)


# --- scales ---


@every_seed
@pytest.mark.parametrize("group", [None, 3])
def test_the_search_for_scales_is_never_worse_than_none(seed: int, group: int | None) -> None:
    weights, inputs = problem(seed)
    inputs[:, 0] *= 30

    def round_trip(matrix: Any) -> Any:
        options: dict[str, int] = {"group_size": group} if group else {"axis": 0}
        return q.symmetric(matrix, 3, **options).round_trip(matrix)

    def error(scales: Any) -> float:
        restored = round_trip(weights * scales) / scales
        return float(((inputs @ (weights - restored).T) ** 2).sum())

    searched = c.activation_scales(weights, inputs, round_trip)
    mean = abs(inputs).mean(axis=0)
    candidates = [mean ** (strength / 20) for strength in range(20)]  # a factor changes nothing
    assert error(searched) <= error(np.ones(6))
    assert error(searched) == pytest.approx(min(map(error, candidates)))


def test_a_channel_that_is_zero_has_a_scale() -> None:
    weights = [[1.0, 2.0, 3.0]]
    inputs = [[1.0, 0.0, 4.0]]

    def round_trip(matrix: Any) -> Any:
        return q.symmetric(matrix, 3).round_trip(matrix)

    assert np.isfinite(c.activation_scales(weights, inputs, round_trip)).all()
    zeros = c.activation_scales(weights, np.zeros((1, 3)), round_trip)
    assert zeros.tolist() == [1, 1, 1]
    assert c.smoothing_scales(weights, inputs)[1] == 1
    assert c.smoothing_scales([[0.0, 1.0]], [[2.0, 4.0]]).tolist() == [1, 2]


@every_seed
def test_smoothing_changes_no_product_and_makes_both_sides_alike(seed: int) -> None:
    weights, inputs = problem(seed)
    scales = c.smoothing_scales(weights, inputs)
    assert (inputs / scales) @ (weights * scales).T == pytest.approx(inputs @ weights.T)
    sides = abs(inputs / scales).max(axis=0), abs(weights * scales).max(axis=0)
    assert sides[0] == pytest.approx(sides[1])
    whole = c.smoothing_scales(weights, inputs, 1.0)
    assert abs(inputs / whole).max(axis=0) == pytest.approx(np.ones(6))


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: c.compensate([1.0], [[1.0]], q.symmetric([1.0])), r"got shapes \(1,\) and"),
        (lambda: c.smoothing_scales([[1.0, 2.0]], [[1.0]]), r"got shapes \(1, 2\) and \(1, 1\)"),
        (lambda: c.smoothing_scales([[math.nan]], [[1.0]]), "weights must be finite; got nan"),
        (lambda: c.smoothing_scales([[1.0]], [[-math.inf]]), "inputs must be finite; got -inf"),
        (lambda: c.smoothing_scales([[1.0]], [[1.0]], 2), "strength must be between 0 and 1"),
        (lambda: c.smoothing_scales([[1.0]], [[1.0]], -1), "strength must be a number from 0"),
        (lambda: c.compensate([[1.0]], [[1.0]], 4), "needs a scheme, as of quantization"),
        (lambda: c.compensate([[1.0]], [[1e200]], q.symmetric([[1.0]])), "too large to be squared"),
        (lambda: c.activation_scales([[1.0]], [[1.0]], 3), "needs a function that rounds"),
        (lambda: c.error_left_by_compensation(1.1), "correlation must be between 0 and 1"),
    ],
)
def test_refusals(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refusal:
        call()
    assert "\n" not in str(refusal.value)
