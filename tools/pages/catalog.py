"""The pages of devices, machines and models: one of each, and of each kind one of all."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
from calc.derivations.places import Thing, anchor, kind_of, page_of
from calc.derivations.sources import mark
from calc.published import conditions
from tools.pages import bullets, generated, uses
from tools.pages.facts import Fact, asked_of, measured_on, shape_of, weights_and_work, whole

SOURCES = {
    "devices": "calc/data/accelerators.toml",
    "machines": "calc/data/machines.toml",
    "models": "calc/data/models.toml",
}
FILTER = """A click on a head sorts, and the field above the table leaves the rows that hold its
words; with commas between names, those of any. Ticked rows can stand alone, to be compared. Each
name leads to all that is known of it, with the source."""
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


UNSEARCHED = "---\nsearch: false\n---\n\n"  # the answers of the search hold the same


@cache
def things() -> dict[str, Sequence[Thing]]:
    """Return the things of each kind: newest transformers first, and then other networks."""
    every = [models.get(key) for key in reversed(models.names())]
    return {
        "devices": [*map(hardware.get, (*hardware.names(), *hardware.announced()))],
        "machines": [*map(machines.get, machines.names())],
        "models": sorted(every, key=lambda model: (isinstance(model, Network), -_year(model))),
    }


def also(thing: Thing) -> tuple[str, ...]:
    """Return the other names of a model."""
    return models.also(thing.key) if kind_of(thing) == "models" else ()


def _name(thing: Thing) -> str:
    return thing.name.translate(WITHOUT_BRACKETS)


def _link(thing: Thing, kind: str) -> str:
    """A link to a thing's page from one of that kind."""
    folder = "" if kind_of(thing) == kind else f"../{kind_of(thing)}/"
    return f"[{_name(thing)}]({folder}{thing.key}.qmd)"


# --- the page of one ---


def _page(thing: Thing) -> Iterator[str]:
    yield f"`{thing.key}`{_told(thing)}"
    more = weights_and_work(thing) if isinstance(thing, Transformer) else ()
    every = [*asked_of(thing), *more]
    published = [fact for fact in every if fact.value]
    rates = [fact for fact in published if fact.column]
    if rates:
        yield _heading(thing, "Rates")
        yield _rates(rates)
    yield _heading(thing, "Numbers")
    yield _table(
        ["", "Value", ORIGIN], [_row_of(fact) for fact in published if not fact.column], FACT_RULE
    )
    if shape := shape_of(thing) if isinstance(thing, Transformer | Network) else {}:
        rows = [[_capital(numbers), _origin(about)] for about, numbers in shape.items()]
        yield _table(["Shape", ORIGIN], rows, SHAPE_RULE)
    if missing := [fact.title for fact in every if not fact.value]:
        yield f"Not published: {'; '.join(missing)}."
    yield _heading(thing, "Beside its neighbours")
    yield from _beside(thing)
    yield _heading(thing, "Where it is used")
    yield bullets(_around(thing))
    if rates:
        yield _heading(thing, "Where its rates come from")
        yield _origins_of(rates)


def _heading(thing: Thing, title: str) -> str:
    return f"## {title} {{#{anchor(f'{thing.key}.{title.lower()}')} .unnumbered}}"


ORIGIN = "Kind, day of the check, source"
FACT_RULE = [f":{'-' * 24}", f"{'-' * 12}:", f":{'-' * 48}"]
SHAPE_RULE = [f":{'-' * 36}", FACT_RULE[-1]]


def _row_of(fact: Fact) -> list[str]:
    return [f"[{_capital(fact.title)}]{{#{fact.row}}}", fact.value, _origin(fact.about)]


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _rates(rates: list[Fact]) -> str:
    """The rates of a device by format."""
    columns = list(dict.fromkeys(fact.column for fact in rates))
    cells = {(fact.format, fact.column): f"[{fact.value}]{{#{fact.row}}}" for fact in rates}
    rows = [
        [dtype.upper(), *(cells.get((dtype, column), "") for column in columns)]
        for dtype in hardware.DTYPES
        if any(fact.format == dtype for fact in rates)
    ]
    return _table(
        ["Format", *map(_capital, columns)], rows, [":-------", *["---------:"] * len(columns)]
    )


def _origins_of(rates: list[Fact]) -> str:
    """Return a table of the origins of rates, those alike together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for fact in rates:
        if fact.about:
            alike.setdefault((fact.column, _origin(fact.about)), []).append(fact.format.upper())
    rows = [[f"{', '.join(of)}: {column}", origin] for (column, origin), of in alike.items()]
    return _table(["Rates", ORIGIN], rows, SHAPE_RULE)


def _table(header: list[str], rows: Iterable[list[str]], rule: list[str]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def _origin(about: Provenance | None) -> str:
    """The last cell of a fact: its kind, the day on which it was checked, its source and note."""
    if about is None:
        return "computed"
    note = f". {_cell(about.note)}" if about.note else ""
    return f"{about.kind}, {about.checked} [@{about.source}]{note}"


def _cell(note: str) -> str:
    """A note as a cell of a table prints it, no number on two lines."""
    note = re.sub(r"(?<=\d) (?=\d{3}\b)", "\N{NARROW NO-BREAK SPACE}", note)
    return note.replace("|", "\\|").replace("$", "\\$").replace("<", "\\<").rstrip(".")


def _told(thing: Thing) -> str:
    """Return a description of a thing, in a sentence or two after its key."""
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
    """Yield lines on related things: machines, measurements, runs and chapters."""
    kind = kind_of(thing)
    if isinstance(thing, Accelerator):
        every = map(machines.get, machines.names())
        if holding := [machine for machine in every if machine.device.key == thing.key]:
            yield f"Machines: {', '.join(_link(machine, kind) for machine in holding)}"
    if isinstance(thing, Machine) and (others := _measured_elsewhere(thing)):
        rates = ", ".join(_link(machines.get(key), kind) for key in others)
        yield f"Rates that kernels reach: those measured on {rates}"
    if measured := _measured().get(f"{kind}/{thing.key}"):
        counts = ", ".join(f"{count} of {group}" for group, count in measured.items())
        page = "../../chapters/predicted-and-measured.qmd"
        yield f"Published measurements: {counts}, beside what is [predicted]({page}) of all"
    if trained := _runs(thing):
        page = "../../backmatter/sources-models.qmd"
        links = (f"[{runs.get(key).name}]({page}#{key})" for key in trained)
        yield f"Training runs: {', '.join(links)}"
    if chapters := uses.links(thing):
        yield f"In this book: {', '.join(chapters)}"
    yield f"With all notes: `calc show {thing.key}`"


def _beside(thing: Thing) -> Iterator[str]:
    """Yield a table of the thing and those most like it, in the columns that tell most."""
    kind = kind_of(thing)
    every = f"[All {kind}](index.qmd#all-{kind}) stand in one table, to be sorted and compared."
    neighbours = _neighbours(thing)
    if not neighbours:
        yield every
        return
    table = [_header(kind), [f"**{_name(thing)}**", *_row(thing)]]
    table += [[_link(other, kind), *_row(other)] for other in neighbours]
    shown = [
        column
        for column, (head, *cells) in enumerate(zip(*table, strict=True))
        if column == 0 or (head in BESIDE and {*cells} != {NONE})
    ]
    header, *rows = ([cells[column] for column in shown] for cells in table)
    yield every
    yield _table(header, rows, [f":{'-' * 24}", *["---------:"] * (len(shown) - 1)])


BESIDE = (
    *("16 bits (T/s)", "Memory (GiB)", "Bandwidth (TB/s)", "Links each way (GB/s)", "Power (W)"),
    *("Devices", "Fabric (GB/s)", "Ports (Gbit/s)", "Power (kW)"),
    *("Parameters (billion)", "Met by a token", "Cache of a token (kB)", "Longest context"),
)


MOST_BESIDE = 4
FAR = 2.0  # numbers of which one is seven times the other say little beside one another
FAME = 0.3  # so that of those about as near the one comes first that the book speaks of
YEARS = 4  # as far apart as numbers of which one is e times the other


def _neighbours(thing: Thing) -> list[Thing]:
    """The next before it and after it of its own family, and the next of others."""
    others = [other for other in things()[kind_of(thing)] if _compares(thing, other)]
    ranked = sorted(others, key=lambda other: _distance(thing, other))
    family = [other for other in ranked if _family(other) == _family(thing)]
    before = [other for other in family if _rank(other) < _rank(thing)]
    after = [other for other in family if _rank(other) > _rank(thing)]
    first: dict[str, Thing] = {}
    for other in ranked:
        if _family(other) != _family(thing):
            first.setdefault(_family(other), other)
    near = [*before[:1], *after[:1]]
    return near + [*first.values()][: MOST_BESIDE - len(near)]


def _compares(one: Thing, other: Thing) -> bool:
    """Return whether two things differ, and not too much, in the table of all."""
    if isinstance(one, Network) != isinstance(other, Network) or one.key == other.key:
        return False
    return 0 < _ratio(one, other) < FAR


def _family(thing: Thing) -> str:
    """A device's maker and line, a machine's maker, what models of one line are called."""
    if isinstance(thing, Accelerator):
        return re.split(r"\S*\d", thing.name)[0]
    return re.split(r"[\d\W]", thing.name)[0].lower()


def _rank(thing: Thing) -> float:
    """Return the number by which things of a family follow one another."""
    if isinstance(thing, Accelerator | Machine):
        return _year(thing)
    return float(thing.parameters.magnitude)


def _distance(one: Thing, other: Thing) -> float:
    """Return the distance of two things in numbers and years, less for one that the book cites."""
    years = abs(_year(one) - _year(other)) / YEARS
    return (_ratio(one, other) + years) / (1 + FAME * math.log1p(uses.count(other)))


def _ratio(one: Thing, other: Thing) -> float:
    """Return the mean ratio of two things' numbers, as a logarithm; far where they share none."""
    pairs = zip(_numbers(one), _numbers(other), strict=True)
    ratios = [abs(math.log(a / b)) for a, b in pairs if a and b]
    return sum(ratios) / len(ratios) if ratios else math.inf


def _year(thing: Thing) -> int:
    year = thing.device.year if isinstance(thing, Machine) else thing.year
    assert year is not None  # of what the data hold
    return year


@cache
def _numbers(thing: Thing) -> list[float]:
    """Return the numbers of a thing in the table of all, without the year; 0 where it has none."""
    if isinstance(thing, Machine):
        cells = [*_row(thing), *_row(thing.device)[1:]]
    else:
        cells = _row(thing)[1:]
    return [float(re.sub(r"[^\d.]", "", cell) or 0) for cell in cells]


def _measured_elsewhere(machine: Machine) -> list[str]:
    """The machines of the same chip whose measured rates it takes over."""
    rates: Iterator[Record] = (rate for of in machine.rates.values() for rate in of.values())
    return sorted({measured_on(record) for record in rates} - {machine.key})


@cache
def _measured() -> dict[str, Counter[str]]:
    """Return the counts of published rows of each group, by the kind and key of each thing."""
    counts: dict[str, Counter[str]] = {}
    for row in published.rows():
        for kind, read in (("devices", _device_of), ("models", conditions.model)):
            try:
                key = read(row).key
            except InputError:
                continue
            counts.setdefault(f"{kind}/{key}", Counter())[published.GROUPS[row.group]] += 1
    return counts


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
    header = _header(kind)
    rows = [[_link(thing, kind), *_row(thing)] for thing in of_kind]
    yield "::: {.sortable}"
    yield _table(header, rows, [f":{'-' * 30}", *["---------:"] * (len(header) - 1)])
    yield f": Every {kind.removesuffix('s')} of the data. {{#tbl-{kind}}}"
    yield ":::"


def _header(kind: str) -> list[str]:
    if kind == "devices":
        rates = [f"{name} (T/s)" for name in RATES]
        heads = [head for head, _ in COLUMNS.values()]
        return ["Device", "Year", *rates, *heads, "Ridge point, 16 bits (FLOP/byte)"]
    if kind == "machines":
        return ["Machine", "Devices", *(head for head, _ in OF_MACHINES.values())]
    return ["Model", "Year", *OF_MODELS]


def _row(thing: Thing) -> list[str]:
    match thing:
        case Accelerator():
            rates = [_rate(thing, dtypes) for dtypes in RATES.values()]
            values = [_value(thing.records.get(name), unit) for name, (_, unit) in COLUMNS.items()]
            half = next((dtype for dtype in RATES["16 bits"] if dtype in thing.dtypes), None)
            has_ridge = half and thing.publishes("memory_bandwidth")
            ridge = _number(thing.ridge_point(half), "FLOP/byte", 3) if half and has_ridge else NONE
            return [str(thing.year), *rates, *values, ridge]
        case Machine():
            records = ((thing.records.get(name), unit) for name, (_, unit) in OF_MACHINES.items())
            return [str(thing.domain), *(_value(record, unit) for record, unit in records)]
        case Network():
            parameters = _number(thing.parameters, "Gparam")
            return [str(thing.year), parameters, *[NONE] * (len(OF_MODELS) - 1)]
    cached = thing.keeps_cache
    return [
        str(thing.year),
        _number(thing.parameters, "Gparam"),
        _number(thing.active_parameters, "Gparam") if thing.experts else NONE,
        _number(transformer.kv_cache_per_token(thing), "kB/token", 3) if cached else NONE,
        _number(inference.weight_memory(thing), "GB", 3),
        *map(whole, (thing.context, thing.layers, thing.width)),
    ]


def _rate(device: Accelerator, dtypes: tuple[str, ...]) -> str:
    """The fastest of formats of as many bits."""
    rates = [device.peaks["peak"][dtype] for dtype in dtypes if dtype in device.dtypes]
    if not rates:
        return NONE
    fastest = max(rates, key=lambda record: record.quantity.to_base_units().magnitude)
    rate = fastest.quantity.to_base_units().magnitude / 1e12
    return f"{mark(fastest.provenance)}{_rounded(rate)}"


def _value(record: Record | None, unit: str) -> str:
    if record is None or record.published is None:
        return NONE
    return f"{mark(record.provenance)}{_number(record.quantity, unit)}"


def _number(quantity: Quantity, unit: str, digits: int = 4) -> str:
    return _rounded(quantity.m_as(unit), digits)


def _rounded(number: float, digits: int = 4) -> str:
    """Return a number without an exponent, which would not line up in a column."""
    return f"{Decimal(f'{number:.{digits}g}'):f}"
