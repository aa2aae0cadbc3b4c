"""Every chapter split, executed, woven, parsed and numbered: the pages that a build works on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import astuple
from typing import Any, NamedTuple, TypeVar

from press import cache
from press.document.pandoc import Node, attribute, pandoc_version, parse
from press.document.references import Draft, Numbering, Page
from press.document.weave import Woven, weave
from press.errors import BookError, Problems
from press.memory import Memory, digest
from press.reading.project import Book, Chapter
from press.reading.source import Source, read_source
from press.running.execute import Result

T = TypeVar("T")


class Parsed(NamedTuple):
    """A chapter as pandoc read it, for the time until all are and it gets its number."""

    woven: Woven
    key: str  # the digest of all that it is made from
    takes_number: bool
    document: str  # JSON, which a chapter that is numbered already never parses


def read_pages(
    book: Book, files: dict[str, str], installed: list[str], memory: Memory
) -> list[Page]:
    sources = read_sources(book)
    chapters = {chapter.file: chapter for chapter in book.chapters}
    made_by = digest(installed, pandoc_version(), book.lang)

    def read(source: Source, result: Result) -> Parsed:
        woven = weave(source, result)
        key = digest(made_by, astuple(chapters[source.file]), woven.contents())
        return Parsed(woven, key, *memory.remember(lambda: _parsed(woven), "parsed", key))

    results = cache.results(book, sources, files, installed)
    with closing(results), ThreadPoolExecutor() as pool:  # some are read while others still run
        reading = {source.file: pool.submit(read, source, result) for source, result in results}
    parsed = collect(lambda chapter: reading[chapter.file].result(), zip(book.chapters))
    numbers = _numbers(book, [each.takes_number for each in parsed])

    def numbered(chapter: Chapter, text: Parsed, number: str) -> Page:
        def number_it() -> dict[str, Any]:
            return Numbering(draft(chapter, text.woven, json.loads(text.document)), number).run()

        found = memory.remember(number_it, "numbered", text.key, number)
        return Page(chapter, text.woven, digest(text.key, number), found)

    return collect(numbered, zip(book.chapters, parsed, numbers, strict=True))


def read_sources(book: Book) -> list[Source]:
    def read(file: str) -> Source:
        try:
            text = (book.root / file).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise BookError.of(file, 0, "this file is not UTF-8 text.") from None
        return read_source(file, text, book.execute)

    return collect(read, [(chapter.file,) for chapter in book.chapters])


def draft(chapter: Chapter, woven: Woven, document: tuple[Node, list[Node]]) -> Draft:
    """A chapter with the metadata and the blocks that pandoc made of it."""
    meta, blocks = document
    captions = {label: _inlines(value) for label, value in meta["captions"]["c"].items()}
    return Draft(chapter, woven, blocks, captions, _inlines(meta["title"]))


def collect(do: Callable[..., T], items: Iterable[tuple[Any, ...]]) -> list[T]:
    """`do` on every item; the problems of all of them at once."""
    problems = Problems()
    results: list[T] = []
    for item in items:
        try:
            results.append(do(*item))
        except BookError as error:
            problems += error.problems
    problems.stop_if_any()
    return results


def _parsed(text: Woven) -> tuple[bool, str]:
    meta, blocks = parse(text.text)
    titled = bool(blocks) and blocks[0]["t"] == "Header" and not _inlines(meta["title"])
    unnumbered = titled and "unnumbered" in attribute(blocks[0])[1]
    return not unnumbered, json.dumps([meta, blocks])


def _numbers(book: Book, takes_number: list[bool]) -> list[str]:
    """Each chapter's number: "3", "B" for an appendix, "" for one without."""
    numbers = []
    chapters = appendices = 0
    for chapter, takes in zip(book.chapters, takes_number, strict=True):
        if not takes:
            numbers.append("")
        elif chapter.appendix:
            numbers.append(chr(ord("A") + appendices))
            appendices += 1
        else:
            chapters += 1
            numbers.append(str(chapters))
    return numbers


def _inlines(value: Node) -> list[Node]:
    """What pandoc made of one text of the metadata."""
    if value["t"] == "MetaBlocks":
        return [inline for block in value["c"] for inline in block["c"]]
    inlines: list[Node] = value["c"]
    return inlines if value["t"] == "MetaInlines" else []
