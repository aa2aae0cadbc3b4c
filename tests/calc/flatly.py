"""Planners asked by flat options, as a shell and a file ask them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from calc.core.nouns import arguments_of

Made = TypeVar("Made")


def flatly(called: Callable[..., Made], *about: Any, **options: Any) -> Made:
    """Return a planner's answer for a model on a machine, its nouns made of these options."""
    named = zip(inspect.signature(called).parameters, about)  # noqa: B905
    return called(**arguments_of(called, dict(named) | options))
