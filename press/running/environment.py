"""What a chapter may see of the author's shell. Nothing else of it can change a result."""

from __future__ import annotations

import os
from pathlib import Path

KEPT = ["PATH", "HOME", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH"]


def environment() -> dict[str, str]:
    fixed = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    fixed["MATPLOTLIBRC"] = str(Path(__file__).with_name("matplotlibrc"))
    fixed["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # Jupyter's own
    return {key: os.environ[key] for key in KEPT if key in os.environ} | fixed
