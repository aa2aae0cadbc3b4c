"""Builds by press and builds left out: caches, identical builds, and books that stay whole."""

from __future__ import annotations

import ctypes
import gc
import os
import pty
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader

from press import build
from press.book_files import THEME, copy_folder, files_below, room_for
from press.build import render
from press.driver import CORES
from press.problems import BookError
from press.running import scripts
from press.writing.output import Output
from tests.draws import of_a_kind
from tests.page_texts import page_texts
from tests.press.tiny_book import REPOSITORY, SETTINGS, Write, press, printed, search_entries

IN_PROJECT = SETTINGS.replace("type: book", "type: book\n  execute-dir: project")


def runs(root: Path) -> int:
    """Return how often the chapter ran: it counts in a file outside the project."""
    counter = root.parent / "runs"
    return len(counter.read_text()) if counter.exists() else 0


COUNTING = """\
# A

```{{python}}
#| echo: false
with open({counter!r}, "a") as file:
    file.write("x")
{code}
```

It is `{{python}} value`.
"""


def counting(tmp_path: Path, code: str) -> str:
    return COUNTING.format(counter=str(tmp_path / "runs"), code=code)


def text(root: Path) -> str:
    return page_texts(root / "_book")["index.html"]


@pytest.mark.slow
def test_two_cold_builds_are_the_same_byte_for_byte(everything: Path) -> None:
    render(everything)
    first = {
        name: (everything / "_book" / name).read_bytes()
        for name in files_below(everything / "_book")
    }
    assert "Everything-at-Once.pdf" in first
    shutil.rmtree(everything / "_book")
    shutil.rmtree(everything / ".press-cache")
    render(everything)
    for name in first | files_below(everything / "_book"):
        assert first[name] == (everything / "_book" / name).read_bytes(), name


@pytest.mark.slow
def test_nothing_changed_is_said_and_costs_no_imports(everything: Path) -> None:
    render(everything)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "press", "render", str(everything)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "Nothing has changed: _book is up to date.\n"
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"pypandoc", "IPython", "typst", "jinja2", "matplotlib"}


def test_a_change_of_prose_runs_no_cell_and_is_published(tmp_path: Path, write_book: Write) -> None:
    root = write_book(counting(tmp_path, "value = 1"))
    render(root)
    index = root / "index.qmd"
    index.write_text(index.read_text().replace("# A", "# B\n\nNew line."))
    render(root)
    assert "New line." in text(root)
    assert "It is 1." in text(root)
    assert runs(root) == 1


@pytest.mark.slow
def test_a_change_of_prose_converts_that_page_alone(everything: Path) -> None:
    render(everything)
    memory = everything / ".press-cache" / "made"
    before = set(memory.rglob("*.json"))
    chapter = everything / "chapters" / "callouts.qmd"
    chapter.write_text(chapter.read_text() + "\nA new line.\n")
    render(everything)
    # It is parsed, numbered, checked, and written in four forms.
    assert len(set(memory.rglob("*.json")) - before) == 7
    assert "A new line." in page_texts(everything / "_book")["chapters/callouts.html"]


CHANGES = {
    "a cell": ("index.qmd", "value = 1", "value = 2"),
    "an inline value": ("index.qmd", "`{python} value`", "`{python} value + 1`"),
    "a cell option": ("index.qmd", "echo: false", "echo: true"),
    "a module of the project": ("ours/numbers.py", "N = 1", "N = 2"),
    "a new module in its place": ("ours/numbers/__init__.py", "", "N = 1"),
    "a data file": ("ours/data.toml", "n = 1", "n = 2"),
    "a new file": ("extra.csv", "", "1"),
    "a module from elsewhere": ("../elsewhere/borrowed.py", "M = 1", "M = 2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(CHANGES))
def test_what_a_chapter_depends_on_makes_it_run_again(
    what: str, tmp_path: Path, write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "elsewhere"))
    code = "from ours.numbers import N\nfrom borrowed import M\nvalue = 1"
    files = {
        "ours/numbers.py": "N = 1\n",
        "ours/data.toml": "n = 1\n",
        "../elsewhere/borrowed.py": "M = 1\n",
    }
    root = write_book(counting(tmp_path, code), files, IN_PROJECT)
    render(root)
    render(root)
    assert runs(root) == 1
    name, old, new = CHANGES[what]
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(path.read_text().replace(old, new) if path.exists() else new)
    render(root)
    assert runs(root) == 2


def test_a_module_that_a_chapter_does_not_import_is_no_matter_to_it(
    tmp_path: Path, write_book: Write
) -> None:
    files = {"ours/numbers.py": "N = 1\n", "tools/other.py": "M = 1\n"}
    root = write_book(counting(tmp_path, "from ours.numbers import N as value"), files, IN_PROJECT)
    render(root)
    (root / "tools" / "other.py").write_text("M = 2\n")
    render(root)
    assert runs(root) == 1
    # Of another length, by which Python tells compiled files apart.
    (root / "ours" / "numbers.py").write_text("N = 22\n")
    render(root)
    assert "It is 22." in text(root)
    assert runs(root) == 2


def test_what_chapters_share_is_imported_once_and_again_after_a_change(
    tmp_path: Path, write_book: Write
) -> None:
    noting = f"open({str(tmp_path / 'imports')!r}, 'a').write('x')\nN = [{{}}]\n"
    cells = "```{python}\nfrom ours import numbers\nnumbers.N.append(0)\n```\n\n"
    chapters = {
        f"{name}.qmd": f"# {name}\n\n{cells}It is `{{python}} numbers.N`.\n" for name in "ab"
    }
    settings = f"{IN_PROJECT}shared: ['ours.numbers:N', ours.nothing]\n"
    alone = "# A\n\n```{python}\nimport sys\n'our' + 's' in sys.modules\n```\n"
    root = write_book(alone, {"ours/numbers.py": noting.format(1), **chapters}, settings)
    for number in ("1", "22"):
        (root / "ours" / "numbers.py").write_text(noting.format(number))
        render(root)
        pages = page_texts(root / "_book")
        assert f"It is [{number}, 0]." in pages["a.html"]
        assert f"It is [{number}, 0]." in pages["b.html"]
        assert "False" in pages["index.html"]
        assert render(root).startswith("Nothing has changed")
    assert (tmp_path / "imports").read_text() == "xx"


FORGOTTEN = "import sys\nfrom ours.numbers import N as value\ndel sys.modules['ours.numbers']"
ELSEWHERE = """
import subprocess
import sys
value = subprocess.check_output([sys.executable, "-c", "from ours.numbers import N; print(N)"])
value = value.decode().strip()"""


@pytest.mark.parametrize("code", [FORGOTTEN, ELSEWHERE])
def test_a_module_that_is_imported_and_gone_counts(
    code: str, tmp_path: Path, write_book: Write
) -> None:
    root = write_book(counting(tmp_path, code), {"ours/numbers.py": "N = 1\n"}, IN_PROJECT)
    for number in ("1", "22", "22"):  # of another length, as above
        (root / "ours" / "numbers.py").write_text(f"N = {number}\n")
        render(root)
        assert f"It is {number}." in text(root)
    assert runs(root) == 2


READ = ["book/.d.txt", "book/.data/d.txt", "book/two.qmd", "elsewhere/x.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("name", of_a_kind(READ))
def test_a_change_of_any_file_that_a_cell_read_is_published(
    name: str, tmp_path: Path, write_book: Write
) -> None:
    path = tmp_path / name
    root = write_book(counting(tmp_path, f"value = len(open({str(path)!r}).read())"))
    path.parent.mkdir(exist_ok=True)
    for content in ("# B", "# Bee"):
        path.write_text(content)
        assert render(root).startswith("Rendered")
        assert render(root).startswith("Nothing has changed")
        assert f"It is {len(content)}." in text(root)
    assert runs(root) == 2


def test_a_file_that_a_cell_looked_for_in_vain_counts_when_it_appears(
    tmp_path: Path, write_book: Write
) -> None:
    path = tmp_path / "late.csv"
    code = f"try:\n    value = open({str(path)!r}).read()\nexcept OSError:\n    value = 0"
    root = write_book(counting(tmp_path, code))
    render(root)
    path.write_text("7")
    render(root)
    assert "It is 7." in text(root)


def test_a_file_that_a_cell_wrote_itself_is_no_input(tmp_path: Path, write_book: Write) -> None:
    code = "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as file:\n"
    root = write_book(counting(tmp_path, f"{code}    value = len(open(file.name).read())"))
    render(root)
    assert press("render", root).stdout.startswith("Nothing has changed")
    root.joinpath("index.qmd").write_text(root.joinpath("index.qmd").read_text() + "\nMore.\n")
    render(root)
    assert runs(root) == 1


def test_cells_run_in_the_folder_that_the_project_says(write_book: Write) -> None:
    chapter = "# B\n\nHere: `{python} __import__('os').path.basename(__import__('os').getcwd())`.\n"
    for settings, folder in ((SETTINGS, "b"), (IN_PROJECT, "book")):
        root = write_book("# A\n", {"b/two.qmd": chapter}, settings)
        render(root)
        assert f"Here: {folder}." in page_texts(root / "_book")["b/two.html"]


def test_a_failing_build_leaves_the_last_good_book(write_book: Write) -> None:
    root = write_book("# A\n\nGood.\n")
    render(root)
    before = files_below(root / "_book")
    write_book("# A\n\nSee @fig-none.\n")
    with pytest.raises(BookError):
        render(root)
    assert files_below(root / "_book") == before
    assert "Good." in text(root)


def test_a_build_that_fails_late_leaves_the_last_good_book(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_book("# A\n\nGood.\n")
    render(root)
    before = files_below(root / "_book")
    write_book("# A\n\nBetter.\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "x.html")

    monkeypatch.setattr("press.writing.site._write_packed", full)
    with pytest.raises(BookError, match=r"^press cannot write: No space left on device: x.html\.$"):
        render(root)
    assert files_below(root / "_book") == before
    assert not list(root.glob("._book*"))


def test_a_folder_that_an_interrupt_removed_stays_away(write_book: Write) -> None:
    """Whoever still writes pages then makes no folder that no later build would know as its own."""
    root = write_book("# A\n")
    output = Output(root, root / "_book")

    def interrupted() -> None:
        with output.replaced("", None) as new:
            assert room_for(new, "deep/page.html").parent.is_dir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for write in (room_for, lambda folder, name: copy_folder(THEME / "vendor", folder / name)):
        with pytest.raises(FileNotFoundError):
            write(output.new, "assets/vendor")
    assert not output.new.exists()


def test_git_does_not_see_a_build_in_the_making(tmp_path: Path) -> None:
    shutil.copyfile(REPOSITORY / ".gitignore", tmp_path / ".gitignore")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    names = ["_book/x", "._book.new/x", "._book.old/x"]
    seen = subprocess.run(
        ["git", "-C", tmp_path, "check-ignore", *names], capture_output=True, text=True, check=True
    )
    assert seen.stdout.split() == names


def without_root_power() -> None:
    """Makes file permissions count for this process's child even where tests run as root."""
    drop_from_bounding_set, override, read_search = 24, 1, 2
    for capability in (override, read_search):
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


@pytest.mark.parametrize("which", ["_book", "."])
def test_a_read_only_folder_is_one_sentence(which: str, write_book: Write) -> None:
    root = write_book("# A\n\nGood.\n")
    render(root)
    before = files_below(root / "_book")
    write_book("# A\n\nBetter.\n")
    (root / which).chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-m", "press", "render", root],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
        preexec_fn=without_root_power if os.getuid() == 0 else None,
    )  # fmt: skip
    (root / which).chmod(0o755)
    assert done.returncode == 1
    assert done.stderr == f"press cannot write into {(root / which).resolve()}: it is read-only.\n"
    assert files_below(root / "_book") == before


@pytest.mark.slow
def test_a_terminal_is_told_what_takes_so_long(write_book: Write) -> None:
    root = write_book("# A\n")
    for said in (b"Rendering the book (can take a minute) ...\r\n", b""):  # then nothing changed
        terminal, its_end = pty.openpty()
        command = [sys.executable, "-m", "press", "render", str(root)]
        subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=its_end, check=True)
        os.set_blocking(terminal, False)
        try:
            assert os.read(terminal, 1000) == said
        except BlockingIOError:
            assert not said
        os.close(its_end)
        os.close(terminal)


def test_a_missing_part_of_press_is_one_sentence(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "NEEDED", ["json", "no_such_part"])
    with pytest.raises(BookError) as caught:
        render(write_book("# A\n"))
    sentence = 'press needs no_such_part; in the checkout: pip install ".[book]"'
    assert str(caught.value) == sentence


def test_a_kernel_that_does_not_start_is_one_sentence(tmp_path: Path, write_book: Write) -> None:
    broken = tmp_path / "broken" / "traitlets.py"
    broken.parent.mkdir()
    broken.write_text("raise SystemExit('out of order')\n")
    environment = {**os.environ, "PYTHONPATH": str(broken.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "press", "render", write_book("# A\n\n`{python} 1`\n")],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "index.qmd: no Python kernel starts for this chapter: out of order\n"


@pytest.mark.slow
def test_no_start_up_file_of_the_author_runs(
    tmp_path: Path, write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_up = tmp_path / "home/.ipython/profile_default/startup/mine.py"
    start_up.parent.mkdir(parents=True)
    start_up.write_text("mine = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = write_book("# A\n\nIt is `{python} 'mine' in globals()`.\n")
    render(root)
    assert "It is False." in text(root)


def test_what_other_programs_print_is_on_the_page(write_book: Write) -> None:
    code = "import subprocess, sys\nprint('ours')\nsubprocess.run(['echo', 'theirs'])\n!echo shell"
    root = write_book(f"# A\n\n```{{python}}\n#| echo: false\n{code}\n```\n")
    render(root)
    for line in ("ours", "theirs", "shell"):
        assert line in text(root).split("\n")


def test_chapters_that_share_an_import_see_nothing_of_one_another(write_book: Write) -> None:
    names = [f"c{number}" for number in range(CORES + 2)]
    code = (
        "import matplotlib, mine\nmine.seen.append({name!r})\n"
        "before = matplotlib.rcParams['lines.linewidth']\n"
        "matplotlib.rcParams['lines.linewidth'] = before + 1\nprint(before, mine.seen)"
    )
    files = {
        f"{name}.qmd": f"# {name}\n\n```{{python}}\n#| echo: false\n{code.format(name=name)}\n```\n"
        for name in names
    }
    root = write_book("# A\n", {**files, "mine.py": "seen = []\n"}, IN_PROJECT)
    render(root)
    pages = page_texts(root / "_book")
    for name in names:
        assert f"1.5 ['{name}']" in pages[f"{name}.html"]


def test_code_of_any_kind_is_set_in_the_pdf(write_book: Write) -> None:
    blocks = "```python\none = 1\u2028two = 2\n```\n\n```\n```\n\n```python\nthree = 3\n\n```"
    root = write_book(f'# A\n\n{blocks}\n\n`g`.text, `x`(y), `a"\\` and `b`[c]\n')
    render(root)
    words = " ".join(printed(root))
    assert 'one = 1 two = 2 three = 3 g.text, x(y), a"\\ and b[c]' in words


def test_a_warning_names_no_process(write_book: Write) -> None:
    root = write_book("# A\n\n```{python}\nimport warnings\nwarnings.warn('careful')\n```\n")
    render(root)
    assert "cell.py:2: UserWarning: careful" in text(root)


def test_a_commit_is_named_and_so_are_changes_since(write_book: Write) -> None:
    root = write_book("# A\n", {".gitignore": "_book/\n.press-cache/\n"})
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@t", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    when = {"GIT_COMMITTER_DATE": "2024-05-06T07:08:09Z", "GIT_AUTHOR_DATE": "2024-05-06T07:08:09Z"}
    subprocess.run([*git, "commit", "-qm", "Begin"], check=True, env={**os.environ, **when})
    commit = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    render(root)
    page = (root / "_book/index.html").read_text()
    assert commit in page
    assert "2024-05-06" in page
    assert "with changes" not in page
    write_book("# A\n\nNew.\n", {".gitignore": "_book/\n.press-cache/\n"})
    render(root)
    assert f"{commit} with changes" in (root / "_book/index.html").read_text()


def test_outside_git_the_version_stands_for_the_commit(write_book: Write) -> None:
    root = write_book("# A\n", {"pyproject.toml": '[project]\nversion = "7.8.9"\n'})
    render(root)
    assert "Version 7.8.9" in (root / "_book/index.html").read_text()


def test_chapters_may_share_a_title(write_book: Write) -> None:
    root = write_book("# Summary\n", {"two.qmd": "# Summary\n\n[up](index.qmd#summary)\n"})
    render(root)
    assert set(page_texts(root / "_book")) == {"index.html", "two.html"}


def test_the_address_of_the_site_is_one_setting(write_book: Write) -> None:
    address = "https://example.org/book"
    root = write_book("# A\n", {}, SETTINGS.replace("book:\n", f"book:\n  site-url: {address}\n"))
    render(root)
    page = (root / "_book/index.html").read_text()
    assert f'<link rel="canonical" href="{address}/index.html">' in page
    assert f"<loc>{address}/index.html</loc>" in (root / "_book/sitemap.xml").read_text()
    assert f'<base href="{address}/">' in (root / "_book/404.html").read_text()


@pytest.mark.slow
def test_other_sites_find_a_picture_of_each_page(write_book: Write) -> None:
    """A page has its title beside its first figure, or the book's where it has none; without an
    address of the site there is nobody to find it."""
    drawing = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    two = (
        f"# Two\n\n```{{python}}\n#| label: fig-a\n#| fig-cap: A.\n#| fig-alt: A.\n{drawing}\n```\n"
    )
    files = {"two.qmd": two, "three.qmd": "# Three\n"}
    root = write_book("# First {.unnumbered}\n", files)
    render(root)
    assert "og:image" not in (root / "_book/index.html").read_text()
    assert not list(root.glob("_book/**/*.png"))
    address = "https://example.org"
    with_address = SETTINGS.replace("book:\n", f"book:\n  site-url: {address}\n")
    write_book("# First {.unnumbered}\n", files, with_address)
    render(root)
    named = {
        page: re.search(r'og:image" content="([^"]*)"', (root / f"_book/{page}.html").read_text())
        for page in ("index", "two", "three")
    }
    addresses = [match[1].removeprefix(f"{address}/") for match in named.values() if match]
    assert len(addresses) == 3
    assert addresses[0] == addresses[2] != addresses[1]
    for name in addresses[:2]:
        with Image.open(root / "_book" / name) as picture:
            assert picture.size == (1200, 630)
            assert len(picture.convert("L").getcolors() or ()) > 10  # letters, at least


def test_a_page_can_stay_out_of_the_search(write_book: Write) -> None:
    again = "---\nsearch: false\n---\n\n# Again\n\nA marmot.\n"
    root = write_book("# First\n\nA marmot.\n", {"two.qmd": again})
    render(root)
    assert {entry["href"].split("#")[0] for entry in search_entries(root / "_book")} == {
        "index.html"
    }
    assert "marmot" in (root / "_book/two.html").read_text()


def test_a_chapter_says_how_long_its_text_takes_to_read(write_book: Write) -> None:
    """Readers read 200 words a minute; formulas, code, tables and folded answers are left out."""
    folded = '::: {.callout-tip collapse="true" title="Answer"}\n' + "no " * 900 + "\n:::\n"
    text = "# One\n\n" + "word " * 620 + "\n\n$$\n" + "x + " * 900 + "x\n$$\n\n" + folded
    root = write_book("# First {.unnumbered}\n", {"two.qmd": text})
    render(root)
    assert ">About 3 minutes to read</p>" in (root / "_book/two.html").read_text()
    assert "to read</p>" not in (root / "_book/index.html").read_text()


def test_a_figure_leaves_its_caption_room_on_the_page(write_book: Write) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="1500"></svg>'
    caption = "Marmots whistle. " * 20
    figure = f'![{caption}](tall.svg){{#fig-tall fig-alt="A burrow."}}'
    before = "They live in burrows. " * 200  # on its first page a chapter has figures at the foot
    root = write_book(f"# A\n\n{before}\n\n{figure}\n", {"tall.svg": drawing})
    render(root)
    heights: list[float] = []

    def take(words: str, matrix: list[float], text_matrix: list[float], *_: object) -> None:
        if "whistle" in words:
            heights.append(matrix[3] * text_matrix[5] + matrix[5])

    for page in PdfReader(root / "_book/A-tiny-book.pdf").pages:
        page.extract_text(visitor_text=take)
    margin = 17 / 25.4 * 72
    assert min(heights) >= margin - 1


def test_a_printed_line_of_a_hundred_columns_is_not_broken_on_paper(write_book: Write) -> None:
    line = "whistle " * 12 + "once"
    root = write_book(f"# A\n\n```\n{line}\n```\n")
    render(root)
    heights = set()

    def take(words: str, matrix: list[float], text_matrix: list[float], *_: object) -> None:
        if {"whistle", "once"} & {*words.split()}:
            heights.add(round(matrix[3] * text_matrix[5] + matrix[5], 1))

    for page in PdfReader(root / "_book/A-tiny-book.pdf").pages:
        page.extract_text(visitor_text=take)
    assert len(heights) == 1


def test_definitions_stand_beside_their_terms_on_paper(write_book: Write) -> None:
    terms = (
        "Latency\n:   The time to the *first* byte.\n\nBandwidth\n:   Bytes.\n\n    In a second.\n"
    )
    root = write_book(f"# A\n\n{terms}")
    render(root)
    words = " ".join(printed(root))
    assert "Latency The time to the first byte." in words
    assert "Bandwidth Bytes. In a second." in words


def test_a_folded_note_is_open_on_paper(write_book: Write) -> None:
    """The page hides it from those who know it; paper has its text alone, without the title."""
    note = '::: {.callout-note collapse="true" title="Marmots"}\nThey whistle.\n:::\n'
    root = write_book(f"# A\n\n{note}")
    render(root)
    assert "<details" in (root / "_book/index.html").read_text()
    words = " ".join(printed(root))
    assert "They whistle." in words
    assert "Marmots" not in words


def test_a_build_of_all_formats_stands_for_one(write_book: Write) -> None:
    root = write_book("# A\n\nOne.\n")
    render(root, "html")
    assert render(root).startswith("Rendered")
    assert render(root, "html").startswith("Nothing has changed")
    assert render(root, "typst").startswith("Nothing has changed")
    (root / "index.qmd").write_text("# A\n\nTwo.\n")
    assert render(root, "html").startswith("Rendered")
    assert render(root).startswith("Rendered"), "the PDF is of yesterday"


def test_one_format_alone(write_book: Write) -> None:
    root = write_book("# A\n")
    assert press("render", "--to", "pdf", root).returncode == 0
    assert list(files_below(root / "_book")) == ["A-tiny-book.pdf"]
    shutil.rmtree(root / "_book")
    render(root, "html")
    assert not list((root / "_book").glob("*.pdf"))
    assert ".pdf" not in (root / "_book/index.html").read_text()
    inner = "::: {.callout-note}\n```{python}\n1 / 0\n```\n`{python} 1 / 0`\n:::\n"
    write_book(f'# A\n\n::: {{.content-visible when-format="typst"}}\n{inner}:::\n\nFor all.\n')
    render(root, "html")  # runs nothing for the PDF
    assert "For all." in (root / "_book/index.html").read_text()
    with pytest.raises(BookError, match="ZeroDivisionError"):
        render(root, "typst")


def test_the_cache_forgets_what_no_chapter_uses(tmp_path: Path, write_book: Write) -> None:
    root = write_book(counting(tmp_path, "value = 1"))
    render(root)
    write_book(counting(tmp_path, "value = 2"))
    render(root)
    assert len(list((root / ".press-cache/made/result").iterdir())) == 1
    last = build.last_build(root)
    assert last
    assert (last.output, len(last.inputs), len(last.outputs)) == ("_book", 64, 64)
    assert [name for name, _ in last.read] == [str(root / "index.qmd")]


def test_a_page_whose_cells_stand_in_the_pdf_alone_has_no_notebook(write_book: Write) -> None:
    cell = "```{python}\nprint(6 * 7)\n```\n"
    hidden = f'# A\n\n::: {{.content-visible when-format="typst"}}\n{cell}:::\n'
    root = write_book(hidden, {"b.qmd": f"# B\n\n{cell}"})
    render(root)
    assert [file.name for file in (root / "_book" / "notebooks").iterdir()] == ["b.zip"]
    pages = [(root / "_book" / name).read_text() for name in ("index.html", "b.html")]
    assert ["as a notebook" in page for page in pages] == [False, True]


@pytest.mark.slow
def test_a_part_of_many_chapters_follows_without_an_empty_page(write_book: Write) -> None:
    listed = "".join(f"        - {number}.qmd\n" for number in range(27))
    part = f"- index.qmd\n    - part: Many\n      chapters:\n{listed}"
    chapters = {f"{number}.qmd": f"# C{number}\n" for number in range(27)}
    root = write_book("# A\n\nBefore.\n", chapters, SETTINGS.replace("- index.qmd\n", part))
    render(root)
    texts = printed(root)
    (opening,) = (page_number for page_number, text in enumerate(texts) if "Part I" in text)
    assert "Before." in texts[opening - 1]
    assert "C26" in texts[opening]


def test_the_pdf_leaves_out_what_the_settings_say(write_book: Write) -> None:
    kept = "  typst:\n    leave-out: [api]\n    imprint: [Set in small type.]\n"
    settings = SETTINGS.replace("  typst: default\n", kept)
    index = "# Preface {.unnumbered}\n\nSee [the laws](api/laws.qmd#sec-laws).\n"
    laws = "# Laws {#sec-laws}\n\nA law of the site.\n"
    root = write_book(index, {"api/laws.qmd": laws}, settings)
    render(root)
    assert "A law of the site" in (root / "_book" / "api" / "laws.html").read_text()
    words = " ".join(printed(root))
    assert "See the laws" in words
    assert "Set in small type." in words
    assert "A law of the site" not in words


@pytest.mark.parametrize("fails", [False, True])
def test_a_build_looks_for_no_cycles_among_its_documents(
    fails: bool, write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    run_scripts = scripts.run_scripts

    def seen(root: Path) -> None:
        looks.append(gc.isenabled())
        run_scripts(root)

    monkeypatch.setattr(scripts, "run_scripts", seen)
    root = write_book("Without a title.\n" if fails else "# A\n")
    with pytest.raises(BookError) if fails else nullcontext():
        render(root)
    assert looks == [False]
    assert gc.isenabled()


def test_a_chapter_looks_for_cycles_seldom_and_in_its_own_things_alone(write_book: Write) -> None:
    code = "import gc\nprint('Frozen:', gc.get_freeze_count() > 10_000, gc.get_threshold()[0])"
    root = write_book(f"# A\n\n```{{python}}\n{code}\n```\n")
    render(root, "html")
    assert "Frozen: True 100000" in text(root)


def test_a_short_table_stands_behind_a_long_one_that_floats(write_book: Write) -> None:
    """Compares where captions stand in the PDF: page, then height above its foot."""
    long, short = ("".join(f"| {row} | {row} |\n" for row in range(rows)) for rows in (12, 2))
    tables = (
        f"| a | b |\n|--|--|\n{rows}\n: A {name} table. {{#tbl-{name}}}\n\n{'Words. ' * 40}\n\n"
        for name, rows in (("long", long), ("short", short))
    )
    root = write_book(f"# A\n\nSee @tbl-long and @tbl-short.\n\n{''.join(tables)}")
    render(root, "typst")
    position_of: dict[str, tuple[int, float]] = {}

    for number, page in enumerate(PdfReader(root / "_book" / "A-tiny-book.pdf").pages):

        def note(text: str, to: list[float], at: list[float], *_: object, on: int = number) -> None:
            for name in ("long", "short"):
                if f"A {name} table" in text:
                    position_of[name] = (on, -(at[4] * to[1] + at[5] * to[3] + to[5]))

        page.extract_text(visitor_text=note)
    assert position_of["long"] < position_of["short"]
