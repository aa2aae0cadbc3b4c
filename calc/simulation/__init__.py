"""Hardware that one does not have: what fits, at which batch, how much slower, how accurate.

A model is anything that says its layer widths and parameter counts: the small `NeuralNetwork` of
this package, scikit-learn's multilayer perceptrons and torch modules, or bare `LayerSizes`. What it
takes in memory is estimated in whole bytes, in the number format and for the use that it is put to.
These are approximations for comparing designs: no caches, no effects of instructions, no heat.
"""

from __future__ import annotations

from calc.core.errors import extra
from calc.core.public import on_first_use

with extra("calc.simulation", "numpy", "simulation"):
    import numpy as _numpy  # noqa: F401  # said once, in a sentence, for every module of the package

__getattr__, __dir__ = on_first_use(__name__)
