"""The pages of devices: all of them side by side, and each with every field and its source."""

from __future__ import annotations

from collections.abc import Iterator

from calc import hardware, machines
from calc.catalog.hardware import Accelerator
from calc.derivations.places import page_of, vendor_of
from tools.pages import generated
from tools.pages.facts import of_device

SOURCE = "calc/data/accelerators.toml"
OPENING = """Every device of the data side by side: a click on a head sorts, and the field above
leaves the rows that hold its words; with commas between names, those of any. Each name
leads to all fields of the device with their sources. Rates are dense, in
10¹² operations a second; ≈ marks an estimate, and a
dash what is not published."""
OF_A_VENDOR = """Every field of each device with its source and the fine print. Rates say whether
they are dense; links and the way to the host are given each way. `calc show KEY` prints the same,
with the day on which it was held against its source; [all devices](index.qmd#all-devices) stand
side by side on a page of their own."""
COLUMNS = {  # of the table of all, and the unit that it prints them in
    "memory_capacity": ("Memory (GiB)", "GiB"),
    "memory_bandwidth": ("Bandwidth (TB/s)", "TB/s"),
    "link_bandwidth": ("Links each way (GB/s)", "GB/s"),
    "tdp": ("Power (W)", "W"),
}
RATES = {"16 bits": ("bf16", "fp16"), "8 bits": ("fp8", "int8"), "4 bits": ("fp4", "int4")}
ANNOUNCED = " Announced, and not to be had yet."


def pages() -> dict[str, str]:
    """The page of each vendor, and the one of all."""
    devices = [hardware.get(key) for key in (*hardware.names(), *hardware.announced())]
    texts = {"reference/devices/index.qmd": generated(TITLE, SOURCE, "\n\n".join(_all(devices)))}
    for vendor in dict.fromkeys(map(vendor_of, devices)):
        own = [device for device in devices if vendor_of(device) == vendor]
        parts = [OF_A_VENDOR, *(part for device in own for part in _device(device))]
        name = "Devices of other vendors" if vendor == "Others" else f"Devices of {vendor}"
        title = f"{name} {{#devices-{vendor.lower().replace(' ', '-')} .unnumbered}}"
        texts[f"{page_of(own[0])}.qmd"] = generated(title, SOURCE, "\n\n".join(parts))
    return texts


TITLE = "Devices {#all-devices .unnumbered}"


def _all(devices: list[Accelerator]) -> Iterator[str]:
    yield OPENING
    heads = [head for head, _ in COLUMNS.values()]
    rates = [f"{name} (T/s)" for name in RATES]
    header = ["Device", "Year", *rates, *heads, "Ridge point, 16 bits (FLOP/byte)"]
    rows = [_row(device) for device in devices]
    rule = [f":{'-' * 30}", *[f"{'-' * 9}:"] * (len(header) - 1)]  # how wide columns are
    lines = ["| " + " | ".join(cells) + " |" for cells in [header, rule, *rows]]
    yield "::: {.sortable}"
    yield "\n".join(lines)
    yield ": Every device of the data. {#tbl-devices}"
    yield ":::"


def _row(device: Accelerator) -> list[str]:
    page = page_of(device).rpartition("/")[2]
    cells = [f"[{device.name}]({page}.qmd#{device.key})", str(device.year)]
    cells += [_rate(device, dtypes) for dtypes in RATES.values()]
    for name, (_, unit) in COLUMNS.items():
        record = device.records.get(name)
        if record is None or record.published is None:
            cells.append("–")
        else:
            cells.append(_number(record.quantity.m_as(unit), record.provenance.kind))
    half = next((dtype for dtype in RATES["16 bits"] if dtype in device.dtypes), None)
    known = half and device.publishes("memory_bandwidth")
    return [*cells, f"{device.ridge_point(half).m_as('FLOP/byte'):.3g}" if half and known else "–"]


def _rate(device: Accelerator, dtypes: tuple[str, ...]) -> str:
    """The fastest of formats of as many bits."""
    rates = [device.peaks["peak"][dtype] for dtype in dtypes if dtype in device.dtypes]
    if not rates:
        return "–"
    fastest = max(rates, key=lambda record: record.quantity.magnitude)
    tera = fastest.quantity.to_base_units().magnitude / 1e12
    return _number(tera, fastest.provenance.kind)


def _number(magnitude: float, kind: str) -> str:
    mark = "≈\N{NO-BREAK SPACE}" if kind == "estimate" else ""
    return f"{mark}{magnitude:.4g}"


def _device(device: Accelerator) -> Iterator[str]:
    yield f"## {device.name} {{#{device.key} .unnumbered}}"
    announced = ANNOUNCED if device.key in hardware.announced() else ""
    machine = machines.of(device)
    usual = f" Usually one of {machine.domain} in {machine.name}." if machine.domain > 1 else ""
    lacks = (
        f" Its matrix units have no {', '.join(device.unsupported).upper()}."
        if device.unsupported
        else ""
    )
    yield f"`{device.key}`, {device.year}.{announced}{usual}{lacks}"
    facts = [*of_device(device)]
    rows = [
        "| | | Source |",
        "|:----------------|------------:|:------------------------------------|",
    ]
    for fact in facts:
        if fact.value:
            title = f"[{fact.title}]{{#{fact.row}}}"
            told = f"{fact.about.kind} [@{fact.about.source}]" if fact.about else "computed"
            note = f". {_cell(fact.about.note)}" if fact.about and fact.about.note else ""
            rows.append(f"| {title} | {fact.value} | {told}{note} |")
    yield "\n".join(rows)
    if missing := [fact.title for fact in facts if not fact.value]:
        yield f"Not published: {'; '.join(missing)}."


def _cell(note: str) -> str:
    """A note as a cell of a table prints it."""
    return note.replace("|", "\\|").replace("$", "\\$").replace("<", "\\<").rstrip(".")
