"""Fused attention: prefill forward and with its backward pass, and decode over a cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from itertools import product

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from calc.catalog import models
from calc.measure.gpu.bench import Bench, Case, Row, Work
from calc.measure.torch_rates import CUDA_DTYPES as DTYPES

KERNELS = {  # None lets torch choose
    "torch's choice": None,
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
MODEL = models.LLAMA_3_8B
HEADS, KV_HEADS, WIDTH = MODEL.heads, MODEL.kv_heads, MODEL.head_width
PREFILLS = (1024, 4096, 16384, 65536)
DECODES = tuple(product((1, 8, 64), (1024, 8192, 65536)))


def cases(bench: Bench) -> Iterator[Case]:
    """Prefill under a causal mask, O = 2 · t² · heads · width forward, and 2.5 times that backward;
    decode reads 2 · batch · context · kv_heads · width elements of the cache.
    """
    prefills = (32,) if bench.small else PREFILLS
    for pass_, kernel, dtype, tokens in product(
        ("forward", "backward"), KERNELS, ("bf16",), prefills
    ):
        flop = 2 * tokens**2 * HEADS * WIDTH * (1 if pass_ == "forward" else 2.5)
        yield bench.case(
            partial(_prefill, bench, kernel, dtype, tokens, pass_),
            **_labels(pass_, kernel, dtype, 1, tokens, tokens),
            flop=flop,
            cache_bytes=0,
        )
    for batch, context in ((2, 32),) if bench.small else DECODES:
        cache = 2 * batch * context * KV_HEADS * WIDTH * DTYPES["bf16"].itemsize
        if cache > bench.memory // 2:
            continue
        yield bench.case(
            partial(_decode, bench, batch, context),
            **_labels("decode", "torch's choice", "bf16", batch, 1, context),
            flop=4 * batch * context * HEADS * WIDTH,
            cache_bytes=cache,
        )


def _labels(pass_: str, kernel: str, dtype: str, batch: int, tokens: int, context: int) -> Row:
    names = ("pass", "kernel", "dtype", "batch", "tokens", "context")
    return dict(zip(names, (pass_, kernel, dtype, batch, tokens, context), strict=True))


def _prefill(bench: Bench, kernel: str, dtype: str, tokens: int, pass_: str) -> Work:
    q, k, v = (bench.random(1, HEADS, tokens, WIDTH, dtype=DTYPES[dtype]) for _ in range(3))
    backend = KERNELS[kernel]

    def forward() -> torch.Tensor:
        with sdpa_kernel(backend) if backend is not None else nullcontext():
            return scaled_dot_product_attention(q, k, v, is_causal=True)

    if pass_ == "forward":
        return forward
    for tensor in (q, k, v):
        tensor.requires_grad_()
    out = forward()
    gradient = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def _decode(bench: Bench, batch: int, context: int) -> Work:
    q = bench.random(batch, HEADS, 1, WIDTH, dtype=DTYPES["bf16"])
    k, v = (bench.random(batch, KV_HEADS, context, WIDTH, dtype=DTYPES["bf16"]) for _ in range(2))
    return lambda: scaled_dot_product_attention(q, k, v, enable_gqa=True)
