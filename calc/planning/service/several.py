"""Services on several machines side by side, ranked by what all of them have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from calc.catalog import intervals, machines as known_machines
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import as_list
from calc.core.errors import InputError
from calc.core.report import Answer, Table, common_first, values
from calc.planning.comparing.compare import prices_of
from calc.planning.plan_nouns import Limits, Load, Prices
from calc.planning.plan_report import counted, indistinct
from calc.planning.service.asked import PAID, seconds
from calc.planning.service.service_plan import ServicePlan
from calc.planning.service.service_planner import plan_service

EXPECTED, BOUND = "what is expected", "what published peaks allow at best"


@dataclass(frozen=True, eq=False, repr=False)
class ServicePlans(Answer):
    """Plans of one service, the first rank first; `print` shows them.

    `ranked_by` says what is compared: the cost of a token, or else devices, as expected of all, or,
    where nothing is expected of one, at the best that published peaks allow all of them.
    """

    _SENTENCES = (("assumptions", "Assumed"),)

    plans: tuple[ServicePlan, ...]
    refused: Mapping[str, str]
    """Machines that serve no request within the limits, and why."""

    @property
    def ranked_by(self) -> str:
        """Return what ranks them."""
        return f"{'cost' if self._priced else 'devices'}, {EXPECTED if self._expected else BOUND}"

    @cached_property
    def _expected(self) -> bool:
        return all(plan.basis != intervals.PEAKS for plan in self.plans)

    @cached_property
    def _priced(self) -> bool:
        return all(plan.price is not None for plan in self.plans)

    def value(self, plan: ServicePlan) -> float:
        """Return what ranks a plan: devices, as expected or at best, and their cost an hour."""
        devices = plan.devices if self._expected else plan.least_devices
        return devices * (plan.price.m_as("USD/h") if self._priced and plan.price else 1.0)

    @property
    def answer(self) -> str:
        best = self.plans[0]
        return f"{best.service.setup.machine.name} is first by {self.ranked_by}: {best.answer}"

    @property
    def stands_on(self) -> str:
        bases = dict.fromkeys(plan.stands_on.partition("; ")[2] for plan in self.plans)
        return "; ".join(filter(None, [counted(self.plans), *bases]))

    @property
    def chosen(self) -> list[str]:
        return self._of_all("chosen")

    @property
    def caveats(self) -> list[str]:
        bound = [
            f"{plan.service.setup.machine.name}: {plan.stands_on}."
            for plan in self.plans
            if plan.basis == intervals.PEAKS
        ]
        ranked = "cost_per_token" if self._priced else "devices"
        alike = indistinct([plan.interval.get(ranked) for plan in self.plans])
        refused = (f"{name}: {why}." for name, why in self.refused.items())
        return [*alike, *bound, *self._of_all("caveats"), *refused]

    def _of_all(self, name: str) -> list[str]:
        """Sentences of all plans, what all say first."""
        names = [plan.service.setup.machine.name for plan in self.plans]
        sentences = [getattr(plan, name) for plan in self.plans]
        return common_first(list(zip(names, sentences, strict=True)))

    @cached_property
    def tables(self) -> list[Table]:
        return [Table(list(self._lines()))]

    def _lines(self) -> Iterator[tuple[str, ...]]:
        yield "", "machine", "basis", "devices", "at least", "cost", "design", "TTFT", "TPOT"
        for rank, plan in enumerate(self.plans, 1):
            ends = plan.around.get("devices")
            around = f" ({ends.told(str(plan.devices))})" if ends else ""
            yield (
                str(rank),
                plan.service.setup.machine.key,
                plan.basis,
                f"{plan.devices}{around}",
                str(plan.least_devices),
                "–" if plan.cost_per_token is None else str(plan.cost_per_token),
                str(plan.design),
                *(seconds(time.m_as("s")) for time in (plan.ttft, plan.tpot)),
            )

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "rank": rank,
                "machine": plan.service.setup.machine.key,
                **values(plan, "basis devices least_devices ttft tpot"),
                **values(plan, " ".join(PAID)),
                "interval": {name: around.facts for name, around in plan.around.items()},
                "design": str(plan.design),
            }
            for rank, plan in enumerate(self.plans, 1)
        ]

    @cached_property
    def facts(self) -> dict[str, object]:
        return {
            "rows": self.rows(),
            **values(self, "ranked_by refused assumptions"),
            **self.headline,
        }

    def _assumptions(self) -> Iterator[str]:
        yield from self._of_all("assumptions")


def plan_services(
    model: Transformer | str,
    machines: Iterable[Machine | Accelerator | Path | str],
    load: Load,
    limits: Limits,
    *,
    prices: Prices = Prices(),
    **asked: Any,
) -> ServicePlans:
    """`plan_service` for several machines, ranked by what is known of all of them.

    A price is one for all, or of each machine by its key; all else is as in `plan_service`.

    >>> plans = plan_services("llama-3-8b", ["h100", "l40s"], Load(5, prompt=1000, generated=200),
    ...                       Limits("1 s", "50 ms"), pools="mixed")
    >>> [plan.devices for plan in plans.plans], plans.ranked_by
    ([1, 2], 'devices, what is expected')
    """
    places = [known_machines.of(machine) for machine in as_list("machines", machines)]
    plans: list[ServicePlan] = []
    refused: dict[str, str] = {}
    for host, paid in zip(places, prices_of(prices.price, places), strict=True):
        try:
            here = replace(prices, price=paid)
            plans.append(plan_service(model, host, load, limits, prices=here, **asked))
        except InputError as error:
            if host is places[-1] and not plans:
                raise
            refused[host.name] = str(error)
    unranked = ServicePlans(tuple(plans), refused)
    return ServicePlans(tuple(sorted(plans, key=unranked.value)), refused)
