"""Fine-tuning as others measured it on one device, beside what `calc.finetuning` says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from calc.core.records import DATA, read_toml
from calc.core.units import Quantity, quantity
from calc.steps import finetuning

FILE = DATA / "published" / "finetuning.toml"
ABOUT = ("id", "device", "software", "source", "note", "memory", "throughput")
ONLY_MEMORY = ("recipe", "loss", "gradients", "host")  # what a step's time does not depend on here


@dataclass(frozen=True)
class Tuning:
    """One run: what it was, and its peak of memory and tokens per second where they are given."""

    id: str
    device: str
    software: str
    source: str
    settings: dict[str, Any]
    """The arguments of `calc.finetuning.memory`."""
    memory: Quantity
    throughput: Quantity | None
    note: str

    @property
    def predicted_memory(self) -> Quantity:
        """The peak that calc says."""
        return finetuning.memory(**self.settings).total.to(self.memory.units)

    @property
    def memory_error(self) -> Quantity:
        """How far that is from what was measured: below zero where too little was predicted."""
        error: Quantity = (self.predicted_memory / self.memory - 1).to("%")
        return error

    @property
    def predicted_throughput(self) -> Quantity:
        """Tokens per second that are expected by measured rates of kernels."""
        settings = {k: v for k, v in self.settings.items() if k not in ONLY_MEMORY}
        step = finetuning.step(device=self.device, **settings)
        rate: Quantity = step.tokens / cast(Quantity, step.expected)
        return rate.to("token/s")

    @property
    def throughput_error(self) -> Quantity | None:
        """How far that is from what was measured; None where no rate was."""
        if self.throughput is None:
            return None
        error: Quantity = (self.predicted_throughput / self.throughput - 1).to("%")
        return error


@cache
def runs() -> tuple[Tuning, ...]:
    """All rows, in the order of the file.

    >>> [run] = [each for each in runs() if each.id == "torchtune-recomputed"]
    >>> print(run.memory, run.predicted_memory)
    24.9 GiB 24.62 GiB
    """
    found: Any = read_toml(FILE)
    return tuple(_run(table) for table in found["finetuning"])


def _run(table: dict[str, Any]) -> Tuning:
    return Tuning(
        table["id"],
        table["device"],
        table["software"],
        table["source"],
        {name: value for name, value in table.items() if name not in ABOUT},
        quantity(table["memory"]),
        quantity(table["throughput"]) if "throughput" in table else None,
        table.get("note", ""),
    )
