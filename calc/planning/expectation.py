"""What a setup is expected to take: its kernels at measured rates, and its messages as measured.

One point at a time: each kernel is one shape. Where a rate was not measured there is no
expectation, and the sentence that says which rate is missing stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from calc import collectives, cost, inference, kernels, machines
from calc.collectives import CollectiveTime
from calc.core.formatting import columns
from calc.core.units import Quantity, quantity
from calc.machines import Machine, NotMeasured
from calc.planning.setup import A_TOKEN, Setup
from calc.software import Software

OWN_TIME = "software"


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

    origins: dict[str, tuple[Origin, ...]]
    """What the time of each part is made of."""

    @property
    def total(self) -> Quantity:
        """Time of the pass: its parts, one after the other."""
        return quantity(sum(part.m_as("s") for part in self.values()), "s")

    def share(self, part: str) -> Quantity:
        """The share of the pass that a part takes."""
        share: Quantity = (self[part] / self.total).to("")
        return share

    def rows(self, title: str) -> list[tuple[str, ...]]:
        """The table under its titles: parts, times, shares, and what they are made of."""
        parts = [
            (part, str(time), _percent(self.share(part)), ", ".join(map(str, self.origins[part])))
            for part, time in self.items()
        ]
        return [(title, "expected", "share", "made of"), *parts, ("sum", str(self.total), "", "")]

    def __str__(self) -> str:
        return "\n".join(columns(self.rows("")))


@dataclass(frozen=True)
class Expectation:
    """Times, rates and costs that a program is expected to reach, and the parts of its passes."""

    setup: Setup
    reading: Parts
    """The pass that reads all prompts, kind by kind of what it launches."""
    writing: Parts
    """The pass that writes a token of each sequence."""

    @property
    def passes(self) -> dict[str, Parts]:
        """Both passes, by what they end with."""
        return {"first token": self.reading, "each token": self.writing}

    def __str__(self) -> str:
        tables = (columns(parts.rows(title)) for title, parts in self.passes.items())
        return "\n\n".join("\n".join(table) for table in tables)

    @property
    def time_to_first_token(self) -> Quantity:
        """Time of the pass that reads all prompts of the batch."""
        return self.reading.total

    @property
    def time_per_token(self) -> Quantity:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self.writing.total

    @cached_property
    def answer_time(self) -> Quantity:
        """Time from the start to the last token."""
        first, each = self.time_to_first_token, self.time_per_token
        return inference.answer_time(first, self.setup.generated, each)

    @property
    def throughput(self) -> Quantity:
        """Tokens that all sequences together write in a second, the reading of prompts included."""
        setup = self.setup
        return inference.tokens_per_second(setup.batch, self.answer_time, setup.generated * A_TOKEN)

    @property
    def cost_per_token(self) -> Quantity | None:
        """Cost of a token that is written, devices always busy; None where no price was given."""
        setup = self.setup
        if setup.price is None:
            return None
        each: Quantity = cost.cost_per_token(setup.devices, setup.price, self.throughput)
        return each.to("USD/Mtoken")

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a token that is written; None where no power is published."""
        setup = self.setup
        if setup.power is None:
            return None
        each: Quantity = cost.energy_per_token(setup.devices, setup.power, self.throughput)
        return each.to("J/token")


def of(setup: Setup) -> Expectation | str:
    """What is expected of one point, or the sentence that says which measured rate is missing."""
    prompt, batch = float(setup.prompt.magnitude), float(setup.batch.magnitude)
    context = prompt + float(setup.generated.magnitude) / 2
    try:
        reading = _pass(setup, 0.0, 0.0, batch * prompt, prompt)
        writing = _pass(setup, batch, context, 0.0, 1.0)
    except NotMeasured as missing:
        return str(missing)
    return Expectation(setup, reading, writing)


def _pass(setup: Setup, writing: float, context: float, reading: float, prompt: float) -> Parts:
    """A pass in parts: its kernels, its all-reduces, and the software's own time."""
    model, machine, software = setup.model, setup.machine, setup.software
    devices = int(setup.devices.magnitude)
    launched = kernels.step(
        model,
        writing,
        context,
        reading,
        prompt,
        devices,
        setup.dtype,
        setup.weight_size,
        setup.kv_size,
    )
    parts = Parts(kernels.expected(launched, machine, software.attention))
    parts.origins = {
        kind: tuple(map(_rate, rates))
        for kind, rates in kernels.rates(launched, machine, software.attention).items()
    }
    if devices > 1:
        size = 2 * (writing + reading) * model.width * quantity(1, "byte")
        sums = collectives.time("all_reduce", size, devices, machine)
        parts["links"] = 2 * model.layers * sums.needed
        parts.origins["links"] = (_all_reduce(size, sums, machine),)
    if software.key:
        experts = model.experts is not None
        parts[OWN_TIME] = software.own_time(parts.total, writing, experts)
        parts.origins[OWN_TIME] = tuple(_own(software, experts))
    return parts


def _percent(share: Quantity) -> str:
    return f"{share.to('%'):.3g}"


def _rate(rate: Quantity) -> Origin:
    assert rate.provenance is not None
    return Origin(str(rate), (rate.provenance.source,))


def _all_reduce(size: Quantity, sums: CollectiveTime, machine: Machine) -> Origin:
    """The time of each, with the curves that it comes from."""
    others = {curve.machine for curve in sums.measured} - {machine.key}
    like = f" as on {', '.join(machines.get(other).name for other in others)}" if others else ""
    sources = dict.fromkeys(curve.source for curve in sums.measured)
    return Origin(f"{sums.expected} a sum of {size}{like}", tuple(sources))


def _own(software: Software, experts: bool) -> Iterator[Origin]:
    """The numbers of `own_time`; those that the data lack are nothing."""
    sustained = "sustained_experts" if experts else "sustained"
    for name, title in ((sustained, "sustained"), ("step", "a step"), ("sequence", "a sequence")):
        if (record := software.records.get(name)) is not None:
            yield Origin(f"{title} {record.quantity}", (record.provenance.source,))
