"""Speculative decoding: what drafts yield, in a chain or a tree, and what checking them costs."""

from __future__ import annotations

from typing import Annotated

from calc.core.elementwise import at_least_once, sum_of_powers
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike


@law
def speculative_tokens(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Tokens that one pass of the large model yields when a small one drafts, on average.

    Equation: n = (1 − α^(γ + 1)) / (1 − α) where α < 1, else γ + 1

    Assumes that each of γ drafted tokens is accepted with probability α, on its own; the large
    model adds one of its own after the last.

    Source: leviathan2023fast

    See also: speculation.tree_tokens

    >>> print(speculative_tokens(0.8, 5))
    3.689

    Parameters
    ----------
    acceptance
        probability that a drafted token is accepted
    drafted
        tokens that are drafted, and checked, for each sequence
    """
    return sum_of_powers(acceptance, drafted)


@law
def speculative_speedup(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
    draft_cost: Annotated[QuantityLike, "", "c", NON_NEGATIVE] = 0,
) -> Annotated[Quantity, ""]:
    """Speedup of decode by drafts of a small model; below 1, a slowdown.

    Equation: S = n / (γ · c + 1)

    n are the speculative_tokens, and c is the time of a draft model's pass over one of the large
    model. Assumes that checking γ + 1 tokens takes as long as one, which holds while decode is far
    below the compute roof; for a batch `speculation.drafting_gain` takes the time of checking.

    Source: leviathan2023fast

    >>> print(speculative_speedup(0.8, 5, 0.05))
    2.951

    Parameters
    ----------
    acceptance
        probability that a drafted token is accepted
    drafted
        tokens that are drafted, and checked, for each sequence
    draft_cost
        time of a draft model's pass over one of the large model
    """
    return sum_of_powers(acceptance, drafted) / (drafted * draft_cost + 1)


@law
def speculative_operations(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
    draft_operations: Annotated[QuantityLike, "", "c", NON_NEGATIVE] = 0,
) -> Annotated[Quantity, ""]:
    """Operations with a draft, for each one without: what the speed is paid with.

    Equation: F = (γ · c + γ + 1) / n

    n are the speculative_tokens, and c is the operations of a draft model's token over those of the
    large model.

    Source: leviathan2023fast

    >>> print(speculative_operations(0.8, 5))
    1.626

    Parameters
    ----------
    acceptance
        probability that a drafted token is accepted
    drafted
        tokens that are drafted, and checked, for each sequence
    draft_operations
        operations of a draft model's token over those of the large model
    """
    return (drafted * draft_operations + drafted + 1) / sum_of_powers(acceptance, drafted)


@law
def tree_tokens(
    acceptance: Annotated[QuantityLike, "", "α", FRACTION],
    branches: Annotated[QuantityLike, "", "b", AT_LEAST_ONE],
    depth: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Tokens that a pass yields with a draft that branches: one of b is accepted at each depth.

    Equation: n = (1 − a^(γ + 1)) / (1 − a) where a < 1, else γ + 1, a = 1 − (1 − α)^b

    A chain of depth γ has b = 1. Assumes that each branch is accepted on its own with probability
    α, as the second-best token of a draft is not: an upper bound for trees.

    Source: li2024eagle

    >>> print(tree_tokens(0.7, 1, 4), tree_tokens(0.7, 2, 4))
    2.773 4.177

    Parameters
    ----------
    acceptance
        probability that a drafted token is accepted
    branches
        drafted tokens that follow each one
    depth
        drafted tokens that follow one another
    """
    return sum_of_powers(at_least_once(acceptance, branches), depth)


@law
def last_batch_for_drafts(
    critical_batch: Annotated[QuantityLike, "", "B*"],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Sequences from which checking drafts is bound by arithmetic, and no longer free.

    Equation: B = B* / (γ + 1)

    B* is the batch from which plain decoding is, short caches assumed; γ counts all tokens that are
    checked, of a tree its size.

    Source: leviathan2023fast

    >>> print(last_batch_for_drafts(295, 1), last_batch_for_drafts(295, 4))
    147.5 59

    Parameters
    ----------
    critical_batch
        batch from which plain decoding is bound by arithmetic
    drafted
        tokens that are drafted, and checked, for each sequence
    """
    return critical_batch / (drafted + 1)


@law
def drafting_gain(
    tokens: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    step_time: Annotated[QuantityLike, "s", "T"],
    check_time: Annotated[QuantityLike, "s", "T_check"],
    drafted: Annotated[QuantityLike, "", "γ", NON_NEGATIVE] = 0,
    draft_time: Annotated[QuantityLike, "s", "T_draft", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, ""]:
    """Speedup of a batch's decode by drafts; below 1, a slowdown.

    Equation: S = n · T / (T_check + γ · T_draft)

    Each sequence has n tokens of a pass on average, accepted in it alone; weights are read once for
    all tokens that are checked. T is a step of the batch without drafts, and γ passes of the draft
    follow one another, be it a small model or a module of the model's own, for multi-token
    prediction (MTP). Assumes that the host has no work between passes.

    Source: leviathan2023fast

    >>> print(drafting_gain(2.79, "6.98 ms", "8.52 ms", 3, "0.301 ms"))
    2.067

    Parameters
    ----------
    tokens
        tokens that a pass yields for each sequence, on average
    step_time
        time of a step of the batch without drafts
    check_time
        time of the pass that checks what was drafted for all sequences
    drafted
        tokens that are drafted, and checked, for each sequence
    draft_time
        time of a pass of the draft for all sequences
    """
    return tokens * step_time / (check_time + drafted * draft_time)
