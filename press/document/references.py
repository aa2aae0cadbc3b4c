"""Numbers chapters, sections, figures, tables and equations; resolves references between them.

It works once on pandoc's document, for both outputs, and leaves behind nodes that each output only
has to dress: Divs of class `press-figure`, `press-table`, `press-equation` and `press-callout`,
Headers with a `number`, and Links to `press-page:FILE#ID`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from press.document.pandoc import (
    Node,
    attribute,
    div,
    link,
    nodes,
    plain,
    plain_text,
    string,
    walk,
)
from press.document.weave import FIGURE, Woven
from press.errors import Problems
from press.memory import digest
from press.reading.project import Chapter
from press.reading.source import CALLOUTS

PAGE = "press-page:"
WORDS = {"fig": "Figure", "tbl": "Table", "eq": "Equation", "sec": "Section"}
LINES = ("Para", "Plain", "Header", "LineBlock", "DefinitionList")
REFERENCE = re.compile(r"(fig|tbl|eq|sec)-")
# TeX that pandoc cannot turn into typst, or turns into something else without a word.
TEX_GAPS = re.compile(
    r"\\(?:xrightarrow|xleftarrow|color|textcolor|tag|label|substack)(?![A-Za-z])"
    r"|\\operatorname\*|\\(?:left|right)\s*(?:\.|\\\||\\[lr][Vv]ert)"
)
# What pandoc prints as it stands, because it did not take it for what it was meant to be.
STRAY = re.compile(
    r"(?P<block>:::)|(?P<label>\{#[^}]*\}?)|(?P<note>\[\^[^]]*\])|(?P<class>\{\.[A-Za-z][^}]*\}?)"
)
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
    """A chapter on its way through the build, numbered."""

    chapter: Chapter
    woven: Woven
    key: str  # the digest of all that it is made from
    found: dict[str, Any]  # what its numbering found
    # What it asks of other pages and of the bibliography, answered:
    lines: list[Node] = field(default_factory=list)  # each line that holds a reference or citation
    addresses: dict[str, str] = field(default_factory=dict)  # of each link and image

    @property
    def number(self) -> str:
        number: str = self.found["number"]
        return number

    def settle(self, files: dict[str, str]) -> None:
        """Makes the key that of what the page prints, once all that it asked is answered."""
        kinds = self.found["addresses"]
        shown = [self.addresses[target] for target, kind in kinds.items() if kind == "image"]
        images = [files.get(place.removeprefix(PAGE)) for place in shown]
        self.key = digest(self.key, self.lines, self.addresses, images)

    @cached_property
    def blocks(self) -> list[Node]:
        """The document with all its references resolved; the first block is the title's Header."""
        lines = iter(self.lines)

        def answered(node: Node) -> Node | None:
            if asks(node):
                return next(lines)
            if node["t"] in ("Link", "Image"):
                self.lead(node)
            return None

        blocks: list[Node] = walk(json.loads(self.found["blocks"]), answered)
        return blocks

    @property
    def title(self) -> list[Node]:
        title: list[Node] = self.blocks[0]["c"][2]
        return title

    def lead(self, node: Node) -> None:
        """Spells the place that a link or an image leads to from the project's root."""
        node["c"][2][0] = self.addresses.get(node["c"][2][0], node["c"][2][0])


def asks(node: Node) -> bool:
    """Whether this is a line of text with references or citations, or the list of sources."""
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
    """Whether it names a part of the book, as opposed to an entry of the bibliography."""
    return bool(REFERENCE.match(label[:1].lower() + label[1:]))


@dataclass(frozen=True)
class Target:
    page: Page
    word: str  # "Figure", "Chapter", …
    number: str  # "" for what has none


class References:
    """Where each page's references, links and images lead."""

    def __init__(self, pages: list[Page], root: Path) -> None:
        self.pages = pages
        self.files = {page.chapter.file: page for page in pages}
        self.root = root
        self.problems = Problems()
        self.targets: dict[str, Target] = {}
        for page in pages:
            for label, word, number in page.found["targets"]:
                self.define(page, label, word, number)

    def define(self, page: Page, label: str, word: str, number: str) -> None:
        if label in self.targets:
            first = self.targets[label].page
            where = f"{first.chapter.file}:{first.woven.line_of(definition(label))}"
            line = page.woven.line_of(definition(label), occurrence=1 if first is page else 0)
            sentence = f"the label `{label}` is already taken at {where}."
            self.problems.add(page.chapter.file, line, sentence)
        self.targets[label] = Target(page, word, number)

    def resolve(self) -> None:
        for page in self.pages:
            for target, kind in page.found["addresses"].items():
                self.address(page, target, kind)
            page.lines = walk(page.found["lines"], partial(self.resolved, page))

    def resolved(self, page: Page, node: Node) -> Node | list[Node] | None:
        if node["t"] == "Cite":
            cites = node["c"][0]
            labels = [cite["citationId"] for cite in cites]
            found = list(map(is_reference, labels))
            if any(found) and not all(found):
                line = page.woven.line_of(rf"@{labels[0]}\b")
                sentence = "one pair of brackets holds references and citations; split it."
                self.problems.add(page.chapter.file, line, sentence)
            elif any(found):
                return self.reference(page, cites)
            return None
        if node["t"] in ("Link", "Image"):
            page.lead(node)
        return None

    def reference(self, page: Page, cites: list[Node]) -> list[Node]:
        result: list[Node] = []
        for cite in cites:
            label = cite["citationId"][:1].lower() + cite["citationId"][1:]
            target = self.targets.get(label)
            if target is None or not target.number:
                why = "nothing has that label" if target is None else "what it names has no number"
                line = page.woven.line_of(rf"@(?i:{label[0]}){re.escape(label[1:])}\b")
                self.problems.add(
                    page.chapter.file, line, f"the reference @{label} cannot be resolved: {why}."
                )
                continue
            if label.startswith("sec-") and not page.number:
                line = page.woven.line_of(rf"@(?i:s){re.escape(label[1:])}\b")
                sentence = "by its title where the page has no number; link to it."
                self.problems.add(page.chapter.file, line, f"Quarto prints @{label} {sentence}")
            prefix = cite["citationPrefix"]
            if not prefix and cite["citationMode"]["t"] != "SuppressAuthor":
                prefix = [string(target.word)]
            words = [*prefix[:-1], string(_last_word(prefix) + "\u00a0")] if prefix else []
            place = f"{PAGE}{target.page.chapter.file}#{label}"
            if result:
                result += [string(","), {"t": "Space"}]
            result.append(link(place, ["crossref"], [*words, string(target.number)]))
            result += [{"t": "Space"}, *suffix] if (suffix := cite["citationSuffix"]) else []
        return result

    def address(self, page: Page, target: str, kind: str) -> None:
        """Checks where a link or image leads, and spells its place from the project's root."""
        if re.match(r"[a-zA-Z][\w+.-]*:|//", target):
            if kind == "image":
                self.dead(page, target, "an image must be a file of the project")
            return
        path, _, anchor = unquote(target).partition("#")
        folder = os.path.dirname(page.chapter.file)
        file = os.path.normpath(os.path.join(folder, path)) if path else page.chapter.file
        if other := self.files.get(file):
            if anchor and anchor not in other.found["identifiers"]:
                self.dead(page, target, f"{file} has no anchor #{anchor}")
            page.addresses[target] = f"{PAGE}{file}{'#' if anchor else ''}{anchor}"
        elif file.startswith("..") or not (self.root / file).is_file():
            self.dead(page, target, f"the {kind} leads to a file that does not exist")
        elif file.endswith(".qmd"):
            self.dead(page, target, "_quarto.yml does not list that chapter")
        else:
            page.addresses[target] = f"{PAGE}{file}"

    def dead(self, page: Page, target: str, why: str) -> None:
        line = page.woven.line_of(re.escape(target), re.escape(unquote(target)))
        self.problems.add(page.chapter.file, line, f"`{target}`: {why}.")


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

    def run(self) -> dict[str, Any]:
        """The numbered document, and what it gives to and asks of other pages."""
        title = self.title()
        identifier, classes, _ = attribute(title)
        kind = "Appendix" if self.page.chapter.appendix else "Chapter"
        if identifier.startswith("sec-"):
            self.targets.append((identifier, kind, self.number))
        title["c"][1] = [identifier, classes, [["number", self.number], ["kind", kind]]]
        title["c"][2] = walk(title["c"][2], self.change)
        blocks = [title, *walk(self.page.blocks, self.change)]
        self.problems.stop_if_any()
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
            "number": self.number,
            "targets": self.targets,
            "identifiers": sorted(identifiers - {""}),
            "lines": lines,
            "citing": [
                (number, keys)
                for number, line in enumerate(lines)
                if (keys := sources_cited(line)) or is_source_list(line)
            ],
            "runs": self.runs,
            "addresses": addresses,
            "blocks": json.dumps(blocks),  # as text, which a page that prints the same never parses
        }

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
        line = self.page.woven.line_of(*patterns)
        self.problems.add(self.page.chapter.file, line, sentence)

    def change(self, node: Node) -> Node | list[Node] | None:
        kind = node["t"]
        if kind in ATTRIBUTES:
            self.attributes(node)
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
        if kind in ("RawBlock", "RawInline"):
            form, text = node["c"]
            if form == "html" and text.startswith("<!--"):
                return []
            start = re.escape(text.strip().split("\n")[0])
            self.refuse(f"press does not pass on raw {form}: `{text.strip()[:40]}`.", start)
        elif kind == "Image":
            if not (attribute(node)[2].get("fig-alt") or plain_text(node["c"][1])):
                self.refuse("this image needs alt text.", re.escape(node["c"][2][0]))
        elif kind == "Math" and (gap := TEX_GAPS.search(node["c"][1])):
            self.refuse(f"the PDF cannot set `{gap[0]}` in math.", re.escape(gap[0]))
        elif kind == "Str" and (stray := STRAY.search(node["c"])):
            if stray[0] in self.page.woven.text:  # else it is escaped there, and meant
                self.refuse(STRAY_SENTENCES[stray.lastgroup or ""], re.escape(stray[0]))
        elif kind == "Code":  # Quarto's way to show what an inline value looks like
            node["c"][1] = node["c"][1].replace("{{python}}", "{python}")
        return None

    def attributes(self, node: Node) -> None:
        what, before, classes = ATTRIBUTES[node["t"]]
        identifier, own, values = attribute(node)
        unread = [f".{name}" for name in own if not re.fullmatch(classes, name)]
        unread += [f"{key}=" for key in values]
        unread += [f"#{identifier}"] if identifier.startswith("lst-") else []
        for name in unread:
            where = rf"{before}[^}}\n]*{re.escape(name)}"
            self.refuse(f"press does not read `{name}` on {what}.", where, re.escape(name))

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
            self.refuse(
                f"`{label}` stands in one format only, so numbers would differ.", definition(label)
            )
        self.counts[kind] += 1
        number = f"{self.number}.{self.counts[kind]}".lstrip(".")
        self.targets.append((label, WORDS[kind], number))
        return f"({number})" if kind == "eq" else f"{WORDS[kind]}\u00a0{number}"

    def drawing(self, image: Node, identifier: str, caption: list[Node], alt: str = "") -> Node:
        own, classes, values = attribute(image)
        where = re.escape(image["c"][2][0])
        for key in values.keys() - {"fig-alt", "width"} | set(classes):
            self.refuse(f"press does not read `{key}` on an image.", where)
        identifier = identifier or own
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
            self.refuse(
                f"a table's label begins `tbl-`, unlike `{identifier}`.", definition(identifier)
            )
            identifier = ""
        if identifier and not caption:
            self.refuse(f"the table `{identifier}` needs a caption.", definition(identifier))
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
                self.refuse(
                    f"the last paragraph of `{identifier}` must be its caption.",
                    definition(identifier),
                )
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
                self.refuse(f"`{identifier}` has two captions.", definition(identifier))
            return self.table(blocks[0], identifier, caption)
        if len(blocks) == 1 and identifier.startswith("fig-"):
            images = [node for node in nodes(blocks) if node["t"] == "Image"]
            if len(images) == 1 and blocks[0]["t"] in ("Para", "Figure"):
                return self.drawing(images[0], identifier, caption, values.get("fig-alt", ""))
        what = "figure" if identifier.startswith("fig-") else "table"
        self.refuse(
            f"`{identifier}` must hold one {what} and nothing else.", definition(identifier)
        )
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
        rest = list(inlines)
        while rest:
            inline = rest.pop(0)
            if not _is_display(inline):
                text.append(inline)
                continue
            self.change(inline)
            label = ""
            after = rest[1:] if rest and rest[0]["t"] in ("Space", "SoftBreak") else rest
            if after and (found := re.match(r"\{#(eq-[^}\s]+)\}(.*)", str(after[0].get("c", "")))):
                label = found[1]
                rest = ([string(found[2])] if found[2] else []) + after[1:]
            if any(i["t"] not in ("Space", "SoftBreak") for i in text):
                result.append({"t": "Para", "c": walk(text, self.change)})
            number = self.label(label)
            result.append(div(label, ["press-equation"], [plain(inline)], number=number))
            text = []
        if any(i["t"] not in ("Space", "SoftBreak") for i in text):
            result.append({"t": "Para", "c": walk(text, self.change)})
        return result


def definition(label: str) -> str:
    """The pattern of a place where a label is given, in a chapter that is woven."""
    return rf"#{re.escape(label)}(?=[\s}}])"


def _is_display(node: Node) -> bool:
    return bool(node["t"] == "Math" and node["c"][0]["t"] == "DisplayMath")


def _unnumbered(block: Node) -> Node:
    """A heading inside a callout is not a section."""
    if block["t"] == "Header":
        return {"t": "Para", "c": [{"t": "Strong", "c": block["c"][2]}]}
    return block


def _last_word(inlines: list[Node]) -> str:
    return plain_text(inlines[-1:])
