"""A comparison as people read it: its ranks, its bounds, and what stands behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from calc.core.units import Quantity, quantity
from calc.planning import report
from calc.planning.capacity import linked_counts, with_devices
from calc.planning.comparing.compare import BY, UPPER, devices
from calc.planning.report import RANGES

if TYPE_CHECKING:
    from calc.planning.comparing.compare import Comparison, Entry
    from calc.planning.serving import Plan

SHOWN = (*BY.values(),)
TITLES = {
    "cost": "cost",
    "energy": "energy",
    "tpot": "time per token",
    "ttft": "time to the first token",
    "throughput": "throughput",
}


def rows(found: Comparison) -> list[dict[str, Any]]:
    """An entry each, with plain keys."""
    listed = []
    for rank, entry in enumerate(found.entries, 1):
        named = {"model": entry.model.key, "machine": entry.machine.key}
        if entry.curve:
            [point] = report.points(found.plan_of(entry))
            front = [int(each.batch.magnitude) for each in found.front.get(entry, ())]
            listed.append({"rank": rank, **named, **point, "front": front, "reason": None})
        else:
            listed.append({"rank": None, **named, "reason": entry.reason})
    return listed


def tables(found: Comparison) -> tuple[Any, ...]:
    """The title, the table of what is compared, that of the bounds, and what else is expected."""
    shown = [name for name in RANGES if name in SHOWN and found.has(name)]
    heads = [f"{RANGES[name][0]} ({RANGES[name][1]})" for name in shown]
    ranked: list[tuple[str, ...]] = [
        ("", *_kinds(found), "devices", "batch", *heads, "on the front")
    ]
    bounds: list[tuple[str, ...]] = [("bounds", *_kinds(found), *heads, "what binds")]
    expected: list[tuple[str, ...]] = [("expected", *_kinds(found), *heads)]
    for rank, entry in enumerate(found.entries, 1):
        if not entry.curve:
            ranked.append(("–", *_named(found, entry), *[""] * (2 + len(shown)), entry.reason))
            continue
        plan = found.plan_of(entry)
        values = [_text(found.value(plan, name), name) for name in shown]
        ranked.append(
            (
                str(rank),
                *_named(found, entry),
                str(plan.devices),
                str(plan.batch),
                *values,
                _batches(found.front.get(entry, ())),
            )
        )
        ranges = [_range(getattr(plan, name), name) for name in shown]
        bounds.append(("", *_named(found, entry), *ranges, str(plan.binds)))
        if found.basis == UPPER and plan.expected is not None:
            known = [_text(plan.expected.get(name), name) for name in shown]
            expected.append(("", *_named(found, entry), *known))
    return _title(found), *(each for each in (ranked, bounds, expected) if len(each) > 1)


def _title(found: Comparison) -> str:
    models = {each.model.name for each in found.entries}
    places = {each.machine.name for each in found.entries}
    one = [next(iter(names)) for names in (models, places) if len(names) == 1]
    words = [", ".join(one)] if one else []
    if found.planned:
        asked = found.planned[0].curve[0]
        words.append(f"{asked.prompt} prompt and {asked.generated} generated tokens")
    words += [f"{name} at most {limit}" for name, limit in found.limits.items()]
    return f"{'; '.join(words)}; ranked by {TITLES[found.by]}, {found.basis}"


def _kinds(found: Comparison) -> tuple[str, ...]:
    """Models, machines or both: those of which there are several."""
    models = len({each.model.key for each in found.entries}) > 1
    places = len({each.machine.key for each in found.entries}) > 1
    return (*(["model"] if models else []), *(["machine"] if places or not models else []))


def _named(found: Comparison, entry: Entry) -> tuple[str, ...]:
    return tuple(getattr(entry, kind).key for kind in _kinds(found))


def label(found: Comparison, entry: Entry) -> str:
    """An entry by what tells it from the others.

    >>> from calc import compare
    >>> found = compare(["llama-3-8b", "qwen-3-8b"], "h100", prompt=10, generated=10)
    >>> [label(found, each) for each in found.entries]
    ['Llama 3 8B', 'Qwen3 8B']
    """
    return " on ".join(getattr(entry, kind).name for kind in _kinds(found))


def _batches(plans: tuple[Plan, ...]) -> str:
    batches = sorted(int(each.batch.magnitude) for each in plans)
    ends = dict.fromkeys(map(str, (batches[0], batches[-1]))) if batches else {}
    return f"batch {' to '.join(ends)}" if ends else "–"


def _text(value: Quantity | None, name: str) -> str:
    return "–" if value is None else str(quantity(value.m_as(RANGES[name][1]), ""))


def _range(bounds: Any, name: str) -> str:
    return "–" if bounds is None else " – ".join(_text(each, name) for each in bounds)


def assumptions(found: Comparison) -> Iterator[str]:
    """Of the comparison, of all plans, and of each alone."""
    plans = {entry: found.plan_of(entry) for entry in found.planned}
    yield (
        "Each is on the fewest devices on which it fits and keeps the limits, at the batch that"
        " generates most tokens a second there."
    )
    if found.basis == UPPER:
        unknown = [
            label(found, entry)
            for entry, plan in plans.items()
            if plan.expected is None or plan.expected.missing
        ]
        why = f", since not all is expected of {', '.join(unknown)}" if unknown else ""
        yield f"Ranks and limits go by {UPPER}{why}."
    else:
        yield f"Ranks and limits go by {found.basis}."
    lacking = [entry for entry in plans if entry not in found.has(BY[found.by])]
    if lacking:
        yield (
            f"{', '.join(label(found, each) for each in lacking)}: no {TITLES[found.by]} is known,"
            " so that it stands behind those of which one is."
        )
    if found.paid:
        paid = "cost" if found.paid == "cost_per_token" else "energy"
        yield f"On the front nothing compared has both less {paid} and less time per token."
    hosted = {plan.in_machine for plan in plans.values() if plan.power is not None}
    if len(hosted) > 1:
        alone = [label(found, entry) for entry, plan in plans.items() if not plan.in_machine]
        yield (
            f"Energies are not of one kind: hosts and fans are left out of that of"
            f" {', '.join(alone)}, and in that of the others they are counted."
        )
    told = {entry: plan.assumptions for entry, plan in plans.items()}
    for sentence in next(iter(told.values()), ()):
        if all(sentence in each for each in told.values()):
            yield sentence
    for entry, sentences in told.items():
        for sentence in sentences:
            if not all(sentence in each for each in told.values()):
                yield f"{label(found, entry)}: {sentence}"


def changes(found: Comparison) -> Iterator[str]:
    """Prices that level the ranks, what twice the devices do, and what would fit."""
    if priced := found.has("cost_per_token"):
        costs = {entry: found.value(found.plan_of(entry), "cost_per_token") for entry in priced}
        cheapest = min(priced, key=lambda each: costs[each])
        for entry in found.planned:
            plan = found.plan_of(entry)
            level = costs[cheapest] * found.value(plan, "throughput") / plan.devices
            now = "" if plan.price is None else f" in place of {plan.price.to('USD/hour')}"
            if entry is not cheapest:
                yield (
                    f"At {level.to('USD/hour')} a device{now}, {label(found, entry)} costs as much"
                    f" a token as {label(found, cheapest)}."
                )
    for entry in found.planned:
        plan = found.plan_of(entry)
        count = 2 * int(plan.devices.magnitude)
        if count in linked_counts(plan):
            yield f"{label(found, entry)}: {_with_more(found, plan, with_devices(plan, count))}."
    for entry in found.entries:
        yield from (f"{label(found, entry)}: {each}" for each in entry.ways)


def _with_more(found: Comparison, plan: Plan, other: Plan) -> str:
    told = []
    for name in ("tpot", "cost", "energy"):
        old, new = (found.value(each, BY[name]) for each in (plan, other))
        if old is not None and new is not None:
            told.append(f"{(new / old).m_as(''):#.3g} times the {TITLES[name]}")
    return f"{devices(other)} take for the same batch {', '.join(told)}"
