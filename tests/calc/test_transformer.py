"""Transformer arithmetic against published equations and counts, and what holds of any model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import InputError, attention, models, quantity, runs, training, transformer
from calc.laws import caches, experts, layers
from tests.rows import for_each

TRANSFORMERS = [
    each for each in map(models.get, models.names()) if isinstance(each, models.Transformer)
]
WRITERS = [model for model in TRANSFORMERS if model.output in ("own", "tied")]
FULL = [model for model in TRANSFORMERS if model.layers_with("window") != model.layers]
every_transformer = for_each(TRANSFORMERS)
every_writer = for_each(WRITERS)
GPT3 = models.get("gpt-3-175b")
LLAMA = models.get("llama-3-8b")


def gpt(layers: int, width: int, heads: int, vocabulary: int, context: int) -> models.Transformer:
    """A model of GPT's layers, as the papers of Megatron count them."""
    numbers = {
        "layers": layers,
        "width": width,
        "heads": heads,
        "kv_heads": heads,
        "head_width": width // heads,
        "feed_forward_width": 4 * width,
        "vocabulary": vocabulary,
        "context": context,
    }
    return replace(GPT3, **{name: quantity(number, "1") for name, number in numbers.items()})


# --- operations ---


@pytest.mark.parametrize(("layers", "width", "heads"), [(96, 12288, 96), (105, 20480, 128)])
def test_operations_of_a_step(layers: int, width: int, heads: int) -> None:
    """Korthikanti et al. (2023), appendix A: 72 B l s h² (1 + s / 6h + V / 12 l h) in a step."""
    length, vocabulary = 2048, 51200
    model = gpt(layers, width, heads, vocabulary, length)
    step = transformer.forward_flops(model, length) + transformer.backward_flops(model, length)
    terms = 1 + length / (6 * width) + vocabulary / (12 * layers * width)
    assert step.m_as("FLOP/token") == pytest.approx(72 * layers * width**2 * terms, rel=1e-12)


def test_attention_of_palm() -> None:
    """PaLM 540B: 6 P + 12 l h d n operations of training make 46.2 % of 45.7 % without the second
    term, for 118 layers of 48 heads, 256 wide, at 2 048 tokens [Chowdhery et al. 2023].
    """
    palm = runs.get("palm-540b")
    scores = 3 * attention.attention_flops(2048, 118, 48, 256, 256)
    projections = 3 * layers.projection_flops(palm.parameters)
    ratio = (scores + projections) / projections
    assert (palm.mfu * ratio).m_as("%") == pytest.approx(46.2, abs=0.05)


def test_training_of_a_mixture_of_experts() -> None:
    """Zhao et al. (2025), table 2, at 4 096 tokens: 250 GFLOP a token to train DeepSeek-V3,
    and 2 448 for Llama 3.1 405B, which is a percent less than ours. (Their 394 for a Qwen of 72
    billion is less than six operations for each parameter of its matrices, 429.)
    """
    half = attention.causal_context(4096)
    for name, printed, tolerance in (("deepseek-v3", 250, 0.5), ("llama-3-405b", 2448, 26)):
        model = models.get(name)
        step = transformer.forward_flops(model, half) + transformer.backward_flops(model, half)
        assert step.m_as("GFLOP/token") == pytest.approx(printed, abs=tolerance)


def test_attention_overhead_is_that_of_training() -> None:
    """calc.training's T / 12 d, of a layer of GPT's shape under a causal mask, without the 1 of a
    token that looks at itself.
    """
    model = gpt(96, 12288, 96, 1, 2048)
    overhead = attention.attention_flops(1024, 96, 96, 128, 128) / transformer.forward_flops(model)
    assert overhead.m_as("") == pytest.approx(
        training.attention_overhead(2048, 12288).m_as(""), rel=1e-6
    )


@every_transformer
def test_operations_are_those_of_the_matrix_products(model: models.Transformer) -> None:
    """In training each token has an output; a prefill has one for each sequence."""
    length = model.context
    work = 0.0
    for each in transformer.prefill_matmuls(model, length):
        once = each.name in ("pooler", "classes")
        times = 0 if once else length if each.name == "vocabulary" else 1
        work += each.operations.m_as("FLOP") * times
    states = in_chunks(model) - one_by_one(model)
    forward = transformer.forward_flops(model, length).m_as("FLOP/token")
    expected = (forward + states) * length
    assert work == pytest.approx(expected, rel=1e-9)


def linear_sizes(model: models.Transformer) -> tuple[Any, ...]:
    """Heads of a state of linear attention, its rows and its columns."""
    return model.linear_value_heads, model.linear_key_width, model.linear_value_width


def one_by_one(model: models.Transformer) -> float:
    """Operations of a token in the states of a model, by their laws."""
    work = quantity("0 FLOP/token")
    if layers := model.layers_with("linear"):
        work = work + attention.recurrence_flops(layers, *linear_sizes(model), products=3)
    if layers := model.layers_with("state"):
        sizes = model.state_heads, model.state_width, model.state_head_width
        work = work + attention.recurrence_flops(layers, *sizes)
    return float(work.m_as("FLOP/token"))


def in_chunks(model: models.Transformer) -> float:
    """Return the operations of a token where a prompt is read in chunks."""
    if model.chunk is None:
        return one_by_one(model)
    work = quantity("0 FLOP/token")
    if layers := model.layers_with("linear"):
        work = work + attention.chunked_delta_flops(64, layers, *linear_sizes(model))
    if layers := model.layers_with("state"):
        sizes = model.state_heads, model.state_groups, model.state_width, model.state_head_width
        work = work + attention.chunked_state_flops(model.chunk, layers, *sizes)
    return float(work.m_as("FLOP/token"))


@every_writer
def test_decoding_is_a_prefill_of_one_token(model: models.Transformer) -> None:
    """Token by token the projections cost what they cost at once; only latent attention trades
    operations for memory, and needs more.
    """
    context = 100
    decode = sum(each.operations for each in transformer.decode_matmuls(model, context))
    forward = transformer.forward_flops(model, context).m_as("FLOP/token")
    if model.kv_latent is None:
        assert decode.m_as("FLOP") == pytest.approx(forward, rel=1e-9)
    else:
        assert decode.m_as("FLOP") > forward
        layers, latent, rotary = model.caching_layers, model.kv_latent, model.rotary_width
        assert rotary is not None
        values = model.head_value_width
        stored = attention.attention_flops(context, layers, model.heads, latent + rotary, latent)
        expanded = attention.attention_flops(
            context, layers, model.heads, model.head_width + rotary, values
        )
        difference = (stored - expanded).m_as("FLOP/token")
        assert decode.m_as("FLOP") == pytest.approx(forward + difference, rel=1e-9)


@for_each(FULL)
def test_attention_equals_the_projections_at_the_crossover(model: models.Transformer) -> None:
    crossover = transformer.crossover_context(model)
    long = model.with_context(math.ceil(crossover.magnitude))
    assert transformer.forward_flops(long, crossover).m_as("FLOP/token") == pytest.approx(
        2 * transformer.forward_flops(model).m_as("FLOP/token")
    )


# --- intensity ---


@given(st.integers(1, 8192), st.integers(1, 64))
def test_intensity_never_falls_with_the_batch(context: int, sequences: int) -> None:
    fewer = transformer.decode_matmuls(LLAMA, context, sequences)
    more = transformer.decode_matmuls(LLAMA, context, sequences + 1)
    for one, two in zip(fewer, more, strict=True):
        assert two.intensity().magnitude >= one.intensity().magnitude * (1 - 1e-12)
        assert two.operations >= one.operations


def test_scores_of_a_decode_are_no_denser_for_a_larger_batch() -> None:
    """Scores take at most an operation for each byte and query head that shares the keys: batches
    do not help, since each sequence has a cache of its own.
    """
    for model in WRITERS:
        if model.kv_latent is None:
            for sequences in (1, 1000):
                products = transformer.decode_matmuls(model, 1024, sequences)
                for scores in (each for each in products if each.name.endswith("scores")):
                    if scores.name == "index scores":  # whose keys all queries of an index share
                        continue
                    heads = model.heads_of("window" if "windowed" in scores.name else "full")
                    group = heads.queries / heads.keys
                    assert scores.intensity().magnitude < group
                    queries_and_results = group / scores.k + group / scores.n
                    assert scores.intensity().magnitude == pytest.approx(
                        group / (1 + queries_and_results)
                    )


def test_weights_of_a_decode_come_to_their_limits() -> None:
    """One row: an operation for each byte. Many: that of a square of inputs and outputs."""
    one = transformer.decode_matmuls(LLAMA, 1)[0]
    assert one.intensity().magnitude == pytest.approx(1, rel=1e-3)
    many = transformer.decode_matmuls(LLAMA, 1, 1e9)[0]
    assert many.intensity().magnitude == pytest.approx(4096 / 2, rel=1e-3)


def test_experts_of_a_decode() -> None:
    """One token meets 8 experts of DeepSeek-V3, a large batch all 256; each sees its part of it."""
    for sequences, used in ((1, 8), (10_000, 256)):
        products = transformer.decode_matmuls(models.DEEPSEEK_V3, 10, sequences)
        expert = {each.name: each for each in products}["expert up"]
        assert expert.count == pytest.approx(used)
        assert expert.m * expert.count == pytest.approx(8 * sequences)


def test_experts_used_against_a_draw() -> None:
    rng = np.random.default_rng(7)
    drawn = [
        np.unique(np.concatenate([rng.permutation(64)[:6] for _ in range(20)])).size
        for _ in range(400)
    ]
    used = experts.experts_used(64, 6 / 64, 20).magnitude
    assert used == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / 20)


# --- windows ---


def windowed(layers: int, window: int) -> models.Transformer:
    """A small model, with that window in so many of its ten layers."""
    kinds = {"full": 10 - layers, "window": layers}
    return models.from_shape(
        10,
        64,
        4,
        kv_heads=2,
        feed_forward_width=128,
        vocabulary=1000,
        context=1000,
        attention=tuple(f"{count} {kind}" for kind, count in kinds.items() if count),
        window=window,
    )


def test_caches_of_windows() -> None:
    """Gemma 2 27B at 8 192 tokens, by hand: 23 layers keep them all, 23 the last 4 096, and a layer
    16 · 2 · 128 numbers of each: 2.16 GiB. Mistral 7B, 32 · 4 096 · 8 · 2 · 128: half a GiB.
    """
    gemma = transformer.kv_cache(models.get("gemma-2-27b"), 8192)
    assert gemma.m_as("byte") == 2 * 16 * 2 * 128 * (23 * 8192 + 23 * 4096)
    assert round(gemma.m_as("GiB"), 2) == 2.16
    for context in (4096, 8192):
        assert transformer.kv_cache(models.get("mistral-7b"), context) == quantity("0.5 GiB")
    # Gemma 4 E4B: of 7 layers with 2 heads of 512 the last 3 borrow, of 35 of 256 the last 15.
    small, kept = models.get("gemma-4-e4b"), 2 * 2 * 2 * (4 * 512 * 131072 + 20 * 256 * 512)
    assert transformer.kv_cache(small, 131072).m_as("byte") == pytest.approx(kept, rel=1e-12)
    whole = replace(small, borrowing=None)
    assert transformer.kv_cache(whole, 131072).m_as("byte") == pytest.approx(7 / 4 * kept)
    assert whole.parameters == small.parameters
    idle = quantity(2 * 2 * 2560 * (3 * 512 + 15 * 256), "param")
    assert whole.multiplied_parameters - small.multiplied_parameters == idle
    short = transformer.kv_cache(models.get("mistral-7b"), 100)
    assert short.m_as("byte") == 2 * 32 * 100 * 8 * 2 * 128


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 10))
def test_windows_token_by_token(length: int, window: int, layers: int) -> None:
    """Token i looks at i positions, or at the window; and the attention of each is counted."""
    model = windowed(layers, window)
    seen = np.arange(1, length + 1)
    looked_at = (10 - layers) * seen.sum() + layers * np.minimum(seen, window).sum()
    attention = 2 * 4 * (16 + 16) * looked_at / length
    without = transformer.forward_flops(model).m_as("FLOP/token")
    work = transformer.causal_flops(model, length).m_as("FLOP/token")
    assert work - without == pytest.approx(attention)
    kept = (10 - layers) * length + layers * min(length, window)
    cache = transformer.kv_cache(model, length, "1 byte")
    assert cache.m_as("byte") == pytest.approx(2 * (16 + 16) * kept)


def test_a_share_of_a_context() -> None:
    """75 % of 8 192 tokens are 6 144."""
    share = 8192 * quantity("75 %")
    for count in (transformer.causal_flops, transformer.kv_cache, transformer.forward_flops):
        counted, expected = count(LLAMA, share), count(LLAMA, 6144)
        assert counted.to(expected.units).magnitude == pytest.approx(expected.magnitude)


def test_windowed_products() -> None:
    """Four of 10 layers look at 100 positions of 1 000: each query, and no key more than once."""
    model = windowed(4, 100)
    products = {each.name: each for each in transformer.prefill_matmuls(model, 1000)}
    scores = products["windowed scores"]
    assert scores.operations.m_as("FLOP") == 4 * 2 * 4 * 16 * 1000 * 100
    assert scores.traffic("1 byte").m_as("byte") == 4 * (4 * 1000 * 16 + 2 * 1000 * 16 + 4e5)
    assert products["scores"].operations.m_as("FLOP") == 6 * 2 * 4 * 16 * 1000 * 1000
    contexts = np.array([50, 1000])
    decoded = {each.name: each for each in transformer.decode_matmuls(model, contexts)}
    assert decoded["windowed scores"].n.tolist() == [50, 100]
    assert decoded["scores"].n.tolist() == [50, 1000]


def test_attention_that_never_takes_as_much() -> None:
    mistral = models.get("mistral-7b")
    with pytest.raises(InputError, match="looks back on 4096 tokens in every layer, and its att"):
        transformer.crossover_context(mistral)
    short = replace(mistral, window=quantity(30_000, ""))
    assert transformer.crossover_context(short).magnitude == pytest.approx(27_124, abs=1)


def test_products_of_arrays_are_those_of_each() -> None:
    contexts = np.array([10.0, 8192.0])
    together = transformer.decode_matmuls(LLAMA, contexts, [[1], [64]])
    for row, sequences in enumerate((1, 64)):
        for column, context in enumerate(contexts):
            alone = transformer.decode_matmuls(LLAMA, context, sequences)
            for one, each in zip(alone, together, strict=True):
                work = np.broadcast_to(each.operations.m_as("FLOP"), (2, 2))
                assert work[row, column] == pytest.approx(one.operations.m_as("FLOP"))


# --- memory ---


def test_published_caches() -> None:
    """OPT 13B takes 800 KB a token [Kwon et al. 2023]. DeepSeek-V3 70 KB, Qwen 2.5 72B 328 KB and
    Llama 3.1 405B 516 KB [Zhao et al. 2025, table 1, in thousands of bytes].
    """
    assert caches.kv_bytes_per_token(40, 40, 128, 128, "2 byte") == quantity("800 KiB/token")
    for name, printed in (
        ("deepseek-v3", 70.272),
        ("qwen-2-5-72b", 327.680),
        ("llama-3-405b", 516.096),
    ):
        cache = transformer.kv_cache_per_token(models.get(name))
        assert cache.m_as("kB/token") == pytest.approx(printed, abs=0.0005)


@pytest.mark.parametrize(
    ("layers", "width", "heads", "saved"), [(96, 12288, 96, 0.70), (105, 20480, 128, 0.65)]
)
def test_activations_of_megatron(layers: int, width: int, heads: int, saved: float) -> None:
    """Korthikanti et al. (2023): s b h (34 + 5 a s / h) bytes a layer, 34 s b h with selective and
    2 s b h with full recomputation; the second saves 70 % of GPT-3's, 65 % of MT-NLG's.
    """
    s, b = 2048, 4
    model = gpt(layers, width, heads, 51200, s)

    def memory(recomputation: str) -> Any:
        return transformer.activation_memory(
            model, s, b, recomputation=recomputation, mask_size="1 byte"
        ).m_as("byte")

    sbh = s * b * width * layers
    assert memory("none") == pytest.approx(sbh * (34 + 5 * heads * s / width), rel=1e-12)
    assert memory("selective") == pytest.approx(34 * sbh, rel=1e-12)
    assert memory("full") == pytest.approx(2 * sbh, rel=1e-12)
    assert 1 - memory("selective") / memory("none") == pytest.approx(saved, abs=0.005)


@every_transformer
def test_recomputing_more_keeps_less(model: models.Transformer) -> None:
    length = model.context
    none, selective, alternate, full = (
        transformer.activation_memory(model, length, 3, recomputation=each)
        for each in transformer.RECOMPUTATIONS
    )
    assert none > selective > alternate > full
    assert transformer.activation_memory(model, length, 6) == 2 * none


def test_activations_of_a_gated_layer() -> None:
    """Llama 3 8B by hand: 4 inputs of 4 096; 4 096 + 2 · 1 024 + 4 096; 3 · 14 336."""
    activations = transformer.activation_memory(LLAMA, 1, recomputation="selective")
    assert activations.m_as("byte") == 2 * 32 * (4 * 4096 + 4096 + 2048 + 4096 + 3 * 14336)


def test_every_other_product_is_kept() -> None:
    """Llama 3 8B as torchtitan keeps it: inputs, queries, values, attention, gates, and results.

    Keys, the output of attention and the second half of the hidden layer run again.
    """
    activations = transformer.activation_memory(LLAMA, 1, recomputation="alternate")
    assert activations.m_as("byte") == 2 * 32 * (4096 + 4096 + 1024 + 4096 + 14336 + 4096)
    again, attention = (
        transformer.recomputed_flops(LLAMA, 8192, each).m_as("FLOP/token")
        for each in ("alternate", "selective")
    )
    assert again - attention == pytest.approx(2 * 32 * 4096 * (1024 + 4096 + 14336))


def test_experts_run_again_with_every_other_product() -> None:
    """One kernel computes them together, of which no output is kept."""
    again = transformer.computed_again(models.get("mixtral-8x7b"))
    assert [each.name for each in again if each.copies > 1] == [
        each.name for each in models.get("mixtral-8x7b").matrices if each.copies > 1
    ]


def test_scores_without_dropout_are_kept_once() -> None:
    """The softmax's output is the factor of the values: 32 heads, 100 positions, two bytes."""
    assert layers.score_activations(100, 32).m_as("byte") == 2 * 32 * 100
    dropped = layers.score_activations(100, 32, mask_size="1 byte")
    assert dropped.m_as("byte") == (2 + 2 + 1) * 32 * 100


# --- refusals ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: transformer.prefill_matmuls(LLAMA, 8193),
            "Llama 3 8B reads at most 8192 tokens; got a context of 8193",
        ),
        (
            lambda: transformer.decode_matmuls(LLAMA, [100, 10_000]),
            "reads at most 8192 tokens; got a context of 10000",
        ),
        (
            lambda: transformer.forward_flops(LLAMA, "1e5"),
            "reads at most 8192 tokens; got a context of 100000",
        ),
        (
            lambda: transformer.activation_memory(LLAMA, 9000),
            "reads at most 8192 tokens; got a context of 9000",
        ),
        *(
            (call, "must be a number of tokens from 0, without a unit, as in 8192; got " + got)
            for call, got in (
                (lambda: transformer.kv_cache(LLAMA, "8K token"), "8000 token"),
                (lambda: transformer.kv_cache("gemma-3-27b", "128k"), "'128k'"),
                (lambda: transformer.cache_read(LLAMA, -1), "-1"),
                (lambda: transformer.kept_context(LLAMA, [1, -1]), r"\[1, -1\]"),
                (lambda: transformer.prefill_matmuls(LLAMA, math.nan), "nan"),
            )
        ),
        (
            lambda: transformer.decode_matmuls(models.BERT_LARGE, 10),
            "BERT-large writes no tokens: its output is a pooler layer; calc.throughput.of answers",
        ),
        (
            lambda: transformer.kv_cache_per_token(models.RESNET_50),
            "a transformer of calc.models is needed here; got ResNet-50",
        ),
        (
            lambda: transformer.forward_flops("llama-9"),
            "there is no model 'llama-9'; did you mean llama-",
        ),
        (
            lambda: transformer.activation_memory(LLAMA, 10, recomputation="some"),
            "recomputation must be one of none, selective, alternate, full; got 'some'",
        ),
        (lambda: transformer.prefill_matmuls(LLAMA, 0), "length must be at least 1"),
        (lambda: transformer.decode_matmuls(LLAMA, 10, 0), "sequences must be at least 1"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


@given(st.integers(1, 4096), st.integers(1, 8192), st.integers(1, 8), st.integers(1, 256))
def test_intensity_of_fused_attention_by_its_parts(n: int, c: int, g: int, d: int) -> None:
    operations = 2 * 2 * g * n * c * d
    traffic = 2 * (2 * g * n * d + 2 * c * d)
    intensity = attention.fused_attention_intensity(n, c, g)
    assert intensity.magnitude == pytest.approx(operations / traffic)


def test_what_fusing_attention_gains_is_below_the_bound_of_its_passes() -> None:
    """Pass by pass on an A100: product, mask, softmax, dropout, product [Dao et al. 2022]."""
    tokens, width, bandwidth, peak = 4096, 64, 2.039e12, 312e12
    scores = 2 * tokens**2
    passes = {"product": 1, "mask": 2, "softmax": 2, "dropout": 2, "second product": 1}
    apart = sum(passes.values()) * scores / bandwidth
    fused = 2 * 2 * tokens**2 * width / peak
    bound = attention.attention_fusion_gain(quantity(peak / bandwidth, "FLOP/byte"), width, 8)
    assert bound.magnitude == pytest.approx(apart / fused)
    assert 7.6 < bound.magnitude < 10  # the paper measures 7.6 on the attention of GPT-2


def test_exponentials_take_half_as_long_as_products_of_heads_of_128() -> None:
    """989 and 3.9 TFLOP/s, 512 operations a score [Shah et al. 2024, section 2.2]."""
    for width, share in ((128, 0.5), (64, 1)):
        ratio = attention.exponentials_over_products("989 TFLOP/s", "3.9 TFLOP/s", width)
        assert ratio.magnitude == pytest.approx(share, rel=0.02)
