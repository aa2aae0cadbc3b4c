"""Dashboard of a run's use of its device, from its log: a page of HTML, or lines of text.

The page holds all that it shows: four drawings on the book's paper, in light and dark, as wide as
the screen that it is read on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from calc.codesign.run_log import LoggedRun
from calc.core.files import writable, write_text
from calc.core.units import quantity
from calc.laws.roofline import attainable, bound, ridge_point

# What can happen in a step, the form of its mark, and how the caption says that form.
EVENTS = {
    "overflow": ("l-4 -8 h8 z", "a triangle"),
    "out of memory": ("m-3.5 -7 h7 v7 h-7 z", "a square"),
}
BARS = "▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 400, 230
LEFT, RIGHT, TOP, BOTTOM = 86, 388, 14, 192  # of the plot in a drawing

STYLE = """
:root { color-scheme: light dark; --paper: light-dark(#fefdfb, #15171a);
  --ink: light-dark(#1f2328, #dcdee1); --ink-quiet: light-dark(#5b5f66, #a0a5ac);
  --rule: light-dark(#e4e0d7, #30343a); --rubric: light-dark(#9c3a1f, #ef9472);
  --data: #307ec2; --trouble: #c85943; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 3rem 1.25rem; background: var(--paper);
  color: var(--ink); font: 400 1.0625rem/1.62 Inter, system-ui, sans-serif; }
h1 { margin: 0; font-size: 2.25rem; line-height: 1.12; letter-spacing: -0.01em; }
p { max-width: 35rem; } .quiet { color: var(--ink-quiet); margin-top: 0.5rem; }
table { border-collapse: collapse; border-block: 1.5px solid var(--ink); font-size: 0.9375rem;
  font-variant-numeric: tabular-nums lining-nums; }
td, th { padding: 0.3rem 1rem 0.3rem 0; vertical-align: baseline;
  text-align: left; font-weight: 400; }
tr + tr > * { border-top: 1px solid var(--rule); } td { font-weight: 600; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr));
  gap: 0.5rem 2rem; margin-top: 1.5rem; }
figure { margin: 1rem 0; } figcaption { color: var(--ink-quiet); font-size: 0.875rem; }
svg { display: block; width: 100%; height: auto; font: 12px Inter, system-ui, sans-serif; }
text { fill: var(--ink); } .axis { stroke: var(--ink); stroke-width: 1; }
.grid { stroke: var(--rule); stroke-width: 1; } .roof { stroke: var(--ink); stroke-width: 1.75; }
.line { stroke: var(--data); stroke-width: 1.75; } polyline, .axis { fill: none; }
circle { fill: var(--data); } .event { fill: var(--trouble); }
"""


def write_dashboard(run: LoggedRun, path: Path | str) -> None:
    """The page as a file, which is there in full or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> from calc.codesign import read_run
    >>> from calc.core.records import DATA
    >>> run = read_run(DATA / "measured" / "training_run.jsonl")
    >>> with TemporaryDirectory() as folder:
    ...     write_dashboard(run, f"{folder}/run.html")
    ...     [path.name for path in Path(folder).iterdir()]
    ['run.html']
    """
    write_text(writable(path), dashboard_page(run))


def dashboard_text(run: LoggedRun, width: int = 60) -> list[str]:
    """Lines for a terminal: the numbers, and four rows of bars over the steps.

    >>> from calc.codesign import read_run
    >>> from calc.core.records import DATA
    >>> run = read_run(DATA / "measured" / "training_run.jsonl")
    >>> print(dashboard_text(run)[0])
    A network on the digits, in FP16 and 1 MB for activations, on AMD EPYC, 1 thread, FP32 roof
    """
    rows = _numbers(run)
    for name, values, unit in _series(run):
        ends = f"{_words(min(values), unit)} to {_words(max(values), unit)}"
        rows.append((name, f"{_bars(values, width)}  {ends}"))
    first = max(len(name) for name, _ in rows)
    return [f"{run.title}, on {run.device}", *(f"{name:<{first}}  {value}" for name, value in rows)]


def dashboard_page(run: LoggedRun) -> str:
    """The page, as HTML, with its four drawings in it.

    >>> from calc.codesign import read_run
    >>> from calc.core.records import DATA
    >>> page = dashboard_page(read_run(DATA / "measured" / "training_run.jsonl"))
    >>> page[:15], page.count("<svg")
    ('<!doctype html>', 4)
    """
    numbers = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in _numbers(run)
    )
    drawings = [_roofline(run)]
    drawings += [_over_steps(run, *series) for series in _series(run)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(run.title)}</title>\n<style>{STYLE}</style></head>\n<body>\n"
        f'<h1>{escape(run.title)}</h1>\n<p class="quiet">On {escape(run.device)}</p>\n'
        f"<table>{numbers}</table>\n<main>\n{''.join(drawings)}</main>\n</body></html>\n"
    )


def _numbers(run: LoggedRun) -> list[tuple[str, str]]:
    reachable = attainable(run.peak, run.bandwidth, run.intensity)
    side = bound(run.peak, run.bandwidth, run.intensity)
    return [
        ("steps", f"{len(run.steps)} in {quantity(run.seconds, 's')}"),
        ("loss, first and last", f"{run.steps[0].loss:.4g}, {run.steps[-1].loss:.4g}"),
        ("achieved", str(run.rate)),
        ("of the peak (MFU)", f"{run.mfu.m_as('%'):.3g}% of {run.peak}"),
        ("moved", str(run.traffic_rate)),
        ("intensity", f"{run.intensity}: {side}-bound, at most {reachable} if nothing is cached"),
        ("kept for backward, at most", str(quantity(max(s.memory for s in run.steps), "byte"))),
        *(
            (kind, f"{len(run.events(kind))} times, in {len(set(run.events(kind)))} steps")
            for kind in EVENTS
        ),
    ]


def _series(run: LoggedRun) -> list[tuple[str, list[float], str]]:
    return [
        ("achieved", run.rates, "FLOP/s"),
        ("memory", [float(step.memory) for step in run.steps], "byte"),
        ("loss", [step.loss for step in run.steps], ""),
    ]


def _bars(values: Sequence[float], width: int) -> str:
    """A bar for each step, or for the largest of a few neighbours where there are too many."""
    group = -(-len(values) // width)
    tops = [max(values[at : at + group]) for at in range(0, len(values), group)]
    largest = max(tops) or 1.0
    return "".join(BARS[round((len(BARS) - 1) * max(top, 0.0) / largest)] for top in tops)


def _words(value: float, unit: str) -> str:
    return f"{value:.4g}" if not unit else str(quantity(float(f"{value:.3g}"), unit))


def _over_steps(run: LoggedRun, name: str, values: list[float], unit: str) -> str:
    """A quantity over the steps, from zero or below, with a mark where something went wrong."""
    last, top = max(run.steps[-1].number, 2), max(0.0, *values) * 1.08 or 1.0
    x = _scale(run.steps[0].number, last, LEFT, RIGHT)
    y = _scale(min(0.0, *values), top, BOTTOM, TOP)
    points = " ".join(
        f"{x(step.number):.1f},{y(value):.1f}"
        for step, value in zip(run.steps, values, strict=True)
    )
    happened = {kind: sorted(set(run.events(kind))) for kind in EVENTS if run.events(kind)}
    marks = "".join(
        f'<path class="event" d="M{x(number):.1f} {BOTTOM - 1} {EVENTS[kind][0]}">'
        f"<title>{kind} in step {number}</title></path>"
        for kind, numbers in happened.items()
        for number in numbers
    )
    grid = "".join(_line(y(at), _words(at, unit)) for at in _round_steps(top))
    ends = "".join(
        f'<text x="{x(at):.1f}" y="{BOTTOM + 16}" text-anchor="{anchor}">{at}</text>'
        for at, anchor in ((run.steps[0].number, "start"), (last, "end"))
    )
    words = [f"{EVENTS[kind][1]} marks one with {kind}" for kind in happened]
    caption = f"{'; '.join([f'{name.capitalize()} in each step', *words])}."
    return _figure(
        f'{grid}{_frame("step")}{ends}<polyline class="line" points="{points}"/>{marks}', caption
    )


def _roofline(run: LoggedRun) -> str:
    """Return a drawing of the steps under the device's roof; both axes are logarithmic."""
    ridge = ridge_point(run.peak, run.bandwidth).m_as("FLOP/byte")
    peak = run.peak.m_as("FLOP/s")
    slope = run.bandwidth.m_as("byte/s")
    points = [(s.flop / s.traffic, s.flop / s.seconds) for s in run.steps if s.flop and s.traffic]
    low = math.floor(math.log10(min([ridge, *(at for at, _ in points)]))) - 0.5
    high = math.ceil(math.log10(max([ridge, *(at for at, _ in points)]))) + 0.5
    bottom = math.floor(math.log10(min([peak / 100, *(rate for _, rate in points)])))
    x = _scale(low, high, LEFT, RIGHT)
    y = _scale(bottom, math.log10(peak) + 0.4, BOTTOM, TOP)
    start = max(low, bottom - math.log10(slope))
    corners = [(start, start + math.log10(slope)), (math.log10(ridge), math.log10(peak))]
    corners.append((high, math.log10(peak)))
    roof = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in corners)
    dots = "".join(
        f'<circle cx="{x(math.log10(a)):.1f}" cy="{y(math.log10(b)):.1f}" r="2.5" opacity="0.5"/>'
        for a, b in points
    )
    ticks = "".join(
        f'<text x="{x(at):.1f}" y="{BOTTOM + 16}" text-anchor="middle">{10.0**at:g}</text>'
        for at in range(math.ceil(low), math.floor(high) + 1)
    ) + "".join(
        _line(y(at), _words(10.0**at, "FLOP/s"))
        for at in range(bottom, math.floor(math.log10(peak) + 0.4) + 1)
    )
    top = f'<text x="{RIGHT}" y="{y(math.log10(peak)) - 6:.1f}" text-anchor="end">{run.peak}</text>'
    below = "under" if max(rate / min(peak, slope * at) for at, rate in points) <= 1 else "at"
    return _figure(
        f'{ticks}{_frame("FLOP/byte")}<polyline class="roof" points="{roof}"/>{top}{dots}',
        f"Each step {below} the roof of {run.device}: {run.peak} and {run.bandwidth}. Both axes are"
        f" logarithmic; bytes are counted as if nothing were cached.",
    )


def _line(at: float, label: str) -> str:
    return (
        f'<path class="grid" d="M{LEFT} {at:.1f} H{RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
    )


def _frame(label: str) -> str:
    return (
        f'<path class="axis" d="M{LEFT} {BOTTOM} H{RIGHT}"/>'
        f'<text x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>'
    )


def _figure(inside: str, caption: str) -> str:
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">'
        f"{inside}</svg><figcaption>{escape(caption)}</figcaption></figure>\n"
    )


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return the function that places a value between two ends of an axis."""
    return lambda value: start + (value - low) / ((high - low) or 1.0) * (end - start)


def _round_steps(top: float) -> list[float]:
    """Three to six round values from zero up to this one."""
    size: float = 10.0 ** math.floor(math.log10(top))
    step = next(size * part for part in (0.2, 0.5, 1, 2) if top / (size * part) <= 6)
    return [step * count for count in range(int(top / step) + 1)]
