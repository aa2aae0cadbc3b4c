"""The start of an engine with a model, and what it takes of each device's memory, by its rules.

An engine takes a share of what it finds, loads its weights, runs a step of its largest size, and
gives to keys and values what is left, in blocks. What that step takes at its peak follows from the
model's shape: either the feed-forward network of a layer, for all tokens of the step, or the
sampler, for the logits of all its sequences. What libraries take follows from no shape, and is
measured. Of a program without published rules its weights and caches are counted in its share of
the memory, and with software "none" the bytes alone in all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from calc.catalog import engines
from calc.catalog.engines import Engine
from calc.catalog.hardware import Accelerator
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import CACHING, INDEXED, LATENTS, RECURRENT, STATES, Matrix
from calc.catalog.models.checkpoint_formats import RECURRENCES
from calc.catalog.models.weights import Weights
from calc.core.arrays import Number
from calc.core.elementwise import ceiling, largest, minimum
from calc.core.units import Quantity, quantity
from calc.laws.attention import index_bytes_per_token
from calc.laws.caches import kv_bytes_per_token
from calc.networks import transformer
from calc.steps.job import Job, Layout, reaching

TWO_BYTES = 2  # of an activation, and of a position's sine or cosine
FOUR_BYTES = 4
BYTE = 8  # bits
GPUS = ("NVIDIA", "AMD Instinct")
MANY = 1.5  # times as many layers of one kind as of another: then blocks are as long as the fewer
PADDED_VOCABULARY = 64  # rows that every device has a multiple of
PADDED_EXPERTS = 256  # and columns of experts in four bits


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


@dataclass(frozen=True, eq=False)
class Start:
    """A frozen record of how a program is started with a model, and of what that takes.

    Its methods count in bytes of one device; a `Memory` is made of them.
    """

    job: Job
    rules: Engine | None
    """Rules of the program; None where none are known of it, of such a device or such a model."""
    memory: Quantity | None
    """What programs find of each device's memory, where that is given."""
    utilization: float
    step_tokens: int
    step_sequences: int
    shared: bool = False
    """Whether devices that would hold the same caches share them out instead."""
    eager: bool = False
    """Whether kernels are started one by one, so that no memory is left for graphs."""

    @classmethod
    def of_job(
        cls,
        job: Job,
        utilization: float | None,
        batched_tokens: int | None,
        sequences: int | None,
        memory: Quantity | None,
        shared: bool,
        eager: bool = False,
    ) -> Start:
        """Return how the job's program is started, by its own rules as far as nothing is set."""
        software, device = job.software, job.device
        ruled = device.name.startswith(GPUS) and job.model.vocabulary is not None
        engine = engines.rules(software.key, software.version) if ruled else None
        tokens = most = 1
        share = software.memory_share if software.key else 1.0
        if engine is not None:
            assert isinstance(device, Accelerator)
            visible = engines.visible(device) if memory is None else memory
            tokens, most = engine.largest_step(device, visible)
            tokens = tokens if batched_tokens is None else batched_tokens
            most = min(most if sequences is None else sequences, tokens)
            share = engine.share(device, int(job.layout.tensor * job.layout.pipeline), tokens)
        share = share if utilization is None else utilization
        return cls(job, engine, memory, share, tokens, most, shared, eager)

    @property
    def engine(self) -> Engine:
        assert self.rules is not None
        return self.rules

    @property
    def model(self) -> Transformer:
        return self.job.model

    @property
    def layout(self) -> Layout:
        return self.job.layout

    @property
    def device(self) -> Accelerator:
        device = self.job.device
        assert isinstance(device, Accelerator)
        return device

    @property
    def weights(self) -> Weights:
        return self.job.weights

    @property
    def bare(self) -> bool:
        """Return whether bytes alone are counted, since no software is meant."""
        return not self.job.software.key

    @property
    def of_the_rest(self) -> float:
        """The share of what its parts leave that is for caches."""
        free = self.rules is not None and self.engine.rule == "free"
        return self.utilization if free else 1.0

    @cached_property
    def visible(self) -> Quantity:
        """Return what programs find of the device's memory."""
        if self.memory is not None:
            amount = self.memory
        elif self.rules is not None:
            amount = engines.visible(self.device)
        else:
            amount = self.job.device.memory_capacity
        return amount.to("GiB")

    def parts(self) -> Iterator[Part]:
        """Yield what it takes before caches, on each device."""
        if self.bare:
            whole = self.job.weight_memory / (self.layout.data * self.layout.tensor)
            weights = in_gib(self._of_a_stage(float(whole.m_as("byte"))) - self._on_host)
            yield Part("weights", weights, f"as they are kept, in {self.weights}")
            return
        weights = in_gib(self._held() - self._on_host)
        off = None if self.rules is None else self._off("weights", weights)
        off = None if off is None else off + self._unlike.to("MiB")
        yield Part("weights", weights, self._weights_told(), off)
        if self.rules is None or self.engine.rule == "static":
            return
        step, reason = self._peak()
        constant = f"{self.engine['constant'].to('MiB')} whatever the model"
        reason = f"{reason}, and {constant}, {_source(self.engine, 'constant')}"
        yield Part("largest step", step, reason, self._off("step", step))
        if self.engine["workspace"].magnitude and (buffers := self._experts_buffers()):
            reason = "workspaces of the chosen experts, which stay once they are made"
            memory = in_gib(buffers)
            yield Part("experts' buffers", memory, reason, self._off("step", memory))
        outside, reason = self._outside()
        yield Part("outside of torch", outside, reason, self._off("outside", outside))
        if self.engine["graphs_counted"].magnitude and not self.eager:
            reason = f"left for CUDA graphs, {_source(self.engine, 'graphs')}"
            yield Part("graphs", self.engine["graphs"].to("GiB"), reason)

    def _off(self, name: str, memory: Quantity) -> Quantity | None:
        """Return what a part may be off by, as the last logs that were read say."""
        if f"{name}_error" not in self.engine:
            return None
        off = self.engine[f"{name}_error"]
        return (off * memory if off.unitless else off).to("MiB")

    @property
    def error(self) -> Quantity:
        """Return what the memory left for caches is off by at most, in nine logs of ten.

        Of a device whose logs were not read, what programs find of its memory may be off too, and
        of several without a switch what their links' buffers take; of models with states what
        their kernels take; of a version whose rules are another's its largest step; and of weights
        that a name alone tells of what their makers leave in 16 bits.
        """
        off: Quantity = self.engine["error"].to("GiB") + self._unlike
        if self.engine.counted_as and "counted_error" in self.engine:
            off = off + self.engine["counted_error"] * self._peak()[0]
        if self.memory is None and not engines.visible_by(self.device):
            off = off + self.device.memory_capacity * engines.visible_spread() * self.utilization
        if self.links_unknown:
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
        off = off + self.engine["padded_error"] * in_gib(padding)
        if self.weights.by_name:
            more = sum(
                each.parameters * (TWO_BYTES - float(self.weights.size(each).m_as("byte")))
                for each in self.model.matrices
                if each.name in RECURRENCES
            )
            wider = in_gib(max(0.0, more) / int(self.layout.tensor))
            off = off + self.engine["recipe_error"] * wider
            off = off + self.engine["named_error"] * in_gib(self._weights())
        return off

    @property
    def links_unknown(self) -> bool:
        """Return whether several devices are joined unlike those whose buffers logs tell of."""
        several = bool(self.layout.tensor > 1) and "together" in self.engine
        return several and getattr(self.job.machine, "fabric", "") != "switch"

    @cached_property
    def divided(self) -> bool:
        """Return whether it is known how all kinds of layers divide caches into blocks."""
        if self.rules is None or self.model.compresses:
            return False
        return self.engine.rule == "profiled" or not self.model.layers_with("window", *RECURRENT)

    @cached_property
    def block(self) -> int:
        """Tokens of a block; beside states as many as make it as large as one of these."""
        if self.rules is None or not self.divided:
            return 1
        latent = bool(self.model.layers_with(*LATENTS))
        block = int(self.engine["latent_block" if latent else "block"].m_as(""))
        states = [pages.each for pages in self.pages if pages.kind in RECURRENT]
        if states:
            token = max(pages.each for pages in self.pages if pages.kind in CACHING)
            block *= math.ceil(max(states) / (token * block))
        return block

    @cached_property
    def groups(self) -> tuple[int, int]:
        """Layers of a group that shares a table of blocks, and how many groups there are."""
        counts = [pages.layers for pages in self.pages]
        fewest, most = min(counts), max(counts)
        size = most if most < MANY * fewest else fewest
        return size, sum(math.ceil(count / size) for count in counts)

    @property
    def prints_groups(self) -> bool:
        """Return whether the engine's log divides its tokens by groups, not by what they hold."""
        if self.rules is None or "groups_printed" not in self.rules or not self.divided:
            return False
        return bool(self.rules["groups_printed"].magnitude) and self.groups[1] > 1

    @cached_property
    def block_bytes(self) -> float:
        """Bytes that a block takes in all layers of a group."""
        page = max(
            pages.each * (1 if pages.kind in RECURRENT else self.block) for pages in self.pages
        )
        return page * self.groups[0]

    def blocks_of(self, context: Number) -> Number:
        """Return the blocks that a sequence of so many tokens holds, of all groups."""
        window, states = self.model.window or 0, 1
        if self.rules is not None and "state_blocks" in self.rules:
            states = int(self.rules["state_blocks"].m_as(""))
        held: Number = 0
        widest = max((pages.each for pages in self.pages if pages.kind in CACHING), default=0.0)
        for pages in self.pages:
            groups, block = math.ceil(pages.layers / self.groups[0]), self.block
            # Of layers that keep less there are more tokens in a block, so that all are as large.
            if pages.kind in CACHING and (times := widest / pages.each).is_integer():
                block *= int(times)
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
        own = self._stage if self.job.split is None else 1 - self.job.split.layers / model.layers
        return cache * copies * own / (layout.tensor * layout.context)

    def of_a_sequence(self) -> tuple[float, float] | None:
        """Return the bytes of a sequence on each device whatever its length, and those of a token.

        Layers that keep a state or a window take as much however long it is. None where it is not
        known how kinds of layers divide caches.
        """
        if self.model.compresses:
            near = float(self.model.window or 0)
            few, more = float(self.taken(near)), float(self.taken(near + 1))
            return few - near * (more - few), more - few
        if not self.divided:
            return None
        held = {"window": self.model.window or 0, **dict.fromkeys(RECURRENT, 1)}
        fixed = sum(page.layers * page.each * held.get(page.kind, 0) for page in self.pages)
        each = sum(page.layers * page.each for page in self.pages if page.kind not in held)
        return fixed, each

    @cached_property
    def pages(self) -> tuple[Pages, ...]:
        """Return what each kind of layer keeps of a token, or of a sequence, on a device."""
        model, size = self.model, self.job.formats.kv
        tensor = int(self.layout.tensor)
        copies = int(self.job.copies_of_caches) if self.shared else 1
        pages: list[Pages] = []
        for kind in ("full", "window", "blocks"):
            if layers := self._layers_with(kind):
                heads = model.heads_of(kind)
                per_token = kv_bytes_per_token(
                    1, max(1, heads.keys // tensor), heads.key_width, heads.value_width, size
                )
                if kind in INDEXED:  # by one key, which every device has
                    per_token = per_token + index_bytes_per_token(1, model.index_head_width or 0)
                pages.append(Pages(kind, layers, per_token.m_as("byte/token") / copies))
        if layers := self._layers_with(*LATENTS):
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
        """Return the layers of these kinds with caches of a device, where its stage is fullest."""
        return math.ceil(self.model.keeping(*kinds) * self._stage)

    @property
    def _stage(self) -> float:
        """The share of the layers that a device of the fullest stage has."""
        return float(self.layout.layers_of_a_stage(self.model)) / self.model.layers

    def _state(self, kind: str) -> float:
        """Bytes of the state of a sequence in a layer: its matrix, and inputs of a convolution."""
        model = self.model
        each = model.state_bytes or TWO_BYTES
        inputs = model.convolved(kind) * ((model.convolution or 0) - 1) * TWO_BYTES
        if kind not in STATES:
            return float(inputs)
        if kind == "linear":
            widths = (model.linear_key_width or 0) * (model.linear_value_width or 0)
            return float(each * (model.linear_value_heads or 0) * widths + inputs)
        return float(each * model.state_inner * (model.state_width or 0) + inputs)

    @property
    def _on_host(self) -> float:
        """Bytes of the weights that the memory of the host holds instead."""
        split = self.job.split
        return 0.0 if split is None else float(split.held(self.weights).m_as("byte"))

    def _held(self) -> float:
        """Bytes of the weights of a device of the fullest stage, with its share of the experts."""
        layout, model, tensor = self.layout, self.model, int(self.layout.tensor)
        memory, slices = self._weights(), int(layout.expert_slices * layout.experts)
        for matrix in model.matrices:
            if matrix.used < matrix.copies and slices != tensor:
                whole = matrix.parameters * float(self.weights.size(matrix).m_as("byte"))
                memory += whole * (1 / slices - 1 / tensor)
        return self._of_a_stage(memory)

    def _of_a_stage(self, memory: float) -> float:
        """Bytes of a device of the fullest stage, of those that it had with all layers."""
        if self.layout.pipeline == 1:
            return memory
        model, size = self.model, float(self.weights.sizes["others"].m_as("byte"))
        size /= int(self.layout.tensor)
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
        width = model.head_width
        for matrix in model.matrices:
            size = float(self.weights.size(matrix).m_as("byte"))
            slices = min(tensor, self._most_slices(matrix))
            memory += matrix.parameters * size * (1 / slices - 1 / tensor)
            memory += self._padding(matrix)
        memory += TWO_BYTES * (model.vision or 0) / tensor
        rotary = model.rotary_width if model.rotary_width is not None else width
        positions = 0.0 if model.positions is not None else float(model.context)
        return memory + positions * float(rotary) * TWO_BYTES

    def _most_slices(self, matrix: Matrix) -> float:
        """The slices that differ: those beyond the heads of keys hold again what another holds."""
        if matrix.whole:
            return 1
        prefix, _, name = matrix.name.rpartition(" ")
        if name in ("key", "value") and prefix in ("", "windowed"):
            return self.model.heads_of("window" if prefix else "full").keys
        return math.inf

    @cached_property
    def _pads_experts(self) -> bool:
        """True where experts are as wide as kernels for four bits need, not as in files."""
        files = bool(self.job.software.mxfp4)
        return not files and "experts" in self.model.groups and self._bits("experts") < BYTE

    def _padding(self, matrix: Matrix) -> float:
        """Bytes of a device by which a matrix is wider for such kernels."""
        if not self._pads_experts or matrix.group != "experts":
            return 0.0
        size = float(self.weights.size(matrix).m_as("byte")) / int(self.layout.tensor)
        width = min(matrix.inputs, matrix.outputs)
        wider = math.ceil(width / PADDED_EXPERTS) * PADDED_EXPERTS / width
        return matrix.parameters * size * (wider - 1)

    def _bits(self, group: str) -> float:
        """Bits of a weight of a group of matrices, of the first of them where they differ."""
        first = self.model.groups.get(group)
        size = self.weights.sizes["others"] if first is None else self.weights.size(first)
        return float(size.m_as("bit"))

    def _weights_told(self) -> str:
        sliced = f", in {self.layout.tensor} slices" if self.layout.tensor > 1 else ""
        images = ", its encoder of images" if self.model.vision else ""
        stages = self.layout.pipeline
        staged = f", of the fullest of {stages} stages" if stages > 1 else ""
        sentence = f"counted matrix by matrix in {self.weights}{sliced}{staged}{images}"
        if (split := self.job.split) is not None:
            sentence += f", without {split.told(self.model)} that the host holds"
        return f"{sentence}, with a table of positions"

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
            return in_gib(layer + constant), f"a layer's activations for {tokens} tokens"
        sampled = f"logits of {self.step_sequences} sequences for {model.vocabulary} words"
        return in_gib(sampling + constant), f"{sampled}, in the sampler"

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
        if not model.layers_with("experts") or self._pads_experts:
            return 0.0
        slices = int(self.layout.expert_slices)
        width, narrow = (model.width or 0), (model.expert_width or 0) / slices
        between = 2 * narrow if model.gated else narrow
        chosen = self.step_tokens * (model.active_experts or 0)
        return TWO_BYTES * chosen * (max(narrow, width) + max(between, width))

    def _outside(self) -> tuple[Quantity, str]:
        """Return what lies outside of torch: the kernels' own memory and buffers of links."""
        if self.layout.tensor == 1 == self.layout.pipeline:
            return self.engine["alone"].to("GiB"), _source(self.engine, "alone")
        if self.links_unknown or self.layout.tensor == 1:
            return self.engine["apart"].to("GiB"), _source(self.engine, "apart")
        both = self.engine["together"] + self.layout.tensor * self.engine["each"]
        return both.to("GiB"), f"with buffers of links, {_source(self.engine, 'together')}"


def in_gib(amount: float) -> Quantity:
    """Return so many bytes as people write them.

    >>> print(in_gib(2**30))
    1 GiB
    """
    return quantity(amount, "byte").to("GiB")


def _source(engine: Engine, name: str) -> str:
    origin = engine.records[name].provenance
    note = f": {origin.note[:1].lower()}{origin.note[1:].rstrip('.')}" if origin.note else ""
    return f"{origin.kind} [{origin.source}]{note}"
