"""Tokens that a pass keeps of what was drafted, as measured: by model, draft and kind of text.

`data/acceptance.csv` has curves over the number of drafted tokens, of models that draft with a head
of their own (mtp), with EAGLE-3 or with DSpark. Of a model without a curve those of its family
count, and else all curves of that draft.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import mean

from calc.core.arguments import one_of
from calc.core.elementwise import sum_of_powers
from calc.core.errors import InputError, marked
from calc.core.records import DATA, read_rows

FILE = DATA / "acceptance.csv"
COLUMNS = ("model", "draft", "text", "mode", "drafted", "tokens", "source")
BUILT_IN = "mtp"  # a head that is trained with its model
TEXTS = ("any", "code", "prose")
MOST = 8  # drafted tokens, of which curves are measured


@dataclass(frozen=True)
class Curve:
    """The tokens of a pass by how many were drafted, and whose they are."""

    tokens: tuple[tuple[int, float], ...]
    whose: str
    sources: tuple[str, ...]

    def of(self, drafted: int) -> float:
        """Return the tokens that a pass keeps of so many drafted ones, and its own."""
        known = dict(self.tokens)
        if drafted in known:
            return known[drafted]
        near = max(known)
        rate = acceptance_of(known[near], near)
        return float(sum_of_powers(rate, drafted))


def acceptance_of(tokens: float, drafted: int) -> float:
    """Return the probability, alike for each, with which a pass would keep so many tokens.

    >>> round(acceptance_of(2.71, 2), 3)
    0.9
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        enough = sum_of_powers(middle, drafted) >= tokens
        low, high = (low, middle) if enough else (middle, high)
    return low


@cache
def _rows() -> tuple[dict[str, str], ...]:
    return tuple(read_rows(FILE, COLUMNS))


def drafts() -> tuple[str, ...]:
    """Return the ways to draft of which curves are measured.

    >>> drafts()
    ('dspark', 'mtp', 'eagle3')
    """
    return tuple(dict.fromkeys(row["draft"] for row in _rows()))


def curve(model: str, draft: str, text: str = "any") -> Curve:
    """Return the curve of a model's key: its own, those of its family, or all of that draft.

    A head of MTP is trained with its model: of a family without one that was measured, none counts.

    >>> found = curve("qwen-3-5-27b", "mtp", "code")
    >>> found.of(2), found.whose
    (2.604, 'of this model')
    >>> curve("llama-3-1-8b", "eagle3").whose
    'of other models, 6 curves'
    """
    one_of("draft", draft, drafts())
    one_of("text", text, TEXTS)
    of_draft = [row for row in _rows() if row["draft"] == draft]
    family = model.split("-")[0]
    for whose, same in (
        ("of this model", [row for row in of_draft if row["model"] == model]),
        ("of its family", [row for row in of_draft if row["model"].split("-")[0] == family]),
        ("of other models", [] if draft == BUILT_IN else of_draft),
    ):
        for texts in ((text,), ("any",), TEXTS):
            if of_text := [row for row in same if row["text"] in texts]:
                return _mean(of_text, whose)
    heads = {str(row["model"]) for row in of_draft}
    raise InputError(
        f"{marked('draft', draft)} is a head that is trained with its model, and none of"
        f" {model} was measured, nor of its family: measured are {', '.join(sorted(heads))};"
        f" take {marked('draft', 'eagle3')}, or say {marked('acceptance')}"
    )


def _mean(rows: list[dict[str, str]], whose: str) -> Curve:
    curves = {(row["model"], row["mode"], row["text"]) for row in rows}
    by_count: dict[int, list[float]] = {}
    for row in rows:
        by_count.setdefault(int(row["drafted"]), []).append(float(row["tokens"]))
    told = whose if len(curves) == 1 else f"{whose}, {len(curves)} curves"
    tokens = tuple(sorted((count, mean(values)) for count, values in by_count.items()))
    return Curve(tokens, told, tuple(dict.fromkeys(row["source"] for row in rows)))
