"""Claims of performance, and whether they can be true: `calc.check`.

Each figure of a claim is held to the bound of what it says. For what it does not say stands what
makes it easiest to keep: weights and caches of four bits, the fastest format of the device, as many
sequences as memory holds, contexts of one token, prompts of the length that is easiest for the
figure, messages that cost nothing, and others who wait for their first tokens. So what is
impossible here is impossible for every claim that says more, by a program that computes each token
by a pass of its own and each prompt whole; where drafts or a prefix cache would do, that is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial, reduce
from heapq import nlargest
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from calc.catalog import software as programs
from calc.catalog.hardware import Accelerator
from calc.catalog.intervals import Around
from calc.catalog.machines import Machine
from calc.catalog.models.weights import unless_said
from calc.catalog.software import UNKNOWN
from calc.core.arrays import numpy
from calc.core.citations import citation
from calc.core.elementwise import divisors, floor, maximum, minimum, where
from calc.core.errors import InputError
from calc.core.report import Reported, Table
from calc.core.units import Quantity, quantity
from calc.published import (
    closed_loops,
    collective_rows,
    conditions,
    device_states,
    predict,
    serving_rows,
    training_rows,
)
from calc.published.claims import FIGURES, PASTED, TIMES, Claim, is_file, load, pasted, read
from calc.published.prediction import ROUNDING
from calc.published.reading import LARGEST, WORDS, Row, rows
from calc.steps import communication, device_memory
from calc.steps.communication import least_time
from calc.steps.curves import traffic
from calc.steps.held_memory import Memory
from calc.steps.job import Batch, Job, Layout, Tokens
from calc.steps.timing import bounds

SMALLEST = "4 bit"  # of weights, and of caches: no claim can say less
MANY = 2.0**20  # tokens of prompts that are read together, so that weights cost nothing
EASIEST = {"dtype_weights": SMALLEST, "dtype_kv": SMALLEST, "vocab": 1.0}  # where it is not said
PREFILL = serving_rows.PREFILL.fullmatch  # of what a row measured
VARIED = ("input_len", "output_len", "batch")  # numbers of which many claims are checked at once
UNREAD = ("id", "notes", "confidence", "source_key")  # of a claim
GIB = 2.0**30  # bytes
ROWS, SHOWN = 40, 3  # published rows that a claim stands among, and that are printed
NEAREST = "Nearest published rows"
FASTER, LARGER = 3.0, 4.0  # than a claim's a row's memory, and its model, may be, and as much less
WORST = 10  # claims of a file that are printed
OF_TRAINED = {"dtype_weights": SMALLEST, "parallelism": None}
KERNELS = {"flops": "gemm", "bandwidth": "memory_bandwidth"}
"""The kind of published kernels that a figure of a device alone is like."""
PLACED = {  # figures that an expectation has a range for, and what rows call them in their unit
    "serving": {
        "output": ("output_tokens_per_s", 1.0),
        "user": ("decode_tokens_per_s", 1.0),
        "input": ("prefill_tokens_per_s", 1.0),
    },
    "training": {
        "mfu": ("mfu", 1.0),
        "flops": ("model_tflops_per_gpu", 1e12),
        "tokens": ("tokens_per_s", 1.0),
    },
}
USUAL = {  # what explains such a place most often, by group and side
    ("serving", "below"): "the host starts kernels one by one (eager mode, no graphs), fewer"
    " requests run at once than is said, sequences are put off for lack of caches, or heat or a"
    " limit of power lowers the clock",
    ("serving", "above"): "prompts that a prefix cache holds, tokens that are drafted, or answers"
    " that end early",
    ("training", "below"): "steps wait for data or for the host, messages are not hidden, first"
    " steps are counted in, or heat or a limit of power lowers the clock",
    ("training", "above"): "operations are counted that are computed twice, or not at all, as the"
    " masked half of attention",
    ("collective", "below"): "a link at half of its width or speed, messages that go through the"
    " host or another network than is meant, too few channels or adapters, or a message too small"
    " to fill the links",
}
USUALLY = "What usually explains such a place"
STATES = "What explains such a place"
FILLED = 2.0**32
"""Bytes of a message that fills links, as those that bus bandwidths are told of."""
FAR = 0.5
"""The share of a bound below which messages are far from it, where no range is known."""
UNSAID = {  # conditions that a claim should say, and what stands for them
    "serving": {
        "dtype_weights": f"format of weights: {SMALLEST}, computed in the device's fastest",
        "dtype_kv": f"format of caches: {SMALLEST}",
        "batch": "users at once: as many as memory holds",
        "input_len": "length of prompts: whichever is easiest",
        "output_len": "length of answers: contexts of one token",
        "parallelism": "layout: messages cost nothing",
        "software": "software",
    },
    "training": {
        "dtype": "format: the fastest of the device",
        "seq_len": "length of sequences: of one token",
        "global_batch_seqs": "batch: as large as you like",
        "parallelism": "layout: messages cost nothing",
        "software": "software",
    },
    "collective": {"software": "software"},
    "kernel": {"dtype": "format: the fastest of the device"},
}


@dataclass(frozen=True)
class Held:
    """A figure beside its bound, both as times of the same."""

    name: str
    claimed: float
    bound: float
    """The most, or of a time the least, that is possible; in the unit of the figure."""
    by: str
    """What the bound is made of, in a sentence."""
    unless: str = ""
    """What would make it possible all the same."""

    @property
    def share(self) -> float:
        """The claim over the bound, of a time the bound over the claim: above one it cannot be."""
        return self.bound / self.claimed if self.name in TIMES else self.claimed / self.bound

    @property
    def possible(self) -> bool:
        """True where it keeps the bound, by the digits to which figures are printed."""
        return _is_possible(self.share)

    def in_its_unit(self, value: float) -> Quantity:
        """A value in the unit of the figure."""
        return quantity(value, FIGURES[self.name][1])


@dataclass(frozen=True)
class Near:
    """A published row like the claim."""

    row: Row
    share: float
    """Bound of the row over what was measured of it."""

    @property
    def rate(self) -> str:
        """The first of the figures that were measured, in words."""
        name, value = next(iter(self.row.measured.items()))
        return (
            f"{value:.4g} {name.removeprefix('output_').replace('_per_s', '/s').replace('_', ' ')}"
        )

    @property
    def what(self) -> str:
        """The model, its devices, its batch and the row, in words."""
        row = self.row
        batch = "" if row.number("batch") is None else f", batch {row['batch']:.3g}"
        model = str(row["model"] or row["collective"] or row["kind"]).rpartition("/")[2]
        return f"{model} on {conditions.devices(row)} {row.device}{batch} ({row.id})"


@dataclass(frozen=True, eq=False, repr=False)
class Check(Reported):
    """A claim beside its bounds and among published rows."""

    claim: Claim
    machine: Machine
    held: tuple[Held, ...]
    released: str = ""
    """The weights as released, where memory has no place for them and no other format is said."""
    states: tuple[str, ...] = ()
    """What slows its devices, by readings that were taken beside it."""

    @property
    def possible(self) -> bool:
        """True where every figure keeps its bound."""
        return all(figure.possible for figure in self.held)

    @property
    def hardest(self) -> Held:
        """The figure that is nearest to its bound, or furthest beyond it."""
        return max(self.held, key=lambda figure: figure.share)

    @property
    def fits(self) -> bool:
        """True where memory has a place for it, as far as is said."""
        return all(figure.name != "memory" for figure in self.held)

    @property
    def meant(self) -> Row:
        """The claim with what it leaves out as that is most often."""
        row = self.claim.row
        return replace(row, conditions=row.conditions | self.taken)

    @cached_property
    def near(self) -> list[Near]:
        """The published rows that are most like it, the most alike first."""
        return list(_nearest(self.meant, self.machine))

    @cached_property
    def share(self) -> float | None:
        """The share of the bound of what it means most often, which rows are compared with.

        None where it may be the pace of one stream, or that of a full device.
        """
        if not self.taken or not self.possible:
            return None if self.one_or_many else self.hardest.share
        held = _bounds(replace(self.claim, row=self.meant))
        return max(float(bound.share) for bound in held if bound.counts)

    @property
    def one_or_many(self) -> bool:
        """True where one stream alone could write it, and nobody says how many do."""
        figures = self.claim.figures
        unsaid = "output" in figures and not self.meant["batch"]
        return unsaid and figures["output"] <= self.alone

    @cached_property
    def alone(self) -> float:
        """Tokens a second that one stream writes at most."""
        row = self.claim.row
        one = replace(row, conditions=row.conditions | {"batch": 1.0})
        held = _serving(replace(self.claim, row=one), self.machine)
        return float(next(figure.most for figure in held if figure.name == "output"))

    @property
    def percentile(self) -> float | None:
        """The share of these rows, in per cent, that are further from their bound."""
        if len(self.near) < ROWS / 4 or not self.fits or self.share is None:
            return None
        return 100 * sum(row.share < self.share for row in self.near) / len(self.near)

    @cached_property
    def ranged_figure(self) -> tuple[Held, float, Around] | None:
        """The first claimed figure that has an expected range, its seconds, and the range."""
        claim = self.claim
        if not self.possible or claim.helped:
            return None
        row = self.meant
        if row.group == "collective":
            return self._among_messages(row)
        for held in self.held:
            name, unit = PLACED.get(row.group, {}).get(held.name, ("", 1.0))
            if held.name == "output" and row["batch"] == 1 and not row["output_len"]:
                name = PLACED[row.group]["user"][0]  # a sequence alone, whose length is not said
            value = held.claimed / unit
            if held.name == "step" and row["seq_len"] and row["global_batch_seqs"]:
                name, value = "tokens_per_s", row["seq_len"] * row["global_batch_seqs"] / value
            if held.name == "input" and (row["output_len"] or not row["input_len"]):
                continue  # prompts are read beside others' answers, or are of no length
            if name:
                beside = predict(replace(row, measured={name: value}))
                among = beside.around
                return (held, beside.measured, among) if among is not None else None
        return None

    def _among_messages(self, row: Row) -> tuple[Held, float, Around] | None:
        """A collective of a size, in seconds, and the range of libraries' own."""
        size = row.number("message_bytes")
        if size is None or row["algorithm"] is not None:
            return None
        operation, devices = collective_rows.OPERATIONS[row["collective"]], conditions.devices(row)
        among = communication.time(operation, quantity(size, "byte"), devices, self.machine).around
        [held, *_] = self.held
        sent = traffic(operation, devices) * size
        seconds = held.claimed if held.name in TIMES else sent / held.claimed
        return None if among is None else (held, seconds, among)

    @cached_property
    def taken(self) -> dict[str, Any]:
        """Conditions that it leaves out, as they are most often, of which the range is.

        Weights are those of the release, who names llama.cpp speaks of one stream, on whose devices
        layers have their turn, training is in BF16, and a bus bandwidth is that of large messages.
        """
        row = self.claim.row
        if row.group == "collective" and not row["message_bytes"]:
            return {"message_bytes": FILLED}
        if row.group == "training" and not row["dtype"] and "mfu" not in self.claim.figures:
            return {"dtype": "bf16"}
        if row.group != "serving" or not row.software:
            return {}
        files = programs.software_of(row.software).mxfp4 != ""  # of its own, in many formats
        released = conditions.model(row).released
        held = [] if released is None else [*released.formats.values()]
        narrow = next((form for form in held if re.search(r"fp[48]|int", form)), "")
        usual = {"dtype_weights": narrow or ("" if files else "bf16"), "batch": 1.0 if files else 0}
        if files and conditions.devices(row) > 1:
            usual["parallelism"] = "layer split"
        return {name: value for name, value in usual.items() if value and not row[name]}

    @property
    def side(self) -> str:
        """The side of what is expected: "below", "inside" or "above"; "" where none is.

        Where no range is known it is below that lies below all published rows like it, and of
        messages what is far from its bound.
        """
        if self.ranged_figure is not None:
            _, seconds, among = self.ranged_figure
            low, high = (end.m_as("s") for end in among.ends)
            return "above" if seconds < low else "below" if seconds > high else "inside"
        claim = self.claim
        if claim.row.group == "collective":
            return "below" if self.hardest.share < FAR else ""
        return "below" if self.percentile == 0 and not claim.helped else ""

    @property
    def place(self) -> list[str]:
        """The sentence on where it lies in the range of what is expected, where there is one."""
        if self.ranged_figure is None:
            return []
        held, seconds, among = self.ranged_figure
        times = [seconds / end.m_as("s") for end in among.ends]
        ends = sorted(
            held.claimed / each if held.name in TIMES else held.claimed * each for each in times
        )
        low, high = (held.in_its_unit(end) for end in ends)
        words = {"dtype_weights": "weights as released, in {}", "batch": "one stream"}
        words |= {"parallelism": "layers in turn", "dtype": "{}", "message_bytes": "large messages"}
        taken = [words[name].format(str(value).upper()) for name, value in self.taken.items()]
        of = f" of {' and '.join(taken)}" if taken else ""
        return [f"{self.side} what is expected{of}: 80 % of rows like it reach {low} to {high}"]

    @property
    def usual(self) -> list[str]:
        """The explanations of such a place: by readings beside it, or else usual ones."""
        if self.side in ("", "inside"):
            return list(self.states)
        usually = USUAL.get((self.claim.row.group, self.side), "")
        return [*self.states, *([usually] if usually and not self.states else [])]

    @cached_property
    def unsaid(self) -> list[str]:
        """The conditions that the claim leaves out, and what is taken for each."""
        row, figures = self.claim.row, self.claim.figures
        unsaid = {name: what for name, what in UNSAID[row.group].items() if not row[name]}
        if figures.keys() == {"bandwidth"}:
            return []
        if "mfu" in figures and "dtype" in unsaid:
            unsaid["dtype"] = "format: the slowest of the device, of whose peak MFU is largest"
        if row["batch"] and "tpot" in figures and not {"ttft", "output"} & figures.keys():
            unsaid["ttft"] = "time to first token: for which all others may wait"
        if "output" in figures and "batch" in unsaid:
            alone = quantity(self.alone, FIGURES["output"][1])
            unsaid["batch"] += f"; one alone writes {alone} at most"
        return list(unsaid.values())

    @cached_property
    def title(self) -> list[str]:
        """The verdict, what it stands on, and where the claim stands among published rows."""
        share = self.hardest.share
        taken = ", with what is easiest where it says nothing" if self.unsaid else ""
        if self.released:
            taken = f" in {SMALLEST}, not as released{taken}"
        verdict = f"possible: {share:.0%} of the bound{taken}"
        if share > 1:
            digits = f"{ROUNDING:.1%} to which figures are printed"
            verdict = f"possible: {share:.1%} of the bound, within the {digits}{taken}"
        reasons = dict.fromkeys([self.held[0].by, self.hardest.by] if not self.fits else [])
        if not self.possible:
            what = f"{share:.3g} times the bound"
            if self.hardest.name in TIMES:
                what = f"the bound is {share:.3g} times the claim"
            verdict = f"impossible: {what if self.fits else 'does not fit'}"
        standing = (
            [
                f"of the {len(self.near)} published rows most like it {self.percentile:.0f} % reach"
                " a smaller share of their bounds"
            ]
            if self.percentile is not None
            else []
        )
        released = [self.released] if self.released else []
        return [verdict, *released, *(reasons or [self.hardest.by]), *self.place, *standing, ""]

    @cached_property
    def tables(self) -> list[Table]:
        """A row for each figure, and the nearest published rows."""
        head = ("", "claimed", "bound", "share of bound")
        figures = [
            (
                FIGURES[near.name][0],
                f"{near.in_its_unit(near.claimed)}",
                f"{near.in_its_unit(near.bound)}",
                f"{near.share:.2f}{', bound over claim' if near.name in TIMES else ''}",
            )
            for near in self.held
        ]
        caption = (
            f"{NEAREST}: what was measured, and its share of the bound of the layout that its row"
            " states"
        )
        near = [(near.rate, f"{near.share:.0%}", near.what) for near in self.near[:SHOWN]]
        none = [Table([(f"none is of {_class(self.claim.row, self.machine)}",)], NEAREST)]
        return [Table([head, *figures]), *([Table(near, caption)] if near else none)]

    @cached_property
    def sentences(self) -> dict[str, list[str]]:
        """The sentences on what would make it possible, on what it leaves out, and on sources."""
        sources = dict.fromkeys(near.row.source for near in self.near[:SHOWN])
        return {
            "Unless": [near.unless for near in self.held if near.unless],
            STATES if self.states else USUALLY: self.usual,
            "Not understood, and left out": [*filter(None, ["; ".join(self.claim.ignored)])],
            "Not said, and taken so that the claim is easiest to keep": (
                ["; ".join(self.unsaid)] if self.unsaid else []
            ),
            "Sources": list(map(citation, sources)),
        }

    @cached_property
    def facts(self) -> dict[str, Any]:
        """A row for each figure, with the verdict and the nearest rows."""
        figures = [
            {
                "figure": near.name,
                "claimed": near.in_its_unit(near.claimed),
                "bound": near.in_its_unit(near.bound),
                "share_of_bound": near.share,
                "possible": near.possible,
                "by": near.by,
                "unless": near.unless,
            }
            for near in self.held
        ]
        near = [
            {
                "row": near.row.id,
                "share_of_bound": near.share,
                "measured": near.rate,
                "source": near.row.source,
            }
            for near in self.near[: 3 * SHOWN]
        ]
        said = {name: value for name, value in self.claim.row.conditions.items() if value}
        return {
            "verdict": "possible" if self.possible else "impossible",
            "share_of_bound": self.hardest.share,
            "released": self.released,
            "percentile": self.percentile,
            "place": self.side,
            "explained": self.usual,
            "understood": said,
            "not_understood": self.claim.ignored,
            "unsaid": self.unsaid,
            "nearest": near,
            "rows": figures,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Checks(Reported):
    """The claims of a file, with those that cannot be checked and why."""

    shares: Mapping[str, float]
    """Bound over measured, of the figure of each claim that is nearest to its bound: above one it
    cannot be."""
    hardest: Mapping[str, Check]
    """The claims that are nearest to their bounds, or beyond them, the furthest first."""
    refused: Mapping[str, str]
    states: tuple[str, ...] = ()
    """What slowed the devices of all, by readings that were taken beside them."""

    @property
    def possible(self) -> bool:
        """True where every claim that is checked keeps its bounds."""
        return all(map(_is_possible, self.shares.values()))

    @cached_property
    def title(self) -> list[str]:
        """The counts of those that are possible, impossible and not checked."""
        possible = sum(map(_is_possible, self.shares.values()))
        counts = f"{possible} possible, {len(self.shares) - possible} impossible"
        return [f"{counts}, {len(self.refused)} not checked", ""]

    @cached_property
    def tables(self) -> list[Table]:
        """The claims nearest to their bounds, or beyond them."""
        head = ("claim", "share of bound", "")
        lines = [
            (name, f"{check.hardest.share:.2f}", check.hardest.by)
            for name, check in self.hardest.items()
        ]
        return [Table([head, *lines])] if lines else []

    @cached_property
    def sentences(self) -> dict[str, list[str]]:
        """The reasons why others are not checked, each once."""
        reasons = dict.fromkeys(self.refused.values())
        return {STATES: list(self.states), "Not checked": list(reasons)[:WORST]}

    @cached_property
    def facts(self) -> dict[str, Any]:
        """A row for each claim."""
        rows: list[dict[str, Any]] = [
            {"claim": name, "possible": _is_possible(share), "share_of_bound": share}
            for name, share in self.shares.items()
        ]
        rows += [{"claim": name, "reason": reason} for name, reason in self.refused.items()]
        return {"explained": list(self.states), "rows": rows}


def check_file(
    path: Path | str, about: str = "", states: Path | str | None = None
) -> Check | Checks:
    """Every claim of a file: a benchmark's result, a table of results or a log of MLPerf.

    Parameters
    ----------
    about
        what the file leaves out, as "on 4 H100, fp8"
    states
        what nvidia-smi or amd-smi listed of the devices meanwhile
    """
    return _checked(load(path), path, about, states)


def _checked(
    claims: Sequence[tuple[dict[str, Any], str]],
    path: Path | str,
    about: str,
    states: Path | str | None,
) -> Check | Checks:
    """The verdicts on claims, each with what is said beside it, of a file or of a text."""
    seen = () if states is None else tuple(device_states.read(states))
    if len(claims) == 1:
        [(claim, beside)] = claims
        try:
            return _beside(claim, f"{beside} {about}".strip(), seen)
        except InputError as reason:
            raise InputError(f"{path}: {reason}") from None
    alike: dict[tuple[Any, ...], dict[str, Claim]] = {}
    claims_read, refused, arrays = {}, {}, find_spec("numpy") is not None
    rates: dict[str, float] = {}
    titles = 1 if Path(path).suffix == ".csv" else 0
    for line, (claim, beside) in enumerate(claims, 1 + titles):  # as an editor counts its lines
        name, said = f"{path}:{line}", f"{beside} {about}".strip()
        try:
            understood = read(claim, said)
        except InputError as reason:
            refused[name] = str(reason)
            continue
        claims_read[name] = claim, said
        kind = _grouping_key(understood) if arrays else (name,)
        alike.setdefault(kind, {})[name] = understood
    for several in alike.values():
        try:
            rates |= zip(several, _shares([*several.values()]), strict=True)
        except InputError as reason:
            refused |= dict.fromkeys(several, str(reason))
    shares = {name: rates[name] for name in claims_read if name in rates}
    worst = nlargest(WORST, shares, key=lambda name: shares[name])
    hardest = {name: verdict(*claims_read[name]) for name in worst}
    refused = {name: refused[name] for name in sorted(refused, key=_place)}
    return Checks(shares, hardest, refused, seen)


def _place(name: str) -> int:
    return int(name.rpartition(":")[2])


def _is_possible(share: float) -> bool:
    """Return whether a share of a bound keeps it, by the digits to which figures are printed."""
    return share <= 1 + ROUNDING


def _grouping_key(claim: Claim) -> tuple[Any, ...]:
    """Return what claims have in common that differ in numbers alone, and are checked as one."""
    row = claim.row
    several = VARIED if row.group == "serving" else ()
    said = [
        (name, None if name in several and row.number(name) else value)
        for name, value in row.conditions.items()
        if name not in UNREAD
    ]
    flags = claim.drafts, claim.reuses, claim.offloads
    return (row.group, *claim.figures, *flags, *map(str, said))


def _shares(claims: Sequence[Claim]) -> Sequence[float]:
    """Return of each of several claims of a kind the largest of its shares of its bounds."""
    first = claims[0]

    def together(numbers: Iterable[float]) -> Any:
        listed = list(numbers)
        return listed[0] if len(listed) == 1 else numpy.array(listed)

    figures = {name: together(claim.figures[name] for claim in claims) for name in first.figures}
    varied = {
        name: together(claim.row.number(name) for claim in claims)
        for name in VARIED
        if first.row.group == "serving" and first.row.number(name)
    }
    said = replace(first.row, conditions={**first.row.conditions, **varied}, measured=figures)
    bounds = _bounds(replace(first, row=said))
    shares = [where(bound.counts, bound.share, 0.0) for bound in bounds]
    largest = shares[0] * numpy.ones(len(claims)) if len(claims) > 1 else shares[0]
    for share in shares[1:]:
        largest = maximum(largest, share)
    return [largest] if len(claims) == 1 else largest.tolist()


def check(
    claim: str | Path | Mapping[str, Any], about: str = "", states: Path | str | None = None
) -> Check | Checks:
    """Return whether a claim is possible, which bound it breaks, and where published rows stand.

    A claim is a sentence, a row of results or a benchmark's result by the names of its fields, a
    file, or the text of what a tool printed; of several the answer tells which are hardest to keep.

    Parameters
    ----------
    about
        what the claim leaves out, as "on 4 H100, fp8", where a result names no device
    states
        a file of what nvidia-smi or amd-smi listed of the devices meanwhile: what slowed them there
        explains where the claim lies

    Examples
    --------
    >>> print(check("Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users").title[0])
    possible: 20% of the bound, with what is easiest where it says nothing
    >>> print(check("Llama 3.1 70B in bf16 on 4 H100: 200 token/s for each of 64 users").title[0])
    impossible: 2.07 times the bound
    """
    if isinstance(claim, Path) or (isinstance(claim, str) and is_file(claim)):
        return check_file(claim, about, states)
    if isinstance(claim, str) and (claims := pasted(claim)):
        return _checked(claims, PASTED, about, states)
    return _beside(claim, about, () if states is None else tuple(device_states.read(states)))


def _beside(claim: str | Mapping[str, Any], about: str, states: tuple[str, ...]) -> Check:
    return replace(verdict(claim, about), states=states).settled()


def verdict(claim: str | Mapping[str, Any], about: str = "") -> Check:
    """A claim beside its bounds, of which published rows are not yet asked."""
    understood = read(claim, about)
    held = tuple(
        Held(bound.name, bound.claimed, bound.most, *bound.told())
        for bound in _bounds(understood)
        if bound.counts
    )
    machine = conditions.machine(understood.row)
    if not held:
        raise _without_peak(machine, "a claim of prompts alone")
    fits = all(figure.name != "memory" for figure in held)
    return Check(understood, machine, held, _as_released(understood, machine) if fits else "")


@dataclass(frozen=True)
class _Bound:
    """A figure beside its bound, or those of several claims, and what tells of it in words."""

    name: str
    claimed: Any
    most: Any
    told: Callable[[], tuple[str, str]]
    """What the bound is made of, and what would make it possible all the same."""
    counts: Any = True
    """Whether it holds anything back."""

    @property
    def share(self) -> Any:
        """The claim over the bound."""
        return self.most / self.claimed if self.name in TIMES else self.claimed / self.most


def _bounds(claim: Claim) -> list[_Bound]:
    """The bounds of a claim; of several that differ in numbers alone, arrays."""
    machine = conditions.machine(claim.row)
    holds = {
        "serving": _serving,
        "training": _training,
        "collective": _collective_bounds,
        "kernel": _device,
    }
    bounds = list(holds[claim.row.group](claim, machine))
    if all(bound.name == "memory" for bound in bounds):
        raise InputError(f"of {', '.join(claim.figures)} alone no bound is known; a rate is needed")
    return bounds


def _serving(claim: Claim, machine: Machine) -> Iterator[_Bound]:
    figures, users = claim.figures, claim.row.number("batch")
    if {"output", "tpot"} <= figures.keys() and users is not None:

        def told() -> tuple[str, str]:
            each = quantity(figures["tpot"], "s")
            return f"its own figures: each of {users:.0f} users writes a token in {each}", ""

        # Little's law, which binds no machine: figures of one run keep it, unless they contradict.
        most = users / figures["tpot"]
        broken = figures["output"] > most * (1 + ROUNDING)
        yield _Bound("output", figures["output"], most, told, broken)
    served = _job(claim, machine)
    yield from _too_large(claim, served.job)
    for limit in _limits(claim, served):
        most, seconds = limit.bound(without=limit.hidden)
        counts = seconds > NO_LESS
        yield _Bound(limit.name, limit.claimed, most, partial(_told, limit), counts)


def _job(claim: Claim, machine: Machine) -> serving_rows.Served:
    """The job of a claim of serving, with what is easiest where it says nothing."""
    row = claim.row
    served = serving_rows.served_of(replace(row, conditions=EASIEST | row.conditions))
    if not row["dtype_weights"] and machine.device.dtypes:
        served = replace(served, fastest=max(machine.device.dtypes, key=machine.device.peak))
    layout = served.job.layout
    if conditions.layout(row).get("TP", layout.tensor) != layout.tensor:
        served = replace(served, layout_is_stated=False)  # it leaves some of its devices out
    return served


def _too_large(claim: Claim, job: Job) -> Iterator[_Bound]:
    """Yield what the weights and one sequence take of each device that has no place for them."""
    row = claim.row
    if claim.offloads or row["offloaded_layers"] or row["activation_cpu_offload"]:
        return
    context, memory = _context(row), _memory(job)
    visible, weights = memory.visible, memory.parts[0].memory
    taken = memory.start.taken(context)
    needed = (visible - memory.caches).m_as("GiB") + taken / GIB

    def told() -> tuple[str, str]:
        what = f"the weights alone take {weights}"
        if weights <= visible:
            whole = quantity(float(needed), "GiB")
            what = (
                f"the weights take {weights}, and with a sequence of {context:.0f} tokens {whole}"
            )
        each = "each device" if job.layout.devices > 1 else "the device"
        less = "" if row["dtype_weights"] else "weights are in fewer bits, or "
        unless = f"{less}part of it lies in the host's memory, which has to be said"
        return f"memory: {what} of {each}, which has {visible}", unless

    most = float(visible.m_as("GiB"))
    yield _Bound("memory", needed, most, told, taken > memory.caches.m_as("byte"))


def _context(row: Row) -> Any:
    """Return the tokens of a sequence, one of a prompt and of an answer where none is said."""
    prompt, answer = (row.number(name) for name in ("input_len", "output_len"))
    return floor(1.0 if prompt is None else prompt) + floor(1.0 if answer is None else answer)


def _as_released(claim: Claim, machine: Machine) -> str:
    """Return what memory lacks for the weights as they are released, where a claim of serving says
    no format of them; "" where it has a place for them."""
    row = claim.row
    if row.group != "serving" or row["dtype_weights"]:
        return ""
    job, one = _job(claim, machine).job, machine.device
    usual = programs.meant(None, one.key, one.measured_as, one.name)
    program = job.software if row.software else usual
    sizes = replace(job.formats, weights=unless_said(job.model, program), kv=program.kv)
    served = replace(job, formats=sizes, software=program)
    memory = device_memory.of(served, max(1, int(_context(row))))
    kept = served.weights
    sure = not memory.fits and not memory.doubt
    return f"as released, in {kept}: {memory.answer}" if sure else ""


def _memory(job: Job) -> Memory:
    """Return what devices hold of weights and sequences alone, by a program that takes nothing."""
    return device_memory.of(replace(job, software=UNKNOWN), 1, shared=True)


NO_LESS = 1e-300  # seconds of a step: arithmetic takes none on a device whose peak nobody printed


@dataclass(frozen=True)
class _Limit:
    """A figure of serving and the step that it needs; of several claims, arrays."""

    name: str
    claimed: Any
    job: Job
    load: Tokens
    counted: Any
    """How many of what it counts are in such a step."""
    bare: bool = False
    """Whether prompts are of no length, so that only what each of their tokens takes counts."""
    hidden: str = ""
    """The part that drafts do without."""

    def bound(self, load: Tokens | None = None, without: str = "") -> tuple[Any, Any]:
        """The most, or of a time the least, that is possible, and the seconds of its step."""
        times = (time for part, time in self.parts(load).items() if part != without)
        seconds: Any = reduce(maximum, times, NO_LESS)
        return (seconds if self.name in TIMES else self.counted / seconds), seconds

    def parts(self, load: Tokens | None = None) -> dict[str, Any]:
        """Seconds of each part of the step."""
        load = load or self.load
        parts = serving_rows.least_parts(self.job, load)
        if self.bare:
            parts |= {"memory": 0.0, "compute": parts["compute"] - self._outputs(load)}
        return parts

    def _outputs(self, load: Tokens) -> Any:
        """Seconds that take what of a prompt's last token alone is computed."""
        vocabulary = [each for each in self.job.model.matrices if each.name == "vocabulary"]
        work = sum(2 * matrix.parameters for matrix in vocabulary)
        return work * load.prompts / self.job.peak.m_as("FLOP/s")


def _limits(claim: Claim, served: serving_rows.Served) -> Iterator[_Limit]:
    """Each figure with the step that is the easiest of all that the claim allows.

    What dropping a condition changes must only make it easier: lengths of prompts and answers, and
    how many run at once, each work one way for one figure and another way for another.
    """
    row, figures = claim.row, claim.figures
    prompt, answer, users = (row.number(name) for name in ("input_len", "output_len", "batch"))
    reads, writes = (1.0 if length is None else length for length in (prompt, answer))
    at_once = math.inf if users is None else users
    running: Any = 1.0  # of whom others wait for their first token
    if "tpot" in figures and "output" in figures:  # Little's law
        running = at_once = maximum(1.0, figures["output"] * figures["tpot"])
    elif users is not None and {"ttft", "tpot"} <= figures.keys():
        cycle = writes * figures["tpot"]
        running = maximum(1.0, users * cycle / (figures["ttft"] + cycle))
    steady = Tokens()
    if answer is not None or "output" in figures:
        read_too = 0.0 if answer is None or claim.reuses else reads
        before = 0.0 if answer is None else reads
        steady = _steady(served.job, at_once, before, writes, read_too)
    written = steady.writing
    read = Tokens(reading=reads * MANY, prompt=reads)
    bare = prompt is None
    few = read if bare or users is None else Tokens(reading=reads * users, prompt=reads)
    of_prompts = (few, few.reading, bare)
    total: tuple[Tokens, Any, bool] = (read, read.reading, bare)
    requests: tuple[Tokens, Any, bool] = (read, MANY, False)
    if answer is not None:
        requests = (steady, written / writes, False)
        total = total if bare else (steady, written * (1 + reads / writes), False)
    context = reads + writes / 2
    # A token in each stage is the easiest prompt: what a sequence keeps is then written in parts.
    first = 1.0 * served.job.layout.pipeline if bare else reads
    loads = {  # of each figure, how many of what it counts are in it, and whether it is bare
        "output": (steady, written, False),
        "requests": requests,
        "total": total,
        "input": of_prompts,
        "user": (Tokens(1.0 if users is None else users, context), 1.0, False),
        "tpot": (Tokens(running, context), 1.0, False),
        "ttft": (Tokens(reading=first, prompt=first), 1.0, False),
    }
    for name, value in figures.items():
        load, counted, bare = loads[name]
        hidden = "memory" if claim.drafts and load.writes else ""
        yield _Limit(name, value, served.easiest(load), load, counted, bare, hidden)


def _steady(job: Job, at_once: Any, prompt: Any, answer: Any, read: Any) -> Tokens:
    """Return as many sequences as run at once and memory holds, beside their share of prompts."""
    context = maximum(1.0, prompt + answer / 2)
    batch = minimum(at_once, maximum(1.0, 1.0 * _memory(job).batch_of(context)))
    return Tokens(batch, context, batch * read / answer, maximum(1.0, prompt))


def _told(limit: _Limit) -> tuple[str, str]:
    """Return what a bound is made of, and what would make a claim beyond it possible."""
    load, name, parts = limit.load, limit.name, limit.parts()
    most, seconds = limit.bound(without=limit.hidden)
    part = next(part for part, time in parts.items() if time == seconds and part != limit.hidden)
    by = _by(limit.job, part, seconds, load)
    held = Held(name, limit.claimed, most, by)
    if held.possible:
        return by, ""

    def would_do(easier: Tokens, without: str = "") -> bool:
        return replace(held, bound=limit.bound(easier, without)[0]).possible

    unless = []
    if part == "memory" and load.writes and would_do(load, "memory"):
        unless.append(f"a pass writes {held.share:.2g} tokens or more of a sequence, by drafts")
    if load.reads and would_do(replace(load, reading=1e-9 * load.reading)):
        unless.append("most of the prompts come from a prefix cache")
    if name in ("user", "tpot") and would_do(replace(load, writing=1.0)):
        unless.append(f"requests wait, so that fewer than {load.writing:.0f} run at once")
    return by, " or ".join(unless)


def _by(job: Job, part: str, seconds: float, load: Tokens) -> str:
    """Return what the bound is made of, in a sentence."""
    many = quantity(load.writing if load.writes else load.reading, "token")
    what = f"a step that writes {many}s" if load.writes else f"reading {many}s"
    time = quantity(seconds, "s")
    if part == "memory":
        moved, pace = (job.memory_bandwidth * time).to("GB"), job.memory_bandwidth
        return f"memory: {what} reads {moved} of weights and caches, at {pace} in {time}"
    if part == "compute":
        return f"compute: {what} takes {(job.peak * time).to('TFLOP')}, at {job.peak} in {time}"
    return f"{part}: {what} takes {time}"


def _training(claim: Claim, machine: Machine) -> Iterator[_Bound]:
    """Each figure; without a format the fastest, but of a share of a peak the slowest, which no
    message keeps from it. Of memory the weights alone count, which may be frozen in few bits and
    shared out."""
    formats = filter(set(WORDS["formats"].values()).__contains__, machine.device.dtypes)
    ranked = sorted(formats, key=machine.device.peak)
    weights = replace(claim.row, conditions=claim.row.conditions | OF_TRAINED)
    yield from _too_large(claim, _job(replace(claim, row=weights), machine).job)
    said = conditions.dtype(claim.row)
    if not ranked:
        raise _without_peak(machine, "training")
    for name, value in claim.figures.items():
        dtype = said or ranked[0 if name == "mfu" else -1]
        limits, by = _limits_of_training(claim.row, machine, dtype)
        if name in limits:
            yield _Bound(name, value, limits[name], partial(_both, by))


def _both(by: str, unless: str = "") -> tuple[str, str]:
    return by, unless


def _limits_of_training(row: Row, machine: Machine, dtype: str) -> tuple[dict[str, float], str]:
    """The bound of each figure in such a format, and what bounds are made of."""
    device, devices = machine.device, conditions.devices(row)
    said = {"seq_len": 1, **EASIEST, **row.conditions, "dtype": dtype}
    full = replace(row, conditions=said)
    length = int(said["seq_len"])
    job = replace(training_rows.job_of(full, Layout()), machine=device)
    cuts = [(job, Batch(length, math.ceil(MANY / length)))]
    if _is_laid_out(row):
        with suppress(InputError):  # of a layout that is not said whole
            cuts = list(_cuts(full))

    def pace(cut: tuple[Job, Batch]) -> tuple[float, str]:
        """Seconds of a device for each token, and the part that takes longest."""
        (job, batch), bound_parts = cut, bounds(*cut)
        layout = job.layout
        counted = length * batch.sequences * layout.microbatches * layout.data
        return bound_parts.lower.m_as("s") * layout.devices / counted, bound_parts.bound

    seconds, bound = min(map(pace, cuts))
    work = float(job.trained.work(job.model, length).m_as("FLOP/token"))
    peak = float(device.peak(dtype).m_as("FLOP/s"))
    limits = {
        "tokens": devices / seconds,
        "flops": work / seconds,
        "mfu": 100 * work / seconds / peak,
    }
    if sequences := row.number("global_batch_seqs"):
        limits["step"] = sequences * length * seconds / devices
    by = (
        f"{bound}: a token takes {quantity(work, 'FLOP').to('GFLOP')} of training, at"
        f" {quantity(peak, 'FLOP/s').to('TFLOP/s')} a device in {quantity(seconds, 's')}"
    )
    return limits, by


def _is_laid_out(row: Row) -> bool:
    """Return whether all is said of a layout on which its bubble and its messages depend."""
    layout = conditions.layout(row)
    whole = layout and row.number("seq_len") and row.number("global_batch_seqs")
    return bool(whole and (layout.get("PP", 1) == 1 or "VP" in layout))


def _cuts(row: Row) -> Iterator[tuple[Job, Batch]]:
    """The job and the batch of a layout, for each size of microbatches that it leaves open."""
    job, batch, missing = training_rows.cut(row)
    yield job, batch
    if not (missing or row.number("micro_batch") or "MBS" in conditions.layout(row)):
        for sequences in divisors(int(job.layout.microbatches))[1:]:
            larger = replace(row, conditions=row.conditions | {"micro_batch": sequences})
            yield training_rows.cut(larger)[:2]


def _collective_bounds(claim: Claim, machine: Machine) -> Iterator[_Bound]:
    row = claim.row
    operation, devices = collective_rows.OPERATIONS[row["collective"]], conditions.devices(row)
    if devices == 1:
        raise InputError("one device alone sends nothing")
    size = quantity(row.number("message_bytes") or LARGEST, "byte")
    if row["algorithm"] == "ring":  # of whom the switch sums nothing
        machine = replace(machine, sums_in_switch=False)
    least = least_time(operation, size, devices, machine).m_as("s")
    sent = traffic(operation, devices) * size.m_as("byte")
    limits = {"busbw": sent / least} | ({"time": least} if row["message_bytes"] else {})
    by = f"links: each device sends {quantity(sent, 'byte')} in {quantity(least, 's')} at least"
    if not row["message_bytes"]:
        by = f"links: of messages of any size each device sends {quantity(sent / least, 'byte/s')}"
    for name, value in claim.figures.items():
        if name in limits:
            yield _Bound(name, value, limits[name], partial(_both, by))


def _device(claim: Claim, machine: Machine) -> Iterator[_Bound]:
    """A rate of operations or of memory, which no model is needed for: a device's own peak."""
    device = machine.device
    dtype = conditions.dtype(claim.row) or max(device.dtypes, key=device.peak, default="")
    for name, value in claim.figures.items():
        if name == "bandwidth":
            most = float(device.memory_bandwidth.m_as("byte/s"))
            by = f"memory: the published bandwidth of {device.name} is {device.memory_bandwidth}"
            unless = "what is read again stays in its caches"
        else:
            if not dtype:
                raise _without_peak(machine, "a rate of operations")
            peak = device.peak(dtype)
            most = float(peak.m_as("FLOP/s"))
            by = f"compute: the published dense peak of {device.name} in {dtype.upper()} is {peak}"
            unless = _if_sparse(device, dtype, value)
        is_more = value > most * (1 + ROUNDING)
        yield _Bound(name, value, most, partial(_both, by, unless if is_more else ""))


def _without_peak(machine: Machine, what: str) -> InputError:
    return InputError(f"of {machine.device.name} no peak is published, by which {what} is held")


def _if_sparse(device: Accelerator, dtype: str, rate: float) -> str:
    """Return what would make a rate of operations possible: half of them on zeros."""
    if dtype not in device.peaks["sparse_peak"]:
        return ""
    sparse = device.sparse_peak(dtype)
    counted = f"operations on zeros are counted, as in its {sparse} with 2:4 sparsity"
    return counted if rate <= sparse.m_as("FLOP/s") * (1 + ROUNDING) else ""


# --- the published rows that are most like it ---


def _nearest(claim: Row, machine: Machine) -> Iterator[Near]:
    """The published rows that are most like a claim, with their shares of their bounds."""
    candidates = rows(claim.group)
    if claim.group == "serving":
        candidates += closed_loops.rows()
    ranked = sorted(
        (distance, index)
        for index, row in enumerate(candidates)
        if (distance := _distance(row, claim, machine)) < math.inf
    )
    for _, index in ranked[:ROWS]:
        row = candidates[index]
        if (share := _share(row)) is not None:
            yield Near(row, share)


def _distance(row: Row, claim: Row, machine: Machine) -> float:
    """Return how unlike a published row is: its model and its device count most.

    Dense models and mixtures, and models and devices of other classes, are not alike at all.
    """
    reads = not claim.measured.keys().isdisjoint(("input", "ttft"))
    if claim.group == "kernel":
        return _distance_of_kernel(row, claim, machine)
    if row["collective"] != claim["collective"] or (any(map(PREFILL, row.measured)) and not reads):
        return math.inf
    if (one := _sizes(row)) is None or (other := _sizes(claim)) is None:
        return math.inf
    device, count, parameters, mixture = one
    larger, faster = abs(math.log(parameters / other[2])), _times(device, machine.device)
    if mixture != other[3] or faster > math.log(FASTER):
        return math.inf
    if claim.group != "collective" and larger > math.log(LARGER):
        return math.inf
    pairs = [(count, other[1], 1.0), (parameters, other[2], 4.0)]
    others = ("batch", "input_len", "output_len")
    pairs += [(row.number(name) or 1e4, claim.number(name) or 1e4, 0.3) for name in others]
    far: float = sum(weight * abs(math.log2(one / other)) for one, other, weight in pairs)
    return far + (0.0 if device == machine.device else 4.0)


def _distance_of_kernel(row: Row, claim: Row, machine: Machine) -> float:
    """Return nought for the same figure of the same device in the same format."""
    if row["kind"] != KERNELS[next(iter(claim.measured))]:
        return math.inf
    try:
        alike = conditions.machine(row).device == machine.device and conditions.devices(row) > 0
        alike = alike and conditions.dtype(row) in (None, conditions.dtype(claim))
    except InputError:
        return math.inf
    return 0.0 if alike else math.inf


def _times(one: Accelerator, other: Accelerator) -> float:
    """Return how many times as fast a device's memory is as another's, as a logarithm."""
    if one == other:
        return 0.0
    if not (one.publishes("memory_bandwidth") and other.publishes("memory_bandwidth")):
        return math.inf
    return abs(math.log(float((one.memory_bandwidth / other.memory_bandwidth).m_as(""))))


def _class(claim: Row, machine: Machine) -> str:
    """Return what published rows like a claim are of, in words."""
    pace = f"a device {FASTER:g} times as fast as {machine.device.name} or as slow at most"
    if claim.group == "collective":
        return f"this collective on {pace}"
    if claim.group == "kernel":
        return f"this kind and format on {machine.device.name}"
    experts = conditions.model(claim).experts
    kind = "a dense model" if experts is None else "a mixture of experts"
    return f"{kind} of {1 / LARGER:g} to {LARGER:g} times the size, on {pace}"


@cache
def _share(row: Row) -> float | None:
    """The share of its bound that a published row reached, kept: many claims are near the same."""
    return predict(row).share_of_bound


@lru_cache(maxsize=8192)  # of which a claim, unlike published rows, need not stay
def _sizes(row: Row) -> tuple[Accelerator, int, float, bool] | None:
    """The device of a row, how many there are, its parameters, and whether these are of a mixture;
    None where one is not known."""
    try:
        mixture = row.group != "collective" and conditions.model(row).experts is not None
        return conditions.machine(row).device, conditions.devices(row), _parameters(row), mixture
    except InputError:
        return None


def _parameters(row: Row) -> float:
    """Parameters of a row's model; of a collective, which has none, the size of its message."""
    if row.group == "collective":
        return row.number("size") or row.number("message_bytes") or 1e9
    model = conditions.model(row)
    return float((model.parameters - model.expert_parameters * 0.9).m_as("param"))
