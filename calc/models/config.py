"""A model from its Hugging Face `config.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calc.core.errors import InputError, abbreviated
from calc.core.units import quantity
from calc.models.architecture import BIASES, Transformer

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
    but the file.

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
    config = _read(Path(path))
    family = config.get("model_type")
    if family not in FAMILIES:
        raise InputError(
            f"{path}: its model_type must be one of {', '.join(FAMILIES)};"
            f" got {abbreviated(family)}"
        )
    if family == "llama" and "num_attention_heads" in config:  # the first ones have no groups
        config.setdefault("num_key_value_heads", config["num_attention_heads"])
    if missing := [name for name in FAMILIES[family].values() if config.get(name) is None]:
        raise InputError(f"{path}: a configuration of {family} must have {', '.join(missing)}")
    counts = {
        ours: _count(path, config, theirs)
        for ours, theirs in (FAMILIES[family] | {"head_width": "head_dim"}).items()
        if config.get(theirs) is not None
    }
    if "head_width" not in counts:
        counts["head_width"], rest = divmod(counts["width"], counts["heads"])
        if rest:
            raise InputError(
                f"{path}: without a head_dim, its num_attention_heads ({counts['heads']}) must"
                f" divide its hidden_size ({counts['width']})"
            )
    if family == "gemma2":
        counts["norms"] = 4
    return Transformer(
        key=Path(path).stem,
        name=str(path),
        year=None,
        gated=True,
        norm="rms",
        biases=tuple(_biases(family, config)),
        output="tied"
        if config.get("tie_word_embeddings", family in ("gemma", "gemma2"))
        else "own",
        **{name: quantity(count, "1") for name, count in counts.items()},
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # of the text's encoding, or of JSON
        raise InputError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise InputError(
            f"{path}: must hold a JSON object, as config.json does; got {abbreviated(config)}"
        )
    return config


def _count(path: str | Path, config: dict[str, Any], name: str) -> int:
    count = config[name]
    if type(count) is not int or count < 1:
        raise InputError(f"{path}: {name} must be a whole number above 0; got {abbreviated(count)}")
    return count


def _biases(family: str, config: dict[str, Any]) -> Iterator[str]:
    qkv, attention_output, feed_forward, _ = BIASES
    if family == "qwen2" or config.get("attention_bias"):
        yield qkv
    if config.get("attention_bias"):
        yield attention_output
    if config.get("mlp_bias"):
        yield feed_forward
