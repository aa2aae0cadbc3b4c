"""Peak rates of arithmetic: the best matrix product that the BLAS of NumPy does."""

from __future__ import annotations

import numpy

from calc.laws import roofline
from calc.measure.repeated_timing import Measured, timed
from calc.measure.threads import blas_threads

DTYPES = {"fp64": numpy.float64, "fp32": numpy.float32}
SIDES = (512, 1024, 2048)  # from what the second cache holds to what none does
SEED = 0


def rate(dtype: str, side: int, threads: int = 1) -> Measured:
    """Rate of one product of two square matrices.

    O = 2 · side³
    """
    random = numpy.random.default_rng(SEED)
    a, b = (random.random((side, side), numpy.float64).astype(DTYPES[dtype]) for _ in range(2))
    out = numpy.zeros_like(a)
    with blas_threads(threads):
        time = timed(
            lambda: numpy.matmul(a, b, out=out),
            f"{dtype} product of {side} × {side}, {threads} thread{'s' if threads > 1 else ''}",
        )
    return time.rate(roofline.gemm_operations(side, side, side))


def peak(dtype: str, threads: int = 1) -> Measured:
    """The best rate over SIDES."""
    rates = [rate(dtype, side, threads) for side in SIDES]
    return max(rates, key=lambda rate: float(rate.value.m_as("FLOP/s")))
