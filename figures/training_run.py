"""A stored training run: its loss, its rate, and the steps in which something went wrong."""

from __future__ import annotations

from statistics import median

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.training_levers import RUN
from figures import style

MARKS = {"overflow": ("v", style.RED), "out of memory": ("s", style.ORANGE)}


def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=4.2)
    loss, rate = figure.subplots(2, 1, sharex=True)
    numbers = [step.number for step in RUN.steps]
    losses = [step.loss for step in RUN.steps]
    rates = [each / 1e9 for each in RUN.rates]
    loss.plot(numbers, losses, color=style.INK, linewidth=1.2)
    rate.plot(numbers, rates, color=style.INK, linewidth=1.2)
    for event, (marker, colour) in MARKS.items():
        at = [i for i, step in enumerate(RUN.steps) if event in step.events]
        for axes, values in ((loss, losses), (rate, rates)):
            axes.plot(
                [numbers[i] for i in at],
                [values[i] for i in at],
                marker,
                color=colour,
                markersize=7,
                mew=0,
                label=event,
            )
    loss.legend(frameon=False, fontsize=style.SMALL, ncols=1 if style.is_narrow() else 2)
    style.log_axis(loss, "y", "Loss")
    rate.set_ylabel("GFLOP/s")
    rate.set_ylim(0, 1.15 * max(rates))
    rate.set_xlabel("Step")
    return figure


def alt() -> str:
    first, *_, last = RUN.steps
    events = (f"{event} ({sum(event in step.events for step in RUN.steps)})" for event in MARKS)
    rates = [each / 1e9 for each in RUN.rates]
    marked = listed(
        show(rate, digits=2)
        for rate, step in zip(rates, RUN.steps, strict=True)
        if "out of memory" in step.events
    )
    return f"""Curves over the {len(RUN.steps)} steps of a run, with marks on its events:
    {listed(events)}. Above, on a logarithmic axis, the loss falls from {show(first.loss, digits=2)}
    to {show(last.loss, digits=1)}. Below, the rate is level at about
    {show(median(rates), digits=2)} GFLOP/s; in the steps that ran out of memory it is {marked}
    GFLOP/s."""
