"""Layers that join tokens, and streams that are mixed: DeepSeek-V4 held to what is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calc import InputError, device_memory, inference, kernels, models, plan, transformer
from calc.catalog.models import Transformer, families
from calc.steps.job import Job, Layout, Tokens
from tests.rows import each_row

FLASH, PRO = models.get("deepseek-v4-flash"), models.get("deepseek-v4-pro")
V3_2 = models.get("deepseek-v3-2").with_context(2**20)
CONFIG = json.loads(Path(__file__).with_name("configs.json").read_text())["deepseek-v4-flash"]
MILLION = 2**20


def test_parameters_by_hand() -> None:
    """Flash, layer by layer, as the reference's modules are: 284.33 billion as llama.cpp counts."""
    d, q, head, heads = 4096, 1024, 512, 64
    attention = d * q + q + q * heads * head + d * head + head + heads
    attention += heads * head * q + 8 * q * d  # groups of 8 heads, each to 1024 numbers
    sparse = 4 * d * head + 4 * 2 * head + head + 4 * d * 128 + 4 * 2 * 128 + 128
    sparse += q * 64 * 128 + d * 64
    heavy = 2 * d * head + 128 * head + head
    mixing = 2 * (24 * 4 * d + 24 + 3)
    experts = (256 + 1) * 3 * d * 2048 + 256 * d
    every = attention + mixing + experts + 2 * d
    counted = 43 * every + 21 * sparse + 20 * heavy + 40 * 256 + 3 * 129_280 * 6
    counted += 2 * 129_280 * d + d + 4 * 4 * d + 4 + 1
    assert FLASH.parameters.m_as("param") == counted
    assert round(counted / 1e9, 2) == 284.33


def test_active_parameters_are_those_of_the_model_cards() -> None:
    """13 and 49 billion, which leave out the table of the embedding."""
    for model, printed in ((FLASH, 13), (PRO, 49)):
        active = model.active_parameters - model.parts["embedding"]
        assert round(active.m_as("param") / 1e9) == printed


def test_caches_are_those_that_ds4_writes() -> None:
    """23 995 788 bytes and 13 764 a token, in FP32, with an id a token, logits and a header."""
    header = 4 * (2 * 43 + 13)
    for tokens in (2048, 16_384, 65_536):
        kept = transformer.kv_cache(FLASH, tokens, "4 byte", "4 byte").m_as("byte")
        assert kept + 4 * tokens + 4 * 129_280 + header == 23_995_788 + 13_764 * tokens


def test_the_cache_of_a_million_tokens_is_what_vllm_prints() -> None:
    """9.62 GiB of Pro in BF16, keys of the index too, without what is not joined yet."""
    kept = transformer.kv_cache(PRO, MILLION, "2 byte", "2 byte")
    kept = kept - transformer.compressor_memory(PRO)
    assert round(kept.m_as("GiB"), 2) == 9.62


def test_work_and_cache_beside_the_model_before() -> None:
    """27 % of the operations of DeepSeek-V3.2 at a million tokens, and 10 % of its cache."""
    work = transformer.forward_flops(PRO, MILLION) / transformer.forward_flops(V3_2, MILLION)
    assert round(100 * work.m_as("")) == 27
    cache = transformer.kv_cache(PRO, MILLION) / transformer.kv_cache(V3_2, MILLION)
    assert cache.m_as("") == pytest.approx(0.10, abs=0.02)


def test_work_of_training_is_what_megatron_bridge_prints() -> None:
    """748 TFLOP/s at 8 224 token/s, with the module that drafts: a layer, its input and logits."""
    length = 4096
    logits = 2 * 4096 * 129_280
    of_layers = transformer.causal_flops(FLASH, length).m_as("FLOP/token") - logits
    drafts = of_layers / 43 + 2 * 2 * 4096**2 + logits
    printed = 748e12 / 8224 / 3
    assert of_layers + logits + drafts == pytest.approx(printed, rel=0.01)


def test_the_released_checkpoint_is_as_large_as_its_files() -> None:
    """148.66 GiB of files, of which 0.5 to 3 % are the module that drafts."""
    ours = inference.weight_memory(FLASH, "released").m_as("GiB")
    layer = FLASH.parts["feed-forward"].m_as("param") / 43 * 4.25 / 8 / 2**30
    assert ours + layer == pytest.approx(148.66, rel=0.01)


def test_what_is_read_and_kept_bends_where_windows_and_choices_are_full() -> None:
    for model in (FLASH, PRO):
        assert model.reaches == (128, 4 * model.index_topk)
        read = [transformer.cache_read(model, c).m_as("byte") for c in (0, 64, 128)]
        assert read[2] - read[1] == pytest.approx(read[1] - read[0])
        for first, last in ((256, 1024), (8192, 65_536)):
            middle = transformer.forward_flops(model, (first + last) / 2)
            ends = [transformer.forward_flops(model, each) for each in (first, last)]
            assert middle.magnitude == pytest.approx(sum(each.magnitude for each in ends) / 2)
    context = transformer.crossover_context(FLASH).m_as("")
    whole = transformer.forward_flops(FLASH, context) / transformer.forward_flops(FLASH)
    assert whole.m_as("") == pytest.approx(2)


def test_products_do_the_operations_of_the_law() -> None:
    """Products of a decode, one by one, do what the law says, since it has no latents."""
    for context in (1, 100, 4096, 100_000):
        made = transformer.decode_matmuls(FLASH, context)
        products = sum(each.operations.m_as("FLOP") for each in made)
        law = transformer.forward_flops(FLASH, context).m_as("FLOP/token")
        assert products == pytest.approx(law)


@pytest.mark.parametrize("joined", [2, 3, 4, 128])
def test_tokens_that_are_joined_are_scored_once_together(joined: int) -> None:
    """Two as well as four: all scores of the index are those of single tokens, shared out."""
    context = 3 * 2**14

    def scored(model: Transformer) -> float:
        made = transformer.decode_matmuls(model, context)
        return sum(each.operations.m_as("FLOP") for each in made if each.name == "index scores")

    joining, alone = (replace(FLASH, compression=tokens) for tokens in (joined, 1))
    assert scored(joining) * joined == pytest.approx(scored(alone))


def test_kernels_read_the_cache_and_do_the_work() -> None:
    launched = kernels.step(Job.of(FLASH, "dgx-h200", Layout(tensor=4)), Tokens(16, 50_000))
    [attention] = [each for each in launched if each.name == "attention to caches"]
    read = attention.launches * attention.traffic.m_as("byte")
    assert read == pytest.approx(16 * transformer.cache_read(FLASH, 50_000).m_as("byte"))
    plain = transformer.forward_flops(FLASH, 50_000) - transformer.forward_flops(FLASH)
    index = transformer.index_flops(FLASH, 50_000)
    work = 16 * ((plain - index) / 4 + index).m_as("FLOP/token")
    assert attention.launches * attention.operations.m_as("FLOP") == pytest.approx(work)


def test_each_device_holds_all_of_a_cache() -> None:
    """No head can be cut of one vector for all: four devices keep what one keeps."""
    fitted = device_memory.fit("deepseek-v4-flash", "dgx-h200", tensor=4, context=131_072)
    asked = [line for line in str(fitted).splitlines() if "a sequence" in line]
    assert "17.84 MB + 6229 byte a token" in asked[0]
    windows = 43 * 128 * 512 * 2
    fixed = windows + transformer.compressor_memory(FLASH).m_as("byte")
    each = 21 * (512 * 2 + 132) / 4 + 20 * 512 * 2 / 128
    assert (round(fixed / 1e6, 2), each) == (17.84, 6229)
    assert fitted.caches == device_memory.fit("deepseek-v4-flash", "dgx-h200", tensor=4).caches


def test_a_plan_tells_what_its_layers_do() -> None:
    made = plan("deepseek-v4-flash", "h200", devices=4, prompt=8000, generated=500)
    said = " ".join(made.assumptions)
    assert "21 of its 43 layers join 4 tokens to one vector" in said
    assert "no kernel of theirs is in the data" in said
    assert made.expected is not None
    assert made.expected.time_per_token > made.time_per_token.lower


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., models.Transformer]:
    def of(**changed: Any) -> models.Transformer:
        path = tmp_path / "config.json"
        config = {name: value for name, value in (CONFIG | changed).items() if value != "left out"}
        path.write_text(json.dumps(config))
        return families.load(path)

    return of


def test_a_config_says_what_experts_are_in(read: Callable[..., models.Transformer]) -> None:
    released = read().released
    assert released is not None
    assert released.formats["experts"] == "mxfp4"
    assert released.formats["attention"].startswith("FP8")
    alone = read(quantization_config="left out").released
    assert alone is not None
    assert alone.formats == {"others": "bf16", "experts": "mxfp4"}
    assert read(quantization_config="left out", expert_dtype="fp8").released is None


def test_a_config_lists_how_many_tokens_a_layer_joins(
    read: Callable[..., models.Transformer],
) -> None:
    names = {0: "sliding", 4: "compressed_sparse", 128: "heavily_compressed"}
    listed = [f"{names[joined]}_attention" for joined in CONFIG["compress_ratios"][:43]]
    assert read(compress_ratios="left out", layer_types=listed).kinds == read().kinds
    with each_row() as row:
        for changed, said in (
            ({"compress_ratios": [2] * 44}, "compress_ratios must list 0, 4, 128 for each of"),
            ({"compress_ratios": [4] * 42}, "for each of its 43 layers"),
            ({"compress_ratios": "left out"}, "compress_ratios must list"),
            ({"expert_dtype": "int3"}, "expert_dtype must be fp4 or fp8"),
            ({"kv_lora_rank": 512}, "kv_lora_rank is not read, and would change the answer"),
            ({"num_key_value_heads": 8}, "num_key_value_heads is read where it is 1"),
        ):
            with row(str(changed)), pytest.raises(InputError, match=said):
                read(**changed)
