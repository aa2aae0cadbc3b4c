"""Environment of results beside the book: the installation, and little of the author's shell."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from press.book_files import PRESS, THEME, files_below

# What a chapter may see of the author's shell. Nothing else of it can change a result.
KEPT = ["PATH", "HOME", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"]


def environment() -> dict[str, str]:
    fixed = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    fixed["MATPLOTLIBRC"] = str(Path(__file__).with_name("matplotlibrc"))
    # As many chapters run at once as there are cores, so each computes on one thread; and a sum
    # over several threads would depend on their number.
    fixed["OMP_NUM_THREADS"] = "1"
    fixed["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # Jupyter's own
    return {key: os.environ[key] for key in KEPT if key in os.environ} | fixed


def installation() -> list[str]:
    """The Python, press, and every installed distribution with the time of its installation."""
    parts = [sys.version, sys.executable, json.dumps(environment(), sort_keys=True)]
    parts += [f"{name} {value}" for name, value in files_below(PRESS, THEME).items()]
    for folder in filter(os.path.isdir, sys.path):
        for item in sorted(os.scandir(folder), key=lambda item: item.name):
            if item.name.endswith((".dist-info", ".egg-link", ".pth")):
                record = os.path.join(item.path, "RECORD")
                changed = os.stat(record if os.path.exists(record) else item.path).st_mtime_ns
                parts.append(f"{item.name} {changed}")
    return parts
