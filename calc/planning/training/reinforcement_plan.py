"""`plan_reinforcement`: a step of reinforcement learning, from rollouts to new weights, as a plan.

Laws say what generation, scoring, training and the new weights take; published steps say how much
longer a step is than that, since engines, trainers and what checks answers do more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from calc.catalog import machines, models
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.intervals import signed, three
from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.core.arguments import whole_number
from calc.core.errors import InputError, abbreviated, marked
from calc.core.law import AT_LEAST_ONE
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws.rollouts import Lengths
from calc.planning.setup import amount, devices_text, price_of_device, whole_count
from calc.published import rollout_rows as published
from calc.steps import device_memory, reinforcement
from calc.steps.job import Formats, Job, Layout
from calc.steps.reinforcement import RolloutStep

HELD = 1  # answers at full length that an engine must hold at least
PARTS = {
    "generation": "rollout, until the longest answer",
    "scoring": "scoring, forward passes",
    "training": "update",
    "update": "new weights to engines",
}


@dataclass(frozen=True, eq=False, repr=False)
class ReinforcementPlan(Answer):
    """A plan of a synchronous step: its parts by the laws, and all of it as published steps say.

    `step` is by the laws; `total` is that times the median factor of published steps, with their
    range, and what checks answers.

    >>> found = plan_reinforcement("qwen-3-30b-a3b", "dgx-h100", answers=2048, average=3203,
    ...                            limit=4096, devices=32)
    >>> print(found.engine, found.step.total, found.total)
    4 88.46 s 3.157 min
    """

    job: Job
    step: RolloutStep
    lengths: Lengths
    answers: int
    reward: Quantity
    """Time in which answers are checked, beside all else."""
    steps: int | None
    price: Quantity | None

    @property
    def engine(self) -> int:
        """Devices of an engine, which has all of the model."""
        return int(self.job.layout.tensor)

    @property
    def total(self) -> Quantity:
        """The step as expected: by the laws, times what published steps take more."""
        return (self.step.total * published.factor() + self.reward).to("s")

    @cached_property
    def around(self) -> tuple[Quantity, Quantity]:
        """The range of 80 % of published steps, each beside a factor of the other models'."""
        low, high = published.spread()
        scaled = self.step.total * published.factor()
        return (scaled * low + self.reward).to("s"), (scaled * high + self.reward).to("s")

    @property
    def answer(self) -> str:
        unit = str(self.total).partition(" ")[2]
        low, high = (three(end, unit) for end in self.around)
        run = ""
        if self.steps is not None:
            whole = (self.total * self.steps).to("hour")
            run = f"; {self.steps} steps take {whole}"
            if self.price is not None:
                paid = (whole * self.price * int(self.job.layout.devices)).to("USD")
                run += f" and cost {paid}"
        count = int(self.job.layout.data)
        engines = "1 engine" if count == 1 else f"{count} engines"
        return (
            f"{self.job.model.name} on {self.job.layout.devices} {self.job.device.name}, {engines}"
            f" of {devices_text(self.engine)}: a step of {self.answers} answers takes"
            f" {self.total} ({low} to {high} {unit}){run}"
        )

    @property
    def stands_on(self) -> str:
        low, high = published.spread()
        count = len(published.steps())
        return (
            f"laws at measured rates, times {published.factor():.2f}, the median of {count}"
            f" published steps: with a model left out half are within"
            f" {published.median_error():.0%}, 80% of times in {signed(low)} … {signed(high)}%"
        )

    @property
    def caveats(self) -> Sequence[str]:
        return (
            "The step is synchronous: devices that have ended their answers wait for the longest."
            f" That tail is {self.step.tail:.3g} of the rollout, if lengths are exponential.",
            "What checks answers takes no time here unless reward says how long it takes."
            if not self.reward.magnitude
            else "What checks answers is not hidden behind anything.",
            "The memory of training beside engines is not counted: engines give theirs back, or"
            " trainers stand apart.",
        )

    @cached_property
    def tables(self) -> Sequence[Table]:
        scale = published.factor()
        rows: list[tuple[str, ...]] = [("part of a step", "by the laws", "expected", "share")]
        for name, words in PARTS.items():
            time = getattr(self.step, name)
            share = (time * scale / self.total).to("%")
            rows.append((words, str(time), str((time * scale).to("s")), f"{share:.3g}"))
        rows.append(("reward", "", str(self.reward), f"{(self.reward / self.total).to('%'):.3g}"))
        rows.append(("step", str(self.step.total), str(self.total), ""))
        written = (self.step.tokens / self.total).to("token/s")
        rows.append(("tokens of answers", "", str(written), ""))
        return (Table(rows),)

    @cached_property
    def facts(self) -> Mapping[str, object]:
        job = self.job
        return {
            "model": job.model.key or job.model.name,
            "machine": job.measured_on.key,
            **self.headline,
            "devices": int(job.layout.devices),
            "engine": self.engine,
            "engines": int(job.layout.data),
            **values(self, "answers total around reward steps"),
            "parts": {name: getattr(self.step, name) for name in PARTS},
            "tail": self.step.tail,
            "factor": published.factor(),
        }


@understood
def plan_reinforcement(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    *,
    answers: Annotated[QuantityLike, "", AT_LEAST_ONE],
    average: Annotated[QuantityLike, "", AT_LEAST_ONE],
    limit: Annotated[QuantityLike, "", AT_LEAST_ONE],
    devices: int,
    prompt: int = 500,
    engine: int | None = None,
    reward: Annotated[QuantityLike, "s"] = "0 s",
    steps: int | None = None,
    price: Annotated[QuantityLike | None, "USD/s"] = None,
) -> ReinforcementPlan:
    """Return what a step of reinforcement learning takes, part by part, with the best engines.

    Parameters
    ----------
    model
        model of `calc.models`
    hardware
        machine or device, or the name of one
    answers
        that are generated, scored and trained on in a step
    average
        tokens of an answer, on average
    limit
        tokens at which an answer is cut off
    devices
        that generate and then train, all together
    prompt
        tokens of a prompt
    engine
        devices of an inference engine (TP); those with which a step is shortest where it is left
        out
    reward
        time in which answers are checked, "5 s"
    steps
        of the whole run
    price
        of a device, "3 USD/hour"

    Examples
    --------
    >>> plan_reinforcement("qwen-3-8b", "dgx-h100", answers=512, average=1000, limit=8000,
    ...                    devices=8).engine
    8
    """
    checked, machine = models.transformer(model), machines.of(hardware)
    count, number = whole_number("devices", devices), _count("answers", answers)
    lengths = Lengths(
        _count("average", average), _count("limit", limit), whole_number("prompt", prompt)
    )
    cost = None if price is None else price_of_device(price)
    waited = quantity(0, "s") if _is_nothing(reward) else amount("s", "reward", reward, "5 s")
    run = None if steps is None else whole_number("steps", steps)
    sizes = (engine,) if engine is not None else Layout.slices_of(checked, machine)
    found: list[tuple[Job, RolloutStep]] = []
    missing = ""
    for size in sizes:
        slices = whole_number("engine", size)
        if count % slices or slices > machine.most_joined:
            continue
        layout = Layout(data=count // slices, tensor=slices)
        layout.check(checked, machine)
        job = Job.of(checked, machine, layout, Formats(machine.device.usual_dtype), "vllm")
        whole = Job.of(checked, machine, Layout(tensor=slices), job.formats, job.software)
        if device_memory.of(whole, int(lengths.prompt + lengths.limit)).largest_batch < HELD:
            continue
        bare = Job.of(checked, machine, layout, job.formats)
        try:
            found.append((bare, reinforcement.step(bare, lengths, number)))
        except NotMeasured as error:
            missing = str(error)
    if not found:
        raise InputError(
            f"{marked('devices', count)} of {machine.name} make no engines that hold"
            f" {checked.name} with an answer of {lengths.limit:g} tokens"
            + (f": {missing}" if missing else "")
        )
    best, step = min(found, key=lambda one: one[1].total)
    return ReinforcementPlan(best, step, lengths, number, waited, run, cost).settled()


def _count(name: str, value: QuantityLike) -> int:
    count = whole_count(name, value)
    if count.ndim:
        raise InputError(f"{marked(name)} must be one number; got {abbreviated(value)}")
    return int(count.m_as(""))


def _is_nothing(reward: Any) -> bool:
    try:
        return not quantity(reward).magnitude
    except InputError:
        return False
