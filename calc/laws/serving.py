"""Serving as it is run: rates of batches, chunks of prompts, and pools that read or write."""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import floor, maximum
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike


@law
def tokens_per_second(
    sequences: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
    step_time: Annotated[QuantityLike, "s", "T"],
    tokens_each: Annotated[QuantityLike, "token", "n"] = 1,
) -> Annotated[Quantity, "token/s"]:
    """Rate at which a batch writes, all of its sequences together.

    Equation: R = B · n / T

    Source: pope2023efficiently

    >>> print(tokens_per_second(32, "10 ms"))
    3200 token/s

    Parameters
    ----------
    sequences
        sequences of the batch
    step_time
        time of a decode step
    tokens_each
        tokens that a step adds to each sequence
    """
    return sequences * tokens_each / step_time


@law
def answer_time(
    time_to_first_token: Annotated[QuantityLike, "s", "T_first", NON_NEGATIVE],
    tokens: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    time_per_token: Annotated[QuantityLike, "s", "T_token", NON_NEGATIVE],
) -> Annotated[Quantity, "s"]:
    """Time from a request's arrival to the last token of its answer.

    Equation: T = T_first + (n − 1) · T_token

    The first token comes of the prefill, with what it waited in a queue.

    Source: pope2023efficiently

    >>> print(answer_time("300 ms", 500, "20 ms"))
    10.28 s

    Parameters
    ----------
    time_to_first_token
        time from a request's arrival to the first token
    tokens
        tokens of the answer
    time_per_token
        time between two tokens of an answer
    """
    return time_to_first_token + (tokens - 1) * time_per_token


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

    Parameters
    ----------
    mean
        tokens of an answer, on average over the batch
    longest
        tokens of the longest answer of a batch
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

    Parameters
    ----------
    limit
        longest time of a step
    peak
        operations that the machine does in a second at most
    operations
        operations of a token of the prompt
    writing
        tokens that the step writes
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

    Parameters
    ----------
    length
        tokens of the prompt
    chunk
        tokens of a prompt that a step reads
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

    Parameters
    ----------
    rate
        tokens of prompts in a second, hits included
    hit_rate
        share of the tokens of prompts that are found in the cache
    """
    return rate * (1 - hit_rate)


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

    Parameters
    ----------
    prompt
        tokens of a prompt, on average
    answer
        tokens of an answer, on average
    prefill_rate
        tokens that a device of the pool for prompts reads in a second
    decode_rate
        tokens that a device of the pool for answers writes in a second
    """
    return (prompt / prefill_rate) / (answer / decode_rate)
