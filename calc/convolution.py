"""Convolutional networks: the operations of a convolution, and of a network for one image."""

# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

from typing import Annotated

from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.models import ResNet


@law
def convolution_flops(
    height: Annotated[QuantityLike, "", "h", AT_LEAST_ONE],
    width: Annotated[QuantityLike, "", "w", AT_LEAST_ONE],
    inputs: Annotated[QuantityLike, "", "c_in", AT_LEAST_ONE],
    outputs: Annotated[QuantityLike, "", "c_out", AT_LEAST_ONE],
    kernel: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of a convolution: each place of the result sees a square of every input channel.

    Equation: O = 2 · h · w · c_in · c_out · k²

    Assumes that h and w are those of the result, and counts products with the padding too.

    Source: he2016resnet

    >>> print(convolution_flops(112, 112, 3, 64, 7))
    236.0 MFLOP
    """
    return _per_term * height * width * inputs * outputs * kernel**2


def forward_flops(model: ResNet) -> Annotated[Quantity, "FLOP"]:
    """Operations of a residual network for one image, in its convolutions and its classifier.

    Equation: O = Σ 2 · h · w · c_in · c_out · k²

    >>> from calc import models
    >>> print(forward_flops(models.get("resnet-50")))
    8.178 GFLOP
    """
    if not isinstance(model, ResNet):
        raise InputError(f"a ResNet of calc.models is needed here; got {abbreviated(model)}")
    return sum(
        (
            convolution_flops(each.side, each.side, each.inputs, each.outputs, each.kernel)
            for each in model.convolutions
        ),
        quantity("0 FLOP"),
    )
