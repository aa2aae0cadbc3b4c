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
    COMPRESSED,
    FEED_FORWARDS,
    INDEXED,
    LATENTS,
    Matrix,
    Transformer,
)
from calc.catalog.models.checkpoint_formats import LINEAR, WIDE
from calc.catalog.models.config import QUANTIZED, Config, known
from calc.catalog.models.release import Release
from calc.core.errors import abbreviated, did_you_mean, marked

PREFIXES = "model.", "model.language_model.", "language_model.model.", "backbone."
ATTENTION = "self_attn", "attention", "mixer", "attn", "conv"
FEED_FORWARD = "mlp", "block_sparse_moe", "mixer", "ffn", "feed_forward"
MODULES: Mapping[str, tuple[str, ...]] = {  # what transformers calls a matrix in its block
    "query": ("q_proj", "qkv_proj"),
    "key": ("k_proj", "qkv_proj"),
    "value": ("v_proj", "qkv_proj"),
    "attention output": ("o_proj", "o_b_proj", "wo_b", "out_proj"),
    "query down": ("q_a_proj", "wq_a"),
    "query up": ("q_b_proj", "wq_b"),
    "key and value down": ("kv_a_proj_with_mqa",),
    "key up": ("kv_b_proj",),
    "value up": ("kv_b_proj",),
    "shared key": ("kv_proj", "wkv"),
    "groups of results": ("o_a_proj", "wo_a"),
    "index query": ("indexer.wq_b", "index_q_proj"),
    "index key": ("indexer.wk", "index_k_proj"),
    "index weights": ("indexer.weights_proj",),
    "attention gate": ("g_proj",),
    "state input": ("in_proj",),
    "state output": ("out_proj",),
    "convolution input": ("in_proj",),
    "convolution output": ("out_proj",),
    "gate": ("gate_proj", "gate_up_proj", "w1"),
    "up": ("up_proj", "gate_up_proj", "w3"),
    "down": ("down_proj", "w2"),
}
SHARED = "shared_expert", "shared_experts"
BITS, LARGEST = (2, 3, 4, 5, 6, 8), 2**20
APART = ("visual", "vision", "audio", "mtp", "multi_modal_projector", "conv1d", "norm", "embed")
"""Parts of names that are of no linear layer of the text's blocks."""


@dataclass(frozen=True)
class Rules:
    """Formats of modules by their names, and the format in which they are multiplied."""

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
    settings = next((each for each in map(config.get, QUANTIZED) if each is not None), None)
    if settings is None:
        return model
    if not isinstance(settings, dict):
        raise config.error(f"quantization_config must be an object; got {abbreviated(settings)}")
    method, table = _method(config, settings), known()["quantization"]
    unread = {
        name
        for name, value in settings.items()
        if name not in (*table["harmless"], *table[method]) and value not in (None, False, {}, [])
    }
    if unread:
        raise config.error(
            f"its quantization_config of the method {method} has {', '.join(sorted(unread))}, which"
            " is not read, and may change what its weights take"
        )
    try:
        rules = METHODS[method](_checked(method, settings))
    except (KeyError, ValueError) as error:
        said = f"it has no {error.args[0]}" if isinstance(error, KeyError) else error
        raise config.error(f"its quantization_config ({method}) cannot be read: {said}") from None
    release = Release(_by_group(model, rules), rules.products)
    notes = (*model.notes, *rules.notes, *_unmatched(model, rules))
    return model.with_release(release, notes)


def _method(config: Config, settings: Mapping[str, Any]) -> str:
    """Return the method of a `quantization_config`, in any case of its letters."""
    method = settings.get("quant_method") or ("modelopt" if settings.get("quant_algo") else None)
    name = method.lower() if isinstance(method, str) else ""
    if name in METHODS:
        return name
    said = f"is of the method {abbreviated(method)}, which is not read" if method else ""
    raise config.error(
        f"its quantization_config {said or 'has no quant_method'}; {did_you_mean(name, METHODS)}"
        f"those of {', '.join(METHODS)} are read; for another, take it out and say the format, as"
        f" in {marked('weights', 'awq')}",
        argument="quant_method",
        given=method,
        allowed=tuple(METHODS),
    )


# --- what fields may be ---


@dataclass(frozen=True)
class Kind:
    """A kind of field of a `quantization_config`, and how a refusal says it."""

    fits: Callable[[Any], bool]
    said: str


def _is_size(value: object) -> bool:
    return type(value) is int and 1 <= value <= LARGEST


def _one_of(*allowed: object) -> Kind:
    def fits(value: object) -> bool:
        return any(type(value) is type(each) and value == each for each in allowed)

    *others, last = map(str, allowed)
    return Kind(fits, f"{', '.join(others)} or {last}")


def _all(kind: type, values: Any) -> bool:
    return all(isinstance(each, kind) for each in values)


FLAG = Kind(lambda value: isinstance(value, bool), "true or false")
NAMES = Kind(lambda value: isinstance(value, list) and _all(str, value), "a list of names")
BLOCK = Kind(
    lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_size, value)),
    f"two whole numbers from 1 to {LARGEST}",
)
GROUP = Kind(
    lambda value: _is_size(value) or (type(value) is int and value == -1),
    f"a whole number from 1 to {LARGEST}, or -1 for a whole row",
)
OBJECT = Kind(lambda value: isinstance(value, dict), "an object")
OBJECTS = Kind(
    lambda value: isinstance(value, dict) and _all(dict, value.values()),
    "an object of which each value is an object",
)
LISTED = Kind(
    lambda value: (
        isinstance(value, dict)
        or (isinstance(value, list) and len(value) == 1 and _all(dict, value))
    ),
    "an object, or a list of one",
)
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("modules_to_not_convert", "modules_in_block_to_not_quantize"), NAMES),
    **dict.fromkeys(("ignored_layers", "ignore", "exclude", "exclude_modules"), NAMES),
    **dict.fromkeys(("llm_int8_skip_modules", "targets"), NAMES),
    **dict.fromkeys(("zero_point", "sym", "symmetric", "lm_head"), FLAG),
    **dict.fromkeys(("load_in_4bit", "_load_in_4bit", "load_in_8bit", "_load_in_8bit"), FLAG),
    "bnb_4bit_use_double_quant": FLAG,
    **dict.fromkeys(("bits", "w_bit", "num_bits"), _one_of(*BITS)),
    "auto-round bits": _one_of(*BITS, 16, 32),  # modules that stay have 16 or 32
    "group_size": GROUP,
    "auto-round group_size": Kind(
        lambda value: GROUP.fits(value) or (type(value) is int and value == 0),
        f"{GROUP.said}, or 0 for a whole matrix",
    ),
    **dict.fromkeys(("weight_block_size", "block_structure"), BLOCK),
    "fmt": _one_of("e4m3", "e5m2", "float8_e4m3fn"),
    "type": _one_of("float", "int"),
    "bnb_4bit_quant_type": _one_of("nf4", "fp4"),
    **dict.fromkeys(("weights", "input_activations", "sparsity_config"), OBJECT),
    **dict.fromkeys(("quantization", "global_quant_config"), OBJECT),
    **dict.fromkeys(("config_groups", "extra_config", "quantized_layers"), OBJECTS),
    "gptq dynamic": OBJECTS,
    **dict.fromkeys(("weight", "input_tensors"), LISTED),
}
"""The kind of each field that is read, wherever it stands; of one method before that of all."""


def _checked(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields that are of their kinds, without those that are null."""
    checked = {name: value for name, value in settings.items() if value is not None}
    for name, value in checked.items():
        kind = KINDS.get(f"{method} {name}") or KINDS.get(name)
        if kind and not kind.fits(value):
            raise ValueError(f"{name} must be {kind.said}; got {abbreviated(value)}")
        if kind is OBJECTS:
            checked[name] = {key: _checked(method, each) for key, each in value.items()}
        elif kind is OBJECT or kind is LISTED:
            (alone,) = value if isinstance(value, list) else (value,)
            checked[name] = _checked(method, alone)
    return checked


# --- methods ---

OF_LAYERS = "quant_algo", "moe_quant_algo", "config_groups", "ignore", "group_size"
"""What ModelOpt writes beside a list of layers that it has converted from a checkpoint in FP8."""


def _fp8(settings: dict[str, Any]) -> Rules:
    form = "fp8-e5m2" if settings.get("fmt") == "e5m2" else "fp8"
    if block := settings.get("weight_block_size"):
        rows, columns = block
        form = "FP8 in blocks" if rows * columns == 128**2 else f"{8 + 32 / (rows * columns)} bit"
    if (layers := settings.get("quantized_layers")) is None:
        if odd := [name for name in OF_LAYERS if settings.get(name)]:
            raise ValueError(f"{odd[0]} is read beside quantized_layers alone")
        return _all_but(form, _skipped(settings), "fp8")
    listed = {name: _algorithm(each) for name, each in layers.items()}  # as ModelOpt has them
    products = {of_products for _, of_products in listed.values()}
    rules = _mixed(form, _skipped(settings), {name: each for name, (each, _) in listed.items()})
    return Rules(rules.form, products.pop() if len(products) == 1 else "fp8")


def _fbgemm_fp8(settings: dict[str, Any]) -> Rules:
    return _all_but("fp8", _skipped(settings), "fp8")


def _mxfp4(settings: dict[str, Any]) -> Rules:
    rules = _all_but("mxfp4", _skipped(settings), "fp4")
    return Rules(rules.form, "fp4", experts_alone=True, ignored=rules.ignored)


def _awq(settings: dict[str, Any]) -> Rules:
    zeros = settings.get("zero_point", True)
    bits, group = settings.get("bits", settings.get("w_bit", 4)), settings.get("group_size", 128)
    form = "AWQ" if (bits, group, zeros) == (4, 128, True) else _grouped(bits, group, zeros)
    return _all_but(form, _skipped(settings))


def _gptq(settings: dict[str, Any]) -> Rules:
    bits, group = settings["bits"], settings.get("group_size", 128)
    form = "GPTQ" if (bits, group) == (4, 128) else _grouped(bits, group, True)
    skipped, other = list(_skipped(settings)), {}
    for pattern, change in (settings.get("dynamic") or {}).items():
        if pattern.startswith("-:"):
            skipped.append(f"re:{pattern[2:]}")
        else:
            of_pattern = {"bits": bits, "group_size": group} | change
            other[f"re:{pattern.removeprefix('+:')}"] = _grouped(
                of_pattern["bits"], of_pattern["group_size"], True
            )
    return _mixed(form, skipped, other, output=bool(settings.get("lm_head")))


def _auto_round(settings: dict[str, Any]) -> Rules:
    bits, group = settings["bits"], settings.get("group_size", 128)
    if (kind := settings.get("data_type", "int")) not in ("int", "int_sym"):
        raise ValueError(f"data_type {kind}")
    form = "GPTQ" if (bits, group) == (4, 128) else _grouped(bits, group, True)
    skipped, other = list(_skipped(settings)), {}
    for pattern, change in (settings.get("extra_config") or {}).items():
        of_pattern = {"bits": bits, "group_size": group} | {
            name: change[name] for name in ("bits", "group_size") if name in change
        }
        if of_pattern["bits"] >= 16:
            skipped.append(pattern)
        else:
            other[pattern] = _grouped(of_pattern["bits"], of_pattern["group_size"], True)
    return _mixed(form, skipped, other)


def _compressed(settings: dict[str, Any]) -> Rules:
    """The groups of compressed-tensors, each with its targets, and a list of what stays."""
    targets: dict[str, str] = {}
    products = {""}
    if (sparse := settings.get("sparsity_config")) and sparse.get("format", "dense") != "dense":
        raise ValueError("weights that are pruned are not counted")
    for group in settings["config_groups"].values():
        if (weights := group.get("weights")) is None:
            continue
        form = _scheme(weights)
        computed = group.get("input_activations")
        products.add(_computed_in(form, computed) if computed else "")
        targets |= dict.fromkeys(group["targets"], form)
    if not targets and "kv_cache_scheme" not in settings:
        raise ValueError("config_groups must have a group with targets and weights")
    usual = targets.pop("Linear", WIDE)
    if unknown := [name for name in targets if not name.startswith("re:") and "." not in name]:
        raise ValueError(f"targets {', '.join(unknown)}, where Linear or names of modules are read")
    of_all = max(products)
    rules = _mixed(usual, settings.get("ignore") or (), targets, output=True)
    return Rules(rules.form, of_all, True, False, rules.ignored, _caches(settings))


def _scheme(weights: Mapping[str, Any]) -> str:
    """The format of weights as compressed-tensors describes it."""
    bits, kind, strategy = weights["num_bits"], weights["type"], weights["strategy"]
    if strategy == "tensor_group":
        return "nvfp4"
    if strategy == "group":
        group, symmetric = weights["group_size"], weights.get("symmetric", True)
        if kind == "float" and bits == 4:
            return "mxfp4" if group == 32 else _grouped(4, group, False)
        return _grouped(bits, group, not symmetric)
    if strategy == "block":
        rows, columns = weights.get("block_structure") or (128, 128)
        return "FP8 in blocks" if rows * columns == 128**2 else f"{bits + 32 / rows / columns} bit"
    if strategy not in ("tensor", "channel"):
        read = "tensor, channel, group, tensor_group or block"
        raise ValueError(f"strategy of weights must be {read}; got {abbreviated(strategy)}")
    return {("float", 8): "fp8", ("int", 8): "int8"}.get((kind, bits), f"{bits} bit")


def _computed_in(form: str, computed: Mapping[str, Any]) -> str:
    if computed["num_bits"] == 4:
        return "fp4" if computed["type"] == "float" else ""
    return "fp8" if computed["type"] == "float" else "int8"


ALGORITHMS = {  # of ModelOpt: the format of weights, and what products are computed in
    "FP8": ("fp8", "fp8"),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "fp8"),
    "FP8_PB_WO": ("FP8 in blocks", ""),
    "NVFP4": ("nvfp4", "fp4"),
    "NVFP4_AWQ": ("nvfp4", "fp4"),
    "W4A16_NVFP4": ("nvfp4", ""),
    "W4A16_AWQ": ("W4A16", ""),
    "W4A8_AWQ": ("W4A16", "fp8"),
    "W8A8_SQ_PER_CHANNEL": ("int8", "int8"),
    "MXFP8": ("mxfp8", ""),
    "MXFP4": ("mxfp4", ""),
}


def _modelopt(settings: dict[str, Any]) -> Rules:
    inner = settings.get("quantization", settings)
    if (layers := inner.get("quantized_layers")) is not None:
        return _layer_by_layer(layers, _caches(inner))
    form, products = _algorithm(inner)
    skipped = inner.get("exclude_modules") or settings.get("ignore") or ()
    rules = _all_but(form, skipped, products)
    return Rules(rules.form, products, True, False, rules.ignored, _caches(inner))


def _algorithm(settings: Mapping[str, Any]) -> tuple[str, str]:
    """The format of weights, and what products are computed in, by ModelOpt's name of both."""
    algorithm = str(settings["quant_algo"]).upper()
    if algorithm not in ALGORITHMS:
        raise ValueError(f"quant_algo {algorithm}, of which {', '.join(ALGORITHMS)} are read")
    return ALGORITHMS[algorithm]


def _layer_by_layer(layers: Mapping[str, Mapping[str, Any]], notes: tuple[str, ...]) -> Rules:
    """Modules that are listed, each with a method of its own; all others stay."""
    listed = {_short(name): _algorithm(each) for name, each in layers.items()}
    of_experts = {listed[name][1] for name in listed if ".experts." in name}
    products = of_experts or {each for _, each in listed.values()}

    def of(names: Sequence[str]) -> str:
        formats_listed = (listed[name] for name in map(_short, names) if name in listed)
        return next(formats_listed, (WIDE, ""))[0]

    return Rules(of, products.pop() if len(products) == 1 else "", True, False, (), notes)


def _bitsandbytes(settings: dict[str, Any]) -> Rules:
    skipped = settings.get("llm_int8_skip_modules") or ()
    in_4, in_8 = (
        bool(settings.get(f"load_in_{bits}bit") or settings.get(f"_load_in_{bits}bit"))
        for bits in (4, 8)
    )
    if in_4 == in_8:
        both = "both are" if in_4 else "neither is"
        raise ValueError(f"one of load_in_4bit and load_in_8bit must be true; {both}")
    if in_8:
        return _all_but("int8", skipped)
    return _all_but("NF4" if settings.get("bnb_4bit_use_double_quant") else "4.5 bit", skipped)


def _quark(settings: dict[str, Any]) -> Rules:
    """AMD's: one format for all linear layers, and what is left out."""
    weight = settings["global_quant_config"]["weight"]
    dtype, scheme = str(weight["dtype"]), weight.get("qscheme", "per_tensor")
    inputs = settings["global_quant_config"].get("input_tensors")
    form = {"fp4": "mxfp4", "fp8_e4m3": "fp8", "int8": "int8"}.get(dtype)
    if form is None or (scheme == "per_group") != (dtype == "fp4"):
        raise ValueError(f"dtype {dtype} with qscheme {scheme}")
    products = {"mxfp4": "fp4", "fp8": "fp8", "int8": "int8"}[form] if inputs else ""
    skipped = settings.get("exclude") or ()
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


def _grouped(bits: int, group: int, zeros: bool) -> str:
    """The bits of a weight with its share of a scale of 16 bit, and of a zero of its own bits."""
    if bits not in BITS:
        raise ValueError(f"weights of {bits} bit in groups of {group}")
    if group in (-1, 0):  # a scale for a whole row
        return "int8" if bits == 8 else f"{bits} bit"
    each = bits + (16 + (bits if zeros else 0)) / group
    return "W4A16" if each == 4.125 else f"{each} bit"


def _skipped(settings: dict[str, Any]) -> Sequence[str]:
    """Return what stays as it was trained, by the names that methods have for it."""
    names = ("modules_to_not_convert", "ignored_layers", "modules_in_block_to_not_quantize")
    return next((settings[name] for name in names if settings.get(name)), ())


def _caches(settings: dict[str, Any]) -> tuple[str, ...]:
    if any(settings.get(name) for name in ("kv_cache_scheme", "kv_cache_quant_algo")):
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
    others = [(_matching([pattern]), of_pattern) for pattern, of_pattern in other.items()]

    def of(names: Sequence[str]) -> str:
        if stays(names):
            return WIDE
        return next((of_pattern for matches, of_pattern in others if matches(names)), form)

    return Rules(of, output=output, ignored=skipped)


def _matching(patterns: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    """Return a test of whether a module, by one of its names, is meant by one of these patterns."""
    plain, regexes = set(), []
    for pattern in patterns:
        if pattern.startswith("re:"):
            regexes.append(_expression(pattern[3:]))
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


def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{abbreviated(pattern)} is no regular expression: {error}") from None


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
    elif name.startswith("convolution"):
        wanted, kinds = {"convolution"}, attention
    elif name.startswith("windowed"):
        wanted, kinds = {"window"}, attention
    else:
        with_window = not any(each.name.startswith("windowed") for each in model.matrices)
        wanted = {"full", "blocks", *LATENTS, *COMPRESSED, *(["window"] if with_window else [])}
        kinds = attention
    of_kind = [layer for layer, kind in enumerate(kinds) if kind in wanted]
    return of_kind[: matrix.layers]


def _unmatched(model: Transformer, rules: Rules) -> Iterator[str]:
    """Return what the configuration leaves in 16 bits and is not a matrix that is counted."""
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
