"""Serving as it is run: continuous batches, chunks of prompts, prefixes, two pools, and trees.

The laws take numbers. `mixed_step` puts a step together that writes for some sequences and reads a
chunk of a prompt beside them, and `largest_chunk` finds the chunk that keeps a limit on the time of
a token. `inference` has pure prefill and decode, and drafts in a chain; `queueing` what waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from calc.core.arguments import as_list, number, whole_number
from calc.core.elementwise import at_least_once, floor, maximum, sum_of_powers
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.steps.expectation import Step
from calc.steps.job import Job, Tokens
from calc.steps.timing import bounds, serving_step

LONGEST_CHUNK = 65536  # tokens: beyond what any engine reads in a step


@law
def static_batch_share(
    mean: Annotated[QuantityLike, "token", "L"], longest: Annotated[QuantityLike, "token", "L_max"]
) -> Annotated[Quantity, ""]:
    """Share of the slots of a static batch that write, until its longest answer is done.

    Equation: η = L / L_max

    Whoever is done early leaves a slot that nobody takes; a continuous batch refills it at the next
    step, which is 1 / η times the throughput at equal step times. L is the mean answer of a batch.

    Source: yu2022orca

    >>> print(static_batch_share("200 token", "1500 token").to("%"))
    13.33%
    """
    return mean / longest


@law
def chunk_within(
    limit: Annotated[QuantityLike, "s", "T"],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    operations: Annotated[QuantityLike, "FLOP/token", "F"],
    writing: Annotated[QuantityLike, "token", "B", NON_NEGATIVE] = 0,
) -> Annotated[Quantity, "token"]:
    """Tokens of a prompt that a step may read beside B that it writes, by arithmetic alone.

    Equation: p = max(0, ⌊T · R_peak / F⌋ − B)

    A step that reads prompts is bound by arithmetic. Attention over what was read before, which F
    may include, makes later chunks slower.

    Source: agrawal2024taming

    >>> print(chunk_within("50 ms", "7.9 PFLOP/s", "141 GFLOP/token", "128 token"))
    2673 token
    """
    left = floor(limit * peak / operations) - writing
    return maximum(left, 0 * left)


@law
def chunk_rereads(
    length: Annotated[QuantityLike, "token", "n", AT_LEAST_ONE],
    chunk: Annotated[QuantityLike, "token", "p", AT_LEAST_ONE],
) -> Annotated[Quantity, "token"]:
    """Tokens of the cache that the chunks of a prompt read again, one chunk after the other.

    Equation: D = max(0, n · (n / p − 1) / 2)

    Each chunk reads the caches of all before it: a prompt in one chunk reads none. Assumes n / p
    whole chunks.

    Source: agrawal2024taming

    >>> print(chunk_rereads("8192 token", "512 token"))
    61.44K token
    """
    again = length * (length / chunk - 1) / 2
    return maximum(again, 0 * again)


@law
def computed_rate(
    rate: Annotated[QuantityLike, "token/s", "r"],
    hit_rate: Annotated[QuantityLike, "", "h", FRACTION],
) -> Annotated[Quantity, "token/s"]:
    """Tokens of prompts that are computed, where a share of them is found in a prefix cache.

    Equation: r_comp = r · (1 − h)

    A published input rate that counts hits is this much arithmetic. Attention over the cached part
    remains.

    Source: deepseek-open-infra-day6

    >>> print(computed_rate("73700 token/s", "56.3%"))
    32.21K token/s
    """
    return rate * (1 - hit_rate)


@law
def cache_rate(
    kv_per_token: Annotated[QuantityLike, "byte/token", "m"],
    prefill_rate: Annotated[QuantityLike, "token/s", "r"],
) -> Annotated[Quantity, "byte/s"]:
    """Bandwidth at which a prefill makes caches: what a link needs to carry them away in time.

    Equation: BW = m · r

    A link or a store of at least this much moves a cache faster than computing it again, and sends
    it to another pool without holding up the prefill. It does not depend on the length.

    Source: zhong2024distserve

    >>> print(cache_rate("320 KiB/token", "28000 token/s"))
    9.175 GB/s
    """
    return kv_per_token * prefill_rate


@law
def pool_ratio(
    prompt: Annotated[QuantityLike, "token", "n_in"],
    answer: Annotated[QuantityLike, "token", "n_out"],
    prefill_rate: Annotated[QuantityLike, "token/s", "r_in"],
    decode_rate: Annotated[QuantityLike, "token/s", "r_out"],
) -> Annotated[Quantity, ""]:
    """Devices that read for each that writes, where prompts and answers have pools of their own.

    Equation: q = (n_in / r_in) / (n_out / r_out)

    The rates are those of a device of each pool within its limit, on TTFT or on TPOT, measured or
    expected: bounds are too high by a factor of its own for each pool. Hits in a prefix cache count
    as read where the rate counts them.

    Source: zhong2024distserve

    >>> print(pool_ratio(608, 168, "73700 token/s", "14800 token/s"))
    0.7268
    """
    return (prompt / prefill_rate) / (answer / decode_rate)


@law
def tree_tokens(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    branches: Annotated[QuantityLike, "", "b", AT_LEAST_ONE],
    depth: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Tokens that a pass yields with a draft that branches: one of b is accepted at each depth.

    Equation: n = (1 − a^(γ + 1)) / (1 − a) where a < 1, else γ + 1, a = 1 − (1 − α)^b

    A chain of depth γ has b = 1. Assumes that each branch is accepted on its own with probability
    α, as the second-best token of a draft is not: an upper bound for trees.

    Source: li2024eagle

    >>> print(tree_tokens(0.7, 1, 4), tree_tokens(0.7, 2, 4))
    2.773 4.177
    """
    return sum_of_powers(at_least_once(acceptance, branches), depth)


@law
def last_batch_for_drafts(
    critical_batch: Annotated[QuantityLike, "", "B*"],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Sequences from which checking drafts is bound by arithmetic, and no longer free.

    Equation: B = B* / (γ + 1)

    B* is the batch from which plain decoding is, short caches assumed; γ counts all tokens that are
    checked, of a tree its size.

    Source: leviathan2023fast

    >>> print(last_batch_for_drafts(295, 1), last_batch_for_drafts(295, 4))
    147.5 59
    """
    return critical_batch / (drafted + 1)


@law
def drafting_gain(
    tokens: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    step_time: Annotated[QuantityLike, "s", "T"],
    check_time: Annotated[QuantityLike, "s", "T_check"],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE] = 0,
    draft_time: Annotated[QuantityLike, "s", "T_draft", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, ""]:
    """How many times as fast a batch writes with drafts as without; below 1, slower.

    Equation: S = n · T / (T_check + γ · T_draft)

    Each sequence has n tokens of a pass on average, accepted in it alone; weights are read once for
    all tokens that are checked. T is a step of the batch without drafts, and γ passes of the draft
    follow one another, be it a small model or a module of the model's own, for multi-token
    prediction (MTP). Assumes that the host has no work between passes.

    Source: leviathan2023fast

    >>> print(drafting_gain(2.79, "6.98 ms", "8.52 ms", 3, "0.301 ms"))
    2.067
    """
    return tokens * step_time / (check_time + drafted * draft_time)


def mixed_step(
    job: Job,
    sequences: Annotated[QuantityLike, "", NON_NEGATIVE],
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    chunk: Annotated[QuantityLike, "", NON_NEGATIVE],
    done: Annotated[QuantityLike, "", NON_NEGATIVE] = 0,
    drafted: Annotated[QuantityLike, "", NON_NEGATIVE] = 0,
) -> Step:
    """A step that writes a token for each of so many sequences and reads a chunk of a prompt.

    `done` tokens of the prompt were read before, and are looked at. Weights are read once for both,
    which is what chunked prefill gains; everybody waits for the arithmetic of the chunk. Of each
    sequence so many `drafted` tokens are checked too: their caches are read once, and more of a
    mixture's experts are woken. `lower` takes published rates and overlaps all; `expected` those
    measured on the machine, and a program's own time. A context beyond what the model was made for
    is taken as it is.

    Source: agrawal2024taming

    >>> from calc import Job, Layout
    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=8))
    >>> for chunk in (0, 512, 2048):
    ...     step = mixed_step(job, 64, 2048, chunk)
    ...     print(chunk, step.lower, step.bound, step.expected)
    0 6.789 ms memory 15.31 ms
    512 10.07 ms compute 36.60 ms
    2048 37.30 ms compute 97.94 ms
    >>> print(mixed_step(job, 64, 2048, 0, drafted=3).expected)
    20.88 ms
    """
    return serving_step(*_mixed(job, sequences, context, chunk, done, drafted))


def _mixed(
    job: Job,
    sequences: QuantityLike,
    context: QuantityLike,
    chunk: QuantityLike,
    done: QuantityLike,
    drafted: QuantityLike = 0,
) -> tuple[Job, Tokens]:
    """The job, made to read that far, and the load of such a step."""
    Job.check(job)
    load = Tokens(
        number("sequences", sequences),
        number("context", context, 1),
        number("chunk", chunk),
        max(number("chunk", chunk), 1.0),
        number("done", done),
        number("drafted", drafted),
    )
    if not load.writing + load.reading:
        raise InputError("a step has sequences to write for, or a chunk to read; got 0 of both")
    return job.with_context(load.longest), load


def largest_chunk(
    job: Job,
    limit: Annotated[QuantityLike, "s"],
    sequences: Annotated[QuantityLike, "", NON_NEGATIVE],
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    done: Annotated[QuantityLike, "", NON_NEGATIVE] = 0,
) -> tuple[int, int]:
    """The longest chunk whose step keeps a limit on the time of a token: by bound, as expected.

    Found by halving, to the token. None at all, 0, where the step breaks the limit without one;
    the second is 0 too where nothing is expected.

    >>> from calc import Job, Layout
    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=8))
    >>> print(largest_chunk(job, "50 ms", 64, 2048))
    (2749, 832)
    """
    most = quantity(limit).to("s")

    def keeps(chunk: int, expected: bool) -> bool:
        mixed = _mixed(job, sequences, context, chunk, done)
        time = serving_step(*mixed).expected if expected else bounds(*mixed).lower
        return time is not None and bool(time <= most)

    def longest(expected: bool) -> int:
        low, high = 0, LONGEST_CHUNK
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if keeps(middle, expected) else (low, middle - 1)
        return low

    return longest(expected=False), longest(expected=True)


def prefix_hit_rate(requests: Iterable[Sequence[Any]], blocks: int) -> float:
    """Share of the blocks of prompts that a prefix cache holds, when requests come in this order.

    A request is the names of its blocks from the first on, as the hashes of a trace are. A block
    counts as found while all before it were; of so many blocks the one that was used last the
    longest ago makes room (LRU). It is Mooncake's cache, one for all; `PrefixCache` has tiers.

    >>> prefix_hit_rate([("system", "a"), ("system", "b"), ("other", "a")], 3)
    0.16666666666666666
    """
    cache = PrefixCache((whole_number("blocks", blocks),))
    hits = looked_up = 0
    for given in as_list("requests", requests):
        names = as_list("the blocks of a request", given)
        for name in names:
            _check_name(name)
        looked_up += len(names)
        hits += sum(cache.find(names))
    if not looked_up:
        raise InputError("a hit rate is that of requests with blocks; got none")
    return hits / looked_up


class PrefixCache:
    """Blocks by their names in tiers, so many in each: the last used move down, and then out (LRU).

    >>> cache = PrefixCache((1, 2))
    >>> cache.find("ab"), cache.find("abc"), cache.find("xb")
    ((0, 0), (1, 1), (0, 0))
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.tiers: list[dict[Any, None]] = [{} for _ in sizes]

    def holds(self, names: Iterable[Any]) -> int:
        """Blocks of a prompt that are there, from the first on without a gap."""
        count = 0
        for name in names:
            if not any(name in tier for tier in self.tiers):
                break
            count += 1
        return count

    def find(self, names: Sequence[Any], left: Sequence[Any] | None = None) -> tuple[int, ...]:
        """What a prompt finds in each tier; all its blocks, or those it has `left`, are kept."""
        reused = names[: self.holds(names)]
        counts = tuple(sum(name in tier for name in reused) for tier in self.tiers)
        for name in names if left is None else left:
            for tier in self.tiers:
                tier.pop(name, None)
            falling = name
            for size, tier in zip(self.sizes, self.tiers, strict=True):
                tier[falling] = None
                if len(tier) <= size:
                    break
                falling = next(iter(tier))
                del tier[falling]
        return counts


def _check_name(given: Any) -> None:
    """Refuse what cannot name a block, as a list cannot: a cache looks names up."""
    try:
        hash(given)
    except TypeError:
        raise InputError(
            f"a block is named by a number or a text; got {abbreviated(given)}"
        ) from None
