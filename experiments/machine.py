"""How a stored measurement was made: on which machine, with which versions, by which command."""

from __future__ import annotations

import datetime
from importlib.metadata import version
from typing import Any

import tomli_w

from calc.measure import this_machine


def description(heading: str, packages: tuple[str, ...], **told: Any) -> str:
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
    return comment + tomli_w.dumps(pairs)
