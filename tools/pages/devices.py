"""Every device of the data, under a heading of its own, by which a search of the site finds it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from calc import hardware, machines
from calc.catalog.hardware import Accelerator
from calc.core.records import Record
from tools.pages import bullets
from tools.pages.machines import value

OPENING = """Every device of the data, by vendor: what its vendor says of it, which of its fields
are not published, and which data types its matrix units do not support. Links and the way to the
host are given each way. `calc show KEY` prints the source and the fine print of each number."""
ANNOUNCED = "Announced, and not to be had yet"
FIELDS = hardware.FIELDS | {
    "link_bandwidth": "links",
    "host_link": "to the host",
    "units": "units",
    "clock": "clock",
    "special_functions": "special functions",
}
MEMORY = re.compile(r"\b(HBM|GDDR|LPDDR|DDR|MRDIMM|SRAM)\w*")


def parts() -> Iterator[str]:
    """The text, paragraph by paragraph."""
    yield "## Every device {#hardware-devices .unnumbered}"
    yield OPENING
    devices = [hardware.get(key) for key in hardware.names()]
    for vendor in dict.fromkeys(device.name.split()[0] for device in devices):
        yield f"### {vendor} {{#hardware-{vendor.lower()} .unnumbered}}"
        for device in devices:
            if device.name.startswith(vendor):
                yield from _device(device)
    yield f"### {ANNOUNCED} {{#hardware-announced .unnumbered}}"
    for device in map(hardware.get, hardware.announced()):
        yield from _device(device)


def _device(device: Accelerator) -> Iterator[str]:
    yield f"#### {device.name} {{#hardware-{device.key} .unnumbered}}"
    records = device.records
    lines = [
        ", ".join(
            f"{FIELDS[name]} {value(record)}{_kind_of_memory(name, record)}"
            for name, record in records.items()
            if record.published is not None
        )
    ]
    for name, title in hardware.PEAKS.items():
        rates = [peak for peak in device.peaks[name].items() if peak[1].published is not None]
        if rates:
            printed = ", ".join(f"{dtype.upper()} {value(record)}" for dtype, record in rates)
            lines.append(f"{title.capitalize()}: {printed}")
    if device.unsupported:
        lines.append(f"Not supported: {', '.join(device.unsupported).upper()}")
    if missing := _unpublished(device):
        lines.append(f"Not published: {', '.join(missing)}")
    if (machine := machines.of(device)).domain > 1:
        lines.append(f"Usually one of {machine.domain} in: {machine.name}")
    sources = {record.provenance.source for record in device.all_records() if record.published}
    lines.append(f"Sources: {'; '.join(f'@{key}' for key in sorted(sources))}")
    yield f"`{device.key}`, {device.year}"
    yield bullets(lines)


def _kind_of_memory(name: str, record: Record) -> str:
    kind = MEMORY.search(record.provenance.note) if name == "memory_bandwidth" else None
    return f" ({kind[0]})" if kind else ""


def _unpublished(device: Accelerator) -> list[str]:
    fields = [FIELDS[name] for name, record in device.records.items() if record.published is None]
    rates = [
        f"{hardware.PEAKS[name]} in {dtype.upper()}"
        for name, records in device.peaks.items()
        for dtype, record in records.items()
        if record.published is None
    ]
    return fields + rates
