"""Attention: over all positions, by windows, fused; states in place of a cache; latents.

The laws take numbers, and so do for any model; `calc.transformer` puts them together for a model of
`calc.models`. Products are counted alone: decays, gates, norms and softmax are left out.
"""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import divide_or_infinity, maximum, minimum
from calc.core.law import AT_LEAST_ONE, FRACTION, MAY_BE_INFINITE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def attention_flops(
    context: Annotated[QuantityLike, "", "c", NON_NEGATIVE],
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token's forward pass in scores and weighted values, over its context.

    Equation: F = 2 · c · l · h · (d_k + d_v)

    Assumes that the token looks at c positions; under a causal mask that is `causal_context` on
    average. Query heads count, whether or not they share keys and values.

    Source: chowdhery2023palm

    >>> print(attention_flops(4096, 32, 32, 128, 128))
    2.147 GFLOP/token

    Parameters
    ----------
    context
        positions that a token looks at: those before it, and itself
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    """
    return _per_term * context * layers * heads * (key_width + value_width)


@law
def causal_context(
    length: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Positions that a token looks at under a causal mask, itself included, on average.

    Equation: c = (n + 1) / 2

    Source: vaswani2017attention

    >>> print(causal_context(4095))
    2048

    Parameters
    ----------
    length
        tokens of a sequence
    """
    return (length + 1) / 2


@law
def causal_window(
    length: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    window: Annotated[QuantityLike, "", "w", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Positions that a token looks at under a causal mask through a window, on average.

    Equation: c = m − m · (m − 1) / (2 · n), m = min(n, w)

    The first m tokens look at 1, 2, … m positions, itself included, and all others at w. A window
    that holds the whole sequence is none: `causal_context`.

    Source: jiang2023mistral

    >>> print(causal_window(4095, 8192), causal_window(8192, 4096))
    2048 3072

    Parameters
    ----------
    length
        tokens of a sequence
    window
        positions that a token looks back on, itself included
    """
    seen = minimum(length, window)
    return seen - seen * (seen - 1) / (2 * length)


@law
def windowed_context(
    context: Annotated[QuantityLike, "", "c", NON_NEGATIVE],
    window: Annotated[QuantityLike, "", "w", AT_LEAST_ONE],
    share: Annotated[QuantityLike, "", "s", FRACTION],
) -> Annotated[Quantity, ""]:
    """Positions that a layer looks at and keeps, where a share of the layers has a window.

    Equation: n = (1 − s) · c + s · min(c, w)

    The average of all layers, by which all that grows with the context of a model without windows
    is multiplied: operations of attention, the cache, what is read of it.

    Source: gemma2024gemma2

    >>> print(windowed_context(8192, 4096, 0.5))
    6144

    Parameters
    ----------
    context
        positions that a token looks at: those before it, and itself
    window
        positions that a token looks back on, itself included
    share
        share of the layers that have a window
    """
    return (1 - share) * context + share * minimum(context, window)


@law
def attention_crossover(
    projections: Annotated[QuantityLike, "FLOP/token", "F"],
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, ""]:
    """Context at which a token's attention takes as many operations as its projections.

    Equation: c = F / (2 · l · h · (d_k + d_v))

    Under a causal mask a sequence reaches it on average when it is twice as long.

    Source: chowdhery2023palm

    >>> print(attention_crossover("13.2 GFLOP/token", 32, 32, 128, 128))
    25177

    Parameters
    ----------
    projections
        operations of a token in matrices of weights
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    """
    return projections / (_per_term * layers * heads * (key_width + value_width))


@law
def fused_attention_intensity(
    queries: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "", "c", AT_LEAST_ONE],
    heads_per_group: Annotated[QuantityLike, "", "g", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Operations for each byte of an attention kernel whose scores never leave the chip.

    Equation: I = 2 · g · n · c / ((g · n + c) · s)

    Queries of n tokens, in g heads that share keys and values, look at c positions. Assumes that
    queries, keys, values and results cross the memory interface once each, which makes it an upper
    bound, and no mask: under a causal one about half is needed. The width of a head cancels.

    Source: dao2022flashattention

    >>> print(fused_attention_intensity(1, 8192, 8), fused_attention_intensity(8192, 8192, 8))
    7.992 FLOP/byte 7282 FLOP/byte

    Parameters
    ----------
    queries
        tokens whose queries are answered at once
    context
        positions that a token looks at: those before it, and itself
    heads_per_group
        query heads that share keys and values
    element_size
        what an element of the array takes
    """
    rows = heads_per_group * queries
    return _per_term * rows * context / ((rows + context) * element_size)


@law
def attention_fusion_gain(
    ridge_point: Annotated[QuantityLike, "FLOP/byte", "I*"],
    key_width: Annotated[QuantityLike, "", "w"],
    crossings: Annotated[QuantityLike, "", "c", AT_LEAST_ONE] = 4,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "4 FLOP",
) -> Annotated[Quantity, ""]:
    """The most that fusing an attention can gain: its scores no longer cross to memory.

    Equation: G = c · s · I* / (4 · w)

    Each pass between the products reads and writes the scores: 4 crossings with a softmax alone, 8
    with a mask and dropout too. Assumes long inputs, forward passes, heads of one width, memory as
    the roof before and the peak of the products after.

    Source: dao2022flashattention

    >>> print(attention_fusion_gain("153 FLOP/byte", 64, crossings=8))
    9.562

    Parameters
    ----------
    ridge_point
        intensity from which the machine is bound by arithmetic
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    crossings
        times that a score is written to memory or read from it
    element_size
        what an element of the array takes
    """
    return crossings * element_size * ridge_point / (_per_term * key_width)


@law
def exponentials_over_products(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    exponential_rate: Annotated[QuantityLike, "FLOP/s", "R_exp"],
    key_width: Annotated[QuantityLike, "", "w"],
    _per_term: Annotated[QuantityLike, ""] = 4,
) -> Annotated[Quantity, ""]:
    """Time of attention's exponentials over that of its products: one more roof.

    Equation: r = R_peak / (4 · w · R_exp)

    Each score takes 4 · w operations in two products and one exponential, which runs on units of
    its own. Assumes that keys and values have one width. Where the two follow one another, the
    products reach 1 / (1 + r) of their peak.

    Source: shah2024flashattention

    >>> print(exponentials_over_products("989 TFLOP/s", "3.9 TFLOP/s", 128))
    0.4953

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    exponential_rate
        exponentials that the machine does in a second at most
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    """
    return peak / (_per_term * key_width * exponential_rate)


@law
def state_memory(
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "4 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of a sequence in linear attention or a state space: a matrix a head, at any length.

    Equation: M = l · h · d_k · d_v · s

    A state space's d_k is the width of its state, and d_v that of a head. Kernels hold states in
    FP32, since each token changes them by little.

    Source: dao2024mamba2

    >>> print(state_memory(36, 32, 128, 128).to("MiB"))
    72 MiB

    Parameters
    ----------
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    element_size
        what an element of the array takes
    """
    return layers * heads * key_width * value_width * element_size


@law
def convolution_memory(
    layers: Annotated[QuantityLike, "", "l"],
    channels: Annotated[QuantityLike, "", "n"],
    kernel: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of a sequence in short convolutions: the last inputs of each channel.

    Equation: M = l · n · (k − 1) · s

    Source: gu2023mamba

    >>> print(convolution_memory(36, 8192, 4).to("MiB"))
    1.688 MiB

    Parameters
    ----------
    layers
        layers of the model
    channels
        channels of the convolution
    kernel
        inputs that the convolution sees at a time, the present one included
    element_size
        what an element of the array takes
    """
    return layers * channels * (kernel - 1) * element_size


@law
def recurrence_flops(
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    products: Annotated[QuantityLike, "", "p", AT_LEAST_ONE] = 2,
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token in linear attention or a state space, whatever came before it.

    Equation: F = 2 · p · l · h · d_k · d_v

    Each of p products passes over the state once. Two write a value into it and read it with a
    query; the delta rule has a third, which reads what the state holds for the key before it is
    corrected.

    Source: yang2024gated

    >>> print(recurrence_flops(36, 32, 128, 128, products=3))
    113.2 MFLOP/token

    Parameters
    ----------
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    products
        products that pass over a state for each token
    """
    return _per_term * products * layers * heads * key_width * value_width


@law
def recurrence_intensity(
    products: Annotated[QuantityLike, "", "p", AT_LEAST_ONE] = 2,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "4 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "1 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Operations for each byte of a state that one token is written with.

    Equation: I = p / s

    The state is read and written once, and each of p products works on all of it with a multiply
    and an add. No batch raises it: each sequence has a state of its own.

    Source: dao2024mamba2

    >>> print(recurrence_intensity(products=3))
    0.75 FLOP/byte

    Parameters
    ----------
    products
        products that pass over a state for each token
    element_size
        what an element of the array takes
    """
    return _per_term * products / element_size


@law
def chunked_state_flops(
    chunk: Annotated[QuantityLike, "", "Q", AT_LEAST_ONE],
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    groups: Annotated[QuantityLike, "", "g"],
    state_width: Annotated[QuantityLike, "", "d_k"],
    head_width: Annotated[QuantityLike, "", "d_v"],
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token of a prompt in a state space that is read in chunks, by products.

    Equation: F = 2 · l · (Q · (g · d_k + h · d_v) + 2 · h · d_k · d_v)

    Within a chunk of Q tokens it is attention, whose scores g groups of heads share; between chunks
    each token writes to the state and reads it. Assumes products without a mask.

    Source: dao2024mamba2

    >>> print(chunked_state_flops(256, 36, 128, 1, 128, 64))
    304.3 MFLOP/token

    Parameters
    ----------
    chunk
        tokens that are read at once
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    groups
        groups of heads that share what writes and reads their states
    state_width
        numbers of state for each channel of a head
    head_width
        width of a head
    """
    within = chunk * (groups * state_width + heads * head_width)
    return _per_term * layers * (within + 2 * heads * state_width * head_width)


@law
def chunked_delta_flops(
    chunk: Annotated[QuantityLike, "", "Q", AT_LEAST_ONE],
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token of a prompt under the delta rule that is read in chunks, by products.

    Equation: F = 2 · l · h · (Q · (3 · d_k + 2 · d_v) + 3 · d_k · d_v)

    Within a chunk of Q tokens keys meet keys and queries, and a triangle made of the first corrects
    keys and values; the state is read twice and written once. Inverting the triangle is left out.

    Source: yang2024gated

    >>> print(chunked_delta_flops(64, 36, 32, 128, 128))
    207.6 MFLOP/token

    Parameters
    ----------
    chunk
        tokens that are read at once
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    """
    within = chunk * (3 * key_width + 2 * value_width)
    return _per_term * layers * heads * (within + 3 * key_width * value_width)


@law
def index_flops(
    context: Annotated[QuantityLike, "", "c", NON_NEGATIVE],
    layers: Annotated[QuantityLike, "", "l"],
    heads: Annotated[QuantityLike, "", "h_i"],
    width: Annotated[QuantityLike, "", "d_i"],
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token that scores all positions of its context, to attend to the best.

    Equation: F = 2 · c · l · h_i · d_i

    Each of h_i queries meets a key of d_i numbers, which all of them share. Sparse attention itself
    then looks at a fixed number of positions, by `calc.attention.attention_flops`.

    Source: deepseek2025v32

    >>> print(index_flops(100_000, 61, 64, 128))
    99.94 GFLOP/token

    Parameters
    ----------
    context
        positions that a token looks at: those before it, and itself
    layers
        layers of the model
    heads
        heads of queries, or with a state each
    width
        width of a query or key by which positions are selected
    """
    return _per_term * context * layers * heads * width


@law
def index_bytes_per_token(
    layers: Annotated[QuantityLike, "", "l"],
    width: Annotated[QuantityLike, "", "d_i"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "8.25 bit",
    _per_token: Annotated[QuantityLike, "1/token"] = 1,
) -> Annotated[Quantity, "byte/token"]:
    """Memory of a token's keys by which later tokens select it, one in every layer.

    Equation: m = l · d_i · s

    They are kept in FP8 with a scale of four bytes for every 128.

    Source: deepseek2025v32

    >>> print(index_bytes_per_token(61, 128))
    8052 byte/token

    Parameters
    ----------
    layers
        layers of the model
    width
        width of a query or key by which positions are selected
    element_size
        what an element of the array takes
    """
    return _per_token * layers * width * element_size


@law
def latent_intensity(
    queries: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "", "c", AT_LEAST_ONE],
    heads: Annotated[QuantityLike, "", "h"],
    latent: Annotated[QuantityLike, "", "r"],
    rotary_width: Annotated[QuantityLike, "", "d_r", NON_NEGATIVE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Operations for each byte of latent attention that works on what it has stored.

    Equation: I = 2 · n · h · c · (2 · r + d_r) / (s · (c · (r + d_r) + n · h · (2 · r + d_r)))

    Queries of n tokens in h heads meet c latents, which serve as keys and as values and are read
    once for all. Assumes one fused kernel, and no mask.

    Source: deepseek2024v2

    >>> print(latent_intensity(1, 8192, 128, 512, 64))
    234.8 FLOP/byte

    Parameters
    ----------
    queries
        tokens whose queries are answered at once
    context
        positions that a token looks at: those before it, and itself
    heads
        heads of queries, or with a state each
    latent
        width of the vector that keys and values are made from
    rotary_width
        width of the part of a key that carries the position
    element_size
        what an element of the array takes
    """
    rows, widths = heads * queries, 2 * latent + rotary_width
    moved = context * (latent + rotary_width) + rows * widths
    return _per_term * rows * context * widths / (element_size * moved)


@law
def absorbed_flops(
    queries: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "", "c", NON_NEGATIVE],
    heads: Annotated[QuantityLike, "", "h"],
    latent: Annotated[QuantityLike, "", "r"],
    rotary_width: Annotated[QuantityLike, "", "d_r", NON_NEGATIVE],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of latent attention in a layer where queries are brought to the latents.

    Equation: F = 2 · n · h · (c · (2 · r + d_r) + r · (d_k + d_v))

    The matrices that would make keys and values are applied to n queries and their results, and c
    latents stay as they are stored. d_k is the key's width without its rotary part. This is the
    form of a decode, and what `transformer.decode_matmuls` counts.

    Source: deepseek2024v2

    See also: attention.expanded_flops, attention.latent_crossover

    >>> print(absorbed_flops(1, 8192, 128, 512, 64, 128, 128))
    2.315 GFLOP

    Parameters
    ----------
    queries
        tokens whose queries are answered at once
    context
        positions that a token looks at: those before it, and itself
    heads
        heads of queries, or with a state each
    latent
        width of the vector that keys and values are made from
    rotary_width
        width of the part of a key that carries the position
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    """
    products = context * (2 * latent + rotary_width) + latent * (key_width + value_width)
    return _per_term * queries * heads * products


@law
def expanded_flops(
    queries: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "", "c", NON_NEGATIVE],
    heads: Annotated[QuantityLike, "", "h"],
    latent: Annotated[QuantityLike, "", "r"],
    rotary_width: Annotated[QuantityLike, "", "d_r", NON_NEGATIVE],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of latent attention in a layer where latents are made into keys and values.

    Equation: F = 2 · h · c · (n · (d_k + d_r + d_v) + r · (d_k + d_v))

    Each of c latents is expanded once for all n queries. d_k is the key's width without its rotary
    part. This is the form of prefills and of training, which `transformer.forward_flops` counts.

    Source: deepseek2024v2

    See also: attention.absorbed_flops, attention.latent_crossover

    >>> print(expanded_flops(1, 8192, 128, 512, 64, 128, 128))
    275.5 GFLOP

    Parameters
    ----------
    queries
        tokens whose queries are answered at once
    context
        positions that a token looks at: those before it, and itself
    heads
        heads of queries, or with a state each
    latent
        width of the vector that keys and values are made from
    rotary_width
        width of the part of a key that carries the position
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    """
    expanded = latent * (key_width + value_width)
    products = queries * (key_width + rotary_width + value_width) + expanded
    return _per_term * heads * context * products


@law
def latent_crossover(
    context: Annotated[QuantityLike, "", "c", AT_LEAST_ONE],
    latent: Annotated[QuantityLike, "", "r"],
    key_width: Annotated[QuantityLike, "", "d_k"],
    value_width: Annotated[QuantityLike, "", "d_v"],
) -> Annotated[Quantity, "", MAY_BE_INFINITE]:
    """Queries from which on it takes fewer operations to expand latents than to absorb matrices.

    Equation: n = c · r · (d_k + d_v) / max(0, c · (2 · r − d_k − d_v) + r · (d_k + d_v))

    For a long context it is r · (d_k + d_v) / (2 · r − d_k − d_v), whatever the number of heads.
    Latents that are narrower than a head's mean key and value stay as they are: infinite.

    Source: deepseek2024v2

    >>> print(latent_crossover(100_000, 512, 128, 128))
    170.4

    Parameters
    ----------
    context
        positions that a token looks at: those before it, and itself
    latent
        width of the vector that keys and values are made from
    key_width
        width of a query or key in one head, without a rotary part that stands apart; rows of a
        state
    value_width
        width of a value in one head; columns of a state
    """
    expanded = latent * (key_width + value_width)
    saved = context * (2 * latent - key_width - value_width) + expanded
    return divide_or_infinity(context * expanded, maximum(saved, 0 * saved))
