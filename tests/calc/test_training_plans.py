"""Plans of training runs: the search against single layouts, limits, published runs, bad input."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest

import calc
from calc import (
    InputError,
    finetuning,
    layouts,
    machines,
    models,
    plan_training,
    quantity,
    runs,
    training,
    transformer,
)
from calc.planning import TrainingPlan
from calc.planning.training import Task, precedents
from calc.published.layout_rows import published_layouts
from calc.steps.job import Batch, Job, Layout
from calc.steps.timing import step
from tests.calc.command import Command
from tests.calc.flatly import flatly

GPT = models.from_shape(
    12, 1024, 16, context=2048, vocabulary=50304, feed_forward_width=4096, name="a small GPT"
)
DGX = machines.get("dgx-h100")


def small(**more: object) -> TrainingPlan:
    asked = {"tokens": "1e9 token", "sequences": 32, "length": 2048, "devices": 8} | more
    return flatly(plan_training, GPT, DGX, **asked)  # type: ignore[arg-type]


def test_the_search_looks_at_every_layout() -> None:
    """Layouts written out one by one, without thin stages, are expected alone as among all."""
    plan = small(recomputation="none", layout={"stages_per_device": 1}, devices=4, sequences=6)
    room, times = 0.9 * DGX.device.memory_capacity, []
    for tensor, pipeline, context, stage in product((1, 2, 4), (1, 2, 4), (1, 2, 4), range(4)):
        data = 4 // (tensor * pipeline * context)
        if data * tensor * pipeline * context != 4:
            continue
        for sequences in (1, 2, 3, 6):
            if 6 % (data * sequences):
                continue
            layout = Layout(data, tensor, pipeline, 6 // (data * sequences), stage, context=context)
            if not layout.legal(GPT):
                continue
            memory = layouts.memory_per_device(GPT, layout, 2048, sequences, "none")
            if memory.total <= room:
                found_step = step(Job(GPT, DGX, layout), Batch(2048, sequences, "none"))
                assert found_step.expected is not None
                times.append(found_step.expected.m_as("s"))
    [cuts] = plan.cuts
    unshared = cuts.layout.sharers == cuts.layout.copies
    assert sorted(cuts.expected[unshared]) == pytest.approx(sorted(times))
    assert plan.best.time.m_as("s") == pytest.approx(cuts.expected.min())


def test_what_was_not_measured_comes_last() -> None:
    """Sums of TP across domains: none was measured of so many devices."""
    plan = flatly(
        plan_training, "llama-3-405b", DGX, tokens="1T", sequences=2048, length=8192, devices=16384
    )
    missing = [numpy.isnan(cuts.expected) for cuts in plan.cuts]
    assert any(each.any() for each in missing)
    assert all(each.step.expected is not None for each in plan.candidates)
    cuts, index = next(
        (cuts, int(numpy.flatnonzero(each)[0]))
        for cuts, each in zip(plan.cuts, missing, strict=True)
        if each.any()
    )
    assert "was not measured" in cuts.step_of(index).not_expected


@pytest.mark.parametrize("which", ["mlperf-405b-4", "llama3-405b-2", "llm-foundry-7"])
def test_no_published_layout_is_expected_to_be_faster_than_the_best(which: str) -> None:
    """`python -m benchmarks.published_layouts` compares all rows."""
    [published_row] = [each for each in published_layouts() if each.row.id == which]
    plan = flatly(
        plan_training,
        published_row.model,
        published_row.job.machine,
        tokens="1e12 token",
        sequences=published_row.batch,
        length=published_row.microbatch.length,
        devices=published_row.layout.devices,
        dtype=published_row.job.formats.dtype,
        software=published_row.job.software.key or None,
        usable=1.0,
    )
    assert published_row.memory.total <= published_row.job.device.memory_capacity
    assert published_row.step.expected is not None
    assert plan.best.time <= published_row.step.expected * (1 + 1e-9)


def test_the_best_is_the_shortest_of_the_expected() -> None:
    plan = small()
    times = [each.time.m_as("s") for each in plan.candidates]
    assert times == sorted(times)
    assert plan.step.expected is not None
    assert plan.step.lower <= plan.step.upper
    assert plan.duration.m_as("s") == pytest.approx(plan.steps * times[0] / plan.goodput.m_as(""))
    assert plan.memory.total <= 0.9 * DGX.device.memory_capacity
    assert plan.steps == -(-(10**9) // (32 * 2048))
    assert plan.expected_mfu is not None
    assert plan.expected_mfu < plan.mfu.upper


def test_fixed_degrees_are_kept() -> None:
    plan = small(layout={"tensor": 2, "pipeline": 2})
    assert {(each.layout.tensor, each.layout.pipeline) for each in plan.candidates} == {(2, 2)}
    assert plan.fitting < small().fitting


def test_a_deadline_takes_the_fewest_devices() -> None:
    planned = small(devices=None, deadline=1.01 * small().duration)
    assert planned.devices <= 8
    assert small(devices=planned.devices // 2).duration > 1.01 * small().duration
    with pytest.raises(
        InputError, match=r"keeps the deadline of 1 s: the shortest is .* on \d+ dev"
    ):
        small(devices=None, deadline="1 s")


@pytest.mark.slow
def test_a_budget_takes_the_devices_of_the_shortest_run_that_it_pays() -> None:
    paid = small(devices=None, budget="2.3 USD", price="2 USD/hour")
    assert paid.cost is not None
    assert paid.cost <= quantity("2.3 USD")
    more = small(devices=2 * paid.devices, price="2 USD/hour")
    assert more.cost is not None
    assert more.cost > quantity("2.3 USD")
    with pytest.raises(
        InputError, match=r"keeps the budget of 0.01 USD: the cheapest costs .* on 1 "
    ):
        small(devices=None, budget="0.01 USD", price="2 USD/hour")


def test_the_run_of_llama_3() -> None:
    """16 384 GPUs, 54 days of which are published: 38 to 43 % of the peak, TP8 and PP16.

    Grattafiori et al. 2024, table 4: DP128 TP8 PP16 with 16 sequences of 8 192 tokens a copy.
    """
    asked = {"tokens": "15.6e12 token", "sequences": 2048, "length": 8192, "devices": 16384}
    plan = flatly(plan_training, "llama-3-405b", DGX, **asked, software="megatron")  # type: ignore[arg-type]
    published = flatly(
        plan_training,
        "llama-3-405b",
        DGX,
        **asked,  # type: ignore[arg-type]
        software="megatron",
        layout={"tensor": 8, "pipeline": 16, "context": 1},
    )
    assert published.layout.data == 128
    assert plan.best.time <= published.best.time
    run = runs.get("llama-3-1-405b")
    assert published.expected_mfu is not None
    measured = run.mfu_with_attention if "mfu_with_attention" in run.records else run.mfu
    assert published.expected_mfu.m_as("") == pytest.approx(measured.m_as(""), rel=0.25)
    assert published.mfu.upper > measured  # no program beats the bound
    steps = 15.6e12 / 2048 / 8192
    hours = 16384 * steps * published.best.time.m_as("h") / published.goodput.m_as("")
    assert published.device_time.m_as("h") == pytest.approx(hours, rel=1e-4)  # whole steps
    assert 0.75 < hours / run.device_time.m_as("h") < 1  # what stops a run for weeks is beside it
    longer = 30.84e6 / published.device_time.m_as("h")
    sentence = f"took {longer:.2f} times the device hours a token on 16384, at an MFU of 41%."
    assert published.caveats[0].endswith(sentence)


def test_utilisations_and_tokens_of_a_device() -> None:
    plan = small(recomputation="full")
    assert (plan.best.hfu / plan.best.mfu).m_as("") == pytest.approx(4 / 3)
    each = 32 * 2048 / 8 / plan.best.time.m_as("s")
    assert plan.best.throughput.m_as("token/s") == pytest.approx(each)
    work = 3 * transformer.causal_flops(GPT, 2048).m_as("FLOP/token")
    assert plan.best.mfu.m_as("") == pytest.approx(each * work / 989.4e12, rel=1e-3)
    assert "HFU" in str(plan)


def test_rates_have_the_interval_of_the_time_that_they_take() -> None:
    plan = small()
    assert plan.step.interval is not None
    assert plan.step.expected is not None
    ends = plan.interval(plan.best.throughput, rate=True)
    assert ends is not None
    for rate, time in zip(ends, reversed(plan.step.interval), strict=True):
        assert (rate * time / plan.step.tokens * 8).m_as("") == pytest.approx(1)
    units = {"MFU of": " %", "tokens of a device": " token/s"}
    for line, unit in units.items():
        [row] = [row for row in plan.tables[0].rows if row[0].startswith(line)]
        assert " to " in row[3]
        assert row[3].endswith(unit)


def test_the_help_names_the_software_of_all_published_rows() -> None:
    software_keys = {each.job.software.key for each in published_layouts()}
    documented = str(plan_training.__doc__)
    assert not {key for key in software_keys if f'"{key}"' not in documented}


def test_a_schedule_without_a_bubble_is_no_slower() -> None:
    cut = {"tensor": 1, "pipeline": 2, "context": 1}
    times = {}
    for schedule in ("1f1b", "zb-h1", "zb-v"):
        plan = small(schedule=schedule, recomputation="none", layout=cut)
        assert {each.layout.schedule for each in plan.candidates} == {schedule}
        times[schedule] = plan.best.step.parts["compute"].m_as("s")
    assert times["zb-v"] < times["zb-h1"]
    assert "the schedule zb-v" in plan.best.beyond_published


def test_adapters_are_planned_as_they_are_tuned() -> None:
    """The plan on one device has the weights, states and arithmetic of `calc.finetuning`."""
    asked: Any = {"tokens": "1e9 token", "sequences": 1, "length": 4096, "devices": 1}
    for method in ("lora", "qlora"):
        plan = flatly(
            plan_training, "llama-3-8b", DGX, **asked, fine_tune=method, recomputation="full"
        )
        trained, batch = finetuning.Adapters(method), calc.Batch(4096, recomputation="full")
        held = finetuning.memory("llama-3-8b", trained, batch)
        assert plan.memory.weights.m_as("GB") == pytest.approx(held.weights.m_as("GB"))
        assert plan.memory.adapters.m_as("GB") == pytest.approx(held.adapters.m_as("GB"))
        assert plan.memory.gradients.m_as("GB") == pytest.approx(held.gradients.m_as("GB"))
        assert plan.memory.optimizer.m_as("GB") == pytest.approx(held.optimizer.m_as("GB"))
        step = finetuning.step(calc.Job.of("llama-3-8b", DGX, trained=trained), batch)
        assert plan.step.lower.m_as("s") == pytest.approx(step.lower.m_as("s"))
        trained = 12 * finetuning.adapters("llama-3-8b").m_as("param")
        assert plan.checkpoint.m_as("byte") == pytest.approx(trained)
    asked |= {"devices": 8, "sequences": 8, "layout": {"context": 1}}
    whole = flatly(plan_training, "llama-3-8b", DGX, **asked)
    tuned = flatly(plan_training, "llama-3-8b", DGX, **asked, fine_tune="lora")
    held = 14 * models.get("llama-3-8b").parameters.m_as("param")  # 2 of BF16, and 3 of FP32
    assert whole.checkpoint.m_as("byte") == pytest.approx(held)
    assert tuned.step.parts["data"] < 0.01 * whole.step.parts["data"]
    # Weights that are frozen have no gradients: two passes of three, and the adapters' own.
    work = (tuned.step.parts["compute"] / whole.step.parts["compute"]).m_as("")
    assert 2 / 3 < work < 0.72
    assert (tuned.best.time / whole.best.time).m_as("") == pytest.approx(work, rel=0.02)


def test_a_choice_that_nobody_has_published_is_named() -> None:
    """Published runs of Llama 3 70B in FP8 on H100s have TP4, and reach 36 % of the peak."""
    plan = flatly(
        plan_training,
        "llama-3-70b",
        DGX,
        tokens="1e12 token",
        sequences=128,
        length=8192,
        devices=64,  # type: ignore[arg-type]
        dtype="fp8",
        software="megatron",
    )
    assert plan.run.recipe.name == "adam-mixed"
    assert "on 8192 tokens (parts of 4096 at least)" in plan.best.beyond_published
    assert plan.best.beyond_published in plan.caveats
    assert f"{plan.best} (like no published row)" in plan.answer
    assert plan.like_published is not None
    assert not plan.like_published.beyond_published
    assert plan.like_published.time >= plan.best.time
    assert "Of layouts like the published ones the best is" in str(plan)
    alone = flatly(
        plan_training, GPT, "mi300x-8", tokens="1B", sequences=32, length=2048, devices=8
    )
    assert "No published row of dense models on AMD Instinct MI300X" in alone.best.beyond_published
    assert alone.like_published is None


def test_published_layouts_are_like_the_published_ones() -> None:
    for each in published_layouts():
        job, batch = each.job, each.microbatch
        run = Task(
            job,
            each.layout.devices,
            batch.length,
            each.batch,
            (batch.recomputation,),
            training.recipe(job.software.recipe),
            1.0,
            "1f1b",
            {},
        )
        assert not precedents.beyond(run, each.layout), each.row.id


def test_what_is_printed() -> None:
    plan = small()
    text = str(plan)
    assert "memory of the fullest" in text
    assert len(text.splitlines()) <= 20 < len(plan.explain().splitlines())
    assert "a small GPT trained on 8" in repr(plan)
    assert plan._repr_html_().startswith("<")
    assert "legal layouts need more" in plan.why_not_others[0]
    assert all(sentence.endswith(".") for sentence in (*plan.assumptions, *plan.why_not_others))
    rows = plan.rows()
    assert rows[0]["layout"]
    assert rows[0]["expected"] <= rows[-1]["expected"]


def test_other_devices_are_planned_as_they_are_told() -> None:
    asked: dict[str, Any] = {"tokens": "1T", "sequences": 512, "length": 8192}
    degrees = {"tensor": 8, "pipeline": 1, "context": 1, "sharding": 1}
    now, more = (
        flatly(plan_training, "llama-3-70b", "dgx-h100", devices=count, layout=degrees, **asked)
        for count in (1024, 2048)
    )
    sentence = now.what_would_change[0]
    ratio = (more.best.time / now.best.time).m_as("")
    assert (
        sentence
        == f"2048 devices: {ratio:.3g} times the time of a step, {2 * ratio:.3g} the device time."
    )
    assert "512 devices" in now.what_would_change[1]
    often = flatly(plan_training,
        "llama-3-70b", "dgx-h100", devices=1024, layout=degrees, **asked,
        device_time_between_failures=now.device_time_between_failures / 2,
    )  # fmt: skip
    assert f"the goodput {often.goodput.m_as(''):.1%}." in now.what_would_change[2]


def test_what_would_fit_on_the_same_devices_is_said() -> None:
    asked: dict[str, Any] = {"tokens": "1T", "sequences": 64, "length": 8192, "devices": 64}
    fixed = {"tensor": 8, "pipeline": 1, "context": 1}
    with pytest.raises(InputError) as refused:
        flatly(plan_training, "llama-3-70b", DGX, **asked, layout=fixed, recomputation="none")
    offer = re.search(r'take recomputation="selective" \(([\d.]+) GB\), ', str(refused.value))
    assert offer is not None
    fits = flatly(
        plan_training, "llama-3-70b", DGX, **asked, layout=fixed, recomputation="selective"
    )
    least = min(cuts.held.min() for cuts in fits.cuts)
    assert float(offer[1]) * 1e9 == pytest.approx(least, rel=1e-3)
    assert re.search(r"another layout \([\d.]+ GB\), more devices", str(refused.value))


def test_a_layout_that_is_as_fast_has_no_reason_why_it_loses() -> None:
    plan = flatly(
        plan_training,
        "llama-3-8b",
        "b200",
        tokens="1T",
        sequences=64,
        length=8192,
        devices=64,
        dtype="mxfp8",
    )
    for other, reason in zip(plan.candidates[1:4], plan.why_not_others[1:], strict=True):
        near = other.time / plan.best.time < 1.005
        assert reason.endswith("is as fast to half a percent.") == near
    assert any("half a percent" in reason for reason in plan.why_not_others)
    assert "MXFP8 E4M3 at the rates of its elements" in plan.chosen


def test_no_layout_is_found_in_a_sentence() -> None:
    with pytest.raises(
        InputError, match=r"no layout of Llama 3 70B fits on 2 .* needs .* at least"
    ):
        flatly(
            plan_training,
            "llama-3-70b",
            DGX,
            tokens="1e9 token",
            sequences=8,
            length=8192,
            devices=2,
        )
    with pytest.raises(
        InputError, match="no layout cuts a small GPT and 32 sequences for 11 devices"
    ):
        small(devices=11)
    with pytest.raises(InputError, match="with tensor 3"):
        small(layout={"tensor": 3})
    with pytest.raises(InputError, match=r"for 16 devices of .*L4"):
        flatly(plan_training, GPT, "l4", tokens="1e9 token", sequences=32, length=2048, devices=16)


def test_a_run_extends_the_context_where_it_says_so() -> None:
    """Each token of eight times as many as a model was made for attends to more."""
    long = {"tokens": "1e9 token", "sequences": 64, "length": 32768, "devices": 8}
    with pytest.raises(InputError, match=r"reads at most 4096 tokens; .* context=32768"):
        flatly(plan_training, "llama-2-7b", "dgx-a100", **long)
    plan = flatly(plan_training, "llama-2-7b", "dgx-a100", **long, context=32768)
    shorter = flatly(plan_training, "llama-2-7b", "dgx-a100", **long | {"length": 4096})
    assert plan.given["context"] == 32768
    assert plan.time.lower > 1.2 * shorter.time.lower


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"devices": None}, "takes one of devices, deadline and budget"),
        ({"deadline": "1 day"}, "takes one of devices, deadline and budget"),
        ({"devices": None, "budget": "1 USD"}, "a budget needs the price of a device"),
        ({"tokens": "1 GB"}, "tokens must be one positive quantity in token"),
        ({"tokens": float("nan")}, "tokens must be one positive quantity in token"),
        ({"sequences": 1.5}, "sequences must be a whole number from 1; got 1.5"),
        ({"length": 4096}, "reads at most 2048 tokens"),
        ({"length": 100.5}, "length must be a whole number"),
        ({"usable": 2}, "usable is a share of a device's memory"),
        ({"usable": 0}, "usable must be a number above 0"),
        ({"layout": {"slices": 2}}, "layout fixes some of DP, TP, PP"),
        ({"layout": {"tensor": 0}}, "a layout's tensor must be a whole number from 1; got 0"),
        ({"layout": "tensor"}, "layout needs degrees by their names"),
        (
            {"recomputation": "some"},
            "recomputation must be one of none, selective, alternate, full",
        ),
        ({"schedule": "gpipe"}, "schedule must be one of 1f1b, zb-h1, zb-v; got 'gpipe'"),
        ({"fine_tune": "full"}, "the method of adapters must be one of lora, qlora; got 'full'"),
        ({"fine_tune": "lora", "rank": 0}, "the rank of adapters must be a whole number from 1"),
        ({"fine_tune": "lora", "recipe": "adam-8bit"}, "has states of its own; got recipe="),
        ({"recipe": "sgd"}, "no recipe 'sgd'"),
        ({"dtype": "fp3"}, "fp3"),
        ({"price": "2 USD"}, "price must be one positive quantity in USD/s"),
        ({"price": "1e308 USD/hour"}, "price is of one device, at most 100000 USD/hour"),
        ({"software": "photoshop"}, "photoshop"),
        ({"restart_time": "-1 s"}, "restart_time must be one positive quantity"),
    ],
)
def test_bad_input(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        small(**arguments)


def test_the_drawing(tmp_path: Path, command: Command) -> None:
    plan = small()
    axes = plan.draw().axes[0]
    assert [each.get_text() for each in axes.get_yticklabels()] == [
        row["layout"] for row in plan.rows()
    ]
    ends = axes.lines[0].get_xdata()
    assert list(ends) == pytest.approx([each.time.m_as("s") for each in plan.candidates])
    asked = ["plan-training", "llama-3-8b", "dgx-h100", "--tokens", "10B", "--sequences", "64"]
    asked += ["--length", "1024", "--devices", "8", "--layout", "tensor=2,context=1", "--draw"]
    command.prints(*asked, str(tmp_path / "plan.svg"))
    assert "TP2" in (tmp_path / "plan.svg").read_text()
    assert "a drawing needs a name that ends in .svg or .png; got" in command.refuses(
        *asked, str(tmp_path / "plan.gif")
    )


def test_progress_is_told_of_numbers_of_devices() -> None:
    progress: list[tuple[int, int]] = []
    small(
        devices=None,
        deadline="100 day",
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert progress
    assert [done for done, _ in progress] == list(range(len(progress)))
    assert len({total for _, total in progress}) == 1


def test_the_command(command: Command) -> None:
    asked = ["plan-training", "llama-3-8b", "dgx-h100", "--tokens", "10B", "--sequences", "64"]
    asked += ["--length", "1024", "--devices", "8"]
    assert "Why not another layout" in command.prints(*asked, "--explain")
    facts = command.facts(*asked, "--layout", "tensor=2")
    assert facts["rows"][0]["tensor"] == 2
    assert facts["duration"]["unit"] == "day"
    assert command.prints(*asked, "--csv").startswith("layout,data,tensor")
    assert "layout needs degrees by their names" in command.refuses(*asked, "--layout", "tensor")
    assert "--devices must be a whole number from 1; got 'many'" in command.refuses(
        *asked, "--devices", "many"
    )
