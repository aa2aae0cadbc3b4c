"""The index: words that chapters mark, each with the sections that mark it; paper has pages."""

from __future__ import annotations

import re

from tools.pages import generated
from tools.pages.answers import chapters

MARK = re.compile(r"\[(?P<words>[^][]+)\]\{\.index(?: entry=\"(?P<entry>[^\"]+)\")?\}")
HEADING = re.compile(r"^#{1,4} (?P<title>.*?) \{#(?P<name>sec-[\w-]+)[^}]*\}", re.MULTILINE)
INTRODUCTION = "Where the book explains or uses a term, a device, a model or a program."


def page() -> str:
    """The text of the page: each entry with the sections that mark it, in the book's order."""
    lines = (f"- {entry}: {', '.join(places)}" for entry, places in entries().items())
    body = "\n".join([INTRODUCTION, "", "::: {.indexed}", "", *lines, "", ":::"])
    return generated("Index {.unnumbered}", "the marks of the chapters", body)


def entries() -> dict[str, list[str]]:
    """Links to the sections of each entry, by letters whatever their case."""
    places: dict[str, list[str]] = {}
    for path in chapters():
        text = path.read_text(encoding="utf-8")
        headings = list(HEADING.finditer(text))
        for mark in MARK.finditer(text):
            section = next(each for each in reversed(headings) if each.start() < mark.start())
            # Nobody knows a title with a value in it until the chapter has run.
            title = section["title"] if "`" not in section["title"] else headings[0]["title"]
            link = f"[{title}](../chapters/{path.name}#{section['name']})"
            of = places.setdefault(mark["entry"] or mark["words"].strip("*`"), [])
            if link not in of:
                of.append(link)
    return {entry: places[entry] for entry in sorted(places, key=str.casefold)}
