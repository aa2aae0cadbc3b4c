"""Names say what they hold: local ones that fit everything are rare, and files of one name are."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *(
        f"calc/{path.name}"
        for path in sorted((ROOT / "calc").iterdir())
        if (path / "__init__.py").is_file()
    ),
    *("press", "tools/pages", "tools/ledger", "figures", "benchmarks", "experiments", "tests"),
)
VAGUE = ("place", "given", "known", "own", "found", "told")
MOST = 15
MOST_PAIRS = 10


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


def test_few_local_names_fit_everything() -> None:
    """Each is rare in all rooms together, and all of them are in each room."""
    counts: dict[str, Counter[str]] = {}
    for folder in FOLDERS:
        files = sorted((ROOT / folder).rglob("*.py"))
        every = (vague_names(path.read_text(encoding="utf-8")) for path in files)
        counts[folder] = sum(every, Counter[str]())
    assert not {folder for folder, names in counts.items() if names.total() >= MOST}
    together = sum(counts.values(), Counter[str]())
    assert not {name for name, count in together.items() if count >= MOST}


def pairs_of_one_name(files: Iterable[str]) -> list[tuple[str, str]]:
    """Return every two files of one name, but for those that Python names itself."""
    homes: dict[str, list[str]] = {}
    for file in sorted(files):
        if not (name := file.rpartition("/")[2]).startswith("__"):
            homes.setdefault(name, []).append(file)
    return [pair for alike in homes.values() for pair in combinations(alike, 2)]


def test_a_search_for_a_file_finds_one() -> None:
    rooms = ("calc", "press", "tools", "figures", "benchmarks", "experiments")
    files = (path for room in rooms for path in (ROOT / room).rglob("*.py"))
    pairs = pairs_of_one_name(path.relative_to(ROOT).as_posix() for path in files)
    assert len(pairs) < MOST_PAIRS, pairs


def test_each_two_files_of_one_name_are_a_pair() -> None:
    assert pairs_of_one_name(["a/roof.py", "b/roof.py", "c/roof.py"]) == [
        *(("a/roof.py", "b/roof.py"), ("a/roof.py", "c/roof.py"), ("b/roof.py", "c/roof.py"))
    ]
    assert not pairs_of_one_name(["a/__init__.py", "b/__init__.py", "a/roof.py", "a/roofs.py"])


def test_arguments_assignments_and_inner_functions_count() -> None:
    source = "def f(given):\n    for place in given:\n        found = [own for own in place]\n"
    assert vague_names(source) == dict.fromkeys(("given", "place", "found", "own"), 1)
    assert vague_names("def f(value):\n    told.known = value.given\n") == {}
