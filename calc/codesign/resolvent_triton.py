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
    """Return why no kernel can run here; "" if one can."""
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
def sweep_kernel(rows, factors, result, n, batch, down, divided: tl.constexpr, width: tl.constexpr):  # type: ignore[no-untyped-def]
    """r_i = rows_i + factors_{i−1} r_{i−1}, or where `divided` rows_i − factors_{i−1} / r_{i−1};
    from the last entry up where not `down`.

    All are complex numbers as pairs, (n, B, 2) and (n − 1, B, 2).
    """
    column = tl.program_id(0) * width + tl.arange(0, width)
    inside = column < batch
    row = tl.where(down, 0, n - 1)
    at = 2 * (row * batch + column)
    x = tl.load(rows + at, inside, 1.0)
    y = tl.load(rows + at + 1, inside, 0.0)
    tl.store(result + at, x, inside)
    tl.store(result + at + 1, y, inside)
    for step in range(1, n):
        row = tl.where(down, step, n - 1 - step)
        at = 2 * (row * batch + column)
        of = 2 * (tl.where(down, row - 1, row) * batch + column)
        p = tl.load(factors + of, inside, 0.0)
        q = tl.load(factors + of + 1, inside, 0.0)
        a = tl.load(rows + at, inside, 1.0)
        b = tl.load(rows + at + 1, inside, 0.0)
        if divided:
            re, im = quotient(p, q, x, y)
            x, y = a - re, b - im
        else:
            x, y = a + (p * x - q * y), b + p * y + q * x
        tl.store(result + at, x, inside)
        tl.store(result + at + 1, y, inside)


def fractions(shifted: Tensor, products: Tensor) -> Pair:
    """δ_i = shifted_i − products_{i−1} / δ_{i−1} from the left, and the same from the right."""
    couplings = products.to(shifted.dtype)
    return swept(True, shifted, couplings, True), swept(True, shifted, couplings, False)


def sums(weights: Tensor, to_left: Tensor, to_right: Tensor) -> Pair:
    """u_j = w_j + to_left_j u_{j+1}, and v_j = w_j + to_right_{j−1} v_{j−1}."""
    return swept(False, weights, to_left, False), swept(False, weights, to_right, True)


def swept(divided: bool, rows: Tensor, couplings: Tensor, down: bool) -> Tensor:
    """One sweep of the kernel over (n, B), downwards or upwards."""
    n, batch = rows.shape
    rows = rows.resolve_conj().contiguous()
    couplings = couplings.to(rows.dtype).resolve_conj().contiguous()
    result = torch.empty_like(rows)
    pairs = [torch.view_as_real(numbers) for numbers in (rows, couplings, result)]
    programs = (triton.cdiv(batch, BLOCK),)
    sweep_kernel[programs](*pairs, n, batch, down, divided, width=BLOCK, num_warps=1)
    return result
