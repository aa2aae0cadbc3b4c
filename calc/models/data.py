"""Models by their key, from `data/models.toml`."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, Literal, overload

from calc.core.errors import InputError
from calc.core.names import resolve, spellings, squeezed
from calc.core.records import DATA, check_fields, read_record, read_toml
from calc.models.architecture import Transformer, check_transformer
from calc.models.resnet import ResNet

FILE = DATA / "models.toml"
INHERITED = ("kind", "source", "checked")
UNITS = {"total": "param", "work": "FLOP"}  # of numbers that are no counts
PLAIN = (  # without a source each
    *("name", "year", "attention", "feed_forward", "gated", "gates", "norm", "qk_norm", "biases"),
    *("output", "blocks"),
)


def names() -> tuple[str, ...]:
    """The keys of all models.

    >>> "llama-3-8b" in names()
    True
    """
    return tuple(_tables())


@overload
def get(key: Literal["resnet-50"]) -> ResNet: ...  # type: ignore[overload-overlap]


@overload
def get(key: str) -> Transformer: ...


def get(key: str) -> Transformer | ResNet:
    """The model of that key or name, or of another name that it goes by.

    Case, spaces, "-", "_" and "." do not matter.

    >>> get("Llama_3_8B").name, get("openai/gpt-oss-120b").name
    ('Llama 3 8B', 'gpt-oss-120b')
    """
    return _get(resolve("model", key, _spellings(), "`calc list models` prints them all"))


def transformer(model: Transformer | str) -> Transformer:
    """The transformer itself, or that of a name.

    >>> print(transformer("llama-3-8b").layers)
    32
    """
    found = get(model) if isinstance(model, str) else model
    check_transformer(found)
    return found


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no model has it.

    >>> key_of("Llama 3 8B"), key_of("abacus")
    ('llama-3-8b', None)
    """
    return _spellings().get(squeezed(name))


@cache
def _spellings() -> dict[str, str]:
    return spellings(
        {key: (table["name"], *table.get("also", ())) for key, table in _tables().items()}
    )


@cache
def _tables() -> dict[str, Any]:
    return read_toml(FILE)


@cache
def _get(key: str) -> Transformer | ResNet:
    table = {name: value for name, value in _tables()[key].items() if name != "also"}
    made = ResNet if table.pop("family", "transformer") == "resnet" else Transformer
    inherited = {name: table.pop(name) for name in INHERITED}
    known = {field.name for field in fields(made)} - {"key", "notes"}
    check_fields(f"{FILE}: {key}", table, sorted(known))

    def read(name: str, value: Any) -> Any:
        if name in PLAIN:
            return tuple(value) if isinstance(value, list) else value
        title = {"title": f"{name.replace('_', ' ')} of {table['name']}"}
        fields = value if isinstance(value, dict) else {"value": value}
        unit = {"unit": UNITS.get(name, "1")}
        return read_record(unit | fields, f"{key}.{name}", FILE, inherited | title).quantity

    try:
        return made(key=key, **{name: read(name, value) for name, value in table.items()})
    except (InputError, TypeError) as error:  # a word that is none, or a field that every model has
        raise InputError(f"{FILE}: {key}: {error}") from None
