"""What the section "Designing a service" of the chapter "Serving" quotes.

Plans and simulations take seconds: they are recorded by `python -m experiments.record_services`.
"""

from __future__ import annotations

from statistics import median
from typing import ClassVar

from calc import machines, published
from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.quoting import Row, Rows
from calc.derivations.serving import OneNode
from calc.planning.service.goodput import Goodput
from calc.published import conditions

RECORDED = recorded.settings("services.toml")


class AskedService:
    """What is asked: so many requests a second, and limits that 99 % of them keep."""

    rate = quantity("20 request/s")
    prompt = OneNode.prompt
    answer = OneNode.answer
    ttft = quantity("2 s")
    tpot = quantity("50 ms")
    percentile = quantity(99, "%")


MACHINES = ("dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200")


def devices_of(machine: str) -> int:
    """Of the design on a machine, in all its pools."""
    return sum(pool["devices"] for pool in RECORDED["machines"][machine]["pools"])


def paid(machine: str) -> Quantity:
    """Device time of a written token there."""
    throughput = quantity(RECORDED["machines"][machine]["throughput"], "token/s")
    time: Quantity = (devices_of(machine) / throughput).to("h/Mtoken")
    return time


class DesignedService:
    """A service of Llama 3 70B within limits: machines, pools and what else saves devices."""

    _h100s = RECORDED["machines"]["dgx-h100"]
    devices = devices_of("dgx-h100")
    reading, writing = (pool["devices"] for pool in _h100s["pools"])
    mixed = RECORDED["devices"]["mixed"]
    least = _h100s["least_devices"]
    # Requests that are drawn longer than the model's context are cut to it.
    drawn_answer = quantity(RECORDED["drawn_answer"], "token")

    # Problem 6: what saves more, by hand and as planned.
    half_of_all = devices / 2
    half_of_reading = devices - reading / 2
    short_numbers = RECORDED["devices"]["fp8"]
    hits = quantity(50, "%")
    cached = RECORDED["devices"]["cached"]
    patient_tpot = quantity("100 ms")
    patient = RECORDED["devices"]["patient"]

    @classmethod
    def row(cls, key: str) -> Row:
        """A machine: devices, their pools, both times as simulated, and what a token takes."""
        design = RECORDED["machines"][key]
        return (
            machines.get(key).device.key.upper(),
            devices_of(key),
            ", ".join(f"{pool['copies']}×{pool['group']}" for pool in design["pools"]),
            quantity(design["ttft"], "s"),
            quantity(design["tpot"], "s").to("ms"),
            paid(key),
            design["least_devices"],
        )


class GoodputByLoad:
    """The service as two pools, and as replicas that do all, under other loads."""

    rates = (11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
    until = quantity("21 request/s")

    copies = RECORDED["copies"]
    pools: ClassVar[list[dict[str, float]]] = RECORDED["loads"]["pools"]
    replicas: ClassVar[list[dict[str, float]]] = RECORDED["loads"]["replicas"]


def kept(loads: list[dict[str, float]]) -> Quantity:
    """The share of requests that keeps both limits at the service's rate, as simulated."""
    rate = AskedService.rate.m_as("request/s")
    (load,) = (load for load in loads if load["rate"] == rate)
    return quantity(100 * load["simulated"] / rate, "%")


class KeptWithPools:
    """What the two designs keep at the rate of the question, and how far the closed form is off."""

    apart = kept(GoodputByLoad.pools)
    mixed = kept(GoodputByLoad.replicas)
    error = quantity(
        100
        * max(
            abs(load["closed_form"] / (load["simulated"] or 1) - 1)
            for load in (*GoodputByLoad.pools, *GoodputByLoad.replicas)
            if load["rate"] <= GoodputByLoad.until.m_as("request/s")
        ),
        "%",
    )


class ServiceFrontier:
    """Below some limit on the time of a token each millisecond costs more than the last."""

    limits = quantity([16, 18, 20, 22, 25, 30, 35, 40, 50, 70, 100, 140, 200], "ms")
    tight = quantity("20 ms")

    @staticmethod
    def of(key: str) -> Quantity:
        """Device time of a written token by the limit on TPOT."""
        return quantity(RECORDED["machines"][key]["frontier"], "h/Mtoken")

    _of_h100s = of("dgx-h100")
    more_for_tight = (_of_h100s[limits == tight][0] / _of_h100s[limits == AskedService.tpot][0]).to(
        ""
    )


class PublishedGoodput:
    """MLPerf's rates within limits, beside what is planned for the same devices."""

    _rows = tuple(
        Goodput(row, row.measured["output_tokens_per_s"], tuple(RECORDED["published"][row.id]))
        for row in published.rows("serving")
        if row.id in RECORDED["published"]
    )
    count = len(_rows)
    error = quantity(100 * median(abs(error) for row in _rows for error in row.errors), "%")

    @classmethod
    def rows(cls) -> Rows:
        """Devices and scenario; the published rate; errors of the plan for either spread."""
        return [
            (
                f"{conditions.devices(goodput.row)}"
                f" {conditions.machine(goodput.row).device.key.upper()}",
                goodput.scenario,
                quantity(goodput.measured, "token/s"),
                *(quantity(round(100 * error), "%") for error in goodput.errors),
            )
            for goodput in cls._rows
        ]
