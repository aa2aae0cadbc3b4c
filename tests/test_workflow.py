"""A public forge: its workflows do as `.ci/run` and publish a tag; forms, hooks, container."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[1]
WORKFLOW, NIGHTLY = (
    yaml.safe_load((REPOSITORY / ".github/workflows" / f"{name}.yml").read_text(encoding="utf-8"))
    for name in ("book", "nightly")
)
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def steps(job: dict[str, Any], kind: str) -> list[str]:
    return [step[kind] for step in job["steps"] if kind in step]


def test_a_change_is_tested_by_the_one_command_that_tests_it_here() -> None:
    commands = steps(JOBS["test"], "run")
    assert "bash .ci/run" in commands
    assert (REPOSITORY / ".ci" / "run").exists()
    tested = commands.index("bash .ci/run")
    assert all("wheel" not in command and "cp" not in command for command in commands[:tested])


def test_each_night_tries_all_and_quarto_where_a_missing_program_is_a_failure() -> None:
    assert NIGHTLY[True]["schedule"]  # YAML's `on`
    (job,) = NIGHTLY["jobs"].values()
    commands = steps(job, "run")
    assert commands[-1] == "bash .ci/run nightly"
    assert any(re.search(r"pip install quarto-cli==\S+$", command) for command in commands)
    assert job["env"] == {"QUARTO_REQUIRED": "1"}
    assert job["container"] == JOBS["test"]["container"]
    assert NIGHTLY["permissions"] == {"contents": "read"}
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert '-m "slow or nightly or hypothesis" --hypothesis-profile=long\n' in makefile


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
    jobs = (*JOBS.values(), *NIGHTLY["jobs"].values())
    used = [action for job in jobs for action in steps(job, "uses")]
    assert used
    pinned = r"actions/[\w-]+@v\d+|pypa/gh-action-pypi-publish@release/v1"
    assert [action for action in used if not re.fullmatch(pinned, action)] == []


def test_it_runs_the_oldest_python_that_the_project_supports() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    assert JOBS["test"]["container"].startswith(f"python:{oldest}-")


def test_a_container_to_work_in_is_that_of_the_workflow() -> None:
    folder = REPOSITORY / ".devcontainer"
    settings = json.loads((folder / "devcontainer.json").read_text(encoding="utf-8"))
    image = (folder / settings["build"]["dockerfile"]).read_text(encoding="utf-8")
    assert f"\nFROM {JOBS['test']['container']}\n" in image
    assert settings["postCreateCommand"].endswith(" make set-up-test")


def test_hooks_of_a_commit_run_what_there_is() -> None:
    text = (REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    hooks = [hook for source in yaml.safe_load(text)["repos"] for hook in source["hooks"]]
    assert {"ruff", "ruff-format", "typos", "data"} <= {hook["id"] for hook in hooks}
    for hook in hooks:
        for word in re.findall(r"tests/\S+", hook["entry"]):
            assert (REPOSITORY / word).exists(), word
        assert re.compile(hook.get("files", ""))
        # What is fetched is of one version.
        assert all("==" in package for package in hook.get("additional_dependencies", []))


def test_forms_ask_for_what_a_report_needs() -> None:
    folder = REPOSITORY / ".github" / "ISSUE_TEMPLATE"
    asked = {}
    for path in sorted(folder.glob("*[!g].yml")):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= form.keys(), path
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields), path
        asked[path.stem] = {field["id"] for field in fields if field.get("validations")}
    assert asked == {
        "device": {"name", "datasheet"},
        "measured-row": {"row", "source"},
        "wrong-number": {"where", "edition", "printed", "expected", "source"},
    }
