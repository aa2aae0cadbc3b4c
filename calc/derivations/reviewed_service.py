"""Claims of the review of a service in the chapter "A service under load"."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from calc import machines, plan_service
from calc.core.nouns import arguments_of
from calc.core.report import values
from calc.core.units import Quantity, quantity
from calc.derivations.bases import Rent
from calc.derivations.by_hand import by_hand, no_hand, row_by_hand
from calc.derivations.cost_and_carbon import Paced
from calc.derivations.deferred import deferred
from calc.derivations.examples import CHAT, DENSE
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, Rows, between
from calc.derivations.service_under_load import AskedService
from calc.derivations.traces import bare
from calc.planning.service import ServicePlan
from calc.planning.service.design_search import simulated
from calc.planning.setup import layout_text
from calc.published import closed_loops

H200, B200 = "dgx-h200", "dgx-b200"
ONE, TWO = "mixed", "disaggregated"  # pools
SEEDED = "counted in a plan whose queues are simulated with a seed"


RATE = quantity("30 request/s")
GROWTH = 0.1
WEIGHTS, SOFTWARE = "fp8", "vllm"


@cache
def planned(machine: str, pools: str, growth: float = 0.0) -> ServicePlan:
    """The fewest devices of a machine in these pools, for a load that has grown so far."""
    asked = {
        "model": DENSE.key,
        "hardware": machine,
        "rate": (1 + growth) * RATE,
        **values(AskedService, "prompt ttft tpot"),
        "generated": AskedService.answer,
        "percentile": float(AskedService.percentile.magnitude),
        "software": SOFTWARE,
        "weights": WEIGHTS,
        "dtype": WEIGHTS,
        "pools": pools,
    }
    return plan_service(**arguments_of(plan_service, asked))


def ends(machine: str, pools: str) -> tuple[int, int]:
    """The devices of a plan if steps are as at either end of their interval."""
    low, high = planned(machine, pools).interval["devices"]
    return round(low.m_as("")), round(high.m_as(""))


def kept(machine: str, pools: str) -> Quantity:
    """The share of requests within both limits when the load has grown and no device has."""
    rate = (1 + GROWTH) * RATE.m_as("request/s")
    loaded = bare(planned(machine, pools)).design.at_rate(rate)
    run = replace(loaded, pools=tuple(simulated(pool) for pool in loaded.pools))
    assert run.simulated_goodput is not None
    return quantity(100 * run.simulated_goodput / rate, "%")


def loop_of(machine: str) -> Paced:
    """The published loop that writes most a device, of those whose tokens keep the limit."""
    asked = (DENSE.key, "agg", machine, WEIGHTS)
    loops = (
        Paced(row, Rent.published_b200)
        for row in closed_loops.rows()
        if tuple(row[key] for key in ("model", "mode", "machine", "format")) == asked
        and closed_loops.job_of(row).software.key == SOFTWARE
        and row["input"] == row["output"] == CHAT.prompt
        and row.measured["tpot"] <= AskedService.tpot.m_as("s")
    )
    return max(loops, key=lambda loop: loop.rate.m / loop.row["tensor"])


def written(machine: str) -> Quantity:
    """Tokens a second that a device of that loop writes."""
    loop = loop_of(machine)
    rate: Quantity = loop.rate / loop.row["tensor"]
    return rate


class ReviewedService(Claims):
    """A 70B at thirty requests a second: H200s beside B200s, one pool beside two."""

    rate = RATE | by_hand("30 request/s")
    growth = quantity(100 * GROWTH, "%") | by_hand("10%")

    @classmethod
    def row(cls, machine: str, pools: str, rent: Quantity) -> Row:
        """Device, pools, replicas, devices and their range, growth, and the rent of an hour."""
        design = planned(machine, pools).design
        low, high = ends(machine, pools)
        return (
            machines.get(machine).device.key.upper(),
            "one" if pools == ONE else "two",
            ", ".join(f"{pool.count}×{layout_text(pool.group)}" for pool in design.pools),
            design.devices,
            f"{low}–{high}",
            kept(machine, pools),
            planned(machine, pools, GROWTH).devices,
            (design.devices * rent).to("USD/h"),
            between(low * rent, high * rent, 3),
        )

    @classmethod
    @row_by_hand("B200 | one | 10×TP1 | 10 | 9–14 | 98.9% | 11 | 60 USD/h | …")
    def rows(cls) -> Rows:
        """Every design of the review."""
        return [
            cls.row(machine, pools, rent)
            for machine, rent in ((H200, Rent.published_h200), (B200, Rent.published_b200))
            for pools in (ONE, TWO)
        ]


class ReviewChoice(Claims):
    """Designs make a B200 worth more H200s than published loops of the same engine do."""

    of_b200s = deferred(planned)(B200, ONE).devices | no_hand("10", SEEDED)
    of_h200s = deferred(planned)(H200, TWO).devices | no_hand("20", SEEDED)
    most_b200s = deferred(ends)(B200, ONE)[1] | no_hand("14", SEEDED)
    cost = (of_b200s * Rent.published_b200).to("USD/h") | by_hand("10 * 6 USD/h")
    most_cost = (most_b200s * Rent.published_b200).to("USD/h") | by_hand("14 * 6 USD/h")
    other_cost = (of_h200s * Rent.published_h200).to("USD/h") | by_hand("20 * 3.5 USD/h")
    # How many times the rent of an H200 a B200 may take, by the plans and by published loops.
    worth = quantity(of_h200s / of_b200s, "") | by_hand("20 / 10")
    rents = (Rent.published_b200 / Rent.published_h200).to("") | by_hand("6 / 3.5")

    tokens = CHAT.prompt | by_hand("1024")

    loop_h200 = deferred(written)(H200) | by_hand("1675.87 token/s")
    loop_b200 = deferred(written)(B200) | by_hand("2723.99 token/s")
    measured = (loop_b200 / loop_h200).to("") | by_hand("2723.99 / 1675.87")
