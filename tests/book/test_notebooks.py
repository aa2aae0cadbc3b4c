"""Each chapter's notebook, downloaded, runs where the wheel and its extra `book` are installed."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from press.reading.project import read_book
from press.reading.source import Cell, read_source
from tests.book.rendered import REPOSITORY


def fault(path: Path) -> str:
    """What is wrong with a notebook, run in its folder by the kernel `fresh`, if anything is.

    What its cells give is held against what was printed with them, as far as it is text.
    """
    import nbformat  # half a second, with the client, that only the slow tier needs
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    before = list(map(told, cells))
    place = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=300, kernel_name="fresh", resources=place)
    try:
        client.execute()
    except Exception as error:  # a cell that fails, or a kernel
        return f"{path.stem}: {str(error)[-2000:]}"
    changed = [
        f"{cell.source} was printed with {old} and gives {told(cell)}"
        for cell, old in zip(cells, before, strict=True)
        if told(cell) != old
    ]
    return f"{path.stem}: {'; '.join(changed)}" if changed else ""


def told(cell: Any) -> str:
    return "".join(o.get("text") or o["data"].get("text/markdown", "") for o in cell.outputs)


def command(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    words = list(map(str, arguments))
    return subprocess.run(words, capture_output=True, text=True, check=False, **more)


def filled_environment(folder: Path) -> Path:
    """A Python in an environment that holds the wheel with [book] and nothing else of ours."""
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / "bin" / "python"
    lock = REPOSITORY / "requirements" / "book.txt"
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
    assert done.returncode == 0, f"requirements/book.txt lacks what [book] needs: {done.stderr}"
    return python


def with_cells() -> set[str]:
    book = read_book(REPOSITORY)
    return {
        Path(chapter.file).stem
        for chapter in book.chapters
        if any(
            isinstance(piece, Cell)
            for piece in read_source(REPOSITORY, chapter, book.execute).pieces
        )
    } - {"answers"}  # whose cells stand in the PDF alone


@pytest.mark.slow
@pytest.mark.first
def test_each_notebook_runs_in_a_fresh_environment(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zips = sorted((book / "notebooks").glob("*.zip"))
    assert {path.stem for path in zips} == with_cells()
    for path in zips:
        ZipFile(path).extractall(tmp_path / "downloads")
    kernel = [
        str(filled_environment(tmp_path)),
        *("-m", "ipykernel_launcher", "-f", "{connection_file}"),
    ]
    described = tmp_path / "jupyter" / "kernels" / "fresh" / "kernel.json"
    described.parent.mkdir(parents=True)
    described.write_text(
        json.dumps({"argv": kernel, "display_name": "Fresh", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    names = [path.stem for path in zips]
    notebooks = [tmp_path / "downloads" / name / f"{name}.ipynb" for name in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert not [found for found in pool.map(fault, notebooks) if found]


def test_notebooks_say_what_the_pages_say(book: Path) -> None:
    with ZipFile(book / "notebooks" / "roofline.zip") as archive:
        names = archive.namelist()
        notebook = json.loads(archive.read("roofline/roofline.ipynb"))
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert {"roofline/figures/style.py", "roofline/figures/book.mplstyle"} <= set(names)
    assert not [name for name in names if "calc" in name]
    text = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    words = "\n".join(text).replace("\u00a0", " ")
    assert "Figure 3.1 draws both roofs" in words
    assert "(Kaplan et al. 2020)" in words
    assert "153.0 FLOP/byte" in words
    assert "{python}" not in words
    assert "press-" not in words
    assert "](../" not in words


def test_each_page_that_runs_cells_links_to_its_notebook(book: Path) -> None:
    for name in with_cells():
        (page,) = (p for p in book.rglob(f"{name}.html") if p.parent.name != "library")
        assert f'notebooks/{name}.zip" download' in page.read_text(encoding="utf-8")
