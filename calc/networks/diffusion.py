"""Diffusion transformers: passes of an image, tokens of a pass, and the work of both."""

from __future__ import annotations

from typing import Annotated

from calc.catalog.models import DiffusionTransformer, network
from calc.core.law import AT_LEAST_ONE, law
from calc.core.units import Quantity, QuantityLike, quantity

PIXELS = 1024  # along a side of the images that the models of the data are made for


@law
def passes_of_an_image(
    steps: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    passes: Annotated[QuantityLike, "", "g", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, ""]:
    """Passes of the network for an image: one a step, or two where a second one guides it.

    Equation: N = n · g

    Classifier-free guidance moves away from what the network makes without the text, g = 2. A
    network that was trained to do so in one pass has g = 1.

    Source: ho2022guidance

    >>> print(passes_of_an_image(28, 2))
    56
    """
    return steps * passes


@law
def image_tokens(
    height: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "w", AT_LEAST_ONE],
    patch: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Tokens of an image, each a square of pixels, the autoencoder's reduction included.

    Equation: t = h · w / p²

    Source: peebles2023dit

    >>> print(image_tokens(1024, 1024, 16))
    4096
    """
    return height * width / patch**2


@law
def joint_attention_flops(
    tokens: Annotated[QuantityLike, "", "t", AT_LEAST_ONE],
    blocks: Annotated[QuantityLike, "", "l", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "d", AT_LEAST_ONE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of scores and weighted values over all tokens of text and image, without a mask.

    Equation: O = 2 · 2 · l · t² · d

    d is the width of all heads together.

    Source: vaswani2017attention

    >>> print(joint_attention_flops(4608, 57, 3072))
    14.87 TFLOP
    """
    return 2 * _per_term * blocks * tokens**2 * width


@law
def image_time(
    work: Annotated[QuantityLike, "FLOP", "O"],
    passes: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    rate: Annotated[QuantityLike, "FLOP/s", "R"],
) -> Annotated[Quantity, "s"]:
    """Time of an image whose passes, one after the other, are bound by arithmetic.

    Equation: T = N · O / R

    Assumes that encoding the text and decoding the image take no time beside them.

    Source: peebles2023dit

    >>> print(image_time("74.4 TFLOP", 28, "989.4 TFLOP/s"))
    2.106 s
    """
    return passes * work / rate


def tokens(
    model: DiffusionTransformer | str,
    height: Annotated[QuantityLike, "", AT_LEAST_ONE] = PIXELS,
    width: Annotated[QuantityLike, "", AT_LEAST_ONE] = PIXELS,
) -> Annotated[Quantity, ""]:
    """Tokens of a pass: those of the image, and those of the text.

    >>> print(tokens("flux-1-dev"))
    4608
    """
    model = network(model, DiffusionTransformer)
    return image_tokens(height, width, model.patch_pixels) + model.text_tokens


def pass_flops(
    model: DiffusionTransformer | str,
    height: Annotated[QuantityLike, "", AT_LEAST_ONE] = PIXELS,
    width: Annotated[QuantityLike, "", AT_LEAST_ONE] = PIXELS,
) -> Annotated[Quantity, "FLOP"]:
    """Operations of one pass for one image: each token meets its weights, and all other tokens.

    Modulation, of one vector an image, and the embeddings are left out: below 1%.

    >>> print(pass_flops("flux-1-dev"))
    74.36 TFLOP
    """
    model = network(model, DiffusionTransformer)
    inner = (model.heads * model.head_width).m_as("")
    count = tokens(model, height, width)
    products = 2.0 * model.blocks * model.stream_weights * count.m_as("")
    return quantity(products, "FLOP") + joint_attention_flops(count, model.blocks, inner)
