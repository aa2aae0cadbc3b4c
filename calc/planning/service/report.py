"""A plan of a service as people read it: its table, its designs, its figure, what it stands on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from calc.catalog.hardware import dtype_of
from calc.core.formatting import columns, html_table
from calc.core.units import quantity
from calc.planning.drawing import COLORS, INK, STYLE, loaded_matplotlib
from calc.planning.service.asked import Service, seconds
from calc.planning.service.design import Design, limits_of
from calc.planning.service.plan import ServicePlan

POINTS = 40  # of a curve


def _above(plan: ServicePlan) -> tuple[str, ...]:
    service, setup = plan.service, plan.service.setup
    demand = service.demand
    rate = quantity(float(f"{service.rate:.4g}"), "request/s")
    prompt, answer = _tokens(demand.prompt), _tokens(demand.answer)
    return (
        f"{setup.model.name} on {plan.devices} {setup.device.name} ({setup.machine.name})",
        f"{rate}, {prompt} prompt and {answer} generated tokens on average",
        f"{plan.design}, steps of {plan.design.pools[-1].replica.chunk} tokens at most",
    )


def _tokens(count: float) -> str:
    return str(quantity(float(f"{count:.3g}"), ""))


def _rows(plan: ServicePlan) -> list[tuple[str, ...]]:
    design, load, service = plan.design, plan.load, plan.service
    at = f"{100 * service.percentile:g} %"
    first, rest = design.simulated or (0.0, 0.0)
    upper = _published(design)
    batch = f"{load.batch:.3g} a replica"
    rows: list[tuple[str, ...]] = [
        ("", "limit", "simulated", "closed form", "published rates"),
        (f"first token, {at}", seconds(service.ttft), seconds(first), seconds(load.ttft), upper[0]),
        (f"each token, {at}", seconds(service.tpot), seconds(rest), seconds(load.tpot), upper[1]),
        ("sequences in decode", "", "", batch, ""),
        ("busy", "", "", f"{load.busy:.0%}", ""),
        ("rate within limits", "", "", f"{plan.most_requests:.4g}", ""),
        ("devices", "", str(plan.devices), "", f"{plan.least_devices} at least"),
        ("throughput", "", str(plan.throughput), "", ""),
    ]
    for title, value in (("cost", plan.cost_per_token), ("energy", plan.energy_per_token)):
        if value is not None:
            rows.append((title, "", str(value), "", ""))
    return rows


def _published(design: Design) -> tuple[str, str]:
    """Both times at published rates: with all parts at once and with none."""
    found = []
    for place, name in ((0, "ttft"), (-1, "tpot")):
        pool = design.pools[place]
        steps = [*pool.answers.published.values()]
        loads = [
            replace(pool, replica=replace(pool.replica, steps=each)).load
            for each in (*steps, pool.answers.upper)
        ]
        *parts, upper = (getattr(each, name) for each in loads)
        found.append(f"{seconds(max(parts))} – {seconds(upper)}")
    return found[0], found[1]


def _designs(plan: ServicePlan) -> list[tuple[str, ...]]:
    titles = ("devices", "design", "chunk", "closed form", "", "simulated", "", "busy")
    lines: list[tuple[str, ...]] = [titles]
    for each in plan.designs:
        load, run = each.load, each.simulated
        times = (seconds(load.ttft), seconds(load.tpot))
        found = ("–", "–") if run is None else (seconds(run[0]), seconds(run[1]))
        chunk = str(each.pools[-1].replica.chunk)
        lines.append((str(each.devices), str(each), chunk, *times, *found, f"{load.busy:.0%}"))
    return lines


def table(plan: ServicePlan) -> str:
    """The plan as lines of text, with the designs below it."""
    return "\n".join([*_above(plan), *columns(_rows(plan)), "", *columns(_designs(plan))])


def html(plan: ServicePlan) -> str:
    """The same for a notebook, without the designs."""
    return html_table(_above(plan), _rows(plan))


def rows(plan: ServicePlan) -> list[dict[str, Any]]:
    """The designs with plain keys, for programs."""
    return [
        {
            "design": str(each),
            "devices": each.devices,
            "pools": len(each.pools),
            "replicas": [pool.count for pool in each.pools],
            "tensor": [pool.group.devices for pool in each.pools],
            "experts": [pool.group.experts for pool in each.pools],
            "chunk": each.pools[-1].replica.chunk,
            "ttft": quantity(each.load.ttft, "s"),
            "tpot": quantity(each.load.tpot, "s"),
            "simulated_ttft": None if each.simulated is None else quantity(each.simulated[0], "s"),
            "simulated_tpot": None if each.simulated is None else quantity(each.simulated[1], "s"),
            "batch": each.load.batch,
            "busy": each.load.busy,
            "rate_within_limits": quantity(each.most, "request/s"),
            "preempted": None if each.run is None else each.run.preempted,
        }
        for each in plan.designs
    ]


def why_not_others(plan: ServicePlan) -> Iterator[str]:
    """Of each other design what it needs more, and of each group that serves nobody why."""
    service = plan.service
    for each in plan.designs[1:]:
        rates = " and ".join(
            f"one of {pool.group} takes {quantity(pool.most, 'request/s'):.3g}"
            for pool in each.pools
        )
        found = each.simulated
        if found is None:
            told = f"takes {_devices(each.devices)} by the closed form"
        elif each.keeps:
            told = f"takes {_devices(each.devices)} in the simulation"
        else:
            late = found[0] > service.ttft
            name, time = ("TTFT", found[0]) if late else ("TPOT", found[1])
            told = f"a {name} of {seconds(time)} in the simulation"
        yield f"{each}: {told}; {rates} within the limits, by the closed form."
    for group, why in plan.refused.items():
        yield f"{group} serves nobody within the limits: {why}."


def changes(plan: ServicePlan) -> Iterator[str]:
    """From which rate on it needs more, and what other limits would need; by the closed form."""
    service, design = plan.service, plan.design
    yield f"Up to {plan.most_requests:.3g} the same devices keep the limits, by the closed form."
    for name, title in (("ttft", "TTFT"), ("tpot", "TPOT")):
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            limit = factor * getattr(service, name)
            needed = _needed(design, replace(service, **{name: limit}))
            told = "cannot be kept" if needed is None else f"takes {_devices(needed)}"
            yield f"A {title} of {seconds(limit)}, {word} the limit, {told} in the same groups."


def _needed(design: Design, service: Service) -> int | None:
    """How many devices the same groups need under other limits, by the closed form."""
    needed = 0
    for pool in design.pools:
        limits = limits_of(service, pool.does)
        most = pool.replica.most(pool.demand, service.percentile, *limits)
        if not most:
            return None
        needed += math.ceil(service.rate / most) * pool.group.devices
    return needed


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def assumptions(plan: ServicePlan) -> Iterator[str]:
    """What the numbers stand on."""
    service, setup, design = plan.service, plan.service.setup, plan.design
    expected = design.pools[-1].answers.expected
    yield (
        f"Products are computed in {dtype_of(setup.dtype).upper()}, and"
        f" {setup.software.memory_share:.0%} of memory holds weights and caches; cut over more"
        " devices than it has heads, a cache is there more than once."
    )
    if isinstance(expected, str):
        yield f"Steps take their upper bound at published rates: {expected}."
    else:
        program = setup.software.name if setup.software.key else "no software's own time"
        yield (
            f"Steps take what kernels and messages were measured to reach on {setup.machine.name},"
            f" or on the machine most like it, with {program}; published rates bound them."
        )
    count = 0 if design.run is None else len(design.run.arrivals)
    yield (
        f"The simulation has {count} requests of one replica of each pool, after"
        " those that found its batch filling; a replica gets its share at random."
        if not service.recorded
        else f"The simulation has {count} requests of the trace, of which replicas take turns."
    )
    yield (
        "A request is let in first come, first served, when memory holds its prompt; the one that"
        " was let in last gives its memory up when it is full, and is read again. At most"
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
    if setup.power is not None:
        yield f"Each device draws {setup.power} all the time, whatever its load."


def draw(plan: ServicePlan) -> Any:
    """Both times against the rate by the closed form, with the limits and what was simulated."""
    import numpy

    matplotlib = loaded_matplotlib()
    service, design = plan.service, plan.design
    rates = numpy.linspace(0.02, 1.25, POINTS) * max(design.most, service.rate)
    loads = [design.at_rate(float(each)).load for each in rates]
    curve, point = COLORS[:2]
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(6.4, 5.2), layout="constrained")
        above, below = figure.subplots(2, sharex=True)
        panels = (
            (above, "ttft", "First token (s)", 1.0, 0),
            (below, "tpot", "Each token (ms)", 1e3, 1),
        )
        for axes, name, title, scale, place in panels:
            times = [scale * getattr(each, name) for each in loads]
            axes.plot(rates, times, color=curve, label="closed form")
            limit = scale * getattr(service, name)
            axes.axhline(limit, color=INK, linestyle="--", linewidth=1, label="limit")
            if design.simulated is not None:
                at = scale * design.simulated[place]
                axes.plot([service.rate], [at], "o", color=point, label="simulated")
            axes.set_ylim(0, 2 * limit)
            axes.set_ylabel(f"{title}, {100 * service.percentile:g} %")
        above.set_title(f"{service.setup.model.name}: {design}", fontsize="medium")
        above.legend(frameon=False)
        below.set_xlabel("Requests a second")
    return figure
