"""What the chapter "Serving" quotes of chunks, prefixes, pools and measured drafts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from calc import hardware, inference, machines, models, queueing, roofline, serving, transformer
from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.precision import rounded
from calc.derivations.quoting import Row
from calc.derivations.serving import OneNode
from calc.laws.roofline import StepTime
from calc.steps.job import Job, Layout

SERVER = machines.get("dgx-h100")
NODE = Job(OneNode.model, SERVER, Layout(tensor=OneNode.devices))


def mixed(chunk: int, sequences: int = 64) -> StepTime:
    """A step of Llama 3 70B on eight H100s that writes, and reads a chunk of a prompt."""
    return serving.mixed_step(NODE, sequences, OneNode.context, chunk)


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
    most, most_expected = serving.largest_chunk(NODE, limit, sequences, OneNode.context)
    rereads = serving.chunk_rereads(prompt, small)
    reread_share = (rereads / quantity(prompt, "token")).to("")

    @classmethod
    def row(cls, chunk: int) -> Row:
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

    points = tuple(
        (float(row["tokens"]), float(row["hit_rate"])) for row in recorded.rows("prefix_hits.csv")
    )
    requests = 12031
    most = quantity(100 * points[-1][1], "%")
    gain = quantity(1 / (1 - points[-1][1]), "")
    computed = serving.computed_rate(rate_of_deepseek, hits_of_deepseek)
    read_rate = (quantity(OneNode.prompt, "token") / OneNode.first).to("token/s")
    made = serving.cache_rate(per_token, read_rate).to("GB/s")
    carried = (links * port).to("GB/s")

    @classmethod
    def row(cls, place: int) -> Row:
        """Tokens in the cache, their memory for Llama 3 70B, and the share found."""
        tokens, share = cls.points[place]
        cached = quantity(tokens, "token")
        return cached, (cached * cls.per_token).to("GB"), quantity(100 * share, "%")


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
    ratio = serving.pool_ratio(tokens_in, tokens_out, rate_in, rate_out)

    moved = (OneNode.prompt * quantity("1 token") * Prefixes.per_token).to("MB")
    moving = (moved / Prefixes.carried).to("ms")


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
    def row(cls, place: int) -> Row:
        """Draft, model, tokens a pass, speedup, and the share that arrives."""
        draft, model, tokens, speedup, source = cls.rows[place]
        digits = min(len(f"{number:g}".replace(".", "")) for number in (tokens, speedup))
        arrived = rounded(quantity(100 * speedup / tokens, "%"), digits)
        return f"{draft} {source}", model, quantity(tokens, ""), quantity(speedup, ""), arrived


@dataclass(frozen=True)
class Head:
    """A head that drafts for Llama 3.1 8B: a layer, and an output of so many tokens."""

    name: str
    tokens: float
    """Of a pass for each sequence, with three drafted, on MT-bench [vllm-eagle-acceptance]."""
    vocabulary: int
    gains: tuple[float, ...]
    """As measured on one H100 in SGLang, by batch [li2025eagle3]."""


EAGLE = Head("EAGLE", 2.29, 128_256, (1.40, 1.38, 1.23, 1.02, 0.93, 0.94, 0.88, 0.99, 0.99))
EAGLE_3 = Head("EAGLE-3", 2.79, 32_000, (1.81, 1.82, 1.62, 1.48, 1.39, 1.32, 1.38, 1.34, 1.38))


class DraftsByBatch:
    """A chain of three on one H100: the gain falls long before arithmetic binds."""

    model = models.get("llama-3-1-8b")
    drafted = 3
    context = 500  # about that of MT-bench's conversations
    batches = (2, 4, 8, 16, 24, 32, 48, 56, 64)

    few = batches[0]
    most = batches[-1]
    tokens = quantity(EAGLE_3.tokens, "")
    tokens_eagle = quantity(EAGLE.tokens, "")
    first = quantity(EAGLE_3.gains[0], "")
    last = quantity(EAGLE_3.gains[-1], "")
    first_eagle = quantity(EAGLE.gains[0], "")
    last_eagle = quantity(EAGLE.gains[-1], "")
    bound_from = serving.last_batch_for_drafts(
        roofline.critical_batch_by_weights(hardware.get("h100").ridge_point("bf16"), "2 byte"),
        drafted,
    )

    @classmethod
    def times(cls, head: Head, sequences: int) -> tuple[StepTime, StepTime, StepTime]:
        """Of a step without drafts, of one that checks them, and of a pass of the head."""
        layer = replace(cls.model, layers=quantity(1, ""), vocabulary=quantity(head.vocabulary, ""))
        whole, load = Job(cls.model, SERVER), (sequences, cls.context, 0)
        plain = serving.mixed_step(whole, *load)
        check = serving.mixed_step(whole, *load, drafted=cls.drafted)
        return plain, check, serving.mixed_step(Job(layer, SERVER), *load)

    @classmethod
    def gain(cls, head: Head, sequences: int) -> tuple[float, float]:
        """By the bound, and at measured rates, without any work of the host."""
        steps = cls.times(head, sequences)
        least = [step.lower for step in steps]
        times = [expected(step) for step in steps]
        bound, kernels = (
            serving.drafting_gain(head.tokens, plain, check, cls.drafted, draft).m_as("")
            for plain, check, draft in (least, times)
        )
        return bound, kernels

    @classmethod
    def rest(cls, head: Head, sequences: int) -> Quantity:
        """Time of a pass, as its measured gain implies, less that of its kernels."""
        plain, check, draft = (expected(step) for step in cls.times(head, sequences))
        gain = head.gains[cls.batches.index(sequences)]
        time: Quantity = head.tokens * plain / gain - check - cls.drafted * draft
        return time.to("ms")


class DraftsShort:
    """What kernels alone would make of it, over what is measured."""

    few = quantity(DraftsByBatch.gain(EAGLE_3, DraftsByBatch.few)[1], "")
    many = quantity(DraftsByBatch.gain(EAGLE_3, DraftsByBatch.most)[1], "")
    few_eagle = quantity(DraftsByBatch.gain(EAGLE, DraftsByBatch.few)[1], "")
    many_eagle = quantity(DraftsByBatch.gain(EAGLE, DraftsByBatch.most)[1], "")
    error_few = (few / DraftsByBatch.first - 1).to("%")
    error_many = (many / DraftsByBatch.last - 1).to("%")
    rest_few = DraftsByBatch.rest(EAGLE_3, DraftsByBatch.few)
    rest_many = DraftsByBatch.rest(EAGLE_3, DraftsByBatch.most)
    rest_few_eagle = DraftsByBatch.rest(EAGLE, DraftsByBatch.few)
    rest_many_eagle = DraftsByBatch.rest(EAGLE, DraftsByBatch.most)


class DraftsOfAMixture:
    """Tokens that are checked together wake experts: a mixture gains less, and may lose."""

    model = models.get("qwen3-30b-a3b")
    context = DraftsByBatch.context
    # Of EAGLE-3 in SGLang on so many H100s: sequences, tokens checked of each, tokens that a pass
    # yields, and tokens a second without and with drafts, as users measured them.
    four = tuple(
        (4, *row)
        for row in (
            *((1, 4, 2.017, 218.89, 170.35), (1, 8, 2.216, 218.89, 185.28)),
            *((1, 16, 2.542, 218.89, 185.64), (1, 64, 3.034, 218.89, 193.31)),
            *((4, 16, 2.556, 507.49, 476.37), (8, 16, 2.578, 677.14, 673.14)),
            *((32, 16, 2.560, 1128.30, 927.11), (64, 16, 2.553, 1237.84, 1307.95)),
        )
    )
    two = tuple(
        (2, *row)
        for row in (
            *((1, 4, 1.86, 222.47, 159.78), (1, 8, 2.20, 222.47, 172.99)),
            *((1, 4, 1.99, 222.47, 207.62), (1, 16, 2.52, 222.47, 191.90)),
            *((1, 12, 2.42, 222.47, 171.54), (1, 60, 3.2, 222.47, 177.5)),
            *((4, 4, 1.86, 566.21, 447.90), (4, 8, 2.27, 566.21, 426.46)),
        )
    )
    measured = (*four, *two)
    places = tuple(range(len(measured)))

    @classmethod
    def gain(cls, place: int) -> tuple[float, float, float]:
        """How many times a step is longer that checks, the gain of kernels, and as measured."""
        devices, sequences, checked, tokens, without, with_drafts = cls.measured[place]
        job = Job(cls.model, SERVER, Layout(tensor=devices))
        plain, check = (
            expected(serving.mixed_step(job, sequences, cls.context, 0, drafted=ahead))
            for ahead in (0, checked - 1)
        )
        gain = serving.drafting_gain(tokens, plain, check).m_as("")
        return (check / plain).m_as(""), gain, with_drafts / without

    @classmethod
    def row(cls, place: int) -> Row:
        """Devices, sequences, tokens checked, tokens a pass, longer, gain of kernels, measured."""
        return *cls.measured[place][:4], *cls.gain(place)


class DraftsOfAMixtureInAll:
    """What is measured falls short of kernels that check, with drafts for nothing."""

    checked = DraftsOfAMixture.measured[2][2]
    longer = quantity(DraftsOfAMixture.gain(2)[0], "")
    yielded = quantity(DraftsOfAMixture.measured[2][3], "")
    gain = quantity(DraftsOfAMixture.gain(2)[1], "")
    rows = len(DraftsOfAMixture.measured)
    gained = sum(DraftsOfAMixture.gain(place)[2] > 1 for place in DraftsOfAMixture.places)
    error = quantity(
        median(
            gain / real - 1 for _, gain, real in map(DraftsOfAMixture.gain, DraftsOfAMixture.places)
        ),
        "",
    ).to("%")


def served_by(servers: int, readers: int, ratio: Quantity) -> Quantity:
    """Requests that whole servers keep up with, over those of a division by the ratio."""
    exact = servers * ratio / (1 + ratio)
    share: Quantity = min(readers / exact, (servers - readers) / (servers - exact)).to("%")
    return share


class PoolProblem:
    """Problem 5: servers that read for each that writes, at SGLang's published rates."""

    times_as_long = 4
    prefill_rate = quantity("52300 token/s")
    decode_rate = quantity("22300 token/s")
    servers = 12

    ratio = serving.pool_ratio(times_as_long, 1, prefill_rate, decode_rate)
    ratio_by_hand = 1.6
    exact = servers * ratio / (1 + ratio)
    readers = int(exact.magnitude)
    writers = servers - readers
    served = served_by(servers, readers, ratio)
    served_by_more = served_by(servers, readers + 1, ratio)
