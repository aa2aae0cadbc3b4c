"""Lists the digits that are typed in prose, where a book's numbers should be computed.

Read are the parsed chapters: text, captions, tables, titles, alt text and math. Not read are code,
ids, the targets of links, citations and computed values. Allowed are the names of `NAMES` (one a
line, `#` begins a comment), years that stand alone, and in math integers of up to three digits
without a unit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from .document import Node, Pandoc, attribute, nodes, plain_text, walk
from .errors import Problem
from .execute import Result
from .pages import parse_pages, read_sources
from .project import Book, Key, read_book
from .references import Page
from .source import Cell, Prose, Source
from .weave import math_spans, weave

NAMES = "chapters/names-with-digits.txt"
YEAR = r"(?<![\w.,])(?:19|20)\d\d(?![\w%]|[.,]\d)"
UNIT = (
    r"(?:[kMGTPE]?i?(?:B|b|bit|FLOPS?|OPS?|op|W|Wh|Hz|J)|[numµ]?s|[kcmµn]?m|[pnµm]J|°|"
    r"(?:token|byte|bit|cycle|parameter|request|sample|dollar|watt|second|minute|hour|day|GPU|"
    r"accelerator|device|layer)s?|USD|QPS)(?![\w])"
)
MATH_TYPED = re.compile(
    r"\d+[.,]\d+|\d+\{[.,]\}\d+|\d{4,}|\d+\s*\\%|"
    r"\d+(?:\\[,;:! ]|~|\s)*\\(?:text|textrm|mathrm|mathsf|operatorname)\{\s*" + UNIT
)
SPELLINGS = {"’": "['’]", "–": "(?:–|--)", "—": "(?:—|---)"}  # typed for a printed sign


def audit(root: Path) -> list[Problem]:
    """Every typed number that is not allowed, with the line on which it stands."""
    book = read_book(root)
    allowed = allowed_words(root)
    sources = read_sources(book)
    woven = [weave(source, _unrun(source)) for source in sources]
    with TemporaryDirectory() as memory:
        pages = parse_pages(book, woven, Pandoc(Path(memory)))
    found = [problem for text, key in _titles(book) for problem in _typed(book, text, key, allowed)]
    for page, source in zip(pages, sources, strict=True):
        found += Places(page, allowed).problems()
        for cell in source.pieces:
            if isinstance(cell, Cell) and "fig-alt" in cell.options:
                line = cell.option_lines.get("fig-alt", cell.line)
                found += [
                    Problem(source.file, line, excerpt)
                    for _, excerpt in typed_numbers(str(cell.options["fig-alt"]), allowed)
                ]
    return sorted(found)


def allowed_words(root: Path) -> re.Pattern[str]:
    path = root / NAMES
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = sorted(filter(None, (line.split("#")[0].strip() for line in lines)), key=len)
    spelled = [re.escape(name).replace(r"\ ", r"\s+") for name in reversed(names)]
    listed = rf"(?<![\w.])(?:{'|'.join(spelled)})(?:s|['’]s)?(?!\w|\.\d)|" if spelled else ""
    return re.compile(rf"{listed}{YEAR}(?!\s*{UNIT})")


def typed_numbers(text: str, allowed: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The numbers in a text that are not allowed, each with the words around it."""
    rest = allowed.sub(lambda match: "\0" * len(match[0]), text)
    for match in re.finditer(r"[^\s\0]*\d[^\s\0]*", rest):
        before = " ".join(text[: match.start()].split()[-3:])
        after = " ".join(text[match.end() :].split()[:3])
        yield match[0], f"{before} {match[0]} {after}".strip()


def _titles(book: Book) -> list[tuple[str, Key]]:
    own = [(book.title, "title"), (book.subtitle, "subtitle"), (book.description, "description")]
    parts = [key for key in book.lines if key[:2] == ("book", "chapters") and key[-1] == "part"]
    return [(text, ("book", key)) for text, key in own] + list(zip(book.parts, parts, strict=True))


def _typed(book: Book, text: str, key: Key, allowed: re.Pattern[str]) -> list[Problem]:
    line = book.lines.get(key, 1)
    return [Problem("_quarto.yml", line, excerpt) for _, excerpt in typed_numbers(text, allowed)]


def _unrun(source: Source) -> Result:
    """A result that holds no digit: what is computed is not typed."""
    value = {"data": {"text/markdown": "value"}}
    outputs = []
    for piece in source.pieces:
        if isinstance(piece, Cell):
            piece.options["eval"] = False
        outputs.append([value] * len(piece.inline_values()) if isinstance(piece, Prose) else [])
    return Result(outputs, [])


class Places:
    """Finds the typed numbers of a page in its document, and their lines in its source."""

    def __init__(self, page: Page, allowed: re.Pattern[str]) -> None:
        self.page = page
        self.allowed = allowed
        self.seen: Counter[str] = Counter()
        self.math = _blanked(page.woven.text)
        self.prose = re.sub(r"(?m)^[ \t]*\d+[.)] ", _blank, self.math)
        for start, end in math_spans(self.prose):
            blank = re.sub(r"[^\n]", " ", self.prose[start:end])
            self.prose = self.prose[:start] + blank + self.prose[end:]

    def problems(self) -> list[Problem]:
        captions = [{"t": "Plain", "c": inlines} for inlines in self.page.captions.values()]
        title = {"t": "Plain", "c": self.page.given_title}
        found: list[Problem] = []
        for node in nodes([title, *captions, *self.page.blocks]):
            if node["t"] in ("Para", "Plain", "Header"):
                inlines = node["c"][2] if node["t"] == "Header" else node["c"]
                text = plain_text(_read(inlines), ("Note", "Code", "Math", "Cite", "Image"))
                found += [self.problem(*typed) for typed in typed_numbers(text, self.allowed)]
            elif node["t"] == "DefinitionList":
                for term, _ in node["c"]:
                    text = plain_text(_read(term), ("Note", "Code", "Math", "Cite"))
                    found += [self.problem(*typed) for typed in typed_numbers(text, self.allowed)]
            elif node["t"] == "Math":
                tex = self.allowed.sub("", node["c"][1])
                found += [self.problem(m[0], f"${m[0]}$") for m in MATH_TYPED.finditer(tex)]
            elif node["t"] in ("Image", "Div"):
                texts = [attribute(node)[2].get("fig-alt", "")]
                texts += [plain_text(node["c"][1])] if node["t"] == "Image" else []
                for text in texts:
                    found += [self.problem(*typed) for typed in typed_numbers(text, self.allowed)]
        return found

    def problem(self, word: str, excerpt: str) -> Problem:
        """The n-th time that a word is found is its n-th place in the source."""
        source = self.math if excerpt.startswith("$") else self.prose
        core = word.strip("()[]“”‘’\"',;:.!?*…")
        # A source may mark parts of a word (x^2^, H~2~O, **3**x) and spells some signs otherwise.
        letters = r"[*_^~\\]*".join(SPELLINGS.get(sign, re.escape(sign)) for sign in core)
        spots = list(re.finditer(rf"(?<![^\W_]){letters}(?![^\W_])", source))
        nth = min(self.seen[core], len(spots) - 1)
        self.seen[core] += 1
        line = 1
        if spots:
            lines = self.page.woven.lines
            line = lines[source.count("\n", 0, spots[nth].start())][0]
        return Problem(self.page.chapter.file, line, excerpt)


def _read(inlines: list[Node]) -> list[Node]:
    """Inlines without what is not prose: bare addresses and the labels of equations."""

    def change(node: Node) -> list[Node] | None:
        address = node["t"] == "Link" and "uri" in attribute(node)[1]
        label = node["t"] == "Str" and re.match(r"\{#eq-", node["c"])
        return [] if address or label else None

    kept: list[Node] = walk(inlines, change)
    return kept


def _blanked(text: str) -> str:
    """A source with code, attributes, link targets and citation keys blanked, its lines unmoved."""
    pattern = (
        r"(?ms)^(`{3,})[^\n]*\n.*?^\1`*|(`+)(?!`).*?(?<!`)\2(?!`)|[{ ][#.][A-Za-z][\w:.-]*"
        r"|\]\([^)\n]*\)|@[\w:.-]+|<https?:[^>]*>"
    )
    return re.sub(pattern, _blank, text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
