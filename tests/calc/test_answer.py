"""The mean step of an answer beside the steps that it is the mean of."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

import calc
from calc import Formats, Job, Layout, Tokens
from calc.steps import timing
from calc.steps.expectation import Missing

POINTS = 61
JOBS = {  # of full, window, latent, sparse and recurrent layers, and of selected blocks
    "llama-3-70b": ("dgx-h100", 8),
    "gemma-2-27b": ("dgx-h100", 8),
    "gpt-oss-120b": ("dgx-h100", 4),
    "deepseek-v3": ("dgx-h200", 8),
    "deepseek-v3-2": ("dgx-b200", 8),
    "qwen-3-next-80b-a3b": ("dgx-h100", 4),
    "minimax-m3": ("dgx-b200", 8),
}
BATCHES = 16, 140
LOADS = ((64, 1000, 6000), (1, 100, 3000))


def job_of(model: str) -> Job:
    machine, devices = JOBS[model]
    return Job.of(model, machine, Layout(tensor=devices), Formats(), "vllm")


@pytest.mark.slow
@pytest.mark.parametrize("model", JOBS)
def test_a_mean_step_is_that_of_steps_along_the_answer(model: str) -> None:
    job = job_of(model)
    for batch, prompt, generated in LOADS:
        contexts = [prompt + generated * (index + 0.5) / POINTS for index in range(POINTS)]
        steps = [calc.step(job, Tokens(writing=batch, context=context)) for context in contexts]
        mean = timing.mean_step(job, batch, prompt, generated)
        expected = [step.expected.m_as("s") for step in steps if step.expected is not None]
        assert len(expected) == POINTS
        assert mean.expected is not None
        assert math.isclose(mean.expected.m_as("s"), fmean(expected), rel_tol=2e-3)
        for name, part in mean.parts.items():
            along = fmean(step.parts[name].m_as("s") for step in steps)
            assert math.isclose(part.m_as("s"), along, rel_tol=1e-3), name


def test_a_plan_takes_the_mean_step_at_each_of_its_doors() -> None:
    asked = {"prompt": 1000, "generated": 6000, "batch": 64, "devices": 8, "software": "vllm"}
    plan = calc.plan("gemma-2-27b", "dgx-h100", **asked)
    mean = timing.mean_step(plan.job, 64, 1000, 6000)
    assert plan.expected is not None
    assert plan.expected.time_per_token == mean.expected
    assert plan.writing.lower == plan.time_per_token.lower == mean.lower
    [row] = plan.facts["rows"]
    assert row["expected"]["time_per_token"] == mean.expected


def test_points_of_a_sweep_are_those_of_plans_of_their_own() -> None:
    asked = {"prompt": 1000, "generated": 6000, "devices": 8, "weights": "fp8"}
    for model in ("gemma-2-27b", "deepseek-v3-2"):
        several = calc.plan(model, "dgx-b200", batch=[*BATCHES], **asked)
        for batch, point in zip(BATCHES, several.points, strict=True):
            alone = calc.plan(model, "dgx-b200", batch=batch, **asked)
            assert alone.expected is not None
            assert point["expected"]["time_per_token"] == alone.expected.time_per_token


def test_of_a_device_alone_a_mean_has_bounds_and_says_why_nothing_is_expected() -> None:
    job = Job(calc.models.get("llama-3-8b"), calc.hardware.get("h100"))
    mean = timing.mean_step(job, 8, 1000, 200)
    assert mean.expected is None
    assert isinstance(mean.expectation, Missing)
    assert "no measured rates" in mean.not_expected
    assert mean.lower > timing.mean_bounds(job, 1, 1000, 200).lower
