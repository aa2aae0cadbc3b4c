"""A comparison: its entries in the order of their ranks, and how people and programs read it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calc.catalog.intervals import three
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.errors import InputError
from calc.core.report import Answer, Table, common_first, values
from calc.core.units import Quantity
from calc.planning import drawing, plan_files
from calc.planning.capacity import joinable_slices, with_tensor
from calc.planning.choice import CANDIDATES, QUANTITIES, RULES, UPPER, place, value_of
from calc.planning.plan_report import bases, cell, chosen_formats, heading, in_its_unit, indistinct
from calc.planning.results import RANGES
from calc.planning.serving_plan import Plan
from calc.planning.setup import devices_text, layout_text

SHOWN = (  # of each, the most important first
    *("time_per_token", "cost_per_token", "energy_per_token", "device_energy_per_token"),
    "carbon_per_token",
    *("throughput", "time_to_first_token"),
)
PAID = {"cost_per_token": "Cost", "energy_per_token": "Energy"}


@dataclass(frozen=True, eq=False)
class Entry:
    """A model on a machine: its plans, or why there is none."""

    model: Transformer
    machine: Machine
    curve: tuple[Plan, ...] = ()
    """Plans on the same devices at batches that double, as far as the limits are kept."""
    reason: str = ""
    """Reason why it is not planned: by how much it does not fit, or which limit it cannot keep."""
    doubt: str = ""
    """Whether it may fit after all."""
    ways: tuple[str, ...] = ()
    software: str = ""
    """What serves, with its version."""

    def name(self, kind: str) -> str:
        """Return what is compared of it: the key of its model or machine, or its software."""
        return self.software if kind == "software" else str(getattr(self, kind).key)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Answer):
    """Entries in the order of their ranks; `print` shows them, and `draw` their front.

    `basis` says what ranks them: what is expected of all, or, where nothing is of one, the bounds
    of all. Limits are kept by what is expected of each, or else by its bound.
    """

    _SENTENCES = (("assumptions", "Assumed"), ("what_would_change", "What would change it"))

    entries: tuple[Entry, ...]
    by: str
    basis: str
    limits: Mapping[str, Quantity]
    given: Mapping[str, object]
    """What `compare` was asked, by the names of its arguments."""

    @cached_property
    def plans(self) -> dict[Entry, Plan]:
        """The plan of each entry that has one, at its best batch by what ranks."""
        return {entry: self.plan_of(entry) for entry in self.entries if entry.curve}

    @property
    def planned(self) -> tuple[Entry, ...]:
        return tuple(self.plans)

    @property
    def best(self) -> Plan:
        return self.plan_of(self.entries[0])

    def plan_of(self, entry: Entry) -> Plan:
        """The plan of an entry at its best batch by what ranks."""
        if not entry.curve:
            raise InputError(f"{entry.model.name} on {entry.machine.name} {entry.reason}")
        return min(entry.curve, key=lambda plan: place(plan, self.by, self.basis))

    def value(self, plan: Plan, name: str) -> Any:
        """Return what is compared of a plan, expected or a bound; None without a price."""
        return value_of(plan, name, self.basis)

    def has(self, name: str) -> tuple[Entry, ...]:
        """The entries of which a quantity is known: a cost where there is a price."""
        among = self.planned if name else ()
        return tuple(entry for entry in among if self.value(entry.curve[0], name) is not None)

    @property
    def paid(self) -> str:
        """Name what the front holds against latency: cost, or energy without a price; "" where
        no power is published either."""
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
        return self._number(plan, "time_per_token")

    def price(self, plan: Plan) -> float:
        """Return what a token costs, or takes of energy, in the unit of the table."""
        return self._number(plan, self.paid)

    def _number(self, plan: Plan, name: str) -> float:
        """Return what is compared in the unit of its column; infinity where it is not known."""
        value = self.value(plan, name)
        return math.inf if value is None else float(value.m_as(RANGES[name][1]))

    def rank(self, entry: Entry) -> tuple[float, ...]:
        """First what was asked for; entries without it go by cost, energy and time per token."""
        if not entry.curve:
            return (1.0,)
        plan, by = self.plan_of(entry), QUANTITIES[self.by]
        others = ("cost_per_token", "energy_per_token", "time_per_token")
        asked = (-1 if by == "throughput" else 1) * self._number(plan, by)
        return (0.0, asked, *(self._number(plan, name) for name in others))

    def label(self, entry: Entry) -> str:
        """An entry by what tells it from the others.

        >>> from calc import compare
        >>> comparison = compare(["llama-3-8b", "qwen-3-8b"], "h100", prompt=10, generated=10)
        >>> [comparison.label(entry) for entry in comparison.entries]
        ['Llama 3 8B', 'Qwen3 8B']
        """
        named = [getattr(entry, kind).name for kind in self._kinds if kind != "software"]
        return " with ".join(
            filter(None, [" on ".join(named), *([entry.software] if entry.software else [])])
        )

    @property
    def status(self) -> int:
        """Exit status of the command: 1 where none is planned."""
        return int(not self.planned)

    @property
    def answer(self) -> str:
        asked = [f"{name} at most {limit}" for name, limit in self.limits.items()]
        if not self.planned:
            return "; ".join(["none of them is planned", *asked])
        first, name = self.entries[0], QUANTITIES[self.by]
        plan = self.plans[first]
        asked.insert(0, f"{plan.prompt} + {plan.generated} tokens")
        value = self.value(plan, name)
        of = "" if value is None else f", {three(value, RANGES[name][1])} {RANGES[name][1]}"
        return f"{self.label(first)} is first by {RULES[self.by]}{of}: {', '.join(asked)}"

    @property
    def stands_on(self) -> str:
        if not self.planned:
            return ""
        basis, _ = bases(self._plans)
        return f"{basis}; ranked by {self.basis}"

    @property
    def chosen(self) -> list[str]:
        formats_of = [(name, tuple(chosen_formats(plan))) for name, plan in self._plans]
        best = f"of each the layout and the batch that are best by {RULES[self.by]}"
        return [best, *common_first(formats_of)]

    @property
    def caveats(self) -> list[str]:
        caveats = [*bases(self._plans)[1]] if self.planned else []
        caveats += indistinct([plan.interval(QUANTITIES[self.by]) for _, plan in self._plans])
        if len({plan.in_machine for _, plan in self._plans if plan.power is not None}) > 1:
            alone = [name for name, plan in self._plans if not plan.in_machine]
            caveats.append(
                f"Energies are not of one kind: that of {', '.join(alone)} leaves out hosts and"
                " fans."
            )
        lacking = [self.label(of) for of in self.planned if of not in self.has(QUANTITIES[self.by])]
        if lacking:
            caveats.append(
                f"{', '.join(lacking)}: no {RULES[self.by]} is known, so that it stands behind"
                " those of which one is."
            )
        caveats += common_first([(name, plan.caveats) for name, plan in self._plans])
        unplanned = [of for of in self.entries if not of.curve]
        caveats += [f"{self.label(of)} {of.reason}." for of in unplanned]
        return caveats + [of.doubt for of in unplanned if of.doubt]

    @property
    def _plans(self) -> list[tuple[str, Plan]]:
        """The plan of each by its name, in the order of their ranks."""
        return [(self.label(entry), plan) for entry, plan in self.plans.items()]

    @cached_property
    def tables(self) -> list[Table]:
        by = QUANTITIES[self.by]
        shown = dict.fromkeys((SHOWN[0], by, *SHOWN))
        names = [name for name in shown if self.has(name)]
        kinds, heads = self._kinds, [heading(name) for name in names]
        bounded = by if self.basis == UPPER and self.has(by) else ""
        at_bounds = [f"bound ({RANGES[bounded][1]})"] if bounded else []
        load = "batch" if self.given["users"] is None else "users"
        rows = [("", *kinds, "basis", "devices", load, *at_bounds, *heads, "on the front")]
        bounds = [("", *kinds, *heads, "what binds")]
        for rank, (entry, plan) in enumerate(self.plans.items(), 1):
            keys = [entry.name(kind) for kind in kinds]
            [point] = plan.points
            cut = layout_text(plan.layout)
            shared = "" if cut == f"TP{plan.devices}" else f", {cut}"
            size = plan.basis, f"{plan.devices}{shared}", str(plan.batch)
            ranked = [in_its_unit(self.value(plan, bounded), bounded)] if bounded else []
            cells = [cell(point, name) for name in names]
            front = _batches(self.front.get(entry, ()))
            rows.append((str(rank), *keys, *size, *ranked, *cells, front))
            ranges = [in_its_unit(point[name], name) for name in names]
            bounds.append((str(rank), *keys, *ranges, str(plan.binds)))
        detail = Table(bounds, "Bounds at published rates", detail=True)
        return [Table(rows), detail] if self.planned else []

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for rank, entry in enumerate(self.entries, 1):
            row: dict[str, Any] = {"rank": None}
            row |= {"model": entry.model.key, "machine": entry.machine.key}
            if "software" in self._kinds:
                row |= {"software": entry.software}
            if entry.curve:
                [point] = self.plans[entry].points
                front = [int(plan.batch.magnitude) for plan in self.front.get(entry, ())]
                row |= {"rank": rank, **point, "front": front}
            rows.append(row | {"reason": entry.reason or None})
        return rows

    @cached_property
    def facts(self) -> dict[str, object]:
        return {
            "rows": self.rows(),
            "ranked_by": self.by,
            **self.headline,
            **values(self, "basis assumptions what_would_change"),
        }

    def _assumptions(self) -> Iterator[str]:
        yield (
            f"Each is cut in the way, and has the batch, that are best by {RULES[self.by]} within"
            " the limits, the memory and what its engine runs at once: on devices of one domain of"
            " its machine, or of more where none there keeps them."
        )
        yield CANDIDATES
        yield (
            f"Ranks go by {self.basis}; limits are kept by what is expected of each, or by its"
            " bounds without overlap where nothing is."
        )
        if self.paid:
            paid = PAID[self.paid].lower()
            yield f"On the front nothing compared has both less {paid} and less time per token."
        yield from common_first([(name, plan.assumptions) for name, plan in self._plans])

    @cached_property
    def what_would_change(self) -> tuple[str, ...]:
        """Prices at which ranks change, what twice the devices do, and what would fit."""
        return tuple(self._changes())

    def _changes(self) -> Iterator[str]:
        if priced := self.has("cost_per_token"):
            costs = {entry: self.value(self.plans[entry], "cost_per_token") for entry in priced}
            cheapest = min(priced, key=costs.__getitem__)
            for entry, plan in self.plans.items():
                level = costs[cheapest] * self.value(plan, "throughput") / plan.devices
                now = "" if plan.price is None else f" in place of {plan.price.to('USD/hour')}"
                if entry is not cheapest:
                    yield (
                        f"At {level.to('USD/hour')} a device{now}, {self.label(entry)} costs as"
                        f" much a token as {self.label(cheapest)}."
                    )
        for name, plan in self._plans:
            count = 2 * int(plan.tensor.magnitude)
            if count in joinable_slices(plan):
                yield f"{name}: {self._with_more(plan, with_tensor(plan, count))}."
        for entry in self.entries:
            yield from (f"{self.label(entry)}: {way}" for way in entry.ways)

    def _with_more(self, plan: Plan, other: Plan) -> str:
        ratios = []
        for name in ("tpot", "cost", "energy"):
            old, new = (self.value(which, QUANTITIES[name]) for which in (plan, other))
            if old is not None and new is not None:
                ratios.append(f"{(new / old).m_as(''):#.3g} times the {RULES[name]}")
        return f"{devices_text(other.devices)} take for the same batch {', '.join(ratios)}"

    @property
    def _kinds(self) -> list[str]:
        """Models, machines and software: those of which there are several."""
        several = [
            kind
            for kind in ("model", "machine", "software")
            if len({entry.name(kind) for entry in self.entries}) > 1
        ]
        return several or ["machine"]

    def draw(self) -> drawing.Figure:
        """The curve of each entry over its batches, and the front of all."""
        if not self.paid:
            raise InputError(
                "a front holds cost against time, and neither a price is given nor a power"
                ' published: give price ("3 USD/hour")'
            )
        curves = []
        for entry in self.has(self.paid):
            plan = self.plans[entry]
            label = f"{self.label(entry)}\n{devices_text(plan.devices)}, batch {plan.batch}"
            points = list(map(self._place, entry.curve))
            ends = [plan.interval(self.paid) for plan in entry.curve]
            bands = [tuple(end.m_as(RANGES[self.paid][1]) for end in both) for both in ends if both]
            curves.append(drawing.Curve(points, self._place(plan), label, bands))
        best = sorted(self._place(plan) for plans in self.front.values() for plan in plans)
        return drawing.front(curves, best, f"{PAID[self.paid]} ({RANGES[self.paid][1]})")

    def _place(self, plan: Plan) -> tuple[float, float]:
        return self.latency(plan), self.price(plan)

    def to_toml(self) -> str:
        return plan_files.options_text(self.given)

    def __repr__(self) -> str:
        return f"<{len(self.entries)} compared, {len(self.planned)} of them planned>"


def _batches(plans: tuple[Plan, ...]) -> str:
    batches = sorted(int(plan.batch.magnitude) for plan in plans)
    ends = dict.fromkeys(map(str, (batches[0], batches[-1]))) if batches else {}
    return f"batch {' to '.join(ends)}" if ends else "–"
