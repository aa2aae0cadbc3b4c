"""Tables of the page "Where the numbers come from": every value of the data, and its source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import chain

from calc import constants, formats, hardware, models, runs
from calc.catalog.hardware import Accelerator
from calc.catalog.runs import Run
from calc.core.provenance import Provenance
from calc.core.records import DATA, KINDS, Record
from calc.core.units import Quantity
from calc.derivations.by_hand import row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.ledger import Claims
from calc.derivations.places import anchor
from calc.derivations.quoting import Row, Rows, show
from calc.formats import QuantizedModel, TrainingFormat
from calc.formats.recipes import SENSES

HEADING_OR_NAME = re.compile(r"^# -{4} (.+?) -+$|^\[(\w+)\]$", re.MULTILINE)
CONSTANTS_FILE = DATA / "constants.toml"
CONSTANTS = constants.load(CONSTANTS_FILE)
CONSTANT = re.compile(rf"\b(?:{'|'.join(CONSTANTS)})\b")
MEANINGS = {
    "definition": "Exact, by a standard or by counting.",
    "datasheet": "Stated by the maker, measured or not.",
    "announced": "Stated by the maker of what cannot be had yet.",
    "measured": "Found by somebody who says how.",
    "estimate": "Scaled from its source, as told last. Tables mark it with ≈.",
    "unpublished": "Looked for, and not found.",
}
Groups = dict[str, list[Record]]


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _constant_groups() -> Groups:
    """The constants under the headings of their file, which are comments there."""
    groups: Groups = {}
    for heading, name in HEADING_OR_NAME.findall(CONSTANTS_FILE.read_text(encoding="utf-8")):
        if heading:
            group = groups[heading] = []
        else:
            group.append(CONSTANTS[name])
    return groups


def _origin(record: Record) -> str:
    """Return its kind and its source; nobody is cited for what nobody published."""
    provenance = record.provenance
    cited = "" if provenance.kind == "unpublished" else f" [@{provenance.source}]"
    return provenance.kind + cited


def _constant_row(record: Record) -> Row:
    provenance = record.provenance
    title = f"[{provenance.title}]{{#{anchor(provenance.key)}}}"
    return title, record.published, _origin(record) + _reading(provenance.note)


def _reading(note: str) -> str:
    """Return how a source was read, where not in the source itself or in no second place."""
    if "in an account" in note or "in accounts" in note:
        return ", in an account"
    return ", in one place only" if "onfirmed in one place only" in note else ""


def _told(title: str, record: Record) -> str:
    if record.published is None:
        return title
    value = f"{mark(record.provenance)}{show(record.quantity, digits=9)}"
    return value if value.endswith(title) else f"{title} {value}"  # the unit may say it already


def mark(about: Provenance) -> str:
    """Return the mark before a value that is an estimate."""
    return "≈\N{NO-BREAK SPACE}" if about.kind == "estimate" else ""


def _run_rows(run: Run) -> list[tuple[str, str]]:
    by_title = {runs.TITLES[name]: record for name, record in run.records.items()}
    return _rows(f"[**{run.name}** ({run.year}), on {run.device}.]{{#{run.key}}} ", by_title)


def _comparison_rows(comparison: TrainingFormat | QuantizedModel) -> list[tuple[str, str]]:
    """One row for all that has one kind and one source."""
    if isinstance(comparison, QuantizedModel):
        lead = f"**{comparison.model}**, {comparison.method}, {comparison.bits}."
        by_title = {
            f"{comparison.measure} {moment}": record
            for moment, record in comparison.records.items()
        }
    else:
        lead = (
            f"**{comparison.name}** ({comparison.year}),"
            f" {comparison.format} instead of {comparison.baseline}."
        )
        published = comparison.records["gap"].published is not None
        rise = "rise of the loss" + (f", {SENSES[comparison.sense]}" if published else "")
        by_title = {
            rise if name == "gap" else name: record for name, record in comparison.records.items()
        }
    return _rows(f"[{lead}]{{#{comparison.key}}} ", by_title)


def _rows(lead: str, records: Mapping[str, Record]) -> list[tuple[str, str]]:
    """One row for all that has one kind and one source."""
    alike: dict[str, list[str]] = {}
    for title, record in records.items():
        alike.setdefault(_origin(record), []).append(_told(title, record))
    return [
        (("" if number else lead) + _capitalized("; ".join(titles)), origin)
        for number, (origin, titles) in enumerate(alike.items())
    ]


def model_records(key: str) -> dict[str, Record]:
    """Every number of a model that was read from its data, by its words."""
    model = models.get(key)
    numbers = {field.name: getattr(model, field.name) for field in fields(model)}
    return {
        name.replace("_", " ").replace("kv", "KV"): Record(number.provenance, Quantity(number))
        for name, number in numbers.items()
        if getattr(number, "provenance", None) is not None and name != "released"
    }


@deferred
def _told_why(kind: str, records: Iterable[Record]) -> tuple[tuple[str, str], ...]:
    """Return the titles of records that have the same reason, in one row."""
    titles: dict[str, list[str]] = {}
    for record in records:
        if record.provenance.kind == kind:
            titles.setdefault(_linked(record.provenance.note), []).append(record.provenance.title)
    return tuple((_capitalized("; ".join(same)), note) for note, same in titles.items())


def _linked(note: str) -> str:
    """A note that names other constants by their titles, as readers see them."""
    return CONSTANT.sub(
        lambda key: f"[{CONSTANTS[key[0]].provenance.title}](#{anchor(key[0])})", note
    )


def _constant_rows(groups: Groups) -> dict[str, list[Row]]:
    return {
        heading: [_constant_row(record) for record in group] for heading, group in groups.items()
    }


@deferred
def _kind_rows(*records: Iterable[Record]) -> Rows:
    counts = [Counter(record.provenance.kind for record in group) for group in records]
    return tuple((kind, MEANINGS[kind], *(count[kind] for count in counts)) for kind in KINDS)


class ConstantSources(Claims):
    """Every constant, under the headings of its data file."""

    header = ("Constant", "Value", "Source")
    groups = _constant_groups()
    records = tuple(chain.from_iterable(groups.values()))
    rows = (
        _constant_rows(groups)
        | row_by_hand("Speed of light in vacuum]{#speed-light-vacuum} | 299 792.458 km/s | …")
        | row_by_hand("FP16 multiply]{#energy-fp16-multiply} | 1.1 pJ | …")
        | row_by_hand("Read of 64 bits from 1 MB of SRAM]{#energy-sram-1mb} | 100 pJ | …")
        | row_by_hand("INT8 add at 7 nm]{#energy-7nm-int8-add} | ≈ 0.007 pJ | …")
        | row_by_hand("GDDR7, one bit]{#energy-gddr7-bit} | 4.5 pJ/bit | …")
        | row_by_hand("Power of an A100 that does nothing]{#power-idle-a100} | 45 W | …")
        | row_by_hand("Memory (HBM2e) of an A100 80 GB]{#latency-memory-a100} | 405 ns | …")
        | row_by_hand("One hop of the interconnect of TPUs]{#latency-ici-hop} | ≈ 1 µs | …")
        | row_by_hand("L1 cache of a CPU core]{#latency-l1-cpu} | ≈ 1 ns | …")
        | row_by_hand("… | 34.2 | …")
        | row_by_hand("PCIe 5.0, one lane, raw, each way]{#bandwidth-pcie5-lane} | 32 Gbit/s | …")
        | row_by_hand("… | 81 559 MiB | …")
        | row_by_hand("DDR5-4400, one channel]{#bandwidth-ddr5-4400-channel} | 35.2 GB/s | …")
        | row_by_hand("… | ≈ 200 ms | …")
        | row_by_hand("FP32 master copy of a weight]{#size-master-weight-fp32} | 4 bytes/param | …")
        | row_by_hand("… | 397.77/s | …")
        | row_by_hand("STM32L4R5, SRAM]{#size-sram-stm32l4r5} | 640 KiB | …")
        | row_by_hand(
            "Training, for each parameter and token]{#work-training} | 6 FLOP/(param·token) | …"
        )
        | row_by_hand("… | 1.54 | …")
        | row_by_hand("… | 0.0806 USD/kWh | …")
        | row_by_hand("Scaled speedup, surface wave]{#speedup-sandia-wave} | 1020 | …")
    )
    estimates = _told_why("estimate", records) | row_by_hand("… | …")


def _devices() -> Iterator[Accelerator]:
    return map(hardware.get, (*hardware.names(), *hardware.announced()))


class DeviceSources(Claims):
    """Every field of every device, which has a page of its own."""

    records = deferred(tuple)(
        chain.from_iterable(device.all_records() for device in deferred(_devices)())
    )
    unpublished = _told_why("unpublished", records)


class RunSources(Claims):
    """Every number of every training run."""

    header = ("Run", "Source")
    runs = tuple(runs.get(key) for key in runs.names())
    records = tuple(chain.from_iterable(run.records.values() for run in runs))
    rows = tuple(chain.from_iterable(_run_rows(run) for run in runs)) | row_by_hand("MFU 21.3% | …")
    unpublished = _told_why("unpublished", records)


class ModelSources(Claims):
    """Every number of every model, which has a page of its own."""

    records = deferred(tuple)(
        chain.from_iterable(model_records(key).values() for key in deferred(models.names)())
    )


class ComparisonSources(Claims):
    """Every number of every published comparison of few bits with more."""

    header = ("Comparison", "Source")
    comparisons: tuple[TrainingFormat | QuantizedModel, ...] = (
        *formats.training_formats(),
        *formats.quantized_models(),
    )
    records = tuple(chain.from_iterable(comparison.records.values() for comparison in comparisons))
    rows = tuple(
        chain.from_iterable(_comparison_rows(comparison) for comparison in comparisons)
    ) | row_by_hand("… | …")
    unpublished = _told_why("unpublished", records)


class KindsOfSource(Claims):
    """Most values are stated by vendors; few are measured."""

    header = ("Kind", "What it means", "Constants", "Devices", "Models", "Runs", "Comparisons")
    rows = _kind_rows(
        ConstantSources.records,
        DeviceSources.records,
        ModelSources.records,
        RunSources.records,
        ComparisonSources.records,
    ) | row_by_hand("definition | Exact, by a standard or by counting. | … | 0 | 0 | 0 | 0")
    unpublished = (
        DeviceSources.unpublished + RunSources.unpublished + ComparisonSources.unpublished
        | row_by_hand("Thermal design power of Google TPU v5p | …")
    )
