"""One step has one time: whoever is asked for it gives the same, at least and as expected.

A decode step is asked of `calc.step`, `inference`, `serving`, `calc.plan`, the tables of a service,
`experts`, a published row and a live figure; a training step of `layouts`, `finetuning`,
`calc.plan_training`, published rows and a live figure. Their formulas are nobody's but `step`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import calc
from calc import (
    InputError,
    Job,
    Layout,
    Tokens,
    finetuning,
    inference,
    layouts,
    machines,
    models,
    plan,
    plan_training,
    published,
)
from calc.catalog import software
from calc.catalog.models import Transformer
from calc.planning.service.step_tables import Answers, Steps
from calc.published.layout_rows import published_layouts
from calc.published.reading import Row
from calc.steps.expectation import Step
from calc.steps.job import Batch
from calc.steps.timing import mean_step
from figures.live import decode_live as live_decode, training_live as live_training
from tests.calc.flatly import flatly
from tests.rows import each_row

MACHINES = ("dgx-h100", "dgx-a100", "dgx-b200", "mi300x-8", "gb200-nvl72")
SEQUENCES, PROMPT, GENERATED = 16, 1000, 48
CONTEXT = PROMPT + GENERATED // 2

Answer = tuple[float, float | None]
"""Seconds at least, and as expected."""


def writers() -> list[Transformer]:
    """The models that write tokens, after a prompt of this length."""
    all_of_them = [models.get(name) for name in models.names()]
    return [
        model
        for model in all_of_them
        if isinstance(model, Transformer)
        and model.output in ("own", "tied")
        and model.context >= PROMPT + GENERATED
    ]


PAIRS = [(model.key, machine) for model in writers() for machine in MACHINES]
FEW = PAIRS[:: len(PAIRS) // 15]


def answer(step: Step) -> Answer:
    return step.lower.m_as("s"), None if step.expected is None else step.expected.m_as("s")


def decodes(name: str, machine: str) -> Iterator[tuple[str, Answer]]:
    """Yield every author's answer on one decode step, on as many devices as a machine joins."""
    model, server = models.transformer(name), machines.get(machine)
    devices = max(count for count in Layout.slices_of(model) if count <= server.domain)
    job = Job(model, server, Layout(tensor=devices))
    load = Tokens(writing=SEQUENCES, context=CONTEXT)
    of_step = answer(calc.step(job, load))
    yield "step", of_step
    yield "inference", answer(inference.decode(model, server, CONTEXT, SEQUENCES, devices))
    yield "mixed step", answer(inference.mixed_step(job, SEQUENCES, CONTEXT, 0))
    lengths: dict[str, Any] = {"prompt": PROMPT, "generated": GENERATED, "batch": SEQUENCES}
    planned = plan(
        model, server, **lengths, devices=devices, weights="bf16", dtype="bf16", software="none"
    )
    if planned.fits and not model.reaches:  # windows that fill on the way bend the mean
        yield "plan", (planned.writing.lower.m_as("s"), of_step[1])
    if planned.fits:
        mean = answer(mean_step(planned.job, SEQUENCES, PROMPT, GENERATED))
        expected = planned.likely("time_per_token")
        said = planned.writing.lower.m_as("s"), expected and expected.m_as("s")
        assert said == pytest.approx(mean, rel=1e-9), "the mean of an answer"
    if (said := _published(model, machine, devices)) is not None:  # by a program that others wrote
        program = answer(calc.step(replace(job, software=software.get("other")), load))
        assert said == pytest.approx((of_step[0], program[1]), rel=1e-9), "a published row"
    tables = Answers(planned.job, (PROMPT, PROMPT + GENERATED), 64, SEQUENCES)
    if isinstance(tables.expected, Steps) and of_step[1] is not None:
        # A table is made at the length of a prompt, from which it grows in proportion.
        at_prompt = answer(calc.step(job, Tokens(writing=SEQUENCES, context=PROMPT)))
        tabulated = tables.expected.time(SEQUENCES, SEQUENCES * PROMPT)
        assert tabulated == pytest.approx(at_prompt[1], rel=1e-9), "tables of a service"


def _published(model: Transformer, machine: str, devices: int) -> Answer | None:
    """The prediction of a row of this step; None where no published row has its words."""
    conditions: dict[str, object] = {
        "device": machines.get(machine).device.name,
        "software": "an engine of ours",
        "model": model.name,
        "num_devices": devices,
        "dtype_weights": "bf16",
        "dtype_kv": "bf16",
        "batch": SEQUENCES,
        "input_len": PROMPT,
        "output_len": GENERATED,
        "parallelism": f"TP{devices}",
    }
    row = Row("serving", "mine", conditions, {"decode_tokens_per_s_per_user": 1.0})
    comparison = published.predict(row)
    if comparison.prediction is None or comparison.machine != machine:
        return None
    return comparison.prediction.lower, comparison.prediction.expected


def check(answers: Iterator[tuple[str, Answer]]) -> None:
    """Assert that all answers agree with the first."""
    (_, first), *others = answers
    assert {
        name: result for name, result in others if result != pytest.approx(first, rel=1e-9)
    } == {}


@pytest.mark.parametrize("pairs", [FEW, pytest.param(PAIRS, marks=pytest.mark.nightly)])
def test_a_decode_step_has_one_author(pairs: list[tuple[str, str]]) -> None:
    with each_row() as row:
        for pair in pairs:
            with row(pair):
                check(decodes(*pair))


def test_there_are_as_many_pairs_as_asked_for() -> None:
    assert len(PAIRS) >= 270


@pytest.mark.parametrize("devices", [8, 72])
def test_experts_on_all_devices_are_a_layout(devices: int) -> None:
    """`inference.expert_decode` is the step of as many copies as devices, as one sees it."""
    server, sizes = machines.get("dgx-h100"), inference.EIGHT_BITS
    job = Job.of("deepseek-v3", server, Layout(data=devices, experts=devices), sizes)
    step = calc.step(job, Tokens(writing=64 * devices, context=2000))
    decoded = inference.expert_decode("deepseek-v3", server, 2000, 64, devices)
    assert answer(decoded) == answer(step)
    assert (decoded.tokens * devices).m_as("token") == step.tokens.m_as("token")


@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_published_training_step_is_that_of_its_layout(every: int) -> None:
    """The prediction of each row, for a token and a device, is the step that a planner takes."""
    with each_row() as row:
        for published_layout in published_layouts()[::every]:
            with row(published_layout.row.id):
                prediction = published.predict(published_layout.row).prediction
                job = published_layout.job
                if prediction is None or job.layout.devices > job.measured_on.most_joined:
                    continue  # no rate was measured, or links are not published
                step = published_layout.step
                tokens = step.tokens.m_as("token") / job.layout.devices
                times = answer(step)
                assert prediction.lower * tokens == pytest.approx(times[0], rel=1e-9)
                if times[1] is None:
                    assert prediction.expected is None
                else:
                    assert prediction.expected == pytest.approx(times[1] / tokens, rel=1e-9)


def test_a_training_step_has_one_author() -> None:
    """Fine-tuning, planner, layout and step agree on one device, in time and in memory."""
    for method in ("full", "lora", "qlora"):
        with each_row() as row:
            for name in ("llama-3-8b", "gemma-2-2b", "qwen-3-4b"):
                model = models.transformer(name)
                trained = calc.steps.job.ALL if method == "full" else finetuning.Adapters(method)
                job = Job.of(model, "dgx-b200", trained=trained)
                batch = Batch(2048, 1, "full")
                times = answer(finetuning.step(job, batch))
                loss = "in place" if method == "full" else "whole"  # adapters: PyTorch's own
                held = finetuning.memory(model, trained, batch, loss=loss)
                planned = flatly(
                    plan_training,
                    model,
                    "dgx-b200",
                    tokens="1B",
                    sequences=1,
                    length=2048,
                    devices=1,
                    recomputation="full",
                    fine_tune=None if method == "full" else method,
                    recipe="adam-mixed" if method == "full" else None,
                )
                with row((name, method)):
                    assert answer(calc.step(job, batch)) == pytest.approx(times, rel=1e-9)
                    assert answer(planned.step) == pytest.approx(times, rel=1e-9)
                    ours, theirs = (each.total.m_as("byte") for each in (held, planned.memory))
                    assert ours == pytest.approx(theirs, rel=1e-9)


def test_live_figures_print_what_the_step_says() -> None:
    decode = live_decode.answer("llama-3-8b", "dgx-h100", 1, 4096, "bf16", "bf16")
    job = Job.of("llama-3-8b", "dgx-h100")
    most = float(decode.facts["Largest batch"])
    step = calc.step(job, Tokens(writing=most, context=4096))
    assert decode.facts["Expected of a token then"] == str(step.expected)
    layout = Layout(data=32, tensor=8, pipeline=4, microbatches=32, sharding=1)
    of_layout = calc.step(Job.of("llama-3-70b", "dgx-h100", layout), Batch(8192))
    answered = live_training.answer(
        "llama-3-70b",
        "dgx-h100",
        1024,
        calc.quantity("15T token"),
        1024,
        8192,
        8,
        4,
        "1",
        1,
        "selective",
    )
    assert answered.facts["Expected of a step"] == str(of_layout.expected)
    held = layouts.memory_per_device("llama-3-70b", layout, 8192)
    assert answered.facts["Memory of a device"].startswith(str(held.total))


def test_what_is_no_job_or_load_is_refused() -> None:
    job = Job.of("llama-3-8b", "dgx-h100")
    with pytest.raises(InputError, match=r"job must be a calc\.Job"):
        calc.step("llama-3-8b", Tokens(writing=1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"load must be calc\.Tokens"):
        calc.step(job, 8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"layout must be calc\.Layout"):
        Job(job.model, job.machine, 8)  # type: ignore[arg-type]
