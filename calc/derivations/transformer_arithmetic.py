"""What the chapter "Transformer arithmetic" quotes."""

from __future__ import annotations

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
from calc.derivations.quoting import Row, Rows
from calc.laws.attention import attention_flops, causal_context


class ModelParts:
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

    feed_forward_share = (llama.parts["feed-forward"] / llama.parameters).to("%")
    llama_counted = models.get("llama-3-1-70b").parameters
    mixture_counted = models.get("qwen-3-235b-a22b").parameters
    mixture_active = models.get("qwen-3-235b-a22b").active_parameters

    @classmethod
    def row(cls, key: str) -> Row:
        """Billions of parameters by part, counted and active."""
        model = models.get(key)
        parts = {name: part.m_as("param") / 1e9 for name, part in model.parts.items()}
        tables = parts["embedding"] + parts.get("output", 0)
        inside = parts["attention"], parts["feed-forward"] + parts.get("router", 0)
        counts = model.parameters, model.active_parameters
        return model.name, tables, *inside, *(count.m_as("param") / 1e9 for count in counts)


class LlamaToken:
    """A token costs two operations for each weight, and more for each position it looks at."""

    llama = models.get("llama-3-8b")
    length = llama.context
    long_length = 131072

    context = causal_context(length)
    multiplied = llama.multiplied_parameters
    forward = transformer.forward_flops(llama)
    step = forward + transformer.backward_flops(llama)
    passes = (step / forward).to("")
    attention = transformer.forward_flops(llama, context) - forward
    share = (attention / forward).to("%")
    long_attention = attention_flops(
        causal_context(long_length),
        llama.layers,
        llama.heads,
        llama.key_width,
        llama.head_value_width,
    )
    long_ratio = (long_attention / forward).to("")
    times_as_long = (quantity(long_length, "") / length).to("")
    times_as_slow = ((forward + long_attention) / (forward + attention)).to("")


class Crossover:
    """Attention equals the projections at tens of thousands of positions, or a few thousand."""

    llama = transformer.crossover_context(models.get("llama-3-8b"))
    deepseek = transformer.crossover_context(models.get("deepseek-v3"))
    largest = transformer.crossover_context(models.get("llama-3-405b"))


class OtherCounts:
    """One model's training has as many counts as there are conventions."""

    model = models.get("deepseek-v3")
    length = 4096
    printed = quantity("250 GFLOP/token")

    half = causal_context(length)
    causal = transformer.forward_flops(model, half) + transformer.backward_flops(model, half)
    full = transformer.forward_flops(model, length) + transformer.backward_flops(model, length)
    active = training.training_flops(model.active_parameters, 1) / quantity("1 token")
    all_experts = training.training_flops(model.parameters, 1) / quantity("1 token")


class Products:
    """Reading a prompt is bound by compute, writing an answer by memory, whatever the model."""

    llama = models.get("llama-3-8b")
    h100 = hardware.get("h100")
    length = 4096
    context = 4096
    sequences = 64
    element = quantity("2 byte")

    ridge = h100.ridge_point("bf16")
    prefill = transformer.prefill_matmuls(llama, length)
    alone = transformer.decode_matmuls(llama, context)
    together = transformer.decode_matmuls(llama, context, sequences)
    names = ("query", "key", "scores", "weighted values", "attention output", "gate", "down")
    group = llama.heads // llama.kv_heads
    scores, weighted = (made for made in prefill if made.name in ("scores", "weighted values"))
    prefill_scores = scores.intensity(element)
    up = next(product for product in together if product.name == "up")
    up_together = up.intensity(element)
    critical_batch = roofline.critical_batch(ridge, up.k, up.n, element)
    # Fused, the scores stay on the chip: queries, keys, values and results pass once.
    fused_operations = scores.operations + weighted.operations
    fused_traffic = (
        2 * length * (llama.heads + llama.kv_heads) * llama.head_width * llama.layers * element
    )
    prefill_fused = roofline.arithmetic_intensity(fused_operations, fused_traffic)

    @classmethod
    def rows(cls) -> Rows:
        """Shape and intensity of each product of a layer, reading, writing alone and together."""
        return [
            (
                read.name,
                *(int(side) for side in (read.m, many.m, read.n, read.k)),
                *(product.intensity(cls.element).magnitude for product in (read, one, many)),
            )
            for read, one, many in zip(cls.prefill, cls.alone, cls.together, strict=True)
            if read.name in cls.names
        ]


class BatchOfDecodes:
    """A batch lifts the weights' intensity to the ridge, and leaves that of the cache alone."""

    context = 4096
    most = 4096
    few = 32
    mixture = models.get("deepseek-v3")
    experts = mixture.experts
    active_experts = mixture.active_experts

    products = transformer.decode_matmuls(mixture, context, few)
    expert = next(product for product in products if product.name == "expert up")
    expert_intensity = expert.intensity(Products.element)

    @classmethod
    def intensity(cls, key: str, name: str, sequences: QuantityLike) -> Quantity:
        """Of one product of a model, by how many sequences are written at a time."""
        products = transformer.decode_matmuls(models.get(key), cls.context, sequences)
        matmul = next(product for product in products if product.name == name)
        return matmul.intensity(Products.element)

    @classmethod
    def attention_intensity(cls, key: str) -> Quantity:
        """Of attention as one fused kernel: queries, results and what is stored pass once."""
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


class FusedDecode:
    """What is stored once for all heads is read once for all of them."""

    latent = BatchOfDecodes.attention_intensity("deepseek-v3")


class Caches:
    """Sharing keys, storing latents and shorter numbers each divide the cache."""

    keys = (
        *("llama-3-8b", "qwen-3-32b", "llama-3-1-70b", "llama-3-405b", "qwen-3-235b-a22b"),
        *("glm-4-5", "deepseek-v3", "kimi-k2-5"),
    )
    group = 64

    quantized = quantization.bytes_per_parameter("4 bit/param", group) * quantity("1 param")
    llama = transformer.kv_cache_per_token(models.get("llama-3-8b"))
    llama_of_all_heads = caches.kv_bytes_per_token(
        LlamaToken.llama.layers, LlamaToken.llama.heads, 128, 128, "2 byte"
    )
    llama_of_one_head = caches.kv_bytes_per_token(LlamaToken.llama.layers, 1, 128, 128, "2 byte")
    deepseek = transformer.kv_cache_per_token(models.get("deepseek-v3"))
    deepseek_of_all_heads = caches.kv_bytes_per_token(61, 128, 192, 128, "2 byte")
    deepseek_saving = (deepseek_of_all_heads / deepseek).to("")
    ratio = (transformer.kv_cache_per_token(models.get("llama-3-405b")) / deepseek).to("")

    @classmethod
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


class Activations:
    """What frees activations today, from what costs nothing to a second forward pass."""

    model = models.get("llama-3-8b")
    length = model.context
    mfu = quantity(40, "%")
    device = hardware.get("h100")

    scores = transformer.activation_memory(model, length) - transformer.activation_memory(
        model, length, recomputation="selective"
    )
    kept = transformer.activation_memory(model, length, recomputation="selective").to("GB")
    inputs = transformer.activation_memory(model, length, recomputation="full").to("GB")
    logits = layers.loss_memory(length, model.vocabulary).to("GB")
    numbers = quantity("2 byte") * length * model.layers
    # Outputs of both norms, and the product of gate and up: made again without a GEMM.
    cheap = (numbers * (2 * model.width + model.feed_forward_width)).to("GB")
    # Inputs of all GEMMs (norms', attention's, the product), kept in a byte where they run in FP8.
    narrowed = (numbers * (3 * model.width + model.feed_forward_width) / 2).to("GB")
    full_work = quantity(1 / 3, "1").to("%")
    context = LlamaToken.context
    forward = transformer.forward_flops(model, context) * quantity(length, "token")

    link = (constants.bandwidth_pcie5_lane * constants.lanes_pcie_x16).to("GB/s")
    offload = (kept / link).to("s")
    of_forward = (forward / (device.peak("bf16") * mfu)).to("s")
    hidden = (of_forward / offload).to("%")

    rows: Rows = (
        ("attention fused: no scores", scores.to("GB"), "next to nothing: every stack does it"),
        ("loss in chunks, or fused", logits, "nothing"),
        ("outputs of norms and gates made again", cheap, "no GEMM; memory traffic"),
        ("inputs of GEMMs in FP8", narrowed, "nothing, if they run in FP8 anyway"),
        ("offload to the host", kept, "the host link, both ways"),
        ("recompute whole layers", (kept - inputs).to("GB"), "a second forward pass"),
    )


class TrainingBudget:
    """Problem 1: the published work of a training, from the architecture."""

    model = models.get("llama-3-405b")
    run = runs.get("llama-3-1-405b")
    tokens = run.tokens
    reported = run.work
    length = 8192

    context = causal_context(length)
    step = 3 * transformer.forward_flops(model, context)
    work = (step * tokens).to("FLOP")
    without = (3 * transformer.forward_flops(model) * tokens).to("FLOP")
    by_total = training.training_flops(model.parameters, tokens)
    attention_share = (1 - without / work).to("%")


class LlamaConversations:
    """Problem 2: how many conversations fit beside the weights."""

    model = models.get("llama-3-8b")
    capacity = hardware.get("h100").memory_capacity
    length = quantity("8192 token")

    weights = (model.parameters * quantity("2 byte/param")).to("GB")
    left = (capacity - weights).to("GB")
    weights_share = (weights / capacity).to("%")
    each = (Caches.llama * length).to("GB")
    held = (left / each).to("") // 1
    of_all_heads = (Caches.llama_of_all_heads * length).to("GB")
    held_of_all_heads = (left / of_all_heads).to("") // 1


class KeepOrRecompute:
    """Problem 4: chunk the loss and keep the layers."""

    capacity = hardware.get("h100").memory_capacity
    kept = Activations.kept.to("GiB")
    logits = Activations.logits.to("GiB")
    with_logits = kept + logits
    two = (2 * kept).to("GiB")
