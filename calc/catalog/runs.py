"""Published training runs, as their authors report them: `calc.runs.get("palm-540b").mfu`.

Each number carries its source; what a report leaves out is unpublished, and reading it says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from calc.core.errors import InputError
from calc.core.names import resolve, spellings, squeezed
from calc.core.records import (
    DATA,
    INHERITED,
    Count,
    Published,
    Record,
    Recorded,
    check_fields,
    read_records,
    read_toml,
)

FILE = DATA / "training_runs.toml"
FIELDS = {  # and what each is
    "parameters": "parameters",
    "tokens": "tokens",
    "device_peak": "dense peak of one device",
    "devices": "devices",
    "device_time": "hours of all devices",
    "mfu": "MFU",
    "work": "operations",
}
WHERE_REPORTED = {
    "mfu_with_attention": "MFU with attention",
    "hfu": "HFU",
    "throughput": "throughput",
    "effective_time": "share of the time with progress",
    "device_power": "power counted for one device",
    "pue": "PUE",
    "carbon_intensity": "carbon intensity of the electricity",
    "carbon": "emissions of the electricity",
    "interruptions": "unexpected interruptions",
    "observed_time": "time in which they were counted",
    "storage_bandwidth": "bandwidth of its storage",
}
TITLES = FIELDS | WHERE_REPORTED


@dataclass(frozen=True, eq=False)
class Run(Recorded):
    """One run: its model, its machine, and how long it took."""

    key: str
    name: str
    year: int
    device: str
    source: str
    records: dict[str, Record] = field(repr=False)

    parameters = Published()
    """Parameters of the model."""
    tokens = Published()
    """Tokens of its pretraining."""
    device_peak = Published()
    """Dense peak of one device in the format of the run."""

    @property
    def devices(self) -> int:
        """Devices that ran at once, at most."""
        return Count.from_quantity(self._read("devices"))

    device_time = Published()
    """Hours of all devices, summed."""
    mfu = Published()
    """Model FLOP utilisation in steady state, attention not counted where both are given."""
    work = Published()
    """Operations of the whole training, as reported."""
    mfu_with_attention = Published()
    """Model FLOP utilisation in steady state, with the operations of attention."""
    hfu = Published()
    """Hardware FLOP utilisation in steady state: what is computed twice counts twice."""
    throughput = Published()
    """Tokens per second of the whole machine in steady state."""
    effective_time = Published()
    """Share of the time in which the run made progress."""
    device_power = Published()
    """Power of one device, as the account of its emissions counts it."""
    pue = Published()
    """Power usage effectiveness of the data centre, in the account of its emissions."""
    carbon_intensity = Published()
    """Emissions of a unit of electricity, in the account of its emissions."""
    carbon = Published()
    """Emissions of the electricity of the training, by where it was used."""
    interruptions = Published()
    """Times that the run stopped without its authors' intent, while they were counted."""
    observed_time = Published()
    """Time in which the interruptions were counted."""
    storage_bandwidth = Published()
    """Bandwidth at which all devices together can write for long."""

    def _lacks(self, name: str) -> str:
        return f"the report of {self.name} does not give its {name}"


def names() -> tuple[str, ...]:
    """The keys of all runs.

    >>> "llama-3-1-8b" in names()
    True
    """
    return tuple(_runs())


def get(key: str) -> Run:
    """The run of that key or name; case, spaces, "-", "_" and "." do not matter.

    >>> print(get("llama-3-1-405b").device_time)
    3.084e7 h
    """
    return _runs()[resolve("training run", key, _spellings())]


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no run has it.

    >>> key_of("Llama 3.1 405B"), key_of("abacus")
    ('llama-3-1-405b', None)
    """
    return _spellings().get(squeezed(name))


@cache
def _spellings() -> dict[str, str]:
    return spellings({key: (run.name,) for key, run in _runs().items()})


@cache
def _runs() -> dict[str, Run]:
    return {key: _run(key, table) for key, table in read_toml(FILE).items()}


def _run(key: str, table: dict[str, object]) -> Run:
    fields = [name for name in table if name not in ("name", "year", "device", *INHERITED)]
    check_fields(f"{FILE}: {key}", fields, TITLES)
    if missing := [name for name in FIELDS if name not in fields]:
        raise InputError(
            f"{FILE}: {key} has no {missing[0]}: give its value, or"
            f' {{ kind = "unpublished", note = "..." }} that says where it was looked for and when'
        )
    return Run(
        key=key,
        name=str(table["name"]),
        year=int(str(table["year"])),
        device=str(table["device"]),
        source=str(table["source"]),
        records=read_records(key, table, {name: TITLES[name] for name in fields}, FILE),
    )
