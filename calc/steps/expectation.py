"""The expectation of a pass or a step on a machine, in parts whose times have sources.

Kernels follow one another, each at the rate that was measured of its kind; messages take what was
measured of them, less what the software hides; and the software adds its own time. A rate that was
not measured is an error that names it; of many layouts of training at once, it is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, TypeAlias

from calc.catalog import constants, engines, hardware, intervals, kernel_shares, machines
from calc.catalog.expert_exchanges import WAYS, Exchange
from calc.catalog.intervals import Around, Interval
from calc.catalog.kernel_shares import SOURCE, Surface
from calc.catalog.machines import NO_TIME, Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import RECURRENT
from calc.catalog.software import OTHERS, UNKNOWN, Software
from calc.core.arrays import Number, Truth
from calc.core.elementwise import (
    at,
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
from calc.core.units import Quantity, quantity
from calc.laws.experts import experts_used
from calc.laws.offloading import found_experts, split_step_time
from calc.laws.roofline import StepTime
from calc.networks import transformer
from calc.steps import communication, curves, device_memory, device_power, kernels
from calc.steps.job import BYTE, SECOND, Batch, Job, Layout, Tokens, reaching
from calc.steps.measured import Kernel, different_rates, exchange, rates_of

PASSES = 3  # of computation, as many as a forward pass: that and a backward pass of twice the work
STATE_TRAFFIC = 28  # bytes of a parameter in an Adam step: states and weights read and written


@dataclass(frozen=True)
class Origin:
    """The origin of a part's time: a rate, or a time, and the sources that have it."""

    rate: str
    sources: tuple[str, ...]
    """Keys of references.bib."""

    def __str__(self) -> str:
        return f"{self.rate} [{', '.join(self.sources)}]"


Telling: TypeAlias = Callable[[], tuple[Origin, tuple[str, ...]]]
"""What says of what a time is made, and of messages, like those of which machines they are."""


@dataclass(frozen=True)
class Message:
    """Collectives of one size among so many devices, or of arrays of layouts."""

    part: str
    operation: str
    size: Number
    devices: Any
    beyond: bool


@dataclass(frozen=True)
class Made:
    """The rates and messages that the times of a pass are made of."""

    machine: Machine
    program: Software
    rates: tuple[tuple[str, Quantity | Surface], ...] = ()
    """Rates of kernels, each with the kind of these."""
    as_if_dense: bool = False
    said: tuple[tuple[str, Telling], ...] = ()
    """What else parts are made of, put into words where somebody asks."""
    messages: tuple[Message, ...] = ()
    """Messages of arrays of layouts, of which nothing is told."""
    like: tuple[str, bool] | None = None
    """The work, and whether the model is a mixture, of published rows like it."""


class Parts(Fixed[str, Quantity], Reported):  # type: ignore[misc]  # hashed as no mapping is
    """The times of a pass by kind of what it launches; `print` shows shares and sources."""

    hidden: Quantity
    """Time of messages that pass behind other parts."""
    made: Made

    def __init__(self, times: Mapping[str, Quantity], hidden: Quantity, made: Made) -> None:
        super().__init__(times)
        vars(self).update(hidden=hidden, made=made)

    def at(self, index: int) -> Parts:
        """Return those of one of an array of layouts, without what takes it no time."""
        account = Account(self.made)
        times = {name: at(time.m_as("s"), index) for name, time in self.items()}
        account.times |= {name: time for name, time in times.items() if time}
        account.hidden = at(self.hidden.m_as("s"), index)
        for message in self.made.messages:
            if (one := at(message, index)).devices > 1:
                account.say_message(one)
        return account.parts(self.made.like)

    def as_rows_of(self, work: str, mixture: bool) -> Parts:
        """Return them as like published rows of other work, of mixtures or not."""
        return Parts(self, self.hidden, replace(self.made, like=(work, mixture)))

    @cached_property
    def _rates(self) -> dict[str, tuple[Quantity | Surface, ...]]:
        return different_rates(self.made.rates)

    @property
    def origins(self) -> dict[str, tuple[Origin, ...]]:
        """Return what the time of each part is made of, as far as it is measured."""
        origins: dict[str, tuple[Origin, ...]] = {}
        for part, origin, _ in self._said:
            origins[part] = (*origins.get(part, ()), origin)
        return {kind: tuple(map(_rate, rates)) for kind, rates in self._rates.items()} | origins

    @cached_property
    def _said(self) -> list[tuple[str, Origin, tuple[str, ...]]]:
        return [(part, *telling()) for part, telling in self.made.said]

    @cached_property
    def borrowed(self) -> tuple[str, ...]:
        """The rates of kernels that are not the device's own, as clauses."""
        rates = [rate for several in self._rates.values() for rate in several]
        this_device = self.made.machine.device.key
        others = {rate.device: None for rate in rates if isinstance(rate, Surface)}
        likely = [rate for rate in rates if isinstance(rate, Quantity) and machines.is_likely(rate)]
        clauses = [self._as_on(device) for device in others if device != this_device]
        clauses += dict.fromkeys(
            f"kernels of {rate.program} {rate.version}, since those of {rate.instead_of} contradict"
            " what was measured beside them"
            for rate in rates
            if isinstance(rate, Surface) and rate.instead_of
        )
        if likely:
            clauses.append(f"{len(likely)} of {len(rates)} rates as usual shares of its peaks")
        if self.made.as_if_dense:
            clauses.append(AS_IF_DENSE)
        return tuple(clauses)

    def _as_on(self, key: str) -> str:
        """Say whose kernels count: of a device that was measured itself, those of a lesser one."""
        device, other = self.made.machine.device, hardware.get(key)
        lesser = device.outdoes(other, other.usual_dtype) and device.measured_as != key
        if lesser and device.key in kernel_shares.devices():
            return f"kernels no slower than on {key}, which has less of everything"
        return f"kernels as on {key}"

    @property
    def kin(self) -> str:
        """Return what other devices some rates are of, as a clause; "" where all are its own."""
        elsewhere = dict.fromkeys(name for *_, names in self._said for name in names)
        return ", ".join([*self.borrowed, *(f"messages as on {name}" for name in elsewhere)])

    @property
    def basis(self) -> str:
        """Return what the rates are: measured on this device, or of its kin."""
        return intervals.KIN if self.kin else intervals.MEASURED

    @property
    def stands_on(self) -> str:
        """The basis in a line: whose rates, with which software, how far off rows like it were."""
        surfaces = [rate for several in self._rates.values() for rate in several]
        versions: dict[str, set[str]] = {}
        for surface in surfaces:
            if isinstance(surface, Surface):
                versions.setdefault(surface.program, set()).add(surface.version)
        program = self.made.program.measured(versions)
        whose = f" of {self.made.machine.name}" if not self.kin else f" ({self.kin})"
        alike = f"; {self.alike}" if self.alike is not None else ""
        return f"{self.basis}{whose} with {program}{alike}"

    @property
    def filled(self) -> tuple[str, ...]:
        """Return what was taken where rates were not measured, in a clause each."""
        program = self.made.program
        others = f"{program.name} keeps of its rates what others usually do"
        return (*self.borrowed, *((others,) if program.fitted_on == OTHERS else ()))

    @cached_property
    def alike(self) -> Interval | None:
        """Return how far published rows like it are off."""
        if self.made.like is None:
            return None
        work, mixture = self.made.like
        return intervals.interval_of(work, self.made.program.key, mixture, filled=bool(self.filled))

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

    @cached_property
    def tables(self) -> list[Table]:
        return [Table(self.rows(""))]


class Account:
    """The seconds of a pass while they are added up, and what each part is made of."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.times: dict[str, Any] = {}
        self.hidden: Number = 0.0
        self._said: list[tuple[str, Telling]] = []
        self._messages: list[Message] = []

    @classmethod
    def of_kernels(cls, launched: Sequence[Kernel], machine: Machine, program: Software) -> Account:
        """Begin with the kernels of a pass on a machine, by a program with attention of its own."""
        reached = rates_of(machine, program)
        timed = [(kernel.kind, *kernel.timed(reached)) for kernel in launched]
        used = tuple((kind, rate) for kind, _, rates in timed for rate in rates)
        dense = any(each.chooses and each.as_if_dense(reached) for each in launched)
        account = cls(Made(machine, program, used, dense))
        for kind, time, _ in timed:
            account._add(kind, time)
        return account

    @property
    def total(self) -> Any:
        """Time of all parts until now, one after the other, less what is hidden."""
        return sum(self.times.values()) - self.hidden

    def parts(self, like: tuple[str, bool] | None = None) -> Parts:
        """Return them as they are, like published rows of such work, of mixtures or not."""
        said, messages = tuple(self._said), tuple(self._messages)
        made = replace(self.made, said=said, messages=messages, like=like)
        times = {part: quantity(time, "s") for part, time in self.times.items()}
        return Parts(times, quantity(self.hidden, "s"), made)

    def _add(self, part: str, time: Number) -> None:
        self.times[part] = self.times.get(part, 0.0) + time

    def add(self, part: str, time: Number, telling: Telling) -> None:
        """Add time to a part, and what says of what this is made."""
        self._add(part, time)
        self._said.append((part, telling))

    def add_messages(
        self,
        part: str,
        count: Any,
        operation: str,
        size: Number,
        devices: Any,
        beyond: bool = False,
    ) -> None:
        """Add so many collectives of so many bytes; one device alone sends nothing.

        An array of sizes makes an array of times, and the last of them is what is told. Of an array
        of devices each is told of when it is asked for, and what was not measured of some is NaN.

        Those of large messages may go `beyond` the devices that measurements reach: there they take
        as long as among these, since bandwidth no longer falls and latency is a small part.
        """
        machine, program = self.made.machine, self.made.program
        message = Message(part, operation, size, devices, beyond)
        if getattr(devices, "ndim", 0):
            one = partial(_message, machine, program, operation, beyond)
            self._add(part, count * of_each(one, size, devices))
            self._messages.append(message)
        elif devices > 1:
            among = _among(machine, message)
            one = partial(
                communication.seconds, operation, devices=among, machine=machine, software=program
            )
            self._add(part, count * of_each(one, size))
            self.say_message(message)

    def say_message(self, message: Message) -> None:
        """Keep what the time of a message is made of."""
        telling = partial(_of_message, self.made.machine, self.made.program, message)
        self._said.append((message.part, telling))

    def add_exchange(self, job: Job, load: Tokens) -> None:
        """Tokens on the way to their experts and back, by kernels that were measured, if any were.

        Else each copy is sent by itself, at published bandwidths after a start-up.
        """
        machine, layers, chosen = self.made.machine, job.layers_that_exchange, job.chosen_experts
        among = int(largest(job.layout.experts))
        for way, vectors in zip(WAYS, job.sent_to_experts(load.computed), strict=True):
            if (
                measured := exchange(machine, self.made.program, way, among, load.reads)
            ) is not None:
                domains = curves.domains_of(among, machine)
                copies = communication.crossings(chosen, among, domains, measured.each)
                each: Number = of_each(measured.time, vectors.m_as("byte") * copies)
                telling = partial(_of_exchange, layers, measured, machine)
                self.add("experts", layers * each, telling)
                continue
            start = constants.latency_expert_exchange
            _, time = communication.expert_exchange(machine, vectors * chosen, among)
            started = partial(of_rate, start, "of start-up")
            self.add("experts", (layers * time).m_as("s"), started)

    def add_host(self, sequences: Any, model: Transformer) -> None:
        """The time that the program itself takes for a step of so many sequences.

        Of a program that works ahead of devices what is longer than their step shows.
        """
        program, devices = self.made.program, self.total
        records = program.records
        mixture = model.experts is not None and "step_experts" in records
        step = "step_experts" if mixture else "step"
        for name, count, each in ((step, 1.0, "a step"), ("sequence", sequences, "a sequence")):
            if (record := records.get(name)) is not None:
                time = record.quantity
                self.add("host", (count * time).m_as("s"), partial(of_rate, time, each))
        if program.hides_host and "host" in self.times:
            self.times["host"] = maximum(self.times["host"] - devices, 0.0)
            if not largest(self.times["host"]):
                del self.times["host"]

    def add_split(self, job: Job, load: Tokens) -> None:
        """Add what lies in the host's memory: its processor reads it, or the link sends it.

        In steps of many tokens the weights are sent, once for each piece of a prompt, and the
        device multiplies by them; in others the host does, at what it reaches of its bandwidth.
        """
        split, machine, program = job.split, self.made.machine, self.made.program
        assert split is not None
        if job.streams(load):
            if not machine.publishes("host_link"):
                raise NotMeasured(
                    f"the bandwidth between {machine.device.name} and its host is not published,"
                    " so that nothing is expected of weights that are sent over it"
                )
            sent, link = job.streamed(load), machine.host_link * program.link_share
            words = f"of its link, {program.link_share:.0%} of {machine.host_link}"
            self.add("sent by host", (sent / link).m_as("s"), partial(of_rate, link, words))
            self._add_ssd(job, load)
            return
        read, reached = read_on_host(job, load), split.host.bandwidth
        if not split.host.measured:
            reached = reached * program.host_share
        time = split_step_time(NO_TIME, read, reached)
        words = "of the host's memory"
        self.add("host's memory", time.m_as("s"), partial(of_rate, reached, words, SPLIT_SOURCE))
        self._add_ssd(job, load)

    def _add_ssd(self, job: Job, load: Tokens) -> None:
        """Add what the host reads from its SSD before."""
        assert job.split is not None
        if (ssd := job.split.host.ssd) is not None and job.split.resident < 1:
            time = (read_from_ssd(job, load) / ssd).m_as("s")
            self.add("host's SSD", time, partial(of_rate, ssd, "of the host's SSD"))

    def pass_on(self, layout: Layout, vectors: Number) -> Any:
        """Add what stages send to the next: each slice its part of two vectors of each token.

        They are the hidden state and the residual, as engines pass them on, gathered by slices
        again; their time is returned. Devices that no machine joins use their own links.
        """
        machine, part, slices = self.made.machine, "pipeline", layout.tensor
        sent = 2 * vectors / slices
        if (link := machine.ring) is not None:
            time = (layout.pipeline - 1) * sent / link.m_as("byte/s")
            self.add(part, time, partial(of_rate, link, "of each link"))
            return self.times[part]
        inside, across = layout.hops(machine.domain)
        pair, fabrics = 2, 2 * machine.domain  # each of which sends the others what it has
        self.add_messages(part, inside, "all_gather", pair * sent, pair if inside else 1)
        self.add_messages(part, across, "all_gather", fabrics * sent, fabrics if across else 1)
        self.add_messages(part, layout.pipeline - 1, "all_gather", slices * sent, slices)
        return self.times[part]

    def wait_for_stages(
        self, job: Job, launched: Sequence[Kernel], vectors: Number, count: Number, follow: bool
    ) -> None:
        """Make of the pass of one batch that of so many, which fill the stages of a pipeline.

        Each is in another stage, and begins again when it has passed them all; or they `follow`
        one another through them once.
        """
        layout, layers, work = job.layout, job.model.layers, self.total
        # In their order: the last digit of a sum over a set would change from process to process.
        stages, kinds = layout.pipeline, dict.fromkeys(kernel.kind for kernel in launched)
        reached = rates_of(self.made.machine, self.made.program)
        ends = {
            kernel.name: kernel.timed(reached)[0]
            for kernel in launched
            if kernel.name in AT_THE_END
        }
        end = sum(ends.values()) / sum(self.times[kind] for kind in kinds)
        full = int(job.layers_of_a_stage) / layers
        last = max(0.0, 1 - (stages - 1) * full)
        slowest = work * maximum(full * (1 - end), last * (1 - end) + end)
        self.times |= {part: time * (count / stages) for part, time in self.times.items()}
        alone = work + self.pass_on(layout, vectors)
        whole = alone + (count - 1) * slowest if follow else maximum(alone, count * slowest)
        self.times["bubble"] = whole - self.total

    def add_rates_not_sustained(self, time: Number, model: Transformer, reads: Any = False) -> None:
        """Add what the program takes beyond this time of kernels and messages at best."""
        name = "sustained" if model.experts is None else "sustained_experts"
        if reads and "sustained_prompts" in self.made.program.records:
            name = "sustained_prompts"
        if is_unfused(model) and "sustained_unfused" in self.made.program.records:
            name = "sustained_unfused"
        if (record := self.made.program.records.get(name)) is not None:
            share, sustained = record.quantity, partial(of_rate, record.quantity, "sustained")
            self.add(NOT_SUSTAINED, (1 / share.m_as("") - 1) * time, sustained)

    def add_cap(self, cap: Quantity, launched: Sequence[Kernel]) -> None:
        """Add what takes longer under a cap on the power of devices: all but reading memory."""
        machine, taken = self.made.machine, self.total
        moved: Number = 0.0
        worked: Number = 0.0
        for kernel in launched:
            bytes_of_one = kernel.traffic if kernel.moved is None else kernel.moved
            moved = moved + kernel.launches * (bytes_of_one / machine.device.memory_bandwidth).m_as(
                "s"
            )
            if machine.device.is_rated(kernel.dtype):
                peak = machine.device.peak(kernel.dtype)
                worked = worked + kernel.launches * (kernel.operations / peak).m_as("s")
        factor = device_power.slowdown(machine, cap, moved / taken, worked / taken)
        self.add(CAPPED, (factor - 1) * taken, partial(of_rate, cap, "at most", MEASURED_CAPS))


CAPPED, MEASURED_CAPS = "power cap", "qwen38-mtp"
AT_THE_END = ("vocabulary", "softmax of logits")  # kernels of the last stage alone
NOT_SUSTAINED = "rates not sustained"
AS_IF_DENSE = "unmeasured sparse attention at the rates of dense"
MESSAGES = {
    "all_reduce": "a sum",
    "all_gather": "a gathering",
    "reduce_scatter": "a reduction",
    "all_to_all": "an exchange",
}


def _among(machine: Machine, message: Message) -> int:
    """Return its devices, or of those beyond measurements as many full domains as these reach."""
    devices, reach = message.devices, max(curves.farthest(message.operation), machine.domain)
    far = message.beyond and devices > reach
    return reach // machine.domain * machine.domain if far else devices


@lru_cache(maxsize=2**14)
def _message(
    machine: Machine, program: Software, operation: str, beyond: bool, size: float, devices: float
) -> float:
    """Seconds of one message of a layout; NaN where nothing was measured that is like it."""
    among = _among(machine, Message("", operation, size, int(devices), beyond))
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


def of_rate(rate: Quantity, words: str, source: str = "") -> tuple[Origin, tuple[str, ...]]:
    """Return the origin of a time that is made of this rate, of a source unless it has its own.

    >>> print(of_rate(quantity("450 GB/s"), "of a link", "nvidia")[0])
    450 GB/s of a link [nvidia]
    """
    origin = source if rate.provenance is None else rate.provenance.source
    return Origin(f"{rate} {words}", (origin,)), ()


def _of_exchange(
    layers: int, measured: Exchange, machine: Machine
) -> tuple[Origin, tuple[str, ...]]:
    alone = measured.device == machine.device.key
    return Origin(f"{layers} {measured}", (SOURCE,)), () if alone else (
        hardware.get(measured.device).name,
    )


def _of_message(
    machine: Machine, program: Software, message: Message
) -> tuple[Origin, tuple[str, ...]]:
    among, devices = _among(machine, message), message.devices
    last = getattr(message.size, "flat", [message.size])[-1] * BYTE
    message_time = communication.time(message.operation, last, among, machine, program)
    fewer = f" as among {among} devices, not {devices}" if among < devices else ""
    sentence = (
        f"{message_time.needed} {MESSAGES[message.operation]} of {last}{message_time.by}{fewer}"
    )
    return Origin(sentence, message_time.sources), tuple(message_time.elsewhere)


@dataclass(frozen=True)
class Missing:
    """The reason why nothing is expected, in place of what is."""

    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason


SPLIT_SOURCE = "llama-cpp-cpu-moe"
FEW, ROWS = 256, (1, 4, 16, 64, 128)  # tokens of prompts for which others of fewer are looked at
NO_MACHINE = Missing("a device alone has no measured rates: give a machine of calc.machines")
ONE_POINT = Missing("an expectation is made of one point; ask for the one that is meant")


@dataclass(frozen=True)
class Step(StepTime):
    """The time of a step: its bounds at published rates, and what is expected at measured ones."""

    expectation: Parts | Missing = NO_MACHINE
    program: str = ""
    """Whose own time is in what is expected, or that none's is."""

    @classmethod
    def of(
        cls, bounds: StepTime, expectation: Parts | Missing, software: Software = UNKNOWN
    ) -> Step:
        """The bounds of a step beside what is expected of it, with a program's own time."""
        amounts = bounds.operations, bounds.peak, bounds.traffic, bounds.tokens
        return cls(bounds.parts, *amounts, expectation, software.title())

    def at(self, index: int) -> Step:
        """Return that of one of an array of layouts, without what takes it no time."""
        times = {name: at(time, index) for name, time in self.parts.items()}
        parts = {name: time for name, time in times.items() if time.magnitude}
        operations, peak = at(self.operations, index), at(self.peak, index)
        traffic, tokens = at(self.traffic, index), at(self.tokens, index)
        expected = self.expectation
        one = expected.at(index) if isinstance(expected, Parts) else expected
        return Step(parts, operations, peak, traffic, tokens, one, self.program)

    @property
    def expected(self) -> Quantity | None:
        """Return what it is expected to take on its machine; None without a measured rate."""
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
        return None if self.around is None else self.around.ends

    @property
    def not_expected(self) -> str:
        """Return why nothing is expected."""
        return self.expectation.reason if isinstance(self.expectation, Missing) else ""

    @property
    def _rows(self) -> dict[str, str]:
        rows = super()._rows
        if self.expected is not None:
            rows["expected"] = f"{self.expected}, with {self.program}"
            if self.around is not None:
                rows["80 % interval"] = self.around.told()
        elif self.expectation != NO_MACHINE:
            rows["not expected"] = self.not_expected
        return rows


def read_on_host(job: Job, load: Tokens) -> Quantity:
    """Bytes that a pass reads of what the host holds: weights, and caches of whole layers.

    >>> from calc.splits import Host, Split
    >>> split = Split(Host.read("96 GB DDR5-5600"), experts=25)
    >>> job = Job.of("gpt-oss-120b", "rtx-4090", software="llama.cpp", split=split)
    >>> print(read_on_host(job, Tokens(writing=1, context=1000)).to("GB"))
    4.977 GB
    """
    split = job.split
    if split is None:
        return quantity(0, "byte")
    read = split.read(job.weights, load.computed)
    if split.layers and load.writes:
        cache = transformer.decode_bytes(job.model, load.context, job.formats.kv) * load.writing
        read = read + cache * (split.layers / job.model.layers)
    return read


def read_from_ssd(job: Job, load: Tokens, even: bool = False) -> Quantity:
    """Bytes of experts that a pass reads from the host's SSD, since its memory dropped them.

    A piece of a prompt meets almost all experts, of which memory has its share; single tokens find
    more there, unless the routing is `even`.

    >>> from calc.splits import Host, Split
    >>> split = Split(Host.read("64 GB DDR5-5600, 7 GB/s SSD"), experts=36, resident=0.5)
    >>> job = Job.of("gpt-oss-120b", "rtx-4090", software="llama.cpp", split=split)
    >>> one = Tokens(writing=1, context=1000)
    >>> print(read_from_ssd(job, one).to("GB"), read_from_ssd(job, one, even=True).to("GB"))
    1.465 GB 3.583 GB
    """
    split = job.split
    if split is None or split.resident == 1:
        return quantity(0, "byte")
    if job.streams(load):
        pieces: Number = job.pieces(load)
        met = split.read(job.weights, load.computed / pieces, of_experts=True) * pieces
        return met * (1 - split.resident)
    power = 1 if even else job.software.found_power
    hits = found_experts(split.resident, power)
    return split.read(job.weights, load.computed, of_experts=True) * (1 - hits)


def if_measured(make: Callable[[], Parts], *arguments: object) -> Parts | Missing:
    """Make it, or say why not: a rate that was not measured, or arrays of what is given.

    >>> job = Job.of("llama-3-8b", "dgx-spark", Layout(tensor=2))
    >>> made = if_measured(lambda: serving_pass(job, Tokens(writing=1, context=1000)))
    >>> str(made)[:43]
    'all_reduce across the domains of NVIDIA DGX'
    """
    if any(getattr(argument, "ndim", 0) for argument in arguments):
        return ONE_POINT
    try:
        return make()
    except NotMeasured as missing:
        return Missing(str(missing))


def of_kernels(
    launched: Sequence[Kernel],
    machine: Machine,
    exchanged: Number = 0,
    among: int = 1,
    exchanges: int = 1,
    program: Software = UNKNOWN,
) -> Parts:
    """Kernels one after the other, and exchanges of so many bytes among devices, if any.

    >>> from calc import machines
    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> launched = kernels.step(job, Tokens(writing=1, context=1000))
    >>> sorted(of_kernels(launched, machines.get("dgx-h100")))
    ['cache', 'gemm', 'memory']
    """
    account = Account.of_kernels(launched, machine, program)
    each = exchanged / exchanges
    account.add_messages("links", exchanges, "all_to_all", each, among, beyond=exchanges > 1)
    return account.parts()


def serving_pass(job: Job, tokens: Tokens, piece: float = 0.0) -> Parts:
    """A pass of serving: its kernels, its messages, and the time of the software itself.

    Slices (TP) add up their results once a block. Where copies of the model (DP) share out experts
    (EP), tokens are sent to them and their results back, by kernels made for it; without DP all
    devices have all tokens, and the sums of TP add up their experts' results too. Slices beyond the
    heads of keys and values hold copies of the caches, as engines do; where these do not fit, they
    share the caches out, and exchange queries and results.

    Stages (PP) are filled by as many batches at once, which share the sequences, so that each token
    passes all stages while they are filled. Prompts that are read alone stream through them in
    pieces of the program's largest step, or of so many tokens as `piece` says. Stages wait where
    there are fewer batches or pieces than stages, and for the slowest, which has most layers, or
    the output besides.

    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=4))
    >>> print(serving_pass(job, Tokens(writing=32, context=1100)).total)
    18.67 ms
    >>> job = Job.of("llama-3-70b", "dgx-h100", Layout(pipeline=4))
    >>> print(serving_pass(job, Tokens(writing=32, context=1100)).total)
    48.54 ms
    """
    fit: Any = True
    if tokens.writes and job.copies_of_caches > 1:
        fit = holds_copies(job, tokens.writing, tokens.context)
    job = job.with_context(tokens.longest)
    if smallest(fit) == largest(fit):
        parts = _serving_pass(job, tokens, piece, shared_caches=not largest(fit))
        return _no_sooner(parts, job, tokens, piece)
    copied, shared = (_serving_pass(job, tokens, piece, shares) for shares in (False, True))
    times = {
        part: SECOND * where(fit, copied.get(part, NO_TIME).m_as("s"), time.m_as("s"))
        for part, time in shared.items()
    }
    return Parts(times, shared.hidden, shared.made)


def _no_sooner(parts: Parts, job: Job, tokens: Tokens, piece: float) -> Parts:
    """Return the pass of which no part takes less than for a shorter prompt.

    Engines call other kernels for few rows, and some were measured to be slower than those for
    more.
    """
    prompt = tokens.prompt
    if tokens.writes or largest(tokens.before) or not smallest(prompt) == largest(prompt) <= FEW:
        return parts
    times = dict(parts)
    for rows in (rows for rows in ROWS if rows < largest(prompt)):
        shorter = replace(tokens, reading=tokens.reading * (rows / prompt), prompt=rows)
        for part, time in _serving_pass(job, shorter, piece, False).items():
            times[part] = SECOND * maximum(time.m_as("s"), times.get(part, NO_TIME).m_as("s"))
    return Parts(times, parts.hidden, parts.made)


def _serving_pass(job: Job, tokens: Tokens, piece: float, shared_caches: bool) -> Parts:
    model, slices, batch = job.model, job.layout.tensor, tokens
    if staged := job.layout.pipeline > 1:
        count, batch = job.under_way(tokens)
    if staged and not tokens.writes:
        largest_step, _ = engines.largest_step(job.software.key, job.measured_on.device)
        of_one = piece or job.software.piece or largest_step
        count = maximum(ceiling(tokens.reading / job.layout.data / of_one), 1)
        batch = tokens.of_one(count)
    load = batch.of_one(job.layout.data)
    launched = kernels.step(job, batch, shared_caches)
    if job.split is not None:
        launched = [kernels.on_device(kernel, job, batch) for kernel in launched]
    account = Account.of_kernels(launched, job.measured_on, job.software)
    if job.layers_that_exchange:
        account.add_exchange(job, load)
    vectors = load.computed * 2 * model.width
    account.add_messages("tensor", job.sums, "all_reduce", vectors, slices)
    if shared_caches and load.writes:
        among = max(1, slices // model.cache_heads)
        times, sent = 2 * model.caching_layers, load.writing * job.attended_size / slices
        account.add_messages("caches", times, "all_to_all", sent, among)
    if staged:
        account.wait_for_stages(job, launched, vectors, count, follow=not tokens.writes)
    best = account.total
    account.add_host(load.writing, job.model)
    account.add_rates_not_sustained(best, model, tokens.reads)
    if job.split is not None:
        account.add_split(job, load)
        if job.split.resident < 1:
            return account.parts()  # no published rows are like it
        work = intervals.SPLIT_PROMPTS if job.streams(load) else intervals.SPLIT
        return account.parts((work, model.experts is not None))
    if job.power_cap is not None:
        account.add_cap(job.power_cap, launched)
    return account.parts(("serving", model.experts is not None))


def training_step(job: Job, batch: Batch, bubble: Number) -> Parts:
    """A step of training on each device: kernels of all microbatches, bubble, messages, optimizer.

    Slices (TP) do two sums a block and microbatch, forward and backward. What devices of DP and CP
    hold alike is gathered and reduced as often as the stage of ZeRO asks, among all of them or
    among those that share. The `bubble` is what a pipeline waits over what it works; what stages
    hand on passes behind the work of other microbatches. Layouts may be arrays, of which each
    different kernel and message is asked for once.

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
    launched = kernels.training_step(one, replace(batch, sequences=sequences))
    account = Account.of_kernels(launched, machine, program)
    times, fullest = account.times, job.layers_of_a_stage / model.layers
    for kind, time in times.items():
        alone = time if places is None else time[places]
        times[kind] = alone * (microbatches * fullest)
    compute = account.total
    if largest(layout.pipeline) > 1:
        times["bubble"] = compute * bubble
    vectors = length * batch.sequences / layout.context * 2 * model.width
    layers = model.layers * fullest * microbatches
    blocks = model.blocks * fullest * microbatches
    account.add_messages("tensor", 2 * blocks, "all_reduce", vectors, layout.tensor)
    if "tensor" in times:
        account.hidden += minimum(hides_tensor(job) * times["tensor"], times["gemm"])
    if largest(layout.context) > 1:
        # A ring of keys and values, whose steps pass behind those of attention.
        cached = job.with_context(length).cached_of_a_layer(batch).m_as("byte")
        among = where(layout.context > 1, layout.context * layout.tensor, 1)
        account.add_messages("context", 3 * layers, "all_gather", cached, among)
        account.hidden += minimum(times["context"], times["attention"])
    if model.active_experts is not None:  # each device of TP sends its own share of the tokens
        # Across domains a token is sent once to each that it reaches, as dispatchers do.
        domains = ceiling(layout.experts * layout.expert_slices / machine.domain)
        reached = experts_used(domains, 1 / domains, model.active_experts).m_as("")
        copies = where(domains > 1, reached, float(model.active_experts))
        sent = vectors / layout.tensor * copies
        sent = sent * (model.expert_inputs / model.width)
        routed = layers * model.layers_with("experts") / model.layers
        account.add_messages("experts", 4 * routed, "all_to_all", sent, layout.experts)
    updated, share = 0.0, job.trained_share
    gathers, reductions = layout.gathers, layout.reductions
    gathered: Number = 0.0
    for held in layout.held(model):
        state = 2 * held.whole.m_as("param") / layout.pipeline
        kept = state * where(layout.shards("weight"), 1.0, share)  # all, or what has changed
        new = state * share
        before = times.get("data", 0.0)
        account.add_messages("data", gathers, "all_gather", kept, held.group, beyond=True)
        gathered = gathered + times.get("data", 0.0) - before
        account.add_messages("data", reductions, "reduce_scatter", new, held.group, beyond=True)
        account.add_messages("data", 1, "all_reduce", new, held.groups, beyond=True)
        sharers = where(layout.shards("optimizer"), held.sharing, 1)
        updated += new / (2 * held.slices * sharers)
    if "data" in times:
        # What is gathered once a step passes behind the first microbatches' forward passes alone,
        # and what is reduced once behind the last ones' backward passes; where stages are thin,
        # these are as many as there are stages, after which the next thin stage is due.
        room = program.hides_data * compute
        due = where(layout.stages_per_device > 1, layout.pipeline, 1)
        once = minimum(1.0, due / microbatches)
        ahead = 1 / (PASSES + (batch.recomputation == "full"))
        first = minimum(gathered, room * where(layout.shards("weight"), 1.0, ahead * once))
        reduced = times["data"] - gathered
        last = minimum(reduced, room * where(reductions > 1, 1.0, (1 - ahead) * once))
        account.hidden += minimum(first + last, room)
    times["optimizer"] = (STATE_TRAFFIC * updated * BYTE / machine.memory_reached).m_as("s")
    account.add_rates_not_sustained(account.total, model)
    return account.parts(("training", model.experts is not None))


def hides_tensor(job: Job) -> float:
    """The share of TP's messages that its program passes behind products, which FP4 does not let.

    >>> hides_tensor(Job.of("llama-3-70b", "gb200-nvl72", software="megatron"))
    0.875
    """
    return 0.0 if job.formats.dtype == "fp4" else job.software.hides_tensor


def is_unfused(model: Transformer) -> bool:
    """Return whether it is a mixture with sinks or states, for which few kernels exist.

    >>> from calc import models
    >>> is_unfused(models.get("qwen-3-next-80b-a3b"))
    True
    """
    special = "sinks" in model.biases or model.layers_with(*RECURRENT) > 0
    return model.experts is not None and special


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
    held = held * (job.layers_of_a_stage / job.model.layers)
    fit: Truth = held <= float(device_memory.of(job, 1).caches.m_as("byte"))
    return fit
