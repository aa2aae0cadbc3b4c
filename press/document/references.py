"""Targets of references, links and images, over the whole book."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

from press.book_files import file_digest
from press.document.page import PAGE, Answers, Numbered, definition, is_reference, lead
from press.document.pandoc import Node, link, plain_text, string, walk
from press.document.showing import active
from press.document.weave import Woven
from press.problems import Problems
from press.reading.project import Chapter


def resolve(
    root: Path,
    files: dict[str, str],
    chapters: list[Chapter],
    woven: list[Woven],
    numbered: list[Numbered],
) -> list[Answers]:
    """Return the answers to each chapter's questions; `files` holds the digests of the project."""
    references = _References(root, list(map(_Page, chapters, woven, numbered)))
    answers = [references.answers(page, files) for page in references.pages]
    references.problems.stop_if_any()
    return answers


@dataclass
class _Page:
    chapter: Chapter
    woven: Woven
    numbered: Numbered
    addresses: dict[str, str] = field(default_factory=dict)


class _Target(NamedTuple):
    page: _Page
    word: str  # "Figure", "Chapter", …
    number: str  # "" for what has none


class _References:
    def __init__(self, root: Path, pages: list[_Page]) -> None:
        self.root = root
        self.pages = pages
        self.files = {page.chapter.file: page for page in pages}
        self.problems = Problems()
        self.targets: dict[str, _Target] = {}
        for page in pages:
            for label, word, number in page.numbered["targets"]:
                self.define(page, label, word, number)

    def refuse(self, page: _Page, sentence: str, *patterns: str, occurrence: int = 0) -> None:
        line = page.woven.line_of(*patterns, occurrence=occurrence)
        self.problems.add(page.chapter.file, line, sentence)

    def define(self, page: _Page, label: str, word: str, number: str) -> None:
        where = definition(label)
        if label in self.targets:
            first = self.targets[label].page
            defined_at = f"{first.chapter.file}:{first.woven.line_of(where)}"
            sentence = f"the label `{label}` is already taken at {defined_at}."
            self.refuse(page, sentence, where, occurrence=1 if first is page else 0)
        self.targets[label] = _Target(page, word, number)

    def answers(self, page: _Page, files: dict[str, str]) -> Answers:
        asked = page.numbered["addresses"]
        for target, kind in asked.items():
            self.address(page, target, kind)
        lines = walk(page.numbered["lines"], partial(self.resolved, page))
        shown = [page.addresses.get(target, "") for target in asked if asked[target] == "image"]
        images = [self.digest(address.removeprefix(PAGE), files) for address in shown]
        return {"lines": lines, "addresses": page.addresses, "images": images}

    def digest(self, file: str, files: dict[str, str]) -> str:
        """Return the digest of an image, which may lie in a folder that is hidden or elsewhere."""
        return files.get(file) or file_digest(self.root / file)

    def resolved(self, page: _Page, node: Node) -> list[Node] | None:
        if node["t"] == "Cite":
            cites = node["c"][0]
            labels = [cite["citationId"] for cite in cites]
            are_references = list(map(is_reference, labels))
            if any(are_references) and not all(are_references):
                sentence = "one pair of brackets holds references and citations; split it."
                self.refuse(page, sentence, rf"@{labels[0]}\b")
            elif any(are_references):
                return self.reference(page, cites)
        elif node["t"] in ("Link", "Image"):
            lead(node, page.addresses)
        return None

    def reference(self, page: _Page, cites: list[Node]) -> list[Node]:
        result: list[Node] = []
        for cite in cites:
            label = cite["citationId"][:1].lower() + cite["citationId"][1:]
            where = rf"@(?i:{label[0]}){re.escape(label[1:])}\b"
            target = self.targets.get(label)
            if target is None or not target.number:
                why = "nothing has that label" if target is None else "what it names has no number"
                self.refuse(page, f"the reference @{label} cannot be resolved: {why}.", where)
                continue
            if label.startswith("sec-") and not page.numbered["number"]:
                sentence = "by its title where the page has no number; link to it."
                self.refuse(page, f"Quarto prints @{label} {sentence}", where)
            prefix = cite["citationPrefix"]
            if not prefix and cite["citationMode"]["t"] != "SuppressAuthor":
                prefix = [string(target.word)]
            last = plain_text(prefix[-1:]) + "\u00a0"
            words = [*prefix[:-1], string(last)] if prefix else []
            address = f"{PAGE}{target.page.chapter.file}#{label}"
            if result:
                result += [string(","), {"t": "Space"}]
            result.append(link(address, ["crossref"], [*words, string(target.number)]))
            result += [{"t": "Space"}, *suffix] if (suffix := cite["citationSuffix"]) else []
        return result

    def address(self, page: _Page, target: str, kind: str) -> None:
        """Checks where a link or image leads, and spells its place from the project's root."""
        if re.match(r"[a-zA-Z][\w+.-]*:|//", target):
            if kind == "image":
                self.dead(page, target, "an image must be a file of the project")
            elif not re.match("https?://|mailto:", target, re.IGNORECASE):
                self.dead(page, target, "a link elsewhere begins with https:// or mailto:")
            return
        path, anchor = (unquote(part) for part in target.partition("#")[::2])
        folder = os.path.dirname(page.chapter.file)
        file = os.path.normpath(os.path.join(folder, path)) if path else page.chapter.file
        if other := self.files.get(file):
            if anchor and anchor not in other.numbered["identifiers"]:
                self.dead(page, target, f"{file} has no anchor #{anchor}")
            page.addresses[target] = f"{PAGE}{file}{'#' if anchor else ''}{anchor}"
        elif file.startswith("..") or not os.path.isfile(self.root / file):
            self.dead(page, target, f"the {kind} leads to a file that does not exist")
        elif file.endswith(".qmd"):
            self.dead(page, target, "_quarto.yml does not list that chapter")
        elif kind == "link" and file.endswith(".svg") and (why := self.drawing(file)):
            self.dead(page, target, f"this drawing {why}")
        else:
            page.addresses[target] = f"{PAGE}{file}"

    def drawing(self, file: str) -> str:
        """Return what an SVG that readers open does beside being shown."""
        try:
            return active((self.root / file).read_text(encoding="utf-8"))
        except (ValueError, ElementTree.ParseError) as error:
            return f"is damaged: {error}"

    def dead(self, page: _Page, target: str, why: str) -> None:
        patterns = re.escape(target), re.escape(unquote(target))
        self.refuse(page, f"`{target}`: {why}.", *patterns)
