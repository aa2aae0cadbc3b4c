"""Time of planning and simulating a service, beside a general simulator.

    python -m benchmarks.service_speed [--simpy FOLDER]

FOLDER holds simpy 4, to compare with: `pip install --target FOLDER simpy`. It runs the least that a
batch is, a process for the replica and one for each request, without memory, chunks or preemption.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from calc.planning import Limits, Load, plan_service
from calc.planning.service import Replica, Trace, poisson, simulate

REQUESTS = 100_000
COMPARED = 2_000  # requests that simpy serves too
LOAD = Load(20, prompt=1000, generated=200)
LIMITS = Limits(ttft="1 s", tpot="50 ms")


def main() -> None:
    parser = argparse.ArgumentParser(description="What planning a service costs.")
    parser.add_argument("--simpy", metavar="FOLDER", help="a folder that holds simpy")
    options = parser.parse_args()
    plan_service("llama-3-70b", "dgx-h100", LOAD, LIMITS)  # what is read once is read
    wall, busy, _ = timed(lambda: plan_service("llama-3-70b", "dgx-h100", LOAD, LIMITS))
    print(f"A plan of Llama 3 70B, 20 request/s, H100s: {wall:.2f} s ({busy:.2f} s of one core)")
    small = plan_service("llama-3-70b", "dgx-h100", LOAD, LIMITS, pools="mixed")
    replica = small.design.pools[0].replica
    rate = small.design.pools[0].most
    trace = poisson(rate, REQUESTS, 1000, 200, 0.5, 1.0)
    wall, busy, _ = timed(lambda: simulate(replica, trace))
    print(f"{REQUESTS:,} requests at {rate:.1f} a second: {wall:.2f} s ({busy:.2f} s of one core)")
    if options.simpy:
        sys.path.insert(0, options.simpy)
        few = trace.first(COMPARED)
        ours, _, _ = timed(lambda: simulate(replica, few))
        theirs, _, _ = timed(lambda: in_simpy(replica, few))
        print(f"{COMPARED:,} requests in simpy: {theirs:.2f} s, {theirs / ours:.0f} times as long")


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock and of the processor, and what was made."""
    wall, busy = time.perf_counter(), time.process_time()
    made = run()
    return time.perf_counter() - wall, time.process_time() - busy, made


def in_simpy(replica: Replica, trace: Trace) -> None:
    """Requests that take a place, and are told of each step by the process of the replica."""
    simpy: Any = import_module("simpy")
    world = simpy.Environment()
    places = simpy.Resource(world, replica.slots)
    steps, writing = replica.steps, [0]
    step = [world.event()]
    started = [world.event()]

    def server() -> Any:
        while True:
            if not writing[0]:
                yield started[0]
                started[0] = world.event()
            yield world.timeout(float(steps.time(writing[0], writing[0] * 1100)))
            done, step[0] = step[0], world.event()
            done.succeed()

    def request(at: float, tokens: int) -> Any:
        yield world.timeout(at)
        with places.request() as slot:
            yield slot
            writing[0] += 1
            if not started[0].triggered:
                started[0].succeed()
            for _ in range(tokens):
                yield step[0]
            writing[0] -= 1

    world.process(server())
    for at, tokens in zip(trace.arrivals, trace.answers, strict=True):
        world.process(request(float(at), int(tokens)))
    world.run(until=float(trace.arrivals[-1]))


if __name__ == "__main__":
    main()
