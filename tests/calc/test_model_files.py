"""Models from their own files: headers alone are written, and weights are holes in the files."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from calc import InputError, device_memory, inference, models
from calc.catalog.models.gguf import HEADER, TYPES
from tests.calc.command import Command

Shapes = dict[str, tuple[int, tuple[int, ...]]]
Q4_K, Q6_K, F32, F16 = 12, 14, 0, 1


def size_of(model: models.Transformer) -> float:
    assert model.checkpoint is not None
    return float(model.checkpoint.m_as("byte"))


def formats_of(model: models.Transformer) -> Mapping[str, str]:
    assert model.released is not None
    return model.released.formats


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def field(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    assert isinstance(value, int)
    return struct.pack("<II", 4, value)


def write_gguf(path: Path, values: dict[str, Any], tensors: Shapes, version: int = 3) -> Path:
    """Write a file whose weights are a hole, as long as its header says."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    head += b"".join(text(name) + field(value) for name, value in values.items())
    offset = 0
    for name, (kind, shape) in tensors.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        weights = math.prod(shape)
        offset += -(-weights // TYPES[kind].weights * TYPES[kind].size // 32) * 32
    with path.open("wb") as file:
        file.write(head)
        file.truncate(-(-len(head) // 32) * 32 + offset)
    return path


LLAMA = {  # Llama 3.2 3B, as its files say
    "general.architecture": "llama",
    "general.name": "Llama 3.2 3B Instruct",
    "llama.block_count": 28,
    "llama.context_length": 131072,
    "llama.embedding_length": 3072,
    "llama.feed_forward_length": 8192,
    "llama.attention.head_count": 24,
    "llama.attention.head_count_kv": 8,
    "llama.attention.key_length": 128,
    "llama.rope.freq_base": 500000.0,
    "tokenizer.ggml.tokens": ["word"] * 2000,
}


def llama_tensors(matrix: int = Q4_K, more: int = Q6_K, table: int = Q6_K) -> Shapes:
    """Tensors of Llama 3.2 3B in Q4_K_M, by the rules of llama.cpp's quantize program."""
    tensor_shapes: Shapes = {
        "rope_freqs.weight": (F32, (64,)),
        "token_embd.weight": (table, (3072, 128256)),
        "output_norm.weight": (F32, (3072,)),
    }
    for layer in range(28):
        wide = more if layer < 3 or layer >= 24 or (layer - 3) % 3 == 2 else matrix
        shapes = {
            "attn_norm": (F32, (3072,)),
            "ffn_norm": (F32, (3072,)),
            "attn_q": (matrix, (3072, 3072)),
            "attn_k": (matrix, (3072, 1024)),
            "attn_v": (wide, (3072, 1024)),
            "attn_output": (matrix, (3072, 3072)),
            "ffn_gate": (matrix, (3072, 8192)),
            "ffn_up": (matrix, (3072, 8192)),
            "ffn_down": (wide, (8192, 3072)),
        }
        tensor_shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in shapes.items()}
    return tensor_shapes


def bytes_of(tensors: Shapes) -> float:
    """Return what tensors take, by the blocks of ggml-common.h: 144 bytes for 256 weights, say."""
    sizes = {Q4_K: 144 / 256, Q6_K: 210 / 256, 8: 34 / 32, 39: 17 / 32, F32: 4, F16: 2}
    return sum(sizes[kind] * math.prod(shape) for kind, shape in tensors.values())


def test_a_gguf_file_is_its_model_to_the_byte(tmp_path: Path, command: Command) -> None:
    """llama.cpp prints 1.87 GiB, 5.01 bits a weight, of this file, and 3 212 749 888 parameters."""
    path = write_gguf(tmp_path / "Llama-3.2-3B-Instruct-Q4_K_M.gguf", LLAMA, llama_tensors())
    model, taken = models.load(path), bytes_of(llama_tensors())
    assert size_of(model) == taken
    assert (round(taken / 2**30, 2), round(8 * taken / 3_212_749_888, 2)) == (1.87, 5.01)
    assert model.parameters == models.get("llama-3-2-3b").parameters
    assert model.parameters.m_as("param") == 3_212_749_888 - 64  # without a table of positions
    assert model.parts == models.get("llama-3-2-3b").parts
    kept = inference.weight_memory(model, "released")
    assert kept.m_as("byte") == pytest.approx(taken - 4 * 64, abs=1)
    assert formats_of(model)["query"] == "Q4_K"
    assert formats_of(model)["embedding"] == "Q6_K"
    fits = device_memory.fit(model, "rtx-4090", software="llama-cpp")
    assert fits.parts[0].memory.m_as("byte") == pytest.approx(taken, rel=0.02)
    assert "Q4_K" in command.prints(f"plan {path} rtx-4090 --prompt 100 --generated 100")


EXPERTS = {  # of two layers
    "general.architecture": "qwen3moe",
    "qwen3moe.block_count": 2,
    "qwen3moe.context_length": 32768,
    "qwen3moe.embedding_length": 256,
    "qwen3moe.feed_forward_length": 512,
    "qwen3moe.expert_count": 8,
    "qwen3moe.expert_used_count": 2,
    "qwen3moe.expert_feed_forward_length": 256,
    "qwen3moe.attention.head_count": 4,
    "qwen3moe.attention.head_count_kv": 2,
    "qwen3moe.attention.key_length": 64,
}


def experts_tensors() -> Shapes:
    tensor_shapes: Shapes = {
        "token_embd.weight": (F16, (256, 1000)),
        "output.weight": (F16, (256, 1000)),
        "output_norm.weight": (F32, (256,)),
    }
    for layer in range(2):
        shapes = {
            "attn_norm": (F32, (256,)),
            "ffn_norm": (F32, (256,)),
            "attn_q_norm": (F32, (64,)),
            "attn_k_norm": (F32, (64,)),
            "attn_q": (8, (256, 256)),
            "attn_k": (8, (256, 128)),
            "attn_v": (8, (256, 128)),
            "attn_output": (8, (256, 256)),
            "ffn_gate_inp": (F32, (256, 8)),
            "ffn_gate_exps": (39, (256, 256, 8)),
            "ffn_up_exps": (39, (256, 256, 8)),
            "ffn_down_exps": (Q6_K if layer else 39, (256, 256, 8)),
        }
        tensor_shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in shapes.items()}
    return tensor_shapes


def test_experts_of_a_gguf_file_have_their_bits(tmp_path: Path) -> None:
    """MXFP4 takes 17 bytes for 32 weights, Q6_K 210 for 256; the mean of both is told in bits."""
    model = models.load(write_gguf(tmp_path / "experts.gguf", EXPERTS, experts_tensors()))
    assert (model.experts, model.active_experts, model.expert_width) == (8, 2, 256)
    formats = formats_of(model)
    assert (formats["expert up"], formats["query"], formats["output"]) == ("mxfp4", "Q8_0", "fp16")
    assert formats["expert down"] == f"{(4.25 + 6.5625) / 2} bit"
    taken = bytes_of(experts_tensors())
    assert size_of(model) == taken
    assert inference.weight_memory(model, "released").m_as("byte") == pytest.approx(taken, abs=1)


def test_parts_of_a_gguf_file_are_one(tmp_path: Path) -> None:
    several = list(experts_tensors().items())
    for number, part in enumerate((several[:10], several[10:]), 1):
        path = tmp_path / f"experts-{number:05}-of-00002.gguf"
        write_gguf(path, EXPERTS | {"split.count": 2}, dict(part))
    whole = models.load(write_gguf(tmp_path / "experts.gguf", EXPERTS, experts_tensors()))
    assert models.load(tmp_path / "experts-00001-of-00002.gguf").released == whole.released
    (tmp_path / "experts-00002-of-00002.gguf").unlink()
    with pytest.raises(InputError, match=r"-00002-of-00002\.gguf: there is no such file"):
        models.load(tmp_path / "experts-00001-of-00002.gguf")


def hostile(path: Path, made: Callable[[bytes], bytes]) -> None:
    """Change a good file to what somebody may have sent."""
    whole = write_gguf(path, EXPERTS, experts_tensors())
    path.write_bytes(made(whole.read_bytes()))


FIRST = 4 + 4 + 8 + 8  # bytes before the first field


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda good: b"GGML" + good[4:], "is no GGUF file: it does not begin with GGUF"),
        (lambda good: b"", "is cut off in its header"),
        (lambda good: good[:200], "is cut off in its header"),
        (lambda good: good[:-100_000], "and its header describes"),
        (lambda good: good[:4] + struct.pack("<I", 9) + good[8:], "is of version 9 of GGUF"),
        (lambda good: good[:8] + b"\xff" * 8 + good[16:], "tensors, and may have 100000"),
        (lambda good: good[:16] + b"\xff" * 8 + good[24:], "fields, and may have 10000"),
        (
            lambda good: good[:FIRST] + b"\xff" * 7 + b"\x7f" + good[FIRST + 8 :],
            f"its header is longer than {HEADER // 2**20} MiB",
        ),
        (
            lambda good: good.replace(
                struct.pack("<I", 8) + text("qwen3moe"), b"\x63\0\0\0" * 4, 1
            ),
            "has a value of the unknown type 99",
        ),
    ],
)
def test_a_hostile_header_is_a_sentence(
    made: Callable[[bytes], bytes], said: str, tmp_path: Path
) -> None:
    hostile(tmp_path / "sent.gguf", made)
    with pytest.raises(InputError, match=r"sent\.gguf: ") as refused:
        models.load(tmp_path / "sent.gguf")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_pipe_and_a_file_without_an_end_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "zeros.gguf").symlink_to("/dev/zero")
    for name in ("pipe.gguf", "zeros.gguf"):
        with pytest.raises(InputError, match="is a pipe or a device; a file is needed"):
            models.load(tmp_path / name)


def test_a_gguf_file_of_another_model_is_refused(tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "a.gguf", {"general.architecture": "rwkv7"}, {})
    with pytest.raises(InputError, match=r"general\.architecture must be one of .*; got 'rwkv7'"):
        models.load(other)
    fewer = dict(list(experts_tensors().items())[:-1])
    with pytest.raises(InputError, match=r"its tensors hold \d+ parameters, and the shape"):
        models.load(write_gguf(tmp_path / "b.gguf", EXPERTS, fewer))


# --- folders and repositories ---

CONFIG: dict[str, Any] = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256}
CONFIG |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}
CONFIG |= {"intermediate_size": 512, "max_position_embeddings": 4096}
WEIGHTS = {"embed_tokens": (1000, 256), "norm": (256,)} | {
    f"layers.{layer}.{name}": shape
    for layer in range(2)
    for name, shape in {
        "input_layernorm": (256,),
        "post_attention_layernorm": (256,),
        "self_attn.q_proj": (256, 256),
        "self_attn.k_proj": (128, 256),
        "self_attn.v_proj": (128, 256),
        "self_attn.o_proj": (256, 256),
        "mlp.gate_proj": (512, 256),
        "mlp.up_proj": (512, 256),
        "mlp.down_proj": (256, 512),
    }.items()
}
SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1}


def tensors(linear: str = "BF16") -> dict[str, tuple[str, tuple[int, ...]]]:
    tensor_shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "lm_head.weight": ("BF16", (1000, 256))
    }
    for name, shape in WEIGHTS.items():
        narrow = "_proj" in name and linear != "BF16"
        tensor_shapes[f"model.{name}.weight"] = (linear if narrow else "BF16", shape)
        if narrow:
            tensor_shapes[f"model.{name}.weight_scale"] = ("F32", (1,))
    return tensor_shapes


def write_safetensors(path: Path, held: dict[str, tuple[str, tuple[int, ...]]]) -> int:
    """Write a file whose weights are a hole; return their bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (kind, shape) in held.items():
        size = SIZES[kind] * math.prod(shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end := end + size]}
    head = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.truncate(8 + len(head) + end)
    return end


def write_folder(folder: Path, linear: str = "BF16", shards: int = 1, **config: Any) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config), encoding="utf-8")
    held = tensors(linear)
    if shards == 1:
        return write_safetensors(folder / "model.safetensors", held)
    names = list(held)
    where: dict[str, str] = {}
    total = 0
    for number in range(shards):
        shard = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = {name: held[name] for name in names[number::shards]}
        total += write_safetensors(folder / shard, part)
        where |= dict.fromkeys(part, shard)
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return total


@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_is_its_model_to_the_byte(shards: int, tmp_path: Path, command: Command) -> None:
    taken = write_folder(tmp_path / "mine", shards=shards)
    model = models.load(tmp_path / "mine")
    assert size_of(model) == taken == 2 * model.parameters.m_as("param")
    assert str(model.released) == "BF16"
    assert "fits" in command.prints(f"plan {tmp_path / 'mine'} t4 --prompt 10 --generated 10")


def test_a_folder_is_named_from_inside_and_by_its_tensors(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    names = (".", f"..{os.sep}model", "model.safetensors", str(tmp_path / "model"))
    printed = (" ".join(command.prints(f"fit {name} h100").split()) for name in names)
    answers = {text.removeprefix(name) for name, text in zip(names, printed, strict=True)}
    assert len(answers) == 1
    monkeypatch.chdir(tmp_path)
    assert "has no config.json" in command.refuses("fit . h100")


def test_a_folder_in_few_bits(tmp_path: Path) -> None:
    method: dict[str, Any] = {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}
    group = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False}
    method |= {"config_groups": {"group_0": {"targets": ["Linear"], "weights": group}}}
    taken = write_folder(tmp_path / "mine", "F8_E4M3", quantization_config=method)
    model = models.load(tmp_path / "mine")
    assert formats_of(model)["attention"] == "fp8"
    kept = inference.weight_memory(model, "released").m_as("byte")
    assert taken - kept == 4 * 14  # a scale for each of 14 matrices
    write_folder(tmp_path / "mine", quantization_config=method)
    with pytest.raises(InputError, match="one of them is of another checkpoint"):
        models.load(tmp_path / "mine")


def test_what_modelopt_says_apart_is_read(tmp_path: Path) -> None:
    write_folder(tmp_path / "mine", "F8_E4M3")
    said: dict[str, Any] = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}
    said["quantization"]["exclude_modules"] = ["lm_head"]
    (tmp_path / "mine" / "hf_quant_config.json").write_text(json.dumps(said), encoding="utf-8")
    assert formats_of(models.load(tmp_path / "mine"))["attention"] == "fp8"


def in_header(folder: Path, old: str, new: str) -> None:
    """Write another word into the header of the first file, of the same length but for blanks."""
    file = next(iter(names_of(folder)))
    text = file.read_bytes()
    (length,) = struct.unpack("<Q", text[:8])
    header = text[8 : 8 + length].replace(old.encode(), new.encode())
    file.write_bytes(struct.pack("<Q", len(header)) + header + text[8 + length :])


def names_of(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob("*.safetensors"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: next(iter(names_of(folder))).unlink(), r"safetensors, which its .* names"),
        (
            lambda folder: os.truncate(next(iter(names_of(folder))), 3000),
            "and its header describes more of",
        ),
        (lambda folder: os.truncate(next(iter(names_of(folder))), 100), "is cut off in its header"),
        (lambda folder: os.truncate(next(iter(names_of(folder))), 4), "its header has 0 bytes"),
        (
            lambda folder: (folder / "config.json").write_text(
                json.dumps(CONFIG | {"num_hidden_layers": 3})
            ),
            "one of them is of another model",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"a": "../../etc.safetensors"}})
            ),
            "must have a weight_map of the names of its files",
        ),
        (
            lambda folder: write_safetensors(
                next(iter(names_of(folder))), {"another": ("BF16", (4, 4))}
            ),
            "does not match its files",
        ),
        (
            lambda folder: in_header(folder, '"BF16"', '"BF17"'),
            "has the dtype 'BF17'; safetensors have F4, .*, BF16, ",
        ),
        (
            lambda folder: in_header(folder, '"BF16"', '"F32"'),
            r"has \d+ bytes; \d+ elements of F32",
        ),
        (
            lambda folder: in_header(folder, "[1000, 256]", "[1000, 255]"),
            r"has 512000 bytes; 25500",
        ),
    ],
)
def test_a_folder_that_does_not_agree_is_a_sentence(
    change: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    write_folder(tmp_path / "mine", shards=2)
    change(tmp_path / "mine")
    with pytest.raises(InputError, match=said) as refused:
        models.load(tmp_path / "mine")
    assert "\n" not in str(refused.value)


def test_a_repository_is_read_where_it_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"no repository of that id in .*: take the path"):
        models.load("someone/their-model")
    kept = tmp_path / "models--someone--their-model"
    write_folder(kept / "snapshots" / "0a1b")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0a1b", encoding="utf-8")
    assert models.load("someone/their-model").name == "someone/their-model"
    line = "plan someone/their-model t4 --prompt 10 --generated 10"
    assert command.prints(line).startswith("someone/their-model on 1 NVIDIA T4")
    limits = tmp_path / "limits.toml"
    limits.write_text(
        '[[plan]]\nmodel = "someone/their-model"\nhardware = "t4"\nprompt = 10\ngenerated = 10\n'
        'must = ["fits"]\n',
        encoding="utf-8",
    )
    assert "1 of 1 limits hold" in command.prints(f"assert {limits}")


@pytest.mark.parametrize(
    ("said", "folder"),
    [
        ({}, ".cache/huggingface/hub"),
        ({"HF_HOME": "elsewhere"}, "elsewhere/hub"),
        ({"HF_HOME": "elsewhere", "HF_HUB_CACHE": "large"}, "large"),
        ({"HF_HUB_CACHE": "~/large"}, "large"),
    ],
)
def test_repositories_lie_where_variables_say(
    said: dict[str, str], folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two variables, as Hugging Face's own tools document them: the more particular one first."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value if value.startswith("~") else str(tmp_path / value))
    kept = tmp_path / folder / "models--someone--their-model"
    write_folder(kept / "snapshots" / "0a1b")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0a1b", encoding="utf-8")
    assert models.load("someone/their-model").name == "someone/their-model"
