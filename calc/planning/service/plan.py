"""`plan_service`: the fewest devices that keep a service's limits, in which pools and layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core import arrays
from calc.core.arguments import number, one_of, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, FRACTION
from calc.core.units import QuantityLike, quantity
from calc.planning.service import search
from calc.planning.service.answer import ServicePlan
from calc.planning.service.asked import (
    POOLS,
    Service,
    draft_of,
    rate_of,
    sessions_of,
    share_of,
    tiers_of,
    time_of,
    trace_of,
    transformer_of,
    within_context,
)
from calc.planning.service.prefixes import unlimited
from calc.planning.service.search import Progress
from calc.planning.setup import Options, Setup


def plan_service(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    *,
    ttft: Annotated[QuantityLike, "s"],
    tpot: Annotated[QuantityLike, "s"],
    percentile: float = 99,
    rate: Annotated[QuantityLike | None, "request/s"] = None,
    prompt: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    generated: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    prompt_spread: float = 1.0,
    generated_spread: float = 1.0,
    trace: Path | str | None = None,
    pools: str | None = None,
    chunk: int | None = None,
    slots: int = 1024,
    hit_rate: Annotated[QuantityLike | None, "", FRACTION] = None,
    turns: float = 1.0,
    think: Annotated[QuantityLike, "s"] = "30 s",
    shared: int = 0,
    host: Annotated[QuantityLike | None, "byte"] = None,
    disk: Annotated[QuantityLike | None, "byte"] = None,
    routing: str = "prefix",
    draft: Transformer | str | None = None,
    drafted: int = 4,
    acceptance: Annotated[QuantityLike | None, "", FRACTION] = None,
    devices: int | None = None,
    weights: Annotated[QuantityLike | None, "byte"] = None,
    kv: Annotated[QuantityLike, "byte"] = "bf16",
    dtype: str | None = None,
    price: Annotated[QuantityLike | None, "USD/s"] = None,
    context: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    software: str | None = None,
    pue: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    grid: QuantityLike | None = None,
    requests: int = 3000,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> ServicePlan:
    """The fewest devices of a machine that serve requests within limits, and how they share them.

    Requests come at random, or as a trace has them. Devices within a domain of the machine are
    tried in all groups that cut the model (TP, and EP of a mixture), as replicas for
    prefill and decode, and as two pools, one of which sends the caches of prompts to the other.

    - `ttft`: the longest time to first token, "1 s"
    - `tpot`: the longest time of each token after it, "50 ms" or "20 token/s", the mean of an
      answer
    - `percentile`: of the requests that must keep each limit, in per cent
    - `rate`: requests a second; that of the trace where it is left out
    - `prompt`: tokens that a request reads, on average
    - `generated`: tokens that a request writes, on average
    - `prompt_spread`: standard deviation of the lengths of prompts over their mean
    - `generated_spread`: standard deviation of the lengths of answers over their mean
    - `trace`: a file of requests in place of lengths: .csv or .parquet with the columns arrival
      (seconds, or dates), prompt and generated (tokens), or a .jsonl as Mooncake's, with hash_ids
      of the blocks of prompts
    - `pools`: mixed or disaggregated; the better one where it is left out
    - `chunk`: tokens of a step at most; the best of a few where it is left out
    - `slots`: sequences of a batch at most
    - `hit_rate`: share of each prompt that a prefix cache holds; where it is left out, none, or
      what sessions and the hashes of a trace make of the memory that is there
    - `turns`: of a session on average, each of which reads all that was said before `prompt`
    - `think`: from a turn of a session to the next one, on average
    - `shared`: tokens that all sessions begin with
    - `host`: memory of the host for prefixes, of a device's share: "256 GB"
    - `disk`: space of disks for prefixes, of a device's share: "3.84 TB"
    - `routing`: prefix, to the replica that has most of a prompt unless it is too busy, or turns
    - `draft`: a small model that drafts, with `acceptance`
    - `drafted`: tokens that it drafts for each pass of the model
    - `acceptance`: probability that a drafted token is accepted
    - `devices`: the most that may be taken
    - `weights`: format of the weights, or the size of one: "int8", "4.5 bit", 8 (bit); "released"
      where it is left out and the data say in what, or else bf16
    - `kv`: format of keys and values, or the size of one
    - `dtype`: what products are computed in; where it is left out and the device has it, what the
      released weights are made for, or bf16
    - `price`: of a device, "3 USD/hour"; without it, no cost
    - `context`: the most tokens that the model reads, where that is not the published number
    - `software`: what serves, "sglang" or "vllm 0.19"; where it is left out, the newest vLLM that
      was measured on the device (on a Mac llama.cpp); "none" leaves out a program's own time
    - `pue`: energy of the building over that of its machines, 1.2; that of the machines alone where
      it is left out
    - `grid`: whose electricity it takes, "france", or what that emits, "57 g/kWh"
    - `requests`: requests of a simulation, or more where batches are large
    - `seed`: of what is drawn

    `on_progress` is told how many designs were simulated, and how many there will be.

    >>> plan = plan_service("llama-3-8b", "h100", rate="10 request/s", prompt=1000, generated=200,
    ...                     ttft="1 s", tpot="50 ms", software="vllm", pools="mixed")
    >>> print(plan.design, plan.least_devices)
    1 replica of TP1 1
    """
    given = {name: value for name, value in locals().items() if name != "on_progress"}
    arrays.needed_by("plan_service()")
    network = transformer_of(model)
    share = share_of("percentile", percentile)
    requested = trace_of(
        trace, rate, prompt, generated, prompt_spread, generated_spread, seed, requests
    )
    hits = number("hit_rate", quantity(0 if hit_rate is None else hit_rate).m_as(""))
    if hits > 1:
        raise InputError(f"hit_rate is a share, at most 1; got {abbreviated(hit_rate)}")
    lengths: dict[str, QuantityLike] = {
        "prompt": max(1.0, float(round(requested.prompts.mean()))),
        "generated": max(2.0, float(round(requested.answers.mean()))),
        "batch": 1,
    }
    options = Options(weights, kv, dtype, None, price, context, software, pue, grid)
    setup = Setup.read(network, hardware, lengths, options)
    sessions = sessions_of(turns, think, shared, setup.model, given)
    if sessions is not None:
        requested = sessions.draw(sessions.rate, whole_number("requests", requests, 100))
    if hit_rate is None and requested.blocks is not None:
        requested = unlimited(requested)
    else:
        requested, sessions = requested.with_hits(hits), None
    requested = within_context(requested, setup.model, trace)
    written, drafting = draft_of(draft, drafted, acceptance, hardware, lengths, options)
    service = Service(
        setup=setup,
        rate=requested.rate if rate is None else rate_of(rate),
        trace=requested,
        recorded=trace is not None,
        ttft=time_of("ttft", ttft, "1 s"),
        tpot=time_of("tpot", tpot, "50 ms"),
        percentile=share,
        pools=POOLS if pools is None else (one_of("pools", pools, POOLS),),
        chunk=None if chunk is None else whole_number("chunk", chunk, 16),
        slots=whole_number("slots", slots),
        hit_rate=hits,
        draft=drafting,
        drafted=whole_number("drafted", drafted),
        written=written,
        most_devices=None if devices is None else whole_number("devices", devices),
        sessions=sessions,
        tiers=tiers_of(host, disk, routing, setup.machine, requested.blocks is not None),
    )
    if not (on_progress is None or callable(on_progress)):
        raise InputError(f"on_progress must be a function; got {abbreviated(on_progress)}")
    tell = (lambda done, total: None) if on_progress is None else on_progress
    designs, refused = search.designs(service, tell)
    return ServicePlan(service, designs[0], tuple(designs), refused, given)
