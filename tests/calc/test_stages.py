"""Stages of a pipeline that serves: its steps, memory, candidates, and commands that start it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calc
from calc import InputError, Job, Layout, Server, Tokens, machines, models
from calc.planning.choice import groups
from calc.planning.service.load import Trace
from calc.planning.service.queue import Replica
from calc.planning.service.simulation import simulate
from calc.planning.service.step_tables import Steps
from calc.planning.setup import Setup, layout_text
from calc.steps import device_memory
from calc.steps.expectation import serving_pass
from tests.calc.flatly import flatly

MODEL = "llama-3-70b"


def job(machine: str = "dgx-h100", **cut: int) -> Job:
    return Job.of(MODEL, machine, Layout(**cut), software="vllm")


def seconds(made: Any) -> float:
    return float(made.m_as("s"))


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_bounds_are_those_of_one_batch_on_the_devices_of_a_stage(batch: int) -> None:
    """No token skips a stage, and batches that fill the others share the sequences."""
    staged = calc.step(job(tensor=2, pipeline=4), Tokens(writing=batch, context=2000))
    alone = calc.step(job(tensor=2), Tokens(writing=max(1.0, batch / 4), context=2000))
    for part in ("memory", "compute"):
        assert seconds(staged.parts[part]) == pytest.approx(seconds(alone.parts[part]))
    assert staged.parts["links"] > alone.parts["links"]
    assert staged.tokens.magnitude == batch
    assert staged.peak == 4 * alone.peak


def test_a_lonely_token_passes_all_stages_and_a_full_batch_fills_them() -> None:
    one, four = (serving_pass(job(pipeline=n), Tokens(1, 2000)) for n in (1, 4))
    sustained = job().software.sustained
    assert seconds(four.total - four["pipeline"] / sustained) == pytest.approx(seconds(one.total))
    full = serving_pass(job(pipeline=4), Tokens(64.0, 2000))
    assert full["bubble"] < 0.05 * full.total < four["bubble"]
    several = serving_pass(job(pipeline=4), Tokens(np.array([1.0, 64.0]), 2000))
    assert several.total.m_as("s") == pytest.approx([seconds(four.total), seconds(full.total)])


def test_prompts_stream_through_stages_in_pieces() -> None:
    one = serving_pass(job(pipeline=4), Tokens(reading=8192, prompt=8192))
    four = serving_pass(job(pipeline=4), Tokens(reading=4 * 8192, prompt=8192))
    assert seconds(four.total) == pytest.approx(7 / 4 * seconds(one.total), rel=0.01)
    across = serving_pass(job(tensor=8, pipeline=2), Tokens(reading=8192, prompt=8192))
    inside = serving_pass(job(tensor=4, pipeline=2), Tokens(reading=8192, prompt=8192))
    assert across["pipeline"] > 2 * inside["pipeline"]


def test_the_fullest_stage_decides_memory() -> None:
    model = models.get("llama-3-1-405b")  # 126 layers
    held = device_memory.fit(model, "dgx-h100", "vllm", tensor=8, stages=4, context=8192)
    layers = model.parameters - model.parts["embedding"] - model.parts["output"]
    most = (layers * 32 / 126 + model.parts["output"]).m_as("param") * 2 / 8
    assert held.parts[0].memory.m_as("byte") == pytest.approx(most, rel=0.001)
    bare = device_memory.fit(model, "dgx-h100", "none", tensor=8, stages=4, context=8192)
    assert bare.parts[0].memory.m_as("byte") == pytest.approx(most, rel=0.001)


@pytest.mark.parametrize(
    ("machine", "asked", "sentence"),
    [
        ("dgx-h100", {"stages": 81}, "stages must be at most 80, the layers of Llama 3 70B"),
        ("apple-m4-max-1", {"stages": 2}, "the data have no link of Apple M4 Max"),
        ("dgx-h100", {"stages": 3, "devices": 8}, "devices=8 are no whole number for each of"),
        ("mi300x-8", {"stages": 4, "tensor": 4}, "have no port of it to others: take at most 8"),
    ],
)
def test_where_stages_cannot_be(machine: str, asked: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        calc.plan(MODEL, machine, prompt=100, generated=10, **asked)
    assert sentence in str(refused.value)


def test_stages_are_candidates_over_pcie_and_beyond_a_domain() -> None:
    def staged(machine: str) -> set[str]:
        counts: dict[str, Any] = {"prompt": 1000, "generated": 200, "batch": 1}
        setup = Setup.read(MODEL, machines.get(machine), counts, Server())
        return {layout_text(layout) for layout in groups(setup) if layout.pipeline > 1}

    assert staged("dgx-h100") == {"TP8 PP2", "TP8 PP4", "TP8 PP8"}
    assert staged("mi300x-8") == set()
    pairs = {"TP1 PP2", "TP1 PP4", "TP2 PP2", "TP1 PP8", "TP2 PP4", "TP4 PP2"}
    assert staged("l40s-8") == staged("rtx-3090-1") == pairs
    best = calc.plan(
        MODEL, "l40s-8", prompt=1000, generated=200, batch=64, devices=8, by="throughput"
    )
    assert best.stages > 1
    assert "stages (PP)" in " ".join(best.assumptions)


def test_batches_of_several_stages_read_at_the_same_time() -> None:
    """A prompt of two chunks takes one step of two batches, which looks at what one of them has."""
    steps = Steps(np.arange(200.0), np.zeros(9), np.zeros(9), 1e-3)
    lengths = (np.array([count]) for count in (100, 1, 0))
    prompt = Trace(np.zeros(1), *lengths)
    one, two = (simulate(Replica(steps, 10**4, 50, 8, batches=n), prompt).done for n in (1, 2))
    assert two == pytest.approx(one / 2)


@pytest.mark.slow
def test_servers_with_stages_are_started() -> None:
    asked = {"rate": 0.5, "prompt": 1000, "generated": 200, "ttft": "10 s", "tpot": "300 ms"}
    planned = flatly(calc.plan_service, MODEL, "l40s-8", **asked, pools="mixed", requests=100)
    assert planned.design.pools[0].group.pipeline > 1
    options = {"vllm": "--pipeline-parallel-size", "sglang": "--pp-size", "trtllm": "--pp_size"}
    for engine, option in options.items():
        words = planned.deployment(engine).commands[0].split()
        assert int(words[words.index(option) + 1]) == planned.design.pools[0].group.pipeline
    with pytest.raises(InputError, match=r"has no option for stages .* before 0\.4\.7"):
        planned.deployment("sglang 0.4.6")
