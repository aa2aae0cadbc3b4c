"""`calc measure` and `calc validate`: what they print, write and refuse."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calc import hardware, measure, quantity
from calc.commands import main
from calc.measure import Comparison, Measured, Survey, save, surveying
from calc.measure.picture import HEIGHT, WIDTH, roofline_lines
from tests.calc.command import Command
from tests.calc.measure.surveys import made_up


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "machine.toml"
    save(made_up(), path, "calc measure")
    return path


def test_measure_writes_a_device_and_draws_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    asked = []

    @functools.wraps(measure.survey)
    def survey(threads: int, on_progress: Callable[[int, int], None]) -> Survey:
        asked.append(threads)
        on_progress(1, 2)
        return replace(made_up(), too_noisy=("latency L2",))

    monkeypatch.setattr(measure, "survey", survey)
    path = tmp_path / "mine.toml"
    printed = command.prints("measure", str(path), "--threads", "2")
    assert asked == [2]
    assert measure.read(path).measurement["command"] == "calc measure --threads 2"
    assert ["bandwidth,", "triad", "36", "GB/s", "±", "1.2%"] in map(
        str.split, printed.splitlines()
    )
    for expected in ("ridge 4", "of an H100, FP16"):
        assert expected in printed
    assert "295 FLOP/byte" in printed
    assert "\nleft out, since another program was in the way: latency L2\n" in printed
    assert f"\nwritten to {path}; `calc" in printed
    hint = re.search("`calc (roofline .*)` reads it", printed)
    assert hint is not None
    assert "--dtype" in hint[1]
    assert "FP32" in command.prints(hint[1])  # as it stands
    namespace: dict[str, Any] = {}
    exec(printed.splitlines()[-1], namespace)  # what it says for Python
    assert namespace["device"].memory_bandwidth == measure.read(path).memory_bandwidth
    assert f"\nwritten to {path}, over what it held; `calc" in command.prints("measure", str(path))


def test_an_interruption_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any) -> Measured:
        raise KeyboardInterrupt

    monkeypatch.setattr(surveying.gemm, "peak", interrupted)
    monkeypatch.setattr(surveying.bandwidth, "copy", lambda *_: None)
    monkeypatch.setattr(surveying.bandwidth, "triad", lambda *_: None)
    assert main(["measure", str(tmp_path / "machine.toml")]) == 130
    assert capsys.readouterr().err == "calc: interrupted\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["machine.csv"], "a device is written as .toml"),
        (["none/machine.toml"], "there is no folder"),
        (["machine.toml", "--threads", "0"], "threads must be from 1 to"),
        (["machine.toml", "--threads", "100000"], "the cores that this process may use"),
    ],
)
def test_measure_refuses_before_it_measures(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    arguments: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert why in command.refuses("measure", *arguments)
    assert list(tmp_path.iterdir()) == []


def comparison(name: str, ratio: float | None) -> Comparison:
    second = quantity("1 s")
    clock = None if ratio is None else Measured(second * ratio, 0.01, 7, name)
    one = quantity("1 FLOP"), quantity("1 B")
    return Comparison(name, "tests", "fp64", *one, second, clock)


def test_validate_prints_ratios_and_errors(
    machine: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    comparisons = [comparison("good", 1.1), comparison("bad", 5.0), comparison("noisy", None)]
    monkeypatch.setattr(measure, "validate", lambda *_: comparisons)
    lines = command.prints("validate", str(machine)).splitlines()
    assert lines[0].split() == ["kernel", "format", "predicted", "measured", "ratio"]
    assert lines[2].split() == ["bad", "FP64", "1e3", "ms", "5e3", "ms", "5.00"]
    assert lines[3].split() == ["noisy", "FP64", "1e3", "ms", "too", "noisy", "–"]
    assert lines[-1] == (
        "half of 2 kernels are within 205% of the roofline; the worst is bad, at 5 times its time"
    )


def test_validate_needs_a_record_of_one_core(tmp_path: Path, command: Command) -> None:
    assert "there is no such file; `calc measure` writes one\n" in command.refuses(
        "validate", str(tmp_path / "none.toml")
    )
    path = tmp_path / "two.toml"
    import dataclasses

    save(dataclasses.replace(made_up(), threads=2), path, "calc measure --threads 2")
    assert "is not of one core" in command.refuses("validate", str(path))


def test_the_other_commands_take_the_file(machine: Path, command: Command) -> None:
    work = ["--flops", "48 GFLOP", "--bytes", "48 GB", "--dtype", "fp64"]
    assert "bound by memory" in command.prints("roofline", str(machine), *work)
    assert "memory bandwidth" in command.prints("show", str(machine))
    assert "there is no such file" in command.refuses("roofline", "none.toml", *work)


def test_the_picture() -> None:
    lines = roofline_lines(measure.accelerator(made_up()), "fp64")
    assert lines[0] == "fp64: 48 GFLOP/s flat, 24 GB/s on the slope"
    assert len(lines) == HEIGHT + 3
    assert lines[1].strip().lstrip("/") == "_" * (WIDTH // 2)
    assert lines[-1].startswith("0.02")
    assert "ridge 2" in lines[-1]
    slope = [line.index("/") for line in lines[2:HEIGHT] if "/" in line]
    assert slope == sorted(slope, reverse=True)


def test_a_picture_is_read_back_by_its_axes() -> None:
    """Four lines a decade of rate, and four decades of intensity with the ridge in their middle."""
    for device, dtype in (
        (measure.accelerator(made_up()), "fp64"),
        (hardware.get("h100"), "fp8"),
        (hardware.get("a100"), "tf32"),
    ):
        _, *grid, axis, _ = roofline_lines(device, dtype)
        assert axis == "-" * WIDTH
        for column in range(WIDTH):
            decades = 4 * column / (WIDTH - 1) - 2
            (mark,) = [
                (line, grid[line][column])
                for line in range(HEIGHT)
                if grid[line][column : column + 1] in ("/", "_")
            ]
            assert mark[1] == ("/" if decades < 0 else "_")
            assert abs(mark[0] - 4 * max(0, -decades)) <= 0.5
        assert {grid[line][WIDTH // 2] for line in range(1, HEIGHT)} == {":"}
