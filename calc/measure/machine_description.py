"""Description of a machine: enough to compare measurements, and nothing that names it."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy

from calc.core.errors import InputError
from calc.core.units import Quantity, quantity

ROOT = Path("/")
PACKAGES = ("numpy", "numba", "torch")
CACHE_SIZE = re.compile(r"(\d+)([KM])")


@dataclass(frozen=True)
class Machine:
    """Processor, cores and memory that this process may use, caches in bytes by level, versions."""

    processor: str
    cores: int
    memory: int
    caches: dict[int, int]
    system: str
    python: str
    blas: str
    packages: dict[str, str]

    @property
    def beyond_caches(self) -> int:
        """Bytes of an array that no cache holds a quarter of; refused where memory has no room."""
        wanted = max(4 * max(self.caches.values(), default=0), 2**26)
        if 8 * wanted > self.memory:  # three arrays, and what the rest of the process takes
            raise InputError(
                f"measuring memory needs arrays of {quantity(wanted / 2**20, 'MiB')}, which no"
                f" cache holds, and eight times as much memory; this process may use"
                f" {quantity(self.memory / 2**20, 'MiB'):.4g}"
            )
        return wanted

    @property
    def last_cache(self) -> Quantity | None:
        """The largest cache, where the system tells of any."""
        return quantity(max(self.caches.values()) / 2**20, "MiB") if self.caches else None

    def as_table(self) -> dict[str, object]:
        """Plain values, as a TOML file holds them."""
        table = asdict(self)
        caches = {f"L{level}": size for level, size in table.pop("caches").items()}
        return {**table, "caches": caches, "packages": table.pop("packages")}


def this_machine(root: Path = ROOT) -> Machine:
    """The machine that this runs on, as its system tells it below `root`.

    >>> list(this_machine().as_table())[:3], this_machine().cores >= 1
    (['processor', 'cores', 'memory'], True)
    """
    return Machine(
        processor=_processor(root),
        cores=_cores(root),
        memory=_memory(root),
        caches=_caches(root),
        system=platform.system(),
        python=platform.python_version(),
        blas=_blas(),
        packages=_versions(),
    )


def _processor(root: Path) -> str:
    """The kind of processor; the serial number that some boards print beside it is left alone."""
    for line in _text(root / "proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return platform.processor() or platform.machine()


def _cores(root: Path) -> int:
    """Cores that the scheduler and the control group leave to this process, one at least."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quotas = []
    for group in _groups(root, "cpu"):
        quotas.append(_text(group / "cpu.max").split())
        quotas.append([_text(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")])
    shares = [
        int(quota[0]) / int(quota[1])
        for quota in quotas
        if len(quota) == 2 and all(number.isdecimal() for number in quota)
    ]
    return max(1, min([allowed or 1, *(math.floor(share) for share in shares)]))


def _memory(root: Path) -> int:
    """Bytes that this process may use: those of the machine, or what its control group allows."""
    caches = [
        int(text)
        for group in _groups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        if (text := _text(group / name).strip()).isdecimal()
    ]
    if kilobytes := re.search(r"MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo")):
        caches.append(int(kilobytes[1]) * 1024)
    elif hasattr(os, "sysconf"):
        caches.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if not caches:
        raise InputError("this system does not tell how much memory it has")
    return min(caches)


def _groups(root: Path, controller: str) -> set[Path]:
    """The control groups that this process is in, each with those around it; of either version."""
    top = root / "sys/fs/cgroup"
    folders = {top, top / controller}
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            first = top / controller if controllers else top
            group = first / path.lstrip("/")
            folders |= {group, *group.parents} - set(top.parents)
    return folders


def _caches(root: Path) -> dict[int, int]:
    """Bytes of each level that holds data, as Linux tells them."""
    caches = {}
    for index in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index*")):
        size = CACHE_SIZE.match(_text(index / "size"))
        if size and _text(index / "type").strip() != "Instruction":
            unit = {"K": 2**10, "M": 2**20}[size[2]]
            caches[int(_text(index / "level"))] = int(size[1]) * unit
    return caches


def _blas() -> str:
    """Name and version of the BLAS that NumPy was built with."""
    config: Any = numpy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _versions() -> dict[str, str]:
    fields = {}
    for name in PACKAGES:
        try:
            fields[name] = version(name)
        except PackageNotFoundError:
            continue
    return fields


def _text(path: Path) -> str:
    """Return the text of a system's file; "" where it is not there."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
