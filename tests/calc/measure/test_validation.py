"""Predictions by hand, and what is made of a measurement that was too noisy."""

from __future__ import annotations

import math

import pytest

from calc import quantity
from calc.laws.roofline import Workload
from calc.measure import (
    Kernel,
    Measured,
    NoisyError,
    accelerator,
    error,
    median_error,
    predicted_time,
    validate,
    validation,
)
from tests.calc.measure.surveys import made_up

DEVICE = accelerator(made_up())  # 24 GB/s, 48 and 96 GFLOP/s


def kernel(*passes: tuple[str, str], dtype: str = "fp64") -> Kernel:
    works = tuple(Workload(quantity(flop), quantity(size)) for flop, size in passes)
    return Kernel("a test", "tests", dtype, works, lambda: None)


def test_each_pass_has_its_own_roof() -> None:
    one = kernel(("48 GFLOP", "12 GB"))
    assert predicted_time(one, DEVICE).m_as("s") == pytest.approx(1)  # compute
    both = kernel(("48 GFLOP", "12 GB"), ("1 FLOP", "48 GB"))
    assert predicted_time(both, DEVICE).m_as("s") == pytest.approx(1 + 2)
    assert predicted_time(kernel(("96 GFLOP", "1 B"), dtype="fp32"), DEVICE).m_as(
        "s"
    ) == pytest.approx(1)
    assert both.total == Workload(quantity("48 GFLOP + 1 FLOP"), quantity("60 GB"))


def test_a_noisy_kernel_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([Measured(quantity("3 s"), 0.1, 7, ""), None])

    def timed(*_: object) -> Measured:
        answer = next(answers)
        if answer is None:
            raise NoisyError("too noisy")
        return answer

    monkeypatch.setattr(validation, "timed", timed)
    progress: list[tuple[int, int]] = []
    work = kernel(("48 GFLOP", "12 GB"), ("1 FLOP", "12 GB"))
    steady, noisy = validate([lambda: work] * 2, DEVICE, lambda *step: progress.append(step))
    assert steady.ratio == pytest.approx(2)
    assert noisy.measured is None
    assert math.isnan(noisy.ratio)
    assert progress == [(0, 2), (1, 2)]


def test_errors_count_to_either_side() -> None:
    assert error(1.25) == pytest.approx(error(0.8)) == pytest.approx(0.25)
    assert median_error([1.0, 0.8, 4.0]) == pytest.approx(0.25)
