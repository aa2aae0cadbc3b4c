"""Transformer arithmetic: operations, matrix products, caches and activations of a model.

The laws of `calc.attention`, `calc.layers`, `calc.caches` and `calc.experts` take numbers, and so
do for any model; here they are put together from the architecture of a model of `calc.models`.
Matrix products are counted alone: norms, activations, softmax and rotary positions add under one
percent of the operations in a large model. Layers that look back through a window (Mistral 7B,
Gemma 2) look at it and keep it, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from calc import formats
from calc.catalog import models
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import COMPRESSED, INDEXED, LATENTS, RECURRENT, Heads, Matrix
from calc.core.arguments import one_of
from calc.core.arrays import Number
from calc.core.elementwise import largest, maximum, minimum
from calc.core.errors import InputError, abbreviated, marked
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.formats import element_size as size_of
from calc.laws import attention, roofline
from calc.laws.attention import attention_flops, causal_context, causal_window, windowed_context
from calc.laws.caches import kv_bytes_per_token, latent_bytes_per_token
from calc.laws.experts import experts_used
from calc.laws.layers import batch_tokens, layer_activations, projection_flops, score_activations

SELECTING = (
    "sparse",
    "following",
    "blocks",
    "compressed-sparse",
)  # kinds that attend to positions of their choice
BESIDE = "local "  # scores of a window in layers that look at more besides
RECOMPUTATIONS = ("none", "selective", "alternate", "full")
LONGEST = 10**9  # positions, more than any model reads


@dataclass(frozen=True)
class Matmul:
    """Matrix products alike: (m × k) · (k × n), so many of them in each of so many layers."""

    name: str
    m: Number
    n: Number
    k: Number
    count: Number
    layers: Number

    @property
    def operations(self) -> Quantity:
        """Operations of all of them."""
        return roofline.gemm_operations(self.m, self.n, self.k) * self.count * self.layers

    def traffic(self, element_size: QuantityLike = "2 byte") -> Quantity:
        """Bytes that all of them must move, where each goes to memory and back by itself."""
        moved = roofline.gemm_traffic(self.m, self.n, self.k, element_size)
        return moved * self.count * self.layers

    def intensity(self, element_size: QuantityLike = "2 byte") -> Quantity:
        """Operations for each byte moved.

        >>> from calc import models
        >>> query, *_ = decode_matmuls(models.get("llama-3-8b"), 4096)
        >>> print(query.name, query.intensity())
        query 0.9995 FLOP/byte
        """
        return roofline.arithmetic_intensity(self.operations, self.traffic(element_size))


def prefill_matmuls(
    model: Transformer | str,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
) -> tuple[Matmul, ...]:
    """The matrix products that read so many sequences of one length, in the order of a layer.

    Scores are counted in full, as a product without a mask is; the output for the last token alone.
    Queries that share keys and values are rows of one product. Layers with a window, or that select
    positions, have products of their own, one for each stretch of as many tokens, which look at as
    many. States are read in chunks, where the model has a `chunk`. Latents are expanded into keys
    and values, as in `forward_flops`.

    >>> from calc import models
    >>> for each in prefill_matmuls(models.get("llama-3-8b"), 1000)[:5]:
    ...     print(f"{each.name:15} {each.m:5.0f} {each.n:5.0f} {each.k:5.0f} {each.count:3.0f}")
    query            1000  4096  4096   1
    key              1000  1024  4096   1
    value            1000  1024  4096   1
    scores           4000  1000   128   8
    weighted values  4000   128  1000   8

    Parameters
    ----------
    model
        model of `calc.models`
    length
        tokens of a sequence
    sequences
        sequences of the batch
    """
    model = _check(model, length, "length")
    tokens = batch_tokens(length, sequences).magnitude
    tokens_each, batch = batch_tokens(length).magnitude, batch_tokens(1, sequences).magnitude
    scores = [*_index_scores(model, tokens_each, tokens_each, batch)]
    for name, seen, layers, (queries, groups, keys, values) in _attentions(model, tokens_each):
        block, blocks = seen * queries / groups, batch * groups * tokens_each / seen
        scores += [
            Matmul(f"{name}scores", block, seen, keys, blocks, layers),
            Matmul(f"{name}weighted values", block, values, seen, blocks, layers),
        ]
    states = [*_read_states(model, tokens, tokens_each)]
    return tuple(_in_order(model, tokens, batch, scores, states))


def decode_matmuls(
    model: Transformer | str,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
) -> tuple[Matmul, ...]:
    """The matrix products that write the next token of so many sequences, each with its context.

    Latent attention multiplies with what it has stored: the matrices that make keys and values of
    it are absorbed, one head at a time, by queries and results. That takes more operations than
    the expanded form of `forward_flops`, and reads fewer bytes.

    >>> from calc import models
    >>> for each in decode_matmuls(models.get("llama-3-8b"), 8192, 32)[2:4]:
    ...     print(f"{each.name:6} {each.m:3.0f} {each.n:5.0f} {each.k:5.0f} {each.count:4.0f}")
    value   32  1024  4096    1
    scores   4  8192   128  256
    >>> latents = models.get("deepseek-v3-2")
    >>> absorbed = sum(each.operations for each in decode_matmuls(latents, 100_000))
    >>> print(forward_flops(latents, 100_000), absorbed.to("GFLOP"))
    185.1 GFLOP/token 209.7 GFLOP

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    sequences
        sequences of the batch
    """
    model = _check(model, context)
    if model.output not in ("own", "tied"):
        raise InputError(
            f"{model.name} writes no tokens: its output is a {model.output} layer;"
            " calc.throughput.of answers for it, and `calc throughput`"
        )
    whole, batch = batch_tokens(context).magnitude, batch_tokens(1, sequences).magnitude
    latent = model.kv_latent or 0
    scores = [*_index_scores(model, 1, whole, batch)]
    for name, seen, layers, (queries, groups, keys, values) in _attentions(model, whole):
        rows, count = (queries, batch) if latent else (queries / groups, batch * groups)
        if latent:
            keys, values = latent + (model.rotary_width or 0), latent
        scores += [
            Matmul(f"{name}scores", rows, seen, keys, count, layers),
            Matmul(f"{name}weighted values", rows, values, seen, count, layers),
        ]
    states = [*_states(model, batch)]
    return tuple(_in_order(model, batch, batch, scores, states, stored_latents=bool(latent)))


def forward_flops(
    model: Transformer | str, context: Annotated[QuantityLike, "", NON_NEGATIVE] = 0
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token's forward pass, token by token; attention over its context included.

    Equation: F = 2 · P_mul + 2 · l · h · (d_k + d_v) · c

    P_mul are the parameters that a token is multiplied by, in l layers with h heads whose keys and
    values are d_k and d_v wide. Without a context c attention is left out, which makes the usual
    2 · P, if P counts matrices. Layers with a window look at no more than that, and those that
    select positions at no more than these, after `calc.attention.index_flops`; states take
    `calc.attention.recurrence_flops`, whatever the context.

    Latent attention counts as it reads a prompt or trains: each token's latent is expanded once
    into keys and values, for all queries. A decode absorbs the matrices instead and takes more
    operations, those of `decode_matmuls`; `calc.attention.latent_crossover` tells when.

    Source: chowdhery2023palm

    >>> from calc import models
    >>> model = models.get("llama-3-8b")
    >>> print(forward_flops(model), forward_flops(model, causal_context(8192)))
    15.01 GFLOP/token 17.16 GFLOP/token

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    """
    model = _check(model, context)
    return _with_attention(
        model, context, lambda limit: windowed_context(context, limit, 1), _states(model, 1)
    )


def causal_flops(
    model: Transformer | str, length: Annotated[QuantityLike, "", AT_LEAST_ONE]
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token's forward pass, on average over a sequence under a causal mask.

    Equation: F = 2 · P_mul + 2 · l · h · (d_k + d_v) · c

    Symbols are those of `forward_flops`; c is `attention.causal_context` in layers that look at
    all, and `attention.causal_window` in those that look at no more than a window or a selection.
    States are read in chunks, where the model has a `chunk`. Latents are expanded, as in
    `forward_flops`.

    Source: chowdhery2023palm

    >>> from calc import models
    >>> print(causal_flops(models.get("llama-3-8b"), 8192))
    17.16 GFLOP/token
    >>> print(causal_flops(models.get("gemma-2-27b"), 8192))
    57.15 GFLOP/token

    Parameters
    ----------
    model
        model of `calc.models`
    length
        tokens of a sequence
    """
    model = _check(model, length, "length")
    return _with_attention(
        model,
        causal_context(length),
        lambda limit: causal_window(length, limit),
        _read_states(model, 1, batch_tokens(length).magnitude),
    )


def state_flops(
    model: Transformer | str, length: Annotated[QuantityLike, "", AT_LEAST_ONE]
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token of a prompt in all states, read in chunks where the model has them.

    Equation: F = F_linear + F_state

    In layers of linear attention and state spaces, by `calc.attention.chunked_delta_flops` and
    `chunked_state_flops`; by `recurrence_flops` in a model without a `chunk`. It is the part of
    `causal_flops` that states take.

    Source: yang2024gated

    >>> print(state_flops("qwen-3-next-80b-a3b", 8192))
    207.6 MFLOP/token

    Parameters
    ----------
    model
        model of `calc.models`
    length
        tokens of a sequence
    """
    model = _check(model, length, "length")
    total = quantity("0 FLOP/token")
    for product in _read_states(model, 1, batch_tokens(length).magnitude):
        total = total + product.operations / quantity("1 token")
    return total


def recomputed_flops(
    model: Transformer,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    recomputation: str = "selective",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token's forward pass that are done again on the way back.

    Equation: F = 0, F_attention, F_attention + F_again or F_forward

    `recomputation` is "none", "selective" for attention alone, "alternate" for that and the
    products of `computed_again`, or "full" for all of the layers.

    Source: korthikanti2023reducing

    >>> from calc import models
    >>> print(recomputed_flops(models.get("llama-3-8b"), 8192))
    2.148 GFLOP/token

    Parameters
    ----------
    model
        model of `calc.models`
    length
        tokens of a sequence
    recomputation
        what is computed again on the way back: none, selective, alternate or full
    """
    one_of("recomputed_flops(): recomputation", recomputation, RECOMPUTATIONS)
    forward = causal_flops(model, length)
    if recomputation == "none":
        return 0 * forward
    if recomputation == "full":
        return forward
    attention = forward - forward_flops(model)
    if recomputation == "selective":
        return attention
    again = sum(
        2 * each.inputs * each.outputs * each.used * each.layers for each in computed_again(model)
    )
    return attention + quantity(again, "FLOP/token")


def computed_again(model: Transformer | str) -> tuple[Matrix, ...]:
    """Matrices whose products run twice where every other product's output is kept.

    They are counted in the order in which a layer computes them; products of many experts, which
    one kernel computes together, run twice, and so does all between products but attention.

    >>> from calc import models
    >>> [matrix.name for matrix in computed_again(models.get("llama-3-8b"))]
    ['key', 'attention output', 'up']
    """
    model = _check(model)
    inside = [matrix for matrix in model.matrices if matrix.part != "output"]
    alone = [index for index, matrix in enumerate(inside) if matrix.copies == 1]
    kept = alone[::2]
    return tuple(matrix for index, matrix in enumerate(inside) if index not in kept)


def backward_flops(
    model: Transformer | str, context: Annotated[QuantityLike, "", NON_NEGATIVE] = 0
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token's way back: twice the forward pass, one for each factor's gradient.

    Equation: F_back = 2 · F

    >>> from calc import models
    >>> print(backward_flops(models.get("llama-3-8b")))
    30.02 GFLOP/token

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    """
    return 2 * forward_flops(model, context)


def crossover_context(model: Transformer | str) -> Annotated[Quantity, ""]:
    """Context at which the attention of a model takes as many operations as its projections.

    Equation: c* = P_mul / (l · h · (d_k + d_v))

    Symbols are those of `forward_flops`. It may be longer than what the model can read. Under a
    causal mask a sequence reaches it on average when it is twice as long. Beyond a window only the
    layers without one go on; a model that has none of these may never get there. States count among
    the projections.

    Source: chowdhery2023palm

    >>> from calc import models
    >>> print(crossover_context(models.get("llama-3-8b")))
    28628

    Parameters
    ----------
    model
        model of `calc.models`
    """
    model = _check(model)
    fixed = forward_flops(model)
    longest = model.with_context(LONGEST)
    start, taken = 0, 0 * fixed
    for reach in model.reaches:
        bend = forward_flops(longest, reach) - fixed
        if bend >= fixed:
            return (start + (reach - start) * (fixed - taken) / (bend - taken)).to("")
        start, taken = reach, bend
    beyond = forward_flops(longest, start + 1) - fixed - taken
    if beyond.magnitude <= 1e-9 * taken.magnitude:
        raise InputError(
            f"{model.name} looks back on {start} tokens in every layer, and its attention"
            f" would take as many operations as its projections at"
            f" {(start * fixed / taken).to('')}: there is no such context"
        )
    return (start + (fixed - taken) / beyond).to("")


def kv_cache_per_token(
    model: Transformer | str, element_size: Annotated[QuantityLike, "byte"] = "2 byte"
) -> Annotated[Quantity, "byte/token"]:
    """Memory that each token adds: its keys and values, or what latent attention makes them from.

    Equation: m = l · g · (d_k + d_v) · s

    In each of l layers g heads have a key and a value of their own, d_k and d_v wide, in elements
    of s bytes. Latent attention keeps a vector in their place, `caches.latent_bytes_per_token`, and
    where it selects positions the keys for that too, `attention.index_bytes_per_token`. Layers with
    a state add nothing. A layer with a window stops adding when that is full, as `kv_cache` counts.

    Source: ainslie2023gqa

    >>> from calc import models
    >>> print(kv_cache_per_token(models.get("llama-3-8b")).to("KiB/token"))
    128 KiB/token
    >>> print(kv_cache_per_token(models.get("llama-3-8b"), "4.25 bit").to("KiB/token"))
    34 KiB/token

    Parameters
    ----------
    model
        model of `calc.models`
    element_size
        what an element of the array takes
    """
    model = _check(model)
    total = _latents(model, element_size)
    if model.compresses:
        of_window, of_all = _vectors_kept(model, element_size)
        return of_window + of_all
    for kinds, heads in model.kinds_of_heads.items():
        _, groups, keys, values = heads
        layers = model.keeping(*kinds)
        total = total + kv_bytes_per_token(layers, groups, keys, values, element_size)
    return total


def attended_per_token(
    model: Transformer | str, element_size: Annotated[QuantityLike, "byte"] = "2 byte"
) -> Annotated[Quantity, "byte/token"]:
    """Queries that a token sends to the caches of a layer, and results that come back of them.

    Equation: m = h · (d_k + d_v) · s

    On average, where layers with a window have other heads than those without.

    Each of h heads has a query and a result, d_k and d_v wide, in elements of s bytes. Those of
    latent attention are as wide as what it keeps: a latent with the part that carries the position,
    and a latent.

    Source: pope2023efficiently

    >>> from calc import models
    >>> print(attended_per_token(models.get("llama-3-70b")))
    32.77 kB/token
    >>> print(attended_per_token(models.get("deepseek-v3")))
    278.5 kB/token

    Parameters
    ----------
    model
        model of `calc.models`
    element_size
        what an element of the array takes
    """
    model = _check(model)
    if model.kv_latent is not None:
        numbers = 1.0 * model.heads * (2 * (model.kv_latent or 0) + (model.rotary_width or 0))
    else:
        sent = sum(
            heads.attended * layers
            for name, _, _, layers, heads in _limits(model)
            if name != BESIDE
        )
        numbers = sent / model.caching_layers
    size = size_of("element_size", element_size)
    return (numbers * size / quantity("1 token")).to("byte/token")


def kept_context(
    model: Transformer | str, context: Annotated[QuantityLike, "", NON_NEGATIVE]
) -> Annotated[Quantity, ""]:
    """Positions of a context that a layer with a cache keeps, the average of these layers.

    Equation: n = (1 − s) · c + s · min(c, w)

    A share s of the layers with a cache, by the keys and values that they have, has a window of w
    positions, by `attention.windowed_context`. Without one it is the context c.

    >>> from calc import models
    >>> print(kept_context(models.get("gemma-2-27b"), 8192))
    6144

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    """
    model = _check(model, context)
    if model.window is None:
        return quantity(context)
    if model.compresses:
        of_window, of_all = _vectors_kept(model, "2 byte")
        share = (of_window / (of_window + of_all)).magnitude
    else:
        kept = _limits(model, model.keeping)
        numbers = {name: layers * heads.kept for name, _, _, layers, heads in kept}
        share = numbers["windowed "] / sum(numbers.values())
    return windowed_context(context, model.window, share)


def attended_context(
    model: Transformer | str, context: Annotated[QuantityLike, "", NON_NEGATIVE]
) -> Annotated[Quantity, ""]:
    """Positions that a token attends to in a layer with a cache, the average of these layers.

    Equation: n = (l_all · c + l_w · min(c, w)) / (l_all + l_w)

    Layers look at all c positions, or at no more than w of them: those of a window, or those that
    they select. Where these have other heads, l counts the numbers of their queries and results.

    >>> from calc import models
    >>> print(attended_context(models.get("gpt-oss-120b"), 131072))
    65600

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    """
    model = _check(model, context)
    seen, numbers = quantity(0), 0
    for name, limit, joined, layers, heads in _limits(model):
        attended = windowed_context(context, limit, 1) if limit else quantity(context)
        seen = seen + attended / joined * (layers * heads.attended)
        numbers += layers * heads.attended * (name != BESIDE)
    return seen / numbers


def kv_cache(
    model: Transformer | str,
    context: Annotated[QuantityLike, "", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
    index_size: Annotated[QuantityLike | None, "byte"] = None,
) -> Annotated[Quantity, "byte"]:
    """Memory of a sequence with that context: keys and values, and states.

    Equation: M = n · m + M_state

    n positions are kept, by `kept_context`, and each takes m bytes, by `kv_cache_per_token`;
    M_state is `state_memory`, or `compressor_memory`, whatever the context.

    Source: gemma2024gemma2

    >>> from calc import models
    >>> print(kv_cache(models.get("gemma-2-27b"), 8192).to("GiB"))
    2.156 GiB

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    element_size
        what an element of the array takes
    index_size
        what one of the joined keys of an index takes, where these are not in FP8 with scales
    """
    model = _check(model, context)
    if model.compresses:
        of_window, of_all = _vectors_kept(model, element_size, index_size)
        window = windowed_context(context, (model.window or 0), 1)
        kept = (of_window * window + of_all * quantity(context)) * quantity("1 token")
        return kept.to("byte") + compressor_memory(model)
    per_token = kv_cache_per_token(model, element_size)
    memory: Quantity = per_token * kept_context(model, context) * quantity("1 token")
    return memory.to("byte") + state_memory(model)


def compressor_memory(model: Transformer | str) -> Annotated[Quantity, "byte"]:
    """Memory of what a sequence has not yet joined, in FP32: values and weights of its last tokens.

    Equation: M = 2 · (l_4 · 2 · m · 2 · (d + d_i) + l_128 · m' · d) · s

    Layers that join m tokens do so from two windows of them that meet, for vectors of the width d
    and for keys of an index of d_i; those that join m' tokens, from one. Zero in other models.

    Source: transformers-models

    >>> print(compressor_memory("deepseek-v4-flash"))
    12.21 MB

    Parameters
    ----------
    model
        model of `calc.models`
    """
    model = _check(model)
    few, many = (model.layers_with(kind) for kind in COMPRESSED)
    both = model.head_width + (model.index_head_width or 0)
    numbers = few * 4 * (model.compression or 0) * both
    numbers += many * (model.heavy_compression or 0) * model.head_width
    return quantity(2 * 4 * numbers, "byte")


def _vectors_kept(
    model: Transformer, element_size: QuantityLike, index_size: QuantityLike | None = None
) -> tuple[Quantity, Quantity]:
    """Bytes of a token that a window keeps, and its share of what is kept of the whole context."""
    width, size = model.head_width, size_of("element_size", element_size) / quantity("1 token")
    few, many = (model.layers_with(kind) for kind in COMPRESSED)
    joined = few / (model.compression or 1) + many / (model.heavy_compression or 1)
    return model.caching_layers * width * size, joined * width * size + _index_keys(
        model, index_size
    )


def _index_keys(model: Transformer, index_size: QuantityLike | None = None) -> Quantity:
    """Bytes of a token's keys by which it is chosen, or of its share of one of several tokens."""
    layers = model.layers_with(*INDEXED) / (model.compression or 1)
    given = () if index_size is None else (index_size,)
    return attention.index_bytes_per_token(layers, (model.index_head_width or 0), *given)


def state_memory(model: Transformer | str) -> Annotated[Quantity, "byte"]:
    """Memory of a sequence's states, at any length: matrices in FP32, and inputs of convolutions.

    Equation: M = l · (h · d_k · d_v · s + n · (k − 1) · s_conv)

    By `calc.attention.state_memory` and `convolution_memory`, in layers of linear attention and
    state spaces, and in those of a short convolution alone; zero in a model without them. SGLang
    keeps FP32, and so does vLLM where a model's configuration asks for it (`mamba_ssm_dtype`) or
    `--mamba-ssm-cache-dtype` does; else vLLM keeps states in the model's own 16 bits, as
    `calc.device_memory` counts them.

    Source: dao2024mamba2

    >>> from calc import models
    >>> print(state_memory(models.get("llama-3-8b")))
    0 byte

    Parameters
    ----------
    model
        model of `calc.models`
    """
    model = _check(model)
    memory = quantity("0 byte")
    for _, layers, heads, keys, values in _recurrences(model):
        memory = memory + attention.state_memory(layers, heads, keys, values)
    for kind in RECURRENT:
        if layers := model.layers_with(kind):
            channels, kernel = model.convolved(kind), (model.convolution or 0)
            memory = memory + attention.convolution_memory(layers, channels, kernel)
    return memory


def cache_read(
    model: Transformer | str,
    context: Annotated[QuantityLike, "", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes of a sequence's cache that its next token reads, states left out.

    Equation: D = n · m

    All that is kept, by `kv_cache`, but for layers that select positions: these read the keys of
    all by which they choose, and keys and values, or latents, of those chosen. What several layers
    look at counts once.

    Source: pope2023efficiently

    >>> from calc import models
    >>> print(cache_read(models.get("llama-3-8b"), 8192))
    1.074 GB

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    element_size
        what an element of the array takes
    """
    model = _check(model, context)
    if model.compresses:
        return _vectors_read(model, context, element_size)
    whole: Quantity = (
        kv_cache_per_token(model, element_size) * kept_context(model, context) * quantity("1 token")
    )
    if not (layers := model.layers_with(*SELECTING)):
        return whole.to("byte")
    skipped = quantity(context) - windowed_context(context, (model.index_topk or 0), 1)
    if model.kv_latent is None:
        _, groups, keys, values = model.heads_of("blocks")
        index_bytes = kv_bytes_per_token(layers, groups, keys, values, element_size)
    else:
        latent, rotary = (model.kv_latent or 0), (model.rotary_width or 0)
        index_bytes = latent_bytes_per_token(layers, latent, rotary, element_size)
    return (whole - index_bytes * skipped * quantity("1 token")).to("byte")


def _vectors_read(
    model: Transformer, context: QuantityLike, element_size: QuantityLike
) -> Quantity:
    """Bytes that a token reads of a cache of joined tokens: keys of an index, and what it sees."""
    vector = model.head_width * size_of("element_size", element_size)
    read = _index_keys(model) * quantity(context) * quantity("1 token")
    for _, limit, joined, layers, _ in _limits(model):
        seen = windowed_context(context, limit, 1) if limit else quantity(context)
        read = read + layers * vector * seen / joined
    return read.to("byte")


def decode_bytes(
    model: Transformer | str,
    context: Annotated[QuantityLike, "", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes that a sequence's next token moves besides weights: its cache, its states twice.

    Equation: D = D_cache + 2 · M_state

    The cache is read, by `cache_read`; states, by `state_memory`, are read and written.

    Source: pope2023efficiently

    >>> from calc import models
    >>> print(decode_bytes(models.get("llama-3-8b"), 8192))
    1.074 GB

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    element_size
        what an element of the array takes
    """
    return cache_read(model, context, element_size) + 2 * state_memory(model)


def activation_memory(
    model: Transformer | str,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    recomputation: str = "none",
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
    mask_size: Annotated[QuantityLike, "byte", NON_NEGATIVE] = "0 byte",
    input_size: Annotated[QuantityLike | None, "byte"] = None,
) -> Annotated[Quantity, "byte"]:
    """Return the activations of a batch that layers keep for the backward pass.

    Equation: A = B · n · l · (m_layer + m_score)

    B sequences of n tokens pass l layers; m_layer and m_score are the bytes of a token in one of
    them, by `layers.layer_activations` and `layers.score_activations`. In GPT's shape, with 16 bits
    and dropout, they are 34 · d and 5 · h · n, for a width d and h heads.

    Recomputation is "none"; "selective", where the attention scores are computed again, as fused
    kernels do, and m_score is zero; "alternate", where each layer keeps its input, the output of
    attention and those of every other product, as torchtitan does where it is told to be selective;
    or "full", where each layer keeps its input alone, d · s. Where several streams go from block to
    block, an input is all of them. A
    model that is trained with dropout has masks of a byte. Where products are computed in fewer
    bits, their inputs are kept in these too, of the `input_size`: both blocks' and that of the
    feed-forward network's last; the attention's output is kept as attention itself needs it.

    Source: korthikanti2023reducing, torchtitan2024selective

    >>> from calc import models
    >>> for each in ("none", "selective", "alternate", "full"):
    ...     print(each, activation_memory(models.get("llama-3-8b"), 8192, recomputation=each))
    none 173.9 GB
    selective 36.51 GB
    alternate 16.64 GB
    full 2.147 GB

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    sequences
        sequences of the batch
    recomputation
        what is computed again on the way back: none, selective, alternate or full
    element_size
        what an element of the array takes
    mask_size
        what an element of a mask takes
    input_size
        what an element of the inputs of matrix products is kept in, where it is narrower than the
        rest
    """
    model = _check(model, context)
    one_of("activation_memory(): recomputation", recomputation, RECOMPUTATIONS)
    tokens = batch_tokens(context, sequences)
    stream = model.width * (model.streams or 1)
    if recomputation == "full":
        return tokens * model.layers * stream * formats.element_size("element_size", element_size)
    if recomputation == "alternate":
        elements = model.layers * stream + _alternate_outputs(model)
        return tokens * elements * formats.element_size("element_size", element_size)
    blocks = model.blocks / model.layers  # two, where a layer is not one of them alone
    norms = blocks if model.norms is None else model.norms
    layer = layer_activations(
        model.width, *_kept_widths(model), element_size, mask_size, norms + blocks - 2
    )
    if input_size is not None:
        kept = formats.element_size("element_size", element_size)
        element = formats.element_size("input_size", input_size)
        hidden = sum(
            inputs * used * layers
            for part, name, inputs, _, layers, _, used, _ in model.matrices
            if part == "feed-forward" and name.endswith(("down", "output"))
        )
        layer = layer - maximum(kept - element, 0.0 * kept) * (
            2 * model.width + hidden / model.layers
        )
    if model.streams is not None:  # which each block mixes, and keeps for that
        mixed = model.blocks * model.width * (model.streams or 0) / model.layers
        layer = layer + mixed * formats.element_size("element_size", element_size)
    total: Quantity = tokens * model.layers * layer
    if recomputation == "none":
        for _, seen, layers, heads in _attentions(model, batch_tokens(context).magnitude):
            scores = score_activations(seen, heads.queries, element_size, mask_size)
            total = total + tokens * layers * scores
    return total


def _alternate_outputs(model: Transformer) -> int:
    """Elements of a token that attention and every other product of all layers put out."""
    inside = [matrix for matrix in model.matrices if matrix.part != "output"]
    products = sum(each.outputs * each.used * each.layers for each in inside)
    again = sum(each.outputs * each.used * each.layers for each in computed_again(model))
    attention = sum(
        each.inputs * each.layers
        for each in inside
        if each.part == "attention" and each.name.endswith("output")
    )
    return products - again + attention


def _check(named: Any, context: QuantityLike = 1, name: str = "context") -> Transformer:
    """The transformer that is given, or that of a name, unless it cannot read so much."""
    model = models.transformer(named)
    # A plain number, as most calls give it, needs no unit read.
    if (
        type(context) is not bool
        and isinstance(context, int | float)
        and 0 <= context <= model.context
    ):
        return model
    needed = f"{name} must be a number of tokens from 0, without a unit, as in 8192"
    try:
        positions = quantity(context)
    except InputError:
        raise InputError(f"{needed}; got {abbreviated(context)}") from None
    if not positions.unitless:
        raise InputError(f"{needed}; got {positions}")
    positions = positions.to("")  # a share of one is in percent
    longest = largest(positions)
    if not longest < math.inf or largest(-positions) > 0:  # not so NaN either
        raise InputError(f"{needed}; got {abbreviated(context)}")
    if longest > model.context:
        raise InputError(
            f"{model.name} reads at most {model.context:.0f} tokens; got a context of"
            f" {longest:.0f}; to take more, say so: model.with_context({longest:.0f}),"
            f" or {marked('context', int(longest))} of a plan"
        )
    return model


def _with_attention(
    model: Transformer,
    context: QuantityLike,
    limited: Callable[[QuantityLike], Quantity],
    states: Iterator[Matmul],
) -> Quantity:
    """Projections, attention over what each kind of layer looks at, and a token in the states."""
    total: Quantity = projection_flops(model.multiplied_parameters)
    for product in states:
        total = total + product.operations / quantity("1 token")
    for _, limit, joined, layers, (queries, _, keys, values) in _limits(model):
        seen = limited(limit) if limit else quantity(context)
        total = total + attention_flops(seen / joined, layers, queries, keys, values)
    return total + index_flops(model, context)


def index_flops(
    model: Transformer | str, context: Annotated[QuantityLike, "", NON_NEGATIVE]
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token that scores all positions, in layers that choose what they attend to.

    Equation: F = 2 · (c / m) · l · h_i · d_i

    By `calc.attention.index_flops`; m tokens have one key together, or each its own.

    Source: deepseek2025v32

    >>> print(index_flops("deepseek-v3-2", 131072))
    131.0 GFLOP/token
    >>> print(index_flops("llama-3-8b", 8192))
    0 FLOP/token

    Parameters
    ----------
    model
        model of `calc.models`
    context
        positions that a token looks at: those before it, and itself
    """
    model = models.transformer(model)
    if not (layers := model.layers_with(*INDEXED)):
        return quantity("0 FLOP/token")
    heads, width = (model.index_heads or 0), (model.index_head_width or 0)
    keys = quantity(context) / (model.compression or 1)
    return attention.index_flops(keys, layers, heads, width)


def _limits(
    model: Transformer, count: Callable[..., int] | None = None
) -> Iterator[tuple[str, int, int, int, Heads]]:
    """Yield each kind of scores: its prefix, most positions seen, how many are one, layers, heads.

    The most is 0 where it is the context itself. Layers that join tokens look at a window besides.
    Layers are those that look, or what `count` counts of a kind.
    """
    count = count or model.layers_with
    for name, limit, joined, kinds in (
        ("", None, 1, ("full", "latent")),
        ("windowed ", model.window, 1, ("window",)),
        (BESIDE, model.window, 1, COMPRESSED),
        ("selected ", model.selected, (model.compression or 1), SELECTING),
        ("compressed ", None, (model.heavy_compression or 1), COMPRESSED[1:]),
    ):
        if layers := count(*kinds):
            yield name, (limit or 0), joined, layers, model.heads_of(kinds[0])


def _recurrences(model: Transformer) -> Iterator[tuple[str, int, int, int, int]]:
    """Kinds with a state: their layers, and a state's heads, rows and columns."""
    if layers := model.layers_with("linear"):
        widths = (model.linear_key_width or 0), (model.linear_value_width or 0)
        yield "linear", layers, (model.linear_value_heads or 0), *widths
    if layers := model.layers_with("state"):
        widths = (model.state_width or 0), (model.state_head_width or 0)
        yield "state", layers, (model.state_heads or 0), *widths


def _states(model: Transformer, tokens: Number) -> Iterator[Matmul]:
    """The products that take so many tokens one by one through their states."""
    for kind, layers, heads, keys, values in _recurrences(model):
        count = tokens * heads
        if kind == "linear":
            yield Matmul("state recalled", 1, values, keys, count, layers)
        yield Matmul("state written", keys, values, 1, count, layers)
        yield Matmul("state read", 1, values, keys, count, layers)


def _read_states(model: Transformer, tokens: Number, length: Number) -> Iterator[Matmul]:
    """The products that take the tokens of prompts through states, in chunks if there are any."""
    if model.chunk is None:
        return _states(model, tokens)
    return _chunks(model, tokens, minimum(length, float(model.chunk or 0)))


def _chunks(model: Transformer, tokens: Number, chunk: Number) -> Iterator[Matmul]:
    """The products that take so many tokens through their states in chunks of so many."""
    for kind, layers, heads, keys, values in _recurrences(model):
        chunks = tokens / chunk
        count = chunks * heads
        shared = count if kind == "linear" else chunks * (model.state_groups or 0)
        if kind == "linear":
            yield Matmul("chunk keys on keys", chunk, chunk, keys, count, layers)
            yield Matmul("chunk keys corrected", chunk, keys, chunk, count, layers)
            yield Matmul("chunk values corrected", chunk, values, chunk, count, layers)
            yield Matmul("state recalled", chunk, values, keys, count, layers)
        yield Matmul("chunk scores", chunk, chunk, keys, shared, layers)
        yield Matmul("chunk weighted values", chunk, values, chunk, count, layers)
        yield Matmul("state written", keys, values, chunk, count, layers)
        yield Matmul("state read", chunk, values, keys, count, layers)


def _latents(model: Transformer, element_size: QuantityLike) -> Quantity:
    """Return the bytes of a token's latents, and of the keys by which it is selected."""
    size = quantity("0 byte/token")
    if layers := model.layers_with(*LATENTS):
        latent, rotary = (model.kv_latent or 0), (model.rotary_width or 0)
        size = latent_bytes_per_token(layers, latent, rotary, element_size)
    if layers := model.layers_with(*INDEXED):
        size = size + attention.index_bytes_per_token(layers, (model.index_head_width or 0))
    return size


def _attentions(model: Transformer, context: Number) -> Iterator[tuple[str, Number, Number, Heads]]:
    """Yield each kind of scores: prefix of its name, positions looked at, layers and heads.

    Of tokens that are joined there is one at least, in fewer layers where there are less.
    """
    for name, limit, joined, layers, heads in _limits(model):
        seen = minimum(context, float(limit)) if limit else context
        if joined == 1:
            yield name, seen, layers, heads
        else:
            share = minimum(seen / joined, 1.0)
            yield name, maximum(seen / joined, 1.0), layers * share, heads


def _index_scores(
    model: Transformer, rows: Number, context: Number, sequences: Number
) -> Iterator[Matmul]:
    """The products by which tokens choose what to attend to."""
    if layers := model.layers_with(*INDEXED):
        width = model.index_head_width or 0
        queries = rows * (model.index_heads or 0)
        keys: Number = context
        of: Number = layers
        if (joined := model.compression or 1) > 1:
            keys, of = maximum(context / joined, 1.0), layers * minimum(context / joined, 1.0)
        yield Matmul("index scores", queries, keys, width, sequences, of)


def _in_order(
    model: Transformer,
    tokens: Number,
    sequences: Number,
    scores: list[Matmul],
    states: list[Matmul],
    stored_latents: bool = False,
) -> Iterator[Matmul]:
    """The products with each matrix, those of the scores and states before their outputs."""
    heads = model.heads
    for part, name, inputs, outputs, layers, copies, used, _ in model.matrices:
        if name.endswith("attention output"):
            yield from scores
            scores = []  # of all layers, before the first of their outputs
        if name in ("linear output", "state output"):
            yield from states
        rows = sequences if part == "output" else tokens
        if used < copies:
            count = experts_used(copies, used / copies, rows).magnitude
            rows_each = maximum(
                rows * used / count, 1.0
            )  # rounding leaves a hair less of a single one
            yield Matmul(name, rows_each, outputs, inputs, count, layers)
        elif stored_latents and name == "key up":  # turns the query towards what is stored
            yield Matmul(name, rows, inputs, outputs // heads, heads, layers)
        elif stored_latents and name == "value up":
            yield Matmul(name, rows, outputs // heads, inputs, heads, layers)
        else:
            yield Matmul(name, rows, outputs, inputs, copies, layers)


def _kept_widths(model: Transformer) -> tuple[float, float]:
    """Activations around the attention and inside the feed-forward network, a layer's average."""
    widths = {"attention": 0, "feed-forward": 0}
    for part, name, inputs, outputs, layers, _, used, _ in model.matrices:
        if part in widths:
            last = name.endswith(("down", "output") if part == "feed-forward" else "output")
            widths[part] += (inputs if last else outputs) * used * layers
    layers = model.layers
    return widths["attention"] / layers, widths["feed-forward"] / layers
