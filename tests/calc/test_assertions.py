"""Plans in a repository: limits that hold, limits that are broken, and files that are none."""

from __future__ import annotations

import json

import pytest

from calc.commands import main
from calc.core.errors import InputError
from calc.planning.assertions import check_limits
from tests.calc.command import Written

PLAN = """[[plan]]
model = "llama-3-8b"
hardware = "{device}"
prompt = 1000
generated = 200
must = {must}
"""


def test_limits_hold_or_break(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 3 8B reads 15.01 GB of matrices a token, of which 3.35 TB/s are 4.48 ms at least."""
    held = ["fits", "devices == 1", "model == llama-3-8b", "time_per_token.lower >= 4.48 ms"]
    path = written(PLAN.format(device="h100", must=json.dumps(held)), "plan.toml")
    assert check_limits(path).hold
    assert main(["assert", str(path)]) == 0
    assert "4 of 4 limits hold" in capsys.readouterr().out
    broken = [*held, "time_per_token.lower < 4.4 ms", "weight_memory <= 16 GB"]
    path = written(PLAN.format(device="h100", must=json.dumps(broken)), "plan.toml")
    assert main(["assert", str(path), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert not facts["hold"]
    assert [row["holds"] for row in facts["rows"]] == [True] * 4 + [False] * 2


def test_what_is_not_known_holds_no_limit(written: Written) -> None:
    """Nothing is expected of an A10G, of which no peak is published."""
    must = '["expected.time_per_token <= 1 s"]'
    [limit] = check_limits(written(PLAN.format(device="a10g", must=must), "plan.toml")).limits
    assert (limit.found, limit.holds) == ("not known", False)


def test_several_questions_of_several_commands(written: Written) -> None:
    fit = '[fit]\nmodel = "llama-3-70b"\ndevice = "h100"\nmust = ["fits"]\n'
    made = check_limits(written(fit + PLAN.format(device="h100", must='["fits"]'), "plan.toml"))
    assert [(limit.question, limit.holds) for limit in made.limits] == [
        ("fit llama-3-70b", False),  # 131 GiB of weights
        ("plan llama-3-8b", True),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no limits"),
        ('[plann]\nmodel = "x"', "there is no question 'plann'; did you mean plan"),
        ("plan = 3", r"plan must be a table, as \[\[plan\]\]; got"),
        (PLAN.format(device="h100", must="3"), "plan 1: must must be a list of limits"),
        (PLAN.format(device="h101", must='["fits"]'), "plan 1: there is no device 'h101'"),
        (PLAN.format(device="h100", must='["fits"]\nbatches = 8'), "no option batches; did you"),
        (PLAN.format(device="h100", must='["fit < "]'), "a limit is a name, <= >= < > == and a"),
        (PLAN.format(device="h100", must='["fit"]'), "the answer has no 'fit'; did you mean fits"),
        (PLAN.format(device="h100", must='["devices.a < 3"]'), "the answer has no 'devices.a'"),
        (PLAN.format(device="h100", must='["expected < 3 ms"]'), "is no single value: name one of"),
        (PLAN.format(device="h100", must='["room <= 3 ms"]'), "room is .*, and its limit 3 ms: "),
        ('[fit]\nmust = ["fits"]', "fit 1: fit needs model, device"),
        ('[plan]\nmodel = "llama-3-8b"\nmust = ["fits"]', "plan needs hardware, prompt, generated"),
        ('[compare]\nmust = ["fits"]', "compare needs models, machines"),
        ('[plan-service]\nmust = ["fits"]', "plan-service needs model, hardware, .*ttft, tpot"),
        ('[plan-training]\nmust = ["fits"]', "plan-training needs model, hardware, tokens"),
        (PLAN.format(device="h100", must='["model > 3"]'), "model is llama-3-8b, held by == and"),
        (PLAN.format(device="h100", must='["devices"]'), "devices is 1, held by one of <= >="),
        (PLAN.format(device="h100", must='["fits >= 1"]'), "fits is True, held by == and a word"),
        (PLAN.format(device="h100", must=f'["{"a" * 999} < 1"]'), "the answer has no 'a{9,80}[.]"),
        (PLAN.format(device="h100", must='["fits"]\nbatch = [1, 8]'), "batch has several values"),
    ],
)
def test_a_file_that_cannot_be_held_is_a_sentence(text: str, said: str, written: Written) -> None:
    with pytest.raises(InputError, match=said) as refused:
        check_limits(written(text, "plan.toml"))
    assert "\n" not in str(refused.value)


def test_a_time_is_the_one_that_is_expected(written: Written) -> None:
    """A limit is not of published peaks, which real programs are slower than."""
    must = ["time_per_token <= 4 ms", "time_per_token >= 4 ms", "time_per_token.upper <= 5 ms"]
    asked = PLAN.format(device="h100", must=json.dumps(must)).replace("llama-3-8b", "gemma-2-27b")
    asked += "devices = 8\nbatch = 64\n"
    held = check_limits(written(asked, "plan.toml"))
    assert [limit.holds for limit in held.limits] == [False, True, True]
