"""Assignment of tests to workers, and the processes that tests have left behind."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
GROUP = re.compile(r'xdist_group\("(.*?)"\)')
PROCESSES = Path("/proc")  # where the system is not Linux there is none, and nothing is found
STARTED_BY = "STARTED_BY_TESTS_OF"  # in the environment of all that tests start, a process's number
TRACKER = "multiprocessing.resource_tracker"  # Python's own, which ends with the process it serves


class FilesTogether(LoadScopeScheduling):
    """The tests of a file are of one worker, and so are the files of one `xdist_group`.

    xdist's own `loadgroup` tells workers the group by a change of the test's name, which pytest
    from 9.2 on overlooks without a word (pytest-xdist, issue 1386): nothing would be together.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return group(file) or file


@cache
def group(file: str) -> str:
    """The `xdist_group` that all tests of a file have, "" without one."""
    named = GROUP.search((ROOT / file).read_text(encoding="utf-8"))
    return named[1] if named else ""


def left_behind() -> Iterator[str]:
    """The command lines of what this process started, or what was started by that, and runs."""
    own_pid = str(os.getpid())
    mark = f"{STARTED_BY}={own_pid}".encode()
    for process in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it ends meanwhile, or is somebody else's
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
            marked = mark in (process / "environ").read_bytes().split(b"\0")
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            command = " ".join(words).strip()
            ours = (marked or parent == own_pid) and process.name != own_pid
            if ours and state != "Z" and TRACKER not in command:
                yield f"{process.name}: {command}"
