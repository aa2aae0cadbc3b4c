"""Other planners are asked of closed loops in their own words, by `benchmarks.peer_loops`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import peer_loops
from calc import models, published
from calc.published import Comparison, closed_loops

ON_H100 = (
    "meta_llama_llama_3_1_8b_instruct_meta_llama_llama_3_1_8b_instruct_h100_sxm_trtllm_agg_"
    "2048x256_c16_tp1_epnone_14"
)
ON_B200 = "2026_04_06_llama_3_1_70b_b200_sxm_trtllm_fp4_agg_1024x8192_c128_tp4_ep1_324"


def compared(name: str) -> Comparison:
    [row] = [row for row in closed_loops.rows() if row.id == name]
    [comparison] = published.compare([row])
    return comparison


def test_a_model_is_told_as_its_makers_tell_it() -> None:
    """The fields that the config.json of Qwen3-235B-A22B-FP8 has."""
    names = peer_loops.config(models.get("qwen-3-235b-a22b"), "fp8")
    assert (names["hidden_size"], names["num_hidden_layers"]) == (4096, 94)
    assert (names["num_attention_heads"], names["num_key_value_heads"]) == (64, 4)
    assert (names["head_dim"], names["vocab_size"]) == (128, 151936)
    assert (names["num_local_experts"], names["num_experts_per_tok"]) == (128, 8)
    assert names["moe_intermediate_size"] == 1536
    assert names["quantization_config"] == {"quant_method": "fp8"}
    dense = peer_loops.config(models.get("llama-3-1-8b"), "bf16")
    assert dense["intermediate_size"] == 14336
    assert not {"num_local_experts", "quantization_config"} & dense.keys()


def test_each_planner_is_told_its_own_words() -> None:
    loop = compared(ON_H100)
    options = peer_loops.clients(loop)["options"]
    assert (options["tp"], options["concurrency"], options["num-requests"]) == (1, 16, 160)
    assert (options["prompt-tokens"], options["output-tokens-max"]) == (2048, 256)
    batch = peer_loops.one_device(loop)
    assert (batch["device"], batch["precision"], batch["seq_len"]) == ("H100", "fp16", 2176)
    asked = peer_loops.estimate(loop)
    assert (asked["system_name"], asked["isl"], asked["tp_size"]) == ("h100_sxm", 2048, 1)


def test_a_row_that_a_planner_cannot_be_told_says_why() -> None:
    loop = compared(ON_B200)
    peers = {
        "it has no b200": peer_loops.Peer("1", peer_loops.clients, peer_loops.simulated),
        "it knows one device": peer_loops.Peer("1", peer_loops.one_device, peer_loops.simulated),
    }
    for why, peer in peers.items():
        assert peer_loops.asked(peer, "nowhere", [loop]) == [{"why": why}]


@pytest.mark.parametrize(
    ("prints", "answer"),
    [
        ("""echo '  "itl_mean_ms": 12.5,'""", {"tpot": 0.0125}),
        ("echo first >&2; echo 'no such model' >&2; exit 1", {"why": "no such model"}),
        ("echo 'panic: model: 4 heads by 8' >&2; echo main.go:10 >&2", {"why": "4 heads by 8"}),
    ],
)
def test_a_program_answers_or_says_why_not(tmp_path: Path, prints: str, answer: object) -> None:
    program = tmp_path / "blis"
    program.write_text(f"#!/bin/sh\n{prints}\n")
    program.chmod(0o755)
    question = {"options": {"tp": 1}, "config": {}}
    assert [*peer_loops.simulated(str(program), [question])] == [answer]


def test_ours_is_judged_by_the_rows_that_a_planner_answers() -> None:
    loops = [compared(ON_H100), compared(ON_B200)]
    ours = loops[0].error
    assert ours is not None
    answers = {"blis": [{"tpot": loops[0].measured / 1.25}, {"why": "it has no b200"}]}
    _, everything, kind = peer_loops.table(loops, answers)
    assert everything == ("blis f90a1e3", "all", "1", "+25.0%", "25.0%", "25.0%", *everything[6:])
    assert everything[6] == f"{ours:+.1%}"
    assert kind[1] == "tensorrt-llm, dense"
