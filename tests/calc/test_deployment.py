"""Commands that start a planned service."""

from __future__ import annotations

import json
import shlex
from functools import cache
from typing import Any

import pytest

from calc import plan_service
from calc.catalog import engines
from calc.core.errors import InputError
from calc.planning import ServicePlan
from tests.calc.command import Command
from tests.calc.flatly import flatly

SERVICE: dict[str, Any] = {
    "rate": 20,
    "prompt": 1200,
    "generated": 300,
    "ttft": "1 s",
    "tpot": "40 ms",
    "software": "vllm",
    "pools": "mixed",
    "percentile": 95,
    "requests": 300,
}
DRAFT = {"draft": "qwen-3-0-6b", "acceptance": 0.7, "kv": "fp8", "weights": "fp8"}


@cache
def planned(model: str = "qwen-3-32b", **more: Any) -> ServicePlan:
    return flatly(plan_service, model, "dgx-h100", **(SERVICE | more))


def words(plan: ServicePlan, engine: str) -> dict[str, str]:
    """The options of the only command as a shell splits it, each with its value."""
    (command,) = plan.deployment(engine).commands
    split = shlex.split(command)
    return dict(zip(split, [*split[1:], ""], strict=True))


@pytest.mark.parametrize(
    ("engine", "tensor", "copies", "tokens"),
    [
        ("vllm", "--tensor-parallel-size", "--data-parallel-size", "--max-num-batched-tokens"),
        ("vllm 0.19", "--tensor-parallel-size", "--data-parallel-size", "--max-num-batched-tokens"),
        ("SGLang 0.5.10", "--tp-size", "--dp-size", "--chunked-prefill-size"),
        ("trtllm", "--tp_size", "", "--max_num_tokens"),
    ],
)
def test_a_command_starts_what_is_planned(
    engine: str, tensor: str, copies: str, tokens: str
) -> None:
    plan = planned()
    (pool,) = plan.design.pools
    options = words(plan, engine)
    assert options[tensor] == str(pool.size)
    assert options[tokens] == str(pool.replica.chunk)
    assert pool.count > 1
    assert not copies or int(options[copies]) == pool.count
    assert "Qwen/Qwen3-32B" in options
    script = plan.deployment(engine).text()
    assert copies or f"# {pool.count} times" in script


def test_a_draft_and_small_formats_are_started_and_quoted() -> None:
    plan = planned(**DRAFT)
    options = words(plan, "vllm")
    draft = {"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 4}
    assert json.loads(options["--speculative-config"]) == draft
    assert (options["--quantization"], options["--kv-cache-dtype"]) == ("fp8", "fp8")
    options = words(plan, "sglang")
    assert options["--speculative-num-draft-tokens"] == "5"
    assert options["--kv-cache-dtype"] == "fp8_e4m3"


def test_two_pools_are_a_command_each() -> None:
    plan = planned(pools="disaggregated")
    read, write, router = plan.deployment("sglang").commands
    assert read.endswith("--disaggregation-mode prefill")
    assert write.endswith("--disaggregation-mode decode")
    assert router.endswith("--port 30001")  # beside that of the servers
    named = [word for word in router.split() if word.startswith("http://")]
    counts = [sum(does in word for word in named) for does in ("PREFILL", "DECODE")]
    assert counts == [1, 1]  # each with all copies of its pool
    assert f"--dp-size {plan.design.pools[0].count}" in read
    assert all(word.endswith(":30000") for word in named)
    script = plan.deployment("vllm").text()
    assert "VLLM_NIXL_SIDE_CHANNEL_HOST" in script
    assert "\nvllm-router --vllm-pd-disaggregation --prefill http://PREFILL-0:8000" in script
    assert "router" not in planned(pools="mixed").deployment("vllm").commands[-1]
    with pytest.raises(InputError, match=r"no option for two pools .*: take pools=mixed"):
        plan.deployment("trtllm")


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [
        ("ollama", "an engine 'ollama' are not in the data: those of vLLM, SGLang, TensorRT-LLM"),
        ("vllm 0.5.4", "the options of vLLM 0.5.4 are not in the data: those of 0.9 to 0.33"),
        ("vllm 0.99", "the options of vLLM 0.99 are not in the data"),
        ("vllm 0.11", "vLLM 0.11 has no option for a model that drafts before 0.19"),
        ("trtllm", "TensorRT-LLM 1.2 has no option for the format of keys and values"),
    ],
)
def test_what_is_not_known_is_one_sentence(engine: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        planned(**DRAFT).deployment(engine)
    assert "\n" not in str(refused.value)


def test_weights_that_nobody_makes_at_the_start_are_named() -> None:
    lines = planned(weights="int4").deployment("vllm").lines
    assert "planned with vLLM 0.24.0, options of vLLM 0.24.0" in lines[0]
    assert "options of vLLM 0.19" in planned().deployment("vllm 0.19").lines[0]
    formats = "W4A16 (feed-forward, attention) and BF16 (others)"
    assert f"# take a checkpoint of Qwen3 32B with weights in {formats}" in lines


def test_a_model_without_a_name_on_the_hub_is_a_place_to_fill() -> None:
    script = planned("mpt-7b").deployment("vllm").text()
    assert "# put the path of MPT 7b in the place of MODEL" in script
    assert planned("meta-llama/Llama-3.1-8B").deployment("vllm").commands[0].split()[2] == (
        "meta-llama/Llama-3.1-8B"
    )


def test_every_option_is_known_to_be_filled_in() -> None:
    named = {
        "model",
        "tensor",
        "stages",
        "experts",
        "copies",
        "devices",
        "share",
        "free",
        "sequences",
        "tokens",
    }
    values: dict[str, object] = dict.fromkeys(named | {"length", "draft", "drafted", "checked"}, 1)
    for engine in ("vllm", "sglang", "trtllm"):
        starting = engines.starting(engine)
        for option in starting.options:
            assert not any("$" in word for word in starting.words(option, values))


def test_the_command_line_prints_a_script(command: Command) -> None:
    options = [f"--{name}={value}" for name, value in SERVICE.items()]
    lines = command.prints(
        "plan-service", "qwen-3-32b", "dgx-h100", *options, "--write", "vllm"
    ).splitlines()
    assert lines[0].startswith("# Qwen3 32B: ")
    assert lines[-1].startswith("vllm serve Qwen/Qwen3-32B --tensor-parallel-size ")
    assert "are not in the data" in command.refuses(
        "plan-service", "qwen-3-32b", "h100", *options, "--write=vllm 0.1"
    )
