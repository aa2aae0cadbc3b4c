"""Terms and names that the project explains: on each page the first of each has a card."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

PIECE = re.compile(r"(<[^>]*>)")
TAG = re.compile(r"</?([a-z][a-z0-9]*)")
LEFT_ALONE = {"a", "button", "code", "data", "h1", "h2", "h3", "h4", "h5", "h6", "math"}
LEFT_ALONE |= {"pre", "script", "style", "summary", "svg", "table"}


def with_cards(
    body: str, terms: Iterable[Mapping[str, str]]
) -> tuple[str, dict[str, dict[str, Any]]]:
    """A page's HTML with a mark at the first mention of each term, and what their cards say.

    A term in small letters is found at the beginning of a sentence too, and in the plural.
    """
    known = {each["title"]: each for each in terms}
    if not known:
        return body, {}
    either = "|".join(map(_pattern, sorted(known, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")
    cards: dict[str, dict[str, Any]] = {}

    def mark(found: re.Match[str]) -> str:
        title = next(each for each in known if re.fullmatch(_pattern(each), found[0]))
        key = f"term {title}"
        if key in cards:
            return found[0]
        each = known[title]
        cards[key] = {"value": title, "kind": "term", "note": each["text"], "row": each["href"]}
        return f'<span class="q" data-key="{key}">{found[0]}</span>'

    inside: list[str] = []
    pieces = PIECE.split(body)
    for place, piece in enumerate(pieces):
        if tag := TAG.match(piece):
            if tag[1] in LEFT_ALONE and not piece.endswith("/>"):
                if piece[1] != "/":
                    inside.append(tag[1])
                elif tag[1] in inside:
                    del inside[-1 - inside[::-1].index(tag[1]) :]
        elif not inside:
            pieces[place] = pattern.sub(mark, piece)
    return "".join(pieces), cards


def _pattern(term: str) -> str:
    first, rest = re.escape(term[0]), re.escape(term[1:]).replace(r"\ ", "[ \N{NO-BREAK SPACE}]")
    if term[0].islower():
        first = f"[{term[0]}{term[0].upper()}]"
    return f"{first}{rest}s?" if term[-1].islower() else first + rest
