"""`tools/requirements/install.py` installs what is missing, and `make help` lists what there is."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "tools" / "requirements"


def pins(lock: str) -> set[str]:
    lines = (REQUIREMENTS / f"{lock}.txt").read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if "==" in line and not line.startswith((" ", "#"))}


@pytest.fixture
def installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The script's own names, for an environment that works, and where pip would only be told."""
    names = runpy.run_path(str(REQUIREMENTS / "install.py"))
    installed: list[str] = []
    inside = names["main"].__globals__
    monkeypatch.setitem(inside, "VENV", tmp_path)
    monkeypatch.setitem(inside, "wait_for_others", lambda: None)
    monkeypatch.setitem(inside, "environment_works", lambda: True)
    monkeypatch.setitem(inside, "pip_install", lambda *words: installed.extend(words))
    monkeypatch.setitem(inside, "install_locked", lambda lock: installed.append(str(lock)))
    return {"main": names["main"], "told": installed}


def test_the_test_lock_holds_all_of_the_book_s() -> None:
    assert pins("book") <= pins("test")
    assert len(pins("book")) > 20


def test_what_the_test_lock_brought_is_not_installed_again(installer: dict[str, Any]) -> None:
    installer["main"]("test")
    assert str(REQUIREMENTS / "test.txt") in installer["told"]
    installer["told"].clear()
    installer["main"]("test")
    installer["main"]("book")
    assert installer["told"] == []


def test_the_book_s_lock_does_not_stand_for_that_of_the_tests(installer: dict[str, Any]) -> None:
    installer["main"]("book")
    installer["told"].clear()
    installer["main"]("test")
    assert str(REQUIREMENTS / "test.txt") in installer["told"]


def test_setting_up_ends_with_what_to_run_next() -> None:
    command = ["make", "--no-print-directory", "--dry-run", "set-up-test"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "make test" in done.stdout.splitlines()[-1]
    command[-1] = "test"
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "Next:" not in done.stdout


def test_help_lists_every_target_and_no_other() -> None:
    """Targets are listed, but for help itself and steps of others, such as those of `make test`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.M)[0].split())
    process = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True
    )
    lines = process.stdout.splitlines()
    listed = [re.match(r"make ([a-z-]+)(?: ENGINE=\w+)?  +\S", line) for line in lines[:-1]]
    assert all(listed), process.stdout
    assert lines[-1].startswith("Another Python: ")
    steps = {"help", "style", "set-up-book", "set-up-torch"}
    assert {match[1] for match in listed if match} == targets - steps
    rules = re.findall(r"^([a-z][a-z -]*):(?!=)", makefile, re.M)
    assert {name for rule in rules for name in rule.split()} == targets
