"""What a setup is expected to take: its kernels at measured rates, and its messages as measured.

One point at a time: each kernel is one shape. Where a rate was not measured there is no
expectation, and the sentence that says which rate is missing stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from calc.catalog.intervals import Interval
from calc.catalog.machines import NotMeasured
from calc.core.formatting import columns
from calc.core.units import Quantity
from calc.planning import time
from calc.planning.setup import Setup
from calc.steps import inference
from calc.steps.expectation import Parts


@dataclass(frozen=True)
class Expectation:
    """Times, rates and costs that a program is expected to reach, and the parts of its passes.

    Where one pass has a rate that was not measured, what stands on it raises the sentence that
    names the rate; the other pass has its time.
    """

    setup: Setup
    reading: Parts | None
    """The pass that reads all prompts, kind by kind of what it launches."""
    writing: Parts | None
    """The pass that writes a token of each sequence."""
    missing: str = ""
    """Which rate was not measured, where one of the passes is not expected."""

    @property
    def passes(self) -> dict[str, Parts]:
        """The passes that are expected, by what they end with."""
        passes = {"first token": self.reading, "each token": self.writing}
        return {title: parts for title, parts in passes.items() if parts is not None}

    def total(self, parts: Parts | None) -> Quantity:
        """The time of a pass, which was measured."""
        if parts is None:
            raise NotMeasured(self.missing)
        return parts.total

    def get(self, name: str) -> Quantity | None:
        """One of the quantities by its name; None where it stands on what was not measured."""
        try:
            value: Quantity | None = getattr(self, name)
        except NotMeasured:
            return None
        return value

    @property
    def alike(self) -> Interval | None:
        """How far published rows like this are off."""
        parts = self.writing or self.reading
        return None if parts is None else parts.alike

    def interval(self, name: str) -> tuple[Quantity, Quantity] | None:
        """Between what 80 % of rows like this would lie, of one of the quantities by its name."""
        value = self.get(name)
        if value is None or self.alike is None:
            return None
        around = self.alike.around_rate if name == "throughput" else self.alike.around
        return around(value)

    def __str__(self) -> str:
        tables = (columns(parts.rows(title)) for title, parts in self.passes.items())
        return "\n\n".join("\n".join(table) for table in tables)

    @property
    def time_to_first_token(self) -> Quantity:
        """Time of the pass that reads all prompts of the batch."""
        return self.total(self.reading)

    @property
    def time_per_token(self) -> Quantity:
        """Time of the pass that writes the next token of each sequence, the mean of an answer."""
        return self.total(self.writing)

    @cached_property
    def answer_time(self) -> Quantity:
        """Time from the start to the last token."""
        first, token = self.time_to_first_token, self.time_per_token
        return inference.answer_time(first, self.setup.generated, token)

    @property
    def throughput(self) -> Quantity:
        """Tokens that all sequences together write in a second, the reading of prompts included."""
        return self.setup.throughput_of(self.answer_time)

    @property
    def cost_per_token(self) -> Quantity | None:
        """Cost of a token that is written, devices always busy; None where no price was given."""
        return self.setup.cost_of_token(self.throughput)

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a token that is written; None where no power is published."""
        return self.setup.energy_of_token(self.throughput)


def of(setup: Setup) -> Expectation | str:
    """What is expected of one point, or the sentence that says which measured rate is missing."""
    if setup.link is not None and setup.devices > 1:
        return "messages over the link that is given were not measured"
    reading, no_reading = _if_measured(time.expected_prefill, setup)
    writing, no_writing = _if_measured(time.expected_decode, setup)
    missing = no_reading or no_writing
    if reading is None and writing is None:
        return missing
    return Expectation(setup, reading, writing, missing)


def _if_measured(expect: Callable[[Setup], Parts], setup: Setup) -> tuple[Parts | None, str]:
    """A pass, or which rate of it was not measured."""
    try:
        return expect(setup), ""
    except NotMeasured as missing:
        return None, str(missing)
