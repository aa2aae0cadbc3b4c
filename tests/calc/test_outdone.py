"""Physics before tables: more of everything is never slower, and odd versions step back."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeAlias

import pytest

from calc import hardware, machines, software
from calc.catalog import kernel_shares
from calc.catalog.hardware import Accelerator
from calc.catalog.software import UNKNOWN
from calc.core.errors import InputError
from calc.published import closed_loops
from calc.steps.expectation import serving_pass
from calc.steps.job import Formats, Job, Tokens
from calc.steps.measured import Kernel, Rates, rates_of
from tests.calc.odd_values import SEED

MODELS = (
    *("llama-3-8b", "qwen-3-8b", "qwen-3-30b-a3b", "gpt-oss-120b", "llama-3-1-70b"),
    *("deepseek-v3", "deepseek-v3-2", "qwen-3-next-80b-a3b"),
)
PROGRAMS = (
    *("vllm", "vllm 0.14", "vllm 0.18", "vllm 0.19", "vllm 0.22", "sglang", "sglang 0.5.6"),
    *("sglang 0.5.9", "tensorrt-llm", "tensorrt-llm 1.2.0rc5", "tensorrt-llm 1.3.0rc10"),
    *("llama.cpp", "other"),
)
LOADS = (
    *(Tokens(batch, context) for batch in (1, 8, 64, 256) for context in (1000, 8000)),
    *(Tokens(reading=length, prompt=length) for length in (512, 4096)),
    Tokens(32, 2000, 2000, 1000),
)
FORMATS = Formats(), Formats("fp8", "1 byte", "1 byte")
EVERY = frozenset(hardware.names())
HELD = ("h200", "h100"), ("b200", "h200"), ("b300", "b200"), ("gb200", "b200"), ("gb300", "gb200")
Asked: TypeAlias = tuple[str, str, Tokens, Formats]


def seconds(device: Accelerator, asked: Asked) -> float | None:
    """Time of a pass on one device; None where it has no rate for it."""
    model, program, load, formats = asked
    job = Job.of(model, device.key, formats=formats, software=program)
    try:
        return float(serving_pass(job, load).total.m_as("s"))
    except InputError:
        return None


def pairs(dtype: str) -> list[tuple[Accelerator, Accelerator]]:
    every = map(hardware.get, hardware.names())
    return [(more, less) for more in every for less in hardware.outdone(more, dtype, EVERY)]


def slower(count: int, seed: int) -> Iterator[str]:
    """Drawn questions that a device with more of everything answers with more time."""
    draws, asked_of = random.Random(seed), {of.dtype: pairs(of.dtype) for of in FORMATS}
    named = [tuple(map(hardware.get, keys)) for keys in HELD]
    while count:
        formats = draws.choice(FORMATS)
        more, less = draws.choice(draws.choice((named, asked_of[formats.dtype])))
        asked = draws.choice(MODELS), draws.choice(PROGRAMS), draws.choice(LOADS), formats
        times = seconds(more, asked), seconds(less, asked)
        if times[0] is not None and times[1] is not None:
            count -= 1
            if times[0] > times[1] * (1 + 1e-9):
                yield f"{more.key} {less.key} {times[0] / times[1]:.3f} {asked}"


def test_a_device_with_more_of_everything_is_never_slower() -> None:
    assert not list(slower(12, SEED))


@pytest.mark.slow
def test_no_drawn_device_with_more_of_everything_is_slower() -> None:
    assert not list(slower(600, SEED + 1))


def better_and_worse(dtype: str, program: str) -> Iterator[tuple[Rates, Rates]]:
    """Rates of each device, and of each that it outdoes."""
    for pair in pairs(dtype):
        yield tuple(rates_of(machines.of(device), software.get(program)) for device in pair)


KINDS = [("gemm", lasting, narrow) for lasting in (False, True) for narrow in (False, True)]
KINDS += [("attention", False, False), ("memory", False, False), ("cache", False, False)]


@pytest.mark.slow
@pytest.mark.parametrize("program", ["llama.cpp", "vllm"])
@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp16", "int8"])
def test_no_rate_of_a_device_with_more_of_everything_is_worse(dtype: str, program: str) -> None:
    checked = 0
    for more, less in better_and_worse(dtype, program):
        for kind, lasting, narrow in KINDS:
            of = kind, "forward" if kind == "attention" else dtype, lasting, narrow
            with suppress(machines.NotMeasured):
                (fast, high), (slow, low) = more.of_kind(*of), less.of_kind(*of)
                is_worse = high > low if kind in ("memory", "cache") else high * (1 + 1e-9) < low
                assert fast >= slow, (more.machine.key, less.machine.key, of)
                assert not is_worse, (more.machine.key, less.machine.key, of)
                checked += 1
    assert checked > 500


SHAPES = [(m, n, k) for m in (1, 64, 512) for n in (1024, 6144) for k in (1024, 7168)]


@pytest.mark.parametrize(
    ("more", "less", "program"),
    [
        ("h200", "gh200", "other"),  # as many processors
        ("mi300x", "mi300a", "other"),  # fewer of the same
        ("rtx-5080", "rtx-4080", "llama.cpp"),  # both likely alone, with sums in 16 bits
        ("rtx-5090", "a30", "other"),  # fewer that are each faster
    ],
)
def test_no_product_takes_longer_where_nothing_is_less(more: str, less: str, program: str) -> None:
    asked = software.get(program) if program != "other" else UNKNOWN
    better, worse = (rates_of(machines.of(key), asked) for key in (more, less))
    assert better.machine.device.outdoes(worse.machine.device, "bf16")
    for shape in SHAPES:
        kernel = Kernel("product", "gemm", 1.0, shape=tuple(map(float, shape)))
        assert kernel.timed(better)[0] <= kernel.timed(worse)[0] * (1 + 1e-9), shape


def test_what_reads_caches_waits_for_a_launch_on_every_device() -> None:
    """A GH200, of which no launch was measured, waits no shorter than an H200, its better."""
    h200, gh200 = (rates_of(machines.of(key), UNKNOWN) for key in ("h200", "gh200"))
    assert gh200.machine.gap.provenance is None
    assert gh200.of_kind("cache", "", False, False) == h200.of_kind("cache", "", False, False)


def test_a_device_that_adds_slower_in_16_bits_outdoes_none() -> None:
    """An L20 has more of all but that: an RTX 4080 adds up in FP16 at twice its rate."""
    l20, rtx = hardware.get("l20"), hardware.get("rtx-4080")
    assert l20.peak("fp16") > rtx.peak("fp16")
    assert l20.peak("fp16") < rtx.half_sums * rtx.peak("fp16")
    assert not l20.outdoes(rtx, "bf16")


def test_devices_are_told_apart_before_they_are_read() -> None:
    devices = list(map(hardware.get, hardware.names()))
    for device in devices:
        outdone = [other for other in devices if device.outdoes(other, "bf16")]
        outdoing = [other for other in devices if other.outdoes(device, "bf16")]
        assert hardware.outdone(device, "bf16", EVERY) == tuple(outdone)
        assert hardware.outdoing(device, "bf16", EVERY) == tuple(outdoing)
    rates = {device.key: machines.of(device).rates for device in devices}
    assert machines.measured() == {key for key, kinds in rates.items() if kinds}
    assert machines.measured("memory") == {key for key, kinds in rates.items() if "memory" in kinds}


def test_a_plan_reads_devices_that_were_measured_and_no_others() -> None:
    code = """
import calc
from calc.catalog import hardware
calc.plan("llama-3-8b", "h200", batch=8, prompt=1000, generated=200, software="vllm")
print(hardware._get.cache_info().currsize)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 20


def test_a_device_outdoes_older_ones_of_its_vendor_alone() -> None:
    h100, h200, mi300x, v100 = map(hardware.get, ("h100", "h200", "mi300x", "v100"))
    assert h200.outdoes(h100, "bf16")
    assert not h100.outdoes(h200, "bf16")
    assert not mi300x.outdoes(h100, "bf16")
    assert not h200.outdoes(h100, "fp4")
    assert not h100.outdoes(h100, "bf16")
    assert not v100.outdoes(h100, "fp16")


def test_what_was_measured_stands_before_what_is_likely_of_a_lesser_device() -> None:
    """An MI300A, of which nothing was measured, reaches no more of products than an MI300X did."""
    vllm = software.get("vllm")
    less, more = (rates_of(machines.of(hardware.get(key)), vllm) for key in ("mi300a", "mi300x"))
    for ours, theirs in zip(
        less.of_kind("gemm", "fp8", True, False),
        more.of_kind("gemm", "fp8", True, False),
        strict=True,
    ):
        assert machines.is_likely(less.machine.likely("gemm", "fp8"))
        assert not machines.is_likely(theirs)
        assert ours <= theirs


@pytest.mark.parametrize(
    ("key", "lesser"), [("h200", "gh200"), ("a100-pcie", "a100-40gb"), ("gb300", "gb200")]
)
def test_no_rate_is_below_what_a_lesser_device_was_measured_to_reach(key: str, lesser: str) -> None:
    more, less = (rates_of(machines.of(hardware.get(one)), UNKNOWN) for one in (key, lesser))
    asked = [("gemm", "bf16", lasting, False) for lasting in (False, True)]
    asked += [("attention", way, False, False) for way in ("forward", "backward")]
    for of in asked:
        for ours, theirs in zip(more.of_kind(*of), less.of_kind(*of), strict=True):
            if theirs.provenance is not None and not machines.is_likely(theirs):
                assert ours >= theirs or ours.dimensionality == {"[time]": 1}, of


def test_what_is_taken_instead_of_a_device_s_own_rows_is_said() -> None:
    """vLLM 0.18 was measured on an H200 alone, slower than 0.14 on an H100."""
    job = Job.of("gpt-oss-120b", "h200", software="vllm 0.18")
    said = serving_pass(job, Tokens(8, 1000)).filled
    assert "kernels no slower than on h100, which has less of everything" in said


def test_a_version_that_contradicts_its_neighbours_gives_its_place_to_the_next() -> None:
    """SGLang 0.5.6 on an H100: nine times slower than on an H200, and than 0.5.9 there."""
    contradicting = {
        (one.kernel, one.device, one.program, one.instead_of)
        for one in (
            kernel_shares.surface_of(*key, version)
            for key in {
                (one.kernel, one.device, one.program, one.format) for one in kernel_shares.load()
            }
            for version in ("", "0.5.6.post2", "0.19", "0.14", "1.2.0rc5")
        )
        if one is not None and one.instead_of
    }
    assert contradicting == {("experts", "h100", "sglang", "0.5.6.post2")}
    said = serving_pass(Job.of("qwen-3-30b-a3b", "h100", software="sglang 0.5.6"), Tokens(8, 1000))
    assert any("those of 0.5.6.post2 contradict" in clause for clause in said.filled)


def test_what_no_server_reaches_is_in_no_interval() -> None:
    """A physical rule alone marks loops: what the best kernels would need, whatever the error."""
    marked = [row for row in closed_loops.rows() if not closed_loops.is_reachable(row)]
    assert 5 <= len(marked) <= 20
    errors = [closed_loops.predict(row).error for row in marked[:3]]
    assert all(error is not None for error in errors)


def test_all_loops_of_a_server_that_finds_prompts_are_in_no_interval() -> None:
    """Reuse is a server's: four loops of two servers of Llama 3.1 8B show less of it than six."""
    loops = [row for row in closed_loops.rows() if row["model"] == "llama-3-1-8b"]
    reusing = [row for row in loops if closed_loops.finds_prompts(row)]
    assert {(row["software"], row["tensor"]) for row in reusing} == {
        ("vllm 0.12.0", 1),
        ("vllm 0.12.0", 2),
    }
    assert len(reusing) == 10
    assert sum(map(closed_loops.is_reachable, reusing)) == 4
    assert {row["machine"] for row in reusing} == {"dgx-h200"}


def test_loops_whose_streams_held_tokens_back_are_in_no_interval() -> None:
    """Two H100s would write for 91 at once, by Little's law, faster than they read the weights."""
    held = [row for row in closed_loops.rows() if closed_loops.holds_streams_back(row)]
    assert {(row["machine"], row["model"], row["clients"]) for row in held} == {
        ("dgx-h100", "gpt-oss-120b", 512)
    }
    assert len(held) == 9
    late = [row for row in held if not closed_loops.tokens_are_reachable(row)]
    assert len(late) == 3
    assert all(map(closed_loops.is_reachable, held))
    assert not any(map(closed_loops.tells, held))
