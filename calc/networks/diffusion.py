"""Diffusion models: passes of an image or video, tokens of a pass, and the work of both."""

from __future__ import annotations

from typing import Annotated, cast

from calc.catalog.models import (
    CrossDiffusion,
    Diffusion,
    DiffusionTransformer,
    TokenDiffusion,
    UNet,
    network,
)
from calc.catalog.models.unet import EXPANSION, KERNEL
from calc.core.law import AT_LEAST_ONE, law
from calc.core.units import Quantity, QuantityLike, quantity


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

    Parameters
    ----------
    steps
        steps from noise to the image
    passes
        passes of the network: of a step, or of an image
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

    Parameters
    ----------
    height
        rows of pixels of the image
    width
        columns of pixels of the image
    patch
        pixels along a side of what becomes a token
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

    Parameters
    ----------
    tokens
        tokens of a pass, text and image together
    blocks
        blocks with an attention each
    width
        width of all heads together
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

    Parameters
    ----------
    work
        operations of one pass
    passes
        passes of the network: of a step, or of an image
    rate
        operations in a second
    """
    return passes * work / rate


@law
def kept_frames(
    frames: Annotated[QuantityLike, "", "f", AT_LEAST_ONE],
    joined: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Frames that a causal autoencoder keeps: the first, and one of each group after it.

    Equation: k = (f − 1) / g + 1

    Source: wan2025

    >>> print(kept_frames(81, 4))
    21

    Parameters
    ----------
    frames
        frames of the video
    joined
        frames that become one, after the first
    """
    return (frames - 1) / joined + 1


def tokens(
    model: TokenDiffusion | str,
    height: Annotated[QuantityLike, "", AT_LEAST_ONE] | None = None,
    width: Annotated[QuantityLike, "", AT_LEAST_ONE] | None = None,
    frames: Annotated[QuantityLike, "", AT_LEAST_ONE] | None = None,
) -> Annotated[Quantity, ""]:
    """Tokens that attend to one another: of the image or all frames, and of a text among them.

    >>> print(tokens("flux-1-dev"), tokens("wan-2-2-t2v-a14b"))
    4608 75600

    Parameters
    ----------
    model
        a diffusion transformer of `calc.models`, or its name
    height
        rows of pixels of the image
    width
        columns of pixels
    frames
        frames of the video
    """
    model = network(model, TokenDiffusion)
    rows, columns = model.pixels
    height = rows if height is None else height
    width = columns if width is None else width
    count = image_tokens(height, width, model.patch_pixels)
    if model.frames is not None:
        frames = model.frames if frames is None else frames
        count = count * kept_frames(frames, model.frames_joined or 1)
    return count if isinstance(model, CrossDiffusion) else count + model.text_tokens


def pass_flops(
    model: Diffusion | str,
    height: Annotated[QuantityLike, "", AT_LEAST_ONE] | None = None,
    width: Annotated[QuantityLike, "", AT_LEAST_ONE] | None = None,
    frames: Annotated[QuantityLike, "", AT_LEAST_ONE] | None = None,
) -> Annotated[Quantity, "FLOP"]:
    """Operations of one pass for one image: each token meets its weights, and all other tokens.

    Modulation, of one vector an image, and the embeddings are left out: below 1%. A U-Net's places
    meet the weights of their own side.

    >>> print(pass_flops("flux-1-dev"), pass_flops("wan-2-2-t2v-a14b"), pass_flops("sdxl"))
    74.36 TFLOP 6.523 PFLOP 6.761 TFLOP

    Parameters
    ----------
    model
        a diffusion model of `calc.models`, or its name
    height
        rows of pixels of the image
    width
        columns of pixels
    frames
        frames of the video
    """
    model = network(model, Diffusion)
    if isinstance(model, UNet):
        rows, columns = model.pixels
        return _unet_flops(model, height or rows, width or columns)
    of_tokens = cast(TokenDiffusion, model)
    count = tokens(of_tokens, height, width, frames)
    attention = joint_attention_flops(count, of_tokens.blocks, of_tokens.inner)
    if isinstance(model, CrossDiffusion):
        # Of its own attention four matrices, of that to the text queries and result; the text's
        # keys and values.
        own = 6 * model.width * model.inner + 2 * model.width * model.feed_forward_width
        of_text = 2 * model.width * model.inner * model.text_tokens
        products = 2.0 * model.blocks * (own * count.m_as("") + of_text)
        seen = 4.0 * model.blocks * count.m_as("") * model.text_tokens * model.inner
        return quantity(products + seen, "FLOP") + attention
    joint = cast(DiffusionTransformer, model)
    products = 2.0 * model.blocks * joint.stream_weights * count.m_as("")
    return quantity(products, "FLOP") + attention


def _unet_flops(model: UNet, height: QuantityLike, width: QuantityLike) -> Quantity:
    """Operations of a pass of a U-Net, layer by layer."""
    work = quantity("0 FLOP")
    text = model.text_tokens
    for kind, halved, inputs, outputs, depth, _ in model.layers:
        places = image_tokens(height, width, model.patch_pixels * 2**halved)
        count = places.m_as("")
        if kind == "transformer":
            block = 3 * EXPANSION + 6  # matrices as wide as high, a gated network's counted so
            products = count * (2 + depth * block) * outputs**2
            products += depth * text * 2 * model.text_width * outputs
            seen = 2.0 * depth * count * text * outputs
            work = work + quantity(2.0 * (products + seen), "FLOP")
            work = work + joint_attention_flops(places, depth, outputs)
        else:
            weights = KERNEL * inputs * outputs
            if kind == "residual":
                weights += KERNEL * outputs**2 + (inputs * outputs if inputs != outputs else 0)
            work = work + quantity(2.0 * count * weights, "FLOP")
    return work
