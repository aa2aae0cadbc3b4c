"""A book is rendered again whenever anything that it was made from has changed: wherever that lies,
however a cell comes by it. What press cannot see is here too, as it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from press.build import render
from tests.draws import of_a_kind
from tests.page_texts import page_texts
from tests.press.test_hardening import PIXEL, said
from tests.press.tiny_book import WITHOUT_PDF as HTML, Write

pytestmark = pytest.mark.slow

SAME = "Nothing has changed"


def unchanged(root: Path) -> bool:
    return render(root).startswith(SAME)


def settled(root: Path) -> None:
    """Renders until nothing changes: a cell that lists what it makes itself is run once more."""
    for _ in range(3):
        if unchanged(root):
            return
    pytest.fail("each render changes something for the next")


def cell(code: str) -> str:
    return f"# A\n\n```{{python}}\n#| echo: false\n{code}\n```\n"


def test_a_chapter_of_a_linked_folder_is_seen(write_book: Write, tmp_path: Path) -> None:
    root = write_book("# A\n", settings=HTML.replace("- index.qmd", "- index.qmd\n    - far/b.qmd"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.qmd").write_text("# B\n\nOld.\n")
    (root / "far").symlink_to(elsewhere)
    settled(root)
    (elsewhere / "b.qmd").write_text("# B\n\nNew.\n")
    assert not unchanged(root)
    assert "New." in page_texts(root / "_book")["far/b.html"]


def of_the_book(root: Path, folder: str) -> bytes:
    return (root / "_book" / folder / "a.png").read_bytes()


@pytest.mark.parametrize("folder", of_a_kind([".hidden", "linked"]))
@pytest.mark.parametrize("kind", ["![x](", "See [x]("])
def test_an_image_and_a_file_are_seen_where_they_are(
    folder: str, kind: str, write_book: Write, tmp_path: Path
) -> None:
    root = write_book(f"# A\n\n{kind}{folder}/a.png){'{fig-alt=x}' if '!' in kind else ''}\n",
                      settings=HTML)  # fmt: skip
    target = root / folder
    if folder == "linked":
        target = tmp_path / "elsewhere"
        (root / folder).symlink_to(target)
    target.mkdir()
    (target / "a.png").write_bytes(PIXEL)
    settled(root)
    (target / "a.png").write_bytes(PIXEL + b"more")
    assert not unchanged(root)
    assert of_the_book(root, folder) == PIXEL + b"more"


def test_a_bibliography_of_a_hidden_folder_is_seen(write_book: Write) -> None:
    entry = "@book{{a, title = {{{0}}}, author = {{B, C}}, year = {{2000}}}}"
    text = "# A\n\nSee @a.\n\n::: {#refs}\n:::\n"
    settings = HTML + "bibliography: .own/refs.bib\n"
    root = write_book(text, {".own/refs.bib": entry.format("Old")}, settings)
    settled(root)
    (root / ".own/refs.bib").write_text(entry.format("New"))
    assert not unchanged(root)
    assert "New" in "".join(said(root))


LOOKED_FOR = {
    "os.path": "import os\nprint('there' if os.path.exists({path!r}) else 'nothing')",
    "pathlib": (
        "from pathlib import Path\nprint('there' if Path({path!r}).is_file() else 'nothing')"
    ),
    "open": "try:\n    open({path!r})\n    print('there')\nexcept OSError:\n    print('nothing')",
}


@pytest.mark.parametrize("how", of_a_kind(LOOKED_FOR))
def test_a_file_that_comes_where_a_cell_looked_for_it_is_seen(
    how: str, write_book: Write, tmp_path: Path
) -> None:
    path = tmp_path / "outside" / "data.csv"
    root = write_book(cell(LOOKED_FOR[how].format(path=str(path))), settings=HTML)
    settled(root)
    assert "nothing" in said(root)
    path.parent.mkdir()
    path.write_text("1\n")
    assert not unchanged(root)
    assert "there" in said(root)


LISTED = {
    "os.listdir": "import os\nprint(*sorted(os.listdir({path!r})))",
    "glob": "import glob, os\nprint(*sorted(map(os.path.basename, glob.glob({path!r} + '/*'))))",
    "os.walk": "import os\nprint(*sorted(n for _, _, names in os.walk({path!r}) for n in names))",
    "pathlib": (
        "from pathlib import Path\nprint(*sorted(p.name for p in Path({path!r}).iterdir()))"
    ),
}


@pytest.mark.parametrize("how", of_a_kind(LISTED))
def test_a_folder_that_a_cell_lists_is_seen(how: str, write_book: Write, tmp_path: Path) -> None:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.csv").touch()
    root = write_book(cell(LISTED[how].format(path=str(folder))), settings=HTML)
    settled(root)
    assert "a.csv" in said(root)
    (folder / "b.csv").touch()
    assert not unchanged(root)
    assert "a.csv b.csv" in said(root)


SHELLS = {
    "a list": "import subprocess\nprint(subprocess.check_output(['cat', {path!r}], text=True))",
    "a line": "import os\nprint(os.popen('sort < {path} | head -1').read())",
    "IPython": "!cat '{path}'",
}


@pytest.mark.parametrize("how", of_a_kind(SHELLS))
def test_a_file_that_a_command_names_is_seen(how: str, write_book: Write, tmp_path: Path) -> None:
    path = tmp_path / "outside.txt"
    path.write_text("old\n")
    root = write_book(cell(SHELLS[how].format(path=str(path))), settings=HTML)
    settled(root)
    assert "old" in said(root)
    path.write_text("new\n")
    assert not unchanged(root)
    assert "new" in said(root)


def test_no_variable_of_the_shell_reaches_a_cell(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only variables of `environment.KEPT` do, with which all is rendered again."""
    root = write_book(cell("import os\nprint(os.environ.get('MINE', 'none'))"), settings=HTML)
    monkeypatch.setenv("MINE", "one")
    settled(root)
    assert "none" in said(root)
    monkeypatch.setenv("MINE", "two")
    assert unchanged(root)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/nowhere")
    assert not unchanged(root)


UNSEEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "what a program opens by itself": (
        "import subprocess, sys\n"
        "code = 'from pathlib import Path; print((Path.home() / \"x.txt\").read_text())'\n"
        "print(subprocess.check_output([sys.executable, '-c', code], text=True))",
        lambda path: path.write_text("new\n"),
    ),
    "a time stamp": (
        "import os\nprint(os.path.getmtime({path!r}))",
        lambda path: os.utime(path, (1, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", of_a_kind(UNSEEN))
def test_what_cannot_be_seen(
    what: str, write_book: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promises say so, and docs/adding-a-chapter.md; once press sees it, they may say that."""
    code, change = UNSEEN[what]
    home = tmp_path / "home"
    home.mkdir()
    path = home / "x.txt"
    path.write_text("old\n")
    monkeypatch.setenv("HOME", str(home))
    root = write_book(cell(code.format(path=str(path))), settings=HTML)
    settled(root)
    change(path)
    assert unchanged(root)
