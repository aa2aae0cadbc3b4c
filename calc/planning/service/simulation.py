"""A continuous batch, event by event: requests come, are read in chunks, write, and leave.

Between two changes of the batch all steps are alike but for caches that grow, so that they are one
event whose time is the sum of a series: an arrival, a piece of a prompt, a sequence that is done or
a memory that is full ends it. The queue of what is done next is a heap of the standard library;
`benchmarks/service_speed.py` says what a general simulator would cost.
"""

from __future__ import annotations

import math
import sys
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
NEVER = sys.maxsize


@dataclass(frozen=True, eq=False)
class Run:
    """The times of each request: arrays in the order of arrival, in seconds."""

    arrivals: Floats
    first: Floats
    done: Floats
    """Times at which the last token of each was written."""
    answers: Counts
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
        """Return the run without the first requests, which found an empty batch."""
        return self.between(int(WARM * len(self.arrivals)), len(self.arrivals))

    def between(self, start: int, end: int) -> Run:
        """Return the run with only some of the requests."""
        names = ("arrivals", "first", "done", "answers")
        return replace(self, **{name: getattr(self, name)[start:end] for name in names})

    def at(self, percentile: float) -> tuple[float, float]:
        """Time to first token and time of a token at a percentile."""
        several = self.tpot
        late = float(numpy.quantile(several, percentile)) if len(several) else 0.0
        return float(numpy.quantile(self.ttft, percentile)), late

    def kept(self, ttft: float, tpot: float) -> float:
        """Share of requests that kept both limits."""
        tokens = (self.done - self.first) / numpy.maximum(1, self.answers - 1)
        return float(((self.ttft <= ttft) & (tokens <= tpot)).mean())


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
    sequence that was let in last gives its own up, and is read again when its turn comes. A replica
    that reserves lets it in when memory holds its whole answer too, and none gives its own up.
    """
    needed = trace.prompts + trace.answers + math.ceil(replica.steps.written)
    if needed[worst := int(needed.argmax())] > replica.memory:
        raise InputError(
            f"request {worst + 1} of the trace needs {needed[worst]} tokens of cache, and a replica"
            f" holds {replica.memory}: take more devices, or smaller weights and caches"
        )
    if replica.chunk <= replica.steps.checked:
        raise InputError(f"chunk must be above {replica.steps.checked} tokens; got {replica.chunk}")
    # All that write do so at each step, so that one count of passes dates all of them. The loop is
    # here, and no function, since Python reads a function's own variables fastest.
    steps, total = replica.steps, len(trace)
    together, apart, cached_position = (
        times.tolist() for times in (steps.together, steps.apart, steps.cached)
    )
    checked, written = steps.checked, steps.written
    attended, launched = steps.attended, steps.launched
    chunk, memory, mixes = replica.at_most, replica.memory, replica.mixes
    waits, every = replica.waits, replica.every
    of_a_batch = replica.chunk
    slots = min(replica.slots, steps.most_sequences)
    # Requests whose arrival is known: of clients the next one comes when an answer is whole.
    asked = total if clients is None else min(clients, total)
    arrivals = trace.arrivals.tolist() if clients is None else [0.0] * asked
    arrivals += [math.inf] * (total - asked)
    announced = [arrival + replica.request for arrival in arrivals] + [math.inf]
    cached, held = trace.cached.tolist(), trace.prompts.tolist()
    # `held` is what each brings to the batch: its prompt, and what it had written before, of which
    # whole tokens are read again; `left` are the passes that it has to write in after its first.
    left = numpy.maximum(0, numpy.ceil((trace.answers - 1) / written)).astype(int).tolist()
    # What each takes of memory when it is let in, and at each step that it writes in.
    takes = (trace.prompts + trace.answers).tolist() if replica.reserves else held
    grows = 0 if replica.reserves else written
    first, done = [math.nan] * total, [math.nan] * total
    clock, passes, preempted, since, coming = 0.0, 0, 0, 0, 0
    waiting: deque[int] = deque()
    reading: deque[int] = deque()
    read = [0] * total  # tokens of a prompt that were read so far
    begun: dict[int, int] = {}  # who writes, in the order in which they began, with the pass before
    ends: list[int] = []  # a heap: the pass after which a sequence is done, times total, plus which
    soonest = NEVER  # the pass after which the next one is done
    used, written_for = 0.0, 0.0  # tokens of memory that are taken, and of those that write
    over: list[int] = []  # whose answers are whole
    gone, reported = 0, 0
    while True:
        while announced[coming] <= clock:
            waiting.append(coming)
            coming += 1
        if waiting:
            room, places = memory - len(begun) * grows, slots - len(begun) - len(reading)
            while waiting and places > 0 and used + takes[waiting[0]] < room:
                request = waiting.popleft()
                if not reading:
                    since = passes  # after which the first of those that are read now was let in
                used += takes[request]
                read[request] = cached[request]
                reading.append(request)
                places -= 1
        reads, wait = False, 0
        if reading:  # after some steps, unless nothing writes, or one of them was begun
            if begun and not read[reading[0]]:
                wait = max(-passes % every, since + waits - passes if waits else 0)
            reads = not wait
        elif not begun:
            if coming == total:
                break
            clock = announced[coming]
            continue
        # Whoever was let in last gives memory up until the next step fits.
        while used + (count := len(begun)) * grows > memory:
            if reading:
                request = reading.pop()
                used -= held[request]
            else:
                request, before = begun.popitem()
                tokens = held[request] + (passes - before) * written
                used -= tokens
                written_for -= tokens
                ends = sorted(end for end in ends if end % total != request)
                soonest = ends[0] // total if ends else NEVER
                left[request] -= passes - before
                held[request] += (passes - before) * written
                cached[request] = 0
            preempted += 1
            waiting.appendleft(request)
        finished = 0
        if reads:  # one step that reads as much as its chunk leaves, and writes for all that write
            room = chunk - checked * count if mixes else chunk
            taken, looked_at = 0, 0.0
            for request in reading:
                before = read[request]
                piece = int(held[request]) - before
                if piece > room:
                    if room > 0:
                        taken += room
                        looked_at += room * (before + room / 2)
                        read[request] = before + room
                    break
                finished += 1
                room -= piece
                taken += piece
                looked_at += piece * (before + piece / 2)
            if taken > of_a_batch:  # by others besides, which fill other stages meanwhile
                looked_at *= of_a_batch / taken
                taken = of_a_batch
            time = attended * looked_at
            if mixes:
                ahead = 1
                tokens = checked * count + taken
                time += together[tokens] + apart[count] + cached_position[count] * written_for
            else:
                ahead = 0
                time += together[taken]
            if time < launched:
                time = launched
        elif count:  # as many steps that only write as leave the batch as it is
            growth = count * written
            ahead = soonest - passes
            if ahead * count * grows > memory - used:
                ahead = min(ahead, max(1, int((memory - used) / (count * grows))))
            if 0 < wait < ahead:
                ahead = wait
            position = cached_position[count]
            step = together[checked * count] + apart[count] + position * written_for
            more = position * growth
            if coming < asked and not waiting:
                ahead = min(ahead, _until(announced[coming] - clock, step, more))
            time = ahead * step + more * ahead * (ahead - 1) / 2
        else:
            continue
        clock += time
        if ahead:
            passes += ahead
            grown = ahead * count * written
            used += ahead * count * grows
            written_for += grown
            while passes >= soonest:
                request = heappop(ends) % total
                soonest = ends[0] // total if ends else NEVER
                over.append(request)
                wrote = passes - begun.pop(request)
                used -= takes[request] + wrote * grows
                written_for -= held[request] + wrote * written
        while finished:
            finished -= 1
            request = reading.popleft()
            if first[request] != first[request]:  # it is not a number yet
                first[request] = clock
            if left[request]:
                begun[request] = passes
                written_for += held[request]
                end = passes + left[request]
                soonest = min(soonest, end)
                heappush(ends, end * total + request)
            else:
                over.append(request)
                used -= takes[request]
        if over:
            for request in over:
                done[request] = clock
                if asked < total:
                    arrivals[asked] = clock + away
                    announced[asked] = arrivals[asked] + replica.request
                    asked += 1
            gone += len(over)
            over.clear()
            if on_progress and gone >= reported + TOLD_EVERY:
                reported = gone
                on_progress(gone, total)
    if on_progress:
        on_progress(total, total)
    span = max(done) - arrivals[0]
    in_flight = (sum(done) - float(numpy.sum(arrivals))) / span if span > 0 else 0.0
    came, wrote_first, ended = map(numpy.array, (arrivals, first, done))
    return Run(came, wrote_first, ended, trace.answers, preempted, in_flight)


def _until(time: float, first: float, more: float) -> int:
    """Steps until this time has passed, at least one: each takes so much more than the last."""
    if time <= first:
        return 1
    if more * time < 1e-9 * first**2:
        return math.ceil(time / first)
    # n · first + more · n · (n − 1) / 2 ≥ time
    half = first - more / 2
    return max(1, math.ceil((math.sqrt(half * half + 2 * more * time) - half) / more))
