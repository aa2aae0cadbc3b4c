"""Names of options, and numbers, as engines and people write them on the command line."""

from __future__ import annotations

from typing import Any

import pytest

import calc as library
from calc import commands, device_memory
from calc.catalog.asking import _ours
from calc.commands.spellings import in_our_words
from calc.core.errors import InputError
from tests.calc.command import Command


def parser_of(name: str) -> commands.CommandParser:
    _, parsers = commands.command_parser()
    (parser,) = [each for each in parsers if each.prog == f"calc {name}"]
    parser.add_options()
    return parser


def test_every_spelling_is_of_an_option_and_none_is_ours() -> None:
    parsers = [parser_of(name) for name in ("plan", "fit", "plan-service", "compare")]
    taken = {action.dest for parser in parsers for action in parser._actions}
    assert set(_ours().values()) <= taken
    strings = {each for parser in parsers for each in parser._option_string_actions}
    assert not strings & set(_ours())


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        *((theirs, "--tensor") for theirs in ("-tp", "--tp", "--tensor-parallel-size")),
        *((theirs, "--stages") for theirs in ("-pp", "--pp_size", "--pipeline-parallel-size")),
    ],
)
def test_an_engines_option_is_ours(theirs: str, ours: str) -> None:
    notes = [f"calc: {theirs} is {ours} here"]
    words = ["llama-3-8b", theirs, "2"]
    assert in_our_words(parser_of("fit"), words) == (["llama-3-8b", ours, "2"], notes)
    assert in_our_words(parser_of("fit"), [f"{theirs}=2"]) == ([f"{ours}=2"], notes)


def test_what_was_taken_is_told_with_an_answer_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["fit", "llama-3-8b", "dgx-h100", "-tp", "2"]) == 0
    assert capsys.readouterr().err == "calc: -tp is --tensor here\n"
    assert commands.main(["compare", "llama-3-8b", "0", "--prompt", "9", "--generated", "9"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit):  # two places for machines
        commands.main(
            [
                "compare",
                "llama-3-8b",
                "h100",
                "--machines",
                "h200",
                "--prompt",
                "9",
                "--generated",
                "9",
            ]
        )
    assert "unrecognized arguments: h100" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("roofline h100 --tp 4", "--tp is --tensor here, which calc roofline does not take"),
        (
            "plan llama-3-8b h100 --promt 5 --generated 9",
            "there is no --promt; did you mean --prompt",
        ),
        ("plan llama-3-8b h100 --prompt 5 --generated 9 b200", "see calc plan --help"),
        ("fit llama-3-8b h100 --num-prompts 4", "requests are so many a second, --rate"),
    ],
)
def test_an_option_that_is_not_there_is_told(
    line: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        commands.main(line.split())
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("device", ["4xh100", "4×h100", "h100x4", "4 H100", "h100"])
def test_a_number_of_devices_beside_their_name(device: str, command: Command) -> None:
    more = () if device != "h100" else ("--devices", "4")
    facts = command.facts("collective allreduce 1MB", device, *more)
    assert (facts["devices"], facts["machine"]) == (4, "dgx-h100")
    assert facts == command.facts("collective all-reduce 1MB dgx-h100 --devices 4")


def test_numbers_of_devices_that_differ_are_refused(command: Command) -> None:
    said = command.refuses("collective all-reduce 1MB 4xh100 --devices 2")
    assert "write 'h100' with --devices 2, or leave --devices out" in said
    assert "one device is meant here" in command.refuses("roofline 8xh100 --flops 1 --bytes 1")


def test_python_is_told_where_a_number_of_devices_goes() -> None:
    from calc import machines

    with pytest.raises(InputError, match="devices=8 of what takes it; got '8xh100': take 'h100'"):
        machines.of("8xh100")


def test_python_understands_a_number_of_devices_and_tells_words_of_engines() -> None:
    calc: Any = library
    asked = {"batch": 8, "prompt": 1000, "generated": 200}
    assert calc.plan("llama-3-70b", "8xh100", **asked).devices == 8
    assert device_memory.fit("llama-3-70b", "4 H100", context=8192).start.layout.tensor == 4
    both = calc.compare("llama-3-70b", ["4xh100", "8xh200"], prompt=1000, generated=200)
    assert {plan.devices.magnitude for plan in both.plans.values()} == {4, 8}
    for call, sentence in (
        (lambda: calc.plan("llama-3-70b", "h100", tp=4, **asked), "it is tensor here"),
        (lambda: calc.plan("llama-3-70b", "8xh100", devices=4, **asked), "leave devices out"),
        (lambda: calc.compare("llama-3-70b", "h100", prmpt=1), "did you mean prompt?"),
        (lambda: calc.plan_service("llama-3-70b", "h100", rate=4), r"calc\.Load\(rate=…\)"),
        (
            lambda: calc.plan("llama-3-70b", "h100", **{**asked, "prompt": "1,000"}),
            "no comma|write",
        ),
    ):
        with pytest.raises(InputError, match=sentence):
            call()


def test_numbers_as_people_write_them(command: Command) -> None:
    assert command.prints("eval", "3 month / 1 day").startswith("91.3")
    assert "for billions write 7e9" in command.prints("eval", "7B * 2 byte")
    assert "write 7e9" not in command.prints("eval", "7B / 2 byte * 1 byte")
    plan = "plan llama-3-8b h100 --generated 10 --prompt"
    assert "got 1,000: write 1000" in command.refuses(plan, "1,000")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == ["calc", library.__version__]
