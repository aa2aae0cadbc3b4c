"""Prices of models behind an API, by token, from their data file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from calc.catalog import models
from calc.core.names import resolve, spellings
from calc.core.records import (
    DATA,
    Published,
    Record,
    Recorded,
    check_fields,
    check_positive,
    read_record,
    read_toml,
)
from calc.core.units import Quantity

FILE = DATA / "api_prices.toml"
PRICES = ("read", "cached", "written")


@dataclass(frozen=True, eq=False)
class Api(Recorded):
    """Prices that one provider asks for the tokens of one model."""

    key: str
    provider: str
    model: str
    """The key of the model whose weights can be had; empty of one that is closed."""
    name: str
    records: dict[str, Record]

    read = Published()
    """Price of a token of a prompt."""

    @property
    def cached(self) -> Quantity:
        """Price of a token of a prompt that was found in the provider's cache."""
        return self.records.get("cached", self.records["read"]).quantity

    written = Published()
    """Price of a token of an answer."""


def names() -> tuple[str, ...]:
    """Keys of all that have a price.

    >>> len(names()) > 20, "groq-gpt-oss-120b" in names()
    (True, True)
    """
    return tuple(load())


def get(key: str) -> Api:
    """The prices of a key.

    >>> print(get("anthropic-claude-haiku-4-5").written)
    5 USD/Mtoken
    """
    keys = spellings(dict.fromkeys(load(), ()))
    return load()[resolve("price of an API", key, keys)]


def of_model(key: str) -> tuple[Api, ...]:
    """Return the APIs of all providers of a model.

    >>> [api.provider for api in of_model("llama-3-1-8b")]
    ['Novita AI', 'Together AI']
    """
    return tuple(api for api in load().values() if api.model == key)


@cache
def load(path: Path | str = FILE) -> dict[str, Api]:
    """Every API of a file, checked.

    >>> load()["novita-llama-3-1-8b"].name
    'Llama 3.1 8B'
    """
    tables = read_toml(path)
    origin, made = tables.pop("origin"), {}
    for key, table in tables.items():
        check_fields(f"{path}: {key}", table, ("provider", "model", "name", *PRICES))
        model = table.get("model", "")
        name = table.get("name") or models.get(model).name
        records = {
            field: read_record(
                {"value": table[field], "unit": "USD/Mtoken"},
                f"{key}.{field}",
                path,
                origin | {"title": f"price of a token, {field}, {name} of {table['provider']}"},
            )
            for field in PRICES
            if field in table
        }
        for record in records.values():
            check_positive(f"{path}: {key}", record, "USD/token")
        made[key] = Api(key, table["provider"], model, name, records)
    return made
