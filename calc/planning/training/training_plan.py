"""A training plan: its layouts, what the run takes, and how people and programs read it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from calc import formats
from calc.catalog import intervals, models, runs
from calc.catalog.hardware import dtype_of
from calc.catalog.intervals import Around, cuts
from calc.core.elementwise import at
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, quantity
from calc.laws import cost, energy, training
from calc.planning import drawing, plan_files
from calc.planning.results import Bounds
from calc.planning.setup import devices_text, memory_text
from calc.planning.training.candidate import Candidate
from calc.planning.training.layout_search import PRINTED, Cuts, Task, with_copies
from calc.planning.training.precedents import DEGREES
from calc.published.conditions import device_key
from calc.steps import device_power
from calc.steps.device_power import Power
from calc.steps.expectation import Step
from calc.steps.job import Layout
from calc.steps.layouts import DeviceMemory

HALF_A_PERCENT = 0.005  # below which parts of layouts, longer and shorter, make up for one another


@dataclass(frozen=True, eq=False, repr=False)
class TrainingPlan(Answer):
    r"""A run, its best layout, and what it takes; `print` shows it.

    `step` has the three answers for a step: `lower`, with all parts at once at published rates,
    `upper`, with none, and `expected`, at measured rates. `candidates` are the best layouts, one
    for each way to cut, the one that is taken first; whether others have published a layout like
    it is what `best.beyond_published` says.

    >>> from calc import Search, Training, plan_training
    >>> plan = plan_training("llama-3-8b", "dgx-h100", Training("100B", sequences=256, length=8192),
    ...                      devices=64, search=Search({"context": 1, "pipeline": 1}))
    >>> print(plan.best, plan.best.recomputation)
    DP64 ZeRO1 selective
    """

    _SENTENCES = (
        ("why_not_others", "Why not another layout"),
        ("what_would_change", "What would change it"),
        ("assumptions", "Assumed"),
    )

    run: Task
    tokens: Quantity
    candidates: tuple[Candidate, ...]
    like_published: Candidate | None
    """The best of those that make no choice which no published row has made; None for none."""
    searched: int
    """Legal layouts."""
    cuts: tuple[Cuts, ...]
    """Cuts that fit, by what they recompute."""
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
        return self.candidates[0]

    @property
    def fitting(self) -> int:
        """Return how many of the legal layouts fit."""
        return sum(cuts.count for cuts in self.cuts)

    @property
    def layout(self) -> Layout:
        return self.best.layout

    @property
    def memory(self) -> DeviceMemory:
        """Return what the fullest device holds."""
        return self.best.memory

    @property
    def step(self) -> Step:
        """The time of a step, part by part."""
        return self.best.step

    @property
    def devices(self) -> int:
        return self.run.devices

    @property
    def steps(self) -> float:
        return float(math.ceil((self.tokens / self.run.tokens).m_as("")))

    @property
    def mfu(self) -> Bounds:
        """Utilisation of the peak by the model's operations, attention too, at published rates."""
        return Bounds(*self.step.mfu)

    @property
    def expected_mfu(self) -> Quantity | None:
        """Return the utilisation that is expected; None where nothing is."""
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
        times = self.checkpoint_interval, self._checkpoint_time, self.restart_time
        return training.goodput(*times, self._between_failures)

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
        """Return the duration of all devices together."""
        return (self.duration * self.devices).to("h")

    @property
    def cost(self) -> Quantity | None:
        """Price of the run; None where no price was given."""
        if self.price is None:
            return None
        return cost.run_cost(self.devices, self.duration, self.price)

    @cached_property
    def power(self) -> Power | None:
        """Return what a device draws, and its share of the machine; None where unpublished."""
        best = self.best
        seconds = {name: time.m_as("s") for name, time in best.step.parts.items()}
        memory = seconds.get("memory", 0.0) / best.time.m_as("s")
        return device_power.at_work(self.run.machine, memory, best.hfu.m_as(""))

    @property
    def device_energy(self) -> Quantity | None:
        """Energy of the run that its devices take, and their cooling; None without their power."""
        return None if self.power is None else self._energy(self.power.device)

    @property
    def energy(self) -> Quantity | None:
        """Energy of the run with the cooling of the building; None where no power is published."""
        return None if self.power is None else self._energy(self.power.total)

    def _energy(self, power: Quantity) -> Quantity:
        run = energy.energy_of_run(power * self.devices, self.duration)
        return cost.facility_energy(run, self.pue).to("MWh")

    def around_energy(self, value: Quantity, which: str) -> Around | None:
        """The range of an energy, which grows with a step's time and with the power of `which`."""
        times = self.around(self.duration)
        if times is None or self.power is None:
            return None
        ends, machine = device_power.between(self.run.machine, self.power), self.run.machine
        idle = device_power.idle(machine)
        assert idle is not None
        assert times.bound is not None
        expected = getattr(self.power, which)
        powers = tuple((getattr(end, which) / expected).m_as("") for end in ends)
        factors = tuple((end / self.duration).m_as("") for end in times.ends)
        least = value * (idle.total / expected) * (times.bound / self.duration)
        return intervals.around(value, *intervals.of_both(factors, powers), least)

    @property
    def carbon(self) -> Quantity | None:
        """Emissions of its electricity."""
        return None if self.energy is None else cost.carbon(self.energy, self.carbon_intensity)

    @property
    def _ranges(self) -> dict[str, Mapping[str, object]]:
        """The ranges of energies and of carbon, by their names."""
        drawn = {"device_energy": "device", "energy": "total", "carbon": "total"}
        energies = {name: getattr(self, name) for name in drawn}
        ranges = {
            name: self.around_energy(value, drawn[name])
            for name, value in energies.items()
            if value is not None
        }
        return {name: around.facts for name, around in ranges.items() if around is not None}

    @property
    def _between_failures(self) -> Quantity:
        return training.time_between_failures(self.device_time_between_failures, self.devices)

    @property
    def _checkpoint_time(self) -> Quantity:
        return (self.checkpoint / (self.storage_bandwidth * self.devices)).to("s")

    @property
    def basis(self) -> str:
        """Return what it stands on: measured rates, rates of kin, published peaks alone."""
        parts = self.step.expected_parts
        return intervals.PEAKS if parts is None else str(parts.basis)

    def around(self, value: Quantity, rate: bool = False) -> Around | None:
        """The 80 % range around a value of this plan; a `rate` falls as steps take longer."""
        parts = self.step.expected_parts
        if parts is None or parts.alike is None:
            return None
        least = float((self.step.lower / parts.total).m_as(""))
        around: Around = parts.alike.around(value, value / least if rate else value * least, rate)
        return around

    def interval(self, expected: Quantity, rate: bool = False) -> tuple[Quantity, Quantity] | None:
        around = self.around(expected, rate)
        return None if around is None else around.ends

    @property
    def answer(self) -> str:
        job, word = self.run.job, "" if self.step.expected is not None else "at least "
        unlike = " (like no published row)" if self.best.beyond_published else ""
        return (
            f"{job.model.name} on {self.devices} {job.device.name}: {self.best}{unlike}, MFU"
            f" {_percent(self.best.mfu)}, {word}{', '.join(self._asked_for)}"
        )

    @property
    def _asked_for(self) -> Iterator[str]:
        """The time of the run, its cost by a price, and its emissions where a grid was given."""
        yield str(self.duration)
        if self.cost is not None:
            yield str(self.cost)
        if self.given["grid"] is not None and self.carbon is not None:
            yield f"{self.carbon} of carbon"

    @property
    def stands_on(self) -> str:
        if self.step.expected_parts is None:
            why = self.step.not_expected.partition(": ")[0]
            return f"BOUND ONLY, {intervals.PEAKS}, no overlap: {why}"
        cut = cuts({"a step": self.step.around})
        return f"{self.step.expected_parts.stands_on}{cut}"

    @property
    def chosen(self) -> list[str]:
        question, best, fixed = self.given, self.best, self.run.fixed
        count = best.layout.microbatches
        asked = formats.get(str(question["dtype"]))
        block = asked if isinstance(asked, formats.Block) else None
        free = [
            f"{short}{getattr(best.layout, name)}"
            for name, short in PRINTED.items()
            if name not in fixed and getattr(best.layout, name) > 1
        ]
        return [
            *([" ".join(free)] if free else []),
            f"{count} microbatch{'' if count == 1 else 'es'} of {best.sequences}",
            *([f"recomputation {best.recomputation}"] if not question["recomputation"] else []),
            *([f"{self.devices} devices"] if not question["devices"] else []),
            *([self.run.job.software.title()] if not question["software"] else []),
            *([f"{block.name} at the rates of its elements"] if block else []),
        ]

    @property
    def caveats(self) -> list[str]:
        sentences = list(filter(None, (self._published_run, self.best.beyond_published)))
        if (like := self.like_published) is not None and like is not self.best:
            sentences.append(
                f"Of layouts like the published ones the best is {like}, {like.time} a step, MFU"
                f" {_percent(like.mfu)}."
            )
        return sentences

    @property
    def _published_run(self) -> str:
        """The sentence on what the same model took on the same devices; "" where none is known."""
        job = self.run.job
        for run in map(runs.get, runs.names()):
            same = models.key_of(run.name) == models.key_of(job.model.name) is not None
            same = same and device_key(run.device.lower()) == job.device.key
            has_hours = run.publishes("device_time") and run.publishes("tokens")
            if same and self.run.adapters is None and has_hours:
                took = run.device_time / run.tokens * self.tokens / self.device_time
                mfu = f", at an MFU of {run.mfu}" if run.publishes("mfu") else ""
                where = f" on {run.devices}" if run.publishes("devices") else ""
                return (
                    f"As published, {run.name} took {took.m_as(''):.2f} times the device hours a"
                    f" token{where}{mfu}."
                )
        return ""

    @cached_property
    def tables(self) -> list[Table]:
        capacity = self.run.job.device.memory_capacity
        parts = [(name, memory_text(part, capacity)) for name, part in self.memory.parts.items()]
        return [
            Table(list(self._taken())),
            Table([("", "memory of the fullest"), *parts], detail=True),
            Table(list(self._layouts()), "Layouts", detail=True),
        ]

    def _taken(self) -> Iterator[tuple[str, ...]]:
        run, step, capacity = self.run, self.step, self.run.job.device.memory_capacity

        def row(
            name: str,
            bound: Quantity | None,
            value: Quantity,
            last: str = "",
            rate: bool = False,
            drawn_by: str = "",
        ) -> tuple[str, ...]:
            taken = self.around_energy(value, drawn_by) if drawn_by else None
            around = taken if drawn_by else self.around(value, rate)
            range_text = "" if around is None else around.told()
            expected_text = "" if step.expected is None else str(value)
            least = str(value if bound is None and not expected_text else bound or "")
            return name, least, expected_text, range_text, last

        asked = f"{run.sequences} × {run.length}, {self.tokens}"
        yield asked, "bound", "expected", "80% of rows", "beside"
        memory = memory_text(self.memory.total, capacity)
        yield "memory of the fullest", memory, "", "", f"of {capacity}"
        yield row("step", step.lower, self.best.time, f"bound by {step.bound}")
        mfu, rate = self.best.mfu.to("%"), self.best.throughput
        yield row(
            f"MFU of {run.job.device.peak(run.job.formats.dtype)}",
            self.mfu.upper.to("%"),
            mfu,
            f"HFU {_percent(self.best.hfu)}",
            rate=True,
        )
        fastest = (rate * self.best.time / step.lower).to("token/s")
        yield row("tokens of a device", fastest, rate, rate=True)
        yield row("all steps", self.time.lower.to("day"), (self.steps * self.best.time).to("day"))
        yield row("run with failures", None, self.duration, f"goodput {_percent(self.goodput)}")
        yield row("hours of all devices", None, self.device_time)
        if self.cost is not None:
            yield row("cost", None, self.cost)
        if self.device_energy is not None:
            assert self.energy is not None
            assert self.carbon is not None
            unit = "kWh" if self.energy.m_as("MWh") < 1 else "MWh"
            yield row("energy of devices", None, self.device_energy.to(unit), drawn_by="device")
            yield row("energy", None, self.energy.to(unit), drawn_by="total")
            yield row("carbon", None, self.carbon, drawn_by="total")
        yield "checkpoint every", "", str(self.checkpoint_interval), "", ""

    def _layouts(self) -> Iterator[tuple[str, ...]]:
        yield "layout", "microbatches", "recomputation", "memory", "lower", "upper", "expected"
        for layout in self.candidates:
            step, held = layout.step, layout.memory.total.to("GB")
            count = f"{layout.layout.microbatches} of {layout.sequences}"
            times = step.lower, step.upper, "–" if step.expected is None else step.expected
            yield tuple(map(str, (layout, count, layout.recomputation, held, *times)))

    def rows(self) -> list[dict[str, object]]:
        return [
            {
                "layout": str(best),
                **values(best.layout, " ".join((*DEGREES, "sharding"))),
                "sharing": best.layout.sharers,
                "microbatches": best.layout.microbatches,
                **values(best, "sequences recomputation"),
                "schedule": best.layout.schedule,
                "memory": best.memory.total.to("GB"),
                **values(best.step, "lower upper expected"),
                "interval": best.step.around and best.step.around.facts,
                **values(best, "mfu hfu throughput"),
                "bound": best.step.bound,
                "like_published": not best.beyond_published,
            }
            for best in self.candidates
        ]

    @cached_property
    def facts(self) -> dict[str, object]:
        return {
            "rows": self.rows(),
            **values(self, "devices steps memory"),
            "step": {
                **values(self.step, "lower upper expected parts"),
                "interval": self.step.around and self.step.around.facts,
            },
            "basis": self.basis,
            **self.headline,
            **values(self, "mfu expected_mfu"),
            **values(self.best, "hfu throughput"),
            **values(self, "goodput duration device_time cost device_energy energy carbon"),
            **values(self, "checkpoint checkpoint_interval"),
            "interval_of_energies": self._ranges,
            "beyond_published": self.best.beyond_published,
            **values(self, "searched fitting assumptions why_not_others what_would_change"),
        }

    @cached_property
    def why_not_others(self) -> tuple[str, ...]:
        """Return how many layouts do not fit, and why each of the next best is slower."""
        best, sentences = self.best.parts, []
        for other in self.candidates[1:4]:
            more = {name: time - best.get(name, 0.0) for name, time in other.parts.items()}
            name = max(more, key=more.__getitem__)
            slower = (other.time / self.best.time).m_as("") - 1
            reason = f"{slower:.0%} slower: {name} takes {quantity(more[name], 's')} more"
            same = slower < HALF_A_PERCENT
            sentences.append(f"{other} is {'as fast to half a percent' if same else reason}.")
        return (
            f"{self.searched - self.fitting:,} of {self.searched:,} legal layouts need more than"
            f" {self.run.room.to('GB')} on their fullest device.",
            *sentences,
        )

    @cached_property
    def what_would_change(self) -> tuple[str, ...]:
        """Return what would make it another answer: devices, and how often they fail.

        Of other devices the layout is the same with more or fewer copies, for the same batch.
        """
        return tuple(self._changes())

    def _changes(self) -> Iterator[str]:
        best, now = self.best, int(self.layout.data)
        which = self.run, best.layout, best.sequences, best.recomputation
        if (cuts := with_copies(*which, (2 * now, now // 2))) is not None:
            longer, room = cuts.seconds / best.time.m_as("s"), self.run.room.m_as("byte")
            for index in range(cuts.count):
                layout, times = at(cuts.layout, index), longer[index]
                count = int(layout.devices)
                devices, paid = devices_text(count), times * count / self.devices
                yield (
                    f"{devices}: {times:.3g} times the time of a step, {paid:.3g} the device time."
                    if cuts.held[index] <= room
                    else f"{devices} do not hold this layout with {layout.data} copies."
                )
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
        yield from (f"{job.model.name}: {note}." for note in job.model.notes)
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
            yield (
                "Expected is what kernels and messages were measured to reach on"
                f" {job.machine.name} or the machine most like it, with {job.software.title()},"
                " of each layout that fits."
            )
        else:
            yield f"Nothing is expected: {self.step.not_expected}."
        yield (
            f"A device fails every {self.device_time_between_failures.to('year')}, a checkpoint of"
            f" {self.checkpoint.to('byte')} is written at"
            f" {self.storage_bandwidth.to('MB/s')} by each device, and a restart takes"
            f" {self.restart_time}."
        )
        if self.power is not None:
            least = device_power.idle(self.run.machine)
            assert least is not None
            yield (
                f"Each device draws {self.power.device:.3g}, by how much of bandwidth and peak it"
                " uses, as H100s and B200s were metered while they wrote tokens; energy has"
                f" {self.power.rest:.3g} a device beside it for hosts, links and fans, as a server"
                f" of H100s was measured to draw while it trained. No less than {least.device:.3g},"
                " idle, is its bound."
            )
        yield (
            f"Energy counts a PUE of {self.pue}, and carbon {self.carbon_intensity}, the mean of a"
            " year."
        )

    def draw(self) -> drawing.Figure:
        """A figure of matplotlib: the time of a step by its parts, for the ten best layouts."""
        best = self.candidates
        ends = [layout.time.m_as("s") for layout in best]
        around = [layout.step.interval for layout in best if layout.step.interval is not None]
        seconds = [(low.m_as("s"), high.m_as("s")) for low, high in around]
        return drawing.bars(list(map(str, best)), [layout.parts for layout in best], ends, seconds)

    def to_toml(self) -> str:
        meant = {"model": self.run.job.model, "hardware": self.run.machine}
        settled = {"devices": self.devices, "deadline": None, "budget": None}
        return plan_files.options_text({**self.given, **meant, **settled})

    def __repr__(self) -> str:
        return f"<{self.run.job.model.name} trained on {self.devices} {self.run.job.device.name}>"


def _percent(share: Quantity) -> str:
    return f"{share.m_as(''):.1%}"
