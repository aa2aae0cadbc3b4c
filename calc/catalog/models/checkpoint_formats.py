"""Checkpoints in few bits, group by group: "fp8", "awq", "nvfp4", "q4_k_m".

Who releases a model in few bits quantises the linear layers of its blocks. Embedding, output, norms
and routers stay in 16 bits, except in files of llama.cpp, which quantises these too, each kind of
matrix by rules of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from calc import formats
from calc.catalog.models.architecture import LAYER_VECTORS, Matrix, Transformer
from calc.core.errors import InputError, abbreviated, did_you_mean, marked
from calc.core.names import spellings, squeezed

LINEAR = ("experts", "feed-forward", "attention")
"""Groups of the linear layers of blocks."""
WIDE = "bf16"  # what stays as it was trained
RECURRENCES = "linear input", "decay", "linear output"
"""Matrices of linear attention. NVFP4 leaves them out: NVIDIA's own checkpoints have them in FP8,
those by llm-compressor's recipes in 16 bits [llm-compressor-recipes]."""


class Scheme(NamedTuple):
    """A way in which linear layers are kept, and what is multiplied by them."""

    form: str
    """The format of their weights, scales included."""
    products: str = ""
    """What products are computed in, where weights are not widened before."""
    also: tuple[str, ...] = ()
    """Other names of such checkpoints."""
    recurrences: str = ""
    """The format of matrices of linear attention, where it is another."""


SCHEMES = {
    "fp8": Scheme("fp8", "fp8", ("fp8-dynamic", "w8a8-fp8", "fp8-e4m3")),
    "fp8-static": Scheme("fp8", "fp8", ("fp8-modelopt", "modelopt-fp8")),
    "fp8-block": Scheme("FP8 in blocks", "fp8", ("fp8-in-blocks", "fp8-blocks", "fp8-128x128")),
    "fp8-e5m2": Scheme("fp8-e5m2", "fp8"),
    "mxfp8": Scheme("mxfp8", "", ("mxfp8-e4m3",)),
    "mxfp6": Scheme("mxfp6", "", ("mxfp6-e3m2",)),
    "int8": Scheme("int8", "", ("w8a16", "bnb-8bit", "gptq-int8")),
    "w8a8": Scheme("int8", "int8", ("w8a8-int8", "int8-w8a8")),
    "nvfp4": Scheme("nvfp4", "fp4", ("fp4-e2m1", "nvfp4-w4a4"), "fp8"),
    "nvfp4a16": Scheme("nvfp4", "", ("w4a16-nvfp4",), "fp8"),
    "mxfp4": Scheme("mxfp4"),
    "awq": Scheme("AWQ", "", ("awq-int4", "awq-4bit", "autoawq")),
    "gptq": Scheme("GPTQ", "", ("gptq-int4", "autoround", "int4-autoround")),
    "w4a16": Scheme("W4A16", "", ("int4", "w4a16-g128", "int4-w4a16")),
    "w4a16-g32": Scheme("INT4 by 32", "", ("int4-by-32", "int4-g32")),
    "nf4": Scheme("NF4", "", ("bnb", "bnb-4bit", "bitsandbytes", "bnb-nf4")),
}
"""Schemes by name. Scales that a whole row or tensor of thousands of weights shares are left out.
"""
_SCHEMES = spellings({key: scheme.also for key, scheme in SCHEMES.items()})

SAME = {"w4a16-g32": "w4a16", "fp8-block": "fp8"}
"""Names by which a model's own release goes too."""
UNRELEASED = (
    *("tf32", "int32", "int16", "e8m0", "mxint8", "mxfp8-e5m2"),
    *("fp6-e3m2", "fp6-e2m3", "mxfp6-e2m3"),
)
"""Formats that no checkpoint is released in under their own name."""


class Checkpoint(NamedTuple):
    """The formats in which a checkpoint of a name keeps each group of matrices, or each one."""

    given: Mapping[str, str]
    products: str = ""
    name: str = ""
    """Name of a mixture whose formats are too many to be told."""
    released: bool = False
    """Whether it is the model's own release, as the data have it."""


def names() -> tuple[str, ...]:
    """The names of all formats that checkpoints are released in, in every one of their spellings.

    >>> "awq" in names(), "int4" in names(), "q4_k_m" in names()
    (True, True, True)
    """
    schemes = (name for key, scheme in SCHEMES.items() for name in (key, *scheme.also))
    return ("bf16", "fp16", "fp32", *schemes, *(name.lower() for name in MIXTURES))


def named(model: Transformer, stated: str, argument: str = "weights") -> Checkpoint | None:
    """The checkpoint of that name; None where it is no name of one, but a format for all.

    >>> from calc import models
    >>> named(models.get("llama-3-8b"), "awq").given["others"]
    'bf16'
    >>> named(models.get("llama-3-8b"), "2 byte") is None
    True
    """
    if (key := _key_of(stated)) is not None:
        return _released(model, key) or _of_scheme(model, SCHEMES[key])
    if (file := _FILES.get(squeezed(stated))) is not None:
        return _of_file(model, file)
    form = formats.key_of(stated)
    if form in UNRELEASED or (form is None and stated.strip()[:1].isalpha()):
        choices = [*SCHEMES, *(file.lower() for file in MIXTURES)]
        lacks = "there is no format" if form is None else "no checkpoint is released in"
        raise InputError(
            f"{marked(argument)}: {lacks} {abbreviated(stated)};"
            f" {did_you_mean(stated.lower(), choices)}there"
            f" are bf16, fp16, fp32, {', '.join(SCHEMES)} and llama.cpp's q2_k to q8_0 and"
            ' mxfp4_moe, and a size, as in "6 bit", is that of every parameter'
        )
    return None


def _key_of(stated: str) -> str | None:
    """The key of a scheme by one of its own names, or by any spelling of its format."""
    return _SCHEMES.get(squeezed(stated)) or _SCHEMES.get(squeezed(formats.key_of(stated)))


def _of_scheme(model: Transformer, scheme: Scheme) -> Checkpoint:
    linear = {group: scheme.form for group in LINEAR if group in model.groups}
    if scheme.recurrences:
        apart = (each.name for each in model.matrices if each.name in RECURRENCES)
        linear |= dict.fromkeys(apart, scheme.recurrences)
    return Checkpoint(linear | {"others": WIDE}, scheme.products)


def _released(model: Transformer, key: str) -> Checkpoint | None:
    """The model's own release of that name, where the data have it."""
    release = model.released
    if release is not None and SAME.get(key, key) in {*map(_name_of, release.formats.values())}:
        return Checkpoint(release.formats, release.products, released=True)
    if (other := model.released_in.get(key)) is not None:
        return Checkpoint(other.formats, other.products, released=True)
    return None


def _name_of(form: str) -> str:
    """The name of the checkpoints whose linear layers have that format; "" where there is none."""
    key = _key_of(form) or ""
    return SAME.get(key, key)


# --- files of llama.cpp ---


class Mixture(NamedTuple):
    """The types in a file of llama.cpp, of what has another than the rest."""

    rest: str
    value: Callable[[int, int, bool], str] | None = None
    """Format of the matrix of values, by its layer, how many there are, and whether heads share
    them."""
    down: Callable[[int, int], str] | None = None
    """Format of the second matrix of a feed-forward network, by its layer and how many there are.
    """
    output_of_attention: str = ""
    experts: str = ""


def _more_bits(layer: int, layers: int) -> bool:
    """Return whether llama.cpp gives a layer's matrix more bits: first, last, each third layer."""
    first = layers // 8
    return layer < first or layer >= 7 * layers // 8 or (layer - first) % 3 == 2


MIXTURES = {
    "Q2_K": Mixture(
        "Q2_K", lambda i, n, grouped: "Q4_K" if grouped else "Q3_K", lambda i, n: "Q3_K", "Q3_K"
    ),
    "Q3_K_S": Mixture("Q3_K"),
    "Q3_K_M": Mixture(
        "Q3_K",
        lambda i, n, grouped: "Q5_K" if i < 2 else "Q4_K",
        lambda i, n: "Q5_K" if i < n // 16 else "Q4_K",
        "Q4_K",
    ),
    "Q3_K_L": Mixture("Q3_K", lambda i, n, grouped: "Q5_K", lambda i, n: "Q5_K", "Q5_K"),
    "Q4_0": Mixture("Q4_0"),
    "Q4_1": Mixture("Q4_1"),
    "IQ4_XS": Mixture(
        "IQ4_XS",
        lambda i, n, grouped: "Q5_K" if grouped else "IQ4_XS",
        lambda i, n: "Q5_K" if i < n // 8 else "IQ4_XS",
    ),
    "IQ4_NL": Mixture(
        "IQ4_NL",
        lambda i, n, grouped: "Q5_K" if grouped else "IQ4_NL",
        lambda i, n: "Q5_K" if i < n // 8 else "IQ4_NL",
    ),
    "Q4_K_S": Mixture(
        "Q4_K",
        lambda i, n, grouped: "Q5_K" if i < 4 else "Q4_K",
        lambda i, n: "Q5_K" if i < n // 8 else "Q4_K",
    ),
    "Q4_K_M": Mixture(
        "Q4_K",
        lambda i, n, grouped: "Q6_K" if _more_bits(i, n) else "Q4_K",
        lambda i, n: "Q6_K" if _more_bits(i, n) else "Q4_K",
    ),
    "Q5_0": Mixture("Q5_0"),
    "Q5_1": Mixture("Q5_1"),
    "Q5_K_S": Mixture("Q5_K"),
    "Q5_K_M": Mixture(
        "Q5_K",
        lambda i, n, grouped: "Q6_K" if _more_bits(i, n) else "Q5_K",
        lambda i, n: "Q6_K" if _more_bits(i, n) else "Q5_K",
    ),
    "Q6_K": Mixture("Q6_K"),
    "Q8_0": Mixture("Q8_0"),
    "MXFP4_MOE": Mixture("Q8_0", experts="MXFP4"),
}
"""Mixtures by the name of a file: the rules of llama-quant.cpp [llama-cpp-quantize] without a
matrix of importance."""
_FILES = spellings(
    dict.fromkeys(MIXTURES, ()) | {"Q3_K_M": ("Q3_K",), "Q4_K_M": ("Q4_K",), "Q5_K_M": ("Q5_K",)}
)
INSTEAD = {  # of rows that blocks of 256 do not divide
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "IQ4_XS": "IQ4_NL",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
SUPERBLOCK = 256
EIGHT_EXPERTS = 8  # whose keys and values are kept in 8 bits
LAYERS_OF_70B = 80  # of the model whose values have a bit more


@lru_cache(maxsize=2**8)  # a sweep asks for the same at each of its points
def _of_file(model: Transformer, name: str) -> Checkpoint:
    return Checkpoint(dict(_types_of_file(model, name)), "", name)


def _types_of_file(model: Transformer, name: str) -> Iterator[tuple[str, str]]:
    """The type of each matrix; of layers that differ, the bits of a weight in their mean."""
    mixture = MIXTURES[name]
    output = "Q8_0" if mixture.rest == "Q8_0" or model.width % SUPERBLOCK else "Q6_K"
    yield "output", output
    yield "embedding", output if model.tied_embeddings else _fitting(mixture.rest, model.width)
    for matrix in model.matrices:
        if matrix.group in LINEAR or matrix.name in LAYER_VECTORS[1:]:
            yield matrix.name, _mean([*_types(model, mixture, matrix)], matrix, model)
        elif matrix.name == LAYER_VECTORS[0]:
            yield matrix.name, "bf16"
    yield "others", "fp32"


def _types(model: Transformer, mixture: Mixture, matrix: Matrix) -> Iterator[str]:
    """The type of a matrix in each layer that has it."""
    grouped = model.heads >= 4 * model.kv_heads
    eight = model.experts == EIGHT_EXPERTS
    for layer in range(matrix.layers):
        form = mixture.experts if mixture.experts and matrix.group == "experts" else mixture.rest
        if matrix.name.endswith("value"):
            form = mixture.value(layer, matrix.layers, grouped) if mixture.value else form
            if model.layers == LAYERS_OF_70B and form in ("Q3_K", "Q4_K"):
                form = "Q5_K"
            form = "Q8_0" if eight else form
        elif matrix.name.endswith("key"):
            form = "Q8_0" if eight else form
        elif matrix.name.endswith("down") and matrix.part == "feed-forward" and mixture.down:
            form = mixture.down(layer, matrix.layers)
        elif matrix.name.endswith("attention output"):
            small = eight and not mixture.rest.startswith(("Q5", "Q6", "Q8"))
            form = "Q5_K" if small else (not eight and mixture.output_of_attention) or form
        yield form


def _fitting(form: str, columns: int) -> str:
    return INSTEAD.get(form, form) if columns % SUPERBLOCK else form


def _mean(types: list[str], matrix: Matrix, model: Transformer) -> str:
    # Keys made of latents are stored the other way round, in rows as long as a head.
    columns = model.head_width if matrix.name == "key up" else matrix.inputs
    fitting = [_fitting(form, columns) for form in types]
    if len({*fitting}) == 1:
        return fitting[0]
    return f"{sum(formats.STORED[form] for form in fitting) / len(fitting)} bit"
