"""Logs of engines: their lines on memory, read and beside what is expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from calc import InputError, device_memory, quantity
from calc.published import engine_logs
from tests.calc.command import Command

VLLM = """\
INFO 10-02 12:00:01 [api_server.py:1839] vLLM API server version 0.19.0
INFO 10-02 12:00:01 non-default args: {'model_tag': 'meta-llama/Llama-3.1-8B-Instruct', \
'max_model_len': 8192, 'gpu_memory_utilization': 0.95}
INFO 10-02 12:00:20 [gpu_model_runner.py:2653] Model loading took 14.99 GiB memory and 3.2 seconds
INFO 10-02 12:00:40 [gpu_worker.py:298] Available KV cache memory: 58.1 GiB
INFO 10-02 12:00:40 [kv_cache_utils.py:1087] GPU KV cache size: 475,952 tokens
INFO 10-02 12:00:40 [kv_cache.py:1091] Maximum concurrency for 8,192 tokens per request: 58.10x
INFO 10-02 12:00:50 [gpu_model_runner.py:3480] Graph capturing finished in 6 secs, took 0.53 GiB
"""
OLD = (
    "the current vLLM instance can use total_gpu_memory (79.19GiB) x gpu_memory_utilization"
    " (0.90) = 71.27GiB model weights take 14.99GiB; non_torch_memory takes 0.15GiB; PyTorch"
    " activation peak memory takes 1.23GiB; the rest of the memory reserved for KV Cache is"
    " 54.90GiB."
)
SGLANG = """\
server_args=ServerArgs(model_path='Qwen/Qwen3-8B', mem_fraction_static=0.85, tp_size=2, \
context_length=32768)
Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=70.1 GB, mem usage=7.7 GB.
KV Cache is allocated. #tokens: 812345, K size: 27.9 GB, V size: 27.9 GB
Capture cuda graph end. Time elapsed: 9.1 s. mem usage=0.9 GB. avail mem=9.8 GB.
"""
HYBRID = """\
INFO [api_server.py:100] vLLM API server version 0.24.0
INFO non-default args: {'gpu_memory_utilization': 0.95}
ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (856). Each decode sequence \
requires one Mamba cache block, so CUDA graph capture cannot proceed.
"""
LLAMA = """\
load_tensors:        CUDA0 model buffer size =  4403.49 MiB
load_tensors:          CPU_Mapped model buffer size =   281.81 MiB
llama_kv_cache:      CUDA0 KV buffer size =  1024.00 MiB
llama_context:      CUDA0 compute buffer size =   258.50 MiB
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "engine.log"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_log_that_says_nothing_is_far_off(tmp_path: Path, command: Command) -> None:
    path = written(tmp_path, VLLM.replace("475,952", "0").replace("14.99", "0.0"))
    printed = command.prints(f"fit llama-3.1-8b h100 --log {path}")
    assert "4 of 6 lines" not in printed
    assert "is 0 GiB where 14.99 GiB is expected" in " ".join(printed.split())
    assert "inf" not in printed
    explained = engine_logs.explain("llama-3.1-8b", "h100", path)
    assert {line.name for line in explained.log.lines if not line.value.magnitude} == {
        "weights",
        "tokens",
    }
    assert "Infinity" not in explained.json()


def test_what_a_log_of_vllm_says(tmp_path: Path) -> None:
    log = engine_logs.read(written(tmp_path, VLLM))
    assert (log.engine, log.version) == ("vLLM", "0.19")
    assert log.started == {"context": 8192, "utilization": 0.95}
    said = {line.name: line.value for line in log.lines}
    assert said == {
        "weights": quantity("14.99 GiB"),
        "keys and values": quantity("58.1 GiB"),
        "tokens": quantity(475952, ""),
        "sequences": quantity(58.1, ""),
        "graphs": quantity("0.53 GiB"),
    }


@pytest.mark.parametrize(
    ("text", "engine", "names"),
    [
        (
            OLD,
            "vLLM",
            ["found by programs", "weights", "outside of torch", "largest step", "keys and values"],
        ),
        (SGLANG, "SGLang", ["weights", "tokens", "graphs"]),
        (LLAMA, "llama.cpp", ["weights", "keys and values", "largest step"]),
    ],
)
def test_lines_of_each_engine_are_read(
    text: str, engine: str, names: list[str], tmp_path: Path
) -> None:
    log = engine_logs.read(written(tmp_path, text))
    assert log.engine == engine
    assert [line.name for line in log.lines] == names


def test_expected_is_what_fit_says_started_alike(tmp_path: Path) -> None:
    explained = engine_logs.explain("llama-3.1-8b", "h100", written(tmp_path, VLLM))
    memory = device_memory.fit("llama-3.1-8b", "h100", "vllm 0.19", utilization=0.95, context=8192)
    assert explained.memory.tokens == memory.tokens
    assert all(off is None or abs(off) < 0.01 for off in map(explained.off, explained.log.lines))
    assert "within 10%" in explained.answer
    other = engine_logs.explain("llama-3.1-8b", "h100", written(tmp_path, VLLM), utilization=0.5)
    assert other.memory.start.utilization == 0.5
    assert "keys and values is 58.1" in other.answer or "expected" in other.answer


def test_a_log_of_what_should_not_fit_is_far_off(tmp_path: Path) -> None:
    """No memory below nothing is expected of caches, but none, and what lacks is said."""
    path = written(tmp_path, VLLM)
    explained = engine_logs.explain("llama-3.1-8b", "h100", path, utilization=0.1)
    assert explained.memory.over is not None
    line = next(line for line in explained.log.lines if line.name == "keys and values")
    assert explained.off(line) == -1
    text = " ".join(explained.explain().split())
    assert f"to take {explained.memory.over} more than its room" in text
    assert "-" + str(explained.memory.over) not in text


def test_the_command_prints_lines_and_facts(command: Command, tmp_path: Path) -> None:
    path = written(tmp_path, VLLM)
    assert "4: keys and values" in command.prints(f"fit llama-3.1-8b h100 --log {path}")
    facts = command.facts(f"fit llama-3.1-8b h100 --log {path} --json")
    assert [line["name"] for line in facts["lines"]][:2] == ["weights", "keys and values"]


def test_a_log_that_is_cut_or_of_another_program_is_told(tmp_path: Path, command: Command) -> None:
    cut = "\n".join(VLLM.splitlines()[:3])
    explained = engine_logs.explain("llama-3.1-8b", "h100", written(tmp_path, cut))
    assert "ends before caches are taken" in explained.caveats[0]
    with pytest.raises(InputError, match="no line on memory"):
        engine_logs.read(written(tmp_path, "all is well\n"))
    assert "llama-9" in command.refuses(f"fit llama-9 h100 --log {written(tmp_path, VLLM)}")


def test_the_most_sequences_of_a_model_with_states_are_its_blocks(
    command: Command, tmp_path: Path
) -> None:
    """A published start of Qwen3.6-27B-FP8 on an H100: 856, beside an encoder of images."""
    asked = "fit Qwen/Qwen3.5-27B-FP8 h100 --utilization 0.95"
    path = written(tmp_path, HYBRID)
    [line] = command.facts(f"{asked} --log {path} --json")["lines"]
    assert (line["name"], line["log"]) == ("most at once", 856)
    assert line["expected"] == pytest.approx(856, rel=0.03)
    facts = command.facts(f"{asked} --json")
    assert facts["most_sequences"] == facts["blocks"] == line["expected"]
    printed = " ".join(command.prints(f"{asked} --explain").split())
    assert "does not start with steps of 1024 sequences, each of which needs a block for" in printed
    assert f"--max-num-seqs {facts['blocks']} or fewer" in printed
    few = " ".join(command.prints(f"{asked} --sequences 64 --explain").split())
    assert "does not start" not in few
    assert device_memory.fit("qwen-3-8b", "h100", "vllm").most_sequences is None


@pytest.mark.parametrize(
    ("context", "utilization", "most"), [(131_072, 0.85, 2048), (256, 0.85, 4096)]
)
def test_sglang_takes_as_many_at_once_as_its_rule_says(
    context: int, utilization: float, most: int, tmp_path: Path
) -> None:
    """512 for each of the longest that fits, from 2048 to 4096, as its log prints them."""
    text = f"max_total_num_tokens=433000, max_prefill_tokens=16384, max_running_requests={most}, "
    said = {line.name: line.value for line in engine_logs.read(written(tmp_path, text)).lines}
    assert said["most at once"] == quantity(most, "")
    memory = device_memory.fit(
        "llama-3.1-8b", "h100", "sglang", context=context, utilization=utilization
    )
    assert memory.most_sequences == most
    small = device_memory.fit("llama-3.1-8b", "rtx-4090", "sglang", context=64, utilization=0.72)
    assert small.most_sequences == min(4096, small.tokens // 2)
