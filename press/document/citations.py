"""Citations and the list of references: one citeproc run over the whole book."""

from __future__ import annotations

import json
import re
from pathlib import Path

from press.cache import file_digest
from press.document.pandoc import Node, convert, link, pandoc_version, run_pandoc, walk
from press.document.references import PAGE, Page, is_source_list
from press.errors import BookError, Problems, stop
from press.memory import Memory
from press.reading.project import Book


def cite(book: Book, pages: list[Page], memory: Memory) -> None:
    """Replaces the citations of every page by their text, linked to the list of references."""
    for path in book.bibliography:
        check_bibliography(path, memory)
    problems = Problems()
    # Only the lines that cite: what else a page says is no matter here, and may change.
    citing = [
        (page, page.lines[number], keys) for page in pages for number, keys in page.found["citing"]
    ]
    home = next((page for page, line, _ in citing if is_source_list(line)), None)
    cited = [(page, key) for page, _, keys in citing for key in keys]
    if not cited:
        return

    def refuse(page: Page, key: str, sentence: str) -> None:
        line = page.woven.line_of(rf"@\{{?{re.escape(key)}\b")
        problems.add(page.chapter.file, line, f"the citation @{key} {sentence}")

    if not book.bibliography:
        for page, key in cited:
            refuse(page, key, "has no source: `_quarto.yml` names no bibliography.")
    elif home is None:
        refuse(*cited[0], "needs a page that holds `::: {#refs}` and `:::` to list it.")
    problems.stop_if_any()

    assert home is not None
    place = f"{PAGE}{home.chapter.file}#"
    arguments = ["-t", "json", "--citeproc", "-M", "link-citations=true"]
    arguments += ["-M", f"lang={book.lang}"]
    arguments += [f"--bibliography={path}" for path in book.bibliography]
    arguments += [f"--csl={book.csl}"] if book.csl else []
    lines = [line for _, line, _ in citing]

    def answers() -> tuple[list[Node], list[str]]:
        """The lines with what they cite, and the keys that the bibliography does not hold."""
        output, log = convert(lines, arguments)
        answered = walk(json.loads(output)["blocks"], linked)
        return answered, re.findall(r"citation (\S+) not found", log)

    def linked(node: Node) -> Node | list[Node] | None:
        if node["t"] == "Cite":
            words: list[Node] = walk(node["c"][1], linked)
            return words
        if node["t"] == "Link" and node["c"][2][0].startswith("#ref-"):
            return link(place + node["c"][2][0][1:], ["citation"], node["c"][1])
        return None

    files = [file_digest(path) for path in [*book.bibliography, book.csl] if path]
    made_from = ("cited", pandoc_version(), arguments, files, place, lines)
    answered, missing = memory.remember(answers, *made_from)
    for page, key in cited:
        if key in missing:
            names = ", ".join(path.name for path in book.bibliography)
            refuse(page, key, f"is not in {names}.")
    problems.stop_if_any()
    for line, new in zip(lines, answered, strict=True):
        line["c"] = new["c"]


def check_bibliography(path: Path, memory: Memory) -> None:
    """Stops at a .bib file that cannot be read or names two sources alike, cited or not."""
    if path.suffix != ".bib":
        return
    written = path.read_bytes()
    try:
        text = written.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = written.count(b"\n", 0, error.start) + 1
        stop("this file is not UTF-8 text.", path.name, line)
    try:
        arguments = ["-f", "biblatex", "-t", "csljson"]
        made_from = ("bibliography", pandoc_version(), text)
        memory.remember(lambda: run_pandoc(arguments, text), *made_from)
    except BookError as error:
        where = re.search(r"line (\d+)", str(error))
        why = str(error).splitlines()[1:2]
        sentence = f"this is not valid BibTeX{': ' if why else ''}{''.join(why)}."
        last = len(text.splitlines())  # pandoc counts lines that it adds
        stop(sentence, path.name, min(int(where[1]), last) if where else 1)
    seen: set[str] = set()
    for match in re.finditer(r"(?m)^[ \t]*@(?!comment|string|preamble)\w+\s*\{\s*([^\s,}]+)", text):
        if match[1] in seen:
            line = text.count("\n", 0, match.start(1)) + 1
            stop(f"the source `{match[1]}` is given twice.", path.name, line)
        seen.add(match[1])
