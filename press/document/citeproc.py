"""Citations and the list of references: one citeproc run over the whole book."""

from __future__ import annotations

import json
import re
from pathlib import Path

from press.book_files import text_of
from press.document.page import PAGE, Answers, Cited, Numbered, Page, is_source_list
from press.document.pandoc import Node, empty_document, link, run_pandoc, walk
from press.document.weave import Woven
from press.problems import BookError, Problems, stop
from press.reading.project import Chapter


def check_bibliography(bibliography: list[Path]) -> None:
    """Stops at a .bib file that cannot be read or names two sources alike, cited or not."""
    for path in bibliography:
        if path.suffix == ".bib":
            _check_bibtex(path)


def _check_bibtex(path: Path) -> None:
    """Stops where pandoc cannot read the file, or where two of its entries have one key."""
    text = text_of(path, path.name)
    try:
        run_pandoc(["-f", "biblatex", "-t", "csljson"], text)
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


def citing_lines(
    bibliography: list[Path],
    chapters: list[Chapter],
    woven: list[Woven],
    numbered: list[Numbered],
    answers: list[Answers],
) -> list[list[Node]]:
    """Each chapter's lines that cite: what else it says is no matter here, and may change."""
    lines = [
        [asked["lines"][number] for number, _ in numbering["citing"]]
        for numbering, asked in zip(numbered, answers, strict=True)
    ]
    cited = [
        (chapter.file, text, key)
        for chapter, text, numbering in zip(chapters, woven, numbered, strict=True)
        for _, keys in numbering["citing"]
        for key in keys
    ]
    problems = Problems()
    if cited and not bibliography:
        why = "has no source: `_quarto.yml` names no bibliography."
        for file, text, key in cited:
            problems.add(file, *_fault(text, key, why))
    elif cited and not any(is_source_list(line) for numbering in lines for line in numbering):
        file, text, key = cited[0]
        why = "needs a page that holds `::: {#refs}` and `:::` to list it."
        problems.add(file, *_fault(text, key, why))
    problems.stop_if_any()
    return lines if cited else [[] for _ in chapters]


def cite(
    chapters: list[Chapter],
    citing: list[list[Node]],
    bibliography: list[Path],
    csl: Path | None,
    lang: str,
) -> list[Cited]:
    """The lines with the text of what they cite, linked to the list of references."""
    if not any(citing):
        return [{"lines": [], "faults": {}} for _ in chapters]
    home = next(
        chapter.file
        for chapter, lines in zip(chapters, citing, strict=True)
        if any(map(is_source_list, lines))
    )

    def linked(node: Node) -> Node | list[Node] | None:
        if node["t"] == "Cite":
            words: list[Node] = walk(node["c"][1], linked)
            return words
        if node["t"] == "Link" and node["c"][2][0].startswith("#ref-"):
            return link(f"{PAGE}{home}{node['c'][2][0]}", ["citation"], node["c"][1])
        return None

    arguments = ["-f", "json", "-t", "json", "--citeproc"]
    arguments += ["-M", "link-citations=true", "-M", f"lang={lang}"]
    arguments += [f"--bibliography={path}" for path in bibliography]
    arguments += [f"--csl={csl}"] if csl else []
    document = empty_document() | {"blocks": [line for lines in citing for line in lines]}
    output, log = run_pandoc(arguments, json.dumps(document))
    answered = iter(walk(json.loads(output)["blocks"], linked))
    why = f"is not in {', '.join(path.name for path in bibliography)}."
    faults = dict.fromkeys(re.findall(r"citation (\S+) not found", log), why)
    return [{"lines": [next(answered) for _ in lines], "faults": faults} for lines in citing]


def settle(
    chapter: Chapter, woven: Woven, numbered: Numbered, answers: Answers, cited: Cited
) -> Page:
    """The page, with all that it asks answered."""
    problems = Problems()
    lines = list(answers["lines"])
    # A list of sources that nobody cites stays as it is.
    for (number, keys), line in zip(numbered["citing"], cited["lines"], strict=False):
        lines[number] = lines[number] | {"c": line["c"]}
        for key in set(keys) & set(cited["faults"]):
            problems.add(chapter.file, *_fault(woven, key, cited["faults"][key]))
    problems.stop_if_any()
    return Page(chapter, woven, numbered, lines, answers["addresses"])


def _fault(woven: Woven, key: str, why: str) -> tuple[int, str]:
    return woven.line_of(rf"@\{{?{re.escape(key)}\b"), f"the citation @{key} {why}"
