"""Serving as it is run: against plain passes, and what services and papers publish."""

from __future__ import annotations

import pytest

from calc import inference, machines, models, published, quantity, queueing, serving
from calc.core.errors import InputError
from calc.laws import caches, speculation
from calc.steps.job import Job, Layout

DGX = machines.get("dgx-h100")
MODEL = models.get("llama-3-70b")
JOB = Job(MODEL, DGX, Layout(tensor=8))


def test_chunks_together_do_the_work_of_a_prompt() -> None:
    chunks = [
        inference.mixed_step(JOB, 0, 1, 512, done).operations.m_as("FLOP")
        for done in range(0, 4096, 512)
    ]
    whole = inference.prefill(MODEL, DGX.device, 4096, 1, 8).operations.m_as("FLOP")
    last = 2 * 8192 * 128256  # the output of the last token, of each chunk and of the prompt
    assert sum(chunks) - 7 * last == pytest.approx(whole, rel=1e-9)


def test_the_largest_chunk_keeps_the_limit_and_one_more_does_not() -> None:
    limit = quantity("50 ms")
    for index, chunk in enumerate(inference.largest_chunk(JOB, limit, 64, 2048)):
        assert chunk > 0
        for more, keeps in ((0, True), (1, False)):
            step = inference.mixed_step(JOB, 64, 2048, chunk + more)
            time = (step.lower, step.expected)[index]
            assert time is not None
            assert (time <= limit) is keeps
    assert inference.largest_chunk(JOB, "1 ms", 64, 2048) == (0, 0)


def test_chunks_read_caches_again() -> None:
    again = sum(range(0, 8192, 512))  # before each chunk: what all earlier ones have left
    assert serving.chunk_rereads(8192, 512).magnitude == again
    assert serving.chunk_rereads(100, 512).magnitude == 0


def test_deepseeks_own_service_has_as_many_nodes_as_its_rates_make() -> None:
    """608e9 tokens in and 168e9 out in a day; a mean of 226.75 nodes of eight GPUs."""
    row = published.row("deepseek-online")
    rates = {name.split("_")[0]: value for name, value in row.measured.items()}
    assert rates == {"input": 73_700, "output": 14_800}
    day = 86_400
    reading, writing = 608e9 / day / rates["input"], 168e9 / day / rates["output"]
    ratio = serving.pool_ratio(608e9, 168e9, "73700 token/s", "14800 token/s").magnitude
    assert ratio == pytest.approx(reading / writing)
    assert writing * (1 + ratio) == pytest.approx(226.75, rel=0.002)


def test_the_cache_of_opt_66b_is_what_distserve_says() -> None:
    """1.13 GB for 512 tokens, 11.3 GB/s at ten requests a second; both in powers of two."""
    each = quantity(64 * 2 * 9216 * 2, "byte/token")
    needed = caches.cache_rate(each, "5120 token/s")
    assert needed.m_as("GiB/s") == pytest.approx(11.3, rel=0.006)


def test_a_tree_of_one_branch_is_a_chain() -> None:
    for acceptance in (0, 0.5, 1):
        chain = speculation.speculative_tokens(acceptance, 4).magnitude
        assert speculation.tree_tokens(acceptance, 1, 4).magnitude == pytest.approx(chain)
    assert speculation.tree_tokens(0.6, 3, 4) > speculation.tree_tokens(0.6, 2, 4)


def test_checking_drafts_does_more_work_and_reads_the_same() -> None:
    """Four tokens of each of 64 sequences: four times the arithmetic, weights and caches once."""
    plain, checked = (inference.mixed_step(JOB, 64, 2048, 0, drafted=ahead) for ahead in (0, 3))
    assert checked.operations.m_as("FLOP") == pytest.approx(4 * plain.operations.m_as("FLOP"))
    assert checked.traffic == plain.traffic
    assert checked.parts["links"].m_as("s") == pytest.approx(4 * plain.parts["links"].m_as("s"))
    assert plain.expected_parts["cache"] == checked.expected_parts["cache"]
    assert plain.throughput.m_as("token/s") >= checked.throughput.m_as("token/s")


def test_checking_drafts_wakes_more_of_a_mixtures_experts() -> None:
    """A token takes 8 of 128 experts: one wakes 8 of them, and 16 tokens wake 1 − (15/16)^16."""
    mixture = models.get("qwen3-30b-a3b")
    one, sixteen = (
        inference.mixed_step(Job(mixture, DGX), 1, 500, 0, drafted=ahead).traffic.m_as("byte")
        for ahead in (0, 15)
    )
    experts = 48 * 3 * 2048 * 768 * 2  # bytes of one in each layer
    woken = 128 * (1 - (15 / 16) ** 16)
    assert sixteen - one == pytest.approx((woken - 8) * experts, rel=1e-6)


def test_nobody_measured_a_larger_gain_of_drafts_than_its_kernels_allow() -> None:
    """EAGLE-3 with 2.79 tokens of a chain of three, and Qwen3 30B-A3B with 2.56 of sixteen."""
    dense, mixture = models.get("llama-3-1-8b"), models.get("qwen3-30b-a3b")
    for model, devices, drafted, tokens, batch, measured in (
        *((dense, 1, 3, 2.79, 2, 1.81), (dense, 1, 3, 2.79, 64, 1.38)),
        *((mixture, 4, 15, 2.542, 1, 185.64 / 218.89), (mixture, 4, 15, 2.56, 32, 927.11 / 1128.3)),
    ):
        job = Job(model, DGX, Layout(tensor=devices))
        plain, check = (
            inference.mixed_step(job, batch, 500, 0, drafted=ahead).expected
            for ahead in (0, drafted)
        )
        gain = speculation.drafting_gain(tokens, plain, check).magnitude
        assert measured < gain < tokens


# Table 4 of Leviathan et al. 2023: drafted, acceptance, cost of a draft, expected and measured.
DRAFTS = [
    *((7, 0.75, 0.02, 3.2), (7, 0.8, 0.04, 3.3), (7, 0.82, 0.11, 2.5), (7, 0.62, 0.02, 2.3)),
    *((5, 0.68, 0.04, 2.4), (3, 0.71, 0.11, 2.0), (5, 0.65, 0.02, 2.4), (5, 0.73, 0.04, 2.6)),
    *((3, 0.74, 0.11, 2.0), (5, 0.53, 0.02, 1.9), (3, 0.55, 0.04, 1.8), (3, 0.56, 0.11, 1.6)),
]


@pytest.mark.parametrize(("drafted", "acceptance", "cost", "theirs"), DRAFTS)
def test_expected_gains_of_drafts_are_those_of_their_authors(
    drafted: int, acceptance: float, cost: float, theirs: float
) -> None:
    speedup = speculation.speculative_speedup(acceptance, drafted, cost).magnitude
    assert speedup == pytest.approx(theirs, abs=0.08)


def test_the_load_within_a_limit_has_the_limit_for_its_tail() -> None:
    busy = queueing.utilization_within("100 ms", "2 s", "1%")
    assert queueing.single_server_tail("100 ms", busy, "1%").m_as("s") == pytest.approx(2)
    assert queueing.utilization_within("1 s", "2 s", "1%").magnitude == 0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="got 0 of both"):
        inference.mixed_step(JOB, 0, 2048, 0)
    with pytest.raises(InputError, match="chunk must be a number"):
        inference.mixed_step(JOB, 8, 2048, -1)
    with pytest.raises(InputError, match="chunk must be a number"):
        inference.mixed_step(JOB, 8, 2048, float("nan"))
