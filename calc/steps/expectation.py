"""What a pass or a step is expected to take on a machine, in parts whose times have sources.

Kernels follow one another, each at the rate that was measured of its kind; messages take what was
measured of them, less what the software hides; and the software adds its own time. A rate that was
not measured is an error that names it; of many layouts of training at once, it is NaN.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

from calc.catalog import machines
from calc.catalog.machines import NO_TIME, Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.catalog.software import UNKNOWN, Software
from calc.core.elementwise import ceiling, different, largest, maximum, minimum, of_each, where
from calc.core.errors import InputError
from calc.core.formatting import columns
from calc.core.units import Quantity, QuantityLike, quantity
from calc.networks import transformer
from calc.steps import collectives, curves, kernels
from calc.steps.kernels import Kernel

STATE_TRAFFIC = 28  # bytes of a parameter in an Adam step: states and weights read and written


@dataclass(frozen=True)
class Origin:
    """What a part's time is made of: a rate, or a time, and the sources that have it."""

    rate: str
    sources: tuple[str, ...]
    """Keys of references.bib."""

    def __str__(self) -> str:
        return f"{self.rate} [{', '.join(self.sources)}]"


class Parts(dict[str, Quantity]):
    """The times of a pass by kind of what it launches; `print` shows shares and sources."""

    hidden: Quantity
    """Time of messages that pass behind other parts."""

    def __init__(self, launched: Sequence[Kernel], machine: Machine, program: Software) -> None:
        """The kernels of a pass, on a machine, by a program that has attention of its own."""
        super().__init__(kernels.expected(launched, machine, program.attention))
        self.hidden = NO_TIME
        self._launched, self._machine, self._program = launched, machine, program
        self._told: dict[str, tuple[Origin, ...]] = {}

    @cached_property
    def origins(self) -> dict[str, tuple[Origin, ...]]:
        """What the time of each part is made of, as far as it is measured."""
        rates = kernels.rates(self._launched, self._machine, self._program.attention)
        return {kind: tuple(map(_rate, each)) for kind, each in rates.items()} | self._told

    @property
    def total(self) -> Quantity:
        """Time of the pass: its parts, one after the other, less what is hidden."""
        return quantity(sum(part.m_as("s") for part in self.values()), "s") - self.hidden

    def seconds(self, counted: float = 1.0) -> tuple[dict[str, float], float]:
        """The parts, and what is hidden of them, in seconds for each of what the pass counts."""
        parts = {name: time.m_as("s") / counted for name, time in self.items()}
        return parts, self.hidden.m_as("s") / counted

    def share(self, part: str) -> Quantity:
        """A part's time over that of the pass."""
        return (self[part] / self.total).to("")

    def rows(self, title: str) -> list[tuple[str, ...]]:
        """The table under its titles: parts, times, shares, and what they are made of."""
        rows: list[tuple[str, ...]] = [(title, "expected", "share", "made of")]
        for part, time in self.items():
            made_of = ", ".join(map(str, self.origins.get(part, ())))
            rows.append((part, str(time), f"{self.share(part).to('%'):.3g}", made_of))
        if self.hidden > NO_TIME:
            rows.append(("hidden", f"−{self.hidden}", "", ""))
        return [*rows, ("sum", str(self.total), "", "")]

    def __str__(self) -> str:
        return "\n".join(columns(self.rows("")))

    def add(self, part: str, time: Quantity, told: Origin) -> None:
        """More time of a part, and what this is made of."""
        self[part] = self.get(part, NO_TIME) + time
        self._told[part] = (*self._told.get(part, ()), told)

    def add_messages(
        self, part: str, count: Any, operation: str, size: Any, devices: Any, beyond: bool = False
    ) -> None:
        """So many collectives of so many bytes; one device alone sends nothing.

        An array of sizes makes an array of times, and the last of them is what is told. Of an array
        of devices nothing is told, and what was not measured of some is NaN.

        Those of large messages may go `beyond` the devices that measurements reach: there they take
        as long as among these, since bandwidth no longer falls and latency is a small part.
        """
        if getattr(devices, "ndim", 0):
            each = of_each(partial(_message, self._machine, operation, beyond), size, devices)
            self[part] = self.get(part, NO_TIME) + quantity(count * each, "s")
            return
        if devices == 1:
            return
        machine = self._machine
        among = _reached(machine, operation, devices) if beyond else devices
        sizes = [quantity(float(each), "byte") for each in getattr(size, "flat", [size])]
        found = [collectives.time(operation, sent, among, machine) for sent in sizes]
        used = dict.fromkeys(curve.machine for curve in found[-1].measured)
        others = [key for key in used if key != machine.key]
        like = f" as on {', '.join(machines.get(each).name for each in others)}" if others else ""
        if among < devices:
            like += f" as among {among} devices, not {devices}"
        sources = tuple(dict.fromkeys(curve.source for curve in found[-1].measured))
        told = f"{found[-1].needed} {MESSAGES[operation]} of {sizes[-1]}{like}"
        times = [each.needed.m_as("s") for each in found]
        time = quantity(times if getattr(size, "ndim", 0) else times[0], "s")
        self.add(part, count * time, Origin(told, sources))

    def add_host(self, sequences: Any) -> None:
        """The time that the program itself takes for a step of so many sequences."""
        for name, count in (("step", 1.0), ("sequence", sequences)):
            if (record := self._program.records.get(name)) is not None:
                told = Origin(f"{record.quantity} a {name}", (record.provenance.source,))
                self.add("host", count * record.quantity, told)

    def add_rates_not_sustained(self, time: Quantity, experts: bool) -> None:
        """What the program takes beyond this time of kernels and messages at their best."""
        name = "sustained_experts" if experts else "sustained"
        if (record := self._program.records.get(name)) is not None:
            told = Origin(f"{record.quantity} sustained", (record.provenance.source,))
            self.add(NOT_SUSTAINED, (1 / record.quantity - 1) * time, told)


NOT_SUSTAINED = "rates not sustained"
MESSAGES = {
    "all_reduce": "a sum",
    "all_gather": "a gathering",
    "reduce_scatter": "a reduction",
    "all_to_all": "an exchange",
}


def _reached(machine: Machine, operation: str, devices: int) -> int:
    """So many devices, or as many full domains as measurements reach, where these are fewer."""
    reach, domain = curves.farthest(operation), machine.domain
    return devices if devices <= max(reach, domain) else reach // domain * domain


@lru_cache(maxsize=2**14)
def _message(machine: Machine, operation: str, beyond: bool, size: float, devices: float) -> float:
    """Seconds of one message of a layout; NaN where nothing was measured that is like it."""
    count = int(devices)
    if count == 1:
        return 0.0
    among = _reached(machine, operation, count) if beyond else count
    try:
        found = collectives.time(operation, quantity(size, "byte"), among, machine)
    except InputError:  # devices that do not fill their domains
        return math.nan
    return math.nan if found.expected is None else found.expected.m_as("s")


def _rate(rate: Quantity) -> Origin:
    assert rate.provenance is not None
    return Origin(str(rate), (rate.provenance.source,))


def if_measured(make: Callable[[], Parts], *given: Any) -> Callable[[], Parts | str]:
    """The same, with the sentence of a rate that was not measured, or of given arrays, instead.

    >>> from calc import machines, models
    >>> launched = kernels.step(models.get("llama-3-8b"), 1, 1000)
    >>> made = if_measured(lambda: Parts(launched, machines.get("l4"), UNKNOWN))
    >>> made()[:36]
    'the bandwidth of memory, copy was no'
    """

    def made() -> Parts | str:
        if any(getattr(each, "ndim", 0) for each in given):
            return ONE_POINT
        try:
            return make()
        except NotMeasured as missing:
            return str(missing)

    return made


ONE_POINT = "an expectation is made of one point; ask for the one that is meant"


@dataclass(frozen=True)
class Tokens:
    """What a pass of serving does: sequences that write a token each, and prompts that are read."""

    writing: Any = 0.0
    """Sequences that write a token each: a number, or an array for as many passes."""
    context: float = 0.0
    """Tokens that each of them has in its cache."""
    reading: Any = 0.0
    """Tokens of prompts that are read: a number, or an array for as many passes."""
    prompt: float = 1.0
    """Tokens of each of these prompts."""
    drafted: float = 0.0
    """Drafted tokens that are checked beside the one that each sequence writes."""


def serving_pass(
    model: Transformer,
    machine: Machine,
    tokens: Tokens,
    devices: int = 1,
    replicas: int = 1,
    experts: int = 1,
    dtype: str = "bf16",
    weight_size: QuantityLike = kernels.TWO_BYTES,
    kv_size: Quantity = kernels.TWO_BYTES,
    program: Software = UNKNOWN,
    shared_caches: bool = False,
) -> Parts:
    """A pass of serving: its kernels, its messages, and the time of the software itself.

    Each of the `replicas` (DP) has its own sequences, and cuts matrices for its devices (TP), which
    add up their results twice a layer. Experts are shared out to as many devices as `experts` says
    (EP), beside DP by an exchange there and back; without DP all devices have all tokens, and the
    sums of TP add up their experts' results too. Slices beyond the heads of keys and values hold
    copies of the caches, or share them out, and exchange queries and results among them.

    >>> from calc import machines, models
    >>> dgx = machines.get("dgx-h100")
    >>> print(serving_pass(models.get("llama-3-70b"), dgx, Tokens(32, 1100), devices=4).total)
    18.67 ms
    """
    slices, each = devices // replicas, replicas
    writing, reading = tokens.writing / each, tokens.reading / each
    sizes = dtype, weight_size, kv_size
    launched = kernels.step(
        *(model, writing, tokens.context, reading, tokens.prompt, slices),
        *(*sizes, experts, shared_caches, tokens.drafted),
    )
    parts = Parts(launched, machine, program)
    computed = writing * (1 + tokens.drafted) + reading
    vector = computed * 2 * model.width.m_as("")  # of all tokens, two bytes a number
    sums: float = model.blocks
    if replicas > 1 and experts > 1 and model.active_experts is not None:
        routed = sum(each.layers for each in model.matrices if each.part == "router")
        copies = model.active_experts.m_as("") / slices
        parts.add_messages("experts", 2 * routed, "all_to_all", vector * copies, experts)
        sums -= routed
    parts.add_messages("tensor", sums, "all_reduce", vector, slices)
    if shared_caches and largest(writing):
        attended = transformer.attended_per_token(model).m_as("byte/token") / 2  # one way
        among = max(1, slices // model.cache_heads)
        times, held = 2 * model.caching_layers, writing * attended / slices
        parts.add_messages("caches", times, "all_to_all", held, among)
    best = parts.total
    parts.add_host(writing)
    parts.add_rates_not_sustained(best, model.experts is not None)
    return parts


def training_step(
    model: Transformer,
    machine: Machine,
    length: float,
    sequences: Any,
    *,
    data: Any = 1,
    tensor: Any = 1,
    pipeline: Any = 1,
    microbatches: Any = 1.0,
    gathers: Any = 1.0,
    reductions: Any = 1.0,
    optimizer_shards: Any = 1,
    contexts: Any = 1,
    experts: Any = 1,
    sharers: Any = None,
    virtual_stages: Any = 1,
    bubble: Any = None,
    recomputed: float = 0.0,
    frozen: bool = False,
    trained: float = 1.0,
    dtype: str = "bf16",
    program: Software = UNKNOWN,
) -> Parts:
    """A step of training on each device: kernels of all microbatches, bubble, messages, optimizer.

    `data` copies (DP) have `tensor` slices (TP) and `pipeline` stages (PP) each, with so many
    `virtual_stages` of a device; sequences are cut for `contexts` devices (CP), and experts shared
    out to `experts` (EP). Slices do two sums a block and microbatch. What devices of DP and CP
    hold alike is gathered and reduced so often in a step among all of them, or among `sharers`, and
    the optimizer's states are in so many shards. The `bubble` is what a pipeline waits over what it
    works, that of 1F1B where none is given. Of the forward pass `recomputed` runs twice. Where the
    weights are `frozen`, adapters of so many of their parameters are `trained`. Counts may be
    arrays, for as many layouts, of which each different kernel and message is asked for once.

    >>> from calc import machines, models
    >>> model, dgx = models.get("llama-3-8b"), machines.get("dgx-h100")
    >>> found = training_step(model, dgx, 8192, 1, data=8, gathers=2, optimizer_shards=8)
    >>> print(found.total)
    650.1 ms
    """
    tokens = length * sequences / contexts

    (each, slices, among), places = different(sequences / contexts, tensor, experts)
    step = kernels.training_step(model, length, each, slices, dtype, recomputed, among, frozen)
    parts = Parts(step, machine, program)
    stages = pipeline * virtual_stages
    fullest = virtual_stages * ceiling(model.layers.m_as("") / stages) / model.layers.m_as("")
    for kind, time in parts.items():
        alone = time if places is None else time[places]
        parts[kind] = alone * (microbatches * fullest)
    compute = parts.total
    if largest(pipeline) > 1:
        usual = (pipeline - 1) / (virtual_stages * microbatches)
        parts["bubble"] = compute * (usual if bubble is None else bubble)
    vectors = tokens * 2 * model.width.m_as("")
    layers = model.layers.m_as("") * fullest * microbatches
    blocks = model.blocks * fullest * microbatches
    parts.add_messages("tensor", 2 * blocks, "all_reduce", vectors, tensor)
    if "tensor" in parts:
        parts.hidden += program.hides_tensor * parts["tensor"]
    if largest(contexts) > 1:
        # A ring of keys and values, whose steps pass behind those of attention.
        each = transformer.kv_cache_per_token(model).m_as("byte/token") / model.layers.m_as("")
        kept = transformer.kept_context(kernels.reaching(model, length), length).m_as("")
        held = each * kept * sequences
        among = where(contexts > 1, contexts * tensor, 1)
        parts.add_messages("context", 3 * layers, "all_gather", held, among)
        parts.hidden = parts.hidden + _shorter(parts["context"], parts["attention"])
    if model.active_experts is not None:  # each device of TP sends its own share of the tokens
        sent = vectors / tensor * model.active_experts.m_as("")
        routed = layers * model.layers_with("experts") / model.layers.m_as("")
        parts.add_messages("experts", 4 * routed, "all_to_all", sent, experts)
    alike = data * contexts  # devices that hold the same, but for experts
    sharing = alike if sharers is None else sharers
    updated = 0.0
    for held, apart in _states(model, experts):
        state, members = 2 * held / pipeline, maximum(1, alike // apart)
        shared = maximum(1, sharing // apart)
        # All slices send at once, each through its own port: as one message of all of them.
        together = tensor * minimum(apart, alike)
        group = where(members > 1, shared * together, 1)
        kept = state * where(gathers > 1, 1.0, trained)  # sharded weights, or what has changed
        new = state * trained
        parts.add_messages("data", gathers, "all_gather", kept, group, beyond=True)
        parts.add_messages("data", reductions, "reduce_scatter", new, group, beyond=True)
        # Groups of hybrid sharding add up what each has reduced.
        apart_groups = where(shared < members, members * together, 1)
        parts.add_messages("data", 1, "all_reduce", new, apart_groups, beyond=True)
        slices = maximum(together, apart)
        updated += trained * held / (pipeline * slices * maximum(1, optimizer_shards // apart))
    if "data" in parts:
        parts.hidden = parts.hidden + _shorter(parts["data"], program.hides_data * compute)
    parts["optimizer"] = (quantity(STATE_TRAFFIC * updated, "byte") / machine.memory_reached).to(
        "s"
    )
    parts.add_rates_not_sustained(parts.total, model.experts is not None)
    return parts


def _shorter(one: Quantity, other: Quantity) -> Quantity:
    return quantity(minimum(one.m_as("s"), other.m_as("s")), "s")


def _states(model: Transformer, experts: Any) -> list[tuple[float, Any]]:
    """Parameters that devices hold alike, and those of experts, which so many share out."""
    inside = model.expert_parameters.m_as("param")
    outside = model.parameters.m_as("param") - inside
    return [(outside, 1), (inside, experts)] if inside else [(outside, 1)]
