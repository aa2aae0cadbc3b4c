"""Derivations hold what something quotes, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.book.rendered import REPOSITORY
from tools.ledger.quotes import chapters

DERIVATIONS = [
    path
    for path in sorted((REPOSITORY / "calc" / "derivations").glob("[a-z]*.py"))
    if "(Claims):" in path.read_text(encoding="utf-8")
]
READERS = [
    *DERIVATIONS,
    *REPOSITORY.glob("figures/[a-z]*.py"),
    *REPOSITORY.glob("tools/pages/[a-z]*.py"),
]


def classes(path: Path) -> list[ast.ClassDef]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [node for node in body if isinstance(node, ast.ClassDef) and not node.decorator_list]


def given(owner: ast.ClassDef) -> Iterator[str]:
    """The public attributes and methods of a derivation."""
    for line in owner.body:
        if isinstance(line, ast.FunctionDef):
            yield line.name
        for target in line.targets if isinstance(line, ast.Assign) else []:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def read(part: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield what a part of the code reads of derivations, as (owner, name).

    Inside its own class a derivation is read by bare names, and as `cls`. One that is handed on as
    a whole may have any of its attributes read: they come with the owner "".
    """
    owner_name = part.name if isinstance(part, ast.ClassDef) else ""
    for node in ast.walk(part):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                yield owner_name if node.value.id == "cls" else node.value.id, node.attr
            yield "", node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield owner_name, node.id


def handed_on(part: ast.stmt) -> set[str]:
    """Names that a part of the code mentions without reading an attribute of them."""
    read_of = {id(node.value) for node in ast.walk(part) if isinstance(node, ast.Attribute)}
    names = (node for node in ast.walk(part) if isinstance(node, ast.Name))
    return {node.id for node in names if id(node) not in read_of}


def test_every_attribute_of_a_derivation_is_quoted_drawn_or_needed() -> None:
    quoted = " ".join(path.read_text(encoding="utf-8") for path in chapters())
    parts = [part for path in READERS for part in ast.parse(path.read_text(encoding="utf-8")).body]
    used = set(re.findall(r"\b([A-Z]\w*)\.(\w+)", quoted)).union(*map(read, parts))
    whole = set().union(*map(handed_on, parts))
    unused = [
        f"{owner.name}.{name}"
        for path in DERIVATIONS
        for owner in classes(path)
        for name in given(owner)
        if not name.startswith("_")
        and (owner.name, name) not in used
        and not (owner.name in whole and ("", name) in used)
    ]
    assert not unused, "no chapter, figure, page or other derivation reads these: take them out"
