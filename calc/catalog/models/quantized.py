"""The `quantization_config` of a `config.json`: in what each matrix of its checkpoint is kept.

Every method has words of its own for the format, and for the modules that it leaves as they were
trained. What no method reads is refused by name, since it may change the size of the checkpoint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

from calc import formats
from calc.catalog.models.architecture import (
    ATTENTIONS,
    FEED_FORWARDS,
    INDEXED,
    LATENTS,
    Matrix,
    Transformer,
)
from calc.catalog.models.checkpoints import LINEAR, WIDE
from calc.catalog.models.config import QUANTIZED, Config, known
from calc.catalog.models.release import Release
from calc.core.errors import abbreviated

PREFIXES = "model.", "model.language_model.", "language_model.model.", "backbone."
ATTENTION, FEED_FORWARD = ("self_attn", "attention", "mixer"), ("mlp", "block_sparse_moe", "mixer")
MODULES: Mapping[str, tuple[str, ...]] = {  # what transformers calls a matrix in its block
    "query": ("q_proj", "qkv_proj"),
    "key": ("k_proj", "qkv_proj"),
    "value": ("v_proj", "qkv_proj"),
    "attention output": ("o_proj",),
    "query down": ("q_a_proj",),
    "query up": ("q_b_proj",),
    "key and value down": ("kv_a_proj_with_mqa",),
    "key up": ("kv_b_proj",),
    "value up": ("kv_b_proj",),
    "index query": ("indexer.wq_b",),
    "index key": ("indexer.wk",),
    "index weights": ("indexer.weights_proj",),
    "attention gate": ("g_proj",),
    "state input": ("in_proj",),
    "state output": ("out_proj",),
    "gate": ("gate_proj", "gate_up_proj", "w1"),
    "up": ("up_proj", "gate_up_proj", "w3"),
    "down": ("down_proj", "w2"),
}
SHARED = "shared_expert", "shared_experts"
BITS, LARGEST_GROUP = (2, 3, 4, 5, 6, 8), 2**20
APART = ("visual", "vision", "audio", "mtp", "multi_modal_projector", "conv1d", "norm", "embed")
"""Parts of names that are of no linear layer of the text's blocks."""


@dataclass(frozen=True)
class Rules:
    """In what modules are kept, by their names, and what is multiplied by them."""

    form: Callable[[Sequence[str]], str]
    """The format of a module of these names."""
    products: str = ""
    output: bool = False
    """Whether the matrix of the output counts as one of the modules."""
    experts_alone: bool = False
    ignored: Sequence[str] = ()
    notes: tuple[str, ...] = field(default=())


def read(config: Config, model: Transformer) -> Transformer:
    """The model with what its `quantization_config` says of its weights, where there is one."""
    given = next(filter(None, map(config.get, QUANTIZED)), None)
    if given is None:
        return model
    if not isinstance(given, dict):
        raise config.error(f"quantization_config must be an object; got {abbreviated(given)}")
    method = given.get("quant_method", "modelopt" if "quant_algo" in given else None)
    table = known()["quantization"]
    if not isinstance(method, str) or method not in METHODS:
        raise config.error(
            f"its quantization_config is of the method {abbreviated(method)}, which is not read:"
            f" those of {', '.join(METHODS)} are; take it out, and say the format, as in"
            ' weights="awq" or "experts=mxfp4,others=bf16"'
        )
    unread = {
        name
        for name, value in given.items()
        if name not in (*table["harmless"], *table[method]) and value not in (None, False, {}, [])
    }
    if unread:
        raise config.error(
            f"its quantization_config of the method {method} has {', '.join(sorted(unread))}, which"
            " is not read, and may change what its weights take"
        )
    try:
        rules = METHODS[method](given)
    except (KeyError, TypeError, ValueError, AttributeError, re.error) as error:
        raise config.error(f"its quantization_config ({method}) cannot be read: {error}") from None
    release = Release(_by_group(model, rules), rules.products)
    notes = (*model.notes, *rules.notes, *_unmatched(model, rules))
    return model.with_release(release, notes)


# --- methods ---


def _fp8(given: dict[str, Any]) -> Rules:
    fmt = given.get("fmt") or "e4m3"
    form = "fp8" if fmt == "e4m3" else str(formats.key_of(str(fmt)))
    if block := given.get("weight_block_size"):
        rows, columns = block
        form = "FP8 in blocks" if rows * columns == 128**2 else f"{8 + 32 / (rows * columns)} bit"
    return _all_but(form, _skipped(given), "fp8")


def _fbgemm_fp8(given: dict[str, Any]) -> Rules:
    return _all_but("fp8", _skipped(given), "fp8")


def _mxfp4(given: dict[str, Any]) -> Rules:
    rules = _all_but("mxfp4", _skipped(given), "fp4")
    return Rules(rules.form, "fp4", experts_alone=True, ignored=rules.ignored)


def _awq(given: dict[str, Any]) -> Rules:
    zeros = given.get("zero_point", True)
    bits, group = given.get("bits", given.get("w_bit", 4)), given.get("group_size", 128)
    form = "AWQ" if (bits, group, zeros) == (4, 128, True) else _grouped(bits, group, zeros)
    return _all_but(form, _skipped(given))


def _gptq(given: dict[str, Any]) -> Rules:
    bits, group = given["bits"], given.get("group_size", 128)
    form = "GPTQ" if (bits, group) == (4, 128) else _grouped(bits, group, True)
    skipped, other = list(_skipped(given)), {}
    for pattern, change in (given.get("dynamic") or {}).items():
        if pattern.startswith("-:"):
            skipped.append(f"re:{pattern[2:]}")
        else:
            own = {"bits": bits, "group_size": group} | change
            other[f"re:{pattern.removeprefix('+:')}"] = _grouped(*own.values(), True)
    return _mixed(form, skipped, other, output=bool(given.get("lm_head")))


def _auto_round(given: dict[str, Any]) -> Rules:
    bits, group = given["bits"], given.get("group_size", 128)
    if (kind := given.get("data_type", "int")) not in ("int", "int_sym"):
        raise ValueError(f"data_type {kind}")
    form = "GPTQ" if (bits, group) == (4, 128) else _grouped(bits, group, True)
    skipped, other = list(_skipped(given)), {}
    for pattern, change in (given.get("extra_config") or {}).items():
        own = {"bits": bits, "group_size": group} | {
            name: change[name] for name in ("bits", "group_size") if name in change
        }
        if own["bits"] >= 16:
            skipped.append(pattern)
        else:
            other[pattern] = _grouped(own["bits"], own["group_size"], True)
    return _mixed(form, skipped, other)


def _compressed(given: dict[str, Any]) -> Rules:
    """The groups of compressed-tensors, each with its targets, and a list of what stays."""
    targets: dict[str, str] = {}
    products = {""}
    if (sparse := given.get("sparsity_config")) and sparse.get("format", "dense") != "dense":
        raise ValueError("weights that are pruned are not counted")
    for group in given["config_groups"].values():
        if (weights := group.get("weights")) is None:
            continue
        form = _scheme(weights)
        computed = group.get("input_activations")
        products.add(_computed_in(form, computed) if computed else "")
        targets |= dict.fromkeys(group["targets"], form)
    usual = targets.pop("Linear", WIDE)
    if unknown := [name for name in targets if not name.startswith("re:") and "." not in name]:
        raise ValueError(f"targets {', '.join(unknown)}, where Linear or names of modules are read")
    of_all = max(products)
    rules = _mixed(usual, given.get("ignore") or (), targets, output=True)
    return Rules(rules.form, of_all, True, False, rules.ignored, _caches(given))


def _scheme(weights: Mapping[str, Any]) -> str:
    """The format of weights as compressed-tensors describes it."""
    bits, kind, strategy = weights["num_bits"], weights["type"], weights["strategy"]
    group = weights.get("group_size") or 0
    if strategy == "tensor_group":
        return "nvfp4"
    if kind == "float" and bits == 4 and strategy == "group":
        return "mxfp4" if group == 32 else _grouped(4, group, False)
    if strategy == "group":
        return _grouped(bits, group, not weights.get("symmetric", True))
    if strategy == "block":
        rows, columns = weights.get("block_structure") or (128, 128)
        return "FP8 in blocks" if rows * columns == 128**2 else f"{bits + 32 / rows / columns} bit"
    if strategy not in ("tensor", "channel"):
        raise ValueError(f"strategy {strategy}")
    return {("float", 8): "fp8", ("int", 8): "int8"}.get((kind, bits), f"{bits} bit")


def _computed_in(form: str, computed: Mapping[str, Any]) -> str:
    if computed["num_bits"] == 4:
        return "fp4" if computed["type"] == "float" else ""
    return "fp8" if computed["type"] == "float" else "int8"


def _modelopt(given: dict[str, Any]) -> Rules:
    inner = given.get("quantization", given)
    algorithm = str(inner["quant_algo"]).upper()
    forms = {
        "FP8": ("fp8", "fp8"),
        "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "fp8"),
        "FP8_PB_WO": ("FP8 in blocks", ""),
        "NVFP4": ("nvfp4", "fp4"),
        "NVFP4_AWQ": ("nvfp4", "fp4"),
        "W4A16_AWQ": ("W4A16", ""),
        "W4A8_AWQ": ("W4A16", "fp8"),
        "W8A8_SQ_PER_CHANNEL": ("int8", "int8"),
        "MXFP8": ("mxfp8", ""),
        "MXFP4": ("mxfp4", ""),
    }
    if algorithm not in forms:
        raise ValueError(f"quant_algo {algorithm}, of which {', '.join(forms)} are read")
    form, products = forms[algorithm]
    skipped = inner.get("exclude_modules") or given.get("ignore") or ()
    rules = _all_but(form, skipped, products)
    return Rules(rules.form, products, True, False, rules.ignored, _caches(inner))


def _bitsandbytes(given: dict[str, Any]) -> Rules:
    skipped = given.get("llm_int8_skip_modules") or ()
    if given.get("load_in_8bit") or given.get("_load_in_8bit"):
        return _all_but("int8", skipped)
    if not (given.get("load_in_4bit") or given.get("_load_in_4bit")):
        raise ValueError("neither load_in_4bit nor load_in_8bit is true")
    return _all_but("NF4" if given.get("bnb_4bit_use_double_quant") else "4.5 bit", skipped)


def _quark(given: dict[str, Any]) -> Rules:
    """AMD's: one format for all linear layers, and what is left out."""
    weight = given["global_quant_config"]["weight"]
    weight = weight[0] if isinstance(weight, list) else weight
    dtype, scheme = str(weight["dtype"]), weight.get("qscheme", "per_tensor")
    inputs = given["global_quant_config"].get("input_tensors")
    form = {"fp4": "mxfp4", "fp8_e4m3": "fp8", "int8": "int8"}.get(dtype)
    if form is None or (scheme == "per_group") != (dtype == "fp4"):
        raise ValueError(f"dtype {dtype} with qscheme {scheme}")
    products = {"mxfp4": "fp4", "fp8": "fp8", "int8": "int8"}[form] if inputs else ""
    skipped = given.get("exclude") or ()
    return Rules(_all_but(form, skipped).form, products, True, False, skipped)


METHODS: dict[str, Callable[[dict[str, Any]], Rules]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm_fp8,
    "mxfp4": _mxfp4,
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "bitsandbytes": _bitsandbytes,
    "quark": _quark,
}


def _grouped(bits: float, group: int, zeros: bool, *_: object) -> str:
    """The bits of a weight with its share of a scale of 16 bit, and of a zero of its own bits."""
    if bits not in BITS or type(group) is not int or not -1 <= group < LARGEST_GROUP:
        raise ValueError(f"weights of {bits} bit in groups of {group}")
    if group in (-1, 0):  # a scale for a whole row
        return "int8" if bits == 8 else f"{bits} bit"
    each = bits + (16 + (bits if zeros else 0)) / group
    return "W4A16" if each == 4.125 else f"{each} bit"


def _skipped(given: dict[str, Any]) -> Sequence[str]:
    """What stays as it was trained, by the names that methods have for it."""
    names = ("modules_to_not_convert", "ignored_layers", "modules_in_block_to_not_quantize")
    return next((given[name] for name in names if given.get(name)), ())


def _caches(given: dict[str, Any]) -> tuple[str, ...]:
    if any(given.get(name) for name in ("kv_cache_scheme", "kv_cache_quant_algo")):
        return ('its caches are made for 8 bits, which kv="fp8" counts',)
    return ()


def _all_but(form: str, skipped: Sequence[str], products: str = "") -> Rules:
    rules = _mixed(form, skipped, {})
    return Rules(rules.form, products, ignored=skipped)


def _mixed(
    form: str, skipped: Sequence[str], other: Mapping[str, str], output: bool = False
) -> Rules:
    """One format for all modules but those that are skipped, and those of another format."""
    stays = _matching(skipped)
    others = [(_matching([pattern]), own) for pattern, own in other.items()]

    def of(names: Sequence[str]) -> str:
        if stays(names):
            return WIDE
        return next((own for matches, own in others if matches(names)), form)

    return Rules(of, output=output, ignored=skipped)


def _matching(patterns: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    """Whether one of several names of a module is meant by one of these patterns."""
    plain, regexes = set(), []
    for pattern in patterns:
        if pattern.startswith("re:"):
            regexes.append(re.compile(pattern[3:]))
        elif "*" in pattern:
            regexes.append(re.compile(translate(pattern)))
            regexes.append(re.compile(translate(pattern + ".*")))
        else:
            plain.add(_short(pattern.removesuffix(".weight").strip(".")))

    def matches(names: Sequence[str]) -> bool:
        return any(not plain.isdisjoint(_runs(_short(name))) for name in names) or any(
            regex.match(name) for regex in regexes for name in names
        )

    return matches


def _short(name: str) -> str:
    """A name without what models put before their layers."""
    return name[name.index("layers.") :] if "layers." in name else name


def _runs(name: str) -> Iterator[str]:
    """Each run of the parts of a name, which may stand for all that lies in it."""
    parts = name.split(".")
    for first in range(len(parts)):
        for last in range(first + 1, len(parts) + 1):
            yield ".".join(parts[first:last])


# --- what each matrix is kept in ---


def _by_group(model: Transformer, rules: Rules) -> dict[str, str]:
    """The format of each group, or of each matrix of a group whose matrices differ."""
    kept: dict[str, dict[str, str]] = {}
    for matrix in model.matrices:
        if matrix.group in LINEAR and not (rules.experts_alone and matrix.group != "experts"):
            kept.setdefault(matrix.group, {})[matrix.name] = _kept(model, matrix, rules)
    tied = model.tied_embeddings
    if rules.output and not tied and (form := rules.form(["lm_head"])) != WIDE:
        kept["output"] = {"output": form}
    by_group: dict[str, str] = {}
    for group, matrices in kept.items():
        alike = {*matrices.values()}
        by_group |= {group: alike.pop()} if len(alike) == 1 else matrices
    return by_group | {"others": WIDE}


def _kept(model: Transformer, matrix: Matrix, rules: Rules) -> str:
    """The format of a matrix, in the mean of its layers and of the modules that make it."""
    shares: Counter[str] = Counter()
    for layer in _layers(model, matrix):
        for columns, modules in _modules(model, matrix):
            names = [
                f"{prefix}layers.{layer}.{module}" for prefix in PREFIXES for module in modules
            ]
            shares[rules.form(names)] += columns
    if len(shares) == 1:
        return next(iter(shares))
    bits = sum(
        count * float(formats.element_size("weights", form).m_as("bit"))
        for form, count in shares.items()
    )
    return f"{bits / shares.total()} bit"


def _modules(model: Transformer, matrix: Matrix) -> list[tuple[int, list[str]]]:
    """The modules that make a matrix, with their columns and what each of them may be called."""
    name = matrix.name
    if name.startswith("linear"):
        values = (model.linear_value_heads or 0) * (model.linear_value_width or 0)
        heads = model.linear_value_heads or 0
        parts: tuple[tuple[int, tuple[str, ...]], ...] = (
            (model.convolved("linear"), ("in_proj_qkv", "in_proj_qkvz")),
            (values, ("in_proj_z", "in_proj_qkvz")),
            (heads, ("in_proj_b", "in_proj_ba")),
            (heads, ("in_proj_a", "in_proj_ba")),
        )
        if name == "linear output":
            parts = ((1, ("out_proj", "o_proj")),)
        return [(count, [f"linear_attn.{each}" for each in names]) for count, names in parts]
    for prefix, within in (("expert ", ["experts.0"]), ("shared ", list(SHARED))):
        if name.startswith(prefix):
            last = MODULES[name.removeprefix(prefix)]
            return [(1, [f"{f}.{w}.{each}" for f in FEED_FORWARD for w in within for each in last])]
    last = MODULES.get(name.removeprefix("windowed "), (name.replace(" ", "_"),))
    outer = ATTENTION if matrix.part == "attention" else FEED_FORWARD
    return [(1, [f"{part}.{each}" for part in outer for each in last])]


def _layers(model: Transformer, matrix: Matrix) -> list[int]:
    """The layers that have a matrix."""
    name = matrix.name
    attention = model.kinds_down("attention", ATTENTIONS)
    network = model.kinds_down("feed_forward", FEED_FORWARDS)
    if matrix.part != "attention":
        wanted, kinds = ({"dense"} if name in ("gate", "up", "down") else {"experts"}), network
    elif name.startswith("index"):
        wanted, kinds = {*INDEXED}, attention
    elif name.startswith(("linear", "decay", "state", "time")):
        wanted, kinds = ({"state"} if name[0] in "st" else {"linear"}), attention
    elif name.startswith("windowed"):
        wanted, kinds = {"window"}, attention
    else:
        with_window = not any(each.name.startswith("windowed") for each in model.matrices)
        wanted = {"full", "blocks", *LATENTS, *(["window"] if with_window else [])}
        kinds = attention
    found = [layer for layer, kind in enumerate(kinds) if kind in wanted]
    return found[: matrix.layers]


def _unmatched(model: Transformer, rules: Rules) -> Iterator[str]:
    """What the configuration leaves in 16 bits and is not a matrix that is counted."""
    names = [
        f"{prefix}layers.{layer}.{module}"
        for matrix in model.matrices
        if matrix.group in LINEAR
        for layer in _layers(model, matrix)
        for _, modules in _modules(model, matrix)
        for module in modules
        for prefix in PREFIXES[:1]
    ]
    runs = {run for name in names for run in _runs(_short(name))}
    routers = ("lm_head", "output", "gate", "router", "shared_expert_gate", "wte", "e_score")
    left = [
        pattern
        for pattern in rules.ignored
        if not pattern.startswith("re:")
        and "*" not in pattern
        and _short(pattern.removesuffix(".weight")) not in runs
        and pattern.split(".")[-1] not in routers
        and not any(part in pattern for part in APART)
        and ".experts." not in pattern
    ]
    if left:
        more = f" and {len(left) - 3} more" if len(left) > 3 else ""
        yield (
            f"its quantization_config leaves {', '.join(left[:3])}{more} as trained, of which"
            " nothing is counted apart"
        )
