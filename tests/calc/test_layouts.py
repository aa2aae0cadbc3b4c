"""Layouts of a training run: what devices hold, how long a step takes, and cuts that cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import (
    InputError,
    hardware,
    layouts,
    machines,
    models,
    parallelism,
    published,
    quantity,
    roofline,
    runs,
)
from calc.catalog.software import software_of
from calc.published.layout_rows import published_layouts
from calc.steps import expectation
from calc.steps.job import Batch, Formats, Job, Layout
from calc.steps.layouts import Link, memory_per_device, training_step

LLAMA = models.get("llama-3-70b")
LAYOUT = Layout(data=16, tensor=8, pipeline=4, microbatches=32, sharding=1)
NVLINK, NETWORK = Link("450 GB/s", "2 us"), Link("50 GB/s", "10 us")


@pytest.mark.parametrize(("stage", "memory"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_example_of_zero(stage: int, memory: float) -> None:
    """7.5 billion parameters on 64 devices [Rajbhandari et al. 2020, figure 1]."""
    layout = Layout(data=64, sharding=stage)
    shards = [64 if layout.shards(part) else 1 for part in layouts.PARTS]
    state = parallelism.state_memory(
        7.5e9, *("2 byte/param", "2 byte/param", "12 byte/param"), *shards
    )
    assert state.m_as("GB") == pytest.approx(memory, abs=0.05)


@pytest.mark.parametrize(
    ("stage", "held"), [(0, 16), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)]
)
def test_states_of_a_model(stage: int, held: float) -> None:
    memory = memory_per_device(LLAMA, Layout(data=8, sharding=stage), 4096)
    states = memory.weights + memory.gradients + memory.optimizer
    assert states.m_as("byte") == pytest.approx(held * LLAMA.parameters.m_as("param"))
    assert memory.total == states + memory.activations + memory.loss


def test_stages_hold_all_of_the_model_and_no_less() -> None:
    """Summed over the stages: the ends hold embedding and output, the rest their layers."""
    parts = {name: each.m_as("param") for name, each in LLAMA.parts.items()}
    inner = sum(parts.values()) - parts["embedding"] - parts["output"]
    held = Layout(pipeline=4).parameters(LLAMA).m_as("param")
    assert held == pytest.approx(inner / 4 + max(parts["embedding"], parts["output"]))
    gemma = models.get("gemma-2-27b")  # its ends hold the same matrix
    tied = {name: each.m_as("param") for name, each in gemma.parts.items()}
    whole = gemma.parameters.m_as("param")
    assert Layout(pipeline=2).parameters(gemma).m_as("param") == pytest.approx(
        (whole - tied["embedding"]) / 2 + tied["embedding"]
    )


@pytest.mark.parametrize(
    ("sharding", "hold", "passes", "gradient_bytes"),
    [
        (1, False, 1 + 1, 2),
        (2, False, 1 + 4, 2 / 8),
        (2, True, 1 + 1, 2),
        (3, False, 8 + 4, 2 / 8),
        (3, True, 8 + 1, 2),
    ],
)
def test_gradients_are_sharded_and_sent_often_or_held_and_sent_once(
    sharding: int, hold: bool, passes: int, gradient_bytes: float
) -> None:
    """Gradients are sent in each of four microbatches, or once [Zhao et al. 2023, 3.3.4]."""
    layout = Layout(data=8, microbatches=4, sharding=sharding, hold_gradients=hold)
    memory = memory_per_device(LLAMA, layout, 8192)
    parameters = LLAMA.parameters.m_as("param")
    assert memory.gradients.m_as("byte") == pytest.approx(gradient_bytes * parameters)
    sent = step(layout, outer=Link("50 GB/s")).parts["data"] * quantity("50 GB/s")
    assert sent.m_as("byte") == pytest.approx(passes * 7 / 8 * 2 * parameters)


def step(
    layout: Layout = LAYOUT, inner: Link = NVLINK, outer: Link = NETWORK, **more: Any
) -> roofline.StepTime:
    return _step(Job(LLAMA, hardware.H100, layout), inner, outer, **more)


def _step(
    job: Job,
    inner: Link | None = None,
    outer: Link | None = None,
    *,
    length: Any = 8192,
    sequences: Any = 1,
    recomputation: str = "selective",
    efficiency: Any = 0.7,
) -> roofline.StepTime:
    batch = Batch(length, sequences, recomputation)
    return training_step(job, batch, efficiency, inner, outer)


def test_one_device_computes_and_nothing_else() -> None:
    alone = step(Layout(), efficiency=1)
    assert alone.lower == alone.upper == alone.parts["compute"]
    assert alone.bound == "compute"
    # Attention is recomputed, so a little less than the peak is progress.
    assert 0.9 < alone.mfu[0].magnitude < 1
    assert step(Layout(), efficiency=1, recomputation="none").mfu[0].magnitude == pytest.approx(1)
    full = step(Layout(), efficiency=1, recomputation="full").mfu[0]
    assert parallelism.hfu(full, 1).magnitude == pytest.approx(1)


@given(
    data=st.integers(1, 512),
    tensor=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.sampled_from([1, 2, 4, 8, 16]),
    microbatches=st.integers(1, 64),
    sharding=st.integers(0, 3),
    faster=st.floats(1, 100),
)
def test_bounds_and_monotony(
    data: int, tensor: int, pipeline: int, microbatches: int, sharding: int, faster: float
) -> None:
    layout = Layout(data, tensor, pipeline, microbatches, sharding)
    slow = step(layout)
    assert slow.lower <= slow.upper <= 4 * slow.lower * (1 + 1e-12)
    assert slow.lower == max(slow.parts.values()) == slow.parts[slow.bound]
    assert slow.mfu[0] <= slow.mfu[1] <= quantity(0.7 * (1 + 1e-12), "")
    fast = step(
        layout,
        Link(quantity(450 * faster, "GB/s"), "2 us"),
        Link(quantity(50 * faster, "GB/s"), "10 us"),
    )
    assert fast.lower <= slow.lower * (1 + 1e-12)
    assert fast.upper <= slow.upper * (1 + 1e-12)


def on_dgx(layout: Layout, key: str = "dgx-h100", **more: Any) -> dict[str, float]:
    timed = _step(Job(LLAMA, machines.get(key), layout), **more)
    return {name: part.m_as("s") for name, part in timed.parts.items()}


def test_a_step_is_expected_as_a_published_run_was() -> None:
    """Llama 2 70B in NeMo on 16 H100s: 1816 tokens a second of each, as NVIDIA measured."""
    row = published.row("nemo-24.07-15")
    assert row["parallelism"] == "TP4 PP4"
    layout = Layout(tensor=4, pipeline=4, microbatches=32, sharding=1)
    job = Job.of("llama-2-70b", "dgx-h100", layout, Formats("fp8"), software_of(row.software))
    timed = training_step(job, Batch(4096))
    assert timed.expected is not None
    each = 32 * 4096 / 16 / timed.expected.m_as("s")
    assert each == pytest.approx(row.measured["tokens_per_s_per_gpu"], rel=0.25)
    (comparison,) = published.compare([row])
    assert comparison.prediction is not None
    assert 1 / each == pytest.approx(comparison.prediction.expected)
    assert timed.expected_parts.share("bubble").m_as("") == pytest.approx(
        3 / 32 * sum(timed.expected_parts.share(kind) for kind in ("gemm", "memory", "attention"))
    )
    several = training_step(job, Batch(quantity([512, 4096], "")))
    assert several.expected is None
    alone = training_step(Job(job.model, hardware.H100, layout), Batch(4096), 1, NVLINK, NETWORK)
    assert "a device alone has no measured rates" in alone.not_expected


def test_a_step_on_a_machine_by_hand() -> None:
    """A server of 8, NVLink with sums in its switch, and a port of 50 GB/s for each device."""
    vectors = 8192 * 8192 * 2
    parts = on_dgx(LAYOUT)
    assert parts["compute"] == step(LAYOUT).parts["compute"].m_as("s")
    assert parts["tensor"] == pytest.approx(20 * 32 * 4 * vectors / 450e9)
    assert parts["pipeline"] == pytest.approx(32 * vectors / 8 / 50e9)
    state = 2 * LAYOUT.parameters(LLAMA).m_as("param")
    assert parts["data"] == pytest.approx(2 * 15 / 16 * state / 50e9)


def test_all_ports_of_a_server_carry_what_leaves_it() -> None:
    state = 2 * LLAMA.parameters.m_as("param")
    # Shards of 64 devices leave each server once, by eight ports of 50 GB/s.
    shards = on_dgx(Layout(data=64, microbatches=2, sharding=3))
    assert shards["data"] == pytest.approx((4 + 2) * 7 / 8 * state / 400e9)
    # With slices inside, each of them by its own port: as many bytes by the same ports.
    sliced = on_dgx(Layout(data=8, tensor=8, microbatches=2, sharding=3))
    assert sliced["data"] == pytest.approx(shards["data"])
    # Two slices leave room for four copies in a server; 64 copies are 16 servers.
    halves = on_dgx(Layout(data=64, tensor=2, sharding=1))
    assert halves["data"] == pytest.approx(2 * 15 / 16 * state / 2 / 200e9)
    # Sixteen slices are two servers, and their sum crosses with an eighth of the array a port.
    vectors = 8192 * 8192 * 2
    assert on_dgx(Layout(tensor=16))["tensor"] == pytest.approx(320 * vectors / 8 / 50e9)
    # A pipeline inside one server passes on over NVLink.
    stages = on_dgx(Layout(pipeline=8, microbatches=4))
    assert stages["pipeline"] == pytest.approx(4 * vectors / 450e9)


def test_on_a_machine_without_sums_slices_make_rings() -> None:
    """Servers of 8 A100s, 300 GB/s each way: what a ring between them takes, without latency."""
    on_machine = on_dgx(Layout(tensor=8), "dgx-a100")
    ring = step(Layout(tensor=8), inner=Link("300 GB/s")).parts["tensor"]
    assert on_machine["tensor"] == pytest.approx(ring.m_as("s"))


def test_lengths_on_a_machine_may_be_an_array() -> None:
    layout = Layout(data=2, tensor=8, pipeline=2)
    both = on_dgx(layout, length=quantity([1024, 8192], ""))
    alone = on_dgx(layout, length=1024)
    assert {name: part[0] for name, part in both.items() if name != "data"} == pytest.approx(
        {name: part for name, part in alone.items() if name != "data"}
    )


def test_a_machine_and_links_are_one_too_many() -> None:
    with pytest.raises(InputError, match="NVIDIA DGX H100 has links of its own: leave inner and"):
        _step(Job(LLAMA, machines.get("dgx-h100")), NVLINK, NETWORK)
    with pytest.raises(InputError, match=r"outer must be a calc\.layouts\.Link; got None"):
        _step(Job(LLAMA, hardware.H100), NVLINK)


def test_a_device_alone_talks_in_no_time() -> None:
    timed = _step(Job(LLAMA, hardware.H100, LAYOUT), efficiency=1)
    assert timed.upper == timed.lower == timed.parts["compute"]


def test_lengths_may_be_an_array() -> None:
    timed = step(length=quantity([1024, 8192], ""))
    for row, length in enumerate((1024, 8192)):
        alone = step(length=length)
        assert timed.lower[row].magnitude == pytest.approx(alone.lower.magnitude)
        assert timed.upper[row].magnitude == pytest.approx(alone.upper.magnitude)
        assert timed.bound[row] == alone.bound
    memory = memory_per_device(LLAMA, Layout(tensor=8), quantity([1024, 8192], ""))
    assert memory.total.shape == (2,)
    with pytest.raises(InputError, match=r"an NVIDIA H100.* has 80"):
        memory.check(hardware.H100)


def test_the_step_of_llama_3_405b_is_within_its_bounds() -> None:
    """16 384 GPUs, TP 8, PP 16, DP 128, 16 million tokens a step: MFU 41 % [Llama team 2024].

    Its 126 layers do not divide by 16; here they are cut into 14. It runs several slices of the
    model on a device, which shortens the bubble, so its matrix products may do with less than here.
    """
    layout = Layout(data=128, tensor=8, pipeline=14, microbatches=16, sharding=2)
    model, device = models.get("llama-3-405b"), hardware.H100
    reported = runs.get("llama-3-1-405b").mfu
    job = Job(model, device, layout)
    ideal = _step(job, NVLINK, NETWORK, efficiency=1)
    assert ideal.tokens.m_as("token") == 128 * 16 * 8192
    assert reported < ideal.mfu[1]
    usual = _step(job, NVLINK, NETWORK)
    assert usual.mfu[0] < reported


@pytest.mark.parametrize(
    ("layout", "sentence"),
    [
        ({"tensor": 3}, "Llama 3 70B has 64 heads, which 3 slices do not divide"),
        ({"pipeline": 78}, "has 80 layers, too few for 78 stages with 1 thin ones each"),
        ({"stages_per_device": 2}, "an interleaved schedule needs several stages"),
        (
            {"pipeline": 4, "stages_per_device": 2, "microbatches": 6},
            "needs microbatches in multiples of its stages; got 6 for pipeline=4",
        ),
        ({"experts": 2}, "Llama 3 70B has no experts, which 2 devices cannot share out"),
        ({"data": 8, "sharing": 3}, "sharing=3 must divide data × context, 8"),
        ({"data": 0}, "a layout's data must be a whole number from 1; got 0"),
        ({"microbatches": 2.5}, "microbatches must be a whole number from 1; got 2.5"),
        (
            {"pipeline": 4, "schedule": "zb-v", "microbatches": 8},
            "the schedule zb-v has its own number of thin stages.*got stages_per_device=1",
        ),
        ({"schedule": "gpipe"}, "a layout's schedule must be one of 1f1b, zb-h1, zb-v"),
        ({"sharding": 4}, "sharding must be a stage from 0 to 3; got 4"),
    ],
)
def test_a_layout_that_cannot_be(layout: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Layout(**layout).parameters(LLAMA)


def test_slices_that_divide_heads_and_not_the_feed_forward_network() -> None:
    model = models.get("granite-4-h-tiny")  # 12 heads, 4 of keys and values, experts of 512 numbers
    assert Layout(tensor=4).legal(model)
    with pytest.raises(InputError, match="12 slices do not divide the expert width of Granite"):
        Layout(tensor=12).parameters(model)


def test_slices_divide_each_of_several_widths_and_not_their_mean() -> None:
    """1 606, the mean of Puzzle's experts, is no multiple of 4, and each of their widths is."""
    puzzle = models.get("nemotron-3-puzzle-75b-a9b")
    assert puzzle.expert_width == 1606
    assert all(Layout(tensor=slices).legal(puzzle) for slices in (2, 4, 8))
    few = replace(puzzle, width_multiple=4)
    with pytest.raises(
        InputError, match=r"8 slices do not divide the expert width of .* of 4: tak"
    ):
        Layout(tensor=8).parameters(few)
    with pytest.raises(InputError, match=r"expert width of .*, 1606: take 1 or 2"):
        Layout(tensor=8).parameters(replace(puzzle, width_multiple=None))
    blocks = models.get("llama-3-3-nemotron-super-49b"), models.get("gemma-4-e2b")
    assert all(Layout(tensor=8).legal(model) for model in blocks)


def test_bad_input() -> None:
    with pytest.raises(
        InputError, match=r"a transformer of calc.models is needed here; got ResNet"
    ):
        Layout().check(models.get("resnet-50"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="reads at most 8192 tokens; got a context of 9000"):
        memory_per_device(LLAMA, Layout(), 9000)
    with pytest.raises(InputError, match=r"length must be at least 1.*got 0"):
        step(length=0)
    with pytest.raises(
        InputError, match="recomputation must be one of none, selective, alternate, full"
    ):
        step(recomputation="some")
    with pytest.raises(InputError, match=r"a device needs 1313 GB and an NVIDIA H100"):
        memory_per_device(LLAMA, Layout(), 8192).check(hardware.H100)
    with pytest.raises(InputError, match="a device needs 1313 GB and an NVIDIA H100"):
        memory_per_device(LLAMA, Layout(), 8192).check("h100")
    with pytest.raises(InputError, match=r"write hardware\.get\('h100'\)"):
        _step(Job(LLAMA, "h100"))  # type: ignore[arg-type]


def test_the_memory_of_a_device_is_readable() -> None:
    lines = str(memory_per_device(LLAMA, LAYOUT, 8192)).splitlines()
    assert [line.split()[0] for line in lines] == [
        *("weights", "gradients", "optimizer", "activations", "peak")
    ]
    assert "Quantity" not in "".join(lines)


@pytest.mark.parametrize("stages", [3, 7, 16, 80])
def test_the_fullest_stage_has_the_layers_that_do_not_divide(stages: int) -> None:
    layout = Layout(pipeline=stages, microbatches=stages)
    layers = -(-80 // stages)
    assert layout.layers_of_a_stage(LLAMA) == layers
    compute = step(layout).parts["compute"] / step(Layout(microbatches=stages)).parts["compute"]
    bubble = 1 + (stages - 1) / stages
    assert compute.m_as("") == pytest.approx(bubble * layers / 80)


def test_thin_stages_shorten_the_bubble_and_hold_more() -> None:
    thick = Layout(pipeline=8, microbatches=16)
    thin = replace(thick, stages_per_device=5)
    assert step(thick).parts["compute"] / step(thin).parts["compute"] == pytest.approx(
        (1 + 7 / 16) / (1 + 7 / 80)
    )
    held = [memory_per_device(LLAMA, each, 8192).activations for each in (thick, thin)]
    assert (held[1] / held[0]).m_as("") == pytest.approx(1 + 7 / (8 * 5))


@pytest.mark.parametrize(
    ("schedule", "thin", "bubble", "sent"),
    [("1f1b", 1, 7 / 32, 1), ("zb-h1", 1, 7 / 96, 1), ("zb-v", 2, 0, 2)],
)
def test_schedules_without_a_bubble(schedule: str, thin: int, bubble: float, sent: int) -> None:
    """The table of their authors, for passes of equal times: 8 stages, 32 microbatches.

    Bubble (p - 1) / m, (p - 1) / 3m and none, activations as of 1F1B, messages of stages once, once
    and twice [description of the space sail/zero-bubble-pipeline-parallellism].
    """
    layout = Layout(
        pipeline=8, microbatches=32, stages_per_device=thin, schedule=schedule, tensor=8
    )
    asked = {"length": 2, "sequences": 4096, "recomputation": "none"}  # next to no attention
    timed, alone = step(layout, **asked), step(Layout(tensor=8, microbatches=32), **asked)
    work = (timed.parts["compute"] / alone.parts["compute"]).m_as("") * 8
    assert work == pytest.approx(1 + bubble, abs=1e-3)
    usual = replace(layout, stages_per_device=1, schedule="1f1b")
    bytes_sent = [step(each, **asked).parts["pipeline"].m_as("s") for each in (layout, usual)]
    latency = 32 * 10e-6
    assert bytes_sent[0] - latency == pytest.approx(sent * (bytes_sent[1] - latency))
    logits = 4 * 8192 * LLAMA.vocabulary / 8  # type: ignore[union-attr]
    memories = [memory_per_device(LLAMA, each, 8192) for each in (layout, usual)]
    held = [memory.activations + memory.loss for memory in memories]
    more = 0 if schedule == "1f1b" else logits
    assert held[0].m_as("byte") == pytest.approx(held[1].m_as("byte") + more)


def test_states_of_megatron() -> None:
    """BF16 parameters and FP32 gradients: 6 + 12 / d bytes [Megatron Core, distributed optimizer].

    Without its distributed optimizer 18.
    """
    parameters = LLAMA.parameters.m_as("param")
    for sharding, copies, size in ((1, 16, 6 + 12 / 16), (0, 16, 18)):
        layout = Layout(data=copies, sharding=sharding)
        held = memory_per_device(LLAMA, layout, 1, recipe="adam-mixed-fp32-gradients")
        states = held.weights + held.gradients + held.optimizer
        assert states.m_as("byte") == pytest.approx(size * parameters)


def test_parts_of_a_sequence_share_its_activations_and_gather_its_keys() -> None:
    whole, parted = Layout(data=8, microbatches=2), Layout(data=2, context=4, microbatches=8)
    held = [memory_per_device(LLAMA, each, 8192).activations for each in (whole, parted)]
    assert (held[0] / held[1]).m_as("") == pytest.approx(4)
    parts = on_dgx(parted)
    cached = 8192 * 2 * 8 * 128 * 2  # bytes of a layer's keys and values
    assert parts["context"] == pytest.approx(80 * 8 * 3 * 3 / 4 * cached / 450e9)
    assert "context" not in on_dgx(whole)


def test_experts_are_shared_out() -> None:
    model = models.get("mixtral-8x7b")
    inside = sum(each.parameters for each in model.matrices if each.name.startswith("expert "))
    outside = model.parameters.m_as("param") - inside
    layout = Layout(data=16, experts=8, sharding=1)
    assert layout.parameters(model).m_as("param") == pytest.approx(outside + inside / 8)
    held = memory_per_device(model, layout, 4096)
    assert held.optimizer.m_as("byte") == pytest.approx(12 * (outside / 16 + inside / 8 / 2))
    timed = training_step(Job.of(model, "dgx-h100", layout), Batch(4096))
    # Two experts a token, two bytes a number; both are on one device with 1 in 8, by chance.
    sent = 4096 * (2 - 1 / 8) * 4096 * 2
    assert timed.parts["experts"].m_as("s") == pytest.approx(32 * 4 * 7 / 8 * sent / 450e9)
    state = 2 * outside * 2 / 8 * 1 / 50e9 / 2 + 2 * inside / 8 * 2 * 1 / 2 / 50e9
    assert timed.parts["data"].m_as("s") >= state


def test_hybrid_sharding_is_between_a_domain_and_all() -> None:
    alone, all_of_them = Layout(data=64, sharding=3), Layout(data=64, sharding=3, sharing=64)
    assert on_dgx(alone) == on_dgx(all_of_them)
    hybrid = Layout(data=64, sharding=3, sharing=8)
    assert memory_per_device(LLAMA, hybrid, 8192).weights == 8 * (
        memory_per_device(LLAMA, alone, 8192).weights
    )
    weights = 2 * LLAMA.parameters.m_as("param")
    inside = 3 * 7 / 8 * weights / 450e9
    across = 2 * 7 / 8 * weights / 8 / 50e9
    assert on_dgx(hybrid)["data"] == pytest.approx(inside + across)


def test_a_microbatch_of_few_tokens_waits_for_its_weights() -> None:
    many, few = (
        on_dgx(Layout(microbatches=count), length=length, efficiency=1)["compute"]
        for count, length in ((1, 8192), (512, 16))
    )
    read = 3 * 2 * LLAMA.multiplied_parameters.m_as("param") / 3.35e12
    assert many > read
    assert few == pytest.approx(512 * read)


def test_many_layouts_at_once_are_each_of_them_by_itself() -> None:
    model = models.get("mixtral-8x7b")
    rows = [
        (16, 2, 4, 8, 1, 1, 1, 1, 16),
        (16, 1, 8, 8, 3, 1, 4, 1, 16),
        (4, 4, 4, 8, 3, 2, 8, 2, 8),
        (32, 1, 1, 2, 0, 2, 2, 1, 64),
        (4, 8, 3, 9, 2, 1, 1, 3, 4),
    ]
    names = "data tensor pipeline microbatches sharding context experts stages_per_device sharing"
    columns = dict(zip(names.split(), np.array(rows).T, strict=True))
    together = Layout(**columns)
    dgx = machines.get("dgx-h100")
    assert together.legal(model).all()
    step_ = training_step(Job(model, dgx, together), Batch(4096))
    memory = memory_per_device(model, together, 4096)
    assert step_.expected is not None
    for index, row in enumerate(rows):
        layout = Layout(**dict(zip(names.split(), row, strict=True)))
        alone = training_step(Job(model, dgx, layout), Batch(4096))
        for name, part in step_.parts.items():
            expected = alone.parts.get(name, quantity(0, "s"))
            assert part.m_as("s")[index] == pytest.approx(expected.m_as("s")), (name, row)
        assert alone.expected_parts is not None
        here = step_.at(index)
        assert here.expected_parts is not None
        assert here.parts.keys() == alone.parts.keys()
        assert here.expected_parts.keys() == alone.expected_parts.keys()
        assert here.expected_parts.total.m_as("s") == pytest.approx(alone.expected.m_as("s")), row
        assert here.expected_parts.origins == alone.expected_parts.origins
        assert here.expected_parts.stands_on == alone.expected_parts.stands_on
        assert memory.total.m_as("byte")[index] == pytest.approx(
            memory_per_device(model, layout, 4096).total.m_as("byte")
        )
    with pytest.raises(InputError, match="heads"):
        Layout(tensor=np.array([1, 7])).check(model)


def test_published_layouts_are_legal() -> None:
    """Published models can be cut like this, with their batches; most are said to fit."""
    of_rows = published_layouts()
    assert len(of_rows) > 350
    assert not [each.row.id for each in of_rows if not each.layout.legal(each.model)]
    rejected = {
        each.row.id for each in of_rows if each.memory.total > each.job.device.memory_capacity
    }
    assert rejected == {
        "mbridge-26.08-17",  # its recipe shares weights out, which its row does not say
        "mbridge-26.02.01",  # the recipes of that release have stages and smaller microbatches
        "mbridge-26.02.01-3",
        "deepseek-v3-rate",  # which computes norms and projections of latents again
    }


def test_published_peaks_of_memory() -> None:
    """Allocators reserve more than what is held at once, and not much less."""
    profiled = [each for each in published_layouts() if each.measured_memory is not None]
    assert len(profiled) > 12
    for each in profiled:
        share = (each.memory.total / each.measured_memory).m_as("")
        assert 0.6 < share < 1.2, each.row.id


def test_what_a_program_keeps_is_read_of_it_or_of_the_row() -> None:
    """torchtitan: every other product, PyTorch's loss, whole gradients beside a pipeline."""
    stated = {each.row.id: each for each in published_layouts()}
    assert stated["torchtitan-t1"].microbatch.recomputation == "alternate"
    assert stated["torchtitan-t2"].microbatch.recomputation == "full"
    tokens, vocabulary = 2 * 8192, 128256
    of_loss = stated["torchtitan-t1"].memory.loss.m_as("byte")
    assert of_loss == tokens * vocabulary * (2 + 4 + 4)
    staged = stated["torchtitan-t5"]
    whole = staged.layout.parameters(staged.model).m_as("param")
    assert staged.memory.gradients.m_as("byte") == pytest.approx(4 * whole)
    states = stated["nemo-24.07-15"].memory.optimizer
    parameters = stated["nemo-24.07-15"].layout.parameters(stated["nemo-24.07-15"].model)
    assert (states / parameters).m_as("byte/param") == pytest.approx(2 + 4 + 4)


def test_experts_are_shared_out_to_slices_too() -> None:
    """Megatron's Qwen3 235B on H100s: TP2 and PP8 leave 16 copies, and EP is 32."""
    [published_row] = [each for each in published_layouts() if each.row.id == "mbridge-26.04.01-33"]
    layout, model = published_row.layout, published_row.model
    assert (layout.copies, layout.experts) == (16, 32)
    inside = model.expert_parameters.m_as("param") * layout.layers_of_a_stage(model)
    share = layout.expert_parameters(model).m_as("param")
    assert share == pytest.approx(inside / model.layers / 32)
    with pytest.raises(InputError, match="or be a multiple of it that divides all"):
        Layout(data=2, tensor=2, experts=8).check(models.get("mixtral-8x7b"))


@pytest.mark.parametrize(("stage", "more"), [(1, 1), (3, 16)])
def test_what_copies_send_once_a_step_passes_behind_one_microbatch(stage: int, more: int) -> None:
    """Weights are gathered before the first forward pass ends, gradients whole in the last."""

    def hidden(microbatches: int) -> float:
        layout = Layout(data=128, microbatches=microbatches, sharding=stage)
        job = Job.of("llama-3-8b", "dgx-h100", layout)
        parts = expectation.training_step(job, Batch(1024), bubble=0)
        return float(parts.hidden.m_as("s"))

    assert hidden(1) > 0
    assert hidden(16) == pytest.approx(more * hidden(1))
