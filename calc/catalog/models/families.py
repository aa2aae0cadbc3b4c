"""A model from its Hugging Face `config.json`: what the families of models call their numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from calc.catalog.models.architecture import Transformer, from_shape
from calc.catalog.models.config import Config
from calc.core.errors import abbreviated

Fields = dict[str, Any]
LAYERS = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
    "context": "max_position_embeddings",
}
GROUPS = LAYERS | {"kv_heads": "num_key_value_heads"}
DENSE = GROUPS | {"feed_forward_width": "intermediate_size"}
HEAD = {"head_width": "head_dim"}
ROUTED = {"active_experts": "num_experts_per_tok"}
LATENT = {
    "head_width": "qk_nope_head_dim",
    "query_latent": "q_lora_rank",
    "kv_latent": "kv_lora_rank",
    "rotary_width": "qk_rope_head_dim",
    "value_width": "v_head_dim",
}
WINDOWED = {"full_attention": "full", "sliding_attention": "window"}
NEMOTRON = {"M": "state", "*": "full", "-": "dense", "E": "experts"}
NEMOTRON_BLOCKS = {"mamba": "state", "attention": "full", "mlp": "dense", "moe": "experts"}


def load(path: str | Path) -> Transformer:
    """The model that a Hugging Face `config.json` describes.

    Its model_type is one of `FAMILIES`, and its numbers have no source but the file. What would
    change them and is not read is refused by name; what is not counted, and keys that are not
    known, are named in the model's `notes`.

    >>> import json
    >>> from tempfile import TemporaryDirectory
    >>> config = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
    ...           "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    ...           "intermediate_size": 14336, "max_position_embeddings": 8192}
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "config.json"
    ...     _ = path.write_text(json.dumps(config))
    ...     model = load(path)
    >>> print(model.parameters)
    8.030B param
    """
    config = Config(path)
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise config.error(
            f"its model_type must be one of {', '.join(FAMILIES)}; got {abbreviated(family)}"
        )
    tied = config.flag("tie_word_embeddings", family.startswith(("gemma", "gpt2")))
    numbers: Fields = {"output": "tied" if tied else "own", "biases": (), "notes": ()}
    numbers |= FAMILIES[family](config)
    numbers["notes"] = (*numbers["notes"], *config.notes())
    return from_shape(key=Path(path).stem, name=str(path), **numbers)


def _dense(config: Config, *windows: str, names: Fields = DENSE) -> Fields:
    """Attention and one feed-forward network a layer, as in Llama."""
    shape: Fields = config.counts(names)
    if "head_width" not in names and config.get("head_dim") is not None:
        shape["head_width"] = config.count("head_dim")
    biases = ["qkv", "attention output"] if config.flag("attention_bias") else []
    biases += ["feed-forward"] if config.flag("mlp_bias") else []
    return shape | {"biases": tuple(biases)} | _windows(config, shape, windows)


def _windows(config: Config, shape: Fields, pattern: tuple[str, ...]) -> Fields:
    """Kinds of attention: as the layers are listed, or as the family places its windows."""
    used = config.flag("use_sliding_window", config.get("model_type") not in ("qwen2", "qwen3"))
    window = config.count("sliding_window") if config.get("sliding_window") is not None else 0
    listed = not config.is_read("layer_types")  # by a family that has other kinds
    kinds = config.kinds("layer_types", WINDOWED) if listed else None
    first = config.get("max_window_layers")
    if not used or not 0 < window < shape["context"]:
        return {}
    if kinds is None and first is not None:
        first, layers = config.count("max_window_layers", least=0), shape["layers"]
        kinds = ["full"] * min(first, layers) + ["window"] * max(layers - first, 0)
    if kinds is None and not pattern:
        note = f"its sliding_window of {window} tokens is not counted, and every layer looks at"
        return {"notes": (f"{note} the whole context",)}
    attention = tuple(kinds or pattern)
    return {"attention": attention, "window": window} if "window" in attention else {}


def _llama(config: Config) -> Fields:
    heads = config.get("num_attention_heads")
    if heads is not None and config.get("num_key_value_heads") is None:  # the first have no groups
        shape = _dense(config, names=LAYERS | {"feed_forward_width": "intermediate_size"})
        return shape | {"kv_heads": heads}
    return _dense(config)


def _gpt2(config: Config) -> Fields:
    """Positions of its own, two matrices in each network, biases everywhere, words tied."""
    for name in ("n_ctx", "task_specific_params"):  # the context once more, and lengths of texts
        config.get(name)
    for name in (
        "scale_attn_weights",
        "scale_attn_by_inverse_layer_idx",
        "reorder_and_upcast_attn",
    ):
        config.get(name)  # of how scores are computed
    found: Fields = config.counts(
        {
            "layers": "n_layer",
            "width": "n_embd",
            "heads": "n_head",
            "vocabulary": "vocab_size",
            "context": "n_positions",
        }
    )
    return found | {
        "kv_heads": found["heads"],
        "feed_forward_width": config.count("n_inner", 4 * found["width"]),
        "positions": found["context"],
        "gated": False,
        "norm": "layer",
        "biases": ("qkv", "attention output", "feed-forward"),
    }


def _windowed(config: Config) -> Fields:
    return _dense(config, "window")


def _qwen2(config: Config) -> Fields:
    shape = _dense(config)
    return shape | {"biases": tuple({"qkv": 0} | dict.fromkeys(shape["biases"]))}


def _mixtral(config: Config) -> Fields:
    experts = {"expert_width": "intermediate_size", "experts": "num_local_experts"}
    return _dense(config, "window", names=GROUPS | experts | ROUTED)


def _gemma(config: Config) -> Fields:
    return _dense(config, names=DENSE | HEAD)


def _gemma2(config: Config) -> Fields:
    return _dense(config, "window", "full", names=DENSE | HEAD) | {"norms": 4}


def _gemma3(config: Config) -> Fields:
    every = config.count("sliding_window_pattern", 6)
    pattern = ["window"] * (every - 1) + ["full"]
    return _dense(config, *pattern, names=DENSE | HEAD) | {"norms": 4, "qk_norm": "head"}


def _gemma4(config: Config) -> Fields:
    """Layers with a window, and every so often one without, which has other heads."""
    config.must_be("hidden_size_per_layer_input", 0)
    config.must_be("num_kv_shared_layers", 0)
    config.must_be("use_double_wide_mlp", False)
    shared = config.flag("attention_k_eq_v")
    narrow = GROUPS | {"window_head_width": "head_dim", "window_kv_heads": "num_key_value_heads"}
    if not config.flag("enable_moe_block"):
        names = narrow | {"feed_forward_width": "intermediate_size"}
        shape = _dense(config, *["window"] * 5, "full", names=names | {"head_width": "head_dim"})
        shape |= {"norms": 4}
    else:  # the network of all tokens stands beside the experts
        experts = {"expert_width": "moe_intermediate_size", "experts": "num_experts"}
        experts |= {"active_experts": "top_k_experts", "shared_expert_width": "intermediate_size"}
        names = narrow | experts | {"head_width": "head_dim"}
        shape = _dense(config, *["window"] * 5, "full", names=names)
        # Seven normalisations, and what the router's input is multiplied by, number by number.
        shape |= {"norms": 8, "shared_experts": 1, "biases": ("router",)}
    shape["head_width"] = config.count("global_head_dim", shape["head_width"])
    if shared:
        shape["kv_heads"] = config.count("num_global_key_value_heads", shape["kv_heads"])
    return shape | {"qk_norm": "head", "tied_values": ("full",) if shared else ()}


def _mimo_v2(config: Config) -> Fields:
    """Layers with a short window, whose keys and values have more heads, and few without."""
    experts = {"expert_width": "moe_intermediate_size", "experts": "n_routed_experts"}
    widths = {"value_width": "v_head_dim", "window_kv_heads": "swa_num_key_value_heads"}
    widths |= {"window": "sliding_window", "window_heads": "swa_num_attention_heads"}
    config.must_be("topk_method", "noaux_tc")  # whose routers have a bias
    config.must_be("swa_head_dim", config.get("head_dim"))
    config.must_be("swa_v_head_dim", config.get("v_head_dim"))
    for name in ("sliding_window_size", "attention_chunk_size"):
        config.must_be(name, config.get("sliding_window"))
    shape: Fields = config.counts(DENSE | HEAD | experts | ROUTED | widths)
    config.must_be("attention_bias", False)
    listed = {}
    for name in ("hybrid_layer_pattern", "moe_layer_freq"):
        listed[name] = config.kinds(name, {"0": "first", "1": "second"})
    windows, routed = listed["hybrid_layer_pattern"] or (), listed["moe_layer_freq"] or ()
    for name in ("add_swa_attention_sink_bias", "add_full_attention_sink_bias"):
        config.flag(name)
    return shape | {
        "attention": tuple("window" if turn == "second" else "full" for turn in windows),
        "feed_forward": tuple("experts" if turn == "second" else "dense" for turn in routed),
        "biases": ("router",),
        "notes": ("the sinks of its windowed layers, a number for each head, are not counted",),
    }


def _gpt_oss(config: Config) -> Fields:
    experts = {"expert_width": "intermediate_size", "experts": "num_local_experts"}
    config.get("experts_per_token")  # the same once more
    shape = _dense(config, "window", "full", names=GROUPS | HEAD | experts | ROUTED)
    return shape | {"biases": (*shape["biases"], "feed-forward", "router", "sinks")}


def _qwen3(config: Config) -> Fields:
    return _dense(config, names=DENSE | HEAD) | {"qk_norm": "head"}


def _qwen3_moe(config: Config) -> Fields:
    experts = {"expert_width": "moe_intermediate_size", "experts": "num_experts"}
    shape = _dense(config, names=GROUPS | HEAD | experts | ROUTED)
    step, layers = config.count("decoder_sparse_step", 1), range(shape["layers"])
    dense, width = config.get("mlp_only_layers", []), config.count("intermediate_size", 1)
    kinds = ["dense" if i in dense or (i + 1) % step else "experts" for i in layers]
    shape |= {"feed_forward_width": width} if "dense" in kinds else {}
    return shape | {"qk_norm": "head", "feed_forward": tuple(kinds)}


def _gated_delta(config: Config) -> Fields:
    """Layers of linear attention, and every so often one of full attention with a gate."""
    states = {
        "linear_key_heads": "linear_num_key_heads",
        "linear_value_heads": "linear_num_value_heads",
        "linear_key_width": "linear_key_head_dim",
        "linear_value_width": "linear_value_head_dim",
        "convolution": "linear_conv_kernel_dim",
    }
    config.must_be("attn_output_gate", True)
    names = {"linear_attention": "linear", "full_attention": "full"}
    kinds = config.kinds("layer_types", names)
    every = config.count("full_attention_interval", 4)
    pattern = ["linear"] * (every - 1) + ["full"]
    chunk = 64  # of the kernels that it is released with
    numbers = config.counts(states)
    return numbers | {"attention": tuple(kinds or pattern), "gates": ("attention",), "chunk": chunk}


def _qwen3_next(config: Config) -> Fields:
    shared = {"shared_expert_width": "shared_expert_intermediate_size"}
    layers = _gated_delta(config)
    shape = _qwen3_moe(config) | layers | config.counts(shared)
    return shape | {"shared_experts": 1, "gates": ("attention", "shared experts")}


def _qwen3_5(config: Config) -> Fields:
    config.must_be("mlp_only_layers", [])
    layers = _gated_delta(config)
    return _qwen3(config) | layers


def _llama4(config: Config) -> Fields:
    experts = {"expert_width": "intermediate_size", "experts": "num_local_experts"}
    shape = _dense(config, names=GROUPS | HEAD | experts | ROUTED)
    step, layers = config.count("interleave_moe_layer_step", 1), shape["layers"]
    routed = config.get("moe_layers", [*range(step - 1, layers, step)])
    kinds = ["experts" if i in routed else "dense" for i in range(layers)]
    dense = config.count("intermediate_size_mlp")
    shape |= {"feed_forward_width": dense} if "dense" in kinds else {}
    every = config.count("no_rope_layer_interval", 4)
    rotated = config.get("no_rope_layers", [int((i + 1) % every != 0) for i in range(layers)])
    chunks = ["window" if is_rotated else "full" for is_rotated in rotated]
    config.get("use_qk_norm")  # without parameters
    return shape | {
        "shared_experts": 1,
        "feed_forward": tuple(kinds),
        "attention": tuple(chunks),
        "window": config.count("attention_chunk_size"),
    }


def _routed(config: Config, shape: Fields, shared: str = "n_shared_experts") -> Fields:
    """Experts after some first layers that have none, one shared by all tokens."""
    first = config.count("first_k_dense_replace", least=0)
    config.must_be("moe_layer_freq", 1)
    kinds = ["dense"] * first + ["experts"] * (shape["layers"] - first)
    shape |= {"shared_experts": config.count(shared)} if config.get(shared) else {}
    shape["biases"] = (*shape["biases"], "router")
    return shape | {"feed_forward": tuple(kinds)}


def _deepseek_v3(config: Config) -> Fields:
    experts = {"expert_width": "moe_intermediate_size", "experts": "n_routed_experts"}
    shape = _dense(config, names=DENSE | LATENT | experts | ROUTED)
    config.must_be("topk_method", "noaux_tc")  # whose routers have a bias
    return _routed(config, shape) | {"attention": ("latent",)}


def _deepseek_v32(config: Config) -> Fields:
    index = {
        "index_heads": "index_n_heads",
        "index_head_width": "index_head_dim",
        "index_topk": "index_topk",
    }
    return _deepseek_v3(config) | config.counts(index) | {"attention": ("sparse",)}


def _glm_moe_dsa(config: Config) -> Fields:
    """As DeepSeek-V3.2, but for layers that take over what the last one with an index selected."""
    config.get("head_dim")  # of no part by itself
    config.get("qk_head_dim")  # follows from its two parts
    config.kinds("layer_types", {"deepseek_sparse_attention": "sparse"})
    numbers = _deepseek_v32(config)
    kinds = config.kinds("indexer_types", {"full": "sparse", "shared": "following"})
    for name in ("index_topk_freq", "index_skip_topk_offset", "mlp_layer_types"):
        config.get(name)  # which the lists of layers and first_k_dense_replace say too
    return numbers | {"attention": tuple(kinds or ["sparse"])}


def _glm4_moe(config: Config) -> Fields:
    experts = {"expert_width": "moe_intermediate_size", "experts": "n_routed_experts"}
    shape = _dense(config, names=DENSE | HEAD | experts | ROUTED)
    shape["biases"] = tuple(bias for bias in shape["biases"] if bias != "attention output")
    shape |= {"qk_norm": "head"} if config.flag("use_qk_norm") else {}
    return _routed(config, shape)


def _minimax_m2(config: Config) -> Fields:
    experts = {"expert_width": "intermediate_size", "experts": "num_local_experts"}
    shape = _dense(config, names=GROUPS | HEAD | experts | ROUTED)
    config.must_be("shared_intermediate_size", 0)
    config.must_be("qk_norm_type", "per_layer")
    for name in ("mtp_transformer_layers", "num_mtp_modules"):
        config.get(name)  # use_mtp says that there are any
    config.must_be("attn_type_list", [1] * shape["layers"])  # of full attention
    shape |= {"qk_norm": "all heads"} if config.flag("use_qk_norm") else {}
    return shape | {"biases": ("router",) if config.flag("use_routing_bias") else ()}


def _minimax_m3(config: Config) -> Fields:
    """Keys and values of heads, of which all but the first layers select blocks by an index."""
    experts = {"expert_width": "moe_intermediate_size", "experts": "num_local_experts"}
    dense = {"feed_forward_width": "dense_intermediate_size"}
    experts |= {
        "shared_experts": "n_shared_experts",
        "shared_expert_width": "shared_intermediate_size",
    }
    shape: Fields = config.counts(GROUPS | HEAD | dense | experts | ROUTED)
    config.must_be("qk_norm_type", "per_head")
    config.must_be("attention_output_gate", False)
    config.must_be("intermediate_size", shape["expert_width"])
    for name in ("num_mtp_modules", "swiglu_alpha", "use_gemma_norm"):
        config.get(name)  # num_nextn_predict_layers says of the first that there are any
    first, layers = config.count("first_k_dense_replace", least=0), shape["layers"]
    apart = [0] * first + [1] * (layers - first)
    config.must_be("moe_layer_freq", apart)
    sparse = config.get("sparse_attention_config")
    numbers = ("sparse_num_index_heads", "sparse_index_dim", "sparse_topk_blocks")
    known = isinstance(sparse, dict) and sparse.get("sparse_attention_freq") == apart
    if not known or any(type(sparse.get(number)) is not int for number in numbers):
        raise config.error(
            f"sparse_attention_config must have {', '.join(numbers)}, and sparse_attention_freq as"
            " moe_layer_freq"
        )
    heads, width, blocks = (sparse[number] for number in numbers)
    return shape | {
        "qk_norm": "head" if config.flag("use_qk_norm") else None,
        "biases": ("router",) if config.flag("use_routing_bias") else (),
        "attention": (*["full"] * first, *["blocks"] * (layers - first)),
        "feed_forward": (*["dense"] * first, *["experts"] * (layers - first)),
        "index_heads": heads,
        "index_head_width": width,
        "index_topk": blocks * sparse.get("sparse_block_size", 0),
    }


def _kimi_linear(config: Config) -> Fields:
    """Layers of linear attention whose states decay row by row, and some of latents with a gate."""
    experts = {"expert_width": "moe_intermediate_size", "experts": "num_experts"}
    experts |= {
        "active_experts": "num_experts_per_token",
        "expert_latent": "routed_expert_hidden_size",
    }
    shape: Fields = config.counts(DENSE | LATENT | experts)
    config.must_be("topk_method", "noaux_tc")  # whose routers have a bias
    config.must_be("mla_use_output_gate", True)
    shape["biases"] = ()
    shape = _routed(config, shape, "num_shared_experts")
    linear = config.get("linear_attn_config")
    numbers = ("num_heads", "head_dim", "short_conv_kernel_size")
    known = isinstance(linear, dict) and linear.get("use_full_rank_gate") is True
    if not known or any(type(linear.get(number)) is not int for number in numbers):
        raise config.error(
            f"linear_attn_config must have {', '.join(numbers)} and use_full_rank_gate, true"
        )
    heads, width, kernel = (linear[number] for number in numbers)
    full = {number - 1 for number in linear.get("full_attn_layers", ())}
    kinds = ("latent" if layer in full else "linear" for layer in range(shape["layers"]))
    for name in ("attn_res_block_size", "latent_moe_use_norm"):
        config.get(name)
    return shape | {
        "attention": tuple(kinds),
        "gates": ("attention",),
        "linear_key_heads": heads,
        "linear_value_heads": heads,
        "linear_key_width": width,
        "linear_value_width": width,
        "decay_rank": width,
        "convolution": kernel,
        "chunk": 64,  # of the kernels that it is released with
        "notes": ("the norms of its residuals and of its experts' inputs are not counted",),
    }


def _olmo2(config: Config) -> Fields:
    return _dense(config) | {"qk_norm": "all heads"}


def _granite(config: Config) -> Fields:
    states = {
        "state_heads": "mamba_n_heads",
        "state_width": "mamba_d_state",
        "state_groups": "mamba_n_groups",
        "convolution": "mamba_d_conv",
        "chunk": "mamba_chunk_size",
    }
    names = {"mamba": "state", "attention": "full"}
    kinds = config.kinds("layer_types", names) or config.kinds("layers_block_type", names)
    shape = config.counts(GROUPS | states)
    config.must_be("attention_bias", False)
    config.must_be("mamba_conv_bias", True)
    config.must_be("mamba_proj_bias", False)
    inner = config.count("mamba_expand", 2) * shape["width"]
    shape["state_head_width"] = inner // shape["state_heads"]
    config.get("mamba_d_head")  # follows from the same
    shared = config.count("shared_intermediate_size")
    if not config.count("num_local_experts", least=0):  # the network of all tokens is the only one
        for name in ("intermediate_size", "num_experts_per_tok"):
            config.get(name)
        shape["feed_forward_width"] = shared
    else:
        experts = {"expert_width": "intermediate_size", "experts": "num_local_experts"}
        shape |= config.counts(experts | ROUTED)
        shape |= {"shared_experts": 1, "shared_expert_width": shared}
    return shape | {"attention": tuple(kinds or ["state"])}


def _nemotron_h(config: Config) -> Fields:
    states = {
        "state_heads": "mamba_num_heads",
        "state_head_width": "mamba_head_dim",
        "state_width": "ssm_state_size",
        "state_groups": "n_groups",
        "convolution": "conv_kernel",
        "chunk": "chunk_size",
    }
    listed = config.get("layers_block_type")
    config.imply("num_hidden_layers", len(listed) if isinstance(listed, list) else None)
    shape: Fields = config.counts(GROUPS | states)
    kinds = config.kinds("hybrid_override_pattern", NEMOTRON)
    kinds = kinds or config.kinds("layers_block_type", NEMOTRON_BLOCKS)
    if kinds is None:
        raise config.error("a configuration of nemotron_h must have hybrid_override_pattern")
    for name in ("attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"):
        config.must_be(name, False)
    config.must_be("use_conv_bias", True)
    head = "head_dim" if config.get("attention_head_dim") is None else "attention_head_dim"
    shape["head_width"] = config.count(head)
    width = config.count("intermediate_size", 1)
    shape |= {"feed_forward_width": width} if "dense" in kinds else {}
    if "experts" in kinds:
        names = {"expert_width": "moe_intermediate_size", "experts": "n_routed_experts"}
        names["shared_expert_width"] = "moe_shared_expert_intermediate_size"
        if config.get("moe_latent_size") is not None:
            names["expert_latent"] = "moe_latent_size"
        shape |= config.counts(names | ROUTED | {"shared_experts": "n_shared_experts"})
        shape["biases"] = ("router",)
    mixers = ("state", "full")
    return shape | {
        "gated": False,
        "attention": tuple(kind if kind in mixers else "none" for kind in kinds),
        "feed_forward": tuple("none" if kind in mixers else kind for kind in kinds),
    }


def _jamba(config: Config) -> Fields:
    states = {
        "state_width": "mamba_d_state",
        "convolution": "mamba_d_conv",
        "time_step_rank": "mamba_dt_rank",
    }
    experts = {"experts": "num_experts", "expert_width": "intermediate_size"}
    shape: Fields = config.counts(DENSE | states | experts | ROUTED)
    config.must_be("mamba_conv_bias", True)
    config.must_be("mamba_proj_bias", False)
    inner = config.count("mamba_expand", 2) * shape["width"]
    shape |= {"state_heads": inner, "state_head_width": 1, "state_groups": 1}
    for ours, one, other, theirs in (
        ("attention", "full", "state", "attn_layer"),
        ("feed_forward", "experts", "dense", "expert_layer"),
    ):
        period = config.count(f"{theirs}_period")
        offset = config.count(f"{theirs}_offset", least=0)
        shape[ours] = tuple(one if i % period == offset else other for i in range(period))
    return shape


def _bert(config: Config) -> Fields:
    names = LAYERS | {"feed_forward_width": "intermediate_size", "positions": LAYERS["context"]}
    config.must_be("position_embedding_type", "absolute")
    return config.counts(names | {"other_embeddings": "type_vocab_size"}) | {
        "gated": False,
        "norm": "layer",
        "biases": ("qkv", "attention output", "feed-forward"),
        "output": "pooler",
    }


def _modernbert(config: Config) -> Fields:
    shape: Fields = config.counts(LAYERS | {"feed_forward_width": "intermediate_size"})
    for name in ("norm_bias", "attention_bias", "mlp_bias"):
        config.must_be(name, False)
    every = config.count("global_attn_every_n_layers", 3)
    window = config.count("local_attention", 128)
    pattern = ("full", *["window"] * (every - 1))
    return shape | {"output": "none", "attention": pattern, "window": window}


FAMILIES: dict[str, Callable[[Config], Fields]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "mistral": _windowed,
    "phi3": _windowed,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _qwen3_next,
    "qwen3_vl_text": _qwen3,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_5_text": _qwen3_5,
    "qwen3_5_moe_text": _qwen3_next,
    "mixtral": _mixtral,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "gemma4_text": _gemma4,
    "gpt_oss": _gpt_oss,
    "llama4": _llama4,
    "llama4_text": _llama4,
    "deepseek_v3": _deepseek_v3,
    "kimi_k2": _deepseek_v3,
    "deepseek_v32": _deepseek_v32,
    "glm_moe_dsa": _glm_moe_dsa,
    "glm4_moe": _glm4_moe,
    "minimax_m2": _minimax_m2,
    "minimax_m3": _minimax_m3,
    "kimi_linear": _kimi_linear,
    "mimo_v2_flash": _mimo_v2,
    "olmo2": _olmo2,
    "granitemoehybrid": _granite,
    "nemotron_h": _nemotron_h,
    "jamba": _jamba,
    "bert": _bert,
    "modernbert": _modernbert,
}
