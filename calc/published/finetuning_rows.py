"""Fine-tuning as others measured it on one device, beside what `calc.finetuning` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from calc.core.records import DATA, read_toml
from calc.core.units import Quantity, quantity
from calc.steps import finetuning
from calc.steps.finetuning import Adapters
from calc.steps.job import ALL, Batch, Job

FILE = DATA / "published" / "finetuning.toml"
KEPT = ("recipe", "loss", "gradients", "host")  # what the memory of a run depends on besides


@dataclass(frozen=True)
class Tuning:
    """One run: what it was, and its peak of memory and tokens per second where they are given."""

    id: str
    software: str
    source: str
    job: Job
    batch: Batch
    kept: Mapping[str, Any]
    """Options of `calc.finetuning.memory`."""
    memory: Quantity
    throughput: Quantity | None
    note: str

    @property
    def predicted_memory(self) -> Quantity:
        """The peak that calc says."""
        job = self.job
        total = finetuning.memory(job.model, job.trained, self.batch, **self.kept).total
        return total.to(self.memory.units)

    @property
    def memory_error(self) -> Quantity:
        """The share predicted beyond what was measured: below zero where it is too little."""
        return (self.predicted_memory / self.memory - 1).to("%")

    @property
    def predicted_throughput(self) -> Quantity:
        """Tokens per second that are expected by measured rates of kernels."""
        step = finetuning.step(self.job, self.batch)
        assert step.expected is not None
        rate = step.tokens / step.expected
        return rate.to("token/s")

    @property
    def throughput_error(self) -> Quantity | None:
        """The share predicted beyond what was measured; None where no rate was."""
        if self.throughput is None:
            return None
        return (self.predicted_throughput / self.throughput - 1).to("%")


@cache
def runs() -> tuple[Tuning, ...]:
    """All rows, in the order of the file.

    >>> [run] = [run for run in runs() if run.id == "torchtune-recomputed"]
    >>> print(run.memory, run.predicted_memory)
    24.9 GiB 24.62 GiB
    """
    return tuple(map(_run, read_toml(FILE)["finetuning"]))


def _run(row: Mapping[str, Any]) -> Tuning:
    of_adapters = {name: row[name] for name in ("method", "rank", "targets") if name in row}
    trained = ALL if row["method"] == "full" else Adapters(**of_adapters)
    return Tuning(
        row["id"],
        row["software"],
        row["source"],
        Job.of(row["model"], row["device"], trained=trained),
        Batch(row["context"], row["sequences"], row.get("recomputation", "full")),
        {name: row[name] for name in KEPT if name in row},
        quantity(row["memory"]),
        quantity(row["throughput"]) if "throughput" in row else None,
        row.get("note", ""),
    )
