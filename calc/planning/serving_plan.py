"""`plan`: the answer to a setup in numbers and words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from calc.catalog import software as programs
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.errors import InputError, marked
from calc.core.fixed import Fixed
from calc.core.law import AT_LEAST_ONE, FRACTION
from calc.core.report import Answer, Table, common_first
from calc.core.units import QuantityLike
from calc.planning import advice, assumptions, drawing, passes, plan_files, plan_report
from calc.planning.capacity import on_fewest_devices, on_host
from calc.planning.choice import check_devices, chosen_by, cut, rule
from calc.planning.estimate import UNASKED, Estimate
from calc.planning.plan_nouns import Prices, Server
from calc.planning.service.loops import Clients
from calc.planning.setup import COUNTS, is_array, power_limit, whole_count
from calc.steps.drafting import Drafts
from calc.steps.splits import Host


class Told(Answer):
    """The words on a plan, or on plans of one model on several kinds of device."""

    _SENTENCES = (
        ("assumptions", "Assumed"),
        ("drawn", "Power"),
        ("what_would_change", "What would change it"),
    )

    @property
    def _plans(self) -> tuple[Plan, ...]:
        raise NotImplementedError

    refused: Mapping[str, str] = Fixed()
    """Devices that cannot be planned for, and why."""
    with_parts: bool = False
    """Whether the parts of the expected passes are printed too."""
    what_would_change: tuple[str, ...] | None = None
    """What would make one point another answer, where that was asked: `explained`."""

    @property
    def of_one_point(self) -> bool:
        """Return whether this is one plan of one point."""
        several = len(self._plans) + len(self.refused) > 1
        return not several and not is_array(self._plans[0].fits)

    def _assumptions(self) -> Iterator[str]:
        yield from self._common(assumptions.assumptions)

    def explained(self) -> Plans:
        """Return it with what would make it another answer, a sentence each, planned as it was.

        A question of its own, which takes longer than most plans; `--explain` asks it.
        """
        if not self.of_one_point:
            count = sum(len(plan.points) for plan in self._plans)
            raise InputError(
                f"what would change is told of one point, and this plan has {count}:"
                " plan the one that is meant"
            )
        [plan] = self._plans
        changes = advice.changes(plan) if plan.fits else advice.ways_to_fit(plan)
        return Plans(self._plans, self.refused, self.with_parts, tuple(changes))

    @property
    def status(self) -> int:
        """Exit status of the command: 1 where nothing fits."""
        return int(not any(point["fits"] for plan in self._plans for point in plan.points))

    @property
    def drawn(self) -> list[str]:
        """Return what such devices were measured to draw themselves, beside the box's power."""
        return [assumptions.drawn(plan) for plan in self._plans]

    @property
    def answer(self) -> str:
        if self.of_one_point:
            drafting = self._plans[0].drafting
            return plan_report.answer(self._plans[0]) + (f"; {drafting.told}" if drafting else "")
        return plan_report.points_answer(self._plans)

    @property
    def stands_on(self) -> str:
        return plan_report.bases(self._named)[0]

    @property
    def chosen(self) -> list[str]:
        return self._common(lambda plan: plan_report.chosen(plan, self.of_one_point))

    @property
    def caveats(self) -> list[str]:
        return [
            *plan_report.bases(self._named)[1],
            *self._common(assumptions.caveats),
            *self.refused.values(),
        ]

    @property
    def _named(self) -> list[tuple[str, Plan]]:
        return [(plan.device.name, plan) for plan in self._plans]

    def _common(self, telling: Callable[[Plan], Iterator[str]]) -> list[str]:
        return common_first([(name, tuple(telling(plan))) for name, plan in self._named])

    @cached_property
    def tables(self) -> Sequence[Table]:
        if not self.of_one_point:
            return plan_report.points_tables(self._plans)
        drafting = self._plans[0].drafting
        drafted = [drafting.table] if drafting else []
        return [*plan_report.parts_table(self._plans[0]), *drafted, *self._passes]

    @cached_property
    def _passes(self) -> list[Table]:
        """The parts of the passes that are expected, where they are asked for."""
        expected = self._plans[0].expected if self.with_parts else None
        passes = {} if expected is None else expected.passes
        return [Table(parts.rows(title), detail=True) for title, parts in passes.items()]

    def table(self) -> str:
        """The short answer, and the parts where they are asked for, however many lines they take."""
        passes = ("\n".join(table.lines) for table in self._passes)
        return "\n\n".join([super().table(), *passes])

    @cached_property
    def facts(self) -> Mapping[str, object]:
        model = self._plans[0].model.key
        points = [point for plan in self._plans for point in plan.points]
        unfit = [{"model": model, "fits": False, "device": key} for key in self.refused]
        changes = self.what_would_change
        return {
            "rows": [*points, *unfit],
            **self.headline,
            "assumptions": self.assumptions,
            **({} if changes is None else {"what_would_change": changes}),
            **self._drafts,
            "parts": plan_report.parts(self._plans[0]) if self.of_one_point else [],
            "left_out": list(self.refused.values()),
        }

    @property
    def _drafts(self) -> Mapping[str, object]:
        """Return whether drafts pay, by names that stay, where that was asked of one point."""
        drafting = self._plans[0].drafting if self.of_one_point else None
        return {"drafts": drafting.facts} if drafting else {}

    def draw(self) -> drawing.Figure:
        """Throughput against the time per token over the points, what is expected with its band."""
        curves = list(map(plan_report.curve, self._plans))
        if not any(curve.points for curve in curves):
            raise InputError("none of the points fits, and there is nothing to draw")
        return drawing.front(curves, [], "Throughput (token/s)")


class Plan(Estimate, Told):
    """A plan of serving: memory, times, rates and costs, each a quantity or an array of them.

    `time_to_first_token`, `time_per_token`, `answer_time`, `throughput`, `cost_per_token`,
    `device_energy_per_token` and `energy_per_token` are `Bounds`, with `.lower` and `.upper`, at published rates: in those of a
    time memory, arithmetic and links overlap perfectly, or follow one another. `expected` has the
    same at measured rates, or is None where one was not measured. `reading` and `writing` are the
    passes for the prompt and for a token, part by part; they do not ask whether the batch fits, and
    all else does. `print` shows the table, which has a line for each point of an array.

    >>> asked = {"prompt": 1000, "generated": 200, "software": "vllm", "devices": 1}
    >>> print(plan("llama-3-8b", "h100", batch=8, **asked))
    Llama 3 8B on 1 NVIDIA H100 SXM5 80 GB, a batch of 8 read at once: 6.5 ms a token, 1100 token/s,
      first token 166 ms
    measured rates of NVIDIA DGX H100 with vLLM 0.24.0; 315 published rows (serving by vLLM, dense
      models, nothing filled in): half within 6.4%, 80% of times in −18.7 … +9.5%
    chosen: weights, keys, values and products in BF16
    <BLANKLINE>
    batch 8, 1000 + 200 tokens  bound           expected        80% of rows           what binds
    memory of each              19.30 GiB       of 72.85 GiB                          fits
      weights                   14.96 GiB
      vLLM besides              3.173 GiB
      keys and values           1.172 GiB
    batch that fits             373
    first token                 115.0 ms        166.0 ms        135 to 182 ms         compute
    each token                  4.825 ms        6.496 ms        5.28 to 7.11 ms       memory bandwidth
    whole answer                1.075 s         1.459 s         1.19 to 1.6 s
    throughput                  1488 token/s    1097 token/s    1000 to 1350 token/s
    energy of devices           52.92 mJ/token  554.7 mJ/token  389 to 656 mJ/token
    energy                      52.92 mJ/token  873.8 mJ/token  404 to 1180 mJ/token
    """

    @property
    def _plans(self) -> tuple[Plan, ...]:
        return (self,)

    def with_expectation(self) -> Plan:
        """Return it with what is expected of each of its points, however many these are.

        >>> many = plan("llama-3-8b", "h100", batch=range(1, 201), prompt=1000, generated=200)
        >>> print(many.expected, many.with_expectation().expected.throughput[-1])
        None 5345 token/s
        """
        if self._expectation != UNASKED:
            return self
        other = replace(self)
        vars(other)["_expectation"] = passes.expected(
            other, other.fits, other.reading, other.writing
        )
        return other.settled()

    def to_toml(self) -> str:
        """The options that make this plan again, as the text of a file."""
        names = (
            *COUNTS,
            "weights",
            "kv",
            "dtype",
            "link",
            "price",
            "software",
            "pue",
            "grid",
            "power_cap",
        )
        options = {name: getattr(self, name) for name in names}
        if self.users is not None:
            options["users"] = options.pop("batch")
            if self.users != Clients(self.users.count):
                raise InputError(
                    "a file of options has users by their number: all else of"
                    " calc.planning.service.Clients has no option"
                )
        if self.split is not None:
            options["host"] = self.split.host.written
        cuts = {"experts": self.experts, "stages": self.stages}
        options |= {name: count for name, count in cuts.items() if count > 1}
        return plan_files.options_text({"model": self.model, "hardware": self.machine, **options})

    def __repr__(self) -> str:
        if is_array(self.fits):
            return f"<{self.model.name} on {self.device.name}: {self.fits.size} points>"
        return f"<{', '.join(plan_report.title(self))}>"


@dataclass(frozen=True, eq=False, repr=False)
class Plans(Told):
    """Plans of one model, one for each kind of device, side by side."""

    plans: tuple[Plan, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    with_parts: bool = False
    what_would_change: tuple[str, ...] | None = None

    @property
    def _plans(self) -> tuple[Plan, ...]:
        return self.plans


@understood
def plan(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    *,
    prompt: Annotated[QuantityLike, "", AT_LEAST_ONE],
    generated: Annotated[QuantityLike, "", AT_LEAST_ONE],
    batch: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    users: Annotated[QuantityLike | Clients | None, "", AT_LEAST_ONE] = None,
    devices: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    tensor: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    copies: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    stages: int | None = None,
    experts: int | None = None,
    by: str | None = None,
    weights: Annotated[QuantityLike | None, "byte"] = None,
    kv: Annotated[QuantityLike, "byte"] = "bf16",
    dtype: str | None = None,
    link: Annotated[QuantityLike | None, "byte/s"] = None,
    price: Annotated[QuantityLike | None, "USD/s"] = None,
    context: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    software: str | None = None,
    pue: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    grid: QuantityLike | None = None,
    host: str | None = None,
    draft: str | None = None,
    text: str | None = None,
    acceptance: Annotated[QuantityLike | None, "", FRACTION] = None,
    power_cap: Annotated[QuantityLike | None, "W"] = None,
) -> Plan:
    """Return whether a model fits, on how many devices, how fast it answers, and at what cost.

    Devices cut every matrix into slices. They are those of a machine of `calc.machines`, or of the
    machine in which a device of `calc.hardware` usually stands; a file that `calc.hardware.load`
    reads is a device alone.

    Parameters
    ----------
    model
        model of `calc.models`
    hardware
        machine or device, or the name of one
    prompt
        tokens that each sequence reads
    generated
        tokens that each sequence writes
    batch
        sequences that are read at once and then written together; 1 where it is left out
    users
        in its place, clients that ask again as soon as an answer is whole, as a server is
        benchmarked: prompts are read in chunks beside what others write
    devices
        how many there are in all; the fewest that hold the batch where it is left out
    tensor
        devices that share each matrix (TP); those of a copy, all where it is left out
    copies
        of the model, which share batch or users evenly; those of attention (DP) beside `experts`
    stages
        groups of a copy's devices that share out its layers (PP), each of `tensor` devices; one
        where it is left out, unless `by` chooses more
    experts
        devices that whole experts are shared out to (EP); cut as all matrices where it is left out
    by
        cost, energy, tpot, ttft or throughput, by which the layout that is not said is chosen, on
        as many devices as are said; without it one copy is cut, for the fewest devices that hold it
    weights
        what checkpoints of a name hold, "fp8", "awq" or "q4_k_m", the size of every parameter, "4.5
        bit", or a format for each group of matrices: "experts=mxfp4,others=bf16"; where it is left
        out "released", if the data say in what, or else bf16, and that of `dtype` if this has fewer
        bits than 16 of either
    kv
        format of keys and values, or the size of one
    dtype
        what products are computed in; where it is left out and the device has it, what the released
        weights are made for, that of weights in fp8 or nvfp4, or bf16
    link
        bandwidth each way of a ring of devices, in place of the machine's: "32 GB/s"
    price
        of a device, "3 USD/hour"; without it, no cost
    context
        the most tokens that the model reads, where that is not the published number; a sequence
        here has those of `prompt` and `generated`
    software
        what serves, "sglang" or "vllm 0.19"; where it is left out, the newest vLLM that was
        measured on the device (on a Mac llama.cpp); "none" leaves out a program's own time
    pue
        energy of the building over that of its machines, 1.2; that of the machines alone where it
        is left out
    grid
        whose electricity it takes, "france", or what that emits, "57 g/kWh"
    host
        memory of the host for what one device does not hold, "96 GB DDR5-5600", with "x8" for eight
        channels, or "96 GB at 60 GB/s"; experts go there first, and llama.cpp serves; with ", 7
        GB/s SSD" what the memory has no place for is read from the file
    draft
        what drafts tokens that the model checks: mtp, eagle3, dspark, or a small model with
        `acceptance`; whether that pays is told, with the number of tokens that is best
    text
        kind of text that is written, of whose acceptance: code, prose, or any
    acceptance
        probability that a drafted token is accepted, in place of what was measured
    power_cap
        limit that is set on the power of each device, "400 W", under which its clock falls; its
        design power where it is left out

    Examples
    --------
    >>> of_two = plan("llama-3-70b", "h100", batch=8, prompt=1000, generated=200)
    >>> print(of_two.devices, of_two.memory.to("GB"), of_two.time_per_token.lower, of_two.binds)
    2 77.56 GB 21.18 ms memory bandwidth
    >>> print(of_two.explained().what_would_change[0])
    From batch 1157 on, compute would bind each token, but 2 devices hold 11 sequences.
    """
    counts = {"batch": _asked_at_once(batch, users), "prompt": prompt, "generated": generated}
    shared = {"devices": devices, "tensor": tensor, "copies": copies}
    counts |= {name: count for name, count in shared.items() if count is not None}
    if host is not None:
        software = _beside_host(software, devices, copies, tensor, stages, experts, by)
        counts["devices"] = 1
    server = Server(weights, kv, dtype, software, context)
    answer = Plan.read(model, hardware, counts, server, Prices(price, pue, grid), link, stages)
    if users is not None:
        answer = replace(answer, users=users if isinstance(users, Clients) else Clients(users))
    if draft is not None:
        answer = replace(answer, drafts=Drafts.read(draft, text, acceptance))
    elif text is not None or acceptance is not None:
        name = "text" if text is not None else "acceptance"
        raise InputError(f"{marked(name)} is of what is drafted: it needs {marked('draft')}")
    if power_cap is not None:
        answer = replace(answer, power_cap=power_limit(answer, power_cap))
    answer = cut(answer, experts)
    if host is not None:
        answer = on_host(answer, Host.read(host))
    elif by is not None:
        asked = rule("plan", by, [price])
        answer = chosen_by(answer, asked, [*shared.values()], experts, stages)
    elif "devices" in answer.left_out:
        answer = advice.checked_to_fit(on_fewest_devices(answer))
    else:
        check_devices(answer)
    if draft is not None and not answer.of_one_point:
        raise InputError(
            f"whether a draft pays is told of one batch, or of one number of users: {marked('draft')}"
            " takes no several"
        )
    # A model that writes no tokens and a format that the device lacks are refused now, not later.
    return answer.settled()


def _beside_host(software: str | None, *others: object) -> str:
    """The software that serves beside a host's memory, refused with what needs several devices."""
    names = "devices", "copies", "tensor", "stages", "experts", "by"
    for name, value in zip(names, others, strict=True):
        if value is not None and value != 1:
            raise InputError(
                f"{marked('host')} is memory beside one device; got {marked(name, value)} too:"
                " leave one of them"
            )
    program = "llama.cpp" if software is None else software
    if programs.software_of(program).key != "llama-cpp":
        raise InputError(
            f"{marked('host')} is for llama.cpp, which computes what lies there; got"
            f" {marked('software', software)}"
        )
    return program


def _asked_at_once(
    batch: QuantityLike | None, users: QuantityLike | Clients | None
) -> QuantityLike:
    """The sequences of a batch, or the users, of whom there is one where neither is given."""
    if users is None:
        return 1 if batch is None else batch
    if batch is not None:
        raise InputError(
            "plan() takes batch, which is read at once, or users, who ask one by one; got both"
        )
    return whole_count("users", users.count if isinstance(users, Clients) else users)
