"""Which chapters use a device, a machine or a model: whose prose or derivations name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from calc.derivations.places import Thing
from tools.pages import ROOT
from tools.pages.answers import TITLE, chapters

IMPORTED = re.compile(r"^from calc\.derivations\.(\w+) import", re.MULTILINE)
KEYS = re.compile(r'"([a-z][a-z0-9-]+)"|\b(?:hardware|machines|models)\.([A-Z][A-Z0-9_]+)\b')


def links(thing: Thing) -> list[str]:
    """Links to these chapters, in the order of the book."""
    name = re.compile(rf"(?<![\w-]){re.escape(thing.name)}(?![\w-]|\.\d)")
    return [link for link, text, keys in _chapters() if thing.key in keys or name.search(text)]


@cache
def _chapters() -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Of each chapter a link, what it is written in, and the keys in that."""
    return tuple(_read())


def _read() -> Iterator[tuple[str, str, frozenset[str]]]:
    for path in chapters():
        text = path.read_text(encoding="utf-8")
        title = TITLE.search(text)
        assert title, f"{path.name} has a title without a label"
        for module in IMPORTED.findall(text):
            text += (ROOT / f"calc/derivations/{module}.py").read_text(encoding="utf-8")
        keys = {quoted or name.lower().replace("_", "-") for quoted, name in KEYS.findall(text)}
        yield f"[{title[1]}](../../chapters/{path.name})", text, frozenset(keys)
