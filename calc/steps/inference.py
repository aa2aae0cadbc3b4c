"""Serving a language model: least and expected time of prefill and decode, batches, their price.

The laws take numbers. `prefill`, `decode` and `largest_batch` put them together for a model of
`calc.models` on devices of one kind that share the model evenly: roofs that no server exceeds, and
not a forecast. Devices of a machine of `calc.machines` add up their results twice a layer; those of
`calc.hardware` alone talk in no time. Caches are shared evenly, as if each were held once. Lengths
and batches may be arrays. The size of an element may be given by the name of its format, "INT8",
and that of weights by group of matrices too: "experts=mxfp4,others=bf16", or as "released".
"""

from __future__ import annotations

from typing import Annotated, Any

from calc.catalog import models
from calc.catalog.machines import Machine, device_of
from calc.catalog.models import Transformer
from calc.catalog.models.weights import Weights
from calc.core.arguments import check_shapes, whole_numbers
from calc.core.device import Device
from calc.core.elementwise import floor, maximum, of_each, smallest, sum_of_powers
from calc.core.errors import InputError, abbreviated, marked
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.networks import transformer
from calc.steps import device_memory, timing
from calc.steps.expectation import Step
from calc.steps.job import Formats, Job, Layout, Tokens


@law
def decode_traffic(
    weights: Annotated[QuantityLike, "byte", "W"],
    sequences: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "token", "c", NON_NEGATIVE],
    kv_per_token: Annotated[QuantityLike, "byte/token", "m", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that a decode step must read: the weights once, and each sequence's keys and values.

    Equation: D_vol = W + B · c · m

    The weights serve the whole batch; a cache serves its own sequence. Without a context only the
    weights are left. Activations weigh nothing beside either.

    Source: pope2023efficiently

    See also: inference.kv_cache_memory

    >>> print(decode_traffic("16 GB", 32, 4096, "128 KiB/token"))
    33.18 GB
    """
    return weights + sequences * context * kv_per_token


@law
def kv_cache_memory(
    sequences: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
    context: Annotated[QuantityLike, "token", "c", NON_NEGATIVE],
    kv_per_token: Annotated[QuantityLike, "byte/token", "m", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Memory of the keys and values of all sequences, without the weights: the cache alone.

    Equation: M = B · c · m

    Source: pope2023efficiently

    See also: inference.decode_traffic, inference.sequences_that_fit

    >>> print(kv_cache_memory(32, 4096, "128 KiB/token").to("GiB"))
    16 GiB
    """
    return sequences * context * kv_per_token


@law
def sequences_that_fit(
    memory: Annotated[QuantityLike, "byte", "M"],
    weights: Annotated[QuantityLike, "byte", "W"],
    context: Annotated[QuantityLike, "token", "c", AT_LEAST_ONE],
    kv_per_token: Annotated[QuantityLike, "byte/token", "m"],
    state: Annotated[QuantityLike, "byte", "S", NON_NEGATIVE] = "0 byte",
) -> Annotated[Quantity, ""]:
    """Whole sequences whose keys and values, and states, fit into memory beside the weights.

    Equation: B = ⌊max(0, M − W) / (c · m + S)⌋

    None where the weights alone are too large. Assumes a cache without gaps, as pages make it. The
    states S of linear attention and state spaces do not grow with the context.

    Source: kwon2023efficient

    >>> print(sequences_that_fit("80 GB", "16 GB", 8192, "128 KiB/token"))
    59
    """
    left = memory - weights
    return floor(maximum(left, 0 * left) / (context * kv_per_token + state))


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
    """
    return time_to_first_token + (tokens - 1) * time_per_token


@law
def speculative_tokens(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Tokens that one pass of the large model yields when a small one drafts, on average.

    Equation: n = (1 − α^(γ + 1)) / (1 − α) where α < 1, else γ + 1

    Assumes that each of γ drafted tokens is accepted with probability α, on its own; the large
    model adds one of its own after the last.

    Source: leviathan2023fast

    See also: serving.tree_tokens

    >>> print(speculative_tokens(0.8, 5))
    3.689
    """
    return sum_of_powers(acceptance, drafted)


@law
def speculative_speedup(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
    draft_cost: Annotated[QuantityLike, "", "c", NON_NEGATIVE] = 0,
) -> Annotated[Quantity, ""]:
    """How many times faster a model writes with a draft than by itself; below 1, slower.

    Equation: S = n / (γ · c + 1)

    n are the speculative_tokens, and c is the time of a draft model's pass over one of the large
    model. Assumes that checking γ + 1 tokens takes as long as one, which holds while decode is far
    below the compute roof; for a batch `serving.drafting_gain` takes the time of checking.

    Source: leviathan2023fast

    >>> print(speculative_speedup(0.8, 5, 0.05))
    2.951
    """
    return sum_of_powers(acceptance, drafted) / (drafted * draft_cost + 1)


@law
def speculative_operations(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
    draft_operations: Annotated[QuantityLike, "", "c", NON_NEGATIVE] = 0,
) -> Annotated[Quantity, ""]:
    """Operations with a draft, for each one without: what the speed is paid with.

    Equation: F = (γ · c + γ + 1) / n

    n are the speculative_tokens, and c is the operations of a draft model's token over those of the
    large model.

    Source: leviathan2023fast

    >>> print(speculative_operations(0.8, 5))
    1.626
    """
    return (drafted * draft_operations + drafted + 1) / sum_of_powers(acceptance, drafted)


def weight_memory(
    model: Transformer | str, element_size: Annotated[QuantityLike, "byte"] = "2 byte"
) -> Annotated[Quantity, "byte"]:
    """Memory of all of a model's parameters, experts included.

    Equation: W = Σ P · s

    P parameters of s bytes each, in each group of matrices that has a format of its own.

    >>> print(weight_memory("llama-3-70b"))
    141.1 GB
    >>> print(weight_memory("llama-3-70b", "4.25 bit"))
    37.48 GB
    >>> print(weight_memory("gpt-oss-120b", "released").to("GiB"))
    60.77 GiB
    """
    return Weights.of(models.transformer(model), element_size, "weight_size").memory


def weights_read(
    model: Transformer | str,
    tokens: Annotated[QuantityLike, "", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes of the matrices that a pass over so many tokens must read, each of them once.

    The embedding is looked up; of a mixture's experts those count that some token is sent to.

    >>> print(weights_read("llama-3-8b", 1))
    15.01 GB
    >>> print(weights_read("mixtral-8x7b", 1), weights_read("mixtral-8x7b", 32))
    25.50 GB 93.13 GB
    >>> print(weights_read("gpt-oss-120b", 1, "released"))
    4.999 GB
    """
    model = models.transformer(model)
    weights = Weights.of(model, element_size, "weight_size")
    return Layout().weights_read(weights, transformer.batch_tokens(tokens).m_as(""))


def decode(
    model: Transformer | str,
    device: Device | Machine,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    devices: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    dtype: str = "bf16",
    weight_size: Annotated[QuantityLike, "byte"] = "2 byte",
    kv_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Step:
    """The pass that writes the next token of so many sequences, each with its context.

    Equation: T_lower = max(D / BW, B · F / R_peak), T_upper = D / BW + B · F / R_peak

    D = W + B · c · m is what it reads: the weights W once, and of each of B sequences c tokens of m
    bytes in the cache, by `calc.transformer.decode_bytes`: of layers with a window no more than
    that, and states twice. F are the operations of a token.
    BW and R_peak are those of all devices together, as published. No program beats T_lower;
    T_upper overlaps nothing, and real programs, at lower rates and with messages, are slower still:
    `expected` says by how much. `dtype` is what products are computed in, whatever weights are
    stored in.

    Source: pope2023efficiently

    >>> from calc import hardware, machines, models
    >>> step = decode(models.get("llama-3-8b"), hardware.H100, 4096, 32)
    >>> print(step.lower, step.bound, step.throughput)
    9.609 ms memory 3330 token/s
    >>> step = decode(models.get("llama-3-70b"), machines.get("dgx-h100"), 4096, 32, devices=8)
    >>> print(step.lower, step.expected, step.upper)
    6.789 ms 14.47 ms 7.581 ms
    """
    counts = _counts(devices, context=context, sequences=sequences)
    load = Tokens(writing=counts["sequences"], context=counts["context"])
    job = _job(model, device, counts["devices"], Formats(dtype, weight_size, kv_size))
    return timing.serving_step(job, load)


def prefill(
    model: Transformer | str,
    device: Device | Machine,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    devices: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    dtype: str = "bf16",
    weight_size: Annotated[QuantityLike, "byte"] = "2 byte",
    kv_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Step:
    """The pass that reads so many prompts of one length and writes the first token of each.

    Equation: T_lower = max(D / BW, n · F / R_peak), T_upper = D / BW + n · F / R_peak

    n counts the tokens of all prompts, F is the average of their operations, D = W + n · m, and the
    rest is that of `decode`. Attention is causal, and the output is computed for last tokens alone.
    Latents are expanded into keys and values, while a decode absorbs their matrices.
    The `lower` bound is the least possible time to first token, queues left out.

    Source: pope2023efficiently

    >>> from calc import hardware, models
    >>> read = prefill(models.get("llama-3-8b"), hardware.H100, 4096)
    >>> print(read.lower, read.bound)
    62.26 ms compute
    """
    counts = _counts(devices, length=length, sequences=sequences)
    load = Tokens(reading=counts["length"] * counts["sequences"], prompt=counts["length"])
    job = _job(model, device, counts["devices"], Formats(dtype, weight_size, kv_size))
    return timing.serving_step(job, load)


def largest_batch(
    model: Transformer | str,
    device: Device | Machine,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    devices: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    weight_size: Annotated[QuantityLike, "byte"] = "2 byte",
    kv_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Annotated[Quantity, ""]:
    """Sequences that fit at their full context; a model that does not fit at all is refused.

    Equation: B = ⌊(N · M − W) / (c · m + S)⌋

    N devices have the memory M each; weights W, caches of c tokens, m bytes each, and states S
    share it. Of a layer with a window no more than that is kept.

    >>> from calc import hardware, models
    >>> print(largest_batch(models.get("llama-3-8b"), hardware.H100, 8192))
    65
    """
    model, kind = models.transformer(model), device_of(device)
    transformer.kept_context(model, context)  # refuses one that is too long
    length, counted = quantity(context).m_as(""), _counts(devices)["devices"]
    sizes = Formats(weights=weight_size, kv=kv_size)

    def held(count: int, length: Any) -> Any:
        job = Job(model, device, Layout(tensor=count), sizes)
        return device_memory.of(job, 1).batch_of(length)

    several = getattr(counted, "ndim", 0)  # numbers of devices, each a layout of its own
    most = of_each(held, counted, length) if several else held(counted, length)
    sequences = quantity(most, "")
    if not sequences.ndim and sequences.magnitude < 1:
        weights, memory = weight_memory(model, weight_size), kind.memory_capacity * counted
        raise InputError(
            f"{model.name} takes {weights.to('GB'):.4g} of weights, and {counted} {kind.name}"
            f" hold {memory.to('GB'):.4g}: not one sequence of"
            f" {abbreviated(context)} tokens fits; take"
            " more devices, a shorter context, or smaller weights and caches"
        )
    return sequences


def frontier(
    model: Transformer | str,
    device: Device | Machine,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    devices: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    dtype: str = "bf16",
    weight_size: Annotated[QuantityLike, "byte"] = "2 byte",
    kv_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Step:
    """Decode at batches that double up to the largest: each buys throughput with latency.

    >>> from calc import hardware, models
    >>> found = frontier(models.get("llama-3-8b"), hardware.H100, 8192)
    >>> for batch, time, rate in zip(found.tokens.m_as("token"), found.lower, found.throughput):
    ...     print(f"{batch:.0f}", time, rate)
    1 4.801 ms 208.3 token/s
    2 5.121 ms 390.5 token/s
    4 5.762 ms 694.1 token/s
    8 7.045 ms 1136 token/s
    16 9.609 ms 1665 token/s
    32 14.74 ms 2171 token/s
    64 24.99 ms 2561 token/s
    65 25.31 ms 2568 token/s
    """
    fits = largest_batch(model, device, context, devices, weight_size, kv_size)
    if fits.ndim:
        raise InputError("frontier(): batches are what varies; all else must be a single value")
    most = int(fits.magnitude)
    batches = [2**power for power in range(most.bit_length())]
    batches += [most] if batches[-1] < most else []
    sequences = quantity(batches, "")
    return decode(model, device, context, sequences, devices, dtype, weight_size, kv_size)


def _job(model: Transformer | str, device: Device | Machine, devices: Any, sizes: Formats) -> Job:
    """Devices that cut all matrices among them."""
    return Job(models.transformer(model), device, Layout(tensor=devices), sizes)


def _counts(devices: QuantityLike, **counts: QuantityLike) -> dict[str, Any]:
    """Counts as numbers or arrays of them, those of devices whole; each is at least 1."""
    read = {name: quantity(count) for name, count in {"devices": devices, **counts}.items()}
    check_shapes(read)
    for name, count in read.items():
        if not count.unitless or not smallest(count) >= 1:
            given = {"devices": devices, **counts}[name]
            raise InputError(
                f"{marked(name)} must be a number from 1; got {abbreviated(given)}", given=given
            )
    numbers = {name: count.m_as("") for name, count in read.items()}
    return numbers | {"devices": whole_numbers("devices", numbers["devices"])}
