"""Puts results back where cells and inline values stood: a chapter as plain Markdown for pandoc.

Every line of the result knows the line of the source that it came from.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import astuple, dataclass, field
from typing import Any

from press.problems import Problems
from press.reading.source import CODE_SPAN, INLINE, Cell, Prose, Source
from press.running.execute import Outputs, Result

CELL_FILE = r"<ipython-input-\d+-\w+>"  # where a warning says that it comes from
LONGEST_WORD = 10_000
NO_CHARACTER = re.compile("[\0\ud800-\udfff]")  # NUL, and what is half of a character
# What no sentence means to say: no value, no number, and what Python's `repr` makes of an object.
NO_VALUE = re.compile(r"\b(?:None|nan|NaN|NaT|inf)\b|<.*>|\w\(", re.DOTALL)
NO_VALUE_AS_TEXT = re.compile(r"\A[-+]?nan\b| at 0x[0-9a-f]+>")
CARDS = "application/vnd.press.cards+json"  # what a page tells of a value, by the value's name
FIGURE = "press-figure:"  # the address of a figure that a cell drew, until it has a file


@dataclass(frozen=True)
class Drawing:
    """A figure as SVG, for a page and, where it is another, for a narrow one; and its alt text."""

    svg: str
    narrow: str
    alt: str


@dataclass
class Woven:
    file: str
    searched: bool
    lines: list[tuple[int, str]] = field(default_factory=list)
    figures: dict[str, Drawing] = field(default_factory=dict)
    cells: list[tuple[Cell, Outputs]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # of the project, that the cells run with
    cards: dict[str, dict[str, Any]] = field(default_factory=dict)  # of what cells and values give

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.lines) + "\n"

    def contents(self) -> list[Any]:
        """Return all that a page is made from; JSON can hold it."""
        drawings = {name: astuple(drawing) for name, drawing in self.figures.items()}
        cells = [(cell.code, outputs) for cell, outputs in self.cells]
        return [self.text, self.searched, drawings, cells, self.files, self.cards]

    def add(self, line: int, *texts: str) -> None:
        self.lines += [(line, part) for text in texts for part in text.split("\n")]

    def take_cards(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return an output without its cards, which the page keeps."""
        for name, card in data.get(CARDS, {}).items():
            self.cards.setdefault(name, {}).update(card)
        return {kind: shown for kind, shown in data.items() if kind != CARDS}

    def line_of(self, *patterns: str, occurrence: int = 0) -> int:
        """The source line where the first of the patterns that occurs does so (or does again)."""
        text = self.text
        for pattern in patterns:
            if matches := list(re.finditer(pattern, text)):
                match = matches[min(occurrence, len(matches) - 1)]
                return self.lines[text.count("\n", 0, match.start())][0]
        return 1


def weave(source: Source, result: Result) -> Woven:
    weaver = _Weaver(source)
    for piece, outputs in zip(source.pieces, result["pieces"], strict=True):
        if isinstance(piece, Prose):
            weaver.prose(piece, outputs)
        else:
            weaver.cell(piece, outputs)
    weaver.woven.files = result["files"]
    for line, text in weaver.woven.lines:
        if sign := NO_CHARACTER.search(text):
            weaver.refuse(line, f"here stands U+{ord(sign[0]):04X}, which no page can print.")
    weaver.problems.stop_if_any()
    return weaver.woven


class _Weaver:
    def __init__(self, source: Source) -> None:
        self.woven = Woven(source.file, source.searched)
        self.problems = Problems()
        captions = {
            cell.label: (cell.option_lines.get(key, cell.line), cell.options[key])
            for cell in source.pieces
            if isinstance(cell, Cell)
            for key in ("fig-cap", "tbl-cap")
            if key in cell.options
        }
        # Pandoc reads the text of metadata as Markdown: the title and the captions go there.
        self.woven.add(0, "---", "{")
        self.woven.add(source.title_line, f'"title": {_quoted(source.title)}, "captions": {{')
        for i, (label, (line, caption)) in enumerate(captions.items()):
            comma = "," if i else ""
            self.woven.add(line, f"{comma}{_quoted(label)}: {_quoted(caption.strip())}")
        self.woven.add(0, "}}", "---", "")

    def refuse(self, line: int, sentence: str) -> None:
        self.problems.add(self.woven.file, line, sentence)

    def prose(self, prose: Prose, values: Outputs) -> None:
        if not prose.lines:
            return
        text = prose.text
        numbers = [number for number, _ in prose.lines]
        parts: list[str] = []
        end = 0
        matches = list(INLINE.finditer(text))
        in_math = math_spans(text) if matches else []
        for match, expression, value in zip(matches, prose.inline_values(), values, strict=True):
            row = text[text.rfind("\n", 0, match.start()) + 1 :].lstrip().startswith("|")
            math = any(a < match.start() < b for a, b in in_math)
            data = self.woven.take_cards(value["data"])
            parts += [text[end : match.start()], self.value(*expression, data, math, row)]
            end = match.end()
        # An expression may span lines; its value never does, so the lines after it move up.
        for match in reversed(matches):
            first = text.count("\n", 0, match.start()) + 1
            del numbers[first : first + match[0].count("\n")]
        lines = "".join([*parts, text[end:]]).split("\n")
        self.woven.lines += zip(numbers, lines, strict=True)
        self.woven.add(numbers[-1], "")

    def value(self, line: int, expression: str, data: dict[str, Any], math: bool, row: bool) -> str:
        """An inline value as the Markdown that goes in its place."""
        shown, verbatim = shown_value(data)
        is_text = verbatim or str(data.get("text/plain"))[:1] in "'\""
        if NO_VALUE_AS_TEXT.search(shown) if is_text else NO_VALUE.search(shown):
            self.refuse(line, f"`{expression}` gives {shown}, which is nothing to print.")
        if "text/html" in data:
            self.refuse(line, f"`{expression}` gives HTML, which Quarto would print in its stead.")
        if math and not verbatim and shown != escaped(shown):
            sentence = f"`{expression}` is plain text, which Quarto escapes inside math;"
            self.refuse(line, f"{sentence} show it through an object with `_repr_markdown_`.")
        if not math and not verbatim:
            shown = escaped(shown)
        shown = shown.strip().replace("\n", " ")
        return re.sub(r"(?<!\\)\|", r"\\|", shown) if row else shown

    def cell(self, cell: Cell, outputs: Outputs) -> None:
        outputs = [
            output | {"data": self.woven.take_cards(output["data"])} if "data" in output else output
            for output in outputs
        ]
        shown: list[str] = []  # Markdown
        printed: list[str] = []  # plain text
        figures: list[str] = []
        for output in outputs if cell.options["output"] else []:
            data = output.get("data", {})
            if output["output_type"] == "stream":
                if output["name"] == "stdout" or cell.options["warning"]:
                    printed.append(re.sub(CELL_FILE, "cell.py", output["text"]))
            elif "text/html" in data:
                self.refuse(cell.line, "this cell gives text/html, which no PDF can show.")
            elif "text/markdown" in data:
                shown.append(str(data["text/markdown"]))
                if re.search(r"^[ \t]*:::", shown[-1], re.MULTILINE):
                    self.refuse(cell.line, "the Markdown of this cell holds a `:::` line.")
            elif "image/svg+xml" in data:
                figures.append(self.figure(cell, output, len(figures) + 1))
                shown.append(figures[-1])
            elif set(data) != {"text/plain"}:
                self.refuse(cell.line, f"press cannot print {', '.join(sorted(data))}.")
            elif not any("image/svg+xml" in other.get("data", {}) for other in outputs):
                printed.append(str(data["text/plain"]))  # beside a figure: what a call returned
        if any(re.search(rf"\S{{{LONGEST_WORD + 1}}}", text) for text in printed):
            sentence = f"this cell prints a word of more than {LONGEST_WORD} characters,"
            self.refuse(cell.line, f"{sentence} which takes the PDF minutes to set.")
        if cell.options["eval"]:
            self.check_label(cell, len(figures), len(shown), len(printed))
        self.woven.add(cell.line, "", f'::: {{.press-cell number="{len(self.woven.cells)}"}}')
        self.woven.cells.append((cell, outputs))
        if cell.options["echo"] and cell.code:
            code = _fenced(cell.code, " {.python}")
            self.woven.add(cell.line, "", "::: {.code-cell}", code, ":::")
        for text in printed:
            self.woven.add(cell.line, "", "::: {.cell-output}", _fenced(text), ":::")
        mark = f"#{cell.label} " if cell.label.startswith(("fig-", "tbl-")) else ""
        for text in shown:
            opening = f"::: {{{mark}.press-output}}"
            self.woven.add(cell.line, "", opening, "", text.strip("\n"), "", ":::")
        self.woven.add(cell.line, "", ":::", "")

    def figure(self, cell: Cell, output: dict[str, Any], number: int) -> str:
        name = re.sub(r"\W+", "-", f"{self.woven.file}-{cell.label or cell.line}-{number}")
        alt = " ".join(str(cell.options.get("fig-alt", "")).split())
        if not alt:
            self.refuse(cell.line, "this cell draws a figure and needs `fig-alt`.")
        svg = output["data"]["image/svg+xml"]
        narrow = output.get("narrow", svg)
        self.woven.figures[name] = Drawing(svg, narrow if narrow != svg else "", alt)
        return f"![]({FIGURE}{name})"

    def check_label(self, cell: Cell, figures: int, shown: int, printed: int) -> None:
        kind = cell.label[:4]
        wanted = {"fig-": figures, "tbl-": shown - figures}.get(kind, 1)
        if kind in ("fig-", "tbl-") and (wanted, shown + printed) != (1, 1):
            what = "figure" if kind == "fig-" else "Markdown table"
            sentence = f"the cell `{cell.label}` must give one {what}, not"
            self.refuse(cell.line, f"{sentence} {shown + printed} outputs.")


def shown_value(data: dict[str, Any]) -> tuple[str, bool]:
    """An inline value as Markdown, and whether it goes in verbatim: Quarto's rule."""
    if "text/markdown" in data:
        return str(data["text/markdown"]), True
    text = str(data["text/plain"])
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        try:
            return str(ast.literal_eval(text)), False
        except (SyntaxError, ValueError):
            return text[1:-1], False
    return text, False


def escaped(text: str) -> str:
    """`text` as Markdown that prints it and nothing else; numbers stay as they are."""
    if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text):
        return text
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def math_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of math in a text; dollars in code and inline values open none."""
    blank = INLINE.sub(lambda match: "x" * len(match[0]), text)
    blank = CODE_SPAN.sub(lambda match: "x" * len(match[0]), blank)
    pattern = r"(?<!\\)\$\$.+?\$\$|(?<![\\$])\$(?=\S)(?:[^$\\\n]|\\.|\n(?!\n))+?(?<=\S)\$(?!\d)"
    return [match.span() for match in re.finditer(pattern, blank, re.DOTALL)]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _fenced(text: str, attributes: str = "") -> str:
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    return f"{ticks}{attributes}\n{text.rstrip()}\n{ticks}"
