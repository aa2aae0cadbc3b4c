"""The page of answers: on paper all of them, on the site the way to each chapter's problems."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import yaml

from tools.pages import ROOT, generated

FIRST_CELL = re.compile(r"^```\{python\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.*?)\s*\{#([\w-]+)[^}]*\}", re.MULTILINE)
PROBLEMS = re.compile(r"^## (Problems)\s*\{#([\w-]+)[^}]*\}", re.MULTILINE)
ANSWER = re.compile(
    r'^::: \{\.callout-tip collapse="true" title="Answer to problem (\d+)"\}\n(.*?)^:::$',
    re.MULTILINE | re.DOTALL,
)
INLINE = re.compile(r"`\{python\} ([^`]*)`")
NAME = re.compile(r"\b[A-Z]\w*\.[a-z]\w*")
ON_THE_SITE = """Each answer is folded under its problem; the PDF prints all of them here.
The problems stand at the ends of:"""
ON_PAPER = "The answers to the problems, chapter by chapter."
SEARCHED_ELSEWHERE = "---\nsearch: false\n---\n\n"  # the chapters hold the same words


def page() -> str:
    """The text of the page: on paper a section for each chapter that sets problems."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in chapters()}
    asking = {name: text for name, text in texts.items() if ANSWER.search(text)}
    links = "\n".join(f"- {_link(name, text, PROBLEMS)}" for name, text in asking.items())
    sections = "\n\n".join(_section(name, text) for name, text in asking.items())
    body = [_only("html", f"{ON_THE_SITE}\n\n{links}"), _only("typst", f"{ON_PAPER}\n\n{sections}")]
    return generated("Answers {.unnumbered}", "the chapters", "\n\n".join(body), SEARCHED_ELSEWHERE)


def _only(form: str, body: str) -> str:
    return f'::::: {{.content-visible when-format="{form}"}}\n{body}\n:::::'


@cache
def chapters() -> list[Path]:
    """The book's chapters, in its order."""
    book = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))["book"]
    parts = [part for part in book["chapters"] if isinstance(part, dict)]
    names = [name for part in parts for name in part["chapters"]]
    return [ROOT / name for name in names if name.startswith("chapters/")]


def _section(name: str, text: str) -> str:
    parts = [f"## {_link(name, text, TITLE)} {{.unnumbered}}", _imports(text)]
    for number, answer in ANSWER.findall(text):
        parts += [f"**Problem {number}.** {answer.strip()}", *_worked(answer)]
    return "\n\n".join(parts)


def _worked(answer: str) -> list[str]:
    """A small line of what the quoted results of an answer are by hand, if it quotes any."""
    names = dict.fromkeys(NAME.findall(" ".join(INLINE.findall(answer))))
    quoted = f"`{{python}} worked({', '.join(names)})`"
    return [f"::: {{.fine-print}}\n{quoted}\n:::"] if names else []


def _link(name: str, text: str, heading: re.Pattern[str]) -> str:
    title, label = TITLE.search(text), heading.search(text)
    assert title, f"{name} has answers, and a title without a label"
    assert label, f"{name} has answers, and problems without a label"
    return f"[{title[1]}](../chapters/{name}#{label[2]})"


def _imports(text: str) -> str:
    """The chapter's first cell without its figures: what its inline values need."""
    cell = FIRST_CELL.search(text)
    assert cell, "a chapter with answers begins with a cell of imports"
    lines = [
        ast.unparse(node)
        for node in ast.parse(cell[1]).body
        if isinstance(node, ast.ImportFrom) and node.module != "figures"
    ]
    lines.append("from calc.derivations import worked")
    return "```{python}\n" + "\n".join(lines) + "\n```"
