"""The roofline held against the clock: every kernel of the suite, predicted and measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity, quantity
from calc.measure.kernel_suite import Kernel
from calc.measure.repeated_timing import Measured, NoisyError, timed
from calc.measure.surveying import Progress
from calc.measure.threads import blas_threads


@dataclass(frozen=True)
class Comparison:
    """One kernel: what the roofline says, and what the clock said, if it was steady enough."""

    name: str
    family: str
    dtype: str
    operations: Quantity
    traffic: Quantity
    predicted: Quantity
    measured: Measured | None

    @property
    def ratio(self) -> float:
        """Measured time over predicted time; not a number where the measurement was too noisy."""
        if self.measured is None:
            return float("nan")
        return float((self.measured.value / self.predicted).m_as(""))


def predicted_time(kernel: Kernel, device: Accelerator) -> Quantity:
    """The roofline's time of a kernel: of each pass the longer of bytes and FLOP, and their sum.

    Equation: T = Σ max(D_vol / BW, O / R_peak)

    >>> from calc import hardware
    >>> from calc.measure import suite
    >>> print(predicted_time(suite(2**20)[8](), hardware.H100))
    626.0 ns
    """
    return sum((part.on(device, kernel.dtype).lower for part in kernel.passes), quantity(0, "s"))


def validate(
    kernels: Sequence[Callable[[], Kernel]],
    device: Accelerator,
    on_progress: Progress | None = None,
) -> list[Comparison]:
    """Predict each kernel from the roofs of `device`, and measure it here, on one thread.

    A kernel whose repeats are too far apart has no measured time.

    >>> from calc.measure import read, suite
    >>> from calc.core.records import DATA
    >>> [scale] = validate(suite(2**20)[8:9], read(DATA / "measured" / "cpu.toml"))
    >>> print(scale.name, scale.operations, scale.traffic)  # scale.ratio is this machine's
    scale 131.1 kFLOP 2.097 MB
    """
    checks = []
    for number, make in enumerate(kernels):
        if on_progress:
            on_progress(number, len(kernels))
        kernel = make()
        measured = None
        with blas_threads(1), suppress(NoisyError):
            measured = timed(kernel.run, kernel.name)
        total = kernel.total
        checks.append(
            Comparison(
                kernel.name,
                kernel.family,
                kernel.dtype,
                total.operations,
                total.traffic,
                predicted_time(kernel, device),
                measured,
            )
        )
    return checks


def error(ratio: float) -> float:
    """Return the error of a prediction by the larger of the ratio and its inverse.

    Equation: e = max(r, 1 / r) − 1

    >>> error(1.25), error(0.8)
    (0.25, 0.25)
    """
    return max(ratio, 1 / ratio) - 1


def median_error(ratios: Sequence[float]) -> float:
    """The error that half of the kernels stay within.

    >>> median_error([1.0, 0.8, 4.0])
    0.25
    """
    return statistics.median(error(ratio) for ratio in ratios)
