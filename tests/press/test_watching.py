"""`press watch`: the book follows its files, and is what a render from nothing gives."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from press import build, watch as watching
from press.book_files import files_below
from tests.press.tiny_book import Write, press, said, started

FIGURE = """
```{{python}}
#| fig-alt: "A line."
import matplotlib.pyplot as plt
plt.subplots(figsize=(3, {height}))[1].plot([1, {height}])
plt.show()
```
"""
Watch = Callable[[Path], subprocess.Popen[str]]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Starts to watch a book; what it says on either stream comes on one."""
    with ExitStack() as running:

        def start(root: Path) -> subprocess.Popen[str]:
            process = running.enter_context(started("watch", root, stderr=subprocess.STDOUT))
            first = "What is not rendered yet is rendered first."
            assert told(process) == f"Watching {root.resolve()}; Ctrl+C ends it. {first}\n"
            return process

        yield start


def told(process: subprocess.Popen[str]) -> str:
    """The next line, but for one that says that a file was saved before the last was written."""
    assert process.stdout
    line = process.stdout.readline()
    return told(process) if line.startswith("Files were saved meanwhile") else line


@pytest.mark.slow
def test_each_change_is_rendered_and_gives_what_a_render_from_nothing_gives(
    everything: Path, watch: Watch
) -> None:
    process = watch(everything)
    assert told(process).startswith("Rendered ")
    chapter = everything / "chapters" / "callouts.qmd"
    for line in ("The first new line.", "The second new line."):
        chapter.write_text(chapter.read_text() + f"\n{line}\n")
        assert told(process).startswith("Rendered ")
        assert line in said(everything, "chapters/callouts")
    for height in (1, 2):
        chapter.write_text(chapter.read_text() + FIGURE.format(height=height))
        assert told(process).startswith("Rendered ")
    watched = files_below(everything / "_book")
    process.send_signal(signal.SIGINT)
    assert told(process) == "Stopped; the last good book is as it was.\n"
    shutil.rmtree(everything / ".press-cache")
    shutil.rmtree(everything / "_book")
    press("render", everything)
    assert files_below(everything / "_book") == watched


def test_a_fault_is_said_and_its_mending_rendered(write_book: Write, watch: Watch) -> None:
    root = write_book("# A\n\nGood.\n")
    process = watch(root)
    assert told(process).startswith("Rendered ")
    (root / "index.qmd").write_text("# A\n\nSee @fig-none.\n")
    assert told(process).startswith("index.qmd:3: the reference @fig-none cannot be resolved")
    assert "Good." in said(root)
    (root / "index.qmd").write_text("# A\n\nBetter.\n")
    assert told(process).startswith("Rendered ")
    assert "Better." in said(root)


def test_press_begins_anew_with_its_own_arguments_where_its_installation_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is brought in, and a file that changes: what is watched stays the same."""
    installations = iter([["press 1"], ["press 2"]])
    stamps = iter([{}, {}, {}, {"index.qmd": 1}])
    begun: list[list[str]] = []

    def anew(program: str, arguments: list[str]) -> None:
        begun.append([program, *arguments])
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "installation", lambda: next(installations))
    monkeypatch.setattr(watching, "_stamps", lambda _: next(stamps))
    monkeypatch.setattr(watching, "run_scripts", lambda _: None)
    monkeypatch.setattr(build, "render", lambda *_, **__: "Rendered")
    monkeypatch.setattr(os, "execv", anew)
    monkeypatch.setattr(sys, "argv", ["press", "watch", "--to", "html"])
    with pytest.raises(KeyboardInterrupt):
        watching.watch(tmp_path, None)
    python = sys.executable
    assert begun == [[python, python, "-m", "press", "watch", "--to", "html"]]
