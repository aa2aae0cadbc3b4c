"""A plan of a service: its pools, what requests meet and cost, and how it is printed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from calc.catalog import engines, intervals
from calc.catalog.hardware import dtype_of
from calc.catalog.intervals import Around, Interval, cuts
from calc.core.arrays import numpy
from calc.core.errors import InputError, abbreviated
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning import drawing, plan_files
from calc.planning.assumptions import drawn_at_work, not_to_be_had
from calc.planning.estimate import ENERGIES
from calc.planning.plan_report import chosen_formats
from calc.planning.results import of_a_token
from calc.planning.service import design_search
from calc.planning.service.asked import PAID, TIMES, Service, seconds
from calc.planning.service.deployment import Deployment
from calc.planning.service.design import Design
from calc.planning.service.manifests import Manifests
from calc.planning.service.queue import UnderLoad
from calc.planning.setup import devices_text, layout_text
from calc.steps import device_memory, device_power
from calc.steps.device_power import NOTHING, Power
from calc.steps.expectation import Missing

POINTS = 40  # of a curve


@dataclass(frozen=True, eq=False, repr=False)
class ServicePlan(Answer):
    """The pools of a service, what its requests meet, and what it costs; `print` shows it.

    `load` is by the closed form, from the times of steps that are expected; `design.run` is the
    simulation that decided.
    """

    _SENTENCES = (
        ("why_not_others", "Why not another design"),
        ("what_would_change", "What would change it"),
        ("assumptions", "Assumed"),
    )

    service: Service
    design: Design
    designs: tuple[Design, ...]
    """All designs that were found, the one that is taken first."""
    refused: dict[str, str] = field(default_factory=dict)
    """Groups of devices that can serve no request within the limits, and why."""
    given: Mapping[str, object] = field(default_factory=dict)
    """What `plan_service` was asked, by the flat names of its options."""

    @property
    def price(self) -> Quantity | None:
        """Price of a device; None where none was given."""
        return self.service.setup.price

    @property
    def devices(self) -> int:
        return self.design.devices

    @property
    def load(self) -> UnderLoad:
        """Return what requests meet by the closed form."""
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
    def agents(self) -> float | None:
        """Agents at work at once, whose sessions make the rate; None without sessions of turns."""
        return self._agents_at(self.service.rate)

    @property
    def most_agents(self) -> float | None:
        """The most of them whom these devices serve within the limits, by the closed form."""
        return self._agents_at(self.design.most)

    def _agents_at(self, rate: float) -> float | None:
        sessions = self.service.sessions
        return None if sessions is None or sessions.turns == 1 else sessions.agents(rate)

    @cached_property
    def least_devices(self) -> int:
        """The fewest devices with which any program could keep the limits, at published rates."""
        least = math.inf
        for design in sorted(self.designs, key=_one_of_each):
            if _one_of_each(design) >= least:
                break  # nor do designs of larger groups take fewer
            needed = sum(pool.least_copies * pool.size for pool in design.pools)
            least = min(least, needed)
        return int(least)

    @property
    def throughput(self) -> Quantity:
        """Tokens that all answers together have in a second."""
        return quantity(self.service.rate * self.service.demand.answer, "token/s")

    @property
    def cost_per_token(self) -> Quantity | None:
        """Price of a written token at this rate; None where no price was given."""
        return self._of_a_token["cost_per_token"]

    @property
    def device_energy_per_token(self) -> Quantity | None:
        """Energy of a written token that devices take themselves; None without a power of them."""
        return self._of_a_token["device_energy_per_token"]

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a written token at this rate; None where no power is published."""
        return self._of_a_token["energy_per_token"]

    @property
    def carbon_per_token(self) -> Quantity | None:
        """Emissions of a written token at this rate; None where no grid is given."""
        return self._of_a_token["carbon_per_token"]

    @cached_property
    def power(self) -> Power | None:
        """The mean of what a device draws, and its share of the machine; None where unpublished."""
        powers = [(pool.devices, pool.power) for pool in self.design.pools]
        drawn = [(count / self.devices, power) for count, power in powers if power is not None]
        if not drawn:
            return None
        device = sum((share * power.device for share, power in drawn), NOTHING)
        return Power(device, drawn[0][1].rest)

    @cached_property
    def _of_a_token(self) -> dict[str, Quantity | None]:
        """Return what a token takes of all devices, whatever they do."""
        return self._of_devices(self.devices, self.power)

    def _of_devices(self, count: float, power: Power | None) -> dict[str, Quantity | None]:
        everything = replace(self.service.setup, devices=quantity(float(count), ""))
        return of_a_token(everything, self.throughput, power)

    def frontier(self, tpot: QuantityLike) -> Quantity:
        """Device time of a written token under other limits on TPOT, by the closed form.

        The least of all designs at full load, in a service of so many copies that parts of one
        count; infinite where no design keeps the limit.
        """
        limits = quantity(tpot)
        if not limits.is_compatible_with("s") or not numpy.all(limits.m_as("s") > 0):
            raise InputError(f'tpot must be positive times, as in "50 ms"; got {abbreviated(tpot)}')
        times = numpy.asarray(limits.m_as("s"), dtype=float)
        needed = list(design_search.frontier(self.service, times.ravel().tolist()))
        paid = numpy.reshape(needed, times.shape) / self.service.demand.answer
        return quantity(paid if times.ndim else float(paid), "s/token")

    @property
    def alike(self) -> Interval | None:
        """Return how far published rows like its steps are off; None where nothing is expected."""
        parts = self.design.pools[-1].answers.parts
        return None if parts is None else parts.alike

    @property
    def basis(self) -> str:
        """Return what it stands on: measured rates, rates of kin, published peaks alone."""
        parts = self.design.pools[-1].answers.parts
        return intervals.PEAKS if parts is None else parts.basis

    @property
    def interval(self) -> dict[str, tuple[Quantity, Quantity]]:
        return {name: around.ends for name, around in self.around.items()}

    @cached_property
    def around(self) -> dict[str, Around]:
        """Between what devices, times and costs lie if steps are as 80 % of rows like them are.

        Devices are those of the same groups, infinitely many where none keep the limits; times are
        those of the devices that are taken.
        """
        if self.alike is None or self.design.simulated is None:
            return {}
        paces, asked, load = self.paces, self.service, self.load
        ttft, tpot = self.design.simulated
        # What the simulation takes longer than the closed form, it takes longer at any pace.
        as_simulated = replace(
            asked,
            ttft=asked.ttft * min(1.0, load.ttft / ttft),
            tpot=asked.tpot * min(1.0, load.tpot / tpot),
        )
        design = self.design.for_service(as_simulated)
        fewer, more = (design.devices_at_pace(pace) or math.inf for pace in paces)
        least = max(self.least_devices, min(fewer, self.devices))
        counts = float(least), float(max(more, self.devices))
        ranges = {"devices": _around(self.devices, *counts, self.least_devices)}
        for name, simulated in zip(TIMES, self.design.simulated, strict=True):
            slower = (getattr(self.design.at_pace(pace).load, name) for pace in paces)
            scale = simulated / getattr(self.load, name)
            low, high = (scale * time for time in slower)
            least = self.least_times[name]
            ranges[name] = _around(simulated, max(low, least), high, least, "s")
        if self.cost_per_token is not None:
            share, bound = self.cost_per_token / self.devices, float(self.least_devices)
            ends = (share * count for count in (*counts, bound))
            ranges["cost_per_token"] = Around(self.cost_per_token, *ends)
        return ranges | self._around_energies(*(count / self.devices for count in counts))

    def _around_energies(self, fewer: float, more: float) -> dict[str, Around]:
        """The ranges of energies: of devices as their number, and of their power as of loads."""
        setup = self.service.setup
        if self.power is None:
            return {}
        ends = device_power.between(setup.machine, self.power, setup.in_machine)
        bounds = self._of_devices(self.least_devices, device_power.idle(setup.machine))
        ranges = {}
        for name, which in ENERGIES.items():
            if (value := getattr(self, name)) is not None:
                expected = getattr(self.power, which)
                low, high = ((getattr(end, which) / expected).m_as("") for end in ends)
                factors = intervals.of_both((fewer, more), (low, high))
                ranges[name] = intervals.around(value, *factors, bounds[name])
        return ranges

    @cached_property
    def step(self) -> Around | None:
        """The range of a step of its batch: as 80 % of rows like it, and not below its bound."""
        if self.alike is None:
            return None
        pool = self.design.pools[-1]
        batch = pool.load.batch
        count = max(1, round(batch)) if batch < pool.replica.slots else pool.replica.slots
        step = count, count * pool.demand.length
        taken = float(pool.replica.steps.time(*step))
        least = min(taken, float(pool.answers.lower(*step)))
        return self.alike.around(quantity(taken, "s"), quantity(least, "s"))

    @cached_property
    def paces(self) -> tuple[float, ...]:
        """Return the ends of that range as factors of the step."""
        if self.step is None:
            return ()
        return tuple(float((end / self.step.expected).m_as("")) for end in self.step.ends)

    @cached_property
    def least_times(self) -> dict[str, float]:
        """Seconds of both times that no program beats with these devices.

        What is simulated of them may wait less than the closed form says, and so may its bound.
        """
        pools = self.design.pools
        least = {
            name: max(float(getattr(peak.load, name)) for peak in pools[-index].at_peaks)
            for index, name in enumerate(TIMES)
        }
        if self.design.simulated is not None:
            for name, simulated in zip(TIMES, self.design.simulated, strict=True):
                least[name] *= min(1.0, simulated / getattr(self.load, name))
        return least

    @property
    def answer(self) -> str:
        setup = self.service.setup
        ends = self.around.get("devices")
        around = f" ({ends.told(str(self.devices))} at 80%)" if ends else " at least"
        paid = "" if self.cost_per_token is None else f", {self.cost_per_token:.3g}"
        name = setup.called or setup.model.name
        return f"{name}: {self.devices}{around} {setup.device.name}, {self.design}{paid}"

    @property
    def stands_on(self) -> str:
        answers = self.design.pools[-1].answers
        if answers.parts is None:
            why = str(answers.expected).partition(": ")[0]
            return f"BOUND ONLY, {intervals.PEAKS}, no overlap: {why}"
        titles = {"devices": "devices", "ttft": "first token", "tpot": "each token"}
        ranges = {title: self.around.get(name) for name, title in titles.items()}
        cut = cuts({"a step": self.step, **ranges})
        return f"{answers.parts.stands_on}{', which are of steps' if self.alike else ''}{cut}"

    @property
    def chosen(self) -> list[str]:
        service, setup = self.service, self.service.setup
        chunk = self.design.pools[-1].replica.chunk
        clauses = [f"steps of {chunk} tokens at most"] if service.chunk is None else []
        if not service.recorded and service.trace.lengths_differ:
            clauses.append("lengths drawn at random")
        return [*clauses, *chosen_formats(setup)]

    @property
    def caveats(self) -> list[str]:
        sentences = list(not_to_be_had(self.service.setup.device))
        sessions, run = self.service.sessions, self.design.run
        if self.agents is not None and sessions is not None and run is not None:
            taken = float((run.done - run.arrivals).mean())
            if taken > sessions.think:
                sentences.append(
                    f"An answer takes {seconds(taken)} on average, longer than the"
                    f" {seconds(sessions.think)} from a turn to the next: give a longer think, with"
                    " the answer in it."
                )
        length = math.ceil(self.service.setup.context.magnitude)
        jobs = dict.fromkeys(pool.answers.asked for pool in self.design.pools)
        sentences += filter(None, (device_memory.of(job, length).doubt for job in jobs))
        if "devices" in self.interval and not math.isfinite(self.interval["devices"][1].magnitude):
            sentences.append(
                "At the slow end of the 80% no number of these groups keeps the limits."
            )
        return sentences

    @cached_property
    def tables(self) -> list[Table]:
        return [Table(list(_met(self))), Table(list(_designs(self)), "Designs", detail=True)]

    def rows(self) -> list[dict[str, object]]:
        return list(map(_row, self.designs))

    @cached_property
    def facts(self) -> dict[str, object]:
        return {
            "rows": self.rows(),
            "design": str(self.design),
            **values(self, "devices least_devices ttft tpot"),
            "closed_form": self.load,
            **values(self, f"most_requests agents most_agents throughput {' '.join(PAID)}"),
            "basis": self.basis,
            "step": None if self.step is None else self.step.facts,
            "interval": {name: around.facts for name, around in self.around.items()},
            **self.headline,
            **values(self, "why_not_others what_would_change assumptions"),
        }

    @cached_property
    def why_not_others(self) -> tuple[str, ...]:
        """Return why the other groups and pools lose, a sentence each."""
        return tuple(_why_not_others(self))

    @cached_property
    def what_would_change(self) -> tuple[str, ...]:
        """Return what would make it another answer, a sentence each, by the closed form."""
        return tuple(_what_would_change(self))

    def _assumptions(self) -> Iterator[str]:
        return _assumptions(self)

    def draw(self) -> drawing.Figure:
        """A figure of matplotlib: both times against the rate, by the closed form, with limits."""
        service, design = self.service, self.design
        rates = numpy.linspace(0.02, 1.25, POINTS) * max(design.most, service.rate)
        loads, *others = (
            [paced.at_rate(float(rate)).load for rate in rates]
            for paced in (design, *map(design.at_pace, self.paces))
        )
        shown = (("ttft", "First token (s)", 1.0), ("tpot", "Each token (ms)", 1e3))
        panels = [
            drawing.Panel(
                f"{title}, {100 * service.percentile:g} %",
                [scale * getattr(load, name) for load in loads],
                scale * getattr(service, name),
                None if design.simulated is None else scale * design.simulated[index],
                [[scale * getattr(load, name) for load in paced] for paced in others],
            )
            for index, (name, title, scale) in enumerate(shown)
        ]
        return drawing.panels(f"{service.setup.model.name}: {design}", rates, service.rate, panels)

    def deployment(self, engine: str) -> Deployment:
        """The commands that start these servers with an engine: "vllm", "sglang 0.5.10", "trtllm".

        >>> from calc import Limits, Load, plan_service
        >>> plan = plan_service("llama-3-1-8b", "h100", Load(10, prompt=1000, generated=200),
        ...                     Limits("1 s", "50 ms"), pools="mixed")
        >>> plan.deployment("vllm").commands[0][:43]
        'vllm serve meta-llama/Llama-3.1-8B-Instruct'
        """
        starting = engines.starting_as(engine, self.service.setup.software.title())
        return Deployment(self.design, self.answer, self.given, starting)

    def manifests(self, engine: str, platform: str = "manifests") -> Manifests:
        """Return the same servers as manifests of Kubernetes, or for a platform on it.

        Parameters
        ----------
        engine
            vllm, sglang or trtllm, with a version or without
        platform
            "manifests" for Kubernetes alone; "kserve", "dynamo" or "llm-d", which route themselves

        Examples
        --------
        >>> from calc import Limits, Load, plan_service
        >>> plan = plan_service("llama-3-1-8b", "h100", Load(10, prompt=1000, generated=200),
        ...                     Limits("1 s", "50 ms"), pools="mixed")
        >>> [each["kind"] for each in plan.manifests("vllm").documents]
        ['Deployment', 'Service']
        >>> [each["kind"] for each in plan.manifests("vllm", "kserve").documents]
        ['LLMInferenceService']
        """
        return Manifests(self.deployment(engine), platform)

    def to_toml(self) -> str:
        setup = self.service.setup
        return plan_files.options_text(
            {**self.given, "model": setup.model, "hardware": setup.machine}
        )

    def __repr__(self) -> str:
        setup = self.service.setup
        return f"<{setup.model.name} served by {self.devices} {setup.device.name}: {self.design}>"


def _around(expected: float, low: float, high: float, bound: float, unit: str = "") -> Around:
    """A range of bare numbers of a unit."""
    return Around(*(quantity(float(number), unit) for number in (expected, low, high, bound)))


def _one_of_each(design: Design) -> int:
    """Devices of one copy in each pool, which no design does without."""
    return sum(pool.size for pool in design.pools)


def _met(plan: ServicePlan) -> Iterator[tuple[str, ...]]:
    service, simulated = plan.service, plan.design.simulated or (0.0, 0.0)
    demand, at = service.demand, f"{100 * service.percentile:g} %"
    rate = quantity(float(f"{service.rate:.4g}"), "request/s")
    asked = f"{rate}, {_tokens(demand.prompt)} + {_tokens(demand.answer)} tokens"
    yield asked, "limit", "simulated", "80% of rows", "at least"
    for name, title, time in zip(TIMES, ("first token", "each token"), simulated, strict=True):
        taken, limit = seconds(time), seconds(getattr(service, name))
        least = f"≥ {seconds(plan.least_times[name])}"
        yield f"{title}, {at}", limit, taken, _told(plan, name, taken), least
    if (shares := plan.design.pools[0].found) is not None:
        yield "prefixes found again", "", f"{sum(shares):.0%}", "", ""
    if plan.agents is not None:
        yield "agents at once", "", f"{plan.agents:.4g}", "", ""
    count, least = str(plan.devices), f"{plan.least_devices} at least"
    yield "devices", "", count, _told(plan, "devices", count), least
    yield "busy", "", f"{plan.load.busy:.0%}", "", ""
    yield "batch of a replica", "", f"{plan.load.batch:.3g}", "", ""
    yield "throughput", "", str(plan.throughput), "", ""
    for name, title in PAID.items():
        if (value := getattr(plan, name)) is not None:
            yield title, "", str(value), _told(plan, name, str(value)), ""


def _told(plan: ServicePlan, name: str, text: str) -> str:
    """Both ends in the unit in which the value between them is told."""
    return plan.around[name].told(text) if name in plan.around else ""


def _designs(plan: ServicePlan) -> Iterator[tuple[str, ...]]:
    yield "devices", "design", "chunk", "closed form", "", "simulated", "", "busy"
    for design in plan.designs:
        load, chunk = design.load, str(design.pools[-1].replica.chunk)
        simulated = ("–", "–") if design.simulated is None else map(seconds, design.simulated)
        times = (seconds(load.ttft), seconds(load.tpot), *simulated)
        yield (str(design.devices), str(design), chunk, *times, f"{load.busy:.0%}")


def _row(design: Design) -> dict[str, object]:
    """A design with plain keys."""
    pools, load, simulated = design.pools, design.load, design.simulated or (None, None)
    degrees = {"tensor": "tensor", "copies": "data", "stages": "pipeline", "experts": "experts"}
    times: dict[str, Any] = values(load, "ttft tpot")
    times |= {"simulated_ttft": simulated[0], "simulated_tpot": simulated[1]}
    return {
        "design": str(design),
        "devices": design.devices,
        "pools": len(pools),
        "replicas": [pool.count for pool in pools],
        **{name: [getattr(pool.group, of) for pool in pools] for name, of in degrees.items()},
        "chunk": pools[-1].replica.chunk,
        **{name: None if time is None else quantity(time, "s") for name, time in times.items()},
        **values(load, "batch busy"),
        "rate_within_limits": quantity(design.most, "request/s"),
        "preempted": None if design.run is None else design.run.preempted,
    }


def _tokens(count: float) -> str:
    return str(quantity(float(f"{count:.3g}"), ""))


# --- sentences: why not another, and what it stands on ---


def _why_not_others(plan: ServicePlan) -> Iterator[str]:
    """Yield why the other groups and pools lose."""
    yield from (_why_not(plan, design) for design in plan.designs[1:])
    for group, why in plan.refused.items():
        yield f"{group} serves nobody within the limits: {why}."


def _why_not(plan: ServicePlan, design: Design) -> str:
    """Return what a design needs more, or which limit it does not keep."""
    simulated, needed = design.simulated, f"takes {devices_text(design.devices)}"
    if simulated is None:
        reason = f"{needed} by the closed form"
    elif design.keeps:
        reason = f"{needed} in the simulation"
    else:
        late = simulated[0] > plan.service.ttft
        name, time = ("TTFT", simulated[0]) if late else ("TPOT", simulated[1])
        reason = f"a {name} of {seconds(time)} in the simulation"
    rates = " and ".join(
        f"one of {layout_text(pool.group)} takes {quantity(pool.most, 'request/s'):.3g}"
        for pool in design.pools
    )
    return f"{design}: {reason}; {rates} within the limits, by the closed form."


def _what_would_change(plan: ServicePlan) -> Iterator[str]:
    """Yield what would make it another answer, by the closed form."""
    service = plan.service
    if plan.design.most >= service.rate:
        most = f"{plan.most_requests:.3g}"
        agents = plan.most_agents
        most += "" if agents is None else f", {agents:.3g} agents at once,"
        yield f"Up to {most} the same devices keep the limits, by the closed form."
    for name, title in TIMES.items():
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            limit = factor * getattr(service, name)
            asked = replace(service, **{name: limit})
            needed = plan.design.for_service(asked).devices_at_pace(1.0)
            if needed is not None:  # longer limits take no more, and shorter ones no fewer
                needed = (min if factor > 1 else max)(needed, plan.devices)
            takes = "cannot be kept" if needed is None else f"takes {devices_text(needed)}"
            limited = f"A {title} of {seconds(limit)}, {word} the limit"
            yield f"{limited}, {takes} in the same groups."


def _assumptions(plan: ServicePlan) -> Iterator[str]:
    """Yield what its numbers stand on."""
    service, setup, design = plan.service, plan.service.setup, plan.design
    expected = design.pools[-1].answers.expected
    yield from (f"{setup.model.name}: {note}." for note in setup.model.notes)
    yield (
        f"Products are computed in {dtype_of(setup.dtype).upper()}, and"
        f" {setup.software.memory_share:.0%} of memory holds weights and caches; cut over more"
        " devices than it has heads, a cache is there more than once."
    )
    if isinstance(expected, Missing):
        yield f"Steps take their upper bound at published rates: {expected}."
    else:
        yield (
            "Steps take what kernels and messages were measured to reach on"
            f" {setup.machine.name}, or on the machine most like it, with"
            f" {setup.software.title()}; published rates bound them."
        )
    if any(pool.group.data > 1 for pool in design.pools):
        yield (
            "Copies of attention that share experts out (DP) have queues of their own, and each"
            " step finds all of them loaded alike."
        )
    count = 0 if design.run is None else len(design.run.arrivals)
    yield (
        f"The simulation has {count} requests of one replica of each pool, after"
        " those that found its batch filling; a replica gets its share at random."
        if not service.recorded
        else f"The simulation has {count} requests of the trace, of which replicas take turns."
    )
    yield (
        "A request is let in first come, first served, when memory holds its prompt; the one"
        " that was let in last gives its memory up when it is full, and is read again. At most"
        f" {service.slots} sequences are in a batch."
    )
    yield (
        "The closed form adds tails of waits as if each were alone, and its percentiles are"
        " estimates; the simulation decides."
    )
    if len(design.pools) > 1:
        yield (
            f"The cache of a prompt takes {seconds(design.pools[-1].transfer)} from one pool to"
            " the other, after its first token, through the ports of the smallest group."
        )
    if (prefixes := design.pools[0].found) is not None:
        shares = zip(("the devices' memory", "the host's", "disks"), prefixes, strict=True)
        where = ", ".join(f"{share:.1%} in {tier}" for tier, share in shares)
        yield (
            f"Of the tokens of prompts {sum(prefixes):.1%} are found again: {where}, which keep"
            " what was used last in the room that the running batch leaves; by the closed form"
            " all that was ever computed is found."
        )
    if service.hit_rate:
        yield (
            f"{service.hit_rate:.0%} of each prompt is found in a prefix cache; memory holds"
            " every request's own copy of it."
        )
    if service.draft is not None:
        yield (
            f"{service.draft.model.name} drafts {service.drafted} tokens, of which a pass keeps"
            f" {service.written - 1:.3g} on average, for all requests alike."
        )
    yield from drawn_at_work(setup, "in its mean step, and idle while no request is there")
