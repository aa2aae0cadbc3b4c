"""The scripts that a book has run before it is read: they write what nobody does by hand.

Quarto runs them before each render, and so does press unless the project is as they left it. They
are run until they change nothing, so that what they wrote is of the sources that are read then.

One more, which `audit` of `_quarto.yml` names, says what press cannot know to be wrong in a book.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from press.book_files import FOLDER, files_below
from press.build_memory import digest, keep, recall
from press.problems import Problem, stop
from press.reading.project import SETTINGS, output_folder, read_settings
from press.running.environment import installation

LEFT = f"{FOLDER}/scripts.json"  # the digest of the project as the scripts left it
RUNS = 3
TOLD = re.compile(r"([^:\n]+):(\d+): (.+)")


def run_scripts(root: Path) -> None:
    """Runs the scripts of `project: pre-render`, where something has changed since they ran."""
    settings, lines = read_settings(root)
    project = settings.get("project")
    if not isinstance(project, dict) or not (named := project.get("pre-render")):
        return
    line = lines["project", "pre-render"]
    texts = named if isinstance(named, list) else [named]
    commands = [_command(root, text, line) for text in texts]
    output = output_folder(root, project)
    now = files_below(root, output)
    if recall(root / LEFT) == [digest(now, installation())]:
        return
    for _ in range(RUNS):
        for command in commands:
            _run(root, command, line)
        before, now = now, files_below(root, output)
        if before == now:
            keep(root / LEFT, digest(now, installation()))
            return
    changing = sorted(name for name, _ in before.items() ^ now.items())
    stop(f"these scripts change {changing[0]} each time they run.", SETTINGS, line)


def told_by_script(root: Path) -> list[Problem]:
    """Return what the script of `audit` finds: a problem in each line that it prints."""
    settings, lines = read_settings(root)
    if not (named := settings.get("audit")):
        return []
    line = lines["audit",]
    problems = []
    for said in _run(root, _command(root, named, line), line).splitlines():
        if not (problem := TOLD.fullmatch(said)):
            stop(f"press reads FILE:LINE: SENTENCE, and {named} says {said!r}.", SETTINGS, line)
        problems.append(Problem(problem[1], int(problem[2]), problem[3]))
    return problems


def _command(root: Path, text: Any, line: int) -> list[str]:
    """The words of a command that press runs as Quarto does: a script in Python, with arguments."""
    words = shlex.split(text) if isinstance(text, str) else []
    if not words or not words[0].endswith(".py"):
        stop(f"press runs scripts in Python before a render, not {text!r}.", SETTINGS, line)
    if not (root / words[0]).is_file():
        stop(f"the script {words[0]} does not exist.", SETTINGS, line)
    return words


def _run(root: Path, command: list[str], line: int) -> str:
    """Run a script of the book and return what it prints."""
    done = subprocess.run([sys.executable, *command], cwd=root, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["and said nothing"])[-1]
        stop(f"the script {command[0]} failed: {said}", SETTINGS, line)
    return done.stdout
