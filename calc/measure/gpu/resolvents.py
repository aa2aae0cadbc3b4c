"""The resolvent's backends on the device, beside eager torch and the vendor's batched solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy
import torch

from calc.codesign.accuracy import INPUT_KINDS, Sample, dense
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
    if way == SOLVER and batch * n**2 * getattr(torch, dtype).itemsize > LARGEST:
        return unmeasured("dense matrices of this batch take more than a gibibyte")
    return bench.time(lambda: WAYS[way](bench, dtype, batch, n), f"{way} of {batch} × {n}")


def _swept(bench: Bench, dtype: str, batch: int, n: int, *, backend: str) -> Work:
    problem = Problem.checked(*_drawn(batch, n), dtype)
    shifted = torch.from_numpy(problem.shifted).to(bench.device)
    products = torch.from_numpy(problem.products).to(bench.device)

    @torch.no_grad()
    def run() -> object:
        return columns(shifted, products, "ratio", dtype, backend)[0]

    return run


def _inverse(bench: Bench, dtype: str, batch: int, n: int) -> Work:
    """H − zI as dense matrices, which is what a batched solver takes: n³ work for n numbers."""
    matrices = torch.from_numpy(dense(*_drawn(batch, n)))
    matrices = matrices.to(device=bench.device, dtype=getattr(torch, dtype))
    return lambda: torch.linalg.inv(matrices).diagonal(dim1=-2, dim2=-1)


def _drawn(batch: int, n: int) -> Sample:
    return INPUT_KINDS["symmetric"](numpy.random.default_rng(n), batch, n)


SOLVER = "dense inverse"
WAYS: dict[str, Callable[[Bench, str, int, int], Work]] = {
    "torch, step by step": partial(_swept, backend="torch"),
    "triton": partial(_swept, backend="triton"),
    SOLVER: _inverse,
}
