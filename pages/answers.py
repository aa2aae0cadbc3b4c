"""The answers of all chapters on one page, which is where a reader on paper finds them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

from pages import ROOT, generated

FIRST_CELL = re.compile(r"^```\{python\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.*?)\s*\{#([\w-]+)[^}]*\}", re.MULTILINE)
ANSWER = re.compile(
    r'^::: \{\.callout-tip collapse="true" title="Answer to problem (\d+)"\}\n(.*?)^:::$',
    re.MULTILINE | re.DOTALL,
)
INTRODUCTION = """On the pages of the site each answer is folded under its problem.
Here they stand together, chapter by chapter."""
SEARCHED_ELSEWHERE = "---\nsearch: false\n---\n\n"  # the chapters hold the same words


def page() -> str:
    """The text of the page: a section for each chapter that sets problems."""
    sections = [section for path in _chapters() if (section := _section(path))]
    body = "\n\n".join([INTRODUCTION, *sections])
    return generated("Answers {.unnumbered}", "the chapters", body, SEARCHED_ELSEWHERE)


def _chapters() -> list[Path]:
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))["book"]
    parts = [each for each in book["chapters"] if isinstance(each, dict)]
    names = [name for part in parts for name in part["chapters"]]
    return [ROOT / name for name in names if name.startswith("chapters/")]


def _section(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    answers = ANSWER.findall(text)
    title = TITLE.search(text)
    if not answers or not title:
        return ""
    link = f"[{title[1]}](../chapters/{path.name}#{title[2]})"
    parts = [f"## {link} {{.unnumbered}}", _imports(text)]
    parts += [f"**Problem {number}.** {answer.strip()}" for number, answer in answers]
    return "\n\n".join(parts)


def _imports(text: str) -> str:
    """The chapter's first cell without its figures: what its inline values need."""
    cell = FIRST_CELL.search(text)
    assert cell, "a chapter with answers begins with a cell of imports"
    lines = [
        ast.unparse(node)
        for node in ast.parse(cell[1]).body
        if isinstance(node, ast.ImportFrom) and node.module != "figures"
    ]
    return "```{python}\n" + "\n".join(lines) + "\n```"
