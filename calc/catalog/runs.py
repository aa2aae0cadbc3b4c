"""Published training runs, as their authors report them: `calc.runs.get("palm-540b").mfu`.

Each number carries its source; what a report leaves out is unpublished, and reading it says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from calc.core.errors import InputError
from calc.core.names import resolve, spellings, squeezed
from calc.core.records import DATA, Count, Record, check_fields, read_record, read_toml
from calc.core.units import Quantity

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
INHERITED = ("kind", "source", "checked")


@dataclass(frozen=True, eq=False)
class Run:
    """One run: its model, its machine, and how long it took."""

    key: str
    name: str
    year: int
    device: str
    source: str
    records: dict[str, Record] = field(repr=False)

    @property
    def parameters(self) -> Quantity:
        """Parameters of the model."""
        return self._read("parameters")

    @property
    def tokens(self) -> Quantity:
        """Tokens of its pretraining."""
        return self._read("tokens")

    @property
    def device_peak(self) -> Quantity:
        """Dense peak of one device in the format of the run."""
        return self._read("device_peak")

    @property
    def devices(self) -> int:
        """Devices that ran at once, at most."""
        return Count.of(self._read("devices"))

    @property
    def device_time(self) -> Quantity:
        """Hours of all devices, summed."""
        return self._read("device_time")

    @property
    def mfu(self) -> Quantity:
        """Model FLOP utilisation in steady state, attention not counted where both are given."""
        return self._read("mfu")

    @property
    def work(self) -> Quantity:
        """Operations of the whole training, as reported."""
        return self._read("work")

    @property
    def mfu_with_attention(self) -> Quantity:
        """Model FLOP utilisation in steady state, with the operations of attention."""
        return self._read("mfu_with_attention")

    @property
    def hfu(self) -> Quantity:
        """Hardware FLOP utilisation in steady state: what is computed twice counts twice."""
        return self._read("hfu")

    @property
    def throughput(self) -> Quantity:
        """Tokens per second of the whole machine in steady state."""
        return self._read("throughput")

    @property
    def effective_time(self) -> Quantity:
        """Share of the time in which the run made progress."""
        return self._read("effective_time")

    @property
    def device_power(self) -> Quantity:
        """Power of one device, as the account of its emissions counts it."""
        return self._read("device_power")

    @property
    def pue(self) -> Quantity:
        """Power usage effectiveness of the data centre, in the account of its emissions."""
        return self._read("pue")

    @property
    def carbon_intensity(self) -> Quantity:
        """Emissions of a unit of electricity, in the account of its emissions."""
        return self._read("carbon_intensity")

    @property
    def carbon(self) -> Quantity:
        """Emissions of the electricity of the training, by where it was used."""
        return self._read("carbon")

    @property
    def interruptions(self) -> Quantity:
        """Times that the run stopped without its authors' intent, while they were counted."""
        return self._read("interruptions")

    @property
    def observed_time(self) -> Quantity:
        """Time in which the interruptions were counted."""
        return self._read("observed_time")

    @property
    def storage_bandwidth(self) -> Quantity:
        """Bandwidth at which all devices together can write for long."""
        return self._read("storage_bandwidth")

    def publishes(self, name: str) -> bool:
        """Whether the report gives a number such as "device_time"."""
        record = self.records.get(name) if isinstance(name, str) else None
        return record is not None and record.published is not None

    def _read(self, name: str) -> Quantity:
        if name not in self.records:
            raise InputError(f"the report of {self.name} does not give its {name}")
        return self.records[name].quantity


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
    inherited = {name: table[name] for name in INHERITED}
    about = {name: table[name] for name in ("name", "year", "device")}
    fields = [name for name in table if name not in inherited | about]
    check_fields(f"{FILE}: {key}", fields, TITLES)
    if missing := [name for name in FIELDS if name not in fields]:
        raise InputError(
            f"{FILE}: {key} has no {missing[0]}: give its value, or"
            f' {{ kind = "unpublished", note = "..." }} that says where it was looked for and when'
        )
    records = {
        name: read_record(
            table[name],
            f"{key}.{name}",
            FILE,
            inherited | {"title": f"{TITLES[name]} of {table['name']}"},
        )
        for name in fields
    }
    return Run(
        key=key,
        name=str(table["name"]),
        year=int(str(table["year"])),
        device=str(table["device"]),
        source=str(table["source"]),
        records=records,
    )
