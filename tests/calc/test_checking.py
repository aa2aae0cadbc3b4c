"""Claims: what is understood, no false alarm, and planted impossibilities that are found."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

import calc
from calc import InputError, hardware
from calc.published import checking, closed_loops, conditions, predict, rows, serving_rows
from calc.published.checking import VARIED, Check, Checks, check_file, verdict
from calc.published.claims import read
from calc.published.prediction import ROUNDING, Comparison
from calc.published.reading import WORDS, Row
from calc.published.serving_rows import served_of
from calc.steps.timing import bounds
from tests.calc.command import Command
from tests.calc.drawn_claims import NEEDED, drawn
from tests.calc.odd_values import SEED
from tests.rows import each_row

TWOFOLD = 2.0


@pytest.mark.parametrize(
    ("claim", "lacks"),
    [
        ("DeepSeek-R1 on 8 H100: 900 token/s", True),  # 671 GB in FP8, and a program's own
        ("DeepSeek-R1 on 8 H200: 900 token/s", False),
        ("Llama 3.1 405B on 8 H100: 900 token/s", True),  # 810 GB in BF16
        ("Llama 3.1 405B in fp8 on 8 H100: 900 token/s", False),  # whose format is said
        ("gpt-oss-120b on 1 H100: 900 token/s", False),
    ],
)
def test_memory_is_judged_in_the_format_of_the_release(claim: str, lacks: bool) -> None:
    """A claim that says no format stays possible, as four bits are, and the release is told of."""
    checked = calc.check(claim)
    assert checked.possible
    assert bool(checked.released) == lacks == ("in 4 bit, not as released" in checked.title[0])
    assert checked.facts["released"] == checked.released


def test_the_share_of_a_time_is_the_bound_over_it() -> None:
    lines = calc.check("Llama 3 70B on 2 H100, TPOT 20 ms").text()
    assert "0.26, bound over claim" in lines  # 34.7 GB in four bits at 6.7 TB/s: 5.19 ms
    assert calc.check("Llama 3 70B on 2 H100, TPOT 4 ms").title[0].endswith("1.3 times the claim")


FOUND = 0.95  # of what is twice as fast as can be


@pytest.mark.parametrize(
    ("text", "figures", "said"),
    [
        ("Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users", {"output": 5000}, {"batch": 64}),
        (
            "meta-llama/Llama-3.1-8B-Instruct on one H100, awq with fp8 KV cache, vLLM 0.19:"
            " 20k tok/s/GPU, 1024 in 512 out",
            {"output": 20000},
            {"dtype_weights": "int4", "dtype_kv": "fp8", "input_len": 1024, "output_len": 512},
        ),
        (
            "DeepSeek-R1 on 8x H200: 30 ms TPOT and TTFT of 0.4 s, concurrency 128, 1k/2k",
            {"tpot": 0.03, "ttft": 0.4},
            {"num_devices": 8, "batch": 128, "input_len": 1024, "output_len": 2048},
        ),
        ("Llama 3.1 8B on H100, 8 GPUs: 9k tok/s per GPU", {"output": 72000}, {"num_devices": 8}),
        ("Qwen3-32B on 2 MI300X: 50 tokens/s/user", {"user": 50}, {"num_devices": 2}),
        ("DeepSeek V3 on GB200 NVL72: 1.5M tok/s prefill", {"input": 1.5e6}, {"num_devices": 72}),
        ("Llama 3 70B on 4 H100: TTFT 5 ms for 8000 tokens", {"ttft": 0.005}, {"input_len": 8000}),
        ("Llama 3 70B on 4 H100: 5k tok/s, 64 concurrent", {"output": 5000}, {"batch": 64}),
        ("Llama 3 70B on 4 H100: 5k tok/s, concurrency 64", {"output": 5000}, {"batch": 64}),
        ("Llama 3 405B on 16384 H100s: 43 % MFU", {"mfu": 43}, {"num_devices": 16384}),
        (
            "Llama 3 70B on 1024 H100: 15T tokens in 100 days",
            {"tokens": 15e12 / 100 / 86400},
            {"model": "llama-3-70b"},
        ),
        (
            "all-reduce of 16 MB over 8 H100 in 40 µs",
            {"time": 40e-6},
            {"collective": "all_reduce", "message_bytes": 16e6},
        ),
    ],
)
def test_a_sentence_is_understood(
    text: str, figures: dict[str, float], said: dict[str, Any]
) -> None:
    claim = read(text)
    assert claim.figures == pytest.approx(figures)
    assert {name: claim.row[name] for name in said} == said


@pytest.mark.parametrize("model", ["Llama 3.1 405B", "Llama-3.1-405B-Instruct", "Llama 3 70B"])
@pytest.mark.parametrize(
    ("word", "kept"),
    [
        *((word, word) for word in ("FP8", "BF16", "fp16", "int4", "NVFP4", "q4_k_m", "nf4")),
        *(("AWQ", "int4"), ("8-bit", "8-bit"), ("1.58 bit", "1.58 bit")),
    ],
)
def test_a_format_is_heard_wherever_it_stands(model: str, word: str, kept: str) -> None:
    for named in (f"{model} {word}", f"{model}-{word}", f"{model} ({word})", f"{model} in {word}"):
        claim = read(f"{named} on 8 H100: 100 token/s")
        assert claim.row["dtype_weights"] == kept, named
        assert claim.row["num_devices"] == 8, named
        assert not claim.ignored, named


AS_PEOPLE_WRITE: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    # nodes, and devices in each
    "all-reduce on 2 nodes of 8 A100: busbw 600 Gbps": (
        {"num_devices": 16, "collective": "all_reduce"},
        {"busbw": 75e9},
    ),
    "all_reduce_perf, 2 nodes, 1 H100 each node, 1 GB: busbw 40 GB/s": (
        {"num_devices": 2, "message_bytes": 1e9},
        {"busbw": 40e9},
    ),
    "DeepSeek-V3 on 2 servers with 8 H100, bs=1: 26 tok/s": (
        {"num_devices": 16, "batch": 1},
        {"output": 26},
    ),
    "reduce_scatter_perf of 4 GB on 8 H100: busbw 370 GBps": (
        {"num_devices": 8, "collective": "reduce_scatter"},
        {"busbw": 370e9},
    ),
    # what an array's bytes take is no bus bandwidth, nor the memory's
    "all_reduce_perf of 256 MB over 8 H100: algbw 240 GB/s": (
        {"collective": "all_reduce"},
        {"busbw": 2 * 7 / 8 * 240e9},
    ),
    # requests at once, however they are called, and prompts of which so many were sent
    "Llama 3 8B on a single 8*H200: 13 tokens/sec, 1 request": (
        {"num_devices": 8, "batch": 1},
        {"output": 13},
    ),
    "Llama 3 8B on 8 H20, tp 8: the output tokens is 30 tokens/s 1 req": (
        {"batch": 1, "output_len": None},
        {"output": 30},
    ),
    "Llama 3 8B on one A100, 100 prompts at once, 1000 in, 200 out: 900 tok/s": (
        {"batch": 100, "input_len": 1000, "output_len": 200},
        {"output": 900},
    ),
    "Llama 3 8B on one A100, 500 prompts: 900 tok/s": (
        {"batch": None, "input_len": None},
        {"output": 900},
    ),
    "Llama 3 8B on one A100, batch size 32, input length 1k, output length 2k: 900 tok/s": (
        {"batch": 32, "input_len": 1024, "output_len": 2048, "seq_len": None},
        {"output": 900},
    ),
    # a length beside a rate, and what the rate is of
    "Llama 3 8B on M3 Max: 68 tok/s generation after a prompt of 681 tokens": (
        {"input_len": 681},
        {"output": 68},
    ),
    "Llama 3 8B on M3 Max; prompt eval rate: 900 tokens/s": ({}, {"input": 900}),
    "Llama 3 8B on one H100, TTFT: 300 ms": ({}, {"ttft": 0.3}),
    # llama.cpp's formats in short, and the number in them, which counts no devices
    "llama3 8b Q6 RTX 4090 llama.cpp; generation speed : 93 tokens per second": (
        {"num_devices": 1, "dtype_weights": "q6_k"},
        {"output": 93},
    ),
    "Llama 3 8B q4_0 on M1 Max, Ollama: 30 tok/s": ({"software": "llama.cpp"}, {"output": 30}),
    # tests of llama-bench by their names, of one stream, which count no stages
    "Llama 3 8B Q5_K_M on RX 7900 XTX, pp1024: 2900 t/s": (
        {"batch": 1, "input_len": 1024, "parallelism": None, "software": "llama.cpp"},
        {"input": 2900},
    ),
    "Qwen3-14B q4_k_m on RTX 4080, llama.cpp: tg256 @ d8192 52 t/s": (
        {"batch": 1, "input_len": 8192, "output_len": 256},
        {"output": 52},
    ),
    # a message's size within the digits of its rate, and ports beside it
    "NCCL all-reduce of 2 GB on 8 A100: busbw 212.2 GB/s": (
        {"message_bytes": 2e9, "software": "NCCL"},
        {"busbw": 212.2e9},
    ),
    "all-reduce on 2 nodes of 8 H100 with 8 x 400 Gb/s InfiniBand: busbw 190 GB/s": (
        {"num_devices": 16},
        {"busbw": 190e9},
    ),
    # training that is not said to be any
    "Llama 13B on 8xA100, NeMo, bf16, global batch size 32, seq 4096: 1900 tokens/s/GPU": (
        {"global_batch_seqs": 32, "seq_len": 4096},
        {"tokens": 8 * 1900},
    ),
    "Qwen3-30B-A3B on 8 B200, TorchTitan FSDP8, BF16, seq8192, GBS64: 19.5k tokens/s/GPU": (
        {"global_batch_seqs": 64, "seq_len": 8192},
        {"tokens": 8 * 19_500},
    ),
    "Llama 2 13B on 8 A100, FSDP, micro batch size 4, seq 2048: 1700 tokens/s/GPU": (
        {"micro_batch": 4, "global_batch_seqs": None},
        {"tokens": 8 * 1700},
    ),
    "Llama 3.0 8B, 8k seq_len, gbs 256 on v6e-256: 1.625s per step": (
        {"device": "tpu-v6e", "num_devices": 256, "global_batch_seqs": 256, "seq_len": 8192},
        {"step": 1.625},
    ),
    "Llama 3 8B on 32 nodes of 4 GH200, 2M tokens batch, seq 4096: 413 tflops per sec per gpu": (
        {"num_devices": 128, "global_batch_seqs": 2e6 / 4096},
        {"flops": 413e12},
    ),
}


@pytest.mark.parametrize("text", AS_PEOPLE_WRITE)
def test_reports_are_understood_as_people_write_them(text: str) -> None:
    conditions_, figures = AS_PEOPLE_WRITE[text]
    claim = read(text)
    assert {name: claim.row[name] for name in conditions_} == pytest.approx(conditions_)
    assert claim.figures == pytest.approx(figures)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpt-oss-20b on one H100, SGLang, 32 users, 512 in, 1024 out: 2700 token/s", "in MXFP4:"),
        ("DeepSeek-V3 on 8 H200, SGLang, 8 users, 128 in, 256 out: 600 token/s", "in FP8:"),
        ("Llama 3.1 8B on one H100, vLLM, 8 users, 128 in, 256 out: 1300 token/s", "in BF16:"),
        ("Llama 3.1 8B q4_k_m on one RTX 3080, llama.cpp: 112 t/s", "of one stream:"),
        ("Qwen3 30B A3B q8_0 on 2 RTX 3090, llama.cpp: 120 t/s", "and layers in turn:"),
        ("Llama 3.1 70B on 256 TPU v6e, seq 4096, gbs 512: 9.48 s per step", "of BF16:"),
    ],
)
def test_what_is_expected_says_what_it_takes_for_what_is_not_said(text: str, words: str) -> None:
    """A bound takes what is easiest, a range what is usual, and names it."""
    verdict_ = calc.check(text)
    [words_of_it] = verdict_.place
    assert verdict_.side == "inside", words_of_it
    assert words in words_of_it


def test_a_range_is_of_what_is_said() -> None:
    text = "gpt-oss-20b mxfp4 on one H100, SGLang, 32 users, 512 in, 1024 out: 2700 token/s"
    assert calc.check(text).place[0].startswith("inside what is expected: ")
    alone = calc.check("Llama 3.1 8B on one RTX 3080, llama.cpp: 112 t/s")
    assert alone.place == []  # of files in many formats none is usual


@pytest.mark.parametrize("words", ["--n-cpu-moe 20", "-ncmoe 20", "experts on the CPU"])
def test_experts_of_a_host_leave_no_range_and_take_no_memory(words: str) -> None:
    check = calc.check(f"gpt-oss-120b on one RTX 4090, llama.cpp, {words}: 25 t/s")
    assert check.claim.offloads
    assert not check.claim.ignored
    assert check.possible
    assert check.place == []


def test_a_file_of_mxfp4_is_that_of_its_program() -> None:
    """A file of llama.cpp has fewer bits of what the release has in BF16, and a higher bound."""
    text = "gpt-oss-20b mxfp4 on one RTX 4080, {}, 1 user: 60 t/s"
    file, release = (calc.check(text.format(name)).alone for name in ("llama.cpp", "vLLM"))
    assert 1.2 < file / release < 1.5


def test_rows_are_compared_with_what_is_meant() -> None:
    """A share of the fastest format's peak, or of a device that is full, is no row's share."""
    trained = calc.check("Llama 3.1 8B training on 8 H100, Megatron: 440 TFLOP/s per GPU")
    assert trained.hardest.share == pytest.approx(440 / 1979, rel=1e-2)
    assert trained.share == pytest.approx(440 / 989, rel=1e-2)
    one = calc.check("Llama 3 8B q4_k_m on one RTX 4090, llama.cpp: 120 t/s")
    assert one.share == pytest.approx(120 / one.alone, rel=1e-2)
    assert all(near.row["batch"] == 1 for near in one.near[:3])
    unsaid = calc.check("Llama 3 8B q4_k_m on one RTX 4090: 120 t/s")
    assert (unsaid.share, unsaid.percentile) == (None, None)
    full = calc.check("Llama 3.1 8B on one H100: 9000 t/s")
    assert full.share == full.hardest.share


def test_what_lies_below_all_rows_is_explained_without_a_range() -> None:
    """A pace of training whose lengths are not said, and a result of no named program."""
    trained = calc.check("Llama 3 70B training on 32 A100, Megatron: 25 TFLOP/s per GPU")
    assert (trained.place, trained.percentile) == ([], 0)
    assert any("messages are not hidden" in each for each in trained.usual)
    served = calc.check("gpt-oss-120b on 4 H100, 64 users, 1000 in, 1000 out: 700 token/s")
    assert (served.place, served.side, len(served.usual)) == ([], "below", 1)
    hosted = calc.check("gpt-oss-120b on 4 H100, CPU offload, 64 users: 100 token/s")
    assert hosted.usual == []


def test_a_prompt_behind_others_is_read_from_a_cache() -> None:
    """Rates of 512 tokens behind 16 Ki others have no range: those are not read again."""
    behind = calc.check("Llama 3 8B q4_0 on one RTX 4090, llama.cpp, pp512 @ d16384: 3000 t/s")
    assert behind.claim.reuses
    assert (behind.place, behind.claim.ignored) == ([], ())


@pytest.mark.parametrize(
    ("word", "kept"), [("AWQ-4bit", "int4"), ("GPTQ-Int4", "int4"), ("GPTQ-Int8", "int8")]
)
def test_a_scheme_with_its_bits_is_one_format(word: str, kept: str) -> None:
    claim = read(f"Qwen3-30B-A3B-{word} on one RTX 3090, vLLM: 90 token/s")
    assert (claim.row["dtype_weights"], claim.ignored) == (kept, ())


def test_messages_and_prompts_have_ranges() -> None:
    pcie = calc.check("all-reduce on 4 RTX 5090: busbw 20 GB/s")
    assert pcie.place[0].startswith("inside what is expected of large messages")
    assert pcie.usual == []
    links = calc.check("all-reduce of 4 GB on 8 H100: busbw 290 GB/s")
    assert (links.side, len(links.usual)) == ("below", 1)
    slow, usual = (
        calc.check(f"Llama 3 8B q4_k_m on one RTX 4090, llama.cpp, pp1024: {rate} t/s")
        for rate in (900, 8000)
    )
    assert (slow.side, usual.side) == ("below", "inside")
    beside = "Llama 3.1 8B on one H100, vLLM, 1 user, 1000 in, 500 out: 3000 input tok/s"
    assert calc.check(beside).place == []  # prompts that are read beside answers


def test_what_may_fit_is_not_said_to_lack() -> None:
    """Within the memory's ±, where people ran it."""
    assert calc.check("DeepSeek-V3.2 on 8 H20, vLLM, tp 8: 30 token/s, 1 request").released == ""


def test_a_switch_that_sums_carries_more_than_its_links() -> None:
    """215 GB/s by the bus of eight H800s, whose links have 200, were measured."""
    assert calc.check("all-reduce on 8 H800: busbw 215 GB/s").possible
    assert not calc.check("all-gather on 8 H800: busbw 215 GB/s").possible
    assert not calc.check("all-reduce on 8 H800, ring: busbw 215 GB/s").possible


def test_a_ring_that_keeps_its_links_busy_is_not_far_from_its_bound() -> None:
    """370 GB/s by ring on eight H100s are what its maintainers expect of links of 450."""
    ring = calc.check("NCCL all_reduce of 4 GB over 8 H100, NCCL_ALGO=Ring: busbw 370 GBps")
    assert ring.hardest.share == pytest.approx(370 / 450)
    assert ring.usual == []


def test_servers_of_h20_have_links() -> None:
    """312.75 GB/s of 16 of them, in two servers, are called too few where they were measured."""
    verdict_ = calc.check("all-reduce of 512 MiB on 2 nodes of 8 H20: busbw 312.75 GB/s")
    assert (verdict_.possible, verdict_.side) == (True, "below")


def test_a_pace_of_prompts_has_their_length() -> None:
    pace = {"name": "prefill_tokens_per_s_1024_prompt", "value": 900.0}
    claim = read({"device": "h100", "num_devices": 1, "model": "llama-3-8b", "measured": [pace]})
    assert claim.figures == {"input": 900.0}
    assert claim.row["input_len"] == 1024


def test_what_was_not_understood_is_told() -> None:
    text = "Llama 3 8B in fp8 on 4 H100: 5k tok/s, 64 users, temperature 0.7, eager mode, p99"
    for check in (calc.check(text), calc.check({"output_throughput": 5000}, text)):
        assert check.facts["not_understood"] == ("temperature 0.7", "eager mode", "p99")
        assert ("temperature 0.7; eager mode; p99",) in check.sentences.values()
    assert not calc.check(text.partition(", temp")[0]).facts["not_understood"]


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("llama-3-70b in bf16 on 1 H100: 20 token/s at 1 user", "131.4 GiB of the device"),
        ("llama-3-70b in bf16 on 1 H100: 20 token/s, output 200", "131.4 GiB of the device"),
        ("Llama 3.1 405B fp8 on 4 H100: TPOT of 90 ms", "113.4 GiB of each device, which has 80"),
        ("DeepSeek-R1 fp8 on 4 H100: TTFT of 900 ms", "156.7 GiB of each device"),
        ("DeepSeek-R1 on 2 H100: 1 request/s", "156.2 GiB of each device"),
        ("Llama 3.1 70B bf16 on one RTX 4090: 1 token/s", "131.4 GiB of the device, which has 24"),
        ("Llama 3.1 8B bf16 on one H100, bf16 KV, 1000k in 200 out: TPOT of 90 ms", "a sequence"),
        ("Llama 3 405B on one H100: 1 % MFU", "189.0 GiB of the device"),
    ],
)
def test_what_memory_has_no_place_for_is_impossible(text: str, taken: str) -> None:
    check = calc.check(text)
    assert not check.possible
    assert check.title[0] == "impossible: does not fit"
    assert taken in check.title[1]
    assert calc.check(f"{text}, with CPU offload").fits
    [row, *_] = check.facts["rows"]
    assert row["figure"] == "memory"
    assert row["claimed"] > row["bound"]


def test_fewer_bits_make_it_fit() -> None:
    assert "fewer bits" in calc.check("DeepSeek R1 on 2 H100: 10 token/s").hardest.unless
    assert calc.check("DeepSeek R1 in 1.58 bit on 2 H100: 10 token/s").possible


def test_neighbours_are_of_the_same_class() -> None:
    for text, mixture in (
        ("gpt-oss-20b on RTX 4090: 100 token/s", True),
        ("Llama 3 8B on one H100: 100 token/s at 8 users", False),
    ):
        check = calc.check(text)
        pace = check.machine.device.memory_bandwidth
        for near in check.near:
            assert (conditions.model(near.row).experts is not None) == mixture
            assert 1 / 3 <= conditions.machine(near.row).device.memory_bandwidth / pace <= 3
            assert not any(name.startswith("prefill") for name in near.row.measured)
    assert "none is of a mixture of experts" in str(calc.check("DeepSeek V3 on T4s x64: 9 token/s"))


def test_what_is_over_the_bound_within_rounding_says_so() -> None:
    text = "Llama 3.1 70B in bf16 on 4 H100: {} token/s for each of 64 users"
    bound = calc.check(text.format(1)).held[0].bound
    assert "possible: 100.3% of the bound, within the 0.5%" in str(
        calc.check(text.format(f"{1.003 * bound:.6f}"))
    )


def test_each_device_is_read_by_its_key_and_its_name() -> None:
    with each_row() as row:
        for key in (*hardware.names(), *hardware.announced()):
            for name in (key, hardware.get(key).name):
                said = (f"on {name}", 1), (f"on 4 {name}", 4), (f"on 4x{name}s", 4)
                for words, count in (*said, (f"in bf16, {name} x4", 4)):
                    with row(words):
                        claim = read(f"Llama 3.1 8B {words}: 100 token/s").row
                        assert conditions.machine(claim).device.key == key
                        dies = 1 if "die" in words else WORDS["packages"].get(key, 1)
                        assert claim["num_devices"] == count * dies


@pytest.mark.parametrize(
    ("text", "share"),
    [
        # 64 sequences of 1 token: 138.9 GB of weights less the embedding, at 4 x 3.35 TB/s
        ("Llama 3.1 70B in bf16 on 4 H100: 200 token/s for each of 64 users", 200 * 139.0 / 13400),
        ("all-reduce of 16 MB over 8 H100 in 20 µs", 2 * 16 / 2 / 0.45 / 20),
        # 6 FLOP for each of 69.5 G parameters beside the embedding and each token
        (
            "Llama 3 70B on 1024 H100 in bf16: 15T tokens in 21 days",
            417e9 * 8.267e6 / 1024 / 989e12,
        ),
        ("Llama 3.1 8B on one H100: 10k token/s and TPOT of 20 ms at 64 users", 10000 * 0.02 / 64),
    ],
)
def test_what_breaks_a_bound_is_impossible_and_by_how_much(text: str, share: float) -> None:
    check = calc.check(text)
    assert not check.possible
    assert check.hardest.share == pytest.approx(share, rel=0.04)
    assert "impossible" in check.title[0]


def test_what_would_do_all_the_same_is_said() -> None:
    fast = "Llama 3.1 8B in bf16 on one H100: 500 token/s per user at 1 user"
    assert "by drafts" in calc.check(fast).hardest.unless
    assert calc.check(f"{fast}, speculative decoding").possible
    long = "Llama 3.1 8B in fp8 on one H100, 8000 in 100 out: 3000 token/s at 64 users"
    assert "prefix cache" in calc.check(long).hardest.unless
    assert calc.check(f"{long}, prefix cache").possible


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("we are three times as fast", "a device and how many devices and a model and a figure"),
        ("Llama 3.1 8B on H100s: 5k tok/s", "how many devices is not said; understood was model"),
        ("Llama 3.1 8B on one H100: 0 token/s", "written tokens must be positive; got 0"),
        ("Llama 3.1 8B on one H100: -12 000 token/s", "must be positive; got -12000"),
        ("Llama 3.1 8B on one Z9000: 5 token/s", "Z9000 is none of the data"),
        ("Llama 3.1 8B on one H100: 5 token/s" + " " * 10**6, "up to 2000 characters"),
        (
            {"device": "h100", "output_throughput": "fast"},
            "output_throughput must be a number above 0",
        ),
        *(
            (f"Llama 3.1 8B on one H100: 5 token/s, {count}", "a count is from 1 on; got -?[05]")
            for count in ("-5 users", "\u22125 clients", "0 users", "batch=-5", "prompts of -5")
        ),
        ("Llama 3.1 8B on one H100 (-5 users): 5 token/s", "users: a count is from 1 on; got -5"),
        (
            {"device": "h100", "output_throughput": 1e-308},
            "output_throughput must be a number between 1e-100 and 1e\\+100; got 1e-308",
        ),
        ("all-reduce of 16 MB on one H100 in 20 µs", "one device alone sends nothing"),
        ("Llama 3.1 8B on one H100, fast", "understood was model llama-3-1-8b, device h100"),
    ],
)
def test_what_cannot_be_checked_says_what_was_understood(text: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        calc.check(text)


def claimed(row: Row, faster: float) -> dict[str, Any]:
    """A published row as somebody claims it, so many times as fast."""
    stated = {name: value for name, value in row.conditions.items() if name != "measured"}
    if row.group == "serving":  # in what its bound has the caches, where its source says nothing
        stated["dtype_kv"] = f"{8 * served_of(row).job.formats.kv.m_as('byte'):g} bit"
    slower = ("tpot", "ttft", "time", "step")
    figures = [
        {"name": name, "value": value / faster if name.startswith(slower) else value * faster}
        for name, value in row.measured.items()
    ]
    return stated | {"measured": figures}


def in_words(row: Row, faster: float) -> str:
    """Return a claim as a sentence, where it has a rate of written tokens and its lengths."""
    device = conditions.machine(row).device.name.split(",")[0].split(" NVL")[0]
    batch = f", batch {row['batch']:g}" if row.number("batch") else ""
    layout = f", {row['parallelism']}" if conditions.layout(row) else ""
    caches = "fp8" if served_of(row).job.formats.kv.m_as("byte") == 1 else "bf16"
    return (
        f"{row['model']} on {conditions.devices(row)} {device}, {caches} KV,"
        f" {row['dtype_weights']}, {row['input_len']} in {row['output_len']} out{batch}{layout}:"
        f" {row.measured['output_tokens_per_s'] * faster:.6g} token/s"
    )


def bounded(group: str, step: int) -> list[Comparison]:
    """Rows that say all of their conditions, of which no length or layout had to be filled in."""
    of_group = [predict(row) for row in rows(group)[::step]]
    return [row for row in of_group if row.prediction and not row.prediction.filled]


def twice_the_bound(row: Comparison) -> float:
    assert row.prediction is not None
    return TWOFOLD * row.measured / row.prediction.lower


def verdicts(claims: list[Any]) -> list[bool]:
    """Return whether each is possible; what cannot be read is not found to be impossible."""
    possible = []
    for claim in claims:
        try:
            possible.append(verdict(claim).possible)
        except InputError:
            possible.append(True)
    return possible


@pytest.mark.parametrize(
    ("group", "step"),
    [
        *(("serving", 9), ("training", 9)),
        *(pytest.param(group, 1, marks=pytest.mark.nightly) for group in ("serving", "training")),
    ],
)
def test_published_rows_are_possible_and_twice_their_bound_is_not(group: str, step: int) -> None:
    bounded_rows = bounded(group, step)
    possible = verdicts([claimed(row.row, 1) for row in bounded_rows])
    assert [row.row.id for row, is_ in zip(bounded_rows, possible, strict=True) if not is_] == []
    planted = verdicts([claimed(row.row, twice_the_bound(row)) for row in bounded_rows])
    assert planted.count(False) >= FOUND * len(planted)


@pytest.mark.slow
def test_published_rows_in_words() -> None:
    rows_in_words = [
        row
        for row in bounded("serving", 1)
        if row.row.number("output_len")
        and row.row.number("input_len")
        and "output_tokens_per_s" in row.row.measured
    ]
    assert len(rows_in_words) > 100
    assert all(verdicts([in_words(row.row, 1) for row in rows_in_words]))
    planted = verdicts([in_words(row.row, twice_the_bound(row)) for row in rows_in_words])
    assert planted.count(False) >= FOUND * len(planted)


def share(claim: str | dict[str, Any]) -> float | None:
    """The claim over its bound; of what cannot be checked, None."""
    try:
        return verdict(claim).hardest.share
    except InputError:
        return None


@pytest.mark.parametrize("count", [12, pytest.param(400, marks=pytest.mark.nightly)])
def test_a_claim_that_says_less_is_never_harder(count: int) -> None:
    """Each condition of drawn claims is dropped; figures are what is claimed, and stay."""
    chance, tried = random.Random(f"{SEED} claims"), 0
    with each_row() as row:
        for _ in range(count):
            said, figures = drawn(chance)
            if (whole := share(said | figures)) is None:
                continue
            for name in said.keys() - {*NEEDED}:
                less = {other: value for other, value in said.items() if other != name}
                with row((name, said, figures)):
                    tried += 1
                    assert (share(less | figures) or 0.0) <= whole * (1 + 1e-9)
    assert tried > count


SAYS_LESS = {  # a condition, all that is said, and what is claimed of it
    "microbatches of more than the batch": (
        "micro_batch",
        {"device": "h100", "num_devices": 4, "model": "qwen-2-5-1-5b", "seq_len": 512}
        | {"global_batch_seqs": 1, "parallelism": "TP=1, PP=1, VP=1", "micro_batch": 2}
        | {"activation_checkpointing": "none", "software": "Megatron-LM"},
        {"model_tflops_per_gpu": 550.0},
    ),
    "a prompt whose states are written in each stage's share": (
        "input_len",
        {"device": "tpu-v6e", "num_devices": 16, "model": "nemotron-nano-9b-v2", "batch": 9838}
        | {"input_len": 359, "output_len": 29, "parallelism": "TP8, PP2"}
        | {"dtype_weights": "fp8", "dtype_kv": "int4"},
        {"mean_ttft_ms": 10.86},
    ),
}


@pytest.mark.parametrize("case", SAYS_LESS)
def test_what_is_unsaid_is_taken_so_that_a_claim_is_easiest(case: str) -> None:
    name, said, figures = SAYS_LESS[case]
    whole = share(said | figures)
    less = share({other: value for other, value in (said | figures).items() if other != name})
    assert whole is not None
    assert less is not None
    assert less <= whole * (1 + 1e-9)


def test_an_answer_of_one_token_has_no_time_of_a_token_after_it() -> None:
    """vLLM prints 0 then, which says nothing; another number contradicts the length."""
    run = {"model_id": "Qwen/Qwen3-8B", "max_concurrency": 4, "request_throughput": 2.0}
    run |= {"mean_tpot_ms": 0}
    assert calc.check(run, "on 1 H100, answers of 1").possible
    with pytest.raises(InputError, match="mean_tpot_ms is of tokens after the first"):
        calc.check(run | {"mean_tpot_ms": 3.2}, "on 1 H100, answers of 1")


@pytest.mark.parametrize(
    ("claim", "possible", "bound"),
    [
        ("A100 bf16 GEMM 400 TFLOP/s", False, 312e12),  # dense peaks of NVIDIA's data sheets
        ("A100 bf16 GEMM 250 TFLOP/s", True, 312e12),
        ("H100 memory bandwidth 3 TB/s", True, 3.35e12),
        ("H100 HBM 4.2 TB/s", False, 3.35e12),
        ("MI300X int8 3000 TOPS", False, 2.6149e15),
    ],
)
def test_rates_of_a_device_need_no_model(claim: str, possible: bool, bound: float) -> None:
    checked = calc.check(claim)
    assert checked.possible is possible
    assert checked.hardest.bound == pytest.approx(bound, rel=1e-3)


def test_figures_of_one_file_are_no_bound_of_each_other() -> None:
    """Users over the time of a token is what a run writes; only a contradiction is told."""
    run = {"model_id": "Qwen/Qwen3-Next-80B-A3B-Instruct", "max_concurrency": 64}
    run |= {"output_throughput": 2027.82, "mean_tpot_ms": 29.24}
    checked = calc.check(run, "on 8 MI355X")
    assert checked.hardest.share < 0.1
    assert "memory: " in checked.title[1]
    assert all("its own figures" not in held.by for held in checked.held)
    contradicting = calc.check(run | {"output_throughput": 2500}, "on 8 MI355X")
    assert not contradicting.possible
    assert "its own figures: each of 64 users" in contradicting.title[1]


def test_lengths_beside_a_rate_do_not_say_what_it_counts() -> None:
    for claim, figure in (
        ("6552.62 tokens/s for input 128 output 128", "output"),
        ("5000 input tokens/s for input 128", "input"),
        ("9000 total tokens/s, 128 input 128 output", "total"),
    ):
        assert [*read(f"Llama 3 8B on 1 H100: {claim}").figures] == [figure], claim


def test_what_is_unsaid_is_easiest_in_sentences() -> None:
    """Lengths of prompts, sizes of messages, users and first tokens, which work both ways."""
    for claim, more in (
        (
            "Llama 3.1 8B on 2 L40S: 19000 total token/s at 4 users, answers of 200",
            "prompts of 8000",
        ),
        ("Llama 3.1 8B on one H100: 90k token/s prefill", "prompts of 1000"),
        ("Llama 3.1 8B on one H100: 40 requests/s", "8 users"),
        ("all-reduce over 8 H100: 449.9 GB/s", "of 1000 GB"),
        ("Llama 3.1 8B on one H100: TPOT of 3 ms at 512 users", "answers of 100, TTFT of 900 s"),
        ("Llama 3.1 8B on one H100: TPOT of 3 ms and TTFT of 9 s, 512 users", "answers of 100"),
        ("Llama 3.1 8B on one H100: 20k token/s at 256 users, 8000 in 1000 out", "int4 KV cache"),
    ):
        less, said = share(claim), share(f"{claim}, {more}")
        assert less is not None
        assert said is not None
        assert less <= said * (1 + 1e-9), claim


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    titles = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, titles)
        writer.writeheader()
        writer.writerows(rows)
    return path


def varied(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Return drawn claims, each again with other numbers."""
    rows = []
    for _ in range(count):
        said, figures = drawn(chance)
        for factor in (1, 3, 20):
            changed = {name: said[name] * factor for name in VARIED if name in said}
            rows.append(said | changed | {name: value * factor for name, value in figures.items()})
    return rows


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.nightly)])
def test_rows_of_a_table_are_judged_as_each_alone(count: int, tmp_path: Path) -> None:
    rows = varied(random.Random(f"{SEED} tables"), count)
    path = table(tmp_path / "claims.csv", rows)
    checks = check_file(path)
    assert isinstance(checks, Checks)
    with each_row() as row:
        for line, claim in enumerate(rows, 2):
            with row(claim):
                name = f"{path}:{line}"
                assert (name in checks.refused) == ((alone := share(claim)) is None)
                assert checks.shares.get(name) == (
                    None if alone is None else pytest.approx(alone, rel=1e-9)
                )
    worst = sorted(checks.shares.values(), reverse=True)[: len(checks.hardest)]
    assert [check.hardest.share for check in checks.hardest.values()] == pytest.approx(worst)


def test_a_table_asks_as_many_bounds_as_it_has_kinds_of_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten times the rows take little longer."""
    asked: list[int] = []

    def counting(*arguments: Any) -> Any:
        asked.append(1)
        return bounds(*arguments)

    monkeypatch.setattr(serving_rows, "bounds", counting)
    said = {"device": "h100", "num_devices": 8, "model": "llama-3-70b", "dtype_weights": "fp8"}
    counts = []
    for many in (20, 200):
        rows = [
            said
            | {"max_concurrency": index % 64 + 1, "output_len": index + 50}
            | {"output_throughput": 1.0 + index, "mean_tpot_ms": 20 + index % 7}
            for index in range(many)
        ]
        asked.clear()
        checks = check_file(table(tmp_path / f"{many}.csv", rows))
        assert isinstance(checks, Checks)
        assert len(checks.shares) == many
        counts.append(len(asked))
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_closed_loops_are_possible_by_their_times() -> None:
    """Clients that wait for a first token write nothing meanwhile, which the bound must know."""
    for row in [row for row in closed_loops.rows() if row["mode"] == "agg"][::120]:
        if predict(row).prediction is None:
            continue
        lengths = f"{0.9 * row['input']:.0f} in {0.9 * row['output']:.0f} out"
        devices = (row["tensor"] or 1) * (row["data"] or 1)
        times = " and ".join(
            f"{name.upper()} of {row.measured[name] * 1e3:g} ms" for name in ("ttft", "tpot")
        )
        device = conditions.machine(row).device.key
        claim = f"{row['model']} on {devices} {device}, {row['format']}, {lengths}"
        assert verdict(f"{claim}, {row['clients']} users: {times}").possible, row.id


COLUMNS = {  # of a file of MLCommons, and what a published row calls them
    "accelerator": "device",
    "total_accelerators": "num_devices",
    "model": "model",
    "scenario": "scenario",
    "software": "software",
    "weight_dtype": "dtype_weights",
}


@pytest.mark.parametrize("times", [1, 100])
def test_results_of_mlperf_are_possible_and_not_a_hundred_times(times: int, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    results = [row for row in rows("serving") if row.source.startswith("mlperf-inference")]
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", *COLUMNS, "result", "units"])
        for row in results:
            said = [row[name] for name in COLUMNS.values()]
            table.writerow([row.id, *said, times * row.measured["output_tokens_per_s"], "Tokens/s"])
    answer = check_file(path)
    assert isinstance(answer, Checks)
    assert len(answer.shares) > 60
    possible = [share <= 1 + ROUNDING for share in answer.shares.values()]
    assert all(possible) if times == 1 else sum(possible) < (1 - FOUND) * len(possible)


def test_files_of_benchmarks_and_of_mlperf(tmp_path: Path, command: Command) -> None:
    result = {
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "max_concurrency": 64,
        "output_throughput": 2100.5,
        "mean_ttft_ms": 120.0,
        "mean_tpot_ms": 25.0,
    }
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert command.prints(
        "check", str(tmp_path / "result.json"), "--about", "one H100, bf16"
    ).startswith("possible: ")
    assert "a device and how many devices is not said" in command.refuses(
        "check", str(tmp_path / "result.json")
    )

    aiperf = {"inter_token_latency": {"avg": 25.0}, "output_sequence_length": {"avg": 200}}
    mean = {"successful": {"mean": 25.0}}
    guidellm = {"benchmarks": [{"metrics": {"inter_token_latency_ms": mean}}]}
    for number, other in enumerate((aiperf, guidellm)):
        (tmp_path / f"{number}.json").write_text(json.dumps(other))
        checked = check_file(tmp_path / f"{number}.json", "Llama 3.1 8B on one H100, batch 64")
        assert isinstance(checked, Check)
        assert checked.claim.figures == {"tpot": 0.025}

    run = tmp_path / "8xH200-SXM-141GB" / "llama2-70b-99" / "Offline" / "performance" / "run_1"
    run.mkdir(parents=True)
    summary = run / "mlperf_log_summary.txt"
    summary.write_text("Scenario : Offline\nTokens per second: 34000.5\n")
    answer = check_file(summary)
    assert isinstance(answer, Check)
    assert answer.claim.row["num_devices"] == 8
    assert answer.claim.figures == {"output": 34000.5}

    events: list[tuple[str, object]] = [
        ("submission_benchmark", "llama31_8b"),
        ("submission_platform", "8xB200-SXM-180GB"),
        ("global_batch_size", 32),
        ("tracked_stats", {"throughput": 30.0}),
    ]
    log = [":::MLLOG " + json.dumps({"key": key, "value": value}) for key, value in events]
    (tmp_path / "result_0.txt").write_text("\n".join(log))
    answer = check_file(tmp_path / "result_0.txt")
    assert isinstance(answer, Check)
    assert answer.claim.figures == {"tokens": 30.0 * 8192}
    (tmp_path / "other.txt").write_text("42 token/s")
    with pytest.raises(InputError, match="no result of a known benchmark"):
        check_file(tmp_path / "other.txt")


def test_a_fraction_of_a_token_takes_no_memory() -> None:
    """Means of lengths are fractions; a claim is judged by the whole tokens that they hold."""
    lengths = {"input_len": 1000.9, "output_len": 99.9}
    for said, tokens in ((lengths, 1099), ({"input_len": 1000.9}, 1001), ({}, 2)):
        assert checking._context(Row("serving", "mine", said, {})) == tokens
