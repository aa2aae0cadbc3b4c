"""What the reference prints of each machine: what joins its devices, what was measured on it."""

from __future__ import annotations

from collections.abc import Iterator

from calc import machines
from calc.catalog.machines import Machine
from calc.core.records import Record
from tools.pages import bullets
from tools.pages.facts import reached, reached_title, value

OPENING = """Devices behind a fabric, with ports and a host, and the rates that were measured on
them; estimates say ≈. `calc show KEY` prints each with its source, the day on which it was checked
and its note."""


def parts() -> Iterator[str]:
    """The text, paragraph by paragraph."""
    yield "## Every machine {#machines-every .unnumbered}"
    yield OPENING
    for machine in map(machines.get, machines.names()):
        yield f"### {machine.name} {{#machines-{machine.key} .unnumbered}}"
        yield f"`{machine.key}`: {_shape(machine)}"
        by_title = {machines.FIELDS[name]: record for name, record in machine.records.items()}
        rates = {reached_title(*name): record for name, record in reached(machine).items()}
        lines = [_told(by_title), *([f"reached: {_told(rates)}"] if rates else [])]
        sources = {record.provenance.source for record in machine.all_records() if record.published}
        lines.append(f"Sources: {'; '.join(f'@{key}' for key in sorted(sources))}")
        yield bullets(filter(None, lines))


def _shape(machine: Machine) -> str:
    if machine.domain == 1:
        return f"one {machine.device.name}"
    return f"{machine.domain} × {machine.device.name}, joined by {machines.FABRICS[machine.fabric]}"


def _told(records: dict[str, Record]) -> str:
    return "; ".join(
        f"{title} {value(record)}" for title, record in records.items() if record.published
    )
