"""Pandoc's JSON document: the call of pandoc, a walk, and constructors of nodes.

A node is `{"t": type, "c": content}`; an attribute is `[id, [classes], [[key, value]]]`.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from press.errors import stop

TIME_LIMIT = 30.0  # seconds; a long chapter takes one
DEEPEST = 14  # nodes in one another; typst gives up a little later

# A long chapter takes a hundredth of it. GHC's own limit, since its programs reserve a terabyte.
MOST_MEMORY = "-M2g"

# What reads Markdown needs little memory at a time. The system takes as long to bring the 64 MB
# with which pandoc begins as pandoc takes to read a chapter.
SMALL_HEAP = ["+RTS", "-H1m", "-A4m", "-RTS"]
OUT_OF_MEMORY = 251  # as a GHC program says it

_running: set[subprocess.Popen[str]] = set()

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
    # Raw HTML stays raw, so that it can be refused. A row longer than a line of `--columns`
    # would turn its table into one with widths in percent.
    form = "markdown-native_divs-native_spans"
    output, _ = run_pandoc([*SMALL_HEAP, "-f", form, "-t", "json", "--columns=100000"], text)
    try:
        document = json.loads(output)
        deep = _depth(document) > DEEPEST
    except RecursionError:
        deep = True
    if deep:
        stop("lists, quotes or other marks nest too deep.")
    return document["meta"], document["blocks"]


def _depth(document: Node) -> int:
    """How many nodes stand in one another."""
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


def convert(blocks: list[Node], arguments: list[str]) -> tuple[str, str]:
    """Blocks in another form, and the warnings that pandoc gave."""
    document = empty_document() | {"blocks": blocks}
    return run_pandoc(["-f", "json", "--wrap=none", *arguments], json.dumps(document))


@cache
def empty_document() -> Node:
    """With the version of pandoc's document that the installed one speaks."""
    document: Node = json.loads(run_pandoc(["-f", "markdown", "-t", "json"], "")[0])
    return document


def run_pandoc(arguments: list[str], text: str, limit: float | None = None) -> tuple[str, str]:
    """What pandoc makes of a text, and the warnings that it gave, by default in a page's time."""
    limit = limit or TIME_LIMIT
    held, released = os.pipe()
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            [pandoc_path(), *arguments, "+RTS", MOST_MEMORY, "-RTS"],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", pass_fds=[held],
        ) as process:  # fmt: skip
            _running.add(process)
            try:
                if sys.platform == "linux":  # which kills it when press ends, in whatever way
                    fcntl.fcntl(held, fcntl.F_SETOWN, process.pid)
                    fcntl.fcntl(held, fcntl.F_SETSIG, signal.SIGKILL)
                    fcntl.fcntl(held, fcntl.F_SETFL, os.O_ASYNC)
                output, log = process.communicate(text, limit)
            except BaseException:
                process.kill()
                raise
            finally:
                _running.discard(process)
    except subprocess.TimeoutExpired:
        stop(f"pandoc takes longer than {limit:g} s.")
    finally:
        os.close(held)
        os.close(released)
    if process.returncode == OUT_OF_MEMORY:
        stop(f"pandoc needs more than {MOST_MEMORY[2:-1]} GB for this chapter: divide it.")
    if process.returncode:
        stop(f"pandoc fails: {log.strip()}")
    return output, log


def end_pandocs() -> None:
    """Ends those that run, for an author who does not wait for them."""
    for process in list(_running):
        process.kill()


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
