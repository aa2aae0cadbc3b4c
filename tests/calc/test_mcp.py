"""`calc mcp` as an assistant uses it: a real client, a hundred questions, and refusals."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from calc import InputError, quantity
from calc.commands import mcp as tools

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed")

HERE = Path(__file__).parent
QUESTIONS, SECOND = HERE / "mcp_questions.txt", HERE.parent / "second_entries.toml"
RIGHT, OF = 95, 100
PRECISION = 1e-3

Question = tuple[str, dict[str, Any], str, str]
Call = Callable[[str, dict[str, Any]], Awaitable[Any]]


def questions() -> list[Question]:
    """Return the questions of the file, and look-ups of what was typed twice from its source."""
    lines = [line for line in QUESTIONS.read_text().splitlines() if not line.startswith("#")]
    parts = [tuple(part.strip() for part in line.split(" | ")) for line in lines]
    typed: list[Question] = [
        (tool, json.loads(arguments), at, is_) for tool, arguments, at, is_, _ in parts
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


def is_right(answer: Any, expected: str) -> bool:
    """Return whether a value and its unit are those that are known."""
    if isinstance(answer, dict):
        value, wanted = quantity(answer["value"], answer["unit"]), quantity(expected)
        return value.is_compatible_with(wanted) and value.m_as(wanted.units) == pytest.approx(
            wanted.magnitude, rel=PRECISION
        )
    if isinstance(answer, str):
        return answer == expected
    return bool(answer == pytest.approx(float(expected), rel=PRECISION))


def with_client(use: Callable[[Call], Awaitable[None]]) -> None:
    """Run what uses a server that a client has started, as an assistant starts it."""

    import mcp  # which takes two seconds, and is needed by no other worker

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
        for tool, arguments, path, expected in asked:
            result = await call(tool, arguments)
            answer = result.structured_content
            (content,) = result.content
            assert json.loads(content.text) == answer
            assert "\\u" not in content.text  # a sign costs a letter, not six
            sourced = tool == "search" or answer.get("sources") or answer.get("equation")
            if result.is_error or not sourced or not is_right(at(answer, path), expected):
                wrong.append((tool, arguments, expected, str(answer)[:200]))

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
        (lambda: tool("fit")({"model": "llama-3-8b", "device": "h100", "contxt": 8}), "context?"),
        (lambda: tool("fit")({"model": "llama-3-8b"}), "arguments are required: device"),
        (lambda: tool("compare")({"models": "llama-3-8b", "draw": "x.svg"}), "no argument draw"),
        (lambda: tool("fit")({"model": "--write-config=x.toml", "device": "h100"}), "no model"),
        (lambda: tools.plan("llama-3-8b", "8xh100", {"devices": 4}), "leave devices out"),
        (lambda: tools.check("as fast as light"), "is not said"),
    ],
)
def test_what_a_tool_refuses_says_what_is_needed(call: Callable[[], object], mend: str) -> None:
    with pytest.raises(InputError) as refused:
        call()
    assert mend in tools.refusal(refused.value)["mend"]


def tool(name: str) -> Callable[..., dict[str, Any]]:
    return next(each for each in tools.tools() if each.__name__ == name)


def test_commands_are_tools_that_take_engines_words_and_numbers_of_devices() -> None:
    arguments = {"model": "llama-3-8b", "device": "2xh100", "gpu_memory_utilization": 0.8}
    fitted = tool("fit")({**arguments, "context": 8192})
    assert (fitted["tensor"], fitted["utilization"], fitted["context"]) == (2, 0.8, 8192)
    asked = {"models": ["llama-3-8b"], "machines": ["2xh100", "h200"], "isl": 1000, "osl": 200}
    assert {row["machine"] for row in tool("compare")(asked)["rows"]} == {"dgx-h100", "dgx-h200"}
    size = {"operation": "allreduce", "size": "16 MB", "device": "8xh100"}
    assert tool("collective")(size)["devices"] == 8
    assert "%(default)s" not in "".join(str(each.__doc__) for each in tools.tools())
    sizes = {"tp": 2, "batch": 8, "prompt": 1000, "generated": 200}
    planned = tools.plan("llama-3-70b", "4xh100", sizes)["rows"][0]
    assert (planned["devices"], planned["copies"]) == (4, 2)


def test_a_file_is_checked_beside_what_its_devices_did(tmp_path: Path) -> None:
    """A claim, a benchmark's file and readings of nvidia-smi, told by their paths."""
    smi = tmp_path / "smi.csv"
    smi.write_text("index, utilization.gpu [%]\n0, 98 %\n0, 20 %\n0, 5 %\n", encoding="utf-8")
    claim = "Llama 3.1 8B on 1 H100: 20 ms a token at 1 user"
    waiting = "devices are busy 41 % of the time: the host or the load keeps them waiting"
    assert waiting in str(tools.check(claim, states=str(smi)))
    assert waiting not in str(tools.check(claim))
    bench = tmp_path / "bench.json"
    name = "Llama-3.1-8B-Instruct-Q4_K_M.gguf"
    rows = [{"avg_ts": 140.0, "n_prompt": 0, "n_gen": 128, "model_filename": name}]
    bench.write_text(json.dumps(rows), encoding="utf-8")
    report = tools.check(str(bench), about="Llama 3.1 8B on 1 RTX 4090", states=str(smi))
    assert waiting in str(report)


def test_a_plan_has_its_interval_its_equation_and_its_sources() -> None:
    asked = {"batch": 8, "prompt": 1000, "generated": 200, "software": "vllm"}
    answer = tools.plan("llama-3-70b", "dgx-h100", asked)
    interval = answer["rows"][0]["interval"]["time_per_token"]
    assert interval["low"]["value"] < interval["high"]["value"]
    assert answer["equation"].startswith("T_lower")
    assert any("H100" in line for line in answer["sources"])


SERVICE = {"rate": 50, "prompt": 100, "generated": 10, "ttft": "1 s", "tpot": "50 ms"}
LONG = {"model": "llama-3-8b", "machine": "h100", "arguments": SERVICE | {"requests": 10**7}}
SOON = 12  # seconds: hours less than the call would take, and less than it may


def test_the_limits_of_a_call_are_told_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "LARGEST_KB", 5)
    served = tools.server()

    async def asked() -> list[dict[str, Any]]:
        descriptions = [tool.description for tool in await served.list_tools()]
        assert all(tools.LIMITS in description for description in descriptions)
        many = LONG | {"arguments": {"batch": list(range(tools.MOST_VALUES))}}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("plan", many),
            ("look_up", {"name": "h100"}),
            ("check", {"claim": "as fast as light"}),
        ]
        return [(await served.call_tool(*call)).structured_content for call in calls]

    many, large, other = asyncio.run(asked())
    assert many["mend"] == "a call takes up to 1,000 values"
    assert large["error"].startswith("an answer has up to 5 kB; got ")
    assert "is not said" in other["mend"]


def test_work_that_nobody_waits_for_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that take too long and calls that are cancelled are stopped."""
    monkeypatch.setattr(tools, "LONGEST", 0.2)
    before = {*threading.enumerate()}

    def forever() -> None:
        while True:
            sum(range(1000))

    async def asked() -> None:
        with pytest.raises(InputError, match="more than"):
            await tools.worked(forever)
        monkeypatch.setattr(tools, "LONGEST", 3600)
        task = asyncio.create_task(tools.worked(forever))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asked())
    for thread in {*threading.enumerate()} - before:
        thread.join(SOON)
        assert not thread.is_alive()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["end of input", "interrupt", "interrupt when idle"])
def test_a_server_ends_with_its_input_or_an_interrupt(how: str) -> None:
    def line(method: str, parameters: dict[str, Any], number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        message |= {} if number is None else {"id": number}
        assert process.stdin
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    client = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    command = [sys.executable, "-m", "calc", "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        line("initialize", client | {"protocolVersion": "2025-06-18"}, 1)
        assert process.stdout.readline()
        line("notifications/initialized", {})
        if how != "interrupt when idle":
            line("tools/call", {"name": "plan_service", "arguments": LONG}, 2)
            time.sleep(1)
        if how == "end of input":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == (0 if how == "end of input" else -signal.SIGINT)


@pytest.mark.slow
def test_a_cancelled_call_leaves_the_server_free_and_fifty_at_once_answer_as_one() -> None:
    async def use(call: Call) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await call("plan_service", LONG)
        lengths = {"prompt": 100, "generated": 10}
        asked = [
            ("plan", {"model": model, "machine": machine, "arguments": lengths | {"batch": batch}})
            for model in ("llama-3-8b", "qwen-3-8b")
            for machine in ("h100", "a100", "l40s", "mi300x", "rtx-4090")
            for batch in (1, 2, 4, 8, 16)
        ]
        together = await asyncio.gather(*(call(*each) for each in asked))
        alone = [await call(*each) for each in asked]
        for each, one, other in zip(asked, together, alone, strict=True):
            assert not one.is_error, one.structured_content
            assert one.structured_content == other.structured_content, each

    with_client(use)
