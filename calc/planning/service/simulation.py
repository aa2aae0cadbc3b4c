"""A continuous batch, event by event: requests come, are read in chunks, write, and leave.

Between two changes of the batch all steps are alike but for caches that grow, so that they are one
event whose time is the sum of a series: an arrival, a piece of a prompt, a sequence that is done or
a memory that is full ends it. The queue of what is done next is a heap of the standard library;
`benchmarks/service_speed.py` says what a general simulator would cost.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from calc.core.arrays import Counts, Floats, numpy
from calc.core.errors import InputError
from calc.planning.service.load import Trace
from calc.planning.service.queue import Replica

WARM = 0.1
"""Share of the requests, the first ones, that find the batch still filling and count in nothing."""
TOLD_EVERY = 1000


@dataclass(frozen=True, eq=False)
class Run:
    """What became of each request: arrays in the order of arrival, in seconds."""

    arrivals: Floats
    first: Floats
    """When the first token was written."""
    done: Floats
    """When the last one was."""
    answers: Counts
    """Tokens that were written of each."""
    preempted: int = 0
    """How often a sequence gave up its memory, and was read again."""
    in_flight: float = 0.0
    """Requests in the system, the average over time."""

    @property
    def ttft(self) -> Floats:
        """Time to first token of each request."""
        return self.first - self.arrivals

    @property
    def tpot(self) -> Floats:
        """Time of each token after the first, of requests that have more than one."""
        several = self.answers > 1
        return (self.done - self.first)[several] / (self.answers[several] - 1)

    @property
    def elapsed(self) -> float:
        """From the first arrival to the last token."""
        return float(self.done.max() - self.arrivals[0])

    def steady(self) -> Run:
        """The same without the first requests, which found an empty batch."""
        start = int(WARM * len(self.arrivals))
        return replace(
            self,
            arrivals=self.arrivals[start:],
            first=self.first[start:],
            done=self.done[start:],
            answers=self.answers[start:],
        )

    def at(self, percentile: float) -> tuple[float, float]:
        """Time to first token and time of a token at a percentile."""
        several = self.tpot
        late = float(numpy.quantile(several, percentile)) if len(several) else 0.0
        return float(numpy.quantile(self.ttft, percentile)), late

    def kept(self, ttft: float, tpot: float) -> float:
        """Share of requests that kept both limits."""
        tokens = (self.done - self.first) / numpy.maximum(1, self.answers - 1)
        return float(((self.ttft <= ttft) & (tokens <= tpot)).mean())

    def goodput(self, ttft: float, tpot: float) -> float:
        """Requests a second that kept both limits."""
        return self.kept(ttft, tpot) * len(self.arrivals) / self.elapsed


def simulate(
    replica: Replica,
    trace: Trace,
    on_progress: Callable[[int, int], None] | None = None,
    clients: int | None = None,
    away: float = 0.0,
) -> Run:
    """One replica that serves a trace, first come, first served.

    Of so many `clients` each asks when its answer before is whole and it was `away` for so many
    seconds, all of them first at once, whatever the arrivals of the trace are.

    A step writes for all sequences of the batch, and what is left of its chunk reads prompts. A
    request is let in when memory holds its prompt and a place is free; when memory is full, the
    sequence that was let in last gives its own up, and is read again when its turn comes.
    """
    needed = trace.prompts + trace.answers + math.ceil(replica.steps.written)
    if needed[worst := int(needed.argmax())] > replica.memory:
        raise InputError(
            f"request {worst + 1} of the trace needs {needed[worst]} tokens of cache, and a replica"
            f" holds {replica.memory}: take more devices, or smaller weights and caches"
        )
    if replica.chunk <= replica.steps.checked:
        raise InputError(f"chunk must be above {replica.steps.checked} tokens; got {replica.chunk}")
    batch = _Batch(replica, trace, clients, away)
    batch.run(on_progress or (lambda done, total: None))
    arrivals = numpy.array(batch.arrivals)
    span = max(batch.done) - float(arrivals[0])
    flying = sum(batch.done) - float(arrivals.sum())
    return Run(
        arrivals,
        numpy.array(batch.first),
        numpy.array(batch.done),
        trace.answers,
        batch.preempted,
        flying / span if span > 0 else 0.0,
    )


class _Batch:
    """A replica at work; all that write do so at each step, so that one count of them dates all."""

    def __init__(
        self, replica: Replica, trace: Trace, clients: int | None, away: float = 0.0
    ) -> None:
        steps = replica.steps
        self.replica, self.steps = replica, steps
        self.together, self.apart = steps.together.tolist(), steps.apart.tolist()
        self.arrivals, self.prompts = trace.arrivals.tolist(), trace.prompts.tolist()
        self.answers = trace.answers.tolist()
        count = len(trace)
        self.cached = trace.cached.tolist()
        self.first, self.done = [math.nan] * count, [math.nan] * count
        self.left = [max(0, math.ceil((tokens - 1) / steps.written)) for tokens in self.answers]
        """Passes that each has to write in after its first token."""
        self.held = list(self.prompts)
        """Tokens that each brings to the batch: its prompt, and what it had written before."""
        self.slots = min(replica.slots, steps.most_sequences)
        self.clock, self.passes, self.preempted = 0.0, 0, 0
        self.since = 0
        """The pass after which the first of those that are read now was let in."""
        self.coming = 0
        self.away = away
        self.asked = count if clients is None else clients
        """Requests whose arrival is known: the next one comes when an answer is whole."""
        if clients is not None:
            self.arrivals = [0.0] * min(clients, count) + [math.inf] * (count - clients)
        self.waiting: deque[int] = deque()
        self.reading: deque[int] = deque()
        self.read: dict[int, int] = {}
        """Tokens of a prompt that were read so far."""
        self.begun: dict[int, int] = {}
        """Sequences that write, in the order in which they began, with the pass before."""
        self.ends: list[tuple[int, int]] = []
        """A heap: after which pass a sequence is done."""
        self.used = 0.0
        """Tokens of memory that are taken."""
        self.written_for = 0.0
        """Tokens of the caches of those that write."""

    def run(self, on_progress: Callable[[int, int], None]) -> None:
        total, reported = len(self.arrivals), 0
        while True:
            self._let_in()
            wait = self._wait()
            if self.reading and not wait:
                self._mixed_step()
            elif self.begun:
                self._steps(wait)
            elif self.coming < total:
                self.clock = self.arrivals[self.coming] + self.replica.request
                continue
            else:
                on_progress(total, total)
                return
            gone = self.coming - len(self.waiting) - len(self.reading) - len(self.begun)
            if gone >= reported + TOLD_EVERY:
                reported = gone
                on_progress(gone, total)

    def _let_in(self) -> None:
        arrivals, waiting = self.arrivals, self.waiting
        request = self.replica.request
        while self.coming < len(arrivals) and arrivals[self.coming] + request <= self.clock:
            waiting.append(self.coming)
            self.coming += 1
        room = self.replica.memory - len(self.begun) * self.steps.written
        while (
            waiting
            and len(self.begun) + len(self.reading) < self.slots
            and self.used + self.held[waiting[0]] < room
        ):
            request = waiting.popleft()
            self.since = self.since if self.reading else self.passes
            self.used += self.held[request]
            self.read[request] = self.cached[request]
            self.reading.append(request)

    def _wait(self) -> int:
        """Steps until prompts are read: none beside nothing that writes, or once one was begun."""
        if not self.reading or not self.begun or self.read[self.reading[0]]:
            return 0
        return max(0, self.since + self.replica.waits - self.passes)

    def _mixed_step(self) -> None:
        """One step that reads as much as its chunk leaves, and writes for all that write."""
        self._make_room()
        steps, count = self.steps, len(self.begun)
        room = self.replica.chunk - (steps.checked * count if self.replica.mixes else 0)
        read, looked_at = 0, 0.0
        finished = []
        for request in self.reading:
            before, prompt = self.read[request], self.held[request]
            piece = min(room - read, prompt - before)
            if piece <= 0 and before < prompt:
                break
            read += piece
            looked_at += piece * (before + piece / 2)
            self.read[request] = before + piece
            if before + piece == prompt:
                finished.append(request)
        time = steps.attended * looked_at
        if self.replica.mixes:
            tokens = steps.checked * count + read
            time += self.together[tokens] + self.apart[count] + steps.cached * self.written_for
            self._passed(max(time, steps.launched), 1)
        else:
            self.clock += max(time + self.together[read], steps.launched)
        for request in finished:
            self.reading.popleft()
            del self.read[request]
            if math.isnan(self.first[request]):
                self.first[request] = self.clock
            self._begin(request)

    def _begin(self, request: int) -> None:
        if not self.left[request]:
            self._answered(request)
            self.used -= self.held[request]
            return
        self.begun[request] = self.passes
        self.written_for += self.held[request]
        heappush(self.ends, (self.passes + self.left[request], request))

    def _steps(self, wait: int) -> None:
        """As many steps that only write as leave the batch as it is."""
        self._make_room()
        steps, count = self.steps, len(self.begun)
        if not count:
            return
        ahead = min(self.ends[0][0] - self.passes, wait or math.inf)
        growth = count * steps.written
        ahead = min(int(ahead), max(1, int((self.replica.memory - self.used) / growth)))
        first = self.together[steps.checked * count] + self.apart[count]
        first += steps.cached * self.written_for
        more = steps.cached * growth
        if self.coming < self.asked and not self.waiting:
            known = self.arrivals[self.coming] + self.replica.request
            ahead = min(ahead, _until(known - self.clock, first, more))
        self._passed(ahead * first + more * ahead * (ahead - 1) / 2, ahead)

    def _passed(self, time: float, passes: int) -> None:
        """So many passes have taken so long; who is done leaves."""
        self.clock += time
        self.passes += passes
        grown = passes * len(self.begun) * self.steps.written
        self.used += grown
        self.written_for += grown
        ends = self.ends
        while ends and ends[0][0] <= self.passes:
            _, request = heappop(ends)
            self._answered(request)
            self._leave(request)

    def _answered(self, request: int) -> None:
        self.done[request] = self.clock
        if self.asked < len(self.arrivals):
            self.arrivals[self.asked] = self.clock + self.away
            self.asked += 1

    def _leave(self, request: int) -> None:
        tokens = self.held[request] + (self.passes - self.begun.pop(request)) * self.steps.written
        self.used -= tokens
        self.written_for -= tokens

    def _make_room(self) -> None:
        """Whoever was let in last gives memory up until the next step fits."""
        while self.used + len(self.begun) * self.steps.written > self.replica.memory:
            if self.reading:
                request = self.reading.pop()
                del self.read[request]
                self.used -= self.held[request]
            else:
                request = next(reversed(self.begun))
                written = self.passes - self.begun[request]
                self._leave(request)
                self.ends = [end for end in self.ends if end[1] != request]
                self.ends.sort()
                self.left[request] -= written
                self.held[request] += int(written * self.steps.written)
                self.cached[request] = 0
            self.preempted += 1
            self.waiting.appendleft(request)


def _until(time: float, first: float, more: float) -> int:
    """Steps until this time has passed, at least one: each takes so much more than the last."""
    if time <= first:
        return 1
    if more * time < 1e-9 * first**2:
        return math.ceil(time / first)
    # n · first + more · n · (n − 1) / 2 ≥ time
    half = first - more / 2
    return max(1, math.ceil((math.sqrt(half * half + 2 * more * time) - half) / more))
