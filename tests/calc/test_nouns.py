"""Nouns that planners take, and the flat options that a shell makes of their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import griffe
import pytest

from calc import InputError, commands, compare, plan_reinforcement, plan_service, plan_training
from calc.core.docstrings import docstring, parameters
from calc.core.nouns import IN_PYTHON, Noun, arguments_of, flat, meanings_of, nouns_of, options_of
from calc.planning import plan_nouns
from calc.planning.plan_nouns import Draft, Limits, Load, Server

ROOT = Path(__file__).parents[2]
PLANNERS = {"calc plan-service": plan_service, "calc plan-training": plan_training}
BESIDE = {"calc plan-training": [plan_reinforcement]}
OF_COMMANDS = {
    *(
        "help",
        "config",
        "write_config",
        "write",
        "kubernetes",
        "json",
        "explain",
        "csv",
        "draw",
        "rl",
    )
}
"""Options of commands that say where answers go, and where options come from."""
POSITIONAL = {"device": "hardware"}


def meanings_by_griffe(explained: Callable[..., object]) -> dict[str, str]:
    """Return the meaning of each parameter that a reader of numpydoc which is not ours finds."""
    docstring = griffe.Docstring(inspect.getdoc(explained) or "")
    sections = docstring.parse("numpy", warnings=False)
    listed = [
        parameter
        for section in sections
        if section.kind is griffe.DocstringSectionKind.parameters
        for parameter in section.value
    ]
    return {each.name: " ".join(each.description.split()) for each in listed}


def test_every_docstring_is_read_by_griffe_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    package = griffe.GriffeLoader(search_paths=[ROOT]).load("calc")
    with caplog.at_level("WARNING"):
        parsed = sum(map(len, map(sections_of, objects_of(package))))
    assert parsed > 4000
    assert not caplog.messages


def objects_of(whole: griffe.Object) -> Iterator[griffe.Object]:
    """Yield what a package defines, with itself."""
    yield whole
    for part in whole.members.values():
        if isinstance(part, griffe.Object):
            yield from objects_of(part)


def sections_of(explained: griffe.Object) -> list[griffe.DocstringSection]:
    return explained.docstring.parse("numpy") if explained.docstring else []


def test_every_field_of_a_noun_is_told() -> None:
    kinds = [
        kind for kind in vars(plan_nouns).values() if inspect.isclass(kind) and kind is not Noun
    ]
    kinds = [kind for kind in kinds if issubclass(kind, Noun)]
    assert len(kinds) >= 9
    for kind in kinds:
        assert [*meanings_by_griffe(kind)] == [part.name for part in fields(kind)]
        assert meanings_by_griffe(kind) == parameters(inspect.getdoc(kind) or "")


@pytest.mark.parametrize("command", PLANNERS)
def test_every_option_is_a_field_or_an_argument_and_each_of_these_an_option(command: str) -> None:
    (parser,) = [each for each in commands.command_parser()[1] if each.prog == command]
    parser.add_options()
    typed = {POSITIONAL.get(action.dest, action.dest) for action in parser._actions}
    planners = [PLANNERS[command], *BESIDE.get(command, ())]
    named = {name for planner in planners for name in options_of(planner)}
    assert typed - OF_COMMANDS == named - IN_PYTHON


@pytest.mark.parametrize("called", PLANNERS.values())
def test_planners_take_few_arguments(called: Callable[..., Any]) -> None:
    assert len(inspect.signature(called).parameters) <= 13
    assert sum(len(fields(kind)) for kind in nouns_of(called).values()) > 10  # type: ignore[arg-type]


def test_options_become_nouns_and_nouns_options() -> None:
    options = {"model": "m", "rate": 3, "ttft": "1 s", "tpot": "1 s", "draft": None, "drafted": 2}
    made = arguments_of(plan_service, options)
    assert made == {"model": "m", "load": Load(3), "limits": Limits("1 s", "1 s")}
    assert flat(made).items() >= {"model": "m", "rate": 3, "tpot": "1 s", "turns": 1.0}.items()
    drafting = arguments_of(plan_service, options | {"draft": "d", "acceptance": 0.5})
    assert drafting["draft"] == Draft("d", 0.5, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rates": 3}, r"plan_service\(\) has no option rates; did you mean rate"),
        ({"ttft": "1 s"}, r"plan_service\(\) needs tpot"),
        ({"draft": "d", "ttft": 1, "tpot": 1}, r"plan_service\(\) needs acceptance with draft"),
    ],
)
def test_what_is_missing_or_unknown_is_told(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        arguments_of(plan_service, options)


def test_two_options_of_one_name_are_none() -> None:
    def twice(load: Load, rate: int) -> None: ...

    twice.__module__ = __name__
    with pytest.raises(TypeError, match="two options rate"):
        options_of(twice)


def test_what_is_no_noun_is_refused_with_an_example() -> None:
    with pytest.raises(InputError, match=r"load must be calc.Load\(.*got '10 request/s'"):
        plan_service("llama-3-8b", "h100", "10 request/s", Limits("1 s", "50 ms"))  # type: ignore[arg-type]


def test_an_argument_that_a_noun_explains_has_the_words_of_this() -> None:
    written, meant, server = (
        parameters(docstring(compare)),
        meanings_of(compare),
        meanings_of(Server),
    )
    for name in ("weights", "kv", "dtype", "context"):
        assert written[name] == "as in `calc.Server`"
        assert meant[name] == server[name]
    assert (
        meant["software"] == server["software"] + '; or several side by side, "vllm 0.25,vllm 0.26"'
    )
    assert not any("calc.Server" in option.meaning for option in options_of(compare).values())
