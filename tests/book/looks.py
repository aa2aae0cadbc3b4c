"""Figures look as they were looked at: each word, box and arrow, on a page and on a phone.

What calc gives along an axis, and numbers in words, are left out, since `tests/figures.toml` and
alt texts hold these: a look is what the author of a figure chose. `python -m tests.book.looks NAME`
writes it into `tests/looks.toml`, once the figure has been looked at.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator

from tests.book.drawings import Given, Scale, drawn, scales

FILE = Path(__file__).parents[1] / "looks.toml"
KINDS = ("axes", "lines", "areas", "words")
PHONE = (3.6, 3.0)  # inches
SETTERS = (
    *("alpha", "zorder", "clip_on", "visible", "color", "facecolor", "edgecolor", "linewidth"),
    *("linestyle", "marker", "markersize", "markerfacecolor", "markeredgecolor"),
    *("markeredgewidth", "drawstyle", "hatch", "fontsize", "fontweight", "fontstyle", "ha", "va"),
    *("rotation", "sizes"),
)


def looks(name: str) -> dict[str, str]:
    """Return a digest of each kind of thing that is drawn, wide and narrow."""
    module = importlib.import_module(f"figures.{name}")
    described_as = {}
    for page, size in (("wide", None), ("narrow", PHONE)):
        with matplotlib.rc_context({} if size is None else {"figure.figsize": size}):
            figure, computed = drawn(module)
        described: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for kind, words in _described(figure, computed):
            described[kind].append(json.dumps(_plain(words), ensure_ascii=False))
        digests = (hashlib.sha256("\n".join(sorted(described[kind])).encode()) for kind in KINDS)
        described_as[page] = " ".join(digest.hexdigest()[:8] for digest in digests)
    return described_as


def differences(name: str, recorded: dict[str, str]) -> list[str]:
    """Say what of a figure looks otherwise than it was recorded."""
    meant = f"once you have looked at it, `python -m tests.book.looks {name}` says that it is meant"
    if not recorded:
        return [f"tests/looks.toml has no look of figures/{name}.py; {meant}"]
    return [
        f"figures/{name}.py draws other {kind} on a {page} page than tests/looks.toml has; {meant}"
        for page, digests in looks(name).items()
        for kind, here, there in zip(KINDS, digests.split(), recorded[page].split(), strict=True)
        if here != there
    ]


def recorded() -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return table


def _described(figure: Figure, computed: Given) -> Iterator[tuple[str, list[Any]]]:
    layout = figure.get_layout_engine()
    yield "axes", ["figure", *figure.get_size_inches(), layout.get() if layout else ""]
    axis_scales = {(scale.panel, scale.axis): scale for scale in scales(figure)}
    for text in figure.texts:
        yield "words", _of_text(text, text.get_position())
    for legend in figure.legends:
        yield "words", ["legend", *_of_legend(legend)]
    for panel, axes in enumerate(figure.axes):
        along = _Along(computed, axis_scales[panel, "x"], axis_scales[panel, "y"])
        yield "axes", [panel, *_of_axes(axes, along)]
        for line in axes.lines:
            yield (
                "lines",
                [
                    panel,
                    *_shown(line),
                    along(
                        numpy.transpose([numpy.asarray(data, float) for data in line.get_data()])
                    ),
                ],
            )
        for patch in axes.patches:
            yield "areas", [panel, type(patch).__name__, *_shown(patch), *_of_patch(patch, along)]
        for collection in axes.collections:
            yield "areas", [panel, *_shown(collection), *_of_collection(collection, along)]
        for text in axes.texts:
            if isinstance(text, Annotation):
                placing: Any = [text.xy, text.xycoords, text.xyann, text.anncoords]
            else:
                placing = [text.get_position(), text.get_transform() == axes.transData]
            yield "words", [panel, *_of_text(text, placing)]
        if panel_legend := axes.get_legend():
            yield "words", [panel, "legend", *_of_legend(panel_legend)]


class _Along:
    """Places on both axes of a panel; those that calc gave are left to calc."""

    def __init__(self, computed: Given, *both: Scale) -> None:
        self.computed, self.both = computed, both

    def __call__(self, points: Any) -> list[Any]:
        if not len(points):
            return [[], []]
        described_as: list[Any] = []
        for scale, values in zip(self.both, numpy.transpose(points), strict=True):
            numbers = [float(value) for value in numpy.ravel(values)]
            by_calc = scale.is_shown and any(numbers) and self.computed.hold(numbers, scale)
            described_as.append("calc's" if by_calc else numbers)
        return described_as


def _shown(artist: Artist) -> Iterator[Any]:
    """Yield what an artist was told of its look."""
    for name in SETTERS:
        if get := getattr(artist, f"get_{name}", None):
            yield [name, get()]
    if isinstance(artist, Line2D):
        yield artist._unscaled_dash_pattern  # type: ignore[attr-defined]


def _of_patch(patch: Patch, along: _Along) -> list[Any]:
    if isinstance(patch, FancyArrowPatch):
        ends = along(patch._posA_posB)  # type: ignore[attr-defined]
        return [*ends, _of_arrow(patch)]
    if isinstance(patch, Rectangle):
        x, y = patch.get_xy()
        return along([(x, y), (x + patch.get_width(), y + patch.get_height())])
    return along(patch.get_patch_transform().transform(patch.get_path().vertices))


def _of_arrow(arrow: FancyArrowPatch) -> list[Any]:
    head = arrow.get_arrowstyle()
    bend = arrow.get_connectionstyle()
    kinds = [type(each).__name__ for each in (head, bend)]
    sizes = [arrow.get_mutation_scale(), arrow.shrinkA, arrow.shrinkB]
    return [*kinds, vars(head), vars(bend), *sizes, *_shown(arrow)]


def _of_collection(collection: Collection, along: _Along) -> Iterator[Any]:
    yield along(collection.get_offsets())
    yield from (along(path.vertices) for path in collection.get_paths()[:200])


def _of_text(text: Text, placing: Any) -> list[Any]:
    box, arrow = text.get_bbox_patch(), getattr(text, "arrow_patch", None)
    return [
        _worded(text.get_text()),
        placing,
        *_shown(text),
        text._linespacing,  # type: ignore[attr-defined]
        [*_shown(box)] if box else "",
        _of_arrow(arrow) if arrow else "",
    ]


def _worded(text: str) -> str:
    """Words with # for each digit."""
    return re.sub(r"\d", "#", " ".join(text.split()))


def _of_legend(legend: Any) -> list[Any]:
    sizes = [legend.columnspacing, legend.handlelength, legend.labelspacing]
    return [legend._ncols, str(legend._loc), legend.prop.get_size(), *sizes]


def _of_axes(axes: Axes, along: _Along) -> Iterator[Any]:
    if spec := axes.get_subplotspec():
        grid = spec.get_gridspec()
        yield [spec.get_geometry(), grid.get_width_ratios(), grid.get_height_ratios()]
    titles = [_worded(axes.get_title(position)) for position in ("left", "center", "right")]
    yield [axes.axison, axes.get_aspect(), titles, axes.get_axisbelow()]
    limits = [[*map(float, ends)] for ends in (axes.get_xlim(), axes.get_ylim())]
    for axis, limit, is_free in zip(
        (axes.xaxis, axes.yaxis),
        limits,  # which an author chose where they are of two digits, whatever calc gives too
        (axes.get_autoscalex_on(), axes.get_autoscaley_on()),
        strict=True,
    ):
        chosen = limit if all(float(f"{end:.2g}") == end for end in limit) else "calc's"
        yield [axis.get_scale(), "" if is_free else chosen, axis.labelpad, axis.get_visible()]
        yield [axis.get_tick_params(which=which) for which in ("major", "minor")]
        if isinstance(locator := axis.get_major_locator(), FixedLocator):
            yield along([(position, position) for position in vars(locator)["locs"]])[
                axis is axes.yaxis
            ]
        else:
            yield [type(locator).__name__, getattr(locator, "_base", "")]  # a power of ten, or two
    for side in axes.spines.values():
        yield [side.get_visible(), side.get_bounds(), *_shown(side)]


def _plain(value: Any) -> Any:
    """Return the same in what JSON has; a number has six digits, so that all computers agree."""
    match value:
        case numpy.ndarray() | numpy.generic():
            return _plain(value.tolist())
        case dict():
            return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
        case list() | tuple():
            return [_plain(part) for part in value]
        case bool() | str() | None:
            return value
        case int() | float():
            return f"{round(value, 9) + 0.0:.6g}"
        case _:
            return type(value).__name__


def write(names: Sequence[str]) -> None:
    """Write how these figures look now, and the others as they stand in the file."""
    from tests.book.test_drawings import READINGS

    if strangers := [name for name in names if name not in READINGS]:
        raise SystemExit(f"write what {', '.join(strangers)} draws into tests/figures.toml first")
    recorded = tomllib.loads(FILE.read_text(encoding="utf-8"))
    lines = []
    for name in READINGS:
        look = recorded[name] if name in recorded and name not in names else looks(name)
        lines.append(f'{name} = {{ wide = "{look["wide"]}", narrow = "{look["narrow"]}" }}')
    title = f"# What tests/book/looks.py says of each figure: its {', '.join(KINDS)}."
    FILE.write_text("\n".join([title, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
