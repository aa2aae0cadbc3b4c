"""Each chapter that runs cells as a notebook, with the modules that it imports, in a zip.

The notebook is executed already: its Markdown holds the computed values and the numbers of figures
and sections, and its cells what they gave. What the project's own distribution installs stays out.
"""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from press.document.page import PAGE, Page, is_source_list
from press.document.pandoc import Node, attribute, convert, nodes, plain, plain_text, string, walk
from press.document.weave import CELL_FILE
from press.edition import Edition
from press.errors import Problems
from press.reading.project import Book

FOLDER = "notebooks"
CELL = "press-cell-stands-here"  # a line of the Markdown


class NotebookCell(NamedTuple):
    kind: str  # "markdown" or "code"
    source: str
    outputs: list[Any]


def notebook_places(pages: list[Page]) -> list[str]:
    """Where each page's notebook lies in the site; "" for one without cells, but for the PDF's."""
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


def notebook_cells(page: Page, place: str, sources: dict[str, list[Node]]) -> list[NotebookCell]:
    return _Notebook(page, sources).cells() if place else []


def write_notebook(
    book: Book, edition: Edition, page: Page, place: str, cells: list[NotebookCell], folder: Path
) -> None:
    if not place:
        return
    about = f"This notebook is a chapter of *{book.title}*"
    about += f", version {edition.version}" if edition.version else ""
    about += f", built from commit {edition.commit}" if edition.commit else ""
    if edition.distribution:
        about += f". To run it, install `{edition.distribution}`: in its checkout, `pip install"
        about += ' ".[book]"`. Then start Jupyter in the folder of the notebook'
    cells = [*cells, NotebookCell("markdown", about + ".", [])]
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / place).write_bytes(_zipped(book, page, edition, cells))


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


class _Notebook:
    """A page's blocks as Markdown that any notebook shows, in turns with its cells."""

    def __init__(self, page: Page, sources: dict[str, list[Node]]) -> None:
        self.page = page
        self.sources = sources
        self.cited: dict[str, None] = {}
        self.notes: list[list[Node]] = []
        self.run: list[int] = []  # the cells, in order

    def cells(self) -> list[NotebookCell]:
        blocks = self.blocks(self.page.blocks)
        for number, note in enumerate(self.notes, 1):
            blocks += [plain(strong(f"Note {number}.")), *note]
        if self.cited:
            blocks.append(plain(strong("Sources")))
            blocks += [b for key in self.cited for b in self.blocks(self.sources[key])]
        form = "commonmark+pipe_tables+tex_math_dollars"
        text, _ = convert(blocks, ["-t", form])
        first, *rest = (part.strip() for part in re.split(rf"(?m)^{CELL}$", text))
        found = [NotebookCell("markdown", first, [])]
        for number, after in zip(self.run, rest, strict=True):
            cell, outputs = self.page.woven.cells[number]
            found += [NotebookCell("code", cell.code, outputs), NotebookCell("markdown", after, [])]
        return [cell for cell in found if cell.source]

    def blocks(self, blocks: list[Node]) -> list[Node]:
        changed: list[Node] = walk(blocks, self.change)
        return changed

    def change(self, node: Node) -> Node | list[Node] | None:
        kind = node["t"]
        if kind == "Div":
            return self.div(node)
        if kind == "Header":
            level, (_, _, values), inlines = node["c"]
            numbers = [string(value) for key, value in values if key == "number"]
            words = [*numbers, {"t": "Space"}, *self.blocks(inlines)][not numbers :]
            return {"t": "Header", "c": [level, ["", [], []], words]}
        if kind == "Link":
            words, target = self.blocks(node["c"][1]), node["c"][2][0]
            if not target.startswith(PAGE):
                return {"t": "Link", "c": [["", [], []], words, [target, ""]]}
            if (key := target.partition("#")[2]) in self.sources:
                self.cited[key] = None
            return words
        if kind == "Span":
            return self.blocks(node["c"][1])
        if kind == "Image":
            return string(plain_text(node["c"][1]))
        if kind == "Note":
            self.notes.append([])
            number = len(self.notes)
            self.notes[number - 1] = self.blocks(node["c"])
            return string(f" (note {number})")
        return None

    def div(self, node: Node) -> list[Node]:
        _, classes, values = attribute(node)
        blocks = node["c"][1]
        if "press-only-typst" in classes:
            return []
        if "press-cell" in classes:
            self.run.append(int(values["number"]))
            shown = [n for n in nodes(blocks) if n["t"] == "Div" and attribute(n)[2].get("label")]
            captions = [block for each in shown for block in self.caption(each)]
            return [{"t": "Para", "c": [string(CELL)]}, *captions]
        if "press-figure" in classes:
            return self.caption(node)
        if "press-table" in classes:
            return [*self.caption(node), *self.blocks(blocks[1:])]
        if "press-equation" in classes:
            (math,) = (n for n in nodes(blocks) if n["t"] == "Math")
            number = values["number"].strip("()")
            tex = math["c"][1].strip() + (f" \\tag{{{number}}}" if number else "")
            return [{"t": "Para", "c": [{"t": "Math", "c": [math["c"][0], tex]}]}]
        if "press-callout" in classes:
            title, body = (self.blocks(block["c"][1]) for block in blocks)
            whole = [plain({"t": "Strong", "c": title[0]["c"]}), *body]
            runs = any(n["t"] == "Str" and n["c"] == CELL for n in nodes(body))
            return whole if runs else [{"t": "BlockQuote", "c": whole}]
        return self.blocks(blocks)

    def caption(self, node: Node) -> list[Node]:
        label = attribute(node)[2]["label"]
        if not label:
            return []
        words = self.blocks(node["c"][1][0]["c"][1][0]["c"])
        return [{"t": "Para", "c": [strong(f"{label}:"), {"t": "Space"}, *words]}]


def strong(words: str) -> Node:
    return {"t": "Strong", "c": [string(words)]}
