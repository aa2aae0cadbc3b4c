"""A plan of a service: its pools, what requests meet and cost, and how it is printed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from calc.catalog import engines, intervals
from calc.catalog.intervals import cuts
from calc.core.arrays import numpy
from calc.core.report import Table, values
from calc.planning import drawing, files
from calc.planning.assumptions import not_to_be_had
from calc.planning.report import chosen_formats
from calc.planning.service import reasons, tables
from calc.planning.service.deployment import Deployment
from calc.planning.service.planned import Planned
from calc.steps import device_memory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 40  # of a curve


@dataclass(frozen=True, eq=False, repr=False)
class ServicePlan(Planned):
    """The pools of a service, what its requests meet, and what it costs; `print` shows it.

    `load` is by the closed form, from the times of steps that are expected; `design.run` is the
    simulation that decided. `least` and `most` are the closed form at published rates, with all
    parts of a step at once and with none.
    """

    _SENTENCES = (
        ("why_not_others", "Why not another design"),
        ("what_would_change", "What would change it"),
        ("assumptions", "Assumed"),
    )

    @property
    def answer(self) -> str:
        setup = self.service.setup
        ends = self.around.get("devices")
        around = f" ({ends.told(str(self.devices))} at 80%)" if ends else " at least"
        paid = "" if self.cost_per_token is None else f", {self.cost_per_token:.3g}"
        return (
            f"{setup.model.name}: {self.devices}{around} {setup.device.name}, {self.design}{paid}"
        )

    @property
    def stands_on(self) -> str:
        answers = self.design.pools[-1].answers
        if answers.parts is None:
            why = str(answers.expected).partition(": ")[0]
            return f"BOUND ONLY, {intervals.PEAKS}, no overlap: {why}"
        titles = {"devices": "devices", "ttft": "first token", "tpot": "each token"}
        ranges = {title: self.around.get(name) for name, title in titles.items()}
        cut = cuts({"a step": self.step, **ranges})
        return f"{answers.parts.stands_on}{', which are of steps' if self.alike else ''}{cut}"

    @property
    def chosen(self) -> list[str]:
        service, setup = self.service, self.service.setup
        chunk = self.design.pools[-1].replica.chunk
        clauses = [f"steps of {chunk} tokens at most"] if service.chunk is None else []
        if not service.recorded and service.trace.lengths_differ:
            clauses.append("lengths drawn at random")
        return [*clauses, *chosen_formats(setup)]

    @property
    def caveats(self) -> list[str]:
        told = list(not_to_be_had(self.service.setup.device))
        length = math.ceil(self.service.setup.context.magnitude)
        jobs = dict.fromkeys(pool.answers.asked for pool in self.design.pools)
        told += filter(None, (device_memory.of(job, length).doubt for job in jobs))
        if "devices" in self.interval and not math.isfinite(self.interval["devices"][1].magnitude):
            told.append("At the slow end of the 80% no number of these groups keeps the limits.")
        return told

    @cached_property
    def tables(self) -> list[Table]:
        return tables.of(self)

    def rows(self) -> list[dict[str, object]]:
        return list(map(tables.row, self.designs))

    @cached_property
    def facts(self) -> dict[str, object]:
        return {
            "rows": self.rows(),
            "design": str(self.design),
            **values(self, "devices least_devices ttft tpot"),
            "closed_form": self.load,
            **values(
                self, "most_requests throughput cost_per_token energy_per_token carbon_per_token"
            ),
            "basis": self.basis,
            "step": None if self.step is None else self.step.facts,
            "interval": {name: found.facts for name, found in self.around.items()},
            **self.headline,
            **values(self, "why_not_others what_would_change assumptions"),
        }

    @cached_property
    def why_not_others(self) -> tuple[str, ...]:
        """Return why the other groups and pools lose, a sentence each."""
        return tuple(reasons.why_not_others(self))

    @cached_property
    def what_would_change(self) -> tuple[str, ...]:
        """Return what would make it another answer, a sentence each, by the closed form."""
        return tuple(reasons.what_would_change(self))

    def _assumptions(self) -> Iterator[str]:
        return reasons.assumptions(self)

    def draw(self) -> Figure:
        """A figure of matplotlib: both times against the rate, by the closed form, with limits."""
        service, design = self.service, self.design
        rates = numpy.linspace(0.02, 1.25, POINTS) * max(design.most, service.rate)
        loads, *others = (
            [paced.at_rate(float(rate)).load for rate in rates]
            for paced in (design, *map(design.at_pace, self.paces))
        )
        shown = (("ttft", "First token (s)", 1.0), ("tpot", "Each token (ms)", 1e3))
        panels = [
            drawing.Panel(
                f"{title}, {100 * service.percentile:g} %",
                [scale * getattr(load, name) for load in loads],
                scale * getattr(service, name),
                None if design.simulated is None else scale * design.simulated[place],
                [[scale * getattr(load, name) for load in paced] for paced in others],
            )
            for place, (name, title, scale) in enumerate(shown)
        ]
        return drawing.panels(f"{service.setup.model.name}: {design}", rates, service.rate, panels)

    def deployment(self, engine: str) -> Deployment:
        """The commands that start these servers with an engine: "vllm", "sglang 0.5.10", "trtllm".

        >>> from calc import Limits, Load, plan_service
        >>> plan = plan_service("llama-3-1-8b", "h100", Load(10, prompt=1000, generated=200),
        ...                     Limits("1 s", "50 ms"), pools="mixed")
        >>> plan.deployment("vllm").commands[0][:43]
        'vllm serve meta-llama/Llama-3.1-8B-Instruct'
        """
        own = engines.starting_as(engine, self.service.setup.software.title())
        return Deployment(self.design, self.answer, self.given, own)

    def to_toml(self) -> str:
        setup = self.service.setup
        return files.options_text({**self.given, "model": setup.model, "hardware": setup.machine})

    def __repr__(self) -> str:
        setup = self.service.setup
        return f"<{setup.model.name} served by {self.devices} {setup.device.name}: {self.design}>"
