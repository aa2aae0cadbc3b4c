"""Power by format: the meter of the driver, read while one product runs for some seconds."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

from calc.measure.gpu.bench import Bench, Case, Row, Work, reason, unmeasured
from calc.measure.gpu.gpu_gemms import FORMATS, multiply
from calc.measure.gpu.gpu_memory import STREAMS

SECONDS = 4.0
READS = 0.1  # seconds between two readings
METER = "nvidia-smi"


def cases(bench: Bench) -> Iterator[Case]:
    """Idle, a copy, and a square product in each format."""
    side = 64 if bench.small else 8192
    yield Case({"work": "idle"}, partial(_power, bench, None))
    elements = bench.memory // 64
    yield Case(
        {"work": "copy"}, partial(_power, bench, partial(STREAMS["copy"][1], bench, elements))
    )
    for dtype in FORMATS:
        make = partial(multiply, bench, dtype, side, side, side)
        yield Case({"work": f"{dtype} product of {side}"}, partial(_power, bench, make))


def _power(bench: Bench, make: Callable[[], Work] | None) -> Row:
    """Median watts and clock of the second half of the time, when the meter has settled."""
    nothing = {"watts": "", "clock_mhz": "", "runs_per_second": ""}
    if reading() is None:
        return nothing | unmeasured("no meter: nvidia-smi is not here or tells no power")
    try:
        work = make() if make else partial(time.sleep, READS)
    except (RuntimeError, NotImplementedError, AttributeError) as error:
        return nothing | unmeasured(reason(error))
    samples: list[tuple[float, float]] = []
    over = threading.Event()

    def read() -> None:
        while not over.wait(READS):
            if now := reading():
                samples.append(now)

    reader = threading.Thread(target=read)
    reader.start()
    start, runs = bench.clock(), 0
    seconds = READS if bench.small else SECONDS
    try:
        while not runs or bench.clock() - start < seconds or len(samples) < 2:
            for _ in range(10):
                work()
            runs += 10
        elapsed = bench.clock() - start
    except RuntimeError as error:
        return nothing | unmeasured(reason(error))
    finally:
        over.set()
        reader.join()
        bench.free()
    settled = samples[len(samples) // 2 :]
    watts, clocks = (statistics.median(readings) for readings in zip(*settled, strict=True))
    spread = (max(watts for watts, _ in settled) - min(watts for watts, _ in settled)) / watts
    return {
        "watts": watts,
        "clock_mhz": clocks,
        "runs_per_second": runs / elapsed if make else "",
        "seconds": elapsed / runs,
        "spread": spread,
        "repeats": len(settled),
        "why": "",
    }


def reading() -> tuple[float, float] | None:
    """Watts and clock in MHz of the first GPU; None where nothing tells them."""
    try:
        watts, clock = map(float, told("power.draw,clocks.sm").split(","))
    except ValueError:
        return None
    return watts, clock


def told(query: str) -> str:
    """Return the answer of NVIDIA's driver on the first GPU; "" where there is none to ask."""
    if shutil.which(METER) is None:
        return ""
    command = (METER, f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i0")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
