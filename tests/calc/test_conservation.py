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


@pytest.mark.parametrize("key", ["llama-3-70b", "qwen3-32b"])
@pytest.mark.parametrize("slices", [2, 8, 16, 32])
def test_slices_beyond_the_heads_of_keys_hold_their_matrices_again(key: str, slices: int) -> None:
    model = models.get(key)
    made = device_memory.fit(model, "gb200-nvl72", "vllm", tensor=slices)
    positions = TWO_BYTES * model.context * model.head_width  # a table that each device has
    held = slices * (made.parts[0].memory.m_as("byte") - positions)
    caching = 2 * model.width * model.kv_heads * model.head_width * model.layers
    again = max(slices / model.kv_heads, 1) - 1
    whole = model.parameters.m_as("param") + again * caching
    assert held == pytest.approx(TWO_BYTES * whole, rel=1e-9)


def sizes(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """Return what is noted from now on: collectives of each part, their number and their bytes."""
    found: dict[str, tuple[float, float]] = {}
    add = Account.add_messages

    def noted(
        self: Account, part: str, count: Any, operation: str, size: Any, *more: Any, **named: Any
    ) -> None:
        found[part] = float(count), float(size)
        add(self, part, count, operation, size, *more, **named)

    monkeypatch.setattr(Account, "add_messages", noted)
    return found


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
    found = sizes(monkeypatch)
    job = Job.of(LLAMA, "dgx-h100", Layout(tensor=4, data=data))
    expectation.serving_pass(job, load)
    tokens = (load.writing * (1 + load.drafted) + load.reading) / data
    assert found["tensor"] == (2 * LLAMA.layers, tokens * LLAMA.width * TWO_BYTES)


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
    found = sizes(monkeypatch)
    layout = Layout(tensor=4, pipeline=2, data=2, context=context, microbatches=8)
    job = Job.of(LLAMA, "dgx-h100", layout)
    expectation.training_step(job, Batch(4096, sequences=3), bubble=0.0)
    blocks = 2 * LLAMA.layers / 2  # of a stage
    vectors = 3 * 4096 / context * LLAMA.width * TWO_BYTES
    assert found["tensor"] == (2 * blocks * 8, vectors)
