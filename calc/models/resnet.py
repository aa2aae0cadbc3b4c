"""A residual network of bottleneck blocks, convolution by convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from calc.core.units import Quantity, quantity

COLOURS = 3
EXPANSION = 4  # of a block's channels, from its second convolution to its third
STAGE_STRIDE = 2  # each stage but the first halves the image


class Convolution(NamedTuple):
    """One convolution: the sides of its result, channels in and out, the side of its kernel."""

    name: str
    side: int
    inputs: int
    outputs: int
    kernel: int

    @property
    def parameters(self) -> int:
        """Its weights, which it uses at each place of the result."""
        return self.inputs * self.outputs * self.kernel**2


@dataclass(frozen=True, eq=False, kw_only=True)
class ResNet:
    """One residual network: its blocks, and what they are made of."""

    key: str
    name: str
    year: int
    blocks: tuple[int, ...]
    """Blocks of each stage."""
    width: Quantity
    image: Quantity
    classes: Quantity
    total: Quantity
    """Parameters as published; `parameters` counts them."""
    work: Quantity
    """Operations for one image as published."""

    @property
    def convolutions(self) -> tuple[Convolution, ...]:
        """Every convolution on the way of an image, the classifier as one of a single place."""
        width = int(self.width.magnitude)
        side = int(self.image.magnitude) // STAGE_STRIDE
        found = [Convolution("stem", side, COLOURS, width, 7)]
        inputs, side = width, side // STAGE_STRIDE  # after the pooling
        for stage, blocks in enumerate(self.blocks):
            inner, before = width * 2**stage, side
            side = side // STAGE_STRIDE if stage else side
            for block in range(blocks):
                name, outputs = f"stage {stage + 1}, block {block + 1}", inner * EXPANSION
                found += [
                    Convolution(name, before, inputs, inner, 1),
                    Convolution(name, side, inner, inner, 3),
                    Convolution(name, side, inner, outputs, 1),
                ]
                if block == 0:
                    found.append(Convolution(f"{name}, shortcut", side, inputs, outputs, 1))
                inputs, before = outputs, side
        return (*found, Convolution("classifier", 1, inputs, int(self.classes.magnitude), 1))

    @property
    def parameters(self) -> Quantity:
        """All parameters: weights, scale and shift of each convolution, the classifier's biases.

        >>> from calc import models
        >>> print(f"{models.get('resnet-50').parameters.m_as('param'):.0f}")
        25557032
        """
        *convolutions, classifier = self.convolutions
        count = sum(each.parameters + 2 * each.outputs for each in convolutions)
        return quantity(count + classifier.parameters + classifier.outputs, "param")
