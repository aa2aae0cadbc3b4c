"""`plan_training`: the best layout of a training run, and what the run takes, in one call."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from calc.catalog import constants, grids, machines, models, runs, software as programs
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core import arrays
from calc.core.arguments import check_is, counted, number, one_of, whole_number
from calc.core.errors import InputError, abbreviated, marked, marked_all
from calc.core.nouns import arguments_of, flat
from calc.core.row_file import Row
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import training
from calc.networks import transformer
from calc.planning.plan_nouns import Failures, Prices, Search, Training
from calc.planning.setup import A_TOKEN, amount, devices_text, power_usage, price_of_device
from calc.planning.training.candidate import SHOWN, Ranking
from calc.planning.training.layout_search import PUBLISHED, Task, all_cuts, check_fixed
from calc.planning.training.precedents import within
from calc.planning.training.training_plan import TrainingPlan
from calc.steps.finetuning import Adapters
from calc.steps.job import ALL, SCHEDULES, Formats, Job

RECOMPUTATIONS = transformer.RECOMPUTATIONS
TRIED = ("none", "selective", "full")  # which all programs have
MOST_DEVICES = 2**20
Progress = Callable[[int, int], None]
Answer = Callable[..., TrainingPlan]
COUNTED = r"\d[\d.]*[KMBT]"  # 15T
REFERENCE = "llama-3-1-405b"  # the run whose failures and storage are taken where none are given


@understood
def plan_training(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    run: Training,
    *,
    devices: int | str | None = None,
    deadline: Annotated[QuantityLike | None, "s"] = None,
    budget: Annotated[QuantityLike | None, "USD"] = None,
    software: str | None = None,
    search: Search = Search(),
    failures: Failures = Failures(),
    prices: Prices = Prices(),
    on_progress: Progress | None = None,
) -> TrainingPlan:
    """The best of all layouts that train a model on a machine, and what the run takes.

    Every legal layout is looked at: DP, stages of ZeRO and hybrid sharding, TP, PP with thin
    stages, CP, EP, microbatches and recomputation. Those that fit are ordered by what measured
    rates say of each, or by their bounds where a rate was not measured.

    Where a deadline or a budget is given, `on_progress` is told how many numbers of devices are
    done, and of how many at most.

    Parameters
    ----------
    model
        model of `calc.models`
    hardware
        machine or device, or the name of one
    run
        tokens and steps of the run, and what it trains, a `Training`
    devices
        how many train; or else a deadline or a budget, and the fewest or the most are taken that
        keep it
    deadline
        the longest that the run may take, "30 day"
    budget
        the most that it may cost, "2e6 USD"
    software
        whose own time the expectation counts: "megatron", "megatron-26-04", "torchtitan",
        "maxtext", "llm-foundry" or "other-training"; none where it is left out
    search
        which layouts are looked at, a `Search`
    failures
        what stops the run, and how it goes on, a `Failures`
    prices
        of devices, with their building and their electricity, a `Prices`
    on_progress
        called with what is done, and of how much

    Examples
    --------
    >>> from calc import Training
    >>> plan = plan_training("llama-3-8b", "dgx-h100", Training("100B", sequences=256, length=8192),
    ...                      devices=64)
    >>> print(plan.layout.tensor, plan.layout.pipeline, plan.best.recomputation)
    1 1 selective
    """
    arrays.needed_by("plan_training()")
    check_is(Training, "run", run, 'calc.Training("15T", sequences=2048, length=8192)')
    check_is(Search, "search", search, 'calc.Search(layout="TP=8")')
    check_is(Failures, "failures", failures, 'calc.Failures(restart_time="10 min")')
    check_is(Prices, "prices", prices, 'calc.Prices("3 USD/hour")')
    question: dict[str, object] = {"model": model, "hardware": hardware, "run": run}
    question |= {"devices": devices, "deadline": deadline, "budget": budget, "software": software}
    question |= {"search": search, "failures": failures, "prices": prices}
    network = models.transformer(model)
    network = network if run.context is None else network.with_context(run.context)
    devices = None if devices is None else _plain_count(devices)
    limits = {"devices": devices, "deadline": deadline, "budget": budget}
    if sum(limit is not None for limit in limits.values()) != 1:
        raise InputError(
            "plan_training() takes one of devices, deadline and budget; got"
            f" {marked_all(limits) or 'none'}"
        )
    wanted = (search.recomputation,) if search.recomputation is not None else TRIED
    for word in wanted:
        one_of("plan_training(): recomputation", word, RECOMPUTATIONS)
    program = programs.UNKNOWN if software is None else programs.get(software)
    stored = training.recipe(program.recipe if run.recipe is None else run.recipe)
    tuned = None if run.fine_tune is None else Adapters(run.fine_tune, run.rank)
    if tuned is not None and run.recipe is not None:
        raise InputError(
            f"{marked('fine_tune', run.fine_tune)} has states of its own; got"
            f" {marked('recipe', run.recipe)}"
            " besides: leave one out"
        )
    longest = _whole("length", counted(run.length))
    formats = Formats(run.dtype)
    job = Job.of(network, machines.of(hardware), None, formats, program, tuned or ALL)
    job.device.peak(run.dtype)  # by which training is bound, whatever memory does
    task = Task(
        job,
        1 if devices is None else whole_number("devices", devices),
        longest,
        _sequences(run.sequences, longest),
        wanted,
        stored if tuned is None else tuned.recipe(network),
        number("usable", search.usable, above=0.0),
        one_of("plan_training(): schedule", search.schedule, SCHEDULES),
        check_fixed(search.layout),
        search.layout == PUBLISHED,
    )
    if task.usable > 1:
        raise InputError(f"usable is a share of a device's memory, at most 1; got {search.usable}")
    transformer.forward_flops(network, task.length)  # refuses what is longer than the model reads
    paid = None if prices.price is None else price_of_device(prices.price)
    published = runs.get(REFERENCE)
    fails, written = failures.device_time_between_failures, failures.storage_bandwidth
    if fails is None:
        fails = published.observed_time * published.devices / published.interruptions
    if written is None:
        written = published.storage_bandwidth / published.devices
    whole = amount("token", "tokens", _tokens(run.tokens), "15e12 token")
    answer = partial(
        TrainingPlan,
        given=flat(question),
        tokens=whole,
        price=paid,
        device_time_between_failures=amount("s", "device_time_between_failures", fails, "5 year"),
        storage_bandwidth=amount("byte/s", "storage_bandwidth", written, "100 MB/s"),
        restart_time=amount("s", "restart_time", failures.restart_time, "10 min"),
        pue=constants.get("pue_average") if prices.pue is None else power_usage(prices.pue),
        carbon_intensity=constants.get("carbon_intensity_world")
        if prices.grid is None
        else grids.intensity(prices.grid),
    )
    if devices is not None:
        return _planned(task, answer).settled()
    if deadline is not None:
        latest = amount("s", "deadline", deadline, "30 day")
        return _fewest(task, answer, whole, latest, on_progress).settled()
    if paid is None or budget is None:
        raise InputError('a budget needs the price of a device, price ("3 USD/hour")')
    paid = amount("USD", "budget", budget, "2e6 USD")
    return _most(task, answer, paid, on_progress).settled()


def training_row(**asked: Any) -> Row:
    """A plan as one row of words and plain numbers, for `run_plans`: its best layout, its costs.

    >>> from calc.planning import training_row
    >>> row = training_row(model="llama-3-8b", hardware="dgx-h100", tokens="1T", length=8192,
    ...                    sequences=64, devices=64, layout={"context": 1, "pipeline": 1})
    >>> row["cut"], row["expected"], row["recomputation"]
    ('DP64 ZeRO2', True, 'selective')
    """
    plan = plan_training(**arguments_of(plan_training, asked))
    units = {"cost": "USD", "energy": "MWh", "carbon": "t"}
    cells = {name: (getattr(plan, name), unit) for name, unit in units.items()}
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
        **{f"{name}_{unit}": v.m_as(unit) for name, (v, unit) in cells.items() if v is not None},
    }


def _planned(run: Task, answer: Answer) -> TrainingPlan:
    alternatives = all_cuts(run)
    room = run.room.m_as("byte")
    fits = [cuts.where(cuts.held <= room) for cuts in alternatives]
    fitting = [cuts for cuts in fits if cuts.count]
    if run.as_published and fitting:
        alike = (cuts.where(within(cuts)) for cuts in fitting)
        fitting = [cuts for cuts in alike if cuts.count]
        if not fitting:
            raise InputError(
                f"no published row of such a model on {run.job.device.name} has made the choices of"
                f" any layout that fits on {run.devices}: leave out {marked('layout', PUBLISHED)}"
            )
    if not fitting:
        least, device = min(cuts.held.min() for cuts in alternatives), run.job.device
        adapters = f"adapters alone ({marked('fine_tune', 'qlora')})"
        less = adapters if run.adapters is None else "a smaller rank"
        ways = (*_ways_to_fit(run), "more devices", "shorter sequences")
        raise InputError(
            f"no layout of {run.job.model.name} fits on {run.devices} {device.name}: the"
            f" fullest device needs {quantity(float(least), 'byte').to('GB')} at least, and"
            f" {run.room.to('GB')} of its {device.memory_capacity.to('GB')} may be"
            f" filled: take {', '.join(ways)}, or {less}"
        )
    ranking = Ranking(fitting)
    best = like = ranking.best(SHOWN)
    if best[0].beyond_published:
        like = ranking.best(1, list(map(within, fitting)))
    return answer(
        run,
        candidates=tuple(best),
        like_published=like[0] if like else None,
        searched=sum(cuts.count for cuts in alternatives),
        cuts=tuple(fitting),
    )


def _ways_to_fit(run: Task) -> Iterator[str]:
    """Yield what else would fit on these devices, and what the fullest then needs at least."""
    others = {f'recomputation="{word}"': replace(run, recomputations=(word,)) for word in TRIED}
    others = others if len(run.recomputations) == 1 else {}
    others |= {"another layout": replace(run, fixed={})} if run.fixed else {}
    for words, other in others.items():
        with suppress(InputError):  # of more layouts than are searched
            needed = quantity(min(cuts.held.min() for cuts in all_cuts(other)), "byte")
            if needed <= run.room:
                yield f"{words} ({needed.to('GB')})"


def _counts(run: Task, on_progress: Progress | None) -> Iterator[int]:
    """Numbers of devices to choose from: parts of a domain, and domains, by doubling."""
    domain, most = run.machine.hosted.domain, min(MOST_DEVICES, run.machine.most_joined)
    counts = [2**power for power in range(domain.bit_length()) if 2**power < domain]
    counts += [domain * 2**power for power in range(int(most // domain).bit_length())]
    for done, count in enumerate(counts):
        if on_progress is not None:
            on_progress(done, len(counts))
        yield count


def _shorter(
    run: Task, answer: Answer, counts: Iterator[int], least: float = 0.0
) -> Iterator[TrainingPlan]:
    """Plans on more and more devices, at least so many or one, while the run becomes shorter."""
    last = quantity(math.inf, "s")
    for count in counts:
        if 1 < count < least:
            continue
        try:
            plan = _planned(replace(run, devices=count), answer)
        except InputError:
            continue
        if plan.duration >= last:
            return  # more devices would wait for one another
        last = plan.duration
        yield plan


def _fewest(
    run: Task, answer: Answer, tokens: Quantity, deadline: Quantity, on_progress: Progress | None
) -> TrainingPlan:
    """The fewest devices that are done in time."""
    job, steps = run.job, tokens / run.tokens
    work = steps * run.operations / job.device.peak(job.formats.dtype)
    shortest = "no number of devices fits it"
    for plan in _shorter(run, answer, _counts(run, on_progress), (work / deadline).m_as("")):
        if plan.duration <= deadline:
            return plan
        shortest = f"the shortest is {plan.duration} on {devices_text(plan.devices)}"
    raise InputError(f"no run of {job.model.name} keeps the deadline of {deadline}: {shortest}")


def _most(
    run: Task, answer: Answer, budget: Quantity, on_progress: Progress | None
) -> TrainingPlan:
    """The devices with which the run is shortest, of those that the budget pays."""
    tried = _shorter(run, answer, _counts(run, on_progress))
    plans = [(cost, plan) for plan in tried if (cost := plan.cost) is not None]
    paid = [plan for cost, plan in plans if cost <= budget]
    if paid:
        return paid[-1]
    cheapest = "no number of devices fits it"
    if plans:
        cost, plan = min(plans, key=lambda priced: priced[0])
        cheapest = f"the cheapest costs {cost} on {devices_text(plan.devices)}"
    raise InputError(f"no run of {run.job.model.name} keeps the budget of {budget}: {cheapest}")


def _plain_count(value: Any) -> Any:
    """A count that a shell or a person wrote, "16k", as a number."""
    count = counted(value)
    if isinstance(count, str) and count.strip().isdigit():
        return int(count)
    return int(count) if isinstance(count, float) and count.is_integer() else count


def _sequences(value: QuantityLike, length: int) -> int:
    """Sequences of a step, of which people say the tokens too."""
    count = quantity(_plain_count(value)) if isinstance(value, str) else value
    if not (isinstance(count, Quantity) and count.is_compatible_with("token")):
        return whole_number("sequences", _plain_count(getattr(count, "magnitude", count)))
    several = float((count / A_TOKEN).m_as("")) / length
    # "16M token" is 16 · 2²⁰ where that, and not 16 million, makes whole sequences.
    binary = several * (1.024**2 if several * length >= 1e6 else 1.024)
    if several % 1 and not round(binary, 6) % 1:
        several = binary
    return max(1, round(several))


def _whole(name: str, raw: QuantityLike) -> int:
    count = quantity(raw)
    if count.is_compatible_with("token"):
        count = count / A_TOKEN
    if count.ndim or not count.unitless:
        raise InputError(
            f"{marked(name)} must be a whole number of tokens; got {abbreviated(raw)}", given=raw
        )
    value = count.m_as("")
    return whole_number(name, int(value) if value == value // 1 else value)


def _tokens(value: QuantityLike) -> Quantity:
    """Tokens with their unit, which people leave out, as in "15T"."""
    if isinstance(value, str) and re.fullmatch(COUNTED, value):
        value = f"{value} token"
    tokens = quantity(value)
    return tokens * A_TOKEN if tokens.unitless else tokens
