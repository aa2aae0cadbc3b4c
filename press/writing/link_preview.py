"""The picture that other sites show beside a link to a page: its title and its first figure.

Such sites read neither SVG nor an address that is not whole, so that pictures are made, by typst,
where the site has an address alone.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from press.book_files import FONTS, THEME, room_for
from press.document.page import Page
from press.reading.project import Book

PREVIEWS = "assets/preview"
PIXELS_PER_INCH = 72  # at which a point of the drawing is a pixel


def write_previews(book: Book, pages: list[Page], titles: list[str], folder: Path) -> list[str]:
    """Writes them below `folder`; gives that of each page: one without a figure has the first's."""
    import typst

    room_for(folder, f"{PREVIEWS}/*")
    written: list[str] = []
    with TemporaryDirectory() as folder_name:
        sources = Path(folder_name)
        shutil.copyfile(THEME / "preview.typ", sources / "preview.typ")
        (sources / "main.typ").touch()
        compiler: Any = typst.Compiler(  # one for all pictures: it reads the fonts once
            sources / "main.typ", font_paths=[FONTS], ignore_system_fonts=True
        )
        for page, title in zip(pages, titles, strict=True):
            drawing = next(iter(page.woven.figures.values()), None)
            if written and not drawing:
                written.append(written[0])
                continue
            if drawing:
                (sources / "figure.svg").write_text(drawing.svg, encoding="utf-8")
            (sources / "main.typ").write_text(_typst(book, title, drawing is not None), "utf-8")
            name = f"{PREVIEWS}/{page.chapter.href.replace('/', '-').removesuffix('.html')}.png"
            (folder / name).write_bytes(compiler.compile(format="png", ppi=PIXELS_PER_INCH))
            written.append(name)
    return written


def _typst(book: Book, title: str, has_figure: bool) -> str:
    above, name = ("", book.title) if title == book.title else (book.title, title)
    figure = '"figure.svg"' if has_figure else "none"
    texts = (json.dumps(text, ensure_ascii=False) for text in (above, name))
    return '#import "preview.typ": preview\n#preview(book: {}, title: {}, figure: {})\n'.format(
        *texts, figure
    )
