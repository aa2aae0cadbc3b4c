"""`plan_training`: the best layout of a training run, and what the run takes, in one call."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from calc.catalog import constants, machines, models, runs, software as programs
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import number, one_of, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import training
from calc.networks import transformer
from calc.planning.setup import A_TOKEN, amount, devices_text
from calc.planning.training import search
from calc.planning.training.answer import TrainingPlan
from calc.planning.training.candidate import best_of
from calc.planning.training.search import Run
from calc.steps.finetuning import Adapters
from calc.steps.job import SCHEDULES

RECOMPUTATIONS = transformer.RECOMPUTATIONS
MOST_DEVICES = 2**20
Progress = Callable[[int, int], None]
COUNTED = r"\d[\d.]*[KMBT]"  # 15T
REFERENCE = "llama-3-1-405b"
"""The run whose failures and storage are taken where none are given."""


def plan_training(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    *,
    tokens: Annotated[QuantityLike, "token"],
    sequences: int,
    length: Annotated[QuantityLike, "", AT_LEAST_ONE],
    devices: int | None = None,
    deadline: Annotated[QuantityLike | None, "s"] = None,
    budget: Annotated[QuantityLike | None, "USD"] = None,
    price: Annotated[QuantityLike | None, "USD/s"] = None,
    layout: Mapping[str, int] | None = None,
    recomputation: str | None = None,
    recipe: str | None = None,
    fine_tune: str | None = None,
    rank: int = 16,
    dtype: str = "bf16",
    software: str | None = None,
    schedule: str = "1f1b",
    usable: float = 0.9,
    device_time_between_failures: Annotated[QuantityLike | None, "s"] = None,
    storage_bandwidth: Annotated[QuantityLike | None, "byte/s"] = None,
    restart_time: Annotated[QuantityLike, "s"] = "10 min",
    on_progress: Progress | None = None,
) -> TrainingPlan:
    """The best of all layouts that train a model on a machine, and what the run takes.

    Every legal layout is looked at: DP, stages of ZeRO and hybrid sharding, TP, PP with thin
    stages, CP, EP, microbatches and recomputation. Those that fit are ordered by what measured
    rates say of each, or by their bounds where a rate was not measured.

    - `tokens`: of the whole run, "15T" or "15e12 token"
    - `sequences`: of a step, on all devices together
    - `length`: tokens of a sequence
    - `devices`: how many train; or else a deadline or a budget, and the fewest or the most are
      taken that keep it
    - `deadline`: the longest that the run may take, "30 day"
    - `budget`: the most that it may cost, "2e6 USD"
    - `price`: of a device, "3 USD/hour"; without it, no cost
    - `layout`: degrees that are fixed, {"tensor": 8, "pipeline": 16}
    - `recomputation`: none, selective or full; the best of them where it is left out
    - `recipe`: what is stored for each parameter, of `calc.training.RECIPES`; where it is left
      out, as the software does: Megatron keeps gradients in FP32, 18 bytes in all
    - `fine_tune`: lora or qlora, where adapters alone are trained, in FP32, beside frozen weights
    - `rank`: of these adapters, which all matrices of the layers get
    - `dtype`: what products are computed in
    - `software`: whose own time the expectation counts: "megatron"; none where it is left out
    - `schedule`: of a pipeline: "1f1b", interleaved with thin stages, or one without most of the
      bubble, "zb-h1" or "zb-v", which not all software has
    - `usable`: share of a device's memory for states and activations
    - `device_time_between_failures`: mean time between failures of one device, with its share of
      all that stops a run; that of Llama 3 405B where it is left out
    - `storage_bandwidth`: to which checkpoints are written, of each device; as there
    - `restart_time`: from a failure to the next step

    Where a deadline or a budget is given, `on_progress` is told how many numbers of devices are
    done, and of how many at most.

    >>> found = plan_training("llama-3-8b", "dgx-h100", tokens="100B", sequences=256, length=8192,
    ...                       devices=64)
    >>> print(found.layout.tensor, found.layout.pipeline, found.best.recomputation)
    1 1 selective
    """
    asked = models.transformer(model)
    machine = machines.of(hardware)
    if (devices is None) + (deadline is None) + (budget is None) != 2:
        raise InputError(
            "plan_training() takes one of devices, deadline and budget; got"
            f" devices={abbreviated(devices)}, deadline={abbreviated(deadline)},"
            f" budget={abbreviated(budget)}"
        )
    wanted = (recomputation,) if recomputation is not None else RECOMPUTATIONS
    for each in wanted:
        one_of("plan_training(): recomputation", each, RECOMPUTATIONS)
    program = programs.UNKNOWN if software is None else programs.get(software)
    stored = training.recipe(program.recipe if recipe is None else recipe)
    tuned = None if fine_tune is None else Adapters(fine_tune, rank)
    if tuned is not None and recipe is not None:
        raise InputError(
            f"fine_tune={fine_tune!r} has states of its own; got recipe={recipe!r} besides: leave"
            " one out"
        )
    job = Run(
        asked,
        machine,
        1 if devices is None else whole_number("devices", devices),
        _whole("length", length),
        whole_number("sequences", sequences),
        wanted,
        stored if tuned is None else tuned.recipe(asked),
        tuned,
        dtype,
        number("usable", usable, above=0.0),
        program,
        one_of("plan_training(): schedule", schedule, SCHEDULES),
        search.check_fixed(layout),
    )
    if job.usable > 1:
        raise InputError(f"usable is a share of a device's memory, at most 1; got {usable}")
    transformer.forward_flops(asked, job.length)  # refuses what is longer than the model reads
    paid = None if price is None else amount("USD/s", "price", price, "3 USD/hour")
    run = runs.get(REFERENCE)
    fails, written = device_time_between_failures, storage_bandwidth
    if fails is None:
        fails = run.observed_time * run.devices / run.interruptions
    if written is None:
        written = run.storage_bandwidth / run.devices
    given = {
        "tokens": amount("token", "tokens", _tokens(tokens), "15e12 token"),
        "price": paid,
        "device_time_between_failures": amount(
            "s", "device_time_between_failures", fails, "5 year"
        ),
        "storage_bandwidth": amount("byte/s", "storage_bandwidth", written, "100 MB/s"),
        "restart_time": amount("s", "restart_time", restart_time, "10 min"),
        "pue": constants.get("pue_average"),
        "carbon_intensity": constants.get("carbon_intensity_world"),
    }
    if devices is not None:
        return _planned(job, given)
    if deadline is not None:
        return _fewest(job, given, amount("s", "deadline", deadline, "30 day"), on_progress)
    if paid is None or budget is None:
        raise InputError('a budget needs the price of a device, price ("3 USD/hour")')
    return _most(job, given, amount("USD", "budget", budget, "2e6 USD"), on_progress)


def training_row(**asked: Any) -> dict[str, Any]:
    """A plan as one row of words and plain numbers, for `run_plans`: its best layout, its costs.

    >>> from calc.planning import training_row
    >>> row = training_row(model="llama-3-8b", hardware="dgx-h100", tokens="1T", length=8192,
    ...                    sequences=64, devices=64, layout={"context": 1, "pipeline": 1})
    >>> row["cut"], row["expected"], row["recomputation"]
    ('DP64 ZeRO2', True, 'selective')
    """
    plan = plan_training(**asked)
    units = {"cost": "USD", "energy": "MWh", "carbon": "t"}
    found = {name: (getattr(plan, name), unit) for name, unit in units.items()}
    return {
        "cut": str(plan.best),
        "recomputation": plan.best.recomputation,
        "like_published": not plan.best.beyond_published,
        "devices": plan.devices,
        "expected": plan.step.expected is not None,
        "step_s": plan.best.time.m_as("s"),
        "mfu": plan.best.mfu.m_as(""),
        "memory_GB": plan.memory.total.m_as("GB"),
        "duration_days": plan.duration.m_as("day"),
        "device_hours": plan.device_time.m_as("h"),
        **{f"{name}_{unit}": v.m_as(unit) for name, (v, unit) in found.items() if v is not None},
    }


def _planned(job: Run, given: dict[str, Any]) -> TrainingPlan:
    alternatives = search.all_cuts(job)
    room = job.room.m_as("byte")
    fits = [cuts.where(cuts.held <= room) for cuts in alternatives]
    fitting = [cuts for cuts in fits if cuts.count]
    if not fitting:
        least = min(cuts.held.min() for cuts in alternatives)
        raise InputError(
            f"no layout of {job.model.name} fits on {job.devices} {job.machine.device.name}: the"
            f" fullest device needs {quantity(float(least), 'byte').to('GB')} at least, and"
            f" {job.room.to('GB')} of its {job.machine.device.memory_capacity.to('GB')} may be"
            " filled: take more devices, shorter sequences, or another recipe"
        )
    return TrainingPlan(
        job,
        candidates=tuple(best_of(fitting)),
        searched=sum(cuts.count for cuts in alternatives),
        cuts=tuple(fitting),
        planner=plan_training,
        **given,
    )


def _counts(job: Run, on_progress: Progress | None) -> Iterator[int]:
    """Numbers of devices to choose from: parts of a domain, and domains, by doubling."""
    domain = job.machine.domain
    counts = [2**each for each in range(domain.bit_length()) if 2**each < domain]
    count = domain
    while count <= min(MOST_DEVICES, job.machine.most_joined):
        counts.append(count)
        count *= 2
    for done, each in enumerate(counts):
        if on_progress is not None:
            on_progress(done, len(counts))
        yield each


def _shorter(
    job: Run, given: dict[str, Any], counts: Iterator[int], least: float = 0.0
) -> Iterator[TrainingPlan]:
    """Plans on more and more devices, at least so many or one, while the run becomes shorter."""
    last = quantity(math.inf, "s")
    for count in counts:
        if 1 < count < least:
            continue
        try:
            plan = _planned(replace(job, devices=count), given)
        except InputError:
            continue
        if plan.duration >= last:
            return  # more devices would wait for one another
        last = plan.duration
        yield plan


def _fewest(
    job: Run, given: dict[str, Any], deadline: Quantity, on_progress: Progress | None
) -> TrainingPlan:
    """The fewest devices that are done in time."""
    steps = given["tokens"] / search.tokens_of(job)
    work = steps * search.operations_of(job) / job.machine.device.peak(job.dtype)
    told = "no number of devices fits it"
    for plan in _shorter(job, given, _counts(job, on_progress), (work / deadline).m_as("")):
        if plan.duration <= deadline:
            return plan
        told = f"the shortest is {plan.duration} on {devices_text(plan.devices)}"
    raise InputError(f"no run of {job.model.name} keeps the deadline of {deadline}: {told}")


def _most(
    job: Run, given: dict[str, Any], budget: Quantity, on_progress: Progress | None
) -> TrainingPlan:
    """The devices with which the run is shortest, of those that the budget pays."""
    tried = _shorter(job, given, _counts(job, on_progress))
    plans = [(cost, plan) for plan in tried if (cost := plan.cost) is not None]
    paid = [plan for cost, plan in plans if cost <= budget]
    if paid:
        return paid[-1]
    told = "no number of devices fits it"
    if plans:
        cost, plan = min(plans, key=lambda priced: priced[0])
        told = f"the cheapest costs {cost} on {devices_text(plan.devices)}"
    raise InputError(f"no run of {job.model.name} keeps the budget of {budget}: {told}")


def _whole(name: str, given: QuantityLike) -> int:
    count = quantity(given)
    if count.ndim or not count.unitless:
        raise InputError(f"{name} must be a whole number of tokens; got {abbreviated(given)}")
    value = count.m_as("")
    return whole_number(name, int(value) if value == value // 1 else value)


def _tokens(given: QuantityLike) -> Quantity:
    """Tokens with their unit, which people leave out, as in "15T"."""
    if isinstance(given, str) and re.fullmatch(COUNTED, given):
        given = f"{given} token"
    found = quantity(given)
    return found * A_TOKEN if found.unitless else found
