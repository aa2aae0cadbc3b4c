"""Parts of devices and machines, as `tests/parts.toml` has them."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.book.rendered import REPOSITORY

TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    (REPOSITORY / "tests" / "parts.toml").read_text(encoding="utf-8")
)
SIGNS = {"*": 1, "/": -1}


def product(value: float | str) -> float:
    """A number, or factors and divisors as "16896 / 128"."""
    words = ["*", *str(value).split()]
    made = 1.0
    for sign, factor in zip(words[::2], words[1::2], strict=True):
        base, _, power = factor.partition("**")
        made *= float(base) ** (SIGNS[sign] * int(power or 1))
    return made
