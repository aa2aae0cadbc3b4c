"""Collectives between the GPUs of this machine, a process for each, as nccl-tests times them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import torch
from torch import distributed, multiprocessing

from calc.measure.gpu.bench import Bench, Case, Row, Work, reason, row, unmeasured
from calc.measure.repeated_timing import FEWEST, middle

Key: TypeAlias = tuple[str, int]  # an operation and its bytes
Times: TypeAlias = dict[Key, list[float] | str]  # seconds, or why there are none
OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
SIZES = tuple(2**power for power in range(10, 31, 2))


def cases(bench: Bench) -> Iterator[Case]:
    """Each operation by its size: the bytes of a device's whole buffer."""
    count = 2 if bench.small else torch.cuda.device_count()
    times: Times = {}
    sizes = (2**12,) if bench.small else SIZES
    for operation, size in product(OPERATIONS, sizes):
        labels = {"operation": operation, "devices": count, "bytes": size}
        yield Case(labels, partial(_row, bench, count, sizes, times, (operation, size)))


def _row(bench: Bench, count: int, sizes: tuple[int, ...], times_at: Times, key: Key) -> Row:
    """The row of one case; the first of them runs all, since processes take long to start."""
    if count < 2:
        return unmeasured("this machine has one GPU")
    if not times_at:
        try:
            times_at |= _all(bench, count, sizes)
        except (
            RuntimeError,
            multiprocessing.ProcessRaisedException,
            multiprocessing.ProcessExitedException,
        ) as error:
            return unmeasured(reason(error))
    times = times_at[key]
    if isinstance(times, str):
        return unmeasured(times)
    return row(*middle(times), len(times))


def _all(bench: Bench, count: int, sizes: tuple[int, ...]) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times"
        multiprocessing.spawn(_process, (count, bench.device, bench.small, sizes, folder), count)
        return torch.load(times)


def _process(
    rank: int, count: int, device: str, small: bool, sizes: tuple[int, ...], folder: str
) -> None:
    """One of the processes: it times what all do together, and the first writes it down."""
    bench = Bench(device, small)
    if bench.on_gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if bench.on_gpu else "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=count,
    )
    times: Times = {}
    for operation, size in product(OPERATIONS, sizes):
        try:
            times[operation, size] = _times(bench, operation, size, count)
        except RuntimeError as error:  # gloo has no all-to-all: all processes fail alike
            times[operation, size] = reason(error)
    if rank == 0:
        torch.save(times, f"{folder}/times")
    distributed.destroy_process_group()


def _times(bench: Bench, operation: str, size: int, count: int) -> list[float]:
    work: Work
    whole = torch.ones(size // 4, device=bench.device)
    part = torch.ones(size // 4 // count, device=bench.device)
    work = {
        "all-reduce": partial(distributed.all_reduce, whole),
        "all-gather": partial(distributed.all_gather_single, whole, part),
        "reduce-scatter": partial(distributed.reduce_scatter_single, part, whole),
        "all-to-all": partial(distributed.all_to_all_single, torch.empty_like(whole), whole),
    }[operation]
    runs = 2 if bench.small else max(5, min(100, 2**28 // size))
    work()
    samples = []
    for _ in range(FEWEST):
        distributed.barrier()
        start = bench.clock()
        for _ in range(runs):
            work()
        samples.append((bench.clock() - start) / runs)
    return samples
