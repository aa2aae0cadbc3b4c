"""Plan the services of the chapter "Serving", simulate them under other loads, and store both.

    python -m experiments.record_services

Writes calc/data/computed/services.toml, which `calc.derivations.service_under_load` reads: what a
planner and a simulation take seconds for would else be computed wherever the chapter is quoted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import tomli_w

from calc import plan_service
from calc.core.nouns import arguments_of
from calc.core.records import DATA
from calc.core.report import values
from calc.derivations.service_under_load import (
    MACHINES,
    AskedService,
    DesignedService,
    GoodputByLoad,
    ServiceFrontier,
)
from calc.derivations.serving_chapter import OneNode
from calc.planning.service import Design, ServicePlan
from calc.planning.service.design_search import simulated
from calc.planning.setup import layout_text
from experiments import goodput

FILE = DATA / "computed" / "services.toml"
HEADING = """\
# Services as `calc.plan_service` designs them, and their goodput as simulated. Nothing is typed
# here: `python -m experiments.record_services` writes it, and a test computes it again.
# Times in seconds, rates in requests or tokens a second, prices in device hours per Mtoken.

"""


def main() -> None:
    FILE.write_text(HEADING + tomli_w.dumps(services()), encoding="utf-8")


def services() -> dict[str, Any]:
    """Return all that the file holds."""
    plan = planned("dgx-h100")
    pools = planned("dgx-h100", pools="disaggregated").design
    replicas = planned("dgx-h100", pools="mixed").design
    return {
        "devices": {
            "fp8": planned("dgx-h100", weights="fp8", dtype="fp8").devices,
            "cached": planned("dgx-h100", hit_rate=DesignedService.hits).devices,
            "patient": planned("dgx-h100", tpot=DesignedService.patient_tpot).devices,
        },
        "drawn_answer": plan.service.demand.answer,
        "apart": recorded(pools),
        "mixed": recorded(replicas),
        "machines": {key: designed(planned(key)) for key in MACHINES},
        "loads": {
            "pools": [under(pools, rate) for rate in GoodputByLoad.rates],
            "replicas": [under(replicas, rate) for rate in GoodputByLoad.rates],
        },
        "published": {rate.row.id: list(rate.predicted) for rate in goodput.compare()},
    }


@cache
def planned(machine: str, **more: Any) -> ServicePlan:
    """The service on a machine; more is what else is asked of it."""
    asked: dict[str, Any] = {
        "model": OneNode.model,
        "hardware": machine,
        **values(AskedService, "rate prompt ttft tpot"),
        "generated": AskedService.answer,
        "percentile": float(AskedService.percentile.magnitude),
        "software": "vllm",
    }
    return plan_service(**arguments_of(plan_service, asked | more))


def designed(plan: ServicePlan) -> dict[str, Any]:
    """The design that a machine's plan chose, and what a token costs there by the limit on it."""
    return {
        "least_devices": plan.least_devices,
        "throughput": plan.throughput.m_as("token/s"),
        **recorded(plan.design),
        "frontier": plan.frontier(ServiceFrontier.limits).m_as("h/Mtoken").tolist(),
    }


def recorded(design: Design) -> dict[str, Any]:
    """Both times of a design as simulated, and the copies of each of its pools."""
    ttft, tpot = design.simulated or (None, None)
    pools = [
        {"copies": pool.count, "group": layout_text(pool.group), "devices": pool.devices}
        for pool in design.pools
    ]
    return {"ttft": ttft, "tpot": tpot, "pools": pools}


def under(design: Design, rate: float) -> dict[str, float | None]:
    """Requests a second of a design that keep both limits under a load, by both accounts."""
    loaded = design.at_rate(rate)
    run = replace(loaded, pools=tuple(simulated(pool) for pool in loaded.pools))
    return {"rate": rate, "closed_form": run.goodput, "simulated": run.simulated_goodput}


if __name__ == "__main__":
    main()
