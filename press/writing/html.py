"""A page as HTML, and what the site takes from it: its sections, entries of search, previews."""

from __future__ import annotations

import hashlib
import html
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote

from press.document.dressing import Dressed, Dresser
from press.document.page import PAGE, Page
from press.document.pandoc import (
    Node,
    attribute,
    convert,
    div,
    nodes,
    plain,
    plain_text,
    raw,
    span,
    string,
    walk,
)
from press.document.weave import FIGURE
from press.problems import within

SPACE = {"t": "Space"}
FACE = r"font-family: 'Inter'[^;\"]*; "  # which the page around a drawing sets already
WORDS_A_MINUTE = 200  # of text that has numbers in it; plain prose is read a fifth faster
DESCRIPTION = 160  # characters
SENTENCE = 24  # characters: more than a unit or a name has
WITHOUT_SCRIPTS = (  # where a live figure would have its button
    '<p class="live-note without-scripts">The inputs of this figure can be changed where'
    " JavaScript runs.</p>"
)
COVER = "<!--press-cover-->"  # before and after what the first page begins with
FORMULA = re.compile(
    r'<math display="(inline|block)" xmlns="[^"]*"><semantics>(.*?)'
    r'<annotation encoding="application/x-tex">(.*?)</annotation></semantics></math>'
    r"([.,;:!?)\]’”]*)",
    re.DOTALL,
)
# A hue that lines have can be too faint for letters: they take a part of the ink, dark or light.
COLOURED_TEXT = re.compile(r"(<text\b[^>]*?fill: )(#(?!f{6})[0-9a-f]{6})")
# What a cell of numbers holds: the number, and in it its fraction, and then the unit.
NUMBER = re.compile(r"(?P<whole>[≈−]?\s?\d(?:\s?\d)*(?P<fraction>\.\d+)?)(?P<unit>\D.*)?")
NONE = ("", "–")  # what a cell without a number holds
INK = "#1f2328"  # the figures' ink: the page's colour of text, light or dark


class Text(TypedDict):
    """Parts of a page that the site takes."""

    title: str
    title_html: str
    body: str
    summary: str
    sections: list[dict[str, Any]]
    search: list[dict[str, Any]]
    places: list[str]  # every id of the page
    previews: list[tuple[str, str]]
    cards: dict[str, dict[str, Any]]  # what the page tells of its values, by their names


def page_html(root: Path, page: Page) -> Text:
    body = _body(root, page)
    if page.number:
        body = body.replace("</h1>", f'</h1>\n<p class="reading-time">{_reading_time(page)}</p>', 1)
    title = re.search("(?s)<h1[^>]*>(.*?)</h1>", body)
    assert title  # each chapter has one
    return {
        "title": plain_text(page.title, skip=("Note", "Cite")),
        "title_html": _bare(title[1]),
        "body": body,
        "summary": _summary(body),
        "sections": _sections(body),
        "search": _search(page) if page.woven.searched else [],
        "places": re.findall(r'\bid="([^"]+)"', body),
        "previews": _previews(body),
        "cards": page.woven.cards,
    }


def _body(root: Path, page: Page) -> str:
    with within(page.chapter.file):
        body, _ = convert(_Html(page).dress(page.blocks), "html5", html_math_method="mathml")
    body = re.sub(FORMULA, _formula, body)
    # A long line of code scrolls, and not for pointers alone.
    body = body.replace('<pre class="sourceCode', '<pre tabindex="0" class="sourceCode')
    # What pandoc writes and nobody reads: an anchor for each line of code, a style for each cell.
    body = re.sub(r'<span id="cb[\d-]+"><a [^>]*aria-hidden[^>]*></a>(.*)</span>', r"\1", body)
    body = re.sub(r'(<div class="sourceCode") id="cb\d+"', r"\1", body)
    body = re.sub(r'<code\s+class="sourceCode[^"]*">', "<code>", body)
    body = body.replace(' style="text-align: left;"', "")
    body = body.replace(' style="text-align: right;"', ' class="right"')
    figure = r"<!--press-figure:([^\t]+)\t([^\t]*)\t(.*?)-->"
    return re.sub(figure, lambda match: _inline_svg(page, root, *match.groups()), body)


def _formula(match: re.Match[str]) -> str:
    """A formula in a box that may scroll, or that keeps the punctuation after it on its line."""
    display, marks, tex, punctuation = match.groups()
    # What pandoc writes and browsers assume: words in a formula stand upright.
    marks = re.sub(r'(<m(?:text|i)) mathvariant="normal">(?=[^<]{2}|[^<]*</mtext)', r"\1>", marks)
    tex = tex.replace('"', "&quot;")
    if display == "block":
        math = f'<math display="block" data-tex="{tex.strip()}">{marks}</math>'
        return f'<span class="math display">{math}</span>{punctuation}'
    data = f' data-tex="{tex}"' if len(tex) < SENTENCE else ""  # by which a symbol is known
    box = f'<span class="math inline"><math{data}>{marks}</math></span>'
    return f'<span class="unbroken">{box}{punctuation}</span>' if punctuation else box


class _Html(Dresser):
    without = "typst"

    def address(self, target: str) -> str:
        """Return the address of `press-page:FILE#ID` as seen from the page."""
        if not target.startswith(PAGE):
            return target
        file = target.removeprefix(PAGE)
        anchor = ""
        if chapter := re.fullmatch(r"(.*)\.qmd(#.*)?", file):
            file, anchor = f"{chapter[1]}.html", chapter[2] or ""
        this_page = self.page.chapter.href
        relative = (
            ""
            if file == this_page and anchor
            else os.path.relpath(file, os.path.dirname(this_page) or ".")
        )
        return quote(relative) + anchor

    def on_div(self, node: Node) -> Dressed:
        identifier, classes, values = attribute(node)
        if classes != ["live"]:
            return super().on_div(node)
        inner = [*self.dress(node["c"][1]), raw("html", WITHOUT_SCRIPTS)]
        return div(identifier, classes, inner, **values)

    def on_link(self, node: Node) -> Node:
        attributes, inlines, (target, title) = node["c"]
        return {"t": "Link", "c": [attributes, self.dress(inlines), [self.address(target), title]]}

    def on_image(self, node: Node) -> Node:
        attributes, inlines, (source, _) = node["c"]
        return {"t": "Image", "c": [attributes, inlines, [self.address(source), ""]]}

    def on_span(self, node: Node) -> Dressed:
        """Make a quoted value a `data` element with its key, by which its card is found."""
        _, classes, values = attribute(node)
        inlines = node["c"][1]
        if "q" not in classes:
            return None
        if not inlines:  # the mark of a table
            return []
        data = "".join(
            f' {name}="{html.escape(values[key])}"'
            for name, key in (("value", "value"), ("data-key", "key"))
            if key in values
        )
        opening = raw("html", f'<data class="q"{data}>', "RawInline")
        return [opening, *self.dress(inlines), raw("html", "</data>", "RawInline")]

    def on_table(self, node: Node) -> Dressed:
        """Mark a table of values by the key that its first cell carries."""
        attributes = node["c"][0]
        for inline in nodes(node["c"][3]):
            if inline["t"] == "Span" and "q" in attribute(inline)[1] and not inline["c"][1]:
                attributes = ["", [], [["key", attribute(inline)[2]["key"]]]]
        _align_points(node)
        return {"t": "Table", "c": [attributes, *self.dress(node["c"][1:])]}

    def on_header(self, node: Node) -> list[Node]:
        level = node["c"][0]
        identifier, classes, values = attribute(node)
        number = values.get("number", "")
        words = [span(["header-section-number"], [string(number)]), SPACE] if number else []
        if values.get("kind") == "Appendix" and number:
            words = [span(["appendix-number"], [string(f"Appendix\u00a0{number}")]), string(" — ")]
        inlines = [*words, *self.dress(node["c"][2])]
        heading = {"t": "Header", "c": [level, [identifier, classes, []], inlines]}
        return [heading] if level > 1 else _in('<header class="chapter-title">', [heading])

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> list[Node]:
        source = image["c"][2][0]
        if source.startswith(FIGURE) or source.endswith(".svg"):
            alt = html.escape(values["alt"])
            wide = values.get("width", "")
            picture = raw("html", f"<!--press-figure:{source}\t{wide}\t{alt}-->")
        else:
            width = [["width", values["width"]]] if "width" in values else []
            picture = plain(self.on_image({"c": [["", [], width], *image["c"][1:]]}))
        id_attribute = f' id="{identifier}"' if identifier else ""
        return [
            raw("html", f'<figure{id_attribute} class="figure"><div class="figure-content">'),
            picture,
            raw("html", "</div>"),
            *self.caption(values["label"], caption),
            raw("html", "</figure>"),
        ]

    def table(self, identifier: str, label: str, caption: list[Node], table: Node) -> list[Node]:
        name = plain_text([string(label)]) or "Table"
        kind = f"table-scroll{_of_words(table)}"
        role = "region" if label else "group"  # regions are landmarks, whose names differ
        scroll = f'<div class="{kind}" tabindex="0" role="{role}" aria-label="{name}">'
        whole = _in(scroll, self.dress([table]))
        words = self.caption(label, caption)
        if not words and not identifier:
            return whole
        id_attribute = f' id="{identifier}"' if identifier else ""
        return _in(f'<figure{id_attribute} class="table">', [*words, *whole])

    def equation(self, identifier: str, number: str, math: list[Node]) -> list[Node]:
        id_attribute = f' id="{identifier}"' if identifier else ""
        shown = f'<span class="equation-number">{number}</span>' if id_attribute else ""
        opening = raw("html", f'<div{id_attribute} class="equation">')
        return [opening, plain(*math), raw("html", f"{shown}</div>")]

    def callout(self, kind: str, folded: bool, title: list[Node], body: list[Node]) -> list[Node]:
        inner = "summary" if folded else "div"
        named = "" if folded else f' role="note" aria-label="{kind.capitalize()}"'
        opening = f'<div class="callout callout-{kind}"{named}>' + ("<details>" if folded else "")
        return [
            raw(
                "html",
                f'{opening}<{inner} class="callout-title"><span class="callout-icon" '
                'aria-hidden="true"></span><span class="callout-title-text">',
            ),
            plain(*self.dress(title)),
            raw("html", f'</span></{inner}><div class="callout-body">'),
            *self.dress(body),
            raw("html", "</div>" + ("</details>" if folded else "") + "</div>"),
        ]

    def block(self, identifier: str, classes: list[str], blocks: list[Node]) -> Dressed:
        if classes == ["cover"]:
            return [raw("html", COVER), *self.dress(blocks), raw("html", COVER)]
        if classes == ["sheet"]:
            parts = (_in("<section>", self.dress(part)) for part in _by_heading(blocks))
            return div(identifier, classes, [*chain.from_iterable(parts)])
        if identifier == "refs" and blocks:
            return self.sources(blocks)
        return self.dress(blocks) if "press-only-html" in classes else None

    def sources(self, blocks: list[Node]) -> list[Node]:
        """The list of sources, an item for each: a list to who hears the page, and light."""
        items: list[Node] = []
        for block in blocks:
            identifier, _, _ = attribute(block)
            lines = [plain(*walk(line["c"], _unmarked)) for line in self.dress(block["c"][1])]
            items += _in(f'<li id="{identifier}">', lines)
        # Safari takes a list without marks for none unless it says its role.
        return _in('<ul id="refs" class="references" role="list">', items)

    def caption(self, label: str, inlines: list[Node]) -> list[Node]:
        if not inlines and not label:
            return []
        name = [span(["caption-label"], [string(f"{label}:")]), SPACE] if label else []
        return _in("<figcaption>", [plain(*name, *self.dress(inlines))])


def _unmarked(node: Node) -> list[Node] | None:
    """Return what stands in a mark that citeproc leaves for letters to keep their case."""
    return walk(node["c"][1], _unmarked) if node["t"] == "Span" else None


def _by_heading(blocks: list[Node]) -> list[list[Node]]:
    """Each heading with what follows it: what a column may not part."""
    starts = [i for i, block in enumerate(blocks) if block["t"] == "Header"]
    return [blocks[i:j] for i, j in pairwise([0, *starts, len(blocks)]) if i < j]


def _of_words(table: Node) -> str:
    """The class of a table whose last column holds sentences, which a phone must not squeeze to
    single words, and of one of three columns or more without a number, which is a list there."""
    rows = [cells for body in table["c"][4] for _, cells in body[3] if cells]
    long = [[len(plain_text(cell[4])) > SENTENCE for cell in cells] for cells in rows]
    numbers = any(align["t"] == "AlignRight" for align, _ in table["c"][2])
    if not numbers and len(table["c"][2]) > 2 and any(map(any, long)):
        return " words-last words-only"
    return " words-last" if any(cells[-1] for cells in long) else ""


def _align_points(table: Node) -> None:
    """Puts the points of each column of numbers in one unit below one another.

    A number says in an attribute by what it is shorter than the longest fraction, and the style
    sheet leaves room for that: the text stays the number, for who copies it and for its card.
    """
    rows = [row for body in table["c"][4] for _, row in body[3]]
    for column, (alignment, _) in enumerate(table["c"][2]):
        if alignment["t"] != "AlignRight":
            continue
        cells = [row[column] for row in rows if column < len(row)]
        texts = [plain_text(cell[4]) for cell in cells]
        numbers = [NUMBER.fullmatch(text) for text in texts if text not in NONE]
        aligned = [match for match in numbers if match]
        if len(aligned) < len(numbers) or len({match["unit"] for match in aligned}) != 1:
            continue
        fractions = sum(match["fraction"] is not None for match in aligned)
        if aligned[0]["unit"] and 2 * fractions <= len(aligned):
            continue  # gaps between half the numbers and their unit would be worse
        longest = max((match["fraction"] or "" for match in aligned), key=len)
        for cell, text in zip(cells, texts, strict=True):
            match = NUMBER.fullmatch(text)
            number = match["whole"] if match else text
            missing = longest[len((match and match["fraction"]) or "") :]
            if missing and (match or not aligned[0]["unit"]):
                cell[4] = walk(cell[4], partial(_shorter, number, missing))


def _shorter(number: str, missing: str, node: Node) -> list[Node] | None:
    """The word that begins with a number, in two parts, of which the first has the attribute."""
    if node["t"] != "Str" or not number or not node["c"].startswith(number):
        return None
    short = {"t": "Span", "c": [["", [], [["missing", missing]]], [string(number)]]}
    return [short, string(node["c"].removeprefix(number))]


def _in(opening: str, blocks: list[Node]) -> list[Node]:
    """Blocks in an element, of which the opening tag is given."""
    name = re.split("[ >]", opening[1:])[0]
    return [raw("html", opening), *blocks, raw("html", f"</{name}>")]


def _inline_svg(page: Page, root: Path, source: str, width: str, label: str) -> str:
    """A figure as part of the page: as drawn, or once for a wide and once for a narrow page."""
    style = f' style="width: {width}; height: auto"' if width else ""
    if not source.startswith(FIGURE):
        name = re.sub(r"\W+", "-", source.removeprefix(PAGE))
        svg = (root / source.removeprefix(PAGE)).read_text(encoding="utf-8")
        return _opened(svg, name, f' aria-label="{label}"{style}')
    drawing = page.woven.figures[source.removeprefix(FIGURE)]
    name = hashlib.sha256(source.encode()).hexdigest()[:8]
    label = f' aria-label="{label}"'
    if not drawing.narrow:
        return _said_once(_opened(drawing.svg, f"w{name}", f"{label}{style}"), name)
    wide = _opened(drawing.svg, f"w{name}", f' class="wide"{label}{style}')
    return _said_once(wide + _opened(drawing.narrow, f"n{name}", f' class="narrow"{label}'), name)


def _opened(svg: str, name: str, attributes: str) -> str:
    """An SVG with ids and styles of its own, the page's colour of text, and these attributes."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1{name}-\2", svg)
    svg = re.sub(r"(?<=[>}])[^{}<>]+(?={[^{}<>]*}[^<>]*</style>)", rf"#{name} \g<0>", svg)
    svg = re.sub(r" (?:xmlns|version)[^ >]*|(?<= )xlink:(?=href)", "", svg)  # for files of its own
    svg = re.sub(FACE, "", svg)
    svg = svg.replace(INK, "currentColor").replace(INK.upper(), "currentColor")
    svg = re.sub(COLOURED_TEXT, r"\1color-mix(in srgb,\2 80%,currentColor)", svg)
    return svg.strip().replace("<svg", f'<svg role="img"{attributes} id="{name}"', 1)


def _said_once(figure: str, name: str) -> str:
    """Styles that repeat in the drawings of a figure, as classes: half of their bytes otherwise."""
    styles = Counter(re.findall(r' style="([^"]*)"', figure))
    classes = {style: f"s{number}" for number, style in enumerate(styles) if styles[style] > 1}
    for style, shared in classes.items():
        figure = figure.replace(f' style="{style}"', f' class="{shared}"')
    rules = "".join(f".{shared}{{{style}}}" for style, shared in classes.items())
    figure = re.sub(r"(<svg\b[^>]*>)", rf"\1<style>#d{name}{{{rules}}}</style>", figure, count=1)
    return f'<div id="d{name}">{figure}</div>'


def _bare(title: str) -> str:
    """The HTML of a title without its number, links and notes."""
    title = re.sub(r'<span class="(header-section|appendix)-number">.*?</span>(?: — )?', "", title)
    title = re.sub(r'<a [^>]*class="footnote-ref".*?</a>', "", title)
    return re.sub(r"</?(?:a|data)\b[^>]*>", "", title).strip()


def _sections(body: str) -> list[dict[str, Any]]:
    return [
        {
            "id": match[2],
            "level": int(match[1]),
            "number": _number(match[3]),
            "title_html": _bare(match[3]),
        }
        for match in re.finditer(r'<h([23])\b[^>]*? id="([^"]+)"[^>]*>(.*?)</h\1>', body, re.DOTALL)
    ]


def _number(title: str) -> str:
    match = re.search(r'<span class="header-section-number">(.*?)</span>', title)
    return match[1] if match else ""


def _reading_time(page: Page) -> str:
    """Return the reading time of the text alone: no formulas, tables, code and folded parts."""
    skip = ("Note", "Math", "Table", "CodeBlock")
    open_to_all = [block for block in _unwrapped(page.blocks[1:]) if not _folded(block)]
    minutes = round(len(plain_text(open_to_all, skip).split()) / WORDS_A_MINUTE)
    return f"About {minutes} minutes to read" if minutes > 1 else "About a minute to read"


def _folded(block: Node) -> bool:
    return block["t"] == "Div" and "collapse" in attribute(block)[2]


def _search(page: Page) -> list[dict[str, Any]]:
    """One entry a section: what the search box looks through. Math and code are left out."""
    skip = ("Note", "Math", "CodeBlock", "RawInline", "RawBlock")
    title = plain_text(page.title, skip)
    entries: list[dict[str, Any]] = []
    here: list[Node] = []

    def close(href: str, section: str) -> None:
        text = " ".join(plain_text(here, skip).split())
        entries.append({"title": title, "section": section, "href": href, "text": text})
        here.clear()

    href, section = page.chapter.href, ""
    for block in _unwrapped(page.blocks[1:]):
        if block["t"] == "Div" and "press-only-typst" in block["c"][0][1]:
            continue
        if block["t"] == "Header":
            close(href, section)
            href = f"{page.chapter.href}#{block['c'][1][0]}"
            section = plain_text(block["c"][2], skip)
        else:
            here.append(block)
    close(href, section)
    return entries


def _unwrapped(blocks: list[Node]) -> Iterator[Node]:
    """The blocks, and those that cells gave among them."""
    for block in blocks:
        if block["t"] == "Div" and "press-cell" in attribute(block)[1]:
            yield from block["c"][1]
        else:
            yield block


def _previews(body: str) -> list[tuple[str, str]]:
    """Return the previews of references: captions, equations, sources, openings of sections."""
    patterns = (
        r'<figure id="([^"]+)"[^>]*>(?:(?!</figure>).)*?<figcaption>(.*?)</figcaption>',
        r'<div id="(eq-[^"]+)" class="equation">(.*?)</div>',
        r'<li id="(ref-[^"]+)">(.*?)</li>',
    )
    previews = [
        (match[1], _unlinked(match[2], "data" if match[1].startswith("ref-") else "a|data"))
        for pattern in patterns
        for match in re.finditer(pattern, body, re.DOTALL)
    ]
    opening = (
        r'<h[1-4]\b[^>]*? id="(sec-[^"]+)"[^>]*>(.*?)</h[1-4]>(?:\s*</header>)?\s*(<p>.*?</p>)?'
    )
    for match in re.finditer(opening, body, re.DOTALL):
        title = f'<p class="preview-title">{_bare(match[2])}</p>'
        previews.append((match[1], title + _unlinked(match[3] or "", "a|data")))
    return previews


def _unlinked(text: str, tags: str) -> str:
    return re.sub(rf"</?(?:{tags})\b[^>]*>", "", text).strip()


def _summary(body: str) -> str:
    """The first sentences of a page, as many as a search engine shows of its description."""
    paragraph = re.search(r"(?s)</header>.*?<p>(.*?)</p>", body)
    text = re.sub(r"(?s)<math.*?</math>|<[^>]*>", "", paragraph[1] if paragraph else "")
    words = html.unescape(text).split()[:DESCRIPTION]  # of a letter at least, so that some are left
    short = list(accumulate(words, lambda all_so_far, word: f"{all_so_far} {word}"))
    fitting = [words for words in short if len(words) <= DESCRIPTION]
    if not fitting or len(fitting) == len(short):
        return fitting[-1] if fitting else ""
    return f"{fitting[-1]} …"
