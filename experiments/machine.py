"""How a stored measurement was made: on which machine, with which versions, by which command."""

from __future__ import annotations

import datetime
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w

from calc.measure import this_machine


def ask_for_one_thread(command: str) -> None:
    """Refuses to measure with several: the times of small products would vary by half."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit(f"say how it is measured: {command}")


def describe(path: Path, heading: str, packages: tuple[str, ...], **told: Any) -> None:
    """A TOML file of it: the heading as a comment, today, the machine, and what else there is."""
    machine = this_machine()
    pairs = {
        "measured": datetime.datetime.now(datetime.UTC).date(),
        "processor": machine.processor,
        "cores": machine.cores,
        "system": machine.system,
        "python": machine.python,
        **{name: version(name) for name in packages},
        **told,
    }
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    path.write_text(comment + tomli_w.dumps(pairs), encoding="utf-8")
