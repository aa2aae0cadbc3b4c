"""`_quarto.yml`, the only list of chapters, titles, parts and formats, read into a `Book`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from press.book_files import text_of
from press.problems import Problems, stop
from press.reading.settings import read_yaml

# Keys of `format` that shape Quarto's own look and change no word: press has its theme instead.
LOOK = dict.fromkeys(
    ["theme", "css", "toc", "toc-depth", "number-depth", "html-math-method", "fig-format"]
)
LOOK |= dict.fromkeys(["code-copy", "papersize", "margin", "mainfont", "monofont", "fontsize"])
# The same for typst. Quarto's PDF cites as the pages do only with `citeproc`, numbers formulas
# without a label unless a `#set` line forbids it, and finds figures' typefaces in `font-paths`.
# It ignores the keys of its last line, which are press's own.
TYPST = LOOK | {"citeproc": None, "font-paths": None, "include-before-body": {"text": None}}
TYPST |= {"leave-out": list, "imprint": list}
EXECUTE = ["echo", "eval", "output", "warning"]
TIMEOUT = 600.0  # seconds, for a cell or an inline value
# What an address or some system gives a meaning of its own, so that links to it would be dead.
NO_NAME = re.compile(r'[?:\\#%"*<>|]')
KNOWN: dict[str, Any] = {  # with the kind of what has to be text, or a list of texts
    "project": {**dict.fromkeys(["type", "output-dir", "execute-dir"], str), "pre-render": list},
    "book": {
        **dict.fromkeys(["title", "subtitle", "description", "output-file"], str),
        **dict.fromkeys(["repo-url", "issue-url", "site-url", "references"], str),
        **dict.fromkeys(["chapters", "appendices", "repo-actions"]),
        "author": list,
        "page-footer": {"center": None},
    },
    "format": {"html": LOOK, "typst": TYPST, "epub": LOOK},
    "execute": dict.fromkeys([*EXECUTE, "timeout"]),
    **dict.fromkeys(["bibliography", "metadata-files", "shared"], list),
    **dict.fromkeys(
        ["csl", "lang", "jupyter", "live", "live-without", "search-data", "audit"], str
    ),
    "number-sections": None,
}

Key = tuple[str | int, ...]

SETTINGS = "_quarto.yml"
CHAPTERS: Key = ("book", "chapters")


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
    formats: list[str]  # of "html", "typst" and "epub"
    bibliography: list[Path]
    csl: Path | None
    execute: dict[str, bool]
    execute_in_project: bool
    timeout: float  # seconds, for a cell or an inline value
    output: Path
    pdf_name: str
    left_out: list[str]  # the chapters that the PDF leaves to the site
    imprint: list[str]  # what the PDF says behind its title page, a paragraph each
    footer: list[tuple[str, str]]  # at the foot of each page: words, and where they lead
    shared: list[str]  # what chapters import, by names such as calc.hardware:H100
    live: str  # the package of models that live figures ask, such as models.live, "" for none
    live_without: str  # a package of the project that browsers do without, "" for none
    search_data: str  # the file of what the search finds beside sections, "" for none
    site: str  # the address of the site, which ends in "/", "" as long as it has none
    report_at: str  # where errors are reported, "" as long as no address is known
    lines: dict[Key, int] = field(repr=False)  # where `_quarto.yml` gives each of its values

    @property
    def shown(self) -> list[str]:
        """The formats for which a chapter may have blocks of their own; an EPUB has HTML's."""
        return ["html" if form == "epub" else form for form in self.formats]

    @property
    def epub_name(self) -> str:
        return str(Path(self.pdf_name).with_suffix(".epub"))

    @property
    def live_folder(self) -> Path:
        return package_folder(self.root, self.live)


def package_folder(root: Path, package: str) -> Path:
    return root.joinpath(*package.split("."))


def read_settings(root: Path) -> tuple[dict[str, Any], dict[Key, int]]:
    """Return the contents of `_quarto.yml`, before any check, and the line of each key."""
    path = root / SETTINGS
    if not path.is_file():
        stop(f"there is no {SETTINGS} in {root}; press renders a Quarto book project.")
    return read_yaml(text_of(path, SETTINGS), SETTINGS)


def output_folder(root: Path, project: dict[str, Any]) -> Path:
    return Path(os.path.normpath(root / str(project.get("output-dir") or "_book")))


def read_book(root: Path) -> Book:
    return _Reader(root, *read_settings(root)).book()


class _Reader:
    def __init__(self, root: Path, settings: dict[str, Any], lines: dict[Key, int]) -> None:
        self.root = root
        self.file = SETTINGS
        self.settings = settings
        self.lines = lines
        self.problems = Problems()
        self.chapters: list[Chapter] = []
        self.parts: list[str] = []

    def refuse(self, key: Key, sentence: str) -> None:
        self.problems.add(self.file, self.lines.get(key, 1), sentence)

    def book(self) -> Book:
        settings = self.settings
        if isinstance(settings.get("format"), str):
            settings["format"] = {settings["format"]: None}
        self.check_keys(settings, KNOWN, ())
        self.problems.stop_if_any()

        book = settings.get("book") or {}
        project = settings.get("project") or {}
        execute = settings.get("execute") or {}
        timeout = execute.pop("timeout", TIMEOUT)
        where = project.get("execute-dir", "file")
        output = output_folder(self.root, project)
        bibliography = _listed(settings.get("bibliography"))
        authors = book.get("author") or []
        authors = authors if isinstance(authors, list) else [authors]

        if project.get("type") != "book":
            self.refuse(("project",), "`project.type` must be `book`.")
        if not isinstance(book.get("title"), str):
            self.refuse(("book",), "`book.title` is needed, as text.")
        for key, value in execute.items():
            if not isinstance(value, bool):
                self.refuse(("execute", key), f"`execute.{key}` is true or false, not {value!r}.")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            sentence = f"`execute.timeout` is a number of seconds above 0, not {timeout!r}."
            self.refuse(("execute", "timeout"), sentence)
        if settings.get("jupyter", "python3") != "python3":
            self.refuse(("jupyter",), "press runs chapters with `jupyter: python3` only.")
        if settings.get("number-sections", True) is not True:
            self.refuse(("number-sections",), "press always numbers sections.")
        typst = (settings.get("format") or {}).get("typst")
        typst = typst if isinstance(typst, dict) else {}
        self.check_typst(typst)
        if where not in ("file", "project"):
            self.refuse(("project", "execute-dir"), "`execute-dir` is `file` or `project`.")
        elif settings.get("shared") and where != "project":
            self.refuse(
                ("shared",), "`shared` needs `execute-dir: project`: imports are from there."
            )
        if self.root.resolve() not in output.resolve().parents:
            self.refuse(("project", "output-dir"), "`output-dir` must be a folder in the project.")
        elif not output.name.startswith("_"):
            # A build replaces the whole folder, so it must not be one that holds sources.
            self.refuse(("project", "output-dir"), "`output-dir` must begin with _, as _book does.")
        for key, name in [("bibliography", name) for name in bibliography] + [
            ("csl", settings.get("csl")),
            ("search-data", settings.get("search-data")),
        ]:
            if name and not os.path.isfile(self.root / name):
                self.refuse((key,), f"the file {name}, given as {key}, does not exist.")
        live = str(settings.get("live") or "")
        if live and not (package_folder(self.root, live) / "__init__.py").is_file():
            self.refuse(("live",), f"`live` names a Python package of the project, not {live!r}.")
        without = str(settings.get("live-without") or "")
        if without and not package_folder(self.root, without).is_dir():
            self.refuse(
                ("live-without",),
                f"`live-without` names a Python package of the project, not {without!r}.",
            )
        self.add_chapters(book.get("chapters"), CHAPTERS, False)
        for i, name in enumerate(_listed(settings.get("metadata-files"))):
            self.add_listed_in(name, ("metadata-files", i))
        if references := book.get("references"):
            self.add_chapter(references, ("book", "references"), -1, False)
        if "appendices" in book:
            self.add_chapters(book["appendices"], ("book", "appendices"), True)
        if self.chapters and self.chapters[0].file != "index.qmd":
            self.refuse(CHAPTERS, "the first chapter must be index.qmd.")
        footer = self.footer((book.get("page-footer") or {}).get("center"))
        site = str(book.get("site-url") or "")
        if site and not re.fullmatch(r"https?://[^\s\"<>?#]+", site):
            self.refuse(
                ("book", "site-url"), f"an address begins with https://, and {site!r} does not."
            )
        report_at = self.report_at(book)
        left_out = self.left_out(_listed(typst.get("leave-out")))
        self.problems.stop_if_any()
        return Book(
            root=self.root,
            title=book["title"],
            subtitle=str(book.get("subtitle") or ""),
            authors=[str(a["name"]) if isinstance(a, dict) else str(a) for a in authors],
            description=str(book.get("description") or ""),
            lang=str(settings.get("lang") or "en"),
            chapters=self.chapters,
            parts=self.parts,
            formats=list(settings.get("format") or ["html"]),
            bibliography=[self.root / name for name in bibliography],
            csl=self.root / settings["csl"] if settings.get("csl") else None,
            execute=dict.fromkeys(EXECUTE, True) | execute,
            execute_in_project=where == "project",
            timeout=timeout,
            output=output,
            # Quarto's rule for the name of a book's file.
            pdf_name=re.sub(r"[ <>()|:&;#?*'\\/]", "-", book.get("output-file") or book["title"])
            + ".pdf",
            left_out=left_out,
            imprint=_listed(typst.get("imprint")),
            footer=footer,
            shared=_listed(settings.get("shared")),
            live=live,
            live_without=without,
            search_data=str(settings.get("search-data") or ""),
            site=site and site.rstrip("/") + "/",
            report_at=report_at,
            lines=self.lines,
        )

    def footer(self, items: Any) -> list[tuple[str, str]]:
        key: Key = ("book", "page-footer", "center")
        files = {chapter.file for chapter in self.chapters}
        links: list[tuple[str, str]] = []
        for i, item in enumerate(items if isinstance(items, list) else [items] if items else []):
            match item:
                case {"text": str(text), "href": str(href)} if (
                    len(item) == 2 and href.split("#")[0] in files
                ):
                    links.append((text, href))
                case _:
                    self.refuse(
                        (*key, i), "an entry of the footer is a `text` and the `href` of a chapter."
                    )
        return links

    def report_at(self, book: dict[str, Any]) -> str:
        """Quarto's rule: the address given, or the one that goes with the repository's."""
        actions = book.get("repo-actions") or []
        if actions not in ([], ["issue"], "issue"):
            self.refuse(("book", "repo-actions"), "press knows `issue` alone here.")
        repository = str(book.get("repo-url") or "")
        asked = book.get("issue-url") or (repository and f"{repository.rstrip('/')}/issues/new")
        return str(asked) if actions else ""

    def left_out(self, names: list[str]) -> list[str]:
        """The chapters that are named, or that lie in a folder which is."""
        left: list[str] = []
        for i, name in enumerate(names):
            inside = [
                chapter.file
                for chapter in self.chapters
                if chapter.file == name or chapter.file.startswith(f"{name}/")
            ]
            if not inside:
                sentence = f"`leave-out` names chapters or their folders, and none is {name}."
                self.refuse(("format", "typst", "leave-out", i), sentence)
            left += inside
        return left

    def check_typst(self, settings: dict[str, Any]) -> None:
        """Refuse lines before Quarto's PDF that do more than set how it looks."""
        if settings.get("citeproc", True) is not True:
            self.refuse(("format", "typst", "citeproc"), "press always cites by `citeproc`.")
        before = settings.get("include-before-body") or {}
        for line in str(before.get("text") or "").splitlines():
            if not re.match(r"#(show [\w.]+: )?set \w|//|\s*$", line):
                self.refuse(
                    ("format", "typst", "include-before-body", "text"),
                    f"press takes `#set` and `#show …: set` lines here, not `{line.strip()}`.",
                )

    def check_keys(self, settings: dict[str, Any], allowed: dict[str, Any], key: Key) -> None:
        for name, value in settings.items():
            here = (*key, name)
            dotted = ".".join(map(str, here))
            if name not in allowed:
                sentence = f"press does not read the key `{dotted}`; here it knows"
                self.refuse(here, f"{sentence} {', '.join(allowed)}.")
            elif isinstance(allowed[name], dict) and isinstance(value, dict):
                self.check_keys(value, allowed[name], here)
            elif isinstance(allowed[name], dict) and value not in (None, "default"):
                self.refuse(here, f"`{dotted}` needs keys below it.")
            elif allowed[name] is list and isinstance(value, list):
                for i, item in enumerate(value):
                    self.check_text((*here, i), dotted, item)
            elif allowed[name] in (str, list) and value is not None:
                self.check_text(here, dotted, value)

    def check_text(self, key: Key, dotted: str, value: Any) -> None:
        if dotted == "book.author" and isinstance(value, dict):
            if not isinstance(value.get("name"), str):
                self.refuse(key, "an author needs a `name`, as text.")
        elif not isinstance(value, str):
            self.refuse(key, f"`{dotted}` needs text, not {value!r}.")

    def add_listed_in(self, name: str, key: Key) -> None:
        """Adds the chapters of another file: of the two lists Quarto makes one."""
        if not (self.root / name).is_file():
            self.refuse(key, f"the file {name}, given as metadata-files, does not exist.")
            return
        other = _Reader(self.root, *read_yaml(text_of(self.root / name, name), name))
        other.file, other.problems = name, self.problems
        other.chapters, other.parts = self.chapters, self.parts
        other.check_keys(other.settings, {"book": {"chapters": None}}, ())
        other.add_chapters((other.settings.get("book") or {}).get("chapters"), CHAPTERS, False)

    def add_chapters(self, items: Any, key: Key, appendix: bool) -> None:
        if not isinstance(items, list) or not items:
            self.refuse(key, f"`{key[-1]}` must be a list of .qmd files.")
            return
        if appendix and len(items) > 26:
            self.refuse((*key, 26), "appendices are lettered A to Z; this is the 27th.")
        for i, item in enumerate(items):
            here = (*key, i)
            if not isinstance(item, dict):
                self.add_chapter(item, here, -1, appendix)
            elif set(item) != {"part", "chapters"} or appendix:
                self.refuse(here, "an entry is the name of a .qmd file, or `part` and `chapters`.")
            elif not isinstance(item["part"], str) or item["part"].endswith(".qmd"):
                self.refuse(here, "a part is a title, in press not a file.")
            elif not isinstance(item["chapters"], list) or not item["chapters"]:
                self.refuse((*here, "chapters"), "`chapters` must be a list of .qmd files.")
            else:
                self.parts.append(item["part"])
                for j, name in enumerate(item["chapters"]):
                    self.add_chapter(name, (*here, "chapters", j), len(self.parts) - 1, False)

    def add_chapter(self, name: Any, key: Key, part: int, appendix: bool) -> None:
        if not isinstance(name, str) or not name.endswith(".qmd"):
            self.refuse(key, f"a chapter is the name of a .qmd file, not {name!r}.")
        elif sign := NO_NAME.search(name):
            sentence = f"a chapter's name cannot hold `{sign[0]}`: links to it would be dead."
            self.refuse(key, sentence)
        elif Path(name).is_absolute() or ".." in Path(name).parts:
            self.refuse(key, f"the chapter {name} lies outside the project.")
        elif (plain := os.path.normpath(name)) != name:
            self.refuse(key, f"write {plain}, not {name}.")
        elif not os.path.isfile(self.root / name):
            self.refuse(key, f"the chapter {name} does not exist.")
        elif any(name == chapter.file for chapter in self.chapters):
            self.refuse(key, f"the chapter {name} is listed twice.")
        else:
            self.chapters.append(Chapter(name, part, appendix))


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or []]
