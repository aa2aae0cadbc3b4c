"""Facts of a device, a machine or a model, one by one: for its page and the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from calc import hardware, inference, machines, transformer
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Network, Transformer
from calc.core.provenance import Provenance
from calc.core.records import Record
from calc.core.units import Quantity
from calc.derivations.places import Thing, anchor
from calc.derivations.quoting import show
from calc.derivations.sources import mark, model_records

FIELDS = {  # of a device, by words with which they are asked for
    "memory_bandwidth": "HBM DRAM",
    "memory_capacity": "size capacity HBM DRAM",
    "on_chip_memory": "cache L2 SRAM size",
    "link_bandwidth": "interconnect",
    "host_link": "PCIe",
    "tdp": "TDP power watts",
    "clock": "frequency",
    "units": "SM SMs CU cores number",
    "registers": "registers register file SM",
    "shared_memory": "shared memory SM LDS",
    "tensor_memory": "tensor memory TMEM SM",
    "special_functions": "SFU exp",
}
LINKS = {"NVIDIA": "NVLink", "AMD": "Infinity Fabric xGMI", "Google": "ICI", "AWS": "NeuronLink"}
PEAKS = {  # the heads of their columns, and words
    "peak": ("dense", "tensor dense"),
    "half_sum_peak": ("dense, sums in FP16", "tensor dense sums in FP16 accumulate"),
    "sparse_peak": ("2:4 sparse", "tensor sparse"),
    "vector_peak": ("vector units", "vector CUDA cores"),
}
ASKED = {  # of a transformer, and what else each is called
    "context": ("longest context", "tokens length"),
    "layers": ("layers", ""),
    "width": ("width", "hidden size d_model"),
}
SIZES = {"one byte a number": "1 byte", "half a byte a number": "0.5 byte"}
TITLES = {"total": "parameters, as published", "checkpoint": "files of the release"}


@dataclass(frozen=True)
class Fact:
    """One of the things that are known of something; without a value where none is published."""

    title: str
    value: str
    words: str = ""  # by which it is asked for, too
    about: Provenance | None = None  # None of what is computed
    digest: str = "computed"  # how the search says where it comes from
    row: str = ""  # the id of its row
    format: str = ""  # of a rate, and in which column of the table of rates it stands
    column: str = ""

    @classmethod
    def of(cls, title: str, record: Record, words: str = "", detail: str = "") -> Fact:
        """Return the fact that a record of the data states."""
        about = record.provenance
        text = value(record) if record.published is not None else ""
        digest = f"{about.kind}, checked {about.checked}" + (f". {detail}" if detail else "")
        return cls(title, text, words, about, digest, anchor(about.key))

    @classmethod
    def computed(
        cls, title: str, result: Quantity | float, words: str = "", digits: int = 3, row: str = ""
    ) -> Fact:
        """Return a fact computed from the data, to three digits; a whole number keeps its own."""
        value = whole(result) if isinstance(result, int) else str(show(result, digits=digits))
        return cls(title, value, words, row=row)


def value(record: Record) -> str:
    """A record's value as tables print it."""
    quantity = record.quantity
    counts = not str(quantity.units) and quantity.magnitude == int(quantity.magnitude)  # not of 41%
    text = whole(int(quantity.magnitude)) if counts else show(quantity)
    return f"{mark(record.provenance)}{text}"


def whole(count: int) -> str:
    """A count with all its digits."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}" if count > 9999 else "")


def asked_of(thing: Thing) -> Iterator[Fact]:
    """Yield the facts of a device, machine or model that the search answers; its page opens so."""
    if isinstance(thing, Accelerator):
        return of_device(thing)
    return of_machine(thing) if isinstance(thing, Machine) else of_model(thing)


def of_device(device: Accelerator) -> Iterator[Fact]:
    """Memory, links and power, then rates by format, then the ridge point of each."""
    for name, record in device.records.items():
        words = FIELDS[name]
        if name == "link_bandwidth":
            words += " " + LINKS.get(device.name.split()[0], "")
        # Which cache it is, and what there is besides.
        detail = record.provenance.note if name == "on_chip_memory" else ""
        yield Fact.of(hardware.FIELDS[name], record, words, detail)
    for name, title in hardware.PEAKS.items():
        for dtype, record in device.peaks[name].items():
            column, words = PEAKS[name]
            fact = Fact.of(f"{dtype.upper()}, {title}", record, f"{words} peak")
            yield replace(fact, format=dtype, column=column)
    rates = device.peaks["peak"]
    for dtype in sorted(rates, key=lambda dtype: dtype not in ("bf16", "fp16")):
        if rates[dtype].published is not None and device.publishes("memory_bandwidth"):
            title, row = f"ridge point, {dtype.upper()}", anchor(f"{device.key}.ridge.{dtype}")
            ridge = device.ridge_point(dtype)
            fact = Fact.computed(title, ridge, "roofline arithmetic intensity", row=row)
            yield replace(fact, format=dtype, column="ridge point, computed")


def of_machine(machine: Machine) -> Iterator[Fact]:
    """Yield the facts of how a machine's devices are joined, and rates measured on it itself."""
    row = anchor(f"{machine.key}.domain")
    yield Fact.computed("devices in its domain", machine.domain, "NVLink size", row=row)
    for name, record in machine.records.items():
        yield Fact.of(machines.FIELDS[name], record)
    for kind, rates in machine.rates.items():
        for name, record in rates.items():
            if measured_on(record) == machine.key:
                title = f"{machines.REACHED[kind][0]} {name.upper() if kind == 'gemm' else name}"
                yield Fact.of(f"reached {title}", record, "measured")


def measured_on(record: Record) -> str:
    """The key of the machine on which a rate was measured: others of its chip take it over."""
    return record.provenance.key.partition(".")[0]


def of_model(model: Transformer | Network) -> Iterator[Fact]:
    """Yield the facts asked of a model: its sizes, its KV cache, and what a token costs."""
    row = partial(_row_of, model.key)
    yield Fact.computed("parameters", model.parameters, "params size", 4, row("parameters"))
    if isinstance(model, Network):
        return
    if model.experts:
        active = model.active_parameters
        title = "parameters that a token meets"
        yield Fact.computed(title, active, "active", 4, row("active"))
    if model.keeps_cache:
        per_token = transformer.kv_cache_per_token(model)
        title = "KV cache of a token, two bytes a number"
        yield Fact.computed(title, per_token, "bytes kvcache", row=row("kv"))
    weights = inference.weight_memory(model)
    title = "weights, two bytes a number"
    yield Fact.computed(title, weights, "memory size GB", row=row("weights"))
    records = model_records(model.key)
    for name, (title, words) in ASKED.items():
        yield Fact.of(title, records[name], words)


def weights_and_work(model: Transformer) -> Iterator[Fact]:
    """Yield the facts that follow from a model's shape, and are asked for less often."""
    row = partial(_row_of, model.key)
    for name, size in SIZES.items():
        weights = inference.weight_memory(model, size)
        yield Fact.computed(f"weights, {name}", weights, row=row(f"weights.{name}"))
    if model.released:
        title = f"weights, as released, in {model.released}"
        weights = inference.weight_memory(model, "released")
        yield Fact.computed(title, weights, row=row("released"))
    if model.keeps_cache:
        kept = transformer.kv_cache(model, model.context)
        yield Fact.computed("KV cache of its longest context", kept, row=row("kept"))
    work = transformer.forward_flops(model)
    title = "work of a token's forward pass, without attention"
    yield Fact.computed(title, work, row=row("work"))


def shape_of(model: Transformer | Network) -> dict[Provenance, str]:
    """The numbers of its shape by where they come from, those with one origin together."""
    records = model_records(model.key)
    by_origin: dict[tuple[str, ...], list[str]] = {}
    origins: dict[tuple[str, ...], Provenance] = {}
    for name, record in records.items():
        if name in ASKED and isinstance(model, Transformer):
            continue
        about = record.provenance
        origin = (about.kind, about.source, str(about.checked), about.note)
        origins.setdefault(origin, about)
        by_origin.setdefault(origin, []).append(f"{TITLES.get(name, name)} {value(record)}")
    return {origins[origin]: ", ".join(numbers) for origin, numbers in by_origin.items()}


def _row_of(key: str, name: str) -> str:
    return anchor(f"{key}.{name}")
