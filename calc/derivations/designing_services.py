"""What the section "Designing a service" of the chapter "Serving" quotes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

from calc import plan_service
from calc.core.units import Quantity, quantity
from calc.derivations.serving import OneNode
from calc.planning.service import Design, ServicePlan, goodput
from calc.planning.service.search import simulated
from calc.published import conditions


class AskedService:
    """What is asked: so many requests a second, and limits that 99 % of them keep."""

    model = OneNode.model
    rate = quantity("20 request/s")
    prompt = OneNode.prompt
    answer = OneNode.answer
    ttft = quantity("2 s")
    tpot = quantity("50 ms")
    percentile = quantity(99, "%")


@cache
def planned(machine: str, **more: Any) -> ServicePlan:
    """The service on a machine; more is what else is asked of it."""
    asked: dict[str, Any] = {
        "rate": AskedService.rate,
        "prompt": AskedService.prompt,
        "generated": AskedService.answer,
        "ttft": AskedService.ttft,
        "tpot": AskedService.tpot,
        "percentile": float(AskedService.percentile.magnitude),
        "software": "vllm",
    }
    return plan_service(AskedService.model, machine, **(asked | more))


MACHINES = ("dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200")


class DesignedService:
    """A service of Llama 3 70B within limits: machines, pools and what else saves devices."""

    plan = planned("dgx-h100")
    devices = plan.devices
    readers, writers = plan.design.pools
    reading = readers.devices
    writing = writers.devices
    mixed = min(each.devices for each in plan.designs if each.keeps and len(each.pools) == 1)
    least = plan.least_devices
    # Requests that are drawn longer than the model's context are cut to it.
    drawn_answer = quantity(plan.service.demand.answer, "token")

    # Problem 6: what saves more, by hand and as planned.
    half_of_all = devices / 2
    half_of_reading = devices - reading / 2
    short_numbers = planned("dgx-h100", weights="fp8", dtype="fp8").devices
    hits = quantity(50, "%")
    cached = planned("dgx-h100", hit_rate=hits).devices
    patient_tpot = quantity("100 ms")
    patient = planned("dgx-h100", tpot=patient_tpot).devices

    @classmethod
    def row(cls, key: str) -> tuple[Any, ...]:
        """A machine: devices, their pools, both times as simulated, and what a token takes."""
        plan = planned(key)
        return (
            plan.service.setup.device.key.upper(),
            plan.devices,
            ", ".join(f"{pool.count}×{pool.group}" for pool in plan.design.pools),
            plan.ttft.to("s"),
            plan.tpot.to("ms"),
            (plan.devices / plan.throughput).to("h/Mtoken"),
            plan.least_devices,
        )


class GoodputByLoad:
    """The same GPUs as two pools keep the limits for more requests than as replicas that do all."""

    rates = (11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
    until = quantity("24 request/s")

    two_pools = DesignedService.plan.design
    copies = two_pools.devices // DesignedService.readers.group.devices
    _mixed = next(
        each.pools[0]
        for each in DesignedService.plan.designs
        if len(each.pools) == 1 and each.pools[0].group == DesignedService.readers.group
    )
    replicas = Design((replace(_mixed, count=copies),))
    assert replicas.devices == two_pools.devices

    @staticmethod
    def at(design: Design, rate: float) -> Design:
        """A design under a load, simulated."""
        loaded = design.at_rate(rate)
        return replace(loaded, pools=tuple(simulated(each) for each in loaded.pools))

    @classmethod
    @cache
    def points(cls, apart: bool) -> list[Design]:
        """The simulated designs at all rates."""
        design = cls.two_pools if apart else cls.replicas
        return [cls.at(design, each) for each in cls.rates]


def _kept(apart: bool) -> Quantity:
    """The share of requests that keeps both limits at the service's rate, as simulated."""
    rate = AskedService.rate.m_as("request/s")
    found = GoodputByLoad.points(apart)[GoodputByLoad.rates.index(rate)]
    assert found.simulated_goodput is not None
    return quantity(100 * found.simulated_goodput / rate, "%")


class KeptWithPools:
    """What the two designs keep at the rate of the question, and how far the closed form is off."""

    apart = _kept(apart=True)
    mixed = _kept(apart=False)
    error = quantity(
        100
        * max(
            abs(each.goodput / (each.simulated_goodput or 1) - 1)
            for design in (True, False)
            for each in GoodputByLoad.points(design)
            if each.pools[0].service.rate <= GoodputByLoad.until.m_as("request/s")
        ),
        "%",
    )


class ServiceFrontier:
    """Below some limit on the time of a token each millisecond costs more than the last."""

    limits = quantity([16, 18, 20, 22, 25, 30, 35, 40, 50, 70, 100, 140, 200], "ms")
    tight = quantity("20 ms")

    @classmethod
    @cache
    def of(cls, key: str) -> Quantity:
        """Device time of a written token by the limit on TPOT."""
        return planned(key).frontier(cls.limits).to("h/Mtoken")

    _of_h100s = DesignedService.plan.frontier(quantity([20, 50], "ms")).m_as("h/Mtoken")
    more_for_tight = quantity(_of_h100s[0] / _of_h100s[1], "")


class PublishedGoodput:
    """MLPerf's rates within limits, beside what is planned for the same devices."""

    _found = tuple(goodput.compare())
    count = len(_found)
    error = quantity(100 * median(abs(error) for each in _found for error in each.errors), "%")

    @classmethod
    def rows(cls) -> list[tuple[Any, ...]]:
        """Devices and scenario; the published rate; errors of the plan for either spread."""
        return [
            (
                f"{conditions.devices(each.row)} {conditions.machine(each.row).device.key.upper()}",
                each.scenario,
                quantity(each.measured, "token/s"),
                *(quantity(round(100 * error), "%") for error in each.errors),
            )
            for each in cls._found
        ]
