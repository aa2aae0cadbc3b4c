"""The folder of a record: a table for each part, written when it is whole, and how it was made."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from calc.core.errors import InputError
from calc.core.files import parse_json, read_text, write_text
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
from calc.measure.gpu.parts import CONDITIONS, NAMES
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
    folder: Path | str, bench: Bench | None = None, on_progress: Progress | None = None
) -> list[str]:
    """Measure every part that the folder does not hold yet; the names of those that it now has.

    A part that was interrupted is measured again from its beginning, those before it are kept.
    Raises InputError where torch finds no GPU, or where the folder holds the record of another one.

        from calc.measure.gpu import record
        record("my-gpu")  # on a machine with a GPU; half an hour
    """
    bench = bench or Bench()
    path = _folder(folder)
    conditions = _conditions(bench)
    _check_same(path, conditions)
    write_text(path / CONDITIONS, json.dumps(conditions, indent=2) + "\n")
    cases = {
        name: list(part(bench))
        for name, part in PARTS.items()
        if not (path / f"{name}.csv").exists()
    }
    total, done = sum(map(len, cases.values())), 0
    for name, part in cases.items():
        rows = []
        for case in part:
            if on_progress:
                on_progress(done, total, name)
            rows.append(case.labels | case.run())
            done += 1
        write_text(path / f"{name}.csv", _csv(rows))
    return [name for name in PARTS if (path / f"{name}.csv").exists()]


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
    other = [name for name in SAME if before.get(name) != conditions[name]]
    if other:
        raise InputError(
            f"{folder} holds the record of another machine, which differs in {', '.join(other)};"
            " give another folder"
        )


SAME = ("gpu", "memory", "torch", "runtime", "small")


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
