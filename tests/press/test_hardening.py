"""Odd books, odd files and bad moments: nothing of the author's is lost, nothing hangs, no process
stays behind, and what is printed is what Quarto would print. Faults of one line are in
`test_refusals`."""

from __future__ import annotations

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
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from press.book_files import files_below, room_for
from press.build import render
from press.document import pandoc
from press.writing.output import Output
from tests.draws import draws, of_a_kind
from tests.press.tiny_book import (
    IN_TIME,
    PIXEL,
    REPOSITORY,
    SETTINGS,
    WITHOUT_PDF,
    Write,
    cell,
    page_of,
    press,
    refusal,
    refusals,
    rendered,
    said,
    started,
    wait_for,
)

STOPPED = "Stopped; the last good book is as it was.\n"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# ---- A figure that says how it is drawn again


TWICE = """\
import matplotlib
from matplotlib.figure import Figure
matplotlib.rcParams["svg.fonttype"] = "none"
drawn = []
def draw():
    drawn.append(matplotlib.rcParams["figure.figsize"][0])
    figure = Figure()
    figure.subplots()
    figure.text(0.1, 0.1, f"{drawn[-1]} inches")
    return figure
figure = draw()
figure.narrow = AGAIN
figure"""
DRAWN = cell('print("Drawn:", drawn, matplotlib.rcParams["figure.figsize"][0])')
DRAWINGS = {
    "draw": ("Drawn: [7.0, 3.5] 7.0", [("wide", "7.0 inches"), ("narrow", "3.5 inches")]),
    "None": ("Drawn: [7.0] 7.0", [("", "7.0 inches")]),
}


@pytest.mark.parametrize("again", DRAWINGS)
def test_a_figure_that_says_how_is_drawn_for_a_narrow_page_too(
    again: str, write_book: Write
) -> None:
    figure = cell(TWICE.replace("AGAIN", again), 'fig-alt: "A line."')
    root = rendered(write_book(f"# A\n\n{figure}\n{DRAWN}"))
    line, drawings = DRAWINGS[again]
    assert line in said(root)
    pattern = r'<svg role="img"(?: class="(\w+)")?.*?>([\d.]+ inches)<'
    assert re.findall(pattern, page_of(root), re.DOTALL) == drawings
    write_book(f"# A\n\n{cell(TWICE.replace('AGAIN', 'lambda: 1 / 0'), 'fig-alt: A')}")
    (problem,) = refusals(root)
    assert problem == "index.qmd:3: this cell fails with ZeroDivisionError: division by zero"


# ---- The folder that a build replaces


KEPT = {  # files that press did not make, where the book is to lie, and what is said of them
    "_book": (["_book/index.html", "_book/.git/HEAD"], "_book was not made by press, which replaces"
        " its output folder whole: move what is yours away, or name another folder with"
        " `output-dir` in _quarto.yml."),
    "_src": (["_src/a.qmd", "_src/data.csv"], "_quarto.yml:3: _src was not made by press"),
    "_quarto.yml": ([], "_quarto.yml:3: _quarto.yml was not made by press"),
    "._book.new": (["._book.new/mine.txt"], "._book.new was not made by press"),
    "._book.old": (["._book.old/mine.txt"], "._book.old was not made by press"),
}  # fmt: skip


@pytest.mark.parametrize("folder", KEPT)
def test_a_folder_that_press_did_not_make_is_kept(folder: str, write_book: Write) -> None:
    names, sentence = KEPT[folder]
    output = "" if "_book" in folder else f"\n  output-dir: {folder}"
    files = dict.fromkeys(names, "# Mine\n")
    root = write_book("# A\n", files, SETTINGS.replace("type: book", f"type: book{output}"))
    before = contents(root)
    for _ in range(2):
        (problem,) = refusals(root)
        assert problem.startswith(sentence)
    assert before.items() <= contents(root).items()
    assert {path.name for path in root.glob("*_book*")} <= {folder}
    for name in {Path(name).parts[0] for name in names}:
        shutil.rmtree(root / name)
    rendered(write_book("# A\n"))


NO_FOLDERS: dict[str, Callable[[Path], object]] = {
    "link": lambda book: book.symlink_to("elsewhere"),
    "loose link": lambda book: book.symlink_to("nowhere"),
    "file": lambda book: book.write_text("mine"),
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("what", NO_FOLDERS)
def test_a_book_that_is_no_folder_is_refused_at_once(what: str, write_book: Write) -> None:
    root = write_book("# A\n", {"elsewhere/mine.txt": "mine"})
    NO_FOLDERS[what](root / "_book")
    for _ in range(2):
        assert refusals(root)[0].startswith("_book was not made by press, which replaces")
    assert not list(root.glob("._book*"))
    (root / "_book").unlink()
    render(root)


@pytest.mark.parametrize("name", [".git/HEAD", "assets/mine.css", "link", "empty/"])
def test_a_foreign_file_in_the_book_is_named_and_kept(name: str, write_book: Write) -> None:
    root = rendered(write_book("# A\n"))
    mine = root / "_book" / name
    mine.parent.mkdir(exist_ok=True)
    if name == "link":
        mine.symlink_to("nowhere")
    elif name == "empty/":
        mine.mkdir()
    else:
        mine.write_text("mine")
    before = contents(root / "_book")
    write_book("# Another\n")
    mine = mine.parent if name == ".git/HEAD" else mine
    named = mine.relative_to(root)
    assert refusals(root)[0].startswith(f"{named} was not made by press")
    (root / "_book" / "more").symlink_to("nowhere")
    assert refusals(root)[0].startswith(f"{named} and 1 more were not made by press")
    (root / "_book" / "more").unlink()
    assert contents(root / "_book") == before
    shutil.move(mine, root.parent)
    render(root)
    assert "1 Another" in said(root)


def test_a_file_that_appears_while_press_renders_is_kept(write_book: Write) -> None:
    root = rendered(write_book("# A\n"))
    write_book("# B\n\n```{python}\nopen('_book/mine.txt', 'w').write('mine')\n```\n")
    assert refusals(root)[0].startswith("_book/mine.txt was not made by press")
    assert (root / "_book/mine.txt").read_text() == "mine"
    assert "1 A" in said(root)


def test_a_book_is_replaced_without_its_cache_and_elsewhere_but_not_of_another_project(
    write_book: Write, tmp_path: Path
) -> None:
    root = rendered(write_book("# A\n"))
    other = tmp_path / "other"
    shutil.copytree(root, other, ignore=shutil.ignore_patterns(".press-cache"))
    before = contents(other / "_book")
    assert refusals(other)[0].startswith(f"press made _book for the project in {root}")
    assert contents(other / "_book") == before
    shutil.rmtree(root / ".press-cache")
    rendered(write_book("# B\n"))
    assert "1 B" in said(root)
    moved = root.rename(tmp_path / "moved")
    (moved / "index.qmd").write_text("# C\n")
    assert "1 C" in said(rendered(moved))


@pytest.mark.parametrize("title", ["A", "B"])  # as it was, of which nothing is rendered again
def test_what_a_killed_build_left_is_no_foreign_folder(title: str, write_book: Write) -> None:
    root = rendered(write_book("# A\n"))
    old = shutil.copytree(root / "_book", root / "._book.old")
    shutil.rmtree(old / "assets")  # as if the build had been killed while it removed the old book
    (root / "._book.new").mkdir()  # and another before it had marked the new one
    (root / "._book.new" / ".press.json.partial").write_text('{"proj')
    assert f"1 {title}" in said(rendered(write_book(f"# {title}\n")))
    assert not list(root.glob("._book*"))


def test_what_an_interrupted_build_still_writes_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / ".press-cache").mkdir()
    output = Output(tmp_path, tmp_path / "_book", 0)

    def writes() -> None:
        with suppress(OSError):  # once there is no such folder
            for number in count():
                room_for(output.new, f"chapters/{number}.html").write_text("page")

    for _ in range(30):
        with suppress(KeyboardInterrupt), output.replaced("", None):
            writer = Thread(target=writes)
            writer.start()
            time.sleep(0.001)
            raise KeyboardInterrupt
        writer.join()
        assert not output.new.exists()
        output.check()


# ---- What is remembered


BLUE, PINK = "# A\n\nIt is `{python} 'blue'`.\n", "# A\n\nIt is `{python} 'pink'`.\n"
SHAPES = ["", "5", "{}", "[]", "[[]]", "null", '"x"', "[1, 2, 3]", '{"a": {}}']


def files_of(root: Path) -> list[Path]:
    return sorted(path for path in (root / ".press-cache").rglob("*") if path.is_file())


def test_other_shapes_of_what_is_kept_are_made_again(write_book: Write) -> None:
    root = rendered(write_book(BLUE))
    for turn in range(2):
        write_book(f"{BLUE}\nTurn {turn}.\n")
        for number, path in enumerate(files_of(root)):
            if path.name != "lock" and "ipython" not in path.parts:
                path.write_text(SHAPES[(number + 3 * turn) % len(SHAPES)])
        assert {"It is blue.", f"Turn {turn}."} <= {*said(rendered(root))}
        assert render(root).startswith("Nothing has changed")


def test_what_is_kept_and_altered_is_not_believed(write_book: Write) -> None:
    root = rendered(write_book(BLUE))
    kept = [path for path in files_of(root) if b"blue" in path.read_bytes()]
    assert len(kept) >= 3
    for path in kept:
        path.write_bytes(path.read_bytes().replace(b"blue", b"pink"))
    assert "It is blue." in said(rendered(write_book(f"{BLUE}\nMore.\n")))
    shutil.rmtree(root / "_book")
    assert "It is blue." in said(rendered(root))


def test_what_is_kept_counts_under_its_own_name_alone(write_book: Write) -> None:
    root = rendered(write_book(BLUE))
    before = {path: path.read_bytes() for path in files_of(root) if b"{" in path.read_bytes()[:999]}
    rendered(write_book(PINK))
    for path in set(files_of(root)) - set(before):
        for old, content in before.items():
            if old.parent == path.parent and b"{" in path.read_bytes()[:999]:
                path.write_bytes(content)
    (root / "_book/index.html").unlink()
    assert "It is pink." in said(rendered(root))


def test_a_record_of_the_last_build_that_was_altered_moves_nothing(write_book: Write) -> None:
    root = rendered(write_book("# A\n", {".chapters.old/mine.txt": "mine"}))
    for path in (root / ".press-cache").iterdir():
        if path.is_file() and "_book" in path.read_text():
            path.write_text(path.read_text().replace("_book", "chapters"))
    render(root)
    assert (root / ".chapters.old/mine.txt").exists()
    assert not (root / "chapters").exists()


def test_a_second_build_waits_and_says_so(write_book: Write) -> None:
    root = rendered(write_book("# A\n", settings=WITHOUT_PDF))
    made, hidden = root / ".press-cache" / "last-build.json", root.parent / "hidden"
    made.rename(hidden)
    with (root / ".press-cache" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as another build has it
        with started("render", root) as process:
            assert process.stderr
            assert process.stderr.readline().startswith("Another build of this book is running")
            time.sleep(0.5)
            assert process.poll() is None
            hidden.rename(made)  # which says what it made when it is done
            fcntl.flock(lock, fcntl.LOCK_UN)
            said_at_last = process.communicate(timeout=300)[0]
    assert said_at_last == "Nothing has changed: _book is up to date.\n"


# ---- What would hang


BLOCKED = "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\ntime.sleep(600)"
HANGING = {
    "a loop": ("```{python}\nwhile True: pass\n```", 5, "this cell"),
    "code that holds the interpreter": ("```{python}\nx = 9**10**9\n```", 5, "this cell"),
    "another program": ("```{python}\n!sleep 600\n```", 5, "this cell"),
    "an inline value": ("`{python} 1`,\n`{python} sum(iter(int, 1))`", 6, "`sum(iter(int, 1))`"),
    "a signal that is not heard": (
        f"```{{python}}\nimport signal, time\n{BLOCKED}\n```", 5, "this cell"),
    "a child that keeps the connection": (
        "```{python}\nimport os, time\nif os.fork(): os._exit(1)\ntime.sleep(600)\n```",
        5, "this cell"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(HANGING))
def test_a_cell_has_a_time_limit(what: str, write_book: Write) -> None:
    code, line, name = HANGING[what]
    done = press("render", write_book(f"# A\n\nText.\n\n{code}\n", settings=IN_TIME), timeout=300)
    assert done.returncode == 1
    limit = "takes longer than 1.5 s, the limit that `execute.timeout` in _quarto.yml sets."
    ended_itself = "this cell ended its Python process."
    assert done.stderr in (
        f"index.qmd:{line}: {name} {limit}\n",
        f"index.qmd:{line}: {ended_itself}\n" if "child" in what else "",
    )


MONSTERS = {
    "a line of many words": "word " * 100_000,
    "a paragraph of many lines": "word and another word\n" * 15_000,
}


def small() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(MONSTERS))
def test_a_monstrous_source_takes_little_memory(what: str, write_book: Write) -> None:
    """The description of such a page took 11.8 GB."""
    root = write_book(f"# A\n\n{MONSTERS[what]}\n")
    done = press("render", root, "--to", "html", preexec_fn=small)
    assert done.stdout.startswith("Rendered"), done.stderr


def test_pandoc_has_a_limit_of_memory(write_book: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    pandoc.end_pandocs()  # those that other tests have left
    monkeypatch.setattr(pandoc, "MOST_MEMORY", "-xr64m")
    text = "word [and](b.html) *another*\n" * 20_000
    assert refusal(write_book(f"# A\n\n{text}\n"))[0].endswith("for this chapter: divide it.")


ENDLESS = "[a](b" * 3000  # pandoc tries every way to read it


@pytest.mark.slow
def test_pandoc_has_a_time_limit(write_book: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandoc, "TIME_LIMIT", 1.5)
    (problem,) = refusal(write_book("# A\n\nText.\n", {"b.qmd": f"# B\n\n{ENDLESS}\n"}))
    assert problem.startswith("b.qmd:3: pandoc takes longer than 1.5 s")


GREEDY = {
    "a list": "x = [bytes(1 << 20) for _ in range(600)]",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f([x])\nf(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(GREEDY))
def test_a_chapter_has_a_limit_of_memory(what: str, write_book: Write) -> None:
    """Lowered here by the cell, as whoever may only lower it can."""
    asked = "resource.getrlimit(resource.RLIMIT_DATA)[1] == 8 << 30"
    lower = "resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))"
    code = f"import resource\nassert {asked}\n{lower}\n{GREEDY[what]}"
    settings = SETTINGS + "execute:\n  timeout: 3\n"  # a deep stack takes long to unwind
    (problem,) = refusal(write_book(f"# A\n\n{cell(code)}", settings=settings))
    assert re.match("index.qmd:3: this cell (fails with Mem|ended its|takes longer)", problem)


@pytest.mark.slow
def test_pipes_and_devices_are_not_read(write_book: Write) -> None:
    root = write_book("# A\n", {"data/x.csv": "1"})
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "data" / "pipe.py")
    (root / "zero").symlink_to("/dev/zero")
    assert press("render", root, timeout=300).stdout.startswith("Rendered")


def test_a_linked_folder_outside_is_not_read(write_book: Write, tmp_path: Path) -> None:
    root = write_book("# A\n", {"inside/x.csv": "1", "../outside/y.csv": "1"})
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "again").symlink_to(root / "inside")
    (root / "above").symlink_to(tmp_path)
    names = set(files_below(root))
    assert {"_quarto.yml", "index.qmd"} < names
    assert {name for name in names if name.endswith(".csv")} <= {"inside/x.csv", "again/x.csv"}
    assert any(name.endswith("x.csv") for name in names)


# ---- What would stay behind


def processes(mark: str) -> dict[int, str]:
    """The command of each living process whose environment holds a text."""
    commands = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if mark.encode() in (folder / "environ").read_bytes() and state != "Z":
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
    begun = tmp_path / "begun"
    code = f"open({str(begun)!r}, 'w').close()\n{CLINGING[what]}"
    root = write_book(f"# A\n\n{cell(code)}")
    with started("render", root, env=marked) as process:
        wait_for(begun.exists)
        time.sleep(0.3)
        process.kill()
        process.wait()
        wait_for(lambda: not processes(marked["TMPDIR"]))


@pytest.mark.slow
def test_a_killed_press_leaves_no_pandoc(write_book: Write, marked: dict[str, str]) -> None:
    mark = marked["TMPDIR"]

    def pandocs() -> list[int]:
        return [pid for pid, command in processes(mark).items() if "pandoc.lua" in command]

    root = write_book(f"# A\n\n{ENDLESS}\n")
    with started("render", root, env=marked, start_new_session=True) as process:
        wait_for(lambda: bool(pandocs()))
        assert {os.getpgid(pid) for pid in pandocs()} == {process.pid}
        process.kill()
        process.wait()
        wait_for(lambda: not processes(mark))


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
    root = write_book(f"# A\n\n{cell(LEAVING[what])}", settings=IN_TIME)
    press("render", root, env=marked, timeout=300)
    assert not processes(marked["TMPDIR"])


@pytest.mark.slow
def test_a_chapter_leaves_no_child(write_book: Write, marked: dict[str, str]) -> None:
    code = cell("import subprocess\nx = subprocess.Popen(['sleep', '600'])")
    done = press("render", write_book(f"# A\n\n{code}"), env=marked, timeout=300)
    assert done.stdout.startswith("Rendered"), done.stderr
    wait_for(lambda: not processes(marked["TMPDIR"]))


@pytest.mark.slow
@pytest.mark.parametrize("sign", of_a_kind([signal.SIGINT, signal.SIGTERM]))
@pytest.mark.parametrize("where", ["cell", "pandoc"])
def test_an_interrupt_ends_press_at_once(
    sign: int, where: str, write_book: Write, marked: dict[str, str]
) -> None:
    source = cell("import time\ntime.sleep(600)") if where == "cell" else ENDLESS
    root = write_book(f"# A\n\n{source}\n")
    mark = "press.running.kernel" if where == "cell" else "pandoc.lua"
    with started("render", root, env=marked, start_new_session=True) as process:
        wait_for(lambda: any(mark in command for command in processes(marked["TMPDIR"]).values()))
        time.sleep(0.5)
        process.send_signal(sign)
        assert process.communicate(timeout=10)[1] == STOPPED
        assert process.returncode == 130
        assert not processes(marked["TMPDIR"])
    assert not list(root.glob("*_book*"))


@pytest.mark.slow
def test_an_interrupt_while_the_pdf_is_set_leaves_no_folder(
    write_book: Write, marked: dict[str, str]
) -> None:
    rows = "|a|b|\n|-|-|\n" + "|x y|z|\n" * 4_000
    root = write_book(f"# A\n\n{rows}\n")
    with started("render", root, env=marked) as process:
        wait_for((root / ".press-cache" / "typst" / "main.typ").exists)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=10)[1] == STOPPED
    assert not list(root.glob("._book*"))
    assert not processes(marked["TMPDIR"])


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
    rendered(write_book("# A\n"))
    command = [sys.executable, "-c", CHANGING, str(write_book("# B\n"))]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["os.rename", "_book", "._book.old"],
        ["os.rename", "._book.new", "_book"],
    ]


@pytest.mark.parametrize("broken", ["index.qmd", "_quarto.yml"])
def test_a_book_that_a_kill_left_between_them_is_put_back(broken: str, write_book: Write) -> None:
    root = rendered(write_book("# A\n"))
    book = contents(root / "_book")
    (root / "_book").rename(root / "._book.old")
    (root / broken).write_text("project: [")
    assert refusals(root)
    assert contents(root / "_book") == book


@pytest.mark.slow
@pytest.mark.parametrize("seed", of_a_kind(range(2)))
def test_a_kill_at_any_moment_tears_nothing(
    seed: int, everything: Path, marked: dict[str, str]
) -> None:
    """The book is the old one or the new one, nothing stays behind, and the next build works."""
    chapter = everything / "chapters" / "callouts.qmd"
    texts = [chapter.read_text(), chapter.read_text() + "\nA new line.\n"]
    render(everything)
    books = [contents(everything / "_book")]
    chapter.write_text(texts[1])
    start = time.monotonic()
    assert press("render", everything).returncode == 0
    whole = time.monotonic() - start
    books.append(contents(everything / "_book"))
    chance = random.Random(seed)
    for turn in range(1, draws(40) + 1):
        new = (turn - 1) % 2
        chapter.write_text(texts[new])
        if chance.random() < 0.3:
            shutil.rmtree(everything / ".press-cache", ignore_errors=True)
        with started("render", everything, env=marked) as process:
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
        swapped = (everything / "_book").exists()  # or a kill came between the two renames
        assert contents(everything / ("_book" if swapped else "._book.old")) in books
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
    root = rendered(write_book(f"# A\n\n{cell(code)}"))
    assert "3 2" in said(root)
    code = f"```{{python}}\ntext = 'a{sign}b'\n```"
    write_book(f"# A\n\nOne{sign}line.\n\n{code}\n\nSee @fig-none.\n")
    assert refusals(root)[0].startswith("index.qmd:9: ")


def test_an_image_with_a_sign_of_addresses_in_its_name_is_shown(write_book: Write) -> None:
    links = "[data](a%3Fb:%20c%23%25.csv) ![c](i%3F.png){fig-alt=x}"
    root = write_book(f"# A\n\nSee {links}\n", {"a?b: c#%.csv": "1"})
    (root / "i?.png").write_bytes(PIXEL)
    page = page_of(rendered(root))
    assert 'href="a%3Fb%3A%20c%23%25.csv"' in page
    assert 'src="i%3F.png"' in page
    assert (root / "_book" / "a?b: c#%.csv").exists()
    assert (root / "_book" / "i?.png").exists()


# ---- Full disks, and cells that harm themselves


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
    command = [sys.executable, "-c", FULL_FOR_THE_PDF, str(root)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "press cannot write: File too large.\n")
    assert not (root / "_book").exists()


@pytest.mark.slow
def test_a_chapter_goes_on_once_after_a_cell_that_forks(write_book: Write) -> None:
    code = "import os\npid = os.fork()\nprint('parent' if pid else 'child')\nif pid:\n    os.wait()"
    root = write_book(f"# A\n\n{cell(code)}\nIt is `{{python}} 1 + 1`.\n")
    assert press("render", root, timeout=300).stdout.startswith("Rendered")
    lines = said(root)
    assert [lines.count(line) for line in ("parent", "child", "It is 2.")] == [1, 1, 1]


REMOVALS = {
    "its folder": "import os, shutil\nshutil.rmtree(os.getcwd())",
    "what press remembers": "import shutil\nshutil.rmtree('.press-cache')",
    "its chapter": "import os\nos.remove('index.qmd')",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", of_a_kind(REMOVALS))
def test_a_cell_that_removes_what_press_needs_is_no_traceback(what: str, write_book: Write) -> None:
    done = press("render", write_book(f"# A\n\n{cell(REMOVALS[what])}\n`{{python}} 1 + 1`\n"))
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert done.stderr.count("\n") == done.returncode
