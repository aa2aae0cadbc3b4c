"""A measured machine is an accelerator like any other, or is refused in one sentence."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import calc
from calc import InputError, hardware, quantity
from calc.measure import accelerator, read, save
from calc.measure.record import key_of, record_text
from tests.calc.command import Written
from tests.calc.measure.surveys import MACHINE, made_up


def test_what_is_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    saved = save(made_up(), path, "calc measure")
    device = hardware.load(path)["made-up-9000-x-1-core"]
    assert device.name == saved.name == 'Made Up 9000 "X", 1 core'
    assert device.memory_bandwidth.m_as("GB/s") == pytest.approx(24)  # 5 / (2/16 + 3/36)
    assert device.memory_capacity == quantity("16 GiB")
    assert device.on_chip_memory == quantity("32 MiB")
    assert device.dtypes == ("fp64", "fp32")
    assert device.ridge_point("fp64").m_as("FLOP/byte") == pytest.approx(2)
    assert device.measurement["machine"] == MACHINE
    assert device.measurement["command"] == "calc measure"
    assert device.measurement["latency"]["memory"]["median"] == pytest.approx(160)
    assert device.measurement["working_set"]["8192"]["spread"] == pytest.approx(0.0123)
    assert [each.name for each in tmp_path.iterdir()] == ["machine.toml"]


def test_every_value_says_how_it_was_measured() -> None:
    device = accelerator(made_up())
    for value in (device.memory_bandwidth, device.peak("fp64"), device.memory_capacity):
        assert "measured, The Machine Foundations authors (2026)" in calc.source(value)
    assert "A test: median of 9 repeats, spread 1.2%." in calc.source(device.peak("fp32"))
    with pytest.raises(InputError, match="no meter of power"):
        _ = device.tdp


@pytest.mark.parametrize(
    ("memory", "fp64", "why"),
    [
        (-1.0, "48 GFLOP/s", "memory_bandwidth must be positive"),
        (1.0, "0 GFLOP/s", "peak.fp64 must be positive"),
        (1e-6, "48 GFLOP/s", r"/machine.toml: .* ridge point of 2 MFLOP/byte"),
        (1.0, "48 MFLOP/s", "ridge point of 0.002 FLOP/byte"),
    ],
)
def test_what_cannot_be_is_refused_and_not_written(
    tmp_path: Path, memory: float, fp64: str, why: str
) -> None:
    with pytest.raises(InputError, match=why) as refusal:
        save(made_up(memory, fp64), tmp_path / "machine.toml", "calc measure")
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "instead", "why"),
    [
        ("threads", None, "measurement.threads must be a whole number, .* got None"),
        ("threads", "1", "measurement.threads must be a whole number"),
        ("machine", 3, "measurement.machine must be a table, .* got 3"),
    ],
)
def test_a_record_says_of_what_it_is(tmp_path: Path, name: str, instead: Any, why: str) -> None:
    path = tmp_path / "machine.toml"
    save(made_up(), path, "calc measure")
    records = tomllib.loads(path.read_text(encoding="utf-8"))
    (record,) = records.values()
    del record["measurement"][name]
    record["measurement"] |= {} if instead is None else {name: instead}
    path.write_text(tomli_w.dumps(records), encoding="utf-8")
    with pytest.raises(InputError, match=rf"machine.toml: {why}"):
        read(path)


def test_an_older_record_outlives_a_refused_one(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    save(made_up(), path, "calc measure")
    with pytest.raises(InputError):
        save(made_up(-1.0), path, "calc measure")
    assert read(path).memory_bandwidth.m_as("GB/s") == pytest.approx(24)


@pytest.mark.parametrize("field", ["memory_bandwidth", "memory_capacity", "kind", "source"])
def test_a_record_without_a_field_is_refused(written: Written, field: str) -> None:
    records = tomllib.loads(record_text(made_up(), "calc measure"))
    (record,) = records.values()
    del record[field]
    path = written(tomli_w.dumps(records), "machine.toml")
    with pytest.raises(InputError, match=f"has no {field}"):
        hardware.load(path)


def test_a_file_needs_a_path() -> None:
    for load in (hardware.load, read):
        with pytest.raises(InputError, match="a file needs a path; got None"):
            load(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'a\\x00b': cannot be read: embedded null"):
        hardware.load("a\0b")


def test_only_a_measured_machine_is_read(tmp_path: Path) -> None:
    from calc.core.records import DATA

    with pytest.raises(InputError, match="as `calc measure` writes it"):
        read(DATA / "accelerators.toml")
    with pytest.raises(InputError, match="there is no such file"):
        read(tmp_path / "none.toml")


def test_a_system_that_does_not_tell_its_caches() -> None:
    device = accelerator(dataclasses.replace(made_up(), cache=None))
    with pytest.raises(InputError, match="does not tell of its caches"):
        _ = device.on_chip_memory


def test_keys() -> None:
    assert key_of("AMD EPYC, 1 core") == "amd-epyc-1-core"
    assert key_of("???") == "machine"
