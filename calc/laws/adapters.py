"""Adapters, and states smaller than Adam's: what fine-tuning on few devices computes and keeps."""

from __future__ import annotations

from typing import Annotated

from calc.catalog import constants
from calc.core.elementwise import floor, maximum
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike
from calc.formats import ELEMENT_SIZE


@law
def adapter_parameters(
    inputs: Annotated[QuantityLike, "", "d_in", AT_LEAST_ONE],
    outputs: Annotated[QuantityLike, "", "d_out", AT_LEAST_ONE],
    rank: Annotated[QuantityLike, "", "r", AT_LEAST_ONE],
    _parameter: Annotated[QuantityLike, "param"] = 1,
) -> Annotated[Quantity, "param"]:
    """Parameters of the two thin matrices that LoRA adds beside a matrix of weights.

    Equation: A = r · (d_in + d_out)

    Source: hu2021lora

    >>> print(adapter_parameters(4096, 14336, 16))
    294.9K param

    Parameters
    ----------
    inputs
        width of what the matrix takes in
    outputs
        width of what the matrix gives
    rank
        rank of the adapters
    """
    return rank * (inputs + outputs) * _parameter


@law
def frozen_training_flops(
    frozen: Annotated[QuantityLike, "param", "P"],
    adapters: Annotated[QuantityLike, "param", "A", NON_NEGATIVE],
    tokens: Annotated[QuantityLike, "token", "D"],
    work_frozen: Annotated[QuantityLike, "FLOP/(param·token)", "4"] = constants.get(
        "work_training_frozen"
    ),
    work: Annotated[QuantityLike, "FLOP/(param·token)", "6"] = constants.get("work_training"),
) -> Annotated[Quantity, "FLOP"]:
    """Operations to train adapters: 2 forward and 2 backward through what is frozen, 6 for them.

    Equation: C = (4 · P + 6 · A) · D

    The gradient passes through a frozen weight to what stands before it; its own gradient is not
    computed. Layers that are recomputed add 2 · P. Attention over long contexts comes on top.

    Source: hu2021lora

    >>> print(frozen_training_flops("8.03B param", "42M param", "1M token"))
    32.37 PFLOP

    Parameters
    ----------
    frozen
        parameters that are not trained
    adapters
        parameters of the adapters, which are trained
    tokens
        tokens of the batch
    work_frozen
        operations for a frozen parameter and a token
    work
        operations for each parameter and token
    """
    return (work_frozen * frozen + work * adapters) * tokens


@law
def factored_variance(
    rows: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    columns: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "4 byte",
) -> Annotated[Quantity, "byte"]:
    """Memory of Adafactor's second moment of a matrix: a mean for each row and for each column.

    Equation: M = s · (n + m)

    Adam keeps s · n · m. Assumes that Adafactor keeps no momentum.

    Source: shazeer2018adafactor

    >>> print(factored_variance(4096, 14336))
    73.73 kB

    Parameters
    ----------
    rows
        rows of the matrix
    columns
        columns of the matrix
    element_size
        what an element of the array takes
    """
    return element_size * (rows + columns)


@law
def context_that_fits(
    capacity: Annotated[QuantityLike, "byte", "C"],
    held: Annotated[QuantityLike, "byte", "M", NON_NEGATIVE],
    per_token: Annotated[QuantityLike, "byte", "m"],
) -> Annotated[Quantity, ""]:
    """Tokens of a batch whose activations fit beside what is held; none where that is too much.

    Equation: T = ⌊max(0, C − M) / m⌋

    Source: korthikanti2023reducing

    >>> print(context_that_fits("48 GB", "40 GB", "3 MB"))
    2666

    Parameters
    ----------
    capacity
        memory of the device
    held
        what is held whatever the batch: weights, states, gradients
    per_token
        what the batch keeps of each token
    """
    return maximum(floor((capacity - held) / per_token), 0.0)
