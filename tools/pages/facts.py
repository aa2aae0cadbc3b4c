"""What is known of a device, a machine or a model, fact by fact: for its page and the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calc import hardware, inference, machines, transformer
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Network, Transformer
from calc.core.provenance import Provenance
from calc.core.records import Record
from calc.core.units import Quantity
from calc.derivations.places import anchor
from calc.derivations.quoting import show

FIELDS = {  # of a device, by words with which they are asked for
    "memory_bandwidth": "HBM DRAM",
    "memory_capacity": "size capacity HBM DRAM",
    "on_chip_memory": "cache L2 SRAM size",
    "link_bandwidth": "interconnect",
    "host_link": "PCIe",
    "tdp": "TDP power watts",
    "clock": "frequency",
    "units": "SM SMs CU cores",
    "registers": "registers register file SM",
    "shared_memory": "shared memory SM LDS",
    "tensor_memory": "tensor memory TMEM SM",
    "special_functions": "SFU exp",
}
LINKS = {"NVIDIA": "NVLink", "AMD": "Infinity Fabric xGMI", "Google": "ICI", "AWS": "NeuronLink"}
PEAKS = {
    "peak": "tensor dense",
    "half_sum_peak": "tensor dense sums in FP16 accumulate",
    "sparse_peak": "tensor sparse",
    "vector_peak": "vector CUDA cores",
}


@dataclass(frozen=True)
class Fact:
    """One of the things that are known of something; without a value where none is published."""

    title: str
    value: str
    words: str = ""  # by which it is asked for, too
    about: Provenance | None = None  # None of what is computed
    digest: str = "computed"  # how the search says where it comes from
    row: str = ""  # the id of its row

    @classmethod
    def of(cls, title: str, record: Record, words: str = "", detail: str = "") -> Fact:
        """What a record of the data says."""
        about = record.provenance
        told = value(record) if record.published is not None else ""
        digest = f"{about.kind}, checked {about.checked}" + (f". {detail}" if detail else "")
        return cls(title, told, words, about, digest, anchor(about.key))

    @classmethod
    def computed(
        cls, title: str, result: Quantity | float, words: str = "", digits: int = 3, row: str = ""
    ) -> Fact:
        """What follows from the data, to three digits; a whole number of the data has them all."""
        exact = isinstance(result, int)
        return cls(title, str(show(result, digits=None if exact else digits)), words, row=row)


def value(record: Record) -> str:
    """A record's value as tables print it."""
    mark = "≈\N{NO-BREAK SPACE}" if record.provenance.kind == "estimate" else ""
    return f"{mark}{show(record.quantity)}"


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
            yield Fact.of(f"{dtype.upper()}, {title}", record, f"{PEAKS[name]} peak")
    rates = device.peaks["peak"]
    for dtype in sorted(rates, key=lambda dtype: dtype not in ("bf16", "fp16")):
        if rates[dtype].published is not None and device.publishes("memory_bandwidth"):
            title, row = f"ridge point, {dtype.upper()}", anchor(f"{device.key}.ridge.{dtype}")
            ridge = device.ridge_point(dtype)
            yield Fact.computed(title, ridge, "roofline arithmetic intensity", row=row)


def of_machine(machine: Machine) -> Iterator[Fact]:
    """What joins its devices, and what was measured on it."""
    yield Fact.computed("devices in its domain", machine.domain, "NVLink size")
    for name, record in machine.records.items():
        yield Fact.of(machines.FIELDS[name], record)
    for (kind, name), record in reached(machine).items():
        yield Fact.of(f"reached {reached_title(kind, name)}", record, "measured")


def reached(machine: Machine) -> dict[tuple[str, str], Record]:
    """What was measured, by its kind and its name."""
    return {
        (kind, name): record
        for kind, rates in machine.rates.items()
        for name, record in rates.items()
    }


def reached_title(kind: str, name: str) -> str:
    title = machines.REACHED[kind][0]
    return f"{title} {name.upper() if kind == 'gemm' else name}"


def of_model(model: Transformer | Network) -> Iterator[Fact]:
    """Its sizes, and what it keeps of what it has read."""
    yield Fact.computed("parameters", model.parameters, "params size", 4)
    if isinstance(model, Network):
        return
    if model.experts:
        yield Fact.computed("parameters that a token meets", model.active_parameters, "active", 4)
    if model.caching_layers and model.output in ("own", "tied"):
        per_token = transformer.kv_cache_per_token(model)
        yield Fact.computed("KV cache of a token, two bytes a number", per_token, "bytes kvcache")
    weights = inference.weight_memory(model)
    yield Fact.computed("weights, two bytes a number", weights, "memory size GB")
    yield Fact.computed("longest context", model.context, "tokens length")
    yield Fact.computed("layers", model.layers)
    yield Fact.computed("width", model.width, "hidden size d_model")
