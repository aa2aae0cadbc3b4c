"""Kernels: their laws by hand, and a pass as the sum of what it launches."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from itertools import product

import pytest

import calc
from calc import (
    InputError,
    hardware,
    inference,
    kernels,
    machines,
    models,
    quantity,
    software,
    transformer,
)
from calc.catalog import intervals, kernel_shares
from calc.catalog.kernel_shares import Surface
from calc.catalog.machines import NotMeasured
from calc.laws import layers
from calc.steps import products
from calc.steps.expectation import AS_IF_DENSE, serving_pass
from calc.steps.job import Batch, Formats, Job, Layout, Tokens
from calc.steps.measured import Kernel, rates_of
from calc.steps.timing import step
from tests.calc.drawn_claims import transformers
from tests.calc.odd_values import SEED
from tests.rows import each_row

H100 = machines.get("dgx-h100")
DENSE = ("llama-3-8b", "llama-3-70b", "gpt-2")


def total(launched: list[Kernel], what: str, *kinds: str) -> float:
    """Operations or bytes of all launches, of these kinds or of all."""
    unit = {"operations": "FLOP", "traffic": "byte"}[what]
    some = [each for each in launched if not kinds or each.kind in kinds]
    return float(sum(getattr(each, what).m_as(unit) * each.launches for each in some))


def named(name: str, job: Job, load: Tokens) -> Kernel:
    """The one kernel of that name."""
    (kernel,) = (each for each in kernels.step(job, load) if each.name == name)
    return kernel


def test_one_product_on_a_device() -> None:
    """4097 rows by 4096 columns on 132 processors: 33 · 16 tiles of 128 × 256, four full waves.

    They are 97% output, so that at 794.5 TFLOP/s the product takes 178.4 µs over 0.97, and results
    go out at 3.18 TB/s.
    """
    product = products.gemm(4097, 4096, 4096, machines.get("dgx-h100"))
    assert (product.tile, product.tiles, product.waves) == ((128, 256), 33 * 16, 4)
    assert product.wave_efficiency == quantity(100, "%")
    output = 4097 * 4096
    assert product.tile_efficiency.m_as("") == pytest.approx(output / (528 * 128 * 256))
    assert product.expected is not None
    by_hand = 528 * 128 * 256 * 2 * 4096 / 794.5e12 + output * 2 / 3.18e12 + 4e-6
    assert product.expected.m_as("s") == pytest.approx(by_hand, rel=1e-9)
    assert product.bound.bound == "compute"
    assert product.facts["expected_rate"] < product.bound.peak
    assert "tiles       528 of 128 × 256, 96.99% of which is output" in str(product)


def test_a_product_where_the_processors_are_not_known() -> None:
    product = products.gemm(64, 4096, 4096, machines.get("tpu-v5p-pod"))
    assert product.expected is not None
    assert product.expected > product.bound.lower
    assert "tiles" not in product.facts
    with pytest.raises(InputError, match="the size k must be a whole number from 1; got 0"):
        products.gemm(1, 1, 0, machines.get("dgx-h100"))
    with pytest.raises(InputError, match="no dense peak for INT4"):
        products.gemm(1, 1, 1, machines.get("dgx-h100"), "int4")
    with pytest.raises(InputError, match=r"a machine of calc.machines is needed; got 'dgx-h100'"):
        products.gemm(1, 1, 1, "dgx-h100")  # type: ignore[arg-type]


def test_what_was_not_measured_is_told() -> None:
    product = Kernel("a product", "gemm", 1, shape=(64, 64, 64), dtype="fp4")
    with pytest.raises(NotMeasured, match="products in FP4 was not measured on NVIDIA DGX H100"):
        product.expected(machines.get("dgx-h100"))


# --- passes ---


@pytest.mark.parametrize("name", DENSE)
def test_a_decode_step_is_the_sum_of_its_kernels(name: str) -> None:
    model, context, batch = models.get(name), 1000, 32
    launched = kernels.step(Job(model, H100), Tokens(batch, context))
    step = inference.decode(model, hardware.H100, context, batch)
    assert total(launched, "operations") == pytest.approx(step.operations.m_as("FLOP"))
    read = total(launched, "traffic", "gemm", "cache")
    assert read == pytest.approx(step.traffic.m_as("byte"), rel=1e-3)  # biases of GPT-2


@pytest.mark.parametrize("name", DENSE)
def test_a_prefill_is_the_sum_of_its_kernels(name: str) -> None:
    model, length = models.get(name), 1000
    launched = kernels.step(Job(model, H100), Tokens(reading=length, prompt=length))
    read = inference.prefill(model, hardware.H100, length)
    assert total(launched, "operations") == pytest.approx(read.operations.m_as("FLOP"))
    per_token = transformer.kv_cache_per_token(model, quantity(2, "byte")).m_as("byte/token")
    weights = read.traffic.m_as("byte") - per_token * length  # the cache is results of a product
    assert total(launched, "traffic", "gemm") == pytest.approx(weights, rel=1e-3)


def test_slices_share_products_and_caches() -> None:
    """Llama 3 70B has eight heads for keys and values: eight slices cut everything by eight."""
    model = models.get("llama-3-70b")
    whole, sliced = (
        kernels.step(Job(model, H100, Layout(tensor=slices)), Tokens(16, 2000)) for slices in (1, 8)
    )
    for what in ("operations", "traffic"):
        assert total(sliced, what, "gemm", "cache") == pytest.approx(
            total(whole, what, "gemm", "cache") / 8
        )


def test_a_training_step_does_three_passes() -> None:
    """Products three times those of the forward pass, attention three and a half times."""
    model = models.get("llama-3-8b")
    launched = kernels.training_step(Job(model, H100), Batch(2048))
    products = sum(2 * math.prod(each.shape) * each.launches for each in launched if each.shape)
    parameters = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128256
    assert products == pytest.approx(6 * parameters * 2048)
    attention = 32 * 2048 * 2049 / 2 * 32 * 2 * (128 + 128)
    assert total(launched, "operations", "attention") == pytest.approx(3.5 * attention)


# --- experts ---


@pytest.mark.parametrize(("slices", "experts"), [(8, 1), (8, 8), (8, 4), (2, 8), (1, 8)])
def test_experts_work_alike_however_they_are_shared_out(slices: int, experts: int) -> None:
    """Eight devices compute the same products of 512 tokens in all, whatever they cut or share."""
    model = models.get("deepseek-v3")
    tokens = 512 * slices / 8  # tokens of the devices that cut matrices together

    def of_experts(launched: list[Kernel]) -> float:
        return total([each for each in launched if each.name.startswith("expert ")], "operations")

    layout = Layout(tensor=slices, experts=experts)
    alone = of_experts(kernels.step(Job(model, H100), Tokens(512, 1)))
    shared = of_experts(kernels.step(Job(model, H100, layout), Tokens(tokens, 1)))
    assert 8 * shared == pytest.approx(alone)


# --- states ---


def test_a_token_reads_all_experts_where_graphs_have_fixed_shapes() -> None:
    """On a Gaudi one sequence waits for as many weights of experts as a thousand do."""

    def read(machine: str, writing: int) -> float:
        job = Job.of("qwen-3-30b-a3b", machine, software="vllm")
        return float(serving_pass(job, Tokens(writing, 1000))["gemm"].m_as("s"))

    assert machines.get("gaudi3-8").reads_all_experts
    assert read("gaudi3-8", 1) > 0.7 * read("gaudi3-8", 200)
    assert read("dgx-h100", 1) < 0.4 * read("dgx-h100", 200)


def test_states_of_prompts_and_attention_share_the_work_of_a_hybrid() -> None:
    model = models.get("qwen-3-next-80b-a3b")
    launched = kernels.step(Job(model, H100), Tokens(reading=8192, prompt=8192))
    of_a_token = transformer.causal_flops(model, 8192)
    projections = layers.projection_flops(model.multiplied_parameters)
    work = 8192 * (of_a_token - projections).m_as("FLOP/token")
    assert total(launched, "operations", "attention") == pytest.approx(work)
    (states,) = (each for each in launched if each.name == "states of prompts")
    # 36 layers of 32 heads: 64 · (3 · 128 + 2 · 128) + 3 · 128 · 128 multiply–adds of each token
    assert states.launches == 36
    by_hand = 8192 * 32 * 2 * (64 * 640 + 3 * 128**2)
    assert states.operations.m_as("FLOP") == pytest.approx(by_hand)


def test_the_delta_rule_takes_as_long_as_it_was_measured_to() -> None:
    """128 sequences on 4 H100: 8 heads of 64 kB, there and back, and 2 048 channels of vectors."""
    job = Job(models.get("qwen-3-next-80b-a3b"), H100, Layout(tensor=4))
    engine = software.get("vllm")
    states = named("states", job, Tokens(writing=128, context=4096))
    moved = 2 * 128 * 8 * 65536 + 2 * 128 * (3 * 2048 + 1024)
    surface = kernel_shares.surface_of("states", "h100", "vllm", "delta")
    assert surface is not None
    expected = 36 * surface.time(128, moved / 3.35e12)
    assert states.expected(H100, engine).m_as("s") == pytest.approx(expected)
    # rows of 128 sequences and 8 heads, 4 of them of keys, in vLLM 0.24 on an H100: 50.2 + 2.9 µs
    assert states.expected(H100, engine).m_as("us") / 36 == pytest.approx(53.1, rel=0.1)


@pytest.mark.parametrize(
    ("engine", "load", "microseconds"),
    [
        ("vllm", Tokens(writing=128, context=4096), 39.9),
        ("sglang", Tokens(writing=128, context=4096), 43.3),
        ("sglang", Tokens(reading=8192, prompt=8192), 64.0 + 619.1),
        ("sglang", Tokens(reading=32768, prompt=32768), 215.7 + 2305.4),
    ],
)
def test_a_decay_of_each_number_takes_as_long_as_it_was_measured_to(
    engine: str, load: Tokens, microseconds: float
) -> None:
    """Kimi K3 on 8 B200, 12 heads each: rows of the rule and of its convolution, or of both."""
    machine = machines.get("dgx-b200")
    job = Job(models.get("kimi-k3"), machine, Layout(tensor=8))
    (states,) = (each for each in kernels.step(job, load) if each.name.startswith("states"))
    time = states.expected(machine, software.get(engine)).m_as("us") / states.launches
    assert time == pytest.approx(microseconds, rel=0.1)


def test_states_that_nobody_measured_are_passes_over_memory() -> None:
    """State spaces have no rows."""
    job = Job(models.get("nemotron-3-nano-30b-a3b"), H100)
    launched = kernels.step(job, Tokens(writing=128, context=4096, reading=512, prompt=512))
    named = [each for each in launched if each.name.startswith("states")]
    assert len(named) == 2
    assert all(each.measured is None for each in named)


# --- few chosen of many ---


@pytest.mark.parametrize("key", ["deepseek-v3-2", "glm-5"])
def test_sparse_attention_takes_what_a_context_was_measured_to_add(key: str) -> None:
    """Each device scores the whole context, 132 bytes a token, and reads 2 048 latents."""
    model, machine = models.get(key), machines.get("dgx-b200")
    job = Job(model, machine, Layout(tensor=8))
    load = Tokens(writing=64, context=32768)
    attended = named("attention to caches", job, load)
    heads = model.heads / 8
    moved = 64 * (32768 * 132 + 2048 * 576 * 2 + 2 * heads * 1088)
    assert attended.moved is not None
    assert attended.moved.m_as("byte") == pytest.approx(moved)
    scored = 2 * 64 * 32768 * (model.index_heads or 0) * 128
    chosen = 2 * 64 * heads * 2048 * (2 * 512 + 64)
    assert attended.operations.m_as("FLOP") == pytest.approx(scored + chosen)
    assert attended.measured is not None
    assert attended.measured.kernel == "chosen"


def test_a_step_of_sparse_attention_grows_with_its_context_as_the_module_does() -> None:
    """TensorRT-LLM 1.3.0rc20, a B200, 128 sequences, 16 heads, FP8: 100 µs to 278 and 626."""
    machine, engine = machines.get("dgx-b200"), software.get("tensorrt-llm")
    job = Job(
        models.get("deepseek-v3-2"), machine, Layout(tensor=8), Formats("fp8", "1 byte", "1 byte")
    )

    def layer(context: int) -> float:
        attended = named("attention to caches", job, Tokens(writing=128, context=context))
        return float(attended.expected(machine, engine).m_as("us")) / 61

    short = layer(2)
    assert layer(32769) - short == pytest.approx(278 - 100, rel=0.1)
    assert layer(131073) - short == pytest.approx(626 - 100, rel=0.1)


@pytest.mark.parametrize("key", ["deepseek-v3-2", "glm-5"])
def test_sparse_attention_of_prompts_scores_all_whole_and_attends_to_few_latents(key: str) -> None:
    """Two chunks of 4 096 tokens after as many: each device scores for all heads of the index."""
    model = models.get(key)
    job = Job(model, machines.get("dgx-b200"), Layout(tensor=8))
    load = Tokens(reading=8192, prompt=4096, before=4096)
    attended = named("attention", job, load)
    heads, places = model.heads / 8, sum(range(4097, 8193))  # each its own too
    scored = 2 * 2 * places * (model.index_heads or 0) * 128
    seen = 2 * 4096 * 2048
    widths = model.head_width + 64 + (model.value_width or 0)
    assert attended.operations.m_as("FLOP") == pytest.approx(scored + 2 * heads * seen * widths)
    assert attended.worked is not None
    assert attended.worked.m_as("FLOP") == pytest.approx(scored + 2 * heads * seen * 1088)
    assert attended.moved is not None
    moved = 2 * 8192 * (132 + 576 * 2) + 2 * 8192 * heads * 1088
    assert attended.moved.m_as("byte") == pytest.approx(moved)
    assert attended.measured is not None
    assert attended.measured.kernel == "choosing"
    assert attended.measured.length == 8192


@pytest.mark.parametrize(
    ("machine", "engine", "prompts", "tokens", "module"),
    [
        ("dgx-b200", "vllm 0.24", 2, 8192, 10.0224),
        ("dgx-b200", "vllm 0.24", 4, 4096, 9.088),
        ("dgx-b200", "tensorrt-llm", 4, 4096, 7.6058),
        ("dgx-h200", "vllm 0.24", 1, 8192, 6.7961),
        ("dgx-h200", "vllm 0.24", 4, 4096, 11.8607),
        ("dgx-b200", "tensorrt-llm", 2, 8192, 8.374),
    ],
)
def test_a_layer_that_reads_prompts_takes_as_long_as_its_module_was_measured_to(
    machine: str, engine: str, prompts: int, tokens: int, module: float
) -> None:
    """DeepSeek-V3.2, 16 heads, all in two bytes: its products, rotation and attention, in ms."""
    model, on = models.get("deepseek-v3-2"), machines.get(machine)
    load = Tokens(reading=prompts * tokens, prompt=tokens)
    attention_matrices = {matrix.name for matrix in model.matrices if matrix.part == "attention"}
    launched = kernels.step(Job(model, on, Layout(tensor=8)), load)
    layer = [
        each for each in launched if each.name in {*attention_matrices, "rotation", "attention"}
    ]
    assert {each.launches for each in layer} == {61}
    times = [each.expected(on, software.get(engine)).m_as("ms") / 61 for each in layer]
    assert sum(times) == pytest.approx(module, rel=0.05)


def test_a_program_is_asked_for_other_heads_before_another_program_is() -> None:
    """SGLang was measured with the index of GLM-5 alone; TensorRT-LLM on Hopper with BF16 alone."""
    model, machine, formats = models.get("deepseek-v3-2"), machines.get("dgx-h200"), {}
    for engine in ("sglang", "tensorrt-llm"):
        job = Job(model, machine, Layout(tensor=8), Formats(kv="1 byte"))
        attended = named("attention", job, Tokens(reading=8192, prompt=8192))
        surface = attended.surface(rates_of(machine, software.get(engine)))
        assert surface is not None
        formats[surface.program] = surface.format
    assert formats == {"sglang": "latent-fp8-16-32", "tensorrt-llm": "latent-16-64"}


def test_heads_of_a_device_find_the_surface_of_as_many_or_of_the_nearest() -> None:
    engine, model = software.get("vllm"), models.get("deepseek-v3-2")
    formats = {}
    for slices in (1, 8, 128):
        job = Job(model, machines.get("dgx-b200"), Layout(tensor=slices))
        attended = named("attention", job, Tokens(reading=8192, prompt=8192))
        surface = attended.surface(rates_of(machines.get("dgx-b200"), engine))
        assert surface is not None
        formats[slices] = surface.format
    assert formats == {1: "latent-128-64", 8: "latent-16-64", 128: "latent-8-64"}


CHOSEN = [
    ("deepseek-v3-2", "dgx-b200", "vllm"),
    ("deepseek-v3-2", "dgx-b200", "tensorrt-llm"),
    ("glm-5", "dgx-h200", "sglang"),
]
"""Models, machines and programs whose kernels that choose were measured."""


@pytest.mark.parametrize(
    ("key", "machine", "engine"),
    [
        *CHOSEN,
        ("deepseek-v3-2", "dgx-a100", "vllm"),
        ("deepseek-v3-2", "mi300x-8", "vllm"),
        ("glm-5-2", "dgx-b200", "vllm"),  # whose layers follow what others chose
        ("minimax-m3", "dgx-b200", "vllm"),
    ],
)
@pytest.mark.parametrize(
    "load", [Tokens(reading=8192, prompt=8192), Tokens(writing=16, context=8192)], ids=str
)
def test_sparse_attention_that_nobody_measured_is_told_and_has_an_interval_as_wide(
    key: str, machine: str, engine: str, load: Tokens
) -> None:
    job = Job(
        models.get(key), machines.get(machine), Layout(tensor=8), software=software.get(engine)
    )
    parts = serving_pass(job, load)
    of_measured = intervals.interval_of("serving", engine, mixture=True)
    assert parts.alike is not None
    if (key, machine, engine) in CHOSEN:
        assert AS_IF_DENSE not in parts.kin
        assert parts.alike == of_measured
    else:
        assert AS_IF_DENSE in parts.kin
        assert parts.alike.low <= of_measured.low < of_measured.high <= parts.alike.high


BATCHES = [2**power for power in range(10)]
FELL = ["ryzen-7840u", "h20", "mi250x", "apple-m4-max", "rtx-3060"]  # from one sequence to two


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (FELL, ["llama-3.1-8b"]),
        pytest.param(
            hardware.names(),
            ["llama-3.1-8b", "nemotron-4-15b", "qwen-3-30b-a3b"],
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_twice_the_batch_writes_no_fewer_tokens_a_second_but_where_rows_say_so(
    keys: list[str], names: list[str]
) -> None:
    """Slower batches have been measured: kernels of the device, of its kin or of a better one."""
    tried = 0
    with each_row() as row:
        for key, name, weights, program in product(keys, names, ("bf16", "int8"), (None, "vllm")):
            machine = machines.of(key)
            dtype = weights if weights in machine.device.dtypes else machine.device.usual_dtype
            with row((key, name, weights, program)), suppress(InputError):
                job = Job.of(name, machine, None, Formats(dtype, weights), program)
                before: list[Kernel] = []
                for batch in BATCHES:
                    launched = kernels.step(job, Tokens(writing=batch, context=1000))
                    for one, two in zip(before, launched, strict=False):
                        rates = rates_of(machine, job.software)
                        (less, few), (more, many) = one.timed(rates), two.timed(rates)
                        is_measured = any(isinstance(rate, Surface) for rate in few + many)
                        slower = more > 2 * less * (1 + 1e-9)
                        assert is_measured or not slower, (batch, two.name)
                        tried += 1
                    before = launched
    assert tried > 100 * len(keys)


def test_plans_for_two_write_no_slower_than_for_one() -> None:
    for key in FELL:
        one, two = (
            calc.plan("llama-3.1-8b", key, batch=batch, prompt=100, generated=100, weights="int8")
            for batch in (1, 2)
        )
        assert two.expected.throughput >= one.expected.throughput


@pytest.mark.parametrize("count", [4, pytest.param(120, marks=pytest.mark.nightly)])
def test_a_longer_prompt_is_never_read_sooner(count: int) -> None:
    chance = random.Random(f"{SEED} prompts")
    programs = [None, "vllm", "sglang", "tensorrt-llm", "llama.cpp"]
    with each_row() as row:
        for _ in range(count):
            key, name = chance.choice(hardware.names()), chance.choice(transformers())
            program, weights = chance.choice(programs), chance.choice(["bf16", "fp8", "nvfp4"])
            machine = machines.of(key)
            dtype = weights if weights in machine.device.dtypes else machine.device.usual_dtype
            with row((key, name, weights, program)), suppress(InputError):
                job = Job.of(name, machine, None, Formats(dtype, weights), program)
                prompt, before = 1, 0.0
                while prompt < 30_000:
                    taken = step(job, Tokens(reading=prompt, prompt=prompt)).expected
                    seconds = 0.0 if taken is None else taken.m_as("s")
                    assert seconds >= before * (1 - 1e-9), prompt
                    prompt, before = int(prompt * chance.choice([1.05, 1.3, 2])) + 1, seconds
