"""The share of inputs and cases that a change is tested with.

`make test-nightly` draws all, as its profile of hypothesis does; what every change runs draws the
first 15 in a hundred of the same seed, the first 5 of those that are searched for seconds, and of
alike cases the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def draws(number: int, searched: bool = False) -> int:
    """Return the part of a number of inputs that this run draws, by its profile of hypothesis."""
    share = settings().max_examples
    return max(1, number * (share // 3 if searched and not by_night() else share) // 100)


def by_night() -> bool:
    """Return whether this run draws all, for which no change waits."""
    return settings().max_examples >= 100


def of_a_kind(cases: Iterable[Any]) -> list[Any]:
    """Mark all cases but the first as nightly."""
    first, *others = cases
    return [first, *(pytest.param(each, marks=pytest.mark.nightly) for each in others)]
