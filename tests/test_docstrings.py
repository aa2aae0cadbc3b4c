"""Docstrings open with a sentence that is understood without its neighbours, not a fragment."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("calc", "press", "tools", "figures", "benchmarks", "experiments", "tests")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
FRAGMENT = re.compile(
    r"(?:What|How|Why|Whether|Which|Who|Whom|Whose|Where|When|By|Of|With|Without|As|So|But|Not"
    r"|(?:At|For|From|In|On|To) (?:what|which|whom|whose|each|it|them)|That|Those|These|The same"
    r"|Its|It|Their|They|Them|All that|(?:All|Both|Each|One|Some) of (?:it|them|these|those)"
    r"|One that)\b"
)
REST = re.compile(r"(?:Of|Those|By|The same|Where|When|As|That|For each)\b")


def openings() -> Iterator[tuple[str, str, str]]:
    """Yield the folder of each docstring, where it stands, and its first line."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            path = file.relative_to(ROOT)
            folder = "/".join(path.parts[: 2 if room == "calc" else 1])
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                    yield folder, f"{path}:{node.body[0].lineno}", text.partition("\n")[0]


def attribute_openings() -> Iterator[tuple[str, str]]:
    """Yield where each text under a field or a constant stands, and how it begins."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                body = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
                for above, text in pairwise(body):
                    match above, text:
                        case (
                            ast.Assign() | ast.AnnAssign(),
                            ast.Expr(value=ast.Constant(value=str(words))),
                        ):
                            yield f"{file.relative_to(ROOT)}:{text.lineno}", words


def test_no_text_of_a_field_needs_its_name_to_be_understood() -> None:
    """A noun or a clause says what a field is, and not the rest of one that its name begins."""
    openings = dict(attribute_openings())
    assert len(openings) > 500
    assert {where: words for where, words in openings.items() if REST.match(words)} == {}


def test_no_docstring_opens_with_a_fragment() -> None:
    fragments: dict[str, list[tuple[str, str]]] = {}
    for folder, position, line in openings():
        if FRAGMENT.match(line):
            fragments.setdefault(folder, []).append((position, line))
    assert fragments == {}


@pytest.mark.parametrize(
    "line",
    [
        "What is learned, checked, for whom it was.",
        "Of whom nothing is expected, who overlaps, and who serves nobody.",
        "Those of them that are wanted.",
        "The same, where this share of each prompt is found in a prefix cache.",
        "In which format products are computed where nothing is said.",
        "All of them, in order.",
    ],
)
def test_fragments_are_told_from_sentences(line: str) -> None:
    assert FRAGMENT.match(line)
    assert not FRAGMENT.match("Return " + line[0].lower() + line[1:])


def test_sentences_are_none() -> None:
    assert not FRAGMENT.match("In BF16 a small step moves only small weights.")
    assert not FRAGMENT.match("Asymptotic rate of a link.")
    assert not FRAGMENT.match("One convolution; a dense layer is one of a single place.")
