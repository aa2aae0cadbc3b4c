"""The kernels compute what they are named for, and are counted as one would by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from scipy import special

from calc import quantity
from calc.measure import kernel_suite, pairs, suite
from calc.measure.kernel_suite import Kernel

SIZE = 2**20  # bytes
N32, N64 = SIZE // 4, SIZE // 8
TOKENS = SIZE // 4 // 32 // 128  # of the decoding step

# FLOP and bytes of each kernel for arrays of SIZE, written out by hand.
BY_HAND: dict[tuple[str, str], tuple[float, float]] = {
    ("GEMM 1024³", "fp64"): (2 * 1024**3, 3 * 1024**2 * 8),
    ("GEMM 1024³", "fp32"): (2 * 1024**3, 3 * 1024**2 * 4),
    ("GEMM 256³", "fp64"): (2 * 256**3, 3 * 256**2 * 8),
    ("GEMM, thin", "fp32"): (2 * N32 * 16, 4 * (64 * 16 + 16 * 4096 + N32)),
    ("GEMM, tall", "fp32"): (2 * N32 * 64, 4 * (2 * N32 + 64 * 64)),
    ("GEMM, 8 rows", "fp32"): (2 * 8 * N32, 4 * (8 * 4096 + N32 + 8 * 64)),
    ("GEMV", "fp64"): (2 * N64, 8 * (N64 + 4096 + 32)),
    ("GEMV", "fp32"): (2 * N32, 4 * (N32 + 4096 + 64)),
    ("scale", "fp64"): (N64, 2 * SIZE),
    ("add", "fp64"): (N64, 3 * SIZE),
    ("ReLU", "fp32"): (N32, 2 * SIZE),
    ("exp", "fp64"): (N64, 2 * SIZE),
    ("sum", "fp32"): (N32, SIZE),
    ("dot", "fp64"): (2 * N64, 2 * SIZE),
    ("row maxima", "fp32"): (N32, SIZE),
    ("softmax", "fp32"): (5 * N32, 8 * SIZE),
    ("layer norm", "fp32"): (7 * N32, 10 * SIZE),
    ("transpose", "fp32"): (0, 2 * SIZE),
    ("gather rows", "fp32"): (0, 2 * SIZE + 8 * N32 / 256),
    ("gather elements", "fp32"): (0, 2 * SIZE + 8 * N32),
    ("attention, prefill", "fp32"): (
        16 * (4 * 1024**2 * 64 + 5 * 1024**2),
        16 * 4 * (4 * 1024 * 64 + 2 * 1024**2 + 8 * 1024**2),
    ),
    ("attention, decode", "fp32"): (
        32 * (4 * TOKENS * 128 + 5 * TOKENS),
        32 * 4 * (2 * TOKENS * 128 + 2 * 128 + 2 * TOKENS + 8 * TOKENS),
    ),
    ("convolution", "fp32"): (
        18 * 64**2 * 126**2,
        4 * (128**2 * 64 + 2 * 126**2 * 576 + 576 * 64 + 126**2 * 64),
    ),
    ("resolvent", "fp64"): (24 * 2048 * 128, 40 * 2048 * 128),
}


def kernels_of(size: int) -> list[Kernel]:
    return [make() for make in suite(size)]


def test_counts_are_those_made_by_hand() -> None:
    counted = {(each.name, each.dtype): each.total for each in kernels_of(SIZE)}
    assert counted.keys() == BY_HAND.keys()
    for name, (operations, traffic) in BY_HAND.items():
        assert counted[name].operations.m_as("FLOP") == pytest.approx(operations), name
        assert counted[name].traffic.m_as("byte") == pytest.approx(traffic), name


def test_every_kernel_says_how_it_is_counted() -> None:
    makers = [
        kernel_suite.product,
        kernel_suite.matrix_vector,
        kernel_suite.softmax,
        kernel_suite.resolvent,
    ]
    makers += [
        kernel_suite.attention_prefill,
        kernel_suite.attention_decode,
        kernel_suite.convolution,
    ]
    for make in makers:
        assert "FLOP" in (make.__doc__ or "")


def ran(kernel: Kernel) -> Any:
    return kernel.run()


def random(*shape: int) -> Any:
    return numpy.random.default_rng(kernel_suite.SEED).random(shape, numpy.float32)


def test_softmax_and_layer_norm() -> None:
    x = random(SIZE // 4 // 4096, 4096)
    numpy.testing.assert_allclose(
        ran(kernel_suite.softmax(SIZE)), special.softmax(x, axis=1), rtol=1e-4
    )
    g = b = random(4096)
    normal = (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-5)
    numpy.testing.assert_allclose(ran(kernel_suite.layer_norm(SIZE)), normal * g + b, atol=2e-4)


def test_movement() -> None:
    a = random(SIZE // 4 // 4096, 4096)
    assert (ran(kernel_suite.transpose(SIZE)) == a.T).all()
    for row in ((256,), ()):
        table = random(N32 // math.prod(row), *row)
        order = numpy.random.default_rng(kernel_suite.SEED).permutation(len(table))
        assert (ran(kernel_suite.gather("gather", SIZE, *row)) == table[order]).all()


def test_attention() -> None:
    q, k, v = (random(2, 32, 8) for _ in range(3))
    weights = special.softmax(numpy.einsum("htw,hsw->hts", q, k), axis=-1)
    expected = numpy.einsum("hts,hsw->htw", weights, v)
    result = ran(kernel_suite.attention_prefill(heads=2, tokens=32, width=8))
    numpy.testing.assert_allclose(result, expected, rtol=1e-4)
    keys = values = random(2, 64, 8)
    query = random(2, 1, 8)
    weights = special.softmax(numpy.einsum("htw,hsw->hts", query, keys), axis=-1)
    result = ran(kernel_suite.attention_decode(2 * 64 * 8 * 4, heads=2, width=8))
    numpy.testing.assert_allclose(result, numpy.einsum("hts,hsw->htw", weights, values), rtol=1e-4)


def test_convolution() -> None:
    from scipy.signal import correlate  # a second that only this test needs

    image, weights = random(10, 10, 4), random(36, 4).reshape(3, 3, 4, 4)
    expected = numpy.stack(
        [
            sum(
                correlate(image[:, :, c], weights[:, :, c, o], mode="valid") for c in range(4)
            ).ravel()
            for o in range(4)
        ],
        axis=1,
    )
    result = ran(kernel_suite.convolution(channels=4, side=10))
    numpy.testing.assert_allclose(result, expected, rtol=1e-4)


def test_resolvent() -> None:
    random64 = numpy.random.default_rng(kernel_suite.SEED).random
    a, b = random64((3, 6)), numpy.random.default_rng(kernel_suite.SEED).random((3, 5))
    full = numpy.stack(
        [numpy.diag(a[i]) + numpy.diag(b[i], 1) + numpy.diag(b[i], -1) for i in range(3)]
    )
    inverse = numpy.linalg.inv(full - (0.5 + 1j) * numpy.eye(6))
    result = ran(kernel_suite.resolvent(batch=3, n=6))
    numpy.testing.assert_allclose(result, numpy.diagonal(inverse, axis1=1, axis2=2), rtol=1e-10)


def test_pairs_do_the_same_operations_and_give_the_same() -> None:
    for pair in pairs(SIZE):
        fast, slow = pair.fast(), pair.slow()
        assert fast.total.operations == slow.total.operations, pair.lever
        if pair.lever != "shape":
            assert fast.total.traffic < slow.total.traffic, pair.lever
            numpy.testing.assert_allclose(fast.run(), slow.run(), rtol=1e-6)


def test_pairs_are_counted_as_by_hand() -> None:
    counted = {pair.lever: (pair.fast().total, pair.slow().total) for pair in pairs(SIZE)}
    by_hand = {
        "layout": (N64, 3 * SIZE, N64 * (8 + 8 + 64)),
        "access pattern": (N32, N32 * (4 + 8 + 4 + 4), N32 * (64 + 8 + 4 + 4)),
        "fusion": (16 * N32, 2 * SIZE, 41 * SIZE),
        "shape": (2**28, 3 * 512**2 * 4, (8 * 4096 * 2 + 4096**2) * 4),
    }
    assert counted.keys() == by_hand.keys()
    for lever, (operations, fast, slow) in by_hand.items():
        assert counted[lever][0].operations == quantity(operations, "FLOP")
        assert counted[lever][0].traffic.m_as("byte") == pytest.approx(fast)
        assert counted[lever][1].traffic.m_as("byte") == pytest.approx(slow)


def test_horner_is_a_polynomial() -> None:
    x = numpy.linspace(0, 1, N32, dtype=numpy.float32)
    coefficients = [1.0, *[0.5] * 8]
    values = kernels_polynomial()
    numpy.testing.assert_allclose(values, numpy.polyval(coefficients, x), rtol=1e-5)


def kernels_polynomial() -> Any:
    fusion = next(pair for pair in pairs(SIZE) if pair.lever == "fusion")
    return fusion.fast().run()
