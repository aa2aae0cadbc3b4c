"""Models that make an image or a video from noise in passes, guided by a text; transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calc.catalog.models.networks import Network, linear, whole_numbers
from calc.core.units import Quantity, quantity

MODULATED = 3  # vectors that a step and a text make of each sublayer: a shift, a scale, a gate
SIDE = 1024  # pixels along a side of what a model makes where its data say nothing


@dataclass(frozen=True, eq=False, kw_only=True)
class Diffusion(Network):
    """Shared numbers of all of them: places of pixels, a text, and the parts around passes.

    Its numbers have the names of `calc/data/models.toml`, whose first comment explains them.
    """

    family: ClassVar[str] = "a model of images or videos"

    width: int
    head_width: int
    patch_inputs: int
    patch_pixels: int
    """Pixels of the image along each side of what becomes a token, or a place."""
    text_width: int
    text_tokens: int
    time_width: int
    steps: int
    """Steps that its library takes where nothing else is said."""
    passes: int
    """Passes of a step: two where it is guided by what it makes without a text."""
    text_encoder: Quantity | None = None
    """Parameters that a token of the text meets before."""
    pixel_rows: int | None = None
    pixel_columns: int | None = None
    frames: int | None = None
    """Frames of a video, of which the first is kept, and one of each group after it."""
    frames_joined: int | None = None
    decoder_channels: tuple[int, ...] = ()
    """Channels of each stage of the autoencoder's decoder, each of twice the side of the last."""
    decoder_blocks: int | None = None
    """Blocks of two convolutions in each stage."""
    decoder_spans: int | None = None
    """Frames that each of its convolutions spans."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decoder_channels:
            channels = whole_numbers(self.name, "decoder_channels", self.decoder_channels)
            object.__setattr__(self, "decoder_channels", channels)

    @property
    def items(self) -> str:
        """Return what it makes."""
        return "images" if self.frames is None else "videos"

    @property
    def pixels(self) -> tuple[int, int]:
        """Rows and columns of what it makes where nothing is said."""
        return self.pixel_rows or SIDE, self.pixel_columns or SIDE

    @property
    def reduction(self) -> int:
        """Pixels along a side that the autoencoder makes one place."""
        return self.patch_pixels // 2

    @property
    def blocks(self) -> int:
        """Number of blocks, each of which has one attention over all tokens."""
        raise NotImplementedError

    @property
    def shape(self) -> dict[str, object]:
        return {"decoder_channels": self.decoder_channels} if self.decoder_channels else {}


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenDiffusion(Diffusion):
    """Transformers: blocks whose attention is over the tokens of an image or of all frames."""

    family: ClassVar[str] = "a diffusion transformer"

    heads: int
    feed_forward_width: int
    rotated: bool = False
    """Whether queries and keys are rotated by their places."""
    head_norms: bool = False

    @property
    def inner(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_width


@dataclass(frozen=True, eq=False, kw_only=True)
class DiffusionTransformer(TokenDiffusion):
    """One whose attention is over text and image together: FLUX, Stable Diffusion 3, HunyuanVideo.

    A double block has weights for the tokens of the text and others for those of the image, and one
    attention over both; a single block has the same weights for all.
    """

    double_blocks: int
    single_blocks: int | None = None
    vector_width: int | None = None
    gated: bool = False
    biases: bool = True
    embedded_guidance: bool = False
    half_last_block: bool = False
    """Whether the last double block ends with its attention, of which the text reads nothing."""
    shared_modulation: bool = False
    """Whether all blocks of a kind share their shifts, scales and gates."""

    @property
    def stream_weights(self) -> int:
        """Weights that a token is multiplied by in a block: attention, and feed-forward."""
        matrices = 3 if self.gated else 2
        return 4 * self.width * self.inner + matrices * self.width * self.feed_forward_width

    @property
    def blocks(self) -> int:
        """Number of blocks, of both kinds."""
        return self.double_blocks + (self.single_blocks or 0)

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part: embedding, double and single blocks, modulation, output.

        Modulation is computed once an image and step, not for each token.

        >>> from calc import models
        >>> for part, parameters in models.get("flux-1-dev").parts.items():
        ...     print(part, parameters)
        embedding 45.05M param
        double blocks 4.304B param
        single blocks 4.304B param
        modulation 3.247B param
        output 196.7K param
        """
        width, inner, biases = self.width, self.inner, self.biases
        hidden, double = self.feed_forward_width, self.double_blocks
        norms = 2 * self.head_width if self.head_norms else 0
        attention = linear(width, 3 * inner, biases) + norms
        up = linear(width, (2 if self.gated else 1) * hidden, biases)
        rest = linear(inner, width, biases) + up + linear(hidden, width, biases)
        # One matrix holds what a single block makes of attention and of its hidden activations, and
        # adds one bias to their sum.
        single = attention + rest - (width if biases else 0)
        half = rest if self.half_last_block else 0
        of_stream = linear(width, 2 * MODULATED * width, biases)
        of_single = linear(width, MODULATED * width, biases)
        of_half = linear(width, 2 * width, biases)  # a shift and a scale
        of_last = of_stream - of_half if self.half_last_block else 0
        singles = self.single_blocks or 0
        vectors = [self.time_width] * (2 if self.embedded_guidance else 1)
        if self.vector_width is not None:
            vectors.append(self.vector_width)
        modulation = sum(
            linear(inputs, width, biases) + linear(width, width, biases) for inputs in vectors
        )
        patch, text = self.patch_inputs, self.text_width
        kinds = (1, 1) if self.shared_modulation else (double, singles)
        of_blocks = 2 * kinds[0] * of_stream + kinds[1] * of_single
        return self._counted(
            {
                "embedding": linear(patch, width, biases)
                + linear(text, width, biases)
                + modulation,
                "double blocks": 2 * double * (attention + rest) - half,
                "single blocks": singles * single,
                "modulation": of_blocks - of_last + of_half,
                "output": linear(width, patch, biases),
            }
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class CrossDiffusion(TokenDiffusion):
    """One whose tokens attend to one another, and then to those of the text: Wan.

    Each step has a network of its own size; where there are several, a step runs one of them.
    """

    layers: int
    networks: int | None = None
    """Networks of which a step runs one: one of noisy steps, one of the rest."""

    @property
    def blocks(self) -> int:
        """Number of blocks, each with both kinds of attention."""
        return self.layers

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part, of all its networks.

        >>> from calc import models
        >>> for part, parameters in models.get("wan-2-1-t2v-14b").parts.items():
        ...     print(part, parameters)
        embedding 232.4M param
        attention 4.197B param
        attention to the text 4.196B param
        feed-forward 5.663B param
        output 338.0K param
        """
        width, inner, blocks = self.width, self.inner, self.blocks
        attention = 3 * linear(width, inner) + linear(inner, width) + 2 * inner
        modulation = 2 * MODULATED * width  # added to that of the step, which all blocks share
        of_text = linear(self.text_width, width) + linear(width, width)
        of_time = linear(self.time_width, width) + linear(width, width)
        hidden = self.feed_forward_width
        feed_forward = linear(width, hidden) + linear(hidden, width)
        counts = {
            "embedding": linear(self.patch_inputs, width)
            + of_text
            + of_time
            + linear(width, 2 * MODULATED * width),
            "attention": blocks * (attention + modulation),
            "attention to the text": blocks * (attention + 2 * width),  # and a norm before it
            "feed-forward": blocks * feed_forward,
            "output": linear(width, self.patch_inputs) + 2 * width,
        }
        total = {part: count * (self.networks or 1) for part, count in counts.items()}
        return self._counted(total)

    @property
    def of_one(self) -> Quantity:
        """Parameters of the network of a step."""
        return quantity(self.parameters.m_as("param") / (self.networks or 1), "param")
