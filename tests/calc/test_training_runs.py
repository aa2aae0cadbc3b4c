"""The laws of training against runs that others have published (calc.runs)."""

from __future__ import annotations

import pytest

from calc import InputError, parallelism, runs, training
from calc.core.citations import bibliography
from tests.calc.command import Written

RUNS = [runs.get(name) for name in runs.names()]
COUNTED_TWICE = {"opt-175b": 8 / 6}  # recomputation is in the reported work
UNEXPLAINED = {"llama-3-1-8b": 0.139, "llama-3-1-70b": 0.255}  # far below all others


def having(*fields: str) -> list[runs.Run]:
    return [run for run in RUNS if all(run.publishes(field) for field in fields)]


@pytest.mark.parametrize("run", having("work"), ids=lambda run: run.key)
def test_six_operations_make_the_reported_work(run: runs.Run) -> None:
    """Reports of PaLM and OPT count attention too, which adds a percent or two."""
    work = training.training_flops(run.parameters, run.tokens) * COUNTED_TWICE.get(run.key, 1)
    assert (work / run.work).m_as("") == pytest.approx(1, abs=0.025)


@pytest.mark.parametrize("run", having("device_time"), ids=lambda run: run.key)
def test_utilization_over_the_whole_run_is_plausible(run: runs.Run) -> None:
    """Hours with downtime and repeated steps in them stay below the rate of steady state."""
    overall = training.mfu(run.parameters, run.tokens, 1, run.device_peak, run.device_time)
    if run.key in UNEXPLAINED:
        assert overall.m_as("") == pytest.approx(UNEXPLAINED[run.key], abs=0.001)
        return
    steady = run.mfu.m_as("") if run.publishes("mfu") else 0.5
    assert 0.3 < overall.m_as("") < steady


@pytest.mark.parametrize("run", having("throughput", "mfu"), ids=lambda run: run.key)
def test_tokens_per_second_give_the_reported_utilization(run: runs.Run) -> None:
    tokens = (run.throughput * training.quantity("1 s")).to("token")
    utilization = training.mfu(run.parameters, tokens, run.devices, run.device_peak, "1 s")
    assert utilization.m_as("%") == pytest.approx(run.mfu.m_as("%"), abs=0.1)


def test_a_throughput_gives_the_hours_where_none_are_lost() -> None:
    """LLaMA's and DeepSeek's authors report both; their hours are those of steady state."""
    for key in ("llama-65b", "deepseek-v3"):
        run = runs.get(key)
        hours = run.tokens / run.throughput * run.devices
        assert (hours / run.device_time).m_as("") == pytest.approx(1, abs=0.002)


def test_mt_nlg_recomputes_everything() -> None:
    """Authors of MT-NLG report hardware FLOP/s, those of PaLM calculated its MFU: a third less."""
    run = runs.get("mt-nlg-530b")
    utilization = parallelism.hfu(run.mfu_with_attention, 1)
    assert utilization.m_as("%") == pytest.approx(run.hfu.m_as("%"), abs=0.2)


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
    with pytest.raises(InputError, match=r"no training run 'gpt-5'; did you mean gpt-3-175b .*"):
        runs.get("gpt-5")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tokens =", "token =", "unknown field token; known are"),
        ("mfu = {", "hfu = {", "has no mfu: give its value, or"),
    ],
)
def test_a_wrong_field_is_named(
    old: str, new: str, message: str, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = runs.FILE.read_text(encoding="utf-8").split("[gopher-280b]")[0]
    path = written(text.replace(f"\n{old}", f"\n{new}"), "training_runs.toml")
    monkeypatch.setattr(runs, "FILE", path)
    runs._runs.cache_clear()
    try:
        with pytest.raises(InputError, match=message):
            runs.names()
    finally:
        runs._runs.cache_clear()
