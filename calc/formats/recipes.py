"""Published trainings in few bits beside those in more: how much higher the loss was."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from calc.core.citations import citation
from calc.core.errors import InputError
from calc.core.records import DATA, Record, check_fields, read_record, read_toml
from calc.core.units import Quantity

FILE = DATA / "training_formats.toml"
TEXTS = ("name", "format", "scales", "kept", "baseline", "read", "sense", "source")
NUMBERS = {"parameters": "parameters", "tokens": "tokens", "gap": "gap of the loss"}
WAYS_OF_READING = ("in the source", "in a copy of its text", "in an account of it")
SENSES = {"below": "less than", "about": "about"}
INHERITED = ("kind", "source", "checked")


@dataclass(frozen=True, eq=False)
class TrainingFormat:
    """A training in few bits, what stayed in more, and what it was compared with."""

    key: str
    name: str
    year: int
    format: str
    scales: str
    kept: str
    baseline: str
    read: str
    sense: str
    source: str
    records: dict[str, Record] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.title}; read {self.read}: {citation(self.source)}"

    @property
    def title(self) -> str:
        """What was compared, and how much higher the loss was.

        >>> print(training_formats()[0].title)
        FP8 E4M3 instead of BF16, DeepSeek-V3's recipe (2024): loss less than 0.25% higher
        """
        gap = self.records["gap"].published
        rise = "gap unpublished" if gap is None else f"{SENSES[self.sense]} {gap} higher"
        return f"{self.format} instead of {self.baseline}, {self.name} ({self.year}): loss {rise}"

    @property
    def parameters(self) -> Quantity:
        """Parameters of the model, all of them."""
        return self.records["parameters"].quantity

    @property
    def tokens(self) -> Quantity:
        """Tokens of the training that was compared."""
        return self.records["tokens"].quantity

    @property
    def gap(self) -> Quantity:
        """How much higher the loss was, relative to the baseline's; `sense` may make it a bound."""
        return self.records["gap"].quantity


@cache
def training_formats() -> tuple[TrainingFormat, ...]:
    """Published comparisons of training in few bits, in the order of their data file.

    >>> [(each.format, str(each.gap)) for each in training_formats() if each.key == "mxfp4-8b"]
    [('MXFP4', '2.5%')]
    """
    return tuple(_read(key, table) for key, table in read_toml(FILE).items())


def _read(key: str, table: dict[str, object]) -> TrainingFormat:
    place = f"{FILE}: {key}"
    check_fields(place, table, (*TEXTS, *NUMBERS, "year", *INHERITED))
    if missing := [name for name in (*TEXTS, *NUMBERS, "year", *INHERITED) if name not in table]:
        raise InputError(f"{place} has no {missing[0]}")
    for name, known in (("read", WAYS_OF_READING), ("sense", SENSES)):
        if table[name] not in known:
            raise InputError(f"{place}: {name} must be one of {', '.join(known)}")
    inherited = {name: table[name] for name in INHERITED}
    records = {
        name: read_record(
            table[name], f"{key}.{name}", FILE, inherited | {"title": f"{title} of {table['name']}"}
        )
        for name, title in NUMBERS.items()
    }
    texts = {name: str(table[name]) for name in TEXTS}
    return TrainingFormat(key=key, year=int(str(table["year"])), records=records, **texts)
