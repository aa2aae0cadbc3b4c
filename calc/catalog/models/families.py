"""A model from its Hugging Face `config.json`: what the families of models call their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from calc.catalog.models import quantized, vision
from calc.catalog.models.architecture import RECURRENT, Transformer, from_shape
from calc.catalog.models.config import Config, known
from calc.catalog.models.release import Release
from calc.core.errors import abbreviated

Fields = dict[str, Any]
WINDOWED = {"full_attention": "full", "sliding_attention": "window"}
STATES, FP32 = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"), "float32"
NEMOTRON = {"M": "state", "*": "full", "-": "dense", "E": "experts"}
JOINING = {0: "window", 4: "compressed-sparse", 128: "heavily-compressed"}
JOINING_TYPES = {
    0: "sliding_attention",
    4: "compressed_sparse_attention",
    128: "heavily_compressed_attention",
}
JOINING_NAMES = {name: JOINING[joined] for joined, name in JOINING_TYPES.items()}
OF_BLOCKS = ("n_heads_in_group", "no_op", "ffn_mult")  # what is read of blocks that differ
MEANT = ("moe_intermediate_size", "num_experts_per_tok")  # of which blocks' mean is taken
EXPERTS_OF_BLOCKS = (*MEANT, "n_routed_experts", "moe_shared_expert_intermediate_size")
NEMOTRON_BLOCKS = {"mamba": "state", "attention": "full", "mlp": "dense", "moe": "experts"}


def load(path: Path | str) -> Transformer:
    """The model that a Hugging Face `config.json` describes."""
    return model_of(Config(path), Path(path).stem)


def model_of(config: Config, key: str) -> Transformer:
    """The model of a configuration, whose numbers may stand in a file of another kind."""
    families = known()["families"]
    family = config.get("model_type")
    if not isinstance(family, str) or family not in families:
        why = known()["unread"].get(family, "") if isinstance(family, str) else ""
        raise config.error(
            f"its model_type must be one of {', '.join(families)}; got {abbreviated(family)}"
            + (f", and {why}" if why else ""),
            argument="model_type",
            given=family,
            allowed=tuple(families),
        )
    shared = families[family].get("tied", family.startswith(("gemma", "gpt2")))
    tied = config.flag("tie_embedding", config.flag("tie_word_embeddings", shared))
    numbers: Fields = {"output": "tied" if tied else "own", "biases": (), "notes": ()}
    if (encoder := vision.parameters(config)) is not None:
        numbers["vision"] = encoder
    like = families[family].get("like", family)
    numbers |= _numbers(config, families[like], SHAPES.get(like, _dense))
    numbers["notes"] = (*numbers["notes"], *config.notes())
    model = from_shape(key=key, name=str(config.path), **numbers)
    if model.layers_with(*RECURRENT) and any(config.get(name) == FP32 for name in STATES):
        model = replace(model, state_bytes=4)
    return _expert_dtype(config, quantized.read(config, model))


def _expert_dtype(config: Config, model: Transformer) -> Transformer:
    """The model with experts in MXFP4, where its configuration says so beside a wider format."""
    if config.get("expert_dtype") != "fp4":
        return model
    released = model.released or Release({"others": "bf16"})
    if not released.formats.get("experts", "fp8").lower().startswith("fp8"):
        return model  # by a conversion, whose own rules say in what they are
    held = replace(released, formats={**released.formats, "experts": "mxfp4"})
    return model.with_release(held, model.notes)


def _numbers(config: Config, family: Fields, shape: Callable[[Config, Fields], Fields]) -> Fields:
    """Return the numbers in a family's table, and the shape that its function reads beside it."""
    names = {
        ours: name
        for group in family.get("of", ())
        for ours, name in known()["numbers"][group].items()
    }
    numbers = shape(config, family | {"numbers": names | family.get("numbers", {})})
    for name in family.get("unread", ()):
        config.get(name)
    for name, other in family.get("same", {}).items():
        config.must_be(name, config.get(other))
    for name, only in family.get("must_be", {}).items():
        config.must_be(name, only)
    constants = family.get("is", {}).items()
    return numbers | {
        name: tuple(value) if isinstance(value, list) else value for name, value in constants
    }


def _counts(config: Config, family: Fields, part: str = "") -> Fields:
    """The numbers of a family, and those of a part that not all of it have."""
    names = family["numbers"] | family.get(part, {})
    queries = names.get("query_latent", "")
    if config.is_null(queries):  # which then come from the whole width
        config.get(queries)
        names = {ours: name for ours, name in names.items() if ours != "query_latent"}
    return {**config.counts(names)}


def _dense(config: Config, family: Fields, part: str = "") -> Fields:
    """Attention and one feed-forward network a layer, as in Llama."""
    shape = _counts(config, family, part)
    if "head_width" not in shape and config.get("head_dim") is not None:
        shape["head_width"] = config.count("head_dim")
    biases = ["qkv", "attention output"] if config.flag("attention_bias") else []
    biases += ["feed-forward"] if config.flag("mlp_bias") else []
    pattern = tuple(family.get("windows", ()))
    return shape | {"biases": tuple(biases)} | _windows(config, shape, pattern)


def _windows(config: Config, shape: Fields, pattern: tuple[str, ...]) -> Fields:
    """Kinds of attention: as the layers are listed, or as the family places its windows."""
    used = config.flag(
        "use_sliding_window",
        config.get("model_type") not in ("qwen2", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3"),
    )
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


def _llama(config: Config, family: Fields) -> Fields:
    heads = config.get("num_attention_heads")
    if heads is None or config.get("num_key_value_heads") is not None:
        return _dense(config, family)
    names = {ours: name for ours, name in family["numbers"].items() if ours != "kv_heads"}
    return _dense(config, {"numbers": names}) | {"kv_heads": heads}  # the first have no groups


def _gpt_neox(config: Config, family: Fields) -> Fields:
    shape = _counts(config, family)
    return shape | {"kv_heads": shape["heads"]}


def _starcoder2(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    biased = config.flag("use_bias", True)
    return shape | {"biases": ("qkv", "attention output", "feed-forward") if biased else ()}


def _gpt2(config: Config, family: Fields) -> Fields:
    counts = _counts(config, family)
    width = config.count("n_inner", 4 * counts["width"])
    context, heads = counts["context"], counts["heads"]
    if config.get("model_type") == "gpt_bigcode" and config.flag("multi_query", True):
        heads = 1
    return counts | {"kv_heads": heads, "feed_forward_width": width, "positions": context}


def _qwen2(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    return shape | {"biases": tuple({"qkv": 0} | dict.fromkeys(shape["biases"]))}


def _qwen2_moe(config: Config, family: Fields) -> Fields:
    config.flag("qkv_bias", True)
    return _qwen3_moe(config, family) | {"biases": ("qkv",)}


def _stablelm(config: Config, family: Fields) -> Fields:
    return _counts(config, family) | {"biases": ("qkv",) if config.flag("use_qkv_bias") else ()}


def _mimo(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    return shape | {"biases": tuple(part for part in shape["biases"] if part == "qkv")}


def _seed_oss(config: Config, family: Fields) -> Fields:
    shape = _mimo(config, family)
    last = ("attention output",) if config.flag("attention_out_bias") else ()
    return shape | {"biases": (*shape["biases"], *last)}


def _decilm(config: Config, family: Fields) -> Fields:
    """Blocks of which each has attention and a network of its own width, or has none."""
    blocks = config.get("block_configs")
    parts = [_parts_of_blocks(config, blocks, name) for name in ("attention", "ffn")]
    config.imply("num_hidden_layers", len(parts[0]))
    heads = config.count("num_attention_heads")
    config.imply("num_key_value_heads", heads)
    shape = _dense(config, family)
    groups: set[Any] = {part.get("n_heads_in_group") for part in parts[0] if not part.get("no_op")}
    multiples: list[Any] = [part.get("ffn_mult") for part in parts[1] if not part.get("no_op")]
    numbers = [*groups, *multiples]
    if len(groups) != 1 or not all(type(part) in (int, float) and part > 0 for part in numbers):
        raise config.error(
            "block_configs must have one n_heads_in_group, and an ffn_mult of each ffn that is no"
            " no_op"
        )
    widths = [math.ceil(int(2 * each * shape["width"] / 3) / 256) * 256 for each in multiples]
    mean = round(sum(widths) / len(widths))
    note = f"its networks of {min(widths)} to {max(widths)} are counted as of their mean, {mean}"
    attentions, networks = (
        tuple("none" if part.get("no_op") else kind for part in several)
        for several, kind in zip(parts, ("full", "dense"), strict=True)
    )
    return shape | {
        "kv_heads": heads // int(groups.pop()),
        "feed_forward_width": mean,
        "width_multiple": 256,
        "attention": attentions,
        "feed_forward": networks,
        "notes": (note,) if min(widths) < max(widths) else (),
    }


def _parts_of_blocks(config: Config, blocks: object, name: str) -> list[dict[str, Any]]:
    """The attention, or the network, of each block; what is in one and not read is refused."""
    parts = [
        block.get(name) if isinstance(block, dict) else None
        for block in (blocks if isinstance(blocks, list) else [None])
    ]
    tables = [part for part in parts if isinstance(part, dict)]
    if not tables or len(tables) < len(parts):
        raise config.error("block_configs must list an attention and an ffn for each block")
    for part in tables:
        if odd := [key for key, value in part.items() if value and key not in OF_BLOCKS]:
            raise config.error(f"block_configs has {odd[0]} in its {name}, which is not read")
    return tables


def _gemma3(config: Config, family: Fields) -> Fields:
    every = config.count("sliding_window_pattern", config.get("_sliding_window_pattern", 6))
    shape = _dense(config, family | {"windows": ["window"] * (every - 1) + ["full"]})
    # One that looks both ways makes vectors of texts, and has no matrix of its output.
    embeds = config.get("use_bidirectional_attention") is True
    return shape | ({"output": "none"} if embeds else {})


def _gemma4(config: Config, family: Fields) -> Fields:
    shared = config.flag("attention_k_eq_v")
    if config.flag("enable_moe_block"):
        shape = _dense(config, family, "with_experts")
        # Seven normalisations, and what the router's input is multiplied by, number by number.
        shape |= {"norms": 8, "shared_experts": 1, "biases": ("router",)}
    else:
        shape = _dense(config, family, "without") | {"norms": 4}
    shape["head_width"] = config.count("global_head_dim", shape["head_width"])
    if config.get("hidden_size_per_layer_input"):
        shape["layer_vectors"] = config.count("hidden_size_per_layer_input")
        shape["norms"] += 1
    wide = config.flag("use_double_wide_mlp")
    if config.get("num_kv_shared_layers"):
        shape["borrowing"] = borrowing = config.count("num_kv_shared_layers")
        if wide:  # the networks of these layers, which are then counted as of their mean
            narrow, layers = shape["feed_forward_width"], shape["layers"]
            shape["feed_forward_width"] = mean = round(narrow * (1 + borrowing / layers))
            shape["width_multiple"] = narrow
            note = f"its networks of {narrow} to {2 * narrow} are counted as of their mean, {mean}"
            shape["notes"] = (note,)
    if shared:
        shape["kv_heads"] = config.count("num_global_key_value_heads", shape["kv_heads"])
    return shape | {"tied_values": ("full",) if shared else ()}


def _mimo_v2(config: Config, family: Fields) -> Fields:
    shape = _counts(config, family)
    listed = {}
    for name in ("hybrid_layer_pattern", "moe_layer_freq"):
        listed[name] = config.kinds(name, {"0": "first", "1": "second"})
    windows, routed = listed["hybrid_layer_pattern"] or (), listed["moe_layer_freq"] or ()
    for name in ("add_swa_attention_sink_bias", "add_full_attention_sink_bias"):
        config.flag(name)
    return shape | {
        "attention": tuple("window" if turn == "second" else "full" for turn in windows),
        "feed_forward": tuple("experts" if turn == "second" else "dense" for turn in routed),
    }


def _gpt_oss(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    return shape | {"biases": (*shape["biases"], "feed-forward", "router", "sinks")}


def _qwen3_moe(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    step, layers = config.count("decoder_sparse_step", 1), range(shape["layers"])
    dense, width = config.get("mlp_only_layers", []), config.count("intermediate_size", 1)
    kinds = ["dense" if i in dense or (i + 1) % step else "experts" for i in layers]
    shape |= {"feed_forward_width": width} if "dense" in kinds else {}
    return shape | {"feed_forward": tuple(kinds)}


def _gated_delta(config: Config, family: Fields) -> Fields:
    """Layers of linear attention, and every so often one of full attention with a gate."""
    kinds = config.kinds("layer_types", {"linear_attention": "linear", "full_attention": "full"})
    pattern = ["linear"] * (config.count("full_attention_interval", 4) - 1) + ["full"]
    shape = _qwen3_moe if "experts" in family["numbers"] else _dense
    return shape(config, family) | {"attention": tuple(kinds or pattern)}


def _llama4(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    step, layers = config.count("interleave_moe_layer_step", 1), shape["layers"]
    routed = config.get("moe_layers", [*range(step - 1, layers, step)])
    kinds = ["experts" if i in routed else "dense" for i in range(layers)]
    dense = config.count("intermediate_size_mlp")
    shape |= {"feed_forward_width": dense} if "dense" in kinds else {}
    every = config.count("no_rope_layer_interval", 4)
    rotated = config.get("no_rope_layers") or [int((i + 1) % every != 0) for i in range(layers)]
    chunks = ["window" if is_rotated else "full" for is_rotated in rotated]
    return shape | {
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
    if not first:
        shape.pop("feed_forward_width", None)
    shape["biases"] = (*shape["biases"], "router")
    return shape | {"feed_forward": tuple(kinds)}


def _deepseek(config: Config, family: Fields) -> Fields:
    return _routed(config, _dense(config, family))


def _deepseek_v2(config: Config, family: Fields) -> Fields:
    """Routers without a bias, by whichever rule they choose."""
    shape = _deepseek(config, family)
    return shape | {"biases": tuple(part for part in shape["biases"] if part != "router")}


def _ernie(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    layers, first = shape["layers"], config.count("moe_layer_start_index", 0, least=0)
    step, last = config.count("moe_layer_interval", 1), config.get("moe_layer_end_index", -1)
    if type(last) is not int or not -1 <= last < layers:
        raise config.error(f"moe_layer_end_index must be a layer or -1; got {abbreviated(last)}")
    routed = range(first, layers if last == -1 else last + 1)
    kinds = ("experts" if i in routed and (i + 1) % step == 0 else "dense" for i in range(layers))
    return shape | {"biases": (*shape["biases"], "router"), "feed_forward": tuple(kinds)}


def _step3(config: Config, family: Fields) -> Fields:
    shape = _routed(config, _dense(config, family))
    biased = config.flag("use_moe_router_bias", True)
    return shape | ({} if biased else {"biases": shape["biases"][:-1]})


def _deepseek_v4(config: Config, family: Fields) -> Fields:
    """Layers that join 4 tokens or 128, told by how many each joins or by what it is called."""
    shape = _counts(config, family)
    layers, listed = shape["layers"], config.get("compress_ratios")
    kinds = config.kinds("layer_types", JOINING_NAMES) if listed is None else None
    if kinds is None:
        is_readable = isinstance(listed, list) and len(listed) >= layers
        if not is_readable or not {*map(str, listed)} <= {*map(str, JOINING)}:
            raise config.error(
                f"compress_ratios must list {', '.join(map(str, JOINING))} for each of its"
                f" {layers} layers; got {abbreviated(listed)}"
            )
        kinds = [JOINING[joined] for joined in listed[:layers]]  # beyond are those of drafts
    config.must_be("compress_rates", {JOINING_TYPES[4]: 4, JOINING_TYPES[128]: 128})
    config.must_be("mlp_layer_types", None)
    hashed = config.count("num_hash_layers", 3, least=0)
    expert = config.get("expert_dtype", "fp4")
    if expert not in ("fp4", "fp8"):
        raise config.error(f"expert_dtype must be fp4 or fp8; got {abbreviated(expert)}")
    shape |= {"compression": 4} if JOINING[4] in kinds else {}
    shape |= {"heavy_compression": 128} if JOINING[128] in kinds else {}
    shape |= {"hash_layers": hashed} if hashed else {}
    return shape | {"attention": tuple(kinds), "biases": ("sinks", "router")}


def _glm_moe_dsa(config: Config, family: Fields) -> Fields:
    config.kinds("layer_types", {"deepseek_sparse_attention": "sparse"})
    shape = _deepseek(config, family)
    kinds = config.kinds("indexer_types", {"full": "sparse", "shared": "following"})
    return shape | {"attention": tuple(kinds or ["sparse"])}


def _glm4_moe(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    shape["biases"] = tuple(bias for bias in shape["biases"] if bias != "attention output")
    shape |= {"qk_norm": "head"} if config.flag("use_qk_norm") else {}
    return _routed(config, shape)


def _minimax_m2(config: Config, family: Fields) -> Fields:
    shape = _dense(config, family)
    config.must_be("attn_type_list", [1] * shape["layers"])  # of full attention
    shape |= {"qk_norm": "all heads"} if config.flag("use_qk_norm") else {}
    return shape | {"biases": ("router",) if config.flag("use_routing_bias") else ()}


def _minimax_m3(config: Config, family: Fields) -> Fields:
    config.imply("moe_intermediate_size", config.get("intermediate_size"))
    shape = _counts(config, family)
    listed = config.get("moe_layer_freq")
    if isinstance(listed, list) and 1 in listed:
        config.imply("first_k_dense_replace", listed.index(1))
    first, layers = config.count("first_k_dense_replace", least=0), shape["layers"]
    apart = [0] * first + [1] * (layers - first)
    config.must_be("moe_layer_freq", apart)
    sparse = config.get("sparse_attention_config")
    numbers = ("sparse_num_index_heads", "sparse_index_dim", "sparse_topk_blocks")
    is_readable = isinstance(sparse, dict) and sparse.get("sparse_attention_freq") == apart
    if not is_readable or any(type(sparse.get(number)) is not int for number in numbers):
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


def _kimi_linear(config: Config, family: Fields) -> Fields:
    config.imply("max_position_embeddings", config.get("model_max_length"))
    shape = _routed(config, _counts(config, family) | {"biases": ()}, "num_shared_experts")
    linear = config.get("linear_attn_config")
    numbers = ("num_heads", "head_dim", "short_conv_kernel_size")
    is_readable = isinstance(linear, dict)
    if not is_readable or any(type(linear.get(number)) is not int for number in numbers):
        raise config.error(f"linear_attn_config must have {', '.join(numbers)}")
    if config.get("routed_expert_hidden_size") is not None:
        shape["expert_latent"] = config.count("routed_expert_hidden_size")
    if config.get("attn_res_block_size") is not None:
        note = "the norms of its residuals and of its experts' inputs are not counted"
        shape["notes"] = (note,)
    if config.flag("mla_use_output_gate"):
        shape["gates"] = ("attention",)
    heads, width, kernel = (linear[number] for number in numbers)
    full = {number - 1 for number in linear.get("full_attn_layers", ())}
    kinds = ("latent" if layer in full else "linear" for layer in range(shape["layers"]))
    return (
        shape
        | {
            "attention": tuple(kinds),
            "linear_key_heads": heads,
            "linear_value_heads": heads,
            "linear_key_width": width,
            "linear_value_width": width,
            "decay_rank": width,
            "convolution": kernel,
        }
        | ({} if linear.get("use_full_rank_gate") else {"gate_rank": width})
    )


def _granite(config: Config, family: Fields) -> Fields:
    names = {"mamba": "state", "attention": "full"}
    kinds = config.kinds("layer_types", names) or config.kinds("layers_block_type", names)
    shape = _counts(config, family)
    inner = config.count("mamba_expand", 2) * shape["width"]
    shape["state_head_width"] = inner // shape["state_heads"]
    shared = config.count("shared_intermediate_size")
    if not config.count("num_local_experts", least=0):  # the network of all tokens is the only one
        for name in ("intermediate_size", "num_experts_per_tok"):
            config.get(name)
        shape["feed_forward_width"] = shared
    else:
        shape |= config.counts(known()["numbers"]["local_experts"])
        shape |= {"shared_experts": 1, "shared_expert_width": shared}
    return shape | {"attention": tuple(kinds or ["state"])}


def _experts_of_blocks(config: Config) -> Fields:
    """Experts that differ from block to block, as a search left them: their mean is implied."""
    blocks = config.get("block_configs")
    if blocks is None:
        return {}
    listed = blocks if isinstance(blocks, list) else []
    if len(listed) != config.count("num_hidden_layers") or not all(
        isinstance(block, dict) for block in listed
    ):
        raise config.error("block_configs must list a block for each layer")
    routed = [block for block in listed if block.get("block_type") == "moe"]
    numbers: dict[str, list[int]] = {}
    for name in EXPERTS_OF_BLOCKS:
        numbers[name] = each = [block.get(name, config.get(name)) for block in routed]
        if not all(type(number) is int and number > 0 for number in each):
            raise config.error(f"block_configs must have {name} of each block of experts")
        if len({*each}) > 1 and name not in MEANT:
            raise config.error(f"block_configs has blocks of different {name}, which is not read")
        config.imply(name, round(sum(each) / len(each)) if each else None)
    widths = numbers["moe_intermediate_size"]
    if len({*widths}) < 2:
        return {}
    mean = config.get("moe_intermediate_size")
    note = f"its experts of {min(widths)} to {max(widths)} are counted as of their mean, {mean}"
    return {"width_multiple": math.gcd(*widths), "notes": (note,)}


def _nemotron_h(config: Config, family: Fields) -> Fields:
    listed = config.get("layers_block_type")
    config.imply("num_hidden_layers", len(listed) if isinstance(listed, list) else None)
    shape = _counts(config, family) | _experts_of_blocks(config)
    kinds = config.kinds("hybrid_override_pattern", NEMOTRON)
    kinds = kinds or config.kinds("layers_block_type", NEMOTRON_BLOCKS)
    if kinds is None:
        raise config.error("a configuration of nemotron_h must have hybrid_override_pattern")
    head = "head_dim" if config.get("attention_head_dim") is None else "attention_head_dim"
    shape["head_width"] = config.count(head)
    width = config.count("intermediate_size", 1)
    shape |= {"feed_forward_width": width} if "dense" in kinds else {}
    if "experts" in kinds:
        shape |= config.counts(family["with_experts"])
        if config.get("moe_latent_size") is not None:
            shape["expert_latent"] = config.count("moe_latent_size")
        shape["biases"] = ("router",)
    mixers = ("state", "full")
    return shape | {
        "attention": tuple(kind if kind in mixers else "none" for kind in kinds),
        "feed_forward": tuple("none" if kind in mixers else kind for kind in kinds),
    }


def _jamba(config: Config, family: Fields) -> Fields:
    shape = _counts(config, family)
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


def _lfm2(config: Config, family: Fields) -> Fields:
    """Layers of a short convolution alone, and some of attention, by a list or by their places."""
    shape = _counts(config, family)
    kinds = config.kinds("layer_types", {"conv": "convolution", "full_attention": "full"})
    places = config.get("full_attn_idxs")
    if kinds is None:
        if not isinstance(places, list):
            raise config.error("a configuration of lfm2 must have layer_types or full_attn_idxs")
        full = (layer in places for layer in range(shape["layers"]))
        kinds = ["full" if each else "convolution" for each in full]
    shape["attention"] = tuple(kinds)
    if "experts" in shape:
        first = config.count("num_dense_layers", least=0)
        biased = config.flag("use_expert_bias", True)
        routed = ("dense" if layer < first else "experts" for layer in range(shape["layers"]))
        shape |= {"feed_forward": tuple(routed), "biases": ("router",) if biased else ()}
        stated = config.count("intermediate_size")
        return shape | ({"feed_forward_width": stated} if first else {})
    width = config.count("block_ff_dim", config.get("intermediate_size"))
    if config.flag("block_auto_adjust_ff_dim", True):
        multiple, wider = config.count("block_multiple_of", 256), 1.0
        if config.get("block_ffn_dim_multiplier") is not None:
            wider = config.number("block_ffn_dim_multiplier")
        width = math.ceil(int(wider * int(2 * width / 3)) / multiple) * multiple
    return shape | {"feed_forward_width": width}


def _modernbert(config: Config, family: Fields) -> Fields:
    shape = _counts(config, family)
    every = config.count("global_attn_every_n_layers", 3)
    window = config.count("local_attention", 128)
    pattern = ("full", *["window"] * (every - 1))
    return shape | {"attention": pattern, "window": window}


SHAPES: dict[str, Callable[[Config, Fields], Fields]] = {  # of families that are no `_dense` alone
    "bert": _counts,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek,
    "deepseek_v32": _deepseek,
    "deepseek_v4": _deepseek_v4,
    "ernie4_5_moe": _ernie,
    "gemma3": _gemma3,
    "gemma4_text": _gemma4,
    "glm4_moe": _glm4_moe,
    "glm_moe_dsa": _glm_moe_dsa,
    "gpt2": _gpt2,
    "gpt_oss": _gpt_oss,
    "granitemoehybrid": _granite,
    "jamba": _jamba,
    "kimi_linear": _kimi_linear,
    "lfm2": _lfm2,
    "lfm2_moe": _lfm2,
    "llama": _llama,
    "llama4": _llama4,
    "mimo": _mimo,
    "mimo_v2_flash": _mimo_v2,
    "minimax_m2": _minimax_m2,
    "minimax_m3": _minimax_m3,
    "modernbert": _modernbert,
    "nemotron-nas": _decilm,
    "nemotron_h": _nemotron_h,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3_5_text": _gated_delta,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": _gated_delta,
    "glm4": _mimo,
    "glm4_moe_lite": _deepseek,
    "gpt_neox": _gpt_neox,
    "mistral4": _deepseek_v2,
    "deepseek": _deepseek_v2,
    "phi": _counts,
    "seed_oss": _seed_oss,
    "stablelm": _stablelm,
    "starcoder2": _starcoder2,
    "step3p7": _step3,
}
