"""A training plan as people read it: its table, the best layouts, and what stands behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from calc.catalog.hardware import dtype_of
from calc.core.units import Quantity, quantity
from calc.planning.report import memory_text
from calc.planning.training.precedents import DEGREES

if TYPE_CHECKING:
    from calc.planning.training.plan import Candidate, TrainingPlan


def cut(candidate: Candidate) -> str:
    """A layout in a word: what is not cut is left out."""
    layout = candidate.layout
    degrees = ((short, getattr(layout, name)) for name, short in DEGREES.items())
    words = [f"{short}{degree}" for short, degree in degrees if degree > 1]
    if layout.sharding:
        group = "" if layout.sharers == layout.copies else f" in {layout.sharers}"
        words.append(f"ZeRO{layout.sharding}{group}")
    return " ".join(words) or "one device"


def table(plan: TrainingPlan) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """What stands above, and the rows."""
    job, step, held = plan.job, plan.step, plan.memory
    capacity = job.machine.device.memory_capacity
    above: tuple[str, ...] = (
        f"{job.model.name} on {plan.devices} {job.machine.device.name} ({job.machine.name})",
        f"{job.sequences} sequences of {job.length} tokens a step, {plan.tokens} in all",
        f"layout {cut(plan.best)}, {plan.layout.microbatches} microbatches of"
        f" {plan.best.sequences}, recomputation {plan.best.recomputation}"
        + ("" if plan.layout.schedule == "1f1b" else f", schedule {plan.layout.schedule}"),
    )
    if (like := plan.like_published) is not None and like is not plan.best:
        above += (
            f"of layouts like the published ones the best is {cut(like)}, {like.time} a step, MFU"
            f" {_percent(like.mfu)}",
        )
    expected = "" if step.expected is None else str(step.expected)
    mfu = "" if plan.expected_mfu is None else _percent(plan.expected_mfu)
    rows: list[tuple[str, ...]] = [
        ("", "perfect overlap", "no overlap", "expected", "what binds"),
        ("memory of the fullest", memory_text(held.total, capacity), "", "", f"of {capacity}"),
        *(
            (f"  {name}", memory_text(getattr(held, name), capacity), "", "", "")
            for name in ("weights", "gradients", "optimizer", "activations")
        ),
        ("step", str(step.lower), str(step.upper), expected, step.bound),
        ("MFU", _percent(plan.mfu.upper), _percent(plan.mfu.lower), mfu, ""),
        ("HFU", "", "", _percent(plan.best.hfu), ""),
        ("tokens of a device", "", "", str(plan.best.throughput), ""),
        ("all steps", *(str(each.to("day")) for each in plan.time), "", ""),
        ("run with failures", "", "", str(plan.duration), f"goodput {_percent(plan.goodput)}"),
        ("hours of all devices", "", "", str(plan.device_time), ""),
    ]
    for title, value in (("cost", plan.cost), ("energy", plan.energy), ("carbon", plan.carbon)):
        if value is not None:
            rows.append((title, "", "", str(value), ""))
    rows.append(("checkpoint every", "", "", str(plan.checkpoint_interval.to("min")), ""))
    return above, rows


def candidates(plan: TrainingPlan) -> list[tuple[str, ...]]:
    """The best layouts, a line each."""
    rows: list[tuple[str, ...]] = [
        ("layout", "microbatches", "recomputation", "memory", "lower", "upper", "expected")
    ]
    for each in plan.candidates:
        expected = "–" if each.step.expected is None else str(each.step.expected)
        rows.append(
            (
                cut(each),
                f"{each.layout.microbatches} of {each.sequences}",
                each.recomputation,
                str(each.memory.total.to("GB")),
                str(each.step.lower),
                str(each.step.upper),
                expected,
            )
        )
    return rows


def rows(plan: TrainingPlan) -> list[dict[str, Any]]:
    """The same with plain keys, for programs."""
    return [
        {
            "layout": cut(each),
            **{name: getattr(each.layout, name) for name in DEGREES},
            "sharding": each.layout.sharding,
            "sharing": each.layout.sharers,
            "microbatches": each.layout.microbatches,
            "sequences": each.sequences,
            "recomputation": each.recomputation,
            "schedule": each.layout.schedule,
            "memory": each.memory.total.to("GB"),
            "lower": each.step.lower,
            "upper": each.step.upper,
            "expected": each.step.expected,
            "mfu": each.mfu,
            "hfu": each.hfu,
            "throughput": each.throughput,
            "bound": each.step.bound,
            "like_published": not each.beyond_published,
        }
        for each in plan.candidates
    ]


def why_not_others(plan: TrainingPlan) -> Iterator[str]:
    """How many do not fit, and by which part each of the next best is slower."""
    yield (
        f"{plan.searched - plan.fitting:,} of {plan.searched:,} legal layouts need more than"
        f" {plan.job.room.to('GB')} on their fullest device."
    )
    best = parts(plan.best)
    for other in plan.candidates[1:4]:
        more = {name: time - best.get(name, 0.0) for name, time in parts(other).items()}
        name = max(more, key=lambda each: more[each])
        slower = (other.time / plan.best.time).m_as("") - 1
        yield (
            f"{cut(other)} is {slower:.0%} slower: {name} takes {quantity(more[name], 's')} more."
        )


def parts(candidate: Candidate) -> dict[str, float]:
    """Seconds of each part of a step, as expected, or at published rates."""
    made = candidate.step.expected_parts
    times = candidate.step.parts if made is None else dict(made)
    return {name: time.m_as("s") for name, time in times.items()}


def assumptions(plan: TrainingPlan) -> Iterator[str]:
    """What the numbers stand on."""
    job = plan.job
    device = job.machine.device
    if plan.best.beyond_published:
        yield plan.best.beyond_published
    yield (
        f"Products are computed in {dtype_of(job.dtype).upper()} at {device.peak(job.dtype)};"
        f" states take {job.recipe.name}, and {job.usable:.0%} of {device.memory_capacity} may be"
        " filled, the rest being left to buffers and fragments."
    )
    if job.tuned is not None:
        yield (
            f"Adapters of rank {job.tuned.rank} are trained beside frozen weights; that QLoRA"
            " unpacks its codes for each product is in no time."
        )
    yield (
        "Slices (TP) fill the machine's domains first, then parts of sequences (CP), experts (EP),"
        " copies (DP) and stages (PP); all activations of a layer are kept, but for what the"
        " recomputation says, and norms are cut along the sequence."
    )
    if plan.step.expected is not None:
        program = job.software or "no software"
        yield (
            f"Expected is what kernels and messages were measured to reach on {job.machine.name} or"
            f" the machine most like it, with the own time of {program}, of each layout that fits."
        )
    else:
        yield f"Nothing is expected: {plan.step.not_expected}."
    yield (
        f"A device fails every {plan.device_time_between_failures.to('year')}, a checkpoint of"
        f" {plan.checkpoint.to('TB')} is written at"
        f" {plan.storage_bandwidth.to('MB/s')} by each device, and a restart takes"
        f" {plan.restart_time}."
    )
    yield (
        f"Energy counts a PUE of {plan.pue}, and carbon {plan.carbon_intensity}; both are averages."
    )


def _percent(share: Quantity) -> str:
    return f"{share.m_as(''):.1%}"
