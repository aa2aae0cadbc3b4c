"""Every chapter split, executed, woven and parsed: the pages that a build works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from . import cache
from .document import Node, Pandoc
from .errors import BookError, Problems
from .project import Book
from .references import Page
from .source import Source, read_source
from .weave import Woven, weave

T = TypeVar("T")


def read_pages(
    book: Book, files: dict[str, str], installed: list[str], pandoc: Pandoc
) -> list[Page]:
    sources = read_sources(book)
    results = cache.run_changed(book, sources, files, installed)
    woven = collect(weave, zip(sources, results, strict=True))
    return parse_pages(book, woven, pandoc)


def read_sources(book: Book) -> list[Source]:
    def read(file: str) -> Source:
        try:
            text = (book.root / file).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise BookError.of(file, 0, "this file is not UTF-8 text.") from None
        return read_source(file, text, book.execute)

    return collect(read, [(chapter.file,) for chapter in book.chapters])


def parse_pages(book: Book, woven: list[Woven], pandoc: Pandoc) -> list[Page]:
    with ThreadPoolExecutor() as pool:
        parsed = list(pool.map(lambda text: pandoc.read(text.text), woven))
    return [
        Page(
            chapter,
            text,
            blocks,
            {label: _inlines(value) for label, value in meta["captions"]["c"].items()},
            _inlines(meta["title"]),
        )
        for chapter, text, (meta, blocks) in zip(book.chapters, woven, parsed, strict=True)
    ]


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


def _inlines(value: Node) -> list[Node]:
    """What pandoc made of one text of the metadata."""
    if value["t"] == "MetaBlocks":
        return [inline for block in value["c"] for inline in block["c"]]
    inlines: list[Node] = value["c"]
    return inlines if value["t"] == "MetaInlines" else []
