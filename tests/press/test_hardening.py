"""Odd books, odd files and bad moments: nothing of the author's is lost, nothing hangs, no process
stays behind, and what is printed is what Quarto would print. Faults of one line are in
`test_refusals`."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from press.book_files import files_below
from press.build import render
from press.document import pandoc
from press.problems import BookError
from tests.draws import draws, of_a_kind
from tests.page_texts import page_texts
from tests.press.tiny_book import (
    REPOSITORY,
    SETTINGS,
    WITHOUT_PDF,
    Write,
    ended,
    press,
    refusal,
    wait_for,
)

RENDER = [sys.executable, "-m", "press", "render"]


def said(root: Path, page: str = "index.html") -> list[str]:
    return page_texts(root / "_book")[page].split("\n")


def refusals(root: Path) -> str:
    """Return the refusals of a book of which something may be there already."""
    with pytest.raises(BookError) as caught:
        render(root)
    return str(caught.value)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextmanager
def rendering(root: Path, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Press as an author runs it, killed at the end whatever happens."""
    process = subprocess.Popen(
        [*RENDER, str(root)], cwd=REPOSITORY,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


# ---- A figure that says how it is drawn again


TWICE = """\
# A

```{{python}}
#| echo: false
#| fig-alt: "A line."
import matplotlib
from matplotlib.figure import Figure
matplotlib.rcParams["svg.fonttype"] = "none"
drawn = []
def draw():
    drawn.append(matplotlib.rcParams["figure.figsize"][0])
    figure = Figure()
    figure.subplots()
    figure.text(0.1, 0.1, f"{{drawn[-1]}} inches")
    return figure
figure = draw()
{again}
figure
```

```{{python}}
#| echo: false
print("Drawn:", drawn, matplotlib.rcParams["figure.figsize"][0])
```
"""


def drawings(root: Path) -> list[tuple[str, str]]:
    """Each drawing of the page: for which pages it is, and the words in it."""
    page = (root / "_book" / "index.html").read_text(encoding="utf-8")
    return re.findall(r'<svg role="img"(?: class="(\w+)")?.*?>([\d.]+ inches)<', page, re.DOTALL)


def test_a_figure_that_says_how_is_drawn_for_a_narrow_page_too(write_book: Write) -> None:
    root = write_book(TWICE.format(again="figure.narrow = draw"))
    render(root)
    assert "Drawn: [7.0, 3.5] 7.0" in said(root)
    assert drawings(root) == [("wide", "7.0 inches"), ("narrow", "3.5 inches")]


def test_any_other_figure_is_drawn_once(write_book: Write) -> None:
    root = write_book(TWICE.format(again=""))
    render(root)
    assert "Drawn: [7.0] 7.0" in said(root)
    assert drawings(root) == [("", "7.0 inches")]


def test_a_narrow_drawing_that_fails_is_refused(write_book: Write) -> None:
    root = write_book(TWICE.format(again="figure.narrow = lambda: 1 / 0"))
    assert refusals(root) == (
        "index.qmd:3: this cell fails with ZeroDivisionError: division by zero"
    )


def test_a_figure_with_nothing_in_it_is_the_text_that_quarto_prints(write_book: Write) -> None:
    code = "from matplotlib.figure import Figure\nFigure()"
    root = write_book(f'# A\n\n```{{python}}\n#| fig-alt: "x"\n{code}\n```\n')
    render(root)
    assert "<Figure size 672x480 with 0 Axes>" in said(root)


# ---- The folder that a build replaces


def test_a_folder_that_press_did_not_make_is_kept(write_book: Write) -> None:
    root = write_book("# A\n", {"_book/index.html": "Quarto's", "_book/.git/HEAD": "ref"})
    before = contents(root / "_book")
    for _ in range(2):
        assert refusals(root) == (
            "_book was not made by press, which replaces its output folder whole: move what is "
            "yours away, or name another folder with `output-dir` in _quarto.yml."
        )
    assert contents(root / "_book") == before
    assert not list(root.glob("._book*"))


def test_chapters_in_the_output_folder_are_kept(write_book: Write) -> None:
    settings = SETTINGS.replace("type: book", "type: book\n  output-dir: _src")
    settings = settings.replace("- index.qmd", "- index.qmd\n    - _src/a.qmd")
    root = write_book("# A\n", {"_src/a.qmd": "# B\n", "_src/data.csv": "1"}, settings)
    assert refusals(root).startswith("_quarto.yml:3: _src was not made by press")
    assert (root / "_src/a.qmd").read_text() == "# B\n"
    assert (root / "_src/data.csv").exists()


FOREIGN = [".git/HEAD", "assets/mine.css"]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_in_the_book_is_named_and_kept(name: str, write_book: Write) -> None:
    root = write_book("# A\n")
    render(root)
    mine = root / "_book" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = contents(root / "_book")
    write_book("# Another\n")
    named = name if name != ".git/HEAD" else ".git"
    assert refusals(root).startswith(f"_book/{named} was not made by press")
    assert contents(root / "_book") == before
    shutil.move(mine.parent if mine.parent.name == ".git" else mine, root.parent)
    render(root)
    assert "1 Another" in said(root)


def test_a_foreign_link_and_a_foreign_folder_are_kept(write_book: Write) -> None:
    root = write_book("# A\n")
    render(root)
    (root / "_book" / "link").symlink_to("nowhere")
    (root / "_book" / "empty").mkdir()
    write_book("# Another\n")
    assert refusals(root).startswith("_book/empty and 1 more were not made by press")
    (root / "_book" / "empty").rmdir()
    assert refusals(root).startswith("_book/link was not made by press")


def test_a_file_that_appears_while_press_renders_is_kept(write_book: Write) -> None:
    root = write_book("# A\n")
    render(root)
    write_book("# B\n\n```{python}\nopen('_book/mine.txt', 'w').write('mine')\n```\n")
    assert refusals(root).startswith("_book/mine.txt was not made by press")
    assert (root / "_book/mine.txt").read_text() == "mine"
    assert "1 A" in said(root)


def test_the_book_of_another_project_is_kept(write_book: Write, tmp_path: Path) -> None:
    root = write_book("# A\n")
    render(root)
    other = tmp_path / "other"
    shutil.copytree(root, other, ignore=shutil.ignore_patterns(".press-cache"))
    before = contents(other / "_book")
    assert refusals(other).startswith(f"press made _book for the project in {root}")
    assert contents(other / "_book") == before


def test_the_book_is_replaced_without_its_cache_and_at_another_place(
    write_book: Write, tmp_path: Path
) -> None:
    root = write_book("# A\n")
    render(root)
    shutil.rmtree(root / ".press-cache")
    write_book("# B\n")
    render(root)
    assert "1 B" in said(root)
    moved = root.rename(tmp_path / "moved")
    (moved / "index.qmd").write_text("# C\n")
    render(moved)
    assert "1 C" in said(moved)


@pytest.mark.parametrize("word", ["new", "old"])
def test_a_folder_beside_the_book_is_kept(word: str, write_book: Write) -> None:
    root = write_book("# A\n", {f"._book.{word}/mine.txt": "mine"})
    assert refusals(root).startswith(f"._book.{word} was not made by press")
    assert (root / f"._book.{word}/mine.txt").read_text() == "mine"
    assert not (root / "_book").exists()


@pytest.mark.parametrize("title", ["A", "B"])  # as it was, of which nothing is rendered again
def test_what_a_killed_build_left_is_no_foreign_folder(title: str, write_book: Write) -> None:
    root = write_book("# A\n")
    render(root)
    old = shutil.copytree(root / "_book", root / "._book.old")
    shutil.rmtree(old / "assets")  # as if the build had been killed while it removed the old book
    (root / "._book.new").mkdir()  # and another before it had marked the new one
    (root / "._book.new" / ".press.json.partial").write_text('{"proj')
    write_book(f"# {title}\n")
    render(root)
    assert f"1 {title}" in said(root)
    assert not list(root.glob("._book*"))


def test_the_settings_as_output_folder_are_kept(write_book: Write) -> None:
    settings = SETTINGS.replace("type: book", "type: book\n  output-dir: _quarto.yml")
    root = write_book("# A\n", settings=settings)
    for _ in range(2):
        assert refusals(root).startswith("_quarto.yml:3: _quarto.yml was not made by press")
    assert (root / "_quarto.yml").read_text() == settings
    write_book("# A\n")
    render(root)


def as_link(book: Path) -> None:
    (book.parent / "elsewhere").mkdir()
    (book.parent / "elsewhere" / "mine.txt").write_text("mine")
    book.symlink_to("elsewhere")


def as_loose_link(book: Path) -> None:
    book.symlink_to("nowhere")


def as_file(book: Path) -> None:
    book.write_text("mine")


def as_pipe(book: Path) -> None:
    os.mkfifo(book)


@pytest.mark.parametrize("make", [as_link, as_loose_link, as_file, as_pipe])
def test_a_book_that_is_no_folder_is_refused_at_once(
    make: Callable[[Path], None], write_book: Write
) -> None:
    root = write_book("# A\n")
    make(root / "_book")
    for _ in range(2):
        assert refusals(root).startswith("_book was not made by press, which replaces")
    assert not list(root.glob("._book*"))
    (root / "_book").unlink()
    render(root)


def test_each_format_alone_keeps_the_other(write_book: Write) -> None:
    root = write_book("# A\n\nOld.\n")
    render(root)
    page = (root / "_book/index.html").read_bytes()
    pdf = (root / "_book/A-tiny-book.pdf").read_bytes()
    write_book("# A\n\nNew.\n")
    render(root, "typst")
    assert (root / "_book/index.html").read_bytes() == page
    assert (root / "_book/A-tiny-book.pdf").read_bytes() != pdf
    pdf = (root / "_book/A-tiny-book.pdf").read_bytes()
    write_book("# A\n\nNewest.\n")
    render(root, "html")
    assert "Newest." in said(root)
    assert (root / "_book/A-tiny-book.pdf").read_bytes() == pdf
    assert 'href="A-tiny-book.pdf"' in (root / "_book/index.html").read_text()
    assert press("render", "--to", "html", root).stdout.startswith("Nothing has changed")


def test_a_format_that_the_settings_no_longer_name_goes(write_book: Write) -> None:
    root = write_book("# A\n")
    render(root)
    write_book("# A\n", settings=WITHOUT_PDF)
    render(root)
    assert not list((root / "_book").glob("*.pdf"))


# ---- What is remembered


def kept(root: Path) -> list[Path]:
    cache = root / ".press-cache"
    return [path for path in cache.rglob("*") if path.is_file() and b"{" in path.read_bytes()[:999]]


SHAPES = ["", "5", "{}", "[]", "[[]]", "null", '"x"', "[1, 2, 3]", '{"a": {}}']


def test_other_shapes_of_what_is_kept_are_made_again(write_book: Write) -> None:
    root = write_book("# A\n\nIt is `{python} 1 + 1`.\n")
    render(root)
    for turn in range(2):
        write_book(f"# A\n\nIt is `{{python}} 1 + 1`, {turn}.\n")
        for number, path in enumerate(sorted((root / ".press-cache").rglob("*"))):
            if path.is_file() and path.name != "lock" and "ipython" not in path.parts:
                path.write_text(SHAPES[(number + 3 * turn) % len(SHAPES)])
        render(root)
        assert f"It is 2, {turn}." in said(root)
        assert render(root).startswith("Nothing has changed")


def test_what_is_kept_and_altered_is_not_believed(write_book: Write) -> None:
    root = write_book("# A\n\nIt is `{python} 'blue'`.\n")
    render(root)
    altered = 0
    for path in (root / ".press-cache").rglob("*"):
        if path.is_file() and b"blue" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"blue", b"pink"))
            altered += 1
    assert altered >= 3
    write_book("# A\n\nIt is `{python} 'blue'`.\n\nMore.\n")
    render(root)
    assert "It is blue." in said(root)
    shutil.rmtree(root / "_book")
    render(root)
    assert "It is blue." in said(root)


def test_what_is_kept_counts_under_its_own_name_alone(write_book: Write) -> None:
    root = write_book("# A\n\nIt is `{python} 'blue'`.\n")
    render(root)
    before = {path: path.read_bytes() for path in kept(root)}
    write_book("# A\n\nIt is `{python} 'pink'`.\n")
    render(root)
    after = set(kept(root)) - set(before)
    for path in after:
        for old, content in before.items():
            if old.parent == path.parent:
                path.write_bytes(content)
    (root / "_book/index.html").unlink()
    render(root)
    assert "It is pink." in said(root)


def test_a_record_of_the_last_build_that_was_altered_moves_nothing(write_book: Write) -> None:
    root = write_book("# A\n", {".chapters.old/mine.txt": "mine"})
    render(root)
    for path in (root / ".press-cache").iterdir():
        if path.is_file() and "_book" in path.read_text():
            path.write_text(path.read_text().replace("_book", "chapters"))
    render(root)
    assert (root / ".chapters.old/mine.txt").exists()
    assert not (root / "chapters").exists()


# ---- Two at one book


def test_a_second_build_waits_and_says_so(write_book: Write) -> None:
    root = write_book("# A\n", settings=WITHOUT_PDF)
    render(root)
    made, hidden = root / ".press-cache" / "last-build.json", root.parent / "hidden"
    made.rename(hidden)
    with (root / ".press-cache" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as another build has it
        with rendering(root) as process:
            assert process.stderr
            assert process.stderr.readline().startswith("Another build of this book is running")
            time.sleep(0.5)
            assert process.poll() is None
            hidden.rename(made)  # which says what it made when it is done
            fcntl.flock(lock, fcntl.LOCK_UN)
            said_at_last = process.communicate(timeout=300)[0]
    assert said_at_last == "Nothing has changed: _book is up to date.\n"


# ---- What would hang


HANGING = {
    "a loop": ("```{python}\nwhile True: pass\n```", 5, "this cell"),
    "code that holds the interpreter": ("```{python}\nx = 9**10**9\n```", 5, "this cell"),
    "another program": ("```{python}\n!sleep 600\n```", 5, "this cell"),
    "an inline value": ("`{python} 1`,\n`{python} sum(iter(int, 1))`", 6, "`sum(iter(int, 1))`"),
    "a signal that is not heard": (
        "```{python}\nimport signal, time\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ntime.sleep(600)\n```",
        5,
        "this cell",
    ),
    "a child that keeps the connection": (
        "```{python}\nimport os, time\nif os.fork(): os._exit(1)\ntime.sleep(600)\n```",
        5,
        "this cell",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(HANGING))
def test_a_cell_has_a_time_limit(what: str, write_book: Write) -> None:
    code, line, name = HANGING[what]
    settings = SETTINGS + "execute:\n  timeout: 1.5\n"
    root = write_book(f"# A\n\nText.\n\n{code}\n", settings=settings)
    with rendering(root) as process:
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    limit = "takes longer than 1.5 s, the limit that `execute.timeout` in _quarto.yml sets."
    ended_itself = "this cell ended its Python process."
    assert errors in (
        f"index.qmd:{line}: {name} {limit}\n",
        f"index.qmd:{line}: {ended_itself}\n" if "child" in what else "",
    )


@pytest.mark.slow
def test_other_chapters_go_on_when_one_meets_the_limit(write_book: Write) -> None:
    chapters = {"b.qmd": "# B\n\n```{python}\nimport time\ntime.sleep(600)\n```\n"}
    chapters["c.qmd"] = "# C\n\n```{python}\n1 / 0\n```\n"
    root = write_book("# A\n\n`{python} 1`\n", chapters, SETTINGS + "execute:\n  timeout: 2\n")
    places = [problem.split(": ")[0] for problem in refusal(root)]
    assert places == ["b.qmd:3", "c.qmd:3"]


MONSTERS = {
    "a line of many words": "word " * 100_000,
    "a paragraph of many lines": "word and another word\n" * 15_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(MONSTERS))
def test_a_monstrous_source_takes_little_memory(what: str, write_book: Write) -> None:
    """The description of such a page took 11.8 GB."""
    root = write_book(f"# A\n\n{MONSTERS[what]}\n")
    run = [*RENDER, root, "--to", "html"]
    done = subprocess.run(run, cwd=REPOSITORY, capture_output=True, text=True, preexec_fn=small)
    assert done.stdout.startswith("Rendered"), done.stderr


def small() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))


@pytest.mark.parametrize("tex", ["{" * 60 + "x" + "}" * 60, r"\sqrt" * 60 + " x", "(" * 60])
def test_math_that_would_kill_typst_is_refused(tex: str, write_book: Write) -> None:
    (problem,) = refusal(write_book(f"# A\n\nThis $y$ and ${tex}$.\n"))
    assert problem == "index.qmd:3: math nests too deep: brackets stand 50 in another at most."


def test_pandoc_has_a_limit_of_memory(write_book: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    pandoc.end_pandocs()  # those that other tests have left
    monkeypatch.setattr(pandoc, "MOST_MEMORY", "-xr64m")
    text = "word [and](b.html) *another*\n" * 20_000
    assert refusal(write_book(f"# A\n\n{text}\n"))[0].endswith("for this chapter: divide it.")


GREEDY = {
    "a list": "x = [bytes(1 << 20) for _ in range(600)]",
    "deep recursion": ("import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f([x])\nf(0)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(GREEDY))
def test_a_chapter_has_a_limit_of_memory(what: str, write_book: Write) -> None:
    """Lowered here by the cell, as whoever may only lower it can."""
    lower = "import resource\nresource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))"
    asked = "resource.getrlimit(resource.RLIMIT_DATA)[1] == 8 << 30"
    code = f"{lower.splitlines()[0]}\nassert {asked}\n{lower}\n{GREEDY[what]}"
    settings = SETTINGS + "execute:\n  timeout: 3\n"  # a deep stack takes long to unwind
    (problem,) = refusal(write_book(f"# A\n\n```{{python}}\n{code}\n```\n", settings=settings))
    assert re.match("index.qmd:3: this cell (fails with Mem|ended its|takes longer)", problem)


@pytest.mark.slow
def test_pipes_and_devices_are_not_read(write_book: Write) -> None:
    root = write_book("# A\n", {"data/x.csv": "1"})
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "data" / "pipe.py")
    (root / "zero").symlink_to("/dev/zero")
    with rendering(root) as process:
        output, errors = process.communicate(timeout=300)
    assert output.startswith("Rendered"), errors


def test_a_linked_folder_outside_is_not_read(write_book: Write, tmp_path: Path) -> None:
    root = write_book("# A\n", {"inside/x.csv": "1", "../outside/y.csv": "1"})
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "again").symlink_to(root / "inside")
    (root / "above").symlink_to(tmp_path)
    names = set(files_below(root))
    assert {"_quarto.yml", "index.qmd"} < names
    assert {name for name in names if name.endswith(".csv")} <= {"inside/x.csv", "again/x.csv"}
    assert any(name.endswith("x.csv") for name in names)


ENDLESS = "[a](b" * 3000  # pandoc tries every way to read it


@pytest.mark.slow
def test_pandoc_has_a_time_limit(write_book: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandoc, "TIME_LIMIT", 1.5)
    (problem,) = refusal(write_book("# A\n\nText.\n", {"b.qmd": f"# B\n\n{ENDLESS}\n"}))
    assert problem.startswith("b.qmd:3: pandoc takes longer than 1.5 s")


# ---- What would stay behind


def processes(mark: str) -> dict[int, str]:
    """The command of each living process whose environment holds a text."""
    commands = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes()
                if mark.encode() in environment and not ended(int(folder.name)):
                    commands[int(folder.name)] = (folder / "cmdline").read_text()
            except OSError:
                continue
    return commands


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment by which processes are known again; none with it is left behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    yield {**os.environ, "TMPDIR": str(folder)}
    for pid in processes(str(folder)):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_press_leaves_no_pandoc(write_book: Write, marked: dict[str, str]) -> None:
    mark = marked["TMPDIR"]

    def pandocs() -> list[int]:
        return [pid for pid, command in processes(mark).items() if "pandoc.lua" in command]

    root = write_book(f"# A\n\n{ENDLESS}\n")
    with rendering(root, env=marked, start_new_session=True) as process:
        wait_for(lambda: bool(pandocs()))
        assert {os.getpgid(pid) for pid in pandocs()} == {process.pid}
        process.kill()
        process.wait()
        wait_for(lambda: not processes(mark))


CLINGING = {
    "a loop that holds the interpreter": "x = 9**10**9",
    "a program": "import subprocess\nsubprocess.run(['sleep', '600'])",
    "a program in a session of its own": (
        "import subprocess\nsubprocess.run(['sleep', '600'], start_new_session=True)"
    ),
    "a copy": "import os, time\nos.fork()\ntime.sleep(600)",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(CLINGING))
def test_a_killed_press_leaves_no_child(
    what: str, write_book: Write, marked: dict[str, str], tmp_path: Path
) -> None:
    started = tmp_path / "started"
    code = f"open({str(started)!r}, 'w').close()\n{CLINGING[what]}"
    root = write_book(f"# A\n\n```{{python}}\n{code}\n```\n")
    with rendering(root, env=marked) as process:
        wait_for(started.exists)
        time.sleep(0.3)
        process.kill()
        process.wait()
        wait_for(lambda: not processes(marked["TMPDIR"]))


LEAVING = {
    "at the limit of time": "import time\ntime.sleep(600)",
    "after it wrote a source": "open('other.qmd', 'w').write('# B')",
    "after it wrote its own": "open('index.qmd', 'a').write('More.')",
    "after a fault": "1 / 0",
    "after a crash": "import os\nos.abort()",
    "after a program in a session of its own": (
        "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(LEAVING))
def test_no_process_is_left_when_press_has_ended(
    what: str, write_book: Write, marked: dict[str, str]
) -> None:
    settings = SETTINGS + "execute:\n  timeout: 1.5\n"
    root = write_book(f"# A\n\n```{{python}}\n{LEAVING[what]}\n```\n", settings=settings)
    with rendering(root, env=marked) as process:
        process.communicate(timeout=300)
        assert not processes(marked["TMPDIR"])


@pytest.mark.slow
@pytest.mark.parametrize("sign", of_a_kind([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("where", ["cell", "pandoc"])
def test_an_interrupt_ends_press_at_once(
    sign: int, where: str, write_book: Write, marked: dict[str, str]
) -> None:
    code = "```{python}\nimport time\ntime.sleep(600)\n```"
    root = write_book(f"# A\n\n{code if where == 'cell' else ENDLESS}\n")
    mark = "kernel.py" if where == "cell" else "pandoc.lua"
    with rendering(root, env=marked, start_new_session=True) as process:
        wait_for(lambda: any(mark in command for command in processes(marked["TMPDIR"]).values()))
        time.sleep(0.5)
        process.send_signal(sign)
        _, errors = process.communicate(timeout=10)
        assert errors == "Stopped; the last good book is as it was.\n"
        assert process.returncode == 130
        assert not processes(marked["TMPDIR"])
    assert not list(root.glob("*_book*"))


@pytest.mark.slow
def test_an_interrupt_while_the_pdf_is_set_leaves_no_folder(
    write_book: Write, marked: dict[str, str]
) -> None:
    rows = "|a|b|\n|-|-|\n" + "|x y|z|\n" * 4_000
    root = write_book(f"# A\n\n{rows}\n")
    with rendering(root, env=marked) as process:
        main = root / ".press-cache" / "typst" / "main.typ"
        wait_for(main.exists)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        assert errors == "Stopped; the last good book is as it was.\n"
    assert not list(root.glob("._book*"))
    assert not processes(marked["TMPDIR"])


@pytest.mark.slow
def test_a_chapter_leaves_no_child(write_book: Write, marked: dict[str, str]) -> None:
    code = "import subprocess\nx = subprocess.Popen(['sleep', '600'])"
    root = write_book(f"# A\n\n```{{python}}\n{code}\n```\n")
    with rendering(root, env=marked) as process:
        output, errors = process.communicate(timeout=300)
    assert output.startswith("Rendered"), errors
    wait_for(lambda: not processes(marked["TMPDIR"]))


CHANGING = """
import json, os, sys
from press.__main__ import main

book, changed = sys.argv[1] + "/_book", []

def note(event, given):
    if event == "open" and not (isinstance(given[2], int) and given[2] & ~os.O_CLOEXEC):
        return
    reading = event in ("os.listdir", "os.scandir", "os.walk")
    if event.startswith(("os.", "open", "shutil.")) and not reading:
        paths = [os.fsdecode(path) for path in given if isinstance(path, str | bytes | os.PathLike)]
        if any(path == book or path.startswith(book + "/") for path in paths):
            changed.append([event, *(os.path.basename(path) for path in paths)])

sys.addaudithook(note)
code = main(["render", sys.argv[1]])
json.dump(changed, sys.stdout)
sys.stdout.flush()
os._exit(code)
"""


def test_a_book_is_replaced_by_two_renames(write_book: Write) -> None:
    """Nothing else changes what is in it, as Python calls that, so a kill can tear no more."""
    root = write_book("# A\n")
    render(root)
    write_book("# B\n")
    command = [sys.executable, "-c", CHANGING, str(root)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["os.rename", "_book", "._book.old"],
        ["os.rename", "._book.new", "_book"],
    ]


@pytest.mark.parametrize("broken", ["index.qmd", "_quarto.yml"])
def test_a_book_that_a_kill_left_between_them_is_put_back(broken: str, write_book: Write) -> None:
    root = write_book("# A\n")
    render(root)
    book = contents(root / "_book")
    (root / "_book").rename(root / "._book.old")
    (root / broken).write_text("project: [")
    refusals(root)
    assert contents(root / "_book") == book


@pytest.mark.slow
@pytest.mark.parametrize("seed", of_a_kind(range(2)))
def test_a_kill_at_any_moment_tears_nothing(
    seed: int, everything: Path, marked: dict[str, str]
) -> None:
    """The book is the old one or the new one, nothing stays behind, and the next build works."""
    chapter = everything / "chapters" / "callouts.qmd"
    render(everything)
    books = [contents(everything / "_book")]
    text = chapter.read_text()
    chapter.write_text(text + "\nA new line.\n")
    start = time.monotonic()
    assert press("render", everything).returncode == 0
    whole = time.monotonic() - start
    books.append(contents(everything / "_book"))
    chance = random.Random(seed)
    for turn in range(1, draws(40) + 1):
        new = (turn - 1) % 2
        chapter.write_text(text + "\nA new line.\n" * new)
        if chance.random() < 0.3:
            shutil.rmtree(everything / ".press-cache", ignore_errors=True)
        with rendering(everything, env=marked) as process:
            kind = chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
            if turn % 3:
                time.sleep(whole * chance.random() * 1.1)
            else:  # while pages are written, which is a small part of the time
                while process.poll() is None and not (everything / "._book.new").exists():
                    time.sleep(0.005)
                kind = signal.SIGKILL
            process.send_signal(kind)
            process.communicate(timeout=300)
        wait_for(lambda: not processes(marked["TMPDIR"]))
        if (everything / "_book").exists():
            assert contents(everything / "_book") in books
        else:  # between the two renames of the swap
            assert contents(everything / "._book.old") in books
        if turn % 6 == 0:
            render(everything)
            assert contents(everything / "_book") == books[new]
            assert not list(everything.glob("._book*"))


# ---- Odd characters


ODD = {"form feed": "\f", "line separator": "\u2028", "next line": "\x85", "file separator": "\x1c"}


@pytest.mark.parametrize("name", ODD)
def test_no_other_character_ends_a_line(name: str, write_book: Write) -> None:
    sign = ODD[name]
    code = f"text = 'a{sign}b'\nprint(len(text), len(text.split(chr({ord(sign)}))))"
    root = write_book(f"# A\n\n```{{python}}\n#| echo: false\n{code}\n```\n")
    render(root)
    assert "3 2" in said(root)
    text = f"# A\n\nOne{sign}line.\n\n```{{python}}\ntext = 'a{sign}b'\n```\n\nSee @fig-none.\n"
    write_book(text)
    assert refusals(root).startswith("index.qmd:9: ")


def test_an_image_with_a_sign_of_addresses_in_its_name_is_shown(write_book: Write) -> None:
    links = "[data](a%3Fb:%20c%23%25.csv) ![c](i%3F.png){fig-alt=x}"
    root = write_book(f"# A\n\nSee {links}\n", {"a?b: c#%.csv": "1"})
    (root / "i?.png").write_bytes(PIXEL)
    render(root)
    page = (root / "_book/index.html").read_text()
    assert 'href="a%3Fb%3A%20c%23%25.csv"' in page
    assert 'src="i%3F.png"' in page
    assert (root / "_book" / "a?b: c#%.csv").exists()
    assert (root / "_book" / "i?.png").exists()


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c63000100000500010d0a2db40000000049454e44ae426082"
)


def test_words_and_values_that_only_look_like_none_are_printed(write_book: Write) -> None:
    values = ["'Hainan (nan)'", "'None'", "'f(x) < g(x) > 0'", "0.5", "True", "(1, 2)", "-3e-9"]
    inline = " and ".join(f"`{{python}} {value}`" for value in values)
    root = write_book(f"# A\n\n{inline}.\n")
    render(root)
    shown = "Hainan (nan) and None and f(x) < g(x) > 0 and 0.5 and True and (1, 2) and -3e-09."
    assert shown in said(root)


# ---- Files beside the book


PROJECTS = {
    "no TOML": (b"[project\n", "this is not valid TOML"),
    "not UTF-8": (b'[project]\nname = "\xa0"\n', "not UTF-8"),
    "arrays in arrays": (b"a = " + b"[" * 20_000, "not valid TOML"),
    "a number as project": (b"project = 3\n", "`project.version`"),
    "a number as version": (b"[project]\nversion = 3\n", "`project.version`"),
    "a text as packages": (
        b'[tool.hatch.build.targets.wheel]\npackages = "calc"\n',
        "`tool.hatch.build.targets.wheel.packages`",
    ),
}


@pytest.mark.parametrize("what", PROJECTS)
def test_a_broken_pyproject_beside_the_book_is_one_sentence(what: str, write_book: Write) -> None:
    content, words = PROJECTS[what]
    root = write_book("# A\n")
    (root / "pyproject.toml").write_bytes(content)
    (problem,) = refusal(root)
    assert problem.startswith("pyproject.toml")
    assert words in problem


DISKS: dict[str, tuple[OSError, str]] = {
    "no file": (OSError(errno.ENOSPC, "No space left on device"),
                "press cannot write: No space left on device."),
    "several files": (
        shutil.Error([("a", "b/x.woff2", "[Errno 28] No space left on device: 'b/x.woff2'")]),
        "press cannot write: No space left on device: b/x.woff2."),
}  # fmt: skip


@pytest.mark.parametrize("what", DISKS)
def test_a_full_disk_is_called_so(
    what: str, write_book: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, sentence = DISKS[what]

    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("shutil.copyfile", full)
    assert refusal(write_book("# A\n")) == [sentence]


FULL_FOR_THE_PDF = """
import resource, sys
import pikepdf
from press.__main__ import main

plain = pikepdf.open

def limited(*given):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    return plain(*given)

pikepdf.open = limited
sys.exit(main(["render", sys.argv[1]]))
"""


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_pdf_comes_is_called_so(write_book: Write) -> None:
    root = write_book("# A\n", settings=SETTINGS.replace("  html: default\n", ""))
    done = subprocess.run(
        [sys.executable, "-c", FULL_FOR_THE_PDF, root],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "press cannot write: File too large.\n")
    assert not (root / "_book").exists()


# ---- Cells that harm themselves


@pytest.mark.slow
def test_a_cell_that_forks_gives_what_its_process_gives(write_book: Write) -> None:
    code = "import os\npid = os.fork()\nprint('parent' if pid else 'child')\nif pid:\n    os.wait()"
    root = write_book(
        f"# A\n\n```{{python}}\n#| echo: false\n{code}\n```\n\nIt is `{{python}} 1 + 1`.\n"
    )
    with rendering(root) as process:
        output, errors = process.communicate(timeout=300)
    assert output.startswith("Rendered"), errors
    assert "parent" in said(root)
    assert "child" not in said(root)
    assert "It is 2." in said(root)


REMOVALS = {
    "its folder": "import os, shutil\nshutil.rmtree(os.getcwd())",
    "what press remembers": "import shutil\nshutil.rmtree('.press-cache')",
    "its chapter": "import os\nos.remove('index.qmd')",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(REMOVALS))
def test_a_cell_that_removes_what_press_needs_is_no_traceback(what: str, write_book: Write) -> None:
    root = write_book(f"# A\n\n```{{python}}\n{REMOVALS[what]}\n```\n\n`{{python}} 1 + 1`\n")
    done = press("render", root)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert done.stderr.count("\n") == done.returncode
