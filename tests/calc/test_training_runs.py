"""The laws of training against runs that others have published (calc.runs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from calc import InputError, runs, training
from calc.citations import bibliography

RUNS = [runs.get(name) for name in runs.names()]


def having(*fields: str) -> list[runs.Run]:
    return [run for run in RUNS if all(run.publishes(field) for field in fields)]


@pytest.mark.parametrize("run", having("work"), ids=lambda run: run.key)
def test_six_operations_make_the_reported_work(run: runs.Run) -> None:
    """PaLM's report counts attention too, which adds a percent or two."""
    work = training.training_flops(run.parameters, run.tokens)
    assert (work / run.work).m_as("") == pytest.approx(1, abs=0.025)


@pytest.mark.parametrize("run", having("device_time"), ids=lambda run: run.key)
def test_utilization_over_the_whole_run_is_plausible(run: runs.Run) -> None:
    """Hours with downtime and repeated steps in them stay below the rate of steady state."""
    overall = training.mfu(run.parameters, run.tokens, 1, run.device_peak, run.device_time)
    steady = run.mfu.m_as("") if run.publishes("mfu") else 0.5
    assert 0.3 < overall.m_as("") < steady


@pytest.mark.parametrize("run", having("throughput", "mfu"), ids=lambda run: run.key)
def test_tokens_per_second_give_the_reported_utilization(run: runs.Run) -> None:
    tokens = (run.throughput * training.quantity("1 s")).to("token")
    found = training.mfu(run.parameters, tokens, run.devices, run.device_peak, "1 s")
    assert found.m_as("%") == pytest.approx(run.mfu.m_as("%"), abs=0.1)


def test_every_number_names_a_source_of_the_bibliography() -> None:
    for run in RUNS:
        assert run.source in bibliography()
        for record in run.records.values():
            assert record.provenance.source in bibliography()


def test_what_a_report_leaves_out_is_told() -> None:
    with pytest.raises(InputError, match="GPT-3 175B is unpublished: OpenAI has not published"):
        _ = runs.get("gpt-3-175b").device_time
    with pytest.raises(InputError, match="report of GPT-3 175B does not give its hfu"):
        _ = runs.get("gpt-3-175b").hfu
    with pytest.raises(InputError, match=r"no training run 'gpt-5'; there is gpt-3-175b, "):
        runs.get("gpt-5")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tokens =", "token =", "unknown field token; known are"),
        ("mfu = {", "hfu = {", "has no mfu: give its value, or"),
    ],
)
def test_a_wrong_field_is_named(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = runs.FILE.read_text(encoding="utf-8").split("[palm-540b]")[0]
    path = tmp_path / "training_runs.toml"
    path.write_text(text.replace(f"\n{old}", f"\n{new}"), encoding="utf-8")
    monkeypatch.setattr(runs, "FILE", path)
    runs._runs.cache_clear()
    try:
        with pytest.raises(InputError, match=message):
            runs.names()
    finally:
        runs._runs.cache_clear()
