"""What an inference engine does with a device's memory: `calc.engine_memory.fit`.

An engine takes a share of what it finds, loads its weights, runs a step of its largest size, and
gives to keys and values what is left, in blocks. What that step takes at its peak follows from the
model's shape: either the feed-forward network of a layer, for all tokens of the step, or the
sampler, for the logits of all its sequences. What libraries take follows from no shape, and is
measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from calc import formats
from calc.catalog import engines, machines, models
from calc.catalog.engines import Engine
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import CACHING, RECURRENT, check_transformer
from calc.catalog.models.weights import RELEASED, Weights
from calc.core import arguments
from calc.core.arguments import number, whole_number
from calc.core.errors import InputError
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.networks import transformer
from calc.steps.job import Layout

TWO_BYTES = 2  # of an activation, and of a position's sine or cosine
FOUR_BYTES = 4
BYTE = 8  # bits
MANY = 1.5  # times as many layers of one kind as of another: then blocks are as long as the fewer
PADDED_VOCABULARY = 64  # rows that every device has a multiple of
PADDED_EXPERTS = 256  # and columns of experts in four bits
TENSORS = (1, 2, 4, 8, 16, 32, 64)
UNSTATED = "bf16"
GPUS = ("NVIDIA", "AMD Instinct")


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

    def blocks(self, tokens: int, block: int, ahead: int, window: int) -> int:
        """Blocks that a sequence of so many tokens holds in one of these layers."""
        if self.kind in RECURRENT:
            return 1
        if self.kind == "window":
            # Those of a step are all written before any that the window has left behind is freed.
            return math.ceil(min(window - 1 + ahead, tokens) / block) + 1
        return math.ceil(tokens / block)


@dataclass(frozen=True, eq=False, repr=False)
class EngineMemory(Answer):
    """What an engine does with the memory of each of its devices, part by part.

    `parts` are what it takes before caches, each with how it is computed or measured; `caches` is
    what is left, `blocks` how many blocks that makes, `tokens` how many tokens they hold in
    sequences of `context`, and `sequences` how many of these. `error` is how far off `caches` is:
    nine in ten of the published logs that nothing was fitted to are nearer.

    >>> print(fit("llama-3.1-8b", "h100", "vllm 0.19", utilization=0.95, context=8192))
    Llama 3.1 8B on 1 NVIDIA H100 SXM5 80 GB by vLLM 0.19: 476016 tokens of cache
    logs of engines, matrix by matrix and part by part; tokens ± 0.4%
    chosen: gpu_memory_utilization 0.95; steps of 8192 tokens and 1024 sequences
    <BLANKLINE>
                         each device
    found by programs    79.19 GiB
    share of the engine  75.23 GiB
      weights            14.99 GiB    ± 122.8 MiB
      largest step       1.883 GiB    ± 25.07 MiB
      outside of torch   0.25 GiB     ± 215.0 MiB
    keys and values      58.11 GiB    ± 0.25 GiB
      blocks of 16       29751
      tokens             476016       ± 0.4%
      sequences of 8192  58.11
    """

    _SENTENCES = (("how", "Each part"), ("assumptions", "Assumed"))

    model: Transformer
    machine: Machine
    engine: Engine
    layout: Layout
    weights: Weights
    kv: QuantityLike
    memory: Quantity | None
    """What programs find of each device's memory, where that is given."""
    utilization: float
    step_tokens: int
    step_sequences: int
    context: int

    @property
    def device(self) -> Accelerator:
        """The device of which there are one or several."""
        return self.machine.device

    @cached_property
    def visible(self) -> Quantity:
        """What programs find of the device's memory."""
        found = engines.visible(self.device) if self.memory is None else self.memory
        return found.to("GiB")

    @cached_property
    def share(self) -> Quantity:
        """What the engine may take of it."""
        return self.visible * self.utilization

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What it takes before caches, on each device."""
        weights = _gib(self._weights())
        found = [Part("weights", weights, self._weights_told(), self._off("weights", weights))]
        if self.engine.rule == "static":
            return tuple(found)
        step, told = self._peak()
        constant = f"{self.engine['constant'].to('MiB')} whatever the model"
        told = f"{told}, and {constant}, {_source(self.engine, 'constant')}"
        found.append(Part("largest step", step, told, self._off("step", step)))
        if self.engine["workspace"].magnitude and (buffers := self._experts_buffers()):
            told = "workspaces of the chosen experts, which stay once they are made"
            memory = _gib(buffers)
            found.append(Part("experts' buffers", memory, told, self._off("step", memory)))
        outside, told = self._outside()
        found.append(Part("outside of torch", outside, told, self._off("outside", outside)))
        if self.engine["graphs_counted"].magnitude:
            told = f"left for CUDA graphs, {_source(self.engine, 'graphs')}"
            found.append(Part("graphs", self.engine["graphs"].to("GiB"), told))
        return tuple(found)

    def _off(self, name: str, memory: Quantity) -> Quantity | None:
        """What a part may be off by; None of versions whose logs were not read."""
        if self.engine.beyond_logs or f"{name}_error" not in self.engine:
            return None
        off = self.engine[f"{name}_error"]
        return (off * memory if off.unitless else off).to("MiB")

    @cached_property
    def caches(self) -> Quantity:
        """What is left for keys, values and states; below zero where the model is too large."""
        return self.share - sum((part.memory for part in self.parts), quantity(0, "GiB"))

    @property
    def error(self) -> Quantity:
        """What the memory left for caches is off by at most, in nine logs of ten.

        Of a device whose logs were not read, what programs find of its memory may be off too, and
        of several without a switch what their links' buffers take; of models with states what
        their kernels take.
        """
        off: Quantity = self.engine["error"].to("GiB")
        if self.memory is None and not engines.is_visible_known(self.device):
            off = off + self.device.memory_capacity * engines.visible_spread() * self.utilization
        if self._links_unknown:
            off = off + self.engine["together"]
        if self.model.layers_with(*RECURRENT) and "states_error" in self.engine:
            off = off + self.engine["states_error"]
        return off

    @property
    def _links_unknown(self) -> bool:
        """Whether several devices are joined otherwise than those whose buffers logs tell of."""
        several = bool(self.layout.tensor > 1) and "together" in self.engine
        return several and self.machine.fabric != "switch"

    @property
    def fits(self) -> bool:
        """Whether a sequence of the wanted length is held."""
        return self.sequences >= 1

    @cached_property
    def block(self) -> int:
        """Tokens of a block; beside states as many as make it as large as one of these."""
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

    @cached_property
    def block_memory(self) -> Quantity:
        """What a block takes in all layers of a group."""
        page = max(
            pages.each * (1 if pages.kind in RECURRENT else self.block) for pages in self._pages
        )
        return quantity(page * self._groups[0], "byte")

    @cached_property
    def blocks(self) -> int:
        """Blocks that are left, each of a group of layers."""
        return max(0, int((self.caches / self.block_memory).m_as("")))

    @cached_property
    def blocks_of_a_sequence(self) -> int:
        """Blocks that a sequence of the wanted length holds, of all groups."""
        window = self.model.window or 0
        return sum(
            math.ceil(pages.layers / self._groups[0])
            * pages.blocks(self.context, self.block, self.step_tokens, window)
            for pages in self._pages
        )

    @property
    def sequences(self) -> float:
        """Sequences of the wanted length that they hold."""
        return self.blocks / self.blocks_of_a_sequence

    @property
    def tokens(self) -> int:
        """Tokens that they hold, in sequences of the wanted length."""
        if len(self._pages) == 1 and self._pages[0].kind != "window":
            return self.blocks * self.block
        return int(self.sequences * self.context)

    @cached_property
    def _pages(self) -> tuple[Pages, ...]:
        """What each kind of layer keeps of a token, or of a sequence, on a device."""
        model, size = self.model, formats.element_size("kv", self.kv)
        tensor = int(self.layout.tensor)
        heads = max(1, model.kv_heads // tensor)
        pages: list[Pages] = []
        for kind in ("full", "window"):
            if layers := model.layers_with(kind):
                per_token = transformer.kv_bytes_per_token(
                    1, heads, model.key_width, model.head_value_width, size
                )
                pages.append(Pages(kind, layers, per_token.m_as("byte/token")))
        if layers := model.layers_with("latent", "sparse"):
            # Every device has all latents, since no head of theirs can be cut.
            per_token = transformer.kv_cache_per_token(model, size) / model.caching_layers
            pages.append(Pages("latent", layers, per_token.m_as("byte/token")))
        states = (
            Pages(kind, layers, self._state(kind) / tensor)
            for kind in RECURRENT
            if (layers := model.layers_with(kind))
        )
        return (*pages, *states)

    def _state(self, kind: str) -> float:
        """Bytes of the state of a sequence in a layer: its matrix, and inputs of a convolution."""
        model = self.model
        inputs = model.convolved(kind) * ((model.convolution or 0) - 1) * TWO_BYTES
        if kind == "linear":
            widths = (model.linear_key_width or 0) * (model.linear_value_width or 0)
            return float(TWO_BYTES * (model.linear_value_heads or 0) * widths + inputs)
        return float(TWO_BYTES * model.state_inner * (model.state_width or 0) + inputs)

    def _weights(self) -> float:
        """Bytes of the weights of a device, with the table of its positions."""
        model, tensor = self.model, int(self.layout.tensor)
        memory = float(self.weights.memory.m_as("byte")) / tensor
        groups, width = model.kv_heads, model.head_width
        for matrix in model.matrices:
            size = float(self.weights.size(matrix).m_as("byte"))
            if matrix.name in ("key", "value") and tensor > groups:
                memory += matrix.parameters * size * (1 / groups - 1 / tensor)
            if matrix.name in ("query down", "key and value down"):
                memory += matrix.parameters * size * (1 - 1 / tensor)
            if self._padded(matrix.group):
                narrow = min(matrix.inputs, matrix.outputs)
                memory += matrix.parameters * size / tensor * (_padding(narrow) - 1)
        rotary = model.rotary_width if model.rotary_width is not None else width
        positions = 0.0 if model.positions is not None else float(model.context)
        return memory + positions * float(rotary) * TWO_BYTES

    def _padded(self, group: str) -> bool:
        """Whether matrices are as wide as kernels for four bits need them."""
        return group == "experts" and self._bits(group) < BYTE

    def _bits(self, group: str) -> float:
        """Bits of a weight of a group of matrices."""
        sizes = self.weights.sizes
        return float(sizes.get(group, sizes["others"]).m_as("bit"))

    def _weights_told(self) -> str:
        sliced = f", in {self.layout.tensor} slices" if self.layout.tensor > 1 else ""
        return f"counted matrix by matrix in {self.weights}{sliced}, with a table of positions"

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
        if self._bits("feed-forward") == BYTE:
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
        width, narrow = (model.width or 0), (model.expert_width or 0) / int(self.layout.tensor)
        between = 2 * narrow if model.gated else narrow
        chosen = self.step_tokens * (model.active_experts or 0)
        return TWO_BYTES * chosen * (max(narrow, width) + max(between, width))

    def _outside(self) -> tuple[Quantity, str]:
        """What lies outside of torch: the kernels' own memory and buffers of links."""
        if self.layout.tensor == 1:
            return self.engine["alone"].to("GiB"), _source(self.engine, "alone")
        both = self.engine["together"] + self.layout.tensor * self.engine["each"]
        return both.to("GiB"), f"with buffers of links, {_source(self.engine, 'together')}"

    @property
    def missing(self) -> Quantity:
        """What each device lacks for a sequence of the wanted length; below zero where it fits."""
        return (self.block_memory * self.blocks_of_a_sequence - self.caches).to("GiB")

    @property
    def fewest_devices(self) -> int | None:
        """The fewest slices with which one such sequence fits; None where none of them does."""
        for tensor in TENSORS:
            layout = Layout(tensor=tensor)
            if layout.legal(self.model) and replace(self, layout=layout).fits:
                return tensor
        return None

    @cached_property
    def how(self) -> tuple[str, ...]:
        """Each part with how it is computed or measured, a sentence each."""
        return tuple(f"{part.name}: {part.how}." for part in self.parts)

    def _assumptions(self) -> Iterator[str]:
        engine, device = self.engine, self.device
        if self.memory is not None:
            yield f"Programs find {self.visible} of {device.memory_capacity}, as given."
        elif engines.is_visible_known(device):
            yield f"Programs find {self.visible} of {device.memory_capacity}, by their logs."
        if engine.rule == "static":
            yield (
                f"{engine.name} takes no trial step: what its activations and graphs need must fit"
                f" into the {self.visible - self.share} that it leaves."
            )
            return
        if not engine["graphs_counted"].magnitude:
            yield (
                f"CUDA graphs are captured afterwards, {engine['graphs']} in the mean of logs, into"
                f" the {self.visible - self.share} outside of its share."
            )

    @property
    def caveats(self) -> tuple[str, ...]:
        """What no log of this device or version says."""
        return tuple(self._caveats())

    def _caveats(self) -> Iterator[str]:
        engine, device = self.engine, self.device
        if self.memory is None and not engines.is_visible_known(device):
            yield (
                f"Programs find {engines.visible_share():.0%} of {device.memory_capacity}, as on"
                " other devices in the median: no log of this one was read."
            )
        if engine.rule == "static":
            return
        if engine.beyond_logs:
            yield (
                f"No complete log of {engine.title} was read: its largest step is taken to need"
                f" what it needs in {engine.name} {engine.read_to}."
            )
        if self._links_unknown:
            yield (
                "Buffers of links take what they take on devices behind a switch, NVLink's; without"
                " one they may be a few hundred MiB."
            )
        if self.model.layers_with(*RECURRENT):
            yield (
                "States are taken to be in 16 bits, as they are where a configuration does not ask"
                " for FP32, which doubles them."
            )

    @property
    def answer(self) -> str:
        """Whether it fits, and the tokens that its caches hold."""
        count = f"{self.layout.tensor} {self.device.name}"
        result = f"{self.tokens} tokens of cache" if self.fits else "does not fit"
        return f"{self.model.name} on {count} by {self.engine.title}: {result}"

    @property
    def stands_on(self) -> str:
        """How far off its parts are."""
        return (
            f"logs of engines, matrix by matrix and part by part; tokens ± {self._tokens_off:.1%}"
        )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The engine's settings."""
        settings = f"{self.engine.fraction} {self.utilization:g}"
        if self.engine.rule == "static":
            return (settings,)
        step = f"steps of {self.step_tokens} tokens and {self.step_sequences} sequences"
        return settings, step

    @cached_property
    def tables(self) -> Sequence[Table]:
        """The parts of a device's memory, and what its caches hold."""
        rows = [
            ("", "each device", ""),
            ("found by programs", str(self.visible), ""),
            ("share of the engine", str(self.share), ""),
            *((f"  {part.name}", str(part.memory), _plus_minus(part.off)) for part in self.parts),
            ("keys and values", str(self.caches), _plus_minus(self.error)),
            (f"  blocks of {self.block}", str(self.blocks), ""),
            ("  tokens", str(self.tokens), f"± {self._tokens_off:.1%}"),
            (f"  sequences of {self.context}", f"{self.sequences:.2f}", ""),
        ]
        return (Table(rows),)

    @property
    def _tokens_off(self) -> float:
        return float((self.error / self.caches).m_as("")) if self.fits else math.nan

    @cached_property
    def facts(self) -> Mapping[str, object]:
        """All of it for programs, by names that stay."""
        return {
            "model": self.model.key or self.model.name,
            "device": self.device.key,
            **self.headline,
            "engine": self.engine.title,
            "tensor": self.layout.tensor,
            **values(self, "utilization step_tokens step_sequences context visible share"),
            "parts": [values(part, "name memory off how") for part in self.parts],
            **values(self, "caches error block blocks tokens sequences assumptions"),
        }


def fit(
    model: Transformer | str,
    device: Machine | Accelerator | Path | str,
    software: str = "vllm",
    *,
    tensor: int = 1,
    utilization: float | None = None,
    batched_tokens: int | None = None,
    sequences: int | None = None,
    context: int | None = None,
    weights: QuantityLike | None = None,
    kv: QuantityLike = "bf16",
    memory: QuantityLike | None = None,
) -> EngineMemory:
    """What an engine does with the memory of each device that it serves a model on.

    - `software`: vllm or sglang, with a version as in "vllm 0.19"; without one the last whose logs
      were read
    - `tensor`: devices that share each matrix (TP)
    - `utilization`: share of the memory that the engine may take (gpu_memory_utilization of vLLM,
      mem_fraction_static of SGLang); its own where it has one
    - `batched_tokens`: tokens of a step at the most (max_num_batched_tokens); the server's own for
      the device
    - `sequences`: sequences of a step at the most (max_num_seqs); the server's own for the device
    - `context`: tokens of each sequence (max_model_len); all that the model can read
    - `weights`: format of the weights, or of groups of them; as released, or else bf16
    - `kv`: format of keys and values
    - `memory`: what programs find of each device's memory, as in "79.19 GiB"; what logs print

    A model that does not fit is refused, with what is missing and the fewest devices that hold it.

    >>> fitted = fit("qwen-2.5-7b", "h100", "vllm 0.19", utilization=0.95, context=8192)
    >>> fitted.tokens, str(fitted.parts[1].memory)
    (1096496, '2.205 GiB')
    >>> fit("llama-3.1-70b", "h100", context=8192)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    calc.core.errors.InputError: Llama 3.1 70B does not fit on 1 NVIDIA H100 SXM5 80 GB with a ...
    """
    checked = models.transformer(model)
    check_transformer(checked)
    if checked.vocabulary is None:
        raise InputError(f"{checked.name} writes no tokens: engines that serve text cannot run it")
    slices = whole_number("tensor", tensor)
    machine, engine = machines.of(device), _engine(checked, software, weights, slices)
    if utilization is None:
        if "utilization" not in engine:
            raise InputError(
                f"{engine.name} chooses {engine.fraction} by device, batch and layout: give it as"
                " utilization=0.85, or the like"
            )
        utilization = float(engine["utilization"].m_as(""))
    share = number("utilization", utilization, 0.0)
    if not 0 < share <= 1:
        raise InputError(f"utilization must be above 0 and at most 1; got {utilization}")
    layout = Layout(tensor=slices)
    layout.check(checked)
    if not machine.device.name.startswith(GPUS):
        raise InputError(
            f"the rules of {engine.title} are those of GPUs of {' and '.join(GPUS)}: how it shares"
            f" out the memory of {machine.device.name} is not in the data"
        )
    room = None if memory is None else arguments.memory("memory", memory)
    if engine.rule == "static":
        _check_static(checked, engine)
        usual = (1, 1)
    else:
        visible = engines.visible(machine.device) if room is None else room
        usual = engine.largest_step(machine.device, visible)
    tokens = usual[0] if batched_tokens is None else whole_number("batched_tokens", batched_tokens)
    most = usual[1] if sequences is None else whole_number("sequences", sequences)
    longest = checked.context
    length = longest if context is None else whole_number("context", context)
    if length > longest:
        raise InputError(
            f"context must be at most {longest}, which {checked.name} reads; got {length}"
        )
    stored = Weights.of(checked, _format(checked, weights))
    answer = EngineMemory(
        checked, machine, engine, layout, stored, kv, room, share, tokens, min(most, tokens), length
    )
    if stored.memory.ndim or answer.block_memory.ndim:  # which also refuses what is no format
        raise InputError("weights and kv must each be one format, or one size; got several")
    if not answer.fits:
        raise InputError(_too_large(answer))
    return answer


def _engine(model: Transformer, software: str, weights: QuantityLike | None, tensor: int) -> Engine:
    """The engine of that name; of another it is told what can be said without its rules."""
    try:
        engine = engines.get(software)
        if engine.rule == "free":
            raise InputError(
                f"{engine.name} gives caches its {engine.fraction} of what a trial step leaves,"
                " and what that step takes at its peak is published in no form that follows from"
                " a model's shape"
            )
        return engine
    except InputError as error:
        memory = Weights.of(model, _format(model, weights)).memory.to("GiB")
        per_device = f", {memory / tensor} on each of {tensor} devices" if tensor > 1 else ""
        raise InputError(
            f"{error}; without them, the weights of {model.name} take {memory}{per_device}, and"
            " `calc plan` says what keys and values take"
        ) from None


def _check_static(model: Transformer, engine: Engine) -> None:
    if model.layers_with("window", *RECURRENT):
        raise InputError(
            f"how {engine.name} divides its pool among layers with windows or states and the others"
            f" is not in the data, and {model.name} has such layers"
        )


def _format(model: Transformer, weights: QuantityLike | None) -> QuantityLike:
    if weights is not None:
        return weights
    return UNSTATED if model.released is None else RELEASED


def _too_large(answer: EngineMemory) -> str:
    """Why a model does not fit, and on how many devices it would."""
    count = f"{answer.layout.tensor} {answer.device.name}"
    fewest = answer.fewest_devices
    would = (
        f"no number of slices up to {TENSORS[-1]} holds it: take smaller formats"
        if fewest is None
        else f"tensor={fewest} would hold it, or a shorter context less"
    )
    return (
        f"{answer.model.name} does not fit on {count} with a sequence of {answer.context} tokens:"
        f" each lacks {answer.missing} beside the {answer.share} of {answer.engine.title}; {would}"
    )


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
