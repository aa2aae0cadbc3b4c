"""Llama 3 8B's shapes with random weights: decode and prefill loops, and a block that trains.

Speed does not depend on what the weights are, so that no file is needed. Where memory does not
hold all layers, fewer run, and each row says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

from calc.catalog import models
from calc.measure.gpu.bench import Bench, Case, Row, Work
from calc.measure.gpu.launching import captured

Pair: TypeAlias = tuple[Tensor, Tensor]
MODEL = models.LLAMA_3_8B
DECODES = tuple(product((1, 4, 16, 64, 128), (1024, 8192, 32768)))
PREFILLS = tuple(product((1, 8), (512, 2048, 8192)))
TRAINED = (4, 2048)  # sequences and their length, of the block that trains
SHARE = 0.8  # of memory that weights and cache may take


class Shape:
    """Widths of the model, or of one so small that a trial can run it."""

    def __init__(self, small: bool) -> None:
        by = 32 if small else 1
        self.layers = 2 if small else MODEL.layers
        self.heads, self.kv_heads = max(1, MODEL.heads // by), max(1, MODEL.kv_heads // by)
        self.head_width = MODEL.head_width
        self.width = self.heads * self.head_width if small else MODEL.width
        self.hidden = MODEL.feed_forward_width // by
        self.vocabulary = MODEL.vocabulary // by

    @property
    def layer_parameters(self) -> int:
        """Number of parameters in one layer's matrices."""
        outputs = (2 * self.heads + 2 * self.kv_heads) * self.head_width
        return self.width * (outputs + 3 * self.hidden)

    def cache_bytes(self, batch: int, context: int) -> int:
        """Return the bytes of one layer's keys and values in 16 bits."""
        return 2 * 2 * batch * context * self.kv_heads * self.head_width


class Block(nn.Module):
    """One layer: attention with rotary positions over grouped heads, and a gated feed-forward."""

    def __init__(self, shape: Shape, bench: Bench, dtype: torch.dtype) -> None:
        super().__init__()
        options = {"bias": False, "device": bench.device, "dtype": dtype}
        self.shape = shape
        heads, groups = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        self.qkv = nn.Linear(shape.width, heads + 2 * groups, **options)
        self.out = nn.Linear(heads, shape.width, **options)
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, **options)
        self.down = nn.Linear(shape.hidden, shape.width, **options)
        ones = partial(torch.ones, shape.width, device=bench.device, dtype=dtype)
        self.norms = nn.ParameterList([nn.Parameter(ones()) for _ in range(2)])

    def forward(self, x: Tensor, angles: Pair, cache: Pair | None = None, at: int = 0) -> Tensor:
        """A causal pass over x (batch, tokens, width); with a cache, a token that reads it all."""
        x = x + self.out(self._attended(self._normed(x, 0), angles, cache, at))
        gate, up = self.gate_up(self._normed(x, 1)).chunk(2, dim=-1)
        return x + self.down(silu(gate) * up)

    def _normed(self, x: Tensor, which: int) -> Tensor:
        return rms_norm(x, (self.shape.width,), self.norms[which].to(x.dtype))

    def _attended(self, x: Tensor, angles: Pair, cache: Pair | None, at: int) -> Tensor:
        shape, (batch, tokens, _) = self.shape, x.shape
        parts = (shape.heads, shape.kv_heads, shape.kv_heads)
        widths = [part * shape.head_width for part in parts]
        q, k, v = (
            part.view(batch, tokens, count, shape.head_width).transpose(1, 2)
            for part, count in zip(self.qkv(x).split(widths, dim=-1), parts, strict=True)
        )
        q, k = _turned(q, angles), _turned(k, angles)
        if cache is not None:
            keys, values = cache
            keys[:, :, at : at + tokens], values[:, :, at : at + tokens] = k, v
            k, v = keys, values
        y = scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
        return y.transpose(1, 2).reshape(batch, tokens, -1)


def _turned(x: Tensor, angles: Pair) -> Tensor:
    """Rotary positions: each pair of elements, half a head apart, turned by its angle."""
    cosine, sine = angles
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def _angles(shape: Shape, tokens: int, bench: Bench, dtype: torch.dtype) -> Pair:
    half = shape.head_width // 2
    turns = 500_000.0 ** -(torch.arange(half, device=bench.device) / half)
    angle = torch.outer(torch.arange(tokens, device=bench.device), turns)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def loop_cases(bench: Bench) -> Iterator[Case]:
    """A step of decode by batch and context, launched one by one and as a graph; and prefills."""
    shape = Shape(bench.small)
    decodes = ((1, 16), (2, 32)) if bench.small else DECODES
    for way, (batch, context) in product(
        ("eager", "graph") if bench.on_gpu else ("eager",), decodes
    ):
        if layers := _layers(bench, shape, shape.cache_bytes(batch, context)):
            yield bench.case(
                partial(_decode, bench, shape, layers, batch, context, way),
                **_labels("decode", way, layers, batch, 1, context),
            )
    for batch, tokens in ((1, 16),) if bench.small else PREFILLS:
        if layers := _layers(bench, shape, 6 * 2 * batch * tokens * shape.hidden):
            yield bench.case(
                partial(_prefill, bench, shape, layers, batch, tokens),
                **_labels("prefill", "eager", layers, batch, tokens, tokens),
            )


def _labels(loop: str, way: str, layers: int, batch: int, tokens: int, context: int) -> Row:
    names = ("loop", "way", "layers", "batch", "tokens", "context")
    return dict(zip(names, (loop, way, layers, batch, tokens, context), strict=True))


def _layers(bench: Bench, shape: Shape, beside: int) -> int:
    """Return how many of the model's layers memory holds, each with bytes beside its weights."""
    if bench.small:
        return shape.layers
    output = 2 * shape.width * shape.vocabulary
    room = SHARE * bench.memory - output
    return min(shape.layers, int(room // (2 * shape.layer_parameters + beside)))


def _blocks(bench: Bench, shape: Shape, layers: int) -> tuple[list[Block], nn.Linear]:
    dtype = torch.bfloat16
    output = nn.Linear(shape.width, shape.vocabulary, bias=False, device=bench.device, dtype=dtype)
    return [Block(shape, bench, dtype) for _ in range(layers)], output


def _decode(bench: Bench, shape: Shape, layers: int, batch: int, context: int, way: str) -> Work:
    blocks, output = _blocks(bench, shape, layers)
    caches = [
        [
            bench.random(batch, shape.kv_heads, context, shape.head_width, dtype=torch.bfloat16)
            for _ in range(2)
        ]
        for _ in blocks
    ]
    x = bench.random(batch, 1, shape.width, dtype=torch.bfloat16)
    angles = tuple(angle[-1:] for angle in _angles(shape, context, bench, torch.bfloat16))

    @torch.no_grad()
    def step() -> object:
        y = x
        for block, cache in zip(blocks, caches, strict=True):
            y = block(y, angles, cache, context - 1)
        return output(y)

    return captured(step) if way == "graph" else step


def _prefill(bench: Bench, shape: Shape, layers: int, batch: int, tokens: int) -> Work:
    blocks, output = _blocks(bench, shape, layers)
    x = bench.random(batch, tokens, shape.width, dtype=torch.bfloat16)
    angles = _angles(shape, tokens, bench, torch.bfloat16)

    @torch.no_grad()
    def run() -> object:
        y = x
        for block in blocks:
            y = block(y, angles)
        return output(y[:, -1:])

    return run


def lever_cases(bench: Bench) -> Iterator[Case]:
    """A training step of one block, with one lever after another: its time and its peak memory."""
    for lever in LEVERS:
        yield Case({"lever": lever}, partial(_lever, bench, lever))


def _lever(bench: Bench, lever: str) -> Row:
    if bench.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    row = bench.time(lambda: LEVERS[lever](bench), lever)
    peak = torch.cuda.max_memory_allocated() if bench.on_gpu else ""
    return row | {"peak_bytes": "" if row["why"] else peak}


def _step(
    bench: Bench,
    *,
    master: torch.dtype = torch.float32,
    tf32: bool = False,
    autocast: bool = False,
    compiled: bool = False,
    recomputed: bool = False,
    fused: bool = False,
) -> Work:
    """Forward, backward and Adam over one batch."""
    shape = Shape(bench.small)
    batch, tokens = (2, 16) if bench.small else TRAINED
    block = Block(shape, bench, master)
    backend = "eager" if bench.small else "inductor"  # a trial traces and does not compile
    run: Callable[..., Tensor] = torch.compile(block, backend=backend) if compiled else block
    x = bench.random(batch, tokens, shape.width, dtype=master).requires_grad_()
    angles = _angles(shape, tokens, bench, torch.bfloat16 if autocast else master)
    adam = torch.optim.AdamW(block.parameters(), fused=fused)

    def step() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        adam.zero_grad()
        with torch.autocast(bench.device, torch.bfloat16, enabled=autocast):
            y = checkpoint(run, x, angles, use_reentrant=False) if recomputed else run(x, angles)
        y.float().square().mean().backward()
        adam.step()

    return step


LEVERS: dict[str, Callable[[Bench], Work]] = {
    "FP32": _step,
    "TF32": partial(_step, tf32=True),
    "BF16 by autocast": partial(_step, autocast=True),
    "BF16 by autocast, fused Adam": partial(_step, autocast=True, fused=True),
    "BF16 by autocast, compiled": partial(_step, autocast=True, compiled=True),
    "BF16 by autocast, recomputed": partial(_step, autocast=True, recomputed=True),
    "BF16 throughout": partial(_step, master=torch.bfloat16),
}
