"""Self-host or API: the load from which devices of one's own cost less than tokens by the million.

Devices are paid by the hour whatever they do, and an API by the token, so that a copy of the model
costs less from the load on at which the API's bill is as high as its devices' price, if it can take
that load within the limits. What it can take is expected, and has an interval; the bill has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from calc.catalog import apis
from calc.catalog.apis import Api
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import number
from calc.core.errors import InputError, marked
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning.plan_nouns import Limits, Load, Prices, Server
from calc.planning.service.design import Pool
from calc.planning.service.service_plan import ServicePlan
from calc.planning.service.service_planner import plan_service

A_TOKEN, A_RATE = quantity(1, "token/request"), quantity(1, "request/s")
THOUSAND = "USD/krequest"


@dataclass(frozen=True, eq=False, repr=False)
class BreakEven(Answer):
    """A service on devices of one's own beside APIs, a row each; `print` shows it."""

    _SENTENCES = (("assumptions", "Assumed"),)

    plan: ServicePlan
    offers: tuple[Api, ...]

    @cached_property
    def pools(self) -> list[Pool]:
        """A copy of the model on each group of devices that keeps the limits."""
        return [pool for design in self.plan.designs for pool in design.pools]

    @cached_property
    def factors(self) -> tuple[float, float, float]:
        """Return 1 and the factors, low and high, of the load that a copy is expected to take."""
        if not self.plan.paces:
            return (1.0, 1.0, 1.0)
        fast, slow = self.plan.paces
        return 1.0, 1 / slow, 1 / fast

    @property
    def cheapest(self) -> tuple[Quantity, ...]:
        """The least that a request costs on full devices: expected, and between what it may be."""
        expected, low, high = self.factors
        least = min(self._price(pool).m_as("USD/s") / pool.most for pool in self.pools)
        full = quantity(least, "USD/request").to(THOUSAND)
        return full / expected, full / high, full / low

    def bill(self, offer: Api) -> Quantity:
        """Return what a request costs behind an API."""
        demand = self.plan.service.demand
        cached = demand.prompt - demand.computed
        tokens = (
            offer.read * demand.computed + offer.cached * cached + offer.written * demand.answer
        )
        return (tokens * A_TOKEN).to(THOUSAND)

    def load(self, offer: Api, factor: float = 1.0) -> tuple[Quantity, Pool] | None:
        """The least load at which a copy costs no more, if copies take `factor` times the load
        that is expected; None where none does, even when it is full."""
        bill = self.bill(offer)
        loads = [((self._price(pool) / bill).to("request/s"), pool) for pool in self.pools]
        pays = [(load, pool) for load, pool in loads if load <= factor * pool.most * A_RATE]
        return min(pays, key=lambda pair: pair[0].m, default=None)

    def loads(self, offer: Api) -> list[Quantity | None]:
        """The load that is expected, and if copies take less and more than that."""
        crossings = (self.load(offer, factor) for factor in self.factors)
        return [None if pair is None else pair[0] for pair in crossings]

    def devices(self, load: QuantityLike, factor: float = 1.0) -> int:
        """Return the fewest devices whose copies together take a load, if each takes `factor` times
        what is expected."""
        wanted = number("load", quantity(load).m_as("request/s"))
        factor = number("factor", factor, above=0.0)
        taken = [0.0]  # by none, by one device, by two
        while taken[-1] < wanted:
            count = len(taken)
            fit = (pool for pool in self.pools if pool.size <= count)
            most = (taken[count - pool.size] + factor * float(pool.most) for pool in fit)
            taken.append(max((taken[-1], *most)))
        return len(taken) - 1

    def _price(self, pool: Pool) -> Quantity:
        price = self.plan.price
        assert price is not None
        return price * pool.size

    @property
    def answer(self) -> str:
        setup, least = self.plan.service.setup, min(self.offers, key=self.bill)
        here = f"{setup.model.name} on {setup.device.name} at {self.plan.price}"
        if self.load(least) is None:
            return f"{here} costs more than at {least.provider}, even on full devices"
        return f"{here} costs less than at {least.provider} from {self._verdict(least)}"

    @property
    def stands_on(self) -> str:
        return self.plan.stands_on

    @property
    def chosen(self) -> list[str]:
        return [clause for clause in self.plan.chosen if not clause.startswith("steps of")]

    @cached_property
    def tables(self) -> list[Table]:
        return [Table(list(self._lines()))]

    def _lines(self) -> Iterator[tuple[str, ...]]:
        demand = self.plan.service.demand
        asked = f"{demand.prompt:.4g} + {demand.answer:.4g} tokens"
        prices = ("USD/Mtoken: read", "cached", "written")
        yield asked, "1000 requests", "one's own cost less from", *prices
        for offer in self.offers:
            texts = (f"{price.m:g}" for price in (offer.read, offer.cached, offer.written))
            bill = f"{self.bill(offer).m:.2g} USD"
            yield (f"{offer.name}, {offer.provider}", bill, self._verdict(offer), *texts)
        expected, low, high = (f"{cost.m:.2g}" for cost in self.cheapest)
        yield "one's own, always full", f"{expected} USD", f"({low} to {high} USD)", "", "", ""

    def _verdict(self, offer: Api) -> str:
        usual, slow, fast = (
            "never" if load is None else f"{load.m:.2g}" for load in self.loads(offer)
        )
        load_text = usual if usual == "never" else f"{usual} request/s"
        return load_text if slow == usual == fast else f"{load_text} ({fast} to {slow})"

    def rows(self) -> list[dict[str, object]]:
        rows = []
        for offer in self.offers:
            loads = zip(("load", "load_if_slow", "load_if_fast"), self.loads(offer), strict=True)
            facts = values(offer, " ".join(("provider", "name", *apis.PRICES)))
            rows.append({"api": offer.key, **facts, "bill": self.bill(offer), **dict(loads)})
        return rows

    @cached_property
    def facts(self) -> dict[str, object]:
        names = "cheapest", "cheapest_low", "cheapest_high"
        return {
            **self.headline,
            "rows": self.rows(),
            **dict(zip(names, self.cheapest, strict=True)),
            "assumptions": self.assumptions,
        }

    def _assumptions(self) -> Iterator[str]:
        yield (
            "Devices are paid all the time, and a copy takes load within the limits by the closed"
            " form of `calc plan-service`; people, networks and spare copies cost nothing here."
        )
        yield (
            "Just above what a copy takes a second one stands half empty: from there on compare at"
            " your own load."
        )
        yield (
            "Prices are list prices, read on 2026-11-24 in two tables that agree; whoever serves"
            " open weights may serve them in fewer bits."
        )


@understood
def break_even(
    model: Transformer | str,
    hardware: Machine | Accelerator | str,
    *,
    price: Annotated[QuantityLike, "USD/s"],
    prompt: Annotated[QuantityLike, ""],
    generated: Annotated[QuantityLike, ""],
    ttft: Annotated[QuantityLike, "s"] = "2 s",
    tpot: Annotated[QuantityLike, "s"] = "50 ms",
    percentile: float = 95,
    api: str | None = None,
    hit_rate: Annotated[QuantityLike, ""] = 0,
    weights: Annotated[QuantityLike | None, "byte"] = None,
    kv: Annotated[QuantityLike, "byte"] = "bf16",
    software: str | None = "vllm",
) -> BreakEven:
    """Return the load from which a model costs less on devices of one's own than behind an API.

    Parameters
    ----------
    model
        model of `calc.models`
    hardware
        machine or device, or the name of one
    price
        of a device, "3 USD/hour"
    prompt
        tokens that a request reads, on average
    generated
        tokens that a request writes, on average
    ttft
        the longest time to first token, "1 s"
    tpot
        the longest time of each token after it, "50 ms", the mean of an answer
    percentile
        of the requests that must keep each limit, in per cent
    api
        prices to compare with, several by commas; those of the model where it is left out
    hit_rate
        share of each prompt that is found in a cache, one's own and the provider's
    weights
        what checkpoints of a name hold, or the size of every parameter
    kv
        format of keys and values, or the size of one
    software
        whose own time the expectation counts

    Examples
    --------
    >>> answer = break_even("gpt-oss-20b", "h100", price="2.5 USD/hour", prompt=1000, generated=300,
    ...                     api="groq-gpt-oss-20b")
    >>> print(answer.bill(answer.offers[0]))
    0.1650 USD/krequest
    """
    plan = plan_service(
        model,
        hardware,
        Load(1, prompt, generated, hit_rate=hit_rate, requests=500),
        Limits(ttft, tpot, percentile),
        server=Server(weights, kv, software=software),
        prices=Prices(price),
        pools="mixed",
    )
    network = plan.service.setup.model
    offers = apis.of_model(network.key)
    if api is not None:
        offers = tuple(map(apis.get, api.split(",") if isinstance(api, str) else [api]))
    if not offers:
        raise InputError(
            f"no price of an API of {network.name} is in the data: name others to compare with,"
            f" as in {marked('api', apis.names()[0])}"
        )
    return BreakEven(plan, tuple(offers)).settled()
