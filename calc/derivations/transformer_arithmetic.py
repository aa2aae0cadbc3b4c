"""Claims of the chapter "Transformer arithmetic"."""

from __future__ import annotations

from typing import ClassVar

from calc import (
    caches,
    constants,
    hardware,
    layers,
    models,
    quantization,
    roofline,
    runs,
    training,
    transformer,
)
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows
from calc.derivations.traces import whole
from calc.laws.attention import attention_flops, causal_context
from calc.published import memory_rows
from calc.steps import device_memory
from calc.steps.job import Job, Layout


class ModelParts(Claims):
    """Feed-forward networks hold most of a model, and its name is its total, rounded."""

    keys = (
        *("llama-3-8b", "qwen-3-32b", "llama-3-1-70b", "llama-3-405b", "gpt-oss-120b"),
        *("qwen-3-235b-a22b", "deepseek-v3", "kimi-k2-5", "nemotron-nano-9b-v2"),
    )
    llama = models.get("llama-3-8b")
    layers = llama.layers
    width = llama.width
    heads = llama.heads
    kv_heads = llama.kv_heads
    hidden = llama.feed_forward_width
    vocabulary = llama.vocabulary

    feed_forward_share = (llama.parts["feed-forward"] / llama.parameters).to("%") | by_hand(
        "32 * 3 * 4096 * 14336 / 8030261248"
    )
    llama_counted = models.get("llama-3-1-70b").parameters | by_hand(
        "(80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * "
        "8192) + 2 * 128256 * 8192 + 8192) * 1 param"
    )
    mixture_counted = models.get("qwen-3-235b-a22b").parameters | by_hand(
        "(94 * (2 * 4096 * 8192 + 2 * 4096 * 512 + 2 * 4096 + 2 * 128 + 4096 * "
        "128 + 128 * 3 * 4096 * 1536) + 2 * 151936 * 4096 + 4096) * 1 param"
    )
    mixture_active = models.get("qwen-3-235b-a22b").active_parameters | by_hand(
        "{mixture_counted} - 120 * 94 * 3 * 4096 * 1536 param"
    )

    @classmethod
    @row_by_hand("Qwen3 235B-A22B | 1.245 | 6.702 | 227.1 | 235.1 | 22.19")
    def row(cls, key: str) -> Row:
        """Billions of parameters by part, counted and active."""
        model = models.get(key)
        parts = {name: part.m_as("param") / 1e9 for name, part in model.parts.items()}
        tables = parts["embedding"] + parts.get("output", 0)
        inside = parts["attention"], parts["feed-forward"] + parts.get("router", 0)
        counts = model.parameters, model.active_parameters
        return model.name, tables, *inside, *(count.m_as("param") / 1e9 for count in counts)


class LlamaToken(Claims):
    """A token costs two operations for each weight, and more for each position it looks at."""

    llama = models.get("llama-3-8b")
    length = llama.context
    long_length = 131072

    context = causal_context(length)
    multiplied = llama.multiplied_parameters | by_hand(
        "(8030261248 - 128256 * 4096 - 65 * 4096) * 1 param"
    )
    forward = transformer.forward_flops(llama) | by_hand("2 * 7504658432 FLOP/token")
    step = forward + transformer.backward_flops(llama)
    passes = (step / forward).to("") | by_hand("1 + 2")
    attention = transformer.forward_flops(llama, context) - forward
    share = (attention / forward).to("%") | by_hand("4096.5 * 2 * 32 * 32 * 256 / 15.00932e9")
    long_attention = attention_flops(
        causal_context(long_length),
        llama.layers,
        llama.heads,
        llama.key_width,
        llama.head_value_width,
    )
    long_ratio = (long_attention / forward).to("") | by_hand(
        "65536.5 * 2 * 32 * 32 * 256 / 15.00932e9"
    )
    times_as_long = (quantity(long_length, "") / length).to("") | by_hand("131072 / 8192")
    times_as_slow = ((forward + long_attention) / (forward + attention)).to("") | by_hand(
        "(1 + 2.289245) / (1 + 0.1430942)"
    )


class Crossover(Claims):
    """Attention equals the projections at tens of thousands of positions, or a few thousand."""

    llama = transformer.crossover_context(models.get("llama-3-8b")) | by_hand(
        "7504658432 / (32 * 32 * 256)"
    )
    deepseek = transformer.crossover_context(models.get("deepseek-v3")) | by_hand(
        "36624596992 / (61 * 128 * 320)"
    )
    largest = transformer.crossover_context(models.get("llama-3-405b")) | by_hand(
        "403747897344 / (126 * 128 * 256)"
    )


class OtherCounts(Claims):
    """One model's training has as many counts as there are conventions."""

    model = models.get("deepseek-v3")
    length = 4096
    printed = quantity("250 GFLOP/token") | by_hand("250 GFLOP/token", "Zhao et al. 2025")

    half = causal_context(length)
    causal = transformer.forward_flops(model, half) + transformer.backward_flops(
        model, half
    ) | by_hand(
        "6 * 36.624597e9 FLOP/token + 6 * 2048.5 * 61 * 128 * 320 FLOP/token",
        "6 · 36.624e9, and 6 · 2 048.5 · 61 · 128 · 320; 250 in Zhao et al. 2025",
    )
    full = transformer.forward_flops(model, length) + transformer.backward_flops(
        model, length
    ) | by_hand("6 * 36.624597e9 FLOP/token + 6 * 4096 * 61 * 128 * 320 FLOP/token")
    active = training.training_flops(model.active_parameters, 1) / quantity("1 token") | by_hand(
        "6 * 37.552297e9 FLOP/token"
    )
    all_experts = training.training_flops(model.parameters, 1) / quantity("1 token") | by_hand(
        "6 * 671026419200 FLOP/token"
    )


class Products(Claims):
    """Reading a prompt is bound by compute, writing an answer by memory, whatever the model."""

    llama = models.get("llama-3-8b")
    h100 = hardware.get("h100")
    length = 4096
    context = 4096
    sequences = 64
    element = quantity("2 byte")

    ridge = h100.ridge_point("bf16") | by_hand("(989 / 3.35) FLOP/byte")
    prefill = transformer.prefill_matmuls(llama, length)
    alone = transformer.decode_matmuls(llama, context)
    together = transformer.decode_matmuls(llama, context, sequences)
    names = ("query", "key", "scores", "weighted values", "attention output", "gate", "down")
    group = llama.heads // llama.kv_heads | by_hand("32 / 8")
    scores, weighted = (made for made in prefill if made.name in ("scores", "weighted values"))
    prefill_scores = scores.intensity(element) | by_hand(
        "(4096 * 16384 * 128 / (128 * 16384 + 128 * 4096 + 4096 * 16384)) FLOP/byte"
    )
    up = next(product for product in together if product.name == "up")
    up_together = up.intensity(element) | by_hand("(1/(1/64 + 1/4096 + 1/14336)) FLOP/byte")
    critical_batch = roofline.critical_batch(ridge, up.k, up.n, element) | by_hand(
        "1/(3.35/989 - 1/4096 - 1/14336)"
    )
    # Fused, the scores stay on the chip: queries, keys, values and results pass once.
    fused_operations = scores.operations + weighted.operations
    fused_traffic = (
        2 * length * (llama.heads + llama.kv_heads) * llama.head_width * llama.layers * element
    )
    prefill_fused = roofline.arithmetic_intensity(fused_operations, fused_traffic) | by_hand(
        "(4 * 4096 * 4096 * 4096 / (4096 * 80 * 128 * 2)) FLOP/byte"
    )

    @classmethod
    @row_by_hand("key | 4096 | 64 | 1024 | 4096 | 682.7 | 0.9988 | 59.36")
    def rows(cls) -> Rows:
        """Shape and intensity of each product of a layer, reading, writing alone and together."""
        return [
            (
                read.name,
                *(whole(side) for side in (read.m, many.m, read.n, read.k)),
                *(product.intensity(cls.element).magnitude for product in (read, one, many)),
            )
            for read, one, many in zip(cls.prefill, cls.alone, cls.together, strict=True)
            if read.name in cls.names
        ]


class BatchOfDecodes(Claims):
    """A batch lifts the weights' intensity to the ridge, and leaves that of the cache alone."""

    context = 4096
    most = 4096 | by_hand("4096")
    few = 32
    mixture = models.get("deepseek-v3")
    experts = mixture.experts
    active_experts = mixture.active_experts

    products = transformer.decode_matmuls(mixture, context, few)
    expert = next(product for product in products if product.name == "expert up")
    expert_intensity = expert.intensity(Products.element)

    @classmethod
    def intensity(cls, key: str, name: str, sequences: QuantityLike) -> Quantity:
        """Return the intensity of one product, by how many sequences are written at a time."""
        products = transformer.decode_matmuls(models.get(key), cls.context, sequences)
        matmul = next(product for product in products if product.name == name)
        return matmul.intensity(Products.element)

    @classmethod
    def attention_intensity(cls, key: str) -> Quantity:
        """Return that of attention as one fused kernel: queries, results and caches pass once."""
        model = models.get(key)
        products = {
            product.name: product for product in transformer.decode_matmuls(model, cls.context)
        }
        scores, values = products["scores"], products["weighted values"]
        # A latent serves scores and values alike, and is read once.
        stored = scores.n * (scores.k + (0 if model.kv_latent is not None else values.n))
        passed = scores.m * (scores.k + values.n)
        return roofline.arithmetic_intensity(
            scores.operations + values.operations,
            (stored + passed) * scores.count * scores.layers * Products.element,
        )


class FusedDecode(Claims):
    """One key and value that all heads share are read once for all of them."""

    latent = BatchOfDecodes.attention_intensity("deepseek-v3") | by_hand(
        "(128 * 4096 * (576 + 512) / (4096 * 576 + 128 * (576 + 512))) FLOP/byte"
    )


class Caches(Claims):
    """Sharing keys, storing latents and shorter numbers each divide the cache."""

    keys = (
        *("llama-3-8b", "qwen-3-32b", "llama-3-1-70b", "llama-3-405b", "qwen-3-235b-a22b"),
        *("glm-4-5", "deepseek-v3", "kimi-k2-5"),
    )
    group = 64

    quantized = quantization.bytes_per_parameter("4 bit/param", group) * quantity("1 param")
    llama = transformer.kv_cache_per_token(models.get("llama-3-8b")) | by_hand(
        "32 * 8 * 256 * 2 byte/token"
    )
    llama_of_all_heads = caches.kv_bytes_per_token(
        LlamaToken.llama.layers, LlamaToken.llama.heads, 128, 128, "2 byte"
    ) | by_hand("32 * 32 * 256 * 2 byte/token")
    llama_of_one_head = caches.kv_bytes_per_token(
        LlamaToken.llama.layers, 1, 128, 128, "2 byte"
    ) | by_hand("32 * 256 * 2 byte/token")
    deepseek = transformer.kv_cache_per_token(models.get("deepseek-v3")) | by_hand(
        "61 * 576 * 2 byte/token", "70.272 KB in Zhao et al. 2025, table 1"
    )
    deepseek_of_all_heads = caches.kv_bytes_per_token(61, 128, 192, 128, "2 byte")
    deepseek_saving = (deepseek_of_all_heads / deepseek).to("") | by_hand("128 * 320 / 576")
    ratio = (transformer.kv_cache_per_token(models.get("llama-3-405b")) / deepseek).to(
        ""
    ) | by_hand("126 * 8 * 256 / (61 * 576)")

    @classmethod
    @row_by_hand("Qwen3 32B | 64 | 8 | 256 | 68 | 10")
    def row(cls, key: str) -> Row:
        """A model, its heads and those of its keys, and its cache for a token and for them all."""
        model = models.get(key)
        cache = transformer.kv_cache_per_token(model)
        short = transformer.kv_cache_per_token(model, cls.quantized)
        whole = transformer.kv_cache(model, model.context)
        return (
            model.name,
            model.heads,
            model.kv_heads if model.kv_latent is None else None,
            cache.m_as("KiB/token"),
            short.m_as("KiB/token"),
            whole.m_as("GiB"),
        )


class CacheRoom(Claims):
    """An engine leaves less for caches than weights do, and how much less can be counted.

    Sizes of each device; logs are of starts that nothing was fitted to.
    """

    model = models.get("llama-3-1-70b")
    device = hardware.get("h100")
    tensor = 4
    context = 8192
    logs: ClassVar[dict[str, str]] = {
        "qwen3-32b-tp1-0.11.0": "Qwen3 32B",
        "qwen3-32b-tp2-0.11.0": "Qwen3 32B",
        "qwen3-14b-tp1-0.15.0": "Qwen3 14B",
        "qwen3-14b-tp1-0.17.0": "Qwen3 14B",
        "kimi-dev-72b-tp4-0.19.0": "Kimi-Dev 72B",
        "llama-3.3-70b-instruct-fp8-dynamic-tp2-0.19.0": "Llama 3.3 70B, FP8",
        "deepseek-v2-lite-chat-tp1-0.19.0": "DeepSeek-V2-Lite",
        "gpt-oss-120b-tp1-0.11.0": "gpt-oss-120b",
        "qwen3-235b-a22b-fp8-tp4-sglang-0.4": "Qwen3 235B-A22B, FP8",
    }

    _sequence = transformer.kv_cache_per_token(model) * quantity(context, "token")
    _left = tensor * device.memory_capacity - model.parameters * quantity("2 byte/param")
    hoped = (_left / _sequence).to("") | by_hand(
        "(4 * 80 * 2**30 - 2 * 70553706496) / (8192 * 327680)"
    )
    memory = device_memory.of(
        Job.of(model, device, Layout(tensor=tensor), software="vllm"), context
    )
    room = memory.room | by_hand("0.92 * 79.19 GiB")
    left = memory.caches | no_hand("34.85395 GiB", "allocations, matrix by matrix")
    tokens = memory.tokens | by_hand("16 * floor(34.85395 * 2**30 / (16 * 327680 / 4))")
    sequences = memory.sequences | by_hand("{tokens} / 8192")

    @classmethod
    @row_by_hand("… | 1 H100 | vLLM 0.11.0 | 19 GiB | 4.47 GiB | 4.45 GiB | −0.4%")
    def rows(cls) -> Rows:
        """Model, devices, program, memory less weights, and room for caches expected and logged."""
        logged = {row.id: row for row in memory_rows.rows()}
        return [cls._row(name, logged[key]) for key, name in cls.logs.items()]

    @classmethod
    def _row(cls, name: str, row: memory_rows.Logged) -> Row:
        device = hardware.get(row.conditions["device"])
        expected, logged = row.expected("caches"), row.measured["caches"]
        return (
            name,
            f"{row.conditions['tensor']} {device.key.upper()}",
            row.conditions["software"],
            device.memory_capacity.m_as("GiB") - row.expected("weights"),
            expected,
            logged,
            round(100 * (logged / expected - 1), 1),
        )


class GrowingCache(Claims):
    """A cache that each head has of its own outgrows the weights first."""

    longest = 131072
    model = LlamaToken.llama

    weights = (model.parameters * quantity("2 byte/param")).to("GB") | by_hand(
        "8030261248 * 2 byte"
    )
    per_token = (Caches.llama, Caches.llama_of_all_heads, Caches.llama_of_one_head)
    shared = (weights / Caches.llama).to("token") | by_hand("2 * 8030261248 / 131072 * 1 token")
    every = (weights / Caches.llama_of_all_heads).to("token") | by_hand(
        "2 * 8030261248 / 524288 * 1 token"
    )


class Activations(Claims):
    """Activations are freed by several measures, from free ones to a second forward pass."""

    model = models.get("llama-3-8b")
    length = model.context | by_hand("8192", "max_position_embeddings of its config.json")
    mfu = quantity(40, "%")
    device = hardware.get("h100")

    scores = transformer.activation_memory(model, length) - transformer.activation_memory(
        model, length, recomputation="selective"
    )
    kept = transformer.activation_memory(model, length, recomputation="selective").to(
        "GB"
    ) | by_hand("8192 * 32 * 139264 bytes")
    inputs = transformer.activation_memory(model, length, recomputation="full").to("GB") | by_hand(
        "8192 * 32 * 4096 * 2 bytes"
    )
    logits = layers.loss_memory(length, model.vocabulary).to("GB") | by_hand(
        "8192 * 128256 * 10 byte"
    )
    numbers = quantity("2 byte") * length * model.layers
    # Outputs of both norms, and the product of gate and up: made again without a GEMM.
    cheap = (numbers * (2 * model.width + model.feed_forward_width)).to("GB") | by_hand(
        "8192 * 32 * (2 * 4096 + 14336) * 2 bytes"
    )
    # Inputs of all GEMMs (norms', attention's, the product), kept in a byte where they run in FP8.
    narrowed = (numbers * (3 * model.width + model.feed_forward_width) / 2).to("GB")
    full_work = quantity(1 / 3, "1").to("%") | by_hand("1 / 3")
    context = LlamaToken.context
    forward = transformer.forward_flops(model, context) * quantity(length, "token")

    link = (constants.bandwidth_pcie5_lane * constants.lanes_pcie_x16).to("GB/s") | by_hand(
        "16 * 32 Gbit/s", "PCIe Gen5 x16, raw, of the datasheet"
    )
    offload = (kept / link).to("s") | by_hand("36.507 GB / 64 GB/s")
    of_forward = (forward / (device.peak("bf16") * mfu)).to("s") | by_hand(
        "17.157 GFLOP * 8192 / 395.6e12 FLOP/s"
    )
    hidden = (of_forward / offload).to("%") | by_hand("0.3553 / 0.5704")
    of_backward = 2 * of_forward | by_hand("2 * 0.3553 s")

    rows: Rows = (
        ("attention fused: no scores", scores.to("GB"), "next to nothing: every stack does it"),
        ("loss in chunks, or fused", logits, "nothing"),
        ("outputs of norms and gates made again", cheap, "no GEMM; memory traffic"),
        ("inputs of GEMMs in FP8", narrowed, "nothing, if they run in FP8 anyway"),
        ("offload to the host", kept, "the host link, both ways"),
        ("recompute whole layers", (kept - inputs).to("GB"), "a second forward pass"),
    ) | row_by_hand("loss in chunks, or fused | 10.5 GB | nothing")


class StepMemory(Claims):
    """Activations fill a GPU during the forward pass, and the loss makes the peak."""

    devices = 8
    state_of_parameter = quantity("16 byte/param")

    state = (Activations.model.parameters * state_of_parameter / devices).to("GB") | by_hand(
        "8030261248 * 16 byte / 8"
    )
    loss = Activations.logits
    peak = (state + Activations.kept + loss).to("GB") | by_hand(
        "{state} + 8192 * 32 * 139264 byte + 8192 * 128256 * 10 byte"
    )
    layer = (Activations.kept / Activations.model.layers).to("GB") | by_hand("8192 * 139264 byte")
    recomputed = (state + Activations.inputs + loss).to("GB") | by_hand(
        "{state} + 8192 * 32 * 8192 byte + 8192 * 128256 * 10 byte"
    )


class TrainingBudget(Claims):
    """Problem 1: the published work of a training, from the architecture."""

    model = models.get("llama-3-405b")
    run = runs.get("llama-3-1-405b")
    tokens = run.tokens
    reported = run.work
    length = 8192

    context = causal_context(length)
    step = 3 * transformer.forward_flops(model, context)
    work = (step * tokens).to("FLOP") | by_hand(
        "(6 * 403747897344 * 15.6e12 + 6 * 4096.5 * 126 * 128 * 256 * 15.6e12) FLOP"
    )
    without = (3 * transformer.forward_flops(model) * tokens).to("FLOP")
    by_total = training.training_flops(model.parameters, tokens) | by_hand(
        "6 * 405853388800 * 15.6e12 FLOP"
    )
    attention_share = (1 - without / work).to("%") | by_hand("1 - 3.779080 / 3.937391")


class LlamaConversations(Claims):
    """Problem 2: how many conversations fit beside the weights."""

    model = models.get("llama-3-8b")
    capacity = hardware.get("h100").memory_capacity
    length = quantity("8192 token")

    weights = (model.parameters * quantity("2 byte/param")).to("GB")
    left = (capacity - weights).to("GB") | by_hand("(85.89935 - 16.06052) GB")
    weights_share = (weights / capacity).to("%") | by_hand("2 * 8030261248 / (80 * 2**30)")
    each = (Caches.llama * length).to("GB") | by_hand("8192 * 128 KiB")
    held = (left / each).to("") // 1 | by_hand("floor((80 * 2**30 - 2 * 8030261248) / 2**30)")
    of_all_heads = (Caches.llama_of_all_heads * length).to("GB")
    held_of_all_heads = (left / of_all_heads).to("") // 1 | by_hand(
        "floor((80 * 2**30 - 2 * 8030261248) / 2**32)"
    )


class KeepOrRecompute(Claims):
    """Problem 4: chunk the loss and keep the layers."""

    capacity = hardware.get("h100").memory_capacity
    kept = Activations.kept.to("GiB")
    logits = Activations.logits.to("GiB")
    with_logits = kept + logits | by_hand("34 GiB + 8192 * 128256 * 10 byte")
    two = (2 * kept).to("GiB") | by_hand("2 * 34 GiB")
