"""Sentences on a plan of a service: why not another, and what it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from calc.catalog.hardware import dtype_of
from calc.core.units import quantity
from calc.planning.service.asked import TIMES, seconds
from calc.planning.service.design import Design
from calc.planning.setup import devices_text, layout_text
from calc.steps.expectation import Missing

if TYPE_CHECKING:
    from calc.planning.service.answer import ServicePlan


def why_not_others(plan: ServicePlan) -> Iterator[str]:
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


def what_would_change(plan: ServicePlan) -> Iterator[str]:
    """Yield what would make it another answer, by the closed form."""
    service = plan.service
    if plan.design.most >= service.rate:
        most = f"{plan.most_requests:.3g}"
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


def assumptions(plan: ServicePlan) -> Iterator[str]:
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
    if (found := design.pools[0].found) is not None:
        shares = zip(("the devices' memory", "the host's", "disks"), found, strict=True)
        where = ", ".join(f"{share:.1%} in {place}" for place, share in shares)
        yield (
            f"Of the tokens of prompts {sum(found):.1%} are found again: {where}, which keep"
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
    if setup.power is not None:
        yield f"Each device draws {setup.power} all the time, whatever its load."
