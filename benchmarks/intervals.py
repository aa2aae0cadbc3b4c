"""The intervals of expectations, made of all published rows, and judged by rows kept back.

    python -m benchmarks.intervals            prints coverage, by thirds and by sources kept back
    python -m benchmarks.intervals --write    writes calc/data/intervals.csv too

A class's factors are quantiles of measured over expected at 10 and 90 %, with the correction for
how many rows there are that makes them hold for one row more (split conformal). Rows of few sources
are alike, and say little of a source that nobody saw: rows of the next wider class count beside
them, for each source that is missing as much as half a source. What was filled in is known no
better than what was measured: its interval includes that of the same rows measured. Closed loops
that no server without reuse can have run, since the best kernels would not reach it, and all others
of such a server, are in no class, nor are those of clients who get tokens late and several at once,
whatever their error. Nothing is fitted.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from statistics import mean, median

from calc import published
from calc.catalog.intervals import (
    COLUMNS,
    DRAFTS,
    FILE,
    FILLED,
    FIRST_TOKENS,
    LEVEL,
    MODELS,
    SPLIT,
    SPLIT_PROMPTS,
    TOKENS,
    WORK,
    Class,
    Interval,
    classes,
)
from calc.core.formatting import columns
from calc.published import closed_loops, drafts, offloading_rows
from calc.steps.expectation import serving_pass
from experiments import under_load
from experiments.tables import write_rows

FEWEST, FEWEST_SOURCES = 20, 2
FEW_OF_SPLITS = 10  # rows of the widest classes of split models, of which few are published
ENOUGH_SOURCES = 5  # for rows that count alone, beside which else those of a wider class do
LENT = 0.5  # sources of the wider class that count in place of one that is missing
MOST_OF_A_SOURCE = 25
THIRDS = 5  # random ones that are kept back


@dataclass(frozen=True)
class Residual:
    """Measured over expected of one row."""

    row: str
    names: Class
    source: str
    factor: float


def residuals() -> list[Residual]:
    """Return a residual of every row of training and serving that has an expectation."""
    loops = filter(closed_loops.tells, closed_loops.rows())
    rows = [*published.rows("training"), *published.rows("serving"), *loops]
    residual_rows = []
    for comparison in published.compare(rows):
        if comparison.error is not None:
            row = comparison.row
            work = WORK[0] if row.group == "training" else WORK[1]
            model = MODELS[0] if comparison.mixture else MODELS[1]
            names = work, comparison.software, model, FILLED[bool(comparison.filled)]
            residual_rows.append(Residual(row.id, names, _source(row), 1 + comparison.error))
    return residual_rows


def residuals_under_load() -> list[Residual]:
    """Return residuals of the first and later tokens of every closed loop that is simulated."""
    residual_rows = []
    together = (row for row in closed_loops.rows() if row["mode"] == "agg")
    for row in filter(closed_loops.tells, together):
        met = under_load.closed_loop(row)
        if met.job is None:
            continue
        parts = serving_pass(met.job, closed_loops.load_of(row))
        model = MODELS[met.job.model.experts is None]
        for work, name in ((FIRST_TOKENS, "ttft"), (TOKENS, "tpot")):
            names = work, met.job.software.key, model, FILLED[bool(parts.filled)]
            residual_rows.append(Residual(row.id, names, _source(row), 1 + met.errors[name]))
    return residual_rows


def residuals_of_splits() -> list[Residual]:
    """Return residuals of models that a host holds a part of: of tokens, and of prompts."""
    residual_rows = []
    for run in offloading_rows.runs():
        model = MODELS[run.job.model.experts is None]
        if run.states_host:
            names = SPLIT, run.job.software.key, model, FILLED[True]
            factor = float((run.time / run.expected).m_as(""))
            residual_rows.append(Residual(run.id, names, run.source, factor))
        if (time := run.prompt_time) is not None:
            names = SPLIT_PROMPTS, run.job.software.key, model, FILLED[True]
            factor = float((time / run.expected_prompt).m_as(""))
            residual_rows.append(Residual(f"{run.id} prompt", names, run.source, factor))
    return residual_rows


def residuals_of_drafts() -> list[Residual]:
    """Return measured over expected gains of drafts."""
    return [
        Residual(
            pair.id,
            (DRAFTS, pair.job.software.key, MODELS[pair.job.model.experts is None], FILLED[True]),
            pair.source,
            pair.gain / pair.expected,
        )
        for pair in drafts.pairs()
    ]


def _source(row: published.Row) -> str:
    """The publication; of closed loops, each campaign of measurements is one."""
    return row.id[: closed_loops.CAMPAIGN] if row.group == "closed_loop" else row.source


def made(residual_rows: Iterable[Residual]) -> dict[Class, Interval]:
    """The interval of every class that has rows and sources enough."""
    members: dict[Class, list[Residual]] = defaultdict(list)
    for residual in residual_rows:
        for names in classes(*residual.names):
            members[names].append(residual)
    intervals: dict[Class, Interval] = {}
    for names, rows in sorted(members.items(), key=lambda item: sum(map(bool, item[0]))):
        sources = len({row.source for row in rows})
        fewest = (
            FEW_OF_SPLITS if names in ((SPLIT, "", "", ""), (SPLIT_PROMPTS, "", "", "")) else FEWEST
        )
        if len(rows) < fewest or sources < FEWEST_SOURCES:
            continue
        wider = next((name for name in classes(*names)[1:] if name in intervals), names)
        missing = max(0, ENOUGH_SOURCES - sources)
        apart = set(rows)
        lent = [row for row in members[wider] if row not in apart] if missing else []
        intervals[names] = _interval(names, rows, lent, LENT * missing)
    for names, interval in intervals.items():
        measured = intervals.get((*names[:3], FILLED[False]))
        if names[3] == FILLED[True] and measured is not None:
            low, high = min(interval.low, measured.low), max(interval.high, measured.high)
            intervals[names] = replace(interval, low=low, high=high)
    return dict(sorted(intervals.items()))


def _interval(
    names: Class, rows: Sequence[Residual], lent: Sequence[Residual], sources: float
) -> Interval:
    """Return the interval of rows, and of others that count as much as so many sources."""
    ranked = _weighted(rows)
    others = _weighted(lent)
    whole = sum(weight for _, weight in others)
    ranked += [(factor, weight * MOST_OF_A_SOURCE * sources / whole) for factor, weight in others]
    ranked.sort()
    total = sum(weight for _, weight in ranked) + 1

    def quantile(level: float) -> float:
        reached = 0.0
        for factor, weight in ranked:
            reached += weight
            if reached >= level * total:
                return factor
        return ranked[-1][0]

    low, high = quantile((1 - LEVEL) / 2), quantile((1 + LEVEL) / 2)
    error = median(abs(row.factor - 1) for row in rows)
    return Interval(*names, len(rows), len({row.source for row in rows}), error, low, high)


def _weighted(rows: Sequence[Residual]) -> list[tuple[float, float]]:
    """Return factors of rows, of which those of one source count as MOST_OF_A_SOURCE at most."""
    of_source = Counter(row.source for row in rows)
    return [(row.factor, min(1.0, MOST_OF_A_SOURCE / of_source[row.source])) for row in rows]


def covered(kept: Iterable[Residual], intervals: dict[Class, Interval]) -> list[bool]:
    """Return for each row whether it lies in the interval that others make."""
    inside = []
    for residual in kept:
        names = next(names for names in classes(*residual.names) if names in intervals)
        inside.append(intervals[names].low <= residual.factor <= intervals[names].high)
    return inside


def kept_back(
    residual_rows: Sequence[Residual], parts: Iterable[Callable[[Residual], bool]]
) -> dict[Class, list[bool]]:
    """Return by class whether rows lie in intervals that were made without their part."""
    inside: dict[Class, list[bool]] = defaultdict(list)
    for part in parts:
        intervals = made(row for row in residual_rows if not part(row))
        # What is too rare to have an interval without them is judged by nothing.
        kept = [row for row in residual_rows if part(row) and classes(*row.names)[-1] in intervals]
        for row, holds in zip(kept, covered(kept, intervals), strict=True):
            inside[row.names].append(holds)
    return inside


def coverage(
    residual_rows: Sequence[Residual],
) -> tuple[dict[Class, list[bool]], dict[Class, list[bool]]]:
    """Return the coverage of random thirds that are kept back, and that of whole sources."""
    drawn = [
        {row.row for row in random.Random(seed).sample(residual_rows, len(residual_rows) // 3)}
        for seed in range(THIRDS)
    ]
    thirds = [lambda row, part=part: row.row in part for part in drawn]
    return kept_back(residual_rows, thirds), of_sources_kept_back(residual_rows)


def of_sources_kept_back(rows: Sequence[Residual]) -> dict[Class, list[bool]]:
    """Return by class whether rows lie in intervals that were made without their source."""
    sources = sorted({row.source for row in rows})
    return kept_back(rows, [partial(_is_of, source) for source in sources])


def _is_of(source: str, row: Residual) -> bool:
    return row.source == source


def main() -> None:
    residual_rows = residuals() + residuals_under_load() + residuals_of_splits()
    residual_rows += residuals_of_drafts()
    intervals = made(residual_rows)
    thirds, sources = coverage(residual_rows)
    lines: list[tuple[str, ...]] = [
        ("", "rows", "of thirds kept back inside", "of sources kept back", "factors", "width")
    ]
    for names in sorted({row.names for row in residual_rows}):
        used = next(intervals[interval] for interval in classes(*names) if interval in intervals)
        inside = (f"{mean(of[names]):.0%}" if of.get(names) else "–" for of in (thirds, sources))
        count = sum(row.names == names for row in residual_rows)
        lines.append(
            (
                *(" ".join(filter(None, names)), str(count), *inside),
                *(f"{used.low:.2f}–{used.high:.2f}", f"{used.high / used.low:.2f}"),
            )
        )
    every = (
        f"{mean(holds for of_class in of.values() for holds in of_class):.0%}"
        for of in (thirds, sources)
    )
    lines.append(("all", str(len(residual_rows)), *every, "", ""))
    print("\n".join(columns(lines)))
    if "--write" in sys.argv[1:]:
        written = (
            [f"{value:.3f}" if isinstance(value, float) else value for value in astuple(interval)]
            for interval in intervals.values()
        )
        write_rows(FILE, COLUMNS, written)


if __name__ == "__main__":
    main()
