"""Puts results back where cells and inline values stood: a chapter as plain Markdown for pandoc.

Every line of the result knows the line of the source that it came from.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any

from .errors import Problems
from .execute import Outputs, Result
from .source import INLINE, Cell, Prose, Source

FIGURE = "press-figure:"  # the address of a figure that a cell drew, until it has a file


@dataclass
class Woven:
    file: str
    lines: list[tuple[int, str]] = field(default_factory=list)
    figures: dict[str, tuple[str, str]] = field(default_factory=dict)  # name → SVG, alt text

    @property
    def text(self) -> str:
        return "\n".join(text for _, text in self.lines) + "\n"

    def add(self, line: int, *texts: str) -> None:
        self.lines += [(line, part) for text in texts for part in text.split("\n")]

    def line_of(self, *patterns: str, occurrence: int = 0) -> int:
        """The source line where the first of the patterns that occurs does so (or does again)."""
        text = self.text
        for pattern in patterns:
            if found := list(re.finditer(pattern, text)):
                match = found[min(occurrence, len(found) - 1)]
                return self.lines[text.count("\n", 0, match.start())][0]
        return 1


def weave(source: Source, result: Result) -> Woven:
    woven = Woven(source.file)
    problems = Problems()
    captions = {
        cell.label: (cell.option_lines.get(key, cell.line), cell.options[key])
        for cell in source.pieces
        if isinstance(cell, Cell)
        for key in ("fig-cap", "tbl-cap")
        if key in cell.options
    }
    # Pandoc reads the text of metadata as Markdown: captions and the title go there.
    woven.add(0, "---", "{")
    woven.add(
        source.title_line,
        f'"title": {json.dumps(source.title, ensure_ascii=False)}, "captions": {{',
    )
    for i, (label, (line, caption)) in enumerate(captions.items()):
        quoted = json.dumps(caption.strip(), ensure_ascii=False)
        woven.add(line, f"{',' if i else ''}{json.dumps(label)}: {quoted}")
    woven.add(0, "}}", "---", "")
    for piece, outputs in zip(source.pieces, result.pieces, strict=True):
        if isinstance(piece, Prose):
            _prose(piece, outputs, woven, problems)
        else:
            _cell(piece, outputs, woven, problems)
    problems.stop_if_any()
    return woven


def _prose(prose: Prose, values: Outputs, woven: Woven, problems: Problems) -> None:
    text = prose.text
    in_math = math_spans(text)
    parts: list[str] = []
    end = 0
    for match, (line, expression), value in zip(
        INLINE.finditer(text), prose.inline_values(), values, strict=True
    ):
        start_of_line = text.rfind("\n", 0, match.start()) + 1
        shown, verbatim = shown_value(value["data"])
        if any(a < match.start() < b for a, b in in_math):
            if not verbatim and shown != escaped(shown):
                problems.add(
                    woven.file,
                    line,
                    f"`{expression}` is plain text, which Quarto escapes inside math; "
                    "show it through an object with `_repr_markdown_`.",
                )
        elif not verbatim:
            shown = escaped(shown)
        shown = shown.strip().replace("\n", " ")
        if text[start_of_line:].lstrip().startswith("|"):
            shown = re.sub(r"(?<!\\)\|", r"\\|", shown)
        parts += [text[end : match.start()], shown]
        end = match.end()
    woven_text = "".join([*parts, text[end:]])
    # An expression may span lines; its value never does, so the lines after it move up.
    numbers = [number for number, _ in prose.lines]
    spans = {
        text.count("\n", 0, m.start()): m[0].count("\n")
        for m in INLINE.finditer(text)
        if "\n" in m[0]
    }
    for index in sorted(spans, reverse=True):
        del numbers[index + 1 : index + 1 + spans[index]]
    woven.lines += zip(numbers, woven_text.split("\n"), strict=True)
    woven.add(numbers[-1] if numbers else 0, "")


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
    blank = INLINE.sub(lambda m: "x" * len(m[0]), text)
    blank = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda m: "x" * len(m[0]), blank)
    pattern = r"(?<!\\)\$\$.+?\$\$|(?<![\\$])\$(?=\S)(?:[^$\\\n]|\\.|\n(?!\n))+?(?<=\S)\$(?!\d)"
    return [match.span() for match in re.finditer(pattern, blank, re.DOTALL)]


def _cell(cell: Cell, outputs: Outputs, woven: Woven, problems: Problems) -> None:
    shown: list[str] = []  # Markdown
    printed: list[str] = []  # plain text
    figures = tables = 0
    for output in outputs if cell.options["output"] else []:
        if output["output_type"] == "stream":
            if output["name"] == "stdout" or cell.options["warning"]:
                printed.append(output["text"])
            continue
        data = output["data"]
        if "text/markdown" in data:
            shown.append(str(data["text/markdown"]))
            tables += 1
            if re.search(r"^[ \t]*:::", shown[-1], re.MULTILINE):
                problems.add(woven.file, cell.line, "the Markdown of this cell holds a `:::` line.")
        elif "image/svg+xml" in data:
            figures += 1
            name = re.sub(r"\W+", "-", f"{woven.file}-{cell.label or cell.line}-{figures}")
            alt = " ".join(str(cell.options.get("fig-alt", "")).split())
            woven.figures[name] = (data["image/svg+xml"], alt)
            if "fig-alt" not in cell.options:
                problems.add(woven.file, cell.line, "this cell draws a figure and needs `fig-alt`.")
            shown.append(f"![]({FIGURE}{name})")
        elif set(data) == {"text/plain"}:
            if not (figures or any("image/svg+xml" in o.get("data", {}) for o in outputs)):
                printed.append(str(data["text/plain"]))
        else:
            problems.add(
                woven.file,
                cell.line,
                f"this cell gives {', '.join(sorted(data))}; press prints Markdown, matplotlib "
                "figures and plain text.",
            )
    for prefix, count, what in (("fig-", figures, "figure"), ("tbl-", tables, "Markdown table")):
        given = len(shown) + len(printed)
        if cell.options["eval"] and cell.label.startswith(prefix) and (count != 1 or given != 1):
            sentence = f"the cell `{cell.label}` must give one {what}, not {given} outputs."
            problems.add(woven.file, cell.line, sentence)
    if cell.options["echo"] and cell.code:
        woven.add(cell.line, "", "::: {.code-cell}", _fenced(cell.code, " {.python}"), ":::")
    for text in printed:
        woven.add(cell.line, "", "::: {.cell-output}", _fenced(text), ":::")
    numbered = cell.label.startswith(("fig-", "tbl-"))
    for text in shown:
        mark = f"#{cell.label} " if numbered else ""
        woven.add(cell.line, "", f"::: {{{mark}.press-output}}", "", text.strip("\n"), "", ":::")
    woven.add(cell.line, "")


def _fenced(text: str, attributes: str = "") -> str:
    ticks = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    return f"{ticks}{attributes}\n{text.rstrip()}\n{ticks}"
