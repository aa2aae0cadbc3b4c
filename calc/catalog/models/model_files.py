"""A model from its own files: a `config.json`, a folder of a checkpoint, a GGUF file, or the id of
a repository whose files Hugging Face's tools have kept on this machine.

No weight is read and nothing is fetched: headers say how many bytes each tensor takes.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

from calc.catalog.models import families, gguf
from calc.catalog.models.architecture import Transformer
from calc.catalog.models.model_table import key_of
from calc.catalog.models.release import Release
from calc.catalog.models.weights import Weights
from calc.core.errors import InputError, abbreviated
from calc.core.files import opened, parse_json, read_text
from calc.core.units import quantity

TENSORS = ".safetensors"
CONFIG, INDEX, ONE = "config.json", f"model{TENSORS}.index.json", f"model{TENSORS}"
REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
HEADER = 100_000_000
"""Bytes of a header of safetensors, by its specification the most."""
BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    **dict.fromkeys(("F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ"), 8),
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
}
"""Bits of an element of each type that safetensors have."""
PLAIN = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}
BESIDE = re.compile(r"visual|vision|audio|mtp|multi_modal|image|projector|patch_merge|rotary")
"""Names of what a checkpoint has beside the text that is counted."""
LAYER = re.compile(r"\blayers\.(\d+)\.")
CLOSE, OFF = 0.05, 1e-3
"""Shares by which bytes, whose scales are a maker's choice, and parameters may differ."""


def load(path: Path | str) -> Transformer:
    """The model that its own files describe, by a path or by the id of its repository.

    A path is that of a Hugging Face `config.json`, of a folder that has one, beside the headers of
    its safetensors, of one of these, or of a GGUF file. The id of a repository, "Qwen/Qwen3-8B",
    is looked for in the cache of Hugging Face's tools on this machine, and never fetched.

    The model_type is one of those of `data/configurations.toml`, and its numbers have no source but
    the files. What would change them and is not read is refused by name; what is not counted, and
    keys that are not known, are named in the model's `notes`.

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
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"a file needs a path; got {abbreviated(path)}")
    location = Path(path)
    if str(path).endswith(".gguf"):
        return gguf.load(path)
    if str(path).endswith(TENSORS):  # of which its folder has the others
        location = location.parent
    if os.path.isdir(location):
        return _of_folder(location, str(path))
    if (
        location.suffix != ".json"
        and not os.path.exists(location)
        and REPOSITORY.fullmatch(str(path))
    ):
        return _of_folder(_kept(str(path)), str(path))
    return families.load(path)


def are_files(text: str) -> bool:
    """Return whether a text that names a model is a path of its files.

    >>> are_files("config.json"), are_files("model-Q4_K_M.gguf"), are_files("llama-3-8b")
    (True, True, False)
    """
    is_path = os.sep in text or text in (os.curdir, os.pardir)
    return text.endswith((".json", ".gguf", TENSORS)) or (is_path and os.path.isdir(text))


def is_kept(name: str) -> bool:
    """Return whether this is the id of a repository whose files are on this machine."""
    return bool(REPOSITORY.fullmatch(name)) and _snapshot(name) is not None


def model_of(text: str, folder: Path | str = "") -> Transformer | str:
    """Return the model of its own files, or of a repository that is on this machine; else the text.

    A name of the catalogue stays one, whatever the machine keeps. Paths start at `folder`.
    """
    if are_files(text):
        return load(os.path.join(folder, text))
    return load(text) if key_of(text) is None and is_kept(text) else text


def _kept(name: str) -> Path:
    """The folder of a repository in the cache, or a refusal that says where it was looked for."""
    if (snapshot := _snapshot(name)) is None:
        raise InputError(
            f"{name}: there is no such file, and no repository of that id in {_cache()}: take the"
            " path of its config.json, of its folder or of a GGUF file"
        )
    return snapshot


def _cache() -> Path:
    """The folder where Hugging Face's tools keep what they fetched, by their own variables."""
    home = os.environ.get("HF_HOME") or "~/.cache/huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or f"{home}/hub").expanduser()


def _snapshot(name: str) -> Path | None:
    """The files of a repository as they were last fetched."""
    kept = _cache() / f"models--{name.replace('/', '--')}"
    head = kept / "refs" / "main"
    try:
        snapshot = kept / "snapshots" / read_text(head).strip()
    except InputError:
        return None
    return snapshot if (snapshot / CONFIG).exists() else None


# --- a folder ---


def _of_folder(folder: Path, name: str) -> Transformer:
    """The model of a folder's configuration, held to the headers of its weights."""
    if not (folder / CONFIG).exists():
        files = sorted(each.name for each in folder.glob("*.gguf"))
        if len(files) == 1:
            return gguf.load(folder / files[0])
        several = f", and {', '.join(files[:3])} are there: name one" if files else ""
        raise InputError(f"{folder}: has no {CONFIG}{several}")
    model = replace(families.load(folder / CONFIG), key=folder.name, name=name)
    index = folder / INDEX
    listed = _shards(index) if index.exists() else None
    shards = [ONE] if listed is None else sorted({*listed.values()})
    there = [shard for shard in shards if (folder / shard).exists()]
    if not there:
        return model
    if len(there) < len(shards):
        missing = next(shard for shard in shards if shard not in there)
        raise InputError(f"{folder}: has no {missing}, which its {INDEX} names")
    tensors = {tensor: taken for shard in shards for tensor, taken in _tensors(folder / shard)}
    if listed is not None:
        _check_index(index, {*listed}, tensors)
    return _held(model, tensors, folder)


def _shards(index: Path) -> Mapping[str, str]:
    """The file of each tensor by an index."""
    document = parse_json(read_text(index), index)
    listed = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(listed, dict) or not all(
        isinstance(shard, str) and re.fullmatch(r"[\w.-]+\.safetensors", shard)
        for shard in listed.values()
    ):
        raise InputError(f"{index}: must have a weight_map of the names of its files")
    return listed


def _check_index(
    index: Path, listed: set[str], tensors: Mapping[str, tuple[str, int, int]]
) -> None:
    """Refuse an index that names other tensors than its files have."""
    if other := sorted(listed ^ {*tensors}):
        which = "it alone names" if other[0] in listed else "its files alone have"
        raise InputError(f"{index}: does not match its files: {which} {abbreviated(other[0])}")


def _tensors(path: Path) -> Iterator[tuple[str, tuple[str, int, int]]]:
    """Each tensor of a file of safetensors: its type, its elements and its bytes."""
    with opened(path, gguf.LARGEST_MB) as file:
        first = file.read(8)
        (length,) = struct.unpack("<Q", first) if len(first) == 8 else (0,)
        if not 2 <= length <= HEADER:
            raise InputError(f"{path}: is no file of safetensors: its header has {length} bytes")
        header = file.read(length)
        held = file.seek(0, 2) - 8 - length
    if len(header) < length:
        raise InputError(f"{path}: is cut off in its header")
    try:
        table = parse_json(header.decode(), path)
    except UnicodeDecodeError:
        raise InputError(f"{path}: its header is no text") from None
    for name, entry in table.items() if isinstance(table, dict) else ():
        if name == "__metadata__":
            continue
        try:
            (start, end), sides = entry["data_offsets"], entry["shape"]
            count, kind = prod(map(int, sides)), str(entry["dtype"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: {abbreviated(name)} has no shape and data_offsets") from None
        if not (type(start) is type(end) is int and 0 <= start <= end <= held and count >= 0):
            raise InputError(
                f"{path}: has {held} bytes of weights, and its header describes more of"
                f" {abbreviated(name)}: it is cut off"
            )
        if kind not in BITS:
            raise InputError(
                f"{path}: {abbreviated(name)} has the dtype {abbreviated(kind)}; safetensors have"
                f" {', '.join(BITS)}"
            )
        if 8 * (end - start) != BITS[kind] * count:
            raise InputError(
                f"{path}: {abbreviated(name)} has {end - start} bytes; {count} elements of {kind}"
                f" take {BITS[kind] * count / 8:.0f}"
            )
        yield name, (kind, count, end - start)


def _held(
    model: Transformer, tensors: Mapping[str, tuple[str, int, int]], folder: Path
) -> Transformer:
    """The model with what its files take; a count or a size that is another's is refused."""
    text = {
        name: tensor
        for name, tensor in tensors.items()
        if not BESIDE.search(name)
        and not ((layer := LAYER.search(name)) and int(layer[1]) >= model.layers)
    }
    kinds = {kind for kind, _, _ in text.values()}
    counted, held = model.parameters.m_as("param"), sum(count for _, count, _ in text.values())
    if kinds <= {*PLAIN} and abs(held / counted - 1) > OFF:
        raise InputError(
            f"{folder}: its files hold {held} parameters of the text, and its {CONFIG} makes"
            f" {counted:.0f}: one of them is of another model"
        )
    if model.released is None and len(kinds) == 1 and kinds <= {*PLAIN}:
        model = model.with_release(Release({"others": PLAIN[kinds.pop()]}), model.notes)
    taken = sum(size for _, _, size in text.values())
    if model.released is not None:
        expected = Weights.of(model, "released").memory.m_as("byte")
        if abs(taken / expected - 1) > CLOSE:
            raise InputError(
                f"{folder}: its files take {quantity(taken, 'byte')} for the text, and its"
                f" {CONFIG} says {model.released}, {quantity(expected, 'byte')}: one of them is of"
                " another checkpoint"
            )
    total = sum(size for _, _, size in tensors.values())
    return replace(model, checkpoint=quantity(total, "byte"))
