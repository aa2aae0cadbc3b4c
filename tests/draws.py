"""What a change is tested with, and what the nightly tier tries beside it.

`make test-nightly` draws all, as its profile of hypothesis does; what every change runs draws the
first 15 in a hundred of the same seed, and of alike cases the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def draws(number: int) -> int:
    """How many of so many inputs this run draws, by the profile that it is asked for."""
    return max(1, number * settings().max_examples // 100)


def of_a_kind(cases: Iterable[Any]) -> list[Any]:
    """Cases of which every change tries the first, and the nightly tier all."""
    first, *others = cases
    return [first, *(pytest.param(each, marks=pytest.mark.nightly) for each in others)]
