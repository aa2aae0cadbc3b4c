"""Training and inference of dense models: work, time, utilisation, bytes per parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from calc import constants
from calc.errors import InputError, shown
from calc.law import AT_LEAST_ONE, POSITIVE_FRACTION, law
from calc.units import Quantity, QuantityLike, quantity


@law
def training_flops(
    parameters: Annotated[QuantityLike, "param"],
    tokens: Annotated[QuantityLike, "token"],
    work: Annotated[QuantityLike, "FLOP/(param·token)"] = constants.get("work_training"),
) -> Annotated[Quantity, "FLOP"]:
    """Operations to train a dense model: 2 forward and 4 backward for each parameter and token.

    Equation: C = 6 · P · D

    Assumes that matrix products with the parameters are all the work; attention over long sequences
    comes on top. A mixture of experts counts its active parameters.

    Source: kaplan2020scaling

    >>> print(training_flops("7B param", "1T token"))
    4.2e22 FLOP
    """
    return work * parameters * tokens


@law
def inference_flops(
    parameters: Annotated[QuantityLike, "param"],
    tokens: Annotated[QuantityLike, "token"] = 1,
    work: Annotated[QuantityLike, "FLOP/(param·token)"] = constants.get("work_inference"),
) -> Annotated[Quantity, "FLOP"]:
    """Operations of a forward pass: a multiply and an add for each parameter and token.

    Equation: C = 2 · P · D

    Assumes a dense model whose attention work is small beside its matrix products.

    Source: kaplan2020scaling

    >>> print(inference_flops("7B param"))
    14 GFLOP
    """
    return work * parameters * tokens


@law
def training_time(
    parameters: Annotated[QuantityLike, "param"],
    tokens: Annotated[QuantityLike, "token"],
    devices: Annotated[QuantityLike, "", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s"],
    mfu: Annotated[QuantityLike, "", POSITIVE_FRACTION],
    work: Annotated[QuantityLike, "FLOP/(param·token)"] = constants.get("work_training"),
) -> Annotated[Quantity, "s"]:
    """Time to train on so many devices, each at the given fraction of its dense peak.

    Equation: T = 6 · P · D / (N · R_peak · U)

    Assumes that the utilisation (MFU) is the same from the first step to the last, and no time is
    lost.

    Source: kaplan2020scaling

    >>> print(training_time("1B param", "20B token", 1, "312 TFLOP/s", 0.4))
    11.13 day
    """
    return work * parameters * tokens / (devices * peak * mfu)


@law
def mfu(
    parameters: Annotated[QuantityLike, "param"],
    tokens: Annotated[QuantityLike, "token"],
    devices: Annotated[QuantityLike, "", AT_LEAST_ONE],
    peak: Annotated[QuantityLike, "FLOP/s"],
    time: Annotated[QuantityLike, "s"],
    work: Annotated[QuantityLike, "FLOP/(param·token)"] = constants.get("work_training"),
) -> Annotated[Quantity, ""]:
    """Model FLOP utilisation: the fraction of the peak that the model's own operations account for.

    Equation: U = 6 · P · D / (N · R_peak · T)

    Above 1 the inputs contradict each other: a sparse peak taken for a dense one, or a time without
    restarts.

    Source: chowdhery2023palm

    >>> print(mfu("1B param", "20B token", 1, "312 TFLOP/s", "11.13 day").to("%"))
    40.00%
    """
    return work * parameters * tokens / (devices * peak * time)


@law
def model_memory(
    parameters: Annotated[QuantityLike, "param"],
    bytes_per_parameter: Annotated[QuantityLike, "byte/param"],
) -> Annotated[Quantity, "byte"]:
    """Memory that a model's state takes, activations and caches not included.

    Equation: M = P · b

    Source: rajbhandari2020zero

    >>> print(model_memory("7B param", "16 byte/param"))
    112 GB
    """
    return parameters * bytes_per_parameter


@dataclass(frozen=True)
class Recipe:
    """What is stored for each parameter, part by part, in one way to train or serve."""

    name: str
    parts: dict[str, Quantity]

    @property
    def bytes_per_parameter(self) -> Quantity:
        """The sum of the parts."""
        return sum(self.parts.values(), quantity(0, "byte/param"))

    @property
    def breakdown(self) -> str:
        """ "2 weight + 2 gradient + …", in bytes for each parameter."""
        return " + ".join(f"{size.magnitude:g} {part}" for part, size in self.parts.items())


# Each part is a constant, whose source says why it is needed.
RECIPES = {
    "adam-mixed": {
        "weight": "size_weight_fp16",
        "gradient": "size_gradient_fp16",
        "master weight": "size_master_weight_fp32",
        "momentum": "size_momentum_fp32",
        "variance": "size_variance_fp32",
    },
    "adam-fp32": {
        "weight": "size_weight_fp32",
        "gradient": "size_gradient_fp32",
        "momentum": "size_momentum_fp32",
        "variance": "size_variance_fp32",
    },
    "inference-fp16": {"weight": "size_weight_fp16"},
    "inference-int8": {"weight": "size_weight_int8"},
}


def recipe(name: str) -> Recipe:
    """The recipe of that name, with its breakdown.

    >>> print(recipe("adam-mixed").bytes_per_parameter)
    16 byte/param
    """
    if not isinstance(name, str) or name not in RECIPES:
        raise InputError(f"there is no recipe {shown(name)}; there is {', '.join(RECIPES)}")
    return Recipe(name, {part: constants.get(constant) for part, constant in RECIPES[name].items()})
