"""Drafts that pay or do not: gains by measured acceptance, and published ones beside them."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import pytest

from calc import InputError, acceptance, plan
from calc.core.citations import bibliography
from calc.core.records import read_rows
from calc.published import drafts as published
from calc.steps.drafting import Drafts, gains
from tests.rows import each_row

ASKED = {"prompt": 500, "generated": 300}


def test_signs_of_published_gains_are_right() -> None:
    every, held = published.pairs(), published.kept_back()
    assert (len(every), len(held)) == (54, 27)
    assert sum(pair.has_its_sign for pair in every) == 47
    of_llama = [pair for pair in held if pair.row["software"] == "llama.cpp"]
    assert sum(pair.has_its_sign for pair in of_llama) == 17
    off = [pair.expected / pair.gain - 1 for pair in held]
    assert median(map(abs, off)) < 0.065
    assert abs(median(off)) < 0.03


def test_the_number_of_tokens_is_chosen_and_none_gains_more() -> None:
    planned = plan(
        "qwen-3-5-27b", "rtx-5090", draft="mtp", software="llama.cpp", weights="q4_k_m", **ASKED
    )
    drafting = planned.drafting
    assert drafting is not None
    assert drafting.best.gain == max(one.gain for one in drafting.gains)
    assert drafting.verdict == "yes"
    assert "drafts by mtp: yes" in str(planned)
    low, high = drafting.around
    assert low < drafting.best.gain < high


@pytest.mark.parametrize("generated", [2, 300, 20_000])
def test_a_plan_drafts_in_the_middle_of_its_answers(generated: int) -> None:
    """Gains are those of the context when half of the answer is written."""
    asked = {"prompt": 500, "generated": generated, "batch": 2, "weights": "q6_k"}
    planned = plan("qwen-3-5-27b", "h100", draft="mtp", software="llama.cpp", **asked)
    by_gains = gains(planned.job, Drafts("mtp"), 2, 500 + generated / 2)
    assert planned.drafting is not None
    assert [each.gain for each in planned.drafting.gains] == [each.gain for each in by_gains.gains]


def test_what_loses_is_said_to_lose() -> None:
    drafting = plan("qwen-3-5-27b", "apple-m3-ultra", draft="mtp", weights="q6_k", **ASKED).drafting
    assert drafting is not None
    assert drafting.verdict == "no"
    assert ": no, " in drafting.told


def test_what_is_not_expected_has_no_verdict() -> None:
    planned = plan("llama-3-8b", "a10g", draft="eagle3", **ASKED)
    assert planned.drafting is None
    assert any("Whether drafts pay" in caveat for caveat in planned.caveats)


def test_text_that_is_accepted_less_gains_less() -> None:
    job = published.pairs()[-20].job
    assert (
        gains(job, Drafts("mtp", acceptance=0.9), 1, 500).best.gain
        > gains(job, Drafts("mtp", acceptance=0.6), 1, 500).best.gain
    )


def test_nothing_accepted_never_pays() -> None:
    job = published.pairs()[0].job
    assert gains(job, Drafts("mtp", acceptance=0.0), 1, 500).verdict == "no"


def test_curves_keep_no_more_than_is_drafted_and_gain_ever_less() -> None:
    """A pass keeps its own token and at most all drafts; each further one adds less,
    to a third of a token."""
    curves: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for one in read_rows(acceptance.FILE, acceptance.COLUMNS):
        name = tuple(one[key] for key in ("model", "draft", "text", "mode", "source"))
        curves.setdefault(name, [(0, 1.0)]).append((int(one["drafted"]), float(one["tokens"])))
    with each_row() as row:
        for name, points in curves.items():
            with row(name):
                whole = range(acceptance.MOST + 1)
                assert [count for count, _ in points] in ([*whole], [0, 2, 3])
                gains = [
                    (there[1] - here[1]) / (there[0] - here[0]) for here, there in pairwise(points)
                ]
                assert gains[0] < 1
                assert min(gains) > -1 / 3
                assert all(later < sooner + 1 / 3 for sooner, later in pairwise(gains))
                assert name[-1] in bibliography()


def test_a_curve_is_of_the_text_that_is_asked_for_else_of_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else of all that was measured, on this model, its family or the others."""
    made = [
        {"model": model, "draft": "eagle3", "text": text, "mode": "", "drafted": "2"}
        | {"tokens": str(tokens), "source": "a table"}
        for model, text, tokens in (
            ("one-8b", "any", 2.0),
            ("one-8b", "code", 2.6),
            ("two-8b", "code", 2.8),
        )
    ]
    monkeypatch.setattr(acceptance, "_rows", lambda: made)
    for model, text, tokens in (
        ("one-8b", "code", 2.6),
        ("one-8b", "any", 2.0),
        ("one-8b", "prose", 2.0),
        ("one-70b", "prose", 2.0),
        ("two-8b", "prose", 2.8),
        ("two-8b", "any", 2.8),
        ("three-8b", "code", 2.7),
        ("three-8b", "any", 2.0),
    ):
        assert acceptance.curve(model, "eagle3", text).of(2) == pytest.approx(tokens)


def test_curves_lie_between_one_token_and_all_that_were_drafted() -> None:
    for draft in acceptance.drafts():
        curve = acceptance.curve("qwen-3-5-27b", draft)
        for drafted in range(1, acceptance.MOST + 1):
            assert 1 <= curve.of(drafted) <= drafted + 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"draft": "medusa"}, "is one of"),
        ({"draft": "llama-3-2-1b"}, "needs acceptance"),
        ({"draft": "mtp", "text": "poems"}, "text"),
        ({"draft": "mtp"}, "trained with its model, and none of llama-3-1-8b was measured"),
        ({"draft": "eagle3", "batch": [1, 64]}, "whether a draft pays is told of one batch"),
        ({"draft": "mtp", "acceptance": 1.5}, "from 0 to 1"),
        ({"text": "code"}, "needs draft"),
        ({"acceptance": 0.7}, "needs draft"),
    ],
)
def test_what_is_no_draft_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        plan("llama-3-1-8b", "h100", **ASKED, **asked)  # type: ignore[arg-type]
