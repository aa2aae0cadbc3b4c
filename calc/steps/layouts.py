"""How a model and its batch are cut for training: what each device holds, and how long a step is.

A `Layout` says into how many copies, slices, stages and so on. Its numbers may be arrays, for many
layouts at once: that is how `calc.plan_training` searches all of them.
"""

# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from pint.facets.plain import PlainQuantity

from calc.catalog import models, software as programs
from calc.catalog.machines import NO_TIME, Machine, device_of
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import check_transformer
from calc.core.arguments import one_of, whole_number
from calc.core.device import Device, check_device
from calc.core.elementwise import ceiling, largest, maximum, where
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import columns
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import links, training
from calc.laws.parallelism import (
    activations_in_flight,
    stage_activations,
    stage_traffic,
    state_memory,
)
from calc.laws.roofline import StepTime, compute_time
from calc.laws.training import Recipe
from calc.networks import transformer
from calc.steps import collectives, expectation
from calc.steps.expectation import Parts
from calc.steps.finetuning import Adapters, training_work
from calc.steps.kernels import TWO_BYTES

Passes = tuple[Quantity, Any]  # bytes of a parameter that are sent, and how often in a step
PARTS = ("weight", "gradient", "optimizer")
NOTHING = quantity(0, "byte/param")
A_TOKEN = quantity(1, "token")
SCHEDULES = {"1f1b": 0, "zb-h1": 2, "zb-v": 3}
"""Schedules of a pipeline, and how many gradients of weights wait to fill the bubble of each."""


@dataclass(frozen=True)
class Link:
    """What joins devices: its bandwidth each way, and the latency of a message."""

    bandwidth: QuantityLike
    latency: QuantityLike = "0 s"


@dataclass(frozen=True)
class Layout:
    """How a model and its batch are cut, in whole numbers or arrays of them.

    - `data`: copies of the model (DP)
    - `tensor`: slices of each matrix (TP), with norms cut along the sequence
    - `pipeline`: stages (PP), each with as many layers, the last one perhaps with fewer
    - `microbatches`: of a copy in a step
    - `sharding`: stage of ZeRO: 0 for none, then optimizer, gradients and weights too are divided
      among the devices that would hold the same; gradients are then reduced in each microbatch
    - `hold_gradients`: each device holds its whole gradients instead, and reduces them once a step
    - `context`: parts of each sequence (CP)
    - `experts`: devices to which experts are shared out (EP), of those of DP and CP, and where
      these are fewer, of slices too
    - `stages_per_device`: thin stages that a device has of an interleaved schedule
    - `sharing`: devices that divide a state where not all that hold the same do (hybrid sharding)
    - `schedule`: of a pipeline: one forward and one backward pass in turn, "1f1b", interleaved with
      thin stages; or one without most of the bubble, "zb-h1", or "zb-v" with two thin stages of a
      device, the first with the last

    >>> Layout(data=128, tensor=8, pipeline=16, microbatches=16).devices
    16384
    """

    data: Any = 1
    tensor: Any = 1
    pipeline: Any = 1
    microbatches: Any = 1
    sharding: Any = 0
    hold_gradients: bool = False
    context: Any = 1
    experts: Any = 1
    stages_per_device: Any = 1
    sharing: Any = None
    schedule: str = "1f1b"

    def __post_init__(self) -> None:
        one_of("a layout's schedule", self.schedule, SCHEDULES)
        for field in fields(self):
            given = getattr(self, field.name)
            if field.name in ("sharding", "hold_gradients", "schedule") or given is None:
                continue
            if not _counts(given):
                whole_number(f"a layout's {field.name}", given)
        if not _counts(self.sharding, 0, 3) and (
            type(self.sharding) is not int or self.sharding not in range(4)
        ):
            raise InputError(
                f"sharding must be a stage from 0 to 3; got {abbreviated(self.sharding)}"
            )

    @property
    def devices(self) -> Any:
        """Devices of all copies, slices, stages and parts of a sequence."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def copies(self) -> Any:
        """Devices that would hold the same weights: those of DP and of CP."""
        return self.data * self.context

    @property
    def expert_copies(self) -> Any:
        """Devices that would hold the same experts."""
        return maximum(self.copies // self.experts, 1)

    @property
    def expert_slices(self) -> Any:
        """Slices of the matrices of an expert: fewer where slices have different experts."""
        return self.tensor * self.copies // (self.experts * self.expert_copies)

    @property
    def sharers(self) -> Any:
        """Devices that divide a state among them, where it is sharded."""
        return self.copies if self.sharing is None else self.sharing

    def shards(self, part: str) -> Any:
        """Whether the weights, the gradients or the optimizer are divided among devices."""
        sharded = self.sharding >= 3 - PARTS.index(part)
        return sharded * (not (part == "gradient" and self.hold_gradients)) == 1

    def layers_of_a_stage(self, model: Transformer) -> Any:
        """Layers of a device, where its stages are the fullest."""
        stages = self.pipeline * self.stages_per_device
        return self.stages_per_device * ceiling(model.layers.magnitude / stages)

    def rules(self, model: Transformer) -> Iterator[tuple[Any, str]]:
        """Whether a model can be cut like this, and the sentence for where it cannot."""
        heads, groups = int(model.heads.magnitude), int(model.kv_heads.magnitude)
        layers = int(model.layers.magnitude)
        experts = 1 if model.experts is None else int(model.experts.magnitude)
        stages = self.pipeline * self.stages_per_device
        yield (
            heads % self.tensor == 0,
            f"{model.name} has {heads} heads, which {{tensor}} slices do not divide: choose tensor"
            " among the divisors",
        )
        yield (
            where(groups % self.tensor == 0, 0, self.tensor % groups) == 0,
            f"{model.name} has {groups} heads of keys and values, which {{tensor}} slices neither"
            " divide nor are a multiple of",
        )
        for name in ("feed_forward_width", "expert_width", "shared_expert_width"):
            if (width := getattr(model, name)) is not None:
                yield (
                    int(width.magnitude) % self.tensor == 0,
                    f"{{tensor}} slices do not divide the {name.replace('_', ' ')} of"
                    f" {model.name}, {width}: choose tensor among the divisors",
                )
        yield (
            # The first stage may hold the embedding alone, and the last the output.
            (stages - 1) * ceiling(layers / stages) < layers + 2,
            f"{model.name} has {layers} layers, too few for {{pipeline}} stages with"
            " {stages_per_device} thin ones each: one would be left without layers",
        )
        yield (
            (self.stages_per_device == 1) | (self.pipeline > 1),
            "an interleaved schedule needs several stages; got pipeline={pipeline} with"
            " stages_per_device={stages_per_device}",
        )
        thin = {"1f1b": self.stages_per_device, "zb-h1": 1, "zb-v": where(self.pipeline > 1, 2, 1)}
        yield (
            self.stages_per_device == thin[self.schedule],
            "the schedule {schedule} has its own number of thin stages, 1 for zb-h1 and 2 for zb-v;"
            " got stages_per_device={stages_per_device} with pipeline={pipeline}",
        )
        interleaved = (self.stages_per_device > 1) & (self.schedule == "1f1b")
        yield (
            where(interleaved, self.microbatches % self.pipeline, 0) == 0,
            "an interleaved schedule needs microbatches in multiples of its stages; got"
            " {microbatches} for pipeline={pipeline}",
        )
        yield (
            experts % self.experts == 0,
            f"{model.name} has {experts if experts > 1 else 'no'} experts, which {{experts}}"
            " devices cannot share out evenly",
        )
        yield (
            where(
                self.copies % self.experts == 0,
                0,
                self.experts % self.copies + self.copies * self.tensor % self.experts,
            )
            == 0,
            "experts are shared out to devices of DP and CP, and then to slices: {experts} must"
            " divide data × context, {copies}, or be a multiple of it that divides all",
        )
        yield (
            self.copies % self.sharers == 0,
            "a state is divided among devices that hold the same: sharing={sharing} must divide"
            " data × context, {copies}",
        )

    def legal(self, model: Transformer) -> Any:
        """Whether a model can be cut like this, for each of these layouts."""
        legal: Any = True
        for fits, _ in self.rules(model):
            legal = legal & fits
        return legal

    def check(self, model: Any) -> None:
        """Refuse a model that cannot be cut like this."""
        check_transformer(model)
        for fits, sentence in self.rules(model):
            if not (fits if isinstance(fits, bool) else fits.all()):
                own = {field.name: getattr(self, field.name) for field in fields(self)}
                raise InputError(sentence.format(**own, copies=self.copies))

    def parameters(self, model: Transformer) -> Quantity:
        """Parameters of one device: those of the stage with the embedding or with the output.

        >>> from calc import models
        >>> print(Layout(tensor=8, pipeline=4).parameters(models.get("llama-3-70b")))
        2.270B param
        """
        self.check(model)
        return self.dense_parameters(model) + self.expert_parameters(model)

    def dense_parameters(self, model: Transformer) -> Quantity:
        """Those of them that are in no expert, of a model that was checked."""
        parts, none = model.parts, quantity(0, "param")
        embedding, output = parts.get("embedding", none), parts.get("output", none)
        inner = model.parameters - embedding - output - model.expert_parameters
        alone = embedding + output
        ends = maximum(embedding, embedding if model.tied_embeddings else output)
        share = quantity(self.layers_of_a_stage(model) / model.layers.magnitude, "")
        apart = (self.pipeline > 1) & (self.schedule != "zb-v")
        held = where(apart, ends.m_as("param"), alone.m_as("param"))
        return (inner * share + quantity(held, "param")) / self.tensor

    def expert_parameters(self, model: Transformer) -> Quantity:
        """Those in experts, of which a device has its share, of a model that was checked."""
        share = quantity(self.layers_of_a_stage(model) / model.layers.magnitude, "")
        return model.expert_parameters * share / (self.expert_slices * self.experts)


def _counts(given: Any, least: int = 1, most: float = 2**62) -> bool:
    """Whether it is an array of whole numbers in that range."""
    if isinstance(given, PlainQuantity):
        return False
    if getattr(getattr(given, "dtype", None), "kind", "") != "i" or not given.ndim:
        return False
    return not given.size or bool(least <= given.min() and given.max() <= most)


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of the fullest device, part by part."""

    weights: Quantity
    gradients: Quantity
    optimizer: Quantity
    activations: Quantity

    @property
    def total(self) -> Quantity:
        """All of it; fragments and buffers come on top."""
        total: Quantity = self.weights + self.gradients + self.optimizer + self.activations
        return total

    def __str__(self) -> str:
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        return "\n".join(columns([(n, str(p)) for n, p in (parts | {"total": self.total}).items()]))

    def check(self, device: Device) -> None:
        """Refuse a device that is too small, and say by how much."""
        check_device(device)
        needed = self.total
        most = quantity(largest(needed), str(needed.units))
        if most > device.memory_capacity:
            raise InputError(
                f"a device needs {most.to('GB')} and an {device.name} has"
                f" {device.memory_capacity}: use more slices, stages or shards, a smaller"
                " microbatch, or recomputation"
            )


def _check_is(kind: type, name: str, given: Any) -> None:
    if not isinstance(given, kind):
        raise InputError(f"{name} must be a calc.layouts.{kind.__name__}; got {abbreviated(given)}")


def memory_per_device(
    model: Transformer | str,
    layout: Layout,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE] = 1,
    recomputation: str = "selective",
    recipe: str | Recipe = "adam-mixed",
) -> DeviceMemory:
    """What the fullest device holds while it trains: its states and its activations.

    Equation: M = P / (t · p) · (w / n_w + g / n_g + o / n_o) + max(A_first, A_last + V)

    P parameters in t slices and p stages, with w, g and o bytes of weight, gradient and optimizer
    for each; n_w, n_g and n_o are the devices where these share it, else one. Experts are shared
    out besides. A_first are the activations that the first stage of a pipeline has under way, and
    A_last those of the last, which makes the logits V too, in FP32 and with their gradient written
    over them, as Megatron-LM does. Schedules without a bubble hold no more than 1F1B in the first
    stage, and as much in the last.

    `sequences` are those of one microbatch; `recipe` is one of `calc.training.RECIPES`, or that of
    `calc.finetuning.Adapters`, which are taken to be spread evenly.

    Source: rajbhandari2020zero, korthikanti2023reducing, qi2024zero

    >>> layout = Layout(data=16, tensor=8, pipeline=4, sharding=1)
    >>> held = memory_per_device("llama-3-70b", layout, 8192)
    >>> print(held)
    weights      4.541 GB
    gradients    4.541 GB
    optimizer    1.703 GB
    activations  6.146 GB
    total        16.93 GB
    """
    model = models.transformer(model)
    _check_is(Layout, "layout", layout)
    layout.check(model)
    sizes = dict.fromkeys(PARTS, NOTHING)
    kept = recipe if isinstance(recipe, Recipe) else training.recipe(recipe)
    for part, size in kept.parts.items():
        kind = part if part in PARTS else "optimizer"
        sizes[kind] = sizes[kind] + size
    dense, experts = layout.dense_parameters(model), layout.expert_parameters(model)
    held = {}
    for part, size in sizes.items():
        sharers = where(layout.shards(part), layout.sharers, 1)
        alike = maximum(sharers // layout.experts, 1)  # that hold the same experts
        held[part] = state_memory(dense, size, NOTHING, NOTHING, sharers)
        if largest(experts):
            held[part] = held[part] + state_memory(experts, size, NOTHING, NOTHING, alike)
    whole = transformer.activation_memory(model, length, sequences, recomputation)
    share = quantity(layout.layers_of_a_stage(model) * layout.pipeline / model.layers.magnitude, "")
    made = whole * share / layout.context
    thin = layout.stages_per_device if layout.schedule == "1f1b" else 1
    first = activations_in_flight(made, layout.tensor, layout.pipeline, layout.microbatches, thin)
    last = first  # without a bubble all stages have as many microbatches under way
    if layout.schedule == "1f1b":
        last = stage_activations(
            made, layout.pipeline, layout.pipeline, layout.microbatches, layout.tensor
        )
    if model.vocabulary is not None:
        tokens = transformer.batch_tokens(length, sequences)
        logits = transformer.logits_memory(tokens, model.vocabulary)
        last = last + logits / (layout.tensor * layout.context)
    return DeviceMemory(held["weight"], held["gradient"], held["optimizer"], maximum(first, last))


def training_step(
    model: Transformer | str,
    layout: Layout,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    sequences: Annotated[QuantityLike, "", AT_LEAST_ONE],
    device: Device | Machine,
    inner: Link | None = None,
    outer: Link | None = None,
    recomputation: str = "selective",
    dtype: str = "bf16",
    efficiency: Annotated[QuantityLike, ""] = 1.0,
    software: str | None = None,
    tuned: Adapters | None = None,
) -> StepTime:
    """The parts of a step's time at published rates, and what is expected of it.

    Equation: T_lower = max T_i, T_upper = Σ T_i

    No program beats T_lower, where all parts overlap. T_upper overlaps none, and real programs may
    be slower than that: both take published rates, and `efficiency` as the share of the peak that
    the matrix products reach. On a machine of `calc.machines` slices fill its domains first, then
    parts of sequences, copies and stages, and each message takes what `collectives.time` says at
    least, without latency. `expected` is made of measured rates, and of what the `software` of that
    name hides. Of a device alone slices talk over `inner`, all else over `outer`. `sequences` are
    those of one microbatch. Where adapters alone are `tuned`, weights are frozen: their gradients
    are neither computed nor sent.

    Compute holds the bubble of a pipeline (of zb-v that of ZB-H2, an estimate: nothing where passes
    take equal times), the layers by which its fullest stage has more than the
    mean, and of a microbatch of few tokens the reading of its weights. Slices do four all-reduces a
    layer and microbatch, six where the whole layer is recomputed; parts of a sequence gather keys
    and values twice and reduce their gradients; experts get tokens and return results, forward and
    backward. Copies gather their weights once, or what `sharded_traffic` says, and reduce their
    gradients once, or in each microbatch where they shard them.

    >>> from calc import hardware, machines
    >>> layout = Layout(data=16, tensor=8, pipeline=4, microbatches=32, sharding=1)
    >>> step = training_step("llama-3-70b", layout, 8192, 1, machines.DGX_H100, efficiency=0.7)
    >>> print(step.lower, step.upper, step.bound)
    5.953 s 6.898 s compute
    >>> print(step.expected)
    8.013 s
    >>> pair = Link("450 GB/s", "2 us"), Link("50 GB/s", "10 us")
    >>> step = training_step(
    ...     "llama-3-70b", layout, 8192, 1, hardware.H100, *pair, efficiency=0.7
    ... )
    >>> print(step.lower, step.upper, step.bound)
    5.953 s 7.543 s compute
    """
    model = models.transformer(model)
    _check_is(Layout, "layout", layout)
    talk: _OnMachine | _OverLinks
    if isinstance(device, Machine):
        if inner is not None or outer is not None:
            raise InputError(f"{device.name} has links of its own: leave inner and outer out")
        machine: Machine | None = device
        talk, device = _OnMachine(device, layout), device.device
    else:
        device = device_of(device)
        if inner is None or outer is None:
            raise InputError(
                f"{device.name} alone has no links: give inner and outer, or a machine of"
                " calc.machines in its place"
            )
        _check_is(Link, "inner", inner)
        _check_is(Link, "outer", outer)
        talk, machine = _OverLinks(layout, inner, outer), None
    program = programs.UNKNOWN if software is None else programs.get(software)
    layout.check(model)
    tokens = transformer.batch_tokens(length, sequences)
    projections = transformer.forward_flops(model)
    forward = transformer.causal_flops(model, length)
    again = transformer.recomputed_flops(model, length, recomputation)
    all_tokens = quantity(1, "token") * tokens * layout.data * layout.microbatches
    work = training_work(model, length, tuned)
    operations = work * all_tokens
    peak = device.peak(dtype) * layout.devices
    computed = (work + again) * all_tokens
    of_weights = projections if tuned is None else 0 * projections
    bubble = _bubble(layout, forward, work + again - forward - of_weights, of_weights)
    uneven = layout.layers_of_a_stage(model) * layout.pipeline / model.layers.magnitude
    layers = quantity(layout.layers_of_a_stage(model), "") * layout.microbatches
    each = tokens / layout.context  # tokens of a microbatch on a device
    vectors = stage_traffic(maximum(each, quantity(1, "")), model.width, 1)
    # A microbatch of few tokens waits for the weights, which each of its three passes reads, or of
    # its two where they are frozen.
    size = training.recipe("adam-mixed").parts["gradient"]
    weight = size if tuned is None else tuned.recipe(model).parts["weight"]
    read = model.multiplied_parameters * (uneven / (layout.tensor * layout.pipeline))
    reading = (3 if tuned is None else 2) * layout.microbatches * weight * read
    computing = compute_time(computed, peak, efficiency) * uneven
    computing = maximum(computing, reading / device.memory_bandwidth)
    sums = (3 if recomputation == "full" else 2) * model.blocks / model.layers.magnitude
    parts = {"compute": computing * (1 + bubble), "tensor": talk.sums(vectors) * layers * sums}
    if largest(layout.context) > 1:
        kept = transformer.kept_context(model, length) * sequences * quantity(1, "token")
        cached = transformer.kv_cache_per_token(model, TWO_BYTES) / model.layers * kept
        parts["context"] = talk.gathers(cached / layout.tensor) * layers * 3
    if largest(layout.experts) > 1:
        routed = model.layers_with("experts")
        sent = vectors / layout.tensor * model.active_experts
        parts["experts"] = talk.exchanges(sent) * layers * (4 * routed / model.layers)
    passed = vectors / layout.tensor * layout.microbatches * layout.stages_per_device
    parts["pipeline"] = NO_TIME
    if largest(layout.pipeline) > 1:
        parts["pipeline"] = talk.pass_on(passed) * where(layout.pipeline > 1, 1.0, 0.0)
    gathers = where(layout.shards("weight"), 2 * layout.microbatches, 1)
    reductions = where(layout.shards("gradient"), layout.microbatches, 1)
    share = 1.0 if tuned is None else tuned.share(model)
    gathered = where(
        layout.shards("weight"), weight.m_as("byte/param"), share * size.m_as("byte/param")
    )
    gathered = quantity(gathered, "byte/param")
    passes = (gathered, gathers), (share * size, reductions)
    parts["data"] = talk.share(layout.dense_parameters(model), *passes)
    if model.experts is not None:
        held = layout.expert_parameters(model)
        parts["data"] = parts["data"] + talk.share(held, *passes, experts=True)
    step = StepTime(
        {name: part.to("s") for name, part in parts.items()},
        operations.to("FLOP"),
        peak,
        tokens=all_tokens,
    )
    if machine is None:
        return step

    def expected() -> Parts:
        return expectation.training_step(
            model,
            machine,
            float(quantity(length).m_as("")),
            quantity(sequences).m_as(""),
            data=layout.data,
            tensor=layout.tensor,
            pipeline=layout.pipeline,
            microbatches=layout.microbatches,
            gathers=gathers,
            reductions=reductions,
            optimizer_shards=where(layout.shards("optimizer"), layout.sharers, 1),
            contexts=layout.context,
            experts=layout.experts,
            virtual_stages=layout.stages_per_device,
            bubble=bubble.m_as(""),
            sharers=layout.sharers,
            recomputed=1.0 if recomputation == "full" else 0.0,
            frozen=tuned is not None,
            trained=share,
            dtype=dtype,
            program=program,
        )

    return replace(step, expectation=expectation.if_measured(expected, quantity(length)))


def _bubble(layout: Layout, forward: Quantity, inputs: Quantity, weights: Quantity) -> Quantity:
    """Waiting of the pipeline over the time of its work: forward, and gradients of both kinds.

    Without a bubble gradients of weights wait, and attention has none, so that some of it is left.
    """
    stages, microbatches = layout.pipeline, layout.microbatches
    if layout.schedule == "1f1b":
        return collectives.bubble_overhead(stages, microbatches, layout.stages_per_device)
    # At any rate, which cancels out:
    times = [compute_time(each * A_TOKEN, "1 FLOP/s") for each in (forward, inputs, weights)]
    ahead, back, delayed = times
    waiting = collectives.bubble_time(stages, ahead, back, delayed, SCHEDULES[layout.schedule])
    return (waiting / ((ahead + back + delayed) * microbatches)).to("")


@dataclass(frozen=True)
class _OverLinks:
    """Messages of a layout over two links: one among slices, one among all others."""

    layout: Layout
    inner: Link
    outer: Link

    def sums(self, vectors: Quantity) -> Quantity:
        """Time of a sum over all slices."""
        inner = self.inner
        return collectives.ring_all_reduce(
            vectors, self.layout.tensor, inner.bandwidth, inner.latency
        )

    def gathers(self, cached: Quantity) -> Quantity:
        """Time of gathering the keys and values of all parts of a sequence."""
        outer = self.outer
        return collectives.ring_all_gather(
            cached, self.layout.context, outer.bandwidth, outer.latency
        )

    def exchanges(self, sent: Quantity) -> Quantity:
        """Time of sending tokens to their experts, or results back."""
        outer = self.outer
        return collectives.all_to_all(sent, self.layout.experts, outer.bandwidth, outer.latency)

    def pass_on(self, sent: Quantity) -> Quantity:
        """Time of what a stage passes on to the next in a step."""
        latency = self.layout.microbatches * quantity(self.outer.latency)
        return links.transfer_time(sent, self.outer.bandwidth, latency)

    def share(
        self, held: Quantity, weights: Passes, gradients: Passes, experts: bool = False
    ) -> Quantity:
        """Time of gathering the weights of copies so often, and of reducing their gradients."""
        alike = _alike(self.layout, experts)
        among = _sharing(self.layout, experts)
        (weight, gathers), (gradient, reductions) = weights, gradients
        sent = collectives.all_gather_traffic(held * weight, among) * gathers
        sent = sent + collectives.all_gather_traffic(held * gradient, among) * reductions
        sent = sent + collectives.all_reduce_traffic(held * gradient / among, alike // among)
        latency = (gathers + reductions) * (among - 1) * quantity(self.outer.latency)
        return links.transfer_time(sent, self.outer.bandwidth, latency)


@dataclass(frozen=True)
class _OnMachine:
    """The same on a machine: slices are neighbours, then parts of sequences, copies and stages."""

    machine: Machine
    layout: Layout

    def sums(self, vectors: Quantity) -> Quantity:
        """At least the time of a sum over all slices."""
        return self._least("all_reduce", vectors, self.layout.tensor, 1)

    def gathers(self, cached: Quantity) -> Quantity:
        """At least the time of gathering the keys and values of all parts of a sequence."""
        return self._least("all_gather", cached, self.layout.context, self.layout.tensor)

    def exchanges(self, sent: Quantity) -> Quantity:
        """At least the time of sending tokens to their experts, or results back."""
        return self._least("all_to_all", sent, self.layout.experts, self.layout.expert_slices)

    def pass_on(self, sent: Quantity) -> Quantity:
        """Time of what a stage passes on: through the ports, unless one domain holds them all."""
        machine = self.machine
        inside = links.transfer_time(sent, machine.bandwidth).m_as("s")
        if largest(self.layout.devices) <= machine.domain:
            return quantity(inside, "s")
        outside = links.transfer_time(sent, machine.ports).m_as("s")
        return quantity(where(self.layout.devices <= machine.domain, inside, outside), "s")

    def share(
        self, held: Quantity, weights: Passes, gradients: Passes, experts: bool = False
    ) -> Quantity:
        """At least the time of gathering and reducing among the devices that share a state.

        Of these a domain holds as many as it has room for beside the other slices. Groups that
        hold copies of one another add up their gradients besides.
        """
        layout = self.layout
        alike, among = _alike(layout, experts), _sharing(layout, experts)
        apart = layout.expert_slices * layout.experts if experts else layout.tensor
        (weight, gathers), (gradient, reductions) = weights, gradients
        gathered = self._least("all_gather", held * weight, among, apart)
        reduced = self._least("reduce_scatter", held * gradient, among, apart)
        summed = self._least("all_reduce", held * gradient / among, alike // among, apart * among)
        return gathered * gathers + reduced * reductions + summed

    def _least(self, operation: str, size: Quantity, members: Any, apart: Any) -> Quantity:
        """The least time among so many devices, of which a domain holds one in so many.

        In an array, what no slice of the machine has room for takes for ever.
        """
        if not (getattr(members, "ndim", 0) or getattr(apart, "ndim", 0)):
            room = replace(self.machine, domain=max(1, self.machine.domain // apart))
            return collectives.least_time(operation, size, members, room)
        import numpy

        rooms = numpy.maximum(1, self.machine.domain // apart)
        pairs = members * (self.machine.domain + 1) + rooms  # one number for each different two
        different, places = numpy.unique(pairs, return_inverse=True)
        pace = [
            self._pace(operation, *divmod(int(pair), self.machine.domain + 1)) for pair in different
        ]
        each = numpy.array(pace)[places.reshape(numpy.shape(pairs))]
        return quantity(each * size.m_as("byte"), "s")

    def _pace(self, operation: str, members: int, room: int) -> float:
        """Seconds a byte."""
        domain = replace(self.machine, domain=room)
        try:
            return collectives.least_time(operation, "1 byte", members, domain).m_as("s")
        except InputError:
            return float("inf")


def _alike(layout: Layout, experts: bool) -> Any:
    """Devices that would hold the same, of experts or of all else."""
    return layout.expert_copies if experts else layout.copies


def _sharing(layout: Layout, experts: bool) -> Any:
    """How many of them divide it."""
    return maximum(layout.sharers // (layout.experts if experts else 1), 1)
