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

from calc.core.errors import extra
from calc.core.public import on_first_use

with extra("calc.measure", "numpy", "measure"):
    import numpy as _numpy  # noqa: F401  # said once, in a sentence, for every module of the package

__getattr__, __dir__ = on_first_use(__name__)
