"""A plan as people read it: the table of its parts or of its points, and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from calc import formats
from calc.catalog import intervals
from calc.catalog.hardware import dtype_of
from calc.catalog.intervals import cuts, marked, three
from calc.catalog.software import NO_KERNEL
from calc.core.report import Table
from calc.core.units import Quantity, quantity
from calc.planning import drawing
from calc.planning.capacity import held_by_host, on_ssd
from calc.planning.choice import RULES
from calc.planning.estimate import Estimate
from calc.planning.results import RANGES, Bounds
from calc.planning.setup import COUNTS, Setup, devices_text, is_array, layout_text, memory_text

ASKED = {  # of an answer in a line
    "time_per_token": "{} a token",
    "throughput": "{}",
    "time_to_first_token": "first token {}",
    "cost_per_token": "{}",
}
LONG = quantity("10 s")  # from where on a time is told in seconds


def title(plan: Estimate) -> tuple[str, str]:
    """The model and its devices, and what is asked of them."""
    asked = f"batch {plan.batch}" if plan.users is None else _users(plan)
    alike = not is_array(plan.copies) and plan.copies == 1 == plan.experts == plan.stages
    cut = "" if alike else f" ({layout_text(plan.layout)})"
    return (
        f"{plan.called or plan.model.name} on {plan.devices} {plan.device.name}{cut}",
        f"{asked}, {plan.prompt} + {plan.generated} tokens",
    )


def _users(plan: Estimate) -> str:
    return "1 user" if plan.batch == 1 else f"{plan.batch} users"


def answer(plan: Estimate) -> str:
    """Return whether one point fits, and what is expected of it, or at least, in a line."""
    what, asked = title(plan)
    if not plan.fits:
        lacking = memory_text(plan.memory - plan.room, plan.device.memory_capacity)
        return f"{what}: {asked} does not fit, {lacking} too little on each"
    [point] = plan.points
    clauses = []
    for name, words in ASKED.items():
        if (bounds := point[name]) is not None:
            unit = RANGES[name][1]
            if unit == "ms" and bounds.lower >= LONG:
                unit = "s"
            clauses.append(words.format(f"{cell(point, name, around=False, unit=unit)} {unit}"))
    load = "one sequence" if plan.batch == 1 else f"a batch of {plan.batch} read at once"
    load = load if plan.users is None else _users(plan)
    return f"{what}, {load}: {', '.join(clauses)}"


def cell(point: Mapping[str, Any], name: str, around: bool = True, unit: str = "") -> str:
    """Return what is expected of a point with its interval, or else the bound: "≥ 21.2"."""
    unit, bounds = unit or RANGES[name][1], point[name]
    if bounds is None or not point["fits"]:
        return "–"
    expected = point["expected"] and point["expected"][name]
    if expected is None:
        end, sign = (bounds.upper, "≤") if name == "throughput" else (bounds.lower, "≥")
        return f"{sign} {three(end, unit)}"
    ends = point["interval"].get(name) if around else None
    range_text = f" ({marked(ends, unit, ' – ')})" if ends else ""
    return f"{three(expected, unit)}{range_text}"


def _rows(plan: Estimate) -> str:
    """Return whose rates it stands on, and how far off rows like it were; or that it is a bound.

    Rows of first tokens stand apart, where others are like them.
    """
    if (expected := plan.expected) is None:
        return f"BOUND ONLY, {intervals.PEAKS}: {plan.not_expected.partition(': ')[0].rstrip('.')}"
    first = expected.alike("time_to_first_token")
    apart = f"; of first tokens, {first}" if first not in (None, expected.main.alike) else ""
    return f"{expected.main.stands_on}{apart}"


def _cuts(plans: Sequence[Estimate]) -> str:
    """The clause on ends that are bounds: of one point's passes, or how those of several look."""
    points = [point for plan in plans for point in plan.points]
    if len(points) == 1 and not is_array(plans[0].fits):
        passes = ("time_to_first_token", "time_per_token")
        return cuts({RANGES[name][0]: plans[0].around(name) for name in passes})
    ends = (each["cut"] for point in points for each in point["interval"].values())
    return "; the bound cuts ends marked ≥ or ≤" if any(ends) else ""


def bases(plans: Sequence[tuple[str, Estimate]]) -> tuple[str, list[str]]:
    """Return what several stand on in a line, and a sentence for each that was not measured."""
    several = [plan for _, plan in plans]
    texts = dict.fromkeys(map(_rows, several))
    if len(texts) == 1:
        return f"{next(iter(texts))}{_cuts(several)}", []
    words = dict.fromkeys(plan.basis for plan in several)
    alike = {plan.expected.main.alike: None for _, plan in plans if plan.expected is not None}
    medians = sorted(interval.median_error for interval in alike if interval is not None)
    similar = [str(interval) for interval in alike]
    if len(similar) > 1:
        similar = [f"rows like each: medians of {medians[0]:.1%} to {medians[-1]:.1%}"]
    basis = next(iter(words)) if len(words) == 1 else counted(several)
    line = "; ".join([basis, *similar]) + _cuts(several)
    whose = [(name, plan.basis, _rows(plan).partition("; ")[0]) for name, plan in plans]
    unlike = [
        f"{name}: {rates}."
        for name, basis, rates in whose
        if basis != intervals.MEASURED or NO_KERNEL in rates
    ]
    return line, unlike


def counted(plans: Sequence[Any]) -> str:
    """Return how many plans stand on what, the nearest first."""
    stand = [plan.basis for plan in plans]
    return ", ".join(f"{stand.count(word)} on {word}" for word in intervals.BASES if word in stand)


def indistinct(around: Sequence[tuple[Quantity, Quantity] | None]) -> Iterator[str]:
    """A sentence for each two neighbours, in the order of ranks, whose intervals overlap."""
    for rank, (one, other) in enumerate(pairwise(around), 1):
        if one and other and one[0] <= other[1] and other[0] <= one[1]:
            yield f"Ranks {rank} and {rank + 1} lie within each other's 80%."


def chosen(plan: Estimate, alone: bool = True) -> Iterator[str]:
    """Yield what was chosen for who asked: what was left out, and formats."""
    if plan.chosen_by:
        best = f"best by {RULES[plan.chosen_by]}"
        yield f"{devices_text(plan.devices)} as {layout_text(plan.layout)}, {best}"
    elif (split := plan.split) is not None:
        told, options = split.told(plan.model), split.options(plan.model)
        where = "in the host's memory"
        if split.resident < 1:
            where = f"with the host, {split.resident:.0%} of them in memory and the others on SSD"
        yield f"{told} {where}: llama.cpp {options}"
    elif "devices" in plan.left_out and (not alone or is_array(plan.devices)):
        yield "the fewest devices that hold each batch"
    elif "devices" in plan.left_out:
        why = "the fewest"
        if plan.needed is not None and plan.needed < plan.devices:
            why = f"since {devices_text(plan.needed)} does not hold batch {plan.batch}"
        yield f"{devices_text(plan.devices)}, {why}"
    yield from chosen_formats(plan)


def chosen_formats(setup: Setup) -> Iterator[str]:
    """The software that was chosen, and the formats."""
    if "software" in setup.left_out:
        yield setup.software.title()
    kept, products = formats.printed(setup.kv), dtype_of(setup.dtype).upper()
    if str(setup.kept) == kept == products:
        yield f"weights, keys, values and products in {kept}"
    else:
        other = setup.other_dtype
        widened = f" ({other.upper()} with dtype {other})" if other else ""
        yield f"{setup.weights_told}, keys and values in {kept}, products in {products}{widened}"


def parts_table(plan: Estimate) -> list[Table]:
    """Return the tables of one point: its bound, what is expected, the range of rows like it.

    Beside it, for who asks, what no overlap makes of the bounds.
    """
    capacity = plan.device.memory_capacity
    [memory] = plan.capacity.memories
    room, verdict = (
        memory_text(plan.room, capacity),
        memory.verdict if plan.fits else "does not fit",
    )
    of_room = (f"of {room}", "", verdict)
    if plan.expected is None:
        of_room = ("", "", f"of {room}: {verdict}")
    rows: list[tuple[str, ...]] = [
        (title(plan)[1], "bound", "expected", "80% of rows", "what binds"),
        ("memory of each", memory_text(plan.memory, capacity), *of_room),
        ("  weights", memory_text(plan.weight_memory, capacity), "", "", ""),
        ("  keys and values", memory_text(plan.cache_memory, capacity), "", "", ""),
        ("batch that fits", str(plan.largest_batch), "", "", ""),
    ]
    if plan.capacity.beside.magnitude:
        program = f"  {memory.program.split(' ')[0]} besides"
        rows.insert(3, (program, memory_text(plan.capacity.beside, capacity), "", "", ""))
    if (split := plan.split) is not None:
        held, disk = held_by_host(plan), on_ssd(plan)
        told = memory_text(held - disk, capacity)
        rows.insert(-1, ("  in the host's memory", told, "", "", f"of {split.host.memory}"))
        if disk.magnitude:
            rows.insert(-1, ("  on the host's SSD", memory_text(disk, capacity), "", "", ""))
    overlap: list[tuple[str, ...]] = [("", "perfect overlap", "no overlap")]
    binds = {"time_to_first_token": plan.reading.bound, "time_per_token": plan.writing.bound}
    for name, (words, _) in RANGES.items() if plan.fits else ():
        if (bounds := getattr(plan, name)) is None:
            continue
        rate = name == "throughput"
        expected_text = "" if (expected := plan.likely(name)) is None else str(expected)
        around = plan.around(name)
        range_text = around.told(expected_text) if around else ""
        bound, other = reversed(bounds) if rate else bounds
        rows.append((words, str(bound), expected_text, range_text, binds.get(name, "")))
        overlap.append((words, str(bound), str(other)))
    if plan.expected is None:
        rows = [(*row[:2], row[-1]) for row in rows]
    detail = [Table(overlap, "Bounds at published rates", detail=True)] if plan.fits else []
    if plan.expected is not None and (late := plan.expected.percentiles):
        times = [(name.replace("_", " "), str(time)) for name, time in late.items()]
        detail.append(Table([("", "expected"), *times], "Percentiles of requests", detail=True))
    parts = [("", "each device", ""), *memory.part_rows]
    paid = tuple(RANGES[name][0] for name in ("cost_per_token", "carbon_per_token"))
    return [Table(rows, asked=paid), *detail, Table(parts, "Memory before caches", detail=True)]


def curve(plan: Estimate) -> drawing.Curve:
    """Throughput against the time per token, with the interval of each where it is expected."""
    places, bands = [], []
    for point in plan.points:
        if not point["fits"]:
            continue
        expected, ends = point["expected"] or {}, point["interval"]
        token, rate = (
            expected.get(name) or getattr(point[name], side)
            for name, side in (("time_per_token", "lower"), ("throughput", "upper"))
        )
        places.append((token.m_as("ms"), rate.m_as("token/s")))
        if "throughput" in ends:
            bands.append(tuple(ends["throughput"][end].m_as("token/s") for end in ("low", "high")))
    label = f"{plan.device.name}\n{'expected' if bands else 'bound'}"
    return drawing.Curve(places, places[-1] if places else (0.0, 0.0), label, bands)


def parts(plan: Estimate) -> list[Mapping[str, object]]:
    """Each part of the expected passes: its time, its share, and what the time is made of."""
    passes = {} if plan.expected is None else plan.expected.passes
    return [
        {
            "pass": title,
            "part": part,
            "time": time,
            "share": times.share(part),
            "made_of": times.origins.get(part, ()),
        }
        for title, times in passes.items()
        for part, time in times.items()
    ]


def points_tables(plans: Sequence[Estimate]) -> list[Table]:
    """A line for each point of plans for one model, what is the same for all left out."""
    points = [point for plan in plans for point in plan.points]
    unit = str(plans[0].device.memory_capacity.units)
    ranges = [name for name in RANGES if any(point[name] for point in points)]
    names = [*(["device", "basis"] if len(plans) > 1 else []), *different_counts(points)]
    heads = [heading(name) for name in ranges]
    asked = ("time_per_token", "throughput", "cost_per_token", "carbon_per_token")
    first = [*(name for name in asked if name in ranges), "time_to_first_token"]
    shown = [*first, *(name for name in ranges if name not in first)]
    titles = ["users" if name == "batch" and plans[0].users else name for name in names]
    rows = [(*titles, f"each holds ({unit})", *map(heading, shown), "what binds")]
    bounds = [(*titles, *heads)]
    for point in points:
        counts = [str(point[name]) for name in names]
        cells, held = [cell(point, name) for name in shown], f"{point['memory'].m_as(unit):.3g}"
        if not point["fits"]:
            held, cells[0] = f"{held} of {point['room'].m_as(unit):.3g}", "does not fit"
        rows.append((*counts, held, *cells, point["binds"]))
        bounds.append((*counts, *(in_its_unit(point[name], name) for name in ranges)))
    return [Table(rows), Table(bounds, "Bounds at published rates", detail=True)]


def different_counts(points: Sequence[Mapping[str, Any]]) -> list[str]:
    return [name for name in COUNTS if len({str(point[name]) for point in points}) > 1]


def points_answer(plans: Sequence[Estimate]) -> str:
    """The model, its devices and what is the same for all points."""
    points = [point for plan in plans for point in plan.points]
    device = plans[0].device
    title = plans[0].model.name + (f" on {device.name}" if len(plans) == 1 else "")
    differ = different_counts(points)
    users = {"batch": "users"} if plans[0].users is not None else {}
    same = [
        f"{users.get(name, name)} {points[0][name]}"
        for name in COUNTS
        if name not in differ and (name != "copies" or points[0][name] != 1)
    ]
    return "; ".join(filter(None, [title, ", ".join(same)]))


def heading(name: str) -> str:
    return "{} ({})".format(*RANGES[name])


def in_its_unit(value: Bounds | Quantity | None, name: str) -> str:
    """A number, or the two of bounds, in the unit of its column."""
    numbers = value if isinstance(value, Bounds) else () if value is None else (value,)
    if not numbers or math.isnan(numbers[0].magnitude):
        return "–"
    return " – ".join(str(quantity(number.m_as(RANGES[name][1]), "")) for number in numbers)
