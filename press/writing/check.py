"""Follows the links of the finished pages as a browser would."""

from __future__ import annotations

import html
import os
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

from press.problems import Problems

ID = re.compile(r'<[^<>]*\sid="([^"]+)"')
ADDRESS = re.compile(
    r'<(?!base\b|meta\b|link rel="canonical")(\w+)\b[^<>]*?\s(?:href|src)="([^"]+)"'
)


def check_site(folder: Path) -> None:
    """Stops if a page links to what is not there, or shows anything from another machine."""
    problems = Problems()
    pages = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.html")
    }
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    ids = {name: Counter(ID.findall(text)) for name, text in pages.items()}
    for name, text in pages.items():
        for twin in (i for i, count in ids[name].items() if count > 1):
            problems.add(name, 0, f"two elements of the page have the id `{twin}`.")
        here = os.path.dirname(name)
        for match in ADDRESS.finditer(text):
            address = html.unescape(match[2])
            if address.startswith(("mailto:", "data:")) or (
                match[1] == "a" and address.startswith("http")
            ):
                continue
            path, anchor = (
                unquote(part) for part in re.sub(r"\?v=\w+", "", address).partition("#")[::2]
            )
            target = os.path.normpath(os.path.join(here, path)) if path else name
            why = ""
            if "://" in address or target not in files:
                why = "is not in the site"
            elif anchor and target in pages and anchor not in ids[target]:
                why = "has no such anchor"
            if why:
                line = text.count("\n", 0, match.start()) + 1
                problems.add(name, line, f"the page leads to {address}, which {why}.")
    problems.stop_if_any()
