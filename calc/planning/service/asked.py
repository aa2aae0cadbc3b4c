"""The question to a service, read and checked once: requests, limits, and who serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import check_is, counted, number, one_of, whole_number
from calc.core.arrays import numpy
from calc.core.errors import InputError, abbreviated, marked
from calc.core.units import QuantityLike, quantity
from calc.laws import speculation
from calc.planning.plan_nouns import Draft, Load, Server, Tiers
from calc.planning.service.load import Trace, poisson, read_trace
from calc.planning.service.prefixes import ROUTINGS, Sessions, Sizes
from calc.planning.service.queue import Demand
from calc.planning.setup import A_TOKEN, Setup, amount, time_limit

POOLS = ("mixed", "disaggregated")
TIMES = {"ttft": "TTFT", "tpot": "TPOT"}
PAID = {
    "cost_per_token": "cost",
    "device_energy_per_token": "energy of devices",
    "energy_per_token": "energy",
    "carbon_per_token": "carbon",
}
MOST_TURNS, MOST_GOING = 1000, 200_000
RAREST = 1e-9  # requests a second: less is no load, and a chain of its states divides by nothing


@dataclass(frozen=True, eq=False)
class Service:
    """A service as it is asked for, read and checked once."""

    setup: Setup
    rate: float
    """Requests a second."""
    trace: Trace
    recorded: bool
    """Whether the trace is that of a file."""
    ttft: float
    """The limit on the time to first token, in seconds."""
    tpot: float
    """The limit on the time of each token after it."""
    percentile: float
    """Share of requests that keep each limit."""
    pools: tuple[str, ...]
    chunk: int | None
    slots: int
    hit_rate: float
    draft: Setup | None
    drafted: int
    written: float
    """Tokens that a pass writes of each sequence, on average."""
    most_devices: int | None
    sessions: Sessions | None = None
    tiers: Sizes = field(default_factory=Sizes)

    @cached_property
    def demand(self) -> Demand:
        """Return what its requests ask for on average."""
        return Demand.mean_of(self.trace)

    @property
    def limits(self) -> str:
        share = f"{100 * self.percentile:g} % of requests"
        return f"TTFT {seconds(self.ttft)} and TPOT {seconds(self.tpot)} for {share}"


def with_rate(load: Load) -> Load:
    """Return the load with the rate of so many agents at work at once, where these are given.

    Equation: λ = N · (1 + a) / (z · (1 − 1 / n))

    By Little's law, of sessions of n turns, a of them beside each agent's own, and the time z from
    a turn to the next; the answer of the last turn, which no other follows, is left out.
    """
    beside = number("subagents", load.subagents)
    if load.agents is None:
        return load
    count = number("agents", load.agents, above=0.0)
    often = number("turns", load.turns, 1.0)
    if load.rate is not None or often == 1 or load.trace is not None:
        raise InputError(
            f"{marked('agents')} are in place of a rate, of sessions of several turns: give"
            f" {marked('turns', 20)}, and no rate or trace"
        )
    pause = time_of("think", load.think, "30 s") * (1 - 1 / often)
    return replace(load, rate=quantity(count * (1 + beside) / pause, "request/s"))


def trace_of(load: Load) -> Trace:
    """The requests that are recorded, or drawn."""
    if load.trace is not None:
        if load.prompt is not None or load.generated is not None:
            raise InputError(
                "plan_service() takes the lengths of its trace, and prompt and generated are given"
                " too: leave the trace or the lengths out"
            )
        return read_trace(load.trace)
    if load.rate is None or load.prompt is None or load.generated is None:
        needed = "rate", "prompt", "generated"
        missing = [name for name in needed if getattr(load, name) is None]
        raise InputError(
            "plan_service() needs a trace, or rate, prompt and generated; what is left out:"
            f" {', '.join(missing)}"
        )
    means = length_of("prompt", load.prompt), length_of("generated", load.generated)
    count = whole_number("requests", load.requests, 100)
    spreads = load.prompt_spread, load.generated_spread
    return poisson(rate_of(load.rate), count, *means, *spreads, load.seed)


def within_context(trace: Trace, model: Transformer, path: Path | str | None) -> Trace:
    """Requests that the model can read: drawn ones are cut, and a recorded one that is too long
    is an error."""
    most = model.context
    long = trace.prompts + trace.answers > most
    if not long.any():
        return trace
    if path is not None:
        index = int(long.argmax())
        needed = int((trace.prompts + trace.answers)[index])
        raise InputError(
            f"{path}: request {index + 1} has {needed} tokens, and {model.name} reads at most"
            f" {most}"
        )
    prompts = numpy.minimum(trace.prompts, most - 1)
    return replace(trace, prompts=prompts, answers=numpy.minimum(trace.answers, most - prompts))


def sessions_of(load: Load, model: Transformer) -> Sessions | None:
    """Sessions of several turns, or of requests that begin alike; None where there are neither."""
    often, common = number("turns", load.turns, 1.0), whole_number("shared", load.shared, 0)
    pause = time_of("think", load.think, "30 s")
    if often == 1 and not common:
        return None
    if load.rate is None or load.prompt is None or load.generated is None:
        raise InputError("turns and shared are of requests that are drawn, and a trace is given")
    rate = rate_of(load.rate)
    if often > MOST_TURNS or rate * pause > MOST_GOING:
        raise InputError(
            f"sessions may have {MOST_TURNS:,} turns on average, {MOST_GOING:,} be going at once"
            f" (rate times think); got {marked('turns', f'{often:g}')},"
            f" {marked('rate', f'{rate:g}')} and {marked('think', f'{pause:g} s')}"
        )
    return Sessions(
        rate=rate,
        beside=number("subagents", load.subagents),
        turns=often,
        think=pause,
        shared=common,
        prompt=length_of("prompt", load.prompt),
        generated=length_of("generated", load.generated),
        prompt_spread=load.prompt_spread,
        generated_spread=load.generated_spread,
        context=model.context,
        seed=load.seed,
    )


def sizes_of(tiers: Tiers, machine: Machine, content: bool) -> Sizes:
    """Return where prefixes are kept, which needs requests whose content is known."""
    sizes = {
        name: 0.0 if size is None else float(amount("byte", name, size, "256 GB").m_as("byte"))
        for name, size in (("host_cache", tiers.host_cache), ("disk", tiers.disk))
    }
    if any(sizes.values()):
        if not content:
            raise InputError(
                "host_cache and disk keep prefixes that are found by content: give turns or shared,"
                " or a trace of .jsonl with hash_ids, and no hit_rate"
            )
        _ = machine.host_link  # refused where it is not published
    return Sizes(**sizes, routing=one_of("routing", tiers.routing, ROUTINGS))


def draft_of(
    draft: Draft | None,
    hardware: Machine | Accelerator | Path | str,
    lengths: Mapping[str, QuantityLike],
    server: Server,
) -> tuple[float, Setup | None]:
    """Return what a pass writes on average, and the draft model with its formats."""
    if draft is None:
        return 1.0, None
    check_is(Draft, "draft", draft, 'calc.Draft("llama-3-2-1b", acceptance=0.7)')
    count = whole_number("drafted", draft.drafted)
    written = speculation.speculative_tokens(draft.acceptance, count).m_as("")
    return float(written), Setup.read(draft.draft, hardware, lengths, server)


def rate_of(value: QuantityLike) -> float:
    often = quantity(value)
    if often.unitless:
        often = often * quantity(1, "request/s")
    rate = float(amount("request/s", "rate", often, "10 request/s").m_as("request/s"))
    if rate < RAREST:
        raise InputError(
            f"{marked('rate')} must be a request in 30 years at least; got {abbreviated(value)}",
            given=value,
        )
    return rate


def time_of(name: str, value: QuantityLike, example: str) -> float:
    return float(time_limit(name, value, example).m_as("s"))


def share_of(name: str, raw: float) -> float:
    value = number(name, raw, above=0.0)
    if not 1 <= value < 100:
        raise InputError(
            f"{marked(name)} must be in per cent, from 1 to below 100; got {abbreviated(raw)}",
            given=raw,
        )
    return value / 100


def length_of(name: str, value: QuantityLike) -> float:
    tokens = quantity(counted(value))
    if tokens.is_compatible_with("token"):
        tokens = tokens / A_TOKEN
    return max(1.0, float(amount("", name, tokens, "1000").m_as("")))


def seconds(time: float) -> str:
    """A time as people read it."""
    return f"{quantity(time, 's'):.3g}" if time >= 1 else str(quantity(float(f"{time:.3g}"), "s"))
