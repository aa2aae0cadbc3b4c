"""Claims of the chapter "Attention": intensities, roofs, and kernels that others measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from calc import attention, formats, hardware, kernel_shares, models, transformer
from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import DENSE, HAND, HYBRID, MIXTURE
from calc.derivations.hardware_tables import largest_error
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Quoted, Row, percent, show
from calc.derivations.traces import whole
from calc.published import reading

H100, B200, B300 = map(hardware.get, ("h100", "b200", "b300"))
PROMPT = 8192
ELEMENT = formats.BF16.size
SPARSE = models.get("deepseek-v3-2")


def _exponentials(device: Accelerator, dtype: str = "bf16", width: int = 128) -> Quantity:
    """Time of the exponentials of heads so wide over that of their products."""
    return attention.exponentials_over_products(
        device.peak(dtype), device.special_functions, width
    ).to("%")


class Opening(Claims):
    """Products are 2.3 times as fast on a B200, exponentials hardly."""

    products = (B200.peak("bf16") / H100.peak("bf16")).to("") | by_hand("2250 / 989")
    exponentials = (B200.special_functions / H100.special_functions).to("") | by_hand("5 / 3.9")


class Intensities(Claims):
    """A prompt is compute-bound, a token that is written memory-bound, unless it has latents."""

    context = PROMPT | by_hand("8192")
    heads = MIXTURE.heads
    latent = MIXTURE.kv_latent
    rotary = MIXTURE.rotary_width
    header = ("Attention", "Queries that share what is read", "Intensity")

    prefill = attention.fused_attention_intensity(context, context, 8)
    grouped = attention.fused_attention_intensity(1, context, 8) | by_hand(
        "2 * 8 * 8192 FLOP / ((8 + 8192) * 2 byte)"
    )
    absorbed = attention.latent_intensity(1, context, heads, latent, rotary) | by_hand(
        "2 * 128 * 8192 * 1088 FLOP / (2 byte * (8192 * 576 + 128 * 1088))"
    )
    drafted = attention.latent_intensity(2, context, heads, latent, rotary) | by_hand(
        "2 * 256 * 8192 * 1088 FLOP / (2 byte * (8192 * 576 + 256 * 1088))"
    )
    of_one_in_eight = attention.latent_intensity(1, context, heads // 8, latent, rotary) | by_hand(
        "2 * 16 * 8192 * 1088 FLOP / (2 byte * (8192 * 576 + 16 * 1088))"
    )
    ridge_h100 = H100.ridge_point("bf16") | by_hand("(989 / 3.35) FLOP/byte")
    ridge_b200 = B200.ridge_point("bf16") | by_hand("(2250 / 7.7) FLOP/byte")
    ridge_h200 = hardware.get("h200").ridge_point("bf16") | by_hand("(989 / 4.8) FLOP/byte")
    rows = (
        ("Prefill of 8 192 tokens, 8 heads share keys", 8 * context, prefill),
        ("Decode, each head its own keys", 1, attention.fused_attention_intensity(1, context)),
        ("Decode, 8 heads share keys", 8, grouped),
        ("Decode, latents, 128 heads", heads, absorbed),
        ("the same, checking one draft", 2 * heads, drafted),
        ("the same, TP over 8 devices", heads // 8, of_one_in_eight),
    ) | row_by_hand("Decode, 8 heads share keys | 8 | 7.99 FLOP/byte")


class FusedAttention(Claims):
    """Fused attention gains this much if both versions run at their roofs."""

    width = 64
    wide = 128
    crossings = 4 | by_hand("2 * 2")
    more_crossings = 8 | by_hand("4 + 2 * 2")
    high_claim = 12
    published = 7.6 | by_hand("7.6", "Dao et al. 2022, figure 1, the attention of GPT-2")

    a100_more_bound = attention.attention_fusion_gain(
        hardware.get("a100").ridge_point("fp16"), width, more_crossings
    ) | by_hand("2 * 4.781756", "twice 4.781756; 7.6 measured in Dao et al. 2022, figure 1")
    h100_wide_bound = attention.attention_fusion_gain(
        H100.ridge_point("fp16"), wide, crossings
    ) | by_hand("0.5 * 9.2257")
    quarter = quantity(25, "%")
    step = 1 / (1 - quarter.m_as("") + quarter.m_as("") / h100_wide_bound) | by_hand(
        "1 / (0.75 + 0.25 / 4.6129)"
    )


def _prompts(device: str, program: str, width: int) -> kernel_shares.Surface:
    """Return what was measured of prompts by a program on a device, for heads of a width."""
    narrow = "-narrow" if width <= FusedAttention.width else ""
    surface = kernel_shares.surface_of("prompts", device, program, f"bf16{narrow}")
    assert surface is not None
    return surface


class Exponentials(Claims):
    """The third roof, and what kernels reach that others measured."""

    devices = ("h100", "h200", "b200", "b300", "gb300")
    programs = ("sglang", "vllm", "tensorrt-llm")
    width = DENSE.heads * DENSE.head_width  # of all heads together
    header = (
        *("Device", "Heads of", "Exponentials over products", "In turn", "Overlapped"),
        *("SGLang", "vLLM", "TensorRT-LLM"),
    )
    special = 16  # a clock in an SM, of Hopper and of a B200

    h100 = _exponentials(H100) | by_hand("989 / (4 * 128 * 3.9)")
    b200 = _exponentials(B200) | by_hand("2250 / (4 * 128 * 5)")
    b300 = _exponentials(B300) | by_hand("2250 / (4 * 128 * 10.7)")
    by_clock = hardware.peak_from_clock(B200.clock, B200.units, quantity(special, "FLOP/cycle"))
    b200_by_clock = attention.exponentials_over_products(B200.peak("bf16"), by_clock, 128).to(
        "%"
    ) | by_hand("2250e12 / (4 * 128 * 16 * 148 * 1.965e9)")
    b200_fp8 = _exponentials(B200, "fp8") | by_hand("4500 / (4 * 128 * 5)")

    @classmethod
    @row_by_hand("B200 SXM | 128 | 88% | 53% | 100% | 53% | 52% | 46%")
    def rows(cls) -> Iterator[Row]:
        for name in cls.devices:
            device = hardware.get(name)
            roof = 2 * cls.width * PROMPT**2 / device.peak("bf16").m_as("FLOP/s")
            for width in (FusedAttention.wide, FusedAttention.width):
                ratio = _exponentials(device, width=width).m_as("")
                shares = (
                    percent(_prompts(name, program, width).share(PROMPT, roof))
                    for program in cls.programs
                )
                yield (
                    device.name.removeprefix("NVIDIA ").split(",")[0],
                    width,
                    percent(ratio),
                    percent(1 / (1 + ratio)),
                    percent(min(1.0, 1 / ratio)),
                    *shares,
                )

    worst_error = deferred(largest_error)(
        _prompts(*of)
        for of in product(devices, programs, (FusedAttention.wide, FusedAttention.width))
    ) | by_hand("0.097", "the largest of the errors of these surfaces in kernel_shares.csv")
    versions = "SGLang 0.5.14, vLLM 0.24.0 and TensorRT-LLM 1.3.0rc20"


def measured(name: str, rate: str = "tflops") -> Quantity:
    """The published rate of a kernel."""
    return quantity(reading.row(name).measured[rate], "TFLOP/s")


class FlashGenerations(Claims):
    """Each FlashAttention hides what held the one before, on the device that it was written for."""

    header = ("Version", "What it takes off the path", "Device", "Rate", "Of the peak")
    fa4 = quantity("1605 TFLOP/s")

    fa4_share = (fa4 / B200.peak("bf16")).to("%")
    fa2_h100 = measured("azure-nd-h100-v5-attn-2")
    fa2_a100 = measured("azure-nd-a100-v4-attn-2")
    fa3 = measured("fa3-peak", "tflops_fp16")
    # Of the peak of an A100, by its author.
    fa2_low, fa2_high = quantity(50, "%"), quantity(73, "%")
    fa2_share = (fa2_h100 / H100.peak("bf16")).to("%") | by_hand("327.9 / 989")
    rows = (
        ("1 [@dao2022flashattention]", "scores in memory", "A100", None, None),
        (
            "2 [@dao2023flashattention2]",
            "rescaling, idle SMs",
            "A100",
            fa2_a100,
            show((fa2_a100 / hardware.get("a100").peak("bf16")).to("%"), digits=2),
        ),
        ("2, on the next device", "", "H100", fa2_h100, show(fa2_share, digits=2)),
        (
            "3 [@shah2024flashattention]",
            "waiting for softmax: products of one block beside exponentials of another",
            "H100",
            fa3,
            show((fa3 / H100.peak("bf16")).to("%"), digits=2),
        ),
        (
            "4 [@zadouri2026flashattention4]",
            "exponentials: a share of them as polynomials on other units",
            "B200",
            fa4,
            show(fa4_share, digits=2),
        ),
    ) | row_by_hand("2, on the next device | … | H100 | 327.9 TFLOP/s | 33%")


class RunningSoftmax(Claims):
    """Three blocks of scores, one after the other, give the softmax of all of them at once."""

    blocks = ((1.0, 2.0), (4.0, 3.0), (2.0, 0.0))  # scores of one query, an example
    values = ((5.0, 1.0), (2.0, 4.0), (3.0, 8.0))  # one number of each value

    @classmethod
    def states(cls) -> list[tuple[float, float, float]]:
        """The largest score, the sum and the weighted sum after each block."""
        largest, total, weighted = -math.inf, 0.0, 0.0
        states = []
        for scores, values in zip(cls.blocks, cls.values, strict=True):
            risen = max(largest, *scores)
            kept = math.exp(largest - risen)
            powers = [math.exp(score - risen) for score in scores]
            total = kept * total + sum(powers)
            weighted = kept * weighted + sum(map(math.prod, zip(powers, values, strict=True)))
            largest = risen
            states.append((largest, total, weighted))
        return states


class TilesOfAttention(Claims):
    """Pace of four kernels on a B200, in the time of the products."""

    emulated = quantity(25, "%")  # of the exponentials, as polynomials: an assumption

    exponentials = Exponentials.b200.to("") | by_hand("2250 / (4 * 128 * 5)")
    in_memory = attention.attention_fusion_gain(
        B200.ridge_point("bf16"), FusedAttention.wide, FusedAttention.crossings
    ) | by_hand("4 * 2 * (2250 / 7.7) / (4 * 128)")
    left = ((1 - emulated) * exponentials).to("") | by_hand("0.75 * {exponentials}")


class Decode(Claims):
    """A token that is written reads all of the cache, in too few blocks unless it is split."""

    requests = 1
    context = PROMPT | by_hand("8192")
    sms = whole(H100.units)
    header = ("Context", "Requests", "At peak", "H100", "B200", "B300")
    points = ((1024, 1), (1024, 64), (8192, 1), (8192, 64), (131072, 1), (131072, 8))
    devices = ("h100", "b200", "b300")
    program = "vllm"
    version = "0.24.0"

    groups = HAND.kv_heads | by_hand("8")
    bytes_of_token = (transformer.kv_cache_per_token(HAND) * quantity("1 token") / HAND.layers).to(
        "kB"
    ) | by_hand("2 * 8 * 128 * 2 byte")
    read = (bytes_of_token * context).to("MB") | by_hand("8192 * 4096 bytes")
    at_peak = (read / H100.memory_bandwidth).to("us") | by_hand("33.554432 MB / 3.35 TB/s")
    busy = quantity(groups / sms, "").to("%") | by_hand("8 / 132")
    parts = math.ceil(sms / groups) | by_hand("ceil(132 / 8)")
    part = context // parts | by_hand("floor(8192 / 17)")
    sums = (parts * HAND.heads * (HAND.head_width + 2) * quantity("4 byte")).to("MB")
    sums_share = (2 * sums / read).to("%") | by_hand(
        "17 * 32 * 130 * 4 byte * 2 / (8192 * 4096 byte)"
    )

    @classmethod
    def share(cls, device: str, context: int, moved: Quantity) -> Quoted:
        """Return the share of the memory's bandwidth that the engine's kernel reached."""
        surface = kernel_shares.surface_of("caches", device, cls.program, "bf16")
        assert surface is not None
        roof = (moved / hardware.get(device).memory_bandwidth).m_as("s")
        return percent(surface.share(context, roof))

    @classmethod
    @row_by_hand("8192 | 1 | 10 µs | 39% | 31% | 32%")
    def rows(cls) -> Iterator[Row]:
        for context, requests in cls.points:
            moved = requests * context * cls.bytes_of_token
            yield (
                context,
                requests,
                show((moved / H100.memory_bandwidth).to("us"), digits=2),
                *(cls.share(device, context, moved) for device in cls.devices),
            )


class Latents(Claims):
    """Absorbed for few queries, expanded for many."""

    shape = (PROMPT, MIXTURE.heads, MIXTURE.kv_latent, MIXTURE.rotary_width)
    widths = (MIXTURE.head_width, MIXTURE.value_width)

    crossover = attention.latent_crossover(100_000, MIXTURE.kv_latent, *widths) | by_hand(
        "100000 * 131072 / (100000 * 768 + 131072)"
    )
    crossing = attention.latent_crossover(PROMPT, MIXTURE.kv_latent, *widths) | by_hand(
        "8192 * 131072 / (8192 * 768 + 131072)"
    )
    absorbed = attention.absorbed_flops(1, *shape, *widths)
    expanded = attention.expanded_flops(1, *shape, *widths)
    dearer = expanded / absorbed | by_hand("275.5 GFLOP / 2.3148 GFLOP")
    flashmla = measured("flashmla") | by_hand("660 TFLOP/s")
    flashmla_share = (flashmla / H100.peak("bf16")).to("%") | by_hand("660 / 989")
    cache = transformer.kv_cache_per_token(MIXTURE) | by_hand("61 * 576 * 2 byte/token")
    dense_cache = transformer.kv_cache_per_token(DENSE) | by_hand("80 * 2 * 8 * 128 * 2 byte/token")


def absorbed(kept: QuantityLike) -> Quantity:
    """Operations of all layers for a token that attends to so many."""
    layer = attention.absorbed_flops(1, kept, *Latents.shape[1:], *Latents.widths)
    work: Quantity = MIXTURE.layers * layer
    return work.to("TFLOP")


class KeptTokens(Claims):
    """A token reads more of a long context by one kind of attention than by another."""

    long = 131072
    chosen = SPARSE.index_topk | by_hand("2048", "the model's configuration")
    models = (
        (DENSE, "shared keys"),
        (MIXTURE, "latents"),
        (SPARSE, "chosen latents"),
        (HYBRID, "mostly states"),
    )

    saved = transformer.cache_read(MIXTURE, long) / transformer.cache_read(SPARSE, long) | by_hand(
        "131072 * 1152 / (2048 * 1152 + 131072 * 132)"
    )
    index = (
        attention.index_flops(long, SPARSE.layers, SPARSE.index_heads, SPARSE.index_head_width)
        * quantity("1 token")
    ).to("TFLOP") | by_hand("2 * 131072 * 61 * 64 * 128 FLOP")
    full = absorbed(long)
    sparse = absorbed(chosen) | by_hand("61 * 2 * 128 * (2048 * 1088 + 131072) * 1 FLOP")
    less_work = full / (index + sparse) | by_hand(
        "61 * 2 * 128 * (131072 * 1088 + 131072) * 1 FLOP / ({index} + {sparse})"
    )


class CompressedTokens(Claims):
    """DeepSeek-V4 compresses tokens of the cache and chooses among them, as its authors say."""

    parameters = quantity("1.6e12 param")
    active = quantity("49e9 param")
    context = quantity("1e6 token")
    cache = quantity(10, "%")
    operations = quantity(27, "%")


class AttentionQuestions(Claims):
    """The chapter's problems."""

    tensor_parallel = 8
    requests = 32
    context = 32768

    cache = (requests * context * transformer.kv_cache_per_token(DENSE) * quantity("1 token")).to(
        "GB"
    )
    of_device = (cache / tensor_parallel).to("GB") | by_hand("32 * 32768 * 327680 bytes / 8")
    time = (of_device / B200.memory_bandwidth).to("ms") | by_hand("42.94967 GB / 7.7 TB/s")
    fp8_time = (time / 2).to("ms") | by_hand("{time} / 2")

    b300_fp8 = _exponentials(B300, "fp8", 64) | by_hand("4500 / (4 * 64 * 10.7)")
    b300_overlapped = (1 / b300_fp8).to("%") | by_hand("1 / {b300_fp8}")
