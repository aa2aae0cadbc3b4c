"""Claims of the chapter "Serving": one engine on one server."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, ClassVar

from calc import hardware, inference, models, transformer
from calc.catalog.models import Transformer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import CHAT, DENSE, MACHINES, MIXTURE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, show
from calc.derivations.traces import whole
from calc.planning import plan
from calc.published import Comparison, closed_loops
from calc.steps.expectation import Step


def step(model: Transformer, devices: int, sequences: QuantityLike, context: int = 2048) -> Step:
    """A pass that writes with so many H100s, weights and caches in two bytes."""
    return inference.decode(model, hardware.get("h100"), context, sequences, devices)


def expected(
    model: Transformer, devices: int, sequences: QuantityLike, context: int = 2048
) -> Quantity:
    """Return vLLM's pass at measured rates: the token that such a context is followed by."""
    planned = plan(
        model,
        "dgx-h100",
        batch=sequences,
        prompt=context - 1,
        generated=1,
        devices=devices,
        software="vllm",
    )
    assert planned.expected is not None
    return planned.expected.time_per_token.to("ms")


def cache_of(model: Transformer, context: int) -> Quantity:
    """Keys and values of one conversation, in two bytes."""
    return transformer.kv_cache_per_token(model) * quantity(context, "token")


class OneGpu(Claims):
    """Llama 3 8B on one H100: weights bound one stream, the cache bounds many."""

    model = models.get("llama-3-8b")
    h100 = hardware.get("h100")
    context = 2048
    prompt = 1536
    answer = 512
    long_context = 8192
    short_context = 256 | by_hand("256")
    some = 64

    weights = inference.weights_read(model, 1).to("GB")
    cache = cache_of(model, context).to("GB")
    alone = step(model, 1, 1).lower.to("ms")
    some_lower = step(model, 1, some).lower.to("ms") | by_hand(
        "(2 * 7504658432 + 64 * 2048 * 131072) * 1 byte / 3.35 TB/s"
    )
    some_upper = step(model, 1, some).upper.to("ms") | by_hand(
        "{some_lower} + 64 * (2 * 7504658432 + 4 * 2048 * 32 * 32 * 128) * 1 FLOP / 989 TFLOP/s"
    )
    largest = inference.largest_batch(model, h100, context)
    full = step(model, 1, largest).lower.to("ms")
    full_rate = step(model, 1, largest).throughput | by_hand(
        "260 token / ((2 * 7504658432 + 260 * 2048 * 131072) * 1 byte / 3.35 TB/s)"
    )
    share_of_peak = (step(model, 1, largest).rate / h100.peak("bf16")).to("%") | by_hand(
        "260 * (2 * 7504658432 + 4 * 2048 * 32 * 32 * 128) / ((2 * 7504658432 +"
        " 260 * 2048 * 131072) / 3.35e12) / 989e12"
    )

    weights_time = (weights / h100.memory_bandwidth).to("ms") | by_hand(
        "2 * 7504658432 byte / 3.35 TB/s"
    )
    wall_rate = (quantity("1 token") * h100.memory_bandwidth / weights).to("token/s") | by_hand(
        "(3.35e12 / 15.00932e9) token/s"
    )
    memory_time = (h100.memory_capacity / h100.memory_bandwidth).to("ms") | by_hand(
        "80 * 2**30 byte / 3.35 TB/s"
    )
    cache_roof = (quantity("1 token") * h100.memory_bandwidth / cache).to("token/s") | by_hand(
        "(3.35e12 / 2**28) token/s"
    )
    long_cache_roof = (
        quantity("1 token") * h100.memory_bandwidth / cache_of(model, long_context)
    ).to("token/s") | by_hand("(3.35e12 / 2**30) token/s")
    compute_roof = (h100.peak("bf16") / transformer.forward_flops(model)).to("token/s") | by_hand(
        "(989e12 / 15.00932e9) token/s"
    )
    overtaken_tokens = (weights / transformer.kv_cache_per_token(model)).to("token") | by_hand(
        "(15.00932e9 / 131072) token"
    )
    overtaken = (weights / cache).to("") | by_hand("2 * 7504658432 / (131072 * 2048)")
    # At this batch half of what the caches' roof allows is had, in twice the shortest time.
    overtaken_rate = cache_roof / 2 | by_hand("(3.35e12 / 2**29) token/s")
    slower_after = (full / (2 * weights_time)).to("") | by_hand(
        "(2 * 7504658432 + 260 * 2048 * 131072) / (2 * 2 * 7504658432)"
    )
    gain_after = (full_rate / overtaken_rate).to("") | by_hand("10270.92 / 6239.861")


class Naive(Claims):
    """Sampling without a cache computes the whole text again for each token."""

    tokens = OneGpu.answer * OneGpu.prompt + OneGpu.answer * (OneGpu.answer - 1) // 2
    once = OneGpu.prompt + OneGpu.answer - 1
    times = tokens / once | by_hand("(512 * 1536 + 512 * 511 / 2) / 2047")
    least = (
        quantity(tokens, "token")
        * transformer.forward_flops(OneGpu.model)
        / OneGpu.h100.peak("bf16")
    ).to("s") | by_hand("(917248 * 15.00932e9 / 989e12) s")
    cached = (OneGpu.answer * OneGpu.alone).to("s") | by_hand("512 * 4.560523 ms")


class OneNode(Claims):
    """Llama 3 70B on eight H100s: reading costs more than writing once many write together."""

    model = models.get("llama-3-70b")
    h100 = hardware.get("h100")
    devices = 8
    context = OneGpu.context
    prompt = OneGpu.prompt
    answer = OneGpu.answer

    first = inference.prefill(model, h100, prompt, 1, devices).lower.to("ms") | by_hand(
        "(1536 * (2 * 68451041280 + 4 * 768.5 * 80 * 64 * 128) + 2 * 128256 * "
        "8192) * 1 FLOP / (8 * 989e12 FLOP/s)"
    )
    alone = step(model, devices, 1).lower.to("ms")
    largest = inference.largest_batch(model, h100, context, devices)
    full = step(model, devices, largest).lower.to("ms")
    overtaken = (inference.weights_read(model, 1) / cache_of(model, context)).to("") | by_hand(
        "2 * 69501714432 / (327680 * 2048)"
    )
    answer_alone = (answer * alone).to("s")
    answer_full = (answer * full).to("s")
    share_full = (answer_full / largest).to("ms") | by_hand("512 * 25.54472 ms / 813")
    read_rate = (quantity("1 request") / first).to("request/s")
    both_rate = (quantity("1 request") / (first + share_full)).to("request/s")


class OtherDecode(Claims):
    """A decode without a compute term promises more than the H100 can do."""

    model = models.get("llama-3-8b")
    h100 = hardware.get("h100")
    parameters = quantity("8.03B param")
    per_layer = quantity("0.01 ms")
    layers = model.layers
    context = 64
    sequences = 4096

    bytes_read = parameters * quantity("2 byte/param") + sequences * cache_of(model, context)
    theirs = (bytes_read / h100.memory_bandwidth + layers * per_layer).to("ms") | by_hand(
        "15.37067 ms"
    )
    implied = (sequences * parameters * quantity("2 FLOP/param") / theirs).to("PFLOP/s") | by_hand(
        "2 * 8.03e9 * 4096 FLOP / 15.37067 ms"
    )
    times = (implied / h100.peak("bf16")).to("") | by_hand("4.279694 / 0.989")
    ours = step(model, 1, sequences, context).lower.to("ms") | by_hand(
        "4096 * (2 * 7504658432 + 4 * 64 * 32 * 32 * 128) * 1 FLOP / 989 TFLOP/s"
    )


class StepParts(Claims):
    """Weights, caches and operations of a step against the batch, in two bytes and in one."""

    model = OneNode.model
    h100 = OneNode.h100
    devices = 8
    context = 2048
    most = 1900 | by_hand("1900")
    size = quantity("2 byte")
    short_size = quantity("1 byte")
    bandwidth = h100.memory_bandwidth * devices

    largest = OneNode.largest
    largest_short = inference.largest_batch(
        model, h100, context, devices, short_size, short_size
    ) | by_hand("floor((8 * 80 * 2**30 - 70553706496) / (1024 * 327680))")

    @classmethod
    def parts(cls, sequences: QuantityLike, size: Quantity) -> tuple[Any, Any, Any]:
        """Milliseconds of reading weights, of reading caches, and of arithmetic in BF16."""
        step = inference.decode(
            cls.model, cls.h100, cls.context, sequences, 8, weight_size=size, kv_size=size
        )
        weights = inference.weights_read(cls.model, sequences, size) / cls.bandwidth
        memory = step.parts["memory"]
        compute = step.parts["compute"]
        return weights.m_as("ms"), (memory - weights).m_as("ms"), compute.m_as("ms")

    # Arithmetic grows with the batch as the caches do, but the weights are there from the start.
    compute_one = step(model, devices, 1).parts["compute"]
    short_weights = inference.weights_read(model, 1, short_size) / bandwidth
    short_cache = cache_of(model, context) / 2 / bandwidth
    compute_bound = (short_weights / (compute_one - short_cache)).to("") | by_hand(
        "69.501714432e9 / 3.35e12 / ((2 * 69.501714432e9 + 4 * 2048 * 80 * 64 *"
        " 128) / 989e12 - 2048 * 163840 / 3.35e12)"
    )


class FewerBytes(Claims):
    """Smaller weights help one stream, a smaller cache helps many."""

    model = OneGpu.model
    h100 = OneGpu.h100
    context = 2048 | by_hand("2048")
    many = 256 | by_hand("256")
    four_bits = quantity("4.25 bit")

    @classmethod
    def time(
        cls, sequences: int, weights: QuantityLike = "2 byte", cache: QuantityLike = "2 byte"
    ) -> Quantity:
        step = inference.decode(
            cls.model, cls.h100, cls.context, sequences, weight_size=weights, kv_size=cache
        )
        return step.lower.to("ms")

    @classmethod
    @row_by_hand("Weights in four bits | 1.27 ms | 3.59 | 21.7 ms | 1.15 | 304")
    def rows(cls) -> Rows:
        """Step alone and of many, their gains, and the largest batch, by what is shortened."""
        cases = (
            ("Nothing", "2 byte", "2 byte"),
            ("Weights in four bits", cls.four_bits, "2 byte"),
            ("Cache in eight bits", "2 byte", "1 byte"),
            ("Both", cls.four_bits, "1 byte"),
        )
        return [
            (
                name,
                cls.time(1, weights, cache),
                cls.time(1) / cls.time(1, weights, cache),
                cls.time(cls.many, weights, cache),
                cls.time(cls.many) / cls.time(cls.many, weights, cache),
                inference.largest_batch(cls.model, cls.h100, cls.context, 1, weights, cache),
            )
            for name, weights, cache in cases
        ]


class FewerKeys(Claims):
    """Keys for each head would divide the roof of the caches by four."""

    of_all_heads = (OneGpu.cache_roof / 4).to("token/s") | by_hand("(3.35e12 / 2**30) token/s")
    latent = transformer.kv_cache_per_token(models.get("deepseek-v3"))
    grouped = transformer.kv_cache_per_token(OneGpu.model)
    latent_share = (latent / grouped).to("%") | by_hand("70272 / 131072")
    larger = (models.get("deepseek-v3").parameters / OneGpu.model.parameters).to("") | by_hand(
        "671026419200 / 8030261248"
    )


class LongConversations(Claims):
    """Problem 1: what a longer context leaves of a GPU."""

    model = OneGpu.model
    context = OneGpu.long_context

    largest = inference.largest_batch(model, hardware.get("h100"), context) | by_hand(
        "floor((80 * 2**30 - 2 * 8030261248) / 2**30)"
    )
    alone = step(model, 1, 1, context).throughput | by_hand(
        "3.35 TB/s / (2 * 7504658432 byte + 1 GiB) * 1 token"
    )
    rate = step(model, 1, largest, context).throughput
    each = rate / largest | by_hand("3.35 TB/s / (2 * 7504658432 byte + 65 GiB) * 1 token")
    share = (rate / OneGpu.full_rate).to("%") | by_hand("2567.73 / 10270.92")


ASKED: dict[str, Any] = {
    "prompt": CHAT.prompt,
    "generated": CHAT.generated,
    "devices": 8,
    "software": "vllm",
}


def between(low: Quantity, high: Quantity) -> str:
    """Both ends of an interval in milliseconds, to two digits."""
    return f"{show(low, 'ms', 2)} to {show(high, 'ms', 2)}"


class OneServer(Claims):
    """A token of the running examples on eight devices: at least, expected, and between what."""

    cases: tuple[tuple[Transformer, dict[str, Any]], ...] = (
        (DENSE, {}),
        (MIXTURE, {"weights": "1 byte", "dtype": "fp8"}),
    )
    servers = (MACHINES[0], MACHINES[1], MACHINES[3])
    devices = ASKED["devices"] | by_hand("8")
    prompt = CHAT.prompt | by_hand("1024")
    answer = CHAT.generated | by_hand("1024")
    batches = (1, 64, 256)

    @classmethod
    @row_by_hand("Llama 3.1 70B | H200 | 256 | 7 ms | 19 ms | 15 ms to 21 ms | 1368")
    def rows(cls) -> Rows:
        """Model, device, batch; a token at least, expected and its interval; what fits."""
        return [
            cls.row(model, machine.key, batch, formats)
            for model, formats in cls.cases
            for machine in cls.servers
            for batch in cls.batches
        ]

    @classmethod
    def row(cls, model: Transformer, machine: str, batch: int, formats: dict[str, Any]) -> Row:
        planned = plan(model, machine, batch=batch, **ASKED, **formats)
        around = planned.interval("time_per_token")
        assert planned.expected is not None
        assert around is not None
        return (
            model.name,
            planned.device.key.upper().split("-")[0],
            batch,
            planned.time_per_token.lower.to("ms"),
            planned.expected.time_per_token.to("ms"),
            between(*around),
            whole(planned.largest_batch),
        )


@deferred
def loop(name: str) -> Comparison:
    """A published closed loop of that id, beside what is expected of it."""
    (row,) = (row for row in closed_loops.rows() if row.id == name)
    return closed_loops.predict(row)


def times_of(compared: Comparison) -> tuple[Quantity, str, Quantity, Quantity]:
    """A token as expected, between what, and as measured; and the signed error."""
    prediction, interval = compared.prediction, compared.interval
    assert prediction is not None
    assert prediction.expected is not None
    assert interval is not None
    assert compared.error is not None
    lower, expected = (
        quantity(time, "s").to("ms") for time in (prediction.lower, prediction.expected)
    )
    return (
        expected,
        between(max(interval.low * expected, lower), interval.high * expected),
        quantity(compared.measured, "s").to("ms"),
        quantity(round(100 * compared.error), "%"),
    )


OF_APRIL = "2026_04_06_llama_3_1_70b_h200_sxm_vllm_fp8_agg_1024x1024_c64_tp"


class Loops(Claims):
    """Clients who ask again and again, with 64 at work: what was measured and expected."""

    clients = 64
    cases = (
        (
            "Llama 3.1 70B, FP8",
            "vLLM",
            "2026_04_06_llama_3_1_70b_h200_sxm_vllm_fp8_agg_1024x1024_c64_tp8_ep1_685",
        ),
        ("DeepSeek-R1, FP8", "TensorRT-LLM", "dsr1_h200_trtllm_fp8_agg_1024x1024_c64_cfg83"),
        ("DeepSeek-R1, FP8", "TensorRT-LLM", "dsr1_b200_trtllm_fp8_agg_1024x1024_c64_cfg75"),
        ("DeepSeek-R1, NVFP4", "TensorRT-LLM", "dsr1_b200_trtllm_fp4_agg_1024x1024_c64_cfg91"),
        ("DeepSeek-R1, NVFP4", "SGLang", "dsr1_b200_sglang_fp4_agg_1024x1024_c64_cfg99"),
    )

    count = len(cases) | by_hand("1 + 2 + 2")
    outside = deferred(sum)(not loop(name).inside for *_, name in cases) | by_hand(
        "floor(18.85 / 17.77) + floor(22.76 / 19.26)",
        "18.85 ms is beyond 1.201 times 14.80, and 22.76 beyond 1.357 times 14.19",
    )

    @classmethod
    @row_by_hand("DeepSeek-R1, NVFP4 | B200 | SGLang | 14 ms | 12 ms to 19 ms | 23 ms | 61%")
    def rows(cls) -> Rows:
        """Model and format, device, engine; a token expected and measured; the error."""
        return [
            (model, "H200" if "_h200_" in name else "B200", engine, *times_of(loop(name)))
            for model, engine, name in cls.cases
        ]


class TensorDegree(Claims):
    """More H200s serve 64 clients of Llama 3.1 70B in FP8 faster, and each of them writes less."""

    _numbers = ((1, 730), (2, 683), (4, 628), (8, 685))
    loops: ClassVar[dict[int, Comparison]] = {
        devices: loop(f"{OF_APRIL}{devices}_ep1_{number}") for devices, number in _numbers
    }
    clients = 64
    most = 8
    limit = quantity("20 ms")

    @classmethod
    @row_by_hand("4 | 20 ms | 16 ms to 22 ms | 16 ms | −18% | 2.8 ms | 1000 tokens/s")
    def row(cls, devices: int) -> Row:
        """Devices; a token expected and measured; messages of it; tokens a second of a device."""
        compared = cls.loops[devices]
        assert compared.prediction is not None
        parts = compared.prediction.parts or {}
        messages = quantity(parts.get("tensor", 0.0), "s").to("ms") if devices > 1 else None
        rate = quantity(cls.clients / devices / compared.measured, "token/s")
        return (devices, *times_of(compared), messages, rate)

    faster = loops[1].measured / loops[8].measured | by_hand(
        "37.438 / 12.734", "37.44 over 12.73 ms, rows of closed_loops.csv"
    )
    dearer = 8 / faster | by_hand("8 / 2.940003")
    of_eight = quantity(loops[8].measured, "s").to("ms") | by_hand(
        "12.734 ms", "the row of closed_loops.csv"
    )
    half = quantity(loops[4].measured, "s").to("ms") | by_hand(
        "16.069 ms", "the row of closed_loops.csv"
    )
    _gains = deferred(tuple)(
        few.measured / many.measured - 1 for few, many in pairwise(loops.values())
    )
    least_gain = quantity(100 * deferred(min)(_gains), "%") | by_hand(
        "16.069 / 12.734 - 1", "16.069 over 12.734 ms, rows of closed_loops.csv, less 1"
    )
    most_gain = quantity(100 * deferred(max)(_gains), "%") | by_hand(
        "37.438 / 22.707 - 1", "37.438 over 22.707 ms, rows of closed_loops.csv, less 1"
    )
    _sooner = deferred(tuple)(-(compared.error or 0.0) for compared in loops.values())
    least_sooner = quantity(round(100 * deferred(min)(_sooner)), "%") | by_hand(
        "(floor(100 * (1 - 37.438 / 44.93) + 0.5)) * 1 %",
        "one less 37.438 ms of closed_loops.csv over the 44.93 that the parts sum up to",
    )
    most_sooner = quantity(round(100 * deferred(max)(_sooner)), "%") | by_hand(
        "(floor(100 * (1 - 22.707 / 28.5346) + 0.5)) * 1 %",
        "one less 22.707 ms of closed_loops.csv over the 28.5346 that the parts sum up to",
    )


class PagedCache(Claims):
    """Blocks waste a part of one block; a reserved context wastes most of itself."""

    block = 16
    lengths = (70, 25, 90)  # of three sequences, an example
    longest = 128

    tokens = sum(lengths)
    blocks = tuple(map(math.ceil, (lengths[0] / block, lengths[1] / block, lengths[2] / block)))
    reserved = (100 * tokens / (longest * len(lengths)) * quantity("1 %")).to("%") | by_hand(
        "(70 + 25 + 90) / (3 * 128)"
    )
    paged = (100 * tokens / (block * sum(blocks)) * quantity("1 %")).to("%") | by_hand(
        "(70 + 25 + 90) / (16 * (5 + 2 + 6))"
    )


class Batching(Claims):
    """A slot that is filled as soon as it is free works; one that waits for its batch idles."""

    slots = 4
    answers = (3, 9, 5, 7, 4, 8, 6, 6)  # steps of each answer, an example
    count = len(answers) | by_hand("8")

    @classmethod
    def fixed(cls) -> list[tuple[int, int, int]]:
        """Slot, first step and steps of each answer, where a batch waits for its longest."""
        batches, start = [], 0
        for first in range(0, len(cls.answers), cls.slots):
            batch = cls.answers[first : first + cls.slots]
            batches += [(slot, start, steps) for slot, steps in enumerate(batch)]
            start += max(batch)
        return batches

    @classmethod
    def continuous(cls) -> list[tuple[int, int, int]]:
        """Slot, first step and steps of each answer, where the next one takes a free slot."""
        free = [0] * cls.slots
        batches = []
        for steps in cls.answers:
            slot = free.index(min(free))
            batches.append((slot, free[slot], steps))
            free[slot] += steps
        return batches

    @classmethod
    def steps(cls, run: list[tuple[int, int, int]]) -> int:
        """Return the steps until the last answer is written."""
        return max(start + steps for _, start, steps in run)
