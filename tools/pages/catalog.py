"""The pages of devices, machines and models: one of each, and of each kind one of all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache

from calc import hardware, inference, machines, models, published, runs, transformer
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Network, Transformer
from calc.core.errors import InputError
from calc.core.provenance import Provenance
from calc.core.records import Record
from calc.core.units import Quantity
from calc.derivations.places import Thing, kind_of, page_of
from calc.derivations.quoting import show
from calc.published import conditions
from tools.pages import ROOT, bullets, generated, uses
from tools.pages.facts import asked_of, measured_on, shape_of, weights_and_work

SOURCES = {
    "devices": "calc/data/accelerators.toml",
    "machines": "calc/data/machines.toml",
    "models": "calc/data/models.toml",
}
FILTER = """A click on a head sorts, and the field above leaves the rows that hold its words; with
commas between names, those of any. Each name leads to all that is known of it, with the source."""
OPENINGS = {
    "devices": f"""Every device of the data side by side. {FILTER} Rates are dense, in
10¹² operations a second; ≈ marks an estimate, and a dash what is not published.""",
    "machines": f"""Every machine of the data: devices behind a fabric, with ports and a host.
{FILTER} Bandwidths are those of one device, each way; a dash marks what is not published.""",
    "models": f"""Every model of the data. {FILTER} Parameters are counted from the shape; the
cache and the weights are in two bytes a number. A dash marks what a model does not have.""",
}
COLUMNS = {  # of the table of all devices, and the unit that it prints them in
    "memory_capacity": ("Memory (GiB)", "GiB"),
    "memory_bandwidth": ("Bandwidth (TB/s)", "TB/s"),
    "link_bandwidth": ("Links each way (GB/s)", "GB/s"),
    "tdp": ("Power (W)", "W"),
}
RATES = {"16 bits": ("bf16", "fp16"), "8 bits": ("fp8", "int8"), "4 bits": ("fp4", "int4")}
OF_MACHINES = {  # the same of machines
    "bandwidth": ("Fabric (GB/s)", "GB/s"),
    "ports": ("Ports (Gbit/s)", "Gbit/s"),
    "power": ("Power (kW)", "kW"),
}
OF_MODELS = (
    *("Parameters (billion)", "Met by a token", "Cache of a token (kB)", "Weights (GB)"),
    *("Longest context", "Layers", "Width"),
)
ANNOUNCED = " Announced, and not to be had yet."
WITHOUT_BRACKETS = str.maketrans("", "", "[]")  # of FLUX.1 [dev], which would begin a link
NONE = "–"


def pages() -> dict[str, str]:
    """The page of each, and of each kind the one of all."""
    texts = {}
    for kind, of_kind in things().items():
        title = f"{kind.capitalize()} {{#all-{kind} .unnumbered}}"
        body = "\n\n".join(_all(kind, of_kind))
        texts[f"reference/{kind}/index.qmd"] = generated(title, SOURCES[kind], body)
        for thing in of_kind:
            label = f"{kind.removesuffix('s')}-{thing.key}"
            title = f"{_name(thing)} {{#{label} .unnumbered .unlisted}}"
            body = "\n\n".join(_page(thing))
            texts[f"{page_of(thing)}.qmd"] = generated(title, SOURCES[kind], body, UNSEARCHED)
    return texts


def settings() -> dict[str, str]:
    """`_quarto.yml` with all of these pages in the place where it lists them."""
    text = (ROOT / "_quarto.yml").read_text(encoding="utf-8")
    kinds = things()
    names = [f"reference/{kind}/index" for kind in kinds]
    names += [page_of(thing) for of_kind in kinds.values() for thing in of_kind]
    wanted = "".join(f"        - {name}.qmd\n" for name in names)
    listed = rf"(?:        - reference/(?:{'|'.join(kinds)})/.*\n)+"
    return {"_quarto.yml": re.sub(listed, wanted, text)}


UNSEARCHED = "---\nsearch: false\n---\n\n"  # the answers of the search hold the same


def things() -> dict[str, Sequence[Thing]]:
    """All of each kind: the newest transformers first, and then other networks."""
    every = [models.get(key) for key in reversed(models.names())]
    return {
        "devices": [*map(hardware.get, (*hardware.names(), *hardware.announced()))],
        "machines": [*map(machines.get, machines.names())],
        "models": sorted(every, key=lambda model: isinstance(model, Network)),
    }


def also(thing: Thing) -> tuple[str, ...]:
    """What else a model is called."""
    return models.also(thing.key) if kind_of(thing) == "models" else ()


def _name(thing: Thing) -> str:
    return thing.name.translate(WITHOUT_BRACKETS)


def _link(thing: Thing, kind: str) -> str:
    """A link to a thing's page from one of that kind."""
    folder = "" if kind_of(thing) == kind else f"../{kind_of(thing)}/"
    return f"[{_name(thing)}]({folder}{thing.key}.qmd)"


# --- the page of one ---


def _page(thing: Thing) -> Iterator[str]:
    kind = kind_of(thing)
    yield f"`{thing.key}`{_told(thing)} [All {kind}](index.qmd#all-{kind}) stand side by side."
    more = weights_and_work(thing) if isinstance(thing, Transformer) else ()
    facts = [*asked_of(thing), *more]
    lines = [
        "| | Value | Kind | Checked | Source |",
        "|:----------------------|------------:|:--------|:--------|:----------------------|",
    ]
    for fact in facts:
        if fact.value:
            title = f"[{fact.title}]{{#{fact.row}}}"
            lines.append(f"| {title} | {fact.value} | {_origin(fact.about)} |")
    shape = shape_of(thing) if isinstance(thing, Transformer | Network) else {}
    lines += [f"| {numbers} | | {_origin(about)} |" for about, numbers in shape.items()]
    yield "\n".join(lines)
    if missing := [fact.title for fact in facts if not fact.value]:
        yield f"Not published: {'; '.join(missing)}."
    yield bullets(_around(thing))


def _origin(about: Provenance | None) -> str:
    """The last three cells of a fact: its kind, the day, and the source with the fine print."""
    if about is None:
        return "computed | |"
    note = f". {_cell(about.note)}" if about.note else ""
    return f"{about.kind} | {about.checked} | [@{about.source}]{note}"


def _cell(note: str) -> str:
    """A note as a cell of a table prints it."""
    return note.replace("|", "\\|").replace("$", "\\$").replace("<", "\\<").rstrip(".")


def _told(thing: Thing) -> str:
    """What it is, in a sentence or two after its key."""
    match thing:
        case Accelerator():
            announced = ANNOUNCED if thing.key in hardware.announced() else ""
            lacks = ", ".join(thing.unsupported).upper()
            return f", {thing.year}.{announced}" + (
                f" Its matrix units have no {lacks}." if lacks else ""
            )
        case Machine():
            device = _link(thing.device, "machines")
            if thing.domain == 1:
                return f", one {device}."
            return f", {thing.domain} × {device}, joined by {machines.FABRICS[thing.fabric]}."
        case Network():
            return f", {thing.year}, {thing.family}."
    kinds = ", ".join(f"{count} {kind}" for kind, count in thing.kinds.items())
    called = f" Also called {', '.join(names)}." if (names := also(thing)) else ""
    return f", {thing.year}; of its layers {kinds}.{called}"


def _around(thing: Thing) -> Iterator[str]:
    """What else has to do with it: machines, measurements, runs and chapters."""
    kind = kind_of(thing)
    if isinstance(thing, Accelerator):
        every = map(machines.get, machines.names())
        holding = [each for each in every if each.device.key == thing.key]
        if holding:
            yield f"Machines: {', '.join(_link(each, kind) for each in holding)}"
    if isinstance(thing, Machine) and (others := _measured_elsewhere(thing)):
        rates = ", ".join(_link(machines.get(key), kind) for key in others)
        yield f"Rates that kernels reach: those measured on {rates}"
    if found := _measured().get(f"{kind}/{thing.key}"):
        counts = ", ".join(f"{count} of {group}" for group, count in found.items())
        place = "../../chapters/predicted-and-measured.qmd"
        yield f"Published measurements: {counts}, beside what is [predicted]({place}) of all"
    if trained := _runs(thing):
        place = "../../backmatter/sources-models.qmd"
        told = (f"[{runs.get(key).name}]({place}#{key})" for key in trained)
        yield f"Training runs: {', '.join(told)}"
    if chapters := uses.links(thing):
        yield f"Chapters: {', '.join(chapters)}"
    yield f"With all notes: `calc show {thing.key}`"


def _measured_elsewhere(machine: Machine) -> list[str]:
    """The machines of the same chip whose measured rates it takes over."""
    rates: Iterator[Record] = (each for of in machine.rates.values() for each in of.values())
    return sorted({measured_on(record) for record in rates} - {machine.key})


@cache
def _measured() -> dict[str, Counter[str]]:
    """How many published rows of each group there are of each thing, by its kind and key."""
    found: dict[str, Counter[str]] = {}
    for row in published.rows():
        for kind, read in (("devices", _device_of), ("models", conditions.model)):
            try:
                key = read(row).key
            except InputError:
                continue
            found.setdefault(f"{kind}/{key}", Counter())[GROUPS[row.group]] += 1
    return found


GROUPS = {
    "kernel": "kernels",
    "collective": "collectives",
    "training": "training",
    "serving": "serving",
}


def _device_of(row: published.Row) -> Accelerator:
    device = conditions.machine(row).device
    assert isinstance(device, Accelerator)
    return device


def _runs(thing: Thing) -> list[str]:
    """Training runs of a model, or on a device."""
    if isinstance(thing, Accelerator):
        named = ((key, runs.get(key).device.lower()) for key in runs.names())
        return [key for key, device in named if conditions.device_key(device) == thing.key]
    return [thing.key] if not isinstance(thing, Machine) and thing.key in runs.names() else []


# --- the table of all ---


def _all(kind: str, of_kind: Sequence[Thing]) -> Iterator[str]:
    yield OPENINGS[kind]
    if kind == "devices":
        rates = [f"{name} (T/s)" for name in RATES]
        heads = [head for head, _ in COLUMNS.values()]
        header = ["Device", "Year", *rates, *heads, "Ridge point, 16 bits (FLOP/byte)"]
    elif kind == "machines":
        header = ["Machine", "Devices", *(head for head, _ in OF_MACHINES.values())]
    else:
        header = ["Model", "Year", *OF_MODELS]
    rows = [[_link(thing, kind), *_row(thing)] for thing in of_kind]
    rule = [f":{'-' * 30}", *[f"{'-' * 9}:"] * (len(header) - 1)]  # how wide columns are
    yield "::: {.sortable}"
    yield "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])
    yield f": Every {kind.removesuffix('s')} of the data. {{#tbl-{kind}}}"
    yield ":::"


def _row(thing: Thing) -> list[str]:
    match thing:
        case Accelerator():
            rates = [_rate(thing, dtypes) for dtypes in RATES.values()]
            values = [_value(thing.records.get(name), unit) for name, (_, unit) in COLUMNS.items()]
            half = next((dtype for dtype in RATES["16 bits"] if dtype in thing.dtypes), None)
            known = half and thing.publishes("memory_bandwidth")
            ridge = _number(thing.ridge_point(half), "FLOP/byte", 3) if half and known else NONE
            return [str(thing.year), *rates, *values, ridge]
        case Machine():
            records = ((thing.records.get(name), unit) for name, (_, unit) in OF_MACHINES.items())
            return [str(thing.domain), *(_value(record, unit) for record, unit in records)]
        case Network():
            parameters = _number(thing.parameters, "Gparam")
            return [str(thing.year), parameters, *[NONE] * (len(OF_MODELS) - 1)]
    caches = thing.caching_layers and thing.output in ("own", "tied")
    return [
        str(thing.year),
        _number(thing.parameters, "Gparam"),
        _number(thing.active_parameters, "Gparam") if thing.experts else NONE,
        _number(transformer.kv_cache_per_token(thing), "kB/token", 3) if caches else NONE,
        _number(inference.weight_memory(thing), "GB", 3),
        *(str(show(number)) for number in (thing.context, thing.layers, thing.width)),
    ]


def _rate(device: Accelerator, dtypes: tuple[str, ...]) -> str:
    """The fastest of formats of as many bits."""
    rates = [device.peaks["peak"][dtype] for dtype in dtypes if dtype in device.dtypes]
    if not rates:
        return NONE
    fastest = max(rates, key=lambda record: record.quantity.to_base_units().magnitude)
    return f"{_mark(fastest)}{_rounded(fastest.quantity.to_base_units().magnitude / 1e12)}"


def _value(record: Record | None, unit: str) -> str:
    if record is None or record.published is None:
        return NONE
    return f"{_mark(record)}{_number(record.quantity, unit)}"


def _number(quantity: Quantity, unit: str, digits: int = 4) -> str:
    return _rounded(quantity.m_as(unit), digits)


def _rounded(number: float, digits: int = 4) -> str:
    """Without an exponent, which would not line up in a column."""
    return f"{Decimal(f'{number:.{digits}g}'):f}"


def _mark(record: Record) -> str:
    return "≈\N{NO-BREAK SPACE}" if record.provenance.kind == "estimate" else ""
