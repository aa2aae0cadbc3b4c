"""`calc mcp` as an assistant uses it: a real client, a hundred questions, and refusals."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from calc import InputError, quantity
from calc.commands import mcp as tools

mcp = pytest.importorskip("mcp")

HERE = Path(__file__).parent
QUESTIONS, SECOND = HERE / "mcp_questions.txt", HERE.parent / "second_entries.toml"
RIGHT, OF = 95, 100
PRECISION = 1e-3

Question = tuple[str, dict[str, Any], str, str]
Call = Callable[[str, dict[str, Any]], Awaitable[Any]]


def questions() -> list[Question]:
    """Those of the file, and look-ups of what was typed a second time from its source."""
    lines = [line for line in QUESTIONS.read_text().splitlines() if not line.startswith("#")]
    parts = [tuple(part.strip() for part in line.split(" | ")) for line in lines]
    typed: list[Question] = [
        (tool, json.loads(given), at, is_) for tool, given, at, is_, _ in parts
    ]
    second = tomllib.loads(SECOND.read_text())
    asked = [
        ("look_up", {"name": key}, "quantity", value) for key, value in second["constants"].items()
    ]
    models = [
        ("look_up", {"name": key}, "heads", str(entries["heads"]))
        for key, entries in second["models"].items()
        if "heads" in entries
    ]
    left = OF - len(typed)
    return [*typed, *models[:: len(models) // 8][:8], *asked[:: len(asked) // left]][:OF]


def at(answer: Any, path: str) -> Any:
    for part in path.split("."):
        answer = answer[int(part)] if isinstance(answer, list) else answer[part]
    return answer


def is_right(found: Any, known: str) -> bool:
    """Whether a value and its unit are those that are known."""
    if isinstance(found, dict):
        value, wanted = quantity(found["value"], found["unit"]), quantity(known)
        return value.is_compatible_with(wanted) and value.m_as(wanted.units) == pytest.approx(
            wanted.magnitude, rel=PRECISION
        )
    if isinstance(found, str):
        return found == known
    return bool(found == pytest.approx(float(known), rel=PRECISION))


def with_client(use: Callable[[Call], Awaitable[None]]) -> None:
    """Run what uses a server that a client has started, as an assistant starts it."""

    async def session() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "calc", "mcp"])
        async with mcp.Client(server) as client:
            await use(client.call_tool)

    asyncio.run(session())


@pytest.mark.slow
def test_a_hundred_questions_are_answered_with_a_source() -> None:
    asked = questions()
    wrong = []

    async def use(call: Call) -> None:
        for tool, arguments, path, known in asked:
            result = await call(tool, arguments)
            answer = result.structured_content
            sourced = tool == "search" or answer.get("sources") or answer.get("equation")
            if result.is_error or not sourced or not is_right(at(answer, path), known):
                wrong.append((tool, arguments, known, str(answer)[:200]))

    with_client(use)
    assert len(asked) == OF
    assert len(asked) - len(wrong) >= RIGHT, wrong


@pytest.mark.slow
def test_a_refusal_is_structured_and_names_the_mend() -> None:
    async def use(call: Call) -> None:
        wrong = {"peak": "989 GB/s", "bandwidth": "3.35 TB/s"}
        result = await call("law", {"name": "roofline.ridge_point", "arguments": wrong})
        assert result.is_error
        assert result.structured_content["mend"].endswith("peak needs a quantity in FLOP/s")
        assert result.structured_content["given"].startswith("989 GB/s")
        mended = wrong | {"peak": "989 TFLOP/s"}
        result = await call("law", {"name": "roofline.ridge_point", "arguments": mended})
        assert is_right(result.structured_content["value"], "295.22 FLOP/byte")

    with_client(use)


@pytest.mark.parametrize(
    ("call", "mend"),
    [
        (lambda: tools.look_up("h1000"), "did you mean h100"),
        (lambda: tools.law("roofline.bond", {}), "there is no law 'roofline.bond'"),
        (lambda: tools.law("roofline.ridge_point", {}), "needs peak, bandwidth"),
        (lambda: tools.plan("llama-3-8b", "h100", {"batches": 8}), "did you mean batch?"),
        (lambda: tools.check("as fast as light"), "is not said"),
    ],
)
def test_what_a_tool_refuses_says_what_is_needed(call: Callable[[], object], mend: str) -> None:
    with pytest.raises(InputError) as refused:
        call()
    assert mend in tools.refusal(refused.value)["mend"]


def test_a_plan_has_its_interval_its_equation_and_its_sources() -> None:
    asked = {"batch": 8, "prompt": 1000, "generated": 200, "software": "vllm"}
    answer = tools.plan("llama-3-70b", "dgx-h100", asked)
    interval = answer["rows"][0]["interval"]["time_per_token"]
    assert interval["low"]["value"] < interval["high"]["value"]
    assert answer["equation"].startswith("T_lower")
    assert any("H100" in line for line in answer["sources"])
