"""The ratio form and its gradient as kernels for a GPU, in Triton.

A program takes BLOCK rows of the batch through all steps: what one step leaves for the next stays
in registers, and each sweep reads its input once. The batch is all that runs in parallel, so small
batches leave most of a GPU idle.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import knobs

Pair: TypeAlias = tuple[Tensor, Tensor]
BLOCK = 32  # one warp: narrow programs spread a batch over more multiprocessors


def unusable() -> str:
    """Why no kernel can run here, or nothing."""
    if torch.cuda.is_available() or knobs.runtime.interpret:
        return ""
    return "torch finds no GPU, and Triton's interpreter is off"


@triton.jit
def quotient(re, im, x, y):  # type: ignore[no-untyped-def]
    """(re + i im) / (x + i y), without squares: those leave the format long before."""
    steep = tl.abs(x) < tl.abs(y)
    large = tl.where(steep, y, x)
    small = tl.where(steep, x, y)
    share = small / large
    scale = 1.0 / (large + small * share)
    first = tl.where(steep, share, 1.0) * scale
    second = tl.where(steep, 1.0, share) * scale
    return re * first + im * second, im * first - re * second


@triton.jit
def fraction_kernel(shifted, products, result, n, batch, down, width: tl.constexpr):  # type: ignore[no-untyped-def]
    """δ_i = shifted_i − products_{i−1} / δ_{i−1}; from the last entry up where not `down`.

    All are complex numbers as pairs, (n, B, 2) and (n − 1, B, 2).
    """
    column = tl.program_id(0) * width + tl.arange(0, width)
    inside = column < batch
    row = tl.where(down, 0, n - 1)
    at = 2 * (row * batch + column)
    x = tl.load(shifted + at, inside, 1.0)
    y = tl.load(shifted + at + 1, inside, 0.0)
    tl.store(result + at, x, inside)
    tl.store(result + at + 1, y, inside)
    for step in range(1, n):
        row = tl.where(down, step, n - 1 - step)
        at = 2 * (row * batch + column)
        of = 2 * (tl.where(down, row - 1, row) * batch + column)
        p = tl.load(products + of, inside, 0.0)
        q = tl.load(products + of + 1, inside, 0.0)
        re, im = quotient(p, q, x, y)
        x = tl.load(shifted + at, inside, 1.0) - re
        y = tl.load(shifted + at + 1, inside, 0.0) - im
        tl.store(result + at, x, inside)
        tl.store(result + at + 1, y, inside)


@triton.jit
def sum_kernel(weights, factors, result, n, batch, down, width: tl.constexpr):  # type: ignore[no-untyped-def]
    """s_i = weights_i + factors_{i−1} s_{i−1}; from the last entry up where not `down`."""
    column = tl.program_id(0) * width + tl.arange(0, width)
    inside = column < batch
    row = tl.where(down, 0, n - 1)
    at = 2 * (row * batch + column)
    x = tl.load(weights + at, inside, 0.0)
    y = tl.load(weights + at + 1, inside, 0.0)
    tl.store(result + at, x, inside)
    tl.store(result + at + 1, y, inside)
    for step in range(1, n):
        row = tl.where(down, step, n - 1 - step)
        at = 2 * (row * batch + column)
        of = 2 * (tl.where(down, row - 1, row) * batch + column)
        p = tl.load(factors + of, inside, 0.0)
        q = tl.load(factors + of + 1, inside, 0.0)
        re = p * x - q * y
        y = tl.load(weights + at + 1, inside, 0.0) + p * y + q * x
        x = tl.load(weights + at, inside, 0.0) + re
        tl.store(result + at, x, inside)
        tl.store(result + at + 1, y, inside)


def fractions(shifted: Tensor, products: Tensor) -> Pair:
    """δ from the left and from the right."""
    couplings = products.to(shifted.dtype)
    return swept(fraction_kernel, shifted, couplings, True), swept(
        fraction_kernel, shifted, couplings, False
    )


def sums(weights: Tensor, to_left: Tensor, to_right: Tensor) -> Pair:
    """u_j = w_j + to_left_j u_{j+1}, and v_j = w_j + to_right_{j−1} v_{j−1}."""
    return swept(sum_kernel, weights, to_left, False), swept(sum_kernel, weights, to_right, True)


def swept(kernel: triton.JITFunction, rows: Tensor, couplings: Tensor, down: bool) -> Tensor:
    """One sweep of a kernel over (n, B), downwards or upwards."""
    n, batch = rows.shape
    rows = rows.resolve_conj().contiguous()
    couplings = couplings.to(rows.dtype).resolve_conj().contiguous()
    result = torch.empty_like(rows)
    pairs = [torch.view_as_real(numbers) for numbers in (rows, couplings, result)]
    kernel[(triton.cdiv(batch, BLOCK),)](*pairs, n, batch, down, width=BLOCK, num_warps=1)
    return result
