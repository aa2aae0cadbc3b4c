"""Accuracy of every fine-tuned variant against its memory, and the front with error bars."""

from __future__ import annotations

from matplotlib.figure import Figure
from polars import col

from calc import formats
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.digits_sweep import FRONT, TUNED, AcceptedSets
from figures import style

MARKS = {
    "none": ("D", style.INK, "not pruned"),
    "unstructured": ("o", style.BLUE, "weights pruned"),
    "2:4": ("s", style.GREEN, "2:4"),
    "structured": ("^", style.ORANGE, "neurons pruned"),
}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=4.4)
    axes = figure.subplots()
    for budget in AcceptedSets.budgets:
        kilobytes = budget.m_as("kB")
        axes.axvline(kilobytes, color=style.INK, alpha=0.3, linewidth=0.8, linestyle=(0, (4, 3)))
        style.note(axes, kilobytes, 94.6, f"{budget}", rotation=90, ha="right", va="bottom")
    front = FRONT.sort("memory_bytes")
    axes.step(
        [*(front["memory_bytes"] / 1e3), max(TUNED["memory_dense_bytes"].to_list()) / 1e3],
        [*(100 * front["accuracy"]), 100 * front["accuracy"][-1]],
        where="post",
        color=style.INK,
        linewidth=1.2,
        alpha=0.6,
        zorder=1,
    )
    for kind, (mark, colour, _) in MARKS.items():
        rows = TUNED.filter(col("kind") == kind)
        axes.plot(
            (rows["memory_bytes"] / 1e3).to_list(),
            (100 * rows["accuracy"]).to_list(),
            mark,
            color=colour,
            markersize=4,
            alpha=0.4,
        )
        mine = front.filter(col("kind") == kind)
        axes.errorbar(
            (mine["memory_bytes"] / 1e3).to_list(),
            (100 * mine["accuracy"]).to_list(),
            (100 * mine["accuracy_std"]).to_list(),
            fmt=mark,
            color=colour,
            markersize=7,
            elinewidth=1.2,
            zorder=3,
        )
    names = [(label, colour) for _, colour, label in MARKS.values()]
    style.key(axes, names, (0.03, 0.97), 0.055)
    style.log_axis(axes, "x", "Memory, kB (logarithmic)")
    axes.set_ylabel("Test accuracy")
    axes.set_ylim(94.5, 99.8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    return figure


def alt() -> str:
    points = (
        f"{row['accuracy']:.1%} at {show(row['memory_bytes'] / 1e3, digits=2)} kB "
        f"({MARKS[row['kind']][2]})"
        for row in FRONT.sort("memory_bytes").iter_rows(named=True)
    )
    least, most = (min(FRONT["memory_bytes"].to_list()), max(TUNED["memory_dense_bytes"].to_list()))
    return f"""Test accuracy against memory on a logarithmic axis, from
    {show(least / 1e3, digits=2)} to {show(most / 1e3, digits=2)} kB, with dashed lines at budgets
    of {listed(map(show, AcceptedSets.budgets))}. The front rises in small steps, with error bars:
    {"; ".join(points)}. Its points are all in
    {listed(formats.get(name).name for name in FRONT["precision"].unique())}; no other variant of
    {len(TUNED)} is better by more than its spread than a smaller one on it."""
