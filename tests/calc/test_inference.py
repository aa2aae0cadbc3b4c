"""Serving: no pass exceeds a roof, limits of batch and length, published speculation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import InputError, hardware, inference, machines, models, quantity, roofline, transformer
from calc.laws import attention, speculation

H100 = hardware.H100
LLAMA = models.get("llama-3-8b")
MODELS = [models.get(name) for name in ("llama-3-8b", "mixtral-8x7b", "deepseek-v3", "gemma-2-27b")]
some_model = st.sampled_from(MODELS)
TOLERANCE = 1 + 1e-9


def test_decode_by_hand() -> None:
    """Llama 3 8B: 7.505 billion parameters in matrices, 128 KiB of keys and values a token."""
    step = inference.decode(LLAMA, H100, 4096, 32)
    matrices = 8030261248 - 128256 * 4096 - 65 * 4096
    assert step.traffic.m_as("byte") == 2 * matrices + 32 * 4096 * 131072
    attention = 2 * 4096 * 32 * 32 * 256
    assert step.operations.m_as("FLOP") == pytest.approx(32 * (2 * matrices + attention))
    assert step.bound == "memory"
    assert step.lower.m_as("s") == pytest.approx(step.traffic.m_as("byte") / 3.35e12)


def test_prefill_by_hand() -> None:
    step = inference.prefill(LLAMA, H100, 1000, 2)
    layers = 8030261248 - 2 * 128256 * 4096 - 65 * 4096
    attention = 2 * 500.5 * 32 * 32 * 256
    expected = 2000 * (2 * layers + attention) + 2 * 2 * 128256 * 4096
    assert step.operations.m_as("FLOP") == pytest.approx(expected)
    assert step.bound == "compute"


def test_devices_of_a_machine_add_up_their_results() -> None:
    """Twice in each of 32 layers a vector of 4096 numbers a token, of two bytes, on a DGX H100.

    Its switch adds up, so that each of 8 devices sends and receives the vectors once at 450 GB/s;
    two such machines pass an eighth of them on by rings of two at 50 GB/s, which takes longer.
    """
    dgx = machines.get("dgx-h100")
    alone = inference.decode(LLAMA, H100, 4096, 32, 8)
    step = inference.decode(LLAMA, dgx, 4096, 32, 8)
    vectors = 32 * 4096 * 2
    assert step.parts["links"].m_as("s") == pytest.approx(64 * vectors / 450e9)
    assert step.parts["memory"] == alone.parts["memory"]
    assert step.upper.m_as("s") == pytest.approx(
        alone.upper.m_as("s") + step.parts["links"].m_as("s")
    )
    counts = quantity([1, 8, 16], "")
    several = inference.decode(LLAMA, dgx, 4096, 32, counts).parts["links"].m_as("s")
    assert several == pytest.approx([0, 64 * vectors / 450e9, 64 * vectors / 8 / 50e9])
    read = inference.prefill(LLAMA, dgx, 1000, 2, 8).parts["links"].m_as("s")
    assert read == pytest.approx(64 * 2000 * 4096 * 2 / 450e9)
    assert {"gemm", "tensor"} < set(step.expected_parts)
    assert alone.expected is None
    assert "a device alone has no measured rates" in alone.not_expected
    kin = inference.decode(LLAMA, machines.of(hardware.L4), 4096)
    assert kin.expected is not None
    assert kin.expected > kin.lower  # by the usual share of its peaks
    assert "made of one point" in inference.decode(LLAMA, dgx, 4096, 1, counts).not_expected
    batch = inference.largest_batch(LLAMA, dgx, 8192, 8)
    assert batch == inference.largest_batch(LLAMA, H100, 8192, 8)
    with pytest.raises(InputError, match="9 devices do not fill 2 domains of NVIDIA DGX H100"):
        inference.decode(LLAMA, dgx, 4096, 32, 9)
    with pytest.raises(InputError, match="no link of NVIDIA Jetson AGX Orin"):
        inference.decode(LLAMA, machines.of("jetson-agx-orin"), 4096, 1, 2, dtype="fp16")


def test_an_encoder_reads_and_does_not_write() -> None:
    bert = models.get("bert-large")
    step = inference.prefill(bert, H100, 512)
    each = transformer.forward_flops(bert, attention.causal_context(512))
    assert (step.operations / each).m_as("token") == pytest.approx(512)
    with pytest.raises(InputError, match="writes no tokens"):
        inference.decode(bert, H100, 512)


@given(some_model, st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 64))
def test_no_pass_exceeds_a_roof(model: object, context: int, batch: int, devices: int) -> None:
    for run in (inference.decode, inference.prefill):
        step = run(model, H100, context, batch, devices)  # type: ignore[operator]
        assert step.rate <= H100.peak("bf16") * devices * TOLERANCE
        assert step.traffic / step.lower <= H100.memory_bandwidth * devices * TOLERANCE
        assert step.lower <= step.upper <= 2 * step.lower * TOLERANCE
        assert step.lower in (
            (step.operations / (H100.peak("bf16") * devices)).to("s"),
            (step.traffic / (H100.memory_bandwidth * devices)).to("s"),
        )


@given(some_model, st.integers(1, 4096), st.integers(1, 512), st.integers(1, 100))
def test_more_of_a_machine_is_never_slower(
    model: object, context: int, batch: int, more: int
) -> None:
    slow = inference.decode(model, H100, context, batch)  # type: ignore[arg-type]
    for peak, bandwidth in ((more, 1), (1, more), (more, more)):
        work = roofline.Workload(slow.operations, slow.traffic)
        fast = work.between(slow.peak * peak, H100.memory_bandwidth * bandwidth)
        assert fast.lower <= slow.lower * TOLERANCE
        assert fast.upper <= slow.upper * TOLERANCE
    both = inference.decode(model, H100, context, batch, devices=more)  # type: ignore[arg-type]
    assert both.lower.m_as("s") * more == pytest.approx(slow.lower.m_as("s"))


@given(some_model, st.integers(1, 4095), st.integers(1, 512))
def test_more_to_do_is_never_faster(model: object, context: int, batch: int) -> None:
    here = inference.decode(model, H100, context, batch)  # type: ignore[arg-type]
    longer = inference.decode(model, H100, context + 1, batch)  # type: ignore[arg-type]
    larger = inference.decode(model, H100, context, batch + 1)  # type: ignore[arg-type]
    assert here.lower <= longer.lower * TOLERANCE
    assert here.lower <= larger.lower * TOLERANCE
    assert here.throughput <= larger.throughput * TOLERANCE


def test_long_contexts_never_reach_the_compute_roof() -> None:
    """Four query heads share a key, so attention does four operations a byte at any batch."""
    step = inference.decode(LLAMA, H100, 8192, 1e6)
    assert step.bound == "memory"
    intensity = (step.operations / step.traffic).m_as("FLOP/byte")
    per_token = 2 * (8030261248 - 128256 * 4096 - 65 * 4096) + 2 * 8192 * 32 * 32 * 256
    assert intensity == pytest.approx(per_token / (8192 * 131072), rel=1e-3)


def test_smaller_weights_and_caches() -> None:
    whole = inference.decode(LLAMA, H100, 4096, 32)
    half = inference.decode(LLAMA, H100, 4096, 32, weight_size="1 byte", kv_size="8 bit")
    assert half.traffic == whole.traffic / 2
    assert half.operations == whole.operations
    assert inference.weight_memory(LLAMA, "0.5 byte").m_as("GB") == pytest.approx(8.030261248 / 2)


def test_a_mixture_reads_the_experts_that_are_asked_for() -> None:
    mixtral = models.get("mixtral-8x7b")
    one, many = (inference.weights_read(mixtral, tokens).m_as("GB") for tokens in (1, 1e6))
    outside = 2 * 32000 * 4096 / 1e9  # the embedding is looked up
    assert one == pytest.approx(
        2 * mixtral.active_parameters.m_as("param") / 1e9 - outside, rel=1e-3
    )
    assert many == pytest.approx(2 * mixtral.parameters.m_as("param") / 1e9 - outside, rel=1e-3)


def test_arrays_in_one_call() -> None:
    contexts = quantity(np.array([[128.0], [1024], [8192]]), "")
    batches = quantity(np.array([1.0, 8, 64, 512]), "")
    step = inference.decode(LLAMA, H100, contexts, batches)
    assert step.lower.shape == step.throughput.shape == step.bound.shape == (3, 4)
    for row, context in enumerate((128, 1024, 8192)):
        for column, batch in enumerate((1, 8, 64, 512)):
            alone = inference.decode(LLAMA, H100, context, batch)
            assert step.lower[row, column].m_as("s") == pytest.approx(alone.lower.m_as("s"))
            assert step.bound[row, column] == alone.bound
    read = inference.prefill(LLAMA, H100, contexts, batches)
    assert read.lower[2, 3].m_as("s") == pytest.approx(
        inference.prefill(LLAMA, H100, 8192, 512).lower.m_as("s")
    )


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    most = inference.largest_batch(LLAMA, H100, 8192).magnitude
    used = inference.weight_memory(LLAMA) + most * 8192 * quantity("128 KiB")
    assert used <= H100.memory_capacity < used + 8192 * quantity("128 KiB")
    frontier = inference.frontier(LLAMA, H100, 8192)
    assert frontier.tokens.magnitude[-1] == most
    assert np.all(np.diff(frontier.lower.magnitude) > 0)
    assert np.all(np.diff(frontier.throughput.magnitude) > 0)
    several = inference.largest_batch(LLAMA, H100, quantity([1024, 8192], ""))
    assert several[1].magnitude == most


# Acceptance, drafted tokens, operations and speed [Leviathan et al. 2023, table 1]. The rows of 5
# and 10 tokens stand in an account of the paper, the others follow from its theorems 3.8 and 3.11.
LEVIATHAN = [
    (0.6, 2, 1.53, 1.96),
    (0.7, 3, 1.58, 2.53),
    (0.8, 2, 1.23, 2.44),
    (0.8, 5, 1.63, 3.69),
    (0.9, 2, 1.11, 2.71),
    (0.9, 10, 1.60, 6.86),
]


@pytest.mark.parametrize(("acceptance", "drafted", "operations", "speed"), LEVIATHAN)
def test_published_speculation(
    acceptance: float, drafted: int, operations: float, speed: float
) -> None:
    speedup = speculation.speculative_speedup(acceptance, drafted).magnitude
    assert speedup == pytest.approx(speed, abs=0.005)
    cost = speculation.speculative_operations(acceptance, drafted).magnitude
    assert cost == pytest.approx(operations, abs=0.005)


@given(st.floats(0, 1), st.integers(0, 50))
def test_speculation_against_a_plain_sum(acceptance: float, drafted: int) -> None:
    expected = sum(acceptance**each for each in range(drafted + 1))
    tokens = speculation.speculative_tokens(acceptance, drafted).magnitude
    assert tokens == pytest.approx(expected, rel=1e-6)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="Llama 3 8B reads at most 8192 tokens; got a context of"):
        inference.decode(LLAMA, H100, 9000)
    with pytest.raises(InputError, match=r"length must be a number from 1; got 0"):
        inference.prefill(LLAMA, H100, 0)
    with pytest.raises(InputError, match=r"sequences must be a number from 1; got 0"):
        inference.decode(LLAMA, H100, 100, 0)
    for wrong in (0, [4, 0], "2 s", float("nan")):
        for run in (inference.decode, inference.prefill, inference.largest_batch):
            with pytest.raises(InputError, match=r"^devices must be a number from 1; got"):
                run(LLAMA, H100, 100, devices=wrong)  # type: ignore[operator]
    large = models.get("llama-3-405b")
    with pytest.raises(
        InputError, match=r"405B takes 81\d.* of weights, and 1 .*take more devices"
    ):
        inference.largest_batch(large, H100, 8192)
    assert inference.largest_batch(large, H100, 8192, devices=16).magnitude > 0
    with pytest.raises(
        InputError, match=r"^kv_size: there is no format 'nine bits'; there are fp64"
    ):
        inference.largest_batch(LLAMA, H100, 10, kv_size="nine bits")
    with pytest.raises(InputError, match="weight_size must be the size of an element"):
        inference.decode(LLAMA, H100, 100, weight_size="2 s")
    with pytest.raises(InputError, match="there is no format 'fp3'"):
        inference.decode(LLAMA, H100, 100, dtype="fp3")


def test_an_element_by_the_name_of_its_format() -> None:
    by_name = inference.largest_batch(LLAMA, H100, 8192, weight_size="INT8", kv_size="INT4")
    # 80 GiB less the weights, over 8192 tokens of 32 KiB.
    weights = inference.weight_memory(LLAMA, "INT8").m_as("byte")
    assert by_name.magnitude == (80 * 2**30 - weights) // (8192 * 32 * 2**10)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, device: inference.decode(model, device, 100),
        lambda model, device: inference.prefill(model, device, 100),
        lambda model, device: inference.largest_batch(model, device, 100),
        lambda model, device: inference.frontier(model, device, 100),
    ],
)
def test_a_model_is_taken_by_name_and_a_device_is_not(ask: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(InputError, match=r"here; got 'l40s': write hardware\.get\('l40s'\)$"):
        ask(LLAMA, "l40s")
    assert str(ask("llama-3-8b", H100)) == str(ask(LLAMA, H100))
    with pytest.raises(InputError, match=r"there is no model 'llama-9'; did you mean llama-"):
        ask("llama-9", H100)
    with pytest.raises(InputError, match=r"a device of calc.hardware is needed here; got 3$"):
        ask(LLAMA, 3)
