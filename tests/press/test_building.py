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
from pathlib import Path

import pytest
from PIL import Image

from press import build
from press.book_files import THEME, copy_folder, files_below, room_for
from press.build import render
from press.driver import CORES
from press.problems import BookError
from press.running import scripts
from press.writing.output import Output
from tests.draws import of_a_kind
from tests.press.tiny_book import (
    IN_PROJECT,
    REPOSITORY,
    SETTINGS,
    WITHOUT_PDF,
    Write,
    cell,
    in_format,
    page_of,
    pdf_of,
    pieces,
    press,
    printed,
    refusal,
    refusals,
    rendered,
    said,
    search_index,
)
from tests.rows import each_row

SAME = "Nothing has changed"


def runs(root: Path) -> int:
    """Return how often the chapter ran: it counts in a file outside the project."""
    counter = root.parent / "runs"
    return len(counter.read_text()) if counter.exists() else 0


def counting(tmp_path: Path, code: str) -> str:
    count = f"with open({str(tmp_path / 'runs')!r}, 'a') as file:\n    file.write('x')\n"
    return f"# A\n\n{cell(count + code)}\nIt is `{{python}} value`.\n"


# ---- The same, and nothing twice


@pytest.mark.slow
def test_two_cold_builds_are_the_same_byte_for_byte(everything: Path) -> None:
    books = []
    for _ in range(2):
        render(everything)
        names = files_below(everything / "_book")
        books.append({name: (everything / "_book" / name).read_bytes() for name in names})
        shutil.rmtree(everything / "_book")
        shutil.rmtree(everything / ".press-cache")
    first, second = books
    assert "Everything-at-Once.pdf" in first
    assert {name for name in first | second if first.get(name) != second.get(name)} == set()


@pytest.mark.slow
def test_nothing_changed_costs_no_imports_and_a_change_of_prose_converts_its_page_alone(
    everything: Path,
) -> None:
    render(everything)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "press", "render", str(everything)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "Nothing has changed: _book is up to date.\n"
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert not imported & {"pypandoc", "IPython", "typst", "jinja2", "matplotlib"}
    memory = everything / ".press-cache" / "made"
    before = set(memory.rglob("*.json"))
    chapter = everything / "chapters" / "callouts.qmd"
    chapter.write_text(chapter.read_text() + "\nA new line.\n")
    render(everything)
    # It is parsed, numbered, checked, and written in four forms.
    assert len(set(memory.rglob("*.json")) - before) == 7
    assert "A new line." in said(everything, "chapters/callouts")


def test_a_change_of_prose_runs_no_cell_and_what_it_wrote_itself_is_no_input(
    tmp_path: Path, write_book: Write
) -> None:
    code = "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as file:\n"
    chapter = counting(tmp_path, f"{code}    value = len(open(file.name).read())")
    assert press("render", rendered(write_book(chapter))).stdout.startswith(SAME)
    root = rendered(write_book(chapter.replace("# A", "# B\n\nNew line.")))
    assert {"New line.", "It is 0."} <= {*said(root)}
    assert runs(root) == 1


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
    files = {"ours/numbers.py": "N = 1\n", "ours/data.toml": "n = 1\n"}
    files["../elsewhere/borrowed.py"] = "M = 1\n"
    root = rendered(write_book(counting(tmp_path, code), files, IN_PROJECT))
    render(root)
    assert runs(root) == 1
    name, old, new = CHANGES[what]
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(path.read_text().replace(old, new) if path.exists() else new)
    render(root)
    assert runs(root) == 2


FORGOTTEN = "import sys\nfrom ours.numbers import N as value\ndel sys.modules['ours.numbers']"
ELSEWHERE = """import subprocess, sys
value = subprocess.check_output([sys.executable, "-c", "from ours.numbers import N; print(N)"])
value = value.decode().strip()"""


@pytest.mark.parametrize("code", ["from ours.numbers import N as value", FORGOTTEN, ELSEWHERE])
def test_a_module_that_is_imported_counts_and_no_other(
    code: str, tmp_path: Path, write_book: Write
) -> None:
    root = write_book(counting(tmp_path, code), {"tools/other.py": "", "ours/a.py": ""}, IN_PROJECT)
    for number, other in (("1", 1), ("22", 1), ("22", 2)):  # of another length, which Python sees
        (root / "ours" / "numbers.py").write_text(f"N = {number}\n")
        (root / "tools" / "other.py").write_text(f"M = {other}\n")
        render(root)
        assert f"It is {number}." in said(root)
    assert runs(root) == (3 if code == ELSEWHERE else 2)


def test_what_chapters_share_is_imported_once_and_again_after_a_change(
    tmp_path: Path, write_book: Write
) -> None:
    noting = f"open({str(tmp_path / 'imports')!r}, 'a').write('x')\nN = [{{}}]\n"
    code = cell("from ours import numbers\nnumbers.N.append(0)")
    chapters = {f"{name}.qmd": f"# A\n\n{code}\nIt is `{{python}} numbers.N`.\n" for name in "ab"}
    settings = f"{IN_PROJECT}shared: ['ours.numbers:N', ours.nothing]\n"
    root = write_book("# A\n", {"ours/numbers.py": "", **chapters}, settings)
    for number in ("1", "22"):
        (root / "ours" / "numbers.py").write_text(noting.format(number))
        render(root)
        assert f"It is [{number}, 0]." in said(root, "a")
        assert f"It is [{number}, 0]." in said(root, "b")
        assert render(root).startswith(SAME)
    assert (tmp_path / "imports").read_text() == "xx"


READ = ["elsewhere/x.csv", "book/.d.txt", "book/.data/d.txt", "book/two.qmd"]


@pytest.mark.parametrize("name", of_a_kind(READ))
def test_a_change_of_any_file_that_a_cell_read_or_looked_for_is_published(
    name: str, tmp_path: Path, write_book: Write
) -> None:
    path = tmp_path / name
    code = f"try:\n    value = len(open({str(path)!r}).read())\nexcept OSError:\n    value = 0"
    root = rendered(write_book(counting(tmp_path, code)))
    path.parent.mkdir(exist_ok=True)
    for content in ("# B", "# Bee"):
        path.write_text(content)
        assert render(root).startswith("Rendered")
        assert render(root).startswith(SAME)
        assert f"It is {len(content)}." in said(root)
    assert runs(root) == 3


def test_the_cache_forgets_what_no_chapter_uses(tmp_path: Path, write_book: Write) -> None:
    for value in range(2):
        root = rendered(write_book(counting(tmp_path, f"value = {value}")))
    assert len(list((root / ".press-cache/made/result").iterdir())) == 1
    last = build.last_build(root)
    assert last
    assert (last.output, len(last.inputs), len(last.outputs)) == ("_book", 64, 64)
    assert [name for name, _ in last.read] == [str(root / "index.qmd")]


# ---- Builds that fail


FULL: dict[str, tuple[str, OSError, str]] = {
    "late": ("press.writing.site._write_packed", OSError(28, "No space left on device", "x.html"),
             "press cannot write: No space left on device: x.html."),
    "no file": ("shutil.copyfile", OSError(28, "No space left on device"),
                "press cannot write: No space left on device."),
    "several files": ("shutil.copyfile",
        shutil.Error([("a", "b/x.woff2", "[Errno 28] No space left on device: 'b/x.woff2'")]),
        "press cannot write: No space left on device: b/x.woff2."),
}  # fmt: skip


@pytest.mark.parametrize("when", FULL)
def test_a_failing_build_leaves_the_last_good_book(
    when: str, write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = rendered(write_book("# A\n\nGood.\n"))
    before = files_below(root / "_book")
    write_book("# A\n\nSee @fig-none.\n")
    refusals(root)
    write_book("# A\n\nBetter.\n")
    work, error, sentence = FULL[when]

    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(work, full)
    assert refusals(root) == [sentence]
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
    names = ["_book/x", "._book.new/x", "._book.old/x"]
    assert git(tmp_path, "init", "-q") == ""
    assert git(tmp_path, "check-ignore", *names).split() == names


def git(folder: Path, *arguments: str, **environment: str) -> str:
    command = ["git", "-c", "user.name=T", "-c", "user.email=t@t", "-C", str(folder), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | environment
    ).stdout


def without_root_power() -> None:
    """Makes file permissions count for this process's child even where tests run as root."""
    drop_from_bounding_set, override, read_search = 24, 1, 2
    for capability in (override, read_search):
        ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


@pytest.mark.parametrize("which", ["_book", "."])
def test_a_read_only_folder_is_one_sentence(which: str, write_book: Write) -> None:
    root = rendered(write_book("# A\n\nGood.\n"))
    before = files_below(root / "_book")
    write_book("# A\n\nBetter.\n")
    (root / which).chmod(0o555)
    done = press("render", root, preexec_fn=without_root_power if os.getuid() == 0 else None)
    (root / which).chmod(0o755)
    assert done.returncode == 1
    assert done.stderr == f"press cannot write into {(root / which).resolve()}: it is read-only.\n"
    assert files_below(root / "_book") == before


def test_a_missing_part_of_press_is_one_sentence(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "NEEDED", ["json", "no_such_part"])
    sentence = 'press needs no_such_part; in the checkout: pip install ".[book]"'
    assert refusal(write_book("# A\n")) == [sentence]


def test_a_kernel_that_does_not_start_is_one_sentence(tmp_path: Path, write_book: Write) -> None:
    (tmp_path / "traitlets.py").write_text("raise SystemExit('out of order')\n")
    broken = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = press("render", write_book("# A\n\n`{python} 1`\n"), env=broken)
    assert done.returncode == 1
    assert done.stderr == "index.qmd: no Python kernel starts for this chapter: out of order\n"


@pytest.mark.slow
def test_a_terminal_is_told_what_takes_so_long(write_book: Write) -> None:
    root = write_book("# A\n")
    for told_there in (b"Rendering the book (can take a minute) ...\r\n", b""):  # nothing changed
        terminal, its_end = pty.openpty()
        command = [sys.executable, "-m", "press", "render", str(root)]
        subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=its_end, check=True)
        os.set_blocking(terminal, False)
        try:
            assert os.read(terminal, 1000) == told_there
        except BlockingIOError:
            assert not told_there
        os.close(its_end)
        os.close(terminal)


def test_a_build_looks_for_no_cycles_among_its_documents(
    write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []
    monkeypatch.setattr(scripts, "run_scripts", lambda _: looks.append(gc.isenabled()))
    refusal(write_book("Without a title.\n"))
    assert gc.isenabled()
    rendered(write_book("# A\n"))
    assert gc.isenabled()
    assert looks == [False, False]


# ---- Cells and their surroundings


VALUES = ["'Hainan (nan)'", "'None'", "'f(x) < g(x) > 0'", "0.5", "True", "(1, 2)", "-3e-9",
          "(print('unheard'), 7)[1]"]  # fmt: skip
GIVES = {  # what a chapter holds, and lines of its page
    cell("import subprocess, sys\nprint('ours')\nsubprocess.run(['echo', 'theirs'])\n!echo shell"):
        ["ours", "theirs", "shell"],
    cell("import warnings\nwarnings.warn('careful')"): ["cell.py:2: UserWarning: careful"],
    cell("import gc\nprint('Frozen:', gc.get_freeze_count() > 10_000, gc.get_threshold()[0])"):
        ["Frozen: True 100000"],  # looks for cycles seldom, and in its own things alone
    cell("from matplotlib.figure import Figure\nFigure()", 'fig-alt: "x"'):
        ["<Figure size 672x480 with 0 Axes>"],  # as Quarto prints it
    " and ".join(f"`{{python}} {value}`" for value in VALUES) + ".":
        ["Hainan (nan) and None and f(x) < g(x) > 0 and 0.5 and True and (1, 2) and -3e-09 and 7."],
    cell("from IPython.display import Markdown")
        + "\n| a | b |\n|---|---|\n| `{python} Markdown('x | y')` | z |": ["x | y z"],
}  # fmt: skip


def test_what_a_cell_gives_is_on_the_page(write_book: Write) -> None:
    lines = said(rendered(write_book("# A\n\n" + "\n\n".join(GIVES) + "\n"), "html"))
    with each_row() as row:
        for source, expected in GIVES.items():
            with row(source):
                assert [line for line in expected if line not in lines] == []
    assert "unheard" not in lines  # of an inline value, whose text is what it gives


def test_cells_run_in_the_folder_that_the_project_says(write_book: Write) -> None:
    chapter = "# B\n\nHere: `{python} __import__('os').path.basename(__import__('os').getcwd())`.\n"
    for settings, folder in ((SETTINGS, "b"), (IN_PROJECT, "book")):
        root = rendered(write_book("# A\n", {"b/two.qmd": chapter}, settings))
        assert f"Here: {folder}." in said(root, "b/two")


@pytest.mark.slow
def test_no_start_up_file_of_the_author_runs(
    tmp_path: Path, write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_up = tmp_path / "home/.ipython/profile_default/startup/mine.py"
    start_up.parent.mkdir(parents=True)
    start_up.write_text("mine = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "It is False." in said(
        rendered(write_book("# A\n\nIt is `{python} 'mine' in globals()`.\n"))
    )


def test_chapters_that_share_an_import_see_nothing_of_one_another(write_book: Write) -> None:
    code = (
        "import matplotlib, mine\nmine.seen.append({name!r})\n"
        "before = matplotlib.rcParams['lines.linewidth']\n"
        "matplotlib.rcParams['lines.linewidth'] = before + 1\nprint(before, mine.seen)"
    )
    names = [f"c{number}" for number in range(CORES + 2)]
    files = {f"{name}.qmd": f"# A\n\n{cell(code.format(name=name))}" for name in names}
    root = rendered(write_book("# A\n", {**files, "mine.py": "seen = []\n"}, IN_PROJECT))
    for name in names:
        assert f"1.5 ['{name}']" in said(root, name)


# ---- Pages


def test_a_commit_is_named_and_so_are_changes_since(write_book: Write) -> None:
    ignored = {".gitignore": "_book/\n.press-cache/\n"}
    root = write_book("# A\n", ignored)
    day = "2024-05-06T07:08:09Z"
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin", GIT_COMMITTER_DATE=day, GIT_AUTHOR_DATE=day)
    commit = git(root, "rev-parse", "--short", "HEAD").strip()
    render(root)
    assert commit in page_of(root)
    assert "2024-05-06" in page_of(root)
    assert "with changes" not in page_of(root)
    assert f"{commit} with changes" in page_of(rendered(write_book("# A\n\nNew.\n", ignored)))


AT = "https://example.org/book"
WITH_ADDRESS = SETTINGS.replace("book:\n", f"book:\n  site-url: {AT}\n")
PARTS = {  # of one book
    "pyproject.toml": '[project]\nversion = "7.8.9"\n',  # stands for the commit outside git
    "long.qmd": "# Same\n\n" + "word " * 620 + "\n\n$$\n" + "x + " * 900 + "x\n$$\n\n"
        '::: {.callout-tip collapse="true" title="Answer"}\n' + "no " * 900 + "\n:::\n",
    "same.qmd": "---\nsearch: false\n---\n\n# Same\n\nA marmot. [up](long.qmd#same)\n",
    "paper.qmd": "# B\n\n" + in_format("typst", "```{python}\nprint(6 * 7)\n```"),
    "both.qmd": "# C\n\n```{python}\nprint(6 * 7)\n```\n",
    "api/laws.qmd": "# Laws {#sec-laws}\n\nA law of the site.\n",
}  # fmt: skip
HOLDS = {  # a page of it, and what it holds, or does not
    "index": [f'<link rel="canonical" href="{AT}/index.html">', "Version 7.8.9",
              "not: to read</p>"],
    "sitemap.xml": [f"<loc>{AT}/index.html</loc>"],
    "404": [f'<base href="{AT}/">'],
    "long": [">About 3 minutes to read</p>"],  # at 200 words a minute, of text alone
    "same": ["marmot"],
    "paper": ["not: as a notebook"],
    "both": ["as a notebook"],
    "api/laws": ["A law of the site."],
}  # fmt: skip


def test_a_book_of_many_settings(write_book: Write) -> None:
    kept = "  typst:\n    leave-out: [api]\n    imprint: [Set in small type.]\n"
    index = "# Preface {.unnumbered}\n\nA marmot. See [the laws](api/laws.qmd#sec-laws).\n"
    root = rendered(write_book(index, PARTS, WITH_ADDRESS.replace("  typst: default\n", kept)))
    with each_row() as row:
        for name, parts in HOLDS.items():
            with row(name):
                file = root / "_book" / (name if "." in name else f"{name}.html")
                page = file.read_text(encoding="utf-8")
                for part in parts:
                    assert (part.removeprefix("not: ") in page) != part.startswith("not: ")
    entries = {entry["href"].split("#")[0] for entry in search_index(root / "_book")["entries"]}
    assert "index.html" in entries
    assert "same.html" not in entries
    assert [file.name for file in (root / "_book" / "notebooks").iterdir()] == ["both.zip"]
    words = " ".join(printed(root))
    assert "See the laws" in words
    assert "Set in small type." in words
    assert "A law of the site" not in words


@pytest.mark.slow
def test_other_sites_find_a_picture_of_each_page(write_book: Write) -> None:
    """A page has its title beside its first figure, or the book's where it has none; without an
    address of the site there is nobody to find it."""
    drawing = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    two = f"# Two\n\n{cell(drawing, 'label: fig-a', 'fig-cap: A.', 'fig-alt: A.')}"
    files = {"two.qmd": two, "three.qmd": "# Three\n"}
    root = rendered(write_book("# First {.unnumbered}\n", files))
    assert "og:image" not in page_of(root)
    assert not list(root.glob("_book/**/*.png"))
    rendered(write_book("# First {.unnumbered}\n", files, WITH_ADDRESS))
    index, two, three = (
        re.findall(rf'og:image" content="{AT}/([^"]*)"', page_of(root, name))
        for name in ("index", "two", "three")
    )
    assert index == three != two
    for name in index + two:
        with Image.open(root / "_book" / name) as picture:
            assert picture.size == (1200, 630)
            assert len(picture.convert("L").getcolors() or ()) > 10  # letters, at least


def test_a_figure_has_a_caption_where_it_has_words_or_a_number(write_book: Write) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9"/></svg>'
    figures = (
        '![A marmot.](a.svg){fig-alt="It sits."}',
        '![](b.svg){fig-alt="It sleeps."}',
        '![A burrow.](c.svg){#fig-burrow fig-alt="Its house."}',
    )
    drawings = {f"{name}.svg": drawing for name in "abc"}
    page = page_of(rendered(write_book("# A\n\n" + "\n\n".join(figures) + "\n", drawings)))
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.S)
    words = [re.sub(r"<[^>]*>|\s+", " ", caption).split() for caption in captions]
    assert [" ".join(each) for each in words] == ["A marmot.", "Figure 1.1: A burrow."]


# ---- Paper


FOLDED = '::: {.callout-note collapse="true" title="Marmots"}\nThey whistle.\n:::\n'
HUNDRED = "column " * 13 + "columnist"
ON_PAPER = {  # what a chapter holds, and how the PDF reads
    "```python\none = 1\u2028two = 2\n```\n\n```\n```\n\n```python\nthree = 3\n\n```\n\n"
        '`g`.text, `x`(y), `a"\\` and `b`[c]':
            'one = 1 two = 2 three = 3 g.text, x(y), a"\\ and b[c]',
    "Latency\n:   The time to the *first* byte.": "Latency The time to the first byte.",
    "Bandwidth\n:   Bytes.\n\n    In a second.": "Bandwidth Bytes. In a second.",
    FOLDED: "They whistle.",  # paper has the text alone
    f"```\n{HUNDRED}\n```": HUNDRED,  # columns, which are not broken
}  # fmt: skip


def test_paper_says_what_the_page_does(write_book: Write) -> None:
    root = rendered(write_book("# A\n\n" + "\n\n".join(ON_PAPER) + "\n"))
    words = " ".join(printed(root))
    for line in ON_PAPER.values():
        assert line in words
    assert "<details" in page_of(root)
    assert "Marmots" not in words
    heights = {round(height, 1) for text, _, height, _ in pieces(pdf_of(root)) if "column" in text}
    assert len(heights) == 1


@pytest.mark.slow
def test_a_part_of_many_chapters_follows_without_an_empty_page(write_book: Write) -> None:
    listed = "".join(f"        - {number}.qmd\n" for number in range(27))
    part = f"- index.qmd\n    - part: Many\n      chapters:\n{listed}"
    chapters = {f"{number}.qmd": f"# C{number}\n" for number in range(27)}
    settings = SETTINGS.replace("- index.qmd\n", part)
    texts = printed(rendered(write_book("# A\n\nBefore.\n", chapters, settings)))
    (opening,) = (number for number, text in enumerate(texts) if "Part I" in text)
    assert "Before." in texts[opening - 1]
    assert "C26" in texts[opening]


def test_a_figure_leaves_its_caption_room_on_the_page(write_book: Write) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="1500"></svg>'
    figure = f'![{"Marmots whistle. " * 20}](tall.svg){{#fig-tall fig-alt="A burrow."}}'
    before = "They live in burrows. " * 200  # on its first page a chapter has figures at the foot
    root = rendered(write_book(f"# A\n\n{before}\n\n{figure}\n", {"tall.svg": drawing}), "typst")
    heights = [height for text, _, height, _ in pieces(pdf_of(root)) if "whistle" in text]
    margin = 17 / 25.4 * 72
    assert min(heights) >= margin - 1


def test_a_short_table_stands_behind_a_long_one_that_floats(write_book: Write) -> None:
    tables = (
        "| a | b |\n|--|--|\n" + "| 1 | 1 |\n" * rows + f"\n: A {name} table. {{#tbl-{name}}}\n\n"
        for name, rows in (("long", 12), ("short", 2))
    )
    words = "Words. " * 40 + "\n\n"
    index = f"# A\n\nSee @tbl-long and @tbl-short.\n\n{words.join(tables)}"
    texts = pieces(pdf_of(rendered(write_book(index), "typst")))
    long, short = (
        next((page, -height) for text, page, height, _ in texts if f"A {name} table" in text)
        for name in ("long", "short")
    )
    assert long < short


# ---- One format alone


def test_a_build_of_all_formats_stands_for_one(write_book: Write) -> None:
    root = rendered(write_book("# A\n\nOne.\n"), "html")
    assert render(root).startswith("Rendered")
    assert render(root, "html").startswith(SAME)
    assert render(root, "typst").startswith(SAME)
    write_book("# A\n\nTwo.\n")
    assert render(root, "html").startswith("Rendered")
    assert render(root).startswith("Rendered"), "the PDF is of yesterday"
    rendered(write_book("# A\n\nTwo.\n", settings=WITHOUT_PDF))
    assert not list((root / "_book").glob("*.pdf"))


def test_one_format_alone(write_book: Write) -> None:
    root = write_book("# A\n")
    assert press("render", "--to", "pdf", root).returncode == 0
    assert list(files_below(root / "_book")) == ["A-tiny-book.pdf"]
    shutil.rmtree(root / "_book")
    render(root, "html")
    assert not list((root / "_book").glob("*.pdf"))
    assert ".pdf" not in page_of(root)
    inner = "::: {.callout-note}\n```{python}\n1 / 0\n```\n`{python} 1 / 0`\n:::\n"
    write_book(f"# A\n\n{in_format('typst', inner)}\nFor all.\n")
    render(root, "html")  # runs nothing for the PDF
    assert "For all." in page_of(root)
    with pytest.raises(BookError, match="ZeroDivisionError"):
        render(root, "typst")


def test_each_format_alone_keeps_the_other(write_book: Write) -> None:
    root = rendered(write_book("# A\n\nOld.\n"))
    pdf, page = root / "_book/A-tiny-book.pdf", root / "_book/index.html"
    old_pdf, old_page = pdf.read_bytes(), page.read_bytes()
    rendered(write_book("# A\n\nNew.\n"), "typst")
    assert page.read_bytes() == old_page
    assert pdf.read_bytes() != old_pdf
    new_pdf = pdf.read_bytes()
    rendered(write_book("# A\n\nNewest.\n"), "html")
    assert "Newest." in said(root)
    assert pdf.read_bytes() == new_pdf
    assert 'href="A-tiny-book.pdf"' in page_of(root)
    assert press("render", "--to", "html", root).stdout.startswith(SAME)
