"""Claims of the look-up page "Models"."""

from __future__ import annotations

from calc import formats, models, transformer
from calc.core.units import quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, show

LONG = 32_768
"""Tokens at which caches and operations are compared."""


def _size_row(key: str) -> Row:
    """Return its parameters by kind, and their memory if all are stored in one format."""
    model = models.get(key)
    sizes = [
        show((model.parameters * formats.get(form).size / quantity("1 param")).to("GB"), "GB", 3)
        for form in ("bf16", "fp8-e4m3", "nvfp4")
    ]
    counts = [
        show((count / quantity("1e9 param")).to(""), digits=3)
        for count in (model.parameters, model.active_parameters)
    ]
    return (model.name, model.year, *counts, model.layers, *sizes)


def _token_row(key: str) -> Row:
    """Return the costs of a token: operations without and with a long context, and cache."""
    model = models.get(key)
    work = [transformer.forward_flops(model, context) for context in (0, LONG)]
    each = transformer.kv_cache_per_token(model)
    caches = [
        transformer.kv_cache(model, LONG, element).to("GB") for element in ("2 byte", "1 byte")
    ]
    return (
        model.name,
        *(show(operations, "GFLOP/token", 3) for operations in work),
        show(each, "kB/token", 3),
        *(show(cache, "GB", 2) for cache in caches),
        show(transformer.state_memory(model), "MB", 2)
        if model.caching_layers < model.layers
        else None,
        model.context // 1024,
    )


class ModelTables(Claims):
    """Published models, the newest first."""

    keys = (
        *("kimi-k3", "glm-5-2", "minimax-m3", "nemotron-3-ultra-550b-a55b"),
        *("nemotron-3-super-120b-a12b", "qwen-3-5-397b-a17b", "qwen-3-5-122b-a10b"),
        *("qwen-3-5-35b-a3b", "qwen-3-5-27b", "gemma-4-31b", "gemma-4-26b-a4b", "kimi-k2-5"),
        *("deepseek-v3-2", "mimo-v2-flash", "minimax-m2", "nemotron-3-nano-30b-a3b"),
        *("nemotron-nano-9b-v2", "granite-4-h-small", "qwen-3-next-80b-a3b", "gpt-oss-120b"),
        *("gpt-oss-20b", "glm-4-5", "glm-4-5-air", "qwen-3-235b-a22b", "qwen-3-30b-a3b"),
        *("qwen-3-32b", "qwen-3-8b", "llama-4-maverick", "llama-4-scout", "gemma-3-27b"),
        *("mistral-small-3", "deepseek-v3", "llama-3-1-70b", "llama-3-1-8b", "llama-3-405b"),
        *("qwen-2-5-72b", "qwen-2-5-7b", "mixtral-8x22b"),
    )
    long = LONG | by_hand("2**15")

    size_header = (
        *("Model", "Year", "Parameters (10⁹)", "Active (10⁹)", "Layers"),
        *("in BF16", "in FP8", "in NVFP4"),
    )
    token_header = (
        *("Model", "Work", "at 32k", "Cache, BF16", "of 32k, BF16", "of 32k, FP8"),
        *("States", "Context (2¹⁰)"),
    )
    size_rows: Rows = tuple(map(_size_row, keys)) | row_by_hand(
        "DeepSeek-V3 | 2024 | 671 | 37.6 | 61 | 1340 GB | 671 GB | 377 GB"
    )
    token_rows: Rows = tuple(map(_token_row, keys)) | row_by_hand(
        "Llama 3.1 70B | 139 GFLOP/token | 225 GFLOP/token | 328 kB/token | 11 "
        "GB | 5.4 GB | – | 128"
    )
