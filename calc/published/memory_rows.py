"""Logs of engines on a device's memory, beside what `calc.device_memory` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from calc.catalog import models, software
from calc.catalog.models.weights import unless_said
from calc.core.records import DATA, read_toml
from calc.steps import device_memory
from calc.steps.held_memory import Memory
from calc.steps.job import Formats, Job, Layout

FILE = DATA / "published" / "engine_memory.toml"
SETTINGS = ("utilization", "batched_tokens", "sequences")
PARTS = {"weights": ("weights",), "step": ("largest step", "experts' buffers")}


@dataclass(frozen=True, eq=False)
class Logged:
    """One start of an engine: how it was set, and what its log says, in GiB and counts."""

    id: str
    conditions: Mapping[str, Any]
    """All that stands in the data, by the names that its first comment explains."""
    measured: Mapping[str, float]

    @property
    def fitted(self) -> bool:
        """True where numbers of an engine are fitted to it."""
        return bool(self.conditions.get("fitted", False))

    @property
    def judges(self) -> bool:
        """True where it judges: nothing is fitted to it, and calc has all of the model."""
        return not self.fitted and not self.conditions.get("vision", False)

    @cached_property
    def predicted(self) -> Memory:
        """The memory that calc expects of the same start, however its devices were joined."""
        stated = self.conditions
        model = (
            models.from_shape(name=stated["name"], **stated["shape"])
            if "shape" in stated
            else models.transformer(stated["model"])
        )
        program = software.get(stated["software"])
        weights = stated.get("weights", unless_said(model, program))
        sizes = Formats(weights=weights, kv=stated.get("kv", "bf16"))
        layout = Layout(tensor=stated.get("tensor", 1))
        return device_memory.of(
            Job.of(model, stated["device"], layout, sizes, program),
            stated.get("context", model.context),
            memory=f"{stated['visible']} GiB" if "visible" in stated else None,
            **{name: stated[name] for name in SETTINGS if name in stated},
        )

    def expected(self, name: str) -> float:
        """Return what calc says of something measured, in the same unit."""
        memory = self.predicted
        if name in ("tokens", "sequences"):
            return float(getattr(memory, name))
        if name == "caches":
            return float(memory.caches.m_as("GiB"))
        names = PARTS.get(name, ("outside of torch",))
        return float(sum(part.memory.m_as("GiB") for part in memory.parts if part.name in names))

    def error(self, name: str) -> float:
        """Return how far that is from what was measured, as a share: below zero where too little.

        >>> [row] = [row for row in rows() if row.id == "qwen3-8b-tp1-0.19.0"]
        >>> print(f"{row.error('caches'):+.2%}")
        +0.01%
        """
        return self.expected(name) / float(self.measured[name]) - 1

    @property
    def within(self) -> bool | None:
        """True where what is left for caches lies in the printed ±; None where no log says."""
        memory = self.predicted
        assert memory.error is not None
        if "caches" in self.measured:
            off = abs(self.expected("caches") - self.measured["caches"])
            return bool(off <= memory.error.m_as("GiB"))
        if "tokens" in self.measured:
            return abs(1 - self.measured["tokens"] / memory.tokens) <= memory.tokens_off
        return None


@cache
def rows() -> tuple[Logged, ...]:
    """All rows, in the order of the file.

    >>> rows()[0].measured["tokens"]
    476000
    """
    tables: list[dict[str, Any]] = read_toml(FILE)["memory"]
    return tuple(Logged(table["id"], table, table["measured"]) for table in tables)
