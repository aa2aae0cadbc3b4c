"""Python as it starts, again and again, and every published row beside its prediction."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calc import published
from calc.published import Comparison
from tests.calc.command import Command, Written

ROOT = Path(__file__).resolve().parents[2]

# A process that has loaded pint, which takes longest, and nothing of ours. Each snippet runs in a
# copy of it, as `python -c` would; what that prints goes into the two files that came with it.
STARTER = """
import json, os, sys
import pint
for line in sys.stdin:
    code, out, error = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for stream, path in enumerate((os.devnull, out, error)):
    os.dup2(os.open(path, os.O_RDWR), stream)
exec(code, {"__name__": "__main__"})
"""


@pytest.fixture(scope="session")
def fresh_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Yield a function that returns what a snippet prints in a fresh interpreter here."""
    folder = tmp_path_factory.mktemp("fresh")
    out, error = folder / "out", folder / "error"
    with subprocess.Popen(
        [sys.executable, "-c", STARTER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout

        def printed(code: str) -> str:
            for path in (out, error):
                path.write_text("")
            print(json.dumps([code, str(out), str(error)]), file=process.stdin, flush=True)
            assert process.stdout.readline() == "0\n", error.read_text()
            return out.read_text()

        yield printed


@pytest.fixture(scope="session")
def comparisons() -> tuple[Comparison, ...]:
    """Every published row beside its prediction, which takes some seconds."""
    return published.compare()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command `calc`."""
    return Command(capsys)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a file of one's own, and gives its path."""

    def write(text: str, name: str = "made_up.toml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
