"""A replica under load, in closed form: a batch whose step grows with what is in it.

The sequences that write share a processor: with n in the batch each gets a token every T(n), so
that they leave at n / (g · T(n)), and the number of them is a birth-death chain whose states and
probabilities follow from T alone. Prompts take their part of the time first, and wait for one
another as in M/G/1. For exponential answers this is exact but for what prompts do; the tails of
several parts are added as those of independent ones. The simulation has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from calc.catalog.software import Software
from calc.core.arrays import Counts, Floats, numpy
from calc.planning.service.load import Trace
from calc.planning.service.step_tables import Steps
from calc.steps import device_memory

SHARES = 25  # points at which the answers of a trace stand for all: each for as many of them
HALVINGS = 12
KEPT = 8  # batches of replicas, which a search asks for again and again
FASTEST = 1e6  # requests a second at which a search gives up: no replica serves so many


@dataclass(frozen=True, eq=False)
class Demand:
    """The average request of a trace, and how prompts and answers vary."""

    prompt: float
    answer: float
    computed: float
    """Tokens of the prompt that are not cached."""
    answer_length: float
    """Tokens of the answer that a token meets, the average: more than the mean of answers."""
    looked_at: float
    """Positions that the computed tokens look at."""
    prompt_variation: float
    """Standard deviation of the computed tokens over their mean."""
    prompts: Floats
    """Computed tokens of each request, to take a percentile of."""
    answers: Floats
    """Lengths of answers that stand for as many each."""

    @classmethod
    def mean_of(cls, trace: Trace) -> Demand:
        """The averages of a trace."""
        computed = (trace.prompts - trace.cached).astype(float)
        mean = float(computed.mean())
        answers = trace.answers.astype(float)
        return cls(
            float(trace.prompts.mean()),
            float(answers.mean()),
            mean,
            float((answers**2).mean() / answers.mean()),
            float((computed * (trace.cached + computed / 2)).mean()),
            float(computed.std() / mean),
            computed,
            numpy.maximum(2.0, numpy.quantile(answers, (numpy.arange(SHARES) + 0.5) / SHARES)),
        )

    @property
    def length(self) -> float:
        """Tokens that a sequence holds in the middle of its answer."""
        return self.prompt + self.answer_length / 2


@lru_cache(KEPT)
def _longest(demand: Demand, percentile: float) -> float:
    """Computed tokens of a prompt at a percentile."""
    return float(numpy.quantile(demand.prompts, percentile))


@dataclass(frozen=True)
class UnderLoad:
    """A replica under load; times in seconds, those at the percentile that was asked for."""

    ttft: float
    tpot: float
    mean_ttft: float
    mean_tpot: float
    batch: float
    """Sequences that write, on average."""
    busy: float
    """Share of the most that the replica can take, in reading or in writing."""


@dataclass(frozen=True)
class _Written:
    """The batch of those that write, in seconds and sequences."""

    tpot: float
    batch: float
    busy: float
    full: float  # probability that every place is taken
    place: float  # mean time until one is free, when every place is taken
    step: float  # time of a step that only writes
    stalls: float = 0.0  # what prompts add to the time of a token
    variance: float = 0.0  # variance of that, over a single token
    batches: float = 0.0  # variance of the time of a step, over the batches that one meets
    returning: float = 0.0
    """Share of a burst that is gone after the mean time of an answer, to the first order."""


@dataclass(frozen=True)
class _Batches:
    """Every batch that a replica can have: what its steps take, whatever the rate of requests."""

    count: Counts
    reading: Floats  # what a prompt adds to its steps, in seconds
    alone: Floats  # time of a step that only writes


NOTHING_WRITTEN = _Written(*[0.0] * 6)
OVERLOADED = UnderLoad(*[math.inf] * 6)


@dataclass(frozen=True, eq=False)
class Replica:
    """One copy of the model, with its steps, its memory and the chunk of a step."""

    steps: Steps
    memory: int
    """Tokens whose keys and values it holds."""
    chunk: int
    """Tokens of a step at most, those that are written among them."""
    slots: int
    """Sequences of a batch at most."""
    writes: bool = True
    """Whether it writes answers; a pool that only reads sends each prompt's cache away."""
    request: float = 0.0
    """Seconds until the server knows of a request: its tokens are made, and sent to the batch."""
    waits: int = 0
    """Steps for which prompts wait for others, beside sequences that write."""
    every: int = 1
    """Steps of which one begins to read prompts, where others write beside it."""
    mixes: bool = True
    """Whether a step that reads prompts writes too; else all that write wait until it is done."""
    reserves: bool = False
    """Whether a sequence has the place of its whole answer from its start; else it grows."""
    batches: int = 1
    """Batches that fill the stages of a pipeline at once, each of which reads a chunk in a step."""

    @property
    def at_most(self) -> int:
        """Tokens of a step at most, of all its batches."""
        return self.batches * self.chunk

    def run_by(self, software: Software) -> Replica:
        """Return the replica as a program runs it, which says what steps mix and reserve."""
        mixes, reserves = software.mixes > 0, software.reserves > 0
        return replace(self, request=software.request, mixes=mixes, reserves=reserves)

    def under(
        self,
        rate: float,
        demand: Demand,
        percentile: float,
        ttft: float = math.inf,
        tpot: float = math.inf,
    ) -> UnderLoad:
        """Return what requests at this rate, a second, meet; no further than a limit is broken."""
        written = self._written(rate, demand)
        if written is None or written.tpot > tpot:  # of no percentile is it less than the mean
            return OVERLOADED
        read = self._read(rate, demand, percentile, written)
        if read is None or read[0] > ttft:
            return OVERLOADED
        late = _late(demand, percentile, written)
        return UnderLoad(read[0], late, read[1], written.tpot, written.batch, read[2])

    def most(self, demand: Demand, percentile: float, ttft: float, tpot: float) -> float:
        """The largest rate at which both limits are kept; 0 where none is."""

        def keeps(rate: float) -> bool:
            load = self.under(rate, demand, percentile, ttft, tpot)
            return load.ttft <= ttft and load.tpot <= tpot and load.busy < 1

        low, high = 0.0, 1.0
        while keeps(high) and high < FASTEST:
            low, high = high, 2 * high
        return _halved(low, high, keeps)[0]

    def kept(self, rate: float, demand: Demand, ttft: float, tpot: float) -> float:
        """Share of requests that keep both limits, as if neither said anything of the other."""

        def load(percentile: float) -> UnderLoad:
            return self.under(rate, demand, percentile)

        if load(0.5).busy >= 1:
            return 0.0
        first, _ = _halved(0.0, 1.0, lambda percentile: load(percentile).ttft <= ttft)
        rest, _ = _halved(0.0, 1.0, lambda percentile: load(percentile).tpot <= tpot)
        return first * rest

    def _written(self, rate: float, demand: Demand) -> _Written | None:
        """The batch of those that write, as a birth-death chain; None where it only grows."""
        if (batches := _batches(self, demand)) is None:
            return NOTHING_WRITTEN
        steps, count, reading, alone = self.steps, batches.count, batches.reading, batches.alone
        most = len(count)
        left = 1 - rate * reading  # of the time, for steps that only write
        if left[-1] <= 0:
            return None
        step = alone / numpy.maximum(left, 1e-9)
        passes = max(1.0, (demand.answer - 1) / steps.written)
        leaving = count / (passes * step)
        busy = float(rate / leaving[-1])
        if busy >= 1:
            return None
        # Births at the rate, deaths at n / (g · T(n)); beyond its places the last of them.
        logs = numpy.concatenate([[0.0], numpy.cumsum(numpy.log(rate) - numpy.log(leaving))])
        share = numpy.exp(logs - logs.max())
        beyond = share[-1] * busy / (1 - busy)
        total = float(share.sum() + beyond)
        inside = share[1:].copy()
        inside[-1] += beyond
        batch = float((inside * count).sum() / total)
        met = inside * count / step  # a batch is met by as many tokens as it writes
        met /= met.sum()
        token = step / steps.written
        tpot = float((met * token).sum())
        at = min(most, max(1, round(batch))) - 1
        stalls = rate * float(token[at]) * float(reading[at])
        return _Written(
            tpot,
            batch,
            busy=max(busy, float(rate * reading[-1])),
            full=float((share[-1] + beyond) / total),
            place=1 / (float(leaving[-1]) - rate),
            step=float(alone[at]),
            stalls=stalls,
            variance=stalls * float(reading[at]) * (1 + demand.prompt_variation**2),
            batches=float((met * (token - tpot) ** 2).sum()),
            returning=_elasticity(count, leaving, at),
        )

    def _read(
        self, rate: float, demand: Demand, percentile: float, written: _Written
    ) -> tuple[float, float, float] | None:
        """The wait for a place, for the step under way and for the prompts before; then its own.

        At the percentile and in the mean, and how busy the replica is; None where waits only grow.
        """
        sequences = round(written.batch)
        service = self._service(demand, sequences)
        load = rate * service
        if load >= 1:
            return None
        variation = 1 + demand.prompt_variation**2
        queue = load * service * variation / (2 * (1 - load))
        alone = self._alone(demand.computed, demand, sequences)
        longest = _longest(demand, percentile)
        begun = written.step / 2
        waiting = written.full * written.place
        beyond = 1 - percentile
        above = (
            _tail(queue / load, load, beyond) - queue if load else 0.0,
            _tail(written.place, written.full, beyond) - waiting,
            self._alone(longest, demand, sequences) - alone,
            begun,
        )
        mean = self.request + begun + queue + waiting + alone
        late = mean + math.sqrt(sum(max(0.0, part) ** 2 for part in above))
        return late, mean, max(written.busy, load)

    def _pieces(self, tokens: float, sequences: Counts | int) -> tuple[Floats, Counts]:
        """Return how many steps a prompt takes beside sequences, and what each reads."""
        pieces = numpy.maximum(1.0, numpy.ceil(tokens / self._room(sequences)))
        return pieces, numpy.minimum(numpy.ceil(tokens / pieces), self.chunk).astype(int)

    def _beside(self, sequences: Counts | int) -> Any:
        """Sequences that write in a step that reads."""
        return sequences if self.mixes else 0 * sequences

    def _room(self, sequences: Counts | int) -> Any:
        """Tokens of prompts that a step reads, beside those that it checks of sequences."""
        return numpy.maximum(1, self.at_most - self.steps.checked * self._beside(sequences))

    def _reading(self, count: Counts, alone: Floats, demand: Demand) -> Floats:
        """Return what a prompt adds to the steps of so many sequences."""
        steps = self.steps
        pieces, read = self._pieces(demand.computed, count)
        tokens = steps.checked * self._beside(count)
        more = steps.together[tokens + read] - steps.together[tokens]
        if steps.launched:
            more = numpy.maximum(more, steps.launched - alone)
        looked_at = demand.looked_at * numpy.minimum(1, pieces * read / demand.computed)
        added: Floats = pieces * more + steps.attended * looked_at
        return added

    def _alone(self, tokens: float, demand: Demand, sequences: int) -> float:
        """Return how long a prompt of so many tokens takes beside a batch, with no other."""
        pieces, read = self._pieces(tokens, sequences)
        positions = demand.looked_at * (tokens / demand.computed) ** 2
        positions *= min(1.0, float(pieces * read / tokens))
        return float(pieces) * self._step(demand, sequences, read) + self.steps.attended * positions

    def _service(self, demand: Demand, sequences: int) -> float:
        """Time that a prompt keeps others waiting: its share of a step that is full."""
        room = self._room(sequences)
        full = self._step(demand, sequences, numpy.minimum(room, self.chunk))
        positions = demand.looked_at / self.batches
        return float(demand.computed / room * full + self.steps.attended * positions)

    def _step(self, demand: Demand, sequences: int, read: Counts | int) -> float:
        """A step that reads so many tokens beside a batch, without what they look at."""
        written = self._beside(sequences)
        return float(self.steps.time(written, written * demand.length, read))


@lru_cache(KEPT)
def _batches(replica: Replica, demand: Demand) -> _Batches | None:
    """The batches of those that write; None where none do."""
    if not replica.writes:
        return None
    steps = replica.steps
    held = device_memory.held(demand.prompt, demand.answer_length, replica.reserves)
    most = min(replica.slots, steps.most_sequences, int(replica.memory / held))
    count: Counts = numpy.arange(1, max(1, most) + 1)
    alone = steps.time(count, numpy.multiply(count, demand.length))
    return _Batches(count, replica._reading(count, alone, demand), alone)


def _late(demand: Demand, percentile: float, written: _Written) -> float:
    """The time of a token at a percentile of requests, long answers and short ones.

    Each is spread about the mean: by the batches that it meets, which a long answer averages over,
    and by the prompts that stall it, of which a short answer may meet none or several. What is
    above the shortest time has a gamma distribution, in the approximation of Wilson and Hilferty.
    """
    mean = written.tpot
    if written is NOTHING_WRITTEN:
        return mean
    long = demand.answers / demand.answer * written.returning
    averaged = 2 * (long - 1 + numpy.exp(-long)) / long**2
    # The same burst of requests stalls an answer and fills its batch, so that both rise together.
    batches, stalls = written.batches * averaged, written.variance / demand.answers
    variance = (numpy.sqrt(batches) + numpy.sqrt(stalls)) ** 2
    if not variance.max():
        return mean
    above = written.stalls + math.sqrt(written.batches)  # the mean, less the shortest time
    spread = variance / (9 * above**2)

    def early(time: float) -> bool:
        return _share_below(time - mean + above, above, spread) < percentile

    low, high = mean, mean + above
    while early(high):
        low, high = high, mean + 2 * (high - mean)
    return _halved(low, high, early)[1]


def _halved(low: float, high: float, keeps: Callable[[float], bool]) -> tuple[float, float]:
    """Return where something is no longer kept, between what keeps it and what does not."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low, high


def _elasticity(count: Counts, leaving: Floats, at: int) -> float:
    """Return by how much more in proportion requests leave a larger batch: 1 if steps stay."""
    if len(count) == 1:
        return 1.0
    low, high = max(0, at - 1), min(len(count) - 1, at + 1)
    more = math.log(count[high] / count[low])
    return max(1e-3, math.log(leaving[high] / leaving[low]) / more)


def _share_below(time: float, mean: float, spread: Floats) -> float:
    """The share of gamma-distributed times below one, over all spreads alike."""
    places = ((time / mean) ** (1 / 3) - 1 + spread) / numpy.sqrt(2 * spread)
    return sum(map(math.erfc, (-places).tolist())) / (2 * len(places))


def _tail(mean: float, some: float, beyond: float) -> float:
    """Return what a share of requests exceeds where some wait, for an exponential time."""
    return mean * math.log(some / beyond) if some > beyond else 0.0
