"""Plans that are returned are made: whatever prints them formats, and asks for no step again."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

import numpy
import pytest

import calc
from calc import Batch, Job, Layout, Tokens, kernels, throughput
from calc.core.report import Reported
from calc.published.checking import check
from calc.steps import communication, expectation, layouts, measured, products, timing
from tests.calc.flatly import flatly

LENGTHS = {"prompt": 1000, "generated": 200}
ANSWERS: dict[str, Callable[[], Reported]] = {
    "plan": lambda: calc.plan("llama-3-70b", "h100", batch=8, **LENGTHS),
    "explained": lambda: calc.plan("llama-3-70b", "h100", batch=8, **LENGTHS).explained(),
    "sweep": lambda: calc.plan("llama-3-8b", "h100", batch=[1, 8], **LENGTHS),
    "users": lambda: calc.plan("llama-3-8b", "h100", users=4, **LENGTHS),
    "step": lambda: calc.step(Job.of("llama-3-8b", "h100"), Tokens(writing=8, context=1000)),
    "training step": lambda: calc.step(
        Job.of("llama-3-8b", "dgx-h100", Layout(data=8, sharding=1)), Batch(8192)
    ),
    "check": lambda: check("Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users"),
    "throughput": lambda: throughput.of("mobilenet-v2", "h100", batch=8),
    "gemm": lambda: products.gemm(4096, 4096, 4096, calc.machines.get("dgx-h100")),
    "reinforcement": lambda: calc.plan_reinforcement(
        "qwen-3-8b", "dgx-h100", answers=512, average=1000, limit=8000, devices=8
    ),
    "comparison": lambda: calc.compare("llama-3-8b", ["h100", "h200"], **LENGTHS),
}
SLOW: dict[str, Callable[[], Reported]] = {
    "service": lambda: flatly(
        calc.plan_service, "llama-3-8b", "h100", rate=8, ttft="1 s", tpot="50 ms", **LENGTHS
    ),
    "training": lambda: flatly(
        calc.plan_training,
        "llama-3-8b",
        "dgx-h100",
        tokens="1e11",
        sequences=256,
        length=8192,
        devices=64,
    ),
}
EACH = [*ANSWERS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
STEPS = {  # whatever says how long something takes
    timing: (
        "step",
        "bounds",
        "_expected",
        "mean_step",
        "mean_bounds",
        "mean_pass",
        "serving_pass",
    ),
    expectation: ("of_kernels", "serving_pass", "training_step"),
    layouts: ("training_step", "training_bounds", "memory_per_device"),
    kernels: ("step", "training_step"),
    communication: ("time", "least_time"),
}


def printed(made: Reported) -> tuple[str, ...]:
    assert repr(made)
    return str(made), made.html(), made.table()


def whole(made: Reported) -> tuple[str, ...]:
    return made.explain(), made.json()


def without_steps(patch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any, **more: Any) -> NoReturn:
        raise AssertionError("a step is asked for while something is printed")

    for module, names in STEPS.items():
        for name in names:
            patch.setattr(module, name, refused)
    for name in ("timed", "expected", "rates", "surface"):
        patch.setattr(measured.Kernel, name, refused)


@pytest.mark.parametrize("name", EACH)
def test_what_is_returned_prints_without_a_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = (ANSWERS | SLOW)[name]()
    copied = pickle.loads(pickle.dumps(made))
    with monkeypatch.context() as patch:
        without_steps(patch)
        short = printed(made)
        assert whole(copied) == whole(made)
    assert printed(copied) == short == printed((ANSWERS | SLOW)[name]())


def test_what_would_change_a_plan_is_a_question_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = calc.plan("llama-3-70b", "h100", batch=8, **LENGTHS)
    without_steps(monkeypatch)
    printed(made)
    with pytest.raises(AssertionError, match="while something is printed"):
        made.explained()


def test_a_pass_of_batches_some_of_whose_caches_fit_is_that_of_each() -> None:
    """Slices hold copies of caches while they fit, and share them out beyond."""
    job = Job.of("qwen-3-30b-a3b", "dgx-h100", Layout(tensor=8))
    batches = [64, 6400]
    assert [expectation.holds_copies(job, each, 4096) for each in batches] == [True, False]
    together = expectation.serving_pass(job, Tokens(writing=numpy.array(batches), context=4096))
    for at, batch in enumerate(batches):
        alone = expectation.serving_pass(job, Tokens(writing=batch, context=4096))
        assert together.total.m_as("s")[at] == pytest.approx(alone.total.m_as("s"))
