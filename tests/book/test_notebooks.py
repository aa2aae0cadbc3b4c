"""Each chapter's notebook, downloaded, runs where the wheel and its extra `book` are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from press.reading.project import read_book
from press.reading.source import Cell, read_source
from tests.book.rendered import REPOSITORY

# Runs notebooks in their folders, each by a kernel of its own, and holds what its cells give
# against what was printed with them, as far as it is text.
RUN = """
import pathlib, sys, nbclient, nbformat
def told(cell):
    return "".join(o.get("text") or o["data"].get("text/markdown", "") for o in cell.outputs)
def run(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    before = [told(cell) for cell in cells]
    place = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(book, timeout=300, kernel_name="fresh", resources=place).execute()
    for cell, old in zip(cells, before):
        assert told(cell) == old, f"{cell.source} was printed with {old} and gives {told(cell)}"
for path in map(pathlib.Path, sys.argv[1:]):
    try:
        run(path)
    except Exception as error:
        print(f"{path.stem}: {str(error)[-2000:]}")
"""


def command(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    words = list(map(str, arguments))
    return subprocess.run(words, capture_output=True, text=True, check=False, **more)


@pytest.fixture(scope="session")
def reader_s_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python in an environment that holds the wheel with [book] and nothing else of ours."""
    folder = tmp_path_factory.mktemp("reader")
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / "bin" / "python"
    lock = REPOSITORY / "tools" / "requirements" / "book.txt"
    pip = (python, "-m", "pip", "install", "--quiet", "--no-input", "--no-compile")
    filled = command(*pip, "--require-hashes", "-r", lock)
    if filled.returncode:
        reason = (filled.stderr.strip().splitlines() or ["?"])[-1]
        pytest.fail(f"the notebooks need a fresh environment, and pip cannot fill it: {reason}")
    wheels = ("--wheel-dir", folder, REPOSITORY)  # the build tool came with the lock
    built = command(
        python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", *wheels
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    done = command(*pip, "--no-index", f"machine-foundations[book] @ {wheel.as_uri()}")
    assert done.returncode == 0, f"the lock book.txt lacks what [book] needs: {done.stderr}"
    return python


def with_cells() -> dict[str, str]:
    """The names of the chapters that have a notebook, with their pages."""
    book = read_book(REPOSITORY)
    return {
        Path(chapter.file).stem: chapter.href
        for chapter in book.chapters
        if any(
            isinstance(piece, Cell)
            for piece in read_source(REPOSITORY, chapter, book.execute, ["html"]).pieces
        )
    }


@pytest.mark.nightly
@pytest.mark.first
def test_each_notebook_runs_in_a_fresh_environment(
    reader_s_python: Path, book: Path, tmp_path: Path
) -> None:
    zips = sorted((book / "notebooks").glob("*.zip"))
    assert {path.stem for path in zips} == with_cells().keys()
    workers = os.cpu_count() or 1
    shares = [zips[first::workers] for first in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        run = partial(faults, reader_s_python, tmp_path)
        assert "".join(pool.map(run, shares)) == ""


def test_a_notebook_gives_what_its_page_shows(book: Path, tmp_path: Path) -> None:
    path = book / "notebooks" / "roofline.zip"
    assert faults(Path(sys.executable), tmp_path, [path]) == ""


def faults(python: Path, folder: Path, zips: list[Path]) -> str:
    """Run notebooks by this Python, and return their faults."""
    kernel = [str(python), *("-m", "ipykernel_launcher", "-f", "{connection_file}")]
    described = folder / "jupyter" / "kernels" / "fresh" / "kernel.json"
    described.parent.mkdir(parents=True, exist_ok=True)
    described.write_text(
        json.dumps({"argv": kernel, "display_name": "Fresh", "language": "python"})
    )
    for path in zips:
        ZipFile(path).extractall(folder / "downloads")
    places = [folder / "downloads" / path.stem / f"{path.stem}.ipynb" for path in zips]
    environment = {**os.environ, "JUPYTER_PATH": str(folder / "jupyter")}
    done = command(sys.executable, "-c", RUN, *places, env=environment)
    return done.stdout + done.stderr * bool(done.returncode)


def test_notebooks_say_what_the_pages_say(book: Path) -> None:
    with ZipFile(book / "notebooks" / "roofline.zip") as archive:
        names = archive.namelist()
        notebook = json.loads(archive.read("roofline/roofline.ipynb"))
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert {"roofline/figures/style.py", "roofline/figures/book.mplstyle"} <= set(names)
    assert not [name for name in names if "calc" in name]
    text = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    words = "\n".join(text).replace("\u00a0", " ")
    assert "keys and values along (Figure 8.2)" in words
    assert "(Kaplan et al. 2020)" in words
    assert "295 FLOP/byte" in words
    assert "{python}" not in words
    assert "press-" not in words
    assert "](../" not in words


def test_each_page_that_runs_cells_links_to_its_notebook(book: Path) -> None:
    for name, href in with_cells().items():
        page = (book / href).read_text(encoding="utf-8")
        assert f'notebooks/{name}.zip" download' in page
