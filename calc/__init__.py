"""calc: constants, units and laws of machine-learning systems, each with its unit and its source.

    >>> import calc
    >>> print(calc.hardware.H100.ridge_point("fp16"))
    295.2 FLOP/byte
    >>> print(calc.training.training_flops("7B param", "1T token"))
    4.2e22 FLOP

Data: `constants`, `hardware`, `machines`, `software`, `curves`, `models`, `runs` and `formats`.
Laws: a module for each subject, from `roofline` to `cost`; `expectation` makes times of measured
rates, `layouts` cuts a training run, and `plan` of `planning` puts all together. `simulation` tries
models on hardware that one does not have, `codesign` fits code and training to the hardware that
one has, `measure` finds the roofs of one's own machine, `published` holds predictions to what
others measured, and `derivations` is what the book quotes. Each is imported when it is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from calc.core import device
from calc.core.public import Package

sys.modules[__name__].__class__ = Package

# The one list of what `import calc` offers: type checkers read it in `__init__.pyi`, which
# `python -m tools.pages` writes from it.
__all__ = [
    "Batch",
    "Formats",
    "InputError",
    "Job",
    "Layout",
    "Quantity",
    "Tokens",
    "break_even",
    "check",
    "compare",
    "laws",
    "plan",
    "plan_service",
    "plan_training",
    "quantity",
    "source",
    "step",
]

# Each folder and its modules, which `calc` shows as its own: `calc.roofline` lies in `laws`. A
# folder without a list is a module itself.
FOLDERS: dict[str, tuple[str, ...]] = {
    "catalog": (
        *("constants", "hardware", "machines", "software", "engines", "models", "runs"),
        *("kernel_shares", "engine_sums", "expert_exchanges", "intervals", "apis", "grids"),
    ),
    "formats": (),
    "laws": (
        "roofline",
        "scaling",
        "queueing",
        "training",
        "failures",
        "energy",
        "memory",
        "links",
        "quantization",
        "calibration",
        "sparsity",
        "gemms",
        "attention",
        "parallelism",
        "cost",
    ),
    "networks": ("transformer", "convolution", "encoder_decoder", "diffusion", "recommenders"),
    "steps": (
        "job",
        "kernels",
        "curves",
        "collectives",
        "measured",
        "expectation",
        "timing",
        "answer",
        "inference",
        "serving",
        "device_memory",
        "experts",
        "context_parallelism",
        "layouts",
        "finetuning",
        "rollouts",
        "throughput",
    ),
    "planning": (),
    "published": (),
    "simulation": (),
    "codesign": (),
    "measure": (),
    "derivations": (),
}
_PLACES = {
    name: f"calc.{folder}.{name}" if names else f"calc.{folder}"
    for folder, names in FOLDERS.items()
    for name in names or (folder,)
}
SUBMODULES = tuple(_PLACES)
LAW_MODULES = ("hardware", *FOLDERS["laws"], *FOLDERS["networks"], *FOLDERS["steps"])
_HOMES = {
    "Batch": "steps.job",
    "Formats": "steps.job",
    "InputError": "core.errors",
    "Job": "steps.job",
    "Layout": "steps.job",
    "Quantity": "core.units",
    "check": "published.checking",
    "compare": "planning",
    "plan": "planning",
    "plan_service": "planning",
    "break_even": "planning",
    "plan_training": "planning",
    "quantity": "core.units",
    "source": "core.records",
    "step": "steps.timing",
    "Tokens": "steps.job",
}


def _device(name: str) -> device.Device | None:
    """What a law looks up to refuse the name of a device; the data are read for no other law."""
    hardware = import_module("calc.catalog.hardware")
    return hardware.get(key) if (key := hardware.key_of(name)) else None


device.named = _device


def laws() -> dict[str, Callable[..., Any]]:
    """Every law, by the name that it has below calc.

    >>> print(laws()["roofline.ridge_point"]("989 TFLOP/s", "3.35 TB/s"))
    295.2 FLOP/byte
    """
    for module in LAW_MODULES:
        import_module(_PLACES[module])
    from calc.core.law import LAWS

    return {name: law for name, law in LAWS.items() if law.__module__.startswith("calc.")}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        globals()[name] = getattr(import_module(f"calc.{_HOMES[name]}"), name)
        return globals()[name]
    if name in _PLACES:
        setattr(sys.modules[__name__], name, module := import_module(_PLACES[name]))
        return module
    raise AttributeError(f"module 'calc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *SUBMODULES]
