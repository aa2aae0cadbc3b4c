"""An encoder that reads all of its input at once, and a decoder that looks at it at each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calc.catalog.models.networks import Network, linear
from calc.core.arguments import as_list, one_of
from calc.core.errors import InputError
from calc.core.units import Quantity

BIASES = ("query", "key", "value", "attention output", "feed-forward")
NORMS = {"rms": 1, "layer": 2}  # vectors of each
CONVOLUTION = 3  # moments that a place of each of Whisper's two convolutions sees
STACKS = 2  # encoder and decoder, each with one table of relative positions


@dataclass(frozen=True, eq=False, kw_only=True)
class EncoderDecoder(Network):
    """One transformer with an encoder and a decoder: T5, Whisper.

    Its numbers have the names of `calc/data/models.toml`, whose first comment explains them.
    """

    family: ClassVar[str] = "an encoder–decoder transformer"

    encoder_layers: int
    decoder_layers: int
    width: int
    heads: int
    head_width: int
    feed_forward_width: int
    vocabulary: int
    context: int
    """The most tokens that its decoder was made to write."""
    source_context: int | None = None
    """The most that its encoder was made to read, where that is fixed."""
    positions: int | None = None
    source_positions: int | None = None
    relative_positions: int | None = None
    mel_bins: int | None = None
    gated: bool = False
    norm: str = "rms"
    biases: tuple[str, ...] = ()
    output: str = "tied"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(f"{self.name}: norm", self.norm, NORMS)
        one_of(f"{self.name}: output", self.output, ("own", "tied"))
        for bias in as_list(f"{self.name}: biases", self.biases):
            one_of(f"{self.name}: biases", bias, BIASES)
        if self.mel_bins is not None and self.source_context is None:
            raise InputError(f"{self.name}: mel_bins cannot be without source_context")

    @property
    def layer_weights(self) -> dict[str, int]:
        """Weights of one attention, which the decoder has twice a layer, and one feed-forward."""
        width, inner = self.width, self.heads * self.head_width
        hidden = self.feed_forward_width
        matrices = 3 if self.gated else 2
        return {"attention": 4 * width * inner, "feed-forward": matrices * width * hidden}

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part: embedding, encoder, decoder, cross-attention, norms and so on.

        >>> from calc import models
        >>> for part, parameters in models.get("whisper-large-v3").parts.items():
        ...     print(part, parameters)
        embedding 66.39M param
        positions 2.493M param
        sound 5.409M param
        encoder 629.5M param
        decoder 629.5M param
        cross-attention 209.8M param
        norms 414.7K param
        """
        width, inner = self.width, self.heads * self.head_width
        hidden, encoder = self.feed_forward_width, self.encoder_layers
        decoder, weights = self.decoder_layers, self.layer_weights
        attention = weights["attention"] + width * ("attention output" in self.biases)
        attention += inner * sum(matrix in self.biases for matrix in ("query", "key", "value"))
        ends = (hidden * (2 if self.gated else 1) + width) * ("feed-forward" in self.biases)
        layer = attention + weights["feed-forward"] + ends
        mel = self.mel_bins or 0
        sound = linear(mel * CONVOLUTION, width) + linear(width * CONVOLUTION, width)
        normalizations = 2 * encoder + 1 + 3 * decoder + 1
        stored = (self.positions or 0) + (self.source_positions or 0)
        relative = STACKS * (self.relative_positions or 0) * self.heads
        table = self.vocabulary * width
        return self._counted(
            {
                "embedding": table,
                "positions": stored * width + relative,
                "sound": sound if mel else 0,
                "encoder": encoder * layer,
                "decoder": decoder * layer,
                "cross-attention": decoder * attention,
                "norms": NORMS[self.norm] * normalizations * width,
                "output": table if self.output == "own" else 0,
            }
        )
