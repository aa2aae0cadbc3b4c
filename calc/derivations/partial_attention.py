"""Claims of the section on attention that is not full, in "Transformer arithmetic"."""

from __future__ import annotations

from calc import attention, models, transformer
from calc.core.units import quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row

A_TOKEN = quantity("1 token")


class Kept(Claims):
    """A window, a latent or a state in most layers divides what a long conversation keeps."""

    keys = (
        *("llama-3-1-8b", "gemma-3-27b", "gpt-oss-120b", "deepseek-v3", "deepseek-v3-2"),
        *("qwen-3-next-80b-a3b", "granite-4-h-small", "nemotron-nano-9b-v2", "jamba-v0-1"),
    )
    kinds = ("full", "window", "latent", "sparse", "linear", "state")
    short = 8192 | by_hand("8192")
    long = 131072 | by_hand("131072")

    gemma = models.get("gemma-3-27b")
    windowed = gemma.layers_with("window") | by_hand("62 - 10")
    full = gemma.layers_with("full") | by_hand("floor(62 / 6)")
    gemma_long = transformer.kv_cache(gemma, long).to("GiB") | by_hand(
        "(10 * 131072 + 52 * 1024) * 8 KiB"
    )
    gemma_all_full = (transformer.kv_cache_per_token(gemma) * long * A_TOKEN).to("GiB") | by_hand(
        "62 * 131072 * 8 KiB"
    )

    @classmethod
    @row_by_hand("Nemotron Nano 9B v2 | 4 full, 27 state | 16 | 136.9 | 0.2587 | 2.134")
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


class OneState(Claims):
    """A layer with a state moves it twice, whatever the context; short ones are cheaper to keep."""

    model = models.get("qwen-3-next-80b-a3b")
    layers = model.layers_with("linear") | by_hand("48 * 3 / 4")
    all_states = transformer.state_memory(model).to("MiB") | by_hand(
        "36 * (32 * 128 * 128 * 4 + 8192 * 3 * 2) * 1 byte"
    )
    state = attention.state_memory(1, 32, 128, 128).to("MiB") | by_hand("32 * 128 * 128 * 4 bytes")
    intensity = attention.recurrence_intensity(products=3) | by_hand("(3 * 2 / (2 * 4)) FLOP/byte")
    cached = (transformer.kv_cache_per_token(model) / model.layers_with("full")).to("KiB/token")
    same_traffic = (2 * state / cached).to("token") | by_hand("(4 / 2 * 2 * 256 * 2) token")
    of_full_layers = cached * model.layers * A_TOKEN * Kept.long
    share = (transformer.kv_cache(model, Kept.long) / of_full_layers).to("%") | by_hand(
        "(3 GiB + {all_states}) / 12 GiB"
    )


class Chosen(Claims):
    """An indexer looks at all positions, cheaply, so that attention looks at a few."""

    length = 100_000 | by_hand("100000")
    dense = models.get("deepseek-v3")
    model = models.get("deepseek-v3-2")
    selected = model.index_topk | by_hand("2048", "index_topk of its config.json")

    read = transformer.cache_read(model, length).to("GB") | by_hand(
        "61 * (2048 * 1152 + 100000 * 132) * 1 byte"
    )
    full_read = transformer.cache_read(dense, length).to("GB") | by_hand("61 * 1152 * 100000 bytes")
    kept_share = transformer.kv_cache(model, length) / transformer.kv_cache(
        dense, length
    ) | by_hand("(1152 + 132) / 1152")
