"""Type checkers agree with what laws accept."""

from __future__ import annotations

from pathlib import Path

from mypy import api

ROOT = Path(__file__).resolve().parents[2]


def test_mypy_agrees_with_the_examples() -> None:
    examples = Path(__file__).with_name("typing_examples.py")
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml")]
    report, errors, status = api.run([*options, str(examples)])
    assert (status, errors) == (0, ""), report
    # The comments are needed, each of them.
    text = examples.read_text(encoding="utf-8")
    assert text.count("type: ignore[") == 8
