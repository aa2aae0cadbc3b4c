"""Layers of a transformer, by their widths: operations of a token, and what the way back needs."""

from __future__ import annotations

from typing import Annotated

from calc.catalog import constants
from calc.core.elementwise import where
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def projection_flops(
    parameters: Annotated[QuantityLike, "param", "P"],
    work: Annotated[QuantityLike, "FLOP/(param·token)", "2"] = constants.get("work_inference"),
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a token's forward pass in matrices of weights: a multiply and an add for each.

    Equation: F = 2 · P

    Assumes that `parameters` counts what a token is multiplied by: no embedding that is looked up,
    and of a mixture of experts those that it is sent to.

    Source: kaplan2020scaling

    >>> print(projection_flops("7B param"))
    14 GFLOP/token

    Parameters
    ----------
    parameters
        parameters of the model, or of the part of it in question
    work
        operations for each parameter and token
    """
    return work * parameters


@law
def batch_tokens(
    length: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, ""]:
    """Tokens that pass through a model at once: the rows of its matrix products.

    Equation: T = b · n

    Assumes sequences of one length, without padding.

    Source: korthikanti2023reducing

    >>> print(batch_tokens(2048, 8))
    16384

    Parameters
    ----------
    length
        tokens of a sequence
    sequences
        sequences of the batch
    """
    return sequences * length


@law
def layer_activations(
    width: Annotated[QuantityLike, "", "d"],
    attention_width: Annotated[QuantityLike, "", "a"],
    feed_forward_width: Annotated[QuantityLike, "", "f"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    mask_size: Annotated[QuantityLike, "byte", "m_mask", NON_NEGATIVE] = "0 byte",
    norms: Annotated[QuantityLike, "", "n", NON_NEGATIVE] = 2,
) -> Annotated[Quantity, "byte"]:
    """Activations of one token that a layer keeps for the backward pass, without attention scores.

    Equation: m = s · ((2 + n) · d + a + f) + 2 · m_mask · d

    The inputs of n norms and of two blocks, each d wide; queries, keys, values and the input of the
    attention's output, together a; the hidden activations of the feed-forward network on both sides
    of its nonlinearity, together f; two masks of dropout, where there is any.

    Source: korthikanti2023reducing

    See also: layers.score_activations, parallelism.activations_in_flight

    >>> print(layer_activations(1024, 4 * 1024, 8 * 1024, mask_size="1 byte") / 1024)
    34 byte

    Parameters
    ----------
    width
        width of the model: the length of a token's vector
    attention_width
        elements kept around the attention: queries, keys, values and its output's input
    feed_forward_width
        elements kept inside the feed-forward network
    element_size
        what an element of the array takes
    mask_size
        what an element of a mask takes
    norms
        norms of a layer whose input is kept
    """
    return element_size * ((2 + norms) * width + attention_width + feed_forward_width) + (
        2 * mask_size * width
    )


@law
def score_activations(
    context: Annotated[QuantityLike, "", "c", NON_NEGATIVE],
    heads: Annotated[QuantityLike, "", "h"],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    mask_size: Annotated[QuantityLike, "byte", "m_mask", NON_NEGATIVE] = "0 byte",
) -> Annotated[Quantity, "byte"]:
    """Attention scores of one token that a layer keeps where nothing is recomputed, in bytes.

    Equation: m = c · h · s where m_mask = 0, else c · h · (2 · s + m_mask)

    The output of the softmax, which its own gradient and that of the values need. Where there is
    dropout, the values meet the output of that instead, which is kept as well, with its mask. A
    fused kernel recomputes them and keeps none.

    Source: korthikanti2023reducing

    >>> print(score_activations(2048, 96, mask_size="1 byte"))
    983.0 kB

    Parameters
    ----------
    context
        positions that a token looks at: those before it, and itself
    heads
        heads of queries
    element_size
        what an element of the array takes
    mask_size
        what an element of a mask takes
    """
    dropped = where(mask_size > 0, element_size + mask_size, 0)
    return context * heads * (element_size + dropped)


@law
def logits_memory(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    vocabulary: Annotated[QuantityLike, "", "V", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "4 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of the scores that a model gives each entry of its vocabulary, at each position.

    Equation: M = T · V · s

    A loss is taken of all positions at once, usually in FP32; the gradient of the logits takes as
    much again, unless it is written over them. Kernels that compute the loss in parts keep less.

    Source: korthikanti2023reducing

    >>> print(logits_memory(8192, 128256).to("GiB"))
    3.914 GiB

    Parameters
    ----------
    tokens
        tokens of the batch
    vocabulary
        tokens that the model can tell apart
    element_size
        what an element of the array takes
    """
    return tokens * vocabulary * element_size


@law
def loss_memory(
    tokens: Annotated[QuantityLike, "", "T", AT_LEAST_ONE],
    vocabulary: Annotated[QuantityLike, "", "V", AT_LEAST_ONE],
    parts: Annotated[QuantityLike, "", "c", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    _single: Annotated[QuantityLike, "byte"] = "8 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of the logits of a batch while their loss is computed in so many parts.

    Equation: M = T · V · (s + 8 / c)

    All logits in the model's format, and of one part an FP32 copy and its gradient, four bytes
    each. A fused kernel, which keeps none of them, needs next to nothing.

    Source: torchtune2026

    >>> print(loss_memory(8192, 128256), loss_memory(8192, 128256, parts=8))
    10.51 GB 3.152 GB

    Parameters
    ----------
    tokens
        tokens of the batch
    vocabulary
        tokens that the model can tell apart
    parts
        parts in which a loss is computed
    element_size
        what an element of the array takes
    """
    return tokens * vocabulary * (element_size + _single / parts)
