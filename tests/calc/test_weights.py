"""Weights by group of matrices: against published checkpoints, by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from calc import InputError, inference, kernels, machines, models, plan, quantity, transformer
from calc.catalog.models.weights import Weights
from calc.core.citations import bibliography
from calc.steps.job import Formats, Job, Layout, Tokens
from tests.rows import each_row

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


# Checkpoints of other hands: bytes of all their files, as hubs list them, but for the tokenizer.
CHECKPOINTS = (
    ("llama-3-8b", "fp8", 9.08e9),  # neuralmagic/Meta-Llama-3-8B-Instruct-FP8
    ("llama-3-1-8b", "awq", 5.73e9),  # hugging-quants/…-AWQ-INT4
    ("llama-3-1-8b", "gptq", 5.73e9),  # hugging-quants/…-GPTQ-INT4
    ("llama-3-1-70b", "awq", 39.77e9),
    ("mistral-small-3", "q4_k_m", 14.33e9),  # a file of llama.cpp
    ("qwen-3-4b", "q4_k_m", 2.50e9),  # whose output is its embedding
    ("gemma-4-e4b", "q4_k_m", 5.319465e9),  # with a vector of each token in each layer
    ("gemma-4-e4b", "q8_0", 8.015415e9),
)


@pytest.mark.parametrize(("key", "name", "published"), CHECKPOINTS)
def test_a_name_is_what_checkpoints_of_it_hold(key: str, name: str, published: float) -> None:
    assert bytes_of(models.get(key), name) == pytest.approx(published, rel=4e-3)


# Bits of a weight of Llama 3.1 8B, by the table in llama.cpp's tools/quantize/README.md.
FILES = {
    "Q2_K": 3.1593,
    "Q3_K_S": 3.6429,
    "Q3_K_M": 3.9960,
    "Q3_K_L": 4.2979,
    "IQ4_XS": 4.4597,
    "IQ4_NL": 4.6818,
    "Q4_K_S": 4.6672,
    "Q4_K_M": 4.8944,
    "Q5_K_S": 5.5704,
    "Q5_K_M": 5.7036,
    "Q6_K": 6.5633,
    "Q8_0": 8.5008,
}


def test_files_of_llama_cpp_have_the_bits_that_it_prints() -> None:
    with each_row() as row:
        model = models.get("llama-3-1-8b")
        for name, bits in FILES.items():
            with row(name):
                counted = 8 * bytes_of(model, name) / model.parameters.m_as("param")
                assert counted == pytest.approx(bits, rel=2e-5)


def test_the_file_of_experts_in_mxfp4_is_what_llama_cpp_loads_of_gpt_oss() -> None:
    """ggml-org's gpt-oss-20b-mxfp4.gguf: llama.cpp prints 11.27 GiB of it."""
    model = models.get("gpt-oss-20b")
    assert bytes_of(model, "mxfp4_moe") == pytest.approx(11.27 * 2**30, rel=1e-3)
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200}
    by_llama, by_vllm = (
        plan(model, "rtx-4090", software=name, **asked) for name in ("llama.cpp", "vllm")
    )
    assert by_llama.model_memory.m_as("byte") == bytes_of(model, "mxfp4_moe")
    assert by_vllm.model_memory.m_as("byte") == pytest.approx(13_761_264_768, rel=1e-3)


def test_a_file_of_a_small_model_to_a_thousandth() -> None:
    """llama-bench prints 729.75 MiB of Llama 3.2 1B in Q4_0, whose output is its embedding."""
    assert bytes_of(models.get("llama-3-2-1b"), "q4_0") == pytest.approx(765_198_336, rel=3e-3)


def test_scales_are_counted_by_hand() -> None:
    """Blocks of Llama 3 8B hold 6 979 321 856 weights in matrices; all else has two bytes."""
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    llama = models.get("llama-3-8b")
    others = 2 * (llama.parameters.m_as("param") - linear)
    for name, bits in (
        ("awq", 4 + (16 + 4) / 128),
        ("w4a16", 4 + 16 / 128),
        ("nvfp4", 4 + 8 / 16),
        ("mxfp4", 4 + 8 / 32),
        ("fp8-block", 8 + 32 / 128**2),
        ("nf4", 4 + 8 / 64 + 32 / (64 * 256)),
        ("fp8", 8),
        ("w8a8", 8),
    ):
        assert bytes_of(llama, name) == pytest.approx(linear * bits / 8 + others, rel=1e-12), name


def test_a_release_of_its_own_wins_over_the_rule() -> None:
    assert bytes_of(GPT, "mxfp4") == bytes_of(GPT) == published("gpt-oss-120b")
    assert bytes_of(DEEPSEEK, "fp8") == bytes_of(DEEPSEEK)
    large = models.get("llama-3-405b")
    ffn, attention = 3 * 16384 * 53248, 2 * 16384 * (16384 + 1024)
    table = 2 * 128256 * 16384 + 253 * 16384
    counted = 124 * ffn + 2 * (2 * ffn + 126 * attention + table)
    assert bytes_of(large, "fp8") == pytest.approx(counted, rel=1e-5)
    assert Weights.of(large, "fp8").as_released
    assert not Weights.of(large, "awq").as_released
    made = plan(GPT, "h100", prompt=10, generated=10, weights="mxfp4")
    assert "as released, in MXFP4 (experts)" in made.weights_told


def test_groups_have_the_words_that_people_expect() -> None:
    llama = models.get("llama-3-8b")
    table = 128256 * 4096
    assert bytes_of(llama, "embedding=2 byte,output=3 byte,others=1 byte") == (
        llama.parameters.m_as("param") + 3 * table
    )
    assert bytes_of(GPT, "router=2 byte,others=1 byte") == (
        GPT.parameters.m_as("param") + 36 * 128 * 2880
    )
    tied = models.get("qwen-3-4b")
    once = tied.parameters.m_as("param") + 151936 * 2560
    for group in ("embedding", "output"):
        assert bytes_of(tied, f"{group}=2 byte,others=1 byte") == once
    with pytest.raises(InputError, match="embedding and output of Qwen3 4B are one matrix"):
        bytes_of(tied, "embedding=int8,output=bf16,others=bf16")


def test_gpt_oss_to_the_byte() -> None:
    """The model card prints 60.8 and 12.8 GiB, and the headers of its files have every weight."""
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
    bits = 16 * bytes_of(model) / bytes_of(model, "bf16")
    least, most = {"fp8": (8, 8.1), "fp4": (4.25, 5.3), "": (16, 16)}[model.released.products]
    if model.key in ("kimi-k2-5", "kimi-k3", "deepseek-v4-flash", "deepseek-v4-pro"):
        least, most = 4.25, 4.7  # experts in four bits, products in sixteen or in eight
    assert least <= bits <= most


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
        assert bytes_of(GPT, alike) == bytes_of(GPT, "1 byte") == GPT.parameters.magnitude
        assert inference.weights_read(GPT, 8, alike) == inference.weights_read(GPT, 8, "1 byte")


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
        ("h100", {"weights": "w8a8"}, "INT8", "int8"),
        ("h100", {"weights": "fp8-block"}, "FP8 in blocks", "fp8"),
        ("h100", {"weights": "awq"}, "AWQ", "bf16"),
        ("h100", {"weights": "int4"}, "W4A16", "bf16"),
        ("h100", {"weights": "bnb-4bit"}, "NF4", "bf16"),
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
    blocks = "" if kept == "BF16" else " (feed-forward, attention) and BF16 (others)"
    assert (str(made.kept), made.job.formats.dtype) == (f"{kept}{blocks}", dtype)


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
        lambda formats: inference.expert_decode(GPT, h200, 1000, 64, 8, Formats("bf16", formats)),
        lambda formats: inference.mixed_step(
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
        lambda model: inference.expert_decode(model, h100, 2000, 256, 72),
        lambda model: inference.mixed_step(Job.of(model, h100, Layout(tensor=16)), 8, 1000, 0),
    ):
        assert step("deepseek-v3").lower == step(DEEPSEEK).lower


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        ("experts=mxfp4", "weights: others are missing, .* add others=bf16"),
        ("exprts=mxfp4,others=bf16", "must be one of experts, feed-forward, .*; got 'exprts'"),
        ("mxint8", "no checkpoint is released in 'mxint8'; .*a size, as in \"6 bit\""),
        ("q4_k_xl", "there is no format 'q4_k_xl'; did you mean"),
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
        == "INT4 by 32 (experts) and BF16 (others)"
    )
    assert str(Weights.of(GPT, 8)) == "8 bit"
