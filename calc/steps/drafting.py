"""Drafts for what is planned: whether they pay, and with how many drafted tokens.

A pass that checks γ drafted tokens yields as many as its curve of acceptance says; it takes longer
than a step, and the drafts take time themselves. The number that is best is chosen, and what loses
is said to lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from calc.catalog import acceptance as measured, intervals, models
from calc.catalog.acceptance import MOST, Curve
from calc.core.arguments import check_is, number, one_of
from calc.core.errors import InputError, abbreviated, marked
from calc.core.report import Table
from calc.core.units import Quantity, quantity
from calc.laws.speculation import drafting_gain, speculative_tokens
from calc.networks import transformer
from calc.steps.expectation import serving_pass
from calc.steps.job import SECOND, Job, Tokens

SMALL_OUTPUT = 32_000  # words that a head of EAGLE-3 chooses among
LLAMA = "llama-cpp"
COUNTS = range(1, MOST + 1)  # of drafted tokens, which are tried
BY_SERVERS = quantity("1.03 ms"), quantity("0.021 ms")
"""Time of a server for each drafted token beside its kernels, and for each sequence of it: fitted
to nine batches of EAGLE-3 in SGLang on an H100, judged by as many of EAGLE [li2025eagle3]."""


@dataclass(frozen=True)
class Drafts:
    """Drafts by a head of the model's own (mtp), eagle3, dspark, or a small model."""

    draft: str
    text: str = "any"
    acceptance: float | None = None

    @classmethod
    def read(cls, draft: str, text: str | None, acceptance: object) -> Drafts:
        """The drafts of what a caller wrote, refused where a small model has no acceptance."""
        rate = None if acceptance is None else _share("acceptance", acceptance)
        if draft in measured.drafts():
            found = cls(draft, "any" if text is None else text, rate)
            one_of("text", found.text, measured.TEXTS)
            return found
        if models.key_of(draft) is None:
            ways = ", ".join(measured.drafts())
            raise InputError(
                f"{marked('draft')} is one of {ways}, or a small model of calc.models; got"
                f" {abbreviated(draft)}"
            )
        if rate is None:
            raise InputError(
                f"{marked('draft', draft)} is a model, whose drafts are accepted as often as it is"
                f" like the large one: it needs {marked('acceptance')}, as in 0.7"
            )
        return cls(models.get(draft).key, "any" if text is None else text, rate)


def _share(name: str, value: object) -> float:
    """Return a number from 0 to 1, or what one writes of it.

    >>> _share("acceptance", "50%")
    0.5
    """
    part = quantity(value)  # type: ignore[arg-type]
    if part.ndim or not part.is_compatible_with("") or not 0 <= part.m_as("") <= 1:
        raise InputError(f"{marked(name)} must be from 0 to 1; got {abbreviated(value)}")
    return float(part.m_as(""))


@dataclass(frozen=True)
class Gain:
    """The gain of so many drafted tokens: above 1 each token comes sooner."""

    drafted: int
    tokens: float
    time: Quantity
    """Time of each token, on average."""
    gain: float


@dataclass(frozen=True)
class Drafting:
    """Gains by the number of drafted tokens, and which is best."""

    drafts: Drafts
    whose: str
    sources: tuple[str, ...]
    gains: tuple[Gain, ...]
    mixture: bool
    software: str

    @property
    def best(self) -> Gain:
        """The number of drafted tokens that gains most, or loses least."""
        return max(self.gains, key=lambda one: one.gain)

    @cached_property
    def around(self) -> tuple[float, float]:
        """The range of 80 % of published gains like it."""
        alike = intervals.interval_of(intervals.DRAFTS, self.software, self.mixture, filled=True)
        return self.best.gain * alike.low, self.best.gain * alike.high

    @property
    def verdict(self) -> str:
        """Return yes or no, as expected, or that it may pay."""
        if self.best.gain <= 1:
            return "no"
        return "yes" if self.around[0] > 1 else "perhaps"

    @property
    def told(self) -> str:
        """Return the verdict with its number, its gain and the range."""
        best, (low, high) = self.best, self.around
        text = "" if self.drafts.text == "any" else f" of {self.drafts.text}"
        if self.verdict == "no":
            return (
                f"drafts by {self.drafts.draft}{text}: no, each token is at best {best.gain:.2f}"
                f" times as fast ({low:.2f} to {high:.2f}), with {best.drafted} a pass"
            )
        tokens = "1 token" if best.drafted == 1 else f"{best.drafted} tokens"
        return (
            f"drafts by {self.drafts.draft}{text}: {self.verdict}, {tokens} a pass make each"
            f" {best.gain:.2f} times as fast ({low:.2f} to {high:.2f})"
        )

    @property
    def table(self) -> Table:
        rows: list[tuple[str, ...]] = [("drafted", "tokens a pass", "each token", "gain")]
        for one in self.gains:
            mark = "  best" if one is self.best and self.verdict != "no" else ""
            rows.append(
                (str(one.drafted), f"{one.tokens:.2f}", str(one.time), f"{one.gain:.2f}{mark}")
            )
        return Table(rows, "Gains of drafts", detail=True)

    @property
    def facts(self) -> Mapping[str, object]:
        """Return the same by names that stay."""
        low, high = self.around
        return {
            "draft": self.drafts.draft,
            "text": self.drafts.text,
            "pays": self.verdict,
            "drafted": self.best.drafted,
            "gain": self.best.gain,
            "interval": [low, high],
            "acceptance": self.whose,
            "gains": [
                {"drafted": one.drafted, "tokens": one.tokens, "time": one.time, "gain": one.gain}
                for one in self.gains
            ],
        }


def gains(job: Job, drafts: Drafts, batch: float, context: float) -> Drafting:
    """Return the gain of each number of drafted tokens, by measured rates and acceptance.

    >>> job = Job.of("qwen-3-5-27b", "rtx-5090", None, None, "llama.cpp")
    >>> gains(job, Drafts("mtp"), 1, 500).best.drafted > 1
    True
    """
    Job.check(job)
    check_is(Drafts, "drafts", drafts, 'calc.drafting.Drafts("eagle3")')
    batch, context = number("batch", batch, 1), number("context", context, 1)
    if drafts.acceptance is None:
        curve = measured.curve(job.model.key or "", drafts.draft, drafts.text)
    else:
        kept = (speculative_tokens(drafts.acceptance, count).m_as("") for count in COUNTS)
        curve = Curve(tuple(zip(COUNTS, kept, strict=True)), "as given", ())
    step = serving_pass(job, Tokens(writing=batch, context=context)).total
    each = _draft_time(job, drafts, batch, context)
    found = []
    for drafted in COUNTS:
        tokens = curve.of(drafted)
        check = _check_time(job, batch, context, drafted)
        gain = float(drafting_gain(tokens, step, check, drafted, each).m_as(""))
        found.append(Gain(drafted, tokens, (step / gain).to("ms"), gain))
    program, mixture = job.software.key, job.model.experts is not None
    return Drafting(drafts, curve.whose, curve.sources, tuple(found), mixture, program)


def _check_time(job: Job, batch: float, context: float, drafted: int) -> Quantity:
    """Time of a pass that checks so many drafted tokens of each sequence.

    llama.cpp multiplies few rows one after another, each at a share of the peak; the kernels of
    servers were measured for as many rows as are checked.
    """
    load = Tokens(writing=batch, context=context)
    if job.software.key != LLAMA:
        return serving_pass(job, Tokens(writing=batch, context=context, drafted=drafted)).total
    share = job.software.few_rows
    if not job.device.name.startswith("NVIDIA"):
        share = job.software.few_rows_elsewhere
    work = transformer.forward_flops(job.model, context) * quantity(batch * drafted, "token")
    rate = job.device.peak(job.formats.dtype) * (job.layout.devices * share)
    return serving_pass(job, load).total + (work / rate).to("ms")


def _draft_time(job: Job, drafts: Drafts, batch: float, context: float) -> Quantity:
    """Time in which one token of each sequence is drafted.

    A head reads a layer and the output matrix, of EAGLE-3 an output of few words; a small model is
    a step of its own.
    """
    of_pass, of_sequence = BY_SERVERS
    besides = 0 * SECOND if job.software.key == LLAMA else of_pass + batch * of_sequence
    if drafts.draft not in measured.drafts():
        small = Job.of(drafts.draft, job.measured_on, None, job.formats, job.software)
        return serving_pass(small, Tokens(writing=batch, context=context)).total + besides
    read = job.layout.weights_read(job.weights, batch / job.layout.data)
    output = quantity(0.0, "byte")
    words = job.model.vocabulary or 1
    for matrix in job.model.matrices:
        if matrix.part == "output":
            output = output + matrix.parameters * job.weights.size(matrix)
    share = min(1.0, SMALL_OUTPUT / words) if drafts.draft == "eagle3" else 1.0
    layer = (read - output) / job.model.layers
    reached = job.measured_on.memory_reached * job.layout.devices
    return ((layer + output * share) / reached).to("ms") + besides
