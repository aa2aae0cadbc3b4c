"""A transformer's architecture, and the parameters that it makes, matrix by matrix."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, NamedTuple, Self

from calc.core.arguments import as_list, one_of
from calc.core.elementwise import largest
from calc.core.errors import InputError, abbreviated, did_you_mean
from calc.core.units import Quantity, QuantityLike, quantity

PARTS = ("embedding", "attention", "feed-forward", "router", "norms", "output")
BIASES = ("qkv", "attention output", "feed-forward", "router", "output", "sinks")
LARGEST = {"": 1e9, "param": 1e15}  # counts beyond any model: only slips of the keyboard lead there
NEEDED = {  # what a model of one part has too
    "experts": ("active_experts", "expert_width"),
    "active_experts": ("experts",),
    "expert_width": ("experts",),
    "shared_experts": ("experts",),
    "dense_layers": ("experts",),
    "kv_latent": ("query_latent", "rotary_width"),
    "query_latent": ("kv_latent",),
    "window": ("windowed_layers",),
    "windowed_layers": ("window",),
}
NORMS = {"rms": 1, "layer": 2}  # vectors of each
OUTPUTS = ("own", "tied", "pooler", "classes")


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Transformer:
    """One model: its architecture, and its parameters part by part.

    Its numbers have the names of `calc/data/models.toml`, whose first comment explains them:
    layers, width, heads, kv_heads, head_width, vocabulary, context and so on, whole numbers all.
    What a model does not have, such as experts or positions that are learned, is None. `notes` are
    what a reader of its numbers must know.
    """

    key: str = ""
    name: str = "this transformer"
    year: int | None = None
    layers: Quantity
    width: Quantity
    heads: Quantity
    kv_heads: Quantity
    head_width: Quantity
    context: Quantity
    gated: bool = True
    norm: str = "rms"
    biases: tuple[str, ...] = ()
    output: str = "own"
    feed_forward_width: Quantity | None = None
    vocabulary: Quantity | None = None
    patch_inputs: Quantity | None = None
    classes: Quantity | None = None
    positions: Quantity | None = None
    other_embeddings: Quantity | None = None
    norms: Quantity | None = None
    head_norms: Quantity | None = None
    experts: Quantity | None = None
    active_experts: Quantity | None = None
    shared_experts: Quantity | None = None
    expert_width: Quantity | None = None
    dense_layers: Quantity | None = None
    query_latent: Quantity | None = None
    kv_latent: Quantity | None = None
    rotary_width: Quantity | None = None
    value_width: Quantity | None = None
    window: Quantity | None = None
    windowed_layers: Quantity | None = None
    total: Quantity | None = None
    """Parameters as published; `parameters` counts them."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        for field in fields(self):
            value, needed = getattr(self, field.name), field.default is MISSING
            if str(field.type).startswith("Quantity") and (needed or value is not None):
                unit, least = "param" if field.name == "total" else "", int(needed)
                count = _count(self.name, field.name, value, unit, least)
                object.__setattr__(self, field.name, count)
        one_of(f"{self.name}: norm", self.norm, NORMS)
        one_of(f"{self.name}: output", self.output, OUTPUTS)
        for bias in as_list(f"{self.name}: biases", self.biases):
            one_of(f"{self.name}: biases", bias, BIASES)
        self._check_whole()
        heads, kv_heads = self._count("heads"), self._count("kv_heads")
        if heads % kv_heads:
            raise InputError(
                f"{self.name}: its {kv_heads} heads of keys and values must divide its {heads}"
                " query heads"
            )
        if self._count("active_experts") > self._count("experts"):
            raise InputError(
                f"{self.name}: a token cannot be sent to {self._count('active_experts')} experts"
                f" of {self._count('experts')}"
            )
        if self._count("windowed_layers") > self._count("layers"):
            raise InputError(
                f"{self.name}: a window cannot be in {self._count('windowed_layers')} layers"
                f" of {self._count('layers')}"
            )

    def _check_whole(self) -> None:
        """Refuse a model that lacks a part, which would count too few parameters."""
        needed = {each: name for name in NEEDED if self._has(name) for each in NEEDED[name]}
        if not self._has("patch_inputs"):
            needed["vocabulary"] = "a model without patch_inputs"
        if self.output == "classes":
            needed["classes"] = 'output="classes"'
        if self._count("layers") > self._expert_layers:
            needed["feed_forward_width"] = "a model with layers that have no experts"
        for part, whole in needed.items():
            if not self._has(part):
                raise InputError(f"{self.name}: {part} is missing; {whole} cannot be without it")

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    def with_context(self, context: QuantityLike) -> Self:
        """The same model, made to read longer than published, or shorter.

        >>> from calc import models
        >>> print(models.get("llama-3-8b").with_context(131072).context)
        131072
        """
        longest = _count(self.name, "context", context)
        note = f"it is taken to read {longest} tokens, and {self.context} are published"
        return replace(self, context=longest, notes=(*self.notes, note))

    @property
    def key_width(self) -> Quantity:
        """Width of a head's query and key, with the part that latent attention keeps apart."""
        return quantity(self._count("head_width") + self._count("rotary_width"), "1")

    @property
    def head_value_width(self) -> Quantity:
        """Width of a head's value."""
        return self.value_width if self.value_width is not None else self.head_width

    @property
    def cache_heads(self) -> int:
        """Parts by which devices can divide a cache: its heads, and of latents the whole alone."""
        return 1 if self.kv_latent is not None else int(self.kv_heads.magnitude)

    @property
    def tied_embeddings(self) -> bool:
        """Whether the embedding is the matrix of the output too."""
        return self.output == "tied"

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The matrices that a token is multiplied by on its way, the tied output included."""
        matrices = [*self._attention(), *self._feed_forward()]
        width = self._count("width")
        if self.patch_inputs is not None:
            patch = Matrix("embedding", "patches", self._count("patch_inputs"), width, 1, bias=True)
            matrices = [patch, *matrices]
        rows = {"pooler": width, "classes": self._count("classes")}
        outputs = rows.get(self.output, self._count("vocabulary"))
        name = self.output if self.output in rows else "vocabulary"
        bias = self.output in rows or "output" in self.biases
        return (*matrices, Matrix("output", name, width, outputs, 1, bias=bias))

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
        counts = dict.fromkeys(PARTS, 0)
        for matrix in self.matrices:
            if not (matrix.part == "output" and self.tied_embeddings):
                biases = matrix.outputs * matrix.copies * matrix.layers if matrix.bias else 0
                counts[matrix.part] += matrix.parameters + biases
        width = self._count("width")
        vectors = (self._count(each) for each in ("vocabulary", "positions", "other_embeddings"))
        counts["embedding"] += width * sum(vectors)
        layers, norms = self._count("layers"), self._count("norms") or 2
        within = self._count("query_latent") + self._count("kv_latent")
        within += self._count("head_norms") * self._count("head_width")
        counts["norms"] = NORMS[self.norm] * ((norms * layers + 1) * width + layers * within)
        if "sinks" in self.biases:
            counts["attention"] += layers * self._count("heads")
        return {part: quantity(count, "param") for part, count in counts.items() if count}

    @property
    def parameters(self) -> Quantity:
        """All parameters, counted.

        >>> from calc import models
        >>> print(f"{models.get('llama-3-8b').parameters.m_as('param'):.0f}")
        8030261248
        """
        return sum(self.parts.values(), quantity(0, "param"))

    @property
    def active_parameters(self) -> Quantity:
        """Those that one token meets: all but the experts that it is not sent to.

        >>> from calc import models
        >>> print(models.get("mixtral-8x7b").active_parameters)
        12.88B param
        """
        idle = sum(
            (each.inputs + each.bias) * each.outputs * (each.copies - each.used) * each.layers
            for each in self.matrices
        )
        active: Quantity = self.parameters - quantity(idle, "param")
        return active

    @property
    def multiplied_parameters(self) -> Quantity:
        """Those of the matrices that one token is multiplied by, from which its operations follow.

        The embedding is looked up and adds none of its own; a pooler or classifier sees one token.
        """
        used = sum(
            each.parameters // each.copies * each.used
            for each in self.matrices
            if each.name not in ("pooler", "classes")
        )
        return quantity(used, "param")

    @property
    def _expert_layers(self) -> int:
        return (
            self._count("layers") - self._count("dense_layers") if self.experts is not None else 0
        )

    def _attention(self) -> list[Matrix]:
        layers, width, heads = self._count("layers"), self._count("width"), self._count("heads")
        head, value = self._count("head_width"), int(self.head_value_width.magnitude)
        out = Matrix(
            "attention",
            "attention output",
            heads * value,
            width,
            layers,
            bias="attention output" in self.biases,
        )
        if self.kv_latent is None:
            kv, bias = self._count("kv_heads") * head, "qkv" in self.biases
            return [
                Matrix("attention", "query", width, heads * head, layers, bias=bias),
                Matrix("attention", "key", width, kv, layers, bias=bias),
                Matrix("attention", "value", width, kv, layers, bias=bias),
                out,
            ]
        query, latent = self._count("query_latent"), self._count("kv_latent")
        rotary = self._count("rotary_width")
        return [
            Matrix("attention", "query down", width, query, layers),
            Matrix("attention", "query up", query, heads * (head + rotary), layers),
            Matrix("attention", "key and value down", width, latent + rotary, layers),
            Matrix("attention", "key up", latent, heads * head, layers),
            Matrix("attention", "value up", latent, heads * value, layers),
            out,
        ]

    def _feed_forward(self) -> list[Matrix]:
        width, expert_layers = self._count("width"), self._expert_layers
        dense_layers = self._count("layers") - expert_layers
        matrices = []
        names = ("gate", "up", "down") if self.gated else ("up", "down")
        for prefix, hidden, layers, copies, used in (
            ("", self._count("feed_forward_width"), dense_layers, 1, 1),
            (
                "shared ",
                self._count("expert_width"),
                expert_layers,
                self._count("shared_experts"),
                0,
            ),
            (
                "expert ",
                self._count("expert_width"),
                expert_layers,
                self._count("experts"),
                self._count("active_experts"),
            ),
        ):
            if layers and copies:
                matrices += [
                    Matrix(
                        "feed-forward",
                        prefix + name,
                        *((hidden, width) if name == "down" else (width, hidden)),
                        layers,
                        copies,
                        used or copies,
                        "feed-forward" in self.biases,
                    )
                    for name in names
                ]
        if expert_layers:
            experts, bias = self._count("experts"), "router" in self.biases
            matrices.append(Matrix("router", "router", width, experts, expert_layers, bias=bias))
        return matrices

    def _count(self, name: str) -> int:
        value: Quantity | None = getattr(self, name)
        return 0 if value is None else int(value.magnitude)


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
    _check_name(name)
    if head_width is None:
        whole, parts = _count(name, "width", width), _count(name, "heads", heads)
        head_width, rest = divmod(whole.magnitude, parts.magnitude)
        if rest:
            raise InputError(
                f"{name}: without a head_width, its {parts} heads must divide its width of"
                f" {whole.magnitude:g}"
            )
    numbers: dict[str, Any] = {
        "layers": layers,
        "width": width,
        "heads": heads,
        "kv_heads": heads if kv_heads is None else kv_heads,
        "head_width": head_width,
        "context": context,
    }
    known = [each.name for each in fields(Transformer) if each.name not in numbers]
    for each in others:
        if each not in known:
            near = did_you_mean(each, known)
            raise InputError(f"{name}: there is no {each}; {near}there are {', '.join(known)}")
    return Transformer(name=name, **numbers, **others)


def _check_name(name: Any) -> None:
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise InputError(f"a model's name is a line of text; got {abbreviated(name)}")


def _count(model: str, name: str, given: Any, unit: str = "", least: int = 1) -> Quantity:
    """A whole number, as a quantity that keeps where it comes from."""
    try:
        count = given if isinstance(given, Quantity) else quantity(given)
        count = quantity(count.magnitude, unit) if unit and count.unitless else count
    except InputError as error:
        raise InputError(f"{model}: {name}: {error}") from None
    if (
        not count.is_compatible_with(unit)
        or count.ndim
        or not least <= count.m_as(unit) <= LARGEST[unit]
        or count.m_as(unit) % 1
        or isinstance(given, bool)
    ):
        most = f" to {quantity(LARGEST[unit])}" if largest(count) > LARGEST[unit] else ""
        raise InputError(
            f"{model}: {name} must be a whole number from {least}{most}; got {abbreviated(given)}"
        )
    return count


def check_transformer(model: Any) -> None:
    """Refuse what is no transformer."""
    if not isinstance(model, Transformer):
        name = getattr(model, "name", abbreviated(model))
        hint = f": write models.get({name})" if isinstance(model, str) else ""
        raise InputError(f"a transformer of calc.models is needed here; got {name}{hint}")
