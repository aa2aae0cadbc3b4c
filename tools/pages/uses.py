"""Uses of a device, a machine or a model: the chapters whose prose or derivations name it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from tools.pages import ROOT
from tools.pages.answers import TITLE, chapters

if TYPE_CHECKING:
    from calc.derivations.places import Thing

IMPORTED = re.compile(r"^from calc\.derivations\.(\w+) import", re.MULTILINE)
KEYS = re.compile(r'"([a-z][a-z0-9-]+)"|\b(?:hardware|machines|models)\.([A-Z][A-Z0-9_]+)\b')
WORD = re.compile(r"\w+")
MOST = 8  # chapters that a page names


def links(thing: Thing) -> list[str]:
    """Links to the chapters that name it most, in the order of the book, and how many others do."""
    counts = _counts(thing.name, thing.key)
    using = [link for link, count in counts.items() if count]
    chosen = sorted(using, key=lambda link: -counts[link])[:MOST]
    others = len(using) - len(chosen)
    more = [f"and {others} other {'chapters' if others > 1 else 'chapter'}"] if others else []
    return [link for link in using if link in chosen] + more


def count(thing: Thing) -> int:
    """Return how often chapters name a thing."""
    return sum(_counts(thing.name, thing.key).values())


def counts(names: Iterable[tuple[str, str]]) -> list[dict[str, int]]:
    """Return the counts by chapter of things with these names and keys."""
    return [_counts(name, key) for name, key in names]


@cache
def _counts(name: str, key: str) -> dict[str, int]:
    """Return how often each chapter names a thing, by a link to the chapter."""
    plain = re.escape(name)  # first, since what comes first is searched for fastest
    whole = re.compile(rf"{plain}(?<![\w-]{plain})(?![\w-]|\.\d)")
    words = {*WORD.findall(name)}
    return {
        link: keys[key] + (len(whole.findall(text)) if words <= said else 0)
        for link, text, keys, said in _chapters()
    }


@cache
def _chapters() -> tuple[tuple[str, str, Counter[str], set[str]], ...]:
    """Return a link, the text, the keys and the words of each chapter."""
    return tuple(_read())


def _read() -> Iterator[tuple[str, str, Counter[str], set[str]]]:
    for path in chapters():
        text = path.read_text(encoding="utf-8")
        title = TITLE.search(text)
        assert title, f"{path.name} has a title without a label"
        for module in IMPORTED.findall(text):
            text += (ROOT / f"calc/derivations/{module}.py").read_text(encoding="utf-8")
        keys = Counter(
            quoted or name.lower().replace("_", "-") for quoted, name in KEYS.findall(text)
        )
        yield f"[{title[1]}](../../chapters/{path.name})", text, keys, {*WORD.findall(text)}
