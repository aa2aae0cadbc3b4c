"""Terms and names that the project explains: on each page the first of each has a card."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
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
    by_title = {term["title"]: term for term in terms}
    if not by_title:
        return body, {}
    titles = tuple(by_title)
    mention, patterns = _mention_of(titles), _patterns(titles)
    cards: dict[str, dict[str, Any]] = {}

    def mark(match: re.Match[str]) -> str:
        title = next(title for title, pattern in patterns.items() if pattern.fullmatch(match[0]))
        key = f"term {title}"
        if key in cards:
            return match[0]
        term = by_title[title]
        cards[key] = {"value": title, "kind": "term", "note": term["text"], "row": term["href"]}
        return f'<span class="q" data-key="{key}">{match[0]}</span>'

    inside: list[str] = []
    pieces = PIECE.split(body)
    for index, piece in enumerate(pieces):
        if tag := TAG.match(piece):
            if tag[1] in LEFT_ALONE and not piece.endswith("/>"):
                if piece[1] != "/":
                    inside.append(tag[1])
                elif tag[1] in inside:
                    del inside[-1 - inside[::-1].index(tag[1]) :]
        elif not inside:
            pieces[index] = mention.sub(mark, piece)
    return "".join(pieces), cards


@cache
def _mention_of(titles: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of any of these terms, the longest first; one letter decides most."""
    by_letter: dict[str, list[str]] = {}
    for title in sorted(titles, key=len, reverse=True):
        by_letter.setdefault(title[0].lower(), []).append(_pattern(title))
    either = "|".join(
        f"(?=[{re.escape(letter + letter.upper())}])(?:{'|'.join(words)})"
        for letter, words in by_letter.items()
    )
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")


@cache
def _patterns(titles: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    return {title: re.compile(_pattern(title)) for title in titles}


def _pattern(term: str) -> str:
    first, rest = re.escape(term[0]), re.escape(term[1:]).replace(r"\ ", "[ \N{NO-BREAK SPACE}]")
    if term[0].islower():
        first = f"[{term[0]}{term[0].upper()}]"
    return f"{first}{rest}s?" if term[-1].islower() else first + rest
