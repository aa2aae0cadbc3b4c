"""Transformers with an encoder and a decoder: cross-attention, its cache, and the work of both."""

from __future__ import annotations

from typing import Annotated

from calc.catalog.models import EncoderDecoder, network
from calc.core.arrays import Number
from calc.core.elementwise import largest
from calc.core.errors import InputError
from calc.core.law import AT_LEAST_ONE, law
from calc.core.units import Quantity, QuantityLike, quantity


@law
def cross_attention_flops(
    source: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    layers: Annotated[QuantityLike, "", "l", AT_LEAST_ONE],
    heads: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    head_width: Annotated[QuantityLike, "", "d_h", AT_LEAST_ONE],
    _per_term: Annotated[QuantityLike, "FLOP/token"] = "2 FLOP/token",
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of a written token in scores and values over all that the encoder has read.

    Equation: F = 2 · 2 · n · l · h · d_h

    Keys and values of the source are made once, not for each token; they are not in it.

    Source: vaswani2017attention

    >>> print(cross_attention_flops(1500, 32, 20, 64))
    245.8 MFLOP/token

    Parameters
    ----------
    source
        what the encoder has read: tokens, or places of a spectrogram
    layers
        layers of the encoder or of the decoder
    heads
        heads of each attention
    head_width
        width of a head's query, key and value
    """
    return 2 * _per_term * source * layers * heads * head_width


@law
def cross_cache(
    source: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    layers: Annotated[QuantityLike, "", "l", AT_LEAST_ONE],
    heads: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    head_width: Annotated[QuantityLike, "", "d_h", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of the keys and values of the source, in each decoder layer: written once, never more.

    Equation: M = 2 · n · l · h · d_h · s

    Source: vaswani2017attention

    See also: encoder_decoder.self_cache

    >>> print(cross_cache(1500, 32, 20, 64))
    245.8 MB

    Parameters
    ----------
    source
        what the encoder has read: tokens, or places of a spectrogram
    layers
        layers of the encoder or of the decoder
    heads
        heads of each attention
    head_width
        width of a head's query, key and value
    element_size
        what an element of keys and values takes
    """
    return 2 * source * layers * heads * head_width * element_size


@law
def self_cache(
    written: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    layers: Annotated[QuantityLike, "", "l", AT_LEAST_ONE],
    heads: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    head_width: Annotated[QuantityLike, "", "d_h", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of the keys and values of what was written, which grows token by token.

    Equation: M = 2 · m · l · h · d_h · s

    Source: vaswani2017attention

    See also: encoder_decoder.cross_cache

    >>> print(self_cache(448, 32, 20, 64))
    73.40 MB

    Parameters
    ----------
    written
        tokens that the decoder has written
    layers
        layers of the encoder or of the decoder
    heads
        heads of each attention
    head_width
        width of a head's query, key and value
    element_size
        what an element of keys and values takes
    """
    return 2 * written * layers * heads * head_width * element_size


def encoder_flops(
    model: EncoderDecoder | str, source: Annotated[QuantityLike, "", AT_LEAST_ONE]
) -> Annotated[Quantity, "FLOP"]:
    """Operations of the encoder's only pass, over a source of this length, without a mask.

    What makes the source of a spectrogram is left out: below 1% of it.

    >>> print(encoder_flops("whisper-large-v3", 1500))
    2.256 TFLOP

    Parameters
    ----------
    model
        an encoder–decoder transformer of `calc.models`, or its name
    source
        what the encoder has read: tokens, or places of a spectrogram
    """
    model = network(model, EncoderDecoder)
    length = _length(model, source)
    layers = model.encoder_layers
    products = 2.0 * length * layers * sum(model.layer_weights.values())
    scores = cross_attention_flops(length, layers, model.heads, model.head_width)
    return quantity(products + scores.m_as("FLOP/token") * length, "FLOP")


def cross_projection_flops(
    model: EncoderDecoder | str, source: Annotated[QuantityLike, "", AT_LEAST_ONE]
) -> Annotated[Quantity, "FLOP"]:
    """Operations that make the keys and values of the source, once, in every decoder layer.

    They are weights of the decoder, and run over what the encoder has read: neither
    `encoder_flops` nor `decoder_flops` has them.

    >>> print(cross_projection_flops("whisper-large-v3", 1500))
    314.6 GFLOP

    Parameters
    ----------
    model
        an encoder–decoder transformer of `calc.models`, or its name
    source
        what the encoder has read: tokens, or places of a spectrogram
    """
    model = network(model, EncoderDecoder)
    length = _length(model, source)
    keys_and_values = model.layer_weights["attention"] / 2
    return quantity(2.0 * length * model.decoder_layers * keys_and_values, "FLOP")


def decoder_flops(
    model: EncoderDecoder | str,
    source: Annotated[QuantityLike, "", AT_LEAST_ONE],
    written: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "FLOP/token"]:
    """Operations of one written token: its matrices, what was read, and what was written before.

    Of the cross-attention it meets the query's and the output's matrices: keys and values of the
    source are made once, by `cross_projection_flops`.

    >>> print(decoder_flops("whisper-large-v3", 1500, 100))
    1.863 GFLOP/token

    Parameters
    ----------
    model
        an encoder–decoder transformer of `calc.models`, or its name
    source
        what the encoder has read: tokens, or places of a spectrogram
    written
        tokens that the decoder has written
    """
    model = network(model, EncoderDecoder)
    source, layers = _length(model, source), model.decoder_layers
    attention, feed_forward = model.layer_weights.values()
    weights = layers * (1.5 * attention + feed_forward)
    weights += model.vocabulary * model.width
    seen = quantity(source) + quantity(written)
    scores = cross_attention_flops(seen, layers, model.heads, model.head_width)
    return quantity(2.0 * weights, "FLOP/token") + scores


def caches(
    model: EncoderDecoder | str,
    source: Annotated[QuantityLike, "", AT_LEAST_ONE],
    written: Annotated[QuantityLike, "", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of both caches of a sequence: of the source, and of what was written.

    >>> print(caches("whisper-large-v3", 1500, 448))
    319.2 MB

    Parameters
    ----------
    model
        an encoder–decoder transformer of `calc.models`, or its name
    source
        what the encoder has read: tokens, or places of a spectrogram
    written
        tokens that the decoder has written
    element_size
        what an element of keys and values takes
    """
    model = network(model, EncoderDecoder)
    shape = (model.decoder_layers, model.heads, model.head_width, element_size)
    return cross_cache(_length(model, source), *shape) + self_cache(written, *shape)


def _length(model: EncoderDecoder, source: QuantityLike) -> Number:
    length: Number = quantity(source).m_as("")
    longest = model.source_context
    if longest is not None and (most := largest(length)) > longest:
        raise InputError(f"{model.name} reads at most {longest} places of its source; got {most:g}")
    return length
