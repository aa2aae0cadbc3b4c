"""Time of calc: to its first answer, for one law, and for a million roofline points.

    python -m benchmarks.calc_speed [--mlsysim PYTHON]

PYTHON is the interpreter of an environment that holds mlsysim 0.3.0, to compare with. What is
compared is run in turns, and the medians of all turns are printed with their ratios.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable

import numpy

from calc import quantity
from calc.laws.roofline import attainable, bound
from calc.laws.scaling import amdahl
from calc.laws.training import training_time

FIRST_ANSWERS = {
    "import pint": "import pint",
    "calc": "import calc; print(calc.hardware.H100.ridge_point('fp16'))",
}
MLSYSIM_ANSWER = "import mlsysim; print(mlsysim.Hardware.Cloud.H100.ridge_point('fp16'))"

# The nearest that mlsysim has to our laws, on inputs that need no conversion; prints µs per call.
MLSYSIM_LAWS = """
import json, timeit
from mlsysim.core.units import ureg
from mlsysim.physics import performance
flop, byte = ureg.Quantity(137e9, "flop"), ureg.Quantity(100e6, "byte")
peak, bandwidth = ureg.Quantity(989e12, "flop/s"), ureg.Quantity(3.35e12, "byte/s")
calls = {
    "calc_amdahls_speedup": lambda: performance.calc_amdahls_speedup(0.95, 8),
    "calc_bottleneck": lambda: performance.calc_bottleneck(flop, byte, peak, bandwidth),
    "calc_training_time": lambda: performance.calc_training_time(flop, 8, peak, 0.4),
}
print(json.dumps({n: min(timeit.repeat(c, number=500, repeat=7)) / 500 for n, c in calls.items()}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="How long calc takes.")
    parser.add_argument("--mlsysim", metavar="PYTHON", help="an interpreter that has mlsysim")
    options = parser.parse_args()
    first_answer(options.mlsysim)
    one_law(options.mlsysim)
    million_points()


def first_answer(mlsysim: str | None) -> None:
    """A fresh interpreter from start to exit."""
    commands = {name: [sys.executable, "-c", code] for name, code in FIRST_ANSWERS.items()}
    seconds = in_turns({name: runner(command) for name, command in commands.items()}, turns=21)
    if mlsysim:
        # Few turns of its own: it is so slow that the machine's mood does not matter.
        command = [mlsysim, "-c", MLSYSIM_ANSWER]
        seconds |= in_turns({"mlsysim": runner(command), "calc again": runner(commands["calc"])}, 5)
    print("\nTime to the first answer, the H100's ridge point")
    for name, duration in seconds.items():
        print(f"  {name:<24}{duration * 1e3:8.0f} ms")
    print(f"  calc / import pint      {seconds['calc'] / seconds['import pint']:8.2f}")
    if mlsysim:
        print(f"  mlsysim / calc          {seconds['mlsysim'] / seconds['calc again']:8.1f}")


def one_law(mlsysim: str | None) -> None:
    """Calls in a warm interpreter."""
    peak, bandwidth = quantity("989 TFLOP/s"), quantity("3.35 TB/s")
    intensity = quantity("100 FLOP/byte")
    parameters, tokens = quantity("7B param"), quantity("1T token")
    new = itertools.count(1)  # a text that was read before is not read again
    calls: dict[str, Callable[[], object]] = {
        "amdahl(numbers)": lambda: amdahl(0.05, 8),
        "bound(quantities)": lambda: bound(peak, bandwidth, intensity),
        "attainable(quantities)": lambda: attainable(peak, bandwidth, intensity),
        "training_time(both)": lambda: training_time(parameters, tokens, 8, peak, 0.4),
        "attainable(texts)": lambda: attainable("989 TFLOP/s", "3.35 TB/s", "100 FLOP/byte"),
        "attainable(new texts)": lambda: attainable(
            f"{next(new)} TFLOP/s", f"{next(new)} TB/s", f"{next(new)} FLOP/byte"
        ),
    }
    print("\nOne scalar law")
    for name, call in calls.items():
        print(f"  {name:<24}{microseconds(call):8.1f} µs")
    if mlsysim:
        for name, seconds in printed(mlsysim, MLSYSIM_LAWS).items():
            print(f"  mlsysim {name:<21}{seconds * 1e6:5.1f} µs")


def million_points() -> None:
    """One call on an array, with its checks, against the bare expression."""
    points = numpy.logspace(-2, 4, 1_000_000)
    peak, bandwidth = quantity("989 TFLOP/s"), quantity("3.35 TB/s")
    seconds = in_turns(
        {
            "bare numpy": lambda: numpy.minimum(989e12, 3.35e12 * points),
            "attainable": lambda: attainable(peak, bandwidth, quantity(points, "FLOP/byte")),
        },
        turns=51,
    )
    print("\nA million roofline points")
    for name, duration in seconds.items():
        print(f"  {name:<24}{duration * 1e3:8.2f} ms")
    print(f"  attainable / bare numpy {seconds['attainable'] / seconds['bare numpy']:8.2f}")


def in_turns(calls: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Median seconds of each call, all of them called once in each turn."""
    for call in calls.values():
        call()  # fill the caches: of byte code, of files, of units
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def printed(python: str, program: str) -> dict[str, float]:
    """The JSON that a program of another interpreter prints last."""
    done = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def runner(command: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)


def microseconds(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=2000, repeat=7)) / 2000 * 1e6


if __name__ == "__main__":
    main()
