"""Page of the changes from edition to edition, for readers of the book, from CHANGELOG.md.

Changes since the last version are files of `changelog.d`, which `towncrier` gathers for the next.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tools.pages import ROOT, generated

INTRODUCTION = """What a reader of the book or a user of `calc` notices, the newest first.
The foot of each page of the site says which edition it is of."""
FOLDER = ROOT / "changelog.d"


def page() -> str:
    """The text of the page: a section for each version, and one for what came since."""
    versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)
    since = gathered(FOLDER)
    sections = [f"Since the last edition\n\n{since}"] if since else []
    body = "\n\n".join([INTRODUCTION, *map(_section, [*sections, *versions[1:]])])
    return generated("What has changed {.unnumbered}", "CHANGELOG.md and changelog.d", body)


def kinds() -> dict[str, str]:
    """The kinds of changes, by the endings of their files, each with its heading."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {kind["directory"]: kind["name"] for kind in settings["tool"]["towncrier"]["type"]}


def gathered(folder: Path) -> str:
    """The changes of a folder under the headings of their kinds, "" where there is none."""
    parts = []
    for kind, heading in kinds().items():
        texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"*.{kind}.md"))]
        if texts:
            items = [f"- {text.strip()}".replace("\n", "\n  ") for text in texts]
            parts.append(f"### {heading}\n\n" + "\n".join(items))
    return "\n\n".join(parts)


def _section(text: str) -> str:
    title, _, entries = text.partition("\n")
    name = re.sub(r"[\[\]]", "", title)
    entries = re.sub(r"^### (.*)$", r"**\1**", entries.strip(), flags=re.MULTILINE)
    return f"## {name} {{.unnumbered}}\n\n{entries}"
