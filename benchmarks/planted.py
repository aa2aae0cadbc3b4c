"""Wrong words under figures and tables, and wrong drawings: plants them, and says what is told.

    python -m benchmarks.planted --of words --number 40 --seed 3
    python -m benchmarks.planted --of drawings --number 20 --seed 3

A number or a comparing word is changed in a caption, an alt text (in `alt()` and in its chapter
alike) or a takeaway; or a figure, once drawn, gets another value, unit, scale, series or label.
All is done in memory, and what the tests of the first tier ask is asked of it.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from press.audit import allowed_words, typed_numbers
from tests.book import drawings
from tests.book.rendered import REPOSITORY
from tests.book.test_drawings import READINGS, problems, told
from tools.ledger.comparisons import uncompared
from tools.ledger.faults import unsaid
from tools.ledger.numbers import Number, numbers
from tools.ledger.quotes import INLINE
from tools.ledger.statements import Statement, statements

OPPOSITES = {
    "rises": "falls",
    "rise": "fall",
    "above": "below",
    "more": "fewer",
    "less": "more",
    "larger": "smaller",
    "longer": "shorter",
    "faster": "slower",
    "higher": "lower",
    "highest": "lowest",
    "largest": "smallest",
    "most": "least",
    "best": "worst",
    "all": "none",
    "every": "no",
    "both": "neither",
    "each": "no",
    "nothing": "everything",
    "twice": "half",
    "half": "twice",
    "several": "two",
    "tens": "hundreds",
    "near": "far from",
    "compute-bound": "memory-bound",
    "memory-bound": "compute-bound",
    "first": "last",
    "grows": "shrinks",
    "cheaper": "dearer",
    "narrow": "wide",
    "few": "many",
    "left": "right",
    "upper": "lower",
    "before": "after",
    "inside": "outside",
    "with": "without",
    "earlier": "later",
    "fastest": "slowest",
    "longest": "shortest",
    "always": "never",
    "once": "twice",
    "decode": "prefill",
    "measured": "expected",
    "training": "serving",
    "weights": "caches",
    "latency": "bandwidth",
    "up": "down",
    "far": "little",
    "under": "over",
    "nearly": "hardly",
    "many": "few",
}
OPPOSITES |= {new: old for old, new in OPPOSITES.items() if " " not in new and new not in OPPOSITES}
WORD = re.compile(rf"(?<![\w{{.-])(?:{'|'.join(OPPOSITES)})(?![\w}}-])")
PROSE = re.compile(r"`[^`]*`|\[[^][]*@[^][]*\]|\([^()]*qmd[^()]*\)|@[\w-]+|\$[^$]*\$")


def changed_words(statement: Statement) -> Iterator[str]:
    """Yield the text with a word or a number changed, or with two quoted values exchanged."""
    text = statement.source
    kept = PROSE.sub(lambda match: "\0" * len(match[0]), text)
    for match in WORD.finditer(kept):
        yield text[: match.start()] + OPPOSITES[match[0]] + text[match.end() :]
    for number in numbers(kept):
        yield text[: number.start] + _other(number) + text[number.start + len(number.digits) :]
    quoted = [match.span(1) for match in INLINE.finditer(text)]
    for (start, end), (other, last) in pairwise(quoted):
        if text[start:end] != text[other:last]:
            middle = text[end:other]
            yield text[:start] + text[other:last] + middle + text[start:end] + text[last:]


def _other(number: Number) -> str:
    value = number.value + max(number.step, round(number.value / 4 / number.step) * number.step)
    return f"{value:.10g}"


def told_by(statement: Statement, text: str) -> str:
    """Return what tells of a statement that says this instead, "" if nothing does."""
    changed = replace(statement, source=text)
    others = [changed if other == statement else other for other in statements()]
    if any(unsaid(others)):
        return "a claim"
    if statement.kind == "alt text":
        drawn, words = drawings.drawing(statement.figure), told(statement.figure)
        if problems(statement.figure, drawn, changed.text, words.get("caption", "")):
            return "the drawing"
    else:
        allowed = allowed_words(REPOSITORY)
        before, after = (PROSE.sub("", source) for source in (statement.source, text))
        if len([*typed_numbers(after, allowed)]) > len([*typed_numbers(before, allowed)]):
            return "press audit"
    return "the list of comparisons" if any(uncompared(others)) else ""


def wrong_drawings(
    figure: Figure, chance: random.Random
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield ways to draw a figure wrong, each with what does it."""
    first = [axes.lines[0] for axes in figure.axes if axes.lines]
    for one, two in pairwise(first):
        if any(
            numpy.shape(a) != numpy.shape(b) or (a != b).any()
            for a, b in zip(
                *([numpy.asarray(data, float) for data in line.get_data()] for line in (one, two)),
                strict=True,
            )
        ):
            yield "another panel's values", partial(_swap, one, two)
    for axes in figure.axes:
        for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            if axis.get_scale() == "log":
                yield "a log axis gone", partial(scale, "linear")
            label = axis.get_label_text()
            for unit, other in (("ms", "s"), ("GB", "GiB"), ("kB", "MB"), ("TFLOP/s", "GFLOP/s")):
                if label.endswith(f"({unit})"):
                    wrong = label.replace(f"({unit})", f"({other})")
                    yield "another unit", partial(axis.set_label_text, wrong)
        texts = [text for text in axes.texts if text.get_text().strip()]
        others = [(a, b) for a in texts for b in texts if a.get_text() != b.get_text()]
        for a, b in chance.sample(others, min(4, len(others))):
            yield "two labels exchanged", partial(_exchange, a, b)
        bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        for bar in bars if len(bars) > 1 else []:
            yield "a bar left out", bar.remove
        at = _measured(axes)
        if at is None:
            continue
        lines = [line for line in axes.lines if line.get_transform() == axes.transData]
        for line in lines:
            for name, factor in (
                ("off by 10^6", 1e6),
                ("kB as KiB", 1.024),
                ("off by a tenth", 1.1),
            ):
                yield name, partial(_scale, line, at, factor)
        pairs = [(a, b) for a in lines for b in lines if a.get_color() != b.get_color()]
        for one, two in chance.sample(pairs, min(2, len(pairs))):
            yield "two series swapped", partial(_swap, one, two)
        for line in lines if len(lines) > 1 else []:
            yield "a line left out", line.remove
        for bar in bars:
            yield "a bar's value changed", partial(_lengthen, bar, at)


def _measured(axes: Axes) -> int | None:
    """Return the axis of a panel's values, y before x: the one with numbers and a label."""
    for at, axis in ((1, axes.yaxis), (0, axes.xaxis)):
        words = axis.get_major_formatter().format_ticks([*axis.get_majorticklocs()])
        if axes.axison and drawings.label(axis) and any(re.search(r"\d", word) for word in words):
            return at
    return None


def _scale(line: Line2D, at: int, factor: float) -> None:
    x, y = (numpy.asarray(data, float) for data in line.get_data())
    line.set_data(x if at else factor * x, factor * y if at else y)


def _swap(one: Line2D, two: Line2D) -> None:
    first, second = one.get_data(), two.get_data()
    one.set_data(*second)
    two.set_data(*first)


def _exchange(one: Text, two: Text) -> None:
    first, second = one.get_text(), two.get_text()
    one.set_text(second)
    two.set_text(first)


def _lengthen(bar: Rectangle, at: int) -> None:
    if at:
        bar.set_height(1.15 * bar.get_height())
    else:
        bar.set_width(1.15 * bar.get_width())


Planted = Iterator[tuple[str, str, str]]  # the kind of fault, the fault, and what told of it


def planted_words(number: int, chance: random.Random) -> Planted:
    kinds: dict[str, list[Statement]] = {}
    for statement in statements():
        kinds.setdefault(statement.kind, []).append(statement)
    while number:
        statement = chance.choice(kinds[chance.choice([*kinds])])
        texts = list(changed_words(statement))
        if texts:
            text = chance.choice(texts)
            number -= 1
            what = f"{statement.place}: {_shown(statement.source, text)}"
            yield statement.kind, what, told_by(statement, text)


def _shown(old: str, new: str) -> str:
    start = next(n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    return f"… {old[max(0, start - 30) : start + 30]!r} → {new[max(0, start - 5) : start + 25]!r}"


def planted_drawings(number: int, chance: random.Random) -> Planted:
    while number:
        name = chance.choice([*READINGS])
        figure, computed = drawings.drawn(importlib.import_module(f"figures.{name}"))
        ways = list(wrong_drawings(figure, chance))
        if ways:
            kind = chance.choice(sorted({kind for kind, _ in ways}))
            chance.choice([act for way, act in ways if way == kind])()
            words = told(name)
            faults = problems(
                name, drawings.of(figure, computed), words["alt text"], words.get("caption", "")
            )
            number -= 1
            yield kind, name, "the drawing" if faults else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--of", choices=("words", "drawings"), default="words")
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    plant = planted_words if asked.of == "words" else planted_drawings
    counts: dict[str, Counter[str]] = {}
    for kind, what, told_of in plant(asked.number, random.Random(asked.seed)):
        counts.setdefault(kind, Counter())[told_of] += 1
        print(f"{f'told by {told_of}' if told_of else 'NOT NOTICED'}: {kind}: {what}", flush=True)
    for kind, by in sorted(counts.items()):
        told_in_all = by.total() - by[""]
        parts = ", ".join(f"{number} by {what}" for what, number in by.most_common() if what)
        print(f"{kind}: {told_in_all} of {by.total()} noticed ({parts})")


if __name__ == "__main__":
    main()
