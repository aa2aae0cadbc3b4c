"""Passes of serving a language model, by name: prefill, decode, both at once, and largest batches.

`prefill`, `decode` and `largest_batch` are of a model of `calc.models` on devices of one kind that
share the model evenly: roofs that no server exceeds, and not a forecast. Devices of a machine of
`calc.machines` add up their results twice a layer; those of `calc.hardware` alone talk in no time.
Caches are shared evenly, as if each were held once. Lengths and batches may be arrays. The size of
an element may be given by the name of its format, "INT8", and that of weights by group of matrices
too: "experts=mxfp4,others=bf16", or as "released". `mixed_step` and `largest_chunk` are of a
`calc.Job`, `expert_decode` of expert parallelism, `ring_prefill` of context parallelism.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from calc import formats
from calc.catalog import models
from calc.catalog.machines import NO_TIME, Machine, device_of
from calc.catalog.models import Transformer
from calc.catalog.models.weights import Weights
from calc.catalog.software import UNKNOWN
from calc.core.arguments import check_is, check_shapes, number, whole_number, whole_numbers
from calc.core.device import Device
from calc.core.elementwise import largest, of_each, smallest
from calc.core.errors import InputError, abbreviated, marked
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws.layers import batch_tokens
from calc.networks import transformer
from calc.steps import communication, device_memory, expectation, kernels, timing
from calc.steps.expectation import Account, Parts, Step, of_rate
from calc.steps.job import TWO_BYTES, Formats, Job, Layout, Tokens, reaching

EIGHT_BITS = Formats("fp8", "1 byte")
LONGEST_CHUNK = 65536  # tokens: beyond what any engine reads in a step
OF_MACHINES = "a machine of calc.machines"


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

    Parameters
    ----------
    model
        model of `calc.models`
    element_size
        what an element of the array takes
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

    Parameters
    ----------
    model
        model of `calc.models`
    tokens
        tokens of the answer
    element_size
        what an element of the array takes
    """
    model = models.transformer(model)
    weights = Weights.of(model, element_size, "weight_size")
    return Layout().weights_read(weights, batch_tokens(tokens).m_as(""))


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

    Parameters
    ----------
    model
        model of `calc.models`
    device
        device of `calc.hardware`
    context
        tokens that each of the sequences has in its cache
    sequences
        sequences of the batch
    devices
        devices that take part
    dtype
        data type that matrix products are computed in
    weight_size
        what a weight takes, or its format, or those of groups of matrices: "released"
    kv_size
        what an element of the cache takes, or its format
    """
    counts = _counts(devices, context=context, sequences=sequences)
    load = Tokens(writing=counts["sequences"], context=counts["context"])
    job = _job(model, device, counts["devices"], Formats(dtype, weight_size, kv_size))
    return timing.step(job, load)


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

    Parameters
    ----------
    model
        model of `calc.models`
    device
        device of `calc.hardware`
    length
        tokens of a sequence
    sequences
        sequences of the batch
    devices
        devices that take part
    dtype
        data type that matrix products are computed in
    weight_size
        what a weight takes, or its format, or those of groups of matrices: "released"
    kv_size
        what an element of the cache takes, or its format
    """
    counts = _counts(devices, length=length, sequences=sequences)
    load = Tokens(reading=counts["length"] * counts["sequences"], prompt=counts["length"])
    job = _job(model, device, counts["devices"], Formats(dtype, weight_size, kv_size))
    return timing.step(job, load)


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

    Parameters
    ----------
    job
        the model on its machine, and how it is cut: a `calc.Job`
    sequences
        sequences of the batch
    context
        tokens that each of the sequences has in its cache
    chunk
        tokens of a prompt that a step reads
    done
        tokens of the prompt that were read in earlier steps
    drafted
        tokens that are drafted, and checked, for each sequence
    """
    return timing.step(*_mixed(job, sequences, context, chunk, done, drafted))


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

    Parameters
    ----------
    job
        the model on its machine, and how it is cut: a `calc.Job`
    limit
        longest time of a step
    sequences
        sequences of the batch
    context
        tokens that each of the sequences has in its cache
    done
        tokens of the prompt that were read in earlier steps
    """
    most = quantity(limit).to("s")

    def keeps(chunk: int, expected: bool) -> bool:
        mixed = _mixed(job, sequences, context, chunk, done)
        time = timing.step(*mixed).expected if expected else timing.bounds(*mixed).lower
        return time is not None and bool(time <= most)

    def longest(expected: bool) -> int:
        low, high = 0, LONGEST_CHUNK
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if keeps(middle, expected) else (low, middle - 1)
        return low

    return longest(expected=False), longest(expected=True)


def expert_decode(
    model: Transformer | str,
    machine: Machine,
    context: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE],
    devices: int,
    sizes: Formats = EIGHT_BITS,
) -> Step:
    """A decode step of a mixture whose experts so many devices share out, as one of them sees it.

    Each device writes a token for its own `sequences` and reads all matrices but the experts, its
    share of the experts that all tokens wake, and its own caches. In each layer of experts it
    dispatches its tokens and combines their results. `lower` hides messages behind the rest, as two
    batches in turn do; `expected` has one after the other, at the rates that the machine was
    measured to reach. Experts are taken to be chosen evenly, in this expert parallelism (EP): it is
    `calc.step` of the layout that has as many copies (DP) as devices.

    Source: deepseek-open-infra-day6

    >>> from calc import machines
    >>> step = expert_decode("deepseek-v3", machines.get("dgx-h100"), 2000, 256, 72)
    >>> print(step.lower, step.bound, step.expected)
    31.18 ms links 87.01 ms

    Parameters
    ----------
    model
        model of `calc.models`
    machine
        machine of `calc.machines`
    context
        tokens that each of the sequences has in its cache
    sequences
        sequences of each device
    devices
        devices that take part
    sizes
        in what products, weights, caches and messages are: `calc.Formats`
    """
    check_is(Machine, "machine", machine, OF_MACHINES)
    mixture = models.transformer(model)
    if mixture.experts is None:
        raise InputError(f"{mixture.name} has no experts to share out: decode is for it")
    count = whole_number("devices that share out the experts", devices)
    counts = {"context": quantity(context), "sequences": quantity(sequences)}
    check_shapes(counts)
    batch = batch_tokens(counts["sequences"]).m_as("")
    layout = Layout(data=count, experts=count)
    load = Tokens(writing=batch * count, context=counts["context"].m_as(""))
    step = timing.step(Job(mixture, machine, layout, sizes), load)
    amounts = ("operations", "peak", "traffic", "tokens")
    return replace(step, **{name: getattr(step, name) / count for name in amounts})


def ring_prefill(
    model: Transformer | str,
    machine: Machine,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    contexts: int,
    tensor: int = 1,
    dtype: str = "bf16",
    weight_size: Annotated[QuantityLike, "byte"] = TWO_BYTES,
    kv_size: Annotated[QuantityLike, "byte"] = TWO_BYTES,
) -> Step:
    """The pass that reads one long prompt on `contexts` times `tensor` devices, by ring attention.

    Each of the `contexts` (CP) has its part of the tokens, dealt out so that all have equal work,
    and cuts matrices for its `tensor` devices (TP), which add up results twice a layer. `lower`
    takes published rates and hides all messages; `expected` takes what was measured on the machine,
    and hides of each step on the ring what its attention covers. A context beyond what the model
    was made for is taken as it is.

    Source: liu2023ring

    >>> from calc import machines, models
    >>> model, dgx = models.get("llama-3-405b"), machines.get("dgx-h100")
    >>> found = ring_prefill(model, dgx, 131072, 16, 8)
    >>> print(found.lower, found.bound, found.expected)
    1.392 s compute 2.304 s

    Parameters
    ----------
    model
        model of `calc.models`
    machine
        machine of `calc.machines`
    length
        tokens of a sequence
    contexts
        devices, or groups of them, that a sequence is cut for (CP)
    tensor
        devices that split each matrix among them (tensor parallelism)
    dtype
        data type that matrix products are computed in
    weight_size
        what a weight takes, or its format, or those of groups of matrices: "released"
    kv_size
        what an element of the cache takes, or its format
    """
    model = models.transformer(model)
    check_is(Machine, "machine", machine, OF_MACHINES)
    parts_of_context = whole_number("contexts", contexts)
    slices = whole_number("tensor", tensor)
    tokens = batch_tokens(length)
    model = reaching(model, largest(tokens))
    devices = parts_of_context * slices
    step = prefill(model, machine.device, tokens, 1, devices, dtype, weight_size, kv_size)
    tokens_of_one = tokens / parts_of_context
    size = formats.cache_size("kv_size", kv_size)
    block = tokens_of_one * model.cache_heads / min(slices, model.cache_heads)
    sent = (block * (model.key_width + model.head_value_width) * size).to("byte")
    link = communication.sending(devices, machine)
    hop = (sent / link).to("s") if parts_of_context > 1 else NO_TIME
    sums = communication.least_time(
        "all_reduce", tokens_of_one * model.width * TWO_BYTES, slices, machine
    )
    hops = model.caching_layers * (parts_of_context - 1)
    least = model.blocks * sums + hops * hop

    def made() -> Parts:
        count = float(tokens.m_as(""))
        job = Job(model, machine, Layout(tensor=slices), Formats(dtype, weight_size, size))
        whole = kernels.step(job, Tokens(reading=count, prompt=count))
        launched = [
            replace(kernel, launches=kernel.launches / parts_of_context) for kernel in whole
        ]
        account = Account.of_kernels(launched, machine, UNKNOWN)
        vectors = tokens_of_one.m_as("") * 2 * model.width
        account.add_messages("tensor", model.blocks, "all_reduce", vectors, slices)
        if parts_of_context > 1:
            block = account.times["attention"] / model.caching_layers / parts_of_context
            telling = partial(of_rate, link, "of a link", machine.source)
            account.add("ring", hop.m_as("s") * hops, telling)
            account.hidden += min(hop.m_as("s"), block) * hops
        return account.parts()

    parts = step.parts | {"links": least.to("s")}
    return Step.of(replace(step, parts=parts), expectation.if_measured(made, step.lower))


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

    Parameters
    ----------
    model
        model of `calc.models`
    device
        device of `calc.hardware`
    context
        tokens that each of the sequences has in its cache
    devices
        devices that take part
    weight_size
        what a weight takes, or its format, or those of groups of matrices: "released"
    kv_size
        what an element of the cache takes, or its format
    """
    model, kind = models.transformer(model), device_of(device)
    transformer.kept_context(model, context)  # refuses one that is too long
    counts = _counts(devices, context=context)
    length, counted = counts["context"], counts["devices"]
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

    Parameters
    ----------
    model
        model of `calc.models`
    device
        device of `calc.hardware`
    context
        tokens that each of the sequences has in its cache
    devices
        devices that take part
    dtype
        data type that matrix products are computed in
    weight_size
        what a weight takes, or its format, or those of groups of matrices: "released"
    kv_size
        what an element of the cache takes, or its format
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
            value = {"devices": devices, **counts}[name]
            raise InputError(
                f"{marked(name)} must be a number from 1; got {abbreviated(value)}", given=value
            )
    numbers = {name: count.m_as("") for name, count in read.items()}
    return numbers | {"devices": whole_numbers("devices", numbers["devices"])}
