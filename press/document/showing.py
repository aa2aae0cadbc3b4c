"""Checks of a finished page before either output is written: images that can be shown, at
widths that both understand, and ids that name one thing each."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from press.document.page import PAGE, Page, definition
from press.document.pandoc import Node, attribute, nodes, walk
from press.document.weave import FIGURE
from press.problems import Problems

WIDTH = re.compile(r"(\d+(?:\.\d+)?)(%|in|cm|mm|em|pt|px)")
FORMATS = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg"]
# What a drawing that is opened alone would run, or show of other sites.
ACTIVE = ("script", "foreignObject", "iframe", "object", "embed", "handler", "listener")


def check_page(root: Path, page: Page) -> None:
    problems = Problems()
    for node in nodes(page.blocks):
        figure = node["t"] == "Div" and "press-figure" in attribute(node)[1]
        shown = figure or node["t"] == "Image"
        width = attribute(node)[2].get("width") if shown else None
        if width is not None and not WIDTH.fullmatch(width):
            line = page.woven.line_of(rf"width=.?{re.escape(width)}", _file_of(node))
            sentence = "an image's width is a number with %, in, cm, mm, em, pt or px, not"
            problems.add(page.chapter.file, line, f"{sentence} `{width}`.")
        if node["t"] == "Image" and not (address := node["c"][2][0]).startswith(FIGURE):
            file = address.removeprefix(PAGE)
            if fault := _fault(root, file):
                line = page.woven.line_of(_file_of(node))
                problems.add(page.chapter.file, line, f"the image {file} {fault}.")
    for identifier in _given_twice(page):
        line = page.woven.line_of(definition(identifier), occurrence=1)
        sentence = f"the id `{identifier}` is given twice in this chapter."
        problems.add(page.chapter.file, line, sentence)
    problems.stop_if_any()


def typst_width(width: str) -> str:
    """A width as typst spells it: it knows no px, of which CSS counts 96 to the inch."""
    return f"{float(width[:-2]) * 0.75:g}pt" if width.endswith("px") else width


def _fault(root: Path, file: str) -> str:
    """Return why an image cannot be shown, as the end of a sentence; "" if it can."""
    import typst

    if Path(file).suffix not in FORMATS:
        return f"is of a kind that press does not show; it knows {', '.join(FORMATS)}"
    try:
        # Any: typst's stubs want text and folder to be of one type.
        image: Any = f"#image({json.dumps('/' + file, ensure_ascii=False)})".encode()
        typst.compile(image, root=root, ignore_system_fonts=True)
        if file.endswith(".svg"):  # goes into the page as it is
            text = (root / file).read_text(encoding="utf-8")
            text.index("<svg")
            return active(text)
    except (RuntimeError, ValueError, ElementTree.ParseError) as error:
        return f"is damaged: {str(error).splitlines()[0]}"
    return ""


def active(svg: str) -> str:
    """Return what a drawing does beside being shown, as the end of a sentence; "" if nothing.

    Readers may open it alone, where no page's policy holds.
    """
    if match := re.search(r"<!ENTITY|<\?xml-stylesheet", svg):
        return f"holds `{match[0]}`, which may load or run something"
    for element in ElementTree.fromstring(svg).iter():
        name = element.tag.rpartition("}")[2]
        if name in ACTIVE:
            return f"holds <{name}>, which would run when it is opened alone"
        for key, value in element.attrib.items():
            key, value = key.rpartition("}")[2], re.sub(r"\s", "", value)
            goes = key == "href" and not re.match(r"#|data:image/(?!svg)|https?:|[\w./-]*$", value)
            sets = key == "attributeName" and re.search("href|^on", value)
            if key.startswith("on") or goes or sets:
                return f"holds {key}={value[:30]!r}, which would run when it is opened alone"
    return ""


def _file_of(node: Node) -> str:
    """The pattern of the name of the file that an image, or the figure around it, shows."""
    image = node if node["t"] == "Image" else node["c"][1][1]["c"][0]
    address: str = image["c"][2][0]
    return re.escape(os.path.basename(address.removeprefix(PAGE)))


def _given_twice(page: Page) -> set[str]:
    """The ids that two elements have in one of the outputs."""
    if not _repeated(page.blocks):  # as nearly always, and quickly found
        return set()
    return {
        identifier
        for other in ("html", "typst")
        for identifier in _repeated(_without(page.blocks, other))
    }


def _repeated(blocks: list[Node]) -> set[str]:
    kinds = ("Header", "Div", "Span", "Code", "CodeBlock", "Link", "Table")
    identifiers = [i for node in nodes(blocks) if node["t"] in kinds and (i := attribute(node)[0])]
    return {identifier for identifier, count in Counter(identifiers).items() if count > 1}


def _without(blocks: list[Node], form: str) -> list[Node]:
    """Return the blocks without the elements that one output alone has."""

    def change(node: Node) -> list[Node] | None:
        left_out = node["t"] == "Div" and f"press-only-{form}" in attribute(node)[1]
        return [] if left_out else None

    kept: list[Node] = walk(blocks, change)
    return kept
