"""What a device's memory holds of a job that serves, and what fits: `calc.device_memory.fit`.

An engine takes a share of what it finds, loads its weights, runs a step of its largest size, and
gives to keys and values what is left, in blocks. What that step takes at its peak follows from the
model's shape: either the feed-forward network of a layer, for all tokens of the step, or the
sampler, for the logits of all its sequences. What libraries take follows from no shape, and is
measured. Of a program without published rules its weights and caches are counted in its share of
the memory, and with software "none" the bytes alone in all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

from calc import formats
from calc.catalog import engines, machines, models, software as programs
from calc.catalog.engines import Engine
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import CACHING, RECURRENT, Matrix, check_transformer
from calc.catalog.models.checkpoints import RECURRENCES
from calc.catalog.models.weights import Weights, unless_said
from calc.core import arguments
from calc.core.arguments import number, whole_number
from calc.core.arrays import Number
from calc.core.device import Device
from calc.core.elementwise import ceiling, floor, largest, minimum
from calc.core.errors import InputError, marked
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws.caches import kv_bytes_per_token
from calc.networks import transformer
from calc.steps.job import NO_BYTES, Formats, Job, Layout, reaching

TWO_BYTES = 2  # of an activation, and of a position's sine or cosine
FOUR_BYTES = 4
BYTE = 8  # bits
MANY = 1.5  # times as many layers of one kind as of another: then blocks are as long as the fewer
PADDED_VOCABULARY = 64  # rows that every device has a multiple of
PADDED_EXPERTS = 256  # and columns of experts in four bits
TENSORS = (1, 2, 4, 8, 16, 32, 64)
GPUS = ("NVIDIA", "AMD Instinct")
MOST_USED = 0.95  # share of a device that engines are told to take where memory is short
FEW_SEQUENCES = 16  # and the sequences and tokens of a step that it is then made small to
SMALL_STEP = 2048
SHORTEST = 1024  # tokens of a sequence that is of use
NARROW_CACHE = "fp8"
NARROW_WEIGHTS = ("fp8", "int4")
KINDS = ("settings", "context", "kv", "weights", "tensor")  # of changes, the cheapest first
MAY_NOT_FIT = "may not fit"
MOST_CHANGES = 3  # that are made together


@dataclass(frozen=True)
class Part:
    """One part of a device's memory, and where the number comes from."""

    name: str
    memory: Quantity
    how: str
    off: Quantity | None = None
    """What it may be off by, where logs tell."""


@dataclass(frozen=True)
class Pages:
    """Layers that keep the same of a sequence, and what a block of it takes in one of them."""

    kind: str
    layers: int
    each: float
    """Bytes of a token in a layer; of a state those of the sequence."""

    def blocks(self, tokens: Number, block: int, ahead: int, window: int, states: int) -> Number:
        """Return the blocks that a sequence of so many tokens holds in one of these layers."""
        if self.kind in RECURRENT:
            return states
        if self.kind == "window":
            # Those of a step are all written before any that the window has left behind is freed.
            return ceiling(minimum(window - 1 + ahead, tokens) / block) + 1
        return ceiling(tokens / block)


@dataclass(frozen=True)
class Way:
    """A frozen record of a change with which a job fits, tried before it is told."""

    settings: Mapping[str, object]
    """By the names of the arguments of `fit`."""
    told: str
    """The same in words, with what then fits."""


@dataclass(frozen=True)
class Lacks:
    """A frozen record of what each device lacks for one sequence, and of what would make it fit."""

    missing: Quantity
    ways: tuple[Way, ...] = ()
    """The cheapest first; `fit` tries them, and `of` leaves them out."""


@dataclass(frozen=True, eq=False)
class Start:
    """A frozen record of how a program is started with a model, and of what that takes.

    Its methods count in bytes of one device; `of` makes a `Memory` of them.
    """

    job: Job
    rules: Engine | None
    """Those of the program; None where none are known of it, of such a device or such a model."""
    memory: Quantity | None
    """What programs find of each device's memory, where that is given."""
    utilization: float
    step_tokens: int
    step_sequences: int
    shared: bool = False
    """Whether devices that would hold the same caches share them out instead."""

    @property
    def engine(self) -> Engine:
        """The rules, where there are any."""
        assert self.rules is not None
        return self.rules

    @property
    def model(self) -> Transformer:
        """The model that is served."""
        return self.job.model

    @property
    def layout(self) -> Layout:
        """Return how it is cut."""
        return self.job.layout

    @property
    def device(self) -> Accelerator:
        """The device of which there are one or several."""
        device = self.job.device
        assert isinstance(device, Accelerator)
        return device

    @property
    def weights(self) -> Weights:
        """The formats of the weights."""
        return self.job.weights

    @property
    def bare(self) -> bool:
        """Whether bytes alone are counted, since no software is meant."""
        return not self.job.software.key

    @cached_property
    def visible(self) -> Quantity:
        """What programs find of the device's memory."""
        if self.memory is not None:
            found = self.memory
        elif self.rules is not None:
            found = engines.visible(self.device)
        else:
            found = self.job.device.memory_capacity
        return found.to("GiB")

    def parts(self) -> Iterator[Part]:
        """Yield what it takes before caches, on each device."""
        if self.bare:
            weights = self.job.weight_memory / self.layout.devices
            yield Part("weights", weights.to("GiB"), f"as they are kept, in {self.weights}")
            return
        weights = _gib(self._held())
        off = None if self.rules is None else self._off("weights", weights)
        off = None if off is None else off + self._unlike.to("MiB")
        yield Part("weights", weights, self._weights_told(), off)
        if self.rules is None or self.engine.rule == "static":
            return
        step, told = self._peak()
        constant = f"{self.engine['constant'].to('MiB')} whatever the model"
        told = f"{told}, and {constant}, {_source(self.engine, 'constant')}"
        yield Part("largest step", step, told, self._off("step", step))
        if self.engine["workspace"].magnitude and (buffers := self._experts_buffers()):
            told = "workspaces of the chosen experts, which stay once they are made"
            memory = _gib(buffers)
            yield Part("experts' buffers", memory, told, self._off("step", memory))
        outside, told = self._outside()
        yield Part("outside of torch", outside, told, self._off("outside", outside))
        if self.engine["graphs_counted"].magnitude:
            told = f"left for CUDA graphs, {_source(self.engine, 'graphs')}"
            yield Part("graphs", self.engine["graphs"].to("GiB"), told)

    def _off(self, name: str, memory: Quantity) -> Quantity | None:
        """Return what a part may be off by, as the last logs that were read say."""
        if f"{name}_error" not in self.engine:
            return None
        off = self.engine[f"{name}_error"]
        return (off * memory if off.unitless else off).to("MiB")

    @property
    def error(self) -> Quantity:
        """What the memory left for caches is off by at most, in nine logs of ten.

        Of a device whose logs were not read, what programs find of its memory may be off too, and
        of several without a switch what their links' buffers take; of models with states what
        their kernels take; of a version whose rules are another's its largest step; and of weights
        that a name alone tells of what their makers leave in 16 bits.
        """
        off: Quantity = self.engine["error"].to("GiB") + self._unlike
        if self.engine.counted_as and "counted_error" in self.engine:
            off = off + self.engine["counted_error"] * self._peak()[0]
        if self.memory is None and not engines.is_visible_known(self.device):
            off = off + self.device.memory_capacity * engines.visible_spread() * self.utilization
        if self._links_unknown:
            off = off + self.engine["apart"]
        if self.model.layers_with(*RECURRENT) and "states_error" in self.engine:
            off = off + self.engine["states_error"]
        return off

    @cached_property
    def _unlike(self) -> Quantity:
        """Return what weights of other makers, or kernels, may take more or less."""
        off = quantity(0, "GiB")
        if "named_error" not in self.engine:
            return off
        padding = sum(self._padding(matrix) for matrix in self.model.matrices)
        off = off + self.engine["padded_error"] * _gib(padding)
        if self.weights.by_name:
            more = sum(
                each.parameters * (TWO_BYTES - float(self.weights.size(each).m_as("byte")))
                for each in self.model.matrices
                if each.name in RECURRENCES
            )
            wider = _gib(max(0.0, more) / int(self.layout.tensor))
            off = off + self.engine["recipe_error"] * wider
            off = off + self.engine["named_error"] * _gib(self._weights())
        return off

    @property
    def _links_unknown(self) -> bool:
        """Whether several devices are joined otherwise than those whose buffers logs tell of."""
        several = bool(self.layout.tensor > 1) and "together" in self.engine
        return several and getattr(self.job.machine, "fabric", "") != "switch"

    @cached_property
    def divided(self) -> bool:
        """Whether it is known how its caches are divided into blocks, among layers of all kinds."""
        if self.rules is None:
            return False
        return self.engine.rule == "profiled" or not self.model.layers_with("window", *RECURRENT)

    @cached_property
    def block(self) -> int:
        """Tokens of a block; beside states as many as make it as large as one of these."""
        if self.rules is None or not self.divided:
            return 1
        latent = bool(self.model.layers_with("latent", "sparse"))
        block = int(self.engine["latent_block" if latent else "block"].m_as(""))
        states = [pages.each for pages in self._pages if pages.kind in RECURRENT]
        if states:
            token = max(pages.each for pages in self._pages if pages.kind in CACHING)
            block *= math.ceil(max(states) / (token * block))
        return block

    @cached_property
    def _groups(self) -> tuple[int, int]:
        """Layers of a group that shares a table of blocks, and how many groups there are."""
        counts = [pages.layers for pages in self._pages]
        fewest, most = min(counts), max(counts)
        size = most if most < MANY * fewest else fewest
        return size, sum(math.ceil(count / size) for count in counts)

    @property
    def prints_groups(self) -> bool:
        """Whether the engine's log divides its tokens by groups, in place of what they hold."""
        if self.rules is None or "groups_printed" not in self.rules or not self.divided:
            return False
        return bool(self.rules["groups_printed"].magnitude) and self._groups[1] > 1

    @cached_property
    def block_bytes(self) -> float:
        """Bytes that a block takes in all layers of a group."""
        page = max(
            pages.each * (1 if pages.kind in RECURRENT else self.block) for pages in self._pages
        )
        return page * self._groups[0]

    def _tokens_of_a_block(self, pages: Pages) -> int:
        """Tokens of a block of one kind: more where they keep less, so that all are as large."""
        widest = max(other.each for other in self._pages if other.kind in CACHING)
        times = widest / pages.each
        return self.block * (int(times) if times == int(times) else 1)

    def blocks_of(self, context: Number) -> Number:
        """Return the blocks that a sequence of so many tokens holds, of all groups."""
        window, states = self.model.window or 0, 1
        if self.rules is not None and "state_blocks" in self.rules:
            states = int(self.rules["state_blocks"].m_as(""))
        held: Number = 0
        for pages in self._pages:
            groups, block = math.ceil(pages.layers / self._groups[0]), self.block
            if pages.kind in CACHING:
                block = self._tokens_of_a_block(pages)
            of_one = pages.blocks(context, block, self.step_tokens, window, states)
            held = held + groups * of_one
        return held

    def taken(self, context: Number) -> Number:
        """Return the bytes that a sequence of so many tokens takes of each device."""
        if self.divided:
            return self.blocks_of(context) * self.block_bytes
        layout, model = self.layout, reaching(self.model, max(0.0, largest(context)))
        cache: Number = transformer.kv_cache(model, context, self.job.formats.kv).m_as("byte")
        copies = 1 if self.bare or self.shared else self.job.copies_of_caches
        return cache * copies / (layout.tensor * layout.pipeline * layout.context)

    @cached_property
    def _pages(self) -> tuple[Pages, ...]:
        """What each kind of layer keeps of a token, or of a sequence, on a device."""
        model, size = self.model, self.job.formats.kv
        tensor = int(self.layout.tensor)
        copies = int(self.job.copies_of_caches) if self.shared else 1
        pages: list[Pages] = []
        for kind in ("full", "window"):
            if layers := self._layers_with(kind):
                own = model.heads_of(kind)
                per_token = kv_bytes_per_token(
                    1, max(1, own.keys // tensor), own.key_width, own.value_width, size
                )
                pages.append(Pages(kind, layers, per_token.m_as("byte/token") / copies))
        if layers := self._layers_with("latent", "sparse"):
            # Every device has all latents, since no head of theirs can be cut.
            per_token = transformer.kv_cache_per_token(model, size) / model.caching_layers
            pages.append(Pages("latent", layers, per_token.m_as("byte/token") / copies))
        states = (
            Pages(kind, layers, self._state(kind) / tensor)
            for kind in RECURRENT
            if (layers := self._layers_with(kind))
        )
        return (*pages, *states)

    def _layers_with(self, *kinds: str) -> int:
        """Return the layers of these kinds that a device has, where its stage is the fullest."""
        return math.ceil(self.model.layers_with(*kinds) * self._stage)

    @property
    def _stage(self) -> float:
        """The share of the layers that a device of the fullest stage has."""
        return float(self.layout.layers_of_a_stage(self.model)) / self.model.layers

    def _state(self, kind: str) -> float:
        """Bytes of the state of a sequence in a layer: its matrix, and inputs of a convolution."""
        model = self.model
        each = model.state_bytes or TWO_BYTES
        inputs = model.convolved(kind) * ((model.convolution or 0) - 1) * TWO_BYTES
        if kind == "linear":
            widths = (model.linear_key_width or 0) * (model.linear_value_width or 0)
            return float(each * (model.linear_value_heads or 0) * widths + inputs)
        return float(each * model.state_inner * (model.state_width or 0) + inputs)

    def _held(self) -> float:
        """Bytes of the weights of a device of the fullest stage, with its share of the experts."""
        layout, model, tensor = self.layout, self.model, int(self.layout.tensor)
        memory, slices = self._weights(), int(layout.expert_slices * layout.experts)
        for matrix in model.matrices:
            if matrix.used < matrix.copies and slices != tensor:
                whole = matrix.parameters * float(self.weights.size(matrix).m_as("byte"))
                memory += whole * (1 / slices - 1 / tensor)
        if layout.pipeline == 1:
            return memory
        size = float(self.weights.sizes["others"].m_as("byte")) / tensor
        ends = [
            float(model.parts[name].m_as("param")) * size
            for name in ("embedding", "output")
            if name in model.parts
        ]
        return (memory - sum(ends)) * self._stage + max(ends)

    def _weights(self) -> float:
        """Bytes of the weights of a device, with an encoder of images and a table of positions."""
        model, tensor = self.model, int(self.layout.tensor)
        memory = float(self.weights.memory.m_as("byte")) / tensor
        groups, width = model.kv_heads, model.head_width
        for matrix in model.matrices:
            size = float(self.weights.size(matrix).m_as("byte"))
            if matrix.name in ("key", "value") and tensor > groups:
                memory += matrix.parameters * size * (1 / groups - 1 / tensor)
            if matrix.name in ("query down", "key and value down"):
                memory += matrix.parameters * size * (1 - 1 / tensor)
            memory += self._padding(matrix)
        memory += TWO_BYTES * (model.vision or 0) / tensor
        rotary = model.rotary_width if model.rotary_width is not None else width
        positions = 0.0 if model.positions is not None else float(model.context)
        return memory + positions * float(rotary) * TWO_BYTES

    def _padded(self, group: str) -> bool:
        """Whether matrices are as wide as kernels for four bits need them, not as in files."""
        files = bool(self.job.software.mxfp4)
        return not files and group == "experts" and self._bits(group) < BYTE

    def _padding(self, matrix: Matrix) -> float:
        """Bytes of a device by which a matrix is wider for such kernels."""
        if not self._padded(matrix.group):
            return 0.0
        size = float(self.weights.size(matrix).m_as("byte")) / int(self.layout.tensor)
        wider = _padding(min(matrix.inputs, matrix.outputs)) - 1
        return matrix.parameters * size * wider

    def _bits(self, group: str) -> float:
        """Bits of a weight of a group of matrices, of the first of them where they differ."""
        of_group = (each for each in self.model.matrices if each.group == group)
        first = next(of_group, None)
        size = self.weights.sizes["others"] if first is None else self.weights.size(first)
        return float(size.m_as("bit"))

    def _weights_told(self) -> str:
        sliced = f", in {self.layout.tensor} slices" if self.layout.tensor > 1 else ""
        images = ", its encoder of images" if self.model.vision else ""
        told = f"counted matrix by matrix in {self.weights}{sliced}{images}"
        return f"{told}, with a table of positions"

    def _peak(self) -> tuple[Quantity, str]:
        """The largest step at its peak, and what takes it."""
        model, tokens = self.model, self.step_tokens
        width = float(model.width)
        constant = float(self.engine["constant"].m_as("byte"))
        layer = tokens * (TWO_BYTES * self.engine["stream"].m_as("") * width + self._inner())
        if not self.engine["workspace"].magnitude:
            layer += self._experts_buffers()
        sampling = tokens * width * TWO_BYTES + self._sampling()
        if layer > sampling:
            return _gib(layer + constant), f"a layer's activations for {tokens} tokens"
        sampled = f"logits of {self.step_sequences} sequences for {model.vocabulary} words"
        return _gib(sampling + constant), f"{sampled}, in the sampler"

    def _inner(self) -> float:
        """Bytes of a token inside of the widest feed-forward network that every token meets."""
        model, tensor = self.model, int(self.layout.tensor)
        shared = (model.shared_experts or 0) * (
            (model.shared_expert_width or 0) or (model.expert_width or 0)
        )
        dense = (model.feed_forward_width or 0) if model.layers_with("dense") else 0
        inner = max(dense, shared) / tensor
        products = TWO_BYTES * (3 if model.gated else 2)
        multiplied = self.weights.products
        if round(self._bits("feed-forward")) == BYTE and (
            not multiplied or multiplied in self.device.dtypes
        ):
            products += 1  # what is multiplied is rounded to a byte before
        return inner * products

    def _sampling(self) -> float:
        """Bytes that logits and sampling take of all sequences of the step."""
        vocabulary = self.model.vocabulary or 0
        rows = math.ceil(vocabulary / PADDED_VOCABULARY) * PADDED_VOCABULARY
        per_logit = TWO_BYTES + float(self.engine["sampler"].m_as("byte"))
        units = self.device.units if self.device.publishes("units") else 0
        programs = self.engine["sampler_rows"].m_as("") * min(units, self.step_sequences)
        return float(rows * (self.step_sequences * per_logit + FOUR_BYTES * programs))

    def _experts_buffers(self) -> float:
        """Bytes of what goes into the chosen experts of a step and comes out of them."""
        model = self.model
        if not model.layers_with("experts") or self._padded("experts"):
            return 0.0
        slices = int(self.layout.expert_slices)
        width, narrow = (model.width or 0), (model.expert_width or 0) / slices
        between = 2 * narrow if model.gated else narrow
        chosen = self.step_tokens * (model.active_experts or 0)
        return TWO_BYTES * chosen * (max(narrow, width) + max(between, width))

    def _outside(self) -> tuple[Quantity, str]:
        """What lies outside of torch: the kernels' own memory and buffers of links."""
        if self.layout.tensor == 1:
            return self.engine["alone"].to("GiB"), _source(self.engine, "alone")
        if self._links_unknown:
            return self.engine["apart"].to("GiB"), _source(self.engine, "apart")
        both = self.engine["together"] + self.layout.tensor * self.engine["each"]
        return both.to("GiB"), f"with buffers of links, {_source(self.engine, 'together')}"

    def assumptions(self) -> Iterator[str]:
        """Yield what is taken for granted, a sentence each."""
        if self.rules is None:
            return
        engine = self.engine
        if self.memory is not None:
            yield f"Programs find {self.visible} of {self.device.memory_capacity}, as given."
        elif engines.is_visible_known(self.device):
            yield f"Programs find {self.visible} of {self.device.memory_capacity}, by their logs."
        left = self.visible * (1 - self.utilization)
        if engine.rule == "static":
            yield (
                f"{engine.name} takes no trial step: what its activations and graphs need must fit"
                f" into the {left} that it leaves."
            )
        elif not engine["graphs_counted"].magnitude:
            yield (
                f"CUDA graphs are captured afterwards, {engine['graphs']} in the mean of logs, into"
                f" the {left} outside of its share."
            )

    def caveats(self) -> Iterator[str]:
        """Yield what no log of this device or version says, or what is not counted."""
        software = self.job.software
        if self.bare:
            yield (
                "Bytes of weights and caches alone are counted, each cache once, in all of the"
                " memory: a bound, which no program reaches."
            )
            return
        if self.rules is None:
            yield (
                f"How {software.name} shares out the memory of {self.job.device.name} is not in the"
                f" data: {self.utilization:.0%} of it is taken to be for weights and caches, and"
                " nothing else is counted."
            )
            return
        engine, device = self.engine, self.device
        if self.memory is None and not engines.is_visible_known(device):
            yield (
                f"Programs find {engines.visible_share():.0%} of {device.memory_capacity}, as on"
                " other devices in the median: no log of this one was read."
            )
        if not self.divided:
            yield (
                f"How {engine.name} divides its pool among layers with windows or states and the"
                " others is not in the data: none of it is taken to be left over."
            )
        if engine.rule == "static":
            return
        if engine.counted_as:
            yield (
                f"How {engine.title} measured memory is not in the data: it is taken to be as in"
                f" {engine.name} {engine.counted_as}."
            )
        if engine.beyond_logs:
            yield (
                f"No complete log of {engine.title} was read: its largest step is taken to need"
                f" what it needs in {engine.name} {engine.read_to}, and each ± is of that version."
            )
        if self._links_unknown:
            yield (
                "Without a switch between devices, buffers of links are taken to be as in a version"
                " that had none for sums through one; no complete log of such devices was read."
            )
        if self.model.layers_with(*RECURRENT) and self.model.state_bytes is None:
            yield (
                "States are taken to be in 16 bits, as they are where a configuration does not ask"
                " for FP32, which doubles them."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Memory(Answer):
    """A frozen record of what each device's memory holds of a job, part by part, and what fits.

    `parts` are what is taken before caches, each with how it is computed or measured; `caches` is
    what is left of the `room`, `blocks` how many blocks that makes, `tokens` how many tokens they
    hold in sequences of `context`, and `sequences` how many of these, in one copy of the model.
    `error` is how far off `caches` is: nine in ten of the published logs that nothing was fitted to
    are nearer. Of what does not fit `lacks` says what is missing, and what would make it fit.

    >>> print(fit("llama-3.1-8b", "h100", "vllm 0.19", utilization=0.95, context=8192))
    Llama 3.1 8B on 1 NVIDIA H100 SXM5 80 GB by vLLM 0.19: 476016 tokens of cache
    logs of engines, matrix by matrix and part by part; tokens ± 0.4%
    chosen: gpu_memory_utilization 0.95; steps of 8192 tokens and 1024 sequences
    <BLANKLINE>
                         each device
    found by programs    79.19 GiB
    room of the program  75.23 GiB
      weights            14.99 GiB    ± 122.8 MiB
      largest step       1.883 GiB    ± 25.07 MiB
      outside of torch   0.25 GiB     ± 215.0 MiB
    keys and values      58.11 GiB    ± 0.25 GiB
      blocks of 16       29751
      tokens             476016       ± 0.4%
      sequences of 8192  58.11
    """

    _SENTENCES = (("how", "Each part"), ("assumptions", "Assumed"))

    start: Start
    context: int
    visible: Quantity
    """What programs find of each device's memory."""
    room: Quantity
    """What this one may take of it."""
    parts: tuple[Part, ...]
    caches: Quantity
    """What is left for keys, values and states; below zero where the model is too large."""
    error: Quantity | None
    """What that is off by; None where no log tells."""
    block: int
    block_memory: Quantity
    """What a block takes in all layers of a group."""
    blocks: int
    """Blocks that are left, each of a group of layers."""
    blocks_of_a_sequence: int
    tokens: int
    sequences: float
    lacks: Lacks | None
    """What each device lacks for one sequence of this length; None where one fits."""

    @property
    def fits(self) -> bool:
        """Whether a sequence of the wanted length is held."""
        return self.lacks is None

    @cached_property
    def doubt(self) -> str:
        """The sentence on what may be otherwise, where the ± of caches covers one sequence."""
        taken = _gib(float(self.start.taken(self.context)))
        if self.error is None or abs(self.caches - taken) > self.error:
            return ""
        job, may = self.start.job, MAY_NOT_FIT if self.fits else "may fit after all"
        on = f"{job.model.name} {may} on {job.layout.devices} {job.device.name}"
        return (
            f"{on}: keys and values have {self.caches} ± {self.error} of each, and a sequence of"
            f" {self.context} tokens takes {taken}."
        )

    @property
    def verdict(self) -> str:
        """Whether a sequence is held, as far as is known."""
        return "does not fit" if not self.fits else MAY_NOT_FIT if self.doubt else "fits"

    def sequences_of(self, context: Number) -> Number:
        """Return how many sequences of another length, or of each of several, a copy holds."""
        return self._pool / self.start.taken(context)

    def batch_of(self, context: Number) -> Number:
        """Return the whole sequences of a length that all copies of the model hold together."""
        return floor(self.sequences_of(context)) * self.start.layout.data

    @property
    def largest_batch(self) -> int:
        """Whole sequences of the wanted length that all copies of the model hold together."""
        return int(self.batch_of(self.context))

    @property
    def how(self) -> tuple[str, ...]:
        """Each part with how it is computed or measured, a sentence each."""
        return tuple(f"{part.name}: {part.how}." for part in self.parts)

    def _assumptions(self) -> Iterator[str]:
        yield from self.start.assumptions()
        if self.start.prints_groups:
            engine, groups = self.start.engine, self.start._groups[1]
            printed = self.blocks // groups * self.block
            yield (
                f'The log of {engine.title} prints {printed} tokens as "GPU KV cache size": its'
                f" blocks over {groups} groups of layers, which is not what fits."
            )

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the ± leaves open, and what no log of this device or version says."""
        return (*filter(None, [self.doubt]), *self.start.caveats())

    @property
    def program(self) -> str:
        """The software with its version, as a sentence names it."""
        rules, software = self.start.rules, self.start.job.software
        return software.title() if rules is None else rules.title

    @property
    def answer(self) -> str:
        """Whether it fits, and the tokens that its caches hold; or by how much it does not."""
        job = self.start.job
        result = f"{self.tokens} tokens of cache"
        if self.lacks is not None:
            result = f"{self.verdict}, each lacks {self.lacks.missing}"
        elif self.doubt:
            result = f"{self.verdict}, {result}"
        count = f"{job.layout.devices} {job.device.name}"
        return f"{job.model.name} on {count} by {self.program}: {result}"

    @property
    def stands_on(self) -> str:
        """How far off its parts are."""
        if self.error is None:
            return "weights and caches counted, and nothing else"
        off = f"; tokens ± {self.tokens_off:.1%}" if self.fits else ""
        return f"logs of engines, matrix by matrix and part by part{off}"

    @property
    def chosen(self) -> tuple[str, ...]:
        """The engine's settings."""
        start = self.start
        if start.bare:
            return ()
        fraction = "share of the memory" if start.rules is None else start.engine.fraction
        settings = f"{fraction} {start.utilization:g}"
        if start.rules is None or start.engine.rule == "static":
            return (settings,)
        step = f"steps of {start.step_tokens} tokens and {start.step_sequences} sequences"
        return settings, step

    @property
    def part_rows(self) -> list[tuple[str, str, str]]:
        """The parts as rows of a table: name, memory, and what it may be off by."""
        return [(f"  {part.name}", str(part.memory), _plus_minus(part.off)) for part in self.parts]

    @cached_property
    def tables(self) -> Sequence[Table]:
        """The parts of a device's memory, and what its caches hold."""
        off = f"± {self.tokens_off:.1%}" if self.fits and self.error is not None else ""
        rows = [
            ("", "each device", ""),
            ("found by programs", str(self.visible), ""),
            ("room of the program", str(self.room), ""),
            *self.part_rows,
            ("keys and values", str(self.caches), _plus_minus(self.error)),
            *([(f"  blocks of {self.block}", str(self.blocks), "")] if self.block else []),
            ("  tokens", str(self.tokens), off),
            (f"  sequences of {self.context}", f"{self.sequences:.2f}", ""),
        ]
        if self.lacks is None or not self.lacks.ways:
            return (Table(rows),)
        ways = [("fits with",), *((way.told,) for way in self.lacks.ways)]
        return Table(rows), Table(ways)

    @property
    def _pool(self) -> float:
        """Bytes of each device that sequences share."""
        if self.start.divided:
            return self.blocks * self.start.block_bytes
        return max(0.0, float(self.caches.m_as("byte")))

    @property
    def tokens_off(self) -> float:
        """Return what tokens are off by at most, as a share: all where they may be none."""
        assert self.error is not None
        return min(1.0, float((self.error / self.caches).m_as("")))  # none holds fewer than none

    @cached_property
    def facts(self) -> Mapping[str, object]:
        """All of it for programs, by names that stay."""
        job = self.start.job
        return {
            "model": job.model.key or job.model.name,
            "device": job.device.key,
            **self.headline,
            "engine": self.program,
            "tensor": job.layout.tensor,
            **values(self.start, "utilization step_tokens step_sequences"),
            **values(self, "context fits visible room"),
            "parts": [values(part, "name memory off how") for part in self.parts],
            **values(self, "caches error block blocks tokens sequences"),
            "missing": None if self.lacks is None else self.lacks.missing,
            "ways": []
            if self.lacks is None
            else [values(way, "settings told") for way in self.lacks.ways],
            "assumptions": self.assumptions,
        }


def of(
    job: Job,
    context: int,
    *,
    utilization: float | None = None,
    batched_tokens: int | None = None,
    sequences: int | None = None,
    memory: QuantityLike | None = None,
    shared: bool = False,
) -> Memory:
    """Return what each device's memory holds of a job that serves sequences of such a length.

    - `context`: tokens of each sequence, prompt and answer together
    - `utilization`: share of the memory that the program may take; its own where it has one
    - `batched_tokens`: tokens of a step at the most; the server's own for the device
    - `sequences`: sequences of a step at the most; the server's own for the device
    - `memory`: what programs find of each device's memory; what logs print
    - `shared`: whether devices that would hold the same caches share them out, as decode context
      parallelism and copies of attention alone do

    The layout is one, and no array. What does not fit is an answer too, whose `lacks` says so.

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
    found = None if memory is None else arguments.memory("memory", memory)
    whole = arguments.truth("shared", shared)
    return _found(_Asked.of(job), length, share, tokens, most, found, whole)


@dataclass(frozen=True)
class _Asked:
    """A frozen record of a job by what its memory follows from, so that each is counted once."""

    key: tuple[object, ...]
    job: Job = field(compare=False)

    @classmethod
    def of(cls, job: Job) -> _Asked:
        weights, kv, software = job.formats.weights, quantity(job.formats.kv), job.software
        if getattr(weights, "ndim", 0) or kv.ndim:
            raise InputError("weights and kv must each be one format, or one size; got several")
        if isinstance(weights, Quantity):
            weights = f"{weights.m_as('bit')}, {weights}"
        program = software.key, software.version, software.memory_share
        kept = weights, float(kv.m_as("byte"))
        return cls((job.model, job.machine, job.layout, *program, *kept), job)


@lru_cache(maxsize=1024)
def _found(
    asked: _Asked,
    context: int,
    utilization: float | None,
    batched_tokens: int | None,
    sequences: int | None,
    memory: Quantity | None,
    shared: bool,
) -> Memory:
    """Return what was asked for, remembered: a record that nobody changes, in any thread."""
    start = _start(asked.job, utilization, batched_tokens, sequences, memory)
    return _counted(replace(start, shared=shared), context)


def _counted(start: Start, context: int) -> Memory:
    """Return all that follows from how a program is started."""
    visible = start.visible
    room = visible * start.utilization
    parts = tuple(start.parts())
    caches = room - sum((part.memory for part in parts), quantity(0, "GiB"))
    left = float(caches.m_as("byte"))
    block = blocks = held = 0
    taken = float(start.taken(context))
    if start.divided:
        block, held = start.block, int(start.blocks_of(context))
        blocks = max(0, int(left / start.block_bytes))
        sequences = blocks / held
    else:
        sequences = max(0.0, left) / taken
    pages = start._pages if start.divided else ()
    if len(pages) == 1 and pages[0].kind != "window":
        tokens = blocks * block
    else:
        tokens = int(sequences * context)
    return Memory(
        start,
        context,
        visible,
        room,
        parts,
        caches,
        None if start.rules is None else start.error,
        block,
        quantity(start.block_bytes if start.divided else 0.0, "byte"),
        blocks,
        held,
        tokens,
        sequences,
        None if sequences >= 1 else Lacks(_gib(taken - left)),
    )


def _start(
    job: Job,
    utilization: float | None,
    batched_tokens: int | None,
    sequences: int | None,
    memory: Quantity | None,
) -> Start:
    """Return how the job's program is started, by its own rules as far as nothing is set."""
    software = job.software
    ruled = job.device.name.startswith(GPUS) and job.model.vocabulary is not None
    engine = engines.rules(software.key, software.version) if ruled else None
    if engine is None:
        share = software.memory_share if software.key else 1.0
        return Start(job, None, memory, share if utilization is None else utilization, 1, 1)
    device = job.device
    assert isinstance(device, Accelerator)
    visible = engines.visible(device) if memory is None else memory
    tokens, most = engine.largest_step(device, visible)
    tokens = tokens if batched_tokens is None else batched_tokens
    most = min(most if sequences is None else sequences, tokens)
    share = engine.share(device, int(job.layout.tensor), tokens)
    return Start(job, engine, memory, share if utilization is None else utilization, tokens, most)


def fit(
    model: Transformer | str,
    device: Machine | Accelerator | Path | str,
    software: str | None = None,
    *,
    tensor: int | None = None,
    utilization: float | None = None,
    batched_tokens: int | None = None,
    sequences: int | None = None,
    context: int | None = None,
    weights: QuantityLike | None = None,
    kv: QuantityLike = "bf16",
    memory: QuantityLike | None = None,
) -> Memory:
    """Return what a program does with the memory of each device that it serves a model on.

    - `software`: vllm or sglang, with a version as in "vllm 0.19"; the one that usually serves on
      the device, in the newest version that was measured there; "none" counts bytes alone
    - `tensor`: devices that share each matrix (TP); one where it is left out
    - `utilization`: share of the memory that the program may take (gpu_memory_utilization of vLLM,
      mem_fraction_static of SGLang); its own where it has one
    - `batched_tokens`: tokens of a step at the most (max_num_batched_tokens); the server's own for
      the device
    - `sequences`: sequences of a step at the most (max_num_seqs); the server's own for the device
    - `context`: tokens of each sequence (max_model_len); all that the model can read
    - `weights`: what checkpoints of a name hold, the size of every parameter, or formats of groups;
      as released, or else bf16
    - `kv`: format of keys and values
    - `memory`: what programs find of each device's memory, as in "79.19 GiB"; what logs print

    What does not fit is answered too, with what each device lacks and what would make it fit.

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
    layout = Layout(tensor=slices)
    machine.check_joins(slices)
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
    found = of(
        job,
        length,
        utilization=utilization,
        batched_tokens=batched_tokens,
        sequences=sequences,
        memory=memory,
    )
    return advised(found)


def advised(memory: Memory) -> Memory:
    """Return the same with what would make it fit, each change tried; what fits as it is.

    >>> from calc import Job
    >>> job = Job.of("llama-3-8b", "rtx-4080", software="vllm 0.19")
    >>> [way.settings for way in advised(of(job, 8192)).lacks.ways]
    [{'weights': 'fp8'}]
    """
    arguments.check_is(Memory, "memory", memory, "what calc.device_memory.of returns")
    if memory.lacks is None:
        return memory
    return replace(memory, lacks=replace(memory.lacks, ways=tuple(ways(memory))))


def ways(memory: Memory, sequences: int = 1, kinds: Sequence[str] = KINDS) -> Iterator[Way]:
    """Yield the smallest change of each kind, or of several together, with which so many fit.

    >>> tight = fit("llama-3-70b", "h100", software="vllm")
    >>> print(next(ways(tight, kinds=["tensor"])).settings)
    {'tensor': 2}
    """
    changes = [list(_changes(memory, sequences, kind)) for kind in kinds]
    for together in range(1, MOST_CHANGES + 1):
        found = False
        for several in combinations(changes, together):
            for change in product(*several):
                settings = {name: value for each in change for name, value in each.items()}
                tried = _with(memory, settings)
                if tried.largest_batch >= sequences:
                    found = True
                    yield Way(settings, _told(settings, tried))
                    break
        if found:
            return


def _changes(memory: Memory, sequences: int, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the changes of a kind, the smallest first."""
    start, job = memory.start, memory.start.job
    if kind == "settings":
        yield from _settings(start)
    elif kind == "context":
        yield from _shorter(memory, sequences)
    elif kind == "kv" and job.formats.kv > quantity(1, "byte"):
        yield {"kv": NARROW_CACHE}
    elif kind == "weights":
        smaller = (form for form in NARROW_WEIGHTS if _less(job, form))
        yield from ({"weights": form} for form in smaller)
    elif kind == "tensor":
        more = (count for count in TENSORS if count > job.layout.tensor and _joined(job, count))
        yield from ({"tensor": count} for count in more)


def _less(job: Job, form: str) -> bool:
    """Whether weights in a format take less than they do."""
    return bool(Weights.of(job.model, form).memory < job.weights.memory)


def _settings(start: Start) -> Iterator[dict[str, Any]]:
    """Yield what an engine that profiles may be told: a larger share, a smaller step, or both."""
    more = {"utilization": MOST_USED} if start.utilization < MOST_USED else {}
    if start.rules is None or start.engine.rule != "profiled":
        if more and start.rules is not None:
            yield more
        return
    fewer = {"sequences": FEW_SEQUENCES} if start.step_sequences > FEW_SEQUENCES else {}
    smaller = fewer | ({"batched_tokens": SMALL_STEP} if start.step_tokens > SMALL_STEP else {})
    tried: list[dict[str, Any]] = [more, fewer, more | fewer, smaller, more | smaller]
    yield from (change for place, change in enumerate(tried) if change not in [{}, *tried[:place]])


def _shorter(memory: Memory, sequences: int) -> Iterator[dict[str, Any]]:
    """Yield the longest context of which so many fit, unless it is too short for use."""
    few, many = 0, memory.context
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if memory.batch_of(middle) >= sequences else (few, middle)
    if few >= SHORTEST:
        yield {"context": few}


def _joined(job: Job, count: int) -> bool:
    """Whether so many of the machine's devices are joined, and the model can be cut for them."""
    machine = job.machine
    joined = isinstance(machine, Machine) and count <= machine.most_joined
    return joined and Layout(tensor=count).legal(job.model)


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
    )
    return _counted(changed, changes.get("context", memory.context))


def _told(settings: Mapping[str, Any], tried: Memory) -> str:
    """Return a change in words, with how many sequences then fit."""
    changed = " and ".join(f"{name} {value}" for name, value in settings.items())
    doubt = f", which {MAY_NOT_FIT}" if tried.doubt else ""
    return f"{changed}: {tried.sequences:.2f} sequences of {tried.context} tokens{doubt}"


def room(device: Device, share: float = 1.0, reserve: Quantity = NO_BYTES) -> Quantity:
    """Return what trained states, or tables, may use of a device: a share, less what is reserved.

    >>> from calc import hardware
    >>> print(room(hardware.get("h100"), 0.9))
    72 GiB
    """
    device = machines.device_of(device)
    arguments.check_is(Quantity, "reserve", reserve, 'an amount of memory, as quantity("2 GB")')
    return device.memory_capacity * number("share", share) - reserve


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
        left = float((memory.caches - beside.parts[0].memory).m_as("byte"))
        taken = memory.start.taken(length) + beside.start.taken(length)
        tokens = left / float(taken) * length
    return max(0, math.floor(tokens))


def _count(name: str, given: int | None) -> int | None:
    return None if given is None else whole_number(name, given)


def _plus_minus(off: Quantity | None) -> str:
    return "" if off is None else f"± {off}"


def _gib(amount: float) -> Quantity:
    return quantity(amount, "byte").to("GiB")


def _padding(width: int) -> float:
    """How much wider a matrix is made, so that its columns are a multiple."""
    return math.ceil(width / PADDED_EXPERTS) * PADDED_EXPERTS / width


def _source(engine: Engine, name: str) -> str:
    origin = engine.records[name].provenance
    note = f": {origin.note[:1].lower()}{origin.note[1:].rstrip('.')}" if origin.note else ""
    return f"{origin.kind} [{origin.source}]{note}"
