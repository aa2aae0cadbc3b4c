"""Conditions of a stored measurement: its machine, versions and command."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w

from calc.core.report import values
from calc.measure import this_machine


def ask_for_one_thread(command: str) -> None:
    """Refuses to measure with several: the times of small products would vary by half."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        raise SystemExit(f"say how it is measured: {command}")


def timed(run: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each run, after one that warms up."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


def describe(path: Path, heading: str, packages: tuple[str, ...], **told: Any) -> None:
    """A TOML file of it: the heading as a comment, today, the machine, and what else there is."""
    pairs = {
        "measured": datetime.datetime.now(datetime.UTC).date(),
        **values(this_machine(), "processor cores system python"),
        **{name: version(name) for name in packages},
        **told,
    }
    comment = "".join(f"# {line}\n" for line in heading.splitlines())
    path.write_text(comment + tomli_w.dumps(pairs), encoding="utf-8")
