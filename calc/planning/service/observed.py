"""`observe`: what a benchmark of one's own server says of it, as numbers that every planner takes.

A server is read as a known program whose own numbers are not known: the share of kernels' rates
that it sustains, its time for a step, for each sequence of a step, and until a request is known.
They are found by least squares from the times of a few closed loops, beside what the simulation
says of the same loops without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from calc.catalog import software as programs
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.software import Software
from calc.core.arguments import number, whole_number
from calc.core.arrays import Floats, numpy
from calc.core.errors import InputError, abbreviated
from calc.core.files import read_text, writable, write_text
from calc.core.report import Reported, Table
from calc.core.units import QuantityLike, quantity
from calc.planning.plan_nouns import Server
from calc.planning.service.asked import length_of, time_of
from calc.planning.service.loops import Clients, closed_loop
from calc.planning.setup import MOST_USERS, Setup
from calc.published import claims
from calc.steps.job import Job, Layout, Tokens
from calc.steps.timing import bounds

CONSTRAINTS = {  # of what is fitted: its unit, and what it holds back
    "sustained": ("1", "rates of arithmetic and memory: every token"),
    "step": ("s", "the host, once a step: what a token takes at few clients"),
    "sequence": ("s", "the host, for each sequence: what more clients add"),
    "request": ("s", "the way to the batch: first tokens"),
}
SOURCE = "own benchmark"
TURNS = 3  # of fits, each of which corrects what the one before left out
WEIGHT = 0.3  # of an error of a first token, which scatters more than that of a token
FALLS = 0.8  # a token that takes less than this of what it took with fewer clients contradicts it
FAR = 0.5  # an error of a token after the fit at which points are no such server's


class Point(NamedTuple):
    """Means of a closed loop of so many clients, in seconds, and of its lengths in tokens."""

    clients: int
    ttft: float
    tpot: float
    prompt: float | None = None
    answer: float | None = None
    shortest: float = 1.0
    """The shortest of lengths over the longest, where they are drawn between."""


Simulated: TypeAlias = Callable[[Job, Point], tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Observed(Reported):
    """A server as its benchmark shows it; `software` is what planners take."""

    asked: Job
    points: tuple[Point, ...]
    numbers: dict[str, float]
    """What was fitted, in seconds or as a share."""
    expected: tuple[tuple[float, float], ...]
    """First tokens and each after of the points, with these numbers."""

    @cached_property
    def toml(self) -> str:
        """The file that `--software` takes."""
        program = self.asked.software
        today = datetime.now(UTC).date()
        lines = [
            f"# What {len(self.points)} closed loops of {self.asked.model.name} on"
            f" {self.asked.machine.name} say of their server.",
            f"[{program.key}]",
            f'name = "{program.name}, as observed"',
            *([f'version = "{program.version}"'] if program.version else ()),
            f'written = "{program.written}"',
            f'kv = "{program.kv}"',
            'kind = "measured"',
            f'source = "{SOURCE}"',
            f"checked = {today}",
        ]
        for name, value in self.numbers.items():
            unit, comment = CONSTRAINTS[name]
            lines.append(f'{name} = {{ value = {value:.6g}, unit = "{unit}", note = "{comment}" }}')
        if not program.mixes:
            lines.append('mixes = { value = 0, unit = "1" }')
        return "\n".join(lines) + "\n"

    @cached_property
    def software(self) -> Software:
        """The program with the numbers that were fitted."""
        return with_numbers(self.asked.software, self.numbers)

    def save(self, path: Path | str) -> None:
        """Write the file that planners take as `software`."""
        target = writable(path)
        if target.suffix != ".toml":
            raise InputError(f"numbers of a server are kept in a .toml file; got {target}")
        if target.exists() and f'source = "{SOURCE}"' not in read_text(target):
            raise InputError(f"{target} is there and is no file of `observe`: take another name")
        write_text(target, self.toml)

    @cached_property
    def title(self) -> Sequence[str]:
        count = f"{self.asked.layout.tensor} {self.asked.device.name}"
        program = self.asked.software.name
        return (f"{self.asked.model.name} on {count} by {program}, {len(self.points)} points", "")

    @cached_property
    def tables(self) -> Sequence[Table]:
        fitted = [("", "fitted", "what it holds back")]
        for name, value in self.numbers.items():
            unit, comment = CONSTRAINTS[name]
            shown = f"{value:.0%}" if unit == "1" else f"{quantity(value, 's').to_compact():.3g}"
            fitted.append((name, shown, comment))
        rows: list[tuple[str, ...]] = [("clients", "TTFT", "fitted", "TPOT", "fitted")]
        for point, times in zip(self.points, self.expected, strict=True):
            both = (point.ttft, times[0]), (point.tpot, times[1])
            cells = [f"{quantity(time, 's').to_compact():.3g}" for pair in both for time in pair]
            rows.append((str(point.clients), *cells))
        return (Table(fitted), Table(rows))

    @cached_property
    def facts(self) -> dict[str, object]:
        points = [point._asdict() for point in self.points]
        return {"numbers": self.numbers, "points": points, "software": self.toml}


def observe(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    points: Sequence[str | Path | Point],
    *,
    tensor: int = 1,
    prompt: QuantityLike | None = None,
    generated: QuantityLike | None = None,
    weights: QuantityLike | None = None,
    shortest: float = 1.0,
    kv: QuantityLike = "bf16",
    dtype: str | None = None,
    software: str = "vllm",
) -> Observed:
    """Return what a server's own benchmark says of it: numbers that planners take as `software`.

    Points are result files of `vllm bench serve`, SGLang's bench_serving, aiperf, genai-perf or
    guidellm, or texts "concurrency=8,ttft=0.2 s,tpot=12 ms"; three of one server, from few clients
    to many, are enough.

    Parameters
    ----------
    tensor
        devices that share each matrix (TP)
    prompt
        tokens of a prompt, where no file says so
    generated
        tokens of an answer, where no file says so
    shortest
        of the lengths over the longest, where the benchmark draws them between
    weights
        format of the weights; as released, or else bf16
    kv
        format of keys and values
    dtype
        what products are computed in
    software
        the program that serves, whose kernels these are

    Examples
    --------
    >>> loops = ["concurrency=4,ttft=60 ms,tpot=8 ms", "concurrency=64,ttft=300 ms,tpot=16 ms"]
    >>> seen = observe("llama-3.1-8b", "h100", loops, prompt=1000, generated=500)
    >>> sorted(seen.numbers)
    ['request', 'sequence', 'step', 'sustained']
    """
    if isinstance(points, str | Path):
        points = [points]
    read = [point for source in points for point in _read(source)]
    if (least := number("shortest", shortest, above=0.0)) > 1:
        raise InputError(f"shortest is a share of the longest, at most 1; got {shortest}")
    asked = None if prompt is None else length_of("prompt", prompt)
    written = None if generated is None else length_of("generated", generated)
    read = [
        at._replace(prompt=asked or at.prompt, answer=written or at.answer, shortest=least)
        for at in read
    ]
    _check(read)
    first = read[0]
    counts: dict[str, QuantityLike] = {
        "batch": 1,
        "prompt": math.ceil(first.prompt or 1),
        "generated": math.ceil(first.answer or 1),
    }
    setup = Setup.read(model, hardware, counts, Server(weights, kv, dtype, software))
    job = replace(setup.job, layout=Layout(tensor=whole_number("tensor", tensor)))
    return fitted(job, read)


def fitted(job: Job, points: Sequence[Point], simulated: Simulated | None = None) -> Observed:
    """Return what is observed of a job by a simulation, its software's own numbers left aside."""
    simulated = simulated or _simulated
    points = sorted(points)
    _check_bound(job, points)
    bare = replace(job, software=with_numbers(job.software, dict.fromkeys(CONSTRAINTS, 0.0)))
    bare_times = numpy.array([simulated(bare, point) for point in points])
    clients = numpy.array([point.clients / job.layout.data for point in points], dtype=float)
    nothing, one = numpy.zeros(len(points)), numpy.ones(len(points))
    tokens: Floats = numpy.stack([bare_times[:, 1], one, clients, nothing], 1)
    firsts: Floats = numpy.stack([bare_times[:, 0], one, nothing, one], 1)
    ttfts, tpots = (numpy.array([point[column] for point in points]) for column in (1, 2))
    aims = ttfts, tpots
    # No kernel is faster than at published peaks, whatever share of its measured rate is sustained.
    least = min(
        _bound(job, at) / seconds for at, (_, seconds) in zip(points, bare_times, strict=True)
    )
    best: tuple[float, dict[str, float], tuple[tuple[float, float], ...]] = (math.inf, {}, ())
    for _ in range(TURNS):
        rows = numpy.concatenate([tokens / aims[1][:, None], WEIGHT * firsts / aims[0][:, None]])
        fit = _least_squares(rows, numpy.concatenate([one, WEIGHT * one]), least)
        numbers = dict(zip(CONSTRAINTS, (1 / fit[0], *fit[1:]), strict=True))
        made = replace(job, software=with_numbers(job.software, numbers))
        times = tuple(simulated(made, at) for at in points)
        first, rest = (numpy.array([both[column] for both in times]) for column in (0, 1))
        left = ((rest / tpots - 1) ** 2 + (WEIGHT * (first / ttfts - 1)) ** 2).sum()
        best = min(best, (float(left), numbers, times), key=lambda one: one[0])
        # What queues add is in the simulation and not in a sum: the next turn aims off by as much.
        aims = ttfts * (firsts @ fit) / first, tpots * (tokens @ fit) / rest
    _, numbers, times = best
    if max(abs(both[1] / at.tpot - 1) for both, at in zip(times, points, strict=True)) > FAR:
        raise InputError(
            f"no numbers of {job.software.name} make the times of these points: the nearest are"
            f" more than {FAR:.0%} off, so that the model, the layout or the lengths are not theirs"
        )
    return Observed(job, tuple(points), numbers, times)


def with_numbers(software: Software, values: dict[str, float]) -> Software:
    """Return the program with numbers of its own, those that are 0 left out."""
    table = {
        name: {"value": value, "unit": CONSTRAINTS[name][0]}
        for name, value in values.items()
        if value > 0
    }
    origin = {"kind": "measured", "source": SOURCE, "checked": datetime.now(UTC).date()}
    made = programs.of_table(software.key, {"name": software.name, **origin, **table}, "observed")
    replaced = {*values, "sustained_experts", "step_experts", "hides_host"}
    kept = {name: had for name, had in software.records.items() if name not in replaced}
    if "sustained" in made.records:
        kept["sustained_experts"] = made.records["sustained"]
    return replace(software, records=kept | made.records, changes={})


def _simulated(job: Job, point: Point) -> tuple[float, float]:
    """First tokens and each after of a closed loop, the means."""
    assert point.prompt is not None
    assert point.answer is not None  # since they were checked
    longest = 2 / (1 + point.shortest)
    lengths = longest * point.prompt, longest * point.answer
    loop = closed_loop(job, Clients(point.clients, point.shortest, at_once=True), *lengths)
    return loop.ttft, loop.tpot


def _bound(job: Job, point: Point) -> float:
    """Seconds that the steps of such a loop take at least, at published peaks."""
    load = Tokens(point.clients / job.layout.data, (point.prompt or 1) + (point.answer or 1) / 2)
    return float(bounds(job, load).lower.m_as("s"))


def _check_bound(job: Job, points: Sequence[Point]) -> None:
    """Refuse tokens that come sooner than the devices can read the weights once."""
    least = float(bounds(job, Tokens(1.0, 1.0)).lower.m_as("s"))
    for point in points:
        for name, seconds in (("tpot", point.tpot), ("ttft", point.ttft)):
            if seconds < least:
                raise InputError(
                    f"{name} of {point.clients} clients is {quantity(seconds, 's')}, and"
                    f" {job.layout.devices} {job.device.name} take {quantity(least, 's')} at least"
                    f" for a step of {job.model.name}: the model, the format or the devices are not"
                    " theirs"
                )


def _least_squares(rows: Any, wanted: Any, least: float) -> list[float]:
    """The numbers, none below 0 and the first not below the least, that come nearest."""
    count = rows.shape[1]
    start = numpy.zeros(count)
    start[0] = least
    left_over = wanted - rows @ start
    best = (math.inf, start)
    for size in range(count + 1):
        for chosen in map(list, combinations(range(count), size)):
            solution = start.copy()
            solution[chosen] += numpy.linalg.lstsq(rows[:, chosen], left_over, rcond=None)[0]
            left = float(((rows @ solution - wanted) ** 2).sum())
            if (solution >= start).all() and left < best[0] - 1e-12:
                best = (left, solution)
    return [float(number) for number in best[1]]


def _check(points: Sequence[Point]) -> None:
    """Refuse points that are too few, without lengths, or that contradict one another."""
    if len({point.clients for point in points}) < 2:
        raise InputError(
            "a server is seen at two concurrencies or more, three of them better; got"
            f" {len(points)} {'point' if len(points) == 1 else 'points'}"
        )
    for point in points:
        if point.prompt is None or point.answer is None:
            raise InputError(
                f"the lengths of the loop of {point.clients} clients are missing: give prompt= and"
                " generated="
            )
    by_clients = sorted(points)
    for fewer, more in pairwise(by_clients):
        if more.tpot < FALLS * fewer.tpot and more[3:] == fewer[3:]:
            raise InputError(
                f"points contradict each other: {more.clients} clients have a token every"
                f" {more.tpot * 1e3:.3g} ms, and {fewer.clients} every {fewer.tpot * 1e3:.3g} ms"
            )


def _read(source: str | Path | Point) -> Iterator[Point]:
    """The points of a text, or of a file in one of the forms that are known."""
    if isinstance(source, Point):
        yield source
        return
    if isinstance(source, str) and "=" in source:
        yield _of_text(source)
        return
    for result, _ in claims.load(source):
        yield _of_result(source, result)


def _of_text(text: str) -> Point:
    pairs = dict(part.strip().split("=", 1) for part in text.split(",") if "=" in part)
    names = "concurrency", "ttft", "tpot"
    if missing := [name for name in names if name not in pairs]:
        raise InputError(
            f"{abbreviated(text)} has no {' and no '.join(missing)}: a point is"
            ' "concurrency=8,ttft=0.2 s,tpot=12 ms"'
        )
    if unknown := [name for name in pairs if name not in names]:
        raise InputError(f"a point has concurrency, ttft and tpot; got {', '.join(unknown)}")
    times = (time_of(name, pairs[name], "12 ms") for name in ("ttft", "tpot"))
    return Point(_clients(quantity(pairs["concurrency"]).m_as("")), *times)


def _clients(value: float) -> int:
    count = round(number("concurrency", value, 1))
    if count > MOST_USERS:
        raise InputError(f"concurrency may be {MOST_USERS:,.0f} at most; got {abbreviated(value)}")
    return count


def _of_result(path: str | Path, result: dict[str, Any]) -> Point:
    try:
        said, figures = claims.of_result(result)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if missing := [name.upper() for name in ("ttft", "tpot") if not figures.get(name)]:
        raise InputError(
            f"{path}: is no result of a known benchmark: calc reads those of vllm bench serve,"
            f" SGLang, aiperf, genai-perf and guidellm, and found no {' and no '.join(missing)}"
        )
    if "batch" not in said:
        raise InputError(f"{path}: does not say how many clients there were, as max_concurrency")
    lengths = said.get("input_len"), said.get("output_len")
    return Point(_clients(said["batch"]), figures["ttft"], figures["tpot"], *lengths)
