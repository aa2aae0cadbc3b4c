"""Memory rules of engines: those that hold for all, published logs, and refusals."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given, strategies as st

from benchmarks import engine_memory as benchmark
from calc import InputError, device_memory, engines, hardware, models, quantity, transformer
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import RECURRENT
from calc.commands import lookup
from calc.core.citations import bibliography
from calc.published.memory_rows import rows
from calc.steps.engine_start import Pages
from calc.steps.held_memory import Lacks, Memory
from tests.calc.command import Command, Written
from tests.rows import each_row

MODELS = ("llama-3-1-8b", "qwen-3-30b-a3b", "gemma-3-27b", "gpt-oss-20b", "nemotron-nano-9b-v2")
JUDGED = [row for row in rows() if row.judges]
WHOLE = [row for row in JUDGED if "step" in row.measured]
PROFILED = [row for row in WHOLE if row.conditions["software"].startswith("vLLM 0.1")]


def fitted(model: str = "llama-3-1-8b", **asked: object) -> Memory:
    settings = {"device": "h100", "software": "vllm 0.19", "context": 8192} | asked
    return device_memory.fit(model, **settings)  # type: ignore[arg-type]


# --- rules that hold for every model ---


@given(st.sampled_from(MODELS), st.floats(0.87, 1), st.floats(0.87, 1))
def test_a_larger_share_never_holds_fewer_tokens(model: str, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert fitted(model, utilization=less).tokens <= fitted(model, utilization=more).tokens


@given(st.sampled_from(MODELS), st.integers(1, 16384), st.integers(1, 16384))
def test_a_larger_step_never_leaves_more(model: str, one: int, other: int) -> None:
    less, more = sorted((one, other))
    smaller, larger = (fitted(model, batched_tokens=each) for each in (less, more))
    assert smaller.caches >= larger.caches
    assert smaller.start.step_sequences <= less


@given(st.sampled_from(MODELS), st.integers(1, 8192), st.integers(1, 8192))
def test_a_longer_sequence_never_leaves_room_for_more_of_them(
    model: str, one: int, other: int
) -> None:
    less, more = sorted((one, other))
    assert fitted(model, context=less).sequences >= fitted(model, context=more).sequences


@given(st.sampled_from(MODELS), st.sampled_from((1, 2)))
def test_parts_add_up_to_the_share(model: str, tensor: int) -> None:
    answer = fitted(model, tensor=tensor)
    parts = sum(part.memory.m_as("GiB") for part in answer.parts)
    assert parts + answer.caches.m_as("GiB") == pytest.approx(answer.room.m_as("GiB"))
    taken = answer.block_memory.m_as("GiB") * answer.blocks
    assert 0 <= answer.caches.m_as("GiB") - taken < answer.block_memory.m_as("GiB")


def test_engines_keep_of_a_token_what_the_law_counts() -> None:
    """Models whose layers keep all tokens, among them layers that keep no index of their own."""
    held = 0
    with each_row() as row:
        for key in models.names():
            model = models.get(key)
            if not isinstance(model, Transformer) or model.output not in ("own", "tied"):
                continue
            if model.layers_with("window", *RECURRENT) or model.compresses:
                continue
            with row(key):
                start = device_memory.fit(key, "b300", "sglang", context=64).start
                each = sum(page.layers * page.each for page in start.pages)
                law = transformer.kv_cache_per_token(model, start.job.formats.kv)
                assert each == pytest.approx(law.m_as("byte/token"), rel=1e-9)
                held += 1
    assert held > 60


def test_smaller_formats_hold_more() -> None:
    bf16 = fitted()
    assert fitted(kv="fp8").tokens == pytest.approx(2 * bf16.tokens, rel=1e-4)
    assert fitted(weights="fp8").caches > bf16.caches


def test_slices_of_more_devices_than_heads_keep_a_head_each() -> None:
    (pages,) = fitted("qwen-2-5-7b", tensor=4).start.pages  # four heads of keys and values
    assert pages.each == 2 * 128 * 2
    with pytest.raises(InputError, match="slices"):
        fitted("qwen-2-5-7b", tensor=8)


# --- what logs say ---


def test_the_logs_of_llama_and_qwen() -> None:
    answer = fitted(utilization=0.95)
    assert answer.tokens == 476_016
    assert [round(part.memory.m_as("GiB"), 2) for part in answer.parts] == [14.99, 1.88, 0.25]
    assert fitted("qwen-2-5-7b", utilization=0.95).tokens == pytest.approx(1_096_000, rel=1e-3)


def test_every_row_is_predicted_as_near_as_the_data_say() -> None:
    with each_row() as row:
        for logged in PROFILED:
            with row(logged.id):
                if "caches" in logged.measured:
                    off = abs(logged.expected("caches") - logged.measured["caches"])
                    assert off <= 2 * logged.predicted.error.m_as("GiB")
                assert logged.error("step") == pytest.approx(0, abs=0.02)


def test_rows_that_nothing_is_fitted_to_judge() -> None:
    assert len(PROFILED) >= 30
    for name, most in (("weights", 0.002), ("step", 0.005), ("caches", 0.005)):
        assert median(map(abs, benchmark.errors(name, PROFILED))) < most, name
    nearest = benchmark.off(PROFILED)
    assert nearest[int(0.9 * len(nearest))] <= engines.get("vllm")["error"].m_as("GiB")


def test_other_versions_and_engines_are_held_to_what_is_known() -> None:
    others = [row for row in JUDGED if row not in PROFILED and row.within is not None]
    assert sum(bool(row.within) for row in others) >= 0.9 * len(others)


def test_checkpoints_of_each_format_are_near_their_logs() -> None:
    """Half of them within 3 %; nine in ten of what is left for caches in the ±, any source out."""
    judged = [row for row in JUDGED if row not in PROFILED]
    assert median(map(abs, benchmark.errors("weights", judged))) < 0.03
    for source in {row.conditions["source_key"] for row in judged}:
        others = [row for row in judged if row.conditions["source_key"] != source]
        within = [row.within for row in others if row.within is not None]
        assert sum(within) >= 0.9 * len(within), source


# Of logs that are not among the rows above: model, format, devices, and GiB of weights on each.
@pytest.mark.parametrize(
    ("model", "weights", "tensor", "logged"),
    [
        ("llama-3-8b", "fp8", 1, 8.46),
        ("llama-3-1-70b", "w8a8", 1, 67.72),
        ("llama-3-405b", "fp8", 8, 57.75),
        ("qwen-3-5-27b", "fp8", 2, 14.28),
        ("qwen-3-4b", "awq", 1, 2.5),
        ("mistral-small-3", "awq", 1, 13.3),
    ],
)
def test_weights_of_a_name_are_what_engines_load(
    model: str, weights: str, tensor: int, logged: float
) -> None:
    answer = fitted(model, weights=weights, tensor=tensor, device="h200", context=2048)
    assert answer.parts[0].memory.m_as("GiB") == pytest.approx(logged, rel=0.02)


def test_states_in_fp32_make_the_blocks_of_the_log() -> None:
    """1 568 tokens, by logs on an RTX A6000 and on two RTX 3090 with caches in FP8."""
    for tensor in (1, 2):
        asked = {"kv": "fp8", "weights": "fp8", "tensor": tensor, "device": "h200"}
        answer = fitted("qwen-3-5-27b", **asked)
        assert answer.block == 1568
        assert not any("States are taken" in caveat for caveat in answer.caveats)


def test_a_state_has_two_blocks_where_prefixes_are_kept() -> None:
    """A sequence of 131 072 tokens has 69 blocks: 63 of 2 096 tokens, and twice 3 of states."""
    answer = fitted(
        "qwen-3-5-35b-a3b",
        device="rtx-5090",
        software="vllm 0.24",
        weights="nvfp4",
        kv="fp8",
        context=131_072,
    )
    assert (answer.block, answer.blocks_of_a_sequence) == (2096, 63 + 2 * 3)


def test_what_the_log_of_a_version_prints_is_told() -> None:
    """About 55 000 tokens of about 50 GiB, where the next version prints 525 000."""
    asked = {"device": "a100", "weights": "awq", "utilization": 0.9, "context": 262_144}
    older, newer = (fitted("gemma-4-31b", **asked, software=f"vllm 0.{n}") for n in (20, 21))
    (sentence,) = [each for each in older.assumptions if "KV cache size" in each]
    printed = int(sentence.split(" tokens as")[0].split()[-1])
    assert printed == pytest.approx(55_000, rel=0.1)
    assert older.tokens > 10 * printed
    assert not any("KV cache size" in each for each in newer.assumptions)


def test_heads_of_windows_are_their_own() -> None:
    """Gemma 4 31B: 16 heads of 256 in windows, 4 of 512 else, whose blocks are twice as long."""
    answer = fitted("gemma-4-31b", context=32_768, weights="awq", batched_tokens=2048)
    assert [pages.each for pages in answer.start.pages] == [4 * 1024 * 2, 16 * 512 * 2]
    assert answer.blocks_of_a_sequence == 32_768 // 32 + 5 * (192 + 1)


def test_no_interval_goes_below_zero() -> None:
    answer = fitted("qwen-3-5-27b", device="rtx-4090-8", tensor=2, weights="fp8", context=131_072)
    assert answer.error is not None
    assert 0 < answer.tokens_off <= 1
    tight = fitted("gpt-oss-120b", device="h100", utilization=0.87, context=1024)
    assert tight.fits
    assert tight.error > tight.caches
    assert tight.tokens_off == 1


def test_what_a_name_leaves_open_is_in_the_interval() -> None:
    """Makers differ by what a name means; of a release, or of groups given, nothing is open."""
    exact = fitted(
        "qwen-3-5-27b", device="h200", weights="attention=awq,feed-forward=awq,others=bf16"
    )
    named = fitted("qwen-3-5-27b", device="h200", weights="awq")
    assert exact.parts[0].memory == named.parts[0].memory
    assert named.error > exact.error + quantity(3, "GiB")
    assert fitted("deepseek-v3", device="dgx-h200", tensor=8).error.m_as("GiB") == 0.25


def test_every_number_has_its_source() -> None:
    keys = bibliography()
    for software in ("vllm 0.10", "vllm 0.17", "vllm 0.18", "vllm 0.21", "sglang"):
        for name, record in engines.get(software).records.items():
            assert record.provenance.source in keys, f"{software}: {name}"
    assert {row.conditions["source_key"] for row in rows()} <= set(keys)


def test_the_benchmark_has_a_line_for_each_row() -> None:
    lines = benchmark.table()
    assert len(lines) == len(rows()) + 1
    assert sum(line[0].endswith(" *") for line in lines) == sum(row.fitted for row in rows())


def test_windows_share_blocks_by_groups() -> None:
    """Gemma 3 27B: 52 layers with windows and 10 without make 7 groups of 10 [llm-d-planner]."""
    answer = fitted("gemma-3-27b", utilization=0.95)
    assert answer.start.groups == (10, 7)
    assert answer.blocks_of_a_sequence == 512 + 6 * 513
    blocks = int(19.53 * 2**30 / answer.block_memory.m_as("byte"))  # of the log's 19.53 GiB
    assert blocks // 7 * 16 == pytest.approx(36_560, rel=1e-3)
    assert blocks / answer.blocks_of_a_sequence == pytest.approx(4.46, abs=0.01)


def test_blocks_beside_states_are_as_large_as_these() -> None:
    """Issue 24280 of vLLM names 672 tokens."""
    assert fitted("nemotron-nano-9b-v2").block == 672


def test_a_hybrid_has_the_blocks_of_its_log() -> None:
    """7162 blocks of 544 tokens in 44.59 GiB, and 14.77 sequences, of which each state is one."""
    answer = fitted("qwen-3-next-80b-a3b", device="h200", tensor=2, context=262_144)
    assert answer.block == 544
    assert answer.blocks_of_a_sequence == 482 + 3
    assert int(47_878_721_024 / answer.block_memory.m_as("byte")) == 7162
    assert "States are taken to be in 16 bits" in answer.explain().replace("\n  ", " ")


def test_versions_differ_by_their_samplers() -> None:
    old, new = (fitted("qwen-3-14b", software=f"vllm 0.{minor}") for minor in (16, 17))
    assert old.parts[1].memory.m_as("GiB") == pytest.approx(5.64, abs=0.02)
    assert new.parts[1].memory.m_as("GiB") == pytest.approx(2.23, abs=0.02)
    newest = fitted(software="vllm 0.31")
    assert newest.start.utilization == 0.92
    assert newest.parts[-1].name == "graphs"
    assert "No complete log of vLLM 0.31 was read" in newest.explain().replace("\n  ", " ")


def test_a_device_of_which_no_log_is_known_has_a_wider_error() -> None:
    logged = device_memory.fit("llama-3-8b", "l40s")
    other = device_memory.fit("llama-3-8b", "rtx-4090")
    stated = device_memory.fit("llama-3-8b", "rtx-4090", memory="23.52 GiB")
    assert other.error > logged.error == stated.error
    assert "no log of this one was read" in other.explain().replace("\n  ", " ")
    assert stated.visible.m_as("GiB") == pytest.approx(23.52)
    account = device_memory.fit("qwen-2.5-7b", "a10g", context=8192)
    assert str(account.visible) == "22 GiB"
    assert "Programs find 22 GiB of 24 GiB, by an account of it." in account.assumptions
    assert "Programs find 22 GiB of its memory" in lookup.shown("a10g").explain()
    assert 0.9 < engines.visible(hardware.get("rtx-4090")).m_as("GiB") / 24 < 1


def test_several_devices_without_a_switch_have_a_wider_error() -> None:
    alone, both = (device_memory.fit("llama-3-8b", "rtx-5090-2", tensor=n) for n in (1, 2))
    assert both.error.m_as("GiB") == pytest.approx(alone.error.m_as("GiB") + 0.55)
    (outside,) = (part for part in both.parts if part.name == "outside of torch")
    assert outside.memory.m_as("GiB") == 0.55
    assert "Without a switch between devices" in both.explain().replace("\n  ", " ")
    assert "Without a switch" not in fitted(tensor=2).explain()


def test_what_lies_outside_of_torch_is_by_how_a_model_is_cut() -> None:
    """vLLM takes most for slices that sum, less for stages, and least for a device alone."""
    with each_row() as row:
        for tensor, stages, gib in (
            *((1, 1, 0.25), (1, 2, 0.55), (1, 4, 0.55)),
            *((2, 1, 2.01 + 2 * 0.03), (4, 1, 2.01 + 4 * 0.03), (2, 2, 2.01 + 2 * 0.03)),
        ):
            with row(f"TP={tensor},PP={stages}"):
                answer = fitted(tensor=tensor, stages=stages)
                (outside,) = (part for part in answer.parts if part.name == "outside of torch")
                assert outside.memory.m_as("GiB") == pytest.approx(gib)


def test_the_size_of_a_step_is_that_of_the_server_for_the_device() -> None:
    small, large = (2048, 256), (8192, 1024)
    for device, memory, size in (
        *(("h100", None, large), ("l4", None, small), ("a100", None, small)),
        *(("rtx-4090", "96 GiB", large), ("mi300x", None, large)),
    ):
        answer = device_memory.fit("llama-3-2-1b", device, memory=memory)
        assert (answer.start.step_tokens, answer.start.step_sequences) == size, device


def test_sglang_takes_its_share_without_a_trial_step() -> None:
    answer = fitted(software="sglang", utilization=0.85)
    assert [part.name for part in answer.parts] == ["weights"]
    assert answer.block == 1
    assert "takes no trial step" in answer.explain().replace("\n  ", " ")


# --- refusals ---


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"software": "tgi"}, "there is no software 'tgi'; there are vllm, "),
        ({"utilization": 1.2}, "utilization must be above 0 and at most 1; got 1.2"),
        ({"tensor": 3}, "3"),
        ({"context": 200_000}, "context must be at most 131072, which Llama 3.1 8B reads"),
        ({"model": "vit-l-16"}, "writes no tokens: engines that serve text cannot run it"),
        ({"kv": "abacus"}, "kv: "),
        ({"memory": 3}, 'memory needs a unit, as in "512 MiB"; got 3'),
    ],
)
def test_mistakes_are_one_sentence(asked: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        fitted(**({"context": 8192} | asked if asked.get("model") != "vit-l-16" else asked))
    assert sentence in str(refusal.value)


# --- what does not fit ---


def lacks(**asked: object) -> Lacks:
    lack = fitted(**asked).lacks  # type: ignore[arg-type]
    assert lack is not None
    return lack


def test_what_does_not_fit_is_an_answer_with_its_parts() -> None:
    answer = fitted("llama-3-70b")
    assert not answer.fits
    assert answer.lacks is not None
    parts = sum(part.memory.m_as("GiB") for part in answer.parts)
    needed = 8192 * 2 * 80 * 8 * 128 * 2 / 2**30
    missing = answer.lacks.missing.m_as("GiB")
    assert missing == pytest.approx(parts + needed - 0.9 * 79.19)
    assert "context 8192 does not fit, each lacks 64.84 GiB" in answer.answer
    assert (answer.status, fitted("llama-3-8b").status) == (1, 0)


@pytest.mark.parametrize(
    "asked",
    [
        {"software": "vllm 0.19"},
        {"software": "sglang"},
        {"software": "llama.cpp"},
        {"software": "none"},
        {"software": "vllm 0.19", "model": "llama-3-8b", "utilization": 0.2},  # it lacks 1 GiB
    ],
)
def test_no_amount_of_memory_is_below_nothing(asked: dict[str, Any]) -> None:
    """A room that all but caches exceeds is said, and by how much; nothing is left of them."""
    answer = device_memory.fit(
        **{"model": "llama-3-70b", "device": "h100", "context": 8192} | asked
    )
    parts = sum(part.memory.m_as("GiB") for part in answer.parts)
    room = answer.visible.m_as("GiB") * answer.start.utilization / answer.start.of_the_rest
    assert answer.over is not None
    assert answer.over.m_as("GiB") == pytest.approx(parts - room)
    for door in (answer.text(), answer.explain(), answer.html()):
        assert not re.search(r"[-\N{MINUS SIGN}][\d.]+ ?(Gi?|Mi?|Ki?)?B\b", door)
    assert re.search(rf"more than its room +{re.escape(str(answer.over))}", answer.explain())
    assert re.search(r"keys and values +none", answer.explain())
    facts = json.loads(answer.json())
    assert facts["caches"]["value"] == 0 < facts["over"]["value"]


def test_what_may_fit_after_all_is_no_memory_below_nothing() -> None:
    """The least room that leaves nothing: its doubt says what lacks, and what it is off by."""
    whole = fitted("llama-3-8b", context=16)
    taken = whole.visible * whole.start.utilization - whole.caches
    share = (taken / whole.visible).m_as("") - 0.001
    answer = fitted("llama-3-8b", context=16, utilization=share)
    assert answer.over is not None
    assert f"all else takes {answer.over} ± {answer.error} more than its room" in answer.doubt
    assert "may fit after all" in answer.doubt


@pytest.mark.parametrize(
    ("asked", "ways"),
    [
        ({"model": "llama-3-70b"}, [{"weights": "int4"}, {"tensor": 2}]),
        ({"model": "llama-3-8b", "device": "rtx-4060-ti"}, [{"weights": "fp8"}, {"tensor": 2}]),
    ],
)
def test_every_way_to_fit_holds_what_it_says(
    asked: dict[str, object], ways: list[dict[str, object]]
) -> None:
    offered = lacks(**asked).ways
    assert [way.settings for way in offered] == ways
    for way in offered:
        tried = fitted(**{**asked, **way.settings})  # type: ignore[arg-type]
        assert tried.fits, way.told
        assert f"{tried.sequences:.2f} sequences" in way.told


@pytest.mark.parametrize(
    "change",
    [
        {"sequences": 16},
        {"batched_tokens": 128},  # fewer than the sequences of a step
        {"sequences": 16, "batched_tokens": 512, "utilization": 0.95},
        {"tensor": 2, "kv": "fp8"},
        {"weights": "fp8", "context": 4096},
    ],
)
def test_a_way_to_fit_is_tried_as_fit_takes_it(change: dict[str, object]) -> None:
    tried, asked = device_memory._with(fitted(), change), fitted(**change)
    memories = [(part.name, part.memory.m_as("GiB")) for part in asked.parts]
    assert [(part.name, part.memory.m_as("GiB")) for part in tried.parts] == memories
    assert (tried.tokens, tried.largest_batch) == (asked.tokens, asked.largest_batch)


def test_where_the_context_is_what_lacks_the_longest_that_fits_is_told() -> None:
    [context] = [way.settings["context"] for way in lacks(context=131_072, device="l4").ways[:1]]
    assert isinstance(context, int)
    assert fitted(device="l4", context=context).fits
    assert not fitted(device="l4", context=context + 16).fits


def test_a_model_that_nothing_holds() -> None:
    shape = models.from_shape(
        80, 65536, 512, kv_heads=64, feed_forward_width=262144, vocabulary=128000, context=8192
    )
    answer = device_memory.fit(shape, "t4")
    assert answer.lacks is not None
    assert not answer.lacks.ways


# --- programs without rules ---


def test_a_program_without_rules_has_its_share_for_weights_and_caches() -> None:
    answer = fitted(software="gpt-fast", kv="fp8")
    assert answer.room.m_as("GiB") == pytest.approx(0.9 * 80)
    assert [part.name for part in answer.parts] == ["weights"]
    assert "nothing else is counted" in answer.text().replace("\n  ", " ")


@pytest.mark.parametrize("tensor", [1, 2])
def test_a_share_of_what_is_free_is_taken_after_all_else(tensor: int) -> None:
    asked = {"model": "llama-3-70b", "software": "tensorrt-llm", "tensor": tensor}
    whole, half = (fitted(**asked, weights="fp8", utilization=share) for share in (None, 0.45))
    free = whole.visible - sum((part.memory for part in whole.parts), quantity(0, "GiB"))
    assert whole.caches.m_as("GiB") == pytest.approx(0.9 * free.m_as("GiB"))
    assert half.caches.m_as("GiB") == pytest.approx(0.45 * free.m_as("GiB"))
    assert whole.room < whole.visible


def test_what_such_a_program_lacks_is_enough() -> None:
    asked = {"model": "llama-3-70b", "software": "tensorrt-llm"}
    missing = lacks(**asked).missing
    visible = fitted(**asked).visible
    assert fitted(**asked, memory=visible + missing * 1.001).fits
    assert not fitted(**asked, memory=visible + missing * 0.999).fits


def test_without_software_all_of_the_memory_holds_bytes_alone() -> None:
    answer = fitted("llama-3-8b", software="none")
    assert answer.largest_batch == int((80 * 2**30 - 2 * 8_030_261_248) / (2**17 * 8192))
    latents = fitted("deepseek-v3", device="h200", software="none", tensor=8, weights="fp8")
    one = (models.get("deepseek-v3").kv_latent + 64) * 61 * 2 * 8192 / 8
    assert latents.start.taken(8192) == pytest.approx(one)
    assert fitted("deepseek-v3", device="h200", tensor=8).start.taken(8192) == 8 * one


def test_a_version_before_the_first_is_counted_as_that() -> None:
    answer = fitted(software="vllm 0.6")
    assert answer.tokens == fitted(software="vllm 0.10").tokens
    assert "it is taken to be as in vLLM 0.10" in answer.text().replace("\n  ", " ")


# --- the command ---


def test_a_configuration_of_ones_own(written: Written, command: Command) -> None:
    configs = json.loads((Path(__file__).parent / "configs.json").read_text(encoding="utf-8"))
    path = written(json.dumps(configs["qwen-3-30b-a3b"]), "config.json")
    asked = "h100 --software 'vllm 0.19' --context 8192 --weights bf16"
    facts = command.facts("fit", str(path), *shlex.split(asked))
    assert facts["tokens"] == fitted("qwen-3-30b-a3b").tokens


def test_the_command(command: Command) -> None:
    line = "fit llama-3.1-8b h100 --software vllm --tensor 2 --utilization 0.95 --context 8192"
    printed = command.prints(line)
    assert "on 2 NVIDIA H100 SXM5 80 GB by vLLM 0.24" in printed
    assert "outside of torch" in printed
    facts = command.facts(*line.split())
    assert facts["tokens"] == fitted(software="vllm 0.24", tensor=2, utilization=0.95).tokens
    assert [part["name"] for part in facts["parts"]] == [
        "weights",
        "largest step",
        "outside of torch",
        "graphs",
    ]
    facts = json.loads(
        command.prints("fit llama-3-70b h100 --software 'vllm 0.19' --json", status=1)
    )
    assert facts["fits"] is False
    assert len(facts["parts"]) == 3
    assert facts["ways"][-1]["settings"] == {"tensor": 2}


def test_a_part_says_its_kind_its_source_and_its_note() -> None:
    """A note follows in the same sentence, so that its first letter alone is small."""
    outside = device_memory.fit("llama-3-8b", "dgx-h100", "vllm 0.19", tensor=2).parts[2]
    assert outside.how.startswith(
        "with buffers of links, estimate [llm-d-planner-logs]: buffers of NCCL and of the engine's"
    )


def test_eager_leaves_what_graphs_would_take() -> None:
    usual, eager = (
        device_memory.fit("llama-3-8b", "h100", "vllm 0.24", eager=each) for each in (False, True)
    )
    graphs = next(part.memory for part in usual.parts if part.name == "graphs")
    assert "graphs" not in [part.name for part in eager.parts]
    assert (eager.caches - usual.caches).m_as("GiB") == pytest.approx(graphs.m_as("GiB"))
    assert eager.tokens > usual.tokens


def test_a_sequence_of_a_hybrid_takes_something_fixed_and_something_a_token() -> None:
    """Count by hand 12 layers of 2 heads of 256 in BF16, and 36 states of 32 by 128 by 128."""
    taken = device_memory.fit(
        "qwen-3-next-80b-a3b", "dgx-h100", "vllm 0.19", tensor=2
    ).start.of_a_sequence()
    assert taken is not None
    fixed, each = taken
    assert each == 12 * 2 * 256 * 2 * 2 / 2
    states, convolutions = 32 * 128 * 128, 3 * (2 * 16 * 128 + 32 * 128)
    assert fixed == 36 * (states + convolutions) * 2 / 2
    plain = device_memory.fit("llama-3-8b", "h100", "vllm 0.19")
    assert plain.start.of_a_sequence() == (0, 32 * 2 * 8 * 128 * 2)
    assert not plain.a_sequence


def test_what_settings_change_is_what_a_start_with_them_holds() -> None:
    """Each as `fit` answers with it: a narrower cache, no graphs, a smaller step or a larger."""
    asked = ("llama-3-1-8b", "h100", "vllm")
    made = device_memory.fit(*asked)
    assert [[*change.settings] for change in made.changes] == [
        ["kv"],
        ["eager"],
        ["batched_tokens"],
    ]
    for change in made.changes:
        tokens = device_memory.fit(*asked, **change.settings).tokens  # type: ignore[arg-type]
        assert f": {tokens} tokens of cache, " in change.told
    assert "What settings change:\n- kv fp8: " in made.explain()
    assert device_memory.fit(*asked, eager=True, kv="fp8", batched_tokens=2048).changes[0].settings
    assert not device_memory.fit("llama-3-1-70b", "h100").changes  # which does not fit


def test_a_program_without_rules_holds_a_head_of_keys_on_every_slice() -> None:
    """Four heads on eight slices are held twice; stages share out the layers."""
    head = 2 * 128 * 48 * 2 * 8192
    for tensor, stages, heads in ((1, 1, 4), (4, 1, 1), (8, 1, 1), (2, 2, 2 / 2)):
        answer = fitted(
            "qwen-3-30b-a3b", device="dgx-h100", software="gpt-fast", tensor=tensor, stages=stages
        )
        assert answer.start.rules is None
        assert answer.start.taken(8192) == pytest.approx(heads * head)


def test_a_block_of_the_widest_tokens_holds_the_largest_state() -> None:
    start = replace(fitted("nemotron-nano-9b-v2").start)
    states = Pages("linear", 2, 50e3), Pages("state", 2, 90e3)
    vars(start)["pages"] = (Pages("full", 4, 1000.0), Pages("window", 4, 500.0), *states)
    assert start.block == 16 * 6  # 90 tokens, in blocks of 16
