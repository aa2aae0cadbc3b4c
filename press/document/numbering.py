"""Numbers the chapters of a book, and one chapter's sections, figures, tables and equations.

It works once on pandoc's document, for all outputs, and leaves behind nodes that each output only
has to dress; `page` names them.
"""

from __future__ import annotations

import json
import re

from press.document.page import Draft, Numbered, Parsed, asked, definition, draft
from press.document.pandoc import Node, attribute, div, nodes, plain, plain_text, string, walk
from press.document.refusals import refusals
from press.document.weave import FIGURE, Woven
from press.problems import Problems
from press.reading.project import Chapter
from press.reading.source import CALLOUTS

WORDS = {"fig": "Figure", "tbl": "Table", "eq": "Equation", "sec": "Section"}


def chapter_numbers(chapters: list[Chapter], parsed: list[Parsed]) -> list[str]:
    """Each chapter's number: "3", "B" for an appendix, "" for one without."""
    numbers = []
    chapters_so_far = appendices = 0
    for chapter, text in zip(chapters, parsed, strict=True):
        if not text["takes_number"]:
            numbers.append("")
        elif chapter.appendix:
            numbers.append(chr(ord("A") + appendices))
            appendices += 1
        else:
            chapters_so_far += 1
            numbers.append(str(chapters_so_far))
    return numbers


def number_chapter(chapter: Chapter, woven: Woven, parsed: Parsed, number: str) -> Numbered:
    text = draft(chapter, woven, parsed)
    numbering = Numbering(text, number)
    blocks = numbering.run()
    numbering.problems += refusals(text, blocks)
    numbering.problems.stop_if_any()
    return {
        "number": number,
        "targets": numbering.targets,
        "runs": numbering.runs,
        **asked(blocks),
        "blocks": json.dumps(blocks),  # as text, which a page that prints the same never parses
    }


class Numbering:
    """One chapter's walk from top to bottom."""

    def __init__(self, draft: Draft, number: str) -> None:
        self.page = draft
        self.number = number
        self.problems = Problems()
        self.targets: list[tuple[str, str, str]] = []  # label, word, number
        self.sections: list[int] = []
        self.counts = dict.fromkeys(WORDS, 0)
        self.only = ""  # the output that alone has the block around: "html", "typst"
        self.runs = False  # whether a cell stands on the page

    def run(self) -> list[Node]:
        """The chapter's blocks, numbered; the first is the Header with its title."""
        title = self.title()
        identifier, classes, _ = attribute(title)
        kind = "Appendix" if self.page.chapter.appendix else "Chapter"
        if identifier.startswith("sec-"):
            self.targets.append((identifier, kind, self.number))
        title["c"][1] = [identifier, classes, [["number", self.number], ["kind", kind]]]
        title["c"][2] = walk(title["c"][2], self.change)
        return [title, *walk(self.page.blocks, self.change)]

    def title(self) -> Node:
        """The Header with the title, of the front matter or else taken from the blocks."""
        if self.page.given_title:
            return {"t": "Header", "c": [1, ["", [], []], self.page.given_title]}
        first = self.page.blocks[0] if self.page.blocks else None
        if first is None or first["t"] != "Header" or first["c"][0] != 1:
            sentence = "a chapter starts with its title: a `#` heading, or `title` in front matter."
            self.problems.add(self.page.chapter.file, 1, sentence)
            return {"t": "Header", "c": [1, ["", [], []], [string("?")]]}
        return self.page.blocks.pop(0)

    def refuse(self, sentence: str, *patterns: str) -> None:
        self.problems.add(self.page.chapter.file, self.page.woven.line_of(*patterns), sentence)

    def refuse_label(self, label: str, sentence: str) -> None:
        self.refuse(sentence, definition(label))

    def change(self, node: Node) -> Node | list[Node] | None:
        kind = node["t"]
        if kind == "Header":
            return self.header(node)
        if kind == "Figure":
            caption = [inline for block in node["c"][1][1] for inline in block["c"]]
            return self.drawing(node["c"][2][0]["c"][0], attribute(node)[0], caption)
        if kind == "Table":
            return self.table(node, *self.table_caption(node))
        if kind == "Div":
            return self.div(node)
        if kind == "Para":
            return self.paragraph(node)
        if kind in ("RawBlock", "RawInline") and node["c"][1].startswith("<!--"):
            return []
        if kind == "Image":
            if not (attribute(node)[2].get("fig-alt") or plain_text(node["c"][1])):
                self.refuse("this image needs alt text.", re.escape(node["c"][2][0]))
        elif kind == "Code":  # Quarto's way to show what an inline value looks like
            node["c"][1] = node["c"][1].replace("{{python}}", "{python}")
        return None

    def header(self, node: Node) -> Node:
        level, (identifier, classes, _), inlines = node["c"]
        if level == 1:
            start = re.escape(plain_text(inlines)[:12])
            self.refuse("a chapter has one `#` heading.", rf"(?m)^# +{start}", r"(?m)^# ")
            return node
        if set(classes) - {"unnumbered", "unlisted"}:
            self.refuse(f"press does not read the class `{classes[0]}` here.", rf"\.{classes[0]}\b")
        number = ""
        if self.number and "unnumbered" not in classes:
            depth = level - 1
            self.sections = self.sections[:depth] + [0] * (depth - len(self.sections))
            self.sections[-1] += 1
            number = ".".join([self.number, *map(str, self.sections)])
        if identifier.startswith("sec-"):
            self.targets.append((identifier, WORDS["sec"], number))
        values = [["number", number]] if number else []
        inlines = walk(inlines, self.change)
        return {"t": "Header", "c": [level, [identifier, classes, values], inlines]}

    def label(self, label: str) -> str:
        """Numbers what has this label and returns its "Figure 1.1", or "" without a label."""
        if not label:
            return ""
        kind = label.split("-")[0]
        if self.only:
            why = "stands in one format only, so numbers would differ."
            self.refuse_label(label, f"`{label}` {why}")
        self.counts[kind] += 1
        number = f"{self.number}.{self.counts[kind]}".lstrip(".")
        self.targets.append((label, WORDS[kind], number))
        return f"({number})" if kind == "eq" else f"{WORDS[kind]}\u00a0{number}"

    def drawing(self, image: Node, identifier: str, caption: list[Node], alt: str = "") -> Node:
        of_image, classes, values = attribute(image)
        where = re.escape(image["c"][2][0])
        for key in values.keys() - {"fig-alt", "width"} | set(classes):
            self.refuse(f"press does not read `{key}` on an image.", where)
        identifier = identifier or of_image
        if identifier and not identifier.startswith("fig-"):
            self.refuse(f"a figure's label begins `fig-`, unlike `{identifier}`.", where)
            identifier = ""
        name = image["c"][2][0].removeprefix(FIGURE)
        drawing = self.page.woven.figures.get(name)
        alt = alt or values.get("fig-alt", "") or (drawing.alt if drawing else "")
        if not alt and not drawing:
            self.refuse("this image needs alt text: give it `fig-alt`.", where)
        label = self.label(identifier)
        inlines = walk(caption, self.change)
        width = {"width": values["width"]} if "width" in values else {}
        picture = {"t": "Image", "c": [["", [], []], [string(alt)], image["c"][2]]}
        blocks = [div("", ["caption"], [plain(*inlines)]), plain(picture)]
        return div(identifier, ["press-figure"], blocks, label=label, alt=alt, **width)

    def table_caption(self, node: Node) -> tuple[str, list[Node]]:
        identifier, classes, values = attribute(node)
        caption = [i for block in node["c"][1][1] for i in block["c"]]
        for key in [*classes, *values]:
            self.refuse(f"press does not read `{key}` on a table.", rf"\{{.*{key}")
        if identifier and not identifier.startswith("tbl-"):
            self.refuse_label(identifier, f"a table's label begins `tbl-`, unlike `{identifier}`.")
            identifier = ""
        if identifier and not caption:
            self.refuse_label(identifier, f"the table `{identifier}` needs a caption.")
        return identifier, caption

    def table(self, node: Node, identifier: str, caption: list[Node]) -> Node:
        node["c"][0] = ["", [], []]
        node["c"][1] = [None, []]
        label = self.label(identifier)
        blocks = [div("", ["caption"], [plain(*walk(caption, self.change))])]
        node["c"] = walk(node["c"], self.change)
        return div(identifier, ["press-table"], [*blocks, node], label=label)

    def div(self, node: Node) -> Node | list[Node]:
        identifier, classes, values = attribute(node)
        blocks = node["c"][1]
        callout = next((c for c in classes if c.removeprefix("callout-") in CALLOUTS), "")
        if callout:
            return self.callout(callout.removeprefix("callout-"), values, blocks)
        if identifier.startswith(("fig-", "tbl-")):
            return self.float(identifier, values, classes, blocks)
        if classes == ["content-visible"]:
            self.only = values["when-format"]
            node = div(identifier, [f"press-only-{self.only}"], walk(blocks, self.change))
            self.only = ""
            return node
        if "press-cell" in classes and self.only != "typst":
            self.runs = True
        inner: list[Node] = walk(blocks, self.change)
        return inner if classes == ["press-output"] else div(identifier, classes, inner, **values)

    def float(
        self, identifier: str, values: dict[str, str], classes: list[str], blocks: list[Node]
    ) -> Node | list[Node]:
        """A labelled cell's output, or a `::: {#fig-…}` block that ends with its caption."""
        if "press-output" in classes:
            caption = self.page.captions[identifier]
        else:
            if len(blocks) < 2 or blocks[-1]["t"] != "Para":
                what = f"the last paragraph of `{identifier}`"
                self.refuse_label(identifier, f"{what} must be its caption.")
                return []
            caption = blocks[-1]["c"]
            blocks = blocks[:-1]
            if len(blocks) == 1 and blocks[0]["t"] == "Div":  # a cell's, and its output in it
                cell, blocks = blocks[0], blocks[0]["c"][1]
                blocks = blocks[0]["c"][1] if len(blocks) == 1 else blocks
                cell["c"][1] = [self.drawn_or_set(identifier, values, caption, blocks)]
                return cell
        return self.drawn_or_set(identifier, values, caption, blocks)

    def drawn_or_set(
        self, identifier: str, values: dict[str, str], caption: list[Node], blocks: list[Node]
    ) -> Node | list[Node]:
        if len(blocks) == 1 and identifier.startswith("tbl-") and blocks[0]["t"] == "Table":
            if self.table_caption(blocks[0])[1]:
                self.refuse_label(identifier, f"`{identifier}` has two captions.")
            return self.table(blocks[0], identifier, caption)
        if len(blocks) == 1 and identifier.startswith("fig-"):
            images = [node for node in nodes(blocks) if node["t"] == "Image"]
            if len(images) == 1 and blocks[0]["t"] in ("Para", "Figure"):
                return self.drawing(images[0], identifier, caption, values.get("fig-alt", ""))
        what = "figure" if identifier.startswith("fig-") else "table"
        self.refuse_label(identifier, f"`{identifier}` must hold one {what} and nothing else.")
        return []

    def callout(self, kind: str, values: dict[str, str], blocks: list[Node]) -> Node:
        title: list[Node] = [string(kind.capitalize())]
        if blocks and blocks[0]["t"] == "Header":
            title = walk(blocks[0]["c"][2], self.change)
            blocks = blocks[1:]
        fold = {} if values.get("collapse", "false") == "false" else {"collapse": "true"}
        for block in blocks:
            if block["t"] == "Header" and self.number and "unnumbered" not in block["c"][1][1]:
                start = re.escape(plain_text(block["c"][2])[:12])
                self.refuse(
                    "Quarto numbers a heading inside a callout; mark it `{.unnumbered}`.",
                    rf"(?m)^#+ +{start}",
                )
        body = walk([_unnumbered(block) for block in blocks], self.change)
        inner = [div("", ["title"], [plain(*title)]), div("", ["body"], body)]
        return div("", ["press-callout", kind], inner, **fold)

    def paragraph(self, node: Node) -> Node | list[Node] | None:
        """Takes display equations out of their paragraph, with their `{#eq-…}`, and lone images."""
        inlines = node["c"]
        if len(inlines) == 1 and inlines[0]["t"] == "Image":
            return self.drawing(inlines[0], "", [])
        if not any(_is_display(inline) for inline in inlines):
            return None
        result: list[Node] = []
        text: list[Node] = []

        def end_text() -> None:
            if not all(map(_is_blank, text)):
                result.append({"t": "Para", "c": walk(text, self.change)})
            text.clear()

        rest = list(inlines)
        while rest:
            inline = rest.pop(0)
            if not _is_display(inline):
                text.append(inline)
                continue
            label = ""
            after = rest[1:] if rest and _is_blank(rest[0]) else rest
            if after and (
                label_match := re.match(r"\{#(eq-[^}\s]+)\}(.*)", str(after[0].get("c", "")))
            ):
                label = label_match[1]
                rest = ([string(label_match[2])] if label_match[2] else []) + after[1:]
            end_text()
            number = self.label(label)
            result.append(div(label, ["press-equation"], [plain(inline)], number=number))
        end_text()
        return result


def _is_blank(node: Node) -> bool:
    return node["t"] in ("Space", "SoftBreak")


def _is_display(node: Node) -> bool:
    return bool(node["t"] == "Math" and node["c"][0]["t"] == "DisplayMath")


def _unnumbered(block: Node) -> Node:
    """A heading inside a callout is not a section."""
    if block["t"] == "Header":
        return {"t": "Para", "c": [{"t": "Strong", "c": block["c"][2]}]}
    return block
