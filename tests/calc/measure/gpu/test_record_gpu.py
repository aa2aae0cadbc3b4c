"""`python -m experiments.record_gpu`: a made-up record becomes data, or is refused."""

from __future__ import annotations

import ast
import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from calc import hardware, machines, measure
from calc.core.errors import InputError
from calc.measure.gpu.parts import BRIEF, CONDITIONS, NAMES
from experiments import record_gpu

GPU = Path(measure.__file__).parent / "gpu"
TIMES = {"seconds": "1e-3", "spread": "0.01", "repeats": "9", "why": ""}
CASES: dict[str, dict[str, str]] = {
    "launches": {"way": "a graph", "kernels": "1000", "seconds": "1e-6"},
    "bandwidth": {"kernel": "copy", "array_bytes": "1e9", "moved_bytes": "4e9"},
    "host_copies": {"way": "host to device", "pages": "pinned", "bytes": "5e7"},
    "latency": {"load": "idle", "size_bytes": "16384"},
    "gemms": {"family": "square", "dtype": "bf16", "m": "8", "n": "9", "k": "10", "flop": "7e11"},
    "attention": {"pass": "forward", "kernel": "flash", "tokens": "1024", "flop": "5e11"},
    "kernels": {"kernel": "scale", "dtype": "fp32", "flop": "4.8e8", "bytes": "3.84e9"},
    "loops": {"loop": "decode", "way": "graph", "layers": "32", "batch": "1", "context": "1024"},
    "levers": {"lever": "FP32"},
    "resolvents": {"way": "triton", "dtype": "complex64", "batch": "64", "n": "64"},
    "power": {"work": "idle"},
    "collectives": {"operation": "all-reduce", "devices": "1", "bytes": "1024"},
}
TOLD = {"measured": "2026-11-22", "gpu": "NVIDIA H200", "gpus": 1, "small": False}
TOLD |= {"torch": "2.13.0", "runtime": "CUDA 13.0"}


def made_up(folder: Path, **changed: Any) -> Path:
    """A record of one row in each table."""
    folder.mkdir()
    for name in NAMES:
        rows = [TIMES | CASES[name]]
        if name == "resolvents":  # ten times as slow, step by step
            rows.append(rows[0] | {"way": "torch, step by step", "seconds": "1e-2"})
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
    (folder / CONDITIONS).write_text(json.dumps(TOLD | changed), encoding="utf-8")
    return folder


def written(folder: Path, target: Path) -> machines.Machine:
    conditions, tables = record_gpu.read(folder)
    device = record_gpu.device_of(conditions, None)
    file = target / "machines.toml"
    if not file.exists():
        shutil.copy(machines.FILE, file)
    record_gpu.write(device, conditions, tables, target / "h200", file)
    return machines.load(file)["h200-1-measured"]


def test_a_record_becomes_a_machine_with_its_rates(tmp_path: Path) -> None:
    machine = written(made_up(tmp_path / "gpu"), tmp_path)
    assert machine.device is hardware.get("h200")
    assert str(machine.reached("gemm", "bf16")) == "700 TFLOP/s"
    assert str(machine.reached("memory", "copy")) == "4000 GB/s"
    assert str(machine.reached("attention", "forward")) == "500 TFLOP/s"
    assert str(machine.reached("host_link", "host to device")) == "50 GB/s"
    assert str(machine.reached("launch", "a graph")) == "1 µs"
    assert {path.stem for path in (tmp_path / "h200").glob("*.csv")} == set(NAMES)


def test_a_later_record_takes_the_place_of_the_earlier(tmp_path: Path) -> None:
    written(made_up(tmp_path / "gpu"), tmp_path)
    first = (tmp_path / "machines.toml").read_text(encoding="utf-8")
    written(tmp_path / "gpu", tmp_path)
    assert (tmp_path / "machines.toml").read_text(encoding="utf-8") == first
    assert first.startswith(machines.FILE.read_text(encoding="utf-8").rstrip())


def test_a_brief_record_becomes_a_machine_too(tmp_path: Path) -> None:
    folder = made_up(tmp_path / "gpu", brief=True)
    for name in set(NAMES) - set(BRIEF):
        (folder / f"{name}.csv").unlink()
    machine = written(folder, tmp_path)
    assert str(machine.reached("gemm", "bf16")) == "700 TFLOP/s"
    assert not machine.has_reached("host_link", "host to device")
    assert {path.stem for path in (tmp_path / "h200").glob("*.csv")} == set(BRIEF)
    _, tables = record_gpu.read(folder)
    lines = record_gpu.report(machine.device, tables, machine)
    assert "bf16 products reach 71% of the dense peak" in lines
    (folder / "power.csv").unlink()
    with pytest.raises(InputError, match="has no power; `calc measure --gpu --minutes 9"):
        record_gpu.read(folder)


def test_what_was_predicted_stands_beside_it(tmp_path: Path) -> None:
    machine = written(made_up(tmp_path / "gpu"), tmp_path)
    _, tables = record_gpu.read(tmp_path / "gpu")
    lines = record_gpu.report(machine.device, tables, machine)
    # 3.84 GB at the 4.8 TB/s of the datasheet are 0.8 ms, where 1 ms was measured.
    assert lines[1].split() == ["scale", "1000", "µs", "800", "µs", "25%"]
    assert "half of 1 kernels are within 25% of the roofline" in lines
    assert "bf16 products reach 71% of the dense peak" in lines  # 700 of 989.5 TFLOP/s
    assert lines[-1].endswith("10 times the speed of torch, step by step")


@pytest.mark.parametrize(
    ("changed", "missing", "said"),
    [
        ({}, "gemms", "has no gemms; `calc measure --gpu --all"),
        ({"small": True}, "", "is a trial without a GPU"),
        ({"gpu": "Abacus 9000"}, "", "no device of the data is called 'Abacus 9000'"),
    ],
)
def test_what_is_no_record_is_refused(
    changed: dict[str, Any], missing: str, said: str, tmp_path: Path
) -> None:
    folder = made_up(tmp_path / "gpu", **changed)
    if missing:
        (folder / f"{missing}.csv").unlink()
    with pytest.raises((InputError, SystemExit), match=said):
        record_gpu.main([str(folder)])


def test_what_a_case_makes_lies_where_it_is_measured() -> None:
    """A trial on a CPU would not tell: without a device named, an array is made there."""
    makers = {"arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn"}
    for path in (*GPU.rglob("*.py"), *GPU.parents[1].glob("codesign/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("torch"), attr=name)) if (
                    name in makers | {"tensor", "zeros"}
                ):
                    named = {keyword.arg for keyword in node.keywords}
                    assert named & {"device", "pin_memory", None}, f"{path.name}:{node.lineno}"
