"""Memory: bandwidth by size, latency of a chase idle and loaded, copies from and to the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch

from calc.measure.gpu.bench import Bench, Case, Row, Work, reason, row, unmeasured
from calc.measure.latency import chain
from calc.measure.repeated_timing import FEWEST, middle

LINE = 128  # bytes that a miss brings
HOPS = 2**16
COPIES = 200  # which together outlast the chase


def bandwidth_cases(bench: Bench) -> Iterator[Case]:
    """Read, write, copy and triad of arrays of FP32, from what a cache holds to what none does."""
    largest = bench.memory // 16
    sizes = [largest // 2**halvings for halvings in range(15 if not bench.small else 3)]
    for name, size in product(STREAMS, sorted(sizes)):
        arrays, make = STREAMS[name]
        elements = size // 4
        moved = arrays * elements * 4
        yield bench.case(
            partial(make, bench, elements), kernel=name, array_bytes=elements * 4, moved_bytes=moved
        )


def _read(bench: Bench, elements: int) -> Work:
    a = bench.random(elements)
    return lambda: torch.sum(a)


def _write(bench: Bench, elements: int) -> Work:
    a = bench.random(elements)
    return lambda: a.fill_(2.0)


def _copy(bench: Bench, elements: int) -> Work:
    a, b = bench.random(elements), bench.random(elements)
    return lambda: b.copy_(a)


def _triad(bench: Bench, elements: int) -> Work:
    a, b, c = (bench.random(elements) for _ in range(3))
    return lambda: torch.add(b, c, alpha=3.0, out=a)


STREAMS: dict[str, tuple[int, Callable[[Bench, int], Work]]] = {
    "read": (1, _read),
    "write": (1, _write),
    "copy": (2, _copy),
    "triad": (3, _triad),
}
"""How many arrays each moves, and what makes it."""


def latency_cases(bench: Bench) -> Iterator[Case]:
    """A chase through lines in random order, each hop waiting for the one before."""
    sizes = (2**12,) if bench.small else tuple(2**power for power in range(14, 31, 2))
    for load, size in product(("idle", "copying"), sizes):
        labels = {"load": load, "size_bytes": size}
        yield Case(labels, partial(_chase, bench, size, load == "copying"))


def _chase(bench: Bench, size: int, loaded: bool) -> Row:
    """Time of a hop: that of twice the hops less that of once, so that no launch is in it."""
    try:
        from calc.measure.gpu.chase import chase, unusable
    except ImportError as error:
        return unmeasured(reason(error))
    if why := unusable():
        return unmeasured(why)
    hops = 32 if bench.small else HOPS
    table = torch.from_numpy(chain(size, LINE)).to(bench.device)
    result = torch.zeros(1, dtype=torch.int64, device=bench.device)
    copied = [bench.random(bench.memory // 256) for _ in range(2)]
    beside = (lambda: copied[0].copy_(copied[1])) if loaded else None
    samples = []
    chase(table, result, hops)  # which compiles it
    for _ in range(FEWEST):
        once, twice = (
            _elapsed(bench, partial(chase, table, result, count), beside)
            for count in (hops, 2 * hops)
        )
        samples.append((twice - once) / hops)
    bench.free()
    median, spread = middle(samples)
    return row(median, spread, FEWEST) if median > 0 else unmeasured("too noisy")


def _elapsed(bench: Bench, work: Work, beside: Work | None) -> float:
    """Seconds of a kernel by the GPU's own events, while others go on in another stream.

    The kernel's stream has priority: its one block starts as soon as a block of a copy ends.
    """
    if not bench.on_gpu:
        start = bench.clock()
        work()
        return bench.clock() - start
    mine, others = torch.cuda.Stream(priority=-1), torch.cuda.Stream()
    torch.cuda.synchronize()
    if beside is not None:
        with torch.cuda.stream(others):
            for _ in range(COPIES):
                beside()
    with torch.cuda.stream(mine):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
    end.synchronize()
    milliseconds: float = start.elapsed_time(end)
    torch.cuda.synchronize()
    return milliseconds / 1e3


def host_cases(bench: Bench) -> Iterator[Case]:
    """Copies between device and host, of pinned pages and of others, one way and both at once."""
    sizes = (2**10,) if bench.small else (2**12, 2**16, 2**20, 2**24, 2**28, 2**30)
    ways = ("host to device", "device to host", "both ways")
    for way, pages, size in product(ways, ("pinned", "pageable"), sizes):
        labels = {"way": way, "pages": pages, "bytes": size * (2 if way == "both ways" else 1)}
        yield bench.case(partial(_host_copy, bench, way, pages, size), **labels)


def _host_copy(bench: Bench, way: str, pages: str, size: int) -> Work:
    pinned = pages == "pinned" and bench.on_gpu
    here = [torch.zeros(size, dtype=torch.uint8, pin_memory=pinned) for _ in range(2)]
    there = [torch.zeros(size, dtype=torch.uint8, device=bench.device) for _ in range(2)]
    if way == "host to device":
        return lambda: there[0].copy_(here[0], non_blocking=True)
    if way == "device to host":
        return lambda: here[0].copy_(there[0], non_blocking=True)
    streams = [torch.cuda.Stream() for _ in range(2)] if bench.on_gpu else []

    def both() -> None:
        if not streams:
            there[0].copy_(here[0])
            here[1].copy_(there[1])
            return
        with torch.cuda.stream(streams[0]):
            there[0].copy_(here[0], non_blocking=True)
        with torch.cuda.stream(streams[1]):
            here[1].copy_(there[1], non_blocking=True)

    return both
