"""What the chapter "Serving" quotes of chunks, prefixes, pools and measured drafts."""

from __future__ import annotations

import csv
from typing import Any

from calc import hardware, inference, machines, models, queueing, roofline, serving, transformer
from calc.core.records import DATA
from calc.core.units import Quantity, quantity
from calc.derivations.serving import OneNode
from calc.roofline import StepTime

SERVER = machines.get("dgx-h100")


def mixed(chunk: int, sequences: int = 64) -> StepTime:
    """A step of Llama 3 70B on eight H100s that writes, and reads a chunk of a prompt."""
    return serving.mixed_step(
        OneNode.model, SERVER, sequences, OneNode.context, chunk, devices=OneNode.devices
    )


def expected(step: StepTime) -> Quantity:
    """What the step is expected to take."""
    assert step.expected is not None, step.not_expected
    return step.expected.to("ms")


class Chunks:
    """A prompt in one piece stops all streams; in chunks it slows them a little, and longer."""

    sequences = 64
    prompt = 8192
    limit = quantity("50 ms")
    chunks = (0, 256, 512, 1024, 2048, 8192)
    small = 512

    calm = expected(mixed(0))
    stall = expected(mixed(prompt))
    missed = (stall / calm).to("")
    most, most_expected = serving.largest_chunk(
        OneNode.model, SERVER, limit, sequences, OneNode.context, devices=OneNode.devices
    )
    rereads = serving.chunk_rereads(prompt, small)
    reread_share = (rereads / quantity(prompt, "token")).to("")

    @classmethod
    def row(cls, chunk: int) -> tuple[Any, ...]:
        """Chunk; step by the bound and as expected; time of the prompt, and its rate."""
        step = mixed(chunk)
        times = step.lower.to("ms"), expected(step)
        if not chunk:
            return (chunk, *times, None, None)
        whole = (cls.prompt / chunk * times[1]).to("ms")
        return (chunk, *times, whole, (quantity(cls.prompt, "token") / whole).to("token/s"))


class Timeline:
    """What a stream sees while a prompt is read: whole, in chunks, and on another server."""

    before = 4  # steps that are drawn before the prompt comes
    end = 600  # ms

    step = Chunks.calm.m_as("ms")
    whole = Chunks.stall.m_as("ms")
    chunk = expected(mixed(Chunks.most_expected)).m_as("ms")
    chunks = Chunks.prompt / Chunks.most_expected
    ports = SERVER.ports * OneNode.devices
    cache = transformer.kv_cache(OneNode.model.with_context(Chunks.prompt), Chunks.prompt)
    sent = (cache / ports).m_as("ms")


class Prefixes:
    """What a prefix cache finds, by its size, in a public trace of conversations."""

    per_token = transformer.kv_cache_per_token(OneNode.model)
    links = 8
    port = SERVER.ports.to("GB/s")
    hits_of_deepseek = quantity("56.3%")
    rate_of_deepseek = quantity("73700 token/s")

    with (DATA / "measured" / "prefix_hits.csv").open() as _file:
        points = tuple(
            (float(row["tokens"]), float(row["hit_rate"])) for row in csv.DictReader(_file)
        )
    requests = 12031
    most = quantity(100 * points[-1][1], "%")
    gain = quantity(1 / (1 - points[-1][1]), "")
    computed = serving.computed_rate(rate_of_deepseek, hits_of_deepseek)
    read_rate = (quantity(OneNode.prompt, "token") / OneNode.first).to("token/s")
    made = serving.cache_rate(per_token, read_rate).to("GB/s")
    carried = (links * port).to("GB/s")

    @classmethod
    def row(cls, place: int) -> tuple[Any, ...]:
        """Tokens in the cache, their memory for Llama 3 70B, and the share found."""
        tokens, share = cls.points[place]
        kept = quantity(tokens, "token")
        return kept, (kept * cls.per_token).to("GB"), quantity(100 * share, "%")


class Pools:
    """Prompts and answers on devices of their own: how many of each, and what moves between."""

    day = quantity("1 day")
    tokens_in = quantity("608e9 token")
    tokens_out = quantity("168e9 token")
    rate_in = Prefixes.rate_of_deepseek
    rate_out = quantity("14800 token/s")
    nodes = quantity("226.75")

    reading = (tokens_in / day / rate_in).to("")
    writing = (tokens_out / day / rate_out).to("")
    counted = reading + writing
    error = (counted / nodes - 1).to("%")
    ratio = serving.pool_ratio(tokens_in, tokens_out, rate_in, rate_out)

    moved = (OneNode.prompt * quantity("1 token") * Prefixes.per_token).to("MB")
    moving = (moved / Prefixes.carried).to("ms")
    cache_of_opt = (512 * quantity("1 token") * quantity(64 * 2 * 9216 * 2, "byte/token")).to("GiB")
    published = quantity("1.13 GiB")


def largest_batch(limit: Quantity, prompts: float) -> int:
    """Sequences of a step within the limit that also reads so many tokens for each, by halving."""
    low, high = 1, 813
    while low < high:
        middle = (low + high + 1) // 2
        keeps = expected(mixed(round(prompts * middle), middle)) <= limit
        low, high = (middle, high) if keeps else (low, middle - 1)
    return low


class MixedOrApart:
    """The same requests on servers that do both, and on two pools, within a limit of a token."""

    limit = quantity("50 ms")
    prompts = OneNode.prompt / OneNode.answer  # tokens to read for each that is written

    mixed_batch = largest_batch(limit, prompts)
    apart_batch = largest_batch(limit, 0)
    mixed_rate = (quantity(mixed_batch, "request") / OneNode.answer / limit).to("request/s")
    decode_rate = (quantity(apart_batch, "token") / limit).to("token/s")
    first = expected(inference.prefill(OneNode.model, SERVER, OneNode.prompt, 1, OneNode.devices))
    prefill_rate = (quantity(OneNode.prompt, "token") / first).to("token/s")
    ratio = serving.pool_ratio(OneNode.prompt, OneNode.answer, prefill_rate, decode_rate)
    apart_rate = (decode_rate / quantity(OneNode.answer, "token/request") / (1 + ratio)).to(
        "request/s"
    )
    gain = (apart_rate / mixed_rate).to("")


class FirstTokens:
    """Goodput of a pool that reads: the load at which nine in ten first tokens keep a limit."""

    limit = quantity("300 ms")
    beyond = quantity("10%")
    service = MixedOrApart.first

    kept = (1 - beyond).to("%")
    utilization = queueing.utilization_within(service, limit, beyond).to("%")
    goodput = (utilization * quantity("1 request") / service).to("request/s")
    tight = quantity("150 ms")


class MeasuredDrafts:
    """What published drafts yield in a pass, and what of it arrives as speed."""

    rows = (
        ("Draft model of 77M", "T5 11B, translation", 3.6, 3.4, "[@leviathan2023fast]"),
        ("Draft model of 68M", "Vicuna 13B", 2.27, 1.93, "[@li2025eagle3]"),
        ("n-gram of the prompt", "Vicuna 13B", 1.63, 1.58, "[@li2025eagle3]"),
        ("Medusa", "Vicuna 13B", 2.59, 2.07, "[@li2025eagle3]"),
        ("EAGLE", "Vicuna 13B", 3.98, 3.07, "[@li2025eagle3]"),
        ("EAGLE-2", "Vicuna 13B", 4.83, 4.26, "[@li2025eagle3]"),
        ("EAGLE-3", "Vicuna 13B", 6.65, 5.58, "[@li2025eagle3]"),
        ("EAGLE-3", "Llama 3.3 70B", 5.63, 4.11, "[@li2025eagle3]"),
        ("Multi-token prediction", "DeepSeek-V3", 1.875, 1.8, "[@deepseek2024v3]"),
    )
    places = tuple(range(len(rows)))
    low_acceptance = quantity("85%")
    high_acceptance = quantity("90%")
    branches = 2
    depth = 4
    acceptance = quantity("70%")

    low_tokens = inference.speculative_tokens(low_acceptance, 1)
    high_tokens = inference.speculative_tokens(high_acceptance, 1)
    chain = inference.speculative_tokens(acceptance, depth)
    tree = serving.tree_tokens(acceptance, branches, depth)

    @classmethod
    def row(cls, place: int) -> tuple[Any, ...]:
        """Draft, model, tokens a pass, speedup, and the share that arrives."""
        draft, model, tokens, speedup, source = cls.rows[place]
        kept = quantity(100 * speedup / tokens, "%")
        return f"{draft} {source}", model, quantity(tokens, ""), quantity(speedup, ""), kept


class DraftsByBatch:
    """A chain of three on one H100: the gain falls long before arithmetic binds."""

    model = models.get("llama-3-1-8b")
    drafted = 3
    acceptance = quantity("80%")
    context = 500  # about that of MT-bench's conversations
    measured = (  # EAGLE-3 in SGLang, by batch
        *((2, 1.81), (4, 1.82), (8, 1.62), (16, 1.48), (24, 1.39)),
        *((32, 1.32), (48, 1.38), (56, 1.34), (64, 1.38)),
    )
    first = quantity(measured[0][1], "")
    last = quantity(measured[-1][1], "")
    most = measured[-1][0]

    tokens = inference.speculative_tokens(acceptance, drafted)
    bound_from = serving.last_batch_for_drafts(
        roofline.critical_batch_by_weights(hardware.get("h100").ridge_point("bf16"), "2 byte"),
        drafted,
    )

    @classmethod
    def gain(cls, sequences: int) -> tuple[float, float]:
        """By the bound, and at measured rates, with drafts and the host's work for nothing."""
        one = serving.mixed_step(cls.model, SERVER, sequences, cls.context, 0)
        checked = (cls.drafted + 1) * sequences
        # The tokens of a sequence share its cache, which is read once for all of them.
        shared = cls.context / (cls.drafted + 1)
        check = serving.mixed_step(cls.model, SERVER, checked, shared, 0)
        tokens = cls.tokens.m_as("")
        bound = tokens * (one.lower / check.lower).m_as("")
        return bound, tokens * (expected(one) / expected(check)).m_as("")


class DraftsShort:
    """What is measured over what kernels alone would make of it."""

    few = DraftsByBatch.measured[0][0]
    expected_few = quantity(DraftsByBatch.gain(few)[1], "")
    expected_many = quantity(DraftsByBatch.gain(DraftsByBatch.most)[1], "")
    error_few = (expected_few / DraftsByBatch.first - 1).to("%")
    error_many = (expected_many / DraftsByBatch.last - 1).to("%")


class PoolProblem:
    """Problem 5: servers that read for each that writes, at SGLang's published rates."""

    prompt = 2000
    answer = 500
    prefill_rate = quantity("52300 token/s")
    decode_rate = quantity("22300 token/s")
    servers = 12

    reading = (quantity(prompt, "token") / prefill_rate).to("ms")
    writing = (quantity(answer, "token") / decode_rate).to("ms")
    ratio = serving.pool_ratio(prompt, answer, prefill_rate, decode_rate)
    readers = quantity(round(servers * (ratio / (1 + ratio)).m_as("")), "")
    writers = servers - readers
