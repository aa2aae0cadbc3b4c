"""Scripts of a book that run before it is read, and the chapters that they list."""

from __future__ import annotations

from pathlib import Path

import pytest

from press.audit import audit
from press.build import render
from tests.page_texts import page_texts
from tests.press.tiny_book import WITHOUT_PDF, Write, refusal

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
FILES = {"scripts/write.py": WRITE, "source.txt": "oak.", "last.qmd": "# Last\n"}


def write_files(root: Path, files: dict[str, str] = FILES) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def book(write_book: Write) -> Path:
    return write_files(write_book("# A\n", settings=SETTINGS))


def runs(root: Path) -> int:
    return len((root / ".runs").read_text().splitlines())


def test_chapters_that_a_script_writes_and_lists_stand_before_the_references(book: Path) -> None:
    render(book)
    assert "Of oak." in page_texts(book / "_book")["made/page.html"]
    page = (book / "_book" / "made" / "page.html").read_text(encoding="utf-8")
    assert page.index("<b>2</b><span>Made</span>") < page.index("<b>3</b><span>Last</span>")


def test_scripts_run_until_they_change_nothing_and_then_after_a_change_alone(book: Path) -> None:
    render(book)
    assert runs(book) == 2
    assert render(book).startswith("Nothing has changed")
    assert audit(book) == []
    assert runs(book) == 2
    (book / "source.txt").write_text("ash.")
    render(book)
    assert "Of ash." in page_texts(book / "_book")["made/page.html"]
    assert runs(book) == 4
    (book / "made" / "page.qmd").write_text("# By hand\n")
    render(book)
    assert "Of ash." in page_texts(book / "_book")["made/page.html"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            {"scripts/write.py": "import sys\nsys.exit('no oak')"},
            "_quarto.yml:3: the script scripts/write.py failed: no oak",
        ),
        (
            {"scripts/write.py": "import time; open('x', 'w').write(str(time.time_ns()))"},
            "_quarto.yml:3: these scripts change x each time they run.",
        ),
        (
            {
                "scripts/write.py": "",
                "made/list.yml": "book:\n  title: B\n  chapters: [last.qmd]\n",
            },
            "made/list.yml:2: press does not read the key `book.title`; here it knows chapters.",
        ),
        (
            {"scripts/write.py": "", "made/list.yml": "book:\n  chapters:\n    - no.qmd\n"},
            "made/list.yml:3: the chapter no.qmd does not exist.",
        ),
        (
            {"scripts/write.py": "", "made/list.yml": "book:\n  chapters: none\n"},
            "made/list.yml:2: `chapters` must be a list of .qmd files.",
        ),
    ],
)
def test_what_goes_wrong_is_told_by_its_file_and_line(
    files: dict[str, str], sentence: str, write_book: Write
) -> None:
    root = write_files(write_book("# A\n", settings=SETTINGS), FILES | files)
    assert sentence in refusal(root)
