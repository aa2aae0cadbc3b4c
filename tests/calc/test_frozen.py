"""Results keep what they say: no attribute is set, and no item of a mapping of it."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import pytest

import calc
from calc import Job, Tokens, hardware, machines, models, software
from calc.core.fixed import Fixed
from calc.core.report import Table
from tests.calc.test_settled import ANSWERS, EACH, SLOW

REFUSED = TypeError, AttributeError  # of which that of frozen records is one
LENGTHS = {"prompt": 1000, "generated": 200}


def attributes(made: object) -> set[str]:
    """The public attributes of a record that are not computed anew each time."""
    kept = {
        name
        for kind in type(made).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, cached_property | property)
    }
    return {name for name in {*vars(made), *kept} if not name.startswith("_")}


def mappings(value: object) -> Iterator[Mapping[Any, Any]]:
    """The mappings in a value, and in those, its tables and its tuples; there are no lists."""
    assert not isinstance(value, list | set)
    if isinstance(value, Table):
        value = tuple(vars(value).values())
    if isinstance(value, Mapping):
        yield value
        value = tuple(value.values())
    if isinstance(value, tuple):
        for part in value:
            yield from mappings(part)


def check_frozen(made: Any) -> None:
    for name in (*attributes(made), "a_new_name"):
        with pytest.raises(REFUSED):
            setattr(made, name, None)
    kinds = (type(made), *type(made).__mro__)
    kept = {name for kind in kinds for name, value in vars(kind).items() if is_kept(value)}
    for name in {*vars(made), *kept}:
        if name.startswith("_"):
            continue
        for held in mappings(getattr(made, name)):
            for key in (*held, "a new key"):
                with pytest.raises(REFUSED):
                    held[key] = None  # type: ignore[index]


def is_kept(value: object) -> bool:
    return isinstance(value, cached_property)


@pytest.mark.parametrize("name", EACH)
def test_what_is_returned_refuses_every_change(name: str) -> None:
    made = (ANSWERS | SLOW)[name]()
    said = str(made)
    check_frozen(made)
    check_frozen(pickle.loads(pickle.dumps(made)))
    assert str(made) == said


def test_what_a_plan_is_made_of_refuses_every_change() -> None:
    plan = calc.plan("llama-3-8b", "h100", batch=8, **LENGTHS)
    assert plan.expected is not None
    for made in (plan.reading, plan.writing, plan.expected, plan.expected.writing):
        check_frozen(made)
    lower = plan.writing.lower
    with pytest.raises(TypeError, match="dict"):
        plan.writing.parts["memory"] = 2 * lower
    with pytest.raises(TypeError):
        plan.expected.results["time_per_token"] *= 100  # type: ignore[index]
    assert plan.expected.writing is not None
    with pytest.raises(TypeError):
        plan.expected.writing["gemm"] = lower
    assert plan.writing.lower == lower


def test_memory_and_entries_of_the_data_refuse_every_change() -> None:
    memory = calc.device_memory.fit("llama-3-8b", "h100", context=8192)
    step = calc.step(Job.of("llama-3-8b", "h100"), Tokens(writing=8, context=1000))
    entries = (hardware.get("h100"), machines.get("dgx-h100"), software.get("vllm 0.19"))
    for made in (memory, step, *entries, models.get("gpt-oss-20b")):
        check_frozen(made)
    with pytest.raises(TypeError):
        hardware.get("h100").peaks["peak"]["bf16"] = None  # type: ignore[assignment]


def test_a_fixed_mapping_refuses_and_is_copied_and_written_as_a_dictionary_is() -> None:
    dictionary = {"a": 1, "b": 2}
    held = Fixed(dictionary)
    changes = (
        *(lambda: held.update(a=2), lambda: held.pop("a"), lambda: held.popitem()),
        *(lambda: held.setdefault("c", 3), lambda: held.clear(), lambda: held.__delitem__("a")),
        *(lambda: held.__ior__({"c": 3}), lambda: held.__setitem__("a", 2)),
    )
    for change in changes:
        with pytest.raises(TypeError):
            change()
    for other in (copy.copy(held), copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
        assert type(other) is Fixed
        assert other == dictionary
    assert json.loads(json.dumps(held)) == dictionary
    assert held | {"c": 3} == {**dictionary, "c": 3}


def test_the_same_question_has_the_same_answer_and_copies_are_equal() -> None:
    asked: Any = LENGTHS
    questions: tuple[Callable[[int], object], ...] = (
        lambda batch: calc.plan("llama-3-8b", "h100", batch=batch, **asked),
        lambda context: calc.device_memory.fit("llama-3-8b", "h100", context=context),
    )
    for ask in questions:
        one, other, more = ask(8), ask(8), ask(16)
        assert one == other == pickle.loads(pickle.dumps(one)) == copy.deepcopy(one)
        assert len({one, other, more}) == 2
        assert one != more
