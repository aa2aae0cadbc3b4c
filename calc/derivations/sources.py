"""What the page "Where the numbers come from" prints: every value of the data, and its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain, groupby
from typing import Any

from calc import constants, hardware
from calc.derivations.quoting import approximately, show
from calc.hardware import Accelerator
from calc.records import DATA, KINDS, Record

HEADING_OR_NAME = re.compile(r"^# -{4} (.+?) -+$|^\[(\w+)\]$", re.MULTILINE)
MEANINGS = {
    "definition": "Exact: the value defines a unit or belongs to a standard.",
    "datasheet": "Stated by those who make or specify the thing, measured or not.",
    "measured": "Found by somebody who says how, on the machine named.",
    "estimate": "Scaled from its source, by the reasoning told last; marked with ≈ in tables.",
    "unpublished": "Looked for and not found; whoever computes with it is told so.",
}
Groups = dict[str, list[Record]]
VENDORS = ("NVIDIA", "AMD", "Google")  # with a table of their own


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _constant_groups() -> Groups:
    """The constants under the headings of their file, which are comments there."""
    path = DATA / "constants.toml"
    records = constants.load(path)
    groups: Groups = {}
    for heading, name in HEADING_OR_NAME.findall(path.read_text(encoding="utf-8")):
        if heading:
            group = groups[heading] = []
        else:
            group.append(records[name])
    return groups


def _cited(record: Record) -> str:
    return f"[@{record.provenance.source}]"


def _constant_row(record: Record) -> tuple[Any, ...]:
    provenance = record.provenance
    title = f"[{provenance.title}]{{#{provenance.key.replace('_', '-')}}}"
    return title, record.published, provenance.kind, _cited(record)


def _device_rows(device: Accelerator) -> list[tuple[Any, ...]]:
    """One row for each field, and one for the rates of one table that share kind and source."""
    rows: list[tuple[Any, ...]] = [
        (_capitalized(hardware.FIELDS[name]), *_told(record.published, record))
        for name, record in device.records.items()
    ]
    for name, title in hardware.PEAKS.items():
        rates = [(dtype.upper(), record) for dtype, record in device.peaks[name].items()]
        alike: dict[tuple[str, str], list[tuple[str, Record]]] = {}
        for dtype, record in rates:
            key = (record.provenance.kind, record.provenance.source)
            alike.setdefault(key, []).append((dtype, record))
        rows += [
            (_capitalized(title), *_told(_listed(same), same[0][1])) for same in alike.values()
        ]
    first = f"[{device.name} ({device.year})]{{#{device.key}}}"
    return [(first if row is rows[0] else "", *row) for row in rows]


def _device_rows_by_vendor(devices: Iterable[Accelerator]) -> dict[str, list[tuple[Any, ...]]]:
    rows: dict[str, list[tuple[Any, ...]]] = {vendor: [] for vendor in (*VENDORS, "others")}
    for device in devices:
        vendor = device.name.split()[0]
        rows[vendor if vendor in VENDORS else "others"] += _device_rows(device)
    return rows


def _told(value: Any, record: Record) -> tuple[Any, str, str]:
    """Nobody is cited for what nobody published."""
    kind = record.provenance.kind
    return (None, kind, "–") if kind == "unpublished" else (value, kind, _cited(record))


def _listed(rates: Iterable[tuple[str, Record]]) -> str:
    """FP16 989, BF16 989 TFLOP/s; INT8 1979 TOP/s"""
    printed = [
        (dtype, *_value(record).rpartition("\N{NO-BREAK SPACE}")[::2])
        for dtype, record in rates
        if record.published is not None
    ]
    runs = [(unit, list(run)) for unit, run in groupby(printed, key=lambda each: each[2])]
    return "; ".join(
        f"{', '.join(f'{dtype} {number}' for dtype, number, _ in run)} {unit}" for unit, run in runs
    )


def _value(record: Record) -> str:
    shown = approximately if record.provenance.kind == "estimate" else show
    return str(shown(record.quantity, digits=9))


def _told_why(kind: str, records: Iterable[Record]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (_capitalized(record.provenance.title), record.provenance.note)
        for record in records
        if record.provenance.kind == kind
    )


def _constant_rows(groups: Groups) -> dict[str, list[tuple[Any, ...]]]:
    return {
        heading: [_constant_row(record) for record in group] for heading, group in groups.items()
    }


def _kind_rows(*records: Iterable[Record]) -> tuple[tuple[Any, ...], ...]:
    counts = [Counter(record.provenance.kind for record in each) for each in records]
    return tuple((kind, MEANINGS[kind], *(count[kind] for count in counts)) for kind in KINDS)


class ConstantSources:
    """Every constant, under the headings of its data file."""

    header = ("Constant", "Value", "Kind", "Source")
    groups = _constant_groups()
    records = tuple(chain.from_iterable(groups.values()))
    rows = _constant_rows(groups)
    estimates = _told_why("estimate", records)


class DeviceSources:
    """Every field of every device, by vendor."""

    header = ("Device", "Field", "Value", "Kind", "Source")
    devices = tuple(hardware.get(key) for key in hardware.names())
    records = tuple(chain.from_iterable(device.all_records() for device in devices))
    rows = _device_rows_by_vendor(devices)
    estimates = _told_why("estimate", records)
    unpublished = _told_why("unpublished", records)


class KindsOfSource:
    """Most values are stated by vendors; few are measured."""

    header = ("Kind", "What it means", "Constants", "Fields of devices")
    rows = _kind_rows(ConstantSources.records, DeviceSources.records)
