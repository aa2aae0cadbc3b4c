"""A transformer's architecture, and the parameters that it makes, matrix by matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, cycle, islice, repeat
from typing import Any, NamedTuple, Self

from calc.catalog.models.networks import check_name, read_number, read_numbers
from calc.catalog.models.release import Release
from calc.core.arguments import as_list, counted, one_of
from calc.core.errors import InputError, abbreviated, did_you_mean
from calc.core.fixed import Fixed
from calc.core.records import Entry
from calc.core.units import Quantity, QuantityLike, quantity

PARTS = ("embedding", "attention", "feed-forward", "router", "residual", "norms", "output")
WHOLE = (  # matrices beside routers that are cut into no slices
    *("query down", "key and value down", "latent input", "latent output"),
    *("index query", "index key", "index weights"),
    *("shared key", "compression", "index compression", "heavy compression"),
)
BIASES = ("qkv", "attention output", "feed-forward", "router", "output", "sinks")
NONE = "none"
LATENT = ("kv_latent", "rotary_width", "value_width")
SELECTED = ("query_latent", *LATENT)  # whose index reads the latents of queries
ATTENTIONS = {  # kinds of attention, and the numbers that a model with a layer of the kind has
    "full": (),
    "window": ("window",),
    "latent": LATENT,
    "sparse": (*SELECTED, "index_heads", "index_head_width", "index_topk"),
    "following": (*SELECTED, "index_topk"),
    "blocks": ("index_heads", "index_head_width", "index_topk"),
    "compressed-sparse": (
        *("query_latent", "output_latent", "output_groups", "window", "compression"),
        *("index_heads", "index_head_width", "index_topk"),
    ),
    "heavily-compressed": (
        *("query_latent", "output_latent", "output_groups", "window", "heavy_compression"),
    ),
    "linear": (
        *("linear_key_heads", "linear_value_heads", "linear_key_width", "linear_value_width"),
        "convolution",
    ),
    "state": ("state_heads", "state_head_width", "state_width", "state_groups", "convolution"),
    "convolution": ("convolution",),
    NONE: (),
}
LAYER_VECTORS = ("vectors of layers", "gate of a layer's vector", "vector of a layer")
"""Matrices of a model whose tokens have a vector of their own in each layer."""
LATENTS = ("latent", "sparse", "following")  # kinds that keep latents of tokens
COMPRESSED = ("compressed-sparse", "heavily-compressed")
"""Kinds that keep one vector of several tokens, which is key and value of all heads, and beside it
those of a window; layers with a window alone are then made as they are."""
INDEXED = ("sparse", "blocks", "compressed-sparse")
"""Kinds that keep keys by which they select what they attend to."""
CACHING = ("full", "window", "blocks", *LATENTS, *COMPRESSED)
"""Kinds that keep something of each token."""
STATES = ("linear", "state")  # kinds that keep a matrix a head in place of the tokens
RECURRENT = (*STATES, "convolution")  # and those that keep the inputs of a convolution alone
FEED_FORWARDS = {
    "dense": ("feed_forward_width",),
    "experts": ("experts", "active_experts", "expert_width"),
    NONE: (),
}
OPTIONAL = {  # numbers that only some layers of a kind have
    "shared_experts": ("experts",),
    "shared_expert_width": ("experts",),
    "expert_latent": ("experts",),
    "query_latent": (*LATENTS, *COMPRESSED),
    "hash_layers": ("experts",),
    "borrowing": ("full", "window"),
    "value_width": ("full", "blocks", "window", *LATENTS),
    "window_heads": ("window",),
    "window_kv_heads": ("window",),
    "window_head_width": ("window",),
    "time_step_rank": ("state",),
    "chunk": STATES,
    "state_bytes": STATES,
    "decay_rank": ("linear",),
    "gate_rank": ("linear",),
}
NORMS = {"rms": 1, "layer": 2}  # vectors of each
OUTPUTS = ("own", "tied", "pooler", "classes", "none")
QK_NORMS = ("head", "all heads")
GATES = ("attention", "shared experts")
HEADED = ("full", "blocks", "window")  # kinds that keep keys and values of heads


class Matrix(NamedTuple):
    """A matrix of weights that each token of a layer is multiplied by, or one of several alike."""

    part: str
    name: str
    inputs: int
    outputs: int
    layers: int
    """Layers that have it; 1 where it stands outside of them."""
    copies: int = 1
    """How many a layer has: its experts."""
    used: int = 1
    """How many of them a token is multiplied by."""
    bias: bool = False

    @property
    def parameters(self) -> int:
        """Parameters of all its copies in all layers, biases not counted."""
        return self.inputs * self.outputs * self.copies * self.layers

    @property
    def group(self) -> str:
        """Group of `GROUPS` to which the matrix belongs."""
        if self.part == "residual" or self.name.endswith("compression"):
            return "others"  # which no release keeps in few bits
        return "experts" if self.name.startswith("expert ") else self.part

    @property
    def whole(self) -> bool:
        """Return whether each slice has all of it: what makes vectors that all slices need.

        These are latents of keys and values, of queries and of experts, what chooses experts
        or tokens, and what mixes streams.
        """
        return self.part in ("router", "residual") or self.name in WHOLE


class Heads(NamedTuple):
    """Heads of a kind of attention: those of queries and of keys, and the widths of one."""

    queries: int
    keys: int
    key_width: int
    value_width: int

    @property
    def attended(self) -> int:
        """Numbers of a token's queries and results."""
        return self.queries * (self.key_width + self.value_width)

    @property
    def kept(self) -> int:
        """Numbers of a token's keys and values."""
        return self.keys * (self.key_width + self.value_width)


@dataclass(frozen=True, eq=False, kw_only=True)
class Transformer(Entry):
    """One model: its architecture, and its parameters part by part.

    Its numbers have the names of `calc/data/models.toml`, whose first comment explains them:
    layers, width, heads, kv_heads, head_width, vocabulary, context and so on, whole numbers all.
    `attention` and `feed_forward` name the kinds of its layers in a pattern that repeats down them.
    What a model does not have, such as experts or positions that are learned, is None. `notes` are
    what a reader of its numbers must know.
    """

    key: str = ""
    name: str = "this transformer"
    year: int | None = None
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    context: int
    attention: tuple[str, ...] = ("full",)
    feed_forward: tuple[str, ...] = ()
    """Kinds of feed-forward network; left out, those of experts where there are any, or dense."""
    gated: bool = True
    gates: tuple[str, ...] = ()
    tied_values: tuple[str, ...] = ()
    """Kinds of attention whose values are what the matrix of the keys makes."""
    norm: str = "rms"
    biases: tuple[str, ...] = ()
    output: str = "own"
    feed_forward_width: int | None = None
    width_multiple: int | None = None
    """What the widths of all networks are multiples of, where they differ and stand as a mean."""
    vocabulary: int | None = None
    patch_inputs: int | None = None
    classes: int | None = None
    positions: int | None = None
    other_embeddings: int | None = None
    layer_vectors: int | None = None
    norms: int | None = None
    qk_norm: str | None = None
    experts: int | None = None
    active_experts: int | None = None
    shared_experts: int | None = None
    expert_width: int | None = None
    shared_expert_width: int | None = None
    expert_latent: int | None = None
    query_latent: int | None = None
    kv_latent: int | None = None
    rotary_width: int | None = None
    value_width: int | None = None
    window: int | None = None
    window_heads: int | None = None
    window_kv_heads: int | None = None
    window_head_width: int | None = None
    borrowing: int | None = None
    index_heads: int | None = None
    index_head_width: int | None = None
    index_topk: int | None = None
    compression: int | None = None
    heavy_compression: int | None = None
    output_latent: int | None = None
    output_groups: int | None = None
    hash_layers: int | None = None
    streams: int | None = None
    linear_key_heads: int | None = None
    linear_value_heads: int | None = None
    linear_key_width: int | None = None
    linear_value_width: int | None = None
    decay_rank: int | None = None
    gate_rank: int | None = None
    state_heads: int | None = None
    state_head_width: int | None = None
    state_width: int | None = None
    state_groups: int | None = None
    time_step_rank: int | None = None
    convolution: int | None = None
    chunk: int | None = None
    state_bytes: int | None = None
    vision: int | None = None
    total: Quantity | None = None
    """Parameters as published; `parameters` counts them."""
    released: Release | None = None
    """Formats of the weights as released; None where the data do not say."""
    released_in: Mapping[str, Release] = field(default_factory=dict)
    """Formats of other checkpoints that its authors release, by their name."""
    checkpoint: Quantity | None = None
    """Memory of the released weights as published; `inference.weight_memory` counts it."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        read_numbers(self)
        usual = ("experts",) if self._has("experts") else ("dense",)
        stated = as_list(f"{self.name}: feed_forward", self.feed_forward)
        object.__setattr__(self, "feed_forward", tuple(stated) or usual)
        one_of(f"{self.name}: norm", self.norm, NORMS)
        one_of(f"{self.name}: output", self.output, OUTPUTS)
        if self.qk_norm is not None:
            one_of(f"{self.name}: qk_norm", self.qk_norm, QK_NORMS)
        for name, choices in (("biases", BIASES), ("gates", GATES), ("tied_values", HEADED)):
            for part in as_list(f"{self.name}: {name}", getattr(self, name)):
                one_of(f"{self.name}: {name}", part, choices)
        if not isinstance(self.released, Release | None):
            raise InputError(
                f"{self.name}: released must be a Release of calc.models; got"
                f" {abbreviated(self.released)}"
            )
        self._check_whole()
        for kind in HEADED:
            heads, kv_heads, *_ = self.heads_of(kind)
            if heads % kv_heads:
                raise InputError(
                    f"{self.name}: its {kv_heads} heads of keys and values must divide its {heads}"
                    " query heads"
                )
        if (self.active_experts or 0) > (self.experts or 0):
            raise InputError(
                f"{self.name}: a token cannot be sent to {self.active_experts} experts"
                f" of {self.experts}"
            )

    def _check_whole(self) -> None:
        """Refuse a model that lacks a part, or has one that no layer uses: counts were wrong."""
        kinds = ATTENTIONS | FEED_FORWARDS
        needed = {part: f'"{kind}" layers' for kind in self._layers for part in kinds[kind]}
        if not self._has("patch_inputs"):
            needed["vocabulary"] = "a model without patch_inputs"
        if self.output == "classes":
            needed["classes"] = 'output="classes"'
        for part, whole in needed.items():
            if not self._has(part):
                raise InputError(f"{self.name}: {part} is missing; {whole} cannot be without it")
        for kind, parts in kinds.items():
            for part in parts:
                if self._has(part) and part not in needed and part not in OPTIONAL:
                    raise InputError(f'{self.name}: {part} is given, and no layer is "{kind}"')
        for part, users in OPTIONAL.items():
            if self._has(part) and not self.layers_with(*users):
                raise InputError(f'{self.name}: {part} is given, and no layer is "{users[0]}"')
        if any(self.layers_with(kind) and not self.keeping(kind) for kind in ("full", "window")):
            raise InputError(
                f"{self.name}: its last {self.borrowing} layers borrow keys and values, and no"
                " earlier layer of their kind has any"
            )
        if not self.caching_layers:
            raise InputError(
                f"{self.name}: no layer attends to tokens, so that there is no cache to count:"
                f" attention must name {', '.join(CACHING[:-1])} or {CACHING[-1]} too"
            )

    @cached_property
    def _layers(self) -> Counter[str]:
        """Number of layers with each kind of attention and of feed-forward network."""
        return Counter(
            kind
            for name, choices in (("attention", ATTENTIONS), ("feed_forward", FEED_FORWARDS))
            for kind in self.kinds_down(name, choices)
        )

    @cached_property
    def _own_caches(self) -> Counter[str]:
        """Number of layers of each kind of attention that borrow no keys and values."""
        first = self.layers - (self.borrowing or 0)
        return Counter(self.kinds_down("attention", ATTENTIONS)[:first])

    def keeping(self, *kinds: str) -> int:
        """Return the number of layers of these kinds with keys and values of their own.

        The last layers of some models look at those of an earlier layer of their kind.

        >>> from calc import models
        >>> gemma = models.get("gemma-4-e4b")
        >>> gemma.layers_with("window", "full"), gemma.keeping("window", "full")
        (42, 24)
        """
        return sum(map(self._own_caches.__getitem__, kinds))

    def kinds_down(self, name: str, choices: Any) -> list[str]:
        """The kind of each layer, of a pattern of kinds and of runs of one, as in "5 window"."""
        stated = f"{self.name}: {name}"
        runs = []
        for run in as_list(stated, getattr(self, name)):
            times, _, kind = str(run).rpartition(" ")
            if times and not (times.isdecimal() and int(times)):
                raise InputError(
                    f'{stated} must name a kind, or how many and a kind, as in "3 full"; got'
                    f" {abbreviated(run)}"
                )
            one_of(stated, kind, choices)
            runs.append(repeat(kind, int(times or 1)))
        pattern, layers = list(chain.from_iterable(runs)), self.layers
        if len(pattern) > layers:
            raise InputError(f"{stated} lists {len(pattern)} layers, and there are {layers}")
        return list(islice(cycle(pattern), layers))

    @cached_property
    def groups(self) -> dict[str, Matrix]:
        """The groups of `GROUPS` that it has matrices of, and the first matrix of each."""
        return Fixed({matrix.group: matrix for matrix in reversed(self.matrices)})

    def layers_with(self, *kinds: str) -> int:
        """Return the number of layers with one of these kinds of attention or feed-forward network.

        >>> from calc import models
        >>> gemma = models.get("gemma-3-27b")
        >>> gemma.layers_with("window"), gemma.layers_with("full")
        (52, 10)
        """
        return sum(map(self._layers.__getitem__, kinds))

    @property
    def kinds(self) -> dict[str, int]:
        """Number of layers with each kind of attention and of feed-forward network."""
        return dict(self._layers)

    @cached_property
    def caching_layers(self) -> int:
        """Layers that keep something of each token."""
        return self.layers_with(*CACHING)

    @property
    def keeps_cache(self) -> bool:
        """True if the model writes text, and so keeps keys and values of what it has read."""
        return bool(self.caching_layers) and self.output in ("own", "tied")

    @property
    def blocks(self) -> int:
        """Blocks that add to the stream: attentions and feed-forward networks of all layers."""
        return 2 * self.layers - self.layers_with(NONE)

    @cached_property
    def compresses(self) -> bool:
        """Return whether its layers keep one vector of several tokens for all heads."""
        return self.layers_with(*COMPRESSED) > 0

    @property
    def selected(self) -> int:
        """Positions of which those that a layer selects are made."""
        return (self.index_topk or 0) * (self.compression or 1)

    @property
    def reaches(self) -> tuple[int, ...]:
        """Positions beyond which some layer looks at no more: its window, or those it selects."""
        return tuple(sorted(each for each in (self.window, self.selected) if each))

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    def with_context(self, context: QuantityLike) -> Self:
        """Return the model with a longer or shorter context than published.

        >>> from calc import models
        >>> llama = models.get("llama-3-8b")
        >>> print(llama.with_context(100_000).context, llama.with_context("128k").context)
        100000 131072
        """
        longest = read_number(self.name, "context", counted(context))
        if longest == self.context:
            return self
        note = f"it is taken to read {longest} tokens, and {self.context} are published"
        return replace(self, context=longest, notes=(*self.notes, note))

    def with_release(self, released: Release, notes: tuple[str, ...]) -> Self:
        """Return the same model with the formats in which its weights are released."""
        return replace(self, released=released, notes=notes)

    @property
    def key_width(self) -> int:
        """Width of a head's query and key, with the part that latent attention keeps apart."""
        return self.head_width + (self.rotary_width or 0)

    @property
    def head_value_width(self) -> int:
        """Width of a head's value."""
        return self.value_width if self.value_width is not None else self.head_width

    def heads_of(self, kind: str) -> Heads:
        """Heads of the layers of a kind of attention, latents expanded.

        >>> from calc import models
        >>> models.get("llama-3-8b").heads_of("full")
        Heads(queries=32, keys=8, key_width=128, value_width=128)
        """
        heads, kv_heads, width = self.heads, self.kv_heads, self.head_width
        if kind == "window":
            heads = self.window_heads or heads
            kv_heads = self.window_kv_heads or kv_heads
            width = self.window_head_width or width
        values = self.value_width or width
        return Heads(heads, kv_heads, width + (self.rotary_width or 0), values)

    @property
    def kinds_of_heads(self) -> dict[tuple[str, ...], Heads]:
        """The kinds with keys and values of heads, those together whose heads are alike."""
        full, window = self.heads_of("full"), self.heads_of("window")
        if self.compresses:
            return {}
        alike = {HEADED: full} if full == window and not self.tied_values else {}
        apart = {("full", "blocks"): full, ("window",): window}
        return {
            kinds: heads for kinds, heads in (alike or apart).items() if self.layers_with(*kinds)
        }

    @property
    def expert_inputs(self) -> int:
        """Numbers that a token sends to an expert: its vector, or what is made of it for them."""
        return self.width if self.expert_latent is None else self.expert_latent

    @property
    def cache_heads(self) -> int:
        """Parts by which devices can divide a cache: heads, of the layers that have the fewest.

        Of latents the whole alone.
        """
        if self.kv_latent is not None or self.compresses:
            return 1
        return min((heads.keys for heads in self.kinds_of_heads.values()), default=1)

    @property
    def tied_embeddings(self) -> bool:
        """True if the embedding is the matrix of the output too."""
        return self.output == "tied"

    @cached_property
    def matrices(self) -> tuple[Matrix, ...]:
        """The matrices that a token is multiplied by on its way, the tied output included."""
        matrices = [*self._attention(), *self._feed_forward(), *self._residual()]
        width = self.width
        if self.patch_inputs is not None:
            patch = Matrix("embedding", "patches", (self.patch_inputs or 0), width, 1, bias=True)
            matrices = [patch, *matrices]
        if self.output == "none":
            return tuple(matrices)
        rows = {"pooler": width, "classes": (self.classes or 0)}
        outputs = rows.get(self.output, (self.vocabulary or 0))
        name = self.output if self.output in rows else "vocabulary"
        bias = self.output in rows or "output" in self.biases
        return (*matrices, Matrix("output", name, width, outputs, 1, bias=bias))

    @property
    def layer_table(self) -> int:
        """Numbers of the vectors that each layer has of each token of the vocabulary."""
        return (self.vocabulary or 0) * self.layers * (self.layer_vectors or 0)

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part: embedding, attention, feed-forward, router, norms, output.

        >>> from calc import models
        >>> for part, parameters in models.get("mixtral-8x7b").parts.items():
        ...     print(part, parameters)
        embedding 131.1M param
        attention 1.342B param
        feed-forward 45.10B param
        router 1.049M param
        norms 266.2K param
        output 131.1M param
        """
        return {part: quantity(count, "param") for part, count in self._counts.items() if count}

    @cached_property
    def _counts(self) -> dict[str, int]:
        counts = dict.fromkeys(PARTS, 0)
        for matrix in self.matrices:
            if not (matrix.part == "output" and self.tied_embeddings):
                biases = matrix.outputs * matrix.copies * matrix.layers if matrix.bias else 0
                counts[matrix.part] += matrix.parameters + biases
        width = self.width
        vectors = (self.vocabulary, self.positions, self.other_embeddings)
        counts["embedding"] += width * sum(count or 0 for count in vectors) + self.layer_table
        norms = (self.norms or 0) * self.layers or self.blocks
        inner = self._inner_norms() + (self.layer_vectors or 0)
        counts["norms"] = NORMS[self.norm] * ((norms + 1) * width + inner)
        counts["norms"] += 2 * (self.index_head_width or 0) * self.layers_with("sparse", "blocks")
        counts["attention"] += self._vectors()
        counts["router"] += self._hashed()
        if (streams := self.streams or 0) > 0:  # a summand of each weight, and scales of the kinds
            counts["residual"] += self.blocks * (streams * (streams + 2) + 3) + streams + 1
        return counts

    @property
    def parameters(self) -> Quantity:
        """Number of all parameters, by their count.

        >>> from calc import models
        >>> print(f"{models.get('llama-3-8b').parameters.m_as('param'):.0f}")
        8030261248
        """
        return quantity(sum(self._counts.values()), "param")

    @property
    def active_parameters(self) -> Quantity:
        """Parameters that one token meets: all but the experts that it is not sent to.

        >>> from calc import models
        >>> print(models.get("mixtral-8x7b").active_parameters)
        12.88B param
        """
        idle = sum(
            (matrix.inputs + matrix.bias)
            * matrix.outputs
            * (matrix.copies - matrix.used)
            * matrix.layers
            for matrix in self.matrices
        )
        return self.parameters - quantity(idle, "param")

    @property
    def expert_parameters(self) -> Quantity:
        """Parameters of experts to which a token may or may not be sent.

        >>> from calc import models
        >>> print(models.get("mixtral-8x7b").expert_parameters)
        45.10B param
        """
        in_experts = sum(
            matrix.parameters for matrix in self.matrices if matrix.used < matrix.copies
        )
        return quantity(in_experts, "param")

    @property
    def multiplied_parameters(self) -> Quantity:
        """Parameters by which one token is multiplied, from which its operations follow.

        The embedding is looked up and adds none of its own; a pooler or classifier sees one token.
        """
        used = sum(
            matrix.parameters // matrix.copies * matrix.used
            for matrix in self.matrices
            if matrix.name not in ("pooler", "classes")
        )
        return quantity(used, "param")

    @cached_property
    def idle(self) -> dict[str, int]:
        """Weights by their matrix, of layers that borrow keys and values: nothing reads them."""
        borrowed = {
            prefix + name: self.layers_with(*kinds) - self.keeping(*kinds)
            for kinds in self.kinds_of_heads
            for prefix in ("windowed " if kinds == ("window",) else "",)
            for name in ("key", "value")
        }
        return Fixed(
            {
                matrix.name: matrix.inputs * matrix.outputs * layers
                for matrix in self.matrices
                if (layers := borrowed.get(matrix.name))
            }
        )

    def _inner_norms(self) -> int:
        """Numbers in normalisations inside of the attentions."""
        latents = (self.query_latent or 0) + (self.kv_latent or 0)
        inner, rank = self.state_inner, (self.time_step_rank or 0)
        state = rank + 2 * (self.state_width or 0) if rank else inner
        shared = (self.query_latent or 0) + self.head_width
        compressed = self.layers_with(*COMPRESSED) * self.head_width
        compressed += self.layers_with("compressed-sparse") * (self.index_head_width or 0)
        return (
            self._head_norms()
            + self.layers_with(*LATENTS) * latents
            + (self.caching_layers * shared + compressed if self.compresses else 0)
            + self.layers_with("linear") * (self.linear_value_width or 0)
            + self.layers_with("state") * state
        )

    def _head_norms(self) -> int:
        """Numbers in normalisations of queries and keys."""
        total = 0
        for kinds, heads in self.kinds_of_heads.items():
            vectors = {None: 0, "head": 2, "all heads": heads.queries + heads.keys}
            total += self.layers_with(*kinds) * vectors[self.qk_norm] * heads.key_width
        return total

    def _vectors(self) -> int:
        """Numbers of the attentions in no matrix: sinks, convolutions, decays, places of tokens."""
        sinks = self.heads if "sinks" in self.biases else 0
        kernel, heads = (self.convolution or 0), (self.state_heads or 0)
        inner, rank = self.state_inner, (self.time_step_rank or 0)
        decays = inner * ((self.state_width or 0) + 1) if rank else 3 * heads
        rates = self.linear_value_heads or 0  # a decay, or one for each row of a state
        rates += self._decayed if self.decay_rank is not None else rates
        linear = self.convolved("linear") * kernel + rates
        index = self.index_head_width or 0
        places = 2 * (self.compression or 0) * (self.head_width + index)  # of two windows that meet
        few, many = (self.layers_with(kind) for kind in COMPRESSED)
        return (
            sum(self.idle.values())
            + self.layers_with(*HEADED, *COMPRESSED) * sinks
            + few * places
            + many * (self.heavy_compression or 0) * self.head_width
            + self.layers_with("linear") * linear
            + self.layers_with("state") * (self.convolved("state") * (kernel + 1) + decays)
            + self.layers_with("convolution") * self.convolved("convolution") * kernel
        )

    @property
    def _decayed(self) -> int:
        """Rows of all states of a layer of linear attention."""
        return (self.linear_value_heads or 0) * (self.linear_key_width or 0)

    @property
    def state_inner(self) -> int:
        """Channels of a state-space layer, those of all its heads."""
        return (self.state_heads or 0) * (self.state_head_width or 0)

    def convolved(self, kind: str) -> int:
        """Channels of the short convolution of a layer of a kind of `RECURRENT`."""
        if kind == "convolution":
            return self.width
        if kind == "linear":
            keys = (self.linear_key_heads or 0) * (self.linear_key_width or 0)
            return 2 * keys + (self.linear_value_heads or 0) * (self.linear_value_width or 0)
        if self.time_step_rank is not None:  # Mamba's first version convolves before it selects
            return self.state_inner
        return self.state_inner + 2 * (self.state_groups or 0) * (self.state_width or 0)

    def _attention(self) -> list[Matrix]:
        return [
            *self._of_heads(),
            *self._of_latents(),
            *self._of_vectors(),
            *self._linear(),
            *self._state(),
            *self._convolution(),
        ]

    def _of_heads(self) -> list[Matrix]:
        width, bias = self.width, "qkv" in self.biases
        with_gate, last = 2 if "attention" in self.gates else 1, "attention output" in self.biases
        matrices = []
        for kinds, heads in self.kinds_of_heads.items():
            prefix, layers = "windowed " if kinds == ("window",) else "", self.layers_with(*kinds)
            results = heads.queries * heads.value_width
            stored = [
                ("query", heads.queries * heads.key_width + (with_gate - 1) * results),
                ("key", heads.keys * heads.key_width),
                ("value", heads.keys * heads.value_width),
            ]
            of = {"query": layers, "key": self.keeping(*kinds), "value": self.keeping(*kinds)}
            matrices += [
                Matrix("attention", prefix + name, width, numbers, of[name], bias=bias)
                for name, numbers in stored
                if of[name] and (name != "value" or not {*kinds} & {*self.tied_values})
            ]
            if blocks := self.layers_with("blocks") if "blocks" in kinds else 0:
                index = self.index_head_width or 0
                queries = (self.index_heads or 0) * index
                matrices.append(Matrix("attention", "index query", width, queries, blocks))
                matrices.append(Matrix("attention", "index key", width, index, blocks))
            output = prefix + "attention output"
            matrices.append(Matrix("attention", output, results, width, layers, bias=last))
        return matrices

    def _of_latents(self) -> list[Matrix]:
        layers, sparse = self.layers_with(*LATENTS), self.layers_with("sparse")
        if not layers:
            return []
        width, heads, head = self.width, self.heads, self.head_width
        query, latent = (self.query_latent or 0), (self.kv_latent or 0)
        rotary, value = (self.rotary_width or 0), (self.value_width or 0)
        index, index_heads = (self.index_head_width or 0), (self.index_heads or 0)
        indexer = [
            Matrix("attention", "index query", query, index_heads * index, sparse),
            Matrix("attention", "index key", width, index, sparse),
            Matrix("attention", "index weights", width, index_heads, sparse),
        ]
        asked = heads * (head + rotary)
        queries = [Matrix("attention", "query", width, asked, layers)]
        if query:
            queries = [
                Matrix("attention", "query down", width, query, layers),
                Matrix("attention", "query up", query, asked, layers),
            ]
        last = "attention output" in self.biases
        gated = "attention" in self.gates
        gate = [Matrix("attention", "attention gate", width, heads * value, layers)] * gated
        return [
            *queries,
            Matrix("attention", "key and value down", width, latent + rotary, layers),
            Matrix("attention", "key up", latent, heads * head, layers),
            Matrix("attention", "value up", latent, heads * value, layers),
            *(indexer if sparse else []),
            *gate,
            Matrix("attention", "attention output", heads * value, width, layers, bias=last),
        ]

    def _of_vectors(self) -> list[Matrix]:
        """Layers that keep one vector for all heads, and of tokens that are left one of several."""
        if not self.compresses:
            return []
        layers, width, head = self.caching_layers, self.width, self.head_width
        query, results = (self.query_latent or 0), self.heads * head
        index, index_heads = (self.index_head_width or 0), (self.index_heads or 0)
        groups = self.output_groups or 1
        joined = groups * (self.output_latent or 0)
        few, many = (self.layers_with(kind) for kind in COMPRESSED)
        # A token has a value and a weight in each sum that it is part of: of two windows, or one.
        matrices = [
            ("query down", width, query, layers),
            ("query up", query, results, layers),
            ("shared key", width, head, layers),
            ("compression", width, 4 * head, few),
            ("index compression", width, 4 * index, few),
            ("index query", query, index_heads * index, few),
            ("index weights", width, index_heads, few),
            ("heavy compression", width, 2 * head, many),
            ("groups of results", results // groups, joined, layers),
            ("attention output", joined, width, layers),
        ]
        return [
            Matrix("attention", name, inputs, outputs, of)
            for name, inputs, outputs, of in matrices
            if of
        ]

    def _residual(self) -> list[Matrix]:
        """Return what tells how streams are read, written and mixed, of blocks and at the end.

        Of a model whose tokens have a vector in each layer, what lets it into the stream.
        """
        if (vector := self.layer_vectors or 0) > 0:
            width, layers = self.width, self.layers
            return [
                Matrix("residual", LAYER_VECTORS[0], width, layers * vector, 1),
                Matrix("residual", LAYER_VECTORS[1], width, vector, layers),
                Matrix("residual", LAYER_VECTORS[2], vector, width, layers),
            ]
        if (streams := self.streams or 0) == 0:
            return []
        inputs, weights = streams * self.width, streams * (streams + 2)
        return [
            Matrix("residual", "mixing of streams", inputs, weights, self.blocks),
            Matrix("residual", "sum of streams", inputs, streams, 1),
        ]

    def _hashed(self) -> int:
        """Entries of the tables that name a token's experts, less the biases that are not there."""
        tables = (self.vocabulary or 0) * (self.active_experts or 0)
        biases = (self.experts or 0) * ("router" in self.biases)
        return (self.hash_layers or 0) * (tables - biases)

    def _linear(self) -> list[Matrix]:
        layers, width = self.layers_with("linear"), self.width
        if not layers:
            return []
        heads = self.linear_value_heads or 0
        values = heads * (self.linear_value_width or 0)
        # Queries, keys, values and a gate as wide as these, or what it is made from; a decay and a
        # rate for each head, or a rate and what the decays of all rows are made from.
        rank, gate = self.decay_rank or 0, self.gate_rank or 0
        widths = self.convolved("linear") + (gate or values) + heads + (rank or heads)
        decay = [Matrix("attention", "decay", rank, self._decayed, layers)] if rank else []
        gates = [Matrix("attention", "linear gate", gate, values, layers)] if gate else []
        return [
            Matrix("attention", "linear input", width, widths, layers),
            *decay,
            *gates,
            Matrix("attention", "linear output", values, width, layers),
        ]

    def _state(self) -> list[Matrix]:
        layers, width, inner = self.layers_with("state"), self.width, self.state_inner
        if not layers:
            return []
        out = Matrix("attention", "state output", inner, width, layers)
        rank = self.time_step_rank or 0
        if not rank:  # values, gates, the vectors that write and read the state, a step for a head
            widths = inner + self.convolved("state") + (self.state_heads or 0)
            return [Matrix("attention", "state input", width, widths, layers), out]
        chosen = rank + 2 * (self.state_width or 0)
        return [
            Matrix("attention", "state input", width, 2 * inner, layers),
            Matrix("attention", "state selection", inner, chosen, layers),
            Matrix("attention", "time step", rank, inner, layers, bias=True),
            out,
        ]

    def _convolution(self) -> list[Matrix]:
        """Layers whose short convolution is all: a gate before it, one after it, and its input."""
        if (layers := self.layers_with("convolution")) == 0:
            return []
        width, channels = self.width, self.convolved("convolution")
        return [
            Matrix("attention", "convolution input", width, 3 * channels, layers),
            Matrix("attention", "convolution output", channels, width, layers),
        ]

    def _feed_forward(self) -> list[Matrix]:
        width, routed = self.width, self.layers_with("experts")
        shared = self.shared_experts or 0
        matrices = []
        names = ("gate", "up", "down") if self.gated else ("up", "down")
        narrow, latent = (self.expert_width or 0), (self.expert_latent or 0)
        wide = self.shared_expert_width or narrow
        experts, active = (self.experts or 0), (self.active_experts or 0)
        for prefix, read, hidden, layers, copies, used in (
            ("", width, (self.feed_forward_width or 0), self.layers_with("dense"), 1, 1),
            ("shared ", width, wide, routed, shared, shared),
            ("expert ", latent or width, narrow, routed, experts, active),
        ):
            if layers and copies:
                matrices += [
                    Matrix(
                        "feed-forward",
                        prefix + name,
                        *((hidden, read) if name == "down" else (read, hidden)),
                        layers,
                        copies,
                        used,
                        "feed-forward" in self.biases,
                    )
                    for name in names
                ]
        if routed and latent:
            matrices += [
                Matrix("feed-forward", "latent input", width, latent, routed),
                Matrix("feed-forward", "latent output", latent, width, routed),
            ]
        if routed:
            bias = "router" in self.biases
            matrices.append(Matrix("router", "router", width, experts, routed, bias=bias))
            if "shared experts" in self.gates:
                matrices.append(Matrix("router", "gate of shared experts", width, 1, routed))
        return matrices


def from_shape(
    layers: QuantityLike,
    width: QuantityLike,
    heads: QuantityLike,
    *,
    context: QuantityLike,
    kv_heads: QuantityLike | None = None,
    head_width: QuantityLike | None = None,
    name: str = "this transformer",
    **others: Any,
) -> Transformer:
    """The transformer of these numbers, in the shape of Llama where nothing else is said.

    Where they are left out, each head has keys and values of its own, and heads share the width.
    `others` are more fields of a `Transformer`, such as feed_forward_width, output or experts.

    >>> shape = from_shape(32, 4096, 32, kv_heads=8, feed_forward_width=14336, vocabulary=128256,
    ...                    context=8192)
    >>> print(shape.parameters)
    8.030B param
    """
    check_name(name)
    if head_width is None:
        whole, parts = read_number(name, "width", width), read_number(name, "heads", heads)
        head_width, rest = divmod(whole, parts)
        if rest:
            raise InputError(
                f"{name}: without a head_width, its {parts} heads must divide its width of {whole}"
            )
    numbers: dict[str, Any] = {
        "layers": layers,
        "width": width,
        "heads": heads,
        "kv_heads": heads if kv_heads is None else kv_heads,
        "head_width": head_width,
        "context": context,
    }
    allowed = [field.name for field in fields(Transformer) if field.name not in numbers]
    for other in others:
        if other not in allowed:
            near = did_you_mean(other, allowed)
            raise InputError(f"{name}: there is no {other}; {near}there are {', '.join(allowed)}")
    return Transformer(name=name, **numbers, **others)


def check_transformer(model: object) -> None:
    """Refuse what is no transformer."""
    if not isinstance(model, Transformer):
        name = getattr(model, "name", abbreviated(model))
        hint = f": write models.get({name})" if isinstance(model, str) else ""
        raise InputError(f"a transformer of calc.models is needed here; got {name}{hint}")
