"""The stages of a build: what makes what, and of what. No other place knows their order."""

from __future__ import annotations

from press.book_files import unchanged
from press.document.citeproc import check_bibliography, cite, citing_lines, settle
from press.document.numbering import chapter_numbers, number_chapter
from press.document.page import parse_chapter
from press.document.references import resolve
from press.document.showing import check_page
from press.document.weave import Woven, weave
from press.driver import Scope, Stage
from press.reading.source import Source, read_source
from press.running.execute import Result, run
from press.writing.check import check_site
from press.writing.epub import page_epub, write_epub
from press.writing.html import page_html
from press.writing.markdown import markdown_places, page_markdown, write_markdown
from press.writing.notebooks import listed_sources, notebook_cells, notebook_places, write_notebook
from press.writing.pdf import page_typst, write_pdf
from press.writing.runtime import write_runtime
from press.writing.site import write_site

EACH, ACROSS, ONCE = Scope


def always(_: object) -> bool:
    return True


def while_read(result: Result) -> bool:
    return unchanged(result["read"])


# fmt: off
DOCUMENT = [
    Stage(EACH, "source", read_source, "root chapter execute formats", counts=Source.code),
    Stage(ONCE, "checked-bibliography", check_bibliography, "bibliography", always),
    Stage(EACH, "result", run, "source root in_project timeout kernels files", while_read,
          beside="files"),
    Stage(EACH, "woven", weave, "source result", counts=Woven.contents),
    Stage(EACH, "parsed", parse_chapter, "woven", always),
    Stage(ACROSS, "number", chapter_numbers, "chapter parsed"),
    Stage(EACH, "numbered", number_chapter, "chapter woven parsed number", always),
    Stage(ACROSS, "answers", resolve, "root files chapter woven numbered"),
    Stage(ACROSS, "citing", citing_lines, "bibliography chapter woven numbered answers"),
    Stage(ACROSS, "cited", cite, "chapter citing bibliography csl lang", always),
    Stage(EACH, "page", settle, "chapter woven numbered answers cited"),
    Stage(EACH, "checked-page", check_page, "root page", always),
]
# Beside one another; setting the PDF takes longest.
OUTPUTS = {
    "typst": [
        Stage(EACH, "typst", page_typst, "page left_out", always),
        Stage(ONCE, "pdf", write_pdf, "book edition page typst typst_folder pdf_file"),
    ],
    "epub": [
        Stage(EACH, "epub", page_epub, "page left_out"),
        Stage(ONCE, "epub_file", write_epub, "book edition page epub folder"),
    ],
    "html": [
        Stage(EACH, "html", page_html, "root page", always),
        Stage(ACROSS, "notebook_file", notebook_places, "page"),
        Stage(ACROSS, "markdown_file", markdown_places, "page"),
        Stage(ONCE, "runtime", write_runtime, "packing folder"),
        Stage(ONCE, "site", write_site,
              "book edition page html notebook_file markdown_file runtime folder"),
        Stage(ONCE, "sources", listed_sources, "page"),
        Stage(EACH, "cells", notebook_cells, "page notebook_file sources", always),
        Stage(EACH, "markdown", page_markdown, "page markdown_file sources", always),
        Stage(ONCE, "llms", write_markdown, "book page html markdown_file markdown folder"),
        Stage(EACH, "notebook", write_notebook, "book edition page notebook_file cells folder"),
        Stage(ONCE, "checked-site", check_site, "folder"),
    ],
}
# fmt: on
