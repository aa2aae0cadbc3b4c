"""A chapter on its way through a build: as pandoc read it, and as a page with all it asks answered.

A page leaves to each output only nodes to dress: Divs of class `press-figure`, `press-table`,
`press-equation` and `press-callout`, Headers with a `number`, and Links to `press-page:FILE#ID`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from press.document.pandoc import Node, attribute, nodes, parse, walk
from press.document.weave import FIGURE, Woven
from press.problems import BookError
from press.reading.project import Chapter

PAGE = "press-page:"
REFERENCE = re.compile(r"(fig|tbl|eq|sec)-")
LINES = ("Para", "Plain", "Header", "LineBlock", "DefinitionList")


class Parsed(TypedDict):
    """Pandoc's reading of a chapter."""

    takes_number: bool
    document: str  # JSON, which a chapter that is numbered already never parses


class Asked(TypedDict):
    """References of a chapter: what it gives to other pages, and what it asks of them."""

    identifiers: list[str]
    lines: list[Node]  # each line that holds a reference or citation
    citing: list[tuple[int, list[str]]]  # which of them cite, and the keys
    addresses: dict[str, str]  # of each link and image, and which of the two it is


class Numbered(Asked):
    """A numbered chapter."""

    number: str  # "3", "B" for an appendix, "" for none
    targets: list[tuple[str, str, str]]  # label, word, number: of what can be referred to
    runs: bool  # whether a cell stands on the page
    blocks: str  # JSON


class Answers(TypedDict):
    """Answers to what a page asks of other pages and of the project's files."""

    lines: list[Node]
    addresses: dict[str, str]
    images: list[str]  # the digest of each that the page shows


class Cited(TypedDict):
    """Answers to what a page asks of the bibliography."""

    lines: list[Node]  # those that cite
    faults: dict[str, str]  # what is wrong, by key


@dataclass
class Draft:
    """A chapter as pandoc read it."""

    chapter: Chapter
    woven: Woven
    blocks: list[Node]
    captions: dict[str, list[Node]]
    given_title: list[Node]  # the front matter's, empty if there is none


@dataclass
class Page:
    """A chapter with its numbers and all that it asks answered."""

    chapter: Chapter
    woven: Woven
    numbered: Numbered
    lines: list[Node]
    addresses: dict[str, str]

    @property
    def number(self) -> str:
        return self.numbered["number"]

    @cached_property
    def blocks(self) -> list[Node]:
        """The document with all its references resolved; the first block is the title's Header."""
        lines = iter(self.lines)

        def answered(node: Node) -> Node | None:
            if asks(node):
                return next(lines)
            if node["t"] in ("Link", "Image"):
                lead(node, self.addresses)
            return None

        blocks: list[Node] = walk(json.loads(self.numbered["blocks"]), answered)
        return blocks

    @property
    def title(self) -> list[Node]:
        title: list[Node] = self.blocks[0]["c"][2]
        return title

    @property
    def listed(self) -> bool:
        """True if the contents name the page."""
        return "unlisted" not in attribute(self.blocks[0])[1]

    @property
    def sheet(self) -> str:
        """The place of its own PDF, of a page that is set on one sheet; "" of another."""
        sheets = (b for b in self.blocks if b["t"] == "Div" and "sheet" in attribute(b)[1])
        return self.chapter.href.removesuffix("html") + "pdf" if any(sheets) else ""


def parse_chapter(woven: Woven) -> Parsed:
    try:
        meta, blocks = parse(woven.text)
    except BookError as error:  # most likely where most marks stand
        line, _ = max(woven.lines, key=lambda line: len(re.sub(r"\w|(?<=\w) +", "", line[1])))
        raise BookError.of(woven.file, line, str(error)) from None
    titled = bool(blocks) and blocks[0]["t"] == "Header" and not _inlines(meta["title"])
    unnumbered = titled and "unnumbered" in attribute(blocks[0])[1]
    return {"takes_number": not unnumbered, "document": json.dumps([meta, blocks])}


def draft(chapter: Chapter, woven: Woven, parsed: Parsed) -> Draft:
    meta, blocks = json.loads(parsed["document"])
    captions = {label: _inlines(value) for label, value in meta["captions"]["c"].items()}
    return Draft(chapter, woven, blocks, captions, _inlines(meta["title"]))


def asked(blocks: list[Node]) -> Asked:
    lines: list[Node] = []
    identifiers: set[str] = set()
    addresses: dict[str, str] = {}
    for node in nodes(blocks):
        if node["t"] in ("Header", "Div", "Span", "Code", "CodeBlock", "Link", "Table"):
            identifiers.add(attribute(node)[0])
        if node["t"] in ("Link", "Image"):
            target = node["c"][2][0]
            if not target.startswith(FIGURE) and addresses.get(target) != "image":
                addresses[target] = node["t"].lower()

    def take(node: Node) -> list[Node] | None:
        if not asks(node):
            return None
        lines.append(node)
        return []

    walk(blocks, take)
    return {
        "identifiers": sorted(identifiers - {""}),
        "lines": lines,
        "citing": [
            (number, keys)
            for number, line in enumerate(lines)
            if (keys := sources_cited(line)) or is_source_list(line)
        ],
        "addresses": addresses,
    }


def lead(node: Node, addresses: dict[str, str]) -> None:
    """Spells the place that a link or an image leads to from the project's root."""
    node["c"][2][0] = addresses.get(node["c"][2][0], node["c"][2][0])


def asks(node: Node) -> bool:
    """Return whether this is a line of text with references or citations, or the source list."""
    if node["t"] in LINES:
        return any(inner["t"] == "Cite" for inner in nodes(node["c"]))
    return is_source_list(node)


def is_source_list(node: Node) -> bool:
    return bool(node["t"] == "Div" and node["c"][0][0] == "refs")


def sources_cited(line: Node) -> list[str]:
    """The keys of the bibliography that a line names, as often as it does."""
    keys = [
        entry["citationId"]
        for node in nodes(line["c"])
        if node["t"] == "Cite"
        for entry in node["c"][0]
    ]
    return [key for key in keys if not is_reference(key)]


def is_reference(label: str) -> bool:
    """Return whether a label names a part of the book, not an entry of the bibliography."""
    return bool(REFERENCE.match(label[:1].lower() + label[1:]))


def definition(label: str) -> str:
    """The pattern of a place where a label is given, in a chapter that is woven."""
    return rf"#{re.escape(label)}(?=[\s}}])"


def _inlines(value: Node) -> list[Node]:
    """Return pandoc's inline nodes of one text of the metadata."""
    if value["t"] == "MetaBlocks":
        return [inline for block in value["c"] for inline in block["c"]]
    inlines: list[Node] = value["c"]
    return inlines if value["t"] == "MetaInlines" else []
