"""Published models in few bits beside themselves in more: perplexity, or the score of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from calc.core.citations import citation
from calc.core.errors import InputError
from calc.core.records import (
    DATA,
    INHERITED,
    Published,
    Record,
    Recorded,
    check_fields,
    read_record,
    read_toml,
)

FILE = DATA / "quantization_quality.toml"
TEXTS = ("model", "method", "measure", "source", "read")
BITS: Mapping[str, int] = {"weights": 16, "activations": 16, "cache": 16}
SCORES = {"before": "as published", "after": "after quantisation"}


@dataclass(frozen=True, eq=False)
class QuantizedModel(Recorded):
    """A published model after one method of quantisation, and what it was and became."""

    key: str
    model: str
    method: str
    weights: int
    activations: int
    cache: int
    group: int | None
    """Weights that share a scale; an output channel does where this is None."""
    format: str
    """Empty where the weights are plain integers."""
    measure: str
    source: str
    read: str
    records: dict[str, Record] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.title}; read {self.read}: {citation(self.source)}"

    before = Published()
    """The measure of the model as published."""
    after = Published()
    """The measure of the quantised model."""

    @property
    def bits(self) -> str:
        """Bits of weights, activations and cache, as papers write them, and the group."""
        cache = f" KV{self.cache}" if self.cache < BITS["cache"] else ""
        group = f" g{self.group}" if self.group else ""
        return f"W{self.weights}A{self.activations}{cache}{group}"

    @property
    def title(self) -> str:
        """Title of the comparison: what was quantised and how, and what that cost.

        >>> print(quantized_models()[0].title)
        LLaMA 7B, round to nearest, W4A16: perplexity 6.29 instead of 5.68
        """
        done = f"{self.model}, {self.method}, {self.bits}"
        return f"{done}: {self.measure} {self.after} instead of {self.before}"


@cache
def quantized_models() -> tuple[QuantizedModel, ...]:
    """Published models before and after quantisation, in the order of their data file.

    >>> [print(each.title) for each in quantized_models() if each.method == "QuaRot"]
    Llama 2 7B, QuaRot, W4A4 KV4: perplexity 6.4 instead of 5.5
    [None]
    """
    return tuple(_read(key, table) for key, table in read_toml(FILE).items())


def _read(key: str, table: Mapping[str, Any]) -> QuantizedModel:
    table_name = f"{FILE}: {key}"
    needed = (*TEXTS, "weights", *SCORES, "kind", "checked")
    check_fields(table_name, table, (*needed, *BITS, "group", "format"))
    if missing := [name for name in needed if name not in table]:
        raise InputError(f"{table_name} has no {missing[0]}")
    inherited = {name: table[name] for name in INHERITED}
    records = {
        name: read_record(
            {"value": table[name], "unit": "1"},
            f"{key}.{name}",
            FILE,
            inherited | {"title": f"{table['measure']} of {table['model']} {moment}"},
        )
        for name, moment in SCORES.items()
    }
    optional = {**BITS, "group": None, "format": ""}
    values = {name: table.get(name, default) for name, default in optional.items()}
    texts = {name: table[name] for name in TEXTS}
    return QuantizedModel(key=key, records=records, **values, **texts)
