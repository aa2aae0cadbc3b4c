"""Published trainings in few bits beside those in more: how much higher the loss was."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from calc.core.citations import citation
from calc.core.errors import InputError
from calc.core.records import (
    DATA,
    INHERITED,
    Published,
    Record,
    Recorded,
    check_fields,
    read_records,
    read_toml,
)

FILE = DATA / "training_formats.toml"
TEXTS = ("name", "format", "scales", "kept", "baseline", "read", "sense", "source")
NUMBERS = {"parameters": "parameters", "tokens": "tokens", "gap": "gap of the loss"}
WAYS_OF_READING = ("in the source", "in a copy of its text", "in an account of it")
SENSES = {"below": "less than", "about": "about"}


@dataclass(frozen=True, eq=False)
class TrainingFormat(Recorded):
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
        """Title of the comparison: the two formats, and how much higher the loss was.

        >>> print(training_formats()[0].title)
        FP8 E4M3 instead of BF16, DeepSeek-V3's recipe (2024): loss less than 0.25% higher
        """
        gap = self.records["gap"].published
        rise = "gap unpublished" if gap is None else f"{SENSES[self.sense]} {gap} higher"
        return f"{self.format} instead of {self.baseline}, {self.name} ({self.year}): loss {rise}"

    parameters = Published()
    """Parameters of the model, all of them."""
    tokens = Published()
    """Tokens of the training that was compared."""
    gap = Published()
    """How much higher the loss was, relative to the baseline's; `sense` may make it a bound."""


@cache
def training_formats() -> tuple[TrainingFormat, ...]:
    """Published comparisons of training in few bits, in the order of their data file.

    >>> [(each.format, str(each.gap)) for each in training_formats() if each.key == "mxfp4-8b"]
    [('MXFP4', '2.5%')]
    """
    return tuple(_read(key, table) for key, table in read_toml(FILE).items())


def _read(key: str, table: dict[str, object]) -> TrainingFormat:
    table_name = f"{FILE}: {key}"
    check_fields(table_name, table, (*TEXTS, *NUMBERS, "year", *INHERITED))
    if missing := [name for name in (*TEXTS, *NUMBERS, "year", *INHERITED) if name not in table]:
        raise InputError(f"{table_name} has no {missing[0]}")
    for name, choices in (("read", WAYS_OF_READING), ("sense", SENSES)):
        if table[name] not in choices:
            raise InputError(f"{table_name}: {name} must be one of {', '.join(choices)}")
    records = read_records(key, table, NUMBERS, FILE)
    texts = {name: str(table[name]) for name in TEXTS}
    return TrainingFormat(key=key, year=int(str(table["year"])), records=records, **texts)
