"""Pandoc's JSON document: the call of pandoc, a walk, and constructors of nodes.

A node is `{"t": type, "c": content}`; an attribute is `[id, [classes], [[key, value]]]`.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import Any, NoReturn

from press.problems import stop

SERVANT = Path(__file__).with_suffix(".lua")
TIME_LIMIT = 30.0  # seconds; a long chapter takes one
DEEPEST = 14  # nodes in one another; typst gives up a little later

# A long chapter takes a hundredth of it. What GHC reserves, since -M asks a program to end by an
# exception, which Lua may take.
MOST_MEMORY = "-xr2g"
AT_ONCE = "-A16m"  # what it takes before it looks for what it no longer needs
OUT_OF_MEMORY = 251  # as a GHC program says it
# Raw HTML stays raw, so that it can be refused.
MARKDOWN = "markdown-native_divs-native_spans"
LONGEST_ROW = 100_000  # of a longer one pandoc gives the columns of its table widths in percent

Node = dict[str, Any]
Change = Callable[[Node], "Node | list[Node] | None"]


@cache
def pandoc_path() -> str:
    import pypandoc

    return str(pypandoc.get_pandoc_path())


@cache
def pandoc_version() -> str:
    return subprocess.run(
        [pandoc_path(), "--version"], capture_output=True, text=True, check=True
    ).stdout


def parse(text: str) -> tuple[Node, list[Node]]:
    """The metadata and the blocks of a Markdown text."""
    text = text.replace("\r", "").expandtabs(4)  # as pandoc itself does with a file
    output, _ = _served(text, MARKDOWN, "json", reading={"columns": LONGEST_ROW})
    try:
        document = json.loads(output)
        deep = _depth(document) > DEEPEST
    except RecursionError:
        deep = True
    if deep:
        stop("lists, quotes or other marks nest too deep.")
    return document["meta"], document["blocks"]


def _depth(document: Node) -> int:
    """Return the depth to which nodes stand in one another."""
    deepest = 0
    waiting: list[tuple[Any, int]] = [(document, 0)]
    while waiting:
        item, depth = waiting.pop()
        if type(item) is dict:
            depth += "t" in item
            deepest = max(deepest, depth)
            item = item.values()
        waiting.extend((inner, depth) for inner in item if type(inner) in (dict, list))
    return deepest


def convert(blocks: list[Node], form: str, **writing: object) -> tuple[str, str]:
    """Blocks in another form, written with these options, and the warnings that pandoc gave."""
    document = json.dumps(empty_document() | {"blocks": blocks})
    return _served(document, "json", form, writing={"wrap_text": "none", **writing})


@cache
def empty_document() -> Node:
    """Return an empty document, in the version that the installed pandoc speaks."""
    document: Node = json.loads(_served("", MARKDOWN, "json")[0])
    return document


class _Pandoc(subprocess.Popen[bytes]):
    """A pandoc, which ends when press does, in whatever way."""

    def __init__(self, *arguments: str) -> None:
        held, self.released = os.pipe()
        command = [pandoc_path(), *arguments, "+RTS", AT_ONCE, MOST_MEMORY, "-RTS"]
        pipe = subprocess.PIPE
        super().__init__(command, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=[held])
        _running.add(self)
        if sys.platform == "linux":  # which kills it when nobody holds the pipe's other end
            fcntl.fcntl(held, fcntl.F_SETOWN, self.pid)
            fcntl.fcntl(held, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(held, fcntl.F_SETFL, os.O_ASYNC)
        os.close(held)

    def end(self) -> None:
        self.kill()
        self.communicate()
        self.ended()

    def ended(self) -> None:
        _running.discard(self)
        os.close(self.released)

    def stop_if_failed(self, log: bytes) -> None:
        if self.returncode == OUT_OF_MEMORY:
            stop(f"pandoc needs more than {MOST_MEMORY[3:-1]} GB for this chapter: divide it.")
        if self.returncode:
            stop(f"pandoc fails: {log.decode(errors='replace').strip()}")


_running: set[_Pandoc] = set()
_idle: list[_Pandoc] = []  # of those that serve


def _served(
    text: str,
    form: str,
    wanted: str,
    reading: dict[str, object] | None = None,
    writing: dict[str, object] | None = None,
) -> tuple[str, str]:
    """Return a text that pandoc translates between two forms, with these options, and its warnings.

    A pandoc serves one text after another, since its start takes longer than most pages do. `-E`
    keeps from it what the author's shell says to Lua.
    """
    sent = f"{text}\n".encode()
    asked = {"size": len(sent), "from": form, "to": wanted}
    asked |= {"reading": reading or {}, "writing": writing or {}}
    pandoc = _idle.pop() if _idle else _Pandoc("lua", "-E", str(SERVANT))
    assert pandoc.stdin
    assert pandoc.stdout
    began = monotonic()
    limit = Timer(TIME_LIMIT, pandoc.kill)
    limit.start()
    try:
        pandoc.stdin.write(json.dumps(asked).encode() + b"\n" + sent)
        pandoc.stdin.flush()
        head = json.loads(pandoc.stdout.readline())
        output = pandoc.stdout.read(head["size"])
        if len(output) < head["size"]:
            raise EOFError
    except (BrokenPipeError, EOFError, ValueError):  # it has ended
        _, log = pandoc.communicate()
        pandoc.ended()
        if monotonic() - began >= TIME_LIMIT:
            _stop_late(TIME_LIMIT)
        pandoc.stop_if_failed(log)
        raise
    except BaseException:
        pandoc.end()
        raise
    finally:
        limit.cancel()
    _idle.append(pandoc)
    if not head["done"]:
        stop(f"pandoc fails: {output.decode()}")
    return output.decode(), head["warnings"]


def run_pandoc(arguments: list[str], text: str, limit: float | None = None) -> tuple[str, str]:
    """Return the output of a pandoc of its own on a text, and the warnings that it gave."""
    limit = limit or TIME_LIMIT
    pandoc = _Pandoc(*arguments)
    try:
        output, log = pandoc.communicate(text.encode(), limit)
    except subprocess.TimeoutExpired:
        pandoc.end()
        _stop_late(limit)
    except BaseException:
        pandoc.end()
        raise
    pandoc.ended()
    pandoc.stop_if_failed(log)
    return output.decode(), log.decode()


def _stop_late(limit: float) -> NoReturn:
    stop(f"pandoc takes longer than {limit:g} s.")


@atexit.register
def end_pandocs() -> None:
    """Ends those that run, for an author who does not wait for them."""
    for pandoc in list(_running):
        pandoc.kill()
        pandoc.wait()
    while _idle:
        _idle.pop().end()


def walk(item: Any, change: Change) -> Any:
    """`item` with `change` applied to every node, outermost first.

    `change` returns None to leave a node and go on inside it, or its replacement (one or several),
    which is not walked again. Words and spaces, which are most nodes, are not copied.
    """
    if type(item) is dict:
        return {k: walk(v, change) if type(v) in (list, dict) else v for k, v in item.items()}
    result = []
    for child in item:
        kind = type(child)
        node = kind is dict and "t" in child
        new = change(child) if node else None
        if isinstance(new, list):
            result += new
        elif new is not None:
            result.append(new)
        elif kind is list or (kind is dict and not (node and type(child.get("c", "")) is str)):
            result.append(walk(child, change))
        else:
            result.append(child)
    return result


def nodes(item: Any) -> Iterable[Node]:
    """Every node inside `item`, in document order."""
    waiting = [item]
    while waiting:
        item = waiting.pop()
        if type(item) is dict:
            if "t" in item:
                yield item
                if type(item.get("c", "")) is str:
                    continue
            item = item.values()
        waiting += [inner for inner in reversed(item) if type(inner) in (list, dict)]


def plain_text(item: Any, skip: tuple[str, ...] = ("Note",)) -> str:
    """The words of inlines or blocks as a reader sees them; math as its TeX."""
    words: list[str] = []

    def collect(node: Node) -> list[Node] | None:
        kind = node["t"]
        if kind in skip or kind in ("RawInline", "RawBlock"):
            return []
        if kind == "Str":
            words.append(node["c"])
        elif kind in ("Space", "SoftBreak", "LineBreak"):
            words.append(" ")
        elif kind in ("Code", "CodeBlock", "Math"):
            words.append(node["c"][1])
        elif kind == "Quoted":
            left, right = "‘’" if node["c"][0]["t"] == "SingleQuote" else "“”"
            words.append(left)
            walk(node["c"][1], collect)
            words.append(right)
            return []
        elif words and kind in ("Para", "Plain", "Header", "Table", "Div"):
            words.append("\n")
        return None

    walk(item, collect)
    return "".join(words).strip()


def string(text: str) -> Node:
    return {"t": "Str", "c": text}


def plain(*inlines: Node) -> Node:
    return {"t": "Plain", "c": list(inlines)}


def div(identifier: str, classes: list[str], blocks: list[Node], **values: str) -> Node:
    return {"t": "Div", "c": [[identifier, classes, [[k, v] for k, v in values.items()]], blocks]}


def span(classes: list[str], inlines: list[Node]) -> Node:
    return {"t": "Span", "c": [["", classes, []], inlines]}


def link(target: str, classes: list[str], inlines: list[Node]) -> Node:
    return {"t": "Link", "c": [["", classes, []], inlines, [target, ""]]}


def raw(form: str, text: str, kind: str = "RawBlock") -> Node:
    return {"t": kind, "c": [form, text]}


def attribute(node: Node) -> tuple[str, list[str], dict[str, str]]:
    """Identifier, classes and values of a Div, Span, Header, Figure, Table, Image or Link."""
    identifier, classes, values = node["c"][1] if node["t"] == "Header" else node["c"][0]
    return identifier, classes, dict(values)
