"""Timing on a device, case by case: a row of each, with a time or with why there is none."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from calc.core.errors import InputError, extra
from calc.measure.repeated_timing import NoisyError, timed

with extra("calc.measure, on a GPU,", "torch", "torch"):
    import torch

Row: TypeAlias = dict[str, Any]  # a line of a table: words, numbers and what is not known
Work = Callable[[], object]
LONGEST = 0.3  # seconds that the repeats of one case take


@dataclass(frozen=True)
class Case:
    """One line of a table: what it is of, and how its other columns are found."""

    labels: Row
    run: Callable[[], Row]


@dataclass(frozen=True)
class Bench:
    """A device to measure on; `small` sizes are those that a trial without a GPU can afford."""

    device: str = "cuda"
    small: bool = False

    def __post_init__(self) -> None:
        if self.device == "cuda" and not torch.cuda.is_available():
            raise InputError(
                "torch finds no GPU here, CUDA or ROCm; `calc measure` without --gpu takes the CPU"
            )

    @property
    def on_gpu(self) -> bool:
        """True if the device is a GPU, which has streams, graphs and a meter of power."""
        return self.device == "cuda"

    @property
    def memory(self) -> int:
        """Bytes of the device's memory that the sizes of the cases are made for."""
        if self.small or not self.on_gpu:
            return 2**22
        return torch.cuda.get_device_properties(0).total_memory

    def clock(self) -> float:
        """The time once the device has done all that it was told."""
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def random(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Numbers between 0 and 1: zeros would take less power, and with it more clock."""
        wide = dtype if dtype in {torch.float32, torch.float64} else torch.bfloat16
        return torch.rand(shape, dtype=wide, device=self.device).to(dtype)

    def case(self, make: Callable[[], Work], **labels: object) -> Case:
        """A case that is timed: `make` allocates what the work needs, and returns the work."""
        return Case(labels, lambda: self.time(make, ", ".join(map(str, labels.values()))))

    def time(self, make: Callable[[], Work], what: str) -> Row:
        """The time of the work that `make` returns, in the columns of `row`.

        Work is told to the device many times in a row, and the clock waits for the last of them,
        so that a short kernel's time is that between two of them.
        """
        try:
            longest = 0.002 if self.small else LONGEST
            measured = timed(make(), what, longest=longest, clock=self.clock)
            return row(float(measured.value.m_as("s")), measured.spread, measured.repeats)
        except NoisyError:
            return unmeasured("too noisy")
        except (RuntimeError, NotImplementedError, AttributeError, TypeError) as error:
            return unmeasured(reason(error))
        finally:
            self.free()

    def free(self) -> None:
        """Give back what the last case has allocated."""
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()


def row(seconds: float, spread: float, repeats: int) -> Row:
    """The columns of a case that has a time."""
    return {"seconds": seconds, "spread": spread, "repeats": repeats, "why": ""}


def unmeasured(why: str) -> Row:
    """Return the columns of a row for a case that was not measured, with the reason."""
    return {"seconds": "", "spread": "", "repeats": "", "why": why}


def reason(error: BaseException) -> str:
    """The first sentence of an error, as a cell of a table."""
    text = str(error).strip() or type(error).__name__
    return "out of memory" if "out of memory" in text else text.splitlines()[0][:120]
