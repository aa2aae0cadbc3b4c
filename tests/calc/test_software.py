"""Software: what sources call it, its own numbers, and the rows that these are fitted to."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from benchmarks import software as benchmark
from calc import Job, device_memory, hardware, machines, plan, quantity, software
from calc.catalog import kernel_shares
from calc.core.errors import InputError
from calc.published import Comparison
from calc.steps.expectation import serving_pass
from calc.steps.job import Formats, Tokens
from tests.calc.command import Written

pytestmark = pytest.mark.xdist_group("derivations")  # which compare all rows too, once


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("vLLM 0.6.1.post2", "vllm"),
        ("TensorRT-LLM v1.0, PyTorch backend", "tensorrt-llm"),
        ("26.02 NeMo Container", "megatron-26-04"),
        ("26.08 NeMo Container", "megatron"),
        ("llm-foundry v0.4", "llm-foundry"),
        ("ollama 0.5", "llama-cpp"),
        ("an engine of our own", "other"),
    ],
)
def test_sources_write_names_in_their_own_way(written: str, key: str) -> None:
    assert software.software_of(written).key == key


def test_what_the_data_do_not_say_costs_nothing() -> None:
    none = software.UNKNOWN
    assert (none.step, none.sequence, none.sustained, none.hides_data) == (0, 0, 1, 1)


@pytest.mark.parametrize(("work", "share"), [("other", 0.85), ("other-training", 0.75)])
def test_a_program_that_is_not_known_keeps_what_others_do(work: str, share: float) -> None:
    other = software.software_of("an engine of our own", work)
    assert (other.step, other.sustained, other.fitted_on) == (0, share, software.OTHERS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[a]\nname = "A"\nspeed = 3', "a has an unknown field speed; known are name, written"),
        ('[a]\nname = "A"\nstep = 3', "a.step must be a table with value, unit and source; got 3"),
    ],
)
def test_a_mistake_in_the_data_is_named(text: str, sentence: str, written: Written) -> None:
    path = written(text, "software.toml")
    with pytest.raises(InputError) as refusal:
        software.load(path)
    assert sentence in str(refusal.value)
    with pytest.raises(InputError, match="there is no software 'abacus'; there are vllm, "):
        software.get("abacus")


def notes() -> list[tuple[str, str, str]]:
    """Software, number and note of what is fitted."""
    return [
        (key, name, record.provenance.note)
        for key in software.names()
        for name, record in software.get(key).records.items()
        if record.provenance.note.startswith("Fitted")
    ]


def test_a_note_counts_the_rows_that_a_number_is_fitted_to(
    comparisons: tuple[Comparison, ...],
) -> None:
    wrong = {}
    for key, name, note in notes():
        rows = [each for each in benchmark.rows_of(key, comparisons, name) if each.fitted]
        stated = re.search(r"the (\d+) rows", note)
        if stated is None or int(stated[1]) != len(rows):
            wrong[f"{key}.{name}"] = (len(rows), note)
    assert wrong == {}, (
        "the rows that there are, and what the note in calc/data/software.toml says; its number"
        " stays unless `test_numbers_are_what_the_fit_gives` fails too"
    )


def test_numbers_are_what_the_fit_gives(comparisons: tuple[Comparison, ...]) -> None:
    """Fits agree to a step of the grid, and shares to 0.02: a few rows move them as far."""
    fits = {
        (key, name): value
        for key in {key for key, _, _ in notes()}
        for name, value in benchmark.fitted(key, comparisons)
    }
    assert fits.keys() == {(key, name) for key, name, _ in notes()}
    stored = {(key, name): getattr(software.get(key), name) for key, name in fits}
    for name, value in fits.items():
        step = 0.02 if "sustained" in name[1] else max(benchmark.STEPS[1], value / 100)
        step = benchmark.SEQUENCES[1] if name[1] == "sequence" else step
        assert stored[name] == pytest.approx(value, abs=1.001 * step), name


def test_what_is_fitted_leaves_a_system_out_that_judges_it(
    comparisons: tuple[Comparison, ...],
) -> None:
    for key in {key for key, _, _ in notes()}:
        assert machines.get(software.get(key).fitted_on).key == software.get(key).fitted_on
        judges = [each for each in comparisons if each.software == key and not each.fitted]
        assert len([each for each in judges if each.error is not None]) >= 10, key


EVERY = pytest.param(hardware.names(), marks=pytest.mark.nightly)


@pytest.mark.parametrize("devices", [("h100", "mi300x", "l40s"), EVERY])
def test_whose_kernels_an_answer_stands_on_is_true(devices: Sequence[str]) -> None:
    """Whoever is named without a word was measured there: its rows are in the data, in a version
    that begins as the one that is stated, on the device or on one that is said to stand for it."""
    measured = set()
    with kernel_shares.FILE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            measured.add((row["device"], row["program"], row["version"]))
    wrong = []
    keys = "vllm", "sglang", "tensorrt-llm", "llama-cpp", "other"
    for device, key, version in product(devices, keys, ("", " 0.8", " 0.19")):
        entry = hardware.get(device)
        try:
            made = plan("llama-3-8b", device, prompt=100, generated=10, software=key + version)
        except InputError:
            continue
        if made.expected is None:
            continue
        basis = made.stands_on.partition("; ")[0]
        there = {device, entry.measured_as, *re.findall(r"kernels as on ([\w-]+)", basis)}
        versions = {one for whose, program, one in measured if whose in there and program == key}
        claimed = "of which no kernel was measured" not in basis
        if claimed and not any(one.startswith(version.strip()) for one in versions):
            wrong.append(basis)
        if not versions and claimed:
            wrong.append(basis)
    assert not wrong


@pytest.mark.parametrize("named", ["vllm", "vLLM"])
def test_the_usual_program_by_its_name_is_the_one_that_is_meant_where_nothing_is_said(
    named: str,
) -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 8}
    unsaid, said = (plan("deepseek-r1", "h100", software=of, **asked) for of in (None, named))
    fitted, as_usual = (
        device_memory.fit("deepseek-r1", "dgx-h100", of, tensor=8, context=1200)
        for of in (named, None)
    )
    job = Job.of("llama-3-8b", "h100", software=named)
    assert (said.memory, said.room) == (unsaid.memory, unsaid.room)
    assert fitted.parts == as_usual.parts
    assert unsaid.software.version == said.software.version == job.software.version
    assert job.software.version


def test_prompts_behind_many_tokens_are_attended_to_by_the_programs_own_kernel_on_amd() -> None:
    """Qwen3.5 122B in llama.cpp on a Ryzen AI Max+ 395, ROCm 7.2.3: 2048 tokens behind 32 768
    took 7.42 s, behind 65 536 took 10.65 s; the share was read off another model.
    """

    def taken(software: str, machine: str, before: int) -> float:
        sizes = Formats("bf16", quantity("6.0 bit"))
        job = Job.of("qwen-3-5-122b-a10b", machine, None, sizes, software)
        load = Tokens(reading=2048, prompt=2048, before=before)
        return float(serving_pass(job, load).total.m_as("s"))

    def longer(software: str, machine: str) -> float:
        return taken(software, machine, 65536) - taken(software, machine, 32768)

    assert longer("llama.cpp", "ryzen-ai-max-395") == pytest.approx(10.65 - 7.42, rel=0.2)
    assert longer("none", "ryzen-ai-max-395") < 0.4 * longer("llama.cpp", "ryzen-ai-max-395")


@pytest.mark.parametrize(
    ("device", "model", "measured"),
    [
        ("rtx-4090", "tinyllama-1-1b", 762),
        ("rtx-4090", "llama-3-2-3b", 320),
        ("rtx-5070", "qwen-3-1-7b", 321.91),
        ("rtx-5070", "qwen-3-14b", 59.01),
        ("apple-m4-pro", "llama-3-2-1b", 216.53),
        ("apple-m4-pro", "qwen-3-8b", 46.16),
    ],
)
def test_a_token_of_a_recent_llama_cpp_is_as_measured(
    device: str, model: str, measured: float
) -> None:
    """In Q4_K_M, token/s as published of builds since graphs; none of them made a number."""
    made = plan(model, device, prompt=50, generated=250, weights="q4_k_m", software="llama.cpp")
    assert made.expected is not None
    each = made.expected.time_per_token
    assert float((1 / each).m_as("1/s")) == pytest.approx(measured, rel=0.12)


@pytest.mark.parametrize(
    ("device", "model", "weights", "measured"),
    [
        ("rtx-3080", "llama-3-1-8b", "q4_k_m", 3806.89),
        ("rtx-3090", "llama-3-8b", "q5_0", 3654.78),
        ("rtx-3090", "llama-3-8b", "q6_k", 3596.13),
        ("rtx-2080-ti", "llama-2-13b", "q4_k_m", 1493.64),
        ("rtx-4090", "llama-3-2-3b", "q4_k_m", 20323.29),
    ],
)
def test_small_weights_meet_prompts_as_integers_on_geforce_cards(
    device: str, model: str, weights: str, measured: float
) -> None:
    """Prompts of 512 tokens, token/s as published of builds since June 2024; none made a number."""
    made = plan(model, device, prompt=512, generated=1, weights=weights, software="llama.cpp")
    assert made.expected is not None
    reads = made.expected.time_to_first_token
    assert float((512 / reads).m_as("1/s")) == pytest.approx(measured, rel=0.2)


def test_integers_are_faster_where_fp32_sums_are_slow() -> None:
    def factor(program: str, device: str) -> float:
        return software.get(program).products_faster(hardware.get(device), "fp16", narrow=True)

    assert factor("llama-cpp", "rtx-3090") == 2
    assert factor("llama-cpp", "rtx-a6000") == 1
    assert factor("llama-cpp-2024-05", "rtx-3090") == 1  # as FP16, once they are widened


def test_rows_before_graphs_are_of_a_family_of_their_own() -> None:
    for text, key in (
        ("llama.cpp (2024-05; build not stated in the overview)", "llama-cpp-2024-05"),
        ("llama.cpp build 6413, CUDA, -fa 1", "llama-cpp"),
        ("Ollama (version not stated)", "llama-cpp"),
    ):
        assert software.software_of(text).key == key
