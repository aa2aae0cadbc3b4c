"""`plan_service`: the fewest devices that keep a service's limits, in which pools and layouts."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import number, one_of, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, FRACTION
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import cost
from calc.planning.service import search
from calc.planning.service.asked import (
    POOLS,
    Service,
    draft_of,
    rate_of,
    share_of,
    time_of,
    trace_of,
    transformer_of,
    within_context,
)
from calc.planning.service.design import Design, least_copies
from calc.planning.service.queue import Load
from calc.planning.service.search import Progress
from calc.planning.setup import Setup


@dataclass(frozen=True, eq=False, repr=False)
class ServicePlan:
    """The pools of a service, what its requests meet, and what it costs; `print` shows it.

    `load` is by the closed form, from the times of steps that are expected; `design.run` is the
    simulation that decided. `least` and `most` are the closed form at published rates, with all
    parts of a step at once and with none.
    """

    service: Service
    design: Design
    designs: tuple[Design, ...]
    """All that were found, the one that is taken first."""
    refused: dict[str, str] = field(default_factory=dict)
    """Groups of devices that can serve no request within the limits, and why."""
    price: Quantity | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    """What `plan_service` was asked, by the names of its arguments."""

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.design.devices

    @property
    def load(self) -> Load:
        """What requests meet, by the closed form."""
        return self.design.load

    @property
    def ttft(self) -> Quantity:
        """Time to first token at the percentile, as simulated."""
        assert self.design.simulated is not None
        return quantity(self.design.simulated[0], "s")

    @property
    def tpot(self) -> Quantity:
        """Time of each token after the first at the percentile, as simulated."""
        assert self.design.simulated is not None
        return quantity(self.design.simulated[1], "s")

    @property
    def most_requests(self) -> Quantity:
        """The largest rate that these devices take within the limits, by the closed form."""
        return quantity(self.design.most, "request/s")

    @property
    def least_devices(self) -> int:
        """The fewest devices with which any program could keep the limits, at published rates."""
        return min(
            sum(least_copies(pool) * pool.group.devices for pool in each.pools)
            for each in self.designs
        )

    @property
    def throughput(self) -> Quantity:
        """Tokens that all answers together have in a second."""
        return quantity(self.service.rate * self.service.demand.answer, "token/s")

    @property
    def cost_per_token(self) -> Quantity | None:
        """Price of a written token at this rate; None where no price was given."""
        if self.price is None:
            return None
        return cost.cost_per_token(self.devices, self.price, self.throughput).to("USD/Mtoken")

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a written token at this rate; None where no power is published."""
        power = self.service.setup.power
        if power is None:
            return None
        return cost.energy_per_token(self.devices, power, self.throughput).to("J/token")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers stand on, a sentence each."""
        from calc.planning.service import report

        return tuple(report.assumptions(self))

    @property
    def what_would_change(self) -> tuple[str, ...]:
        """What would make this another answer, a sentence each, by the closed form."""
        from calc.planning.service import report

        return tuple(report.changes(self))

    @property
    def why_not_others(self) -> tuple[str, ...]:
        """Why the other groups and pools lose, a sentence each."""
        from calc.planning.service import report

        return tuple(report.why_not_others(self))

    def frontier(self, tpot: QuantityLike) -> Quantity:
        """Device time of a written token under other limits on TPOT, by the closed form.

        The least of all designs at full load, in a service of so many copies that parts of one
        count; infinite where no design keeps the limit.
        """
        import numpy

        limits = quantity(tpot)
        if not limits.is_compatible_with("s") or not numpy.all(limits.m_as("s") > 0):
            raise InputError(f'tpot must be positive times, as in "50 ms"; got {abbreviated(tpot)}')
        times = numpy.asarray(limits.m_as("s"), dtype=float)
        needed = list(search.frontier(self.service, times.ravel().tolist()))
        paid = numpy.reshape(needed, times.shape) / self.service.demand.answer
        return quantity(paid if times.ndim else float(paid), "s/token")

    def rows(self) -> list[dict[str, Any]]:
        """The designs, a row each, with plain keys."""
        from calc.planning.service import report

        return report.rows(self)

    def draw(self) -> Any:
        """A figure of matplotlib: both times against the rate, by the closed form, with limits."""
        from calc.planning.service import report

        return report.draw(self)

    def to_toml(self) -> str:
        """The options that make this plan again, as the text of a file."""
        from calc.planning import files

        setup = self.service.setup
        return files.given_text(self.given, setup.model, setup.machine)

    def table(self) -> str:
        """The plan as lines of text, with the designs below it."""
        from calc.planning.service import report

        return report.table(self)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from calc.planning.service import report

        return report.html(self)

    def __repr__(self) -> str:
        setup = self.service.setup
        return f"<{setup.model.name} served by {self.devices} {setup.device.name}: {self.design}>"


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
    hit_rate: Annotated[QuantityLike, "", FRACTION] = 0,
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
    requests: int = 3000,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> ServicePlan:
    """The fewest devices of a machine that serve requests within limits, and how they share them.

    Requests come at random, or as a trace has them. Devices within a domain of the machine are
    tried in all groups that cut the model (TP, and EP of a mixture), as replicas for
    prefill and decode, and as two pools, one of which sends the caches of prompts to the other.

    - `ttft`: the longest time to first token, "1 s"
    - `tpot`: the longest time of each token after it, "50 ms", the mean of an answer
    - `percentile`: of the requests that must keep each limit, in per cent
    - `rate`: requests a second; that of the trace where it is left out
    - `prompt`: tokens that a request reads, on average
    - `generated`: tokens that a request writes, on average
    - `prompt_spread`: standard deviation of the lengths of prompts over their mean
    - `generated_spread`: standard deviation of the lengths of answers over their mean
    - `trace`: a file of requests, .csv or .parquet, in place of lengths
    - `pools`: mixed or disaggregated; the better one where it is left out
    - `chunk`: tokens of a step at most; the best of a few where it is left out
    - `slots`: sequences of a batch at most
    - `hit_rate`: share of each prompt that a prefix cache holds
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
    - `software`: whose own time the expectation counts: "vllm"; none where it is left out
    - `requests`: requests of a simulation, or more where batches are large
    - `seed`: of what is drawn

    `on_progress` is told how many designs were simulated, and how many there will be.

    >>> found = plan_service("llama-3-8b", "h100", rate="10 request/s", prompt=1000, generated=200,
    ...                      ttft="1 s", tpot="50 ms", software="vllm", pools="mixed")
    >>> print(found.design, found.least_devices)
    1 replica of TP1 1
    """
    given = {name: each for name, each in locals().items() if name != "on_progress"}
    asked = transformer_of(model)
    share = share_of("percentile", percentile)
    requested = trace_of(
        trace, rate, prompt, generated, prompt_spread, generated_spread, seed, requests
    )
    hits = number("hit_rate", quantity(hit_rate).m_as(""))
    if hits > 1:
        raise InputError(f"hit_rate is a share, at most 1; got {abbreviated(hit_rate)}")
    lengths: dict[str, QuantityLike] = {
        "prompt": max(1.0, float(round(requested.prompts.mean()))),
        "generated": max(2.0, float(round(requested.answers.mean()))),
        "batch": 1,
    }
    options = weights, kv, dtype, None, price, context, software
    setup = Setup.read(asked, hardware, lengths, *options)
    requested = within_context(requested, setup.model, trace)
    written, drafting = draft_of(draft, drafted, acceptance, hardware, lengths, options)
    service = Service(
        setup=setup,
        rate=requested.rate if rate is None else rate_of(rate),
        trace=requested.with_hits(hits),
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
    )
    if not (on_progress is None or callable(on_progress)):
        raise InputError(f"on_progress must be a function; got {abbreviated(on_progress)}")
    tell = (lambda done, total: None) if on_progress is None else on_progress
    found, refused = search.designs(service, tell)
    return ServicePlan(service, found[0], tuple(found), refused, setup.price, given)
