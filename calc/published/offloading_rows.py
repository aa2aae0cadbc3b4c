"""Models split between a card and its host as others ran them, beside what is expected of them.

Rows whose source says what memory the host has are held to that. Of the others each source has a
sweep over splits, whose first row says what the host reaches, as a run of one's own would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from calc.catalog import hardware, machines, software as programs
from calc.catalog.hardware import Accelerator
from calc.core.records import DATA, read_toml
from calc.core.units import Quantity, quantity
from calc.laws.offloading import found_experts
from calc.steps import expectation
from calc.steps.job import Formats, Job, Tokens
from calc.steps.splits import Host, Split

FILE = DATA / "published" / "offloading.toml"
CARDS = DATA / "published" / "cards.toml"
UNSAID = "64 GB at 1 GB/s"


@cache
def cards() -> Mapping[str, Accelerator]:
    """Cards that stand in these rows alone, by their keys.

    >>> print(cards()["rtx-2080"].memory_bandwidth)
    448 GB/s
    """
    return hardware.load(CARDS)


@dataclass(frozen=True)
class Run:
    """A run of llama.cpp with a part of the model in the host's memory, for one sequence."""

    id: str
    row: Mapping[str, Any]

    @property
    def states_host(self) -> bool:
        """Return whether its source says what memory the host has."""
        return "host" in self.row

    @property
    def source(self) -> str:
        return str(self.row["source"])

    @cached_property
    def job(self) -> Job:
        """The job, with a host of whatever bandwidth where its source says none."""
        row, key = self.row, str(self.row["device"])
        machine = machines.of(cards().get(key) or key)
        weights = row["weights"]
        kept = quantity(weights) if weights.endswith("bit") else weights
        sizes = Formats(machine.device.usual_dtype, kept)
        split = Split(
            Host.read(row.get("host", UNSAID)), row.get("experts", 0), row.get("layers", 0)
        )
        return Job.of(row["model"], machine, None, sizes, "llama.cpp", split=split)

    @property
    def time(self) -> Quantity:
        """Time of a token, as measured."""
        return quantity(1 / self.row["tokens_per_s"], "s").to("ms")

    @cached_property
    def expected(self) -> Quantity:
        """Time of a token, as expected."""
        return self.with_host(self.job)

    def with_host(self, job: Job) -> Quantity:
        """Time of a token on a job's host."""
        load = Tokens(writing=1, context=self.row["context"])
        return expectation.serving_pass(job, load).total.to("ms")

    def as_after(self, first: Run) -> Quantity:
        """Time of a token where the first row of the same sweep says what the host reaches."""
        parts = first.with_host(first.job) - first.on_host
        read = expectation.read_on_host(first.job, Tokens(writing=1, context=first.row["context"]))
        assert self.job.split is not None
        reached = (read / (first.time - parts)).to("GB/s")
        host = replace(self.job.split.host, bandwidth=reached, measured=True)
        return self.with_host(replace(self.job, split=replace(self.job.split, host=host)))

    @property
    def on_host(self) -> Quantity:
        """The part of that time in which the host's memory is read."""
        load = Tokens(writing=1, context=self.row["context"])
        return expectation.serving_pass(self.job, load)["host's memory"]

    @property
    def error(self) -> Quantity:
        """The share expected beyond what was measured: below zero where it is too short."""
        return (self.expected / self.time - 1).to("%")

    @property
    def prompt_time(self) -> Quantity | None:
        """Time of a piece of a prompt, as measured; None where none was."""
        rate = self.row.get("prompt_tokens_per_s")
        return None if rate is None else quantity(self.row["piece"] / rate, "s")

    @property
    def expected_prompt(self) -> Quantity:
        """Time of a piece of a prompt, which all that the host holds is sent for."""
        piece = self.row["piece"]
        program = replace(
            self.job.software,
            records={name: r for name, r in self.job.software.records.items() if name != "piece"},
        )
        load = Tokens(reading=piece, prompt=piece)
        return expectation.serving_pass(replace(self.job, software=program), load).total.to("s")


@dataclass(frozen=True)
class Cached:
    """A cache of experts as others ran it: how many it held, and how many of those chosen."""

    id: str
    share: float
    """Share of all experts that are in memory."""
    found: float
    """Share of the experts that tokens chose which are in memory."""
    source: str

    @property
    def error(self) -> float:
        """Return how much more is expected to be found than was."""
        power = programs.get("llama.cpp").found_power
        return float(found_experts(self.share, power).m_as("")) - self.found


@cache
def caches() -> tuple[Cached, ...]:
    """All caches, in the order of the file.

    >>> cache = caches()[0]
    >>> print(f"{cache.found:.0%} {cache.error:+.0%}")
    84% +2%
    """
    names = "id", "share", "found", "source"
    return tuple(Cached(*map(row.__getitem__, names)) for row in read_toml(FILE)["cached"])


@cache
def runs() -> tuple[Run, ...]:
    """All runs, in the order of the file.

    >>> run = runs()[0]
    >>> print(run.time, run.expected)
    27.25 ms 26.17 ms
    """
    return tuple(Run(row["id"], row) for row in read_toml(FILE)["row"])


def sweeps() -> dict[str, list[Run]]:
    """Runs on hosts whose memory is not said, by their sources.

    >>> [len(sweep) for sweep in sweeps().values()]
    [4, 3, 4, 4, 2]
    """
    by_sweep: dict[str, list[Run]] = {}
    for run in runs():
        if not run.states_host:
            by_sweep.setdefault(run.source, []).append(run)
    return by_sweep


def kept_back(runs_known: list[Run]) -> list[Run]:
    """Every other run by its id: those that nothing was fitted to.

    >>> len(kept_back([run for run in runs() if run.states_host]))
    6
    """
    return sorted(runs_known, key=lambda run: run.id)[1::2]
