"""What a build says about itself: the commit and its date, or the version outside git."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Edition:
    version: str
    commit: str
    date: str  # YYYY-MM-DD, the commit's; no clock is read, so that builds repeat
    distribution: str  # what the project is installed as, and the packages that it then brings
    packages: list[str]


def read_edition(root: Path) -> Edition:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    project: dict[str, Any] = {}
    if (root / "pyproject.toml").is_file():
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    about = project.get("project", {})
    build = project.get("tool", {}).get("hatch", {}).get("build", {})
    packages = build.get("targets", {}).get("wheel", {}).get("packages", [])
    try:
        commit, date = git("log", "-1", "--format=%h %cs").split()
        commit += " with changes" if git("status", "--porcelain", "--", ".") else ""
    except (OSError, subprocess.CalledProcessError, ValueError):
        commit = date = ""
    return Edition(about.get("version", ""), commit, date, about.get("name", ""), packages)
