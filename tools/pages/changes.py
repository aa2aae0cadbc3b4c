"""Page of the changes from edition to edition, for readers of the book, from CHANGELOG.md."""

from __future__ import annotations

import re

from tools.pages import ROOT, generated

INTRODUCTION = """What a reader of the book or a user of `calc` notices, the newest first.
The foot of each page of the site says which edition it is of."""


def page() -> str:
    """The text of the page: a section for each version."""
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)
    body = "\n\n".join([INTRODUCTION, *map(_section, versions[1:])])
    return generated("What has changed {.unnumbered}", "CHANGELOG.md", body)


def _section(text: str) -> str:
    title, _, entries = text.partition("\n")
    name = re.sub(r"[\[\]]", "", title).replace("Unreleased", "Since the last edition")
    entries = re.sub(r"^### (.*)$", r"**\1**", entries.strip(), flags=re.MULTILINE)
    return f"## {name} {{.unnumbered}}\n\n{entries}"
