"""A service within limits on its times: what a token costs against how fast it is written."""

from __future__ import annotations

import math
from collections.abc import Sequence

import calc
from calc import machines, models
from calc.core.units import Quantity, quantity
from figures.live.model import Amount, Answer, Axis, Choice, Count, Drawing, Model, Point, band

LATENCY = Axis("Time per output token", "ms", log=True)
PAID = Axis("Cost of a written token", "USD/Mtoken", log=True)
INPUTS = (
    Choice("model", "Model", "llama-3-8b", models.names()),
    Choice("machine", "Machine", "dgx-h100", machines.names()),
    Choice("other", "Compared with", "dgx-b200", machines.names()),
    Count("prompt", "Prompt", "1000", 1, 10**7, unit="token"),
    Count("generated", "Answer", "200", 1, 10**7, unit="token"),
    Amount("rate", "Requests", "10 request/s", "request/s", 1e-6, 1e9),
    Amount("ttft", "Time to first token, at most", "1 s", "s", 1e-6, 1e6),
    Amount("tpot", "Time per token, at most", "50 ms", "s", 1e-6, 1e6),
    Amount("price", "Price of a device", "3 USD/hour", "USD/hour", 1e-6, 1e6),
    Amount("beside", "Price of a device there", "6 USD/hour", "USD/hour", 1e-6, 1e6),
)


def answer(
    model: str,
    machine: str,
    other: str,
    prompt: int,
    generated: int,
    rate: Quantity,
    ttft: Quantity,
    tpot: Quantity,
    price: Quantity,
    beside: Quantity,
) -> Answer:
    """A line for each machine, through the batches that keep the limits."""
    names = list(dict.fromkeys([machine, other]))
    prices = {machine: price} | ({other: beside} if other != machine else {})
    compared = calc.compare(
        model,
        names,
        prompt=prompt,
        generated=generated,
        ttft=ttft,
        tpot=tpot,
        price=prices,
        by="cost",
    )
    rows, dots, bands, facts = [], [], [], {}
    for entry in compared.entries:
        ends: list[Sequence[Point] | None] = []
        for plan in entry.curve:
            latency, around = compared.latency(plan), plan.interval(compared.paid)
            rows.append((entry.machine.name, latency, compared.price(plan)))
            ends.append(around and tuple((latency, PAID.of(cost)) for cost in around))
        bands += band(entry.machine.name, ends)
        if entry.curve:
            best = compared.plan_of(entry)
            paid = PAID.unit.replace("USD/", f"{compared.price(best):.4g} USD/")
            on = "a device" if best.devices == 1 else f"{best.devices} devices"
            cost = quantity(compared.price(best), PAID.unit)
            rented = prices[entry.machine.key] * best.devices
            bill = rate * generated * quantity(1, "token/request") * cost
            groups = math.ceil((bill / rented).m_as(""))
            facts[entry.machine.name] = (
                f"{paid} on {on}, batch {best.batch}; {rate} take {groups * best.devices} of them"
                f" at least, {(groups * rented).to('USD/h'):.4g}"
            )
            dots.append((f"batch {best.batch}", compared.latency(best), compared.price(best)))
        else:
            facts[entry.machine.name] = entry.reason
    facts["By"] = compared.basis
    printed = {name: str(value) for name, value in prices.items()}
    python = (
        f"import calc\n\nprint(calc.compare({model!r}, {names}, prompt={prompt},"
        f" generated={generated}, ttft={str(ttft)!r}, tpot={str(tpot)!r}, price={printed},"
        " by='cost'))"
    )
    caption = (
        f"What a million tokens of {models.get(model).name} costs, by the time per token, on"
        f" batches that keep {ttft} to the first token and {tpot} to each; dots are the cheapest."
    )
    return Answer(rows, facts, caption, python, dots=dots, bands=bands)


MODEL = Model("Serving within limits", INPUTS, Drawing(LATENCY, PAID), answer)
