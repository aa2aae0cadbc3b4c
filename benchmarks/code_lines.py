"""Lines of code here and at an earlier commit: `python -m benchmarks.code_lines COMMIT`.

Counted are the lines of Python that hold code: no tests, docstrings, comments or blank lines. A
stub that is generated is not counted either.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The lines on which code stands."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def count(commit: str) -> Counter[str]:
    """The code lines of each top folder at a commit, or in the working tree where it is empty."""
    listing = ["git", "ls-tree", "-r", "--name-only", commit] if commit else ["git", "ls-files"]
    lines: Counter[str] = Counter()
    for name in _git(listing).splitlines():
        top = name.split("/")[0]
        counts = name.endswith(".py") and top not in ("tests", ".ci")
        if counts and commit:
            lines[top] += code_lines(_git(["git", "show", f"{commit}:{name}"]))
        elif counts and (ROOT / name).exists():
            lines[top] += code_lines((ROOT / name).read_text())
    return lines


def _git(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    before, now = count(sys.argv[1] if len(sys.argv) > 1 else "HEAD"), count("")
    for top in sorted(before | now):
        print(f"{top:12} {before[top]:7} {now[top]:7} {now[top] - before[top]:+6}")
    print(f"{'all':12} {before.total():7} {now.total():7} {now.total() - before.total():+6}")


if __name__ == "__main__":
    main()
