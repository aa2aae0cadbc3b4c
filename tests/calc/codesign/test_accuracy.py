"""Lengths at which the recursion ends, and errors of each format, against published ones."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from numpy.testing import assert_allclose

from calc.codesign import (
    INPUT_KINDS,
    ResolventError,
    overflow_onset,
    resolvent_diagonal,
    validate_mixed_precision_accuracy,
)
from calc.codesign.accuracy import COMBINATIONS, reference
from calc.core.errors import InputError
from tests.calc.codesign.test_resolvent import banded, dense


def inputs(kind: str, count: int, n: int, seed: int = 0) -> Any:
    return INPUT_KINDS[kind](numpy.random.default_rng(seed), count, n)


def test_where_the_disordered_chain_overflows() -> None:
    """Published: 106, 116, 124 as least, median and largest of 200; in complex128 about 917."""
    samples = inputs("disorder", 200, 1200)
    single = overflow_onset(*samples)
    assert set(single.kind) == {"overflow"}
    assert abs(single.length.min() - 106) <= 4
    assert abs(numpy.median(single.length) - 116) <= 2
    assert abs(single.length.max() - 124) <= 4
    double = overflow_onset(*samples, dtype="complex128")
    assert abs(numpy.median(double.length) - 917) <= 5
    assert_allclose(single.predicted * single.growth, 88.72, rtol=1e-3)  # ln 3.4e38
    assert_allclose(double.predicted * double.growth, 709.8, rtol=1e-3)  # ln 1.8e308
    assert_allclose(single.length, single.predicted, rtol=0.15)
    assert_allclose(double.length, double.predicted, rtol=0.05)


def test_small_entries_underflow() -> None:
    """Published: from about 69, of 62 to 73."""
    onset = overflow_onset(*inputs("small", 200, 400))
    assert set(onset.kind) == {"underflow"}
    assert 58 <= onset.length.min() <= 65
    assert abs(numpy.median(onset.length) - 69) <= 2
    assert (onset.growth < 0).all()
    assert_allclose(onset.predicted * onset.growth, -87.34, rtol=1e-3)  # ln 1.2e-38


def test_the_onset_is_where_the_kernel_begins_to_refuse() -> None:
    a, b, c, z = inputs("disorder", 10, 300)
    for row, length in enumerate(overflow_onset(a, b, c, z).length):
        here = (a[row, :length], b[row, : length - 1], c[row, : length - 1], z[row])
        with pytest.raises(ResolventError, match="from length"):
            resolvent_diagonal(*here, "theta_phi", "complex64")
        shorter = (a[row, : length - 2], b[row, : length - 3], c[row, : length - 3], z[row])
        got = resolvent_diagonal(*shorter, "theta_phi", "complex64")
        assert_allclose(got, dense(*shorter), rtol=1e-5)


def test_what_holds_has_no_onset() -> None:
    onset = overflow_onset([[2.0] * 30, [3.0] * 30], [1.0] * 29, [1.0] * 29, 1j)
    assert onset.length.tolist() == [0, 0]
    assert onset.kind.tolist() == ["", ""]
    assert (onset.predicted > 30).all()
    with pytest.raises(InputError, match=r"overflow_onset\(\): dtype must be one of"):
        overflow_onset([2.0], [], [], 1j, "float16")


@pytest.mark.parametrize("kind", INPUT_KINDS)
def test_the_reference_is_true(kind: str) -> None:
    a, b, c, z = inputs(kind, 3, 60)
    assert_allclose(reference(a, b, c, z), dense(a, b, c, z), rtol=1e-11)
    a, b, c, z = inputs(kind, 1, 4096)
    columns = [0, 1, 2000, 4095]
    expected = banded(a[0], b[0], c[0], z[0], columns)
    assert_allclose(reference(a, b, c, z)[0, columns], expected, rtol=1e-11)


@pytest.mark.slow
def test_the_claim_of_mixed_precision() -> None:
    """complex64 recursion with a complex128 division: not below 1e-4 from n = 112 on."""
    rows = {
        (row.kind, row.n, row.method, row.dtype): row
        for row in validate_mixed_precision_accuracy(100, (64, 112, 1024))
    }
    assert len(rows) == len(INPUT_KINDS) * 3 * len(COMBINATIONS)
    assert rows["disorder", 64, "theta_phi", "mixed"].absolute < 1e-5
    assert rows["disorder", 112, "theta_phi", "mixed"].absolute == numpy.inf
    assert rows["disorder", 112, "theta_phi", "mixed"].refused > 0
    for n in (64, 112, 1024):
        assert rows["disorder", n, "ratio", "complex64"].absolute < 1.4e-7
        for kind in INPUT_KINDS:
            exact = rows[kind, n, "ratio", "complex128"]
            assert exact.refused == 0
            assert exact.relative < (1e-12 if "signs" in kind else 2e-15)
            single = rows[kind, n, "ratio", "complex64"]
            if "signs" not in kind:  # guaranteed
                assert single.refused == 0
                assert single.absolute < 6.5e-6
    # Where any method answers, it is not by chance.
    for row in rows.values():
        assert row.answered < (1e-12 if row.dtype == "complex128" else 5e-4), row
        assert row.median_relative <= row.relative
        assert row.samples == 100


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"kinds are disorder, chain, .*; got 'dense'"):
        validate_mixed_precision_accuracy(kinds=["dense"])
    with pytest.raises(InputError, match="samples must be a whole number from 1"):
        validate_mixed_precision_accuracy(samples=0)
    with pytest.raises(InputError, match="a length must be a whole number from 1"):
        validate_mixed_precision_accuracy(lengths=[0])
