"""A job and its loads: a model, cut so, in these formats, run by this software, on this machine.

A `Job` is what every answer of the library is about, and a load is what it does: `Tokens` of a pass
of serving, or a `Batch` of training. `calc.step` takes both and says how long it takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from pint.facets.plain import PlainQuantity

from calc import formats
from calc.catalog import constants, machines, models, software as programs
from calc.catalog.hardware import Accelerator, dtype_of
from calc.catalog.machines import Machine, NotMeasured, device_of
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import check_transformer
from calc.catalog.models.weights import Weights
from calc.catalog.software import UNKNOWN, Software
from calc.core.arguments import check_is, number, one_of, whole_number
from calc.core.arrays import Number, Truth
from calc.core.device import Device
from calc.core.elementwise import ceiling, divisors, largest, maximum, minimum, where
from calc.core.errors import InputError, abbreviated, marked, one_of_counts
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import training
from calc.laws.experts import experts_used
from calc.networks import transformer
from calc.steps.splits import STREAMED, Split

SECOND, TOKEN, FLOP = quantity(1, "s"), quantity(1, "token"), quantity(1, "FLOP")
BYTE, TWO_BYTES = quantity(1, "byte"), quantity(2, "byte")
NO_WORK, NO_BYTES = 0 * FLOP, 0 * BYTE
PARTS = ("weight", "gradient", "optimizer")
SCHEDULES = {"1f1b": 0, "zb-h1": 2, "zb-v": 3}
"""Schedules of a pipeline, and how many gradients of weights wait to fill the bubble of each."""


@dataclass(frozen=True)
class Held:
    """Parameters of a model, and the devices of a layout that hold the same of them."""

    whole: Quantity
    """Parameters of the model."""
    own: Quantity
    """Parameters of a device, of the stage with the embedding or with the output."""
    alike: Number
    """Devices that would hold the same."""
    sharing: Number
    """How many of them divide a state, where it is sharded."""
    slices: Number
    """Devices that have all of a stage's among them. All send at once, each by its own port."""

    @property
    def group(self) -> Number:
        """Devices of the message by which a state is gathered or reduced: those of all slices."""
        return where(self.alike > 1, self.sharing * self.slices, 1)

    @property
    def groups(self) -> Number:
        """Devices of the message by which groups of hybrid sharding add up what each reduced."""
        return where(self.sharing < self.alike, self.alike * self.slices, 1)


@dataclass(frozen=True)
class Layout:
    """A cut of a model and its batch, in whole numbers or arrays of them.

    Parameters
    ----------
    data
        copies of the model (DP)
    tensor
        slices of each matrix (TP), with norms cut along the sequence
    pipeline
        stages (PP), each with as many layers, the last one perhaps with fewer
    microbatches
        of a copy in a step
    sharding
        stage of ZeRO: 0 for none, then optimizer, gradients and weights too are divided among the
        devices that would hold the same; gradients are then reduced in each microbatch
    hold_gradients
        each device holds its whole gradients instead, and reduces them once a step
    context
        parts of each sequence (CP)
    experts
        devices to which experts are shared out (EP), of those of DP and CP, and where these are
        fewer, of slices too
    stages_per_device
        thin stages that a device has of an interleaved schedule
    sharing
        devices that divide a state where not all that hold the same do (hybrid sharding)
    schedule
        of a pipeline: one forward and one backward pass in turn, "1f1b", interleaved with thin
        stages; or one without most of the bubble, "zb-h1", or "zb-v" with two thin stages of a
        device, the first with the last

    Examples
    --------
    >>> Layout(data=128, tensor=8, pipeline=16, microbatches=16).devices
    16384
    """

    data: Number = 1
    tensor: Number = 1
    pipeline: Number = 1
    microbatches: Number = 1
    sharding: Number = 0
    hold_gradients: bool = False
    context: Number = 1
    experts: Number = 1
    stages_per_device: Number = 1
    sharing: Number | None = None
    schedule: str = "1f1b"

    def __post_init__(self) -> None:
        one_of("a layout's schedule", self.schedule, SCHEDULES)
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name in ("sharding", "hold_gradients", "schedule") or value is None:
                continue
            if not _counts(value):
                whole_number(f"a layout's {part.name}", value)
        if not _counts(self.sharding, 0, 3):
            raise InputError(
                f"{marked('sharding')} must be a stage from 0 to 3; got"
                f" {abbreviated(self.sharding)}"
            )

    @property
    def devices(self) -> Number:
        """Devices of all copies, slices, stages and parts of a sequence."""
        return self.data * self.tensor * self.pipeline * self.context

    def hops(self, domain: int) -> tuple[Number, Number]:
        """Return how often stages pass a token on within a domain of so many devices, and between.

        Stages are neighbours, each with its slices, and with all copies that share out experts.

        >>> Layout(tensor=8, pipeline=4).hops(8), Layout(tensor=2, pipeline=4).hops(8)
        ((0, 3), (3, 0))
        """
        stage = self.tensor * where(self.experts > 1, self.data, 1)
        across = minimum(self.pipeline - 1, ceiling(stage * self.pipeline / domain) - 1)
        return self.pipeline - 1 - across, across

    @property
    def copies(self) -> Number:
        """Devices that would hold the same weights: those of DP and of CP."""
        return self.data * self.context

    @property
    def expert_copies(self) -> Number:
        """Devices that would hold the same experts."""
        return maximum(self.copies // self.experts, 1)

    @property
    def expert_slices(self) -> Number:
        """Slices of the matrices of an expert: fewer where slices have different experts."""
        return self.tensor * self.copies // (self.experts * self.expert_copies)

    @property
    def sharers(self) -> Number:
        """Devices that divide a state among them, where it is sharded."""
        return self.copies if self.sharing is None else self.sharing

    def shards(self, part: str) -> Truth:
        """Return whether the weights, the gradients or the optimizer are divided among devices."""
        sharded = self.sharding >= 3 - PARTS.index(part)
        return sharded & (not (part == "gradient" and self.hold_gradients))

    @property
    def gathers(self) -> Number:
        """Return how often a step gathers weights: for each pass where they are shared."""
        return where(self.shards("weight"), 2 * self.microbatches, 1)

    @property
    def reductions(self) -> Number:
        """Return how often a step reduces gradients: in each microbatch where they are shared."""
        return where(self.shards("gradient"), self.microbatches, 1)

    @staticmethod
    def stages_of(model: Transformer, stages: int | None) -> int:
        """Return the stages of a server (PP), one where none are given; each needs a layer.

        >>> Layout.stages_of(models.get("llama-3-8b"), 4)
        4
        """
        check_transformer(model)
        count = 1 if stages is None else whole_number("stages", stages)
        if count > model.layers:
            raise InputError(
                f"{marked('stages')} must be at most {model.layers}, the layers of {model.name};"
                f" got {count}",
                given=stages,
            )
        return count

    def layers_of_a_stage(self, model: Transformer) -> Number:
        """Layers of a device, where its stages are the fullest."""
        stages = self.pipeline * self.stages_per_device
        layers: Number = ceiling(model.layers / stages)
        return self.stages_per_device * layers

    def rules(self, model: Transformer) -> Iterator[tuple[Truth, str]]:
        """Yield whether a model can be cut like this, and the sentence for where it cannot."""
        layers = model.layers
        experts = model.experts or 1
        stages = self.pipeline * self.stages_per_device
        for heads, groups, *_ in dict.fromkeys(map(model.heads_of, ("full", "window"))):
            yield (
                heads % self.tensor == 0,
                f"{model.name} has {heads} heads, which {{tensor}} slices do not divide: take"
                " {slices}",
            )
            yield (
                where(groups % self.tensor == 0, 0, self.tensor % groups) == 0,
                f"{model.name} has {groups} heads of keys and values, which {{tensor}} slices"
                " neither divide nor are a multiple of: take {slices}",
            )
        multiple = model.width_multiple  # of widths that differ, of which the model has the mean
        for name, least in (
            ("feed_forward_width", multiple),
            ("expert_width", multiple),
            ("shared_expert_width", None),
        ):
            if (width := getattr(model, name)) is not None:
                said = width if least is None else f"multiples of {least}"
                yield (
                    (least or width) % self.tensor == 0,
                    f"{{tensor}} slices do not divide the {name.replace('_', ' ')} of"
                    f" {model.name}, {said}: take {{slices}}",
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
            " devices cannot share out evenly: take {shares}",
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
        """Return whether a model can be cut like this, for each of these layouts."""
        legal: Truth = True
        for fits, _ in self.rules(model):
            legal = legal & fits
        return legal

    def check(self, model: Any, machine: Machine | None = None) -> None:
        """Refuse a model that cannot be cut like this, with slices that its machine joins."""
        check_transformer(model)
        for fits, sentence in self.rules(model):
            if not (fits if isinstance(fits, bool) else fits.all()):
                degrees = {part.name: getattr(self, part.name) for part in fields(self)}
                slices, shares = Layout.slices_of(model, machine), divisors(model.experts or 1)
                degrees |= {"slices": one_of_counts(slices), "shares": one_of_counts(shares)}
                degrees["copies"] = self.copies
                raise InputError(sentence.format(**degrees))

    @staticmethod
    def slices_of(model: Transformer, machine: Machine | None = None) -> tuple[int, ...]:
        """The numbers of slices that the matrices of a model can be cut into (TP).

        Of a machine those that its links join: parts of a domain, and whole ones.

        >>> Layout.slices_of(models.get("llama-3-70b"))
        (1, 2, 4, 8, 16, 32, 64)
        >>> Layout.slices_of(models.get("llama-3-70b"), machines.get("mi300x-8"))
        (1, 2, 4, 8)
        """
        check_transformer(model)
        counts = (count for count in divisors(model.heads) if Layout(tensor=count).legal(model))
        if machine is None or machine.ring is not None:
            return tuple(counts)
        most, domain = machine.most_joined, machine.domain
        return tuple(n for n in counts if n <= most and (n <= domain or n % domain == 0))

    def parameters(self, model: Transformer) -> Quantity:
        """Parameters of one device: those of the stage with the embedding or with the output.

        >>> from calc import models
        >>> print(Layout(tensor=8, pipeline=4).parameters(models.get("llama-3-70b")))
        2.270B param
        """
        self.check(model)
        return self.dense_parameters(model) + self.expert_parameters(model)

    def dense_parameters(self, model: Transformer) -> Quantity:
        """Return a device's parameters that are in no expert, of a model that was checked.

        Training cuts K and V into more slices than there are heads too, and gathers what these
        make; `engine_start` has what servers hold.
        """
        parts, none = model.parts, quantity(0, "param")
        embedding, output = parts.get("embedding", none), parts.get("output", none)
        whole = quantity(sum(each.parameters for each in model.matrices if each.whole), "param")
        inner = model.parameters - embedding - output - model.expert_parameters - whole
        alone = embedding + output
        ends = maximum(embedding, embedding if model.tied_embeddings else output)
        share = quantity(self.layers_of_a_stage(model) / model.layers, "")
        apart = (self.pipeline > 1) & (self.schedule != "zb-v")
        parameters = where(apart, ends.m_as("param"), alone.m_as("param"))
        sliced = (inner * share + quantity(parameters, "param")) / self.tensor
        return sliced + whole * share

    def expert_parameters(self, model: Transformer) -> Quantity:
        """Return a device's share of those in experts, of a model that was checked."""
        share = quantity(self.layers_of_a_stage(model) / model.layers, "")
        return model.expert_parameters * share / (self.expert_slices * self.experts)

    def held(self, model: Transformer) -> tuple[Held, ...]:
        """Return what devices hold alike of a model that was checked, its experts shared out."""
        inside, tensor = model.expert_parameters, self.tensor
        dense = self.dense_parameters(model)
        held = Held(model.parameters - inside, dense, self.copies, self.sharers, tensor)
        if not inside:
            return (held,)
        sharing = maximum(self.sharers // self.experts, 1)
        slices = self.expert_slices * self.experts
        of_experts = self.expert_parameters(model)
        return held, Held(inside, of_experts, self.expert_copies, sharing, slices)

    def weights_read(self, weights: Weights, tokens: Number) -> Quantity:
        """Bytes of the matrices that a pass of so many tokens of each copy reads, on all devices.

        Each device reads its slices once. The embedding is looked up; of a mixture's experts those
        count that some token is sent to, of all copies that share them out.
        """
        sharers = maximum(self.experts, self.tensor)  # devices that have all experts among them
        seen = maximum(tokens * maximum(1.0, self.experts / self.tensor), 1.0)
        read = quantity(0, "byte") * seen
        for (copies, used, group), count in weights.elements.items():
            times: Number = copies * self.data
            if used < copies:
                woken = experts_used(copies, used / copies, seen).m_as("")
                times = woken * self.devices / (sharers * self.pipeline)
            read = read + times * count * weights.sizes[group]
        return read


def _counts(value: Any, least: int = 1, most: float = 2**62) -> bool:
    """Return whether it is a whole number in that range, or an array of them."""
    if type(value) is int:
        return least <= value <= most
    if isinstance(value, PlainQuantity):
        return False
    if getattr(getattr(value, "dtype", None), "kind", "") != "i" or not value.ndim:
        return False
    return not value.size or bool(least <= value.min() and value.max() <= most)


def input_size(dtype: str) -> Quantity:
    """Return what an element of a product's inputs takes in a format that is computed in.

    >>> print(input_size("bf16"), input_size("fp8"), input_size("tf32"))
    2 byte 1 byte 4 byte
    """
    check_is(str, "dtype", dtype, 'the name of a format, as "bf16" is')
    format_name = dtype_of(dtype) or dtype
    return formats.element_size("dtype", "fp32" if format_name == "tf32" else format_name)


@dataclass(frozen=True)
class Formats:
    """The formats of a job: of products, weights, caches, and tokens on the way to experts.

    Parameters
    ----------
    dtype
        of the inputs of products
    weights
        as they are kept, by a name, a size, or by group of matrices
    kv
        of keys and values
    dispatch
        of tokens on the way to their experts; that of products' inputs where left out
    combine
        of their results on the way back
    """

    dtype: str = "bf16"
    weights: QuantityLike = TWO_BYTES
    kv: QuantityLike = TWO_BYTES
    dispatch: QuantityLike | None = None
    combine: QuantityLike = TWO_BYTES

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtype_of(self.dtype) or self.dtype)  # in any spelling
        object.__setattr__(self, "kv", formats.cache_size("kv_size", self.kv))
        if not isinstance(self.weights, str):
            kept = formats.element_size("weight_size", self.weights)
            object.__setattr__(self, "weights", kept)
        sent = input_size(self.dtype) if self.dispatch is None else self.dispatch
        for name, size in (("dispatch", sent), ("combine", self.combine)):
            object.__setattr__(self, name, formats.element_size(f"{name}_size", size))

    @property
    def sent(self) -> tuple[Quantity, Quantity]:
        """Return what an element takes on the way to its experts, and on the way back."""
        assert self.dispatch is not None  # since it was read
        return quantity(self.dispatch), quantity(self.combine)


@dataclass(frozen=True)
class Training:
    """The training of all of a model."""

    method = "full"
    frozen = False
    """Whether the model's own weights stay as they are."""

    def share(self, model: Transformer) -> float:
        """Parameters that are trained over those of the model."""
        return 1.0

    def work(self, model: Transformer, length: QuantityLike) -> Quantity:
        """Operations of a token, forward and backward."""
        return 3 * transformer.causal_flops(model, length)

    def weight_size(self, model: Transformer) -> Quantity:
        """Bytes of a parameter that a pass reads, on average."""
        return constants.get(training.RECIPES["adam-mixed"]["gradient"])


ALL = Training()


@dataclass(frozen=True)
class Job:
    """A model on a machine: how it is cut, in what formats, run by what, and what is trained of it.

    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=8), Formats("fp8", "fp8"), "vllm")
    >>> job.machine.name, job.layout.devices, job.software.name
    ('NVIDIA DGX H100', 8, 'vLLM')
    """

    model: Transformer
    machine: Machine | Device
    """A device alone has neither links nor measured rates, so that nothing is expected of it."""
    layout: Layout = field(default_factory=Layout)
    formats: Formats = field(default_factory=Formats)
    software: Software = UNKNOWN
    trained: Training = ALL
    split: Split | None = None
    """What the host's memory holds of the weights, beside one device; None where all fits there."""
    power_cap: Quantity | None = None
    """The limit that is set on the power of each device, below its design power."""

    @classmethod
    def of(
        cls,
        model: Transformer | str,
        machine: Machine | Accelerator | str,
        layout: Layout | None = None,
        formats: Formats | None = None,
        software: Software | str | None = None,
        trained: Training = ALL,
        split: Split | None = None,
    ) -> Job:
        """The job of what a caller wrote: names stand for the model, machine and software."""
        host = machines.of(machine)
        if isinstance(software, str):
            one = host.device
            software = programs.meant(software, one.key, one.measured_as, one.name)
        how = layout or Layout(), formats or Formats(), software or UNKNOWN, trained, split
        return cls(models.transformer(model), host, *how)

    @staticmethod
    def check(job: object) -> None:
        check_is(Job, "job", job, 'a calc.Job, as in Job.of("llama-3-8b", "dgx-h100")')

    def __post_init__(self) -> None:
        check_transformer(self.model)
        device_of(self.machine)
        for name, kind, home in (
            ("layout", Layout, "calc.Layout"),
            ("formats", Formats, "calc.Formats"),
            ("software", Software, "of calc.software"),
            ("trained", Training, "calc.finetuning.Adapters, or left out"),
        ):
            check_is(kind, name, getattr(self, name), home)
        if isinstance(self.machine, Machine) and largest(self.layout.devices) > 1:
            object.__setattr__(self, "machine", self.machine.hosted)
        if self.split is not None:
            check_is(Split, "split", self.split, "of calc.splits")
            if largest(self.layout.devices) > 1:
                raise InputError(
                    f"{marked('host')} is memory beside one device; got {self.layout.devices:g}"
                    " devices: leave it, or take one"
                )

    @cached_property
    def device(self) -> Device:
        """The device of which there are several."""
        return device_of(self.machine)

    @property
    def measured_on(self) -> Machine:
        """The machine, whose kernels and messages were measured as far as its data say."""
        if not isinstance(self.machine, Machine):
            raise NotMeasured(f"{self.device.name} alone has no measured rates")
        return self.machine

    @property
    def peak(self) -> Quantity:
        """The published rate of all devices together, in the format of products.

        Of a device without any published peak it is endless, so that memory alone bounds.
        """
        dtype = self.formats.dtype
        if not self.device.is_rated(dtype):
            return quantity(math.inf, "FLOP/s")
        faster = self.software.products_faster(self.device, dtype)
        return self.device.peak(dtype) * (faster * self.layout.devices)

    @property
    def memory_bandwidth(self) -> Quantity:
        """Bandwidth of the memory of all devices together."""
        return self.device.memory_bandwidth * self.layout.devices

    @property
    def sends(self) -> bool:
        """Return whether any two devices are there that send each other something."""
        return max(self.measured_on.domain, largest(self.layout.devices)) > 1

    @property
    def chosen_experts(self) -> int:
        """Experts that a token is sent to; one where the model has none."""
        return self.model.active_experts or 1

    @cached_property
    def weights(self) -> Weights:
        """The formats of the weights, by group of matrices."""
        return Weights.of(self.model, self.formats.weights, "weight_size")

    @cached_property
    def weight_memory(self) -> Quantity:
        """Bytes of all weights that devices hold: each copy has its own of what is not shared out.

        >>> print(Job.of("mixtral-8x7b", "dgx-h100", Layout(data=8, experts=8)).weight_memory)
        115.9 GB
        """
        whole, shared = self.weights.memory, NO_BYTES
        if self.layout.experts > 1:
            for matrix in self.model.matrices:
                if matrix.used < matrix.copies:
                    shared = shared + matrix.parameters * self.weights.size(matrix)
        return whole + (self.layout.data - 1) * (whole - shared)

    def streams(self, load: Tokens) -> bool:
        """Return whether weights in the host's memory are sent to the device for such a step.

        llama.cpp does so from a number of tokens on; of fewer the host's processor takes care.
        """
        return bool(largest(load.computed) >= STREAMED)

    def streamed(self, load: Tokens) -> Quantity:
        """Bytes of weights that the host sends for it, once for each piece of prompts."""
        assert self.split is not None
        pieces = self.pieces(load)
        return self.split.read(self.weights, load.computed / pieces) * pieces

    def pieces(self, load: Tokens) -> Number:
        """Return in how many pieces its prompts are computed."""
        piece = self.software.piece or largest(load.computed)
        count: Number = ceiling(load.computed / piece)
        return count

    def under_way(self, load: Tokens) -> tuple[Number, Tokens]:
        """Return how many batches fill the stages of each copy at once, and one of them.

        As many as there are stages, and no more than sequences, or tokens of prompts, to share out.

        >>> job = Job.of("llama-3-8b", "dgx-h100", Layout(pipeline=4))
        >>> count, batch = job.under_way(Tokens(writing=6, context=1000))
        >>> print(count, batch.writing)
        4 1.5
        """
        of_copy = (load.writing if load.writes else load.reading) / self.layout.data
        count = minimum(self.layout.pipeline, maximum(of_copy, 1.0))
        return count, load.of_one(count)

    @cached_property
    def layers_that_exchange(self) -> int:
        """Layers whose tokens are sent to experts, which copies with tokens of their own share."""
        shared = largest(self.layout.data) > 1 and largest(self.layout.experts) > 1
        return self.model.layers_with("experts") if shared else 0

    @property
    def sums(self) -> int:
        """Sums of slices in a pass: one a block, but where results come back from the experts."""
        return self.model.blocks - self.layers_that_exchange

    def sent_to_experts(self, tokens: Number) -> tuple[Quantity, Quantity]:
        """Bytes that a device sends in a layer, of so many tokens of its copy: out, and back.

        They are of vectors that go to one expert each; a token goes to `chosen_experts`.
        """
        numbers = tokens * self.model.expert_inputs
        out, back = self.formats.sent
        return out * (numbers / self.layout.tensor), back * (numbers / self.layout.tensor)

    @cached_property
    def trained_share(self) -> float:
        """Parameters that are trained over those of the model."""
        return self.trained.share(self.model)

    @cached_property
    def trained_size(self) -> Quantity:
        """Bytes of a parameter that a pass of training reads, on average."""
        return self.trained.weight_size(self.model)

    @cached_property
    def layers_of_a_stage(self) -> Number:
        """Layers of a device, where its stages are the fullest."""
        return self.layout.layers_of_a_stage(self.model)

    def cached_of_a_layer(self, batch: Batch) -> Quantity:
        """Bytes of the keys and values of a microbatch, the average of all layers."""
        positions: Number = transformer.kept_context(self.model, batch.length).m_as("")
        sequences: Number = batch.sequences
        size = transformer.kv_cache_per_token(self.model, TWO_BYTES) / self.model.layers
        return size * TOKEN * (positions * sequences)

    @cached_property
    def attended_size(self) -> float:
        """Bytes of a token's queries in a layer, or of what they have found, of all heads."""
        return float(transformer.attended_per_token(self.model).m_as("byte/token")) / 2

    @property
    def copies_of_caches(self) -> Number:
        """Return how many slices have the same heads of keys and values, beyond their number.

        Latent attention has no heads to divide its cache by, so that all slices have the same.
        """
        return maximum(self.layout.tensor / self.model.cache_heads, 1.0)

    @property
    def cache_devices(self) -> int:
        """Devices that have the caches of a sequence among them: all slices of all stages."""
        return int(self.layout.tensor * self.layout.pipeline)

    def cut(self, layout: Layout) -> Job:
        """Return the same on devices that share the model otherwise, with weights as read."""
        alone = largest(layout.devices) == 1
        other = replace(self, layout=layout, split=self.split if alone else None)
        if "weights" in vars(self):
            vars(other)["weights"] = self.weights
        return other

    def with_context(self, tokens: float) -> Job:
        """Return the job of a model made to read so many tokens, whatever it was made for."""
        enough = tokens <= self.model.context
        return self if enough else replace(self, model=self.model.with_context(LONGEST))


LONGEST = 1e9  # tokens of a sequence


def reaching(model: Transformer, tokens: float) -> Transformer:
    """The model, made to read so many tokens: a kernel runs whatever context it was made for.

    >>> from calc import models
    >>> print(reaching(models.get("llama-3-8b"), 100_000).context)
    1000000000
    """
    check_transformer(model)
    return model if number("tokens", tokens) <= model.context else model.with_context(LONGEST)


@dataclass(frozen=True)
class Tokens:
    """A pass of serving: sequences that write a token each, and prompts that are read.

    Each may be a number, or an array for as many passes.
    """

    writing: Number = 0.0
    """Sequences that write a token each."""
    context: Number = 0.0
    """Tokens that each of them has in its cache."""
    reading: Number = 0.0
    """Tokens of prompts that are read."""
    prompt: Number = 1.0
    """Tokens that are read of each of these prompts."""
    before: Number = 0.0
    """Tokens that stand before these in the cache: of earlier chunks, or of a prefix."""
    drafted: float = 0.0
    """Drafted tokens that are checked beside the one that each sequence writes."""

    @staticmethod
    def check(load: object) -> None:
        check_is(Tokens, "load", load, "calc.Tokens(…)")

    @cached_property
    def longest(self) -> float:
        """Tokens that the longest of its sequences has, those of its cache included."""
        return max(largest(self.context), largest(self.before + self.prompt))

    @cached_property
    def writes(self) -> bool:
        """Return whether any sequence writes."""
        return largest(self.writing) > 0

    @cached_property
    def reads(self) -> bool:
        """Return whether any prompt is read."""
        return largest(self.reading) > 0

    @property
    def checked(self) -> Number:
        """Tokens that sequences write or, where they were drafted, check."""
        return self.writing * (1 + self.drafted)

    @property
    def computed(self) -> Number:
        """Tokens that pass through the model."""
        return self.checked + self.reading

    @property
    def prompts(self) -> Number:
        """Prompts that are read, or what they amount to."""
        return self.reading / self.prompt

    def of_one(self, replicas: Number) -> Tokens:
        """The share of one of so many copies of the model."""
        return replace(self, writing=self.writing / replicas, reading=self.reading / replicas)


@dataclass(frozen=True)
class Batch:
    """A step of training: microbatches of sequences of one length, and what runs twice.

    Parameters
    ----------
    length
        tokens of a sequence
    sequences
        of a microbatch of a copy; how many of these there are, the layout says
    recomputation
        none, selective (the scores of attention), alternate (every other product besides), or full
    """

    length: Any
    sequences: Any = 1
    recomputation: str = "selective"

    @staticmethod
    def check(load: object) -> None:
        check_is(Batch, "load", load, "calc.Batch(…)")
