"""The guides of who works on this project name files, functions and tests that there are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDES = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "INVARIANTS.md"]
GUIDES += sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
FOLDERS = "calc|chapters|figures|press|tests|tools|experiments|benchmarks|backmatter|docs"
NAMED = rf"`((?:{FOLDERS})/[\w/.-]*)(?:::(\w+))?`"


@cache
def defined(path: Path) -> set[str]:
    """The functions and classes that stand in a file, outside of others."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in body if isinstance(node, kinds)}


@pytest.mark.parametrize("guide", GUIDES)
def test_what_a_guide_names_is_there(guide: str) -> None:
    text = (ROOT / guide).read_text(encoding="utf-8")
    for file, name in re.findall(NAMED, text):
        assert (ROOT / file).exists(), file
        assert not name or name in defined(ROOT / file), f"{file}::{name}"
    for link in re.findall(r"\]\(([^)]*)\)", text):
        assert link.startswith("https://") or (ROOT / guide).parent.joinpath(link).exists(), link


def test_each_invariant_has_its_test_and_its_fault() -> None:
    text = (ROOT / "INVARIANTS.md").read_text(encoding="utf-8")
    items = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    assert len(items) > 25
    for item in items:
        held, _, taught = item.partition("Taught by ")
        assert re.match(r"\*\*[^*]*[=≤≥<⇒≈(][^*]*\*\*", held), item
        assert re.search(r"`tests/[\w/]+\.py::[tT]est\w+`", held), item
        assert taught, item


def test_the_page_for_contributors_is_short_and_leads_to_every_recipe() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 300
    assert {guide for guide in GUIDES if guide.startswith("docs/")} <= set(
        re.findall(r"\]\(([^)]*)\)", text)
    )
