"""Measure what the chapter "Data movement" draws from, and store it with how it was measured.

    python -m experiments.record_machine

Writes calc/data/measured/cpu.toml, a device as `calc measure` makes it, on one thread, and beside
it cpu_kernels.csv, the kernels that `calc validate` times, and cpu_pairs.csv, the pairs that do the
same FLOP; times in seconds. Nothing else should run meanwhile; at the end it says what share of one
processor other programs had, where Linux tells. It needs the extras measure and numba; with torch,
BF16 is measured too.
"""

from __future__ import annotations

import time
from pathlib import Path

from calc import measure
from calc.core.records import DATA
from calc.measure import Comparison
from experiments.tables import write_rows

FOLDER = DATA / "measured"
COMMAND = "python -m experiments.record_machine"
COLUMNS = (
    *("name", "family", "dtype", "operations", "traffic_bytes"),
    *("predicted_seconds", "measured_seconds", "spread", "repeats"),
)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    before = processor_seconds()
    surveyed = measure.survey(1, told)
    device = measure.accelerator(surveyed, COMMAND)
    size = measure.this_machine().beyond_caches
    kernels = measure.validate(measure.suite(size), device, told)
    makers = [make for pair in measure.pairs(size) for make in (pair.fast, pair.slow)]
    levers = [pair.lever for pair in measure.pairs(size) for _ in range(2)]
    pairs = measure.validate(makers, device, told)
    noisy = [*surveyed.too_noisy]
    noisy += [kernel.name for kernel in (*kernels, *pairs) if kernel.measured is None]
    if noisy:
        raise SystemExit(f"too noisy to record: {', '.join(noisy)}; nothing is written")
    measure.save(surveyed, FOLDER / "cpu.toml", COMMAND)
    write_rows(FOLDER / "cpu_kernels.csv", COLUMNS, map(row, kernels))
    rows = ((lever, *row(pair)) for lever, pair in zip(levers, pairs, strict=True))
    write_rows(FOLDER / "cpu_pairs.csv", ("lever", *COLUMNS), rows)
    print(f"{others_share(before):.0%} of one processor's time went to other programs")


def row(kernel: Comparison) -> tuple[object, ...]:
    assert kernel.measured is not None
    return (
        kernel.name,
        kernel.family,
        kernel.dtype,
        f"{kernel.operations.m_as('FLOP'):.0f}",
        f"{kernel.traffic.m_as('byte'):.0f}",
        f"{kernel.predicted.m_as('s'):.6g}",
        f"{kernel.measured.value.m_as('s'):.6g}",
        f"{kernel.measured.spread:.3g}",
        kernel.measured.repeats,
    )


def told(done: int, total: int) -> None:
    print(f"\r{done} of {total} ", end="", flush=True)


def processor_seconds() -> tuple[float, float, float]:
    """Now, the time that all processors have worked, and that of this process, in seconds."""
    stat = Path("/proc/stat")
    now = time.perf_counter()
    if not stat.exists():
        return now, 0.0, 0.0
    user, nice, system = map(int, stat.read_text(encoding="utf-8").split()[1:4])
    return now, (user + nice + system) / 100, time.process_time()


def others_share(before: tuple[float, float, float]) -> float:
    """Return the time of other programs since, as a share of one processor."""
    start, worked, own_work = before
    now, worked_now, own_now = processor_seconds()
    return max(0.0, (worked_now - worked) - (own_now - own_work)) / (now - start)


if __name__ == "__main__":
    main()
