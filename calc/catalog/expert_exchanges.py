"""Exchanges of experts' tokens by kernels made for it: `of("h100", "sglang", "decode", …)`.

Libraries send each token's vector to the devices that hold its experts (dispatch), and the results
back (combine): DeepEP, which SGLang calls, has kernels for the few tokens of a decode, which send
each copy by itself, and others for prompts, which send a vector once to each device or server that
it must reach; those of TensorRT-LLM, for all tokens, do as these. `data/measured/
expert_exchanges.csv` has the time of each over the bytes that leave a device, at sizes that double,
distilled by `experiments/distil_kernels.py` from rows over tokens, width, chosen experts and
format, of which the bytes are the whole influence but for a few percent.

Left out: rows of fewer than 64 experts, of which few sit on a device and copy slowly; those of
SGLang 0.5.6 on H200, which repeat the rows of H100 number by number; and TensorRT-LLM's one-sided
kernels, measured in NVFP4 alone.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

from calc.catalog.engine_sums import interpolated
from calc.catalog.kernel_shares import Error, error, number_of
from calc.core.errors import InputError
from calc.core.files import read_text
from calc.core.records import DATA

FILE = DATA / "measured" / "expert_exchanges.csv"
COLUMNS = (
    *("kernels", "way", "device", "program", "version", "devices", "domains"),
    *("rows", "own", "version_before", "device_alike", "smallest", "tenths"),
)
KERNELS = "decode", "prompts", "all"
"""For few tokens, for many, or for any number."""
WAYS = "dispatch", "combine"


def bytes_that_leave(
    vectors: float,
    chosen: float,
    devices: float,
    domains: float,
    each: bool,
    most: float = math.inf,
) -> float:
    """Of what a device sends, the bytes that cross the slowest fabric: links, or else ports.

    It sends so many bytes of vectors, each to so many chosen experts at random: `each` copy by
    itself, or once to a device, or to a domain where there are several. Routing may be limited to
    experts of so many domains at `most`.

    >>> bytes_that_leave(7168, 8, 8, 1, each=True), round(bytes_that_leave(7168, 8, 8, 1, False))
    (50176.0, 32935)
    """
    parts = domains if domains > 1 else devices
    open_to = min(parts, most) if domains > 1 else parts
    copies = chosen if each else open_to * (1 - (1 - 1 / open_to) ** chosen)
    return vectors * copies * (1 - 1 / parts)


@dataclass(frozen=True)
class Exchange:
    """Times of one way of an exchange among so many devices in so many domains, by size."""

    kernels: str
    way: str
    device: str
    program: str
    version: str
    devices: int
    domains: int
    rows: int
    """Measured rows that it was distilled from."""
    own: Error
    """Of these rows, by this curve."""
    version_before: Error | None
    device_alike: Error | None
    smallest: int
    """Bytes of the first; each next is twice as long."""
    times: tuple[float, ...] = field(repr=False)
    """Seconds."""

    @property
    def each(self) -> bool:
        """Whether these kernels send each copy by itself."""
        return self.kernels == "decode"

    @property
    def kernel(self) -> str:
        """What it is called among the tables of kernels."""
        return "exchanges"

    @property
    def format(self) -> str:
        """Which way, by which kernels, among how many devices."""
        return f"{self.way}, {self.kernels}, {self.devices}"

    def __str__(self) -> str:
        kind = {"all": ""}.get(self.kernels, f" for {self.kernels}")
        return (
            f"{self.way} of {self.program} {self.version}{kind} among {self.devices} {self.device}"
        )

    def time(self, size: float) -> float:
        """Seconds for so many bytes that leave a device.

        >>> f"{of('h100', 'sglang', 'decode', 'dispatch', 8, 1).time(6.4e6) * 1e6:.0f} µs"
        '36 µs'
        """
        return interpolated(self.times, self.smallest, size)


def load(path: Path | str = FILE) -> Iterator[Exchange]:
    """Every curve of a file, checked.

    >>> next(load()).way
    'combine'
    """
    rows = csv.DictReader(read_text(path).splitlines())
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise InputError(f"{path}: its columns must be {', '.join(COLUMNS)}")
    for row in rows:
        place = f"{path}: {' '.join(row[name] for name in COLUMNS[:7])}"
        if row["kernels"] not in KERNELS or row["way"] not in WAYS:
            raise InputError(
                f"{place}: kernels are one of {', '.join(KERNELS)}, and the way is one of"
                f" {', '.join(WAYS)}"
            )
        try:
            times = tuple(int(number) / 1e7 for number in row["tenths"].split())
            devices, domains, count, smallest = (
                int(row[name]) for name in ("devices", "domains", "rows", "smallest")
            )
            own, before, alike = (error(row[name]) for name in COLUMNS[8:11])
        except ValueError:
            raise InputError(f"{place}: counts, sizes, errors and times must be numbers") from None
        if own is None:
            raise InputError(f"{place}: how far its own rows are off is needed")
        if len(times) < 2 or min(times) <= 0 or devices < 2 or smallest < 1:
            raise InputError(f"{place}: at least two positive times among two devices are needed")
        if any(later < earlier for earlier, later in pairwise(times)):
            raise InputError(f"{place}: its time falls with more bytes")
        whose = row["kernels"], row["way"], row["device"], row["program"], row["version"]
        counts = devices, domains, count
        yield Exchange(*whose, *counts, own, before, alike, smallest, times)


@cache
def _stored() -> dict[tuple[str, str, str, str], list[Exchange]]:
    """By device, program, kernels and way, the newest version last."""
    curves: dict[tuple[str, str, str, str], list[Exchange]] = {}
    for curve in load():
        of = curve.device, curve.program, curve.kernels, curve.way
        curves.setdefault(of, []).append(curve)
    for versions in curves.values():
        versions.sort(key=lambda one: number_of(one.version))
    return curves


def of(
    device: str, program: str, kernels: str, way: str, devices: int, domains: int, version: str = ""
) -> Exchange | None:
    """The curve of the most devices that are no more, else of the fewest; None without any.

    In one domain or in several, as is asked for; of several, the number of domains counts. Of
    these the newest version at most as new as is asked for, else the newest.

    >>> print(of("h100", "sglang", "decode", "dispatch", 8, 1))
    dispatch of sglang 0.5.12 for decode among 8 h100
    """
    known = [
        curve
        for curve in _stored().get((device, program, kernels, way), ())
        if (curve.domains > 1) == (domains > 1)
    ]
    if not known:
        return None
    counts = {curve: curve.domains if domains > 1 else curve.devices for curve in known}
    asked = domains if domains > 1 else devices
    fewer = [count for count in counts.values() if count <= asked]
    nearest = max(fewer) if fewer else min(counts.values())
    known = [curve for curve in known if counts[curve] == nearest]
    wanted = number_of(version)
    older = [
        curve for curve in known if not wanted or number_of(curve.version)[: len(wanted)] <= wanted
    ]
    return older[-1] if older else known[-1]
