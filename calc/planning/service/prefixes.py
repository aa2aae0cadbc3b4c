"""Sessions and the caches of their prefixes: who finds what again, where, and how long it takes.

What a request finds is computed from content: its prompt is blocks with names, of a trace's hashes
or of a session whose context grows, and replicas keep blocks in the memory that their batches
leave, in that of the host and on disks, of which the last used moves down and falls out (LRU).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from calc.core.arrays import Floats, numpy
from calc.core.errors import InputError
from calc.laws.caches import PrefixCache
from calc.planning.service.load import Trace, lengths

BLOCK = 256  # tokens of a block of a session: with smaller ones as much is found, more slowly
UNBALANCED = 1.1
"""Times its share of the work that a replica may have got and still be sent what it has cached."""
MOST_ROUTED = 15_000  # requests, over all replicas
ROUTINGS = ("prefix", "turns")


@dataclass(frozen=True)
class Sessions:
    """People or agents who come back: each turn reads all that was said, and what is new."""

    rate: float
    """Turns a second, of all sessions."""
    turns: float
    think: float
    """Seconds from a turn to the next one of the same session, on average."""
    shared: int
    """Tokens before each session that all have in common: a system prompt, tools."""
    prompt: float
    generated: float
    prompt_spread: float
    generated_spread: float
    context: int
    """The longest that a session gets."""
    seed: int
    beside: float = 0.0
    """Sessions that each agent has beside its own at the same time."""

    def agents(self, rate: float) -> float:
        """Return how many are at work at once, who have so many turns a second: Little's law."""
        return rate * self.think * (1 - 1 / self.turns) / (1 + self.beside)

    def draw(self, rate: float, count: int) -> Trace:
        """Draw so many turns of sessions that begin at random, after those that fill caches.

        What came before the time 0 is not served: it only leaves its blocks.
        """
        random = numpy.random.default_rng(self.seed)
        before = min(3 * self.think, MOST_ROUTED / rate)
        needed = math.ceil(1.2 * (before * rate + count) / self.turns) + 50
        going = int(random.poisson(rate * self.think * (1 - 1 / self.turns)))
        often = random.geometric(1 / self.turns, going + needed)
        # Sessions that are going have had as many turns as are to come: geometric ones forget.
        had = random.geometric(1 / self.turns, going) * (self.prompt + self.generated)
        starts = numpy.cumsum(random.exponential(self.turns / rate, needed))
        starts = numpy.concatenate([random.exponential(self.think, going), starts]) - before
        begun = self.shared + numpy.concatenate([had, numpy.zeros(needed)]).astype(numpy.int64)
        whole = int(often.sum())
        read = lengths(random, "prompt", self.prompt, self.prompt_spread, whole)
        written = lengths(random, "generated", self.generated, self.generated_spread, whole)
        gaps = random.exponential(self.think, whole)
        turns, at = [], 0
        for session, (time, held) in enumerate(zip(starts.tolist(), begun.tolist(), strict=True)):
            number = int(often[session])
            for index in range(at, at + number):
                prompt, answer = held + int(read[index]), int(written[index])
                if prompt + answer > self.context:
                    break
                turns.append((time, prompt, answer, session))
                time, held = time + float(gaps[index]), prompt + answer
            at += number
        turns.sort()
        first = next((index for index, turn in enumerate(turns) if turn[0] >= 0), len(turns))
        turns = turns[: first + count]
        if len(turns) < first + 2:
            raise InputError(
                f"sessions with {self.shared} shared, {self.prompt:.0f} read and"
                f" {self.generated:.0f} generated tokens do not fit a context of {self.context}"
            )
        arrivals, prompts, answers, sessions = map(numpy.array, zip(*turns, strict=True))
        names = tuple(map(self._names, sessions.tolist(), (prompts + answers).tolist()))
        arrivals = arrivals - arrivals[first]
        arrivals *= (len(arrivals) - first - 1) / rate / arrivals[-1]
        nothing = numpy.zeros_like(prompts)
        return Trace(arrivals, prompts, answers, nothing, blocks=names, block=BLOCK)

    def _names(self, session: int, tokens: int) -> tuple[int, ...]:
        """Full blocks of a context: those that all share below zero, the session's own above."""
        common = self.shared // BLOCK
        blocks = range(common, tokens // BLOCK)
        return (*range(-common, 0), *((session << 20) + block for block in blocks))


@dataclass(frozen=True)
class Sizes:
    """Places of prefixes beside the memory of the devices: bytes of a device's share."""

    host_cache: float = 0.0
    disk: float = 0.0
    routing: str = ROUTINGS[0]


def unlimited(trace: Trace) -> Trace:
    """The requests from the time 0 on, with all that a cache without an end would hold."""
    blocks = trace.blocks if trace.arrivals[0] >= 0 else ()
    ((served, _),) = routed(trace, 1, (10**9,), ROUTINGS[0])
    return replace(served, blocks=blocks, block=trace.block)


def routed(
    trace: Trace, replicas: int, blocks: Sequence[int], routing: str
) -> list[tuple[Trace, Floats]]:
    """Return what each replica gets, and the tokens that its requests find in each tier."""
    assert trace.blocks is not None
    caches = [PrefixCache(blocks) for _ in range(replicas)]
    work = [0.0] * replicas
    got: list[list[int]] = [[] for _ in caches]
    hits = numpy.zeros((len(trace), len(blocks)))
    for request, (names, prompt) in enumerate(
        zip(trace.blocks, trace.prompts.tolist(), strict=True)
    ):
        asked = names[: math.ceil(prompt / trace.block)]
        if routing == "turns":
            chosen = request % replicas
        else:
            most = UNBALANCED * (sum(work) + prompt) / replicas
            chosen = min(
                range(replicas),
                key=lambda replica: (
                    work[replica] > most,
                    -caches[replica].holds(asked),
                    work[replica],
                ),
            )
        tokens = numpy.array(caches[chosen].find(asked, names)) * trace.block
        if (more := tokens.sum() - (prompt - 1)) > 0:  # the last token is read in any case
            tokens[tokens.nonzero()[0][-1]] -= more
        hits[request] = tokens
        work[chosen] += prompt - float(tokens.sum())
        got[chosen].append(request)
    whole = replace(trace, cached=hits.sum(axis=1).astype(numpy.int64))
    served = [[request for request in chosen if trace.arrivals[request] >= 0] for chosen in got]
    return [(whole.at(chosen), hits[chosen]) for chosen in served if len(chosen) > 1]
