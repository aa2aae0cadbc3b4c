"""The header of a GGUF file: what its model is, and the type of each tensor; no weight is read.

Every length in a file is what somebody wrote, so that each is checked before it is believed, and no
more than a header of known programs has is ever read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from calc.catalog.models import families
from calc.catalog.models.architecture import Transformer
from calc.catalog.models.config import Config, known
from calc.catalog.models.release import Release
from calc.core.errors import InputError, abbreviated
from calc.core.files import opened
from calc.core.units import quantity

MAGIC, VERSIONS = b"GGUF", (2, 3)
LARGEST_MB = 10_000_000
"""Megabytes that a file may have: its weights are passed over, and ten terabytes are more than any
has."""
HEADER = 256 * 2**20
"""Bytes of a header; the longest are of tokenizers of a quarter of a million words."""
MOST = {"tensors": 100_000, "fields": 10_000, "values of an array": 10_000_000, "dimensions": 4}
KEPT = 1000
"""Values of an array that are kept; of a longer one, such as a tokenizer's, none is."""
ARRAY, TEXT = 9, 8
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?"} | {
    10: "<Q",
    11: "<q",
    12: "<d",
}
PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


class Type(NamedTuple):
    """A type of llama.cpp's ggml-common.h: the weights and the bytes of a block, and its name."""

    weights: int
    size: int
    name: str = ""
    """Name by which formats know it; "" where they have none, so that its bits are told."""


TYPES = {
    0: Type(1, 4, "fp32"),
    1: Type(1, 2, "fp16"),
    2: Type(32, 18, "Q4_0"),
    3: Type(32, 20, "Q4_1"),
    6: Type(32, 22, "Q5_0"),
    7: Type(32, 24, "Q5_1"),
    8: Type(32, 34, "Q8_0"),
    9: Type(32, 36),
    10: Type(256, 84, "Q2_K"),
    11: Type(256, 110, "Q3_K"),
    12: Type(256, 144, "Q4_K"),
    13: Type(256, 176, "Q5_K"),
    14: Type(256, 210, "Q6_K"),
    15: Type(256, 292),
    16: Type(256, 66),
    17: Type(256, 74),
    18: Type(256, 98),
    19: Type(256, 50),
    20: Type(32, 18, "IQ4_NL"),
    21: Type(256, 110),
    22: Type(256, 82),
    23: Type(256, 136, "IQ4_XS"),
    24: Type(1, 1),
    25: Type(1, 2),
    26: Type(1, 4),
    27: Type(1, 8),
    28: Type(1, 8),
    29: Type(256, 56),
    30: Type(1, 2, "bf16"),
    34: Type(256, 54),
    35: Type(256, 66),
    39: Type(32, 17, "mxfp4"),
}


@dataclass(frozen=True)
class Tensor:
    """A tensor as a header has it."""

    name: str
    shape: tuple[int, ...]
    type: Type
    offset: int

    @property
    def weights(self) -> int:
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of its blocks."""
        return self.weights // self.type.weights * self.type.size


@dataclass(frozen=True)
class Header:
    """The fields and the tensors of a file, or of all parts of one."""

    values: dict[str, Any]
    tensors: tuple[Tensor, ...]


def load(path: Path | str) -> Transformer:
    """The model of a GGUF file: its shape, and the bits of each of its matrices.

    The numbers have the names of a `config.json`, whose reader makes the model of them.
    """
    header = read(path)
    names = known()["gguf"]
    family = header.values.get("general.architecture")
    if family not in names["families"]:
        raise InputError(
            f"{path}: its general.architecture must be one of {', '.join(names['families'])}; got"
            f" {abbreviated(family)}",
            argument="general.architecture",
            given=family,
        )
    config = Config(path, _as_config(header, str(family)))
    return _with_types(families.model_of(config, Path(path).stem), header, path)


def _as_config(header: Header, family: str) -> dict[str, Any]:
    """The numbers of a header by the names of a configuration."""
    names, values = known()["gguf"], header.values
    tensors = {tensor.name: tensor for tensor in header.tensors}
    table = names["families"][family]
    said: dict[str, Any] = {"model_type": table["model_type"]}
    for theirs, ours in (names["usual"] | table.get("numbers", {})).items():
        if (value := values.get(f"{family}.{theirs}")) is not None:
            said[ours] = value
    if "token_embd.weight" in tensors:
        said["vocab_size"] = tensors["token_embd.weight"].shape[-1]
    said["tie_word_embeddings"] = "output.weight" not in tensors
    if family == "llama" and "num_local_experts" in said:
        said["model_type"] = "mixtral"
    if family == "deepseek2":
        biased = any(".exp_probs_b" in name for name in tensors)
        said["model_type"] = "deepseek_v3" if biased else "deepseek_v2"
        said.setdefault("q_lora_rank", None)
        keys = values.get("deepseek2.attention.key_length_mla", said.pop("head_dim", 0))
        said["qk_nope_head_dim"] = keys - said.get("qk_rope_head_dim", 0)
        values_of = values.get("deepseek2.attention.value_length_mla")
        said["v_head_dim"] = values_of or values.get("deepseek2.attention.value_length")
        said["num_key_value_heads"] = said.get("num_attention_heads")
    if family == "glm4moe":
        said["num_hidden_layers"] = said.get("num_hidden_layers", 0) - values.get(
            "glm4moe.nextn_predict_layers", 0
        )
        said["use_qk_norm"] = any(".attn_q_norm." in name for name in tensors)
        said["attention_bias"] = any(".attn_q.bias" in name for name in tensors)
    if any(".attn_q.bias" in name for name in tensors) and family in ("llama", "gpt-oss"):
        said["attention_bias"] = True
    return said


# --- types of matrices ---

MATRICES: dict[str, tuple[str, ...]] = {  # of a block, by the names of `Transformer.matrices`
    "attn_q": ("query",),
    "attn_k": ("key",),
    "attn_v": ("value",),
    "attn_qkv": ("query", "key", "value"),
    "attn_output": ("attention output",),
    "attn_q_a": ("query down",),
    "attn_q_b": ("query up",),
    "attn_kv_a_mqa": ("key and value down",),
    "attn_kv_b": ("key up", "value up"),
    "attn_k_b": ("key up",),
    "attn_v_b": ("value up",),
    "ffn_gate": ("gate",),
    "ffn_up": ("up",),
    "ffn_down": ("down",),
    "ffn_gate_exps": ("expert gate",),
    "ffn_up_exps": ("expert up",),
    "ffn_down_exps": ("expert down",),
    "ffn_gate_shexp": ("shared gate",),
    "ffn_up_shexp": ("shared up",),
    "ffn_down_shexp": ("shared down",),
    "ffn_gate_inp": ("router",),
}
UNCOUNTED = ("rope_freqs", "rope_factors")
"""Tables that are computed from the shape, and in no count of parameters."""
OFF = 1e-4
"""Share of its parameters by which tensors may differ from a shape, as notes of families say."""


def _with_types(model: Transformer, header: Header, path: Path | str) -> Transformer:
    """The model with the formats of a file, of which each byte is in one of the groups."""
    layers = re.compile(r"blk\.(\d+)\.(\w+)\.weight$")
    kept: dict[tuple[str, ...], list[Tensor]] = {}
    matrices = {matrix.name for matrix in model.matrices}
    tensors = [
        tensor
        for tensor in header.tensors
        if not tensor.name.startswith(UNCOUNTED)
        and not ((block := layers.match(tensor.name)) and int(block[1]) >= model.layers)
    ]
    counted = model.parameters.m_as("param")
    held = sum(tensor.weights for tensor in tensors)
    if abs(held / counted - 1) > OFF:
        raise InputError(
            f"{path}: its tensors hold {held} parameters, and the shape that its header says makes"
            f" {counted:.0f}: it is of a model that calc does not count"
        )
    names_held = {tensor.name for tensor in tensors}
    for tensor in tensors:
        block = layers.match(tensor.name)
        names = MATRICES.get(block[2], ()) if block else ()
        if block and block[2] == "ffn_up" and f"blk.{block[1]}.ffn_gate.weight" not in names_held:
            names = ("gate", "up") if "gate" in matrices else names
        if tensor.name in ("token_embd.weight", "output.weight"):
            names = ("embedding" if tensor.name[0] == "t" else "output",)
        kept.setdefault(tuple(name for name in names if name in matrices or not block), []).append(
            tensor
        )
    others = kept.pop((), [])
    formats = {name: _format(several) for names, several in kept.items() for name in names}
    left = counted - sum(each.weights for several in kept.values() for each in several)
    size = sum(tensor.size for tensor in others)
    formats["others"] = f"{8 * size / left!r} bit" if left > 0 else "fp32"
    total = sum(tensor.size for tensor in header.tensors)
    made = replace(model, checkpoint=quantity(total, "byte"))
    return made.with_release(Release(formats), made.notes)


def _format(tensors: list[Tensor]) -> str:
    """The type of tensors that are alike, or their bits in the mean."""
    types = {tensor.type for tensor in tensors}
    if len(types) == 1 and (name := tensors[0].type.name):
        return name
    return f"{8 * sum(t.size for t in tensors) / sum(t.weights for t in tensors)!r} bit"


# --- bytes ---


def read(path: Path | str) -> Header:
    """Return the header of a file, or those of all its parts, where it has several."""
    first = _read(Path(path))
    parts = PART.search(str(path))
    if parts is None or first.values.get("split.count", 1) <= 1:
        return first
    values, tensors = dict(first.values), list(first.tensors)
    for number in range(1, int(parts[2]) + 1):
        other = Path(PART.sub(f"-{number:05}-of-{parts[2]}.gguf", str(path)))
        if number != int(parts[1]):
            more = _read(other)
            values = more.values | values
            tensors += more.tensors
    return Header(values, tuple(tensors))


def _read(path: Path) -> Header:
    with opened(path, LARGEST_MB) as file:
        reader = _Reader(file, path)
        if reader.take(4) != MAGIC:
            raise InputError(f"{path}: is no GGUF file: it does not begin with {MAGIC.decode()}")
        version = reader.number("<I")
        if version not in VERSIONS:
            read = " and ".join(map(str, VERSIONS))
            raise InputError(f"{path}: is of version {version} of GGUF, of which {read} are read")
        tensors, fields = reader.count("tensors"), reader.count("fields")
        values: dict[str, Any] = {}
        for _ in range(fields):
            name = reader.text()
            values[name] = reader.value(reader.number("<I"))
        described = tuple(reader.tensors(tensors))
        reader.check_length(described, values.get("general.alignment", 32))
    return Header(values, described)


class _Reader:
    """Bytes of a header, in order, none beyond what a header may have."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file, self.path, self.taken = file, path, 0

    def take(self, count: int) -> bytes:
        self.taken += count
        if self.taken > HEADER:
            raise InputError(f"{self.path}: its header is longer than {HEADER // 2**20} MiB")
        held = self.file.read(count)
        if len(held) < count:
            raise InputError(f"{self.path}: is cut off in its header")
        return held

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self, what: str, form: str = "<Q") -> int:
        count = int(self.number(form))
        if count > MOST[what]:
            raise InputError(f"{self.path}: has {count} {what}, and may have {MOST[what]}")
        return count

    def text(self) -> str:
        return self.take(self.number("<Q")).decode("utf-8", "replace")

    def value(self, kind: int, nested: bool = False) -> Any:
        if kind == TEXT:
            return self.text()
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind != ARRAY or nested:
            raise InputError(f"{self.path}: has a value of the unknown type {kind}")
        of, count = self.number("<I"), self.count("values of an array")
        if of in NUMBERS and count > KEPT:
            self.take(count * struct.calcsize(NUMBERS[of]))
            return None
        values = [self.value(of, nested=True) for _ in range(count)]
        return values if count <= KEPT else None

    def tensors(self, count: int) -> Iterator[Tensor]:
        for _ in range(count):
            name = self.text()
            sides = [self.number("<Q") for _ in range(self.count("dimensions", "<I"))]
            kind = self.number("<I")
            if kind not in TYPES:
                raise InputError(f"{self.path}: {abbreviated(name)} is of the unknown type {kind}")
            weights = prod(sides)
            if not 0 < weights < 2**50 or weights % TYPES[kind].weights:
                raise InputError(
                    f"{self.path}: {abbreviated(name)} has sides of {abbreviated(sides)}, which its"
                    " type does not fill"
                )
            yield Tensor(name, tuple(sides), TYPES[kind], self.number("<Q"))

    def check_length(self, tensors: tuple[Tensor, ...], alignment: object) -> None:
        """Refuse a file that ends before its last tensor does."""
        if type(alignment) is not int or not 0 < alignment <= 2**20:
            raise InputError(f"{self.path}: its alignment is {abbreviated(alignment)}")
        start = -(-self.taken // alignment) * alignment
        end = start + max((tensor.offset + tensor.size for tensor in tensors), default=0)
        length = self.file.seek(0, 2)
        if length < end:
            raise InputError(
                f"{self.path}: has {length} bytes, and its header describes {end}: it is cut off"
            )
