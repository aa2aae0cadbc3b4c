"""Models: their parameters against published counts, and what a mistake is told."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from calc import InputError, models, plan, quantity, source, transformer
from calc.catalog.models import ids, model_table
from calc.catalog.models.config import known
from calc.catalog.models.weights import Weights
from calc.core.citations import bibliography
from calc.core.names import squeezed
from calc.core.records import Datum
from tests.calc.command import Written
from tests.calc.test_second_entries import ENTRIES
from tests.rows import each_row, for_each

TRANSFORMERS = [name for name in models.names() if isinstance(models.get(name), models.Transformer)]


@for_each(models.names())
def test_parameters_are_the_published_ones(name: str) -> None:
    model = models.get(name)
    counted, published = model.parameters.m_as("param"), model.total.m_as("param")
    assert abs(counted - published) < (ENTRIES["rounded_to"].get(name, 1) + 1) / 2, (
        f"{name} counts {counted:.0f} parameters, and its total is {published:.0f}: where that is"
        " rounded, say to what under [rounded_to] in tests/second_entries.toml"
    )


def test_normalisations_are_counted_one_by_one() -> None:
    """Totals are rounded too coarsely to hold them; by hand from widths, layers and heads."""
    with each_row() as row:
        for name, numbers in {
            "gpt-2": 2 * (2 * 12 + 1) * 768,
            "deepseek-v3": (2 * 61 + 1) * 7168 + 61 * (1536 + 512),
            "qwen-3-0-6b": (2 * 28 + 1) * 1024 + 28 * (128 + 128),
            "qwen-3-next-80b-a3b": (2 * 48 + 1) * 2048 + 12 * (256 + 256) + 36 * 128,
            "minimax-m2": (2 * 62 + 1) * 3072 + 62 * (48 + 8) * 128,
            "gemma-4-26b-a4b": (8 * 30 + 1) * 2816 + 25 * 2 * 256 + 5 * 2 * 512,
            "granite-4-h-micro": (2 * 40 + 1) * 2048 + 36 * 4096,
            "jamba-v0-1": (2 * 32 + 1) * 4096 + 28 * (256 + 2 * 16),
            "kimi-k3": (2 * 93 + 1) * 7168 + 24 * (1536 + 512) + 69 * 128,
        }.items():
            with row(name):
                assert models.get(name).parts["norms"].m_as("param") == numbers


@pytest.mark.parametrize("name", ENTRIES["names"])
def test_parameters_round_to_the_name(name: str) -> None:
    printed, step = ENTRIES["names"][name]
    assert abs(models.get(name).parameters.m_as("param") - printed) <= step / 2


@for_each([models.get(name) for name in TRANSFORMERS])
def test_layers_are_of_the_published_kinds(model: models.Transformer) -> None:
    kinds = ENTRIES["layers"].get(model.key, {"full": model.layers})
    assert {kind: model.layers_with(kind) for kind in kinds} == kinds


def test_published_active_parameters() -> None:
    """The embedding is in those of gpt-oss, once: 5.1 and 3.6 billion of its model card. Others say
    theirs in whole billions, Kimi K2 says 32. Of some they are whole without the tables alone.
    """
    tables = "embedding", "output"
    for name, left_out, printed, step in (
        ("gpt-oss-120b", ("embedding",), 5.1, 0.1),
        ("gpt-oss-20b", ("embedding",), 3.6, 0.1),
        ("mixtral-8x7b", (), 12.9, 0.1),
        ("deepseek-v3", ("embedding",), 36.6, 0.1),
        ("qwen-3-235b-a22b", (), 22, 1),
        ("llama-4-scout", (), 17, 1),
        ("llama-4-maverick", (), 17, 1),
        ("kimi-k2", (), 32, 2),
        ("granite-4-h-small", (), 9, 1),
        ("jamba-v0-1", (), 12, 1),
        ("glm-4-5", tables, 32, 1),
        ("minimax-m2", tables, 10, 1),
        ("nemotron-3-nano-30b-a3b", tables, 3, 1),
        ("qwen-3-next-80b-a3b", tables, 3, 1),
        ("qwen-3-5-35b-a3b", (), 3, 1),
        ("qwen-3-5-122b-a10b", (), 10, 1),
        ("qwen-3-5-397b-a17b", (), 17, 1),
        ("glm-5", tables, 40, 1),
        ("gemma-4-26b-a4b", (), 3.8, 0.1),
        ("kimi-k3", ("embedding",), 104, 1),
        ("mimo-v2-flash", (), 15, 1),
        ("minimax-m3", tables, 23, 2),
        ("nemotron-3-super-120b-a12b", tables, 12, 1),
        ("nemotron-3-puzzle-75b-a9b", (), 9.3, 0.2),
        ("inkling-small", (), 12, 1),
        ("nemotron-3-ultra-550b-a55b", ("embedding",), 55, 1),
    ):
        model = models.get(name)
        active = model.active_parameters.m_as("param")
        active -= sum(model.parts[part].m_as("param") for part in left_out)
        assert abs(active / 1e9 - printed) < step / 2, name


def test_published_parts() -> None:
    """Gemma's, in millions: 1 180 of embeddings and 26 047 besides; Qwen's: 70.0 without them."""
    gemma = models.get("gemma-2-27b")
    embedding = gemma.parts["embedding"].m_as("param")
    assert round(embedding / 1e6) == 1180
    assert round((gemma.parameters.m_as("param") - embedding) / 1e6) == 26_047
    qwen = models.get("qwen-2-5-72b")
    rest = qwen.parameters - qwen.parts["embedding"] - qwen.parts["output"]
    assert round(rest.m_as("param") / 1e9, 1) == 70.2  # the model card prints 70.0


@for_each(TRANSFORMERS)
def test_counts_agree_with_each_other(name: str) -> None:
    model = models.get(name)
    assert isinstance(model, models.Transformer)
    assert sum(model.parts.values()) == model.parameters
    assert model.multiplied_parameters < model.active_parameters <= model.parameters
    assert (model.active_parameters < model.parameters) == (model.experts is not None)


@for_each(models.names())
def test_each_number_names_its_source(name: str) -> None:
    model = models.get(name)
    numbers = [getattr(model, field.name) for field in fields(model)]
    read = [each for each in numbers if isinstance(each, Datum)]
    assert len(read) >= (5 if name in TRANSFORMERS else 4)
    for number in read:
        assert number.provenance is not None
        assert number.provenance.source in bibliography()


def test_models_are_found_by_any_spelling() -> None:
    assert models.QWEN_2_5_72B is models.get("qwen-2.5-72b")
    assert models.get("Llama3-70B") is models.get("llama 3 70b")
    assert models.get("openai/gpt-oss-120b") is models.GPT_OSS_120B
    assert models.get("DeepSeek-R1-0528") is models.DEEPSEEK_V3
    assert models.get("llama3.1-405b") is models.LLAMA_3_405B
    for key in models.names():  # without its organisation too, as people type it
        for name in models.also(key):
            assert models.key_of(name.rpartition("/")[2]) == key
    assert "LLAMA_3_8B" in dir(models)
    with pytest.raises(InputError, match=r"there is no model 'gpt-5'; .*`calc list models` prints"):
        models.get("gpt-5")
    with pytest.raises(InputError, match=r"no model 'llama-3.1-90b'; did you mean llama-3-1-70b, "):
        models.get("llama-3.1-90b")
    with pytest.raises(AttributeError, match="there is no model 'GPT_5'"):
        _ = models.GPT_5


def test_the_suffix_of_an_id_is_the_format_of_its_weights() -> None:
    """AWQ's linear layers take 4.15625 bits, by a scale and a zero for each 128 weights."""
    model = models.get("Qwen/Qwen3-14B-AWQ")
    assert model is models.get("Qwen/Qwen3-14B-AWQ")
    assert model.parameters == models.get("qwen-3-14b").parameters
    made = plan("Qwen/Qwen3-14B-AWQ", "a100", prompt=10, generated=10)
    tables = 2 * 151936 * 5120
    linear = model.parameters.m_as("param") - tables
    assert made.kept.memory.m_as("byte") == pytest.approx(linear * 4.15625 / 8 + 2 * tables, 1e-3)
    assert models.get("meta-llama/Meta-Llama-3.1-8B-Instruct") is models.get("llama-3-1-8b")
    eight = models.get("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8").released
    assert (eight.formats["attention"], eight.products, eight.by_name) == ("int8", "int8", True)
    listed = models.get("Qwen/Qwen3-32B-FP8")  # among the other names of its model too
    assert (listed.key, listed.released.formats["attention"]) == ("qwen-3-32b", "fp8")
    early = models.get("nvidia/DeepSeek-R1-FP4").released  # as NVIDIA's first ones are called
    assert (early.formats["experts"], early.products) == ("nvfp4", "fp4")
    with pytest.raises(InputError, match="has files of several formats: take qwen-3-8b"):
        models.get("unsloth/Qwen3-8B-GGUF")


def test_every_listed_id_of_a_format_is_in_that_format() -> None:
    with each_row() as row:
        for key in models.names():
            for name in models.also(key):
                if (form := ids.read(name).form) in ("fp8", "nvfp4", "awq", "gptq"):
                    with row(name):
                        model = models.get(name)
                        held = model.released.formats
                        assert model.key == key
                        assert form in held.values() or key == "llama-3-405b"  # rows of scales


def test_a_name_of_another_model_says_whose_shape_it_takes() -> None:
    with each_row() as row:
        for name, called in (
            ("DeepSeek-R1", "DeepSeek-R1, in the shape of DeepSeek-V3"),
            ("deepseek-ai/DeepSeek-V3.1", "DeepSeek-V3.1, in the shape of DeepSeek-V3"),
            ("llama-3.3-70b", "Llama 3.3 70B, in the shape of Llama 3.1 70B"),
            ("GLM-5.3", "GLM-5.3, in the shape of GLM-5.2"),
            ("qwen3.8-27b", "Qwen3.8-27B, in the shape of Qwen3.5 27B"),
            ("QwQ-32B", "QwQ-32B, in the shape of Qwen 2.5 32B"),
            ("deepseek-v3", "DeepSeek-V3"),
            ("deepseek-ai/DeepSeek-V3", "DeepSeek-V3"),
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama 3.1 8B"),
        ):
            with row(name):
                assert models.called(name, models.get(name)) == called
    printed = str(plan("DeepSeek-R1", "dgx-h200", devices=8, prompt=100, generated=10))
    assert printed.startswith("DeepSeek-R1, in the shape of DeepSeek-V3 on 8 ")


def test_no_name_stands_for_two_models() -> None:
    tables = tomllib.loads(model_table.FILE.read_text(encoding="utf-8"))
    meant: dict[str, str] = {}
    for key, table in tables.items():
        for name in (key, table["name"], *table.get("also", ())):
            first = meant.setdefault(squeezed(name), key)
            assert first == key, f"{name!r} stands for {first} and for {key}"
        for other in table.get("also", ()):
            said = f"{key}: its `also` has {other!r}, which its key or its name is already"
            assert squeezed(other) not in map(squeezed, (key, table["name"])), said


def test_the_source_of_a_number_is_told() -> None:
    assert source(models.get("gemma-2-27b").feed_forward_width).startswith(
        "feed forward width of Gemma 2 27B: datasheet, Google (2024)"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("layers =", "depth =", "unknown field depth; known are "),
        ('norm = "layer"', 'norm = "batch"', "norm must be one of rms, layer; got 'batch'"),
        ('biases = ["qkv"', 'biases = ["q"', "biases must be one of qkv, .*; got 'q'"),
        ("layers = 96\n", "", "missing 1 required keyword-only argument: 'layers'"),
        (
            "kv_heads = 96",
            "kv_heads = 36",
            "its 36 heads of keys and values must divide its 96 query heads$",
        ),
        ("width = 12288", 'width = "wide"', "width: value must be a number; got 'wide'"),
    ],
)
def test_a_wrong_field_is_named(
    old: str, new: str, message: str, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = model_table.FILE.read_text(encoding="utf-8").split("[gpt-3-175b]")[1].split("\n[")[0]
    text = f"[gpt-3-175b]{table}"
    path = written(text.replace(f"\n{old}", f"\n{new}", 1), "models.toml")
    monkeypatch.setattr(model_table, "FILE", path)
    model_table._tables.cache_clear()
    model_table._get.cache_clear()
    try:
        with pytest.raises(InputError, match=message):
            models.get("gpt-3-175b")
    finally:
        model_table._tables.cache_clear()
        model_table._get.cache_clear()


# --- config.json ---


def config(family: str, counts: str, **more: Any) -> dict[str, Any]:
    names = (
        "num_hidden_layers hidden_size num_attention_heads num_key_value_heads intermediate_size"
        " vocab_size max_position_embeddings"
    )
    numbers = map(int, counts.split())
    return {"model_type": family, **dict(zip(names.split(), numbers, strict=True)), **more}


# Counts of checkpoints, from the same places as those of models.toml.
CONFIGS = {
    "llama 3.1 8B": (config("llama", "32 4096 32 8 14336 128256 131072"), 8_030_261_248),
    "llama 3.2 1B": (
        config("llama", "16 2048 32 8 8192 128256 131072", tie_word_embeddings=True, head_dim=64),
        1_235_814_400,
    ),
    "mistral 7B": (config("mistral", "32 4096 32 8 14336 32000 32768"), 7_241_732_096),
    "qwen2 0.5B": (
        config("qwen2", "24 896 14 2 4864 151936 131072", tie_word_embeddings=True),
        494_032_768,
    ),
    "qwen2 7B": (config("qwen2", "28 3584 28 4 18944 152064 131072"), 7_615_616_512),
    "gemma 2B": (config("gemma", "18 2048 8 1 16384 256000 8192", head_dim=256), 2_506_172_416),
    "gemma 7B": (config("gemma", "28 3072 16 16 24576 256000 8192", head_dim=256), 8_537_680_896),
    "gemma2 9B": (config("gemma2", "42 3584 16 8 14336 256000 8192", head_dim=256), 9_241_705_984),
    "mixtral 8x7B": (
        config(
            "mixtral", "32 4096 32 8 14336 32000 32768", num_local_experts=8, num_experts_per_tok=2
        ),
        46_702_792_704,
    ),
}


@pytest.fixture
def read(written: Written) -> Callable[[Any], models.Transformer]:
    def read(content: Any) -> models.Transformer:
        path = written(content if isinstance(content, str) else json.dumps(content), "config.json")
        return models.load(path)

    return read


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_gives_the_counted_parameters(
    name: str, read: Callable[[Any], models.Transformer]
) -> None:
    configuration, counted = CONFIGS[name]
    assert read(configuration).parameters.m_as("param") == counted


# Configurations of released models, from the sources of their tables in models.toml, by their keys
# there; what changes no count is left out.
RELEASED = json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", RELEASED)
def test_a_released_config_gives_the_model(
    key: str, read: Callable[[Any], models.Transformer]
) -> None:
    """The parameters, operations and caches of a config are those of our own table."""
    released, ours = read(RELEASED[key]), models.get(key)
    assert released.parts == ours.parts
    assert released.active_parameters == ours.active_parameters
    longest = min(ours.context, released.context)
    for length in (100, longest):
        assert transformer.causal_flops(released, length) == transformer.causal_flops(ours, length)
        assert transformer.kv_cache(released, length) == transformer.kv_cache(ours, length)
        assert transformer.cache_read(released, length) == transformer.cache_read(ours, length)


# Configurations of families that no table of ours has, with the parameters of their checkpoints as
# their pages count them.
ERNIE = config("ernie4_5_moe", "28 2560 20 4 12288 103424 131072", tie_word_embeddings=True)
ERNIE |= {"moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2, "use_bias": False}
ERNIE |= {"moe_intermediate_size": 1536, "moe_layer_start_index": 1, "moe_layer_end_index": -1}
LATENT: dict[str, Any] = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
LATENT |= {"q_lora_rank": None, "first_k_dense_replace": 1}
V2_LITE = config("deepseek_v2", "27 2048 16 16 10944 102400 163840", topk_method="greedy") | LATENT
V2_LITE |= {"n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2}
V2_LITE |= {"moe_intermediate_size": 1408}
STEP = config("step3p7", "45 4096 64 8 11264 128896 65536", head_dim=128, num_experts=288)
STEP |= {"num_experts_per_tok": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280}
STEP |= {"n_shared_experts": 1, "first_k_dense_replace": 3, "use_moe_router_bias": True}
KIMI = config("kimi_linear", "27 2304 32 32 9216 163840 1048576", head_dim=72) | LATENT
KIMI |= {"num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1}
KIMI |= {"moe_intermediate_size": 1024, "moe_layer_freq": 1}
KIMI["linear_attn_config"] = {
    "num_heads": 32,
    "head_dim": 128,
    "short_conv_kernel_size": 4,
    "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
}
MISTRAL_4 = config("mistral4", "36 4096 32 32 12288 131072 1048576") | LATENT
MISTRAL_4 |= {"q_lora_rank": 1024, "kv_lora_rank": 256, "qk_nope_head_dim": 64}
MISTRAL_4 |= {"n_routed_experts": 128, "num_experts_per_tok": 4, "n_shared_experts": 1}
MISTRAL_4 |= {"moe_intermediate_size": 2048, "first_k_dense_replace": 0}
GLM_LITE = config("glm4_moe_lite", "47 2048 20 20 10240 154880 202752") | LATENT
GLM_LITE |= {"q_lora_rank": 768, "qk_nope_head_dim": 192, "v_head_dim": 256}
GLM_LITE |= {"n_routed_experts": 64, "num_experts_per_tok": 4, "n_shared_experts": 1}
GLM_LITE |= {"moe_intermediate_size": 1536, "topk_method": "noaux_tc"}
QWEN_MOE = config("qwen2_moe", "24 2048 16 16 5632 151936 8192", num_experts=60)
QWEN_MOE |= {"num_experts_per_tok": 4, "moe_intermediate_size": 1408}
QWEN_MOE |= {"shared_expert_intermediate_size": 5632}
OLMOE = config("olmoe", "16 2048 16 16 1024 50304 4096", num_experts=64, num_experts_per_tok=8)
DEEPSEEK = config("deepseek", "28 2048 16 16 10944 102400 4096", n_routed_experts=64)
DEEPSEEK |= {"num_experts_per_tok": 6, "n_shared_experts": 2, "moe_intermediate_size": 1408}
DEEPSEEK |= {"first_k_dense_replace": 1, "moe_layer_freq": 1}
ADDED: dict[str, tuple[dict[str, Any], float, float]] = {  # in billions, and how far off at most
    "ernie": (ERNIE, 21.825437888, 1e-5),
    "deepseek v2 lite": (V2_LITE, 15.706484224, 1e-5),
    "seed": (
        config("seed_oss", "64 5120 80 8 27648 155136 524288", head_dim=128, attention_bias=True),
        36.151104512,
        0,
    ),
    "step": (STEP, 196, 0.5),
    "kimi linear": (KIMI, 49.122681728, 0),
    "qwen 2.5 vl": (
        config("qwen2_5_vl", "28 3584 28 4 18944 152064 128000", use_sliding_window=False),
        7.615616512,
        0,
    ),
    "deepseek v4 by its own programs": (
        RELEASED["deepseek-v4-flash"] | {"model_type": "deepseek_ref"},
        284.33,
        0.01,
    ),
    "mimo v2.5": (RELEASED["mimo-v2-flash"] | {"model_type": "mimo_v2"}, 309, 0.5),
    "mistral 4": (MISTRAL_4, 118.98, 0.03),
    "glm 4.7 flash": (GLM_LITE, 29.94, 0.01),
    "smollm 3": (config("smollm3", "36 2048 16 4 11008 128256 65536"), 3.075098624, 0),
    "qwen 1.5 moe": (QWEN_MOE, 14.315784192, 0),
    "olmoe": (OLMOE, 6.919161856, 0),
    "deepseek moe": (DEEPSEEK, 16.375728128, 0),
    "glm 4": (
        config("glm4", "61 6144 48 2 23040 151552 32768", head_dim=128, attention_bias=False),
        32.566081536,
        0,
    ),
    "ernie 4.5": (
        config("ernie4_5", "18 1024 16 2 3072 103424 131072", head_dim=128)
        | {"use_bias": False, "tie_word_embeddings": True},
        0.360748032,
        0,
    ),
    "exaone 4": (
        config("exaone4", "30 2048 32 8 4096 102400 65536", tie_word_embeddings=True),
        1.279391488,
        0,
    ),
    "starcoder": (
        {"model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48}
        | {"n_inner": 24576, "n_positions": 8192, "vocab_size": 49152},
        15.517456384,
        0,
    ),
    "phi 3.5 vision": (config("phi3_v", "32 3072 32 32 8192 32064 131072"), 3.821079552, 0),
    "internlm 2": (
        config("internlm2", "32 4096 32 8 14336 92544 32768", bias=False),
        7.737708544,
        0,
    ),
    "minicpm": (config("minicpm", "40 2304 36 36 5760 122753 4096"), 2.724880896, 0),
    "aya 23": (config("cohere", "32 4096 32 8 14336 256000 8192"), 8.028033024, 0),
    "command r7b": (
        config("cohere2", "32 4096 32 8 14336 256000 132096", sliding_window=4096),
        8.028033024,
        0,
    ),
    "starcoder 2": (
        config("starcoder2", "30 3072 24 2 12288 49152 16384", sliding_window=4096),
        3.030371328,
        0,
    ),
    "stablelm 2": (
        config("stablelm", "24 2048 32 32 5632 100352 4096", use_qkv_bias=True),
        1.644515328,
        0,
    ),
    "phi 2": (config("phi", "32 2560 32 32 10240 51200 2048"), 2.779683840, 0),
    "pythia": (config("gpt_neox", "16 2048 8 8 8192 50304 2048"), 1.011781632, 0),
    # 7.83 as its page counts it, with the layer and the matrix of its module for further tokens
    "mimo": (
        config("mimo", "36 4096 32 8 11008 151680 32768", head_dim=128, attention_bias=True),
        7.833409536 - (177.22 + 2 * 4096**2 / 1e6) / 1e3,
        1e-4,
    ),
}


@pytest.mark.parametrize("name", ADDED)
def test_a_config_of_another_family_gives_the_published_parameters(
    name: str, read: Callable[[Any], models.Transformer]
) -> None:
    configuration, billions, off = ADDED[name]
    assert read(configuration).parameters.m_as("param") / 1e9 == pytest.approx(billions, abs=off)


def blocks(*networks: float | None) -> list[dict[str, Any]]:
    """Blocks as a search of architectures leaves them, the second without attention."""
    return [
        {
            "attention": {"n_heads_in_group": None if index == 1 else 8, "no_op": index == 1},
            "ffn": {"ffn_mult": multiple, "no_op": multiple is None},
        }
        for index, multiple in enumerate(networks)
    ]


def test_blocks_that_differ(read: Callable[[Any], models.Transformer]) -> None:
    """Widths as DeciLM rounds them: 2/3 of the multiple, up to a multiple of 256."""
    said = {"model_type": "nemotron-nas", "hidden_size": 8192, "num_attention_heads": 64}
    said |= {"num_key_value_heads": None, "vocab_size": 128256, "max_position_embeddings": 131072}
    made = read(said | {"block_configs": blocks(2.625, 5.25, None)})
    attention, widths = 2 * (8192 * 8192 + 8192 * 1024), 14336 + 28672
    norms = (2 + 2 + 1) * 8192
    assert made.parameters.m_as("param") == (
        2 * 128256 * 8192 + 2 * attention + 3 * 8192 * widths + norms
    )
    assert "14336 to 28672 are counted as of their mean" in made.notes[0]
    linear = blocks(2.625)
    linear[0]["ffn"]["replace_with_linear"] = True
    with pytest.raises(InputError, match="replace_with_linear in its ffn, which is not read"):
        read(said | {"block_configs": linear})


def test_experts_that_differ_by_block(read: Callable[[Any], models.Transformer]) -> None:
    """Experts of 1 280 and 2 688, 4 and 22 of them: 13 of 1 984, which 8 slices divide."""
    few = {"block_type": "moe", "moe_intermediate_size": 1280, "num_experts_per_tok": 4}
    many = {"block_type": "moe", "moe_intermediate_size": 2688, "num_experts_per_tok": 22}
    said = RELEASED["nemotron-3-super-120b-a12b"] | {"model_type": "nemotron_h_puzzle"}
    said = {
        name: value for name, value in said.items() if name not in few and "pattern" not in name
    }
    said |= {"num_hidden_layers": None, "layers_block_type": ["mamba", "moe", "attention", "moe"]}
    blocks = [{"block_type": "mamba"}, few, {"block_type": "attention"}, many]
    made = read(said | {"block_configs": blocks})
    assert (made.expert_width, made.active_experts, made.width_multiple) == (1984, 13, 128)
    assert any("1280 to 2688 are counted as of their mean, 1984" in note for note in made.notes)
    for other, named in (({"n_routed_experts": 8}, "different n_routed_experts"), (0, "have moe_")):
        changed = few | (other if isinstance(other, dict) else {"moe_intermediate_size": other})
        with pytest.raises(InputError, match=f"block_configs .*{named}"):
            read(said | {"block_configs": [*blocks[:1], changed, *blocks[2:]]})


def test_encoders_of_images_are_counted(read: Callable[[Any], models.Transformer]) -> None:
    """Qwen2.5-VL 7B and Qwen3-VL 8B have as many as their pages count, less those of the text."""
    text = config("qwen2_5_vl", "28 3584 28 4 18944 152064 128000", use_sliding_window=False)
    seen = {"model_type": "qwen2_5_vl", "hidden_size": 1280, "in_chans": 3}
    assert read(text | {"vision_config": seen}).vision == 8_292_166_656 - 7_615_616_512
    text = config("qwen3_vl_text", "36 4096 32 8 12288 151936 262144", head_dim=128)
    newer = {"model_type": "qwen3_vl", "deepstack_visual_indexes": [8, 16, 24]}
    both = {"text_config": text, "vision_config": newer | {"out_hidden_size": 4096}}
    model = read(both)
    assert (model.vision, model.notes) == (8_767_123_696 - 8_190_735_360, ())
    assert read(both | {"vision_config": {"model_type": "own"}}).vision is None


def test_an_empty_list_of_positions_is_the_default(
    read: Callable[[Any], models.Transformer],
) -> None:
    """Every fourth layer of Llama 4 is without, where the list has no layer and where none is."""
    configuration = RELEASED["llama-4-scout"] | {"no_rope_layers": []}
    assert read(configuration).kinds == models.get("llama-4-scout").kinds


def test_a_family_that_is_known_and_not_counted_says_why(
    read: Callable[[Any], models.Transformer],
) -> None:
    with pytest.raises(InputError, match="got 'falcon_h1', and each of its layers has att") as no:
        read(config("falcon_h1", "44 3072 12 2 12288 130049 262144"))
    assert (no.value.argument, no.value.given) == ("model_type", "falcon_h1")


def test_a_config_of_each_family_is_held() -> None:
    """All families are held but gemma and GPT-2, which are counted ones, and other names."""
    inner = (
        each.get("thinker_config", each).get("text_config", each) for each in RELEASED.values()
    )
    held = {each.get("model_type") for each in inner}
    held |= {config["model_type"] for config in RELEASED.values()}
    held |= {configuration["model_type"] for configuration, *_ in ADDED.values()}
    others = {"qwen2_5_vl_text", "minimax_m3_vl", "nemotron-nas", "nemotron_h_puzzle"}
    assert {*known()["families"]} - held == {"gemma", "gpt2"} | others


def test_what_a_config_has_and_is_not_counted_is_noted(
    read: Callable[[Any], models.Transformer],
) -> None:
    notes = read(RELEASED["deepseek-v3"]).notes
    assert any("(num_nextn_predict_layers) is not counted" in each for each in notes)
    assert not any("quantization_config" in each for each in notes)  # it is read
    assert "(vision_config) is not counted" in read(RELEASED["gemma-3-27b"]).notes[0]
    strange = read(LLAMA | {"lora_everywhere": 3, "rope_theta": 5e5, "sinks": False})
    assert strange.notes == (
        "its configuration has what is unknown here, and not counted: lora_everywhere",
    )
    assert read(LLAMA | {"rope_theta": 5e5}).notes == ()


# Of blocks of Llama 3 8B: weights of attention and of the feed-forward network in a layer.
ATTENTION, NETWORK = 2 * 4096 * 4096 + 2 * 4096 * 1024, 3 * 4096 * 14336
GROUP = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}
PACKED = {"targets": ["Linear"], "weights": GROUP, "input_activations": None}
FLOAT = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
BLOCK = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}
IN_FP8 = {"num_bits": 8, "type": "float", "dynamic": False}
SEVERAL = {
    "quant_method": "modelopt",
    "quant_algo": "MIXED_PRECISION",
    "quantized_layers": {
        f"model.layers.{layer}.mlp.{name}_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16}
        for layer in range(32)
        for name in ("gate", "up", "down")
    }
    | {"model.layers.0.self_attn.o_proj": {"quant_algo": "FP8"}},
}
QUANTIZED: tuple[tuple[dict[str, Any], float, str], ...] = (  # bits that 16 are more, in all
    # networks in 4.5 bits, scales included, and one matrix of 16 million in 8
    (SEVERAL, 32 * NETWORK * (16 - 4.5) + 4096 * 4096 * 8, ""),
    (
        {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "float8_e4m3fn"},
        32 * (ATTENTION + NETWORK) * (8 - 32 / 128**2),
        "fp8",
    ),
    (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        32 * (ATTENTION + NETWORK) * (8 - 32 / 128**2),
        "fp8",
    ),
    (  # networks that ModelOpt has converted of a checkpoint in FP8, as in DeepSeek-V4
        {
            "quant_method": "fp8",
            "weight_block_size": [128, 128],
            "quant_algo": "MIXED_PRECISION",
            "ignore": ["*.attn.*", "head"],
            "quantized_layers": {
                f"layers.{layer}.ffn": {"quant_algo": "NVFP4", "group_size": 16}
                for layer in range(32)
            },
        },
        32 * (ATTENTION * (8 - 32 / 128**2) + NETWORK * (16 - 4.5)),
        "fp4",
    ),
    (
        {
            "quant_method": "fp8",
            "activation_scheme": "static",
            "modules_to_not_convert": [
                "lm_head",
                "model.layers.0.self_attn",
                "model.layers.31.mlp.up_proj",
            ],
        },
        (31 * ATTENTION + 32 * NETWORK - 4096 * 14336) * 8,
        "fp8",
    ),
    (
        {
            "quant_method": "fbgemm_fp8",
            "activation_scale_ub": 1200.0,
            "modules_to_not_convert": ["self_attn", "layers.0.mlp"],
        },
        31 * NETWORK * 8,
        "fp8",
    ),
    (
        {
            "quant_method": "awq",
            "bits": 4,
            "group_size": 128,
            "zero_point": True,
            "version": "gemm",
        },
        32 * (ATTENTION + NETWORK) * (12 - 20 / 128),
        "",
    ),
    (
        {"quant_method": "gptq", "bits": 8, "group_size": 32, "sym": True, "desc_act": False},
        32 * (ATTENTION + NETWORK) * (8 - 24 / 32),
        "",
    ),
    (
        {
            "quant_method": "gptq",
            "bits": 4,
            "group_size": 128,
            "dynamic": {r"-:.*layers\.0\..*": {}, r"+:.*down_proj": {"bits": 8, "group_size": 64}},
        },
        31 * ((ATTENTION + NETWORK * 2 / 3) * (12 - 20 / 128) + NETWORK / 3 * (8 - 24 / 64)),
        "",
    ),
    (
        {
            "quant_method": "auto-round",
            "bits": 4,
            "group_size": 128,
            "sym": True,
            "extra_config": {"model.layers.1.mlp.down_proj": {"bits": 16, "data_type": "fp"}},
        },
        (32 * (ATTENTION + NETWORK) - NETWORK / 3) * (12 - 20 / 128),
        "",
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "ignore": ["lm_head"],
            "config_groups": {"group_0": PACKED},
        },
        32 * (ATTENTION + NETWORK) * (12 - 16 / 128),
        "",
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "format": "nvfp4-pack-quantized",
            "ignore": ["re:.*lm_head", "re:.*self_attn.*"],
            "config_groups": {
                "group_0": {"targets": ["Linear"], "weights": FLOAT, "input_activations": FLOAT}
            },
        },
        32 * NETWORK * (16 - 4.5),
        "fp4",
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "format": "float-quantized",
            "ignore": ["lm_head"],
            "config_groups": {
                "group_0": {
                    "targets": ["re:.*self_attn.*"],
                    "weights": BLOCK,
                    "input_activations": IN_FP8,
                },
                "group_1": {"targets": ["re:.*mlp.*"], "weights": GROUP},
            },
        },
        32 * (ATTENTION * (8 - 32 / 128**2) + NETWORK * (12 - 16 / 128)),
        "fp8",
    ),
    (
        {
            "quant_algo": "NVFP4",
            "producer": {"name": "modelopt"},
            "exclude_modules": ["lm_head", "model.layers.0*"],
        },
        31 * (ATTENTION + NETWORK) * (16 - 4.5),
        "fp4",
    ),
    (
        {
            "quant_method": "bitsandbytes",
            "load_in_4bit": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": False,
        },
        32 * (ATTENTION + NETWORK) * (12 - 32 / 64),
        "",
    ),
    (
        {
            "quant_method": "quark",
            "exclude": ["lm_head"],
            "global_quant_config": {
                "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32},
                "input_tensors": {"dtype": "fp4"},
            },
        },
        32 * (ATTENTION + NETWORK) * (16 - 4.25),
        "fp4",
    ),
)


@pytest.mark.parametrize(("quantization", "saved", "products"), QUANTIZED)
def test_a_quantization_config_is_counted(
    read: Callable[[Any], models.Transformer],
    quantization: dict[str, Any],
    saved: float,
    products: str,
) -> None:
    """The bytes by hand: two for each parameter, less what the matrices of blocks save."""
    model = read(LLAMA | {"quantization_config": quantization})
    kept = Weights.of(model, "released")
    whole = 2 * model.parameters.m_as("param")
    assert kept.memory.m_as("byte") == pytest.approx(whole - saved / 8, rel=1e-9)
    assert kept.products == products


@pytest.mark.parametrize("key", ["gpt-oss-20b", "deepseek-v3", "kimi-k2"])
def test_a_released_config_says_what_the_data_do(
    read: Callable[[Any], models.Transformer], key: str
) -> None:
    configuration = RELEASED[key]
    read_in = read(configuration)
    ours = Weights.of(models.get(key), "released")
    assert Weights.of(read_in, "released").memory.m_as("byte") == pytest.approx(
        ours.memory.m_as("byte"), rel=3e-4
    )
    assert Weights.of(read_in, "released").products == ours.products


@pytest.mark.parametrize("name", ["mamba_ssm_dtype", "mamba_ssm_cache_dtype"])
def test_states_are_as_a_config_asks(read: Callable[[Any], models.Transformer], name: str) -> None:
    plain = RELEASED["qwen-3-next-80b-a3b"]
    assert read(plain).state_bytes is None
    assert read(plain | {name: "float32"}).state_bytes == 4
    assert read(plain | {name: "bfloat16"}).state_bytes is None
    assert read(LLAMA | {name: "float32"}).state_bytes is None  # which has no states


def test_modules_that_are_not_counted_are_noted(read: Callable[[Any], models.Transformer]) -> None:
    skipped = ["lm_head", "model.visual.blocks.0.attn", "model.layers.3.adapter.proj"]
    quantization = {"quant_method": "fp8", "modules_to_not_convert": skipped}
    (note,) = read(LLAMA | {"quantization_config": quantization}).notes
    assert "leaves model.layers.3.adapter.proj as trained" in note


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ({"quant_method": "hqq"}, r"of the method 'hqq', which is not read; those of fp8, .* are"),
        ({"quant_method": "hqq"}, r'take it out and say the format, as in weights="awq"$'),
        ({"quant_method": "fp-8"}, r"did you mean fp8\b"),
        ({"bits": 4, "group_size": 128}, "has no quant_method; those of fp8, "),
        ({"quant_method": ["fp8"]}, "which is not read"),
        *(
            (quantization, "quantization_config must be an object")
            for quantization in ("fp8", [], False, 8)
        ),
        ({}, "has no quant_method"),
        ({"quant_method": "fp8", "odd": 3}, r"has odd, which is not read, and may change"),
        ({"quant_method": "fp8", "ignore": ["a"]}, "ignore is read beside quantized_layers alone"),
        ({"quant_method": "gptq"}, r"\(gptq\) cannot be read: it has no bits"),
        (
            {"quant_method": "gptq", "bits": 4, "dynamic": {"-:(": {}}},
            r"\(gptq\) cannot be read: '\(' is no regular expression",
        ),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quant_algo MIXED_PREC"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": PACKED | {"targets": ["FusedMoE"]}},
            },
            "targets FusedMoE, where Linear",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {},
                "sparsity_config": {"format": "sparse-24-bitmask"},
            },
            "weights that are pruned are not counted",
        ),
    ],
)
def test_what_no_method_reads_is_refused_by_name(
    read: Callable[[Any], models.Transformer], quantization: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(LLAMA | {"quantization_config": quantization})


def in_a_group(name: str, value: object) -> dict[str, Any]:
    return {"config_groups": {"group_0": PACKED | {"weights": GROUP | {name: value}}}}


@pytest.mark.parametrize(
    ("method", "field", "value", "said"),
    [
        ("awq", "modules_to_not_convert", "self_attn", "a list of names"),
        ("awq", "modules_to_not_convert", [1, 2], "a list of names"),
        ("awq", "bits", "4", "2, 3, 4, 5, 6 or 8"),
        ("awq", "bits", True, "2, 3, 4, 5, 6 or 8"),
        ("awq", "group_size", 0, "a whole number from 1 to 1048576, or -1 for a whole row"),
        ("awq", "zero_point", "no", "true or false"),
        ("gptq", "dynamic", {"-:mlp": None}, "an object of which each value is an object"),
        ("auto-round", "extra_config", [], "an object of which each value is an object"),
        ("fp8", "fmt", "banana", "e4m3, e5m2 or float8_e4m3fn"),
        *(
            ("fp8", "weight_block_size", block, "two whole numbers from 1 to 1048576")
            for block in ([-128, 128], [0, 128], [128], ["128", "128"], "128x128", 128)
        ),
        ("compressed-tensors", "ignore", "lm_head", "a list of names"),
        ("compressed-tensors", "config_groups", [1], "an object of which each value is an object"),
        ("compressed-tensors", "config_groups", {"group_0": 1}, "an object of which each value"),
        ("bitsandbytes", "load_in_4bit", "yes", "true or false"),
        ("bitsandbytes", "bnb_4bit_quant_type", "banana", "nf4 or fp4"),
        ("quark", "global_quant_config", "fp8", "an object"),
    ],
)
def test_a_field_of_another_kind_is_refused(
    read: Callable[[Any], models.Transformer], method: str, field: str, value: object, said: str
) -> None:
    message = re.escape(f"({method}) cannot be read: {field} must be {said}")
    with pytest.raises(InputError, match=f"{message}.*; got {re.escape(repr(value))}$"):
        read(LLAMA | {"quantization_config": {"quant_method": method, field: value}})


@pytest.mark.parametrize(
    ("method", "configuration", "message"),
    [
        ("compressed-tensors", in_a_group("type", "banana"), "type must be float or int; got 'ban"),
        ("compressed-tensors", in_a_group("num_bits", 0), "num_bits must be 2, 3, 4, 5, 6 or 8"),
        ("compressed-tensors", in_a_group("strategy", "odd"), "strategy of weights must be tensor"),
        ("compressed-tensors", in_a_group("group_size", None), "it has no group_size"),
        ("compressed-tensors", {"config_groups": {}}, "config_groups must have a group with"),
        ("compressed-tensors", {"ignore": ["lm_head"]}, "it has no config_groups"),
        ("bitsandbytes", {"load_in_4bit": True, "load_in_8bit": True}, "must be true; both are"),
        ("bitsandbytes", {"load_in_4bit": False}, "must be true; neither is"),
        ("quark", {"global_quant_config": {"weight": []}}, "weight must be an object, or a list"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(
    read: Callable[[Any], models.Transformer],
    method: str,
    configuration: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(InputError, match=rf"\({method}\) cannot be read: .*{message}"):
        read(LLAMA | {"quantization_config": {"quant_method": method} | configuration})


def test_the_case_of_a_method_does_not_matter(read: Callable[[Any], models.Transformer]) -> None:
    small, large = (
        read(LLAMA | {"quantization_config": {"quant_method": method}}) for method in ("fp8", "FP8")
    )
    assert Weights.of(small, "released").memory == Weights.of(large, "released").memory


def test_a_llama_without_groups(read: Callable[[Any], models.Transformer]) -> None:
    configuration = config("llama", "32 4096 32 32 11008 32000 4096")
    del configuration["num_key_value_heads"]
    assert read(configuration).parameters == models.get("llama-2-7b").parameters


def test_biases_of_a_config(read: Callable[[Any], models.Transformer]) -> None:
    plain = config("llama", "2 64 4 2 128 1000 512")
    biased = read(plain | {"attention_bias": True, "mlp_bias": True})
    added = biased.parameters - read(plain).parameters
    assert added.m_as("param") == 2 * ((64 + 32 + 32 + 64) + (128 + 128 + 64))


LLAMA = config("llama", "32 4096 32 8 14336 128256 131072")
MIXTRAL = CONFIGS["mixtral 8x7B"][0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            LLAMA | {"model_type": "mamba"},
            r"model_type must be one of gpt2, llama, .*; got 'mamba'$",
        ),
        ({"layers": 3}, r"model_type must be one of gpt2, llama, .*; got None$"),
        (
            {k: v for k, v in LLAMA.items() if k not in ("hidden_size", "vocab_size")},
            "a configuration of llama must have hidden_size, vocab_size$",
        ),
        (
            {k: v for k, v in LLAMA.items() if k != "num_attention_heads"},
            "a configuration of llama must have num_attention_heads$",
        ),
        (
            LLAMA | {"num_key_value_heads": 5},
            "5 heads of keys and values must divide its 32 query heads$",
        ),
        (LLAMA | {"num_hidden_layers": 0}, "num_hidden_layers must be a whole number above 0; got"),
        (
            LLAMA | {"num_hidden_layers": 10**9},
            "a whole number above 0 and up to 10,000; got 1000000000",
        ),
        (LLAMA | {"hidden_size": "wide"}, "hidden_size must be a whole number above 0; got 'wide'"),
        (LLAMA | {"hidden_size": 4097}, "its 32 heads must divide its width of 4097$"),
        (MIXTRAL | {"num_experts_per_tok": 9}, "cannot be sent to 9 experts of 8$"),
        (config("gemma", "18 2048 8 1 16384 256000 8192"), "gemma must have head_dim$"),
        ('{"model_type": "llama",', "config.json: ends in the middle of line 1$"),
        ("[1, 2]", r"must hold a JSON object, as config.json does; got \[1, 2\]"),
        ("", "is not valid JSON: "),
        ("[" * 100_000, "is nested too deeply"),
        ('{"model_type": "llama", "hidden_size": 1, "hidden_size": 2}', "hidden_size is there 2 t"),
        (LLAMA | {"tie_word_embeddings": "false"}, "tie_word_embeddings must be true or false; g"),
        (LLAMA | {"attention_bias": "no"}, "attention_bias must be true or false; got 'no'"),
        (LLAMA | {"mlp_bias": 1}, "mlp_bias must be true or false; got 1"),
        (LLAMA | {"kv_lora_rank": 512}, "kv_lora_rank is not read, and would change the answer"),
        (LLAMA | {"text_config": 3}, "text_config must be an object; got 3"),
        (
            RELEASED["jamba-v0-1"] | {"mamba_proj_bias": True},
            "mamba_proj_bias is read where it is f",
        ),
        (
            RELEASED["deepseek-v3"] | {"topk_method": "greedy"},
            'is read where it is "noaux_tc", and',
        ),
        (
            RELEASED["nemotron-h-56b"] | {"hybrid_override_pattern": "M-"},
            r"hybrid_override_pattern must list \* or - or E or M for each of its 118 layers",
        ),
        (
            {k: v for k, v in RELEASED["nemotron-h-56b"].items() if "pattern" not in k},
            "a configuration of nemotron_h must have hybrid_override_pattern$",
        ),
        (
            config("mistral", "2 64 4 2 128 1000 512", sliding_window=4, layer_types=["linear"]),
            r"layer_types must list full_attention or sliding_attention for each of its 2 layers",
        ),
        (LLAMA | {"sliding_window": "wide"}, "sliding_window must be a whole number above 0"),
        (
            {k: v for k, v in RELEASED["lfm2-1-2b"].items() if k != "full_attn_idxs"},
            "a configuration of lfm2 must have layer_types or full_attn_idxs$",
        ),
        (
            RELEASED["lfm2-1-2b"] | {"block_ffn_dim_multiplier": "two"},
            "block_ffn_dim_multiplier must be a number above 0; got 'two'",
        ),
        (RELEASED["lfm2-1-2b"] | {"conv_bias": True}, "conv_bias is read where it is false"),
        (RELEASED["qwen-3-omni-30b-a3b"] | {"thinker_config": 3}, "thinker_config must be an obj"),
        (LLAMA | {"model_type": ["llama"]}, "model_type must be one of gpt2, llama"),
    ],
)
def test_a_config_that_cannot_be_read(
    content: Any, message: str, read: Callable[[Any], models.Transformer]
) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read(content)
    assert "config.json: " in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        models.load(tmp_path / "config.json")
    with pytest.raises(InputError, match=r"has no config\.json$"):
        models.load(tmp_path)
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        models.load(tmp_path / "config.json")


MISTRAL, QWEN = CONFIGS["mistral 7B"][0], CONFIGS["qwen2 7B"][0]
WINDOW = {"sliding_window": 4096}


@pytest.mark.parametrize(
    ("configuration", "layers"),
    [
        (MISTRAL | WINDOW, 32),
        (CONFIGS["gemma2 9B"][0] | WINDOW, 21),
        (CONFIGS["mixtral 8x7B"][0] | WINDOW, 32),
        (QWEN | WINDOW | {"use_sliding_window": True, "max_window_layers": 20}, 8),
        (MISTRAL | WINDOW | {"layer_types": ["sliding_attention", "full_attention"] * 16}, 16),
        (QWEN | WINDOW | {"max_window_layers": 20}, None),
        (MISTRAL | {"sliding_window": None}, None),
        (MISTRAL | {"sliding_window": 32768}, None),
        (MISTRAL | WINDOW | {"use_sliding_window": False}, None),
        (QWEN | WINDOW | {"use_sliding_window": True, "max_window_layers": 28}, None),
    ],
)
def test_windows_of_a_config(
    configuration: Any, layers: int | None, read: Callable[[Any], models.Transformer]
) -> None:
    """Windows are placed as the configuration classes of transformers place or list them."""
    model = read(configuration)
    assert model.notes == ()
    if layers is None:
        assert model.window is None
    else:
        assert (model.window, model.layers_with("window")) == (4096, layers)


def test_a_window_of_unknown_layers_is_told_and_not_counted(
    read: Callable[[Any], models.Transformer],
) -> None:
    model = read(LLAMA | WINDOW)
    assert model.window is None
    assert "sliding_window of 4096 tokens is not counted" in model.notes[0]
    made = plan(model, "h100", prompt=100, generated=100)
    assert any("sliding_window" in sentence for sentence in made.assumptions)


# --- shapes of one's own ---

SHAPE: dict[str, Any] = {"feed_forward_width": 14336, "vocabulary": 128256, "context": 8192}


def test_a_shape_is_described_by_plain_numbers() -> None:
    published = models.get("llama-3-8b")
    mine = models.from_shape(32, 4096, "32", kv_heads=quantity(8, ""), name="mine", **SHAPE)
    assert mine.parameters == published.parameters
    numbers: dict[str, Any] = {"layers": 32, "width": 4096, "heads": 32, "kv_heads": 8}
    in_full = models.Transformer(head_width=128, **numbers, **SHAPE)
    assert in_full.parameters == published.parameters
    first, second = (plan(each, "h100", prompt=10, generated=10) for each in (mine, published))
    assert first.writing.lower == second.writing.lower


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 4097}, "mine: without a head_width, its 32 heads must divide its width of 4097"),
        ({"heads": 0}, "mine: heads must be a whole number from 1; got 0"),
        ({"layers": 2.5}, "mine: layers must be a whole number from 1; got 2.5"),
        ({"layers": None}, "mine: "),
        ({"name": " \n"}, r"a model's name is a line of text; got ' \\n'"),
        ({"layers": True}, "mine: layers"),
        ({"layers": [1, 2]}, r"mine: layers must be a whole number from 1; got \(1, 2\)"),
        ({"layers": "3 GB"}, "mine: layers must be a whole number from 1; got '3 GB'"),
        ({"kv_heads": 5}, "mine: its 5 heads of keys and values must divide its 32 query heads"),
        ({"window": 4096}, 'mine: window is given, and no layer is "window"$'),
        (
            {"attention": ("window",)},
            'mine: window is missing; "window" layers cannot be without it',
        ),
        ({"attention": ("33 full",)}, "mine: attention lists 33 layers, and there are 32$"),
        ({"attention": ("x full",)}, "mine: attention must name a kind, or how many and a kind"),
        ({"attention": ("0 full",)}, "mine: attention must name a kind, or how many and a kind"),
        ({"attention": ("half",)}, "mine: attention must be one of full, window, .*; got 'half'"),
        ({"attention": "full"}, "mine: attention"),
        ({"feed_forward": ("sparse",)}, "mine: feed_forward must be one of dense, experts, none"),
        ({"attention": ("none",)}, "mine: no layer attends to tokens, so that there is no cache"),
        ({"chunk": 64}, 'mine: chunk is given, and no layer is "linear"$'),
        ({"borrowing": 32}, "mine: its last 32 layers borrow keys and values, and no"),
        ({"qk_norm": "each"}, "mine: qk_norm must be one of head, all heads; got 'each'"),
        ({"gates": ("router",)}, "mine: gates must be one of attention, shared experts; got"),
        ({"norm": "none"}, "mine: norm must be one of rms, layer; got 'none'"),
        ({"depth": 3}, "mine: there is no depth; .*there are key, name, year, attent"),
        ({"expert": 3}, "mine: there is no expert; did you mean experts"),
        ({"layers": 10**30}, "mine: layers must be a whole number from 1 to 1e9; got 10000000"),
        ({"vocabulary": None}, "mine: vocabulary is missing; a model without patch_inputs cannot"),
        ({"feed_forward_width": None}, 'mine: feed_forward_width is missing; "dense" layers'),
        ({"experts": 8}, 'mine: active_experts is missing; "experts" layers cannot be'),
        ({"experts": 8, "active_experts": 2}, 'mine: expert_width is missing; "experts" layers'),
        ({"shared_experts": 1}, 'mine: shared_experts is given, and no layer is "experts"$'),
        ({"kv_latent": 512}, 'mine: kv_latent is given, and no layer is "latent"$'),
        ({"output": "classes"}, 'mine: classes is missing; output="classes" cannot be without it'),
    ],
)
def test_a_shape_that_is_none(change: dict[str, Any], message: str) -> None:
    shape: dict[str, Any] = {"layers": 32, "width": 4096, "heads": 32, "name": "mine"}
    with pytest.raises(InputError, match=message) as refusal:
        models.from_shape(**(shape | SHAPE | change))
    assert "\n" not in str(refusal.value)


def test_a_longer_context_is_allowed_with_a_word() -> None:
    model = models.get("llama-3-8b")
    with pytest.raises(InputError, match=r"at most 8192 tokens; .*with_context\(131072\)"):
        transformer.decode_matmuls(model, 131072)
    longer = model.with_context(131072)
    assert longer.parameters == model.parameters
    assert transformer.decode_matmuls(longer, 131072)
    assert model.context == 8192
    made = plan(model, "h100", prompt=100_000, generated=1000, context="131072")
    assert any("taken to read 131072 tokens" in sentence for sentence in made.assumptions)
    assert made.prompt.magnitude == 100_000
