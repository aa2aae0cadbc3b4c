"""The stored measurements of the training loop: complete, and within what each lever promises."""

from __future__ import annotations

import csv
import importlib.util
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from calc import codesign
from calc.core.records import DATA

FOLDER = DATA / "measured"
ROOT = Path(__file__).resolve().parents[3]
with (FOLDER / "training_levers.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def measured(lever: str, measure: str) -> dict[str, float]:
    return {
        row["case"]: float(row["value"])
        for row in ROWS
        if (row["lever"], row["measure"]) == (lever, measure)
    }


def test_the_file_says_how_it_was_measured() -> None:
    recorded = tomllib.loads((FOLDER / "training_levers.toml").read_text(encoding="utf-8"))
    source = (ROOT / "experiments" / "record_training_levers.py").read_text(encoding="utf-8")
    assert f'COMMAND = "{recorded["command"]}"' in source
    for name in ("measured", "processor", "cores", "python", "torch", "threads", "load_before"):
        assert recorded[name] not in ("", None)
    for width in recorded["widths"]:
        assert f"width {width}" in measured("precision", "fp16_speedup")


def test_sixteen_bits_save_what_the_shape_allows() -> None:
    ratios = measured("memory", "ratio")
    state = measured("memory", "state_bytes")
    full, half = (measured("memory", f"{name}_saved_bytes") for name in ("fp32", "bf16"))
    for case, ratio in ratios.items():
        wanted = (state[case] + half[case]) / (state[case] + full[case])
        assert ratio == pytest.approx(wanted, rel=1e-3)
    assert min(ratios.values()) < 0.55
    assert max(ratios.values()) > 1  # the weights' copies cost more than activations save


def test_equalities_hold_in_the_measurement() -> None:
    errors = measured("accumulation", "relative_error")
    assert max(value for case, value in errors.items() if "fp64" in case) <= 1e-12
    assert max(measured("accumulation", "largest_error_ulp").values()) <= 4
    wrong = measured("accumulation", "error_divided_by_parts")
    for case, value in wrong.items():
        assert (value < 1e-6) == case.endswith("64 and 64")
    assert measured("padding", "flop_ratio") == {"10 to 16 outputs": 1.6}
    assert measured("offload", "plain_bytes_per_parameter")["fp32"] == 16
    assert measured("offload", "offloaded_bytes_per_parameter") == {"fp32": 8, "bf16": 4}


def test_the_parts_of_a_step_are_all_of_it() -> None:
    for width in measured("parts", "ceiling_of_faster_products"):
        names = ("data", "forward", "backward", "clearing", "optimizer")
        parts = [measured("parts", name)[width] for name in names]
        assert sum(parts) == pytest.approx(1, abs=1e-3)
        ceiling = measured("parts", "ceiling_of_faster_products")[width]
        assert ceiling == pytest.approx(1 / (1 - parts[1] - parts[2]), rel=1e-2)


def test_the_stored_run_learnt_and_met_both_kinds_of_trouble() -> None:
    run = codesign.read_run(FOLDER / "training_run.jsonl")
    assert run.steps[-1].loss < 0.1 * run.steps[0].loss
    assert run.events("overflow")
    assert run.events("out of memory")
    assert max(step.memory for step in run.steps) <= 1e6
    assert 0 < run.mfu.m_as("") < 1
    assert codesign.dashboard_page(run).count("<svg") == 4


def test_too_little_disk_for_torch_is_told_in_a_sentence(monkeypatch) -> None:
    file = ROOT / "tools" / "requirements" / "install.py"
    spec = importlib.util.spec_from_file_location("install", file)
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    usage = SimpleNamespace(free=1.5 * 2**30)
    monkeypatch.setattr(install.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SystemExit, match=r"needs 4 GiB of free disk, and there are 1\.5 GiB"):
        install.check_disk()
