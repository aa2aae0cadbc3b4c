"""Parameters of the encoder of images that a configuration describes beside its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calc.catalog.models.config import Config, known

PART = "vision_config"
Sizes = Mapping[str, int]


def parameters(config: Config) -> int | None:
    """Return the parameters of the encoder, of a kind that is known, or None.

    What has no entry here, or lacks a number, is told by the notes of the configuration.
    """
    encoder = config.get(PART)
    kind = (
        str(encoder.get("model_type")).removesuffix("_vision") if isinstance(encoder, dict) else ""
    )
    if isinstance(encoder, dict) and kind in ENCODERS:
        usual: dict[str, int] = known()["encoders"][USUAL.get(kind, kind)]
        sizes = {name: encoder.get(name, size) for name, size in usual.items()}
        listed = encoder.get("deepstack_visual_indexes") or ()
        if all(type(size) is int and 0 < size <= 2**20 for size in sizes.values()):
            sizes["taken"] = len(listed) if isinstance(listed, list) else 0
            return ENCODERS[kind](sizes)
    config.leave(PART)
    return None


def _qwen2_5(sizes: Sizes) -> int:
    """Blocks with a gate, two RMS norms, and biases; what joins patches has one more norm."""
    width, hidden = sizes["hidden_size"], sizes["intermediate_size"]
    block = 2 * width + 4 * (width + 1) * width  # norms; queries, keys, values and output
    block += 2 * (width + 1) * hidden + (hidden + 1) * width
    return _patches(sizes) + sizes["depth"] * block + width + _merger(sizes)


def _qwen3(sizes: Sizes) -> int:
    """Blocks without a gate, layer norms, learned positions, and several that join patches."""
    width, hidden = sizes["hidden_size"], sizes["intermediate_size"]
    block = 4 * width + 4 * (width + 1) * width + (width + 1) * hidden + (hidden + 1) * width
    stored = (sizes["num_position_embeddings"] + 1) * width  # and the biases of the patches
    joined = sizes["spatial_merge_size"] ** 2 * width
    mergers = (1 + sizes["taken"]) * _merger(sizes) + 2 * width + sizes["taken"] * 2 * joined
    return _patches(sizes) + stored + sizes["depth"] * block + mergers


def _patches(sizes: Sizes) -> int:
    """The matrix that reads a patch of several images in turn."""
    pixels = sizes["temporal_patch_size"] * sizes["patch_size"] ** 2
    return sizes["in_channels"] * pixels * sizes["hidden_size"]


def _merger(sizes: Sizes) -> int:
    """Two matrices that make one vector of the text's width of neighbouring patches."""
    joined = sizes["spatial_merge_size"] ** 2 * sizes["hidden_size"]
    return (joined + 1) * joined + (joined + 1) * sizes["out_hidden_size"]


ENCODERS: dict[str, Callable[[Sizes], int]] = {
    "qwen2_5_vl": _qwen2_5,
    "qwen3_vl": _qwen3,
    "qwen3_vl_moe": _qwen3,
    "qwen3_5": _qwen3,
    "qwen3_5_moe": _qwen3,
}
USUAL = dict.fromkeys(("qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"), "qwen3_vl")
"""Encoders that have the usual numbers of another."""
