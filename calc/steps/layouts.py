"""Training in a layout: what each device holds, and how long a step takes at published rates.

The numbers of a `Layout` may be arrays, for many layouts at once: that is how `calc.plan_training`
searches all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, NamedTuple

from calc.catalog import machines, models
from calc.catalog.machines import NO_TIME, Machine, device_of
from calc.catalog.models import Transformer
from calc.core.arguments import check_is, one_of
from calc.core.arrays import Number
from calc.core.device import Device
from calc.core.elementwise import largest, maximum, of_each, where
from calc.core.errors import InputError, marked
from calc.core.law import AT_LEAST_ONE
from calc.core.report import Reported, Table
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import collectives, links, parallelism, training
from calc.laws.layers import batch_tokens, logits_memory, loss_memory
from calc.laws.roofline import StepTime, compute_time
from calc.laws.training import Recipe
from calc.networks import transformer
from calc.steps import communication, expectation
from calc.steps.expectation import Parts, Step
from calc.steps.job import (
    PARTS,
    SCHEDULES,
    SECOND,
    TOKEN,
    TWO_BYTES,
    Batch,
    Held,
    Job,
    Layout as Layout,
    input_size,
)

Passes = tuple[Quantity, "Number"]  # bytes of a parameter that are sent, and how often in a step
NO_SIZE = quantity(0, "byte/param")
NOTHING = quantity(0, "byte")
ORDER = ("weights", "adapters", "gradients", "optimizer", "activations", "layer", "loss")
LOSSES = {"in place": 1, "whole": 1, "chunked": 8, "fused": 1}
"""How a loss is computed, and in how many parts."""
GRADIENTS = ("accumulated", "anew", "fused")


class Link(NamedTuple):
    """A link that joins devices: its bandwidth each way, and the latency of a message."""

    bandwidth: QuantityLike
    latency: QuantityLike = "0 s"


@dataclass(frozen=True)
class DeviceMemory(Reported):
    """Memory of the fullest device that trains, part by part."""

    weights: Quantity
    """Weights of the model, frozen or trained."""
    gradients: Quantity
    optimizer: Quantity
    """States, and master weights where there are any."""
    activations: Quantity
    """What layers keep for the way back, of all microbatches under way."""
    adapters: Quantity = NOTHING
    layer: Quantity = NOTHING
    """What a layer makes when it is computed again."""
    loss: Quantity = NOTHING
    """Logits, and what their loss needs."""
    lifetime: str = "accumulated"
    """Lifetime of gradients: one of `GRADIENTS`."""

    @property
    def total(self) -> Quantity:
        """The largest of three moments: at the loss, as the way back begins, and as it ends.

        Gradients that begin anew with each microbatch grow as activations go, so that all of them
        meet the activations of one layer alone; accumulated ones are always there. Fragments and
        buffers come on top.
        """
        stored = self.activations + _larger(self.loss, self.layer)
        if self.lifetime == "accumulated":
            moving = self.gradients + stored
        else:
            moving = _larger(stored, self.gradients + self.layer)
        return self.weights + self.adapters + self.optimizer + moving

    @property
    def parts(self) -> dict[str, Quantity]:
        """Return the parts that hold anything."""
        parts = {name: getattr(self, name) for name in ORDER}
        return {name: part for name, part in parts.items() if largest(part) > 0}

    @cached_property
    def tables(self) -> list[Table]:
        rows = [(name, str(part)) for name, part in self.parts.items()]
        return [Table([*rows, ("peak", str(self.total))], head=("", "memory"))]

    def check(self, device: Machine | Device | str) -> None:
        """Refuse a device that is too small, and say by how much."""
        kind = machines.of(device).device if isinstance(device, str) else device_of(device)
        needed = quantity(largest(self.total), str(self.total.units))
        if needed > kind.memory_capacity:
            raise InputError(
                f"a device needs {needed.to('GB')} and an {kind.name} has {kind.memory_capacity}:"
                " use more slices, stages or shards, a smaller microbatch or context, smaller"
                f" weights, recomputation, {marked('loss', 'fused')}, or let the host hold more"
            )


def _larger(one: Quantity, other: Quantity) -> Quantity:
    return quantity(maximum(one.m_as("byte"), other.m_as("byte")), "byte")


def _where(condition: Any, yes: Quantity, no: Quantity) -> Quantity:
    return quantity(where(condition, yes.m_as("byte"), no.m_as("byte")), "byte")


def memory_per_device(
    model: Transformer | str,
    layout: Layout,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    recomputation: str = "selective",
    recipe: str | Recipe = "adam-mixed",
    loss: str = "in place",
    lifetime: str = "accumulated",
    dtype: str = "bf16",
) -> DeviceMemory:
    """Return what the fullest device holds while it trains: its states and its activations.

    Equation: M = P / (t · p) · (w / n_w + g / n_g + o / n_o) + max(A_first, A_last + V)

    P parameters in t slices and p stages, with w, g and o bytes of weight, gradient and optimizer
    for each; n_w, n_g and n_o are the devices where these share it, else one. Experts are shared
    out besides. A_first are the activations that the first stage of a pipeline has under way, and
    A_last those of the last, which makes the logits V too. Schedules without a bubble hold no more
    than 1F1B in the first stage, and as much in the last. Where all is recomputed, a layer's own
    activations come on top while it is computed again, or the logits where these take more.

    `sequences` are those of one microbatch; `recipe` is one of `calc.training.RECIPES`, or that of
    `calc.finetuning.Adapters`, which are taken to be spread evenly. The `loss` of logits is
    computed "in place" as by Megatron-LM, in FP32 and with their gradient written over them; or
    as `layers.loss_memory` counts it, "whole" or "chunked"; or "fused", which keeps none.
    The `lifetime` of gradients is one of `GRADIENTS`. Inputs of products are kept in the `dtype`
    that these are computed in, as Transformer Engine does.

    Source: rajbhandari2020zero, korthikanti2023reducing, qi2024zero

    >>> layout = Layout(data=16, tensor=8, pipeline=4, sharding=1)
    >>> print(memory_per_device("llama-3-70b", layout, 8192))
    weights      4.541 GB
    gradients    4.541 GB
    optimizer    1.703 GB
    activations  5.620 GB
    loss         525.3 MB
    peak         16.93 GB

    Parameters
    ----------
    model
        model of `calc.models`
    layout
        how the model is spread: a `Layout`
    length
        tokens of a sequence
    sequences
        sequences of a microbatch
    recomputation
        what is computed again on the way back: none, selective, alternate or full
    recipe
        what is kept of each parameter: see `training.recipe`
    loss
        how the loss is computed: in place, whole, chunked or fused
    lifetime
        how long gradients live: accumulated, anew or fused
    dtype
        data type that matrix products are computed in
    """
    model = models.transformer(model)
    check_is(Layout, "layout", layout, "calc.Layout(…)")
    one_of("memory_per_device(): loss", loss, LOSSES)
    one_of("memory_per_device(): lifetime", lifetime, GRADIENTS)
    layout.check(model)
    kept = recipe if isinstance(recipe, Recipe) else training.recipe(recipe)
    states = _states_of(model, layout, kept)
    if lifetime == "fused":  # used up as they are made, so that a layer's remain
        states["gradient"] = states["gradient"] / model.layers
    first, last = _activations(model, layout, length, sequences, recomputation, input_size(dtype))
    layer = NOTHING
    if recomputation in ("alternate", "full"):
        whole = transformer.activation_memory(model, length, sequences, "selective")
        layer = (whole / (model.layers * layout.tensor * layout.context)).to("byte")
    logits = _logits(model, layout, length, sequences, loss)
    # The stage that holds more: the first, with more under way, or the last, with the logits.
    ends = last + _larger(logits, layer) > first + layer
    return DeviceMemory(
        states["weight"],
        states["gradient"],
        states["optimizer"],
        _where(ends, last, first),
        states.get("adapter", NOTHING),
        layer,
        _where(ends, logits, NOTHING),
        lifetime,
    )


def _states_of(model: Transformer, layout: Layout, recipe: Recipe) -> dict[str, Quantity]:
    """Weights, adapters, gradients and the optimizer's states of a device, of a model checked."""
    sizes = dict.fromkeys(PARTS, NO_SIZE)
    for part, size in recipe.parts.items():
        kind = part if part in (*PARTS, "adapter") else "optimizer"
        sizes[kind] = sizes.get(kind, NO_SIZE) + size
    states = dict.fromkeys(sizes, NOTHING)
    for part, size in sizes.items():
        shared = layout.shards("weight" if part == "adapter" else part)
        for held in layout.held(model):
            sharers = where(shared, held.sharing, 1)
            of_dense = parallelism.state_memory(held.own, size, NO_SIZE, NO_SIZE, sharers)
            states[part] = states[part] + of_dense
    return states


def _activations(
    model: Transformer,
    layout: Layout,
    length: QuantityLike,
    sequences: QuantityLike,
    recomputation: str,
    of_input: Quantity,
) -> tuple[Quantity, Quantity]:
    """Return the activations that the first stage has under way, and those of the last."""
    whole = transformer.activation_memory(
        model, length, sequences, recomputation, input_size=of_input
    )
    share = quantity(layout.layers_of_a_stage(model) * layout.pipeline / model.layers, "")
    whole_stage = whole * share / layout.context
    thin = layout.stages_per_device if layout.schedule == "1f1b" else 1
    slices, stages, several = layout.tensor, layout.pipeline, layout.microbatches
    first = parallelism.activations_in_flight(whole_stage, slices, stages, several, thin)
    if layout.schedule != "1f1b":
        return first, first  # without a bubble all stages have as many microbatches under way
    return first, parallelism.stage_activations(whole_stage, stages, stages, several, slices)


def _logits(
    model: Transformer, layout: Layout, length: QuantityLike, sequences: QuantityLike, loss: str
) -> Quantity:
    """Logits of the last stage, and what their loss needs."""
    if model.vocabulary is None or loss == "fused":
        return NOTHING
    tokens = batch_tokens(length, sequences)
    if loss == "in place":
        logits = logits_memory(tokens, model.vocabulary)
    else:
        logits = loss_memory(tokens, model.vocabulary, LOSSES[loss])
    return (logits / (layout.tensor * layout.context)).to("byte")


def training_step(
    job: Job,
    batch: Batch,
    efficiency: Annotated[QuantityLike, ""] = 1.0,
    inner: Link | None = None,
    outer: Link | None = None,
) -> Step:
    """The parts of a step's time at published rates, and what is expected of it.

    Equation: T_lower = max T_i, T_upper = Σ T_i

    No program beats T_lower, where all parts overlap. T_upper overlaps none, and real programs may
    be slower than that: both take published rates, and `efficiency` as the share of the peak that
    the matrix products reach. On a machine of `calc.machines` slices fill its domains first, then
    parts of sequences, copies and stages, and each message takes what `communication.time` says at
    least, without latency. `expected` is made of measured rates, and of what the software hides. Of
    a device alone slices talk over `inner`, all else over `outer`, and in no time where neither is
    given. Where adapters alone are trained, weights are frozen: their gradients are neither
    computed nor sent.

    Compute holds the bubble of a pipeline (of zb-v that of ZB-H2, an estimate: nothing where passes
    take equal times), the layers by which its fullest stage has more than the
    mean, and of a microbatch of few tokens the reading of its weights. Slices do four all-reduces a
    layer and microbatch, six where the whole layer is recomputed; parts of a sequence gather keys
    and values twice and reduce their gradients; experts get tokens and return results, forward and
    backward. Copies gather their weights once, or what `sharded_traffic` says, and reduce their
    gradients once, or in each microbatch where they shard them.

    >>> from calc import hardware, models
    >>> layout = Layout(data=16, tensor=8, pipeline=4, microbatches=32, sharding=1)
    >>> step = training_step(Job.of("llama-3-70b", "dgx-h100", layout), Batch(8192), 0.7)
    >>> print(step.lower, step.upper, step.bound)
    5.953 s 6.898 s compute
    >>> print(step.expected)
    8.411 s
    >>> alone = Job(models.get("llama-3-70b"), hardware.H100, layout)
    >>> pair = Link("450 GB/s", "2 us"), Link("50 GB/s", "10 us")
    >>> step = training_step(alone, Batch(8192), 0.7, *pair)
    >>> print(step.lower, step.upper, step.bound)
    5.953 s 7.543 s compute

    Parameters
    ----------
    job
        the model on its machine, and how it is cut: a `calc.Job`
    batch
        what a step does: a `calc.Batch`
    efficiency
        share of the peak that the arithmetic reaches
    inner
        link between the devices that split matrices, unless a machine is given
    outer
        link between all other devices, unless a machine is given
    """
    bounds = training_bounds(job, batch, efficiency, inner, outer)
    if not isinstance(job.machine, Machine):
        return Step.of(bounds, expectation.NO_MACHINE)
    length, sequences = quantity(batch.length).m_as(""), quantity(batch.sequences).m_as("")

    def expected() -> Parts:
        load = Batch(float(length), sequences, batch.recomputation)
        return expectation.training_step(job, load, _bubble(job, batch).m_as(""))

    return Step.of(bounds, expectation.if_measured(expected, length), job.software)


def training_bounds(
    job: Job,
    batch: Batch,
    efficiency: Annotated[QuantityLike, ""] = 1.0,
    inner: Link | None = None,
    outer: Link | None = None,
) -> StepTime:
    """Return the parts of that time at published rates alone.

    >>> from calc import Batch, Job, Layout
    >>> job = Job.of("llama-3-8b", "dgx-h100", Layout(data=8))
    >>> print(training_bounds(job, Batch(length=8192)).lower)
    444.1 ms

    Parameters
    ----------
    job
        the model on its machine, and how it is cut: a `calc.Job`
    batch
        what a step does: a `calc.Batch`
    efficiency
        share of the peak that the arithmetic reaches
    inner
        link between the devices that split matrices, unless a machine is given
    outer
        link between all other devices, unless a machine is given
    """
    Job.check(job)
    Batch.check(batch)
    model, layout = job.model, job.layout
    length, sequences, recomputation = batch.length, batch.sequences, batch.recomputation
    talk = _messages_of(job, inner, outer)
    layout.check(model)
    tokens = batch_tokens(length, sequences)
    work = job.trained.work(model, length)
    again = transformer.recomputed_flops(model, length, recomputation)
    all_tokens = TOKEN * tokens * layout.data * layout.microbatches
    operations = work * all_tokens
    computed = (work + again) * all_tokens
    frozen = job.trained.frozen
    bubble = _bubble(job, batch)
    uneven = job.layers_of_a_stage * layout.pipeline / model.layers
    layers = job.layers_of_a_stage * layout.microbatches
    tokens_of_device = tokens / layout.context  # of a microbatch
    vectors = parallelism.stage_traffic(maximum(tokens_of_device, quantity(1, "")), model.width, 1)
    # A microbatch of few tokens waits for the weights, which each of its three passes reads, or of
    # its two where they are frozen.
    gradient = training.recipe("adam-mixed").parts["gradient"]
    weight = job.trained_size
    read = model.multiplied_parameters * (uneven / (layout.tensor * layout.pipeline))
    reading = weight * read * ((2 if frozen else 3) * layout.microbatches)
    computing = compute_time(computed, job.peak, efficiency) * uneven
    computing = maximum(computing, reading / job.device.memory_bandwidth)
    sums = (3 if recomputation == "full" else 2) * model.blocks / model.layers
    parts = {"compute": computing * (1 + bubble), "tensor": talk.sums(vectors) * layers * sums}
    if largest(layout.context) > 1:
        parts["context"] = talk.gathers(job.cached_of_a_layer(batch) / layout.tensor) * layers * 3
    if largest(layout.experts) > 1:
        routed = model.layers_with("experts")
        out, back = job.formats.sent  # forward and backward
        narrower = model.expert_inputs / model.width
        sent = vectors / TWO_BYTES / layout.tensor * (out + back) / 2 * narrower
        exchange = talk.exchanges(sent, job.chosen_experts)
        parts["experts"] = exchange * layers * (4 * routed / model.layers)
    if largest(layout.pipeline) > 1:
        passed = vectors / layout.tensor * layout.microbatches * layout.stages_per_device
        parts["pipeline"] = talk.pass_on(passed) * where(layout.pipeline > 1, 1.0, 0.0)
    share = job.trained_share
    sizes = weight.m_as("byte/param"), share * gradient.m_as("byte/param")
    gathered = where(layout.shards("weight"), *sizes)
    passes = (
        (quantity(gathered, "byte/param"), layout.gathers),
        (share * gradient, layout.reductions),
    )
    parts["data"] = sum((talk.share(held, *passes) for held in layout.held(model)), NO_TIME)
    times = {name: part.to("s") for name, part in parts.items() if largest(part) > 0}
    return StepTime(times, operations.to("FLOP"), job.peak, tokens=all_tokens)


def _messages_of(job: Job, inner: Link | None, outer: Link | None) -> Messages:
    """Return what times a layout's messages, on a machine or over the two links of a device."""
    if isinstance(job.machine, Machine):
        if inner is not None or outer is not None:
            raise InputError(f"{job.machine.name} has links of its own: leave inner and outer out")
        return _OnMachine(job.machine, job.layout)
    if inner is None and outer is None:
        return _OfNoTime()
    return _OverLinks(job.layout, _link("inner", inner), _link("outer", outer))


def _link(name: str, link: Link | None) -> Link:
    check_is(Link, name, link, "a calc.layouts.Link")
    assert link is not None
    return link


def _bubble(job: Job, batch: Batch) -> Quantity:
    """Waiting of the pipeline over the time of its work: forward, and gradients of both kinds.

    Without a bubble gradients of weights wait, and attention has none, so that some of it is left.
    """
    model, layout, length = job.model, job.layout, batch.length
    stages, microbatches = layout.pipeline, layout.microbatches
    if layout.schedule == "1f1b":
        return collectives.bubble_overhead(stages, microbatches, layout.stages_per_device)
    forward, weights = transformer.causal_flops(model, length), transformer.forward_flops(model)
    if job.trained.frozen:
        weights = 0 * weights
    again = transformer.recomputed_flops(model, length, batch.recomputation)
    inputs = job.trained.work(model, length) + again - forward - weights
    # At any rate, which cancels out:
    times = [compute_time(work * TOKEN, "1 FLOP/s") for work in (forward, inputs, weights)]
    ahead, back, delayed = times
    waiting = collectives.bubble_time(stages, ahead, back, delayed, SCHEDULES[layout.schedule])
    return (waiting / ((ahead + back + delayed) * microbatches)).to("")


class _OfNoTime:
    """Messages among devices of which nothing but their own rates is known."""

    def _none(self, *sent: Any, **more: Any) -> Quantity:
        return NO_TIME

    sums = gathers = exchanges = pass_on = share = _none


@dataclass(frozen=True)
class _OverLinks:
    """Messages of a layout over two links: one among slices, one among all others."""

    layout: Layout
    inner: Link
    outer: Link

    def sums(self, vectors: Quantity) -> Quantity:
        """Time of a sum over all slices."""
        return collectives.ring_all_reduce(vectors, self.layout.tensor, *self.inner)

    def gathers(self, cached: Quantity) -> Quantity:
        """Time of gathering the keys and values of all parts of a sequence."""
        return collectives.ring_all_gather(cached, self.layout.context, *self.outer)

    def exchanges(self, sent: Quantity, chosen: int) -> Quantity:
        """Time of sending tokens to so many experts each, or results back."""
        return collectives.all_to_all(sent * chosen, self.layout.experts, *self.outer)

    def pass_on(self, sent: Quantity) -> Quantity:
        """Time of what a stage passes on to the next in a step."""
        latency = self.layout.microbatches * quantity(self.outer.latency)
        return links.transfer_time(sent, self.outer.bandwidth, latency)

    def share(self, held: Held, weights: Passes, gradients: Passes) -> Quantity:
        """Time of gathering the weights of copies so often, and of reducing their gradients."""
        parameters, among = held.own, held.sharing
        (weight, gathers), (gradient, reductions) = weights, gradients
        sent = collectives.all_gather_traffic(parameters * weight, among) * gathers
        sent = sent + collectives.all_gather_traffic(parameters * gradient, among) * reductions
        sent = sent + collectives.all_reduce_traffic(
            parameters * gradient / among, held.alike // among
        )
        latency = (gathers + reductions) * (among - 1) * quantity(self.outer.latency)
        return links.transfer_time(sent, self.outer.bandwidth, latency)


@dataclass(frozen=True)
class _OnMachine:
    """Messages on a machine: slices are neighbours, then parts of sequences, copies and stages."""

    machine: Machine
    layout: Layout

    def sums(self, vectors: Quantity) -> Quantity:
        """At least the time of a sum over all slices."""
        return self._least("all_reduce", vectors, self.layout.tensor, 1)

    def gathers(self, cached: Quantity) -> Quantity:
        """At least the time of gathering the keys and values of all parts of a sequence."""
        return self._least("all_gather", cached, self.layout.context, self.layout.tensor)

    def exchanges(self, sent: Quantity, chosen: int) -> Quantity:
        """At least the time of sending tokens to so many experts each, or results back.

        A token goes once to each device that it reaches, and across domains once to each of these.
        """
        experts, slices = self.layout.experts, self.layout.expert_slices
        copies = communication.copies_of_a_token(self.machine, chosen, experts, slices)
        return self._least("all_to_all", sent * copies, experts, slices)

    def pass_on(self, sent: Quantity) -> Quantity:
        """Time of what a stage passes on: through the ports, unless one domain holds them all."""
        bandwidth = communication.sending(self.layout.devices, self.machine)
        return links.transfer_time(sent, bandwidth).to("s")

    def share(self, held: Held, weights: Passes, gradients: Passes) -> Quantity:
        """At least the time of gathering and reducing among the devices that share a state.

        Of these a domain holds as many as it has room for beside the other slices. Groups that
        hold copies of one another add up their gradients besides.
        """
        parameters, among, apart = held.own, held.sharing, held.slices
        (weight, gathers), (gradient, reductions) = weights, gradients
        gathered = self._least("all_gather", parameters * weight, among, apart)
        reduced = self._least("reduce_scatter", parameters * gradient, among, apart)
        groups = held.alike // among
        summed = self._least("all_reduce", parameters * gradient / among, groups, apart * among)
        return gathered * gathers + reduced * reductions + summed

    def _least(self, operation: str, size: Quantity, members: Number, apart: Number) -> Quantity:
        """The least time among so many devices, of which a domain holds one in so many.

        In an array, what no slice of the machine has room for takes for ever.
        """
        rooms = maximum(1, self.machine.domain // apart)
        several = getattr(members, "ndim", 0) or getattr(apart, "ndim", 0)
        pace = of_each(partial(_pace, operation, self.machine, not several), members, rooms)
        seconds: Number = pace * size.m_as("byte")
        return SECOND * seconds


@lru_cache(maxsize=2**14)
def _pace(operation: str, machine: Machine, must_fit: bool, members: float, room: float) -> float:
    """Seconds a byte among so many devices, of which a domain has room for so many."""
    try:
        narrowed = replace(machine, domain=int(room))
        return float(communication.seconds_per_byte(operation, members, narrowed))
    except InputError:
        if must_fit:
            raise
        return math.inf


Messages = _OfNoTime | _OverLinks | _OnMachine
