"""A U-Net: convolutions at several sides of a latent image, with attention among its places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from calc.catalog.models.diffusion_transformer import Diffusion
from calc.catalog.models.networks import linear, whole_numbers
from calc.core.errors import InputError
from calc.core.units import Quantity

KERNEL = 9  # places that a convolution of three rows and columns sees
EXPANSION = 4  # width of a transformer's feed-forward network, over that of its stream
MOST_BLOCKS = 1000  # of a transformer, beyond which only slips of the keyboard lead
EMBEDDED = 4  # width of the vector of the time, over the first channels


class Layer(NamedTuple):
    """One layer on the way down a U-Net and up again, and at which part of the latent's side."""

    kind: str
    """convolution, residual (two of them, and a shortcut), or transformer"""
    halved: int
    """How often the latent's side is halved before it."""
    inputs: int
    outputs: int
    depth: int = 0
    """Blocks of a transformer, each with attention to all places and to the text."""
    again: int = 0
    """Channels of its inputs that a layer on the way down has made."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UNet(Diffusion):
    """A network that halves a latent image a few times, and doubles it again: Stable Diffusion XL.

    What a layer on the way down has made is read again by one on the way up. `stages` are channels
    of each side, from the largest on, over the first ones, and `depths` the blocks of the
    transformers that follow their residual blocks.
    """

    family: ClassVar[str] = "a diffusion model of a U-Net"

    residual_blocks: int
    """In each stage on the way down; on the way up there is one more."""
    vector_width: int
    """Numbers of the vector that says the text as a whole and the size of the image."""
    stages: tuple[int, ...]
    depths: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "stages", whole_numbers(self.name, "stages", self.stages))
        depths = tuple(self.depths)
        if len(depths) != len(self.stages) or not all(
            type(depth) is int and 0 <= depth <= MOST_BLOCKS for depth in depths
        ):
            raise InputError(
                f"{self.name}: depths must be as many whole numbers as stages,"
                f" {len(self.stages)}, as in [0, 2, 10]; got {depths}"
            )
        object.__setattr__(self, "depths", depths)

    @property
    def reduction(self) -> int:
        return self.patch_pixels

    @property
    def blocks(self) -> int:
        """Number of blocks with an attention over all places of their side."""
        return sum(layer.depth for layer in self.layers)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers, in the order in which a pass runs them."""
        return tuple(self._layers())

    def _layers(self) -> Iterator[Layer]:
        made = [self.width]  # what the way up reads again, the last first
        yield Layer("convolution", 0, self.patch_inputs, self.width)
        channels, last = self.width, len(self.stages) - 1
        for stage, (times, depth) in enumerate(zip(self.stages, self.depths, strict=True)):
            for _ in range(self.residual_blocks):
                yield from self._block(stage, channels, self.width * times, depth)
                channels = self.width * times
                made.append(channels)
            if stage < last:
                yield Layer("convolution", stage + 1, channels, channels)
                made.append(channels)
        yield from self._block(last, channels, channels, self.depths[-1])
        yield Layer("residual", last, channels, channels)
        for stage in reversed(range(len(self.stages))):
            for _ in range(self.residual_blocks + 1):
                outputs, again = self.width * self.stages[stage], made.pop()
                depth = self.depths[stage]
                yield from self._block(stage, channels + again, outputs, depth, again)
                channels = outputs
            if stage:
                yield Layer("convolution", stage - 1, channels, channels)
        yield Layer("convolution", 0, channels, self.patch_inputs)

    def _block(
        self, stage: int, inputs: int, outputs: int, depth: int, again: int = 0
    ) -> Iterator[Layer]:
        yield Layer("residual", stage, inputs, outputs, again=again)
        if depth:
            yield Layer("transformer", stage, outputs, outputs, depth)

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part: embedding, convolutions, residual blocks, transformers.

        >>> from calc import models
        >>> for part, parameters in models.get("sdxl").parts.items():
        ...     print(part, parameters)
        embedding 7.296M param
        convolutions 23.07M param
        residual blocks 327.9M param
        transformers 2.209B param
        """
        counts = dict.fromkeys(("embedding", "convolutions", "residual blocks", "transformers"), 0)
        vector = EMBEDDED * self.width
        for inputs in (self.time_width, self.vector_width):
            counts["embedding"] += linear(inputs, vector) + linear(vector, vector)
        counts["convolutions"] += 2 * self.width  # of the last normalisation
        for kind, _, inputs, outputs, depth, _ in self.layers:
            if kind == "convolution":
                counts["convolutions"] += linear(KERNEL * inputs, outputs)
            elif kind == "residual":
                norms, said = 2 * inputs + 2 * outputs, linear(vector, outputs)
                twice = linear(KERNEL * inputs, outputs) + linear(KERNEL * outputs, outputs)
                shortcut = linear(inputs, outputs) if inputs != outputs else 0
                counts["residual blocks"] += norms + said + twice + shortcut
            else:
                ends = 2 * outputs + 2 * linear(outputs, outputs)
                counts["transformers"] += ends + depth * self._of_block(outputs)
        return self._counted(counts)

    def _of_block(self, width: int) -> int:
        """Parameters of a block: attention to places, and to a text, a gated network, norms."""
        hidden = EXPANSION * width
        attentions = 4 * width * width + 2 * linear(width, width)
        of_text = 2 * self.text_width * width
        return attentions + of_text + linear(width, 2 * hidden) + linear(hidden, width) + 6 * width

    @property
    def shape(self) -> dict[str, object]:
        return {"stages": self.stages, "depths": self.depths} | super().shape
