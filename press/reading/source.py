"""One .qmd file split into prose and cells, each line with its number.

What press cannot render is refused here, where its line is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from press.book_files import text_of
from press.problems import BookError, Problems
from press.reading.project import EXECUTE, Chapter
from press.reading.settings import read_yaml

DEEPEST = 12  # blocks in one another
CALLOUTS = ["note", "tip", "important", "warning", "caution"]
# What a theme has a look for.
MARKS = ["sheet", "fine-print", "workbench", "planners", "sortable", "cover", "indexed"]
CELL_OPTIONS = ["label", "fig-cap", "fig-alt", "tbl-cap", *EXECUTE]

# Quarto's own pattern for an inline value; the expression holds no backtick.
INLINE = re.compile(r"(?<!`)`\{python\}[ \t]+([^`]+)`")
UNCLOSED_INLINE = re.compile(r"(?<!`)`\{python\}[ \t]")
OTHER_INLINE = re.compile(r"(?<!`)`\{(?!python\}|\{)(\w+)\}[ \t]")
CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
ANNOTATION = re.compile(r"(?:#|//|--|%)[ \t]*<\d+>[ \t]*$")  # of a line of code, as Quarto's
CODE_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$")
DIV_FENCE = re.compile(r"[ \t]*:{3,}[ \t]*(?:(\{.*\})[ \t]*:*|([\w.-]+)[ \t]*:*)?[ \t]*$")
ATTRIBUTE = re.compile(
    r"""\#(?P<id>[^\s}]+) | \.(?P<cls>[^\s}=]+)
      | (?P<key>[\w-]+)=(?:"(?P<a>(?:[^"\\`]|\\.|`[^`]*`)*)"|'(?P<b>[^']*)'|(?P<c>[^\s}]+))""",
    re.VERBOSE,
)


@dataclass
class Prose:
    lines: list[tuple[int, str]] = field(default_factory=list)  # line number, text

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.lines)

    def inline_values(self) -> list[tuple[int, str]]:
        """Each inline expression with the line on which it starts."""
        text = self.text
        return [
            (self.lines[text.count("\n", 0, match.start())][0], match[1].strip())
            for match in INLINE.finditer(text)
        ]


@dataclass
class Cell:
    line: int
    code: str
    options: dict[str, Any]
    option_lines: dict[str, int]

    @property
    def label(self) -> str:
        return str(self.options.get("label", ""))


@dataclass
class Source:
    file: str
    title: str
    title_line: int
    pieces: list[Prose | Cell]
    searched: bool  # whether the search box looks into it

    def code(self) -> list[Any]:
        """Return all that its results depend on: neither its prose nor where its cells stand."""
        return [self.file] + [
            [piece.code, piece.options]
            if isinstance(piece, Cell)
            else [expression for _, expression in piece.inline_values()]
            for piece in self.pieces
        ]


def read_source(
    root: Path, chapter: Chapter, execute: dict[str, bool], formats: list[str]
) -> Source:
    """The pieces of a chapter that one of the formats shows, so that no cell runs for nobody;
    `execute` holds the project's defaults for its cells."""
    text = text_of(root / chapter.file, chapter.file)
    # `splitlines` would end lines at form feeds and other signs that a cell's text may hold.
    reader = Reader(chapter.file, text.removesuffix("\n").split("\n"), execute, formats)
    reader.read()
    reader.problems.stop_if_any()
    return Source(chapter.file, reader.title, reader.title_line, reader.pieces, reader.searched)


class Reader:
    def __init__(
        self, file: str, lines: list[str], execute: dict[str, bool], formats: list[str]
    ) -> None:
        self.file = file
        self.lines = lines
        self.execute = dict(execute)
        self.formats = formats
        self.title = ""
        self.title_line = 1
        self.searched = True
        self.pieces: list[Prose | Cell] = [Prose()]
        self.problems = Problems()
        self.open_divs: list[tuple[int, str]] = []
        self.hidden = 0  # how many blocks are open within and with one that no format shows

    def refuse(self, line: int, sentence: str) -> None:
        self.problems.add(self.file, line, sentence)

    def read(self) -> None:
        i = self.front_matter()
        math_opened = 0
        while i < len(self.lines):
            line = self.lines[i]
            fence = CODE_FENCE.match(line)
            if fence and not math_opened and not (fence[2][0] == "`" and "`" in fence[3]):
                i = self.code(i, fence)
                continue
            i += 1
            hidden = self.hidden
            if not math_opened and ":::" in line and (div := DIV_FENCE.match(line)):
                line = self.div(i, line, div)
            elif "{{<" in line:
                self.refuse(i, "press does not render shortcodes (`{{< … >}}`).")
            elif other := OTHER_INLINE.search(line):
                self.refuse(i, f"press computes inline values in python, not in {other[1]}.")
            if "$$" in line:
                outside_code = CODE_SPAN.sub("code", line)
                if outside_code.replace(r"\$", "").count("$$") % 2:
                    math_opened = 0 if math_opened else i
            if not (hidden and self.hidden):  # such a block itself stays, empty
                self.prose(i, line)
        if math_opened:
            self.refuse(math_opened, "this `$$` is never closed.")
        for number, what in self.open_divs:
            self.refuse(number, f"this `::: {what}` is never closed.")
        for prose in self.pieces:
            if isinstance(prose, Prose):
                rest = INLINE.sub(lambda match: "\n" * match[0].count("\n"), prose.text)
                for match in UNCLOSED_INLINE.finditer(rest):
                    number = prose.lines[rest.count("\n", 0, match.start())][0]
                    self.refuse(number, "this inline value is empty or never closed by a backtick.")

    def prose(self, number: int, text: str) -> None:
        last = self.pieces[-1]
        if not isinstance(last, Prose):
            last = Prose()
            self.pieces.append(last)
        last.lines += [(number, part) for part in text.split("\n")]

    def front_matter(self) -> int:
        """The index of the first line after the front matter."""
        if not self.lines or self.lines[0].rstrip() != "---":
            return 0
        end = next(
            (i for i, s in enumerate(self.lines) if i and s.rstrip() in ("---", "...")), None
        )
        if end is None:
            self.refuse(1, "the front matter opened by this `---` is never closed.")
            return len(self.lines)
        try:
            settings, where = read_yaml("\n".join(self.lines[1:end]), self.file, 2)
        except BookError as error:
            self.problems += error.problems
            return end + 1
        for key, value in settings.items():
            line = where[(key,)]
            if key == "title":
                self.title, self.title_line = str(value), line
                if INLINE.search(self.title):
                    self.refuse(line, "Quarto computes no inline value here; use a `#` heading.")
            elif key == "execute" and isinstance(value, dict):
                self.execute |= self.execute_options(value, {k: where[key, k] for k in value})
            elif key == "search" and isinstance(value, bool):
                self.searched = value
            else:
                readable = "title, execute, and search (true or false)"
                self.refuse(line, f"press does not read `{key}` here; it knows {readable}.")
        return end + 1

    def execute_options(self, settings: dict[str, Any], where: dict[str, int]) -> dict[str, bool]:
        for key, value in settings.items():
            if key not in EXECUTE:
                self.refuse(where[key], f"press does not read the execute option `{key}`.")
            elif not isinstance(value, bool):
                self.refuse(where[key], f"`{key}` is true or false, not {value!r}.")
        return settings

    def code(self, start: int, fence: re.Match[str]) -> int:
        """Reads a fenced block that opens at index `start`; the index of the line after it."""
        indent, ticks, info = fence.groups()
        closing = re.compile(rf"[ \t]*{re.escape(ticks[0])}{{{len(ticks)},}}[ \t]*$")
        end = next(
            (i for i in range(start + 1, len(self.lines)) if closing.match(self.lines[i])), 0
        )
        number = start + 1
        if not end:
            self.refuse(number, f"the fence `{ticks}{info}` is never closed.")
            return len(self.lines)
        body = self.lines[start + 1 : end]
        for i, line in enumerate(body, number + 1):
            if ANNOTATION.search(line):
                self.refuse(i, "press does not render annotations of code (`# <1>`).")
        if info == "{python}":
            if indent:
                self.refuse(number, "a cell starts at the left margin.")
            self.cell(number, body)
        elif info.startswith("{=") or re.match(r"=\w+$", info):
            self.refuse(number, f"press does not pass on raw blocks (`{info}`).")
        elif re.match(r"\{\{|\{[^.#}]", info):
            self.refuse(number, f"press runs cells that open with `{{python}}`, not with `{info}`.")
        else:
            for i, line in enumerate(self.lines[start : end + 1], start + 1):
                if INLINE.search(line):
                    self.refuse(i, "inside a code block Quarto would compute this inline value.")
                if not self.hidden:
                    self.prose(i, line)
        return end + 1

    def cell(self, number: int, body: list[str]) -> None:
        count = next((i for i, s in enumerate(body) if not s.startswith("#|")), len(body))
        try:
            settings, where = read_yaml(
                "\n".join(s[2:].removeprefix(" ") for s in body[:count]), self.file, number + 1
            )
        except BookError as error:
            self.problems += error.problems
            return
        lines = {str(key[0]): line for key, line in where.items() if len(key) == 1}
        for key, value in settings.items():
            if key not in CELL_OPTIONS:
                self.refuse(
                    lines[key],
                    f"press does not read the cell option `{key}`; it knows "
                    f"{', '.join(CELL_OPTIONS)}.",
                )
            elif key not in EXECUTE and (not isinstance(value, str) or not value.strip()):
                self.refuse(lines[key], f"`{key}` needs text.")
            elif key not in EXECUTE and INLINE.search(value):
                self.refuse(
                    lines[key],
                    "Quarto computes no inline value in a cell option; put the cell in a "
                    "`::: {#fig-…}` or `::: {#tbl-…}` block whose last paragraph is the caption.",
                )
        self.execute_options({k: v for k, v in settings.items() if k in EXECUTE}, lines)
        label = str(settings.get("label", ""))
        for prefix, caption in (("fig-", "fig-cap"), ("tbl-", "tbl-cap")):
            if label.startswith(prefix) and caption not in settings:
                self.refuse(lines["label"], f"a cell labelled `{label}` needs `{caption}`.")
            if caption in settings and not label.startswith(prefix):
                self.refuse(lines[caption], f"`{caption}` needs a label that begins `{prefix}`.")
        options = self.execute | settings
        if not self.hidden:
            self.pieces.append(Cell(number, "\n".join(body[count:]).strip("\n"), options, lines))

    def div(self, number: int, line: str, fence: re.Match[str]) -> str:
        """Checks a line that opens or closes a block; the line to give to pandoc instead."""
        braces, name = fence.groups()
        if not braces and not name:
            if not self.open_divs:
                self.refuse(number, "this `:::` closes nothing.")
            else:
                self.open_divs.pop()
                self.hidden = max(0, self.hidden - 1)
            return line
        what = braces or name
        self.open_divs.append((number, what))
        self.hidden += self.hidden > 0
        if len(self.open_divs) == DEEPEST + 1:
            self.refuse(number, f"blocks nest too deep: this is the {DEEPEST + 1}th in another.")
        attributes = list(ATTRIBUTE.finditer(braces or f"{{.{name}}}"))
        classes = [m["cls"] for m in attributes if m["cls"]]
        identifier = next((m["id"] for m in attributes if m["id"]), "")
        values = {m["key"]: next(v for v in m.group("a", "b", "c") if v is not None)
                  for m in attributes if m["key"]}  # fmt: skip
        if identifier == "" and classes in [[f"callout-{kind}"] for kind in CALLOUTS]:
            allowed = ["title", "collapse"]
        elif classes == ["content-visible"] and values.get("when-format") in ("html", "typst"):
            allowed = ["when-format"]
            self.hidden = self.hidden or int(values["when-format"] not in self.formats)
        elif classes == ["content-visible"] and values.get("when-format") == "pdf":
            self.refuse(number, 'to Quarto "pdf" is LaTeX; this PDF\'s format is "typst".')
            return line
        elif identifier == "" and classes in [[mark] for mark in MARKS]:
            allowed = []
        elif identifier == "" and classes == ["live"] and values.get("model"):
            allowed = ["model"]
        elif not classes and identifier.startswith("fig-"):
            allowed = ["fig-alt"]
        elif not classes and (identifier == "refs" or identifier.startswith("tbl-")):
            allowed = []
        else:
            self.refuse(number, f"press does not render blocks like `::: {what}`.")
            return line
        for key in values.keys() - set(allowed):
            self.refuse(number, f"press does not read `{key}` in `::: {what}`.")
        if "title" not in values or "title" not in allowed:
            return line
        # A title may hold any Markdown, as a heading does: Quarto takes either.
        title = next(m for m in attributes if m["key"] == "title")
        inner = values["title"].replace(r"\"", '"')
        return line.replace(title[0], "", 1) + f"\n\n##### {inner}\n"
