"""Type checkers agree with what laws accept, and find nothing anywhere: mypy, run once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "tests" / "calc" / "typing_examples.py"


@pytest.mark.slow  # a minute in a fresh clone; `make lint` asks for it alone
@pytest.mark.first
def test_mypy_finds_nothing_and_agrees_with_the_examples() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The examples are among what it reads (`files` in pyproject.toml), and an error that does not
    # come is told by `warn_unused_ignores`; so each of these comments is needed.
    assert EXAMPLES.read_text(encoding="utf-8").count("type: ignore[") == 12
