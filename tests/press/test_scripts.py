"""Scripts of a book that run before it is read, and the chapters that they list."""

from __future__ import annotations

from pathlib import Path

import pytest

from press.audit import audit
from press.build import render
from tests.press.tiny_book import WITHOUT_PDF, Write, page_of, refusal, rendered, said

SETTINGS = WITHOUT_PDF.replace(
    "type: book\n", "type: book\n  pre-render: scripts/write.py made\n"
).replace("format:", "  references: last.qmd\nmetadata-files: [made/list.yml]\nformat:")

# Writes a chapter of what a file says, a list with it, and a line for each time that it runs.
WRITE = """
import sys
from pathlib import Path

folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
(folder / "page.qmd").write_text("# Made\\n\\nOf " + Path("source.txt").read_text())
(folder / "list.yml").write_text("book:\\n  chapters:\\n    - made/page.qmd\\n")
with Path(".runs").open("a") as runs:
    runs.write("ran\\n")
"""
FILES = {"scripts/write.py": WRITE, "source.txt": "oak."}


@pytest.fixture
def root(write_book: Write) -> Path:
    book = write_book("# A\n", FILES, SETTINGS)
    (book / "last.qmd").write_text("# Last\n")  # which the settings name elsewhere
    return book


def runs(root: Path) -> int:
    return len((root / ".runs").read_text().splitlines())


def test_chapters_that_a_script_writes_and_lists_stand_before_the_references(root: Path) -> None:
    assert "Of oak." in said(rendered(root), "made/page")
    page = page_of(root, "made/page")
    assert page.index("<b>2</b><span>Made</span>") < page.index("<b>3</b><span>Last</span>")


def test_scripts_run_until_they_change_nothing_and_then_after_a_change_alone(root: Path) -> None:
    assert runs(rendered(root)) == 2
    assert render(root).startswith("Nothing has changed")
    assert audit(root) == []
    assert runs(root) == 2
    (root / "source.txt").write_text("ash.")
    assert "Of ash." in said(rendered(root), "made/page")
    assert runs(root) == 4
    (root / "made" / "page.qmd").write_text("# By hand\n")
    assert "Of ash." in said(rendered(root), "made/page")


WRONG = [  # a script, the list that lies there, and what is said of them
    ("import sys\nsys.exit('no oak')", "",
     "_quarto.yml:3: the script scripts/write.py failed: no oak"),
    ("import time; open('x', 'w').write(str(time.time_ns()))", "",
     "_quarto.yml:3: these scripts change x each time they run."),
    ("", "  title: B\n  chapters: [last.qmd]\n",
     "made/list.yml:2: press does not read the key `book.title`; here it knows chapters."),
    ("", "  chapters:\n    - no.qmd\n", "made/list.yml:3: the chapter no.qmd does not exist."),
    ("", "  chapters: none\n", "made/list.yml:2: `chapters` must be a list of .qmd files."),
]  # fmt: skip


@pytest.mark.parametrize(("script", "listed", "sentence"), WRONG)
def test_what_goes_wrong_is_told_by_its_file_and_line(
    script: str, listed: str, sentence: str, root: Path
) -> None:
    (root / "scripts" / "write.py").write_text(script)
    if listed:
        (root / "made").mkdir()
        (root / "made" / "list.yml").write_text(f"book:\n{listed}")
    assert sentence in refusal(root)
