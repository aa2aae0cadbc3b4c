"""`_quarto.yml`, the only list of chapters, titles, parts and formats, read into a `Book`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import Problems, stop
from .settings import read_yaml

# Keys of `format` that shape Quarto's own look and change no word: press has its theme instead.
LOOK = dict.fromkeys(
    ["theme", "css", "toc", "toc-depth", "number-depth", "html-math-method", "fig-format"]
)
LOOK |= dict.fromkeys(["code-copy", "papersize", "margin", "mainfont", "monofont", "fontsize"])
EXECUTE: dict[str, type] = {"echo": bool, "eval": bool, "output": bool, "warning": bool}
KNOWN: dict[str, Any] = {
    "project": dict.fromkeys(["type", "output-dir", "execute-dir"]),
    "book": dict.fromkeys(
        ["title", "subtitle", "author", "description", "chapters", "appendices", "output-file"]
    ),
    "format": {"html": LOOK, "typst": LOOK},
    "execute": dict.fromkeys(EXECUTE),
    **dict.fromkeys(["bibliography", "csl", "lang", "jupyter", "number-sections"]),
}


@dataclass(frozen=True)
class Chapter:
    file: str  # relative to the project, as `_quarto.yml` spells it
    part: int  # index in Book.parts, -1 outside parts
    appendix: bool

    @property
    def href(self) -> str:
        return self.file.removesuffix(".qmd") + ".html"


@dataclass(frozen=True)
class Book:
    root: Path
    title: str
    subtitle: str
    authors: list[str]
    description: str
    lang: str
    chapters: list[Chapter]
    parts: list[str]
    formats: list[str]  # of "html" and "typst"
    bibliography: list[Path]
    csl: Path | None
    execute: dict[str, bool]
    execute_in_project: bool
    output: Path
    pdf_name: str
    lines: dict[str, int] = field(repr=False)  # where `_quarto.yml` names each title and file


def read_book(root: Path) -> Book:
    path = root / "_quarto.yml"
    if not path.is_file():
        stop(f"there is no _quarto.yml in {root}; press renders a Quarto book project.")
    text = path.read_text(encoding="utf-8")
    settings, lines = read_yaml(text, path.name)
    problems = Problems()

    def line(*keys: str | int) -> int:
        return lines.get(keys, 1)

    def check(found: Any, known: dict[str, Any], keys: tuple[str, ...]) -> None:
        for key, value in (found or {}).items():
            here = (*keys, key)
            if key not in known:
                problems.add(
                    path.name,
                    line(*here),
                    f"press does not read the key `{'.'.join(here)}`;"
                    f" here it knows {', '.join(known)}.",
                )
            elif isinstance(known[key], dict) and not isinstance(value, str | None):
                if isinstance(value, dict):
                    check(value, known[key], here)
                else:
                    problems.add(path.name, line(*here), f"`{'.'.join(here)}` needs keys below it.")

    if isinstance(settings.get("format"), str):
        settings["format"] = {settings["format"]: None}
    check(settings, KNOWN, ())
    problems.stop_if_any()

    book = settings.get("book") or {}
    project = settings.get("project") or {}
    if project.get("type") != "book":
        stop("`project.type` must be `book`.", path.name, line("project"))
    if not isinstance(book.get("title"), str):
        stop("`book.title` is needed, as text.", path.name, line("book"))
    for key, kind in EXECUTE.items():
        value = (settings.get("execute") or {}).get(key)
        if value is not None and not isinstance(value, kind):
            problems.add(
                path.name, line("execute", key), f"`execute.{key}` is true or false, not {value!r}."
            )
    if settings.get("jupyter", "python3") != "python3":
        problems.add(
            path.name, line("jupyter"), "press runs chapters with `jupyter: python3` only."
        )
    if settings.get("number-sections", True) is not True:
        problems.add(path.name, line("number-sections"), "press always numbers sections.")
    where = project.get("execute-dir", "file")
    if where not in ("file", "project"):
        problems.add(
            path.name, line("project", "execute-dir"), "`execute-dir` is `file` or `project`."
        )

    chapters: list[Chapter] = []
    parts: list[str] = []

    def add(name: Any, at: tuple[str | int, ...], part: int, appendix: bool) -> None:
        if not isinstance(name, str) or not name.endswith(".qmd"):
            problems.add(
                path.name, line(*at), f"a chapter is the name of a .qmd file, not {name!r}."
            )
        elif Path(name).is_absolute() or ".." in Path(name).parts:
            problems.add(path.name, line(*at), f"the chapter {name} lies outside the project.")
        elif not (root / name).is_file():
            problems.add(path.name, line(*at), f"the chapter {name} does not exist.")
        elif any(name == chapter.file for chapter in chapters):
            problems.add(path.name, line(*at), f"the chapter {name} is listed twice.")
        else:
            chapters.append(Chapter(name, part, appendix))

    def add_all(items: Any, at: tuple[str | int, ...], appendix: bool) -> None:
        if not isinstance(items, list) or not items:
            problems.add(path.name, line(*at), f"`{at[-1]}` must be a list of .qmd files.")
            return
        for i, item in enumerate(items):
            if not isinstance(item, dict):
                add(item, (*at, i), -1, appendix)
            elif set(item) == {"part", "chapters"} and not appendix and len(at) == 2:
                if not isinstance(item["part"], str) or item["part"].endswith(".qmd"):
                    problems.add(path.name, line(*at, i), "a part is a title, in press not a file.")
                parts.append(str(item["part"]))
                for j, name in enumerate(item["chapters"] or []):
                    add(name, (*at, i, "chapters", j), len(parts) - 1, appendix)
            else:
                problems.add(
                    path.name,
                    line(*at, i),
                    "an entry is the name of a .qmd file, or `part` with `chapters`.",
                )

    add_all(book.get("chapters"), ("book", "chapters"), False)
    if "appendices" in book:
        add_all(book["appendices"], ("book", "appendices"), True)
    if chapters and chapters[0].file != "index.qmd":
        problems.add(path.name, line("book", "chapters"), "the first chapter must be index.qmd.")

    bibliography = settings.get("bibliography") or []
    names = [bibliography] if isinstance(bibliography, str) else bibliography
    for key, name in [("bibliography", n) for n in names] + [("csl", settings.get("csl"))]:
        if name and not (root / name).is_file():
            problems.add(path.name, line(key), f"the file {name}, given as {key}, does not exist.")
    output = root / project.get("output-dir", "_book")
    if output.resolve() == root.resolve() or root.resolve() not in output.resolve().parents:
        problems.add(
            path.name,
            line("project", "output-dir"),
            "`output-dir` must be a folder in the project.",
        )
    problems.stop_if_any()

    authors = book.get("author") or []
    authors = authors if isinstance(authors, list) else [authors]
    return Book(
        root=root,
        title=book["title"],
        subtitle=str(book.get("subtitle") or ""),
        authors=[a["name"] if isinstance(a, dict) and "name" in a else str(a) for a in authors],
        description=str(book.get("description") or ""),
        lang=str(settings.get("lang") or "en"),
        chapters=chapters,
        parts=parts,
        formats=list(settings.get("format") or {"html": None}),
        bibliography=[root / name for name in names],
        csl=root / settings["csl"] if settings.get("csl") else None,
        execute={"echo": True, "eval": True, "output": True, "warning": True}
        | (settings.get("execute") or {}),
        execute_in_project=where == "project",
        output=output,
        # Quarto's rule for the name of a book's file.
        pdf_name=re.sub(r"[ <>()|:&;#?*'\\/]", "-", book.get("output-file") or book["title"])
        + ".pdf",
        lines={".".join(map(str, at)): number for at, number in lines.items()},
    )
