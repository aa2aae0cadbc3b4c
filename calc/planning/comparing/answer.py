"""A comparison: its entries in the order of their ranks, and how people and programs read it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.errors import InputError
from calc.core.report import Reported, Table, common_first, values
from calc.core.units import Quantity
from calc.planning import drawing, files
from calc.planning.capacity import linked_counts, with_devices
from calc.planning.estimate import RANGES
from calc.planning.report import heading, in_its_unit
from calc.planning.serving import Plan
from calc.planning.setup import devices_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BY = {  # what a ranking may go by, and the field of a plan that it is
    "cost": "cost_per_token",
    "energy": "energy_per_token",
    "tpot": "time_per_token",
    "ttft": "time_to_first_token",
    "throughput": "throughput",
}
TITLES = {
    "cost": "cost",
    "energy": "energy",
    "tpot": "time per token",
    "ttft": "time to the first token",
    "throughput": "throughput",
}
PAID = {"cost_per_token": "Cost", "energy_per_token": "Energy"}
EXPECTED, UPPER = "what is expected", "the bounds without overlap"


@dataclass(frozen=True, eq=False)
class Entry:
    """A model on a machine: its plans, or why there is none."""

    model: Transformer
    machine: Machine
    curve: tuple[Plan, ...] = ()
    """Plans on the same devices at batches that double, as far as the limits are kept."""
    reason: str = ""
    """By how much it does not fit, or which limit it cannot keep."""
    ways: tuple[str, ...] = ()
    """What would make it fit."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Reported):
    """Entries in the order of their ranks; `print` shows them, and `draw` their front.

    `basis` says whether what is expected of all is compared, or the upper bounds of all.
    """

    _SENTENCES = (("assumptions", "Assumed"), ("what_would_change", "What would change it"))

    entries: tuple[Entry, ...]
    by: str
    basis: str
    limits: Mapping[str, Quantity]
    given: Mapping[str, object]
    """What `compare` was asked, by the names of its arguments."""

    @property
    def planned(self) -> tuple[Entry, ...]:
        """The entries that have a plan."""
        return tuple(entry for entry in self.entries if entry.curve)

    @property
    def best(self) -> Plan:
        """The plan of the first rank."""
        return self.plan_of(self.entries[0])

    def plan_of(self, entry: Entry) -> Plan:
        """The plan of an entry at its best batch, the one that writes most tokens a second."""
        if not entry.curve:
            raise InputError(f"{entry.model.name} on {entry.machine.name} {entry.reason}")
        return max(entry.curve, key=lambda plan: self.value(plan, "throughput"))

    def value(self, plan: Plan, name: str) -> Any:
        """What is compared of a plan: an expected quantity or a bound; None without a price."""
        return value_of(plan, name, self.basis)

    def has(self, name: str) -> tuple[Entry, ...]:
        """The entries of which a quantity is known: a cost where there is a price."""
        return tuple(
            entry for entry in self.planned if self.value(entry.curve[0], name) is not None
        )

    @property
    def paid(self) -> str:
        """What the front holds against latency: cost, or energy where no price was given."""
        return next(filter(self.has, PAID), "")

    @cached_property
    def front(self) -> dict[Entry, tuple[Plan, ...]]:
        """The plans of each entry to which no other is both cheaper and faster a token."""
        points = [(entry, plan) for entry in self.has(self.paid) for plan in entry.curve]
        front: dict[Entry, tuple[Plan, ...]] = {}
        least = math.inf
        for entry, plan in sorted(points, key=lambda point: self._place(point[1])):
            if self.price(plan) < least:
                least = self.price(plan)
                front[entry] = (*front.get(entry, ()), plan)
        return front

    def latency(self, plan: Plan) -> float:
        """Time per token in milliseconds."""
        return float(self.value(plan, "time_per_token").m_as("ms"))

    def price(self, plan: Plan) -> float:
        """What a token costs, or takes of energy, in the unit of the table."""
        return float(self.value(plan, self.paid).m_as(RANGES[self.paid][1]))

    def rank(self, entry: Entry) -> tuple[float, ...]:
        """First what was asked for; entries without it go by cost, energy and time per token."""
        if not entry.curve:
            return (1.0,)
        plan, keys = self.plan_of(entry), []
        for name in (BY[self.by], "cost_per_token", "energy_per_token", "time_per_token"):
            value = self.value(plan, name)
            size = math.inf if value is None else value.m_as(RANGES[name][1])
            keys.append(-size if name == "throughput" else size)
        return (0.0, *keys)

    def label(self, entry: Entry) -> str:
        """An entry by what tells it from the others.

        >>> from calc import compare
        >>> comparison = compare(["llama-3-8b", "qwen-3-8b"], "h100", prompt=10, generated=10)
        >>> [comparison.label(entry) for entry in comparison.entries]
        ['Llama 3 8B', 'Qwen3 8B']
        """
        return " on ".join(getattr(entry, kind).name for kind in self._kinds)

    @cached_property
    def title(self) -> list[str]:
        """What is the same for all, and by what they are ranked."""
        models = {entry.model.name for entry in self.entries}
        places = {entry.machine.name for entry in self.entries}
        one = [next(iter(names)) for names in (models, places) if len(names) == 1]
        words = [", ".join(one)] if one else []
        if self.planned:
            first = self.planned[0].curve[0]
            words.append(f"{first.prompt} prompt and {first.generated} generated tokens")
        words += [f"{name} at most {limit}" for name, limit in self.limits.items()]
        return [f"{'; '.join(words)}; ranked by {TITLES[self.by]}, {self.basis}", ""]

    @cached_property
    def tables(self) -> list[Table]:
        """What is compared, the bounds, and what else is expected."""
        names = [name for name in RANGES if name in BY.values() and self.has(name)]
        kinds, heads = self._kinds, [heading(name) for name in names]
        ranked = [("", *kinds, "devices", "batch", *heads, "on the front")]
        bounds = [("bounds", *kinds, *heads, "what binds")]
        expected = [("expected", *kinds, *heads)]
        for rank, entry in enumerate(self.entries, 1):
            keys = [getattr(entry, kind).key for kind in kinds]
            if not entry.curve:
                ranked.append(("–", *keys, *[""] * (2 + len(names)), entry.reason))
                continue
            plan = self.plan_of(entry)
            size = str(plan.devices), str(plan.batch)
            values = [in_its_unit(self.value(plan, name), name) for name in names]
            front = _batches(self.front.get(entry, ()))
            ranked.append((str(rank), *keys, *size, *values, front))
            ranges = [in_its_unit(getattr(plan, name), name) for name in names]
            bounds.append(("", *keys, *ranges, str(plan.binds)))
            if self.basis == UPPER and plan.expected is not None:
                known = [in_its_unit(plan.expected.get(name), name) for name in names]
                expected.append(("", *keys, *known))
        return [Table(rows) for rows in (ranked, bounds, expected) if len(rows) > 1]

    def rows(self) -> list[dict[str, Any]]:
        """An entry each, by its rank, with what its plan says, or the reason for none."""
        rows = []
        for rank, entry in enumerate(self.entries, 1):
            keys = {"model": entry.model.key, "machine": entry.machine.key}
            if entry.curve:
                [point] = self.plan_of(entry).points
                front = [int(plan.batch.magnitude) for plan in self.front.get(entry, ())]
                rows.append({"rank": rank, **keys, **point, "front": front, "reason": None})
            else:
                rows.append({"rank": None, **keys, "reason": entry.reason})
        return rows

    @cached_property
    def facts(self) -> dict[str, object]:
        """The ranks, and what is said of them, by names that stay."""
        return {
            "rows": self.rows(),
            "ranked_by": self.by,
            **values(self, "basis assumptions what_would_change"),
        }

    def _assumptions(self) -> Iterator[str]:
        plans = {entry: self.plan_of(entry) for entry in self.planned}
        yield (
            "Each is on the fewest devices on which it fits and keeps the limits, at the batch that"
            " generates most tokens a second there."
        )
        why = ""
        if self.basis == UPPER:
            unknown = [
                self.label(entry)
                for entry, plan in plans.items()
                if plan.expected is None or plan.expected.missing
            ]
            why = f", since not all is expected of {', '.join(unknown)}" if unknown else ""
        yield f"Ranks and limits go by {self.basis}{why}."
        lacking = [self.label(entry) for entry in plans if entry not in self.has(BY[self.by])]
        if lacking:
            yield (
                f"{', '.join(lacking)}: no {TITLES[self.by]} is known, so that it stands behind"
                " those of which one is."
            )
        if self.paid:
            paid = PAID[self.paid].lower()
            yield f"On the front nothing compared has both less {paid} and less time per token."
        hosted = {plan.in_machine for plan in plans.values() if plan.power is not None}
        if len(hosted) > 1:
            alone = [self.label(entry) for entry, plan in plans.items() if not plan.in_machine]
            yield (
                f"Energies are not of one kind: hosts and fans are left out of that of"
                f" {', '.join(alone)}, and in that of the others they are counted."
            )
        yield from common_first([(self.label(of), plan.assumptions) for of, plan in plans.items()])

    @property
    def what_would_change(self) -> tuple[str, ...]:
        """Prices at which ranks change, what twice the devices do, and what would fit."""
        return tuple(self._changes())

    def _changes(self) -> Iterator[str]:
        if priced := self.has("cost_per_token"):
            costs = {entry: self.value(self.plan_of(entry), "cost_per_token") for entry in priced}
            cheapest = min(priced, key=costs.__getitem__)
            for entry in self.planned:
                plan = self.plan_of(entry)
                level = costs[cheapest] * self.value(plan, "throughput") / plan.devices
                now = "" if plan.price is None else f" in place of {plan.price.to('USD/hour')}"
                if entry is not cheapest:
                    yield (
                        f"At {level.to('USD/hour')} a device{now}, {self.label(entry)} costs as"
                        f" much a token as {self.label(cheapest)}."
                    )
        for entry in self.planned:
            plan = self.plan_of(entry)
            count = 2 * int(plan.devices.magnitude)
            if count in linked_counts(plan):
                more = self._with_more(plan, with_devices(plan, count))
                yield f"{self.label(entry)}: {more}."
        for entry in self.entries:
            yield from (f"{self.label(entry)}: {way}" for way in entry.ways)

    def _with_more(self, plan: Plan, other: Plan) -> str:
        ratios = []
        for name in ("tpot", "cost", "energy"):
            old, new = (self.value(which, BY[name]) for which in (plan, other))
            if old is not None and new is not None:
                ratios.append(f"{(new / old).m_as(''):#.3g} times the {TITLES[name]}")
        return f"{devices_text(other.devices)} take for the same batch {', '.join(ratios)}"

    @property
    def _kinds(self) -> list[str]:
        """Models, machines or both: those of which there are several."""
        several = [
            kind
            for kind in ("model", "machine")
            if len({getattr(entry, kind).key for entry in self.entries}) > 1
        ]
        return several or ["machine"]

    def draw(self) -> Figure:
        """The curve of each entry over its batches, and the front of all."""
        if not self.paid:
            raise InputError(
                "a front holds cost against time, and neither a price is given nor a power"
                ' published: give price ("3 USD/hour")'
            )
        curves = []
        for entry in self.has(self.paid):
            plan = self.plan_of(entry)
            label = f"{self.label(entry)}\n{devices_text(plan.devices)}, batch {plan.batch}"
            points = list(map(self._place, entry.curve))
            curves.append(drawing.Curve(points, self._place(plan), label))
        best = sorted(self._place(plan) for plans in self.front.values() for plan in plans)
        return drawing.front(curves, best, f"{PAID[self.paid]} ({RANGES[self.paid][1]})")

    def _place(self, plan: Plan) -> tuple[float, float]:
        """Where a plan stands in the drawing."""
        return self.latency(plan), self.price(plan)

    def to_toml(self) -> str:
        """The options that make this comparison again, as the text of a file."""
        return files.options_text(self.given)

    def __repr__(self) -> str:
        return f"<{len(self.entries)} compared, {len(self.planned)} of them planned>"


def value_of(plan: Plan, name: str, basis: str) -> Quantity | None:
    """What is compared of a plan on a basis; None where it is not known."""
    if basis == EXPECTED:
        return None if plan.expected is None else plan.expected.get(name)
    bounds = getattr(plan, name)
    if bounds is None:
        return None
    value: Quantity = bounds.lower if name == "throughput" else bounds.upper
    return value


def _batches(plans: tuple[Plan, ...]) -> str:
    batches = sorted(int(plan.batch.magnitude) for plan in plans)
    ends = dict.fromkeys(map(str, (batches[0], batches[-1]))) if batches else {}
    return f"batch {' to '.join(ends)}" if ends else "–"
