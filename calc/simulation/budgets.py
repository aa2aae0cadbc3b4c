"""Memory budgets: which of several a model exceeds."""

from __future__ import annotations

from collections.abc import Iterable

from calc.core.arguments import as_list, memory as checked_memory, whole_bytes
from calc.core.arrays import Truths
from calc.core.errors import InputError, abbreviated
from calc.core.units import QuantityLike, quantity


def memory_violations(
    memory: QuantityLike, budgets: Iterable[QuantityLike]
) -> dict[str, bool | Truths]:
    """Return whether a memory exceeds each budget, by a key made of the budget: "over_10_MB".

    A budget of "10 MB" and one of "10.0 MB" have the same key; a memory of just the budget is
    within it. What is no number exceeds every budget. An array of memories gives arrays of flags.

    >>> memory_violations("12 MB", ["10 MB", "16 MiB"])
    {'over_10_MB': True, 'over_16_MiB': False}
    """
    size = quantity(memory).m_as("byte")
    return {
        key: ~(size <= limit) if getattr(size, "ndim", 0) else not size <= limit
        for key, limit in budget_keys(budgets).items()
    }


def budget_keys(budgets: Iterable[QuantityLike]) -> dict[str, int]:
    """The key of each budget and its bytes; a budget that is given twice is refused."""
    keys: dict[str, int] = {}
    first: dict[int, QuantityLike] = {}
    for budget in as_list("budgets", budgets):
        limit = checked_budget(budget)
        if limit in first:
            raise InputError(
                f"each budget may be given once; {abbreviated(budget)} is as large as"
                f" {abbreviated(first[limit])}"
            )
        first[limit] = budget
        keys[key_of(budget)] = limit
    return keys


def key_of(budget: QuantityLike) -> str:
    """ "over_10_MB" of 10 MB, in the unit that it is given in and with every digit it has."""
    amount = quantity(budget)
    return f"over_{amount.magnitude:.15g}_{amount.units}"


def checked_budget(budget: QuantityLike) -> int:
    """A budget in whole bytes."""
    return whole_bytes(checked_memory("a budget", budget))
