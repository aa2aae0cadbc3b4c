"""Fine-tuning: counts against published ones, memory against what others measured."""

from __future__ import annotations

from typing import Any

import pytest

from calc import Batch, InputError, finetuning, models, quantity, training
from calc.published import finetuning_rows as published
from calc.steps.finetuning import Adapters
from calc.steps.job import ALL


def test_adapters_are_counted_as_peft_counts_them() -> None:
    # `num_trainable_params` of PEFT's own runs: rank 32 and 64, queries and values
    for rank, count in ((32, 9_175_040), (64, 18_350_080)):
        adapters = finetuning.adapters("llama-3-2-3b", rank, ["query", "value"])
        assert adapters.m_as("param") == count


def test_nf4_with_scales_of_scales_takes_what_its_authors_say() -> None:
    assert finetuning.nf4_size().m_as("bit/param") == pytest.approx(4 + 0.127, abs=5e-4)


def test_recipes_of_the_optimizers() -> None:
    # Megatron's table says 18 bytes for BF16 weights and FP32 gradients
    sizes = {name: training.recipe(name).bytes_per_parameter.magnitude for name in training.RECIPES}
    assert sizes["adam-mixed-fp32-gradients"] == 18
    assert sizes["adam-bf16"] == 8
    assert sizes["adam-8bit"] == 2 + 2 + 2 * (1 + 4 / 256)
    assert sizes["momentum-mixed"] == 12
    assert sizes["adam-mixed-remainders"] == 14


def test_muon_keeps_adam_for_embedding_and_output_alone() -> None:
    model = models.get("llama-3-8b")
    outside = 2 * 128256 * 4096 + 65 * 4096  # embedding, output, norms
    assert finetuning.states(model, "muon-mixed")["variance"].m_as("byte") == 4 * outside


def test_adafactor_keeps_rows_and_columns() -> None:
    states = finetuning.states("llama-3-8b", "adafactor-mixed")
    layer = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    kept = 32 * layer + 2 * (128256 + 4096) + 65 * 4096
    assert states["variance"].m_as("byte") == 4 * kept
    assert "momentum" not in states


def test_the_peak_is_the_largest_of_its_three_moments() -> None:
    anew = finetuning.memory("llama-3-8b", ALL, recipe="adam-bf16", gradients="anew")
    held = finetuning.memory("llama-3-8b", ALL, recipe="adam-bf16")
    state = anew.weights + anew.optimizer
    assert anew.total == state + anew.gradients + anew.layer
    assert held.total == state + held.gradients + held.activations + held.loss


def test_what_waits_on_the_host_leaves_the_device() -> None:
    adapters = Adapters("qlora")
    here = finetuning.memory("llama-3-70b", adapters)
    away = finetuning.memory("llama-3-70b", adapters, host=["weights", "optimizer", "activations"])
    streamed = finetuning.layers_memory("llama-3-70b", "qlora")
    assert (here.weights - away.weights).m_as("GB") == pytest.approx(
        streamed.m_as("GB") * 78 / 80, rel=1e-12
    )
    assert away.optimizer.magnitude == away.activations.magnitude == 0


def test_the_longest_context_fits_and_one_token_more_does_not() -> None:
    longest = int(finetuning.longest_context("llama-3-8b", "rtx-4090").m_as(""))
    room = quantity("24 GiB") - quantity("1 GB")
    fits, too_long = (Batch(longest + more, recomputation="full") for more in (0, 1))
    assert finetuning.memory("llama-3-8b", batch=fits).total <= room
    assert finetuning.memory("llama-3-8b", batch=too_long).total > room


def test_65b_fits_the_card_that_its_authors_tuned_it_on() -> None:
    batch = Batch(512, recomputation="full")
    held = finetuning.memory("llama-65b", Adapters("qlora", 64), batch, host=["optimizer"])
    held.check("l40s")  # 48 GB too
    with pytest.raises(InputError, match="smaller weights"):
        held.check("rtx-4090")


def test_memory_as_measured() -> None:
    errors = {run.id: abs(run.memory_error.m_as("")) for run in published.runs()}
    assert all(error < 0.25 for error in errors.values()), errors
    assert sum(errors.values()) / len(errors) < 0.15


def test_throughput_as_measured() -> None:
    errors = {
        run.id: run.throughput_error.m_as("")
        for run in published.runs()
        if run.throughput_error is not None
    }
    assert len(errors) == 9
    adapters = {"torchtune-lora", "torchtune-qlora"}
    others = errors.keys() - adapters - {"torchtune-packed"}
    assert all(abs(errors[name]) < 0.06 for name in others)
    # Products of adapters, and the unpacking of codes, are in no time.
    assert all(0.12 < errors[name] < 0.18 for name in adapters)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trained": "lora"}, "trained must be calc.finetuning.Adapters"),
        ({"loss": "none"}, "loss must be one of in place, whole, chunked, fused"),
        ({"host": ["states"]}, "host must be one of weights"),
        ({"host": "weights"}, "host"),
        ({"trained": Adapters(targets=["router"])}, "target must be one of query"),
        ({"gradients": "none"}, "must be one of accumulated"),
        ({"batch": 2048}, r"load must be calc.Batch\(…\)"),
        ({"batch": Batch(float("nan"))}, "context must be a number of tokens"),
        ({"batch": Batch(-1)}, "context must be a number of tokens"),
        ({"batch": Batch("2 GB")}, "context must be a number of tokens"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        finetuning.memory("llama-3-8b", **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "adapters"}, "must be one of lora, qlora"),
        ({"rank": 0}, "rank of adapters must be a whole number from 1"),
    ],
)
def test_adapters_are_checked_when_they_are_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Adapters(**options)


def test_a_model_without_a_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="no vocabulary"):
        finetuning.memory("vit-l-16", batch=Batch(64))
