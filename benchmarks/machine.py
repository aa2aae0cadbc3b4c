"""How a stored measurement was made: on which machine, with which versions, by which command."""

from __future__ import annotations

import datetime
import json
from importlib.metadata import version
from typing import Any

from calc.measure import this_machine


def description(heading: str, packages: tuple[str, ...], **told: Any) -> str:
    """A TOML file of it: the heading as a comment, today, the machine, and what else there is."""
    machine = this_machine()
    pairs = {
        "processor": machine.processor,
        "cores": machine.cores,
        "system": machine.system,
        "python": machine.python,
        **{name: version(name) for name in packages},
        **told,
    }
    lines = [
        *(f"# {line}" for line in heading.splitlines()),
        f"measured = {datetime.datetime.now(datetime.UTC).date().isoformat()}",
        *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in pairs.items()),
    ]
    return "\n".join(lines) + "\n"
