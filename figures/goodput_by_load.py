"""Requests that keep both limits against those that come: two pools beside replicas that do all."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.service_under_load import AskedService, GoodputByLoad, KeptWithPools
from figures import style

CURVES = (
    ("two pools", (32.6, 3.5), style.BLUE, GoodputByLoad.pools),
    ("replicas", (32.6, 13.0), style.ORANGE, GoodputByLoad.replicas),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=3.6)
    axes = figure.subplots()
    rates = GoodputByLoad.rates
    all_of_them = rates[0], rates[-1]
    axes.plot(all_of_them, all_of_them, color=style.INK, linewidth=0.8, linestyle=(0, (2, 2)))
    for words, spot, color, loads in CURVES:
        axes.plot(rates, [load["closed_form"] for load in loads], color=color, linewidth=1.8)
        axes.plot(rates, [load["simulated"] for load in loads], "o", color=color, markersize=4)
        axes.text(*spot, words, color=color, ha="right", va="bottom", weight="bold")
    style.note(axes, 12.3, 27.0, "all of them: dotted", color=style.INK)
    rate = AskedService.rate.m_as("request/s")
    axes.axvline(rate, color=style.INK, alpha=0.35, linewidth=0.8)
    style.note(axes, rate - 0.4, 0.4, "asked for", ha="right", color=style.INK)
    axes.set_xlim(rates[0], rates[-1])
    axes.set_xticks(range(rates[0], rates[-1] + 1, 4))
    axes.set_ylim(0, 32)
    axes.set_xlabel("Load (requests/s)")
    axes.set_ylabel("Goodput (requests/s)")
    return figure


def alt() -> str:
    best = (
        max(loads, key=lambda load: load["simulated"])
        for loads in (GoodputByLoad.pools, GoodputByLoad.replicas)
    )
    two, one = (f"{show(load['simulated'], digits=3)} at a load of {load['rate']}" for load in best)
    return f"""Goodput, the requests a second that keep both limits, against the load, two curves
    with dots on them. Both follow the diagonal at first. Replicas that prefill and decode reach
    {one}, two pools on fewer GPUs {two}; beyond, both fall to nothing. As replicas fall, dots of
    the simulation last longer than the curve of the closed form. Of {show(AskedService.rate)}
    replicas keep {show(KeptWithPools.mixed, digits=3)} and pools
    {show(KeptWithPools.apart, digits=3)}."""
