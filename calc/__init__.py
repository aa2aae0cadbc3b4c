"""calc: constants, units and laws of machine-learning systems, each with its unit and its source.

    >>> import calc
    >>> print(calc.hardware.H100.ridge_point("fp16"))
    295.2 FLOP/byte
    >>> print(calc.training.training_flops("7B param", "1T token"))
    4.2e22 FLOP

Modules: `constants`, `hardware`, `models` and `runs` hold the data, `formats` the number formats;
`roofline`, `scaling`, `queueing`, `training`, `energy`, `memory`, `links`, `quantization`,
`sparsity`, `collectives`, `transformer`, `convolution`, `parallelism`, `inference` and `cost` the
laws, and `plan` of `planning` puts them together; `simulation` tries models on hardware that one
does not have, `codesign` fits code and training to the hardware that one has, `measure` finds the
roofs of one's own machine, `derivations` holds what the book quotes. Each is imported when it is
first used.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calc.core.errors import InputError
from calc.core.records import source
from calc.core.units import Quantity, quantity

if TYPE_CHECKING:
    from calc import (
        codesign as codesign,
        collectives as collectives,
        constants as constants,
        convolution as convolution,
        cost as cost,
        derivations as derivations,
        energy as energy,
        formats as formats,
        hardware as hardware,
        inference as inference,
        links as links,
        measure as measure,
        memory as memory,
        models as models,
        parallelism as parallelism,
        quantization as quantization,
        queueing as queueing,
        roofline as roofline,
        runs as runs,
        scaling as scaling,
        simulation as simulation,
        sparsity as sparsity,
        training as training,
        transformer as transformer,
    )
    from calc.planning import plan as plan

__all__ = ["InputError", "Quantity", "laws", "plan", "quantity", "source"]

LAW_MODULES = (
    "roofline",
    "scaling",
    "queueing",
    "training",
    "energy",
    "memory",
    "links",
    "quantization",
    "sparsity",
    "collectives",
    "transformer",
    "convolution",
    "parallelism",
    "inference",
    "cost",
)
SUBMODULES = (
    "constants",
    "hardware",
    "models",
    "runs",
    "formats",
    *LAW_MODULES,
    "planning",
    "simulation",
    "codesign",
    "measure",
    "derivations",
)


def laws() -> dict[str, Callable[..., Any]]:
    """Every law, by the name that it has below calc.

    >>> print(laws()["roofline.ridge_point"]("989 TFLOP/s", "3.35 TB/s"))
    295.2 FLOP/byte
    """
    for module in LAW_MODULES:
        import_module(f"calc.{module}")
    from calc.core.law import LAWS

    return {
        name.removeprefix("calc."): law for name, law in LAWS.items() if name.startswith("calc.")
    }


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name == "plan":
            return import_module("calc.planning").plan
        if name in SUBMODULES:
            return import_module(f"calc.{name}")
        raise AttributeError(f"module 'calc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *SUBMODULES]
