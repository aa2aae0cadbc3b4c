"""A training plan: its layouts, what the run takes, and how people and programs read it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from calc.catalog.hardware import dtype_of
from calc.core.report import Reported, Table, values
from calc.core.units import Quantity, quantity
from calc.laws import cost, energy, training
from calc.laws.roofline import StepTime
from calc.planning import drawing, files
from calc.planning.estimate import Bounds
from calc.planning.setup import device_power, devices_text, memory_text
from calc.planning.training import precedents
from calc.planning.training.candidate import Candidate, best_of
from calc.planning.training.precedents import DEGREES
from calc.planning.training.search import Cuts, Run
from calc.steps.job import Layout
from calc.steps.layouts import DeviceMemory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class TrainingPlan(Reported):
    r"""A run, its best layout, and what it takes; `print` shows it.

    `step` has the three answers for a step: `lower`, with all parts at once at published rates,
    `upper`, with none, and `expected`, at measured rates. `candidates` are the best layouts, one
    for each way to cut, the one that is taken first; whether others have published a layout like
    it is what `best.beyond_published` says.

    >>> from calc import plan_training
    >>> plan = plan_training("llama-3-8b", "dgx-h100", tokens="100B", sequences=256,
    ...                      length=8192, devices=64, layout={"context": 1, "pipeline": 1})
    >>> print("\n".join(plan.table().splitlines()[:4]))
    Llama 3 8B on 64 NVIDIA H100 SXM5 80 GB (NVIDIA DGX H100)
    256 sequences of 8192 tokens a step, 100B token in all
    layout DP64 ZeRO1, 4 microbatches of 1, recomputation selective
                           perfect overlap  no overlap  expected          what binds
    """

    _SENTENCES = (
        ("why_not_others", "Why not another layout"),
        ("what_would_change", "What would change it"),
        ("assumptions", "Assumed"),
    )

    run: Run
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
    given: Mapping[str, object]
    """What `plan_training` was asked, by the names of its arguments."""

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
        alike = (cuts.where(precedents.within(cuts)) for cuts in self.cuts)
        return next(iter(best_of([cuts for cuts in alike if cuts.count])), None)

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
        return self.run.devices

    @property
    def steps(self) -> float:
        """Steps of the run."""
        return float(math.ceil((self.tokens / self.run.tokens).m_as("")))

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
        model, adapters, recipe = self.run.job.model, self.run.adapters, self.run.recipe
        trained = model.parameters
        if adapters is not None:
            recipe, trained = training.recipe("adam-fp32"), adapters.parameters(model)
        sizes = [size for part, size in recipe.parts.items() if part != "gradient"]
        return training.model_memory(trained, sum(sizes[1:], sizes[0]))

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
        duration: Quantity = self.steps * self.best.time / self.goodput
        return duration.to("day")

    @property
    def device_time(self) -> Quantity:
        """The same of all devices together."""
        together: Quantity = self.duration * self.devices
        return together.to("h")

    @property
    def cost(self) -> Quantity | None:
        """Price of the run; None where no price was given."""
        if self.price is None:
            return None
        return cost.run_cost(self.devices, self.duration, self.price)

    @property
    def energy(self) -> Quantity | None:
        """Energy of the run with the cooling of the building; None where no power is published."""
        power = device_power(self.run.machine)
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
        time: Quantity = self.checkpoint / (self.storage_bandwidth * self.devices)
        return time.to("s")

    @cached_property
    def title(self) -> list[str]:
        """The model, the run and its layout, and the best layout like the published ones."""
        run, job, best = self.run, self.run.job, self.best
        lines = [
            f"{job.model.name} on {self.devices} {job.device.name} ({job.machine.name})",
            f"{run.sequences} sequences of {run.length} tokens a step, {self.tokens} in all",
            f"layout {best}, {self.layout.microbatches} microbatches of {best.sequences},"
            f" recomputation {best.recomputation}"
            + ("" if self.layout.schedule == "1f1b" else f", schedule {self.layout.schedule}"),
        ]
        if (like := self.like_published) is not None and like is not best:
            lines.append(
                f"of layouts like the published ones the best is {like}, {like.time} a step, MFU"
                f" {_percent(like.mfu)}"
            )
        return lines

    @cached_property
    def tables(self) -> list[Table]:
        """What the run takes, and a line for each of the best layouts."""
        return [Table(list(self._taken())), Table(list(self._layouts()), detail=True)]

    def _taken(self) -> Iterator[tuple[str, ...]]:
        step, memory = self.step, self.memory
        capacity = self.run.job.device.memory_capacity
        expected = "" if step.expected is None else str(step.expected)
        mfu = "" if self.expected_mfu is None else _percent(self.expected_mfu)
        yield "", "perfect overlap", "no overlap", "expected", "what binds"
        yield (
            *("memory of the fullest", memory_text(memory.total, capacity)),
            *("", "", f"of {capacity}"),
        )
        for name, part in memory.parts.items():
            yield f"  {name}", memory_text(part, capacity), "", "", ""
        yield "step", str(step.lower), str(step.upper), expected, step.bound
        if step.interval is not None:
            low, high = step.interval
            yield "  80 % interval", "", "", f"{low:.3g} to {high:.3g}", ""
        yield "MFU", _percent(self.mfu.upper), _percent(self.mfu.lower), mfu, ""
        yield "HFU", "", "", _percent(self.best.hfu), ""
        yield "tokens of a device", "", "", str(self.best.throughput), ""
        yield "all steps", *(str(time.to("day")) for time in self.time), "", ""
        goodput = f"goodput {_percent(self.goodput)}"
        yield "run with failures", "", "", str(self.duration), goodput
        yield "hours of all devices", "", "", str(self.device_time), ""
        for name in ("cost", "energy", "carbon"):
            if (value := getattr(self, name)) is not None:
                yield name, "", "", str(value), ""
        yield "checkpoint every", "", "", str(self.checkpoint_interval.to("min")), ""

    def _layouts(self) -> Iterator[tuple[str, ...]]:
        yield "layout", "microbatches", "recomputation", "memory", "lower", "upper", "expected"
        for layout in self.candidates:
            step = layout.step
            yield (
                str(layout),
                f"{layout.layout.microbatches} of {layout.sequences}",
                layout.recomputation,
                str(layout.memory.total.to("GB")),
                str(step.lower),
                str(step.upper),
                "–" if step.expected is None else str(step.expected),
            )

    def rows(self) -> list[dict[str, object]]:
        """The best layouts, a row each, with plain keys."""
        return [
            {
                "layout": str(best),
                **values(best.layout, " ".join((*DEGREES, "sharding"))),
                "sharing": best.layout.sharers,
                "microbatches": best.layout.microbatches,
                **values(best, "sequences recomputation"),
                "schedule": best.layout.schedule,
                "memory": best.memory.total.to("GB"),
                **values(best.step, "lower upper expected interval"),
                **values(best, "mfu hfu throughput"),
                "bound": best.step.bound,
                "like_published": not best.beyond_published,
            }
            for best in self.candidates
        ]

    @cached_property
    def facts(self) -> dict[str, object]:
        """What the run takes, its best layouts, and what is said of them, by names that stay."""
        return {
            "rows": self.rows(),
            **values(self, "devices steps memory"),
            "step": values(self.step, "lower upper expected interval parts"),
            **values(self, "mfu expected_mfu"),
            **values(self.best, "hfu throughput"),
            **values(self, "goodput duration device_time cost energy carbon checkpoint"),
            **values(self, "checkpoint_interval"),
            "beyond_published": self.best.beyond_published,
            **values(self, "searched fitting assumptions why_not_others what_would_change"),
        }

    @property
    def why_not_others(self) -> tuple[str, ...]:
        """How many layouts do not fit, and by which part each of the next best is slower."""
        best, sentences = self.best.parts, []
        for other in self.candidates[1:4]:
            more = {name: time - best.get(name, 0.0) for name, time in other.parts.items()}
            name = max(more, key=more.__getitem__)
            slower = (other.time / self.best.time).m_as("") - 1
            sentences.append(
                f"{other} is {slower:.0%} slower: {name} takes {quantity(more[name], 's')} more."
            )
        return (
            f"{self.searched - self.fitting:,} of {self.searched:,} legal layouts need more than"
            f" {self.run.room.to('GB')} on their fullest device.",
            *sentences,
        )

    @property
    def what_would_change(self) -> tuple[str, ...]:
        """What would make this another answer, a sentence each: devices, and how often they fail.

        Of other devices the layout is the same with more or fewer copies, for the same batch.
        """
        return tuple(self._changes())

    def _changes(self) -> Iterator[str]:
        now = int(self.layout.data)
        for copies in (2 * now, now // 2):
            cuts = self.best.cuts.with_copies(copies)
            if cuts is None:
                continue
            devices = devices_text(cuts.run.devices)
            if cuts.memory.total > cuts.run.room:
                yield f"{devices} do not hold this layout with {copies} copies."
                continue
            longer = (Candidate(cuts, cuts.memory, cuts.step).time / self.best.time).m_as("")
            paid = longer * cuts.run.devices / self.devices
            yield f"{devices}: {longer:.3g} times the time of a step, {paid:.3g} the device time."
        for factor, word in ((0.5, "half"), (2.0, "twice")):
            often = factor * self.device_time_between_failures
            last = training.time_between_failures(often, self.devices)
            interval = training.checkpoint_interval(self._checkpoint_time, last)
            kept = training.goodput(interval, self._checkpoint_time, self.restart_time, last)
            yield (
                f"A device that fails every {often.to('year')}, {word} as long, makes the goodput"
                f" {_percent(kept)}."
            )

    def _assumptions(self) -> Iterator[str]:
        run, job, adapters = self.run, self.run.job, self.run.adapters
        device, dtype = job.device, job.formats.dtype
        if self.best.beyond_published:
            yield self.best.beyond_published
        yield (
            f"Products are computed in {dtype_of(dtype).upper()} at {device.peak(dtype)};"
            f" states take {run.recipe.name}, and {run.usable:.0%} of {device.memory_capacity} may"
            " be filled, the rest being left to buffers and fragments."
        )
        if adapters is not None:
            yield (
                f"Adapters of rank {adapters.rank} are trained beside frozen weights; that QLoRA"
                " unpacks its codes for each product is in no time."
            )
        yield (
            "Slices (TP) fill the machine's domains first, then parts of sequences (CP), experts"
            " (EP), copies (DP) and stages (PP); all activations of a layer are kept, but for what"
            " the recomputation says, and norms are cut along the sequence."
        )
        if self.step.expected is not None:
            program = job.software.key or "no software"
            yield (
                "Expected is what kernels and messages were measured to reach on"
                f" {job.machine.name} or the machine most like it, with the own time of {program},"
                " of each layout that fits."
            )
            if (alike := self.step.expected_parts.alike) is not None:
                yield f"The interval is that of 80 % of published {alike}."
        else:
            yield f"Nothing is expected: {self.step.not_expected}."
        yield (
            f"A device fails every {self.device_time_between_failures.to('year')}, a checkpoint of"
            f" {self.checkpoint.to('TB')} is written at"
            f" {self.storage_bandwidth.to('MB/s')} by each device, and a restart takes"
            f" {self.restart_time}."
        )
        yield (
            f"Energy counts a PUE of {self.pue}, and carbon {self.carbon_intensity}; both are"
            " averages."
        )

    def draw(self) -> Figure:
        """A figure of matplotlib: the time of a step by its parts, for the ten best layouts."""
        best = self.candidates
        ends = [layout.time.m_as("s") for layout in best]
        return drawing.bars(list(map(str, best)), [layout.parts for layout in best], ends)

    def to_toml(self) -> str:
        """The options that make this plan again, as the text of a file."""
        meant = {"model": self.run.job.model, "hardware": self.run.machine}
        settled = {"devices": self.devices, "deadline": None, "budget": None}
        return files.options_text({**self.given, **meant, **settled})

    def __repr__(self) -> str:
        return f"<{self.run.job.model.name} trained on {self.devices} {self.run.job.device.name}>"


def _percent(share: Quantity) -> str:
    return f"{share.m_as(''):.1%}"
