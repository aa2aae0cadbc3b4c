"""Training on many devices: published memory tables, bounds, and layouts that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import (
    InputError,
    collectives,
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
from calc.layouts import Layout, Link, memory_per_device, training_step

LLAMA = models.get("llama-3-70b")
LAYOUT = Layout(data=16, tensor=8, pipeline=4, microbatches=32, sharding=1)
NVLINK, NETWORK = Link("450 GB/s", "2 us"), Link("50 GB/s", "10 us")


@pytest.mark.parametrize(("stage", "memory"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_the_example_of_zero(stage: int, memory: float) -> None:
    """7.5 billion parameters on 64 devices [Rajbhandari et al. 2020, figure 1]."""
    layout = Layout(data=64, sharding=stage)
    shards = [64 if layout.shards(part) else 1 for part in layouts.PARTS]
    found = parallelism.state_memory(
        7.5e9, *("2 byte/param", "2 byte/param", "12 byte/param"), *shards
    )
    assert found.m_as("GB") == pytest.approx(memory, abs=0.05)


@pytest.mark.parametrize(
    ("stage", "held"), [(0, 16), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)]
)
def test_states_of_a_model(stage: int, held: float) -> None:
    memory = memory_per_device(LLAMA, Layout(data=8, sharding=stage), 4096)
    states = memory.weights + memory.gradients + memory.optimizer
    assert states.m_as("byte") == pytest.approx(held * LLAMA.parameters.m_as("param"))
    assert memory.total == states + memory.activations


def test_stages_hold_all_of_the_model_and_no_less() -> None:
    """Summed over the stages: the ends hold embedding and output, the rest their layers."""
    parts = {name: each.m_as("param") for name, each in LLAMA.parts.items()}
    inner = sum(parts.values()) - parts["embedding"] - parts["output"]
    found = Layout(pipeline=4).parameters(LLAMA).m_as("param")
    assert found == pytest.approx(inner / 4 + max(parts["embedding"], parts["output"]))
    gemma = models.get("gemma-2-27b")  # its ends hold the same matrix
    tied = {name: each.m_as("param") for name, each in gemma.parts.items()}
    whole = gemma.parameters.m_as("param")
    assert Layout(pipeline=2).parameters(gemma).m_as("param") == pytest.approx(
        (whole - tied["embedding"]) / 2 + tied["embedding"]
    )


def test_the_first_stage_holds_a_microbatch_for_each_stage() -> None:
    """So that stages alone do not save activations [Korthikanti et al. 2023]."""
    whole = quantity("36 GB")
    for stages in (1, 2, 8):
        assert parallelism.activations_in_flight(whole, 1, stages, 8) == whole
    assert parallelism.activations_in_flight(whole, 1, 8, 2) == whole / 4


@pytest.mark.parametrize(("stages", "slices", "microbatches"), [(4, 2, 16), (8, 3, 16), (8, 4, 8)])
def test_an_interleaved_schedule_holds_what_its_first_device_has_begun(
    stages: int, slices: int, microbatches: int
) -> None:
    """Slice by slice, in the order of Megatron's schedule [Narayanan et al. 2021, figure 4]."""
    begun = most = 0
    warm_up = min((stages - 1) * 2 + (slices - 1) * stages, slices * microbatches)
    for number in range(slices * microbatches):
        begun += 1  # a forward pass of a slice, whose activations stay
        most = max(most, begun)
        begun -= number >= warm_up  # and a backward pass that frees one
    held = parallelism.activations_in_flight("1 GB", 1, stages, microbatches, slices)
    assert held.m_as("GB") == pytest.approx(most / (stages * slices))


def test_full_recomputation_adds_a_third() -> None:
    assert parallelism.hfu(0.45, 1).magnitude == pytest.approx(0.6)
    palm = runs.get("palm-540b")  # recomputes in part
    mfu = palm.mfu_with_attention
    assert parallelism.hfu(mfu, 0) < palm.hfu < parallelism.hfu(mfu, 1)


def test_sharded_weights_cost_half_as_much_again() -> None:
    sharded = parallelism.sharded_traffic("14 GB", 8)
    assert (sharded / collectives.all_reduce_traffic("14 GB", 8)).m_as("") == pytest.approx(1.5)


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
    """With communication in each of four microbatches, or without [Zhao et al. 2023, 3.3.4]."""
    layout = Layout(data=8, microbatches=4, sharding=sharding, hold_gradients=hold)
    memory = memory_per_device(LLAMA, layout, 8192)
    parameters = LLAMA.parameters.m_as("param")
    assert memory.gradients.m_as("byte") == pytest.approx(gradient_bytes * parameters)
    sent = step(layout, outer=Link("50 GB/s")).parts["data"] * quantity("50 GB/s")
    assert sent.m_as("byte") == pytest.approx(passes * 7 / 8 * 2 * parameters)


def step(
    layout: Layout = LAYOUT, inner: Link = NVLINK, outer: Link = NETWORK, **more: object
) -> roofline.StepTime:
    given = {"length": 8192, "sequences": 1, "efficiency": 0.7, "device": hardware.H100} | more
    return training_step(LLAMA, layout, inner=inner, outer=outer, **given)  # type: ignore[arg-type]


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


def on_dgx(layout: Layout, key: str = "dgx-h100", **more: object) -> dict[str, float]:
    given = {"length": 8192, "sequences": 1, "efficiency": 0.7} | more
    found = training_step(LLAMA, layout, device=machines.get(key), **given)  # type: ignore[arg-type]
    return {name: part.m_as("s") for name, part in found.parts.items()}


def test_a_step_is_expected_as_a_published_run_was() -> None:
    """Llama 2 70B in NeMo on 16 H100s: 1816 tokens a second of each, as NVIDIA measured."""
    (row,) = (each for each in published.rows("training") if each.id == "nemo-24.07-15")
    assert row["parallelism"] == "TP4 PP4"
    given = {"length": 4096, "sequences": 1, "device": machines.DGX_H100, "software": "megatron"}
    layout = Layout(tensor=4, pipeline=4, microbatches=32, sharding=1)
    found = training_step("llama-2-70b", layout, **given, dtype="fp8")  # type: ignore[arg-type]
    assert found.expected is not None
    each = 32 * 4096 / 16 / found.expected.m_as("s")
    assert each == pytest.approx(row.measured["tokens_per_s_per_gpu"], rel=0.25)
    (comparison,) = published.compare([row])
    assert comparison.prediction is not None
    assert 1 / each == pytest.approx(comparison.prediction.expected)
    assert found.expected_parts.share("bubble").m_as("") == pytest.approx(
        3 / 32 * sum(found.expected_parts.share(kind) for kind in ("gemm", "memory", "attention"))
    )
    several = training_step("llama-2-70b", layout, quantity([512, 4096], ""), 1, given["device"])  # type: ignore[arg-type]
    assert several.expected is None
    alone = training_step("llama-2-70b", layout, 4096, 1, hardware.H100, NVLINK, NETWORK)
    assert "a device alone has no measured rates" in alone.not_expected


def test_a_step_on_a_machine_by_hand() -> None:
    """A server of 8, NVLink with sums in its switch, and a port of 50 GB/s for each device."""
    vectors = 8192 * 8192 * 2
    found = on_dgx(LAYOUT)
    assert found["compute"] == step(LAYOUT).parts["compute"].m_as("s")
    assert found["tensor"] == pytest.approx(20 * 32 * 4 * vectors / 450e9)
    assert found["pipeline"] == pytest.approx(32 * vectors / 8 / 50e9)
    state = 2 * LAYOUT.parameters(LLAMA).m_as("param")
    assert found["data"] == pytest.approx(2 * 15 / 16 * state / 50e9)


def test_all_ports_of_a_server_carry_what_leaves_it() -> None:
    state = 2 * LLAMA.parameters.m_as("param")
    # Shards of 64 devices leave each server once, by eight ports of 50 GB/s.
    shards = on_dgx(Layout(data=64, microbatches=2, sharding=3))
    assert shards["data"] == pytest.approx((4 + 2) * 7 / 8 * state / 400e9)
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
        training_step(LLAMA, Layout(), 8192, 1, machines.get("dgx-h100"), NVLINK, NETWORK)
    with pytest.raises(InputError, match=r"H100 SXM5 80 GB alone has no links: give inner and out"):
        training_step(LLAMA, Layout(), 8192, 1, hardware.H100)


def test_lengths_may_be_an_array() -> None:
    found = step(length=quantity([1024, 8192], ""))
    for row, length in enumerate((1024, 8192)):
        alone = step(length=length)
        assert found.lower[row].magnitude == pytest.approx(alone.lower.magnitude)
        assert found.upper[row].magnitude == pytest.approx(alone.upper.magnitude)
        assert found.bound[row] == alone.bound
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
    ideal = training_step(model, layout, 8192, 1, device, NVLINK, NETWORK)
    assert ideal.tokens.m_as("token") == 128 * 16 * 8192
    assert reported < ideal.mfu[1]
    usual = training_step(model, layout, 8192, 1, device, NVLINK, NETWORK, efficiency=0.7)
    assert usual.mfu[0] < reported


@pytest.mark.parametrize(
    ("layout", "sentence"),
    [
        ({"tensor": 3}, "Llama 3 70B has 64 heads, which 3 slices do not divide"),
        ({"pipeline": 7}, "has 80 layers, which 7 stages do not divide: choose pipeline"),
        ({"data": 0}, "a layout's data must be a whole number from 1; got 0"),
        ({"microbatches": 2.5}, "microbatches must be a whole number from 1; got 2.5"),
        ({"sharding": 4}, "sharding must be a stage from 0 to 3; got 4"),
    ],
)
def test_a_layout_that_cannot_be(layout: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Layout(**layout).parameters(LLAMA)


def test_bad_input() -> None:
    with pytest.raises(
        InputError, match=r"a transformer of calc.models is needed here; got ResNet"
    ):
        Layout().check(models.get("resnet-50"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="reads at most 8192 tokens; got a context of 9000"):
        memory_per_device(LLAMA, Layout(), 9000)
    with pytest.raises(InputError, match=r"length must be at least 1.*got 0"):
        step(length=0)
    with pytest.raises(InputError, match="recomputation must be one of none, selective, full"):
        step(recomputation="some")
    with pytest.raises(InputError, match=r"a device needs 1309 GB and an NVIDIA H100"):
        memory_per_device(LLAMA, Layout(), 8192).check(hardware.H100)
    with pytest.raises(InputError, match=r"here; got 'h100': write hardware\.get\('h100'\)"):
        memory_per_device(LLAMA, Layout(), 8192).check("h100")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"here; got 'h100': write hardware\.get\('h100'\)"):
        step(device="h100")


def test_stages_of_a_pipeline_hold_fewer_and_fewer_activations() -> None:
    first = parallelism.activations_in_flight("36.5 GB", 8, 4, 16)
    held = parallelism.stage_activations("36.5 GB", [1, 2, 3, 4, 5], 4, 16, 8)
    assert held[0] == first
    assert (held / first).magnitude.tolist() == pytest.approx([1, 0.75, 0.5, 0.25, 0])
    few = parallelism.stage_activations("36.5 GB", [1, 2, 3, 4], 4, 2, 8)
    assert (few / first).magnitude.tolist() == pytest.approx([0.5, 0.5, 0.5, 0.25])


V5P = "459 TFLOP/s", "180 GB/s"  # one axis of links, both ways


def test_tokens_that_hide_communication_are_the_published_ones() -> None:
    """2550 tokens a TPU v5p, and 11 and 19 slices [Austin et al. 2025, part 5]."""
    tokens = parallelism.data_parallel_tokens(10**9, *V5P)
    assert tokens.m_as("token") == pytest.approx(2550, abs=1)
    for hidden, slices in ((30_000, 11), (50_000, 19)):
        limit = parallelism.tensor_parallel_limit(2 * 8192 * hidden, 8192, *V5P)
        assert limit.magnitude - 1 == pytest.approx(slices, abs=1)


def test_where_data_parallelism_hides_its_all_reduce() -> None:
    tokens = parallelism.data_parallel_tokens(64, "989 TFLOP/s", "50 GB/s")
    backward = 4 * quantity("1 FLOP/(param·token)") * tokens * quantity("7B param")
    talk = collectives.ring_all_reduce("14 GB", 64, "50 GB/s")
    assert (backward / quantity("989 TFLOP/s")).m_as("s") == pytest.approx(talk.m_as("s"))
    assert parallelism.data_parallel_tokens(1, "989 TFLOP/s", "50 GB/s").magnitude == 0


def test_where_tensor_parallelism_hides_its_all_reduce() -> None:
    parameters = 3 * 8192 * 28672
    slices = parallelism.tensor_parallel_limit(parameters, 8192, "989 TFLOP/s", "450 GB/s")
    vectors = quantity(100 * 8192 * 2, "byte")
    talk = collectives.ring_all_reduce(vectors, slices, "450 GB/s")
    work = quantity(2 * parameters * 100, "FLOP") / slices
    assert (work / quantity("989 TFLOP/s")).m_as("s") == pytest.approx(talk.m_as("s"))


def test_the_memory_of_a_device_is_readable() -> None:
    lines = str(memory_per_device(LLAMA, LAYOUT, 8192)).splitlines()
    assert [line.split()[0] for line in lines] == [
        *("weights", "gradients", "optimizer", "activations", "total")
    ]
    assert "Quantity" not in "".join(lines)


def test_hybrid_sharding_is_a_hierarchical_all_reduce_of_the_gradients() -> None:
    """Of one microbatch: what leaves the server is what the outer ring of the hierarchy sends."""
    outer = collectives.all_reduce_traffic(quantity("14 GB") / 8, 16)
    assert parallelism.hybrid_traffic("14 GB", 8, 16).m_as("GB") == pytest.approx(outer.m_as("GB"))
    assert parallelism.hybrid_traffic("14 GB", 64, 1).magnitude == 0


def test_expert_traffic_counts_each_choice_of_each_token() -> None:
    """Token by token: random experts on 8 devices, those of one's own need no message."""
    rng = np.random.default_rng(0)
    chosen = np.array([rng.permutation(256)[:8] for _ in range(4000)]) // 32
    sent = np.count_nonzero(chosen) * 7168 * (1 + 2)
    found = parallelism.expert_traffic(4000, 7168, 8, 8, "1 byte", "2 byte")
    assert found.m_as("byte") == pytest.approx(sent, rel=0.01)


def test_sharding_beside_tensor_parallelism_against_all_splits() -> None:
    """The messages of a feed-forward network for every split of 2048 devices, summed by hand."""
    tokens, width, inner, devices, rate, link = 2**20, 8192, 32768, 2048, 459e12, 90e9

    def seconds(x: float) -> tuple[float, float]:
        gathered = 2 * 2 * width * inner / (devices / x) / link
        summed = 2 * 2 * tokens * width / x / link
        return gathered, summed

    best = min((max(seconds(x)), x) for x in range(1, devices + 1))[1]
    found = parallelism.fsdp_and_tensor_split(tokens, inner, devices)
    assert found.magnitude == pytest.approx(best, abs=1)
    # At the number of tokens that the law gives, the longer of both takes as long as the products.
    enough = parallelism.fsdp_and_tensor_tokens(f"{rate} FLOP/s", f"{link} byte/s", inner)
    tokens = enough.m_as("token") * devices
    x = parallelism.fsdp_and_tensor_split(tokens, inner, devices).magnitude
    products = 4 * tokens * width * inner / devices / rate
    assert seconds(x) == pytest.approx((products, products))


def test_matrices_cut_along_both_dimensions_against_all_cuts() -> None:
    tokens, width, inner, devices = 512, 8192, 32768, 64
    cuts = [(x, devices // x) for x in range(1, devices + 1) if devices % x == 0]
    sent = min(2 * 2 * tokens * (width / x + inner / y) for x, y in cuts)
    found = parallelism.weight_stationary_2d_traffic(tokens, width, inner, devices)
    assert found.m_as("byte") == pytest.approx(sent)
    one = parallelism.weight_stationary_traffic(tokens, width)
    at_par = parallelism.weight_stationary_2d_traffic(tokens, width, inner, 4 * inner / width)
    assert at_par.m_as("byte") == pytest.approx(one.m_as("byte"))
