"""Context parallelism: against ring attention's own table, and prefills that were measured."""

from __future__ import annotations

import pytest

from calc import context_parallelism, inference, machines, models
from calc.core.errors import InputError

DGX = machines.get("dgx-h100")
MODEL = models.get("llama-3-405b")

# Table 2 of Liu et al. 2023: TFLOP/s, GB/s, and thousands of tokens.
BLOCKS = [(312, 300, 1.0), (312, 12.5, 24.5), (123, 112, 1.1), (275, 268, 1.0), (196, 186, 1.1)]


@pytest.mark.parametrize(("rate", "bandwidth", "thousands"), BLOCKS)
def test_the_blocks_of_ring_attentions_authors(
    rate: float, bandwidth: float, thousands: float
) -> None:
    block = context_parallelism.ring_block(f"{rate} TFLOP/s", f"{bandwidth} GB/s").magnitude
    assert block / 1000 == pytest.approx(thousands, abs=0.05 if thousands < 10 else 0.5)


def test_a_block_of_that_length_takes_as_long_as_its_message() -> None:
    rate, link, group, width = 648e12, 50e9, 16, 128
    block = context_parallelism.ring_block(f"{rate} FLOP/s", f"{link} byte/s", group).magnitude
    compute = 4 * block**2 * width * group / rate
    send = 2 * block * width * 2 / link
    assert compute == pytest.approx(send)


def test_rings_send_all_keys_and_heads_send_less_the_more_devices() -> None:
    shape = {"kv_heads": 8, "key_width": 128, "value_width": 128}
    rings = [
        context_parallelism.ring_traffic(1 << 17, devices=n, **shape).m_as("byte") for n in (4, 8)
    ]
    heads = [
        context_parallelism.ulysses_traffic(1 << 17, 32, devices=n, **shape).m_as("byte")
        for n in (4, 8)
    ]
    assert rings[1] > rings[0]
    assert heads[1] < heads[0]
    # DeepSpeed counts 4 · N · h / P numbers, of as many heads of keys as of queries.
    traffic = context_parallelism.ulysses_traffic(1 << 20, 32, 32, 128, 128, 64).m_as("byte")
    assert traffic == pytest.approx(4 * (1 << 20) * 32 * 128 / 64 * 2, rel=1 / 60)


# Yang et al. 2024, on H100s with 400 Gbit/s each: tokens, nodes, and seconds. The second is read in
# an account of the paper.
MEASURED = [(1_000_000, 16, 77.0), (131_072, 8, 5.85), (131_072, 16, 3.8)]


@pytest.mark.parametrize(("tokens", "nodes", "seconds"), MEASURED)
def test_prefills_of_a_million_tokens(tokens: int, nodes: int, seconds: float) -> None:
    step = inference.ring_prefill(MODEL, DGX, tokens, nodes, 8)
    assert step.expected is not None
    assert step.lower < step.expected
    assert step.lower.m_as("s") < seconds
    assert 0.6 < step.expected.m_as("s") / seconds < 1


def test_messages_hide_in_long_prompts_and_not_in_short_ones() -> None:
    for tokens, hides in ((1 << 20, True), (4096, False)):
        parts = inference.ring_prefill(MODEL, DGX, tokens, 16, 8).expected_parts
        exposed = parts["ring"] - parts.hidden
        assert (exposed.m_as("s") < 1e-9) is hides


def test_one_device_is_a_plain_prefill() -> None:
    model = models.get("llama-3-8b")
    ring = inference.ring_prefill(model, DGX, 4096, 1)
    plain = inference.prefill(model, DGX.device, 4096)
    assert ring.lower == plain.lower
    assert ring.parts["links"].magnitude == 0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="contexts"):
        inference.ring_prefill(MODEL, DGX, 4096, 0)
    with pytest.raises(InputError, match=r"machine of calc\.machines"):
        inference.ring_prefill(MODEL, "dgx-h100", 4096, 2)  # type: ignore[arg-type]
