"""What the section on attention that is not full quotes, in "Transformer arithmetic"."""

from __future__ import annotations

from calc import attention, models, transformer
from calc.catalog.models import Transformer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.quoting import Row

A_TOKEN = quantity("1 token")


class Kept:
    """A window, a latent or a state in most layers divides what a long conversation keeps."""

    keys = (
        "llama-3-1-8b",
        "gemma-3-27b",
        "gpt-oss-120b",
        "deepseek-v3",
        "deepseek-v3-2",
        "qwen-3-next-80b-a3b",
        "granite-4-h-small",
        "nemotron-nano-9b-v2",
        "jamba-v0-1",
    )
    kinds = ("full", "window", "latent", "sparse", "linear", "state")
    short = 8192
    long = 131072

    gemma = models.get("gemma-3-27b")
    windowed = gemma.layers_with("window")
    full = gemma.layers_with("full")
    window = gemma.window
    gemma_long = transformer.kv_cache(gemma, long).to("GiB")
    gemma_all_full = (transformer.kv_cache_per_token(gemma) * long * A_TOKEN).to("GiB")

    @classmethod
    def row(cls, key: str) -> Row:
        """A model, its layers, what a token and a sequence add, and both at two lengths."""
        model = models.get(key)
        layers = ((kind, model.layers_with(kind)) for kind in cls.kinds)
        state = transformer.state_memory(model).m_as("MiB")
        return (
            model.name,
            ", ".join(f"{count} {kind}" for kind, count in layers if count),
            transformer.kv_cache_per_token(model).m_as("KiB/token"),
            state or None,
            *(
                transformer.kv_cache(model, context).m_as("GiB")
                for context in (cls.short, cls.long)
            ),
        )


class CacheGrowth:
    """A cache grows with the context, but for what windows forget and states never keep."""

    keys = (
        "llama-3-1-8b",
        "gpt-oss-120b",
        "deepseek-v3",
        "qwen-3-next-80b-a3b",
        "nemotron-nano-9b-v2",
    )
    shortest = 100
    longest = Kept.long

    @staticmethod
    def at(model: Transformer, context: QuantityLike) -> Quantity:
        return transformer.kv_cache(model, context).to("MiB")


class OneState:
    """A layer with a state moves it twice, whatever the context; short ones are cheaper to keep."""

    model = models.get("qwen-3-next-80b-a3b")
    layers = model.layers_with("linear")
    all_states = transformer.state_memory(model).to("MiB")
    state = attention.state_memory(1, 32, 128, 128).to("MiB")
    intensity = attention.recurrence_intensity(products=3)
    cached = (transformer.kv_cache_per_token(model) / model.layers_with("full")).to("KiB/token")
    same_traffic = (2 * state / cached).to("token")
    of_full_layers = cached * model.layers * A_TOKEN * Kept.long
    share = (transformer.kv_cache(model, Kept.long) / of_full_layers).to("%")


class Chosen:
    """An indexer looks at all positions, cheaply, so that attention looks at a few."""

    length = 100_000
    dense = models.get("deepseek-v3")
    model = models.get("deepseek-v3-2")
    selected = model.index_topk

    index = attention.index_flops(length, 61, 64, 128)
    attended = transformer.attention_flops(2048, 61, 128, 512 + 64, 512)
    work = (index + attended).to("GFLOP/token")
    full = transformer.attention_flops(length, 61, 128, 512 + 64, 512).to("GFLOP/token")
    read = transformer.cache_read(model, length).to("GB")
    full_read = transformer.cache_read(dense, length).to("GB")
    kept_share = transformer.kv_cache(model, length) / transformer.kv_cache(dense, length)


def _absorbed(model: Transformer, context: int) -> Quantity:
    """Operations of a token that is written with its matrices absorbed."""
    products = transformer.decode_matmuls(model, context)
    total: Quantity = (
        sum((product.operations for product in products), quantity("0 FLOP")) / A_TOKEN
    )
    return total


class TwoForms:
    """Latent attention multiplies in one of two orders: few queries absorb, many expand."""

    model = models.get("deepseek-v3")
    latent = quantity(512, "")
    long_context = Chosen.length
    absorbed_width = 2 * latent + 64
    expanded_width = quantity(128 + 64 + 128, "")
    more_work = (absorbed_width / expanded_width).to("")
    more_bytes = 128 * expanded_width / (latent + 64)

    crossover = attention.latent_crossover(long_context, latent, 128, 128)

    dense_expanded = transformer.forward_flops(model, long_context)
    dense_absorbed = _absorbed(model, long_context)


class GemmaByHand:
    """Problem: what 128K of Gemma 3 27B take, by hand and as a program allocates them."""

    model = models.get("gemma-3-27b")
    length = Kept.long
    groups = model.kv_heads
    head = model.head_width
    all_of_it = Kept.gemma_long
    without = Kept.gemma_all_full
    # Global layers, and those with windows, whose cells are filled a batch at a time.
    allocated = (quantity("10240 MiB") + quantity("442 MiB")).to("GiB")
    error = (all_of_it / allocated - 1).to("%")
