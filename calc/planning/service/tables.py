"""The tables of a plan of a service, in text and for programs."""

from __future__ import annotations

from collections.abc import Iterator

from calc.core.report import Table, values
from calc.core.units import quantity
from calc.planning.service.asked import PAID, TIMES, seconds
from calc.planning.service.design import Design
from calc.planning.service.planned import Planned


def of(plan: Planned) -> list[Table]:
    """Return what the service makes of its requests, and a line for each design."""
    return [Table(list(_met(plan))), Table(list(_designs(plan)), "Designs", detail=True)]


def _met(plan: Planned) -> Iterator[tuple[str, ...]]:
    service, simulated = plan.service, plan.design.simulated or (0.0, 0.0)
    demand, at = service.demand, f"{100 * service.percentile:g} %"
    rate = quantity(float(f"{service.rate:.4g}"), "request/s")
    asked = f"{rate}, {_tokens(demand.prompt)} + {_tokens(demand.answer)} tokens"
    yield asked, "limit", "simulated", "80% of rows", "at least"
    for name, title, time in zip(TIMES, ("first token", "each token"), simulated, strict=True):
        taken, limit = seconds(time), seconds(getattr(service, name))
        least = f"≥ {seconds(plan.least_times[name])}"
        yield f"{title}, {at}", limit, taken, _around(plan, name, taken), least
    if (found := plan.design.pools[0].found) is not None:
        yield "prefixes found again", "", f"{sum(found):.0%}", "", ""
    count, least = str(plan.devices), f"{plan.least_devices} at least"
    yield "devices", "", count, _around(plan, "devices", count), least
    yield "busy", "", f"{plan.load.busy:.0%}", "", ""
    yield "batch of a replica", "", f"{plan.load.batch:.3g}", "", ""
    yield "throughput", "", str(plan.throughput), "", ""
    for name, title in PAID.items():
        if (value := getattr(plan, name)) is not None:
            yield title, "", str(value), _around(plan, name, str(value)), ""


def _around(plan: Planned, name: str, told: str) -> str:
    """Both ends in the unit in which the value between them is told."""
    return plan.around[name].told(told) if name in plan.around else ""


def _designs(plan: Planned) -> Iterator[tuple[str, ...]]:
    yield "devices", "design", "chunk", "closed form", "", "simulated", "", "busy"
    for design in plan.designs:
        load, chunk = design.load, str(design.pools[-1].replica.chunk)
        simulated = ("–", "–") if design.simulated is None else map(seconds, design.simulated)
        times = (seconds(load.ttft), seconds(load.tpot), *simulated)
        yield (str(design.devices), str(design), chunk, *times, f"{load.busy:.0%}")


def row(design: Design) -> dict[str, object]:
    """A design with plain keys."""
    pools, load, simulated = design.pools, design.load, design.simulated or (None, None)
    times: dict[str, float | None] = {
        **values(load, "ttft tpot"),
        "simulated_ttft": simulated[0],
        "simulated_tpot": simulated[1],
    }
    return {
        "design": str(design),
        "devices": design.devices,
        "pools": len(pools),
        "replicas": [pool.count for pool in pools],
        **{
            name: [getattr(pool.group, degree) for pool in pools]
            for name, degree in (
                *(("tensor", "tensor"), ("copies", "data")),
                *(("stages", "pipeline"), ("experts", "experts")),
            )
        },
        "chunk": pools[-1].replica.chunk,
        **{name: None if time is None else quantity(time, "s") for name, time in times.items()},
        **values(load, "batch busy"),
        "rate_within_limits": quantity(design.most, "request/s"),
        "preempted": None if design.run is None else design.run.preempted,
    }


def _tokens(count: float) -> str:
    return str(quantity(float(f"{count:.3g}"), ""))
