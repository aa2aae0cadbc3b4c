"""Claims of the chapter "Drafts and pools": drafts, chunks, and two pools."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from calc import hardware, inference, machines, models, serving, speculation, transformer
from calc.catalog.models import Transformer
from calc.core.units import Quantity, QuantityLike, quantity
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import MIXTURE
from calc.derivations.experts_chapter import expected
from calc.derivations.ledger import Claims
from calc.derivations.quoted_digits import rounded
from calc.derivations.quoting import Row, Rows
from calc.derivations.service_under_load import Prefixes
from calc.derivations.serving_chapter import OneGpu, OneNode, expected as expected_token, step
from calc.derivations.traces import replaced, whole
from calc.steps.expectation import Step
from calc.steps.job import Formats, Job, Layout

SERVER = machines.get("dgx-h100")
H200 = hardware.get("h200")
NODE = Job(OneNode.model, SERVER, Layout(tensor=OneNode.devices))


@deferred
def mixed(chunk: int, sequences: int = 64) -> Step:
    """A step of Llama 3 70B on eight H100s that writes, and reads a chunk of a prompt."""
    return inference.mixed_step(NODE, sequences, OneNode.context, chunk)


def checked(step: Step, drafted: int) -> Quantity:
    """The bound of a step that also checks so many drafted tokens of each sequence."""
    compute = step.parts["compute"] * (drafted + 1)
    longer: Step = replaced(step, parts=step.parts | {"compute": compute})
    return longer.lower


EXPECTED = "expected times as recorded"


class Chunks(Claims):
    """A prompt in one piece stops all streams; in chunks it slows them a little, and longer."""

    sequences = 64
    prompt = 8192
    limit = quantity("50 ms")
    chunks = (0, 256, 512, 1024, 2048, 8192)
    small = 512

    calm = expected(mixed(0)) | no_hand(
        "15.31401 ms", "a step that the library expects, of kernels on measured surfaces"
    )
    stall = expected(mixed(prompt)) | no_hand(
        "341.5501 ms", "a step that the library expects, of kernels on measured surfaces"
    )
    _largest = deferred(inference.largest_chunk)(NODE, limit, sequences, OneNode.context)
    most = _largest[0] | by_hand(
        "floor(sqrt((2 * 68451041280 + 2 * 655360)**2 + 8 * 655360 * 50e-3 * "
        "7.912e15 - 8 * 655360 * 64 * 2 * 69501714432 - 8 * 655360 * 64 * 4 * "
        "2048 * 655360) / (4 * 655360) - (2 * 68451041280 + 2 * 655360) / (4 * "
        "655360))"
    )
    most_expected = _largest[1] | no_hand(
        "832", "the largest chunk for which a step that the library expects keeps the limit"
    )
    rereads = serving.chunk_rereads(prompt, small)
    reread_share = (rereads / quantity(prompt, "token")).to("") | by_hand("(16 - 1) / 2")

    @classmethod
    @row_by_hand("512 | 10.1 ms | 36.6 ms | 586 ms | 14 000 tokens/s")
    def row(cls, chunk: int) -> Row:
        """Chunk; step by the bound and as expected; time of the prompt, and its rate."""
        step = mixed(chunk)
        times = step.lower.to("ms"), expected(step)
        if not chunk:
            return (chunk, *times, None, None)
        whole = (cls.prompt / chunk * times[1]).to("ms")
        return (chunk, *times, whole, (quantity(cls.prompt, "token") / whole).to("token/s"))


class Timeline(Claims):
    """A stream waits for a prompt that is read whole, less in chunks, and not on another server."""

    before = 4  # steps that are drawn before the prompt comes
    end = 600  # ms

    step = Chunks.calm.m_as("ms")
    whole = Chunks.stall.m_as("ms")
    chunk = expected(mixed(Chunks.most_expected)).m_as("ms")
    chunks = Chunks.prompt / Chunks.most_expected
    ports = SERVER.ports * OneNode.devices
    cache = transformer.kv_cache(OneNode.model.with_context(Chunks.prompt), Chunks.prompt)
    sent = (cache / ports).m_as("ms")


class Pools(Claims):
    """Prompts and answers on devices of their own: how many of each, and what moves between."""

    day = quantity("1 day")
    tokens_in = quantity("608e9 token")
    tokens_out = quantity("168e9 token")
    rate_in = Prefixes.rate_of_deepseek
    rate_out = quantity("14800 token/s")
    nodes = quantity("226.75")

    reading = (tokens_in / day / rate_in).to("") | by_hand("608e9 / (86400 * 73700)")
    writing = (tokens_out / day / rate_out).to("") | by_hand("168e9 / (86400 * 14800)")
    ratio = serving.pool_ratio(tokens_in, tokens_out, rate_in, rate_out) | by_hand(
        "95.4816 / 131.382"
    )

    moved = (OneNode.prompt * quantity("1 token") * Prefixes.per_token).to("MB") | by_hand(
        "1536 * 327680 bytes"
    )
    moving = (moved / Prefixes.carried).to("ms") | by_hand("503.316 MB / 400 GB/s")


@deferred
def largest_batch(limit: Quantity, prompts: float) -> int:
    """Sequences of a step within the limit that also reads so many tokens for each, by halving."""

    def too_long(batch: int) -> bool:
        return bool(expected(mixed(round(prompts * batch), batch)) > limit)

    return bisect_left(range(814), True, lo=1, key=too_long) - 1


class MixedOrApart(Claims):
    """Servers that do both take fewer requests within a limit of a token than two pools do."""

    limit = quantity("50 ms")
    prompts = OneNode.prompt / OneNode.answer  # tokens to read for each that is written

    mixed_batch = largest_batch(limit, prompts)
    apart_batch = largest_batch(limit, 0)
    mixed_rate = (quantity(mixed_batch, "request") / OneNode.answer / limit).to(
        "request/s"
    ) | by_hand("193 request / (512 * 50 ms)")
    decode_rate = (quantity(apart_batch, "token") / limit).to("token/s")
    first = expected(inference.prefill(OneNode.model, SERVER, OneNode.prompt, 1, OneNode.devices))
    prefill_rate = (quantity(OneNode.prompt, "token") / first).to("token/s")
    ratio = serving.pool_ratio(OneNode.prompt, OneNode.answer, prefill_rate, decode_rate) | by_hand(
        "74.16265 ms / (512 * 50 ms / 576)", EXPECTED
    )
    apart_rate = (decode_rate / quantity(OneNode.answer, "token/request") / (1 + ratio)).to(
        "request/s"
    )
    gain = (apart_rate / mixed_rate).to("") | by_hand("8.431201 / 7.539063")
    kept = (mixed_rate / OneNode.both_rate).to("%") | by_hand(
        "{mixed_rate} * ({OneNode.first} + 16.0872 ms) / 1 request"
    )


class Speculation(Claims):
    """Llama 3 8B drafts for Llama 3 70B: a gain for few users, a loss for many."""

    large = OneNode.model
    draft = OneGpu.model
    devices = 8
    drafted = 4
    acceptance = quantity("70%")

    cost = (step(draft, devices, 1).lower / step(large, devices, 1).lower).to("") | by_hand(
        "15.27775e9 / 139.6748e9"
    )
    tokens = speculation.speculative_tokens(acceptance, drafted)
    smaller = draft.multiplied_parameters / large.multiplied_parameters
    operations = speculation.speculative_operations(acceptance, drafted, smaller) | by_hand(
        "(5 + 4 * 7504658432 / 69501714432) / 2.7731"
    )
    expected_cost = (expected_token(draft, devices, 1) / expected_token(large, devices, 1)).to(
        ""
    ) | by_hand("2.062392 / 9.358113")
    expected_gain = speculation.speculative_speedup(acceptance, drafted, expected_cost) | by_hand(
        "(1 - 0.7**5) / (1 - 0.7) / (1 + 4 * {expected_cost})"
    )

    @classmethod
    def speedup(cls, sequences: QuantityLike) -> Any:
        """Return the gain with the roofs of checking and drafting, which one stream's law omits."""
        plain = step(cls.large, cls.devices, sequences)
        draft = step(cls.draft, cls.devices, sequences).lower
        check = checked(plain, cls.drafted)
        return (cls.tokens * plain.lower / (check + cls.drafted * draft)).m_as("")


class FullMemory(Claims):
    """Drafts for a full memory, at the roofs: what a head gains, and a model of its own."""

    acceptance = Speculation.acceptance
    drafted = Speculation.drafted
    tokens = Speculation.tokens
    cases = (
        (models.get("llama-3-1-70b"), 8, 2048, 1),
        (models.get("llama-3-1-70b"), 8, 2048, 256),
        (models.get("llama-3-1-70b"), 8, 8192, 256),
        (models.get("llama-3-1-70b"), 8, 8192, 0),
        (models.get("llama-3-8b"), 1, 2048, 0),
    )

    @classmethod
    @row_by_hand("Llama 3.1 70B | 8 | 8192 | 256 | 2.2 | 1.1")
    def row(cls, index: int) -> Row:
        """Model, devices, context, batch; the gain by a head, and by a model of 8B parameters."""
        model, devices, context, batch = cls.cases[index]
        batch = batch or whole(inference.largest_batch(model, H200, context, devices))
        small = None if model == OneGpu.model else cls.gain(index, batch, OneGpu.model)
        head = replaced(model, layers=1)  # a layer of the model, and its output matrix
        return (model.name, devices, context, batch, cls.gain(index, batch, head), small)

    @classmethod
    def gain(cls, index: int, batch: int, draft: Transformer, drafted: int = drafted) -> Quantity:
        """Tokens of a pass over the time of its check and its drafts, in steps."""
        model, devices, context, _ = cls.cases[index]
        plain = inference.decode(model, H200, context, batch, devices)
        passes = drafted * inference.decode(draft, H200, context, batch, devices).lower
        tokens = speculation.speculative_tokens(cls.acceptance, drafted)
        return (tokens * plain.lower / (checked(plain, drafted) + passes)).to("")


class GainByLength(Claims):
    """The roof that binds the check decides how many tokens a head should draft."""

    lengths = (1, 2, 3, 4)
    head = replaced(models.get("llama-3-1-70b"), layers=1)

    @classmethod
    @row_by_hand("2048 | 256 | 1.45 | 1.24 | 1.07 | 0.936")
    def rows(cls) -> Rows:
        """Context and batch, and the gain by drafted tokens, on eight H200s."""
        return [
            (
                FullMemory.cases[index][2],
                FullMemory.row(index)[3],
                *(
                    FullMemory.gain(index, whole(FullMemory.row(index)[3]), cls.head, drafted)
                    for drafted in cls.lengths
                ),
            )
            for index in range(4)
        ]

    _short = 256
    one = FullMemory.gain(1, _short, head, 1) | by_hand(
        "1.7 * (2 * 69501714432 + 256 * 2048 * 327680) / 38.4e12 / (2 * 256 "
        "* (2 * 69501714432 + 4 * 2048 * 655360) / 7.912e15 + (2 * "
        "855638016 + 2 * 128256 * 8192 + 256 * 2048 * 4096) / 38.4e12)"
    )


class FullMemoryGain(Claims):
    """Gains for which the table is quoted, and the gain by the roofs for one request."""

    alone = quantity(Speculation.speedup(1), "") | by_hand("2.7731 / (1 + 4 * {Speculation.cost})")
    few = FullMemory.row(0)[4] | by_hand(
        "2.7731 * (2 * 69501714432 + 2048 * 327680) / (2 * 69501714432 + 2048 *"
        " 327680 + 4 * (2 * 855638016 + 2 * 128256 * 8192 + 2048 * 4096))"
    )
    short = FullMemory.row(1)[4] | by_hand(
        "2.7731 * (2 * 69501714432 + 256 * 2048 * 327680) / 38.4e12 / (5 * 256 "
        "* (2 * 69501714432 + 4 * 2048 * 655360) / 7.912e15 + 4 * (2 * "
        "855638016 + 2 * 128256 * 8192 + 256 * 2048 * 4096) / 38.4e12)"
    )
    short_batch = FullMemory.row(1)[3] | by_hand("256")
    short_context = FullMemory.row(1)[2] | by_hand("2048")
    context = FullMemory.row(3)[2] | by_hand("8192")
    longer = FullMemory.cases[3][2] / FullMemory.cases[1][2] | by_hand("8192 / 2048")
    long = FullMemory.row(3)[4] | by_hand(
        "2.7731 * (2 * 69501714432 + 398 * 8192 * 327680) / 38.4e12 / (5 * 398 "
        "* (2 * 69501714432 + 4 * 8192 * 655360) / 7.912e15 + 4 * (2 * "
        "855638016 + 2 * 128256 * 8192 + 398 * 8192 * 4096) / 38.4e12)"
    )
    long_batch = FullMemory.row(3)[3] | by_hand(
        "floor((8 * 141 * 2**30 - 2 * 70553706496) / (8192 * 327680))"
    )
    small = FullMemory.row(3)[5] | by_hand(
        "2.7731 * (2 * 69501714432 + 398 * 8192 * 327680) / 38.4e12 / (5 * 398 "
        "* (2 * 69501714432 + 4 * 8192 * 655360) / 7.912e15 + 4 * (2 * "
        "7504658432 + 398 * 8192 * 131072) / 38.4e12)"
    )
    published = 2.51  # MagicDec, of Llama 3.1 8B at such batches
    published_from = 32
    published_to = 256


class DraftsOfMixtures(Claims):
    """Multi-token prediction of mixtures, as measured: tokens a second without and with it."""

    cases = (
        ("DeepSeek-V3", "SGLang, eight H200s, TP8", "1 request", 1.8, "[@sglang-deepseek-mtp]"),
        ("DeepSeek-V3", "SGLang, eight H200s, TP8", "32 requests", 1.5, "[@sglang-deepseek-mtp]"),
        (
            "DeepSeek-V3",
            "SGLang, 16 H200s, EP, contexts of 65 536",
            "2 a GPU",
            81.5 / 60.4,
            "[@lmsys2025mtp]",
        ),
        ("DeepSeek-V3.2", "vLLM, eight B300s, TP8", "1 request", 234 / 125, "[@vllm-tops-aa]"),
    )
    quoted = quantity(60, "%")  # of 81.5 over 51, as others repeat it
    of_overlap = 60.4 / 51 | by_hand("60.4 / 51")
    of_drafts = 81.5 / 60.4 | by_hand("81.5 / 60.4")
    in_large = 1 + quantity(14.2, "%").m_as("") | by_hand("1 + 14.2 / 100")
    lowest = min(case[3] for case in cases) | by_hand("81.5 / 60.4")
    highest = max(case[3] for case in cases) | by_hand("234 / 125")

    @classmethod
    @row_by_hand("… | vLLM, eight B300s, TP8 | 1 request | 1.9")
    def rows(cls) -> Rows:
        """Model, server, requests, the gain with its source."""
        return [
            (f"{model} {source}", server, requests, quantity(gain, ""))
            for model, server, requests, gain, source in cls.cases
        ]


class CheckOfAMixture(Claims):
    """A check of two tokens in place of one wakes more experts: by kernels on eight H200s."""

    job = Job(MIXTURE, machines.get("dgx-h200"), Layout(tensor=8), Formats("fp8", "1 byte"))
    acceptance = quantity("85%")
    tokens = speculation.speculative_tokens(acceptance, 1)

    @classmethod
    def gain(cls, sequences: int) -> Quantity:
        """Return the gain with one drafted token of no cost."""
        plain, check = (
            expected(inference.mixed_step(cls.job, sequences, 2048, 0, drafted=ahead))
            for ahead in (0, 1)
        )
        return speculation.drafting_gain(cls.tokens, plain, check)


class ChecksOfAMixture(Claims):
    """Drafts of a mixture gain by kernels too, at batches of the published gains."""

    requests = 32

    one = CheckOfAMixture.gain(1).to("") | by_hand("(1 + 0.85) * 8.236786 / 9.616873", EXPECTED)
    many = CheckOfAMixture.gain(requests).to("") | by_hand(
        "(1 + 0.85) * 21.863977 / 26.785924", EXPECTED
    )


class DraftLength(Claims):
    """Problem 3: how many tokens to draft."""

    acceptance = quantity("70%")
    cost = quantity("0.11")

    best = quantity(
        max(range(1, 20), key=lambda drafted: speculation.speculative_speedup(0.7, drafted, 0.11)),
        "",
    ) | by_hand(
        "1 + floor(1.795 / 1.532) + floor(1.905 / 1.795) + floor(1.926 / 1.905)"
        " + floor(1.898 / 1.926)"
    )
    best_gain = speculation.speculative_speedup(acceptance, best, cost) | by_hand("2.7731 / 1.44")
    eight = speculation.speculative_speedup(acceptance, 8, cost) | by_hand(
        "(1 - 0.7**9)/0.3 / 1.88"
    )


class MeasuredDrafts(Claims):
    """Published drafts yield more in a pass than arrives as speed."""

    rows = (
        ("EAGLE-3", "Llama 3.3 70B", 5.63, 4.11, "[@li2025eagle3]"),
        ("Multi-token prediction", "DeepSeek-V3", 1.875, 1.8, "[@deepseek2024v3]"),
    )
    places = tuple(range(len(rows)))
    low_acceptance = quantity("85%") | by_hand("85 %", "DeepSeek-AI 2024, section 5.4.3")
    high_acceptance = quantity("90%") | by_hand("90 %", "DeepSeek-AI 2024, section 5.4.3")
    branches = 2
    depth = 4
    acceptance = quantity("70%")

    chain = speculation.speculative_tokens(acceptance, depth) | by_hand("(1 - 0.7**5) / 0.3")
    tree = speculation.tree_tokens(acceptance, branches, depth) | by_hand("(1 - 0.91**5) / 0.09")

    @classmethod
    @row_by_hand("… | Llama 3.3 70B | 5.63 | 4.11 | 73%")
    def row(cls, index: int) -> Row:
        """Draft, model, tokens a pass, speedup, and the share that arrives."""
        draft, model, tokens, speedup, source = cls.rows[index]
        digits = min(len(f"{number:g}".replace(".", "")) for number in (tokens, speedup))
        arrived = rounded(quantity(100 * speedup / tokens, "%"), digits)
        return f"{draft} {source}", model, quantity(tokens, ""), quantity(speedup, ""), arrived


@dataclass(frozen=True)
class Head:
    """A head that drafts for Llama 3.1 8B: a layer, and an output of so many tokens."""

    name: str
    tokens: float
    """Tokens of a pass for each sequence, with three drafted, on MT-bench [vllm-eagle-acceptance].
    """
    vocabulary: int
    gains: tuple[float, ...]
    """Gains as measured on one H100 in SGLang, by batch [li2025eagle3]."""


EAGLE = Head("EAGLE", 2.29, 128_256, (1.40, 1.38, 1.23, 1.02, 0.93, 0.94, 0.88, 0.99, 0.99))
EAGLE_3 = Head("EAGLE-3", 2.79, 32_000, (1.81, 1.82, 1.62, 1.48, 1.39, 1.32, 1.38, 1.34, 1.38))


class DraftsByBatch(Claims):
    """A chain of three on one H100: the gain falls long before arithmetic binds."""

    model = models.get("llama-3-1-8b")
    drafted = 3
    context = 500  # about that of MT-bench's conversations
    batches = (2, 4, 8, 16, 24, 32, 48, 56, 64)

    few = batches[0] | by_hand("2", "the first batch of table 3 in Li et al. 2025")
    most = batches[-1] | by_hand("64", "the last batch of table 3 in Li et al. 2025")
    first = quantity(EAGLE_3.gains[0], "") | by_hand("1.81", "Li et al. 2025, table 3, batch 2")
    last = quantity(EAGLE_3.gains[-1], "") | by_hand("1.38", "Li et al. 2025, table 3, batch 64")
    first_eagle = quantity(EAGLE.gains[0], "")
    last_eagle = quantity(EAGLE.gains[-1], "")

    @classmethod
    def times(cls, head: Head, sequences: int) -> tuple[Step, Step, Step]:
        """Return the times of a step without drafts, of one that checks them, and of a head."""
        layer = replaced(
            cls.model, layers=quantity(1, ""), vocabulary=quantity(head.vocabulary, "")
        )
        whole, load = Job(cls.model, SERVER), (sequences, cls.context, 0)
        plain = inference.mixed_step(whole, *load)
        check = inference.mixed_step(whole, *load, drafted=cls.drafted)
        return plain, check, inference.mixed_step(Job(layer, SERVER), *load)

    @classmethod
    def gain(cls, head: Head, sequences: int) -> tuple[float, float]:
        """Return the gain by the bound, and at measured rates, without any work of the host."""
        steps = cls.times(head, sequences)
        least = [step.lower for step in steps]
        times = [expected(step) for step in steps]
        bound, kernels = (
            speculation.drafting_gain(head.tokens, plain, check, cls.drafted, draft).m_as("")
            for plain, check, draft in (least, times)
        )
        return bound, kernels

    @classmethod
    def rest(cls, head: Head, sequences: int) -> Quantity:
        """Time of a pass, as its measured gain implies, less that of its kernels."""
        plain, check, draft = (expected(step) for step in cls.times(head, sequences))
        gain = head.gains[cls.batches.index(sequences)]
        rest: Quantity = head.tokens * plain / gain - check - cls.drafted * draft
        return rest.to("ms")


class DraftsShort(Claims):
    """Kernels alone would make more of drafts than is measured."""

    few = quantity(DraftsByBatch.gain(EAGLE_3, DraftsByBatch.few)[1], "")
    many = quantity(DraftsByBatch.gain(EAGLE_3, DraftsByBatch.most)[1], "")
    few_eagle = quantity(DraftsByBatch.gain(EAGLE, DraftsByBatch.few)[1], "")
    many_eagle = quantity(DraftsByBatch.gain(EAGLE, DraftsByBatch.most)[1], "")
    error_few = (few / DraftsByBatch.first - 1).to("%") | by_hand(
        "2.79 * 5.487065 / (5.508296 + 3 * 0.2488577) / 1.81 - 1", EXPECTED
    )
    error_many = (many / DraftsByBatch.last - 1).to("%") | by_hand(
        "2.79 * 6.984194 / (8.520093 + 3 * 0.3012552) / 1.38 - 1", EXPECTED
    )
    rest_few = DraftsByBatch.rest(EAGLE_3, DraftsByBatch.few) | by_hand(
        "(2.79 * 5.487065 / 1.81 - 5.508296 - 3 * 0.2488577) ms", EXPECTED
    )
    rest_many = DraftsByBatch.rest(EAGLE_3, DraftsByBatch.most) | by_hand(
        "(2.79 * 6.984194 / 1.38 - 8.520093 - 3 * 0.3012552) ms", EXPECTED
    )


def served_by(servers: int, readers: int, ratio: Quantity) -> Quantity:
    """Requests that whole servers keep up with, over those of a division by the ratio."""
    exact = servers * ratio / (1 + ratio)
    return min(readers / exact, (servers - readers) / (servers - exact)).to("%")


class PoolProblem(Claims):
    """Problem 5: servers that read for each that writes, at SGLang's published rates."""

    times_as_long = 4
    prefill_rate = quantity("52300 token/s") | by_hand(
        "52.3e3 token/s", "SGLang Team 2025: 52.3k input tokens per second per node"
    )
    decode_rate = quantity("22300 token/s") | by_hand(
        "22.3e3 token/s", "SGLang Team 2025: 22.3k output tokens per second per node"
    )
    servers = 12

    ratio = serving.pool_ratio(times_as_long, 1, prefill_rate, decode_rate) | by_hand(
        "4 * 22.3 / 52.3"
    )
    exact = servers * ratio / (1 + ratio) | by_hand("12 * 1.705545 / 2.705545")
    readers = whole(exact.magnitude) | by_hand("floor(12 * 1.705545 / 2.705545)")
    writers = servers - readers | by_hand("12 - 7")
    served = served_by(servers, readers, ratio) | by_hand("7 / 7.564664")
    served_by_more = served_by(servers, readers + 1, ratio) | by_hand(
        "(12 - 8) / (12 - 12 * 1.705545 / 2.705545)"
    )
