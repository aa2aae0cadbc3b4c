"""The PDF: the whole book as one typst document, set with the theme's `book.typ`."""

from __future__ import annotations

import io
import json
import re
import shutil
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from press.book_files import FONTS, THEME, room_for
from press.document.dressing import Dresser
from press.document.page import PAGE, Page
from press.document.pandoc import Node, attribute, convert, plain, plain_text, raw
from press.document.showing import typst_width
from press.document.weave import FIGURE
from press.edition import Edition
from press.problems import Problems, stop, within
from press.reading.project import Book
from press.writing.html import COLOURED_TEXT, INK
from press.writing.site import roman

IMPORT = '#import "book.typ": *\n'

# How many characters a line of a table holds, and the space between two columns: of tables with
# up to as many columns, and of those with more, which the theme sets smaller and closer.
MANY_COLUMNS = 7
LINE, GAP, LONG_LINE, SMALL_GAP = 108, 3, 116, 2
LEDGER_LINE = 70  # of a page that is set small in two columns

# A table of fewer lines stands where it is written, since the gap before it is small, and one of
# more is broken over pages; the others float to the head or the foot of a page.
FEW_LINES, MANY_LINES = 7, 26
FIRST_PAGE = 4000  # letters that the first page of a chapter holds at most
# A short table so few letters after one that floats does so too, or it could stand before it.
BEHIND_A_FLOAT = 3000
# A callout of more letters than these is broken over pages, so as to leave no hole.
LONG_CALLOUT = 400

# How an address begins that stands for a place in the book, as the theme's `to` writes it, and how
# far above that place a reader sees the page, in points, as typst has it.
INSIDE, SPACE_ABOVE = "inside:", 10

# Each word of code is told by its kind, of which `book.typ` says the look.
BY_KIND: dict[str, dict[str, object]] = {"text-styles": {"Normal": {}}}

# Pandoc's typst for these is wrong or too wide.
TEX_FIXES = [(r"\\!", ""), (r"\\[;:>](?![a-zA-Z])", r"\\,"), (r"\{,\}", r"\\text{,}")]


class Set(TypedDict):
    """A page in typst."""

    typst: str
    log: str  # pandoc's warnings
    pictures: dict[str, str]  # the name of each picture in it, by its address
    leads_to: list[str]  # the labels that its links lead to


def page_typst(page: Page, left_out: list[str]) -> Set | None:
    """A page as typst, but for those that are `left_out` of the PDF: links to them lead nowhere."""
    if page.chapter.file in left_out:
        return None
    dresser = _Typst(page, left_out)
    blocks: list[Node] = []
    for block in page.blocks:
        blocks += dresser.dress([block])
        dresser.letters += len(plain_text([block]))
    with within(page.chapter.file):
        text, log = convert(blocks, "typst-citations", highlight_method=BY_KIND)
    leads_to = sorted(dresser.leads_to)
    return {"typst": text, "log": log, "pictures": dresser.pictures, "leads_to": leads_to}


def write_pdf(
    book: Book,
    edition: Edition,
    every_page: list[Page],
    of_each: list[Set | None],
    folder: Path,
    target: Path,
) -> None:
    """Makes the PDF; `folder` is an empty one for the sources that typst reads."""
    import pikepdf

    printed = [(page, text) for page, text in zip(every_page, of_each, strict=True) if text]
    _check_math(printed)
    for page, text in printed:
        for source, name in text["pictures"].items():
            if source.startswith(FIGURE):
                drawing = page.woven.figures[source.removeprefix(FIGURE)]
                darker = re.sub(COLOURED_TEXT, _with_ink, drawing.svg)
                (folder / name).write_text(darker, "utf-8")
            else:
                shutil.copyfile(book.root / source.removeprefix(PAGE), folder / name)
    body = ""
    part = -1
    for number, (page, text) in enumerate(printed):
        chapter = page.chapter
        if chapter.part != part and chapter.part >= 0:
            title = _text(book.parts[chapter.part])
            body += f'#part("{roman(chapter.part + 1)}", [{title}])\n\n'
        part = chapter.part
        chapter_file = (
            f"chapter-{number}.typ"  # a file of its own, which typst reads again if it changes
        )
        (folder / chapter_file).write_text(f"{IMPORT}{text['typst']}\n", encoding="utf-8")
        body += f'#include "{chapter_file}"\n'
    opening = (
        f"{IMPORT}#show: book.with(title: [{_text(book.title)}], "
        f"subtitle: {f'[{_text(book.subtitle)}]' if book.subtitle else 'none'}, "
        f"authors: ({''.join(json.dumps(a, ensure_ascii=False) + ', ' for a in book.authors)}), "
        f'date: "{edition.date}", built: "{_built(edition)}", lang: "{book.lang[:2]}", '
        f"imprint: ({''.join(f'[{_text(paragraph)}], ' for paragraph in book.imprint)}))\n\n"
    )
    labels = sorted({label for _, text in printed for label in text["leads_to"]})
    closing = f"#places({''.join(f'{_quoted(label)}, ' for label in labels)})\n"
    (folder / "main.typ").write_text(opening + body + closing, encoding="utf-8")
    shutil.copyfile(THEME / "book.typ", folder / "book.typ")
    when = datetime.fromisoformat((edition.date or "1980-01-01") + "T00:00:00+00:00")
    stamp = int(when.timestamp())
    try:
        compiler = _compiler(folder / "main.typ")
        # In this order: what is compiled is read again by the next build, what is asked for is not.
        places = json.loads(compiler.query("<places>", field="value", one=True))
        pdf = compiler.compile(timestamp=stamp)
    except RuntimeError as error:
        stop(f"typst could not set the book: {str(error).strip().splitlines()[0]}")
    for number, (page, _) in enumerate(printed):
        if page.sheet:
            alone = f'#show: one-sheet\n#include "chapter-{number}.typ"\n'
            (folder / "sheet.typ").write_text(f"{IMPORT}{alone}", encoding="utf-8")
            sheet = room_for(target.parent, page.sheet)
            sheet.write_bytes(_compiler(folder / "sheet.typ").compile(timestamp=stamp))
    # typst writes each tag and each link by itself and in full; packed they take a third.
    (folder / "book.pdf").write_bytes(pdf)  # from a file it is packed in half the time
    packed = io.BytesIO()  # on a full disk pikepdf would end press without a word
    with pikepdf.open(folder / "book.pdf") as document:
        _lead_inside(document, {label: sheet for label, *sheet in places})
        document.save(
            packed, object_stream_mode=pikepdf.ObjectStreamMode.generate, deterministic_id=True
        )
    target.write_bytes(packed.getbuffer())


def _lead_inside(document: Any, places: dict[str, list[float]]) -> None:
    """Has each link that the theme's `to` made lead to its place, a page and a point on it."""
    from pikepdf import Array, Name

    pages = list(document.pages)
    for page in pages:
        for link in page.get(Name.Annots, []):
            address = bytes(link.A.URI).decode() if Name.A in link and Name.URI in link.A else ""
            if not address.startswith(INSIDE):
                continue
            number, x, y = places[address.removeprefix(INSIDE)]
            target = pages[int(number) - 1]
            top = float(target.mediabox[3])
            above = min(top, top - y + SPACE_ABOVE)
            link.Dest = Array([target.obj, Name.XYZ, round(x, 2), round(above, 2), 0])
            link.Contents = f"page {number}"
            del link[Name.A]


def _with_ink(text: re.Match[str]) -> str:
    """Letters in their hue with a fifth of ink, as the page mixes them."""
    hue, ink = (bytes.fromhex(colour[1:]) for colour in (text[2], INK))
    mixed = bytes((4 * ours + theirs) // 5 for ours, theirs in zip(hue, ink, strict=True))
    return f"{text[1]}#{mixed.hex()}"


@cache
def _compiler(main: Path) -> Any:
    """Kept while the process lives: what typst has set once, it does not set again."""
    import typst

    return typst.Compiler(main, root=main.parent, font_paths=[FONTS], ignore_system_fonts=True)


def _built(edition: Edition) -> str:
    version = f"Version {edition.version}" if edition.version else ""
    commit = f"built from commit {edition.commit}" if edition.commit else ""
    return ", ".join(filter(None, [version, commit]))


def _text(words: str) -> str:
    return re.sub(r"([\\#$*_`<>@\[\]~/=+\-])", r"\\\1", words)


def _check_math(printed: list[tuple[Page, Set]]) -> None:
    problems = Problems()
    refused = re.compile(r"Could not convert TeX math (.*?), rendering as TeX", re.DOTALL)
    for page, text in printed:
        for tex in map(str.strip, refused.findall(text["log"])):
            line = page.woven.line_of(re.escape(tex), re.escape(tex.split("\n")[0]))
            sentence = f"the PDF cannot set this math: `{' '.join(tex.split())[:60]}`."
            problems.add(page.chapter.file, line, sentence)
    problems.stop_if_any()


def _label(file: str, anchor: str) -> str:
    name = re.sub(r"[^\w]+", "-", file.removesuffix(".qmd"))
    return f"{name}--{anchor}" if anchor else f"{name}--start"


class _Typst(Dresser):
    """Turns one page's nodes into calls of the functions of `book.typ`."""

    without = "html"

    def __init__(self, page: Page, left_out: list[str]) -> None:
        super().__init__(page)
        self.left_out = left_out
        self.floats = True  # not out of a callout, or of a page that is set as one
        self.line = LINE  # how long a table may be
        self.waits = False  # for the first records of a ledger
        self.letters = 0  # before the block that is being dressed
        self.floated = -BEHIND_A_FLOAT  # letters before the last table that floats
        self.pictures: dict[str, str] = {}
        self.leads_to: set[str] = set()

    def anchor(self, identifier: str) -> str:
        return f"<{_label(self.page.chapter.file, identifier)}>" if identifier else "none"

    def picture(self, source: str) -> str:
        """The path of a picture as a typst string."""
        if source.startswith(FIGURE):
            name = source.removeprefix(FIGURE) + ".svg"
        else:
            name = re.sub(r"[^\w.]+", "-", source.removeprefix(PAGE))
        self.pictures[source] = name
        return _quoted(name)

    def on_math(self, node: Node) -> Node:
        form, tex = node["c"]
        for pattern, new in TEX_FIXES:
            tex = re.sub(pattern, new, tex)
        return {"t": "Math", "c": [form, tex]}

    def on_code(self, node: Node) -> Node:  # which pandoc, colouring code, would make plain text of
        return raw("typst", f"#raw({_quoted(node['c'][1])});", "RawInline")

    def on_image(self, node: Node) -> Node:
        path = self.picture(node["c"][2][0])
        _, _, values = attribute(node)
        alt = values.get("fig-alt", "") or plain_text(node["c"][1])
        image = f"image({path}, alt: {_quoted(alt)}{_width(values)})"
        return raw("typst", f"#box({image})", "RawInline")

    def on_span(self, node: Node) -> list[Node]:
        identifier, classes, values = attribute(node)
        marks = [f"#metadata(none){self.anchor(identifier)}"] if identifier else []
        if "index" in classes:
            entry = values.get("entry") or plain_text(node["c"][1])
            marks.append(f"#metadata({_quoted(entry)})<indexed>")
        return [*(raw("typst", mark, "RawInline") for mark in marks), *self.dress(node["c"][1])]

    def on_header(self, node: Node) -> Node:
        level = node["c"][0]
        identifier, classes, values = attribute(node)
        number = values.get("number", "")
        inside = _truth(self.page.chapter.part >= 0)
        if level == 1:
            opening = f'#chapter("{number}", ['
            closing = f"], {self.anchor('start')}, in-part: {inside})"
            if identifier:
                closing += f"#metadata(none){self.anchor(identifier)}"
            self.waits = "ledger" in classes
        else:
            opening = f'{self.records()}#section({level}, "{number}", ['
            closing = f"], {self.anchor(identifier)}, in-part: {inside})"
        return _wrapped(opening, self.dress(node["c"][2]), closing)

    def on_definitionlist(self, node: Node) -> list[Node]:
        """A term that leads to a place in the book ends with its page, as paper leads nowhere."""
        opening = self.records()
        items: list[Any] = [[self.dress(term), self.dress(of)] for term, of in node["c"]]
        for (term, _), (_, descriptions) in zip(node["c"], items, strict=True):
            for link in (each for each in term if each["t"] == "Link"):
                if label := self.label_of(link):
                    page = raw("typst", f"#page-of({_quoted(label)})", "RawInline")
                    descriptions[-1][-1]["c"].append(page)
        return [*([raw("typst", opening)] if opening else []), {**node, "c": items}]

    def records(self) -> str:
        """Return the rule before the first records of a page that is marked as a ledger."""
        if not self.waits:
            return ""
        self.waits, self.floats, self.line = False, False, LEDGER_LINE
        return "#show: ledger\n"

    def on_link(self, node: Node) -> list[Node] | None:
        if not node["c"][2][0].startswith(PAGE):
            return None
        words = self.dress(node["c"][1])
        label = self.label_of(node)
        if not label:
            return words
        self.leads_to.add(label)
        opening = raw("typst", f"#to({_quoted(label)})[", "RawInline")
        return [opening, *words, raw("typst", "]", "RawInline")]

    def label_of(self, link: Node) -> str:
        """Return the label of the place that a link leads to, "" where only the site carries it."""
        target = link["c"][2][0]
        file, _, anchor = target.removeprefix(PAGE).partition("#")
        printed = target.startswith(PAGE) and file.endswith(".qmd") and file not in self.left_out
        return _label(file, anchor) if printed else ""

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> list[Node]:
        path = self.picture(image["c"][2][0])
        alt = _quoted(values["alt"])
        body = raw("typst", f"#image({path}, alt: {alt}{_width(values)})")
        if not caption and not identifier:
            return _in("#align(center)[", [body])
        opening = f"#numbered-figure([{_named(values['label'])}], ["
        more = f'alt: {alt}, place: "{self.place()}"'
        return self.captioned(opening, caption, more, identifier, [body])

    def table(self, identifier: str, label: str, caption: list[Node], table: Node) -> list[Node]:
        body = self.dress([_fitted(table, self.line)])
        if not caption and not identifier:
            return body
        opening = f"#numbered-table([{_named(label)}], ["
        lines = _lines(table, caption)
        behind = self.letters - self.floated < BEHIND_A_FLOAT
        placement = self.place() if lines >= FEW_LINES or behind else "here"
        if placement != "here" and lines <= MANY_LINES:
            self.floated = self.letters
        more = f'place: "{"broken" if lines > MANY_LINES else placement}"'
        return self.captioned(opening, caption, more, identifier, body)

    def place(self) -> str:
        """Return the place of a figure; on a chapter's first page it is not above the title."""
        if not self.floats:
            return "here"
        return "foot" if self.letters < FIRST_PAGE else "float"

    def captioned(
        self, opening: str, caption: list[Node], more: str, identifier: str, body: list[Node]
    ) -> list[Node]:
        closing = raw("typst", f"], {more}, anchor: {self.anchor(identifier)})[")
        words = plain(*self.dress(caption))
        return [raw("typst", opening), words, closing, *body, raw("typst", "]")]

    def equation(self, identifier: str, number: str, math: list[Node]) -> Node:
        inlines = self.dress(math)
        if not identifier:
            return plain(*inlines)
        call = f'#numbered-equation("{number}", {self.anchor(identifier)})['
        return _wrapped(call, inlines, "]")

    def callout(self, kind: str, folded: bool, title: list[Node], body: list[Node]) -> list[Node]:
        if folded and kind == "note":  # what a page hides from those who know it, paper does not
            return self.dress(body)
        tall = _truth(len(plain_text(body)) > LONG_CALLOUT)
        head = _wrapped(f'#callout("{kind}", [', self.dress(title), f"], tall: {tall})[")
        return [head, *self.held(body), raw("typst", "]")]

    def held(self, blocks: list[Node]) -> list[Node]:
        """Blocks out of which nothing floats."""
        floats, self.floats = self.floats, False
        dressed = self.dress(blocks)
        self.floats = floats
        return dressed

    def block(self, identifier: str, classes: list[str], blocks: list[Node]) -> list[Node]:
        if classes == ["sheet"]:
            return _in("#sheet[", self.held(blocks))
        if classes == ["indexed"]:  # what a page lists by sections, paper lists by pages
            return [raw("typst", "#index-by-pages()")]
        inner = self.dress(blocks)
        if "fine-print" in classes:
            return _in("#fine-print[", inner)
        if "cell-output" in classes:
            return _in("#cell-output[", inner)
        if identifier == "refs":
            return _in("#references[", inner)
        if "csl-entry" in classes:
            return _in(f"#reference-entry({self.anchor(identifier)})[", inner)
        return inner


def _in(opening: str, blocks: list[Node]) -> list[Node]:
    return [raw("typst", opening), *blocks, raw("typst", "]")]


def _named(label: str) -> str:
    return f"{label}:" if label else ""


def _wrapped(opening: str, inlines: list[Node], closing: str) -> Node:
    return plain(raw("typst", opening, "RawInline"), *inlines, raw("typst", closing, "RawInline"))


def _lines(table: Node, caption: list[Node]) -> float:
    """Estimate how many lines a table takes, of which a page has some forty.

    Typst's `measure` would know; it takes as long as the setting of a third of the book.
    """
    *_, head, bodies, _ = table["c"]
    rows = len(head[1]) + sum(len(body[3]) for body in bodies)
    return float(rows + len(plain_text(table)) / 200 + len(plain_text(caption)) / 120)


def _fitted(table: Node, line: int) -> Node:
    """A table that is wider than a line, with widths for its columns.

    Typst would make all wide columns alike, and count a heading as wide although it can be broken.
    """
    attributes, caption, columns, head, bodies, foot = table["c"]
    rows = [*head[1], *(row for body in bodies for row in (*body[2], *body[3]))]
    plain_grid = all(len(cells) == len(columns) for _, cells in rows)
    if not plain_grid or any(width["t"] != "ColWidthDefault" for _, width in columns):
        return table
    texts = [[plain_text(cell[4]) for cell in cells] for _, cells in rows]
    line, gap = (LONG_LINE, SMALL_GAP) if len(columns) > MANY_COLUMNS else (line, GAP)
    least, whole, with_headings = [], [], []
    for column in zip(*texts, strict=True):
        unbroken = max(_length(word) for text in column for word in text.split(" "))
        lengths = [_length(text) for text in column]
        least.append(gap + unbroken)
        whole.append(gap + max([unbroken, *lengths[len(head[1]) :]]))
        with_headings.append(gap + max(lengths))
    if sum(with_headings) <= line:
        return table
    most, widths = max(whole), whole
    while most > 1 and sum(widths) > line:
        most *= 0.95
        widths = [max(few, min(all_, most)) for few, all_ in zip(least, whole, strict=True)]
    shares = [{"t": "ColWidth", "c": width / sum(widths)} for width in widths]
    fitted = [[align, share] for (align, _), share in zip(columns, shares, strict=True)]
    return {**table, "c": [attributes, caption, fitted, head, bodies, foot]}


def _length(text: str) -> float:
    """Return the width of a text in small letters: digits and capitals are wider."""
    return sum(1.15 if letter.isdigit() or letter.isupper() else 1.0 for letter in text)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _width(values: dict[str, str]) -> str:
    return f", width: {typst_width(values['width'])}" if "width" in values else ""
