"""The bibliography: from a key of references.bib to a line that a reader can look up."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from calc.core.errors import InputError
from calc.core.formatting import listed

# The wheel carries the book's bibliography beside its data; a checkout has it at the root.
BIBLIOGRAPHY = [
    Path(__file__).parents[1] / "data" / "references.bib",
    Path(__file__).parents[2] / "references.bib",
]
ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\}\s*,?\s*$", re.MULTILINE | re.DOTALL)


@cache
def bibliography() -> dict[str, dict[str, str]]:
    """The fields of every entry, by key."""
    path = next(path for path in BIBLIOGRAPHY if path.is_file())
    return {key: _fields(body) for _, key, body in ENTRY.findall(path.read_text(encoding="utf-8"))}


def _fields(body: str) -> dict[str, str]:
    return {
        name.lower(): " ".join(text.replace("{", "").replace("}", "").split())
        for name, text in FIELD.findall(body)
    }


def citation(key: str) -> str:
    """Authors, year, title, venue and address of a source.

    >>> citation("amdahl1967validity")  # doctest: +ELLIPSIS
    'Amdahl (1967), Validity of the Single Processor Approach..., https://doi.org/10.1145/1465482.1465560'
    """
    try:
        entry = bibliography()[key]
    except KeyError:
        raise InputError(f"references.bib has no entry {key}") from None
    venues = ("journal", "booktitle", "institution", "publisher")
    venue = next((entry[field] for field in venues if field in entry), "")
    address = f"https://doi.org/{entry['doi']}" if "doi" in entry else entry.get("url", "")
    who = f"{_authors(entry)} ({entry.get('year', 'n.d.')})"
    return ", ".join(filter(None, (who, entry.get("title", ""), venue, address)))


def _authors(entry: dict[str, str]) -> str:
    """Last names; more than three become the first and "et al."."""
    people = entry.get("author", "Anonymous").split(" and ")
    names = [person.split(",")[0].strip() for person in people]
    if len(names) > 3 or "others" in names:
        return f"{names[0]} et al."
    return listed(names)
