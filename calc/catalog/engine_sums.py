"""Sums of slices by an engine's own kernels: `time("h100", "vllm", 8, 65536)`.

Engines add up short arrays in one or two shots over the fabric, in a graph, several times as fast
as NCCL does. `data/measured/engine_sums.csv` has the times of a sum among 2, 4 or 8 devices, by
device, program and version, at sizes that double, distilled by `experiments/distil_kernels.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

from calc.catalog.kernel_shares import as_asked, number_of
from calc.core.errors import InputError
from calc.core.records import DATA, read_rows

FILE = DATA / "measured" / "engine_sums.csv"
COLUMNS = ("device", "program", "version", "devices", "smallest", "tenths")
SLOWER = 4  # times as long as the version before, from which on a version is not believed
SHORT = 2**16  # bytes, about those of a step that writes


@dataclass(frozen=True)
class Sums:
    """Times of a sum among so many devices, by size."""

    device: str
    program: str
    version: str
    devices: int
    smallest: int
    """Bytes of the first; each next is twice as long."""
    times: tuple[float, ...] = field(repr=False)
    """Seconds."""

    def __str__(self) -> str:
        return f"sums of {self.program} {self.version} among {self.devices} {self.device}"

    def time(self, size: float) -> float:
        """Seconds for a size in bytes; above the longest, in proportion to it."""
        return interpolated(self.times, self.smallest, size)


def interpolated(times: Sequence[float], smallest: float, size: float) -> float:
    """The time of a size, of times at sizes that double; above the longest, in proportion to it.

    >>> interpolated([1.0, 2.0, 8.0], 1024, 8192)
    16.0
    """
    position = math.log2(max(size / smallest, 1.0))
    last = len(times) - 1
    if position >= last:
        return float(times[-1] * 2.0 ** (position - last))
    below = int(position)
    share = position - below
    return float(times[below] ** (1 - share) * times[below + 1] ** share)


def load(path: Path | str = FILE) -> Iterator[Sums]:
    """Every sum of a file, checked.

    >>> next(load()).devices
    2
    """
    for row in read_rows(path, COLUMNS):
        owner = f"{path}: {row['device']} {row['program']} {row['version']} {row['devices']}"
        try:
            times = tuple(int(number) / 1e7 for number in row["tenths"].split())
            devices, smallest = int(row["devices"]), int(row["smallest"])
        except ValueError:
            raise InputError(f"{owner}: devices, sizes and times must be whole numbers") from None
        if len(times) < 2 or min(times) <= 0 or devices < 2 or smallest < 1:
            raise InputError(f"{owner}: at least two positive times among two devices are needed")
        if any(later < earlier / 2 for earlier, later in pairwise(times)):
            raise InputError(f"{owner}: a time falls to less than half at twice the size")
        yield Sums(row["device"], row["program"], row["version"], devices, smallest, times)


@cache
def _stored() -> dict[tuple[str, str], list[Sums]]:
    """Return all sums by device and program, the newest version last."""
    sums: dict[tuple[str, str], list[Sums]] = {}
    for sum_ in load():
        sums.setdefault((sum_.device, sum_.program), []).append(sum_)
    return {key: _credible(versions) for key, versions in sums.items()}


def _credible(measured: Sequence[Sums]) -> list[Sums]:
    """The versions, the newest last, without those that contradict the one before them.

    Kernels become no slower with a version: one whose short sums take over four times as long as
    before, among as many devices, had another library called for it, and the one before counts.
    """
    kept: dict[int, list[Sums]] = {}
    for one in sorted(measured, key=lambda one: number_of(one.version)):
        before = kept.setdefault(one.devices, [])
        if not before or one.time(SHORT) <= SLOWER * before[-1].time(SHORT):
            before.append(one)
    return [one for versions in kept.values() for one in versions]


@cache
def devices() -> tuple[str, ...]:
    """The devices whose sums were measured, as the file has them.

    >>> "b200" in devices()
    True
    """
    return tuple(dict.fromkeys(device for device, _ in _stored()))


def sums_of(device: str, program: str, devices: int, version: str = "") -> Sums | None:
    """The newest sum at most as new as is asked for, else the newest; None where none was measured.

    A version that contradicts the one before it does not count.

    >>> sums = sums_of("h100", "vllm", 8)
    >>> f"{sums.time(65536) * 1e6:.1f} µs"
    '6.4 µs'
    """
    tables = [
        measured for measured in _stored().get((device, program), ()) if measured.devices == devices
    ]
    return as_asked(tables, version)
