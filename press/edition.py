"""Edition of a build, as it states it: the commit and its date, or the version outside git."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from press.book_files import text_of
from press.problems import stop

T = TypeVar("T")


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

    project = _read(root / "pyproject.toml") if (root / "pyproject.toml").is_file() else {}

    def given(name: str, default: T) -> T:
        value: Any = project
        for key in name.split("."):
            value = value.get(key, {}) if isinstance(value, dict) else value
        if value and not isinstance(value, type(default)):
            stop(f"`{name}` cannot be {value!r}.", "pyproject.toml")
        return value or default

    try:
        commit, date = git("log", "-1", "--format=%h %cs").split()
        commit += " with changes" if git("status", "--porcelain", "--", ".") else ""
    except (OSError, subprocess.CalledProcessError, ValueError):
        commit = date = ""
    packages: list[str] = given("tool.hatch.build.targets.wheel.packages", [])
    return Edition(given("project.version", ""), commit, date, given("project.name", ""), packages)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(path, path.name))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        stop(f"this is not valid TOML: {error}.", path.name)
