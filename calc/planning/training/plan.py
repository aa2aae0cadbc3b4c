"""`plan_training`: the best layout of a training run, and what the run takes, in one call."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from calc.catalog import constants, machines, models, runs, software as programs
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import number, one_of, whole_number
from calc.core.elementwise import different
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import columns, html_table
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import cost, energy, parallelism, training
from calc.laws.roofline import StepTime
from calc.networks import transformer
from calc.planning.estimate import Bounds
from calc.planning.setup import A_TOKEN, amount, device_power
from calc.planning.training import precedents, search
from calc.planning.training.search import Cuts, Run
from calc.steps.finetuning import Adapters
from calc.steps.job import SCHEDULES, Layout
from calc.steps.layouts import DeviceMemory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECOMPUTATIONS = transformer.RECOMPUTATIONS
SHOWN = 10
"""Layouts of a plan, the best of each way to cut."""
WAYS = ("tensor", "pipeline", "context", "experts")  # by which layouts differ in a plan
MOST_DEVICES = 2**20
Progress = Callable[[int, int], None]
COUNTED = r"\d[\d.]*[KMBT]"  # 15T
REFERENCE = "llama-3-1-405b"
"""The run whose failures and storage are taken where none are given."""


@dataclass(frozen=True)
class Candidate:
    """One layout that fits: its memory, and the time of its step."""

    cuts: Cuts
    memory: DeviceMemory
    step: StepTime

    @property
    def layout(self) -> Layout:
        """Its copies, slices, stages and so on."""
        return self.cuts.layout

    @property
    def sequences(self) -> int:
        """Sequences of a microbatch."""
        return int(self.cuts.sequences)

    @property
    def recomputation(self) -> str:
        """What is computed twice."""
        return self.cuts.recomputation

    @cached_property
    def time(self) -> Quantity:
        """What a step is expected to take; its upper bound where rates were not measured."""
        expected = self.step.expected
        return self.step.upper if expected is None else expected

    @property
    def mfu(self) -> Quantity:
        """Utilisation of the peak by the model's own operations in that time."""
        return training.mfu_of_operations(self.step.operations, 1, self.step.peak, self.time)

    @property
    def hfu(self) -> Quantity:
        """The same with what is computed again."""
        job = self.cuts.job
        again = transformer.recomputed_flops(job.model, job.length, self.recomputation)
        forward = transformer.causal_flops(job.model, job.length)
        return parallelism.hfu(self.mfu, again / forward)

    @property
    def throughput(self) -> Quantity:
        """Tokens per second of each device."""
        return (self.step.tokens / self.time / self.layout.devices).to("token/s")

    @cached_property
    def beyond_published(self) -> str:
        """The sentence that names its choices which no published row has made; "" for none."""
        return precedents.beyond(self.cuts)


@dataclass(frozen=True, eq=False, repr=False)
class TrainingPlan:
    """A run, its best layout, and what it takes; `print` shows it.

    `step` has the three answers for a step: `lower`, with all parts at once at published rates,
    `upper`, with none, and `expected`, at measured rates. `candidates` are the best layouts, one
    for each way to cut, the one that is taken first; whether others have published a layout like
    it is what `best.beyond_published` says.
    """

    job: Run
    tokens: Quantity
    candidates: tuple[Candidate, ...]
    searched: int
    """Legal layouts."""
    cuts: tuple[Cuts, ...]
    """Those of them that fit, by what they recompute."""
    price: Quantity | None
    device_time_between_failures: Quantity
    storage_bandwidth: Quantity
    restart_time: Quantity
    pue: Quantity
    carbon_intensity: Quantity

    @property
    def best(self) -> Candidate:
        """The layout that is taken."""
        return self.candidates[0]

    @property
    def fitting(self) -> int:
        """How many of the legal layouts fit."""
        return sum(cuts.count for cuts in self.cuts)

    @cached_property
    def like_published(self) -> Candidate | None:
        """The best of those that make no choice which no published row has made; None for none."""
        if not self.best.beyond_published:
            return self.best
        known = (cuts.where(precedents.within(cuts)) for cuts in self.cuts)
        return next(iter(_best([cuts for cuts in known if cuts.count])), None)

    @property
    def layout(self) -> Layout:
        """Its copies, slices, stages and so on."""
        return self.best.layout

    @property
    def memory(self) -> DeviceMemory:
        """What the fullest device holds."""
        return self.best.memory

    @property
    def step(self) -> StepTime:
        """The time of a step, part by part."""
        return self.best.step

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.job.devices

    @property
    def steps(self) -> float:
        """Steps of the run."""
        return float(math.ceil((self.tokens / search.tokens_of(self.job)).m_as("")))

    @property
    def mfu(self) -> Bounds:
        """Utilisation of the peak by the model's operations, at published rates."""
        return Bounds(*self.step.mfu)

    @property
    def expected_mfu(self) -> Quantity | None:
        """The same as it is expected."""
        return None if self.step.expected is None else self.best.mfu

    @property
    def checkpoint(self) -> Quantity:
        """Bytes of a checkpoint: weights, and the states of the optimizer, of what is trained."""
        job = self.job
        recipe = job.recipe if job.tuned is None else training.recipe("adam-fp32")
        kept = [size for part, size in recipe.parts.items() if part != "gradient"]
        trained = job.model.parameters if job.tuned is None else job.tuned.parameters(job.model)
        return training.model_memory(trained, sum(kept[1:], kept[0]))

    @property
    def checkpoint_interval(self) -> Quantity:
        """Time between checkpoints that loses least."""
        return training.checkpoint_interval(self._checkpoint_time, self._between_failures)

    @property
    def goodput(self) -> Quantity:
        """Share of the time that goes into work which lasts."""
        return training.goodput(
            self.checkpoint_interval,
            self._checkpoint_time,
            self.restart_time,
            self._between_failures,
        )

    @property
    def time(self) -> Bounds:
        """Time of all steps at published rates, without failures."""
        return Bounds(self.steps * self.step.lower, self.steps * self.step.upper)

    @property
    def duration(self) -> Quantity:
        """Time of the run as it is planned: expected steps, failures and checkpoints included."""
        return (self.steps * self.best.time / self.goodput).to("day")

    @property
    def device_time(self) -> Quantity:
        """The same of all devices together."""
        return (self.duration * self.devices).to("h")

    @property
    def cost(self) -> Quantity | None:
        """Price of the run; None where no price was given."""
        if self.price is None:
            return None
        return cost.run_cost(self.devices, self.duration, self.price)

    @property
    def energy(self) -> Quantity | None:
        """Energy of the run with the cooling of the building; None where no power is published."""
        power = device_power(self.job.machine)
        if power is None:
            return None
        run = energy.energy_of_run(power * self.devices, self.duration)
        return cost.facility_energy(run, self.pue).to("MWh")

    @property
    def carbon(self) -> Quantity | None:
        """Emissions of its electricity."""
        return None if self.energy is None else cost.carbon(self.energy, self.carbon_intensity)

    @property
    def _between_failures(self) -> Quantity:
        return training.time_between_failures(self.device_time_between_failures, self.devices)

    @property
    def _checkpoint_time(self) -> Quantity:
        return (self.checkpoint / (self.storage_bandwidth * self.devices)).to("s")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers stand on, a sentence each."""
        from calc.planning.training import report

        return tuple(report.assumptions(self))

    @property
    def why_not_others(self) -> tuple[str, ...]:
        """Why the other layouts lose, a sentence each."""
        from calc.planning.training import report

        return tuple(report.why_not_others(self))

    def rows(self) -> list[dict[str, Any]]:
        """The best layouts, a row each, with plain keys."""
        from calc.planning.training import report

        return report.rows(self)

    def table(self) -> str:
        r"""The plan as lines of text, with the best layouts below it.

        >>> found = plan_training("llama-3-8b", "dgx-h100", tokens="100B", sequences=256,
        ...                       length=8192, devices=64, layout={"context": 1, "pipeline": 1})
        >>> print("\n".join(found.table().splitlines()[:4]))
        Llama 3 8B on 64 NVIDIA H100 SXM5 80 GB (NVIDIA DGX H100)
        256 sequences of 8192 tokens a step, 100B token in all
        layout DP64 ZeRO1, 4 microbatches of 1, recomputation selective
                               perfect overlap  no overlap  expected        what binds
        """
        from calc.planning.training import report

        above, rows = report.table(self)
        below = report.candidates(self)
        return "\n".join([*above, *columns(rows), "", *columns(below)])

    def draw(self) -> Figure:
        """A figure of matplotlib: the time of a step by its parts, for the ten best layouts."""
        from calc.planning.training import drawing

        return drawing.draw(self)

    def to_toml(self) -> str:
        """The options that make this plan again, as the text of a file."""
        from calc.planning import files

        return files.plan_text(self, plan_training)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from calc.planning.training import report

        return html_table(*report.table(self))

    def __repr__(self) -> str:
        return f"<{self.job.model.name} trained on {self.devices} {self.job.machine.device.name}>"


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
        program.key or None,
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
    from calc.planning.training import report

    plan = plan_training(**asked)
    units = {"cost": "USD", "energy": "MWh", "carbon": "t"}
    found = {name: (getattr(plan, name), unit) for name, unit in units.items()}
    return {
        "cut": report.cut(plan.best),
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
        candidates=tuple(_best(fitting)),
        searched=sum(cuts.count for cuts in alternatives),
        cuts=tuple(fitting),
        **given,
    )


def _best(fitting: list[Cuts]) -> list[Candidate]:
    """The best layouts by what is expected of each, one for each way to cut.

    Where messages hide, layouts are equal: then that is taken whose parts are shortest in sum, and
    of such the one that holds least. What was not measured of a rate comes last, by its bound.
    """
    import numpy

    if not fitting:
        return []
    times = numpy.concatenate([cuts.expected for cuts in fitting])
    bounds = numpy.concatenate([cuts.step.upper.m_as("s") for cuts in fitting])
    held = numpy.concatenate([cuts.held for cuts in fitting])
    owners = numpy.concatenate([numpy.full(cuts.count, i) for i, cuts in enumerate(fitting)])
    places = numpy.concatenate([numpy.arange(cuts.count) for cuts in fitting])
    degrees = [numpy.concatenate([getattr(cuts.layout, name) for cuts in fitting]) for name in WAYS]
    order = numpy.lexsort((held, bounds, times))  # of which NaN is the last
    _, way = different(*degrees)
    _, first = numpy.unique(way[order], return_index=True)
    chosen = order[numpy.sort(first)[:SHOWN]]
    found = (fitting[owners[each]].one(int(places[each])) for each in chosen)
    return [Candidate(cuts, cuts.memory, cuts.step) for cuts in found]


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


def _tried(job: Run, given: dict[str, Any], count: int) -> TrainingPlan | None:
    try:
        return _planned(replace(job, devices=count), given)
    except InputError:
        return None


def _fewest(
    job: Run, given: dict[str, Any], deadline: Quantity, on_progress: Progress | None
) -> TrainingPlan:
    """The fewest devices that are done in time."""
    shortest: TrainingPlan | None = None
    steps = given["tokens"] / search.tokens_of(job)
    work = steps * search.operations_of(job) / job.machine.device.peak(job.dtype)
    for count in _counts(job, on_progress):
        plan = _tried(job, given, count) if work / count <= deadline or count == 1 else None
        if plan is None:
            continue
        if plan.duration <= deadline:
            return plan
        if shortest is not None and plan.duration >= shortest.duration:
            break  # more devices would wait for one another
        shortest = plan
    told = (
        "no number of devices fits it"
        if shortest is None
        else f"the shortest is {shortest.duration} on {_devices(shortest)}"
    )
    raise InputError(f"no run of {job.model.name} keeps the deadline of {deadline}: {told}")


def _most(
    job: Run, given: dict[str, Any], budget: Quantity, on_progress: Progress | None
) -> TrainingPlan:
    """The devices with which the run is shortest, of those that the budget pays."""
    paid: TrainingPlan | None = None
    cheapest: TrainingPlan | None = None
    last = quantity(math.inf, "s")
    for count in _counts(job, on_progress):
        plan = _tried(job, given, count)
        if plan is None or plan.cost is None:
            continue
        if plan.duration >= last:
            break  # more devices would wait for one another
        last = plan.duration
        if cheapest is None or cheapest.cost is None or plan.cost < cheapest.cost:
            cheapest = plan
        if plan.cost <= budget:
            paid = plan
    if paid is None:
        told = (
            "no number of devices fits it"
            if cheapest is None
            else f"the cheapest costs {cheapest.cost} on {_devices(cheapest)}"
        )
        raise InputError(f"no run of {job.model.name} keeps the budget of {budget}: {told}")
    return paid


def _devices(plan: TrainingPlan) -> str:
    return "1 device" if plan.devices == 1 else f"{plan.devices} devices"


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
