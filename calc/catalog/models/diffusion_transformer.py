"""A diffusion transformer: it makes an image from noise in many passes, guided by a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calc.catalog.models.networks import Network, linear
from calc.core.units import Quantity

MODULATED = 3  # vectors that a step and a text make of each sublayer: a shift, a scale, a gate


@dataclass(frozen=True, eq=False, kw_only=True)
class DiffusionTransformer(Network):
    """One diffusion transformer: FLUX.1, Stable Diffusion 3.

    A double block has weights for the tokens of the text and others for those of the image, and one
    attention over both; a single block has the same weights for all. Its numbers have the names of
    `calc/data/models.toml`, whose first comment explains them.
    """

    family: ClassVar[str] = "a diffusion transformer"

    width: int
    heads: int
    head_width: int
    feed_forward_width: int
    double_blocks: int
    single_blocks: int | None = None
    patch_inputs: int
    patch_pixels: int
    """Pixels of the image along each side of what becomes a token."""
    text_width: int
    text_tokens: int
    vector_width: int
    time_width: int
    steps: int
    """Steps that its library takes where nothing else is said."""
    passes: int
    """Passes of a step: two where it is guided by what it makes without a text."""
    embedded_guidance: bool = False
    head_norms: bool = False
    half_last_block: bool = False
    """Whether the last double block ends with its attention, of which the text reads nothing."""

    @property
    def stream_weights(self) -> int:
        """Weights that a token is multiplied by in a block: attention, and feed-forward."""
        width, hidden = self.width, self.feed_forward_width
        return 4 * width * self.heads * self.head_width + 2 * width * hidden

    @property
    def blocks(self) -> int:
        """Number of blocks, each of which has one attention over all tokens."""
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
        width, inner = self.width, self.heads * self.head_width
        hidden, double = self.feed_forward_width, self.double_blocks
        norms = 2 * self.head_width if self.head_norms else 0
        attention = linear(width, 3 * inner) + norms
        rest = linear(inner, width) + linear(width, hidden) + linear(hidden, width)
        # One matrix holds what a single block makes of attention and of its hidden activations, and
        # adds one bias to their sum.
        single = attention + rest - width
        half = rest if self.half_last_block else 0
        of_stream, of_single = (
            linear(width, 2 * MODULATED * width),
            linear(width, MODULATED * width),
        )
        of_half = linear(width, 2 * width)  # a shift and a scale
        of_last = of_stream - of_half if self.half_last_block else 0
        singles = self.single_blocks or 0
        vectors = [self.time_width] * (2 if self.embedded_guidance else 1)
        modulation = sum(
            linear(inputs, width) + linear(width, width) for inputs in (*vectors, self.vector_width)
        )
        patch, text = self.patch_inputs, self.text_width
        return self._counted(
            {
                "embedding": linear(patch, width) + linear(text, width) + modulation,
                "double blocks": 2 * double * (attention + rest) - half,
                "single blocks": singles * single,
                "modulation": 2 * double * of_stream + singles * of_single - of_last + of_half,
                "output": linear(width, patch),
            }
        )
