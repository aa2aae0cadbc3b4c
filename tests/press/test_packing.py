"""A packed PDF is the same document in fewer bytes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
import typst
from pypdf import PdfReader

from press.packing import packed

PAGES = """
#set document(title: "Packed (or not)")
= First <first>
See @second. #link("https://example.org")[Away], #link(<first>)[back].
#table(columns: 3, ..range(600).map(n => [cell #n]))
= Second
#set heading(numbering: "1")
= Third <second>
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    source: Path = tmp_path_factory.mktemp("typst") / "main.typ"
    source.write_text(PAGES, encoding="utf-8")
    pdf: bytes = typst.compile(source)
    return pdf


def test_nothing_is_lost(plain: bytes) -> None:
    before, after = PdfReader(BytesIO(plain)), PdfReader(BytesIO(packed(plain)), strict=True)
    assert len(packed(plain)) < len(plain) / 3
    assert [p.extract_text() for p in after.pages] == [p.extract_text() for p in before.pages]
    assert after.metadata == before.metadata
    assert [entry["/Title"] for entry in after.outline] == ["First", "Second", "1 Third"]
    root = after.trailer["/Root"]
    assert set(root) == set(before.trailer["/Root"])
    assert root["/MarkInfo"]["/Marked"]
    assert after.trailer["/ID"] == before.trailer["/ID"]
    links = [a.get_object() for page in after.pages for a in page.get("/Annots", [])]
    assert any(link.get("/A", {}).get("/URI") == "https://example.org" for link in links)


def test_the_bytes_are_the_same_each_time(plain: bytes) -> None:
    assert packed(plain) == packed(plain)


def test_a_pdf_of_another_make_is_left_as_it_is(plain: bytes) -> None:
    assert packed(packed(plain)) == packed(plain)
