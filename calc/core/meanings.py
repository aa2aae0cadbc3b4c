"""Meanings of the arguments of laws, in words: `data/arguments.toml`, read when needed."""

from __future__ import annotations

from functools import cache
from typing import Any

from calc.core.records import DATA, read_toml

SHARED = "shared"


@cache
def tables() -> dict[str, Any]:
    """The words, by the law or the module that they hold for."""
    return read_toml(DATA / "arguments.toml")


def meaning(law: str, argument: str) -> str:
    """Return the meaning of an argument in its law, or else in its module, or else in all laws.

    >>> meaning("energy.energy_of_run", "time"), meaning("training.mfu", "time")
    ('how long it draws it', 'time of the whole training')
    """
    places = (law, law.partition(".")[0], SHARED)
    return next(
        (words[argument] for section in places if argument in (words := tables().get(section, {}))),
        "",
    )
