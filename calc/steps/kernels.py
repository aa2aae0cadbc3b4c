"""Kernels: what a pass of a transformer launches, layer by layer.

A pass is a list of `measured.Kernel`: matrix products, attention, and passes over vectors. The
lists hold the matrices and caches that the bounds of `inference` and `parallelism` count, and what
these leave out: activations that go to memory and back, and the time until a kernel runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from calc.catalog.kernel_shares import (
    bytes_of_chosen,
    bytes_of_experts,
    bytes_of_product,
    bytes_of_states,
)
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import CACHING, INDEXED, RECURRENT, Matrix
from calc.catalog.models.weights import Weights
from calc.core.arguments import check_is, check_shapes, number, numbers, truth
from calc.core.arrays import Number
from calc.core.elementwise import kept, maximum, smallest
from calc.core.errors import InputError
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import attention
from calc.laws.experts import experts_used, fullest_experts
from calc.laws.layers import projection_flops
from calc.networks import transformer
from calc.steps.job import BYTE, NO_BYTES, NO_WORK, TWO_BYTES, Batch, Job, Tokens, input_size
from calc.steps.measured import (
    Kernel,
    Measured,
    formats_of_attention,
    formats_of_choosing,
    formats_of_product,
)

WIDE = 2.0  # bytes of a result, and of what no recipe makes narrower
FUSED = (  # matrices that one product multiplies with, since they have the same input
    ("query", "key", "value"),
    ("windowed query", "windowed key", "windowed value"),
    ("query down", "key and value down"),
    ("gate", "up"),
    ("shared gate", "shared up"),
    ("expert gate", "expert up"),
)
EXPERTS = (  # what the experts of a layer do
    *("expert gate+expert up", "expert up", "expert down"),
    *("activation of experts", "sorting by experts"),
)


def step(job: Job, tokens: Tokens, shared_caches: bool = False) -> list[Kernel]:
    """The kernels of a pass of serving, as one device launches them.

    Each copy of the model (DP) has its own tokens, and cuts matrices into slices (TP); experts are
    shared out to as many devices as the layout says (EP): whole ones to the slices, or to more
    devices, whose tokens they then read too. Slices beyond the heads of keys and values read copies
    of the caches, or a part each of `shared_caches`. Drafted tokens are checked by the same reading
    of their sequence's cache. What devices say to each other is no kernel. What is written and read
    may be an array, for as many passes.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> launched = step(job, Tokens(writing=32, context=4096))
    >>> print(sum(kernel.expected(job.machine) for kernel in launched))
    10.95 ms
    """
    Job.check(job)
    load = _checked_tokens(tokens).of_one(job.layout.data)
    part = _slice(job.with_context(load.longest))
    computed, outputs = load.computed, load.checked + load.prompts
    kernels = part.launched(computed, outputs)
    return [*kernels, *part.attention(load, truth("shared_caches", shared_caches))]


def on_device(kernel: Kernel, job: Job, load: Tokens) -> Kernel:
    """A kernel with the launches that a device is left with, of a job that its host has part of.

    Weights that are sent for a long step are multiplied by on the device: only what reads caches
    stays with the host.

    >>> from calc.splits import Host, Split
    >>> split = Split(Host.read("96 GB DDR5-5600"), experts=18)
    >>> job = Job.of("gpt-oss-120b", "rtx-4090", software="llama.cpp", split=split)
    >>> load = Tokens(writing=1, context=1000)
    >>> on_device(Kernel("experts", "gemm", 36), job, load).launches
    18.0
    """
    Job.check(job)
    check_is(Kernel, "kernel", kernel, "a kernel of calc.kernels")
    model, split = job.model, job.split
    if split is None:
        return kernel
    outputs = {each.name for each in model.matrices if each.part == "output"}
    if kernel.name in outputs or kernel.name == "softmax of logits":
        return kernel
    if job.streams(load) and kernel.kind != "cache":
        return kernel
    left = 1 - split.share_of_layers(model, kernel.name in ("experts", *EXPERTS))
    inside = tuple(replace(part, launches=part.launches * left) for part in kernel.made_of)
    return replace(kernel, launches=kernel.launches * left, made_of=inside)


@lru_cache(maxsize=2**9)
def _slice(job: Job) -> Slice:
    """Return what one of a server's devices launches, kept, since many loads are asked of one."""
    return Slice(job, job.weights)


def _checked_tokens(tokens: Tokens) -> Tokens:
    """Numbers in their ranges, with something to do."""
    Tokens.check(tokens)
    writing, reading = numbers("writing", tokens.writing), numbers("reading", tokens.reading)
    check_shapes({"writing": writing, "reading": reading})
    if smallest(writing + reading) <= 0:
        raise InputError("writing and reading are both 0: a step has tokens to write or to read")
    return Tokens(
        writing,
        number("context", tokens.context),
        reading,
        number("prompt", tokens.prompt, 1),
        number("before", tokens.before),
        number("drafted", tokens.drafted),
    )


def training_step(job: Job, batch: Batch) -> list[Kernel]:
    """The kernels of a microbatch's forward and backward pass, as one device launches them.

    A product's backward pass is two products, for the gradients of its input and of its weights,
    which are left out of what is frozen; that of attention does five products where the forward
    pass does two. With full recomputation the forward pass runs twice, with an alternate one its
    passes and every other product. In few bits, what products multiply with is rounded first.
    Sequences, slices and experts may be arrays, a layout each.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> launched = training_step(job, Batch(8192))
    >>> print(sum(kernel.expected(job.machine) for kernel in launched))
    676.0 ms
    """
    Job.check(job)
    Batch.check(batch)
    length = number("length", batch.length, 1)
    sequences = numbers("sequences", batch.sequences, above=0)
    weights = Weights.of(job.model, input_size(job.formats.dtype), "dtype")
    part = Slice(job.with_context(length), weights)
    count = length * sequences / job.layout.context
    load = Tokens(reading=count, prompt=length)
    forward = [*part.products(count, count), *part.passes(count), *part.prompts(load)]
    forward += part.sampling(count)
    runs = 2 if batch.recomputation == "full" else 1
    launched = [replace(kernel, launches=runs * kernel.launches) for kernel in forward]
    if batch.recomputation == "alternate":
        again = transformer.computed_again(job.model)
        launched += [*part.products(count, count, again), *part.passes(count)]
    frozen = job.trained.frozen
    backward = [back for kernel in forward for back in backward_of(kernel, frozen)]
    rounded = [
        *(_rounded(kernel, "input", frozen) for kernel in launched if _is_in_few_bits(kernel)),
        *(_rounded(kernel, "gradient", frozen) for kernel in forward if _is_in_few_bits(kernel)),
    ]
    return [*(replace(kernel, lasting=True) for kernel in (*launched, *backward)), *rounded]


def _is_in_few_bits(kernel: Kernel) -> bool:
    return kernel.shape is not None and kernel.sizes[0] < 2


def _rounded(kernel: Kernel, side: str, frozen: bool) -> Kernel:
    """The pass that rounds a product's input, or the gradient of its output.

    It is read in two bytes, and for FP4 once more before, for the scale of the whole; it is written
    along its rows and, where gradients of weights multiply with it too, along its columns
    [nvidia-transformer-engine].
    """
    assert kernel.shape is not None
    m, n, k = kernel.shape
    reads, copies = (2 if kernel.dtype == "fp4" else 1), (1 if frozen else 2)
    each = reads * 2 + copies * kernel.sizes[0]
    traffic = BYTE * (each * (kernel.products * m * (k if side == "input" else n)))
    return Kernel(f"rounding of {kernel.name}, {side}", "memory", kernel.launches, traffic=traffic)


def backward_of(kernel: Kernel, frozen: bool = False) -> Iterator[Kernel]:
    """Yield the kernels of a kernel's backward pass: a product's are two, of both gradients.

    >>> [each.shape for each in backward_of(Kernel("up", "gemm", 1, shape=(512, 2048, 1024)))]
    [(512, 1024, 2048), (2048, 1024, 512)]
    """
    name = f"{kernel.name}, backward"
    if kernel.shape is None:
        factor = 2.5 if kernel.kind == "attention" else 2.0
        work, moved = kernel.operations * factor, kernel.traffic * factor
        yield replace(kernel, name=name, operations=work, traffic=moved, direction="backward")
        return
    m, n, k = kernel.shape
    yield replace(kernel, name=f"{name} to the input", shape=(m, k, n))
    if not frozen:
        yield replace(kernel, name=f"{name} to the weights", shape=(n, k, m))


class Cut(NamedTuple):
    """Matrices that one product multiplies with, as one device has them."""

    name: str
    first: Matrix
    seen: Number
    """Tokens that a device of experts reads, over those of a slice."""
    columns: Number
    depth: Number
    sizes: tuple[float, float, float]
    """Bytes of an element of the product's input, weights and output."""
    dtype: str
    formats: tuple[str, ...]


def _fused(matrices: Sequence[Matrix]) -> Iterator[list[Matrix]]:
    """Yield the matrices of each product."""
    left = list(matrices)
    while left:
        first = left.pop(0)
        group = next((names for names in FUSED if first.name in names), ())
        alike = [first, *(matrix for matrix in left if matrix.name in group)]
        left = [matrix for matrix in left if matrix not in alike]
        yield alike


class Slice:
    """One of the devices that share a model's matrices, and what it launches layer by layer."""

    def __init__(self, job: Job, weights: Weights) -> None:
        self.model, self.weights = job.model, weights
        self.slices, self.experts = job.layout.tensor, job.layout.experts
        self.reads_all_experts = job.measured_on.reads_all_experts
        self.dtype, self.kv = job.formats.dtype, job.formats.kv
        self.input_size = input_size(self.dtype)
        self.input_bytes = self.input_size.m_as("byte")

    def launched(self, tokens: Number, outputs: Number) -> Iterator[Kernel]:
        """All but attention, as engines fuse it: what a layer's experts do is one launch."""
        kernels = [*self.products(tokens, outputs), *self.passes(tokens), *self.rounding(tokens)]
        kernels += self.sampling(outputs)
        inside = tuple(kernel for kernel in kernels if kernel.name in EXPERTS)
        yield from (kernel for kernel in kernels if kernel.name not in EXPERTS)
        if inside:
            yield self._experts(inside, tokens)

    def _experts(self, parts: tuple[Kernel, ...], tokens: Number) -> Kernel:
        """One launch of what the experts of a layer do."""
        first = next(matrix for matrix in self.model.matrices if matrix.used < matrix.copies)
        seen = tokens * maximum(1.0, self.experts / (1.0 * self.slices))
        products = [part for part in parts if part.shape is not None]
        routed = products[0].products * products[0].shape[0] if products[0].shape else 0.0
        hidden = first.outputs / maximum(1.0, self.slices / self.experts)
        weights = sum((part.traffic for part in products), NO_BYTES).m_as("byte")
        moved = bytes_of_experts(seen, routed, first.inputs, hidden, weights)
        formats = formats_of_product(
            self.dtype, self.weights.size(first).m_as("byte"), experts=True
        )
        return Kernel(
            "experts",
            "gemm",
            first.layers,
            operations=sum((part.operations for part in products), NO_WORK),
            traffic=quantity(weights, "byte"),
            dtype=self.dtype,
            measured=Measured("experts", formats, seen * first.used / first.copies),
            moved=quantity(moved, "byte"),
            made_of=parts,
        )

    def products(
        self, tokens: Number, outputs: Number, of: Sequence[Matrix] | None = None
    ) -> Iterator[Kernel]:
        """The products of the weights with so many tokens, and of the output with so few."""
        for cut in self._cuts if of is None else map(self._cut, _fused(of)):
            yield self._product(cut, outputs if cut.first.part == "output" else tokens)

    @cached_property
    def _cuts(self) -> tuple[Cut, ...]:
        return tuple(map(self._cut, _fused(self.model.matrices)))

    def _cut(self, alike: Sequence[Matrix]) -> Cut:
        first, columns, slices = alike[0], sum(each.outputs for each in alike), 1.0 * self.slices
        operand, dtype, result = self.input_bytes, self.dtype, WIDE
        seen: Number = 1.0
        if first.used < first.copies:
            # Devices that share out experts read the tokens of all who cut the other matrices.
            seen = maximum(1.0, self.experts / slices)
            slices = maximum(1.0, slices / self.experts)
        if first.whole:
            slices = 1.0
        # The second matrix of a block is cut by its rows, so that results are added up.
        by_rows = first.name.endswith((" output", "down"))
        k = first.inputs / slices if by_rows else first.inputs
        n = columns if by_rows else maximum(columns / slices, 1.0)  # a column is never cut
        wide = first.part in ("output", "router", "residual")  # kept in two bytes by all recipes
        weight = WIDE if wide else self.weights.size(first).m_as("byte")
        if weight >= WIDE:
            operand, dtype = WIDE, "bf16"
        name, formats = "+".join(each.name for each in alike), formats_of_product(dtype, weight)
        return Cut(name, first, seen, n, k, (operand, weight, result), dtype, formats)

    def _product(self, cut: Cut, tokens: Number) -> Kernel:
        name, first, seen, n, k, sizes, dtype, formats = cut
        met, rows = 1.0, tokens
        if first.used < first.copies:  # a mixture's experts, each with its share of the tokens
            tokens = tokens * seen
            share = first.used / first.copies
            met = experts_used(first.copies, share, maximum(tokens, 1.0)).magnitude
            if self.reads_all_experts:  # in graphs of fixed shapes
                met = first.copies + 0.0 * met
            rows = tokens * first.used / met
            if self.reads_all_experts:  # each multiplies a row at least
                rows = maximum(rows, 1.0)
            mean, held = met / self.experts, first.copies / self.experts
            met = fullest_experts(mean, held, self.experts).magnitude
        work = quantity(2.0 * rows * n * k * met, "FLOP")
        moved = bytes_of_product(rows, n, k, *sizes)
        return Kernel(
            name,
            "gemm",
            first.layers,
            operations=work,
            traffic=quantity(sizes[1] * (met * n * k), "byte"),
            shape=(rows, n, k),
            products=met,
            sizes=sizes,
            dtype=dtype,
            measured=None if first.used < first.copies else Measured("product", formats, rows),
            moved=quantity(moved, "byte"),
        )

    def passes(self, tokens: Number) -> Iterator[Kernel]:
        """The passes over vectors between products, fused as compilers and engines fuse them."""
        model = self.model
        vectors = TWO_BYTES * tokens
        width = model.width
        attending = model.caching_layers
        rotated = _rotated(model) / attending / self.slices
        # A block's result goes into each stream, of which the next block's input is then made.
        beside = 2 * ((model.streams or 1) + 1) * width
        yield Kernel("residuals and norms", "memory", model.blocks, traffic=beside * vectors)
        yield Kernel("rotation", "memory", attending, traffic=vectors * (2 * rotated))
        for up in (matrix for matrix in model.matrices if matrix.name.endswith("up")):
            if up.part == "feed-forward":
                hidden = (3 if model.gated else 2) * up.outputs * up.used / self.slices
                name = "activation of experts" if up.used < up.copies else "activation"
                yield Kernel(name, "memory", up.layers, traffic=vectors * hidden)
        for router in (matrix for matrix in model.matrices if matrix.part == "router"):
            chosen = model.active_experts or 1
            sent = 4 * model.expert_inputs * chosen * vectors  # there and back
            yield Kernel("sorting by experts", "memory", 2 * router.layers, traffic=sent / 2)

    def rounding(self, tokens: Number) -> Iterator[Kernel]:
        """The passes that round a block's input for its products, with the scales."""
        if self.input_size < TWO_BYTES:
            model = self.model
            rounded = (TWO_BYTES + self.input_size) * tokens
            products = Measured("product", formats_of_product(self.dtype, 1.0), tokens)
            yield Kernel(
                "rounding", "memory", model.blocks, traffic=model.width * rounded, within=products
            )

    def sampling(self, outputs: Number) -> Iterator[Kernel]:
        """The passes over logits, of a model that has any: their softmax, in four bytes each, there
        and back."""
        for rows in (each.outputs for each in self.model.matrices if each.part == "output"):
            traffic = BYTE * (outputs * rows * 8) / self.slices
            yield Kernel("softmax of logits", "memory", 1, traffic=traffic)

    @property
    def attention_formats(self) -> tuple[str, ...]:
        latent = self.model.kv_latent is not None
        width = float(self.model.head_width)
        return formats_of_attention(quantity(self.kv).m_as("byte"), width, latent)

    def attention(self, load: Tokens, shared_caches: bool = False) -> Iterator[Kernel]:
        """Attention of written tokens to caches, and of prompts to themselves."""
        if load.writes:
            yield from self.caches(load, shared_caches)
        if load.reads:
            yield from self.prompts(load)

    def caches(self, load: Tokens, shared: bool) -> Iterator[Kernel]:
        """Attention of written tokens to caches, and states that they change."""
        model, sequences, tokens = self.model, load.writing, max(load.context, 1.0)
        cached, seen, attended = _cache(model, tokens, self.kv)
        parts = self.slices if shared else min(self.slices, model.cache_heads)
        read = sequences * cached / model.keeping(*CACHING) / parts
        work = 2 * sequences * seen * attended / self.slices
        if sparse := model.layers_with(*INDEXED):
            scored = transformer.index_flops(model, tokens)
            work += sequences * scored.m_as("FLOP/token") / model.caching_layers
        measured, moved = Measured("caches", self.attention_formats, seen), None
        if sparse and sparse == model.caching_layers and model.kv_latent is not None:
            measured = Measured("chosen", self.attention_formats, tokens)
            widths = model.kv_latent, (model.rotary_width or 0), (model.index_head_width or 0)
            shape = sequences, tokens, seen, model.heads / self.slices
            cached_size = quantity(self.kv).m_as("byte")
            moved = quantity(bytes_of_chosen(*shape, cached_size, widths), "byte")
        yield Kernel(
            "attention to caches",
            "cache",
            model.caching_layers,
            operations=quantity(work, "FLOP"),
            traffic=quantity(read, "byte"),
            measured=measured,
            moved=moved,
            chooses=sparse > 0,
        )
        if layers := model.layers_with(*RECURRENT):
            changed = 2 * transformer.state_memory(model) / layers / self.slices
            yield Kernel(
                "states",
                "memory",
                layers,
                traffic=changed * sequences,
                measured=self._of_states("states", sequences),
                moved=self._moved_by_states(sequences, sequences),
            )

    def _of_states(self, kernel: str, length: Number) -> Measured | None:
        """Rows of the delta rule, with a decay for each head or for each of its numbers."""
        if not self.model.layers_with("linear"):
            return None
        rule = "delta" if self.model.decay_rank is None else "kda"
        return Measured(kernel, (rule,), length)

    def _moved_by_states(self, sequences: Number, tokens: Number) -> Quantity:
        """Bytes of a layer of linear attention, as rows of the delta rule count them."""
        model, slices = self.model, self.slices
        results = (model.linear_value_heads or 0) * (model.linear_value_width or 0)
        state = 4 * results * (model.linear_key_width or 0)
        channels = model.convolved("linear")
        moved = bytes_of_states(
            sequences, tokens, channels / slices, results / slices, state / slices
        )
        return quantity(moved, "byte")

    def prompts(self, load: Tokens) -> Iterator[Kernel]:
        """Causal attention of what is read to its own prompt, windows counted, and its states."""
        model, layers = self.model, self.model.caching_layers
        if recurrent := model.layers_with(*RECURRENT):
            each = transformer.state_flops(model, load.prompt).m_as("FLOP/token")
            changed = 2 * transformer.state_memory(model) * load.prompts
            yield Kernel(
                "states of prompts",
                "attention",
                recurrent,
                operations=quantity(load.reading * each / recurrent / self.slices, "FLOP"),
                traffic=changed / recurrent / self.slices,
                measured=self._of_states("chunks", load.prompt),
                moved=self._moved_by_states(load.prompts, load.reading),
            )
        work = load.prompts * _attention_of_prompt(model, load.prompt, load.before)
        scored: Number = 0.0
        if sparse := model.layers_with(*INDEXED):  # which every device does whole
            context = load.before + attention.causal_context(load.prompt).magnitude
            each = transformer.index_flops(model, context)
            scored = load.reading * each.m_as("FLOP/token")
        measured = Measured("prompts", self.attention_formats, load.prompt)
        worked = moved = None
        if sparse and sparse == layers and model.kv_latent is not None:
            last, heads = load.before + load.prompt, model.heads / self.slices
            size = quantity(self.kv).m_as("byte")
            formats = formats_of_choosing(size, smallest(heads), model.index_heads or 1)
            measured = Measured("choosing", formats, last)
            widths = model.kv_latent, (model.rotary_width or 0), (model.index_head_width or 0)
            shape = load.prompts, last, last, heads * load.prompt
            moved = quantity(bytes_of_chosen(*shape, size, widths), "byte")
            widths_of_head = model.head_width + widths[1] + (model.value_width or model.head_width)
            latents = (work - scored) * (2 * widths[0] + widths[1]) / widths_of_head  # of each head
            worked = quantity((latents / self.slices + scored) / layers, "FLOP")
        cached = NO_BYTES
        if load.before:
            cached = transformer.cache_read(model, load.before, self.kv) * load.prompts
        yield Kernel(
            "attention",
            "attention",
            layers,
            operations=quantity(((work - scored) / self.slices + scored) / layers, "FLOP"),
            traffic=cached / model.keeping(*CACHING) / self.slices,
            measured=measured,
            worked=worked,
            moved=moved,
            chooses=sparse > 0,
        )


def _rotated(model: Transformer) -> int:
    """Numbers of a token's queries and keys that are rotated, of all layers."""
    layers, windowed = model.layers_with("window"), model.heads_of("window")
    others = (model.heads + model.kv_heads) * model.head_width
    rotated = (windowed.queries + windowed.keys) * windowed.key_width
    return (model.caching_layers - layers) * others + layers * rotated


@kept(2**11)
def _cache(model: Transformer, tokens: Number, kv: QuantityLike) -> tuple[Any, Any, float]:
    """Return the bytes of a cache that a token reads, the places it sees, and numbers of each."""
    cached = transformer.cache_read(model, tokens, kv).m_as("byte")
    seen = transformer.attended_context(model, tokens).magnitude
    return cached, seen, transformer.attended_per_token(model, BYTE).m_as("byte/token")


@kept(2**11)
def _attention_of_prompt(model: Transformer, tokens: Number, before: Number = 0) -> Number:
    """Operations of attention in which so many tokens look at those before them, and themselves."""

    def whole(length: Number) -> Number:
        others = projection_flops(model.multiplied_parameters)
        others = others + transformer.state_flops(model, length)
        of_a_token: Number = (transformer.causal_flops(model, length) - others).m_as("FLOP/token")
        return length * of_a_token

    return whole(before + tokens) - (whole(before) if before else 0.0)
