"""The pointer chase as a kernel in Triton: torch's own kernels never wait for one load alone."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from calc.codesign.resolvent_triton import unusable as unusable


@triton.jit
def chase_kernel(table, result, hops):  # type: ignore[no-untyped-def]
    """Each element read is the place of the next one."""
    at = tl.load(result)
    for _ in range(hops):
        at = tl.load(table + at)
    tl.store(result, at)


def chase(table: torch.Tensor, result: torch.Tensor, hops: int) -> object:
    """Follow the table for so many hops from the place in `result`, and leave the last there."""
    return chase_kernel[(1,)](table, result, hops, num_warps=1)
