"""Tests that share what takes long are of one worker, and a process that they leave is named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.workers import ROOT, FilesTogether, group, left_behind


@pytest.mark.parametrize(
    ("test", "scope"),
    [
        ("tests/book/test_book.py::test_every_chapter_is_listed", "pages"),
        ("tests/book/test_search.py::test_a_word", "tests/book/test_search.py"),
        ("tests/book/test_published.py::test_a_name_means_one_derivation", "derivations"),
        ("tests/calc/test_energy.py::test_values_by_hand[a::b]", "tests/calc/test_energy.py"),
        ("calc/laws/roofline.py::calc.laws.roofline.attainable", "calc/laws/roofline.py"),
    ],
)
def test_files_of_a_group_go_together(test: str, scope: str) -> None:
    assert FilesTogether._split_scope(object.__new__(FilesTogether), test) == scope


def test_a_file_s_tests_are_all_of_its_group() -> None:
    """The scheduler reads the group once for a whole file, so no test has one of its own."""
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
    apart = [file for file, text in texts.items() if "\n@pytest.mark.xdist_group(" in text]
    assert apart == []
    assert sum(bool(group(file)) for file in files) > 15


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_lost_its_parent_is_named() -> None:
    command = ["sh", "-c", "sleep 60 >&2 & echo $!"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    number = done.stdout.strip()
    try:
        assert f"{number}: sleep 60" in [*left_behind()]
    finally:
        subprocess.run(["kill", number])
