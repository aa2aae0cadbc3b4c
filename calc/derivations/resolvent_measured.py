"""Claims of the chapter "Precision of a kernel" on the resolvent, from stored measurements."""

from __future__ import annotations

import math

import numpy
import polars
from polars import col

from calc import roofline
from calc.codesign.kernel_speed import FLOP_PER_ENTRY, bytes_per_entry
from calc.core.units import quantity
from calc.derivations.by_hand import by_hand, counted
from calc.derivations.ledger import Claims
from calc.derivations.recorded import MEASURED, settings
from calc.derivations.traces import number, whole

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
    return number(numpy.median(values))


class MachineOfKernel(Claims):
    """The kernel was measured on this machine."""

    processor = SETTINGS["processor"] | counted("CPU of the resolvent")
    measured = f"{SETTINGS['measured']:%d %B %Y}" | counted("day of the resolvent")
    repeats = SETTINGS["repeats"] | by_hand("9")
    load = SETTINGS["load_at_the_end"] | by_hand("2.1")
    bandwidth = quantity(SETTINGS["triad_bytes_per_second"], "byte/s").to("GB/s")
    fp64 = quantity(SETTINGS["gemm_fp64_flop_per_second"], "FLOP/s").to("GFLOP/s")


class OverflowingMinors(Claims):
    """Determinants of disordered chains leave complex64 near length 115, complex128 near 918."""

    _rows = ONSETS.filter(kind="disorder", dtype="complex64")
    _gone = onsets("disorder", "complex64")
    _gone_in_128 = onsets("disorder", "complex128")
    samples = len(_gone) | by_hand("1200 / (3 * 2)")
    first = _gone[0] | by_hand("105")
    median = _median(_gone) | by_hand("mean(115, 116)")
    last = _gone[-1] | by_hand("124")
    median_in_128 = _median(_gone_in_128) | by_hand("mean(918, 918)")
    growth = number(numpy.median(_rows["growth"])) | by_hand("mean(0.7738, 0.7738)")
    log_max = math.log(numpy.finfo(numpy.float32).max)
    predicted = log_max / growth | by_hand("(128 * ln(2) - 2**-24) / 0.7738")


class ShrinkingMinors(Claims):
    """Small entries underflow: digits go ten steps before the result is no number."""

    smaller = 5 | by_hand("5")
    _gone = onsets("small", "complex64")
    _digits = onsets("small", "complex64", "length")
    median = _median(_gone) | by_hand("mean(79, 79)")
    median_digits = _median(_digits) | by_hand("mean(68, 68)")


def worst(what: str, dtype: str, kinds: tuple[str, ...], method: str = "ratio") -> float:
    """The largest error over these kinds and all lengths."""
    rows = ACCURACY.filter(col("kind").is_in(kinds), method=method, dtype=dtype)
    return number(rows[what].max())


def at_length(what: str, kind: str, n: int, method: str, dtype: str) -> float:
    """One stored number."""
    return number(ACCURACY.filter(kind=kind, n=n, method=method, dtype=dtype)[what].item())


class FormatErrors(Claims):
    """The ratio form in complex64 is better than mixed formats under the textbook recursion."""

    samples = int(ACCURACY["samples"][0]) | by_hand("100")
    longest = whole(ACCURACY["n"].max()) | by_hand("4096")
    claim = 1e-4 | by_hand("0.0001")
    bad_length = 112
    guaranteed = worst("relative", "complex64", GUARANTEED) | by_hand("1.3e-6")
    refused = int(at_length("refused", "disorder", bad_length, "theta_phi", "mixed")) | by_hand(
        "28"
    )
    disorder = worst("absolute", "complex64", ("disorder",)) | by_hand("1.437e-7")
    any_sign_relative = worst("relative", "complex64", ANY_SIGN) | by_hand("6.696e-5")


class AgainstBandedSolve(Claims):
    """At length 4096 the ratio form agrees with elimination with pivoting to its last digits."""

    _ratio = BANDED.filter(method="ratio")
    guaranteed = number(_ratio.filter(~col("kind").is_in(ANY_SIGN))["relative"].max()) | by_hand(
        "1.406e-15"
    )
    any_sign = number(_ratio.filter(col("kind").is_in(ANY_SIGN))["relative"].max()) | by_hand(
        "1.944e-14"
    )


class ShortcutGradient(Claims):
    """The gradient −G² leaves out the off-diagonal entries, which are about half of it."""

    samples = len(GRADIENT) | by_hand("7 * 3 * 20")
    exact = number(GRADIENT["exact"].max()) | by_hand("5.077e-14")
    median = quantity(100 * number(GRADIENT["shortcut"].median()), "%") | by_hand(
        "mean(0.4372, 0.4389)"
    )
    most = quantity(100 * number(GRADIENT["shortcut"].max()), "%") | by_hand("172.2 %")


def timed(what: str, backend: str, batch: int, n: int, dtype: str = "complex128") -> float:
    """A stored time or rate of the ratio form, or of a banded solve for one column."""
    methods = col("method").is_in(["ratio", "one column"])
    rows = SPEED.filter(methods, backend=backend, batch=batch, n=n, dtype=dtype)
    return number(rows[what].item())


SIZES = [tuple(row) for row in SPEED.select("batch", "n").unique(maintain_order=True).rows()]


def _gain_of_complex64(backend: str, batch: int, n: int) -> float:
    wide, narrow = (
        timed("kernel_seconds", backend, batch, n, dtype) for dtype in ("complex128", "complex64")
    )
    return wide / narrow


class KernelSpeed(Claims):
    """A compiled kernel gains about a hundred times where half the bits gain nothing."""

    batch = 16
    n = 4096

    numba = timed("speedup", "numba", batch, n) | by_hand("49.83 / 0.5278")
    least_compiled, *_, most_compiled = sorted(timed("speedup", "numba", *size) for size in SIZES)
    least_compiled |= by_hand("8.685")
    most_compiled |= by_hand("332.6")
    most_compiled_gain = max(_gain_of_complex64("numba", *size) for size in SIZES) | by_hand(
        "2.418 / 1.832"
    )
    eager_time = quantity(timed("kernel_seconds", "torch", batch, n), "s").to("ms") | by_hand(
        "49.83 ms"
    )
    numba_time = quantity(timed("kernel_seconds", "numba", batch, n), "s").to("ms") | by_hand(
        "0.5278 ms"
    )
    eager_gain = _gain_of_complex64("torch", batch, n) | by_hand("49.83 / 47.62")
    compiled_gain = _gain_of_complex64("numba", batch, n) | by_hand("0.5278 / 0.4254")
    one_column = timed("kernel_seconds", "solve_banded", batch, n) / timed(
        "kernel_seconds", "numba", batch, n
    ) | by_hand("2.872 / 0.5278")


class KernelRoof(Claims):
    """The kernel is memory-bound by its bytes; it reaches less than a fifth of that roof."""

    flop = FLOP_PER_ENTRY["ratio"] | by_hand("2 + 2 × 8 + 8")
    size = quantity(bytes_per_entry("complex128"), "byte") | by_hand("(3 + 2) * 8 byte")
    intensity = quantity(flop, "FLOP") / size | by_hand("(26 / 40) FLOP/byte")
    attainable = roofline.attainable(MachineOfKernel.fp64, MachineOfKernel.bandwidth, intensity).to(
        "GFLOP/s"
    ) | by_hand("27.97 * 0.65 GFLOP/s")
    achieved = quantity(timed("flop_per_second", "numba", 16, 4096), "FLOP/s").to(
        "GFLOP/s"
    ) | by_hand("3229000000 FLOP/s")
    share = (achieved / attainable).to("%") | by_hand("3.229 / 18.1805")
    left = (attainable / achieved).to("") | by_hand("18.1805 / 3.229")


class PairOfHalves(Claims):
    """Problem: a complex number of two FP16 would overflow long before."""

    largest = number(numpy.finfo(numpy.float16).max)
    log_max = math.log(largest)
    length = log_max / OverflowingMinors.growth | by_hand("11.089866 / 0.7738")


class AbsoluteThreshold(Claims):
    """Problem: one threshold on absolute errors, and inputs whose results differ in size."""

    damping = 0.1
