"""Published layouts of training beside those that `calc.plan_training` finds.

`python -m benchmarks.published_layouts [SOFTWARE]` prints a line for each row that states its
layout: whether it is legal and fits, measured over expected, the share of the bound, and how many
times as long as the search's best the published layout is expected to take. Some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

from calc import plan_training, published
from calc.catalog.models import Transformer
from calc.core.errors import InputError
from calc.core.formatting import columns
from calc.core.progress import ProgressBar
from calc.planning import Search, Training, TrainingPlan
from calc.planning.training import Candidate
from calc.published.layout_rows import PublishedLayout, published_layouts

NEAR = 0.25  # of what is expected
HEADING = ("", "layout", "fits", "measured", "of bound", "search's best", "over it", "over like")


@dataclass(frozen=True)
class Held:
    """A published layout, beside the search's best."""

    found: PublishedLayout
    measured: float | None
    """Over expected."""
    share_of_bound: float | None
    plan: TrainingPlan | None

    @property
    def fits(self) -> bool:
        """True if the fullest device holds the model's memory, by the software's recipe."""
        return bool(self.found.memory.total <= self.found.job.device.memory_capacity)

    @property
    def over_best(self) -> float | None:
        """Time of the published layout over that of the search's best, both as expected."""
        return self._over(None if self.plan is None else self.plan.best)

    @property
    def over_like(self) -> float | None:
        """Time of the published layout over that of the best one like it, both as expected."""
        return self._over(None if self.plan is None else self.plan.like_published)

    def _over(self, best: Candidate | None) -> float | None:
        expected = self.found.step.expected
        if best is None or best.step.expected is None or expected is None:
            return None
        return float((expected / best.time).m_as(""))


@cache
def planned(
    model: str, machine: str, devices: int, batch: int, length: int, dtype: str, software: str
) -> TrainingPlan | None:
    """The search for a row's model, devices and batch, on all of their memory; None for none."""
    try:
        return plan_training(
            _models()[model],
            machine,
            Training("1e12 token", batch, length, dtype=dtype),
            devices=devices,
            software=software or None,
            search=Search(usable=1.0),
        )
    except InputError:
        return None


@cache
def _models() -> dict[str, Transformer]:
    return {f"{run.model.name} {run.model.context}": run.model for run in published_layouts()}


def held(layout: PublishedLayout) -> Held:
    """One row, with its search."""
    comparison = published.predict(layout.row)
    error = comparison.error
    plan = planned(
        f"{layout.model.name} {layout.model.context}",
        layout.job.machine.key,
        int(layout.layout.devices),
        layout.batch,
        layout.microbatch.length,
        layout.job.formats.dtype,
        layout.job.software.key,
    )
    return Held(layout, None if error is None else 1 + error, comparison.share_of_bound, plan)


def line(run: Held) -> tuple[str, ...]:
    """Return the cells that are printed of a row."""

    def number(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    return (
        run.found.row.id,
        str(run.found.row["parallelism"])[:28],
        "yes" if run.fits else str(run.found.memory.total.to("GB")),
        number(run.measured),
        number(run.share_of_bound),
        "–" if run.plan is None else str(run.plan.best),
        number(run.over_best),
        number(run.over_like),
    )


def summary(rows: list[Held]) -> Iterator[str]:
    """The figures that the planner is held to."""
    expected = [run.measured for run in rows if run.measured is not None]
    near = sum(abs(ratio - 1) <= NEAR for ratio in expected)
    above = [run for run in rows if (run.share_of_bound or 0) > 1.005]
    fit = [run for run in rows if run.fits]
    compared = [run for run in fit if run.over_best is not None]
    slower = [run for run in compared if (run.over_best or 0) < 0.995]
    legal = sum(bool(run.found.layout.legal(run.found.model)) for run in rows)
    yield f"{legal} of {len(rows)} published layouts are legal, and {len(fit)} fit."
    yield f"{near} of {len(expected)} rows are within {NEAR:.0%} of what is expected of them."
    yield f"{len(above)} rows are above the bound."
    yield f"The search's best is slower than {len(slower)} of {len(compared)} that can be compared."
    ratios = [run.over_best or 0 for run in compared]
    if ratios:
        yield (
            f"The published layout takes {median(ratios):.2f} times as long as the best in the"
            f" median, {min(ratios):.3f} at least and {max(ratios):.2f} at most."
        )
    alike = [run.over_like for run in compared if run.over_like is not None]
    if alike:
        yield f"Beside the best layout like published ones it is {median(alike):.2f}."


def main() -> None:
    named = sys.argv[1:]
    wanted = [run for run in published_layouts() if not named or run.job.software.key in named]
    rows = []
    with ProgressBar(len(wanted), "searching") as bar:
        for run in wanted:
            rows.append(held(run))
            bar.advance(run.row.id)
    print("\n".join([*columns([HEADING, *map(line, rows)]), "", *summary(rows)]))


if __name__ == "__main__":
    main()
