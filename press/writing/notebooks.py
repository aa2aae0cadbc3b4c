"""Each chapter that runs cells as a notebook, with the modules that it imports, in a zip.

The notebook is executed already: its Markdown holds the computed values and the numbers of figures
and sections, and its cells what they gave. What the project's own distribution installs stays out.
"""

from __future__ import annotations

import io
import json
import os
import re
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from press.document.dressing import Dresser, caption_of
from press.document.page import PAGE, Page, is_source_list
from press.document.pandoc import Node, attribute, convert, nodes, plain, plain_text, string
from press.document.weave import CELL_FILE
from press.edition import Edition
from press.problems import Problems
from press.reading.project import Book

FOLDER = "notebooks"
CELL = "press-cell-stands-here"  # a line of the Markdown


class NotebookCell(NamedTuple):
    kind: str  # "markdown" or "code"
    source: str
    outputs: list[Any]


def notebook_places(pages: list[Page]) -> list[str]:
    """Return the place of each page's notebook in the site; "" for a page that runs no cells."""
    problems = Problems()
    files: dict[str, str] = {}
    places = []
    for page in pages:
        runs = page.numbered["runs"]
        places.append(f"{FOLDER}/{Path(page.chapter.file).stem}.zip" if runs else "")
        if runs and (first := files.setdefault(places[-1], page.chapter.file)) != page.chapter.file:
            problems.add(page.chapter.file, 0, f"its notebook has the name of that of {first}.")
    problems.stop_if_any()
    return places


def listed_sources(pages: list[Page]) -> dict[str, list[Node]]:
    """The entries of the list of references, by their ids."""
    return {
        identifier: node["c"][1]
        for page in pages
        for node in nodes([line for line in page.lines if is_source_list(line)])
        if node["t"] == "Div" and (identifier := attribute(node)[0]).startswith("ref-")
    }


def notebook_cells(page: Page, path: str, sources: dict[str, list[Node]]) -> list[NotebookCell]:
    return Notebook(page, sources).cells() if path else []


def write_notebook(
    book: Book, edition: Edition, page: Page, path: str, cells: list[NotebookCell], folder: Path
) -> None:
    if not path:
        return
    about = f"This notebook is a chapter of *{book.title}*"
    about += f", version {edition.version}" if edition.version else ""
    about += f", built from commit {edition.commit}" if edition.commit else ""
    if edition.distribution:
        about += f". To run it, install `{edition.distribution}`: in its checkout, `pip install"
        about += ' ".[book]"`. Then start Jupyter in the folder of the notebook'
    cells = [*cells, NotebookCell("markdown", about + ".", [])]
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / path).write_bytes(_zipped(book, page, edition, cells))


def _zipped(book: Book, page: Page, edition: Edition, cells: list[NotebookCell]) -> bytes:
    name = Path(page.chapter.file).stem
    files = {f"{name}.ipynb": _json(cells).encode()}
    for file in page.woven.files:
        if file.split(os.sep)[0] not in edition.packages:
            files[file] = (book.root / file).read_bytes()
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for file, content in files.items():
            archive.writestr(ZipInfo(f"{name}/{file}"), content, ZIP_DEFLATED)  # dated 1980
    return packed.getvalue()


def _json(cells: list[NotebookCell]) -> str:
    made: list[dict[str, Any]] = []
    count = 0
    for number, (kind, source, outputs) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        if kind == "code":
            count += 1
            cell |= {"execution_count": count, "outputs": [_output(o, count) for o in outputs]}
        made.append(cell | {"source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    book = {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def _output(output: dict[str, Any], count: int) -> dict[str, Any]:
    kind = output["output_type"]
    if kind == "stream":
        text = re.sub(CELL_FILE, "cell.py", output["text"])
        return {"output_type": kind, "name": output["name"], "text": text}
    counted = {"execution_count": count} if kind == "execute_result" else {}
    return {"output_type": kind, "data": output["data"], "metadata": {}} | counted


class Notebook(Dresser):
    """A page's blocks as Markdown that any notebook shows, in turns with its cells."""

    without = "typst"

    def __init__(self, page: Page, sources: dict[str, list[Node]]) -> None:
        super().__init__(page)
        self.sources = sources
        self.cited: dict[str, None] = {}
        self.notes: list[list[Node]] = []
        self.run: list[int] = []  # the cells, in order

    def text(self) -> str:
        """The page as Markdown, with its notes and the sources that it cites at the end."""
        blocks = self.dress(self.page.blocks)
        for number, note in enumerate(self.notes, 1):
            blocks += [plain(strong(f"Note {number}.")), *note]
        if self.cited:
            blocks.append(plain(strong("Sources")))
            blocks += [b for key in self.cited for b in self.dress(self.sources[key])]
        return convert(blocks, "commonmark+pipe_tables+tex_math_dollars")[0]

    def cells(self) -> list[NotebookCell]:
        first, *rest = (part.strip() for part in re.split(rf"(?m)^{CELL}$", self.text()))
        notebook_cells = [NotebookCell("markdown", first, [])]
        for number, after in zip(self.run, rest, strict=True):
            cell, outputs = self.page.woven.cells[number]
            notebook_cells += [
                NotebookCell("code", cell.code, outputs),
                NotebookCell("markdown", after, []),
            ]
        return [cell for cell in notebook_cells if cell.source]

    def on_header(self, node: Node) -> Node:
        level, (_, _, values), inlines = node["c"]
        numbers = [string(value) for key, value in values if key == "number"]
        words = [*numbers, {"t": "Space"}, *self.dress(inlines)][not numbers :]
        return {"t": "Header", "c": [level, ["", [], []], words]}

    def on_link(self, node: Node) -> Node | list[Node]:
        words, target = self.dress(node["c"][1]), node["c"][2][0]
        if not target.startswith(PAGE):
            return {"t": "Link", "c": [["", [], []], words, [target, ""]]}
        if (key := target.partition("#")[2]) in self.sources:
            self.cited[key] = None
        return words

    def on_span(self, node: Node) -> list[Node]:
        return self.dress(node["c"][1])

    def on_image(self, node: Node) -> Node:
        return string(plain_text(node["c"][1]))

    def on_note(self, node: Node) -> Node:
        self.notes.append([])
        number = len(self.notes)
        self.notes[number - 1] = self.dress(node["c"])
        return string(f" (note {number})")

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> list[Node]:
        return self.caption(values["label"], caption)

    def table(self, identifier: str, label: str, caption: list[Node], table: Node) -> list[Node]:
        return [*self.caption(label, caption), *self.dress([table])]

    def equation(self, identifier: str, number: str, math: list[Node]) -> Node:
        ((form, tex),) = (node["c"] for node in math)
        tag = f" \\tag{{{number.strip('()')}}}" if number else ""
        return {"t": "Para", "c": [{"t": "Math", "c": [form, tex.strip() + tag]}]}

    def callout(self, kind: str, folded: bool, title: list[Node], body: list[Node]) -> list[Node]:
        whole = [plain({"t": "Strong", "c": self.dress(title)}), *self.dress(body)]
        runs = any(n["t"] == "Str" and n["c"] == CELL for n in nodes(whole))
        return whole if runs else [{"t": "BlockQuote", "c": whole}]

    def cell(self, number: int, blocks: list[Node]) -> list[Node]:
        self.run.append(number)
        shown = [n for n in nodes(blocks) if n["t"] == "Div" and attribute(n)[2].get("label")]
        named = (self.caption(attribute(n)[2]["label"], caption_of(n["c"][1])) for n in shown)
        return [{"t": "Para", "c": [string(CELL)]}, *chain.from_iterable(named)]

    def block(self, identifier: str, classes: list[str], blocks: list[Node]) -> list[Node]:
        return self.dress(blocks)

    def caption(self, label: str, inlines: list[Node]) -> list[Node]:
        words = [strong(f"{label}:"), {"t": "Space"}, *self.dress(inlines)]
        return [{"t": "Para", "c": words}] if label else []


def strong(words: str) -> Node:
    return {"t": "Strong", "c": [string(words)]}
