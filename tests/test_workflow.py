"""Continuous integration of a public forge: it does as `.ci/run`, and publishes a tag."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[1]
WORKFLOW: dict[Any, Any] = yaml.safe_load(
    (REPOSITORY / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
)
JOBS = WORKFLOW["jobs"]


def steps(job: str, kind: str) -> list[str]:
    return [step[kind] for step in JOBS[job]["steps"] if kind in step]


def test_a_change_is_tested_by_the_one_command_that_tests_it_here() -> None:
    commands = steps("test", "run")
    assert "bash .ci/run" in commands
    assert (REPOSITORY / ".ci" / "run").exists()
    tested = commands.index("bash .ci/run")
    assert all("wheel" not in command and "cp" not in command for command in commands[:tested])


def test_only_a_tag_that_passed_is_published() -> None:
    assert JOBS["publish"]["needs"] == "test"
    assert JOBS["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert {name: JOBS["package"][name] for name in ("needs", "if")} == {
        name: JOBS["publish"][name] for name in ("needs", "if")
    }
    assert JOBS["package"]["permissions"] == {"id-token": "write"}  # trusted: by no secret
    assert "secrets" not in str(JOBS["package"])
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in JOBS["test"]


def test_each_action_is_of_one_version() -> None:
    used = [action for job in JOBS for action in steps(job, "uses")]
    assert used
    known = r"actions/[\w-]+@v\d+|pypa/gh-action-pypi-publish@release/v1"
    assert [action for action in used if not re.fullmatch(known, action)] == []


def test_it_runs_the_oldest_python_that_the_project_supports() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert JOBS["test"]["container"].startswith(f"python:{oldest}-")
