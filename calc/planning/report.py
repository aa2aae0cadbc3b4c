"""A plan as people read it: the table of its parts or of its points, and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from calc import formats
from calc.catalog import intervals
from calc.catalog.hardware import dtype_of
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import INDEXED, RECURRENT
from calc.core.elementwise import largest
from calc.core.errors import InputError
from calc.core.report import Table
from calc.core.units import Quantity, quantity
from calc.networks import transformer
from calc.planning.estimate import COUNTS, RANGES, Bounds, Estimate
from calc.planning.setup import memory_text

MOST_ROWS = 100


def title(plan: Estimate) -> tuple[str, str]:
    """The model, its devices and what is asked of them."""
    return (
        f"{plan.model.name} on {plan.devices} {plan.device.name}",
        f"batch {plan.batch}, {plan.prompt} prompt and {plan.generated} generated tokens",
    )


def parts_table(plan: Estimate) -> Table:
    """What one point takes: its memory, and its times and rates by their bounds."""
    capacity = plan.device.memory_capacity
    memory = f"{memory_text(plan.memory, capacity)} of {capacity}"
    verdict = "fits" if plan.fits else "does not fit"
    rows: list[tuple[str, ...]] = [
        ("", "perfect overlap", "no overlap", "expected", "80 % of rows", "what binds"),
        ("memory of each", memory, "", "", "", verdict),
        ("  weights", memory_text(plan.weight_memory, capacity), "", "", "", ""),
        ("  keys and values", memory_text(plan.cache_memory, capacity), "", "", "", ""),
        ("batch that fits", "", str(plan.largest_batch), "", "", ""),
    ]
    if plan.fits:
        rows += [
            ("first token", *_answers(plan, "time_to_first_token"), plan.reading.bound),
            ("each token", *_answers(plan, "time_per_token"), plan.writing.bound),
            ("whole answer", *_answers(plan, "answer_time"), ""),
            ("throughput", *_answers(plan, "throughput"), ""),
        ]
        for title, name in (("cost", "cost_per_token"), ("energy", "energy_per_token")):
            if getattr(plan, name) is not None:
                rows.append((title, *_answers(plan, name), ""))
    if plan.expected is None:
        rows = [(*bounds, last) for *bounds, _, _, last in rows]
    return Table(rows)


def _answers(plan: Estimate, name: str) -> tuple[str, ...]:
    """A number with perfect overlap and with none, and what is expected of it.

    With perfect overlap a time is at its lower bound, and a rate at its upper one.
    """
    bounds = getattr(plan, name)
    ordered = reversed(bounds) if name == "throughput" else bounds
    expected = None if plan.expected is None else plan.expected.get(name)
    around = plan.interval(name)
    told = "" if around is None or expected is None else _between(around, expected)
    return (*map(str, ordered), "" if expected is None else str(expected), told)


def _between(ends: tuple[Quantity, Quantity], expected: Quantity) -> str:
    """Both ends in the unit in which what is expected is printed, in three digits."""
    unit = str(expected).rpartition(" ")[2]
    low, high = (quantity(float(f"{end.m_as(unit):.3g}"), "") for end in ends)
    return f"{low} to {high} {unit}"


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


def points_report(plans: Sequence[Estimate]) -> tuple[list[str], Table]:
    """A line for each point of plans for one model, under what is the same for all."""
    count = sum(getattr(plan.fits, "size", 1) for plan in plans)
    if count > MOST_ROWS:
        raise InputError(
            f"a table of a plan has up to {MOST_ROWS} rows, and this one has {count}"
            " points: read its fields, or plan fewer"
        )
    points = [point for plan in plans for point in plan.points]
    device, unit = plans[0].device, str(plans[0].device.memory_capacity.units)
    differ = {name: len({str(point[name]) for point in points}) > 1 for name in COUNTS}
    names = [*(["device"] if len(plans) > 1 else []), *(name for name in COUNTS if differ[name])]
    ranges = [name for name in RANGES if any(point[name] for point in points)]
    kinds = [["bounds"], ["expected"]] if any(point["expected"] for point in points) else [[], []]
    heads = [heading(name) for name in ranges]
    rows = [(*names, f"each holds ({unit})", *[""] * len(kinds[0]), *heads, "what binds")]
    for point in points:
        counts, memory = [str(point[name]) for name in names], f"{point['memory'].m_as(unit):.3g}"
        bounds = [in_its_unit(point[name], name) for name in ranges]
        rows.append((*counts, memory, *kinds[0], *bounds, point["binds"]))
        if known := point["expected"]:
            expected = [in_its_unit(known.get(name), name) for name in ranges]
            rows.append((*[""] * (len(names) + 1), *kinds[1], *expected, ""))
    title = plans[0].model.name + (f" on {device.name}" if len(plans) == 1 else "")
    same = [f"{name} {points[0][name]}" for name in COUNTS if not differ[name]]
    return [f"{title}: {', '.join(same)}" if same else title], Table(rows)


def heading(name: str) -> str:
    """The title of a column, with its unit."""
    return "{} ({})".format(*RANGES[name])


def in_its_unit(value: Bounds | Quantity | None, name: str) -> str:
    """A number, or the two of bounds, in the unit of its column."""
    numbers = value if isinstance(value, Bounds) else () if value is None else (value,)
    if not numbers or math.isnan(numbers[0].magnitude):
        return "–"
    return " – ".join(str(quantity(number.m_as(RANGES[name][1]), "")) for number in numbers)


def _place(plan: Estimate) -> str:
    """On what the devices add up their results."""
    if plan.link is not None:
        return f"in rings of {plan.link} each way"
    machine, most = plan.machine, largest(plan.devices)
    inside = f"on {machine.name}, where {machine.domain} devices have {machine.bandwidth} each way"
    return inside if most <= machine.domain else f"{inside}, and beyond {machine.ports}"


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:].rstrip(".")


def assumptions(plan: Estimate) -> Iterator[str]:
    """What the numbers stand on, a sentence each."""
    model, device = plan.model, plan.device
    rates = (device.memory_bandwidth, device.peak(plan.dtype))
    origins = [rate.provenance for rate in rates if rate.provenance is not None]
    measured = any(origin.kind == "measured" for origin in origins)
    if device.announced:
        yield (
            f"{device.name} is announced and cannot be had yet: what follows from its rates may"
            " change with them."
        )
    yield (
        f"Products are computed in {dtype_of(plan.dtype).upper()} at {device.peak(plan.dtype)},"
        f" with {plan.weights_told} and keys and values in"
        f" {formats.printed(plan.kv)}; memory runs at {device.memory_bandwidth}."
    )
    yield (
        f"Both bounds take {'measured' if measured else 'published'} rates: with perfect overlap"
        " all parts run at once, without overlap they follow one another; launches, queues and"
        " kernels below these rates come on top."
    )
    yield (
        "Prompts are read together and answers generated together; memory holds each sequence at"
        " its full length, and beside weights and caches nothing."
    )
    yield ("Throughput, cost and energy are those of generated tokens, and prefill is in them.")
    if largest(plan.devices) > 1:
        yield (
            "Each matrix is cut into a slice for each device; they add up their results twice a"
            f" layer, two bytes a number, {_place(plan)}; in the bounds messages have no"
            " latency."
        )
        if model.experts is not None:
            yield (
                "Experts are cut like all matrices: layouts that share out whole experts or"
                " sequences (EP, DP) are others, which may be faster; calc.experts.decode has them."
            )
        if largest(shared := plan.job.copies_of_caches) > 1:
            has = "no heads" if model.kv_latent is not None else f"{model.kv_heads} heads"
            yield (
                f"{model.name} has {has} of keys and values for {largest(plan.devices):g} devices,"
                f" so that {largest(shared):g} share the same: bounds read each cache once, as if"
                " it were shared out; expected are copies, as engines hold them, or where these do"
                " not fit, shares and the exchange of queries and results; memory is that of caches"
                " held once."
            )
    is_expected, missing = _expectations(plan)
    if is_expected:
        program = plan.software.name if plan.software.key else "no software's own time"
        yield (
            f"Expected is what kernels and messages were measured to reach on {plan.machine.name},"
            " or on the machine most like it, one after the other; launches count where they were"
            f" measured; with {program}."
        )
        alike = intervals.of("serving", plan.software.key, model.experts is not None)
        yield f"The interval is that of 80 % of published {alike}."
    yield from (f"{_sentence(rate)}." for rate in missing)
    if plan.price is None:
        yield "No price of a device was given, so that cost is left out."
    else:
        yield f"A device costs {plan.price}, as given, and always has work."
    if plan.power is None:
        yield f"The power of {device.name} is unpublished, so that energy is left out."
    elif plan.in_machine:
        machine = plan.machine
        yield (
            f"Each device draws {plan.power} all the time, its share of the {machine.power} of"
            f" {machine.name} with hosts and fans; the cooling of the building comes on top."
        )
        origins += filter(None, [machine.power.provenance])
    else:
        yield f"Each device draws its {device.tdp} all the time; hosts and cooling come on top."
    for origin in origins:
        if origin.kind == "estimate":
            yield f"{origin.title} is an estimate."
    yield from (f"{model.name}: {note}." for note in model.notes)
    yield from (f"{model.name}: {layers}." for layers in _not_full(model))


def _expectations(plan: Estimate) -> tuple[bool, list[str]]:
    """Whether anything is expected of the points that fit, and which rates were not measured.

    Each point is a calculation of its own, and more than a table has are not made for this.
    """
    if getattr(plan.fits, "size", 1) > MOST_ROWS:
        return False, []
    fitting = [point for point in plan.points if point["fits"]]
    missing = dict.fromkeys(filter(None, (point["not_expected"] for point in fitting)))
    return any(point["expected"] for point in fitting), list(missing)


def _not_full(model: Transformer) -> Iterator[str]:
    """What layers do that do not attend to the whole context, or that attend to latents."""
    layers = f"of its {model.layers} layers"
    if model.kv_latent is not None:
        yield (
            "latents are counted expanded into keys and values where prompts are read, and with"
            " their matrices absorbed into queries and results where tokens are written, which"
            " takes more operations and reads fewer bytes"
        )
    if count := model.layers_with("window"):
        yield f"{count} {layers} look back on {model.window} tokens and keep no more"
    if count := model.layers_with(*INDEXED):
        yield (
            f"{count} {layers} score all tokens and attend to the best {model.index_topk}, which is"
            " counted in the format of all products"
        )
    if count := model.layers_with("following"):
        yield f"{count} {layers} attend to what the last layer with scores of its own has selected"
    if count := model.layers_with(*RECURRENT):
        state = transformer.state_memory(model).to("MiB")
        yield f"{count} {layers} keep a state in place of tokens, {state:.4g} for each sequence"
