"""Gains of drafts as others measured them, beside what is expected of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from calc.catalog import machines
from calc.catalog.acceptance import acceptance_of
from calc.core.records import DATA, read_rows
from calc.core.units import quantity
from calc.steps.drafting import Drafting, Drafts, gains
from calc.steps.job import Formats, Job

FILE = DATA / "published" / "drafts.csv"
COLUMNS = (
    *("id", "device", "model", "software", "weights", "batch", "draft"),
    *("drafted", "tokens", "gain", "source"),
)
CONTEXT = 500  # of short prompts and answers of some hundred tokens


@dataclass(frozen=True)
class Pair:
    """One run with drafts and one without, of a batch."""

    row: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.row["id"]

    @property
    def source(self) -> str:
        return self.row["source"]

    @property
    def drafted(self) -> int:
        return int(self.row["drafted"])

    @property
    def gain(self) -> float:
        """Tokens a second with drafts over those without, as measured."""
        return float(self.row["gain"])

    @cached_property
    def job(self) -> Job:
        machine = machines.of(self.row["device"])
        sizes = Formats(machine.device.usual_dtype, quantity(self.row["weights"]))
        return Job.of(self.row["model"], machine, None, sizes, self.row["software"])

    @cached_property
    def drafting(self) -> Drafting:
        """Return its gains, with the tokens of a pass that its source says, if it does."""
        tokens = self.row["tokens"]
        rate = acceptance_of(float(tokens), self.drafted) if tokens else None
        drafts = Drafts(self.row["draft"], acceptance=rate)
        return gains(self.job, drafts, float(self.row["batch"]), CONTEXT)

    @property
    def expected(self) -> float:
        """The gain as expected, of as many drafted tokens."""
        return self.drafting.gains[self.drafted - 1].gain

    @property
    def has_its_sign(self) -> bool:
        """Return whether it pays, or does not, as expected."""
        return (self.gain > 1) == (self.expected > 1)


@cache
def pairs() -> tuple[Pair, ...]:
    """All pairs, in the order of the file.

    >>> len(pairs())
    54
    """
    return tuple(map(Pair, read_rows(FILE, COLUMNS)))


def kept_back() -> tuple[Pair, ...]:
    """Pairs that nothing was fitted to: every other one of llama.cpp, and those of EAGLE."""
    llama = [pair for pair in pairs() if pair.row["software"] == "llama.cpp"]
    return (*llama[1::2], *(pair for pair in pairs() if pair.id.startswith("eagle-h100")))
