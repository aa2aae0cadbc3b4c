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

from collections.abc import Callable
from importlib import import_module
from typing import Any

from calc.core import device
from calc.core.public import modules, on_first_use

__getattr__, __dir__ = on_first_use(__name__)  # by the stub `__init__.pyi`, the list of all names

SUBMODULES = tuple(modules(__name__))


def _device(name: str) -> device.Device | None:
    """Return the device of a name, so that a law can refuse it; no other law reads the data."""
    hardware = import_module("calc.catalog.hardware")
    return hardware.get(key) if (key := hardware.key_of(name)) else None


device.named = _device


def all_laws() -> dict[str, Callable[..., Any]]:
    """Return every law, by the name that it has below calc.

    >>> print(all_laws()["roofline.ridge_point"]("989 TFLOP/s", "3.35 TB/s"))
    295.2 FLOP/byte
    """
    for module in modules(__name__).values():
        if module.count(".") == 2:  # in a folder: what is a package itself has no laws
            import_module(module)
    from calc.core.law import LAWS

    return {name: law for name, law in LAWS.items() if law.__module__.startswith("calc.")}
