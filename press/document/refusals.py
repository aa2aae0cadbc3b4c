"""Refusals of what the outputs cannot print, or would print otherwise than it is meant."""

from __future__ import annotations

import re
from itertools import accumulate

from press.document.page import Draft
from press.document.pandoc import Node, attribute, nodes
from press.problems import Problems

# TeX that pandoc cannot turn into typst, or turns into something else without a word.
TEX_GAPS = re.compile(
    r"\\(?:xrightarrow|xleftarrow|color|textcolor|tag|label|substack)(?![A-Za-z])"
    r"|\\operatorname\*|\\(?:left|right)\s*(?:\.|\\\||\\[lr][Vv]ert)"
)
# What pandoc prints as it stands, because it did not take it for what it was meant to be.
STRAY = re.compile(
    r"(?P<block>:::)|(?P<label>\{#[^}]*\}?)|(?P<note>\[\^[^]]*\])|(?P<class>\{\.[A-Za-z][^}]*\}?)"
)
DEEPEST_MATH = 50  # brackets in one another, or commands of one another; of deeper ones typst dies
STRAY_SENTENCES = {
    "block": "this `:::` needs an empty line before it.",
    "label": "this label does not follow a heading, an equation, a caption or an image.",
    "note": "this footnote has no text.",
    "class": "nothing here takes these attributes.",
}
# What may carry attributes besides an identifier: its name, where its braces stand, its classes.
ATTRIBUTES = {
    "Span": ("a span", r"\]\{", r"(?!)"),
    "Link": ("a link", r"[)\]>]\{", r"uri|email"),  # pandoc's own, of `<https://…>`
    "Code": ("inline code", r"`\{", r"(?!hidden|aside)[a-z0-9+]+"),  # a language
    "CodeBlock": ("a code block", r"(?:```|~~~).*", r"(?!hidden|aside)[a-z0-9+]+"),
}


def refusals(page: Draft, blocks: list[Node]) -> Problems:
    """Return the problems of the numbered blocks of a page."""
    problems = Problems()

    def refuse(sentence: str, *patterns: str) -> None:
        problems.add(page.chapter.file, page.woven.line_of(*patterns), sentence)

    for node in nodes(blocks):
        kind = node["t"]
        if kind in ATTRIBUTES:
            what, before, _ = ATTRIBUTES[kind]
            for name in _unread(node):
                where = rf"{before}[^}}\n]*{re.escape(name)}"
                refuse(f"press does not read `{name}` on {what}.", where, re.escape(name))
        if kind in ("RawBlock", "RawInline"):
            form, text = node["c"]
            start = re.escape(text.strip().split("\n")[0])
            refuse(f"press does not pass on raw {form}: `{text.strip()[:40]}`.", start)
        elif kind == "Math" and _brackets(node["c"][1]) > DEEPEST_MATH:
            start = re.escape(node["c"][1].strip()[:40].split("\n")[0])
            refuse(f"math nests too deep: brackets stand {DEEPEST_MATH} in another at most.", start)
        elif kind == "Math" and (gap := TEX_GAPS.search(node["c"][1])):
            refuse(f"the PDF cannot set `{gap[0]}` in math.", re.escape(gap[0]))
        elif kind == "Str" and (stray := STRAY.search(node["c"])) and stray[0] in page.woven.text:
            # Otherwise it is escaped there, and meant.
            refuse(STRAY_SENTENCES[stray.lastgroup or ""], re.escape(stray[0]))
    return problems


def _brackets(tex: str) -> int:
    """Return the depth of a formula's brackets, or the length of a row of commands (\\sqrt …)."""
    openings = re.findall(r"[\[({]|[\])}]", tex)
    deepest: int = max(accumulate(1 if sign in "[({" else -1 for sign in openings), default=0)
    rows: list[str] = re.findall(r"(?:\\[A-Za-z]+\s*)+", tex)
    return max([deepest, *(row.count("\\") for row in rows)])


def _unread(node: Node) -> list[str]:
    """The attributes of a node that nothing reads, as an author writes them."""
    identifier, classes, values = attribute(node)
    if node["t"] == "Span" and classes == ["q"] and values.keys() <= {"key", "value"}:
        return []  # a value that has a name, as cells and inline values give it
    if node["t"] == "Span" and classes == ["index"] and values.keys() <= {"entry"}:
        return []  # a word that the index lists
    unread = [f".{name}" for name in classes if not re.fullmatch(ATTRIBUTES[node["t"]][2], name)]
    unread += [f"{key}=" for key in values]
    return unread + ([f"#{identifier}"] if identifier.startswith("lst-") else [])
