"""Matrix products by shape and format: squares, a model's matrices, and the steps of waves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch

from calc.catalog import models
from calc.measure.gpu.bench import Bench, Case, Work
from calc.measure.torch_rates import CUDA_DTYPES as DTYPES

FP8, INT8 = "fp8-e4m3", "int8"
FORMATS = (*DTYPES, FP8, INT8)
SIDES = (256, 512, 1024, 2048, 4096, 8192, 16384)
TOKENS = tuple(2**power for power in range(14))
MODEL_FORMATS = ("bf16", FP8)
# Steps of a tile's side from one wave of tiles to many; and sides that no tile divides.
SAWTOOTH = tuple(range(1024, 8192 + 1, 128))
UNALIGNED = (4095, 4097, 4100, 4104, 4112, 4128, 4160)
DEPTH = 4096
FUSED = {"query": "qkv", "key": "qkv", "value": "qkv", "up": "gate"}  # products of one input


def cases(bench: Bench) -> Iterator[Case]:
    """O = 2 · m · n · k, from matrices in the format and, of 8 bits, sums in a wider one."""
    sides = (32, 64) if bench.small else SIDES
    for dtype, side in product(FORMATS, sides):
        yield _case(bench, "square", dtype, side, side, side)
    tokens = (1, 16) if bench.small else TOKENS
    for dtype, (n, k), m in product(MODEL_FORMATS, _matrices(bench), tokens):
        yield _case(bench, models.LLAMA_3_8B.name, dtype, m, n, k)
    steps, odd, depth = ((16, 32), (33,), 32) if bench.small else (SAWTOOTH, UNALIGNED, DEPTH)
    for side in steps:
        yield _case(bench, "waves", "bf16", side, side, depth)
    for side in odd:
        yield _case(bench, "unaligned", "bf16", side, side, side)


def _matrices(bench: Bench) -> list[tuple[int, int]]:
    """Outputs and inputs of a layer's products: those that read the same input are one."""
    fused: dict[tuple[str, int], int] = {}
    for matrix in models.LLAMA_3_8B.matrices:
        group = FUSED.get(matrix.name, matrix.name)
        fused[group, matrix.inputs] = fused.get((group, matrix.inputs), 0) + matrix.outputs
    shrink = 128 if bench.small else 1
    return [(outputs // shrink // 16 * 16, k // shrink) for (_, k), outputs in fused.items()]


def _case(bench: Bench, family: str, dtype: str, m: int, n: int, k: int) -> Case:
    labels = {"family": family, "dtype": dtype, "m": m, "n": n, "k": k}
    return bench.case(partial(multiply, bench, dtype, m, n, k), **labels, flop=2 * m * n * k)


def multiply(bench: Bench, dtype: str, m: int, n: int, k: int) -> Work:
    """A product of (m × k) by (k × n), whose second matrix stands as a layer's weights do."""
    shapes = (m, k), (n, k)
    if dtype == INT8:
        i, j = (
            torch.randint(-9, 9, shape, dtype=torch.int8, device=bench.device) for shape in shapes
        )
        return lambda: torch._int_mm(i, j.T)
    if dtype == FP8:
        a, b = (bench.random(*shape, dtype=torch.float8_e4m3fn) for shape in shapes)
        one = torch.ones((), device=bench.device)
        scaled: Callable[..., torch.Tensor] = torch._scaled_mm
        return lambda: scaled(a, b.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    a, b = (bench.random(*shape, dtype=DTYPES[dtype]) for shape in shapes)
    out = torch.empty(m, n, dtype=DTYPES[dtype], device=bench.device)

    def run() -> torch.Tensor:
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        return torch.matmul(a, b.T, out=out)

    return run
