"""The resolvent's backends on the device, beside eager torch and the vendor's batched solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy
import torch

from calc.codesign.accuracy import INPUT_KINDS
from calc.codesign.resolvent import missing
from calc.codesign.resolvent_problem import Problem
from calc.codesign.resolvent_torch import columns
from calc.measure.gpu.bench import Bench, Case, Row, Work, unmeasured

SIZES = tuple(product((64, 1024, 16384), (64, 256, 1024)))
LARGEST = 2**30  # bytes of dense matrices that the solver may take


def cases(bench: Bench) -> Iterator[Case]:
    """The diagonal of a batch of resolvents: a loop of torch's, our kernel, and a dense inverse."""
    sizes = ((4, 8),) if bench.small else SIZES
    for dtype, way, (batch, n) in product(("complex64", "complex128"), WAYS, sizes):
        labels = {"way": way, "dtype": dtype, "batch": batch, "n": n}
        yield Case(labels, partial(_timed, bench, way, dtype, batch, n))


def _timed(bench: Bench, way: str, dtype: str, batch: int, n: int) -> Row:
    if way == "triton" and (why := missing("triton")):
        return unmeasured(why)
    if way == SOLVER and batch * n**2 * _bytes(dtype) > LARGEST:
        return unmeasured("dense matrices of this batch take more than a gibibyte")
    return bench.time(lambda: WAYS[way](bench, dtype, batch, n), f"{way} of {batch} × {n}")


def _swept(bench: Bench, dtype: str, batch: int, n: int, *, backend: str) -> Work:
    problem = _problem(dtype, batch, n)
    shifted = torch.from_numpy(problem.shifted).to(bench.device)
    products = torch.from_numpy(problem.products).to(bench.device)

    @torch.no_grad()
    def run() -> object:
        return columns(shifted, products, "ratio", dtype, backend)[0]

    return run


def _inverse(bench: Bench, dtype: str, batch: int, n: int) -> Work:
    """H − zI as dense matrices, which is what a batched solver takes: n³ work for n numbers."""
    dense = _dense(*INPUT_KINDS["symmetric"](numpy.random.default_rng(n), batch, n))
    matrices = torch.from_numpy(dense).to(device=bench.device, dtype=getattr(torch, dtype))
    return lambda: torch.linalg.inv(matrices).diagonal(dim1=-2, dim2=-1)


def _dense(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    batch, n = a.shape
    dense = numpy.zeros((batch, n, n), dtype=complex)
    at = numpy.arange(n)
    dense[:, at, at] = a - numpy.asarray(z).reshape(-1, 1)
    dense[:, at[:-1], at[1:]] = b
    dense[:, at[1:], at[:-1]] = c
    return dense


def _problem(dtype: str, batch: int, n: int) -> Problem:
    a, b, c, z = INPUT_KINDS["symmetric"](numpy.random.default_rng(n), batch, n)
    return Problem.checked(a, b, c, z, dtype)


def _bytes(dtype: str) -> int:
    return int(getattr(torch, dtype).itemsize)


SOLVER = "dense inverse"
WAYS: dict[str, Callable[[Bench, str, int, int], Work]] = {
    "torch, step by step": partial(_swept, backend="torch"),
    "triton": partial(_swept, backend="triton"),
    SOLVER: _inverse,
}
