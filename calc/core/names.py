"""Names as people write them: one key for all spellings, and for a wrong one the names near it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calc.core.errors import InputError, abbreviated, did_you_mean

SEPARATORS = str.maketrans("-_.", "   ")


def spellings(names: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return every spelling, squeezed, of keys and of the other names of each, with its key."""
    return {squeezed(name): key for key, others in names.items() for name in (key, *others)}


def squeezed(name: object) -> str:
    """A name without what people write in different ways: case, spaces, "-", "_" and ".".

    >>> squeezed("Llama_3.1 8B")
    'llama318b'
    """
    return "".join(str(name).lower().translate(SEPARATORS).split())


def resolve(
    what: str,
    name: object,
    keys_by_spelling: Mapping[str, str],
    listing: str = "",
    also: Iterable[str] = (),
) -> str:
    """The key that a spelling stands for; one of none is refused with those that are near, of the
    keys and what else is offered.

    >>> resolve("device", "H-100", spellings({"h100": ["NVIDIA H100"], "t4": []}))
    'h100'
    """
    key = keys_by_spelling.get(squeezed(name)) if isinstance(name, str) else None
    if key is None:
        keys = list(dict.fromkeys(keys_by_spelling.values()))
        near = did_you_mean(name.lower(), (*keys, *also)) if isinstance(name, str) else ""
        listing = listing or f"there are {', '.join(keys)}"
        raise InputError(f"there is no {what} {abbreviated(name)}; {near}{listing}")
    return key
