"""Tests that what devices share out adds up to the whole, and that limits lie where they should."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calc import device_memory, models
from calc.steps import expectation, timing
from calc.steps.expectation import Account
from calc.steps.job import Batch, Job, Layout, Tokens

LLAMA = models.get("llama-3-70b")
TWO_BYTES = 2


@pytest.mark.parametrize("layers", range(1, 41))
def test_stages_are_at_most_what_layers_and_both_ends_fill(layers: int) -> None:
    """Filled in order, as many in each as the fullest has layers; an end may stand alone."""
    counts: Any = np.arange(1, layers + 5)
    filled = [len(range(0, layers + 2, -(-layers // stages))) for stages in counts.tolist()]
    legal = Layout(pipeline=counts).legal(replace(LLAMA, layers=layers))
    assert legal.tolist() == (filled >= counts).tolist()


def of_slices(key: str, slices: int) -> tuple[float, float]:
    """Return what the slices of a server hold together, and what a model has, in parameters."""
    model = models.get(key)
    made = device_memory.fit(model, "gb200-nvl72", "vllm", tensor=slices, weights="bf16")
    each = made.parts[0].memory.m_as("byte") / TWO_BYTES
    rotary = model.rotary_width or model.head_width
    return slices * (each - model.context * rotary), model.parameters.m_as("param")


@pytest.mark.parametrize("key", ["llama-3-70b", "qwen3-32b"])
@pytest.mark.parametrize("slices", [2, 8, 16, 32])
def test_slices_beyond_the_heads_of_keys_hold_their_matrices_again(key: str, slices: int) -> None:
    held, whole = of_slices(key, slices)
    model = models.get(key)
    caching = 2 * model.width * model.kv_heads * model.head_width * model.layers
    again = max(slices / model.kv_heads, 1) - 1
    assert held == pytest.approx(whole + again * caching, rel=1e-9)


@pytest.mark.parametrize("slices", [2, 4, 8, 16, 32])
def test_each_kind_of_heads_is_held_again_beyond_its_own_number(slices: int) -> None:
    """39 layers of MiMo have windows and 8 heads of keys, 9 have 4; 47 choose among 256 experts."""
    held, whole = of_slices("mimo-v2-flash", slices)
    of_a_head = 4096 * (192 + 128)
    again = 9 * max(slices - 4, 0) + 39 * max(slices - 8, 0)
    routers = (slices - 1) * 47 * 4096 * 256
    assert held == pytest.approx(whole + again * of_a_head + routers, rel=1e-9)


LATENTS = 61 * 7168 * (1536 + 512 + 64) + 58 * 7168 * 256  # and routers, of DeepSeek-V3


@pytest.mark.parametrize("slices", [2, 8, 16])
def test_latents_and_routers_are_held_by_every_slice(slices: int) -> None:
    """Servers and training hold them again alike, and training nothing else."""
    held, whole = of_slices("deepseek-v3", slices)
    assert held == pytest.approx(whole + (slices - 1) * LATENTS, rel=1e-9)
    model = models.get("deepseek-v3")
    trained = Layout(tensor=slices).parameters(model).m_as("param")
    assert slices * trained == pytest.approx(whole + (slices - 1) * LATENTS, rel=1e-12)


@pytest.mark.parametrize("slices", [1, 2, 8, 16, 64])
def test_training_cuts_keys_and_values_into_as_many_slices_as_the_rest(slices: int) -> None:
    trained = Layout(tensor=np.array([slices])).parameters(LLAMA).m_as("param")
    assert slices * trained == pytest.approx(LLAMA.parameters.m_as("param"), rel=1e-12)


def sizes(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """Return what is noted from now on: collectives of each part, their number and their bytes."""
    messages: dict[str, tuple[float, float]] = {}
    add = Account.add_messages

    def noted(
        self: Account, part: str, count: Any, operation: str, size: Any, *more: Any, **named: Any
    ) -> None:
        messages[part] = float(count), float(size)
        add(self, part, count, operation, size, *more, **named)

    monkeypatch.setattr(Account, "add_messages", noted)
    return messages


LOADS = [
    Tokens(writing=32, context=1000),
    Tokens(reading=4096, prompt=1024),
    Tokens(writing=32, context=1000, reading=4096, prompt=1024),
    Tokens(writing=32, context=1000, drafted=3),
]


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("data", [1, 2])
def test_slices_sum_the_vectors_of_all_tokens_of_a_copy(
    load: Tokens, data: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = sizes(monkeypatch)
    job = Job.of(LLAMA, "dgx-h100", Layout(tensor=4, data=data))
    expectation.serving_pass(job, load)
    tokens = (load.writing * (1 + load.drafted) + load.reading) / data
    assert messages["tensor"] == (2 * LLAMA.layers, tokens * LLAMA.width * TWO_BYTES)


@pytest.mark.parametrize("load", LOADS)
def test_the_bound_of_these_sums_grows_with_each_kind_of_token(load: Tokens) -> None:
    """Against the time of one token: every token's vector passes once more."""
    job = Job.of(LLAMA, "dgx-h100", Layout(tensor=4))
    one = timing._messages(job, Tokens(writing=1, context=1000))
    tokens = load.writing * (1 + load.drafted) + load.reading
    assert timing._messages(job, load).m_as("s") == pytest.approx(tokens * one.m_as("s"))


@pytest.mark.parametrize("context", [1, 2])
def test_slices_sum_the_vectors_of_each_microbatch_there_and_back(
    context: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = sizes(monkeypatch)
    layout = Layout(tensor=4, pipeline=2, data=2, context=context, microbatches=8)
    job = Job.of(LLAMA, "dgx-h100", layout)
    expectation.training_step(job, Batch(4096, sequences=3), bubble=0.0)
    blocks = 2 * LLAMA.layers / 2  # of a stage
    vectors = 3 * 4096 / context * LLAMA.width * TWO_BYTES
    assert messages["tensor"] == (2 * blocks * 8, vectors)
