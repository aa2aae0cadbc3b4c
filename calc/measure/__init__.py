"""The reader's own machine: its roofs, its caches, and how well the roofline predicts its kernels.

`survey` measures bandwidth (STREAM's copy and triad), the peak of matrix products by number format,
the latency of caches and memory, and bandwidth against the working set. `save` writes that as an
accelerator like any other, of kind "measured", which `calc.hardware.load` reads. `validate`
predicts the kernels of `suite` from the roofs of any accelerator, and measures them; `pairs` are
kernels of the same FLOP and very different times.

It runs on NumPy. threadpoolctl, the extra `measure`, holds BLAS to a number of threads; numba adds
the triad in one pass and the latencies in full, torch other number formats and GPUs.
"""

from __future__ import annotations

from calc.core.errors import MissingExtraError

try:
    import numpy as _numpy  # noqa: F401  # said once, in a sentence, for every module of the package
except ImportError:
    raise MissingExtraError("calc.measure", "numpy", "measure") from None

from calc.measure.kernels import Kernel, suite
from calc.measure.machine import Machine, this_machine
from calc.measure.record import accelerator, read, save
from calc.measure.same_flop import Pair, pairs
from calc.measure.surveying import Survey, gpu_survey, survey
from calc.measure.timing import Measured, NoisyError, timed
from calc.measure.validation import Comparison, error, median_error, predicted_time, validate

__all__ = [
    "Comparison",
    "Kernel",
    "Machine",
    "Measured",
    "NoisyError",
    "Pair",
    "Survey",
    "accelerator",
    "error",
    "gpu_survey",
    "median_error",
    "pairs",
    "predicted_time",
    "read",
    "save",
    "suite",
    "survey",
    "this_machine",
    "timed",
    "validate",
]
