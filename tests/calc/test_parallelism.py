"""Training on many devices: published memory tables, and the laws of messages."""

from __future__ import annotations

import numpy as np
import pytest

from calc import collectives, models, parallelism, quantity, runs

LLAMA = models.get("llama-3-70b")


def test_the_first_stage_holds_a_microbatch_for_each_stage() -> None:
    """Stages alone save no activations [Korthikanti et al. 2023]."""
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


def test_hybrid_sharding_is_a_hierarchical_all_reduce_of_the_gradients() -> None:
    """The outer ring of the hierarchy sends what leaves the server, of one microbatch."""
    outer = collectives.all_reduce_traffic(quantity("14 GB") / 8, 16)
    assert parallelism.hybrid_traffic("14 GB", 8, 16).m_as("GB") == pytest.approx(outer.m_as("GB"))
    assert parallelism.hybrid_traffic("14 GB", 64, 1).magnitude == 0


def test_expert_traffic_counts_each_choice_of_each_token() -> None:
    """Token by token: random experts on 8 devices, those of one's own need no message."""
    rng = np.random.default_rng(0)
    chosen = np.array([rng.permutation(256)[:8] for _ in range(4000)]) // 32
    sent = np.count_nonzero(chosen) * 7168 * (1 + 2)
    traffic = parallelism.expert_traffic(4000, 7168, 8, 8, "1 byte", "2 byte")
    assert traffic.m_as("byte") == pytest.approx(sent, rel=0.01)


def test_sharding_beside_tensor_parallelism_against_all_splits() -> None:
    """The messages of a feed-forward network for every split of 2048 devices, summed by hand."""
    tokens, width, inner, devices, rate, link = 2**20, 8192, 32768, 2048, 459e12, 90e9

    def seconds(x: float) -> tuple[float, float]:
        gathered = 2 * 2 * width * inner / (devices / x) / link
        summed = 2 * 2 * tokens * width / x / link
        return gathered, summed

    best = min((max(seconds(x)), x) for x in range(1, devices + 1))[1]
    split = parallelism.fsdp_and_tensor_split(tokens, inner, devices)
    assert split.magnitude == pytest.approx(best, abs=1)
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
    traffic = parallelism.weight_stationary_2d_traffic(tokens, width, inner, devices)
    assert traffic.m_as("byte") == pytest.approx(sent)
    one = parallelism.weight_stationary_traffic(tokens, width)
    at_par = parallelism.weight_stationary_2d_traffic(tokens, width, inner, 4 * inner / width)
    assert at_par.m_as("byte") == pytest.approx(one.m_as("byte"))
