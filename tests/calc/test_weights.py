"""Weights by group of matrices: against published checkpoints, by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from calc import (
    InputError,
    experts,
    inference,
    kernels,
    machines,
    models,
    plan,
    quantity,
    serving,
    transformer,
)
from calc.catalog.models.weights import Weights
from calc.core.citations import bibliography
from calc.steps.job import Formats, Job, Layout, Tokens

GPT, DEEPSEEK = models.get("gpt-oss-120b"), models.get("deepseek-v3")
TRANSFORMERS = [
    each for each in map(models.get, models.names()) if isinstance(each, models.Transformer)
]
RELEASED = [each for each in TRANSFORMERS if each.released is not None]
EXPERT = 3 * 2880 * 2880  # weights of one of gpt-oss


def bytes_of(model: Any, formats: str = "released") -> float:
    return float(inference.weight_memory(model, formats).m_as("byte"))


def scales(model: models.Transformer) -> float:
    """Bytes of the FP32 scales of blocks of 128 by 128, which the formats in the data leave out."""
    return sum(
        4 * -(-each.inputs // 128) * -(-each.outputs // 128) * each.copies * each.layers
        for each in model.matrices
        if each.group != "others"
    )


def published(key: str) -> float:
    return float(models.get(key).checkpoint.m_as("byte"))


def test_gpt_oss_to_the_byte() -> None:
    """Its model card prints 60.8 and 12.8 GiB, and the headers of its files have every weight."""
    for key, printed in (("gpt-oss-120b", 60.8), ("gpt-oss-20b", 12.8)):
        assert bytes_of(key) == published(key)
        assert round(published(key) / 2**30, 1) == printed


def test_kimi_k2_with_its_scales() -> None:
    """Within a hundred-thousandth; K2 Thinking has its scales in the 4.5 bit of a weight."""
    kimi = models.get("kimi-k2")
    assert bytes_of(kimi) + scales(kimi) == pytest.approx(published("kimi-k2"), rel=1e-5)
    assert bytes_of(kimi) == pytest.approx(published("kimi-k2"), rel=3e-4)
    assert bytes_of("kimi-k2-5") == pytest.approx(published("kimi-k2-5"), rel=1e-5)


def test_deepseek_with_its_scales_and_the_module_that_predicts_a_second_token() -> None:
    """The module is a layer of experts, tables of its own, and a matrix that joins two vectors."""
    one = models.from_shape(
        1,
        7168,
        128,
        **{
            field: getattr(DEEPSEEK, field)
            for field in (
                *("context", "head_width", "vocabulary", "experts", "active_experts"),
                *("shared_experts", "expert_width", "query_latent", "kv_latent"),
                *("rotary_width", "value_width", "attention", "biases"),
            )
        },
    )
    eight_bit = "attention=fp8,feed-forward=fp8,experts=fp8,others=bf16"
    module = bytes_of(one, eight_bit) + scales(one) + 2 * 2 * 7168 * 7168
    counted = bytes_of(DEEPSEEK) + scales(DEEPSEEK) + module
    assert counted == pytest.approx(published("deepseek-v3"), rel=1e-6)


@pytest.mark.parametrize("model", RELEASED, ids=[each.key for each in RELEASED])
def test_each_release_names_its_source_and_formats_that_there_are(
    model: models.Transformer,
) -> None:
    assert model.released is not None
    assert model.released.provenance is not None
    assert model.released.provenance.source in bibliography()
    assert bytes_of(model) == pytest.approx(bytes_of(model, "bf16"), rel=0.8)
    assert model.released.products in ("", "fp8", "fp4")


def test_a_step_of_one_token_by_hand() -> None:
    """Four experts of each layer in 4.25 bit; attention, router and output in two bytes."""
    attention = 2880 * 64 * (64 + 8 + 8) + 64 * 64 * 2880
    others = 36 * (attention + 2880 * 128) + 2880 * 201_088
    read = inference.weights_read(GPT, 1, "released").m_as("byte")
    assert read == 36 * 4 * EXPERT * 4.25 / 8 + 2 * others
    asked: dict[str, Any] = {"prompt": 1, "generated": 1}
    made = plan("gpt-oss-120b", "dgx-spark", **asked)
    assert made.time_per_token.lower.m_as("s") == pytest.approx(read / 273e9, rel=1e-3)
    assert 1 / made.time_per_token.lower.m_as("s") == pytest.approx(55, abs=0.5)


def test_kernels_read_what_the_bounds_do() -> None:
    launched = kernels.step(
        Job.of(GPT, "dgx-h100", formats=Formats(weights="released")), Tokens(64, 1000)
    )
    read = sum(
        each.launches * each.traffic.m_as("byte") for each in launched if each.kind == "gemm"
    )
    assert read == pytest.approx(inference.weights_read(GPT, 64, "released").m_as("byte"))


def test_one_format_for_all_is_what_it_was() -> None:
    for alike in ("others=int8", "experts=int8,attention=int8,others=int8"):
        assert bytes_of(GPT, alike) == bytes_of(GPT, "int8")
        assert inference.weights_read(GPT, 8, alike) == inference.weights_read(GPT, 8, "int8")


def test_a_plan_takes_the_release_where_nothing_is_said() -> None:
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200, "devices": 8}
    plain, named = (
        plan("deepseek-v3", "dgx-h200", **asked, **more) for more in ({}, {"weights": "Released"})
    )
    assert plain.model_memory == named.model_memory
    assert plain.dtype == named.dtype == "fp8"
    assert (
        "with weights as released, in FP8 E4M3 (experts, feed-forward, attention) and BF16"
        in (plain.assumptions[0])
    )
    assert plan("deepseek-v3", "dgx-h200", **asked, weights="fp8").dtype == "fp8"
    assert plan("deepseek-v3", "tpu-v5p", **asked).dtype == "bf16"  # which has no FP8
    assert plan("gpt-oss-120b", "b200", **asked).dtype == "fp4"
    assert plan("gpt-oss-120b", "h100", **asked).dtype == "bf16"  # which has no FP4
    unsaid = plan("llama-2-7b", "h100", **(asked | {"devices": 1}))
    assert unsaid.model_memory == quantity(2 * unsaid.model.parameters.magnitude, "byte")
    assert "with weights in BF16 and keys" in unsaid.assumptions[0]


@pytest.mark.parametrize(
    ("device", "asked", "kept", "dtype"),
    [
        ("h100", {}, "BF16", "bf16"),
        ("h100", {"weights": "fp8"}, "FP8 E4M3", "fp8"),
        ("h100", {"dtype": "fp8"}, "FP8 E4M3", "fp8"),
        ("h100", {"weights": "bf16", "dtype": "fp8"}, "BF16", "fp8"),
        ("h100", {"weights": "fp8", "dtype": "bf16"}, "FP8 E4M3", "bf16"),
        ("h100", {"weights": "int8"}, "INT8", "bf16"),
        ("h100", {"dtype": "int8"}, "INT8", "int8"),
        ("h100", {"weights": "nvfp4"}, "NVFP4", "bf16"),  # which has no FP4
        ("b200", {"weights": "NVFP4"}, "NVFP4", "fp4"),
        ("b200", {"dtype": "fp4"}, "NVFP4", "fp4"),
        ("b200", {"dtype": "NVFP4"}, "NVFP4", "fp4"),
        ("b200", {"dtype": "mxfp4"}, "MXFP4", "fp4"),
        ("h100", {"dtype": "FP8_E5M2"}, "FP8 E5M2", "fp8"),
        ("b200", {"weights": "mxfp4"}, "MXFP4", "bf16"),
    ],
)
def test_the_format_that_is_left_out_is_what_engines_choose(
    device: str, asked: dict[str, Any], kept: str, dtype: str
) -> None:
    made = plan("llama-3-8b", device, prompt=100, generated=10, **asked)
    assert (str(made.kept), made.job.formats.dtype) == (kept, dtype)


@pytest.mark.parametrize(
    ("device", "spellings"),
    [
        ("h100", ("fp8", "FP8", "float8", "fp8-e4m3", "e4m3")),
        ("b200", ("fp4", "NVFP4", "nvfp4")),
        ("h100", ("bf16", "BF16", "bfloat16")),
    ],
)
def test_a_format_of_products_is_the_same_in_any_spelling(
    device: str, spellings: tuple[str, ...]
) -> None:
    asked: dict[str, Any] = {"batch": 8, "prompt": 100, "generated": 10, "software": "vllm"}
    first, *others = (plan("llama-3-8b", device, **asked, dtype=dtype) for dtype in spellings)
    assert first.expected is not None
    assert {str(other.time_per_token.lower) for other in others} == {
        str(first.time_per_token.lower)
    }
    assert {other.answer for other in others} == {first.answer}


def test_weights_that_are_released_in_few_bits_stay_so_for_other_products() -> None:
    made = plan("gpt-oss-120b", "b200", prompt=100, generated=10, dtype="fp8")
    assert str(made.kept) == "MXFP4 (experts) and BF16 (others)"


def test_other_steps_take_groups_too() -> None:
    h200 = machines.get("dgx-h200")
    for step in (
        lambda formats: experts.decode(GPT, h200, 1000, 64, 8, Formats("bf16", formats)),
        lambda formats: serving.mixed_step(
            Job(GPT, h200, formats=Formats(weights=formats)), 64, 1000, 0
        ),
        lambda formats: inference.decode(GPT, h200, 1000, 64, weight_size=formats),
    ):
        released, named, wide = map(
            step, ("released", "experts=mxfp4,others=bf16", "experts=bf16,others=bf16")
        )
        assert released.traffic == named.traffic < wide.traffic
        assert released.expected == named.expected < wide.expected


def test_a_model_is_taken_by_name() -> None:
    h100 = machines.get("dgx-h100")
    assert transformer.kv_cache("gpt-oss-120b", 4096) == transformer.kv_cache(GPT, 4096)
    assert transformer.decode_matmuls("Llama 3 8B", 10) == transformer.decode_matmuls(
        models.get("llama-3-8b"), 10
    )
    for step in (
        lambda model: experts.decode(model, h100, 2000, 256, 72),
        lambda model: serving.mixed_step(Job.of(model, h100, Layout(tensor=16)), 8, 1000, 0),
    ):
        assert step("deepseek-v3").lower == step(DEEPSEEK).lower


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        ("experts=mxfp4", "weights: others are missing, .* add others=bf16"),
        ("exprts=mxfp4,others=bf16", "must be one of experts, feed-forward, .*; got 'exprts'"),
        ("experts=mxfp4,,others=bf16", "groups have a format each, as in experts=mxfp4"),
        ("experts=mxfp4,experts=int4,others=bf16", "groups have a format each"),
        ("=mxfp4", "groups have a format each"),
        ("feed-forward=int8,others=bf16", "gpt-oss-120b has no matrices of feed-forward"),
        ("experts=mxfp5,others=bf16", "weights: there is no format 'mxfp5'; did you mean"),
        ("experts=0 bit,others=bf16", "weights must be the size of an element"),
    ],
)
def test_what_is_refused(formats: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(GPT, "b200", prompt=10, generated=10, weights=formats)


def test_a_release_that_the_data_do_not_say_is_refused() -> None:
    with pytest.raises(InputError, match=r"do not say in which format Llama 2 7B was released"):
        plan("llama-2-7b", "h100", prompt=10, generated=10, weights="released")
    with pytest.raises(InputError, match=r"^weight_size: the data do not say"):
        inference.weight_memory("llama-2-7b", "released")
    with pytest.raises(InputError, match=r"released must be a Release of calc\.models; got 'bf16'"):
        models.from_shape(
            1, 64, 1, context=10, vocabulary=10, feed_forward_width=64, released="bf16"
        )


def test_groups_are_printed_by_format() -> None:
    assert str(Weights.of(DEEPSEEK, "released")) == (
        "FP8 E4M3 (experts, feed-forward, attention) and BF16 (others)"
    )
    assert (
        str(Weights.of(models.get("kimi-k2-5"), "released"))
        == "4.5 bit (experts) and BF16 (others)"
    )
    assert str(Weights.of(GPT, 8)) == "8 bit"
