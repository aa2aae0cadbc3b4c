"""Exchanges of experts' tokens by kernels made for it: `exchange_of("h100", "sglang", …)`.

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

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

from calc.catalog.engine_sums import interpolated
from calc.catalog.kernel_shares import Error, as_asked, error, number_of
from calc.core.errors import InputError
from calc.core.records import DATA, read_rows

FILE = DATA / "measured" / "expert_exchanges.csv"
COLUMNS = (
    *("kernels", "way", "device", "program", "version", "devices", "domains"),
    *("rows", "own", "version_before", "device_alike", "smallest", "tenths"),
)
KERNELS = "decode", "prompts", "all"
"""For few tokens, for many, or for any number."""
WAYS = "dispatch", "combine"


@dataclass(frozen=True)
class Crossing:
    """One kind of exchange: its kernels, way, device, program, and how many devices and domains."""

    kernels: str
    way: str
    device: str
    program: str
    version: str
    devices: int
    domains: int


@dataclass(frozen=True)
class Exchange(Crossing):
    """Times of one way of an exchange by size."""

    rows: int
    """Measured rows that it was distilled from."""
    own: Error
    """Error of this curve on the rows that it is fitted to."""
    version_before: Error | None
    device_alike: Error | None
    smallest: int
    """Bytes of the first; each next is twice as long."""
    times: tuple[float, ...] = field(repr=False)
    """Seconds."""

    @property
    def each(self) -> bool:
        """True if these kernels send each copy by itself."""
        return self.kernels == "decode"

    @property
    def kernel(self) -> str:
        """Name of the exchanges among the tables of kernels."""
        return "exchanges"

    @property
    def format(self) -> str:
        """Way of the exchange, its kernels and the number of devices, in words."""
        return f"{self.way}, {self.kernels}, {self.devices}"

    def __str__(self) -> str:
        kind = {"all": ""}.get(self.kernels, f" for {self.kernels}")
        return (
            f"{self.way} of {self.program} {self.version}{kind} among {self.devices} {self.device}"
        )

    def time(self, size: float) -> float:
        """Seconds for so many bytes that leave a device.

        >>> f"{exchange_of('h100', 'sglang', 'decode', 'dispatch', 8, 1).time(6.4e6) * 1e6:.0f} µs"
        '36 µs'
        """
        return interpolated(self.times, self.smallest, size)


def load(path: Path | str = FILE) -> Iterator[Exchange]:
    """Every curve of a file, checked.

    >>> next(load()).way
    'combine'
    """
    for row in read_rows(path, COLUMNS):
        owner = f"{path}: {' '.join(row[name] for name in COLUMNS[:7])}"
        if row["kernels"] not in KERNELS or row["way"] not in WAYS:
            raise InputError(
                f"{owner}: kernels are one of {', '.join(KERNELS)}, and the way is one of"
                f" {', '.join(WAYS)}"
            )
        try:
            times = tuple(int(number) / 1e7 for number in row["tenths"].split())
            devices, domains, count, smallest = (
                int(row[name]) for name in ("devices", "domains", "rows", "smallest")
            )
            error_of_row, before, alike = (error(row[name]) for name in COLUMNS[8:11])
        except ValueError:
            raise InputError(f"{owner}: counts, sizes, errors and times must be numbers") from None
        if error_of_row is None:
            raise InputError(f"{owner}: how far its own rows are off is needed")
        if len(times) < 2 or min(times) <= 0 or devices < 2 or smallest < 1:
            raise InputError(f"{owner}: at least two positive times among two devices are needed")
        if any(later < earlier for earlier, later in pairwise(times)):
            raise InputError(f"{owner}: its time falls with more bytes")
        whose = row["kernels"], row["way"], row["device"], row["program"], row["version"]
        counts = devices, domains, count
        yield Exchange(*whose, *counts, error_of_row, before, alike, smallest, times)


@cache
def _stored() -> dict[tuple[str, str, str, str], list[Exchange]]:
    """Return all curves by device, program, kernels and way, the newest version last."""
    curves: dict[tuple[str, str, str, str], list[Exchange]] = {}
    for curve in load():
        of = curve.device, curve.program, curve.kernels, curve.way
        curves.setdefault(of, []).append(curve)
    for versions in curves.values():
        versions.sort(key=lambda one: number_of(one.version))
    return curves


def exchange_of(
    device: str, program: str, kernels: str, way: str, devices: int, domains: int, version: str = ""
) -> Exchange | None:
    """The curve of the most devices that are no more, else of the fewest; None without any.

    In one domain or in several, as is asked for; of several, the number of domains counts. Of
    these the newest version at most as new as is asked for, else the newest.

    >>> print(exchange_of("h100", "sglang", "decode", "dispatch", 8, 1))
    dispatch of sglang 0.5.12 for decode among 8 h100
    """
    tables = [
        curve
        for curve in _stored().get((device, program, kernels, way), ())
        if (curve.domains > 1) == (domains > 1)
    ]
    if not tables:
        return None
    counts = {curve: curve.domains if domains > 1 else curve.devices for curve in tables}
    asked = domains if domains > 1 else devices
    fewer = [count for count in counts.values() if count <= asked]
    nearest = max(fewer) if fewer else min(counts.values())
    return as_asked([curve for curve in tables if counts[curve] == nearest], version)
