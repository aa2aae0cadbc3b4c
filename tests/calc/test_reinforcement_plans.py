"""Plans of reinforcement learning, and published steps beside them."""

from __future__ import annotations

import math
from statistics import median

import pytest

from calc import InputError, plan_reinforcement
from calc.published import rollout_rows
from tests.calc.command import Command

ASKED = {"answers": 2048, "average": 3203, "limit": 4096, "devices": 32}
LINE = "plan-training qwen-3-30b-a3b dgx-h100 --rl --answers 2048 --average 3203 --limit 4096"


def test_steps_of_a_model_that_is_left_out_are_within_a_quarter_in_the_median() -> None:
    off = [1 / ratio - 1 for ratio in rollout_rows.left_out()]
    assert len(off) == 10
    assert median(map(abs, off)) == pytest.approx(0.202, abs=0.005)
    assert median(off) == pytest.approx(-0.040, abs=0.005)


def test_a_plan_is_its_parts_and_lies_in_its_range() -> None:
    planned = plan_reinforcement("qwen-3-30b-a3b", "dgx-h100", **ASKED, reward="5 s")
    parts = sum(
        getattr(planned.step, name).m_as("s")
        for name in ("generation", "scoring", "training", "update")
    )
    assert math.isclose(planned.total.m_as("s"), parts * rollout_rows.factor() + 5)
    low, high = planned.around
    assert low < planned.total < high
    measured = next(step for step in rollout_rows.steps() if step.id == "qwen3-30b-h100-32")
    assert low < measured.time < high


def test_the_best_engines_are_chosen() -> None:
    best = plan_reinforcement("qwen-3-30b-a3b", "dgx-h100", **ASKED)
    for engine in (2, 4):
        other = plan_reinforcement("qwen-3-30b-a3b", "dgx-h100", **ASKED, engine=engine)
        assert best.total <= other.total


def test_the_command_prints_it_and_its_facts(command: Command) -> None:
    printed = command.prints(f"{LINE} --devices 32 --steps 100 --reward '5 s' --price '2 USD/hour'")
    assert "a step of 2048 answers takes" in printed
    assert "100 steps take" in printed
    facts = command.facts(f"{LINE} --devices 32 --json")
    assert facts["engine"] * facts["engines"] == facts["devices"] == 32


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (LINE, "needs --devices"),
        (f"{LINE} --devices 32 --tokens 1B", "has no --tokens"),
        (f"{LINE.replace('qwen-3-30b-a3b', 'llama-3-405b')} --devices 1", "make no engines"),
        ("plan-training llama-3-8b dgx-h100 --tokens 1B --sequences 8", "needs --length"),
        (
            "plan-training llama-3-8b dgx-h100 --tokens 1B --sequences 8 --length 4096 --answers 5",
            "has no --answers",
        ),
    ],
)
def test_what_is_missing_or_of_the_other_is_refused(
    line: str, words: str, command: Command
) -> None:
    assert words in command.refuses(line)


def test_answers_longer_than_their_limit_are_refused() -> None:
    with pytest.raises(InputError, match="below the limit"):
        plan_reinforcement("qwen-3-8b", "dgx-h100", answers=8, average=900, limit=800, devices=8)


def test_one_number_of_devices_is_planned(command: Command) -> None:
    said = command.refuses(f"{LINE} --devices 8,16")
    assert said == "calc: calc plan-training --rl takes one number of devices; got 8,16\n"
