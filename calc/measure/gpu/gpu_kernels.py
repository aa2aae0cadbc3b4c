"""The kernel suite on the device: the families of `calc.measure.suite`, each as torch runs it.

Bytes and operations are counted as there, but pass by pass as torch does them: softmax and layer
norm are one pass each, and attention is fused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch.nn.functional import conv2d, layer_norm

from calc.measure.gpu.bench import Bench, Case, Work

ROW = 4096  # elements of a row


def cases(bench: Bench) -> Iterator[Case]:
    """Each kernel with its operations and bytes."""
    rows = bench.memory // 32 // (4 * ROW)
    for name, (operations, arrays, make) in KERNELS.items():
        elements = rows * ROW
        counts = {"flop": operations * elements, "bytes": 4 * arrays * elements}
        yield bench.case(partial(make, bench, rows), kernel=name, dtype="fp32", **counts)
    yield _convolution(bench)


def _unary(bench: Bench, rows: int, *, run: Callable[..., object]) -> Work:
    a = bench.random(rows, ROW)
    out = torch.empty_like(a)
    return lambda: run(a, out=out)


def _add(bench: Bench, rows: int) -> Work:
    a, b = bench.random(rows, ROW), bench.random(rows, ROW)
    out = torch.empty_like(a)
    return lambda: torch.add(a, b, out=out)


def _reduced(bench: Bench, rows: int, *, run: Callable[..., object]) -> Work:
    a = bench.random(rows, ROW)
    return lambda: run(a)


def _dot(bench: Bench, rows: int) -> Work:
    a, b = bench.random(rows * ROW), bench.random(rows * ROW)
    return lambda: torch.dot(a, b)


def _matrix_vector(bench: Bench, rows: int) -> Work:
    a, x = bench.random(rows, ROW), bench.random(ROW)
    return lambda: torch.mv(a, x)


def _layer_norm(bench: Bench, rows: int) -> Work:
    a, g, b = bench.random(rows, ROW), bench.random(ROW), bench.random(ROW)
    return lambda: layer_norm(a, (ROW,), g, b)


def _transpose(bench: Bench, rows: int) -> Work:
    a = bench.random(rows, ROW)
    out = torch.empty(ROW, rows, device=bench.device)
    return lambda: out.copy_(a.T)


def _gathered(bench: Bench, rows: int, *, shape: tuple[int, ...]) -> Work:
    table = bench.random(rows * ROW // math.prod(shape), *shape)
    order = torch.randperm(len(table), device=bench.device)
    out = torch.empty_like(table)
    return lambda: torch.index_select(table, 0, order, out=out)


KERNELS: dict[str, tuple[float, float, Callable[[Bench, int], Work]]] = {
    "scale": (1, 2, partial(_unary, run=partial(torch.mul, other=2.0))),
    "add": (1, 3, _add),
    "ReLU": (1, 2, partial(_unary, run=partial(torch.clamp, min=0.0))),
    "exp": (1, 2, partial(_unary, run=torch.exp)),
    "sum": (1, 1, partial(_reduced, run=torch.sum)),
    "dot": (2, 2, _dot),
    "row maxima": (1, 1, partial(_reduced, run=partial(torch.amax, dim=1))),
    "GEMV": (2, 1, _matrix_vector),
    "softmax": (5, 2, partial(_unary, run=partial(torch.softmax, dim=1))),
    "layer norm": (7, 2, _layer_norm),
    "transpose": (0, 2, _transpose),
    "gather rows": (0, 2 + 8 / 4 / 256, partial(_gathered, shape=(256,))),
    "gather elements": (0, 2 + 8 / 4, partial(_gathered, shape=())),
}
"""FLOP and arrays moved for each element, with the indices of 8 bytes, and what makes it."""


def _convolution(bench: Bench) -> Case:
    """3 × 3 over so many channels: 18 · c² FLOP a pixel of the output."""
    channels, side, batch = (8, 16, 1) if bench.small else (256, 56, 64)
    pixels = batch * (side - 2) ** 2

    def make() -> Work:
        image = bench.random(batch, channels, side, side, dtype=torch.bfloat16)
        weights = bench.random(channels, channels, 3, 3, dtype=torch.bfloat16)
        return lambda: conv2d(image, weights)

    moved = 2 * (batch * channels * side**2 + 9 * channels**2 + pixels * channels)
    return bench.case(
        make, kernel="convolution", dtype="bf16", flop=18 * channels**2 * pixels, bytes=moved
    )
