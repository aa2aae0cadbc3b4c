"""Launches: in a row, one by one with a wait, and as nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from calc.measure.gpu.bench import Bench, Case, Row, Work, unmeasured

IN_A_ROW = 1000


def cases(bench: Bench) -> Iterator[Case]:
    """The time of one of many kernels that do next to nothing."""
    count = 10 if bench.small else IN_A_ROW
    yield Case({"way": "a launch in a row", "kernels": count}, lambda: _per_kernel(bench, count))
    yield bench.case(lambda: _waited(bench), way="a launch and a wait", kernels=1)
    yield Case({"way": "a graph", "kernels": count}, lambda: _in_graph(bench, count))


def _per_kernel(bench: Bench, count: int) -> Row:
    return _divided(bench.time(lambda: _launches(bench, count), f"{count} launches"), count)


def _launches(bench: Bench, count: int) -> Work:
    a = torch.zeros(1, device=bench.device)

    def run() -> None:
        for _ in range(count):
            a.add_(1)

    return run


def _waited(bench: Bench) -> Work:
    a = torch.zeros(1, device=bench.device)

    def run() -> None:
        a.add_(1)
        bench.clock()

    return run


def _in_graph(bench: Bench, count: int) -> Row:
    if not bench.on_gpu:
        return unmeasured("a CPU has no graphs")
    return _divided(bench.time(lambda: captured(_launches(bench, count)), "a graph"), count)


def captured(work: Work) -> Work:
    """The work as a graph of the GPU's, replayed whole: no launch of it costs the host anything."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # what the first runs allocate and choose stays out of the graph
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def _divided(row: Row, count: int) -> Row:
    return row if row["why"] else row | {"seconds": row["seconds"] / count}
