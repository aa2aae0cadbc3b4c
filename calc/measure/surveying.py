"""Measurements of one machine, one after the other, and the accelerator that they make."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeAlias

from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.measure import bandwidth, gemm, latency, working_set_curve
from calc.measure.machine_description import Machine, this_machine
from calc.measure.repeated_timing import Measured, NoisyError

Progress = Callable[[int, int], None]
Key: TypeAlias = tuple[str, str | int]  # a kind of measurement, and what of that kind
Steps: TypeAlias = dict[Key, Callable[[], Measured]]


@dataclass(frozen=True)
class Survey:
    """Measurements of one machine: bandwidths, peaks and latencies, each with its spread."""

    machine: dict[str, object]
    name: str
    memory_bytes: int
    cache: Quantity | None
    threads: int
    day: datetime.date
    bandwidths: dict[str, Measured]
    peaks: dict[str, Measured]
    latencies: dict[str, Measured] = field(default_factory=dict)
    working_sets: dict[int, Measured] = field(default_factory=dict)
    too_noisy: tuple[str, ...] = ()
    """What another program was in the way of, and is left out."""

    @property
    def memory_bandwidth(self) -> Measured:
        """The bandwidth of the record: all bytes of copy and triad over all of their time.

        Bandwidth is bytes over time, so that of several passes is that of one after the other:
        5 arrays over the time of 2 and of 3. These two are what STREAM begins and ends with, and
        what most passes are: one array or two read for each that is written. It is what a program
        gets that does both alike, and no ceiling: that is the triad's, in the table `measurement`.

        Of a GPU, and without numba, whose triad is one pass, it is that of the copy.
        """
        copy = self.bandwidths["copy"]
        if "triad" not in self.bandwidths:
            return copy
        triad = self.bandwidths["triad"]
        return Measured(
            5 / (2 / copy.value + 3 / triad.value),
            max(copy.spread, triad.spread),
            copy.repeats + triad.repeats,
            f"bytes over time of {copy.how}, and {triad.how}, together",
        )


def survey(threads: int = 1, on_progress: Progress | None = None) -> Survey:
    """Measure this machine's CPU on so many threads; what its caches do, on one.

    With torch installed, BF16 is measured beside the formats of NumPy. Progress is told as steps
    that are done, and their number. Nothing is written.

    Raises InputError where there are fewer cores or less memory than that needs. What another
    program is in the way of is left out and named; NoisyError where no bandwidth or peak is left.

        from calc.measure import survey
        print(survey().memory_bandwidth)  # after a minute; what it finds is this machine's own

    Parameters
    ----------
    threads
        cores to use
    """
    machine = this_machine()
    if not 1 <= threads <= machine.cores:
        raise InputError(
            f"threads must be from 1 to {machine.cores}, the cores that this process may use;"
            f" got {threads}"
        )
    return _surveyed(
        _steps(machine, threads),
        on_progress,
        machine=machine.as_table(),
        name=f"{machine.processor}, {threads} core{'s' if threads > 1 else ''}",
        memory_bytes=machine.memory,
        cache=machine.last_cache,
        threads=threads,
    )


def _steps(machine: Machine, threads: int) -> Steps:
    """Each measurement by its kind and name, in the order in which they are made."""
    large = machine.beyond_caches
    compiled = bool(find_spec("numba"))
    steps: Steps = {
        ("bandwidth", "copy"): partial(bandwidth.copy, large, threads),
        ("bandwidth", "triad" if compiled else "triad in blocks"): partial(
            bandwidth.triad, large, threads
        ),
    }
    for dtype in gemm.DTYPES:
        steps["peak", dtype] = partial(gemm.peak, dtype, threads)
    if find_spec("torch"):
        from calc.measure import torch_rates

        for dtype in torch_rates.CPU_DTYPES:
            steps["peak", dtype] = partial(torch_rates.rate, dtype, "cpu", threads)
    places = {**_within(machine.caches), "memory": large}
    if not compiled:  # Python starts from the time of the first cache
        places = {f"{name}, above L1": size for name, size in places.items() if name != "L1"}
    for level, size in places.items():
        steps["latency", level] = partial(latency.latency, size)
    for size in working_set_curve.sizes(large):
        steps["working set", size] = partial(working_set_curve.bandwidth, size)
    return steps


def _within(caches: dict[int, int]) -> dict[str, int]:
    """Working sets that each cache serves: half of the first, twice the one before of the others.

    A last cache is shared. What neighbours leave of it ends early, another day elsewhere, so that
    half of its size tells of them; just beyond the cache before, it is the cache that answers.
    """
    sizes = [caches[level] for level in sorted(caches)]
    wanted = [size // 2 for size in sizes[:1]] + [2 * size for size in sizes[:-1]]
    return {
        f"L{level}": min(want, caches[level])
        for level, want in zip(sorted(caches), wanted, strict=True)
    }


def gpu_survey(on_progress: Progress | None = None) -> Survey:
    """Measure the GPU that torch finds first: copy, products by number format, time of a launch.

    This has not been run on a GPU by its tests, which skip it where there is none.

        from calc.measure import gpu_survey
        print(gpu_survey().memory_bandwidth)  # needs a GPU that torch finds
    """
    from calc.measure import torch_rates

    gpu = torch_rates.gpu()
    steps: Steps = {
        ("bandwidth", "copy"): torch_rates.copy_on_gpu,
        ("latency", "launch"): torch_rates.launch_latency,
    }
    for dtype in torch_rates.CUDA_DTYPES:
        steps["peak", dtype] = partial(torch_rates.rate, dtype, "cuda")
    return _surveyed(
        steps,
        on_progress,
        machine={**this_machine().as_table(), "gpu": gpu},
        name=gpu["name"],
        memory_bytes=gpu["memory"],
        cache=quantity(gpu["cache"] / 2**20, "MiB"),
        threads=1,
    )


def _surveyed(steps: Steps, on_progress: Progress | None, **about: Any) -> Survey:
    done = _done(steps, on_progress)
    return Survey(
        **about,
        day=datetime.datetime.now(datetime.UTC).date(),
        bandwidths=_of("bandwidth", done),
        peaks=_of("peak", done),
        latencies=_of("latency", done),
        working_sets=_of("working set", done),
        too_noisy=tuple(f"{kind} {name}" for kind, name in steps if (kind, name) not in done),
    )


def _done(steps: Steps, on_progress: Progress | None) -> dict[Key, Measured]:
    """Every step in turn; what was too noisy once more after all others, when quiet may be back.

    What is too noisy then too is left out, unless there is no device without it.
    """
    done: dict[Key, Measured] = {}
    noisy: list[Key] = []
    lost: dict[Key, NoisyError] = {}
    for number, (key, step) in enumerate(steps.items()):
        if on_progress:
            on_progress(number, len(steps))
        try:
            done[key] = step()
        except NoisyError:
            noisy.append(key)
    for key in noisy:
        try:
            done[key] = steps[key]()
        except NoisyError as error:
            lost[key] = error
    no_peak = not _of("peak", done)
    for (kind, name), why in lost.items():
        if name == "copy" or (kind == "peak" and no_peak):
            raise why
    return {key: done[key] for key in steps if key in done}


def _of(kind: str, done: dict[Key, Measured]) -> dict[Any, Measured]:
    return {name: measured for (group, name), measured in done.items() if group == kind}
