"""A book is rendered again whenever anything that it was made from has changed: wherever that lies,
however a cell comes by it. What press cannot see is here too, as it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from press.build import render
from tests.draws import of_a_kind
from tests.press.tiny_book import PIXEL, WITHOUT_PDF as HTML, Write, cell, said

pytestmark = pytest.mark.slow


def unchanged(root: Path) -> bool:
    return render(root).startswith("Nothing has changed")


def settled(root: Path) -> Path:
    """Renders until nothing changes: a cell that lists what it makes itself is run once more."""
    for _ in range(3):
        if unchanged(root):
            return root
    pytest.fail("each render changes something for the next")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_a_chapter_of_a_linked_folder_is_seen(write_book: Write, elsewhere: Path) -> None:
    root = write_book("# A\n", settings=HTML.replace("- index.qmd", "- index.qmd\n    - far/b.qmd"))
    (elsewhere / "b.qmd").write_text("# B\n\nOld.\n")
    (root / "far").symlink_to(elsewhere)
    settled(root)
    (elsewhere / "b.qmd").write_text("# B\n\nNew.\n")
    assert not unchanged(root)
    assert "New." in said(root, "far/b")


@pytest.mark.parametrize("folder", of_a_kind([".hidden", "linked"]))
@pytest.mark.parametrize("use", ["![x]({}/a.png){{fig-alt=x}}", "See [x]({}/a.png)"])
def test_an_image_and_a_file_are_seen_where_they_are(
    folder: str, use: str, write_book: Write, elsewhere: Path
) -> None:
    root = write_book(f"# A\n\n{use.format(folder)}\n", settings=HTML)
    if folder == "linked":
        (root / folder).symlink_to(elsewhere)
    else:
        (root / folder).mkdir()
    (root / folder / "a.png").write_bytes(PIXEL)
    settled(root)
    (root / folder / "a.png").write_bytes(PIXEL + b"more")
    assert not unchanged(root)
    assert (root / "_book" / folder / "a.png").read_bytes() == PIXEL + b"more"


def test_a_bibliography_of_a_hidden_folder_is_seen(write_book: Write) -> None:
    entry = "@book{{a, title = {{{0}}}, author = {{B, C}}, year = {{2000}}}}"
    settings = HTML + "bibliography: .own/refs.bib\n"
    files = {".own/refs.bib": entry.format("Old")}
    root = settled(write_book("# A\n\nSee @a.\n\n::: {#refs}\n:::\n", files, settings))
    (root / ".own/refs.bib").write_text(entry.format("New"))
    assert not unchanged(root)
    assert "New" in "".join(said(root))


def seen(root: Path, before: str, change: Callable[[], object], after: str) -> None:
    """Holds a book to the line that its page has before a change, and to that after it."""
    assert before in said(settled(root))
    change()
    assert not unchanged(root)
    assert after in said(root)


LOOKED_FOR = {  # where a cell looks, and how; `open` sees it outside the project too
    "os.path": ("book/sub/data.csv", "import os\nfound = os.path.exists({path!r})"),
    "pathlib": (
        "book/sub/data.csv", "from pathlib import Path\nfound = Path({path!r}).is_file()"),
    "open": (
        "outside/data.csv", "found = 1\ntry:\n    open({path!r})\nexcept OSError:\n    found = 0"),
}  # fmt: skip


@pytest.mark.parametrize("how", of_a_kind(LOOKED_FOR))
def test_a_file_that_comes_where_a_cell_looked_for_it_is_seen(
    how: str, write_book: Write, tmp_path: Path
) -> None:
    name, code = LOOKED_FOR[how]
    path = tmp_path / name

    def appear() -> None:
        path.parent.mkdir()
        path.touch()

    code = f"{code.format(path=str(path))}\nprint('there' if found else 'nothing')"
    seen(write_book(f"# A\n\n{cell(code)}", settings=HTML), "nothing", appear, "there")


LISTED = {
    "os.listdir": "import os\nprint(*sorted(os.listdir({path!r})))",
    "glob": "import glob, os\nprint(*sorted(map(os.path.basename, glob.glob({path!r} + '/*'))))",
    "os.walk": "import os\nprint(*sorted(n for _, _, names in os.walk({path!r}) for n in names))",
    "pathlib": (
        "from pathlib import Path\nprint(*sorted(p.name for p in Path({path!r}).iterdir()))"
    ),
}


@pytest.mark.parametrize("how", of_a_kind(LISTED))
def test_a_folder_that_a_cell_lists_is_seen(how: str, write_book: Write, elsewhere: Path) -> None:
    (elsewhere / "a.csv").touch()
    code = LISTED[how].format(path=str(elsewhere))
    root = write_book(f"# A\n\n{cell(code)}", settings=HTML)
    seen(root, "a.csv", (elsewhere / "b.csv").touch, "a.csv b.csv")


SHELLS = {
    "a list": "import subprocess\nprint(subprocess.check_output(['cat', 'notes.qmd'], text=True))",
    "a line": "import os\nprint(os.popen('sort < notes.qmd | head -1').read())",
    "IPython": "!cat notes.qmd",
}


@pytest.mark.parametrize("how", of_a_kind(SHELLS))
def test_any_file_of_the_project_that_a_program_reads_is_seen(how: str, write_book: Write) -> None:
    root = write_book(f"# A\n\n{cell(SHELLS[how])}", settings=HTML)
    (root / "notes.qmd").write_text("old\n")  # no chapter, so that no cell depends on it otherwise
    seen(root, "old", lambda: (root / "notes.qmd").write_text("new\n"), "new")


def test_no_variable_of_the_shell_reaches_a_cell(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only variables of `environment.KEPT` do, with which all is rendered again."""
    monkeypatch.setenv("MINE", "one")
    code = "import os\nprint(os.environ.get('MINE', 'none'))"
    root = settled(write_book(f"# A\n\n{cell(code)}", settings=HTML))
    assert "none" in said(root)
    monkeypatch.setenv("MINE", "two")
    assert unchanged(root)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/nowhere")
    assert not unchanged(root)


UNSEEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "what a program reads outside the project": (
        "import subprocess\nprint(subprocess.check_output(['cat', {path!r}], text=True))",
        lambda path: path.write_text("new\n"),
    ),
    "a file outside it that a cell asks after, and does not open": (
        "from pathlib import Path\nprint(Path({path!r}).with_name('y.txt').exists())",
        lambda path: path.with_name("y.txt").touch(),
    ),
    "a time stamp": (
        "import os\nprint(os.path.getmtime({path!r}))",
        lambda path: os.utime(path, (1, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", of_a_kind(UNSEEN))
def test_what_cannot_be_seen(what: str, write_book: Write, elsewhere: Path) -> None:
    """The promises say so, and docs/adding-a-chapter.md; once press sees it, they may say that."""
    code, change = UNSEEN[what]
    path = elsewhere / "x.txt"
    path.write_text("old\n")
    root = settled(write_book(f"# A\n\n{cell(code.format(path=str(path)))}", settings=HTML))
    change(path)
    assert unchanged(root)
