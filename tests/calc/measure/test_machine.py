"""Description of a machine: limits of its control group, and nothing that names it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from calc import InputError
from calc.measure import this_machine


def machine_root(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


GIB = 2**30
PROC = {
    "proc/cpuinfo": "Serial\t: 00000000deadbeef\nmodel name\t: Made Up 9000\nphysical id\t: 0\n",
    "proc/meminfo": f"MemTotal:       {16 * GIB // 1024} kB\nMemFree:   1 kB\n",
}
CACHES = {
    f"sys/devices/system/cpu/cpu0/cache/index{index}/{name}": text
    for index, (level, kind, size) in enumerate(
        [
            (1, "Data", "48K"),
            (1, "Instruction", "32K"),
            (2, "Unified", "2048K"),
            (3, "Unified", "8M"),
        ]
    )
    for name, text in (("level", f"{level}\n"), ("type", f"{kind}\n"), ("size", f"{size}\n"))
}


def test_caches_and_memory(tmp_path: Path) -> None:
    machine = this_machine(machine_root(tmp_path, PROC | CACHES))
    assert machine.processor == "Made Up 9000"
    assert machine.caches == {1: 48 * 1024, 2: 2 * 2**20, 3: 8 * 2**20}
    assert machine.memory == 16 * GIB
    assert str(machine.last_cache) == "8 MiB"
    assert machine.beyond_caches == 64 * 2**20


@pytest.mark.parametrize(
    ("limits", "cores", "memory"),
    [
        ({"cpu.max": "150000 100000\n", "memory.max": f"{2 * GIB}\n"}, 1, 2 * GIB),
        ({"cpu.max": "50000 100000\n", "memory.max": "max\n"}, 1, 16 * GIB),
        ({"cpu.max": "max 100000\n"}, None, 16 * GIB),
        (
            {
                "cpu/cpu.cfs_quota_us": "100000\n",
                "cpu/cpu.cfs_period_us": "100000\n",
                "memory/memory.limit_in_bytes": f"{3 * GIB}\n",
            },
            1,
            3 * GIB,
        ),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None, 16 * GIB),
        ({"jobs/mine/memory.max": f"{5 * GIB}\n", "jobs/cpu.max": "100000 100000\n"}, 1, 5 * GIB),
        ({"jobs/memory.max": f"{5 * GIB}\n", "others/memory.max": f"{GIB}\n"}, None, 5 * GIB),
        ({"memory/old/memory.limit_in_bytes": f"{6 * GIB}\n"}, None, 6 * GIB),
        ({"cpu/memory.max": f"{GIB}\n"}, None, 16 * GIB),
    ],
)
def test_limits_of_the_control_group(
    tmp_path: Path, limits: dict[str, str], cores: int | None, memory: int
) -> None:
    files = {f"sys/fs/cgroup/{name}": text for name, text in limits.items()}
    inside = {"proc/self/cgroup": "4:memory:/old\n2:cpu,cpuacct:/\n0::/jobs/mine\n"}
    machine = this_machine(machine_root(tmp_path, PROC | inside | files))
    assert machine.cores == (cores or len(os.sched_getaffinity(0)))
    assert machine.memory == memory


@pytest.mark.parametrize(("quota", "cores"), [(99_999, 1), (100_000, 1), (350_000, 3), (9e6, 64)])
def test_cores_of_a_quota_are_those_it_fills(
    quota: float, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(64)}, raising=False)
    limit = {"sys/fs/cgroup/cpu.max": f"{quota:.0f} 100000\n"}
    assert this_machine(machine_root(tmp_path, PROC | limit)).cores == cores


def test_one_core_is_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert this_machine(machine_root(tmp_path, PROC)).cores == 1


def test_too_little_memory_is_told(tmp_path: Path) -> None:
    limit = {"sys/fs/cgroup/memory.max": f"{256 * 2**20}\n"}
    machine = this_machine(machine_root(tmp_path, PROC | CACHES | limit))
    with pytest.raises(InputError, match=r"arrays of 64 MiB.* may use 256 MiB$"):
        _ = machine.beyond_caches


def test_no_cache_is_told_of(tmp_path: Path) -> None:
    machine = this_machine(machine_root(tmp_path, PROC))
    assert machine.last_cache is None
    assert machine.beyond_caches == 64 * 2**20


def test_nothing_names_the_machine_or_its_owner(tmp_path: Path) -> None:
    table = str(this_machine(machine_root(tmp_path, PROC)).as_table())
    assert "deadbeef" not in table
    assert platform.node() not in table
    assert str(Path.home()) not in table
    assert set(this_machine().as_table()) == {
        *("processor", "cores", "memory", "caches", "system", "python", "blas", "packages")
    }
