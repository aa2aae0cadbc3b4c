"""Hardware that one does not have: what fits, at which batch, how much slower, how accurate.

A model is anything that says its layer widths and parameter counts: the small `NeuralNetwork` of
this package, scikit-learn's multilayer perceptrons and torch modules, or bare `LayerSizes`. What it
takes in memory is estimated in whole bytes, in the number format and for the use that it is put to.
These are approximations for comparing designs: no caches, no effects of instructions, no heat.
"""

from __future__ import annotations

from calc.errors import NumpyNeededError

try:
    import numpy as _numpy  # noqa: F401  # said once, in a sentence, for every module of the package
except ImportError:
    raise NumpyNeededError("calc.simulation needs numpy, which is not installed") from None

from calc.simulation.data import Split, digits
from calc.simulation.network import History, NeuralNetwork
from calc.simulation.precision import PRECISIONS, Arithmetic, arithmetic
from calc.simulation.sizing import (
    MODES,
    OPTIMIZER_STATES,
    LayerSizes,
    SizedModel,
    elements_per_sample,
    estimate_activation_memory,
    estimate_parameter_memory,
    estimate_total_memory,
    int8_overhead,
    sizes,
    sklearn_sizes,
    torch_sizes,
)

__all__ = [
    "MODES",
    "OPTIMIZER_STATES",
    "PRECISIONS",
    "Arithmetic",
    "History",
    "LayerSizes",
    "NeuralNetwork",
    "SizedModel",
    "Split",
    "arithmetic",
    "digits",
    "elements_per_sample",
    "estimate_activation_memory",
    "estimate_parameter_memory",
    "estimate_total_memory",
    "int8_overhead",
    "sizes",
    "sklearn_sizes",
    "torch_sizes",
]
