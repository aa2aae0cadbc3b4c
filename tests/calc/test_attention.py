"""Attention that is not full: against published caches, and against algorithms that are run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calc import attention, inference, models, plan, quantity, transformer

RNG = np.random.default_rng(11)


class Counted:
    """Matrix products whose operations are counted as they are done."""

    def __init__(self) -> None:
        self.operations = 0

    def __call__(self, left: Any, right: Any) -> Any:
        self.operations += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return left @ right


# --- caches ---


def test_caches_of_gemma_3_as_llama_cpp_allocates_them() -> None:
    """Global layers: 10 240 MiB at 131 072 tokens for 27B, and 4 096 at 65 536 for 12B; 442 and
    340 MiB for windows of 1 088 cells; 63 488 MiB for 27B, were there no windows.
    """
    for name, context, full, windows in (
        ("gemma-3-27b", 131072, 10240, 442),
        ("gemma-3-12b", 65536, 4096, 340),
    ):
        size = transformer.kv_cache(models.get(name), context).m_as("MiB")
        assert size == pytest.approx(full + windows * 1024 / 1088)
    every = transformer.kv_cache_per_token(models.get("gemma-3-27b")) * quantity("131072 token")
    assert every.m_as("MiB") == 63488


def test_cache_of_jamba() -> None:
    """4 GB at 256K tokens, and 32 for Mixtral [Lieber et al. 2024]."""
    for name, printed in (("jamba-v0-1", 4), ("mixtral-8x7b", 32)):
        model = models.get(name).with_context(262144)
        held = transformer.kv_cache(model, 262144) - transformer.state_memory(model)
        assert held.m_as("GiB") == printed


def test_latents_and_their_indices() -> None:
    """576 numbers a token and layer; where it selects, 128 in FP8 and a scale in FP32: 132 bytes,
    as FlashInfer's benchmark of the indexer lays them out.
    """
    latents, selected = (models.get(f"deepseek-v3{each}") for each in ("", "-2"))
    kept = transformer.kv_cache_per_token(latents).m_as("byte/token")
    assert kept == 61 * 576 * 2
    assert transformer.kv_cache_per_token(selected).m_as("byte/token") == kept + 61 * 132


def test_a_selection_reads_its_best_and_every_index() -> None:
    model = models.get("deepseek-v3-2")
    for context in (100, 2048, 100_000):
        read = transformer.cache_read(model, context).m_as("byte")
        assert read == pytest.approx(61 * (min(context, 2048) * 1152 + context * 132))
    whole = transformer.kv_cache(model, 100_000)
    assert whole.m_as("byte") == pytest.approx(61 * 100_000 * (1152 + 132))


def test_states_do_not_grow() -> None:
    """Sizes are counted by hand: Qwen3-Next, 36 layers of 32 matrices, 128 × 128 in FP32, and 8 192
    channels that keep three inputs; Nemotron-H 8B, 24 layers of 128 · 64 · 128, 10 240 channels;
    LFM2, which has channels alone.
    """
    for name, matrices, channels, inputs in (
        ("qwen-3-next-80b-a3b", 36 * 32 * 128 * 128, 36 * 8192, 3),
        ("nemotron-h-8b", 24 * 128 * 64 * 128, 24 * (8192 + 2 * 8 * 128), 3),
        ("jamba-v0-1", 28 * 8192 * 16, 28 * 8192, 3),
        ("lfm2-1-2b", 0, 10 * 2048, 2),
    ):
        model = models.get(name)
        expected = 4 * matrices + 2 * inputs * channels
        assert transformer.state_memory(model).m_as("byte") == expected
        caches = transformer.kv_cache(model, [0, 1000, 2000]).m_as("byte")
        assert caches[0] == expected
        assert caches[2] - caches[1] == caches[1] - caches[0]


# --- algorithms ---


@pytest.mark.parametrize("chunk", [4, 16])
def test_a_state_space_in_chunks(chunk: int) -> None:
    """Chunks give what the recurrence gives, in as many operations as the law says."""
    tokens, heads, groups, state, width = 32, 4, 2, 6, 5
    keys, queries = RNG.normal(size=(2, groups, tokens, state))
    values = RNG.normal(size=(heads, tokens, width))
    decay = np.exp(-RNG.random((heads, tokens)))
    product = Counted()
    for group in range(groups):
        chunks = range(0, tokens, chunk)
        scores = [
            product(queries[group, at : at + chunk], keys[group, at : at + chunk].T)
            for at in chunks
        ]
        for head in range(group * heads // groups, (group + 1) * heads // groups):
            one, outputs = np.zeros((state, width)), []
            expected, held = [], np.zeros((state, width))
            for token in range(tokens):
                held = decay[head, token] * held
                held = held + np.outer(keys[group, token], values[head, token])
                expected.append(queries[group, token] @ held)
            for at, score in zip(chunks, scores, strict=True):
                part = slice(at, at + chunk)
                since = np.cumsum(np.log(decay[head, part]))
                mask = np.tril(np.exp(since[:, None] - since[None, :]))
                within = product(score * mask, values[head, part])
                before = product(queries[group, part] * np.exp(since)[:, None], one)
                outputs.append(within + before)
                late = np.exp(since[-1] - since)[:, None] * keys[group, part]
                one = np.exp(since[-1]) * one + product(late.T, values[head, part])
            np.testing.assert_allclose(np.concatenate(outputs), expected)
    law = attention.chunked_state_flops(chunk, 1, heads, groups, state, width)
    assert product.operations == pytest.approx(tokens * law.m_as("FLOP/token"))


def test_the_delta_rule_in_chunks() -> None:
    """The rule corrects what the state holds for a key, token by token or a chunk at a time."""
    tokens, chunk, rows, columns = 32, 8, 6, 5
    keys, queries = RNG.normal(size=(2, tokens, rows))
    keys /= np.linalg.norm(keys, axis=1)[:, None]
    values, rate = RNG.normal(size=(tokens, columns)), RNG.random(tokens)[:, None]
    alone, together = Counted(), Counted()
    state, expected = np.zeros((rows, columns)), []
    for token in range(tokens):
        key, query = keys[token : token + 1], queries[token : token + 1]
        recalled = alone(key, state)
        state = state + alone(key.T, rate[token] * (values[token : token + 1] - recalled))
        expected.append(alone(query, state)[0])
    state, outputs = np.zeros((rows, columns)), []
    for at in range(0, tokens, chunk):
        part = slice(at, at + chunk)
        key, query, written = keys[part], queries[part], rate[part] * keys[part]
        overlap = np.tril(together(written, key.T), -1)
        corrected = np.linalg.inv(np.eye(chunk) + overlap)
        new = together(corrected, rate[part] * values[part])
        seen = together(corrected, written)
        new = new - together(seen, state)
        within = together(np.tril(together(query, key.T)), new)
        outputs.append(together(query, state) + within)
        state = state + together(key.T, new)
    np.testing.assert_allclose(np.concatenate(outputs), expected)
    token_by_token = attention.recurrence_flops(1, 1, rows, columns, products=3)
    assert alone.operations == pytest.approx(tokens * token_by_token.m_as("FLOP/token"))
    law = attention.chunked_delta_flops(chunk, 1, 1, rows, columns)
    assert together.operations == pytest.approx(tokens * law.m_as("FLOP/token"))


@pytest.mark.parametrize(("queries", "context"), [(1, 40), (7, 40)])
def test_absorbed_and_expanded_latents_are_the_same_attention(queries: int, context: int) -> None:
    """Two orders of the same products: one result, and the operations of two laws."""
    heads, latent, rotary, width, wide = 3, 16, 4, 6, 5
    stored = RNG.normal(size=(context, latent))
    positions = RNG.normal(size=(context, rotary))
    up_keys, up_values = (
        RNG.normal(size=(heads, latent, width)),
        RNG.normal(size=(heads, latent, wide)),
    )
    asked = RNG.normal(size=(heads, queries, width))
    turned = RNG.normal(size=(heads, queries, rotary))

    def softmax(scores: Any) -> Any:
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    absorbed, expanded = Counted(), Counted()
    for head in range(heads):
        brought = absorbed(asked[head], up_keys[head].T)
        scores = absorbed(brought, stored.T) + absorbed(turned[head], positions.T)
        mixed = absorbed(softmax(scores), stored)
        one = absorbed(mixed, up_values[head])
        keys, values = expanded(stored, up_keys[head]), expanded(stored, up_values[head])
        scores = expanded(asked[head], keys.T) + expanded(turned[head], positions.T)
        two = expanded(softmax(scores), values)
        np.testing.assert_allclose(one, two)
    sizes = queries, context, heads, latent, rotary, width, wide
    assert absorbed.operations == pytest.approx(attention.absorbed_flops(*sizes).m_as("FLOP"))
    assert expanded.operations == pytest.approx(attention.expanded_flops(*sizes).m_as("FLOP"))


@pytest.mark.parametrize("context", [171, 4096, 100_000])
def test_where_expanding_begins_to_pay(context: int) -> None:
    crossover = attention.latent_crossover(context, 512, 128, 128).magnitude
    for heads in (64, 128):
        sizes = context, heads, 512, 64, 128, 128
        absorbed = attention.absorbed_flops(crossover, *sizes)
        expanded = attention.expanded_flops(crossover, *sizes)
        assert absorbed.m_as("FLOP") == pytest.approx(expanded.m_as("FLOP"))


def test_narrow_latents_are_never_expanded() -> None:
    assert attention.latent_crossover(1e9, 100, 128, 128).magnitude == np.inf


# --- plans ---

HYBRIDS = ["qwen-3-next-80b-a3b", "granite-4-h-small", "nemotron-nano-9b-v2", "jamba-v0-1"]


@pytest.mark.parametrize("name", [*HYBRIDS, "deepseek-v3-2", "gpt-oss-120b"])
def test_a_plan_counts_what_is_kept(name: str) -> None:
    model = models.get(name)
    asked = {"batch": 4, "prompt": 20_000, "generated": 1000, "weights": "int4"}
    made = plan(name, "h200", devices=8, software="none", **asked)  # type: ignore[arg-type]
    held = 4 * transformer.kv_cache(model, 21_000)
    assert (made.cache_memory * 8).m_as("byte") == pytest.approx(held.m_as("byte"))
    memory = 8 * made.device.memory_capacity - made.job.weights.memory
    most = memory // transformer.kv_cache(model, 21_000)
    assert made.largest_batch.magnitude == pytest.approx(most.m_as(""), abs=1)


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_decode_reads_and_writes_states(name: str) -> None:
    model, h200 = models.get(name), plan(name, "h200", prompt=1, generated=1, devices=8).device
    one, two = (inference.decode(model, h200, 1000, batch) for batch in (1000, 2000))
    weights = [inference.weights_read(model, batch) for batch in (1000, 2000)]
    moved = (two.parts["memory"] - one.parts["memory"]) * h200.memory_bandwidth
    per_sequence = (moved - (weights[1] - weights[0])) / 1000
    state = 2 * transformer.state_memory(model)
    cache = transformer.kv_cache_per_token(model) * quantity("1000 token")
    assert per_sequence.m_as("byte") == pytest.approx((cache + state).m_as("byte"))


def test_what_layers_do_is_told() -> None:
    for name, sentence in (
        ("qwen-3-next-80b-a3b", "36 of its 48 layers keep a state in place of tokens, 73.69 MiB"),
        ("deepseek-v3-2", "61 of its 61 layers score all tokens and attend to the best 2048"),
        ("gpt-oss-120b", "18 of its 36 layers look back on 128 tokens and keep no more"),
    ):
        made = plan(name, "h200", devices=8, prompt=100, generated=100)
        assert any(sentence in each for each in made.assumptions), made.assumptions
