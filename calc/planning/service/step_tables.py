"""The time of a step of a continuous batch, as tables: made once, read a million times.

A step writes a token for each of some sequences and reads pieces of prompts beside them. Its time
is a sum: what all its tokens take together (the weights, the messages), what sequences take on top
(the output, the host), and what attention takes, in proportion to the caches that are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

from calc.catalog.machines import NotMeasured
from calc.core.arrays import Counts, Floats, Number, numpy
from calc.laws.gemms import SIDES
from calc.steps.expectation import Missing, Parts, serving_pass
from calc.steps.job import Job, Layout, Tokens
from calc.steps.timing import bounds

Times: TypeAlias = dict[str, Any]  # seconds of the parts of steps, an array each
PER_DOUBLING = 4  # points of a table for each doubling of the tokens, between which a line is drawn
EACH = 64  # tokens up to which each number has a point
OF_SMALL_TILES = 1024  # tokens below which it has a point where each tile of the smallest is full
KEPT = 32  # answers of groups, whose tables have 100 kB each
PROMPT = 1024.0  # tokens of the prompts by which attention to prompts is told from the rest


@dataclass(frozen=True)
class Steps:
    """Times of steps, in seconds; sequences, tokens and positions may be numpy arrays.

    A time is that of all tokens of the step, `together`, and, for each number of sequences that
    write, what these take `apart` and for each position of their caches, at which written tokens
    look; and of each position that a token of a prompt looks at.
    """

    together: Floats
    """Time for each number of tokens from 0 on."""
    apart: Floats
    """Time for each number of sequences from 0 on."""
    cached: Floats
    """Time of each cached position, for each number of sequences from 0 on."""
    attended: float
    """Time for each position that a token of a prompt looks at, of those of its own prompt."""
    checked: int = 1
    """Tokens that a pass checks for each sequence: more than one with a draft."""
    written: float = 1.0
    """Tokens that a pass writes of each sequence, on average."""
    launched: float = 0.0
    """The least of a step that reads: the host launches its kernels, which no graph holds."""

    def scaled(self, factor: float) -> Steps:
        """Return the steps, each so many times as long."""
        names = "together", "apart", "cached", "attended"
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    @property
    def most_tokens(self) -> int:
        """The largest step of the table."""
        return len(self.together) - 1

    @property
    def most_sequences(self) -> int:
        """The largest batch of the table."""
        return len(self.apart) - 1

    def time(
        self, sequences: Counts | int, held: Number, read: Counts | int = 0, looked_at: Number = 0.0
    ) -> Floats:
        """A step that writes for sequences which hold so many tokens, and reads so many.

        `looked_at` adds up, over the tokens that are read, the positions that each looks at.
        """
        tokens = sequences * self.checked + read
        both = self.together[tokens] + self.apart[sequences]
        time = both + self.cached[sequences] * held + self.attended * looked_at
        return numpy.maximum(time, numpy.where(numpy.greater(read, 0), self.launched, 0.0))


@dataclass(frozen=True, eq=False)
class Answers:
    """The three answers for a step of a group: at least, at most without overlap, as expected.

    Of copies that share out experts (DP) all are loaded alike, and tables are those of one of them,
    by the tokens that it has itself. Where several batches fill stages (PP) at once, a step writes
    for the sequences of all of them, and what it reads is a piece of one.
    """

    asked: Job
    lengths: tuple[float, float]
    """Tokens of a prompt, and of it with its answer."""
    tokens: int
    """The largest step."""
    sequences: int
    """The largest batch."""
    per_doubling: int = PER_DOUBLING

    @property
    def group(self) -> Layout:
        """Return how its devices share the model."""
        return self.asked.layout

    @cached_property
    def job(self) -> Job:
        """Return what a group runs, at any length of its tables."""
        return self.asked.with_context(max(self.tokens, 2 * PROMPT, *self.lengths))

    @cached_property
    def published(self) -> dict[str, Steps]:
        """The parts of a step at published rates, each by itself."""

        copies, stages = self.job.layout.data, self.job.layout.pipeline

        def parts(load: Tokens) -> Times:
            return {name: time.m_as("s") for name, time in bounds(self.job, load).parts.items()}

        def read(tokens: Floats, prompt: float) -> Times:
            # The bytes of one prompt of so many tokens, and their operations in shorter ones.
            once = parts(Tokens(reading=copies * stages * prompt, prompt=prompt))
            whole = parts(Tokens(reading=copies * stages * tokens, prompt=tokens))
            return whole | {"compute": tokens * (once["compute"] / prompt)}

        return self._tables(read, parts)

    @cached_property
    def expected(self) -> Steps | Missing:
        """Return what kernels and messages take as measured, or which rate was not measured."""

        def total(load: Tokens) -> Times:
            return {"step": serving_pass(self.job, load, piece=math.inf).total.m_as("s")}

        def read(tokens: Floats, prompt: float) -> Times:
            return total(Tokens(reading=self.job.layout.data * tokens, prompt=prompt))

        model, program = self.job.model, self.job.software
        latent = model.kv_latent is not None
        launch = program.launch_latents if latent else program.launch_experts
        try:
            made = self._tables(read, total)["step"]
        except NotMeasured as missing:
            return Missing(str(missing))
        return replace(made, launched=model.layers_with("experts") * launch)

    @cached_property
    def parts(self) -> Parts | None:
        """Return an expected step that writes: whose rates these are, how far rows are off."""
        try:
            return serving_pass(self.job, Tokens(writing=1.0, context=PROMPT))
        except NotMeasured:
            return None

    @property
    def upper(self) -> Steps:
        """The parts at published rates, one after the other."""
        parts = list(self.published.values())
        return Steps(
            numpy.sum([part.together for part in parts], axis=0),
            numpy.sum([part.apart for part in parts], axis=0),
            numpy.sum([part.cached for part in parts], axis=0),
            sum(part.attended for part in parts),
        )

    @property
    def decided_by(self) -> Steps:
        """Return what is expected; the upper bound where rates were not measured."""
        return self.upper if isinstance(self.expected, Missing) else self.expected

    def lower(self, *step: Any) -> Floats:
        """The least time of a step, all parts at once: no program beats it."""
        times: Floats = numpy.max([part.time(*step) for part in self.published.values()], axis=0)
        return times

    def _tables(
        self, read: Callable[[Floats, float], Times], times: Callable[[Tokens], Times]
    ) -> dict[str, Steps]:
        """Tables of each part, of the times at a few points."""
        tokens = _points(self.tokens, self.per_doubling)
        sequences = _points(self.sequences, self.per_doubling)
        read_of, written_of = tokens.astype(float), sequences.astype(float)
        context, full = self.lengths
        longer = max(2 * PROMPT, context)  # where windows and chosen positions end is known then
        short, long = read(read_of, PROMPT), read(read_of[-1:], longer)
        writing = self.job.layout.data * written_of
        begun = times(Tokens(writing=writing, context=context))
        ended = times(Tokens(writing=writing, context=full))
        tables = {}
        for part in short:
            more = tokens[-1] * (longer - PROMPT) / 2  # positions that the longer prompts look at
            attended = max(0.0, float((long[part][-1] - short[part][-1]) / more))
            longer_by_one = (ended[part] - begun[part]) / (full - context)  # all caches
            if not begun[part].any():
                continue  # one device sends nothing
            together = short[part] - attended * tokens * PROMPT / 2
            table = _filled(tokens, together)
            apart = begun[part] - longer_by_one * context - table[sequences]
            of_all = _filled(sequences, longer_by_one)
            cached = of_all / numpy.maximum(1, numpy.arange(len(of_all)))
            tables[part] = Steps(table, _filled(sequences, apart), cached, attended)
        return tables


@lru_cache(KEPT)
def answers_of(job: Job, lengths: tuple[float, float], tokens: int, sequences: int) -> Answers:
    """The answers for a job, kept: searches ask again for those of each group."""
    return Answers(job, lengths, tokens, sequences)


def with_draft(model: Steps, draft: Steps, drafted: int, written: float) -> Steps:
    """Steps that check what a draft has written: its passes come on top, one after the other."""
    count = drafted + 1
    sequences = numpy.arange(model.most_sequences // count + 1)
    checking = model.together[count * sequences] + model.apart[count * sequences]
    drafting = draft.together[sequences] + draft.apart[sequences]
    most = min(model.most_tokens, draft.most_tokens) + 1
    together = model.together[:most] + draft.together[:most]
    return Steps(
        together,
        checking + drafted * drafting - together[count * sequences],
        model.cached[count * sequences] + drafted * draft.cached[sequences],
        model.attended + draft.attended,
        count,
        written,
        model.launched,
    )


def _points(most: int, per_doubling: int) -> Counts:
    """Return whole numbers from 1 to this one: powers of two, some between them, edges of tiles.

    A product takes longer at once where its next row begins a tile: of the smallest tiles while one
    more is much of it, of the largest beyond. There are points on both sides of that.
    """
    powers = numpy.round(2.0 ** numpy.arange(0, numpy.log2(most), 1 / per_doubling))
    small, large = SIDES[0], SIDES[-1]
    full = [*range(small, OF_SMALL_TILES, small), *range(OF_SMALL_TILES, most, large)]
    edges = [rows for side in full for rows in (side, side + 1)]
    points = numpy.unique([*range(1, EACH), *powers, *edges, most]).astype(numpy.int64)
    return points[points <= most]


def _filled(points: Counts, values: Floats) -> Floats:
    """Lines between points, for each whole number from 0 on; a step of nothing takes no time."""
    table = numpy.interp(numpy.arange(points[-1] + 1), points, values)
    table[0] = 0.0
    return table
