"""Hold first tokens and each after, of servers under load, to the simulation, and store the errors.

    python -m experiments.record_loads

Writes calc/data/computed/loads.toml, which `calc.derivations.predicted_and_measured` reads: the
simulation of thousands of servers takes most of a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import mean, median
from typing import Any, TypeAlias

import tomli_w

from benchmarks.power import ends
from calc.core.arrays import numpy
from calc.core.errors import InputError
from calc.core.records import DATA
from calc.planning.service.observed import Point, fitted
from calc.published import closed_loops, datasets
from calc.published.reading import Row
from calc.steps.job import Job
from experiments import under_load
from experiments.under_load import Met

FILE = DATA / "computed" / "loads.toml"
HEADING = """\
# First tokens and each after, of servers under load: measured over simulated, less one. Nothing is
# typed here: `python -m experiments.record_loads` writes all of it. `judged` leaves out the machine
# to whose rows an engine's own times are fitted.

"""
FITTED = ("dgx-h200", ("vllm", "tensorrt-llm"))


def main() -> None:
    FILE.write_text(HEADING + tomli_w.dumps(agreement()), encoding="utf-8")


def agreement() -> dict[str, Any]:
    """Return all that the file holds."""
    loops = [under_load.closed_loop(row) for row in closed_loops.rows()]
    rates = [under_load.at_rate(row) for row in datasets.mlperf_rows()]
    return {
        "loops": {mode: of_loops([met for met in loops if met.kind == mode]) for mode in MODES},
        "rates": {
            scenario: summed(met for met in rates if met.kind == scenario)
            for scenario in ("Server", "Interactive")
        },
        "shortened": sum(met.factor < 1 for met in rates),
        "unshortened": summed(replace(met, expected=met.unshortened) for met in rates),
        "ranges": {
            f"{name} {percentile}": kept_back(rates, f"{name} {percentile}")
            for name in under_load.TIMES
            for percentile in ("p50", "p99")
        },
        "observed": observed_curves(),
        "traces": {name: of_trace(name) for name in under_load.traces()},
    }


MODES = ("agg", "disagg")


def of_loops(mets: Sequence[Met]) -> dict[str, Any]:
    """Return the errors of all clients of a kind, and those of each program on each machine."""
    expected = [met for met in mets if met.expected]
    return {
        "rows": len(mets),
        "unread": sum(not met.expected for met in mets),
        "all": summed(expected),
        "judged": summed(met for met in expected if not _fitted(met)),
        "systems": _grouped(
            expected, lambda met: (_job(met).software.key, _job(met).measured_on.key, _kind(met))
        ),
        "slices": _grouped(expected, lambda met: (str(_job(met).layout.tensor),)),
    }


def _fitted(met: Met) -> bool:
    machine, programs = FITTED
    return _job(met).measured_on.key == machine and _job(met).software.key in programs


def _job(met: Met) -> Job:
    assert met.job is not None  # since it is expected
    return met.job


def _kind(met: Met) -> str:
    return "dense" if _job(met).model.experts is None else "mixture"


def _grouped(mets: Iterable[Met], of: Callable[[Met], tuple[str, ...]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, ...], list[Met]] = {}
    for met in mets:
        groups.setdefault(of(met), []).append(met)
    return [{"of": list(names), **summed(alike)} for names, alike in sorted(groups.items())]


def summed(mets: Iterable[Met]) -> dict[str, Any]:
    """Return the number of rows, and of each time the errors: signed, median and last tenth."""
    errors = [met.errors for met in mets if met.expected]
    return {"rows": len(errors)} | {
        name: _spread([error[name] for error in errors]) for name in (errors[0] if errors else ())
    }


def kept_back(mets: Sequence[Met], name: str) -> dict[str, float]:
    """Return where eight of ten rows lie, and the share of other submitters' rows within it."""
    by_submitter: dict[str, list[float]] = {}
    submitters = {row["id"]: row["submitter"] for row in datasets.mlperf_rows()}
    for met in mets:
        if met.expected:
            by_submitter.setdefault(submitters[met.id], []).append(1 + met.errors[name])
    inside = []
    for one, factors in by_submitter.items():
        others = [by_submitter[other] for other in by_submitter if other != one]
        low, high = ends(chain.from_iterable(others))
        inside += [low <= factor <= high for factor in factors]
    low, high = ends(chain.from_iterable(by_submitter.values()))
    return {"low": low, "high": high, "inside": mean(inside)}


def _spread(errors: Sequence[float]) -> dict[str, float]:
    sizes = numpy.abs(errors)
    return {
        "signed": float(median(errors)),
        "error": float(numpy.median(sizes)),
        "largest": float(numpy.quantile(sizes, 0.9)),
    }


def observed_curves() -> dict[str, Any]:
    """Return the errors on the rest of a curve, before and after three of its points are observed.

    A curve is the rows of one server at five concurrencies or more: the fewest clients, the most
    and those in the middle are observed, and all others judge.
    """
    curves: dict[tuple[str, ...], dict[int, list[Row]]] = {}
    for row in closed_loops.rows():
        if row["mode"] == "agg":
            names = tuple(str(row[name]) for name in SERVER)
            curves.setdefault(names, {}).setdefault(row["clients"], []).append(row)
    before: list[Errors] = []
    after: list[Errors] = []
    medians: list[tuple[Errors, Errors]] = []
    for loops in curves.values():
        if len(loops) >= FEWEST and (observed := _observed(loops)) is not None:
            before += observed[0]
            after += observed[1]
            medians.append((_median(observed[0]), _median(observed[1])))
    halved = [[2 * late[at] <= early[at] for early, late in medians] for at in (0, 1)]
    return {"curves": len(medians), "points": len(before)} | {
        name: {
            "before": _spread([errors[at] for errors in before]),
            "after": _spread([errors[at] for errors in after]),
            "halved": sum(halved[at]) / len(halved[at]),
        }
        for at, name in enumerate(("ttft", "tpot"))
    }


SERVER = (
    *("machine", "model", "format", "software", "version"),
    *("input", "output", "tensor", "data", "experts"),
)
FEWEST = 5  # concurrencies of a curve
Errors: TypeAlias = tuple[float, float]


def _observed(loops: Mapping[int, Sequence[Row]]) -> tuple[list[Errors], list[Errors]] | None:
    """Errors of the points that are not observed, before and after; None of no expectation."""
    points = [
        Point(clients, *(mean(row.measured[name] for row in rows) for name in ("ttft", "tpot")))
        for clients, rows in sorted(loops.items())
    ]

    def simulated(job: Job, point: Point) -> Errors:
        times = under_load.together(loops[point.clients][0], job)
        return times["ttft"], times["tpot"]

    def errors(job: Job, point: Point) -> Errors:
        first, rest = simulated(job, point)
        return point.ttft / first - 1, point.tpot / rest - 1

    seen = [points[0], points[len(points) // 2], points[-1]]
    rest = [point for point in points if point not in seen]
    try:
        job = closed_loops.job_of(loops[points[0].clients][0])
        mine = replace(job, software=fitted(job, seen, simulated).software)
        return [errors(job, at) for at in rest], [errors(mine, at) for at in rest]
    except InputError:
        return None


def _median(errors: Sequence[Errors]) -> Errors:
    first, rest = (median(abs(error[at]) for error in errors) for at in (0, 1))
    return first, rest


def of_trace(name: str) -> dict[str, Any]:
    """Means of a run, and the errors of its requests one by one."""
    met, measured, expected = under_load.replayed(name)
    return {
        "means": met.errors,
        "requests": len(measured.first),
        "ttft": _spread((measured.ttft / expected.ttft - 1).tolist()),
        "tpot": _spread((measured.tpot / expected.tpot - 1).tolist()),
        "elapsed": measured.elapsed / expected.elapsed - 1,
    }


if __name__ == "__main__":
    main()
