"""`plan_service`: the fewest devices that keep a service's limits, in which pools and layouts."""

from __future__ import annotations

from pathlib import Path

from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core import arrays
from calc.core.arguments import check_is, number, one_of, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.nouns import flat
from calc.core.units import QuantityLike, quantity
from calc.planning.plan_nouns import Draft, Limits, Load, Prices, Server, Tiers
from calc.planning.service import asked, design_search
from calc.planning.service.design_search import Progress
from calc.planning.service.prefixes import unlimited
from calc.planning.service.service_plan import ServicePlan
from calc.planning.setup import Setup


@understood
def plan_service(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    load: Load,
    limits: Limits,
    *,
    server: Server = Server(),
    draft: Draft | None = None,
    tiers: Tiers = Tiers(),
    prices: Prices = Prices(),
    pools: str | None = None,
    chunk: int | None = None,
    slots: int = 1024,
    devices: int | None = None,
    on_progress: Progress | None = None,
) -> ServicePlan:
    """The fewest devices of a machine that serve a load within limits, and how they share it.

    Devices within a domain of the machine are tried in all groups that cut the model (TP, and EP
    of a mixture), as replicas for prefill and decode, and as two pools, one of which sends the
    caches of prompts to the other.

    `on_progress` is told how many designs were simulated, and how many there will be.

    Parameters
    ----------
    pools
        mixed or disaggregated; the better one where it is left out
    chunk
        tokens of a step at most; the best of a few where it is left out
    slots
        sequences of a batch at most
    devices
        the most that may be taken

    Examples
    --------
    >>> from calc import Limits, Load, Server
    >>> plan = plan_service("llama-3-8b", "h100", Load("10 request/s", prompt=1000, generated=200),
    ...                     Limits("1 s", "50 ms"), server=Server(software="vllm"), pools="mixed")
    >>> print(plan.design, plan.least_devices)
    1 replica of TP1 1
    """
    arrays.needed_by("plan_service()")
    check_is(Load, "load", load, 'calc.Load("10 request/s", prompt=1000, generated=200)')
    check_is(Limits, "limits", limits, 'calc.Limits(ttft="1 s", tpot="50 ms")')
    check_is(Tiers, "tiers", tiers, 'calc.Tiers(host_cache="256 GB")')
    question: dict[str, object] = {"model": model, "hardware": hardware, "load": load}
    question |= {"limits": limits, "server": server}
    question |= {"draft": draft, "tiers": tiers, "prices": prices, "pools": pools, "chunk": chunk}
    question |= {"slots": slots, "devices": devices}
    load = asked.with_rate(load)
    share = asked.share_of("percentile", limits.percentile)
    requested = asked.trace_of(load)
    hits = number("hit_rate", quantity(0 if load.hit_rate is None else load.hit_rate).m_as(""))
    if hits > 1:
        raise InputError(f"hit_rate is a share, at most 1; got {abbreviated(load.hit_rate)}")
    lengths: dict[str, QuantityLike] = {
        "prompt": max(1.0, float(round(requested.prompts.mean()))),
        "generated": max(2.0, float(round(requested.answers.mean()))),
        "batch": 1,
    }
    setup = Setup.read(model, hardware, lengths, server, prices)
    sessions = asked.sessions_of(load, setup.model)
    if sessions is not None:
        requested = sessions.draw(sessions.rate, whole_number("requests", load.requests, 100))
    if load.hit_rate is None and requested.blocks is not None:
        requested = unlimited(requested)
    else:
        requested, sessions = requested.with_hits(hits), None
    requested = asked.within_context(requested, setup.model, load.trace)
    written, drafting = asked.draft_of(draft, hardware, lengths, server)
    service = asked.Service(
        setup=setup,
        rate=requested.rate if load.rate is None else asked.rate_of(load.rate),
        trace=requested,
        recorded=load.trace is not None,
        ttft=asked.time_of("ttft", limits.ttft, "1 s"),
        tpot=asked.time_of("tpot", limits.tpot, "50 ms"),
        percentile=share,
        pools=asked.POOLS if pools is None else (one_of("pools", pools, asked.POOLS),),
        chunk=None if chunk is None else whole_number("chunk", chunk, 16),
        slots=whole_number("slots", slots),
        hit_rate=hits,
        draft=drafting,
        drafted=0 if draft is None else draft.drafted,
        written=written,
        most_devices=None if devices is None else whole_number("devices", devices),
        sessions=sessions,
        tiers=asked.sizes_of(tiers, setup.machine, requested.blocks is not None),
    )
    if not (on_progress is None or callable(on_progress)):
        raise InputError(f"on_progress must be a function; got {abbreviated(on_progress)}")
    tell = (lambda done, total: None) if on_progress is None else on_progress
    designs, refused = design_search.designs(service, tell)
    return ServicePlan(service, designs[0], tuple(designs), refused, flat(question)).settled()
