"""Tools for assistants, by the Model Context Protocol on standard input and output: `calc mcp`."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import inspect
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from pint import DimensionalityError

import calc
from calc.catalog import machines, models
from calc.catalog.asking import ours, with_devices
from calc.commands import COMMANDS, Told, command_parser, lookup
from calc.commands.command_output import answers
from calc.commands.options import option_of, typed
from calc.commands.spellings import count_devices
from calc.core.citations import bibliography, citation
from calc.core.errors import InputError, did_you_mean, extra
from calc.core.nouns import arguments_of, nouns_of, options_of
from calc.core.report import Answer, plain
from calc.core.units import quantity
from calc.planning.setup import is_array

T = TypeVar("T")
MOST_FOUND = 20
MOST_VALUES, LONGEST, LARGEST_KB = 1000, 20, 256  # of a call: given, seconds of work, answered
WAKE = 0.2  # seconds after which a call that works is looked at again
LIMITS = (
    f"A call takes up to {MOST_VALUES:,} values, works for up to {LONGEST} s and answers with up to"
    f" {LARGEST_KB} kB; what asks for more is refused."
)
INSTRUCTIONS = (
    "Numbers of machine-learning systems with units and sources. Quantities are text with units,"
    ' as in "3.35 TB/s"; names are forgiving. A refusal says in `mend` what is needed.'
)


def look_up(name: str) -> dict[str, Any]:
    """Return the facts of a constant, device, machine, model, software, format, law or function.

    A value has its unit, its kind (datasheet, measured, estimate), its source and its year.
    """
    return _sourced(plain(lookup.shown(name).facts))


def law(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The value of a law such as roofline.ridge_point, with its equation and its source.

    Arguments by their names, as quantities: {"peak": "989 TFLOP/s", "bandwidth": "3.35 TB/s"}.
    """
    laws = calc.all_laws()
    if name not in laws:
        raise InputError(f"there is no law {name!r}; search finds laws by what they say")
    try:
        value = laws[name](**arguments)
    except TypeError as error:
        needs = ", ".join(inspect.signature(laws[name]).parameters)
        raise InputError(f"{name} needs {needs}; got {error}") from None
    text = inspect.getdoc(laws[name]) or ""
    said = dict(re.findall(r"^(Equation|Source): (.+?)(?=\n\n|\Z)", text, re.M | re.S))
    answer = {"value": plain(quantity(value)) if not isinstance(value, str) else value}
    keys = [key for key in re.split(r"[,\s]+", said.get("Source", "")) if key in bibliography()]
    return answer | {"equation": said.get("Equation"), "sources": list(map(citation, keys))}


def plan(model: str, machine: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _planned(calc.plan, model, machine, arguments, _explained)


def plan_service(model: str, machine: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _planned(calc.plan_service, model, machine, arguments)


def plan_training(model: str, machine: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _planned(calc.plan_training, model, machine, arguments)


def plan_reinforcement(model: str, machine: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _planned(calc.plan_reinforcement, model, machine, arguments)


def check(claim: str, about: str = "", states: str | None = None) -> dict[str, Any]:
    """Return whether a claim of performance can be true, or which bound it breaks, and near rows.

    A claim is a sentence, as in "Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users", the text of a
    benchmark's result or log, or the path of one, of which `about` says what it leaves out.
    `states` is the path of what nvidia-smi or amd-smi listed beside the run.
    """
    return _sourced(plain(calc.check(claim, about, states).facts))


def search(words: str) -> dict[str, Any]:
    """Names of constants, devices, models, laws and functions, by words or by what they are for."""
    return {"rows": plain(lookup.search(words)[:MOST_FOUND])}


def _asks(command: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The tool that answers as a command does, told its arguments by their names."""

    def tool(arguments: dict[str, Any]) -> dict[str, Any]:
        parser = dict(zip(COMMANDS, command_parser(Told)[1], strict=True))[command]
        parser.add_options()
        values = {name.replace("-", "_"): value for name, value in arguments.items()}
        places = [action.dest for action in parser._actions if not action.option_strings]
        actions = {action.dest: action for action in _options(parser)}
        placed = [typed(values.pop(name)) for name in places if name in values]
        words = []
        for name, value in values.items():
            option = option_of(name if name in actions else ours(name) or name)
            if option not in {option_of(dest) for dest in actions}:
                near = did_you_mean(name, [*places, *actions]) or f"known are {', '.join(actions)}"
                raise InputError(f"{command} has no argument {name}; {near.strip()}")
            if value not in (None, False):
                words.append(option if value is True else f"{option}={typed(value)}")
        options = parser.parse_args([*words, "--", *placed])  # of which none is an option
        count_devices(options)
        return _sourced(plain(options.run(options).facts))

    parser = dict(zip(COMMANDS, command_parser()[1], strict=True))[command]
    parser.add_options()
    tool.__name__ = command.replace("-", "_")
    listed = [
        f"- `{action.dest}`: {(action.help or '') % vars(action)}"
        for action in parser._actions
        if not action.option_strings or action in _options(parser)
    ]
    purpose = COMMANDS[command][1]
    description = f"{purpose[0].upper()}{purpose[1:]}; `arguments` are:"
    tool.__doc__ = "\n".join([description, "", *listed])
    return tool


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options of a command that change its answer, and write no file."""
    printed = {"help", "json", "csv", "draw", "explain", "config", "write_config"}
    return [each for each in parser._actions if each.option_strings and each.dest not in printed]


ASKED = (
    "fit",
    "compare",
    "collective",
    "gemm",
    "attention",
    "throughput",
    "break-even",
    "roofline",
)
"""Commands that are tools too, as they are."""


def tools() -> tuple[Callable[..., dict[str, Any]], ...]:
    """Return all tools: those of this module, and one for each of these commands."""
    return (*TOOLS, *map(_asks, ASKED))


TOOLS = (look_up, law, plan, plan_service, plan_training, plan_reinforcement, check, search)


def _explained(made: calc.planning.Plan) -> Answer:
    """One point with what would change it, or all of several."""
    return made.with_expectation() if is_array(made.fits) else made.explained()


def _planned(
    planner: Callable[..., Any],
    model: str,
    machine: str,
    arguments: dict[str, Any],
    telling: Callable[[Any], Answer] = lambda made: made,
) -> dict[str, Any]:
    try:
        options = options_of(planner)
        defaults = {
            name if name in options else ours(name) or name: value
            for name, value in arguments.items()
        }
        asked = {
            "model": model,
            **with_devices({**defaults, "hardware": machine}, "hardware", "devices"),
        }
        machine = asked["hardware"]
        asked["hardware"] = machines.of(machine)
        facts = telling(planner(**arguments_of(planner, asked))).facts
    except TypeError as error:
        listing = ", ".join(options_of(planner))
        raise InputError(f"arguments must be some of {listing}; got {error}") from None
    step = dict(re.findall(r"^(Equation): (.*)", inspect.getdoc(calc.step) or "", re.M))
    device = machines.of(machine).device.records.values()
    stands_on = {record.provenance.source for record in device if record.published is not None}
    with suppress(AttributeError):
        stands_on.add(models.get(model).source)
    return _sourced({"equation": step["Equation"], **plain(facts)}, stands_on)


def _sourced(
    facts: dict[str, Any], keys: set[str] | frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return the facts with the sources of all their values, as lines that a reader can look up."""
    cited = dict.fromkeys((*_source_keys(facts), *sorted(keys)))
    return facts | {"sources": [citation(key) for key in cited if key in bibliography()]}


def _source_keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("source"), str):
            yield value["source"]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _source_keys(part)


def refusal(error: Exception) -> dict[str, Any]:
    """A refusal in its parts: the sentence, what was refused, what was given, what would mend it.

    >>> refusal(InputError("peak needs a quantity in FLOP/s; got 3 GB/s"))["mend"]
    'peak needs a quantity in FLOP/s'
    """
    sentence = str(error)
    before, _, got = sentence.partition("; got ")
    advice = [part for part in sentence.split("; ") if "did you mean" in part]
    facts = {"error": sentence, "given": got, "mend": advice[0] if advice else before}
    parts = {name: getattr(error, name, None) for name in ("argument", "allowed")}
    return facts | {name: plain(part) for name, part in parts.items() if part is not None}


def add_mcp(parser: argparse.ArgumentParser) -> None:
    named = ", ".join(
        [tool.__name__ for tool in TOOLS] + [each.replace("-", "_") for each in ASKED]
    )
    parser.epilog = (
        f"An assistant starts it by itself, as the command `calc mcp`. Its tools: {named}."
    )
    answers(parser, _serve)


def _serve(options: argparse.Namespace) -> NoReturn:
    # Else it would be heard when the next line is read, for which the server waits in a thread.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    server().run("stdio")
    sys.stdout.flush()
    os._exit(0)  # what is printed after that is no message, and who still works is not waited for


class Stopped(BaseException):
    """Exception raised in the thread of a call that nobody waits for any longer."""


async def worked(ask: Callable[[], T]) -> T:
    """Return what a call makes, in a thread that is stopped when the call is cancelled or too long.

    The end of the input, which ends the server, cancels all calls.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    made: list[T] = []
    failed: list[BaseException] = []

    clocks: list[Callable[[], float]] = []

    def work() -> None:
        clocks.append(_clock())
        try:
            made.append(ask())
        except BaseException as error:
            failed.append(error)
        with suppress(RuntimeError):  # of a loop that is closed
            loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while not done.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(WAKE):
                    await done.wait()
            with suppress(OSError):  # of a thread that has ended
                if not done.is_set() and clocks and clocks[0]() > LONGEST:
                    raise InputError(f"this call works for more than {LONGEST} s; ask for less")
    finally:
        if not done.is_set() and thread.ident is not None:
            of_thread = ctypes.c_ulong(thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(of_thread, ctypes.py_object(Stopped))
    if failed:
        raise failed[0]
    return made[0]


def _clock() -> Callable[[], float]:
    """Return what tells others the processor time of this thread from now on, or else the time."""
    read: Callable[[], float] = time.monotonic
    if hasattr(time, "pthread_getcpuclockid"):
        read = partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))
    began = read()
    return lambda: read() - began


def check_size(arguments: Mapping[str, Any]) -> None:
    """Refuse a call that holds more values than it may."""
    left, count = [*arguments.values()], 0
    while left:
        value = left.pop()
        count += 1
        if isinstance(value, Mapping | list | tuple):
            left += value.values() if isinstance(value, Mapping) else value
        if count + len(left) > MOST_VALUES:
            raise InputError(f"a call takes up to {MOST_VALUES:,} values; got more")


def server() -> Any:
    """The server, with its tools."""
    with extra("calc mcp", "mcp", "mcp"):
        from mcp.server.mcpserver import MCPServer
        from mcp.types import CallToolResult, TextContent

    def result(answer: Mapping[str, Any], is_error: bool = False) -> Any:
        text = json.dumps(answer, ensure_ascii=False)
        if len(text) > LARGEST_KB * 1000:
            raise InputError(
                f"an answer has up to {LARGEST_KB} kB; got {len(text) / 1000:,.0f} kB: ask for less"
            )
        content: list[Any] = [TextContent(type="text", text=text)]
        return CallToolResult(content=content, structured_content=answer, is_error=is_error)

    def call_of(tool: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
        async def call(**arguments: Any) -> Any:
            try:
                check_size(arguments)
                return await worked(lambda: result(tool(**arguments)))
            except (InputError, DimensionalityError) as error:
                return result(refusal(error), is_error=True)

        call.__signature__ = inspect.signature(tool, eval_str=True).replace(  # type: ignore[attr-defined]
            return_annotation=CallToolResult
        )
        return call

    made = MCPServer("calc", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in tools():
        planner = getattr(calc, tool.__name__, tool) if tool.__doc__ is None else tool
        texts = (inspect.getdoc(told) or "" for told in (planner, *nouns_of(planner).values()))
        told = (*(text.partition(">>>")[0].strip() for text in texts), LIMITS)
        made.add_tool(call_of(tool), tool.__name__, description="\n\n".join(told))
    return made
