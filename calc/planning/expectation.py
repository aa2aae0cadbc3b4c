"""What a setup is expected to take: its kernels at measured rates, and its messages as measured.

One point at a time: each kernel is one shape. Where a rate was not measured there is no
expectation, and the sentence that says which rate is missing stands in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from calc import collectives, cost, inference, kernels
from calc.core.units import Quantity, quantity
from calc.machines import NotMeasured
from calc.planning.setup import A_TOKEN, Setup

Parts = dict[str, Quantity]
OWN_TIME = "software"


@dataclass(frozen=True)
class Expectation:
    """Times, rates and costs that a program is expected to reach, and the parts of its passes."""

    setup: Setup
    reading: Parts
    """The pass that reads all prompts, kind by kind of what it launches."""
    writing: Parts
    """The pass that writes a token of each sequence."""

    @property
    def time_to_first_token(self) -> Quantity:
        """Time of the pass that reads all prompts of the batch."""
        return _sum(self.reading)

    @property
    def time_per_token(self) -> Quantity:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return _sum(self.writing)

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
        """Energy of a token that is written; None where the device's power is unpublished."""
        setup = self.setup
        if not setup.device.publishes("tdp"):
            return None
        each: Quantity = cost.energy_per_token(setup.devices, setup.device.tdp, self.throughput)
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
    parts = kernels.expected(launched, machine, software.attention)
    if devices > 1:
        size = 2 * (writing + reading) * model.width * quantity(1, "byte")
        sums = collectives.time("all_reduce", size, devices, machine)
        if sums.expected is None:
            raise NotMeasured(sums.missing)
        parts["links"] = 2 * model.layers * sums.expected
    if software.key:
        parts[OWN_TIME] = software.own_time(_sum(parts), writing, model.experts is not None)
    return parts


def _sum(parts: Parts) -> Quantity:
    return quantity(sum(part.m_as("s") for part in parts.values()), "s")
