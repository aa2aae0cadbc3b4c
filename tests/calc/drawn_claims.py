"""Claims that are drawn: of every model on every device, in all conditions that can be said."""

from __future__ import annotations

import random
from typing import Any

from calc import hardware, models
from calc.catalog.models import Transformer

COUNTS = [1, 2, 4, 8, 16]
WEIGHTS = ["bf16", "fp8", "int8", "int4", "nvfp4", "q4_0"]
CACHES = ["bf16", "fp8", "int4", "q8_0"]
PROGRAMS = ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "TensorRT 10.2.0"]
SERVING = {  # figures by the names of tables
    "output_throughput": 1e4,
    "total_token_throughput": 1e5,
    "request_throughput": 10,
    "decode_tokens_per_s_per_user": 100,
    "mean_ttft_ms": 100,
    "mean_tpot_ms": 20,
}
TRAINING = {"tokens_per_s_per_gpu": 1e4, "mfu": 40, "model_tflops_per_gpu": 400, "step_s": 10}
NEEDED = ("device", "num_devices", "model", "seq_len")  # without which it is no claim, or another


def transformers() -> list[str]:
    return [key for key in models.names() if isinstance(models.get(key), Transformer)]


def log_uniform(chance: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** chance.random())


def figures(chance: random.Random, typical: dict[str, float]) -> dict[str, float]:
    names = chance.sample(sorted(typical), chance.choice([1, 1, 2, 3]))
    return {name: typical[name] * log_uniform(chance, 0.1, 10) for name in names}


def some(chance: random.Random, of: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in of.items() if chance.random() < 0.75}


def drawn(chance: random.Random) -> tuple[dict[str, Any], dict[str, float]]:
    """Return a drawn claim: its conditions, by the names of tables, and its figures."""
    count = chance.choice(COUNTS)
    said = {"device": chance.choice(hardware.names()), "num_devices": count}
    said["model"] = chance.choice(transformers())
    if chance.random() < 1 / 3:
        length, sequences = chance.choice([512, 4096, 32768]), chance.choice([1, 64, 2048])
        tensor = chance.choice([degree for degree in COUNTS if degree <= count])
        layouts = ["FSDP", f"TP={tensor}, PP=1", f"TP=1, PP={tensor}, VP=1"]
        others = {
            "dtype": chance.choice(["bf16", "fp8", "fp16"]),
            "global_batch_seqs": sequences,
            "parallelism": chance.choice(layouts),
            "micro_batch": chance.choice([1, 2, 4]),
            "activation_checkpointing": chance.choice(["full", "selective", "none"]),
            "software": chance.choice(["Megatron-LM", "torchtitan", "NeMo"]),
        }
        return said | {"seq_len": length} | some(chance, others), figures(chance, TRAINING)
    tensor = chance.choice([degree for degree in COUNTS if degree <= count])
    copies = count // tensor
    layouts = [f"TP{count}", f"DP{copies}, TP{tensor}", f"TP{tensor}, PP{copies}", f"EP{count}"]
    others = {
        "dtype_weights": chance.choice(WEIGHTS),
        "dtype_kv": chance.choice(CACHES),
        "batch": round(log_uniform(chance, 1, 1e5)),
        "input_len": round(log_uniform(chance, 1, 1e5)),
        "output_len": round(log_uniform(chance, 1, 1e4)),
        "parallelism": chance.choice(layouts),
        "software": chance.choice(PROGRAMS),
    }
    return said | some(chance, others), figures(chance, SERVING)
