"""The memory of a device that serves: what a job takes of it, and what would make it fit.

`engine_start` has what each part takes, and `held_memory` the record that is made of them. Of what
does not fit, changes are tried, the cheapest first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

from calc import formats
from calc.catalog import machines, models, software as programs
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import check_transformer
from calc.catalog.models.weights import Weights, unless_said
from calc.core import arguments
from calc.core.arguments import number, truth, whole_number
from calc.core.device import Device
from calc.core.elementwise import largest
from calc.core.errors import InputError, marked
from calc.core.units import Quantity, QuantityLike, quantity
from calc.steps.engine_start import Start
from calc.steps.held_memory import Memory, Way
from calc.steps.job import NO_BYTES, Formats, Job, Layout

TENSORS = (1, 2, 4, 8, 16, 32, 64)
MOST_USED = 0.95  # share of a device that engines are told to take where memory is short
FEW_SEQUENCES = 16  # and the sequences and tokens of a step that it is then made small to
SMALL_STEP = 2048
STEPS = (2048, 8192)  # tokens of a step that are tried
SHORTEST = 1024  # tokens of a sequence that is of use
NARROW_CACHE = "fp8"
NARROW_WEIGHTS = ("fp8", "int4")
KINDS = ("settings", "context", "kv", "weights", "tensor")  # of changes, the cheapest first
MOST_CHANGES = 3  # that are made together


def of(
    job: Job,
    context: int,
    *,
    utilization: float | None = None,
    batched_tokens: int | None = None,
    sequences: int | None = None,
    memory: QuantityLike | None = None,
    shared: bool = False,
    eager: bool = False,
) -> Memory:
    """Return what each device's memory holds of a job that serves sequences of such a length.

    The layout is one, and no array. What does not fit is an answer too, whose `lacks` says so.

    Parameters
    ----------
    context
        tokens of each sequence, prompt and answer together
    utilization
        share of the memory that the program may take; its own where it has one
    batched_tokens
        tokens of a step at the most; the server's own for the device
    sequences
        sequences of a step at the most; the server's own for the device
    memory
        what programs find of each device's memory; what logs print
    shared
        whether devices that would hold the same caches share them out, as decode context
        parallelism and copies of attention alone do
    eager
        whether kernels are started one by one, without graphs

    Examples
    --------
    >>> from calc import Job, Layout
    >>> job = Job.of("llama-3.1-70b", "dgx-h100", Layout(tensor=2), software="vllm 0.19")
    >>> of(job, 8192).tokens
    9920
    """
    Job.check(job)
    length = whole_number("context", context)
    share = None if utilization is None else number("utilization", utilization, 0.0)
    if share is not None and not 0 < share <= 1:
        raise InputError(
            f"{marked('utilization')} must be above 0 and at most 1; got {utilization}"
        )
    tokens, most = _count("batched_tokens", batched_tokens), _count("sequences", sequences)
    capacity = None if memory is None else arguments.memory("memory", memory)
    whole = arguments.truth("shared", shared)
    one_by_one = arguments.truth("eager", eager)
    asked = _Asked.of_job(job)
    return _found(asked, length, share, tokens, most, capacity, whole, one_by_one)


@dataclass(frozen=True)
class _Asked:
    """A frozen record of a job by what its memory follows from, so that each is counted once."""

    key: tuple[object, ...]
    job: Job = field(compare=False)

    @classmethod
    def of_job(cls, job: Job) -> _Asked:
        weights, kv, software = job.formats.weights, quantity(job.formats.kv), job.software
        if getattr(weights, "ndim", 0) or kv.ndim:
            raise InputError("weights and kv must each be one format, or one size; got several")
        if isinstance(weights, Quantity):
            weights = f"{weights.m_as('bit')}, {weights}"
        program = software.key, software.version, software.memory_share
        kept = weights, float(kv.m_as("byte"))
        return cls((job.model, job.machine, job.layout, *program, *kept, job.split), job)


@lru_cache(maxsize=1024)
def _found(asked: _Asked, context: int, *started: Any) -> Memory:
    """Return what was asked for, remembered: a record that nobody changes, in any thread."""
    return Memory.from_start(Start.of_job(asked.job, *started), context)


@understood
def fit(
    model: Transformer | str,
    device: Machine | Accelerator | Path | str,
    software: str | None = None,
    *,
    tensor: int | None = None,
    stages: int | None = None,
    utilization: float | None = None,
    batched_tokens: int | None = None,
    sequences: int | None = None,
    context: int | None = None,
    weights: QuantityLike | None = None,
    kv: QuantityLike = "bf16",
    memory: QuantityLike | None = None,
    eager: bool = False,
) -> Memory:
    """Return what a program does with the memory of each device that it serves a model on.

    What does not fit is answered too, with what each device lacks and what would make it fit.

    Parameters
    ----------
    software
        vllm, sglang or tensorrt-llm, the newest that was measured on the device, or the version
        named, as in "vllm 0.19"; the one that usually serves there; "none" counts bytes alone
    tensor
        devices that share each matrix (TP); one where it is left out
    stages
        groups of these devices that share out the layers (PP), of which the fullest decides
    utilization
        share of the memory that the program may take (gpu_memory_utilization of vLLM,
        mem_fraction_static of SGLang); its own where it has one
    batched_tokens
        tokens of a step at the most (max_num_batched_tokens); the server's own for the device
    sequences
        sequences of a step at the most (max_num_seqs); the server's own for the device
    context
        tokens of each sequence (max_model_len); all that the model can read
    weights
        what checkpoints of a name hold, the size of every parameter, or formats of groups; as
        released, or else bf16
    kv
        format of keys and values
    memory
        what programs find of each device's memory, as in "79.19 GiB"; what logs print
    eager
        whether kernels are started one by one (enforce_eager), which leaves nothing for CUDA graphs

    Examples
    --------
    >>> fitted = fit("qwen-2.5-7b", "h100", "vllm 0.19", utilization=0.95, context=8192)
    >>> fitted.tokens, str(fitted.parts[1].memory)
    (1096496, '2.205 GiB')
    >>> lacks = fit("llama-3.1-70b", "h100", "vllm 0.19", context=8192).lacks
    >>> print(lacks.missing, [way.settings for way in lacks.ways])
    64.87 GiB [{'weights': 'int4'}, {'tensor': 2}]
    """
    checked = models.transformer(model)
    check_transformer(checked)
    if checked.vocabulary is None:
        raise InputError(f"{checked.name} writes no tokens: engines that serve text cannot run it")
    slices = 1 if tensor is None else whole_number("tensor", tensor)
    machine = machines.of(device)
    layout = Layout(tensor=slices, pipeline=Layout.stages_of(checked, stages))
    machine.check_joins(largest(layout.devices))
    layout.check(checked, machine)
    longest = checked.context
    length = longest if context is None else whole_number("context", context)
    if length > longest:
        raise InputError(
            f"{marked('context')} must be at most {longest}, which {checked.name} reads; got"
            f" {length}"
        )
    one = machine.device
    program = programs.meant(software, one.key, one.measured_as, one.name)
    kept = unless_said(checked, program) if weights is None else weights
    Weights.of(checked, kept)  # refuses by the name that is asked for here
    sizes = Formats(weights=kept, kv=formats.cache_size("kv", kv))
    job = Job(checked, machine, layout, sizes, program)
    made = of(
        job,
        length,
        utilization=utilization,
        batched_tokens=batched_tokens,
        sequences=sequences,
        memory=memory,
        eager=eager,
    )
    called = models.called(model, checked)
    return replace(advised(made), called=called, changes=tuple(_tried(made)))


def _tried(memory: Memory) -> Iterator[Way]:
    """Yield what a narrower cache, no graphs, and a smaller or a larger step would hold."""
    start = memory.start
    if memory.lacks is not None or start.rules is None:
        return
    tried: list[dict[str, Any]] = []
    if start.job.formats.kv > quantity(1, "byte"):
        tried.append({"kv": NARROW_CACHE})
    if start.engine.rule == "profiled":
        if start.engine["graphs_counted"].magnitude and not start.eager:
            tried.append({"eager": True})
        tried += [{"batched_tokens": tokens} for tokens in STEPS if tokens != start.step_tokens]
    for settings in tried:
        changed = _with(memory, settings)
        [(name, value)] = settings.items()
        said = "eager" if value is True else f"{name.replace('_', ' ')} {value}"
        more = f"{changed.tokens / memory.tokens - 1:+.1%}".replace("-", "\N{MINUS SIGN}")
        yield Way(settings, f"{said}: {changed.tokens} tokens of cache, {more}.")


def advised(memory: Memory) -> Memory:
    """Return the same with what would make it fit, each change tried; what fits as it is.

    >>> from calc import Job
    >>> job = Job.of("llama-3-8b", "rtx-4080", software="vllm 0.19")
    >>> [way.settings for way in advised(of(job, 8192)).lacks.ways]
    [{'weights': 'fp8'}, {'tensor': 2}]
    """
    arguments.check_is(Memory, "memory", memory, "what calc.device_memory.of returns")
    if memory.lacks is None:
        return memory
    return replace(memory, lacks=replace(memory.lacks, ways=tuple(ways(memory))))


def ways(memory: Memory, sequences: int = 1, kinds: Sequence[str] = KINDS) -> Iterator[Way]:
    """Yield the smallest change of each kind, or of several together, with which so many fit.

    More devices are one way, beside which those are told that keep their number.

    >>> tight = fit("llama-3-70b", "h100", software="vllm")
    >>> print(next(ways(tight, kinds=["tensor"])).settings)
    {'tensor': 2}
    """
    changes = {kind: list(_changes(memory, kind)) for kind in kinds}
    for together in range(1, MOST_CHANGES + 1):
        has_one = False
        for several in combinations(kinds, together):
            for change in product(*map(changes.__getitem__, several)):
                settings = {name: value for each in change for name, value in each.items()}
                tried = _with(memory, settings)
                if "context" in several:  # as long as fits with the others
                    settings |= _shorter(tried, sequences)
                    tried = _with(memory, settings)
                if tried.largest_batch >= sequences:
                    has_one = has_one or "tensor" not in several
                    kinds = [kind for kind in kinds if kind not in several or kind != "tensor"]
                    words = " and ".join(f"{name} {value}" for name, value in settings.items())
                    fits = f"{tried.sequences:.2f} sequences of {tried.context} tokens"
                    doubt = ", if the ± allows" if tried.doubt else ""
                    yield Way(settings, f"{words}: {fits}{doubt}")
                    break
        if has_one:
            return


def _changes(memory: Memory, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the changes of a kind, the smallest first; of the context what is found with others."""
    start, job = memory.start, memory.start.job
    if kind == "settings":
        yield from _settings(start)
    elif kind == "context":
        yield {}
    elif kind == "kv" and job.formats.kv > quantity(1, "byte"):
        yield {"kv": NARROW_CACHE}
    elif kind == "weights":
        for form in NARROW_WEIGHTS:
            if Weights.of(job.model, form).memory < job.weights.memory:
                yield {"weights": form}
    elif kind == "tensor":
        more = (count for count in TENSORS if count > job.layout.tensor and _joined(job, count))
        yield from ({"tensor": count} for count in more)


def _settings(start: Start) -> Iterator[dict[str, Any]]:
    """Yield what an engine that profiles may be told: a larger share, a smaller step, or both."""
    more = {"utilization": MOST_USED} if start.utilization < MOST_USED else {}
    if start.rules is None or start.engine.rule == "static":
        if more and start.rules is not None:
            yield more
        return
    fewer = {"sequences": FEW_SEQUENCES} if start.step_sequences > FEW_SEQUENCES else {}
    smaller = fewer | ({"batched_tokens": SMALL_STEP} if start.step_tokens > SMALL_STEP else {})
    tried: list[dict[str, Any]] = [more, fewer, more | fewer, smaller, more | smaller]
    yield from (change for index, change in enumerate(tried) if change not in [{}, *tried[:index]])


def _shorter(memory: Memory, sequences: int) -> dict[str, Any]:
    """Return the longest context of which so many fit, unless it is too short for use."""
    few, many = 0, memory.context
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if memory.batch_of(middle) >= sequences else (few, middle)
    return {"context": few} if few >= SHORTEST else {}


def _joined(job: Job, count: int) -> bool:
    """Return whether so many of the machine's devices are joined, and can share the model."""
    return isinstance(job.machine, Machine) and count in Layout.slices_of(job.model, job.machine)


def _with(memory: Memory, changes: Mapping[str, Any]) -> Memory:
    """Return the same with these arguments of `fit` changed."""
    start = memory.start
    layout, sizes = start.layout, start.job.formats
    if "tensor" in changes:
        layout = replace(layout, tensor=changes["tensor"])
    sizes = replace(sizes, **{name: changes[name] for name in ("kv", "weights") if name in changes})
    job = replace(start.job, layout=layout, formats=sizes)
    steps = changes.get("batched_tokens", start.step_tokens)
    changed = replace(
        start,
        job=job,
        utilization=changes.get("utilization", start.utilization),
        step_tokens=steps,
        step_sequences=min(changes.get("sequences", start.step_sequences), steps),
        eager=changes.get("eager", start.eager),
    )
    return Memory.from_start(changed, changes.get("context", memory.context))


def room(device: Device, share: float = 1.0, reserve: Quantity = NO_BYTES) -> Quantity:
    """Return what trained states, or tables, may use of a device: a share, less what is reserved.

    >>> from calc import hardware
    >>> print(room(hardware.get("h100"), 0.9))
    72 GiB
    """
    device = machines.device_of(device)
    arguments.check_is(Quantity, "reserve", reserve, 'an amount of memory, as quantity("2 GB")')
    return device.memory_capacity * number("share", share) - reserve


def held(prompt: float, answer: float, reserves: bool) -> float:
    """Return the tokens that a sequence has the place of in the mean, until its answer is whole.

    It is half of the answer, and all of it by a program that reserves the whole at once.

    >>> held(1000, 200, reserves=False), held(1000, 200, reserves=True)
    (1100.0, 1200.0)
    """
    share = 1.0 if truth("reserves", reserves) else 0.5
    return number("prompt", prompt) + share * number("answer", answer)


def cache_tokens(job: Job, draft: Job | None, length: float) -> int:
    """Return the tokens of cache that a copy holds in requests of a mean length.

    Beside it lie the weights and caches of a model that drafts, where there is one.

    >>> from calc import Job
    >>> cache_tokens(Job.of("llama-3-8b", "h100", software="vllm 0.19"), None, 8192)
    443824
    """
    if draft is not None:
        Job.check(draft)
    length = number("length", length)
    memory = of(job, max(1, math.ceil(length)))
    tokens = float(memory.sequences_of(length)) * length
    if draft is not None:
        beside = of(draft, max(1, math.ceil(length)))
        weights = beside.parts[0].memory * memory.start.of_the_rest
        left = float((memory.caches - weights).m_as("byte"))
        taken = memory.start.taken(length) + beside.start.taken(length)
        tokens = left / float(taken) * length
    return max(0, math.floor(tokens))


def _count(name: str, value: int | None) -> int | None:
    return None if value is None else whole_number(name, value)
