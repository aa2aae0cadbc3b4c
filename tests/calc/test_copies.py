"""Copies, pickles and threads: an answer depends on what is said, never on which object says it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import calc
from calc import hardware, machines, models, software
from calc.catalog import engines
from tests.draws import draws

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
}
ENTRIES = (
    *(hardware.get("h100"), hardware.get("apple-m3-ultra"), machines.get("dgx-h100")),
    *(models.get("gpt-oss-20b"), models.get("mobilenet-v2"), models.get("whisper-large-v3")),
    *(software.get("vllm 0.19"), software.get("llama-cpp"), engines.get("vllm")),
    *(calc.apis.get("novita-llama-3-1-8b"), calc.runs.get("llama-3-1-8b")),
)


def planned(model: Any = "llama-3-8b", device: Any = "h100") -> str:
    return str(calc.plan(model, device, prompt=100, generated=10))


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copied_entry_is_the_entry(copied: Callable[[Any], Any]) -> None:
    for entry in ENTRIES:
        other = copied(entry)
        assert {entry: True}.get(other), entry.key


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copied_entry_answers_as_the_entry_does(copied: Callable[[Any], Any]) -> None:
    asked = planned()
    assert planned(copied(models.get("llama-3-8b"))) == asked
    for made in (hardware.get("h100"), machines.get("dgx-h100")):
        assert planned(device=copied(made)) == asked


def test_an_entry_read_again_is_in_the_same_machine_and_another_by_its_key_is_not() -> None:
    entry = hardware.get("h100")
    again = replace(entry, name=entry.name)  # another object that says the same
    assert again is not entry
    assert machines.of(again) is machines.of(entry)
    assert planned(device=again) == planned()
    other = replace(entry, year=entry.year + 1)
    assert machines.of(other).domain == 1


@pytest.mark.slow
def test_threads_whose_first_call_is_a_plan_answer_as_one_does() -> None:
    program = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import calc
together = Barrier(64)
def ask(_):
    together.wait()
    return str(calc.plan("llama-3-8b", "h100", prompt=100, generated=10))
with ThreadPoolExecutor(64) as threads:
    [answer] = {*threads.map(ask, range(64))}
print(answer, end="")
"""
    for _ in range(draws(20)):
        asked = [sys.executable, "-c", program]
        process = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert process.stdout == planned()


def test_values_survive_copies_with_what_they_answer() -> None:
    machine = machines.get("dgx-h100")
    job = calc.Job.of("llama-3-8b", machine, calc.Layout(tensor=2), calc.Formats("fp8", "fp8"))
    tokens, batch = calc.Tokens(writing=8, context=1000), calc.Batch(8192)
    training = calc.Job.of("llama-3-8b", machine, trained=calc.finetuning.Adapters())
    plan = calc.plan("llama-3-8b", "h100", batch=8, prompt=1000, generated=200)
    memory = calc.device_memory.fit("llama-3-8b", "h100", context=8192)
    for value in (machine.memory_reached, machine.device.tdp, job, training, tokens, batch):
        for copied in COPIES.values():
            other = copied(value)
            assert other == value
            assert getattr(other, "provenance", None) == getattr(value, "provenance", None)
    for copied in COPIES.values():
        asked = calc.step(copied(job), copied(tokens))
        assert asked == calc.step(job, tokens) == copied(asked)
        assert str(copied(memory)) == str(memory)
        assert copied(plan.throughput) == plan.throughput
        assert copied(plan.job) == plan.job
        assert calc.step(copied(training), batch) == calc.step(training, batch)
