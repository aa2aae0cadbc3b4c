"""Local names of functions say what they hold: words that fit everything stay rare."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *(f"calc/{room}" for room in ("catalog", "commands", "core", "formats", "laws", "networks")),
    *(f"calc/{room}" for room in ("steps", "planning", "simulation", "codesign", "measure")),
    *("press", "tools/pages", "benchmarks"),
)
VAGUE = ("place", "given", "known", "own", "found", "told")
MOST = 15


def vague_names(source: str) -> Counter[str]:
    """Return in how many functions each vague name is an argument or is assigned."""
    counts: Counter[str] = Counter()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
            assigned = {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            counts.update((arguments | assigned) & {*VAGUE})
    return counts


@pytest.mark.parametrize("folder", FOLDERS)
def test_few_local_names_fit_everything(folder: str) -> None:
    counts: Counter[str] = Counter()
    for path in sorted((ROOT / folder).rglob("*.py")):
        counts += vague_names(path.read_text(encoding="utf-8"))
    assert not {name for name, count in counts.items() if count >= MOST}
    assert counts.total() < MOST


def test_arguments_assignments_and_inner_functions_count() -> None:
    source = "def f(given):\n    for place in given:\n        found = [own for own in place]\n"
    assert vague_names(source) == dict.fromkeys(("given", "place", "found", "own"), 1)
    assert vague_names("def f(value):\n    told.known = value.given\n") == {}
