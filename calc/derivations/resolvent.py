"""What the chapter "Precision of a kernel" quotes of the resolvent, from stored measurements."""

from __future__ import annotations

import math

import numpy
import polars
from polars import col

from calc import roofline
from calc.codesign.kernel_speed import FLOP_PER_ENTRY, bytes_per_entry
from calc.core.units import quantity
from calc.derivations.quoting import Row
from calc.derivations.recorded import MEASURED, settings

SETTINGS = settings("resolvent.toml")
ONSETS = polars.read_csv(MEASURED / "resolvent_onset.csv")
ACCURACY = polars.read_csv(MEASURED / "resolvent_accuracy.csv")
BANDED = polars.read_csv(MEASURED / "resolvent_banded.csv")
GRADIENT = polars.read_csv(MEASURED / "resolvent_gradient.csv")
SPEED = polars.read_csv(MEASURED / "resolvent_speed.csv")

ANY_SIGN = ("signs", "small signs")  # kinds of input on which the ratio form is not guaranteed
GUARANTEED = tuple(sorted(set(ACCURACY["kind"]) - set(ANY_SIGN)))
BACKENDS = {"torch": "torch, step by step", "numpy": "NumPy", "numba": "numba"}


def onsets(kind: str, dtype: str, what: str = "gone") -> list[int]:
    """Lengths at which the samples leave the format, in order."""
    return ONSETS.filter(kind=kind, dtype=dtype)[what].sort().to_list()


def _median(values: list[int]) -> float:
    return float(numpy.median(values))


class MachineOfKernel:
    """Where the kernel was measured."""

    processor = SETTINGS["processor"]
    measured = f"{SETTINGS['measured']:%d %B %Y}"
    repeats = SETTINGS["repeats"]
    load = SETTINGS["load_at_the_end"]
    bandwidth = quantity(SETTINGS["triad_bytes_per_second"], "byte/s").to("GB/s")
    fp64 = quantity(SETTINGS["gemm_fp64_flop_per_second"], "FLOP/s").to("GFLOP/s")


class OverflowingMinors:
    """Determinants of disordered chains leave complex64 near length 115, complex128 near 918."""

    _rows = ONSETS.filter(kind="disorder", dtype="complex64")
    _gone = onsets("disorder", "complex64")
    _gone_in_128 = onsets("disorder", "complex128")
    samples = len(_gone)
    first = _gone[0]
    median = _median(_gone)
    last = _gone[-1]
    median_in_128 = _median(_gone_in_128)
    growth = float(numpy.median(_rows["growth"]))
    log_max = math.log(numpy.finfo(numpy.float32).max)
    predicted = log_max / growth


class ShrinkingMinors:
    """Small entries underflow: digits go ten steps before the result is no number."""

    smaller = 5
    _gone = onsets("small", "complex64")
    _digits = onsets("small", "complex64", "length")
    median = _median(_gone)
    median_digits = _median(_digits)


def worst(what: str, dtype: str, kinds: tuple[str, ...], method: str = "ratio") -> float:
    """The largest error over these kinds and all lengths."""
    rows = ACCURACY.filter(col("kind").is_in(kinds), method=method, dtype=dtype)
    return float(rows[what].max())  # type: ignore[arg-type]


def at_length(what: str, kind: str, n: int, method: str, dtype: str) -> float:
    """One stored number."""
    return float(ACCURACY.filter(kind=kind, n=n, method=method, dtype=dtype)[what].item())


class FormatErrors:
    """The ratio form in complex64 is better than mixed formats under the textbook recursion."""

    samples = int(ACCURACY["samples"][0])
    longest = int(ACCURACY["n"].max())  # type: ignore[arg-type]
    claim = 1e-4
    bad_length = 112
    guaranteed = worst("relative", "complex64", GUARANTEED)
    refused = int(at_length("refused", "disorder", bad_length, "theta_phi", "mixed"))
    disorder = worst("absolute", "complex64", ("disorder",))
    any_sign = worst("absolute", "complex64", ANY_SIGN)
    any_sign_relative = worst("relative", "complex64", ANY_SIGN)

    @classmethod
    def row(cls, kind: str) -> tuple[str, float, float, float, int]:
        """Kind; the ratio form in complex64: both errors; in complex128; refused in complex64."""
        return (
            kind,
            worst("absolute", "complex64", (kind,)),
            worst("relative", "complex64", (kind,)),
            worst("relative", "complex128", (kind,)),
            int(worst("refused", "complex64", (kind,))),
        )


class AgainstBandedSolve:
    """At length 4096 the ratio form agrees with elimination with pivoting to its last digits."""

    _ratio = BANDED.filter(method="ratio")
    guaranteed = float(_ratio.filter(~col("kind").is_in(ANY_SIGN))["relative"].max())  # type: ignore[arg-type]
    any_sign = float(_ratio.filter(col("kind").is_in(ANY_SIGN))["relative"].max())  # type: ignore[arg-type]


class ShortcutGradient:
    """The gradient −G² leaves out the off-diagonal entries, which are about half of it."""

    samples = len(GRADIENT)
    exact = float(GRADIENT["exact"].max())  # type: ignore[arg-type]
    median = quantity(100 * float(GRADIENT["shortcut"].median()), "%")  # type: ignore[arg-type]
    most = quantity(100 * float(GRADIENT["shortcut"].max()), "%")  # type: ignore[arg-type]


def timed(what: str, backend: str, batch: int, n: int, dtype: str = "complex128") -> float:
    """A stored time or rate of the ratio form, or of a banded solve for one column."""
    methods = col("method").is_in(["ratio", "one column"])
    rows = SPEED.filter(methods, backend=backend, batch=batch, n=n, dtype=dtype)
    return float(rows[what].item())


SIZES = [tuple(row) for row in SPEED.select("batch", "n").unique(maintain_order=True).rows()]


def _gain_of_complex64(backend: str, batch: int, n: int) -> float:
    wide, narrow = (
        timed("kernel_seconds", backend, batch, n, dtype) for dtype in ("complex128", "complex64")
    )
    return wide / narrow


class KernelSpeed:
    """A compiled kernel gains about a hundred times where half the bits gain nothing."""

    batch = 16
    n = 4096

    numba = timed("speedup", "numba", batch, n)
    least_compiled, *_, most_compiled = sorted(timed("speedup", "numba", *size) for size in SIZES)
    most_compiled_gain = max(_gain_of_complex64("numba", *size) for size in SIZES)
    eager_time = quantity(timed("kernel_seconds", "torch", batch, n), "s").to("ms")
    numba_time = quantity(timed("kernel_seconds", "numba", batch, n), "s").to("ms")
    eager_gain = _gain_of_complex64("torch", batch, n)
    compiled_gain = _gain_of_complex64("numba", batch, n)
    one_column = timed("kernel_seconds", "solve_banded", batch, n) / timed(
        "kernel_seconds", "numba", batch, n
    )

    @classmethod
    def row(cls, batch: int, n: int) -> Row:
        """Size; the eager loop's time; how many times faster NumPy and numba are; complex64."""
        return (
            f"{batch} × {n}",
            quantity(timed("kernel_seconds", "torch", batch, n), "s").to("ms"),
            timed("speedup", "numpy", batch, n),
            timed("speedup", "numba", batch, n),
            _gain_of_complex64("torch", batch, n),
            _gain_of_complex64("numba", batch, n),
        )


class KernelRoof:
    """By its bytes the kernel is memory-bound; it reaches less than a fifth of that roof."""

    flop = FLOP_PER_ENTRY["ratio"]
    size = quantity(bytes_per_entry("complex128"), "byte")
    intensity = quantity(flop, "FLOP") / size
    attainable = roofline.attainable(MachineOfKernel.fp64, MachineOfKernel.bandwidth, intensity).to(
        "GFLOP/s"
    )
    achieved = quantity(timed("flop_per_second", "numba", 16, 4096), "FLOP/s").to("GFLOP/s")
    share = (achieved / attainable).to("%")
    left = (attainable / achieved).to("")


class PairOfHalves:
    """Problem: a complex number of two FP16 would overflow long before."""

    largest = float(numpy.finfo(numpy.float16).max)
    log_max = math.log(largest)
    length = log_max / OverflowingMinors.growth


class AbsoluteThreshold:
    """Problem: one threshold on absolute errors, and inputs whose results differ in size."""

    damping = 0.1
