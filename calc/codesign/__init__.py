"""Code, precision and training loop, fitted to the hardware that runs them.

The kernel is the diagonal of the resolvent (H − zI)⁻¹ of a tridiagonal matrix: where its textbook
recursion overflows, what each number format costs in accuracy, and what it gains in speed. It runs
on NumPy; numba, torch and Triton are extras. A name is imported when it is first used.

Around it are the levers that make training fit and go fast, each with the equality that it
promises: mixed precision, gradient accumulation, offloading, a batch that adapts to memory, shapes
for matrix units, several processes. They share one training step and need torch.
"""

from __future__ import annotations

from calc.core.public import on_first_use

__getattr__, __dir__ = on_first_use(__name__)
