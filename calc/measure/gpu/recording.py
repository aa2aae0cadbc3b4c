"""The folder of a record: a table for each part, written when it is whole, and how it was made."""

from __future__ import annotations

import csv
import datetime
import io
import json
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from calc.core.arguments import number
from calc.core.errors import InputError
from calc.core.files import parse_json, read_text, write_text
from calc.core.records import read_rows
from calc.core.report import values
from calc.measure.gpu import (
    gpu_attention,
    gpu_collectives,
    gpu_gemms,
    gpu_kernels,
    gpu_memory,
    gpu_power,
    launching,
    llama,
    resolvents,
)
from calc.measure.gpu.bench import Bench, Case, Row
from calc.measure.gpu.parts import CONDITIONS, NAMES, ONLY, names_of
from calc.measure.machine_description import this_machine

MAKERS: tuple[Callable[[Bench], Iterator[Case]], ...] = (
    launching.cases,
    gpu_memory.bandwidth_cases,
    gpu_memory.host_cases,
    gpu_memory.latency_cases,
    gpu_gemms.cases,
    gpu_attention.cases,
    gpu_kernels.cases,
    llama.loop_cases,
    llama.lever_cases,
    resolvents.cases,
    gpu_power.cases,
    gpu_collectives.cases,
)
PARTS = dict(zip(NAMES, MAKERS, strict=True))

Progress = Callable[[int, int, str], None]


def record(
    folder: Path | str,
    bench: Bench | None = None,
    on_progress: Progress | None = None,
    minutes: float | None = None,
) -> list[str]:
    """Measure every part that the folder does not hold yet; the names of those that it now has.

    Of so many minutes it is a brief record: fewer parts, and what was measured of a part when they
    are over is kept, so that the next call goes on after it. Else a part that was interrupted is
    measured again from its beginning, those before it are kept. Numbers are drawn from one seed.
    Raises InputError where torch finds no GPU, or where the folder holds the record of another one.

        from calc.measure.gpu import record
        record("my-gpu")  # on a machine with a GPU; half an hour
    """
    if minutes is not None:
        number("minutes", minutes, above=0)
    end = None if minutes is None else time.monotonic() + 60 * minutes
    bench = bench or Bench()
    path = _folder(folder)
    conditions = _conditions(bench) | {"brief": minutes is not None}
    torch.manual_seed(SEED)
    _check_same(path, conditions)
    write_text(path / CONDITIONS, json.dumps(conditions, indent=2) + "\n")
    names = names_of(minutes is not None)
    cases = {
        name: list(_chosen(name, PARTS[name](bench), minutes is not None))
        for name in names
        if not (path / f"{name}.csv").exists()
    }
    total, done = sum(map(len, cases.values())), 0
    for name, part in cases.items():
        begun = path / f"{name}{BEGUN}"
        rows: list[Row] = list(read_rows(begun)) if begun.exists() else []
        done += len(rows)
        for case in part[len(rows) :]:
            if end is not None and time.monotonic() >= end:
                if rows:
                    write_text(begun, _csv(rows))
                return _whole(path, names)
            if on_progress:
                on_progress(done, total, name)
            rows.append(case.labels | case.run())
            done += 1
        write_text(path / f"{name}.csv", _csv(rows))
        begun.unlink(missing_ok=True)
    return _whole(path, names)


SEED = 0
BEGUN = ".begun.csv"
"""End of the name of a table of a part that time did not suffice for."""


def _chosen(name: str, cases: Iterator[Case], brief: bool) -> Iterator[Case]:
    """Yield the cases of a part, or those of a brief record."""
    label, among = ONLY.get(name, ("", ()))
    for case in cases:
        if not (brief and label) or case.labels[label] in among:
            yield case


def _whole(folder: Path, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if (folder / f"{name}.csv").exists()]


def _folder(folder: Path | str) -> Path:
    path = Path(folder)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror or error}") from None
    return path


def _check_same(folder: Path, conditions: Row) -> None:
    """One folder is one GPU with one software: rows of two do not belong beside each other."""
    path = folder / CONDITIONS
    if not path.exists():
        return
    before = parse_json(read_text(path), path)
    if not isinstance(before, dict):
        raise InputError(f"{path}: is no record of a GPU's conditions")
    other = [name for name in SAME if before.get(name, False) != conditions[name]]
    if other:
        raise InputError(
            f"{folder} holds the record of another machine, which differs in {', '.join(other)};"
            " give another folder"
        )


SAME = ("gpu", "memory", "torch", "runtime", "small", "brief")


def _conditions(bench: Bench) -> Row:
    """Return the conditions of the rows, without anything that names one machine."""
    machine = this_machine()
    row: Row = {
        "measured": str(datetime.datetime.now(datetime.UTC).date()),
        "command": "calc measure --gpu --all",
        "gpu": "none: a trial on the CPU",
        "gpus": 0,
        "memory": bench.memory,
        **values(machine, "processor cores system python"),
        "torch": torch.__version__,
        "triton": _version("triton"),
        "runtime": f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU",
        "small": bench.small,
    }
    if torch.version.hip:
        row["runtime"] = f"ROCm {torch.version.hip}"
    if bench.on_gpu:
        properties = torch.cuda.get_device_properties(0)
        row |= {
            "gpu": properties.name,
            "gpus": torch.cuda.device_count(),
            "units": properties.multi_processor_count,
            "cache": properties.L2_cache_size,
            "capability": f"{properties.major}.{properties.minor}",
            "driver": gpu_power.told("driver_version"),
            "power_limit_w": gpu_power.told("power.limit"),
        }
    return row


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _csv(rows: list[Row]) -> str:
    """Columns are those of the first row; a part whose rows differ is a mistake of ours."""
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
