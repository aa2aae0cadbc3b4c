"""What a pass or a step is expected to take on a machine, in parts whose times have sources.

Kernels follow one another, each at the rate that was measured of its kind; messages take what was
measured of them, less what the software hides; and the software adds its own time. A rate that was
not measured is an error that names it; of many layouts of training at once, it is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from calc.catalog import constants, hardware, intervals, machines
from calc.catalog.expert_exchanges import WAYS
from calc.catalog.intervals import Around, Interval
from calc.catalog.kernel_shares import SOURCE, Surface
from calc.catalog.machines import NO_TIME, Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import RECURRENT
from calc.catalog.software import OTHERS, Software
from calc.core.arrays import Number, Truth
from calc.core.elementwise import (
    ceiling,
    different,
    largest,
    maximum,
    minimum,
    of_each,
    smallest,
    where,
)
from calc.core.errors import InputError
from calc.core.fixed import Fixed
from calc.core.report import Reported, Table
from calc.core.units import Quantity
from calc.laws.experts import experts_used
from calc.laws.roofline import StepTime
from calc.networks import transformer
from calc.steps import communication, curves, device_memory, kernels
from calc.steps.job import BYTE, SECOND, Batch, Job, Layout, Tokens, reaching
from calc.steps.kernels import Kernel
from calc.steps.measured import different_rates, exchange

PASSES = 3  # of computation, as many as a forward pass: that and a backward pass of twice the work
STATE_TRAFFIC = 28  # bytes of a parameter in an Adam step: states and weights read and written


@dataclass(frozen=True)
class Origin:
    """What a part's time is made of: a rate, or a time, and the sources that have it."""

    rate: str
    sources: tuple[str, ...]
    """Keys of references.bib."""

    def __str__(self) -> str:
        return f"{self.rate} [{', '.join(self.sources)}]"


class Parts(Fixed[str, Quantity], Reported):
    """The times of a pass by kind of what it launches; `print` shows shares and sources."""

    hidden: Quantity
    """Time of messages that pass behind other parts."""
    like: tuple[str, bool] | None = None
    """The work, and whether the model is a mixture, of published rows like it."""
    _machine: Machine
    _program: Software
    _used: list[tuple[str, Quantity | Surface]]
    _as_if_dense: bool
    _told: dict[str, tuple[Origin, ...]]
    _elsewhere: dict[str, None]

    def __init__(self, launched: Sequence[Kernel], machine: Machine, program: Software) -> None:
        """The kernels of a pass, on a machine, by a program that has attention of its own."""
        super().__init__()
        used: list[tuple[str, Quantity | Surface]] = []
        as_if_dense = False
        for kernel in launched:
            time, rates = kernel.timed(machine, program)
            self._put(kernel.kind, self.get(kernel.kind, NO_TIME) + time)
            used += [(kernel.kind, rate) for rate in rates]
            as_if_dense |= kernel.as_if_dense(machine, program)
        self._say(hidden=NO_TIME, _machine=machine, _program=program, _used=used)
        self._say(_as_if_dense=as_if_dense, _told={}, _elsewhere={})

    def _put(self, part: str, time: Quantity) -> None:
        """Set the time of a part, while a pass is made."""
        dict.__setitem__(self, part, time)

    def _say(self, **said: object) -> None:
        """Set what is said of all parts, while a pass is made."""
        vars(self).update(said)

    @cached_property
    def _rates(self) -> dict[str, tuple[Quantity | Surface, ...]]:
        return different_rates(self._used)

    @property
    def origins(self) -> dict[str, tuple[Origin, ...]]:
        """What the time of each part is made of, as far as it is measured."""
        return {kind: tuple(map(_rate, rates)) for kind, rates in self._rates.items()} | self._told

    @cached_property
    def borrowed(self) -> tuple[str, ...]:
        """The rates of kernels that are not the device's own, as clauses."""
        rates = [rate for several in self._rates.values() for rate in several]
        own = self._machine.device.key
        others = {rate.device: None for rate in rates if isinstance(rate, Surface)}
        likely = [rate for rate in rates if isinstance(rate, Quantity) and machines.is_likely(rate)]
        clauses = [f"kernels as on {device}" for device in others if device != own]
        if likely:
            clauses.append(f"{len(likely)} of {len(rates)} rates as usual shares of its peaks")
        if self._as_if_dense:
            clauses.append(AS_IF_DENSE)
        return tuple(clauses)

    @property
    def kin(self) -> str:
        """Of what other devices some rates are, as a clause; "" where all are its own."""
        return ", ".join([*self.borrowed, *(f"messages as on {name}" for name in self._elsewhere)])

    @property
    def basis(self) -> str:
        """What the rates are: measured on this device, or of its kin."""
        return intervals.KIN if self.kin else intervals.MEASURED

    @property
    def stands_on(self) -> str:
        """The basis in a line: whose rates, with which software, how far off rows like it were."""
        surfaces = [rate for several in self._rates.values() for rate in several]
        versions: dict[str, set[str]] = {}
        for surface in surfaces:
            if isinstance(surface, Surface):
                versions.setdefault(surface.program, set()).add(surface.version)
        program = self._program.measured(versions)
        whose = f" of {self._machine.name}" if not self.kin else f" ({self.kin})"
        alike = f"; {self.alike}" if self.alike is not None else ""
        return f"{self.basis}{whose} with {program}{alike}"

    @property
    def filled(self) -> tuple[str, ...]:
        """What was taken where rates were not measured, in a clause each."""
        others = f"{self._program.name} keeps of its rates what others usually do"
        return (*self.borrowed, *((others,) if self._program.fitted_on == OTHERS else ()))

    @cached_property
    def alike(self) -> Interval | None:
        """How far published rows like it are off."""
        if self.like is None:
            return None
        work, mixture = self.like
        return intervals.of(work, self._program.key, mixture, filled=bool(self.filled))

    @property
    def total(self) -> Quantity:
        """Time of the pass: its parts, one after the other, less what is hidden."""
        seconds: Number = sum(part.m_as("s") for part in self.values())
        return SECOND * seconds - self.hidden

    def around(self, bound: Quantity) -> Around | None:
        """The range of 80 % of published rows like it, cut at a bound; None without such rows."""
        return None if self.alike is None else self.alike.around(self.total, bound)

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

    @property
    def tables(self) -> list[Table]:
        """The one table, without a title."""
        return [Table(self.rows(""))]

    def add(self, part: str, time: Quantity, told: Origin) -> None:
        """More time of a part, and what this is made of."""
        self._put(part, self.get(part, NO_TIME) + time)
        self._told[part] = (*self._told.get(part, ()), told)

    def add_messages(
        self,
        part: str,
        count: Any,
        operation: str,
        size: Number,
        devices: Any,
        beyond: bool = False,
    ) -> None:
        """So many collectives of so many bytes; one device alone sends nothing.

        An array of sizes makes an array of times, and the last of them is what is told. Of an array
        of devices nothing is told, and what was not measured of some is NaN.

        Those of large messages may go `beyond` the devices that measurements reach: there they take
        as long as among these, since bandwidth no longer falls and latency is a small part.
        """
        machine, program = self._machine, self._program
        if getattr(devices, "ndim", 0):
            one = partial(_message, machine, program, operation, beyond)
            times = count * of_each(one, size, devices) * SECOND
            self._put(part, self.get(part, NO_TIME) + times)
            return
        if devices == 1:
            return
        among = _reached(machine, operation, devices) if beyond else devices
        one = partial(
            communication.seconds, operation, devices=among, machine=machine, software=program
        )
        last = getattr(size, "flat", [size])[-1] * BYTE
        message = communication.time(operation, last, among, machine, program)
        self._elsewhere.update(dict.fromkeys(message.elsewhere))
        fewer = f" as among {among} devices, not {devices}" if among < devices else ""
        told = f"{message.needed} {MESSAGES[operation]} of {last}{message.by}{fewer}"
        self.add(part, count * of_each(one, size) * SECOND, Origin(told, message.sources))

    def add_exchange(self, job: Job, load: Tokens) -> None:
        """Tokens on the way to their experts and back, by kernels that were measured, if any were.

        Else each copy is sent by itself, at published bandwidths after a start-up.
        """
        machine, layers, chosen = self._machine, job.layers_that_exchange, job.chosen_experts
        among = int(largest(job.layout.experts))
        for way, vectors in zip(WAYS, job.sent_to_experts(load.computed), strict=True):
            if (own := exchange(machine, self._program, way, among, load.reads)) is not None:
                domains = curves.domains_of(among, machine)
                copies = communication.crossings(chosen, among, domains, own.each)
                each: Number = of_each(own.time, vectors.m_as("byte") * copies)
                self.add("experts", SECOND * (layers * each), Origin(f"{layers} {own}", (SOURCE,)))
                if own.device != machine.device.key:
                    self._elsewhere[hardware.get(own.device).name] = None
                continue
            start = constants.latency_expert_exchange
            assert start.provenance is not None
            made_of = Origin(f"{start} of start-up", (start.provenance.source,))
            _, time = communication.expert_exchange(machine, vectors * chosen, among)
            self.add("experts", layers * time, made_of)

    def add_host(self, sequences: Any) -> None:
        """The time that the program itself takes for a step of so many sequences."""
        for name, count in (("step", 1.0), ("sequence", sequences)):
            if (record := self._program.records.get(name)) is not None:
                origin = Origin(f"{record.quantity} a {name}", (record.provenance.source,))
                self.add("host", count * record.quantity, origin)

    def add_rates_not_sustained(
        self, time: Quantity, model: Transformer, reads: Any = False
    ) -> None:
        """What the program takes beyond this time of kernels and messages at their best."""
        name = "sustained" if model.experts is None else "sustained_experts"
        if reads and "sustained_prompts" in self._program.records:
            name = "sustained_prompts"
        if is_unfused(model) and "sustained_unfused" in self._program.records:
            name = "sustained_unfused"
        if (record := self._program.records.get(name)) is not None:
            origin = Origin(f"{record.quantity} sustained", (record.provenance.source,))
            self.add(NOT_SUSTAINED, (1 / record.quantity - 1) * time, origin)


NOT_SUSTAINED = "rates not sustained"
AS_IF_DENSE = "unmeasured sparse attention at the rates of dense"
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
def _message(
    machine: Machine, program: Software, operation: str, beyond: bool, size: float, devices: float
) -> float:
    """Seconds of one message of a layout; NaN where nothing was measured that is like it."""
    count = int(devices)
    among = _reached(machine, operation, count) if beyond else count
    try:
        return communication.seconds(operation, size, among, machine, program)
    except InputError:  # of devices that do not fill their domains too
        return math.nan


def _rate(rate: Quantity | Surface) -> Origin:
    if isinstance(rate, Surface):
        return Origin(str(rate), (SOURCE,))
    assert rate.provenance is not None
    share = f", {rate.provenance.note.rstrip('.')}" if rate.provenance.kind == "estimate" else ""
    return Origin(f"{rate}{share}", (rate.provenance.source,))


@dataclass(frozen=True)
class Missing:
    """Why nothing is expected, in place of what is."""

    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason


NO_MACHINE = Missing("a device alone has no measured rates: give a machine of calc.machines")
ONE_POINT = Missing("an expectation is made of one point; ask for the one that is meant")


@dataclass(frozen=True)
class Step(StepTime):
    """The time of a step: its bounds at published rates, and what is expected at measured ones."""

    expectation: Parts | Missing = NO_MACHINE
    """The parts at measured rates, or why there are none."""

    @classmethod
    def of(cls, bounds: StepTime, expectation: Parts | Missing) -> Step:
        """The bounds of a step beside what is expected of it."""
        amounts = bounds.operations, bounds.peak, bounds.traffic, bounds.tokens
        return cls(bounds.parts, *amounts, expectation)

    @property
    def expected(self) -> Quantity | None:
        """What it is expected to take on its machine; None where a rate was not measured."""
        return None if self.expected_parts is None else self.expected_parts.total

    @property
    def expected_parts(self) -> Parts | None:
        """The parts of that time, which say what each is made of; None where there are none."""
        return self.expectation if isinstance(self.expectation, Parts) else None

    @property
    def around(self) -> Around | None:
        """The range of 80 % of what is measured; None without rows like it."""
        return None if self.expected_parts is None else self.expected_parts.around(self.lower)

    @property
    def interval(self) -> tuple[Quantity, Quantity] | None:
        """Between what 80 % of what is measured should lie; None where nothing is expected."""
        return None if self.around is None else self.around.ends

    @property
    def not_expected(self) -> str:
        """Why nothing is expected."""
        return self.expectation.reason if isinstance(self.expectation, Missing) else ""

    @property
    def _rows(self) -> dict[str, str]:
        rows = super()._rows
        if self.expected is not None:
            rows["expected"] = str(self.expected)
            if self.around is not None:
                rows["80 % interval"] = self.around.told()
        elif self.expectation != NO_MACHINE:
            rows["not expected"] = self.not_expected
        return rows


def if_measured(make: Callable[[], Parts], *given: object) -> Parts | Missing:
    """Make it, or say why not: a rate that was not measured, or arrays of what is given.

    >>> job = Job.of("llama-3-8b", "dgx-spark", Layout(tensor=2))
    >>> made = if_measured(lambda: serving_pass(job, Tokens(writing=1, context=1000)))
    >>> str(made)[:43]
    'all_reduce across the domains of NVIDIA DGX'
    """
    if any(getattr(argument, "ndim", 0) for argument in given):
        return ONE_POINT
    try:
        return make()
    except NotMeasured as missing:
        return Missing(str(missing))


def serving_pass(job: Job, tokens: Tokens) -> Parts:
    """A pass of serving: its kernels, its messages, and the time of the software itself.

    Slices (TP) add up their results once a block. Where copies of the model (DP) share out experts
    (EP), tokens are sent to them and their results back, by kernels made for it; without DP all
    devices have all tokens, and the sums of TP add up their experts' results too. Slices beyond the
    heads of keys and values hold copies of the caches, as engines do; where these do not fit, they
    share the caches out, and exchange queries and results.

    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=4))
    >>> print(serving_pass(job, Tokens(writing=32, context=1100)).total)
    18.67 ms
    """
    fit: Any = True
    if tokens.writes and job.copies_of_caches > 1:
        fit = holds_copies(job, tokens.writing, tokens.context)
    job = job.with_context(tokens.longest)
    if smallest(fit) == largest(fit):
        return _serving_pass(job, tokens, shared_caches=not largest(fit))
    copied, shared = (_serving_pass(job, tokens, shares) for shares in (False, True))
    for part, time in shared.items():
        seconds = where(fit, copied.get(part, NO_TIME).m_as("s"), time.m_as("s"))
        shared._put(part, seconds * SECOND)
    return shared


def _serving_pass(job: Job, tokens: Tokens, shared_caches: bool) -> Parts:
    model, slices, load = job.model, job.layout.tensor, tokens.of_one(job.layout.data)
    parts = Parts(kernels.step(job, tokens, shared_caches), job.measured_on, job.software)
    if job.layers_that_exchange:
        parts.add_exchange(job, load)
    vectors = load.computed * 2 * model.width
    parts.add_messages("tensor", job.sums, "all_reduce", vectors, slices)
    if shared_caches and load.writes:
        among = max(1, slices // model.cache_heads)
        times, sent = 2 * model.caching_layers, load.writing * job.attended_size / slices
        parts.add_messages("caches", times, "all_to_all", sent, among)
    parts._say(like=("serving", model.experts is not None))
    best = parts.total
    parts.add_host(load.writing)
    parts.add_rates_not_sustained(best, model, tokens.reads)
    return parts


def training_step(job: Job, batch: Batch, bubble: Number) -> Parts:
    """A step of training on each device: kernels of all microbatches, bubble, messages, optimizer.

    Slices (TP) do two sums a block and microbatch, forward and backward. What devices of DP and CP
    hold alike is gathered and reduced as often as the stage of ZeRO asks, among all of them or
    among those that share. The `bubble` is what a pipeline waits over what it works. Layouts may be
    arrays, of which each different kernel and message is asked for once.

    >>> job = Job.of("llama-3-8b", "dgx-h100", Layout(data=8, sharding=1))
    >>> print(training_step(job, Batch(8192), bubble=0).total)
    684.9 ms
    """
    model, machine, layout, program = job.model, job.measured_on, job.layout, job.software
    microbatches, length = layout.microbatches, batch.length
    counts = batch.sequences, layout.tensor, layout.experts, layout.context
    (sequences, tensor, experts, context), places = different(*counts)
    # Of a kernel only slices, experts and parts of a sequence matter.
    one = replace(job, layout=Layout(tensor=tensor, experts=experts, context=context))
    parts = Parts(kernels.training_step(one, replace(batch, sequences=sequences)), machine, program)
    parts._say(like=("training", model.experts is not None))
    fullest = job.layers_of_a_stage / model.layers
    for kind, time in parts.items():
        alone = time if places is None else time[places]
        parts._put(kind, alone * (microbatches * fullest))
    compute = parts.total
    if largest(layout.pipeline) > 1:
        parts._put("bubble", compute * bubble)
    vectors = length * batch.sequences / layout.context * 2 * model.width
    layers = model.layers * fullest * microbatches
    blocks = model.blocks * fullest * microbatches
    parts.add_messages("tensor", 2 * blocks, "all_reduce", vectors, layout.tensor)
    if "tensor" in parts:
        parts._say(
            hidden=parts.hidden + _shorter(hides_tensor(job) * parts["tensor"], parts["gemm"])
        )
    if largest(layout.context) > 1:
        # A ring of keys and values, whose steps pass behind those of attention.
        cached = job.with_context(length).cached_of_a_layer(batch).m_as("byte")
        among = where(layout.context > 1, layout.context * layout.tensor, 1)
        parts.add_messages("context", 3 * layers, "all_gather", cached, among)
        parts._say(hidden=parts.hidden + _shorter(parts["context"], parts["attention"]))
    if model.active_experts is not None:  # each device of TP sends its own share of the tokens
        # Across domains a token is sent once to each that it reaches, as dispatchers do.
        domains = ceiling(layout.experts * layout.expert_slices / machine.domain)
        reached = experts_used(domains, 1 / domains, model.active_experts).m_as("")
        copies = where(domains > 1, reached, float(model.active_experts))
        sent = vectors / layout.tensor * copies
        sent = sent * (model.expert_inputs / model.width)
        routed = layers * model.layers_with("experts") / model.layers
        parts.add_messages("experts", 4 * routed, "all_to_all", sent, layout.experts)
    updated, share = 0.0, job.trained_share
    gathers, reductions = layout.gathers, layout.reductions
    gathered = NO_TIME
    for held in layout.held(model):
        state = 2 * held.whole.m_as("param") / layout.pipeline
        kept = state * where(gathers > 1, 1.0, share)  # sharded weights, or what has changed
        new = state * share
        before = parts.get("data", NO_TIME)
        parts.add_messages("data", gathers, "all_gather", kept, held.group, beyond=True)
        gathered = gathered + parts.get("data", NO_TIME) - before
        parts.add_messages("data", reductions, "reduce_scatter", new, held.group, beyond=True)
        parts.add_messages("data", 1, "all_reduce", new, held.groups, beyond=True)
        sharers = where(layout.shards("optimizer"), held.sharing, 1)
        updated += new / (2 * held.slices * sharers)
    if "data" in parts:
        # What is gathered once a step passes behind the first microbatches' forward passes alone,
        # and what is reduced once behind the last ones' backward passes; where stages are thin,
        # these are as many as there are stages, after which the next thin stage is due.
        room = program.hides_data * compute
        due = where(layout.stages_per_device > 1, layout.pipeline, 1)
        once = minimum(1.0, due / microbatches)
        ahead = 1 / (PASSES + (batch.recomputation == "full"))
        first = _shorter(gathered, room * where(gathers > 1, 1.0, ahead * once))
        reduced = parts["data"] - gathered
        last = _shorter(reduced, room * where(reductions > 1, 1.0, (1 - ahead) * once))
        parts._say(hidden=parts.hidden + _shorter(first + last, room))
    parts._put("optimizer", (STATE_TRAFFIC * updated * BYTE / machine.memory_reached).to("s"))
    parts.add_rates_not_sustained(parts.total, model)
    return parts


def hides_tensor(job: Job) -> float:
    """The share of TP's messages that its program passes behind products, which FP4 does not let.

    >>> hides_tensor(Job.of("llama-3-70b", "gb200-nvl72", software="megatron"))
    0.875
    """
    return 0.0 if job.formats.dtype == "fp4" else job.software.hides_tensor


def is_unfused(model: Transformer) -> bool:
    """Whether it is a mixture whose attention has sinks or states, for which few kernels exist.

    >>> from calc import models
    >>> is_unfused(models.get("qwen-3-next-80b-a3b"))
    True
    """
    special = "sinks" in model.biases or model.layers_with(*RECURRENT) > 0
    return model.experts is not None and special


def _shorter(one: Quantity, other: Quantity) -> Quantity:
    seconds: Number = minimum(one.m_as("s"), other.m_as("s"))
    return SECOND * seconds


def holds_copies(job: Job, sequences: Number, context: Number) -> Truth:
    """Return whether devices hold their caches whole, those that several have the same of too.

    >>> from calc import Layout
    >>> job = Job.of("llama-3-8b", "dgx-h100", Layout(tensor=8))
    >>> print(holds_copies(job, 64, 8192), holds_copies(job, 6400, 8192))
    True False
    """
    model = reaching(job.model, largest(context))
    cache: Number = transformer.kv_cache(model, maximum(context, 1.0), job.formats.kv).m_as("byte")
    held = sequences / job.layout.data * job.copies_of_caches * cache / job.layout.tensor
    fit: Truth = held <= float(device_memory.of(job, 1).caches.m_as("byte"))
    return fit
