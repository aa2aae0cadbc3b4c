"""Logs of tools, in the forms that these print.

Published, with their figures, are those of rccl-tests on MI300X, Megatron-LM (but for its first
line), torchtitan, trtllm-bench, llama-bench in F16, vLLM's block and the table of genai-perf; the
line of NeMo, vLLM's of latency and throughput and llama-bench's row of Q4_K hold to the form alone.
Published too are the boxes of genai-perf and aiperf, guidellm's tables, MLPerf's summary, the lines
of Megatron Bridge and of NeMo's bar, and llama-bench's table by Vulkan; the lines that engines and
llama.cpp print of themselves, and outlines of nvidia-smi and amd-smi, hold to the form alone.
Names of fields alone were read in the sources: of aiperf 0.1.1, whose JSON is that of genai-perf,
of guidellm 0.7.3, and of readings by nvidia-smi and amd-smi, as readers of such files test theirs.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from calc import InputError
from calc.planning.service.observed import observe
from calc.published import device_states, logs
from calc.published.checking import Check, Checks, check, check_file
from calc.published.claims import load
from calc.published.device_states import REASONS
from tests.calc.command import Command

VLLM = """
============ Serving Benchmark Result ============
Successful requests:                     30
Maximum request concurrency:             {clients}
Benchmark duration (s):                  223.53
Total input tokens:                      480000
Total generated tokens:                  6000
Request throughput (req/s):              0.13
Output token throughput (tok/s):         26.84
Total Token throughput (tok/s):          2174.16
---------------Time to First Token----------------
Mean TTFT (ms):                          {ttft}
Median TTFT (ms):                        3452.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          {tpot}
==================================================
"""
RCCL = """# nThread 1 nGpus 8 minBytes 8388608 maxBytes 1073741824 step: 2(factor) warmup iters: 5
rccl-tests: Version develop:83d38d9
# Using devices
{ranks}
#                                                              out-of-place          in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)
     8388608       2097152     float     sum      -1    91.10   92.08  161.14      0    94.94
# Out of bounds values : 0 OK
"""
RANK = "#  Rank  {0} Group  0 Pid  37300 on   g100 device  {0} [0000:05:00] AMD Instinct MI300X"
LLAMA_BENCH = """ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
| model                    |       size |     params | backend | ngl | test    |           t/s |
| ------------------------ | ---------: | ---------: | ------- | --: | ------- | ------------: |
| llama 7B F16             |  12.55 GiB |     6.74 B | CUDA    |  99 | pp 512  | 11048.22 ± 269.7 |
| llama 7B F16             |  12.55 GiB |     6.74 B | CUDA    |  99 | tg 128  |  61.03 ± 0.07 |
| llama 8B Q4_K - Medium   |   4.58 GiB |     8.03 B | CUDA    |  99 | tg128 @ d4096 | 130.0 ± 0.1 |
build: 32d9f7d9 (1786)
"""
STEP = (
    " [2024-04-06 02:59:36] iteration {step:>8}/     100 | consumed samples:         5504 | elapsed"
    " time per iteration (ms): {ms} | throughput per GPU (TFLOP/s/GPU): {pace} | learning rate:"
    " 8.6E-06 | global batch size:   128 | lm loss: 1.825991E+00 |"
)
MEGATRON = "\n".join(
    STEP.format(step=step, ms=ms, pace=pace)
    for step, ms, pace in ((1, 30630.1, 42.6), (43, 5444.9, 239.8), (44, 5533.8, 236.0))
)
TITAN = (
    "[rank0]:[titan] 2026-02-24 19:46:17,508 - root - INFO - step:  4  loss:  7.62585  grad_norm:"
    " 26.6250  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%\n"
)
NEMO = (
    "Training epoch 0, iteration 9/99 | lr: 1.5e-06 | global_batch_size: 128 | global_step: 9 |"
    " reduced_train_loss: 11.03 | train_step_timing in s: 2.345 | TFLOPS_per_GPU: 700.5\n"
)
TRTLLM = """===========================================================
= PYTORCH BACKEND
===========================================================
Model:   deepseek-ai/DeepSeek-R1
KV Cache Dtype:  FP8
Quantization:  NVFP4
= REQUEST DETAILS
Number of concurrent requests:  1018.8281
Average Input Length (tokens):  1024.0000
Average Output Length (tokens): 1024.0000
= WORLD + RUNTIME INFORMATION
TP Size:                4
PP Size:                1
EP Size:                4
= PERFORMANCE OVERVIEW
Request Throughput (req/sec):                     7.3411
Total Output Throughput (tokens/sec):             7517.2584
"""
GENAI_PERF_BOX = """
                              NVIDIA GenAI-Perf | LLM Metrics
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━┓
┃                         Statistic ┃    avg ┃    min ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━┩
│          Time to first token (ms) │  13.68 │  11.07 │
│          Inter token latency (ms) │   1.86 │   1.28 │
│            Output sequence length │ 103.46 │  95.00 │
│             Input sequence length │ 200.00 │ 200.00 │
│ Output token throughput (per sec) │ 504.02 │    N/A │
│      Request throughput (per sec) │   4.87 │    N/A │
└───────────────────────────────────┴────────┴────────┘
"""
AIPERF_BOX = """
┃         Metric ┃        avg ┃       min ┃
┡━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━┩
│  Time to First │  42,612.16 │  2,865.14 │
│     Token (ms) │            │           │
│ Time to Second │     117.54 │     92.84 │
│     Token (ms) │            │           │
"""
GUIDELLM_TABLES = """
Metadata                                     |||| Requests Made  ||| Prompt Tok/Req  ||
    Benchmark| Start Time| End Time| Duration (s)|  Comp|  Inc|  Err|   Comp|  Inc|  Err
-------------|-----------|---------|-------------|------|-----|-----|-------|-----|-----
   throughput|   20:12:13| 20:12:21|          7.7|    30|    0|    0|  512.3|  0.0|  0.0
================================================================================
Metadata     | Request Stats         || Out Tok/sec| Tot Tok/sec| TTFT (ms)          ||| ITL (ms)|
    Benchmark| Per Second| Concurrency|        mean|        mean|  mean| median|    p99| mean|  p99
-------------|-----------|------------|------------|------------|------|-------|-------|-----|-----
   throughput|       3.89|       29.65|       996.1|      4979.5| 817.7|  784.0| 1387.9| 26.7| 29.3
================================================================================
"""
GUIDELLM_NEWER = """
|===========|======|======|=====|=====|
| Benchmark | TTFT       || ITL      ||
| Strategy  | ms         || ms       ||
|           | Mdn  | p95  | Mdn | p95 |
|-----------|------|------|-----|-----|
| constant  | 23.2 | 30.9 | 7.8 | 8.0 |
|===========|======|======|=====|=====|
|===========|=====|======|=======|======|=======|=======|
| Benchmark | Requests               |||| Output Tokens ||
| Strategy  | Per Sec   || Concurrency || Per Sec       ||
|           | Mdn | Mean | Mdn   | Mean | Mdn   | Mean  |
|-----------|-----|------|-------|------|-------|-------|
| constant  | 1.0 | 1.0  | 0.0   | 0.4  | 3.4   | 49.7  |
|===========|=====|======|=======|======|=======|=======|
"""
MLPERF = """
MLPerf Results Summary
SUT name : PySUT
Scenario : Server
Completed samples per second    : 99.86
Completed tokens per second: 29522.56
Scheduled samples per second : 104.15
Mean First Token latency (ns)               : 963332124
Mean Time to Output Token (ns)               : 126269215
"""
BRIDGE = """
Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU
 [2025-12-22 15:18:33] iteration       50/      50 | elapsed time per iteration (ms): 9089.0 |\
 global batch size:   512 |
"""
NEMO_BAR = (
    "Epoch 0: : 100%|##| 100/100 [20:15<00:00, reduced_train_loss=6.370, global_step=99.00,"
    " consumed_samples=12800.0, train_step_timing in s=11.20]\n"
)
VLLM_LINE = (
    "INFO Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: {rate}"
    " tokens/s, Running: {users} reqs, Waiting: 0 reqs, GPU KV cache usage: 10.2%\n"
)
SGLANG_LINE = (
    "Decode batch. #running-req: 8, #token: 8192, token usage: 0.05, cuda graph: True, gen"
    " throughput (token/s): 612.0, #queue-req: 0, \n"
)
ONE_BATCH = """max_total_num_tokens=399740
Warmup ...
Prefill. latency: 0.46342 s, throughput:   8838.74 token/s
Decode 0. Batch size: 4, latency: 0.29446 s, throughput:     13.58 token/s
Decode.  median latency: 0.01178 s, median throughput:    339.57 token/s
Total. latency:  1.112 s, throughput:   3981.76 token/s
Benchmark ...
Prefill. latency: 0.37183 s, throughput:  11015.86 token/s
Decode 0. Batch size: 4, latency: 0.01211 s, throughput:    330.38 token/s
Decode.  median latency: 0.01175 s, median throughput:    340.47 token/s
Total. latency:  6.395 s, throughput:    960.75 token/s
"""
READ: dict[str, tuple[str, dict[str, Any]]] = {
    "genai-perf in a box": (
        GENAI_PERF_BOX,
        {"mean_ttft_ms": 13.68, "mean_tpot_ms": 1.86, "output_len": 103.46}
        | {"output_throughput": 504.02, "request_throughput": 4.87},
    ),
    "aiperf in a box, labels in two lines": (AIPERF_BOX, {"mean_ttft_ms": 42612.16}),
    "guidellm": (
        GUIDELLM_TABLES,
        {"input_len": 512.3, "max_concurrency": 29.65, "output_throughput": 996.1}
        | {"mean_ttft_ms": 817.7, "mean_tpot_ms": 26.7, "request_throughput": 3.89},
    ),
    "guidellm of today": (
        GUIDELLM_NEWER,
        {"max_concurrency": 1, "mean_ttft_ms": 23.2, "mean_tpot_ms": 7.8}
        | {"output_throughput": 49.7, "request_throughput": 1.0},
    ),
    "mlperf": (
        MLPERF,
        {"output_throughput": 29522.56, "request_throughput": 99.86, "mean_ttft_ns": 963332124}
        | {"mean_tpot_ns": 126269215, "output_len": 29522.56 / 99.86},
    ),
    "mlperf without tokens": (MLPERF.replace("tokens per second", "-"), {"output_len": None}),
    "megatron bridge": (
        BRIDGE,
        {"step_s": 9.089, "model_tflops_per_gpu": 663.5, "global_batch_seqs": 512},
    ),
    "nemo's bar": (NEMO_BAR, {"step_s": 11.2}),
    "vllm's own": (
        VLLM_LINE.format(rate=40.0, users=8) + VLLM_LINE.format(rate=512.0, users=8),
        {"batch": 8, "decode_tokens_per_s_per_user": 64.0},
    ),
    "sglang's own": (SGLANG_LINE * 2, {"batch": 8, "decode_tokens_per_s_per_user": 76.5}),
    "sglang of one batch": (
        ONE_BATCH,
        {"batch_size": 4, "input_len": 1024, "output_len": 512}
        | {"input_tokens_per_s": 11015.86, "decode_tokens_per_s_per_user": 340.47 / 4},
    ),
    "vllm or sglang": (
        VLLM.format(clients=1, ttft=3345.37, tpot=20.63),
        {"max_concurrency": 1, "output_throughput": 26.84, "mean_ttft_ms": 3345.37},
    ),
    "vllm throughput": (
        "Throughput: 32.42 requests/s, 14029.44 total tokens/s, 7014.7 output tokens/s\n",
        {"request_throughput": 32.42, "output_throughput": 7014.7},
    ),
    "vllm latency": (
        "Avg latency: 1.234 seconds\n10% percentile latency: 1.2",
        {"avg_latency": 1.234},
    ),
    "rccl-tests": (
        RCCL.format(ranks="\n".join(map(RANK.format, range(8)))),
        {"device": "AMD Instinct MI300X", "num_devices": 8, "message_bytes": 8388608}
        | {"time_us": 91.10, "busbw_gb_s": 161.14},
    ),
    "megatron": (
        MEGATRON,
        {"step_s": 5.48935, "model_tflops_per_gpu": 237.9, "global_batch_seqs": 128},
    ),
    "torchtitan": (TITAN, {"tokens_per_s_per_gpu": 10050, "mfu": 13.99}),
    "nemo": (NEMO, {"step_s": 2.345, "model_tflops_per_gpu": 700.5, "global_batch_seqs": 128}),
    "trtllm-bench": (
        TRTLLM,
        {"model": "deepseek-ai/DeepSeek-R1", "num_devices": 4, "dtype_weights": "NVFP4"}
        | {"output_throughput": 7517.2584, "input_len": 1024, "max_concurrency": 1018.8281},
    ),
}


@pytest.mark.parametrize("tool", READ)
def test_what_a_tool_prints_is_read(tool: str, tmp_path: Path) -> None:
    text, fields = READ[tool]
    (tmp_path / "run.log").write_text(text, encoding="utf-8")
    [(reading, _)] = load(tmp_path / "run.log")
    assert {name: reading.get(name) for name in fields} == pytest.approx(fields)


def test_a_mean_of_requests_at_once_stands_where_no_limit_was_set() -> None:
    block = VLLM.format(clients="not set", ttft=3345.37, tpot=20.63)
    mean = block + "Concurrency:                             70.99\n"
    [(said, _)] = logs.read(mean, "run.log")
    assert said["max_concurrency"] == 70.99
    [(said, _)] = logs.read(mean.replace("not set", "80"), "run.log")
    assert said["max_concurrency"] == 80


def test_older_lines_and_ranks_within_lines_are_read() -> None:
    """Lines of vLLM in 2023, which had no tokens, and of nccl-tests by MPI with tags of ranks."""
    [(said, _)] = logs.read("Total time: 166.88 s\nThroughput: 5.99 requests/s\n", "run.log")
    assert said == {"request_throughput": 5.99}
    tagged = (
        "[0]      8388608       2097152     float     sum      -1[0]     992.6    8.45   16.20     "
        " 0[0]     986.0    8.51   16.31      0\n"
    )
    [(said, _)] = logs.read(tagged, "all_reduce_perf.txt")
    assert (said["message_bytes"], said["time_us"], said["busbw_gb_s"]) == (8388608, 992.6, 16.2)


def test_a_file_called_f16_has_the_bits_that_its_size_makes(tmp_path: Path) -> None:
    """Experts of gpt-oss stay in MXFP4: 12.83 GiB of 20.91 B parameters are 5.27 bits each."""
    table = """ggml_vulkan: 0 = Radeon 8060S Graphics (RADV GFX1151) (radv) | uma: 1 | fp16: 1
| model          |      size |  params | backend    | ngl | test  |           t/s |
| -------------- | --------: | ------: | ---------- | --: | ----: | ------------: |
| gpt-oss ?B F16 | 12.83 GiB | 20.91 B | Vulkan,RPC | 125 | tg128 |  45.01 ± 0.05 |
"""
    verdict = checked(tmp_path / "bench.md", table)
    assert verdict.possible
    row = verdict.claim.row
    assert (row["model"], row["dtype_weights"]) == ("gpt-oss-20b 5.27 bit", "5.27 bit")
    assert verdict.machine.device.key == "ryzen-ai-max-395"
    [(said, _), *_] = logs.read(LLAMA_BENCH, "bench.md")
    assert said["model"] == "llama-7b F16"  # of 16 bits indeed


LLAMA_VULKAN = """ggml_vulkan: Found 1 Vulkan devices:
ggml_vulkan: 0 = AMD Radeon RX 7900 XTX (RADV NAVI31) (radv) | uma: 0 | fp16: 1 | warp size: 64
| model                          |      size |   params | backend | ngl | test  |            t/s |
| ------------------------------ | --------: | -------: | ------- | --: | ----: | -------------: |
| qwen3moe 30B.A3B Q4_K - Medium | 17.28 GiB |  30.53 B | Vulkan  |  99 | tg128 |   130.3 ± 5.0  |
| gpt-oss 20B MXFP4 MoE          | 11.27 GiB |  20.91 B | Vulkan  |  99 | tg128 |   120.90 ± 0.3 |
"""


def test_devices_of_other_backends_and_mixtures_are_named(tmp_path: Path) -> None:
    for words in (LLAMA_VULKAN, LLAMA_VULKAN.replace("ggml_vulkan: 0 =", "GPU name:  ")):
        rows = list(logs.read(words.replace(" (RADV NAVI31) (radv) | uma", "\n"), "bench.md"))
        assert [row["model"] for row, _ in rows] == ["qwen-3-30b-a3b Q4_K_M", "gpt-oss-20b MXFP4"]
        assert {row["device"] for row, _ in rows} == {"AMD Radeon RX 7900 XTX"}
    (tmp_path / "bench.md").write_text(LLAMA_VULKAN, encoding="utf-8")
    checks = check_file(tmp_path / "bench.md")
    assert isinstance(checks, Checks)
    assert not checks.refused


@pytest.mark.parametrize(
    "text",
    [
        "prompt eval time =     200.00 ms /   512 tokens (    0.39 ms per token,  2560.00 tokens"
        " per second)\n       eval time =    2000.00 ms /   128 runs   (   15.63 ms per token,   "
        " 64.00 tokens per second)\n",
        "prompt eval count:    512 token(s)\nprompt eval duration: 200ms\nprompt eval rate:    "
        " 2560.00 tokens/s\neval count:           128 token(s)\neval duration:        2s\neval"
        " rate:            64.00 tokens/s\n",
    ],
)
def test_the_pace_of_a_prompt_and_of_an_answer_are_two_claims(text: str) -> None:
    """Lines of llama.cpp, and lines of Ollama."""
    assert [row for row, _ in logs.read(text, "run.log")] == [
        {"batch": 1, "input_len": 512, "input_tokens_per_s": 2560.0},
        {"batch": 1, "output_len": 128, "decode_tokens_per_s": 64.0},
    ]


def test_an_engines_pace_counts_where_as_many_requests_ran_before() -> None:
    text = "".join(VLLM_LINE.format(rate=rate, users=1) for rate in (800.0, 100.0, 102.0))
    text = VLLM_LINE.format(rate=900.0, users=8) + text
    [(pace, _)] = logs.read(text, "serve.log")
    assert pace == {"batch": 1, "decode_tokens_per_s_per_user": 101.0}


def test_one_batch_of_sglang_is_its_prompts_and_a_token_after(tmp_path: Path) -> None:
    row = {"batch_size": 8, "input_len": 1024, "output_len": 8, "prefill_throughput": 34133.0}
    row |= {"median_decode_throughput": 1240.0, "overall_throughput": 13760.0}
    verdict = checked(tmp_path / "run.jsonl", json.dumps(row), "Llama 3.1 8B on one H100")
    assert verdict.claim.figures == {"input": 34133.0, "user": 155.0}
    assert verdict.claim.row["batch"] == 8


def test_batches_of_sglang_are_told_by_times_where_no_line_does() -> None:
    """No line of older versions says how many; two batches are two claims."""
    older = re.sub(r"Decode \d. Batch size: 4,", "Decode. ", ONE_BATCH)
    first, second = logs.read(older + ONE_BATCH.partition("Benchmark ...")[2], "run.log")
    assert first == second
    assert first[0]["batch_size"] == 4
    [(prompts, _)] = logs.read(
        "Prefill. latency: 3.736 s, throughput: 1096.24 token/s\n"
        "Total. latency: 3.736 s, throughput: 1097.31 token/s\n",
        "run.log",
    )
    assert prompts == {"input_tokens_per_s": 1096.24}


def test_llama_benchs_csv_is_its_json(tmp_path: Path) -> None:
    titles = "gpu_info,model_filename,n_prompt,n_gen,n_depth,avg_ts\n"
    row = "NVIDIA GeForce RTX 4090,Llama-3.2-3B-Instruct-Q4_K_M.gguf,512,0,0,15000.5\n"
    verdict = checked(tmp_path / "bench.csv", titles + row)
    assert verdict.claim.figures == {"input": 15000.5}
    assert verdict.claim.row["input_len"] == 512


def checked(path: Path, text: str, about: str = "") -> Check:
    path.write_text(text, encoding="utf-8")
    verdict = check_file(path, about)
    assert isinstance(verdict, Check)
    return verdict


def test_a_servers_block_is_checked_and_observed(tmp_path: Path, command: Command) -> None:
    first, second = tmp_path / "one.txt", tmp_path / "two.txt"
    verdict = checked(
        first, VLLM.format(clients=1, ttft=3345.37, tpot=20.63), "Qwen3 14B AWQ on 1 A100"
    )
    assert verdict.claim.figures["ttft"] == 3.34537
    assert (verdict.claim.row["batch"], verdict.claim.row["input_len"]) == (1, 16000)
    assert verdict.possible
    second.write_text(VLLM.format(clients=8, ttft=9000.0, tpot=31.0), encoding="utf-8")
    seen = observe("qwen-3-14b", "a100", [first, second], weights="awq")
    assert [(point.clients, point.tpot) for point in seen.points] == [(1, 0.02063), (8, 0.031)]
    answer = command.prints("check", str(first), "--about", "Qwen3 14B AWQ on 1 A100")
    assert answer.startswith("possible: ")


def test_a_log_of_training_is_checked(tmp_path: Path) -> None:
    """Mixtral 8x7B on 16 H100: 237.9 TFLOP/s of 989 are 24 %, which its thread calls low."""
    verdict = checked(tmp_path / "train.log", MEGATRON, "Mixtral 8x7B on 16 H100, bf16, seq 2048")
    assert verdict.possible
    shares = {held.name: held.share for held in verdict.held}
    assert shares["flops"] == pytest.approx(0.24, abs=0.005)


def test_a_table_of_collectives_is_checked(tmp_path: Path) -> None:
    """An operation stands in the command or in the name of the file alone."""
    text, _ = READ["rccl-tests"]
    verdict = checked(tmp_path / "all_reduce_perf.txt", text)
    assert verdict.claim.row["collective"] == "all_reduce"
    assert verdict.possible
    assert {held.name for held in verdict.held} == {"time", "busbw"}
    (tmp_path / "other.txt").write_text(text, encoding="utf-8")
    assert checked(tmp_path / "other.txt", text, "all-reduce").possible


def test_llama_bench_is_one_reading_of_table_and_json(tmp_path: Path) -> None:
    (tmp_path / "bench.md").write_text(LLAMA_BENCH, encoding="utf-8")
    rows = [reading for reading, _ in load(tmp_path / "bench.md")]
    assert [row["model"] for row in rows] == ["llama-7b F16", "llama-7b F16", "llama-3-8b Q4_K_M"]
    assert rows[2]["input_len"] == 4096  # what was read before
    checks = check_file(tmp_path / "bench.md")
    assert isinstance(checks, Checks)
    assert not checks.refused
    written = next(check for name, check in checks.hardest.items() if name.endswith(":2"))
    # 61.03 times a second 12.55 GiB, less 262 MB of an embedding that is looked up: 806 GB/s of the
    # 1 008 that a 4090's memory has
    assert written.hardest.share == pytest.approx(0.80, abs=0.005)
    row = {"model_filename": "Llama-3.2-3B-Instruct-Q4_K_M.gguf", "n_prompt": 0, "n_gen": 128}
    row |= {"gpu_info": "NVIDIA GeForce RTX 4090", "avg_ts": 320.0, "model_type": "llama 3B"}
    faster = row | {"avg_ts": 900.0}
    (tmp_path / "bench.json").write_text(json.dumps([row, faster]), encoding="utf-8")
    both = check_file(tmp_path / "bench.json")
    assert isinstance(both, Checks)
    assert [share > 1 for share in both.shares.values()] == [False, True]
    assert {check.claim.row["dtype_weights"] for check in both.hardest.values()} == {"Q4_K_M"}
    (tmp_path / "both.json").write_text(json.dumps(row | {"n_prompt": 512}), encoding="utf-8")
    with pytest.raises(InputError, match="one rate of two things"):
        check_file(tmp_path / "both.json")


def test_lines_of_sglang_have_a_rate_without_end(tmp_path: Path) -> None:
    line = '{"request_rate": Infinity, "max_concurrency": 16, "mean_tpot_ms": 9.66}\n'
    (tmp_path / "runs.jsonl").write_text(line * 2, encoding="utf-8")
    checks = check_file(tmp_path / "runs.jsonl", "Llama 3.1 8B on one H100")
    assert isinstance(checks, Checks)
    assert len(checks.shares) == 2


def test_a_mean_latency_needs_its_batch(tmp_path: Path) -> None:
    (tmp_path / "latency.json").write_text('{"avg_latency": 2.0}', encoding="utf-8")
    with pytest.raises(InputError, match="avg_latency is of a batch and its answers"):
        check_file(tmp_path / "latency.json", "Llama 3.1 8B on one H100")
    about = "Llama 3.1 8B on one H100, batch 8, 32 in, 128 out"
    verdict = check_file(tmp_path / "latency.json", about)
    assert isinstance(verdict, Check)
    assert verdict.claim.figures == {"output": 8 * 128 / 2.0}


def test_a_log_that_no_tool_wrote_names_those_that_are_read(tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text("epoch 3 took 5 s\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"what nccl-tests, llama-bench, .* and torchtitan print"):
        check_file(tmp_path / "other.log", "Llama 3.1 8B on one H100")


@pytest.mark.parametrize("word", ["nan", "-26.84", "inf", "1e999", "26.8x", "0x1A"])
@pytest.mark.parametrize("line", ["Output token throughput (tok/s): ", "Successful requests: "])
def test_a_number_of_a_block_that_cannot_be_is_refused_by_name(
    line: str, word: str, tmp_path: Path
) -> None:
    block = re.sub(
        rf"(?m)^{re.escape(line)}.*$", line + word, VLLM.format(clients=8, ttft=99, tpot=9)
    )
    assert word in block
    (tmp_path / "run.log").write_text(block, encoding="utf-8")
    name = "output_throughput" if "tok/s" in line else "completed"
    with pytest.raises(InputError, match=f"{name} must be a number"):
        check_file(tmp_path / "run.log", "Llama 3.1 8B on one H100")


def test_what_a_block_leaves_open_is_not_said(tmp_path: Path) -> None:
    """SGLang prints "not set" where clients wait for nothing."""
    block = VLLM.format(clients="not set", ttft=3345.37, tpot=20.63)
    verdict = checked(tmp_path / "run.log", block, "Qwen3 14B AWQ on 1 A100")
    assert verdict.claim.row["batch"] is None


def test_answers_of_one_token_have_no_token_after_it(tmp_path: Path) -> None:
    """Benchmarks print 0 for their mean, as for prompts that are read alone."""
    block = VLLM.replace("6000", "30").format(clients=8, ttft=9000.0, tpot="0.00")
    verdict = checked(tmp_path / "run.log", block, "Qwen3 14B AWQ on 1 A100")
    assert "tpot" not in verdict.claim.figures
    with pytest.raises(InputError, match="mean_tpot_ms must be a number above 0"):
        checked(tmp_path / "run.log", VLLM.format(clients=8, ttft=9000.0, tpot="0.00"), "A100")


def test_times_of_messages_are_of_no_model(tmp_path: Path) -> None:
    """A table that names no collective is refused in a sentence, whatever is said beside it."""
    text, _ = READ["rccl-tests"]
    with pytest.raises(InputError, match="which collective is not said"):
        checked(tmp_path / "run.txt", text, "Llama 3.1 8B on 8 MI300X")


@pytest.mark.parametrize("line", ["Throughput: 12 tok/s\n", "x" * 999, " \n", "7 7 7 7 7\n"])
def test_a_log_takes_as_long_as_it_is(line: str, tmp_path: Path) -> None:
    """Four times the lines take about four times as long: blank ones took the square of it."""
    path = tmp_path / "run.log"

    def seconds(size: int) -> float:
        path.write_text(line * (size // len(line)), encoding="utf-8")
        before = time.process_time()
        with pytest.raises(InputError, match="no result of a known benchmark"):
            load(path)
        return time.process_time() - before

    short, long = (min(seconds(size) for _ in range(3)) for size in (50_000, 200_000))
    assert long < 9 * short


def test_a_log_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(b"x" * (logs.LARGEST_MB * 10**6 + 1))
    with pytest.raises(InputError, match="a log may have 32 MB"):
        load(tmp_path / "run.log")


def test_the_suffix_of_an_id_is_its_format(tmp_path: Path) -> None:
    run = {"max_concurrency": 1, "mean_tpot_ms": 20.63, "model_id": "Qwen/Qwen3-14B-AWQ"}
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    verdict = check_file(tmp_path / "run.json", "on 1 A100")
    assert isinstance(verdict, Check)
    assert verdict.claim.row["dtype_weights"] == "int4"
    assert not any("weights" in each for each in verdict.unsaid)


GENAI_PERF = """Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ms),"1,146.31",249.48,"3,485.23","3,457.97","3,349.56","3,215.06",1,640.07,286
Time To Second Token (ms),26.05,0.00,133.51,96.12,36.56,34.88,34.35,33.55,1.78
Inter Token Latency (ms),30.35,27.59,35.60,35.23,33.88,32.53,31.05,30.13,29.04
Output Sequence Length (tokens),174.45,164.00,187.00,186.22,183.10,180.10,177.00,174.00,171.75
Input Sequence Length (tokens),"3,000.05","2,999.00","3,001.00","3,001.00",1,1,1,1,1

Metric,Value
Output Token Throughput (per sec),261.25
Request Throughput (per sec),1.50
Request Count (count),40.00
"""
AIPERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 1.5},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 261.25},
    "time_to_first_token": {"unit": "ms", "avg": 1146.31, "p50": 640.07},
    "inter_token_latency": {"unit": "ms", "avg": 30.35, "p50": 30.13},
    "output_sequence_length": {"unit": "tokens", "avg": 174.45},
    "input_sequence_length": {"unit": "tokens", "avg": 3000.05},
}
GUIDELLM = {
    "benchmarks": [
        {
            "metrics": {
                name: {"successful": {"mean": value}}
                for name, value in (
                    ("requests_per_second", 1.5),
                    ("output_tokens_per_second", 261.25),
                    ("time_to_first_token_ms", 1146.31),
                    ("inter_token_latency_ms", 30.35),
                    ("prompt_token_count", 3000.05),
                    ("output_token_count", 174.45),
                )
            }
        }
    ]
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("profile_export_genai_perf.csv", GENAI_PERF),
        ("profile_export_aiperf.csv", GENAI_PERF.replace("(per sec)", "(tokens/sec)", 1)),
        ("profile_export_aiperf.json", json.dumps(AIPERF)),
        ("benchmarks.json", json.dumps(GUIDELLM)),
    ],
)
def test_tools_of_servers_say_the_same(name: str, text: str, tmp_path: Path) -> None:
    verdict = checked(tmp_path / name, text, "Llama 3.1 8B on one L40S")
    figures = {"output": 261.25, "requests": 1.5, "ttft": 1.14631, "tpot": 0.03035}
    assert verdict.claim.figures == pytest.approx(figures)
    row = verdict.claim.row
    assert (row["input_len"], row["output_len"]) == (3000.05, 174.45)


def test_a_table_of_metrics_that_is_cut_is_refused_by_name(tmp_path: Path) -> None:
    lines = GENAI_PERF.splitlines()
    cut = "\n".join([*lines[:3], "Inter Token Latency (ms)"])
    (tmp_path / "run.csv").write_text(cut, encoding="utf-8")
    with pytest.raises(InputError, match=r"no value of Inter Token Latency \(ms\): was it cut"):
        check_file(tmp_path / "run.csv", "Llama 3.1 8B on one L40S")


NVIDIA = """timestamp, index, power.draw [W], power.limit [W], clocks.current.sm [MHz], \
clocks.max.sm [MHz], utilization.gpu [%], pcie.link.gen.current, pcie.link.gen.max, \
pcie.link.width.current, pcie.link.width.max, clocks_event_reasons.sw_power_cap, \
clocks_event_reasons.sw_thermal_slowdown
2026/09/11 04:19:41.982, 0, 187.80 W, 1000.00 W, 120 MHz, 1965 MHz, 0 %, 1, 5, {lanes}, 16, \
Not Active, Not Active
2026/09/11 04:19:42.990, 0, {power}, 1000.00 W, {clock} MHz, 1965 MHz, 98 %, 5, 5, {lanes}, 16, \
Not Active, {heat}
2026/09/11 04:19:43.990, 0, [N/A], 1000.00 W, {clock} MHz, 1965 MHz, 99 %, 5, 5, {lanes}, 16, \
Not Active, {heat}
"""
WELL = {"lanes": "16", "power": "912.10 W", "clock": "1965", "heat": "Not Active"}
TABLE = """
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
| N/A   66C    P0            698W /  700W |   76543MiB /  81559MiB |    100%      Default |
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2B:00.0 Off |                    0 |
| N/A   36C    P0            120W /  700W |   76543MiB /  81559MiB |     90%      Default |
"""
DMON = """
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk
# Idx      W      C      C      %      %      %      %    MHz    MHz
    0    397     66      -     10     53      0      0   2619   1410
    0    399     66      -     22     53      0      0   2619   1400
"""
OUTLINE = """
GPU 00000000:1B:00.0
    PCI
        GPU Link Info
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Event Reasons
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Active
    Utilization
        Gpu                               : 100 %
    GPU Power Readings
        Power Draw                        : 349.40 W
        Current Power Limit               : 350.00 W
    Clocks
        SM                                : 1005 MHz
    Max Clocks
        SM                                : 1980 MHz
"""
AMD_OUTLINE = """GPU: 0
    USAGE:
        GFX_ACTIVITY: 99 %
    POWER:
        SOCKET_POWER: 745 W
    CLOCK:
        GFX_0:
            CLK: 1050 MHz
            MAX_CLK: 2100 MHz
"""
AMD_JSON = """{"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 99, "unit": "%"}},
"clock": {"gfx_0": {"clk": {"value": 1050, "unit": "MHz"}, "max_clk": {"value": 2100}}}}]}"""
AMD = """timestamp,gpu,gfx_activity,umc_activity,mm_activity,socket_power,gfx_0_clk,gfx_0_min_clk,\
gfx_0_max_clk,mem_0_clk,edge,hotspot,mem
1772939616,0,95,80,N/A,350,{clock},500,2100,901,38,72,65
1772939617,0,88,75,N/A,300,{clock},500,2100,901,36,68,62
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NVIDIA.format(**WELL), []),
        (NVIDIA.format(**WELL | {"lanes": "8"}), ["a link of PCIe has 8 of 16 lanes"]),
        (
            NVIDIA.format(**WELL | {"heat": "Active", "clock": "1200"}),
            [
                "heat lowers the clock in 2 of 2 readings under load",
                "clocks are 61% of the highest under load",
            ],
        ),
        (AMD.format(clock=1980), []),
        (AMD.format(clock=1050), ["clocks are 50% of the highest under load"]),
        (AMD_OUTLINE, ["clocks are 50% of the highest under load"]),
        (AMD_JSON, ["clocks are 50% of the highest under load"]),
        (TABLE, []),
        (
            TABLE.replace("120W", "690W"),
            ["its limit of power is reached in 2 of 2 readings under load"],
        ),
        (DMON, ["devices are busy 16 % of the time: the host or the load keeps them waiting"]),
        (
            OUTLINE,
            [
                "its limit of power lowers the clock in 1 of 1 readings under load",
                "heat lowers the clock in 1 of 1 readings under load",
                "clocks are 51% of the highest under load",
                "a link of PCIe has 8 of 16 lanes",
            ],
        ),
        (
            "index, utilization.gpu [%]\n0, 98 %\n0, 20 %\n0, 5 %\n",
            ["devices are busy 41 % of the time: the host or the load keeps them waiting"],
        ),
    ],
)
def test_readings_of_devices_say_what_slows_them(
    text: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "smi.csv").write_text(text, encoding="utf-8")
    assert device_states.read(tmp_path / "smi.csv") == expected


@pytest.mark.parametrize(
    ("name", "length"), [("prefill_tokens_per_s_512_prompt", 512), ("prefill_tokens_per_s", None)]
)
def test_a_rate_of_reading_says_how_long_its_prompts_were(name: str, length: int | None) -> None:
    """A row as it stands among those that are published, whose figures are a list."""
    row = {"model": "Llama 3.1 8B", "device": "h100", "num_devices": 1}
    judged = check(row | {"measured": [{"name": name, "value": 1000.0}]})
    assert judged.claim.figures == {"input": 1000.0}
    assert judged.claim.row["input_len"] == length


def test_any_column_that_is_known_makes_a_table_of_readings(tmp_path: Path) -> None:
    columns = {name for names in device_states.COLUMNS.values() for name in names}
    reasons = {f"clocks_{by}_reasons.{of}" for by in ("event", "throttle") for of in REASONS}
    for column in columns | reasons:
        for titles in (column, f"index, {column}", f"{column} [W], name"):
            row = ", ".join("1" for _ in titles.split(","))
            (tmp_path / "smi.csv").write_text(f"{titles}\n{row}\n", encoding="utf-8")
            device_states.read(tmp_path / "smi.csv")
    for column in reasons:
        text = f"index, {column}\n0, Active\n1, Not Active\n2, Active\n"
        (tmp_path / "smi.csv").write_text(text, encoding="utf-8")
        sentence = (
            f"{REASONS[column.partition('.')[2]]} lowers the clock in 2 of 3 readings under load"
        )
        assert device_states.read(tmp_path / "smi.csv") == [sentence]


USED, SPENT = "utilization.gpu [%]", "power.draw [W], power.limit [W]"
CLOCKS = "clocks.current.sm [MHz], clocks.max.sm [MHz]"
NEAR = "its limit of power is reached in"
WAITS = "devices are busy {} % of the time: the host or the load keeps them waiting"


@pytest.mark.parametrize(
    ("titles", "rows", "expected"),
    [
        (USED, ["50 %", "50 %"], []),
        (USED, ["50 %", "48 %"], [WAITS.format(49)]),
        (SPENT, ["97 W, 100 W"], []),
        (SPENT, ["97.1 W, 100 W"], [f"{NEAR} 1 of 1 readings under load"]),
        (SPENT, ["99 W, 100 W", "9 W, 100 W"], []),
        (SPENT, ["99 W, 100 W"] * 2 + ["9 W, 100 W"], [f"{NEAR} 2 of 3 readings under load"]),
        (SPENT, ["99 W, N/A", "N/A, 100 W"], []),
        (CLOCKS, ["800 MHz, 1000 MHz"], []),
        (CLOCKS, ["790 MHz, 1000 MHz"], ["clocks are 79% of the highest under load"]),
        (CLOCKS, ["600 MHz, 1000 MHz", "1000 MHz, 1000 MHz"], []),
        (
            f"{USED}, {CLOCKS}",  # a reading at 50 % is one under load, one at 49 % is not
            ["50 %, 400 MHz, 1000 MHz", "99 %, 1000 MHz, 1000 MHz"],
            ["clocks are 70% of the highest under load"],
        ),
        (f"{USED}, {CLOCKS}", ["49 %, 400 MHz, 1000 MHz", "99 %, 1000 MHz, 1000 MHz"], []),
        (
            f"{SPENT}, clocks_event_reasons.sw_power_cap",
            ["99 W, 100 W, Active"],
            ["its limit of power lowers the clock in 1 of 1 readings under load"],
        ),
        (
            "pcie.link.width.current, pcie.link.width.max, pcie.link.gen.current,"
            f" pcie.link.gen.max, {USED}",  # links are slowed when idle, and never narrowed
            ["16, 16, 4, 5, 90 %", "8, 16, 1, 5, 20 %", "16, 16, N/A, 5, 90 %"],
            [
                "a link of PCIe has 8 of 16 lanes",
                "a link of PCIe has generation 4 where 5 is possible",
            ],
        ),
    ],
)
def test_states_of_devices_are_told_from_their_limits_on(
    titles: str, rows: list[str], expected: list[str], tmp_path: Path
) -> None:
    text = "\n".join([titles, *rows])
    (tmp_path / "smi.csv").write_text(text, encoding="utf-8")
    assert device_states.read(tmp_path / "smi.csv") == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", "no column of power, clocks, links or use"),
        ("", "no column of power"),
        ("index, power.draw [W]\n", "no reading of a device"),
        ('{"gpu_data": [{"gpu": 0, "usage": "N/A"}]}', "no column of power"),
        ("GPU: 0\n    USAGE: N/A\n", "no column of power"),
        (NVIDIA.format(**WELL)[:-40], "line 4: has .* of 13 cells: was it cut"),
    ],
)
def test_readings_that_cannot_be_read_are_a_sentence(
    text: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "smi.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=reason):
        device_states.read(tmp_path / "smi.csv")


def test_a_run_has_a_place_among_what_is_expected(tmp_path: Path, command: Command) -> None:
    """Qwen3 14B in AWQ on an A100, one user and eager: 20.6 ms a token, of which a thread asks."""
    run, beside = tmp_path / "run.txt", tmp_path / "smi.csv"
    about = "Qwen3 14B AWQ on 1 A100, vLLM"
    slow = checked(run, VLLM.format(clients=1, ttft=3345.37, tpot=20.63), about)
    assert (slow.possible, slow.side) == (True, "below")
    assert any("eager" in each for each in slow.usual)
    block = VLLM.format(clients=1, ttft=1800.0, tpot=9.0).replace("26.84", "50")
    usual = checked(run, block, about)
    assert usual.side == "inside"
    assert usual.usual == []
    beside.write_text(NVIDIA.format(**WELL | {"lanes": "8"}), encoding="utf-8")
    run.write_text(VLLM.format(clients=1, ttft=3345.37, tpot=20.63), encoding="utf-8")
    printed = command.prints("check", str(run), "--about", about, "--states", str(beside))
    assert "below what is expected" in printed
    assert "What explains such a place:\n- a link of PCIe has 8 of 16 lanes" in printed


def test_samples_of_another_family_name_who_answers(tmp_path: Path) -> None:
    text = MLPERF.replace("tokens per second", "-")
    (tmp_path / "mlperf_log_summary.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="`calc throughput whisper-large-v3 DEVICE` says what"):
        check_file(tmp_path / "mlperf_log_summary.txt", "whisper-large-v3 on 8 H100")


def test_readings_beside_a_file_of_several_claims_are_told(tmp_path: Path) -> None:
    (tmp_path / "bench.md").write_text(LLAMA_BENCH, encoding="utf-8")
    (tmp_path / "smi.csv").write_text(DMON, encoding="utf-8")
    checks = check_file(tmp_path / "bench.md", states=tmp_path / "smi.csv")
    sentence = "devices are busy 16 % of the time: the host or the load keeps them waiting"
    assert sentence in checks.text()
    assert [*checks.facts["explained"]] == [sentence]


def test_a_text_is_read_as_its_file_and_a_sentence_is_none(tmp_path: Path) -> None:
    """A line like a log within a sentence that names its model or device is said by that."""
    block = VLLM.format(clients=8, ttft=3345.37, tpot=20.63)
    pasted = check(block, "Qwen3 14B AWQ on 1 A100")
    assert isinstance(pasted, Check)
    assert pasted.facts == checked(tmp_path / "run.log", block, "Qwen3 14B AWQ on 1 A100").facts
    line = "Throughput: 1.2 requests/s, 300.5 total tokens/s"
    said = check(f"Llama 3.1 8B on 1 H100. {line}")
    alone = check(line, "Llama 3.1 8B on 1 H100")
    assert isinstance(said, Check)
    assert isinstance(alone, Check)
    assert said.claim.row["model"] == alone.claim.row["model"] == "llama-3-1-8b"
    table = "model,device,num_devices,output_throughput\nllama-3-1-8b,h100,1,500\n"
    for rows in (table, tmp_path / "table.txt"):
        (tmp_path / "table.txt").write_text(table, encoding="utf-8")
        verdict = check(rows)
        assert isinstance(verdict, Check)
        assert verdict.claim.figures == {"output": 500}


def test_folders_say_something_of_a_summary_of_mlperf_alone(tmp_path: Path) -> None:
    folder = tmp_path / "h100x8" / "llama2-70b-99" / "Server"
    for run in (folder, folder / "performance" / "run_1"):
        run.mkdir(parents=True, exist_ok=True)
        (run / "mlperf_log_summary.txt").write_text(MLPERF, encoding="utf-8")
    [(_, beside)] = load(folder / "performance" / "run_1" / "mlperf_log_summary.txt")
    assert "h100x8 llama2-70b-99 Server" in beside
    assert load(folder / "mlperf_log_summary.txt")[0][1] == ""


def test_messages_far_from_their_bound_are_explained() -> None:
    slow, usual = (check(f"all-reduce of 1 GB on 8 H100: {ms} ms") for ms in (13.5, 3.5))
    assert (slow.side, usual.side) == ("below", "inside")
    assert any("width" in each for each in slow.usual)
    assert usual.usual == []
