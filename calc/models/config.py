"""A model from its Hugging Face `config.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from calc.core.errors import InputError, abbreviated
from calc.core.files import read_text
from calc.models.architecture import BIASES, Transformer, from_shape

COUNTS = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "vocabulary": "vocab_size",
    "context": "max_position_embeddings",
}
DENSE = COUNTS | {"feed_forward_width": "intermediate_size"}
WITH_HEAD_WIDTH = DENSE | {"head_width": "head_dim"}
EXPERTS = COUNTS | {
    "expert_width": "intermediate_size",
    "experts": "num_local_experts",
    "active_experts": "num_experts_per_tok",
}
NOT_READ = {  # what changes parameters or their size, and what to do about it
    "quantization_config": 'take it out, and give the format of the weights, weights="int4"',
    **dict.fromkeys(
        (
            *("kv_lora_rank", "q_lora_rank", "n_routed_experts", "n_shared_experts"),
            *("moe_intermediate_size", "shared_expert_intermediate_size", "block_configs"),
            *("vision_config", "text_config", "cross_attention_layers", "num_kv_shared_layers"),
        ),
        "describe the model by models.from_shape",
    ),
}
KINDS = {"full_attention", "sliding_attention"}
FAMILIES = {  # what a configuration of each family must give, by our names
    "llama": DENSE,
    "mistral": DENSE,
    "qwen2": DENSE,
    "gemma": WITH_HEAD_WIDTH,
    "gemma2": WITH_HEAD_WIDTH,
    "mixtral": EXPERTS,
}


def from_config(path: str | Path) -> Transformer:
    """The model that a Hugging Face `config.json` describes.

    Reads the families llama, mistral, qwen2, gemma, gemma2 and mixtral. Its numbers have no source
    but the file. What would change them and is not read is refused by name; a window of attention
    is counted where its layers are known, and the model's `notes` say where they are not.

    >>> import json
    >>> from tempfile import TemporaryDirectory
    >>> config = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    ...           "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    ...           "intermediate_size": 14336, "max_position_embeddings": 8192}
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "config.json"
    ...     _ = path.write_text(json.dumps(config))
    ...     model = from_config(path)
    >>> print(model.parameters)
    8.030B param
    """
    config = _read(path)
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise InputError(
            f"{path}: its model_type must be one of {', '.join(FAMILIES)};"
            f" got {abbreviated(family)}"
        )
    if family == "llama" and "num_attention_heads" in config:  # the first ones have no groups
        config.setdefault("num_key_value_heads", config["num_attention_heads"])
    if missing := [name for name in FAMILIES[family].values() if config.get(name) is None]:
        raise InputError(f"{path}: a configuration of {family} must have {', '.join(missing)}")
    for name, hint in NOT_READ.items():
        if config.get(name):
            raise InputError(f"{path}: {name} is not read, and would change the answer: {hint}")
    counts = {
        ours: _count(path, config, theirs)
        for ours, theirs in (FAMILIES[family] | {"head_width": "head_dim"}).items()
        if config.get(theirs) is not None
    }
    if family == "gemma2":
        counts["norms"] = 4
    window = _window(path, config, counts["context"])
    windowed = _windowed_layers(path, family, config) if window else None
    if windowed:
        full = counts["layers"] - windowed
        counts["window"] = window
        counts["attention"] = (f"{windowed} window", *([f"{full} full"] if full else []))
    tied = _flag(path, config, "tie_word_embeddings", family in ("gemma", "gemma2"))
    return from_shape(
        **counts,
        key=Path(path).stem,
        name=str(path),
        biases=tuple(_biases(path, family, config)),
        output="tied" if tied else "own",
        notes=tuple(_notes(window, windowed)),
    )


def _read(path: str | Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        config = json.loads(text, object_pairs_hook=partial(_once_each, path))
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise InputError(
            f"{path}: must hold a JSON object, as config.json does; got {abbreviated(config)}"
        )
    return config


def _once_each(path: str | Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: JSON itself would keep the last of equal ones."""
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{path}: {twice[0]} is there {names.count(twice[0])} times")
    return dict(pairs)


def _flag(path: str | Path, config: dict[str, Any], name: str, default: bool) -> bool:
    value = config.get(name)
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{path}: {name} must be true or false; got {abbreviated(value)}")
    return default if value is None else value


def _window(path: str | Path, config: dict[str, Any], context: int) -> int:
    """The positions of a window that is in use and shorter than the context; 0 without one."""
    used = _flag(path, config, "use_sliding_window", config["model_type"] != "qwen2")
    if config.get("sliding_window") is None or not used:
        return 0
    window = _count(path, config, "sliding_window")
    return window if window < context else 0


def _windowed_layers(path: str | Path, family: str, config: dict[str, Any]) -> int | None:
    """How many layers have the window: as they are listed, or as the family places it."""
    layers = config["num_hidden_layers"]
    kinds = config.get("layer_types")
    if kinds is not None:
        if not isinstance(kinds, list) or len(kinds) != layers or {*map(str, kinds)} - KINDS:
            raise InputError(
                f"{path}: layer_types must list {' or '.join(sorted(KINDS))} for each of its"
                f" {layers} layers; got {abbreviated(kinds)}"
            )
        return kinds.count("sliding_attention")
    if family == "qwen2":
        first = config.get("max_window_layers")
        return None if first is None else max(layers - _count(path, config, "max_window_layers"), 0)
    return {"mistral": layers, "mixtral": layers, "gemma2": (layers + 1) // 2}.get(family)


def _notes(window: int, windowed: int | None) -> Iterator[str]:
    if window and windowed is None:
        yield (
            f"its sliding_window of {window} tokens is not counted, and every layer looks at the"
            " whole context"
        )


def _count(path: str | Path, config: dict[str, Any], name: str) -> int:
    count = config[name]
    if type(count) is not int or count < 1:
        raise InputError(f"{path}: {name} must be a whole number above 0; got {abbreviated(count)}")
    return count


def _biases(path: str | Path, family: str, config: dict[str, Any]) -> Iterator[str]:
    qkv, attention_output, feed_forward, *_ = BIASES
    attention = _flag(path, config, "attention_bias", False)
    if family == "qwen2" or attention:
        yield qkv
    if attention:
        yield attention_output
    if _flag(path, config, "mlp_bias", False):
        yield feed_forward
