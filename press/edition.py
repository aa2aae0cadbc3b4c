"""What a build says about itself: the commit and its date, or the version outside git."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edition:
    version: str
    commit: str
    date: str  # YYYY-MM-DD, the commit's; no clock is read, so that builds repeat


def read_edition(root: Path) -> Edition:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    version = ""
    project = root / "pyproject.toml"
    if project.is_file():
        with project.open("rb") as file:
            version = tomllib.load(file).get("project", {}).get("version", "")
    try:
        commit, date = git("log", "-1", "--format=%h %cs").split()
        changed = git("status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError, ValueError):
        return Edition(version, "", "")
    return Edition(version, commit + (" with changes" if changed else ""), date)
